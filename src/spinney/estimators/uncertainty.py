"""How sure a fitted forest is: what single trees say, variances, quantiles, intervals and sets of classes.

    new rows ──► predict_trees ──► predict_variance                      bags are drawn again where they are needed
    leaves of the training rows: kept by fit, or from train=(X, y)  ──► predict_quantiles
    out-of-bag results:          kept by fit, or from train=(X, y)  ──► predict_interval, predict_set

New rows go through in blocks, several threads at a time; the answer to a row depends neither on its block nor on the
threads. The arithmetic is in `model.uncertainty`.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney._cost import ROUTE_SECONDS, SHORT_SECONDS
from spinney._threads import count_workers, run_tasks
from spinney._warnings import warn
from spinney.ensemble.forest import first_members, say
from spinney.ensemble.sampling import split_bag
from spinney.estimators.checks import check_weights
from spinney.kernels.common.structs import Members
from spinney.model.forest_votes import ask_trees, lower_values
from spinney.model.uncertainty import (
    Correction,
    PerTree,
    forest_quantiles,
    gather_members,
    infinitesimal_jackknife_variance,
    interval_after_bootstrap,
    interval_oob,
    jackknife_variance,
    sets_after_bootstrap,
    sets_oob,
    variance_over_trees,
)
from spinney.tree.predict import find_all_leaves, find_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.ensemble.sampling import Draw
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

KINDS = ("trees", "jackknife", "infinitesimal")
METHODS = ("auto", "jackknife+", "oob")
CORRECTIONS = ("counts", "bootstrap", "none")
MOST_ROWS = 20_000  # training rows up to which "auto" pays for the jackknife+
BLOCK_BYTES = 2**25  # of what the trees say of one block of new rows
MOST_BLOCK, LEAST_BLOCK = 4096, 64  # new rows
FEW_BLOCKS, FEW_ROWS = 16, 256  # so many blocks, for threads to share, unless they would be smaller than this
HELD_CELLS = 2**26  # counts (n_trees, n_rows) in four bytes each that are held; beyond, bags are drawn for every block
DRAW_SECONDS = 5e-9  # a row of a bag
PRODUCT_SECONDS = 2e-10  # a training row, a new row and a tree in a product of matrices
RANK_SECONDS = 2e-8  # a training row at a new row, for an order statistic
MEMBER_SECONDS = 1e-8  # a member of a leaf, for quantiles
MODERATE_BITS = 400  # exponents of values whose squares, and sums of these, are far from the ends of float64
SETTLED = 1e-8  # of a share, far above rounding and what counts as a tie
SAME_WEIGHT = 1e-6  # relative: weights are rounded to fixed point when a tree is grown


class Uncertain:
    """What the trees of a forest say one by one, and how much that varies."""

    forest_: Forest
    n_jobs: int | None
    _draw: Draw
    _seed: int
    _y: NDArray[Any]
    _oob_votes: NDArray[np.float64]
    _oob_n_votes: NDArray[np.int64]
    _oob_is_hard: bool
    _shift: int
    _voting_forest: Callable[[], Forest]
    _values: Callable[[Any], NDArray[Any]]
    _training_values: Callable[[Any, Any], tuple[NDArray[Any], NDArray[Any]]]

    def predict_trees(self, X: Any) -> NDArray[np.float64]:
        """Predict with every tree by itself; the mean over the trees is what the forest predicts.

        The result takes 8 bytes for each tree and row, and for each class: ask for part of the rows at a time if that
        is much.

        Returns
        -------
        float64 array (n_trees, n_rows), or (n_trees, n_rows, n_classes)
            Values of a regressor; class shares of a classifier, with hard voting 0 or 1.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 200)[:, None]
        >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, X[:, 0] ** 2)
        >>> said = forest.predict_trees([[0.5], [0.9]])
        >>> said.shape, np.allclose(said.mean(axis=0), forest.predict([[0.5], [0.9]]))
        ((50, 2), True)
        """
        values = self._values(X)
        forest = self._voting_forest()
        said = np.empty((len(forest), len(values), forest.n_classes)[: 3 if forest.n_classes else 2])

        def work(rows: slice) -> None:
            said[:, rows] = np.ldexp(ask_trees(forest, values[rows]), self._shift)

        self._for_blocks(work, len(values))
        return said

    def predict_variance(
        self, X: Any, kind: str = "trees", *, correction: Correction = "counts"
    ) -> NDArray[np.float64]:
        """Variance of the prediction of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        kind : {"trees", "jackknife", "infinitesimal"}
            - "trees": mean squared deviation of the trees from the forest. How much they disagree; more trees do not
              make it smaller.
            - "jackknife": by how much the forest would differ had it been grown on another sample of rows, by the
              jackknife after bootstrap (Efron 1992; Wager, Hastie and Efron 2014).
            - "infinitesimal": the same, by the infinitesimal jackknife (Efron 2014). Needs fewer trees.

            The last two need bags, and many trees: some multiple of the number of training rows. Where rows were
            drawn in groups or blocks, these are what is left out.
        correction : {"counts", "bootstrap", "none"}
            What the last two subtract for the noise of a finite number of trees: its value for these bags, its value
            for bootstraps as large as the table, or nothing. A variance that falls below 0 is given as 0, with a
            warning.

        Returns
        -------
        float64 array (n_rows,), or (n_rows, n_classes)
            In squared units of the target; of a classifier the variance of each class probability.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> forest = RandomForestRegressor(n_estimators=400, random_state=0).fit(X, X[:, 0])
        >>> forest.predict_variance([[0.5]], kind="infinitesimal").shape
        (1,)
        """
        check_is_fitted(self, "forest_")
        check_option("kind", kind, KINDS)
        check_option("correction", correction, CORRECTIONS)
        counts: Any = None
        n_units = 0
        if kind != "trees":
            self._need_bags(f"kind={kind!r}")
            units = drawn_units(self._draw)
            counts, n_units = self._hold_counts(units), len(units)
        values = self._values(X)
        scale = find_scale(self.forest_)
        forest = self._voting_forest() if self.forest_.n_classes else lower_values(self.forest_, scale)
        variance = np.empty((len(values), max(forest.n_classes, 1)))
        is_hidden = np.zeros(variance.shape, np.bool_)

        def work(rows: slice) -> None:
            said = ask_trees(forest, values[rows])
            for c in range(variance.shape[1]):
                part = said[:, :, c] if forest.n_classes else said
                variance[rows, c] = measure_variance(part, counts, kind, correction)
                is_hidden[rows, c] = (variance[rows, c] == 0.0) & (part.min(axis=0) != part.max(axis=0))

        self._for_blocks(work, len(values), n_units * variance.shape[1] * PRODUCT_SECONDS * len(forest))
        if is_hidden.any():
            warn(
                f"{np.count_nonzero(is_hidden)} of {variance.size} variances were smaller than the noise of "
                f"{len(forest)} trees and are given as 0: grow more trees, some multiple of the {n_units} "
                f"{'rows' if self._draw.groups is None else 'groups'} that bags are drawn from."
            )
        with np.errstate(over="ignore"):  # targets of 1e300 have squares beyond float64: infinite
            return variance if forest.n_classes else np.ldexp(variance[:, 0], 2 * scale)

    # --- what the methods share ---

    def _for_blocks(self, work: Callable[[slice], None], n_rows: int, seconds_per_row: float = 0.0) -> None:
        """Call work(rows) for blocks of new rows, by several threads where that pays."""
        n_answers = len(self.forest_) * max(self.forest_.n_classes, 1)
        size = min(
            max(-(-n_rows // FEW_BLOCKS), FEW_ROWS), MOST_BLOCK, max(BLOCK_BYTES // (8 * n_answers), LEAST_BLOCK)
        )
        seconds = n_rows * (len(self.forest_) * ROUTE_SECONDS + seconds_per_row)
        n_tasks = -(-n_rows // size)

        def run(task: int, _: NDArray[np.int64]) -> None:
            work(slice(task * size, min((task + 1) * size, n_rows)))

        n_workers = count_workers(self.n_jobs, n_tasks, seconds)
        run_tasks(run, n_tasks, n_workers, label="predicting", unit="blocks", is_short=seconds < SHORT_SECONDS)

    def _need_bags(self, what: str) -> None:
        if self._draw.kind == "whole":
            raise ValueError(
                f"{what} needs bags, but with bootstrap=False every tree has seen all rows: fit with bootstrap=True, "
                "or with replace=False and max_samples below 1.0"
            )

    def _hold_counts(self, rows: NDArray[np.int64]) -> PerTree:
        """Counts of these training rows in all bags, (n_trees, len(rows)), or a function that draws those of a tree."""
        draw, n_trees = self._draw, len(self.forest_)

        def draw_counts(tree: int) -> NDArray[np.int32]:
            return draw.counts(tree)[rows]

        if n_trees * len(rows) > HELD_CELLS:
            return draw_counts
        counts = np.empty((n_trees, len(rows)), np.int32)

        def run(tree: int, _: NDArray[np.int64]) -> None:
            counts[tree] = draw_counts(tree)

        seconds = n_trees * draw.n_rows * DRAW_SECONDS
        n_workers = count_workers(self.n_jobs, n_trees, seconds)
        run_tasks(run, n_trees, n_workers, label="drawing", unit="bags", is_short=seconds < SHORT_SECONDS)
        return counts

    def _calibrate(self, what: str, train: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[Any]]:
        """Training rows that count, their out-of-bag means (n_rows, n_classes or 1) and their targets.

        Means and targets of numbers are in units of 2**_shift.
        """
        self._need_bags(what)
        if train is not None:
            X, y, _ = unpack_train(train)
            values, truth = self._training_values(X, y)
            votes, n_votes = self._route_out_of_bag(values)
        elif hasattr(self, "_oob_votes"):
            if self._oob_is_hard != (getattr(self, "voting", "soft") == "hard"):
                raise ValueError("voting has been changed since fit: fit again, or pass train=(X, y)")
            votes, n_votes, truth = self._oob_votes, self._oob_n_votes, self._y
        else:
            raise ValueError(
                f"{what} needs the out-of-bag predictions of the training rows: fit with oob_score=True, "
                "or pass train=(X, y)"
            )
        means = np.full(votes.shape, np.nan)
        np.divide(votes, n_votes[:, None], out=means, where=n_votes[:, None] > 0)
        rows = weighed_rows(self._draw)
        truth = truth[rows]
        return rows, means[rows], truth if self.forest_.n_classes else np.ldexp(truth, -self._shift)

    def _route_out_of_bag(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Sums over the trees, in their order, of what they say of rows outside their bag; and how many there are."""
        forest, draw = self.forest_, self._draw
        is_hard = getattr(self, "voting", "soft") == "hard"
        votes = np.zeros((draw.n_rows, max(forest.n_classes, 1)))
        n_votes = np.zeros(draw.n_rows, np.int64)
        _ = forest.is_leaf  # made here and not by several threads at once

        def run(t: int, _: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            rows = np.flatnonzero(draw.counts(t) == 0)
            tree = forest[t]
            return rows, say(tree, find_leaves(tree, values[rows]), is_hard=is_hard, shift=self._shift)

        def add(_: int, said: tuple[NDArray[np.int64], NDArray[np.float64]]) -> None:
            votes[said[0]] += said[1]
            n_votes[said[0]] += 1

        seconds = len(forest) * draw.n_rows * (ROUTE_SECONDS + DRAW_SECONDS)
        run_tasks(
            run,
            len(forest),
            count_workers(self.n_jobs, len(forest), seconds),
            on_done=add,
            label="predicting",
            is_short=seconds < SHORT_SECONDS,
        )
        return votes, n_votes

    def _choose_method(self, method: str, n_rows: int) -> str:
        if method != "auto":
            return method
        return "jackknife+" if n_rows <= MOST_ROWS else "oob"


class UncertainClasses(Uncertain):
    """Sets of classes that cover."""

    predict_proba: Callable[[Any], NDArray[np.float64]]

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, method: str = "auto", train: Any = None
    ) -> NDArray[np.bool_]:
        """Predict a set of classes for each row that holds the true one with a probability of `coverage`.

        By the out-of-bag class shares of the training rows, which new rows must be like (exchangeable): a class is in
        the set unless its share is lower than nearly all training rows have for their own class. A sure row has one
        class, a doubtful one several; none at all means that the row is unlike those seen. With fewer than about
        1 / (1 - coverage) training rows all classes are in.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        coverage : float
            Wanted share of rows whose class is in their set, between 0 and 1.
        method : {"auto", "jackknife+", "oob"}
            - "jackknife+": the new row is compared with each training row by the trees that have not seen the latter
              (Romano, Sesia and Candes 2020; Kim, Xu and Barber 2020). Time grows with trees * training
              rows * new rows.
            - "oob": one threshold for all new rows. Fast; with few trees it covers more than it is asked for.
            - "auto": the first up to 20,000 training rows, the second beyond.
        train : (X, y), optional
            The training data again; not needed after a fit with `oob_score`.

        Returns
        -------
        bool array (n_rows, n_classes)
            Whether each class is in, in the order of `classes_`.

        Notes
        -----
        Every training row counts once, whatever its weight; rows of weight 0 do not count. Training rows that were
        drawn by class (`stratify`) are as common here as in the table. With `pruning="oob"` the out-of-bag rows have
        had a say in the trees, and the theory does not hold.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestClassifier
        >>> X = np.arange(300)[:, None] % 30
        >>> y = np.where(X[:, 0] < 15, "low", "high")
        >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
        >>> forest.predict_set([[2], [28]]).tolist()  # columns: high, low
        [[False, True], [True, False]]
        """
        check_is_fitted(self, "forest_")
        check_coverage(coverage)
        check_option("method", method, METHODS)
        rows, oob, y = self._calibrate("predict_set", train)
        if self._choose_method(method, len(rows)) == "oob":
            return sets_oob(self.predict_proba(X), oob, y, coverage)
        values = self._values(X)
        counts = self._hold_counts(rows)
        forest = self._voting_forest()
        limits = set_limits(count_out(counts, len(forest)), 1.0 - oob[np.arange(len(y)), y], float(coverage))
        is_in = np.empty((len(values), forest.n_classes), np.bool_)

        def work(new: slice) -> None:
            said = ask_trees(forest, values[new])
            is_in[new], is_open = settle_sets(said, limits)
            said = said[:, is_open][:, :, None]  # each of them as if it were a new row
            is_in[new][is_open] = sets_after_bootstrap(said, counts, oob, y, coverage)[:, 0]

        self._for_blocks(work, len(values), len(rows) * (len(forest) * PRODUCT_SECONDS + RANK_SECONDS))
        return is_in


