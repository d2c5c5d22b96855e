"""Forests against the naive grower, and the ways to read one against each other."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import naive
import strategies
from spinney import _jit
from spinney._node_layout import kind_of_link, pack_test
from spinney._types import SUBSET
from spinney.estimators.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
from spinney.estimators.random_forest import RandomForestClassifier, RandomForestRegressor
from spinney.table.coding import code_table
from spinney.table.fixed_point import fix_weights
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import Forest, join_forests, join_trees
from spinney.tree.predict import (
    add_votes,
    find_all_leaves,
    find_coded_leaves,
    find_leaves,
    predict_shares,
    predict_values,
)

BAGS = {
    "bootstrap": {},
    "small": {"max_samples": 0.5},
    "poisson": {"bootstrap": "poisson"},
    "pasted": {"replace": False, "max_samples": 0.7},
    "whole": {"bootstrap": False},
}


def fit(table, kind, **parameters):
    """A forest on a small table, and X; a feature drawn or not, ties go to the first."""
    categories = [j for j, is_it in enumerate(table.is_categorical) if is_it]
    X = np.array(table.columns).T
    model = kind(categorical_features=categories or None, n_jobs=1, **parameters)
    return model.fit(X, table.y), X


def is_fit_for_users(table):
    """Whether an estimator takes the table: more than one row, and no category without a level."""
    return table.n_rows > 1 and not any(
        is_it and n == 0 for is_it, n in zip(table.is_categorical, table.n_levels, strict=True)
    )


# ----------------------------------------------------------------------------------------- against the naive grower


@settings(max_examples=40)
@given(
    strategies.growing(has_weights=False),
    st.sampled_from(sorted(BAGS)),
    st.integers(0, 2**32 - 1),
)
def test_each_tree_is_a_naive_tree_of_its_bag(case, bag, seed):
    """Counts are weights: `naive.grow` leaves out the rows that a bag lacks."""
    table, parameters = case
    assume(is_fit_for_users(table) and parameters.get("max_depth") != 0)
    parameters["cat_penalty"] = 0.0  # with one, equal rows gain just what luck gains: rounding decides
    kind = RandomForestRegressor if table.n_classes is None else RandomForestClassifier
    signs = parameters.pop("monotonic", None)
    model, _ = fit(
        table, kind, n_estimators=3, max_features=None, ties="first", random_state=seed, monotonic_cst=signs,
        **BAGS[bag], **parameters,
    )  # fmt: skip
    if signs is not None:
        parameters["monotonic"] = signs
    for t, tree in enumerate(model.forest_):
        tree.check()
        counts = model._draw.counts(t).tolist()
        if not any(counts):  # a Poisson bag may be empty: the estimator says what it does then
            continue
        expected = naive.grow(table.columns, table.y, list(map(float, counts)), **table.data, **parameters)
        if naive.is_certain(expected):
            fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds=signs is not None)


@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_a_larger_forest(n_classes):
    """More rows than all pairs serve, all kinds of columns."""
    rng = np.random.default_rng(0)
    n = 160
    columns = [rng.normal(size=n), np.round(rng.normal(size=n)), rng.integers(0, 6, n).astype(float)]
    columns[1][rng.random(n) < 0.1] = math.nan
    score = columns[0] + columns[2] % 3 + rng.normal(size=n)
    y = np.round(score, 2) if n_classes is None else np.argsort(np.argsort(score)) * n_classes // n
    flags = [False, False, True]
    table = strategies.SmallTable([c.tolist() for c in columns], y.tolist(), None, n_classes, flags, [0, 0, 6])
    kind = RandomForestRegressor if n_classes is None else RandomForestClassifier
    settings = {"n_estimators": 4, "max_features": None, "ties": "first", "cat_penalty": 0.0, "random_state": 1}
    model, _ = fit(table, kind, **settings)
    n_certain = 0
    for t, tree in enumerate(model.forest_):
        counts = model._draw.counts(t).astype(float).tolist()
        expected = naive.grow(table.columns, table.y, counts, **table.data, criterion=model.criterion)
        if naive.is_certain(expected):
            n_certain += 1
            fast.assert_same_tree(fast.as_nodes(tree), expected)
    assert n_certain > 0


# ------------------------------------------------------------------------------------------- ways to read a forest


@st.composite
def fitted(draw):
    """A small forest or extra-trees of any kind of table, grown on bins or not, with rows to predict."""
    table = draw(strategies.tables(has_weights=False))
    assume(is_fit_for_users(table))
    kinds = (RandomForestRegressor, ExtraTreesRegressor)
    if table.n_classes is not None:
        kinds = (RandomForestClassifier, ExtraTreesClassifier)
    model, X = fit(
        table,
        draw(st.sampled_from(kinds)),
        n_estimators=draw(st.integers(1, 4)),
        max_bins=draw(st.sampled_from([2, 5, 65_535])),
        missing=draw(st.sampled_from(["learned", "branch"])),
        max_depth=draw(st.sampled_from([None, 2])),
        bootstrap=draw(st.booleans()),
        random_state=draw(st.integers(0, 99)),
    )
    queries = np.array(draw(strategies.query_rows(table)))
    return model, table, np.concatenate([X, queries])


@settings(max_examples=40)
@given(fitted())
def test_votes_are_the_sum_of_what_trees_say(case):
    model, _, rows = case
    forest, values = model.forest_, model._values(rows)
    assume(forest.n_classes != 1)  # no votes are counted where there is one class
    says = [predict_shares(t, values) if t.n_classes else predict_values(t, values)[:, None] for t in forest]
    out = np.zeros_like(says[0])
    add_votes(forest, values, 0, len(values), out)
    np.testing.assert_array_equal(out, sum(says[1:], start=says[0]))  # in the order of the trees: to the bit
    answer = model.predict_proba(rows) if forest.n_classes else model.predict(rows)
    np.testing.assert_allclose(answer, np.squeeze(out / len(forest), axis=() if forest.n_classes else 1), rtol=1e-12)
    # a naive walk of each tree
    naively = [[naive.predict(fast.as_nodes(tree), row) for row in values.tolist()] for tree in forest]
    scale = 1.0 if forest.n_classes else float(np.abs(says).max())
    np.testing.assert_allclose(answer, np.mean(naively, axis=0), rtol=1e-9, atol=1e-9 * scale)


@given(fitted(), st.integers(1, 9), st.integers(0, 3))
def test_votes_of_some_rows_and_in_any_blocks(case, n_block, first):
    model, _, rows = case
    forest, values = model.forest_, model._values(rows)
    whole = np.zeros((len(values), max(forest.n_classes, 1)))
    add_votes(forest, values, 0, len(values), whole)
    part = np.zeros_like(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spinney.tree.predict.BLOCK_ROWS", n_block)
        add_votes(forest, values, first, len(values) - first, part)
    inside = slice(first, len(values) - first)
    np.testing.assert_array_equal(part[inside], whole[inside])
    assert not part[:first].any()
    assert not part[len(values) - first :].any()


@given(fitted())
def test_leaves_of_a_forest_are_those_of_its_trees(case):
    model, _, rows = case
    values = model._values(rows)
    leaves = find_all_leaves(model.forest_, values)
    np.testing.assert_array_equal(leaves, np.stack([find_leaves(tree, values) for tree in model.forest_], axis=1))
    np.testing.assert_array_equal(leaves, model.apply(rows))
    for t, tree in enumerate(model.forest_):
        assert tree.is_leaf[leaves[:, t]].all()


@settings(max_examples=40)
@given(fitted(), st.data(), st.booleans())
def test_codes_lead_to_the_leaves_of_values(case, data, is_interpreted):
    """A code stands for the lowest value of its bin, which no threshold parts from the others."""
    model, table, _ = case
    k = _jit.interpreted() if is_interpreted else fast.compiled()
    flags = zip(table.n_levels, table.is_categorical, strict=True)
    source = fast.ColumnTable(table.columns, [tuple(range(n)) if is_it else None for n, is_it in flags])
    codes = code_table(source, fix_weights(None, table.n_rows).values, model.max_bins, k)
    ids = data.draw(st.lists(st.integers(0, table.n_rows - 1), max_size=12))
    rows = np.array(ids, np.int32)
    values = np.array(table.columns).T.copy()
    with np.errstate(all="ignore"):
        for tree in model.forest_:
            found = find_coded_leaves(tree, codes, rows, k)
            np.testing.assert_array_equal(found, find_leaves(tree, values)[rows])


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize("max_bins", [5, 65_535])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_codes_and_values_of_a_larger_table(kind, max_bins, share_missing):
    """More rows than a block holds, and rows outside the bag: they come to nodes that have no row of their bin."""
    rng = np.random.default_rng(0)
    n = 1000
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, 70, n)
    X[rng.random((n, 4)) < share_missing] = math.nan
    y = (np.nan_to_num(X[:, 0]) + rng.normal(size=n) > 0).astype(int)
    model = kind(n_estimators=3, max_bins=max_bins, categorical_features=[3], bootstrap=True, random_state=0, n_jobs=1)
    model.fit(X, y)
    levels = [None, None, None, tuple(range(70))]
    codes = code_table(fast.ColumnTable(X.T, levels), np.ones(1, np.int64), max_bins, fast.compiled())
    rows = rng.permutation(n).astype(np.int32)
    values = model._values(X)
    for tree in model.forest_:
        assert tree.n_leaves > 50
        np.testing.assert_array_equal(
            find_coded_leaves(tree, codes, rows, fast.compiled()), find_leaves(tree, values)[rows]
        )


# -------------------------------------------------------------------------------------------------- one array of trees


@given(fitted())
def test_trees_go_into_a_forest_and_come_out_the_same(case):
    model, _, _ = case
    trees = list(model.forest_)
    joined = join_trees(trees, model.forest_.legend)
    joined.check()
    for before, after in zip(trees, joined, strict=True):
        assert fast.arrays_of(after) == fast.arrays_of(before)
    head = joined.head(1)
    rest = join_trees(trees[1:]) if len(trees) > 1 else None
    both = head if rest is None else join_forests(head, rest)
    assert fast.arrays_of(both) == fast.arrays_of(joined)
    assert fast.arrays_of(pickle.loads(pickle.dumps(joined))) == fast.arrays_of(joined)


def make_forest():
    """Three trees of two classes with thresholds, subsets of two words and mixed leaves."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=300), rng.integers(0, 70, 300).astype(float)], axis=1)
    y = (X[:, 0] + (X[:, 1] % 3) + rng.normal(size=300) > 1).astype(int)
    model = RandomForestClassifier(
        n_estimators=3, max_depth=4, max_features=1, categorical_features=[1], cat_penalty=0.0, random_state=0, n_jobs=1
    )
    return model.fit(X, y).forest_


