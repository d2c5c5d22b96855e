"""A second, slow and plain gradient boosting: what the fast engine is compared with.

Nothing here is shared with the package. Words as in `naive`: a *group* is the rows of a node that have one value (one
bin, one level) of a feature; a *cut* divides the groups of known values in two; a *candidate* is a cut together with
the side of the rows whose value is missing. g and h are the derivatives of one row's loss by its raw score, without its
weight; G and H are their weighted sums over rows.

A node is split as follows:
  1. for each feature that its path allows, in column order, list the candidates;
  2. drop those that break a size limit or a monotone constraint;
  3. take the first among the candidates of largest gain,
     gain = score of branch 0 + score of branch 1 - score of the node - gamma,
     score = -(G v + (H + lambda) v^2 / 2 + alpha |v|) at the value v that the rows would get as a leaf. Where no bound
     moves v, that is 1/2 T(G)^2 / (H + lambda), T being the soft threshold by alpha. A subset of levels has its gain
     less cat_penalty times what its levels gain by chance (`luck_of`).

A tree of several outputs (`grow_outputs`) has a problem for each: scores, and what levels gain by chance, are added up
over them, levels are put in the order of each in turn, H in limits is their mean, and a leaf has a value for each.

Sums of rows are exact and rounded once: candidates that part the rows alike have the same gain, to the bit. Others
whose gains are closer than `TIE` count as equal. A *guide* is a tree that another implementation grew on the same rows:
where sums rounded by up to `rounding` leave a choice open, the guide's choice is taken, and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from naive import branch_of, leaf_of, midpoint, to_whole, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TIE = 1e-9  # relative to the scores that a gain is the difference of
MIN_H = 1e-16  # of a row
COARSE = 2.0**-9  # of a mean weight: as far as another engine may round weights that are not whole, for luck alone
FEW_LEVELS = 64  # of a category at a node: any number of them may go to a branch


@dataclass
class Node:
    """One node of a grown tree; a leaf has no feature and no children."""

    n_rows: int
    G: float
    H: float
    value: float  # the raw score that its rows get if it is a leaf, before the learning rate; a list of several outputs
    depth: int
    rows: list[int]
    feature: int | None = None
    threshold: float | None = None  # value <= threshold goes to branch 0
    subset: frozenset[int] | None = None  # levels that go to branch 0; levels absent at the node go with missing values
    missing_branch: int | None = None
    gain: float = 0.0  # less gamma; of the best candidate, also where it was too small to split
    # Best gain less that of the closest candidate that parts the rows otherwise, and less that of a node that waited at
    # the same time, relative to the scores. Below 1e-9 the choice was a tie.
    gap: float = math.inf
    doubt: float = 0.0  # how much rounding may move the gain
    children: list[Node] = field(default_factory=list)
    surrogates: tuple[()] = ()  # boosted trees have none

    @property
    def is_leaf(self) -> bool:
        return not self.children


@dataclass(frozen=True)
class Bounds:
    """What the monotone constraints above a node allow its value to be."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, value: float) -> float:
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Sums:
    """Weight, G and H of a set of rows: whole numbers over powers of two, hence exact."""

    rows: int  # bit i is set for row i
    whole: tuple[int, int, int]
    unit: tuple[int, int, int]

    def __add__(self, other: Sums) -> Sums:
        whole = tuple(a + b for a, b in zip(self.whole, other.whole, strict=True))
        return Sums(self.rows | other.rows, whole, self.unit)

    def __sub__(self, other: Sums) -> Sums:
        whole = tuple(a - b for a, b in zip(self.whole, other.whole, strict=True))
        return Sums(self.rows & ~other.rows, whole, self.unit)

    @property
    def n_rows(self) -> int:
        return self.rows.bit_count()

    @cached_property
    def weight(self) -> float:
        return self.whole[0] / self.unit[0]

    @cached_property
    def G(self) -> float:  # noqa: N802 the letter of every text on boosting
        return self.whole[1] / self.unit[1]

    @cached_property
    def H(self) -> float:  # noqa: N802 as G
        return self.whole[2] / self.unit[2]


@dataclass(frozen=True)
class Candidate:
    feature: int
    threshold: float | None
    subset: frozenset[int] | None  # present levels that go to branch 0
    present: frozenset[int]  # all present levels
    missing_branch: int | None  # None: no row of the node is missing
    sums: tuple[Sums, Sums]  # of each branch

    @property
    def division(self) -> frozenset[int]:
        """How the rows are parted, whichever branch is which."""
        return frozenset(sums.rows for sums in self.sums)


@dataclass(frozen=True)
class Scored:
    candidate: Candidate
    gain: float
    scale: float  # sum of the three scores: a gain is exact to its rounding
    doubt: float  # how much rounding may move the gain


