"""Gradient boosting as a user has it: the same bits, exact sums, constraints that hold, and what others find."""

import csv
import math
import os
import subprocess
import sys
import threading
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn import ensemble
from threadpoolctl import threadpool_limits

from boosting_cases import ARRAYS, raw_of, same_forest
from plain_boosting import plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor, _jit
from spinney._threads import Team
from spinney._types import THRESHOLD
from spinney.ensemble.boosting import Boosting, count_side_by_side
from spinney.ensemble.losses import Softmax
from spinney.ensemble.sampling import Draw
from spinney.tree.boost import PAYING_NODES, SHARE_CELLS, BoostGrowth, BoostParams, limit_workers

NUMBERS = ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
CLASSES = ["log_loss", "exponential", "four classes"]
LOSSES = [*NUMBERS, *CLASSES, "two functions"]
NEAR = 3e-5  # of peers that keep gradients as float32
compiled_only = pytest.mark.compiled(reason="takes minutes interpreted")
FREE = {"min_samples_leaf": 1, "min_child_weight": 0.0, "reg_lambda": 0.0}


def make_model(loss, **parameters):
    """A model of a loss by its name in LOSSES."""
    if loss in CLASSES:
        name = "log_loss" if loss == "four classes" else loss
        return GradientBoostingClassifier(**plain(loss=name, **parameters))
    if loss == "two functions":
        loss = (lambda y, raw: np.tanh(raw - y), lambda y, raw: 1.1 - np.tanh(raw - y) ** 2)
    return GradientBoostingRegressor(**plain(loss=loss, **parameters))


