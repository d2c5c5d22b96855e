"""Gradient boosting at its defaults: what is chosen is what is used, kept and told, and rounds stop in time."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, mean_pinball_loss
from sklearn.model_selection import KFold, StratifiedKFold

import saved_models
import spinney
from boosting_cases import make_frame, make_table, raw_of, same_forest
from damaged_models import load_changed, put
from plain_boosting import PLAIN
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.sampling import Draw, draw_key
from spinney.model.container import BrokenFileError

pytestmark = pytest.mark.compiled(reason="rules of Python, and fits of hundreds of rounds")

AUTOMATIC = (
    *("learning_rate", "n_estimators", "max_leaf_nodes", "min_samples_leaf", "subsample", "max_features"),
    "leaf_rows",
)
GOLDEN = Path(__file__).parents[1] / "golden"
BAG = 1  # the purpose of the key of bags
MOST_JUDGED = 8192  # rows out of the bag that a round is judged by


@pytest.fixture(params=[GradientBoostingClassifier, GradientBoostingRegressor], ids=["classifier", "regressor"])
def kind(request):
    return request.param


def make_noise(n_rows=500, seed=0, n_features=6):
    """Columns that say nothing of the target."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)), rng.integers(0, 2, n_rows)


# --- what is chosen -----------------------------------------------------------------------------------------------


def test_values_follow_the_rows_that_are_learnt_from(kind):
    X, y = make_table(600)
    is_class = kind is GradientBoostingClassifier
    few = (4, 3) if is_class else (1, 1)  # rows a leaf, of 600 rows and of 300
    chosen = {"learning_rate": 0.03, "n_estimators": 2000, "max_leaf_nodes": 12, "min_samples_leaf": few[0],
              "max_features": 3, "subsample": 0.7, "leaf_rows": "all", "reg_lambda": 1.0}  # fmt: skip
    if is_class:
        chosen["reg_lambda"] = 0.5
    model = kind(random_state=0).fit(X, y)
    assert model.chosen_params_ == chosen
    assert model.max_features_ == 3
    assert {type(value) for value in model.chosen_params_.values()} == {int, float, str}
    assert all(getattr(model, name) == "auto" for name in AUTOMATIC)  # what the user gave is left alone
    weight = np.repeat([1.0, 0.0], 300)
    model = kind(random_state=0, effort=0.1).fit(X, y, weight)
    assert (model.chosen_params_["max_leaf_nodes"], model.chosen_params_["min_samples_leaf"]) == (8, few[1])
    model = kind(random_state=0, effort=0.1, n_iter_no_change=3, validation_fraction=0.5).fit(X, y)
    assert (model.chosen_params_["max_leaf_nodes"], model.chosen_params_["min_samples_leaf"]) == (8, few[1])


def test_many_classes_have_longer_steps_and_a_weaker_pull():
    X, y = make_frame(n_classes=3)
    chosen = GradientBoostingClassifier(random_state=0, effort=0.1).fit(X, y).chosen_params_
    assert (chosen["learning_rate"], chosen["reg_lambda"]) == (pytest.approx(0.6), 2 / 3)
    friedman = GradientBoostingClassifier(random_state=0, effort=0.1, newton=False).fit(X, y)
    assert friedman.chosen_params_["reg_lambda"] == 0.0
    one = GradientBoostingClassifier(random_state=0).fit(X, np.zeros(len(y)))
    assert one.chosen_params_["reg_lambda"] == 0.5  # as of two