@dataclass(frozen=True)
class Problem:
    """Rows and parameters of one tree; the names are those of the package."""

    columns: Sequence[Sequence[float]]  # columns[j][i]: number, or index of a level; nan if missing
    of_rows: list[Sums]  # weight, w g and w h of each row
    n_levels: Sequence[int]  # 0 for numbers
    bins: Sequence[Sequence[tuple[float, float]] | None]  # lowest and highest value of each bin; None: every value
    max_leaf_nodes: int | None = None  # None: by level, which max_depth ends
    max_depth: int | None = None
    min_samples_leaf: int = 1
    min_samples_split: int = 2
    min_weight_fraction_leaf: float = 0.0
    min_child_weight: float = 0.0
    reg_lambda: float = 0.0
    reg_alpha: float = 0.0
    gamma: float = 0.0
    pruning: str = "pre"  # "pre": no split whose gain gamma eats up; "post": such splits are removed from below
    cat_smooth: float = 0.0
    cat_penalty: float = 0.0  # of what levels gain by chance
    max_cat_threshold: int = 65_535  # levels in the branch that has fewer
    monotone: Sequence[int] | None = None  # -1, 0, 1 per feature
    interactions: Sequence[Sequence[int]] | None = None
    rounding: float = 0.0  # of G and H, relative to the sums of all |g| and h
    outputs: tuple[Problem, ...] = ()  # of the first of several: all of them, in their order

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @cached_property
    def errors(self) -> tuple[float, float]:
        """Most that rounding changes G and H by."""
        sizes = ([abs(sums.G) for sums in self.of_rows], [sums.H for sums in self.of_rows])
        return self.rounding * math.fsum(sizes[0]), self.rounding * math.fsum(sizes[1])

    @cached_property
    def min_weight_leaf(self) -> float:
        return self.min_weight_fraction_leaf * add_up(self, range(len(self.of_rows))).weight


@dataclass
class OpenNode:
    """A node that can be split, with its best candidate."""

    node: Node
    bounds: Bounds
    used: frozenset[int]  # features tested above it
    best: Scored
    guide: object | None


# ------------------------------------------------------------------------------------------------------------ growing


def grow(
    columns: Sequence[Sequence[float]],
    g: Sequence[float],
    h: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    n_levels: Sequence[int] | None = None,
    bins: Sequence[Sequence[tuple[float, float]] | None] | None = None,
    guide: object | None = None,
    **parameters,
) -> Node:
    """Grow a tree on rows of positive weight; `Problem` says what the arguments mean."""
    weights = [1.0] * len(columns[0]) if weights is None else weights
    problem = Problem(
        columns=columns,
        of_rows=whole_rows(weights, g, h),
        n_levels=n_levels or [0] * len(columns),
        bins=bins or [None] * len(columns),
        **parameters,
    )
    return grow_problem(problem, [i for i, weight in enumerate(weights) if weight > 0], guide)


def grow_outputs(
    columns: Sequence[Sequence[float]],
    g: Sequence[Sequence[float]],
    h: Sequence[Sequence[float]],
    weights: Sequence[float],
    *,
    n_levels: Sequence[int] | None = None,
    bins: Sequence[Sequence[tuple[float, float]] | None] | None = None,
    guide: object | None = None,
    **parameters,
) -> Node:
    """Grow a tree for several outputs; g[k], h[k] are the derivatives of the rows by output k."""
    problems = tuple(
        Problem(
            columns=columns,
            of_rows=whole_rows(weights, *of_output),
            n_levels=n_levels or [0] * len(columns),
            bins=bins or [None] * len(columns),
            **parameters,
        )
        for of_output in zip(g, h, strict=True)
    )
    first = replace(problems[0], outputs=problems)
    return grow_problem(first, [i for i, weight in enumerate(weights) if weight > 0], guide)


def grow_problem(problem: Problem, rows: list[int], guide: object | None) -> Node:
    root, root_open = make_node(problem, rows, 0, Bounds(), frozenset(), guide)
    waiting = [root_open] if root_open else []  # in order of creation
    n_leaves = 1
    while waiting and (problem.max_leaf_nodes is None or n_leaves < problem.max_leaf_nodes):
        chosen = next_to_split(problem, waiting)
        waiting.remove(chosen)
        waiting += split(problem, chosen)
        n_leaves += 1
    if problem.pruning == "post":
        prune(root, guide)
    return root


