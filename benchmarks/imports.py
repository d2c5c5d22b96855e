"""How fast do imported models predict, against the library that they come from?

Each library fits its own model, which is imported; both sides then predict the same 100,000 rows in turns, in one
thread, judged by CPU time, through the public functions: `inplace_predict` of XGBoost, which is its fastest, `predict`
of the others. Both give the same predictions, or the row does not count. Libraries that are not installed are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import spinney
from benchmarks.engines import has
from benchmarks.runner import Answer, Scale, alternate, report
from benchmarks.tables import draw_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

N_ROWS = 100_000
GROW_ROWS, FOREST_ROWS = 50_000, 20_000
N_CODES = 12  # of the columns that are categories
N_CLASSES = 10
LEAST = 2.0
ALIKE = 1e-4  # of probabilities that XGBoost adds up in float32


class Imported(NamedTuple):
    """A model of another library, and what predicts by it there."""

    name: str
    read: Callable[[], Any]
    predict: Callable[[NDArray[Any]], Any]


def list_xgboost(X: NDArray[Any], y: NDArray[Any], codes: NDArray[Any]) -> Iterator[Imported]:
    """Boosted trees with and without categories."""
    if not has("xgboost"):
        return
    import xgboost as xgb

    base = {"objective": "binary:logistic", "nthread": 1, "grow_policy": "lossguide", "max_depth": 0, "max_bin": 255}
    for n_rounds, n_leaves in ((100, 31), (500, 63)):
        booster = xgb.train({**base, "max_leaves": n_leaves}, xgb.DMatrix(X, y), n_rounds)
        name = f"XGBoost, {n_rounds} x {n_leaves} leaves"
        yield Imported(name, lambda b=booster: spinney.from_xgboost(b), lambda rows, b=booster: b.inplace_predict(rows))
    types = ["q"] * X.shape[1] + ["c"] * codes.shape[1]
    table = np.concatenate([X, codes], axis=1)
    data = xgb.DMatrix(table, y, feature_types=types, enable_categorical=True)
    booster = xgb.train({**base, "max_leaves": 31}, data, 100)

    def predict(rows: NDArray[Any]) -> Any:
        return booster.predict(xgb.DMatrix(rows, feature_types=types, enable_categorical=True))

    yield Imported("XGBoost, 100 x 31 leaves, 4 categories", lambda: spinney.from_xgboost(booster), predict)


def list_lightgbm(X: NDArray[Any], y: NDArray[Any], codes: NDArray[Any]) -> Iterator[Imported]:
    """Boosted trees with and without categories, and with linear leaves."""
    if not has("lightgbm"):
        return
    import lightgbm as lgb

    table, n = np.concatenate([X, codes], axis=1), X.shape[1]
    base = {"objective": "binary", "num_threads": 1, "verbose": -1}
    cases = (
        ("100 x 31 leaves", X, 100, {"num_leaves": 31}, "auto"),
        ("500 x 63 leaves", X, 500, {"num_leaves": 63}, "auto"),
        ("100 x 31 leaves, 4 categories", table, 100, {"num_leaves": 31}, list(range(n, table.shape[1]))),
        ("100 x 31 linear leaves", X, 100, {"num_leaves": 31, "linear_tree": True}, "auto"),
    )
    for name, rows, n_rounds, more, categories in cases:
        booster = lgb.train({**base, **more}, lgb.Dataset(rows, y, categorical_feature=categories), n_rounds)
        yield Imported(
            f"LightGBM, {name}",
            lambda b=booster: spinney.from_lightgbm(b),
            lambda rows, b=booster: b.predict(rows, num_threads=1),
        )


def list_catboost(X: NDArray[Any], y: NDArray[Any]) -> Iterator[Imported]:
    """Oblivious trees."""
    if not has("catboost"):
        return
    import catboost as cb

    many = np.digitize(X[:, 0] + X[:, 1] ** 2, np.linspace(-1.0, 4.0, N_CLASSES - 1))
    for n_rounds, target, classes in ((100, y, ""), (1000, y, ""), (200, many, f", {N_CLASSES} classes")):
        model = cb.CatBoostClassifier(
            iterations=n_rounds, depth=6, verbose=0, thread_count=1, allow_writing_files=False
        ).fit(X, target)
        yield Imported(
            f"CatBoost, {n_rounds} trees of depth 6{classes}",
            lambda m=model: spinney.from_catboost(m),
            lambda rows, m=model: m.predict_proba(rows, thread_count=1),
        )


def list_sklearn(X: NDArray[Any], y: NDArray[Any], scale: Scale) -> Iterator[Imported]:
    """A forest of full depth, and boosting of both kinds."""
    from sklearn import ensemble

    n = scale.rows(FOREST_ROWS)
    models = (
        (
            "HistGradientBoosting, 100 x 31 leaves",
            ensemble.HistGradientBoostingClassifier(early_stopping=False),
            len(X),
        ),
        ("GradientBoosting, 100 trees of depth 3", ensemble.GradientBoostingClassifier(subsample=0.2), n),
        ("RandomForest, 100 trees of full depth", ensemble.RandomForestClassifier(n_jobs=1, random_state=0), n),
        ("ExtraTrees, 100 trees of full depth", ensemble.ExtraTreesClassifier(n_jobs=1, random_state=0), n),
    )
    for name, model, n_rows in models:
        model.fit(X[:n_rows], y[:n_rows])
        yield Imported(f"scikit-learn {name}", lambda m=model: spinney.from_sklearn(m), model.predict_proba)


def ask(answers: list[Answer], case: Imported, rows: NDArray[Any], repeats: int) -> None:
    """Ours on a library's model against its own."""
    predictor = case.read()
    values = np.ascontiguousarray(rows[:, : predictor.n_features])

    def ours(_turn: int) -> Any:
        return predictor.predict_proba(values, n_jobs=1)

    def theirs(_turn: int) -> Any:
        return case.predict(values)

    ours(0)
    theirs(0)
    mine, peer = alternate([ours, theirs], repeats)
    shares = mine.results[0] if peer.results[0].ndim == 2 else mine.results[0][:, 1]
    apart = float(np.abs(shares - peer.results[0]).max())
    report(
        answers,
        Answer(
            "imports",
            f"{case.name}, {len(values):,} x {values.shape[1]} {values.dtype}, 1 thread",
            str(mine.best),
            str(peer.best),
            peer.best.cpu / mine.best.cpu,
            " x CPU",
            LEAST,
            is_alike=apart <= ALIKE,
            note=f"clock {peer.best.wall / mine.best.wall:.3g} x; largest difference of a probability {apart:.2g}",
        ),
    )


def run(scale: Scale) -> list[Answer]:
    from threadpoolctl import threadpool_limits

    n_grow, n_fresh = scale.rows(GROW_ROWS), scale.rows(N_ROWS)
    X, y = draw_numeric(n_grow + n_fresh)
    codes = np.random.default_rng(0).integers(0, N_CODES, (len(X), 4)).astype(X.dtype)
    y = y ^ (codes[:, 0] % 3 == 0).astype(y.dtype)  # categories are worth asking for
    rows = np.concatenate([X, codes], axis=1)[n_grow:]
    X, y, codes = X[:n_grow], y[:n_grow], codes[:n_grow]
    answers: list[Answer] = []
    with threadpool_limits(1):
        for cases in (
            list_xgboost(X, y, codes),
            list_lightgbm(X, y, codes),
            list_catboost(X, y),
            list_sklearn(X, y, scale),
        ):
            for case in cases:
                ask(answers, case, rows, scale.repeats)
    return answers
