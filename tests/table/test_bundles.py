"""Bundles: what shares a byte, and that nothing is lost by it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from spinney import GradientBoostingClassifier, GradientBoostingRegressor, _jit
from spinney._types import HISTOGRAM_STRIDE
from spinney.estimators import training
from spinney.table import row_cells
from spinney.table.binning import bin_table
from spinney.table.bundles import bundle_features, list_columns, pack_bits
from spinney.table.ingest import read_columns
from spinney.table.stored_bundles import UnusualRows, bundle_stored, place_features
from spinney.tree import boost

ONE = np.ones(1, np.int64)


def bins_of(X, max_bins=255):
    return bin_table(read_columns(X), ONE, max_bins, _jit.interpreted())


def one_hot(codes, n):
    return (codes[:, np.newaxis] == np.arange(n)).astype(float)


@st.composite
def sparse_tables(draw):
    """One-hot blocks, columns of few unusual rows, constants and dense columns, with missing values in some."""
    n_rows = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = []
    for kind in draw(
        st.lists(st.sampled_from(["block", "sparse", "constant", "dense", "missing"]), min_size=1, max_size=6)
    ):
        if kind == "block":
            n = int(rng.integers(2, 6))
            columns += list(one_hot(rng.integers(-1, n, n_rows), n).T)
        elif kind == "constant":
            columns.append(np.full(n_rows, 3.0))
        else:
            column = rng.integers(-2, 4, n_rows).astype(float)
            if kind != "dense":
                column[rng.random(n_rows) < 0.8] = 1.0
            if kind == "missing":
                column[0] = np.nan
            columns.append(column)
    return np.stack(columns, axis=1)


@given(sparse_tables())
def test_every_code_is_kept(X):
    bins = bins_of(X)
    bundled = bundle_features(bins)
    for j in range(X.shape[1]):
        np.testing.assert_array_equal(bundled.codes(j), bins.codes(j))
    assert bundled.rows.shape[1] <= bins.rows.shape[1]
    assert (bundled.base[bins.has_missing] == -1).all()


@given(sparse_tables())
def test_features_of_a_byte_are_never_unusual_together(X):
    bundled = bundle_features(bins_of(X))
    for place in np.unique(bundled.place[bundled.base >= 0]):
        members = np.flatnonzero((bundled.place == place) & (bundled.base >= 0))
        unusual = np.stack([bundled.codes(j) != bundled.usual[j] for j in members])
        assert unusual.sum(axis=0).max(initial=0) <= 1
        assert len(members) > 1


@given(sparse_tables(), st.integers(1, 12))
def test_left_out_are_numbers_that_no_test_can_part(X, least):
    bins = bins_of(X)
    bundled = bundle_features(bins, least)
    for j in range(X.shape[1]):
        if bundled.place[j] >= 0:
            np.testing.assert_array_equal(bundled.codes(j), bins.codes(j))
            continue
        column = X[:, j]
        assert not np.isnan(column).any()
        n_left = [np.count_nonzero(column <= cut) for cut in np.unique(column)[:-1]]
        assert all(min(n, len(X) - n) < least for n in n_left)
    assert bundled.features[1].sum() == 0
    assert bundled.edges.shape[1] == bundled.features[0].sum()


def test_features_of_one_value_or_of_few_other_rows_are_left_out():
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 0] = 3.0
    X[:, 1] = np.arange(300) < 7
    X[:, 2] = np.arange(300) >= 7
    for least, places in ((0, 4), (7, 3), (8, 1)):
        assert np.count_nonzero(bundle_features(bins_of(X), least).place >= 0) == places


def assert_bundled_alike(X, categorical=(), weight=ONE, keep=None, max_bins=255, least=0):
    """What is written from stored cells is what the bytes of every cell tell, in no more bytes."""
    table = read_columns(sparse.csr_array(X), list(categorical))
    table = table if table.stored is not None else read_columns(sparse.csc_array(X), list(categorical))
    assert table.stored is not None
    kernels = _jit.interpreted()
    known = bundle_features(bin_table(table, weight, max_bins, kernels, keep), least)
    stored = bundle_stored(table.take(keep), weight, max_bins, kernels, least)
    for name, mine, other in zip(known._fields, stored, known, strict=True):
        assert mine.dtype == other.dtype, name
        if name not in {"rows", "place", "base", "usual"}:
            np.testing.assert_array_equal(mine, other, err_msg=name)
    np.testing.assert_array_equal(stored.place < 0, known.place < 0)
    for j in np.flatnonzero(known.place >= 0):
        np.testing.assert_array_equal(stored.codes(j), known.codes(j))
    assert len(stored.rows) == len(known.rows)
    assert stored.rows.shape[1] <= known.rows.shape[1]
    return known


def mostly_zero(X, n_zeros):
    """Beside so many columns of zeros a table is stored as it is, however dense the others are."""
    return np.hstack([X, np.zeros((len(X), n_zeros))])


@given(sparse_tables(), st.integers(0, 12))
def test_stored_cells_make_the_same_bundles(X, least):
    assert_bundled_alike(mostly_zero(X, 20 * X.shape[1]), least=least)


def test_stored_cells_of_weights_levels_wide_columns_and_some_rows_make_the_same_bundles():
    rng = np.random.default_rng(0)
    n = 900
    counts = np.where(rng.random((n, 40)) < 0.03, rng.integers(1, 5, (n, 40)), 0).astype(float)
    codes = rng.integers(0, 12, n)
    mostly_one = np.where(rng.random((n, 1)) < 0.02, 0.0, 1.0)  # the usual code is that of stored cells
    negative = np.where(rng.random((n, 3)) < 0.05, rng.normal(size=(n, 3)), 0.0)
    missing = np.where(rng.random((n, 1)) < 0.1, np.nan, 0.0)
    X = mostly_zero(np.hstack([counts, one_hot(codes, 12), mostly_one, negative, missing, rng.normal(size=(n, 1))]), 90)
    keep = np.arange(n) % 3 != 0
    known = assert_bundled_alike(X)
    assert (known.base >= 0).sum() > 40
    assert (assert_bundled_alike(X, least=30).place == -1).sum() > 90
    assert_bundled_alike(X, weight=rng.integers(1, 9, n))
    assert_bundled_alike(X, weight=rng.integers(1, 9, n)[keep], keep=keep, max_bins=3)
    assert assert_bundled_alike(X, max_bins=65_535).is_wide.any()
    assert_bundled_alike(X, categorical=[0, 52])


def test_a_sparse_table_without_bundles_stays_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * np.array([1.0, 1.0, 0.0])
    known = assert_bundled_alike(mostly_zero(X, 6))
    assert len(known.rows) == 60


def test_a_one_hot_block_is_a_byte():
    codes = np.random.default_rng(0).integers(0, 200, 3_000)
    X = np.column_stack([np.arange(3_000) % 90, one_hot(codes, 200)])
    bundled = bundle_features(bins_of(X))
    assert bundled.rows.shape == (3_000, 8)
    assert bundled.base[0] == -1
    assert len(np.unique(bundled.place[1:])) == 1


def test_more_codes_than_a_byte_has_take_another():
    codes = np.random.default_rng(0).integers(0, 400, 6_000)
    bundled = bundle_features(bins_of(one_hot(codes, 400)))
    assert len(np.unique(bundled.place)) == 2
    for j in (0, 254, 255, 399):
        np.testing.assert_array_equal(bundled.codes(j) - 1, codes == j)


def test_dense_columns_stay_as_they_are():
    bins = bins_of(np.random.default_rng(0).normal(size=(500, 4)))
    assert bundle_features(bins) is bins


def test_wide_features_stay_behind_narrow_ones():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=600), one_hot(rng.integers(0, 5, 600), 5), rng.normal(size=600)])
    bins = bins_of(X, None)
    bundled = bundle_features(bins)
    assert bundled.place[[0, 6]].tolist() == [2, 4]
    for j in (0, 6):
        np.testing.assert_array_equal(bundled.codes(j), bins.codes(j))


# ------------------------------------------------------------------------------------------------- the same trees


def wide_table(n, seed=0):
    """Two one-hot blocks, a sparse column of three values, a category that is mostly one level, and two numbers."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 6, n), rng.integers(0, 9, n)
    X = pd.DataFrame(np.column_stack([one_hot(a, 6), one_hot(b, 9)]))
    X.columns = [f"x{j}" for j in range(15)]
    X["sparse"] = np.where(rng.random(n) < 0.05, rng.integers(-1, 2, n), 0)
    X["rare"] = pd.Categorical(np.where(X["sparse"] == 0, np.where(rng.random(n) < 0.1, "b", "a"), "a"))
    X["u"], X["v"] = rng.normal(size=(2, n))
    X.loc[rng.random(n) < 0.1, "v"] = np.nan
    score = a % 3 + (b == 4) * 2.0 + X["u"] + X["sparse"] + (X["rare"] == "b") + rng.normal(size=n)
    return X, score.to_numpy()


