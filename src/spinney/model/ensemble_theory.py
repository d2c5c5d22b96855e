"""Why ensembles work, in numbers: independent voters, variance and error in parts, strength and correlation.

Plain functions on the predictions of the members of an ensemble, whatever grew them:

- `vote_error`: how often the majority of independent voters errs;
- `decompose_variance`: the variance of a mean of B trees, rho sigma^2 + (1 - rho) sigma^2 / B;
- `decompose_error`: squared error as bias, variance, covariance and noise;
- `strength_and_correlation`: Breiman's two numbers of a classification forest, and his bound on its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney._types import MAX_CODES

MOST_VOTERS = 10**12  # the sum takes up to 6 sqrt(n) terms, about a second here
EXACT_VOTERS = 50  # half the voters up to which a binomial coefficient is an exact integer; a series serves beyond
NO_COVARIANCE = "not defined for one training set"
NEGLIGIBLE = 2.0**-60  # share of a sum of positive falling terms that does not change it


# --- Independent voters -----------------------------------------------------------------------------------------


def vote_error(error: ArrayLike, n_voters: ArrayLike) -> Any:
    """How often the majority of independent voters is wrong, each of them with the same error.

    The upper half of a binomial distribution. A tie of an even number is decided by a coin, so that it counts one half:
    2m voters are then exactly as good as 2m - 1.

    Parameters
    ----------
    error : array-like of float
        Probability in [0, 1] that one voter is wrong.
    n_voters : array-like of int
        Number of voters, 1 to 10^12. Both arguments broadcast.

    Returns
    -------
    float, or float64 array of the common shape
        Exact to about 1e-13 of itself for up to a million voters, 1e-11 beyond, also where it is tiny.

    Examples
    --------
    >>> from spinney.model.ensemble_theory import vote_error
    >>> round(vote_error(0.35, 25), 6)
    0.060445
    >>> vote_error([0.3, 0.5, 0.7], 21).round(4).tolist()
    [0.0264, 0.5, 0.9736]
    """
    errors, counts = np.asarray(error, np.float64), np.asarray(n_voters)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"n_voters must be whole numbers, got {n_voters!r}. Convert them by int().")
    if not np.all((errors >= 0.0) & (errors <= 1.0)):
        bad = errors[~((errors >= 0.0) & (errors <= 1.0))][0]
        raise ValueError(f"error must be a probability between 0 and 1, got {bad}.")
    if not np.all((counts >= 1) & (counts <= MOST_VOTERS)):
        bad = counts[(counts < 1) | (counts > MOST_VOTERS)][0]
        raise ValueError(f"n_voters must be between 1 and {MOST_VOTERS}, got {bad}.")
    wrong = np.vectorize(majority_error, otypes=[np.float64])(errors, counts)
    return float(wrong) if wrong.ndim == 0 else wrong


def majority_error(error: float, n_voters: int) -> float:
    """The same for one pair of numbers, already checked."""
    error = float(error)
    if error > 0.5:
        return 1.0 - majority_error(1.0 - error, n_voters)
    if error in {0.0, 0.5}:
        return error
    half = (int(n_voters) - 1) // 2  # of 2 half + 1 voters, which an even number is as good as
    odds = error / (1.0 - error)
    term = total = 1.0  # in units of the first: half + 1 voters are wrong
    for i in range(1, half + 1):
        term *= (half + 1 - i) / (half + 1 + i) * odds
        total += term
        if term < total * NEGLIGIBLE:
            break
    # 4 p (1 - p) = 1 - (1 - 2p)^2, whose logarithm needs the second form near p = 1/2 and the first near 0
    log_pair = math.log(4.0 * error * (1.0 - error)) if error < 0.25 else math.log1p(-((1.0 - 2.0 * error) ** 2))
    first = math.exp(log_central_share(half) + half * log_pair) * (error * (2 * half + 1) / (half + 1))
    return first * total


def log_central_share(half: int) -> float:
    """Logarithm of C(2m, m) / 4^m for m = half: how often 2m fair coins tie.

    A difference of log-gammas would lose as many digits as n has; the series in 1/m loses none.
    """
    if half <= EXACT_VOTERS:
        return math.log(math.comb(2 * half, half) / 4**half)
    u = 1.0 / half
    return -0.5 * math.log(math.pi * half) - u / 8 + u**3 / 192 - u**5 / 640 + 17 * u**7 / 14336


# --- Variance ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class VarianceParts:
    """The variance of a mean of trees, in parts: rho sigma^2 + (1 - rho) sigma^2 / B.

    Attributes
    ----------
    sigma2 : float
        Variance of one tree, the mean over the trees.
    covariance : float
        Covariance of two different trees, the mean over the pairs: rho sigma^2, what no number of trees removes.
    n_trees : int
        B.
    over : {"rows", "repeats"}
        What varies; see `decompose_variance`.
    """

    sigma2: float
    covariance: float
    n_trees: int
    over: str

    @property
    def rho(self) -> float:
        """Correlation between trees: mean covariance over mean variance; NaN where trees do not vary."""
        return self.covariance / self.sigma2 if self.sigma2 > 0.0 else math.nan

    @property
    def ensemble_variance(self) -> float:
        """Variance of the mean of all trees."""
        return float(self.at(self.n_trees))

    def at(self, n_trees: ArrayLike) -> Any:
        """Variance of the mean of `n_trees` trees, one number or several; `math.inf` gives the limit.

        For fewer trees than there are this is the mean over every choice of them, whatever their order.
        """
        return variance_of_mean(self.sigma2, self.covariance, n_trees)

    def __repr__(self) -> str:
        return str(self)  # arrays of all trees say nothing at a prompt

    def __str__(self) -> str:
        shared = "rho sigma^2, however many trees"
        own = f"(1 - rho) sigma^2 / {self.n_trees}"
        return lines(
            f"variance over {self.over}, {self.n_trees} trees",
            ("sigma^2, one tree", self.sigma2),
            ("rho, between trees", self.rho),
            (shared, self.covariance),
            (own, self.ensemble_variance - self.covariance),
            ("mean of all trees", self.ensemble_variance),
        )


def decompose_variance(predictions: ArrayLike, y: ArrayLike | None = None) -> VarianceParts:
    """Split the variance of a mean of trees into what the trees share and what averaging removes.

    Which variance is meant depends on what is given:

    - *(n_repeats, n_trees, n_rows)*, forests fitted to several training sets and asked about the same rows: the
      variance of a prediction **over training sets** (and seeds), the mean over rows, as in the lectures. Estimates are
      unbiased (n_repeats - 1) and take the trees of one forest as interchangeable, as those of a random forest are.
    - *(n_trees, n_rows)*, the trees of one forest: one training set says nothing of other ones, so the variance is that
      of a tree's predictions **over rows** (population variance, 1 / n_rows), and rho says how alike two trees see the
      rows. Give `y` as well and it is the variance of their errors, prediction minus y: rho is then the correlation of
      errors, which is what a forest should keep low; predictions alone agree because they are right.

    The identity `ensemble_variance = rho sigma2 + (1 - rho) sigma2 / B` is exact in both: `ensemble_variance` is the
    variance of the mean prediction. For that rho is the mean covariance over the mean variance; it equals the mean of
    the pairwise correlations where all trees vary alike.

    Parameters
    ----------
    predictions : array-like of float, (n_trees, n_rows) or (n_repeats, n_trees, n_rows)
        Numbers: targets, or the probability of one class.
    y : array-like of float (n_rows,), optional
        The target. Over repeats it is the same for all and makes no difference.

    Returns
    -------
    VarianceParts

    Examples
    --------
    >>> from spinney.model.ensemble_theory import decompose_variance
    >>> parts = decompose_variance([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]])
    >>> print(parts)
    variance over rows, 2 trees
      sigma^2, one tree                       1.333
      rho, between trees                       0.75
      rho sigma^2, however many trees             1
      (1 - rho) sigma^2 / 2                  0.1667
      mean of all trees                       1.167
    >>> parts.at([1, 2, 10]).round(3).tolist()
    [1.333, 1.167, 1.033]
    """
    members = read_predictions(predictions, "tree")
    if y is not None:
        members = members - read_target(y, members.shape[-1], "y")
    if members.ndim == 3:
        return VarianceParts(*split_repeats(members), n_trees=members.shape[1], over="repeats")
    n_trees, n_rows = members.shape
    if n_rows < 2:
        raise ValueError("predictions have one row: a variance over rows needs at least two.")
    sigma2 = float(members.var(axis=1).mean())
    of_mean = float(members.mean(axis=0).var())
    return VarianceParts(sigma2, (n_trees * of_mean - sigma2) / (n_trees - 1), n_trees, "rows")


def split_repeats(members: NDArray[np.float64]) -> tuple[float, float]:
    """Variance of one member and covariance of two of the same ensemble over repeats, the means over rows.

    members is (n_repeats, n_members, n_rows). An analysis of variance with one random effect, the ensemble: its members
    scatter by `within` about its own mean, and the means of ensembles by `between`, of which `within / n_members` is
    scatter of members that has not been averaged away.
    """
    n_members = members.shape[1]
    between = float(members.mean(axis=1).var(axis=0, ddof=1).mean())
    within = float(members.var(axis=1, ddof=1).mean())
    covariance = between - within / n_members
    return covariance + within, covariance


def variance_of_mean(variance: float, covariance: float, n_members: ArrayLike) -> Any:
    """Variance of the mean of n members; one number or several."""
    n = np.asarray(n_members, np.float64)
    if not np.all(n >= 1.0):
        raise ValueError(f"The number of members must be at least 1, got {n_members!r}.")
    found = covariance + (variance - covariance) / n
    return float(found) if found.ndim == 0 else found


# --- Error ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class ErrorParts:
    """Mean squared error in parts, of one member and of the mean of n of them.

    One member: `bias2 + variance + noise + cross`. The mean of n (Ueda and Nakano 1996):
    `bias2 + variance / n + (1 - 1 / n) covariance + noise + cross`.

    Attributes
    ----------
    bias2 : float
        Squared bias, without the part of it that is due to the finite number of predictions; where the true bias is
        near zero the estimate may fall below it.
    variance : float
        Variance of one member.
    covariance : float
        Covariance of two members of one ensemble over training sets; 0 where members are taken as independent, since
        without repeats there is one training set, or none in common.
    noise : float
        Mean of (y - truth)^2; 0 where no truth is given, the noise then being part of `bias2`.
    cross : float
        -2 mean of (mean prediction - truth) (y - truth): near zero on rows that no member was trained on.
    n_members : int
        Members of one ensemble.
    rho : float
        Correlation of the errors of two members, as `decompose_variance` has it: over rows, or over training sets with
        repeats; NaN where they do not vary.
    is_repeated : bool
        Whether there were ensembles fitted to several training sets.
    """

    bias2: float
    variance: float
    covariance: float
    noise: float
    cross: float
    n_members: int
    rho: float
    is_repeated: bool

    @property
    def member_error(self) -> float:
        """Mean squared error of one member, the mean over the members."""
        return float(self.at(1))

    @property
    def ensemble_error(self) -> float:
        """Mean squared error of the mean of all members."""
        return float(self.at(self.n_members))

    def at(self, n_members: ArrayLike) -> Any:
        """Mean squared error of the mean of `n_members`, one number or several; `math.inf` gives the limit.

        For fewer members than there are this is the mean over every choice of them; for more, an unbiased forecast.
        """
        return self.bias2 + self.noise + self.cross + variance_of_mean(self.variance, self.covariance, n_members)

    def __repr__(self) -> str:
        return str(self)  # arrays of all trees say nothing at a prompt

    def __str__(self) -> str:
        n = self.n_members
        noise = [("noise", self.noise), ("noise x bias", self.cross)] if self.noise > 0.0 else []
        return lines(
            f"mean squared error, {n} members",
            ("bias^2" if noise else "bias^2, with the noise", self.bias2),
            ("variance of one member", self.variance),
            ("covariance of two members", self.covariance if self.is_repeated else NO_COVARIANCE),
            (f"rho of errors, over {'training sets' if self.is_repeated else 'rows'}", self.rho),
            *noise,
            ("one member", self.member_error),
            ("mean of all members", self.ensemble_error),
            ("mean of infinitely many", float(self.at(math.inf))),
        )


def decompose_error(predictions: ArrayLike, y: ArrayLike, truth: ArrayLike | None = None) -> ErrorParts:
    """Split the mean squared error of an ensemble and of its members into bias, variance, covariance and noise.

    What bias and variance mean depends on what is given:

    - *(n_repeats, n_members, n_rows)*, ensembles fitted to several training sets: both are over training sets, and the
      covariance is that of two members of one ensemble, which have their training set in common. `ensemble_error` is
      the mean over the repeats.
    - *(n_members, n_rows)*: the members are taken as independent draws, and the covariance is 0. Models fitted to one
      training set each give the bias and variance of the method. The trees of one forest are independent **given their
      training set**: `variance` is then what more trees can remove, and `bias2` the error of infinitely many.

    Both sums of `ErrorParts` are exact: they equal the mean squared errors computed directly.

    Parameters
    ----------
    predictions : array-like of float, (n_members, n_rows) or (n_repeats, n_members, n_rows)
    y : array-like of float (n_rows,)
        The target; rows that no member was trained on, unless the error on training rows is meant.
    truth : array-like of float (n_rows,), optional
        The target without its noise, where it is known, as for made-up data.

    Returns
    -------
    ErrorParts

    Examples
    --------
    >>> from spinney.model.ensemble_theory import decompose_error
    >>> print(decompose_error([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]], y=[1.0, 3.0, 3.0]))
    mean squared error, 2 members
      bias^2, with the noise                 0.3333
      variance of one member                 0.8333
      covariance of two members            not defined for one training set
      rho of errors, over rows                0.625
      one member                              1.167
      mean of all members                      0.75
      mean of infinitely many                0.3333
    """
    members = read_predictions(predictions, "member")
    target = read_target(y, members.shape[-1], "y")
    aim = target if truth is None else read_target(truth, members.shape[-1], "truth")
    if members.ndim == 3:
        variance, covariance = split_repeats(members)
        n_repeats, n_members, _ = members.shape
        centre = members.mean(axis=(0, 1))
        of_centre = variance_of_mean(variance, covariance, n_members) / n_repeats
        rho = covariance / variance if variance > 0.0 else math.nan
    else:
        n_members = len(members)
        variance, covariance = float(members.var(axis=0, ddof=1).mean()), 0.0
        centre = members.mean(axis=0)
        of_centre = variance / n_members
        rho = decompose_variance(members, target).rho if members.shape[1] > 1 else math.nan
    off, noise = centre - aim, target - aim
    return ErrorParts(
        bias2=float((off * off).mean()) - of_centre,  # the centre itself is off by chance
        variance=variance,
        covariance=covariance,
        noise=float((noise * noise).mean()),
        cross=-2.0 * float((off * noise).mean()) + 0.0,  # no -0.0
        n_members=n_members,
        rho=rho,
        is_repeated=members.ndim == 3,
    )


# --- Strength and correlation -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Strength:
    """How good the trees of a classification forest are and how alike (Breiman 2001, section 2 and appendix II).

    Attributes
    ----------
    strength : float
        Mean margin over the rows: share of votes for the true class minus that of the most voted wrong one.
    correlation : float
        Between the raw margins of two trees: variance of the margin over the squared mean standard deviation of a
        tree's raw margin; NaN where no tree varies.
    margin_variance : float
        Variance of the margin over the rows.
    mean_sd : float
        Standard deviation of a tree's raw margin over its rows, the mean over trees.
    error : float
        Share of rows that the vote gets wrong, the first class winning a tie.
    tree_errors : float64 array (n_trees,)
        Share of its own rows that each tree gets wrong; NaN for a tree without any.
    n_rows : int
        Rows with at least one vote.
    """

    strength: float
    correlation: float
    margin_variance: float
    mean_sd: float
    error: float
    tree_errors: NDArray[np.float64]
    n_rows: int

    @property
    def tree_error(self) -> float:
        """Error of one tree, the mean over trees."""
        return float(np.nanmean(self.tree_errors))

    @property
    def ratio(self) -> float:
        """Breiman's c/s2, correlation over squared strength: the smaller the better; inf without strength."""
        return self.correlation / self.strength**2 if self.strength > 0.0 else math.inf

    @property
    def bound(self) -> float:
        """Breiman's bound on the error, correlation (1 - s^2) / s^2: loose, may exceed 1; inf without strength."""
        if self.strength <= 0.0:
            return math.inf
        if self.margin_variance == 0.0:
            return 0.0  # also where no tree varies and the correlation is not defined
        return self.ratio * (1.0 - self.strength**2)

    def __repr__(self) -> str:
        return str(self)  # arrays of all trees say nothing at a prompt

    def __str__(self) -> str:
        return lines(
            f"votes of {len(self.tree_errors)} trees on {self.n_rows} rows",
            ("strength s", self.strength),
            ("correlation c", self.correlation),
            ("c / s^2", self.ratio),
            ("bound on the error, c (1 - s^2) / s^2", self.bound),
            ("error of the vote", self.error),
            ("error of one tree", self.tree_error),
        )


