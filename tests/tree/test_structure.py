"""A tree's arrays: what must hold of them, that the check notices when it does not, and how a tree reads."""

import copy
import pickle
import textwrap
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import strategies
from spinney import _jit
from spinney._node_layout import pack_test
from spinney._types import MULTIWAY, SUBSET, THRESHOLD
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.tree import predict
from spinney.tree.broken import BrokenTreeError
from spinney.tree.structure import Tree


@given(strategies.growing(), st.booleans())
def test_every_grown_tree_passes(case, has_random_ties):
    table, parameters = case
    tree = fast.grow_table(table, has_random_ties=has_random_ties, seed=1, **parameters)
    tree.check()
    assert int(tree.n_rows[0]) == (
        table.n_rows if table.weights is None else sum(weight > 0 for weight in table.weights)
    )
    assert tree.depths[tree.is_leaf].max() == tree.depth
    assert tree.n_branches.sum() == tree.n_nodes - 1
    limits = {"max_depth": tree.depth, "max_leaf_nodes": tree.n_leaves}
    for name, reached in limits.items():
        assert reached <= parameters.get(name, reached)
    assert tree.n_rows[tree.is_leaf].min() >= min(parameters.get("min_samples_leaf", 1), tree.n_rows[0])


# --------------------------------------------------------------------------- the check notices what is broken


def class_tree():
    """Seven nodes: a subset at the root, thresholds below; two leaves are mixed.

    0 subset of x0 -> 1, 2;  1 and 2 thresholds on x1
    """
    levels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
    numbers = [0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 2, 2]
    y = [0, 1, 1, 1, 2, 2, 1, 1, 1, 2, 2, 2]
    kinds = {"is_categorical": [True, False], "n_levels": [3, 0]}
    return fast.grow([levels, numbers], y, n_classes=3, criterion="gini", max_depth=2, **kinds)


def number_tree():
    """Missing values have a branch of their own at the root."""
    x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, np.nan, np.nan]
    return fast.grow([x], [1, 1, 2, 5, 5, 6, 9, 9], criterion="squared_error", missing="branch")


def changed(tree, name, at, value):
    """The tree with one entry of an array changed."""
    array = getattr(tree, name).copy()
    array[at] = value
    return replace(tree, **{name: array})


def packed(feature, missing, kind):
    return pack_test(feature, missing, kind)


def leaf(tree, *, is_mixed=False):
    """The first pure or mixed leaf."""
    return int(np.flatnonzero(tree.is_leaf & ((tree.threshold < 0) == is_mixed))[0])


def inner(tree, kind):
    return int(np.flatnonzero(tree.kind == kind)[-1])