def make_node(
    problem: Problem, rows: list[int], depth: int, bounds: Bounds, used: frozenset[int], guide: object | None
) -> tuple[Node, OpenNode | None]:
    """The node of these rows, as a leaf, and its best candidate if it may be split."""
    sums = add_up(problem, rows)
    value = [value_of(one, sums_in(one, sums), bounds) for one in problem.outputs] or value_of(problem, sums, bounds)
    node = Node(sums.n_rows, sums.G, mean_h(problem, sums), value, depth, rows)
    if (problem.max_depth is not None and depth >= problem.max_depth) or len(rows) < problem.min_samples_split:
        return node, None
    scored = score_candidates(problem, sums, rows, bounds, used, guide)
    if not scored:
        return node, None
    best = choose(scored, guide)
    node.gain, node.doubt = best.gain, best.doubt
    rivals = [abs(best.gain - other.gain) / other.scale for other in scored if other is not best and other.scale]
    node.gap = min(rivals, default=math.inf)
    needed = 0.0 if problem.pruning == "pre" else -problem.gamma
    is_open_question = guide is not None and abs(best.gain - needed) <= best.doubt
    if not (is_split(guide) if is_open_question else best.gain > needed + TIE * best.scale):
        return node, None
    return node, OpenNode(node, bounds, used, best, guide)


def choose(scored: list[Scored], guide: object | None) -> Scored:
    """The first of the highest gain; the guide's among those that rounding may have made the highest."""
    highest = max(scored, key=lambda item: item.gain)
    if is_split(guide):
        for item in scored:
            if is_test_of(guide, item.candidate) and item.gain >= highest.gain - highest.doubt - item.doubt:
                return item
    return next(item for item in scored if item.gain >= highest.gain - TIE * highest.scale)


def next_to_split(problem: Problem, waiting: list[OpenNode]) -> OpenNode:
    """The waiting node of highest gain, the first created among equals."""
    highest = max(waiting, key=lambda item: item.best.gain)
    chosen = next(item for item in waiting if item.best.gain >= highest.best.gain - TIE * highest.best.scale)
    if problem.max_leaf_nodes is not None:
        for item in waiting:
            slack = highest.best.doubt + item.best.doubt
            if is_split(item.guide) and item.best.gain >= highest.best.gain - slack:
                chosen = item
                break
        rivals = [item for item in waiting if item is not chosen and item.best.scale]
        apart = [abs(chosen.best.gain - item.best.gain) / item.best.scale for item in rivals]
        chosen.node.gap = min([chosen.node.gap, *apart])
    return chosen


def split(problem: Problem, item: OpenNode) -> list[OpenNode]:
    """Turn a waiting node into an inner node; return those of its children that may be split."""
    node, best = item.node, item.best.candidate
    node.feature, node.threshold, node.subset = best.feature, best.threshold, best.subset
    # A tie of the two H goes to branch 0.
    heavier = 1 if mean_h(problem, best.sums[1]) > mean_h(problem, best.sums[0]) else 0
    node.missing_branch = heavier if best.missing_branch is None else best.missing_branch
    if best.subset is not None and node.missing_branch == 0:
        node.subset = best.subset | (set(range(problem.n_levels[best.feature])) - best.present)
    still_open = []
    for branch, bounds in enumerate(bounds_below(problem, best, item.bounds)):
        part = [i for i in node.rows if branch_of(node, problem.columns[best.feature][i]) == branch]
        assert add_up(problem, part) == best.sums[branch], "the rule does not part the rows as the candidate did"
        guide = item.guide.children[branch] if is_split(item.guide) else None
        child, child_open = make_node(problem, part, node.depth + 1, bounds, item.used | {best.feature}, guide)
        node.children.append(child)
        if child_open:
            still_open.append(child_open)
    return still_open


def prune(node: Node, guide: object | None) -> None:
    """Turn splits of negative gain above two leaves into leaves, from below; rounding of zero is left to the guide."""
    for branch, child in enumerate(node.children):
        prune(child, guide.children[branch] if is_split(guide) else None)
    if node.children and all(child.is_leaf for child in node.children):
        is_open_question = guide is not None and abs(node.gain) <= node.doubt
        if not is_split(guide) if is_open_question else node.gain < -node.doubt:
            node.children = []
            node.feature = node.threshold = node.subset = node.missing_branch = None


def is_split(guide: object | None) -> bool:
    return guide is not None and not guide.is_leaf


def is_test_of(guide: object, candidate: Candidate) -> bool:
    """Whether the guide tests what the candidate does."""
    subset = None if guide.subset is None else guide.subset & candidate.present
    return (
        (guide.feature, guide.threshold, subset) == (candidate.feature, candidate.threshold, candidate.subset)
    ) and candidate.missing_branch in (None, guide.missing_branch)


# --------------------------------------------------------------------------------------------------------- candidates