def strength_and_correlation(votes: ArrayLike, y: ArrayLike, is_oob: ArrayLike | None = None) -> Strength:
    """Strength of the trees of a classification forest and correlation between them.

    Breiman's estimates from out-of-bag votes. A tree's raw margin at a row is 1 if it votes for the true class, -1 if
    for the forest's most voted wrong one (the first among equals), else 0; with p1 and p2 the shares of the two, its
    standard deviation is sqrt(p1 + p2 - (p1 - p2)^2). The paper's appendix (A2) prints a plus for the minus, and code
    that follows it finds too small a correlation; the definition it starts from, equation (7), has the minus.

    Rows without a vote are left out. A margin of few votes varies by chance, which counts as correlation: with v votes
    a row about (1 - c) / v too much.

    Parameters
    ----------
    votes : array-like of int (n_trees, n_rows)
        Class code, from 0, that each tree gives each row.
    y : array-like of int (n_rows,)
        Code of the true class.
    is_oob : array-like of bool (n_trees, n_rows), optional
        Which votes count: those on rows that the tree has not seen. Others may be any number. All count if left out, as
        is right for rows kept out of training.

    Returns
    -------
    Strength

    Examples
    --------
    >>> from spinney.model.ensemble_theory import strength_and_correlation
    >>> votes = [[0, 0, 1, 1, 0], [0, 1, 1, 1, 1], [0, 0, 0, 1, 1]]
    >>> print(strength_and_correlation(votes, y=[0, 0, 1, 1, 1]))
    votes of 3 trees on 5 rows
      strength s                                0.6
      correlation c                          0.1667
      c / s^2                                 0.463
      bound on the error, c (1 - s^2) / s^2  0.2963
      error of the vote                           0
      error of one tree                         0.2
    """
    codes, classes, counted = read_votes(votes, y, is_oob)
    n_trees, n_rows = codes.shape
    rows = np.arange(n_rows)
    counts = count_votes(codes, counted, n_classes=top_code(codes, classes, counted) + 1)
    n_votes = counts.sum(axis=1)
    winner = counts.argmax(axis=1)
    right = counts[rows, classes]
    counts[rows, classes] = -1
    rival = counts.argmax(axis=1)
    wrong = counts[rows, rival]
    used = n_votes > 0
    margin = (right[used] - wrong[used]) / n_votes[used]

    tree_errors, sds = np.full(n_trees, np.nan), np.full(n_trees, np.nan)
    for t in range(n_trees):
        own = counted[t]
        n_own = np.count_nonzero(own)
        if n_own:
            n_right = np.count_nonzero(own & (codes[t] == classes))
            p1, p2 = n_right / n_own, np.count_nonzero(own & (codes[t] == rival)) / n_own
            tree_errors[t] = (n_own - n_right) / n_own
            sds[t] = math.sqrt(p1 + p2 - (p1 - p2) ** 2)
    variance, mean_sd = float(margin.var()), float(np.nanmean(sds))
    return Strength(
        strength=float(margin.mean()),
        correlation=variance / mean_sd**2 if mean_sd > 0.0 else math.nan,
        margin_variance=variance,
        mean_sd=mean_sd,
        error=float(np.mean(winner[used] != classes[used])),
        tree_errors=tree_errors,
        n_rows=int(np.count_nonzero(used)),
    )


