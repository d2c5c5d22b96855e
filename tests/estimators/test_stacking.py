"""Stacking: against scikit-learn's, against plain loops, and what it refuses."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import spinney
from spinney import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from spinney.estimators.cross_fitting import make_stack_folds
from spinney.estimators.other_members import Rows
from spinney.table import shared_columns
from spinney.table.columns import Categories, Numbers, open_columns
from spinney.table.shared_columns import SharedColumns, join_columns

THEIRS = [
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("near", KNeighborsClassifier()),
    ("vectors", SVC(random_state=0)),
]
NUMBERS = [
    ("tree", DecisionTreeRegressor(max_depth=3, random_state=0)),
    ("near", KNeighborsRegressor()),
    ("line", LinearRegression()),
]
DEEP = DecisionTreeClassifier(max_depth=4, random_state=0)


def assert_same_stacks(ours, theirs, X):
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        assert hasattr(ours, name) == hasattr(theirs, name)
        if hasattr(theirs, name):
            np.testing.assert_array_equal(getattr(ours, name)(X), getattr(theirs, name)(X), err_msg=name)
    assert ours.stack_method_ == theirs.stack_method_
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.n_features_in_ == theirs.n_features_in_
    assert list(ours.named_estimators_) == [name for name, one in theirs.named_estimators_.items() if one != "drop"]


def make_frame(n_rows=90, seed=0):
    """Numbers, text and categories with missing cells; two and three classes, and a number, that follow from them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "width": rng.normal(size=n_rows),
            "tree": np.array(["ash", "birch", "cedar", "damson"])[rng.integers(0, 4, n_rows)],
            "count": rng.integers(0, 5, n_rows),
            "soil": pd.Categorical.from_codes(rng.integers(-1, 3, n_rows), ["wet", "dry", "mixed"], ordered=True),
        }
    )
    score = frame["width"] + frame["tree"].isin(["ash", "cedar"]) + 0.3 * frame["count"] + rng.normal(size=n_rows) / 3
    return frame, score.to_numpy()


# --- against scikit-learn ------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer], ids=["three classes", "two classes"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": 3},
        {"cv": KFold(4, shuffle=True, random_state=1)},
        {"stack_method": "predict"},
        {"final_estimator": DEEP, "passthrough": True, "cv": 3},
        {"final_estimator": SVC(random_state=0), "cv": 3},
    ],
    ids=str,
)
def test_the_same_as_scikit_learn_for_classes(load, options):
    X, y = load(return_X_y=True)
    X, y = X[::2], np.array(["red", "green", "blue"])[y[::2]]
    ours = StackingClassifier(THEIRS, **options).fit(X, y)
    theirs = ensemble.StackingClassifier(THEIRS, **options).fit(X, y)
    assert_same_stacks(ours, theirs, X)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize(
    "options",
    [{}, {"cv": 3}, {"cv": KFold(3, shuffle=True, random_state=2), "passthrough": True}, {"final_estimator": Ridge()}],
    ids=str,
)
def test_the_same_as_scikit_learn_for_numbers(options):
    X, y = load_diabetes(return_X_y=True)
    ours = StackingRegressor(NUMBERS, **options).fit(X, y)
    theirs = ensemble.StackingRegressor(NUMBERS, **options).fit(X, y)
    assert_same_stacks(ours, theirs, X)
    assert type(ours.final_estimator_) is type(theirs.final_estimator_)


def test_one_member_dropped_members_and_pairs_of_rows():
    X, y = load_iris(return_X_y=True)
    folds = list(StratifiedKFold(3).split(X, y))
    for members in (THEIRS[:1], [*THEIRS[:2], ("gone", "drop")]):
        ours = StackingClassifier(members, cv=folds).fit(X, y)
        assert_same_stacks(ours, ensemble.StackingClassifier(members, cv=folds).fit(X, y), X)
    masks = [tuple(np.isin(np.arange(len(y)), rows) for rows in fold) for fold in folds]
    np.testing.assert_array_equal(
        StackingClassifier(members, cv=masks).fit(X, y).predict_proba(X), ours.predict_proba(X)
    )


def test_weights_reach_members_and_second_stage_as_in_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    members = [("tree", DecisionTreeClassifier(max_depth=3, random_state=0)), ("bayes", GaussianNB())]
    ours = StackingClassifier(members, cv=3).fit(X, y, weight)
    theirs = ensemble.StackingClassifier(members, cv=3).fit(X, y, sample_weight=weight)
    assert_same_stacks(ours, theirs, X)
    assert not np.array_equal(ours.predict_proba(X), StackingClassifier(members, cv=3).fit(X, y).predict_proba(X))


