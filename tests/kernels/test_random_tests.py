"""The random tests of extra-trees: uniform, never one-sided, blind to the target until they are compared."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import fast
import naive
import strategies
from spinney import _jit
from spinney._types import HIGH, LOW, N_CODES, OFFSET
from spinney.table.coding import code_table
from spinney.tree.grow import Growth

RARE = 1e-4  # seeds are fixed: a p-value below says that something is wrong, not that luck was bad
CRITERIA = {None: "squared_error", 2: "gini", 3: "gini"}


def grow(table, **parameters):
    return fast.grow_table(table, has_random_tests=True, **parameters)


def grow_columns(columns, y, **parameters):
    return fast.grow(columns, y, has_random_tests=True, **parameters)


@st.composite
def growing(draw):
    """A table with parameters, and how features are drawn."""
    table, parameters = draw(strategies.growing())
    drawn = {
        "seed": draw(st.integers(0, 2**40)),
        "max_features": draw(st.one_of(st.none(), st.integers(1, table.n_features))),
        "has_random_feature_order": draw(st.booleans()),
    }
    return table, parameters, drawn


def walk_rows(node, rows):
    """Every inner node with its rows, as lists of values."""
    if node.is_leaf:
        return
    yield node, rows
    parts = [[] for _ in node.children]
    for row in rows:
        parts[naive.branch_of(node, row[node.feature])].append(row)
    for child, part in zip(node.children, parts, strict=True):
        assert len(part) == child.n_rows
        yield from walk_rows(child, part)


def trained_rows(table):
    """The rows of positive weight; -0.0 and 0.0 are one value."""
    weights = table.weights or [1.0] * table.n_rows
    return [[value + 0.0 for value in row] for row, weight in zip(table.rows, weights, strict=True) if weight > 0]


# ------------------------------------------------------------------------------------------------ what may come


@settings(max_examples=80)
@given(growing())
def test_every_test_parts_its_node(case):
    table, parameters, drawn = case
    tree = grow(table, **parameters, **drawn)
    tree.check()
    for node, rows in walk_rows(fast.as_nodes(tree), trained_rows(table)):
        assert min(child.n_rows for child in node.children) > 0
        known = [row[node.feature] for row in rows if not math.isnan(row[node.feature])]
        has_missing = len(known) < len(rows)
        if node.subset is None and not (has_missing and node.threshold == math.inf):
            assert min(known) <= node.threshold < max(known)
        if not has_missing and node.subset is not None:
            assert 0 < len({int(v) for v in known} - node.subset) < len(set(known))


@settings(max_examples=60)
@given(growing(), st.sampled_from([2, 5, 65_535]))
def test_interpreted_kernels_draw_the_same(case, max_bins):
    table, parameters, drawn = case
    compiled = grow(table, max_bins=max_bins, **parameters, **drawn)
    interpreted = grow(table, max_bins=max_bins, kernels=_jit.interpreted(), **parameters, **drawn)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


@given(growing(), st.data())
def test_the_order_of_rows_does_not_matter(case, data):
    table, parameters, drawn = case
    order = data.draw(st.permutations(range(table.n_rows)))
    shuffled = replace(
        table,
        columns=[[column[i] for i in order] for column in table.columns],
        y=[table.y[i] for i in order],
        weights=None if table.weights is None else [table.weights[i] for i in order],
    )
    assert fast.arrays_of(grow(shuffled, **parameters, **drawn)) == fast.arrays_of(grow(table, **parameters, **drawn))


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_no_bin_is_torn(n, n_classes, share_missing):
    """Codes and values then tell rows apart alike, below the root as well, where bins have fewer rows."""
    rng = np.random.default_rng(n)
    columns = rng.normal(size=(3, n))
    columns[rng.random((3, n)) < share_missing] = math.nan
    y = rng.integers(0, n_classes or 50, n)
    codes = code_table(fast.ColumnTable(columns, [None] * 3), np.ones(1, np.int64), 5, fast.compiled())
    for seed in range(10):
        parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "max_bins": 5, "seed": seed}
        tree = grow_columns(columns, y, max_features=1, **parameters)
        tree.check()
        assert tree.n_leaves > 5
        for node in np.flatnonzero(~tree.is_leaf):
            j, cut = int(tree.feature[node]), float(tree.threshold[node])
            bins = slice(codes.features[OFFSET, j], codes.features[OFFSET, j] + codes.features[N_CODES, j])
            assert not np.any((codes.edges[LOW, bins] <= cut) & (cut < codes.edges[HIGH, bins]))
        for _ in walk_rows(fast.as_nodes(tree), columns.T.tolist()):
            pass  # counts the rows of every branch


# ---------------------------------------------------------------------------------------------------- uniformity


@pytest.mark.parametrize("n", [5, 60, 150])
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.sampled(2)
def test_thresholds_of_the_root_are_uniform(n, n_classes):
    """Over the range of the values, however they lie in it; few rows and many go different ways."""
    rng = np.random.default_rng(n)
    column = np.exp(2 * rng.normal(size=n))
    y = np.arange(n) % (n_classes or n)
    parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "max_depth": 1}
    cuts = [grow_columns([column], y, seed=seed, **parameters).threshold[0] for seed in range(800)]
    low, high = column.min(), column.max()
    assert stats.kstest(cuts, stats.uniform(low, high - low).cdf).pvalue > RARE


@pytest.mark.parametrize("max_features", [1, 2])
def test_thresholds_below_the_root_are_uniform(max_features):
    """Where one feature is drawn nothing is chosen, so its place in the range is uniform in every node.

    Where the better of two is taken it is not: that shows that this test can fail.
    """
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(2, 300))
    y = columns[0] + 0.1 * rng.normal(size=300)
    parameters = {"criterion": "squared_error", "max_features": max_features, "has_random_feature_order": True}
    places, features = [], []
    for seed in range(12):
        tree = fast.as_nodes(grow_columns(columns, y, seed=seed, **parameters))
        for node, rows in walk_rows(tree, columns.T.tolist()):
            values = [row[node.feature] for row in rows]
            places.append((node.threshold - min(values)) / (max(values) - min(values)))
            features.append(node.feature)
    p_value = stats.kstest(places, "uniform").pvalue
    p_feature = stats.binomtest(sum(features), len(features)).pvalue
    assert (min(p_value, p_feature) > RARE) == (max_features == 1)


@pytest.mark.parametrize(("seen", "n_levels"), [((0, 1, 2), 3), ((1, 2, 4, 5), 7), ((2, 63, 64, 69), 70)])
@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.sampled(2)
def test_each_way_to_part_the_levels_is_as_likely(seen, n_levels, n_classes):
    """Levels that the node has: any two parts, neither empty. Levels that it lacks: each to either side."""
    rng = np.random.default_rng(0)
    column = np.repeat(seen, 5).astype(float)
    n = len(column)
    y = rng.integers(0, n_classes or 100, n)
    parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "max_depth": 1}
    data = {"is_categorical": [True], "n_levels": [n_levels]}
    n_seeds = 700
    lefts = np.array(
        [grow_columns([column], y, seed=seed, **parameters, **data).subset(0) for seed in range(n_seeds)], dtype=int
    )
    ways = np.bincount(lefts[:, seen] @ (1 << np.arange(len(seen))), minlength=1 << len(seen))
    assert ways[0] == ways[-1] == 0
    assert stats.chisquare(ways[1:-1]).pvalue > RARE
    absent = np.delete(lefts, seen, axis=1)
    for level in absent.T:
        assert stats.binomtest(int(level.sum()), n_seeds).pvalue > RARE
    if absent.shape[1] > 1:  # independent of each other, and of what the node has
        assert abs(np.corrcoef(absent[:, 0], absent[:, -1])[0, 1]) < 0.15
        assert abs(np.corrcoef(absent[:, 0], lefts[:, seen[0]])[0, 1]) < 0.15


def test_tests_of_different_features_are_independent():
    """Equal columns, but each has its own draw."""
    column = np.linspace(0.0, 1.0, 50)
    y = np.arange(50.0)
    cuts = []
    for constant in (0, 1):
        columns = [column, column]
        columns[constant] = np.zeros(50)
        cuts.append([
            grow_columns(columns, y, criterion="squared_error", max_depth=1, seed=seed).threshold[0]
            for seed in range(500)
        ])  # fmt: skip
    assert abs(np.corrcoef(cuts)[0, 1]) < 0.2


# ------------------------------------------------------------------------------------------- how many are tried


USELESS = {
    "constant": (np.full(40, 2.5), False),
    "all missing": (np.full(40, math.nan), False),
    "one level": (np.zeros(40), True),
    "no level": (np.full(40, math.nan), True),
}


@pytest.mark.parametrize("kind", sorted(USELESS))
@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_only_features_that_vary_count(kind, n_classes):
    """Two are tried: among five useless columns, a good one and a bad one it is always the good one."""
    useless, is_level = USELESS[kind]
    good = np.repeat([0.0, 1.0], 20)
    bad = np.tile([0.0, 1.0], 20)
    columns = [useless, good, useless, useless, bad, useless, useless]
    data = {
        "is_categorical": [is_level and column is useless for column in columns],
        "n_levels": [int(is_level and column is useless) for column in columns],
        "criterion": CRITERIA[n_classes],
        "n_classes": n_classes,
    }
    y = good.astype(int)
    roots = {
        k: [int(grow_columns(columns, y, max_features=k, seed=seed, **data).feature[0]) for seed in range(60)]
        for k in (1, 2)
    }
    assert set(roots[2]) == {1}
    assert set(roots[1]) == {1, 4}


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_a_column_without_values_may_be_the_last(n_classes):
    """It has no codes, so nothing stands behind them: interpreted kernels see a read past the end."""
    columns = [[0.0, 1.0, 2.0, 3.0], [math.nan] * 4]
    parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "kernels": _jit.interpreted()}
    for seed in range(10):
        tree = grow_columns(columns, [0, 1, 0, 1], seed=seed, max_features=2, **parameters)
        assert tree.n_leaves > 1
        assert set(tree.feature[~tree.is_leaf].tolist()) == {0}


@pytest.mark.parametrize("kind", ["numbers", "levels", "both"])
def test_one_random_test_does_not_look_at_the_target(kind):
    """All targets differ, so that no node is pure before its end, whatever their order."""
    rng = np.random.default_rng(3)
    n = 130
    numbers = [rng.normal(size=n), rng.permutation(n).astype(float), rng.integers(0, 9, n).astype(float)]
    levels = [rng.integers(0, 12, n).astype(float) for _ in range(3)]
    columns = {"numbers": numbers, "levels": levels, "both": numbers + levels}[kind]
    is_categorical = [any(column is c for c in levels) for column in columns]
    data = {"is_categorical": is_categorical, "n_levels": [12 * is_it for is_it in is_categorical]}
    for seed in range(10):
        grown = [
            grow_columns(columns, rng.permutation(n), max_features=1, seed=seed, **data, **task)
            for task in [{"criterion": "squared_error"}] * 2 + [{"criterion": "gini", "n_classes": n}] * 2
        ]
        for tree in grown[1:]:
            np.testing.assert_array_equal(tree.test, grown[0].test)
            np.testing.assert_array_equal(tree.threshold[~tree.is_leaf], grown[0].threshold[~tree.is_leaf])
            np.testing.assert_array_equal(tree.subsets, grown[0].subsets)


def test_one_random_test_of_two_classes_does_not_look_at_the_target():
    rng = np.random.default_rng(4)
    columns = rng.normal(size=(3, 800))
    for seed in range(10):
        grown = [
            grow_columns(
                columns, rng.integers(0, 2, 800), n_classes=2, criterion="gini", max_features=1, seed=seed,
                min_samples_split=60,
            )
            for _ in range(2)
        ]  # fmt: skip
        if min(tree.impurity.min() for tree in grown) > 0.0:  # no small branch is pure by chance
            np.testing.assert_array_equal(grown[1].test, grown[0].test)
            np.testing.assert_array_equal(grown[1].n_rows, grown[0].n_rows)


# ---------------------------------------------------------------------------------------------- how tests compare


def drawn_test(table, j, seed):
    """The test that a seed draws for one feature at the root: all others are made constant, missing rows left out."""
    columns = [
        column if k == j else [0.0 if table.is_categorical[k] else 1.0] * table.n_rows
        for k, column in enumerate(table.columns)
    ]
    kept = [i for i, value in enumerate(table.columns[j]) if not math.isnan(value)]
    weights = table.weights or [1.0] * table.n_rows
    if not any(weights[i] > 0 for i in kept):
        return None
    alone = replace(
        table,
        columns=[[column[i] for i in kept] for column in columns],
        y=list(range(len(kept))),  # never pure
        n_classes=None,
        weights=[weights[i] for i in kept],
    )
    criterion = {"criterion": "squared_error"}
    root = fast.as_nodes(grow(alone, seed=seed, max_depth=1, **criterion))
    return None if root.is_leaf else root


def candidates_at(problem, rows, j, test):
    """The candidates of one drawn test: each way to place the missing rows, and known against missing."""
    column = problem.columns[j]
    missing = naive.add_up(problem, [i for i in rows if math.isnan(column[i])])
    known = [i for i in rows if not math.isnan(column[i])]
    found = []
    if test is not None:
        is_left = [naive.branch_of(test, column[i]) == 0 for i in known]
        left, right = (
            naive.add_up(problem, [i for i, is_it in zip(known, is_left, strict=True) if is_it == side])
            for side in (True, False)
        )
        if missing.n_rows and problem.missing == "learned":
            ways = [(1, (left, right + missing)), (0, (left + missing, right))]
        elif missing.n_rows:
            ways = [(2, (left, right, missing))]
        else:
            ways = [(None, (left, right))]
        found += [(j, test.threshold, branch, sums) for branch, sums in ways]
    if missing.n_rows and known:
        found.append((j, math.inf, 1, (naive.add_up(problem, known), missing)))
    return [naive.Candidate(feature, cut, None, branch, sums) for feature, cut, branch, sums in found]


@settings(max_examples=80)
@given(st.data(), st.integers(0, 2**40), st.sampled_from(["learned", "branch"]))
def test_the_best_of_the_drawn_tests_is_taken(data, seed, missing):
    """With all features tried, and missing values on the side, or in the branch, of largest gain."""
    table = data.draw(strategies.tables())
    parameters = {"criterion": data.draw(st.sampled_from(table.criteria)), "missing": missing}
    if data.draw(st.booleans()):
        parameters["min_samples_leaf"] = data.draw(st.integers(1, 4))
    tree = grow(table, seed=seed, max_depth=1, **parameters)
    problem = naive.read_problem(table.columns, table.y, table.weights, **table.data, **parameters)
    rows = list(range(len(problem.targets)))
    sums = naive.add_up(problem, rows)
    drawn = [
        candidate
        for j in range(table.n_features)
        for candidate in candidates_at(problem, rows, j, drawn_test(table, j, seed))
        if naive.is_allowed(problem, candidate, naive.Bounds())
    ]
    root = fast.as_nodes(tree)
    if len(set(problem.targets)) == 1 or not drawn:
        assert root.is_leaf
        return
    node_impurity = naive.impurity(problem, sums)
    gains = [naive.decrease(problem, sums.weight, node_impurity, candidate) for candidate in drawn]
    slack = 1e-9 * float(node_impurity)
    best = [candidate for candidate, gain in zip(drawn, gains, strict=True) if gain >= max(gains) - slack]
    assert not root.is_leaf
    sizes = [child.n_rows for child in root.children]
    is_best = [
        root.feature == candidate.feature
        and sizes == [branch.n_rows for branch in candidate.branches]
        and (candidate.missing_branch in {None, root.missing_branch})
        and (root.threshold is None or root.threshold == candidate.threshold)
        for candidate in best
    ]
    assert any(is_best)


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_missing_values_go_where_they_fit(n_classes):
    """With the high values, with the low ones, or against both."""
    known = np.arange(40.0)
    column = np.append(known, [math.nan] * 10)
    parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "max_depth": 1}
    low = (known >= 20).astype(int)
    sides = {}
    for value in (0, 1):
        y = np.append(low, [value] * 10)
        trees = [grow_columns([column], y, seed=seed, **parameters) for seed in range(40)]
        sides[value] = {int(tree.missing_branch[0]) for tree in trees if 12 < tree.threshold[0] < 28}
    assert sides == {0: {0}, 1: {1}}
    apart = [grow_columns([column], [0] * 40 + [1] * 10, seed=seed, **parameters) for seed in range(10)]
    assert {float(tree.threshold[0]) for tree in apart} == {math.inf}


@pytest.mark.parametrize("n_classes", [None, 2, 3])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_ties_go_to_the_first_feature_unless_features_are_drawn(n_classes, share_missing):
    """Columns of two values have one threshold worth the name, so that equal columns tie."""
    rng = np.random.default_rng(0)
    column = rng.integers(0, 2, 60).astype(float)
    y = (column + (rng.random(60) < 0.2)).astype(int) % (n_classes or 9)
    column[rng.random(60) < share_missing] = math.nan
    parameters = {"criterion": CRITERIA[n_classes], "n_classes": n_classes, "max_depth": 1}
    first = {int(grow_columns([column] * 3, y, seed=seed, **parameters).feature[0]) for seed in range(60)}
    drawn = [
        int(grow_columns([column] * 3, y, seed=seed, has_random_feature_order=True, **parameters).feature[0])
        for seed in range(300)
    ]
    assert first == {0}
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > RARE


@settings(max_examples=60)
@given(st.data())
def test_a_repeated_row_is_a_row_of_greater_weight(data):
    table, parameters = data.draw(strategies.growing(has_weights=False))
    parameters = {k: v for k, v in parameters.items() if k not in {"min_samples_split", "min_samples_leaf"}}
    drawn = {"seed": data.draw(st.integers(0, 99)), "has_random_feature_order": data.draw(st.booleans())}
    counts = data.draw(st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows))
    again = [i for i, count in enumerate(counts) for _ in range(count)]
    repeated = replace(
        table, columns=[[column[i] for i in again] for column in table.columns], y=[table.y[i] for i in again]
    )
    by_rows = fast.arrays_of(grow(repeated, **parameters, **drawn))
    by_weight = fast.arrays_of(grow(replace(table, weights=list(map(float, counts))), **parameters, **drawn))
    for arrays in (by_rows, by_weight):
        del arrays["n_rows"]
    assert by_weight == by_rows


# ------------------------------------------------------------------------------------------------ ways to the same

ARRAYS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")


def draw_mixed(n_rows, n_classes, seed, share_missing):
    """Numbers of few and of many values, categories of few and of many levels, the last constant where they are few."""
    generator = np.random.default_rng(seed)
    n_levels = [0, 0, 5, 63, 64, 2]
    columns = [generator.integers(0, n or 9, n_rows).astype(float) for n in n_levels]
    columns[1] = generator.normal(size=n_rows)
    columns[0][: n_rows // 8] = np.inf  # no threshold is uniform up to it
    columns[5][columns[0] > 3] = 0.0
    for column in columns[:4]:
        column[generator.random(n_rows) < share_missing] = np.nan
    score = columns[2] + generator.normal(size=n_rows)
    score[np.isnan(score)] = 0.0
    y = score if n_classes is None else np.digitize(score, np.linspace(0, 4, n_classes + 1)[1:-1])
    weights = None if seed % 2 else generator.integers(1, 4, n_rows).astype(float)
    return columns, y, weights, {"is_categorical": [n > 0 for n in n_levels], "n_levels": n_levels}


@pytest.mark.parametrize("share_missing", [0.0, 0.04])
@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_few_rows_go_a_way_of_their_own_to_the_same_trees(n_classes, seed, share_missing, monkeypatch):
    columns, y, weights, kinds = draw_mixed(90, n_classes, seed, share_missing)
    twin = _jit.interpreted()
    used, judge = [], twin.tree.small_tests.judge_small

    def grow_twin():
        parameters = {"criterion": CRITERIA[None if n_classes is None else 2], "n_classes": n_classes, **kinds}
        return grow_columns(columns, y, weights=weights, kernels=twin, seed=seed, max_features=3, **parameters)

    drawn_tests = twin_module("drawn_tests")
    monkeypatch.setattr(drawn_tests, "judge_small", lambda *args: used.append(1) or judge(*args))
    quick = grow_twin()
    assert len(used) > quick.n_nodes / 4
    monkeypatch.setattr(drawn_tests, "PAIR_ROWS", 0)
    n_used, plain = len(used), grow_twin()
    assert len(used) == n_used
    for name in ARRAYS:
        assert np.array_equal(getattr(quick, name), getattr(plain, name)), name


@pytest.mark.parametrize("has_random_tests", [False, True])
@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_codes_that_are_fetched_grow_the_same_trees(n_classes, has_random_tests, monkeypatch):
    columns, y, weights, kinds = draw_mixed(150, n_classes, 1, 0.02)
    twin, feature_order = _jit.interpreted(), twin_module("feature_order")
    used, fetch = [], feature_order.fetch_codes

    def grow_twin():
        parameters = {"criterion": CRITERIA[None if n_classes is None else 2], "n_classes": n_classes, **kinds}
        return fast.grow(
            columns, y, weights, kernels=twin, seed=5, max_features=2, has_random_tests=has_random_tests, **parameters
        )

    monkeypatch.setattr(twin_module("search"), "fetch_codes", lambda *args: used.append(1) or fetch(*args))
    plain = grow_twin()
    assert not used
    monkeypatch.setattr(feature_order, "AHEAD_BYTES", 0)
    monkeypatch.setattr("spinney.tree.workspace.AHEAD_BYTES", 0)
    fetched = grow_twin()
    is_read = has_random_tests or n_classes is not None  # numbers are searched by sorted lists, or by bins
    assert bool(used) == is_read
    for name in ARRAYS:
        assert np.array_equal(getattr(plain, name), getattr(fetched, name)), name


def draw_numbers(n_rows, n_classes, seed):
    """Numbers: of many values and of few, infinite ones, two neighbours without a float between, some missing."""
    generator = np.random.default_rng(seed)
    columns = generator.normal(size=(5, n_rows))
    columns[1] = generator.integers(0, 4, n_rows)
    columns[2] = np.where(columns[2] > 1.0, np.inf, np.where(columns[2] < -1.0, -np.inf, columns[2]))
    columns[3] = np.where(columns[3] > 0.0, 1.0, np.nextafter(1.0, 2.0))
    columns[4, generator.random(n_rows) < 0.01] = np.nan
    score = columns[0] + generator.normal(size=n_rows)
    y = np.round(score, 1) if n_classes is None else np.digitize(score, np.linspace(-1, 1, n_classes + 1)[1:-1])
    return columns, y, generator.integers(1, 4, n_rows).astype(float)


@pytest.mark.parametrize("is_interpreted", [False, True])
@pytest.mark.parametrize("max_features", [None, 2])
@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_small_subtrees_are_those_of_the_driver(n_classes, has_weights, max_features, is_interpreted, monkeypatch):
    columns, y, weights = draw_numbers(200 if is_interpreted else 2000, n_classes, 7)
    kernels = _jit.interpreted() if is_interpreted else None
    used, ids = [], []
    if is_interpreted:
        is_bits = n_classes is not None and not has_weights
        module = twin_module("bit_subtrees" if is_bits else "small_subtrees")
        name = "finish_bits" if is_bits else "finish_subtree"
        finish_subtree = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args: used.append(1) or finish_subtree(*args))
    finish = Growth.finish
    monkeypatch.setattr(Growth, "finish", lambda growth: ids.append(growth.ids) or finish(growth))
    choices = {"max_depth": 7, "min_samples_split": 4}, {"max_bins": 40}, {"has_random_feature_order": True}
    for choice in ({}, *choices):
        parameters = {"criterion": CRITERIA[None if n_classes is None else 2], "n_classes": n_classes, **choice}
        parameters |= {"weights": weights if has_weights else None, "max_features": max_features, "kernels": kernels}
        quick = grow_columns(columns, y, seed=3, **parameters)
        assert used or not is_interpreted
        n_used = len(used)
        with monkeypatch.context() as patch:
            patch.setattr("spinney.tree.grow.serves_subtrees", lambda *_: False)
            patch.setattr("spinney.tree.grow.serves_bits", lambda *_: False)
            plain = grow_columns(columns, y, seed=3, **parameters)
        assert len(used) == n_used
        assert np.array_equal(ids[-2], ids[-1])  # rows of a leaf in the same order: some models keep them
        for name in ARRAYS:
            assert np.array_equal(getattr(quick, name), getattr(plain, name)), (choice, name)


def draw_levels(n_rows, n_classes, share_missing, seed):
    """Numbers and categories of 2, 9 and 63 levels, some of which few rows have, with missing values."""
    generator = np.random.default_rng(seed)
    columns = generator.normal(size=(6, n_rows))
    n_levels = [0, 2, 0, 9, 63, 0]
    for j, n in enumerate(n_levels):
        if n:
            columns[j] = np.minimum(generator.geometric(min(2.5 / n, 0.6), n_rows), n) - 1
    columns[5] = np.round(columns[5])
    columns[generator.random(columns.shape) < share_missing] = np.nan
    columns[2] = generator.normal(size=n_rows)  # one that lacks nothing
    score = np.nan_to_num(columns[0]) + (np.nan_to_num(columns[3]) % 3) + generator.normal(size=n_rows)
    y = np.digitize(score, np.linspace(-1, 3, n_classes + 1)[1:-1])
    return columns, y, {"is_categorical": [n > 0 for n in n_levels], "n_levels": n_levels}


@pytest.mark.parametrize("is_interpreted", [False, True])
@pytest.mark.parametrize("share_missing", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_rows_as_bits_and_tests_by_fours_change_no_tree(n_classes, share_missing, is_interpreted, monkeypatch):
    """Categories and missing values, in nodes of few rows and of many, are judged as the general search does."""
    columns, y, kinds = draw_levels(200 if is_interpreted else 3000, n_classes, share_missing, 11)
    kernels = _jit.interpreted() if is_interpreted else None
    used, ids = [], []
    if is_interpreted:
        module = twin_module("search")
        take_four = module.take_four
        monkeypatch.setattr(module, "take_four", lambda *args: note(used, take_four(*args)))
    finish = Growth.finish
    monkeypatch.setattr(Growth, "finish", lambda growth: ids.append(growth.ids) or finish(growth))
    for choice in ({"max_features": 2}, {"max_features": 3, "max_depth": 9, "min_samples_split": 3}, {"max_bins": 20}):
        parameters = {"criterion": "gini", "n_classes": n_classes, "kernels": kernels, **kinds, **choice}
        quick = grow_columns(columns, y, seed=3, **parameters)
        with monkeypatch.context() as patch:
            patch.setattr("spinney.tree.grow.serves_bits", lambda *_: False)
            plain = grow_columns(columns, y, seed=3, **parameters)
        assert np.array_equal(ids[-2], ids[-1])
        for name in ARRAYS:
            assert np.array_equal(getattr(quick, name), getattr(plain, name)), (choice, name)
    if is_interpreted:
        assert any(used) == (n_classes > 2)


def note(seen, answer):
    """Note whether a function had an answer, the first thing that it returns."""
    seen.append(answer[0])
    return answer


def twin_module(name):
    """A module of the interpreted kernels as its functions see it."""
    _jit.interpreted()
    return sys.modules[f"{_jit.twin.TWIN}.tree.{name}"]