def make_table(n_rows, loss, seed=0, n_levels=12):
    """Two numbers, one of them coarse and with holes, a number of many values, a category with holes; a target."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([
        rng.normal(size=n_rows), rng.normal(size=n_rows).round(1), rng.integers(0, 5000, n_rows) / 7.0,
        rng.integers(0, n_levels, n_rows),
    ])  # fmt: skip
    score = X[:, 0] - 0.5 * X[:, 1] ** 2 + (X[:, 3] % 3) + X[:, 2] / 700 + rng.normal(size=n_rows) / 2
    X[rng.random(n_rows) < 0.1, 1] = math.nan
    X[rng.random(n_rows) < 0.1, 3] = math.nan
    if loss in CLASSES:
        n_classes = 4 if loss == "four classes" else 2
        return X, np.argsort(np.argsort(score)) * n_classes // n_rows
    if loss in {"poisson", "tweedie"}:
        return X, rng.poisson(np.exp(score / 3)).astype(float)
    return X, np.exp(score / 3) if loss == "gamma" else score


CATEGORY = {"categorical_features": [3]}


# ------------------------------------------------------------------------------------------------------------ same bits


@compiled_only
@pytest.mark.parametrize("way", ["hands", "batches", "both"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.sampled(4)
def test_threads_and_shares_of_any_size_change_no_bit(monkeypatch, loss, way):
    """Rows, nodes and batches of nodes are shared out from next to nothing on."""
    X, y = make_table(9000, loss)
    options = {"n_estimators": 3, "max_leaf_nodes": 20, "min_samples_leaf": 5, **CATEGORY}
    if loss in {"squared_error", "four classes"}:
        options |= {"subsample": 0.7, "max_features": 3}
    alone = make_model(loss, n_jobs=1, random_state=0, **options).fit(X, y)
    monkeypatch.setattr("spinney.estimators.base_boosting.SHARED_ROWS", 1)
    monkeypatch.setattr("spinney.ensemble.boosting.ROWS_AT_ONCE", 1)
    monkeypatch.setattr("spinney.tree.boost.SHARE_CELLS", 1)
    plain, counts = BoostGrowth.settings, {"passes": 0, "trees": 0}
    changes = {"share_rows": {"hands": 1, "batches": 10**9, "both": 300}[way], "batch_rows": 1}
    changes["piece_rows"] = {"hands": 1, "batches": 1000, "both": 100}[way]
    if way != "hands":
        changes["likely_gain"] = 0.0
    monkeypatch.setattr(BoostGrowth, "settings", lambda *a: plain(*a)._replace(**changes))

    def count(name, call):
        def counted(*arguments):
            counts[name] += 1
            call(*arguments)

        return counted

    monkeypatch.setattr(Team, "run", count("passes", Team.run))
    monkeypatch.setattr(Team, "lead", count("trees", Team.lead))
    for n_jobs in (2, 8):
        counts |= {"passes": 0, "trees": 0}
        model = make_model(loss, n_jobs=n_jobs, random_state=0, **options).fit(X, y)
        assert same_forest(model, alone), f"{n_jobs} threads"
        assert counts["passes"] >= 9
        assert counts["trees"] >= 3
        np.testing.assert_array_equal(raw_of(model, X), raw_of(alone, X))


@compiled_only
def test_nodes_of_two_rows_are_some_threads(monkeypatch):
    """Where 64 features tell how little a row weighs, two rows have no child to be summed: by its size no work."""
    for name, cells in (("SHARE_CELLS", 1 << 9), ("BATCH_CELLS", 1 << 7), ("PIECE_CELLS", 1 << 6)):
        monkeypatch.setattr(f"spinney.tree.boost.{name}", cells)
    monkeypatch.setattr("spinney.estimators.base_boosting.SHARED_ROWS", 1)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 70)).round(1)
        y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
        options = {"n_estimators": 7, "min_samples_leaf": 1, "max_leaf_nodes": 300, "random_state": seed}
        alone = GradientBoostingClassifier(n_jobs=1, **options).fit(X, y)
        for n_jobs in (2, 3, 16):
            assert same_forest(GradientBoostingClassifier(n_jobs=n_jobs, **options).fit(X, y), alone), (seed, n_jobs)


BAGS = {
    "leaves of all rows": {"subsample": "auto", "leaf_rows": "all"},
    "judged by rows outside": {"subsample": 0.8, "leaf_rows": "all"},
    "leaves of the bag": {"subsample": "auto", "leaf_rows": "bag"},
}


@compiled_only
@pytest.mark.parametrize("options", BAGS.values(), ids=BAGS)
@pytest.mark.parametrize("n_jobs", [3, 20])
def test_bags_of_many_blocks_are_those_of_one_thread(monkeypatch, options, n_jobs):
    """Threads draw blocks of a bag, put them together, route the rows outside, and sum rows by leaf."""
    X, y = make_table(9000, "log_loss")
    monkeypatch.setattr("spinney.ensemble.boosting.Draw", partial(Draw, block_bits=11))
    options = {"n_estimators": 4, "random_state": 0, "max_leaf_nodes": 12, **CATEGORY, **options}
    alone = make_model("log_loss", n_jobs=1, **options).fit(X, y)
    monkeypatch.setattr("spinney.estimators.base_boosting.SHARED_ROWS", 1)
    monkeypatch.setattr("spinney.ensemble.boosting.ROWS_AT_ONCE", 1)
    monkeypatch.setattr("spinney.tree.routed_rows.ROUTED_ROWS", 37)
    monkeypatch.setattr("spinney.tree.boost.SHARE_CELLS", 1)
    for _ in range(4):  # threads in each other's way would hardly be so twice
        model = make_model("log_loss", n_jobs=n_jobs, **options).fit(X, y)
        assert same_forest(model, alone)
        np.testing.assert_array_equal(raw_of(model, X), raw_of(alone, X))


@pytest.mark.parametrize("is_judged", [False, True])
def test_rows_outside_the_bag_are_summed_apart_only_where_they_judge(monkeypatch, is_judged):
    X, y = make_table(600, "log_loss")
    seen, add = [], Boosting.make_sums
    options = {"n_estimators": 3, "subsample": 0.7 if is_judged else "auto", "leaf_rows": "all", "random_state": 0}
    monkeypatch.setattr(Boosting, "make_sums", lambda *a, parts: (seen.append(parts), add(*a, parts=parts))[1])
    one = make_model("log_loss", **options).fit(X, y)
    assert set(seen) == {is_judged}
    monkeypatch.setattr(Boosting, "make_sums", lambda *a, parts: add(*a, parts=parts or True))
    assert same_forest(make_model("log_loss", **options).fit(X, y), one)


def test_threads_are_not_taken_by_default_for_nodes_that_are_not_worth_it():
    many = int(PAYING_NODES * SHARE_CELLS) // 8  # a table whose root alone would be shared is not enough
    few = many - 1
    assert [limit_workers(4, n_jobs, few, 8) for n_jobs in (None, 4, -1)] == [1, 4, 4]
    assert limit_workers(4, None, many, 8) == 4
    assert [limit_workers(4, None, few, 8, n_trees) for n_trees in (3, 26)] == [3, 4]  # a tree each


SIDES = {
    "all rows": {"subsample": 1.0, "max_features": None},
    "bags": {"subsample": 0.6, "max_features": 2, "min_samples_leaf": 3},
    "leaves of all rows": {"subsample": 0.5, "leaf_rows": "all", "max_features_per_tree": 3},
    "defaults": {"n_estimators": "auto", "effort": 0.2},
    "interactions": {"interaction_cst": [[0, 1], [2, 3]], "newton": False, "pruning": "post", "gamma": 0.1},
    "stop": {"n_iter_no_change": 2, "validation_fraction": 0.2, "n_estimators": 8},
}


@compiled_only
@pytest.mark.parametrize("has_weights", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("options", SIDES.values(), ids=SIDES)
def test_trees_of_a_round_that_grow_side_by_side_are_those_of_one_thread(monkeypatch, options, has_weights):
    """Threads of any number, which take a class each, one after the other."""
    X, y = make_table(1500, "four classes")
    weight = np.random.default_rng(0).random(len(y)) + 0.5 if has_weights else None
    options = {"n_estimators": 4, "max_leaf_nodes": 12, "random_state": 0, **CATEGORY, **options}
    alone = make_model("four classes", n_jobs=1, **options).fit(X, y, sample_weight=weight)
    rounds, grow = [], Boosting.grow_side_by_side
    monkeypatch.setattr(Boosting, "grow_side_by_side", lambda *a: (rounds.append(len(a[1])), grow(*a)))
    for n_jobs in (2, 3, 4, 9):
        model = make_model("four classes", n_jobs=n_jobs, **options).fit(X, y, sample_weight=weight)
        assert rounds[-1] == min(n_jobs, 4)
        assert same_forest(model, alone)
        np.testing.assert_array_equal(raw_of(model, X), raw_of(alone, X))


@pytest.mark.parametrize(
    ("options", "n_trees"),
    [({}, 4), ({"drop_rate": 0.3}, 1), ({"subsample": 0.5, "sampling": "gradient"}, 1), ({"candidates": "hessian"}, 1)],
    ids=str,
)
def test_threads_are_for_trees_that_need_not_wait(options, n_trees):
    assert count_side_by_side(Softmax(4), BoostParams(**options)) == n_trees


@compiled_only
@pytest.mark.parametrize("options", [{"drop_rate": 0.3}, {"subsample": 0.5, "sampling": "gradient"}], ids=str)
def test_what_goes_by_trees_before_grows_one_after_the_other(monkeypatch, options):
    X, y = make_table(1500, "four classes")
    monkeypatch.setattr(Boosting, "grow_side_by_side", None)
    models = [make_model("four classes", n_estimators=4, n_jobs=n, random_state=0, **options).fit(X, y) for n in (1, 3)]
    assert same_forest(*models)


ENDS = {
    "all rows": {},
    "bags": {"subsample": 0.6},
    "pruned": {"pruning": "post", "gamma": 3.0},
    "penalties": {"reg_alpha": 2.0, "reg_lambda": 1.0},
    "no split": {"min_samples_leaf": 40, "subsample": 0.9},
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "four classes"])
def test_a_tree_is_finished_in_one_call_as_step_by_step(monkeypatch, loss, weighs, end):
    """Few rows are taken leaf by leaf; many in their order, by threads: the numbers are the same."""
    X, y = make_table(70, loss)
    weight = np.random.default_rng(0).integers(1, 4, len(X)) / (3.0 if end == "bags" else 1.0) if weighs else None
    options = {"n_estimators": 3, "max_leaf_nodes": 9, "min_samples_leaf": 3, "leaf_rows": "bag", "random_state": 0}
    models = []
    for rows_at_once in (1 << 16, 1):
        monkeypatch.setattr("spinney.ensemble.boosting.ROWS_AT_ONCE", rows_at_once)
        model = make_model(loss, n_jobs=1, **{"subsample": 1.0, **options, **CATEGORY, **ENDS[end]})
        models.append(model.fit(X, y, sample_weight=weight))
    assert same_forest(*models)
    assert models[0].train_score_.tolist() == models[1].train_score_.tolist()
    np.testing.assert_array_equal(raw_of(models[0], X), raw_of(models[1], X))


@compiled_only
def test_a_system_that_gives_no_thread_is_enough(monkeypatch):
    X, y = make_table(9000, "squared_error")
    alone = make_model("squared_error", n_estimators=2, n_jobs=1).fit(X, y)
    start = threading.Thread.start

    def starve(thread):
        if thread.name.startswith("spinney-") and not thread.name.startswith("spinney-pool"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starve)
    assert same_forest(make_model("squared_error", n_estimators=2, n_jobs=2).fit(X, y), alone)


DIGEST = """
import hashlib, sys
import numpy as np
from spinney import GradientBoostingClassifier, GradientBoostingRegressor, _jit
if "compiled" in sys.argv:
    _jit.load_compiled()
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)).round(1)
X[:, 3] = rng.integers(0, 9, 60)
X[rng.random(X.shape) < 0.1] = np.nan
number = np.abs(np.nan_to_num(X[:, 0])) + rng.random(60) + 0.1
result = hashlib.sha256()
options = {"n_estimators": 2, "max_leaf_nodes": 5, "min_samples_leaf": 3, "random_state": 0}
plain = {"subsample": 1.0, "max_features": None}
for more in (
    {}, plain, {"categorical_features": [3]}, {"max_bins": 5, "newton": False}, {"subsample": 0.5, "max_features": 2},
    {"reg_alpha": 0.3, "gamma": 0.05, "pruning": "post", "max_bins": None}, {"monotonic_cst": [1, -1, 0, 0]},
    {"interaction_cst": [[0, 1], [2, 3]], "max_features_per_tree": 3}, {"candidates": "hessian", "max_bins": 7},
):
    models = [GradientBoostingClassifier(**options, **more).fit(X, number > 1)]
    if "monotonic_cst" not in more:
        models.append(GradientBoostingClassifier(**options, **more).fit(X, rng.integers(0, 3, 60)))
    for loss in ("squared_error", "huber", "gamma"):
        models.append(GradientBoostingRegressor(loss=loss, **options, **more).fit(X, number, number.round()))
    for model in models:
        forest = model.forest_
        for array in (forest.hot, forest.weight, forest.impurity, forest.subsets, model.predict(X)):
            result.update(array.tobytes())
