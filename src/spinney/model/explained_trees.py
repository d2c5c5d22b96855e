"""Predictors as sums of trees for explanations: their arrays end to end, and what their leaves add to which output.

An *output* is a number that a sum of trees gives: the prediction of a number, the probability of a class where trees
are averaged, the raw score of gradient boosting, the decision function of AdaBoost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._cached import derive
from spinney._jit import fixed, kernels
from spinney._node_layout import child_of_link, feature_of_link, kind_of_link, missing_of_link, test_of_link
from spinney._types import SUBSET
from spinney.kernels.common.structs import (
    ExplainedLeaves,
    ExplainedModel,
    ExplainedTrees,
    LinearTerms,
    SurrogateTests,
)
from spinney.model.predictors import RoundPredictor, TreePredictor, VotePredictor, WeightedPredictor
from spinney.model.weighted_votes import decide, leaf_classes, sum_weights, weigh_forest
from spinney.tree.predict import leaf_shares, list_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.model.base_predictor import Predictor
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest
    from spinney.tree.linear import LinearLeaves
    from spinney.tree.structure import Tree

NODE_SECONDS = 2e-5  # to lay out one node, interpreted
OWN_BRANCH = 2  # of missing values


class NoSumError(ValueError):
    """A model whose answers are no sum of what its trees say."""


class Shape(NamedTuple):
    """The tests of trees, end to end; see `ExplainedTrees`."""

    test: NDArray[np.uint32]
    feature: NDArray[np.int64]
    first_child: NDArray[np.int64]
    n_branches: NDArray[np.int64]
    cut: NDArray[np.float64]
    subsets: NDArray[np.uint64]
    weight: NDArray[np.float64]
    first_node: NDArray[np.int64]


class Said(NamedTuple):
    """What leaves say; see `ExplainedLeaves`."""

    row_of: NDArray[np.int64]
    values: NDArray[np.float64]
    scale: NDArray[np.float64]
    output: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Explained:
    """A predictor as a sum of trees.

    Attributes
    ----------
    model : ExplainedModel
        As kernels read it.
    start : float64 (n_outputs,)
        The outputs before the first tree.
    names : tuple
        Of the outputs: classes, or None for a number.
    is_mirrored : bool
        Whether the trees add to the second of two outputs alone, and the first is 1 less it.
    most_features : int64 (n_trees,)
        The most features on a path of each tree.
    depth : int
        The most tests on a path.
    has_weights : bool
        Whether the weights of the training rows are known; a compact forest has dropped them.
    """

    model: ExplainedModel
    start: NDArray[np.float64]
    names: tuple[Any, ...]
    is_mirrored: bool
    most_features: NDArray[np.int64]
    depth: int
    has_weights: bool

    @property
    def n_trees(self) -> int:
        """How many trees are added up."""
        return len(self.most_features)

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees."""
        return len(self.model.trees.test)


def explained(predictor: Predictor) -> Explained:
    """A predictor as a sum of trees, laid out once and kept with it."""
    return derive(predictor, "explained trees", lambda: lay_out(predictor))


def lay_out(predictor: Predictor) -> Explained:
    """What `explained` keeps."""
    for kind, make in MAKERS.items():
        if isinstance(predictor, kind):
            return make(predictor)
    raise TypeError(f"{type(predictor).__name__} is no predictor of trees")


