"""Names that code written for scikit-learn uses for the same thing."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import spinney
from spinney import (
    AdaBoostClassifier,
    BaggingClassifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

KINDS = {"classes": CARTClassifier, "numbers": CARTRegressor}
ALIASES = [
    (CARTClassifier, "log_loss", "entropy"),
    (RandomForestClassifier, "log_loss", "entropy"),
    (ExtraTreesClassifier, "log_loss", "entropy"),
    (CARTRegressor, "friedman_mse", "squared_error"),
    (RandomForestRegressor, "friedman_mse", "squared_error"),
    (ExtraTreesRegressor, "friedman_mse", "squared_error"),
]


def table(task, n_rows=200):
    """Numbers, with classes or numbers to predict."""
    make = make_classification if task == "classes" else make_regression
    return make(n_rows, 5, n_informative=3, random_state=0)


def trees_of(model):
    """The arrays of the trees."""
    return [model.tree_.arrays] if hasattr(model, "tree_") else list(model.forest_)


@pytest.mark.parametrize(("kind", "alias", "own"), ALIASES)
def test_a_criterion_has_another_name(kind, alias, own):
    X, y = table("classes" if own == "entropy" else "numbers")
    settings = {} if kind in KINDS.values() else {"n_estimators": 3}
    one, other = (kind(criterion=name, random_state=0, **settings).fit(X, y) for name in (alias, own))
    assert one.get_params()["criterion"] == alias
    for mine, plain in zip(trees_of(one), trees_of(other), strict=True):
        assert mine.legend.criterion == own
        np.testing.assert_array_equal(mine.threshold, plain.threshold)
        np.testing.assert_array_equal(mine.impurity, plain.impurity)


def test_members_and_prunings_know_the_other_name():
    X, y = table("classes")
    models = [
        BaggingClassifier(CARTClassifier(criterion=name), 3, random_state=0).fit(X, y)
        for name in ("log_loss", "entropy")
    ]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    models = [
        AdaBoostClassifier(CARTClassifier(criterion=name, max_depth=2), n_estimators=3).fit(X, y)
        for name in ("log_loss", "entropy")
    ]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    cut = [CARTClassifier(criterion=name, ccp_alpha=0.02).fit(X, y) for name in ("log_loss", "entropy")]
    assert cut[0].tree_.to_text() == cut[1].tree_.to_text()
    assert str(cut[0].pruning_) == str(cut[1].pruning_)
    assert spinney.trace(CARTClassifier(criterion="log_loss").fit(X, y), X, y).rules.criterion == "entropy"


@pytest.mark.parametrize("task", KINDS)
def test_random_tests_are_drawn_between_the_least_and_the_largest_value(task):
    X, y = np.array([[0.0], [1.0], [10.0]]), np.array([0, 1, 1])
    drawn = [KINDS[task](splitter="random", max_depth=1, random_state=seed).fit(X, y) for seed in range(200)]
    cuts = np.array([model.tree_.threshold[0] for model in drawn])
    assert ((cuts > 0.0) & (cuts < 10.0)).all()
    assert len(np.unique(cuts)) > 150
    assert 0.03 < np.mean(cuts < 1.0) < 0.2  # uniform: a tenth


@pytest.mark.parametrize("task", KINDS)
def test_random_tests_predict_as_those_of_scikit_learn_do(task):
    peer = DecisionTreeClassifier if task == "classes" else DecisionTreeRegressor
    X, y = table(task, 600)
    half = slice(0, 300), slice(300, 600)

    def scores(kind):
        models = [kind(splitter="random", random_state=seed).fit(X[half[0]], y[half[0]]) for seed in range(30)]
        return [model.score(X[half[1]], y[half[1]]) for model in models], [model.get_n_leaves() for model in models]

    for mine, theirs in zip(scores(KINDS[task]), scores(peer), strict=True):
        error = np.hypot(np.std(mine), np.std(theirs)) / np.sqrt(30)
        assert abs(np.mean(mine) - np.mean(theirs)) < 4 * error + 1e-9


@pytest.mark.parametrize("task", KINDS)
def test_random_tests_follow_the_seed_and_files_keep_them(task, tmp_path):
    X, y = table(task)
    models = [KINDS[task](splitter="random", random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    texts = [model.tree_.to_text() for model in models]
    assert texts[0] == texts[1] != texts[2]
    models[0].save_model(tmp_path / "model.spn")
    again = spinney.load_model(tmp_path / "model.spn")
    assert again.splitter == "random"
    assert again.tree_.to_text() == texts[0]


def test_random_tests_take_categories_and_missing_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300))])
    y = (X[:, 0] % 2 == 0).astype(int)
    model = CARTClassifier(splitter="random", categorical_features=[0], random_state=0).fit(X, y)
    model.tree_.arrays.check()
    assert model.score(X, y) == 1.0


def test_bags_of_random_trees_differ_from_each_other():
    X, y = table("classes")
    member = CARTClassifier(splitter="random", max_depth=1)
    bag = BaggingClassifier(member, 20, bootstrap=False, random_state=0).fit(X, y)
    assert len({float(tree.tree_.threshold[0]) for tree in bag.estimators_}) == 20
    boost = AdaBoostClassifier(member, n_estimators=5, random_state=0).fit(X, y)
    assert len({float(tree.tree_.threshold[0]) for tree in boost.estimators_}) == 5


@pytest.mark.parametrize("clash", [{"criterion": "gain_ratio"}, {"missing": "surrogate"}])
def test_what_needs_every_test_is_refused(clash):
    name = next(iter(clash))
    with pytest.raises(ValueError, match=f"splitter='random' and {name}="):
        CARTClassifier(splitter="random", **clash).fit([[1], [2]], [0, 1])


def test_random_tests_have_no_trace():
    with pytest.raises(ValueError, match="no others to trace"):
        CARTClassifier(splitter="random").fit([[1], [2]], [0, 1], trace=True)
