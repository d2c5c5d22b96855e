"""The kernels of boosted trees against plain loops."""

import functools
import math
import operator
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import fast
from packed import leaf_score, leaf_value, pack, unpack
from spinney import _jit
from spinney._types import (
    BEST_FIRST,
    BIN_CODE,
    BIN_N,
    BIN_SUM,
    BIN_WEIGHT,
    BOOST_BIN_ROWS,
    BOOST_STATE_SIZE,
    HISTOGRAM_STRIDE,
    N_BATCH,
    N_PARTS,
    NARROW_CODES,
    SHARD_ROWS,
)
from spinney.kernels.common.structs import (
    BoostNodes,
    BoostSettings,
    Bounds,
    ByteRows,
    Column,
    Gradients,
    LeafLinks,
    LeastHessians,
    PackedUnits,
    Part,
    Range,
    RowSums,
)
from spinney.tree.boost import as_nodes, make_boost_scratch, make_node_arrays
from spinney.tree.packed_units import packed_units, power_below
from spinney.tree.row_shards import deal_out

MOST = 2**31  # that the gradients and the hessians of a packed sum stay below

PER_NODE = BoostNodes._fields[: BoostNodes._fields.index("begin")]
N_WORDS_OF_ROWS = [1, 2, 4, 8, 16, 24]


@functools.cache
def opened(module, name, n_arguments):
    """A kernel that only kernels call, compiled for a test."""
    names = ", ".join(f"a{k}" for k in range(n_arguments))
    space = {"kernel": operator.attrgetter(f"{module}.{name}")(fast.compiled())}
    exec(f"def call({names}): return kernel({names})", space)
    return fast.compile_door(space["call"])


@pytest.fixture(params=["compiled", "interpreted"])
def call(request):
    """Call a kernel by module and name."""

    def run(module, name, *arguments):
        if request.param == "compiled":
            return opened(module, name, len(arguments))(*arguments)
        return operator.attrgetter(f"{module}.{name}")(_jit.interpreted())(*arguments)

    run.is_compiled = request.param == "compiled"
    return run


def make_settings(**changes):
    """Settings of a tree without limits; sums are in units of 1."""
    plain = dict.fromkeys(BoostSettings._fields, 0)
    plain |= {"order": BEST_FIRST, "min_samples_leaf": 1, "min_hessian": 1, "most_hessian": 1, "n_shards": 1}
    plain |= {"is_plain": False, "has_monotone": False, "is_post": False, "weights_are_counts": False}
    plain |= {"gradient_unit": 1.0, "hessian_unit": 1.0, "reg_lambda": 0.0, "reg_alpha": 0.0, "gamma": 0.0}
    plain |= {"cat_penalty": 0.0, "square_unit": 1.0}
    return BoostSettings(**{**plain, "cat_smooth": 0.0, **changes})


# ------------------------------------------------------------------------------------------------------- bins in order


def assert_sorts(call, scores, codes):
    n = len(scores)
    bins = np.full((BOOST_BIN_ROWS, n + 2), -7, np.int64)
    bins[BIN_CODE, :n] = codes
    bins[BIN_SUM, :n] = [pack(-code, code) for code in codes]
    kept = np.full(n + 2, math.nan)
    kept[:n] = scores
    call("boost.scan", "sort_bins", bins, kept, n, np.zeros(n + 2), np.zeros(n + 2, np.int64))
    expected = sorted(zip(scores, codes, strict=True))
    assert list(zip(kept[:n].tolist(), bins[BIN_CODE, :n].tolist(), strict=True)) == expected
    assert bins[BIN_SUM, :n].tolist() == [pack(-code, code) for _, code in expected]


KINDS = {
    "spread": lambda rng, n: rng.normal(size=n),
    "equal": lambda _, n: np.full(n, 0.7),
    "few": lambda rng, n: rng.integers(0, 3, n) * 0.1,
    "crowded": lambda rng, n: np.append(rng.normal(size=n), [-1e9, 1e9])[-n:] if n else np.zeros(0),
    "no normal range": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "huge": lambda rng, n: rng.choice([-8e307, 8e307, 1e300, 0.0, -0.0], n),
    "large and small": lambda rng, n: np.exp(rng.uniform(-700, 700, n)) * rng.choice([-1, 1], n),
    "falling": lambda _, n: -np.arange(n) / 3,
}


