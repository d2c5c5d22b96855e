"""Boosting with one tree a round: several outputs, and many classes; XGBoost's, files, warm starts, what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import log_loss, r2_score
from sklearn.utils.estimator_checks import check_regressor_multioutput

import plain_reader
import spinney
from plain_boosting import plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.tree.broken import BrokenTreeError

PLAIN = {
    "n_estimators": 6, "learning_rate": 0.3, "subsample": 1.0, "max_features": None, "max_leaf_nodes": 8,
    "min_samples_leaf": 3, "reg_lambda": 1.0, "random_state": 0,
}  # fmt: skip


def make_table(seed=0, n_rows=150):
    """Numbers with holes, a category of seven levels, and three targets of different scales."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X.loc[rng.random(n_rows) < 0.1, "b"] = np.nan
    X["k"] = pd.Categorical(rng.choice(list("tuvwxyz"), n_rows))
    level = X["k"].cat.codes.to_numpy()
    noise = rng.normal(size=(n_rows, 3))
    Y = np.stack([X["a"] + (level % 3), 5.0 * np.nan_to_num(X["b"], nan=1.0), X["a"] * X["c"]], axis=1) + 0.3 * noise
    return X, Y


def regressor(**more):
    return GradientBoostingRegressor(**{**PLAIN, **more})


def classifier(**more):
    return GradientBoostingClassifier(**{**PLAIN, "multi_strategy": "one_tree", **more})


def classes_of(Y, n_classes=4):
    return np.argsort(np.argsort(Y[:, 0])) * n_classes // len(Y)


# ------------------------------------------------------------------------------------------------ several outputs


OPTIONS = [
    {}, {"reg_alpha": 0.5}, {"min_weight_fraction_leaf": 0.1}, {"max_leaf_nodes": None, "max_depth": 3},
    {"subsample": 0.6}, {"max_features": 2}, {"max_features_per_tree": 2}, {"pruning": "post"}, {"newton": False},
    {"max_bins": None}, {"min_child_weight": 9.0}, {"interaction_cst": "no_interactions"},
    {"sampling": "gradient", "subsample": 0.5},
    {"max_bins": 4, "cat_penalty": 0.0, "cat_smooth": 1.0}, {"max_cat_threshold": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_column_twice_is_one_column(options, is_weighted):
    """Gains double, and nothing else changes: to the bit, whatever the options."""
    X, Y = make_table()
    weight = np.random.default_rng(1).integers(1, 4, len(Y)) if is_weighted else None
    one = regressor(**options).fit(X, Y[:, 0], weight)
    two = regressor(**options).fit(X, Y[:, [0, 0]], weight)
    np.testing.assert_array_equal(two.predict(X), np.stack([one.predict(X)] * 2, axis=1))
    np.testing.assert_array_equal(two.feature_importances_, one.feature_importances_)
    assert two.n_outputs_ == 2
    assert two.n_trees_per_iteration_ == 1
    assert len(two.forest_) == two.n_estimators_ == 6


def test_outputs_share_trees_and_each_has_its_own_leaves():
    """A tree of one leaf for each row: every output has its own targets back, which one tree alone tells apart."""
    X, Y = np.arange(8.0)[:, None], np.random.default_rng(0).normal(size=(8, 3))
    model = regressor(n_estimators=1, learning_rate=1.0, reg_lambda=0.0, min_samples_leaf=1).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-12)
    assert model.score(X, Y) == pytest.approx(1.0)


def test_rows_in_another_order_and_weights_as_copies():
    X, Y = make_table(2)
    weight = np.arange(len(Y)) % 3
    copies = np.repeat(np.arange(len(Y)), weight)
    order = np.random.default_rng(0).permutation(len(copies))
    options = {"min_samples_leaf": 1}  # which counts rows
    expected = regressor(**options).fit(X, Y, weight).predict(X)
    again = regressor(**options).fit(X.iloc[copies[order]], Y[copies[order]])
    np.testing.assert_array_equal(again.predict(X), expected)
    y, weights = classes_of(Y), weight.astype(float)
    expected = classifier(**options).fit(X, y, weights).predict_proba(X)
    np.testing.assert_array_equal(classifier(**options).fit(X.iloc[copies], y[copies]).predict_proba(X), expected)


@pytest.mark.compiled(reason="a table that is worth sharing out")
def test_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 6))
    Y = np.stack([X[:, 0] * X[:, 1], X[:, 2] + rng.normal(size=len(X))], axis=1)
    one, *others = (regressor(n_estimators=3, max_leaf_nodes=15, n_jobs=n).fit(X, Y).predict(X) for n in (1, 2, 8))
    for other in others:
        np.testing.assert_array_equal(other, one)


