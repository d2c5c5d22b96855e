"""The tests that one feature offers at a node: all thresholds of a number, the best subset or all levels of a category.

The rows of a node with one code make a *bin*; tests are sums over bins. Nothing here depends on how a tree was
grown but for the `SplitRules`, so the same tables serve CART, ID3 and C4.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import log2_one
from spinney._jit import interpreted
from spinney._types import EXHAUSTIVE_LEVELS, LEAF, MULTIWAY, SUBSET, THRESHOLD
from spinney.table.coding import midpoints
from spinney.tracing.category_chance import level_luck
from spinney.tree.split_measures import Worth, impurity, mean_impurity, measure, share_of, weigh_sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.tracing.category_chance import LevelLuck
    from spinney.tree.split_measures import Sums

    FindSubset = Callable[[float], tuple[NDArray[np.bool_], int] | None]

MOST_CUTS = 64  # of a feature that are all kept; of more, the best one
DENSE = 4  # codes per row up to which bins are found by counting instead of sorting
TIE = 2.0**-46  # impurities that differ by a smaller share are equal: twice the kernels', sums are floats here
TIE_SCORE = 1e-12  # scores that differ by a smaller share of the node's impurity are equal
MEAN_SLACK = 2.0**-40  # means of levels that differ by less are equal: ordered by level
GAIN_SLACK = 2.0**-40  # by which a test may miss min_impurity_decrease: sums here are rounded otherwise than in growing
CHANCE = "gains no more than its levels may by chance"
C45_SHARE, C45_MOST = 0.1, 25.0  # least weight of a side of a threshold: a tenth of the mean class, at most 25 (J48)
C45_SLACK = interpreted().common.ties.C45_SMALL  # weights and gains that differ by less are equal to J48


@dataclass(frozen=True)
class SplitRules:
    """By which rules a tree was grown.

    Attributes
    ----------
    criterion : {"gini", "entropy", "misclassification", "squared_error", "sdr", "poisson"}
    search : {"binary", "multiway"}
        Whether a category is tested by a subset of its levels or by a branch for each.
    choice : {"decrease", "gain_ratio", "guarded_ratio", "c45"}
        What the best test has most of: decrease of the criterion; gain ratio; gain ratio among the features' tests of
        largest gain, if that is at least the average; or this by all the rules of C4.5.
    missing : {"learned", "branch", "every", "surrogate"}
        Where rows with a missing value go: to the better branch, to one of their own, or they do not count.
    min_weight_leaf : float
        Least weight of a branch.
    n_try : int
        Features drawn per node; 0 for all.
    monotone : int8 (n_features,), optional
    cat_penalty : float
        How much of what levels gain by chance is taken off a subset of them.
    free_levels : int
        A category of no more levels pays nothing.
    pruning : str
        What may have pruned the grown tree, in words; "" for nothing.
    """

    criterion: str
    search: str = "binary"
    choice: str = "decrease"
    missing: str = "learned"
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    min_target_std: float = 0.0
    n_try: int = 0
    has_random_ties: bool = False
    monotone: NDArray[np.int8] | None = None
    cat_penalty: float = 0.0
    free_levels: int = 0
    pruning: str = ""

    def penalty_of(self, n_levels: int) -> float:
        """How much of what levels gain by chance a category of so many pays."""
        return 0.0 if n_levels <= self.free_levels else self.cat_penalty


@dataclass(frozen=True)
class Tests:
    """Tests of one feature at one node.

    Attributes
    ----------
    kind : THRESHOLD, SUBSET, MULTIWAY, or LEAF where the feature offers no test.
    cuts : float64 (n_tests,)
        Thresholds; inf sets known values against missing ones.
    last : int64 (n_tests,)
        Highest code of branch 0.
    missing : int64 (n_tests,)
        Branch of the rows with a missing value; -1 where the node has none, or they are in no branch.
    levels : bool (n_tests, n_levels)
        Levels of branch 0, of those that the node has; (n_tests, 0) but for subsets.
    present : bool (n_levels,)
        Levels that the node has.
    branches : float64 (n_tests, n_branches, n_sums)
    unknown : float
        Weight of the rows that no branch counts.
    worth : Worth
    score : float64 (n_tests,)
        What the tree compares.
    is_admissible : bool (n_tests,)
    reasons : list of str
        Why not, "" otherwise.
    luck : float64 (n_tests,)
        What the levels gain by chance, which is taken off the score.
    penalty : float
        What the gain of each has been lowered by (C4.5).
    best : int
        Position of the best test, of those that are admissible if any is.
    """

    feature: int
    kind: int
    cuts: NDArray[np.float64]
    last: NDArray[np.int64]
    missing: NDArray[np.int64]
    levels: NDArray[np.bool_]
    branches: Sums
    worth: Worth
    score: NDArray[np.float64]
    is_admissible: NDArray[np.bool_]
    reasons: list[str]
    luck: NDArray[np.float64]
    unknown: float = 0.0
    penalty: float = 0.0
    best: int = 0
    present: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def __len__(self) -> int:
        return len(self.cuts)


@dataclass(frozen=True)
class NodeBins:
    """The rows of a node by the code of one feature."""

    codes: NDArray[np.int64]  # (n_bins,) ascending, without missing
    sums: Sums  # (n_bins, n_sums)
    missing: Sums  # (n_sums,)
    n_levels: int  # 0 for a number
    low: NDArray[np.float64]  # lowest and highest value behind each code of the feature, from code 1
    high: NDArray[np.float64]

    @property
    def has_missing(self) -> bool:
        """Whether rows of the node lack the value."""
        return bool(self.missing[0] > 0)

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same value."""
        return len(self.codes) + self.has_missing < 2


