"""How sure a forest is: variances of its predictions, quantiles, intervals and sets of classes that cover.

Everything here works on arrays. Words: `predictions` (n_trees, n_new) holds what each tree says of each new row;
`counts` says how often each training row is in the bag of each tree, as an array (n_trees, n_rows) or as a function
of the tree that returns (n_rows,), so that bags which are recomputed need not be kept; a training row is
*out-of-bag* for the trees whose count of it is 0.

    counts, predictions ──► variance_over_trees, jackknife_variance, infinitesimal_jackknife_variance
    leaves of all rows  ──► gather_members ──► forest_quantiles, forest_weights
    out-of-bag results  ──► interval_after_bootstrap, sets_after_bootstrap   (products of n_trees * n_rows * n_new)
                            interval_oob, sets_oob                           (one threshold for all new rows)

Sums over trees are matrix products of whole numbers: predictions are first rounded to multiples of a power of two
so small that the result keeps some forty bits, and so large that no partial sum exceeds 2**53. They are then exact,
whatever the number of threads of the product. Sums over training rows go along blocks of fixed size. A new row's
answer does not depend on the rows it is asked with.

Groups that were drawn whole: the out-of-bag rows respect them already, and intervals, sets and quantiles need nothing
else. The two jackknives leave out what was drawn as one: give them one column of counts per group (that of any of its
rows), else the variance comes out too large by about the size of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._jit import kernels
from spinney.kernels.common.structs import Members, PlaceScratch

PerTree = NDArray[Any] | Callable[[int], NDArray[Any]]  # (n_trees, n_rows), or (n_rows,) of a tree
Correction = Literal["counts", "bootstrap", "none"]
Matrix = NDArray[np.float64]

NEW_BLOCK = 1024  # new rows and ...
ROW_BLOCK = 2048  # ... training rows of one matrix product: 16 MB
HELD_BYTES = 2**28  # of counts kept between products; beyond, they are asked for again
WIDE_BYTES = 2**25  # of a block (new rows, all training rows)
EXACT_BITS = 52  # partial sums stay below 2**53, where float64 holds every whole number
LARGEST_DENOMINATOR = 10**6  # a coverage of 0.9 means nine tenths, not the float next to it
TIE = 1e-9  # scores this close count as equal: the same share may be summed in two orders
MEMBER_SECONDS = 1e-6  # of one member of a leaf, interpreted


# --- Bags -----------------------------------------------------------------------------------------------------------


class _Bags:
    """Counts of all trees, given out in blocks of ROW_BLOCK training rows."""

    def __init__(self, counts: PerTree, n_trees: int) -> None:
        self._counts = counts
        self.n_trees = n_trees
        shape = np.shape(counts(0) if callable(counts) else counts[0])
        if len(shape) != 1 or (not callable(counts) and len(counts) != n_trees):
            given = shape if callable(counts) else np.shape(counts)
            raise ValueError(f"counts has shape {given}; expected one row of counts for each of the {n_trees} trees.")
        self.n_rows = shape[0]
        self._span = max(HELD_BYTES // n_trees // ROW_BLOCK, 1) * ROW_BLOCK
        self._held: NDArray[Any] | None = None

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Training rows and their counts (n_trees, rows of the block), block by block."""
        for start in range(0, self.n_rows, self._span):
            stop = min(start + self._span, self.n_rows)
            held = self._hold(start, stop)
            for lo in range(start, stop, ROW_BLOCK):
                hi = min(lo + ROW_BLOCK, stop)
                yield slice(lo, hi), held[:, lo - start : hi - start]

    def left_out(self) -> Iterator[tuple[slice, Matrix, NDArray[np.int64]]]:
        """Training rows, whether each is out of each bag (1.0 or 0.0), and for how many trees it is."""
        for rows, counts in self.blocks():
            is_out = counts == 0
            yield rows, is_out.astype(np.float64), is_out.sum(axis=0)

    def _hold(self, start: int, stop: int) -> NDArray[Any]:
        if not callable(self._counts):
            return self._counts[:, start:stop]
        if self._held is not None:
            return self._held
        held: NDArray[Any] = np.empty((self.n_trees, stop - start), np.uint8)
        for tree in range(self.n_trees):
            bag = self._counts(tree)[start:stop]
            if held.dtype == np.uint8 and bag.max(initial=0) > 255:
                held = held.astype(np.int32)
            held[tree] = bag
        if stop - start == self.n_rows:
            self._held = held
        return held


