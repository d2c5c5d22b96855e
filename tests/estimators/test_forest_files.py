"""F14: whatever a file says of a fitted forest or bag, it is refused, or every public method of the model works."""

import contextlib
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import saved_models
from damaged_models import DELETE, check_damages, load_changed, put
from spinney import C45Classifier, CARTRegressor, RandomForestClassifier
from spinney.ensemble.sampling import Draw
from spinney.ensemble.subspaces import Bags, Subspaces
from spinney.model.container import BrokenFileError

FORESTS = ["forest", "forest numbers", "forest strata", "forest honest", "extra trees"]
BAGS = ["bagging", "bagging numbers", "bagging c45"]
NAMES = [*FORESTS, *BAGS]

pytestmark = pytest.mark.filterwarnings("ignore")


def use_everything(model, X, y):
    """Call every public method, and read every public attribute; what needs the training rows may refuse these."""
    for name in ("predict", "predict_proba", "predict_log_proba", "apply", "predict_trees", "decision_path"):
        if hasattr(type(model), name):
            getattr(model, name)(X[:9])
    for name in ("n_features_in_", "estimators_samples_", "estimators_features_", "estimator_", "oob_score_"):
        getattr(model, name, None)
    assert len(model.estimators_) == len(model)
    if model._has_predictor():
        assert model.feature_importances_.shape == (X.shape[1],)
        model.predictor()(np.nan_to_num(X[0]))
        model[0].predict(X[:3, : model[0].n_features_in_])
        assert model.forest_[0].to_text()
    pickle.loads(pickle.dumps(model)).predict(X[:9])
    if hasattr(model, "vote_table"):
        use_forest(model, X, y)
    for settings in ({}, {"oob_score": not model.oob_score}):
        model.set_params(warm_start=True, n_estimators=len(model) + 1, **settings)
        with contextlib.suppress(ValueError):
            model.fit(X, y)
        model.predict(X[:9])


def use_forest(model, X, y):
    """What only forests have: errors must be refusals, which are ValueErrors."""
    new, train = X[:9], (X, y)
    str(model.vote_table(X[0])), model.vote_table(X[0]).to_frame(), model.importance()
    model.predict_variance(new)
    calls = [lambda kind=kind: model.predict_variance(new, kind) for kind in ("jackknife", "infinitesimal")]
    calls += [lambda: model.decompose(new), lambda: model.decompose(X, y), lambda: model.check_importance(X, y)]
    calls += [lambda kind=kind: model.importance(kind, X, y) for kind in ("impurity_oob", "permutation", "conditional")]
    covers = model.predict_set if hasattr(model, "classes_") else model.predict_interval
    for method in ("jackknife+", "oob"):
        calls += [lambda m=method: covers(new, method=m), lambda m=method: covers(new, method=m, train=train)]
    if hasattr(model, "classes_"):
        calls.append(lambda: model.strength(X, y))
    else:
        calls += [lambda: model.predict_quantiles(new), lambda: model.predict_quantiles(new, train=train)]
    for call in calls:
        with contextlib.suppress(ValueError):
            call()


@pytest.fixture(scope="module")
def fitted():
    """Models by name, each fitted once, of so few trees that some rows are in every bag."""
    models = {name: clone(saved_models.MODELS[name][0]) for name in NAMES}
    few = {"n_estimators": 4, "random_state": 0}
    return {name: model.set_params(**few).fit(*saved_models.data_of(name)) for name, model in models.items()}


def damages_of(attribute, value):
    """Values to put in place of an attribute that only forests and bags have."""
    others = []
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        others += [value - 1, value + 100, np.full_like(value, np.iinfo(value.dtype).min), value.astype(np.int16)]
    if attribute == "_members" and len(value) and isinstance(value[0], np.ndarray):
        others += [[change(rows) for rows in value] for change in CHANGES_OF_ROWS]
    if isinstance(value, Draw):
        others += [replace(value, **change) for change in CHANGES_OF_DRAWS]
    if isinstance(value, Bags):
        spaces = value.spaces
        others += [value._replace(draw=replace(value.draw, **change)) for change in CHANGES_OF_DRAWS]
        others += [value._replace(spaces=Subspaces(n, n, spaces.seed)) for n in (1, 3, 4, 5)]
        others += [value._replace(spaces=replace_seed(spaces, spaces.seed + 1)), value._replace(seed=-1)]
    return others


def replace_seed(spaces, seed):
    """The same columns drawn by another seed."""
    return Subspaces(spaces.n_features, spaces.n_drawn, seed, spaces.has_repeats)


