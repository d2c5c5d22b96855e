"""Trees on bags of a table on disk, for whatever is made of them: a forest, a bag of trees, one tree.

    store ──► target and weights in files ──► units, codes on disk ──► `ensemble.forest_levels` ──► trees

Weights, groups and strata are held while bags are drawn by them, and votes where they are asked for: the plan counts
them. All else does not depend on the number of rows.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spinney._cost import growing_seconds
from spinney._criteria import own_name
from spinney._types import CLASSES, CODE, MOMENTS, SUM
from spinney.ensemble.forest_levels import LevelForest, TopBudget
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.part_bags import TRUTH
from spinney.estimators.checks import check_codes, check_weights, open_x, weigh_classes
from spinney.estimators.fingerprints import fingerprint_blocks
from spinney.estimators.forest_checkpoint import keeping_trees
from spinney.estimators.parameters import parameter
from spinney.estimators.rows_on_disk import LabelBlocks, find_folder
from spinney.estimators.scoring import find_oob_scorer
from spinney.estimators.training import BagRows, estimate_effort, make_legend
from spinney.scale.block_coding import code_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.plan import SUBTREE_BYTES, TopGrowing
from spinney.scale.row_files import RowFiles
from spinney.table.coding import Codes
from spinney.table.fixed_point import Target, Weights, fix_weights, value_target_blocks
from spinney.table.ingest import read_columns
from spinney.tree.levels import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.forest import Plan
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.estimators.training import Effort
    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.scale.plan import FitPlan
    from spinney.scale.store import Store
    from spinney.scale.stored_table import StoredTable
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Legend

CRITERIA = ("gini", "entropy", "misclassification", "squared_error")  # whose sums tell all that a search asks for
CUT_SHARE = 4  # one part of the memory in so many is for the values of columns that are cut
VOTE_BYTES = 60  # of a row, for votes of trees that have not seen it
CLASS_BYTES = 16  # the same for each class beyond two


# --- What can be done -----------------------------------------------------------------------------------------------


def plan_trees(model: Any, count: Callable[[int], int], most_codes: int, gap: str | None) -> TopGrowing:
    """The same of any method of many trees; count: features that a node tries, of so many."""
    has_tables = parameter(model, "class_weight", None) is not None or parameter(model, "stratify", None) is not None
    has_votes = bool(parameter(model, "oob_score", False))
    vote_bytes, class_bytes = (VOTE_BYTES, CLASS_BYTES) if has_votes else (0, 0)
    return TopGrowing(count, most_codes, has_tables, vote_bytes, class_bytes, gap)


def find_tree_gap(tree: Any) -> str | None:
    """The same of what says how trees grow."""
    gaps = {
        f"criterion={tree.criterion!r}": own_name(tree.criterion) not in CRITERIA,
        "max_leaf_nodes": tree.max_leaf_nodes is not None,
        "min_target_std above 0": float(parameter(tree, "min_target_std", 0.0)) > 0.0,
        "monotonic_cst": tree.monotonic_cst is not None,
    }
    return next((name for name, is_gap in gaps.items() if is_gap), None)


# --- The rows -------------------------------------------------------------------------------------------------------


class RowArrays(NamedTuple):
    """What is held of the rows of a table on disk; None where nobody asks for it."""

    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    groups: NDArray[np.int32] | None
    strata: NDArray[np.int32] | None


def read_arrays(model: Any, labels: LabelBlocks, class_weight: Any, strata: Any) -> RowArrays:
    """Weights of rows times those of classes, groups and strata; the target where these, or votes, need it."""
    store, stratify = labels.store, parameter(model, "stratify", None)
    n_rows = store.n_rows
    weight = check_weights(store.read_weight(), n_rows)
    stratum_codes = check_codes(strata, "strata", n_rows)
    if stratify is not None and stratum_codes is not None:
        raise ValueError("stratify draws by class, strata= by the given labels: use one")
    y = None
    if class_weight is not None or stratify is not None or parameter(model, "oob_score", False):
        y = np.concatenate(list(list_targets(labels)))
    if labels.is_classifier:
        weight = weigh_classes(class_weight, model.classes_, y, weight)  # type: ignore[arg-type]
    if stratify is not None and y is not None:
        stratum_codes = y.astype(np.int32)
    return RowArrays(y, weight, check_codes(store.read_groups(), "groups", n_rows), stratum_codes)


def list_targets(labels: LabelBlocks) -> Iterator[NDArray[Any]]:
    """Targets as fits in memory have them: whole codes of classes, or numbers."""
    for y in labels.targets():
        yield y.astype(np.int64) if labels.is_classifier else y


class TargetFiles:
    """Target and weights of rows in files, in the units of all.

    Parameters
    ----------
    labels : LabelBlocks
    weight : float64 (n_rows,), optional
        That trees see.
    n_classes : int
        0 for numbers.
    room : int
        Bits of targets that are free for counts.
    """

    def __init__(self, labels: LabelBlocks, weight: NDArray[np.float64] | None, n_classes: int, room: int) -> None:
        self.labels, self.weight = labels, weight
        n_rows, size = labels.store.n_rows, labels.store.block_rows
        self.weights = fix_weights(weight, n_rows)
        if not self.weights.is_whole:
            raise ValueError(
                "trees that see weights need whole numbers where rows are not in one memory, and a plain bootstrap "
                "draws by any: scale them, or have the rows there (raise memory=; of a cluster, plan 'one')"
            )
        self.largest = 0.0
        self.files = RowFiles(find_folder(labels.store), size, n_rows)
        nothing = np.zeros(1, SUM)
        if n_classes:
            family = CLASSES if n_classes > 2 else MOMENTS
            self.target = Target(family, nothing, nothing, np.zeros(1), n_classes)
        else:
            self.largest = max(float(np.max(np.abs(y))) for y in labels.targets())
            self.mask = self.find_mask()
            target = value_target_blocks(self.blocks, self.weights)
            self.target = target._replace(bits=target.bits - room)
        try:
            for k, (y, held) in enumerate(self.blocks() if n_classes == 0 else self.with_weights()):
                self.files.write(TRUTH, k, y if n_classes else np.ldexp(y, -self.target.exponent))
                if not self.weights.is_unit:
                    self.files.write(WEIGHT, k, held.values)
        except BaseException:
            self.files.close()
            raise

    def find_mask(self) -> float:
        """What stands for targets of rows of weight 0; see `mask_unweighted`."""
        if self.weight is None:
            return math.nan
        masks = [float(y[w > 0.0].max(initial=-math.inf)) for y, w in self.pairs()]
        return max(masks)

    def pairs(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Targets and weights of each block."""
        first = 0
        for y in self.labels.targets():
            yield y, np.ones(len(y)) if self.weight is None else self.weight[first : first + len(y)]
            first += len(y)

    def with_weights(self) -> Iterator[tuple[NDArray[np.float64], Weights]]:
        """Targets of each block, and the weights of all rows with the values of these."""
        first = 0
        for y in self.labels.targets():
            values = self.weights.values if self.weights.is_unit else self.weights.values[first : first + len(y)]
            yield y, self.weights._replace(values=values)
            first += len(y)

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], Weights]]:
        """The same with the targets of rows of weight 0 out of the way."""
        for y, held in self.with_weights():
            yield (y if held.is_unit else np.where(held.values > 0, y, self.mask)), held


