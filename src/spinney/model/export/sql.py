"""SQL: one SELECT, whose stages each add up some trees, so that no expression outgrows an engine.

Stages are common table expressions. The first reads the columns: numbers as float64, categories as the index of their
level. Those that follow carry what is still needed: key columns, those values, the sums so far. A tree is one CASE;
where it is deeper than an engine nests, several, from node numbers to node numbers. Sums are written in the order in
which prediction adds, and engines add from left to right, so that the bits are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import LEAF, MULTIWAY, THRESHOLD
from spinney.model.export.json_tables import note_dates
from spinney.model.export.literals import is_unicode
from spinney.model.export.scored import CannotRunError, Scored
from spinney.model.export.sql_dialects import DIALECTS, MOST_NAME, Dialect, class_literal, quote_name, read_column
from spinney.model.export.tree_sum import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spinney.model.export.tree_sum import Surrogate, TreeSum

TREES_AT_ONCE = 40  # of a stage
ITEMS_AT_ONCE = 200  # of a sum in one expression
ARGUMENTS = 50  # of a function
MOST_MEMBERS = 200  # of a weighted median
MOST_NODES = 30_000  # of a query that is run: SQLite reads it in 10 s, and four times as long for twice as many
MOST = 1.7976931348623157e308
EXP_BITS = 10  # of the power of two of an exponential
ROUNDER, LOG2_E, LN2_HIGH, LN2_LOW = 6755399441055744.0, 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
POLYNOMIAL = (
    *(0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062, 0.0013888888917213717),
    *(0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07),
    2.510038549551032e-08,
)


def write_sql(
    form: TreeSum, dialect: str = "sqlite", table: str | Sequence[str] = "data", key: Sequence[str] = ()
) -> str:
    """A model as a query of a table; key: columns of the table that stand beside the answers."""
    if dialect not in tuple(DIALECTS):  # of any type
        raise ValueError(f"dialect={dialect!r}: give one of {', '.join(DIALECTS)}")
    if any(step == "median" for step, _ in form.steps) and len(form.roots) > MOST_MEMBERS:
        raise ValueError(
            f"AdaBoost of numbers predicts a weighted median of its trees, which SQL sorts in as many stages; "
            f"{len(form.roots)} are too many (at most {MOST_MEMBERS}): export it to c, python, javascript or json"
        )
    form.refuse_linear_sums("SQL")
    names = list_names("table", table)
    if not names:
        raise ValueError(f"table={table!r}: give the name of a table, or a list of a schema and a table")
    return SqlWriter(form, DIALECTS[dialect], names, list_names("key", key)).write()


def list_names(argument: str, given: Any) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    names = (given,) if isinstance(given, str) else tuple(given) if hasattr(given, "__iter__") else (given,)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument}={given!r:.60}: give a name, or a list of names")
    return names


class SqlWriter:
    """Writes a query, stage by stage.

    Parameters
    ----------
    form : TreeSum
    dialect : Dialect
    table : tuple of str
        The name of the table, of its schema before it if there is one.
    key : tuple of str
        Columns to carry along.
    """

    def __init__(self, form: TreeSum, dialect: Dialect, table: tuple[str, ...], key: tuple[str, ...]) -> None:
        self.form, self.dialect, self.table, self.key = form, dialect, table, key
        self.number = dialect.number
        self.stages: list[str] = []
        self.keys = [f"k{i}" for i in range(len(key))]
        self.values = [f"x{j}" for j in form.used]
        self.prefix = "spinney_"
        while table[-1].lower().startswith(self.prefix):
            self.prefix = f"_{self.prefix}"

    def write(self) -> str:
        """The whole query."""
        from spinney import __version__

        form = self.form
        self.check_names()
        reads = [f"t.{quote_name(name)} AS k{i}" for i, name in enumerate(self.key)]
        reads += [f"{read_column(self.dialect, form.columns[j])} AS x{j}" for j in form.used]
        source = ".".join(map(quote_name, self.table))
        self.add_stage(reads or ["1 AS one"], f"{source} AS t")
        sums = self.spread() if form.has_spread else self.add_up()
        self.answer(sums)
        head = f"-- A model of trees, exported by Spinney {__version__} for {self.dialect.name}.\n"
        head += f"-- {note_dates(form)}\n" if form.dates else ""
        return head + "WITH " + ",\n".join(self.stages[:-1]) + "\n" + self.stages[-1] + ";\n"

    def check_names(self) -> None:
        """Refuse columns that the engine takes for one."""
        names = [self.form.columns[j].name for j in self.form.used]
        fold = self.dialect.fold
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(fold(name), name)
            if seen and other is not name:
                raise ValueError(f"columns {other!r} and {name!r} have one name to {self.dialect.name}: rename one")

    def check_answers(self, answers: Sequence[str]) -> None:
        """Refuse keys that are called as an answer is: nothing would tell the two columns apart."""
        taken = set(map(self.dialect.fold, answers))
        for name in self.key:
            if self.dialect.fold(name) in taken:
                raise ValueError(f"key {name!r} is the name of an answer: rename the column, or query a view of it")

    def add_stage(self, items: Sequence[str], source: str | None = None, n_more: int = 0) -> None:
        """Append a stage that selects these from the one before it; n_more: columns that items have beside one each."""
        n_columns = len(items) + n_more
        if n_columns > self.dialect.most_columns:
            raise ValueError(
                f"the model needs {n_columns:,} columns in a stage, and {self.dialect.name} has at most "
                f"{self.dialect.most_columns:,}: export it to duckdb, c, python or javascript"
            )
        source = source or f"{self.prefix}{len(self.stages) - 1}"
        body = ",\n  ".join(items)
        self.stages.append(f"{self.prefix}{len(self.stages)} AS MATERIALIZED (SELECT\n  {body}\nFROM {source})")

    def carry(self, new: dict[str, str], keep: Sequence[str]) -> None:
        """Append a stage of new columns, beside the keys and those kept."""
        names = [*self.keys, *(name for name in keep if name not in new)]
        lines = [", ".join(names)] if names else []
        self.add_stage(
            [*lines, *(f"{expression} AS {name}" for name, expression in new.items())], n_more=max(len(names) - 1, 0)
        )

    # --- trees ---

    def add_up(self) -> list[str]:
        """Stages that add up the trees; the columns of the sums."""
        form = self.form
        sums = [f"s{k}" for k in range(len(form.start))]
        so_far = dict(zip(sums, map(self.number, form.start), strict=True))
        for first in range(0, len(form.roots), TREES_AT_ONCE):
            trees = range(first, min(first + TREES_AT_ONCE, len(form.roots)))
            plain = all(self.is_plain(t) for t in trees)
            held = sums if first else []
            added: dict[str, list[str]] = {name: [] for name in sums if not first}
            for parts in self.say_values(trees) if plain else self.find_leaves(trees, held):
                for at, expression in parts.items():
                    added.setdefault(sums[at], []).append(expression)
            new = {name: " +\n    ".join([so_far[name], *expressions]) for name, expressions in added.items()}
            so_far = {name: name for name in sums}
            is_last = trees.stop == len(form.roots)
            numbers = [f"n{t}" for t in trees] if form.terms else []
            self.carry(new, [*(self.values if form.terms or not is_last else []), *held, *numbers])
        if not form.roots:
            self.carry(so_far, [])
        if form.terms:
            self.add_terms(sums)
        return sums

    def is_plain(self, t: int) -> bool:
        """Whether a tree adds one number to one sum, and is shallow."""
        nodes = self.form.tree_of(t)
        depth = int(self.form.depths[nodes.start : nodes.stop].max())
        return depth <= self.dialect.steps_at_once and not self.form.terms and len(self.sums_of(t)) == 1

    def sums_of(self, t: int) -> set[int]:
        """The sums that a tree adds to."""
        return {at for entries in self.entries_of(t).values() for at, _ in entries}

    def entries_of(self, t: int) -> dict[int, list[tuple[int, float]]]:
        """What the leaves of a tree add, by node, counted from its root."""
        nodes = self.form.tree_of(t)
        kind, first = self.form.nodes.kind, self.form.nodes.first
        return {node - nodes.start: self.form.leaves[first[node]] for node in nodes if kind[node] == LEAF}

    def say_values(self, trees: range) -> list[dict[int, str]]:
        """What shallow trees add: a CASE each, by the sum."""
        said = []
        for t in trees:
            entries = self.entries_of(t)
            root = self.form.roots[t]
            (at,) = self.sums_of(t)

            def say(node: int, entries: Any = entries, root: int = root) -> str:
                found = entries[node - root]
                return self.number(found[0][1])

            said.append({at: self.nest(root, self.dialect.steps_at_once, say)})
        return said

    def find_leaves(self, trees: range, keep: Sequence[str]) -> list[dict[int, str]]:
        """Stages that find the leaves of trees, as columns of node numbers; what they add, by the sum."""
        form, limit = self.form, self.dialect.steps_at_once
        depth = max(int(form.depths[nodes.start : nodes.stop].max()) for nodes in map(form.tree_of, trees))
        numbers = [f"n{t}" for t in trees]
        for level in range(0, max(depth, 1), limit):
            new = {}
            for t in trees:
                nodes = form.tree_of(t)
                root = nodes.start

                def say(node: int, root: int = root) -> str:
                    return str(node - root)

                at = [n for n in nodes if form.depths[n] == level and (form.nodes.kind[n] != LEAF or level == 0)]
                cases = [(n, self.nest(n, limit, say)) for n in at]
                if level == 0:
                    new[f"n{t}"] = cases[0][1]
                elif cases:
                    whens = "".join(f" WHEN {n - root} THEN {case}" for n, case in cases)
                    new[f"n{t}"] = f"CASE n{t}{whens} ELSE n{t} END"
            self.carry(new, [*self.values, *keep, *(numbers if level else [])])
        return [self.add_entries(t) for t in trees]

    def add_entries(self, t: int) -> dict[int, str]:
        """What a tree adds to each sum, from the number of its leaf."""
        by_sum: dict[int, dict[float, list[int]]] = {}
        for leaf, entries in self.entries_of(t).items():
            for at, value in entries:
                by_sum.setdefault(at, {}).setdefault(value, []).append(leaf)
        said = {}
        for at, by_value in by_sum.items():
            whens = "".join(
                f" WHEN n{t} IN ({', '.join(map(str, leaves))}) THEN {self.number(value)}"
                for value, leaves in by_value.items()
            )
            said[at] = f"CASE{whens} ELSE {self.number(0.0)} END"
        return said

    def add_terms(self, sums: Sequence[str]) -> None:
        """Stages that add the terms of linear leaves, the first of each leaf, then the second, and so on."""
        form = self.form
        by_leaf = {leaf: form.terms.get(int(form.nodes.first[leaf]), []) for leaf in form.tree_of(0)}
        by_leaf = {leaf: terms for leaf, terms in by_leaf.items() if terms and form.nodes.kind[leaf] == LEAF}
        none = self.number(0.0)
        for at in range(max(map(len, by_leaf.values()))):
            cases = ""
            for leaf, terms in by_leaf.items():
                if at < len(terms):
                    column, coefficient, fill = terms[at]
                    off = self.bound(f"x{column} - {self.number(fill)}")
                    term = self.bound(f"{self.number(coefficient)} * {off}")
                    cases += f" WHEN {leaf} THEN CASE WHEN x{column} IS NULL THEN {none} ELSE {term} END"
            term = f"CASE n0{cases} ELSE {none} END"
            self.carry({sums[0]: self.bound(f"{sums[0]} + {term}")}, [*self.values, *sums, "n0"])

    def bound(self, expression: str) -> str:
        """The nearest number that is finite."""
        low, high = self.number(-MOST), self.number(MOST)
        return f"{self.dialect.least}({self.dialect.greatest}({expression}, {low}), {high})"

    # --- tests ---

    def nest(self, node: int, room: int, say: Callable[[int], str]) -> str:
        """The CASE of a node and what is below it, `room` tests deep; say: what stands for a leaf, or where it ends."""
        nodes = self.form.nodes
        if nodes.kind[node] == LEAF or room == 0:
            return say(node)
        first, n_branches = int(nodes.first[node]), self.form.n_branches(node)
        below = [self.nest(first + branch, room - 1, say) for branch in range(n_branches)]
        missing = int(nodes.missing[node])
        if node in self.form.surrogates:
            return self.ask_surrogates(node, below)
        tests = self.list_tests(node)
        if nodes.kind[node] == MULTIWAY:
            whens = "".join(f" WHEN {level} THEN {text}" for level, text in enumerate(below))
            return f"CASE COALESCE(x{int(nodes.column[node])}, {missing}){whens} END"
        if missing == 2:
            return f"CASE WHEN {tests[0]} THEN {below[0]} WHEN {tests[1]} THEN {below[1]} ELSE {below[2]} END"
        other = 1 - missing
        return f"CASE WHEN {tests[other]} THEN {below[other]} ELSE {below[missing]} END"

    def list_tests(self, node: int) -> list[str]:
        """When a known value takes each branch of a node: not true of NULL."""
        nodes, column = self.form.nodes, int(self.form.nodes.column[node])
        if nodes.kind[node] == THRESHOLD:
            cut = self.number(float(nodes.cut[node]))
            return [f"x{column} <= {cut}", f"x{column} > {cut}"]
        n_levels = len(self.form.columns[column].levels or ())
        if nodes.kind[node] == MULTIWAY:
            return [f"x{column} = {level}" for level in range(n_levels)]
        subset = set(self.form.subsets[nodes.subset[node]])
        return [list_levels_in(column, subset), list_levels_in(column, set(range(n_levels)) - subset)]

    def ask_surrogates(self, node: int, below: list[str]) -> str:
        """The CASE of a node whose missing values go by other columns."""
        tests = self.list_tests(node)
        whens = "".join(f" WHEN {test} THEN {branch}" for branch, test in enumerate(tests))
        for surrogate in self.form.surrogates[node]:
            for branch, test in enumerate(self.list_surrogate(surrogate)):
                whens += f" WHEN {test} THEN {branch ^ int(surrogate.is_reversed)}"
        missing = int(self.form.nodes.missing[node])
        chosen = f"CASE{whens} ELSE {missing} END"
        arms = "".join(f" WHEN {branch} THEN {text}" for branch, text in enumerate(below[:-1]))
        return f"CASE {chosen}{arms} ELSE {below[-1]} END"

    def list_surrogate(self, test: Surrogate) -> list[str]:
        """When a value takes branch 0 and 1 by a surrogate."""
        if test.known < 0:
            cut = self.number(test.cut)
            return [f"x{test.column} <= {cut}", f"x{test.column} > {cut}"]
        subset, known = (set(self.form.subsets[at]) for at in (test.subset, test.known))
        return [list_levels_in(test.column, levels) for levels in (subset & known, known - subset)]

    # --- rows that take every branch ---

    def spread(self) -> list[str]:
        """Stages by depth: which part of a row comes to each node; then the sums over leaves, from left to right."""
        form = self.form
        self.carry({"h0": self.number(1.0)}, self.values)
        done: list[str] = []
        for depth in range(int(form.depths.max())):
            new: dict[str, str] = {}
            for node in np.flatnonzero(form.depths == depth).tolist():
                if form.nodes.kind[node] == LEAF:
                    done.append(f"h{node}")
                    continue
                for branch, part in enumerate(self.list_parts(node)):
                    new[f"h{int(form.nodes.first[node]) + branch}"] = f"h{node} * {part}"
            self.carry(new, [*self.values, *done])
        leaves = self.list_leaves()
        sums = [f"s{k}" for k in range(len(form.start))]
        zeros = {name: self.number(0.0) for name in sums}
        held = [f"h{leaf}" for leaf in leaves]
        self.carry(zeros, held)
        for first in range(0, len(leaves), ITEMS_AT_ONCE):
            added: dict[str, list[str]] = {}
            for leaf in leaves[first : first + ITEMS_AT_ONCE]:
                for at, value in form.leaves[form.nodes.first[leaf]]:
                    added.setdefault(sums[at], []).append(f"h{leaf} * {self.number(value)}")
            self.carry({name: " + ".join([name, *parts]) for name, parts in added.items()}, [*sums, *held])
        return sums

    def list_parts(self, node: int) -> list[str]:
        """Which part of a row takes each branch of a node."""
        nodes = self.form.nodes
        first, missing = int(nodes.first[node]), int(nodes.missing[node])
        one, none = self.number(1.0), self.number(0.0)
        tests = self.list_tests(node)
        parts = []
        for branch in range(self.form.n_branches(node)):
            of_missing = one if branch == missing else none
            if missing == EVERY:
                of_missing = self.number(float(nodes.share[first + branch]))
            taken = f"WHEN {tests[branch]} THEN {one} " if branch < len(tests) else ""
            parts.append(f"CASE WHEN x{int(nodes.column[node])} IS NULL THEN {of_missing} {taken}ELSE {none} END")
        return parts

    def list_leaves(self) -> list[int]:
        """The leaves from left to right."""
        waiting, found = [0], []
        while waiting:
            node = waiting.pop()
            if self.form.nodes.kind[node] == LEAF:
                found.append(node)
            else:
                first = int(self.form.nodes.first[node])
                waiting.extend(reversed(range(first, first + self.form.n_branches(node))))
        return found

    # --- from sums to answers ---

    def answer(self, sums: list[str]) -> None:
        """Stages of the steps, and the last SELECT."""
        form = self.form
        votes = {f"v{k}": name for k, name in enumerate(sums)} if form.choice != "answers" else {}
        if votes:
            self.carry(votes, sums)
        names = sums
        for step, arguments in form.steps:
            names = getattr(self, f"step_{step}")(names, list(votes), **arguments)
        items = [f"{key} AS {quote_name(name)}" for key, name in zip(self.keys, self.key, strict=True)]
        if form.classes is None:
            shown = ["prediction"] if len(names) == 1 else [f"prediction_{k}" for k in range(len(names))]
            items += [f"{name} AS {column}" for name, column in zip(names, shown, strict=True)]
        else:
            items.append(f"{self.choose(names, list(votes))} AS prediction")
            labels = name_labels([str(label) for label in form.classes])
            items += [f"{name} AS {quote_name(label)}" for name, label in zip(names, labels, strict=True)]
        self.check_answers(["prediction", *labels] if form.classes is not None else shown)
        if len(items) > self.dialect.most_columns:
            raise ValueError(f"{len(items):,} columns of answers are too many for {self.dialect.name}")
        body = ",\n  ".join(items)
        self.stages.append(f"SELECT\n  {body}\nFROM {self.prefix}{len(self.stages) - 1}")

    def choose(self, names: list[str], votes: list[str]) -> str:
        """The class of a row."""
        form = self.form
        assert form.classes is not None
        labels = [class_literal(self.dialect, label) for label in form.classes]
        if form.choice == "sign":
            return f"CASE WHEN v0 > {self.number(0.0)} THEN {labels[1]} ELSE {labels[0]} END"
        scores = votes if form.choice == "sums" else names
        if len(scores) == 1:
            return labels[0]
        self.carry({"best": self.most_of(scores)}, [*names, *votes])
        whens = "".join(f" WHEN {score} = best THEN {text}" for score, text in zip(scores, labels, strict=True))
        return f"CASE{whens} END"

    def most_of(self, names: Sequence[str]) -> str:
        """The greatest of several columns, a few at a time: functions take no more."""
        while len(names) > 1:
            groups = [names[at : at + ARGUMENTS] for at in range(0, len(names), ARGUMENTS)]
            names = [f"{self.dialect.greatest}({', '.join(g)})" if len(g) > 1 else g[0] for g in groups]
        return names[0]

    def change(self, names: list[str], keep: list[str], expression: str) -> list[str]:
        """A stage that makes each of some columns something else; `{}` is the column."""
        self.carry({name: expression.format(name) for name in names}, keep)
        return names

    def step_divide(self, names: list[str], keep: list[str], by: float) -> list[str]:
        """Divide by a number."""
        return self.change(names, keep, f"{{}} / {self.number(by)}")

    def step_multiply(self, names: list[str], keep: list[str], by: float) -> list[str]:
        """Multiply by a number."""
        return self.change(names, keep, f"{{}} * {self.number(by)}")

    def step_contrast(self, names: list[str], keep: list[str], total: float, others: float, weight: float) -> list[str]:
        """Votes of each class against those of the others."""
        a, b, c = map(self.number, (total, others, weight))
        return self.change(names, keep, f"({{0}} - ({a} - {{0}}) / {b}) / {c}")

    def step_exp(self, names: list[str], keep: list[str]) -> list[str]:
        """Exp as `kernels.common.elementary` has it, in stages, so that no engine simplifies what is to be rounded."""
        number, q = self.number, [self.number(x) for x in POLYNOMIAL]
        least, greatest = self.dialect.least, self.dialect.greatest
        self.change(names, keep, f"{least}({greatest}({{}}, {number(-708.0)}), {number(709.0)})")
        powers, parts = [f"{name}k" for name in names], [f"{name}r" for name in names]
        shifted = {k: f"{name} * {number(LOG2_E)} + {number(ROUNDER)}" for k, name in zip(powers, names, strict=True)}
        self.carry(shifted, [*keep, *names])
        self.carry({k: f"{k} - {number(ROUNDER)}" for k in powers}, [*keep, *names])
        rests = {
            r: f"({name} - {k} * {number(LN2_HIGH)}) - {k} * {number(LN2_LOW)}"
            for r, name, k in zip(parts, names, powers, strict=True)
        }
        whole = {k: f"CAST({k} AS integer)" for k in powers}
        self.carry({**rests, **whole}, keep)
        self.carry({f"{r}2": f"{r} * {r}" for r in parts}, [*keep, *parts, *powers])
        self.carry({f"{r}4": f"{r}2 * {r}2" for r in parts}, [*keep, *parts, *powers, *(f"{r}2" for r in parts)])
        sums = {}
        for r, name in zip(parts, names, strict=True):
            low = f"(({q[0]} + {q[1]} * {r}) + ({q[2]} + {q[3]} * {r}) * {r}2)"
            high = f"(({q[4]} + {q[5]} * {r}) + ({q[6]} + {q[7]} * {r}) * {r}2 + ({q[8]} + {q[9]} * {r}) * {r}4)"
            sums[name] = f"{number(1.0)} + ({r} + {r}2 * ({low} + {high} * {r}4))"
        self.carry(sums, [*keep, *powers])
        new = {}
        for name, k in zip(names, powers, strict=True):
            factors = []
            for bit in range(EXP_BITS):
                up, down = (number(math.ldexp(1.0, sign * (1 << bit))) for sign in (1, -1))
                factors.append(
                    f"CASE WHEN (abs({k}) & {1 << bit}) = 0 THEN {number(1.0)} WHEN {k} > 0 THEN {up} ELSE {down} END"
                )
            new[name] = f"{name} * ({' * '.join(factors)})"
        self.carry(new, keep)
        return names

    def step_logistic(self, names: list[str], keep: list[str]) -> list[str]:
        """Probabilities of two classes."""
        one, none = self.number(1.0), self.number(0.0)
        raw = names[0]
        self.carry({"raw": raw, "e": f"-abs({raw})"}, keep)
        self.step_exp(["e"], [*keep, "raw"])
        self.carry({"likely": f"{one} / ({one} + e)"}, [*keep, "raw", "e"])
        first = {
            "p0": f"CASE WHEN raw < {none} THEN likely ELSE e * likely END",
            "p1": f"CASE WHEN raw < {none} THEN e * likely ELSE likely END",
        }
        self.carry(first, keep)
        return ["p0", "p1"]

    def step_softmax(self, names: list[str], keep: list[str]) -> list[str]:
        """Probabilities of classes."""
        self.carry({"most": self.most_of(names)}, [*keep, *names])
        self.carry({name: f"{name} - most" for name in names}, keep)
        self.step_exp(names, keep)
        self.carry({"total": self.number(0.0)}, [*keep, *names])
        for first in range(0, len(names), ITEMS_AT_ONCE):
            total = " + ".join(["total", *names[first : first + ITEMS_AT_ONCE]])
            self.carry({"total": total}, [*keep, *names])
        return self.change(names, keep, "{} / total")

    def step_sort(self, names: list[str], keep: list[str]) -> list[str]:
        """Numbers in ascending order: neighbours change places until all are in theirs."""
        for pass_number in range(len(names)):
            new: dict[str, str] = {}
            for at in range(pass_number % 2, len(names) - 1, 2):
                a, b = names[at], names[at + 1]
                new |= {a: f"{self.dialect.least}({a}, {b})", b: f"{self.dialect.greatest}({a}, {b})"}
            if new:
                self.carry(new, [*keep, *names])
        return names

    def step_median(self, names: list[str], keep: list[str], weights: list[float]) -> list[str]:
        """The weighted median: members change places with their neighbours, equal ones do not, until all are sorted."""
        of = [f"w{at}" for at in range(len(names))]
        self.carry(dict(zip(of, map(self.number, weights), strict=True)), [*keep, *names])
        for pass_number in range(len(names)):
            new: dict[str, str] = {}
            for at in range(pass_number % 2, len(names) - 1, 2):
                is_wrong = f"CASE WHEN {names[at]} > {names[at + 1]} THEN"
                for a, b in ((names[at], names[at + 1]), (of[at], of[at + 1])):
                    new |= {a: f"{is_wrong} {b} ELSE {a} END", b: f"{is_wrong} {a} ELSE {b} END"}
            if new:
                self.carry(new, [*keep, *names, *of])
        self.carry({f"b{at}": " + ".join(of[: at + 1]) for at in range(len(of))}, [*keep, *names])
        half = f"{self.number(0.5)} * b{len(of) - 1}"
        whens = "".join(f" WHEN b{at} >= {half} THEN {name}" for at, name in enumerate(names))
        self.carry({"median": f"CASE{whens} END"}, keep)
        return ["median"]


def list_levels_in(column: int, levels: set[int]) -> str:
    """Whether a level is one of these."""
    return f"x{column} IN ({', '.join(map(str, sorted(levels)))})" if levels else f"x{column} < 0"


def name_labels(labels: list[str]) -> list[str]:
    """Names of the columns of probabilities: by class, or by number where two would have one name or none."""
    names = [f"probability_{label}" for label in labels]
    is_fine = len({name.lower() for name in names}) == len(names) and not any("\0" in name for name in names)
    is_fine &= all(map(is_unicode, names))
    is_short = is_fine and max(len(name.encode()) for name in names) <= MOST_NAME
    return names if is_short else [f"probability_{k}" for k in range(len(labels))]


# --- running ------------------------------------------------------------------------------------------------------


def run_sql(
    content: str,
    form: TreeSum,
    cells: list[list[Any]],
    dialect: str = "sqlite",
    table: str | Sequence[str] = "data",
    key: Sequence[str] = (),
) -> Scored:
    """Put the rows into a table in memory, and query it."""
    if dialect == "postgresql":
        raise CannotRunError("there is no PostgreSQL in a process; run the query on rows whose answers are known")
    if len(form.nodes.kind) > MOST_NODES:
        raise CannotRunError(f"a query of {len(form.nodes.kind):,} nodes takes an engine long to read; try it on yours")
    place = (table,) if isinstance(table, str) else tuple(table)
    if len(place) > 2:
        raise CannotRunError("a table in a schema of a database of its own is not made here")
    key = (key,) if isinstance(key, str) else tuple(key)
    used = [form.columns[j].name for j in form.used]
    seen = {column.lower() for column in used}
    others = [column for column in {name.lower(): name for name in key}.values() if column.lower() not in seen]
    columns = [*used, *others] or ["one"]
    rows = [[row[j] for j in form.used] + [i] * (len(columns) - len(used)) for i, row in enumerate(cells)]
    run = run_sqlite if dialect == "sqlite" else run_duckdb
    found = run(content, place, columns, rows, form)
    answers = np.array([row[len(row) - form.n_answers :] for row in found], np.float64)
    classes = None if form.classes is None else [row[len(row) - form.n_answers - 1] for row in found]
    return Scored(answers.reshape(len(cells), form.n_answers), classes)


def run_sqlite(
    content: str, place: tuple[str, ...], columns: list[str], rows: list[list[Any]], _: TreeSum
) -> list[Any]:
    """What SQLite answers."""
    import sqlite3

    if sqlite3.sqlite_version_info < (3, 35):
        raise CannotRunError(f"SQLite {sqlite3.sqlite_version} is older than 3.35")
    connection = sqlite3.connect(":memory:")
    try:
        if len(place) > 1 and place[0].lower() not in ("main", "temp"):  # what others call a schema is a database
            connection.execute(f"ATTACH ':memory:' AS {quote_name(place[0])}")
        table = ".".join(map(quote_name, place))
        names = ", ".join(map(quote_name, columns))
        connection.execute(f"CREATE TABLE {table} ({names})")
        marks = ", ".join("?" * len(columns))
        kept = [[cell_for_sql(cell) for cell in row] for row in rows]
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", kept)  # noqa: S608
        return connection.execute(content).fetchall()
    finally:
        connection.close()


def cell_for_sql(cell: Any) -> Any:
    """A cell that a database can hold; a level that it cannot is missing."""
    if isinstance(cell, str) and not is_unicode(cell):
        return None
    return None if isinstance(cell, int) and abs(cell) >= 1 << 63 else cell


def run_duckdb(
    content: str, place: tuple[str, ...], columns: list[str], rows: list[list[Any]], form: TreeSum
) -> list[Any]:
    """What DuckDB answers."""
    try:
        import duckdb
    except ImportError:
        raise CannotRunError("DuckDB is not installed") from None
    types = {form.columns[j].name: type_in_duckdb(form.columns[j].levels) for j in form.used}
    connection = duckdb.connect(":memory:")
    try:
        table = ".".join(map(quote_name, place))
        declared = ", ".join(f"{quote_name(name)} {types.get(name, 'BIGINT')}" for name in columns)
        try:
            if len(place) > 1:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_name(place[0])}")
            connection.execute(f"CREATE TABLE {table} ({declared})")
        except duckdb.Error as error:
            if len(place) == 1:
                raise
            raise CannotRunError(f"DuckDB keeps the schema {place[0]!r} to itself") from error  # temp, pg_catalog, ...
        lines = [", ".join(literal_for_duckdb(cell) for cell in row) for row in rows]
        values = ", ".join(f"({line})" for line in lines)
        connection.execute(f"INSERT INTO {table} VALUES {values}")  # noqa: S608
        return connection.execute(content).fetchall()
    finally:
        connection.close()


def type_in_duckdb(levels: tuple[Any, ...] | None) -> str:
    """The type of a column."""
    if levels is None or (levels and not isinstance(levels[0], str)):
        return "DOUBLE"
    return "VARCHAR"


def literal_for_duckdb(cell: Any) -> str:
    """A cell as a literal."""
    if cell is None:
        return "NULL"
    if isinstance(cell, str):
        return DIALECTS["duckdb"].text(cell) or "NULL"
    return DIALECTS["duckdb"].number(float(cell))