def test_losses_are_means_over_outputs_and_stages_end_in_predictions():
    X, Y = make_table(3)
    train, rest = slice(0, 100), slice(100, None)
    model = regressor().fit(X[train], Y[train], X_val=X[rest], y_val=Y[rest])
    half_errors = ((model.predict(X) - Y) ** 2).mean(axis=1) / 2
    assert model.train_score_[-1] == pytest.approx(half_errors[train].mean())
    assert model.validation_score_[-1] == pytest.approx(half_errors[rest].mean())
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, model.predict(X))
    np.testing.assert_array_equal(model.predict(X, n_rounds=6), last)
    assert model.apply(X).shape == (len(X), 6)
    assert model.estimators_.shape == (6, 1)
    sums = model.init_ + sum(tree.predict(X) for tree in model.estimators_[:, 0])
    np.testing.assert_allclose(sums, last, rtol=1e-12)


def test_early_stopping_and_scores_of_several_outputs():
    X, Y = make_table(4)
    stopped = regressor(n_estimators=200, n_iter_no_change=3).fit(X, Y)
    assert stopped.best_iteration_ < stopped.n_estimators_ < 200
    scored = regressor(n_iter_no_change=3, scoring="r2").fit(X[:100], Y[:100], X_val=X[100:], y_val=Y[100:])
    assert scored.validation_score_[-1] == pytest.approx(
        r2_score(Y[100:], scored.predict(X[100:], n_rounds=scored.n_iter_))
    )
    with pytest.raises(ValueError, match="y has 2 columns here, and 3 in the rows to learn from"):
        regressor().fit(X, Y, X_val=X, y_val=Y[:, :2])


def test_scores_that_rows_bring_along():
    X, Y = make_table(5)
    offset = np.random.default_rng(0).normal(size=Y.shape)
    model = regressor().fit(X, Y, init_score=offset)
    other = regressor().fit(X, Y - offset)
    np.testing.assert_allclose(model.predict(X, init_score=offset), other.predict(X) + offset, atol=1e-9)


def test_targets_near_the_ends_of_the_numbers():
    X, Y = make_table(6)
    for scale in (2.0**900, 2.0**-900):
        np.testing.assert_allclose(regressor().fit(X, Y * scale).predict(X), regressor().fit(X, Y).predict(X) * scale)


def test_frames_sparse_tables_and_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < 0.4)
    Y = np.stack([X[:, 0] - X[:, 1], X[:, 2]], axis=1)
    expected = regressor().fit(X, Y).predict(X)
    np.testing.assert_array_equal(regressor().fit(csr_array(X), pd.DataFrame(Y)).predict(csr_array(X)), expected)
    check_regressor_multioutput("GradientBoostingRegressor", regressor())


# -------------------------------------------------------------------------------------------------------- classes


def test_one_tree_for_all_classes():
    X, Y = make_table(7, 400)
    y = np.array(["p", "q", "r", "s"])[classes_of(Y)]
    model = classifier(n_estimators=30).fit(X, y)
    assert len(model.forest_) == 30
    assert model.n_trees_per_iteration_ == 1
    assert model.train_score_[-1] == pytest.approx(log_loss(y, model.predict_proba(X)))
    assert model.train_score_[-1] < 0.5 * model.train_score_[0]
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))
    two = classifier().fit(X, y == "p")  # of two classes there is one score, and a tree for it
    other = GradientBoostingClassifier(**PLAIN).fit(X, y == "p")
    np.testing.assert_array_equal(two.predict_proba(X), other.predict_proba(X))


