"""Trees on bags in a checkpoint: kept while they are grown, and taken up again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import ROW
from spinney.estimators.checkpoints import Saved, mark_array
from spinney.estimators.fingerprints import mark_weights
from spinney.model.container import BrokenFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.forest import ForestGrowth
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.table.schema import Schema


def mark_bag_data(
    mark: str,
    weight: NDArray[np.float64] | None,
    groups: NDArray[np.int32] | None,
    strata: NDArray[np.int32] | None,
) -> dict[str, str]:
    """Hashes of what trees on bags are grown on; mark: that of X and y."""
    return {
        "X or y": mark,
        "sample_weight": mark_weights(weight),
        "groups": mark_array(groups),
        "strata": mark_array(strata),
    }


@contextmanager
def keeping_trees(
    checkpoint: Checkpoint | None, growth: ForestGrowth, schema: Schema, n_trees: int, kernels: Any
) -> Iterator[None]:
    """Begin with the trees of a checkpoint, if it has some, and keep those to come there; None: keep none."""
    if checkpoint is None:
        yield
        return
    n_found = checkpoint.check_trees(schema, growth.plan.target.n_classes, n_trees)
    if checkpoint.found is not None:
        forest, more = checkpoint.found
        with checkpoint.trusting():
            leaf_rows = check_leaf_rows(more, n_found if growth.plan.keeps_leaf_rows else 0, growth.plan.draw.n_rows)
        growth.resume(forest, leaf_rows, kernels)
    growth.on_tree = checkpoint.note
    with checkpoint.saving(lambda: take_trees(growth)):
        yield


def check_leaf_rows(more: dict[str, Any], n_trees: int, n_rows: int) -> list[NDArray[np.int32]]:
    """The rows in the leaves of so many trees."""
    by_tree = more.get("leaf_rows")
    if not isinstance(by_tree, list) or len(by_tree) != n_trees:
        raise BrokenFileError("the rows of its leaves are not those of its trees")
    for rows in by_tree:
        is_fine = isinstance(rows, np.ndarray) and rows.dtype == ROW and rows.ndim == 1
        if not is_fine or (len(rows) and not 0 <= rows.min() <= rows.max() < n_rows):
            raise BrokenFileError("the rows of its leaves are none of the table")
    return by_tree


def take_trees(growth: ForestGrowth) -> Saved | None:
    """The trees so far, for a checkpoint."""
    return Saved(growth.parts.peek(), {"leaf_rows": list(growth.leaf_rows)}) if growth.parts.last is not None else None
