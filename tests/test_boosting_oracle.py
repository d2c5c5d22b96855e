"""The engine of boosting against the naive one: the same tests, the same values, whatever the options.

Each round is compared by itself: the naive tree is grown from the raw scores that the engine had before the round, and
takes the engine's tree as its guide where the engine's rounding of gradients leaves a choice open.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import naive
import naive_boosting as nb
import strategies
from spinney import _jit
from spinney._types import CONTROL_SIZE, N_CODES, OFFSET, SUBSET
from spinney.ensemble.boosted_rows import BoostedRows
from spinney.ensemble.boosting import Boosting, Constraints
from spinney.ensemble.loss_names import make_loss
from spinney.ensemble.losses import row_weights
from spinney.table.binning import bin_table
from spinney.tree.boost import BoostParams

CLOSE = 1e-6
ROUNDING = 2.0**-23  # of the sum of all |g|, or h: 40 rows or so, each rounded to 2**-31 of it
LEAF_ROUNDING = 2.0**-55  # the same of the sums that leaves are made from: 40 rows, each to 2**-61

NUMBERS = ["squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie"]
OWN_LEAVES = ("absolute_error", "quantile", "huber")
PLAIN = {
    "max_leaf_nodes": 31,
    "min_samples_leaf": 1,
    "min_child_weight": 0.0,
    "learning_rate": 0.3,
    "cat_smooth": 1.7,
    "max_cat_threshold": 65_535,
}


# --------------------------------------------------------------------------------------------------- both, side by side


@dataclass
class Case:
    """Rows of positive weight, a loss for them, and how to boost; names are those of the package."""

    columns: list[list[float]]
    n_levels: list[int]
    y: list[float]
    weights: list[float] | None
    loss: str
    n_classes: int = 0
    alpha: float = 0.77
    power: float = 1.3
    max_bins: int | None = None
    monotone: list[int] | None = None
    interactions: list[list[int]] | None = None
    offsets: list[float] | None = None  # added to the raw scores to start from
    params: dict[str, object] = field(default_factory=dict)

    @property
    def all_params(self):
        return {**PLAIN, **self.params}

    @property
    def newton(self):
        return bool(self.all_params.get("newton", True))


def bins_of(case, kernels):
    levels = [tuple(range(n)) if n else None for n in case.n_levels]
    weight = row_weights(None if case.weights is None else np.array(case.weights), len(case.y))
    return bin_table(fast.ColumnTable(case.columns, levels), weight.values, case.max_bins, kernels)


def make_engine(case, *, kernels=None, n_workers=1, max_bins=255):
    kernels = kernels or fast.compiled()
    y = np.array(case.y, np.float64)
    weight = None if case.weights is None else np.array(case.weights)
    loss = make_loss(case.loss, alpha=case.alpha, power=case.power, n_classes=case.n_classes, newton=case.newton)
    raw = np.repeat(loss.start(y, weight)[:, np.newaxis], len(y), axis=1)
    raw += 0.0 if case.offsets is None else np.array(case.offsets)
    sets = case.interactions
    if sets is not None:
        rest = sorted(set(range(len(case.columns))).difference(*sets))
        sets = [group for group in [*sets, rest] if group]
    monotone = None if case.monotone is None else np.array(case.monotone, np.int8)
    return Boosting(
        BoostedRows(bins_of(case, kernels), y, weight, raw), loss, BoostParams(max_bins=max_bins, **case.all_params),
        kernels, n_workers, constraints=Constraints(monotone, sets),
    )  # fmt: skip


def run(case, n_rounds, **options):
    """The engine after some rounds, its threads sent home."""
    engine = make_engine(case, **options)
    for _ in range(n_rounds):
        engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    engine.close()
    return engine


@dataclass
class Found:
    """A node of the engine's tree."""

    n_rows: int
    weight: float
    gain: float  # of all tests from here on down
    value: float
    feature: int | None = None
    threshold: float | None = None
    subset: frozenset[int] | None = None
    missing_branch: int | None = None
    children: list["Found"] = field(default_factory=list)
    surrogates: tuple[()] = ()

    @property
    def is_leaf(self):
        return not self.children


