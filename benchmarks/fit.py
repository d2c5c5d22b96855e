"""How fast is a fit? Trees of full depth, default settings, one thread.

The peer draws among tests of equal gain, so its trees differ by seed: each turn takes another seed, and the
range of its leaves, depths and held-out scores is shown beside ours. In regression it also splits some nodes
whose targets are all equal, because rounding leaves them an impurity: hence its few more leaves there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, mean_poisson_deviance, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.runner import Answer, Runs, Scale, alternate, in_seconds, measure, report
from benchmarks.tables import Split, splits
from spinney import CARTClassifier, CARTRegressor

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_RATIO = {"numeric": 10.0, "table": 5.0, "poisson": 3.0, "absolute": 3.0}
COUNT_ROWS, COUNT_FEATURES, COUNT_DEPTH = 50_000, 10, 12  # of the case by Poisson's deviance
MEDIAN_ROWS, MEDIAN_FEATURES = (1_000, 4_000, 16_000, 64_000), 10  # of the cases by the absolute error
# Ours may lie this far outside the range of the peer's seeds and still count as the same work.
LEAF_SLACK = 0.02  # a share of the leaves
SCORE_SLACK = 0.01  # accuracy or R2


def models(split: Split) -> tuple[Callable[[], Any], Callable[[int], Any]]:
    """Makers of the two estimators of a table; the peer's takes a seed."""
    if split.is_regression:
        return CARTRegressor, lambda seed: DecisionTreeRegressor(random_state=seed)
    return CARTClassifier, lambda seed: DecisionTreeClassifier(random_state=seed)


def lies_near(value: float, others: list[float], slack: float) -> bool:
    return min(others) - slack <= value <= max(others) + slack


def in_range(values: list[float], form: str) -> str:
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{low} to {high}"


def compare_trees(split: Split, ours: Runs, peer: Runs) -> tuple[str, bool]:
    """Leaves, depth and held-out score of both sides as text, and whether they are alike."""
    tree, others = ours.results[0], peer.results
    rate = r2_score if split.is_regression else accuracy_score
    score, *scores = [rate(split.y_test, model.predict(split.X_test)) for model in (tree, *others)]
    leaves = [float(other.get_n_leaves()) for other in others]
    depths = [float(other.get_depth()) for other in others]
    measure_name = "R2" if split.is_regression else "accuracy"
    text = (
        f"leaves {tree.get_n_leaves():,} / {in_range(leaves, ',.0f')}; "
        f"depth {tree.get_depth()} / {in_range(depths, '.0f')}; "
        f"held-out {measure_name} {score:.4f} / {in_range(scores, '.4f')}"
    )
    is_alike = lies_near(tree.get_n_leaves(), leaves, LEAF_SLACK * max(leaves))
    return text, is_alike and lies_near(score, scores, SCORE_SLACK)


def count_events(scale: Scale) -> tuple[Any, Any]:
    """Counts whose rate two of the features tell."""
    n_rows = scale.rows(COUNT_ROWS)
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, COUNT_FEATURES))
    return X, rng.poisson(np.exp(2.0 * X[:, 0] - X[:, 1])).astype(float)


def fit_poisson(scale: Scale) -> Answer:
    """Trees of counts by criterion="poisson"; alike: their deviance on the training rows."""
    X, y = count_events(scale)
    params = {"criterion": "poisson", "max_depth": COUNT_DEPTH, "min_samples_leaf": 5}
    ours, peer = alternate(
        [
            lambda _: CARTRegressor(**params).fit(X, y),
            lambda turn: DecisionTreeRegressor(random_state=turn, **params).fit(X, y),
        ],
        scale.repeats,
    )
    found, expected = (mean_poisson_deviance(y, runs.results[0].predict(X)) for runs in (ours, peer))
    return Answer(
        "fit",
        f"poisson, counts {len(X):,} x {COUNT_FEATURES}, depth {COUNT_DEPTH}",
        str(ours.best),
        str(peer.best),
        peer.best.cpu / ours.best.cpu,
        " x CPU",
        LEAST_RATIO["poisson"],
        is_alike=abs(found / expected - 1.0) < SCORE_SLACK,
        note=f"deviance {found:.5f} / {expected:.5f}; clock {peer.best.wall / ours.best.wall:.3g} x",
    )


def fit_absolute(n_rows: int, scale: Scale) -> Answer:
    """Trees of full depth by criterion="absolute_error"; alike: the absolute error of their first test.

    Deeper trees differ: tests of equal gain are many, and the peer draws among them.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, MEDIAN_FEATURES))
    y = X[:, 0] ** 2 + np.sin(X[:, 1]) + 0.3 * rng.standard_normal(n_rows)
    ours, peer = alternate(
        [
            lambda _: CARTRegressor(criterion="absolute_error").fit(X, y),
            lambda turn: DecisionTreeRegressor(criterion="absolute_error", random_state=turn).fit(X, y),
        ],
        scale.repeats,
    )
    found, expected = (first_error(runs.results[0].tree_) for runs in (ours, peer))
    return Answer(
        "fit",
        f"absolute error, {n_rows:,} x {MEDIAN_FEATURES}",
        str(ours.best),
        str(peer.best),
        peer.best.cpu / ours.best.cpu,
        " x CPU",
        LEAST_RATIO["absolute"],
        is_alike=abs(found / expected - 1.0) < 1e-9,
        note=f"error of the first test {found:.6f} / {expected:.6f}; clock {peer.best.wall / ours.best.wall:.3g} x",
    )


def first_error(tree: Any) -> float:
    """Mean impurity of the branches of the root, of a tree by the names of scikit-learn."""
    sides = [tree.children_left[0], tree.children_right[0]]
    return float(np.average(tree.impurity[sides], weights=tree.weighted_n_node_samples[sides]))


def compare_fits(split: Split, scale: Scale, limit: float) -> Answer:
    """Ours and the peer's tree of a table, in turns."""
    make_ours, make_peer = models(split)

    def fit_ours(_turn: int) -> Any:
        return make_ours().fit(split.X, split.y)

    def fit_peer(turn: int) -> Any:
        return make_peer(turn).fit(split.X, split.y)

    first, _ = measure(lambda: fit_ours(0))
    ours, peer = alternate([fit_ours, fit_peer], scale.repeats)
    trees, is_alike = compare_trees(split, ours, peer)
    compiler = max(first.wall - ours.best.wall, 0.0)
    return Answer(
        "fit",
        split.name,
        str(ours.best),
        str(peer.best),
        peer.best.wall / ours.best.wall,
        " x",
        limit,
        is_alike=is_alike,
        note=f"CPU {peer.best.cpu / ours.best.cpu:.3g} x; {trees}; "
        f"compiling or loading kernels before that {in_seconds(compiler)}",
    )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    for at, split in enumerate(splits(scale)):
        report(answers, compare_fits(split, scale, LEAST_RATIO["numeric" if at == 0 else "table"]))
    report(answers, fit_poisson(scale))
    for n_rows in sorted({scale.rows(n) for n in MEDIAN_ROWS}):
        report(answers, fit_absolute(n_rows, scale))
    return answers