class _Whole(NamedTuple):
    """Numbers (n_new, n_trees) as whole multiples of 2**-shift, so that their sums are exact."""

    values: Matrix
    shift: NDArray[np.int64]  # (n_new,)


def _whole(x: Matrix, largest: int) -> _Whole:
    """Round x so that sums along its rows are exact with factors up to `largest`."""
    total = np.abs(x).sum(axis=1) * float(largest)
    shift = EXACT_BITS - np.frexp(total)[1].astype(np.int64)
    return _Whole(np.rint(np.ldexp(x, shift[:, np.newaxis])), shift)


def _checked(predictions: NDArray[Any], n_dimensions: int = 2) -> NDArray[np.float64]:
    predictions = np.asarray(predictions, np.float64)
    if predictions.ndim != n_dimensions or len(predictions) == 0:
        shape = "(n_trees, n_new)" if n_dimensions == 2 else "(n_trees, n_new, n_classes)"
        raise ValueError(f"predictions has shape {predictions.shape}; expected {shape} with at least one tree.")
    return predictions


def _new_blocks(n_new: int, size: int) -> Iterator[slice]:
    for start in range(0, n_new, size):
        yield slice(start, min(start + size, n_new))


def _by_row(predictions: Matrix) -> Matrix:
    """A copy with a row for each new row: sums along it do not depend on its neighbours."""
    return np.array(predictions.T, order="C")


def _centred(predictions: Matrix) -> tuple[Matrix, Matrix]:
    """Mean over trees (n_new,) and deviations from it (n_new, n_trees)."""
    by_row = _by_row(predictions)
    mean = by_row.mean(axis=1)
    by_row -= mean[:, np.newaxis]
    rest = by_row.mean(axis=1)  # the rounding of a mean far from 0 may be large beside the deviations
    by_row -= rest[:, np.newaxis]
    return mean + rest, by_row


# --- Variances ------------------------------------------------------------------------------------------------------


def variance_over_trees(predictions: NDArray[Any]) -> Matrix:
    """Mean squared deviation of the trees from their mean, for each new row (n_new,).

    It says how much the trees disagree, not how far the forest is from the truth, and does not shrink with more trees.
    """
    predictions = _checked(predictions)
    variance = np.empty(predictions.shape[1])
    for new in _new_blocks(len(variance), NEW_BLOCK):
        _, deviation = _centred(predictions[:, new])
        variance[new] = np.square(deviation).mean(axis=1)
    return variance


def jackknife_variance(predictions: NDArray[Any], counts: PerTree, *, correction: Correction = "counts") -> Matrix:
    """Sampling variance of the mean over trees by the jackknife after bootstrap, for each new row (n_new,).

    (n - 1) / n * sum over rows i of (t_-i - t)**2, where t is the mean over all trees and t_-i that over the trees
    without row i (Efron 1992; Wager, Hastie and Efron 2014). Rows that are in every bag are left out of n.

    A finite number of trees B adds noise that inflates it by sum_i (1 / B_i - 1 / B) * s2, with B_i trees without
    row i and s2 the variance over trees. `correction` says what is subtracted: "counts" that sum, right for bags of any
    kind; "bootstrap" its value for bootstraps as large as the table, (e - 1) * n / B * s2 (eq. 8, and what ranger
    does for all bags); "none" nothing. What falls below 0 then is 0, as in ranger: the noise of too few trees hides
    the variance; grow more, some multiple of n.
    """
    predictions = _checked(predictions)
    bags = _Bags(counts, len(predictions))
    variance = np.empty(predictions.shape[1])
    for new in _new_blocks(len(variance), NEW_BLOCK):
        variance[new] = _jackknife_block(_centred(predictions[:, new])[1], bags, _known(correction))
    return variance


