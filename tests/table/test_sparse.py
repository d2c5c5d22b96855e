"""Sparse tables: any format of scipy's, and frames of sparse columns, are the table in full."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from spinney._jit import kernels
from spinney.table import coding
from spinney.table.binning import bin_table
from spinney.table.coding import code_table
from spinney.table.columns import match_names, open_columns
from spinney.table.ingest import read_columns
from spinney.table.schema import encode
from spinney.table.sparse import SparseRows, fill_in

FORMATS = [
    getattr(sparse, f"{name}_{kind}")
    for name in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")
    for kind in ("matrix", "array")
]


def make_cells(n_rows=23, n_columns=7, dtype=np.float64, seed=0):
    """Mostly zeros; a column and a row of nothing else, and a column without any."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, n_columns)) < 0.3, rng.integers(-3, 9, (n_rows, n_columns)), 0).astype(dtype)
    X[:, 2], X[4] = 0, 0
    X[:, 5] = 1
    return X


def assert_same_table(table, X):
    """What fit reads, in one piece and in blocks, is what it reads of X."""
    full = read_columns(X)
    assert table.schema.levels == full.schema.levels
    n = X.shape[1]
    np.testing.assert_array_equal(table.block(0, n), full.block(0, n))
    for start in range(n - 1):
        np.testing.assert_array_equal(table.block(start, start + 2), full.block(start, start + 2))


@pytest.fixture
def few_cells(monkeypatch):
    """Blocks of three rows."""
    monkeypatch.setattr("spinney.table.sparse.CELLS_AT_ONCE", 21)


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("pack", FORMATS, ids=lambda pack: pack.__name__)
def test_every_format_is_the_table_in_full(pack):
    X = make_cells()
    if not pack.__name__.startswith("dok"):  # which cannot hold one
        X[3, 1] = np.nan
    packed = pack(X)
    assert_same_table(read_columns(packed), X)
    schema = read_columns(X).schema
    rows = encode(packed, schema)
    assert isinstance(rows, SparseRows)
    assert (rows.shape, len(rows), rows.dtype) == (X.shape, len(X), encode(X, schema).dtype)
    np.testing.assert_array_equal(rows.full(), X)
    np.testing.assert_array_equal(np.concatenate([block.copy() for _, block in rows.blocks()]), X)
    assert [(part.start, part.stop) for part, _ in rows.blocks(1, 8)] == [(1, 4), (4, 7), (7, 8)]
    np.testing.assert_array_equal(np.concatenate([block.copy() for _, block in rows.blocks(5, 12)]), X[5:12])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "longdouble"])
def test_types_of_numbers(dtype):
    X = make_cells(dtype=np.int8).clip(0).astype(dtype)
    for packed in (sparse.csr_array(X), sparse.csc_matrix(X)):
        assert_same_table(read_columns(packed), X)
        rows, full = encode(packed, read_columns(X).schema), encode(X, read_columns(X).schema)
        assert rows.dtype == full.dtype
        np.testing.assert_array_equal(fill_in(rows), full)


def test_rows_read_like_an_array():
    X = make_cells()
    rows = encode(sparse.csc_array(X), read_columns(X).schema)
    mask = X[:, 0] > 0
    for key in (slice(2, 9), np.array([5, 5, 0, 22]), mask, slice(None, None, -2)):
        np.testing.assert_array_equal(rows[key].full(), X[key])
    for i in (0, 4, -1):
        np.testing.assert_array_equal(rows[i], X[i])
    np.testing.assert_array_equal(rows[:, 3], X[:, 3])
    assert rows[7, 5] == X[7, 5]


