"""Trees on bags of rows that are spread over the workers of a cluster: a forest, a bag of trees, one tree.

    parts at the workers ──► target and weights ──► client: units, bags
                         ──► cuts ──► codes of 16 bits, at the workers ──► `scale.cluster.tree_parts` ──► trees

What `bags_on_disk` does of a table on disk, by the same code: only where rows are, and who works on them, is other.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import CODE, SUM
from spinney.ensemble.forest_levels import LevelForest, LevelTree, TopBudget
from spinney.ensemble.part_bags import TRUTH
from spinney.estimators.bags_on_disk import DiskBags
from spinney.estimators.checks import open_x
from spinney.estimators.level_tasks import Coding, TreeRule, code_bag_part, place_trees, take_known
from spinney.estimators.parameters import parameter
from spinney.estimators.scoring import find_oob_scorer
from spinney.estimators.spread_rows import SpreadLabels, count_placed, cut_spread, mark_parts, open_spread
from spinney.scale.cluster.cluster_line import ClusterLine
from spinney.scale.cluster.row_ranges import find_ranges
from spinney.scale.cluster.tree_parts import TURNS, SpreadForest, SpreadPieces, SpreadTree, TreeParts, list_known
from spinney.scale.coded_blocks import CODES, outline_of
from spinney.scale.plan import SUBTREE_BYTES, FitPlan
from spinney.table.coding import Codes
from spinney.table.ingest import read_columns
from spinney.tree.levels import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinney.ensemble.forest import Plan
    from spinney.ensemble.out_of_bag import OutOfBagSums
    from spinney.estimators.bags_on_disk import TargetFiles
    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.training import Effort
    from spinney.scale.cluster.engine import Held
    from spinney.tree.structure import Legend

KINDS: dict[type[LevelForest], type[SpreadPieces]] = {LevelForest: SpreadForest, LevelTree: SpreadTree}
ROOM_SHARE = 4  # one part of a worker's memory in so many is for sums of nodes, or for the rows of nodes
USUAL_ROOM = 1 << 30  # bytes of it for each thread, where workers have no limit
MOST_SUMS = 1 << 23  # of a pass: every worker sends as many to the client, eight bytes each


class ClusterBags(DiskBags):
    """Trees on bags of rows at the workers of a cluster.

    Parameters
    ----------
    model : estimator
        Of many trees, or of one.
    tree : estimator
        Whose parameters say how they grow: the same, or CART.
    rows : ClusterRows
    groups : array, optional
    """

    def __init__(self, model: Any, tree: Any, rows: ClusterRows, groups: Any = None) -> None:
        self.model, self.tree, self.rows, self.engine = model, tree, rows, rows.engine
        self.plan = FitPlan(rows.n_rows, 0, None, None, 1, None, None)
        opened, classes = open_spread(model, rows, hasattr(model, "predict_proba"), tree.categorical_features)
        self.columns = open_x(model, opened, is_fit=True)
        self.table: Any = read_columns(self.columns, tree.categorical_features, tree.date_features)
        if parameter(model, "oob_score", False):
            find_oob_scorer(model.oob_score)
        self.labels: SpreadLabels = SpreadLabels(model, rows, classes, Path(tempfile.gettempdir()))
        try:
            self.labels.fetch(rows)
        except BaseException:
            self.close()
            raise
        store: Any = self.labels.store
        store.groups = groups
        self.store = store
        self.n_classes = 0 if model._labels is None else len(model._labels)  # noqa: SLF001
        self.coded: list[Held] = []

    def mark(self) -> str:
        """The fingerprint of X and y."""
        dtype = np.int64 if self.labels.is_classifier else np.float64
        return mark_parts(self.rows, self.table, self.labels, self.model._labels, dtype)  # noqa: SLF001

    def list_rules(self, rows: TargetFiles) -> list[TreeRule]:
        """How each part reads its target and weights; where rows weigh differently it is told both."""
        rule = TreeRule(self.labels.rule, rows.weights, None if self.n_classes else int(rows.target.exponent))
        n_blocks = self.rows.n_blocks
        rule = rule._replace(weights=rows.weights._replace(values=np.ones(1, SUM)))
        if rows.weights.is_unit:
            return [rule] * n_blocks
        read = rows.files.read
        return [rule._replace(truth=read(TRUTH, k), weight=read(WEIGHT, k)) for k in range(n_blocks)]

    @contextlib.contextmanager
    def code(self, rows: TargetFiles, kernels: Any) -> Iterator[Codes]:
        """Code the rows, at the workers; what the codes stand for."""
        del kernels
        schema, rules = self.table.schema, self.list_rules(rows)
        sent: list[TreeRule | Held] = list(rules)
        if not rows.weights.is_unit:  # 16 bytes of each row, which several tasks ask for: they go there once
            sent = [self.engine.hold("rule", take_known, pickle.dumps(rule), turn=k) for k, rule in enumerate(rules)]
        cuts = cut_spread(self.rows, schema, sent, int(self.tree.max_bins))
        outline = outline_of(CODES, cuts, schema.is_categorical)
        coding = pickle.dumps(Coding(schema, rules[0]._replace(truth=None, weight=None), cuts, outline))
        self.coding = self.engine.hold("cuts", take_known, coding)
        self.coded = [
            self.engine.hold("codes", code_bag_part, table, self.coding, rule, turn=k)
            for k, (table, rule) in enumerate(zip(self.rows.tables, sent, strict=True))
        ]
        try:
            yield Codes(
                np.zeros((0, outline.rows.shape[1] // 2), CODE), outline.features, outline.edges, outline.has_missing
            )
        finally:
            self.engine.release([self.coding, *self.coded, *self.rows.tables])

    @contextlib.contextmanager
    def open(
        self,
        kind: type[LevelForest],
        shared: Plan,
        legend: Legend,
        rows: TargetFiles,
        effort: Effort,
        sums: OutOfBagSums | None,
    ) -> Iterator[tuple[LevelForest, int]]:
        """What grows the trees, once the rows are coded."""
        del rows, effort
        known = list_known(shared)
        there = self.engine.hold("bags", take_known, pickle.dumps(known))
        placed = self.place(there)
        try:
            for _ in self.engine.map("rows", count_placed, ([one] for one in placed)):
                pass
            self.engine.release([self.coding, *self.coded, *self.rows.tables])
            self.engine.compile_first()
            parts = TreeParts(self.engine, placed, known, there)
            growth = KINDS[kind](shared, legend, parts, self.budget(shared), no_files, sums)
            is_eager = bool(parameter(self.model, "verbose", False))
            with ClusterLine(self.engine, self.n_trees, self.rows.n_rows, is_eager=is_eager) as line:

                def show() -> None:
                    line.show(growth.n_grown + (0 if growth.begun is None else len(growth.begun)))

                self.engine.on_idle = show
                try:
                    yield growth, 1
                finally:
                    self.engine.on_idle = None
        finally:
            self.engine.release([*placed, there])

    def place(self, known: Held) -> list[Held]:
        """The rows in a part for each worker."""
        each, n_rows = self.engine.threads_each(), self.rows.n_rows
        size = each * self.rows.block_rows
        lengths = [min(self.rows.block_rows, n_rows - k * self.rows.block_rows) for k in range(self.rows.n_blocks)]
        placed = []
        for k, first in enumerate(range(0, n_rows, size)):
            ranges = find_ranges(lengths, first, min(first + size, n_rows))
            of = [self.coded[one.partition] for one in ranges]
            placed.append(
                self.engine.hold("rows", place_trees, k, first, self.coding, ranges, of, known, turn=k * each)
            )
        return placed

    def budget(self, shared: Plan) -> TopBudget:
        """What the memory of workers allows; nodes are small enough, too, that all threads have some to finish."""
        memory = self.engine.memory_each()
        room = USUAL_ROOM if memory is None else memory // ROOM_SHARE
        stride = 2 * shared.codes.rows.shape[1]
        most_rows = min(room // (stride + SUBTREE_BYTES), self.rows.n_rows // (TURNS * self.engine.count_threads()))
        return TopBudget(min(room // np.dtype(SUM).itemsize, MOST_SUMS), most_rows)

    def close(self) -> None:
        """Give the space of target and weights back."""
        self.labels.files.close()


def no_files(n_rows: int) -> Any:
    """Rows of nodes go from worker to worker."""
    raise AssertionError(f"{n_rows} rows are not gathered here")