@pytest.mark.parametrize(
    "given",
    [
        {"learning_rate": 0.3}, {"n_estimators": 17}, {"max_leaf_nodes": 4}, {"max_leaf_nodes": None, "max_depth": 2},
        {"min_samples_leaf": 50}, {"min_samples_leaf": 0.25}, {"subsample": 0.5}, {"max_features": 2},
        {"reg_lambda": 7.0},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_given_is_used(kind, given):
    X, y = make_table(400)
    base = kind(random_state=0, effort=0.1).fit(X, y).chosen_params_
    model = kind(random_state=0, effort=0.1, **given).fit(X, y)
    expected = {**base, **{name: value for name, value in given.items() if name in base}}
    if "n_estimators" in given:
        expected["learning_rate"], expected["reg_lambda"] = 0.1, 1.0
        assert model.n_estimators_ == 17
    expected["leaf_rows"] = "bag" if "subsample" in given else "all"
    assert model.chosen_params_ == expected
    written_out = kind(random_state=0, **{**model.chosen_params_, **given, "n_estimators": model.n_estimators_})
    assert same_forest(written_out.fit(X, y), model)


def test_the_old_defaults_are_one_line_away(kind):
    X, y = make_frame()
    model = kind(**PLAIN).fit(X, y)
    assert model.n_estimators_ == 100
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(raw_of(kind(**PLAIN).fit(X.iloc[order], y[order]), X), raw_of(model, X))


BAD = [
    *({name: value} for name in AUTOMATIC for value in ("automatic", "AUTO", "")),
    *({"effort": value} for value in (0, 0.0, -1.0, np.nan, np.inf, True, None, "auto", "much")),
    {"reg_lambda": "auto"},
]


@pytest.mark.parametrize("given", BAD, ids=str)
def test_values_that_are_none_are_refused_by_name(kind, given):
    X, y = make_table(40)
    (name,) = given
    with pytest.raises((ValueError, TypeError), match=f"'{name}' parameter"):
        kind(**given).fit(X, y)


def test_a_warm_start_needs_a_number(kind):
    X, y = make_table()
    model = kind(warm_start=True, random_state=0, effort=0.1).fit(X, y)
    before = raw_of(model, X)
    with pytest.raises(
        ValueError, match=f"n_estimators, which is 'auto': give a number, larger than the {len(model.forest_)}"
    ):
        model.fit(X, y)
    np.testing.assert_array_equal(raw_of(model, X), before)
    assert model.set_params(n_estimators=model.n_estimators_ + 3).fit(X, y).n_estimators_ > 3


# --- files --------------------------------------------------------------------------------------------------------


def test_chosen_values_are_kept_in_files_and_pickles(tmp_path):
    model, asked = saved_models.fit("boosting defaults")
    model.save_model(tmp_path / "model.spn")
    for other in (spinney.load_model(tmp_path / "model.spn"), pickle.loads(pickle.dumps(model))):
        assert other.chosen_params_ == model.chosen_params_
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.predict_proba(asked), model.predict_proba(asked))


@pytest.mark.parametrize("name", ["boosting", "boosting_classes", "boosting_early"])
def test_files_of_before_have_none(name):
    model = spinney.load_model(GOLDEN / "1.0" / f"{name}.spn")
    assert getattr(model, "chosen_params_", None) is None
    assert model.get_params()["learning_rate"] in {0.1, 0.7}


@pytest.mark.parametrize(
    "damage",
    [
        "0.1", 3, [0.1], {"learning_rate": "0.1"}, {"learning_rate": np.nan}, {"learning_rate": np.inf},
        {"n_estimators": [3]}, {"n_estimators": True}, {"max_features": {"of": 3}}, {"leaf_rows": "some"},
    ],
    ids=str,
)  # fmt: skip
def test_f14_damaged_values_are_refused(damage):
    model, _ = saved_models.fit("boosting defaults")
    with pytest.raises(BrokenFileError, match="chosen"):
        load_changed(model, put("chosen_params_", damage))


# --- rounds -------------------------------------------------------------------------------------------------------


def derivatives_of(model, y, raw):
    """First and second derivatives of the loss of each row by raw scores (n_raw, n_rows)."""
    if not hasattr(model, "classes_"):
        return (np.exp(raw) - y, np.exp(raw)) if model.loss == "poisson" else (raw - y, np.ones_like(raw))
    if len(raw) == 1:
        p = 1.0 / (1.0 + np.exp(-raw))
        return p - y, p * (1.0 - p)
    p = np.exp(raw - raw.max(axis=0))
    p /= p.sum(axis=0)
    return p - (np.arange(len(raw))[:, None] == y), 2.0 * p * (1.0 - p)


def losses_of(model, y, raw, weight):
    """The mean loss of rows by their raw scores (n_raw, n_rows)."""
    if hasattr(model, "classes_"):
        every = np.log1p(np.exp(np.where(y == 1, -raw[0], raw[0]))) if len(raw) == 1 else None
        if every is None:
            every = np.log(np.exp(raw - raw.max(axis=0)).sum(axis=0)) + raw.max(axis=0) - raw[y, np.arange(len(y))]
    elif model.loss == "poisson":
        every = np.exp(raw[0]) - y * raw[0]
    elif model.loss == "quantile":
        levels = zip(raw, np.atleast_1d(model.alpha), strict=True)
        return np.mean([mean_pinball_loss(y, said, alpha=level, sample_weight=weight) for said, level in levels])
    else:
        every = (y - raw[0]) ** 2 / 2
    return np.average(every, weights=weight)


def replay(model, X, y, weight=None, offset=None):
    """The rounds after which out-of-bag rows say enough, and what was learnt by then: from tests and bags alone.

    The values of leaves are worked out anew: those of the rows in the bag judge, those of all rows are in the model.
    """
    n_rows, n_raw, chosen, forest = len(y), model.n_trees_per_iteration_, model.chosen_params_, model.forest_
    n_drawn = int(chosen["subsample"] * n_rows)
    bags = Draw("paste", n_rows, n_drawn, draw_key(model._seed, BAG))
    stored, leaf = forest.hot.view(np.float64)[:, 0], model.apply(X).reshape(len(X), -1)
    raw = np.tile(model.init_[:, None], n_rows) + (0.0 if offset is None else offset)
    w = np.ones(n_rows) if weight is None else weight
    has_steps = model.loss != "quantile"
    total, peak, at, first = 0.0, 0.0, 0, None
    for number in range(model.n_estimators_):
        is_in = np.zeros(n_rows, bool)
        is_in[bags.rows(number)] = True
        outside = np.flatnonzero(~is_in)[:MOST_JUDGED]
        assert len(outside) == min(n_rows - n_drawn, MOST_JUDGED)
        judged = raw[:, outside]
        before = losses_of(model, y[outside], judged, w[outside])
        first = before if first is None else first
        learnt = peak / first
        pull = min(1.0, 5.0 * (1.0 - learnt)) ** 2 if hasattr(model, "classes_") else 1.0
        g, h = derivatives_of(model, y, raw) if has_steps else (None, None)
        for k in range(n_raw):
            t = number * n_raw + k
            of_row = leaf[:, t]
            values = stored[forest.first_node[t] : forest.first_node[t + 1]]
            if has_steps:
                by_all, by_bag = (
                    [np.bincount(of_row[rows], (w * each[k])[rows], len(values)) for each in (g, h)]
                    for rows in (slice(None), is_in)
                )
                lambda_ = chosen["reg_lambda"] * pull + 1e-300
                is_leaf = np.isin(np.arange(len(values)), of_row)
                found = -chosen["learning_rate"] * by_all[0] / (by_all[1] + lambda_)
                np.testing.assert_allclose(found[is_leaf], values[is_leaf], rtol=1e-6, atol=1e-9)
                judged[k] -= (chosen["learning_rate"] * by_bag[0] / (by_bag[1] + lambda_))[of_row[outside]]
            else:
                judged[k] += values[of_row[outside]]
            raw[k] += values[of_row]
        total += before - losses_of(model, y[outside], judged, w[outside])
        if total > peak:
            peak, at = total, number + 1
        factor = 3 if model.loss == "squared_error" or peak / first >= 0.9 else 2
        if number + 1 >= max(factor * at, 20):
            return number + 1, peak / first
    return None, peak / first


def count_rounds(model, X, y, weight=None, offset=None):
    """The rounds after which out-of-bag rows say enough; None: more than there are."""
    return replay(model, X, y, weight, offset)[0]


def make_noisy(n_rows, seed, n_classes):
    """A little to learn, much noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)).round(2)
    score = X[:, 0] + rng.normal(scale=1.5, size=n_rows)
    return X, score if n_classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("is_weighed", [False, True])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_rounds_are_those_that_out_of_bag_rows_ask_for(n_classes, is_weighed, seed):
    X, y = make_noisy(300, seed, n_classes)
    kind = GradientBoostingClassifier if n_classes else GradientBoostingRegressor
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, len(y)) if is_weighed else None
    model = kind(random_state=seed).fit(X, y, weight)
    assert model.n_estimators_ == count_rounds(model, X, y, weight) < model.chosen_params_["n_estimators"]
    assert model.best_iteration_ == model.n_estimators_
    rows = np.repeat(np.arange(len(y)), 2)  # every row a second time, with weight 0
    zeros = np.where(np.arange(2 * len(y)) % 2, 0.0, 1.0 if weight is None else weight[rows])
    assert same_forest(kind(random_state=seed).fit(X[rows], y[rows], zeros), model)


def test_rounds_of_quantiles_and_counts():
    X, y = make_noisy(300, 3, 0)
    for alpha in (0.7, [0.2, 0.5, 0.8]):
        model = GradientBoostingRegressor(loss="quantile", alpha=alpha, random_state=0).fit(X, y)
        assert model.n_trees_per_iteration_ == np.size(alpha)
        assert model.n_estimators_ == count_rounds(model, X, y) < model.chosen_params_["n_estimators"]
    rng = np.random.default_rng(0)
    years = rng.uniform(0.5, 3.0, len(y))
    counts = rng.poisson(years * np.exp(0.3 * X[:, 0])).astype(float)
    offset = np.log(years)
    model = GradientBoostingRegressor(loss="poisson", random_state=0).fit(X, counts, init_score=offset)
    assert model.n_estimators_ == count_rounds(model, X, counts, offset=offset)


def test_noise_is_soon_enough(kind):
    for seed in range(3):
        X, y = make_noise(seed=seed)
        model = kind(random_state=seed).fit(X, y)
        assert 20 <= model.n_estimators_ <= 60
        assert np.std(raw_of(model, X)) < (1.0 if hasattr(model, "classes_") else 0.25)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lambda_falls_where_nearly_all_is_learnt(n_classes):
    """A table without noise: `replay` works out every leaf, with the pull of its round."""
    X = np.random.default_rng(0).normal(size=(400, 6)).round(2)
    y = np.digitize(X[:, 0], [-0.5, 0.5]) if n_classes == 3 else (X[:, 0] > 0.1).astype(int)
    model = GradientBoostingClassifier(random_state=0, effort=0.5).fit(X, y)
    rounds, learnt = replay(model, X, y)
    assert learnt > 0.9
    assert model.n_estimators_ == (rounds or model.chosen_params_["n_estimators"])
    held_back = GradientBoostingClassifier(random_state=0, effort=0.5, reg_lambda=model.chosen_params_["reg_lambda"])
    assert held_back.fit(X, y).train_score_[-1] > 2.0 * model.train_score_[-1]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_leaves_of_rows_in_the_bag_alone(n_classes):
    """What Friedman has, as a setting: where nothing is left out, both are the same."""
    X, y = make_noisy(300, 0, n_classes)
    kind = GradientBoostingClassifier if n_classes else GradientBoostingRegressor
    by_bag, by_all = (
        kind(random_state=0, n_estimators=1, subsample=0.5, leaf_rows=rows).fit(X, y) for rows in ("bag", "all")
    )
    forests = by_bag.forest_, by_all.forest_
    np.testing.assert_array_equal(forests[0].n_rows, forests[1].n_rows)  # the tests are the same, the values are not
    assert not same_forest(by_bag, by_all)
    assert same_forest(kind(random_state=0, n_estimators=1, subsample=0.5).fit(X, y), by_bag)
    whole = [
        kind(random_state=0, n_estimators=3, subsample=1.0, leaf_rows=rows).fit(X, y) for rows in ("bag", "all", "auto")
    ]
    assert same_forest(whole[0], whole[1])
    assert same_forest(whole[0], whole[2])


def test_drawn_rows_that_stand_for_others_make_leaves_alone(kind):
    X, y = make_noisy(60, 0, 2)
    with pytest.raises(ValueError, match="leaf_rows='all' takes every row for itself"):
        kind(sampling="gradient", subsample=0.5, leaf_rows="all").fit(X, y)
    assert kind(sampling="gradient", random_state=0).fit(X, y).chosen_params_["leaf_rows"] == "bag"


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_threads_change_no_bit_of_a_large_table(kind):
    X, y = make_noisy(45_000, 0, 2)
    models = [kind(random_state=0, effort=0.4, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    assert models[0].chosen_params_["max_features"] == 6
    assert same_forest(*models)
    if kind is GradientBoostingRegressor:
        assert models[0].chosen_params_["subsample"] == 1.0
        assert models[0].n_estimators_ == models[1].n_estimators_ == 60
        return
    rounds = count_rounds(models[0], X, y)  # of 9,000 rows outside a bag, the first 8,192
    assert models[0].n_estimators_ == models[1].n_estimators_ == (rounds or models[0].chosen_params_["n_estimators"])


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_large_tables_of_numbers_draw_nothing():
    """Any seed and any order of the rows give one model, and a row of weight 2 is two rows."""
    X, y = make_noisy(21_000, 0, 0)
    first = GradientBoostingRegressor(effort=0.1, random_state=0).fit(X, y)
    assert first.n_estimators_ == 15
    order = np.random.default_rng(0).permutation(len(y))
    assert same_forest(GradientBoostingRegressor(effort=0.1, random_state=1).fit(X[order], y[order]), first)
    settings = {"effort": 0.1, "min_samples_leaf": 1}  # the one limit that counts rows
    twice = GradientBoostingRegressor(**settings).fit(X, y, np.where(np.arange(len(y)) < 5000, 2.0, 1.0))
    rows = np.concatenate([np.arange(5000), np.arange(len(y))])
    np.testing.assert_array_equal(
        raw_of(GradientBoostingRegressor(**settings).fit(X[rows], y[rows]), X), raw_of(twice, X)
    )


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_tables_of_categories_alone_are_known_by_their_columns(n_classes):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: pd.Categorical(rng.choice(list("uvw"), 200)) for name in "ab"})
    y = (X["a"].cat.codes + (X["b"] == "u")).to_numpy() % max(n_classes, 4)
    y = y % n_classes if n_classes else y.astype(float)
    kind = GradientBoostingClassifier if n_classes else GradientBoostingRegressor
    assert kind(effort=0.1).fit(X, y).chosen_params_["subsample"] == 0.85
    mixed = kind(effort=0.1).fit(X.assign(c=rng.normal(size=200)), y)
    assert mixed.chosen_params_["subsample"] == (0.5 if n_classes == 3 else 0.7)


def test_the_same_seed_gives_the_same_model_and_another_does_not(kind):
    X, y = make_noisy(200, 0, 2)
    one, again, other = (kind(random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert same_forest(one, again)
    assert not same_forest(one, other)


def test_a_loss_of_ones_own_has_a_hundred_rounds():
    X, y = make_noise()
    loss = (lambda y, raw: raw - y, lambda y, raw: np.ones(len(raw)))  # noqa: ARG005
    model = GradientBoostingRegressor(loss=loss, random_state=0, effort=3.0).fit(X, y)
    assert model.n_estimators_ == model.chosen_params_["n_estimators"] == 100
    assert model.chosen_params_["learning_rate"] == 0.1


def test_effort_scales_steps_and_rounds(kind):
    X, y = make_noisy(300, 0, 2)
    quick, usual, slow = (kind(random_state=0, effort=effort).fit(X, y) for effort in (0.2, 1.0, 4.0))
    assert [model.chosen_params_["learning_rate"] for model in (quick, usual, slow)] == [0.15, 0.03, 0.0075]
    assert [model.chosen_params_["n_estimators"] for model in (quick, usual, slow)] == [300, 1500, 6000]
    assert quick.n_estimators_ < usual.n_estimators_ < slow.n_estimators_


@pytest.mark.parametrize("given", [{"n_iter_no_change": 1000}, {"subsample": 1.0}, {"n_estimators": 80}], ids=str)
def test_other_ways_to_stop_switch_this_one_off(kind, given):
    X, y = make_noise()
    model = kind(random_state=0, **{"effort": 0.04, **given}).fit(X, y)
    assert model.n_estimators_ == model.chosen_params_["n_estimators"] == 80
    assert kind(random_state=0, effort=0.04).fit(X, y).n_estimators_ < 80  # which noise would have done


# --- how good they are --------------------------------------------------------------------------------------------


def cross_validate(model, X, y):
    """Mean log loss, or RMSE, of five folds."""
    is_class = hasattr(model, "predict_proba")
    folds = (StratifiedKFold if is_class else KFold)(5, shuffle=True, random_state=0)
    scores = []
    for train, test in folds.split(np.zeros(len(y)), y):
        model.fit(X.take(train), y[train])
        if is_class:
            scores.append(log_loss(y[test], model.predict_proba(X.take(test)), labels=model.classes_))
        else:
            scores.append(np.sqrt(np.mean((model.predict(X.take(test)) - y[test]) ** 2)))
    return float(np.mean(scores))


@pytest.mark.compiled(reason="takes minutes interpreted")
@pytest.mark.parametrize(
    ("name", "target"), [("german_credit", "class"), ("glass", "Type"), ("california_housing", "MedHouseVal")]
)
def test_small_tables_do_not_lose_to_a_forest(name, target):
    table = spinney.datasets.load(name)
    if name == "california_housing":
        table = table.take(np.random.default_rng(0).permutation(len(table))[:1000])
    X, y = table.drop_columns([target]), table[target].to_numpy()
    task = "Regressor" if name == "california_housing" else "Classifier"
    boosting, forest = (
        cross_validate(getattr(spinney, f"{method}{task}")(random_state=0), X, y)
        for method in ("GradientBoosting", "RandomForest")
    )
    assert boosting <= 1.05 * forest