class UncertainNumbers(Uncertain):
    """Quantiles of the target, and intervals that cover it."""

    predict: Callable[[Any], NDArray[np.float64]]
    _members: list[NDArray[np.int32]]
    _weight: NDArray[np.float64] | None
    _honest_fraction: float | None

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, method: str = "auto", train: Any = None
    ) -> NDArray[np.float64]:
        """Predict an interval for each row that holds its target with a probability of `coverage`.

        By the out-of-bag errors of the training rows, which new rows must be like (exchangeable).

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        coverage : float
            Wanted share of rows whose target lies in their interval, between 0 and 1.
        method : {"auto", "jackknife+", "oob"}
            - "jackknife+": every training row moves its own error to where the trees that have not seen it put
              the new row (Kim, Xu and Barber 2020). Time grows with trees * training rows * new rows.
            - "oob": the prediction plus and minus one error, the same for all new rows (Johansson et al. 2014). Fast;
              with few trees it covers more than it is asked for.
            - "auto": the first up to 20,000 training rows, the second beyond.
        train : (X, y), optional
            The training data again; not needed after a fit with `oob_score`.

        Returns
        -------
        float64 array (n_rows, 2)
            Low and high end; infinite with fewer than about 1 / (1 - coverage) training rows.

        Notes
        -----
        Intervals are about as wide everywhere: for a width that follows the data see `predict_quantiles`, which
        promises no coverage. Every training row counts once, whatever its weight; rows of weight 0 do not count. With
        `pruning="oob"` the out-of-bag rows have had a say in the trees, and the theory does not hold; on Friedman's
        first function 90 % were covered all the same.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 300)[:, None]
        >>> y = X[:, 0] + np.tile([-0.1, 0.0, 0.1], 100)
        >>> forest = RandomForestRegressor(n_estimators=100, oob_score=True, random_state=0).fit(X, y)
        >>> low, high = forest.predict_interval([[0.5]], coverage=0.9)[0]
        >>> bool(low < 0.45 and high > 0.55)
        True
        """
        check_is_fitted(self, "forest_")
        check_coverage(coverage)
        check_option("method", method, METHODS)
        rows, oob, y = self._calibrate("predict_interval", train)
        if self._choose_method(method, len(rows)) == "oob":
            interval = interval_oob(np.ldexp(self.predict(X), -self._shift), y - oob[:, 0], coverage)
            return raise_values(interval, self._shift)
        values = self._values(X)
        counts = self._hold_counts(rows)
        forest = self._voting_forest()
        interval = np.empty((len(values), 2))

        def work(new: slice) -> None:
            interval[new] = interval_after_bootstrap(ask_trees(forest, values[new]), counts, oob[:, 0], y, coverage)

        self._for_blocks(work, len(values), len(rows) * (len(forest) * PRODUCT_SECONDS + RANK_SECONDS))
        return raise_values(interval, self._shift)

    def predict_quantiles(
        self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), *, train: Any = None
    ) -> NDArray[np.float64]:
        """Predict quantiles of the target of each row (Meinshausen 2006).

        A training row weighs, in each tree, its share of the new row's leaf, in the mean over the trees; the mean of
        the targets by these weights is the prediction. A quantile is the smallest target that at least this share of
        the weight does not exceed: always one that was seen.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        quantiles : float or array-like
            One or several levels between 0 and 1, in any order.
        train : (X, y) or (X, y, sample_weight), optional
            The training data again, with the weights that fit has seen; not needed after a fit with `keep_members`.
            Takes memory for leaf and bag of each row in each tree, 8 bytes, during the call.

        Returns
        -------
        float64 array (n_rows, n_quantiles)
            Or (n_rows,) for a single level.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.repeat([0, 100], 50)[:, None]
        >>> y = X[:, 0] + np.tile([1, 2, 3, 4, 5], 20)
        >>> forest = RandomForestRegressor(n_estimators=100, keep_members=True, random_state=0).fit(X, y)
        >>> forest.predict_quantiles([[0], [100]], [0.0, 0.5]).tolist()
        [[1.0, 3.0], [101.0, 103.0]]
        """
        check_is_fitted(self, "forest_")
        levels = check_levels(quantiles)
        leaves, y, weight = self._recall_leaves(train)
        members, weight = self._list_members(leaves, weight)
        values = self._values(X)
        forest = self.forest_
        found = np.empty((len(values), levels.size))

        def work(rows: slice) -> None:
            found[rows] = forest_quantiles(find_all_leaves(forest, values[rows]).T, members, y, levels, weight)

        self._for_blocks(work, len(values), len(members.ids) / np.count_nonzero(forest.is_leaf) * MEMBER_SECONDS)
        return found if levels.ndim else found[:, 0]

    def _recall_leaves(self, train: Any) -> tuple[PerTree, NDArray[np.float64], NDArray[np.float64] | None]:
        """Leaf of each training row in each tree, targets, and weights as far as they are known."""
        forest, n_rows = self.forest_, self._draw.n_rows
        if train is not None:
            X, y, sample_weight = unpack_train(train)
            values, truth = self._training_values(X, y)
            leaf = np.empty((len(forest), n_rows), np.int32)

            def work(rows: slice) -> None:
                leaf[:, rows] = find_all_leaves(forest, values[rows]).T

            self._for_blocks(work, n_rows)
            return leaf, truth, check_weights(sample_weight, n_rows)
        if not hasattr(self, "_members"):
            raise ValueError(
                "predict_quantiles needs the training rows of every leaf: fit with keep_members=True, "
                "or pass train=(X, y)"
            )

        def recall(tree: int) -> NDArray[np.int32]:
            return leaves_of_members(forest[tree], self._members[tree], n_rows)

        return recall, self._y, self._weight

    def _list_members(
        self, leaves: PerTree, weight: NDArray[np.float64] | None
    ) -> tuple[Members, NDArray[np.float64] | None]:
        """Members of all leaves, and the weights of rows that the trees have seen, if any.

        What the roots hold tells whether weights are those of the fit.
        """
        forest, draw = self.forest_, self._draw
        roots = forest.first_node[:-1]
        drawn, weighed = np.zeros(len(forest)), np.zeros(len(forest))

        def count(tree: int) -> NDArray[np.int32]:
            counts = draw.counts(tree)
            if self._honest_fraction is not None:
                part = split_bag(counts, tree, self._seed, self._honest_fraction, draw.groups)[1]
                counts = part if part.any() else counts  # a bag of one row cannot be parted
            drawn[tree] = counts.sum()
            weighed[tree] = np.nan if weight is None else counts @ weight
            return counts

        members = gather_members(leaves, count, np.diff(forest.first_node))
        held = forest.weight[roots]
        if np.allclose(held, drawn, rtol=SAME_WEIGHT, atol=0.0):
            return members, None  # none, or spent on drawing the bags
        if weight is None:
            raise ValueError("the trees were grown with sample weights: pass train=(X, y, sample_weight)")
        if not np.allclose(held, weighed, rtol=SAME_WEIGHT, atol=0.0):
            raise ValueError(
                "sample_weight in train=(X, y, sample_weight) is not what fit has seen: pass the very same"
            )
        return members, weight


