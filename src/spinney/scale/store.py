"""A store: a folder of the columns of a table, and of the codes that fits have made of them, read without trust."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spinney.model.container import BrokenFileError
from spinney.scale.block_files import BlockFile
from spinney.scale.code_shelf import DiskShelf
from spinney.scale.column_writing import NO_INTEGER
from spinney.scale.layout import (
    BOOLEAN_TYPE,
    CATEGORIES,
    DATES,
    FEATURE,
    GROUPS,
    NUMBERS,
    TARGET,
    VALUES,
    WEIGHT,
    read_layout,
)
from spinney.scale.plan import FitPlan, make_plan
from spinney.scale.stored_table import StoredTable
from spinney.table.columns import WIDE, Categories, Columns, Dates, Deferred, Numbers
from spinney.table.dates import pick_extremes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.scale.layout import Layout, StoredColumn
    from spinney.scale.work_folders import WorkFolder
    from spinney.table.columns import Column
    from spinney.table.ingest import Table
    from spinney.table.schema import Schema

NOTHING = np.empty(0)


@dataclass(frozen=True, slots=True)
class Booleans(Numbers):
    """Numbers that are 0, 1 or missing, and were false and true."""

    def exact(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The known ones as booleans, and where they stand."""
        known = ~np.isnan(self.values)
        return self.values[known].astype(np.bool_), known