def as_found(tree, node=0):
    """A tree of the package as nodes, with the shrunken values of its leaves."""
    weight = float(tree.weight[node])
    found = Found(int(tree.n_rows[node]), weight, weight * float(tree.impurity[node]), float(tree.threshold[node]))
    if not tree.is_leaf[node]:
        found.feature = int(tree.feature[node])
        found.missing_branch = int(tree.missing_branch[node])
        if tree.kind[node] == SUBSET:
            found.subset = frozenset(np.flatnonzero(tree.subset(node)).tolist())
        else:
            found.threshold = float(tree.threshold[node])
        first = int(tree.first_child[node])
        found.children = [as_found(tree, first), as_found(tree, first + 1)]
    return found


def naive_bins(case, bins):
    """Lowest and highest value of each bin, where numbers are binned."""
    if case.max_bins is None and "candidates" not in case.params:
        return None
    pairs = []
    for j, n_levels in enumerate(case.n_levels):
        first, n_codes = int(bins.features[OFFSET, j]), int(bins.features[N_CODES, j])
        edges = bins.edges[:, first : first + n_codes].T.tolist()
        pairs.append(None if n_levels else [(low, high) for low, high in edges])
    return pairs


def naive_loss(case, engine):
    factor = engine.loss.parameter if case.n_classes > 2 else 1.0
    return nb.Loss(case.loss, case.alpha, case.power, case.n_classes, factor)


def naive_params(case):
    others = ("learning_rate", "newton", "subsample", "max_features", "max_tree_features", "candidates", "seed")
    params = {name: value for name, value in case.all_params.items() if name not in others}
    return {**params, "n_levels": case.n_levels, "monotone": case.monotone, "interactions": case.interactions}


def check_rounds(case, n_rounds=2, max_bins=255):
    """Grow rounds with both and compare them; return the number of tests."""
    engine = make_engine(case, max_bins=max_bins)
    n_tests = sum(check_round(case, engine, t) for t in range(n_rounds))
    engine.close()
    return n_tests


def check_round(case, engine, t):
    """Grow round t with both and compare it; return the number of tests."""
    loss = naive_loss(case, engine)
    columns, weights = seen_by_tree(case, engine, t)
    before = engine.raw.copy()
    engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    trees = list(engine.forest())[t * loss.n_raw :]
    for tree in trees:
        tree.check()
    found = [as_found(tree) for tree in trees]
    delta = engine.loss.parameter
    expected = nb.grow_round(
        columns, case.y, weights, loss, before.T.tolist(), delta, newton=case.newton, guides=found,
        bins=naive_bins(case, engine.growth.bins), rounding=ROUNDING, **naive_params(case),
    )  # fmt: skip
    derivatives = np.array([loss.gradients(y, raw, delta) for y, raw in zip(case.y, before.T, strict=True)])
    after, n_tests = before.copy(), 0
    for k, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        wg, wh = (np.array(weights) * derivatives[:, k].T).tolist()
        residuals = [y - f for y, f in zip(case.y, before[k], strict=True)]
        n_tests += assert_same_tree(case, ours, theirs, wg, wh, residuals)
        for i, row in enumerate(zip(*case.columns, strict=True)):
            after[k, i] += naive.leaf_of(ours, row).value
    np.testing.assert_array_equal(engine.raw, after)
    return n_tests


def seen_by_tree(case, engine, t):
    """Columns and weights of round t: columns that were not drawn are missing, rows that were not weigh nothing."""
    columns, weights = case.columns, case.weights or [1.0] * len(case.y)
    if not engine.columns.is_whole:
        drawn = set(engine.columns.columns(t).tolist())
        columns = [column if j in drawn else [math.nan] * len(case.y) for j, column in enumerate(columns)]
    if engine.bags is not None:
        bag = set(engine.bags.rows(t).tolist())
        weights = [weight if i in bag else 0.0 for i, weight in enumerate(weights)]
    return columns, weights


def leaves(node):
    return [below for below in naive.walk(node) if below.is_leaf]


