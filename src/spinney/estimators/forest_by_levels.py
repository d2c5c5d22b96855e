"""A fit of a forest whose rows stay on disk, or at workers: see `bags_on_disk` and `bags_on_cluster`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.ensemble.sampling import make_draw
from spinney.estimators.bags_on_disk import find_tree_gap, plan_trees, read_arrays
from spinney.estimators.cart import count_features
from spinney.estimators.checkpoints import open_checkpoint
from spinney.estimators.checks import draw_seed
from spinney.estimators.fingerprints import mark_weights
from spinney.estimators.forest_checkpoint import mark_bag_data
from spinney.estimators.forest_training import PreparedForest, draw_params, finish_forest, make_plan, row_class_weight
from spinney.estimators.parameters import parameter
from spinney.estimators.training import BagRows, TrainingData
from spinney.scale.plan import TopGrowing

if TYPE_CHECKING:
    from spinney.ensemble.forest import Plan
    from spinney.estimators.bags_on_disk import DiskBags
    from spinney.model.fitted_forest import FittedForest


def plan_tops(model: Any) -> TopGrowing:
    """What is held of rows, and what rows in memory are needed for."""
    count = partial(count_features, model.max_features)
    return plan_trees(model, count, int(model.max_bins), find_forest_gap(model))


def find_forest_gap(model: Any) -> str | None:
    """A parameter of a forest that rows must be in memory for, as the user writes it."""
    gaps = {
        "honest=True": bool(model.honest),
        "pruning='oob'": model.pruning == "oob",
        "class_weight='balanced_subsample'": parameter(model, "class_weight", None) == "balanced_subsample",
        "warm_start=True": bool(model.warm_start) and hasattr(model, "_fitted"),
    }
    return find_tree_gap(model) or next((name for name, is_gap in gaps.items() if is_gap), None)


def fit_forest_by_levels(model: Any, fit: DiskBags, strata: Any) -> FittedForest:
    """Fit a forest to rows on disk, or at the workers of a cluster, without holding them."""
    arrays = read_arrays(model, fit.labels, row_class_weight(model), strata)
    mark, seed = fit.mark(), draw_seed(model.random_state)
    checkpoint = open_checkpoint(model, seed, None, lambda: mark_bag_data(mark, *arrays[1:]))
    seed = seed if checkpoint is None else checkpoint.seed
    draw, left = make_draw(draw_params(model), fit.store.n_rows, *arrays[1:], seed)

    def share(rows: BagRows, largest: float) -> Plan:
        data = TrainingData(fit.columns, fit.table, np.array([largest]), arrays.weight)
        return make_plan(model, data, rows, draw, None)

    growth, forest = fit.run(left, arrays.y, checkpoint, share)
    y = np.zeros(0) if arrays.y is None else arrays.y
    schema, n_trees = fit.table.schema, model.n_estimators
    prepared = PreparedForest(growth, schema, y, left, mark, mark_weights(left), fit.seconds, n_trees, {})
    fitted = finish_forest(model, prepared, forest, None)
    if checkpoint is not None:
        checkpoint.remove()
    return fitted
