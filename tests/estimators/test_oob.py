"""Out-of-bag rows: who votes on them, what the votes say, and single trees asked by name."""

import math
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

from spinney import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    decompose_error,
    decompose_variance,
    strength_and_correlation,
)
from spinney.ensemble.out_of_bag import oob_error

pytestmark = pytest.mark.filterwarnings("ignore:pruning='oob' has shaped each tree")

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
KINDS = [*CLASSIFIERS, RandomForestRegressor, ExtraTreesRegressor]
BAGS = [
    {},
    {"bootstrap": "poisson"},
    {"bootstrap": False, "replace": False, "max_samples": 0.6},
    {"max_samples": 0.4, "honest": True},
    {"pruning": "oob", "max_features": 1},
    {"block_size": 5},
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def make(kind, **settings):
    return kind(**{"n_estimators": 40, "random_state": 0, "bootstrap": True, "oob_score": True, **settings})


def make_table(n_rows=120, n_classes=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 3)).round(1)
    X[generator.random(n_rows) < 0.1, 2] = np.nan
    y = np.digitize(X[:, 0] + generator.normal(scale=0.7, size=n_rows), [-0.5, 0.5][: n_classes - 1])
    return X, y


def is_outside(model, n_rows):
    """Which rows are outside the bag of each tree, shape (n_trees, n_rows)."""
    outside = np.ones((len(model), n_rows), bool)
    for t, rows in enumerate(model.estimators_samples_):
        outside[t, rows] = False
    return outside


def ask(tree, X, *, is_hard=False):
    """What one tree says, shape (n_rows, n_classes or 1)."""
    if not hasattr(tree, "classes_"):
        return tree.predict(X)[:, None]
    if is_hard:
        return (tree.predict(X)[:, None] == tree.classes_).astype(float)
    return tree.predict_proba(X)


def vote_by_hand(model, X, n_trees=None):
    """Mean over the trees that have not seen the row: a plain loop."""
    outside = is_outside(model, len(X))
    total, n_votes = 0.0, np.zeros(len(X))
    for tree, rows in list(zip(model.estimators_, outside, strict=True))[:n_trees]:
        total = total + np.where(rows[:, None], ask(tree, X, is_hard=getattr(model, "voting", "") == "hard"), 0.0)
        n_votes += rows
    with np.errstate(invalid="ignore"):
        return total / n_votes[:, None]


# --- equal to a loop ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", BAGS, ids=str)
def test_out_of_bag_predictions_equal_a_loop_over_the_bags(kind, settings):
    X, y = make_table()
    model = make(kind, **settings).fit(X, y)
    expected = vote_by_hand(model, X)
    if kind in CLASSIFIERS:
        np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12, atol=1e-15)
        assert model.oob_score_ == accuracy_score(y, expected.argmax(axis=1))
        assert model.oob_curve_[-1] == pytest.approx(1.0 - model.oob_score_)
    else:
        np.testing.assert_allclose(model.oob_prediction_, expected[:, 0], rtol=1e-12)
        assert model.oob_score_ == pytest.approx(r2_score(y, expected[:, 0]))
        assert model.oob_curve_[-1] == pytest.approx(np.mean((expected[:, 0] - y) ** 2))


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "settings", [{"voting": "hard"}, {"stratify": "balanced"}, {"class_weight": "balanced"}], ids=str
)
def test_out_of_bag_votes_of_classifiers_equal_a_loop(kind, settings):
    X, y = make_table()
    model = make(kind, max_depth=3, **settings).fit(X, y)
    np.testing.assert_allclose(model.oob_decision_function_, vote_by_hand(model, X), rtol=1e-12, atol=1e-15)


def test_the_curve_is_the_error_after_each_tree(kind):
    X, y = make_table()
    model = make(kind, n_estimators=12)
    with pytest.warns(UserWarning, match="no out-of-bag prediction"):
        model.fit(X, y)
    assert model.oob_curve_.shape == (12,)
    for n_trees in (1, 2, 5, 12):
        said = vote_by_hand(model, X, n_trees)
        voted = ~np.isnan(said[:, 0])
        if kind in CLASSIFIERS:
            expected = np.mean(said[voted].argmax(axis=1) != y[voted])
        else:
            expected = np.mean((said[voted, 0] - y[voted]) ** 2)
        assert model.oob_curve_[n_trees - 1] == pytest.approx(expected)


