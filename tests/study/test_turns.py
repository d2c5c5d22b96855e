"""Under a budget: strong methods first, one fold for each before two for any, fewer rows where all take too long."""

import time

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor

from spinney.study import compare, prepare
from spinney.study.clock import Clock
from spinney.study.methods import Method, all_methods
from spinney.study.result import Study, TableSummary
from spinney.study.significance import find_best, keep_folds
from spinney.study.turns import ORDER, Training, count_affordable, extrapolate
from study_results import result


class Paced(BaseEstimator):
    """A mean whose fit takes a time for each row, and tells that it was called."""

    def __init__(self, key="", per_row=0.0, once=0.0, n_estimators=100):
        self.key = key
        self.per_row = per_row
        self.once = once
        self.n_estimators = n_estimators  # which a warm-up sets

    def fit(self, X, y):  # noqa: ARG002
        if self.once and self.key not in COMPILED:
            COMPILED.add(self.key)
            time.sleep(self.once)
        CALLS.append((self.key, len(y)))
        time.sleep(self.per_row * len(y))
        self.model_ = DummyRegressor().fit(np.zeros((len(y), 1)), y)
        return self

    def predict(self, X):
        return self.model_.predict(np.zeros((X.num_rows, 1)))


CALLS: list = []
COMPILED: set = set()


@pytest.fixture
def paced(monkeypatch):
    """Methods that take as long as they are told to, by key."""
    CALLS.clear()
    COMPILED.clear()

    def set_pace(**paces):
        make = Method.make

        def made(self, seed):
            return make(self, seed) if self.is_baseline else Paced(self.key, **paces.get(self.key, {}))

        monkeypatch.setattr(Method, "make", made)

    return set_pace


def make_data(n_rows):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n_rows)
    return prepare(pa.table({"x": x, "y": x + rng.normal(size=n_rows)}), "y")


def test_every_method_has_a_place():
    assert {one.key for task in ("classification", "regression") for one in all_methods(task)} == set(ORDER)


def test_strong_methods_come_first_and_all_get_one_fold_before_any_gets_two(paced):
    paced()
    study = compare(make_data(2000), n_splits=2, n_repeats=1, clock=Clock(60.0))
    fits = [key for key, n_rows in CALLS if n_rows == 1000]
    keys = [key for key in ORDER if key not in {"baseline", "c45"}]
    first = [key for key in fits if fits.count(key) >= 2]
    assert list(dict.fromkeys(first)) == keys
    assert fits[-len(keys) :] == keys  # the second fold, in the same order
    assert study.stopped is None


def test_a_method_too_slow_for_one_fold_is_fitted_on_fewer_rows(paced):
    paced(id3={"per_row": 5e-4})  # 8 s a fold, of 16,000 rows
    study = compare(make_data(20_000), methods=["id3", "cart", "boosting"], n_splits=5, n_repeats=1, clock=Clock(12.0))
    slow = study.method("id3")
    assert len(slow.scores) == 1
    assert 200 <= slow.n_rows <= 8000
    assert [len(study.method(key).scores) for key in ("cart", "boosting")] == [5, 5]
    assert study.label(slow) == f"ID3 (1 of 5 folds on {slow.n_rows:,} rows)"
    assert f"ID3: 1 of 5 folds fitted on {slow.n_rows:,} rows, the budget was spent" in study.notes
    assert study.ranked[-1] is slow or study.ranked[-1].mean is None
    assert "Time was short: ID3 did not finish every fold." in study.recommendation
    assert Study.from_json(study.to_json()) == study


def test_a_fit_that_no_sample_announced_is_stopped_and_made_smaller(paced):
    paced(id3={"per_row": 2e-3})  # 3.2 s a fold of 1,600 rows: too few for samples
    study = compare(make_data(2000), methods=["id3", "boosting"], n_splits=5, n_repeats=1, clock=Clock(9.0))
    assert study.method("id3").n_rows == 200
    assert len(study.method("boosting").scores) == 5


def test_the_compiler_is_not_charged(paced):
    paced(boosting={"once": 3.0})
    study = compare(make_data(500), methods=["boosting", "cart"], n_splits=3, n_repeats=1, clock=Clock(2.5))
    assert [len(one.scores) for one in study.methods] == [3, 3, 3]
    assert study.stopped is None
    assert study.seconds < 2.5


