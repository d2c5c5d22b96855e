"""Bins: the bytes of rows, the cuts of columns, and the same by a plain way."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import spinney
import strategies
from fast import ColumnTable
from spinney import _jit
from spinney._types import HIGH, IS_BINNED, IS_CATEGORICAL, LOW, N_CODES, OFFSET
from spinney.table import binning, coding
from spinney.table.ingest import read_columns

ONE = np.ones(1, np.int64)
POWERS = [*(-(2.0**k) for k in range(300, -301, -9)), -5e-324, -0.0, 0.0, *(2.0**k for k in range(-300, 301, 9))]
BOTH = {"interpreted": _jit.interpreted, "compiled": _jit.load_compiled}


def bin_columns(columns, weight=ONE, max_bins=255, levels=None, keep=None, kernels=None, n_workers=1):
    table = ColumnTable(columns, levels or [None] * len(columns))
    kernels = kernels or _jit.interpreted()
    return binning.bin_table(table, np.asarray(weight, np.int64), max_bins, kernels, keep, n_workers)


def cuts_of(bins, j):
    """Lowest and highest value behind each code of a column."""
    first = int(bins.features[OFFSET, j])
    return bins.edges[:, first : first + int(bins.features[N_CODES, j])]


def levels_of(table):
    return [tuple(range(n)) if is_it else None for n, is_it in zip(table.n_levels, table.is_categorical, strict=True)]


def assert_same_bins(one, two):
    """Equal to the last bit, signs of zeros included."""
    for name, ours, theirs in zip(one._fields, one, two, strict=True):
        assert ours.dtype == theirs.dtype, name
        assert ours.shape == theirs.shape, name
        assert ours.tobytes() == theirs.tobytes(), name


# ------------------------------------------------------------------------------------------------- a plain way


def fill_plainly(mass, n_bins):
    """Number of values in each bin: whole numbers of any size, one value at a time."""
    sizes = []
    while sum(sizes) < len(mass):
        at = sum(sizes)
        n_open = n_bins - len(sizes)  # this bin and those after it
        share = sum(mass[at:]) // n_open
        size = 0
        while at + size < len(mass):
            nearly = sum(mass[at : at + size]) + (mass[at + size] + 1) // 2
            is_full = nearly > share or len(mass) - at - size < n_open
            if n_open > 1 and sum(mass[at : at + size]) > 0 and is_full:
                break
            size += 1
        sizes.append(size)
    return sizes


def cut_plainly(column, weight, max_bins):
    """Lowest and highest value of each bin, from a dictionary of weights."""
    mass = {}
    for value, w in zip(column, weight, strict=True):
        if not math.isnan(value):
            mass[value + 0.0] = mass.get(value + 0.0, 0) + int(w)
    values = sorted(mass)
    sizes = fill_plainly([mass[v] for v in values], max_bins) if len(values) > max_bins else [1] * len(values)
    ends = np.cumsum(sizes, dtype=int).tolist()
    return [values[end - size] for end, size in zip(ends, sizes, strict=True)], [values[end - 1] for end in ends]


def code_plainly(column, low):
    return [0 if math.isnan(value) else sum(start <= value for start in low) for value in column]


def assert_bins_are_plain(bins, columns, weight, max_bins, levels=None):
    for j, column in enumerate(columns):
        if levels is not None and levels[j] is not None:
            low = high = [float(k) for k in range(len(levels[j]))]
        else:
            low, high = cut_plainly(column, weight, max_bins)
        found = cuts_of(bins, j)
        assert found[LOW].tobytes() == np.array(low, float).tobytes()
        assert found[HIGH].tobytes() == np.array(high, float).tobytes()
        assert bins.codes(j).tolist() == code_plainly(column, low)
        assert bool(bins.has_missing[j]) == any(map(math.isnan, column))
        assert bool(bins.features[IS_BINNED, j]) == (low != high)
        assert bool(bins.is_wide[j]) == (len(low) > 255)


@pytest.mark.parametrize("kernels", BOTH)
@settings(max_examples=100)
@given(
    table=strategies.tables(),
    max_bins=st.sampled_from([2, 3, 4, 7, 255, 300, None]),
    weight=st.none() | st.lists(st.integers(1, 9), min_size=strategies.MAX_ROWS, max_size=strategies.MAX_ROWS),
)
def test_bins_are_those_of_the_plain_way(kernels, table, max_bins, weight):
    levels = levels_of(table)
    weight = ONE if weight is None else np.array(weight[: table.n_rows])
    bins = bin_columns(table.columns, weight, max_bins, levels, kernels=BOTH[kernels]())
    plain = np.broadcast_to(weight, table.n_rows)
    assert_bins_are_plain(bins, table.columns, plain, max_bins or 65_535, levels)


def assert_bins_are_codes(bins, codes):
    for name in ("features", "edges", "has_missing"):
        assert getattr(bins, name).tobytes() == getattr(codes, name).tobytes(), name
    for j in range(bins.n_features):
        np.testing.assert_array_equal(bins.codes(j), codes.rows[:, j])


def tied_column(rng, n_rows, kind):
    normal = rng.normal(size=n_rows)
    return {
        "normal": lambda: normal,
        "float32": lambda: normal.astype(np.float32).astype(float),
        "skewed": lambda: np.exp(9 * normal),
        "both tails": lambda: np.sinh(40 * normal),
        "outlier": lambda: np.where(np.arange(n_rows) == n_rows // 2, -1e300, normal),
        "infinite": lambda: np.where(normal > 0.5, np.inf, np.where(normal < -1, -np.inf, normal)),
        "tiny": lambda: np.rint(100 * normal) * 5e-324,
        "few": lambda: np.rint(3 * normal),
        "rounded": lambda: np.rint(100 * normal) / 7,
        "heavy": lambda: np.where(rng.random(n_rows) < 0.8, 0.25, normal),
        "heavy in float32": lambda: np.where(rng.random(n_rows) < 0.8, 0.25, np.rint(1e4 * normal)),
        "light then heavy": lambda: np.where(rng.random(n_rows) < 0.2, rng.random(n_rows), np.rint(9 + 9 * normal**2)),
        "half missing": lambda: np.where(rng.random(n_rows) < 0.5, np.nan, np.rint(60 * normal)),
        "all missing": lambda: np.full(n_rows, np.nan),
        "constant": lambda: np.full(n_rows, -0.0),
        "zeros": lambda: np.where(rng.random(n_rows) < 0.3, -0.0, np.maximum(np.rint(50 * normal), 0)),
    }[kind]()


KINDS = [
    "normal", "float32", "skewed", "both tails", "outlier", "infinite", "tiny", "few", "rounded", "heavy",
    "heavy in float32", "light then heavy", "half missing", "all missing", "constant", "zeros",
]  # fmt: skip


@settings(max_examples=150)
@given(
    kind=st.sampled_from(KINDS),
    n_rows=st.integers(1, 5000),
    max_bins=st.sampled_from([2, 3, 5, 16, 100, 255, 256, 1000, None]),
    seed=st.integers(0, 99),
    has_weight=st.booleans(),
)
def test_long_columns_have_the_bins_of_their_codes(kind, n_rows, max_bins, seed, has_weight):
    rng = np.random.default_rng(seed)
    column = tied_column(rng, n_rows, kind)
    weight = rng.integers(1, 50, n_rows) ** 4 if has_weight else ONE
    kernels = _jit.load_compiled()
    bins = bin_columns([column], weight, max_bins, kernels=kernels)
    assert_bins_are_codes(bins, coding.code_table(ColumnTable([column], [None]), weight, max_bins or 65_535, kernels))


@settings(max_examples=300)
@given(counts=st.lists(st.sampled_from([1, 1, 1, 2, 3, 10, 60]), min_size=1, max_size=60), max_bins=st.integers(2, 20))
@example(counts=[1] * 30 + [40] * 8, max_bins=12)  # more bins left than values
@example(counts=[5] * 7, max_bins=6)
def test_jumping_over_runs_ends_bins_where_counting_does(counts, max_bins):
    column = np.repeat(np.arange(len(counts)) / 8, counts)
    bins = bin_columns([column], ONE, max_bins, kernels=_jit.load_compiled())
    sizes = fill_plainly(counts, max_bins) if len(counts) > max_bins else [1] * len(counts)
    firsts = np.cumsum([0, *sizes[:-1]])
    np.testing.assert_array_equal(cuts_of(bins, 0)[LOW], firsts / 8)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_and_interpreted_bins_agree(kind):
    column = tied_column(np.random.default_rng(3), 300, kind)
    for max_bins in (20, 255, None):
        one, two = (bin_columns([column], ONE, max_bins, kernels=load()) for load in BOTH.values())
        assert_same_bins(one, two)


def test_bins_of_a_continuous_column_have_equally_many_rows():
    """Up to the row that a share rounds to."""
    column = np.random.default_rng(0).normal(size=100_000)
    bins = bin_columns([column], kernels=_jit.load_compiled())
    n_rows = np.bincount(bins.codes(0))
    assert n_rows[0] == 0
    assert len(n_rows) == 256
    assert set(n_rows[1:].tolist()) <= {392, 393}


@pytest.mark.parametrize("kind", ["float32", "normal", "skewed"])
@pytest.mark.parametrize("has_weight", [False, True])
def test_a_nan_of_any_sign_is_missing(kind, has_weight):
    rng = np.random.default_rng(7)
    column = tied_column(rng, 3000, kind)
    is_missing = rng.random(3000) < 0.3
    weight = rng.integers(1, 100, 3000) if has_weight else ONE
    kernels = _jit.load_compiled()
    plus, minus = (np.where(is_missing, math.copysign(math.nan, sign), column) for sign in (1.0, -1.0))
    bins = bin_columns([minus], weight, 20, kernels=kernels)
    assert_same_bins(bins, bin_columns([plus], weight, 20, kernels=kernels))
    np.testing.assert_array_equal(bins.codes(0) == 0, is_missing)
    known = bin_columns([column[~is_missing]], weight[~is_missing] if has_weight else ONE, 20, kernels=kernels)
    assert bins.edges.tobytes() == known.edges.tobytes()


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize(
    "column",
    [
        [-5e-324, 5e-324],
        [-5e-324, -0.0, 0.0, 5e-324],
        [-1e308, 1e308],
        [-math.inf, math.inf],
        [-math.inf, -1e308, 1e308, math.inf],
        [-1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308],
        [-math.inf, 1.0, math.nextafter(1.0, 2.0), math.inf],
        [-3e38, -1e-45, 0.0, 1e-45, 3e38],
        [-1.0, 0.0, 0.5, 2.0],
        POWERS,
    ],
)
def test_extreme_values_have_codes_of_their_own(kernels, column):
    column = 20 * column  # so that there are many cells
    bins = bin_columns([column], kernels=BOTH[kernels]())
    assert_bins_are_plain(bins, [column], [1] * len(column), 255)


# ------------------------------------------------------------------------------------------------------ layout


@given(st.lists(st.sampled_from([1, 2, 100, 255, 256, 300, 65_535]), min_size=1, max_size=150))
def test_features_share_a_row_without_overlap(n_codes):
    place, is_wide, stride = binning.lay_out(n_codes)
    assert is_wide.tolist() == [n > 255 for n in n_codes]
    taken = np.concatenate([np.arange(at, at + 1 + wide) for at, wide in zip(place, is_wide, strict=True)])
    assert len(set(taken.tolist())) == len(taken)
    assert taken.max() < stride
    assert (place[is_wide] % 2 == 0).all()
    assert place[~is_wide].tolist() == list(range(np.count_nonzero(~is_wide)))
    assert (np.diff(place[is_wide]) == 2).all()
    assert stride in {8, 16, 32} or stride % 64 == 0
    assert stride < 2 * max(len(taken) + 1, 8) or stride - len(taken) < 65


def test_wide_and_narrow_features_side_by_side():
    rng = np.random.default_rng(1)
    columns = [rng.permutation(600) % n for n in (2, 300, 255, 256, 600)]
    bins = bin_columns(columns, max_bins=None)
    assert bins.is_wide.tolist() == [False, True, False, True, True]
    assert bins.place.tolist() == [0, 2, 1, 4, 6]
    assert bins.rows.shape == (600, 8)
    for j, column in enumerate(columns):
        np.testing.assert_array_equal(bins.codes(j), column + 1)
        at = bins.place[j]
        rows = bins.rows.astype(int)
        np.testing.assert_array_equal(rows[:, at] + (256 * rows[:, at + 1] if bins.is_wide[j] else 0), column + 1)


def test_levels_keep_their_numbers_and_may_be_many():
    rng = np.random.default_rng(2)
    few, many = rng.integers(0, 4, 2000).astype(float), rng.integers(0, 1000, 2000).astype(float)
    many[::7] = np.nan
    levels = [tuple("abcdef"), tuple(range(1000)), None]
    bins = bin_columns([few, many, np.arange(2000) / 3], max_bins=10, levels=levels, kernels=_jit.load_compiled())
    assert bins.features[N_CODES].tolist() == [6, 1000, 10]
    assert bins.features[IS_CATEGORICAL].tolist() == [1, 1, 0]
    assert bins.is_wide.tolist() == [False, True, False]
    assert bins.has_missing.tolist() == [False, True, False]
    np.testing.assert_array_equal(bins.codes(0), few + 1)
    np.testing.assert_array_equal(bins.codes(1), np.nan_to_num(many, nan=-1) + 1)


def test_more_values_than_wide_codes():
    column = np.random.default_rng(0).permutation(70_000) / 3
    bins = bin_columns([column], max_bins=None, kernels=_jit.load_compiled())
    codes = bins.codes(0)
    assert (codes.min(), codes.max(), len(np.unique(codes))) == (1, 65_535, 65_535)
    assert (np.diff(codes[np.argsort(column)].astype(int)) >= 0).all()


# --------------------------------------------------------------------------- any blocks, threads, types, and rows


@given(
    strategies.tables(max_features=7),
    st.integers(1, 5),
    st.integers(1, 50),
    st.sampled_from([2, 5]),
    st.sampled_from([3, 255, None]),
    st.booleans(),
    st.sampled_from([1, 10**9]),
    st.sampled_from([1, 10**9]),
)
def test_blocks_and_threads_do_not_matter(table, n_columns, n_rows, n_workers, max_bins, has_weight, long, very_long):
    levels = levels_of(table)
    weight = np.arange(1, table.n_rows + 1) if has_weight else ONE
    plain = bin_columns(table.columns, weight, max_bins, levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "CELLS_AT_ONCE", n_columns * table.n_rows)
        patch.setattr(binning, "COLUMNS_AT_ONCE", 1)
        patch.setattr(binning, "SORTED_AT_ONCE", 2 * table.n_rows)
        patch.setattr(binning, "ROWS_AT_ONCE", n_rows)
        patch.setattr(binning, "JOINED_AT_ONCE", n_rows)
        patch.setattr(binning, "LONG_COLUMN", long)
        patch.setattr(binning, "VERY_LONG_COLUMN", very_long)
        shared = bin_columns(table.columns, weight, max_bins, levels, n_workers=n_workers)
    assert_same_bins(plain, shared)


def test_threads_do_not_matter_to_long_columns(monkeypatch):
    monkeypatch.setattr(binning, "ROWS_AT_ONCE", 600)
    rng = np.random.default_rng(5)
    columns = [tied_column(rng, 5000, kind) for kind in KINDS]
    kernels = _jit.load_compiled()
    for max_bins in (255, None):
        one, eight = (bin_columns(columns, ONE, max_bins, kernels=kernels, n_workers=n) for n in (1, 8))
        assert_same_bins(one, eight)


@pytest.mark.parametrize("kernels", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("kind", ["float32", "float64"])
@given(
    st.lists(
        st.sampled_from([np.nan, -np.inf, np.inf, -0.0, 0.0, *map(float, range(-9, 10))]), min_size=1, max_size=80
    ),
    st.integers(2, 12),
    st.integers(1, 9),
)
@example([np.nan] * 5, 2, 3)
@example([1.0] * 9, 2, 4)
@example([*map(float, range(40))], 7, 5)
def test_pieces_are_cut_as_the_whole_is(kernels, kind, column, max_bins, n_pieces):
    """Pieces may be empty, hold no known value, or share their values with others."""
    column, chosen = np.array(column, kind), kernels()
    (whole,) = binning.cut_columns(column[np.newaxis], [0], ONE, max_bins, chosen)
    begin = np.sort(np.random.default_rng(max_bins).integers(0, len(column) + 1, n_pieces + 1))
    begin[0], begin[-1] = 0, len(column)
    for piece in range(n_pieces):
        column[begin[piece] : begin[piece + 1]].sort()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "N_PIECES", n_pieces)
        pieces = binning.cut_sorted_pieces(column, begin, max_bins, chosen)
    for ours, theirs in zip(pieces, whole, strict=True):
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


@pytest.mark.parametrize(("n_columns", "n_workers"), [(7, 3), (4, 3), (2, 5), (6, 3)])
def test_columns_beyond_full_turns_of_threads_are_sorted_in_pieces(n_columns, n_workers, monkeypatch):
    rng = np.random.default_rng(n_columns)
    columns = [tied_column(rng, 5000, kind) for kind in [*KINDS, *KINDS, *KINDS][:n_columns]]
    kernels, seen, cut = _jit.load_compiled(), [], binning.cut_in_pieces
    alone = bin_columns(columns, ONE, 255, kernels=kernels)
    monkeypatch.setattr(binning, "CELLS_AT_ONCE", 5000)
    monkeypatch.setattr(binning, "LONG_COLUMN", 5000)
    monkeypatch.setattr(binning, "JOINED_AT_ONCE", 700)
    monkeypatch.setattr(binning, "cut_in_pieces", lambda *a: (seen.append(len(a[0])), cut(*a))[1])
    assert_same_bins(alone, bin_columns(columns, ONE, 255, kernels=kernels, n_workers=n_workers))
    weights = np.arange(1, 5001)
    weighted = bin_columns(columns, weights, 255, kernels=kernels, n_workers=n_workers)
    assert_same_bins(bin_columns(columns, weights, 255, kernels=kernels), weighted)
    assert seen == [n_columns % n_workers, 0]  # weights are summed in the order of all values


@pytest.mark.parametrize("column", [[0, 1], [-0.0, 0.0, 3], [-np.inf, np.inf], [2], [np.nan, 1], [0, 1, 2]])
def test_columns_of_two_values_need_no_sorting(column, monkeypatch):
    values = np.resize(np.array(column, np.float64), 40)
    values[:20] = values[0]  # what is rare comes late
    found = binning.cut_two_values(values)
    distinct = np.unique(values + 0.0)
    assert (found is None) == (bool(np.isnan(values).any()) or len(distinct) > 2)
    quick = bin_columns([values], ONE, 255)
    monkeypatch.setattr(binning, "cut_two_values", lambda _: None)
    assert_same_bins(quick, bin_columns([values], ONE, 255))


@pytest.mark.parametrize("max_bins", [7, 255, None])
def test_the_type_of_the_table_does_not_matter(max_bins):
    """Float32 values go their own way, unless a column of the block does not fit them."""
    X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    X[::9] = -0.0
    X[::5, 1] = np.nan
    wide = np.column_stack([X.astype(np.float64), np.arange(2000) / 3])
    kernels = _jit.load_compiled()
    narrow = binning.bin_table(read_columns(X), ONE, max_bins, kernels)
    both = binning.bin_table(read_columns(wide), ONE, max_bins, kernels)
    for j in range(3):
        assert cuts_of(narrow, j).tobytes() == cuts_of(both, j).tobytes()
        np.testing.assert_array_equal(narrow.codes(j), both.codes(j))


@settings(max_examples=50)
@given(strategies.tables(), st.data())
def test_rows_left_out_leave_no_trace(table, data):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=table.n_rows, max_size=table.n_rows)))
    keep[0] = True
    levels = levels_of(table)
    columns = np.array(table.columns)
    weight = np.arange(1, np.count_nonzero(keep) + 1)
    kept = bin_columns(columns, weight, 3, levels, keep=keep)
    assert_same_bins(kept, bin_columns(columns[:, keep], weight, 3, levels))


def test_a_tall_table_is_read_a_few_columns_at_a_time():
    class Watched(ColumnTable):
        widest = 0

        def block(self, start, stop, out=None):
            self.widest = max(self.widest, stop - start)
            return super().block(start, stop, out)

    table = Watched(np.zeros((20, 100)), [None] * 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "CELLS_AT_ONCE", 700)
        for max_bins in (255, None):
            binning.bin_table(table, ONE, max_bins, _jit.interpreted())
    assert table.widest == 7


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3)), min_size=2, max_size=80), st.integers(2, 8))
def test_a_weight_of_two_is_a_row_twice(rows, max_bins):
    values, counts = (np.array(column) for column in zip(*rows, strict=True))
    by_weight = bin_columns([values / 7], counts, max_bins)
    by_rows = bin_columns([np.repeat(values / 7, counts)], ONE, max_bins)
    assert by_weight.edges.tobytes() == by_rows.edges.tobytes()
    np.testing.assert_array_equal(np.repeat(by_weight.codes(0), counts), by_rows.codes(0))


# -------------------------------------------------------------------------------------------------- merged anew


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("n_workers", [1, 3])
def test_mass_of_codes(kernels, n_workers):
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, n, 400).astype(float) for n in (2, 300, 500, 9)]
    columns[1][::3] = np.nan
    bins = bin_columns(columns, max_bins=None)
    mass = rng.integers(0, 2**40, 400)
    found = binning.code_mass(bins, mass, BOTH[kernels](), n_workers)
    expected = [mass[bins.codes(j) == c + 1].sum() for j in range(4) for c in range(bins.features[N_CODES, j])]
    assert found.tolist() == expected


@pytest.mark.parametrize("kernels", BOTH)
@given(
    table=strategies.tables(),
    max_bins=st.sampled_from([2, 3, 5, 300]),
    weight=st.lists(st.integers(1, 9), min_size=strategies.MAX_ROWS, max_size=strategies.MAX_ROWS),
    n_workers=st.sampled_from([1, 2]),
)
def test_merging_exact_codes_by_weight_is_binning_by_weight(kernels, table, max_bins, weight, n_workers):
    kernels = BOTH[kernels]()
    weight = np.array(weight[: table.n_rows])
    exact = bin_columns(table.columns, ONE, None, levels_of(table), kernels=kernels)
    merged = binning.rebin(exact, binning.code_mass(exact, weight, kernels), max_bins, kernels, n_workers)
    assert_same_bins(merged, bin_columns(table.columns, weight, max_bins, levels_of(table), kernels=kernels))


@pytest.mark.parametrize("max_bins", [50, 255, 400])
def test_merging_wide_codes(max_bins, monkeypatch):
    rng = np.random.default_rng(6)
    columns = [tied_column(rng, 4000, kind) for kind in ("normal", "heavy in float32")]
    columns.append(rng.integers(0, 700, 4000).astype(float))
    levels = [None, None, tuple(range(700))]
    weight = rng.integers(1, 1000, 4000)
    kernels = _jit.load_compiled()
    exact = bin_columns(columns, ONE, None, levels, kernels=kernels)
    assert exact.is_wide.all()
    merged = binning.rebin(exact, binning.code_mass(exact, weight, kernels), max_bins, kernels)
    assert_same_bins(merged, bin_columns(columns, weight, max_bins, levels, kernels=kernels))
    monkeypatch.setattr(binning, "MAX_CODES", 1000)  # some codes stand for several values already
    fine = bin_columns(columns, ONE, None, levels, kernels=kernels)
    assert fine.features[IS_BINNED].tolist() == [1, 0, 0]
    merged = binning.rebin(fine, binning.code_mass(fine, weight, kernels), max_bins, kernels, n_workers=2)
    for j, column in enumerate(columns):
        low, high = cuts_of(merged, j)
        for code in (1, len(low) // 3, len(low)):
            inside = column[merged.codes(j) == code]
            assert (inside.min(), inside.max()) == (low[code - 1], high[code - 1])


def test_codes_without_mass_are_merged_with_their_neighbours():
    exact = bin_columns([np.arange(100.0)], ONE, None)
    mass = np.zeros(100, np.int64)
    mass[[10, 20, 30]] = 5
    merged = binning.rebin(exact, mass, 3, _jit.interpreted())
    low, high = cuts_of(merged, 0)
    assert len(low) == 3
    assert [np.count_nonzero((low[k] <= [10, 20, 30]) & (high[k] >= [10, 20, 30])) for k in range(3)] == [1, 1, 1]
    nothing = binning.rebin(exact, np.zeros(100, np.int64), 3, _jit.interpreted())
    assert cuts_of(nothing, 0).tolist() == [[0.0], [99.0]]


# -------------------------------------------------------------------------------------------- equal_density_bins


@given(strategies.tables(has_categories=False, max_features=1), st.integers(2, 9), st.booleans())
def test_thresholds_part_the_bins(table, n_bins, has_weight):
    column = np.array(table.columns[0])
    weight = np.arange(1, len(column) + 1) if has_weight else ONE
    thresholds = spinney.equal_density_bins(column, n_bins, weight if has_weight else None)
    bins = bin_columns([column], weight, n_bins)
    known = ~np.isnan(column)
    np.testing.assert_array_equal(np.searchsorted(thresholds, column[known]) + 1, bins.codes(0)[known])
    assert len(thresholds) == max(int(bins.features[N_CODES, 0]) - 1, 0)


def test_thresholds_are_midpoints():
    assert spinney.equal_density_bins([3, 1, 2, None, 7]).tolist() == [1.5, 2.5, 5.0]
    ulp = math.nextafter(1.0, 2.0)
    assert spinney.equal_density_bins([1.0, ulp]).tolist() == [1.0]
    assert spinney.equal_density_bins([-math.inf, 0.0, math.inf]).tolist() == [-math.inf, 0.0]
    assert spinney.equal_density_bins([math.nan]).tolist() == []
    assert spinney.equal_density_bins([4, 4, 4]).tolist() == []


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=30, unique=True), st.integers(2, 9))
@example([0.0, 5e-324, 1.0, 1.0000000000000002, 1.7976931348623157e308], 9)
@example([-math.inf, -1.7976931348623157e308, 1.7976931348623157e308, math.inf], 9)
def test_thresholds_are_those_that_kernels_place(values, n_bins):
    bins = bin_columns([np.array(values)], max_bins=n_bins)
    place = _jit.interpreted().common.thresholds.place_threshold
    codes = range(1, int(bins.features[N_CODES, 0]))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = [place(bins.features, bins.edges, 0, code, code + 1, is_value=False) for code in codes]
    assert spinney.equal_density_bins(values, n_bins).tolist() == expected


def test_thresholds_of_a_normal_column_are_its_quantiles():
    x = np.random.default_rng(0).normal(size=100_001)
    expected = np.quantile(x, np.arange(1, 10) / 10)
    np.testing.assert_allclose(spinney.equal_density_bins(x, 10), expected, atol=1e-3)
    weight = np.random.default_rng(1).random(100_001)
    order = np.argsort(x)
    at = np.searchsorted(np.cumsum(weight[order]) / weight.sum(), np.arange(1, 10) / 10)
    np.testing.assert_allclose(spinney.equal_density_bins(x, 10, weight), x[order][at], atol=1e-3)


def test_rows_without_weight_take_no_part():
    x = np.arange(100.0)
    weight = np.where(x < 50, 0.0, 0.7)
    assert spinney.equal_density_bins(x, 5, weight).tolist() == spinney.equal_density_bins(x[50:], 5).tolist()


@pytest.mark.parametrize("weight", [1e-300, 1e300, 3.0])
def test_the_unit_of_weights_does_not_matter(weight):
    x = np.random.default_rng(0).normal(size=500)
    expected = spinney.equal_density_bins(x, 20)
    np.testing.assert_array_equal(spinney.equal_density_bins(x, 20, np.full(500, weight)), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], 1), "n_bins=1: give a whole number from 2 to 65,535"),
        (([1.0, 2.0], 65_536), "n_bins=65536"),
        (([1.0, 2.0], 2.5), "n_bins=2.5"),
        (([1.0, 2.0], True), "n_bins=True"),
        (([1.0, 2.0], "ten"), "n_bins='ten'"),
        (([[1.0, 2.0]],), r"x has shape \(1, 2\): give one column"),
        ((3.0,), r"x has shape \(\)"),
        (([],), "x is empty"),
        ((["a", "b"],), "x has dtype <U1: give real numbers"),
        (([1.0, 2j],), "x has dtype complex128"),
        (([1.0, object()],), "x holds something that is not a number"),
        (([1.0, 2.0], 5, [1.0]), "sample_weight has 1 entries for the 2 of x"),
        (([1.0, 2.0], 5, [1.0, -1.0]), r"sample_weight\[1\] is -1.0: weights must be finite and not negative"),
        (([1.0, 2.0], 5, [math.nan, 1.0]), r"sample_weight\[0\] is nan"),
        (([1.0, 2.0], 5, [1.0, math.inf]), r"sample_weight\[1\] is inf"),
        (([1.0, 2.0], 5, [0.0, 0.0]), "sample_weight is zero for every row"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        spinney.equal_density_bins(*arguments)