def score_candidates(
    problem: Problem, sums: Sums, rows: list[int], bounds: Bounds, used: frozenset[int], guide: object | None
) -> list[Scored]:
    """Every allowed candidate in the order of the tie rule; of those that part the rows alike, the first.

    And the guide's: levels in the order of another output may part the rows alike with the branches exchanged.
    """
    scored, divisions = [], set()
    for feature in allowed_features(problem, used):
        for candidate in candidates_of_all(problem, feature, rows, guide):
            key = (candidate.division, feature if candidate.subset and problem.cat_penalty else None)
            is_new = key not in divisions or (is_split(guide) and is_test_of(guide, candidate))
            if is_new and is_allowed(problem, candidate, bounds):
                divisions.add(key)
                one = score_candidate(problem, sums, candidate, bounds)
                if candidate.subset and problem.cat_penalty:
                    luck, doubt = luck_of(problem, sums, rows, candidate)
                    one = replace(one, gain=one.gain - luck, doubt=one.doubt + doubt)
                scored.append(one)
    return scored


def luck_of(problem: Problem, sums: Sums, rows: list[int], candidate: Candidate) -> tuple[float, float]:
    """What the levels of a subset gain by chance, and how much rounding may move that."""
    if candidate.subset == candidate.present:  # known rows against missing ones
        return 0.0, 0.0
    column = problem.columns[candidate.feature]
    of_levels = {level: add_up(problem, [i for i in rows if column[i] == level]) for level in sorted(candidate.present)}
    levels = {level: mean_h(problem, of_level) for level, of_level in of_levels.items()}
    noise = relative = 0.0
    for one in problem.outputs or (problem,):
        worth, doubt = noise_of(one, sums_in(one, sums), rows)
        noise, relative = noise + worth, max(relative, doubt)
    few = 1 / (1 + mean_h(problem, sums) / len(levels))
    roots = math.fsum(math.sqrt(H) for H in levels.values())
    share = math.fsum(math.sqrt(levels[level]) for level in candidate.subset) / roots
    spread = share * (1 - share)
    density = (1 - few) * 1.342 * spread**0.875 + few * math.sqrt(spread)
    left, right = (mean_h(problem, part) for part in candidate.sums)
    gain = (roots * density) ** 2 * (1 / left + 1 / right)
    error = max(one.errors[1] for one in problem.outputs or (problem,))
    relative += error * (1 / left + 1 / right + 4 * math.fsum(1 / math.sqrt(H) for H in levels.values()) / roots)
    return noise * max(gain - 4 / math.pi, 0.0), noise * gain * (relative + TIE)


def noise_of(problem: Problem, sums: Sums, rows: list[int]) -> tuple[float, float]:
    """What a unit of luck is worth among some rows, and how much rounding may change that, relative to it."""
    squares = math.fsum(problem.of_rows[i].G ** 2 / problem.of_rows[i].weight for i in rows)
    sizes = math.fsum(abs(problem.of_rows[i].G) / problem.of_rows[i].weight for i in rows)
    relative = 2 * problem.errors[0] * sizes / squares if squares else 0.0
    if problem.rounding and squares and not all(row.weight.is_integer() for row in problem.of_rows):
        whole = total(problem, problem.of_rows)
        coarse = COARSE * whole.weight / sum(row.weight > 0 for row in problem.of_rows)
        relative += coarse * math.fsum((problem.of_rows[i].G / problem.of_rows[i].weight) ** 2 for i in rows) / squares
    return problem.cat_penalty * squares / sums.H / 2, relative


def allowed_features(problem: Problem, used: frozenset[int]) -> list[int]:
    """Features that share a set with all features above; those in no set are one more set together."""
    features = range(problem.n_features)
    if problem.interactions is None:
        return list(features)
    sets = [set(group) for group in problem.interactions]
    sets.append(set(features) - set().union(*sets))
    return [j for j in features if any(used | {j} <= group for group in sets)]


def candidates_of_all(problem: Problem, feature: int, rows: list[int], guide: object | None) -> list[Candidate]:
    """Every candidate of one feature; levels go in the order of each output in turn."""
    if not problem.outputs:
        return candidates(problem, feature, rows, guide)
    orders = problem.outputs if problem.n_levels[feature] else problem.outputs[:1]
    found = [one for order in orders for one in candidates(order, feature, rows, guide)]
    return [replace(one, sums=tuple(sums_in(problem, part) for part in one.sums)) for one in found]