print(result.hexdigest())
"""


def digest(*arguments, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    process = subprocess.run(
        [sys.executable, "-c", DIGEST, *arguments], env=kept | environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


@pytest.mark.slow
def test_processes_hash_seeds_and_the_interpreter_change_no_bit():
    """Compiled, with strings hashed otherwise, and without a compiler."""
    expected = digest("compiled", PYTHONHASHSEED="0")
    assert digest("compiled", PYTHONHASHSEED="12345") == expected
    assert digest(NUMBA_DISABLE_JIT="1", PYTHONHASHSEED="7") == expected


WAYS = {
    "newton": {},
    "friedman": {"newton": False},
    "few bins": {"max_bins": 9},
    "bins by hessian": {"candidates": "hessian", "max_bins": 9},
    "penalties": {"reg_alpha": 0.7, "gamma": 0.01, "pruning": "post", "min_child_weight": 2.5},
}


@compiled_only
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", LOSSES)
def test_two_rows_are_one_of_weight_2_in_any_order(loss, way):
    X, y = make_table(400, loss)
    counts = np.random.default_rng(1).integers(1, 4, len(y))
    options = {"n_estimators": 4, "max_leaf_nodes": 12, "learning_rate": 0.4, **FREE, **CATEGORY, **WAYS[way]}
    weighed = make_model(loss, **options).fit(X, y, counts)
    rows = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), counts))
    repeated = make_model(loss, **options).fit(X[rows], y[rows])
    for name in ARRAYS:
        if name != "n_rows":
            found, expected = getattr(repeated.forest_, name), getattr(weighed.forest_, name)
            np.testing.assert_array_equal(found, expected, err_msg=name)
    np.testing.assert_array_equal(raw_of(repeated, X), raw_of(weighed, X))
    assert weighed.forest_.n_nodes > 40


# ----------------------------------------------------------------------------------- rare classes, outliers: exact sums


def gradients_of(loss, y, raw):
    """First and second derivatives in float64, (n_rows,) each."""
    if loss in {"log_loss", "exponential"}:
        p = expit(raw) if loss == "log_loss" else np.exp(np.where(y == 1, -raw, raw))
        return (p - y, p * (1 - p)) if loss == "log_loss" else (np.where(y == 1, -p, p), p)
    if loss == "squared_error":
        return raw - y, np.ones(len(y))
    mean = np.exp(raw)
    match loss:
        case "poisson":
            return mean - y, mean
        case "gamma":
            return 1 - y / mean, y / mean
        case "tweedie":
            return mean**0.5 - y * mean**-0.5, 0.5 * mean**0.5 + 0.5 * y * mean**-0.5
    raise ValueError(loss)


def assert_leaves_are_exact(model, X, y, loss, weight=None, rel=1e-9):
    """The value of each leaf of each tree is that of the float64 sums of its rows; returns the smallest leaf."""
    weight = np.ones(len(y)) if weight is None else weight
    leaf = model.apply(X).reshape(len(X), -1)
    raw = np.full(len(y), model.init_[0])
    smallest = math.inf
    for t, tree in enumerate(model.forest_):
        g, h = gradients_of(loss, y, raw)
        order = np.argsort(leaf[:, t], kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(leaf[order, t])) + 1):
            node = leaf[rows[0], t]
            G, H = math.fsum(weight[rows] * g[rows]), math.fsum(weight[rows] * h[rows])
            size = math.fsum(weight[rows] * np.abs(g[rows]))
            assert tree.n_rows[node] == len(rows)
            assert tree.weight[node] == pytest.approx(H, rel=rel)
            value = -model.learning_rate * G / (H + model.reg_lambda)
            slack = model.learning_rate * rel * size / (H + model.reg_lambda)
            assert tree.threshold[node] == pytest.approx(value, rel=rel, abs=slack)
            smallest = min(smallest, len(rows))
        raw += tree.threshold[leaf[:, t]]
    return smallest


def best_root(X, g, h, reg_lambda):
    """Largest gain of a cut of whole-numbered columns without missing values, in float64."""
    best = 0.0
    for column in X.T.astype(int):
        G, H = np.cumsum(np.bincount(column, g))[:-1], np.cumsum(np.bincount(column, h))[:-1]
        rest, all_h = g.sum() - G, h.sum()
        inside = (H > 1e-3) & (all_h - H > 1e-3)
        gain = G**2 / (H + reg_lambda) + rest**2 / (all_h - H + reg_lambda) - g.sum() ** 2 / (all_h + reg_lambda)
        best = max(best, 0.5 * gain[inside].max(initial=0.0))
    return best


@compiled_only
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_twenty_positives_among_half_a_million_rows(loss):
    rng = np.random.default_rng(0)
    n = 494_000
    X = np.column_stack([rng.integers(0, 200, n), rng.integers(0, 50, n), rng.integers(0, 250, n)]).astype(float)
    y = np.zeros(n)
    positive = rng.choice(n, 20, replace=False)
    y[positive] = 1.0
    X[positive, 0] = rng.integers(150, 200, 20)
    X[positive[:12], 1] = 7.0
    model = make_model(loss, n_estimators=6, max_leaf_nodes=8, min_samples_leaf=1, reg_lambda=1.0).fit(X, y)
    assert_leaves_are_exact(model, X, y, loss)
    g, h = gradients_of(loss, y, np.full(n, model.init_[0]))
    root = model.forest_[0]
    left, right = (root.first_child[0] + b for b in (0, 1))
    goes_left = X[:, root.feature[0]] <= root.threshold[0]
    assert root.n_rows[left] == np.count_nonzero(goes_left)
    assert root.n_rows[right] == n - np.count_nonzero(goes_left)
    sums = [(g[part].sum(), h[part].sum()) for part in (goes_left, ~goes_left, np.ones(n, bool))]
    scores = [0.5 * G**2 / (H + 1.0) for G, H in sums]
    gain = scores[0] + scores[1] - scores[2]
    assert gain == pytest.approx(best_root(X, g, h, 1.0), rel=1e-4)
    said = model.decision_function(X)
    assert said[positive].min() > np.quantile(said[y == 0], 0.7)


@compiled_only
@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
def test_lognormal_targets_keep_their_sums(loss, has_weights):
    rng = np.random.default_rng(1)
    n = 40_000
    X = rng.normal(size=(n, 3)).round(2)
    y = np.exp(2.5 * rng.normal(size=n) + X[:, 0])
    weight = rng.uniform(0.01, 3.0, n) if has_weights else None
    model = make_model(loss, n_estimators=4, reg_lambda=0.5).fit(X, y, weight)
    assert model.forest_.n_nodes > 4 * 30
    assert assert_leaves_are_exact(model, X, y, loss, weight) < 200


@compiled_only
@pytest.mark.parametrize("at", [1e6, -1e6, 1e12])
def test_one_value_far_out_keeps_the_sums_of_the_others(at):
    """A leaf of 20 rows near 0 beside a target of a million: its value is that of its own rows."""
    rng = np.random.default_rng(2)
    n = 30_000
    X = rng.normal(size=(n, 2))
    y = np.sin(3 * X[:, 0]) + rng.normal(size=n) / 10
    y[17] = at
    # sums are whole multiples of 2**-61 of the sum of all gradients: 1e-18 of 1e12, next to 20 of 0.1
    model = make_model("squared_error", n_estimators=10, reg_lambda=0.0, learning_rate=1.0).fit(X, y)
    rel = 1e-9 if abs(at) < 1e7 else 1e-5
    leaf = model.apply(X).reshape(len(X), -1)
    raw = np.full(n, model.init_[0])
    for t, tree in enumerate(model.forest_):
        for node in np.flatnonzero(tree.is_leaf):
            rows = leaf[:, t] == node
            value = math.fsum(y[rows] - raw[rows]) / np.count_nonzero(rows)
            size = math.fsum(np.abs(y[rows] - raw[rows])) / np.count_nonzero(rows)
            assert tree.threshold[node] == pytest.approx(value, abs=rel * size)
        raw += tree.threshold[leaf[:, t]]
    assert abs(model.predict(X[17:18])[0]) > abs(at) / 100
    if abs(at) < 1e7:  # the rest is learnt as well
        others = ~np.any(leaf == leaf[17], axis=1)
        assert np.count_nonzero(others) > n - 500
        assert np.mean((model.predict(X[others]) - y[others]) ** 2) < 0.1 * np.var(y[others])


# ---------------------------------------------------------------------------------------------------------- constraints


@compiled_only
@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "four classes"])
@pytest.mark.sampled(3)
def test_monotone_constraints_hold_between_all_points_of_a_grid(loss, newton):
    """Whatever is larger in the rising column and smaller in the falling one is answered with no less."""
    grid = np.linspace(-2.6, 2.6, 14)
    points = np.array(list(product(grid, grid)))
    is_above = np.all((points[:, None] - points[None]) * [1, -1] >= 0, axis=2)  # [i, j]: i must not be below j
    n_falls = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = make_table(500, loss, seed)
        X = np.column_stack([X[:, [0, 1]], X[:, 3], rng.normal(size=(500, 1))])
        X[rng.random(500) < 0.1, 0] = math.nan
        options = {"n_estimators": 15, "learning_rate": 0.4, "max_leaf_nodes": 15, "newton": newton,
                   "categorical_features": [2], **FREE}  # fmt: skip
        held = make_model(loss, monotonic_cst=[1, -1, 0, 0], **options).fit(X, y)
        free = make_model(loss, **options).fit(X, y)
        for category, number in ((0.0, 0.3), (2.0, -1.0), (7.0, math.nan), (math.nan, 1.0)):
            rows = np.column_stack([points, np.full(len(points), category), np.full(len(points), number)])
            said = raw_of(held, rows)
            assert np.all((said[:, None] >= said[None])[is_above])
            said = raw_of(free, rows)
            n_falls += np.count_nonzero((said[:, None] < said[None])[is_above])
        assert np.ptp(raw_of(held, X)) > 0.05 * np.ptp(raw_of(free, X))  # and something is learnt
    assert n_falls > 100  # without constraints the same tables break them


def paths_of(tree):
    """The features on the path to each leaf."""
    stack, paths = [(0, frozenset())], []
    while stack:
        node, above = stack.pop()
        if tree.is_leaf[node]:
            paths.append(above)
        else:
            child, path = int(tree.first_child[node]), above | {int(tree.feature[node])}
            stack += [(child, path), (child + 1, path)]
    return paths


N_FEATURES = 13  # "pairwise" are 78 sets: more than a word has bits
SETS = {
    "no_interactions": [{j} for j in range(N_FEATURES)],
    "pairwise": [{i, j} for i in range(N_FEATURES) for j in range(i)],
    "overlapping": [{0, 1, 2}, {2, 3}, {4, 5, 6, 7, 0}],
}


@compiled_only
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": None, "max_depth": 6}, {"max_features": 5}], ids=str)
def test_interactions_keep_to_their_sets_along_every_path(name, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, N_FEATURES)).round(2)
    X[:, 5] = rng.integers(0, 80, 600)
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5] % 5 + X[:, 6:].sum(axis=1) + rng.normal(size=600)
    sets = SETS[name]
    allowed = [*sets, set(range(N_FEATURES)) - set().union(*sets)]
    given = name if name != "overlapping" else [sorted(one) for one in sets]
    options = {"n_estimators": 20, "min_samples_leaf": 4, "categorical_features": [5], "random_state": 0, **options}
    model = GradientBoostingRegressor(**plain(interaction_cst=given, **options)).fit(X, y)
    paths = [path for tree in model.forest_ for path in paths_of(tree)]
    assert all(any(path <= one for one in allowed) for path in paths)
    assert max(map(len, paths)) == min(max(map(len, allowed)), max(map(len, paths)))
    assert max(map(len, paths)) >= min(2, max(map(len, allowed)))  # and sets of several are made use of
    free = GradientBoostingRegressor(**plain(**options)).fit(X, y)
    assert not all(any(path <= one for one in allowed) for tree in free.forest_ for path in paths_of(tree))


# ------------------------------------------------------------------------------------------------------- missing values


STUMP = {"n_estimators": 1, "max_leaf_nodes": 2, "learning_rate": 1.0, **FREE}


def test_missing_values_go_where_they_gain():
    x = np.array([0.0, 1.0, 2.0, 3.0, math.nan, math.nan])[:, None]
    for y, branch in (([0, 0, 5, 5, 5, 5], 1), ([0, 0, 5, 5, 0, 0], 0)):
        model = make_model("squared_error", **STUMP).fit(x, y)
        tree = model.forest_[0]
        assert (tree.feature[0], tree.threshold[0], tree.missing_branch[0]) == (0, 1.5, branch)
        np.testing.assert_allclose(model.predict(x), y, atol=1e-12)


def test_missing_values_can_stand_against_all_others():
    x = np.array([0.0, 1.0, 2.0, 3.0, math.nan, math.nan])[:, None]
    model = make_model("squared_error", **STUMP).fit(x, [0, 1, 0, 1, 9, 9])
    tree = model.forest_[0]
    assert (tree.kind[0], tree.threshold[0], tree.missing_branch[0]) == (THRESHOLD, math.inf, 1)
    np.testing.assert_allclose(model.predict([[1e300], [math.inf], [-math.inf], [math.nan]]), [0.5, 0.5, 0.5, 9.0])


@pytest.mark.parametrize("is_weighed", [False, True])
def test_missing_values_never_seen_go_to_the_heavier_side(is_weighed):
    """Heavier by second derivatives: three rows of weight 1 against two of weight 1, or of weight 2."""
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0])[:, None]
    weight = [1, 1, 1, 2, 2] if is_weighed else None
    model = make_model("squared_error", **STUMP).fit(x, [1.0, 1.0, 1.0, 5.0, 5.0], weight)
    assert model.forest_[0].threshold[0] == 2.5
    assert model.predict([[math.nan]])[0] == pytest.approx(5.0 if is_weighed else 1.0)


@pytest.mark.parametrize("target", [0.0, 9.0])
def test_levels_that_are_missing_unseen_or_absent_go_together(target):
    import pandas as pd

    levels = pd.Categorical(["a", "b", "c", "a", "b", "c", None, None], categories=["a", "b", "c", "d"])
    X = pd.DataFrame({"level": levels})
    model = make_model("squared_error", cat_smooth=0.0, **STUMP).fit(X, [0.0, 0.1, 9.0, 0.0, 0.1, 9.0, target, target])
    other = pd.DataFrame({"level": pd.Categorical([None, "d", "e", "a", "c"], categories=["a", "b", "c", "d", "e"])})
    said = model.predict(other)
    assert said[:3].tolist() == [said[0]] * 3 == [said[3 if target == 0.0 else 4]] * 3


# ------------------------------------------------------------------------------------------------------ worked examples


@pytest.fixture
def li_hang(shared_data):
    with (shared_data / "toy_boosting_lihang.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(row["x"])] for row in rows]), np.array([float(row["y"]) for row in rows])


@pytest.mark.parametrize("newton", [True, False])
@pytest.mark.parametrize("max_bins", [None, 255])
def test_least_squares_boosting_by_hand(li_hang, newton, max_bins):
    """Li Hang, example 8.2: six stumps from 0, without shrinkage."""
    X, y = li_hang
    rounds = [
        (6.5, 6.2367, 8.9125, 1.9300), (3.5, -0.5133, 0.2200, 0.8007), (6.5, 0.1467, -0.2200, 0.4780),
        (4.5, -0.1608, 0.1072, 0.3056), (6.5, 0.0715, -0.1072, 0.2289), (2.5, -0.1506, 0.0377, 0.1722),
    ]  # fmt: skip
    options = {**STUMP, "n_estimators": 6, "init": "zero", "newton": newton, "max_bins": max_bins}
    model = GradientBoostingRegressor(**plain(**options)).fit(X, y)
    losses = [np.sum((stage - y) ** 2) for stage in model.staged_predict(X)]
    found = [(*tree.threshold[:3].tolist(), loss) for tree, loss in zip(model.forest_, losses, strict=True)]
    np.testing.assert_allclose(found, rounds, atol=5.0001e-5)


def test_gain_and_weights_of_the_xgboost_form(li_hang):
    """From the mean, lambda 1: split 6.5, gain 7.070072, weights -0.917429 and 1.284400."""
    X, y = li_hang
    options = {**STUMP, "reg_lambda": 1.0, "max_bins": None}
    model = GradientBoostingRegressor(**plain(**options)).fit(X, y)
    tree = model.forest_[0]
    assert model.init_[0] == pytest.approx(7.307, abs=1e-12)
    assert tree.threshold[:3].tolist() == pytest.approx([6.5, -0.917429, 1.284400], abs=5.0001e-7)
    assert tree.impurity[0] * tree.weight[0] == pytest.approx(7.070072, abs=5.0001e-7)
    for gamma in (7.0700, 7.0702):  # a test must gain more than gamma
        grown = GradientBoostingRegressor(**plain(**options, gamma=gamma)).fit(X, y).forest_[0]
        assert grown.n_nodes == (3 if gamma < 7.070072 else 1)


def test_exponential_loss_is_adaboost(shared_data):
    """Li Hang, example 8.1: leaves of the first stump are plus and minus its alpha, half the log of the odds."""
    with (shared_data / "toy_adaboost_lihang.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    X, y = np.array([[float(row["x"])] for row in rows]), np.array([int(float(row["y"])) for row in rows])
    model = make_model("exponential", init="zero", max_bins=None, **STUMP).fit(X, y)
    tree = model.forest_[0]
    assert tree.threshold[0] == 2.5
    # a Newton step from 0 is the mean of y = 1, -1: three right of three, three right of seven
    np.testing.assert_allclose(tree.threshold[1:3], [1.0, -1 / 7], atol=1e-12)


@pytest.mark.parametrize(("alpha", "shift"), [(0.0, 4.0), (2.0, 3.5), (15.9, 0.025), (16.0, 0.0), (40.0, 0.0)])
def test_reg_alpha_draws_leaves_of_either_sign_towards_zero(alpha, shift):
    """Four rows of gradient 4 and four of -4: each leaf moves by (16 - alpha) / 4, and not at all beyond 16."""
    X, y = np.repeat([[0.0], [1.0]], 4, axis=0), np.repeat([-3.0, 5.0], 4)
    model = make_model("squared_error", n_estimators=1, learning_rate=1.0, reg_alpha=alpha, **FREE).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.repeat([1.0 - shift, 1.0 + shift], 4))


# ---------------------------------------------------------------------------------------------------------------- peers


def untied(n_rows=240, n_features=4, seed=0, share_missing=0.0, kind="number"):
    """Numbers that float32 holds, all different; a target of one kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(float)
    known = X.copy()
    score = known[:, 0] - known[:, 1] ** 2 + 0.5 * known[:, 2] * known[:, 0] + 0.3 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < share_missing] = math.nan
    if kind == "number":
        return X, score
    if kind == "count":
        return X, rng.poisson(np.exp(score / 2)).astype(float)
    if kind == "positive":
        return X, np.exp(score / 2) * rng.gamma(3.0, size=n_rows)
    return X, np.argsort(np.argsort(score)) * int(kind) // n_rows


