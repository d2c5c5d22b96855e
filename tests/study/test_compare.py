"""A study's numbers are those of `cross_validate` on the same folds; what stops it leaves a usable part."""

import importlib
import sys
import time
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

import spinney
from spinney import load_model
from spinney.estimators import base_stacking
from spinney.estimators.cross_fitting import make_stack_folds
from spinney.study import FoldRecord, Study, compare, examine, prepare, refit
from spinney.study.clock import Clock, read_duration
from spinney.study.folds import make_folds
from spinney.study.methods import Method, all_methods, choose_methods
from spinney.study.metrics import METRICS, choose_metric

compiled_only = pytest.mark.compiled(reason="takes minutes interpreted")


def make_data(n_rows=150, *, is_regression=False, n_classes=3, **options):
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=n_rows), rng.choice(["u", "v", "w"], n_rows)
    raw = x + (z == "u") + 0.5 * rng.normal(size=n_rows)
    y = raw if is_regression else np.array(list("abc"))[np.digitize(raw, np.quantile(raw, [1 / 3, 2 / 3]))]
    if not is_regression and n_classes == 2:
        y = np.where(y == "c", "b", y)
    holes = np.where(rng.random(n_rows) < 0.1, np.nan, x)
    return prepare(pa.table({"x": holes, "z": z, "g": rng.integers(0, 8, n_rows), "y": y}), "y", **options)


@compiled_only
@pytest.mark.parametrize(
    ("is_regression", "metric", "n_classes"),
    [
        (False, "accuracy", 3),
        (False, "balanced_accuracy", 3),
        (False, "log_loss", 3),
        (False, "roc_auc", 3),
        (False, "roc_auc", 2),
        (True, "r2", 0),
        (True, "mae", 0),
        (True, "rmse", 0),
    ],
)
@pytest.mark.sampled(5)
def test_scores_are_those_of_cross_validate(is_regression, metric, n_classes):
    data = make_data(is_regression=is_regression, n_classes=n_classes)
    study = compare(data, metric=metric, n_splits=2, n_repeats=1, seed=4)
    folds = make_folds(data, 2, 1, seed=4).splits
    sign = 1.0 if METRICS[metric].is_greater_better else -1.0
    for method, result in zip(all_methods(data.summary.task), study.methods, strict=True):
        assert result.error is None, result
        by_hand = cross_validate(method.make(4), data.X, data.y, cv=folds, scoring=METRICS[metric].scorer)
        assert np.array(result.scores) * sign == pytest.approx(by_hand["test_score"], rel=1e-12), method.name
    assert not study.is_partial
    assert {one.key for one in study.differences} | {study.best} == {one.key for one in study.methods}
    assert all(one.mean >= 0 for one in study.differences)


@compiled_only
@pytest.mark.parametrize("is_regression", [False, True])
def test_stacking_takes_part_where_it_is_named(is_regression):
    data = make_data(is_regression=is_regression)
    record = FoldRecord()
    study = compare(data, methods=["stacking"], n_splits=2, n_repeats=1, seed=3, record=record)
    result = study.method("stacking")
    assert result.error is None
    assert Study.from_json(study.to_json()) == study
    kind = spinney.StackingRegressor if is_regression else spinney.StackingClassifier
    members = [
        (name, getattr(spinney, stem + kind.__name__.removeprefix("Stacking"))())
        for name, stem in (("forest", "RandomForest"), ("extra_trees", "ExtraTrees"), ("boosting", "GradientBoosting"))
    ]
    stack = kind(members, random_state=3)
    by_hand = cross_validate(stack, data.X, data.y, cv=make_folds(data, 2, 1, seed=3).splits)
    assert list(result.scores) == pytest.approx(by_hand["test_score"], rel=1e-12)
    assert study.best == "stacking"
    np.testing.assert_array_equal(refit(study, data).predict(data.X), stack.fit(data.X, data.y).predict(data.X))
    evidence = examine(study, data, record)
    assert evidence.name == "stacking"
    assert "methods=['stacking']" in evidence.recipe


