"""Pruning against the naive one, against scikit-learn's and every other subtree, and its own promise; importances."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fast
import naive
import strategies
from spinney._types import SUBSET
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.tree import subtree
from spinney.tree.prune import cut_sequence, from_units, node_risk, prune_to_alpha
from spinney.tree.reduced_error import prune_on_rows
from spinney.tree.subtree import cut_nodes


@st.composite
def prunable(draw):
    """A table and parameters without bounds on values, so that inner nodes predict their own mean."""
    table, parameters = draw(strategies.growing())
    parameters.pop("monotonic", None)
    return table, parameters


def grow_pair(case):
    table, parameters = case
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    return fast.grow_table(table, **parameters), expected


def has_clear_alphas(alphas, scale):
    """Whether the alphas are equal or well apart, so that rounding does not decide which are cut together."""
    return bool(np.all(np.diff(alphas) > 1e-9 * scale)) if scale > 0 else True


@given(prunable())
def test_the_sequence_is_the_oracle_s(case):
    tree, expected = grow_pair(case)
    alphas, risks = naive.cost_complexity_path(expected)
    scale = naive.node_risk(expected, expected.weight)
    assume(has_clear_alphas(alphas, scale))
    steps = cut_sequence(tree)
    found = np.array([(from_units(tree, step.alpha), from_units(tree, step.risk)) for step in steps])
    np.testing.assert_allclose(found, np.array([alphas, risks]).T, rtol=1e-7, atol=1e-9 * scale)


@given(prunable(), st.floats(0, 1))
def test_pruned_trees_are_the_oracle_s(case, place):
    tree, expected = grow_pair(case)
    alphas, _ = naive.cost_complexity_path(expected)
    scale = naive.node_risk(expected, expected.weight)
    assume(has_clear_alphas(alphas, scale))
    at = min(int(place * len(alphas)), len(alphas) - 1)
    alpha = alphas[at] * 1.5 if at + 1 == len(alphas) else (alphas[at] + alphas[at + 1]) / 2
    pruned = prune_to_alpha(tree, alpha)
    pruned.check()
    fast.assert_same_tree(fast.as_nodes(pruned), naive.prune(expected, alpha))


@given(prunable())
def test_each_step_is_the_best_subtree_at_its_alpha(case):
    """Risk plus alpha times leaves: no other step of the sequence, nor the whole tree, costs less."""
    tree = fast.grow_table(case[0], **case[1])
    steps = cut_sequence(tree)
    scale = float(node_risk(tree)[0])
    alphas = [step.alpha for step in steps]
    assert alphas[0] == 0.0
    assert alphas == sorted(set(alphas))
    assert [step.n_leaves for step in steps] == sorted({step.n_leaves for step in steps}, reverse=True)
    assert steps[-1].n_leaves == 1
    whole = float(node_risk(tree)[tree.is_leaf].sum())
    for step in steps:
        cost = step.risk + step.alpha * step.n_leaves
        assert cost <= whole + step.alpha * tree.n_leaves + 1e-9 * scale
        for other in steps:
            assert cost <= other.risk + step.alpha * other.n_leaves + 1e-9 * scale


@given(prunable())
def test_steps_say_what_is_left(case):
    tree = fast.grow_table(case[0], **case[1])
    cut = []
    for step in cut_sequence(tree):
        cut += step.nodes
        left = cut_nodes(tree, cut)
        left.check()
        assert left.n_leaves == step.n_leaves
        risk = float(node_risk(left)[left.is_leaf].sum())
        assert risk == pytest.approx(step.risk, rel=1e-9, abs=1e-9 * float(node_risk(tree)[0]))
        np.testing.assert_allclose(left.values()[0], tree.values()[0], rtol=1e-9, atol=1e-9)


def test_alpha_zero_prunes_nothing():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert CARTClassifier(ccp_alpha=0.0).fit(X, [0, 1, 1, 0]).get_n_leaves() == 4
    # a free cut: both leaves predict the same
    X, y = [[0], [1], [2]], [0, 1, 0]
    assert CARTClassifier(criterion="misclassification", ccp_alpha=0.0).fit(X, y).get_n_leaves() == 3


# ----------------------------------------------------------------------------------------------- equal alphas


def test_a_subtree_that_pays_only_as_a_whole_is_cut_at_once():
    """XOR: the root gains nothing by itself, so the three splits fall together."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    path = CARTClassifier().cost_complexity_pruning_path(X, [0, 1, 1, 0])
    np.testing.assert_allclose(path.ccp_alphas, [0, 0.5 / 3], atol=1e-15)
    np.testing.assert_allclose(path.impurities, [0, 0.5], atol=1e-15)


