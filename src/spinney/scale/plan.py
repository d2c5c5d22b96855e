"""What a fit of a table on disk will do, before it does it: what is read and written, and the memory it takes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._threads import count_workers
from spinney._types import HISTOGRAM_STRIDE, MAX_CODES
from spinney.scale.layout import BLOCK_ROWS, CATEGORIES, WEIGHT
from spinney.scale.memory import show_bytes
from spinney.table.binning import MOST_NARROW, lay_out
from spinney.table.coding import row_stride

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.scale.layout import StoredColumn

READING_BYTES, COLUMN_READING_BYTES = 64 << 20, 4 << 20  # while blocks of rows are read, however many: Arrow's buffers
DATE_FEATURES = 5
TIMES = {1: "once", 2: "twice"}
COLUMN_BYTES = 48  # of a row, while one column is sorted and coded
WORKER_BYTES = 60  # of a row, for each tree that grows beside others: its order, its target
EDGE_BYTES = 32  # of a code of trees: its lowest and highest value, twice while they are put together
SCORE_BYTES = 16  # of a row, for each class beyond two or quantile beyond one
NODE_HISTOGRAMS = 3  # of a node that may be split: its own and those of its children
LEVEL_ROW_BYTES = 96  # of a row of a block, beside its codes and its scores
HELD_BYTES = 21  # of a row that is held, beside its codes, scores and weight: target, packed sums, node in 1 + 4 bytes
VALIDATION_BYTES = 40  # of a row that is held out, beside values and predictions: number, target, weight, loss
SPARE_BYTES = 48 << 20  # beside what growing is counted to take: what reading has not given back, and chance
MOST_TOGETHER = 4  # blocks of rows that are one part: more of them do not fit the second cache, and cost no less
PART_SHARE = 4  # one part of the memory in so many is for parts that are worked on
LEAST_GATHERED = 1 << 16  # rows of a node that there must be room for
SUBTREE_BYTES = 240  # of a row of a node that is finished, beside its codes: target, order, and the nodes that it makes
DRAW_BYTES = 90  # of a row, where bags are drawn by its weight, group or stratum: these, and tables made of them
TOP_COPIES, TOP_ROW_BYTES = 3, 200  # of a row of a block: codes, those that are gathered; the rest
CELL_SECONDS = 8e-8  # to read, cut and code a cell
BOOST_SECONDS, BOOST_DISK_SECONDS = 6e-10, 9e-10  # of a cell, at one level of a boosted tree
TREE_SECONDS, TREE_DISK = 1.2e-8, 1.3  # of a row and a feature that is tried, at one level; as many times from disk
AUTO_TREES = 100  # where a method chooses how many
LONG = 1e9  # seconds of work, for which all threads are worth it


class GrowingBytes(NamedTuple):
    """Memory that a method takes for each row while it grows trees, beside codes and the column that is coded."""

    has_bins: bool  # whether codes are bytes, as of boosting
    copies: int  # of the codes
    state: int  # bytes of a row beside them: target, weights, scores, order of the rows
    is_shared_out: bool = False  # whether each thread grows a tree of its own, on a copy of its rows


class LevelGrowing(NamedTuple):
    """How a method grows trees from disk, a level of a tree by a pass over the codes."""

    n_open: int  # nodes that may be split at once
    most_codes: int  # of a number
    gap: str | None = (
        None  # a parameter, as the user writes it, that rows in memory are needed for; None: there is none
    )
    validation: float | None = None  # share, or number, of the rows that are held out, and then are in memory


class TopGrowing(NamedTuple):
    """How a method grows trees on bags from disk: their tops by passes over the codes, subtrees on gathered rows."""

    count_tried: Callable[[int], int]  # features that a node tries, of so many
    most_codes: int  # of a number
    has_tables: bool = False  # whether bags are drawn by class, beside the weights and groups that a table has
    vote_bytes: int = 0  # of each row, for votes of trees that have not seen it
    class_bytes: int = 0  # the same for each class beyond two
    gap: str | None = None  # as of `LevelGrowing`
    holds_weights: bool = True  # whether bags are drawn by the weights, or groups, that a table has
    max_depth: int | None = None  # of trees that are members, and have it in place of the estimator
    validation: float | None = None  # as of `LevelGrowing`
    answer_bytes: int = 0  # of each row that is held out: what members have predicted for it


class FitPlan(NamedTuple):
    """What a fit will do; `print` shows it.

    Attributes
    ----------
    n_rows : int or None
        None where only reading the source tells.
    n_features : int
        Dates counted as five; 0 where only reading the source tells.
    bytes_read, bytes_written : int or None
        Of the source, and of columns on disk.
    passes : int
        How often the columns on disk are read.
    peak_bytes : int or None
        Memory beside that of the process before.
    memory : int or None
        The limit.
    n_workers : int
        Trees that grow side by side, each on rows of its own, or blocks of rows that are worked on: fewer where memory
        is short. Models do not depend on it.
    by_levels : bool
        Whether codes and all that is known of the rows stay on disk, since memory cannot hold them: one pass over the
        codes for each level of a tree. Models do not depend on it.
    gap : str or None
        A parameter that keeps a fit from doing so, where memory is too small.
    room : int
        Bytes for the sums of nodes, or for the rows of nodes that are small enough to be finished in memory, where
        trees on bags are grown from disk.
    held : int
        Bytes for blocks of rows that stay in memory once they are read, where boosting is grown from disk: what the
        limit leaves.
    n_together : int
        Blocks of rows that are worked on at once, where boosting is grown from disk.
    seconds : float or None
        CPU time from the source to the model, within a factor of a few: that of one processor, whatever `n_jobs`. None
        where only reading the source tells, or nobody has measured the method.
    """

    n_rows: int | None
    n_features: int
    bytes_read: int | None
    bytes_written: int | None
    passes: int
    peak_bytes: int | None
    memory: int | None
    n_workers: int = 1
    by_levels: bool = False
    gap: str | None = None
    room: int = 0
    held: int = 0
    n_together: int = 1
    seconds: float | None = None

    def __str__(self) -> str:
        """A line for each part."""
        unknown = "known once the source is read"
        read, written = (unknown if n is None else show_bytes(n) for n in (self.bytes_read, self.bytes_written))
        peak = unknown if self.peak_bytes is None else show_bytes(self.peak_bytes)
        limit = "no limit" if self.memory is None else f"limit {show_bytes(self.memory)}"
        lines = {
            "rows": unknown if self.n_rows is None else f"{self.n_rows:,}",
            "features": f"{self.n_features:,}" if self.n_features else unknown,
            "source": f"{read}, read once",
            "columns": f"{written} on disk, read {TIMES[self.passes]}",
            "memory": f"{peak} ({limit})",
        }
        if self.by_levels:
            how = "nodes by passes over the codes, then in memory" if self.room else "one pass over the codes a level"
            if self.held and self.n_rows:
                how += f", {show_bytes(self.held)} of them held"
            lines["trees"] = f"grown from disk, however many rows there are: {how}"
        if self.seconds is not None:
            lines["time"] = f"{show_seconds(self.seconds)} of one processor"
        return "\n".join(f"{name:<9} {text}" for name, text in lines.items())


def show_seconds(seconds: float) -> str:
    """A time that is known within a factor of a few."""
    if seconds < 1.0:
        return "less than a second"
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds:.0f} seconds"


def count_features(columns: list[StoredColumn]) -> int:
    """Features of some columns at most: a date is several."""
    return sum(DATE_FEATURES if column.kind == "dates" else 1 for column in columns)


def count_row_bytes(columns: list[StoredColumn]) -> int:
    """Bytes of a row on disk."""
    return sum(np.dtype(column.dtype).itemsize for column in columns)


def peak_bytes(growing: GrowingBytes, n_rows: int, n_features: int, n_workers: int = 1) -> int:
    """Memory of a fit with codes in memory; n_workers: threads that it grows trees by."""
    width = lay_out([1] * n_features)[2] if growing.has_bins else 2 * row_stride(n_features)
    state = width * (growing.copies - 1) + growing.state
    if growing.is_shared_out:
        state += n_workers * (width + WORKER_BYTES)
    edges = 0 if growing.has_bins else EDGE_BYTES * n_features * min(n_rows, MAX_CODES)
    return reading_bytes(n_features) + edges + n_rows * (width + max(state, COLUMN_BYTES))


def reading_bytes(n_columns: int) -> int:
    """Memory while a source is read: Arrow holds a page or two of each column, whatever the types."""
    return READING_BYTES + n_columns * COLUMN_READING_BYTES


def level_bytes(
    growing: LevelGrowing, columns: list[StoredColumn], n_scores: int, n_workers: int, n_blocks: int
) -> int:
    """Memory of growing with codes on disk: sums of the open nodes, and parts of so many blocks for each thread."""
    n_features = count_features(columns)
    n_levels = [len(column.values) for column in columns if column.kind == CATEGORIES]
    n_sums = n_features * HISTOGRAM_STRIDE + sum(n for n in n_levels if n > MOST_NARROW)
    if growing.most_codes > MOST_NARROW:
        n_sums += (n_features - len(n_levels)) * growing.most_codes
    n_histograms = NODE_HISTOGRAMS * growing.n_open + (n_workers + 2) * growing.n_open
    row = stride_of(growing, columns) + LEVEL_ROW_BYTES + SCORE_BYTES * n_scores
    n_parts = 1 if n_workers == 1 else n_workers + 2  # the caller reads none ahead
    return 8 * n_histograms * n_sums + n_parts * n_blocks * BLOCK_ROWS * row


def stride_of(growing: LevelGrowing, columns: list[StoredColumn]) -> int:
    """Bytes of the codes of a row, at most."""
    n_levels = [len(column.values) for column in columns if column.kind == CATEGORIES]
    return lay_out([max(n_levels, default=growing.most_codes)] * count_features(columns))[2]


def held_bytes(stride: int, n_scores: int, *, has_weights: bool) -> int:
    """Bytes of a row that is held while boosting grows from disk: codes, target, weight, scores, sums and node."""
    return stride + HELD_BYTES + (8 if has_weights else 0) + (SCORE_BYTES if n_scores > 1 else 8) * n_scores


def validation_bytes(validation: float | None, n_rows: int, n_features: int, others: int) -> int:
    """Memory of rows that are held out: their values, and other bytes of each."""
    if validation is None:
        return 0
    n_held = int(validation) if isinstance(validation, int | np.integer) else math.ceil(validation * n_rows)
    return n_held * (8 * n_features + VALIDATION_BYTES + others)


def make_plan(
    estimator: Any,
    columns: list[StoredColumn],
    n_rows: int | None,
    source_bytes: int | None,
    memory: int | None,
    n_scores: int = 1,
) -> FitPlan:
    """The plan of an estimator for a table; columns: of all roles; n_scores: that boosting keeps of a row."""
    features = [column for column in columns if column.role == "feature"]
    n_features = count_features(features)
    growing: GrowingBytes = estimator._growing_bytes  # noqa: SLF001
    if growing.has_bins:
        growing = growing._replace(state=growing.state + SCORE_BYTES * (n_scores - 1))
    written, peak, n_workers = None, None, 1
    if n_rows is not None:
        if growing.is_shared_out:
            n_workers = count_workers(getattr(estimator, "n_jobs", 1), estimator.n_estimators, LONG)
        row_bytes = count_row_bytes(columns)
        room = None if memory is None else memory - BLOCK_ROWS * row_bytes
        while n_workers > 1 and room is not None and peak_bytes(growing, n_rows, n_features, n_workers) > room:
            n_workers -= 1
        written, peak = n_rows * row_bytes, peak_bytes(growing, n_rows, n_features, n_workers) + BLOCK_ROWS * row_bytes
    plan = FitPlan(n_rows, n_features, source_bytes, written, 1 if growing.has_bins else 2, peak, memory, n_workers)
    levels: LevelGrowing | TopGrowing | None = estimator._level_growing()  # noqa: SLF001
    if levels is None:
        return plan
    plan = choose_way(plan, levels, columns, n_scores, estimator)
    return plan._replace(seconds=estimate_seconds(plan, levels, n_scores, estimator))


def estimate_seconds(plan: FitPlan, levels: LevelGrowing | TopGrowing, n_scores: int, estimator: Any) -> float | None:
    """CPU time of a fit by what cells have taken on a server's processor: see RESULTS."""
    if plan.n_rows is None:
        return None
    cells = float(plan.n_rows * plan.n_features)
    n_trees = getattr(estimator, "n_estimators", 1)
    n_trees = n_trees if isinstance(n_trees, int) else AUTO_TREES
    depth = math.log2(max(plan.n_rows, 2))
    if isinstance(levels, LevelGrowing):
        visit = BOOST_DISK_SECONDS if plan.by_levels else BOOST_SECONDS
        return cells * (CELL_SECONDS + n_trees * n_scores * min(depth, math.log2(levels.n_open)) * visit)
    depth = min(depth, levels.max_depth or getattr(estimator, "max_depth", None) or math.inf)
    visit = TREE_SECONDS * (TREE_DISK if plan.by_levels else 1.0)
    return cells * CELL_SECONDS + plan.n_rows * n_trees * levels.count_tried(plan.n_features) * depth * visit