PLAIN = {
    "n_estimators": 8, "learning_rate": 0.3, "max_leaf_nodes": 16, "min_samples_leaf": 5, "subsample": 1.0,
    "max_features": None, "random_state": 0, "n_jobs": 1,
}  # fmt: skip
SETTINGS = {
    "plain": {},
    "leaves of many rows": {"min_samples_leaf": 60},
    "row samples": {"subsample": 0.5},
    "features of a tree": {"max_features_per_tree": 0.4},
    "features of a node": {"max_features": 0.3},
    "monotone": {"monotonic_cst": {"x1": 1, "u": 1, "sparse": -1}},
    "L1": {"reg_alpha": 0.5},
    "every value": {"max_bins": None},
    "depth first": {"max_leaf_nodes": None, "max_depth": 4},
    "threads": {"n_jobs": 3},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", ["numbers", "classes", "weights"])
@pytest.mark.compiled(reason="rounds of 700 rows")
def test_trees_are_the_same_without_bundles(monkeypatch, setting, kind):
    X, y = wide_table(700)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if kind == "weights" else None
    make = GradientBoostingRegressor
    if kind == "classes":
        make, y = GradientBoostingClassifier, np.digitize(y, [1.0] if setting == "monotone" else [1.0, 3.0])
    model = make(**{**PLAIN, **SETTINGS[setting]})
    found = []
    for kind_of_rows in ("bundles", "cells", "bytes"):
        monkeypatch.setattr(boost, "MANY_FEATURES", 1 if kind_of_rows == "cells" else 1 << 30)
        monkeypatch.setattr(row_cells, "LEAST_BYTES", 1 if kind_of_rows == "cells" else 64)
        monkeypatch.setattr(row_cells, "BYTES_OF_CELL", 0 if kind_of_rows == "cells" else 4)
        if kind_of_rows == "bytes":
            monkeypatch.setattr(training, "bundle_features", lambda bins, _: bins)
        model.fit(X, y, weight)
        found.append(model.predict(X) if kind != "classes" else model.predict_proba(X))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.compiled(reason="rounds of 3,000 rows")
def test_sparse_rows_by_cells_give_the_trees_of_bytes(monkeypatch, n_jobs):
    rng = np.random.default_rng(0)
    X = sparse.random_array((3_000, 400), density=0.02, rng=rng, data_sampler=lambda size: rng.integers(1, 5, size))
    y = X @ rng.normal(size=400) + rng.normal(size=3_000) > 0.0
    for name in ("SHARE_CELLS", "BATCH_CELLS", "PIECE_CELLS"):
        monkeypatch.setattr(boost, name, 1 << 10)
    model = GradientBoostingClassifier(**{**PLAIN, "n_jobs": n_jobs, "subsample": 0.7})
    by_cells = model.fit(X, y).predict_proba(X)
    assert found_cells(monkeypatch, model, X, y) == 1
    monkeypatch.setattr(row_cells, "LEAST_BYTES", 1 << 30)
    assert found_cells(monkeypatch, model, X, y) == 0
    np.testing.assert_array_equal(by_cells, model.predict_proba(X))
    np.testing.assert_array_equal(by_cells, model.fit(X.toarray(), y).predict_proba(X))


def found_cells(monkeypatch, model, X, y):
    """How many times a fit finds rows that are summed by their cells."""
    found = []
    with monkeypatch.context() as patch:
        find = boost.find_row_cells
        patch.setattr(boost, "find_row_cells", lambda bins: found.append(find(bins)) or found[-1])
        model.fit(X, y)
    return sum(cells is not None for cells in found)


def test_cells_are_the_bytes_that_are_not_usual():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 300)) < 0.01, rng.integers(1, 4, (500, 300)), 0.0)
    X[:, 7] = rng.normal(size=500)
    bins = bundle_features(bins_of(X))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_cells, "LEAST_BYTES", 1)
        patch.setattr(row_cells, "BYTES_OF_CELL", 1)
        patch.setattr(row_cells, "BLOCK_BYTES", 1_000)
        cells = row_cells.find_row_cells(bins)
    own = int(bins.place[7])
    for row in range(500):
        codes = bins.rows[row, : row_cells.count_bytes(bins)].tolist()
        held = [HISTOGRAM_STRIDE * k + code for k, code in enumerate(codes) if code or k == own]
        assert cells.sum[cells.begin[row] : cells.begin[row + 1]].tolist() == held
    assert row_cells.find_row_cells(bins_of(X[:, :100])) is None


