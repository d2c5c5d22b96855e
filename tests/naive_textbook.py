"""A second, slow and plain ID3 and C4.5: what the textbook trees are compared with.

Nothing here is shared with the package. Words: a *case* is a row with the part of its weight that has come to a node;
a *bag* is the cases that take one branch of a test; a *candidate* is a test with its bags.

ID3 (Quinlan 1986, with numbers and missing values added): the candidate of largest gain (or gain ratio), a branch for
each level of a category, a missing value being one more value; growth ends where the cases agree in the target or in
every feature.

C4.5 release 8 follows Weka 3.6.14's J48: cases of unknown value are shared out over the branches, numbers pay for their
many cuts, the largest gain ratio among candidates of at least average gain wins. Its comparisons have a tolerance of
1e-6; `Judge` makes them and remembers how close one came to going the other way.

Weights are fractions, so sums are exact, and so are gini and squared_error. Logarithms and roots are floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TIE = 1e-12  # gains of entropy and sdr this close, relative to the node's impurity, count as equal
SMALL = 1e-6  # C4.5: numbers this close count as equal
EVERY = -1  # missing values take every branch


class Case(NamedTuple):
    """A row, and what of its weight is here."""

    row: int
    weight: Fraction


@dataclass(repr=False)
class Node:
    """One node; a leaf has no children."""

    depth: int
    cases: list[Case]
    weight: Fraction
    sums: tuple[Fraction, ...]  # weight of each class, or (sum of w*y, sum of w*y*y)
    answer: tuple[Fraction, ...]  # sums that its answer comes from, and their weight last: the parent's if it is empty
    feature: int | None = None
    threshold: float | None = None  # None at an inner node: a branch for each level
    missing_branch: int | None = None  # or EVERY
    children: list[Node] = field(default_factory=list)
    margin: float = math.inf  # how far the closest choice was from going another way: see `is_certain`

    def __repr__(self) -> str:
        sums = "/".join(map(str, self.sums))
        if self.is_leaf:
            return sums
        test = f"x{self.feature}" + ("" if self.threshold is None else f"<={self.threshold:g}")
        return f"{sums} {test} missing {self.missing_branch} {self.children}"

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def is_empty(self) -> bool:
        return not self.cases


@dataclass(frozen=True)
class Table:
    """Columns of numbers or level indices (nan: missing), targets and weights."""

    columns: list[list[float]]
    y: list[Fraction]
    n_classes: int | None  # None = regression
    is_categorical: list[bool]
    n_levels: list[int]
    times: list[int]  # how many rows a row counts as where C4.5 counts them: its weight, if all weights are whole

    @property
    def n_features(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class Params:
    criterion: str = "entropy"  # entropy, gini, squared_error, sdr
    rule: str = "gain"  # gain, gain_ratio, c45
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1  # C4.5: weight that two branches must have
    min_impurity_decrease: float = 0.0


@dataclass(frozen=True)
class Candidate:
    feature: int
    threshold: float | None
    missing_branch: int | None  # None: no case of the node is missing
    bags: list[list[Case]]
    gain: Fraction | float = 0.0
    score: Fraction | float = 0.0  # what candidates are compared by


def grow(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    n_classes: int | None = None,
    is_categorical: Sequence[bool] | None = None,
    n_levels: Sequence[int] | None = None,
    **params,
) -> Node:
    """Grow a tree; rows of weight zero are not there. `n_levels` counts the levels that a column may have."""
    table, cases = read_table(columns, y, weights, n_classes, is_categorical, n_levels)
    return grow_cases(table, cases, Params(**params))


def read_table(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    n_classes: int | None = None,
    is_categorical: Sequence[bool] | None = None,
    n_levels: Sequence[int] | None = None,
) -> tuple[Table, list[Case]]:
    weights = [1] * len(y) if weights is None else weights
    kept = [i for i, weight in enumerate(weights) if weight > 0]
    is_categorical = list(is_categorical or [False] * len(columns))
    columns = [[float(column[i]) for i in kept] for column in columns]
    if n_levels is None:
        n_levels = [
            1 + int(max((v for v in column if not math.isnan(v)), default=-1)) if is_it else 0
            for column, is_it in zip(columns, is_categorical, strict=True)
        ]
    targets = [Fraction(y[i]) if n_classes is None else Fraction(int(y[i])) for i in kept]
    is_whole = all(weights[i] == int(weights[i]) for i in kept)
    times = [int(weights[i]) if is_whole else 1 for i in kept]
    table = Table(columns, targets, n_classes, is_categorical, list(n_levels), times)
    return table, [Case(at, Fraction(weights[i])) for at, i in enumerate(kept)]


def grow_cases(table: Table, cases: list[Case], params: Params) -> Node:
    if params.rule == "c45":
        return grow_c45(table, cases, params, make_node(table, cases, 0, ()))
    return grow_id3(table, params, make_node(table, cases, 0, ()), weight_of(cases))


def make_node(table: Table, cases: list[Case], depth: int, above: tuple[Fraction, ...]) -> Node:
    """A leaf of these cases; `above` is what its parent answers with."""
    sums, weight = sum_up(table, cases), weight_of(cases)
    return Node(depth, cases, weight, sums, (*sums, weight) if cases else above)


def weight_of(cases: list[Case]) -> Fraction:
    return sum((case.weight for case in cases), Fraction(0))


def sum_up(table: Table, cases: list[Case]) -> tuple[Fraction, ...]:
    if table.n_classes is None:
        return tuple(sum((w * table.y[i] ** power for i, w in cases), Fraction(0)) for power in (1, 2))
    return tuple(sum((w for i, w in cases if table.y[i] == c), Fraction(0)) for c in range(table.n_classes))


def split_values(table: Table, cases: list[Case], feature: int) -> tuple[dict[float, list[Case]], list[Case]]:
    """The cases of each known value, ascending, and those of unknown value."""
    column = table.columns[feature]
    known: dict[float, list[Case]] = {}
    for case in sorted(cases, key=lambda case: (math.isnan(column[case.row]), column[case.row])):
        if not math.isnan(column[case.row]):
            known.setdefault(column[case.row] + 0.0, []).append(case)
    return known, [case for case in cases if math.isnan(column[case.row])]


# ------------------------------------------------------------------------------------------------------------- ID3


def grow_id3(table: Table, params: Params, node: Node, total: Fraction) -> Node:
    """Split a leaf as long as its cases differ, zero gain or not."""
    if (
        (params.max_depth is not None and node.depth >= params.max_depth)
        or len(node.cases) < max(params.min_samples_split, 2)
        or len({table.y[case.row] for case in node.cases}) == 1
    ):
        return node
    own = impurity(params.criterion, node.sums, node.weight)
    scored = []
    for feature in range(table.n_features):
        for candidate in id3_candidates(table, node.cases, feature):
            if any(0 < len(bag) < params.min_samples_leaf for bag in candidate.bags):
                continue
            gain = decrease(table, params.criterion, own, node, candidate)
            score = gain if params.rule == "gain" else ratio(gain, split_information(node.weight, candidate.bags))
            scored.append(replace(candidate, gain=gain, score=score))
    if not scored:
        return node
    is_exact = params.rule == "gain" and params.criterion in {"gini", "squared_error"}
    slack = 0 if is_exact else TIE * float(own)
    highest = max(candidate.score for candidate in scored)
    best = next(candidate for candidate in scored if candidate.score >= highest - slack)
    losing = [highest - candidate.score for candidate in scored if candidate.score < highest - slack]
    node.margin = min((float(distance / own) for distance in losing), default=math.inf)
    share = node.weight / total
    worth = share * best.gain if is_exact else float(share) * float(best.gain)
    node.margin = min(node.margin, gap(float(worth), params.min_impurity_decrease, float(own)))
    if worth < params.min_impurity_decrease:
        return node
    branch_out(table, node, best)
    for child in node.children:
        if not child.is_empty:
            grow_id3(table, params, child, total)
    return node


def gap(worth: float, bound: float, scale: float) -> float:
    """How far a positive bound on the gain is from deciding otherwise."""
    return abs(worth - bound) / scale if bound > 0.0 else math.inf


def id3_candidates(table: Table, cases: list[Case], feature: int) -> Iterator[Candidate]:
    """A branch for each level, or the cuts ascending and then known against missing."""
    known, missing = split_values(table, cases, feature)
    if table.is_categorical[feature]:
        if len(known) + bool(missing) > 1:
            bags = [known.get(float(level), []) for level in range(table.n_levels[feature])]
            yield Candidate(feature, None, len(bags) if missing else None, bags + ([missing] if missing else []))
        return
    for low, high in pairwise(known):
        bags = [
            [case for value, group in known.items() if value <= low for case in group],
            [case for value, group in known.items() if value >= high for case in group],
        ]
        yield Candidate(feature, midpoint(low, high), 2 if missing else None, bags + ([missing] if missing else []))
    if known and missing:
        yield Candidate(feature, math.inf, 1, [[case for group in known.values() for case in group], missing])


def midpoint(low: float, high: float) -> float:
    """A threshold with low <= threshold < high: the midpoint, or `low` where floats have none."""
    middle = low + (high - low) / 2
    return middle if low <= middle < high else low


def branch_out(table: Table, node: Node, best: Candidate) -> None:
    """Turn a leaf into an inner node; where no case is missing, the heaviest branch is for missing values."""
    node.feature, node.threshold, node.missing_branch = best.feature, best.threshold, best.missing_branch
    node.children = [make_node(table, bag, node.depth + 1, node.answer) for bag in best.bags]
    if node.missing_branch is None:
        node.missing_branch = heaviest_branch(node)


def heaviest_branch(node: Node) -> int:
    """The heaviest branch, the first among equals."""
    weights = [child.weight for child in node.children]
    return weights.index(max(weights))


def impurity(criterion: str, sums: tuple[Fraction, ...], weight: Fraction) -> Fraction | float:
    match criterion:
        case "entropy":
            return abs(math.fsum(float(s / weight) * math.log2(s / weight) for s in sums if s))
        case "gini":
            return 1 - sum((s / weight) ** 2 for s in sums)
        case "squared_error":
            return variance(sums, weight)
        case "sdr":
            return math.sqrt(variance(sums, weight))
    raise ValueError(criterion)


def variance(sums: tuple[Fraction, ...], weight: Fraction) -> Fraction:
    return sums[1] / weight - (sums[0] / weight) ** 2


def decrease(table: Table, criterion: str, own: Fraction | float, node: Node, candidate: Candidate) -> Fraction | float:
    """Impurity of the node less the weighted mean of the bags'."""
    terms = []
    for bag in candidate.bags:
        if bag:
            share = weight_of(bag) / node.weight
            inside = impurity(criterion, sum_up(table, bag), weight_of(bag))
            terms.append(share * inside if isinstance(inside, Fraction) else float(share) * inside)
    if criterion in {"gini", "squared_error"}:
        return own - sum(terms)
    return max(math.fsum([own, *(-term for term in terms)]), 0.0)  # concave: never negative but by rounding


