"""A reader of the PMML that Spinney writes, by the words of the standard: trees, sums, means, chains, regressions."""

import math
import xml.etree.ElementTree as ET

SPACE = "{http://www.dmg.org/PMML-4_4}"
PREDICATES = {SPACE + name for name in ("True", "SimplePredicate", "SimpleSetPredicate", "CompoundPredicate")}
MODELS = {SPACE + name for name in ("TreeModel", "MiningModel", "RegressionModel")}


class PmmlReader:
    """Answers rows, as dicts, from a document."""

    def __init__(self, text):
        self.root = ET.fromstring(text)
        self.fields = {}
        for field in self.root.find(SPACE + "DataDictionary"):
            values = [value.get("value") for value in field]
            self.fields[field.get("name")] = field.get("dataType"), field.get("optype"), values
        (self.model,) = [part for part in self.root if part.tag in MODELS]

    def ask(self, row):
        """The number of a row, or a dict of the probabilities of classes."""
        return self.answer(self.model, {name: self.read(name, cell) for name, cell in row.items()})

    def read(self, name, cell):
        """A cell as its field has it: text, or a number; None where it is missing, or invalid."""
        if name not in self.fields or cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return None
        _, kind, values = self.fields[name]
        if kind == "continuous":
            return float(cell)
        known = {self.parse(name, value): value for value in values}
        return None if cell not in known else self.parse(name, known[cell])

    def parse(self, name, text):
        """A value of a field that is written as text."""
        kind = self.fields[name][0] if name in self.fields else "double"
        if kind == "boolean":
            return text == "true"
        return text if kind == "string" else float(text.replace("INF", "inf"))

    def answer(self, model, row):
        if model.tag == SPACE + "TreeModel":
            return self.walk(model, row)
        if model.tag == SPACE + "RegressionModel":
            return self.regress(model, row)
        segmentation = model.find(SPACE + "Segmentation")
        parts = [next(part for part in segment if part.tag in MODELS) for segment in segmentation]
        method = segmentation.get("multipleModelMethod")
        if method == "modelChain":
            row = dict(row)
            for part in parts:
                found = self.answer(part, row)
                for output in part.findall(f"{SPACE}Output/{SPACE}OutputField"):
                    row[output.get("name")] = found
            return found
        said = [self.answer(part, row) for part in parts]
        if isinstance(said[0], dict):
            assert method == "average"
            return {label: sum(answer[label] for answer in said) / len(said) for label in said[0]}
        total = 0.0
        for value in said:
            total += value
        total = total / len(said) if method == "average" else total
        for target in model.findall(f"{SPACE}Targets/{SPACE}Target"):
            total *= float(target.get("rescaleFactor"))
        return total

    def regress(self, model, row):
        method = model.get("normalizationMethod")
        scores = {}
        for table in model.findall(SPACE + "RegressionTable"):
            terms = (float(t.get("coefficient")) * row[t.get("name")] for t in table)
            scores[table.get("targetCategory")] = sum(terms, float(table.get("intercept")))
        if method == "exp":
            return math.exp(scores[None])
        if method == "logit":
            (second, score), (first, _) = scores.items()
            return {second: 1.0 / (1.0 + math.exp(-score)), first: 1.0 / (1.0 + math.exp(score))}
        assert method == "softmax"
        most = max(scores.values())
        parts = {label: math.exp(score - most) for label, score in scores.items()}
        return {label: part / sum(parts.values()) for label, part in parts.items()}

    def walk(self, model, row):
        assert model.get("missingValueStrategy") == "defaultChild"
        node = model.find(SPACE + "Node")
        while children := node.findall(SPACE + "Node"):
            node = self.step(node, children, row)
        shares = node.findall(SPACE + "ScoreDistribution")
        if shares:
            return {share.get("value"): float(share.get("probability")) for share in shares}
        return float(node.get("score"))

    def step(self, node, children, row):
        for child in children:
            (predicate,) = [part for part in child if part.tag in PREDICATES]
            holds = self.holds(predicate, row)
            if holds is None:
                (default,) = [other for other in children if other.get("id") == node.get("defaultChild")]
                return default
            if holds:
                return child
        raise AssertionError("no child")

    def holds(self, predicate, row):
        """True, false, or None where it is not known."""
        if predicate.tag == SPACE + "True":
            return True
        if predicate.tag == SPACE + "CompoundPredicate":
            assert predicate.get("booleanOperator") == "surrogate"
            return next((holds for holds in (self.holds(part, row) for part in predicate) if holds is not None), None)
        name = predicate.get("field")
        value, operator = row[name], predicate.get("operator")
        if operator == "isMissing":
            return value is None
        if value is None:
            return None
        if predicate.tag == SPACE + "SimpleSetPredicate":
            array = predicate.find(SPACE + "Array")
            items = [self.parse(name, item) for item in split_array(array.text or "", array.get("type"))]
            assert len(items) == int(array.get("n"))
            return (value in items) == (predicate.get("booleanOperator") == "isIn")
        other = self.parse(name, predicate.get("value"))
        return {"equal": value == other, "lessOrEqual": value <= other, "greaterThan": value > other}[operator]


def split_array(text, kind):
    """The items of an array: between quotes, in which backslashes escape."""
    if kind != "string":
        return text.split()
    items, item, is_open, at = [], "", False, 0
    while at < len(text):
        if is_open and text[at] == "\\":
            at += 1
            item += text[at]
        elif text[at] == '"':
            if is_open:
                items.append(item)
                item = ""
            is_open = not is_open
        elif is_open:
            item += text[at]
        at += 1
    return items
