"""AdaBoost: worked examples, the statements of the lectures, scikit-learn at matched settings, published errors."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_friedman1, make_hastie_10_2
from sklearn.ensemble import AdaBoostClassifier as SkClassifier
from sklearn.ensemble import AdaBoostRegressor as SkRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from contract import parametrize_with_contract, weighing_fails
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    CARTClassifier,
    CARTRegressor,
    datasets,
    rounds_to_fit,
    training_bound,
)
from spinney.model.weighted_votes import find_medians

NODE_FIELDS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")
FOREST_FIELDS = ("hot", "n_rows", "weight", "impurity", "subsets", "distributions", "first_node", "first_mixed")


# What the checks of scikit-learn are run with: stumps, deeper trees, other members, held-out rows.
SETTINGS = [
    AdaBoostClassifier(n_estimators=20),
    AdaBoostClassifier(n_estimators=10, learning_rate=0.5, convention="half"),
    AdaBoostClassifier(CARTClassifier(max_depth=3, missing="branch"), n_estimators=5),
    AdaBoostClassifier(CARTClassifier(max_depth=1, class_weight="balanced", criterion="entropy"), n_estimators=10),
    AdaBoostClassifier(CARTClassifier(max_depth=2, max_features="sqrt", ccp_alpha=0.01), n_estimators=5),
    AdaBoostClassifier(n_estimators=10, n_iter_no_change=3, random_state=0),
    AdaBoostClassifier(LogisticRegression(), n_estimators=4),
    AdaBoostClassifier(KNeighborsClassifier(3), n_estimators=4, random_state=0),
    AdaBoostRegressor(n_estimators=10),
    AdaBoostRegressor(CARTRegressor(max_depth=1), n_estimators=10, loss="square", learning_rate=0.5),
    AdaBoostRegressor(CARTRegressor(criterion="sdr", max_leaf_nodes=5), n_estimators=5, loss="exponential"),
    AdaBoostRegressor(n_estimators=5, n_iter_no_change=2, random_state=0),
    AdaBoostRegressor(LinearRegression(), n_estimators=4),
    AdaBoostRegressor(KNeighborsRegressor(3), n_estimators=4, random_state=0),
]


def failures_of_draws(model):
    """Members without weights draw rows, and draw others if some are repeated."""
    if not isinstance(model.estimator, KNeighborsClassifier | KNeighborsRegressor):
        return {}
    return weighing_fails("drawn rows")


@parametrize_with_contract(SETTINGS, expected_failed_checks=failures_of_draws)
@pytest.mark.filterwarnings("ignore:The first member is no better than chance:UserWarning")
@pytest.mark.filterwarnings("ignore:.*single row, which is needed to learn from:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- data -----------------------------------------------------------------------------------------------------------


def make_table(n_rows=300, n_features=5, n_classes=2, seed=0):
    """Numbers without ties, and classes that no stump tells apart."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features)).astype(np.float32).astype(float)  # as scikit-learn's trees take it
    signal = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + generator.normal(scale=0.4, size=n_rows)
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def make_frame(n_rows=200, seed=0):
    """Numbers with holes and a category."""
    X, y = make_table(n_rows, 3, 3, seed)
    generator = np.random.default_rng(seed + 100)
    X[generator.random(n_rows) < 0.1, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["colour"] = pd.Categorical(
        np.array(["red", "green", "blue", None])[(y + generator.integers(0, 3, n_rows)) % 4]
    )
    return frame, y


class Slow(CARTClassifier):
    """The same trees by the other way: only CART trees themselves are grown on codes made once."""


class SlowRegressor(CARTRegressor):
    """As above."""


def same_bits(one, other):
    same = all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in FOREST_FIELDS)
    return same and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("estimator_weights_", "estimator_errors_")
    )


# --- worked examples ------------------------------------------------------------------------------------------------

LI_HANG_X = np.arange(10.0)[:, None]
LI_HANG_Y = np.array([1, 1, 1, -1, -1, -1, 1, 1, 1, -1])


