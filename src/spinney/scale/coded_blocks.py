"""Codes of a table on disk, in blocks of rows, and what they stand for.

A folder of two files: `rows.bin`, the rows of codes as they are in memory, in blocks with a hash each, and `about.spn`,
a container with

    n_codes, has_missing   (n_features,) codes of each feature, and whether rows lack it
    edges                  (2, n_codes of all features) lowest and highest value behind each code
    bundle, usual          (n_features,) the byte that a feature shares, -1 for none, and the code that it does not tell
    text                   kind, n_rows, block_rows, and the hash of the hashes

Places of features in a row are worked out anew, and every code is compared with the number of codes there are, so that
no file can lead a kernel out of its arrays.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from spinney._types import CODE, MAX_CODES, MISSING_CODE, N_CODES
from spinney.model import container
from spinney.model.container import BrokenFileError
from spinney.scale.block_files import BlockFile, BlockWriter
from spinney.scale.layout import LEAST_BLOCK, MOST_BLOCK, MOST_ROWS
from spinney.table.binning import MOST_NARROW, Bins, Cuts, describe, lay_out, no_bundles
from spinney.table.bundles import lay_out_bundles
from spinney.table.coding import Codes, row_stride

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.scale.work_folders import WorkFolder

ROWS = "rows.bin"
ABOUT = "about.spn"
BINS, CODES = "bins", "codes"  # as the shelf calls them: bytes for boosting, 16 bits for trees
NAMES = {"n_codes", "has_missing", "edges", "bundle", "usual"}


# --- What codes stand for ---------------------------------------------------------------------------------------


def outline_of(kind: str, cuts: Sequence[Cuts], is_categorical: NDArray[np.bool_]) -> Bins:
    """Bins without rows. Of 16-bit codes every feature takes two bytes, as `table.coding` has them side by side."""
    if kind == CODES:
        place, is_wide = 2 * np.arange(len(cuts)), np.ones(len(cuts), np.bool_)
        stride = 2 * row_stride(len(cuts))
    else:
        place, is_wide, stride = lay_out([len(cut.low) for cut in cuts])
    rows = np.zeros((0, stride), np.uint8)
    return Bins(rows, place, is_wide, *describe(cuts, is_categorical), *no_bundles(len(cuts)))


def list_bundles(outline: Bins) -> list[list[int]]:
    """Features that share a byte, those of one byte together."""
    shared = np.flatnonzero(outline.base >= 0)
    return [shared[outline.place[shared] == byte].tolist() for byte in np.unique(outline.place[shared])]


class Limits(NamedTuple):
    """What a row of codes may hold."""

    most: NDArray[np.uint8]  # (stride,) of each byte that is a code
    most_wide: NDArray[np.uint16]  # (stride / 2,) of each two that are; bytes of narrow features have no limit here
    has_no_missing: NDArray[np.bool_]  # (stride,) bytes that are never 0
    has_no_missing_wide: NDArray[np.bool_]
    has_wide: bool

    def is_kept(self, rows: NDArray[np.uint8]) -> bool:
        """Whether rows hold nothing else."""
        is_good = not np.any(rows.max(axis=0) > self.most)
        is_good = is_good and not np.any((rows.min(axis=0) == MISSING_CODE) & self.has_no_missing)
        if is_good and self.has_wide:
            wide = rows.view("<u2")
            is_good = not np.any(wide.max(axis=0) > self.most_wide)
            is_good = is_good and not np.any((wide.min(axis=0) == MISSING_CODE) & self.has_no_missing_wide)
        return bool(is_good)


def limits_of(outline: Bins) -> Limits:
    """The limits of rows of bins."""
    stride = outline.rows.shape[1]
    most, most_wide = np.full(stride, MOST_NARROW, np.uint8), np.full(stride // 2, MAX_CODES, np.uint16)
    is_whole, is_whole_wide = np.zeros(stride, np.bool_), np.zeros(stride // 2, np.bool_)
    own = np.flatnonzero((outline.base < 0) & ~outline.is_wide)
    wide = np.flatnonzero(outline.is_wide)
    most[outline.place[own]] = outline.features[N_CODES, own]
    is_whole[outline.place[own]] = ~outline.has_missing[own]
    most_wide[outline.place[wide] // 2] = outline.features[N_CODES, wide]
    is_whole_wide[outline.place[wide] // 2] = ~outline.has_missing[wide]
    for members in list_bundles(outline):
        most[outline.place[members[0]]] = (outline.features[N_CODES, members] - 1).sum()
    return Limits(most, most_wide, is_whole, is_whole_wide, has_wide=len(wide) > 0)


# --- Writing ----------------------------------------------------------------------------------------------------


class BlocksWriter:
    """Rows of codes on their way to disk: they gather until a block is full.

    Parameters
    ----------
    folder : Path
        A new one.
    kind : {"bins", "codes"}
    block_rows : int
    """

    def __init__(self, folder: Path, kind: str, block_rows: int) -> None:
        self.folder, self.kind, self.block_rows = folder, kind, block_rows
        self.file = BlockWriter(folder / ROWS)
        self.block: NDArray[np.uint8] | None = None
        self.n_held = self.n_rows = 0

    def add(self, rows: NDArray[np.uint8]) -> None:
        """Take some rows (n, stride)."""
        if self.block is None:
            self.block = np.empty((self.block_rows, rows.shape[1]), np.uint8)
        at = 0
        while at < len(rows):
            n = min(self.block_rows - self.n_held, len(rows) - at)
            if n == self.block_rows:  # as they are
                self.file.write(np.ascontiguousarray(rows[at : at + n]))
            else:
                self.block[self.n_held : self.n_held + n] = rows[at : at + n]
                self.n_held += n
                if self.n_held == self.block_rows:
                    self.flush()
            at += n
            self.n_rows += n

    def flush(self) -> None:
        """Write the block."""
        if self.block is not None and self.n_held:
            self.file.write(self.block[: self.n_held])
        self.n_held = 0

    def finish(self, outline: Bins) -> None:
        """Write what is left, and what the codes stand for."""
        self.flush()
        digest = self.file.close()
        bundle = np.full(outline.n_features, -1)
        for b, members in enumerate(list_bundles(outline)):
            bundle[members] = b
        arrays = {
            "n_codes": outline.features[N_CODES],
            "has_missing": outline.has_missing,
            "edges": outline.edges,
            "bundle": bundle,
            "usual": outline.usual,
        }
        text = {"kind": self.kind, "n_rows": str(self.n_rows), "block_rows": str(self.block_rows), "digest": digest}
        container.write(self.folder / ABOUT, arrays, text)


def write_blocks(folder: Path, codes: Codes | Bins, block_rows: int) -> None:
    """Write codes that are in memory to a new folder."""
    is_bins = isinstance(codes, Bins)
    writer = BlocksWriter(folder, BINS if is_bins else CODES, block_rows)
    rows: NDArray[np.uint8] = codes.rows.view(np.uint8)
    for lo in range(0, len(rows), block_rows):
        writer.add(rows[lo : lo + block_rows])
    writer.finish(codes if isinstance(codes, Bins) else codes_as_bins(codes))


def codes_as_bins(codes: Codes) -> Bins:
    """Codes of trees in the words of bins, without rows."""
    n_features = codes.n_features
    place, is_wide = 2 * np.arange(n_features), np.ones(n_features, np.bool_)
    rows = np.zeros((0, 2 * codes.rows.shape[1]), np.uint8)
    return Bins(rows, place, is_wide, codes.features, codes.edges, codes.has_missing, *no_bundles(n_features))


# --- Reading ----------------------------------------------------------------------------------------------------


class CodedBlocks:
    """Codes of a table on disk: what `Bins` has but for the rows, which are read a block at a time.

    Attributes
    ----------
    n_rows, block_rows, n_blocks, stride : int
        The last block may have fewer rows; a row has `stride` bytes.
    outline : Bins
        What the codes stand for; its `rows` are none.
    """

    def __init__(
        self, folder: Path, kind: str, is_categorical: NDArray[np.bool_], home: WorkFolder | None = None
    ) -> None:
        self.folder, self.kind = folder, kind
        self._home = home
        try:
            about = container.read(folder / ABOUT, is_mapped=False)
        except FileNotFoundError as error:
            raise BrokenFileError(f"{error.filename} is missing: remove {folder}, it is made anew.") from None
        self.outline = check_about(folder, about, kind, is_categorical)
        self.n_rows, self.block_rows = int(about.text["n_rows"]), int(about.text["block_rows"])
        self.stride = self.outline.rows.shape[1]
        self.n_blocks = -(-self.n_rows // self.block_rows)
        lengths = [self.stride * self.rows_of(k) for k in range(self.n_blocks)]
        self._file = BlockFile(folder / ROWS, lengths, about.text["digest"])
        self._limits = limits_of(self.outline)
        self._stamp = self._take_stamp()
        self._is_checked = np.zeros(self.n_blocks, np.bool_)

    @property
    def place(self) -> NDArray[np.int64]:
        """Byte offset of each feature in a row."""
        return self.outline.place

    @property
    def is_wide(self) -> NDArray[np.bool_]:
        """Which features take two bytes."""
        return self.outline.is_wide

    @property
    def features(self) -> NDArray[np.int64]:
        """What is known of each feature, see `Bins`."""
        return self.outline.features

    @property
    def edges(self) -> NDArray[np.float64]:
        """Lowest and highest value behind each code."""
        return self.outline.edges

    @property
    def has_missing(self) -> NDArray[np.bool_]:
        """Which features some rows lack."""
        return self.outline.has_missing

    @property
    def base(self) -> NDArray[np.int64]:
        """Where the codes of a feature that shares a byte begin, see `table.bundles`."""
        return self.outline.base

    @property
    def usual(self) -> NDArray[np.int64]:
        """The code that such a byte does not tell."""
        return self.outline.usual

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.outline.n_features

    def rows_of(self, k: int) -> int:
        """Rows of block k: the last one may have fewer."""
        return min(self.block_rows, self.n_rows - k * self.block_rows)

    def read(self, k: int, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """The rows of block k, (rows_of(k), stride); into `out`, (block_rows, stride), where given.

        Hash and codes are compared when a block is read for the first time, and again once the file has changed.
        """
        rows = np.empty((self.rows_of(k), self.stride), np.uint8) if out is None else out[: self.rows_of(k)]
        stamp = self._take_stamp()
        if stamp != self._stamp:
            self._is_checked[:] = False
            self._stamp = stamp
        if self._is_checked[k]:
            self._file.read_again(k, rows)
            return rows
        self._file.read(k, rows)
        if not self._limits.is_kept(rows):
            raise BrokenFileError(f"{self._file.path}: block {k} has a code that stands for nothing: remove it.")
        self._is_checked[k] = True
        return rows

    def expect(self, k: int) -> None:
        """Tell the system that block k is read soon, if there is one."""
        if k < self.n_blocks:
            self._file.expect(k)

    def _take_stamp(self) -> tuple[int, int]:
        about = os.fstat(self._file.file.fileno())
        return about.st_size, about.st_mtime_ns

    def load(self) -> Bins | Codes:
        """All rows in memory: `Bins`, or `Codes` for trees."""
        rows = np.empty((self.n_rows, self.stride), np.uint8)
        for k in range(self.n_blocks):
            first = k * self.block_rows
            self.read(k, rows[first : first + self.block_rows])
        if self.kind == BINS:
            return self.outline._replace(rows=rows)
        return Codes(rows.view(CODE), self.outline.features, self.outline.edges, self.outline.has_missing)

    def close(self) -> None:
        """Close the file; remove the folder, if it is a temporary one."""
        self._file.close()
        if self._home is not None:
            self._home.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_about(folder: Path, about: container.Container, kind: str, is_categorical: NDArray[np.bool_]) -> Bins:
    """The outline that a file claims, refused where it is none that could have been written."""
    arrays, text, n_features = about.arrays, about.text, len(is_categorical)
    is_sound = set(arrays) == NAMES and set(text) == {"kind", "n_rows", "block_rows", "digest"} and text["kind"] == kind
    is_sound = is_sound and all(text[name].isdigit() for name in ("n_rows", "block_rows"))
    is_sound = is_sound and all(len(text[name]) <= len(str(MOST_ROWS)) for name in ("n_rows", "block_rows"))
    is_sound = is_sound and 0 < int(text["n_rows"]) <= MOST_ROWS
    is_sound = is_sound and LEAST_BLOCK <= int(text["block_rows"]) <= MOST_BLOCK
    dtypes = {"n_codes": np.int64, "has_missing": np.bool_, "edges": np.float64, "bundle": np.int64, "usual": np.int64}
    is_sound = is_sound and all(arrays[name].dtype == dtype for name, dtype in dtypes.items())
    is_sound = is_sound and all(arrays[name].shape == (n_features,) for name in NAMES - {"edges"})
    if is_sound:
        cuts = split_edges(arrays["n_codes"], arrays["edges"], arrays["has_missing"])
        if cuts is not None:
            outline = outline_of(kind, cuts, is_categorical)
            bundles = check_bundles(outline, arrays["bundle"], arrays["usual"])
            if bundles is not None:
                return lay_out_bundles(outline, arrays["usual"], bundles) if bundles else outline
    raise BrokenFileError(f"{folder / ABOUT} is not what codes stand for: remove {folder}, it is made anew.")


def split_edges(
    n_codes: NDArray[np.int64], edges: NDArray[np.float64], has_missing: NDArray[np.bool_]
) -> list[Cuts] | None:
    """The cuts of each feature; None unless they are ascending."""
    if not np.all((n_codes >= 0) & (n_codes <= MAX_CODES)) or edges.shape != (2, int(n_codes.sum())):
        return None
    ends = np.cumsum(n_codes)
    cuts = [
        Cuts(edges[0, end - n : end].copy(), edges[1, end - n : end].copy(), bool(lacks))
        for n, end, lacks in zip(n_codes, ends, has_missing, strict=True)
    ]
    is_ascending = all(np.all(cut.low <= cut.high) and np.all(cut.high[:-1] < cut.low[1:]) for cut in cuts)
    return cuts if is_ascending else None


def check_bundles(outline: Bins, bundle: NDArray[np.int64], usual: NDArray[np.int64]) -> list[list[int]] | None:
    """Features of each shared byte; None where they cannot share it."""
    n_codes = outline.features[N_CODES]
    is_shared = bundle >= 0
    if np.any(bundle < -1) or np.any(is_shared & (outline.is_wide | outline.has_missing)):
        return None
    if np.any(usual[~is_shared] != 0) or np.any(is_shared & ((usual < 1) | (usual > n_codes))):
        return None
    found = [np.flatnonzero(bundle == b).tolist() for b in np.unique(bundle[is_shared])]
    return found if all(len(one) > 1 and (n_codes[one] - 1).sum() <= MOST_NARROW for one in found) else None
