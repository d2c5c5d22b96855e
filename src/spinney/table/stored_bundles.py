"""Bins of a sparse table whose features share bytes, written from its stored cells.

`bundle_features` reads the bytes that every feature has of its own, one for each cell of the table: of 10,000 words in
50,000 texts half a gigabyte. Here rows are as wide as bundles make them from the first byte on, and columns of so few
cells that no test may part them are not even coded: of 12,000 texts with 20,000 words nine words in ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import IS_CATEGORICAL, N_CODES, OFFSET, ROW
from spinney.table.binning import Bins, outline_stored, write_stored
from spinney.table.bundles import (
    MOST_COMPARED,
    USUAL_SHARE,
    cannot_part,
    lay_out_bundles,
    leave_out,
    may_share,
    pack_bits,
    sample_step,
    usual_flags,
)
from spinney.table.row_cells import pays
from spinney.table.stored_codes import code_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.ingest import Table
    from spinney.table.stored_codes import CodedCells

WORD = 64  # bundles of a word
FIRST_WORDS = 4


class UnusualRows(NamedTuple):
    """The rows in which features have another code than the usual one."""

    begin: NDArray[np.int64]  # (n_features + 1,): where those of each feature begin
    rows: NDArray[np.int32]

    def take(self, chosen: NDArray[np.bool_]) -> UnusualRows:
        """Those of some features, (n_features,) as flags."""
        n_rows = np.diff(self.begin)
        return UnusualRows(np.append(0, np.cumsum(n_rows[chosen])), self.rows[np.repeat(chosen, n_rows)])

    def arrange(self, order: NDArray[np.int64]) -> UnusualRows:
        """Features in another order."""
        n_rows = np.diff(self.begin)[order]
        begin = np.append(0, np.cumsum(n_rows))
        at = np.arange(len(self.rows)) + np.repeat(self.begin[order] - begin[:-1], n_rows)
        return UnusualRows(begin, self.rows[at])


def bundle_stored(table: Table, weight: NDArray[np.int64], max_bins: int, kernels: Any, least: int = 0) -> Bins:
    """What `bundle_features` makes of `bin_sparse_table`; of many rows features may share other bytes."""
    n_rows, step = table.n_rows, sample_step(table.n_rows)
    is_empty = find_empty(table, -(-n_rows // step), least)
    cells = code_cells(table, weight, max_bins, kernels, is_empty)
    outline = outline_stored(cells, table.schema.is_categorical)
    usual = usual_stored(cells, outline, n_rows, step)
    unusual = list_unusual_rows(cells, usual, n_rows)
    n_others = np.diff(unusual.begin)
    is_out = is_empty | ((usual > 0) & cannot_part(n_others, cells.n_codes, n_rows, least))
    is_out &= outline.features[IS_CATEGORICAL] == 0
    cells, outline = cells.leave_out(is_out), leave_out(outline, is_out)
    usual[is_out] = 0
    is_candidate = list_sharing(unusual, usual > 0, n_rows, step)
    bundles = find_stored_bundles(unusual.take(is_candidate), outline, is_candidate, n_rows, kernels)
    if bundles or is_out.any():
        outline = lay_out_bundles(outline, usual, bundles)
    return write_stored(cells, outline, n_rows)


def find_empty(table: Table, n_sample: int, least: int) -> NDArray[np.bool_]:
    """Columns of numbers that are 0 in all rows but so few that no test parts them, and in most of any sample."""
    assert table.stored is not None
    matrix, is_categorical = table.stored.by_column, table.schema.is_categorical
    n_stored = np.diff(matrix.indptr)
    is_empty: NDArray[np.bool_] = (n_stored < least) & (2 * n_stored <= n_sample) & ~is_categorical
    missing = np.flatnonzero(np.isnan(matrix.data)) if matrix.dtype.kind == "f" else np.empty(0, np.int64)
    is_empty[np.searchsorted(matrix.indptr, missing, side="right") - 1] = False
    return is_empty


def usual_stored(cells: CodedCells, outline: Bins, n_rows: int, step: int) -> NDArray[np.int64]:
    """What `usual_codes` gives for the rows 0, step, 2 step and so on."""
    usual, is_told = usual_flags(outline)
    n_codes, offset = outline.features[N_CODES], outline.features[OFFSET]
    is_asked = ~is_told & ~outline.is_wide & ~outline.has_missing & (n_codes > 0)
    sampled = np.flatnonzero(cells.rows % step == 0)
    feature = np.searchsorted(cells.begin, sampled, side="right") - 1
    is_mine = is_asked[feature]
    sampled, feature = sampled[is_mine], feature[is_mine]
    counts = np.bincount(offset[feature] + cells.codes[sampled] - 1, minlength=int(n_codes.sum()))
    n_sample = -(-n_rows // step)
    with_zeros = np.flatnonzero(is_asked & (cells.zero > 0))
    n_stored = np.bincount(feature, minlength=len(usual))
    counts[offset[with_zeros] + cells.zero[with_zeros] - 1] += (n_sample - n_stored)[with_zeros]
    feature_of = np.repeat(np.arange(len(usual)), n_codes)
    often = np.flatnonzero(is_asked[feature_of] & (counts >= USUAL_SHARE * n_sample))[::-1]
    usual[feature_of[often]] = often - offset[feature_of[often]] + 1  # of two codes the first, which is written last
    return usual


def list_unusual_rows(cells: CodedCells, usual: NDArray[np.int64], n_rows: int) -> UnusualRows:
    """The rows in which each feature that has a usual code has another one."""
    feature = cells.feature()
    is_other = (cells.codes != usual[feature]) & (usual[feature] > 0)
    feature, rows = feature[is_other], cells.rows[is_other]
    odd = np.flatnonzero((usual > 0) & (cells.zero != usual) & (np.diff(cells.begin) < n_rows))
    if len(odd):  # of which what is not stored is unusual
        left = [np.setdiff1d(np.arange(n_rows), cells.rows[cells.begin[j] : cells.begin[j + 1]]) for j in odd.tolist()]
        feature = np.concatenate([feature, np.repeat(odd, [len(some) for some in left])])
        order = np.argsort(feature, kind="stable")
        feature, rows = feature[order], np.concatenate([rows, *left])[order]
    counts = np.bincount(feature, minlength=len(usual))
    return UnusualRows(np.append(0, np.cumsum(counts)), rows.astype(ROW))


def list_sharing(unusual: UnusualRows, may_be: NDArray[np.bool_], n_rows: int, step: int) -> NDArray[np.bool_]:
    """Which features may share a byte, none or several, by their rows in the sample, as of `list_candidates`."""
    n = int(np.count_nonzero(may_be))
    can_share = np.ones(n, np.bool_)
    if n <= MOST_COMPARED:
        some = unusual.take(may_be)
        is_sampled = some.rows % step == 0
        flags = np.zeros((n, -(-n_rows // step)), np.bool_)
        flags[np.repeat(np.arange(n), np.diff(some.begin))[is_sampled], some.rows[is_sampled] // step] = True
        can_share = may_share(pack_bits(flags))
    chosen = may_be.copy()
    chosen[may_be] = can_share & (np.count_nonzero(can_share) > 1)
    return chosen


def find_stored_bundles(
    unusual: UnusualRows, outline: Bins, is_candidate: NDArray[np.bool_], n_rows: int, kernels: Any
) -> list[list[int]]:
    """Features of a common byte; unusual: of the candidates alone.

    The densest features first make fewer bytes of words, and more of one-hot blocks: both are tried, in milliseconds.
    Where rows are summed by their cells, a feature that shares its byte with none may be told by its unusual codes too.
    """
    candidates = np.flatnonzero(is_candidate)
    n_unusual, n_others = np.diff(unusual.begin), outline.features[N_CODES, candidates] - 1
    densest_first = np.argsort(-n_unusual, kind="stable")
    found = [place_features(unusual, n_others, n_rows, kernels)]
    found.append(place_features(unusual.arrange(densest_first), n_others[densest_first], n_rows, kernels))
    found[1] = found[1][np.argsort(densest_first)]
    bundle_of = min(found, key=lambda one: one.max(initial=-1))
    members = np.split(candidates[np.argsort(bundle_of, kind="stable")], np.cumsum(np.bincount(bundle_of))[:-1])
    n_own = int(np.count_nonzero((outline.place >= 0) & ~outline.is_wide)) - len(candidates)
    is_thin = pays(n_own + n_unusual.sum() / n_rows, n_own + len(members))
    return [bundle.tolist() for bundle in members if len(bundle) > (0 if is_thin else 1)]


def place_features(unusual: UnusualRows, n_others: NDArray[np.int64], n_rows: int, kernels: Any) -> NDArray[np.int64]:
    """The bundle of each feature, by `kernels.data.bundles.find_bundles`."""
    n, k, n_bundles = len(n_others), 0, 0
    bundle_of = np.zeros(n, np.int64)
    met, n_taken = np.zeros((FIRST_WORDS, n_rows), np.uint64), np.zeros(FIRST_WORDS * WORD, np.int64)
    while k < n:
        k, n_bundles = kernels.data.bundles.find_bundles(*unusual, n_others, met, n_taken, bundle_of, k, n_bundles)
        if k < n:
            met, n_taken = (np.concatenate([each, np.zeros_like(each)]) for each in (met, n_taken))
    return bundle_of
