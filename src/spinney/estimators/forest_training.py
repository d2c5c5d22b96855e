"""From the parameters of a forest and its training data to a fitted forest.

prepare_forest: make_draw ──► code_for_bags ──► make_plan ──► PreparedForest
ForestGrowth.run, here or by the workers of a cluster ──► finish_forest ──► FittedForest
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._cost import growing_seconds
from spinney._criteria import own_name
from spinney._threads import SHARE_SECONDS, count_workers, run_beside
from spinney._types import LEARNED, OWN_BRANCH
from spinney._warnings import warn
from spinney.ensemble.forest import ForestGrowth, Plan, as_member, vote_again
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.sampling import Draw, DrawParams, make_draw, positive_rows
from spinney.estimators.cart import count_features, level_guard, tree_limits
from spinney.estimators.checkpoints import open_checkpoint
from spinney.estimators.checks import check_monotone, draw_seed
from spinney.estimators.class_outputs import has_class_outputs, refuse_oob
from spinney.estimators.fingerprints import fingerprint, mark_weights
from spinney.estimators.forest_checkpoint import keeping_trees, mark_bag_data
from spinney.estimators.out_of_bag import finish_out_of_bag
from spinney.estimators.parameters import parameter
from spinney.estimators.scoring import find_oob_scorer
from spinney.estimators.training import code_for_bags, refuse_asked
from spinney.estimators.warm_starts import (
    check_number,
    find_other_classes,
    find_other_columns,
    find_other_draw,
    find_other_outputs,
    refuse_on_other_rows,
)
from spinney.model.earlier_members import EarlierMembers
from spinney.model.fitted_forest import FittedForest, KeptTarget, LeafRows
from spinney.model.fitted_tree import label_classes
from spinney.tree.forest import join_forests
from spinney.tree.grow_params import GrowParams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.estimators.training import BagRows, Effort, TrainingData
    from spinney.table.schema import Schema
    from spinney.tree.forest import Forest

BAG_CONSTRAINTS: dict[str, list[Any]] = {  # what forests and bagging accept: `ensemble.sampling.DrawParams`
    "bootstrap": ["boolean", StrOptions({"poisson"})],
    "max_samples": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, None, closed="neither"),
        None,
    ],
    "block_size": [Interval(Integral, 1, None, closed="left"), None],
}
HASH_SECONDS = 9e-9  # of a value, read and hashed
MOST_BITS = 1000  # of a target: a sum over 2**23 trees is still a float64


class PreparedForest(NamedTuple):
    """A forest about to be grown, and what its model keeps beside trees: it can be pickled, and grown elsewhere."""

    growth: ForestGrowth
    schema: Schema
    y: NDArray[Any]  # (n_rows,) codes of classes, or numbers
    weight: NDArray[np.float64] | None  # what the draw has left of it
    mark: str  # the fingerprint of X and y
    weight_mark: str
    seconds: float  # that all of it takes, interpreted
    n_trees: int  # to be grown
    bag_data: dict[str, str]  # hashes of all that the trees follow from, for a checkpoint
    n_before: int = 0  # trees that earlier fits on other rows have left
    is_resumed: bool = True  # whether a warm start goes on with the rows of the last fit


def fit_forest(
    model: Any,
    data: TrainingData,
    groups: NDArray[np.int32] | None,
    strata: NDArray[np.int32] | None,
    old: FittedForest | None,
) -> FittedForest:
    """Grow the trees that are wanted; model: the estimator, whose parameters count.

    groups, strata: codes (n_rows,); old: the forest of the last fit, to which a warm start adds.
    """
    schema, labels = data.table.schema, model._labels  # noqa: SLF001

    def hash_rows() -> str:
        return fingerprint(data.table, data.y, labels, like="" if old is None else old.fingerprint)

    # 100,000 x 28 values take 26 ms, a tenth of what 32 threads take for a forest; they are hashed while it grows
    seconds = HASH_SECONDS * data.table.n_rows * schema.n_features
    is_asked = old is not None or model.checkpoint is not None  # before the first tree
    is_beside = (
        not is_asked and seconds > SHARE_SECONDS and count_workers(model.n_jobs, model.n_estimators, seconds) > 1
    )
    find_mark = run_beside(hash_rows) if is_beside else None
    mark = hash_rows() if find_mark is None else ""
    if old is not None:
        check_warm_start(model, old, schema, data.y)
    seed = draw_seed(model.random_state) if old is None else old.seed
    checkpoint = open_checkpoint(model, seed, old, lambda: mark_bag_data(mark, data.weight, groups, strata))
    seed = seed if checkpoint is None else checkpoint.seed
    prepared, effort = prepare_forest(model, data, groups, strata, old, mark, seed)
    if old is not None and prepared.n_trees == 0 and not prepared.is_resumed:
        return old  # nothing was learnt from these rows
    with keeping_trees(checkpoint, prepared.growth, schema, prepared.n_trees, effort.kernels):
        forest = grow(model, prepared, effort, None if old is None else old.forest)
    if find_mark is not None:
        prepared = prepared._replace(mark=find_mark())
    fitted = finish_forest(model, prepared, forest, old)
    if checkpoint is not None:
        checkpoint.remove()
    return fitted


def prepare_forest(
    model: Any,
    data: TrainingData,
    groups: NDArray[np.int32] | None,
    strata: NDArray[np.int32] | None,
    old: FittedForest | None,
    mark: str,
    seed: int,
) -> tuple[PreparedForest, Effort]:
    """Draw bags and code the rows; mark: the fingerprint of X and y."""
    if data.y.ndim == 2:
        refuse_asked(model._asks_one_output(), data.y.shape[1])  # noqa: SLF001
    labels, like = model._labels, "" if old is None else old.fingerprint  # noqa: SLF001
    draw, weight = make_draw(draw_params(model), data.table.n_rows, data.weight, groups, strata, seed)
    honest_fraction = float(model.honest_fraction) if model.honest else None
    weight_mark = mark_weights(weight, like=like)
    n_before, is_resumed = 0, True
    if old is not None:
        draw = draw.by_blocks_of(old.draw)
        difference = find_other_bags(old, draw, mark, weight_mark, honest_fraction)
        is_resumed = difference is None
        n_before = len(old.forest) if not is_resumed else 0 if old.earlier is None else old.earlier.n_members
        if n_before:
            refuse_on_other_rows(model, n_before, difference)
    n_new = model.n_estimators - (0 if old is None else len(old.forest))
    n_features = data.table.schema.n_features
    rows = code_for_bags(data._replace(weight=weight), labels, model, n_features, n_new, model.n_jobs)
    plan = make_plan(model, data, rows, draw, honest_fraction)
    if plan.has_oob:
        find_oob_scorer(model.oob_score)  # what is none is refused before the work
        if has_class_outputs(model):
            refuse_oob(model.classes_)
    sums = start_out_of_bag(plan, data.y, old, rows.effort.kernels) if plan.has_oob else None
    growth = ForestGrowth(plan, rows.legend, sums)
    seconds = growing_seconds(data.table.n_rows, n_features, n_new)
    bag_data = {} if model.checkpoint is None else mark_bag_data(mark, data.weight, groups, strata)
    schema = data.table.schema
    prepared = PreparedForest(
        growth, schema, data.y, weight, mark, weight_mark, seconds, n_new, bag_data, n_before, is_resumed
    )
    return prepared, rows.effort


def finish_forest(model: Any, prepared: PreparedForest, forest: Forest, old: FittedForest | None) -> FittedForest:
    """The model of all trees; those of `prepared.growth` have voted on their out-of-bag rows."""
    growth, plan = prepared.growth, prepared.growth.plan
    out_of_bag = None
    if growth.out_of_bag is not None:
        warn_of_pruning(model)
        score = find_oob_scorer(model.oob_score)
        out_of_bag = finish_out_of_bag(model, growth.out_of_bag, score, is_hard=plan.is_hard)
    leaf_rows = None
    if plan.keeps_leaf_rows:
        kept = [] if old is None or old.leaf_rows is None else old.leaf_rows.by_tree
        leaf_rows = LeafRows([*kept, *growth.leaf_rows])
    keeps_target = out_of_bag is not None or leaf_rows is not None  # for intervals and quantiles
    return FittedForest(
        forest=forest,
        schema=prepared.schema,
        classes=None if model._labels is None else model.classes_,  # noqa: SLF001
        draw=plan.draw,
        seed=plan.seed,
        max_features=count_features(model.max_features, prepared.schema.n_features),
        honest_fraction=plan.honest_fraction,
        fingerprint=prepared.mark,
        weight_mark=prepared.weight_mark,
        shift=plan.shift if old is None else max(plan.shift, old.shift),
        target=KeptTarget(prepared.y.copy(), prepared.weight) if keeps_target else None,
        leaf_rows=leaf_rows,
        out_of_bag=out_of_bag,
        earlier=EarlierMembers(prepared.n_before) if prepared.n_before else None,
    )


# --- warm starts ----------------------------------------------------------------------------------------------------


def check_warm_start(model: Any, old: FittedForest, schema: Schema, y: NDArray[Any]) -> None:
    """Refuse to add trees to those of other columns, classes or outputs; rows may be others."""
    check_number(model.n_estimators, len(old.forest))
    labels = model._labels  # noqa: SLF001
    difference = find_other_columns(schema, old.schema) or find_other_classes(labels, label_classes(old.classes))
    difference = difference or find_other_outputs(y, model._count_outputs())  # noqa: SLF001
    if difference is not None:
        raise ValueError(
            f"warm_start adds trees to a forest, so fit needs columns and classes like those of the first fit; "
            f"{difference}. Set warm_start=False to begin anew."
        )
    if parameter(model, "keep_members", False) and old.leaf_rows is None:
        raise ValueError(
            f"keep_members=True, but the {len(old.forest)} trees of the last fit were grown without: "
            "set warm_start=False to grow all of them anew"
        )


def find_other_bags(
    old: FittedForest, draw: Draw, mark: str, weight_mark: str, honest_fraction: float | None
) -> str | None:
    """What a fit has other than the last one, so that the bags of its trees are not those of these rows."""
    if mark != old.fingerprint:
        return "X or y"
    if weight_mark != old.weight_mark:
        return "sample_weight or class_weight"
    if honest_fraction != old.honest_fraction:
        return "honest or honest_fraction"
    return find_other_draw(draw, old.draw)


def start_out_of_bag(plan: Plan, y: NDArray[Any], old: FittedForest | None, kernels: Any) -> OutOfBagSums:
    """Sums of out-of-bag votes, those of the trees of a warm start included."""
    sums = OutOfBagSums(y, plan.target.n_classes, plan.has_weight, plan.shift, plan.target.widths)
    if old is not None and old.out_of_bag is not None and old.out_of_bag.is_hard == plan.is_hard:
        sums.resume(old.out_of_bag.votes, old.out_of_bag.n_votes, old.out_of_bag.curve)
    elif old is not None:
        vote_again(plan, old.forest, sums, kernels)
    return sums


# --- from parameters to a plan --------------------------------------------------------------------------------------


def row_class_weight(model: Any) -> Any:
    """The class weights that multiply the weights of rows; None where every bag is balanced by itself."""
    class_weight = parameter(model, "class_weight", None)
    if class_weight != "balanced_subsample":
        return class_weight
    return None if bool(model.bootstrap) or not model.replace else "balanced"


def find_shift(y: NDArray[np.float64]) -> int:
    """Power of two in whose units numbers are summed, so that a sum over all trees stays within float64.

    By the targets alone: a warm start goes on with sums of fewer trees.
    """
    return max(math.frexp(float(np.max(np.abs(y))))[1] - MOST_BITS, 0)


def draw_params(model: Any) -> DrawParams:
    """The parameters that decide how bags are drawn."""
    return DrawParams(
        bootstrap=model.bootstrap,
        replace=model.replace,
        max_samples=model.max_samples,
        block_size=model.block_size,
        stratify=parameter(model, "stratify", None),
        has_oob=bool(model.oob_score),
        prunes_oob=model.pruning == "oob",
    )


def make_plan(model: Any, data: TrainingData, rows: BagRows, draw: Draw, honest_fraction: float | None) -> Plan:
    """What the trees share; data: with the weights of rows before any draw has used them."""
    has_weight, labels = positive_rows(data.weight), model._labels  # noqa: SLF001
    n_rows = data.table.n_rows if has_weight is None else int(np.count_nonzero(has_weight))
    params = grow_params(model, n_rows, data.table.schema.n_features)
    return Plan(
        codes=rows.codes,
        weights=rows.weights,
        target=rows.target,
        draw=draw,
        params=as_member(params, draw, draws_features=params.max_features is not None),
        seed=draw.seed,
        monotone=find_monotone(model, data.table.schema),
        has_weight=has_weight,
        balances_bags=parameter(model, "class_weight", None) == "balanced_subsample" and draw.kind != "whole",
        honest_fraction=honest_fraction,
        prunes_oob=model.pruning == "oob",
        ccp_alpha=float(model.ccp_alpha),
        has_oob=bool(model.oob_score),
        is_hard=model._is_hard,  # noqa: SLF001
        shift=0 if labels is not None else find_shift(data.y),
        keeps_leaf_rows=bool(parameter(model, "keep_members", False)),
    )


def grow_params(model: Any, n_rows: int, n_features: int) -> GrowParams:
    """The parameters of a tree, as Python's own numbers."""
    n_tried = count_features(model.max_features, n_features)
    return GrowParams(
        criterion=own_name(model.criterion),
        missing=LEARNED if model.missing == "learned" else OWN_BRANCH,
        min_weight_fraction_leaf=float(model.min_weight_fraction_leaf),
        min_impurity_decrease=float(model.min_impurity_decrease),
        min_target_std=float(parameter(model, "min_target_std", 0.0)),
        max_features=None if n_tried == n_features else n_tried,
        has_random_feature_order=model.ties == "random",
        has_random_tests=model._has_random_tests,  # noqa: SLF001
        **level_guard(model),
        **tree_limits(model).for_rows(n_rows),
    )


