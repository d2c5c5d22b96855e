"""A fit of gradient boosting whose rows are spread over the workers of a cluster, and of which no worker has all.

    partitions ──► parts of equal lengths, at the workers ──► kinds of columns, classes; target and weights ──► client
                        │
                        └──► sorted runs of each column, merged ──► cuts ──► codes, at the workers ──► trees by levels

The client holds what does not depend on the number of rows, beside 16 bytes of each, target and weight, in files of its
disk. Rows to evaluate on are the client's.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MAX_CODES
from spinney.estimators.boosting_by_levels import grow_by_levels, refuse_requests
from spinney.estimators.checks import open_x
from spinney.estimators.level_tasks import (
    Coding,
    PlacedOutline,
    RowRule,
    Sharing,
    code_part,
    meet_part,
    place_rows,
    sample_part,
)
from spinney.estimators.spread_rows import SpreadLabels, count_placed, cut_spread, mark_parts, open_spread
from spinney.scale.block_bundles import SharedSearch
from spinney.scale.cluster.cluster_line import ClusterLine
from spinney.scale.cluster.level_parts import LevelParts
from spinney.scale.cluster.row_ranges import find_ranges
from spinney.scale.coded_blocks import BINS, outline_of
from spinney.table.bundles import lay_out_bundles, sample_step
from spinney.table.ingest import read_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.boosting_levels import LevelBoosting
    from spinney.estimators.boosting_by_levels import BoostingRequest
    from spinney.estimators.boosting_data import BoostingData
    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.rows_on_disk import RowsOnDisk
    from spinney.estimators.training import Effort
    from spinney.model.fitted_boosting import FittedBoosting
    from spinney.scale.cluster.engine import Held
    from spinney.table.binning import Bins

    Floats = NDArray[np.float64]

# --- The place ------------------------------------------------------------------------------------------------


class ClusterPlace:
    """Rows at the workers of a cluster.

    Parameters
    ----------
    rows : ClusterRows
    rule : RowRule
        How target and weights are read.
    is_eager : bool
        Show from the beginning how far it has come.
    """

    name = "spread over workers"
    way_out = "fit on one worker, dask.config.set({'spinney.plan': 'one'})"

    def __init__(self, rows: ClusterRows, rule: RowRule, *, is_eager: bool) -> None:
        self.rows, self.engine, self.rule, self.is_eager = rows, rows.engine, rule, is_eager
        self.coded: list[Held] = []
        self.n_kept: list[int] = []
        self.placed: list[Held] = []
        self.edges: Floats | None = None
        self.level_parts: LevelParts | None = None

    def code(self, data: BoostingData, rows: RowsOnDisk, effort: Effort, max_bins: int | None) -> Bins:
        """See `LevelPlace`."""
        del effort
        schema = data.table.schema
        self.rule = self.rule._replace(meaning=rows.meaning, weights=rows.weights)
        most = MAX_CODES if max_bins is None else max_bins
        cuts = cut_spread(self.rows, schema, [self.rule] * self.rows.n_blocks, most)
        outline = outline_of(BINS, cuts, schema.is_categorical)
        coding = Coding(schema, self.rule, cuts, outline)
        self.coded = [
            self.engine.hold("codes", code_part, table, coding, turn=k) for k, table in enumerate(self.rows.tables)
        ]
        self.n_kept = count_kept(rows, self.rows)
        sharing = self.share(outline)
        if sharing is not None:
            usual, bundles = sharing
            shared = lay_out_bundles(outline, usual, bundles)
            how = PlacedOutline(shared, Sharing(outline, bundles), data.loss.n_raw)
        else:
            how = PlacedOutline(outline, None, data.loss.n_raw)
        self.place(how)
        self.edges = how.outline.edges
        return how.outline

    def share(self, outline: Bins) -> tuple[NDArray[np.int64], list[list[int]]] | None:
        """The features that share a byte; None: none does."""
        firsts = [0, *np.cumsum(self.n_kept).tolist()]
        step = sample_step(firsts[-1])
        jobs = ([coded, first, step] for coded, first in zip(self.coded, firsts, strict=False))
        found = dict(result for _, result in self.engine.map("sample", sample_part, jobs))
        sample = np.concatenate([found[first] for first in sorted(found)])

        def note(search: SharedSearch, bundles: list[list[int]]) -> NDArray[np.bool_]:
            met = np.zeros_like(search.known)
            for _, one in self.engine.map("meet", meet_part, ([coded, search, bundles] for coded in self.coded)):
                met |= one
            return met

        usual, bundles = SharedSearch(outline, sample).run(note)
        return (usual, bundles) if bundles else None

    def place(self, how: PlacedOutline) -> None:
        """Have the rows to learn from in parts of their own, and let all else go."""
        each = self.engine.threads_each()  # of a worker, which one task for all its rows uses
        n_rows, size = sum(self.n_kept), each * self.rows.block_rows
        for k, first in enumerate(range(0, n_rows, size)):
            ranges = find_ranges(self.n_kept, first, min(first + size, n_rows))
            of = [self.coded[one.partition] for one in ranges]
            self.placed.append(self.engine.hold("rows", place_rows, k, first, how, ranges, of, turn=k * each))
        for _ in self.engine.map("rows", count_placed, ([one] for one in self.placed)):
            pass
        self.engine.release([*self.coded, *self.rows.tables])

    def open(self, rows: RowsOnDisk, effort: Effort, start: Floats, n_jobs: int | None) -> LevelParts:
        """See `LevelPlace`."""
        del rows, effort, n_jobs
        self.engine.compile_first()
        self.level_parts = LevelParts(self.engine, self.placed, start, [self.edges])
        return self.level_parts

    @contextlib.contextmanager
    def watch(self, boosting: LevelBoosting, n_rounds: int) -> Iterator[None]:
        """See `LevelPlace`."""
        level_parts = self.level_parts
        assert level_parts is not None
        with ClusterLine(self.engine, n_rounds, sum(self.n_kept), is_eager=self.is_eager) as line:

            def show() -> None:
                level_parts.check_stop()
                line.show(boosting.n_rounds)

            self.engine.on_idle = show
            try:
                yield
            finally:
                self.engine.on_idle = None

    def close(self) -> None:
        """See `LevelPlace`."""
        self.engine.release([*self.placed, *self.coded, *self.rows.tables])


def count_kept(rows: RowsOnDisk, table: ClusterRows) -> list[int]:
    """Rows to learn from of each part."""
    ends = [min((k + 1) * table.block_rows, table.n_rows) for k in range(table.n_blocks)]
    firsts = [0, *ends[:-1]]
    if rows.keep is None:
        return [end - first for first, end in zip(firsts, ends, strict=True)]
    return [int(np.count_nonzero(rows.keep[first:end])) for first, end in zip(firsts, ends, strict=True)]


# --- The fit --------------------------------------------------------------------------------------------------


def fit_on_cluster(model: Any, rows: ClusterRows, request: BoostingRequest) -> FittedBoosting:
    """Fit a boosted model to rows at the workers of a cluster."""
    refuse_requests(model, request, rows.n_rows, ClusterPlace.way_out)
    opened, labels = open_spread(model, rows, hasattr(model, "predict_proba"), model.categorical_features)
    columns = open_x(model, opened, is_fit=True)
    table = read_columns(columns, model.categorical_features, model.date_features)
    folder = Path(tempfile.gettempdir())
    spread = SpreadLabels(model, rows, labels, folder)
    try:
        spread.fetch(rows)
        place = ClusterPlace(rows, spread.rule, is_eager=bool(model.verbose))

        def mark_rows() -> str:
            return mark_parts(rows, table, spread, model._labels)  # noqa: SLF001

        return grow_by_levels(model, table, spread, place, request, folder, mark_rows)
    finally:
        spread.files.close()
