"""The condition of a branch: an interval or a set of levels, and whether a missing value may come this way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spinney._node_layout import WORD_BITS, unpack_test
from spinney._types import MULTIWAY, SUBSET, THRESHOLD
from spinney.reading.wording import CUT, MAX_LEVELS, apart, feature_name, has_missing, level_names, number, one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

# Whether a missing value comes this way; of two conditions the lesser holds.
NEVER = 0
PARTLY = 1  # as all branches get a share of the row, or as a surrogate decides
ALWAYS = 2


Possible = dict[int, "Condition"]  # by feature tested on the way: the levels that can reach a node, and missing values


@dataclass(frozen=True, eq=False)
class Condition:
    """What must hold of one feature.

    Attributes
    ----------
    feature : int
    low, high : float, optional
        Numbers above `low` and up to `high`; None: no such bound.
    levels : int64 array, optional
        Categories: the levels, ascending. None for numbers.
    missing : int
        Whether a missing value comes this way: NEVER, PARTLY or ALWAYS.
    """

    feature: int
    low: float | None = None
    high: float | None = None
    levels: NDArray[np.int64] | None = None
    missing: int = ALWAYS

    def __and__(self, other: Condition) -> Condition:
        """What must hold for both to hold."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return replace(
            self,
            low=max(lows, default=None),
            high=min(highs, default=None),
            levels=self.levels if other.levels is None else self.levels_among(other.levels),
            missing=min(self.missing, other.missing),
        )

    def levels_among(self, levels: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Those of some levels that satisfy it."""
        if self.levels is None or levels is None:
            return levels
        return self.levels[np.isin(self.levels, levels, assume_unique=True, kind="table")]

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which values (levels as their indices) satisfy it; a missing one only if it always comes this way."""
        is_missing = np.isnan(values)
        if self.levels is not None:
            fits = np.isin(values, self.levels)
        else:
            with np.errstate(invalid="ignore"):
                fits = ~is_missing if self.low is None else values > self.low
                fits = fits if self.high is None else fits & (values <= self.high)
        return np.where(is_missing, self.missing == ALWAYS, fits)

    @property
    def is_bounded(self) -> bool:
        """Whether some known value does not satisfy it, as far as intervals go; a set of levels always counts."""
        has_high = self.high is not None and not np.isposinf(self.high)
        return self.levels is not None or self.low is not None or has_high

    @property
    def has_known(self) -> bool:
        """Whether some known value satisfies it."""
        if self.levels is not None:
            return len(self.levels) > 0
        return self.low is None or (not np.isposinf(self.low) and (self.high is None or self.low < self.high))


def branch_condition(tree: Tree, node: int, branch: int) -> Condition:
    """What the value of a node's feature must be to take a branch."""
    feature, kind = int(tree.feature[node]), int(tree.kind[node])
    own = int(tree.missing_branch[node])
    missing = ALWAYS if branch == own else NEVER
    if tree.spreads_missing[node] or (surrogates_of(tree, node) and branch < 2):
        missing = PARTLY
    is_only_missing = branch == (int(tree.n_levels[feature]) if kind == MULTIWAY else 2)
    none = np.zeros(0, np.int64)
    if kind == THRESHOLD:
        cut = float(tree.threshold[node])
        if is_only_missing:
            return Condition(feature, low=np.inf, missing=missing)
        return Condition(feature, low=cut if branch else None, high=None if branch else cut, missing=missing)
    if is_only_missing:
        return Condition(feature, levels=none, missing=missing)
    if kind == MULTIWAY:
        return Condition(feature, levels=np.array([branch]), missing=missing)
    assert kind == SUBSET
    return Condition(feature, levels=np.flatnonzero(tree.subset(node) == (branch == 0)), missing=missing)


def surrogates_of(tree: Tree, node: int) -> range:
    """Places of a node's surrogates."""
    if tree.surrogates is None:
        return range(0)
    return range(int(tree.surrogates.first[node]), int(tree.surrogates.first[node + 1]))


def surrogate_condition(tree: Tree, place: int, branch: int) -> Condition:
    """What the value of a surrogate's feature must be to take a branch."""
    assert tree.surrogates is not None
    feature, is_reversed, kind = unpack_test(int(tree.surrogates.test[place]))
    cut = float(tree.surrogates.threshold[place])
    is_first = (branch == 0) != bool(is_reversed)
    if kind == THRESHOLD:
        return Condition(feature, low=None if is_first else cut, high=cut if is_first else None, missing=NEVER)
    n_levels = int(tree.n_levels[feature])
    is_set, is_known = (tree.bitset(int(cut) + k * -(-n_levels // WORD_BITS), n_levels) for k in range(2))
    return Condition(feature, levels=np.flatnonzero((is_set == is_first) & is_known), missing=NEVER)


def describe_condition(tree: Tree, condition: Condition, *, most: int = MAX_LEVELS) -> str:
    """A condition in words: `x <= 2.5`, `2 < x <= 5`, `x in {a, b}`, `x = a`, `x is missing`, ... `or missing`.

    Missing values are mentioned only where the training rows had some.
    """
    name = feature_name(tree, condition.feature)
    if not condition.has_known and condition.missing != NEVER:
        return f"{name} is missing"
    text = f"{name} is known"
    if condition.is_bounded:
        text = describe_values(tree, condition, name, most)
    has_mention = condition.missing == ALWAYS and has_missing(tree, condition.feature)
    return f"{text} or missing" if has_mention else text


def describe_values(tree: Tree, condition: Condition, name: str, most: int) -> str:
    """The known values of a condition."""
    if condition.levels is not None:
        return f"{name} {one_of(level_names(tree, condition.feature, condition.levels, most))}"
    low, high = condition.low, condition.high
    if low is None:
        assert high is not None
        return f"{name} <= {number(high, CUT)}"
    if high is None or np.isposinf(high):
        return f"{name} > {number(low, CUT)}"
    texts = apart(low, high)
    return f"{texts[0]} < {name} <= {texts[1]}"


def narrow(tree: Tree, node: int, branch: int, possible: Possible) -> tuple[Condition, Possible]:
    """The condition of a branch on the values that can reach its node, and what can then be met below.

    Levels that a test above has sent elsewhere are left out, and missing values that cannot come so far; the bounds of
    numbers stay those of the test.
    """
    condition = branch_condition(tree, node, branch)
    feature = condition.feature
    before = possible.get(feature)
    if before is not None:
        levels = before.levels_among(condition.levels) if tree.kind[node] == SUBSET else condition.levels
        missing = NEVER if before.missing == NEVER else condition.missing
        left = replace(condition, levels=levels, missing=missing)
        condition = (
            left if left.has_known or left.missing != NEVER else condition
        )  # no value comes here: keep the test's own
    return condition, {**possible, feature: condition}


def narrow_surrogate(tree: Tree, place: int, branch: int, possible: Possible) -> Condition:
    """The condition of a surrogate on the levels that can reach its node."""
    condition = surrogate_condition(tree, place, branch)
    before = possible.get(condition.feature)
    if before is None:
        return condition
    left = replace(condition, levels=before.levels_among(condition.levels))
    return left if left.has_known else condition
