"""The state that kernels pass to each other: every NamedTuple, a comment per field.

A group is what one owner makes and keeps for one time. The words of lifetimes:

  fit      made once for a table; read only, shared by threads
  tree     made or reset for each tree
  node     no meaning between two nodes: scratch

Python makes the groups (`tree/grow.py`, `tree/boost.py`, `tree/textbook.py`); kernels write into the arrays and never
into the tuples. A group that may be None as a whole selects a variant of the kernel at compile time, so that a first
fit compiles what it needs: it must reach the function that asks `is None` as an argument of its own, since Numba drops
dead branches for arguments, not for fields (docs/decisions/0001).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# --- Trees: CART, forests, extra-trees, stumps ------------------------------------------------------------------


class Settings(NamedTuple):
    """Scalars of one grow; weights and gains are in the units of the fixed-point sums."""

    criterion: int
    n_classes: int
    missing: int
    order: int
    max_depth: int
    max_leaves: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int
    n_try: int  # features drawn per node
    max_surrogates: int
    is_centred: int  # squared error of whole weights: targets are taken from the node's mean
    is_class: int  # the target is a class, also where two classes go as moments
    is_unit: int  # every weight is 1
    is_whole: int  # every weight is a whole number and their sum is below 2**31, so squares of sums fit an int64
    is_plain: int  # squared error, whole weights, no constraint, no random ties: the scan without groups serves
    is_packed: int  # two classes by squared error, small whole weights, no constraint: packed labels serve
    is_shuffled: int  # features are searched in an order drawn for each node
    is_random: int  # one random test per feature
    is_ratio: int  # tests are chosen by their gain ratio
    has_monotone: int
    has_random_ties: int
    min_gain: float  # in score units
    min_spread: float  # least standard deviation of a node that is split, in target units
    value_slack: float  # values of branches that differ by less count as equal for monotone constraints
    square_unit: float  # turns a sum of squares into squared target units
    seed: int
    most_words: int  # of one subset
    most_listed: int  # largest node that sorted lists are made for; 0: none


class Queue(NamedTuple):
    """What `common.queue` reads of a frontier; see there."""

    queue: NDArray[np.int64]
    node: NDArray[np.int64]
    gain: NDArray[np.float64]
    state: NDArray[np.int64]


# --- Boosting ---------------------------------------------------------------------------------------------------


class BoostSettings(NamedTuple):
    """Scalars of one boosted tree; sums of gradients and hessians are whole numbers of their units."""

    order: int
    max_depth: int
    max_leaves: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # in units of the row weights; 0: not asked for
    min_hessian: int  # of a branch, in units; at least 1
    most_hessian: int  # of one row, in units: a branch has at least its sum / most_hessian rows
    n_try: int  # features drawn per node
    n_shards: int
    share_rows: int  # rows of a node that is worth sharing out among threads
    batch_rows: int  # rows of a node from which on several are made ready side by side ...
    most_words: int  # of one subset
    is_plain: int  # no L1 penalty, no monotone constraint: the scan of cells serves
    has_monotone: int
    is_post: int  # tests without gain are made, and removed from below at the end
    seed: int
    gradient_unit: float
    hessian_unit: float
    reg_lambda: float
    reg_alpha: float
    gamma: float
    cat_smooth: float
    max_cat_threshold: int  # levels of a category in the branch that has fewer, where a node has many
    likely_gain: float  # ... those whose gain makes it likely that they will be split


# --- Textbook trees: ID3, C4.5 ----------------------------------------------------------------------------------


class TextbookSettings(NamedTuple):
    """Scalars of one textbook tree."""

    criterion: int
    rule: int
    n_classes: int
    spreads_missing: int  # a row with a missing value takes every branch; else missing is a value of its own
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # least weight of a branch that has any, in units of the sums; not for C4.5
    is_centred: int  # squared error of whole weights: targets are taken from the node's mean
    shift: int  # weights are whole numbers times 2 ** shift, but for the pieces of rows; 0 where they are not whole
    is_all_many: int  # every feature is a category with too many levels for the average gain
    weight_unit: float  # worth of a unit of weight
    log_scale: float  # units of f(weight) = weight log2 weight in a bit
    square_unit: float  # turns a sum of squares into squared target units
    min_weight: float  # of a branch (C4.5), in the user's weights
    many_levels: float  # a category with as many is left out of the average gain
    min_gain: float  # times the weight of the node in units
    truth_unit: float  # turns a target into units of the sums (numbers)


# --- Prediction, data -------------------------------------------------------------------------------------------