def sum_bins(column: NDArray[np.int64], addends: Sums, n_codes: int, n_classes: int) -> tuple[NDArray[np.int64], Sums]:
    """Codes that occur, ascending, and the sums of their rows.

    addends: (2, n_rows): class and weight; or (3, n_rows): weight, weighted target, weighted square.
    """
    if n_codes <= DENSE * len(column) + 64:
        counts = np.bincount(column, minlength=n_codes + 1)
        present = np.flatnonzero(counts)
        place = np.zeros(n_codes + 1, np.int64)
        place[present] = np.arange(len(present))
        bin_of = place[column]
        n_rows = counts[present]
    else:
        present, bin_of, n_rows = np.unique(column, return_inverse=True, return_counts=True)
    n = len(present)
    if n_classes:
        histogram = np.bincount(bin_of * n_classes + addends[0].astype(np.int64), addends[1], n * n_classes)
        return present, np.column_stack([n_rows, histogram.reshape(n, n_classes)])
    return present, np.column_stack([n_rows, *(np.bincount(bin_of, addend, n) for addend in addends)])


def middle_of(bins: NodeBins, *, is_value: bool) -> NDArray[np.float64]:
    """Thresholds between neighbouring bins: the array form of `kernels.common.thresholds.place_threshold`.

    is_value: moved down to the next value of all rows, as C4.5 does.
    """
    cut, following = bins.codes[:-1], bins.codes[1:]
    low, high = bins.high[cut - 1], bins.low[following - 1]
    middle = midpoints(low, high)
    below = middle + C45_SLACK if is_value else middle
    last = np.clip(np.searchsorted(bins.low, below, side="right"), cut, following - 1)  # code at or below it
    value = bins.high[last - 1]
    return np.where(middle > low, value if is_value else np.maximum(middle, value), low)


def every_subset(n: int) -> NDArray[np.bool_]:
    """The subsets of n bins that hold the first, shape (2**(n - 1), n), the whole set last."""
    return (((2 * np.arange(1 << (n - 1)) + 1)[:, None] >> np.arange(n)) & 1).astype(bool)