def count_votes(codes: NDArray[Any], counted: NDArray[np.bool_], n_classes: int) -> NDArray[np.int64]:
    """Votes for each class, (n_rows, n_classes)."""
    counts = np.zeros((codes.shape[1], n_classes), np.int64)
    for t in range(len(codes)):  # a tree votes once a row, so that no cell is met twice
        own = np.flatnonzero(counted[t])
        counts[own, codes[t, own]] += 1
    return counts


# --- Checks and text --------------------------------------------------------------------------------------------


def read_predictions(predictions: ArrayLike, member: str) -> NDArray[np.float64]:
    """Predictions as float64, of a shape that has a variance, without missing values."""
    members = np.asarray(predictions, np.float64)
    if members.ndim not in {2, 3}:
        raise ValueError(
            f"predictions must be (n_{member}s, n_rows) or (n_repeats, n_{member}s, n_rows), got shape {members.shape}."
        )
    if members.size == 0:
        raise ValueError(f"predictions are empty: shape {members.shape}.")
    if members.shape[-2] < 2:
        fix = f"Give single models as (n_{member}s, n_rows)." if members.ndim == 3 else f"Give more {member}s."
        raise ValueError(f"predictions must be of at least two {member}s, got shape {members.shape}. {fix}")
    if members.ndim == 3 and len(members) < 2:
        raise ValueError("predictions are of one repeat: give predictions[0] alone, or more repeats.")
    bad = np.argwhere(~np.isfinite(members))
    if len(bad):
        where = ", ".join(map(str, bad[0]))
        raise ValueError(f"predictions[{where}] is {members[tuple(bad[0])]}: every {member} must predict every row.")
    return members