def assert_same_division(leaf, other):
    """Whether two trees part the rows alike, whatever they call their leaves."""
    pairs = set(zip(leaf.tolist(), other.tolist(), strict=True))
    assert len(pairs) == len(set(leaf.tolist())) == len(set(other.tolist()))


XGBOOST = {
    "squared": ("squared_error", "number", {}, {}),
    "lambda": ("squared_error", "number", {"reg_lambda": 3.0}, {"lambda": 3.0}),
    "alpha": ("squared_error", "number", {"reg_alpha": 1.3}, {"alpha": 1.3}),
    "child weight": ("squared_error", "number", {"min_child_weight": 7.5}, {"min_child_weight": 7.5}),
    "gamma": ("squared_error", "number", {"gamma": 1.5, "pruning": "post"}, {"gamma": 3.0}),
    "monotone": ("squared_error", "number", {"monotonic_cst": [1, -1, 0, 0]}, {"monotone_constraints": (1, -1, 0, 0)}),
    "classes": ("log_loss", "2", {}, {"objective": "binary:logistic"}),
    "gamma loss": ("gamma", "positive", {}, {"objective": "reg:gamma"}),
    "tweedie": ("tweedie", "count", {}, {"objective": "reg:tweedie", "tweedie_variance_power": 1.5}),
    "four classes": ("four classes", "4", {}, {"objective": "multi:softprob", "num_class": 4}),
}