@compiled_only
def test_folds_inside_a_stack_are_of_whole_groups(monkeypatch):
    data = make_data(groups="g")
    seen = []

    def watch(cv, X, y, groups, *args, **options):
        seen.append(groups is not None)
        return make_stack_folds(cv, X, y, groups, *args, **options)

    monkeypatch.setattr(base_stacking, "make_stack_folds", watch)
    study = compare(data, methods=["stacking"], n_splits=2)
    assert study.method("stacking").error is None
    assert seen == [False, True, True]  # the first is the warm-up, of which nothing is kept


@compiled_only
def test_a_study_is_the_same_after_json():
    study = compare(make_data(), methods=["cart"], n_splits=2, n_repeats=1, is_tuned=True)
    assert Study.from_json(study.to_json()) == study
    with pytest.raises(ValueError, match="not the JSON of a study"):
        Study.from_json("[]")


@compiled_only
def test_what_a_method_costs_is_recorded():
    study = compare(make_data(), methods=["cart", "boosting"], n_splits=3, n_repeats=1)
    base, cart, boosting = study.methods
    assert base.n_leaves is None
    assert boosting.n_leaves > cart.n_leaves >= 1
    assert boosting.model_bytes > cart.model_bytes > 0
    assert all(len(one.fit_seconds) == len(one.predict_seconds) == 3 for one in study.methods)
    assert min(cart.fit_seconds) > 0
    assert study.versions["spinney"]


def test_tuning_is_a_search_inside_the_training_rows():
    data = make_data()
    study = compare(data, methods=["c45"], n_splits=2, n_repeats=1, is_tuned=True, seed=1)
    method = choose_methods("classification", ["c45"])[1]
    search = GridSearchCV(
        method.make(1), method.grid, scoring="accuracy", cv=StratifiedKFold(3, shuffle=True, random_state=1)
    )
    folds = make_folds(data, 2, 1, seed=1).splits
    by_hand = cross_validate(search, data.X, data.y, cv=folds, return_estimator=True)
    result = study.method("c45")
    assert result.name == "C4.5 (tuned)"
    assert result.scores == pytest.approx(by_hand["test_score"].tolist())
    assert list(result.chosen) == [one.best_params_ for one in by_hand["estimator"]]
    model = refit(study, data)
    assert model.get_params() == search.fit(data.X, data.y).best_estimator_.get_params()


@pytest.mark.parametrize("options", [{"groups": "g"}, {"time": "g"}])
def test_groups_and_times_reach_the_search_too(options):
    study = compare(make_data(**options), methods=["id3"], n_splits=2, is_tuned=True)
    assert [one.error for one in study.methods] == [None, None]


@compiled_only
def test_the_best_is_fitted_to_all_rows_and_saved(tmp_path):
    data = make_data()
    study = compare(data, methods=["forest"], n_splits=2, n_repeats=1, seed=2)
    refit(study, data).save_model(tmp_path / "best.spn")
    expected = choose_methods("classification", ["forest"])[1].make(2).fit(data.X, data.y)
    assert (load_model(tmp_path / "best.spn").predict_proba(data.X) == expected.predict_proba(data.X)).all()


def test_no_model_where_the_baseline_is_best():
    rng = np.random.default_rng(0)
    noise = pa.table({"x": rng.normal(size=60), "y": rng.permutation(["a"] * 50 + ["b"] * 10)})
    data = prepare(noise, "y")
    study = compare(data, methods=["id3"], n_splits=3, n_repeats=1)
    assert study.best == "baseline"
    with pytest.raises(ValueError, match="nothing beat the baseline"):
        refit(study, data)


# --- Stopping -----------------------------------------------------------------------------------------------------


class Slow(BaseEstimator):
    """A tree whose fits call `acts`, one after the other."""

    acts: ClassVar = []

    def __init__(self, model=None):
        self.model = model

    def fit(self, X, y):
        if Slow.acts:
            Slow.acts.pop(0)()
        self.model.fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)


def slow(monkeypatch, act, at):
    """Let the `at`-th fit of ID3 do something else first."""
    make = Method.make
    monkeypatch.setattr(Slow, "acts", [int] * (at - 1) + [act] * 10)
    monkeypatch.setattr(
        Method, "make", lambda self, seed: Slow(make(self, seed)) if self.key == "id3" else make(self, seed)
    )


