"""Stumps from rows sorted once are, to the last bit, the trees of one test that the driver grows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fast
import strategies
from spinney import _jit
from spinney._criteria import CLASS_CRITERIA
from spinney._types import CONTROL_STOP, LEARNED, MISSING_CODE, OWN_BRANCH
from spinney.ensemble.adaboost import RowWeights, ValueTarget
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights
from spinney.tree import stump
from spinney.tree.grow import grow_tree
from spinney.tree.grow_params import GrowParams
from spinney.tree.stump import StumpGrowth, is_stump, sort_codes


class Case:
    """A table in codes with weights as boosting has them."""

    def __init__(self, columns, y, n_classes, weights, logs, max_bins=65_535):
        kernels = fast.compiled()
        keep = None if weights is None else np.asarray(weights, float) > 0
        y = np.asarray(y, np.int64 if n_classes else np.float64)
        y, weights = (y, None) if keep is None else (y[keep], np.asarray(weights, float)[keep])
        base = fix_weights(weights, len(y))
        self.rows = RowWeights(base, len(y))
        self.rows.raise_by(1.0, np.resize(np.asarray(logs, float), len(y)))
        table = fast.ColumnTable(columns, [None] * len(columns))
        self.codes = code_table(table, base.values, max_bins, kernels, keep)
        self.order = sort_codes(self.codes)
        if n_classes:
            self.target = class_target(y, n_classes, self.rows.weights)
        else:
            self.target = ValueTarget(y, base, has_square=False).weighted(self.rows)

    def driven(self, params):
        codes = self.codes._replace(rows=self.codes.rows.copy())
        return grow_tree(codes, self.target, self.rows.weights, params, fast.compiled())

    def growth(self, params, kernels=None):
        assert is_stump(params, self.codes, None)
        return StumpGrowth(self.codes, self.order, self.target, self.rows.weights, params, kernels or fast.compiled())

    def stump(self, params, kernels=None):
        growth = self.growth(params, kernels)
        growth.run()
        tree = growth.finish()
        tree.check()
        return tree


def assert_same(one, other):
    assert fast.arrays_of(one) == fast.arrays_of(other)


LOGS = [0.0, 0.0, math.log(7 / 3), 0.7, -1.9, -30.0]  # ties, rows that weigh next to nothing
LIMITS = {
    "min_samples_split": st.integers(2, 12),
    "min_samples_leaf": st.integers(1, 6),
    "min_weight_fraction_leaf": st.sampled_from([0.0371, 0.1113, 0.2219]),
    "min_impurity_decrease": st.sampled_from([0.00137, 0.0531, 0.217]),
}


@st.composite
def small_cases(draw):
    table = draw(strategies.tables(has_categories=False))
    logs = draw(st.lists(st.sampled_from(LOGS), min_size=1, max_size=table.n_rows))
    criteria = ["gini", *CLASS_CRITERIA] if table.n_classes else ["squared_error"]
    limits = draw(st.lists(st.sampled_from(sorted(LIMITS)), max_size=2, unique=True))
    params = GrowParams(
        draw(st.sampled_from(criteria)),
        missing=draw(st.sampled_from([LEARNED, OWN_BRANCH])),
        max_depth=1,
        **{name: draw(LIMITS[name]) for name in limits},
    )
    return Case(table.columns, table.y, table.n_classes, table.weights, logs), params


@settings(max_examples=300)
@given(small_cases())
def test_small_tables(case_and_params):
    case, params = case_and_params
    tree = case.stump(params)
    assert_same(tree, case.driven(params))
    assert_same(tree, case.stump(params, _jit.interpreted()))


def draw_column(generator, n, kind):
    match kind:
        case "distinct":
            return generator.normal(size=n)
        case "few":
            return generator.integers(0, 7, n).astype(float)
        case "pairs":
            return (generator.permutation(n) // 2).astype(float)
        case "bunched":
            return np.where(generator.random(n) < 0.9, 0.0, generator.normal(size=n))
        case "holes":
            return np.where(generator.random(n) < 0.3, np.nan, generator.normal(size=n))
        case "copy":
            return np.zeros(n)
    raise ValueError(kind)


@pytest.mark.parametrize("n_classes", [0, 2, 3, 9])
@pytest.mark.parametrize("max_bins", [65_535, 12])
@pytest.mark.parametrize("seed", range(4))
def test_larger_tables_with_equal_columns(n_classes, max_bins, seed):
    generator = np.random.default_rng(seed)
    n = 3000
    columns = [draw_column(generator, n, kind) for kind in ("distinct", "few", "pairs", "bunched", "holes", "distinct")]
    columns += [columns[0], -columns[0], columns[1]]  # equal gains go to the first
    signal = np.nan_to_num(columns[seed]) + generator.normal(size=n)
    y = signal if n_classes == 0 else np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    weights = [None, generator.integers(0, 4, n), generator.random(n), None][seed]
    case = Case(columns, y, n_classes, weights, generator.choice(LOGS, n), max_bins)
    for criterion in ("gini", "entropy") if n_classes else ("squared_error",):
        for settled in ({}, {"min_samples_leaf": 400}, {"missing": OWN_BRANCH}, {"min_weight_fraction_leaf": 0.3}):
            params = GrowParams(criterion, max_depth=1, **settled)
            assert_same(case.stump(params), case.driven(params))


@pytest.mark.parametrize("n_classes", [2, 5])
def test_weights_of_very_different_size(n_classes):
    """What is taken off the sums of the right branch must not blur the few heavy rows that are left there."""
    generator = np.random.default_rng(0)
    n = 2000
    columns = [generator.normal(size=n) for _ in range(5)]
    y = generator.integers(0, n_classes, n)
    for logs in (generator.normal(scale=12.0, size=n), np.where(columns[0] > 1.5, 0.0, -40.0), 25.0 * columns[1]):
        case = Case(columns, y, n_classes, None, logs)
        params = GrowParams("gini", max_depth=1)
        assert_same(case.stump(params), case.driven(params))


def test_features_in_several_calls(monkeypatch):
    generator = np.random.default_rng(0)
    columns = [draw_column(generator, 200, kind) for kind in ("few", "copy", "holes", "distinct", "distinct")]
    for n_classes in (0, 2, 4):
        y = generator.normal(size=200) if n_classes == 0 else generator.integers(0, n_classes, 200)
        case = Case(columns, y, n_classes, None, LOGS)
        params = GrowParams("gini" if n_classes else "squared_error", max_depth=1)
        whole = case.stump(params)
        monkeypatch.setattr(stump, "CELLS_AT_ONCE", 1)
        assert_same(case.stump(params), whole)
        monkeypatch.undo()


def test_the_codes_stay_as_they_are():
    generator = np.random.default_rng(0)
    case = Case([generator.normal(size=50)], generator.integers(0, 2, 50), 2, None, LOGS)
    before = case.codes.rows.copy()
    params = GrowParams("gini", max_depth=1)
    assert_same(case.stump(params), case.stump(params))
    np.testing.assert_array_equal(case.codes.rows, before)


def test_a_stop_is_heard():
    generator = np.random.default_rng(0)
    case = Case([generator.normal(size=50)], generator.integers(0, 2, 50), 2, None, LOGS)
    growth = case.growth(GrowParams("gini", max_depth=1))
    growth.control[CONTROL_STOP] = 1
    with pytest.raises(KeyboardInterrupt):
        growth.run()


def test_order_lists_missing_rows_first_and_marks_the_ends_of_codes():
    column = np.array([2.0, np.nan, 1.0, 2.0, np.nan, 1.0, 3.0])
    case = Case([column, np.arange(7.0)], np.arange(7) % 2, 2, None, [0.0])
    rows = case.order.rows[0]
    ends = rows < 0
    plain = np.where(ends, ~rows, rows)
    assert plain.tolist() == [1, 4, 2, 5, 0, 3, 6]
    assert ends.tolist() == [False, True, False, True, False, True, True]
    assert case.order.n_missing.tolist() == [2, 0]
    assert (case.codes.rows[plain[:2], 0] == MISSING_CODE).all()


@pytest.mark.parametrize(
    "settled",
    [
        {"max_depth": 2},
        {"max_depth": None},
        {"max_leaf_nodes": 2},
        {"max_features": 1},
        {"has_random_ties": True},
        {"has_random_tests": True},
        {"has_random_feature_order": True},
        {"criterion": "sdr"},
        {"min_target_std": 0.1},
    ],
    ids=str,
)
def test_other_trees_are_left_to_the_driver(settled):
    case = Case([np.arange(9.0), np.arange(9.0)], np.arange(9) % 2, 2, None, [0.0])
    params = {"criterion": "gini", "max_depth": 1}
    assert is_stump(GrowParams(**params), case.codes, None)
    assert not is_stump(GrowParams(**{**params, **settled}), case.codes, None)


def test_categories_and_constraints_are_left_to_the_driver():
    table = fast.ColumnTable([[0.0, 1.0, 1.0], [0.0, 1.0, 2.0]], [(0, 1), None])
    codes = code_table(table, np.ones(1, np.int64), 65_535, fast.compiled())
    params = GrowParams("gini", max_depth=1)
    assert not is_stump(params, codes, None)
    numeric = Case([np.arange(9.0)], np.arange(9) % 2, 2, None, [0.0]).codes
    assert is_stump(params, numeric, np.zeros(1, np.int8))
    assert not is_stump(params, numeric, np.ones(1, np.int8))