def split_information(weight: Fraction, bags: list[list[Case]]) -> float:
    """Entropy of the bags' weights."""
    shares = [weight_of(bag) / weight for bag in bags if bag]
    return math.fsum(-float(share) * math.log2(share) for share in shares)


def ratio(gain: Fraction | float, information: float) -> float:
    return float(gain) / information


# ------------------------------------------------------------------------------------------------------------ C4.5


@dataclass
class Judge:
    """Comparisons with a tolerance, as Weka's Utils has them."""

    closest: float = math.inf  # how far a difference was from the tolerance that decided

    def is_above(self, a: float, b: float) -> bool:
        """gr: clearly greater; its negation is smOrEq."""
        self.closest = min(self.closest, abs(a - b - SMALL))
        return a - b > SMALL

    def is_below(self, a: float, b: float) -> bool:
        """sm: clearly smaller; its negation is grOrEq."""
        return self.is_above(b, a)

    def is_equal(self, a: float, b: float) -> bool:
        self.closest = min(self.closest, abs(abs(a - b) - SMALL))
        return abs(a - b) < SMALL

    def reaches(self, a: float, b: float) -> bool:
        """Plain a >= b."""
        self.closest = min(self.closest, abs(a - b))
        return a >= b


def grow_c45(table: Table, cases: list[Case], params: Params, node: Node) -> Node:
    """Split a leaf by C4.5's rules; `cases` are those of the whole table."""
    if (params.max_depth is not None and node.depth >= params.max_depth) or (
        len(node.cases) < params.min_samples_split
    ):
        return node
    judge = Judge()
    best = best_c45(table, params, node, judge)
    node.margin = judge.closest
    if best is None:
        return node
    threshold = best.threshold
    if threshold is not None:  # the largest value of the whole table that is not above the cut
        values = [table.columns[best.feature][case.row] for case in cases]
        threshold = max(value for value in values if value <= threshold)
    set_test(table, node, best.feature, threshold, best.bags)
    for child in node.children:
        if not child.is_empty:
            grow_c45(table, cases, params, child)
    return node


