"""What AdaBoost promises: bounds on the training error, and the margins behind them.

With alpha_t the weight of member t (as log-odds, without the factor 1/2) and V its votes, a row's *margin* is the share
of the votes for its class minus the largest share of another class; it is negative where the row is wrong. Rows in the
wrong have at least half of the weight against them, so their count is bounded by the exponential loss

    mean of exp(-(votes for the class - votes against it) / 2)  =  product of Z_t
    Z_t = (1 - error_t) exp(-alpha_t / 2) + error_t exp(alpha_t / 2)  =  2 sqrt(error_t (1 - error_t))   two classes

(Freund and Schapire 1997; margins: Schapire, Freund, Bartlett and Lee 1998).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._elementary import exp, log, log1p_one, log_one

if TYPE_CHECKING:
    from numpy.typing import NDArray


def find_normalisers(errors: NDArray[np.float64], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Z of each round: what the sum of the weights is divided by."""
    return (1.0 - errors) * exp(-alphas / 2.0) + errors * exp(alphas / 2.0)


def bound_rounds(errors: NDArray[np.float64], alphas: NDArray[np.float64], margin: float = 0.0) -> NDArray[np.float64]:
    """Bound, after each round, on the share of the training rows whose margin is not above `margin`."""
    with np.errstate(over="ignore"):
        factors: NDArray[np.float64] = find_normalisers(errors, alphas) * exp(margin * np.abs(alphas) / 2.0)
        return np.cumprod(factors, dtype=np.float64)


def check_errors(errors: Any) -> NDArray[np.float64]:
    """Errors of rounds as an array."""
    array = np.asarray(errors, np.float64)
    if array.ndim != 1 or not np.all((array >= 0.0) & (array < 1.0)):
        raise ValueError(f"errors must be a list of numbers from 0 to below 1, one a round; got {errors!r}")
    return array


def training_bound(errors: Any, *, n_classes: int = 2, learning_rate: float = 1.0, margin: float = 0.0) -> Any:
    """Bound on the training error of AdaBoost after each round, from the weighted errors of its members.

    It is the product of the normalisers Z, which for two classes and a learning rate of 1 are 2 sqrt(e (1 - e)). It
    holds whatever the members are. With three classes or more a member may be wrong more often than not: the bound
    still holds, but says little.

    Parameters
    ----------
    errors : array-like (n_rounds,)
        Weighted errors, each below 1; `estimator_errors_` of `AdaBoostClassifier`. After an error of 0 the bound is 0.
    n_classes : int, default=2
    learning_rate : float, default=1.0
    margin : float, default=0.0
        Bound the share of the rows whose margin is at most this instead; 0 stands for the error.

    Returns
    -------
    bound : float64 array (n_rounds,)
        After 1, 2, ... rounds; a value above 1 says nothing.

    Examples
    --------
    >>> from spinney import training_bound
    >>> training_bound([0.3, 0.21429, 0.18182]).round(4).tolist()  # example 8.1 of Li Hang
    [0.9165, 0.7521, 0.5802]
    """
    found = check_errors(errors)
    if n_classes < 2:
        raise ValueError(f"n_classes={n_classes} must be at least 2")
    some = np.maximum(found, np.finfo(np.float64).tiny)  # the vote of a perfect member would be infinite
    alphas = learning_rate * (log((1.0 - some) / some) + log_one(n_classes - 1))
    return np.where(np.logical_or.accumulate(found == 0.0), 0.0, bound_rounds(found, alphas, margin))


def rounds_to_fit(n_rows: int, edge: float) -> int:
    """Rounds of AdaBoost after which no training row is wrong, if every member is better than chance by `edge`.

    Errors of at most 1/2 - edge make the bound on the training error fall below 1 / n_rows after
    2 ln(n_rows) / ln(1 / (1 - 4 edge^2)) rounds, and an error below one row is none. For two classes, rows of equal
    weight, and a learning rate of 1.

    Parameters
    ----------
    n_rows : int
    edge : float
        Above 0, at most 1/2.

    Returns
    -------
    n_rounds : int

    Examples
    --------
    >>> from spinney import rounds_to_fit
    >>> rounds_to_fit(1000, 0.1)
    339
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows} must be at least 1")
    if not 0.0 < edge <= 0.5:
        raise ValueError(f"edge={edge} must be above 0 and at most 1/2")
    if edge == 0.5 or n_rows == 1:
        return 1
    return math.floor(2.0 * log_one(n_rows) / -log1p_one(-4.0 * edge * edge)) + 1


def vote_margins(votes: NDArray[np.float64], total: float, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Margin of each row within [-1, 1], from votes as `model.weighted_votes` sums them and the class of each row."""
    if total == 0.0:
        return np.zeros(len(codes))
    if votes.shape[1] == 1:
        return np.where(codes > 0, votes[:, 0], -votes[:, 0]) / total
    rows = np.arange(len(codes))
    others = votes.copy()
    others[rows, codes] = -np.inf
    return (votes[rows, codes] - others.max(axis=1)) / total
