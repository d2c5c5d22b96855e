"""From raw scores to answers: the link of a loss, by its name; of many rows, and of one in fewer steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import exp, exp_one

Floats = NDArray[np.float64]

CLOSE = 1e-9  # scores that differ by more have probabilities that differ
ANY = -1  # as many as there are
LINKS = {  # name: raw scores of a row (0: one for each class), classes (0: numbers)
    "identity": (1, 0),
    "quantiles": (ANY, 0),  # a raw score for each level
    "outputs": (ANY, 0),  # a raw score for each column of y
    "log": (1, 0),
    "logistic": (1, 2),
    "half_logistic": (1, 2),  # a raw score is half the log-odds
    "softmax": (0, ANY),
}


def respond(link: str, raw: Floats, exponent: int = 0) -> Floats:
    """Numbers (n_rows,), quantiles or outputs (n_rows, n_raw), or probabilities (n_rows, n_classes).

    Raw scores are (n_raw, n_rows).

    Quantiles of a row are put in order: scores of several levels, each learnt by itself, may cross, and in order they
    are nowhere farther from the true ones (Chernozhukov, Fernandez-Val and Galichon 2010).

    exponent: answers are in units of `2**exponent`, and are multiplied by it.
    """
    if link == "identity":
        answers = raw[0].copy()
    elif link == "quantiles":
        answers = np.ascontiguousarray(np.sort(raw, axis=0).T)
    elif link == "outputs":
        answers = np.ascontiguousarray(raw.T)
    elif link == "log":
        answers = exp(raw[0])
    elif link == "softmax":
        answers = softmax(raw)
    elif link == "logistic":
        answers = two_columns(raw[0])
    elif link == "half_logistic":
        answers = two_columns(2.0 * raw[0])
    else:
        raise ValueError(f"there is no link {link!r}: one of {', '.join(LINKS)}")
    return np.ldexp(answers, exponent) if exponent else answers


def respond_one(link: str, raw: Floats, exponent: int = 0) -> Any:
    """The same of one row, of raw scores (n_raw,): a number, or an array; most links without arrays on the way."""
    if link == "identity":
        return math.ldexp(float(raw[0]), exponent)
    if link == "log":
        return math.ldexp(exp_one(float(raw[0])), exponent)
    if link == "logistic":
        return two_shares(float(raw[0]))
    if link == "half_logistic":
        return two_shares(2.0 * float(raw[0]))
    return respond(link, raw[:, None], exponent)[0]


def choose_class(link: str, raw: Floats, n_classes: int) -> NDArray[np.intp]:
    """Index of the most probable class, the first among equals, from raw scores (n_raw, n_rows).

    That is the class of the highest score, but where scores are so close that their probabilities may be equal.
    """
    if n_classes == 1:  # learnt as the first of two, and certain, whatever the score
        return np.zeros(raw.shape[1], np.intp)
    if len(raw) == 1:
        chosen = (raw[0] > 0.0).astype(np.intp)
        is_close = np.abs(raw[0]) < CLOSE
    else:
        chosen = raw.argmax(axis=0)
        is_close = np.count_nonzero(raw > raw.max(axis=0) - CLOSE, axis=0) > 1
    if is_close.any():
        chosen[is_close] = respond(link, raw[:, is_close]).argmax(axis=1)
    return chosen


def two_columns(raw: Floats) -> Floats:
    """Probabilities of two classes (n_rows, 2) from the log-odds of the second; both keep their digits near 0."""
    e = exp(-np.abs(raw))
    likely = 1.0 / (1.0 + e)
    unlikely = e * likely
    is_first = raw < 0.0
    return np.stack([np.where(is_first, likely, unlikely), np.where(is_first, unlikely, likely)], axis=1)


def two_shares(raw: float) -> Floats:
    """The same of one row, (2,), in fewer steps."""
    e = exp_one(-abs(raw))
    likely = 1.0 / (1.0 + e)
    return np.array([likely, e * likely] if raw < 0.0 else [e * likely, likely])


def softmax(raw: Floats) -> Floats:
    """Probabilities (n_rows, n_classes) from scores (n_classes, n_rows)."""
    e = exp(raw - raw.max(axis=0))
    total = np.zeros(raw.shape[1])
    for scores in e:
        total += scores
    return np.ascontiguousarray((e / total).T)