def candidates(problem: Problem, feature: int, rows: list[int], guide: object | None) -> list[Candidate]:
    """Every candidate of one feature, cuts ascending: missing rows in branch 1, by themselves, in branch 0."""
    column = problem.columns[feature]
    known_rows = [i for i in rows if not math.isnan(column[i])]
    known = add_up(problem, known_rows)
    missing = add_up(problem, [i for i in rows if math.isnan(column[i])])
    present = frozenset(int(column[i]) for i in known_rows) if problem.n_levels[feature] else frozenset()
    if problem.n_levels[feature]:
        cuts = subset_cuts(problem, feature, known_rows, guide)
    else:
        cuts = threshold_cuts(problem, feature, known_rows)
    if not missing.n_rows:
        return [Candidate(feature, cut, subset, present, None, (left, known - left)) for cut, subset, left in cuts]
    found = [Candidate(feature, cut, subset, present, 1, (left, known - left + missing)) for cut, subset, left in cuts]
    if known.n_rows:
        whole = (None, present) if problem.n_levels[feature] else (math.inf, None)
        found.append(Candidate(feature, *whole, present, 1, (known, missing)))
    found += [Candidate(feature, cut, subset, present, 0, (left + missing, known - left)) for cut, subset, left in cuts]
    return found


Cut = tuple[float | None, frozenset[int] | None, Sums]  # threshold, levels and rows of branch 0


def threshold_cuts(problem: Problem, feature: int, known: list[int]) -> list[Cut]:
    """The cuts between neighbouring values, or bins, that occur at the node."""
    column, bins = problem.columns[feature], problem.bins[feature]
    groups: dict[tuple[float, float], list[int]] = {}
    for i in sorted(known, key=lambda i: column[i]):
        value = column[i]
        edges = (value, value) if bins is None else next((a, b) for a, b in bins if a <= value <= b)
        groups.setdefault(edges, []).append(i)
    lefts = list(accumulate(add_up(problem, part) for part in groups.values()))[:-1]
    cuts = zip(pairwise(groups), lefts, strict=True)
    return [(threshold_between(high, low, bins or []), None, left) for ((_, high), (low, _)), left in cuts]


def threshold_between(high: float, low: float, bins: Sequence[tuple[float, float]]) -> float:
    """The midpoint, or the highest value of the bin that it would tear apart: one without rows at the node."""
    middle = midpoint(high, low)
    return next((last for first, last in bins if first <= middle < last), middle)


def subset_cuts(problem: Problem, feature: int, known: list[int], guide: object | None) -> list[Cut]:
    """Levels put in the order of G / (H + cat_smooth), ties by index, then cut like numbers."""
    column = problem.columns[feature]
    levels: dict[int, list[int]] = {}
    for i in known:
        levels.setdefault(int(column[i]), []).append(i)
    sums = {level: add_up(problem, part) for level, part in levels.items()}
    place = {level: ratio(s.G, s.H + problem.cat_smooth) for level, s in sums.items()}
    order = sorted(place, key=lambda level: (place[level], level))
    subsets = [frozenset(order[:end]) for end in range(1, len(order))]
    if guide is not None:
        subsets = sure_subsets(problem, levels, place, sums, subsets)
        wanted = guide.subset & set(order) if is_split(guide) and guide.feature == feature else frozenset()
        is_part = wanted and wanted != set(order)
        if is_part and wanted not in subsets and is_prefix(problem, place, sums, wanted):
            subsets.append(wanted)
    most = problem.max_cat_threshold if len(order) > FEW_LEVELS else len(order)
    allowed = [one for one in subsets if min(len(one), len(order) - len(one)) <= most]
    return [(None, subset, total(problem, [sums[v] for v in subset])) for subset in allowed]


def sure_subsets(
    problem: Problem,
    levels: dict[int, list[int]],
    place: dict[int, float],
    sums: dict[int, Sums],
    subsets: list[frozenset[int]],
) -> list[frozenset[int]]:
    """The subsets that no rounding takes away: levels of the same rows, which keep their order, or places apart."""
    rows = {v: sorted(problem.of_rows[i].whole for i in part) for v, part in levels.items()}

    def is_sure(low: int, high: int) -> bool:
        slack = place_error(problem, place, sums, low) + place_error(problem, place, sums, high)
        return rows[low] == rows[high] or place[high] - place[low] > slack

    return [one for one in subsets if all(is_sure(low, high) for low in one for high in place.keys() - one)]


def is_prefix(problem: Problem, place: dict[int, float], sums: dict[int, Sums], subset: frozenset[int]) -> bool:
    """Whether the levels may have been the first: where rounding moves them past each other."""
    error = {level: place_error(problem, place, sums, level) for level in place}
    highest = max(place[v] - error[v] for v in subset)
    return highest <= min(place[v] + error[v] for v in place.keys() - subset)


def place_error(problem: Problem, place: dict[int, float], sums: dict[int, Sums], level: int) -> float:
    """How much rounding of G and H may move a level."""
    error = problem.errors[0] + abs(place[level]) * problem.errors[1]
    return ratio(error, sums[level].H + problem.cat_smooth)