def test_prefit_members_as_in_scikit_learn():
    X, y = load_iris(return_X_y=True)
    members = [(name, clone(one).fit(X[::2], y[::2])) for name, one in THEIRS]
    ours = StackingClassifier(members, cv="prefit").fit(X[1::2], y[1::2])
    theirs = ensemble.StackingClassifier(members, cv="prefit").fit(X[1::2], y[1::2])
    assert_same_stacks(ours, theirs, X)
    assert all(one is given for one, (_, given) in zip(ours.estimators_, members, strict=True))


def test_prefit_members_know_the_classes_by_name():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    members = [("tree", CARTClassifier(max_depth=2).fit(X[::2], names[::2]))]
    for method in ("predict", "predict_proba"):
        stack = StackingClassifier(members, cv="prefit", stack_method=method).fit(X[1::2], names[1::2])
        member = members[0][1]
        expected = (
            member.predict_proba(X)
            if method == "predict_proba"
            else np.searchsorted(names[::50], member.predict(X))[:, None]
        )
        np.testing.assert_array_equal(stack.transform(X), expected)
        assert stack.score(X, names) > 0.9
    with pytest.raises(ValueError, match="fitted to the class 'setosa', which is not among those of y") as caught:
        StackingClassifier(members, cv="prefit").fit(X, y)
    assert "'tree' of estimators" in caught.value.__notes__[0]


def test_members_that_are_pipelines_or_regressors():
    X, y = load_iris(return_X_y=True)
    members = [("numbers", DecisionTreeRegressor(max_depth=3, random_state=0)), ("bayes", GaussianNB())]
    ours = StackingClassifier(members, cv=3).fit(X, y)
    assert_same_stacks(ours, ensemble.StackingClassifier(members, cv=3).fit(X, y), X)
    assert ours.stack_method_ == ["predict", "predict_proba"]


def test_sparse_tables():
    X, y = load_breast_cancer(return_X_y=True)
    table = sparse.csr_matrix(X * (X - np.median(X, axis=0) > 0.0))
    for passthrough in (False, True):
        options = {"cv": 3, "passthrough": passthrough, "final_estimator": DEEP}
        ours = StackingClassifier(THEIRS[:2], **options).fit(table, y)
        theirs = ensemble.StackingClassifier(THEIRS[:2], **options).fit(table, y)
        np.testing.assert_array_equal(ours.predict_proba(table), theirs.predict_proba(table))
        assert sparse.issparse(ours.transform(table)) == passthrough


# --- against plain loops -------------------------------------------------------------------------------------

OURS = [
    ("tree", CARTClassifier(max_depth=3)),
    ("c45", C45Classifier()),
    ("forest", RandomForestClassifier(n_estimators=5, random_state=3)),
    ("boosting", GradientBoostingClassifier(n_estimators=4, random_state=3)),
    ("bag", BaggingClassifier([CARTClassifier(), C45Classifier()], 4, random_state=3)),
    ("ada", AdaBoostClassifier(n_estimators=3)),
]


def stack_by_hand(members, stage, X, y, folds, asked):
    """Probabilities of a stack, by scikit-learn's parts and a loop; X and asked are frames of pandas."""
    classes, codes = np.unique(y, return_inverse=True)
    first = 1 if len(classes) == 2 else 0
    held_out = np.zeros((len(y), 0))
    columns = np.zeros((len(asked), 0))
    for _, member in members:
        shares = np.zeros((len(y), len(classes)))
        for train, test in folds:
            fitted = clone(member).fit(X.iloc[train], codes[train])
            shares[np.ix_(test, fitted.classes_)] = fitted.predict_proba(X.iloc[test])
        held_out = np.hstack([held_out, shares[:, first:]])
        columns = np.hstack([columns, clone(member).fit(X, codes).predict_proba(asked)[:, first:]])
    return clone(stage).fit(held_out, codes).predict_proba(columns)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_members_of_ours_are_those_of_a_plain_loop(n_classes, n_jobs):
    X, score = make_frame()
    y = np.argsort(np.argsort(score)) * n_classes // len(score)
    asked, _ = make_frame(40, seed=1)
    stack = StackingClassifier(OURS, cv=3, n_jobs=n_jobs).fit(X, y)
    folds = list(StratifiedKFold(3).split(X, y))
    expected = stack_by_hand(OURS, LogisticRegression(), X, y, folds, asked)
    np.testing.assert_array_equal(stack.predict_proba(asked), expected)


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_frames_of_any_library_give_the_same_stack(library):
    X, score = make_frame()
    X = X.assign(soil=X["soil"].astype(object).where(X["soil"].notna(), None))
    y = (score > 1.0).astype(int)
    members = [*OURS[:2], ("forest", RandomForestClassifier(n_estimators=3, random_state=3))]
    stack, other = (StackingClassifier(members, cv=3).fit(table, y) for table in (X, library(X)))
    np.testing.assert_array_equal(stack.predict_proba(X), other.predict_proba(library(X)))
    assert other.feature_names_in_.tolist() == list(X.columns)
    shuffled = X[["soil", "tree", "width", "count"]]  # columns are found by name
    np.testing.assert_array_equal(stack.predict_proba(shuffled), stack.predict_proba(X))