class Store:
    """A table on disk that every later fit reads: what `scan(...).store(path)` gives, and `scan(path)` opens.

    Parameters
    ----------
    path : path
        The folder.
    memory : int, optional
        Bytes that a fit may take; None: as many as it needs.
    home : WorkFolder, optional
        The temporary folder that it is in, which goes with it: no codes are kept there.

    Attributes
    ----------
    n_rows : int
    feature_names : tuple of str
    target : str or None
        The column to predict.
    """

    def __init__(
        self, path: str | os.PathLike[str], memory: int | None = None, *, home: WorkFolder | None = None
    ) -> None:
        self.path = Path(path)
        self.memory = memory
        self._layout: Layout = read_layout(self.path)
        self._file = BlockFile(self.path / VALUES, self._layout.lengths(), self._layout.digest)
        self._home = home
        self._features = self._layout.find(FEATURE)
        self.n_rows = self._layout.n_rows
        self.feature_names = tuple(self._layout.columns[j].name for j in self._features)
        self.target = self._name_of(TARGET)

    def __repr__(self) -> str:
        target = "no target" if self.target is None else f"target {self.target!r}"
        return f"<store {str(self.path)!r}: {self.n_rows:,} rows, {len(self.feature_names)} features, {target}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """The folder, which is opened anew."""
        return Store, (self.path.absolute(), self.memory)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        refuse_array(self)

    def _name_of(self, role: str) -> str | None:
        found = self._layout.find(role)
        return self._layout.columns[found[0]].name if found else None

    def close(self) -> None:
        """Close the file of the columns."""
        self._file.close()

    def plan(self, estimator: Any) -> FitPlan:
        """What a fit will read and hold: `print` it.

        Parameters
        ----------
        estimator : estimator of this library
            Not fitted; its class counts.

        Returns
        -------
        FitPlan
        """
        columns, n_scores = list(self._layout.columns), self._count_scores(estimator)
        return make_plan(estimator, columns, self.n_rows, 0, self.memory, n_scores)

    def _count_scores(self, estimator: Any) -> int:
        """How many scores a boosted model has of a row: one for each class of three or more, or for each quantile."""
        if getattr(estimator, "loss", None) == "quantile":
            return int(np.size(estimator.alpha))
        if not hasattr(estimator, "predict_proba") or self.target is None:
            return 1
        n_classes = len(self.list_labels())
        return n_classes if n_classes > 2 else 1

    def list_labels(self) -> Sequence[Any] | NDArray[Any]:
        """The distinct values of the target."""
        found: NDArray[Any] | None = None
        for k in range(self.n_blocks):
            block = self.read_target(range(k, k + 1))
            if isinstance(block, Categories):
                return block.values
            if block is not None:
                found = np.unique(block if found is None else np.concatenate([found, np.unique(block)]))
        assert found is not None
        return found

    # --- columns ---

    def _read_raw(self, j: int, blocks: range | None = None) -> NDArray[Any]:
        """A column as it stands in the file; blocks: some of them that follow each other, None for all."""
        column, layout = self._layout.columns[j], self._layout
        blocks = range(layout.n_blocks) if blocks is None else blocks
        values = np.empty(sum(layout.rows_of(k) for k in blocks), column.dtype)
        for k in blocks:
            first = (k - blocks.start) * layout.block_rows
            self._file.read(k * len(layout.columns) + j, values[first : first + layout.rows_of(k)])
        self._check(column, values)
        return values

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Columns]:
        """The features block by block, as any X of a prediction is read; names: those that are wanted, None for all."""
        features = [j for j in self._features if names is None or self._layout.columns[j].name in names]
        found = tuple(self._layout.columns[j].name for j in features)
        for k in range(self._layout.n_blocks):

            def read(j: int, block: int = k) -> Column:
                return self._read_column(features[j], range(block, block + 1))

            yield Columns(found, self._layout.rows_of(k), len(features), is_frame=True, read=read)

    def _check(self, column: StoredColumn, values: NDArray[Any]) -> None:
        """Refuse what no writer has written: codes without a value, booleans that are neither."""
        if column.kind == CATEGORIES:
            bad = values.min() < -1 or values.max() >= len(column.values)
        elif column.dtype == BOOLEAN_TYPE and column.role == FEATURE:
            bad = values.min() < -1 or values.max() > 1
        else:
            bad = column.dtype == "|b1" and values.view(np.uint8).max() > 1
        if bad:
            raise BrokenFileError(
                f"{self.path}: column {column.name!r} holds what it cannot hold. Make the store anew."
            )

    def _read_column(self, j: int, blocks: range | None = None) -> Column:
        """A column as columns in memory are; blocks: as of `_read_raw`."""
        column, values = self._layout.columns[j], self._read_raw(j, blocks)
        if column.kind == DATES:
            return Dates(values.view("datetime64[us]"), column.has_zone)
        return self._with_codes(column, values) if column.kind == CATEGORIES else self._as_numbers(column, values)

    def _as_numbers(self, column: StoredColumn, values: NDArray[Any]) -> Numbers:
        """Numbers, missing as NaN; wide integers beside missing ones keep their digits."""
        if column.dtype == BOOLEAN_TYPE:
            return Booleans(np.where(values < 0, np.nan, values.astype(np.float32)))
        if column.dtype not in NO_INTEGER:
            return Numbers(values)
        is_missing = values == NO_INTEGER[column.dtype]
        if not is_missing.any():
            return Numbers(values)
        numbers = values.astype(np.float64)
        numbers[is_missing] = np.nan
        with np.errstate(invalid="ignore"):
            is_wide = bool((np.abs(numbers) >= WIDE).any())
        if not is_wide:
            return Numbers(numbers)
        cells = values.astype(object)
        cells[is_missing] = None
        return Numbers(numbers, cells)

    def _with_codes(self, column: StoredColumn, codes: NDArray[np.int32]) -> Categories:
        """Categories of which every value occurs."""
        if not column.unused:
            return Categories(codes, list(column.values), column.is_ordered)
        is_used = np.ones(len(column.values), np.bool_)
        is_used[list(column.unused)] = False
        place = np.append(np.cumsum(is_used) - 1, -1).astype(np.int32)
        values = [value for value, used in zip(column.values, is_used.tolist(), strict=True) if used]
        return Categories(place[codes] if len(codes) else codes, values, column.is_ordered)

    def _outline(self, j: int) -> Column:
        """What a column is, without its rows where they tell nothing."""
        column = self._layout.columns[j]
        if column.kind == CATEGORIES:
            return self._with_codes(column, np.empty(0, np.int32))
        if column.kind == NUMBERS and column.dtype not in NO_INTEGER:
            return Numbers(NOTHING)
        blocks = (self._read_raw(j, range(k, k + 1)) for k in range(self._layout.n_blocks))
        if column.kind == DATES:
            return Dates(
                np.concatenate([pick_extremes(block.view("datetime64[us]")) for block in blocks]), column.has_zone
            )
        wide = [self._pick_wide(column, block) for block in blocks]
        return Numbers(np.unique(np.concatenate(wide)))

    def _pick_wide(self, column: StoredColumn, values: NDArray[Any]) -> NDArray[Any]:
        """The distinct ones of integers that float64 may not hold."""
        is_wide = (values >= WIDE) | (values <= -WIDE)
        return np.unique(values[is_wide & (values != NO_INTEGER[column.dtype])])

    def columns(self, most_workers: int | None = None) -> Columns:
        """The features, as any X of a fit is read; most_workers: threads that there is memory for, None: any number."""
        names, features = self.feature_names, self._features

        def read(j: int) -> Column:
            return self._read_column(features[j])

        def make_table(schema: Schema) -> Table:
            shelf = DiskShelf(self.path, self._layout, schema) if self._home is None else None
            columns = Columns(names, self.n_rows, len(features), is_frame=True, read=read)
            return StoredTable(schema, columns, shelf, self.batches, self._layout.block_rows, most_workers)

        deferred = Deferred(lambda j: self._outline(features[j]), make_table)
        return Columns(names, self.n_rows, len(features), is_frame=True, read=read, deferred=deferred)

    # --- what goes with them ---

    @property
    def n_blocks(self) -> int:
        """Blocks of rows."""
        return self._layout.n_blocks

    @property
    def block_rows(self) -> int:
        """Rows of a block; the last one may have fewer."""
        return self._layout.block_rows

    def read_target(self, blocks: range | None = None) -> NDArray[Any] | Categories | None:
        """The target: numbers, or text as categories; blocks: some that follow each other, None for all."""
        return self._read_labels(TARGET, blocks)

    def read_groups(self) -> NDArray[Any] | None:
        """Labels of groups as numbers, in the order of the labels."""
        labels = self._read_labels(GROUPS)
        if not isinstance(labels, Categories):
            return labels
        rank = {value: i for i, value in enumerate(sorted(labels.values))}
        return np.array([rank[value] for value in labels.values], np.int32)[labels.codes]

    def read_weight(self, blocks: range | None = None) -> NDArray[np.float64] | None:
        """Weights of rows; None: 1 each; blocks as of `read_target`."""
        found = self._layout.find(WEIGHT)
        return self._read_raw(found[0], blocks) if found else None

    def _read_labels(self, role: str, blocks: range | None = None) -> NDArray[Any] | Categories | None:
        found = self._layout.find(role)
        if not found:
            return None
        column, values = self._layout.columns[found[0]], self._read_raw(found[0], blocks)
        if column.kind != CATEGORIES:
            return values.astype(values.dtype.newbyteorder("="), copy=False)
        if len(values) and values.min() < 0:
            raise BrokenFileError(f"{self.path}: {role} {column.name!r} is missing in some rows. Make the store anew.")
        return self._with_codes(column, values)


def refuse_array(table: Any) -> NoReturn:
    """Tell whoever asks a table on disk for its rows, as scikit-learn's searches do, what takes it."""
    raise TypeError(
        f"{table!r} stands for rows that are not in memory: `fit` and `predict_batches` take it. Whatever else takes X "
        "needs rows: read a sample of them"
    )
