"""Trees that no grower made: every kind of test and every way of missing values, by chance or by hand."""

from __future__ import annotations

import math
import random

import numpy as np

from spinney._node_layout import pack_test
from spinney._types import EVERY_BRANCH, MULTIWAY, SUBSET, THRESHOLD
from spinney.tree.linear import LinearLeaves
from spinney.tree.structure import Legend, Tree
from spinney.tree.surrogates import Surrogates


def packed(feature, missing, kind):
    return pack_test(feature, missing, kind)


def assemble(nodes, n_classes, n_levels, legend=None, more_subsets=(), **sides):
    """A tree from nodes: dicts of test, first_child, threshold (or `mixed`: weights of classes), n_rows, weight."""
    subsets, distributions, thresholds = [], [], []
    for node in nodes:
        cut = node.get("threshold", 0.0)
        if "subset" in node:
            cut = len(subsets)
            subsets.append(node["subset"])
        if "mixed" in node:
            distributions.append(node["mixed"])
            cut = -len(distributions)
        thresholds.append(float(cut))
    tree = Tree(
        test=np.array([node.get("test", 0) for node in nodes], np.uint32),
        first_child=np.array([node.get("first_child", 0) for node in nodes], np.int32),
        threshold=np.array(thresholds),
        subsets=np.array([*subsets, *more_subsets], np.uint64),
        n_rows=np.array([node["n_rows"] for node in nodes], np.uint32),
        weight=np.array([node.get("weight", node["n_rows"]) for node in nodes], np.float64),
        impurity=np.array([node.get("impurity", 0.0) for node in nodes]),
        impurity_exponent=0,
        distributions=np.array(distributions, np.float64).reshape(len(distributions), n_classes or 1),
        n_classes=n_classes,
        n_levels=np.array(n_levels, np.int32),
        legend=legend,
        **sides,
    )
    tree.check()
    return tree


WEATHER = Legend(
    ("outlook", "humidity", "wind"),
    (("foggy", "overcast", "rainy", "sunny"), None, ("strong", "weak")),
    ("no", "yes"),
    (True, False, False),
)


def weather_tree(legend=WEATHER):
    """A branch for each outlook, of which none was foggy; rows without one take every branch."""
    humidity = {"test": packed(1, EVERY_BRANCH, THRESHOLD), "first_child": 7, "threshold": 77.5, "impurity": 0.9}
    return assemble(
        [
            {"test": packed(0, EVERY_BRANCH, MULTIWAY), "first_child": 1, "n_rows": 14, "impurity": 0.9},
            {"mixed": [5.0, 9.0], "n_rows": 0},
            {"threshold": 1, "n_rows": 5, "weight": 4.5},
            {"test": packed(2, EVERY_BRANCH, MULTIWAY), "first_child": 5, "n_rows": 5, "weight": 4.5, "impurity": 0.9},
            {**humidity, "n_rows": 5},
            {"threshold": 0, "n_rows": 2},
            {"threshold": 1, "n_rows": 3, "weight": 2.5},
            {"threshold": 1, "n_rows": 2},
            {"threshold": 0, "n_rows": 3},
        ],
        2,
        [4, 0, 2],
        legend,
    )  # fmt: skip


def surrogate_tree():
    """A threshold with three surrogates, one of them reversed, one a subset."""
    surrogates = Surrogates(
        first=np.array([0, 3, 3, 3], np.int32),
        test=np.array([packed(1, 1, THRESHOLD), packed(2, 0, SUBSET), packed(3, 0, THRESHOLD)], np.uint32),
        threshold=np.array([2.5, 0.0, 7.0]),
        agree=np.array([0.9, 0.8, 0.7]),
        adjusted=np.array([0.8, 0.6, 0.4]),
        improve=np.array([3.0, 0.0, 0.0]),
    )
    legend = Legend(
        ("g2", "grade", "ploidy", "age"), (None, None, ("a", "b", "c"), None), None, (True, False, False, False)
    )
    return assemble(
        [
            {"test": packed(0, 0, THRESHOLD), "first_child": 1, "threshold": 13.2, "n_rows": 10, "impurity": 4.0},
            {"threshold": 1.5, "n_rows": 6},
            {"threshold": 5.5, "n_rows": 4},
        ],
        0,
        [0, 0, 3, 0],
        legend,
        more_subsets=[0b011, 0b111],
        surrogates=surrogates,
    )  # fmt: skip