def _jackknife_block(deviation: Matrix, bags: _Bags, correction: Correction) -> Matrix:
    n_trees = bags.n_trees
    whole = _whole(deviation, 1)
    squares = np.zeros(len(deviation))
    n_used = 0
    noise = 0.0
    for _, is_out, n_out in bags.left_out():
        is_used = n_out > 0
        moved = whole.values @ is_out  # exact; 0 for rows in every bag
        moved /= np.maximum(n_out, 1)
        squares += np.square(moved, out=moved).sum(axis=1)
        n_used += int(is_used.sum())
        noise += float((1.0 / n_out[is_used] - 1.0 / n_trees).sum())
    if n_used == 0:
        raise ValueError(
            "Every training row is in every bag, so no tree can do without it. Use bags that leave rows out "
            "(bootstrap=True, or max_samples below 1.0), or more trees."
        )
    variance = np.ldexp(squares, -2 * whole.shift) * ((n_used - 1) / n_used)
    if correction == "bootstrap":
        noise = (math.e - 1.0) * n_used / n_trees
    return _corrected(variance, deviation, noise, correction)


def infinitesimal_jackknife_variance(
    predictions: NDArray[Any], counts: PerTree, *, correction: Correction = "counts"
) -> Matrix:
    """Sampling variance of the mean over trees by the infinitesimal jackknife, for each new row (n_new,).

    Sum over rows i of Cov(N_i, t)**2, the covariance over trees of the row's count and the prediction (Efron 2014;
    Wager, Hastie and Efron 2014). It holds for bootstraps of any size and Poisson bags. Where no row is in a bag
    twice, bags count as drawn without replacement, and the sum is multiplied by (1 - s / n)**-2 for bags of
    s rows out of n (Wager and Athey 2018).

    A finite number of trees B inflates it by sum_i Var(N_i) * s2 / B, with s2 the variance over trees.
    `correction` says what is subtracted: "counts" that sum, with the variances of the counts as given, as ranger,
    forestci and randomForestCI have it; "bootstrap" its value for bootstraps as large as the table, n * s2 / B (eq. 7);
    "none" nothing. What falls below 0 then is 0: the noise of too few trees hides the variance; grow more, some
    multiple of n. (Those packages return negative values, or smooth all new rows together by empirical Bayes, so that
    a row's answer depends on the others.)
    """
    predictions = _checked(predictions)
    bags = _Bags(counts, len(predictions))
    variance = np.empty(predictions.shape[1])
    for new in _new_blocks(len(variance), NEW_BLOCK):
        variance[new] = _infinitesimal_block(_centred(predictions[:, new])[1], bags, _known(correction))
    return variance


def _infinitesimal_block(deviation: Matrix, bags: _Bags, correction: Correction) -> Matrix:
    n_trees, n_rows = bags.n_trees, bags.n_rows
    variance = np.zeros(len(deviation))
    spread = 0.0  # sum over rows of the variance of the count
    n_drawn = 0
    largest = 0
    for _, block in bags.blocks():
        times = block.astype(np.float64)
        most = int(block.max())
        sums = times.sum(axis=0)
        whole = _whole(deviation, max(most, 1))
        covariance = whole.values @ times  # exact
        covariance -= whole.values.sum(axis=1, keepdims=True) / n_trees * sums  # what rounding left of their mean
        covariance /= n_trees
        variance += np.ldexp(np.square(covariance, out=covariance).sum(axis=1), -2 * whole.shift)
        spread += float((np.square(times).sum(axis=0) / n_trees - np.square(sums / n_trees)).sum())
        n_drawn += int(sums.sum())
        largest = max(largest, most)
    if spread <= 0.0:
        raise ValueError(
            "All bags are alike, so counts and predictions cannot vary together. Use bags that differ "
            "(bootstrap=True, or max_samples below 1.0), and more than one tree."
        )
    noise = (float(n_rows) if correction == "bootstrap" else spread) / n_trees
    variance = _corrected(variance, deviation, noise, correction)
    if largest == 1:
        variance /= np.square(1.0 - n_drawn / n_trees / n_rows)
    return variance


