"""Importances of fitted forests against loops over their trees, and the selector against the importances."""

import doctest
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import make_pipeline

from contract import parametrize_with_contract
from spinney import ExtraTreesRegressor, OOBSelector, RandomForestClassifier, RandomForestRegressor, _jit
from spinney.estimators import base_forest, oob_selector
from spinney.estimators.checks import draw_seed
from spinney.model.permutation import LeftOut, Trial


def test_the_examples_of_the_docstrings_are_true():
    for module, fewest in ((oob_selector, 4), (base_forest, 10)):
        done = doctest.testmod(module)
        assert done.attempted > fewest
        assert done.failed == 0


def mixed_frame(n_rows=160, seed=0):
    draw = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": draw.normal(size=n_rows),
            "age": draw.integers(0, 30, n_rows).astype(float),
            "town": pd.Categorical.from_codes(draw.integers(0, 4, n_rows), ["a", "b", "c", "d"]),
            "noise": draw.normal(size=n_rows),
        }
    )
    y = X["size"] + X["age"] / 10 + X["town"].cat.codes % 2 + draw.normal(scale=0.3, size=n_rows)
    X.loc[draw.random(n_rows) < 0.1, "age"] = np.nan
    return X, y.to_numpy()


def regression(**params):
    X, y = mixed_frame()
    return RandomForestRegressor(**{"n_estimators": 12, "random_state": 3, **params}).fit(X, y), X, y


def classification(**params):
    X, y = mixed_frame()
    y = np.array(["low", "mid", "high"])[np.digitize(y, [1.0, 2.0])]
    return RandomForestClassifier(**{"n_estimators": 12, "random_state": 3, **params}).fit(X, y), X, y


# --- Permutation --------------------------------------------------------------------------------------------


def naive_permutation(forest, X, y, units, n_repeats=1, seed=None):
    """A loop over the trees with permuted copies of their out-of-bag rows; only the permutations are shared."""
    values, truth = forest._training_values(X, y)
    seed = forest._seed if seed is None else seed
    trial = Trial(forest.forest_, values, truth, tuple(map(np.array, units)), seed)
    rises = []
    for t, (tree, bag) in enumerate(zip(forest.estimators_, forest.estimators_samples_, strict=True)):
        rows = np.setdiff1d(np.arange(len(y)), bag)
        left_out = LeftOut(trial, t, rows.astype(np.int32), _jit.load_compiled())

        def error(X, tree=tree, y=y[rows]):
            said = tree.predict(X)
            return np.mean(said != y) if y.dtype.kind == "U" else np.mean((said - y) ** 2)

        before = error(X.iloc[rows])
        rise = np.zeros(len(units))
        for u, features in enumerate(units):
            for repeat in range(n_repeats):
                permuted = X.iloc[rows].copy()
                source = rows[left_out.draw_sources(u, repeat)]
                for j in features:
                    permuted.isetitem(j, X.iloc[source, j].array)
                rise[u] += (error(permuted) - before) / n_repeats
        rises.append(rise)
    return np.mean(rises, axis=0), np.std(rises, axis=0, ddof=1) / np.sqrt(len(rises))


@pytest.mark.parametrize("fit", [regression, classification])
@pytest.mark.parametrize("options", [{}, {"n_repeats": 2, "random_state": 7}])
def test_permutation_equals_a_loop_over_the_trees(fit, options):
    forest, X, y = fit()
    found = forest.importance("permutation", X, y, **options)
    seed = draw_seed(7) if options else None
    mean, error = naive_permutation(forest, X, y, [[0], [1], [2], [3]], options.get("n_repeats", 1), seed)
    assert found.feature == ("size", "age", "town", "noise")
    assert found.kind == "permutation"
    np.testing.assert_allclose(found.importance, mean, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.std_error, error, rtol=1e-10, atol=1e-14)


def test_groups_are_permuted_as_one():
    forest, X, y = classification()
    groups = {"both": ["size", "town"], 7: [1], "again": ["town"], "all": range(4)}
    found = forest.importance("permutation", X, y, groups=groups)
    mean, error = naive_permutation(forest, X, y, [[0, 2], [1], [2], [0, 1, 2, 3]])
    assert found.feature == ("both", "7", "again", "all")
    np.testing.assert_allclose(found.importance, mean, rtol=1e-10)
    np.testing.assert_allclose(found.std_error, error, rtol=1e-10)
    single = forest.importance("permutation", X, y).importance
    assert found.importance[1:3].tolist() == single[1:3].tolist()