def test_time_that_is_spared_is_spared_by_the_parts_too():
    clock = Clock(10.0, start=time.perf_counter() - 8.0)
    part = clock.share(0.8)
    clock.spare(6.0)
    assert clock.left == pytest.approx(8.0, abs=0.5)
    assert part.left == pytest.approx(6.0, abs=0.5)
    assert clock.part(3.0).left == pytest.approx(3.0, abs=0.5)
    assert clock.part(30.0).left == pytest.approx(8.0, abs=0.5)


def test_costs_of_samples_are_a_line():
    assert extrapolate(1.0, 2.5, (1000, 4000), 10_000) == 5.5
    assert extrapolate(1.0, 0.9, (1000, 4000), 10_000) == 1.0  # the second was quicker by chance
    assert count_affordable(100_000, seconds=100.0, allowance=10.0) == 7000
    assert count_affordable(100_000, seconds=1e9, allowance=1.0) == 200
    assert count_affordable(100_000, seconds=10.0, allowance=9.9) == 50_000


def test_samples_are_some_of_the_rows_in_order():
    whole = Training(pa.table({"x": np.arange(100.0)}), np.arange(100) * 2)
    part = whole.sample(10)
    assert len(part.rows) == part.X.num_rows == 10
    assert (np.diff(part.rows) > 0).all()
    assert (part.X["x"].to_numpy() * 2 == part.rows).all()
    assert whole.sample(100) is whole


# --- The order of the table is that of what it shows --------------------------------------------------------------


def study_of(results):
    best = find_best(results, 0.25, is_greater_better=True)
    return Study(
        summary=TableSummary("t", 100, "y", "classification", (), (), {}),
        metric="accuracy", is_greater_better=True, folds="5 folds", n_folds=5, train_rows=80, test_rows=20,
        methods=keep_folds(results, best), best=best, differences=(), recommendation="", notes=(), seed=0,
        is_tuned=False, n_cores=1, versions={}, seconds=1.0,
    )  # fmt: skip


def test_a_higher_mean_of_fewer_folds_stands_below_and_says_so():
    base = result("baseline", [0.5] * 5)
    id3 = result("id3", [0.996, 0.995, 0.997, 0.996, 0.996])
    extra = result("extra-trees", [0.999, 0.9985, 0.9985, 0.9995], folds=(0, 1, 2, 3))
    study = study_of([base, id3, extra, result("weak", [0.7] * 5)])
    assert study.best == "extra-trees"  # significantly better in the folds that both have
    means = [one.mean for one in study.ranked]
    assert means == sorted(means, reverse=True)
    assert study.method("id3").folds == (0, 1, 2, 3)
    noisy = result("extra-trees", [1.0, 0.9, 0.999, 0.98], folds=(0, 1, 2, 3))
    study = study_of([base, id3, noisy, result("weak", [0.7] * 5)])
    assert [one.key for one in study.ranked] == ["id3", "weak", "baseline", "extra-trees"]
    assert study.label(noisy) == "extra-trees (4 of 5 folds)"


def test_the_baseline_takes_no_place_from_a_method_of_fewer_folds():
    base, weak = result("baseline", [0.5] * 5), result("weak", [0.4] * 5)
    assert find_best([base, weak, result("late", [0.8, 0.8], folds=(0, 1))], 0.25, is_greater_better=True) == "late"
    small = result("small", [0.9], n_rows=200)
    assert find_best([base, weak, small], 0.25, is_greater_better=True) == "small"
    assert find_best([base, result("whole", [0.6] * 5), small], 0.25, is_greater_better=True) == "whole"


def test_where_time_was_too_short_for_all_the_best_still_comes_first():
    base = result("baseline", [0.5])
    small, smaller = result("boosting", [0.9], n_rows=400), result("forest", [0.8], n_rows=300)
    study = study_of([base, smaller, small])
    assert [one.key for one in study.ranked] == ["boosting", "forest", "baseline"]
    assert study.label(small) == "boosting (1 of 5 folds on 400 rows)"


def test_boosting_the_forest_and_the_baseline_have_a_score_even_when_the_time_is_over(paced):
    paced()
    study = compare(make_data(2000), n_splits=5, n_repeats=1, clock=Clock(1e-9))
    scored = {one.key: (len(one.scores), one.n_rows) for one in study.methods if one.scores}
    assert scored == {"baseline": (1, None), "boosting": (1, 200), "forest": (1, 200)}
    assert study.stopped == "budget"
    assert "on one fold only" in study.recommendation or "baseline" in study.recommendation
    assert "Time was short" in study.recommendation
