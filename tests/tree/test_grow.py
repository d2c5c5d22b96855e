"""The grower against the naive one, and what must not change the tree it grows."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import naive
import strategies
from spinney import _jit
from spinney._criteria import CLASS_CRITERIA
from spinney._node_layout import pack_test
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.table import coding
from spinney.tree import grow_params, workspace
from spinney.tree.predict import find_leaves


def assert_grows_as_naive(table, parameters):
    # a standard deviation is a root of a difference, and what a constraint leaves of equal gains hangs on its roundings
    assume(parameters.get("criterion") != "sdr" or "monotonic" not in parameters)
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    tree = fast.grow_table(table, **parameters)
    tree.check()
    fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds="monotonic" in parameters)


# ----------------------------------------------------------------------------------------- against the oracle


@settings(max_examples=200)
@given(strategies.growing())
def test_grows_what_the_oracle_grows(case):
    assert_grows_as_naive(*case)


@given(
    st.data(),
    st.sampled_from(CLASS_CRITERIA),
    st.sampled_from(["learned", "branch"]),
)
def test_every_criterion_of_classes(data, criterion, missing):
    table = data.draw(strategies.tables(is_regression=False))
    assert_grows_as_naive(table, {"criterion": criterion, "missing": missing})


@given(st.data(), st.sampled_from(["squared_error", "sdr", "absolute_error"]), st.sampled_from(["learned", "branch"]))
def test_every_criterion_of_numbers(data, criterion, missing):
    table = data.draw(strategies.tables(is_regression=True))
    assert_grows_as_naive(table, {"criterion": criterion, "missing": missing})


@settings(max_examples=200)
@given(strategies.counting())
def test_counts_by_their_deviance(case):
    """Whole and other weights, missing values either way, categories, constraints, limits, best first."""
    assert_grows_as_naive(*case)


@given(strategies.counting(has_categories=False), st.integers(0, 3))
def test_counts_by_their_deviance_with_surrogates(case, max_surrogates):
    table, parameters = case
    assert_grows_as_naive(table, parameters | {"missing": "surrogate", "max_surrogates": max_surrogates})


@settings(max_examples=200)
@given(strategies.several_outputs())
def test_several_outputs(case):
    assert_grows_as_naive(*case)


@given(strategies.several_outputs(has_categories=False), st.integers(0, 3))
def test_several_outputs_with_surrogates(case, max_surrogates):
    table, parameters = case
    assert_grows_as_naive(table, parameters | {"missing": "surrogate", "max_surrogates": max_surrogates})


@settings(max_examples=200)
@given(strategies.outputs_of_classes())
def test_several_outputs_of_classes(case):
    """By Gini and entropy; whole and other weights, missing values either way, categories, limits, best first."""
    assert_grows_as_naive(*case)


@given(strategies.outputs_of_classes(has_categories=False), st.integers(0, 3))
def test_several_outputs_of_classes_with_surrogates(case, max_surrogates):
    table, parameters = case
    assert_grows_as_naive(table, parameters | {"missing": "surrogate", "max_surrogates": max_surrogates})


@settings(max_examples=50)
@given(st.one_of(strategies.several_outputs(), strategies.outputs_of_classes()), st.booleans(), st.integers(0, 2**32))
def test_several_outputs_interpreted_in_any_order_and_with_random_tests(case, has_random_tests, seed):
    table, parameters = case
    parameters = parameters | {"has_random_tests": has_random_tests, "seed": seed}
    order = np.random.default_rng(seed).permutation(table.n_rows)
    moved = replace(
        table,
        columns=[[column[i] for i in order] for column in table.columns],
        y=[table.y[i] for i in order],
        weights=None if table.weights is None else [table.weights[i] for i in order],
    )
    tree = fast.grow_table(table, **parameters)
    for other in (
        fast.grow_table(table, **parameters, kernels=_jit.interpreted()),
        fast.grow_table(moved, **parameters),
    ):
        assert fast.arrays_of(tree) == fast.arrays_of(other)


@given(st.data(), st.integers(2, 8), st.sampled_from(["learned", "branch"]))
def test_best_first(data, max_leaf_nodes, missing):
    table = data.draw(strategies.tables())
    criterion = data.draw(st.sampled_from(["gini", "entropy"] if table.n_classes else ["squared_error"]))
    parameters = {"criterion": criterion, "missing": missing, "max_leaf_nodes": max_leaf_nodes}
    assert_grows_as_naive(table, parameters)


@given(
    strategies.many_level_tables(),
    st.sampled_from(["gini", "entropy"]),
    st.sampled_from(["learned", "branch"]),
)
def test_levels_in_order_of_their_principal_component(table, criterion, missing):
    assert_grows_as_naive(table, {"criterion": criterion, "missing": missing})


def test_the_level_farthest_out_may_be_orthogonal_to_the_component():
    """Two classes of four levels each and a rare third: the third is farthest out, and lies between the two."""
    table = strategies.SmallTable([[float(k) for k in range(9)]], [0, 1, 2, 0, 0, 0, 1, 1, 1], None, 3, [True], [9])
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, criterion="gini", missing="learned")
    tree = fast.grow_table(table, criterion="gini", missing="learned")
    fast.assert_same_tree(fast.as_nodes(tree), expected)


@pytest.mark.parametrize("n_first", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("n_second", [3, 5, 7, 11])
@pytest.mark.parametrize("values", [(0.0, 0.0), (0.0, 2.0), (0.1, 0.1)])
def test_levels_of_equal_mean_are_ordered_by_index(n_first, n_second, values):
    """The heavy limit forbids to cut off the third level, so the order of the two that tie shows."""
    levels = [0.0] * (2 * n_first) + [1.0] * (2 * n_second) + [2.0]
    y = [*values] * n_first + [*values] * n_second + [9.0]
    data = {"is_categorical": [True], "n_levels": [3], "criterion": "squared_error"}
    for parameters in ({"min_samples_leaf": 2}, {"min_samples_leaf": 2, "max_depth": 1}):
        expected = naive.grow([levels], y, **data, **parameters)
        assert naive.is_certain(expected)
        fast.assert_same_tree(fast.as_nodes(fast.grow([levels], y, **data, **parameters)), expected)


@st.composite
def constrained(draw):
    """A table of numbers with two classes or a regression, every column under a constraint."""
    is_regression = draw(st.booleans())
    table = draw(strategies.tables(is_regression=is_regression, has_categories=draw(st.booleans())))
    assume(not all(table.is_categorical))
    if not is_regression:
        table = replace(table, y=[int(code > 0) for code in table.y], n_classes=2)
    signs = [0 if is_it else draw(st.sampled_from([-1, 1])) for is_it in table.is_categorical]
    return table, signs


@settings(max_examples=150)
@given(constrained(), st.sampled_from(["learned", "branch"]), st.booleans())
def test_monotone_constraints(case, missing, is_second):
    table, signs = case
    criteria = ["squared_error", "sdr"] if table.n_classes is None else ["gini", "entropy"]
    assert_grows_as_naive(table, {"criterion": criteria[is_second], "missing": missing, "monotonic": signs})


@pytest.mark.parametrize("is_regression", [False, True])
def test_the_branch_of_missing_values_stays_inside_its_bounds(is_regression):
    """Where x1 is missing the data falls with x0, against the constraint; elsewhere it rises."""
    x0 = [0.0] * 7 + [1.0] * 7
    x1 = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, math.nan] * 2
    y = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]
    data = {
        "n_classes": None if is_regression else 2,
        "criterion": "squared_error" if is_regression else "gini",
    }
    parameters = {**data, "missing": "branch", "monotonic": [1, 0]}
    expected = naive.grow([x0, x1], y, **parameters)
    tree = fast.grow([x0, x1], y, **parameters)
    fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds=True)
    kind = CARTRegressor if is_regression else CARTClassifier
    model = kind(missing="branch", monotonic_cst=[1, 0]).fit(np.array([x0, x1]).T, y)
    rows = [[0.0, math.nan], [1.0, math.nan]]
    low, high = model.predict(rows) if is_regression else model.predict_proba(rows)[:, 1]
    assert low <= high


def estimator_for(table, parameters):
    """The estimator with the parameters of `naive.grow`, and X with its categories as codes."""
    chosen = dict(parameters)
    if "monotonic" in chosen:
        chosen["monotonic_cst"] = chosen.pop("monotonic")
    categories = [j for j, is_it in enumerate(table.is_categorical) if is_it]
    kind = CARTRegressor if table.n_classes is None else CARTClassifier
    return kind(categorical_features=categories or None, **chosen), np.array(table.columns).T


@given(st.data())
def test_estimators_predict_what_the_oracle_predicts(data):
    table, parameters = data.draw(strategies.growing())
    assume(parameters.get("max_depth") != 0)
    assume(not any(is_it and n == 0 for is_it, n in zip(table.is_categorical, table.n_levels, strict=True)))
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    estimator, X = estimator_for(table, parameters)
    estimator.fit(X, table.y, sample_weight=table.weights)
    rows = np.array([*table.rows, *data.draw(strategies.query_rows(table))])
    answer = estimator.predict if table.n_classes is None else estimator.predict_proba
    values = [naive.predict(expected, row) for row in rows.tolist()]
    scale = max(map(abs, table.y)) if table.n_classes is None else 1.0
    np.testing.assert_allclose(answer(rows), values, rtol=1e-9, atol=1e-9 * scale)


# ----------------------------------------------------------------------------------- compiled and interpreted


@settings(max_examples=100)
@given(strategies.growing(), st.sampled_from([65_535, 2, 5]))
def test_interpreted_kernels_grow_the_same_bits(case, max_bins):
    table, parameters = case
    compiled = fast.grow_table(table, max_bins=max_bins, **parameters)
    interpreted = fast.grow_table(table, max_bins=max_bins, kernels=_jit.interpreted(), **parameters)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


@given(strategies.growing(), st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_interpreted_kernels_draw_the_same(case, seed, max_features, has_random_ties):
    table, parameters = case
    drawn = {
        "seed": seed,
        "has_random_ties": has_random_ties,
        "max_features": min(max_features, table.n_features),
    }
    compiled = fast.grow_table(table, **parameters, **drawn)
    interpreted = fast.grow_table(table, kernels=_jit.interpreted(), **parameters, **drawn)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


# -------------------------------------------------------------------------------- what must not change a tree


def take(table, rows, weights="theirs"):
    """The table with these rows in this order."""
    if isinstance(weights, str):
        weights = None if table.weights is None else [table.weights[i] for i in rows]
    columns = [[column[i] for i in rows] for column in table.columns]
    return replace(table, columns=columns, y=[table.y[i] for i in rows], weights=weights)


@settings(max_examples=100)
@given(st.data())
def test_the_order_of_rows_does_not_matter(data):
    table, parameters = data.draw(strategies.growing())
    drawn = {"seed": 5, "has_random_ties": data.draw(st.booleans())}
    order = data.draw(st.permutations(range(table.n_rows)))
    shuffled = fast.grow_table(take(table, order), **parameters, **drawn)
    assert fast.arrays_of(shuffled) == fast.arrays_of(fast.grow_table(table, **parameters, **drawn))


ROW_LIMITS = ("min_samples_split", "min_samples_leaf")


@settings(max_examples=100)
@given(st.data())
def test_a_repeated_row_is_a_row_of_greater_weight(data):
    table, parameters = data.draw(strategies.growing(has_weights=False))
    parameters = {name: value for name, value in parameters.items() if name not in ROW_LIMITS}
    counts = data.draw(st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows))
    repeated = [i for i, count in enumerate(counts) for _ in range(count)]
    by_rows = fast.arrays_of(fast.grow_table(take(table, repeated), **parameters))
    by_weight = fast.arrays_of(fast.grow_table(replace(table, weights=list(map(float, counts))), **parameters))
    for arrays in (by_rows, by_weight):
        del arrays["n_rows"]
    assert by_weight == by_rows


@given(strategies.growing())
def test_a_row_of_weight_zero_is_no_row(case):
    table, parameters = case
    assume(table.weights is not None and 0.0 in table.weights)
    kept = take(table, [i for i, weight in enumerate(table.weights) if weight > 0])
    assert fast.arrays_of(fast.grow_table(kept, **parameters)) == fast.arrays_of(fast.grow_table(table, **parameters))


@given(strategies.growing(), st.sampled_from([2.0**-30, 0.5, 8.0, 2.0**40]))
def test_the_unit_of_the_weights_does_not_matter(case, unit):
    """A power of two, so that weights are the same numbers in another unit.

    Of exact subsets: where chance is judged, whole weights are copies of rows, and those in another unit more copies.
    """
    table, parameters = case
    parameters = {**parameters, "cat_penalty": 0.0}
    assume(table.weights is not None)
    scaled = replace(table, weights=[weight * unit for weight in table.weights])
    plain, other = fast.grow_table(table, **parameters), fast.grow_table(scaled, **parameters)
    np.testing.assert_array_equal(other.test, plain.test)
    np.testing.assert_array_equal(other.n_rows, plain.n_rows)
    np.testing.assert_allclose(other.weight, plain.weight * unit, rtol=1e-12)


@given(strategies.growing())
def test_a_strictly_increasing_transform_keeps_the_partition(case):
    table, parameters = case
    columns = [
        column if is_it else ranks(column) for column, is_it in zip(table.columns, table.is_categorical, strict=True)
    ]
    transformed = replace(table, columns=columns)
    before, after = (fast.grow_table(t, **parameters) for t in (table, transformed))
    trained = [True] * table.n_rows if table.weights is None else np.array(table.weights) > 0
    leaves = [
        find_leaves(tree, np.ascontiguousarray(np.array(of).T[trained]))
        for tree, of in ((before, table.columns), (after, columns))
    ]
    np.testing.assert_array_equal(*leaves)
    np.testing.assert_array_equal(after.values(), before.values())


def ranks(column):
    """Cubes of the ranks, missing kept."""
    values = sorted({value for value in column if not math.isnan(value)})
    return [value if math.isnan(value) else float(values.index(value)) ** 3 for value in column]


USELESS = {
    "constant": (3.25, 0),
    "missing": (math.nan, 0),
    "one level": (0.0, 1),
    "missing levels": (math.nan, 0),
}


@given(st.data(), st.sampled_from(sorted(USELESS)), st.booleans())
def test_a_column_without_information_changes_nothing(data, kind, is_first):
    table, parameters = data.draw(strategies.growing())
    value, n_levels = USELESS[kind]
    is_categorical = "level" in kind
    at = 0 if is_first else table.n_features

    def with_one(values, more):
        return [*values[:at], more, *values[at:]]

    wider = replace(
        table,
        columns=with_one(table.columns, [value] * table.n_rows),
        is_categorical=with_one(table.is_categorical, is_categorical),
        n_levels=with_one(table.n_levels, n_levels),
    )
    plain = fast.arrays_of(fast.grow_table(table, **parameters))
    if "monotonic" in parameters:
        parameters = {**parameters, "monotonic": with_one(parameters["monotonic"], 0)}
    tree = fast.grow_table(wider, **parameters)
    if is_first:
        test = np.where(tree.is_leaf, tree.test, tree.test - pack_test(1, 0, 0)).astype(np.uint32)
        tree = replace(tree, test=test)
    found = fast.arrays_of(tree)
    del plain["n_levels"], found["n_levels"]
    assert found == plain


@given(strategies.growing())
def test_best_first_without_a_limit_grows_the_same_tree(case):
    table, parameters = case
    parameters = {name: value for name, value in parameters.items() if name != "max_leaf_nodes"}
    depth_first = fast.as_nodes(fast.grow_table(table, **parameters))
    best_first = fast.as_nodes(fast.grow_table(table, max_leaf_nodes=10_000, **parameters))
    assert best_first == depth_first


# ------------------------------------------------------------------------- every way to search gives one tree

WAYS = {
    "sorted lists of every node": {"LIST_ROWS": 65_536, "LIST_SHARE": 1000},
    "sorted lists of small nodes": {"LIST_ROWS": 7},
    "no lists: a histogram, or sorting in each node": {"LIST_ROWS": 0},
}


def grow_by(way, table, **parameters):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(grow_params, name, value)
        return fast.arrays_of(fast.grow_table(table, **parameters))


@settings(max_examples=100)
@given(strategies.growing())
def test_lists_cells_and_sorting_agree(case):
    table, parameters = case
    plain = fast.arrays_of(fast.grow_table(table, **parameters))
    for way in WAYS:
        assert grow_by(way, table, **parameters) == plain, way


@given(strategies.growing(), st.sampled_from([0, 10**6]), st.sampled_from([1, 10**6]))
def test_few_codes_and_few_cells_decide_nothing(case, few_codes, sums_per_row):
    """These two are constants of kernels, so the interpreted ones are patched."""
    table, parameters = case
    twin = _jit.interpreted()
    plain = fast.arrays_of(fast.grow_table(table, kernels=twin, **parameters))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[twin.tree.search.__name__], "FEW_CODES", few_codes)
        patch.setattr(sys.modules[twin.tree.scan_classes.__name__], "SUMS_PER_ROW", sums_per_row)
        patch.setattr(workspace, "SUMS_PER_ROW", sums_per_row)
        patch.setattr(grow_params, "LIST_ROWS", 0)
        assert fast.arrays_of(fast.grow_table(table, kernels=twin, **parameters)) == plain


def large_table(n_rows, n_classes, *, seed=0, is_weighted=False, share_missing=0.0):
    """Numbers with many and with few distinct values and a category, as `strategies` has it."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=n_rows),
        np.round(rng.normal(size=n_rows), 1),
        rng.integers(0, 300, n_rows).astype(float),
        rng.integers(0, 12, n_rows).astype(float),
    ]
    signal = columns[0] + np.abs(columns[1]) + 0.01 * columns[2] + 0.3 * (columns[3] % 4) + rng.normal(size=n_rows)
    y = signal if n_classes is None else np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    for column in columns:
        column[rng.random(n_rows) < share_missing] = math.nan
    weights = rng.integers(1, 4, n_rows).astype(float).tolist() if is_weighted else None
    return strategies.SmallTable(
        [column.tolist() for column in columns],
        y.tolist(),
        weights,
        n_classes,
        [False] * 3 + [True],
        [0] * 3 + [12],
    )


