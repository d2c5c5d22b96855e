"""F14: every fitted attribute that any estimator keeps is checked when a file is opened, and its model stays whole."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import saved_models
import spinney
from damaged_models import DELETE, load_changed, put
from spinney.ensemble import losses
from spinney.estimators.kept import is_of, kept_by, take_fitted
from spinney.estimators.saving import estimator_names
from spinney.model.container import BrokenFileError
from spinney.table.schema import Schema

pytestmark = pytest.mark.filterwarnings("ignore")

BY_CV = {"pruning": "cost_complexity", "ccp_alpha": "cv", "random_state": 0}
EARLY = {"n_estimators": 4, "n_iter_no_change": 3, "validation_fraction": 0.3, "random_state": 0}
OPTIONS = {  # such that a fit has as many attributes as one can have
    "CARTClassifier": BY_CV,
    "CARTRegressor": BY_CV,
    "ID3Classifier": BY_CV,
    "ID3Regressor": BY_CV,
    "C45Classifier": BY_CV,
    "RandomForestClassifier": {"n_estimators": 4, "oob_score": True, "random_state": 0},
    "RandomForestRegressor": {"n_estimators": 4, "oob_score": True, "keep_members": True, "random_state": 0},
    "ExtraTreesClassifier": {"n_estimators": 4, "bootstrap": True, "oob_score": True, "random_state": 0},
    "ExtraTreesRegressor": {"n_estimators": 4, "bootstrap": True, "oob_score": True, "random_state": 0},
    "BaggingClassifier": {"n_estimators": 4, "oob_score": True, "random_state": 0},
    "BaggingRegressor": {"n_estimators": 4, "oob_score": True, "random_state": 0},
    "GradientBoostingClassifier": {**EARLY, "class_weight": "balanced"},
    "GradientBoostingRegressor": {**EARLY, "subsample": 0.5},
    "GradientBoostingRanker": {**EARLY, "n_iter_no_change": None},
    "GradientBoostingSurvival": {**EARLY, "subsample": 0.5},
    "RandomForestSurvival": {"n_estimators": 25, "oob_score": True, "random_state": 0},
    "AdaBoostClassifier": EARLY,
    "AdaBoostRegressor": EARLY,
    "StackingClassifier": {
        "estimators": [("tree", spinney.CARTClassifier(max_depth=2)), ("c45", spinney.C45Classifier())],
        "final_estimator": spinney.CARTClassifier(max_depth=2),
        "cv": 3,
    },
    "StackingRegressor": {
        "estimators": [("tree", spinney.CARTRegressor(max_depth=2)), ("id3", spinney.ID3Regressor(max_depth=2))],
        "final_estimator": spinney.CARTRegressor(max_depth=2),
        "cv": 3,
    },
}


def rename(trees):
    """Trees, or one, whose texts name levels that the table has not."""
    return replace(trees, legend=replace(trees.legend, levels=(None,) * 4))


def shorten(value):
    """A number too few."""
    return np.zeros(1) if value is None else value[:-1]


def other_tree(base):
    """A tree that predicts what this one does not."""
    is_regressor = isinstance(base, spinney.CARTRegressor)
    return (spinney.CARTClassifier if is_regressor else spinney.CARTRegressor)()


OUT_OF_RANGE = {  # name: the right type and a wrong value, made from the right one or from None where there is none
    "n_features_in_": lambda _: 0,
    "feature_names_in_": lambda _: np.array(["a", "a", "b", "c"], dtype=object),
    "n_outputs_": lambda _: 2,
    "_schema": lambda _: Schema(None, (None,) * 3),
    "classes_": lambda value: value[::-1],
    "n_classes_": lambda value: value + 1,
    "tree_": rename,
    "pruning_": lambda value: replace(value, method="scissors"),
    "ccp_alpha_": lambda _: -1.0,
    "cv_results_": lambda _: {},
    "max_features_": lambda _: 0,
    "chosen_params_": lambda value: {**value, "learning_rate": float("nan")},
    "forest_": rename,
    "_draw": lambda value: replace(value, seed=99),
    "_seed": lambda _: -1,
    "_honest_fraction": lambda _: 1.5,
    "_y": shorten,
    "_weight": lambda _: np.full(saved_models.N_ROWS, -1.0),
    "_members": lambda _: [],
    "_n_before": lambda _: 0,
    "oob_curve_": lambda _: np.zeros(99),
    "_oob_votes": shorten,
    "_oob_n_votes": shorten,
    "oob_decision_function_": shorten,
    "oob_prediction_": shorten,
    "_shift": lambda _: -1,
    "_base": other_tree,
    "_bags": lambda value: value._replace(seed=-1),
    "_loss": lambda _: losses.Softmax(7),
    "_start": lambda value: np.append(value, 0.0),
    "_exponent": lambda _: 10**6,
    "_marks": lambda _: {},
    "init_": lambda value: value + 1.0,
    "n_trees_per_iteration_": lambda value: value + 1,
    "n_estimators_": lambda value: value + 1,
    "n_iter_": lambda _: 0,
    "best_iteration_": lambda _: 99,
    "evals_result_": lambda _: {"train": {"loss": [1.0]}},
    "train_score_": lambda _: np.zeros(99),
    "validation_score_": lambda _: np.zeros(99),
    "init_estimator_": lambda _: spinney.CARTRegressor(),
    "oob_improvement_": lambda _: np.zeros(99),
    "oob_scores_": lambda _: np.zeros(99),
    "_class_factors": lambda _: np.full(2, -1.0),
    "estimator_weights_": lambda value: np.full_like(value, np.nan),
    "estimator_errors_": lambda value: np.full_like(value, 2.0),
    "_unit": lambda _: 0.25,
    "validation_scores_": lambda _: np.zeros(99),
    "_fingerprint": lambda _: "no hash",
    "_weight_mark": lambda _: "no hash",
    "_names": lambda value: value[:1] * 2,
    "estimators_": lambda value: value[:1],
    "stack_method_": lambda value: ["fit", *value[1:]],
    "_widths": lambda value: [width + 1 for width in value],
    "final_estimator_": clone,
    "_passes_x": lambda value: not value,
    "times_": shorten,
}
FREE = {
    "_is_prefit",
    "estimator_",
    "_is_soft",
    "_oob_is_hard",
    "oob_score_",
}  # of which every value of the type is a possible one


def fit(cls, **options):
    """A fitted estimator with names of columns."""
    n_classes = 2 if cls.__name__.endswith("Classifier") else 0
    targets = {"Ranker": saved_models.to_relevance, "Survival": saved_models.to_times}
    to_target = next((way for kind, way in targets.items() if cls.__name__.endswith(kind)), None)
    return cls(**options).fit(*saved_models.make_data(n_classes, is_named=True, to_target=to_target))


@pytest.mark.parametrize("name", sorted(estimator_names().values()))
def test_f14_every_kept_attribute_is_checked(name):
    cls = getattr(spinney, name)
    model = fit(cls, **OPTIONS[name])
    values = take_fitted(model)
    opened = []
    for attribute, kept in kept_by(cls).items():
        damages = [next(value for value in ("text", -1) if not is_of(value, kept.types))]
        damages += [] if attribute in FREE else [OUT_OF_RANGE[attribute](values.get(attribute))]
        damages += [DELETE] if kept.is_needed else []
        for damage in damages:
            try:
                load_changed(model, put(attribute, damage))
            except BrokenFileError:
                continue
            opened.append((attribute, damage))
    assert opened == []


@pytest.mark.parametrize("name", ["boosting", "boosting classes", "adaboost", "adaboost id3", "forest", "bagging c45"])
@pytest.mark.parametrize("kind", ["unsorted", "doubled", "mixed", "stacked", "missing"])
def test_f14_classes_are_ascending_and_of_one_kind(name, kind):
    model = clone(saved_models.MODELS[name][0]).set_params(n_estimators=2)
    y = np.arange(saved_models.N_ROWS) % saved_models.MODELS[name][1]
    model.fit(saved_models.make_data()[0], y.astype(float))
    n = model.n_classes_
    others = {
        "unsorted": np.arange(n)[::-1].astype(float),
        "doubled": np.zeros(n),
        "mixed": np.array([*range(n - 1), "elder"], dtype=object),
        "stacked": np.arange(n, dtype=float)[:, None],
        "missing": np.append(np.arange(n - 1.0), np.nan),
    }
    with pytest.raises(BrokenFileError, match="classes_ must be a row"):
        load_changed(model, put("classes_", others[kind]))


@pytest.mark.parametrize("cls", [spinney.BaggingClassifier, spinney.AdaBoostClassifier])
@pytest.mark.parametrize("names", [["a", "b", "c"], ["a", "a", "b", "c"], ["a", "b", "c", 4]])
def test_f14_names_of_columns_are_checked_without_a_schema(cls, names):
    model = fit(cls, estimator=spinney.C45Classifier(), n_estimators=2, random_state=0)
    assert "_schema" not in take_fitted(model)
    with pytest.raises(BrokenFileError, match="4 different names"):
        load_changed(model, put("feature_names_in_", np.array(names, dtype=object)))


@pytest.mark.parametrize("cls", [spinney.GradientBoostingClassifier, spinney.AdaBoostClassifier])
@pytest.mark.parametrize(
    "change",
    [{"features": tuple("abcd")}, {"levels": (None, None, tuple("pqrs"), None)}, {"classes": ("elder", "oak")}],
)
def test_f14_names_in_boosted_trees_are_those_of_the_model(cls, change):
    model = fit(cls, n_estimators=2)
    forest = replace(model.forest_, legend=replace(model.forest_.legend, **change))
    with pytest.raises(BrokenFileError, match=r"the trees (name|have) other"):
        load_changed(model, put("forest_", forest))


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("boosting", ["n_estimators_", "n_iter_", "init_", "n_trees_per_iteration_"]),
        ("adaboost", ["best_iteration_"]),
    ],
)
def test_f14_attributes_that_follow_from_others_are_read_only(name, attributes):
    model, asked = saved_models.fit(name)
    before = model.predict(asked)
    for attribute in attributes:
        with pytest.raises(AttributeError, match=f"'{attribute}' of a fitted .* is read only.*fit again"):
            setattr(model, attribute, 2)
    with pytest.raises(AttributeError, match=r"'forest_' of a .* cannot be deleted: fit again"):
        del model.forest_
    np.testing.assert_array_equal(model.predict(asked), before)


def test_f14_parts_in_a_group_can_be_set():
    model, asked = saved_models.fit("adaboost")
    model.forest_ = replace(model.forest_)  # once a TypeError: the group is a named tuple
    model.predict(asked)
    with pytest.raises(AttributeError, match="no 'values' to change"):
        model.validation_scores_ = np.zeros(3)


def test_f14_a_warm_start_knows_the_classes_again():
    X, y = saved_models.make_data()
    model = spinney.GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y)
    model.set_params(warm_start=True, n_estimators=3)
    others = np.where(y == "ash", "cedar", "damson")
    with pytest.raises(ValueError, match=r"y differs: its classes are \('cedar', 'damson'\)"):
        model.fit(X, others)
    with pytest.raises(ValueError, match="X has 3 columns, and had 4"):
        model.fit(X[:, :3], y)
    assert model.classes_.tolist() == ["ash", "birch"]
    assert model.fit(X, y).n_estimators_ == 3


def test_f14_a_warm_start_knows_the_levels_again():
    X, y = saved_models.make_data()
    model = spinney.GradientBoostingClassifier(n_estimators=2, categorical_features=[2], random_state=0).fit(X, y)
    model.set_params(warm_start=True, n_estimators=3)
    X[:, 2] += 10
    with pytest.raises(ValueError, match="X differs in the levels"):
        model.fit(X, y)
