"""How fast are SHAP values? Path dependent, one thread, judged by CPU time.

`shap` explains our very trees, handed over by its documented dictionary, and its values are compared with ours.
LightGBM (`pred_contrib`) and XGBoost (`pred_contribs`) explain trees of their own of the same shape, grown on the same
rows: 100 boosted trees of 31 leaves, and ten trees of full depth, of which peers explain fewer rows: times scaled up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.engines import has
from benchmarks.runner import Answer, Scale, Timing, measure, report
from benchmarks.tables import draw_numeric

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

GROW_ROWS = 10_000
N_ROWS = 2_048  # that we explain
PEER_SHARE = {"boosted 100 x 31 leaves": 1.0, "forest of 10, full depth": 1 / 64}
LEAST_RATIO = {"shap": 3.0, "LightGBM": 2.0, "XGBoost": 2.0}


class Case(NamedTuple):
    """Trees to explain, and who explains them."""

    name: str
    ours: Any
    peers: dict[str, Callable[[NDArray[Any]], Any]]


def by_shap(predictor: Any) -> Callable[[NDArray[Any]], Any] | None:
    """What `shap` says of our trees."""
    from spinney import to_shap_trees

    if not has("shap"):
        return None
    explainer = import_module("shap").TreeExplainer(
        to_shap_trees(predictor), feature_perturbation="tree_path_dependent"
    )
    return lambda rows: explainer.shap_values(rows, check_additivity=False)


def by_lightgbm(X: NDArray[Any], y: NDArray[Any], settings: dict[str, Any]) -> Callable[[NDArray[Any]], Any] | None:
    """What LightGBM says of trees of its own."""
    if not has("lightgbm"):
        return None
    model = import_module("lightgbm").LGBMRegressor(n_jobs=1, verbose=-1, **settings).fit(X, y)
    return lambda rows: model.booster_.predict(rows, pred_contrib=True, num_threads=1)


def by_xgboost(
    X: NDArray[Any], y: NDArray[Any], settings: dict[str, Any], rounds: int
) -> Callable[[NDArray[Any]], Any] | None:
    """What XGBoost says of trees of its own; it gets its own matrix, made beforehand."""
    if not has("xgboost"):
        return None
    xgboost = import_module("xgboost")
    grown = {"tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "nthread": 1, **settings}
    model = xgboost.train(grown, xgboost.DMatrix(X, y), rounds)
    made: dict[int, Any] = {}
    return lambda rows: model.predict(made.setdefault(len(rows), xgboost.DMatrix(rows)), pred_contribs=True)


def cases(scale: Scale) -> list[Case]:
    """What is explained."""
    from spinney import GradientBoostingRegressor, RandomForestRegressor

    X, labels = draw_numeric(scale.rows(GROW_ROWS), np.float64)
    y = labels + X[:, 0]
    boosted = GradientBoostingRegressor(n_estimators=100, max_leaf_nodes=31, random_state=0).fit(X, y).predictor()
    forest = RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y).predictor()
    names = list(PEER_SHARE)
    full = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.63, "colsample_bynode": 1 / 3}
    full |= {"n_estimators": 10, "num_leaves": len(X), "min_child_samples": 1, "histogram_pool_size": 512}
    deep = {"num_parallel_tree": 10, "subsample": 0.63, "min_child_weight": 0.0, "lambda": 0.0}
    found = [
        (
            boosted,
            by_lightgbm(X, y, {"n_estimators": 100, "num_leaves": 31}),
            by_xgboost(X, y, {"max_leaves": 31}, 100),
        ),
        (forest, by_lightgbm(X, y, full), by_xgboost(X, y, deep | {"eta": 1.0, "colsample_bynode": 1 / 3}, 1)),
    ]
    return [
        Case(
            name,
            ours,
            {
                peer: call
                for peer, call in (("shap", by_shap(ours)), ("LightGBM", lightgbm), ("XGBoost", xgboost))
                if call is not None
            },
        )
        for name, (ours, lightgbm, xgboost) in zip(names, found, strict=True)
    ]


def best(call: Callable[[], Any], repeats: int) -> Timing:
    """The best of some turns by CPU time, after one that is not counted."""
    call()
    return min((measure(call)[0] for _ in range(repeats)), key=lambda timing: timing.cpu)


def run(scale: Scale) -> list[Answer]:
    from spinney import shap_values

    answers: list[Answer] = []
    for case in cases(scale):
        rows = draw_numeric(scale.rows(N_ROWS), np.float64)[0]
        ours = best(lambda case=case, rows=rows: shap_values(case.ours, rows, n_jobs=1), scale.repeats)
        found = shap_values(case.ours, rows, n_jobs=1)
        n_nodes = case.ours.forest.n_nodes
        for name, call in case.peers.items():
            share = max(PEER_SHARE[case.name], 16 / len(rows))
            few = rows[: int(len(rows) * share)]
            taken = best(lambda call=call, few=few: call(few), min(scale.repeats, 2))
            times = len(rows) / len(few)
            peer = Timing(taken.wall * times, taken.cpu * times)
            note = f"{n_nodes:,} nodes; our sums differ by {found.relative_difference:.1g} relative"
            if name == "shap":
                gap = np.abs(np.asarray(call(few)).reshape(len(few), -1) - found.values[: len(few)]).max()
                note += f"; values differ by {gap:.1g} at most"
            report(
                answers,
                Answer(
                    "explanations",
                    f"{case.name}, {len(rows):,} rows, {name}",
                    str(ours),
                    str(peer),
                    peer.cpu / ours.cpu,
                    " x CPU",
                    LEAST_RATIO[name],
                    note=note,
                ),
            )
    return answers