@pytest.mark.parametrize("share_missing", [0.0, 0.15])
@pytest.mark.parametrize("method", ["exact", "hist"])
@pytest.mark.parametrize("name", XGBOOST)
def test_trees_are_those_of_xgboost(name, method, share_missing):
    xgboost = pytest.importorskip("xgboost")
    loss, kind, ours, theirs = XGBOOST[name]
    if name == "monotone" and share_missing:
        pytest.skip("XGBoost also tries missing values below all others")
    X, y = untied(share_missing=share_missing, kind=kind)
    n_raw = 4 if kind == "4" else 1
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y)).astype(np.float32)  # so that classes do not tie
    data = xgboost.DMatrix(X, y, weight=weight)
    start = 0.5 if kind not in {"2", "4"} else 0.0
    if loss in {"gamma", "tweedie"}:
        start = math.log(0.5)
    base = {"tree_method": method, "max_bin": 512, "eta": 0.3, "max_depth": 4, "base_score": 0.5, "nthread": 1}
    peer = xgboost.train({**base, "lambda": 1.0, "min_child_weight": 1.0, **theirs}, data, 4)
    options = {"n_estimators": 4, "learning_rate": 0.3, "max_leaf_nodes": None, "max_depth": 4, "max_bins": None,
               "min_samples_leaf": 1, "min_child_weight": 1.0, "reg_lambda": 1.0, "init": "zero", **ours}  # fmt: skip
    offset = np.full((len(y), n_raw), start)
    model = make_model(loss, **options).fit(X, y, weight, init_score=offset if n_raw > 1 else offset[:, 0])
    leaf, other = model.apply(X).reshape(len(X), -1), peer.predict(data, pred_leaf=True).reshape(len(y), -1).astype(int)
    for t in range(4 * n_raw):
        assert_same_division(leaf[:, t], other[:, t])
    rng = np.random.default_rng(1)
    fresh = np.vstack([X, rng.permuted(X, axis=0)[:100]]) if method == "exact" else X
    offset = np.full((len(fresh), n_raw), start)
    if hasattr(model, "classes_"):
        said = model.decision_function(fresh, init_score=offset if n_raw > 1 else offset[:, 0])
    else:
        said = model.predict(fresh, init_score=offset[:, 0])
    is_margin = loss not in {"gamma", "tweedie"}
    expected = peer.predict(xgboost.DMatrix(fresh), output_margin=is_margin)
    if n_raw > 1:  # a constant for all classes does not matter
        said, expected = softmax(said, axis=1), softmax(expected, axis=1)
    np.testing.assert_allclose(said, expected, rtol=NEAR, atol=NEAR)
    assert model.forest_.n_nodes > 4 * n_raw * 5