# --- sets ---------------------------------------------------------------------------------------------------------


class SetLimits(NamedTuple):
    """Sums of shares over all trees that settle a class, whichever trees have not seen a training row.

    Let S be the sum over the B trees and n_i the number of those without row i. Their mean is at most S / n_i, and at
    least 1 - (B - S) / n_i. So the score of the class is above that of row i if S < (1 - score_i) * n_i, and it is not
    if B - S <= score_i * n_i. On letter (26 classes) 98 % of the classes of new rows are settled.
    """

    above: NDArray[np.float64]  # (n_rows,) ascending: (1 - score_i) * n_i
    below: NDArray[np.float64]  # (n_rows,) ascending: score_i * n_i
    rank: float  # of above rows that keep a class out, in floats: one more or less is left open


def set_limits(n_out: NDArray[np.int64], score: NDArray[np.float64], coverage: float) -> SetLimits:
    """Limits from the number of trees without each training row, and its out-of-bag score."""
    is_used = n_out > 0
    n_out, score = n_out[is_used], score[is_used]
    rank = float(np.ceil(coverage * (len(score) + 1)))
    return SetLimits(np.sort((1.0 - score) * n_out), np.sort(score * n_out), rank)


def settle_sets(said: NDArray[np.float64], limits: SetLimits) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which classes are in for sure, and which are open, from shares (n_trees, n_new, n_classes)."""
    n_trees, n_rows = len(said), len(limits.above)
    total = said.sum(axis=0)
    slack = SETTLED * n_trees
    n_above_least = n_rows - np.searchsorted(limits.above, total + slack, side="right")
    n_above_most = np.searchsorted(limits.below, n_trees - total + slack, side="left")
    is_in = n_above_most < limits.rank - 1.0
    return is_in, ~is_in & (n_above_least < limits.rank + 1.0)


def count_out(counts: PerTree, n_trees: int) -> NDArray[np.int64]:
    """Number of trees whose bag lacks each row, (n_rows,)."""
    first = counts(0) if callable(counts) else counts[0]
    n_out = np.zeros(len(first), np.int64)
    for tree in range(n_trees):
        n_out += (counts(tree) if callable(counts) else counts[tree]) == 0
    return n_out


# --- trees and bags -----------------------------------------------------------------------------------------------


def find_scale(forest: Forest) -> int:
    """Power of two that brings values near 1 whose squares would leave float64; 0 where they do not, or for classes."""
    if forest.n_classes:
        return 0
    values = np.ascontiguousarray(forest.hot[forest.is_leaf, 0]).view(np.float64)
    exponent = math.frexp(float(np.max(np.abs(values))))[1]
    return exponent if abs(exponent) > MODERATE_BITS else 0


def raise_values(values: NDArray[np.float64], shift: int) -> NDArray[np.float64]:
    """Values times 2**shift, infinite beyond float64."""
    with np.errstate(over="ignore"):
        return np.ldexp(values, shift)


def measure_variance(
    said: NDArray[np.float64], counts: PerTree, kind: str, correction: Correction
) -> NDArray[np.float64]:
    """Variance for each new row, from what each tree says, (n_trees, n_new)."""
    if kind == "trees":
        return variance_over_trees(said)
    measure = jackknife_variance if kind == "jackknife" else infinitesimal_jackknife_variance
    return measure(said, counts, correction=correction)


def weighed_rows(draw: Draw) -> NDArray[np.int64]:
    """Rows of positive weight: the others are in no bag, and count for nothing."""
    return np.arange(draw.n_rows) if draw.probability is None else np.flatnonzero(draw.probability > 0.0)


def drawn_units(draw: Draw) -> NDArray[np.int64]:
    """One row of everything that is drawn as a whole: a row, or a group."""
    rows = weighed_rows(draw)
    if draw.groups is None:
        return rows
    return rows[np.unique(draw.groups[rows], return_index=True)[1]]


def leaves_of_members(tree: Tree, ids: NDArray[np.int32], n_rows: int) -> NDArray[np.int32]:
    """Leaf of each training row (n_rows,), 0 for those that ids lacks; ids: members in the order of the leaves."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(first_members(tree)[leaves])]
    leaf = np.zeros(n_rows, np.int32)
    leaf[ids] = np.repeat(leaves, tree.n_rows[leaves])
    return leaf


