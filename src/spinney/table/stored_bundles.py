"""Bins of a sparse table whose features share bytes, written from its stored cells.

`bundle_features` reads the bytes that every feature has of its own, one for each cell of the table: of 10,000 words in
50,000 texts half a gigabyte. Here rows are as wide as bundles make them from the first byte on; the bins are the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import N_CODES
from spinney.table.binning import Bins, outline_stored, write_bytes, write_stored, write_wide
from spinney.table.bundles import (
    MetInRows,
    find_bundles,
    lay_out_bundles,
    list_candidates,
    list_codes,
    pack_bits,
    sample_step,
    usual_codes,
)
from spinney.table.stored_codes import code_stored_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spinney.table.ingest import Table
    from spinney.table.stored_codes import StoredCodes


def bundle_stored(table: Table, weight: NDArray[np.int64], max_bins: int, kernels: Any) -> Bins:
    """What `bundle_features` makes of `bin_sparse_table`."""
    columns = list(code_stored_columns(table, weight, max_bins, kernels))
    bins = outline_stored(columns, table.schema.is_categorical)
    sample = sample_rows(columns, bins, table.n_rows)
    usual = usual_codes(bins, sample)
    candidates, in_sample = list_candidates(bins, usual, sample)
    if not len(candidates):
        return write_stored(columns, bins, table.n_rows)
    met = MetInRows(unusual_cells(columns, candidates, usual, table.n_rows))
    bundles = find_bundles(bins, candidates, in_sample, met)
    if not bundles:
        return write_stored(columns, bins, table.n_rows)
    return write_stored_bundles(columns, lay_out_bundles(bins, usual, bundles), bundles, table.n_rows)


def sample_rows(columns: Sequence[StoredCodes], bins: Bins, n_rows: int) -> NDArray[np.uint8]:
    """The rows of the sample that tells which features may share a byte, each with bytes of its own."""
    step = sample_step(n_rows)
    sample = np.zeros((-(-n_rows // step), bins.rows.shape[1]), np.uint8)
    for j in np.flatnonzero(~bins.is_wide).tolist():
        columns[j].write_every(step, sample[:, bins.place[j]])
    return sample


def unusual_cells(
    columns: Sequence[StoredCodes], features: NDArray[np.int64], usual: NDArray[np.int64], n_rows: int
) -> NDArray[np.uint64]:
    """Bits of the rows whose code is not the usual one, (n_features, n_rows / 64)."""
    flags = np.empty((1, n_rows), np.bool_)
    parts = []
    for j in features.tolist():
        flags[:] = columns[j].zero != usual[j]
        flags[0, columns[j].rows] = columns[j].codes != usual[j]
        parts.append(pack_bits(flags))
    return np.concatenate(parts)


def write_stored_bundles(columns: Sequence[StoredCodes], outline: Bins, bundles: list[list[int]], n_rows: int) -> Bins:
    """Bins as they are laid out: features that have a byte of their own first, then bundles, then wide ones."""
    rows = np.zeros((n_rows, outline.rows.shape[1]), np.uint8)
    is_own = (outline.base < 0) & ~outline.is_wide
    own = [columns[j].write for j in np.flatnonzero(is_own).tolist()]
    shared = [partial(write_bundle, [(columns[j], told_codes(outline, j)) for j in members]) for members in bundles]
    write_bytes(rows, [*own, *shared])
    write_wide(rows, columns, outline)
    return outline._replace(rows=rows)


def told_codes(outline: Bins, j: int) -> NDArray[np.uint8]:
    """What each code of a feature adds to the byte that it shares."""
    return list_codes(int(outline.base[j]), int(outline.usual[j]), int(outline.features[N_CODES, j]))


def write_bundle(members: list[tuple[StoredCodes, NDArray[np.uint8]]], out: NDArray[np.uint8]) -> None:
    """Write the byte that features share, for every row; no two of them are unusual in one."""
    out[:] = 0
    for column, told in members:
        if told[column.zero] != 0:  # a row without a cell is the unusual one
            is_stored = np.zeros(len(out), np.bool_)
            is_stored[column.rows] = True
            out[~is_stored] += told[column.zero]
        out[column.rows] += told[column.codes]