def assert_same_tree(case, found, expected, wg, wh, residuals):
    """Equal tests; values and sums to six digits of what they are sums of. Returns the number of tests."""
    n_tests = 0
    rate = case.all_params["learning_rate"]
    for ours, theirs in zip(naive.walk(found), naive.walk(expected), strict=True):
        rows = theirs.rows
        H = math.fsum(wh[i] for i in rows)
        assert ours.n_rows == theirs.n_rows
        assert ours.is_leaf == theirs.is_leaf
        assert ours.weight == pytest.approx(H, rel=CLOSE, abs=LEAF_ROUNDING * math.fsum(wh))
        gains = [max(below.gain, 0.0) for below in naive.walk(theirs) if not below.is_leaf]
        doubts = [below.doubt for below in naive.walk(theirs) if not below.is_leaf]
        assert ours.gain == pytest.approx(math.fsum(gains), rel=CLOSE, abs=2 * math.fsum(doubts) + 1e-300)
        if not ours.is_leaf:
            n_tests += 1
            assert_same_test(case, ours, theirs, ROUNDING * expected.H)
            continue
        sizes = [abs(wg[i]) for i in rows]
        spread = math.fsum(sizes) / H if case.loss not in OWN_LEAVES else max(abs(residuals[i]) for i in rows)
        slack = (
            1e-15
            + CLOSE * spread
            + LEAF_ROUNDING * math.fsum(map(abs, wg)) / H
            + (bound_error(expected, wg) if case.monotone else 0.0)
        )
        assert ours.value == pytest.approx(rate * theirs.value, rel=CLOSE, abs=rate * slack)
    return n_tests


def bound_error(root, wg):
    """How much rounding may move the bounds of monotone values, which are means of what the search takes for values."""
    sum_g = math.fsum(map(abs, wg))
    return max(ROUNDING * (sum_g + abs(node.value) * root.H) / node.H for node in naive.walk(root))


def assert_same_test(case, ours, theirs, slack):
    """Where nobody is missing and H a tie but for rounding, missing values and absent levels may go either way."""
    column = [case.columns[theirs.feature][i] for i in theirs.rows]
    is_open = abs(theirs.children[0].H - theirs.children[1].H) <= slack and not any(map(math.isnan, column))
    assert (ours.feature, ours.threshold) == (theirs.feature, theirs.threshold)
    assert is_open or ours.missing_branch == theirs.missing_branch
    if theirs.subset is None:
        assert ours.subset is None
    else:
        counted = set(column) if is_open else set(range(case.n_levels[theirs.feature]))
        assert ours.subset & counted == theirs.subset & counted


# ------------------------------------------------------------------------------------------------------- cases to check


def target_of(table, loss):
    """A target that the loss is defined for, from that of a regression."""
    if loss in ("poisson", "tweedie"):
        return [float(abs(round(v)) % 7) for v in table.y]
    if loss == "gamma":
        return [0.25 + abs(v) % 50 for v in table.y]
    return list(table.y)


@st.composite
def cases(draw, *, max_rows=40, has_options=True, **kinds):
    """A small table, a loss, and up to four options that are not plain."""
    is_regression = draw(st.booleans())
    table = draw(strategies.tables(is_regression=is_regression, max_rows=max_rows, **kinds))
    assume(all(n > 0 for n, is_it in zip(table.n_levels, table.is_categorical, strict=True) if is_it))
    keep = [i for i in range(table.n_rows) if table.weights is None or table.weights[i] > 0]
    if is_regression:
        loss, n_classes = draw(st.sampled_from(NUMBERS)), 0
        y = target_of(table, loss)
    else:
        n_classes = max(table.n_classes, 2)
        loss = draw(st.sampled_from(["log_loss", "exponential"])) if n_classes == 2 else "log_loss"
        y = [float(v) for v in table.y]
    y = [y[i] for i in keep]
    assume(loss not in ("poisson", "tweedie") or any(y))
    assume(loss not in OWN_LEAVES or table.has_exact_weights)  # 0.1 + 0.2 beside 0.3: half the weight, but for rounding
    params = draw(parameters()) if has_options else {}
    has_bounds = has_options and loss not in OWN_LEAVES and params.get("newton", True)
    return Case(
        columns=[[column[i] for i in keep] for column in table.columns],
        n_levels=table.n_levels,
        y=y,
        weights=None if table.weights is None else [table.weights[i] for i in keep],
        loss=loss,
        n_classes=n_classes,
        max_bins=draw(st.sampled_from([None, None, 255, 4])),
        interactions=draw(interactions(table.n_features)) if has_options else None,
        offsets=draw(st.one_of(st.none(), st.lists(st.sampled_from(OFFSETS), min_size=len(y), max_size=len(y)))),
        monotone=draw(signs(table.is_categorical)) if has_bounds else None,
        params=params,
    )