def test_links_of_equal_alpha_are_cut_in_one_step():
    """Two halves that are alike: their links have one alpha; scikit-learn lists it twice."""
    X = np.arange(16.0).reshape(-1, 1)
    y = np.array([0, 0, 0, 1, 0, 0, 0, 0, 5, 5, 5, 6, 5, 5, 5, 5], float)
    ours = CARTRegressor(min_samples_leaf=4).cost_complexity_pruning_path(X, y)
    theirs = DecisionTreeRegressor(min_samples_leaf=4, random_state=0).cost_complexity_pruning_path(X, y)
    assert len(ours.ccp_alphas) == 3
    assert len(theirs.ccp_alphas) == 4
    np.testing.assert_allclose(ours.ccp_alphas, np.unique(np.round(theirs.ccp_alphas, 12)), atol=1e-12)


def test_kyphosis_like_rpart_in_errors():
    """By misclassification the risk is rpart's own: cp 0.17647 and 0.01961 times the root's error."""
    y = [0] * 64 + [1] * 17
    column = [2] * 56 + [1] * 8 + [2] * 6 + [1] * 11
    path = CARTClassifier(criterion="misclassification").cost_complexity_pruning_path(
        np.array(column).reshape(-1, 1), y
    )
    np.testing.assert_allclose(path.ccp_alphas / (17 / 81), [0, 0.17647059], atol=1e-8)


# --------------------------------------------------------------------------------------- against scikit-learn


def noise_table(seed, *, is_regression):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 6))
    score = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=300)
    return (X, score) if is_regression else (X, np.digitize(score, [-1, 0.5]))


TABLES = {
    "noise": (noise_table(0, is_regression=False), CARTClassifier, DecisionTreeClassifier, "gini"),
    "noise by entropy": (
        noise_table(1, is_regression=False),
        CARTClassifier,
        DecisionTreeClassifier,
        "entropy",
    ),
    "numbers": (noise_table(2, is_regression=True), CARTRegressor, DecisionTreeRegressor, "squared_error"),
    "iris": (load_iris(return_X_y=True), CARTClassifier, DecisionTreeClassifier, "gini"),
    "diabetes": (load_diabetes(return_X_y=True), CARTRegressor, DecisionTreeRegressor, "squared_error"),
}


def both(name, **params):
    (X, y), ours, theirs, criterion = TABLES[name]
    params |= {"criterion": criterion, "min_samples_leaf": 20}  # in small nodes features often tie
    return ours(**params), theirs(random_state=0, **params), X, y


@pytest.mark.parametrize("name", TABLES)
def test_the_path_is_scikit_learn_s(name):
    """With its repeated alphas (links that tie) taken together."""
    ours, theirs, X, y = both(name)
    assert_same_answers(ours.fit(X, y), theirs.fit(X, y), X)
    found, expected = (model.cost_complexity_pruning_path(X, y) for model in (ours, theirs))
    scale = expected.impurities[-1]
    is_last = np.append(np.diff(expected.ccp_alphas) > 1e-10 * scale, True)
    np.testing.assert_allclose(found.ccp_alphas, expected.ccp_alphas[is_last], atol=1e-10 * scale)
    np.testing.assert_allclose(found.impurities, expected.impurities[is_last], atol=1e-10 * scale)


