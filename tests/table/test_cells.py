"""Cells: columns that are almost always one value have no place in rows, and trees are those of a row of codes."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor, _jit
from spinney._jit import twin
from spinney.ensemble import forest
from spinney.table import cells
from spinney.table.cells import LEAST_SPARSE, USUAL_SHARE, find_cells
from spinney.table.coding import code_table
from spinney.table.fixed_point import fix_weights, value_target
from spinney.table.flags import pack_flags
from spinney.table.ingest import read_columns
from spinney.tree import workspace
from spinney.tree.grow import Bag, Growth
from spinney.tree.grow_params import GrowParams

ONE = np.ones(1, np.int64)
N_COLUMNS = 320  # more than random tests have lanes for
ARRAYS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")


def draw_table(n_rows, seed, n_columns=N_COLUMNS):
    """Counts of which one in thirty is not 0, on either side of it, between columns of other kinds."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, n_columns)) < 1 / 30, rng.integers(-3, 5, (n_rows, n_columns)) * 0.5, 0.0)
    X[:, 3] = rng.normal(size=n_rows).round(2)
    X[:, 7] = rng.integers(0, 2, n_rows)
    X[:, 11] = 5.0  # constant
    X[:, 13] = np.where(np.arange(n_rows) == n_rows // 2, 2.0, 0.0)  # one cell: two values
    X[:, 17] = np.where(rng.random(n_rows) < 0.02, rng.integers(-9, 0, n_rows), 1.0)  # all cells below the usual value
    X[:3, 19] = np.nan, 1.0, 2.0
    X[:, 23] = X[:, 29]  # ties
    return X


def draw_target(X, n_classes):
    score = np.nan_to_num(X)[:, :60].sum(axis=1)
    if n_classes == 0:
        return score
    return np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def code(X):
    return code_table(read_columns(X), ONE, 65_535, _jit.interpreted())


@given(st.integers(20, 90), st.integers(0, 2**32 - 1))
def test_every_code_is_a_cell_or_the_usual_one(n_rows, seed):
    codes = code(draw_table(n_rows, seed, 170))
    sparse = find_cells(codes)
    if sparse is None:
        return
    rows, packing = pack_flags(codes, sparse)
    assert sorted(packing.number.tolist()) == list(range(codes.n_features))
    assert packing.number[packing.n_coded + packing.n_bits :].tolist() == sparse.features.tolist()
    assert rows.shape[1] < codes.rows.shape[1]
    by_column, by_row = np.tile(sparse.usual, (2, n_rows, 1))
    for which, (begin, end) in enumerate(zip(sparse.begin[:-1], sparse.begin[1:], strict=True)):
        assert np.all(np.diff(sparse.row[begin:end]) > 0)
        assert (end - begin) * USUAL_SHARE <= n_rows
        by_column[sparse.row[begin:end], which] = sparse.code[begin:end]
    for row, (begin, end) in enumerate(zip(sparse.row_begin[:-1], sparse.row_begin[1:], strict=True)):
        assert np.all(np.diff(sparse.feature[begin:end]) > 0)
        by_row[row, sparse.feature[begin:end]] = sparse.row_code[begin:end]
    np.testing.assert_array_equal(by_column, codes.rows[:, sparse.features])
    np.testing.assert_array_equal(by_row, codes.rows[:, sparse.features])


def test_what_is_sparse():
    n_rows, rng = 200, np.random.default_rng(0)
    X = np.zeros((n_rows, LEAST_SPARSE + 6))
    X[:10] = rng.integers(1, 4, (10, X.shape[1]))  # one row in twenty
    X[:3] = np.array([[1.0], [2.0], [3.0]])
    X[10, 0] = 1.0  # and one more
    X[:, 1] = np.nan_to_num(X[:, 1], nan=0.0)
    X[20, 1] = np.nan
    X[:, 2] = X[:, 2] > 0  # two values
    X[:, 3] = 1.0  # no cells at all
    X[:, 4] = rng.normal(size=n_rows)
    sparse = find_cells(code(X))
    assert sparse.features.tolist() == [3, *range(5, X.shape[1])]
    assert np.diff(sparse.begin).tolist() == [0] + [10] * (X.shape[1] - 5)
    assert find_cells(code(X[:, : LEAST_SPARSE + 4])).features.tolist() == [3, *range(5, LEAST_SPARSE + 4)]
    assert find_cells(code(X[:, : LEAST_SPARSE + 3])) is None
    assert find_cells(code(rng.normal(size=(50, 150)))) is None


CASES = [
    (RandomForestClassifier, 2, {}, ""),
    (RandomForestClassifier, 2, {"bootstrap": False, "max_leaf_nodes": 30}, "whole"),
    (RandomForestClassifier, 2, {"min_samples_leaf": 3}, ""),
    (RandomForestClassifier, 2, {"criterion": "entropy"}, "parts"),
    (RandomForestClassifier, 5, {"oob_score": True}, ""),
    (RandomForestClassifier, 5, {"bootstrap": False}, "whole"),
    (RandomForestClassifier, 5, {"class_weight": "balanced_subsample"}, ""),
    (RandomForestRegressor, 0, {"max_features": 0.3}, ""),
    (RandomForestRegressor, 0, {"max_features": 0.3, "bootstrap": False}, "parts"),
    (RandomForestClassifier, 5, {"criterion": "entropy", "min_samples_leaf": 2}, ""),
    (RandomForestClassifier, 5, {}, "parts"),
    (RandomForestRegressor, 0, {"max_features": 0.3, "min_samples_leaf": 3}, "whole"),
    (RandomForestRegressor, 0, {"max_features": None, "bootstrap": False, "max_leaf_nodes": 5}, ""),
    (ExtraTreesClassifier, 2, {}, "whole"),
    (ExtraTreesClassifier, 2, {"criterion": "entropy"}, ""),
    (ExtraTreesClassifier, 5, {"criterion": "entropy"}, "whole"),
    (ExtraTreesRegressor, 0, {"max_features": 0.3, "min_samples_leaf": 3}, ""),
    (ExtraTreesClassifier, 2, {"bootstrap": True, "min_samples_leaf": 2}, ""),
    (ExtraTreesClassifier, 5, {"bootstrap": True, "max_samples": 0.5}, ""),
    (ExtraTreesClassifier, 5, {"min_samples_leaf": 2}, "parts"),
    (ExtraTreesRegressor, 0, {"max_features": 0.3}, ""),
    (ExtraTreesRegressor, 0, {"max_features": 0.3, "max_bins": 4}, "parts"),
]


def assert_alike(mine, theirs):
    assert len(mine.forest_) == len(theirs.forest_)
    for tree, other in zip(mine.forest_, theirs.forest_, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))