def interactions(n_features):
    features = st.integers(0, n_features - 1)
    sets = st.lists(st.lists(features, min_size=1, max_size=3, unique=True), max_size=3)
    return st.one_of(st.none(), st.none(), sets)


def signs(is_categorical):
    each = [st.just(0) if is_it else st.sampled_from([-1, 0, 1]) for is_it in is_categorical]
    return st.one_of(st.none(), st.none(), st.tuples(*each).map(list))


OFFSETS = [0.0, 0.25, -0.5, 1.1]

# Limits that are compared with computed numbers are odd decimals: exactly on a boundary rounding would decide.
OPTIONS = {
    "max_leaf_nodes": st.one_of(st.none(), st.integers(2, 8)),
    "max_depth": st.integers(1, 4),
    "min_samples_leaf": st.integers(1, 8),
    "min_samples_split": st.integers(2, 12),
    "min_weight_fraction_leaf": st.sampled_from([0.0371, 0.1113, 0.2219]),
    "min_child_weight": st.sampled_from([0.0137, 0.3719, 1.137]),
    "reg_lambda": st.sampled_from([0.1, 1.0, 7.3]),
    "reg_alpha": st.sampled_from([0.0313, 0.737, 2.17]),
    "gamma": st.sampled_from([0.00137, 0.0531, 0.717]),
    "pruning": st.just("post"),
    "learning_rate": st.sampled_from([1.0, 0.1]),
    "newton": st.just(False),
    "cat_smooth": st.sampled_from([0.1, 10.0]),
    "cat_penalty": st.sampled_from([1.0, 0.5]),
    "max_cat_threshold": st.integers(1, 3),
}


@st.composite
def parameters(draw):
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4, unique=True))
    return {name: draw(OPTIONS[name]) for name in names}


