"""How good is boosting of times until an event? Concordance of rows not seen, Cox and accelerated failure time.

Peers are XGBoost at matched settings (100 rounds of 31 leaves, rate 0.1) and, as what a model without trees reaches,
Cox's regression of lifelines. Five seeds draw 4,000 rows to learn from and 4,000 to judge: hazards follow an
interaction, a third of the times is censored.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.engines import has
from benchmarks.runner import Answer, Scale, alternate, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rows = tuple[NDArray[np.float64], NDArray[np.float64]]

N_ROWS = 4_000
N_FEATURES = 10
SEEDS = 5
SHARED = {"n_estimators": 100, "learning_rate": 0.1}


def draw_times(n_rows: int, seed: int) -> Rows:
    """Features, and Weibull times with a sign: below 0 where they are censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    time, end = rng.weibull(1.3, n_rows) * np.exp(-risk / 1.3), rng.exponential(0.8, n_rows)
    return X, np.where(time <= end, time, -end)


def fit_ours(rows: Rows, loss: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    from spinney import GradientBoostingSurvival

    settings = {**SHARED, "max_leaf_nodes": 31, "min_samples_leaf": 20, "subsample": 1.0, "max_features": None}
    model = GradientBoostingSurvival(loss=loss, reg_lambda=1.0, n_jobs=1, **settings).fit(*rows)
    return model.predict if loss == "cox" else lambda X: -model.predict(X)


def fit_xgboost(rows: Rows, loss: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    xgboost = import_module("xgboost")
    X, y = rows
    grown = {"tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "max_leaves": 31, "nthread": 1}
    settings: dict[str, Any] = {**grown, "eta": 0.1, "objective": f"survival:{loss}", "min_child_weight": 1e-3}
    table = xgboost.DMatrix(X, y)
    if loss == "aft":
        settings |= {"aft_loss_distribution": "normal", "aft_loss_distribution_scale": 1.0}
        table = xgboost.DMatrix(X)
        table.set_float_info("label_lower_bound", np.abs(y))
        table.set_float_info("label_upper_bound", np.where(y > 0.0, y, np.inf))
    model = xgboost.train(settings, table, SHARED["n_estimators"])
    sign = 1.0 if loss == "cox" else -1.0
    return lambda X: sign * model.predict(xgboost.DMatrix(X), output_margin=True)


def fit_lifelines(rows: Rows, loss: str) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    import pandas as pd

    del loss
    X, y = rows
    frame = pd.DataFrame(X).assign(time=np.abs(y), event=y > 0.0)
    model = import_module("lifelines").CoxPHFitter().fit(frame, "time", "event")
    return lambda X: np.asarray(model.predict_log_partial_hazard(pd.DataFrame(X)))


PEERS: dict[str, tuple[tuple[str, ...], Any]] = {
    "xgboost": (("cox", "aft"), fit_xgboost),
    "lifelines": (("cox",), fit_lifelines),
}


def run(scale: Scale) -> list[Answer]:
    from spinney.estimators.concordance import measure_concordance

    answers: list[Answer] = []
    tables = [[draw_times(scale.rows(N_ROWS), 2 * seed + part) for part in range(2)] for seed in range(SEEDS)]
    for loss in ("cox", "aft"):
        fit_ours(tables[0][0], loss)  # kernels are compiled
        for name, (losses, fit) in PEERS.items():
            if loss not in losses or not has(name):
                continue
            sides = [lambda turn, fit=each, loss=loss: fit(tables[turn % SEEDS][0], loss) for each in (fit_ours, fit)]
            ours, peer = alternate(sides, max(scale.repeats, SEEDS))
            scores = np.array(
                [
                    [measure_concordance(y, run.results[seed](X), None) for seed, (_, (X, y)) in enumerate(tables)]
                    for run in (ours, peer)
                ]
            )
            gap = scores[0] - scores[1]
            note = f"concordance {scores[0].mean():.4f} against {scores[1].mean():.4f}; difference {gap.mean():+.4f} "
            note += f"± {gap.std(ddof=1) / np.sqrt(SEEDS):.4f}"
            case = f"{loss}, {SEEDS} x {N_ROWS:,} rows, {name}"
            speed = peer.best.cpu / ours.best.cpu
            report(answers, Answer("survival", case, str(ours.best), str(peer.best), speed, " x CPU", note=note))
    return answers
