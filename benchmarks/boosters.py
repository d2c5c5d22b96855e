"""Gradient boosting of ours and of three peers behind one face, so that they can take turns.

All grow best first to the same number of leaves, over the same number of rounds and bins, at a learning rate of 0.1
(ours takes steps as long as LightGBM's, of many classes too), and otherwise keep their defaults, but that ours,
LightGBM and scikit-learn want 20 rows in a leaf, and XGBoost, which counts none, a sum of second derivatives of 1.
Categories are pandas categories for all.

A turn tells binning from training. LightGBM and XGBoost bin apart (`Dataset`, `QuantileDMatrix`); ours bins once more
beside its fit; scikit-learn's binning is what a fit of one round takes beyond a round.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.runner import Timing, measure
from benchmarks.tables import Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEARNING_RATE = 0.1
N_BINS = 255
MIN_ROWS = 20  # of a leaf


class Size(NamedTuple):
    """How much a booster grows, and on how many threads."""

    n_rounds: int = 100
    n_leaves: int = 31
    n_threads: int = 1


class Turn(NamedTuple):
    """What one fit took."""

    training: Timing
    total: Timing  # binning included
    model: Any


def minus(a: Timing, b: Timing) -> Timing:
    return Timing(max(a.wall - b.wall, 1e-9), max(a.cpu - b.cpu, 1e-9))


def plus(a: Timing, b: Timing) -> Timing:
    return Timing(a.wall + b.wall, a.cpu + b.cpu)


class Booster:
    """A library's gradient boosting; `n_classes` is 0 for numbers."""

    name: str
    module: str

    def __init__(self, size: Size, n_classes: int) -> None:
        self.size, self.n_classes = size, n_classes

    def bin(self, X: Any, y: NDArray[Any]) -> Any:
        """The table in bins, as `train` takes it."""
        raise NotImplementedError

    def train(self, binned: Any) -> Any:
        """A model from a table in bins."""
        raise NotImplementedError

    def fit(self, X: Any, y: NDArray[Any]) -> Any:
        """A model from a table."""
        return self.train(self.bin(X, y))

    def predict(self, model: Any, X: Any) -> NDArray[Any]:
        """Numbers; probabilities of the second class, or of each of many (n_rows, n_classes)."""
        raise NotImplementedError

    def take_turn(self, X: Any, y: NDArray[Any]) -> Turn:
        """Fit once, with a clock on either part."""
        binning, binned = measure(lambda: self.bin(X, y))
        training, model = measure(lambda: self.train(binned))
        return Turn(training, plus(binning, training), model)


class Ours(Booster):
    """Our estimators."""

    name = "ours"
    module = "spinney"

    def make(self) -> Any:
        import spinney

        kind = spinney.GradientBoostingClassifier if self.n_classes else spinney.GradientBoostingRegressor
        return kind(
            n_estimators=self.size.n_rounds,
            max_leaf_nodes=self.size.n_leaves,
            learning_rate=LEARNING_RATE * self.step,
            max_bins=N_BINS,
            min_samples_leaf=MIN_ROWS,
            subsample=1.0,
            max_features=None,
            # 0 as LightGBM and scikit-learn; not for many classes, since kddcup99 diverges without
            reg_lambda=1.0 if self.n_classes > 2 else 0.0,
            n_jobs=self.size.n_threads,
        )

    @property
    def step(self) -> float:
        """How much longer our steps have to be to be LightGBM's.

        Second derivatives of n > 2 classes are 2 p (1 - p) for us, as for XGBoost, and n / (n - 1) p (1 - p) there.
        """
        return 2.0 * (self.n_classes - 1) / self.n_classes if self.n_classes > 2 else 1.0

    def bin_apart(self, X: Any) -> Any:
        """What a fit does before it grows: reading and binning."""
        from spinney._jit import kernels
        from spinney.table.binning import bin_table
        from spinney.table.bundles import bundle_features
        from spinney.table.ingest import read_columns

        chosen, unit = kernels(float("inf")), np.ones(1, np.int64)
        return bundle_features(bin_table(read_columns(X), unit, N_BINS, chosen, n_workers=self.size.n_threads))

    def fit(self, X: Any, y: NDArray[Any]) -> Any:
        return self.make().fit(X, y)

    def take_turn(self, X: Any, y: NDArray[Any]) -> Turn:
        binning, _ = measure(lambda: self.bin_apart(X))
        total, model = measure(lambda: self.fit(X, y))
        return Turn(minus(total, binning), total, model)

    def predict(self, model: Any, X: Any) -> NDArray[Any]:
        return predict_by_method(model, X, self.n_classes)


class LightGBM(Booster):
    """LightGBM by its own interface: its estimators would check more."""

    name = "LightGBM"
    module = "lightgbm"

    @property
    def params(self) -> dict[str, Any]:
        kind = {0: "regression", 2: "binary"}.get(self.n_classes, "multiclass")
        return {
            "objective": kind,
            "num_class": self.n_classes if kind == "multiclass" else 1,
            "num_leaves": self.size.n_leaves,
            "learning_rate": LEARNING_RATE,
            "max_bin": N_BINS,
            "min_data_in_leaf": MIN_ROWS,
            "num_threads": self.size.n_threads,
            "verbose": -1,
        }

    def bin(self, X: Any, y: NDArray[Any]) -> Any:
        import lightgbm

        return lightgbm.Dataset(X, y, params=self.params, free_raw_data=False).construct()

    def train(self, binned: Any) -> Any:
        import lightgbm

        return lightgbm.train(self.params, binned, self.size.n_rounds)

    def predict(self, model: Any, X: Any) -> NDArray[Any]:
        return model.predict(X, num_threads=self.size.n_threads)


