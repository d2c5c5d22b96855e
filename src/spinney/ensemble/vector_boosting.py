"""Gradient boosting with vector leaves: one tree a round for all raw scores, of classes or of several outputs.

    raw ─► loss: g, h of each raw score ─► cells of rows ─► tree (tree.vector_boost) ─► leaf of each row
     ▲                                                                                    │
     └───────────── + learning rate x values of the row's leaf ◄── sums of the true g, h by leaf and raw score

A test is chosen by its gain summed over the raw scores; the values of a leaf are those that each score would have by
itself: -G / (H + lambda).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.ensemble.boosting import Boosting
from spinney.ensemble.leaf_values import leaf_units
from spinney.kernels.common.structs import Gradients
from spinney.tree.predict import add_answers
from spinney.tree.vector_boost import VectorGrowth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.boosted_rows import BoostedRows
    from spinney.ensemble.losses import Loss
    from spinney.table.binning import Bins
    from spinney.table.sparse import Values
    from spinney.tree.boost import BoostGrowth, BoostParams

    Floats = NDArray[np.float64]


class VectorBoosting(Boosting):
    """A boosted model under way whose trees have a value for each raw score in their leaves; see `Boosting`.

    There is no dropout, no bins by hessian and no monotone constraint.
    """

    growth: VectorGrowth

    def __init__(
        self, rows: BoostedRows, loss: Loss, params: BoostParams, kernels: Any, n_workers: int = 1, **options: Any
    ) -> None:
        super().__init__(rows, loss, params, kernels, n_workers, **options)
        n_rows = len(rows.y)
        weight, is_whole = self.gradients.weight, self.gradients.is_whole
        self.derivatives = [Gradients(np.empty(n_rows), np.empty(n_rows), weight, is_whole) for _ in range(loss.n_raw)]
        self.ones = np.ones(n_rows) if self.is_flat else None

    def make_growth(self, bins: Bins, params: BoostParams, twin: BoostGrowth | None = None) -> VectorGrowth:  # noqa: ARG002
        """Memory that trees are grown with; nothing is taken from a twin: features of these tables share no byte."""
        return VectorGrowth(
            self.loss.n_raw,
            bins,
            params,
            self.weights,
            self.kernels,
            self.team.n_workers,
            self.team.run,
            self.constraints.interactions,
            has_weight=self.min_weight > 0,
        )

    @property
    def trees_per_round(self) -> int:
        """One, for all raw scores."""
        return 1

    def number_of_tree(self, k: int) -> int:
        """What the tree of a round draws, beside the bag, comes from the seed and this."""
        del k
        return self.number

    def grow_trees(self, bag: NDArray[np.int32] | None, control: NDArray[np.int64]) -> None:
        """Grow the tree of a round, and add its values to the scores."""
        growth, n_raw = self.growth, self.loss.n_raw
        sizes, units = [], []
        seed, rounding = self.draw_keys(0)
        for k in range(n_raw):
            self.gradients = self.derivatives[k]
            sizes.append(self.derive(k))
            units.append(self.find_units(*sizes[k]))
            self.pack_output(k, units[k], rounding + k if rounding else 0)
        if not self.columns.is_whole:
            growth.use_columns(self.columns.columns(self.number_of_tree(0)))
        n_nodes = growth.grow_outputs(units, bag, self.min_weight, seed, control)
        kernels = self.kernels.boost.leaf_values
        if bag is not None:
            structs = growth.table, growth.source, growth.nodes, self.is_in, growth.leaf
            edges = growth.edges
            growth.share_rows(
                len(bag),
                lambda shard: kernels.route_rest(
                    edges[shard], edges[shard + 1], *structs, growth.routed[shard % self.team.n_workers]
                ),
            )
        values = self.settle_outputs(n_nodes, sizes)

        def add(lo: int, hi: int) -> None:
            for k in range(n_raw):
                kernels.add_values(growth.leaf, values[k], lo, hi, self.raw, k)

        self.share(add)

    def pack_output(self, k: int, units: Any, key: int) -> None:
        """Write the packed sums of raw score k to the cells of all rows."""
        chosen = self.derivatives[k] if self.ones is None else self.derivatives[k]._replace(h=self.ones)
        column = self.growth.rows[:, k]
        self.share(
            lambda lo, hi: self.pack_rows(None, lo, hi, chosen, units, self.rounds_randomly, np.uint64(key), column)
        )

    def settle_outputs(self, n_nodes: int, sizes: list[tuple[float, float]]) -> Floats:
        """Keep the tree that has been grown; return the shrunken values of its leaves, (n_raw, n_nodes)."""
        growth, n_raw = self.growth, self.loss.n_raw
        values, weight = np.empty((n_raw, n_nodes)), np.zeros(n_nodes)
        gain = np.zeros(n_nodes)
        for k in reversed(range(n_raw)):  # the first score is written last, and its value is that of the leaf
            scale = leaf_units(*sizes[k])
            sums = self.sum_by_leaf(n_nodes, self.derivatives[k], scale, parts=self.fills_leaves)
            values[k] = self.write_tree(growth, n_nodes, self.in_bag(sums), scale)
            if self.outside is not None:  # judged by what rows of the bag say alone
                self.outside.raw[k] += values[k, growth.leaf[self.outside.rows]]
            if self.fills_leaves:
                values[k] = self.write_tree(growth, n_nodes, sums, scale)
            written = self.store.written
            weight += written.weight[:n_nodes]
            gain = written.weight[:n_nodes] * written.gain[:n_nodes]
        written.weight[:n_nodes], written.gain[:n_nodes] = weight / n_raw, gain / (weight / n_raw)
        is_inner = growth.nodes.first_child[:n_nodes] > 0
        answers = np.ascontiguousarray(values.T)
        answers[is_inner] *= self.params.learning_rate  # of leaves they have it
        self.store_tree(growth, n_nodes, answers)
        return values

    def add_last(self, values: Values, raw: Floats) -> None:
        """Add the tree of the last round to the scores (n_raw, n_rows) of other rows."""
        add_answers(self.store.forest(self.n_rounds - 1, self.n_rounds), range(1), values, 0, len(values), raw)
