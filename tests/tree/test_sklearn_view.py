import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_graphviz, export_text

from spinney import C45Classifier, CARTClassifier, CARTRegressor, RandomForestClassifier

PAIRS = {"classes": (CARTClassifier, DecisionTreeClassifier), "numbers": (CARTRegressor, DecisionTreeRegressor)}
NODES = ("impurity", "n_node_samples", "weighted_n_node_samples", "value", "feature", "threshold", "missing_go_to_left")
SIZES = ("node_count", "capacity", "n_leaves", "max_depth", "n_features", "n_outputs", "max_n_classes")


def table(task):
    """Rows of numbers that float32 holds, where no two tests are alike, and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32).astype(np.float64)
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(0, 0.5, 300)
    y = np.digitize(score, [-0.3, 0.8]) if task == "classes" else score
    return X, y, rng.integers(1, 4, 300).astype(float)


def fit_both(task, **params):
    """Our tree and scikit-learn's, of the same rows."""
    X, y, weight = table(task)
    ours, peer = PAIRS[task]
    return X, ours(**params).fit(X, y, weight), peer(**params, random_state=0).fit(X, y, weight)


def walk_together(one, other):
    """Pairs of nodes that stand at the same place of two trees by scikit-learn's names."""
    pairs = [(0, 0)]
    for a, b in pairs:
        if other.children_left[b] >= 0:
            pairs += [(one.children_left[a], other.children_left[b]), (one.children_right[a], other.children_right[b])]
    return np.array(pairs).T


@pytest.mark.parametrize("task", PAIRS)
def test_arrays_are_those_of_scikit_learn_node_by_node(task):
    X, model, peer = fit_both(task, max_depth=4, min_samples_leaf=5)
    view, tree = model.tree_, peer.tree_
    assert [getattr(view, name) for name in SIZES[2:]] == [getattr(tree, name) for name in SIZES[2:]]
    assert view.node_count == view.capacity == tree.node_count
    assert view.n_classes.tolist() == tree.n_classes.tolist()
    a, b = walk_together(view, tree)
    assert sorted(a) == list(range(view.node_count))
    for name in NODES:
        mine, theirs = getattr(view, name), getattr(tree, name)
        assert mine.shape == theirs.shape
        assert mine.dtype.kind == theirs.dtype.kind
        np.testing.assert_allclose(mine[a], theirs[b], rtol=1e-6, atol=1e-9, err_msg=name)
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(b[np.argsort(a)][view.apply(X)], tree.apply(rows))
    np.testing.assert_allclose(view.predict(X), tree.predict(rows), rtol=1e-9)
    np.testing.assert_array_equal(view.decision_path(X).toarray()[:, a], tree.decision_path(rows).toarray()[:, b])
    for normalize in (True, False):
        mine, theirs = (each.compute_feature_importances(normalize=normalize) for each in (view, tree))
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_impurities_of_huge_targets_are_in_the_units_of_the_target():
    X, y = np.arange(8.0)[:, None], np.repeat([1e150, 3e150], 4)
    assert CARTRegressor().fit(X, y).tree_.impurity.tolist() == pytest.approx([1e300, 0.0, 0.0])


def test_views_cannot_be_written_to_and_are_made_once():
    model = fit_both("classes", max_depth=2)[1]
    assert model.tree_ is model.tree_
    for name in (*NODES, "children_left", "children_right", "n_classes"):
        array = getattr(model.tree_, name)
        assert array is getattr(model.tree_, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_what_a_tree_has_beside_is_passed_on_and_what_it_has_not_is_not():
    view = fit_both("classes", max_depth=2)[1].tree_
    assert view.to_text() == view.arrays.to_text()
    assert view.n_nodes == view.node_count
    assert view._repr_svg_().startswith("<svg")
    assert {"children_left", "to_rules", "n_nodes"} <= set(dir(view))
    assert repr(view) == "SklearnView(node_count=7, n_leaves=4, max_depth=2)"
    with pytest.raises(AttributeError, match="no_such"):
        _ = view.no_such


def test_a_view_can_be_set_and_pickled():
    _, model, _ = fit_both("classes", max_depth=2)
    other = CARTClassifier().fit(*table("classes")[:2])
    other.tree_ = model.tree_
    assert other.tree_.arrays is model.tree_.arrays
    again = pickle.loads(pickle.dumps(model.tree_))
    np.testing.assert_array_equal(again.value, model.tree_.value)


SHAPES = {
    "subset": (CARTClassifier(categorical_features=[0]), "threshold", "subset of the levels"),
    "level": (C45Classifier(categorical_features=[0], pruning=None), "threshold", "a branch for each level"),
    "levels": (C45Classifier(categorical_features=[0], pruning=None), "children_left", "more than two branches"),
    "missing branch": (CARTClassifier(missing="branch"), "children_right", "more than two branches"),
    "every branch": (C45Classifier(pruning=None), "missing_go_to_left", "every branch"),
    "surrogates": (CARTClassifier(missing="surrogate"), "missing_go_to_left", "surrogates"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_tests_that_scikit_learn_has_not_are_refused_with_a_way_out(case):
    model, name, reason = SHAPES[case]
    X = np.array([[0.0, 0], [1, 1], [2, 3], [np.nan, 3], [0, 0], [1, 1], [2, 3], [np.nan, 3]])
    view = model.fit(X, [0, 1, 0, 2, 0, 1, 0, 2]).tree_
    with pytest.raises(ValueError, match=rf"node \d+ .*{reason}.*tree_\.arrays"):
        getattr(view, name)
    with pytest.raises(ValueError, match="scikit-learn's arrays have no form for it"):
        model.to_sklearn()


@pytest.mark.parametrize("task", PAIRS)
def test_a_tree_of_scikit_learn_is_made_that_predicts_alike_and_reads_alike(task):
    X, model, peer = fit_both(task, max_depth=4, min_samples_leaf=5)
    made = model.to_sklearn()
    assert type(made) is type(peer)
    np.testing.assert_array_equal(made.predict(X), model.predict(X))
    np.testing.assert_array_equal(made.apply(X), model.apply(X))
    assert export_text(made) == export_text(peer)
    assert export_graphviz(made).count("->") == model.tree_.node_count - 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(made)).predict(X), made.predict(X))


def test_names_and_smoothed_shares_go_along_and_linear_leaves_do_not():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": [1.0, 2, 3, 4], "b": [0.0, 0, 1, 1]})
    made = CARTClassifier().fit(X, ["u", "v", "v", "v"]).to_sklearn()
    assert made.feature_names_in_.tolist() == ["a", "b"]
    assert made.predict(X).tolist() == ["u", "v", "v", "v"]
    member = RandomForestClassifier(2, random_state=0).fit(X, ["u", "v", "u", "v"]).estimators_[1]
    assert member.to_sklearn().predict_proba(X).tolist() == member.predict_proba(X).tolist()
    linear = CARTRegressor(max_depth=1, leaf_model="linear", min_samples_leaf=2).fit(X, [1.0, 2, 3, 5])
    with pytest.raises(ValueError, match="linear models"):
        linear.to_sklearn()


def test_a_pickled_view_is_its_tree_alone():
    view = CARTClassifier().fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]).tree_
    untouched = pickle.dumps(view)
    assert view.value.sum() == 3.0  # made now, and kept
    assert pickle.dumps(view) == untouched
    back = pickle.loads(untouched)
    assert back.threshold.tolist() == view.threshold.tolist()
    assert not back.value.flags.writeable
