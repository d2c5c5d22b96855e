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
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.scale.coded_blocks import CodedBlocks


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
    sample = sample_blocks(bins)
    usual = usual_codes(bins.outline, sample)
    candidates, in_sample = list_candidates(bins.outline, usual, sample)
    known = np.zeros((len(candidates), len(candidates)), np.bool_)
    while True:
        bundles = find_bundles(bins.outline, candidates, in_sample, MetInPairs(known))
        if not bundles or not note_meetings(bins, usual, candidates, bundles, known):
            return usual, bundles


def sample_blocks(bins: CodedBlocks) -> NDArray[np.uint8]:
    """Every so many-th row of all."""
    step = sample_step(bins.n_rows)
    return np.concatenate(
        [bins.read(k)[-(k * bins.block_rows) % step :: step].copy() for k in range(bins.n_blocks)], dtype=np.uint8
    )


def note_meetings(
    bins: CodedBlocks,
    usual: NDArray[np.int64],
    candidates: NDArray[np.int64],
    bundles: list[list[int]],
    known: NDArray[np.bool_],
) -> bool:
    """Note in `known` which features of one bundle are unusual in one row; return whether there are any."""
    is_wrong = False
    place_of = {feature: k for k, feature in enumerate(candidates.tolist())}
    for k in range(bins.n_blocks):
        rows = np.ascontiguousarray(bins.read(k).T)
        for members in bundles:
            is_unusual = rows[bins.place[members]] != usual[members, np.newaxis]
            meet = is_unusual.sum(axis=0, dtype=np.uint8) > 1  # of 255 features at most
            if meet.any():
                is_wrong = True
                both = is_unusual[:, meet].astype(np.float32)
                at = [place_of[feature] for feature in members]
                known[np.ix_(at, at)] |= both @ both.T > 0.0
    return is_wrong


def write_shared(bins: CodedBlocks, usual: NDArray[np.int64], bundles: list[list[int]], folder: Path) -> None:
    """Write the same rows with bytes that features share."""
    outline = lay_out_bundles(bins.outline, usual, bundles)
    writer = BlocksWriter(folder, BINS, bins.block_rows)
    n_at_once = rows_at_once(bins.outline, 4 * BYTES_AT_ONCE)
    for k in range(bins.n_blocks):
        rows = bins.read(k)
        new = np.zeros((len(rows), outline.rows.shape[1]), np.uint8)
        for lo in range(0, len(rows), n_at_once):
            bundle_rows(rows[lo : lo + n_at_once], bins.outline, outline, bundles, new[lo : lo + n_at_once])
        writer.add(new)
    writer.finish(outline)
