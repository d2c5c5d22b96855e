"""Sums over rows have the same bits in whatever parts the rows come, and are exact where they say so."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spinney.ensemble.forest import Plan, weigh_bag
from spinney.ensemble.out_of_bag import oob_error
from spinney.kernels.boost.gradients import BLOCK
from spinney.table.fixed_point import Weights, class_target, excess_bits
from spinney.table.row_sums import SUM_BLOCK, sum_products, sum_products_of, sum_rows


def numbers(n):
    """Numbers of very different sizes and both signs."""
    generator = np.random.default_rng(n)
    return generator.normal(size=n) * 10.0 ** generator.integers(-8, 8, n)


def test_blocks_are_those_of_boosting():
    assert SUM_BLOCK == BLOCK


def test_a_sum_is_that_of_its_blocks_whoever_holds_them():
    for n in (1, 4095, 4096, 4097, 50_000):
        x = numbers(n)
        parts = [x[first : first + 4096].sum() for first in range(0, n, 4096)]
        exact = sum(Fraction(part) for part in parts)
        assert sum_rows(x) == float(exact)
        if n <= 4096:
            assert sum_rows(x) == x.sum()
    assert sum_rows(np.empty(0)) == 0.0


def test_blocks_are_those_of_the_table_where_rows_are_left_out():
    x = numbers(50_000)
    rows = np.flatnonzero(np.random.default_rng(1).random(50_000) < 0.3)
    rows = rows[(rows < 10_000) | (rows > 20_000)]  # a block without rows
    parts = [x[rows[(rows >= first) & (rows < first + 4096)]].sum() for first in range(0, 50_000, 4096)]
    assert sum_rows(x[rows], rows) == float(sum(Fraction(part) for part in parts))


def test_a_sum_beyond_float64_is_infinite():
    assert sum_rows(np.full(10_000, 1e308)) == math.inf
    assert sum_rows(np.tile(np.repeat([-1e308, 1e304], 4096), 3)) == -math.inf
    assert sum_rows(np.append(np.full(5000, 1.0), np.inf)) == math.inf


PRODUCTS = arrays.arrays(np.int64, st.integers(1, 50), elements=st.integers(-(2**62) + 1, 2**62 - 1))


@given(PRODUCTS, st.integers(1, 2**26), st.data())
def test_sums_of_products_are_exact(values, most, data):
    counts = np.array(data.draw(st.lists(st.integers(0, most), min_size=len(values), max_size=len(values))))
    exact = sum(abs(value) * count for value, count in zip(values.tolist(), counts.tolist(), strict=True))
    assert sum_products(values, counts) == exact
    codes = np.arange(len(values)) % 3
    of_codes = sum_products_of(np.abs(values), counts, codes, 4)
    assert sum(of_codes) == exact
    assert of_codes[3] == 0
    assert of_codes[1] == sum_products(values[codes == 1], counts[codes == 1])


@given(PRODUCTS, st.integers(1, 1000))
def test_no_sum_leaves_its_range_by_the_bits_that_are_dropped(values, most):
    counts = np.arange(len(values)) % most + 1
    n_bits = excess_bits(values, counts)
    assert sum_products(np.abs(values) >> n_bits, counts) < 2**62
    assert n_bits == 0 or sum_products(values, counts) * 1.000001 >= 2 ** (62 + n_bits - 1)
    again = np.random.default_rng(0).permutation(len(values))
    assert excess_bits(values[again], counts[again]) == n_bits


def make_plan(values, bits, truth):
    """As much of a plan as weighing a bag takes."""
    weights = Weights(values, bits, 0, is_unit=False, is_whole=False, total=int(values.sum()))
    plan = Plan.__new__(Plan)
    object.__setattr__(plan, "weights", weights)
    object.__setattr__(plan, "target", class_target(truth, 3, weights))
    object.__setattr__(plan, "balances_bags", True)
    return plan


def test_balanced_bags_do_not_depend_on_the_order_of_their_rows():
    generator = np.random.default_rng(2)
    truth = generator.integers(0, 3, 5000)
    values = np.rint(generator.lognormal(size=5000) * 2.0**40).astype(np.int64)
    rows, counts = np.arange(5000, dtype=np.int32), generator.integers(1, 4, 5000).astype(np.int32)
    weights, _, _ = weigh_bag(make_plan(values, 40, truth), rows, counts)
    order = generator.permutation(5000)
    again, _, _ = weigh_bag(make_plan(values[order], 40, truth[order]), rows, counts[order])
    assert np.array_equal(weights.values[order], again.values)
    sums = [int(weights.values[truth == k].sum()) for k in range(3)]
    assert max(sums) - min(sums) <= 1e-12 * max(sums)


def test_the_out_of_bag_error_is_a_sum_of_blocks():
    n_rows = 30_000
    y, votes = numbers(n_rows), numbers(n_rows)[::-1].copy()
    n_votes = np.random.default_rng(3).integers(0, 3, n_rows)
    rows = np.flatnonzero(n_votes)
    found = oob_error(votes[:, None], n_votes, y, is_class=False)
    off = (votes[rows] / n_votes[rows] - y[rows]) ** 2
    parts = [off[(rows >= k) & (rows < k + 4096)].sum() for k in range(0, n_rows, 4096)]
    assert found == math.fsum(parts) / len(rows)
