"""Draws of the features that may vary, and cells put together, against draws and looks one after the other."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney import _jit
from spinney._types import NUMBER
from spinney.table.cells import SparseColumns
from spinney.table.flags import Packing
from spinney.tree.workspace import make_cells, place_rows

SETTINGS = SimpleNamespace(is_random=True, is_shuffled=True)


def draw_cells(n_rows, n_features, n_others, share, seed):
    """The cells of a drawn table (codes; 0: no cell), some columns of which are not sparse, and how features stand."""
    rng = np.random.default_rng(seed)
    others = np.sort(rng.permutation(n_features)[:n_others])
    sparse = np.setdiff1d(np.arange(n_features), others)
    codes = np.where(rng.random((n_rows, len(sparse))) < share, rng.integers(1, 9, (n_rows, len(sparse))), 0)
    row, feature = np.nonzero(codes)
    of_column, row_of_column = np.nonzero(codes.T)
    columns = SparseColumns(
        features=sparse,
        usual=np.full(len(sparse), 9, np.uint16),
        begin=np.append(0, np.cumsum(np.bincount(of_column, minlength=len(sparse)))),
        row=row_of_column.astype(np.int32),
        code=codes.T[of_column, row_of_column].astype(np.uint16),
        row_begin=np.append(0, np.cumsum(np.bincount(row, minlength=n_rows))),
        feature=feature.astype(np.int32),
        row_code=codes[row, feature].astype(np.uint16),
    )
    return codes, Packing(np.concatenate([others, sparse]), n_others, columns)


def number_features(packing):
    features = np.zeros((NUMBER + 1, len(packing.number)), np.int64)
    features[NUMBER] = packing.number
    return features


@given(st.integers(2, 200), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_features_come_in_the_order_in_which_they_are_drawn(n_features, n_others, seed):
    _, packing = draw_cells(12, n_features + n_others, n_others, 0.03, seed)
    n_features += n_others
    cells = place_rows(make_cells(packing, 12, n_features), np.arange(12, dtype=np.int32))
    tree, key, ids = _jit.interpreted().tree, np.uint64(seed), np.arange(12, dtype=np.int32)
    permutation = packing.place
    with np.errstate(over="ignore"):
        tree.cells.mark_cells(3, 8, ids, cells)
        settings = SimpleNamespace(n_try=n_features, **vars(SETTINGS))
        assert tree.sparse_draws.open_draws(5, number_features(packing), settings, cells)
        begin, end = packing.sparse.row_begin[[3, 8]]
        asked = {*range(n_others), *(n_others + packing.sparse.feature[begin:end]).tolist()}
        places, order, draw = np.zeros(n_features, np.int64), permutation.copy(), tree.feature_order.draw_feature
        expected = [int(draw(order, places, k, key)) for k in range(n_features)]
        before, found = permutation.copy(), []
        for k in range(n_features):
            feature = tree.sparse_draws.next_feature(True, k, permutation, places, key, cells)
            if feature < 0:
                break
            found.append(int(feature))
        tree.sparse_draws.forget_draws(True, permutation, cells)
    assert found == [feature for feature in expected if feature in asked]
    np.testing.assert_array_equal(permutation, before)


def test_no_draws_are_saved_where_many_features_vary():
    _, packing = draw_cells(12, 40, 10, 0.9, 0)
    cells = place_rows(make_cells(packing, 12, 40), np.arange(12, dtype=np.int32))
    open_draws = _jit.interpreted().tree.sparse_draws.open_draws
    features = number_features(packing)
    assert not open_draws(5, features, SimpleNamespace(n_try=5, **vars(SETTINGS)), None)
    _jit.interpreted().tree.cells.mark_cells(0, 5, np.arange(12, dtype=np.int32), cells)
    assert open_draws(5, features, SimpleNamespace(n_try=40, **vars(SETTINGS)), cells)
    assert not open_draws(5, features, SimpleNamespace(n_try=5, **vars(SETTINGS)), cells)
    assert not open_draws(5, features, SimpleNamespace(n_try=40, is_random=False, is_shuffled=True), cells)
    assert not open_draws(5, features, SimpleNamespace(n_try=40, is_random=True, is_shuffled=False), cells)
    assert not open_draws(cells.most_marked + 1, features, SimpleNamespace(n_try=40, **vars(SETTINGS)), cells)


@given(st.integers(1, 40), st.sampled_from([0.02, 0.3]), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_cells_of_a_node_however_they_are_found(n_rows, share, is_gathered, by_row, seed):
    codes, packing = draw_cells(n_rows, 70, 3, share, seed)
    rng = np.random.default_rng(seed)
    ids = rng.permutation(n_rows).astype(np.int32)
    cells = place_rows(make_cells(packing, n_rows, 70), ids)
    cells = cells._replace(
        most_marked=n_rows, most_gathered=n_rows if is_gathered else 0, row_cost=0 if by_row else n_rows + 1
    )
    tree = _jit.interpreted().tree.cells
    lo = int(rng.integers(n_rows))
    hi = int(rng.integers(lo, n_rows)) + 1
    for _ in range(2):  # nothing of a node is left for the next
        tree.mark_cells(lo, hi, ids, cells)
        assert cells.is_gathered[0] == is_gathered
        for which in range(67):
            column = codes[ids[lo:hi], which]
            assert tree.is_unmarked(3 + which, cells) == (not column.any())
            n = tree.list_cells(3 + which, lo, hi, ids, cells)
            found = np.zeros(hi - lo, np.int64)
            found[cells.at[:n]] = cells.found[:n]
            np.testing.assert_array_equal(found, column)
            assert n == np.count_nonzero(column)
        tree.forget_cells(cells)
        assert cells.is_gathered[0] == 0
        assert not cells.n_of.any()
        lo, hi = 0, n_rows