def _corrected(variance: Matrix, deviation: Matrix, noise: float, correction: Correction) -> Matrix:
    if correction == "none":
        return variance
    return np.maximum(variance - noise * np.square(deviation).mean(axis=1), 0.0)


def _known(correction: Correction) -> Correction:
    if correction not in {"counts", "bootstrap", "none"}:
        raise ValueError(f"correction={correction!r} is unknown; use 'counts', 'bootstrap' or 'none'.")
    return correction


# --- Quantiles ------------------------------------------------------------------------------------------------------


def gather_members(leaves: PerTree, counts: PerTree, n_nodes: Sequence[int] | NDArray[Any]) -> Members:
    """Members of all leaves, from the leaf of each training row in each tree and its count in the tree's bag.

    leaves and counts: arrays (n_trees, n_rows), or functions of the tree that return (n_rows,); n_nodes: nodes of each
    tree. For honest trees give the counts of the part that the leaf values come from. Takes four bytes for each
    row drawn and no copy of the targets.
    """
    ids, firsts, start = [], [], 0
    for tree, n in enumerate(n_nodes):
        leaf = _row(leaves, tree, "leaves", int(n))
        count = _row(counts, tree, "counts", None)
        if len(count) != len(leaf):
            raise ValueError(f"Tree {tree} has {len(leaf)} leaves of rows but {len(count)} counts; pass one of each.")
        first = np.zeros(int(n) + 1, np.int64)
        rows = np.empty(int(count.sum()), np.int32)
        kernels((len(leaf) + len(rows)) * MEMBER_SECONDS).predict.quantiles.list_members(leaf, count, first, rows)
        ids.append(rows)
        firsts.append(first + start)
        start += len(rows)
    if not ids:
        raise ValueError("n_nodes is empty; a forest has at least one tree.")
    offset = np.concatenate([[0], np.cumsum([len(first) for first in firsts])])
    return Members(np.concatenate(ids), np.concatenate(firsts), offset.astype(np.int64))


def _row(table: PerTree, tree: int, name: str, limit: int | None) -> NDArray[np.int32]:
    """Whole numbers of one tree, as a kernel takes them: they are places in memory, so they are checked."""
    row = table(tree) if callable(table) else table[tree]
    row = np.ascontiguousarray(row, np.int32)
    if not row.flags.writeable:
        row = row.copy()
    if row.ndim != 1 or row.min(initial=0) < 0 or (limit is not None and row.max(initial=0) >= limit):
        below = "" if limit is None else f" below the number of nodes, {limit}"
        raise ValueError(f"{name} of tree {tree} must be a list of whole numbers from 0 up{below}.")
    return row


def forest_quantiles(
    leaves: NDArray[Any], members: Members, y: ArrayLike, quantiles: ArrayLike, weight: ArrayLike | None = None
) -> Matrix:
    """Quantiles of the target at new rows by the forest's own weights (Meinshausen 2006), (n_new, n_quantiles).

    A training row weighs, in each tree, its share of the bag that is in the new row's leaf, on average over trees
    (see `forest_weights`). The q-quantile is the smallest target with a cumulative weight of q or more: always a target
    that was seen, without interpolation.

    Parameters
    ----------
    leaves : (n_trees, n_new) leaf of each new row in each tree.
    members : of the same trees, from `gather_members`.
    y : (n_rows,) targets of the training rows.
    quantiles : one or several levels in 0 .. 1, in any order.
    weight : (n_rows,) weights that multiply the counts; None: 1 each.

    New rows are independent: to use several threads, call this for parts of `leaves`.
    """
    y = np.asarray(y, np.float64)
    levels = np.atleast_1d(np.asarray(quantiles, np.float64))
    if levels.ndim != 1 or not bool(np.all((levels >= 0.0) & (levels <= 1.0))):
        raise ValueError(f"quantiles={quantiles!r}: every level must lie in 0 .. 1.")
    leaf = _checked_leaves(leaves, members)
    n_rows = _checked_rows(members, y)
    order = np.argsort(y, kind="stable")
    place = np.empty(n_rows, np.int32)
    place[order] = np.arange(n_rows, dtype=np.int32)
    by_level = np.argsort(levels, kind="stable")
    ascending = np.empty((leaf.shape[1], len(levels)))
    k = kernels(_member_seconds(leaf, members))
    k.predict.quantiles.quantiles(
        leaf,
        members,
        _row_weights(weight, n_rows),
        place,
        y[order],
        levels[by_level],
        _make_scratch(n_rows, k),
        ascending,
    )
    found = np.empty_like(ascending)
    found[:, by_level] = ascending
    return found


