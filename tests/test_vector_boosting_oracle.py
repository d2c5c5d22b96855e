"""Trees with vector leaves against the naive engine: the same tests, the same values, whatever the options.

As in `test_boosting_oracle`, whose cases these are: each round is compared by itself, and the naive tree takes the
engine's as its guide where rounding leaves a choice open.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fast
import naive
import naive_boosting as nb
import test_boosting_oracle as single
from spinney._types import CONTROL_SIZE
from spinney.ensemble.boosted_rows import BoostedRows
from spinney.ensemble.boosting import Boosting, Constraints
from spinney.ensemble.losses import Softmax, SquaredError, SquaredErrors
from spinney.ensemble.vector_boosting import VectorBoosting
from spinney.tree import vector_boost
from spinney.tree.boost import BoostParams


def make_engine(case, targets=None, *, kernels=None, n_workers=1):
    """The engine for classes, or for several targets, (n_rows, n_outputs)."""
    kernels = kernels or fast.compiled()
    weight = None if case.weights is None else np.array(case.weights)
    if targets is None:
        y, loss = np.array(case.y), Softmax(case.n_classes)
    else:
        y, loss = np.array(targets), SquaredErrors(len(targets[0]))
    raw = np.repeat(loss.start(y, weight)[:, None], len(y), axis=1)
    sets = case.interactions
    if sets is not None:
        rest = sorted(set(range(len(case.columns))).difference(*sets))
        sets = [group for group in [*sets, rest] if group]
    rows = BoostedRows(single.bins_of(case, kernels), y, weight, raw)
    params = BoostParams(**case.all_params)
    return VectorBoosting(rows, loss, params, kernels, n_workers, constraints=Constraints(None, sets))


def derivatives_of(engine, raw):
    """(g, h) of each row by each raw score, by the naive losses."""
    if engine.loss.n_classes:
        loss = nb.Loss("log_loss", n_classes=engine.loss.n_classes, hessian_factor=engine.loss.parameter)
        return [loss.gradients(y, scores) for y, scores in zip(engine.y, raw.T.tolist(), strict=True)]
    return [
        [(f - y, 1.0) for f, y in zip(scores, row, strict=True)] for scores, row in zip(raw.T, engine.y, strict=True)
    ]


def check_rounds(case, targets=None, n_rounds=2):
    """Grow rounds with both and compare them; return the number of tests."""
    engine = make_engine(case, targets)
    n_tests = sum(check_round(case, engine, t) for t in range(n_rounds))
    engine.close()
    return n_tests


def check_round(case, engine, t):
    """Grow round t with both and compare it; return the number of tests."""
    columns, weights = single.seen_by_tree(case, engine, t)
    before = engine.raw.copy()
    derivatives = derivatives_of(engine, before)
    engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    tree = engine.forest()[t]
    tree.check()
    found = single.as_found(tree)
    expected = nb.grow_vector_round(
        columns, derivatives, weights, newton=case.newton, guide=found, rounding=single.ROUNDING,
        bins=single.naive_bins(case, engine.growth.bins), **without_constraints(single.naive_params(case)),
    )  # fmt: skip
    n_tests, rate = 0, case.all_params["learning_rate"]
    wg, wh = (np.array(weights)[:, None] * np.array(derivatives)[:, :, which] for which in range(2))
    for ours, theirs, node in zip(naive.walk(found), naive.walk(expected), walk_numbers(tree), strict=True):
        assert ours.n_rows == theirs.n_rows
        assert ours.is_leaf == theirs.is_leaf
        gains = [max(below.gain, 0.0) for below in naive.walk(theirs) if not below.is_leaf]
        doubts = [below.doubt for below in naive.walk(theirs) if not below.is_leaf]
        assert ours.gain == pytest.approx(math.fsum(gains), rel=1e-6, abs=2 * math.fsum(doubts) + 1e-300)
        H = wh[theirs.rows].sum(axis=0)
        assert ours.weight == pytest.approx(H.mean(), rel=single.CLOSE, abs=single.LEAF_ROUNDING * wh.sum())
        if not ours.is_leaf:
            n_tests += 1
            single.assert_same_test(case, ours, theirs, single.ROUNDING * expected.H * 2)
            continue
        slack = 1e-15 + 1e-6 * np.abs(wg[theirs.rows]).sum(axis=0) / H
        slack += single.LEAF_ROUNDING * np.abs(wg).sum(axis=0) / H
        for k, value in enumerate(theirs.value):
            assert tree.answers[node, k] == pytest.approx(rate * value, rel=1e-6, abs=rate * slack[k])
    np.testing.assert_array_equal(tree.answers[tree.is_leaf, 0], tree.threshold[tree.is_leaf])
    after = before.copy()
    for i, row in enumerate(zip(*case.columns, strict=True)):
        after[:, i] += tree.answers[leaf_number(tree, row)]
    np.testing.assert_array_equal(engine.raw, after)
    return n_tests


def walk_numbers(tree, node=0):
    """Numbers of the nodes in the order of `naive.walk`."""
    yield node
    if not tree.is_leaf[node]:
        first = int(tree.first_child[node])
        yield from walk_numbers(tree, first)
        yield from walk_numbers(tree, first + 1)


def leaf_number(tree, row):
    """The leaf that a row of values ends in, test by test."""
    node = 0
    while not tree.is_leaf[node]:
        found = single.as_found(tree, node)
        node = int(tree.first_child[node]) + naive.branch_of(found, row[found.feature])
    return node


def without_constraints(params):
    return {name: value for name, value in params.items() if name != "monotone"}


# --------------------------------------------------------------------------------------------------- cases to check


@st.composite
def cases(draw):
    """A case of one output, without what vectors have no order for, and one to three targets made of its own."""
    case = draw(single.cases(max_rows=30))
    if case.n_classes > 2:
        return replace(case, monotone=None, offsets=None), None
    n = len(case.y)
    small = st.lists(st.integers(-4, 4).map(float), min_size=n, max_size=n)
    targets = [
        case.y if case.loss == "squared_error" else draw(small),
        *(draw(small) for _ in range(draw(st.integers(0, 2)))),
    ]
    case = replace(case, monotone=None, offsets=None, loss="squared_error", n_classes=0)
    return case, [list(row) for row in zip(*targets, strict=True)]


@settings(max_examples=60, deadline=None)
@given(cases())
def test_rounds_are_those_of_the_naive_engine(case_and_targets):
    check_rounds(*case_and_targets)


def draw_targets(case, n_outputs=3):
    y, rng = np.array(case.y), np.random.default_rng(5)
    columns = [y, np.round(3 * np.cos(y)), -y + rng.normal(size=len(y)), rng.normal(size=len(y))]
    return np.stack(columns[:n_outputs], axis=1).tolist()


@pytest.mark.compiled(reason="a larger table; small ones are boosted interpreted too")
@pytest.mark.parametrize("loss", ["squared_error", "softmax"])
@pytest.mark.sampled(2)  # the plain engine takes seconds of each
def test_rounds_of_a_larger_table(loss):
    """Wide columns, which take two bytes, more cuts than are judged at once, more levels than a word has bits."""
    params = {
        "max_leaf_nodes": 8,
        "min_samples_leaf": 3,
        "min_child_weight": 1e-3,
        "reg_lambda": 0.5,
        "cat_penalty": 1.0,
    }
    case = single.draw_case(loss, 90, params=params)
    assert check_rounds(case, None if case.n_classes else draw_targets(case)) >= 10


def test_trees_of_some_rows_and_columns():
    params = {"subsample": 0.6, "max_tree_features": 3, "min_samples_leaf": 2, "max_leaf_nodes": 8}
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 120).tolist()
    case = single.draw_case("squared_error", 120, weights=weights, params=params)
    assert check_rounds(case, draw_targets(case), 3) >= 12


# ------------------------------------------------------------------------------------------------- against the engine


def run(case, n_rounds, targets=None, **options):
    engine = make_engine(case, targets, **options)
    for _ in range(n_rounds):
        engine.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    engine.close()
    return engine


@pytest.mark.parametrize(
    "params", [{}, {"reg_alpha": 0.3}, {"max_leaf_nodes": None, "max_depth": 4}, {"subsample": 0.5, "max_features": 2}]
)
def test_one_output_is_the_engine_of_one_score(params):
    """Whose gains, units and draws are the same: the trees are, to the bit."""
    params = {"min_samples_leaf": 3, "cat_penalty": 1.0, "reg_lambda": 1.0, **params}
    case = single.draw_case("squared_error", 150, params=params)
    ours = run(case, 4, [[y] for y in case.y])
    other = single.make_engine(case)
    assert type(other) is Boosting
    assert type(other.loss) is SquaredError
    for _ in range(4):
        other.grow_round(np.zeros(CONTROL_SIZE, np.int64))
    other.close()
    np.testing.assert_array_equal(ours.raw, other.raw)
    for name in ("hot", "n_rows", "subsets"):
        np.testing.assert_array_equal(getattr(ours.forest(), name), getattr(other.forest(), name))


def test_cells_that_are_not_kept(monkeypatch):
    """Every node is then summed by its rows: the same trees; also where memory runs out while a tree grows."""
    params = {"min_samples_leaf": 2, "max_leaf_nodes": None, "max_depth": 8}
    case = single.draw_case("softmax", 250, params=params)
    kept = run(case, 3)
    assert kept.growth.keeps_cells
    monkeypatch.setattr(vector_boost, "MOST_BYTES", 0)
    never = run(case, 3)
    monkeypatch.setattr(vector_boost, "MOST_BYTES", 5 * never.growth.table.histogram_size * 8)
    monkeypatch.setattr("spinney.tree.boost.FIRST_SLOTS", 4)
    later = run(case, 3)
    assert not never.growth.keeps_cells
    assert not later.growth.keeps_cells
    for other in (never, later):
        np.testing.assert_array_equal(kept.raw, other.raw)
        np.testing.assert_array_equal(kept.forest().answers, other.forest().answers)


@pytest.mark.parametrize("n_workers", [2, 8])
def test_threads(n_workers, monkeypatch):
    """Features are shared out among threads: the same trees; here nodes of any size are."""
    params = {"min_samples_leaf": 2, "max_leaf_nodes": 12, "max_features": 3, "cat_penalty": 1.0}
    case = single.draw_case("softmax", 300, params=params)
    alone = run(case, 2)
    monkeypatch.setattr(vector_boost, "SHARD_ROWS", 1)
    monkeypatch.setattr(vector_boost, "SHARE_CELLS", 1)
    many = run(case, 2, n_workers=n_workers)
    np.testing.assert_array_equal(alone.raw, many.raw)
    np.testing.assert_array_equal(alone.forest().hot, many.forest().hot)