@pytest.mark.parametrize("kind", ["permutation", "conditional", "impurity_oob"])
def test_threads_change_no_bit_and_the_seed_does(kind):
    forest, X, y = regression()
    found = [forest.set_params(n_jobs=n).importance(kind, X, y) for n in (1, 2, 8)]
    assert len({table.importance.tobytes() + table.std_error.tobytes() for table in found}) == 1
    other = forest.importance(kind, X, y, random_state=5)
    assert (other.importance.tobytes() == found[0].importance.tobytes()) == (kind == "impurity_oob")


def test_scorers_measure_what_the_error_does():
    forest, X, y = classification()
    expected = forest.importance("permutation", X, y)
    scorers = "accuracy", accuracy_score, make_scorer(accuracy_score), lambda m, X, y: np.mean(m.predict(X) == y)
    for scoring in scorers:
        found = forest.importance("permutation", X, y, scoring=scoring)
        np.testing.assert_allclose(found.importance, expected.importance, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(found.std_error, expected.std_error, rtol=1e-9)
    assert np.all(forest.importance("permutation", X, y, scoring="neg_brier_score").importance[:3] > 0)
    forest, X, y = regression()
    expected = forest.importance("permutation", X, y).importance
    found = forest.importance("permutation", X, y, scoring="neg_mean_squared_error").importance
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_rows_of_no_weight_count_for_nothing():
    X, y = mixed_frame(120)
    weight = np.ones(120)
    weight[::3] = 0.0
    wild = np.where(weight > 0, y, -y)
    forest = RandomForestRegressor(n_estimators=5, random_state=0)
    calm = forest.fit(X, y, weight).importance("permutation", X, y).importance
    found = forest.fit(X, wild, weight).importance("permutation", X, wild).importance
    np.testing.assert_allclose(found, calm, rtol=1e-9)


# --- Impurity -----------------------------------------------------------------------------------------------


def test_impurity_is_that_of_the_attribute_with_the_spread_of_the_trees():
    forest, X, y = regression(max_features=1)
    table = forest.importance()
    np.testing.assert_allclose(table.importance, forest.feature_importances_, rtol=1e-12)
    by_tree = np.array([tree.feature_importances_ for tree in forest.estimators_])
    np.testing.assert_allclose(table.std_error, by_tree.std(axis=0, ddof=1) / np.sqrt(12), rtol=1e-12)
    grouped = forest.importance(groups={"a": ["size", "noise"], "b": ["age", "town"]})
    assert grouped.importance.sum() == pytest.approx(1.0)
    assert grouped.importance[0] == pytest.approx(table.importance[[0, 3]].sum())
    unbiased = forest.importance("impurity_oob", X, y)
    assert forest.importance("impurity_oob", X, y, groups={"a": [0, 3]}).importance[0] == pytest.approx(
        unbiased.importance[[0, 3]].sum()
    )


@pytest.mark.parametrize("is_class", [True, False])
def test_unbiased_impurity_of_noise_is_zero_within_two_standard_errors(is_class):
    tables = []
    for seed in range(25):
        draw = np.random.default_rng(seed)
        X = np.column_stack([draw.integers(0, 2, 100), draw.normal(size=100), draw.integers(0, 40, 100)]).astype(float)
        y = X[:, 0] + draw.normal(size=100) + 10
        if is_class:
            y = (y > 10.5).astype(int)
        forest = (RandomForestClassifier if is_class else RandomForestRegressor)(
            n_estimators=12, max_features=1, random_state=seed, n_jobs=1
        ).fit(X, y)
        tables.append([forest.importance(kind, X, y).importance for kind in ("impurity_oob", "permutation")])
        assert forest.importance().importance[1:].min() > 0.2  # what the bias is: noise above the feature that matters
    mean = np.mean(tables, axis=0)
    error = np.std(tables, axis=0, ddof=1) / np.sqrt(len(tables))
    assert np.all(np.abs(mean[:, 1:]) < 2 * error[:, 1:])
    assert np.all(mean[:, 0] > 5 * error[:, 0])


# --- Conditional --------------------------------------------------------------------------------------------


def correlated(n_rows=400, seed=1):
    """y depends on x0 and x2; x1 is x0 with noise."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n_rows, 3))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    return X, X[:, 0] + 0.5 * X[:, 2] + 0.3 * draw.normal(size=n_rows)


def test_conditional_permutation_sees_through_a_copy_with_noise():
    X, y = correlated()
    forest = RandomForestRegressor(n_estimators=40, max_features=1, random_state=0).fit(X, y)
    marginal, conditional = (forest.importance(kind, X, y) for kind in ("permutation", "conditional"))
    assert marginal.importance[1] > 0.3
    assert marginal.importance[1] > 5 * marginal.std_error[1]
    assert abs(conditional.importance[1]) < 0.02
    assert conditional.importance[0] > 0.05
    assert conditional.importance[0] > 5 * conditional.importance[1]
    assert conditional.importance[2] == marginal.importance[2]  # correlated with nothing: permuted among all rows
    assert forest.importance("conditional", X, y, threshold=1.0).importance.tolist() == marginal.importance.tolist()


def test_conditional_permutation_takes_categories_and_groups():
    draw = np.random.default_rng(0)
    town = draw.choice(["a", "b", "c"], 200)
    copy = np.where(draw.random(200) < 0.85, town, "a")
    X = pd.DataFrame({"town": town, "size": draw.normal(size=200), "copy": copy})
    y = np.where(town == "b", 1.0, 0.0) + 0.3 * draw.normal(size=200)
    forest = RandomForestRegressor(n_estimators=20, max_features=1, random_state=0).fit(X, y)
    groups = {"copy": ["copy"], "both": ["town", "copy"]}
    marginal, conditional = (
        forest.importance(kind, X, y, groups=groups).importance for kind in ("permutation", "conditional")
    )
    assert marginal[0] > 0.05
    assert abs(conditional[0]) < 0.02
    assert conditional[1] == marginal[1] > 0.3


# --- The warning --------------------------------------------------------------------------------------------


def noisy(seed=0):
    draw = np.random.default_rng(seed)
    X = pd.DataFrame({"flag": draw.integers(0, 2, 150), "half": draw.integers(0, 2, 150), "id": draw.permutation(150)})
    return X, X["flag"] + 0.5 * X["half"] + 0.5 * draw.normal(size=150)


def test_noise_that_impurity_ranks_high_is_named():
    X, y = noisy()
    forest = RandomForestRegressor(n_estimators=30, random_state=0).fit(X, y)
    assert forest.importance().sorted().feature[1] == "id"
    with pytest.warns(UserWarning, match=r"'id' \(150 distinct values\) is number 2 of 3 by impurity"):
        table = forest.importance("impurity", X, y)
    assert table.importance.tolist() == forest.importance().importance.tolist()
    with pytest.warns(UserWarning, match=r"'id'.*Either it is noise.*or correlated columns carry the same"):
        assert forest.check_importance(X, y) == ("id",)
    confirmed = forest.importance("impurity_oob", X, y)
    assert confirmed.importance[2] < 2.0 * confirmed.std_error[2]  # as the warning says of noise


def test_a_forest_without_such_columns_is_not_warned_of():
    X, y = noisy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest = RandomForestRegressor(n_estimators=30, random_state=0).fit(X[["flag", "half"]], y)
        assert forest.check_importance(X[["flag", "half"]], y) == ()
        ExtraTreesRegressor(n_estimators=5, random_state=0).fit(X, y).importance("impurity", X, y)  # has no bags


# --- Refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "gain"}, ValueError, "kind must be one of 'impurity', 'impurity_oob'"),
        ({"kind": "permutation", "n_repeats": 0}, ValueError, "n_repeats must be a whole number of at least 1"),
        ({"kind": "permutation", "n_repeats": True}, ValueError, "n_repeats"),
        ({"kind": "impurity", "scoring": "accuracy"}, ValueError, "scoring is for permutations"),
        ({"kind": "permutation", "scoring": 3}, TypeError, "name of a scorer or a function"),
        ({"kind": "permutation", "scoring": "acuracy"}, ValueError, "scoring='acuracy' is not the name of a scorer"),
        ({"kind": "permutation", "scoring": lambda y, said: (y, said)}, TypeError, "must return one number"),
        ({"kind": "impurity", "y": None}, ValueError, "both X and y are given: pass the other as well, or neither"),
        ({"kind": "impurity", "X": None}, ValueError, "both X and y are given: pass the other as well, or neither"),
        ({"kind": "conditional", "threshold": 2}, ValueError, "threshold must lie between 0 and 1"),
        ({"groups": {}}, ValueError, "groups must be a dict"),
        ({"groups": ["size"]}, ValueError, "groups must be a dict"),
        ({"groups": {"a": []}}, ValueError, "group 'a' is empty"),
        ({"groups": {"a": ["sise"]}}, ValueError, "did you mean 'size'"),
        ({"groups": {"a": [4]}}, ValueError, "there are 4, counted from 0"),
        ({"groups": {"a": [True]}}, ValueError, "'a' has the feature True"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, message):
    forest, X, y = regression(n_estimators=2)
    with pytest.raises(error, match=message):
        forest.importance(**{"X": X, "y": y, **options})


def test_training_rows_are_needed_again_and_known_again():
    forest, X, y = regression(n_estimators=2)
    with pytest.raises(ValueError, match="pass the X and y of fit"):
        forest.importance("permutation")
    with pytest.raises(ValueError, match="not the training data"):
        forest.importance("permutation", X, y[::-1])
    with pytest.raises(NotFittedError):
        RandomForestRegressor().importance()


def test_importances_out_of_the_bag_need_bags():
    X, y = mixed_frame(30)
    forest = RandomForestRegressor(n_estimators=2, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="fit with bootstrap=True"):
        forest.importance("permutation", X, y)
    with pytest.raises(ValueError, match="fit with bootstrap=True"):
        forest.check_importance(X, y)
    whole = RandomForestRegressor(n_estimators=2, replace=False).fit(X, y)  # every bag holds all rows
    with pytest.raises(ValueError, match="no tree has an out-of-bag row"):
        whole.importance("permutation", X, y)


# --- The selector -------------------------------------------------------------------------------------------


def selector(**params):
    return OOBSelector(RandomForestRegressor(n_estimators=20, random_state=0), **params)


def test_the_selector_keeps_what_matters_by_importance():
    X, y = mixed_frame()
    fitted = selector().fit(X, y)
    table = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y).importance("permutation", X, y)
    assert fitted.importance_.importance.tolist() == table.importance.tolist()
    kept = table.importance > 2 * table.std_error
    assert fitted.get_support().tolist() == kept.tolist() == [True, True, True, False]
    assert fitted.get_feature_names_out().tolist() == ["size", "age", "town"]
    assert fitted.n_features_in_ == 4
    for threshold, least in [("mean", 1.0), ("1.5*mean", 1.5), ("median", None), (0.2, None)]:
        value = 0.2 if threshold == 0.2 else np.median(table.importance)
        limit = value if least is None else least * table.importance.mean()
        again = selector(threshold=threshold).fit(X, y)
        assert again.threshold_ == pytest.approx(limit)
        assert again.get_support().tolist() == (table.importance >= limit).tolist()
    top = selector(max_features=1, threshold=-np.inf).fit(X, y).get_support(indices=True)
    assert top.tolist() == [table.importance.argmax()]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_keep_their_columns(kind):
    X, y = mixed_frame()
    X = X.assign(town=X["town"].astype(str))
    X = {"pandas": X, "polars": pl.DataFrame(X), "arrow": pa.Table.from_pandas(X)}[kind]
    found = selector().fit(X, y).transform(X)
    assert type(found) is type(X)
    names = list(found.column_names if kind == "arrow" else found.columns)
    assert names == ["size", "age", "town"]
    assert list(found["town"])[:3] == list(X["town"])[:3]


def test_arrays_and_outputs_and_pipelines():
    X, y = correlated()
    fitted = selector(threshold=0.05).fit(X, y)
    assert fitted.transform(X).tolist() == X[:, fitted.get_support()].tolist()
    assert fitted.inverse_transform(fitted.transform(X)).shape == X.shape
    frame = clone(fitted).set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == ["x0", "x1", "x2"]
    model = make_pipeline(selector(max_features=2), RandomForestRegressor(n_estimators=5, random_state=0)).fit(X, y)
    assert model[-1].n_features_in_ == 2
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector(threshold=1e9).fit(X, y).transform(X).shape == (400, 0)
    weighted = selector().fit(X, y, sample_weight=np.arange(400.0))
    assert weighted.importance_.importance.tolist() != selector().fit(X, y).importance_.importance.tolist()


def test_the_selector_refuses_what_it_cannot_use():
    X, y = correlated(40)
    with pytest.raises(ValueError, match=r"'1.25\*mean', got 'most'"):
        selector(threshold="most").fit(X, y)
    with pytest.raises(ValueError, match="'estimator' parameter"):
        OOBSelector(3).fit(X, y)
    with pytest.raises(TypeError, match="Did you mean 'threshold'"):
        OOBSelector(RandomForestRegressor(), treshold=1)
    with pytest.raises(NotFittedError):
        selector().get_support()
    fitted = selector().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but OOBSelector is expecting 3"):
        fitted.transform(X[:, :2])


@parametrize_with_contract([OOBSelector(RandomForestClassifier(n_estimators=5, random_state=0), threshold=-np.inf)])
def test_the_selector_keeps_scikit_learn_s_contract(estimator, check):
    check(estimator)
