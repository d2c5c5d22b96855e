"""Grow boosted trees whose leaves hold a number for each of several outputs: memory, units, the calls of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import SameTypes
from spinney._types import DONE, N_CODES, N_FREE, NARROW_CODES, NEEDS_ROOM, NEEDS_THREADS, SHARD_ROWS, SUM
from spinney.kernels.common.structs import PackedUnits, VectorScan, VectorScratch, VectorSums
from spinney.table.fixed_point import scale
from spinney.tree.boost import SHARE_CELLS, BoostGrowth, make_best_cuts, make_boost_scratch
from spinney.tree.workspace import enlarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.table.binning import Bins
    from spinney.table.fixed_point import Weights
    from spinney.tree.boost import BoostParams

    Floats = NDArray[np.float64]

CUTS_AT_ONCE = 64  # that are judged together, for all outputs
FOUR = 4  # words that are added at once
MOST_BYTES = 1 << 30  # of the cells of open nodes; beyond that none are kept, and every node is summed


def cell_width(n_outputs: int, *, has_weight: bool) -> int:
    """Words of a cell: a sum for each output, the number of rows and their weight, up to a multiple of four."""
    return -(-(n_outputs + 1 + has_weight) // FOUR) * FOUR


class VectorGrowth(BoostGrowth):
    """Memory for boosted trees of several outputs on one table, one tree at a time; see `BoostGrowth`.

    Rows are not dealt out to threads, features are.

    Parameters
    ----------
    n_outputs : int
    bins, params, weights, kernels, run, interactions
        As of `BoostGrowth`; no features of the bins share a byte.
    n_parts : int
        Threads.
    has_weight : bool
        Whether a limit asks for the weight of branches.
    """

    def __init__(
        self,
        n_outputs: int,
        bins: Bins,
        params: BoostParams,
        weights: Weights,
        kernels: Any,
        n_parts: int,
        run: Callable[[Callable[[int], None]], None],
        interactions: Sequence[Sequence[int]] | None = None,
        *,
        has_weight: bool = False,
    ) -> None:
        self.n_outputs, self.n_parts = n_outputs, n_parts
        self.has_weight = has_weight and len(weights.values) > 1
        self.width = cell_width(n_outputs, has_weight=self.has_weight)
        self.keeps_cells = True
        super().__init__(bins, params, weights, kernels, 1, run, None, interactions)
        self.grow_tree = SameTypes(kernels.boost.vector_driver.grow_vectors)
        self.search_features = SameTypes(kernels.boost.vector_driver.search_features)
        self.rows = np.zeros((self.n_rows, self.width), SUM)
        self.rows[:, n_outputs] = 1
        if self.has_weight:
            self.rows[:, n_outputs + 1] = weights.values
        self.nodes_total, self.nodes_left = np.zeros((2, self.n_slots * self.width), SUM)
        n_codes = max(int(bins.features[N_CODES].max(initial=1)), NARROW_CODES - 1)
        n_features = len(bins.place)
        best = [make_best_cuts(n_features) for _ in range(2)]
        sums = self.sums([PackedUnits(1.0, 1.0)] * n_outputs)
        self.vector_scratch = [
            VectorScratch(
                self.scratch[0] if part == 0 else make_boost_scratch(n_codes, n_features),
                make_vector_scan(n_outputs, self.width),
                best[0],
                best[1],
                sums,
            )
            for part in range(n_parts)
        ]

    def describe(self, bins: Bins) -> None:
        """See `BoostMemory.describe`; cells of features stand end to end."""
        super().describe(bins)
        ends = np.cumsum(self.table.features[N_CODES] + 1)
        self.table = self.table._replace(
            histogram_start=np.concatenate([[0], ends[:-1]]).astype(np.int64),
            histogram_size=int(ends[-1]) * self.width if len(ends) else 0,
        )

    def allocate_slots(self, n_slots: int) -> None:
        """Memory of open nodes."""
        size = self.table.histogram_size
        self.keeps_cells = self.fits(n_slots)
        self.table = self.table._replace(histogram_size=0)
        super().allocate_slots(n_slots)
        self.table = self.table._replace(histogram_size=size)
        self.frontier = self.frontier._replace(histogram=self.make_cells(n_slots))

    def fits(self, n_slots: int) -> bool:
        """Whether there is memory for the cells of so many open nodes."""
        return n_slots * self.table.histogram_size * 8 <= MOST_BYTES

    def make_cells(self, n_slots: int) -> NDArray[np.int64]:
        """Memory for the cells of open nodes, or for those of two where none are kept."""
        return np.zeros((n_slots if self.keeps_cells else 2) * self.table.histogram_size, SUM)

    def make_room(self) -> None:
        """Double whatever is full."""
        is_slot = self.state[N_FREE] < 2
        old = self.frontier.histogram
        if is_slot:
            self.frontier = self.frontier._replace(histogram=old[:0])
        super().make_room()
        if is_slot:
            self.keeps_cells = self.keeps_cells and self.fits(self.n_slots)
            cells = self.make_cells(self.n_slots)
            if self.keeps_cells:
                cells[: len(old)] = old
            self.frontier = self.frontier._replace(histogram=cells)
            size = self.n_slots * self.width
            self.nodes_total, self.nodes_left = enlarge(self.nodes_total, size), enlarge(self.nodes_left, size)

    def sums(self, units: Sequence[PackedUnits]) -> VectorSums:
        """The sums of a tree in its units, one of each output."""
        gradient = np.array([1.0 / one.gradient for one in units])
        return VectorSums(
            rows=self.rows.reshape(-1),
            total=self.nodes_total,
            left=self.nodes_left,
            gradient_unit=gradient,
            hessian_unit=np.array([1.0 / one.hessian for one in units]),
            square_unit=np.array([scale(one * one, -self.weight_exponent) for one in gradient.tolist()]),
            least_hessian=float(self.params.min_child_weight * self.n_outputs),
            width=self.width,
            n_parts=self.n_parts,
            has_weight=self.has_weight,
            keeps_cells=self.keeps_cells,
        )

    def grow_outputs(
        self,
        units: Sequence[PackedUnits],
        bag: NDArray[np.int32] | None,
        min_weight: int,
        seed: int,
        control: NDArray[np.int64],
    ) -> int:
        """Grow a tree on `rows`, in these units; return its number of nodes.

        `leaf` is written for the rows of the bag.
        """
        if bag is not None:
            self.gather(bag)
        self.begin(0, None if bag is None else len(bag))
        n_used = len(self.table.used)
        settings = self.settings(PackedUnits(1.0, 1.0), 1, min_weight, n_used, 0.0, seed)
        share_rows = max(SHARE_CELLS // max(n_used * self.width, 1), SHARD_ROWS)
        settings = settings._replace(share_rows=share_rows)

        def scratch(part: int) -> VectorScratch:
            return self.vector_scratch[part]._replace(sums=sums)

        def search(part: int) -> None:
            self.search_features(
                None, part, self.table, self.source, self.buffer, self.nodes, self.frontier, scratch(part), settings
            )

        sums = self.sums(units)
        while True:
            why = self.grow_tree(
                None, self.table, self.source, self.buffer, self.nodes, self.frontier, scratch(0), settings, control
            )
            if why == NEEDS_ROOM:
                self.make_room()
                sums = self.sums(units)
            elif why == NEEDS_THREADS:
                self.run(search)
            elif why == DONE:
                break
            else:
                raise KeyboardInterrupt
        return self.close(len(self.leaf) if bag is None else len(bag))


def make_vector_scan(n_outputs: int, width: int) -> VectorScan:
    """Room for the cuts that are judged at once."""
    n = CUTS_AT_ONCE
    return VectorScan(
        left=np.zeros(width, SUM),
        squares=np.zeros(n_outputs, SUM),
        gradient=np.zeros((n_outputs, n)),
        hessian=np.zeros((n_outputs, n)),
        n_rows=np.zeros(n, SUM),
        weight=np.zeros(n, SUM),
        gain=np.zeros(n),
        held=np.zeros(n),
        roots=np.zeros(n),
        root=np.zeros(1),
        best=np.zeros(2),
        cut=np.zeros(2, SUM),
    )