def read_target(y: ArrayLike, n_rows: int, name: str) -> NDArray[np.float64]:
    """A target as float64 (n_rows,), without missing values."""
    target = np.asarray(y, np.float64)
    check_length(target, n_rows, name, "predictions")
    bad = np.flatnonzero(~np.isfinite(target))
    if len(bad):
        raise ValueError(f"{name}[{bad[0]}] is {target[bad[0]]}. Drop such rows from {name} and from predictions.")
    return target


def check_length(column: NDArray[Any], n_rows: int, name: str, other: str) -> None:
    """Refuse a column that has not one value per row."""
    if column.shape != (n_rows,):
        raise ValueError(f"{name} must be ({n_rows},), one value per row of {other}, got shape {column.shape}.")


def read_votes(
    votes: ArrayLike, y: ArrayLike, is_oob: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Votes, classes and which votes count, with every counted code in range."""
    codes, classes = np.asarray(votes), np.asarray(y)
    if codes.ndim != 2 or codes.size == 0:
        raise ValueError(f"votes must be (n_trees, n_rows), got shape {codes.shape}.")
    check_length(classes, codes.shape[1], "y", "votes")
    for name, array in (("votes", codes), ("y", classes)):
        if array.dtype.kind not in "iu":
            raise TypeError(
                f"{name} must be class codes, whole numbers from 0, got {array.dtype}. "
                "np.searchsorted(classes, labels) turns labels into codes."
            )
    counted = np.ones(codes.shape, np.bool_) if is_oob is None else np.asarray(is_oob)
    if counted.dtype != np.bool_:
        raise TypeError(f"is_oob must be booleans, got {counted.dtype}. Compare the bag counts with 0.")
    if counted.shape != codes.shape:
        raise ValueError(f"is_oob must have the shape of votes, {codes.shape}, got {counted.shape}.")
    if not counted.any():
        raise ValueError("is_oob is False everywhere: no vote counts. Grow more trees, or trees on bootstrap samples.")
    for name, array, where in (("votes", codes, counted), ("y", classes, np.ones(classes.shape, np.bool_))):
        bad = np.argwhere(where & ((array < 0) | (array > MAX_CODES)))
        if len(bad):
            at = ", ".join(map(str, bad[0]))
            raise ValueError(f"{name}[{at}] is {array[tuple(bad[0])]}: class codes run from 0 to n_classes - 1.")
    return codes, classes, counted


def top_code(codes: NDArray[Any], classes: NDArray[Any], counted: NDArray[np.bool_]) -> int:
    """Highest class code, at least 1: where there is one class only, a rival without votes stands in."""
    return max(int(codes.max(where=counted, initial=0)), int(classes.max()), 1)


def lines(title: str, *parts: tuple[str, float | str]) -> str:
    """A small table: a title, then one named number, or a remark in its place, a line."""
    cells = ((name, value if isinstance(value, str) else f"{value:8.4g}") for name, value in parts)
    return "\n".join([title, *(f"  {name:<37}{cell}" for name, cell in cells)])