def test_li_hang_example_8_1():
    model = AdaBoostClassifier(n_estimators=3, convention="half").fit(LI_HANG_X, LI_HANG_Y)
    trees = [tree.tree_.arrays for tree in model.estimators_]
    assert [float(tree.threshold[0]) for tree in trees] == [2.5, 8.5, 5.5]
    assert [int(model.classes_[tree.leaf_class[1]]) for tree in trees] == [1, 1, -1]
    errors = [Fraction(3, 10), Fraction(3, 14), Fraction(2, 11)]
    np.testing.assert_allclose(model.estimator_errors_, [float(e) for e in errors], rtol=1e-14)
    np.testing.assert_allclose(
        model.estimator_weights_, [0.5 * math.log((1 - e) / e) for e in map(float, errors)], rtol=1e-13
    )
    assert model.estimator_weights_.round(5).tolist() == [0.42365, 0.64964, 0.75204]
    assert model.normalisers_.round(5).tolist() == [0.91652, 0.82065, 0.77139]
    after = [
        [Fraction(1, 14)] * 6 + [Fraction(1, 6)] * 3 + [Fraction(1, 14)],
        [Fraction(1, 22)] * 3 + [Fraction(1, 6)] * 3 + [Fraction(7, 66)] * 3 + [Fraction(1, 22)],
        [Fraction(1, 8)] * 3 + [Fraction(11, 108)] * 3 + [Fraction(7, 108)] * 3 + [Fraction(1, 8)],
    ]
    for found, expected in zip(model.staged_weights(LI_HANG_X, LI_HANG_Y), after, strict=True):
        np.testing.assert_allclose(found, [float(w) for w in expected], rtol=1e-12)
    wrong = [int((said != LI_HANG_Y).sum()) for said in model.staged_predict(LI_HANG_X)]
    assert wrong == [3, 3, 0]
    assert model.training_bound()[-1] == pytest.approx(0.5802, abs=5e-5)
    np.testing.assert_allclose(model.training_bound(), training_bound(model.estimator_errors_), rtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_conventions_give_the_same_votes(n_classes):
    X, y = make_table(n_classes=n_classes)
    full, half = (AdaBoostClassifier(n_estimators=20, convention=name).fit(X, y) for name in ("full", "half"))
    np.testing.assert_array_equal(half.estimator_weights_, full.estimator_weights_ / 2)
    np.testing.assert_array_equal(half.estimator_errors_, full.estimator_errors_)
    for name in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(half, name)(X), getattr(full, name)(X))
    for one, other in zip(half.staged_weights(X, y), full.staged_weights(X, y), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(half.training_bound(0.1), full.training_bound(0.1))
    np.testing.assert_array_equal(half.margins(X, y), full.margins(X, y))
    expected = np.log((1 - full.estimator_errors_) / full.estimator_errors_) + math.log(n_classes - 1)
    np.testing.assert_allclose(full.estimator_weights_, expected, rtol=1e-12)
    half.set_params(convention="full")  # of the next fit
    np.testing.assert_array_equal(half.training_bound(), full.training_bound())


# --- what the lectures say ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learning_rate", [1.0, 0.4])
def test_product_of_z_is_the_exponential_loss_and_bounds_the_error_at_each_round(weighted, learning_rate):
    X, y = make_table()
    weight = np.random.default_rng(0).random(len(y)) if weighted else np.ones(len(y))
    share = weight / weight.sum()
    model = AdaBoostClassifier(n_estimators=60, convention="half", learning_rate=learning_rate).fit(X, y, weight)
    signs = 2.0 * y - 1.0
    raw = np.zeros(len(y))
    bound = model.training_bound()
    np.testing.assert_array_equal(bound, np.cumprod(model.normalisers_))
    for t, member in enumerate(model.estimators_):
        raw += model.estimator_weights_[t] * (2.0 * member.predict(X) - 1.0)
        assert bound[t] == pytest.approx(float((share * np.exp(-signs * raw)).sum()), rel=1e-10)
        assert (share * (signs * raw <= 0)).sum() <= bound[t]
    if learning_rate == 1.0:
        e = model.estimator_errors_
        np.testing.assert_allclose(model.normalisers_, 2 * np.sqrt(e * (1 - e)), rtol=1e-12)
        assert bound[-1] < bound[0]


def test_the_last_stump_is_at_chance_after_reweighting():
    for n_classes in (2, 3, 5):
        X, y = make_table(n_classes=n_classes)
        model = AdaBoostClassifier(n_estimators=50).fit(X, y)
        for member, shares in zip(model.estimators_, model.staged_weights(X, y), strict=True):
            assert abs(shares[member.predict(X) != y].sum() - (1 - 1 / n_classes)) < 1e-12


@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("margin", [0.0, 0.05, -0.1])
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_the_bound_holds_for_many_classes_and_margins(n_classes, margin):
    X, y = make_table(n_classes=n_classes)
    model = AdaBoostClassifier(CARTClassifier(max_depth=7), n_estimators=40).fit(X, y)
    bound = model.training_bound(margin)
    votes = np.zeros((len(y), n_classes))
    for t, member in enumerate(model.estimators_):
        votes[np.arange(len(y)), member.predict(X)] += model.estimator_weights_[t]
        rest = votes.copy()
        rest[np.arange(len(y)), y] = -np.inf
        margins = (votes[np.arange(len(y)), y] - rest.max(axis=1)) / votes[0].sum()
        assert np.mean(margins <= margin) <= bound[t]
    np.testing.assert_allclose(model.margins(X, y), margins, atol=1e-12)
    assert np.mean(model.margins(X, y) < 0) <= np.mean(model.predict(X) != y) <= np.mean(model.margins(X, y) <= 0)
    assert bound[-1] < 0.5  # with members that are mostly right; of weaker ones it says nothing


def test_no_training_error_after_the_rounds_that_the_bound_asks_for():
    X, y = make_table(100)
    model = AdaBoostClassifier(CARTClassifier(max_depth=3), n_estimators=200).fit(X, y)
    edge = 0.5 - model.estimator_errors_.max()
    n_rounds = rounds_to_fit(len(y), edge)
    assert n_rounds <= 200
    assert list(model.staged_score(X, y))[n_rounds - 1] == 1.0


def test_margins_keep_growing_after_the_error_is_gone():
    X, y = make_table(150)
    model = AdaBoostClassifier(CARTClassifier(max_depth=3), n_estimators=300).fit(X, y)
    scores = list(model.staged_score(X, y))
    first = scores.index(1.0)
    few = AdaBoostClassifier(CARTClassifier(max_depth=3), n_estimators=first + 1).fit(X, y)
    assert first < 100
    assert model.margins(X, y).min() > few.margins(X, y).min() > 0


# --- scikit-learn at matched settings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_classes", "depth", "learning_rate", "weighted"),
    [(2, 1, 1.0, False), (2, 1, 0.3, True), (2, 2, 1.0, False), (3, 1, 1.0, False), (5, 2, 0.7, True)],
)
@pytest.mark.sampled(2)
def test_predictions_are_those_of_scikit_learn(n_classes, depth, learning_rate, weighted):
    X, y = make_table(500, n_classes=n_classes)
    other, labels = make_table(500, n_classes=n_classes, seed=1)
    weight = np.random.default_rng(0).random(len(y)) + 0.1 if weighted else None
    settings = {"n_estimators": 50, "learning_rate": learning_rate}
    ours = AdaBoostClassifier(CARTClassifier(max_depth=depth), **settings).fit(X, y, weight)
    theirs = SkClassifier(DecisionTreeClassifier(max_depth=depth), random_state=0, **settings).fit(X, y, weight)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(other), theirs.predict(other))
    np.testing.assert_allclose(ours.decision_function(other), theirs.decision_function(other), atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(other), theirs.predict_proba(other), atol=1e-12)
    np.testing.assert_allclose(ours.predict_log_proba(other), theirs.predict_log_proba(other), atol=1e-12)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-5, atol=1e-9)
    for name in ("staged_predict", "staged_decision_function", "staged_predict_proba"):
        for one, two in zip(getattr(ours, name)(other), getattr(theirs, name)(other), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-12)
    np.testing.assert_allclose(list(ours.staged_score(other, labels)), list(theirs.staged_score(other, labels)))