def fit_both(fit, monkeypatch):
    """What `fit` makes with cells and without them."""
    made, find = [], forest.find_cells
    monkeypatch.setattr(forest, "find_cells", lambda codes: made.append(find(codes)) or made[-1])
    packed = fit()
    assert made
    assert all(sparse is not None for sparse in made)
    monkeypatch.setattr(forest, "find_cells", lambda _: None)
    return packed, fit()


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize(("estimator", "n_classes", "params", "weighs"), CASES)
def test_trees_are_those_of_codes(estimator, n_classes, params, weighs, monkeypatch):
    n_rows = 130  # more than nodes that compare pairs have; interpreted kernels take a second
    X = draw_table(n_rows, 5)
    y = draw_target(X, n_classes)
    rng = np.random.default_rng(1)
    weight = {"": None, "whole": rng.integers(0, 40, n_rows).astype(float), "parts": rng.random(n_rows) + 0.5}[weighs]

    def fit():
        return estimator(n_estimators=2, random_state=3, **params).fit(X, y, sample_weight=weight)

    packed, plain = fit_both(fit, monkeypatch)
    assert_alike(packed, plain)
    np.testing.assert_array_equal(packed.predict(X), plain.predict(X))
    if "oob_score" in params:
        np.testing.assert_array_equal(packed.oob_decision_function_, plain.oob_decision_function_)


@pytest.mark.compiled(reason="large nodes, which interpreted kernels take minutes for")
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("estimator", [RandomForestClassifier, ExtraTreesClassifier])
def test_threads_and_more_trees_change_nothing(estimator, n_classes, monkeypatch):
    X = np.nan_to_num(draw_table(3000, 2))
    y = draw_target(X, n_classes)

    def fit_in_two():
        model = estimator(n_estimators=2, random_state=3, warm_start=True, n_jobs=2).fit(X, y)
        return model.set_params(n_estimators=4).fit(X, y)

    in_two, plain = fit_both(fit_in_two, monkeypatch)
    assert_alike(in_two, plain)
    monkeypatch.undo()
    assert_alike(in_two, estimator(n_estimators=4, random_state=3).fit(X, y))