def is_allowed(problem: Problem, candidate: Candidate, bounds: Bounds) -> bool:
    """Whether both branches are large enough and the values of a monotone feature's branches in order."""
    for sums in candidate.sums:
        if (
            sums.n_rows < problem.min_samples_leaf
            or problem.min_child_weight > mean_h(problem, sums)
            or sums.weight < problem.min_weight_leaf
        ):
            return False
    if problem.monotone is None:
        return True
    left, right = (value_of(problem, sums, bounds) for sums in candidate.sums)
    return problem.monotone[candidate.feature] * (right - left) >= 0


def bounds_below(problem: Problem, best: Candidate, bounds: Bounds) -> tuple[Bounds, Bounds]:
    """The bounds of each branch: values of a monotone feature's branches stay apart by the mean of the two."""
    sign = 0 if problem.monotone is None else problem.monotone[best.feature]
    if not sign:
        return bounds, bounds
    left, right = (value_of(problem, sums, bounds) for sums in best.sums)
    middle = (left + right) / 2
    below, above = Bounds(bounds.low, middle), Bounds(middle, bounds.high)
    return (below, above) if sign > 0 else (above, below)


# ---------------------------------------------------------------------------------------------------- sums and scores


def whole_rows(weights: Sequence[float], g: Sequence[float], h: Sequence[float]) -> list[Sums]:
    """The sums of single rows."""
    triples = [(float(w), float(w) * float(a), float(w) * float(b)) for w, a, b in zip(weights, g, h, strict=True)]
    wholes, units = zip(*(to_whole(numbers) for numbers in zip(*triples, strict=True)), strict=True)
    unit = tuple(one.denominator for one in units)
    return [Sums(1 << i, whole, unit) for i, whole in enumerate(zip(*wholes, strict=True))]


def sums_in(problem: Problem, sums: Sums) -> Sums:
    """The sums of the same rows in another problem: that of another output."""
    return add_up(problem, [i for i in range(len(problem.of_rows)) if sums.rows >> i & 1])


def mean_h(problem: Problem, sums: Sums) -> float:
    """H, of several outputs their mean."""
    if not problem.outputs:
        return sums.H
    return math.fsum(sums_in(one, sums).H for one in problem.outputs) / len(problem.outputs)


def add_up(problem: Problem, rows: Iterable[int]) -> Sums:
    return total(problem, [problem.of_rows[i] for i in rows])


def total(problem: Problem, parts: Sequence[Sums]) -> Sums:
    return sum(parts, start=Sums(0, (0, 0, 0), problem.of_rows[0].unit))


def soft_threshold(G: float, alpha: float) -> float:
    return math.copysign(max(abs(G) - alpha, 0.0), G)


def ratio(above: float, below: float) -> float:
    return above / below if below > 0 else 0.0


def value_of(problem: Problem, sums: Sums, bounds: Bounds) -> float:
    """The value that minimises the second-order loss of the rows, moved inside the bounds."""
    return bounds.clip(-ratio(soft_threshold(sums.G, problem.reg_alpha), sums.H + problem.reg_lambda))


def score(problem: Problem, sums: Sums, bounds: Bounds) -> float:
    """How much the second-order loss of the rows falls when they get their value instead of zero."""
    value = value_of(problem, sums, bounds)
    quadratic = (sums.H + problem.reg_lambda) * value**2 / 2
    return -(sums.G * value + quadratic + problem.reg_alpha * abs(value))


def score_candidate(problem: Problem, sums: Sums, candidate: Candidate, bounds: Bounds) -> Scored:
    """The gain of a candidate, and how well it is known."""
    terms, doubt = [], 0.0
    for one in problem.outputs or (problem,):
        parts = [sums_in(one, part) if problem.outputs else part for part in (sums, *candidate.sums)]
        scores = [score(one, part, bounds) for part in parts]
        terms += [-scores[0], *scores[1:]]
        for part in parts:
            value = abs(value_of(one, part, bounds)) + ratio(one.errors[0], part.H + one.reg_lambda)
            doubt += value * one.errors[0] + value**2 / 2 * one.errors[1]
    scale = math.fsum(map(abs, terms))
    return Scored(candidate, math.fsum([*terms, -problem.gamma]), scale, doubt + TIE * scale)


# ------------------------------------------------------------------------------------------------------------- losses


def logit(p: float) -> float:
    return math.log(p / (1 - p))


def logistic(y: float, f: float, _) -> tuple[float, float]:
    p, q = 1 / (1 + math.exp(-f)), 1 / (1 + math.exp(f))  # q is 1 - p without its rounding
    return -q if y == 1 else p - y, p * q


def pinball_slope(y: float, f: float, loss: Loss, below: float, above: float) -> float:
    if y == f:
        return 0.0 if loss.is_flat_at_y else above
    return -below if y > f else above