def test_numbers_by_members_of_ours():
    X, y = make_frame()
    members = [
        ("tree", CARTRegressor(max_depth=3)),
        ("boosting", GradientBoostingRegressor(n_estimators=5, random_state=0)),
    ]
    stack = StackingRegressor(members, cv=4).fit(X, y)
    held_out = np.zeros((len(y), 2))
    for column, (_, member) in enumerate(members):
        for train, test in KFold(4).split(X):
            held_out[test, column] = clone(member).fit(X.iloc[train], y[train]).predict(X.iloc[test])
    stage = RidgeCV().fit(held_out, y)
    columns = np.column_stack([clone(member).fit(X, y).predict(X) for _, member in members])
    np.testing.assert_array_equal(stack.predict(X), stage.predict(columns))


@pytest.mark.parametrize("library", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
def test_a_second_stage_of_ours_sees_the_categories_of_x(library):
    X, _ = make_frame(200)
    y = X["tree"].isin(["ash", "cedar"]).to_numpy()  # a question of one subset of levels
    members = [("tree", CARTClassifier(max_depth=1, max_features=1, random_state=0)), ("bayes", Narrow())]
    table = library(X.assign(soil=X["soil"].astype(object).where(X["soil"].notna(), None)))
    stack = StackingClassifier(members, CARTClassifier(max_depth=1), cv=3, passthrough=True).fit(table, y)
    names = stack.final_estimator_.feature_names_in_.tolist()
    assert names == ["stackingclassifier_tree", "stackingclassifier_bayes", *X.columns]
    assert stack.get_feature_names_out().tolist() == names
    assert "─ tree in {ash, cedar}: 1" in stack.final_estimator_.tree_.to_text()
    assert stack.score(table, y) == 1.0
    assert stack.transform(table).shape == (200, 6)


class Narrow(ClassifierMixin, BaseEstimator):
    """A member that sees the first column of a frame, whatever its library."""

    def __init__(self, width="width"):
        self.width = width

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.model_ = LogisticRegression().fit(np.asarray(X[self.width]).reshape(-1, 1), y)
        self.n_features_in_ = 4
        return self

    def predict(self, X):
        return self.model_.predict(np.asarray(X[self.width]).reshape(-1, 1))

    def predict_proba(self, X):
        return self.model_.predict_proba(np.asarray(X[self.width]).reshape(-1, 1))


# --- out of bag ----------------------------------------------------------------------------------------------

BAGGED = [
    ("forest", RandomForestClassifier(n_estimators=40, random_state=1)),
    ("extra", ExtraTreesClassifier(n_estimators=40, bootstrap=True, random_state=2)),
    ("bag", BaggingClassifier(n_estimators=40, random_state=3)),
    ("theirs", ensemble.RandomForestClassifier(n_estimators=60, random_state=4)),
]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_out_of_bag_columns_are_those_of_the_members(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[: 50 * n_classes], y[: 50 * n_classes]
    stack = StackingClassifier(BAGGED, cv="oob").fit(X, y)
    members = [clone(member).set_params(oob_score=True).fit(X, y) for _, member in BAGGED]
    held_out = np.hstack([member.oob_decision_function_[:, 1 if n_classes == 2 else 0 :] for member in members])
    assert not np.isnan(held_out).any()
    columns = np.hstack([member.predict_proba(X)[:, 1 if n_classes == 2 else 0 :] for member in members])
    stage = LogisticRegression().fit(held_out, y)
    np.testing.assert_array_equal(stack.predict_proba(X), stage.predict_proba(columns))
    named = StackingClassifier(BAGGED, DEEP, cv="oob", stack_method="predict").fit(X, y)
    stage = clone(DEEP).fit(np.column_stack([m.oob_decision_function_.argmax(axis=1) for m in members]), y)
    np.testing.assert_array_equal(named.predict(X), stage.predict(np.column_stack([m.predict(X) for m in members])))


def test_out_of_bag_numbers_and_rows_that_were_never_out():
    X, y = load_diabetes(return_X_y=True)
    members = [
        ("forest", RandomForestRegressor(n_estimators=4, random_state=1)),
        ("bag", BaggingRegressor(random_state=3)),
    ]
    with pytest.warns(UserWarning, match="out-of-bag"):
        stack = StackingRegressor(members, cv="oob").fit(X, y)
    fitted = stack.estimators_
    for (_, member), other in zip(members, fitted, strict=True):
        assert other.get_params() == {**member.get_params(), "oob_score": True}
    held_out = np.column_stack([member.oob_prediction_ for member in fitted])
    is_out = ~np.isnan(held_out).any(axis=1)
    assert 0 < is_out.sum() < len(y)
    stage = RidgeCV().fit(held_out[is_out], y[is_out])
    columns = np.column_stack([member.predict(X) for member in fitted])
    np.testing.assert_array_equal(stack.predict(X), stage.predict(columns))


def test_out_of_bag_groups_are_drawn_whole():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(len(y)) // 5
    stack = StackingClassifier(BAGGED[:3], cv="oob").fit(X, y, groups=groups)
    for (_, member), fitted in zip(BAGGED, stack.estimators_, strict=False):
        by_hand = clone(member).set_params(oob_score=True).fit(X, y, groups=groups)
        np.testing.assert_array_equal(fitted.oob_decision_function_, by_hand.oob_decision_function_)
    with pytest.raises(
        ValueError, match=r"groups: 'theirs' of estimators, RandomForestClassifier.* draws rows, not groups"
    ):
        StackingClassifier(BAGGED, cv="oob").fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("member", "options", "words"),
    [
        (CARTClassifier(), {}, r"'one' of estimators, CARTClassifier\(\), does not have: use forests or bagging"),
        (GradientBoostingClassifier(), {}, "'one' of estimators, GradientBoosting.*cross-fit all members by a number"),
        (
            ensemble.BaggingClassifier(LogisticRegression()),
            {"stack_method": "decision_function"},
            r"stack_method='decision_function' has no out-of-bag values, .* \('one'\): set stack_method=",
        ),
        (
            RandomForestClassifier(bootstrap=False),
            {},
            r"available if bootstrap=True(.|\n)*raised by 'one' of estimators",
        ),
    ],
    ids=["tree", "boosting", "scores", "no bags"],
)
def test_members_without_out_of_bag_predictions_are_refused(member, options, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=words):
        StackingClassifier([("one", member)], cv="oob", **options).fit(X, y)


# --- weights, groups, classes --------------------------------------------------------------------------------


def test_rows_of_weight_0_are_left_out():
    X, score = make_frame()
    y = (score > 1.0).astype(int)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0 + np.arange(len(y)) % 2)
    kept = np.flatnonzero(weight)
    members = [("tree", CARTClassifier(max_depth=3)), ("other", Narrow())]
    every = np.arange(len(y))
    folds = [(every[every % 4 != k], every[every % 4 == k]) for k in range(4)]
    of_kept = [tuple(np.searchsorted(kept, rows[np.isin(rows, kept)]) for rows in fold) for fold in folds]
    for cv, cv_of_kept in ((3, 3), (KFold(3), KFold(3)), (folds, of_kept), ("oob", "oob")):
        chosen = BAGGED[:2] if cv == "oob" else members
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "sample_weight: the fit of 'other'")
            stack = StackingClassifier(chosen, cv=cv).fit(X, y, weight)
            other = StackingClassifier(chosen, cv=cv_of_kept).fit(X.iloc[kept], y[kept], weight[kept])
        np.testing.assert_array_equal(stack.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("options", [{"cv": 3}, {"cv": "oob"}, {"cv": "oob", "stack_method": "predict"}], ids=str)
def test_a_class_without_weight_has_probability_0(options):
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier(BAGGED[:1], **options).fit(X, y, np.where(y == 1, 0.0, 1.0))
    shares = stack.predict_proba(X)
    assert shares.shape == (150, 3)
    assert (shares[:, 1] == 0.0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_who_takes_no_weights_is_named():
    X, y = load_iris(return_X_y=True)
    weight = 1.0 + y
    with pytest.warns(UserWarning, match=r"sample_weight: the fit of 'near' of estimators, KNeighborsClassifier\(\)"):
        stack = StackingClassifier(THEIRS[:2], cv=3).fit(X, y, weight)
    assert stack.score(X, y) > 0.9
    StackingClassifier(THEIRS[:2], cv=3).fit(X, y, np.full(len(y), 2.0))  # all alike: nothing to tell
    with pytest.raises(ValueError, match="sample_weight: the fit of final_estimator, KNeighborsClassifier"):
        StackingClassifier(THEIRS[:1], KNeighborsClassifier(), cv=3).fit(X, y, weight)


class Watcher(ClassifierMixin, BaseEstimator):
    """Keeps for all to see which rows, by the number in their first column, were fitted on and asked for."""

    seen = []  # noqa: RUF012

    def fit(self, X, y):
        self.classes_, self.rows_ = np.unique(y), X[:, 0].astype(int)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        Watcher.seen.append((self.rows_, X[:, 0].astype(int)))
        return np.resize(self.classes_, len(X))


@pytest.mark.parametrize(
    ("cv", "random_state"),
    [(None, None), (3, 0), (GroupKFold(4), None), (StratifiedGroupKFold(3), None), (LeaveOneGroupOut(), None)],
    ids=str,
)
def test_no_fold_splits_a_group(cv, random_state):
    rng = np.random.default_rng(0)
    groups = np.array(["a", "b", "c", "d", "e", "f", "g"])[rng.integers(0, 7, 80)]
    X, y = np.column_stack([np.arange(80), rng.normal(size=80)]), rng.integers(0, 2, 80)
    Watcher.seen.clear()
    StackingClassifier([("watcher", Watcher())], cv=cv, random_state=random_state).fit(X, y, groups=groups)
    assert len(Watcher.seen) == {None: 5, 3: 3}.get(cv if isinstance(cv, int | None) else 0, len(Watcher.seen)) > 2
    for fitted, asked in Watcher.seen:
        assert set(groups[fitted]).isdisjoint(groups[asked])
        assert len(fitted) + len(asked) == 80
    assert sorted(np.concatenate([asked for _, asked in Watcher.seen])) == list(range(80))


def test_folds_that_split_groups_are_refused():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) // 2
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    with pytest.raises(ValueError, match=r"groups: fold 0 of cv holds out row .* GroupKFold, or a number of folds"):
        StackingClassifier(THEIRS, cv=folds).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups: cv='prefit' holds out no rows"):
        StackingClassifier([("tree", CARTClassifier().fit(X, y))], cv="prefit").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="5 folds of whole groups, but there are 2 groups"):
        StackingClassifier(THEIRS, cv=5).fit(X, y, groups=np.arange(150) % 2)
    assert len(make_stack_folds(None, X, y, np.arange(150, dtype=np.int32) % 2, None, has_classes=True)) == 2
    with pytest.raises(ValueError, match=r"groups must have one label per row, shape \(150,\)"):
        StackingClassifier(THEIRS).fit(X, y, groups=[1, 2])