def test_an_interrupt_leaves_what_was_finished(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    slow(monkeypatch, interrupt, at=4)  # the first is the warm-up
    study = compare(make_data(), methods=["id3", "c45"], n_splits=4, n_repeats=1)
    assert (study.is_partial, study.stopped) == (True, "interrupt")
    assert [len(one.scores) for one in study.methods] == [3, 2, 2]
    assert "2 of 4 folds, it was interrupted" in " ".join(study.notes)
    assert Study.from_json(study.to_json()) == study
    assert study.recommendation


def test_a_part_of_a_budget_begins_with_it():
    clock = Clock(10.0, start=time.perf_counter() - 3.0)
    assert clock.share(0.8).left == pytest.approx(5.0, abs=0.5)
    assert Clock().share(0.8).left == np.inf


def test_f15_the_alarm_of_a_budget_waits_for_an_import(monkeypatch):
    class Slow:
        def find_spec(self, name, *_):
            if name == "slow_module":
                time.sleep(0.2)  # the alarm comes in the middle
                return importlib.machinery.ModuleSpec(name, None, is_package=True)
            return None

    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    with pytest.raises(KeyboardInterrupt), Clock(0.05).alarm():  # noqa: PT012
        importlib.import_module("slow_module")
        time.sleep(60)
    assert sys.modules.pop("slow_module") is not None


def test_a_budget_stops_the_fit_that_takes_too_long(monkeypatch):
    slow(monkeypatch, lambda: time.sleep(60), at=3)
    data = make_data()
    compare(data, methods=["c45"], n_splits=2, n_repeats=1)  # kernels are loaded
    start = time.perf_counter()
    study = compare(data, methods=["id3", "c45"], n_splits=3, n_repeats=1, clock=Clock(4.0))
    assert time.perf_counter() - start < 20
    assert (study.is_partial, study.stopped) == (True, "budget")
    assert len(study.method("id3").scores) == 1
    assert study.method("id3").left_out == "the budget was spent"


def test_without_time_the_baseline_alone_has_a_score():
    study = compare(make_data(), methods=["id3"], n_splits=2, n_repeats=1, clock=Clock(1e-9))
    assert [len(one.scores) for one in study.methods] == [1, 0]
    assert study.best == "baseline"
    assert "No method finished a fold but the baseline" in study.recommendation
    assert Study.from_json(study.to_json()) == study
    with pytest.raises(ValueError, match="nothing beat the baseline"):
        refit(study, make_data())


def test_a_method_that_fails_is_a_line_of_the_result(monkeypatch):
    def fail():
        raise ValueError("boom\n  and so on")

    slow(monkeypatch, fail, at=1)
    study = compare(make_data(), methods=["id3", "c45"], n_splits=2, n_repeats=1)
    assert study.method("id3").error == "boom and so on"
    assert len(study.method("c45").scores) == 2
    assert "ID3 failed: boom and so on" in study.notes


# --- Choices ------------------------------------------------------------------------------------------------------


def test_methods_and_metrics_are_chosen_by_name():
    assert [one.key for one in choose_methods("regression", ["cart"])] == ["baseline", "cart"]
    with pytest.raises(ValueError, match=r"no method 'forrest' for regression; did you mean 'forest'\?"):
        choose_methods("regression", ["forrest"])
    with pytest.raises(ValueError, match="name at least one of id3"):
        choose_methods("regression", ["baseline"])
    with pytest.raises(ValueError, match="'c45' for regression"):
        choose_methods("regression", ["c45"])
    assert "stacking" not in [one.key for one in choose_methods("regression")]
    assert [one.key for one in choose_methods("regression", ["stacking", "cart"])] == ["baseline", "cart", "stacking"]
    assert choose_metric(None, "regression").name == "r2"
    with pytest.raises(ValueError, match="'r2' is not one for classification: choose one of accuracy"):
        choose_metric("r2", "classification")


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), ("60s", 60), ("5m", 300), ("1.5h", 5400), (" 2 min ", 120)])
def test_durations(text, seconds):
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "-3s", "0s", "3 weeks", "nan"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="is no duration"):
        read_duration(text)