def tweedie(y: float, f: float, loss: Loss) -> tuple[float, float]:
    one, two = y * math.exp(f * (1 - loss.power)), math.exp(f * (2 - loss.power))
    return two - one, (2 - loss.power) * two - (1 - loss.power) * one


# (g, h) of one row with target y and raw score f.
GRADIENTS = {
    "squared_error": lambda y, f, _: (f - y, 1.0),
    "absolute_error": lambda y, f, loss: (pinball_slope(y, f, loss, 1.0, 1.0), 1.0),
    "quantile": lambda y, f, loss: (pinball_slope(y, f, loss, loss.alpha, 1 - loss.alpha), 1.0),
    "huber": lambda y, f, delta: (min(max(f - y, -delta), delta), 1.0),
    "poisson": lambda y, f, _: (math.exp(f) - y, math.exp(f)),
    "gamma": lambda y, f, _: (1 - y * math.exp(-f), y * math.exp(-f)),
    "tweedie": tweedie,
    "log_loss": logistic,
    "exponential": lambda y, f, _: (-math.exp(-f), math.exp(-f)) if y else (math.exp(f), math.exp(f)),
}

# The best constant raw score from the mean of y.
LINKS = {
    "squared_error": float,
    "poisson": math.log,
    "gamma": math.log,
    "tweedie": math.log,
    "log_loss": logit,
    "exponential": lambda p: logit(p) / 2,
}


@dataclass(frozen=True)
class Loss:
    """The loss of one row by its raw score, halved or not as scikit-learn has it, and what boosting needs of it."""

    name: str
    alpha: float = 0.9  # quantile: its level; huber: the share of residuals that are squared
    power: float = 1.5  # tweedie
    n_classes: int = 0  # log_loss; 2 has one raw score, more have one per class
    hessian_factor: float = 1.0  # of p (1 - p), three classes and more
    is_flat_at_y: bool = True  # slope 0 at the kink of absolute_error and quantile; scikit-learn's is that above y

    @property
    def n_raw(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def level(self) -> float:
        return 0.5 if self.name == "absolute_error" else self.alpha

    def start(self, y: Sequence[float], weights: Sequence[float]) -> list[float]:
        """The raw scores that minimise the loss of all rows together; for huber, the median."""
        if self.has_own_leaf:
            return [quantile(y, weights, 0.5 if self.name == "huber" else self.level)]
        if self.n_raw > 1:
            of_class = [math.fsum(w for w, v in zip(weights, y, strict=True) if v == k) for k in range(self.n_raw)]
            scores = [math.log(weight / math.fsum(weights)) for weight in of_class]
            return [score - math.fsum(scores) / self.n_raw for score in scores]
        return [LINKS[self.name](math.fsum(w * v for w, v in zip(weights, y, strict=True)) / math.fsum(weights))]

    def gradients(self, y: float, raw: Sequence[float], delta: float = math.nan) -> list[tuple[float, float]]:
        """(g, h) of one row by each of its raw scores; `delta` is huber's bound between square and line."""
        if self.n_raw == 1:
            g, h = GRADIENTS[self.name](y, raw[0], delta if self.name == "huber" else self)
            return [(g, max(h, MIN_H))]
        parts = [math.exp(score - max(raw)) for score in raw]
        shares = [part / math.fsum(parts) for part in parts]
        return [(p - (y == k), max(self.hessian_factor * p * (1 - p), MIN_H)) for k, p in enumerate(shares)]

    def delta(self, y: Sequence[float], weights: Sequence[float], raw: Sequence[float]) -> float:
        """Huber's bound: the alpha-quantile of the absolute residuals."""
        return quantile([abs(a - b) for a, b in zip(y, raw, strict=True)], weights, self.alpha)

    @property
    def has_own_leaf(self) -> bool:
        """Whether the value of a leaf follows from its residuals and not from G and H."""
        return self.name in ("absolute_error", "quantile", "huber")

    def leaf(self, residuals: Sequence[float], weights: Sequence[float], delta: float) -> float:
        """The quantile of the residuals, or Friedman's step for huber: the median and the mean clipped distance."""
        if self.name != "huber":
            return quantile(residuals, weights, self.level)
        median = quantile(residuals, weights, 0.5)
        clipped = [w * min(max(r - median, -delta), delta) for r, w in zip(residuals, weights, strict=True)]
        return median + math.fsum(clipped) / math.fsum(weights)


def quantile(values: Sequence[float], weights: Sequence[float], level: float) -> float:
    """The value where the cumulative weight passes a share; the mean of two where it is met exactly."""
    pairs = sorted((v, w) for v, w in zip(values, weights, strict=True) if w > 0)
    wanted = level * math.fsum(weights)
    for k, (value, _) in enumerate(pairs):
        reached = math.fsum(w for _, w in pairs[: k + 1])
        if k + 1 < len(pairs) and math.isclose(reached, wanted, rel_tol=1e-12):
            return (value + pairs[k + 1][0]) / 2
        if reached > wanted or k + 1 == len(pairs):
            return value
    raise ValueError("no row has a positive weight")


# ----------------------------------------------------------------------------------------------------------- boosting


@dataclass
class Boosted:
    """What boosting gives back: rounds of one tree per raw score, and the raw scores of the training rows."""

    loss: Loss
    start: list[float]
    learning_rate: float
    rounds: list[list[Node]]
    raw: list[list[float]]  # one list of raw scores per row


def boost(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float] | None = None,
    *,
    loss: Loss,
    n_rounds: int,
    learning_rate: float = 0.1,
    newton: bool = True,
    start: Sequence[float] | None = None,
    **parameters,
) -> Boosted:
    """Boost for a number of rounds; `start` defaults to the optimal constants, `parameters` are those of `grow`."""
    weights = [1.0] * len(y) if weights is None else list(weights)
    start = loss.start(y, weights) if start is None else list(start)
    model = Boosted(loss, start, learning_rate, [], [list(start) for _ in y])
    delta = first_delta(loss, y, weights, start)
    for _ in range(n_rounds):
        if loss.name == "huber" and not newton:
            delta = loss.delta(y, weights, [row[0] for row in model.raw])
        trees = grow_round(columns, y, weights, loss, model.raw, delta, newton=newton, **parameters)
        model.rounds.append(trees)
        for i, raw in enumerate(model.raw):
            for k, tree in enumerate(trees):
                raw[k] += learning_rate * leaf_of(tree, [column[i] for column in columns]).value
    return model