def set_test(table: Table, node: Node, feature: int, threshold: float | None, bags: list[list[Case]]) -> None:
    """Give a node a test and the children of it; `bags` hold the known cases, the others are shared out."""
    node.feature, node.threshold, node.missing_branch = feature, threshold, EVERY
    node.children = [
        make_node(table, bag, node.depth + 1, node.answer) for bag in share_out(table, node.cases, feature, bags)
    ]


def share_out(table: Table, cases: list[Case], feature: int, bags: list[list[Case]]) -> list[list[Case]]:
    """The bags with the cases of unknown value in each, weighted by the bags' shares; equal where nothing is known."""
    missing = [case for case in cases if math.isnan(table.columns[feature][case.row])]
    weights = [weight_of(bag) for bag in bags]
    known = sum(weights)
    shares = [weight / known if known else Fraction(1, len(bags)) for weight in weights]
    return [
        bag + [Case(case.row, case.weight * share) for case in missing if share > 0]
        for bag, share in zip(bags, shares, strict=True)
    ]


def best_c45(table: Table, params: Params, node: Node, judge: Judge) -> Candidate | None:
    """The test that C4.5 takes; None: a leaf."""
    weight = float(node.weight)
    if judge.is_below(weight, 2 * params.min_samples_leaf) or judge.is_equal(weight, float(max(node.sums))):
        return None
    found = [c45_candidate(table, node, feature, params.min_samples_leaf, judge) for feature in range(table.n_features)]

    has_few = [
        not is_it or judge.is_below(n_levels, 0.3 * sum(table.times))
        for is_it, n_levels in zip(table.is_categorical, table.n_levels, strict=True)
    ]
    counted = [candidate for candidate in found if candidate and (has_few[candidate.feature] or not any(has_few))]
    if not counted:
        return None
    average = sum(candidate.gain for candidate in counted) / len(counted)
    best, highest = None, 0.0
    for candidate in found:
        if candidate and judge.reaches(candidate.gain, average - 1e-3) and judge.is_above(candidate.score, highest):
            best, highest = candidate, candidate.score
    return best