def test_the_example_of_the_lecture():
    # Five rows with the votes T F F T T and the truth F T T T T: three mistakes, 3/5 (the slide says 2/5).
    votes = np.array([[0, 1], [1, 0], [1, 0], [0, 1], [0, 1]], float)
    assert oob_error(votes, np.ones(5, int), np.array([0, 1, 1, 1, 1]), is_class=True) == 0.6
    votes = np.vstack([votes, [[0, 0]]])  # a row without votes does not count
    assert oob_error(votes, np.array([1, 1, 1, 1, 1, 0]), np.array([0, 1, 1, 1, 1, 0]), is_class=True) == 0.6
    assert math.isnan(oob_error(np.zeros((2, 2)), np.zeros(2, int), np.zeros(2, int), is_class=True))
    # numbers: sums 3 and 8 of 1 and 2 votes against 5 and 1
    assert oob_error(np.array([[3.0], [8.0]]), np.array([1, 2]), np.array([5.0, 1.0]), is_class=False) == 6.5


# --- rows without votes ---------------------------------------------------------------------------------------------


def test_rows_in_every_bag_are_nan_and_said_to_be(kind):
    X, y = make_table(60)
    with pytest.warns(UserWarning, match=r"(\d+) of 60 rows were in every bag") as seen:
        model = make(kind, n_estimators=2).fit(X, y)
    outside = is_outside(model, 60).any(axis=0)
    assert f" {np.count_nonzero(~outside)} of 60 rows" in str(seen[0].message)
    assert seen[0].filename == __file__  # the line of the caller
    said = model.oob_decision_function_[:, 0] if kind in CLASSIFIERS else model.oob_prediction_
    np.testing.assert_array_equal(np.isnan(said), ~outside)
    if kind in CLASSIFIERS:
        right = model.oob_decision_function_[outside].argmax(axis=1) == y[outside]
        assert model.oob_score_ == pytest.approx(np.mean(right))


def test_no_row_at_all_has_votes(kind):
    with pytest.warns(UserWarning, match="1 of 1 rows"):
        model = make(kind).fit([[1.0]], [1])
    assert math.isnan(model.oob_score_)
    assert np.isnan(model.oob_curve_).all()


def test_rows_of_weight_zero_do_not_count(kind):
    X, y = make_table()
    weight = (np.arange(120) % 4 > 0).astype(float)
    for settings in ({}, {"block_size": 3}):
        model = make(kind, **settings).fit(X, y, weight)
        said = model.oob_decision_function_[:, 0] if kind in CLASSIFIERS else model.oob_prediction_
        np.testing.assert_array_equal(np.isnan(said), weight == 0)
        wrong = np.where(weight == 0, 2 - y, y)
        other = make(kind, **settings).fit(X, wrong, weight)
        assert other.oob_score_ == model.oob_score_
        np.testing.assert_array_equal(other.oob_curve_, model.oob_curve_)


# --- scorers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_scorers_of_classifiers(kind):
    X, y = make_table(n_classes=2)
    labels = np.array(["no", "yes"])[y]
    shares = make(kind, min_samples_leaf=5).fit(X, labels).oob_decision_function_
    answers = np.array(["no", "yes"])[shares.argmax(axis=1)]
    for scorer, expected in (
        (True, accuracy_score(labels, answers)),
        ("accuracy", accuracy_score(labels, answers)),
        ("roc_auc", roc_auc_score(y, shares[:, 1])),
        ("neg_log_loss", -log_loss(y, shares)),
        (accuracy_score, accuracy_score(labels, answers)),
        (lambda truth, said: f1_score(truth, said, pos_label="yes"), f1_score(labels, answers, pos_label="yes")),
        (make_scorer(f1_score, pos_label="no"), f1_score(labels, answers, pos_label="no")),
        (make_scorer(roc_auc_score, response_method="predict_proba"), roc_auc_score(y, shares[:, 1])),
        (lambda model, rows, truth: np.mean(model.predict(rows) == truth), accuracy_score(labels, answers)),
        (lambda model, X, y=None: model.predict_proba(X)[:, 1].mean(), shares[:, 1].mean()),  # noqa: ARG005
    ):
        assert make(kind, min_samples_leaf=5, oob_score=scorer).fit(X, labels).oob_score_ == pytest.approx(expected)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor], ids=lambda kind: kind.__name__)
