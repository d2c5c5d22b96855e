"""A fit of gradient boosting whose rows stay on disk: codes, target, weights, scores, and where each row is in a tree.

It gives the model that rows in memory give, to the bit, and takes memory for some blocks of rows and the sums of the
open nodes of a tree, however many rows there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spinney._types import IS_BINNED, MAX_CODES
from spinney._warnings import warn
from spinney.ensemble.boosting import Constraints
from spinney.ensemble.boosting_levels import LevelBoosting
from spinney.ensemble.initial_score import find_start_by_blocks
from spinney.ensemble.rounds import Monitor, StoppingRule
from spinney.estimators.boosting_checkpoint import open_rounds
from spinney.estimators.boosting_data import BoostingData
from spinney.estimators.boosting_parts import join_curves
from spinney.estimators.cart import count_features
from spinney.estimators.checks import check_monotone, draw_seed, open_x
from spinney.estimators.fingerprints import fingerprint_blocks
from spinney.estimators.interactions import check_interactions
from spinney.estimators.round_scores import name_score
from spinney.estimators.rows_on_disk import LabelBlocks, find_folder, read_rows
from spinney.estimators.training import make_legend
from spinney.model.boosted_scores import begin_raw
from spinney.scale.block_coding import bin_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.plan import LevelGrowing
from spinney.table.ingest import read_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.ensemble.boosting_defaults import TableSize
    from spinney.ensemble.losses import Loss
    from spinney.estimators.evaluation_sets import GivenSet
    from spinney.estimators.rows_on_disk import RowsOnDisk
    from spinney.estimators.training import Effort
    from spinney.model.fitted_boosting import FittedBoosting
    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.scale.plan import FitPlan
    from spinney.scale.store import Store
    from spinney.scale.stored_table import StoredTable
    from spinney.tree.boost import BoostParams

MOST_LEAVES = 31  # that "auto" gives
LOSSES = ("squared_error", "poisson", "gamma", "tweedie", "log_loss", "exponential", "absolute_error", "quantile")
CUT_SHARE = 4  # one part of the memory in so many is for the values of columns that are cut


class LevelRequest(NamedTuple):
    """What `fit` was asked for beside the table."""

    given: list[GivenSet]  # rows to evaluate on
    init_score: Any
    callbacks: Sequence[Any]
    rule: StoppingRule


# --- What can be done -----------------------------------------------------------------------------------------


def plan_levels(model: Any) -> LevelGrowing:
    """How many nodes are open at once, and what rows in memory are needed for."""
    return LevelGrowing(count_open(model), int(model.max_bins or MAX_CODES), find_gap(model))


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
        "max_leaf_nodes=None without max_depth": model.max_leaf_nodes is None and model.max_depth is None,
        "warm_start=True": bool(model.warm_start) and hasattr(model, "_fitted"),
    }
    return next((name for name, is_gap in gaps.items() if is_gap), None)


def refuse_requests(model: Any, request: LevelRequest, plan: FitPlan) -> None:
    """Refuse what rows must be in memory for, among the arguments of `fit` too."""
    gap = None
    if request.init_score is not None:
        gap = "leave out init_score"
    elif model.n_iter_no_change is not None and not request.given:
        if model.validation_fraction is not None:
            gap = "give X_val in place of validation_fraction"
        elif model.scoring != "loss":
            gap = f"give X_val for scoring={model.scoring!r}"
    if gap is not None:
        raise ValueError(
            f"{type(model).__name__} would hold rows of {plan.n_rows:,} in memory: {gap}, or raise memory= to have "
            "all of them there"
        )


# --- The fit --------------------------------------------------------------------------------------------------


def fit_by_levels(model: Any, store: Store, plan: FitPlan, request: LevelRequest) -> FittedBoosting:
    """Fit a boosted model to a table on disk without holding its rows."""
    refuse_requests(model, request, plan)
    columns = open_x(model, store.columns(), is_fit=True)
    table = cast("StoredTable", read_columns(columns, model.categorical_features, model.date_features))
    labels = LabelBlocks(model, store)
    rows, loss = read_rows(labels, model._make_loss, find_folder(store))  # noqa: SLF001
    try:
        refuse_fractions(loss, rows)
        none = np.zeros(0)
        data = BoostingData(None, table, none, None, None, loss, rows.factors)
        hashes = model._hash_data(data)  # noqa: SLF001
        hashes["y"], hashes["sample_weight or class_weight"] = rows.marks
        data.seed, data.is_used = draw_seed(model.random_state), rows.keep  # type: ignore[assignment]

        def mark_rows() -> str:
            return fingerprint_blocks(table, labels.targets(), model._labels)  # noqa: SLF001

        open_rounds(model, data, hashes, None, mark_rows)
        data.exponent = rows.exponent
        sets = [model._read_set(one, data) for one in request.given]  # noqa: SLF001
        fitted = LevelFit(model, data, rows, plan).run(sets, request, hashes)
        if data.checkpoint is not None:
            data.checkpoint.remove()
        return fitted
    finally:
        rows.close()


def refuse_fractions(loss: Loss, rows: RowsOnDisk) -> None:
    """Refuse quantiles of rows whose weights are no whole numbers: these are rounded leaf by leaf."""
    if loss.leaf == "quantile" and not rows.weights.is_whole:
        raise ValueError(
            f"loss={loss.name!r} from disk needs weights that are whole numbers: scale them, or raise memory= to have "
            "the rows in memory"
        )


class LevelFit:
    """The rounds of a fit.

    Parameters
    ----------
    model : estimator
    data : BoostingData
        Without rows.
    rows : RowsOnDisk
    plan : FitPlan
    """

    def __init__(self, model: Any, data: BoostingData, rows: RowsOnDisk, plan: FitPlan) -> None:
        self.model, self.data, self.rows, self.plan = model, data, rows, plan
        self.n_rows = rows.files.n_rows

    def run(self, sets: list[Any], request: LevelRequest, hashes: dict[str, str]) -> FittedBoosting:
        """Grow the rounds, and make the model."""
        model, data, loss = self.model, self.data, self.data.loss
        size: TableSize = model._measure_table(self.n_rows, data)  # noqa: SLF001
        chosen = model._choose_params(size)  # noqa: SLF001
        effort: Effort = model._estimate_effort(size, chosen["n_estimators"], chosen["max_leaf_nodes"])  # noqa: SLF001
        start = np.zeros(loss.n_raw)
        if model.init is None:
            start = find_start_by_blocks(loss, self.rows.blocks, self.rows.weights)
        self.write_scores(start)
        for one in sets:
            one.raw = begin_raw(start, len(one.y), one.offset)
        metric = name_score(model.scoring) if sets and model.scoring != "loss" else "loss"
        monitor = Monitor(loss, data.y, None, sets, metric, request.rule, request.callbacks, int(model.verbose))
        chosen["max_features"] = count_features(chosen["max_features"], size.n_features)
        params: BoostParams = model._boost_params(self.n_rows, data, chosen, self.rows.power)  # noqa: SLF001
        blocks = self.code(effort)
        effort = effort._replace(most_workers=self.plan.n_workers)
        engine = DiskEngine(blocks, self.rows.files, effort.count_workers(model.n_jobs, self.rows.files.n_blocks))
        try:
            boosting = self.make_boosting(engine, blocks, params, effort)
            boosting.out_of_bag = model._watch_out_of_bag(params, size)  # noqa: SLF001
            n_rounds = chosen["n_estimators"]
            forest = model._run(boosting, monitor, n_rounds, data, is_short=False)  # noqa: SLF001
        finally:
            engine.close()
            blocks.close()
        fitted: FittedBoosting = model._keep(data, hashes, forest, start, chosen, monitor)  # noqa: SLF001
        return replace(fitted, out_of_bag=join_curves(None, boosting.out_of_bag, len(forest) // loss.n_raw))

    def write_scores(self, start: Any) -> None:
        """Write the scores before the first round."""
        files = self.rows.files
        for k in range(files.n_blocks):
            files.write("raw", k, begin_raw(start, files.rows_of(k), None))

    def code(self, effort: Effort) -> CodedBlocks:
        """The codes of the rows, on disk."""
        model, schema = self.model, self.data.table.schema
        assert self.plan.memory is not None
        blocks = bin_blocks(
            cast("StoredTable", self.data.table),
            self.rows.fixed_weights(),
            None if model.max_bins is None else int(model.max_bins),
            effort.kernels,
            self.rows.keep,
            memory=self.plan.memory // CUT_SHARE,
        )
        if model.max_bins is None and blocks.features[IS_BINNED].any():
            column = schema.name_of(int(np.argmax(blocks.features[IS_BINNED])))
            warn(f"max_bins=None: column {column} has more than {MAX_CODES} distinct values; quantiles bin them")
        return blocks

    def make_boosting(
        self, engine: DiskEngine, blocks: CodedBlocks, params: BoostParams, effort: Effort
    ) -> LevelBoosting:
        """Set up what grows on the blocks."""
        model, schema = self.model, self.data.table.schema
        return LevelBoosting(
            engine,
            blocks.outline,
            self.rows.weights,
            self.n_rows,
            self.data.loss,
            params,
            effort.kernels,
            constraints=Constraints(
                check_monotone(model.monotonic_cst, model, schema), check_interactions(model.interaction_cst, schema)
            ),
            legend=make_legend(schema, None, blocks.has_missing),
        )