@pytest.mark.parametrize("name", TABLES)
def test_pruned_trees_are_scikit_learn_s(name):
    ours, theirs, X, y = both(name)
    alphas = np.unique(np.round(ours.cost_complexity_pruning_path(X, y).ccp_alphas, 14))
    for alpha in (alphas[1:] + alphas[:-1]) / 2:
        assert_same_answers(ours.set_params(ccp_alpha=alpha).fit(X, y), theirs.set_params(ccp_alpha=alpha).fit(X, y), X)


def assert_same_answers(ours, theirs, X):
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    answer = "predict_proba" if hasattr(theirs, "predict_proba") else "predict"
    np.testing.assert_allclose(getattr(ours, answer)(X), getattr(theirs, answer)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["noise", "noise by entropy", "numbers"])
def test_importances_are_scikit_learn_s(name):
    """On continuous noise no two features tie."""
    ours, theirs, X, y = both(name)
    np.testing.assert_allclose(
        ours.fit(X, y).feature_importances_, theirs.fit(X, y).feature_importances_, rtol=1e-9, atol=1e-12
    )


@given(strategies.growing())
def test_importances_are_shares(case):
    table, parameters = case
    tree = fast.grow_table(table, **parameters)
    importances = tree.importances()
    assert importances.shape == (table.n_features,)
    assert importances.min() >= 0.0
    total = importances.sum()
    assert total == pytest.approx(1.0) or (total == 0.0 and importances.tolist() == [0.0] * table.n_features)
    unused = sorted(set(range(table.n_features)) - set(tree.feature[~tree.is_leaf].tolist()))
    assert importances[unused].tolist() == [0.0] * len(unused)


# ------------------------------------------------------------------------------------------------ cut nodes


def test_long_bitsets_move_with_their_tests():
    """150 levels are three words: what is not below a cut answers as before."""
    rng = np.random.default_rng(0)
    columns = [rng.permutation(600) % 150.0, rng.normal(size=600)]
    y = rng.normal(size=600)
    tree = fast.grow(
        columns, y, criterion="squared_error", is_categorical=[True, False], n_levels=[150, 0], min_samples_leaf=3
    )
    subset_tests = np.flatnonzero(tree.kind == SUBSET)
    assert len(subset_tests) > 20
    cut = subset_tests[3::4]
    left = cut_nodes(tree, cut)
    left.check()
    n_words = 3 * np.count_nonzero(left.kind == SUBSET)
    assert len(left.subsets) == n_words < len(tree.subsets)
    values = tree.values()
    for row in zip(*columns, strict=True):
        path = path_of(tree, row)
        end = next((node for node in path if node in cut), path[-1])
        assert left.threshold[path_of(left, row)[-1]] == values[end]


# -------------------------------------------------------------------------------------------- reduced error


def path_of(tree, row):
    """The nodes a row meets, from the root to its leaf, step by step."""
    path = [0]
    while not tree.is_leaf[path[-1]]:
        node = path[-1]
        value = row[tree.feature[node]]
        if math.isnan(value):
            branch = int(tree.missing_branch[node])
        elif tree.kind[node] == SUBSET:
            branch = 0 if tree.subset(node)[int(value)] else 1
        else:
            branch = int(value > tree.threshold[node])
        path.append(int(tree.first_child[node]) + branch)
    return path


def children_of(tree, node):
    first = int(tree.first_child[node])
    return range(first, first + int(tree.n_branches[node]))