def test_scorers_of_regressors(kind):
    X, y = make_table()
    said = make(kind).fit(X, y).oob_prediction_
    for scorer, expected in (
        (True, r2_score(y, said)),
        ("r2", r2_score(y, said)),
        ("neg_mean_absolute_error", -mean_absolute_error(y, said)),
        (mean_absolute_error, mean_absolute_error(y, said)),
    ):
        assert make(kind, oob_score=scorer).fit(X, y).oob_score_ == pytest.approx(expected)


def test_a_scorer_that_does_not_exist_is_refused_before_growing(kind):
    X, y = make_table()
    with pytest.raises(
        ValueError, match=r"oob_score='acuracy' is not the name of a scorer; sklearn.metrics.get_scorer"
    ):
        make(kind, oob_score="acuracy").fit(X, y)
    with pytest.raises(TypeError, match=r"oob_score=.* must return one number, but gave dict"):
        make(kind, oob_score=lambda truth, said: {"size": len(truth), "same": truth is said}).fit(X, y)


# --- groups, strata, blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"bootstrap": "poisson"}, {"replace": False, "max_samples": 0.5}], ids=str)
def test_an_out_of_bag_row_has_no_relative_in_the_bag(kind, settings):
    X, y = make_table()
    groups = np.random.default_rng(1).integers(0, 25, 120)
    model = make(kind, **settings).fit(X, y, groups=[f"family {g}" for g in groups])
    counts = [np.bincount(rows, minlength=120) for rows in model.estimators_samples_]
    for count in counts:
        assert all(len(set(count[groups == g])) == 1 for g in np.unique(groups))  # drawn together
        assert set(groups[count > 0]).isdisjoint(groups[count == 0])
    np.testing.assert_array_equal(is_outside(model, 120), np.array(counts) == 0)
    if not settings:
        assert {np.bincount(groups[count > 0], minlength=25).astype(bool).sum() < 25 for count in counts} == {True}