BREAKS = {
    "a tree needs a root": lambda t: replace(t, test=t.test[:0]),
    "threshold has shape": lambda t: replace(t, threshold=t.threshold[:-1]),
    "n_rows has shape": lambda t: replace(t, n_rows=t.n_rows.repeat(2)),
    "impurity has shape": lambda t: replace(t, impurity=t.impurity[1:]),
    "impurity must be an array of 1 axes": lambda t: replace(t, impurity=t.impurity.reshape(-1, 1)),
    "threshold must be an array of 1 axes and type float64": lambda t: replace(t, threshold=t.threshold.astype("f4")),
    "subsets must be": lambda t: replace(t, subsets=None),
    "n_levels must be": lambda t: replace(t, n_levels=t.n_levels.astype(">i4")),
    "a number of levels is negative": lambda t: changed(t, "n_levels", 1, -1),
    "n_classes and impurity_exponent must be whole": lambda t: replace(t, impurity_exponent=2.0),
    "surrogates.first must be": lambda t: replace(t, surrogates=t.n_rows),
    "linear.first must be": lambda t: replace(t, linear=1.5),
    "first_child has shape": lambda t: replace(t, first_child=t.first_child[:3]),
    "weight has shape": lambda t: replace(t, weight=t.weight[:0]),
    "distributions has shape": lambda t: replace(t, distributions=t.distributions[:, :2]),
    "its missing branch is beyond": lambda t: changed(
        changed(t, "test", inner(t, SUBSET), packed(int(t.feature[inner(t, SUBSET)]), 0, MULTIWAY)),
        "threshold",
        inner(t, SUBSET),
        -1.0,
    ),
    "children must come after their parent": lambda t: changed(t, "first_child", inner(t, THRESHOLD), 0),
    "children must come after": lambda t: changed(t, "first_child", 0, -5),
    "a leaf has no children": lambda t: changed(t, "first_child", leaf(t), 1),
    "children beyond the last node": lambda t: changed(t, "first_child", inner(t, THRESHOLD), t.n_nodes - 1),
    "exactly one parent": lambda t: changed(t, "first_child", 0, 2),
    "feature beyond the 2": lambda t: changed(t, "test", inner(t, THRESHOLD), packed(2, 0, THRESHOLD)),
    "feature beyond the": lambda t: changed(t, "test", 0, packed(2**27, 0, SUBSET)),
    "the kind of test does not fit": lambda t: changed(t, "test", inner(t, THRESHOLD), packed(0, 0, THRESHOLD)),
    "the kind of test does not": lambda t: changed(t, "test", inner(t, THRESHOLD), packed(1, 0, SUBSET)),
    "threshold is not a number": lambda t: changed(t, "threshold", inner(t, THRESHOLD), np.nan),
    "bitset beyond the array": lambda t: changed(t, "threshold", 0, len(t.subsets)),
    "bitset beyond": lambda t: changed(t, "threshold", 0, -1),
    "bitset beyond the": lambda t: changed(t, "threshold", 0, 0.5),
    "bitset": lambda t: changed(t, "threshold", 0, np.nan),
    "missing branch beyond": lambda t: changed(t, "test", 0, packed(0, 3, SUBSET)),
    "leaf value is not finite": lambda t: changed(t, "threshold", leaf(t), np.inf),
    "leaf is neither a class": lambda t: changed(t, "threshold", leaf(t), 0.5),
    "class of a leaf beyond": lambda t: changed(t, "threshold", leaf(t), 3),
    "row of distributions beyond": lambda t: changed(t, "threshold", leaf(t, is_mixed=True), -3),
    "mixed leaves for": lambda t: changed(t, "threshold", leaf(t, is_mixed=True), 0),
    "distributions must be finite": lambda t: changed(t, "distributions", (0, 0), np.nan),
    "distributions must be": lambda t: changed(t, "distributions", (0, 0), -1),
    "class weights do not add up": lambda t: changed(t, "distributions", (0, 0), 7),
    "a node without rows": lambda t: changed(t, "n_rows", leaf(t), 0),
    "weight must be positive": lambda t: changed(t, "weight", 0, np.nan),
    "impurity must not be negative": lambda t: changed(t, "impurity", 0, -0.1),
    "impurity must not": lambda t: changed(t, "impurity", 0, np.nan),
    "rows of the branches do not add up": lambda t: changed(t, "n_rows", 0, 13),
    "a split must not raise the impurity": lambda t: changed(t, "impurity", 0, 0.01),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_the_check_notices(fault):
    tree = class_tree()
    assert len(tree.distributions) == 2
    assert sorted(tree.kind.tolist()) == [0, 0, 0, 0, THRESHOLD, THRESHOLD, SUBSET]
    tree.check()
    with pytest.raises(BrokenTreeError, match=fault):
        BREAKS[fault](tree).check()


def test_the_check_notices_weights_that_do_not_add_up():
    tree = number_tree()
    tree.check()
    with pytest.raises(BrokenTreeError, match="node 0: weights of the branches do not add up"):
        changed(tree, "weight", 0, 8.001).check()
    with pytest.raises(BrokenTreeError, match="weight must be positive"):
        changed(tree, "weight", leaf(tree), 0.0).check()


def test_the_check_names_the_node():
    tree = class_tree()
    at = leaf(tree)
    with pytest.raises(BrokenTreeError, match=f"^node {at}: class of a leaf beyond the classes$"):
        changed(tree, "threshold", at, 9).check()


def test_a_node_cannot_be_its_own_ancestor():
    """A loop would keep predict running for ever."""
    tree = class_tree()
    for node in np.flatnonzero(~tree.is_leaf):
        for child in range(node + 1):
            with pytest.raises(BrokenTreeError):
                changed(tree, "first_child", node, child).check()


DAMAGED = ["test", "first_child", "threshold", "subsets", "distributions"]


@settings(max_examples=200)
@given(st.data(), strategies.growing())
def test_a_tree_with_a_damaged_entry_is_refused_or_harmless(data, case):
    """Whatever passes the check can be walked: every row ends in a leaf, and no index leaves its array."""
    table, parameters = case
    tree = fast.grow_table(table, **parameters)
    name = data.draw(st.sampled_from([name for name in DAMAGED if getattr(tree, name).size]))
    array = getattr(tree, name).copy()
    raw = array.reshape(-1).view(np.uint8)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    damaged = replace(tree, **{name: array})
    try:
        damaged.check()
    except BrokenTreeError:
        return
    values = np.ascontiguousarray(np.array(table.columns).T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predict, "kernels", lambda _: _jit.interpreted())
        assert damaged.is_leaf[predict.find_leaves(damaged, values)].all()


# ----------------------------------------------------------------------------------------- copies and pickles


@pytest.mark.parametrize("make", [class_tree, number_tree])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))])
def test_a_copy_is_the_same_tree(make, duplicate):
    tree = make()
    assert tree.depth > 0  # derived quantities are cached by now
    twin = duplicate(tree)
    assert fast.arrays_of(twin) == fast.arrays_of(tree)
    assert (twin.n_leaves, twin.depth, twin.legend) == (tree.n_leaves, tree.depth, tree.legend)
    np.testing.assert_array_equal(twin.values(), tree.values())


