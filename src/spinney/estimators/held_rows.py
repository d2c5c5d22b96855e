"""Rows of a table on disk that are held out to stop rounds by: drawn block by block, and held with their values.

They are those that `ensemble.held_out.draw_held_out` draws of rows in memory. Which they are is in a file; their
values, target and weights are in memory, as rows to evaluate on always are: the plan counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spinney.ensemble.held_out import KEY, HeldBlocks
from spinney.ensemble.sampling import BLOCK_BITS, draw_key
from spinney.scale.row_files import RowFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.estimators.rows_on_disk import ClassFactors
    from spinney.scale.row_files import FileRows
    from spinney.scale.stored_table import StoredTable

    Floats = NDArray[np.float64]

HELD = "held"  # file


class HeldRows(NamedTuple):
    """Rows that are held out."""

    is_held: FileRows  # of all rows of the table
    rows: NDArray[np.int64]  # their numbers
    y: Floats  # class codes, or numbers
    weight: Floats | None

    def read_values(self, table: StoredTable) -> Floats:
        """Their values, (n_rows, n_features)."""
        values = np.empty((len(self.rows), table.schema.n_features))
        at = 0
        for block in table.value_blocks(self.is_held):  # type: ignore[arg-type]
            values[at : at + len(block)] = cast("Floats", block)  # no store is sparse
            at += len(block)
        return values

    def close(self) -> None:
        """Give the space of the file back."""
        self.is_held.files.close()


def wants_held_rows(model: Any, *, has_sets: bool) -> bool:
    """Whether a fit stops early by rows that it holds out itself; has_sets: others were given."""
    return model.n_iter_no_change is not None and model.validation_fraction is not None and not has_sets


def hold_rows_out(factors: ClassFactors, seed: int, folder: Path) -> HeldRows:
    """Draw the rows that are held out; factors: give target and weights, seed: of the fit."""
    model, n_rows = factors.labels.model, factors.labels.store.n_rows
    has_classes = model._labels is not None  # noqa: SLF001
    n_classes, size = len(model._labels) if has_classes else 1, 1 << BLOCK_BITS  # noqa: SLF001
    counts = [
        np.bincount(stratum[is_used], minlength=n_classes)
        for stratum, is_used in (
            (y.astype(np.int64) if has_classes else np.zeros(len(y), np.int64), find_used(y, weight))
            for y, weight in cut_again(factors.blocks(), size)
        )
    ]
    key = draw_key(seed, KEY)
    draw = HeldBlocks(model.validation_fraction, key, n_rows, np.array(counts, np.int64), has_classes=has_classes)
    files = RowFiles(folder, size, n_rows)
    found: list[tuple[NDArray[np.int64], Floats, Floats | None]] = []
    try:
        for k, (y, weight) in enumerate(cut_again(factors.blocks(), size)):
            is_held = draw.draw(k, find_used(y, weight), y.astype(np.int64) if has_classes else None)
            files.write(HELD, k, is_held)
            found.append((k * size + np.flatnonzero(is_held), y[is_held], None if weight is None else weight[is_held]))
        for row in draw.released:
            files.write_span(HELD, row, np.zeros(1, np.bool_))
    except BaseException:
        files.close()
        raise
    rows = np.concatenate([rows for rows, _, _ in found])
    left = ~np.isin(rows, draw.released)
    weights = [weight for _, _, weight in found if weight is not None]
    weight = np.concatenate(weights)[left] if weights else None
    return HeldRows(files.view(HELD), rows[left], np.concatenate([y for _, y, _ in found])[left], weight)


def find_used(y: Floats, weight: Floats | None) -> NDArray[np.bool_]:
    """Rows of positive weight."""
    return np.ones(len(y), np.bool_) if weight is None else weight > 0.0


def cut_again(blocks: Iterable[tuple[Floats, Floats | None]], size: int) -> Iterator[tuple[Floats, Floats | None]]:
    """Blocks of so many rows, the last of fewer, of blocks of others."""
    held: list[tuple[Floats, Floats | None]] = []
    n_held = 0
    for pair in blocks:
        held.append(pair)
        n_held += len(pair[0])
        while n_held >= size:
            y, weight = join(held)
            yield y[:size], None if weight is None else weight[:size]
            held, n_held = [(y[size:], None if weight is None else weight[size:])], n_held - size
    if n_held:
        yield join(held)


def join(pairs: list[tuple[Floats, Floats | None]]) -> tuple[Floats, Floats | None]:
    """Targets and weights, one behind the other."""
    weights = [weight for _, weight in pairs if weight is not None]
    return np.concatenate([y for y, _ in pairs]), np.concatenate(weights) if weights else None