@pytest.mark.parametrize("n", [0, 1, 2, 24, 25, 26, 66, 90, 700, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_sorted_by_score_then_code(call, kind, n):
    if n > 100 and not call.is_compiled:
        n = 100
    rng = np.random.default_rng(n)
    assert_sorts(call, KINDS[kind](rng, n).tolist(), (rng.permutation(n) + 1).tolist())


def test_scores_whose_range_is_infinite_are_sorted():
    """Interpreted, since it is out of bounds."""
    twin = _jit.interpreted()
    rng = np.random.default_rng(0)
    scores = rng.choice([-1.7e308, 1.7e308, 1e300, 0.0], 80).tolist()
    assert_sorts(lambda _, name, *arguments: getattr(twin.boost.scan, name)(*arguments), scores, list(range(1, 81)))


@settings(max_examples=200)
@given(st.lists(st.floats(-8e307, 8e307), max_size=150), st.randoms(use_true_random=False))
def test_any_scores_are_sorted(scores, random):
    codes = list(range(1, len(scores) + 1))
    random.shuffle(codes)

    def call(module, name, *arguments):
        return opened(module, name, len(arguments))(*arguments)

    assert_sorts(call, scores, codes)


# ---------------------------------------------------------------------------------------- rows of bytes, and their sums


class SimpleBatch(NamedTuple):
    """What `shards_of` reads of a batch."""

    begin: np.ndarray


class SimpleFrontier(NamedTuple):
    """What `shards_of` reads of a frontier."""

    batch: SimpleBatch
    state: np.ndarray


class RandomRows:
    """Random rows of `n_words` words with packed sums, ids and the code of one feature at a place."""

    def __init__(self, n_rows, n_words, seed=0):
        rng = np.random.default_rng(seed)
        self.codes = rng.integers(0, 256, n_rows * n_words * 8).astype(np.uint8)
        self.words = self.codes.view(np.uint64)
        self.sums = (rng.integers(-1000, 1000, n_rows) << 32) + rng.integers(1, 1000, n_rows)
        self.ids = rng.permutation(n_rows).astype(np.int32)
        self.rows = ByteRows(self.codes, self.words, self.sums, self.ids)
        self.n_words = n_words

    @property
    def by_byte(self):
        return self.codes.reshape(-1, 8 * self.n_words)

    def feature(self, place, *, is_wide):
        code = self.by_byte[:, place].astype(np.int64)
        return code + 256 * self.by_byte[:, place + 1].astype(np.int64) if is_wide else code


def own_bytes(n_words, place, is_wide):
    return Column(n_words, place, is_wide, -1, 0, 0)


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n_words", N_WORDS_OF_ROWS)
def test_rows_move_to_their_branches(call, n_words, is_wide):
    """Branch 0 in order upwards, branch 1 downwards; nothing else is touched."""
    n, lo, hi, left, right = 60, 7, 53, 11, 80  # 46 rows, of which 57 places on are written from both ends
    right = left + (hi - lo)
    for place, n_moved in ((0, n_words), (2, n_words), (8 * n_words - 2, n_words), (0, 1)):
        rows = RandomRows(n, n_words, place)
        goes_left = np.random.default_rng(place).integers(0, 2, 65_536).astype(np.uint8)
        words, sums, ids = np.full(90 * n_moved, 9, np.uint64), np.full(90, -9), np.full(90, -9, np.int32)
        to = ByteRows(words.view(np.uint8), words, sums, ids)
        column, room = own_bytes(n_words, place, is_wide), Part(left, right)
        middle = call("boost.rows", "move_rows", rows.rows, lo, hi, to, room, column, n_moved, goes_left)
        go = goes_left[rows.feature(place, is_wide=is_wide)[lo:hi]] != 0
        taken = np.concatenate([np.flatnonzero(go), np.flatnonzero(~go)[::-1]]) + lo
        assert middle == left + np.count_nonzero(go)
        np.testing.assert_array_equal(ids[left:right], rows.ids[taken])
        np.testing.assert_array_equal(sums[left:right], rows.sums[taken])
        moved = words.reshape(90, n_moved)
        np.testing.assert_array_equal(moved[left:right], rows.words.reshape(n, n_words)[taken, :n_moved])
        for array in (ids, sums):
            assert np.all(np.delete(array, np.s_[left:right]) == -9)
        table = rows.rows._replace(ids=rows.ids[:0])  # whose rows have no numbers written down
        assert call("boost.rows", "move_rows", table, lo, hi, to, room, column, n_moved, goes_left) == middle
        np.testing.assert_array_equal(ids[left:right], taken)
        assert np.all(np.delete(moved, np.s_[left:right], axis=0) == 9)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(("n_words", "is_wide"), [(1, False), (2, True), (4, False), (5, False), (8, True)])
def test_rows_change_places_within_a_node(call, n_words, is_wide, is_last):
    """Those that go left come first, each row stays whole, and nothing else is touched."""
    n, lo = 420, 7
    for size in (0, 1, 2, 3, 64, 65, 129, 400):
        for share in (0.0, 0.05, 0.7, 1.0) if size > 3 else (0.5,):
            rows = RandomRows(n, n_words, size)
            place, hi = 8 * n_words - 2, lo + size
            goes_left = (np.random.default_rng(size).random(65_536) < share).astype(np.uint8)
            before = [rows.words.reshape(n, n_words).copy(), rows.sums.copy(), rows.ids.copy()]
            go = goes_left[rows.feature(place, is_wide=is_wide)] != 0
            middle = call(
                "boost.rows", "part_rows", rows.rows, lo, hi, own_bytes(n_words, place, is_wide), goes_left, is_last
            )
            assert middle == lo + np.count_nonzero(go[lo:hi])
            place_of = {number: k for k, number in enumerate(before[2].tolist())}
            taken = np.array([place_of[number] for number in rows.ids.tolist()])
            np.testing.assert_array_equal(np.sort(taken), np.arange(n))
            assert np.all(taken[:lo] == np.arange(lo))
            assert np.all(taken[hi:] == np.arange(hi, n))
            assert np.all(go[taken[lo:middle]])
            assert not np.any(go[taken[middle:hi]])
            taken = np.arange(n) if is_last else taken
            np.testing.assert_array_equal(rows.words.reshape(n, n_words), before[0][taken])
            np.testing.assert_array_equal(rows.sums, before[1][taken])


def summed(codes, sums, n_codes):
    histogram = np.zeros(n_codes, np.int64)
    np.add.at(histogram, codes, sums)
    return histogram


@pytest.mark.parametrize("n_words", N_WORDS_OF_ROWS)
def test_cells_are_sums_by_code(call, n_words):
    n, lo, hi, first = 50, 3, 48, 5
    rows = RandomRows(n, n_words)
    for n_narrow in {0, 1, 7, 8, 9, 8 * n_words - 1, 8 * n_words} & set(range(8 * n_words + 1)):
        before = np.random.default_rng(1).integers(-9, 9, first + n_narrow * HISTOGRAM_STRIDE + 3)
        expected = before.copy()
        for j in range(n_narrow):
            histogram = summed(rows.by_byte[lo:hi, j], rows.sums[lo:hi], NARROW_CODES)
            expected[first + j * HISTOGRAM_STRIDE :][:NARROW_CODES] += histogram
        found = before.copy()
        call("boost.rows", "add_rows", rows.rows, lo, hi, n_words, n_narrow, found, first)
        np.testing.assert_array_equal(found, expected)


def test_cells_of_some_features_and_of_wide_ones(call):
    n, lo, hi, first, n_words = 50, 3, 48, 5, 3
    rows = RandomRows(n, n_words)
    used = np.array([0, 4, 5, 19])
    histogram = np.zeros(first + 24 * HISTOGRAM_STRIDE, np.int64)
    call("boost.rows", "add_some", rows.rows, lo, hi, n_words, used, histogram, first)
    expected = np.zeros_like(histogram)
    for j in used:
        at = first + j * HISTOGRAM_STRIDE
        expected[at : at + NARROW_CODES] = summed(rows.by_byte[lo:hi, j], rows.sums[lo:hi], NARROW_CODES)
    np.testing.assert_array_equal(histogram, expected)
    for place in (6, 22):
        code = rows.feature(place, is_wide=True)[lo:hi]
        histogram = np.zeros(first + 65_536, np.int64)
        call("boost.rows", "add_one", rows.rows, lo, hi, own_bytes(n_words, place, True), histogram, first)
        np.testing.assert_array_equal(histogram[first:], summed(code, rows.sums[lo:hi], 65_536))


def test_codes_of_wide_features_are_listed_as_they_are_met(call):
    rows = RandomRows(60, 2)
    rows.by_byte[:, 5] %= 2
    rows.by_byte[:, 4] %= 8  # 16 codes
    code = rows.feature(4, is_wide=True)
    histogram, bins = np.zeros(600, np.int64), np.zeros((BOOST_BIN_ROWS, 20), np.int64)
    n_met = 0
    for lo, hi in ((0, 0), (0, 20), (20, 60)):
        n_met = call("boost.rows", "add_wide", rows.rows, lo, hi, own_bytes(2, 4, True), histogram, bins, n_met)
    assert bins[BIN_CODE, :n_met].tolist() == list(dict.fromkeys(code.tolist()))
    np.testing.assert_array_equal(histogram, summed(code, rows.sums, 600))


@pytest.mark.parametrize("is_wide", [False, True])
def test_rows_and_weights_are_counted_by_code(call, is_wide):
    rows = RandomRows(50, 2)
    code = rows.feature(6, is_wide=is_wide)[4:41]
    for weights in (np.ones(1, np.int64), np.random.default_rng(0).integers(1, 99, 50)):
        counts = np.zeros(65_536, np.int64), np.zeros(65_536, np.int64)
        call("boost.rows", "count_rows", rows.rows, 4, 41, own_bytes(2, 6, is_wide), weights, *counts)
        np.testing.assert_array_equal(counts[0], np.bincount(code, minlength=65_536))
        mine = np.resize(weights, 50)[rows.ids[4:41]]
        np.testing.assert_array_equal(counts[1], np.bincount(code, mine, minlength=65_536))
        table, counts = rows.rows._replace(ids=rows.ids[:0]), (np.zeros(65_536, np.int64), np.zeros(65_536, np.int64))
        call("boost.rows", "count_rows", table, 4, 41, own_bytes(2, 6, is_wide), weights, *counts)
        np.testing.assert_array_equal(counts[1], np.bincount(code, np.resize(weights, 50)[4:41], minlength=65_536))
        alone = np.zeros(65_536, np.int64)
        call("boost.rows", "count_codes", rows.rows, 4, 41, own_bytes(2, 6, is_wide), alone)
        np.testing.assert_array_equal(alone, counts[0])


def test_codes_of_a_shared_byte(call):
    """Two features share a byte: three codes with the usual one in the middle, then two; the rest is another's."""
    three, two = Column(1, 0, False, 1, 2, 3), Column(1, 0, False, 3, 1, 2)
    assert [call("boost.rows", "decode", code, three) for code in range(6)] == [2, 1, 3, 2, 2, 2]
    assert [call("boost.rows", "decode", code, two) for code in range(6)] == [1, 1, 1, 2, 1, 1]
    for column in (three, two, own_bytes(1, 0, False)):
        for code in {1, 2, 3} - {column.usual}:
            if column.base < 0 or code <= column.n_codes:
                assert call("boost.rows", "decode", call("boost.rows", "encode", code, column), column) == code


def test_rows_of_a_shared_byte_are_counted_by_code(call):
    rows = RandomRows(50, 2)
    rows.by_byte[:, 6] %= 6
    column = Column(2, 6, False, 1, 2, 3)
    counts = np.zeros(256, np.int64), np.zeros(256, np.int64)
    call("boost.rows", "count_rows", rows.rows, 4, 41, column, np.ones(1, np.int64), *counts)
    code = np.array([2, 1, 3, 2, 2, 2])[rows.by_byte[4:41, 6]]
    np.testing.assert_array_equal(counts[0], np.bincount(code, minlength=256))
    alone = np.zeros(256, np.int64)
    call("boost.rows", "count_codes", rows.rows, 4, 41, column, alone)
    np.testing.assert_array_equal(alone, counts[0])


@pytest.mark.parametrize("is_wide", [False, True])
def test_codes_in_a_range_are_counted_until_there_are_enough(call, is_wide):
    rows = RandomRows(200, 2)
    rows.by_byte[:, 6] %= 6
    rows.by_byte[:, 7] %= 2
    code = rows.feature(6, is_wide=is_wide)[4:180]
    for first, last in ((0, 2), (2, 4), (5, 5), (0, 65_535)):
        n = np.count_nonzero((code >= first) & (code <= last))
        ranges = rows.rows, 4, 180, own_bytes(2, 6, is_wide), Range(first, last)
        assert call("boost.rows", "count_enough", *ranges, 0, 0, 1000) == (n, len(code) - n)
        assert call("boost.rows", "count_enough", *ranges, 3, 5, 1000) == (n + 3, len(code) - n + 5)
        inside, outside = call("boost.rows", "count_enough", *ranges, 0, 0, 7)
        assert (min(inside, outside) >= 7) == (min(n, len(code) - n) >= 7)
        assert inside + outside <= len(code)


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=16), st.integers(2, 40), st.integers(1, 8), st.integers(1, 900)
)
def test_shards_of_a_batch_are_dealt_out(sizes, n_threads, per_thread, piece_rows):
    """Each shard of a node is one thread's; a thread has but one node whose first shard is another's."""
    n_shards = per_thread * n_threads
    state = np.zeros(BOOST_STATE_SIZE, np.int64)
    state[N_BATCH] = len(sizes)
    frontier = SimpleFrontier(SimpleBatch(np.array([0, *accumulate(sizes)])), state)
    settings = make_settings(n_threads=n_threads, n_shards=n_shards, piece_rows=piece_rows)
    n_parts = opened("boost.driver", "count_parts", 2)(frontier, settings)
    assert n_parts == min(max(sum(sizes) // piece_rows, 1), n_threads)
    state[N_PARTS] = n_parts
    shards_of = opened("boost.batch", "shards_of", 4)
    parts = [[shards_of(t, k, frontier, settings) for k in range(len(sizes))] for t in range(n_threads)]
    for k, n_rows in enumerate(sizes):
        taken = [part for part in (mine[k] for mine in parts) if part.begin < part.end]
        assert [shard for part in taken for shard in range(*part)] == list(range(n_shards))
        assert len(taken) == 1 or n_rows >= 2 * piece_rows
    assert all(part.begin == part.end for mine in parts[n_parts:] for part in mine)
    for mine in parts:
        assert sum(0 < part.begin < part.end for part in mine) <= 1
    if min(sizes) >= 2 * piece_rows and sum(sizes) >= n_threads * piece_rows:
        rows = [
            sum((part.end - part.begin) / n_shards * n for part, n in zip(mine, sizes, strict=True)) for mine in parts
        ]
        assert max(rows) <= sum(sizes) / n_threads + 2 * max(sizes) / n_shards


# ------------------------------------------------------------------------------------------------------------ best cuts


def all_cuts(parts, missing):
    """Every cut of (g, h) parts in their order: last part of branch 0, branch of missing values or -1, its sums."""
    lefts = list(accumulate(parts, lambda a, b: (a[0] + b[0], a[1] + b[1])))
    if missing is None:
        return [(k, -1, left) for k, left in enumerate(lefts)]
    g, h = missing
    return [(k, 1, left) for k, left in enumerate(lefts)] + [(k, 0, (a + g, b + h)) for k, (a, b) in enumerate(lefts)]


def rest_of(left, parts, missing):
    everything = [*parts, *([] if missing is None else [missing])]
    return sum(g for g, _ in everything) - left[0], sum(h for _, h in everything) - left[1]


NUMBERS = st.one_of(st.integers(-9, 9), st.integers(-(2**20), 2**20), st.sampled_from([0, 1, -1]))
PARTS = st.lists(st.tuples(NUMBERS, st.integers(1, 9) | st.integers(1, 2**20)), min_size=0, max_size=12)
MISSING = st.none() | st.tuples(NUMBERS, st.integers(1, 40))


LEAST = st.integers(1, 12) | st.integers(1, 2**20)


@settings(max_examples=150)
@given(PARTS, MISSING, LEAST, LEAST, st.sampled_from([0.0, 0.5, 3.0]), st.data())
@example(parts=[(3, 1)], missing=(-2, 1), left_least=1, right_least=1, reg_lambda=0.0, data=None)  # known, missing
@example(parts=[(3, 1)], missing=None, left_least=1, right_least=1, reg_lambda=0.0, data=None)
def test_the_scan_of_cells_finds_the_best_cut(parts, missing, left_least, right_least, reg_lambda, data):
    codes = list(range(1, len(parts) + 1))
    if data is not None:
        codes = sorted(data.draw(st.lists(st.integers(1, 255), min_size=len(parts), max_size=len(parts), unique=True)))
    total = pack(*rest_of((0, 0), parts, missing))
    scored = []
    for k, branch, left in all_cuts(parts, missing):
        right = rest_of(left, parts, missing)
        if left[1] >= left_least and right[1] >= right_least:
            lam = Fraction(reg_lambda)
            score = Fraction(left[0] ** 2) / (left[1] + lam) + Fraction(right[0] ** 2) / (right[1] + lam)
            scored.append((score / 2, k, branch, left))
    least = LeastHessians(left_least, right_least)
    options = make_settings(reg_lambda=reg_lambda)
    room = make_boost_scratch(NARROW_CODES, 1).histogram_scan
    low, high = (codes[0], codes[-1]) if codes else (1, 1)
    for first, last in {(1, high), (1, 255), (low, high), (max(low - 9, 1), min(high + 9, 255))}:
        histogram = np.full(3 + NARROW_CODES, 77, np.int64)  # outside of the span there may be anything
        histogram[3 + first : 4 + last] = 0
        histogram[[3 + code for code in codes]] = [pack(*part) for part in parts]
        histogram[3] = 0 if missing is None else pack(*missing)
        for scan in (opened("boost.scan", "scan_histogram", 8), _jit.interpreted().boost.scan.scan_histogram):
            arguments = histogram, 3, Range(first, last), total, least
            found, span = scan(*arguments, -math.inf, room, options)
            if codes:
                assert first <= span[0] <= low <= span[0] + 7
                assert span[1] - 7 <= high <= span[1] <= last
            gain, cut, following, branch, left = found
            assert scan(*arguments, gain, room, options)[0][:2] == (gain, -1 if scored else 0)
            if not scored:
                assert gain == -math.inf
                continue
            assert scan(*arguments, np.nextafter(gain, -math.inf), room, options)[0] == found
            best = max(score for score, *_ in scored)
            at = codes.index(cut)
            (mine,) = [item for item in scored if item[1:3] == (at, branch)]
            assert unpack(left) == (mine[3][0], mine[3][1])
            assert following == (codes[at + 1] if at + 1 < len(codes) else -1)
            assert gain == pytest.approx(float(best), rel=1e-13, abs=1e-300)
            assert float(mine[0]) == pytest.approx(float(best), rel=1e-13, abs=1e-300)
            # of cuts that part the rows alike, the first
            alike = [item for item in scored if item[3] in (mine[3], rest_of(mine[3], parts, missing))]
            assert alike[0] is mine


@settings(max_examples=150)
@given(
    PARTS, MISSING, st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=13, max_size=13),
    st.fixed_dictionaries({
        "min_hessian": st.integers(1, 12), "reg_lambda": st.sampled_from([0.0, 0.5]),
        "reg_alpha": st.sampled_from([0.0, 1.0, 6.5]), "min_samples_leaf": st.integers(1, 12),
        "min_weight_leaf": st.integers(0, 12),
    }),
    st.booleans(), st.sampled_from([-1, 0, 1]), st.sampled_from([(-math.inf, math.inf), (-0.5, 2.0), (0.25, 0.25)]),
    st.sampled_from([1, 3, 99]),
)  # fmt: skip
def test_the_scan_of_groups_finds_the_best_cut(parts, missing, counts, options, is_counted, direction, bounds, most):
    n = len(parts)
    assume(options["reg_lambda"] == 0.0 or n > 0)
    bins = np.zeros((BOOST_BIN_ROWS, n + 1), np.int64)
    bins[BIN_CODE, :n] = np.arange(1, n + 1)
    bins[BIN_SUM, :n] = [pack(*part) for part in parts]
    bins[BIN_N, :n] = [rows for rows, _ in counts[:n]]
    bins[BIN_WEIGHT, :n] = [weight for _, weight in counts[:n]]
    n_missing, w_missing = (0, 0) if missing is None else counts[n]
    n_all, w_all = (sum(pair[k] for pair in counts[:n]) + (n_missing, w_missing)[k] for k in (0, 1))
    penalty = options["reg_lambda"], options["reg_alpha"]
    cuts = []
    for k, branch, left in all_cuts(parts, missing):
        right = rest_of(left, parts, missing)
        n_left, w_left = (sum(pair[i] for pair in counts[: k + 1]) + (branch == 0) * (n_missing, w_missing)[i]
                          for i in (0, 1))  # fmt: skip
        is_large = min(left[1], right[1]) >= options["min_hessian"] and min(k + 1, n - k - 1) <= most
        if is_counted:
            is_large &= min(n_left, n_all - n_left) >= options["min_samples_leaf"]
            is_large &= min(w_left, w_all - w_left) >= options["min_weight_leaf"]
        if is_large:
            values = [leaf_value(sums, *penalty, *bounds) for sums in (left, right)]
            score = leaf_score(left, values[0], *penalty) + leaf_score(right, values[1], *penalty)
            slope = direction * (values[1] - values[0])
            assume(slope >= 0 or slope < -Fraction(1, 10**9))  # rounding must not decide
            if slope >= 0:
                cuts.append((score, k, branch, left))
    whole = RowSums(pack(*rest_of((0, 0), parts, missing)), n_all if is_counted else 0, w_all if is_counted else 0, 0.0)
    unknown = RowSums(0 if missing is None else pack(*missing), n_missing, w_missing, 0.0)
    is_plain = options["reg_alpha"] == direction == 0 and bounds[0] == -math.inf
    limits = make_settings(is_plain=is_plain, **options)
    for scan in (opened("boost.scan", "scan_bins", 8), _jit.interpreted().boost.scan.scan_bins):
        gain, cut, following, branch, left = scan(bins, n, whole, unknown, Bounds(*bounds), direction, most, limits)
        assert following == (cut + 1 if 0 <= cut < n - 1 else -1)
        if not cuts:
            assert (gain, cut) == (-math.inf, -1)
            continue
        best = max(score for score, *_ in cuts)
        (mine,) = [item for item in cuts if item[1:3] == (cut, branch)]
        assert unpack(left) == mine[3]
        scale = sum(abs(g) * max(map(abs, bounds)) if math.isfinite(bounds[0]) else 0 for g, _ in parts)
        assert gain == pytest.approx(float(mine[0]), rel=1e-12, abs=1e-12 * scale + 1e-300)
        assert float(mine[0]) == pytest.approx(float(best), rel=1e-12, abs=1e-12 * scale + 1e-300)


@given(
    st.lists(st.tuples(NUMBERS, st.integers(1, 9) | st.integers(1, 2**20)), min_size=1, max_size=6),
    st.none() | st.tuples(NUMBERS, st.integers(1, 40)),
    st.sampled_from([0.0, 0.25, 1.0, 50.0]),
    st.integers(0, 6),
)
@example([(3, 1), (-3, 1)], None, 0.0, 1)  # two levels: the bound is the gain of their one cut
def test_no_cut_of_levels_scores_more_than_they_do_apart(parts, missing, reg_lambda, empty):
    codes = [0 if missing is None else pack(*missing), *(pack(*part) for part in parts)]
    codes.insert(min(empty, len(parts)) + 1, 0)  # a level that no row has
    all_parts = parts if missing is None else [*parts, missing]
    options = make_settings(reg_lambda=reg_lambda)
    bounds = [
        scan(np.array([7, *codes]), 1, Range(1, len(codes) - 1), reg_lambda / len(codes), options)
        for scan in (opened("boost.scan", "score_apart", 5), _jit.interpreted().boost.scan.score_apart)
    ]
    assert bounds[0] == bounds[1]
    for chosen in range(1 << len(all_parts)):
        sides = [[part for k, part in enumerate(all_parts) if (chosen >> k & 1) == side] for side in (0, 1)]
        sums = [(sum(g for g, _ in side), sum(h for _, h in side)) for side in sides if side]
        score = sum(Fraction(g) ** 2 / (h + Fraction(reg_lambda)) for g, h in sums)
        assert score <= Fraction(bounds[0]) * (1 + Fraction(1, 2**30))
    if reg_lambda == 0.0:  # and they do score as much
        exact = sum(Fraction(g) ** 2 / h for g, h in all_parts)
        assert bounds[0] == pytest.approx(float(exact), rel=1e-12)


def test_levels_are_scored_by_gradient_per_smoothed_hessian(call):
    bins = np.zeros((BOOST_BIN_ROWS, 3), np.int64)
    bins[BIN_SUM] = [pack(-6, 8), pack(5, 2), pack(0, 1)]
    scores = np.zeros(3)
    options = make_settings(gradient_unit=0.5, hessian_unit=0.25, cat_smooth=2.0)
    call("boost.scan", "score_levels", bins, 3, scores, options)
    assert scores.tolist() == [-3.0 / 4.0, 2.5 / 2.5, 0.0]


# ----------------------------------------------------------------------------------------------------- units and shards


@given(st.floats(1e-300, 1e300) | st.floats(0.5, 2.0**31), st.floats(2.0, 2.0**62))
@example(limit=2.0**31, total=2.0**31)
@example(limit=2.0**31, total=math.nextafter(2.0**31, 0.0))
@example(limit=3.0, total=5e-324)
def test_the_power_is_the_greatest_that_stays_below_the_limit(total, limit):
    power = power_below(limit, total)
    assert math.frexp(power)[0] == 0.5
    assert Fraction(total) * Fraction(power) < Fraction(limit)
    assert power == 2.0**1000 or 2 * Fraction(total) * Fraction(power) >= Fraction(limit)


def test_no_gradient_needs_no_unit():
    assert power_below(8.0, 0.0) == 1.0
    assert packed_units(0.0, 5.0, 0.0) == (1.0, 2.0**28)


SIZES = st.one_of(st.floats(-1.0, 1.0), st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1e-30, 1e6]))


