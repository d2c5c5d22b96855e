"""Bundles of features in blocks of rows on disk: those that `table.bundles` finds with all rows in memory.

Whether two features are ever unusual in one row is not known before all rows are read, and to note it for all pairs of
thousands of features takes long. So bundles are guessed by the pairs that are known to meet, and all rows are read to
find which of the bundles are wrong: these pairs are known then, and it is guessed anew. Each feature goes to the first
bundle that it can go to; one that is right in all rows can only have been passed over by pairs that do meet. So once no
bundle is wrong, they are those that knowing all pairs would have given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.scale.coded_blocks import BINS, BlocksWriter
from spinney.table.bundles import (
    BYTES_AT_ONCE,
    bundle_rows,
    find_bundles,
    lay_out_bundles,
    list_candidates,
    rows_at_once,
    sample_step,
    usual_codes,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.table.binning import Bins


class MetInPairs:
    """Features that are known to meet: `known` (n, n), by their places among the candidates."""

    def __init__(self, known: NDArray[np.bool_]) -> None:
        self.known = known
        self.members: list[list[int]] = []

    def is_free(self, bundle: int, feature: int) -> bool:
        """See `Met`."""
        return not self.known[feature, self.members[bundle]].any()

    def add(self, bundle: int, feature: int) -> None:
        """See `Met`."""
        if bundle == len(self.members):
            self.members.append([])
        self.members[bundle].append(feature)


def find_shared(bins: CodedBlocks) -> tuple[NDArray[np.int64], list[list[int]]]:
    """The usual code of each feature that may share a byte, and the features of each byte that is shared."""

    def note(search: SharedSearch, bundles: list[list[int]]) -> NDArray[np.bool_]:
        met = np.zeros_like(search.known)
        for k in range(bins.n_blocks):
            met |= search.meet(bins.read(k), bundles)
        return met

    return SharedSearch(bins.outline, sample_blocks(bins)).run(note)


class SharedSearch:
    """Guess bundles, have all rows read for features that meet, and guess anew.

    Parameters
    ----------
    outline : Bins
        What codes stand for.
    sample : uint8 (n, stride)
        Every so many-th row of all.
    """

    def __init__(self, outline: Bins, sample: NDArray[np.uint8]) -> None:
        self.outline, self.usual = outline, usual_codes(outline, sample)
        self.candidates, self.in_sample = list_candidates(outline, self.usual, sample)
        self.known = np.zeros((len(self.candidates), len(self.candidates)), np.bool_)

    def run(
        self, note: Callable[[SharedSearch, list[list[int]]], NDArray[np.bool_]]
    ) -> tuple[NDArray[np.int64], list[list[int]]]:
        """The usual codes, and the bundles; note: gives what `meet` does for all rows."""
        while True:
            bundles = find_bundles(self.outline, self.candidates, self.in_sample, MetInPairs(self.known))
            if not bundles:
                return self.usual, bundles
            met = note(self, bundles)
            if not met.any():
                return self.usual, bundles
            self.known |= met

    def meet(self, rows: NDArray[np.uint8], bundles: list[list[int]]) -> NDArray[np.bool_]:
        """Which features of one bundle are unusual in one of some rows, as `known` has them."""
        met = np.zeros_like(self.known)
        place_of = {feature: k for k, feature in enumerate(self.candidates.tolist())}
        columns = np.ascontiguousarray(rows.T)
        for members in bundles:
            is_unusual = columns[self.outline.place[members]] != self.usual[members, np.newaxis]
            meet = is_unusual.sum(axis=0, dtype=np.uint8) > 1  # of 255 features at most
            if meet.any():
                both = is_unusual[:, meet].astype(np.float32)
                at = [place_of[feature] for feature in members]
                met[np.ix_(at, at)] |= both @ both.T > 0.0
        return met


def sample_blocks(bins: CodedBlocks) -> NDArray[np.uint8]:
    """Every so many-th row of all."""
    step = sample_step(bins.n_rows)
    return np.concatenate(
        [sample_rows(bins.read(k), k * bins.block_rows, step).copy() for k in range(bins.n_blocks)], dtype=np.uint8
    )


def sample_rows(rows: NDArray[np.uint8], first: int, step: int) -> NDArray[np.uint8]:
    """Those of some rows that are of the sample; first: the first of them in the table."""
    return rows[-first % step :: step]


def write_shared(bins: CodedBlocks, usual: NDArray[np.int64], bundles: list[list[int]], folder: Path) -> None:
    """Write the same rows with bytes that features share."""
    outline = lay_out_bundles(bins.outline, usual, bundles)
    writer = BlocksWriter(folder, BINS, bins.block_rows)
    for k in range(bins.n_blocks):
        writer.add(share_bytes(bins.read(k), bins.outline, outline, bundles))
    writer.finish(outline)


def share_bytes(rows: NDArray[np.uint8], bins: Bins, outline: Bins, bundles: list[list[int]]) -> NDArray[np.uint8]:
    """Rows of bins as rows of the outline that has bytes that features share."""
    new = np.zeros((len(rows), outline.rows.shape[1]), np.uint8)
    n_at_once = rows_at_once(bins, 4 * BYTES_AT_ONCE)
    for lo in range(0, len(rows), n_at_once):
        bundle_rows(rows[lo : lo + n_at_once], bins, outline, bundles, new[lo : lo + n_at_once])
    return new
