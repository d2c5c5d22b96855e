"""One tree a round for all classes or outputs, whose leaves hold a vector, against a tree for each: error and CPU time.

100 rounds of 31 leaves, rate 0.1, lambda 1, one thread, the same frames for every library; three quarters of the rows
learn, a quarter judges, the mean of two seeds. letter and vowel choose, the other tables of classes judge. Of numbers
there are two outputs, the casual and the registered riders of an hour.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.engines import has
from benchmarks.ranks import TASKS, read_frame, read_problem
from benchmarks.runner import Answer, Runs, Scale, alternate, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

CHOOSING, JUDGING = ("letter", "vowel"), ("satimage", "soybean", "kddcup99_10pct", "vehicle", "glass")
SEEDS, MOST_ROWS = 2, 20_000
RIDERS = ["casual", "registered"]
OURS = {
    "n_estimators": 100, "learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 20, "reg_lambda": 1.0,
    "subsample": 1.0, "max_features": None, "n_jobs": 1,
}  # fmt: skip
LIGHTGBM = {"n_estimators": 100, "learning_rate": 0.1, "num_leaves": 31, "reg_lambda": 1.0, "n_jobs": 1, "verbose": -1}
XGBOOST = {
    "n_estimators": 100, "learning_rate": 0.1, "max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide",
    "tree_method": "hist", "n_jobs": 1, "enable_categorical": True,
}  # fmt: skip


class Table(NamedTuple):
    """Rows of a table, and what is learnt of them."""

    name: str
    X: Any  # a pandas frame
    y: NDArray[Any]  # classes as 0, 1, ..., or (n_rows, n_outputs)
    part: str

    def split(self, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows to learn from, three quarters of each class, and rows that judge."""
        from sklearn.model_selection import train_test_split

        stratify = self.y if self.y.ndim == 1 else None
        train, test = train_test_split(np.arange(len(self.y)), test_size=0.25, random_state=seed, stratify=stratify)
        return train, test


def load_tables(scale: Scale) -> list[Table]:
    """Tables of many classes, and one of two outputs."""
    found = []
    for name in (*CHOOSING, *JUDGING):
        problem = read_problem(next(task for task in TASKS if task.name == name), scale)
        if problem is not None:
            few = np.sort(np.random.default_rng(1).permutation(len(problem.y))[:MOST_ROWS])
            y = np.unique(problem.y[few], return_inverse=True)[1]
            few, y = few[np.bincount(y)[y] >= 4], y[np.bincount(y)[y] >= 4]
            y = np.unique(y, return_inverse=True)[1]
            found.append(Table(name, problem.X.iloc[few], y, "chose" if name in CHOOSING else "judges"))
    task = next(task for task in TASKS if task.name == "bike_sharing_hour")
    frame = read_frame(task)
    if frame is not None:
        names = [name for name in frame.columns if name not in {task.target, *RIDERS}]
        found.append(Table("bike_sharing_hour", frame[names], frame[RIDERS].to_numpy(float), "judges"))
    return found


def list_sides(is_class: bool) -> dict[str, Callable[[], Any]]:
    """What is compared, by its name: one tree a round comes first."""
    import spinney

    if is_class:
        own = spinney.GradientBoostingClassifier
        sides: dict[str, Callable[[], Any]] = {
            "one tree": lambda: own(multi_strategy="one_tree", **OURS),
            "a tree for each": lambda: own(**OURS),
        }
    else:
        sides = {
            "one tree": lambda: spinney.GradientBoostingRegressor(**OURS),
            "a model for each": lambda: several(spinney.GradientBoostingRegressor(**OURS)),
        }
    if has("lightgbm"):
        lightgbm: Any = import_module("lightgbm")
        peer = lightgbm.LGBMClassifier if is_class else lightgbm.LGBMRegressor
        sides["LightGBM"] = lambda: peer(**LIGHTGBM) if is_class else several(peer(**LIGHTGBM))
    if has("xgboost"):
        xgboost: Any = import_module("xgboost")
        kind = xgboost.XGBClassifier if is_class else xgboost.XGBRegressor
        sides["XGBoost"] = lambda: kind(**XGBOOST)
        sides["XGBoost, one tree"] = lambda: kind(multi_strategy="multi_output_tree", **XGBOOST)
    return sides


def several(model: Any) -> Any:
    """A model for each output."""
    from sklearn.multioutput import MultiOutputRegressor

    return MultiOutputRegressor(model)


def error_of(model: Any, table: Table, test: NDArray[Any]) -> float:
    """Log loss, or the root of the mean squared error of all outputs."""
    X, y = table.X.iloc[test], table.y[test]
    if table.y.ndim == 2:
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    from sklearn.metrics import log_loss

    shares = np.clip(np.asarray(model.predict_proba(X), np.float64), 1e-15, 1.0)
    return float(log_loss(y, shares / shares.sum(axis=1, keepdims=True), labels=np.arange(table.y.max() + 1)))


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    for table in load_tables(scale):
        splits = [table.split(seed) for seed in range(SEEDS)]
        kinds = list_sides(table.y.ndim == 1)

        def side_of(make: Any, table: Table = table, splits: Any = splits) -> Any:
            def fit(turn: int) -> Any:
                train = splits[turn % SEEDS][0]
                try:
                    return make().fit(table.X.iloc[train], table.y[train])
                except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:  # of a peer
                    return f"{type(error).__name__}"

            return fit

        sides = [side_of(make) for make in kinds.values()]
        for side in sides[:2]:
            side(0)  # kernels are compiled
        found: list[Runs] = alternate(sides, SEEDS)
        cells, errors = [], []
        for name, runs in zip(kinds, found, strict=True):
            if isinstance(runs.results[0], str):
                cells.append(f"{name}: {runs.results[0]}")
                continue
            pairs = zip(runs.results, splits, strict=True)
            errors.append(float(np.mean([error_of(model, table, test) for model, (_, test) in pairs])))
            cells.append(f"{name} {errors[-1]:.4g} ({runs.best.cpu:.2f} s)")
        n_outputs = table.y.shape[1] if table.y.ndim == 2 else int(table.y.max()) + 1
        kind = "outputs, RMSE" if table.y.ndim == 2 else "classes, log loss"
        case = f"{table.name}, {len(table.y):,} rows, {n_outputs} {kind} (CPU of a fit); {table.part}"
        speed = found[1].best.cpu / found[0].best.cpu
        note = f"error {errors[0] / errors[1]:.3f} x that of a tree for each"
        report(answers, Answer("vectors", case, cells[0], "; ".join(cells[1:]), speed, " x CPU of those", note=note))
    return answers
