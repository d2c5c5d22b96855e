"""SHAP values of every predictor: Shapley's share of each column in an answer.

Two games are played. *Path dependent*: a column that is not known sends a row down all branches of its tests, in parts
as the training rows went; nothing is needed but the model. *Interventional*: a column that is not known has the value
of a background row, and the mean over these rows is taken. Both are exact.

What trees do that others do not, and how it counts:

- missing values go where `predict` sends them; where they take every branch, their column has no part in it
- the branch that a surrogate chooses counts, path dependent, for the column of the test that it stands in for; with
  background rows for whichever columns decide
- a linear leaf is its mean plus `coefficient * (value - mean of the leaf)`: such a term is 0 where its column is not
  known, the mean over the leaf's rows
- hard votes, weighted votes and shares are what leaves add
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._cost import SHORT_SECONDS
from spinney._jit import fixed, kernels
from spinney._node_layout import feature_of_link
from spinney._threads import count_workers, run_tasks
from spinney._types import SHAP_POINTS, SHAP_ROWS
from spinney._warnings import warn
from spinney.kernels.common.structs import (
    HybridScratch,
    PairScratch,
    ShapPoints,
    ShapRows,
    ShapScratch,
    ShapTables,
)
from spinney.model.any_model import find_predictor
from spinney.model.explained_trees import Explained, explained, raw_scores
from spinney.model.predictors import RoundPredictor, TreePredictor, WeightedPredictor
from spinney.model.quadrature import legendre_rule
from spinney.model.shap_table import ShapValues
from spinney.table.schema import refuse_infinite
from spinney.table.sparse import fill_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.base_predictor import Predictor

TASK_ROWS = 512  # of one task: its tables are made once for them
TASK_CELLS = 1 << 22  # of one task at most: rows x features x outputs
STEP_SECONDS = 4e-7  # one row at one point of one node, interpreted
COMPILED_SECONDS = 4e-10
PAIR_SECONDS = 1e-7  # a row, a background row and a tree, compiled
SLOW_PAIR_SECONDS = 1e-4  # the same, interpreted
TOLERANCE = 1e-9  # relative; beyond it a warning says that values do not add up
MOST_COALITION_COLUMNS = 16  # that are told apart one by one where an answer is no sum of trees
COALITION_CELLS = 1 << 22  # of hybrid rows that are predicted at once


def shap_values(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    output: str = "raw",
    interactions: bool = False,
    n_jobs: int | None = None,
) -> ShapValues:
    """Tell what each column added to the answer to each row: exact SHAP values.

    Without `background`, a column that is not known sends a row down all branches of its tests, in parts as the
    training rows went (path dependent). With it, such a column has the value of a background row, and the mean over
    these is taken (interventional).

    Parameters
    ----------
    model : estimator, Predictor or path
        Fitted; a path is that of a model file. Trees, forests, gradient boosting and AdaBoost.
    X : array-like or frame of shape (n_rows, n_features)
    background : array-like or frame, optional
        Some hundred rows like those that the model was fitted to. The time grows with their number.
    output : {"raw", "probability"}, default="raw"
        Values add up to the probability of each class, or the number, where trees are averaged. Of gradient boosting
        they add up to raw scores, such as log-odds, of AdaBoost to the decision function; "probability" explains what
        `predict_proba` and `predict` give instead, which needs `background`, and a model that asks for 16 columns at
        most: all sets of them are predicted.
    interactions : bool, default=False
        Whether to tell what each two columns add together, too (path dependent).
    n_jobs : int, optional
        Threads at most; None: as many as the work pays for. Values are the same for any.

    Returns
    -------
    ShapValues
        With `values`, `base`, and how well they add up.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
    >>> found = spinney.shap_values(model, [[3.0], [1.0]])
    >>> found.base, found.values[:, 0]
    (20.0, array([ 10., -10.]))
    """
    predictor = find_predictor(model, "explain")
    values = as_rows(predictor, X)
    if output not in {"raw", "probability"}:
        raise ValueError(f"output={output!r}: give 'raw' or 'probability'")
    if interactions and background is not None:
        raise ValueError("interactions are path dependent: leave `background` out")
    others = None if background is None else as_rows(predictor, background)
    if others is not None and len(others) == 0:
        raise ValueError("background has no rows: the mean over them is what values are told against")
    if output == "probability" and has_link(predictor) and others is None:
        raise ValueError(
            "output='probability' of a model whose scores go through a link needs background rows: give `background`, "
            "some hundred rows of the training table, or leave output='raw'"
        )
    by_coalitions = others is not None and (is_median(predictor) or (output == "probability" and has_link(predictor)))
    pairs = None
    if by_coalitions:
        assert others is not None
        found, base, raw = sum_coalitions(predictor, values, others)
        names = outputs_of_answer(predictor, raw.shape[1])
    else:
        parts = explained(predictor)
        names, raw = parts.names, raw_scores(predictor, values, n_jobs)
        if others is None:
            found, base = along_paths(parts, values, n_jobs)
            pairs = pair_up(parts, values, found, n_jobs) if interactions else None
        else:
            found = against(parts, values, others, n_jobs)
            base = raw_scores(predictor, others, n_jobs).mean(axis=0)
    return make_table(predictor, values, (found, base, raw), names, output, pairs)


def as_rows(predictor: Predictor, X: Any) -> NDArray[Any]:
    """A table as the values that kernels read."""
    values = np.ascontiguousarray(fill_in(predictor._read(X)))  # noqa: SLF001
    if isinstance(predictor, TreePredictor) and predictor.tree.linear is not None:
        refuse_infinite(values, predictor.schema)
    return values


def has_link(predictor: Predictor) -> bool:
    """Whether answers are other than the sums of what trees say."""
    if isinstance(predictor, RoundPredictor):
        return predictor.link != "identity"
    return isinstance(predictor, WeightedPredictor) and predictor.n_classes != 1


def is_median(predictor: Predictor) -> bool:
    """Whether answers are medians of what trees say."""
    return isinstance(predictor, WeightedPredictor) and predictor.n_classes == 0


def make_table(
    predictor: Predictor,
    values: NDArray[Any],
    sums: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    names: tuple[Any, ...],
    output: str,
    pairs: NDArray[np.float64] | None,
) -> ShapValues:
    """Check that values add up and hand them over; sums: values (n_rows, n_features, n_outputs), base, raw scores."""
    found, base, raw = sums
    with np.errstate(over="ignore", invalid="ignore"):
        difference = float(np.abs(base + found.sum(axis=1) - raw).max(initial=0.0))
        size = max(float(np.abs(raw).max(initial=0.0)), float(np.abs(base).max(initial=0.0)))
    relative = difference / size if size > 0.0 else difference
    if not relative <= TOLERANCE:
        warn(
            f"SHAP values do not add up to the answers: they differ by {difference:.3g}, {relative:.1g} of the "
            "largest. Answers that are so large, or leaves whose values cancel, leave float64 no digits for it."
        )
    schema = predictor.schema
    is_one = found.shape[2] == 1
    return ShapValues(
        values=found[..., 0] if is_one else found,
        base=float(base[0]) if is_one else base,
        names=schema.names or tuple(f"x{j}" for j in range(schema.n_features)),
        data=decode(values, schema.levels),
        outputs=names,
        output=output,
        interactions=pairs if pairs is None or not is_one else pairs[..., 0],
        largest_difference=difference,
        relative_difference=relative,
    )


def decode(values: NDArray[Any], levels: Any) -> NDArray[Any]:
    """Values as a user wrote them: numbers as float64 where all columns are such, else objects."""
    if all(names is None for names in levels):
        return values.astype(np.float64)
    data = values.astype(object)
    for j, names in enumerate(levels):
        for i in np.flatnonzero(~np.isnan(values[:, j])).tolist() if names is not None else ():
            data[i, j] = names[int(values[i, j])]
        for i in np.flatnonzero(np.isnan(values[:, j])).tolist():
            data[i, j] = None
    return data


def outputs_of_answer(predictor: Predictor, n_outputs: int) -> tuple[Any, ...]:
    """Names of what `predict` or `predict_proba` give."""
    if predictor.classes is not None:
        return tuple(predictor.classes.tolist())
    return (None,) if n_outputs == 1 else tuple(range(n_outputs))


def unfold(found: NDArray[np.float64], parts: Explained) -> NDArray[np.float64]:
    """Values of all outputs, the last axis: of two mirrored ones the first is the second with the other sign."""
    return np.concatenate([-found, found], axis=-1) if parts.is_mirrored else found


# --- path dependent -----------------------------------------------------------------------------------------------


def along_paths(
    parts: Explained, values: NDArray[Any], n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values (n_rows, n_features, n_outputs) and the base, path dependent."""
    check_covers(parts)
    n_rows, n_features = values.shape
    n_outputs = len(parts.start) - parts.is_mirrored
    points = lay_points(parts)
    steps = int((points.size * np.diff(parts.model.trees.first_node)).sum()) * parts.model.leaves.values.shape[1]
    size = max(min(TASK_ROWS, TASK_CELLS // max(n_features * n_outputs, 1)) // SHAP_ROWS, 1) * SHAP_ROWS
    n_tasks = -(-n_rows // size)
    k = kernels(min(-(-n_rows // SHAP_ROWS) * SHAP_ROWS, size) * steps * STEP_SECONDS)
    seconds = n_rows * steps * COMPILED_SECONDS
    out = np.empty((n_rows, n_features, n_outputs))

    def work(task: int, _: Any) -> None:
        rows = slice(task * size, min((task + 1) * size, n_rows))
        block = lay_rows(values[rows])
        sums = np.zeros((n_outputs, len(block.columns), n_features, SHAP_ROWS))
        k.predict.shap.add_shap(parts.model, block, points, make_scratch(parts, n_features), sums)
        out[rows] = sums.transpose(1, 3, 2, 0).reshape(-1, n_features, n_outputs)[: rows.stop - rows.start]

    n_workers = count_workers(n_jobs, n_tasks, seconds)
    run_tasks(work, n_tasks, n_workers, label="explaining", unit="blocks", is_short=seconds < SHORT_SECONDS)
    return unfold(out, parts), expectation(parts)


def check_covers(parts: Explained) -> None:
    """Raise unless the weights of the training rows are known, and missing values take every branch, or none does."""
    if not parts.has_weights:
        raise ValueError(
            "a compact forest has dropped the weights of its training rows, which path-dependent SHAP values rest on: "
            "give `background` rows, or fit without compact=True"
        )


def expectation(parts: Explained) -> NDArray[np.float64]:
    """The outputs of a row of which nothing is known, (n_outputs,)."""
    sums = np.zeros(len(parts.start) - parts.is_mirrored)
    k = kernels(parts.n_nodes * STEP_SECONDS)
    k.predict.shap.expect(parts.model.trees, parts.model.leaves, np.empty(parts.n_nodes), sums)
    return np.array([1.0 - sums[0], sums[0]]) if parts.is_mirrored else parts.start + sums


def lay_points(parts: Explained) -> ShapPoints:
    """The rule for each tree: as many points as half the features of its richest path."""
    size = np.maximum((parts.most_features + 1) // 2, 1)
    sizes = np.unique(size)
    rules = [legendre_rule(int(n)) for n in sizes]
    begin = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    columns = (np.concatenate(column) for column in zip(*rules, strict=True))
    return ShapPoints(*(fixed(x) for x in (*columns, begin[np.searchsorted(sizes, size)], size)))


def lay_rows(values: NDArray[Any]) -> ShapRows:
    """Rows in blocks, feature by feature."""
    n_rows, n_features = values.shape
    n_blocks = -(-n_rows // SHAP_ROWS)
    whole = np.zeros((n_blocks * SHAP_ROWS, n_features))
    whole[:n_rows] = values
    columns = np.ascontiguousarray(whole.reshape(n_blocks, SHAP_ROWS, n_features).swapaxes(1, 2))
    return ShapRows(fixed(values), fixed(columns))


def make_scratch(parts: Explained, n_features: int) -> ShapScratch:
    """Scratch of one thread."""
    room, n_nodes = parts.depth + 2, int(np.diff(parts.model.trees.first_node).max())
    wide, narrow = (n_nodes, SHAP_POINTS), (room, SHAP_ROWS)
    tables = ShapTables(
        np.empty(wide), np.empty(wide), np.empty(n_nodes), np.empty(wide), np.empty(wide), np.zeros(n_nodes, np.uint8)
    )
    return ShapScratch(
        tables=tables,
        stack=np.empty((2, room), np.int64),
        way=np.empty((room, SHAP_POINTS, SHAP_ROWS)),
        sums=np.empty((room, SHAP_POINTS, SHAP_ROWS)),
        branch=np.empty(narrow),
        kept=np.empty(narrow),
        total=np.empty(narrow),
        live=np.ones((n_features, SHAP_ROWS)),
        part=np.empty(SHAP_ROWS),
    )


# --- interactions -------------------------------------------------------------------------------------------------


def pair_up(
    parts: Explained, values: NDArray[Any], found: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Interaction values (n_rows, n_features, n_features, n_outputs); found: the values that their sums must be."""
    n_rows, n_features = values.shape
    n_outputs = len(parts.start) - parts.is_mirrored
    width = parts.model.leaves.values.shape[1]
    points = lay_points(parts)
    steps = int((points.size * np.diff(parts.model.trees.first_node)).sum()) * width * max(int(points.size.max()), 1)
    k = kernels(SHAP_ROWS * steps * STEP_SECONDS)
    seconds = n_rows * steps * COMPILED_SECONDS
    out = np.zeros((n_rows, n_features, n_features, n_outputs))
    n_tasks = -(-n_rows // SHAP_ROWS)

    def work(task: int, _: Any) -> None:
        rows = slice(task * SHAP_ROWS, min((task + 1) * SHAP_ROWS, n_rows))
        block, scratch = lay_rows(values[rows]), make_scratch(parts, n_features)
        wide = (scratch.way.shape[0], SHAP_POINTS, SHAP_ROWS)
        more = PairScratch(
            np.zeros((n_features, SHAP_POINTS, SHAP_ROWS)),
            np.empty(wide),
            np.empty(n_features + 1, np.int64),
            np.empty(len(scratch.way), np.uint8),
        )
        for at in range(n_outputs):
            sums = np.zeros((n_features, n_features, SHAP_ROWS))
            for column in range(width):
                k.predict.shap_pairs.add_shap_pairs(parts.model, block, points, column, at, scratch, more, sums)
            lower = sums.transpose(2, 0, 1)[: rows.stop - rows.start]
            out[rows, :, :, at] = lower + lower.swapaxes(1, 2)

    n_workers = count_workers(n_jobs, n_tasks, seconds)
    run_tasks(work, n_tasks, n_workers, label="pairing", unit="blocks", is_short=seconds < SHORT_SECONDS)
    pairs = unfold(out, parts)
    own = np.arange(n_features)
    pairs[:, own, own] = found - pairs.sum(axis=2)
    return pairs


# --- against background rows --------------------------------------------------------------------------------------


def against(parts: Explained, values: NDArray[Any], others: NDArray[Any], n_jobs: int | None) -> NDArray[np.float64]:
    """Values (n_rows, n_features, n_outputs) against background rows."""
    dtype = np.result_type(values, others)
    values, others = values.astype(dtype, copy=False), others.astype(dtype, copy=False)
    n_rows, n_features = values.shape
    n_outputs = len(parts.start) - parts.is_mirrored
    n_pairs = len(others) * parts.n_trees
    size = max(min(TASK_ROWS, int(0.2 / (n_pairs * PAIR_SECONDS) + 1)), 1)
    n_tasks = -(-n_rows // size)
    k = kernels(n_rows * n_pairs * SLOW_PAIR_SECONDS)
    seconds = n_rows * n_pairs * PAIR_SECONDS
    out = np.zeros((n_rows, n_outputs, n_features))
    n_branches = int(parts.model.trees.n_branches.max())
    surrogates = parts.model.surrogates.first
    n_stages = int(np.diff(surrogates).max()) + 2 if len(surrogates) > 1 else 1
    room = 2 * (parts.depth + 1) * (n_branches + n_stages) + 2

    def work(task: int, _: Any) -> None:
        rows = slice(task * size, min((task + 1) * size, n_rows))
        scratch = HybridScratch(
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.int8),
            np.empty(n_features + 1, np.int64),
            np.full(n_features, 2, np.int8),
        )
        sums = np.empty((n_outputs, n_features))
        k.predict.shap_background.add_against(fixed(values[rows]), fixed(others), parts.model, scratch, out[rows], sums)

    n_workers = count_workers(n_jobs, n_tasks, seconds)
    run_tasks(work, n_tasks, n_workers, label="explaining", unit="blocks", is_short=seconds < SHORT_SECONDS)
    return unfold(out.swapaxes(1, 2) / len(others), parts)


def sum_coalitions(
    predictor: Predictor, values: NDArray[Any], others: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Values, base and answers where these are no sum of trees: every hybrid of a row and the background is predicted.

    The columns that the model asks for are told apart one by one: 2 to the power of their number hybrids.
    """
    used = used_columns(predictor)
    if len(used) > MOST_COALITION_COLUMNS:
        raise ValueError(
            f"answers that are no sum of trees are explained by all sets of columns: of {MOST_COALITION_COLUMNS} at "
            f"most, and the model asks for {len(used)}. Explain raw scores, output='raw', or fit on fewer columns."
        )
    weight = coalition_weights(len(used))
    n_sets = 1 << len(used)
    is_mine = (np.arange(n_sets)[:, None] >> np.arange(len(used)) & 1).astype(bool)
    answers = predictor.answer(values).reshape(len(values), -1)
    found = np.zeros((len(values), values.shape[1], answers.shape[1]))
    n_at_once = max(COALITION_CELLS // max(len(others) * values.shape[1], 1), 1)
    for i, row in enumerate(values):
        game = np.empty((n_sets, answers.shape[1]))
        for first in range(0, n_sets, n_at_once):
            sets = is_mine[first : first + n_at_once]
            hybrid = np.repeat(others[None], len(sets), axis=0)
            hybrid[:, :, used] = np.where(sets[:, None, :], row[used], hybrid[:, :, used])
            said = predictor.answer(hybrid.reshape(-1, values.shape[1]))
            game[first : first + len(sets)] = said.reshape(len(sets), len(others), -1).mean(axis=1)
        size = is_mine.sum(axis=1)
        for at, j in enumerate(used.tolist()):
            without = np.flatnonzero(~is_mine[:, at])
            gain = game[without | (1 << at)] - game[without]
            found[i, j] = (weight[size[without]][:, None] * gain).sum(axis=0)
    base = predictor.answer(others).reshape(len(others), -1).mean(axis=0)
    return found, base, answers


def coalition_weights(n: int) -> NDArray[np.float64]:
    """Shapley's weight of a set of each size, of n columns, (n,)."""
    weight = np.empty(max(n, 1))
    weight[0] = 1.0 / max(n, 1)
    for size in range(1, n):
        weight[size] = weight[size - 1] * size / (n - size)
    return weight


def used_columns(predictor: Predictor) -> NDArray[np.int64]:
    """The columns that some test asks for, ascending."""
    assert isinstance(predictor, RoundPredictor | WeightedPredictor)
    forest = predictor.forest
    return np.unique(feature_of_link(forest.hot[~forest.is_leaf, 1]))
