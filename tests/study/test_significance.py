"""The corrected test against other ways to compute it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.study.resampling import corrected_t_test, standard_error
from spinney.study.significance import adjust_by_holm, find_best, find_differences, find_smallest
from study_results import result


def t_test_by_integral(values, ratio):
    """Nadeau and Bengio's statistic by its definition; its tail as an area over arctan(t / sqrt(k - 1))."""
    k, mean = len(values), sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (k - 1)
    angle = math.atan2(abs(mean), math.sqrt((1 / k + ratio) * variance) * math.sqrt(k - 1))

    def area(start, end):
        heights = np.cos(np.linspace(start, end, 4001)) ** (k - 2)
        return (heights.sum() - (heights[0] + heights[-1]) / 2) * (end - start)

    return area(angle, math.pi / 2) / area(0.0, math.pi / 2)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0.05, 1.0))
def test_the_corrected_t_test_is_its_definition(values, ratio):
    if np.std(values) > 1e-6:
        assert corrected_t_test(values, ratio) == pytest.approx(t_test_by_integral(values, ratio), abs=1e-6)


def test_the_plain_t_test_would_be_surer():
    values = [0.02, 0.01, 0.03, -0.01, 0.02]
    plain = t_test_by_integral(values, 0.0)
    assert corrected_t_test(values, 0.25) > plain
    assert corrected_t_test(values, 0.0) == pytest.approx(plain, abs=1e-7)


def test_tests_without_spread():
    assert corrected_t_test([0.1], 0.25) is None
    assert corrected_t_test([0.0, 0.0], 0.25) == 1.0
    assert corrected_t_test([0.5, 0.5], 0.25) == 0.0
    # two folds of seven rows, one row apart in each: equal only because nothing finer can be seen
    half = 1 / 7 / math.sqrt(12) / math.sqrt(2)
    spread = [1 / 7 - half, 1 / 7 + half]
    assert corrected_t_test([1 / 7] * 2, 1.0, step=1 / 7) == pytest.approx(t_test_by_integral(spread, 1.0), abs=1e-6)
    assert corrected_t_test([0.5] * 5, 0.25, step=1 / 30) < 1e-5
    assert corrected_t_test([0.1, 0.3], 0.25, step=0.1) == corrected_t_test([0.1, 0.3], 0.25)
    assert standard_error([1.0], 0.25) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_closed_testing_by_bonferroni(p_values):
    """A hypothesis is rejected if every set of hypotheses with it is, at the smallest p times the size of the set."""
    expected = []
    for i in range(len(p_values)):
        others = [j for j in range(len(p_values)) if j != i]
        sets = ((i, *more) for size in range(len(others) + 1) for more in itertools.combinations(others, size))
        expected.append(max(min(1.0, len(one) * min(p_values[j] for j in one)) for one in sets))
    assert adjust_by_holm(p_values) == pytest.approx(expected)


def test_differences_are_of_the_same_folds():
    best, half = result("b", [0.9, 0.8, 0.7, 0.9]), result("h", [0.5, 0.6], folds=(1, 3))
    (found,) = find_differences([best, half], "b", 0.25, is_greater_better=True)
    assert found.mean == pytest.approx((0.3 + 0.3) / 2)
    assert found.n_folds == 2
    less = find_differences([best, half], "h", 0.25, is_greater_better=False)
    assert less[0].mean == pytest.approx(0.3)


def test_best_is_of_those_that_saw_most_folds():
    results = [result("a", [0.5, 0.5]), result("lucky", [0.99]), result("broken", [1.0, 1.0], error="e")]
    assert find_best(results, 0.25, is_greater_better=True) == "a"
    assert find_best([result("a", [2.0]), result("b", [1.0])], 0.25, is_greater_better=False) == "b"
    assert find_best([result("a", [])], 0.25, is_greater_better=True) is None


def test_a_slow_method_is_judged_by_the_folds_it_finished():
    quick, slow = result("quick", [0.7, 0.2, 0.2, 0.2, 0.2]), result("slow", [0.69, 0.18, 0.17])
    assert find_best([quick, slow], 0.25, is_greater_better=True) == "quick"  # the mean of three easier folds is higher
    ahead = result("ahead", [0.72, 0.21, 0.22])
    assert find_best([quick, ahead], 0.25, is_greater_better=True) == "quick"  # by chance, for all that is known
    assert find_best([quick, ahead, result("far", [0.9, 0.41])], 0.25, is_greater_better=True) == "far"
    most = result("most", [0.79, 0.79, 0.8])
    assert find_best([most, result("one less", [0.82, 0.81])], 0.25, is_greater_better=True) == "one less"
    assert find_best([most, result("one less", [0.7, 0.8])], 0.25, is_greater_better=True) == "most"
    base = result("baseline", [0.5] * 5)
    assert find_best([base, result("slow", [0.9])], 0.25, is_greater_better=True) == "slow"
    assert find_best([base, result("slow", [0.5])], 0.25, is_greater_better=True) == "baseline"
    assert find_best([base, result("slow", [0.9])], 0.25, is_greater_better=False) == "baseline"


def test_the_smallest_difference_that_matters_is_a_part_of_the_gain():
    results = [result("baseline", [0.4, 0.6]), result("a", [0.9, 0.9])]
    assert find_smallest(results, "a", is_greater_better=True) == pytest.approx(0.004)
    assert find_smallest(results, "baseline", is_greater_better=True) is None
    assert find_smallest(results, None, is_greater_better=True) is None
    assert find_smallest(results[::-1], "baseline", is_greater_better=False) is None
