"""Codes: ranks of the values, or bins of about equal weight."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from fast import ColumnTable
from spinney import _jit
from spinney._types import N_CODES, OFFSET
from spinney.table import coding
from spinney.table.ingest import read_columns

ONE = np.ones(1, np.int64)


def code(columns, weight=ONE, max_codes=65_535, levels=None, keep=None, kernels=None):
    table = ColumnTable(columns, levels or [None] * len(columns))
    kernels = kernels or _jit.interpreted()
    return coding.code_table(table, np.asarray(weight, np.int64), max_codes, kernels, keep)


def column_of(codes, j):
    """Codes of a column, and the lowest and highest value behind each."""
    first = int(codes.features[OFFSET, j])
    last = first + int(codes.features[N_CODES, j])
    return codes.rows[:, j].tolist(), *codes.edges[:, first:last].tolist()


def plain_ranks(column):
    values = sorted({value for value in column if not math.isnan(value)})
    return [0 if math.isnan(value) else values.index(value) + 1 for value in column], [value + 0.0 for value in values]


# ------------------------------------------------------------------------------------------------ every value


@settings(max_examples=200)
@given(strategies.tables(has_categories=False))
def test_codes_are_ranks(table):
    codes = code(table.columns)
    for j, column in enumerate(table.columns):
        expected, values = plain_ranks(column)
        assert column_of(codes, j) == (expected, values, values)
        assert bool(codes.has_missing[j]) == (0 in expected)


@given(st.integers(1, 400), st.sampled_from(["normal", "wide", "whole", "ulps", "reversed"]))
def test_codes_of_longer_columns_are_ranks(n_rows, kind):
    """Long enough that a packed sort drops bits that matter."""
    rng = np.random.default_rng(n_rows)
    column = {
        "normal": rng.normal(size=n_rows),
        "wide": rng.normal(size=n_rows) * 10.0 ** rng.integers(-300, 300, n_rows),
        "whole": rng.integers(-50, 50, n_rows).astype(float),
        "ulps": (np.float64(1.0).view(np.int64) + rng.integers(0, 20, n_rows)).view(np.float64),
        "reversed": -np.arange(n_rows) / 7.0,
    }[kind]
    codes = code([column])
    values, expected = np.unique(column, return_inverse=True)
    found, low, high = column_of(codes, 0)
    assert found == (expected + 1).tolist()
    assert low == high == values.tolist()


def test_special_values():
    smallest, largest = 5e-324, 1.7976931348623157e308
    column = [0.0, -0.0, math.inf, -math.inf, math.nan, smallest, -smallest, largest, -largest, 1.0]
    found, low, high = column_of(code([column]), 0)
    assert found == [4, 4, 8, 1, 0, 5, 3, 7, 2, 6]
    assert low == high == [-math.inf, -largest, -smallest, 0.0, smallest, 1.0, largest, math.inf]
    assert math.copysign(1.0, low[3]) == 1.0


def test_neighbouring_floats_have_codes_of_their_own():
    for start in (1.0, 0.1, -3.0, 1e300, 2.0**53, 5e-324):
        column = [start]
        for _ in range(30):
            column.append(math.nextafter(column[-1], math.inf))
        found, low, _ = column_of(code([column[::-1]]), 0)
        assert found == list(range(31, 0, -1))
        assert low == column


@pytest.mark.parametrize("column", [[math.nan] * 5, [2.5] * 5, [2.5]])
def test_columns_without_a_cut(column):
    codes = code([column])
    expected, values = plain_ranks(column)
    assert column_of(codes, 0) == (expected, values, values)


def test_levels_keep_their_numbers():
    column = [2.0, 0.0, math.nan, 5.0, 2.0]
    codes = code([[1.0, 2.0, 3.0, 4.0, 5.0], column], levels=[None, tuple("abcdef")])
    assert codes.rows[:, 1].tolist() == [3, 1, 0, 6, 3]
    assert int(codes.features[N_CODES, 1]) == 6
    assert codes.has_missing.tolist() == [False, True]


def test_rows_can_be_left_out():
    column = [3.0, 1.0, math.nan, 2.0, 9.0]
    keep = np.array([True, False, True, True, False])
    assert column_of(code([column], keep=keep), 0) == ([2, 0, 1], [2.0, 3.0], [2.0, 3.0])


@given(strategies.tables(max_features=7), st.integers(1, 9), st.booleans(), st.sampled_from([65_535, 3]))
def test_any_chunks_of_columns_give_the_same_codes(table, n_columns, is_long, max_codes):
    levels = [tuple(range(n)) if is_it else None for n, is_it in zip(table.n_levels, table.is_categorical, strict=True)]
    plain = code(table.columns, levels=levels, max_codes=max_codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "CELLS_AT_ONCE", n_columns * table.n_rows)
        if is_long:  # sorted one by one, as long columns are
            patch.setattr(coding, "FEW_ROWS", 0)
        chunked = code(table.columns, levels=levels, max_codes=max_codes)
    for one, two in zip(plain, chunked, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("n_features", [*range(1, 40), 64, 65])
def test_rows_of_codes_are_whole_words_and_keep_to_cache_lines(n_features):
    stride = coding.row_stride(n_features)
    assert stride >= n_features
    assert stride * 2 % 8 == 0
    assert 64 % (stride * 2) == 0 or stride - n_features < 4  # one line of the cache, or no padding beyond a word


# ------------------------------------------------------------------------------------------------------- bins


def check_bins(column, max_codes, weight=None):
    """Bins are whole runs of the sorted values, all used, edges right; returns the weight in each."""
    column = np.asarray(column, float)
    known = ~np.isnan(column)
    codes = code([column], ONE if weight is None else weight, max_codes)
    found, low, high = column_of(codes, 0)
    found = np.array(found)
    assert (found[~known] == 0).all()
    bins = np.unique(found[known])
    assert bins.tolist() == list(range(1, len(low) + 1))
    assert len(bins) <= max_codes
    for b in bins:
        inside = column[known & (found == b)]
        assert (low[b - 1], high[b - 1]) == (inside.min(), inside.max())
    assert all(a < b for a, b in zip(high[:-1], low[1:], strict=True))
    mass = np.ones(len(column)) if weight is None else np.asarray(weight, float)
    return np.bincount(found[known], mass[known])[1:]


@settings(max_examples=200)
@given(strategies.tables(has_categories=False, max_features=1), st.integers(2, 9))
def test_bins_are_runs_of_values(table, max_codes):
    column = table.columns[0]
    check_bins(column, max_codes)
    n_values = len({value for value in column if not math.isnan(value)})
    if n_values <= max_codes:  # enough codes for every value
        assert column_of(code([column], max_codes=max_codes), 0)[0] == plain_ranks(column)[0]


@pytest.mark.parametrize("max_codes", [2, 3, 10, 255])
@pytest.mark.parametrize("shape", ["even", "skewed", "few heavy"])
def test_bins_have_about_equal_weight(max_codes, shape):
    rng = np.random.default_rng(0)
    column = rng.normal(size=20_000)
    if shape == "skewed":
        column = np.exp(3 * column)
    if shape == "few heavy":
        column = np.where(rng.random(20_000) < 0.3, rng.integers(0, 3, 20_000), column)
    mass = check_bins(column, max_codes)
    assert len(mass) == max_codes
    if shape != "few heavy":
        share = len(column) / max_codes
        assert np.abs(mass - share).max() <= 2


@pytest.mark.parametrize("heavy_at", [0, 37, 99])
@pytest.mark.parametrize("max_codes", [3, 10, 50])
def test_a_heavy_value_has_a_bin_of_its_own(heavy_at, max_codes):
    """99.99 % of the rows have one value; the others share the remaining codes."""
    values = np.arange(100.0)
    column = np.concatenate([values, np.full(990_000, values[heavy_at])])
    codes = code([column], max_codes=max_codes)
    found, low, high = column_of(codes, 0)
    bin_of_heavy = found[heavy_at] - 1
    assert low[bin_of_heavy] == high[bin_of_heavy] == values[heavy_at]
    assert len(low) >= min(max_codes, 3) - (heavy_at in (0, 99))
    assert len(low) >= max_codes // 2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), min_size=2, max_size=80), st.integers(2, 8))
def test_a_weight_of_two_is_a_row_twice(rows, max_codes):
    values, counts = (np.array(column) for column in zip(*rows, strict=True))
    repeated = np.repeat(values, counts).astype(float)
    by_weight = code([values.astype(float)], counts, max_codes)
    by_rows = code([repeated], ONE, max_codes)
    np.testing.assert_array_equal(by_weight.edges, by_rows.edges)
    np.testing.assert_array_equal(np.repeat(by_weight.rows[:, 0], counts), by_rows.rows[:, 0])


def test_weights_move_the_quantiles():
    """Three quarters of the weight are on the lowest tenth of values: so are three quarters of the bins."""
    column = np.arange(1000.0)
    weight = np.where(column < 100, 27, 1)
    mass = check_bins(column, 20, weight)
    assert mass.max() <= 2 * weight.sum() / 20
    found = code([column], weight, 20).rows[:, 0]
    assert found[99] in (14, 15, 16)


@given(st.randoms(use_true_random=False), st.integers(2, 6))
def test_the_order_of_rows_does_not_matter_to_bins(random, max_codes):
    column = np.array([random.randint(0, 30) for _ in range(50)], float)
    weight = np.array([random.randint(1, 9) for _ in range(50)])
    order = np.array(random.sample(range(50), 50))
    one, two = code([column], weight, max_codes), code([column[order]], weight[order], max_codes)
    np.testing.assert_array_equal(one.rows[order], two.rows)
    np.testing.assert_array_equal(one.edges, two.edges)


def test_more_values_than_codes():
    """70,000 values: binned to 65,535 codes, none unused, a code never past its type."""
    rng = np.random.default_rng(0)
    column = rng.permutation(70_000).astype(float)
    codes = code([column], kernels=_jit.load_compiled())
    found, low, high = column_of(codes, 0)
    assert (min(found), max(found)) == (1, 65_535)
    assert len(set(found)) == 65_535
    order = np.argsort(column)
    assert np.all(np.diff(np.array(found)[order]) >= 0)
    assert (low[0], high[-1]) == (0.0, 69_999.0)


def test_exactly_as_many_values_as_codes():
    column = np.arange(65_535.0)
    found, low, high = column_of(code([column]), 0)
    assert found == list(range(1, 65_536))
    assert low == high == column.tolist()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(2, 12))
def test_compiled_and_interpreted_bins_agree(mass, n_bins):
    filled = []
    for kernels in (_jit.interpreted(), _jit.load_compiled()):
        bins = np.full(len(mass), -1, np.int64)
        n = kernels.data.binning.fill_bins(np.array(mass, np.int64), n_bins, bins)
        filled.append((int(n), bins.tolist()))
    assert filled[0] == filled[1]
    n, bins = filled[0]
    assert n == min(n_bins, len(mass)) or n <= n_bins
    assert bins == sorted(bins)
    assert set(bins) == set(range(n))


@pytest.mark.parametrize("two", [(0.0, 1.0), (2.5, -1.0), (-math.inf, math.inf), (0.0, -0.0), (1.0, 1.0)])
@pytest.mark.parametrize("third", [None, math.nan, 7.0])
def test_codes_of_two_values_are_ranks(two, third):
    """Of columns that are long enough to be coded without sorting; a third value comes behind those that tell most."""
    rng = np.random.default_rng(0)
    for n_first in (0, 1, coding.FEW_ROWS + 3):
        column = np.array(two)[rng.integers(0, 2, coding.FEW_ROWS + 5)]
        column[:n_first] = two[0]
        if third is not None:
            column[100] = third
        expected, values = plain_ranks(column.tolist())
        assert column_of(code([column.tolist()]), 0) == (expected, values, values)


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(
    ("spoilt", "is_counted"),
    [
        ([], True),
        ([-0.0], True),
        ([0.5], False),  # behind the rows that are looked at first
        ([1e300], False),
        ([2.0**53], False),
        ([math.inf], False),
        ([math.nan], False),
        ([-500.0], True),  # the range is as wide as may be: the rows are as many
        ([-501.0], False),
    ],
)
@pytest.mark.parametrize("is_row_by_row", [True, False])
def test_whole_numbers_are_counted_and_nothing_else_is(spoilt, is_counted, is_row_by_row, is_compiled):
    kernels = _jit.load_compiled() if is_compiled else _jit.interpreted()
    n_rows = coding.FEW_ROWS + 50
    values = np.array([*range(-3, 40, 3), n_rows - 501], np.float64)
    column = np.random.default_rng(0).choice(values, n_rows)
    column[-len(spoilt) - 2 : len(column) - len(spoilt)] = values[[0, -1]]
    column[len(column) - len(spoilt) :] = spoilt
    columns = [np.arange(n_rows) / 2.0, column, column[::-1], np.ones(n_rows)]
    table = read_columns(np.column_stack(columns)) if is_row_by_row else ColumnTable(columns, [None] * 4)
    assert (table.floats is not None) == is_row_by_row
    sorted_ones = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            coding.ColumnCoder, "sort", lambda _coder, features, _block: sorted_ones.extend(features.tolist())
        )
        coding.code_table(table, ONE, 65_535, kernels)
    assert sorted_ones == ([0] if is_counted else [0, 1, 2])
    codes = coding.code_table(table, ONE, 65_535, kernels)
    for j, expected in enumerate(columns):
        ranks, known = plain_ranks(expected.tolist())
        assert column_of(codes, j) == (ranks, known, known)


@given(strategies.tables(max_features=7), st.sampled_from([65_535, 3]), st.booleans())
def test_counted_columns_have_the_codes_of_sorted_ones(table, max_codes, keeps_all):
    levels = [tuple(range(n)) if is_it else None for n, is_it in zip(table.n_levels, table.is_categorical, strict=True)]
    keep = None if keeps_all else np.arange(table.n_rows) % 3 != 1
    plain = code(table.columns, levels=levels, max_codes=max_codes, keep=keep)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "FEW_ROWS", 0)
        counted = code(table.columns, levels=levels, max_codes=max_codes, keep=keep)
    for one, two in zip(plain, counted, strict=True):
        np.testing.assert_array_equal(one, two)