def drucker(X, y, weight, n_estimators, learning_rate, loss, depth):
    """R2 in plain steps, on trees of scikit-learn that weigh the rows."""
    w = weight / weight.sum()
    members, weights = [], []
    for _ in range(n_estimators):
        tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y, w)
        losses = np.abs(tree.predict(X) - y)
        losses = losses / losses.max()
        losses = {"linear": losses, "square": losses**2, "exponential": 1 - np.exp(-losses)}[loss]
        error = (w * losses).sum()
        if error >= 0.5:
            break
        beta = error / (1 - error)
        members.append(tree)
        weights.append(learning_rate * math.log(1 / beta))
        w = w * beta ** ((1 - losses) * learning_rate)
        w = w / w.sum()
    return members, np.array(weights)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize(("depth", "learning_rate"), [(1, 1.0), (3, 0.5)])
def test_r2_is_that_of_drucker_with_weights(loss, depth, learning_rate):
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    X = X.astype(np.float32).astype(float)  # as scikit-learn's trees take it
    weight = np.random.default_rng(0).random(300) + 0.1
    members, weights = drucker(X, y, weight, 15, learning_rate, loss, depth)
    settings = {"n_estimators": 15, "learning_rate": learning_rate, "loss": loss}
    model = AdaBoostRegressor(CARTRegressor(max_depth=depth), **settings).fit(X, y, weight)
    n = len(members)
    np.testing.assert_allclose(model.estimator_weights_[:n], weights, rtol=1e-9)
    assert len(model) == n or model.estimator_weights_[n:].tolist() == [0.0]
    # on the training rows: where two tests part the rows of a node alike, others may go another way
    said = np.stack([tree.predict(X) for tree in members], axis=1)
    np.testing.assert_allclose(model.predict(X), find_medians(said, weights), rtol=1e-9)
    for t, staged in enumerate(model.staged_predict(X), 1):
        part = find_medians(said[:, : min(t, n)], weights[: min(t, n)])
        np.testing.assert_allclose(staged, part, rtol=1e-9)
    np.testing.assert_array_equal(staged, model.predict(X))


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.sampled(3)
def test_scores_without_resampling_are_close_to_those_of_scikit_learn(loss):
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    ours = AdaBoostRegressor(loss=loss).fit(X[:1000], y[:1000])
    theirs = [SkRegressor(loss=loss, random_state=seed).fit(X[:1000], y[:1000]) for seed in range(3)]
    expected = np.mean([model.score(X[1000:], y[1000:]) for model in theirs])
    assert ours.score(X[1000:], y[1000:]) == pytest.approx(expected, abs=0.03)