@st.composite
def derivatives(draw):
    n = draw(st.integers(1, 40))
    g = draw(st.lists(SIZES, min_size=n, max_size=n))
    h = draw(st.lists(SIZES.map(lambda x: max(abs(x), 1e-16)), min_size=n, max_size=n))
    whole = st.lists(st.integers(1, 1000).map(float), min_size=n, max_size=n)
    any_weight = st.lists(st.floats(1e-6, 1e6), min_size=n, max_size=n)
    weight = draw(st.none() | whole | any_weight)
    is_whole = weight is None or all(w == int(w) for w in weight)
    return np.array(g), np.array(h), None if weight is None else np.array(weight), is_whole


@settings(max_examples=150)
@given(derivatives(), st.booleans(), st.integers(0, 2**63))
def test_packed_sums_never_overflow(case, is_random, key):
    """Whatever the sizes and however they are rounded: neither half of any sum runs into the other."""
    g, h, weight, is_whole = case
    n = len(g)
    w = np.ones(n) if weight is None else weight
    sum_g, sum_h = (math.fsum(w * np.abs(x)) for x in (g, h))
    assume(math.isfinite(sum_g) and math.isfinite(sum_h))
    units = packed_units(sum_g, sum_h, math.fsum(w) if is_whole else float(n))
    sums = np.zeros(n, np.int64)
    gradients = Gradients(g, h, np.ones(1) if weight is None else weight, is_whole)
    pack_rows = fast.compiled().boost.pack_gradients.pack
    total, largest = pack_rows(0, n, gradients, units, is_random, np.uint64(key), sums)
    halves = [unpack(v) for v in sums]
    all_g, all_h = [a for a, _ in halves], [b for _, b in halves]
    assert unpack(total) == (sum(all_g), sum(all_h))
    assert sum(map(abs, all_g)) < MOST
    assert sum(all_h) < MOST
    assert largest == max(all_h)
    assert min(all_h) >= 1
    room = w if is_whole else np.ones(n)
    for found, x, unit, least in ((all_g, g, units.gradient, None), (all_h, h, units.hessian, 1.0)):
        exact = x * unit * w
        if least is not None:
            exact = np.maximum(exact, least * room)
        np.testing.assert_array_less(np.abs(np.array(found) - exact), room * (1.0 if is_random else 0.5) + 1e-9)