CHILD = np.uint64(1 << 32)


def break_one(name, at, change):
    """Change one entry of an array of the forest."""

    def broken(forest):
        array = getattr(forest, name).copy()
        place = at(forest)
        array[place] = change(array[place], forest)
        return replace(forest, **{name: array})

    return broken


def inner(forest):
    """An inner node of the second tree."""
    first = int(forest.first_node[1])
    return first + int(np.flatnonzero(~forest.is_leaf[first:])[1])


def leaf(forest):
    first = int(forest.first_node[1])
    return first + int(np.flatnonzero(forest.is_leaf[first:])[0])


def subset_node(forest):
    return int(np.flatnonzero(kind_of_link(forest.hot[:, 1]) == SUBSET)[-1])


def bits_of(value):
    return np.float64(value).view(np.uint64)


FEATURE = np.uint64(pack_test(1, 0, 0))
BREAKS = {
    "a child beyond the last node": break_one("hot", lambda f: (inner(f), 1), lambda v, _: v + np.uint64(5000) * CHILD),
    "a child that is its parent": break_one(
        "hot", lambda f: (inner(f), 1), lambda v, f: v % CHILD + np.uint64(inner(f) - f.first_node[1]) * CHILD
    ),
    "a child of another": break_one("hot", lambda f: (inner(f), 1), lambda v, _: v + CHILD),
    "a feature that is none": break_one("hot", lambda f: (inner(f), 1), lambda v, _: v + np.uint64(9) * FEATURE),
    "a leaf that leads elsewhere": break_one("hot", lambda f: (leaf(f), 1), lambda v, _: v - CHILD),
    "a leaf that leads out": break_one("hot", lambda f: (leaf(f), 1), lambda v, _: v + np.uint64(1 << 20) * CHILD),
    "a leaf of another kind": break_one("hot", lambda f: (leaf(f), 1), lambda v, _: v + np.uint64(1)),
    "a threshold that is no number": break_one("hot", lambda f: (inner(f), 0), lambda _, __: bits_of(math.nan)),
    "a bitset beyond the array": break_one("hot", lambda f: (subset_node(f), 0), lambda _, f: bits_of(len(f.subsets))),
    "a class that is none": break_one("hot", lambda f: (leaf(f), 0), lambda _, __: bits_of(7.0)),
    "shares that are none": break_one("hot", lambda f: (leaf(f), 0), lambda _, __: bits_of(-5000.0)),
    "a tree that begins too late": break_one("first_node", lambda _: 1, lambda v, _: v + 1),
    "trees in the wrong order": break_one("first_node", lambda _: 1, lambda _, f: f.n_nodes + 1),
    "words of another tree": break_one("first_word", lambda _: 2, lambda v, _: v - 1),
    "an end beyond the words": break_one("first_word", lambda _: -1, lambda v, _: v + 2),
    "shares of another tree": break_one("first_mixed", lambda _: 1, lambda v, _: v - 1),
    "a node without rows": break_one("n_rows", inner, lambda _, __: 0),
    "a row too many": break_one("n_rows", leaf, lambda v, _: v + 1),
    "a weight too many": break_one("weight", leaf, lambda v, _: v + 1),
    "a negative impurity": break_one("impurity", inner, lambda _, __: -1.0),
    "an impurity that is no number": break_one("impurity", leaf, lambda _, __: math.nan),
    "a negative share": break_one("distributions", lambda _: (0, 0), lambda v, _: -v - 1),
    "one node less": lambda f: replace(f, hot=f.hot[:-1]),
    "hot of another shape": lambda f: replace(f, hot=f.hot.reshape(-1, 4) if len(f.hot) % 2 == 0 else f.hot.ravel()),
    "fewer features": lambda f: replace(f, n_levels=f.n_levels[:1]),
    "fewer levels": lambda f: replace(f, n_levels=np.zeros_like(f.n_levels)),
    "another number of classes": lambda f: replace(f, n_classes=3),
}


@pytest.fixture(scope="module")
def whole_forest():
    return make_forest()


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_forest_is_refused(how, whole_forest):
    whole_forest.check()
    broken = BREAKS[how](whole_forest)
    with pytest.raises(BrokenTreeError):
        broken.check()


def test_a_damaged_pickle_is_refused(whole_forest):
    state = whole_forest.__getstate__()
    state["hot"] = BREAKS["a child beyond the last node"](whole_forest).hot
    with pytest.raises(BrokenTreeError, match="tree 1"):
        Forest.__new__(Forest).__setstate__(state)


def test_a_compact_forest_predicts_the_same(whole_forest):
    values = np.random.default_rng(1).normal(size=(40, 2))
    values[:, 1] = np.arange(40)
    light = whole_forest.compact()
    out = np.zeros((2, 40, 2))
    for forest, votes in zip((whole_forest, light), out, strict=True):
        add_votes(forest, values, 0, 40, votes)
    np.testing.assert_array_equal(*out)
    with pytest.raises(ValueError, match="compact"):
        light.tree(0)