# --- published errors -----------------------------------------------------------------------------------------------


def test_the_simulated_example_of_the_elements_of_statistical_learning():
    X, y = make_hastie_10_2(12000, random_state=1)
    model = AdaBoostClassifier(n_estimators=400).fit(X[:2000], y[:2000])
    errors = 100 * (1 - np.array(list(model.staged_score(X[2000:], y[2000:]))))
    assert errors[0] == pytest.approx(45.93, abs=0.5)
    assert errors[99] == pytest.approx(17.67, abs=0.5)
    assert errors[399] == pytest.approx(11.60, abs=0.5)


def test_iris():
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(AdaBoostClassifier(n_estimators=100), X, y, cv=5).mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "error"),
    [
        ("glass.csv", "Type", 50.02),
        ("sonar.parquet", "Class", 16.76),
        ("ionosphere.parquet", "Class", 6.85),
        ("vehicle.parquet", "Class", 37.36),
        ("vowel.parquet", "Class", 58.69),
    ],
)
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
def test_errors_of_scikit_learn_on_real_tables(name, target, error, shared_data):
    path = shared_data / name
    frame = (pd.read_parquet if path.suffix == ".parquet" else pd.read_csv)(path)
    X = frame.drop(columns=[target, "split", "SpeakerNumber", "Sex"], errors="ignore").to_numpy(float)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    found = 100 * (1 - cross_val_score(AdaBoostClassifier(n_estimators=100), X, frame[target], cv=folds).mean())
    assert found == pytest.approx(error, abs=4.0)  # equal gains, of which these tables have many, go to other features


def two_norm(generator, n):
    y = generator.integers(0, 2, n)
    return generator.normal(size=(n, 20)) + (2 * y[:, None] - 1) * 2 / math.sqrt(20), y


@pytest.mark.slow
def test_boosted_stumps_of_schapire_and_others():
    """Training sets of 300 rows, 1000 rounds; twonorm in table 1 of "Boosting the margin": 33.3 alone, 5.3 boosted."""
    generator = np.random.default_rng(0)
    errors = []
    for _ in range(8):
        (X, y), (other, labels) = two_norm(generator, 300), two_norm(generator, 3000)
        model = AdaBoostClassifier(n_estimators=1000).fit(X, y)
        errors.append([100 * (1 - score) for score in (model[0].score(other, labels), model.score(other, labels))])
    assert np.mean(errors, axis=0) == pytest.approx([33.3, 5.3], abs=1.5)


