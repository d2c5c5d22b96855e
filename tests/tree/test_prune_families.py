"""The prunings by node statistics, word for word: risks, splits of little gain, leaves that agree, nodes by hand.

On trees that CART grows, and on trees that only textbooks grow, built by hand: a branch for each level, empty leaves,
rows that take every branch, surrogates, linear leaves.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fast
import strategies
from spinney._node_layout import pack_test
from spinney._types import EVERY_BRANCH, MULTIWAY, SUBSET, THRESHOLD
from spinney.tree.linear import LinearLeaves
from spinney.tree.predict import find_leaves, predict_classes, predict_shares, predict_values
from spinney.tree.prune import (
    cut_sequence,
    from_units,
    merge_leaves,
    node_risk,
    prune_by_gain,
    prune_to_alpha,
    snip,
)
from spinney.tree.structure import Tree
from spinney.tree.subtree import cut_nodes
from spinney.tree.surrogates import Surrogates


def word_of(feature, kind, missing=0):
    return pack_test(feature, missing, kind)


def gini(weights):
    total = sum(weights)
    return 1.0 - sum((w / total) ** 2 for w in weights) if total else 0.0


def colours(missing=EVERY_BRANCH):
    """Three colours, of which one has no row; below one of them a threshold, at which missing values take each branch.

    Nodes: 0 colour; 1 red, 2 green (threshold on x1), 3 blue (empty); 4 and 5 below green.
    """
    weights = np.array([[6.5, 3.5], [4.0, 1.0], [2.5, 2.5], [0.0, 0.0], [2.5, 0.5], [0.0, 2.0]])
    return Tree(
        test=np.array([word_of(0, MULTIWAY, missing), 0, word_of(1, THRESHOLD, missing), 0, 0, 0], np.uint32),
        first_child=np.array([1, 0, 4, 0, 0, 0], np.int32),
        threshold=np.array([1.0, -1.0, 2.5, -2.0, -3.0, 1.0]),
        subsets=np.zeros(0, np.uint64),
        n_rows=np.array([10, 5, 5, 0, 4, 2], np.uint32),  # one row is in both leaves below green
        weight=weights.sum(axis=1),
        impurity=np.array([gini(row) for row in weights]),
        impurity_exponent=0,
        distributions=np.array([[4.0, 1.0], [6.5, 3.5], [2.5, 0.5]]),
        n_classes=2,
        n_levels=np.array([3, 0], np.int32),
    )


def test_the_tree_of_colours_is_one():
    colours().check()


ROWS = np.array([[0.0, 9.0], [1.0, 1.0], [1.0, 3.0], [2.0, 0.0], [np.nan, 3.0], [np.nan, np.nan], [1.0, np.nan]])


def test_errors_are_what_is_not_of_the_heaviest_class():
    tree = colours()
    np.testing.assert_allclose(node_risk(tree, "error"), np.array([3.5, 1, 2.5, 0, 0.5, 0]) / 10, rtol=1e-15)
    np.testing.assert_allclose(node_risk(tree), tree.weight / 10 * tree.impurity)
    with pytest.raises(ValueError, match="risk='gini': choose one of 'impurity', 'error', 'squared'"):
        node_risk(tree, "gini")


def test_the_sequence_of_a_multiway_tree_by_hand():
    """Green: 2.5 errors become 0.5 by one more leaf; the root: 3.5 become 1.5 by three more, 3.5 by two."""
    steps = cut_sequence(colours(), "error")
    assert [(step.nodes, step.n_leaves) for step in steps] == [([], 4), ([0], 1)]
    # by itself green would fall at 0.2; the root, which gains 2 in three leaves, falls before it
    assert steps[1].alpha == pytest.approx(0.2 / 3)
    assert [step.risk for step in steps] == pytest.approx([0.15, 0.35])


def test_empty_leaves_follow_their_parent_when_nodes_above_or_beside_are_cut():
    tree = colours()
    left = cut_nodes(tree, [2])
    left.check()
    assert left.n_leaves == 3
    shares = predict_shares(left, ROWS)
    expected = [[0.8, 0.2], [0.5, 0.5], [0.5, 0.5], [0.65, 0.35], [0.65, 0.35], [0.65, 0.35], [0.5, 0.5]]
    np.testing.assert_allclose(shares, expected)
    root = cut_nodes(tree, [0])
    root.check()
    assert root.n_nodes == 1
    np.testing.assert_allclose(predict_shares(root, ROWS), [[0.65, 0.35]] * len(ROWS))


def weakest_links(tree, risk):
    """The sequence by the definition, a link at a time: (alpha, leaves) of every distinct alpha."""
    risk = [Fraction(float(x)) for x in risk]
    is_leaf = tree.is_leaf.copy()

    def below(node):
        if is_leaf[node]:
            return risk[node], 1
        first = int(tree.first_child[node])
        parts = [below(child) for child in range(first, first + int(tree.n_branches[node]))]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    def is_open(node):
        while node > 0:
            node = int(tree.parent[node])
            if is_leaf[node]:
                return False
        return True

    found = []
    while not is_leaf[0]:
        links = {}
        for node in np.flatnonzero(~is_leaf).tolist():
            if is_open(node):
                left, n_leaves = below(node)
                links[node] = max(risk[node] - left, Fraction(0)) / (n_leaves - 1)
        weakest = min(links, key=lambda node: (links[node], node))
        is_leaf[weakest] = True
        found.append((float(links[weakest]), below(0)[1]))
    return found


@given(strategies.growing(max_rows=14), st.sampled_from(["impurity", "error"]))
def test_the_sequence_is_the_definition(case, risk):
    tree = fast.grow_table(case[0], **case[1])
    of_node = node_risk(tree, risk)
    steps = cut_sequence(tree, risk)
    n_leaves, at = tree.n_leaves, 0
    for alpha, left in weakest_links(tree, of_node):
        n_leaves, at = left, alpha
        matching = [step for step in steps if abs(step.alpha - at) <= 1e-9 * max(of_node[0], 1e-300)]
        assert matching, (at, steps)
        assert matching[0].n_leaves <= n_leaves
    assert steps[-1].n_leaves == 1
    alphas = [step.alpha for step in steps]
    assert alphas == sorted(set(alphas))


@given(strategies.growing(max_rows=20), st.floats(0, 1), st.sampled_from(["impurity", "error"]))
def test_pruning_never_raises_its_own_cost(case, place, risk):
    tree = fast.grow_table(case[0], **case[1])
    alpha = place * float(node_risk(tree, risk)[0]) / 2
    pruned = prune_to_alpha(tree, from_units(tree, alpha, risk), risk)
    pruned.check()

    def cost(some):
        return float(node_risk(some, risk)[some.is_leaf].sum()) + alpha * some.n_leaves

    assert cost(pruned) <= cost(tree) * (1 + 1e-9) + 1e-12


def test_standard_deviations_are_squared_for_the_error():
    rng = np.random.default_rng(0)
    columns, y = rng.normal(size=(2, 60)), 1e9 * rng.normal(size=60)
    by_variance = fast.grow(columns, y, criterion="squared_error", max_depth=1)
    by_deviation = fast.grow(columns, y, criterion="sdr", max_depth=1)
    assert by_variance.threshold[0] == by_deviation.threshold[0]
    one = from_units(by_variance, node_risk(by_variance, "error")[0], "error")
    two = from_units(by_deviation, node_risk(by_deviation, "squared")[0], "squared")
    assert one == pytest.approx(two, rel=1e-9)
    assert one == pytest.approx(y.var(), rel=1e-9)


def test_a_long_chain_takes_no_longer_than_its_links():
    n = 20_000
    is_leaf = np.arange(2 * n + 1) % 2 == 1
    is_leaf[-1] = True
    weight = np.ones(2 * n + 1)
    weight[~is_leaf] = np.arange(n + 1, 1, -1)
    chain = Tree(
        test=np.where(is_leaf, 0, word_of(0, THRESHOLD)).astype(np.uint32),
        first_child=np.where(is_leaf, 0, np.arange(2 * n + 1) + 1).astype(np.int32),
        threshold=np.arange(2 * n + 1.0),
        subsets=np.zeros(0, np.uint64),
        n_rows=weight.astype(np.uint32),
        weight=weight,
        impurity=np.where(is_leaf, 0.0, 1.0),
        impurity_exponent=0,
        distributions=np.zeros((0, 0)),
        n_classes=0,
        n_levels=np.zeros(1, np.int32),
    )
    steps = cut_sequence(chain)
    assert steps[0].n_leaves == n + 1
    assert steps[-1].n_leaves == 1


# --------------------------------------------------------------------------------------------- splits of little gain


def children_of(tree, node):
    return range(int(tree.first_child[node]), int(tree.first_child[node] + tree.n_branches[node]))


def gains_of(tree):
    lost = tree.weight * tree.impurity / tree.weight[0]
    return [lost[node] - sum(lost[child] for child in children_of(tree, node)) for node in range(tree.n_nodes)]


def cut_by_gain(tree, bound):
    """The rule word for word: until none is left, a test whose branches are all leaves and that gains too little."""
    is_leaf, gains = tree.is_leaf.copy(), gains_of(tree)
    while True:
        for node in np.flatnonzero(~is_leaf).tolist():
            if all(is_leaf[child] for child in children_of(tree, node)) and gains[node] < bound:
                is_leaf[node] = True
                break
        else:
            return np.flatnonzero(is_leaf & ~tree.is_leaf)


@given(strategies.growing(max_rows=20), st.floats(0.001, 1))
def test_splits_of_little_gain_are_taken_back(case, place):
    tree = fast.grow_table(case[0], **case[1])
    bound = place * float(tree.impurity[0])
    assume(bound == 0 or all(abs(gain - bound) > 1e-9 * bound for gain in gains_of(tree)))
    pruned = prune_by_gain(tree, np.ldexp(bound, tree.impurity_exponent))
    pruned.check()
    assert fast.arrays_of(pruned) == fast.arrays_of(cut_nodes(tree, cut_by_gain(tree, bound)))


def test_gain_by_hand():
    tree = colours()
    gain = [0.5 * (0.5 - 0.6 * gini((2.5, 0.5))), gini((6.5, 3.5)) - 0.5 * gini((4, 1)) - 0.25]
    assert gain == pytest.approx([1 / 6, 0.045])
    assert prune_by_gain(tree, 0.16) is tree  # the root gains less, but its branch more
    assert prune_by_gain(tree, 0.17).n_nodes == 1
    assert prune_by_gain(cut_nodes(tree, [2]), 0.04).n_leaves == 3
    assert prune_by_gain(cut_nodes(tree, [2]), 0.05).n_leaves == 1


# -------------------------------------------------------------------------------------------------- leaves that agree


@given(strategies.growing(max_rows=20), st.data())
def test_merged_leaves_predict_the_same(case, data):
    table, parameters = case
    tree = fast.grow_table(table, **parameters)
    merged = merge_leaves(tree)
    merged.check()
    rows = np.array(data.draw(strategies.query_rows(table, 10)))
    predict = predict_classes if tree.n_classes else predict_values
    np.testing.assert_array_equal(predict(merged, rows), predict(tree, rows))
    last = [
        node for node in np.flatnonzero(~merged.is_leaf) if all(merged.is_leaf[merged.children_of(np.array([node]))])
    ]
    answers = merged.leaf_class if tree.n_classes else merged.threshold
    assert all(len(set(answers[merged.children_of(np.array([node]))].tolist())) > 1 for node in last)


def test_leaves_of_one_class_are_merged_and_empty_ones_follow():
    tree = colours()
    assert merge_leaves(tree) is tree
    agreed = cut_nodes(tree, [2])  # red says 0, green 0 by a tie, blue as the root 0
    merged = merge_leaves(agreed)
    merged.check()
    assert merged.n_nodes == 1
    assert merged.distributions.tolist() == [[6.5, 3.5]]


def test_equal_values_stay_exactly_that():
    tree = fast.grow([np.arange(7.0)], [1, 2, 3, 4, 5, 6, 7], np.arange(1, 8) / 10, criterion="squared_error")
    tree.threshold[tree.is_leaf] = 0.1
    assert merge_leaves(tree).threshold.tolist() == [0.1]


# ------------------------------------------------------------------------------------------------------ nodes by hand


def test_snip_by_hand():
    tree = colours()
    assert fast.arrays_of(snip(tree, 2)) == fast.arrays_of(cut_nodes(tree, [2]))
    assert snip(tree, [2, 0]).n_nodes == 1
    assert snip(tree, 4) is tree  # a leaf
    for node in (6, -1):
        with pytest.raises(ValueError, match=f"node {node}: the tree has the nodes 0 to 5"):
            snip(tree, node)
    for node in (1.0, "root", None, True):
        with pytest.raises(TypeError, match="node must be an index of a node"):
            snip(tree, node)


# ------------------------------------------------------------------------------------------------- surrogates, models


def with_surrogates():
    """Two thresholds one below the other, each with a threshold and a subset of 70 levels as surrogates."""
    bits = np.zeros((5, 2), np.uint64)
    bits[0, 0], bits[2, 1], bits[3, 0] = 5, 7, 9  # of the first surrogate, of a subset test, of the second surrogate
    bits[1, 0], bits[4, 0] = 7, 15  # levels that the surrogates know
    weight = np.array([8.0, 5, 3, 3, 2, 1, 2])
    return Tree(
        test=np.array([word_of(0, THRESHOLD), word_of(1, THRESHOLD), word_of(2, SUBSET), 0, 0, 0, 0], np.uint32),
        first_child=np.array([1, 3, 5, 0, 0, 0, 0], np.int32),
        threshold=np.array([0.5, 1.5, 4.0, 1.0, 2.0, 3.0, 4.0]),
        subsets=bits.reshape(-1),
        n_rows=weight.astype(np.uint32),
        weight=weight,
        impurity=np.array([4.0, 1.0, 1.0, 0, 0, 0, 0]),
        impurity_exponent=0,
        distributions=np.zeros((0, 0)),
        n_classes=0,
        n_levels=np.array([0, 0, 70], np.int32),
        surrogates=Surrogates(
            first=np.array([0, 2, 3, 3, 3, 3, 3, 3], np.int32),
            test=np.array([word_of(1, THRESHOLD, 1), word_of(2, SUBSET), word_of(2, SUBSET, 1)], np.uint32),
            threshold=np.array([7.5, 0.0, 6.0]),
            agree=np.array([0.9, 0.8, 0.7]),
            adjusted=np.array([0.6, 0.5, 0.4]),
            improve=np.array([3.0, 0.5, 0.25, 0, 0, 0, 0]),
        ),
    )


def test_surrogates_move_with_their_tests():
    tree = with_surrogates()
    tree.check()
    left = cut_nodes(tree, [1])
    left.check()
    assert left.n_nodes == 5
    kept = left.surrogates
    assert kept.first.tolist() == [0, 2, 2, 2, 2, 2]
    assert kept.first.dtype == np.int32
    assert kept.test.tolist() == tree.surrogates.test[:2].tolist()
    assert kept.agree.tolist() == [0.9, 0.8]
    assert kept.adjusted.tolist() == [0.6, 0.5]
    assert kept.improve.tolist() == [3.0, 0.0, 0.25, 0.0, 0.0]
    assert left.subsets.tolist() == [0, 7, 5, 0, 7, 0]  # the test's, then the surrogate's two
    assert (left.threshold[2], kept.threshold.tolist()) == (0.0, [7.5, 2.0])
    assert tree.surrogates.threshold.tolist() == [7.5, 0.0, 6.0]  # the whole tree is as it was
    rows = np.array([[np.nan, 9.0, 0], [np.nan, 7, 0], [np.nan, np.nan, 2], [np.nan, np.nan, 1], [1, 0, 64]])
    whole = find_leaves(tree, rows).tolist()
    assert [{3: 1, 4: 1, 5: 3, 6: 4}[leaf] for leaf in whole] == find_leaves(left, rows).tolist()
    assert cut_nodes(tree, [0]).surrogates.first.tolist() == [0, 0]


def test_models_of_leaves_that_are_left_stay():
    linear = LinearLeaves(
        first=np.array([0, 0, 0, 0, 1, 1, 3, 4]),
        feature=np.array([0, 0, 1, 1], np.int32),
        coefficient=np.array([1.0, 2.0, 3.0, 4.0]),
        fill=np.array([0.1, 0.2, 0.3, 0.4]),
    )
    tree = replace(with_surrogates(), linear=linear)
    left = cut_nodes(tree, [1])
    assert left.linear.first.tolist() == [0, 0, 0, 0, 2, 3]
    assert left.linear.feature.tolist() == [0, 1, 1]
    assert left.linear.coefficient.tolist() == [2.0, 3.0, 4.0]
    assert left.linear.fill.tolist() == [0.2, 0.3, 0.4]
    mean = (3 * 1.0 + 2 * 2.0) / 5
    assert left.threshold[1] == pytest.approx(mean)
    same = replace(tree, threshold=np.where(tree.is_leaf, 1.0, tree.threshold))
    assert merge_leaves(same) is same
    without = replace(linear, first=np.array([0, 0, 0, 0, 0, 0, 2, 3]))
    assert merge_leaves(replace(same, linear=without)).n_nodes == 5