def test_unusual_storage_is_read_and_left_as_it_is():
    X = make_cells()
    tidy = sparse.csr_array(X)
    explicit = tidy.copy()
    explicit.data[::3] = 0.0  # stored zeros
    assert_same_table(read_columns(explicit), explicit.toarray())
    wide = sparse.csr_array((tidy.data, tidy.indices.astype(np.int64), tidy.indptr.astype(np.int64)), shape=X.shape)
    assert wide.indices.dtype == np.int64
    assert_same_table(read_columns(wide), X)
    places = np.concatenate([np.arange(a, b)[::-1] for a, b in itertools.pairwise(tidy.indptr)])
    backwards = sparse.csr_array((tidy.data[places], tidy.indices[places], tidy.indptr), shape=X.shape)
    assert not backwards.has_sorted_indices
    before = backwards.indices.copy()
    assert_same_table(read_columns(backwards), X)
    np.testing.assert_array_equal(backwards.indices, before)
    twice = sparse.coo_array(([1.0, 2.0, 4.0, -4.0], ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    np.testing.assert_array_equal(read_columns(twice).block(0, 2), [[0.0, 0.0], [3.0, 0.0]])
    assert twice.nnz == 4
    doubled = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    np.testing.assert_array_equal(read_columns(doubled).block(0, 2), [[0.0], [3.0]])
    assert doubled.nnz == 2
    signed = sparse.csr_array(np.array([[0.0, 1.0]]))
    signed.data[:] = -0.0
    assert not np.signbit(read_columns(signed).block(0, 2)).any()


@pytest.mark.parametrize("room", [(3, 3), (3, 0), (0, 3)])
@pytest.mark.parametrize("pack", [sparse.csr_array, sparse.csc_matrix])
def test_room_behind_the_last_cell_is_no_cell(pack, room):
    """scipy has arrays longer than `indptr` says; hashes of cells took the rest for cells."""
    X = make_cells()
    X[::2] = 0  # a table of many cells is read in full
    packed = pack(X)
    packed.data = np.append(packed.data, np.full(room[0], np.nan))
    packed.indices = np.append(packed.indices, np.zeros(room[1], packed.indices.dtype))
    table = read_columns(packed)
    assert_same_table(table, X)
    assert len(table.stored.data) == len(table.stored.by_column.indices) == packed.indptr[-1]
    assert not table.values().has_missing
    assert len(packed.data) == packed.indptr[-1] + room[0]


def test_read_only_memory():
    packed = sparse.csr_array(make_cells())
    for part in (packed.data, packed.indices, packed.indptr):
        part.flags.writeable = False
    assert_same_table(read_columns(packed), make_cells())


def test_categories_by_index():
    X = make_cells().clip(0)
    X[2, 3] = np.nan
    chosen = [0, 3]
    full = read_columns(X, chosen)
    for packed in (sparse.csr_array(X), sparse.csc_array(X.astype(np.float32))):
        table = read_columns(packed, chosen)
        assert table.schema == full.schema
        np.testing.assert_array_equal(table.block(0, 7), full.block(0, 7))
        np.testing.assert_array_equal(table.values().full(), full.block(0, 7).T)
        new = X[::-1] + 1.0  # with levels that fit has not seen
        np.testing.assert_array_equal(fill_in(encode(sparse.csr_array(new), full.schema)), encode(new, full.schema))
        np.testing.assert_array_equal(encode(packed, full.schema)[1:4].full(), encode(X, full.schema)[1:4])
    with pytest.raises(ValueError, match="Column 1 is declared categorical but holds -"):
        read_columns(sparse.csr_array(make_cells()), [1])
    with pytest.raises(ValueError, match=r"array of integers or as a boolean mask.*X has no column names"):
        read_columns(sparse.csr_array(X), ["a"])


def test_wide_integers():
    X = np.zeros((4, 3), np.int64)
    X[:, 1] = [0, 2**53, 2**53 + 1, 5]
    with pytest.raises(ValueError, match="Column 1 holds 9007199254740992 and 9007199254740993"):
        read_columns(sparse.csr_array(X))
    assert read_columns(sparse.csr_array(X), [1]).schema == read_columns(X, [1]).schema
    schema = read_columns(np.zeros((2, 3))).schema
    with pytest.warns(UserWarning, match="Column 1 holds 9007199254740993, which float64 rounds"):
        rows = encode(sparse.csc_array(X), schema)
    np.testing.assert_array_equal(rows.full(), X.astype(np.float64))


def test_what_is_refused():
    with pytest.raises(ValueError, match="Complex data not supported: X has dtype complex128"):
        read_columns(sparse.csr_array(np.eye(2) * 1j))
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\)"):
        read_columns(sparse.csr_array((0, 3)))
    with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\) \(shape=\(3, 0\)\)"):
        read_columns(sparse.csr_array((3, 0)))
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        read_columns(sparse.coo_array(np.array([0.0, 1.0])))
    odd = sparse.csr_array(np.eye(2))
    odd.data = np.array(["a", "b"], dtype=object)
    with pytest.raises(ValueError, match="X is sparse and has dtype object"):
        read_columns(odd)
    with pytest.raises(ValueError, match="X has 2 features, but the model is expecting 3"):
        encode(sparse.csr_array(np.eye(2)), read_columns(np.eye(3)).schema)