def test_a_class_that_a_fold_has_not_seen_has_probability_0():
    X, y = load_iris(return_X_y=True)
    cv = KFold(3)  # in order: each fold trains without one class
    members = [("tree", CARTClassifier(max_depth=2)), ("bayes", GaussianNB())]
    stack = StackingClassifier(members, cv=cv).fit(X, y)
    expected = stack_by_hand(members, LogisticRegression(), pd.DataFrame(X), y, list(cv.split(X)), pd.DataFrame(X))
    np.testing.assert_array_equal(stack.predict_proba(X), expected)
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        theirs = ensemble.StackingClassifier(members[1:], cv=cv).fit(X, y)
    assert_same_stacks(StackingClassifier(members[1:], cv=cv).fit(X, y), theirs, X)
    with pytest.raises(ValueError, match="seen 2 of 3 classes, and its decision_function says nothing") as caught:
        StackingClassifier([("vectors", SVC())], cv=cv).fit(X, y)
    assert caught.value.__notes__ == ["raised by 'vectors' of estimators, in fold 0 of cv: SVC()"]


# --- seeds and threads ---------------------------------------------------------------------------------------


def test_the_same_stack_for_any_number_of_threads_and_the_same_seed():
    X, y = load_iris(return_X_y=True)
    members = [
        ("forest", RandomForestClassifier(n_estimators=4)),
        ("theirs", ensemble.ExtraTreesClassifier(n_estimators=4)),
        ("deep", BaggingClassifier(DecisionTreeClassifier(max_features=1), 3)),
    ]
    stacks = [
        StackingClassifier(members, random_state=seed, n_jobs=n).fit(X, y) for n, seed in ((1, 0), (3, 0), (1, 1))
    ]
    shares = [stack.predict_proba(X) for stack in stacks]
    np.testing.assert_array_equal(shares[0], shares[1])
    assert not np.array_equal(shares[0], shares[2])
    assert members[0][1].random_state is None
    kept = StackingClassifier([("forest", RandomForestClassifier(n_estimators=3, random_state=7))], random_state=0)
    assert kept.fit(X, y).estimators_[0].random_state == 7
    state, reference = np.random.RandomState(5), np.random.RandomState(5)
    StackingClassifier(members, random_state=state).fit(X, y)
    reference.randint(np.iinfo(np.int32).max)
    assert state.randint(2**30) == reference.randint(2**30)  # drawn from once