# --- the two ways of fitting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 1},
        {"max_depth": 1, "missing": "branch", "criterion": "entropy"},
        {"max_depth": 3, "min_samples_leaf": 5},
        {"max_leaf_nodes": 4},
        {"max_depth": 3, "ccp_alpha": 0.01},
    ],
    ids=str,
)
def test_codes_made_once_grow_the_trees_that_fits_grow(settings):
    X, y = make_frame()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    fast = AdaBoostClassifier(CARTClassifier(**settings), n_estimators=12).fit(X, y, weight)
    slow = AdaBoostClassifier(Slow(**settings), n_estimators=12).fit(X, y, weight)
    assert hasattr(fast, "forest_")
    assert not hasattr(slow, "forest_")
    np.testing.assert_allclose(fast.estimator_weights_, slow.estimator_weights_, rtol=1e-9)
    for one, other in zip(fast.estimators_, slow.estimators_, strict=True):
        np.testing.assert_array_equal(one.tree_.test, other.tree_.test)
        np.testing.assert_allclose(one.tree_.arrays.threshold, other.tree_.arrays.threshold)
        np.testing.assert_allclose(one.tree_.weight, other.tree_.weight, rtol=1e-9)  # with the mean of those given
        assert one.tree_.legend == other.tree_.legend
    np.testing.assert_allclose(fast.predict_proba(X), slow.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(fast.margins(X, y), slow.margins(X, y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.feature_importances_, slow.feature_importances_, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"max_depth": 1}, {"max_depth": 3}, {"criterion": "sdr", "max_depth": 2}, {"max_leaf_nodes": 6}],
    ids=str,
)
def test_codes_made_once_grow_the_trees_that_fits_grow_for_numbers(settings):
    X, _ = make_frame()
    y = 1e6 + X["a"] * 3 + np.random.default_rng(0).normal(size=len(X))
    fast = AdaBoostRegressor(CARTRegressor(**settings), n_estimators=10).fit(X, y)
    slow = AdaBoostRegressor(SlowRegressor(**settings), n_estimators=10).fit(X, y)
    np.testing.assert_allclose(fast.estimator_weights_, slow.estimator_weights_, rtol=1e-8)
    np.testing.assert_allclose(fast.predict(X), slow.predict(X), rtol=1e-12)
    for one, other in zip(fast.staged_predict(X), slow.staged_predict(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_members_are_fitted_trees_for_the_whole_table():
    X, y = make_frame()
    model = AdaBoostClassifier(CARTClassifier(max_depth=2), n_estimators=4).fit(X, y)
    assert len(model) == len(model.estimators_) == 4
    assert isinstance(model[-1], CARTClassifier)
    assert {**model[0].get_params(), "random_state": None} == CARTClassifier(max_depth=2).get_params()
    assert len({member.random_state for member in model}) == 4
    votes = np.zeros((len(y), 3))
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=True):
        votes[np.arange(len(y)), member.predict(X)] += weight
    np.testing.assert_array_equal(model.classes_[votes.argmax(axis=1)], model.predict(X))
    plain = CARTClassifier(max_depth=2).fit(X, y)
    for name in ("test", "threshold", "n_rows", "weight"):
        np.testing.assert_array_equal(getattr(model[0].tree_.arrays, name), getattr(plain.tree_.arrays, name))
    with pytest.raises(IndexError):
        model[4]


def test_class_weights_of_trees_are_weights_to_begin_with():
    X, y = make_table(n_classes=3)
    given = AdaBoostClassifier(n_estimators=10).fit(X, y, np.array([5.0, 1.0, 0.5])[y])
    named = AdaBoostClassifier(CARTClassifier(max_depth=1, class_weight={0: 5.0, 1: 1.0, 2: 0.5}), n_estimators=10)
    assert same_bits(named.fit(X, y), given)
    rare = np.where(np.arange(len(y)) % 10 == 0, y, 0)
    balanced = AdaBoostClassifier(CARTClassifier(max_depth=1, class_weight="balanced"), n_estimators=10).fit(X, rare)
    plain = AdaBoostClassifier(n_estimators=10).fit(X, rare)
    assert (balanced.predict(X) == 0).mean() < (plain.predict(X) == 0).mean()


def test_constraints_hold_in_every_member():
    X, y = make_table()
    model = AdaBoostClassifier(CARTClassifier(max_depth=2, monotonic_cst=[1, 0, 0, 0, 0]), n_estimators=30).fit(X, y)
    grid = np.repeat(X[:50], 21, axis=0).reshape(50, 21, 5)
    grid[:, :, 0] = np.linspace(-3, 3, 21)
    score = model.decision_function(grid.reshape(-1, 5)).reshape(50, 21)
    assert (np.diff(score, axis=1) >= -1e-12).all()
    assert np.ptp(score, axis=1).max() > 0


# --- other members --------------------------------------------------------------------------------------------------


def test_the_first_member_is_what_the_estimator_makes_of_the_data():
    """Weights have a mean of 1: with a sum of 1, as in scikit-learn, a penalty would weigh n times as much."""
    X, y = make_table()
    model = AdaBoostClassifier(LogisticRegression(), n_estimators=3).fit(X, y)
    np.testing.assert_allclose(model[0].coef_, LogisticRegression().fit(X, y).coef_, rtol=1e-9)


def test_members_of_other_kinds():
    X, y = make_table(400)
    stump = AdaBoostClassifier(n_estimators=40).fit(X, y)
    other = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=40, random_state=0).fit(X, y)
    np.testing.assert_array_equal(other.predict(X), stump.predict(X))
    np.testing.assert_allclose(other.decision_function(X), stump.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(other.feature_importances_, stump.feature_importances_, atol=1e-9)
    np.testing.assert_allclose(list(other.staged_score(X, y)), list(stump.staged_score(X, y)))
    bayes = AdaBoostClassifier(GaussianNB(), n_estimators=10).fit(X, y)
    assert bayes.score(X, y) > 0.7
    assert not hasattr(bayes, "feature_importances_")
    numbers = AdaBoostRegressor(LinearRegression(), n_estimators=5).fit(X, X[:, 0] + 0.1 * X[:, 1] ** 2)
    assert numbers.score(X, X[:, 0]) > 0.9
    assert len(list(numbers.staged_predict(X))) == len(numbers)


def test_members_without_weights_learn_from_a_bootstrap_drawn_by_weight():
    X, y = make_table(400)
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier(15))
    one, same = (AdaBoostClassifier(pipe, n_estimators=5, random_state=0).fit(X, y) for _ in range(2))
    other = AdaBoostClassifier(pipe, n_estimators=5, random_state=1).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.score(X, y) > 0.8

    class Recorder(KNeighborsRegressor):
        def fit(self, X, y):
            self.seen_ = np.asarray(X)[:, 0]
            return super().fit(X, y)

    target = np.where(X[:, 0] > 1.5, 10.0, 0.0) + X[:, 1]  # few rows that are hard for wide neighbourhoods
    model = AdaBoostRegressor(Recorder(60), n_estimators=6, random_state=0).fit(X, target)
    first, last = (np.mean(model[t].seen_ > 1.5) for t in (0, -1))
    assert last > first


