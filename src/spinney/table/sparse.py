"""Sparse tables: the stored cells of X alone, read by blocks of columns in fit and by blocks of rows in predictions.

A cell that is not stored is the number 0, as is a stored 0; a stored NaN is missing. Nothing here is ever as large as
the table would be in full: a block of it is, and the memory of one block serves for the next.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spinney._cached import once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CELLS_AT_ONCE = 1 << 22  # of a block of rows: 32 MB
WIDE = 256  # columns from which on rows in full cost more than what is done with them,
FEW_STORED = 8  # where at most one in so many cells is stored
FLOAT32 = np.dtype(np.float32)
_REBUILD = "Build it anew from its cells, for example by scipy.sparse.coo_array((data, (rows, columns)), shape=shape)."


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy, which then is imported already."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))


def as_floats(cells: NDArray[Any]) -> NDArray[np.float64]:
    """A copy of stored cells as float64, in which -0.0 is 0.0."""
    with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is in the right order
        floats: NDArray[np.float64] = cells.astype(np.float64) + 0.0
    return floats


class SparseMatrix:
    """The stored cells of a table.

    Parameters
    ----------
    stored : scipy.sparse matrix or array of format "csr" or "csc"
        Of a real dtype. It is never changed; where cells are stored twice, a copy has their sum.
    """

    def __init__(self, stored: Any) -> None:
        if not stored.has_canonical_format:
            stored = stored.copy()
            stored.sum_duplicates()
        self.stored = stored
        self.n_rows, self.n_columns = map(int, stored.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the cells."""
        dtype: np.dtype[Any] = self.stored.dtype
        return dtype

    @property
    def data(self) -> NDArray[Any]:
        """All stored cells, in any order."""
        data: NDArray[Any] = self.stored.data
        return data

    @once
    def by_row(self) -> Any:
        """The cells row by row, "csr"."""
        return self.stored.tocsr()

    @once
    def by_column(self) -> Any:
        """The cells column by column, "csc"."""
        return self.stored.tocsc()

    def stored_of(self, j: int) -> NDArray[Any]:
        """The stored cells of a column."""
        matrix = self.by_column
        stored: NDArray[Any] = matrix.data[matrix.indptr[j] : matrix.indptr[j + 1]]
        return stored

    def column(self, j: int) -> NDArray[Any]:
        """A column in full, (n_rows,)."""
        matrix = self.by_column
        full = np.zeros(self.n_rows, self.dtype)
        full[matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]] = self.stored_of(j)
        return full

    def take_columns(self, columns: Sequence[int]) -> SparseMatrix:
        """Some columns, in this order."""
        return SparseMatrix(self.by_column[:, list(columns)])

    def write_columns(self, start: int, stop: int, out: NDArray[np.float64]) -> None:
        """Write columns start .. stop in full to `out`, (stop - start, n_rows)."""
        matrix = self.by_column
        cells = slice(matrix.indptr[start], matrix.indptr[stop])
        column = np.repeat(np.arange(stop - start), np.diff(matrix.indptr[start : stop + 1]))
        out[:] = 0.0
        out[column, matrix.indices[cells]] = matrix.data[cells] + 0.0  # -0.0 becomes 0.0, as where scipy fills in zeros


class SparseRows:
    """The rows of a sparse table as values: reads like an array (n_rows, n_features), and is in full only by blocks.

    Parameters
    ----------
    matrix : SparseMatrix
    levels : mapping of int to float64 (n_rows,)
        Values of the columns of categories.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows(SparseMatrix(csr_array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])), {})
    >>> rows[1:].full().tolist()
    [[3.0, 0.0], [0.0, 0.0]]
    >>> rows[:, 1].tolist()
    [2.0, 0.0, 0.0]
    """

    def __init__(self, matrix: SparseMatrix, levels: Mapping[int, NDArray[np.float64]]) -> None:
        self.matrix, self.levels = matrix, levels
        self.shape = matrix.n_rows, matrix.n_columns
        self.dtype = FLOAT32 if matrix.dtype == FLOAT32 and not levels else np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Some rows, by slice, numbers or mask, as sparse ones; one row, or `[:, j]`, a column, as an array."""
        if isinstance(key, tuple):
            rows, j = key
            return (self.levels[j] if j in self.levels else self._to_floats(self.matrix.column(j)))[rows]
        if isinstance(key, int | np.integer):
            return self[key : key + 1 or None].full()[0]
        if not isinstance(key, slice):
            key = np.arange(len(self))[key]
        some = SparseMatrix(self.matrix.by_row[key])
        return SparseRows(some, {j: column[key] for j, column in self.levels.items()})

    def _to_floats(self, cells: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is in the right order
            return cells.astype(self.dtype, copy=False)

    def full(self) -> NDArray[Any]:
        """All of the rows as an array."""
        out = np.zeros(self.shape, self.dtype)
        self._write(slice(0, len(self)), out)
        return out

    def _write(self, rows: slice, out: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Write rows to the first ones of an array of zeros; the places of their stored cells."""
        some = self.matrix.by_row[rows]
        places = np.repeat(np.arange(some.shape[0]), np.diff(some.indptr)), some.indices
        out[places] = self._to_floats(some.data)
        for j, column in self.levels.items():
            out[: some.shape[0], j] = column[rows]
        return places

    @property
    def is_thin(self) -> bool:
        """Whether what reads every cell of a row in full reads zeros for most of its time."""
        n_rows, n_columns = self.shape
        return n_columns >= WIDE and len(self.matrix.data) * FEW_STORED <= n_rows * n_columns

    @once
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        parts = [self.matrix.data, *self.levels.values()]
        return any(bool(np.isnan(part).any()) for part in parts)

    def blocks(self, lo: int = 0, hi: int | None = None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Rows lo .. hi in blocks: which they are, and their values, which hold until the next block is asked for."""
        hi = len(self) if hi is None else hi
        full = np.zeros((self.count_at_once(hi - lo), self.shape[1]), self.dtype)
        for rows in self.lay(lo, hi, full):
            yield rows, full[: rows.stop - rows.start]

    def count_at_once(self, n_rows: int) -> int:
        """How many of so many rows a block has in full."""
        return max(min(CELLS_AT_ONCE // self.shape[1], n_rows), 1)

    def lay(self, lo: int, hi: int, full: NDArray[Any]) -> Iterator[slice]:
        """Write rows lo .. hi, one block after the other, to the first columns of `full`, zeros before and behind."""
        for first in range(lo, hi, len(full)):
            rows = slice(first, min(first + len(full), hi))
            places = self._write(rows, full)
            yield rows
            full[places] = 0.0


Values: TypeAlias = NDArray[Any] | SparseRows
"""Rows as trees see them: float32 or float64, (n_rows, n_features)."""


def fill_in(values: Values) -> NDArray[Any]:
    """Rows as an array, for what needs all of them at once."""
    return values.full() if isinstance(values, SparseRows) else values


def open_matrix(X: Any) -> SparseMatrix:
    """The cells of a sparse X of any format; cells that are stored twice are summed, as scipy does."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: a sparse array of shape {X.shape}. Reshape your data: to "
            "one column, X.reshape(-1, 1), if it is a single feature, to one row otherwise."
        )
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {X.dtype}. Use its real and imaginary parts.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is sparse and has dtype {X.dtype}: convert it to numbers, for example by X.astype(float).")
    n_rows, n_columns = X.shape
    if n_rows == 0 or n_columns == 0:
        what = "sample" if n_rows == 0 else "feature"
        raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    check_places(X)
    if X.format not in {"csr", "csc"}:
        X = X.tocsr()
        check_places(X)  # what lists held
    return SparseMatrix(cut_slack(X))