@pytest.mark.parametrize("n_classes", [None, 2, 5])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
@pytest.mark.parametrize("max_leaf_nodes", [None, 60])
@pytest.mark.compiled(reason="a larger table; small ones are searched by every way interpreted too")
def test_ways_agree_on_a_larger_table(n_classes, is_weighted, share_missing, max_leaf_nodes):
    table = large_table(1500, n_classes, is_weighted=is_weighted, share_missing=share_missing)
    for criterion in ["squared_error", "sdr"] if n_classes is None else ["gini", "entropy"]:
        parameters = {"criterion": criterion, "max_leaf_nodes": max_leaf_nodes}
        tree = fast.grow_table(table, **parameters)
        tree.check()
        for way in WAYS:
            assert grow_by(way, table, **parameters) == fast.arrays_of(tree), way


@pytest.mark.parametrize(("n_classes", "criterion"), [(None, "squared_error"), (2, "gini"), (4, "entropy")])
def test_a_larger_table_interpreted(n_classes, criterion):
    table = large_table(300, n_classes, share_missing=0.05)
    compiled = fast.grow_table(table, criterion=criterion)
    interpreted = fast.grow_table(table, criterion=criterion, kernels=_jit.interpreted())
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


@pytest.mark.parametrize(("n_classes", "criterion"), [(None, "squared_error"), (2, "gini"), (3, "entropy")])
def test_a_larger_table_against_the_oracle(n_classes, criterion):
    table = large_table(250, n_classes, seed=3, is_weighted=True, share_missing=0.05)
    parameters = {"criterion": criterion, "min_samples_leaf": 5}
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assert naive.is_certain(expected)
    fast.assert_same_tree(fast.as_nodes(fast.grow_table(table, **parameters)), expected)