LIGHTGBM = {
    "squared": ("squared_error", "number", {}, {}),
    "penalties": (
        "squared_error", "number",
        {"max_leaf_nodes": 9, "reg_lambda": 2.0, "reg_alpha": 0.7, "min_samples_leaf": 6},
        {"num_leaves": 9, "lambda_l2": 2.0, "lambda_l1": 0.7, "min_data_in_leaf": 6},
    ),
    "depth": ("squared_error", "number", {"max_depth": 4}, {"max_depth": 4}),
    "monotone": ("squared_error", "number", {"monotonic_cst": [1, -1, 0, 1]}, {"monotone_constraints": [1, -1, 0, 1]}),
    # it guesses rows from hessians where these differ: no limit of rows
    "classes": (
        "log_loss", "2", {"min_samples_leaf": 1, "min_child_weight": 0.7},
        {"objective": "binary", "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 0.7},
    ),
    "gamma": (
        "gamma", "positive", {"min_samples_leaf": 1, "min_child_weight": 0.7},
        {"objective": "gamma", "min_data_in_leaf": 0, "min_sum_hessian_in_leaf": 0.7},
    ),
}  # fmt: skip


@pytest.mark.parametrize("share_missing", [0.0, 0.15])
@pytest.mark.parametrize("name", LIGHTGBM)
def test_trees_are_those_of_lightgbm(name, share_missing):
    lightgbm = pytest.importorskip("lightgbm")
    loss, kind, ours, theirs = LIGHTGBM[name]
    if name == "monotone" and share_missing:
        pytest.skip("LightGBM takes the score of a node with bounds for that of a free one")
    X, y = untied(seed=3, share_missing=share_missing, kind=kind)
    has_weights = loss != "squared_error"  # so that classes do not tie
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y)).astype(np.float32) if has_weights else None
    settings = {"learning_rate": 0.3, "boost_from_average": False, "min_data_in_bin": 1, "max_bin": 255, "verbose": -1,
                "min_sum_hessian_in_leaf": 0.0, "feature_pre_filter": False, "num_threads": 1, "deterministic": True,
                "num_leaves": 12, "min_data_in_leaf": 3, **theirs}  # fmt: skip
    peer = lightgbm.train(settings, lightgbm.Dataset(X, y, weight=weight, params=settings), 4)
    options = {"n_estimators": 4, "learning_rate": 0.3, "max_leaf_nodes": 12, "init": "zero",
               **FREE, "min_samples_leaf": 3, **ours}  # fmt: skip
    model = make_model(loss, **options).fit(X, y, weight)
    leaf, other = model.apply(X).reshape(len(X), -1), peer.predict(X, pred_leaf=True).astype(int)
    for t in range(4):
        assert_same_division(leaf[:, t], other[:, t])
    np.testing.assert_allclose(raw_of(model, X), peer.predict(X, raw_score=loss != "gamma"), rtol=NEAR, atol=NEAR)