def test_rounding_up_has_room():
    """Sums just below the limit, of many rows that are all rounded up: halves, and hessians of next to nothing."""
    n = 1001
    for each in ((1e6 + 0.5, 1e-16), (-1e6 - 0.5, 2e6 + 0.5)):
        g, h = (np.append(np.full(n - 1, x), math.copysign(MOST - 3 - (n - 1) * abs(x), x)) for x in each)
        assert math.fsum(np.abs(g)) == MOST - 3
        sums = np.zeros(n, np.int64)
        units = packed_units(math.fsum(np.abs(g)), math.fsum(h), float(n))
        gradients = Gradients(g, h, np.ones(1), True)
        fast.compiled().boost.pack_gradients.pack(0, n, gradients, units, False, np.uint64(0), sums)
        halves = [unpack(v) for v in sums]
        assert sum(abs(a) for a, _ in halves) < MOST
        assert sum(b for _, b in halves) < MOST


def test_random_rounding_does_not_lean():
    n = 200_000
    gradients, units = Gradients(np.full(n, 0.3), np.full(n, 2.75), np.ones(1), False), PackedUnits(1.0, 1.0)
    sums = np.zeros(n, np.int64)
    k = fast.compiled().boost.pack_gradients
    total, _ = k.pack(0, n, gradients, units, True, np.uint64(5), sums)
    found = np.array([unpack(total)]) / n
    np.testing.assert_allclose(found, [[0.3, 2.75]], atol=6 * 0.5 / math.sqrt(n))
    again = sums.copy()
    for lo in range(0, n, 4096):  # in parts: the same rows round the same way
        k.pack(lo, min(lo + 4096, n), gradients, units, True, np.uint64(5), again)
    np.testing.assert_array_equal(sums, again)


