"""A fit of gradient boosting whose rows are spread over the workers of a cluster, and of which no worker has all.

    partitions ──► parts of equal lengths, at the workers ──► kinds of columns, classes; target and weights ──► client
                        │
                        └──► sorted runs of each column, merged ──► cuts ──► codes, at the workers ──► trees by levels

The client holds what does not depend on the number of rows, beside 16 bytes of each, target and weight, in files of its
disk. Rows to evaluate on are the client's.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MAX_CODES
from spinney.estimators.boosting_by_levels import grow_by_levels, refuse_requests
from spinney.estimators.checks import open_x
from spinney.estimators.fingerprints import TREE, has_blocks
from spinney.estimators.level_tasks import (
    Coding,
    PlacedOutline,
    RowRule,
    Sharing,
    code_part,
    cut_in_task,
    hash_part,
    look_part,
    meet_part,
    place_rows,
    read_labels,
    sample_part,
    send_values,
    sort_columns,
)
from spinney.estimators.rows_on_disk import COPIES, WEIGHT, LabelBlocks, Y
from spinney.scale.block_bundles import SharedSearch
from spinney.scale.cluster.cluster_line import ClusterLine
from spinney.scale.cluster.level_parts import LevelParts
from spinney.scale.cluster.row_ranges import find_ranges
from spinney.scale.coded_blocks import BINS, outline_of
from spinney.scale.row_files import RowFiles
from spinney.table.bundles import lay_out_bundles, sample_step
from spinney.table.columns import Categories, Dates, Deferred, Numbers, open_columns
from spinney.table.ingest import Table, declared_categories, read_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.ensemble.boosting_levels import LevelBoosting
    from spinney.estimators.boosting_by_levels import BoostingRequest
    from spinney.estimators.boosting_data import BoostingData
    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.level_tasks import Outline
    from spinney.estimators.rows_on_disk import RowsOnDisk
    from spinney.estimators.training import Effort
    from spinney.model.fitted_boosting import FittedBoosting
    from spinney.scale.cluster.engine import Held
    from spinney.table.binning import Bins, Cuts
    from spinney.table.columns import Column, Columns

    Floats = NDArray[np.float64]

MOST_SORTS = 4096  # tasks that sort: parts times groups of features


# --- The columns ----------------------------------------------------------------------------------------------


def open_spread(model: Any, rows: ClusterRows, is_classifier: bool) -> tuple[Columns, NDArray[Any] | None]:
    """The columns of X without rows, and the distinct labels."""
    assert rows.X.joining is not None
    heads = rows.X.joining.join_heads()
    opened = open_columns(heads)
    if opened.packed is not None:
        raise ValueError(
            "X has sparse partitions, which are fitted on one worker: dask.config.set({'spinney.plan': 'one'}), or "
            "make them dense"
        )
    declared = declared_categories(model.categorical_features, opened)
    mask = [False] * opened.n_columns if declared is None else declared.tolist()
    looks = list(rows.each("look", look_part, mask, is_classifier, type(model).__name__))
    names = opened.names
    outlines = [
        merge_columns([look.columns[j] for look in looks], repr(names[j]) if names else str(j), list_order(heads, j))
        for j in range(opened.n_columns)
    ]
    labels = join_labels([look.labels for look in looks]) if is_classifier else None
    deferred = Deferred(outlines.__getitem__, lambda schema: Table(schema, rows.n_rows, []))
    columns = replace(opened, n_rows=rows.n_rows, read=outlines.__getitem__, matrix=None, deferred=deferred)
    return columns, labels


def join_labels(found: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The distinct ones of all parts, of the type that all have."""
    joined = np.concatenate(found)
    try:
        return np.unique(joined)
    except TypeError:
        return joined


def merge_columns(found: list[Outline], name: str, order: list[Any]) -> Column:
    """The outline of a column from those of its parts; order: of the values of an ordered category."""
    known = [one.column for one in found if one.is_known] or [found[0].column]
    if len({type(one) for one in known}) > 1:
        raise ValueError(f"Column {name} holds numbers in some rows and text or dates in others: make it one kind")
    first = known[0]
    if isinstance(first, Dates):
        return Dates(np.concatenate([one.values for one in known]), first.has_zone)
    if isinstance(first, Numbers):
        return Numbers(np.unique(np.concatenate([one.values for one in known])))
    values = {(type(value), value): value for one in known for value in one.values}  # True is no 1
    if first.is_ordered:
        values = {(type(value), value): value for value in order if (type(value), value) in values}
    return Categories(np.empty(0, np.int32), list(values.values()), first.is_ordered)


def list_order(heads: Any, j: int) -> list[Any]:
    """The values of an ordered category in their order, used or not; of other columns nothing."""
    if hasattr(heads, "iloc") and heads.ndim == 2:
        dtype = heads.dtypes.iloc[j]
        return dtype.categories.tolist() if getattr(dtype, "ordered", False) else []
    if hasattr(heads, "column_names"):
        column = heads.column(j).unify_dictionaries()
        if getattr(column.type, "ordered", False):
            return column.chunk(0).dictionary.to_pylist()
    return []