def test_groups_show_what_relatives_would_hide():
    # every row has a twin: with plain bags the twin in the bag gives the answer away
    generator = np.random.default_rng(0)
    X = np.repeat(generator.normal(size=(100, 2)), 2, axis=0)
    y = np.repeat(generator.integers(0, 2, 100), 2)  # noise
    plain = make(RandomForestClassifier, n_estimators=60).fit(X, y)
    grouped = make(RandomForestClassifier, n_estimators=60).fit(X, y, groups=np.arange(200) // 2)
    assert plain.oob_score_ > 0.8
    assert grouped.oob_score_ < 0.65


def test_blocks_are_drawn_whole(kind):
    X, y = make_table(122)
    model = make(kind, block_size=10).fit(X, y)
    for rows in model.estimators_samples_:
        count = np.bincount(rows, minlength=122)
        for first in range(0, 122, 10):
            assert len(set(count[first : first + 10])) == 1  # the last block has two rows


def test_a_group_in_two_strata_is_named_by_its_rows(kind):
    X, y = make_table()
    names = np.where(np.arange(len(X)) % 2 == 0, "ann", "bob")
    strata = np.where((np.arange(len(X)) == 6) | (names == "bob"), "north", "south")
    with pytest.raises(ValueError, match=r"rows (0 and 6|6 and 0) are of one group"):
        make(kind).fit(X, y, groups=names, strata=strata)


def test_strata_are_drawn_in_proportion(kind):
    X, y = make_table()
    strata = np.repeat(["a", "b", "c"], [60, 40, 20])
    model = make(kind, max_samples=60).fit(X, y, strata=strata)
    for rows in model.estimators_samples_:
        assert np.unique(strata[rows], return_counts=True)[1].tolist() == [30, 20, 10]


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_draws_by_class(kind):
    X, _ = make_table()
    y = np.repeat([0, 1, 2], [80, 30, 10])
    for rows in make(kind, stratify="class").fit(X, y).estimators_samples_:
        assert np.bincount(y[rows]).tolist() == [80, 30, 10]
    for rows in make(kind, stratify="balanced").fit(X, y).estimators_samples_:
        assert np.bincount(y[rows]).tolist() == [10, 10, 10]


# --- one row, tree by tree ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_vote_table_of_classes(kind, voting):
    X, y = make_table()
    model = make(kind, voting=voting, min_samples_leaf=4).fit(X, np.array(["low", "mid", "top"])[y])
    table = model.vote_table(X[3])
    trees = model.estimators_
    assert table.prediction.tolist() == [tree.predict(X[3:4])[0] for tree in trees]
    assert table.leaf.tolist() == [tree.apply(X[3:4])[0] for tree in trees] == model.apply(X[3:4])[0].tolist()
    assert table.votes.tolist() == [np.count_nonzero(table.prediction == label) for label in model.classes_]
    assert len(table) == table.votes.sum() == 40
    np.testing.assert_allclose(table.mean, model.predict_proba(X[3:4])[0], rtol=1e-12)
    np.testing.assert_allclose(
        table.sd, np.std([ask(t, X[3:4], is_hard=voting == "hard")[0] for t in trees], axis=0, ddof=1)
    )
    frame = table.to_frame()
    assert frame.columns.tolist() == ["tree", "leaf", "class", "share"]
    assert frame["class"].tolist() == table.prediction.tolist()
    if voting == "soft":
        np.testing.assert_allclose(frame["share"], [tree.predict_proba(X[3:4]).max() for tree in trees])
    lines = str(table).splitlines()
    assert lines[0] == "40 trees"
    assert lines[1].split() == ["class", "votes", "share"]
    assert lines[2].split() == ["low", str(table.votes[0]), f"{table.mean[0]:.3f}"]


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor], ids=lambda kind: kind.__name__)
def test_vote_table_of_numbers(kind):
    X, y = make_table()
    model = make(kind, min_samples_leaf=4).fit(X, y)
    table = model.vote_table(X[3].tolist())
    said = [tree.predict(X[3:4])[0] for tree in model.estimators_]
    assert table.prediction.tolist() == said
    assert table.mean == pytest.approx(model.predict(X[3:4])[0])
    assert table.sd == pytest.approx(np.std(said, ddof=1))
    assert table.to_frame()["value"].tolist() == said
    assert str(table).splitlines()[1].split() == ["mean", f"{table.mean:.6g}"]
    with pytest.raises(AttributeError, match="no votes"):
        _ = table.votes
    assert math.isnan(make(kind, n_estimators=1, oob_score=False).fit(X, y).vote_table(X[0]).sd)


def test_vote_table_takes_one_row_in_any_form(kind):
    X, y = make_table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.array(["u", "v"])[y % 2])
    model = make(kind).fit(frame, y)
    expected = model.vote_table(frame.iloc[[5]]).leaf.tolist()
    as_dict = frame.iloc[5].to_dict()
    for row in (frame.iloc[5], frame.iloc[5].tolist(), as_dict, dict(reversed(as_dict.items())), [as_dict]):
        assert model.vote_table(row).leaf.tolist() == expected
    with pytest.raises(ValueError, match="row has 2 rows: give one"):
        model.vote_table(frame.iloc[:2])
    with pytest.raises(ValueError, match="row has 2 values; the model was fitted on 3 features"):
        make(kind).fit(X, y).vote_table([1.0, 2.0])