@pytest.mark.parametrize("n_shards", [1, 2, 3, 8])
@pytest.mark.parametrize("n_rows", [1, 1023, 1024, 1025, 2048, 3000, 8192, 8193, 50_001])
def test_runs_of_rows_go_round(n_rows, n_shards):
    owner = np.arange(n_rows) // SHARD_ROWS % n_shards if n_shards > 1 else np.zeros(n_rows, int)
    expected = [0, *accumulate(np.bincount(owner, minlength=n_shards).tolist())]
    assert deal_out(n_rows, n_shards).tolist() == expected


# -------------------------------------------------------------------------------------------------------------- pruning


@st.composite
def grown_trees(draw):
    """First children in the order of growth, and a gain for each inner node."""
    first = [0]
    open_nodes = [0]
    for _ in range(draw(st.integers(0, 25))):
        node = open_nodes.pop(draw(st.integers(0, len(open_nodes) - 1)))
        first[node] = len(first)
        open_nodes += [len(first), len(first) + 1]
        first += [0, 0]
    gains = st.one_of(st.floats(-5.0, 1.0), st.sampled_from([0.0, -0.0, -1.0, 1.0]))
    return first, [draw(gains) if child else 0.0 for child in first]


def pruned(first, gain, node):
    """The children that are left, as nested pairs (node, left, right); a leaf is (node,)."""
    if not first[node]:
        return (node,)
    left, right = (pruned(first, gain, first[node] + b) for b in (0, 1))
    if gain[node] < 0.0 and len(left) == len(right) == 1:
        return (node,)
    return node, left, right


