"""A fit of a bag of CART trees whose rows stay on disk: as that of a forest, see `bags_on_disk`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from spinney.ensemble.subspaces import Bags
from spinney.estimators.bags_on_disk import find_tree_gap, plan_trees, read_arrays
from spinney.estimators.cart import count_features, is_fast
from spinney.estimators.checkpoints import open_checkpoint
from spinney.estimators.checks import draw_seed, weigh_classes
from spinney.estimators.fingerprints import mark_weights
from spinney.estimators.forest_checkpoint import mark_bag_data
from spinney.estimators.other_members import list_templates
from spinney.estimators.training import TrainingData

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.ensemble.forest import Plan
    from spinney.estimators.bags_on_disk import DiskBags
    from spinney.estimators.training import BagRows
    from spinney.model.fitted_bagging import FittedBagging
    from spinney.scale.plan import TopGrowing


def plan_bags(model: Any) -> TopGrowing:
    """What is held of rows, and what rows in memory are needed for."""
    templates = list_templates(model, model._default())  # noqa: SLF001
    tree = templates[0].estimator
    if not is_fast(templates, model._default):  # noqa: SLF001
        return plan_trees(model, partial(count_features, None), 0, "estimator")
    tree._validate_params()  # noqa: SLF001
    return plan_trees(
        model, partial(count_features, tree.max_features), int(tree.max_bins), find_bagging_gap(model, tree)
    )


def find_bagging_gap(model: Any, tree: Any) -> str | None:
    """A parameter that rows must be in memory for, as the user writes it; tree: what members are copies of."""
    has_all = not isinstance(model.max_features, int | np.integer) and float(model.max_features) == 1.0
    gaps = {
        f"max_features={model.max_features!r}": not has_all,
        "bootstrap_features=True": bool(model.bootstrap_features),
        "class_weight='balanced' of its trees": getattr(tree, "class_weight", None) == "balanced",
        "warm_start=True": bool(model.warm_start) and hasattr(model, "_fitted"),
    }
    return find_tree_gap(tree) or next((name for name, is_gap in gaps.items() if is_gap), None)


def fit_bagging_by_levels(model: Any, open_rows: Callable[[Any], DiskBags], strata: Any) -> FittedBagging:
    """Fit a bag of CART trees to rows on disk, or at the workers of a cluster, without holding them.

    open_rows: gives these, for trees such as it is told.
    """
    templates = list_templates(model, model._default())  # noqa: SLF001
    base = clone(templates[0].estimator).set_params(random_state=0)  # trees draw by keys of their own
    base._validate_params()  # noqa: SLF001
    fit = open_rows(base)
    arrays = read_arrays(model, fit.labels, None, strata)
    if getattr(base, "class_weight", None) is not None and arrays.y is None:
        arrays = arrays._replace(y=fit.read_target())
    mark, seed = fit.mark(), draw_seed(model.random_state)
    checkpoint = open_checkpoint(model, seed, None, lambda: mark_bag_data(mark, *arrays[1:]))
    seed = seed if checkpoint is None else checkpoint.seed
    draw, left = model._draw_rows(fit.store.n_rows, *arrays[1:], seed)  # noqa: SLF001
    schema = fit.table.schema
    bags = Bags(draw, model._make_spaces(seed, schema.n_features), seed)  # noqa: SLF001
    mark += mark_weights(left)
    if fit.labels.is_classifier and arrays.y is not None:
        left = weigh_classes(base.class_weight, model.classes_, arrays.y, left)

    def share(rows: BagRows, largest: float) -> Plan:
        data = TrainingData(fit.columns, fit.table, np.array([largest]), left)
        shared: Plan = model._make_plan(base, rows, bags, data)  # noqa: SLF001
        return shared

    growth, forest = fit.run(left, arrays.y, checkpoint, share)
    base.set_params(random_state=None).max_features_ = count_features(base.max_features, schema.n_features)
    fitted: FittedBagging = model._finish_levels(templates, growth, schema, bags, base, mark, forest)  # noqa: SLF001
    if checkpoint is not None:
        checkpoint.remove()
    return fitted
