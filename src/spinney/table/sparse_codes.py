"""Codes of a sparse table by its stored cells alone: what forests grow on, without a code for each cell.

    cells of a column     rows 2, 5, 6: codes 1, 3, 1; all other rows: code 2
    rows of a forest      flags are bits, columns that are almost always one value are cells, the others have codes

Of 12,000 texts with 20,000 words codes of all cells are 480 MB, the stored ones 5 MB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._cached import once
from spinney._types import CODE, ROW
from spinney.table.cells import SparseColumns, can_be_sparse, choose_sparse, most_cells
from spinney.table.coding import Codes, describe_stored, write_stored_rows
from spinney.table.flags import Packing, find_flags, lay_out_flags, whole_codes
from spinney.table.sparse import SparseRows
from spinney.table.stored_codes import code_stored_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.ingest import Table
    from spinney.table.stored_codes import StoredCodes


class SparseCodes:
    """What `Codes` tells of a table, of which rows are written only where they are asked for.

    Parameters
    ----------
    table : Table
        With stored cells.
    weight, max_codes, kernels
        As of `table.coding.make_codes`.
    """

    def __init__(self, table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> None:
        self.table, self.n_rows = table, table.n_rows
        self.columns = list(code_stored_columns(table, weight, max_codes, kernels))
        self.features, self.edges, self.has_missing = describe_stored(self.columns, table.schema.is_categorical)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @once
    def rows(self) -> NDArray[np.uint16]:
        """The codes of all cells, (n_rows, stride), for what needs them."""
        return write_stored_rows(self.columns, self.n_rows)

    @once
    def values(self) -> SparseRows:
        """The rows as values, which take the branches that their codes take."""
        values = self.table.values()
        assert isinstance(values, SparseRows)
        return values

    def with_rows(self, rows: NDArray[np.uint16]) -> Codes:
        """The codes of some rows, that stand as a forest has them."""
        return Codes(rows, self.features, self.edges, self.has_missing)

    @once
    def zero(self) -> NDArray[np.uint16]:
        """The code of cells that are not stored, (n_features,)."""
        return np.array([column.zero for column in self.columns], CODE)

    def list_cells(self, is_chosen: NDArray[np.bool_]) -> OtherCells:
        """The cells of some numeric features that have another code than what is not stored."""
        chosen = np.flatnonzero(is_chosen)
        columns = [self.columns[j] for j in chosen.tolist()]
        code = np.concatenate([np.empty(0, CODE), *(column.codes for column in columns)])
        row = np.concatenate([np.empty(0, ROW), *(column.rows for column in columns)])
        feature = np.repeat(chosen, [len(column.codes) for column in columns])
        is_other = code != self.zero[feature]
        return OtherCells(feature[is_other], row[is_other].astype(ROW), code[is_other])


class OtherCells(NamedTuple):
    """Some cells of a table, feature after feature, rows ascending in each."""

    feature: NDArray[np.int64]
    row: NDArray[np.int32]
    code: NDArray[np.uint16]


def find_stored_cells(codes: SparseCodes) -> SparseColumns | None:
    """What `table.cells.find_cells` finds, where 0 is the value that almost all rows have."""
    may_be = can_be_sparse(codes) & (codes.zero > 0)
    most = most_cells(codes, codes.n_rows).tolist()
    may_be &= np.array([has_few_cells(column, n) for column, n in zip(codes.columns, most, strict=True)], np.bool_)
    may_be = choose_sparse(codes, may_be)
    if not may_be.any():
        return None
    feature, row, code = codes.list_cells(may_be)
    number = (np.cumsum(may_be) - 1)[feature].astype(np.int32)
    n_sparse = int(np.count_nonzero(may_be))
    by_row = np.argsort(row, kind="stable")
    return SparseColumns(
        features=np.flatnonzero(may_be),
        usual=codes.zero[may_be],
        begin=np.append(0, np.cumsum(np.bincount(number, minlength=n_sparse))),
        row=row,
        code=code,
        row_begin=np.append(0, np.cumsum(np.bincount(row, minlength=codes.n_rows))),
        feature=number[by_row],
        row_code=code[by_row],
    )


def has_few_cells(column: StoredCodes, most: int) -> bool:
    """Whether at most so many stored cells have another code than those that are not stored."""
    return len(column.codes) <= most or bool(np.count_nonzero(column.codes != column.zero) <= most)


def pack_stored(codes: SparseCodes, *, has_cells: bool) -> tuple[NDArray[np.uint16], Packing]:
    """What `table.flags.pack_flags` makes of the codes of all cells; has_cells: whether features may be sparse."""
    sparse = find_stored_cells(codes) if has_cells else None
    laid = lay_out_flags(find_flags(codes), sparse)
    if laid is None:
        return codes.rows, whole_codes(codes.n_features)
    rows = np.zeros((codes.n_rows, laid.stride), CODE)
    for place, j in enumerate(laid.coded.tolist()):
        codes.columns[j].write(rows[:, place])
    is_on = codes.zero[laid.flags] == 2
    bits = np.packbits(is_on, bitorder="little")
    flagged = rows.view(np.uint8)[:, laid.first_byte : laid.first_byte + len(bits)]
    flagged[:] = bits
    is_flag = np.zeros(codes.n_features, np.bool_)
    is_flag[laid.flags] = True
    place_of = np.cumsum(is_flag) - 1
    cells = codes.list_cells(is_flag)
    is_other = (cells.code == 2) != (codes.zero[cells.feature] == 2)
    bit = place_of[cells.feature[is_other]]
    np.bitwise_xor.at(flagged, (cells.row[is_other], bit // 8), np.left_shift(1, bit % 8).astype(np.uint8))
    return rows, laid.packing(sparse)
