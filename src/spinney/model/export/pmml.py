"""PMML 4.4: trees with their tests as predicates, ensembles as segments, links as regression models behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from spinney._types import LEAF, MULTIWAY, THRESHOLD
from spinney.model.export.json_tables import note_dates
from spinney.model.export.scored import CannotRunError, Scored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spinney.model.export.tree_sum import Column, Surrogate, TreeSum

SPACE = "http://www.dmg.org/PMML-4_4"
NO_LETTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML has none of these
INSTEAD = "export it to c, python, javascript or json"
TARGET = "prediction"


def write_pmml(form: TreeSum) -> str:
    """A model as a document of PMML."""
    refuse_models(form)
    return PmmlWriter(form).write()


def refuse_models(form: TreeSum) -> None:
    """Refuse what PMML cannot say, or no two engines read alike."""
    steps = {step for step, _ in form.steps}
    if form.has_spread:
        raise ValueError(f"rows with missing values take several branches (C4.5), which PMML does not say: {INSTEAD}")
    if form.terms:
        raise ValueError(f"linear leaves of trees are not written in PMML: {INSTEAD}, or fit with leaf_model=None")
    if "sort" in steps:
        raise ValueError(f"several quantiles are no model of PMML: {INSTEAD}, or fit one model for each")
    if "median" in steps:
        raise ValueError(f"AdaBoost of numbers predicts a weighted median, which engines of PMML differ in: {INSTEAD}")
    for test in (test for tests in form.surrogates.values() for test in tests):
        n_levels = len(form.columns[test.column].levels or ())
        if test.known >= 0 and len(form.subsets[test.known]) < n_levels:
            raise ValueError(
                f"a surrogate test does not know every level of its column: PMML cannot say that; {INSTEAD}"
            )


class PmmlWriter:
    """Writes a document.

    Parameters
    ----------
    form : TreeSum
    """

    def __init__(self, form: TreeSum) -> None:
        self.form = form
        names = {column.name for column in form.columns}
        self.target = unique(TARGET, names)
        self.sums = [unique(f"sum {k}", names) for k in range(len(form.start))]

    def write(self) -> str:
        """The whole document."""
        from spinney import __version__

        fields = [self.field(self.form.columns[j]) for j in self.form.used]
        fields.append(self.target_field())
        body = "".join(fields)
        note = f"<Annotation>{escape(note_dates(self.form))}</Annotation>" if self.form.dates else ""
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<PMML xmlns="{SPACE}" version="4.4">\n'
            f'<Header><Application name="Spinney" version={quoteattr(__version__)}/>{note}</Header>\n'
            f'<DataDictionary numberOfFields="{len(fields)}">\n{body}</DataDictionary>\n{self.model()}</PMML>\n'
        )

    # --- fields ---

    def field(self, column: Column) -> str:
        """A column in the dictionary."""
        if column.levels is None:
            return f'<DataField name={quote(column.name)} optype="continuous" dataType="double"/>\n'
        values = "".join(f"<Value value={quote(show_value(level))}/>" for level in column.levels)
        kind = type_of(column.levels)
        return f'<DataField name={quote(column.name)} optype="categorical" dataType="{kind}">{values}</DataField>\n'

    def target_field(self) -> str:
        """What is predicted."""
        classes = self.form.classes
        if classes is None:
            return f'<DataField name={quote(self.target)} optype="continuous" dataType="double"/>\n'
        values = "".join(f"<Value value={quote(show_value(label))}/>" for label in classes)
        kind = type_of(classes)
        return f'<DataField name={quote(self.target)} optype="categorical" dataType="{kind}">{values}</DataField>\n'

    def schema(self, more: Sequence[str] = (), *, has_target: bool = True, has_columns: bool = True) -> str:
        """The fields that a model reads: a level that is not in the dictionary is missing."""
        lines = [f'<MiningField name={quote(self.target)} usageType="target"/>'] if has_target else []
        for j in self.form.used if has_columns else ():
            column = self.form.columns[j]
            treatment = "" if column.levels is None else ' invalidValueTreatment="asMissing"'
            lines.append(f"<MiningField name={quote(column.name)}{treatment}/>")
        lines += [f"<MiningField name={quote(name)}/>" for name in more]
        return f"<MiningSchema>{''.join(lines)}</MiningSchema>\n"

    def output(self) -> str:
        """The class and the probabilities."""
        lines = [
            f'<OutputField name={quote(f"probability({show_value(label)})")} optype="continuous" dataType="double" '
            f'feature="probability" value={quote(show_value(label))}/>'
            for label in self.form.classes or ()
        ]
        return f"<Output>{''.join(lines)}</Output>\n" if lines else ""

    # --- models ---

    def model(self) -> str:
        """The model of the document."""
        form = self.form
        steps = dict(form.steps)
        is_shares = form.classes is not None and not {"logistic", "softmax"} & set(steps)
        if is_shares:
            return self.share_trees()
        factors = [arguments["by"] for step, arguments in form.steps if step == "multiply"] if not form.classes else []
        if form.classes is None and "exp" not in steps:
            return self.add_trees(0, self.target, factors, is_mean="divide" in steps)
        parts = [self.segment(k, self.add_trees(k, None)) for k in range(len(form.start))]
        parts.append(self.segment(len(parts), self.link(factors)))
        kind = "regression" if form.classes is None else "classification"
        return self.mining_model(kind, "modelChain", parts, self.schema(), self.output())

    def share_trees(self) -> str:
        """Trees whose leaves hold shares of the classes."""
        form = self.form
        if not form.roots:
            node = self.share(form.start)
            return self.tree_model("classification", f"<Node{node[0]}><True/>{node[1]}</Node>\n", self.output())
        rows = []
        for entries in form.leaves:
            row = [0.0] * len(form.start)
            for k, value in entries:
                row[k] = value
            rows.append(self.share(row))
        trees = [self.nest(root, rows.__getitem__) for root in form.roots]
        if len(trees) == 1 and not form.steps:
            return self.tree_model("classification", trees[0], self.output())
        parts = [self.segment(t, self.tree_model("classification", tree, "")) for t, tree in enumerate(trees)]
        return self.mining_model("classification", "average", parts, self.schema(), self.output())

    def share(self, row: Sequence[float]) -> tuple[str, str]:
        """The score of a leaf of shares, and their distribution."""
        classes = [show_value(label) for label in self.form.classes or ()]
        best = max(range(len(row)), key=row.__getitem__)
        lines = [
            f'<ScoreDistribution value={quote(label)} recordCount="{share!r}" probability="{share!r}"/>'
            for label, share in zip(classes, row, strict=True)
        ]
        return f" score={quote(classes[best])}", "".join(lines)

    def add_trees(self, k: int, target: str | None, factors: Sequence[float] = (), *, is_mean: bool = False) -> str:
        """The trees of a sum, added up or averaged; target: None for a sum that a model behind it reads."""
        form = self.form
        start = form.start[k]
        parts = [] if is_mean else [f'<Node score="{start!r}"><True/></Node>\n']
        for t in range(len(form.roots)):
            nodes = form.tree_of(t)
            leaves = [int(form.nodes.first[n]) for n in nodes if form.nodes.kind[n] == LEAF]
            said = {leaf: dict(form.leaves[leaf]).get(k) for leaf in leaves}
            if any(value is not None for value in said.values()):

                def score(leaf: int, said: dict[int, float | None] = said) -> tuple[str, str]:
                    return f' score="{said[leaf] or 0.0!r}"', ""

                parts.append(self.nest(nodes.start, score))
        has_target = target is not None
        models = [
            self.segment(t, self.tree_model("regression", tree, "", has_target=has_target))
            for t, tree in enumerate(parts)
        ]
        scaled = "".join(f'<Target field={quote(self.target)} rescaleFactor="{factor!r}"/>' for factor in factors[:1])
        if len(factors) > 1:
            raise ValueError(f"the numbers are too far from 1 to be scaled in PMML: {INSTEAD}")
        output = (
            ""
            if has_target
            else (
                f'<Output><OutputField name={quote(self.sums[k])} optype="continuous" dataType="double" '
                'feature="predictedValue" isFinalResult="false"/></Output>\n'
            )
        )
        targets = f"<Targets>{scaled}</Targets>\n" if scaled else ""
        method = "average" if is_mean else "sum"
        return self.mining_model("regression", method, models, self.schema(has_target=has_target), output + targets)

    def link(self, factors: Sequence[float]) -> str:
        """From sums to answers."""
        form = self.form
        steps = dict(form.steps)
        schema = self.schema(self.sums, has_columns=False)
        if form.classes is None:
            if factors:
                raise ValueError(f"numbers of a log link that are scaled are not written in PMML: {INSTEAD}")
            begin = '<RegressionModel functionName="regression" normalizationMethod="exp">\n'
            return f"{begin}{schema}{self.table(0, 1.0, '')}</RegressionModel>\n"
        classes = [show_value(label) for label in form.classes]
        factor = 1.0
        for step, arguments in form.steps:
            if step in {"divide", "multiply"}:
                factor = factor / arguments["by"] if step == "divide" else factor * arguments["by"]
            elif step == "contrast":  # but for a constant, which softmax does not see
                factor *= (1.0 + 1.0 / arguments["others"]) / arguments["weight"]
        if "softmax" in steps:
            tables = [self.table(k, factor, f" targetCategory={quote(label)}") for k, label in enumerate(classes)]
            method = "softmax"
        else:
            tables = [self.table(0, factor, f" targetCategory={quote(classes[1])}")]
            tables.append(f'<RegressionTable intercept="0.0" targetCategory={quote(classes[0])}/>\n')
            method = "logit"
        begin = f'<RegressionModel functionName="classification" normalizationMethod="{method}">\n'
        return f"{begin}{schema}{''.join(tables)}</RegressionModel>\n"

    def table(self, k: int, factor: float, more: str) -> str:
        """A sum, times a factor."""
        predictor = f'<NumericPredictor name={quote(self.sums[k])} coefficient="{factor!r}"/>'
        return f'<RegressionTable intercept="0.0"{more}>{predictor}</RegressionTable>\n'

    def mining_model(self, kind: str, method: str, parts: Sequence[str], schema: str, more: str) -> str:
        """A model of segments."""
        inside = f'<Segmentation multipleModelMethod="{method}">\n{"".join(parts)}</Segmentation>\n'
        return f'<MiningModel functionName="{kind}">\n{schema}{more}{inside}</MiningModel>\n'

    def segment(self, number: int, model: str) -> str:
        """A part of a model of segments."""
        return f'<Segment id="{number + 1}"><True/>\n{model}</Segment>\n'

    def tree_model(self, kind: str, node: str, more: str, *, has_target: bool = True) -> str:
        """A tree."""
        begin = (
            f'<TreeModel functionName="{kind}" missingValueStrategy="defaultChild" splitCharacteristic="multiSplit">\n'
        )
        return f"{begin}{self.schema(has_target=has_target)}{more}{node}</TreeModel>\n"

    # --- nodes ---

    def nest(self, root: int, score: Callable[[int], tuple[str, str]]) -> str:
        """The nodes of a tree, one inside the other; score: attributes and content of a leaf."""
        nodes = self.form.nodes
        text: list[str] = []
        waiting: list[tuple[int, str] | None] = [(root, "<True/>")]
        while waiting:
            found = waiting.pop()
            if found is None:
                text.append("</Node>\n")
                continue
            node, predicate = found
            if nodes.kind[node] == LEAF:
                attributes, content = score(int(nodes.first[node]))
                text.append(f'<Node id="{node - root}"{attributes}>{predicate}{content}</Node>\n')
                continue
            first = int(nodes.first[node])
            default = first - root + int(nodes.missing[node])
            text.append(f'<Node id="{node - root}" defaultChild="{default}">{predicate}\n')
            waiting.append(None)
            predicates = self.predicates(node)
            waiting.extend((first + branch, predicates[branch]) for branch in reversed(range(len(predicates))))
        return "".join(text)

    def predicates(self, node: int) -> list[str]:
        """When a row takes each branch of a node; unknown where the value is missing."""
        nodes, column = self.form.nodes, int(self.form.nodes.column[node])
        levels = self.form.columns[column].levels
        name = self.form.columns[column].name
        if nodes.kind[node] == MULTIWAY:
            found = [simple(name, "equal", show_value(level)) for level in levels or ()]
        elif nodes.kind[node] == THRESHOLD:
            found = list(compare_to(name, float(nodes.cut[node])))
        else:
            found = list(self.split_levels(column, int(nodes.subset[node])))
        if self.form.n_branches(node) > len(found):
            found.append(f'<SimplePredicate field={quote(name)} operator="isMissing"/>')
        surrogates = self.form.surrogates.get(node, [])
        if not surrogates:
            return found
        pairs = [self.pair_of(test) for test in surrogates]
        joined = [
            f'<CompoundPredicate booleanOperator="surrogate">{found[branch]}{"".join(pair[branch] for pair in pairs)}'
            "</CompoundPredicate>"
            for branch in range(2)
        ]
        return [*joined, *found[2:]]

    def pair_of(self, test: Surrogate) -> tuple[str, str]:
        """When a row takes branch 0 and 1 by a surrogate."""
        if test.known < 0:
            first, second = compare_to(self.form.columns[test.column].name, test.cut)
        else:
            first, second = self.split_levels(test.column, test.subset)
        return (second, first) if test.is_reversed else (first, second)

    def split_levels(self, column: int, subset: int) -> tuple[str, str]:
        """Whether a level is in a subset, and whether it is not."""
        name, levels = self.form.columns[column].name, self.form.columns[column].levels or ()
        shown = [show_value(levels[place]) for place in self.form.subsets[subset]]
        items = " ".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in shown)
        kind = {"string": "string", "integer": "int", "boolean": "string"}.get(type_of(levels), "real")
        items = items if kind == "string" else " ".join(shown)
        array = f'<Array type="{kind}" n="{len(shown)}">{plain(items)}</Array>'
        begin = f"<SimpleSetPredicate field={quote(name)} booleanOperator="
        return f'{begin}"isIn">{array}</SimpleSetPredicate>', f'{begin}"isNotIn">{array}</SimpleSetPredicate>'


def compare_to(name: str, cut: float) -> tuple[str, str]:
    """Whether a value is up to a threshold, and whether it is above."""
    shown = repr(cut).replace("inf", "INF")
    return simple(name, "lessOrEqual", shown), simple(name, "greaterThan", shown)


def simple(name: str, operator: str, value: str) -> str:
    """A predicate of one value."""
    return f'<SimplePredicate field={quote(name)} operator="{operator}" value={quote(value)}/>'


def type_of(values: Sequence[Any]) -> str:
    """The type of levels or classes."""
    if not values or isinstance(values[0], str):
        return "string"
    if isinstance(values[0], bool):
        return "boolean"
    return "integer" if all(isinstance(value, int) for value in values) else "double"


def show_value(value: Any) -> str:
    """A level or class as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def unique(name: str, taken: set[str]) -> str:
    """A name that no column has."""
    while name in taken:
        name += "_"
    return name


def quote(text: str) -> str:
    """Text as an attribute."""
    return quoteattr(check_letters(text))


def plain(text: str) -> str:
    """Text as content; a reader would make a line break of a carriage return."""
    return escape(check_letters(text), {"\r": "&#13;"})


def check_letters(text: str) -> str:
    """Text, if XML can hold it."""
    found = NO_LETTER.search(text)
    if found:
        raise ValueError(f"{text!r:.60} holds {found[0]!r}, which XML has no letter for: rename it, or {INSTEAD}")
    return text


def run_pmml(content: str, form: TreeSum, cells: list[list[Any]]) -> Scored:
    """Tell that nothing here runs PMML."""
    del content, form, cells
    raise CannotRunError("engines of PMML run outside of Python; compare some rows there")
