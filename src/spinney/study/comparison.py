"""Five folds of California housing: trees, forests and boosting against the mean and a linear model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from rich.console import Console

SEED = 42


class Row(NamedTuple):
    """What one method did over the folds."""

    method: str
    score: float  # mean R² on the held-out folds
    score_sd: float  # its standard deviation over the folds
    fit_seconds: float  # mean over the folds
    leaves: float | None  # mean over the folds; None for a method without leaves


def methods() -> dict[str, Any]:
    """The methods of the study by name, unfitted."""
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from spinney import CARTRegressor, ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor

    return {
        "mean of the target": DummyRegressor(),
        "linear model": make_pipeline(StandardScaler(), LinearRegression()),
        "CART, full depth": CARTRegressor(),
        "CART, 20 rows a leaf": CARTRegressor(min_samples_leaf=20),
        "CART, pruned (ccp_alpha=0.0005)": CARTRegressor(ccp_alpha=5e-4),
        "random forest, 50 trees": RandomForestRegressor(n_estimators=50, random_state=0),
        "extra-trees, 50 trees": ExtraTreesRegressor(n_estimators=50, random_state=0),
        "gradient boosting, 100 trees": GradientBoostingRegressor(random_state=0),
    }


def compare(
    table: pa.Table | None = None,
    target: str = "MedHouseVal",
    *,
    n_splits: int = 5,
    on_fit: Callable[[str], object] | None = None,
) -> list[Row]:
    """Cross-validate the methods of the study.

    Parameters
    ----------
    table : pyarrow.Table of numeric columns, default: the embedded California housing table
    target : the column to predict
    n_splits : number of folds; they are shuffled by a fixed seed
    on_fit : called with the method's name before each fit, for progress

    Returns
    -------
    list of Row, in the order of `methods`

    Examples
    --------
    >>> from spinney import datasets, study
    >>> rows = study.compare(datasets.load("california_housing").slice(0, 500), n_splits=2)
    >>> rows[0].method
    'mean of the target'
    """
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    from spinney import _jit, datasets

    if table is None:
        table = datasets.load("california_housing")
    y = np.asarray(table[target], dtype=np.float64)
    X = np.column_stack([np.asarray(table[name], dtype=np.float64) for name in table.column_names if name != target])
    folds = list(KFold(n_splits, shuffle=True, random_state=SEED).split(X))
    _jit.load_compiled()
    rows = []
    for name, method in methods().items():
        clone(method).fit(X[:100], y[:100])  # fit times are of fits, not of the compiler
        scores, seconds, leaves = [], [], []
        for train, test in folds:
            if on_fit is not None:
                on_fit(name)
            model = clone(method)
            start = time.perf_counter()
            model.fit(X[train], y[train])
            seconds.append(time.perf_counter() - start)
            scores.append(model.score(X[test], y[test]))
            if hasattr(model, "get_n_leaves"):
                leaves.append(model.get_n_leaves())
        n_leaves = float(np.mean(leaves)) if leaves else None
        rows.append(Row(name, float(np.mean(scores)), float(np.std(scores)), float(np.mean(seconds)), n_leaves))
    return rows


def print_rows(rows: Iterable[Row], console: Console, title: str) -> None:
    """Print the study as a table."""
    from rich.table import Table

    picture = Table(title=title, title_justify="left")
    picture.add_column("method")
    for heading in ("R²", "sd", "fit (s)", "leaves"):
        picture.add_column(heading, justify="right")
    for row in rows:
        leaves = "" if row.leaves is None else f"{row.leaves:,.0f}"
        score = round(row.score, 3) + 0.0  # no "-0.000"
        picture.add_row(row.method, f"{score:.3f}", f"{row.score_sd:.3f}", f"{row.fit_seconds:.3f}", leaves)
    console.print(picture)