def test_seeds_of_members_are_their_own():
    X, y = make_table()
    base = CARTClassifier(max_depth=2, max_features=1)
    one, same = (AdaBoostClassifier(base, n_estimators=8, random_state=0).fit(X, y) for _ in range(2))
    assert same_bits(one, same)
    assert not same_bits(one, AdaBoostClassifier(base, n_estimators=8, random_state=1).fit(X, y))
    assert len({int(tree.feature[0]) for tree in one.forest_}) > 1
    trees = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5, random_state=0).fit(X, y)
    assert len({member.random_state for member in trees.estimators_}) == 5


class Contrary(ClassifierMixin, BaseEstimator):
    """Says the opposite of what a stump says."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.stump_ = CARTClassifier(max_depth=1).fit(X, y, sample_weight)
        return self

    def predict(self, X):
        said = np.searchsorted(self.classes_, self.stump_.predict(X))
        return self.classes_[(said + 1) % len(self.classes_)]


def test_members_that_are_wrong_are_used_inverted():
    X, y = make_table()
    right, wrong = (
        AdaBoostClassifier(n_estimators=30).fit(X, y),
        AdaBoostClassifier(Contrary(), n_estimators=30).fit(X, y),
    )
    np.testing.assert_allclose(wrong.estimator_weights_, -right.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(wrong.estimator_errors_, 1 - right.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(wrong.decision_function(X), right.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(wrong.training_bound(), right.training_bound(), rtol=1e-9)
    np.testing.assert_allclose(wrong.margins(X, y), right.margins(X, y), atol=1e-12)


def test_no_better_than_chance_is_warned_of():
    X, y = make_table(n_classes=3)
    with pytest.warns(UserWarning, match=r"no better than chance \(error 0\.[67]"):
        many = AdaBoostClassifier(Contrary()).fit(X, y)
    assert many.estimator_weights_.tolist() == [0.0]
    np.testing.assert_allclose(many.predict_proba(X), 1 / 3)
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])  # XOR
    with pytest.warns(UserWarning, match=r"no better than chance \(error 0\.5\)"):
        two = AdaBoostClassifier().fit(square, [0, 1, 1, 0])
    assert (two.estimator_errors_.tolist(), two.estimator_weights_.tolist()) == ([0.5], [0.0])
    np.testing.assert_array_equal(two.predict_proba(square), 0.5)
    assert two.margins(square, [0, 1, 1, 0]).tolist() == [0.0] * 4
    assert AdaBoostClassifier(CARTClassifier(max_depth=2)).fit(square, [0, 1, 1, 0]).score(square, [0, 1, 1, 0]) == 1.0


def test_a_perfect_member_is_the_last():
    X = np.arange(6.0)[:, None]
    model = AdaBoostClassifier().fit(X, [0, 0, 0, 1, 1, 1])
    assert (model.estimator_errors_.tolist(), model.estimator_weights_.tolist()) == ([0.0], [1.0])
    assert AdaBoostClassifier(convention="half").fit(X, [0, 0, 0, 1, 1, 1]).estimator_weights_.tolist() == [0.5]
    numbers = AdaBoostRegressor().fit(X, [0, 0, 0, 1, 1, 1])
    assert (numbers.estimator_errors_.tolist(), numbers.estimator_weights_.tolist()) == ([0.0], [1.0])
    assert numbers.predict(X).tolist() == [0, 0, 0, 1, 1, 1]


class Odd(BaseEstimator):
    """Predicts what it was told to, whatever it was shown."""

    def __init__(self, answer=0.0):
        self.answer = answer

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), self.answer)


class OddClassifier(ClassifierMixin, Odd):
    pass


class OddRegressor(RegressorMixin, Odd):
    pass


def test_members_that_predict_nonsense_are_refused():
    X, y = make_table(50)
    with pytest.raises(ValueError, match="a member predicts nan for row 0"):
        AdaBoostRegressor(OddRegressor(np.nan)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"a member predicts the class 7, which is not among \[0, 1\]") as caught:
        AdaBoostClassifier(OddClassifier(7)).fit(X, y)
    assert "raised by member 0: OddClassifier" in caught.value.__notes__[0]


def test_a_mean_loss_of_a_half_ends_the_boosting():
    X, y = np.arange(8.0)[:, None], np.array([0.0, 0, 0, 0, 0, 0, 0, 1.0])
    model = AdaBoostRegressor(OddRegressor(1.0)).fit(X, y)
    assert (model.estimator_errors_.tolist(), model.estimator_weights_.tolist()) == ([0.875], [0.0])
    assert model.predict(X).tolist() == [1.0] * 8


# --- exactness ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("depth", [1, 3])
def test_neither_the_order_of_rows_nor_repeating_them_changes_a_bit(n_classes, depth):
    X, y = make_table(200, n_classes=n_classes)
    X[::7, 1] = np.nan
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    make = AdaBoostClassifier(CARTClassifier(max_depth=depth), n_estimators=30).fit
    model = make(X, y, weight)
    order = np.random.default_rng(1).permutation(len(y))
    moved = clone(model).fit(X[order], y[order], weight[order])
    assert same_bits(moved, model)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(repeated.forest_.hot, model.forest_.hot)
    for name in ("estimator_weights_", "estimator_errors_"):
        np.testing.assert_array_equal(getattr(repeated, name), getattr(model, name))
    np.testing.assert_array_equal(repeated.predict_proba(X), model.predict_proba(X))


def test_numbers_in_another_order_or_repeated():
    X, y = make_friedman1(200, noise=1.0, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 200)
    model = AdaBoostRegressor(n_estimators=20).fit(X, y, weight)
    order = np.random.default_rng(1).permutation(200)
    moved = clone(model).fit(X[order], y[order], weight[order])
    assert same_bits(moved, model)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(repeated.predict(X), model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(repeated.estimator_weights_, model.estimator_weights_, rtol=1e-10)


# --- early stopping -------------------------------------------------------------------------------------------------


def test_rows_given_for_validation_stop_the_rounds_at_the_best():
    X, y = make_table(300)
    X_val, y_val = make_table(300, seed=1)
    whole = AdaBoostClassifier(CARTClassifier(max_depth=3), n_estimators=80).fit(X, y, X_val=X_val, y_val=y_val)
    scores = whole.validation_scores_
    np.testing.assert_allclose(scores, list(whole.staged_score(X_val, y_val)), rtol=1e-12)
    assert (len(whole), whole.n_iter_, whole.best_iteration_) == (80, 80, 80)
    model = clone(whole).set_params(n_iter_no_change=10).fit(X, y, X_val=X_val, y_val=y_val)
    best = int(np.argmax(scores[: model.n_iter_]))
    assert model.n_iter_ < 80
    np.testing.assert_array_equal(model.validation_scores_, scores[: model.n_iter_])
    assert model.best_iteration_ == len(model) == len(model.estimators_) == best + 1
    assert model.n_iter_ == best + 11
    np.testing.assert_array_equal(model.estimator_weights_, whole.estimator_weights_[: best + 1])
    assert model.score(X_val, y_val) == pytest.approx(scores[best])
    patient = clone(whole).set_params(n_iter_no_change=79).fit(X, y, X_val=X_val, y_val=y_val)
    assert len(patient) == int(np.argmax(patient.validation_scores_)) + 1  # no patience lost, but the best is kept
    strict = clone(whole).set_params(n_iter_no_change=10, tol=0.5).fit(X, y, X_val=X_val, y_val=y_val)
    assert (strict.n_iter_, len(strict)) == (11, 1)
    assert not hasattr(model.set_params(n_iter_no_change=None).fit(X, y), "validation_scores_")


def test_validation_rows_of_numbers_and_their_weights():
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    given = {"X_val": X[200:], "y_val": y[200:], "sample_weight_val": weight}
    for base in (CARTRegressor(max_depth=3), SlowRegressor(max_depth=3)):
        model = AdaBoostRegressor(base, n_estimators=30).fit(X[:200], y[:200], **given)
        expected = [
            -math.sqrt(mean_squared_error(y[200:], said, sample_weight=weight))
            for said in model.staged_predict(X[200:])
        ]
        np.testing.assert_allclose(model.validation_scores_, expected, rtol=1e-11)
        stopped = clone(model).set_params(n_iter_no_change=3).fit(X[:200], y[:200], **given)
        assert len(stopped) == int(np.argmax(stopped.validation_scores_)) + 1
    huge = AdaBoostRegressor(n_estimators=5).fit(X[:200], y[:200] * 1e306, X_val=X[200:], y_val=y[200:] * 1e306)
    unit = AdaBoostRegressor(n_estimators=5).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    np.testing.assert_allclose(huge.validation_scores_ / 1e306, unit.validation_scores_, rtol=1e-9)


@pytest.mark.parametrize("base", [CARTClassifier(max_depth=2), Slow(max_depth=2)])
def test_a_fraction_held_out(base):
    X, y = make_frame(300)
    model = AdaBoostClassifier(base, n_estimators=60, n_iter_no_change=5, validation_fraction=0.2, random_state=0)
    model.fit(X, y)
    same = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.validation_scores_, same.validation_scores_)
    assert len(model) == model.best_iteration_ <= model.n_iter_ < 60
    np.testing.assert_allclose(model.validation_scores_ * 60, (model.validation_scores_ * 60).round(), atol=1e-9)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(model.validation_scores_, other.validation_scores_)
    rows = model[0].tree_.n_rows[0]
    assert rows == 240


# --- tools of scikit-learn ------------------------------------------------------------------------------------------


def test_copies_and_searches():
    X, y = make_frame()
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(AdaBoostClassifier(CARTClassifier()), {"estimator__max_depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_["estimator__max_depth"] in {1, 3}
    numbers, labels = make_table()
    calibrated = CalibratedClassifierCV(AdaBoostClassifier(n_estimators=20), cv=2).fit(numbers, labels)
    assert calibrated.predict_proba(numbers).shape == (300, 2)


def test_probabilities_and_scores_fit_together():
    for n_classes in (2, 4):
        X, y = make_table(n_classes=n_classes)
        model = AdaBoostClassifier(n_estimators=15).fit(X, y)
        shares = model.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), shares)
        assert model.score(X, y) == accuracy_score(y, model.predict(X))


def test_sparse_tables_reach_members_that_take_them():
    X, y = make_table()
    model = AdaBoostClassifier(LogisticRegression(), n_estimators=3).fit(csr_matrix(X), y)
    dense = AdaBoostClassifier(LogisticRegression(), n_estimators=3).fit(X, y)
    np.testing.assert_allclose(model.decision_function(csr_matrix(X)), dense.decision_function(X), atol=1e-6)
    trees = AdaBoostClassifier(n_estimators=3).fit(csr_matrix(X), y)
    np.testing.assert_array_equal(trees.decision_function(csr_matrix(X)), trees.decision_function(X))


def test_categories_of_play_tennis():
    table = datasets.load("play_tennis")
    X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    assert model.score(X, y) == 1.0
    assert set(np.unique([tree.feature[0] for tree in model.forest_])) <= set(range(X.num_columns))
