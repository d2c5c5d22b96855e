"""Rows that are alike, boosted as one, grow the trees of all of them, with their losses."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from spinney import GradientBoostingClassifier, _jit
from spinney.ensemble import alike_rows, boosting
from spinney.ensemble.alike_rows import AlikeRows, find_alike, may_be_joined
from spinney.ensemble.losses import Exponential, LogLoss, Softmax
from spinney.estimators import base_boosting
from spinney.tree.boost import BoostParams

compiled_only = pytest.mark.compiled(reason="takes minutes interpreted")


@pytest.fixture(params=["interpreted", "compiled"])
def doors(request):
    kernels = _jit.interpreted() if request.param == "interpreted" else _jit.compiled()
    return kernels.data.alike_rows


def number(doors, rows, marks, most):
    """Numbers of rows by the kernel, in a table of places that is nearly full; None: more differ."""
    places = np.full(1 << max(most, 1).bit_length(), -1, np.int32)
    numbers, first = np.full(len(marks), -5, np.int32), np.full(most, -5, np.int32)
    times = np.full(most, -5, np.int64)
    n = doors.number_alike(rows.reshape(-1), rows.shape[1], marks, places, numbers, first, times)
    return None if n < 0 else (numbers.tolist(), first[:n].tolist(), times[:n].tolist())


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [1, 2, 300])
def test_numbers_are_those_of_first_rows(doors, n_rows, width):
    """As a dictionary has them; rows that differ in the last word or in the target alone are told apart."""
    rng = np.random.default_rng(n_rows + width)
    rows = np.zeros((n_rows, width), np.uint64)
    rows[:, -1] = rng.integers(0, 40, n_rows) << 56
    marks = rng.integers(0, 3, n_rows).astype(np.float64)
    known, numbers, first = {}, [], []
    for i, key in enumerate(zip(map(tuple, rows.tolist()), marks.tolist(), strict=True)):
        if key not in known:
            known[key] = len(known)
            first.append(i)
        numbers.append(known[key])
    found = number(doors, rows, marks, len(known))
    assert found == (numbers, first, np.bincount(numbers).tolist())
    assert number(doors, rows, marks, len(known) - 1) is None


def test_sums_are_those_of_all_rows_in_their_order(doors):
    rng = np.random.default_rng(0)
    for n_rows in (1, 4096, 4097, 9000):
        numbers, values = rng.integers(0, 50, n_rows).astype(np.int32), rng.normal(size=50) * 10.0 ** rng.integers(0, 9)
        sums = np.empty((-(-n_rows // 4096), 2))
        doors.sum_alike(values, numbers, sums)
        for block, (total, n) in enumerate(sums.tolist()):
            expected = 0.0
            mine = numbers[4096 * block :][:4096]
            for value in values[mine].tolist():
                expected += value
            assert (total, n) == (expected, len(mine))


def bins_of(rows):
    return SimpleNamespace(rows=rows)


def test_alike_rows_are_looked_for_where_a_sample_has_some(monkeypatch):
    kernels = _jit.interpreted()
    rows = np.zeros((5000, 8), np.uint8)
    rows[:, 0] = np.arange(5000) % 7
    y = (np.arange(5000) % 2).astype(np.float64)
    found = find_alike(bins_of(rows), y, kernels)
    assert len(found.first) == 14
    assert found.times.sum() == 5000
    np.testing.assert_array_equal(rows[found.first][found.numbers], rows)
    np.testing.assert_array_equal(y[found.first][found.numbers], y)
    assert find_alike(bins_of(rows[:4000]), y[:4000], kernels) is None  # too few rows
    alone = np.ones_like(rows)
    assert len(find_alike(bins_of(alone), y, kernels).first) == 2
    assert find_alike(bins_of(alone), np.ones(5000), kernels) is None  # its one weight would be that of all rows
    rows[:, 1:3] = np.arange(5000, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    assert find_alike(bins_of(rows), y, kernels) is None  # all differ
    rows[::2] = 0  # those of the sample alone are alike
    monkeypatch.setattr(alike_rows, "MOST_SHARE", 0.4)
    assert find_alike(bins_of(rows), y, kernels) is None


def test_rows_are_joined_only_where_that_changes_nothing():
    plain = {"subsample": 1.0, "min_samples_leaf": 20}
    assert may_be_joined(LogLoss(), BoostParams(**plain))
    assert may_be_joined(Softmax(3), BoostParams(**plain, min_samples_split=40))
    assert not may_be_joined(Exponential(), BoostParams(**plain))
    others = [{"min_samples_split": 41}, {"candidates": "hessian"}, {"drop_rate": 0.1}, {"newton": False}]
    for other in [*others, {"subsample": 0.5}]:
        assert not may_be_joined(LogLoss(), BoostParams(**{**plain, **other}))


# ----------------------------------------------------------------------------------------------------------- whole fits


def draw_rows(n_rows, *, has_missing, has_levels):
    rng = np.random.default_rng(n_rows)
    x = np.column_stack([rng.integers(0, k, n_rows) for k in (3, 2, 4, 2, 5)]).astype(np.float64)
    x[:, 4] *= rng.random(n_rows) < 0.05
    y = (x[:, 0] + x[:, 1] * x[:, 2] + (rng.random(n_rows) < 0.1) * rng.integers(0, 5, n_rows)).astype(int) % 5
    if has_missing:
        x[rng.random(x.shape) < 0.03] = np.nan
    frame = pd.DataFrame(x, columns=list("abcde"))
    if has_levels:
        frame["f"] = pd.Categorical(np.array(["u", "v", "w"])[rng.integers(0, 3, n_rows)])
    return frame, y


def bits_of(model, X):
    forest = model._fitted.forest
    arrays = [forest.hot, forest.n_rows, forest.weight, forest.impurity, model.predict_proba(X[:200])]
    return [array.tobytes() for array in arrays], model._fitted.curves


SETTINGS = {
    "plain": {},
    "single rows": {"min_samples_leaf": 1},
    "large leaves": {"min_samples_leaf": 300},
    "share of the rows": {"min_weight_fraction_leaf": 0.04},
    "pruned": {"pruning": "post", "gamma": 5.0},
    "depth first": {"max_leaf_nodes": None, "max_depth": 3, "max_features": 2, "reg_alpha": 1.0},
    "levels pay": {"cat_penalty": 0.5},
    "missing": {},
    "nearly one leaf": {"min_samples_leaf": 2600},
    "one leaf": {"min_samples_leaf": 4000},
}


@compiled_only
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", SETTINGS)
def test_models_are_those_of_all_rows(monkeypatch, name, n_classes):
    n_rows = 6000
    X, y = draw_rows(n_rows, has_missing=name == "missing", has_levels=name != "pruned")
    y = y if n_classes == 5 else np.int64(y > 1)
    params = {"n_estimators": 3, "max_leaf_nodes": 12, "min_samples_leaf": 20, "subsample": 1.0, "random_state": 0}
    joined = []

    def fit(n_jobs, weight=None):
        model = GradientBoostingClassifier(**{**params, **SETTINGS[name]}, n_jobs=n_jobs)
        return bits_of(model.fit(X, y, sample_weight=weight), X)

    def join(rows, *others):
        done = alike_rows.join_alike(rows, *others)
        joined.append(done.alike is not None)
        return done

    monkeypatch.setattr(base_boosting, "join_alike", lambda rows, *_: rows)
    expected = fit(1)
    monkeypatch.setattr(base_boosting, "join_alike", join)
    assert fit(1) == expected
    assert fit(3) == expected
    monkeypatch.setattr("spinney.tree.boost.SHARE_CELLS", 1 << 8)  # shared nodes of few rows
    monkeypatch.setattr("spinney.tree.boost.BATCH_CELLS", 1 << 6)
    monkeypatch.setattr(boosting, "ROWS_AT_ONCE", 1)
    assert fit(3) == expected
    monkeypatch.setattr(boosting, "ROUNDED", 0.5)  # any sum may be another in other units: all rows are added up
    assert fit(1) == expected
    assert joined == [True] * 4
    fit(1, np.full(n_rows, 2.0))
    assert not joined[-1]


@compiled_only
def test_trees_of_all_classes_count_every_row(monkeypatch):
    X, y = draw_rows(6000, has_missing=False, has_levels=False)
    params = {"n_estimators": 2, "max_leaf_nodes": 31, "min_samples_leaf": 150, "subsample": 1.0, "random_state": 0}
    model = GradientBoostingClassifier(**params, multi_strategy="one_tree")
    forest = model.fit(X, y)._fitted.forest
    assert forest.n_rows[0] == len(y)
    monkeypatch.setattr(base_boosting, "join_alike", lambda rows, *_: rows)
    assert bits_of(model, X) == bits_of(model.fit(X, y), X)


def test_sums_in_doubt_are_those_of_all_rows():
    alike = AlikeRows(np.array([0, 1, 0], np.int32), np.array([0, 1], np.int32), np.array([2, 1]))
    assert alike.total(np.array([0.1, 0.7]), _jit.interpreted()) == math.fsum([0.1 + 0.7 + 0.1])
