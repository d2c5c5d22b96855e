"""Do bags by gradients (GOSS) and rounds that drop trees (DART) do what LightGBM's do, at matched settings?

California housing and adult, the categories of the latter as numbers for both: half of the rows learn, half judge, by
five seeds. 100 rounds of 31 leaves, rate 0.1. Both begin GOSS after ten rounds on all rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.engines import has
from benchmarks.runner import Answer, Scale, alternate, report
from benchmarks.tables import adult, housing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = tuple[NDArray[np.float64], NDArray[Any]]

SEEDS = 5
SHARED = {"n_estimators": 100, "learning_rate": 0.1, "reg_lambda": 1.0}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # ours, LightGBM's
    "plain": ({}, {}),
    "GOSS": (
        {"subsample": 0.3, "sampling": "gradient"},
        {"data_sample_strategy": "goss", "top_rate": 0.2, "other_rate": 0.1},
    ),
    "DART": (
        {"drop_rate": 0.1, "skip_drop": 0.5},
        {"boosting_type": "dart", "drop_rate": 0.1, "skip_drop": 0.5, "max_drop": 50, "uniform_drop": True},
    ),
}


def load_tables(scale: Scale) -> dict[str, Table]:
    """Numbers, and categories as their codes."""
    found = {}
    for split in (housing(scale), adult(scale)):
        if split is not None:
            X, y = np.concatenate(split.of_peer), np.concatenate([split.y, split.y_test])
            found[split.name] = X, y if split.is_regression else np.unique(y, return_inverse=True)[1]
    return found


def error_of(model: Any, X: NDArray[np.float64], y: NDArray[Any]) -> float:
    """RMSE, or log loss."""
    if not hasattr(model, "predict_proba"):
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    from sklearn.metrics import log_loss

    return float(log_loss(y, model.predict_proba(X)))


def run(scale: Scale) -> list[Answer]:
    from spinney import GradientBoostingClassifier, GradientBoostingRegressor

    answers: list[Answer] = []
    if not has("lightgbm"):
        return answers
    lightgbm = import_module("lightgbm")
    for table, (X, y) in load_tables(scale).items():
        halves = []
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(len(y))
            halves.append((order[::2], order[1::2]))
        is_classes = y.dtype.kind != "f"
        own = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
        peer_class = lightgbm.LGBMClassifier if is_classes else lightgbm.LGBMRegressor
        for name, (ours_by, peer_by) in VARIANTS.items():
            plain = {"max_leaf_nodes": 31, "min_samples_leaf": 20, "max_features": None, "subsample": 1.0, "n_jobs": 1}

            def fit_ours(turn: int, by: Any = ours_by, own: Any = own, X: Any = X, y: Any = y) -> Any:
                rows = halves[turn % SEEDS][0]  # noqa: B023  (called before the next table)
                return own(**{**SHARED, **plain, **by}, random_state=turn).fit(X[rows], y[rows])  # noqa: B023

            def fit_peer(turn: int, by: Any = peer_by, cls: Any = peer_class, X: Any = X, y: Any = y) -> Any:
                rows = halves[turn % SEEDS][0]  # noqa: B023
                return cls(**SHARED, **by, num_leaves=31, n_jobs=1, verbose=-1, random_state=turn).fit(X[rows], y[rows])

            fit_ours(0)  # kernels are compiled
            ours, peer = alternate([fit_ours, fit_peer], SEEDS)
            errors = np.array(
                [
                    [error_of(run.results[seed], X[halves[seed][1]], y[halves[seed][1]]) for seed in range(SEEDS)]
                    for run in (ours, peer)
                ]
            )
            gap = errors[0] - errors[1]
            note = f"{'log loss' if is_classes else 'RMSE'} {errors[0].mean():.4f} against {errors[1].mean():.4f}; "
            note += f"difference {gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(SEEDS):.4f}"
            speed = peer.best.cpu / ours.best.cpu
            case = f"{name}, {table}, LightGBM"
            report(answers, Answer("variants", case, str(ours.best), str(peer.best), speed, " x CPU", note=note))
    return answers