@pytest.mark.parametrize("has_classes", [False, True])
def test_a_seed_shuffles_the_rows_of_folds(has_classes):
    y = np.arange(40) % 2 if has_classes else np.arange(40.0)
    X = np.zeros((40, 1))
    kind = StratifiedKFold if has_classes else KFold
    for seed in (None, 3):
        folds = make_stack_folds(4, X, y, None, seed, has_classes=has_classes)
        expected = kind(4, shuffle=seed is not None, random_state=seed).split(X, y)
        for fold, (train, test) in zip(folds, expected, strict=True):
            assert fold.train.tolist() == train.tolist()
            assert fold.test.tolist() == test.tolist()


# --- reading once --------------------------------------------------------------------------------------------


def test_columns_are_read_once_for_members_of_ours(monkeypatch):
    X, score = make_frame()
    y = (score > 1.0).astype(int)
    n_reads = []
    plain = SharedColumns.__init__

    def counted(self, columns):
        n_reads.append(columns.n_rows)
        plain(self, columns)

    monkeypatch.setattr(shared_columns.SharedColumns, "__init__", counted)
    monkeypatch.setattr(Rows, "take", lambda *_: pytest.fail("a member of ours was given a frame"))
    members = [("tree", CARTClassifier(max_depth=3)), ("c45", C45Classifier()), ("forest", RandomForestClassifier(3))]
    stack = StackingClassifier(members, cv=3).fit(X, y)
    assert n_reads == [90]
    stack.predict(X.iloc[:7])
    assert n_reads == [90, 7]