@pytest.mark.parametrize("n_classes", [None, 2, 5])
def test_room_is_made_for_a_tree_of_many_nodes(n_classes):
    """More nodes than the arrays begin with: growth stops, gets room, and goes on."""
    table = large_table(12_000, n_classes, seed=1)
    rng = np.random.default_rng(0)
    y = rng.permutation(table.y).tolist()
    criterion = "squared_error" if n_classes is None else "gini"
    for parameters in ({}, {"max_leaf_nodes": 100_000}):
        tree = fast.grow_table(replace(table, y=y), criterion=criterion, **parameters)
        tree.check()
        assert tree.n_nodes > 4096
        assert int(tree.n_rows[tree.is_leaf].sum()) == table.n_rows


@given(strategies.growing(), st.integers(1, 7))
def test_columns_may_be_coded_in_any_chunks(case, n_columns):
    table, parameters = case
    plain = fast.arrays_of(fast.grow_table(table, **parameters))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "CELLS_AT_ONCE", n_columns * table.n_rows)
        assert fast.arrays_of(fast.grow_table(table, **parameters)) == plain


# ------------------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_random_ties_take_each_tied_feature_equally_often(n_classes):
    rng = np.random.default_rng(0)
    column = rng.integers(0, 5, 30).astype(float)
    y = rng.integers(0, n_classes or 4, 30).astype(float)
    columns = [rng.integers(0, 2, 30).astype(float) * 0, column, column * 2, np.exp(column), -column]
    parameters = {"criterion": "squared_error" if n_classes is None else "gini", "max_depth": 1}
    n_seeds, roots = 600, []
    for seed in range(n_seeds):
        tree = fast.grow(columns, y, n_classes=n_classes, has_random_ties=True, seed=seed, **parameters)
        roots.append(int(tree.feature[0]))
    counts = np.bincount(roots, minlength=5)
    assert counts[0] == 0
    expected = n_seeds / 4
    # Chi-squared with 3 degrees of freedom: 16.3 is exceeded once in a thousand; the seeds are fixed.
    assert float(((counts[1:] - expected) ** 2 / expected).sum()) < 16.3