CHANGES_OF_ROWS = [
    lambda rows: rows[::-1], lambda rows: rows + 1000, lambda rows: rows - 120, lambda rows: rows[:-1],
    lambda rows: rows.astype(np.int64), lambda rows: np.full_like(rows, -(2**31)), np.zeros_like,
]  # fmt: skip
CHANGES_OF_DRAWS = [
    {"n_rows": 121, "strata": None, "is_balanced": False}, {"n_rows": 3, "strata": None, "is_balanced": False},
    {"seed": 99}, {"kind": "whole"}, {"kind": "poisson"}, {"n_drawn": 1}, {"n_drawn": 2**31 - 1, "kind": "whole"},
    {"groups": np.zeros(120, np.int32), "strata": None, "is_balanced": False},
    {"probability": np.arange(120) % 2.0},
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_f14_a_damaged_attribute_is_refused_or_does_no_harm(name, fitted):
    X, y = saved_models.data_of(name)
    check_damages(fitted[name], lambda loaded: use_everything(loaded, X, y), damages_of)


@pytest.mark.parametrize("name", NAMES)
def test_f14_an_undamaged_model_passes(name, fitted):
    model = fitted[name]
    X, y = saved_models.data_of(name)
    loaded = load_changed(model, lambda _: None)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    use_everything(loaded, X, y)


@pytest.mark.parametrize(
    ("name", "attribute", "value", "words"),
    [
        ("forest", "_seed", DELETE, "has _seed"),
        ("forest", "_draw", DELETE, "has _draw"),
        ("forest", "_seed", -1, "the seed"),
        ("forest", "max_features_", 9, "max_features_=9"),
        ("forest", "_y", np.full(120, 288230376151711746), "codes 0 .. 2"),  # once: an IndexError in predict_set
        ("forest", "_oob_votes", DELETE, "lack _oob_votes"),
        ("forest", "_oob_n_votes", np.zeros(120, np.int64), "not the means"),
        ("forest", "oob_curve_", np.zeros(3), "curve"),
        ("forest", "n_outputs_", 2, "one output"),
        ("forest numbers", "_y", np.full(120, np.nan), "finite"),
        ("forest numbers", "_weight", np.full(120, -1.0), "from 0 up"),
        ("forest numbers", "_members", [], "0 lists"),
        ("forest honest", "_honest_fraction", 1.5, "between 0 and 1"),
        ("bagging", "_base", DELETE, "lack _base"),
        ("bagging numbers", "_bags", DELETE, "has _bags"),
        ("bagging c45", "_bags", DELETE, "has _bags"),
        ("bagging c45", "_members", DELETE, "trees or other members"),
        ("bagging", "_base", CARTRegressor(), "no CART tree|contradicts|cannot be"),
        ("bagging c45", "_members", [], "at least one"),
        ("bagging c45", "_members", [C45Classifier()], "not fitted"),
    ],
)
def test_f14_the_message_names_what_is_wrong(name, attribute, value, words, fitted):
    with pytest.raises(BrokenFileError, match=words):
        load_changed(fitted[name], put(attribute, value))


def test_f14_leaf_rows_out_of_range_are_refused(fitted):
    """Once an IndexError in predict_quantiles: index -2147483648 of 120."""
    model = fitted["forest numbers"]
    rows = [np.full_like(some, np.iinfo(np.int32).min) for some in model._members]
    with pytest.raises(BrokenFileError, match=r"row numbers 0 \.\. 119"):
        load_changed(model, put("_members", rows))


def test_a_part_can_be_set_in_place(fitted):
    """As any attribute: the other trees predict, and are saved."""
    model = pickle.loads(pickle.dumps(fitted["forest"]))
    X, _ = saved_models.data_of("forest")
    model.forest_ = model.forest_.head(1)
    assert len(model) == len(model.forest_) == 1
    np.testing.assert_array_equal(model.predict(X), fitted["forest"].estimators_[0].predict(X))
    assert len(fitted["forest"]) == 4
    with pytest.raises(AttributeError, match="once this RandomForestClassifier has been fitted"):
        RandomForestClassifier().forest_ = model.forest_


@pytest.mark.parametrize(
    "change",
    [
        {"features": ("a", "b", "c", "d", "e")}, {"levels": (None,) * 4}, {"classes": (1, 2, 3)}, {"classes": None},
        {"criterion": "beauty"},
    ],
)  # fmt: skip
def test_f14_names_of_trees_are_those_of_the_model(change, fitted):
    """Once a TypeError where a tree was explained."""
    model = fitted["forest"]
    forest = replace(model.forest_, legend=replace(model.forest_.legend, **change))
    with pytest.raises(BrokenFileError):
        load_changed(model, put("forest_", forest))


def test_f14_a_compact_forest_is_no_estimator(fitted):
    model = fitted["forest"]
    with pytest.raises(BrokenFileError, match="counts"):
        load_changed(model, put("forest_", model.forest_.compact()))