def test_features_find_bundles_that_they_never_meet():
    rng = np.random.default_rng(0)
    rows_of = [np.sort(rng.choice(400, rng.integers(0, 60), replace=False)) for _ in range(900)]
    begin = np.append(0, np.cumsum([len(rows) for rows in rows_of]))
    unusual = UnusualRows(begin, np.concatenate(rows_of).astype(np.int32))
    n_others = rng.integers(1, 90, 900)
    bundle_of = place_features(unusual, n_others, 400, _jit.interpreted())
    assert bundle_of.max() > 256  # more than there were words for
    for bundle in range(bundle_of.max() + 1):
        members = np.flatnonzero(bundle_of == bundle)
        assert 0 < n_others[members].sum() <= 255
        assert np.bincount(np.concatenate([rows_of[k] for k in members]).astype(int), minlength=1).max() <= 1
        for k in members[:3]:  # every bundle before had no room, or met it, or the one of its neighbour was free
            if k > 0 and bundle_of[k - 1] == bundle:
                continue
            for earlier in range(bundle):
                others = [i for i in np.flatnonzero(bundle_of == earlier) if i < k]
                is_full = n_others[others].sum() + n_others[k] > 255
                assert is_full or any(np.intersect1d(rows_of[i], rows_of[k]).size for i in others)


def test_rows_by_columns_and_flags_as_bits():
    rng = np.random.default_rng(0)
    for n_rows, stride in ((1, 8), (5, 24), (130, 64)):
        rows = rng.integers(0, 256, (n_rows, stride)).astype(np.uint8)
        np.testing.assert_array_equal(list_columns(rows), rows.T)
        np.testing.assert_array_equal(list_columns(rows[::2]), rows[::2].T)
    for n in (1, 8, 63, 64, 65, 200):
        flags = rng.random((3, n)) < 0.5
        bits = pack_bits(flags)
        assert bits.shape == (3, -(-n // 64))
        np.testing.assert_array_equal(np.unpackbits(bits.view(np.uint8), axis=1)[:, :n], flags)
        assert not np.unpackbits(bits.view(np.uint8), axis=1)[:, n:].any()


def test_columns_without_a_value_are_no_bundle():
    bins = bins_of(np.full((9, 3), np.nan))
    assert bundle_features(bins) is bins