def level_order(sums: Sums, n_classes: int) -> NDArray[np.int64]:
    """NodeBins by their mean target (share of class 1), equal ones by level."""
    mean = share_of(sums[:, 2], weigh_sums(sums, n_classes))
    order = np.argsort(mean, kind="stable")
    slack = MEAN_SLACK * max(float(np.max(np.abs(mean))), 1e-300)
    rank = np.cumsum(np.diff(mean[order], prepend=mean[order[0]]) > slack)
    return order[np.lexsort((order, rank))]


def first_best(score: NDArray[np.float64], slack: float) -> int:
    """Position of the largest score, the first of those that differ from it by no more than the slack."""
    return int(np.argmax(score >= np.max(score) - slack))


def put(tests: Tests, own: Tests) -> tuple[Tests, int]:
    """Put the tree's own test among those of its feature, and return its position.

    It takes the place of the same test, or of the only one if that is just as good; else it stands behind the others.
    """
    if own.kind == THRESHOLD:
        is_same = (tests.last == own.last[0]) & (np.isinf(tests.cuts) == np.isinf(own.cuts[0]))
    else:
        is_same = np.all(tests.levels == own.levels, axis=1) if tests.kind == own.kind else np.zeros(1, np.bool_)
    n = len(tests)
    order = [*range(n), n]
    at = int(np.argmax(is_same)) if is_same.any() else n
    if at == n and n == 1 and abs(tests.score[0] - own.score[0]) <= TIE_SCORE * float(tests.worth.before[0]):
        at = 0
    if at < n or tests.kind == LEAF:
        at = min(at, n - 1)
        order[at] = n
        order.pop()
    return replace(take(join(tests, own), order), best=at if tests.best == at else tests.best), at


def join(tests: Tests, own: Tests) -> Tests:
    """Tests of one feature end to end; branches that one has not are empty."""
    n_branches = max(tests.branches.shape[1], own.branches.shape[1])
    branches = np.zeros((len(tests) + len(own), n_branches, own.branches.shape[2]))
    branches[: len(tests), : tests.branches.shape[1]] = tests.branches
    branches[len(tests) :, : own.branches.shape[1]] = own.branches
    n_levels = max(tests.levels.shape[1], own.levels.shape[1])
    levels = np.zeros((len(branches), n_levels), np.bool_)
    levels[: len(tests), : tests.levels.shape[1]] = tests.levels
    levels[len(tests) :, : own.levels.shape[1]] = own.levels
    worth = [np.concatenate([getattr(t.worth, name) for t in (tests, own)]) for name in Worth.__dataclass_fields__]
    return replace(
        own,
        cuts=np.concatenate([tests.cuts, own.cuts]),
        last=np.concatenate([tests.last, own.last]),
        missing=np.concatenate([tests.missing, own.missing]),
        levels=levels,
        branches=branches,
        worth=Worth(*worth),
        score=np.concatenate([tests.score, own.score]),
        is_admissible=np.concatenate([tests.is_admissible, own.is_admissible]),
        reasons=tests.reasons + own.reasons,
        luck=np.concatenate([tests.luck, own.luck]),
        present=tests.present,
    )


def take(tests: Tests, keep: list[int]) -> Tests:
    """Some of the tests, in this order."""
    return replace(
        tests,
        cuts=tests.cuts[keep],
        last=tests.last[keep],
        missing=tests.missing[keep],
        levels=tests.levels[keep],
        branches=tests.branches[keep],
        worth=Worth(*(getattr(tests.worth, name)[keep] for name in Worth.__dataclass_fields__)),
        score=tests.score[keep],
        is_admissible=tests.is_admissible[keep],
        reasons=[tests.reasons[k] for k in keep],
        luck=tests.luck[keep],
    )