def test_a_pickle_holds_no_derived_arrays():
    tree = class_tree()
    before = len(pickle.dumps(tree))
    assert tree.values().shape == (tree.n_nodes, 3)
    assert tree.depth == len(tree.nodes_by_depth) - 1
    assert tree.hot.nbytes == 16 * tree.n_nodes
    assert len(pickle.dumps(tree)) == before


@pytest.mark.parametrize("name", ["test", "first_child", "threshold", "weight"])
def test_a_damaged_pickle_is_refused(name):
    tree = class_tree()
    state = tree.__getstate__()
    state[name] = state[name][:-1]
    broken = Tree.__new__(Tree)
    with pytest.raises(BrokenTreeError):
        broken.__setstate__(state)
    unchecked = replace(tree, **{name: state[name]})
    with pytest.raises(BrokenTreeError):
        pickle.loads(pickle.dumps(unchecked))


@pytest.mark.parametrize("part", ["surrogates", "linear"])
@pytest.mark.parametrize("damage", [lambda x: x.astype("f4"), lambda x: x.reshape(-1, 1), lambda _: None])
def test_a_damaged_part_of_a_pickle_is_refused(part, damage):
    """An array of another type would have a kernel compiled for it, or be read as something else."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    X[::7, 0] = np.nan
    choice = {"missing": "surrogate"} if part == "surrogates" else {"leaf_model": "linear"}
    tree = CARTRegressor(max_depth=2, **choice).fit(X, y).tree_.arrays
    held = getattr(tree, part)
    for field in fields(held):
        broken = replace(held, **{field.name: damage(getattr(held, field.name))})
        with pytest.raises(BrokenTreeError, match=f"{part}.{field.name} must be an array"):
            pickle.loads(pickle.dumps(replace(tree, **{part: broken})))


def test_a_pickle_of_other_fields_is_refused():
    state = class_tree().__getstate__()
    del state["linear"]
    with pytest.raises(BrokenTreeError, match="a tree has the fields"):
        Tree.__new__(Tree).__setstate__(state)


@pytest.mark.parametrize("kind", [CARTClassifier, CARTRegressor])
def test_an_estimator_survives_a_pickle(kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    model = kind(max_depth=4).fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.tree_.to_text() == model.tree_.to_text()


def test_a_tree_says_its_size():
    assert repr(class_tree()) == "Tree(n_nodes=7, n_leaves=4, depth=2)"


# ----------------------------------------------------------------------------------------------------- values


@given(strategies.growing())
def test_values_are_means_of_the_leaves_below(case):
    table, parameters = case
    assume(parameters["criterion"] != "absolute_error")  # inner nodes have medians of their own
    tree = fast.grow_table(table, **parameters)
    values = tree.values()
    weights = tree.weight / tree.weight[0]
    for node in np.flatnonzero(~tree.is_leaf):
        below = np.arange(tree.first_child[node], tree.first_child[node] + tree.n_branches[node])
        mean = np.average(values[below], axis=0, weights=weights[below])
        np.testing.assert_allclose(values[node], mean, rtol=1e-9, atol=1e-9)
    if table.n_classes:
        np.testing.assert_allclose(values.sum(axis=1), 1.0)


# ------------------------------------------------------------------------------------------------------- text


PLAY_TENNIS = """
sunny hot high weak no
sunny hot high strong no
overcast hot high weak yes
rain mild high weak yes
rain cool normal weak yes
rain cool normal strong no
overcast cool normal strong yes
sunny mild high weak no
sunny cool normal weak yes
rain mild normal weak yes
sunny mild normal strong yes
overcast mild high strong yes
overcast hot normal weak yes
rain mild high strong no
"""


def play_tennis():
    rows = [line.split() for line in PLAY_TENNIS.strip().splitlines()]
    table = pd.DataFrame(rows, columns=["outlook", "temperature", "humidity", "wind", "play"])
    return table.drop(columns="play").astype("category"), table["play"]


def drawn(text):
    return textwrap.dedent(text).strip("\n")


def test_text_of_play_tennis():
    model = CARTClassifier(cat_penalty=0.0).fit(*play_tennis())
    expected = drawn("""
        [yes] (14 rows: yes 9, no 5)
        ├─ outlook in {rain, sunny}: [no] (10 rows: no 5, yes 5)
        │  ├─ humidity = high: [no] (5 rows: no 4, yes 1)
        │  │  ├─ outlook = sunny: no (3 rows)
        │  │  └─ outlook = rain: [no] (2 rows: no 1, yes 1)
        │  │     ├─ wind = strong: no (1 row)
        │  │     └─ wind = weak: yes (1 row)
        │  └─ humidity = normal: [yes] (5 rows: yes 4, no 1)
        │     ├─ wind = strong: [no] (2 rows: no 1, yes 1)
        │     │  ├─ outlook = rain: no (1 row)
        │     │  └─ outlook = sunny: yes (1 row)
        │     └─ wind = weak: yes (3 rows)
        └─ outlook = overcast: yes (4 rows)
    """)
    text = model.tree_.to_text()
    assert text == expected


def test_text_down_to_a_depth():
    model = CARTClassifier(cat_penalty=0.0).fit(*play_tennis())
    expected = drawn("""
        [yes] (14 rows: yes 9, no 5)
        ├─ outlook in {rain, sunny}: [no] (10 rows: no 5, yes 5) ...
        └─ outlook = overcast: yes (4 rows)
    """)
    assert model.tree_.to_text(max_depth=1) == expected
    assert model.tree_.to_text(max_depth=0) == "[yes] (14 rows: yes 9, no 5)"
    assert model.tree_.to_text(max_depth=99) == model.tree_.to_text()


def test_text_of_a_branch_for_missing_values():
    X, y = [[1.0], [2.0], [3.0], [np.nan]], [1.0, 1.0, 5.0, 9.0]
    text = CARTRegressor(missing="branch").fit(X, y).tree_.to_text()
    assert text == drawn("""
        [4] (4 rows)
        ├─ x0 <= 2.5: 1 (2 rows)
        ├─ x0 > 2.5: 5 (1 row)
        └─ x0 is missing: 9 (1 row)
    """)


def test_text_of_a_side_for_missing_values():
    X, y = [[1.0], [2.0], [3.0], [np.nan]], [1.0, 1.0, 5.0, 5.0]
    text = CARTRegressor().fit(X, y).tree_.to_text()
    assert text == drawn("""
        [3] (4 rows)
        ├─ x0 <= 2.5: 1 (2 rows)
        └─ x0 > 2.5 or missing: 5 (2 rows)
    """)


@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.parametrize("is_category", [False, True])
def test_text_of_known_against_missing(missing, is_category):
    column = ["a", "a", None, None] if is_category else [1.0, 1.0, None, None]
    X = pd.DataFrame({"size": column}).astype("category" if is_category else float)
    text = CARTClassifier(missing=missing).fit(X, ["x", "x", "y", "y"]).tree_.to_text()
    known = "size = a" if is_category else "size is known"
    assert text == drawn(f"""
        [x] (4 rows: x 2, y 2)
        ├─ {known}: x (2 rows)
        └─ size is missing: y (2 rows)
    """)


def test_text_of_a_leaf():
    assert CARTRegressor().fit([[1.0], [2.0]], [2.5, 2.5]).tree_.to_text() == "2.5 (2 rows)"
    assert CARTClassifier().fit([[1.0]], ["only"]).tree_.to_text() == "only (1 row)"


def test_text_shortens_long_subsets():
    levels = [f"level{k:02}" for k in range(40)]
    X = pd.DataFrame({"code": pd.Categorical(levels)})
    text = CARTClassifier(cat_penalty=0.0).fit(X, [0] * 20 + [1] * 20).tree_.to_text()
    assert "level11, ... 8 more}" in text


def test_text_of_a_tree_without_names():
    text = class_tree().to_text()
    assert text.splitlines()[0] == "[1] (12 rows: 1 6, 2 5, 0 1)"
    assert "├─ x0 = 0: " in text
    assert "└─ x1 > 2.5: " in text
