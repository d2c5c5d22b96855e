"""Ticks and places of numbers."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spinney.show.marks import Axis
from spinney.show.scale import Scale, find_ends, log_ticks, round_numbers, tick_texts

NUMBERS = st.floats(-1e12, 1e12)


@given(NUMBERS, st.floats(1e-6, 1e12), st.integers(2, 10), st.booleans())
def test_ticks_are_even_round_and_inside(low, span, most, is_whole):
    high = low + span
    assume(high - low > 1e-9 * abs(low))
    ticks = round_numbers(low, high, most, is_whole=is_whole)
    room = 1e-6 * (high - low)
    assert len(ticks) <= most
    assert all(low - room <= tick <= high + room for tick in ticks)
    assert not is_whole or all(tick == int(tick) for tick in ticks)
    if len(ticks) > 1:
        steps = np.diff(ticks)
        assert np.allclose(steps, steps[0], rtol=1e-3)
        digits = f"{steps[0]:.2e}".partition("e")[0]
        assert digits in {"1.00", "2.00", "2.50", "5.00"}
    elif not is_whole:
        assert most < 4  # more would have room for two


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.5, 500, 6, [0, 100, 200, 300, 400, 500][1:]),
        (-3, 3, 4, [-2, 0, 2]),
        (0.7, 0.85, 4, [0.7, 0.75, 0.8, 0.85]),
    ],
)
def test_ticks_that_a_person_would_choose(low, high, most, expected):
    assert round_numbers(low, high, most) == expected


def test_logarithmic_ticks():
    assert log_ticks(0.9, 220, 8) == [1, 2, 5, 10, 20, 50, 100, 200]
    assert log_ticks(0.9, 220, 4) == [1, 10, 100]
    assert len(log_ticks(1e-20, 1e20, 5)) <= 5
    assert log_ticks(1, 4, 1) == [1]


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0.0, 0.5, 1.0], ["0", "0.5", "1.0"]),
        ([0.25, 0.3], ["0.25", "0.30"]),
        ([250000.0, 1000000.0], ["250,000", "1,000,000"]),
        ([2e7, 4e7], ["2e7", "4e7"]),
        ([1e-5, 2.5e-5], ["1e-5", "2.5e-5"]),
        ([-1e-10, 0.0], ["-1e-10", "0"]),
        ([], []),
    ],
)
def test_texts_of_ticks(ticks, texts):
    assert tick_texts(ticks) == texts


@given(st.lists(NUMBERS, min_size=1, max_size=9))
def test_ends_hold_the_numbers(values):
    low, high = find_ends(Axis("x"), values)
    assert low < high
    assert low <= min(values)
    assert max(values) <= high


def test_fixed_ends_and_zero_have_no_margin():
    assert find_ends(Axis("x", 0.0, 1.0), [0.2]) == (0.0, 1.0)
    assert find_ends(Axis("x", 0.0, 1.0), [0.5, 2.0])[1] > 2.0
    assert find_ends(Axis("x"), [0.0, 100.0]) == (0.0, 104.0)
    assert find_ends(Axis("x", levels=("a", "b", "c")), []) == (-0.5, 2.5)
    assert find_ends(Axis("x"), [])[0] < find_ends(Axis("x"), [])[1]


def test_places_on_a_scale():
    assert Scale(0.0, 10.0, 100.0, 300.0)(2.5) == 150.0
    assert Scale(0.0, 10.0, 300.0, 100.0)(2.5) == 250.0
    assert Scale(1.0, 100.0, 0.0, 10.0, is_log=True)(10.0) == pytest.approx(5.0)
