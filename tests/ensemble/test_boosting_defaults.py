"""The rules behind "auto" in gradient boosting, and the stop by out-of-bag rows, against numbers worked out by hand."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from spinney.ensemble.boosting_defaults import AUTO, RULES, TableSize, choose_params
from spinney.ensemble.oob_stopping import OutOfBagCurve, OutOfBagStop

NAMES = (
    "learning_rate",
    "n_estimators",
    "max_leaf_nodes",
    "min_samples_leaf",
    "max_features",
    "subsample",
    "leaf_rows",
    "reg_lambda",
)
BY_HAND = [  # rows, columns, classes, trees a round: the values in the order of NAMES
    ((12, 1, 0, 1), (0.03, 100, 6, 3, 1, 0.7, "all", 1.0)),
    ((100, 3, 2, 1), (0.03, 500, 6, 3, 3, 0.7, "all", 0.5)),
    ((200, 9, 6, 6), (0.06, 1000, 7, 3, 4, 0.5, "all", 1 / 3)),
    ((1000, 20, 2, 1), (0.03, 2000, 15, 6, 5, 0.7, "all", 0.5)),
    ((3000, 36, 7, 7), (0.1, 250, 27, 20, 7, 0.5, "all", 2 / 7)),
    ((10_000, 10, 0, 3), (0.1, 120, 31, 20, 10, 0.8, "all", 1.0)),  # three quantiles
    ((19_999, 8, 0, 1), (0.03, 2000, 31, 20, 4, 0.7, "all", 1.0)),
    ((20_000, 8, 0, 1), (0.1, 120, 31, 20, 8, 0.8, "all", 1.0)),
    ((50_000, 101, 2, 1), (0.1, 250, 31, 20, 101, 0.8, "all", 1.0)),
    ((50_000, 3, 26, 26), (0.1, 250, 31, 20, 3, 0.5, "all", 1 / 13)),
]
SQUARED = [  # the same by the squared error
    ((12, 1, 0, 1), (0.03, 100, 6, 1, 1, 0.7, "all", 1.0)),
    ((1000, 20, 0, 1), (0.03, 2000, 15, 1, 10, 0.7, "all", 1.0)),
    ((5000, 7, 0, 1), (0.03, 2000, 31, 1, 4, 0.7, "all", 1.0)),
    ((19_999, 9, 0, 1), (0.03, 2000, 31, 1, 5, 0.7, "all", 1.0)),
    ((20_000, 9, 0, 1), (0.1, 150, 31, 20, 9, 1.0, "all", 1.0)),
    ((10_000, 10, 0, 3), (0.1, 150, 31, 20, 10, 1.0, "all", 1.0)),  # three outputs
]
CATEGORIES = [  # classes, trees a round, whether by the squared error: the share of 1,000 rows, and of 50,000
    ((2, 1, False), 0.85, 0.8),
    ((4, 4, False), 0.85, 0.5),
    ((0, 1, True), 0.85, 1.0),
    ((0, 1, False), 0.85, 0.8),
]


def choose(*size, **more):
    return choose_params(dict.fromkeys(RULES, AUTO), TableSize(*size, **more))


@pytest.mark.parametrize(("size", "values"), BY_HAND, ids=str)
def test_values_by_hand(size, values):
    found, expected = choose(*size), dict(zip(NAMES, values, strict=True))
    assert found.pop("leaf_rows") == expected.pop("leaf_rows")
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("size", "values"), SQUARED, ids=str)
def test_values_by_hand_of_the_squared_error(size, values):
    found, expected = choose(*size, is_squared=True), dict(zip(NAMES, values, strict=True))
    assert found.pop("leaf_rows") == expected.pop("leaf_rows")
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "small", "large"), CATEGORIES, ids=str)
def test_tables_of_categories_alone_draw_more_rows(kind, small, large):
    n_classes, n_raw, is_squared = kind
    for n_rows, share in ((1000, small), (50_000, large)):
        usual, found = (
            choose(n_rows, 6, n_classes, n_raw, is_squared=is_squared, has_numbers=has) for has in (True, False)
        )
        assert found == {**usual, "subsample": share}


def test_rounds_that_nobody_judges_draw_rows_of_large_tables():
    """Drawing by gradients, or dropping trees, was asked for: not all rows."""
    assert choose(50_000, 6, 0, 1, is_squared=True, has_value=False)["subsample"] == 0.8


def test_sizes_follow_whole_numbers():
    """Roots, quotients and shares in whole numbers, for many sizes."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n_rows, n_features = int(10 ** rng.uniform(0, 6)), int(10 ** rng.uniform(0, 3))
        found = choose(n_rows, n_features, 2, 1)
        assert found["max_leaf_nodes"] == min(max(math.isqrt(n_rows) // 2, 6), 31)
        assert found["min_samples_leaf"] == min(max(n_rows // 150, 3), 20)
        share = n_features if n_rows >= 20_000 else int(n_features**0.5 + 1e-9) + 1
        assert found["max_features"] == min(max(share, 4), n_features)
        assert found["n_estimators"] == (250 if n_rows >= 20_000 else min(max(5 * n_rows, 100), 2000))


@pytest.mark.parametrize("effort", [0.01, 0.2, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("n_rows", [90, 5000, 40_000])
def test_effort_trades_steps_against_rounds(n_rows, effort):
    usual, found = choose(n_rows, 5, 2, 1), choose(n_rows, 5, 2, 1, effort=effort)
    assert found["learning_rate"] == pytest.approx(usual["learning_rate"] / effort)
    assert found["n_estimators"] == math.ceil(Fraction(str(effort)) * usual["n_estimators"])
    others = set(NAMES) - {"learning_rate", "n_estimators"}
    assert all(found[name] == usual[name] for name in others)


def test_rounds_that_are_given_or_cannot_be_judged_take_longer_steps():
    counted = choose(1000, 5, 2, 1, is_counted=True, effort=5.0)
    assert (counted["learning_rate"], counted["reg_lambda"]) == (0.1, 1.0)
    untold = choose(1000, 5, 2, 1, has_value=False, effort=5.0)
    assert (untold["learning_rate"], untold["n_estimators"], untold["reg_lambda"]) == (0.1, 100, 1.0)


def test_a_depth_leaves_room_for_its_leaves():
    assert choose(100, 5, 2, 1, is_deep=True)["max_leaf_nodes"] == 31


def test_what_is_given_is_kept():
    given = {"learning_rate": 0.3, "n_estimators": 7, "max_leaf_nodes": None, "min_samples_leaf": 0.1,
             "max_features": "sqrt", "subsample": 1.0, "leaf_rows": "bag", "reg_lambda": 0.0}  # fmt: skip
    assert choose_params(given, TableSize(100, 5, 2, 1)) == given
    one = choose_params({**given, "subsample": AUTO}, TableSize(100, 5, 2, 1))
    assert one == {**given, "subsample": 0.7}


@pytest.mark.parametrize(
    ("improvements", "n_rounds"),
    [
        ([0.0] * 40, 20),
        ([-1.0] * 40, 20),
        ([1.0] * 15 + [-1.0] * 40, 30),
        ([1.0] * 9 + [-1.0] * 40, 20),
        ([1.0] * 12 + [-1.0] * 5 + [2.0] * 5 + [-1.0] * 40, 44),  # a second peak, above the first
        ([1.0] * 12 + [-1.0] * 5 + [0.5] * 5 + [-1.0] * 40, 24),  # a second one, below
    ],
)
def test_rounds_up_to_twice_the_peak(improvements, n_rounds):
    assert count_rounds(OutOfBagStop(), improvements, 1000.0) == n_rounds


def count_rounds(stop, improvements, loss):
    """Rounds until it is enough, from a loss before the first."""
    for improvement in improvements:
        loss -= improvement
        stop.note(improvement, loss)
        if stop.is_enough:
            return stop.n_rounds
    return None


@pytest.mark.parametrize(
    ("is_squared", "first", "n_rounds"),
    [
        (False, 30.0, 24),  # 12 of 30 have been learnt
        (False, 13.5, 24),  # 12 of 13.5: less than nine tenths
        (False, 13.0, 36),
        (True, 30.0, 36),
        (False, 0.0, 24),  # no share of nothing
        (False, -5.0, 24),
        (False, math.nan, 24),
    ],
)
def test_rounds_up_to_three_times_the_peak(is_squared, first, n_rounds):
    assert count_rounds(OutOfBagStop(is_squared=is_squared), [1.0] * 12 + [-1.0] * 40, first) == n_rounds


@pytest.mark.parametrize(
    ("learnt", "pull"), [(0.0, 1.0), (0.5, 1.0), (0.8, 1.0), (0.9, 0.25), (0.95, 0.0625), (1.0, 0.0), (-0.5, 1.0)]
)
def test_lambda_is_multiplied_by_the_square_of_what_is_left(learnt, pull):
    stop = OutOfBagStop()
    assert stop.pull == 1.0  # before the first round
    stop.note(learnt * 8.0, 8.0 - learnt * 8.0)
    assert stop.pull == pytest.approx(pull)


def test_a_curve_that_is_resumed_says_the_same():
    one, other = (OutOfBagCurve(stop=OutOfBagStop()) for _ in range(2))
    rng = np.random.default_rng(0)
    losses = np.cumprod(1.0 - rng.uniform(-0.05, 0.2, 50)) * 0.7
    for before, after in pairwise(losses.tolist()):
        one.note(before, after)
    other.resume(one.improvement, one.score)
    assert one.stop == other.stop
    assert 0.0 < one.stop.pull < 1.0
