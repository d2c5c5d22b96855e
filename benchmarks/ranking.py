"""How good are our orders, and how fast? LambdaMART at matched settings, on lists in the format of LETOR.

Each seed draws lists anew, writes them as text (`relevance qid:query feature:value`, as Yahoo's and Microsoft's public
tables are), and reads them back: 400 lists to learn from, 200 to judge. All grow 100 rounds of 31 leaves with a rate of
0.1 on all rows and columns, at most 255 bins, with pairs of the first 30 places.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.engines import has
from benchmarks.runner import Answer, Scale, alternate, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

N_LISTS, N_JUDGED = 400, 200
LIST_ROWS = (5, 120)
N_FEATURES = 30
SEEDS = 5
PLACES = 10
SHARED = {"n_estimators": 100, "learning_rate": 0.1}


class Lists(NamedTuple):
    """Rows of lists, those of one list side by side."""

    X: NDArray[np.float64]
    relevance: NDArray[np.float64]
    query: NDArray[np.int64]


def draw_lists(n_lists: int, seed: int) -> Lists:
    """Lists of several lengths: relevance from 0 to 4 by the rank within a list of what features say, with noise."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_lists), rng.integers(*LIST_ROWS, n_lists))
    X = rng.normal(size=(len(query), N_FEATURES)).round(4)
    X[:, :3] += rng.normal(size=(n_lists, 3))[query]  # what lists have in common tells nothing within one
    said = X[:, 3] + X[:, 4] * X[:, 5] + np.abs(X[:, 6]) + np.sin(2.0 * X[:, 7]) + 1.5 * rng.normal(size=len(query))
    relevance = np.digitize(said, [0.8, 2.0, 3.2, 4.4]).astype(np.float64)
    return Lists(X, relevance, query)


def write_and_read(lists: Lists) -> Lists:
    """The same lists by way of a file as public tables have it."""
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "lists.txt")
        dump_svmlight_file(lists.X, lists.relevance.astype(int), path, zero_based=False, query_id=lists.query)
        X, relevance, query = load_svmlight_file(path, query_id=True, zero_based=False, n_features=N_FEATURES)
    return Lists(X.toarray(), relevance, query)


def fit_ours(lists: Lists, metric: str) -> Any:
    from spinney import GradientBoostingRanker

    settings = {**SHARED, "max_leaf_nodes": 31, "min_samples_leaf": 20, "subsample": 1.0, "max_features": None}
    model = GradientBoostingRanker(metric=metric, truncation=30, n_jobs=1, **settings)
    return model.fit(lists.X, lists.relevance, groups=lists.query)


def fit_lightgbm(lists: Lists, metric: str) -> Any:
    del metric
    model = import_module("lightgbm").LGBMRanker(**SHARED, num_leaves=31, min_child_samples=20, n_jobs=1, verbose=-1)
    return model.fit(lists.X, lists.relevance, group=np.bincount(lists.query))


def fit_xgboost(lists: Lists, metric: str) -> Any:
    grown = {"tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "max_leaves": 31, "reg_lambda": 0.0}
    pairs = {"lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 30, "objective": f"rank:{metric}"}
    model = import_module("xgboost").XGBRanker(**SHARED, **grown, **pairs, min_child_weight=1e-3, n_jobs=1)
    return model.fit(lists.X, lists.relevance, qid=lists.query)


PEERS: dict[str, tuple[str, tuple[str, ...], Callable[[Lists, str], Any]]] = {
    "LightGBM": ("lightgbm", ("ndcg",), fit_lightgbm),
    "XGBoost": ("xgboost", ("ndcg", "map"), fit_xgboost),
}


def judge(model: Any, lists: Lists, metric: str) -> float:
    """NDCG@10, or MAP@10, of a model's order."""
    from spinney.ensemble.ranking_loss import LambdaRank, pack_target

    raw = np.asarray(model.predict(lists.X), np.float64)[None, :]
    return 1.0 - LambdaRank(metric, 30, PLACES).value(pack_target(lists.query, lists.relevance), None, raw)


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    drawn = [
        [write_and_read(draw_lists(scale.rows(n), 2 * seed + part)) for part, n in enumerate((N_LISTS, N_JUDGED))]
        for seed in range(SEEDS)
    ]
    for metric in ("ndcg", "map"):
        tables = [[binary(each) if metric == "map" else each for each in pair] for pair in drawn]
        fit_ours(tables[0][0], metric)  # kernels are compiled
        for name, (package, metrics, fit) in PEERS.items():
            if metric not in metrics or not has(package):
                continue
            sides = [lambda turn, fit=each, t=tables, m=metric: fit(t[turn % SEEDS][0], m) for each in (fit_ours, fit)]
            ours, peer = alternate(sides, max(scale.repeats, SEEDS))
            scores = np.array(
                [[judge(run.results[seed], tables[seed][1], metric) for seed in range(SEEDS)] for run in (ours, peer)]
            )
            gap = scores[0] - scores[1]
            error = gap.std(ddof=1) / np.sqrt(SEEDS)
            case = f"{metric.upper()}@{PLACES}, {SEEDS} x {len(tables[0][1].X):,} judging rows, {name}"
            note = f"{scores[0].mean():.4f} against {scores[1].mean():.4f}; difference {gap.mean():+.4f} ± {error:.4f}"
            speed = peer.best.cpu / ours.best.cpu
            report(answers, Answer("ranking", case, str(ours.best), str(peer.best), speed, " x CPU", note=note))
    return answers


def binary(lists: Lists) -> Lists:
    """Relevant or not, as MAP counts."""
    return lists._replace(relevance=(lists.relevance > 2).astype(np.float64))