def draw_case(loss, n_rows=300, seed=0, **options):
    """A larger table of all kinds of columns: a wide number, a rounded one with holes, few and many levels."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n_rows), np.round(rng.normal(size=n_rows), 1), rng.integers(0, 6, n_rows).astype(float)]
    columns += [rng.integers(0, 300, n_rows).astype(float), np.exp(rng.normal(size=n_rows))]
    columns[1][rng.random(n_rows) < 0.15] = math.nan
    columns[3][rng.random(n_rows) < 0.05] = math.nan
    score = columns[0] + columns[2] % 3 - np.nan_to_num(columns[1], nan=-0.8) ** 2
    score += np.nan_to_num(columns[3]) % 7 / 3 + rng.normal(size=n_rows) / 3
    n_classes = {"log_loss": 2, "exponential": 2, "softmax": 4}.get(loss, 0)
    if n_classes:
        y = (np.argsort(np.argsort(score)) * n_classes // n_rows).astype(float)
    elif loss in ("poisson", "tweedie"):
        y = rng.poisson(np.exp(score / 3)).astype(float)
    else:
        y = np.exp(score / 3) if loss == "gamma" else score
    return Case(
        columns=[column.tolist() for column in columns],
        n_levels=[0, 0, 6, 300, 0],
        y=y.tolist(),
        weights=options.pop("weights", None),
        loss="log_loss" if n_classes else loss,
        n_classes=n_classes,
        **options,
    )


# ---------------------------------------------------------------------------------------------------- against the naive


@settings(max_examples=150)
@given(cases())
def test_rounds_are_those_of_the_naive_engine(case):
    check_rounds(case)


@pytest.mark.parametrize("column", [[0, 0, 0, 2, 0, 2, 0, 1], [0, 0, 3, 2, 0, 2, 0, 1]])
def test_levels_that_tie_but_for_rounding(column):
    """Levels 0 and 1 have the same G / (H + smoothing): whichever comes first, the rest follows from it."""
    y, weights = [-3.0, 2.0, 0.0, 1.0, 0.0, 3.0, -1.0, -1.0], [2.0, 3.0, 1.0, 3.0, 3.0, 3.0, 1.0, 1.0]
    columns, n_levels = [[float(v) for v in column]], [max(column) + 1]
    assert check_rounds(Case(columns, n_levels, y, weights, "squared_error", max_bins=None, params={})) >= 4


@pytest.mark.parametrize("max_bins", [None, 20])
@pytest.mark.parametrize("loss", [*NUMBERS, "log_loss", "exponential", "softmax"])
@pytest.mark.sampled(11)  # the plain engine takes three seconds of each; small tables have every loss
@pytest.mark.compiled(reason="a larger table; small ones are boosted interpreted too")
def test_rounds_of_a_larger_table(loss, max_bins):
    """Wide columns, which take two bytes, and more levels than a word has bits."""
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 300).tolist() if loss in OWN_LEAVES else None
    params = {"max_leaf_nodes": 12, "min_samples_leaf": 3, "min_child_weight": 1e-3, "reg_lambda": 0.5}
    assert check_rounds(draw_case(loss, max_bins=max_bins, weights=weights, params=params)) >= 10


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "absolute_error", "log_loss"])
@pytest.mark.sampled(3)
def test_trees_of_some_rows_and_columns(loss):
    """Rows outside the sample get the values of the leaves they come to, which the others make."""
    for seed in range(3):
        params = {"subsample": 0.6, "max_tree_features": 3, "seed": seed, "min_samples_leaf": 2, "max_leaf_nodes": 8}
        weights = np.random.default_rng(seed).uniform(0.2, 3.0, 120).tolist()
        assert check_rounds(draw_case(loss, 120, seed, weights=weights, params=params), 3) >= 12


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "log_loss"])
@pytest.mark.sampled(2)
def test_candidates_by_hessian(loss):
    """Bins are made anew for each tree; which, is known from the engine."""
    params = {"candidates": "hessian", "min_samples_leaf": 2, "max_leaf_nodes": 8}
    assert check_rounds(draw_case(loss, 120, params=params), 3, max_bins=7) >= 12


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "log_loss", "softmax"])
@pytest.mark.sampled(3)
@pytest.mark.parametrize("has_weights", [False, True])
def test_levels_pay_for_chance(loss, has_weights):
    """300 levels of a row or none each, and six of many rows."""
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150).tolist() if has_weights else None
    params = {"cat_penalty": 1.0, "max_leaf_nodes": 8, "min_samples_leaf": 2}
    assert check_rounds(draw_case(loss, 150, weights=weights, params=params)) >= 8


@pytest.mark.parametrize("most", [8, 1, 40])
@pytest.mark.sampled(3)
def test_branches_of_a_category_of_many_levels_are_capped(most):
    """The smaller branch of a node with more than 64 levels has no more than so many of them."""
    case = draw_case("squared_error", 150, params={"max_cat_threshold": most, "max_leaf_nodes": 8})
    assert check_rounds(case, 2) >= 8


@given(cases(), st.integers(0, 9))
def test_drawn_features_get_their_best_test(case, seed):
    """With one feature drawn at each node, each test is the best of its feature."""
    assume(case.n_classes <= 2)
    case = replace(case, monotone=None, interactions=None)
    engine = make_engine(replace(case, params={**case.params, "max_features": 1, "seed": seed}))
    before = engine.raw[0].copy()
    engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    engine.close()
    root = as_found(next(iter(engine.forest())))
    weights = case.weights or [1.0] * len(case.y)
    loss = naive_loss(case, engine)
    pairs = [loss.gradients(y, [f], engine.loss.parameter)[0] for y, f in zip(case.y, before, strict=True)]
    g, h = zip(*pairs, strict=True)
    bins = naive_bins(case, engine.growth.bins) or [None] * len(case.columns)
    params = {**naive_params(case), "max_depth": 1, "max_leaf_nodes": None, "rounding": 4 * ROUNDING}
    if case.all_params.get("pruning") == "post":
        params["gamma"] = 0.0  # a test stays, whatever its own gain, where one further down does

    def check(found, rows):
        if found.is_leaf:
            return
        j = found.feature
        inside = [weights[i] if i in rows else 0.0 for i in range(len(rows_of_table))]
        guide = replace(found, feature=0, children=[replace(child, children=[]) for child in found.children])
        options = {**params, "n_levels": [case.n_levels[j]], "bins": [bins[j]]}
        # Limits of weight are shares of the whole table's.
        share = params.get("min_weight_fraction_leaf", 0.0)
        options["min_weight_fraction_leaf"] = share * math.fsum(weights) / math.fsum(inside)
        expected = nb.grow([case.columns[j]], g, h if case.newton else [1.0] * len(g), inside, guide=guide, **options)
        assert not expected.is_leaf
        assert_same_test(replace(case, columns=[case.columns[j]], n_levels=[case.n_levels[j]]), guide, expected, 1e-3)
        for branch, child in enumerate(found.children):
            check(child, {i for i in rows if naive.branch_of(found, case.columns[j][i]) == branch})

    rows_of_table = range(len(case.y))
    check(root, set(rows_of_table))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("min_samples_leaf", [1, 2])
def test_features_that_part_the_rows_alike_tie(order, min_samples_leaf):
    """The first wins, be it a number, a category or a wide column, and whether rows were counted or not."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_rows = int(rng.integers(4, 12))
        level = rng.integers(0, 2, n_rows).astype(float)
        columns = [[level.tolist(), (1 - level).tolist()][j] for j in order]
        case = Case(
            columns, [[2, 0][j] for j in order], rng.normal(size=n_rows).round(1).tolist(), None, "squared_error",
            params={"max_leaf_nodes": 2, "min_samples_leaf": min_samples_leaf},
        )  # fmt: skip
        root = as_found(next(iter(run(case, 1).forest())))
        assert root.is_leaf or root.feature == 0


