"""What people call the features, levels, classes and tests of a trace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney._types import LEAF, MULTIWAY, SUBSET
from spinney.reading.wording import class_name, feature_name, level_name, level_names, number, one_of
from spinney.tree.split_measures import impurity, share_of, weigh_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tracing.candidates import Tests
    from spinney.tracing.replay import NodeRecord
    from spinney.tree.split_measures import Sums
    from spinney.tree.structure import Tree

MAX_LEVELS = 8  # of a set that are spelled out
MAX_PATH = 50  # tests on the way to a node that are shown


class Wording:
    """Names of a tree.

    Parameters
    ----------
    tree : Tree
    centre, exponent
        Targets of a regression are `centre + x * 2**exponent`.
    """

    def __init__(self, tree: Tree, centre: float = 0.0, exponent: int = 0) -> None:
        self.tree = tree
        self.centre = centre
        self.exponent = exponent

    def feature(self, feature: int) -> str:
        """Name of a feature."""
        return feature_name(self.tree, feature)

    def level(self, feature: int, level: int) -> str:
        """Name of a level."""
        return level_name(self.tree, feature, level)

    def classes(self) -> list[str]:
        """Names of the classes."""
        return [class_name(self.tree, k) for k in range(self.tree.n_classes)]

    def set_of(self, feature: int, levels: NDArray[np.bool_]) -> str:
        """The condition of a set of levels, shortened where it is large."""
        return one_of(level_names(self.tree, feature, np.flatnonzero(levels), MAX_LEVELS))

    def test(self, tests: Tests, k: int, branches: list[str] | None = None) -> str:
        """A test in words; "" where there is none. branches: the conditions of its branches, where they are known."""
        name = self.feature(tests.feature)
        if tests.kind == LEAF:
            return ""
        return name if tests.kind == MULTIWAY else f"{name} {(branches or self.branches(tests, k))[0]}"

    def branches(self, tests: Tests, k: int) -> list[str]:
        """The condition of each branch; where there is a branch for each level, the name of the level."""
        if tests.kind == LEAF:
            return ["all"]
        n = count_branches(tests, k)
        missing = int(tests.missing[k])
        if tests.kind == MULTIWAY:
            n_levels = int(self.tree.n_levels[tests.feature])
            return [self.level(tests.feature, b) if b < n_levels else "missing" for b in range(n)]
        if tests.kind == SUBSET:
            left = tests.levels[k]
            right = tests.present & ~left
            texts = [self.set_of(tests.feature, left), self.set_of(tests.feature, right)]
            if not right.any():
                texts = ["is known", "is missing"]
                missing = -1
        elif tests.cuts[k] == math.inf:
            texts, missing = ["is known", "is missing"], -1
        else:
            cut = number(float(tests.cuts[k]), 1e-9)
            texts = [f"<= {cut}", f"> {cut}"]
        if n == 3:
            return [*texts, "is missing"]
        return [f"{text} or missing" if b == missing else text for b, text in enumerate(texts)]

    def paths(self, records: list[NodeRecord]) -> dict[int, str]:
        """How a row comes to each node, in words; of a long way, its end."""
        paths: dict[int, tuple[str, ...]] = {0: ()}
        for record in records:
            if record.chosen is None:
                continue
            feature, k = record.chosen
            tests = record.tests[feature]
            first = int(self.tree.first_child[record.node])
            above = paths[record.node]
            if len(above) > MAX_PATH:
                above = ("...", *above[2:])
            for b, text in enumerate(self.branches(tests, k)):
                condition = f"= {text}" if tests.kind == MULTIWAY and text != "missing" else text
                condition = "is missing" if tests.kind == MULTIWAY and text == "missing" else condition
                paths[first + b] = (*above, f"{self.feature(feature)} {condition}")
        return {node: " and ".join(path) if node else "all rows" for node, path in paths.items()}

    def counts(self, record: NodeRecord, sums: Sums) -> NDArray[np.float64]:
        """For each vector of sums, the weight of each class, or mean and standard deviation."""
        if self.tree.n_classes:
            return sums[..., 1:]
        mean = share_of(sums[..., 2], sums[..., 1]) + record.centre
        with np.errstate(over="ignore"):
            return np.stack(
                [self.centre + np.ldexp(mean, self.exponent), np.ldexp(impurity(sums, "sdr"), self.exponent)], axis=-1
            )

    def summary(self, record: NodeRecord) -> str:
        """Rows of a node, and what they are."""
        n = int(record.sums[0])
        rows = f"{n} row" if n == 1 else f"{n} rows"
        weight = float(weigh_sums(record.sums, self.tree.n_classes))
        if weight != n:
            rows += f" of weight {number(weight)}"
        if not n:
            return rows
        if not self.tree.n_classes:
            mean, deviation = self.counts(record, record.sums).tolist()
            return f"{rows}, mean {number(mean)}, standard deviation {number(deviation)}"
        held = [(name, w) for name, w in zip(self.classes(), record.sums[1:], strict=True) if w > 0.0]
        shown = [f"{name} {number(float(w))}" for name, w in held[:6]]
        return f"{rows}: {', '.join(shown)}" + (f", {len(held) - 6} more" if len(held) > 6 else "")


def count_branches(tests: Tests, k: int) -> int:
    """Branches of a test, not counting a third one without rows; a branch for each level: all."""
    n = tests.branches.shape[1]
    return n if tests.kind in {LEAF, MULTIWAY} or n < 3 or tests.branches[k, 2, 0] > 0 else 2