def test_rows_of_shared_columns_are_those_of_a_table_without_the_others():
    X, _ = make_frame(30)
    X["wide"] = np.arange(30) + 2**60
    X["rare"] = [None] * 28 + ["one", "two"]
    rows = np.array([3, 4, 29, 7, 3])
    for table in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        shared = SharedColumns(open_columns(table)).take(rows)
        alone = open_columns(Rows(table, 30).take(rows, None))
        assert (shared.names, shared.n_rows, shared.n_columns) == (alone.names, 5, 6)
        for j in range(6):
            one, other = shared.read(j), alone.read(j)
            assert type(one) is type(other)
            if isinstance(one, Numbers):
                np.testing.assert_array_equal(one.read(), other.read())
                np.testing.assert_array_equal(one.exact()[0], other.exact()[0])
                continue
            assert isinstance(one, Categories)
            assert sorted(one.values) == sorted(set(other.values))
            assert one.is_ordered == other.is_ordered
            cells = [[None, *part.values] for part in (one, other)]  # noqa: PD011
            assert [cells[0][code + 1] for code in one.codes] == [cells[1][code + 1] for code in other.codes]
    joined = join_columns(np.ones((5, 2)), ["p", "q"], SharedColumns(open_columns(X)).take(rows))
    assert joined.names == ("p", "q", *X.columns)
    assert joined.read(1).read().tolist() == [1.0] * 5
    assert isinstance(joined.read(3), Categories)


# --- files and pickles ---------------------------------------------------------------------------------------