@given(cases(), st.data())
def test_monotone_values_are_monotone_and_no_further_out_than_free_ones(case, data):
    """Values of leaves that are estimated anew, after the search, keep to the constraints in their own units."""
    assume(case.n_classes <= 2 and not all(case.n_levels))
    each = [st.just(0) if n else st.sampled_from([-1, 0, 1]) for n in case.n_levels]
    case.monotone = data.draw(st.tuples(*each).filter(any).map(list))
    if case.loss not in OWN_LEAVES:
        case.params["newton"] = data.draw(st.booleans())
    else:
        unit = data.draw(st.sampled_from([1.0, 1e-3]))
        case.offsets, case.y = None, [v * unit for v in case.y]
    engine = make_engine(case)
    before = engine.raw.copy()
    engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    engine.close()
    found = as_found(next(iter(engine.forest())))
    (free,) = nb.grow_round(
        case.columns, case.y, case.weights or [1.0] * len(case.y), naive_loss(case, engine), before.T.tolist(),
        engine.loss.parameter, newton=case.newton, guides=[found], bins=naive_bins(case, engine.growth.bins),
        rounding=ROUNDING, **naive_params(case),
    )  # fmt: skip
    values = [case.all_params["learning_rate"] * node.value for node in naive.walk(free)]
    slack = CLOSE * max(map(abs, values)) + 1e-15
    if case.all_params.get("reg_lambda", 0.0) == case.all_params.get("reg_alpha", 0.0) == 0.0:
        assert all(min(values) - slack <= leaf.value <= max(values) + slack for leaf in leaves(found))
    for row in zip(*case.columns, strict=True):
        for j, sign in enumerate(case.monotone):
            grid = sorted({v for v in case.columns[j] if not math.isnan(v)}) if sign else []
            along = [naive.leaf_of(found, [*row[:j], v, *row[j + 1 :]]).value for v in grid]
            assert all(sign * (b - a) >= 0 for a, b in pairwise(along))


@pytest.mark.parametrize("exponent", [-400, -200, -60, 60, 200, 400])
def test_units_of_the_target_change_nothing(exponent):
    """Powers of two: values of leaves to the bit, shares of the gain to the digits that are kept."""
    case = draw_case("squared_error", 150, params={"max_leaf_nodes": 8, "min_samples_leaf": 5})
    case.y = np.round(case.y, 3).tolist()
    other = replace(case, y=np.ldexp(case.y, exponent).tolist())
    first, second = run(case, 2), run(other, 2)
    np.testing.assert_array_equal(np.ldexp(first.raw, exponent), second.raw)
    for a, b in zip(first.forest(), second.forest(), strict=True):
        b.check()
        np.testing.assert_array_equal(a.test, b.test)
        np.testing.assert_allclose(b.importances(), a.importances(), rtol=1e-5)


# -------------------------------------------------------------------------------------------------------- the same bits