# --- Target and weights ---------------------------------------------------------------------------------------


class SpreadStore:
    """What `read_rows` asks a store for.

    Parameters
    ----------
    files : RowFiles
        With weights, if there are any.
    """

    def __init__(self, files: RowFiles) -> None:
        self.files, self.n_rows, self.block_rows, self.n_blocks = files, files.n_rows, files.block_rows, files.n_blocks

    def read_weight(self, blocks: range) -> Floats | None:
        """Weights of one block."""
        return self.files.read(WEIGHT, blocks.start) if WEIGHT in self.files.files else None


class SpreadLabels(LabelBlocks):
    """Target and weights of rows at workers, in files of the client.

    Parameters
    ----------
    model : estimator
    rows : ClusterRows
    labels : array, optional
        Distinct ones.
    folder : Path
    """

    def __init__(self, model: Any, rows: ClusterRows, labels: NDArray[Any] | None, folder: Path) -> None:
        self.labels = labels
        files = RowFiles(folder, rows.block_rows, rows.n_rows)
        super().__init__(model, SpreadStore(files))  # type: ignore[arg-type]
        self.files = files
        self.rule = RowRule(type(model).__name__, model.classes_ if self.is_classifier else None)

    def fetch(self, rows: ClusterRows) -> None:
        """Have them sent."""
        for first, y, weight in rows.each("labels", read_labels, self.rule):
            self.files.write(Y, first // rows.block_rows, y)
            if weight is not None:
                self.files.write(WEIGHT, first // rows.block_rows, weight)

    def read_classes(self) -> None:
        """See `LabelBlocks`."""
        assert self.labels is not None
        self.model._read_target(np.tile(self.labels, COPIES), COPIES * len(self.labels))  # noqa: SLF001

    def targets(self) -> Iterator[Floats]:
        """See `LabelBlocks`."""
        return (self.files.read(Y, k) for k in range(self.files.n_blocks))


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
        cuts = self.cut(data, MAX_CODES if max_bins is None else max_bins)
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

    def cut(self, data: BoostingData, most: int) -> list[Cuts]:
        """The cuts of all features, each group of them by a worker."""
        schema, engine, tables = data.table.schema, self.engine, self.rows.tables
        ends = [*[first for first, _ in schema.inputs()][1:], schema.n_features]
        inputs = [(j, range(first, end)) for j, ((first, _), end) in enumerate(zip(schema.inputs(), ends, strict=True))]
        n_groups = max(min(len(inputs), engine.count_threads(), MOST_SORTS // len(tables)), 1)
        groups = [inputs[k::n_groups] for k in range(n_groups)]
        held, jobs = [], []
        for group in groups:
            sorted_ones = [engine.hold("sort", sort_columns, table, schema, self.rule, group) for table in tables]
            held += sorted_ones
            features = [feature for _, of in group for feature in of]
            n_levels = [None if schema.levels[f] is None else len(schema.levels[f] or ()) for f in features]
            jobs.append([sorted_ones, n_levels, most])
        found: dict[int, Any] = {}
        try:
            place = {id(job): group for job, group in zip(jobs, groups, strict=True)}
            for job, cuts in engine.map("cuts", cut_in_task, jobs):
                features = [feature for _, of in place[id(job)] for feature in of]
                found |= dict(zip(features, cuts, strict=True))
        finally:
            engine.forget(held)
        return [found[feature] for feature in range(schema.n_features)]

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
        self.level_parts = LevelParts(self.engine, self.placed, start, self.edges)
        return self.level_parts

    @contextlib.contextmanager
    def watch(self, boosting: LevelBoosting, n_rounds: int) -> Iterator[None]:
        """See `LevelPlace`."""
        level_parts = self.level_parts
        assert level_parts is not None
        with ClusterLine(self.engine, n_rounds, is_eager=self.is_eager) as line:

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


def count_placed(given: list[Any]) -> int:
    """Rows of a part, once it is there."""
    return int(given[0].n_rows)


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
    opened, labels = open_spread(model, rows, hasattr(model, "predict_proba"))
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


def mark_parts(rows: ClusterRows, table: Table, labels: SpreadLabels, classes: Any) -> str:
    """`fingerprint` of rows at workers: blocks of them are hashed there."""
    schema, n_rows = table.schema, table.n_rows
    meaning = repr((n_rows, schema.n_features, schema.names, schema.levels, classes)).encode()
    if has_blocks(n_rows, ""):
        jobs = [[one, schema, labels.rule] for one in rows.tables]
        place = {id(job): k for k, job in enumerate(jobs)}
        found = {place[id(job)]: digests for job, digests in rows.engine.map("mark", hash_part, jobs)}
        joined = b"".join(digest for k in sorted(found) for digest in found[k])
        return TREE + hashlib.sha256(meaning + joined).hexdigest()
    values = dict(rows.each("mark", send_values, schema))
    digest = hashlib.sha256(meaning)
    for j in range(schema.n_features):
        for first in sorted(values):
            digest.update(values[first][j].data)
    for y in labels.targets():
        digest.update(y.data)
    return digest.hexdigest()
