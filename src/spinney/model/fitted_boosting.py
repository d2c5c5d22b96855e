"""What gradient boosting has learnt, as one value, and what is asked of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.model.boosted_scores import count_raw, sum_gains, trees_per_round
from spinney.model.fitted_forest import find_forest_fault
from spinney.model.predictors import RoundPredictor

if TYPE_CHECKING:
    from spinney.ensemble.losses import Loss
    from spinney.table.schema import Schema
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

Floats = NDArray[np.float64]

SEEDS = 2**31  # seeds are below
LEAF_ROWS = ("bag", "all")
HASHED = {"y", "sample_weight or class_weight", "loss"}  # always; others where there are any


class Scores(NamedTuple):
    """A learning curve."""

    values: Floats  # (n_rounds,)

    def is_curve(self, n_rounds: int) -> bool:
        """Whether there is a number for each round."""
        return self.values.shape == (n_rounds,) and self.values.dtype == np.float64


class OutOfBagScores(NamedTuple):
    """What rounds have done to the rows that they left out; NaN for rounds that were not measured."""

    improvement: Floats  # (n_rounds,) by how much the mean loss of these rows fell
    scores: Floats  # (n_rounds,) that loss after the round

    def find_fault(self, n_rounds: int) -> str | None:
        """What is wrong with curves that were read."""
        is_fine = all(curve.shape == (n_rounds,) and curve.dtype == np.float64 for curve in self)
        return None if is_fine else f"out-of-bag scores are arrays of {n_rounds} numbers"


class BaseModel(NamedTuple):
    """The fitted model whose predictions boosting begins with."""

    model: Any  # an estimator


@dataclass(frozen=True, eq=False)
class FittedBoosting:
    """A gradient-boosted model.

    Attributes
    ----------
    schema : Schema
    classes : array (n_classes,), or None for numbers
    forest : Forest
        The trees of all rounds; tree t adds to raw score t % `n_raw`, or with `answers` to all of them.
    loss : Loss
    start : float64 (n_raw,)
        Raw scores before the first round.
    exponent : int
        Raw scores are in units of 2**exponent, where targets are near the ends of float64.
    best_round : int
        Rounds that predictions use.
    seed : int
    max_features : int
        Drawn per node.
    chosen : dict, or None in files of older versions
        The parameters that may be "auto", as they were used.
    class_factors : float64 (n_classes,), or None
        What the weight of a row of each class is multiplied by.
    hashes : dict
        Of the training data by the name of the argument, to know them again in a warm start.
    curves : dict
        set -> metric -> a value per round.
    train, validation : Scores or None
        The training loss; the curve that early stopping looks at.
    out_of_bag : OutOfBagScores or None
        None where they were not measured.
    base : BaseModel or None
        What the trees are added to (`init=estimator`); None: a constant.
    """

    schema: Schema
    classes: NDArray[Any] | None
    forest: Forest
    loss: Loss
    start: Floats
    exponent: int
    best_round: int
    seed: int
    max_features: int
    chosen: dict[str, Any] | None
    class_factors: Floats | None
    hashes: dict[str, str]
    curves: dict[str, dict[str, list[float]]]
    train: Scores | None
    validation: Scores | None
    out_of_bag: OutOfBagScores | None = None
    base: BaseModel | None = None

    @property
    def n_raw(self) -> int:
        """Raw scores of a row."""
        return len(self.start)

    @property
    def trees_per_round(self) -> int:
        """One for each raw score, or one for all."""
        return trees_per_round(self.forest, self.n_raw)

    @property
    def n_rounds(self) -> int:
        """Rounds grown."""
        return len(self.forest) // max(self.trees_per_round, 1)

    @property
    def init(self) -> Floats:
        """Raw scores before the first round in the units of the target, (n_raw,)."""
        return np.ldexp(self.start, self.exponent)

    def predictor(self, n_rounds: int | None = None) -> RoundPredictor:
        """What predicts by the first rounds; None: by those up to the best one."""
        used = self.best_round if n_rounds is None else n_rounds
        return RoundPredictor(self.schema, self.classes, self.forest, self.start, self.loss.link, used, self.exponent)

    def to_units(self, x: Any) -> Any:
        """Numbers of the user, or None, in units of 2**exponent."""
        return in_units(x, self.exponent)


def take_estimator_tree(fitted: FittedBoosting, t: int) -> Tree:
    """Tree number t, its leaves in the units of raw scores."""
    tree = fitted.forest[t]
    if fitted.exponent == 0:
        return tree
    if tree.answers is not None:
        tree = replace(tree, answers=np.ldexp(tree.answers, fitted.exponent))
    return replace(tree, threshold=np.where(tree.is_leaf, np.ldexp(tree.threshold, fitted.exponent), tree.threshold))


def in_units(x: Any, exponent: int) -> Any:
    """An array, or None, divided by 2**exponent."""
    return np.ldexp(x, -exponent) if exponent and x is not None else x


def feature_importances(fitted: FittedBoosting) -> Floats:
    """Gain of the tests on each feature in the trees that predictions use, scaled to sum 1, (n_features,)."""
    return sum_gains(fitted.forest, fitted.best_round * fitted.trees_per_round)


# --- a model that was read from a file ------------------------------------------------------------------------


def find_boosting_fault(fitted: FittedBoosting) -> str | None:
    """What is wrong with a model beyond the nodes of its trees, whose parts are of their types; None: nothing."""
    fault = find_forest_fault(fitted.forest, fitted.schema, None)  # of numbers: leaves hold raw scores
    if fault is not None:
        return fault
    n_rounds = fitted.n_rounds
    if not 1 <= fitted.best_round <= n_rounds or n_rounds * fitted.trees_per_round != len(fitted.forest):
        return f"predictions use {fitted.best_round} of {n_rounds} rounds, of {len(fitted.forest)} trees"
    if not 0 <= fitted.seed < SEEDS or not 1 <= fitted.max_features <= fitted.schema.n_features:
        return f"seed={fitted.seed}, max_features={fitted.max_features} are out of range"
    if not (set(fitted.hashes) >= HASHED and all(isinstance(text, str) for text in fitted.hashes.values())):
        return f"the hashes of the training data are those of {sorted(map(str, fitted.hashes))}"
    n_held = fitted.n_raw if fitted.forest.answers is None else count_raw(fitted.forest)
    if not fitted.loss.n_raw == n_held == fitted.n_raw:
        return f"a loss of {fitted.loss.n_raw} raw scores, {n_held} of them in leaves, began with {fitted.n_raw}"
    return find_curve_fault(fitted) or find_factor_fault(fitted) or find_chosen_fault(fitted.chosen)


def find_curve_fault(fitted: FittedBoosting) -> str | None:
    """Curves have a number for each round, and the scores are among them."""
    n_rounds = fitted.n_rounds
    curves: dict[Any, Any] = fitted.curves
    for name, metrics in curves.items():
        if not (isinstance(name, str) and isinstance(metrics, dict) and all(isinstance(key, str) for key in metrics)):
            return "sets and metrics of learning curves have names"
        if not all(is_curve(curve, n_rounds) for curve in metrics.values()):
            return f"learning curves are lists of {n_rounds} numbers"
    for scores in (fitted.train, fitted.validation):
        if scores is not None and not scores.is_curve(n_rounds):
            return f"scores are an array of {n_rounds} numbers"
    if fitted.out_of_bag is not None:
        fault = fitted.out_of_bag.find_fault(n_rounds)
        if fault is not None:
            return fault
    if fitted.train is not None and fitted.train.values.tolist() != curves.get("train", {}).get("loss"):
        return "the scores of the training rows are not their learning curve"
    return None


def is_curve(curve: Any, n_rounds: int) -> bool:
    """Whether this is a learning curve; losses may be infinite."""
    return (
        isinstance(curve, list)
        and len(curve) == n_rounds
        and all(type(value) is float and not math.isnan(value) for value in curve)
    )


def find_factor_fault(fitted: FittedBoosting) -> str | None:
    """One finite factor for each class, or none."""
    factors, classes = fitted.class_factors, fitted.classes
    if factors is None:
        return None
    is_fine = classes is not None and factors.shape == (len(classes),) and factors.dtype == np.float64
    if not is_fine or not bool(np.all((factors >= 0.0) & np.isfinite(factors))):
        return "the factors of class weights are one number, not negative, for each class"
    return None


def find_chosen_fault(chosen: dict[Any, Any] | None) -> str | None:
    """Parameters have names, and are finite numbers, None, or say which rows leaves have their values of."""
    for name, value in (chosen or {}).items():
        is_number = type(value) in {int, float} and math.isfinite(value)
        is_word = name == "leaf_rows" and value in LEAF_ROWS
        if not isinstance(name, str) or not (value is None or is_number or is_word):
            return f"the chosen parameter {name!r:.40} is {value!r:.40}"
    return None
