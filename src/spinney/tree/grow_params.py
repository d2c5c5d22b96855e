"""How to grow a tree: the parameters, and the settings in units of the sums that kernels take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA, GAIN_RATIO
from spinney._elementary import log2
from spinney._types import (
    BEST_FIRST,
    CLASSES,
    DEPTH_FIRST,
    ENTROPY,
    GINI,
    IS_CATEGORICAL,
    IS_LISTED,
    LEARNED,
    MOMENTS,
    MONOTONE,
    MOST_PACKED_CLASSES,
    N_CODES,
    NUMBER,
    SMALL_SHIFT,
    SQUARED_ERROR,
    SUM,
    SURROGATE,
)
from spinney.kernels.common.structs import Settings
from spinney.table.fixed_point import Target, Weights, scale

SUBTREE_FEATURES = 256  # of the widest table whose small subtrees are finished in one go: 128 kB of values
TABLE_WEIGHT = 1 << 22  # largest total weight with a table of k log2 k (32 MB)
LIST_ROWS = 1 << SMALL_SHIFT  # positions that a key can hold
LIST_KEYS = 1 << 24  # 64 MB of lists at most
LIST_SHARE = 6
PACKED_SHARE = 2.5  # of the features at least for each that a node tries: with more, sorted lists are faster
VALUE_BITS = 40  # a target's mean is exact to this many bits, whatever the order of the sum
SURE = 5.0  # deviations of chance by which a subset of levels must gain more in a tree that stands alone
GAIN_SLACK = 2.0**-52  # as scikit-learn: a split may miss min_impurity_decrease by one rounding


@dataclass(frozen=True)
class GrowParams:
    """How to grow; counts are rows, weights are fractions of the total weight."""

    criterion: str
    missing: int = LEARNED
    max_surrogates: int = 5  # of a node, with missing == SURROGATE
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    min_target_std: float = 0.0
    max_features: int | None = None
    has_random_ties: bool = False
    has_random_tests: bool = False
    cat_penalty: float = 0.0  # of the gain that levels have by chance, see `kernels.common.category_chance`
    cat_margin: float = SURE  # deviations of that gain by which a subset must gain more
    free_levels: int = 0  # a category of no more levels pays nothing
    has_random_feature_order: bool = False  # features are searched in random order: equal gains then go to any of them
    seed: int = 0

    @property
    def reads_packed(self) -> bool:
        """Whether a search on sums for one output reads flags as bits."""
        return self.criterion not in {"absolute_error", GAIN_RATIO} and self.missing != SURROGATE

    def reads_cells(self, n_features: int) -> bool:
        """Whether it reads cells too: random tests of few features have small subtrees, which read whole rows."""
        return not (self.has_random_tests and n_features <= SUBTREE_FEATURES)


@dataclass(frozen=True)
class ScoreUnits:
    """What one unit of a score is worth in impurity times weight share, as a mantissa and a power of two."""

    gain: float
    gain_exponent: int


def score_units(criterion: str, target: Target, weights: Weights, table_bits: int) -> ScoreUnits:
    """Worth of a score unit; see the table of scores in `kernels.common.criteria`."""
    share = 1.0 / (weights.total * target.n_outputs)  # impurities are means over the outputs, scores are sums
    if target.widths is not None:
        return ScoreUnits(share, -table_bits)
    if target.n_classes == 0:
        exponent = target.exponent + target.spread_exponent - target.bits + weights.bits
        return ScoreUnits(share, CRITERIA[criterion].power * exponent)
    if criterion == "gini":
        return ScoreUnits(share * (2.0 if target.family == MOMENTS else 1.0), 0)
    return ScoreUnits(share, -table_bits)


def entropy_table(criterion: str, weights: Weights) -> tuple[NDArray[np.int64], int]:
    """Fixed-point `k log2 k` for k up to the total weight, and its bits; (1,) where logarithms are computed instead."""
    if CRITERIA[criterion].code != ENTROPY or not weights.is_whole or weights.total > TABLE_WEIGHT:
        return np.zeros(1, SUM), 0
    k = np.arange(weights.total + 2, dtype=np.float64)  # its length, at least 3, is how kernels know a table
    k[0] = 1.0
    exact = k * log2(k)
    bits = 60 - math.frexp(float(exact[-1]) + 1.0)[1]
    return np.rint(np.ldexp(exact, bits)).astype(SUM), bits


class Traits(NamedTuple):
    """What the settings of a tree take from its features: told once a forest, by NumPy in 30 us."""

    n_features: int
    most_codes: int
    most_words: int  # 64 levels each, of the category with most of them
    has_categories: bool
    has_listed: bool
    has_monotone: bool
    n_levels: NDArray[np.int32]  # of each feature of the table, 0 for numbers
    has_cells: bool


def tell_traits(features: NDArray[np.int64], *, has_cells: bool = False) -> Traits:
    """Look at the features of a table; has_cells: some of them are sparse."""
    n_levels = count_levels(features)[np.argsort(features[NUMBER], kind="stable")]
    return Traits(
        n_features=features.shape[1],
        most_codes=int(features[N_CODES].max(initial=1)),
        most_words=(int(n_levels.max(initial=0)) + 63) // 64,
        has_categories=bool(np.any(features[IS_CATEGORICAL] != 0)),
        has_listed=bool(features[IS_LISTED].any()),
        has_monotone=bool(np.any(features[MONOTONE] != 0)),
        n_levels=n_levels,
        has_cells=has_cells,
    )


def make_settings(
    params: GrowParams,
    target: Target,
    weights: Weights,
    units: ScoreUnits,
    traits: Traits,
    n_rows: int,
    *,
    is_light: bool,
) -> Settings:
    """Settle the parameters in the units of the sums; is_light: no row weighs more than MOST_PAIR_WEIGHT."""
    criterion = CRITERIA[params.criterion].code
    if target.widths is not None or (params.criterion == "gini" and target.family == MOMENTS):
        criterion = SQUARED_ERROR
    min_gain = -math.inf
    if params.min_impurity_decrease > 0.0:
        min_gain = scale(
            (params.min_impurity_decrease - GAIN_SLACK) / units.gain,
            -units.gain_exponent,
        )
    min_weight_leaf = math.ceil(params.min_weight_fraction_leaf * weights.total)
    min_samples_leaf = params.min_samples_leaf
    if weights.is_unit:
        min_samples_leaf = max(min_samples_leaf, min_weight_leaf)
    spread_bits = target.bits - weights.bits - target.exponent - target.spread_exponent
    has_square = len(target.squares) > 1 or target.outputs is not None  # addends that are not those of one target
    n_features = traits.n_features
    n_try = n_features if params.max_features is None else params.max_features
    is_packed = bool(
        (
            PACKED_SHARE * n_try <= n_features
            or (not traits.has_listed and (target.family == CLASSES or traits.has_cells))
        )
        and criterion == (SQUARED_ERROR if target.family == MOMENTS else GINI)
        and 0 < target.n_classes <= MOST_PACKED_CLASSES
        and weights.is_whole
        and is_light
        and min_samples_leaf == 1
        and min_weight_leaf <= 1
        and params.missing != SURROGATE
        and not (params.has_random_ties or params.has_random_tests or traits.has_monotone)
    )
    return Settings(
        criterion=criterion,
        n_classes=max(target.n_classes, 2),
        missing=params.missing,
        order=DEPTH_FIRST if params.max_leaf_nodes is None else BEST_FIRST,
        max_depth=2**31 - 1 if params.max_depth is None else min(params.max_depth, 2**31 - 1),
        max_leaves=2**31 - 1 if params.max_leaf_nodes is None else min(params.max_leaf_nodes, 2**31 - 1),
        min_samples_split=min(params.min_samples_split, 2**31 - 1),
        min_samples_leaf=min(min_samples_leaf, 2**31 - 1),
        min_weight_leaf=min_weight_leaf,
        n_try=n_try,
        max_surrogates=min(params.max_surrogates, n_features) if params.missing == SURROGATE else 0,
        is_centred=criterion == SQUARED_ERROR and target.n_classes == 0 and weights.is_whole,
        is_class=target.n_classes > 0,
        is_unit=weights.is_unit and not has_square,
        is_whole=weights.is_whole,
        is_plain=bool(
            criterion == SQUARED_ERROR
            and weights.is_whole
            and (weights.is_unit or min_weight_leaf <= 1)
            and (min_samples_leaf == 1 or not params.has_random_tests)
            and (params.has_random_tests or not params.has_random_ties)
            and not (has_square or traits.has_monotone)
        ),
        is_packed=is_packed,
        is_shuffled=params.has_random_feature_order
        or (params.max_features is not None and params.max_features < n_features),
        is_random=params.has_random_tests,
        is_ratio=params.criterion == GAIN_RATIO,
        has_monotone=traits.has_monotone,
        has_random_ties=params.has_random_ties,
        min_gain=min_gain,
        min_spread=scale(params.min_target_std, spread_bits) if params.min_target_std > 0.0 else 0.0,
        value_slack=math.ldexp(1.0, target.bits - weights.bits - VALUE_BITS),
        square_unit=math.ldexp(1.0, 2 * target.bits - weights.bits - target.square_bits),
        seed=params.seed,
        most_listed=0 if is_packed or target.times is not None else most_listed(params, traits, n_rows),
        most_words=traits.most_words,
        cat_penalty=params.cat_penalty,
        cat_margin=params.cat_margin,
        free_levels=params.free_levels,
        row_weight=weights.row_weight,
        noise_unit=math.ldexp(1.0, target.bits - weights.bits),
    )


def most_listed(params: GrowParams, traits: Traits, n_rows: int) -> int:
    """Rows of the largest node that sorted lists are made for; 0 where lists are not worth it.

    Lists move every feature at every split, so they are worth it where most features are searched. Best first needs
    the lists of all its nodes at once, so one set must cover the whole table.
    """
    n_features = traits.n_features
    if params.has_random_tests:
        return 0
    if params.max_features is not None and params.max_features * LIST_SHARE < n_features:
        return 0
    if not traits.has_listed:
        return 0
    most = min(LIST_ROWS, LIST_KEYS // n_features)
    if params.max_leaf_nodes is not None and n_rows > most:
        return 0
    return min(most, n_rows)


def count_levels(features: NDArray[np.int64]) -> NDArray[np.int32]:
    """Levels of each feature, 0 for numbers."""
    return np.where(features[IS_CATEGORICAL] != 0, features[N_CODES], 0).astype(np.int32)
