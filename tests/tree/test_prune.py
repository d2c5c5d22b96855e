"""Cost-complexity pruning against the naive one, scikit-learn's, and its own promise; importances."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fast
import naive
import strategies
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.tree.prune import cut_nodes, cut_sequence, from_units, node_risk, prune_to_alpha


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