def bits_of(engine, *, has_rows=True):
    """The trees and scores of an engine as bytes."""
    forest = engine.forest()
    names = ["hot", "weight", "impurity", "subsets", "first_node", "first_word", *(["n_rows"] if has_rows else [])]
    return {name: getattr(forest, name).tobytes() for name in names} | {"raw": engine.raw.tobytes()}


def take_rows(case, rows):
    def take(values):
        return None if values is None else [values[i] for i in rows]

    columns = [take(column) for column in case.columns]
    return replace(case, columns=columns, y=take(case.y), weights=take(case.weights), offsets=take(case.offsets))


@settings(max_examples=40)
@given(cases(max_rows=20))
def test_interpreted_kernels_give_the_same_bits(case):
    with np.errstate(all="ignore"):
        interpreted = run(case, 2, kernels=_jit.interpreted())
    assert bits_of(interpreted) == bits_of(run(case, 2))


@settings(max_examples=100)
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    order = list(range(len(case.y)))
    random.shuffle(order)
    first, second = run(case, 2), run(take_rows(case, order), 2)
    second.raw = np.ascontiguousarray(second.raw[:, np.argsort(order)])
    assert bits_of(first) == bits_of(second)


@settings(max_examples=100)
@given(cases(has_weights=False), st.data())
def test_a_row_of_weight_two_is_two_rows(case, data):
    """Limits that count rows are left out: they mean rows."""
    counts = data.draw(st.lists(st.integers(1, 3), min_size=len(case.y), max_size=len(case.y)))
    counts_rows = ("min_samples_leaf", "min_samples_split")
    case.params = {name: value for name, value in case.params.items() if name not in counts_rows}
    rows = np.repeat(np.arange(len(counts)), counts)
    first, second = run(take_rows(case, rows), 2), run(replace(case, weights=list(map(float, counts))), 2)
    second.raw = np.ascontiguousarray(second.raw[:, rows])
    assert bits_of(first, has_rows=False) == bits_of(second, has_rows=False)


@pytest.mark.parametrize("subsample", [1.0, 0.7])
@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize(("loss", "max_bins"), [("squared_error", None), ("softmax", 255), ("absolute_error", 255)])
@pytest.mark.sampled(5)
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, loss, max_bins, has_weights, subsample):
    """Nodes and passes over rows are shared out from few rows on, so that threads have work to share."""
    monkeypatch.setattr("spinney.tree.boost.SHARE_CELLS", 1)
    monkeypatch.setattr("spinney.tree.boost.BATCH_CELLS", 1)
    monkeypatch.setattr("spinney.ensemble.boosting.ROWS_AT_ONCE", 1)
    n_rows = 40_000
    weights = np.random.default_rng(2).uniform(0.2, 3.0, n_rows).tolist() if has_weights else None
    params = {"max_leaf_nodes": 15, "min_samples_leaf": 20, "subsample": subsample, "max_features": 4}
    case = draw_case(loss, n_rows, weights=weights, max_bins=max_bins, params=params)
    expected = bits_of(run(case, 2))
    for n_workers in (2, 8):
        assert bits_of(run(case, 2, n_workers=n_workers)) == expected


@pytest.mark.parametrize("seed", [388, 441, 475, 558, *range(30)])
def test_nodes_of_equal_gain_are_split_in_one_order(monkeypatch, seed):
    """Two halves of a table that are nearly copies: gains tie across the tree, and leaves run out among them.

    Small nodes are made ready side by side from the second tree on. Signs of residuals stay, so it meets the same ties.
    """
    monkeypatch.setattr("spinney.tree.boost.BATCH_CELLS", 1)
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(10, 40))
    half = [rng.integers(0, 3, n_rows).astype(float) for _ in range(3)]
    columns = [[*column, *column] for column in half] + [[0.0] * n_rows + [1.0] * n_rows]
    y = np.tile(rng.choice([-10.0, 10.0], n_rows), 2)
    y[n_rows:][rng.random(n_rows) < 0.2] = 10.0
    params = {"max_leaf_nodes": int(rng.integers(3, 14)), "learning_rate": 0.01}
    start = -float(np.median(y))  # raw scores of 0
    case = Case(columns, [0] * 4, y.tolist(), None, "absolute_error", offsets=[start] * len(y), params=params)
    assert bits_of(run(case, 3, n_workers=2)) == bits_of(run(case, 3))
