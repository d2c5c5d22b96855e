"""A fit of gradient boosting whose rows stay on disk: codes, target, weights, scores, and where each row is in a tree.

It gives the model that rows in memory give, to the bit, and takes memory for some blocks of rows and the sums of the
open nodes of a tree, however many rows there are.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from spinney._types import IS_BINNED, MAX_CODES
from spinney._warnings import warn
from spinney.ensemble.boosting import Constraints
from spinney.ensemble.boosting_levels import LevelBoosting
from spinney.ensemble.initial_score import find_start_by_blocks
from spinney.ensemble.rounds import EvaluationSet, Monitor, StoppingRule
from spinney.estimators.boosting_checkpoint import open_rounds
from spinney.estimators.boosting_data import BoostingData
from spinney.estimators.boosting_parts import join_curves
from spinney.estimators.cart import count_features
from spinney.estimators.checks import check_monotone, draw_seed, open_x
from spinney.estimators.fingerprints import fingerprint_blocks
from spinney.estimators.held_rows import hold_rows_out, wants_held_rows
from spinney.estimators.interactions import check_interactions
from spinney.estimators.round_scores import name_score
from spinney.estimators.rows_on_disk import ClassFactors, LabelBlocks, find_folder, read_rows
from spinney.estimators.training import make_legend
from spinney.model.boosted_scores import begin_raw
from spinney.model.fitted_boosting import in_units
from spinney.scale.block_coding import bin_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.plan import LevelGrowing, held_bytes
from spinney.table.ingest import read_columns
from spinney.table.shared_columns import take_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.ensemble.boosting_defaults import TableSize
    from spinney.ensemble.losses import Loss
    from spinney.estimators.evaluation_sets import GivenSet
    from spinney.estimators.held_rows import HeldRows
    from spinney.estimators.rows_on_disk import RowsOnDisk
    from spinney.estimators.training import Effort
    from spinney.model.fitted_boosting import FittedBoosting
    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.scale.plan import FitPlan
    from spinney.scale.store import Store
    from spinney.scale.stored_table import StoredTable
    from spinney.table.binning import Bins
    from spinney.table.ingest import Table
    from spinney.tree.boost import BoostParams
    from spinney.tree.levels import Engine

MOST_LEAVES = 31  # that "auto" gives
LOSSES = (
    *("squared_error", "poisson", "gamma", "tweedie", "log_loss", "exponential"),
    *("absolute_error", "quantile", "huber"),
)
CUT_SHARE = 4  # one part of the memory in so many is for the values of columns that are cut


class BoostingRequest(NamedTuple):
    """What `fit` was asked for beside the table."""

    given: list[GivenSet]  # rows to evaluate on
    init_score: Any
    callbacks: Sequence[Any]
    rule: StoppingRule


# --- What can be done -----------------------------------------------------------------------------------------


def plan_levels(model: Any) -> LevelGrowing:
    """How many nodes are open at once, and what rows in memory are needed for."""
    validation = model.validation_fraction if wants_held_rows(model, has_sets=False) else None
    return LevelGrowing(count_open(model), int(model.max_bins or MAX_CODES), find_gap(model), validation)


def count_open(model: Any) -> int:
    """Nodes of a tree that may be split at once, at most."""
    limits = []
    if model.max_leaf_nodes is not None:
        limits.append(MOST_LEAVES if isinstance(model.max_leaf_nodes, str) else int(model.max_leaf_nodes))
    if model.max_depth is not None:
        limits.append(2 ** min(int(model.max_depth) - 1, 30))
    return max(min(limits, default=1 << 30), 2)


def find_gap(model: Any) -> str | None:
    """A parameter that rows must be in memory for, as the user writes it."""
    if not isinstance(model.loss, str):
        return "loss, two functions of all rows"
    gaps = {
        f"loss={model.loss!r}": model.loss not in LOSSES,
        "sampling='gradient'": model.sampling == "gradient",
        "drop_rate above 0": model.drop_rate > 0.0,
        "candidates='hessian'": model.candidates == "hessian",
        "multi_strategy='one_tree'": getattr(model, "multi_strategy", None) == "one_tree",
        "max_leaf_nodes=None without max_depth": model.max_leaf_nodes is None and model.max_depth is None,
        "warm_start=True": bool(model.warm_start) and hasattr(model, "_fitted"),
    }
    return next((name for name, is_gap in gaps.items() if is_gap), None)


def refuse_requests(
    model: Any, request: BoostingRequest, n_rows: int, way_out: str, *, can_hold_out: bool = False
) -> None:
    """Refuse what rows must be in memory for, among the arguments of `fit` too; way_out: to have them there.

    can_hold_out: whether rows to validate on can be drawn.
    """
    gap = None
    if request.init_score is not None:
        gap = "leave out init_score"
    elif model.n_iter_no_change is not None and not request.given:
        if model.validation_fraction is not None:
            gap = None if can_hold_out else "give X_val in place of validation_fraction"
        elif model.scoring != "loss":
            gap = f"give X_val for scoring={model.scoring!r}"
    if gap is not None:
        raise ValueError(f"{type(model).__name__} would hold rows of {n_rows:,} in memory: {gap}, or {way_out}")


# --- The fit --------------------------------------------------------------------------------------------------


class LevelPlace(Protocol):
    """Where the rows of a fit are, and who works on them."""

    name: str  # "from disk", say
    way_out: str  # what a user does to have them in one memory

    def code(self, data: BoostingData, rows: RowsOnDisk, effort: Effort, max_bins: int | None) -> Bins:
        """Code the rows to learn from; what the codes stand for."""

    def open(self, rows: RowsOnDisk, effort: Effort, start: NDArray[np.float64], n_jobs: int | None) -> Engine:
        """What maps tasks over them, once they are coded; start: scores before the first round."""

    def watch(self, boosting: LevelBoosting, n_rounds: int) -> contextlib.AbstractContextManager[Any]:
        """Show how far it has come."""

    def close(self) -> None:
        """Leave nothing behind."""


class DiskPlace:
    """Rows in files of this machine.

    Parameters
    ----------
    plan : FitPlan
    """

    name = "from disk"
    way_out = "raise memory= to have the rows in memory"

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        self.blocks: CodedBlocks | None = None
        self.engine: DiskEngine | None = None

    def code(self, data: BoostingData, rows: RowsOnDisk, effort: Effort, max_bins: int | None) -> Bins:
        """See `LevelPlace`."""
        assert self.plan.memory is not None
        self.blocks = bin_blocks(
            cast("StoredTable", data.table),
            rows.fixed_weights(),
            max_bins,
            effort.kernels,
            rows.keep,
            memory=self.plan.memory // CUT_SHARE,
        )
        return self.blocks.outline

    def open(self, rows: RowsOnDisk, effort: Effort, start: NDArray[np.float64], n_jobs: int | None) -> DiskEngine:
        """See `LevelPlace`."""
        files = rows.files
        for k in range(files.n_blocks):
            files.write("raw", k, begin_raw(start, files.rows_of(k), None))
        assert self.blocks is not None
        effort = effort._replace(most_workers=self.plan.n_workers)
        n_workers = effort.count_workers(n_jobs, files.n_blocks)
        row_bytes = held_bytes(self.blocks.stride, len(start), has_weights=not rows.weights.is_unit)
        n_held = self.plan.held // (files.block_rows * row_bytes)
        if self.plan.held >= files.n_rows * row_bytes:
            n_held = files.n_blocks  # the last part has fewer rows
        self.engine = DiskEngine(self.blocks, files, n_workers, n_held)
        return self.engine

    def watch(self, boosting: LevelBoosting, n_rounds: int) -> contextlib.AbstractContextManager[Any]:
        """See `LevelPlace`: rounds have a bar of their own."""
        del boosting, n_rounds
        return contextlib.nullcontext()

    def close(self) -> None:
        """See `LevelPlace`."""
        if self.engine is not None:
            self.engine.close()
        if self.blocks is not None:
            self.blocks.close()


def fit_by_levels(model: Any, store: Store, plan: FitPlan, request: BoostingRequest) -> FittedBoosting:
    """Fit a boosted model to a table on disk without holding its rows."""
    place = DiskPlace(plan)
    refuse_requests(model, request, store.n_rows, place.way_out, can_hold_out=True)
    columns = open_x(model, store.columns(), is_fit=True)
    table = cast("StoredTable", read_columns(columns, model.categorical_features, model.date_features))
    labels = LabelBlocks(model, store)

    def mark_rows() -> str:
        return fingerprint_blocks(table, labels.targets(), model._labels)  # noqa: SLF001

    return grow_by_levels(model, table, labels, place, request, find_folder(store), mark_rows, plan.n_together)


def grow_by_levels(
    model: Any,
    table: Table,
    labels: LabelBlocks,
    place: LevelPlace,
    request: BoostingRequest,
    folder: Path,
    mark_rows: Callable[[], str],
    n_together: int = 1,
) -> FittedBoosting:
    """Fit a boosted model to rows that are elsewhere.

    Parameters
    ----------
    model : estimator
    table : Table
        Of which the schema is looked at.
    labels : LabelBlocks
        Target and weights, block by block.
    place : LevelPlace
    request : BoostingRequest
    folder : Path
        Where target and weights are written to.
    mark_rows : callable
        Gives the hash of X and y, for a checkpoint.
    n_together : int
        Blocks of rows that are one part.
    """
    factors = ClassFactors(labels, getattr(model, "class_weight", None))
    rows, loss = read_rows(factors, model._make_loss, folder, n_together)  # noqa: SLF001
    try:
        refuse_fractions(loss, rows, place)
        none = np.zeros(0)
        data = BoostingData(None, table, none, None, None, loss, rows.factors)
        hashes = model._hash_data(data)  # noqa: SLF001
        hashes["y"], hashes["sample_weight or class_weight"] = rows.marks
        data.seed, data.is_used = draw_seed(model.random_state), rows.keep  # type: ignore[assignment]
        open_rounds(model, data, hashes, None, mark_rows)
        data.exponent = rows.exponent
        sets = [model._read_set(one, data) for one in request.given]  # noqa: SLF001
        if wants_held_rows(model, has_sets=bool(sets)):  # of a table on disk: others were refused
            held = hold_rows_out(factors, data.seed, folder)
            try:
                sets = [read_held(model, data, held)]
                rows.close()
                rows, _ = read_rows(factors, model._make_loss, folder, n_together, held.is_held)  # noqa: SLF001
            finally:
                held.close()
            data.is_used = rows.keep  # type: ignore[assignment]
        fitted = LevelFit(model, data, rows, place).run(sets, request, hashes)
        if data.checkpoint is not None:
            data.checkpoint.remove()
        return fitted
    finally:
        rows.close()


def read_held(model: Any, data: BoostingData, held: HeldRows) -> EvaluationSet:
    """Rows to evaluate on that were held out of a table on disk."""
    table = cast("StoredTable", data.table)
    values = held.read_values(table)
    evaluated = EvaluationSet("valid", values, in_units(held.y, data.exponent), held.weight, None)
    if model.scoring == "loss":
        return evaluated
    X, truth = take_columns(table.columns, held.rows, None), model._to_truth(held.y)  # noqa: SLF001
    scored: EvaluationSet = model._with_score(evaluated, X, truth, data)  # noqa: SLF001
    return scored


def refuse_fractions(loss: Loss, rows: RowsOnDisk, place: LevelPlace) -> None:
    """Refuse leaves made of quantiles where weights are no whole numbers: these are rounded leaf by leaf."""
    if loss.leaf != "newton" and not rows.weights.is_whole:
        raise ValueError(
            f"loss={loss.name!r} {place.name} needs weights that are whole numbers: scale them, or {place.way_out}"
        )


class LevelFit:
    """The rounds of a fit.

    Parameters
    ----------
    model : estimator
    data : BoostingData
        Without rows.
    rows : RowsOnDisk
    place : LevelPlace
    """

    def __init__(self, model: Any, data: BoostingData, rows: RowsOnDisk, place: LevelPlace) -> None:
        self.model, self.data, self.rows, self.place = model, data, rows, place
        self.n_rows = rows.files.n_rows

    def run(self, sets: list[Any], request: BoostingRequest, hashes: dict[str, str]) -> FittedBoosting:
        """Grow the rounds, and make the model."""
        model, data, loss, place = self.model, self.data, self.data.loss, self.place
        size: TableSize = model._measure_table(self.n_rows, data)  # noqa: SLF001
        chosen = model._choose_params(size)  # noqa: SLF001
        effort: Effort = model._estimate_effort(size, chosen["n_estimators"], chosen["max_leaf_nodes"])  # noqa: SLF001
        start = np.zeros(loss.n_raw)
        if model.init is None:
            start = find_start_by_blocks(loss, self.rows.blocks, self.rows.weights)
        for one in sets:
            one.raw = begin_raw(start, len(one.y), one.offset)
        metric = name_score(model.scoring) if sets and model.scoring != "loss" else "loss"
        monitor = Monitor(loss, data.y, None, sets, metric, request.rule, request.callbacks, int(model.verbose))
        chosen["max_features"] = count_features(chosen["max_features"], size.n_features)
        params: BoostParams = model._boost_params(self.n_rows, data, chosen, self.rows.power)  # noqa: SLF001
        try:
            outline = self.code(effort)
            engine = place.open(self.rows, effort, start, model.n_jobs)
            boosting = self.make_boosting(engine, outline, params, effort)
            boosting.out_of_bag = model._watch_out_of_bag(params, size)  # noqa: SLF001
            n_rounds = chosen["n_estimators"]
            with place.watch(boosting, n_rounds):
                forest = model._run(boosting, monitor, n_rounds, data, is_short=False)  # noqa: SLF001
        finally:
            place.close()
        fitted: FittedBoosting = model._keep(data, hashes, forest, start, chosen, monitor)  # noqa: SLF001
        return replace(fitted, out_of_bag=join_curves(None, boosting.out_of_bag, len(forest) // loss.n_raw))

    def code(self, effort: Effort) -> Bins:
        """Code the rows, where they are; what the codes stand for."""
        model, schema = self.model, self.data.table.schema
        max_bins = None if model.max_bins is None else int(model.max_bins)
        outline = self.place.code(self.data, self.rows, effort, max_bins)
        if model.max_bins is None and outline.features[IS_BINNED].any():
            column = schema.name_of(int(np.argmax(outline.features[IS_BINNED])))
            warn(f"max_bins=None: column {column} has more than {MAX_CODES} distinct values; quantiles bin them")
        return outline

    def make_boosting(self, engine: Engine, outline: Bins, params: BoostParams, effort: Effort) -> LevelBoosting:
        """Set up what grows on the blocks."""
        model, schema = self.model, self.data.table.schema
        return LevelBoosting(
            engine,
            outline,
            self.rows.weights,
            self.n_rows,
            self.data.loss,
            params,
            effort.kernels,
            constraints=Constraints(
                check_monotone(model.monotonic_cst, model, schema), check_interactions(model.interaction_cst, schema)
            ),
            legend=make_legend(schema, None, outline.has_missing),
        )
