"""The tables of a fit at the workers of a cluster: what columns, classes and weights they have, cuts, and hashes.

RowTables ──look──► kinds of columns, classes ──► Columns without rows
──labels──► target and weights, in files of the client
──sort──► runs of each column ──cuts──► Cuts
──mark──► `fingerprint` of the table
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.estimators.fingerprints import TREE, has_blocks
from spinney.estimators.level_tasks import (
    RowRule,
    cut_in_task,
    hash_part,
    look_part,
    read_labels,
    send_values,
    sort_columns,
)
from spinney.estimators.rows_on_disk import COPIES, WEIGHT, LabelBlocks, Y
from spinney.scale.row_files import RowFiles
from spinney.table.columns import Categories, Dates, Deferred, Numbers, open_columns
from spinney.table.ingest import Table, declared_categories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.level_tasks import Outline, TreeRule
    from spinney.scale.cluster.engine import Held
    from spinney.table.binning import Cuts
    from spinney.table.columns import Column, Columns
    from spinney.table.schema import Schema

    Floats = NDArray[np.float64]

MOST_SORTS = 4096  # tasks that sort: parts times groups of features


# --- The columns ----------------------------------------------------------------------------------------------


def open_spread(
    model: Any, rows: ClusterRows, is_classifier: bool, categorical_features: Any
) -> tuple[Columns, NDArray[Any] | None]:
    """The columns of X without rows, and the distinct labels."""
    assert rows.X.joining is not None
    heads = rows.X.joining.join_heads()
    opened = open_columns(heads)
    if opened.packed is not None:
        raise ValueError(
            "X has sparse partitions, which are fitted on one worker: dask.config.set({'spinney.plan': 'one'}), or "
            "make them dense"
        )
    declared = declared_categories(categorical_features, opened)
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
        self.path = files.folder / "rows"  # other files go where these are
        self.groups: Any = None

    def read_weight(self, blocks: range | None = None) -> Floats | None:
        """Weights of one block, or of all."""
        if WEIGHT not in self.files.files:
            return None
        if blocks is not None:
            return self.files.read(WEIGHT, blocks.start)
        return np.concatenate([self.files.read(WEIGHT, k) for k in range(self.n_blocks)])

    def read_groups(self) -> Any:
        """Groups of all rows."""
        return self.groups


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


# --- Cuts -----------------------------------------------------------------------------------------------------


def cut_spread(rows: ClusterRows, schema: Schema, rules: Sequence[RowRule | TreeRule | Held], most: int) -> list[Cuts]:
    """The cuts of all features, each group of them by a worker; rules: of each part, or what holds them there."""
    engine, tables = rows.engine, rows.tables
    ends = [*[first for first, _ in schema.inputs()][1:], schema.n_features]
    inputs = [(j, range(first, end)) for j, ((first, _), end) in enumerate(zip(schema.inputs(), ends, strict=True))]
    n_groups = max(min(len(inputs), engine.count_threads(), MOST_SORTS // len(tables)), 1)
    groups = [inputs[k::n_groups] for k in range(n_groups)]
    held, jobs = [], []
    for group in groups:
        sorted_ones = [
            engine.hold("sort", sort_columns, table, schema, rule, group)
            for table, rule in zip(tables, rules, strict=True)
        ]
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


# --- Hashes ---------------------------------------------------------------------------------------------------


def mark_parts(
    rows: ClusterRows, table: Table, labels: SpreadLabels, classes: Any, dtype: type[np.generic] = np.float64
) -> str:
    """`fingerprint` of rows at workers: blocks of them are hashed there; dtype: that targets are hashed in."""
    schema, n_rows = table.schema, table.n_rows
    meaning = repr((n_rows, schema.n_features, schema.names, schema.levels, classes)).encode()
    if has_blocks(n_rows, ""):
        jobs = [[one, schema, labels.rule, dtype] for one in rows.tables]
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
        digest.update(y.astype(dtype).data)
    return digest.hexdigest()


def count_placed(given: list[Any]) -> int:
    """Rows of a part, once it is there."""
    return int(given[0].n_rows)
