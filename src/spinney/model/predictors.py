"""The kinds of predictors: of one tree, of forests that vote, of rounds that add up, of members with weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._cached import once
from spinney._threads import check_jobs
from spinney.ensemble.links import ANY, LINKS, choose_class, respond, respond_one, two_shares
from spinney.model.base_predictor import Predictor
from spinney.model.boosted_scores import add_rounds, begin_raw, count_raw, sum_gains, trees_per_round
from spinney.model.forest_votes import lower_values, mean_answers, run_blocks, sum_votes, tree_predictions
from spinney.model.packed_forest import RowSums, sum_shares, sum_values
from spinney.model.weighted_votes import (
    choose_by_votes,
    decide,
    forest_medians,
    spread,
    sum_forest,
    sum_weights,
    weigh_forest,
)
from spinney.table.schema import refuse_infinite
from spinney.tree.broken import BrokenTreeError, check_types
from spinney.tree.forest import Forest, join_trees
from spinney.tree.predict import (
    find_all_leaves,
    find_leaves,
    predict_answers,
    predict_classes,
    predict_shares,
    predict_values,
    smooth_shares,
)
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinney.model.weighted_votes import ClassVotes
    from spinney.table.sparse import Values

MOST_EXPONENT = 2048  # a power of two that float64 can lose


def refuse_linear(forest: Forest) -> None:
    """Raise where trees that vote have linear leaves, which only rounds add up."""
    if forest.linear is not None:
        raise BrokenTreeError("trees that vote have no linear leaves")


@dataclass(frozen=True, eq=False, repr=False)
class TreePredictor(Predictor):
    """One tree.

    Attributes
    ----------
    tree : Tree
    smoothing : "laplace", float or None
        How class shares are drawn towards each other; see `smooth_shares`.
    """

    tree: Tree
    smoothing: float | str | None = None

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Impurity decrease by feature."""
        return self.tree.importances()

    def check(self) -> None:
        """The tree is for these columns and classes, the smoothing is one."""
        self.check_model(self.tree, self.n_classes)
        smoothing = self.smoothing
        is_number = isinstance(smoothing, float | int) and 0.0 <= smoothing < math.inf
        if smoothing is not None and not (self.n_classes and (smoothing == "laplace" or is_number)):
            raise BrokenTreeError(f"smoothing={smoothing!r} is none")

    @once
    def smoothed(self) -> NDArray[np.float64]:
        """Smoothed shares of every node, (n_nodes, n_classes)."""
        assert self.smoothing is not None
        return smooth_shares(self.tree, self.smoothing)

    def answer(self, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
        """What the row's leaf says; in one thread, which a tree is through with before a second had begun."""
        check_jobs(n_jobs)
        if self.n_classes:
            if self.smoothing is not None:
                return predict_answers(self.tree, values, self.smoothed)
            return predict_shares(self.tree, values)
        if self.tree.n_outputs > 1:
            return predict_answers(self.tree, values, self.tree.values())
        if self.tree.linear is not None:
            refuse_infinite(values, self.schema)
        return predict_values(self.tree, values)

    @property
    def n_numbers(self) -> int:
        """Outputs; of classes the shares of all of them."""
        return 1 if self.tree.answers is None else self.tree.answers.shape[1]

    def choose(self, values: Values, n_jobs: int | None = None) -> NDArray[np.intp]:
        """Code of the most frequent class of the leaf."""
        if self.smoothing is not None:
            return super().choose(values, n_jobs)
        check_jobs(n_jobs)
        return predict_classes(self.tree, values)

    def find(self, values: Values) -> NDArray[np.int64]:
        """Leaf of each row."""
        return find_leaves(self.tree, values).astype(np.int64)

    def _predict_by_tree(self, values: Values) -> NDArray[np.float64]:
        """What the one tree says."""
        return self.answer(values)[None]

    def row_sums(self) -> RowSums | None:
        """As a forest of one, where a row takes one path to a plain leaf."""
        if not self.tree.is_binary or self.tree.linear is not None or self.smoothing is not None:
            return None
        if self.n_numbers > 1:
            return None
        forest = join_trees([self.tree])
        if self.n_classes > 1:
            return sum_shares(forest, 1)
        return sum_values(forest, 1, 1, np.full(1, -0.0))  # to which -0.0 can be added

    def finish(self, out: NDArray[np.float64]) -> Any:
        """What the leaf says."""
        if self.n_classes:
            return out if self.n_classes > 1 else np.ones(1)
        return float(out[0])


@dataclass(frozen=True, eq=False, repr=False)
class VotePredictor(Predictor):
    """Trees whose answers are averaged.

    Attributes
    ----------
    forest : Forest
    is_hard : bool
        Whether a tree votes for one class, instead of giving shares.
    shift : int
        Numbers are added up in units of 2**shift, so that no sum overflows.
    """

    forest: Forest
    is_hard: bool = False
    shift: int = 0

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, the mean over the trees."""
        return self.forest.importances()

    def check(self) -> None:
        """The forest is for these columns and classes, its leaves plain."""
        self.check_model(self.forest, self.n_classes)
        refuse_linear(self.forest)
        if not 0 <= self.shift <= MOST_EXPONENT or (self.n_classes and self.shift) or (self.is_hard > self.n_classes):
            raise BrokenTreeError(f"shift={self.shift}, is_hard={self.is_hard} do not fit {self.n_classes} classes")

    @once
    def voting(self) -> Forest:
        """The trees as they vote: classes alone with hard voting, values in units of `2**shift`."""
        return self.forest.hardened if self.is_hard else lower_values(self.forest, self.shift)

    def answer(self, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Mean over the trees."""
        if self.n_classes == 1:  # one column of votes would be one of numbers
            return np.ones((len(values), 1))
        if self.n_numbers > 1:
            return mean_answers(self.forest, values, n_jobs)
        total = sum_votes(self.voting, values, n_jobs) / len(self.forest)
        return total if self.n_classes else np.ldexp(total[:, 0], self.shift)

    def find(self, values: Values) -> NDArray[np.int64]:
        """Leaf of each row in each tree."""
        return find_all_leaves(self.forest, values).astype(np.int64)

    @property
    def n_numbers(self) -> int:
        """Outputs; of classes the shares of all of them."""
        return 1 if self.forest.answers is None else self.forest.answers.shape[1]

    def _predict_by_tree(self, values: Values) -> NDArray[np.float64]:
        """What each tree says."""
        return tree_predictions(self.forest.hardened if self.is_hard else self.forest, values)

    def row_sums(self) -> RowSums | None:
        """Values, or shares."""
        if self.n_numbers > 1:
            return None
        if self.n_classes > 1:
            return sum_shares(self.voting, len(self.forest), len(self.forest))
        return sum_values(self.voting, 1, len(self.forest), np.zeros(1), len(self.forest))

    def finish(self, out: NDArray[np.float64]) -> Any:
        """The mean, which the kernel has divided already."""
        if self.classes is None:
            return math.ldexp(float(out[0]), self.shift)
        return out if len(out) > 1 else np.ones(1)


@dataclass(frozen=True, eq=False, repr=False)
class RoundPredictor(Predictor):
    """Gradient boosting: rounds of trees that add to raw scores.

    Attributes
    ----------
    forest : Forest
        `len(start)` trees a round, or one whose leaves hold as many numbers.
    start : float64 (n_raw,)
        Raw scores before the first round.
    link : str
        From raw scores to answers; see `ensemble.links`.
    n_rounds : int
        How many rounds count.
    exponent : int
        Raw scores of numbers are in units of `2**exponent`.
    """

    forest: Forest
    start: NDArray[np.float64]
    link: str
    n_rounds: int
    exponent: int = 0

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Gain of the tests on each feature in the rounds that predict."""
        return sum_gains(self.forest, self.n_rounds * self.trees_per_round)

    def check(self) -> None:
        """Forest, start, link and rounds fit each other and the classes."""
        self.check_model(self.forest, 0)
        if self.link not in LINKS:
            raise BrokenTreeError(f"there is no link {self.link!r}")
        n_raw, n_classes = LINKS[self.link]
        wanted = max(self.n_classes, 2) if self.classes is not None else 0
        n_classes = wanted if n_classes == ANY else n_classes
        check_types(self, {"start": (1, np.float64)})
        n_raw = max(len(self.start), 1) if n_raw == ANY else n_raw or n_classes
        if n_classes != wanted or self.start.shape != (n_raw,) or not np.isfinite(self.start).all():
            raise BrokenTreeError(f"link {self.link!r}: start of shape {self.start.shape} for {self.n_classes} classes")
        per_round = self.trees_per_round
        if self.forest.answers is not None and not count_raw(self.forest) == n_raw > 1:
            raise BrokenTreeError(f"leaves of {count_raw(self.forest)} numbers for {n_raw} raw scores")
        if len(self.forest) % per_round or not 0 <= self.n_rounds <= len(self.forest) // per_round:
            raise BrokenTreeError(f"{self.n_rounds} rounds of {per_round} trees in a forest of {len(self.forest)}")
        if abs(self.exponent) > MOST_EXPONENT or (n_classes and self.exponent):
            raise BrokenTreeError(f"exponent={self.exponent} is out of range")

    @property
    def n_raw(self) -> int:
        """Raw scores of a row."""
        return len(self.start)

    @property
    def trees_per_round(self) -> int:
        """One for each raw score, or one for all."""
        return trees_per_round(self.forest, self.n_raw)

    @property
    def n_numbers(self) -> int:
        """How many numbers are predicted for a row: one for each quantile or output, else 1."""
        return self.n_raw if self.link in ("quantiles", "outputs") else 1

    def begin(self, n_rows: int, offset: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Raw scores before the first round, (n_raw, n_rows); offset: what the rows bring along, in our units."""
        return begin_raw(self.start, n_rows, offset)

    def sum_rounds(
        self, values: Values, offset: NDArray[np.float64] | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Raw scores of encoded rows, (n_raw, n_rows)."""
        if self.forest.linear is not None:
            refuse_infinite(values, self.schema)
        raw = self.begin(len(values), offset)
        rounds = range(self.n_rounds)

        def add(lo: int, hi: int) -> None:
            add_rounds(self.forest, rounds, values, lo, hi, raw)

        run_blocks(add, len(values), len(rounds) * self.trees_per_round, n_jobs)
        return raw

    def stages(
        self, values: Values, n_rounds: int, offset: NDArray[np.float64] | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Raw scores after each round, (n_raw, n_rows): the same array each time."""
        raw = self.begin(len(values), offset)
        for t in range(n_rounds):
            add_rounds(self.forest, range(t, t + 1), values, 0, len(values), raw)
            yield raw

    @once
    def _is_certain(self) -> bool:
        """Whether there is a single class: it is learnt as the first of two, and certain."""
        return self.n_classes == 1

    def respond(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers to raw scores."""
        if self._is_certain:
            return np.ones((raw.shape[1], 1))
        return respond(self.link, raw, self.exponent)

    def answer(self, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The sum of the rounds, through the link."""
        return self.respond(self.sum_rounds(values, None, n_jobs))

    def choose(self, values: Values, n_jobs: int | None = None) -> NDArray[np.intp]:
        """Code of the most probable class."""
        return self.decide(self.sum_rounds(values, None, n_jobs))

    def decide(self, raw: NDArray[np.float64]) -> NDArray[np.intp]:
        """Code of the most probable class by raw scores."""
        return choose_class(self.link, raw, self.n_classes)

    @once
    def used(self) -> Forest:
        """The trees of the rounds that count."""
        return self.forest.head(self.n_rounds * self.trees_per_round)

    def find(self, values: Values) -> NDArray[np.int64]:
        """Leaf of each row in each tree that counts."""
        return find_all_leaves(self.used, values).astype(np.int64)

    def _predict_by_tree(self, values: Values) -> NDArray[np.float64]:
        """The raw score that each tree adds."""
        return np.ldexp(tree_predictions(self.used, values), self.exponent)

    def row_sums(self) -> RowSums | None:
        """Values that add up to raw scores, where leaves are plain."""
        if self.forest.linear is not None or self.forest.answers is not None:
            return None
        return sum_values(self.forest, self.n_raw, self.n_rounds * self.n_raw, self.start)

    def finish(self, out: NDArray[np.float64]) -> Any:
        """The sums, through the link."""
        return np.ones(1) if self._is_certain else respond_one(self.link, out, self.exponent)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedPredictor(Predictor):
    """AdaBoost: trees whose votes have weights; of numbers, the weighted median.

    Attributes
    ----------
    forest : Forest
    weights : float64 (n_trees,)
    """

    forest: Forest
    weights: NDArray[np.float64]

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Importances of the trees, weighted as their votes."""
        weights = np.abs(self.weights)
        total = np.zeros(self.n_features)
        for tree, weight in zip(
            self.forest, (weights if weights.any() else np.ones(len(weights))).tolist(), strict=True
        ):
            total += weight * tree.importances()
        scale = total.sum()
        return total / (scale if scale > 0.0 else 1.0)

    def check(self) -> None:
        """One finite weight a tree, whose leaves are plain."""
        self.check_model(self.forest, self.n_classes)
        refuse_linear(self.forest)
        check_types(self, {"weights": (1, np.float64)})
        if len(self.weights) != len(self.forest) or not np.isfinite(self.weights).all():
            raise BrokenTreeError(f"{len(self.weights)} weights for {len(self.forest)} trees, or not finite")

    def answer(self, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Probabilities by the votes, or weighted medians."""
        if not self.n_classes:
            return forest_medians(self.forest, self.weights, values, n_jobs)
        return spread(decide(self.sum_votes(values, n_jobs), self.n_classes), self.n_classes)

    def choose(self, values: Values, n_jobs: int | None = None) -> NDArray[np.intp]:
        """Code of the class with most votes."""
        return choose_by_votes(self.sum_votes(values, n_jobs))

    def sum_votes(self, values: Values, n_jobs: int | None = None) -> ClassVotes:
        """Votes for the classes of encoded rows."""
        return sum_forest(self.forest, self.weights, values, n_jobs)

    def find(self, values: Values) -> NDArray[np.int64]:
        """Leaf of each row in each tree."""
        return find_all_leaves(self.forest, values).astype(np.int64)

    def _predict_by_tree(self, values: Values) -> NDArray[np.float64]:
        """What each tree says, without its weight."""
        return tree_predictions(self.forest, values)

    def row_sums(self) -> RowSums | None:
        """Two classes: trees that say their weight."""
        if self.n_classes != 2:
            return None
        return sum_values(weigh_forest(self.forest, self.weights), 1, len(self.forest), np.zeros(1))

    @once
    def total(self) -> float:
        """Sum of the absolute weights of the trees, which their votes are divided by; 1 if that sum is 0."""
        total = sum_weights(self.weights)
        return total if total > 0.0 else 1.0

    def finish(self, out: NDArray[np.float64]) -> Any:
        """Probabilities of two classes."""
        return two_shares(2.0 * (float(out[0]) / self.total))