def c45_candidate(table: Table, node: Node, feature: int, least: float, judge: Judge) -> Candidate | None:
    """The test of one feature with its gain and gain ratio, or None where it has none."""
    known, _ = split_values(table, node.cases, feature)
    if table.is_categorical[feature]:
        bags = [known.get(float(level), []) for level in range(table.n_levels[feature])]
        if sum(not judge.is_below(float(weight_of(bag)), least) for bag in bags) < 2:
            return None
        cut, gain = None, c45_gain(table, node, bags, judge)
    else:
        found = best_cut(table, node, known, least, judge)
        if found is None:
            return None
        cut, gain, bags = found
    return Candidate(feature, cut, EVERY, bags, gain, c45_ratio(node, bags, gain, judge))


def best_cut(
    table: Table, node: Node, known: dict[float, list[Case]], least: float, judge: Judge
) -> tuple[float, float, list[list[Case]]] | None:
    """The first cut of largest gain: (cut, gain less its penalty, bags)."""
    cases = [case for group in known.values() for case in group]
    side = 0.1 * float(weight_of(cases)) / table.n_classes
    if not judge.is_above(side, least):
        side = least
    elif judge.is_above(side, 25):
        side = 25
    if judge.is_below(sum(table.times[case.row] for case in cases), 2 * side):
        return None
    n_cuts, highest, best = 0, 0.0, None
    for low, high in pairwise(known):
        if low + 1e-5 >= high:
            continue
        bags = [
            [case for value, group in known.items() if value <= low for case in group],
            [case for value, group in known.items() if value >= high for case in group],
        ]
        if any(judge.is_below(float(weight_of(bag)), side) for bag in bags):
            continue
        n_cuts += 1
        gain = c45_gain(table, node, bags, judge)
        if judge.is_above(gain, highest):
            highest = gain
            middle = (low + high) / 2
            best = (low if middle == high else middle, bags)
    if n_cuts == 0:
        return None
    gain = highest - math.log2(n_cuts) / float(node.weight)
    if best is None or not judge.is_above(gain, 0.0):
        return None
    return best[0], gain, best[1]