def test_ties_go_to_the_first_feature_unless_asked():
    column = np.arange(8.0)
    X, y = np.stack([column, column, -column], axis=1), [0, 0, 0, 0, 1, 1, 1, 1]
    assert {int(CARTClassifier(random_state=seed).fit(X, y).tree_.arrays.feature[0]) for seed in range(5)} == {0}
    roots = {
        int(CARTClassifier(ties="random", random_state=seed).fit(X, y).tree_.arrays.feature[0]) for seed in range(40)
    }
    assert roots == {0, 1, 2}


@pytest.mark.parametrize("kind", [CARTClassifier, CARTRegressor])
def test_draws_of_features_depend_on_the_seed_alone(kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 9))
    y = (X.sum(axis=1) > 0).astype(int)
    grown = [fast.arrays_of(kind(max_features=3, random_state=seed).fit(X, y).tree_.arrays) for seed in range(6)]
    again = [fast.arrays_of(kind(max_features=3, random_state=seed).fit(X, y).tree_.arrays) for seed in range(6)]
    order = rng.permutation(200)
    shuffled = [
        fast.arrays_of(kind(max_features=3, random_state=seed).fit(X[order], y[order]).tree_.arrays)
        for seed in range(6)
    ]
    assert grown == again == shuffled
    assert len({arrays["test"] for arrays in grown}) == 6


def test_each_feature_is_drawn_equally_often():
    """Every column is as good as any other, so the root is the one that was drawn."""
    column = np.arange(20.0)
    columns, y = [column] * 6, [0] * 10 + [1] * 10
    roots = [
        int(fast.grow(columns, y, n_classes=2, criterion="gini", max_features=1, seed=seed).feature[0])
        for seed in range(600)
    ]
    counts = np.bincount(roots, minlength=6)
    assert float(((counts - 100) ** 2 / 100).sum()) < 20.5  # 5 degrees of freedom, once in a thousand


def test_a_draw_goes_on_until_a_feature_can_split():
    """As scikit-learn: a node is not a leaf because the one feature drawn for it is constant."""
    columns = [[1.0] * 8, [2.0] * 8, [0, 0, 0, 0, 1, 1, 1, 1.0]]
    for seed in range(10):
        tree = fast.grow(columns, [0, 0, 0, 0, 1, 1, 1, 1], n_classes=2, criterion="gini", max_features=1, seed=seed)
        assert tree.n_leaves == 2
