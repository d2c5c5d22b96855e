"""The fast searches of classes and of plain squared error choose what the general search chooses."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import naive
import strategies
from spinney import _jit
from spinney._types import (
    ALL,
    CLASS_ROWS,
    LEARNED,
    MOST_BUCKETS,
    MOST_PAIR_WEIGHT,
    PAIR_LANES,
    PAIR_ROWS,
    PRESENT,
    S_ALL,
    TOTALS_SIZE,
    W_ALL,
)
from spinney.kernels.common.structs import Candidate, OpenNode, PackedScratch, Scratch
from spinney.table.coding import code_table
from spinney.table.fixed_point import bag_target, class_target, fix_weights, value_target, with_room
from spinney.tree import grow, grow_params
from spinney.tree.workspace import make_classes

ALWAYS, NEVER = 0, 10**9  # values of PACKED_SHARE: pack whatever share of the features is searched, or never
WAYS = {  # PACKED_SHARE, and settings to overrule
    "no packing, but lists": (NEVER, {}),
    "no packing, no lists": (ALWAYS, {"is_packed": False}),
    "packing, but all else by bins": (ALWAYS, {"is_plain": False}),
    "bins from lists": (NEVER, {"is_plain": False}),
    "bins": (ALWAYS, {"is_packed": False, "is_plain": False}),
}
NOTHING = -1e300


def grow_settled(table, share, overruled, **parameters):
    """Grow with some of the fast searches switched on or off; also return the settings that were used."""
    make_settings, used = grow.make_settings, []

    def settle(*arguments, is_light):
        used.append(make_settings(*arguments, is_light=is_light)._replace(**overruled))
        return used[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grow_params, "PACKED_SHARE", share)
        patch.setattr(grow, "make_settings", settle)
        return fast.grow_table(table, **parameters), used[0]


def grow_fast(table, **parameters):
    """Grow with the fast searches wherever they serve: a comparison where none does would show nothing."""
    tree, used = grow_settled(table, ALWAYS, {}, **parameters)
    assert used.is_packed if table.n_classes else used.is_plain
    tree.check()
    return tree


def grow_by(way, table, **parameters):
    share, overruled = WAYS[way]
    return grow_settled(table, share, overruled, **parameters)[0]


# ---------------------------------------------------------------------------------------------- larger tables


def draw_numbers(rng, n, kind):
    """A column of n numbers: how its codes are spread decides which way the search goes."""
    match kind:
        case "distinct":
            return rng.normal(size=n)
        case "few":
            return rng.integers(0, 7, n).astype(float)
        case "as many as rows":
            return rng.integers(0, n, n).astype(float)
        case "pairs":
            return (rng.permutation(n) // 2).astype(float)
        case "bunched":  # most rows at one value, the others far apart, one beyond all of them
            column = np.where(rng.random(n) < 0.8, 0.0, np.exp(4 * rng.normal(size=n)))
            column[rng.integers(n)] = 1e300
            return column
        case "steps":
            return np.round(rng.normal(size=n), 1)
    raise ValueError(kind)


NUMBERS = ["distinct", "few", "as many as rows", "pairs", "bunched", "steps"]


def mixed_table(n, n_classes, *, seed, heaviest=1, signal=1.0, share_missing=0.0, n_levels=(), is_doubled=False):
    """All kinds of numbers, and a category for each of `n_levels`; whole weights 1 .. heaviest."""
    rng = np.random.default_rng(seed)
    columns = [draw_numbers(rng, n, kind) for kind in NUMBERS]
    columns += [rng.integers(0, k, n).astype(float) for k in n_levels]
    if is_doubled:  # every row but the last has a twin, which may be of another class
        half = n // 2
        for column in columns:
            column[half : 2 * half] = column[:half]
    ranks = [np.argsort(np.argsort(column)) / n for column in columns]
    score = signal * sum((j + 1) * rank for j, rank in enumerate(ranks)) + rng.normal(size=n)
    y = score if n_classes is None else np.argsort(np.argsort(score)) * n_classes // n
    if signal == 0.0 and n_classes is not None:
        y = rng.integers(0, n_classes, n)
    for j, column in enumerate(columns):
        if j % 2 == 0:
            column[rng.random(n) < share_missing] = math.nan
    weights = rng.integers(1, heaviest + 1, n).astype(float).tolist() if heaviest > 1 else None
    is_categorical = [False] * len(NUMBERS) + [True] * len(n_levels)
    sizes = [0] * len(NUMBERS) + list(n_levels)
    return strategies.SmallTable([c.tolist() for c in columns], y.tolist(), weights, n_classes, is_categorical, sizes)


def without_last(*values):
    """All values, or all but the last where kernels are interpreted, which would take minutes."""
    return values[:-1] if _jit.IS_JIT_DISABLED else values


def assert_searches_agree(table, **parameters):
    tree = grow_fast(table, **parameters)
    for way in WAYS:
        assert fast.arrays_of(grow_by(way, table, **parameters)) == fast.arrays_of(tree), way


# Up to PAIR_ROWS = 64 rows of two classes are searched by pairs. Five sizes stand for a few rows, both sides of that
# limit and many, and trees of the larger ones have nodes of nearly every size below. The other nine, 117 of the 182
# cases, prove it again at the root.
SIZES = [3, 64, 65, 129, pytest.param(1000, marks=pytest.mark.compiled(reason="a larger table"))]
LIKE_THEM = [5, 17, 63, 66, 72, 127, 200, 511, 513]
ALL_SIZES = [*SIZES, *(pytest.param(n, marks=pytest.mark.slow) for n in LIKE_THEM)]
CLASSES = [2, 3, 26]


@pytest.mark.parametrize("n", ALL_SIZES)
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("heaviest", [1, 4, 500])
def test_classes_of_any_size(n, n_classes, heaviest):
    n_classes = min(n_classes, n)
    for seed, signal in enumerate((0.0, 0.3, 3.0)):
        table = mixed_table(n, n_classes, seed=seed, heaviest=heaviest, signal=signal)
        assert_searches_agree(table, criterion="gini")


@pytest.mark.parametrize("n", ALL_SIZES)
@pytest.mark.parametrize("heaviest", [1, 4, 500, 10_000])
def test_numbers_of_any_size(n, heaviest):
    for seed, signal in enumerate((0.0, 0.3, 3.0)):
        table = mixed_table(n, None, seed=seed, heaviest=heaviest, signal=signal)
        assert_searches_agree(table, criterion="squared_error")
        assert_searches_agree(table, criterion="squared_error", min_samples_leaf=4)


@pytest.mark.parametrize("n", [9, 64, 65, 150, pytest.param(700, marks=pytest.mark.compiled(reason="a larger table"))])
@pytest.mark.parametrize("n_classes", [*CLASSES, None])
@pytest.mark.parametrize("share_missing", [0.02, 0.3])
@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.sampled(3)
def test_missing_values_and_categories(n, n_classes, share_missing, missing):
    n_classes = n_classes and min(n_classes, n)
    for seed, heaviest in enumerate(without_last(1, 3, 500)):
        table = mixed_table(
            n, n_classes, seed=seed, heaviest=heaviest, signal=0.5, share_missing=share_missing, n_levels=(3, 12, 70)
        )
        assert_searches_agree(table, criterion="squared_error" if n_classes is None else "gini", missing=missing)


@pytest.mark.parametrize("n_levels", [2, 3, 9, 63, 64, 65, 70])
def test_levels_of_two_classes(n_levels):
    """Categories alone, so that every test is one; few rows for many levels, so that shares are equal."""
    for seed, (n, heaviest, share) in enumerate([(20, 1, 0.0), (90, 1, 0.1), (90, 300, 0.3), (900, 2, 0.1)]):
        rng = np.random.default_rng(seed)
        columns = [rng.integers(0, n_levels, n).astype(float) for _ in range(4)]
        for column in columns[:2]:
            column[rng.random(n) < share] = math.nan
        weights = None if heaviest == 1 else rng.integers(1, heaviest + 1, n).astype(float).tolist()
        table = strategies.SmallTable(
            [c.tolist() for c in columns], rng.integers(0, 2, n).tolist(), weights, 2, [True] * 4, [n_levels] * 4
        )
        assert_searches_agree(table, criterion="gini")
        assert_searches_agree(table, criterion="gini", cat_penalty=0.5, cat_margin=0.0)


@pytest.mark.parametrize("n_classes", [*CLASSES, None])
@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_doubled_rows(n_classes, signal):
    """Twins of two classes make leaves that are not pure, and ties everywhere."""
    for n in without_last(40, 131, 800):
        table = mixed_table(n, n_classes, seed=n, signal=signal, is_doubled=True, n_levels=(5,))
        assert_searches_agree(table, criterion="squared_error" if n_classes is None else "gini")


@pytest.mark.parametrize("n_classes", [*CLASSES, None])
@pytest.mark.parametrize("heaviest", [1, 5])
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_five_thousand_rows(n_classes, heaviest):
    table = mixed_table(5000, n_classes, seed=1, heaviest=heaviest, signal=0.2, n_levels=(40,))
    assert_searches_agree(table, criterion="squared_error" if n_classes is None else "gini")


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("heaviest", [1, 3])
@pytest.mark.parametrize("n", [15, 60, 300, pytest.param(3000, marks=pytest.mark.compiled(reason="a larger table"))])
@pytest.mark.parametrize("target", ["numbers", "whole numbers", "two numbers", "one far out"])
def test_levels_in_the_order_of_means_are_those_of_the_general_search(target, n, heaviest, penalty):
    """Few rows, more levels than rows, more rows than levels; means that tie, and means that share a bucket."""
    table = mixed_table(n, None, seed=n, heaviest=heaviest, signal=0.1, n_levels=(12, 90, 1500))
    y = np.array(table.y)
    if target == "whole numbers":
        y = np.rint(3 * y)
    elif target == "two numbers":
        y = (y > np.median(y)).astype(float)
    elif target == "one far out":
        y[n // 2] = 1e7
    table = replace(table, y=y.tolist())
    assert_searches_agree(
        table, criterion="squared_error", cat_penalty=penalty, cat_margin=0.0, min_samples_split=max(2, n // 100)
    )


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("max_bins", [5, 300])
def test_bins(n_classes, max_bins):
    for n in without_last(80, 1500):
        assert_searches_agree(mixed_table(n, n_classes, seed=4, heaviest=3), criterion="gini", max_bins=max_bins)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("max_leaf_nodes", [None, 30])
@pytest.mark.parametrize("heaviest", [MOST_PAIR_WEIGHT, MOST_PAIR_WEIGHT + 1])
def test_weights_up_to_the_limit(n_classes, max_leaf_nodes, heaviest):
    """Every row as heavy as packing allows, or heavier: then it must not be taken."""
    rng = np.random.default_rng(0)
    for n in (PAIR_ROWS, 300):
        table = mixed_table(n, n_classes, seed=n, signal=0.2)
        weights = np.full(n, float(heaviest))
        weights[rng.random(n) < 0.1] = 1.0
        table = replace(table, weights=weights.tolist())
        parameters = {"criterion": "gini", "max_leaf_nodes": max_leaf_nodes}
        tree, used = grow_settled(table, ALWAYS, {}, **parameters)
        assert used.is_packed == (heaviest == MOST_PAIR_WEIGHT)
        for way in WAYS:
            assert fast.arrays_of(grow_by(way, table, **parameters)) == fast.arrays_of(tree), way


@pytest.mark.parametrize("n_classes", [2, 4, None])
@pytest.mark.parametrize("max_features", [None, 1, 3])
def test_features_in_drawn_order(n_classes, max_features):
    """The order is drawn before any search, so it is the same for all; pairs of rows alone take another way."""
    criterion = "squared_error" if n_classes is None else "gini"
    for seed in range(3):
        table = mixed_table(400, n_classes, seed=seed, heaviest=2, signal=0.3, n_levels=(6,))
        drawn = {"criterion": criterion, "has_random_feature_order": True, "max_features": max_features, "seed": seed}
        tree = grow_fast(table, **drawn)
        for way in ("no packing, but lists", "no packing, no lists"):
            assert fast.arrays_of(grow_by(way, table, **drawn)) == fast.arrays_of(tree), way
        assert_searches_agree(table, min_samples_split=3, **drawn)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_a_drawn_order_gives_ties_to_every_feature(has_missing):
    """Equal columns, searched in drawn order: each wins as often. Two rows, and more than two, go different ways."""
    for n in (2, 10, 80):
        column = np.arange(float(n))
        columns = [column, column, column, column]
        if has_missing:
            columns = [np.append(c, math.nan) for c in columns]
        y = [0] * (n // 2) + [1] * (n - n // 2) + [1] * has_missing
        roots = [
            int(
                fast.grow(
                    columns, y, n_classes=2, criterion="gini", has_random_feature_order=True, seed=seed, max_depth=1
                ).feature[0]
            )
            for seed in range(400)
        ]
        counts = np.bincount(roots, minlength=4)
        assert float(((counts - 100) ** 2 / 100).sum()) < 16.3  # 3 degrees of freedom, once in a thousand


# ----------------------------------------------------------------------------------------------- small tables


@st.composite
def plain_tables(draw):
    """Tables that take the fast searches, with more rows than the other strategies have, in few and many codes."""
    n = draw(st.sampled_from([2, 3, 8, 33, 63, 64, 65, 70, 90]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_classes = draw(st.sampled_from([2, 2, 3, 5, None]))
    columns = [draw_numbers(rng, n, draw(st.sampled_from(NUMBERS))) for _ in range(draw(st.integers(1, 3)))]
    is_categorical, n_levels = [False] * len(columns), [0] * len(columns)
    if draw(st.booleans()):
        k = draw(st.sampled_from([2, 5, 8, 20, 70] if n_classes == 2 else [2, 4, 6]))
        columns.append(rng.integers(0, k, n).astype(float))
        is_categorical.append(True)
        n_levels.append(k)
    if draw(st.booleans()):
        for column in columns:
            column[rng.random(n) < draw(st.sampled_from([0.0, 0.05, 0.5]))] = math.nan
    heaviest = draw(st.sampled_from([1, 1, 3, 500]))
    weights = rng.integers(1, heaviest + 1, n).astype(float).tolist() if heaviest > 1 else None
    noise = draw(st.sampled_from([0.1, 1.0, 100.0]))
    score = np.nan_to_num(columns[0], posinf=9.0) % 9.0 + noise * rng.normal(size=n)
    y = np.round(score * 4) / 4 if n_classes is None else (np.argsort(np.argsort(score)) * n_classes // n)
    n_classes = None if n_classes is None else max(n_classes, 2)
    return strategies.SmallTable(
        [c.tolist() for c in columns], y.tolist(), weights, n_classes, is_categorical, n_levels
    )


@settings(max_examples=60)
@given(plain_tables(), st.sampled_from(["learned", "branch"]))
def test_grows_what_the_oracle_grows(table, missing):
    parameters = {"criterion": "squared_error" if table.n_classes is None else "gini", "missing": missing}
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    fast.assert_same_tree(fast.as_nodes(grow_fast(table, **parameters)), expected)


@settings(max_examples=60)
@given(plain_tables(), st.sampled_from(["learned", "branch"]), st.booleans(), st.integers(0, 2**32))
def test_interpreted_kernels_grow_the_same_bits(table, missing, is_shuffled, seed):
    parameters = {
        "criterion": "squared_error" if table.n_classes is None else "gini",
        "missing": missing,
        "has_random_feature_order": is_shuffled,
        "seed": seed,
    }
    compiled = grow_fast(table, **parameters)
    interpreted = grow_fast(table, kernels=_jit.interpreted(), **parameters)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


@pytest.mark.parametrize("n_classes", [2, 26, None])
def test_a_larger_table_interpreted(n_classes):
    table = mixed_table(400, n_classes, seed=6, heaviest=3, signal=0.5, n_levels=(9,))
    criterion = "squared_error" if n_classes is None else "gini"
    compiled = grow_fast(table, criterion=criterion)
    interpreted = grow_fast(table, criterion=criterion, kernels=_jit.interpreted())
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


# -------------------------------------------------------------------------------------- one scan, in fractions


@st.composite
def scans(draw, most_classes):
    """Codes of one feature in a node, far apart or bunched, with class and weight of each row."""
    n = draw(st.sampled_from([2, 3, 9, 20, 21, 63, 64, 65, 66, 100, 140, 260]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lowest = draw(st.sampled_from([1, 2, 40_000]))
    width = draw(st.sampled_from([1, 3, 17, n - 1, n, n + 1, 4 * n, 4 * n + 9, MOST_BUCKETS, 60_000]))
    codes = lowest + rng.integers(0, min(width, 65_535 - lowest) + 1, n)
    if draw(st.booleans()):  # most rows in one place, so that a bucket holds them all
        codes = np.where(rng.random(n) < 0.7, codes[0] + rng.integers(0, 3, n), codes)
    codes = np.minimum(codes, 65_535)
    n_classes = draw(st.integers(2, most_classes))
    share = draw(st.sampled_from([0.0, 0.9, 1.0]))  # of rows that follow the order of the codes
    rank = np.argsort(np.argsort(codes + rng.random(n)))
    classes = np.where(rng.random(n) < share, rank * n_classes // n, rng.integers(0, n_classes, n))
    weights = rng.integers(1, draw(st.sampled_from([1, 2, 500])) + 1, n)
    return codes, classes, weights, n_classes


def exact_cuts(codes, classes, weights, n_classes, *, is_sum):
    """Score of every cut, exact: sum of squared class weights over the weight, or of class 1 alone, of both sides."""
    present = np.unique(codes).tolist()
    found = []
    for cut, following in pairwise(present):
        score = Fraction(0)
        for side in (codes <= cut, codes > cut):
            held = [int(weights[side & (classes == c)].sum()) for c in range(n_classes)]
            counted = held[1:2] if is_sum else held
            score += Fraction(sum(w * w for w in counted), sum(held))
        found.append((score, cut, following))
    return found


def is_near(a, b):
    """Whether two scores differ, but by too little for float64 to be asked."""
    return a != b and abs(a - b) <= Fraction(1e-12) * max(abs(a), abs(b))


def assert_scans_exactly(found, cuts, best):
    """Lowest among the best cuts, if they beat `best`; a tie does not."""
    top = max((score for score, _, _ in cuts), default=None)
    if top is None or (best is not None and top <= best):
        assert (found.cut, found.following) == (-1, -1)
        return
    assume(not any(is_near(score, top) for score, _, _ in cuts))
    score, cut, following = next(c for c in cuts if c[0] == top)
    assert (found.cut, found.following) == (cut, following)
    assert math.isclose(found.score, float(score), rel_tol=1e-12)


def earlier_best(data, cuts):
    """What a feature before has reached: nothing, or the score of one of the cuts, which is then a tie or better."""
    if not cuts or data.draw(st.booleans()):
        return None, NOTHING
    best = sorted(cuts)[data.draw(st.sampled_from([0, len(cuts) // 2, -1]))][0]
    top = max(cuts)[0]
    assume(not is_near(best, top))
    return best, float(best)


def packed_scratch(n):
    """Room for the addends and codes of n rows, the lanes behind them arbitrary."""
    addends, column = np.zeros(n + PAIR_LANES, np.int32), np.full(n + PAIR_LANES, 7, np.int32)
    keys = np.zeros((2, n), np.uint32)
    return PackedScratch(
        addends, np.zeros(n, np.int64), column, np.zeros(PAIR_ROWS, np.int32), np.zeros(PAIR_ROWS), keys
    )


def open_node(n):
    """A node of n packed rows."""
    return OpenNode(0, n, -1, 0, 0, 0, True, -math.inf, math.inf, np.uint64(0), np.uint64(0))


@settings(max_examples=150)
@given(st.data(), scans(2))
def test_scan_of_two_classes(data, case):
    codes, classes, weights, _ = case
    twin = _jit.interpreted().tree.scan_two_classes
    n = len(codes)
    cuts = exact_cuts(codes, classes, weights, 2, is_sum=True)
    exact, best = earlier_best(data, cuts)
    rows = np.zeros((n, 4), np.uint16)
    rows[:, 1] = codes
    addends = np.stack([classes * weights, weights]).astype(np.int64)
    packed = packed_scratch(n)
    histogram, totals = np.zeros(65_536, np.int64), np.zeros(TOTALS_SIZE, np.int64)
    totals[W_ALL], totals[S_ALL] = weights.sum(), addends[0].sum()
    with np.errstate(all="ignore"):
        twin.pack_addends(addends, 0, n, packed)
        ends = twin.load_column(rows, 0, n, 1, packed.column)
        found = twin.scan_two_classes(
            Candidate(best, -1, -1, 0, 0, math.inf), *ends, open_node(n), totals, packed,
            np.zeros(MOST_BUCKETS, np.int32), histogram,
        )  # fmt: skip
    assert not histogram.any()
    assert_scans_exactly(found, cuts, exact)


@settings(max_examples=100)
@given(st.data(), scans(8), st.sampled_from([0, 100_000]))
def test_scan_of_more_classes(data, case, n_sums):
    """With room for a histogram and without: both ways count the same."""
    codes, classes, weights, n_classes = case
    twin = _jit.interpreted().tree.scan_many_classes
    n = len(codes)
    cuts = exact_cuts(codes, classes, weights, n_classes, is_sum=False)
    exact, best = earlier_best(data, cuts)
    rows = np.zeros((n, 4), np.uint16)
    rows[:, 2] = codes
    addends = np.stack([classes, weights]).astype(np.int64)
    held = np.bincount(classes, weights, n_classes).astype(np.int64)
    present = np.flatnonzero(held)
    sums = np.full((CLASS_ROWS, n_classes), 99, np.int64)
    sums[ALL] = held
    sums[PRESENT, : len(present)] = present
    packed = packed_scratch(n)
    histogram, totals = np.zeros(n_sums, np.int64), np.zeros(TOTALS_SIZE, np.int64)
    totals[W_ALL] = weights.sum()
    scratch = Scratch._make([None] * len(Scratch._fields))._replace(
        counts=np.zeros(MOST_BUCKETS, np.int32), histogram=histogram, totals=totals, packed=packed,
        classes=make_classes(n_classes, 0)._replace(sums=sums),
    )  # fmt: skip
    node = open_node(n)._replace(n_present=len(present), power=int((held * held).sum()))
    with np.errstate(all="ignore"):
        twin.pack_classes(addends, 0, n, len(present), sums, packed.addends)
        ends = _jit.interpreted().tree.scan_two_classes.load_column(rows, 0, n, 2, packed.column)
        found = twin.scan_many_classes(Candidate(best, -1, -1, 0, 0, math.inf), *ends, node, scratch)
    assert not histogram.any()
    assert_scans_exactly(found, cuts, exact)


# ------------------------------------------------------------------------------------- a bag is repeated rows


def grow_bag(table, counts, params, *, is_repeated):
    """Grow on a bag as forests do: rows with counts, or each row as often as it was drawn."""
    y = np.array(table.y)
    levels = [tuple(range(n)) if is_it else None for n, is_it in zip(table.n_levels, table.is_categorical, strict=True)]
    source = fast.ColumnTable(table.columns, levels)
    weights = fix_weights(None if table.weights is None else np.array(table.weights), len(y))
    codes = code_table(source, weights.values, 65_535, fast.compiled())
    target = (
        value_target(y.astype(float), weights, has_square=params.criterion == "sdr")
        if table.n_classes is None
        else class_target(y, table.n_classes, weights)
    )
    rows = np.flatnonzero(counts).astype(np.int32)
    times = counts[rows]
    held, bag = bag_target(*with_room(weights, target), rows, times)
    if is_repeated:
        again = np.repeat(np.arange(len(rows)), times)
        is_summed = bag.n_classes <= 2  # three classes or more: values are classes, not sums
        one = bag.values // times if is_summed else bag.values
        assert not is_summed or np.array_equal(one * times, bag.values)
        squares = (bag.squares // times)[again] if len(bag.squares) > 1 else bag.squares
        bag = bag._replace(values=one[again], squares=squares, truth=bag.truth[rows][again])
        values = np.ones(1, np.int64)
        is_unit = weights.is_unit
        if not is_unit:
            values = (held.values // times)[again]
        held = held._replace(values=values, is_unit=is_unit)
        codes = codes._replace(rows=codes.rows[rows][again])
        return grow.grow_tree(codes, bag, held, params, fast.compiled())
    codes = codes._replace(rows=codes.rows[rows])
    growth = grow.Growth(codes, bag, held, params, fast.compiled(), None, grow.Bag(rows))
    growth.run()
    return growth.finish()


@pytest.mark.parametrize("n_classes", [2, 4, None])
@pytest.mark.parametrize("weighting", ["none", "whole", "decimal"])
@pytest.mark.parametrize("most", [1, 3, pytest.param(200, marks=pytest.mark.compiled(reason="thousands of rows"))])
@pytest.mark.parametrize("has_random_tests", [False, True])
def test_a_bag_is_its_rows_repeated(n_classes, weighting, most, has_random_tests):
    for seed, n in enumerate(without_last(12, 90, 600)):
        rng = np.random.default_rng(seed)
        table = mixed_table(n, n_classes, seed=seed, signal=0.5, share_missing=0.05, n_levels=(4, 11))
        weights = {
            "none": None,
            "whole": rng.integers(1, 4, n).astype(float).tolist(),
            "decimal": np.round(rng.random(n) + 0.1, 3).tolist(),
        }[weighting]
        table = replace(table, weights=weights)
        counts = (rng.integers(0, most + 1, n) * (rng.random(n) < 0.8)).astype(np.int32)
        criteria = ["squared_error", "sdr"] if n_classes is None else ["gini", "entropy"]
        for criterion in criteria:
            params = grow.GrowParams(
                criterion,
                missing=LEARNED,
                has_random_tests=has_random_tests,
                has_random_feature_order=True,
                max_features=3,
                seed=seed,
            )
            by_count = grow_bag(table, counts, params, is_repeated=False)
            by_rows = grow_bag(table, counts, params, is_repeated=True)
            assert_same_but_for_rows(by_count, by_rows, is_exact=weighting != "decimal")


def assert_same_but_for_rows(found, expected, *, is_exact):
    """Equal but for the counts of rows.

    Means and impurities of decimal weights round each row's share once, and the root of a small variance magnifies it.
    """
    np.testing.assert_array_equal(found.test, expected.test)
    if is_exact:
        ours, theirs = fast.arrays_of(found), fast.arrays_of(expected)
        del ours["n_rows"], theirs["n_rows"]
        assert ours == theirs
    for name in ("threshold", "weight", "impurity"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