class XGBoost(Booster):
    """XGBoost's histogram method by its own interface."""

    name = "XGBoost"
    module = "xgboost"

    @property
    def params(self) -> dict[str, Any]:
        kind = {0: "reg:squarederror", 2: "binary:logistic"}.get(self.n_classes, "multi:softprob")
        return {
            "objective": kind,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": self.size.n_leaves,
            "max_bin": N_BINS,
            "learning_rate": LEARNING_RATE,
            "nthread": self.size.n_threads,
            **({"num_class": self.n_classes} if self.n_classes > 2 else {}),
        }

    def bin(self, X: Any, y: NDArray[Any]) -> Any:
        import xgboost

        return xgboost.QuantileDMatrix(
            X, y, max_bin=N_BINS, nthread=self.size.n_threads, enable_categorical=hasattr(X, "columns")
        )

    def train(self, binned: Any) -> Any:
        import xgboost

        return xgboost.train(self.params, binned, self.size.n_rounds)

    def predict(self, model: Any, X: Any) -> NDArray[Any]:
        if not hasattr(X, "columns"):
            return model.inplace_predict(X)
        import xgboost

        return model.predict(xgboost.DMatrix(X, enable_categorical=True, nthread=self.size.n_threads))


class ScikitLearn(Booster):
    """scikit-learn's histogram gradient boosting; takes at most 255 levels."""

    name = "scikit-learn"
    module = "sklearn"

    def make(self, n_rounds: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        kind = HistGradientBoostingClassifier if self.n_classes else HistGradientBoostingRegressor
        return kind(
            max_iter=n_rounds,
            max_leaf_nodes=self.size.n_leaves,
            learning_rate=LEARNING_RATE,
            max_bins=N_BINS,
            min_samples_leaf=MIN_ROWS,
            early_stopping=False,
            categorical_features="from_dtype",
        )

    def fit(self, X: Any, y: NDArray[Any], n_rounds: int | None = None) -> Any:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(self.size.n_threads):
            return self.make(n_rounds or self.size.n_rounds).fit(X, y)

    def take_turn(self, X: Any, y: NDArray[Any]) -> Turn:
        one, _ = measure(lambda: self.fit(X, y, 1))
        total, model = measure(lambda: self.fit(X, y))
        n_more = max(self.size.n_rounds - 1, 1)
        later = minus(total, one)
        share = self.size.n_rounds / n_more
        return Turn(Timing(later.wall * share, later.cpu * share), total, model)

    def predict(self, model: Any, X: Any) -> NDArray[Any]:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(self.size.n_threads):
            return predict_by_method(model, X, self.n_classes)


PEERS = (LightGBM, XGBoost, ScikitLearn)
KINDS = {kind.name: kind for kind in (Ours, *PEERS)}


def predict_by_method(model: Any, X: Any, n_classes: int) -> NDArray[Any]:
    """What scikit-learn's methods give."""
    if n_classes == 0:
        return model.predict(X)
    found = model.predict_proba(X)
    return found[:, 1] if n_classes == 2 else found


def find_peers() -> list[type[Booster]]:
    """Those that are installed; a line for each of the others."""
    found = []
    for kind in PEERS:
        try:
            import_module(kind.module)
        except ImportError:
            print(f"{kind.name}: left out, not installed")
        else:
            found.append(kind)
    return found


# --- Tables as boosters take them ---------------------------------------------------------------------------


def prepare(split: Split) -> Split:
    """A split with pandas frames for tables with categories, and 0, 1, ... for classes; -1 for one not grown on."""
    parts = [X.to_pandas() if hasattr(X, "to_pandas") else X for X in (split.X, split.X_test)]
    y, y_test = split.y, split.y_test
    if not split.is_regression:
        classes, y = np.unique(split.y, return_inverse=True)
        place = np.minimum(np.searchsorted(classes, split.y_test), len(classes) - 1)
        y_test = np.where(classes[place] == split.y_test, place, -1)
    return Split(split.name, parts[0], y, parts[1], y_test, split.is_regression)


def count_classes(split: Split) -> int:
    """Number of classes of a prepared split; 0 for numbers."""
    return 0 if split.is_regression else int(split.y.max()) + 1


def most_levels(X: Any) -> int:
    """Levels of the category that has most; 0 without categories."""
    kinds = getattr(X, "dtypes", ())
    return max((len(kind.categories) for kind in kinds if hasattr(kind, "categories")), default=0)


def rate(split: Split, found: NDArray[Any]) -> tuple[str, float]:
    """Name and value of the held-out score: R2, area under the curve for two classes, else accuracy."""
    from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

    if split.is_regression:
        return "R2", float(r2_score(split.y_test, found))
    if found.ndim == 1:
        return "AUC", float(roc_auc_score(split.y_test == 1, found))
    return "accuracy", float(accuracy_score(split.y_test, found.argmax(axis=1)))