def damage(packed, **parts):
    """A copy some parts of which are replaced behind the back of scipy's checks."""
    broken = packed.copy()
    for name, part in parts.items():
        setattr(broken, name, part)
    return broken


def test_cells_outside_of_the_table():
    """Scipy would follow them: to other memory, to other rows, or to the end of the process."""
    by_row = sparse.csr_array(np.arange(1.0, 13.0).reshape(4, 3))
    far, before = by_row.indices.copy(), by_row.indices.copy()
    far[5], before[5] = 70_000, -1
    short = by_row.indptr.copy()
    short[2] = 1
    lists = by_row.tolil().rows.copy()
    lists[0] = [0, 1, 9]
    for packed, wanted in (
        (damage(by_row, indices=far), "format 'csr': a cell stands in column 70000, and there are 0 to 2"),
        (damage(by_row, indices=before, has_canonical_format=True), "a cell stands in column -1"),
        (damage(by_row, indptr=by_row.indptr + 1), "indptr is not 5 ascending numbers from 0 to at most 12"),
        (damage(by_row, indptr=short[::-1].copy()), "indptr is not 5 ascending"),
        (damage(by_row, indptr=np.append(by_row.indptr[:-1], 99)), "indptr is not 5 ascending"),
        (damage(by_row, indptr=by_row.indptr[:3]), "indptr is not 5 ascending"),
        (damage(by_row, data=by_row.data[:7]), "numbers from 0 to at most 7"),
        (damage(by_row.tocsc(), indices=np.full(12, 4)), "format 'csc': a cell stands in row 4, and there are 0 to 3"),
        (
            damage(sparse.bsr_array(by_row, blocksize=(2, 3)), indices=np.array([0, 1])),
            "'bsr': a cell stands in column 1",
        ),
        (damage(by_row.tocoo(), coords=(np.full(12, 4), np.zeros(12, int))), "format 'coo': a cell stands in row 4"),
        (damage(by_row.tolil(), rows=lists), "format 'csr': a cell stands in column 9"),
        (damage(by_row.tocoo(), data=np.ones(3)), "its coordinates and its data differ in length"),
    ):
        with pytest.raises(ValueError, match=f"X is a damaged sparse table.*{wanted}.*Build it anew"):
            read_columns(packed)
    longer = damage(by_row, indices=np.append(by_row.indices, 99), data=np.append(by_row.data, 1e9))  # not pruned yet
    np.testing.assert_array_equal(read_columns(longer).block(0, 3), by_row.toarray().T)


# --- codes ----------------------------------------------------------------------------------------------------------


def make_columns(n_rows, share, seed):
    """Columns that store this share of their cells: numbers of many values and few, signs, infinities, NaN, levels."""
    rng = np.random.default_rng(seed)
    many = rng.normal(size=n_rows)
    few = rng.integers(-3, 4, n_rows)
    odd = rng.choice([-np.inf, -1.5, -0.0, 1.5, np.inf, np.nan], n_rows)
    columns = [many, np.abs(many), -np.abs(many), few, odd, np.full(n_rows, np.nan), rng.integers(0, 9, n_rows)]
    return np.stack([np.where(rng.random(n_rows) < share, column, 0.0) for column in (*columns, many)], axis=1)


