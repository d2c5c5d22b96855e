"""Importances of features as a table that prints, plots and becomes a frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, eq=False)
class ImportanceTable:
    """Importances of features or groups of features.

    Attributes
    ----------
    feature : tuple of str
        Names of the features or groups.
    importance : float64 (n,)
        "impurity": shares with sum 1. "impurity_oob": decrease of Gini impurity or of the variance of y. "permutation",
        "conditional": rise of the share of wrong classes, of the squared error, or fall of the score asked for.
    std_error : float64 (n,)
        Spread over the trees, standard deviation / sqrt(trees): how far another forest on the same rows might be. Rows
        of another sample might differ by more.
    kind : str

    Examples
    --------
    >>> table = ImportanceTable(("age", "pay"), np.array([0.1, 0.3]), np.array([0.01, 0.02]), "permutation")
    >>> print(table)
    permutation importance
    feature  importance  std error
    pay             0.3       0.02
    age             0.1       0.01
    >>> table.sorted().feature
    ('pay', 'age')
    """

    feature: tuple[str, ...]
    importance: NDArray[np.float64]
    std_error: NDArray[np.float64]
    kind: str

    def __len__(self) -> int:
        return len(self.feature)

    def __repr__(self) -> str:
        return str(self)

    def sorted(self) -> ImportanceTable:
        """The same with the most important first; equal ones keep their order."""
        order = np.argsort(-self.importance, kind="stable")
        names = tuple(self.feature[i] for i in order)
        return replace(self, feature=names, importance=self.importance[order], std_error=self.std_error[order])

    def lines(self) -> list[tuple[str, str, str]]:
        """Texts of the rows, the most important first."""
        table = self.sorted()
        cells = zip(table.feature, table.importance.tolist(), table.std_error.tolist(), strict=True)
        return [(name, f"{value:.4g}", f"{error:.2g}") for name, value, error in cells]

    def __str__(self) -> str:
        rows = [("feature", "importance", "std error"), *self.lines()]
        wide = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{name:<{wide[0]}}  {value:>{wide[1]}}  {error:>{wide[2]}}" for name, value, error in rows]
        return "\n".join([f"{self.kind} importance", *lines])

    def _repr_html_(self) -> str:
        head = "<tr><th>feature</th><th>importance</th><th>std error</th></tr>"
        rows = [f"<tr><td>{escape(name)}</td><td>{v}</td><td>{e}</td></tr>" for name, v, e in self.lines()]
        return f"<table><caption>{escape(self.kind)} importance</caption>{head}{''.join(rows)}</table>"

    def to_frame(self) -> Any:
        """The table as a pandas frame, or as an Arrow table where pandas is not installed."""
        columns = {"feature": list(self.feature), "importance": self.importance, "std_error": self.std_error}
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw bars with two standard errors to either side, the most important on top; returns matplotlib's axes."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]
            except ImportError as error:
                raise ImportError("plot needs matplotlib: pip install 'spinney[plot]'") from error
            _, ax = plt.subplots(figsize=(6.4, 1.0 + 0.3 * len(self)), layout="constrained")
        table = self.sorted()
        ax.barh(range(len(table)), table.importance, xerr=2.0 * table.std_error, height=0.7)
        ax.set_yticks(range(len(table)), labels=table.feature)
        ax.invert_yaxis()
        ax.axvline(0.0, linewidth=0.8, color="0.3")
        ax.set_xlabel(f"{self.kind} importance, with 2 standard errors")
        return ax


def tabulate(names: Sequence[str], by_tree: NDArray[np.float64], kind: str) -> ImportanceTable:
    """Means and standard errors of importances per tree, shape (n_trees, n_units)."""
    n_trees = len(by_tree)
    spread = by_tree.std(axis=0, ddof=1) if n_trees > 1 else np.full(by_tree.shape[1], np.nan)
    return ImportanceTable(tuple(names), by_tree.mean(axis=0), spread / math.sqrt(n_trees), kind)
