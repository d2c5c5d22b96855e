"""y of several columns of classes: scikit-learn's trees, shapes and scores, files, and what is refused by name."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier as SklearnExtraTrees
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_classifier_multioutput,
    check_classifiers_multilabel_output_format_predict,
    check_classifiers_multilabel_output_format_predict_proba,
)

import spinney
from spinney import (
    AdaBoostClassifier,
    CARTClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from spinney.model.container import BrokenFileError

MAKERS = {
    "CART": lambda **more: CARTClassifier(max_depth=5, **more),
    "forest": lambda **more: RandomForestClassifier(8, random_state=0, **more),
    "extra": lambda **more: ExtraTreesClassifier(8, random_state=0, **more),
}


def make_table(seed, n_rows=300, n_classes=(3, 2)):
    """Four features, and two targets of classes."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    scores = X[:, 0] + 0.1 * rng.standard_normal(n_rows), X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n_rows)
    cuts = [np.quantile(score, np.arange(1, n) / n) for score, n in zip(scores, n_classes, strict=True)]
    return X, np.stack([np.digitize(score, cut) for score, cut in zip(scores, cuts, strict=True)], axis=1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kind", ["whole", "fractions"])
@pytest.mark.parametrize("settings", [{"max_depth": 4}, {"max_leaf_nodes": 9}, {"ccp_alpha": 0.01}], ids=str)
def test_trees_are_those_of_scikit_learn(seed, criterion, kind, settings):
    X, Y = make_table(seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 50, len(Y)).astype(float) if kind == "whole" else rng.random(len(Y)) + 0.1
    peer = DecisionTreeClassifier(criterion=criterion, random_state=0, **settings).fit(X, Y, weight)
    model = CARTClassifier(criterion=criterion, **settings).fit(X, Y, weight)

    assert model.n_outputs_ == peer.n_outputs_ == 2
    assert model.n_classes_ == list(peer.n_classes_) == [3, 2]
    for ours, theirs in zip(model.classes_, peer.classes_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert model.tree_.node_count == peer.tree_.node_count
    assert model.tree_.value.shape == peer.tree_.value.shape
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(np.sort(model.tree_.impurity), np.sort(peer.tree_.impurity), rtol=1e-9, atol=1e-12)
    again = model.to_sklearn()
    for ours, theirs, held in zip(model.predict_proba(X), peer.predict_proba(X), again.predict_proba(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(held, theirs, rtol=1e-9, atol=1e-12)
    if "max_leaf_nodes" in settings:  # in nodes of few rows, two features may part them alike
        np.testing.assert_allclose(model.feature_importances_, peer.feature_importances_, rtol=1e-7)


@pytest.mark.parametrize("class_weight", ["balanced", [{0: 1.0, 1: 3.0, 2: 0.5}, {0: 2.0}]], ids=str)
def test_class_weights_of_outputs_are_multiplied_as_by_scikit_learn(class_weight):
    X, Y = make_table(1)
    peer = DecisionTreeClassifier(max_depth=4, random_state=0, class_weight=class_weight).fit(X, Y)
    model = CARTClassifier(max_depth=4, class_weight=class_weight).fit(X, Y)
    np.testing.assert_allclose(model.tree_.value[0], peer.tree_.value[0], rtol=1e-6)
    assert np.mean(model.predict(X) == peer.predict(X)) > 0.99


@pytest.mark.parametrize(
    ("ours", "theirs"), [(RandomForestClassifier, SklearnForest), (ExtraTreesClassifier, SklearnExtraTrees)]
)
def test_forests_score_as_those_of_scikit_learn(ours, theirs):
    X, Y = make_table(0, 400, (2, 2))
    X_new, Y_new = make_table(1, 400, (2, 2))
    found = [ours(30, bootstrap=True, oob_score=True, random_state=seed).fit(X, Y) for seed in range(4)]
    expected = [theirs(30, bootstrap=True, oob_score=True, random_state=seed).fit(X, Y) for seed in range(4)]
    for score in (lambda model: model.score(X_new, Y_new), lambda model: model.oob_score_):
        a, b = (np.array([score(model) for model in models]) for models in (found, expected))
        assert abs(a.mean() - b.mean()) < 2.0 * np.sqrt(a.var(ddof=1) / 4 + b.var(ddof=1) / 4) + 0.005
    assert found[0].oob_decision_function_.shape == expected[0].oob_decision_function_.shape


def test_out_of_bag_shares_are_means_of_the_trees_that_lack_the_row():
    X, Y = make_table(2, 120, (2, 2))
    model = RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, Y)
    by_tree, bags = model.predict_trees(X), model.estimators_samples_
    assert by_tree.shape == (30, 120, 4)
    for i in (0, 17, 80):
        outside = [t for t in range(30) if i not in bags[t]]
        expected = by_tree[outside, i].mean(axis=0).reshape(2, 2).T
        np.testing.assert_allclose(model.oob_decision_function_[i], expected, rtol=1e-12)
    chosen = model.oob_decision_function_.argmax(axis=1)
    assert model.oob_curve_[-1] == pytest.approx(np.mean(np.any(chosen != Y, axis=1)))
    assert model.oob_score_ == pytest.approx(1.0 - model.oob_curve_[-1])
    by_scorer = RandomForestClassifier(30, oob_score=lambda y, p: np.mean(y == p), random_state=0).fit(X, Y)
    assert by_scorer.oob_score_ == pytest.approx(np.mean(chosen == Y))


@pytest.mark.parametrize("name", MAKERS)
def test_one_column_twice_is_one_column(name):
    X, Y = make_table(3)
    one, two = MAKERS[name]().fit(X, Y[:, 0]), MAKERS[name]().fit(X, Y[:, [0, 0]])
    for shares in two.predict_proba(X):
        np.testing.assert_allclose(shares, one.predict_proba(X), rtol=1e-12, atol=1e-15)
    for a, b in zip(two.predict_log_proba(X), [one.predict_log_proba(X)] * 2, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_files_pickles_threads_names_and_missing_values(name, class_weight, tmp_path):
    X, Y = make_table(4)
    X[::7, 0] = np.nan
    Y = np.stack([np.array(["red", "green", "blue"])[Y[:, 0]], np.array(["low", "high"])[Y[:, 1]]], axis=1)
    model = MAKERS[name](missing="branch", class_weight=class_weight).fit(X, Y.tolist())
    expected = model.predict(X)
    assert expected.shape == Y.shape
    assert np.mean(expected == Y) > 0.8
    model.save_model(tmp_path / "m.spinney")
    more = {} if name == "CART" else {"n_jobs": 2}
    others = [
        spinney.load_model(tmp_path / "m.spinney"),
        pickle.loads(pickle.dumps(model)),
        MAKERS[name](missing="branch", class_weight=class_weight, **more).fit(X, Y),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict(X), expected)
        for a, b in zip(other.predict_proba(X), model.predict_proba(X), strict=True):
            np.testing.assert_array_equal(a, b)
        assert other.n_classes_ == [3, 2]
        assert other.n_outputs_ == 2
    with pytest.raises(ValueError, match="gives numbers, or the classes of one output"):
        model.predictor()


def test_damaged_outputs_are_refused():
    X, Y = make_table(5)
    model = CARTClassifier(max_depth=2).fit(X, Y)
    tree = model.tree_.arrays
    for name, value in (("widths", tree.widths[::-1].copy() + 1), ("answers", -tree.answers), ("answers", None)):
        broken = pickle.loads(pickle.dumps(model))
        broken.tree_.arrays.__dict__[name] = value
        with pytest.raises((BrokenFileError, ValueError)):
            pickle.loads(pickle.dumps(broken))


def test_warm_starts_and_single_trees():
    X, Y = make_table(6, n_classes=(2, 2))
    whole = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, Y)
    model = RandomForestClassifier(30, oob_score=True, random_state=0, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=40).fit(X, Y)
    np.testing.assert_array_equal(model.oob_decision_function_, whole.oob_decision_function_)
    shares = [tree.predict_proba(X) for tree in whole.estimators_]
    for o, mean in enumerate(whole.predict_proba(X)):
        np.testing.assert_allclose(np.mean([each[o] for each in shares], axis=0), mean, rtol=1e-12)


def test_balanced_bags_weigh_the_classes_of_every_output_alike():
    X, Y = make_table(7)
    Y[:, 1] = X[:, 3] > 0.9  # rare
    plain, balanced = (
        ExtraTreesClassifier(40, bootstrap=True, max_depth=2, random_state=0, class_weight=each).fit(X, Y)
        for each in (None, "balanced_subsample")
    )
    assert balanced.predict_proba(X)[1][:, 1].mean() > 2.0 * plain.predict_proba(X)[1][:, 1].mean()


def test_categories_weights_and_copies():
    X, Y = make_table(8)
    X[:, 3] = np.floor(7 * X[:, 3])
    Y[np.isin(X[:, 3], [1, 4]), 1] = 1
    weight = np.arange(len(Y)) % 3
    copies = np.repeat(np.arange(len(Y)), weight)
    for criterion in ("gini", "entropy"):
        model = CARTClassifier(criterion=criterion, categorical_features=[3])
        one = clone(model).fit(X, Y, weight).tree_.arrays
        two = clone(model).fit(X[copies], Y[copies]).tree_.arrays
        for name in ("test", "threshold", "answers", "impurity", "subsets", "weight"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert 3 in one.feature


def test_text_names_the_classes_of_every_output():
    Y = np.array([["red", "low"], ["red", "high"], ["blue", "high"], ["blue", "high"]])
    model = CARTClassifier().fit([[1], [2], [3], [4]], Y)
    assert model.tree_.to_text().splitlines() == [
        "[blue, high] (4 rows: blue 2, red 2; high 3, low 1)",
        "├─ x0 <= 2.5: [red, high] (2 rows: high 1, low 1)",
        "│  ├─ x0 <= 1.5: red, low (1 row)",
        "│  └─ x0 > 1.5: red, high (1 row)",
        "└─ x0 > 2.5: blue, high (2 rows)",
    ]


def test_pruning_by_errors_counts_the_mean_over_the_outputs():
    X, Y = make_table(9)
    tree = CARTClassifier(max_depth=6).fit(X, Y)
    report = tree.prune("cost_complexity", ccp_alpha=0.01, ccp_risk="error").pruning_
    assert report.error[0] == pytest.approx(np.mean(tree.predict(X) != Y))
    assert report.n_leaves[1] < report.n_leaves[0]
    assert tree.snip(0).tree_.node_count == 1


REFUSED = {
    "to_svg": lambda tree, _: tree.tree_.to_svg(),
    "to_rules": lambda tree, _: tree.tree_.to_rules(),
    "explain": lambda tree, _: tree.explain([0.1, 0.2, 0.3, 0.4]),
    "merge": lambda tree, _: tree.prune("merge"),
    "predict_set": lambda _, forest: forest.predict_set([[0.1, 0.2, 0.3, 0.4]]),
    "strength": lambda _, forest: forest.strength(*make_table(7)),
    "vote_table": lambda _, forest: forest.vote_table([0.1, 0.2, 0.3, 0.4]),
    "shap_values": lambda tree, _: tree.shap_values([[0.1, 0.2, 0.3, 0.4]]),
    "spinney.shap_values": lambda _, forest: spinney.shap_values(forest, [[0.1, 0.2, 0.3, 0.4]]),
    "spinney.explain": lambda _, forest: spinney.explain(forest, [0.1, 0.2, 0.3, 0.4]),
    "export": lambda tree, _: spinney.export(tree, "python"),
    "importance": lambda _, forest: forest.importance("permutation", *make_table(7)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_takes_one_output_says_so(what):
    X, Y = make_table(7)
    tree = CARTClassifier(max_depth=2).fit(X, Y)
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"not there for several outputs, and this model has 2 numbers in a leaf. Fit one model for"
    ):
        REFUSED[what](tree, forest)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (CARTClassifier(criterion="misclassification"), "criterion='misclassification' takes one output"),
        (CARTClassifier(criterion="gain_ratio"), "criterion='gain_ratio' takes one output"),
        (CARTClassifier(monotonic_cst=[1, 0, 0, 0]), "monotonic_cst takes one output, and y has 2 columns"),
        (CARTClassifier(pruning="pessimistic"), "pruning='pessimistic' takes one output"),
        (CARTClassifier(trace=True), "there is no trace of a tree of 2 outputs"),
        (RandomForestClassifier(voting="hard"), "voting='hard' takes one output"),
        (RandomForestClassifier(stratify="class"), "stratify='class' takes one output"),
        (RandomForestClassifier(honest=True), "honest=True takes one output"),
        (RandomForestClassifier(oob_score=True), "cannot be used to compute OOB estimates"),
        (CARTClassifier(class_weight={0: 1.0}), "class_weight should be a list of dicts"),
        (CARTClassifier(class_weight=[None]), "number of elements in class_weight should match number of outputs"),
        (GradientBoostingClassifier(), "y should be a 1d array"),
        (AdaBoostClassifier(), "y should be a 1d array"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_parameters_and_methods_that_take_one_output_say_so(model, words):
    X, Y = make_table(8)
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)


def test_outputs_that_are_no_marks_have_no_accuracy():
    """As scikit-learn has it; columns of different types, whose classes have no order in common, are told so too."""
    X, Y = make_table(10, n_classes=(2, 2))
    mixed = np.array([[["no", "yes"][a], int(b)] for a, b in Y], dtype=object)
    for y in (mixed, np.array([["no", "yes"]] * len(Y))[:, :2], Y + np.arange(2), Y + 0.0):
        model = CARTClassifier(max_depth=3).fit(X, y)
        if y.dtype == float:
            assert model.score(X, y) == DecisionTreeClassifier(max_depth=3).fit(X, y).score(X, y)
            continue
        with pytest.raises(ValueError, match=r"multiclass-multioutput is not supported: .*Score each column j"):
            model.score(X, y)
        with pytest.raises(ValueError, match=r"cannot be used to compute OOB estimates: .*not marks of 0 and 1"):
            RandomForestClassifier(3, oob_score=True, random_state=0).fit(X, y)


def test_targets_of_several_outputs_are_checked():
    X, Y = make_table(9)
    with pytest.raises(ValueError, match=r"Unknown label type.*\(In column 1 of y.\)"):
        CARTClassifier().fit(X, np.stack([Y[:, 0], X[:, 0]], axis=1).astype(object))
    mixed = np.array([[["no", "yes"][b], int(a)] for a, b in Y], dtype=object)
    assert [classes.tolist() for classes in CARTClassifier().fit(X, mixed).classes_] == [["no", "yes"], [0, 1, 2]]
    with pytest.raises(ValueError, match="X has 300 rows, y has 299"):
        CARTClassifier().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="sparse multilabel-indicator for y is not supported"):
        CARTClassifier().fit(X, csr_array(Y))
    with pytest.raises(ValueError, match="are not in class_weight, which names 7"):
        CARTClassifier(class_weight=[None, {7: 1.0}]).fit(X, Y)


@pytest.mark.parametrize("name", MAKERS)
def test_tags_and_the_checks_of_scikit_learn(name):
    model = MAKERS[name]()
    assert get_tags(model).target_tags.multi_output
    assert get_tags(model).classifier_tags.multi_label
    check_classifier_multioutput(type(model).__name__, model)
    check_classifiers_multilabel_output_format_predict(type(model).__name__, model)
    check_classifiers_multilabel_output_format_predict_proba(type(model).__name__, model)