@pytest.mark.parametrize("max_codes", [2, 5, 255, 65_535])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.6, 1.0])
def test_codes_and_bins_of_the_table_in_full(share, max_codes):
    n_rows = 700
    X = make_columns(n_rows, share, seed=max_codes)
    X[:, -1] = X[:, 0] + np.arange(n_rows) * (share == 0.2)  # stored throughout, beside columns that are not
    stored, full = read_columns(sparse.csr_array(X), [6]), read_columns(X, [6])
    assert (stored.stored is not None) == (share in {0.0, 0.05} or (share == 0.2 and np.mean(X != 0.0) <= 0.25))
    k = kernels(0.0)
    weight = np.random.default_rng(1).integers(1, 1000, n_rows)
    keep = np.arange(n_rows) % 5 != 0
    for weights, kept in ((np.ones(1, np.int64), None), (weight, None), (weight[keep], keep)):
        assert_same_parts(
            code_table(stored, weights, max_codes, k, kept), code_table(full, weights, max_codes, k, kept)
        )
        most = None if max_codes == 65_535 else max_codes
        assert_same_parts(bin_table(stored, weights, most, k, kept), bin_table(full, weights, most, k, kept))


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_cells_are_written_alone_or_side_by_side(share, monkeypatch):
    X = make_columns(500, share, seed=1)
    stored, full = read_columns(sparse.csr_array(X), [6]), read_columns(X, [6])
    assert stored.stored is not None
    for few_cells in (0, 1 << 40):
        monkeypatch.setattr(coding, "FEW_CELLS", few_cells)
        assert_same_parts(*(code_table(table, np.ones(1, np.int64), 65_535, kernels(0.0)) for table in (stored, full)))


def assert_same_parts(one, other):
    for name, a, b in zip(one._fields, one, other, strict=True):
        assert a.dtype == b.dtype, name
        np.testing.assert_array_equal(a, b, err_msg=name)


# --- frames of pandas -----------------------------------------------------------------------------------------------


def make_frame(X, dtypes=("float64",)):
    """A frame whose columns are sparse, 0 where nothing is stored, of these types in turn."""
    return pd.DataFrame(
        {
            f"c{j}": pd.arrays.SparseArray(column.astype(dtype), fill_value=np.zeros(1, dtype)[0])
            for j, (column, dtype) in enumerate(zip(X.T, itertools.cycle(dtypes), strict=False))
        }
    )


@pytest.mark.parametrize("dtypes", [("float64",), ("bool",), ("bool", "float64", "int8"), ("int64", "float32")])
def test_sparse_frames_keep_names_and_values(dtypes):
    X = make_cells().clip(0, 1)
    frame = make_frame(X, dtypes)
    columns = open_columns(frame)
    assert columns.names == tuple(frame.columns)
    assert (columns.packed is not None) == (dtypes != ("int64", "float32"))  # which no type holds every digit of
    table = read_columns(frame)
    assert table.schema == read_columns(pd.DataFrame(X, columns=frame.columns)).schema
    np.testing.assert_array_equal(table.block(0, 7), X.T)
    np.testing.assert_array_equal(fill_in(encode(frame, table.schema)), X)


def test_sparse_frames_in_another_order():
    X = make_cells()
    frame = make_frame(X)
    schema = read_columns(frame).schema
    moved = match_names(open_columns(frame[["c3", "c1", "c0", "c2", "c6", "c5", "c4"]]), schema.names, "model")
    np.testing.assert_array_equal(fill_in(encode(moved, schema)), X)
    np.testing.assert_array_equal(read_columns(moved).block(0, 7), X.T)


def test_frames_that_are_sparse_in_part_or_otherwise():
    X = make_cells()
    frame = make_frame(X)
    frame["c1"] = X[:, 1]
    assert open_columns(frame).packed is None
    np.testing.assert_array_equal(read_columns(frame).block(0, 7), X.T)
    X[X == 0.0] = np.nan  # what is not stored is missing
    frame = pd.DataFrame({f"c{j}": pd.arrays.SparseArray(column) for j, column in enumerate(X.T)})
    assert open_columns(frame).packed is None
    np.testing.assert_array_equal(read_columns(frame).block(0, 7), X.T)


# --- memory ---------------------------------------------------------------------------------------------------------


def test_reading_takes_far_less_than_the_table_in_full(monkeypatch):
    monkeypatch.setattr("spinney.table.sparse.CELLS_AT_ONCE", 1 << 17)
    n_rows, n_columns = 4000, 2000
    rng = np.random.default_rng(0)
    cells = rng.integers(0, n_rows * n_columns, 80_000)
    packed = sparse.csr_array((np.ones(len(cells)), np.divmod(cells, n_columns)), shape=(n_rows, n_columns))
    in_full = 8 * n_rows * n_columns
    tracemalloc.start()
    try:
        table = read_columns(packed)
        total = sum(float(table.block(j, min(j + 50, n_columns)).sum()) for j in range(0, n_columns, 50))
        rows = encode(packed, table.schema)
        again = sum(float(block.sum()) for _, block in rows.blocks())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == again == packed.sum()
    assert peak < 0.2 * in_full