def choose_way(
    plan: FitPlan, levels: LevelGrowing | TopGrowing, columns: list[StoredColumn], n_scores: int, estimator: Any
) -> FitPlan:
    """The plan in memory if that fits, else from disk."""
    if fits(plan):
        return plan
    if levels.gap is not None:
        return plan._replace(gap=levels.gap)
    if isinstance(levels, TopGrowing):
        tops = plan_tops(plan, levels, columns, n_scores, getattr(estimator, "n_jobs", 1))
        least = tops.peak_bytes or 0
        is_more = least > (plan.memory or 0) and least > (plan.peak_bytes or 0)
        # blocks and nodes of a small table may take more than all of it; rows to validate on are named where they may
        return plan if is_more and levels.validation is None else tops
    return plan_levels(plan, levels, columns, n_scores, getattr(estimator, "n_jobs", 1))


def plan_levels(
    plan: FitPlan, levels: LevelGrowing, columns: list[StoredColumn], n_scores: int, n_jobs: int | None
) -> FitPlan:
    """The plan of a fit from disk, in place of one that memory cannot hold: by as many threads as it has room for.

    What the limit leaves beside that holds rows. Reading is over by then, and has given its memory back.
    """
    assert plan.n_rows is not None
    assert plan.memory is not None
    features = [column for column in columns if column.role == "feature"]
    reading = reading_bytes(len(columns)) + BLOCK_ROWS * count_row_bytes(columns)
    judged = validation_bytes(levels.validation, plan.n_rows, plan.n_features, SCORE_BYTES * n_scores)

    def grow(n_workers: int, n_blocks: int) -> int:
        return judged + level_bytes(levels, features, n_scores, n_workers, n_blocks)

    n_workers = count_workers(n_jobs, -(-plan.n_rows // BLOCK_ROWS), LONG)
    while n_workers > 1 and reading + grow(n_workers, 1) > plan.memory:
        n_workers -= 1
    n_together = MOST_TOGETHER
    while n_together > 1 and grow(n_workers, n_together) > plan.memory // PART_SHARE:
        n_together //= 2
    growing = grow(n_workers, n_together)
    has_weights = any(column.role == WEIGHT for column in columns)
    rows = plan.n_rows * held_bytes(stride_of(levels, features), n_scores, has_weights=has_weights)
    held = min(max(plan.memory - growing - SPARE_BYTES, 0), rows)
    peak = max(reading + grow(n_workers, 1), growing + SPARE_BYTES + held)
    return plan._replace(by_levels=True, peak_bytes=peak, n_workers=n_workers, held=held, n_together=n_together)


def plan_tops(
    plan: FitPlan, growing: TopGrowing, columns: list[StoredColumn], n_scores: int, n_jobs: int | None
) -> FitPlan:
    """The plan of trees on bags from disk: what memory has room for beyond blocks of rows goes to nodes."""
    assert plan.n_rows is not None
    assert plan.memory is not None
    n_tried = growing.count_tried(plan.n_features)
    n_codes = min(growing.most_codes, MAX_CODES, plan.n_rows)
    width = 2 * row_stride(plan.n_features)
    of_node = 8 * (n_codes + 1) * max(n_scores + 1, 3) * n_tried
    least = max(of_node, LEAST_GATHERED * (width + SUBTREE_BYTES))
    held = growing.vote_bytes + growing.class_bytes * max(n_scores - 2, 0)
    has_columns = growing.holds_weights and any(column.role in {"weight", "groups"} for column in columns)
    if growing.has_tables or has_columns:
        held += DRAW_BYTES
    n_workers = count_workers(n_jobs, -(-plan.n_rows // BLOCK_ROWS), LONG)
    while True:
        fixed = reading_bytes(len(columns)) + EDGE_BYTES * plan.n_features * n_codes + plan.n_rows * held
        fixed += validation_bytes(growing.validation, plan.n_rows, plan.n_features, growing.answer_bytes)
        fixed += BLOCK_ROWS * (count_row_bytes(columns) + (n_workers + 2) * (TOP_COPIES * width + TOP_ROW_BYTES))
        if n_workers == 1 or fixed + n_workers * least <= plan.memory:
            break
        n_workers -= 1
    room = max(plan.memory - fixed, n_workers * least)
    return plan._replace(by_levels=True, peak_bytes=fixed + room, n_workers=n_workers, room=room)


def fits(plan: FitPlan) -> bool:
    """Whether memory holds what a fit takes, as far as is known."""
    return plan.memory is None or plan.peak_bytes is None or plan.peak_bytes <= plan.memory


def refuse_beyond(plan: FitPlan, name: str) -> None:
    """Refuse a fit that takes more memory than it may; name: of the method."""
    if fits(plan) or plan.memory is None or plan.peak_bytes is None:
        return
    needs, limit = show_bytes(plan.peak_bytes), show_bytes(plan.memory)
    if plan.by_levels:
        raise ValueError(
            f"{name} needs {needs} to grow trees of {plan.n_features} features from disk, and memory={limit}: raise "
            "it, drop columns, or allow fewer bins, leaves, or features a node, or fewer rows to validate on"
        )
    if plan.gap is not None:
        raise ValueError(
            f"{name} needs {needs} for {plan.n_rows:,} rows, and memory={limit}: raise it, or change {plan.gap}, which "
            "needs the rows in memory"
        )
    raise ValueError(
        f"{name} needs {needs} with the codes of {plan.n_rows:,} rows and {plan.n_features} features in memory, and "
        f"memory={limit}: raise it, drop columns, or scan fewer files. Gradient boosting of numbers and classes, "
        "random forests, extra-trees, CART, and bags of CART trees and AdaBoost with them need not hold them"
    )