def forest_weights(leaves: NDArray[Any], members: Members, n_rows: int, weight: ArrayLike | None = None) -> Matrix:
    """Weight of each training row at each new row, (n_new, n_rows), for small tables: it is dense.

    w_i = mean over trees of count_i * weight_i / (their sum over the leaf), over rows i in the new row's leaf. Trees
    without members in that leaf are left out. Rows add up to 1; the mean of the targets by these weights is what
    a regression forest predicts.
    """
    leaf = _checked_leaves(leaves, members)
    _checked_rows(members, np.empty(n_rows))
    found = np.zeros((leaf.shape[1], n_rows))
    place = np.arange(n_rows, dtype=np.int32)
    k = kernels(_member_seconds(leaf, members))
    k.predict.quantiles.weights(leaf, members, _row_weights(weight, n_rows), place, _make_scratch(n_rows, k), found)
    return found


def _checked_leaves(leaves: NDArray[Any], members: Members) -> NDArray[np.int32]:
    leaf = np.array(leaves, np.int32, order="C", ndmin=2)  # a copy: a kernel is compiled per type, read-only is another
    n_nodes = np.diff(members.offset) - 1
    if leaf.shape[0] != len(n_nodes):
        raise ValueError(f"leaves has shape {leaf.shape}; expected (n_trees, n_new) with {len(n_nodes)} trees.")
    if leaf.size and (leaf.min() < 0 or bool(np.any(leaf.max(axis=1) >= n_nodes))):
        raise ValueError("leaves names a node that its tree does not have; pass leaves of the trees in members.")
    return leaf


def _checked_rows(members: Members, y: Matrix) -> int:
    if y.ndim != 1 or len(y) <= members.ids.max(initial=-1):
        raise ValueError(f"y has shape {y.shape}; expected one target for each training row that members were made of.")
    return len(y)


def _row_weights(weight: ArrayLike | None, n_rows: int) -> Matrix:
    if weight is None:
        return np.empty(0)
    found = np.array(weight, np.float64)
    if found.shape != (n_rows,) or not bool(np.all(found >= 0.0)):
        raise ValueError(f"weight must hold a number from 0 up for each of the {n_rows} training rows.")
    return found


def _make_scratch(n_rows: int, k: Any) -> PlaceScratch:
    n_digits = k.predict.quantiles.N_DIGITS
    return PlaceScratch(np.zeros(n_rows), np.empty((2, n_rows), np.int32), np.empty(n_digits, np.int64))


def _member_seconds(leaf: NDArray[np.int32], members: Members) -> float:
    n_leaves = max(int(np.count_nonzero(np.diff(members.first) > 0)), 1)
    return leaf.size * (1.0 + len(members.ids) / n_leaves) * MEMBER_SECONDS


# --- Intervals and sets that cover -----------------------------------------------------------------------------------


