"""The classes of a target, in order, and the place of each row's."""

import numpy as np
import pytest

from spinney.estimators.checks import number_classes

TARGETS = {
    "two": np.random.default_rng(0).integers(0, 2, 100),
    "below zero": np.random.default_rng(1).integers(-3, 4, 50).astype(np.int8),
    "all of a byte": np.array([-128, 127] * 200, np.int8),
    "near the end of a byte": np.array([200, 250, 200] * 20, np.uint8),
    "truths": np.array([True, False, True]),
    "one": np.array([5]),
    "far apart": np.array([10**9, 3]),
    "the ends of int64": np.array([-(2**63), 2**63 - 1]),
    "beyond int64": np.array([2**63, 2**63 + 1], np.uint64),
    "text": np.array(["b", "a", "b"]),
    "halves": np.array([1.5, 2.5, 1.5]),
    "none": np.array([], np.int64),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_classes_are_those_of_sorting(y):
    classes, codes = number_classes(y)
    expected, places = np.unique(y, return_inverse=True)
    assert classes.dtype == expected.dtype
    assert codes.dtype == np.int64
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, places)
