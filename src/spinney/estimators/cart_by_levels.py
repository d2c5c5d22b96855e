"""A fit of CART whose rows stay on disk: as a forest of one tree on all rows, see `bags_on_disk`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spinney.ensemble.forest import Plan
from spinney.ensemble.forest_levels import LevelTree
from spinney.ensemble.sampling import whole_draw
from spinney.estimators.bags_on_disk import find_tree_gap, plan_trees, read_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.estimators.bags_on_disk import DiskBags
    from spinney.estimators.training import BagRows
    from spinney.scale.plan import TopGrowing
    from spinney.table.schema import Schema
    from spinney.tree.structure import Tree


def plan_cart(model: Any, count: Callable[[Any, int], int]) -> TopGrowing:
    """What is held of rows, and what rows in memory are needed for; count: how many features are tried, of so many."""
    gaps = {
        "ccp_alpha='cv'": model.ccp_alpha == "cv",
        "pruning='reduced_error'": model.pruning == "reduced_error",
        "raising=True": model.pruning == "pessimistic" and bool(model.raising),
        "trace=True": bool(model.trace),
    }
    gap = find_tree_gap(model) or next((name for name, is_gap in gaps.items() if is_gap), None)
    return plan_trees(model, partial(count, model.max_features), int(model.max_bins), gap)


def grow_cart_by_levels(model: Any, fit: DiskBags, seed: int) -> tuple[Tree, Schema]:
    """Grow a tree of CART on rows on disk, or at the workers of a cluster, not pruned, and what its columns mean."""
    arrays = read_arrays(model, fit.labels, model._class_weight, None)  # noqa: SLF001
    if arrays.weight is not None and not np.all(arrays.weight > 0.0):
        raise ValueError(
            f"{type(model).__name__} of rows that are not in one memory needs weights above 0: leave rows of weight 0 "
            "out of the table, or have them there (raise memory=; of a cluster, plan 'one')"
        )
    n_rows, schema = fit.store.n_rows, fit.table.schema
    grower = model._make_grower(schema, seed)  # noqa: SLF001
    params = replace(grower.params, **grower.limits.for_rows(n_rows))

    def share(rows: BagRows, _: float) -> Plan:
        return Plan(rows.codes, rows.weights, rows.target, whole_draw(n_rows, None, 0), params, seed)

    growth = cast("LevelTree", fit.run(arrays.weight, None, None, share, LevelTree)[0])
    return growth.tree.with_legend(growth.legend), schema