def raw_scores(predictor: Predictor, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
    """The outputs of encoded rows, (n_rows, n_outputs): what SHAP values add up to."""
    if isinstance(predictor, RoundPredictor) and predictor.n_classes != 1:
        return np.ldexp(predictor.sum_rounds(values, None, n_jobs).T, predictor.exponent)
    if isinstance(predictor, WeightedPredictor) and predictor.n_classes > 1:
        return decide(predictor.sum_votes(values, n_jobs), predictor.n_classes).reshape(len(values), -1)
    return predictor.answer(values, n_jobs).reshape(len(values), -1)


UNITS = {  # of raw scores, by link
    "log": "logarithm of the answer",
    "logistic": "log-odds",
    "half_logistic": "half the log-odds",
    "softmax": "log-odds, up to a constant for all classes",
}


def score_unit(predictor: Predictor) -> str | None:
    """What raw scores are where they are not what `predict` and `predict_proba` give; None where they are."""
    if isinstance(predictor, RoundPredictor) and predictor.n_classes != 1:
        return UNITS.get(predictor.link)
    if isinstance(predictor, WeightedPredictor) and predictor.n_classes > 1:
        return "decision function"
    return None


# --- each kind of model -------------------------------------------------------------------------------------------


def explain_tree(predictor: TreePredictor) -> Explained:
    """One tree: what its leaf says."""
    tree = predictor.tree
    if predictor.n_classes == 1:
        return explain_certain(predictor)
    if tree.spreads_missing.any() and not (tree.spreads_missing | tree.is_leaf).all():
        raise NoSumError("missing values take every branch of some tests and one branch of others: no fit makes that")
    leaves = np.flatnonzero(tree.is_leaf)
    row_of = np.zeros(tree.n_nodes, np.int64)
    row_of[leaves] = np.arange(len(leaves))
    if not predictor.n_classes:
        values = tree.threshold[leaves][:, None]
    elif predictor.smoothing is not None:
        values = predictor.smoothed[leaves]
    elif tree.spreads_missing.any():
        values = tree.values()[leaves]
    else:
        values = leaf_shares(tree, leaves.astype(np.int32))
    said = Said(row_of, values, np.ones(1), np.zeros(1, np.int64))
    return join_parts(predictor, shape_of_tree(tree), said, tree)


def explain_votes(predictor: VotePredictor) -> Explained:
    """Trees whose answers are averaged."""
    if predictor.n_classes == 1:
        return explain_certain(predictor)
    forest = predictor.forest.hardened if predictor.is_hard else predictor.forest
    n_trees = len(forest)
    row_of, values = answers_of(forest)
    said = Said(row_of, values, np.full(n_trees, 1.0 / n_trees), np.zeros(n_trees, np.int64))
    return join_parts(predictor, shape_of_forest(forest), said)


def explain_rounds(predictor: RoundPredictor) -> Explained:
    """Gradient boosting: raw scores."""
    if predictor.n_classes == 1:
        return explain_certain(predictor)
    n_trees, n_raw = predictor.n_rounds * predictor.n_raw, predictor.n_raw
    start = np.ldexp(predictor.start, predictor.exponent)
    if n_trees == 0:
        return explain_constant(predictor, start)
    forest = predictor.used
    row_of, values = answers_of(forest)
    said = Said(row_of, values, np.ldexp(np.ones(n_trees), predictor.exponent), np.arange(n_trees) % n_raw)
    return join_parts(predictor, shape_of_forest(forest), said, start=start, linear=forest.linear)


def explain_weights(predictor: WeightedPredictor) -> Explained:
    """AdaBoost: the decision function."""
    forest, n_classes = predictor.forest, predictor.n_classes
    if n_classes == 1:
        return explain_certain(predictor)
    if n_classes == 0:
        raise NoSumError(
            "AdaBoost predicts numbers by the weighted median of its trees, which is no sum: give `background` rows, "
            "against which the values of any model are exact, or explain a forest or gradient boosting"
        )
    if n_classes == 2:
        row_of, values = answers_of(weigh_forest(forest, predictor.weights))
        scale = np.full(len(forest), 2.0 / predictor.total)
        said = Said(row_of, values, scale, np.zeros(len(forest), np.int64))
        return join_parts(predictor, shape_of_forest(forest), said, start=np.zeros(1))
    others = float(n_classes - 1)
    scale = predictor.weights * ((1.0 + 1.0 / others) / predictor.total)
    said = Said(np.maximum(leaf_classes(forest), 0), np.eye(n_classes), scale, np.zeros(len(forest), np.int64))
    start = np.full(n_classes, -sum_weights(predictor.weights) / (others * predictor.total))
    return join_parts(predictor, shape_of_forest(forest), said, start=start)


def explain_certain(predictor: Predictor) -> Explained:
    """A model of one class, which is certain."""
    return explain_constant(predictor, np.ones(1))


def explain_constant(predictor: Predictor, start: NDArray[np.float64]) -> Explained:
    """A model that says the same of every row: one leaf, which adds nothing."""
    none = np.zeros(1, np.int64)
    shape = Shape(
        np.zeros(1, np.uint32), none, none, none, np.zeros(1), np.zeros(0, np.uint64), np.ones(1), np.array([0, 1])
    )
    said = Said(none, np.zeros((1, 1)), np.ones(1), none)
    return join_parts(predictor, shape, said, start=start)


MAKERS: dict[type, Callable[[Any], Explained]] = {
    TreePredictor: explain_tree,
    VotePredictor: explain_votes,
    RoundPredictor: explain_rounds,
    WeightedPredictor: explain_weights,
}


# --- parts --------------------------------------------------------------------------------------------------------


def shape_of_tree(tree: Tree) -> Shape:
    """The tests of one tree."""
    is_inner = ~tree.is_leaf
    return Shape(
        test=tree.test,
        feature=np.maximum(tree.feature, 0),
        first_child=np.where(is_inner, tree.first_child, 0).astype(np.int64),
        n_branches=tree.n_branches,
        cut=tree.threshold,
        subsets=tree.subsets,
        weight=tree.weight,
        first_node=np.array([0, tree.n_nodes], np.int64),
    )


def shape_of_forest(forest: Forest) -> Shape:
    """The tests of the trees of a forest."""
    link, is_leaf = forest.hot[:, 1], forest.is_leaf
    n_nodes = np.diff(forest.first_node)
    root, word = np.repeat(forest.first_node[:-1], n_nodes), np.repeat(forest.first_word[:-1], n_nodes)
    cut = np.ascontiguousarray(forest.hot[:, 0]).view(np.float64)
    is_subset = ~is_leaf & (kind_of_link(link) == SUBSET)
    return Shape(
        test=np.where(is_leaf, 0, test_of_link(link)).astype(np.uint32),
        feature=np.where(is_leaf, 0, feature_of_link(link)),
        first_child=np.where(is_leaf, 0, child_of_link(link) + root),
        n_branches=np.where(is_leaf, 0, 2 + (missing_of_link(link) == OWN_BRANCH)),
        cut=np.where(is_subset, cut + word, cut),
        subsets=forest.subsets,
        weight=np.ones(forest.n_nodes) if forest.is_compact else forest.weight.astype(np.float64),
        first_node=forest.first_node,
    )


def answers_of(forest: Forest) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The row of each leaf in a table, and the table: values, or shares, pure leaves first."""
    leaves = np.flatnonzero(forest.is_leaf)
    value = np.ascontiguousarray(forest.hot[leaves, 0]).view(np.float64)
    row_of = np.zeros(forest.n_nodes, np.int64)
    if not forest.n_classes:
        row_of[leaves] = np.arange(len(leaves))
        return row_of, value[:, None]
    code = value.astype(np.int64)
    tree = np.searchsorted(forest.first_node, leaves, side="right") - 1
    row_of[leaves] = np.where(code >= 0, code, forest.n_classes + forest.first_mixed[tree] - 1 - code)
    return row_of, np.concatenate([np.eye(forest.n_classes), forest.shares])


def join_parts(
    predictor: Predictor,
    shape: Shape,
    said: Said,
    tree: Tree | None = None,
    start: NDArray[np.float64] | None = None,
    linear: LinearLeaves | None = None,
) -> Explained:
    """The whole; tree: where surrogates and linear models are; start: None where the outputs begin at 0."""
    n_features, n_nodes = predictor.n_features, len(shape.test)
    start = np.zeros(said.values.shape[1]) if start is None else start
    is_mirrored = said.values.shape[1] == 2 and predictor.n_classes == 2
    if is_mirrored:
        said = said._replace(values=said.values[:, 1:])
    linear = linear if tree is None else tree.linear
    none: NDArray[Any] = np.zeros(0)
    terms = (np.zeros(1, np.int64), none.astype(np.int32), none, none)
    if linear is not None and linear.n_terms:
        terms = (linear.first, linear.feature, linear.coefficient, linear.fill)
    surrogates = SurrogateTests(fixed(np.zeros(1, np.int32)), fixed(none.astype(np.uint32)), fixed(none), NO_WORDS)
    laid: Any = (*(fixed(np.ascontiguousarray(x)) for x in shape), np.ones(n_nodes), np.ones(n_nodes))
    trees = ExplainedTrees(*laid)
    leaves = ExplainedLeaves(
        fixed(said.row_of),
        fixed(np.ascontiguousarray(said.values)),
        fixed(said.scale),
        fixed(said.output),
        LinearTerms(*(fixed(x) for x in terms)),
        np.ones(len(terms[1])),
    )
    depth = find_depth(shape)
    most = np.zeros(len(shape.first_node) - 1, np.int64)
    k = kernels(n_nodes * NODE_SECONDS)
    k.predict.shap.lay_covers(
        trees, leaves, np.empty((2, depth + 2), np.int64), np.ones(n_features), np.zeros(n_features, np.int64), most
    )
    names = output_names(predictor, len(start))
    model = ExplainedModel(trees, leaves, surrogates if tree is None else list_surrogates(tree))
    forest = getattr(predictor, "forest", None)
    return Explained(model, start, names, is_mirrored, most, depth, forest is None or not forest.is_compact)


NO_WORDS = fixed(np.zeros(0, np.int64))


def output_names(predictor: Predictor, n_outputs: int) -> tuple[Any, ...]:
    """Classes, or None for numbers; of one score for two classes the second class, which it speaks for."""
    if predictor.classes is None:
        return (None,) if n_outputs == 1 else tuple(range(n_outputs))
    classes = predictor.classes.tolist()
    return tuple(classes) if len(classes) == n_outputs else (classes[-1],)


def find_depth(shape: Shape) -> int:
    """The most tests on a path of any tree."""
    level, depth = shape.first_node[:-1], 0
    while True:
        level = level[shape.n_branches[level] > 0]
        if len(level) == 0:
            return depth
        n_branches = shape.n_branches[level]
        begin = np.cumsum(n_branches) - n_branches
        level = np.arange(int(n_branches.sum())) + np.repeat(shape.first_child[level] - begin, n_branches)
        depth += 1
