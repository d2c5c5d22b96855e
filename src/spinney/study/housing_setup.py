"""What the figure on California housing is made of: the table, its folds and the four ensembles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE, TARGET = "california_housing", "MedHouseVal"
TREES = tuple(range(50, 501, 50))
N_FOLDS, SEED = 5, 42

# Every tree sees all rows and columns.
WHOLE: dict[str, Any] = {"subsample": 1.0, "max_features": None}
# XGBoost's defaults in our words; the text sets the rate and the depth.
XGBOOST: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_depth": 5,
    "max_leaf_nodes": None,
    "min_samples_leaf": 1,
    "min_child_weight": 1.0,
    "reg_lambda": 1.0,
    **WHOLE,
}
# Friedman's method as the text sets it: at most ten leaves, each with a tenth of the rows, make it weak.
WEAK: dict[str, Any] = {
    "newton": False,
    "learning_rate": 0.2,
    "max_depth": 8,
    "max_leaf_nodes": None,
    "min_samples_split": 5,
    "min_samples_leaf": 3,
    "min_weight_fraction_leaf": 0.1,
    **WHOLE,
}


def ensembles() -> dict[str, Any]:
    """The four ensembles of the figure by name, unfitted."""
    from spinney import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor

    return {
        "random forest": RandomForestRegressor(n_jobs=-1),
        "extra-trees": ExtraTreesRegressor(n_jobs=-1),
        "XGBoost's form": GradientBoostingRegressor(**XGBOOST),
        "weak boosting": GradientBoostingRegressor(**WEAK),
    }


WORDS = {  # names that are ours, explained
    "XGBoost's form": "gradient boosting with the second-order gain and the defaults of XGBoost, depth 5, rate 0.1",
    "weak boosting": "Friedman's gradient boosting with leaves of a tenth of the rows at least: its trees stay weak",
}


def list_settings() -> dict[str, tuple[str, dict[str, Any]]]:
    """Class and parameters of each ensemble, but for trees, threads and what is at its default."""
    found = {}
    for name, model in ensembles().items():
        usual = type(model)().get_params()
        changed = {key: value for key, value in model.get_params().items() if value != usual[key] and key != "n_jobs"}
        found[name] = type(model).__name__, changed
    return found


def load_folds() -> tuple[NDArray[Any], NDArray[Any], list[tuple[NDArray[np.int64], NDArray[np.int64]]]]:
    """Inputs, target, and the (training rows, held-out rows) of each fold."""
    from spinney import datasets

    table = datasets.load(TABLE)
    X = np.column_stack([table[name].to_numpy() for name in table.column_names if name != TARGET])
    return X, table[TARGET].to_numpy(), cut_rows(len(X))


def cut_rows(n_rows: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The figure's folds: training rows and held-out rows."""
    from sklearn.model_selection import KFold

    return list(KFold(N_FOLDS, shuffle=True, random_state=SEED).split(np.empty(n_rows)))