def chain(depth, kind=THRESHOLD, n_classes=2, missing=0):
    """A tree of one path: the second branch of every test is the next test. Subsets send one level away at a time."""
    n_nodes, inner = 2 * depth + 1, np.arange(0, 2 * depth, 2)
    leaves = np.setdiff1d(np.arange(n_nodes), inner)
    n_levels = {THRESHOLD: 0, MULTIWAY: 2, SUBSET: depth + 1}[kind]
    n_words = -(-n_levels // 64)
    level = np.arange(depth)
    subsets = np.zeros((depth if kind == SUBSET else 0, n_words), np.uint64)
    if kind == SUBSET:
        subsets[level, level // 64] = np.uint64(1) << (level % 64).astype(np.uint64)
    threshold = np.zeros(n_nodes)
    threshold[inner] = {THRESHOLD: level + 0.5, MULTIWAY: 0, SUBSET: level * n_words}[kind]
    threshold[leaves] = np.arange(depth + 1) % 2 if n_classes else np.arange(depth + 1)
    test, first_child, n_rows = np.zeros(n_nodes, np.uint32), np.zeros(n_nodes, np.int32), np.ones(n_nodes, np.uint32)
    test[inner], first_child[inner], n_rows[inner] = packed(0, missing, kind), inner + 1, np.arange(depth + 1, 1, -1)
    levels = tuple(f"l{k}" for k in range(n_levels)) if n_levels else None
    tree = Tree(
        test=test,
        first_child=first_child,
        threshold=threshold,
        subsets=subsets.reshape(-1),
        n_rows=n_rows,
        weight=n_rows.astype(np.float64),
        impurity=np.where(test > 0, 0.5, 0.0),
        impurity_exponent=0,
        distributions=np.zeros((0, n_classes)),
        n_classes=n_classes,
        n_levels=np.array([n_levels], np.int32),
        legend=Legend(("x",), (levels,), ("no", "yes")[:n_classes] or None, (missing == EVERY_BRANCH,)),
    )
    tree.check()
    return tree


def linear_tree():
    """Two leaves: one of five terms, one of one; where every feature is 0 they say 1 and -7."""
    linear = LinearLeaves(
        first=np.array([0, 0, 5, 6]),
        feature=np.array([0, 1, 2, 3, 4, 1], np.int32),
        coefficient=np.array([0.5, -1.25, 3.0, 4.0, 5.0, 2.0]),
        fill=np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
    )
    return assemble(
        [
            {"test": packed(0, 1, THRESHOLD), "first_child": 1, "threshold": 1.0, "n_rows": 9, "impurity": 1.0},
            {"threshold": 481.0, "n_rows": 4},
            {"threshold": 113.0, "n_rows": 5},
        ],
        0,
        [0] * 5,
        linear=linear,
    )


class ChanceGrower:
    """Grow on a `strategies.SmallTable` by tests drawn by chance: of every kind, with every way of missing values."""

    def __init__(self, table, seed):
        self.table = table
        self.random = random.Random(seed)
        self.n_classes = table.n_classes or 0
        self.spreads = bool(table.n_classes) and self.random.random() < 0.5
        self.nodes = []

    def grow(self, max_depth=4):
        weights = self.table.weights or [1.0] * self.table.n_rows
        rows = [(i, w) for i, w in enumerate(weights) if w > 0]
        self.nodes = [{}]
        queue = [(0, rows, None, 0)]
        while queue:
            at, rows, parent, depth = queue.pop()
            self.nodes[at] |= {"n_rows": len(rows), "weight": math.fsum(w for _, w in rows)}
            branches = self.split(at, rows) if depth < max_depth and rows else None
            if branches is None:
                self.nodes[at] |= self.leaf(rows or parent)
                continue
            self.nodes[at]["first_child"] = len(self.nodes)
            queue += [(len(self.nodes) + b, part, rows, depth + 1) for b, part in enumerate(branches)]
            self.nodes += [{} for _ in branches]
        for node in self.nodes:
            node["impurity"] = float(node["n_rows"] > 0)  # no split raises it
        return assemble(self.nodes, self.n_classes, self.table.n_levels)

    def leaf(self, rows):
        y = self.table.y
        if not self.n_classes:
            total = math.fsum(w for _, w in rows)
            return {"threshold": math.fsum(w * y[i] for i, w in rows) / total}
        weights = [math.fsum(w for i, w in rows if y[i] == k) for k in range(self.n_classes)]
        held = [k for k, w in enumerate(weights) if w > 0]
        return {"threshold": held[0]} if len(held) == 1 else {"mixed": weights}

    def split(self, at, rows):
        """Draw a test and part the rows; None where the draw does not part them."""
        feature = self.random.randrange(self.table.n_features)
        column, n_levels = self.table.columns[feature], self.table.n_levels[feature]
        known = [(i, w) for i, w in rows if not math.isnan(column[i])]
        lost = [(i, w) for i, w in rows if math.isnan(column[i])]
        if not known:
            return None
        kind = self.random.choice([MULTIWAY, SUBSET]) if n_levels and not self.spreads else MULTIWAY
        kind = kind if n_levels else THRESHOLD
        node = {"threshold": 0}
        if kind == MULTIWAY:
            n_known = n_levels
            branch_of = {i: int(column[i]) for i, _ in known}
        else:
            n_known = 2
            cut = column[self.random.choice(known)[0]]
            chosen = {k for k in range(n_levels) if self.random.random() < 0.5}
            node = {"threshold": cut} if kind == THRESHOLD else {"subset": sum(1 << k for k in chosen)}
            branch_of = {
                i: int(not (column[i] <= cut)) if kind == THRESHOLD else int(column[i] not in chosen) for i, _ in known
            }
        parts = [[row for row in known if branch_of[row[0]] == b] for b in range(n_known)]
        if n_known < 2 or (kind != MULTIWAY and not all(parts)):
            return None
        missing = EVERY_BRANCH
        if self.spreads:
            totals = [math.fsum(w for _, w in part) for part in parts]
            for part, total in zip(parts, totals, strict=True):
                if total > 0:
                    part += [(i, w * total / math.fsum(totals)) for i, w in lost]
        else:
            missing = self.random.randrange(n_known + bool(lost))
            if missing == n_known:
                parts.append([])
            parts[missing] += lost
        if kind == MULTIWAY:
            node["threshold"] = 0 if missing == EVERY_BRANCH and self.spreads else missing
        packed_missing = EVERY_BRANCH if self.spreads else 0 if kind == MULTIWAY else missing
        self.nodes[at] |= {**node, "test": packed(feature, packed_missing, kind)}
        return parts


def chain_of_features(n_tests, n_features):
    """A tree of numbers as deep as it has tests: each takes its feature in turn, and cuts one row off."""
    nodes = []
    for k in range(n_tests):
        cut = 1.0 - 2.0 * (k + 1) / (n_tests + 1)
        n_rows = n_tests + 1 - k
        nodes.append({"test": packed(k % n_features, 0, THRESHOLD), "threshold": cut, "n_rows": n_rows})
        nodes.append({"threshold": float((k * 37) % 101), "n_rows": 1})
    order = [nodes[0]]  # children stand next to each other: the rest of the chain, then the leaf
    for k in range(n_tests):
        order[2 * k - 1 if k else 0]["first_child"] = 2 * k + 1
        order.append(nodes[2 * k + 2] if k + 1 < n_tests else {"threshold": 50.0, "n_rows": 1})
        order.append(nodes[2 * k + 1])
    return assemble(order, 0, [0] * n_features)
