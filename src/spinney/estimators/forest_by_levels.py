"""A fit of a forest whose rows stay on disk: see `ensemble.forest_levels`.

    store ──► target and weights in files ──► units, codes on disk ──► LevelForest ──► FittedForest

Weights, groups and strata are held while bags are drawn by them, and votes where they are asked for: the plan counts
them. All else does not depend on the number of rows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spinney._cost import growing_seconds
from spinney._criteria import own_name
from spinney._types import CLASSES, CODE, MOMENTS, SUM
from spinney.ensemble.forest_levels import LevelForest, TopBudget
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.part_bags import TRUTH
from spinney.ensemble.sampling import make_draw
from spinney.estimators.cart import count_features
from spinney.estimators.checkpoints import open_checkpoint
from spinney.estimators.checks import check_codes, check_weights, draw_seed, open_x, weigh_classes
from spinney.estimators.fingerprints import fingerprint_blocks, mark_weights
from spinney.estimators.forest_checkpoint import keeping_trees, mark_bag_data
from spinney.estimators.forest_training import PreparedForest, draw_params, finish_forest, make_plan, row_class_weight
from spinney.estimators.parameters import parameter
from spinney.estimators.rows_on_disk import LabelBlocks, find_folder
from spinney.estimators.scoring import find_oob_scorer
from spinney.estimators.training import BagRows, TrainingData, estimate_effort, make_legend
from spinney.scale.block_coding import code_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.plan import SUBTREE_BYTES, TopGrowing
from spinney.scale.row_files import RowFiles
from spinney.table.coding import Codes
from spinney.table.fixed_point import BAG_ROOM, Target, Weights, fix_weights, value_target_blocks
from spinney.table.ingest import read_columns
from spinney.tree.levels import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.model.fitted_forest import FittedForest
    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.scale.plan import FitPlan
    from spinney.scale.store import Store
    from spinney.scale.stored_table import StoredTable

CRITERIA = ("gini", "entropy", "misclassification", "squared_error")  # whose sums tell all that a search asks for
CUT_SHARE = 4  # one part of the memory in so many is for the values of columns that are cut
VOTE_BYTES = 60  # of a row, for votes of trees that have not seen it
CLASS_BYTES = 16  # the same for each class beyond two


# --- What can be done -----------------------------------------------------------------------------------------------


def plan_tops(model: Any) -> TopGrowing:
    """What is held of rows, and what rows in memory are needed for."""
    has_tables = parameter(model, "class_weight", None) is not None or parameter(model, "stratify", None) is not None
    vote_bytes = VOTE_BYTES if model.oob_score else 0
    class_bytes = CLASS_BYTES if model.oob_score else 0
    count = partial(count_features, model.max_features)
    return TopGrowing(count, int(model.max_bins), has_tables, vote_bytes, class_bytes, find_forest_gap(model))


def find_forest_gap(model: Any) -> str | None:
    """A parameter that rows must be in memory for, as the user writes it."""
    gaps = {
        f"criterion={model.criterion!r}": own_name(model.criterion) not in CRITERIA,
        "max_leaf_nodes": model.max_leaf_nodes is not None,
        "min_target_std above 0": float(parameter(model, "min_target_std", 0.0)) > 0.0,
        "monotonic_cst": model.monotonic_cst is not None,
        "honest=True": bool(model.honest),
        "pruning='oob'": model.pruning == "oob",
        "class_weight='balanced_subsample'": parameter(model, "class_weight", None) == "balanced_subsample",
        "warm_start=True": bool(model.warm_start) and hasattr(model, "_fitted"),
    }
    return next((name for name, is_gap in gaps.items() if is_gap), None)


# --- The rows -------------------------------------------------------------------------------------------------------


class RowArrays(NamedTuple):
    """What is held of the rows of a table on disk; None where nobody asks for it."""

    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    groups: NDArray[np.int32] | None
    strata: NDArray[np.int32] | None


def read_arrays(model: Any, store: Store, labels: LabelBlocks, strata: Any) -> RowArrays:
    """Weights of rows times those of classes, groups and strata; the target where these, or votes, need it."""
    n_rows, class_weight = store.n_rows, row_class_weight(model)
    stratify = parameter(model, "stratify", None)
    weight = check_weights(store.read_weight(), n_rows)
    stratum_codes = check_codes(strata, "strata", n_rows)
    if stratify is not None and stratum_codes is not None:
        raise ValueError("stratify draws by class, strata= by the given labels: use one")
    y = None
    if class_weight is not None or stratify is not None or model.oob_score:
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
    """

    def __init__(self, labels: LabelBlocks, weight: NDArray[np.float64] | None, n_classes: int) -> None:
        self.labels, self.weight = labels, weight
        n_rows, size = labels.store.n_rows, labels.store.block_rows
        self.weights = fix_weights(weight, n_rows)
        if not self.weights.is_whole:
            raise ValueError(
                "trees from disk that see weights need whole numbers: scale them, draw rows by them (bootstrap=True, "
                "replace=True), or raise memory= to have the rows in memory"
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
            self.target = target._replace(bits=target.bits - BAG_ROOM)
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


def fit_forest_by_levels(model: Any, store: Store, plan: FitPlan, strata: Any) -> FittedForest:
    """Fit a forest to a table on disk without holding its rows."""
    columns = open_x(model, store.columns(), is_fit=True)
    table = cast("StoredTable", read_columns(columns, model.categorical_features, model.date_features))
    labels = LabelBlocks(model, store)
    arrays = read_arrays(model, store, labels, strata)
    mark = fingerprint_blocks(table, list_targets(labels), model._labels)  # noqa: SLF001
    seed = draw_seed(model.random_state)
    checkpoint = open_checkpoint(model, seed, None, lambda: mark_bag_data(mark, *arrays[1:]))
    seed = seed if checkpoint is None else checkpoint.seed
    if model.oob_score:
        find_oob_scorer(model.oob_score)  # what is none is refused before the work
    draw, left = make_draw(draw_params(model), store.n_rows, arrays.weight, arrays.groups, arrays.strata, seed)
    n_classes = 0 if model._labels is None else len(model._labels)  # noqa: SLF001
    rows = TargetFiles(labels, left, n_classes)
    try:
        n_features = table.schema.n_features
        seconds = growing_seconds(store.n_rows, n_features, model.n_estimators)
        effort = estimate_effort(seconds)._replace(most_workers=plan.n_workers)
        assert plan.memory is not None
        blocks = code_blocks(
            table, rows.weights.values, int(model.max_bins), effort.kernels, memory=plan.memory // CUT_SHARE
        )
        with blocks:
            legend = make_legend(table.schema, model._labels, blocks.has_missing, own_name(model.criterion))  # noqa: SLF001
            codes = outline_codes(blocks)
            bag_rows = BagRows(codes, rows.weights, rows.target, legend, effort)
            data = TrainingData(columns, table, np.array([rows.largest]), arrays.weight)
            shared = make_plan(model, data, bag_rows, draw, None)
            sums = (
                None
                if arrays.y is None or not model.oob_score
                else OutOfBagSums(arrays.y, n_classes, shared.has_weight, shared.shift)
            )
            n_workers = effort.count_workers(model.n_jobs, blocks.n_blocks)
            engine = DiskEngine(blocks, rows.files, n_workers)
            try:
                budget = share_room(plan, blocks, n_workers)
                folder = find_folder(store)
                growth = LevelForest(shared, legend, engine, budget, lambda n: RowFiles(folder, 1, n), sums)
                y = np.zeros(0) if arrays.y is None else arrays.y
                prepared = PreparedForest(
                    growth, table.schema, y, left, mark, mark_weights(left), seconds, model.n_estimators, {}
                )
                with keeping_trees(checkpoint, growth, table.schema, model.n_estimators, effort.kernels):
                    forest = growth.run(
                        0, model.n_estimators, effort.kernels, n_workers, is_short=False, verbose=bool(model.verbose)
                    )
            finally:
                engine.close()
        fitted = finish_forest(model, prepared, forest, None)
    finally:
        rows.files.close()
    if checkpoint is not None:
        checkpoint.remove()
    return fitted


def outline_codes(blocks: CodedBlocks) -> Codes:
    """What codes stand for, without rows."""
    return Codes(np.zeros((0, blocks.stride // 2), CODE), blocks.features, blocks.edges, blocks.has_missing)


def share_room(plan: FitPlan, blocks: CodedBlocks, n_workers: int) -> TopBudget:
    """What memory allows: sums and rows of nodes are not held at the same time."""
    each = plan.room // n_workers
    return TopBudget(each // np.dtype(SUM).itemsize, each // (blocks.stride + SUBTREE_BYTES))
