"""The engine of boosting against the naive one: the same tests, the same values, whatever the options.

Each round is compared by itself: the naive tree is grown from the raw scores that the engine had before the round, and
takes the engine's tree as its guide where the engine's rounding of gradients leaves a choice open.
"""

import math
from dataclasses import dataclass, field

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
from spinney.ensemble.boosting import Boosting
from spinney.ensemble.losses import make_loss, row_weights
from spinney.table.binning import bin_table
from spinney.tree.boost import BoostParams

CLOSE = 1e-6
ROUNDING = 2.0**-23  # of the sum of all |g|, or h: 40 rows or so, each rounded to 2**-31 of it

NUMBERS = ["squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie"]
OWN_LEAVES = ("absolute_error", "quantile", "huber")
PLAIN = {"max_leaf_nodes": 31, "min_samples_leaf": 1, "min_child_weight": 0.0, "learning_rate": 0.3, "cat_smooth": 1.7}


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


def make_engine(case, *, kernels=None, n_workers=1):
    kernels = kernels or fast.compiled()
    y = np.array(case.y, np.float64)
    weight = None if case.weights is None else np.array(case.weights)
    loss = make_loss(case.loss, alpha=case.alpha, power=case.power, n_classes=case.n_classes, newton=case.newton)
    raw = np.repeat(loss.start(y, weight)[:, np.newaxis], len(y), axis=1)
    sets = case.interactions
    if sets is not None:
        rest = sorted(set(range(len(case.columns))).difference(*sets))
        sets = [group for group in [*sets, rest] if group]
    return Boosting(
        bins_of(case, kernels), y, weight, loss, BoostParams(**case.all_params), raw, kernels, n_workers,
        monotone=None if case.monotone is None else np.array(case.monotone, np.int8), interactions=sets,
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
    value: float
    feature: int | None = None
    threshold: float | None = None
    subset: frozenset[int] | None = None
    missing_branch: int | None = None
    children: list["Found"] = field(default_factory=list)

    @property
    def is_leaf(self):
        return not self.children


def as_found(tree, node=0):
    """A tree of the package as nodes, with the shrunken values of its leaves."""
    found = Found(int(tree.n_rows[node]), float(tree.weight[node]), float(tree.threshold[node]))
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
    if case.max_bins is None:
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
    params = {name: value for name, value in case.all_params.items() if name not in ("learning_rate", "newton")}
    return {**params, "n_levels": case.n_levels, "monotone": case.monotone, "interactions": case.interactions}


def check_rounds(case, n_rounds=2, **options):
    """Grow rounds with both and compare them; return the number of tests."""
    engine = make_engine(case, **options)
    loss = naive_loss(case, engine)
    weights = case.weights or [1.0] * len(case.y)
    bins = naive_bins(case, engine.growth.bins)
    n_tests = 0
    for t in range(n_rounds):
        before = engine.raw.copy()
        engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
        trees = list(engine.forest())[t * loss.n_raw :]
        for tree in trees:
            tree.check()
        found = [as_found(tree) for tree in trees]
        delta = engine.loss.parameter
        expected = nb.grow_round(
            case.columns, case.y, weights, loss, before.T.tolist(), delta, newton=case.newton, guides=found, bins=bins,
            rounding=ROUNDING, **naive_params(case),
        )  # fmt: skip
        derivatives = np.array([loss.gradients(y, raw, delta) for y, raw in zip(case.y, before.T, strict=True)])
        after = before.copy()
        for k, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            wg, wh = (np.array(weights) * derivatives[:, k].T).tolist()
            residuals = [y - f for y, f in zip(case.y, before[k], strict=True)]
            n_tests += assert_same_tree(case, ours, theirs, wg, wh, residuals)
            for leaf, of_engine in zip(leaves(theirs), leaves(ours), strict=True):
                after[k, leaf.rows] += of_engine.value
        np.testing.assert_array_equal(engine.raw, after)
    engine.close()
    return n_tests


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
        assert ours.weight == pytest.approx(H, rel=CLOSE)
        if not ours.is_leaf:
            n_tests += 1
            assert_same_test(case, ours, theirs, ROUNDING * expected.H)
            continue
        sizes = [abs(wg[i]) for i in rows]
        spread = math.fsum(sizes) / H if case.loss not in OWN_LEAVES else max(abs(residuals[i]) for i in rows)
        slack = CLOSE * spread + (bound_error(expected, wg) if case.monotone else 0.0)
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


def is_usable(loss, y, weights):
    """Whether a loss has a start: classes and positive targets must occur."""
    if loss in ("poisson", "tweedie"):
        return any(v > 0 for v in y)
    return True


def target_of(draw, table, loss):
    """A target that the loss is defined for, from that of a regression."""
    if loss in ("poisson", "tweedie"):
        return [float(abs(round(v)) % 7) for v in table.y]
    if loss == "gamma":
        return [0.25 + abs(v) % 50 for v in table.y]
    return list(table.y)


@st.composite
def cases(draw, *, losses=None, max_rows=40, **kinds):
    """A small table, a loss, and up to four options that are not plain."""
    is_regression = draw(st.booleans())
    table = draw(strategies.tables(is_regression=is_regression, max_rows=max_rows, **kinds))
    keep = [i for i in range(table.n_rows) if table.weights is None or table.weights[i] > 0]
    assume(all(n > 0 for n, is_it in zip(table.n_levels, table.is_categorical, strict=True) if is_it))
    if is_regression:
        loss, n_classes = draw(st.sampled_from(NUMBERS)), 0
        y = target_of(draw, table, loss)
    else:
        n_classes = max(table.n_classes, 2)
        loss = draw(st.sampled_from(["log_loss", "exponential"])) if n_classes == 2 else "log_loss"
        y = [float(v) for v in table.y]
    y = [y[i] for i in keep]
    if loss in ("poisson", "tweedie"):
        assume(any(y))
    return Case(
        columns=[[column[i] for i in keep] for column in table.columns],
        n_levels=table.n_levels,
        y=y,
        weights=None if table.weights is None else [table.weights[i] for i in keep],
        loss=loss,
        n_classes=n_classes,
        max_bins=draw(st.sampled_from([None, None, 255, 4])),
        interactions=draw(st.one_of(st.none(), st.none(), interactions(table.n_features))),
        monotone=draw(signs(table)) if loss not in OWN_LEAVES else None,
        params=draw(parameters()),
    )


def interactions(n_features):
    features = st.integers(0, n_features - 1)
    return st.lists(st.lists(features, min_size=1, max_size=3, unique=True), max_size=3)


def signs(table):
    each = [st.just(0) if is_it else st.sampled_from([-1, 0, 1]) for is_it in table.is_categorical]
    return st.one_of(st.none(), st.none(), st.tuples(*each).map(list))


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
}


@st.composite
def parameters(draw):
    names = draw(st.lists(st.sampled_from(sorted(OPTIONS)), max_size=4, unique=True))
    return {name: draw(OPTIONS[name]) for name in names}


# --------------------------------------------------------------------------------------------------- against the naive


@settings(max_examples=150)
@given(cases())
def test_rounds_are_those_of_the_naive_engine(case):
    check_rounds(case)