def test_pickles_of_members_of_any_library():
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier([*THEIRS, *OURS[1:2]], cv=StratifiedKFold(3)).fit(X, y)
    copy = pickle.loads(pickle.dumps(stack))
    np.testing.assert_array_equal(copy.predict_proba(X), stack.predict_proba(X))
    assert copy.get_feature_names_out().tolist() == stack.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    "stack",
    [
        StackingClassifier(OURS[:1], cv=3),
        StackingClassifier([*OURS[:1], ("near", KNeighborsClassifier())], CARTClassifier(), cv=3),
    ],
    ids=["second stage", "member"],
)
def test_files_hold_stacks_of_ours_alone(stack, tmp_path):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(
        ValueError, match=r"save_model cannot store this StackingClassifier: .*of sklearn.*; pickle keeps"
    ):
        stack.fit(X, y).save_model(tmp_path / "model.spn")
    assert not (tmp_path / "model.spn").exists()


def test_files_hold_no_splitter(tmp_path):
    X, y = load_iris(return_X_y=True)
    for cv in (StratifiedKFold(3), list(StratifiedKFold(3).split(X, y))):
        stack = StackingClassifier(OURS[:1], CARTClassifier(max_depth=3), cv=cv).fit(X, y)
        with pytest.warns(UserWarning, match="cv=.* is not stored: the loaded model has cv=None"):
            stack.save_model(tmp_path / "model.spn")
        loaded = spinney.load_model(tmp_path / "model.spn")
        assert loaded.cv is None
        np.testing.assert_array_equal(loaded.predict_proba(X), stack.predict_proba(X))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("_names", lambda _: ["one", "one"], "different texts"),
        ("_names", lambda _: ["one"], "every member of a stack has a name"),
        ("stack_method_", lambda _: ["predict", "fit"], "not asked by 'fit'"),
        ("_widths", lambda _: [1, 0], "at least one column"),
        ("_widths", lambda _: [3, 4], "other columns than the members fill"),
        ("_passes_x", lambda _: True, "other columns than the members fill"),
        ("estimators_", lambda members: [members[0], CARTClassifier()], "not fitted"),
        ("estimators_", lambda members: [members[0], CARTClassifier().fit([[1.0]], [0])], "another number of columns"),
        ("estimators_", lambda members: [members[0], CARTClassifier().fit(np.eye(4), list("abca"))], "other classes"),
        ("final_estimator_", lambda _: CARTRegressor().fit(np.ones((2, 6)), [1.0, 2.0]), "predicts no classes"),
        ("final_estimator_", lambda _: CARTClassifier(), "not fitted"),
    ],
)  # fmt: skip
def test_a_stack_of_a_file_must_fit_together(name, change, words):
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier([("one", CARTClassifier(max_depth=2)), ("two", C45Classifier())], CARTClassifier(), cv=3)
    stack.fit(X, y)
    stack._check_fitted()
    setattr(stack, name, change(getattr(stack, name)))
    with pytest.raises(spinney.BrokenFileError, match=words):
        stack._check_fitted()


# --- parameters ----------------------------------------------------------------------------------------------


def test_parameters_of_members_can_be_searched():
    X, y = load_iris(return_X_y=True)
    stack = StackingClassifier([("tree", CARTClassifier()), ("near", KNeighborsClassifier())], cv=3)
    search = GridSearchCV(stack, {"tree__max_depth": [1, 3], "near": ["drop", KNeighborsClassifier(3)]}, cv=3).fit(X, y)
    assert search.best_params_["tree__max_depth"] in {1, 3}
    stack.set_params(tree__max_depth=2, near="drop")
    assert stack.get_params()["tree__max_depth"] == 2
    assert stack.fit(X, y).stack_method_ == ["predict_proba"]
    assert stack.named_estimators_.tree is stack.estimators_[0]


def test_output_as_a_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    stack = StackingClassifier(OURS[:1], cv=3).set_output(transform="pandas").fit(X, y)
    assert stack.transform(X).columns.tolist() == [f"stackingclassifier_tree{k}" for k in range(3)]
    numbers = StackingRegressor(NUMBERS, cv=3, passthrough=True).fit(X.to_numpy(), y)
    assert numbers.get_feature_names_out(["a", "b", "c", "d"]).tolist()[2:] == ["stackingregressor_line", *"abcd"]
    with pytest.raises(ValueError, match="input_features must be the 4 names"):
        numbers.get_feature_names_out(["a"])


GOOD = ("tree", CARTClassifier())


