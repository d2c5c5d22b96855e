"""Codes of sparse tables by their stored cells: forests grow on what they grow on in full."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from fault_cases import same_model
from spinney import (
    BaggingClassifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    _jit,
)
from spinney.table import cells
from spinney.table.cells import find_cells
from spinney.table.coding import code_table
from spinney.table.flags import pack_flags
from spinney.table.ingest import read_columns
from spinney.table.sparse_codes import SparseCodes, find_stored_cells, pack_stored

ONE = np.ones(1, np.int64)


def draw_table(n_rows, n_columns, seed):
    """Flags, counts, numbers, constants and missing values, few or many of them not 0; zeros are stored too."""
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.02, 0.04, 0.2], n_columns)
    X = np.where(rng.random((n_rows, n_columns)) < share, rng.integers(-3, 4, (n_rows, n_columns)) / 2, 0.0)
    flags = np.flatnonzero(rng.random(n_columns) < 0.4)
    X[:, flags] = (X[:, flags] != 0.0) * rng.choice([-1.0, 1.0], len(flags))
    X[:, flags[:2]] = rng.choice([-1.0, 1.0], (n_rows, len(flags[:2])))  # stored in every row
    X[rng.random(X.shape) < rng.choice([0.0, 0.002])] = np.nan
    stored = (X != 0.0) | (rng.random(X.shape) < 0.01)
    return X, sparse.csr_array((X[stored], np.nonzero(stored)), shape=X.shape)


@given(st.integers(2, 90), st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from([2, 65_535]))
def test_rows_are_packed_as_those_of_all_codes(n_rows, n_columns, seed, max_codes):
    X, S = draw_table(n_rows, n_columns, seed)
    k = _jit.interpreted()
    assume(read_columns(S).stored is not None)  # of the others all cells are read
    few, full = SparseCodes(read_columns(S), ONE, max_codes, k), code_table(read_columns(X), ONE, max_codes, k)
    assert few.n_rows == full.n_rows
    for name in full._fields:
        np.testing.assert_array_equal(getattr(few, name), getattr(full, name), err_msg=name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "LEAST_SPARSE", 2)
        patch.setattr(cells, "LEAST_RARE", 2)
        patch.setattr(cells, "RARE_SHARE", 25)
        found = find_stored_cells(few)
        for has_cells in (False, True):
            rows, packing = pack_stored(few, has_cells=has_cells)
            expected, places = pack_flags(full, found if has_cells else None)
            np.testing.assert_array_equal(rows, expected)
            np.testing.assert_array_equal(packing.number, places.number)
            assert packing.n_coded == places.n_coded
        in_full = find_cells(full)
    if found is None:
        return
    for which, (j, usual) in enumerate(zip(found.features.tolist(), found.usual.tolist(), strict=True)):
        mine = slice(found.begin[which], found.begin[which + 1])
        row = np.flatnonzero(full.rows[:, j] != usual)
        np.testing.assert_array_equal(found.row[mine], row)
        np.testing.assert_array_equal(found.code[mine], full.rows[row, j])
    if in_full is not None and np.array_equal(in_full.features, found.features):
        for name, a, b in zip(found._fields, found, in_full, strict=True):
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)


CASES = [
    (RandomForestClassifier, 2, {"oob_score": True}),
    (RandomForestClassifier, 4, {"honest": True}),
    (RandomForestClassifier, 2, {"max_features": None}),
    (RandomForestRegressor, 0, {"max_features": 0.3, "oob_score": True}),
    (ExtraTreesClassifier, 4, {"bootstrap": True, "oob_score": True}),
    (ExtraTreesRegressor, 0, {"max_features": 0.3}),
    (BaggingClassifier, 2, {"estimator": CARTClassifier(max_depth=4), "max_features": 0.5, "oob_score": True}),
]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize(("kind", "n_classes", "params"), CASES)
def test_forests_are_those_of_the_table_in_full(kind, n_classes, params, share, is_weighted):
    X, S = draw_table(160, 330, seed=7)
    X, S = X[:, : int(330 * share)], S[:, : int(330 * share)]
    score = np.nan_to_num(X).sum(axis=1)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)) if n_classes else score
    weight = np.arange(160) % 3 + 0.5 if is_weighted else None
    full = kind(n_estimators=3, random_state=1, **params).fit(X, y, sample_weight=weight)
    few = kind(n_estimators=3, random_state=1, **params).fit(S, y, sample_weight=weight)
    assert same_model(few, full)
    np.testing.assert_array_equal(few.predict(S), full.predict(X))
    if params.get("oob_score"):
        name = "oob_decision_function_" if n_classes else "oob_prediction_"
        np.testing.assert_array_equal(getattr(few, name), getattr(full, name))


TREES = [
    (CARTClassifier, 2, {}),
    (CARTClassifier, 4, {"max_leaf_nodes": 20, "criterion": "entropy"}),
    (CARTClassifier, 2, {"splitter": "random", "random_state": 0}),
    (CARTClassifier, 2, {"max_features": 20, "random_state": 0}),
    (CARTClassifier, 2, {"missing": "surrogate", "max_depth": 3}),
    (CARTRegressor, 0, {"min_samples_leaf": 3}),
    (CARTRegressor, 0, {"criterion": "absolute_error", "max_depth": 3}),
]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(("kind", "n_classes", "params"), TREES)
def test_trees_are_those_of_the_table_in_full(kind, n_classes, params, is_weighted):
    """Ties go to the first feature of the table, wherever it stands in a packed row."""
    X, _ = draw_table(160, 330, seed=8)
    X[:, 9] = X[:, 4]
    S = sparse.csc_array(np.where(np.isnan(X), 0.0, X)) if params.get("missing") else sparse.csc_array(X)
    X, score = S.toarray(), np.nan_to_num(X).sum(axis=1)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)) if n_classes else score
    weight = np.arange(160) % 3 / 2 if is_weighted else None
    full, few = (kind(**params).fit(given, y, sample_weight=weight) for given in (X, S))
    assert same_model(few, full)
    np.testing.assert_array_equal(few.predict(S), full.predict(X))


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.compiled(reason="interpreted kernels take minutes for so many cells")
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_memory_goes_by_the_stored_cells(kind):
    """Codes of all cells would be 120 MB; a block of rows that walk has 34."""
    n_rows, n_columns = 3000, 20_000
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, n_rows * n_columns, 30_000))
    S = sparse.csr_array((rng.integers(1, 9, len(cells)), np.divmod(cells, n_columns)), shape=(n_rows, n_columns))
    y = S[:, :500].sum(axis=1) > 4
    model = kind(n_estimators=2, random_state=0, n_jobs=1, bootstrap=True, oob_score=True)
    model.fit(S[:300], y[:300])  # what is imported and compiled does not count
    tracemalloc.start()
    try:
        model.fit(S, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