# --- The fit --------------------------------------------------------------------------------------------------------


class DiskBags:
    """Trees on bags of a table on disk.

    Parameters
    ----------
    model : estimator
        Of many trees.
    tree : estimator
        Whose parameters say how they grow: the same, or CART.
    store : Store
    plan : FitPlan
    """

    def __init__(self, model: Any, tree: Any, store: Store, plan: FitPlan) -> None:
        self.model, self.tree, self.store, self.plan = model, tree, store, plan
        self.columns = open_x(model, store.columns(), is_fit=True)
        self.table = cast("StoredTable", read_columns(self.columns, tree.categorical_features, tree.date_features))
        self.labels = LabelBlocks(model, store)
        self.n_classes = 0 if model._labels is None else len(model._labels)  # noqa: SLF001
        if parameter(model, "oob_score", False):
            find_oob_scorer(model.oob_score)  # what is none is refused before the work

    def mark(self) -> str:
        """The fingerprint of X and y."""
        return fingerprint_blocks(self.table, list_targets(self.labels), self.model._labels)  # noqa: SLF001

    def read_target(self) -> NDArray[Any]:
        """The target of all rows, in memory."""
        return np.concatenate(list(list_targets(self.labels)))

    @property
    def seconds(self) -> float:
        """What the trees take, interpreted."""
        return growing_seconds(self.store.n_rows, self.table.schema.n_features, self.n_trees)

    @property
    def n_trees(self) -> int:
        """How many are grown."""
        return int(parameter(self.model, "n_estimators", 1))

    def run(
        self,
        weight: NDArray[np.float64] | None,
        y: NDArray[Any] | None,
        checkpoint: Checkpoint | None,
        share: Callable[[BagRows, float], Plan],
        kind: type[LevelForest] = LevelForest,
    ) -> tuple[LevelForest, Forest]:
        """Grow the trees.

        weight: that trees see; y: where votes are asked for; share: what trees share, of coded rows and the largest
        target.
        """
        model, n_trees = self.model, self.n_trees
        rows = TargetFiles(self.labels, weight, self.n_classes, kind.count_bits)
        effort = estimate_effort(self.seconds)._replace(most_workers=self.plan.n_workers)
        with contextlib.ExitStack() as stack:
            stack.callback(rows.files.close)
            codes = stack.enter_context(self.code(rows, effort.kernels))
            criterion = own_name(self.tree.criterion)
            legend = make_legend(self.table.schema, model._labels, codes.has_missing, criterion)  # noqa: SLF001
            shared = share(BagRows(codes, rows.weights, rows.target, legend, effort), rows.largest)
            sums = None
            if y is not None and shared.has_oob:
                sums = OutOfBagSums(y, self.n_classes, shared.has_weight, shared.shift)
            growth, n_workers = stack.enter_context(self.open(kind, shared, legend, rows, effort, sums))
            with keeping_trees(checkpoint, growth, self.table.schema, n_trees, effort.kernels):
                verbose = bool(parameter(model, "verbose", False))
                forest = growth.run(0, n_trees, effort.kernels, n_workers, is_short=False, verbose=verbose)
            return growth, forest

    @contextlib.contextmanager
    def code(self, rows: TargetFiles, kernels: Any) -> Iterator[Codes]:
        """Code the rows, on disk; what the codes stand for."""
        assert self.plan.memory is not None
        memory = self.plan.memory // CUT_SHARE
        with code_blocks(self.table, rows.weights.values, int(self.tree.max_bins), kernels, memory=memory) as blocks:
            self.blocks = blocks
            yield outline_codes(blocks)

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
        """What grows the trees, once the rows are coded, and by how many threads of this process."""
        n_workers = effort.count_workers(parameter(self.model, "n_jobs", 1), self.blocks.n_blocks)
        engine = DiskEngine(self.blocks, rows.files, n_workers)
        folder = find_folder(self.store)
        try:
            budget = share_room(self.plan, self.blocks, n_workers)
            yield kind(shared, legend, engine, budget, lambda n: RowFiles(folder, 1, n), sums), n_workers
        finally:
            engine.close()


def outline_codes(blocks: CodedBlocks) -> Codes:
    """What codes stand for, without rows."""
    return Codes(np.zeros((0, blocks.stride // 2), CODE), blocks.features, blocks.edges, blocks.has_missing)


def share_room(plan: FitPlan, blocks: CodedBlocks, n_workers: int) -> TopBudget:
    """What memory allows: sums and rows of nodes are not held at the same time."""
    each = plan.room // n_workers
    return TopBudget(each // np.dtype(SUM).itemsize, each // (blocks.stride + SUBTREE_BYTES))
