"""A fit of AdaBoost whose rows stay on disk: codes, target, and weights that change from round to round.

It gives the model that rows in memory give, to the bit, for any weights: of these a round asks for a largest number and
for sums of whole numbers, which are made block by block (`ensemble.adaboost_levels`).
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import clone

from spinney._cost import growing_seconds
from spinney.ensemble.adaboost import AdaBoost
from spinney.ensemble.adaboost_levels import BASE, LOGS, LevelFitter, LevelWeights, RoundForest, target_of_classes
from spinney.ensemble.adaboost_trees import leaf_predictions
from spinney.ensemble.forest import Plan
from spinney.ensemble.forest_levels import TopBudget
from spinney.ensemble.sampling import whole_draw
from spinney.estimators.adaboost_plan import TreePlan
from spinney.estimators.bags_on_disk import CUT_SHARE, find_tree_gap, list_targets, outline_codes, share_room
from spinney.estimators.cart import cart_params, count_features, grows_in_forests
from spinney.estimators.checkpoints import open_checkpoint
from spinney.estimators.checks import draw_seed, open_x
from spinney.estimators.fingerprints import fingerprint_blocks
from spinney.estimators.held_rows import hold_rows_out, wants_held_rows
from spinney.estimators.parameters import parameter
from spinney.estimators.rows_on_disk import WEIGHT, ClassFactors, LabelBlocks, RowWriting, find_folder
from spinney.estimators.training import estimate_effort, make_legend
from spinney.scale.block_coding import code_blocks
from spinney.scale.engine import DiskEngine
from spinney.scale.plan import TopGrowing
from spinney.scale.row_files import RowFiles
from spinney.table.fixed_point import fix_block, value_target_blocks
from spinney.table.ingest import read_columns
from spinney.tree.predict import find_leaves

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.ensemble.adaboost import EarlyStopping
    from spinney.estimators.evaluation_sets import GivenSet
    from spinney.estimators.held_rows import HeldRows
    from spinney.estimators.other_members import Template
    from spinney.estimators.rows_on_disk import RowsOnDisk
    from spinney.estimators.training import Effort
    from spinney.model.fitted_adaboost import FittedAdaBoost
    from spinney.scale.column_cuts import Rows
    from spinney.scale.plan import FitPlan
    from spinney.scale.store import Store
    from spinney.scale.stored_table import StoredTable
    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Target
    from spinney.tree.structure import Tree

ANSWER_BYTES = 24  # of a row that is held out, for each number that is kept of it: votes of classes, or each prediction


def plan_adaboost(model: Any) -> TopGrowing:
    """What is held of rows, which is nothing, and what rows in memory are needed for."""
    tree = model._default if model.estimator is None else model.estimator  # noqa: SLF001
    if not grows_in_forests(tree, type(model._default)):  # noqa: SLF001
        return TopGrowing(partial(count_features, None), 0, gap="estimator")
    tree._validate_params()  # noqa: SLF001
    gap = find_tree_gap(tree)
    if gap is not None:
        gap = f"{gap} of its trees"
    count = partial(count_features, tree.max_features)
    validation = model.validation_fraction if wants_held_rows(model, has_sets=False) else None
    answers = ANSWER_BYTES if hasattr(model, "predict_proba") else ANSWER_BYTES * int(model.n_estimators)
    growing = TopGrowing(count, int(tree.max_bins), gap=gap, holds_weights=False, max_depth=tree.max_depth)
    return growing._replace(validation=validation, answer_bytes=answers)


class DiskRounds:
    """The rounds of a fit.

    Parameters
    ----------
    model : estimator
    template : Template
        What members are copied from: a CART tree.
    store : Store
    plan : FitPlan
    """

    def __init__(self, model: Any, template: Template, store: Store, plan: FitPlan) -> None:
        self.model, self.template, self.store, self.plan = model, template, store, plan
        self.tree = clone(template.estimator).set_params(random_state=0)  # trees draw by keys of their own
        self.tree._validate_params()  # noqa: SLF001
        columns = open_x(model, store.columns(), is_fit=True)
        table = read_columns(columns, self.tree.categorical_features, self.tree.date_features)
        self.table = cast("StoredTable", table)
        self.labels = LabelBlocks(model, store)
        self.factors = ClassFactors(self.labels, parameter(self.tree, "class_weight", None), rounds=True)
        self.n_classes = 0 if model._labels is None else len(model._labels)  # noqa: SLF001

    def mark(self, rows: RowsOnDisk) -> dict[str, str]:
        """Hashes of the data, as of rows in memory."""
        mark = fingerprint_blocks(self.table, list_targets(self.labels), self.model._labels)  # noqa: SLF001
        return {"X or y": mark, "sample_weight": rows.marks[1]}

    def run(self, sets: list[GivenSet]) -> FittedAdaBoost:
        """Go through the rounds; sets: rows to evaluate on."""
        model, n_trees = self.model, int(self.model.n_estimators)
        folder = find_folder(self.store)
        with contextlib.ExitStack() as stack:
            rows = self.write_rows(folder)
            stack.callback(rows.close)
            seed = draw_seed(model.random_state)
            checkpoint = open_checkpoint(model, seed, None, lambda: self.mark(rows))
            seed = seed if checkpoint is None else checkpoint.seed
            stopping = model._watch_given(sets, self.table.schema)  # noqa: SLF001
            if wants_held_rows(model, has_sets=bool(sets)):
                with contextlib.closing(hold_rows_out(self.factors, seed, folder)) as held:
                    stopping = self.watch_held(held)
                    rows.close()
                    rows = self.write_rows(folder, held.is_held)
                stack.callback(rows.close)
            n_rows, schema = rows.files.n_rows, self.table.schema
            effort = estimate_effort(growing_seconds(n_rows, schema.n_features, n_trees, n_levels=1))
            weight, memory = rows.fixed_weights(), (self.plan.memory or 0) // CUT_SHARE
            max_bins = int(self.tree.max_bins)
            blocks = code_blocks(self.table, weight, max_bins, effort.kernels, rows.keep, memory=memory)
            engine = DiskEngine(stack.enter_context(blocks), rows.files)
            stack.callback(engine.close)
            codes = outline_codes(blocks)
            params = cart_params(self.tree, n_rows, schema.n_features)
            self.tree.max_features_ = count_features(self.tree.max_features, schema.n_features)
            legend = make_legend(schema, model._labels, codes.has_missing, params.criterion)  # noqa: SLF001
            weights = self.open_weights(engine, rows, codes, effort)
            budget = share_room(self.plan, blocks, 1)
            if params.max_depth == 1:
                budget = TopBudget(budget.n_sums, 0)  # one pass makes all that a stump asks for
            shared = Plan(codes, weights.weights, weights.target, whole_draw(n_rows, None, 0), params, seed)
            growth = RoundForest(shared, legend, engine, budget, lambda n: RowFiles(folder, 1, n))
            fit = LevelFitter(growth, self.n_classes, effort.kernels, float(self.tree.ccp_alpha))
            base = self.tree.set_params(random_state=seed)
            trees = TreePlan(fit, schema, legend, base, effort)
            boost = AdaBoost(
                fit,
                weights.find_losses,
                weights,
                n_classes=max(int(np.count_nonzero(weights.classes)), 2) if self.n_classes else 2,
                inverts=self.n_classes == 2,
                learning_rate=float(model.learning_rate),
            )
            fitted: FittedAdaBoost = model._run_rounds(self.template, trees, boost, stopping, checkpoint)  # noqa: SLF001
        return fitted

    def write_rows(self, folder: Path, is_held: Rows | None = None) -> RowsOnDisk:
        """Write the rows to learn from; is_held: those that are held out."""
        writing = RowWriting(self.factors, folder, is_held=is_held)
        with writing.closing_on_error():
            writing.run(0)
            return writing.finish(self.factors.meaning)

    def watch_held(self, held: HeldRows) -> EarlyStopping:
        """What watches over rows that are held out."""
        values = held.read_values(self.table)
        y = held.y.astype(np.int64) if self.n_classes else held.y

        def predict(tree: Tree) -> NDArray[Any]:
            return leaf_predictions(tree)[find_leaves(tree, values)]

        stopping: EarlyStopping = self.model._watch(predict, y, held.weight)  # noqa: SLF001
        return stopping

    def open_weights(self, engine: DiskEngine, rows: RowsOnDisk, codes: Codes, effort: Effort) -> LevelWeights:
        """Write what weights begin with, and settle those of the first round."""
        files = rows.files
        for k in range(files.n_blocks):
            files.write(LOGS, k, np.zeros(files.rows_of(k)))
            if not rows.weights.is_unit:
                files.write(BASE, k, fix_block(files.read(WEIGHT, k), rows.weights))
        target: Target = target_of_classes(self.n_classes)
        largest = 0.0
        if self.n_classes == 0:
            target = value_target_blocks(rows.blocks, rows.weights)
            largest = max(float(np.max(np.abs(y))) for y, _ in rows.blocks())
        loss = parameter(self.model, "loss", "")
        return LevelWeights(engine, rows.weights, files.n_rows, target, codes, effort.kernels, loss, largest)
