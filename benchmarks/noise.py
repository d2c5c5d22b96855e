"""What does a category that says nothing cost? The rise of log loss by one column of random levels, for every method.

2, 10, 51, 300, 1,000 levels, and half as many as rows, drawn anew for each seed; four tables of two classes, at most
2,000 rows each by sample, three quarters of which learn. The rise is that of the mean over the seeds, then averaged
over the tables; what follows ± is its standard error over the seeds. Probabilities are held within 0.001 and 0.999:
pure leaves say 0, and one row of the other class would decide. CART and AdaBoost's trees have 20 rows a leaf; what else
there is keeps its defaults. `--seeds N` takes N seeds instead of three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.engines import has
from benchmarks.ranks import TASKS, Problem, read_problem
from benchmarks.runner import Answer, Scale, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

TABLES = ("spambase", "credit_default", "german_credit", "pima_diabetes")
MOST_ROWS = 2_000
LEVELS = (2, 10, 51, 300, 1_000)  # and half as many as rows
MOST_RISE = 1.0  # percent
LEAST_CHANCE = 1e-3  # of a class
PEER = "LightGBM"


def list_methods() -> dict[str, Callable[[int], Any]]:
    """Every method as a function of the seed; the peer comes last."""
    import spinney

    few = {"min_samples_leaf": 20}
    found: dict[str, Callable[[int], Any]] = {
        "CART": lambda _: spinney.CARTClassifier(**few),
        "bagging": lambda seed: spinney.BaggingClassifier(n_estimators=50, random_state=seed, n_jobs=1),
        "random forest": lambda seed: spinney.RandomForestClassifier(random_state=seed, n_jobs=1),
        "extra-trees": lambda seed: spinney.ExtraTreesClassifier(random_state=seed, n_jobs=1),
        "AdaBoost": lambda seed: spinney.AdaBoostClassifier(
            spinney.CARTClassifier(max_depth=3, **few), n_estimators=20, random_state=seed
        ),
        "gradient boosting": lambda seed: spinney.GradientBoostingClassifier(random_state=seed, n_jobs=1),
    }
    if has("lightgbm"):
        import lightgbm

        found[PEER] = lambda seed: lightgbm.LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1)
    return found


def read_tables(scale: Scale) -> list[Problem]:
    """The tables, or a sample of their rows."""
    tasks = {task.name: task._replace(most_rows=MOST_ROWS) for task in TASKS}
    found = (read_problem(tasks[name], scale) for name in TABLES)
    return [problem for problem in found if problem is not None]


def add_noise(problem: Problem, n_levels: int, seed: int) -> Any:
    """The frame with a column of random levels; 0: without."""
    import pandas as pd

    if n_levels == 0:
        return problem.X
    drawn = np.random.default_rng(100 + seed).integers(0, n_levels, len(problem.y))
    return problem.X.assign(noise=pd.Categorical([f"level {level}" for level in drawn]))


def score_model(model: Any, X: Any, y: NDArray[Any], train: NDArray[Any], test: NDArray[Any]) -> float:
    """Log loss of the rows held out, of probabilities that are never 0."""
    model.fit(X.iloc[train], y[train])
    said = model.predict_proba(X.iloc[test])[np.arange(len(test)), y[test]]
    return float(-np.log(np.clip(said, LEAST_CHANCE, 1.0 - LEAST_CHANCE)).mean())


def score_table(problem: Problem, make: Callable[[int], Any], n_seeds: int) -> NDArray[np.float64]:
    """Log loss (n_seeds, 1 + numbers of levels) without a column of noise, then with one of each number of levels."""
    from sklearn.model_selection import train_test_split

    counts = (0, *LEVELS, len(problem.y) // 2)
    scores = np.empty((n_seeds, len(counts)))
    for seed in range(n_seeds):
        rows = np.arange(len(problem.y))
        train, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=problem.y)
        for at, n_levels in enumerate(counts):
            scores[seed, at] = score_model(make(seed), add_noise(problem, n_levels, seed), problem.y, train, test)
    return scores


def find_rises(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percent (numbers of levels,) by which noise raises scores (tables, seeds, 1 + levels); standard errors."""
    rises = 100.0 * (scores[:, :, 1:] - scores[:, :, :1]) / scores[:, :, :1].mean(axis=1, keepdims=True)
    by_seed = rises.mean(axis=0)
    return by_seed.mean(axis=0), by_seed.std(axis=0, ddof=min(len(by_seed) - 1, 1)) / np.sqrt(len(by_seed))


def run(scale: Scale, seeds: int | None = None) -> list[Answer]:
    answers: list[Answer] = []
    problems, n_seeds = read_tables(scale), seeds or min(scale.repeats, 3)
    rises: dict[str, NDArray[np.float64]] = {}
    for name, make in reversed(list_methods().items()):
        scores = np.array([score_table(problem, make, n_seeds) for problem in problems])
        rises[name], errors = find_rises(scores)
        by_levels = rises[name]
        labels = (*(f"{n_levels:,}" for n_levels in LEVELS), "n/2")
        peer = rises.get(PEER) if name != PEER else None
        report(
            answers,
            Answer(
                "noise",
                f"{name}, rise of log loss by a column of {' / '.join(labels)} random levels",
                " / ".join(f"{value:+.1f} ± {error:.1f} %" for value, error in zip(by_levels, errors, strict=True)),
                "" if peer is None else " / ".join(f"{value:+.1f} %" for value in peer),
                by_levels.max(),
                " %",
                None if name == PEER else MOST_RISE,
                is_least=False,
                note=f"largest of the numbers of levels; mean of {len(problems)} tables, {n_seeds} seeds each"
                f"; without noise {' / '.join(f'{value:.4g}' for value in scores[:, :, 0].mean(axis=1))}",
            ),
        )
    return answers
