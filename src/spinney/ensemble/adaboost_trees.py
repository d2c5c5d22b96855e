"""Trees of one table under weights that change: codes are made once, and for stumps the order of the rows as well."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import ROW
from spinney.ensemble.adaboost import ValueTarget
from spinney.ensemble.forest import member_key
from spinney.table.fixed_point import class_target
from spinney.tree.grow import Growth
from spinney.tree.grow_params import GrowParams
from spinney.tree.predict import find_coded_leaves
from spinney.tree.prune import prune_to_alpha
from spinney.tree.stump import StumpGrowth, is_stump, sort_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.adaboost import RowWeights
    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Target
    from spinney.tree.structure import Tree


class TreeFitter:
    """Grows the trees of `AdaBoost`; to be called as its `fit_member`.

    Parameters
    ----------
    codes : Codes
        The table; stays as it is.
    target : int64 (n_rows,) class codes, or ValueTarget
    n_classes : int
        0 for numbers.
    params : GrowParams
    seed : int
        What trees draw comes from this and their number.
    kernels : kernel modules
    monotone : int8 (n_features,), optional
    ccp_alpha : float
        Trees are pruned by it.
    """

    def __init__(
        self,
        codes: Codes,
        target: NDArray[np.int64] | ValueTarget,
        n_classes: int,
        params: GrowParams,
        seed: int,
        kernels: Any,
        monotone: NDArray[np.int8] | None = None,
        ccp_alpha: float = 0.0,
    ) -> None:
        self.codes = codes
        self.target = target
        self.n_classes = n_classes
        self.params = params
        self.seed = seed
        self.kernels = kernels
        self.monotone = monotone
        self.ccp_alpha = ccp_alpha
        self.order = sort_codes(codes) if is_stump(params, codes, monotone) else None

    def __call__(self, number: int, rows: RowWeights, control: NDArray[np.int64]) -> tuple[Tree, NDArray[Any]]:
        """Grow tree `number`; also return what it predicts for each row: a class code, or a number."""
        growth = self.make_growth(number, rows, self.make_target(rows))
        growth.control = control
        growth.run()
        tree = growth.finish()
        if self.ccp_alpha > 0.0:
            tree = prune_to_alpha(tree, self.ccp_alpha)
            return tree, self.predict(tree)
        return tree, predict_grown(growth, tree)

    def predict(self, tree: Tree) -> NDArray[Any]:
        """What a tree predicts for each row."""
        leaf = find_coded_leaves(tree, self.codes, np.arange(len(self.codes.rows), dtype=ROW), self.kernels)
        return leaf_predictions(tree)[leaf]

    def make_target(self, rows: RowWeights) -> Target:
        """The target under the present weights."""
        if isinstance(self.target, ValueTarget):
            return self.target.weighted(rows)
        return class_target(self.target, self.n_classes, rows.weights)

    def make_growth(self, number: int, rows: RowWeights, target: Target) -> Growth:
        """A tree about to grow."""
        params = replace(self.params, seed=member_key(self.seed, number))
        if self.order is not None:
            return StumpGrowth(self.codes, self.order, target, rows.weights, params, self.kernels)
        codes = self.codes._replace(rows=self.codes.rows.copy())  # its rows move
        return Growth(codes, target, rows.weights, params, self.kernels, self.monotone)


def leaf_predictions(tree: Tree) -> NDArray[Any]:
    """What each leaf of a tree predicts, a class code or a number, shape (n_nodes,)."""
    return tree.leaf_class if tree.n_classes else tree.threshold


def predict_grown(growth: Growth, tree: Tree) -> NDArray[Any]:
    """What a tree predicts for each row that it grew on: the rows of a leaf stand side by side in `growth.ids`."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(growth.nodes.begin[leaves])]
    by_place: NDArray[Any] = np.repeat(leaf_predictions(tree)[leaves], growth.nodes.n_rows[leaves])
    predicted = np.empty_like(by_place)
    predicted[growth.ids] = by_place
    return predicted