def interval_after_bootstrap(
    predictions: NDArray[Any], counts: PerTree, oob_prediction: NDArray[Any], y: NDArray[Any], coverage: float
) -> Matrix:
    """Prediction intervals by the jackknife+ after bootstrap (Kim, Xu and Barber 2020), (n_new, 2): low, high.

    For a training row i let m_i be the mean of the trees without it at the new row, R_i = |y_i - oob_prediction_i|.
    With n rows and k = ceil(coverage * (n + 1)), low is the (n + 1 - k)-th smallest m_i - R_i and high the k-th
    smallest m_i + R_i; infinite where n is too small for the coverage. Rows in every bag are left out.
    If new rows are like the old ones (exchangeable), the theory promises 2 * coverage - 1; practice gives `coverage`.
    """
    predictions = _checked(predictions)
    bags = _Bags(counts, len(predictions))
    n_new, n_rows = predictions.shape[1], bags.n_rows
    residual, wanted = _residuals(oob_prediction, y, n_rows), _share(coverage)
    interval = np.empty((n_new, 2))
    for new in _new_blocks(n_new, min(max(WIDE_BYTES // (8 * n_rows), 1), NEW_BLOCK)):
        mean, deviation = _centred(predictions[:, new])
        whole = _whole(deviation, 1)
        without = np.empty((len(mean), n_rows))
        n_out = np.empty(n_rows, np.int64)
        for rows, is_out, n in bags.left_out():
            np.divide(whole.values @ is_out, np.maximum(n, 1), out=without[:, rows])
            n_out[rows] = n
        np.ldexp(without, -whole.shift[:, np.newaxis], out=without)
        without += mean[:, np.newaxis]
        is_used = n_out > 0
        if not is_used.all():
            without = without[:, is_used]
        radius = _known_residuals(residual, is_used)
        rank = _rank(wanted, len(radius))
        interval[new, 0] = _order_statistic(without - radius, len(radius) + 1 - rank)
        without += radius
        interval[new, 1] = _order_statistic(without, rank)
    return interval


def interval_oob(prediction: NDArray[Any], residuals: NDArray[Any], coverage: float) -> Matrix:
    """Intervals of one width around predictions (n_new,) by out-of-bag residuals (Johansson et al. 2014), (n_new, 2).

    Half the width is the k-th smallest |residual| of the n that are not NaN (rows that were never out-of-bag), with
    k = ceil(coverage * (n + 1)); infinite where n is too small for the coverage. For tables too large for
    `interval_after_bootstrap`.
    """
    prediction = np.asarray(prediction, np.float64)
    radius = np.abs(np.asarray(residuals, np.float64))
    radius = radius[~np.isnan(radius)]
    half = _order_statistic(radius[np.newaxis], _rank(_share(coverage), len(radius)))[0]
    return np.column_stack([prediction - half, prediction + half])


def sets_after_bootstrap(
    probabilities: NDArray[Any], counts: PerTree, oob_probability: NDArray[Any], y: NDArray[Any], coverage: float
) -> NDArray[np.bool_]:
    """Sets of classes that cover, by the jackknife+ after bootstrap: whether each class is in, (n_new, n_classes).

    The score of a class is 1 minus its probability. A class is in the set of a new row unless its score by the trees
    without row i exceeds the out-of-bag score of y_i for k or more of the n training rows, k = ceil(coverage * (n + 1))
    (Romano, Sesia and Candes 2020, with the bags of Kim, Xu and Barber 2020). Rows in every bag are left out. A set may
    be empty: the row is unlike those seen.

    Parameters
    ----------
    probabilities : (n_trees, n_new, n_classes) class shares by each tree.
    counts : of the bags.
    oob_probability : (n_rows, n_classes) mean shares over the trees without the row; NaN for rows in every bag.
    y : (n_rows,) class codes.
    coverage : wanted share of rows whose class is in their set.
    """
    probabilities = _checked(probabilities, 3)
    n_trees, n_new, n_classes = probabilities.shape
    bags = _Bags(counts, n_trees)
    score, wanted = _scores(oob_probability, y, bags.n_rows), _share(coverage)
    is_in = np.empty((n_new, n_classes), np.bool_)
    for new in _new_blocks(n_new, NEW_BLOCK):
        for c in range(n_classes):
            is_in[new, c] = _admitted(_by_row(probabilities[:, new, c]), bags, score, wanted)
    return is_in


def _admitted(probability: Matrix, bags: _Bags, score: Matrix, wanted: Fraction) -> NDArray[np.bool_]:
    """Whether a class of these probabilities (n_new, n_trees) is in the sets, (n_new,)."""
    whole = _whole(probability, 1)
    n_above = np.zeros(len(probability), np.int64)
    n_used = 0
    for rows, is_out, n_out in bags.left_out():
        is_used = n_out > 0
        share = whole.values @ is_out[:, is_used]
        share /= n_out[is_used]
        np.ldexp(share, -whole.shift[:, np.newaxis], out=share)
        known = _known_residuals(score[rows], is_used)
        n_above += (1.0 - share > known + TIE).sum(axis=1)
        n_used += len(known)
    return n_above < _rank(wanted, n_used)


def sets_oob(
    probability: NDArray[Any], oob_probability: NDArray[Any], y: NDArray[Any], coverage: float
) -> NDArray[np.bool_]:
    """Sets of classes that cover, by one threshold: whether each class is in, (n_new, n_classes).

    A class is in if 1 minus its probability (n_new, n_classes) is at most the k-th smallest out-of-bag score
    1 - oob_probability[i, y_i] of the n rows that have one, k = ceil(coverage * (n + 1)). For tables too large for
    `sets_after_bootstrap`.
    """
    probability = np.asarray(probability, np.float64)
    score = _scores(oob_probability, y, len(y))
    score = score[~np.isnan(score)]
    limit = _order_statistic(score[np.newaxis], _rank(_share(coverage), len(score)))[0]
    return 1.0 - probability <= limit + TIE


def _share(coverage: float) -> Fraction:
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, for example 0.9.")
    return Fraction(coverage).limit_denominator(LARGEST_DENOMINATOR)


def _rank(wanted: Fraction, n_rows: int) -> int:
    """Which of n_rows + 1 exchangeable values, in order, bounds the last one with a probability of `wanted`."""
    if n_rows == 0:
        raise ValueError(
            "No training row was out of any bag, so there are no out-of-bag results. Use bags that leave rows out "
            "(bootstrap=True, or max_samples below 1.0), or more trees."
        )
    return math.ceil(wanted * (n_rows + 1))


def _order_statistic(values: Matrix, rank: int) -> Matrix:
    """The rank-th smallest (from 1) of each row of values; -inf and inf beyond the ends. Reorders values."""
    n = values.shape[1]
    if not 1 <= rank <= n:
        return np.full(len(values), -math.inf if rank < 1 else math.inf)
    values.partition(rank - 1, axis=1)
    return values[:, rank - 1].copy()


def _residuals(oob_prediction: NDArray[Any], y: NDArray[Any], n_rows: int) -> Matrix:
    y, oob_prediction = np.asarray(y, np.float64), np.asarray(oob_prediction, np.float64)
    if y.shape != (n_rows,) or oob_prediction.shape != (n_rows,):
        raise ValueError(
            f"y has shape {y.shape} and oob_prediction {oob_prediction.shape}; expected ({n_rows},) as in counts."
        )
    return np.abs(y - oob_prediction)


def _scores(oob_probability: NDArray[Any], y: NDArray[Any], n_rows: int) -> Matrix:
    y, oob_probability = np.asarray(y), np.asarray(oob_probability, np.float64)
    if y.shape != (n_rows,) or oob_probability.ndim != 2 or len(oob_probability) != n_rows:
        raise ValueError(
            f"y has shape {y.shape} and oob_probability {oob_probability.shape}; expected {n_rows} rows as in counts."
        )
    return 1.0 - oob_probability[np.arange(n_rows), y]


def _known_residuals(values: Matrix, is_used: NDArray[np.bool_]) -> Matrix:
    values = values[is_used]
    if np.isnan(values).any():
        raise ValueError("An out-of-bag result is NaN for a row that some bag leaves out; pass results of these bags.")
    return values
