"""How a fit is done on a cluster, chosen by the bytes that it takes: the model is the same whichever way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney._cost import COMPILED_SHARE, growing_seconds
from spinney._types import MAX_CODES
from spinney.scale.memory import show_bytes
from spinney.scale.plan import EDGE_BYTES, peak_bytes, reading_bytes
from spinney.table.binning import lay_out
from spinney.table.coding import row_stride

if TYPE_CHECKING:
    from spinney.scale.cluster.collections import PartSize
    from spinney.scale.plan import GrowingBytes

ONE, TREES, LEVELS = "one", "trees", "levels"
WAYS = {
    ONE: "one worker joins the partitions and fits",
    TREES: "one worker joins and codes the rows, every worker has the codes and grows whole trees",
    LEVELS: "every worker has some of the rows, their sums are added up level by level",
}
LEVEL_STATE = 80  # bytes of a row at a worker beside its codes, while trees grow by levels
ONE_SECONDS = 2.0  # of work that is not worth sharing
MOST_SHARE = 0.9  # of a worker's memory that a fit may take: at 95 % its nanny ends it


class ClusterPlan(NamedTuple):
    """What a fit will do on a cluster; `print` shows it.

    Attributes
    ----------
    way : {"one", "trees", "levels"}
        One worker fits, all grow whole trees, or all grow each tree together.
    n_rows, n_features : int
    n_parts : int
        Partitions of X.
    table_bytes : int
        Of X, y and all else that was given.
    worker_bytes : int
        Memory that the worker with most to do takes.
    n_workers, n_threads : int
        Of the cluster.
    memory : int or None
        Of the worker with most of it; None: no limit.
    """

    way: str
    n_rows: int
    n_features: int
    n_parts: int
    table_bytes: int
    worker_bytes: int
    n_workers: int
    n_threads: int
    memory: int | None

    def __str__(self) -> str:
        """A line for each part."""
        limit = "no limit" if self.memory is None else f"limit {show_bytes(self.memory)}"
        lines = {
            "way": f"{self.way}: {WAYS[self.way]}",
            "rows": f"{self.n_rows:,} in {self.n_parts:,} partitions",
            "features": f"{self.n_features:,}",
            "table": show_bytes(self.table_bytes),
            "workers": f"{self.n_workers}, of {self.n_threads} threads",
            "memory": f"{show_bytes(self.worker_bytes)} of a worker ({limit})",
        }
        return "\n".join(f"{name:<9} {text}" for name, text in lines.items())


def choose_way(
    estimator: Any,
    sizes: list[list[PartSize]],
    workers: dict[str, Any],
    *,
    gaps: dict[str, str | None],
    forced: str | None,
) -> ClusterPlan:
    """How an estimator is fitted.

    Parameters
    ----------
    estimator : estimator
    sizes : list of lists of PartSize
        Of the partitions of X, and of those of the other collections.
    workers : dict
        Facts about the workers, by address.
    gaps : dict
        What keeps it from other ways than "one", by way; None: nothing.
    forced : {"one", "trees", "levels"}, optional
        The way that was asked for.
    """
    n_rows = sum(size.n_rows for size in sizes[0])
    n_features = max((size.n_columns for size in sizes[0]), default=0)
    table = sum(size.n_bytes for of in sizes for size in of)
    threads = [int(facts["nthreads"]) for facts in workers.values()]
    limits = [int(facts["memory_limit"] or 0) for facts in workers.values()]
    memory = None if not limits or 0 in limits else max(limits)
    if forced is not None and forced not in WAYS:
        raise ValueError(f"dask.config's spinney.plan={forced!r} is none of {', '.join(WAYS)}")
    if forced is not None and gaps.get(forced) is not None:
        raise ValueError(
            f"dask.config's spinney.plan={forced!r} is not for this {type(estimator).__name__}: {gaps[forced]}; set it "
            "to 'one'"
        )

    def plan(way: str) -> ClusterPlan:
        need = count_bytes(estimator, way, n_rows, n_features, table, threads)
        return ClusterPlan(way, n_rows, n_features, len(sizes[0]), table, need, len(workers), sum(threads), memory)

    if forced is not None:
        return plan(forced)
    n_estimators = getattr(estimator, "n_estimators", 1)
    seconds = growing_seconds(max(n_rows, 2), n_features, n_estimators if isinstance(n_estimators, int) else 100)
    is_worth = gaps[TREES] is None and sum(threads) > 1 and seconds * COMPILED_SHARE > ONE_SECONDS
    least = MOST_SHARE * min([limit for limit in limits if limit], default=math.inf)
    growing = peak_bytes(estimator._growing_bytes, max(n_rows, 1), max(n_features, 1), max(threads, default=1))  # noqa: SLF001
    chosen = plan(TREES if is_worth and growing <= least else ONE)  # every worker has the codes, the smallest too
    if not fits(chosen) and gaps[LEVELS] is None:
        return plan(LEVELS)
    return chosen


def count_bytes(estimator: Any, way: str, n_rows: int, n_features: int, table: int, threads: list[int]) -> int:
    """Memory that the worker with most to do takes."""
    growing: GrowingBytes = estimator._growing_bytes  # noqa: SLF001
    if way == LEVELS:
        share = max(threads, default=1) / max(sum(threads), 1)  # of the rows that it has
        width = lay_out([1] * max(n_features, 1))[2] if growing.has_bins else 2 * row_stride(max(n_features, 1))
        rows = math.ceil(n_rows * share)
        edges = 0 if growing.has_bins else EDGE_BYTES * n_features * min(n_rows, MAX_CODES)
        return math.ceil(2 * table * share) + rows * (2 * width + LEVEL_STATE) + edges + reading_bytes(n_features)
    n_grown = max(threads, default=1) if way == TREES or growing.is_shared_out else 1
    peak = peak_bytes(growing, max(n_rows, 1), max(n_features, 1), n_grown)
    return table + max(table, peak)  # partitions and the table that they make; then the table and the fit


def fits(plan: ClusterPlan) -> bool:
    """Whether there is a worker with the memory for a fit."""
    return plan.memory is None or plan.worker_bytes <= MOST_SHARE * plan.memory


def refuse_beyond(plan: ClusterPlan, name: str) -> None:
    """Refuse a fit that takes more memory than any worker has; name: of the method."""
    if fits(plan) or plan.memory is None:
        return
    raise ValueError(
        f"{name} needs {show_bytes(plan.worker_bytes)} on one worker for {plan.n_rows:,} rows and {plan.n_features} "
        f"features, and the largest has {show_bytes(plan.memory)}: start workers with more memory (one large worker in "
        "place of several small ones on a host), drop columns, or write the rows to Parquet and fit "
        "spinney.scan('*.parquet', target=..., memory='4GB') on one machine, which reads them in blocks"
    )