@st.composite
def asked(draw, **kinds):
    """A tree and rows that did not grow it: leaves, truth, weights."""
    table, parameters = draw(strategies.growing(**kinds))
    n_rows = draw(st.integers(0, 25))
    rows = draw(strategies.query_rows(table, n_rows))
    if table.n_classes is None:
        truth = np.array(draw(strategies.regression_targets(n_rows)), float)
    else:
        truth = np.array(draw(st.lists(st.integers(0, table.n_classes - 1), min_size=n_rows, max_size=n_rows)), int)
    weight = draw(strategies.weight_columns(n_rows)) if n_rows else None
    tree = fast.grow_table(table, **parameters)
    leaf = np.array([path_of(tree, row)[-1] for row in rows], int)
    return tree, leaf, truth, None if weight is None else np.array(weight)


def exact_answers(tree):
    """What every node would say as a leaf: its heaviest class, the first among equals; or its mean, exactly."""
    if tree.n_classes:
        return [int(k) for k in tree.class_weights().argmax(axis=1)]
    totals = [Fraction(0)] * tree.n_nodes
    weights = [Fraction(0)] * tree.n_nodes
    for node in reversed(range(tree.n_nodes)):
        if tree.is_leaf[node]:
            weights[node] = Fraction(float(tree.weight[node]))
            totals[node] = weights[node] * Fraction(float(tree.threshold[node]))
        else:
            weights[node] = sum(weights[child] for child in children_of(tree, node))
            totals[node] = sum(totals[child] for child in children_of(tree, node))
    return [total / weight for total, weight in zip(totals, weights, strict=True)]


def exact_errors(tree, leaf, truth, weight):
    """Error of every node's own answer on the rows that reach it, and whether a row does."""
    parent = {child: node for node in range(tree.n_nodes) for child in children_of(tree, node)}
    answers = exact_answers(tree)
    errors, is_reached = [Fraction(0)] * tree.n_nodes, [False] * tree.n_nodes
    weight = np.ones(len(leaf)) if weight is None else weight
    for k, y, w in zip(leaf.tolist(), truth.tolist(), weight.tolist(), strict=True):
        node = k
        while node is not None and w > 0:
            error = int(answers[node] != y) if tree.n_classes else (answers[node] - Fraction(y)) ** 2
            errors[node] += Fraction(w) * error
            is_reached[node] = True
            node = parent.get(node)
    return errors, is_reached


def reduce_error(tree, errors, is_reached, unseen, margins, node=0):
    """The error that is left at a node and the nodes cut at or below it, by the rule word for word."""
    if tree.is_leaf[node]:
        return errors[node], set()
    parts = [reduce_error(tree, errors, is_reached, unseen, margins, child) for child in children_of(tree, node)]
    below = sum(error for error, _ in parts)
    margins.append(float(abs(errors[node] - below)))
    if errors[node] <= below and (is_reached[node] or unseen == "cut"):
        return errors[node], {node}
    return below, set().union(*(cut for _, cut in parts))


def ends_of(tree, pruned, node=0, at=0):
    """The nodes of the tree that are leaves of the pruned one."""
    if pruned.is_leaf[at]:
        return [node]
    pairs = zip(children_of(tree, node), children_of(pruned, at), strict=True)
    return [end for child, place in pairs for end in ends_of(tree, pruned, child, place)]


def copy_cut(tree, cut):
    """The tree as naive nodes, cut at these."""
    whole = fast.as_nodes(tree)
    order = [0]  # node numbers as `naive.walk` meets the nodes
    for at in itertools.count():
        if at == len(order):
            break
        order[at + 1 : at + 1] = children_of(tree, order[at])
    ids = {id(node) for k, node in zip(order, naive.walk(whole), strict=True) if k in cut}
    return naive.copy_tree(whole, ids)


@given(asked(), st.sampled_from(["cut", "keep"]))
def test_reduced_error_is_the_rule_word_for_word(case, unseen):
    tree, leaf, truth, weight = case
    errors, is_reached = exact_errors(tree, leaf, truth, weight)
    margins = []
    _, cut = reduce_error(tree, errors, is_reached, unseen, margins)
    scale = float(max(errors))
    # weights of a tenth are not what they say, so equal counts of them may be a hair apart
    assume(all(margin == 0 or margin > 1e-9 * scale for margin in margins))
    pruned = prune_on_rows(tree, leaf, truth, weight, unseen=unseen)
    pruned.check()
    fast.assert_same_tree(fast.as_nodes(pruned), copy_cut(tree, cut))


