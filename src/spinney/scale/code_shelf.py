"""Codes of a table, kept in its store for the next fit: rows in blocks, and what the codes stand for.

Codes follow from the columns, the weights of the rows, which rows there are, and the most codes of a column: what was
made by the same numbers is found by their hash. Places of features in a row are worked out anew, and every code is
compared with the number of codes there are, so that no file can lead a kernel out of its arrays.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import CODE, MAX_CODES, MISSING_CODE, N_CODES
from spinney.model import container
from spinney.model.container import BrokenFileError
from spinney.scale.block_files import BlockFile, BlockWriter
from spinney.scale.work_folders import WorkFolder
from spinney.table.binning import Bins, Cuts, describe, lay_out, no_bundles
from spinney.table.coding import Codes, describe_codes, row_stride

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.scale.layout import Layout
    from spinney.table.schema import Schema

FOLDER = "codes"
ROWS = "rows.bin"
ABOUT = "about.spn"


class DiskShelf:
    """Codes in a folder of a store, of one meaning of its columns.

    Parameters
    ----------
    store : Path
    layout : Layout
    schema : Schema
        Which columns are categories, and which dates.
    """

    def __init__(self, store: Path, layout: Layout, schema: Schema) -> None:
        self.folder, self.layout, self.schema = store / FOLDER, layout, schema

    def place_of(self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> Path:
        """Where codes are kept that were made by these numbers."""
        meaning = kind, max_codes, self.layout.digest, self.schema.levels, self.schema.dates, len(weight)
        digest = hashlib.sha256(repr(meaning).encode())
        digest.update(np.ascontiguousarray(weight).data)
        digest.update(b"" if keep is None else np.packbits(keep).data)
        return self.folder / f"{kind}-{digest.hexdigest()[:40]}"

    def find(self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> Any:
        """Codes that were made by the same numbers, or None."""
        place = self.place_of(kind, max_codes, weight, keep)
        if not place.is_dir():
            return None
        n_rows = self.layout.n_rows if keep is None else int(np.count_nonzero(keep))
        try:
            return read_codes(place, kind, n_rows, self.layout.block_rows, self.schema.is_categorical)
        except FileNotFoundError as error:
            raise BrokenFileError(f"{error.filename} is missing: remove {place}, it is made anew.") from None

    def put(
        self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None, codes: Any
    ) -> None:
        """Keep codes; where the store cannot be written to, or its disk is full, they are made again next time."""
        place = self.place_of(kind, max_codes, weight, keep)
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with WorkFolder(self.folder) as beside:
                write_codes(beside.path, codes, self.layout.block_rows)
                beside.move(place)


def write_codes(folder: Path, codes: Codes | Bins, block_rows: int) -> None:
    """Write codes to a new folder."""
    writer = BlockWriter(folder / ROWS)
    for lo in range(0, len(codes.rows), block_rows):
        writer.write(codes.rows[lo : lo + block_rows])
    digest = writer.close()
    container.write(folder / ABOUT, {"n_codes": codes.features[N_CODES], "edges": codes.edges}, {"digest": digest})


def read_codes(
    folder: Path, kind: str, n_rows: int, block_rows: int, is_categorical: NDArray[np.bool_]
) -> Codes | Bins:
    """Read codes, every one of them checked."""
    about = container.read(folder / ABOUT, is_mapped=False)
    edges = check_edges(folder, about, len(is_categorical))
    n_codes = [len(low) for low, _ in edges]
    if kind == "codes":
        stride = row_stride(len(edges))
        rows: NDArray[Any] = np.empty((n_rows, stride), CODE)
        places = [(rows, j) for j in range(len(edges))]
    else:
        place, is_wide, stride = lay_out(n_codes)
        rows = np.empty((n_rows, stride), np.uint8)
        wide = rows.view("<u2")
        places = [(wide, at // 2) if two else (rows, at) for at, two in zip(place.tolist(), is_wide, strict=True)]
    n_bytes = stride * rows.itemsize
    lengths = [n_bytes * min(block_rows, n_rows - lo) for lo in range(0, n_rows, block_rows)]
    file = BlockFile(folder / ROWS, lengths, about.text.get("digest", ""))
    has_missing = np.zeros(len(edges), np.bool_)
    try:
        for k, lo in enumerate(range(0, n_rows, block_rows)):
            file.read(k, rows[lo : lo + block_rows])
            for j, (table, at) in enumerate(places):
                codes = table[lo : lo + block_rows, at]
                if codes.max() > n_codes[j]:
                    raise BrokenFileError(f"{folder / ROWS}: block {k} has a code that stands for nothing: remove it.")
                has_missing[j] |= codes.min() == MISSING_CODE
    finally:
        file.close()
    if kind == "codes":
        return Codes(rows, *describe_codes(edges, is_categorical), has_missing)
    cuts = [Cuts(low, high, bool(lacks)) for (low, high), lacks in zip(edges, has_missing, strict=True)]
    return Bins(rows, place, is_wide, *describe(cuts, is_categorical), *no_bundles(len(cuts)))


def check_edges(
    folder: Path, about: container.Container, n_features: int
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Lowest and highest value behind each code of each feature, ascending."""
    n_codes, edges = about.arrays.get("n_codes"), about.arrays.get("edges")
    is_sound = n_codes is not None and edges is not None and n_codes.dtype == np.int64 and edges.dtype == np.float64
    if is_sound and n_codes is not None and edges is not None:
        is_sound = n_codes.shape == (n_features,) and bool(np.all((n_codes >= 0) & (n_codes <= MAX_CODES)))
        is_sound = is_sound and edges.shape == (2, int(n_codes.sum()))
        if is_sound:
            ends = np.cumsum(n_codes)
            found = [(edges[0, end - n : end], edges[1, end - n : end]) for n, end in zip(n_codes, ends, strict=True)]
            if all(np.all(low <= high) and np.all(high[:-1] < low[1:]) for low, high in found):
                return [(low.copy(), high.copy()) for low, high in found]
    raise BrokenFileError(f"{folder / ABOUT} is not what codes stand for: remove {folder}, it is made anew.")
