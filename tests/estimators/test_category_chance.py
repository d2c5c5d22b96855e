"""Categories and chance: levels that say nothing do no harm, and the penalty keeps the promises of every fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from fast import arrays_of
from spinney import (
    AdaBoostClassifier,
    BaggingClassifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.datasets import load

BOOSTING = {
    "n_estimators": 60, "learning_rate": 0.1, "max_leaf_nodes": 8, "min_samples_leaf": 10, "subsample": 1.0,
    "max_features": None,
}  # fmt: skip
MODELS = {
    "CART": lambda **penalty: CARTClassifier(min_samples_leaf=20, **penalty),
    "boosting": lambda **penalty: GradientBoostingClassifier(**penalty, **BOOSTING),
    "boosting by default": lambda **penalty: GradientBoostingClassifier(random_state=0, **penalty),
    "forest": lambda **penalty: RandomForestClassifier(50, random_state=0, **penalty),
    "bagging": lambda **penalty: BaggingClassifier(CARTClassifier(**penalty), 30, random_state=0),
}
UNGUARDED = {  # tests are drawn, not chosen by the order of levels; AdaBoost's stumps are guarded by their members
    "extra-trees": lambda: ExtraTreesClassifier(50, random_state=0),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=20),
}
DRAWN = ("forest", "bagging", "boosting by default")
DEFAULT, EXACT = {}, {"cat_penalty": 0.0}
N_ROWS = 1_000


@pytest.fixture(scope="module")
def german():
    table = load("german_credit").to_pandas()
    return table.drop(columns="class"), table["class"].to_numpy()


def held_out_loss(model, X, y):
    """Log loss on rows that were not learnt from, the mean of three parts."""
    losses = []
    for seed in range(3):
        is_train = np.random.default_rng(seed).random(len(y)) < 0.67
        model.fit(X[is_train], y[is_train])
        losses.append(log_loss(y[~is_train], model.predict_proba(X[~is_train]), labels=model.classes_))
    return np.mean(losses)


@pytest.fixture(scope="module")
def without_noise(german):
    return {
        (name, bool(penalty)): held_out_loss(make(**penalty), *german)
        for name, make in MODELS.items()
        for penalty in (DEFAULT, EXACT)
    }


@pytest.mark.parametrize("n_levels", [10, 51, N_ROWS // 2])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.compiled(reason="the forests and rounds of 1,000 rows")
def test_levels_that_say_nothing_do_no_harm(german, without_noise, name, n_levels):
    X, y = german
    levels = np.random.default_rng(9).integers(0, n_levels, len(y))
    X = X.assign(noise=[f"level {level}" for level in levels])
    guarded, exact = (
        held_out_loss(MODELS[name](**penalty), X, y) / without_noise[name, bool(penalty)]
        for penalty in (DEFAULT, EXACT)
    )
    is_drawn = name in DRAWN  # the mean of three parts is off by about so much
    assert guarded <= (1.03 if is_drawn else 1.02)
    if n_levels > 10 and not is_drawn:
        assert exact > 1.1  # seen: 1.17 at least


@pytest.mark.parametrize("n_levels", [2, 51, N_ROWS // 2])
@pytest.mark.parametrize("name", UNGUARDED)
@pytest.mark.compiled(reason="the forests and rounds of 1,000 rows")
def test_levels_that_say_nothing_do_no_harm_where_nothing_is_taken_off(german, name, n_levels):
    X, y = german
    levels = np.random.default_rng(9).integers(0, n_levels, len(y))
    noisy = X.assign(noise=[f"level {level}" for level in levels])
    assert held_out_loss(UNGUARDED[name](), noisy, y) <= 1.03 * held_out_loss(UNGUARDED[name](), X, y)


@pytest.mark.parametrize("name", ["boosting", *DRAWN])
@pytest.mark.compiled(reason="the forests and rounds of 1,000 rows")
def test_two_levels_that_say_nothing(german, without_noise, name):
    """A single tree of few rows a leaf asks for them, as for a number of two values: no order was chosen."""
    X, y = german
    X = X.assign(noise=np.where(np.random.default_rng(9).random(len(y)) < 0.5, "yes", "no"))
    assert held_out_loss(MODELS[name](), X, y) <= 1.03 * without_noise[name, False]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.compiled(reason="the forests and rounds of 1,000 rows")
def test_a_level_for_each_row_does_no_harm_beside_columns_that_matter(german, without_noise, name):
    X, y = german
    X = X.assign(noise=[f"row {i}" for i in range(len(y))])
    assert held_out_loss(MODELS[name](), X, y) <= 1.02 * without_noise[name, False]


# ----------------------------------------------------------------------------------------- weights, order, threads


def mixed(n=160, n_classes=2, seed=0):
    """Numbers and two categories, of which one has many levels; some of both matter."""
    rng = np.random.default_rng(seed)
    few, many, number = rng.integers(0, 5, n), rng.integers(-1, 30, n), rng.normal(size=n).round(1)
    X = pd.DataFrame({"number": number})
    X["few"] = pd.Categorical.from_codes(few, list("abcde"))
    X["many"] = pd.Categorical.from_codes(many, [f"L{k:02}" for k in range(30)])
    score = (few % 2) * 2.0 + (many % 3) + number + rng.normal(size=n)
    return X, score if n_classes == 0 else np.argsort(np.argsort(score)) * n_classes // n


KINDS = [
    (CARTClassifier(cat_penalty=1.0), 2),
    (CARTClassifier(cat_penalty=1.0, criterion="entropy"), 2),
    (CARTClassifier(cat_penalty=1.0), 4),
    (CARTClassifier(cat_penalty=1.0, criterion="gain_ratio"), 4),
    (CARTRegressor(cat_penalty=1.0), 0),
    (CARTRegressor(cat_penalty=1.0, criterion="sdr"), 0),
    (GradientBoostingClassifier(**BOOSTING), 2),
    (GradientBoostingClassifier(**BOOSTING), 3),
    (GradientBoostingRegressor(**BOOSTING), 0),
]


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else str(value)


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize(("model", "n_classes"), KINDS, ids=name_of)
def test_a_row_of_weight_two_is_two_rows(model, n_classes):
    X, y = mixed(n_classes=n_classes)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    model.set_params(**{"min_samples_leaf": 1} if hasattr(model, "min_samples_leaf") else {})
    weighted = answers(model.fit(X, y, weight), X)
    repeated = answers(model.fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight)), X)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("model", "n_classes"), KINDS, ids=name_of)
def test_the_order_of_rows_does_not_matter(model, n_classes):
    X, y = mixed(n_classes=n_classes)
    order = np.random.default_rng(2).permutation(len(y))
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(y))
    one = answers(model.fit(X, y, weight), X)
    np.testing.assert_array_equal(answers(model.fit(X.iloc[order], y[order], weight[order]), X), one)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_unit_of_weights_does_not_matter(criterion):
    """Not whole numbers: weights of 2 each would be two rows each."""
    X, y = mixed(400)
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(y))
    trees = [
        CARTClassifier(cat_penalty=1.0, criterion=criterion).fit(X, y, weight * unit).tree_.arrays
        for unit in (1.0, 0.25, 1024.0)
    ]
    assert trees[0].subsets.size
    for tree in trees[1:]:
        np.testing.assert_array_equal(tree.test, trees[0].test)
        np.testing.assert_array_equal(tree.subsets, trees[0].subsets)


@pytest.mark.parametrize(
    ("make", "n_classes"),
    [
        (lambda n_jobs: RandomForestClassifier(12, cat_penalty=1.0, random_state=0, n_jobs=n_jobs), 3),
        (lambda n_jobs: RandomForestRegressor(12, cat_penalty=1.0, random_state=0, n_jobs=n_jobs), 0),
        (
            lambda n_jobs: BaggingClassifier(
                CARTClassifier(cat_penalty=1.0), n_estimators=12, random_state=0, n_jobs=n_jobs
            ),
            2,
        ),
        (lambda n_jobs: GradientBoostingClassifier(**BOOSTING, n_jobs=n_jobs), 3),
    ],
    ids=["forest of classes", "forest of numbers", "bags", "boosting"],
)
@pytest.mark.compiled(reason="threads")
def test_any_number_of_threads_gives_the_same(make, n_classes):
    X, y = mixed(400, n_classes)
    one, three = (answers(make(n_jobs).fit(X, y), X) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, three)


# ------------------------------------------------------------------------------------------------------ odd tables

ODD = [
    CARTClassifier(cat_penalty=1.0),
    CARTClassifier(cat_penalty=1.0, criterion="entropy", missing="branch"),
    CARTClassifier(cat_penalty=1.0, missing="surrogate"),
    RandomForestClassifier(10, cat_penalty=1.0, random_state=0),
    GradientBoostingClassifier(**{**BOOSTING, "min_samples_leaf": 1}),
    GradientBoostingClassifier(random_state=0, effort=0.3),
    ExtraTreesClassifier(10, random_state=0),
    AdaBoostClassifier(CARTClassifier(cat_penalty=1.0, max_depth=2), n_estimators=5, random_state=0),
    BaggingClassifier(CARTClassifier(cat_penalty=1.0), n_estimators=5, random_state=0),
]


def check_shares(model, X):
    shares = model.predict_proba(X)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
    return shares


@pytest.mark.parametrize("model", ODD, ids=name_of)
class TestOddTables:
    @pytest.mark.filterwarnings("ignore:The first member is no better than chance")
    def test_a_category_of_one_level(self, model):
        X = pd.DataFrame({"c": pd.Categorical(["a"] * 30)})
        shares = check_shares(model.fit(X, np.arange(30) % 3), X)
        assert (shares == shares[0]).all()

    def test_one_level_and_missing_values(self, model):
        """Known against missing: nothing was chosen, so nothing is taken off."""
        X = pd.DataFrame({"c": pd.Categorical.from_codes(np.arange(60) % 2 - 1, ["a"])})
        y = np.arange(60) % 2
        assert model.fit(X, y).score(X, y) == 1.0 or getattr(model, "missing", "") == "surrogate"
        check_shares(model, X)

    def test_a_level_for_each_row(self, model):
        """Such a column tells rows apart and nothing else: boosted trees ask for it for want of a better, or by lot."""
        n = 120
        X = pd.DataFrame({"c": pd.Categorical([f"row {i:03}" for i in range(n)])})
        y = np.random.default_rng(0).integers(0, 3, n)
        shares = check_shares(model.fit(X, y), X)
        if not isinstance(model, GradientBoostingClassifier | ExtraTreesClassifier):
            np.testing.assert_allclose(shares - shares[0], 0.0, atol=1e-12)

    def test_levels_that_fit_has_not_seen(self, model):
        X, y = mixed(n_classes=3)
        model.fit(X, y)
        new = X.assign(few=pd.Categorical(["z"] * len(X)))
        lost = X.assign(few=pd.Categorical([None] * len(X), categories=list("abcde")))
        np.testing.assert_array_equal(check_shares(model, new), check_shares(model, lost))

    def test_rows_of_no_weight_are_not_there(self, model):
        X, y = mixed(n_classes=3)
        weight = np.random.default_rng(4).integers(0, 2, len(y)).astype(float)
        with_them = check_shares(model.fit(X, y, weight), X)
        if isinstance(model, CARTClassifier | GradientBoostingClassifier):  # the others draw rows
            is_there = weight > 0
            np.testing.assert_array_equal(check_shares(model.fit(X[is_there], y[is_there]), X), with_them)

    def test_a_class_of_three_rows(self, model):
        X, y = mixed(n_classes=2)
        y = np.where(np.arange(len(y)) < 3, 2, y)
        assert check_shares(model.fit(X, y), X).shape == (len(y), 3)


def test_the_penalty_moves_the_trees():
    X, y = mixed(400)
    exact, guarded = (CARTClassifier(cat_penalty=penalty).fit(X, y).tree_.arrays for penalty in (0.0, 1.0))
    assert arrays_of(exact) != arrays_of(guarded)


@pytest.mark.parametrize("kind", [CARTClassifier, RandomForestClassifier, GradientBoostingClassifier])
@pytest.mark.parametrize("penalty", [-0.5, np.nan, "much"])
def test_a_bad_penalty_is_named(kind, penalty):
    X, y = mixed(30)
    with pytest.raises(ValueError, match="cat_penalty"):
        kind(cat_penalty=penalty).fit(X, y)