# --- arguments ----------------------------------------------------------------------------------------------------


def unpack_train(train: Any) -> tuple[Any, Any, Any]:
    """X, y and sample weights or None."""
    if not isinstance(train, tuple | list) or len(train) not in {2, 3}:
        raise ValueError(f"train must be (X, y) or (X, y, sample_weight), the training data again; got {type(train)}")
    return train[0], train[1], train[2] if len(train) == 3 else None


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse what is not among the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")


def check_coverage(coverage: Any) -> None:
    """Refuse what is not a share strictly between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, Real):
        raise TypeError(f"coverage must be a number between 0 and 1, got {coverage!r}")
    if not 0.0 < float(coverage) < 1.0:
        raise ValueError(f"coverage must lie between 0 and 1, for example 0.9, got {coverage!r}")


def check_levels(quantiles: Any) -> NDArray[np.float64]:
    """Levels of quantiles, one or a list."""
    try:
        levels = np.asarray(quantiles, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"quantiles must be numbers between 0 and 1, got {quantiles!r}") from None
    if levels.ndim > 1 or levels.size == 0 or not bool(np.all((levels >= 0.0) & (levels <= 1.0))):
        raise ValueError(f"quantiles must be a number or a list of numbers between 0 and 1, got {quantiles!r}")
    return levels