def test_rare_flags_are_cells_where_there_are_many():
    n_rows, rng = 300, np.random.default_rng(0)
    X = np.zeros((n_rows, 90))
    X[:, :40] = rng.random((n_rows, 40)).round(2)
    for j in range(40, 90):
        X[rng.permutation(n_rows)[: 3 if j < 80 else 4], j] = 1.0  # one row in a hundred, or more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "LEAST_SPARSE", 2)
        assert find_cells(code(X)) is None
        patch.setattr(cells, "LEAST_RARE", 40)
        sparse = find_cells(code(X))
        assert sparse.features.tolist() == list(range(40, 80))
        packing = pack_flags(code(X), sparse)[1]
        assert packing.n_coded == 40
        assert packing.n_bits == 10
        assert packing.number.tolist() == [*range(40), *range(80, 90), *range(40, 80)]
        patch.setattr(cells, "LEAST_RARE", 41)
        assert find_cells(code(X)) is None


@pytest.mark.parametrize(
    ("estimator", "n_classes", "params"),
    [
        (RandomForestClassifier, 2, {}),
        (RandomForestClassifier, 4, {"max_leaf_nodes": 20}),
        (RandomForestRegressor, 0, {"max_features": 0.1}),
        (ExtraTreesClassifier, 2, {}),
        (ExtraTreesRegressor, 0, {"max_features": 0.05}),
    ],
)
def test_trees_of_rare_flags_are_those_of_bits(estimator, n_classes, params, monkeypatch):
    monkeypatch.setattr(cells, "LEAST_RARE", 40)
    X, rng = draw_table(120, 6), np.random.default_rng(2)
    X[:, 40:300] = rng.random((120, 260)) < 0.008
    y = draw_target(X[:, 20:], n_classes)

    def fit():
        return estimator(n_estimators=2, random_state=3, **params).fit(X, y)

    packed, plain = fit_both(fit, monkeypatch)
    assert_alike(packed, plain)


@pytest.mark.parametrize("estimator", [RandomForestRegressor, ExtraTreesClassifier])
def test_cells_that_are_put_together_change_nothing(estimator, monkeypatch):
    X = np.nan_to_num(draw_table(110, 9))
    y = draw_target(X, 0 if estimator is RandomForestRegressor else 3)
    params = {"n_estimators": 2, "random_state": 3, "max_features": 20}
    together = estimator(**params).fit(X, y)
    monkeypatch.setattr(workspace, "GATHERED_COST", 1 << 40)
    assert_alike(estimator(**params).fit(X, y), together)
    monkeypatch.setattr(workspace, "GATHERED_COST", 2)
    monkeypatch.setattr(workspace, "MOST_GATHERED", 30)  # cells; a node with more looks through columns
    assert_alike(estimator(**params).fit(X, y), together)


def test_more_cells_than_keys_can_number_change_nothing(monkeypatch):
    X = np.nan_to_num(draw_table(60, 4))
    codes, weights, kernels = code(X), fix_weights(None, 60), _jit.interpreted()
    rows, packing = pack_flags(codes, find_cells(codes))
    target = value_target(draw_target(X, 0), weights, has_square=False)
    params = GrowParams("squared_error", max_depth=3)

    def grow():
        own = target._replace(values=target.values.copy())
        bag = Bag(np.arange(60, dtype=np.int32), packing=packing)
        return Growth(codes._replace(rows=rows.copy()), own, weights, params, kernels, bag=bag).grow_alone()

    ordered, seen = grow(), []
    scans = sys.modules[f"{twin.TWIN}.tree.scan_cell_sums"]
    fill = scans.fill_whole
    monkeypatch.setattr(scans, "MAX_CODES", 1)
    monkeypatch.setattr(scans, "fill_whole", lambda *arguments: seen.append(1) or fill(*arguments))
    filled = grow()
    assert seen
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(filled, name), getattr(ordered, name))
