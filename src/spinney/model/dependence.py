"""How answers depend on one column: partial dependence, single rows (ICE), and accumulated local effects (ALE).

The answer of trees is constant between neighbouring thresholds of a column, so a curve over all these intervals is the
whole truth, not a sample of it: it has a point in each interval, and jumps at the thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.model.any_model import find_predictor
from spinney.model.counterfactual import cell_of, list_trees, locate_columns, thresholds_of
from spinney.model.explained_trees import output_names, raw_scores
from spinney.model.predictors import TreePredictor

if TYPE_CHECKING:
    from spinney.model.base_predictor import Predictor

BLOCK_ROWS = 1 << 16  # changed rows that are predicted at once
MOST_STEPS = 500  # of a curve; more intervals are thinned
N_BINS = 40  # of local effects


@dataclass(frozen=True, eq=False, repr=False)
class DependenceCurve:
    """How answers depend on a column.

    Attributes
    ----------
    column : str
    kind : {"average", "individual", "local"}
    grid : tuple
        Values of the column: a point in each interval between thresholds, levels, or ends of bins of "local".
    values : float64 (n_points, n_outputs), or (n_rows, n_points, n_outputs) for "individual"
    edges : float64 (n_points - 1,), or None
        The thresholds between the points of a number, where the curve jumps.
    is_whole : bool
        Whether every interval between thresholds has its point.
    outputs : tuple
        Classes; (None,) for a number.
    """

    column: str
    kind: str
    grid: tuple[Any, ...]
    values: NDArray[np.float64]
    edges: NDArray[np.float64] | None
    is_whole: bool
    outputs: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"DependenceCurve({self.kind} of {self.column}, {len(self.grid)} points)"


def dependence(
    model: Any,
    X: Any,
    column: str | int,
    *,
    kind: str = "average",
    output: str = "answer",
    grid: Any = None,
    n_jobs: int | None = None,
) -> DependenceCurve:
    """How the answers of a model depend on one column, the others staying as they are in X.

    Parameters
    ----------
    model : estimator, Predictor or path
        Fitted; a path is that of a model file.
    X : array-like or frame of shape (n_rows, n_features)
        Rows whose other columns are kept.
    column : str or int
    kind : {"average", "individual", "local"}, default="average"
        Mean over the rows (partial dependence); each row (ICE); or accumulated local effects (ALE), which change a
        column only as far as the next of 40 quantiles, so that rows stay likely where columns go together.
    output : {"answer", "raw"}, default="answer"
        What `predict_proba` and `predict` give, or raw scores.
    grid : array-like, optional
        Values of the column; by default one in each interval between thresholds of the trees, 500 at most.
    n_jobs : int, optional
        Threads at most.

    Returns
    -------
    DependenceCurve

    Examples
    --------
    >>> import spinney
    >>> model = spinney.CARTRegressor().fit([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [10.0, 20.0, 30.0])
    >>> curve = spinney.dependence(model, [[1.0, 0.0], [2.0, 1.0]], 0)
    >>> curve.edges, curve.values[:, 0]
    (array([1.5, 2.5]), array([10., 20., 30.]))
    """
    predictor = find_predictor(model, "explain")
    if kind not in {"average", "individual", "local"}:
        raise ValueError(f"kind={kind!r}: give 'average', 'individual' or 'local'")
    if output not in {"answer", "raw"}:
        raise ValueError(f"output={output!r}: give 'answer' or 'raw'")
    (j,) = locate_columns(predictor, [column])
    values = np.asarray(predictor.encode(X), np.float64)
    if len(values) == 0:
        raise ValueError("X has no rows")
    ask = Asking(predictor, output, n_jobs)
    name = (predictor.schema.names or tuple(f"x{k}" for k in range(predictor.n_features)))[j]
    if kind == "local":
        if predictor.schema.levels[j] is not None:
            raise ValueError(
                f"{name} is a category, whose levels have no order to accumulate effects in: use 'average'"
            )
        ends, effects = local_effects(ask, values, j)
        grid = tuple(ends.tolist())
        return DependenceCurve(name, kind, grid, effects, None, is_whole=True, outputs=ask.names(effects))
    points, edges, is_whole = find_points(predictor, j, grid)
    curves = ask.curves(values, j, points)
    found = curves if kind == "individual" else curves.mean(axis=0)
    shown = tuple(cell_of(predictor, j, point) for point in points.tolist())
    return DependenceCurve(name, kind, shown, found, edges, is_whole, ask.names(found))


class Asking:
    """What rows are answered.

    Parameters
    ----------
    predictor : Predictor
    output : {"answer", "raw"}
    n_jobs : int or None
    """

    def __init__(self, predictor: Predictor, output: str, n_jobs: int | None) -> None:
        self.predictor, self.output, self.n_jobs = predictor, output, n_jobs

    def names(self, found: NDArray[np.float64]) -> tuple[Any, ...]:
        """What the outputs are, the last axis of what was found."""
        return output_names(self.predictor, found.shape[-1])

    def answer(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers, (n_rows, n_outputs)."""
        if self.output == "raw":
            return raw_scores(self.predictor, rows, self.n_jobs)
        return self.predictor.answer(rows, self.n_jobs).reshape(len(rows), -1)

    def curves(self, values: NDArray[np.float64], j: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers to each row with each value of a column, (n_rows, n_points, n_outputs)."""
        size = max(BLOCK_ROWS // max(len(points), 1), 1)
        parts = []
        for first in range(0, len(values), size):
            block = values[first : first + size]
            rows = np.repeat(block, len(points), axis=0)
            rows[:, j] = np.tile(points, len(block))
            parts.append(self.answer(rows).reshape(len(block), len(points), -1))
        return np.concatenate(parts)


def find_points(
    predictor: Predictor, j: int, grid: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, bool]:
    """Values of a column to try, the thresholds between them, and whether these are all."""
    levels = predictor.schema.levels[j]
    if grid is not None:
        wanted = list(grid)
        if levels is None:
            return np.array(wanted, np.float64), None, False
        unknown = [level for level in wanted if level not in levels]
        if unknown:
            raise ValueError(f"grid: {unknown[0]!r} is no level: there are {', '.join(map(repr, levels[:20]))}")
        return np.array([levels.index(level) for level in wanted], np.float64), None, False
    if levels is not None:
        return np.arange(len(levels), dtype=np.float64), None, True
    trees = [predictor.tree] if isinstance(predictor, TreePredictor) else list_trees(predictor)
    cuts = np.unique(np.concatenate([thresholds_of(tree, j) for tree in trees]))
    is_whole = len(cuts) < MOST_STEPS
    if not is_whole:
        cuts = cuts[np.linspace(0, len(cuts) - 1, MOST_STEPS - 1).round().astype(np.intp)]
    if len(cuts) == 0:
        return np.zeros(1), cuts, True
    width = max(float(cuts[-1] - cuts[0]) / max(len(cuts), 1), abs(float(cuts[0])) * 1e-3, 1e-9)
    above = np.nextafter(cuts, np.inf)
    middle = np.minimum(np.maximum(cuts[:-1] + np.diff(cuts) / 2.0, above[:-1]), cuts[1:])
    first, last = cuts[0] - width, max(cuts[-1] + width, above[-1])
    return np.concatenate([[first], middle, [last]]), cuts, is_whole


def local_effects(ask: Asking, values: NDArray[np.float64], j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of bins and the accumulated effects there, whose mean over the rows is 0 (Apley and Zhu 2020)."""
    values = values[np.isfinite(values[:, j])]
    if len(values) == 0:
        raise ValueError("the column has no values in X")
    ends = np.unique(np.quantile(values[:, j], np.linspace(0.0, 1.0, N_BINS + 1), method="inverted_cdf"))
    if len(ends) < 2:
        return ends, np.zeros((1, ask.answer(values[:1]).shape[1]))
    bins = np.clip(np.searchsorted(ends, values[:, j], side="left") - 1, 0, len(ends) - 2)
    low, high = values.copy(), values.copy()
    low[:, j], high[:, j] = ends[bins], ends[bins + 1]
    change = ask.answer(high) - ask.answer(low)
    counts = np.bincount(bins, minlength=len(ends) - 1)
    steps = np.zeros((len(ends) - 1, change.shape[1]))
    np.add.at(steps, bins, change)
    steps /= np.maximum(counts, 1)[:, None]
    total = np.concatenate([np.zeros((1, change.shape[1])), np.cumsum(steps, axis=0)])
    middle = (total[:-1] + total[1:]) / 2.0
    return ends, total - (middle * counts[:, None]).sum(axis=0) / counts.sum()