def listed(tree):
    return [tree, *(below for child in tree[1:] for below in listed(child))]


def grown_below(first, node):
    return [node] if not first[node] else [v for b in (0, 1) for v in grown_below(first, first[node] + b)]


@settings(max_examples=200)
@given(grown_trees())
def test_pruning_is_the_recursive_one(case):
    first, gain = case
    n = len(first)
    for is_post, closer in ((False, _jit.interpreted()), (True, _jit.interpreted()), (True, fast.compiled())):
        nodes = as_nodes(make_node_arrays(n, 1), np.zeros(n, np.int64), np.zeros(0, np.uint64))
        for at, name in enumerate(PER_NODE):
            getattr(nodes, name)[:] = 1000 * (at + 1) + np.arange(n)
        nodes.first_child[:] = first
        nodes.test[:] = [5 * node + 3 if child else 0 for node, child in enumerate(first)]
        nodes.gain[:] = gain
        before = BoostNodes._make(each.copy() for each in nodes)
        links = LeafLinks._make(np.full((4, n), 99, np.int64))
        n_left = closer.boost.leaf_values.close_tree(nodes, n, is_post, links)
        kept = sorted(listed(pruned(first, gain, 0) if is_post else pruned(first, [1.0] * n, 0)))
        number = {tree[0]: at for at, tree in enumerate(kept)}
        assert n_left == len(kept)
        for tree in kept:
            node, at = tree[0], number[tree[0]]
            is_new_leaf = len(tree) == 1
            assert nodes.first_child[at] == (0 if is_new_leaf else number[first[node]])
            assert nodes.test[at] == (0 if is_new_leaf else before.test[node])
            assert nodes.gain[at] == (0.0 if is_new_leaf else gain[node])
            for name in set(PER_NODE) - {"first_child", "test", "gain"}:
                assert getattr(nodes, name)[at] == getattr(before, name)[node]
        target = {leaf: number[tree[0]] for tree in kept if len(tree) == 1 for leaf in grown_below(first, tree[0])}
        assert links.target.tolist() == [target.get(node, -1) for node in range(n)]