def find_monotone(model: Any, schema: Schema) -> NDArray[np.int8] | None:
    """Directions of the features, (n_features,), or None; honest trees cannot keep to them."""
    monotone = check_monotone(model.monotonic_cst, model, schema)
    if monotone is not None and monotone.any() and model.honest:
        raise ValueError(
            "honest=True takes the leaf values from rows that did not choose the tests, so that monotonic_cst "
            "could not hold: use one"
        )
    return monotone


# --- growing --------------------------------------------------------------------------------------------------------


def grow(model: Any, prepared: PreparedForest, effort: Effort, old: Forest | None) -> Forest:
    """The trees there are, and those that are wanted beside."""
    n_new = prepared.n_trees
    if old is not None and n_new == 0:
        return old
    new = prepared.growth.run(
        0 if old is None else len(old),
        n_new,
        effort.kernels,
        effort.count_workers(model.n_jobs, n_new),
        is_short=effort.is_short,
        verbose=bool(model.verbose),
    )
    return new if old is None else join_forests(old, new)


def warn_of_pruning(model: Any) -> None:
    """Warn of scores by rows that have shaped the trees."""
    if model.pruning == "oob":
        warn(
            "pruning='oob' has shaped each tree by the very rows that now score it: oob_score_ is too good. "
            "Compare forests on held-out rows instead."
        )
