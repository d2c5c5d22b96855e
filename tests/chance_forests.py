"""Forests that no grower made: thresholds and subsets by chance, and rows that meet them."""

from __future__ import annotations

import random

import numpy as np

from hand_trees import packed
from spinney._types import SUBSET, THRESHOLD
from spinney.tree.forest import join_trees
from spinney.tree.structure import Tree

N_LEVELS = (0, 0, 3, 64, 130)  # of the features: words of subsets end within, at and behind a word
NUMBERS = (-np.inf, -1e300, -1.5, -0.1, 0.0, 0.1, 1.0, 1.0 + 2.0**-30, 3.0, np.inf)


class Chance:
    """Trees by chance, of thresholds and subsets, with missing values in either branch or one of their own."""

    def __init__(self, seed, n_classes, *, has_subsets=False, n_sides=3, max_depth=7):
        self.random = random.Random(seed)
        self.n_classes = n_classes
        self.n_sides = n_sides
        self.max_depth = max_depth
        self.features = range(len(N_LEVELS) if has_subsets else 2)

    def tree(self):
        nodes, subsets, mixed = [None], [], []
        queue = [(0, self.random.randint(0, self.max_depth))]
        while queue:
            at, depth = queue.pop(self.random.randrange(len(queue)))
            if depth == 0 or self.random.random() < 0.2:
                nodes[at] = (0, 0, self.leaf(mixed))
                continue
            feature, missing = self.random.choice(self.features), self.random.randrange(self.n_sides)
            kind, argument = THRESHOLD, self.random.choice(NUMBERS)
            if N_LEVELS[feature]:
                kind, argument = SUBSET, len(subsets)
                bits = self.random.getrandbits(N_LEVELS[feature])
                subsets += [(bits >> 64 * k) & (2**64 - 1) for k in range(-(-N_LEVELS[feature] // 64))]
            nodes[at] = (packed(feature, missing, kind), len(nodes), float(argument))
            n_branches = 3 if missing == 2 else 2
            queue += [(len(nodes) + b, depth - 1) for b in range(n_branches)]
            nodes += [None] * n_branches
        test, child, threshold = zip(*nodes, strict=True)
        nothing = np.zeros(len(nodes))
        return Tree(
            test=np.array(test, np.uint32),
            first_child=np.array(child, np.int32),
            threshold=np.array(threshold),
            subsets=np.array(subsets, np.uint64),
            n_rows=nothing.astype(np.uint32),
            weight=nothing,
            impurity=nothing,
            impurity_exponent=0,
            distributions=np.array(mixed).reshape(len(mixed), self.n_classes),
            n_classes=self.n_classes,
            n_levels=np.array(N_LEVELS, np.int32),
        )

    def leaf(self, mixed):
        if not self.n_classes:
            return self.random.choice([-0.0, 0.1, 1e-20, -1e18, self.random.gauss(0, 1)])
        if self.n_classes == 1 or self.random.random() < 0.5:
            return float(self.random.randrange(self.n_classes))
        mixed.append([self.random.random() + (k == 0) for k in range(self.n_classes)])
        return float(-len(mixed))

    def forest(self, n_trees):
        forest = join_trees(self.tree() for _ in range(n_trees)).compact()
        forest.check()
        return forest

    def rows(self, n, dtype):
        columns = [
            [np.nan if self.random.random() < 0.2 else self.value(n_levels) for n_levels in N_LEVELS] for _ in range(n)
        ]
        with np.errstate(over="ignore"):
            return np.array(columns).astype(dtype)

    def value(self, n_levels):
        return self.random.randrange(n_levels) if n_levels else self.random.choice([*NUMBERS, self.random.gauss(0, 1)])