FRIEDMAN = {
    "squared_error": (False, {}),
    "squared_error, weights": (True, {}),
    "absolute_error": (True, {"loss": "absolute_error"}),
    "quantile": (True, {"loss": "quantile", "alpha": 0.7}),
    "huber": (True, {"loss": "huber", "alpha": 0.8}),
}


@pytest.mark.parametrize("name", FRIEDMAN)
def test_friedmans_method_is_scikit_learns(name):
    """To nine digits, of new rows as well: thresholds are the same."""
    has_weights, more = FRIEDMAN[name]
    X, y = untied(300, seed=5)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if has_weights else None
    shared = {"n_estimators": 12, "learning_rate": 0.3, "max_leaf_nodes": 7, "max_depth": None, "min_samples_leaf": 4,
              "init": "zero", **more}  # fmt: skip
    peer = ensemble.GradientBoostingRegressor(random_state=0, **shared).fit(X, y, weight)
    settings = plain(newton=False, min_child_weight=0.0, max_bins=None, **shared)
    model = GradientBoostingRegressor(**settings).fit(X, y, weight)
    fresh = np.random.default_rng(2).normal(size=(500, 4)).astype(np.float32).astype(float)
    np.testing.assert_allclose(model.predict(fresh), peer.predict(fresh), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("loss", ["log_loss", "exponential", "four classes"])
def test_friedmans_method_of_classes_is_scikit_learns(loss):
    X, y = untied(300, seed=6, kind="4" if loss == "four classes" else "2")
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    shared = {"n_estimators": 8, "learning_rate": 0.3, "max_leaf_nodes": 5, "max_depth": None, "min_samples_leaf": 4}
    peer_loss = "log_loss" if loss == "four classes" else loss
    peer = ensemble.GradientBoostingClassifier(loss=peer_loss, random_state=0, **shared).fit(X, y, weight)
    model = make_model(loss, newton=False, min_child_weight=0.0, max_bins=None, **shared).fit(X, y, weight)
    fresh = np.random.default_rng(2).normal(size=(500, 4)).astype(np.float32).astype(float)
    if loss == "four classes":  # its line search takes 4 / 3 p (1 - p) for ours of 2 p (1 - p): first trees are alike
        leaf = model.apply(X).reshape(len(X), -1)
        for k in range(4):
            assert_same_division(leaf[:, k], peer.estimators_[0, k].apply(X.astype(np.float32)))
        return
    np.testing.assert_allclose(model.decision_function(fresh), peer.decision_function(fresh), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("share_missing", [0.0, 0.15])
@pytest.mark.parametrize(("loss", "kind"), [("squared_error", "number"), ("poisson", "count"), ("gamma", "positive"),
                                            ("log_loss", "2")])  # fmt: skip
def test_histograms_are_scikit_learns(loss, kind, share_missing):
    X, y = untied(seed=7, share_missing=share_missing, kind=kind)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    shared = {"learning_rate": 0.3, "max_leaf_nodes": 8, "min_samples_leaf": 4}
    kinds = ensemble.HistGradientBoostingRegressor, ensemble.HistGradientBoostingClassifier
    with threadpool_limits(1):
        peer = kinds[kind == "2"](
            loss=loss, max_iter=5, l2_regularization=0.5, early_stopping=False, random_state=0, **shared
        ).fit(X, y, weight)
    model = make_model(loss, n_estimators=5, reg_lambda=0.5, **shared).fit(X, y, weight)
    expected = peer.decision_function(X) if kind == "2" else peer.predict(X)
    np.testing.assert_allclose(raw_of(model, X), expected, rtol=NEAR, atol=NEAR)


# -------------------------------------------------------------------------------------------------- nothing but numbers


@compiled_only
@settings(max_examples=60)
@given(
    st.sampled_from([loss for loss in LOSSES if loss != "two functions"]),
    st.sampled_from([1e-300, 0.1, 1.0, 50.0, 1e5, 1e100, 1e300]),
    st.sampled_from([1e-200, 1e-3, 1.0, 1e6, 1e150]),
    st.booleans(),
    st.integers(0, 3),
)
def test_learning_stays_finite_or_says_so(loss, learning_rate, size, newton, seed):
    _jit.load_compiled()
    X, y = make_table(120, loss, seed)
    if loss not in CLASSES:
        y = y * size
    model = make_model(loss, learning_rate=learning_rate, newton=newton, n_estimators=25, min_samples_leaf=3)
    try:
        model.fit(X, y)
    except ValueError as error:
        says_so = ("left the finite numbers", "requires y up to")
        assert any(words in str(error) for words in says_so)  # noqa: PT017  either is right
        return
    said = model.predict_proba(X) if loss in CLASSES else model.predict(X)
    assert np.isfinite(said).all()
    assert np.isfinite(model.forest_.hot.view(np.float64)[model.forest_.is_leaf, 0]).all()