def test_vote_table_without_pandas(kind, monkeypatch):
    X, y = make_table()
    votes = make(kind).fit(X, y).vote_table(X[0])
    pa.table({"a": [1]}).to_pandas()  # pyarrow looks for pandas once
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = votes.to_frame()
    assert table.num_rows == 40
    assert table.column_names[:2] == ["tree", "leaf"]


# --- why forests work -----------------------------------------------------------------------------------------------


def test_decompose_is_the_decomposition_of_the_trees(kind):
    X, y = make_table(n_classes=2)
    new, truth = make_table(n_classes=2, seed=1)
    model = make(kind, min_samples_leaf=3).fit(X, y)
    said = np.array([ask(tree, new)[:, -1] for tree in model.estimators_])
    variance, expected = model.decompose(new), decompose_variance(said)
    assert variance.ensemble_variance == pytest.approx(expected.ensemble_variance)
    assert variance.rho == pytest.approx(expected.rho)
    answer = model.predict_proba(new)[:, 1] if kind in CLASSIFIERS else model.predict(new)
    assert variance.ensemble_variance == pytest.approx(np.var(answer))
    error, expected = model.decompose(new, truth), decompose_error(said, truth)
    assert (
        error.ensemble_error == pytest.approx(expected.ensemble_error) == pytest.approx(np.mean((answer - truth) ** 2))
    )
    assert error.member_error > error.ensemble_error
    assert error.rho == pytest.approx(decompose_variance(said, truth).rho)
    errors = np.corrcoef(said - truth)
    assert error.rho == pytest.approx(errors[np.triu_indices(len(said), 1)].mean(), abs=0.05)
    assert "covariance of two members            not defined for one training set" in str(error)
    if kind in CLASSIFIERS:
        hard = model.set_params(voting="hard")
        assert hard.decompose(new).ensemble_variance == pytest.approx(np.var(hard.predict_proba(new)[:, 1]))


def test_decompose_asks_for_a_class(kind):
    X, y = make_table()
    labels = np.array(["low", "mid", "top"])[y] if kind in CLASSIFIERS else y
    model = make(kind).fit(X, labels)
    if kind in CLASSIFIERS:
        with pytest.raises(
            ValueError, match=r"label must say which of the 3 classes is meant: \['low', 'mid', 'top'\]"
        ):
            model.decompose(X)
        with pytest.raises(ValueError, match="label='high' is not among the classes"):
            model.decompose(X, label="high")
        with pytest.raises(ValueError, match="y holds the class 'Top', which was not among the classes in fit"):
            model.decompose(X, np.where(labels == "top", "Top", labels), label="top")
        error = model.decompose(X, labels, label="top").ensemble_error
        assert error == pytest.approx(np.mean((model.predict_proba(X)[:, 2] - (labels == "top")) ** 2))
    else:
        with pytest.raises(ValueError, match="label='top' names a class, but this forest predicts numbers"):
            model.decompose(X, label="top")


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_strength_by_out_of_bag_votes(kind):
    X, y = make_table()
    labels = np.array(["low", "mid", "top"])[y]
    model = make(kind, voting="hard").fit(X, labels)
    votes = np.array([np.searchsorted(model.classes_, tree.predict(X)) for tree in model.estimators_])
    expected = strength_and_correlation(votes, y, is_outside(model, len(X)))
    found = model.strength(X, labels)
    assert found.strength == expected.strength
    assert found.correlation == expected.correlation
    assert found.error == pytest.approx(1.0 - model.oob_score_)
    for other in ((X[::-1], labels), (X, labels[::-1]), (X[:-1], labels[:-1])):
        with pytest.raises(ValueError, match="X and y are not the training data"):
            model.strength(*other)
    with pytest.raises(ValueError, match="strength is measured on out-of-bag rows"):
        make(kind, bootstrap=False, oob_score=False).fit(X, labels).strength(X, labels)


def test_scores_of_trees_pruned_on_the_same_rows_are_called_too_good(kind):
    X, y = make_table()
    with pytest.warns(UserWarning, match="oob_score_ is too good"):
        make(kind, pruning="oob", oob_score=True, bootstrap=True).fit(X, y)