def first_delta(loss: Loss, y: Sequence[float], weights: Sequence[float], start: Sequence[float]) -> float:
    """Huber's bound where it stays the same for all rounds: that of the distances from the start."""
    return loss.delta(y, weights, [start[0]] * len(y)) if loss.name == "huber" else math.nan


def grow_round(
    columns: Sequence[Sequence[float]],
    y: Sequence[float],
    weights: Sequence[float],
    loss: Loss,
    raw: Sequence[Sequence[float]],
    delta: float,
    *,
    newton: bool,
    guides: Sequence[object] | None = None,
    **parameters,
) -> list[Node]:
    """One tree per raw score, all from the raw scores before the round; `raw[i]` are those of row i."""
    derivatives = [loss.gradients(y[i], raw[i], delta) for i in range(len(y))]
    trees = []
    for k in range(loss.n_raw):
        g = [row[k][0] for row in derivatives]
        h = [row[k][1] for row in derivatives]
        guide = None if guides is None else guides[k]
        tree = grow(columns, g, h if newton else [1.0] * len(y), weights, guide=guide, **parameters)
        for node in walk(tree):
            if loss.has_own_leaf:
                residuals = [y[i] - raw[i][k] for i in node.rows]
                node.value = loss.leaf(residuals, [weights[i] for i in node.rows], delta)
            elif not newton:
                node.value = newton_step(g, h, weights, node.rows, **parameters)
        trees.append(tree)
    return trees


def grow_vector_round(
    columns: Sequence[Sequence[float]],
    derivatives: Sequence[Sequence[tuple[float, float]]],
    weights: Sequence[float],
    *,
    newton: bool = True,
    **parameters,
) -> Node:
    """One tree for all raw scores; derivatives[i][k] are those of row i by raw score k."""
    g, h = ([[row[k][which] for row in derivatives] for k in range(len(derivatives[0]))] for which in range(2))
    tree = grow_outputs(columns, g, h if newton else [[1.0] * len(row) for row in h], weights, **parameters)
    for node in walk(tree) if not newton else ():
        node.value = [newton_step(*pair, weights, node.rows, **parameters) for pair in zip(g, h, strict=True)]
    return tree


def newton_step(
    g: Sequence[float],
    h: Sequence[float],
    weights: Sequence[float],
    rows: list[int],
    reg_lambda: float = 0.0,
    reg_alpha: float = 0.0,
    **_,
) -> float:
    """The line search of a leaf of a tree that was grown on g alone: one Newton step."""
    G = math.fsum(weights[i] * g[i] for i in rows)
    H = math.fsum(weights[i] * h[i] for i in rows)
    return -ratio(soft_threshold(G, reg_alpha), H + reg_lambda)


def predict_raw(model: Boosted, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Raw scores of new rows, one number per feature each."""
    return [
        [
            start + model.learning_rate * math.fsum(leaf_of(trees[k], row).value for trees in model.rounds)
            for k, start in enumerate(model.start)
        ]
        for row in rows
    ]
