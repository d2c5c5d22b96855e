"""A second, slow and plain CART: what the fast grower is compared with.

Nothing here is shared with the package. Words: a *group* is the rows of a node that have one value (or one
level) of a feature; a *cut* divides the groups of known values in two; a *candidate* is a cut together with
what happens to the rows whose value is missing.

A node is split as follows:
  1. for each feature in column order, gather the node's rows into groups and add up each group (`Sums`);
  2. list the candidates, a threshold between neighbouring values or a subset of the levels, each with every
     way to place the missing rows;
  3. drop those that break a size limit or a monotone constraint;
  4. take the first among the candidates of largest gain. criterion="gain_ratio" takes the first of largest gain of
     each feature, and of those whose gain is at least the average the first of largest gain ratio.
  With cat_penalty, a subset has its gain less what its levels gain by chance (`chance_of`), and is dropped where that
  may be all of it.

missing="surrogate" judges a candidate by the rows of known value; once it has won, every other feature is asked for
the test that sends most of those rows the same way (`find_surrogates`), and rows of missing value go by that.

Every finite float is a whole number over a power of two. Weights and targets are therefore scaled to whole
numbers and summed without rounding, and gini, misclassification, squared_error and absolute_error are exact
fractions: two gains are equal here if and only if they are equal in mathematics. entropy, sdr and poisson need a
logarithm or a root; they are floats computed from exact sums, and gains within `TIE` of each other count as equal. The
logarithms of poisson have `DIGITS` digits, since its impurity is a small difference of large numbers.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TIE = 1e-12  # relative to the impurity of the node (of the root when nodes compete)
SLACK = 1e-15  # a gain this far below min_impurity_decrease still passes
DIGITS = 80
EXHAUSTIVE_LEVELS = 8  # with three classes or more, every subset is tried up to this many levels


@dataclass(frozen=True)
class Surrogate:
    """A test that stands in for that of a node; see `Node` for its threshold and subset."""

    feature: int
    threshold: float | None
    subset: frozenset[int] | None
    known: frozenset[int] | None  # levels that it says anything of
    is_reversed: bool  # value <= threshold goes to branch 1
    agree: float
    adjusted: float


@dataclass
class Node:
    """One node of a grown tree; a leaf has no feature and no children."""

    n_rows: int
    weight: float
    impurity: float
    value: float | list[float]  # mean of the target, or the share of each class
    depth: int
    feature: int | None = None
    threshold: float | None = None  # value <= threshold goes to branch 0
    subset: frozenset[int] | None = None  # levels that go to branch 0, absent ones included
    missing_branch: int | None = None
    gain: float = 0.0  # weight / total weight * decrease of impurity
    children: list[Node] = field(default_factory=list)
    surrogates: list[Surrogate] = field(default_factory=list)  # best first
    # How far, relative to the impurity, the closest candidate that lost was from winning. Below 1e-9 or so
    # the choice hangs on the last bits and another correct implementation may choose otherwise.
    margin: float = math.inf

    @property
    def is_leaf(self) -> bool:
        return not self.children


@dataclass(frozen=True)
class Sums:
    """Row count, weight, and the weighted target of a set of rows, in whole units.

    `parts` is the weight of each class, or (sum of w*y, sum of w*y*y), with criterion="poisson" and (sum of w*y*log y),
    with criterion="absolute_error" and the weight of each target that occurs. Of several outputs it is the first two
    sums of each; of several outputs of classes the weight of each class, output by output.
    """

    n_rows: int
    weight: int
    parts: tuple[int, ...]

    def __add__(self, other: Sums) -> Sums:
        parts = tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))
        return Sums(self.n_rows + other.n_rows, self.weight + other.weight, parts)


@dataclass(frozen=True)
class Candidate:
    feature: int
    threshold: float | None
    subset: frozenset[int] | None  # present levels that go to branch 0
    missing_branch: int | None  # None: no row of the node is missing
    branches: tuple[Sums, ...]


@dataclass(frozen=True)
class Bounds:
    """What the monotone constraints above a node allow its value to be."""

    low: Fraction | float = -math.inf
    high: Fraction | float = math.inf


@dataclass(frozen=True)
class Problem:
    """The training data in whole units, and the parameters."""

    columns: list[list[float]]
    weights: list[int]
    targets: list[int]  # class codes, or y in whole units; of several outputs tuples of these
    target_unit: Fraction
    weight_unit: Fraction
    total_weight: int
    n_classes: int | tuple[int, ...] | None  # of several outputs those of each
    is_categorical: list[bool]
    n_levels: list[int]
    criterion: str
    missing: str
    max_surrogates: int
    max_depth: int | None
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: Fraction
    min_impurity_decrease: float
    min_target_std: float
    monotonic: list[int]
    cat_penalty: list[float]  # by feature
    cat_margin: float  # deviations of luck that a subset must exceed it by
    row_weight: float  # weight of an independent row, in whole units


@dataclass
class OpenNode:
    """A node that can be split, with its best candidate."""

    node: Node
    rows: list[int]
    bounds: Bounds
    best: Candidate
    gain: Fraction | float


# ---------------------------------------------------------------------------------------------- growing


def grow(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    max_leaf_nodes: int | None = None,
    **parameters,
) -> Node:
    """Grow a CART tree; `read_problem` says what the arguments mean.

    Nodes are split in order of gain, the first created among equals. That order shows only where
    `max_leaf_nodes` ends it: growth stops at the first split that would make too many leaves.
    """
    problem = read_problem(columns, y, weights, **parameters)
    root, root_open = make_node(problem, list(range(len(problem.targets))), 0, Bounds())
    waiting = [root_open] if root_open else []  # in order of creation
    n_leaves = 1
    while waiting:
        chosen = largest_gain(problem, root, waiting, is_race=max_leaf_nodes is not None)
        n_leaves += len(chosen.best.branches) - 1
        if max_leaf_nodes is not None and n_leaves > max_leaf_nodes:
            break
        waiting.remove(chosen)
        waiting += split(problem, chosen)
    return root


def rank_root(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    **parameters,
) -> list[tuple[Candidate, float]]:
    """Every allowed candidate of the root with its gain, in the order of the tie rule."""
    problem = read_problem(columns, y, weights, **parameters)
    rows = list(range(len(problem.targets)))
    scored, _ = score_candidates(problem, rows, add_up(problem, rows), Bounds())
    return [(candidate, float(score)) for candidate, score in scored]


def read_problem(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    criterion: str,
    n_classes: int | tuple[int, ...] | None = None,
    is_categorical: Sequence[bool] | None = None,
    n_levels: Sequence[int] | None = None,
    missing: str = "learned",
    max_surrogates: int = 5,
    max_depth: int | None = None,
    min_samples_split: int = 2,
    min_samples_leaf: int = 1,
    min_weight_fraction_leaf: float = 0.0,
    min_impurity_decrease: float = 0.0,
    min_target_std: float = 0.0,
    monotonic: Sequence[int] | None = None,
    cat_penalty: float | str = 0.0,
    cat_margin: float = 5.0,
) -> Problem:
    """Put the data into whole units and drop the rows of weight zero.

    `columns[j][i]` is feature j of row i: a number, or the index of a level; nan if missing. `n_classes=None`
    means regression, of several outputs where `y` holds lists, otherwise `y` holds class codes; a tuple: lists of
    these, with so many classes of each output. `n_levels[j]` is the size of a categorical column's vocabulary (ignored
    for numbers; by default the highest level that occurs, plus one). `missing` is
    "learned", "branch" or "surrogate". `monotonic[j]` is -1, 0 or 1. `cat_penalty` times what levels gain by
    chance is taken off the gain of a subset, which must exceed that by `cat_margin` deviations (0 in forests);
    "auto" is 1 for columns of more than four levels.
    """
    n_features = len(columns)
    is_categorical = list(is_categorical or [False] * n_features)
    monotonic = list(monotonic or [0] * n_features)
    if any(monotonic) and n_classes is not None and n_classes > 2:
        raise ValueError("monotone constraints need a mean or the share of one of two classes")
    if any(s and is_category for s, is_category in zip(monotonic, is_categorical, strict=True)):
        raise ValueError("monotone constraints apply to numeric features")
    weights = [1.0] * len(y) if weights is None else weights
    rows = [i for i, weight in enumerate(weights) if weight > 0]
    if not rows:
        raise ValueError("no row has a positive weight")
    if n_levels is None:
        n_levels = [
            1 + int(max((v for v in column if not math.isnan(v)), default=-1)) if is_category else 0
            for column, is_category in zip(columns, is_categorical, strict=True)
        ]
    whole_weights, weight_unit = to_whole([weights[i] for i in rows])
    if n_classes is None and isinstance(y[0], list):
        numbers, target_unit = to_whole([value for i in rows for value in y[i]])
        targets = [tuple(numbers[k : k + len(y[0])]) for k in range(0, len(numbers), len(y[0]))]
    elif n_classes is None:
        targets, target_unit = to_whole([y[i] for i in rows])
    elif isinstance(n_classes, tuple):
        targets, target_unit = [tuple(map(int, y[i])) for i in rows], Fraction(1)
    else:
        targets, target_unit = [int(y[i]) for i in rows], Fraction(1)
    total_weight = sum(whole_weights)
    is_whole = all(float(weights[i]).is_integer() for i in rows)  # then a row of weight 2 is two rows
    row_weight = float(1 / weight_unit) if is_whole else sum(w * w for w in whole_weights) / total_weight
    return Problem(
        columns=[[float(column[i]) for i in rows] for column in columns],
        weights=whole_weights,
        targets=targets,
        target_unit=target_unit,
        weight_unit=weight_unit,
        total_weight=total_weight,
        n_classes=n_classes,
        is_categorical=is_categorical,
        n_levels=list(n_levels),
        criterion=criterion,
        missing=missing,
        max_surrogates=max_surrogates,
        max_depth=max_depth,
        min_samples_split=min_samples_split,
        min_samples_leaf=min_samples_leaf,
        # A float product, as scikit-learn has it: 0.1 of ten rows is one row, although 0.1 exceeds one tenth.
        min_weight_leaf=Fraction(min_weight_fraction_leaf * float(total_weight * weight_unit)) / weight_unit,
        min_impurity_decrease=min_impurity_decrease,
        min_target_std=min_target_std,
        monotonic=monotonic,
        cat_penalty=[
            0.0 if not is_category else float(n > 4) if cat_penalty == "auto" else float(cat_penalty)
            for n, is_category in zip(n_levels, is_categorical, strict=True)
        ],
        cat_margin=cat_margin,
        row_weight=row_weight,
    )


def make_node(problem: Problem, rows: list[int], depth: int, bounds: Bounds) -> tuple[Node, OpenNode | None]:
    """The node of these rows, as a leaf, and its best candidate if it may be split."""
    sums = add_up(problem, rows)
    node_impurity = impurity(problem, sums)
    node = Node(
        n_rows=sums.n_rows,
        weight=float(sums.weight * problem.weight_unit),
        impurity=float(node_impurity),
        value=value_of(problem, sums, bounds),
        depth=depth,
    )
    if (
        (problem.max_depth is not None and depth >= problem.max_depth)
        or sums.n_rows < problem.min_samples_split
        or sums.n_rows < 2 * problem.min_samples_leaf
        or sums.weight < 2 * problem.min_weight_leaf
        or len({problem.targets[i] for i in rows}) == 1
        or (problem.n_classes is None and math.sqrt(variance(problem, sums)) < problem.min_target_std)
    ):
        return node, None

    scored, node.margin = score_candidates(problem, rows, sums, bounds)
    if not scored:
        return node, None

    choose = choose_by_ratio if problem.criterion == "gain_ratio" else choose_by_gain
    best, score, margin = choose(problem, scored, sums.weight, node_impurity)
    node.margin = min(node.margin, margin)
    gain = as_number(problem, Fraction(sums.weight, problem.total_weight)) * score
    if gain < problem.min_impurity_decrease - SLACK:
        return node, None
    return node, OpenNode(node, rows, bounds, best, gain)


Scored = tuple[Candidate, Fraction | float]


def choose_by_gain(
    problem: Problem, scored: list[Scored], _: int, node_impurity: Fraction | float
) -> tuple[Candidate, Fraction | float, float]:
    """The first candidate of largest gain, its gain, and how far the next was from winning."""
    highest = max(score for _, score in scored)
    tolerance = tie_tolerance(problem, node_impurity)
    best, score = next((candidate, score) for candidate, score in scored if score >= highest - tolerance)
    losing = [float((highest - score) / node_impurity) for _, score in scored if score < highest - tolerance]
    if problem.n_classes is None and highest <= tolerance and len(scored) > len(losing) + 1:
        return best, score, 0.0  # means that are all the same: which of them differ by roundings is anybody's guess
    return best, score, min(losing, default=math.inf)


def choose_by_ratio(
    problem: Problem, scored: list[Scored], weight: int, node_impurity: float
) -> tuple[Candidate, float, float]:
    """The same for the gain ratio, among the candidates of largest gain of the features."""
    tolerance = tie_tolerance(problem, node_impurity)
    margins, proposed = [], []
    for feature in sorted({candidate.feature for candidate, _ in scored}):
        of_feature = [item for item in scored if item[0].feature == feature]
        best, score, margin = choose_by_gain(problem, of_feature, weight, node_impurity)
        margins.append(margin)
        parts = [sums.weight for sums in best.branches]
        parts += [weight - sum(parts)] if weight > sum(parts) else []  # rows of missing value, with surrogates
        information = -math.fsum(part / weight * math.log2(part / weight) for part in parts)
        proposed.append((best, score if score > tolerance else 0.0, information))
    average = math.fsum(gain for _, gain, _ in proposed) / len(proposed)
    margins += [abs(gain - average) / node_impurity for _, gain, _ in proposed if abs(gain - average) > tolerance]
    proposed = [item for item in proposed if item[1] >= average - tolerance]
    highest = max(gain / information for _, gain, information in proposed)
    slack = {information: tolerance / information for _, _, information in proposed}
    best, score, _ = next(item for item in proposed if item[1] / item[2] >= highest - slack[item[2]])
    losing = [(highest - gain / info) * info for _, gain, info in proposed if gain / info < highest - slack[info]]
    return best, score, min([*margins, *(distance / node_impurity for distance in losing)], default=math.inf)


def score_candidates(
    problem: Problem, rows: list[int], sums: Sums, bounds: Bounds
) -> tuple[list[tuple[Candidate, Fraction | float]], float]:
    """Every allowed candidate with its decrease of impurity, and how certain the order of levels was."""
    scored, margin = [], math.inf
    for feature in range(len(problem.columns)):
        found, order_margin = candidates(problem, feature, rows)
        margin = min(margin, order_margin)
        scored_here = [
            (candidate, known_decrease(problem, sums, candidate))
            for candidate in found
            if is_allowed(problem, candidate, bounds)
        ]
        if problem.cat_penalty[feature]:
            scored_here, chance_margin = beyond_chance(problem, feature, rows, sums, scored_here)
            margin = min(margin, chance_margin)
        scored += scored_here
    return scored, margin


# ----------------------------------------------------------------------------------------------- chance


def beyond_chance(
    problem: Problem, feature: int, rows: list[int], sums: Sums, scored: list[Scored]
) -> tuple[list[Scored], float]:
    """Subsets with what they gain beyond chance, without those that chance may explain, and how clear that is."""
    column = problem.columns[feature]
    roots: dict[int, float] = {}
    for level in sorted({int(column[i]) for i in rows if not math.isnan(column[i])}):
        roots[level] = math.sqrt(sum(problem.weights[i] for i in rows if column[i] == level))
    if not roots:
        return scored, math.inf
    noise, few = chance_of(problem, feature, sums, len(roots))
    if noise == 0.0:
        return scored, math.inf
    kept, margin = [], math.inf
    for candidate, gain in scored:
        share = math.fsum(roots[level] for level in candidate.subset) / math.fsum(roots.values())
        luck = 0.0
        if len(candidate.subset) < len(roots):  # else known rows against missing ones
            spread = share * (1.0 - share)
            density = (1.0 - few) * 1.342 * spread**0.875 + few * math.sqrt(spread)
            sway = math.fsum(roots.values()) * density
            left, right = (part.weight for part in candidate.branches[:2])
            excess = sway**2 * (1.0 / left + 1.0 / right) - 4.0 / math.pi
            margin = min(margin, abs(excess))
            luck = noise * max(excess, 0.0) / sums.weight
        room = gain - luck - problem.cat_margin * math.sqrt(luck * noise / sums.weight)
        if luck > 0.0:
            margin = min(margin, abs(room) / float(impurity(problem, sums)))
        if luck == 0.0 or room > 0.0:
            kept.append((candidate, gain - luck))
    return kept, margin


def chance_of(problem: Problem, feature: int, sums: Sums, n_levels: int) -> tuple[float, float]:
    """What a unit of luck is worth, as decrease times weight, and how much of it follows the bound of few rows."""
    before = float(impurity(problem, sums))
    rows_each = max(sums.weight / problem.row_weight / n_levels - 1.0, 0.0)
    noise = 0.0  # of misclassification, and of any criterion that is not named below
    if problem.n_classes is None:
        few = 1.0 / (1.0 + rows_each)
        if problem.criterion == "squared_error":
            noise = before
        elif problem.criterion == "sdr":
            noise = before * (0.5 + few * 0.5)
    else:
        alike = math.fsum((part / sums.weight) ** 2 for part in sums.parts)
        few = 1.0 / (1.0 + rows_each * (1.0 - alike) / 2.0)
        n_classes = max(1.0 / alike, 2.0)
        surplus = (1.0 + math.sqrt((n_classes - 2.0) / n_levels)) ** 2
        if problem.criterion == "gini":
            noise = before * min(surplus / (n_classes - 1.0), 1.0)
        elif problem.criterion in ("entropy", "gain_ratio"):
            half_nat = 0.5 / math.log(2.0)
            least = max(min(half_nat * surplus, before), half_nat)
            noise = least + few * max(before - least, 0.0)
    return problem.cat_penalty[feature] * problem.row_weight * noise, few


def largest_gain(problem: Problem, root: Node, waiting: list[OpenNode], is_race: bool) -> OpenNode:
    """The waiting node of largest gain, the first created among equals."""
    highest = max(item.gain for item in waiting)
    tolerance = tie_tolerance(problem, root.impurity)
    chosen = next(item for item in waiting if item.gain >= highest - tolerance)
    if is_race:
        losing = [float(highest - item.gain) for item in waiting if item.gain < highest - tolerance]
        chosen.node.margin = min([chosen.node.margin, *(distance / root.impurity for distance in losing)])
    return chosen


def split(problem: Problem, item: OpenNode) -> list[OpenNode]:
    """Turn a waiting node into an inner node; return those of its children that may be split."""
    node, best = item.node, item.best
    node.feature, node.threshold, node.gain = best.feature, best.threshold, float(item.gain)
    # A tie of the two weights goes to branch 1.
    heavier = 0 if best.branches[0].weight > best.branches[1].weight else 1
    node.missing_branch = heavier if best.missing_branch is None else best.missing_branch
    if best.subset is not None:
        column = problem.columns[best.feature]
        present = {int(column[i]) for i in item.rows if not math.isnan(column[i])}
        absent = set(range(problem.n_levels[best.feature])) - present
        absent_branch = node.missing_branch if node.missing_branch < 2 else heavier
        node.subset = best.subset | absent if absent_branch == 0 else best.subset

    if problem.missing == "surrogate":
        node.surrogates, margin = find_surrogates(problem, node, item.rows)
        node.margin = min(node.margin, margin)
    parts: list[list[int]] = [[] for _ in best.branches]
    for i in item.rows:
        parts[branch_of_row(node, [column[i] for column in problem.columns])].append(i)
    bounds = bounds_below(problem, best, item.bounds)
    still_open = []
    for part, sums, child_bounds in zip(parts, best.branches, bounds, strict=True):
        known = [i for i in part if problem.missing != "surrogate" or not math.isnan(problem.columns[best.feature][i])]
        assert add_up(problem, known) == sums, "the rule does not part the rows as the candidate did"
        child, child_open = make_node(problem, part, node.depth + 1, child_bounds)
        node.children.append(child)
        if child_open:
            still_open.append(child_open)
    return still_open


# ------------------------------------------------------------------------------------------- candidates


def candidates(problem: Problem, feature: int, rows: list[int]) -> tuple[list[Candidate], float]:
    """Every candidate of one feature in the order of the tie rule, and how certain that order is."""
    column = problem.columns[feature]
    missing = add_up(problem, [i for i in rows if math.isnan(column[i])])
    groups = {
        value: add_up(problem, [i for i in rows if column[i] == value])
        for value in sorted({column[i] for i in rows if not math.isnan(column[i])})
    }
    margin = math.inf
    if not problem.is_categorical[feature]:
        cuts = list(threshold_cuts(groups))
    else:
        levels = {int(value): sums for value, sums in groups.items()}
        has_many = isinstance(problem.n_classes, int) and problem.n_classes > 2
        if has_many and len(levels) <= EXHAUSTIVE_LEVELS:
            cuts = list(subset_cuts(levels))
        else:
            orders = [order_levels(problem, levels, column) for column in range(n_columns(problem))]
            margin = min(certainty for _, certainty in orders)
            cuts = [cut for order, _ in orders for cut in prefix_cuts(levels, order)]

    found = []
    for threshold, subset, left, right in cuts:
        if not missing.n_rows or problem.missing == "surrogate":
            placed = [(None, (left, right))]
        elif problem.missing == "learned":
            placed = [(1, (left, right + missing)), (0, (left + missing, right))]
        else:
            placed = [(2, (left, right, missing))]
        found += [Candidate(feature, threshold, subset, branch, sums) for branch, sums in placed]
    if missing.n_rows and groups and problem.missing != "surrogate":
        known = total(list(groups.values()))
        if problem.is_categorical[feature]:
            found.append(Candidate(feature, None, frozenset(map(int, groups)), 1, (known, missing)))
        else:
            found.append(Candidate(feature, math.inf, None, 1, (known, missing)))
    return found, margin


Cut = tuple[float | None, frozenset[int] | None, Sums, Sums]


def threshold_cuts(groups: dict[float, Sums]) -> Iterator[Cut]:
    """The cuts between neighbouring values, ascending."""
    values, sums = list(groups), list(groups.values())
    lefts = list(accumulate(sums))
    rights = list(accumulate(reversed(sums)))[::-1]
    for c in range(len(values) - 1):
        yield midpoint(values[c], values[c + 1]), None, lefts[c], rights[c + 1]


def midpoint(low: float, high: float) -> float:
    """A threshold with low <= threshold < high: the midpoint, or `low` where floats have none."""
    middle = low + (high - low) / 2
    return middle if low <= middle < high else low


def prefix_cuts(levels: dict[int, Sums], order: list[int]) -> Iterator[Cut]:
    """Levels put in order, then cut like numbers."""
    for c in range(1, len(order)):
        left, right = order[:c], order[c:]
        yield None, frozenset(left), total([levels[v] for v in left]), total([levels[v] for v in right])


def subset_cuts(levels: dict[int, Sums]) -> Iterator[Cut]:
    """Every division of the levels in two; the lowest level is always on the left."""
    if not levels:
        return
    lowest, *others = sorted(levels)
    for mask in range(2 ** len(others) - 1):
        left = [lowest, *(level for bit, level in enumerate(others) if mask >> bit & 1)]
        right = [level for bit, level in enumerate(others) if not mask >> bit & 1]
        yield None, frozenset(left), total([levels[v] for v in left]), total([levels[v] for v in right])


def order_levels(problem: Problem, levels: dict[int, Sums], column: int = 0) -> tuple[list[int], float]:
    """Levels by mean target, of one output, or by the first principal component of their class shares; ties by index.

    Of several outputs of classes by the share of one class of one of them.

    Also the smallest relative distance between two scores that differ: the certainty of that order.
    """
    certainty = math.inf
    if not isinstance(problem.n_classes, int) or problem.n_classes <= 2:
        scores: dict[int, Fraction | float] = {level: mean(problem, sums, column) for level, sums in levels.items()}
    else:
        scores, certainty = principal_scores(levels)
    order = sorted(scores, key=lambda level: (scores[level], level))
    spread = max(scores.values(), default=0) - min(scores.values(), default=0)
    distances = [scores[b] - scores[a] for a, b in pairwise(order)]
    return order, min([certainty, *(float(d / spread) for d in distances if d)])


def principal_scores(levels: dict[int, Sums]) -> tuple[dict[int, float], float]:
    """Each level's class shares along their first principal component, levels weighted by their weight.

    The sign is such that the lowest level's score is not positive. Two leading eigenvalues that are equal,
    or a score of the lowest level that is zero, leave the order to rounding: the certainty is near zero then.
    """
    whole = total(list(levels.values()))
    centre = [part / whole.weight for part in whole.parts]
    offsets = {level: np.array([part / sums.weight for part in sums.parts]) - centre for level, sums in levels.items()}
    if not any(offset.any() for offset in offsets.values()):
        return dict.fromkeys(levels, 0.0), math.inf
    covariance = sum(
        levels[level].weight / whole.weight * np.outer(offset, offset) for level, offset in offsets.items()
    )
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    axis = eigenvectors[:, -1]
    # One level at a time: equal shares must give equal scores, to the bit.
    scores = {level: math.fsum(offset * axis) for level, offset in offsets.items()}
    lowest = scores[min(scores)]
    spread = max(scores.values()) - min(scores.values())
    # Squared, because the axis turns by rounding / (1 - ratio of the eigenvalues).
    certainty = min((1.0 - eigenvalues[-2] / eigenvalues[-1]) ** 2, abs(lowest) / spread)
    if lowest > 0:
        scores = {level: -score for level, score in scores.items()}
    return scores, float(certainty)


def is_allowed(problem: Problem, candidate: Candidate, bounds: Bounds) -> bool:
    """Whether every branch is large enough, has an impurity, and the monotone constraints hold."""
    for sums in candidate.branches:
        if sums.n_rows < problem.min_samples_leaf or sums.weight < problem.min_weight_leaf:
            return False
        if problem.criterion == "poisson" and sums.parts[0] == 0:  # no deviance from a mean of 0
            return False
    if not any(problem.monotonic):
        return True
    # A third branch, of missing values, is under no constraint.
    left, right = (mean(problem, sums) for sums in candidate.branches[:2])
    if problem.monotonic[candidate.feature] * (right - left) < 0:
        return False
    return bounds.low <= left <= bounds.high and bounds.low <= right <= bounds.high


def bounds_below(problem: Problem, best: Candidate, bounds: Bounds) -> list[Bounds]:
    """The bounds of each branch."""
    below = [bounds for _ in best.branches]
    sign = problem.monotonic[best.feature]
    if sign:
        left, right = (mean(problem, sums) for sums in best.branches[:2])
        middle = (left + right) / 2
        low_side, high_side = (0, 1) if sign > 0 else (1, 0)
        below[low_side] = replace(bounds, high=middle)
        below[high_side] = replace(bounds, low=middle)
    return below


# ------------------------------------------------------------------------------------------- surrogates


def find_surrogates(problem: Problem, node: Node, rows: list[int]) -> tuple[list[Surrogate], float]:
    """The tests of other features that send more rows the same way than the heavier branch has, and how clearly.

    Rows are those whose value the node's own test knows; one that a surrogate does not know does not agree.
    """
    own = problem.columns[node.feature]
    sides = {i: branch_of(node, own[i]) for i in rows if not math.isnan(own[i])}
    known = sum(problem.weights[i] for i in sides)
    most = max(sum(problem.weights[i] for i in sides if sides[i] == side) for side in (0, 1))
    found, agreements = [], {most}
    for feature, column in enumerate(problem.columns):
        if feature == node.feature or problem.monotonic[feature]:
            continue
        of_feature = [
            (surrogate, sum(problem.weights[i] for i in sides if side_of(surrogate, column[i]) == sides[i]))
            for surrogate in stand_ins(problem, feature, rows, sides)
        ]
        agreements |= {agree for _, agree in of_feature}
        if of_feature:
            best, agree = max(of_feature, key=lambda item: item[1])  # the first among equals
            if agree > most:
                adjusted = Fraction(agree - most, known - most)
                found.append((-agree, replace(best, agree=agree / known, adjusted=float(adjusted))))
    found.sort(key=lambda item: item[0])
    margin = min((b - a for a, b in pairwise(sorted(agreements))), default=math.inf) / known
    return [surrogate for _, surrogate in found[: problem.max_surrogates]], margin


def stand_ins(problem: Problem, feature: int, rows: list[int], sides: dict[int, int]) -> Iterator[Surrogate]:
    """The tests of a feature that could stand in: both directions of each threshold, or one assignment of levels."""
    column = problem.columns[feature]
    both = [i for i in sides if not math.isnan(column[i])]
    if problem.is_categorical[feature]:
        lead = {
            level: sum(problem.weights[i] * (1 - 2 * sides[i]) for i in both if int(column[i]) == level)
            for level in {int(column[i]) for i in both}
        }
        default = sum(lead.values())  # a level that goes both ways alike goes where most rows do
        subset = frozenset(level for level, more in lead.items() if more > 0 or (more == 0 and default > 0))
        n_first = sum(int(column[i]) in subset for i in both)
        if min(n_first, len(both) - n_first) >= 2:
            yield Surrogate(feature, None, subset, frozenset(lead), False, 0.0, 0.0)
        return
    values = sorted({column[i] for i in rows if not math.isnan(column[i])})
    for low, high in pairwise(values):
        n_below = sum(column[i] <= low for i in both)
        if min(n_below, len(both) - n_below) >= 2:
            for is_reversed in (False, True):
                yield Surrogate(feature, midpoint(low, high), None, None, is_reversed, 0.0, 0.0)


# ----------------------------------------------------------------------------------- sums and impurities


def to_whole(numbers: Sequence[float]) -> tuple[list[int], Fraction]:
    """Floats as whole multiples of one unit, exactly."""
    fractions = [Fraction(float(number)) for number in numbers]
    denominator = math.lcm(*(fraction.denominator for fraction in fractions))
    return [int(fraction * denominator) for fraction in fractions], Fraction(1, denominator)


def add_up(problem: Problem, rows: list[int]) -> Sums:
    weights = [problem.weights[i] for i in rows]
    targets = [problem.targets[i] for i in rows]
    if isinstance(problem.n_classes, tuple):
        parts = tuple(
            sum(w for w, codes in zip(weights, targets, strict=True) if codes[output] == c)
            for output, n_classes in enumerate(problem.n_classes)
            for c in range(n_classes)
        )
    elif n_outputs(problem) > 1:
        columns = list(zip(*targets, strict=True)) or [()] * n_outputs(problem)
        parts = tuple(
            sum(w * y**power for w, y in zip(weights, column, strict=True)) for column in columns for power in (1, 2)
        )
    elif problem.n_classes is None:
        parts = (
            sum(w * y for w, y in zip(weights, targets, strict=True)),
            sum(w * y * y for w, y in zip(weights, targets, strict=True)),
        )
        if problem.criterion == "poisson":
            parts += (sum(w * times_log(y) for w, y in zip(weights, targets, strict=True)),)
        if problem.criterion == "absolute_error":
            parts += tuple(
                sum(w for w, y in zip(weights, targets, strict=True) if y == level) for level in levels_of(problem)
            )
    else:
        parts = tuple(sum(w for w, y in zip(weights, targets, strict=True) if y == c) for c in range(problem.n_classes))
    return Sums(len(rows), sum(weights), parts)


def total(sums: list[Sums]) -> Sums:
    return list(accumulate(sums))[-1]


def impurity(problem: Problem, sums: Sums) -> Fraction | float:
    """Of several outputs of classes, the mean over them."""
    if not isinstance(problem.n_classes, tuple):
        return impurity_of_one(problem, sums)
    each = [impurity_of_one(problem, part) for part in by_output(problem, sums)]
    return sum(each) / len(each)


def impurity_of_one(problem: Problem, sums: Sums) -> Fraction | float:
    match problem.criterion:
        case "gini":
            return 1 - Fraction(sum(part * part for part in sums.parts), sums.weight**2)
        case "misclassification":
            return 1 - Fraction(max(sums.parts), sums.weight)
        case "entropy" | "gain_ratio":
            shares = [part / sums.weight for part in sums.parts if part]
            return abs(math.fsum(share * math.log2(share) for share in shares))
        case "squared_error" | "sdr":
            found = variance(problem, sums)
            return math.sqrt(found) if problem.criterion == "sdr" else found
        case "poisson":
            return half_deviance(problem, sums)
        case _:
            return absolute_deviation(problem, sums)


def absolute_deviation(problem: Problem, sums: Sums) -> Fraction:
    """Mean distance of the targets from their median."""
    middle = median(problem, sums)
    pairs = zip(levels_of(problem), sums.parts[2:], strict=True)
    return sum(w * abs(y * problem.target_unit - middle) for y, w in pairs) / sums.weight


@cache
def times_log(y: int) -> int:
    """The number y * log(y) in units of 10 ** -(DIGITS // 2); 0 at 0."""
    with decimal.localcontext(prec=DIGITS):
        return int((decimal.Decimal(y) * decimal.Decimal(y).ln()).scaleb(DIGITS // 2)) if y else 0


def half_deviance(problem: Problem, sums: Sums) -> float:
    """Mean of y * log(y / mean), half the Poisson deviance: that of y - mean is 0."""
    total, _, logs = sums.parts
    if total == 0:
        return 0.0
    with decimal.localcontext(prec=DIGITS):
        log_mean = decimal.Decimal(total).ln() - decimal.Decimal(sums.weight).ln()
        deviance = decimal.Decimal(logs).scaleb(-(DIGITS // 2)) - total * log_mean
        unit = decimal.Decimal(problem.target_unit.numerator) / problem.target_unit.denominator
        found = float(deviance / sums.weight * unit)
    return max(found, 0.0)


def n_outputs(problem: Problem) -> int:
    return len(problem.targets[0]) if isinstance(problem.targets[0], tuple) else 1


def n_columns(problem: Problem) -> int:
    """By how many means levels are put in order."""
    return sum(problem.n_classes) if isinstance(problem.n_classes, tuple) else n_outputs(problem)


def by_output(problem: Problem, sums: Sums) -> list[Sums]:
    """The sums of each output of classes, as those of a target with this output alone."""
    ends = accumulate(problem.n_classes)
    return [replace(sums, parts=sums.parts[end - n : end]) for n, end in zip(problem.n_classes, ends, strict=True)]


def variance(problem: Problem, sums: Sums) -> Fraction:
    """The variance of the target; of several outputs the mean of theirs."""
    pairs = [sums.parts[2 * o : 2 * o + 2] for o in range(n_outputs(problem))]
    total = sum(sum_wyy * sums.weight - sum_wy**2 for sum_wy, sum_wyy in pairs)
    return Fraction(total, sums.weight**2 * len(pairs)) * problem.target_unit**2


def levels_of(problem: Problem) -> list[int]:
    """The targets that occur, ascending."""
    return sorted(set(problem.targets))


def median(problem: Problem, sums: Sums) -> Fraction:
    """The least target up to which more than half the weight lies, or the middle of two where it is exactly half."""
    held = [(y, w) for y, w in zip(levels_of(problem), sums.parts[2:], strict=True) if w]
    below = 0
    for k, (y, w) in enumerate(held):
        below += w
        if 2 * below > sums.weight:
            return y * problem.target_unit
        if 2 * below == sums.weight:
            return Fraction(y + held[k + 1][0], 2) * problem.target_unit
    raise AssertionError


def mean(problem: Problem, sums: Sums, output: int = 0) -> Fraction:
    """Mean of the target, or of one output, by the absolute error its median, or the share of the second class.

    Of several outputs of classes: the share of a class.
    """
    if problem.criterion == "absolute_error":
        return median(problem, sums)
    if problem.n_classes is None:
        return Fraction(sums.parts[2 * output], sums.weight) * problem.target_unit
    if isinstance(problem.n_classes, tuple):
        return Fraction(sums.parts[output], sums.weight)
    return Fraction(sums.parts[-1], sums.weight)


def value_of(problem: Problem, sums: Sums, bounds: Bounds) -> float | list[float]:
    """Mean or class shares, moved inside the bounds; of several outputs the mean of each, or the shares of all."""
    if isinstance(problem.n_classes, tuple):
        return [part / sums.weight for part in sums.parts]
    if n_outputs(problem) > 1:
        return [float(Fraction(part, sums.weight) * problem.target_unit) for part in sums.parts[::2]]
    if problem.n_classes is None:
        return float(min(max(mean(problem, sums), bounds.low), bounds.high))
    if problem.n_classes == 2:
        share = min(max(mean(problem, sums), bounds.low), bounds.high)
        return [float(1 - share), float(share)]
    return [part / sums.weight for part in sums.parts]


def decrease(problem: Problem, weight: int, node_impurity: Fraction | float, candidate: Candidate) -> Fraction | float:
    """The node's impurity less the weighted mean impurity of the branches."""
    terms = [as_number(problem, Fraction(sums.weight, weight)) * impurity(problem, sums) for sums in candidate.branches]
    if is_exact(problem):
        return node_impurity - sum(terms)
    # Never negative in mathematics: all the impurities are concave.
    return max(math.fsum([node_impurity, *(-term for term in terms)]), 0.0)


def known_decrease(problem: Problem, sums: Sums, candidate: Candidate) -> Fraction | float:
    """The decrease over the rows of known value, times their share of the node; with "surrogate" not all are."""
    known = total(list(candidate.branches))
    share = as_number(problem, Fraction(known.weight, sums.weight))
    return share * decrease(problem, known.weight, impurity(problem, known), candidate)


def is_exact(problem: Problem) -> bool:
    return problem.criterion not in ("entropy", "gain_ratio", "sdr", "poisson") and not any(problem.cat_penalty)


def as_number(problem: Problem, fraction: Fraction) -> Fraction | float:
    return fraction if is_exact(problem) else float(fraction)


def tie_tolerance(problem: Problem, scale: Fraction | float) -> float:
    return 0 if is_exact(problem) else TIE * scale


# ------------------------------------------------------------------------------------------- predicting


def branch_of(node: Node, value: float) -> int:
    """The branch that a value of the node's feature takes."""
    if math.isnan(value):
        return node.missing_branch
    if node.subset is not None:
        return 0 if int(value) in node.subset else 1
    return 0 if value <= node.threshold else 1


def branch_of_row(node: Node, row: Sequence[float]) -> int:
    """The branch that a row takes: by its value, else by the first surrogate that knows its own."""
    if math.isnan(row[node.feature]):
        for surrogate in node.surrogates:
            side = side_of(surrogate, row[surrogate.feature])
            if side is not None:
                return side
    return branch_of(node, row[node.feature])


def side_of(surrogate: Surrogate, value: float) -> int | None:
    if math.isnan(value) or (surrogate.known is not None and int(value) not in surrogate.known):
        return None
    if surrogate.subset is not None:
        return 0 if int(value) in surrogate.subset else 1
    return int((value > surrogate.threshold) != surrogate.is_reversed)


def leaf_of(node: Node, row: Sequence[float]) -> Node:
    while not node.is_leaf:
        node = node.children[branch_of_row(node, row)]
    return node


def predict(node: Node, row: Sequence[float]) -> float | list[float]:
    """The value of the leaf that a row (one number per feature) reaches."""
    return leaf_of(node, row).value


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, parents before children, branch 0 first."""
    yield node
    for child in node.children:
        yield from walk(child)


def leaves(node: Node) -> list[Node]:
    return [below for below in walk(node) if below.is_leaf]


def height(node: Node) -> int:
    return max(leaf.depth for leaf in leaves(node)) - node.depth


def is_certain(node: Node, tolerance: float = 1e-9) -> bool:
    """Whether every choice in the tree was clear of rounding: ties are certain, near ties are not."""
    return all(below.margin > tolerance for below in walk(node))


# ---------------------------------------------------------------------------------------------- pruning


def cost_complexity_path(root: Node, total_weight: float | None = None) -> tuple[list[float], list[float]]:
    """The alphas at which the optimal subtree changes, and the impurity of the leaves of each subtree.

    R(t) = w_t / w_total * impurity(t). The weakest links are the inner nodes with the smallest effective
    alpha, (R(t) - R(leaves below t)) / (leaves below t - 1). All of them are cut at once: alphas increase.
    The first entry is alpha 0 with the whole tree, less what can be cut at no cost.
    """
    total_weight = root.weight if total_weight is None else total_weight
    alphas, impurities = [0.0], [leaf_risk(root, total_weight)]
    while not root.is_leaf:
        alpha = weakest_alpha(root, total_weight)
        root = cut_links(root, alpha, total_weight)
        if alpha <= TIE * node_risk(root, total_weight):
            impurities[-1] = leaf_risk(root, total_weight)
        else:
            alphas.append(alpha)
            impurities.append(leaf_risk(root, total_weight))
    return alphas, impurities


def prune(root: Node, alpha: float, total_weight: float | None = None) -> Node:
    """A copy of the tree without its links up to an effective alpha; alpha 0 prunes nothing."""
    total_weight = root.weight if total_weight is None else total_weight
    slack = TIE * node_risk(root, total_weight)
    while alpha > 0 and not root.is_leaf and weakest_alpha(root, total_weight) <= alpha + slack:
        root = cut_links(root, weakest_alpha(root, total_weight), total_weight)
    return copy_tree(root, set())


def node_risk(node: Node, total_weight: float) -> float:
    return node.weight / total_weight * node.impurity


def leaf_risk(node: Node, total_weight: float) -> float:
    return math.fsum(node_risk(leaf, total_weight) for leaf in leaves(node))


def effective_alpha(node: Node, total_weight: float) -> float:
    saved = node_risk(node, total_weight) - leaf_risk(node, total_weight)
    return saved / (len(leaves(node)) - 1)


def weakest_alpha(root: Node, total_weight: float) -> float:
    return max(min(effective_alpha(node, total_weight) for node in walk(root) if not node.is_leaf), 0.0)


def cut_links(root: Node, alpha: float, total_weight: float) -> Node:
    limit = alpha + TIE * node_risk(root, total_weight)
    cut = {id(node) for node in walk(root) if not node.is_leaf and effective_alpha(node, total_weight) <= limit}
    return copy_tree(root, cut)


def copy_tree(node: Node, cut: set[int]) -> Node:
    """A copy in which the nodes with these ids are leaves."""
    if node.is_leaf or id(node) in cut:
        return Node(node.n_rows, node.weight, node.impurity, node.value, node.depth)
    return replace(node, children=[copy_tree(child, cut) for child in node.children])
