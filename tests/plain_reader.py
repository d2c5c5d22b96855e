"""A reader of model files by docs/model-files.md, in plain Python: what the page says, and nothing else.

Slow, without checks, and without a line of the library's, so that it can be compared with it.
"""

import json
import math
import struct
from pathlib import Path

CODES = {
    "F64": "d", "F32": "f", "U64": "Q", "I64": "q", "U32": "I", "I32": "i", "U16": "H", "I16": "h", "U8": "B",
    "I8": "b", "BOOL": "?",
}  # fmt: skip


class File:
    """The predictor of a file as plain dicts, lists and numbers; arrays as lists, of two axes as lists of rows."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        self.header = json.loads(data[8:begin])
        self.payload = data[begin:]
        self.done = []
        self.taken = {}
        model = json.loads(self.header["__metadata__"]["model"])
        self.predictor = self.make(model["predictor"])

    def items(self, name):
        """All items of an array, and its shape."""
        entry = self.header[name]
        first, last = entry["data_offsets"]
        code = CODES[entry["dtype"]]
        n_items = (last - first) // struct.calcsize(code)
        return list(struct.unpack(f"<{n_items}{code}", self.payload[first:last])), entry["shape"]

    def make(self, content):
        if isinstance(content, list):
            return [self.make(item) for item in content]
        if not isinstance(content, dict):
            return content
        kind = content["is"]
        parts = {name: content[name] for name in sorted(content) if name != "is"}
        if kind == "same":
            return self.done[parts["as"]]
        if kind in ("tuple", "float", "number"):
            (plain,) = (parts[name] for name in ("items", "value") if name in parts)
            return float(plain) if kind == "float" else self.make(plain)
        if kind == "array":
            value = self.array(parts)
        elif kind == "labels":
            value = self.make(parts["items"])
            if isinstance(content["items"], dict):  # code points of texts that are all as wide
                width = len(value) // parts["shape"][0]
                texts = [value[i : i + width] for i in range(0, len(value), width)]
                value = ["".join(map(chr, text)).rstrip("\0") for text in texts]
        else:
            value = {name: self.make(part) for name, part in parts.items()}
            value["is"] = kind
        self.done.append(value)
        return value

    def array(self, parts):
        if "name" in parts:
            items, shape = self.items(parts["name"])
        else:
            shape, begin = parts["shape"], self.taken.get(parts["in"], 0)
            self.taken[parts["in"]] = end = begin + math.prod(shape)
            items = self.items(parts["in"])[0][begin:end]
        if len(shape) == 2:
            return [items[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
        return items


def as_float(word):
    return struct.unpack("<d", struct.pack("<Q", word))[0]


def has_bit(words, place, level):
    first = int(place)
    if place == first:
        return bool(words[first + level // 64] >> level % 64 & 1)
    head, mask = words[first : first + 2]
    size = 1 << (head >> 1)
    block = level // 64 // size
    if not mask >> block & 1:
        return bool(head & 1)
    held = (mask & ((1 << block) - 1)).bit_count()
    return bool(words[first + 2 + held * size + level // 64 % size] >> level % 64 & 1)


def answer(predictor, row):
    """What a predictor says of a row of values: a number, or the shares of the classes."""
    return {
        "VotePredictor": vote, "RoundPredictor": add_rounds, "WeightedPredictor": weigh, "TreePredictor": ask_tree,
    }[predictor["is"]](predictor, row)  # fmt: skip


# --- forests --------------------------------------------------------------------------------------------------------


def find_leaf(forest, t, row):
    """The float64 of the leaf of a row in tree t."""
    return as_float(forest["hot"][find_node(forest, t, row)][0])


def find_node(forest, t, row):
    """The leaf of a row in tree t, counted from the first node of the forest."""
    root, n_features = forest["first_node"][t], len(forest["n_levels"])
    node = root
    while True:
        word, link = forest["hot"][node]
        test, child = link & 0xFFFFFFFF, link >> 32
        feature, missing, kind = test >> 4, test >> 2 & 3, test & 3
        if feature == n_features:
            return node
        value = row[feature]
        if math.isnan(value):
            branch = missing
        elif kind == 1:
            branch = int(value > as_float(word))
        else:
            branch = int(not has_bit(forest["subsets"], forest["first_word"][t] + as_float(word), int(value)))
        node = root + child + branch


def tree_weights(forest, t, row):
    """Class weights of the leaf of a row in tree t."""
    code = int(find_leaf(forest, t, row))
    if code < 0:
        return forest["distributions"][forest["first_mixed"][t] - 1 - code]
    return [float(c == code) for c in range(forest["n_classes"])]


def vote(predictor, row):
    forest = predictor["forest"]
    n_trees = len(forest["first_node"]) - 1
    if predictor["classes"] is None:
        return math.fsum(find_leaf(forest, t, row) for t in range(n_trees)) / n_trees
    total = [0.0] * len(predictor["classes"])
    for t in range(n_trees):
        weights = tree_weights(forest, t, row)
        if predictor["is_hard"]:
            weights = [float(c == weights.index(max(weights))) for c in range(len(weights))]
        for c, weight in enumerate(weights):
            total[c] += weight / sum(weights) / n_trees
    return total


def add_rounds(predictor, row):
    raw, forest = list(predictor["start"]), predictor["forest"]
    if forest.get("answers") is not None:
        for t in range(predictor["n_rounds"]):
            raw = [a + b for a, b in zip(raw, forest["answers"][find_node(forest, t, row)], strict=True)]
    else:
        for t in range(predictor["n_rounds"] * len(raw)):
            raw[t % len(raw)] += find_leaf(forest, t, row)
    link = predictor["link"]
    if link == "outputs":
        return [math.ldexp(score, predictor["exponent"]) for score in raw]
    if predictor["classes"] is not None and len(predictor["classes"]) == 1:
        return [1.0]
    if link == "quantiles":
        return [math.ldexp(score, predictor["exponent"]) for score in sorted(raw)]
    if link in ("identity", "log"):
        return math.ldexp(raw[0] if link == "identity" else math.exp(raw[0]), predictor["exponent"])
    return softmax(raw if link == "softmax" else [0.0, raw[0] if link == "logistic" else 2.0 * raw[0]])


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def weigh(predictor, row):
    forest, weights = predictor["forest"], predictor["weights"]
    if predictor["classes"] is None:
        said = sorted((find_leaf(forest, t, row), weight) for t, weight in enumerate(weights))
        below = 0.0
        for value, weight in said:
            below += weight
            if below >= sum(weights) / 2:
                return value
    n_classes = len(predictor["classes"])
    votes = [0.0] * n_classes
    for t, weight in enumerate(weights):
        heaviest = tree_weights(forest, t, row)
        votes[heaviest.index(max(heaviest))] += weight
    total = sum(map(abs, weights))
    if n_classes == 2:
        return softmax([0.0, 2.0 * (votes[1] - votes[0]) / total])
    others = [(v - (total - v) / (n_classes - 1)) / total for v in votes]
    return softmax([decision / (n_classes - 1) for decision in others])


# --- single trees ---------------------------------------------------------------------------------------------------


def branches(tree, node, row):
    """The branches that a row takes at a node: one, or all of them."""
    test, cut = tree["test"][node], tree["threshold"][node]
    feature, missing, kind = test >> 4, test >> 2 & 3, test & 3
    n_levels = tree["n_levels"][feature]
    value = row[feature]
    if not math.isnan(value):
        return [ask(tree["subsets"], kind, cut, value)]
    if tree["surrogates"]:
        sides = tree["surrogates"]
        for s in range(sides["first"][node], sides["first"][node + 1]):
            other, place = sides["test"][s], sides["threshold"][s]
            value = row[other >> 4]
            if math.isnan(value):
                continue
            n_words = -(-tree["n_levels"][other >> 4] // 64)
            if other & 3 == 2 and not has_bit(tree["subsets"], int(place) + n_words, int(value)):
                continue
            return [ask(tree["subsets"], other & 3, place, value) ^ (other >> 2 & 3)]
    if missing == 3:
        return list(range(n_levels if kind == 3 else 2))
    return [int(cut) if kind == 3 else missing]


def ask(subsets, kind, cut, value):
    if kind == 3:
        return int(value)
    return int(value > cut) if kind == 1 else int(not has_bit(subsets, cut, int(value)))


def leaves_of(tree, row):
    """Leaves that a row ends in, and the share of it that each takes."""
    waiting, found = [(0, 1.0, None)], []
    while waiting:
        node, share, parent = waiting.pop()
        if tree["test"][node] & 3 == 0:
            found.append((node, share, parent))
            continue
        taken = branches(tree, node, row)
        for branch in taken:
            child = tree["first_child"][node] + branch
            part = share if len(taken) == 1 else share * tree["weight"][child] / tree["weight"][node]
            waiting.append((child, part, node))
    return found


def class_weights(tree, node):
    """Class weights of a node: of a leaf its own, else those of the leaves below it."""
    if tree["test"][node] & 3:
        below = [class_weights(tree, child) for child in children(tree, node) if tree["n_rows"][child]]
        return [sum(column) for column in zip(*below, strict=True)]
    code = int(tree["threshold"][node])
    if code < 0:
        return tree["distributions"][-1 - code]
    return [tree["weight"][node] * (c == code) for c in range(tree["n_classes"])]


def children(tree, node):
    test = tree["test"][node]
    n_levels = tree["n_levels"][test >> 4]
    if test & 3 == 3:
        n = n_levels + (test >> 2 & 3 != 3 and int(tree["threshold"][node]) == n_levels)
    else:
        n = 3 if test >> 2 & 3 == 2 else 2
    return range(tree["first_child"][node], tree["first_child"][node] + n)


def ask_tree(predictor, row):
    tree, smoothing = predictor["tree"], predictor["smoothing"]
    ends = leaves_of(tree, row)
    if predictor["classes"] is None:
        return sum(share * leaf_value(tree, node, row) for node, share, _ in ends)
    total = [0.0] * tree["n_classes"]
    for node, share, parent in ends:
        weights = class_weights(tree, node)
        if smoothing is not None:
            if tree["n_rows"][node] == 0:
                weights = class_weights(tree, parent)
            root = class_weights(tree, 0)
            more = [1.0 if smoothing == "laplace" else smoothing * weight / sum(root) for weight in root]
            weights = [a + b for a, b in zip(weights, more, strict=True)]
        for c, weight in enumerate(weights):
            total[c] += share * weight / sum(weights)
    return total


def leaf_value(tree, node, row):
    value = tree["threshold"][node]
    linear = tree["linear"]
    if linear:
        for term in range(linear["first"][node], linear["first"][node + 1]):
            x = row[linear["feature"][term]]
            if not math.isnan(x):
                value += linear["coefficient"][term] * (x - linear["fill"][term])
    return value