@given(asked(is_regression=False, max_rows=12))
def test_no_subtree_errs_less_and_none_as_good_is_smaller(case):
    """Against every way to cut the tree."""
    tree, leaf, truth, weight = case
    assume(tree.n_leaves <= 8)
    weight = None if weight is None else np.ceil(weight)
    errors, _ = exact_errors(tree, leaf, truth, weight)

    def subtrees(node):
        """(error, leaves) of every subtree that begins here."""
        yield errors[node], 1
        if not tree.is_leaf[node]:
            for parts in itertools.product(*(list(subtrees(child)) for child in children_of(tree, node))):
                yield sum(error for error, _ in parts), sum(n for _, n in parts)

    pruned = prune_on_rows(tree, leaf, truth, weight)
    ends = ends_of(tree, pruned)
    assert (sum(errors[node] for node in ends), len(ends)) == min(subtrees(0))


@given(asked(), st.randoms(use_true_random=False))
def test_the_order_of_given_rows_does_not_matter(case, random):
    tree, leaf, truth, weight = case
    order = list(range(len(leaf)))
    random.shuffle(order)
    one = prune_on_rows(tree, leaf, truth, weight)
    two = prune_on_rows(tree, leaf[order], truth[order], None if weight is None else weight[order])
    assert fast.arrays_of(one) == fast.arrays_of(two)


@given(asked(), st.data())
def test_a_repeated_given_row_is_a_whole_weight(case, data):
    tree, leaf, truth, _ = case
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(leaf), max_size=len(leaf))), int)
    by_weight = prune_on_rows(tree, leaf, truth, counts.astype(float))
    by_rows = prune_on_rows(tree, np.repeat(leaf, counts), np.repeat(truth, counts))
    assert fast.arrays_of(by_weight) == fast.arrays_of(by_rows)


def test_what_no_row_reaches_is_cut_or_kept():
    tree = fast.grow([np.arange(8.0)], [0, 0, 1, 1, 1, 0, 1, 1], criterion="gini", n_classes=2)
    assert tree.n_leaves == 4  # 0 and 1; 2 to 4; 5; 6 and 7
    nothing = np.zeros(0, int)
    assert prune_on_rows(tree, nothing, nothing).n_nodes == 1
    assert prune_on_rows(tree, nothing, nothing, unseen="keep") is tree
    # the root says 1, so its first branch is needed; nobody asks what the other one says
    leaf, truth = np.array([1, 1]), np.array([0, 1])
    assert prune_on_rows(tree, leaf[:1], truth[:1]).n_leaves == 2
    assert prune_on_rows(tree, leaf[:1], truth[:1], unseen="keep") is tree
    # one right, one wrong: a tie, whatever the rest would say
    assert prune_on_rows(tree, leaf, truth, unseen="keep").n_nodes == 1
    assert prune_on_rows(tree, leaf, truth, np.array([1.0, 0.0])).n_leaves == 2
    assert prune_on_rows(tree, leaf, truth, np.array([0.0, 0.0]), unseen="keep") is tree
    with pytest.raises(ValueError, match="unseen='drop': choose 'cut' or 'keep'"):
        prune_on_rows(tree, leaf, truth, unseen="drop")


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, -1e300, 0.0])
def test_equal_answers_are_a_tie(value):
    """Whatever the given rows say, branches that all answer the same are no better than their parent."""
    rng = np.random.default_rng(0)
    for _ in range(10):  # odd weights: the mean of equal values is some roundings off
        tree = fast.grow([np.arange(40.0)], rng.normal(size=40), rng.random(40), criterion="squared_error")
        tree.threshold[tree.is_leaf] = value
        leaf = np.flatnonzero(tree.is_leaf)
        truth = value + rng.normal(size=len(leaf)) * max(abs(value), 1.0)
        assert prune_on_rows(tree, leaf, truth, rng.random(len(leaf))).n_nodes == 1