def cut_slack(X: Any) -> Any:
    """The matrix without room behind its last cell, which scipy allows and everyone else would take for cells."""
    n_cells = int(X.indptr[-1])
    if len(X.data) == len(X.indices) == n_cells:
        return X
    return type(X)((X.data[:n_cells], X.indices[:n_cells], X.indptr), shape=X.shape)


def check_places(X: Any) -> None:
    """Refuse a matrix whose cells stand outside of it: scipy's compiled code would follow them to anywhere."""
    if X.format == "coo":
        if len({len(X.data), *map(len, X.coords)}) > 1:
            what = "its coordinates and its data differ in length"
            raise ValueError(f"X is a damaged sparse table of format {X.format!r}: {what}. {_REBUILD}")
        for axis, found in enumerate(X.coords):
            _check_range(X, found, axis, X.shape[axis])
    elif X.format in {"csr", "csc", "bsr"}:
        axis, block = int(X.format == "csc"), X.blocksize if X.format == "bsr" else (1, 1)
        ends, n_ends, n_cells = X.indptr, X.shape[axis] // block[axis] + 1, min(len(X.indices), len(X.data))
        is_ascending = len(ends) > 0 and ends[0] == 0 and ends[-1] <= n_cells and bool(np.all(ends[1:] >= ends[:-1]))
        if len(ends) != n_ends or not is_ascending:
            what = f"indptr is not {n_ends} ascending numbers from 0 to at most {n_cells}"
            raise ValueError(f"X is a damaged sparse table of format {X.format!r}: {what}. {_REBUILD}")
        _check_range(X, X.indices[: ends[-1]], 1 - axis, X.shape[1 - axis] // block[1 - axis])


def _check_range(X: Any, found: NDArray[Any], axis: int, size: int) -> None:
    if len(found) and (found.min() < 0 or found.max() >= size):
        odd = int(found.min() if found.min() < 0 else found.max())
        what = f"a cell stands in {('row', 'column')[axis]} {odd}, and there are 0 to {size - 1}"
        raise ValueError(f"X is a damaged sparse table of format {X.format!r}: {what}. {_REBUILD}")


def open_sparse_frame(frame: Any) -> SparseMatrix | None:
    """The cells of a pandas frame all of whose columns are sparse numbers with 0 for what is not stored; else None.

    Also None where one type of number would not hold the digits of all columns.
    """
    dtypes = list(getattr(frame, "dtypes", ()))
    if not dtypes or not all(is_sparse_number(dtype) for dtype in dtypes):
        return None
    from scipy.sparse import csc_array

    columns = [frame.iloc[:, j].array for j in range(len(dtypes))]
    subtypes = [np.dtype(dtype.subtype) for dtype in dtypes]
    common = np.result_type(*subtypes)
    if common.kind == "f" and any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in subtypes):
        return None
    rows = [column.sp_index.to_int_index().indices for column in columns]
    data = np.concatenate([column.sp_values.astype(common, copy=False) for column in columns])
    ends = np.cumsum([0, *(len(column.sp_values) for column in columns)])
    return SparseMatrix(csc_array((data, np.concatenate(rows), ends), shape=frame.shape))


def is_sparse_number(dtype: Any) -> bool:
    """Whether a dtype of pandas is of sparse numbers, 0 for what is not stored; found without importing pandas."""
    if type(dtype).__name__ != "SparseDtype":
        return False
    return np.dtype(dtype.subtype).kind in "fiub" and bool(dtype.fill_value == 0)