def test_class_weights_and_callbacks_and_deadlines():
    X, Y = make_table(8)
    y = classes_of(Y)
    seen = []
    model = classifier(class_weight={0: 2.0}).fit(X, y, callbacks=[lambda i, _: bool(seen.append(i)) or i == 3])
    assert seen == [1, 2, 3]
    other = classifier(n_estimators=3).fit(X, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("is_class", [False, True])
def test_losses_are_those_of_xgboost(is_class):
    """Its trees of vectors, at matched settings; sums are float32 there, and softmax has h = 2 p (1 - p) as well."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.integers(-7, 8, size=(500, 5)) / 4.0  # every value is a bin
    Y = np.stack([X[:, 0] * X[:, 1] + X[:, 2], np.sin(2 * X[:, 3]), X[:, 4] - X[:, 0]], axis=1)
    Y += 0.1 * rng.normal(size=Y.shape)
    y = Y.argmax(axis=1) if is_class else Y
    common = {
        "n_estimators": 10, "learning_rate": 0.3, "max_depth": 4, "reg_lambda": 1.0, "max_bin": 256,
        "min_child_weight": 0.0, "tree_method": "hist", "multi_strategy": "multi_output_tree", "n_jobs": 1,
    }  # fmt: skip
    options = {
        **PLAIN,
        "n_estimators": 10,
        "max_leaf_nodes": None,
        "max_depth": 4,
        "min_samples_leaf": 1,
        "max_bins": None,
    }
    if is_class:
        peer = xgboost.XGBClassifier(base_score=0.5, **common).fit(X, y)
        ours = GradientBoostingClassifier(multi_strategy="one_tree", init="zero", **options).fit(X, y)
        theirs, mine = log_loss(y, peer.predict_proba(X)), log_loss(y, ours.predict_proba(X))
    else:
        peer = xgboost.XGBRegressor(base_score=0.0, **common).fit(X, y)
        ours = GradientBoostingRegressor(init="zero", **options).fit(X, y)
        theirs, mine = (((model.predict(X) - Y) ** 2).mean() for model in (peer, ours))
    assert mine == pytest.approx(theirs, rel=1e-3)


# ----------------------------------------------------------------------------------------------- files and the rest


@pytest.mark.parametrize("is_class", [False, True])
def test_files_pickles_and_predictors(is_class, tmp_path):
    X, Y = make_table(9)
    model = classifier().fit(X, classes_of(Y)) if is_class else regressor().fit(X, Y)
    ask = model.predict_proba if is_class else model.predict
    expected = ask(X)
    model.save_model(tmp_path / "m.spn")
    again, predictor = spinney.load_model(tmp_path / "m.spn"), spinney.load_predictor(tmp_path / "m.spn")
    assert again.n_outputs_ == model.n_outputs_ == (1 if is_class else 3)
    values = predictor.encode(X)
    copy = pickle.loads(pickle.dumps(model))
    for found in (
        again.predict_proba(X) if is_class else again.predict(X),
        copy.predict_proba(X) if is_class else copy.predict(X),
        predictor.predict_proba(X) if is_class else predictor.predict(X),
        predictor(values),
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(predictor(values[5]), expected[5])
    plain = plain_reader.File(tmp_path / "m.spn").predictor
    said = [plain_reader.answer(plain, row) for row in values[:20].tolist()]
    np.testing.assert_allclose(said, expected[:20], rtol=1e-12)
    assert predictor.n_numbers == (1 if is_class else 3)
    assert predictor.predict_trees(X).shape == (6, len(X), expected.shape[1])
    np.testing.assert_array_equal(predictor.feature_importances, model.feature_importances_)


def test_leaves_that_do_not_fit_the_scores_are_refused():
    """A damaged file must not lead a kernel beside the answers of a leaf."""
    X, Y = make_table(15)
    predictor = regressor().fit(X, Y).predictor()
    predictor.check()
    forest = predictor.forest
    broken = [
        {"start": np.zeros(2)}, {"start": np.zeros(4)}, {"start": np.zeros(1), "link": "identity"},
        {"forest": replace(forest, answers=forest.answers[:, :2])}, {"n_rounds": 7},
        {"forest": replace(forest, widths=np.array([1, 1, 1]))},
    ]  # fmt: skip
    for parts in broken:
        with pytest.raises(BrokenTreeError):
            replace(predictor, **parts).check()
    with pytest.raises(BrokenTreeError):
        replace(forest, answers=forest.answers[:-1]).check()


@pytest.mark.parametrize("is_class", [False, True])
def test_rounds_go_on_where_they_ended(is_class, tmp_path):
    X, Y = make_table(10)
    y = classes_of(Y) if is_class else Y
    make = classifier if is_class else regressor
    whole = make(n_estimators=6, subsample=0.7).fit(X, y)
    warm = make(n_estimators=3, subsample=0.7, warm_start=True).fit(X, y)
    warm.set_params(n_estimators=6).fit(X, y)
    np.testing.assert_array_equal(warm.forest_.answers, whole.forest_.answers)
    np.testing.assert_array_equal(warm.train_score_, whole.train_score_)

    def cut_short(i, _):
        if i == 4:
            raise KeyboardInterrupt

    kept = make(n_estimators=6, subsample=0.7, checkpoint=tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        kept.fit(X, y, callbacks=[cut_short])
    kept.fit(X, y)
    np.testing.assert_array_equal(kept.forest_.answers, whole.forest_.answers)


def test_a_warm_start_keeps_its_kind_of_trees():
    X, Y = make_table(11)
    model = classifier(warm_start=True).fit(X, classes_of(Y))
    model.set_params(multi_strategy="one_tree_per_class", n_estimators=9)
    with pytest.raises(ValueError, match=r"warm_start adds .* it is 'log_loss', and was 'log_loss' of \d scores by"):
        model.fit(X, classes_of(Y))
    numbers = regressor(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"warm_start adds rounds.* of 2 scores by one tree, and was .* of 3 scores"):
        numbers.set_params(n_estimators=9).fit(X, Y[:, :2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "absolute_error"}, "loss='absolute_error' takes one output, and y has 3 columns"),
        ({"loss": "quantile"}, "loss='quantile' takes one output"),
        ({"loss": "huber"}, "loss='huber' takes one output"),
        ({"monotonic_cst": {"a": 1}}, "monotonic_cst takes one output"),
        ({"drop_rate": 0.1}, "drop_rate takes one output"),
        ({"candidates": "hessian"}, "candidates='hessian' takes one output"),
        ({"init": GradientBoostingRegressor()}, "init=estimator takes one output"),
    ],
    ids=str,
)
def test_what_takes_one_output_says_so(options, words):
    X, Y = make_table(12)
    with pytest.raises(ValueError, match=words):
        regressor(**options).fit(X, Y)


@pytest.mark.parametrize("options", [{"drop_rate": 0.1}, {"candidates": "hessian"}])
def test_what_one_tree_for_all_classes_does_without(options):
    X, Y = make_table(13)
    with pytest.raises(ValueError, match=f"does without {next(iter(options))}.*multi_strategy='one_tree_per_class'"):
        classifier(**options).fit(X, classes_of(Y))
    with pytest.raises(ValueError, match="multi_strategy"):
        classifier(multi_strategy="multi_output_tree").fit(X, classes_of(Y))


READS = {
    "shap": lambda model, X: model.shap_values(X),
    "export": lambda model, _: spinney.export(model, to="json"),
    "picture": lambda model, _: model.forest_[0].to_svg(),
    "rules": lambda model, _: model.forest_[0].to_rules(),
}


@pytest.mark.parametrize("what", READS)
def test_what_reads_trees_of_one_output_says_so(what):
    X, Y = make_table(14)
    model = classifier().fit(X, classes_of(Y))
    with pytest.raises(ValueError, match=r"not there for several outputs.*multi_strategy='one_tree_per_class'"):
        READS[what](model, X)
    assert model.forest_[0].to_text().startswith("[")


@pytest.mark.parametrize("is_classes", [False, True])
@pytest.mark.parametrize("weighs", [False, True])
def test_leaves_of_all_rows_are_newtons_steps_of_all_rows(is_classes, weighs):
    """With `leaf_rows="all"` the drawn rows choose the tests, and every row has its say in the leaves."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(240, 3))
    numbers = np.c_[X[:, 0] + 0.2 * rng.normal(size=240), X[:, 1] ** 2, -X[:, 0]]
    y = numbers.argmax(axis=1) if is_classes else numbers
    weight = rng.integers(1, 4, 240).astype(float) if weighs else np.ones(240)
    shared = {"n_estimators": 3, "learning_rate": 0.3, "max_leaf_nodes": 6, "subsample": 0.5, "random_state": 0}
    cls, more = (
        (GradientBoostingClassifier, {"multi_strategy": "one_tree"}) if is_classes else (GradientBoostingRegressor, {})
    )
    model = cls(**plain(**shared, **more, reg_lambda=1.0, leaf_rows="all")).fit(X, y, weight)
    bag = cls(**plain(**shared, **more, reg_lambda=1.0, leaf_rows="bag")).fit(X, y, weight)
    raw = np.tile(model.init_, (240, 1))
    leaves = model.apply(X).reshape(240, -1)
    factor = 2.0 if is_classes else 1.0  # of the second derivatives of three classes or more
    for t, tree in enumerate(model.forest_):
        if is_classes:
            p = np.exp(raw - raw.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            g, h = p - np.eye(3)[y], factor * p * (1.0 - p)
        else:
            g, h = raw - y, np.ones_like(y)
        for leaf in np.unique(leaves[:, t]):
            at = leaves[:, t] == leaf
            step = -0.3 * (weight[at] @ g[at]) / (weight[at] @ h[at] + 1.0)
            np.testing.assert_allclose(tree.answers[leaf], step, rtol=1e-6, atol=1e-9)
        raw += tree.answers[leaves[:, t]]
    np.testing.assert_array_equal(model.forest_[0].test, bag.forest_[0].test)  # the same rows chose
    assert not np.allclose(model.forest_[0].answers, bag.forest_[0].answers)