class NodeScan:
    """Scans of the features of one node.

    Parameters
    ----------
    rules : Rules
    n_classes : int
        0 for numbers.
    total : float64 (n_sums,)
        Sums of the node.
    root_weight : float
        Weight of all rows.
    bounds : (float, float)
        Of the values of branches, where a feature above is monotone.
    exponent : int
        A decrease of the criterion is in units of `2**exponent`.
    row_weight : float
        Weight of an independent row, see `table.fixed_point.weigh_row`.
    """

    def __init__(
        self,
        rules: SplitRules,
        n_classes: int,
        total: Sums,
        root_weight: float,
        bounds: tuple[float, float],
        exponent: int = 0,
        row_weight: float = 1.0,
    ) -> None:
        self.rules = rules
        self.n_classes = n_classes
        self.total = total
        self.weight = float(weigh_sums(total, n_classes))
        self.share = self.weight / root_weight
        self.bounds = bounds
        self.exponent = exponent
        self.row_weight = row_weight

    def scan(
        self, feature: int, bins: NodeBins, find_subset: FindSubset, open_cuts: NDArray[np.int64] | None = None
    ) -> Tests:
        """Tests of a feature.

        find_subset(cat_penalty): the grower's best subset of many levels, for many classes. open_cuts: the highest
        codes below the thresholds that the grower could choose; by default those that the rules allow.
        """
        if bins.is_constant or (len(bins.codes) < 2 and not self.counts_missing):
            return self.no_test(feature, "constant here")
        if not bins.n_levels:
            return self.scan_cuts(feature, bins, open_cuts)
        is_multiway = self.rules.search == "multiway"
        tests = self.scan_levels(feature, bins) if is_multiway else self.scan_subsets(feature, bins, find_subset)
        return replace(tests, present=np.isin(np.arange(bins.n_levels), bins.codes - 1))

    @property
    def counts_missing(self) -> bool:
        """Whether rows with a missing value are in a branch when a test is scored."""
        return self.rules.missing in {"learned", "branch"}

    def no_test(self, feature: int, reason: str) -> Tests:
        """The feature offers nothing."""
        branches = self.total[None, None]
        return Tests(
            feature=feature,
            kind=LEAF,
            cuts=np.full(1, np.nan),
            last=np.zeros(1, np.int64),
            missing=np.full(1, -1),
            levels=np.zeros((1, 0), np.bool_),
            branches=branches,
            worth=self.measure(branches),
            score=np.full(1, -np.inf),
            is_admissible=np.zeros(1, np.bool_),
            reasons=[reason],
            luck=np.zeros(1),
        )

    # --- branches ---

    def part(
        self, left: Sums, bins: NodeBins, roots: NDArray[np.float64] | None = None
    ) -> tuple[Sums, NDArray[np.int64]]:
        """Branches of tests and the branch of the missing rows, given the sums of branch 0, every known row last.

        That last test, known against missing, is there only where missing rows count. roots: of subsets, the sums of
        sqrt(weight) over the levels of branch 0, from which follows what they gain by chance.
        """
        known, missing = left[-1], bins.missing
        if not (bins.has_missing and self.counts_missing):
            left = left[:-1]
            return np.stack([left, known - left], axis=1), np.full(len(left), -1)
        right = known - left
        if self.rules.missing == "branch":
            apart = np.broadcast_to(missing, left.shape).copy()
            right[-1], apart[-1] = missing, 0.0
            return np.stack([left, right, apart], axis=1), np.append(np.full(len(left) - 1, 2), 1)
        to_right, to_left = np.stack([left, right + missing], axis=1), np.stack([left + missing, right], axis=1)
        cost = self.cost(to_right, bins, roots)
        is_left = self.cost(to_left, bins, roots) < cost - TIE * np.abs(self.after(to_right))  # equal: to the right
        is_left[-1] = False
        return np.where(is_left[:, None, None], to_left, to_right), np.where(is_left, 0, 1)

    def part_given(self, is_left: NDArray[np.bool_], missing: int, bins: NodeBins) -> tuple[Sums, NDArray[np.int64]]:
        """Branches of one given test: which bins take branch 0, and the branch of the missing rows."""
        counts = bins.has_missing and self.counts_missing
        branches = np.zeros((1, 3 if counts and missing == 2 else 2, bins.sums.shape[1]))
        branches[0, 0] = bins.sums[is_left].sum(axis=0)
        branches[0, 1] = bins.sums[~is_left].sum(axis=0)
        if counts:
            branches[0, missing] += bins.missing
        return branches, np.full(1, missing if counts else -1)

    def after(self, branches: Sums) -> NDArray[np.float64]:
        """Impurity after tests, (n_tests,)."""
        return mean_impurity(branches, self.rules.criterion, self.n_classes)

    def cost(self, branches: Sums, bins: NodeBins, roots: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Impurity after tests and what they owe to chance, (n_tests,); infinite where chance explains it all."""
        after = self.after(branches)
        level = self.luck_of(bins)
        if roots is None or level is None:
            return after
        luck = level.gain(roots, weigh_sums(branches[:, :2], self.n_classes))
        decrease = impurity(self.total, self.rules.criterion) - after
        return np.where(level.explains(decrease, luck), np.inf, after + luck)

    def luck_of(self, bins: NodeBins) -> LevelLuck | None:
        """What the levels of the node gain by chance."""
        rules = self.rules
        penalty = rules.penalty_of(bins.n_levels)
        return level_luck(self.total, bins.sums, rules.criterion, self.n_classes, penalty, self.row_weight)

    def roots_of(self, bins: NodeBins) -> NDArray[np.float64]:
        """sqrt(weight) of each level."""
        return np.sqrt(weigh_sums(bins.sums, self.n_classes))

    def unknown_of(self, bins: NodeBins) -> float:
        """Weight of the missing rows that no branch counts."""
        return 0.0 if self.counts_missing else float(weigh_sums(bins.missing, self.n_classes))

    # --- kinds of tests ---

    def scan_cuts(self, feature: int, bins: NodeBins, open_cuts: NDArray[np.int64] | None) -> Tests:
        """Every threshold of a number."""
        branches, missing = self.part(np.cumsum(bins.sums, axis=0), bins)
        cuts = np.append(middle_of(bins, is_value=self.rules.choice == "c45"), np.inf)[: len(branches)]
        last = bins.codes[: len(branches)]
        unknown = self.unknown_of(bins)
        return self.judge(feature, THRESHOLD, branches, cuts, last, missing, unknown=unknown, open_cuts=open_cuts)

    def scan_levels(self, feature: int, bins: NodeBins) -> Tests:
        """A branch for each level of the vocabulary, and one more for missing values where they have their own."""
        has_own = bins.has_missing and self.rules.missing == "branch"
        branches = np.zeros((1, bins.n_levels + has_own, bins.sums.shape[1]))
        branches[0, bins.codes - 1] = bins.sums
        if has_own:
            branches[0, -1] = bins.missing
        missing = np.full(1, bins.n_levels if has_own else -1)
        nothing = np.full(1, np.nan), np.zeros(1, np.int64)
        return self.judge(feature, MULTIWAY, branches, *nothing, missing, unknown=self.unknown_of(bins))

    def scan_subsets(self, feature: int, bins: NodeBins, find_subset: FindSubset) -> Tests:
        """The best subset of the levels against the others."""
        n = len(bins.codes)
        if self.n_classes <= 2:
            order = level_order(bins.sums, self.n_classes)
            roots = np.cumsum(self.roots_of(bins)[order])
            branches, missing = self.part(np.cumsum(bins.sums[order], axis=0), bins, roots)
            tests = self.judge_subsets(feature, branches, missing, bins, roots)
            masks = np.zeros((1, n), np.bool_)
            masks[0, order[: int(tests.last[0]) + 1]] = True
        elif n <= EXHAUSTIVE_LEVELS:
            subsets = every_subset(n)
            roots = subsets.astype(np.float64) @ self.roots_of(bins)
            branches, missing = self.part(subsets.astype(np.float64) @ bins.sums, bins, roots)
            tests = self.judge_subsets(feature, branches, missing, bins, roots)
            masks = subsets[tests.last]
        else:
            penalty = self.rules.penalty_of(bins.n_levels)
            found = find_subset(penalty) or (find_subset(0.0) if penalty else None)
            if found is None:
                return self.no_test(feature, "no admissible subset")
            masks = found[0][bins.codes - 1][None]
            branches, missing = self.part_given(masks[0], found[1], bins)
            tests = self.judge_subsets(feature, branches, missing, bins, self.roots_of(bins)[masks[0]].sum()[None])
        levels = np.zeros((1, bins.n_levels), np.bool_)
        levels[:, bins.codes - 1] = masks
        return replace(tests, levels=levels)

    def judge_subsets(
        self,
        feature: int,
        branches: Sums,
        missing: NDArray[np.int64],
        bins: NodeBins,
        roots: NDArray[np.float64],
    ) -> Tests:
        """The best of these tests; `last` is its position. roots: see `part`."""
        n = len(branches)
        unknown = self.unknown_of(bins)
        level = self.luck_of(bins)
        luck, is_chance = np.zeros(n), np.zeros(n, np.bool_)
        if level is not None:
            luck = level.gain(roots[:n], weigh_sums(branches[:, :2], self.n_classes))
            is_chance = level.explains(self.measure(branches, unknown).decrease, luck)
        nothing = np.full(n, np.nan), np.arange(n)
        return self.judge(feature, SUBSET, branches, *nothing, missing, unknown=unknown, luck=luck, is_chance=is_chance)

    # --- what they are worth ---

    def measure(self, branches: Sums, unknown: float = 0.0, penalty: float | NDArray[np.float64] = 0.0) -> Worth:
        """Measure tests by the tree's criterion."""
        return measure(branches, self.rules.criterion, self.n_classes, unknown, penalty)

    def judge(
        self,
        feature: int,
        kind: int,
        branches: Sums,
        cuts: NDArray[np.float64],
        last: NDArray[np.int64],
        missing: NDArray[np.int64],
        *,
        unknown: float = 0.0,
        penalty: float | None = None,
        open_cuts: NDArray[np.int64] | None = None,
        luck: NDArray[np.float64] | None = None,
        is_chance: NDArray[np.bool_] | None = None,
    ) -> Tests:
        """Find which tests are admissible and which is best, and measure those that are kept.

        penalty: off the gain, where the tests are not all that the feature has. luck: what subsets gain by chance;
        is_chance: which of them may owe all of their gain to it.
        """
        rules = self.rules
        luck = np.zeros(len(branches)) if luck is None else luck
        faults = self.find_faults(feature, kind, branches)
        if is_chance is not None:
            faults[(faults == "") & is_chance] = CHANCE
        if open_cuts is not None:
            faults[(faults == "") & ~np.isin(last, open_cuts)] = "values too close to separate"
        is_open = faults == ""
        if penalty is None:
            is_chosen_among = rules.choice == "c45" and kind == THRESHOLD and is_open.any()
            penalty = log2_one(int(np.count_nonzero(is_open))) / self.weight if is_chosen_among else 0.0
        keeps_all = kind == THRESHOLD and len(branches) <= MOST_CUTS
        worth = self.measure(branches, unknown, penalty) if keeps_all or rules.choice == "gain_ratio" else None
        if worth is None:
            rough = -self.after(branches) - luck
        else:
            rough = np.nan_to_num(worth.gain_ratio, nan=-1.0) if rules.choice == "gain_ratio" else -worth.after
        slack = C45_SLACK if rules.choice == "c45" else TIE * float(np.max(np.abs(rough), initial=0.0))
        best = first_best(np.where(is_open, rough, -np.inf) if is_open.any() else rough, slack)
        keep = list(range(len(branches))) if keeps_all else [best]
        if worth is None or not keeps_all:
            is_gain = rules.criterion != "gini"  # otherwise a gain is in other units
            worth = self.measure(branches[keep], unknown, penalty + luck[keep] if is_gain else penalty)
        luck = luck[keep]
        is_ratio = rules.choice != "decrease"
        score = np.nan_to_num(worth.gain_ratio, nan=-1.0) if is_ratio else worth.decrease - luck
        faults = faults[keep]
        faults[(faults == "") & self.is_short(worth, luck)] = self.short_of
        return Tests(
            feature, kind, cuts[keep], last[keep], missing[keep], np.zeros((len(keep), 0), np.bool_), branches[keep],
            worth, score, faults == "", faults.tolist(), luck, unknown, penalty, keep.index(best),
        )  # fmt: skip

    def find_faults(self, feature: int, kind: int, branches: Sums) -> NDArray[np.object_]:
        """What keeps each test from being made, "" where nothing does: too few rows or weight, a constraint."""
        rules = self.rules
        weight = weigh_sums(branches, self.n_classes)
        faults = np.full(len(branches), "", np.object_)
        if rules.choice == "c45":
            has_room, fault = self.has_room_c45(kind, weight)
            faults[~has_room] = fault
            return faults
        rows = branches[..., 0]
        is_empty = rows == 0
        if rules.monotone is not None and rules.monotone.any():
            faults[~self.keeps_order(branches, int(rules.monotone[feature]))] = "against monotonic_cst"
        if rules.min_weight_leaf > 0.0:
            has_weight = is_empty | (weight >= rules.min_weight_leaf * (1.0 - TIE))
            faults[~has_weight.all(axis=1)] = "a branch below min_weight_fraction_leaf"
        if rules.criterion == "poisson":
            faults[~(is_empty | (branches[..., 4] > 0.0)).all(axis=1)] = "a branch whose targets are all 0"
        has_rows = is_empty | (rows >= rules.min_samples_leaf)
        faults[~has_rows.all(axis=1)] = f"a branch with fewer than min_samples_leaf={rules.min_samples_leaf} rows"
        return faults

    def has_room_c45(self, kind: int, weight: NDArray[np.float64]) -> tuple[NDArray[np.bool_], str]:
        """J48's rules: two branches of weight M; each side of a threshold has a tenth of the mean class, at most 25."""
        least = float(self.rules.min_samples_leaf)
        if kind != THRESHOLD:
            n_large = np.count_nonzero(weight >= least - C45_SLACK, axis=1)
            return n_large >= 2, f"fewer than two branches of weight {least:g}"
        side = C45_SHARE * float(weight[0].sum()) / self.n_classes
        side = least if side <= least + C45_SLACK else min(side, C45_MOST)
        return np.all(weight >= side - C45_SLACK, axis=1), f"a side of weight below {side:g}"

    def keeps_order(self, branches: Sums, sign: int) -> NDArray[np.bool_]:
        """Whether the values of two branches respect a monotone constraint and the bounds from above."""
        weight = weigh_sums(branches[:, :2], self.n_classes)
        value = share_of(branches[:, :2, 2], weight)
        slack = MEAN_SLACK * max(float(np.max(np.abs(value), initial=0.0)), 1e-300)
        lower, upper = self.bounds
        is_inside = (value.min(axis=1) >= lower - slack) & (value.max(axis=1) <= upper + slack)
        return is_inside & (sign * (value[:, 1] - value[:, 0]) >= -slack)

    def is_short(self, worth: Worth, luck: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which tests gain less than the rules require, luck taken off."""
        if self.rules.choice == "c45":
            return worth.gain <= C45_SLACK
        least = self.rules.min_impurity_decrease
        if least <= 0.0:
            return np.zeros(len(worth.gain), np.bool_)
        with np.errstate(over="ignore"):
            return np.ldexp((worth.decrease - luck) * self.share, self.exponent) < least - GAIN_SLACK

    @property
    def short_of(self) -> str:
        """What such a test lacks."""
        if self.rules.choice == "c45":
            return "no gain"
        return f"lowers the impurity by less than min_impurity_decrease={self.rules.min_impurity_decrease:g}"