@pytest.mark.parametrize(
    ("estimators", "options", "error", "words"),
    [
        ([], {}, ValueError, "estimators of StackingClassifier names no member: give at least one pair"),
        ([("one", "drop")], {}, ValueError, "names no member"),
        ([GOOD, GOOD], {}, ValueError, "estimators: two members are called 'tree': give each a name of its own"),
        ([("cv", CARTClassifier())], {}, ValueError, "a member is called 'cv', as a parameter of StackingCl"),
        ([("a__b", CARTClassifier())], {}, ValueError, "estimators: 'a__b' holds '__'.*rename it"),
        ([CARTClassifier()], {}, ValueError, r"estimators\[0\] of StackingClassifier is CARTClassifier\(\): give a"),
        ([("tree", CARTClassifier)], {}, TypeError, r"estimators\[0\], 'tree', is the class CARTClassifier: give an"),
        ([("tree", 3)], {}, TypeError, r"estimators\[0\], 'tree', is 3, which has no fit and predict"),
        (
            [GOOD, ("svc", SVC())], {"stack_method": "predict_proba"}, ValueError,
            r"'svc' of estimators, SVC\(\), has no predict_proba. It has decision_function, predict: set stack_method=",
        ),
        ([GOOD], {"stack_method": "transform"}, ValueError, "'stack_method' parameter of StackingClassifier must be"),
        ([GOOD], {"cv": "loo"}, ValueError, "'cv' parameter of StackingClassifier must be"),
        ([GOOD], {"cv": 1}, ValueError, "'cv' parameter of StackingClassifier must be"),
        ([GOOD], {"final_estimator": Ridge()}, ValueError, r"final_estimator is Ridge\(\), which is no classifier"),
        ([GOOD], {"cv": ShuffleSplit(3, random_state=0)}, ValueError, "cv must hold out every row once, but row "),
        ([GOOD], {"cv": []}, ValueError, "cv must hold out every row once, but row 0 is held out 0 times"),
        ([GOOD], {"cv": [([0, 1], [1, 2])]}, ValueError, "fold 0 holds out row 1 and is fitted on it as well"),
        ([GOOD], {"cv": [([0, 1], [150])]}, ValueError, "fold 0 must name rows .* from 0 to 149"),
        ([GOOD], {"cv": [[0, 1, 2]]}, ValueError, r"cv: fold 0 must be a pair of row numbers, \(train, test\)"),
        ([GOOD], {"cv": 51}, ValueError, "51 folds with rows of each class, but no class has so many, the largest 50"),
    ],
)  # fmt: skip
def test_what_is_refused(estimators, options, error, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=words):
        StackingClassifier(estimators, **options).fit(X, y)


def test_more_that_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError, match=r"cv='prefit' takes members as they are, and 'tree' of estimators, CARTC"):
        StackingClassifier([GOOD], cv="prefit").fit(X, y)
    with pytest.raises(ValueError, match=r"estimators\[0\], 'tree', is CARTClassifier\(\), which is no regressor"):
        StackingRegressor([GOOD]).fit(X, y)
    with pytest.raises(ValueError, match="which is no regressor: give one, or None"):
        StackingRegressor(NUMBERS, CARTClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="cv makes 5 folds, but n_samples=3"):
        StackingRegressor(NUMBERS).fit(X[:3], y[:3])
    stack = StackingClassifier([GOOD], cv=3).fit(X, y)
    before = stack.predict_proba(X)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        stack.fit(X, np.where(y == 0, np.nan, y))
    np.testing.assert_array_equal(stack.predict_proba(X), before)  # a fit that fails leaves the old model
    with pytest.raises(ValueError, match="X has 3 features, but StackingClassifier is expecting 4"):
        stack.predict(X[:, :3])
    with pytest.raises(NotFittedError):
        StackingClassifier([GOOD]).predict(X)
    with pytest.raises(TypeError, match="StackingRegressor has no parameter 'stack_method'"):
        StackingRegressor(NUMBERS, stack_method="predict")


def test_errors_name_the_member_and_the_fold():
    X, y = load_iris(return_X_y=True)
    members = [GOOD, ("near", KNeighborsClassifier(120))]
    with pytest.raises(ValueError, match="n_neighbors") as caught:
        StackingClassifier(members, cv=3).fit(X, y)
    assert caught.value.__notes__[0].startswith("raised by 'near' of estimators, in fold 0 of cv: KNeighborsClassifier")
    with pytest.raises(ValueError, match="Expected n_neighbors") as caught:
        StackingClassifier([GOOD], KNeighborsClassifier(200), cv=3).fit(X, y).predict(X)