def steps_and_noise(seed):
    """Two features, 200 rows that grow and 100 that are asked; targets are multiples of 1 / 64."""
    rng = np.random.default_rng(seed)
    columns, rows = rng.normal(size=(2, 200)), rng.normal(size=(100, 2))
    y, truth = (
        np.round(64 * (np.round(2 * x[0]) + np.round(x[1]) + rng.normal(size=len(x[0])))) / 64
        for x in (columns, rows.T)
    )
    return columns, y, rows, truth


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_an_offset_changes_nothing(offset):
    columns, y, rows, truth = steps_and_noise(0)
    tree = fast.grow(columns, y, criterion="squared_error", min_samples_leaf=2)
    moved = fast.grow(columns, y + offset, criterion="squared_error", min_samples_leaf=2)
    np.testing.assert_array_equal(tree.test, moved.test)
    leaf = np.array([path_of(tree, row)[-1] for row in rows])
    one, two = prune_on_rows(tree, leaf, truth), prune_on_rows(moved, leaf, truth + offset)
    assert 1 < one.n_nodes < tree.n_nodes
    np.testing.assert_array_equal(one.test, two.test)


def test_one_far_target_does_not_drown_the_rest():
    columns, y, rows, truth = steps_and_noise(1)
    columns[0, 0], y[0] = 50.0, 1e7  # a leaf of its own
    tree = fast.grow(columns, y, criterion="squared_error")
    leaf = np.array([path_of(tree, row)[-1] for row in rows])
    _, cut = reduce_error(tree, *exact_errors(tree, leaf, truth, None), "keep", [])
    pruned = prune_on_rows(tree, leaf, truth, unseen="keep")
    assert pruned.n_leaves == len(naive.leaves(copy_cut(tree, cut))) > 2


@pytest.mark.parametrize("has_ties", [True, False])
def test_many_classes_are_judged_in_blocks(has_ties, monkeypatch):
    rng = np.random.default_rng(0)
    columns, y = rng.normal(size=(2, 400)), rng.integers(0, 7, 400)
    tree = fast.grow(columns, y, None if has_ties else rng.random(400), criterion="gini", n_classes=7)
    leaf = np.array([path_of(tree, row)[-1] for row in rng.normal(size=(300, 2))])
    truth, weight = rng.integers(0, 7, 300), rng.random(300)
    at_once = prune_on_rows(tree, leaf, truth, weight)
    assert 1 < at_once.n_nodes < tree.n_nodes
    monkeypatch.setattr(subtree, "BLOCK_CELLS", 3 * tree.n_nodes)
    assert fast.arrays_of(prune_on_rows(tree, leaf, truth, weight)) == fast.arrays_of(at_once)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_heaviest_class_of_a_cut_node_is_the_one_it_was_judged_by(n_classes):
    """Weights of a tenth make sums that hang on their order: there must be one order."""
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        columns, y = rng.normal(size=(2, 60)), rng.integers(0, n_classes, 60)
        tree = fast.grow(columns, y, rng.integers(1, 4, 60) / 10, criterion="gini", n_classes=n_classes)
        expected = tree.class_weights()
        inner = np.flatnonzero(~tree.is_leaf)
        for node in inner[:10]:
            left = cut_nodes(tree, [node])
            kept = [k for k in range(tree.n_nodes) if not is_below(tree, node, k)]
            assert left.leaf_class[kept.index(node)] == expected[node].argmax()


def is_below(tree, node, k):
    while k > node:
        k = int(tree.parent[k])
        if k == node:
            return True
    return False
