"""What AdaBoost has learnt, as one value, and what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.model.adaboost_bounds import bound_rounds, find_normalisers
from spinney.model.fitted_boosting import Scores
from spinney.model.fitted_forest import find_forest_fault
from spinney.model.predictors import WeightedPredictor

if TYPE_CHECKING:
    from spinney.table.schema import Schema
    from spinney.tree.forest import Forest

Floats = NDArray[np.float64]

UNITS = (0.5, 1.0)  # of weights: half the log-odds of being right, or all


class VotingTrees(NamedTuple):
    """Members that are trees of one forest."""

    schema: Schema
    forest: Forest
    base: Any  # the estimator that each tree is one of, without what it has learnt


class VotingEstimators(NamedTuple):
    """Members of any other kind."""

    members: list[Any]


@dataclass(frozen=True, eq=False)
class FittedAdaBoost:
    """A model of AdaBoost.

    Attributes
    ----------
    classes : array (n_classes,), or None for numbers
    trees : VotingTrees or None
    others : VotingEstimators or None
        One of the two is there.
    template : estimator
        What members are copies of.
    weights, errors : float64 (n_members,)
        Weights of the members' votes; their weighted errors on the rows as they met them.
    unit : float
        Of the weights: 0.5 where they are half the log-odds of being right.
    n_rounds : int
        Rounds there were; members are of the best ones.
    validation : Scores or None
        Score of the validation rows after each round.
    """

    classes: NDArray[Any] | None
    trees: VotingTrees | None
    others: VotingEstimators | None
    template: Any
    weights: Floats
    errors: Floats
    unit: float
    n_rounds: int
    validation: Scores | None

    @property
    def n_members(self) -> int:
        """How many members vote."""
        return len(self.weights)

    @property
    def members(self) -> Any:
        """The members in order: a forest of trees, or a list of estimators."""
        if self.trees is not None:
            return self.trees.forest
        assert self.others is not None
        return self.others.members

    @property
    def alphas(self) -> Floats:
        """Weights of the members in full log-odds, (n_members,)."""
        return self.weights / self.unit

    def predictor(self) -> WeightedPredictor:
        """What predicts, of members that are trees."""
        assert self.trees is not None
        return WeightedPredictor(self.trees.schema, self.classes, self.trees.forest, self.weights)

    def head(self, n_members: int) -> FittedAdaBoost:
        """The model of the first members."""
        trees, others = self.trees, self.others
        return replace(
            self,
            trees=None if trees is None else trees._replace(forest=trees.forest.head(n_members)),
            others=None if others is None else VotingEstimators(others.members[:n_members]),
            weights=self.weights[:n_members],
            errors=self.errors[:n_members],
        )


def normalisers(fitted: FittedAdaBoost) -> Floats:
    """Z of each round, (n_members,)."""
    return find_normalisers(fitted.errors, fitted.alphas)


def bound_error(fitted: FittedAdaBoost, margin: float) -> Floats:
    """Bound on the share of the training rows whose margin is at most this after 1, 2, ... members."""
    return bound_rounds(fitted.errors, fitted.alphas, margin)


def find_adaboost_fault(fitted: FittedAdaBoost) -> str | None:
    """What is wrong with a model that was read from a file, beyond its members; None: nothing."""
    if (fitted.trees is None) == (fitted.others is None):
        return "a fitted AdaBoost has trees or other members"
    trees = fitted.trees
    fault = None if trees is None else find_forest_fault(trees.forest, trees.schema, fitted.classes)
    if fault is not None:
        return fault
    for numbers in (fitted.weights, fitted.errors):
        if numbers.ndim != 1 or numbers.dtype != np.float64:
            return "weights and errors of members are numbers"
    if not 1 <= len(fitted.members) == len(fitted.weights) == len(fitted.errors) <= fitted.n_rounds:
        return f"{len(fitted.members)} members of {fitted.n_rounds} rounds do not have as many weights and errors"
    with np.errstate(over="ignore"):
        has_sum = bool(np.isfinite(np.sum(np.abs(fitted.weights)) / min(UNITS)))  # votes are added up
    is_share = bool(np.all((fitted.errors >= 0.0) & (fitted.errors <= 1.0)))
    if not is_share or not has_sum or fitted.unit not in UNITS or (fitted.classes is None and fitted.unit != 1.0):
        return f"errors of members are shares, and weights numbers of finite sum, not in units of {fitted.unit}"
    is_curve = fitted.validation is None or fitted.validation.is_curve(fitted.n_rounds)
    return None if is_curve else f"validation scores are an array of {fitted.n_rounds} numbers"