def plogp(x: Fraction) -> float:
    """x log2 x."""
    return float(x) * math.log2(x) if x >= SMALL else 0.0


def c45_gain(table: Table, node: Node, bags: list[list[Case]], judge: Judge) -> float:
    """Gain over the known cases, times their share."""
    inside = [sum_up(table, bag) for bag in bags]
    weights = [weight_of(bag) for bag in bags]
    whole = [sum(column) for column in zip(*inside, strict=True)]
    before = plogp(sum(weights)) - math.fsum(plogp(s) for s in whole)
    after = math.fsum(plogp(w) for w in weights) - math.fsum(plogp(s) for sums in inside for s in sums)
    numerator = float(sum(weights) / node.weight) * (before - after)
    return 0.0 if judge.is_equal(numerator, 0.0) else numerator / float(sum(weights))


def c45_ratio(node: Node, bags: list[list[Case]], gain: float, judge: Judge) -> float:
    """Gain over split information, in which the unknown cases are one more bag."""
    weights = [weight_of(bag) for bag in bags]
    unknown = node.weight - sum(weights)
    information = plogp(node.weight) - math.fsum(plogp(w) for w in [*weights, unknown])
    return 0.0 if judge.is_equal(information, 0.0) else gain / (information / float(node.weight))


# ------------------------------------------------------------------------------------------------------ predicting


def branch_of(node: Node, value: float) -> int:
    """The branch of a known value."""
    if node.threshold is None:
        return int(value)
    return 0 if value <= node.threshold else 1


def reach(node: Node, row: Sequence[float], share: Fraction = Fraction(1)) -> Iterator[tuple[Node, Fraction]]:
    """The leaves that a row reaches, with its share in each."""
    if node.is_leaf:
        yield node, share
        return
    value = row[node.feature]
    if math.isnan(value) and node.missing_branch == EVERY:
        for child in node.children:
            if child.weight:
                yield from reach(child, row, share * child.weight / node.weight)
        return
    branch = node.missing_branch if math.isnan(value) else branch_of(node, value)
    yield from reach(node.children[branch], row, share)


def class_shares(root: Node, row: Sequence[float]) -> list[Fraction]:
    """The share of each class."""
    parts = list(reach(root, row))
    return [sum(share * leaf.answer[c] / leaf.answer[-1] for leaf, share in parts) for c in range(len(root.sums))]


def mean(root: Node, row: Sequence[float]) -> Fraction:
    """The mean target."""
    return sum(share * leaf.answer[0] / leaf.answer[-1] for leaf, share in reach(root, row))


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it, parents before children, branch 0 first."""
    yield node
    for child in node.children:
        yield from walk(child)


def leaves(node: Node) -> list[Node]:
    return [below for below in walk(node) if below.is_leaf]


def is_certain(root: Node, tolerance: float = 1e-9) -> bool:
    """Whether every choice was clear of rounding: ties are certain, near ties are not."""
    return all(node.margin > tolerance for node in walk(root))
