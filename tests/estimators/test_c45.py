"""The estimator C45Classifier. Its trees are compared with J48's in `test_j48`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from spinney import C45Classifier, datasets
from spinney.tree.pessimistic import collapse, prune_pessimistic


def same_tree(one, other):
    names = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def with_holes(seed=0, n_rows=600):
    """Four categories of four levels, two numbers, a fifth of it missing; two classes with some noise."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.integers(0, 4, (n_rows, 4)), rng.normal(size=(n_rows, 2)).round(2)], axis=1)
    y = ((X[:, 0] > 1) ^ (X[:, 1] == 2) ^ (X[:, 4] > 0.5) ^ (rng.random(n_rows) < 0.2)).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def c45(**settings):
    return C45Classifier(categorical_features=[0, 1, 2, 3], **settings)


def test_iris_is_j48_s():
    """Weka 3.6.14: 5 leaves, size 9, 3 of 150 training errors."""
    X, y = load_iris(return_X_y=True)
    model = C45Classifier().fit(X, y)
    assert (model.get_n_leaves(), model.tree_.n_nodes) == (5, 9)
    assert round((1 - model.score(X, y)) * 150) == 3
    values = set(X[:, 3]) | set(X[:, 2])
    assert all(cut in values for cut in model.tree_.arrays.threshold[~model.tree_.is_leaf])  # thresholds are data


def test_the_steps_are_growing_collapsing_pruning():
    X, y = with_holes()
    grown = c45(pruning=None, collapse=False).fit(X, y)
    collapsed = c45(pruning=None).fit(X, y)
    pruned, raised = c45(raising=False).fit(X, y), c45().fit(X, y)
    assert same_tree(collapsed.tree_.arrays, collapse(grown.tree_.arrays))
    assert same_tree(pruned.tree_.arrays, prune_pessimistic(collapsed.tree_.arrays, 0.25))
    expected = prune_pessimistic(collapsed.tree_.arrays, 0.25, values=X, truth=y, raising=True)
    assert same_tree(raised.tree_.arrays, expected)
    assert grown.get_n_leaves() >= collapsed.get_n_leaves() > pruned.get_n_leaves() >= raised.get_n_leaves()
    assert same_tree(collapsed.prune("pessimistic", raising=False).tree_.arrays, pruned.tree_.arrays)
    assert same_tree(collapsed.prune("pessimistic", X, y, raising=True).tree_.arrays, raised.tree_.arrays)
    assert raised.pruning_.n_leaves == (collapsed.get_n_leaves(), raised.get_n_leaves())
    with pytest.raises(ValueError, match="raising=True needs X and y, the training rows"):
        collapsed.prune("pessimistic")


def test_less_confidence_prunes_more():
    X, y = with_holes(1)
    sizes = [c45(confidence=c).fit(X, y).get_n_leaves() for c in (0.5, 0.1, 0.001)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[-1]


# ------------------------------------------------------------------------------------------------ probabilities


def answers_by_hand(model, row, node=0):
    """Weight per class of the leaves that a row reaches, with the row's shares: [(share, weights), ...]."""
    tree = model.tree_.arrays
    weights = tree.class_weights()
    if tree.is_leaf[node]:
        own = weights[tree.parent[node]] if tree.is_empty[node] else weights[node]
        return [(1.0, own)]
    first, n = int(tree.first_child[node]), int(tree.n_branches[node])
    value = row[tree.feature[node]]
    if np.isnan(value):
        shares = tree.weight[first : first + n] / tree.weight[node]
    else:
        branch = int(value) if tree.n_levels[tree.feature[node]] else int(value > tree.threshold[node])
        shares = np.eye(n)[branch]
    return [
        (share * part, own)
        for branch, share in enumerate(shares)
        if share > 0
        for part, own in answers_by_hand(model, row, first + branch)
    ]


@pytest.mark.parametrize("smoothing", [None, "laplace", 0.0, 1.0, 2.5, 3])
def test_probabilities_are_the_formulas_mixed_over_branches(smoothing):
    X, y = with_holes()
    y = y + (np.arange(len(y)) % 11 == 0)  # three classes
    model = c45(smoothing=smoothing).fit(X, y)
    priors = np.bincount(y) / len(y)

    def share_of(own):
        if smoothing is None:
            return own / own.sum()
        if smoothing == "laplace":
            return (own + 1) / (own.sum() + 3)
        return (own + smoothing * priors) / (own.sum() + smoothing)

    rows = X[:60]
    expected = [sum(share * share_of(own) for share, own in answers_by_hand(model, row)) for row in rows]
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(rows), found.argmax(axis=1))
    for row, shares in zip(rows[:10], found, strict=False):
        story = model.explain(row)
        assert list(story.shares.values()) == pytest.approx(shares.tolist(), rel=1e-12)
        assert story.prediction == shares.argmax()
        assert str(story).endswith(", smoothed)") == (smoothing is not None)


def test_laplace_of_an_empty_leaf_is_its_parent_s():
    frame = pd.DataFrame({"c": ["a"] * 4 + ["b"] * 3 + ["z"]})
    model = C45Classifier(smoothing="laplace", pruning=None).fit(frame, [0, 0, 0, 0, 1, 1, 1, 1], [1] * 7 + [0])
    found = model.predict_proba(pd.DataFrame({"c": ["a", "b", "z"]}))
    np.testing.assert_allclose(found, [[5 / 6, 1 / 6], [1 / 5, 4 / 5], [5 / 9, 4 / 9]])


# --------------------------------------------------------------------------------------- prunings with missing values


def test_every_pruning_of_a_tree_that_shares_rows_out():
    X, y = with_holes(2)
    whole = c45(pruning=None).fit(X[:400], y[:400])
    for method, options in {
        "cost_complexity": {"ccp_alpha": 0.01},
        "min_gain": {"min_gain": 0.02},
        "merge": {},
    }.items():
        pruned = whole.prune(method, **options)
        pruned.tree_.check()
        assert pruned.get_n_leaves() < whole.get_n_leaves() or method == "merge"
    reduced = whole.prune("reduced_error", X[400:], y[400:])
    reduced.tree_.check()
    assert reduced.get_n_leaves() < whole.get_n_leaves()
    chosen = c45(pruning="cost_complexity", ccp_alpha="cv", random_state=0).fit(X, y)
    assert chosen.cv_results_["error"].min() < 0.45
    held = c45(pruning="reduced_error", random_state=0).fit(X, y)
    assert held.pruning_.judged_on == "held out"


def test_reduced_error_counts_pieces_of_rows():
    """Half of each asked row lies in either branch: the errors of the branches are halves."""
    X = np.array([[0.0]] * 4 + [[1.0]] * 4)
    model = C45Classifier(pruning=None).fit(X, [0, 0, 0, 0, 1, 1, 1, 1])
    asked = np.array([[np.nan]] * 3)
    # as a leaf, the root says 0: errs on a 1 and not on a 0; split, every row errs by a half
    assert model.prune("reduced_error", asked, [0, 0, 1]).get_n_leaves() == 1
    assert model.prune("reduced_error", asked, [0, 1, 1]).get_n_leaves() == 2


def test_answers_to_the_tools_of_scikit_learn():
    table = datasets.load("contact_lenses")
    X, y = table.drop_columns(["contact-lenses"]), table["contact-lenses"]
    model = C45Classifier(trace=True).fit(X, y)
    assert "tear-prod-rate" in str(model.trace_)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert clone(model).get_params() == model.get_params()
    weighed = C45Classifier(class_weight={"none": 3.0}).fit(X, y)
    assert weighed.tree_.weight[0] == pytest.approx(24 + 2 * 15)
