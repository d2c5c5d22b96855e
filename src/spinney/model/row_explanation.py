"""Why one row got its answer: the path of a tree, what each column added, and what would have changed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.model.any_model import find_predictor
from spinney.model.counterfactual import Counterfactual, answer_of, counterfactual, show_cell
from spinney.model.explained_trees import NoSumError, score_unit
from spinney.model.forest_votes import tree_predictions
from spinney.model.predictors import TreePredictor, WeightedPredictor
from spinney.model.shap import shap_values
from spinney.reading.explaining import explain as explain_path
from spinney.reading.wording import caption, count, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.base_predictor import Predictor
    from spinney.reading.explaining import Explanation

MOST_SHOWN = 10  # columns in a text


class Contribution(NamedTuple):
    """What a column added.

    Attributes
    ----------
    column : str
    value : object
        The row's: a number, a level, None where it is missing.
    added : float
        Its SHAP value.
    """

    column: str
    value: Any
    added: float


class Votes(NamedTuple):
    """What trees say of a row, whose weighted median is the answer.

    Attributes
    ----------
    n_trees : int
    low, high : float
        The weighted quartiles: trees of half of all the weight say something between them.
    share_below, share_above : float
        Parts of the weight of the trees that say less than the answer, and more.
    """

    n_trees: int
    low: float
    high: float
    share_below: float
    share_above: float

    def __str__(self) -> str:
        return (
            f"the weighted median of {count(self.n_trees, 'tree')}: the middle half of their weight says "
            f"{rounded(self.low)} to {rounded(self.high)}; {self.share_below:.0%} say less, {self.share_above:.0%} more"
        )


@dataclass(frozen=True, repr=False)
class RowExplanation:
    """Why one row got its answer; prints in words.

    Attributes
    ----------
    answer : object
        The class, or the number.
    score : float
        What `base` and the contributions add up to: the number, the probability of the class, or a raw score, as
        `unit` says.
    base : float
        The same where nothing is known.
    contributions : tuple of Contribution
        The largest first; empty where answers are no sum of trees and no background rows were given.
    path : Explanation or None
        The tests that the row met, in words, where the model is one tree.
    counterfactual : Counterfactual or None
        The smallest change that changes the answer; None where none was found, or a number was not told what to become.
    output : object
        The class that `score` is for; None for a number.
    is_searched : bool
        Whether a change was looked for: always for classes, for a number where `wanted` says what it is to become.
    unit : str or None
        What `score` and the contributions are told in where that is not what `predict` and `predict_proba` give: the
        "log-odds" of boosted classes, the "logarithm of the answer" of boosted counts and times, ...
    votes : Votes or None
        What the trees say where the answer is their weighted median, as that of AdaBoost for numbers.
    """

    answer: Any
    score: float
    base: float
    contributions: tuple[Contribution, ...]
    path: Explanation | None
    counterfactual: Counterfactual | None
    output: Any
    is_searched: bool = False
    unit: str | None = None
    votes: Votes | None = None

    def __str__(self) -> str:
        lines = [f"answer: {show_cell(self.answer)}"]
        if self.contributions:
            of = "" if self.unit is None else f" ({self.unit})"
            of += "" if self.output is None else f" for {show_cell(self.output)}"
            lines.append(f"{rounded(self.score)}{of} = {rounded(self.base)} where nothing is known")
            shown = [one for one in self.contributions[:MOST_SHOWN] if one.added != 0.0]
            lines += [f"  {one.added:+.4g}  {caption(one.column)} = {show_cell(one.value)}" for one in shown]
            rest = [one.added for one in self.contributions if one.added != 0.0][len(shown) :]
            lines += [f"  {sum(rest):+.4g}  {len(rest)} others"] if rest else []
        elif self.votes is not None:
            lines += [
                str(self.votes),
                "give background= rows to see what each column adds: a median is no sum of trees",
            ]
        if self.path is not None:
            lines += ["path:", *(f"  {line}" for line in str(self.path).splitlines())]
        if self.counterfactual is not None:
            lines.append(f"{'to change it: ' if self.counterfactual.changes else ''}{self.counterfactual}")
        elif self.is_searched:
            lines.append("to change it: no change of what may vary was found that does")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def explain(
    model: Any,
    row: Any,
    *,
    wanted: Any = None,
    vary: Any = None,
    ranges: Mapping[Any, Any] | None = None,
    X: Any = None,
    background: Any = None,
) -> RowExplanation:
    """Tell why a model answers one row as it does, and the smallest change that would change the answer.

    Parameters
    ----------
    model : estimator, Predictor or path
        Fitted; a path is that of a model file. Trees, forests, gradient boosting and AdaBoost.
    row : dict, sequence, one-row frame or array
        The values by name or in the order of the columns.
    wanted : class, or (low, high), optional
        What the answer is to become: a class, by default any other; of numbers an interval, None for no bound.
    vary : list of names or places, optional
        Columns that may change; by default all. Of dates their parts, `sold.month`, each by itself.
    ranges : dict, optional
        What columns of `vary` may change to: (low, high) of numbers, None for no bound; a list of levels of categories.
    X : array-like or frame, optional
        Rows whose standard deviations are the units of changes; by default the distance between the lowest and the
        highest threshold of each column. Where all numbers of a column are whole, it changes to a whole number.
    background : array-like or frame, optional
        Rows that contributions are told against; see `spinney.shap_values`.

    Returns
    -------
    RowExplanation
        With `contributions`, `counterfactual`, and the `path` of a tree.

    Notes
    -----
    The smallest change has the fewest columns, then the least sum of sizes: the distance in units of the column's
    spread (see `X`), 1 for another level or a number where none or an infinite one was. Of one tree it is exact, by all
    its leaves; of an ensemble where one column suffices, else the smallest that was found. It is predicted before it is
    told.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.CARTClassifier().fit([[1, 5], [2, 5], [3, 5], [4, 6]], ["no", "no", "yes", "yes"])
    >>> found = spinney.explain(model, [4, 5])
    >>> print(found)
    answer: yes
    1 for yes = 0.5 where nothing is known
      +0.5  x0 = 4
    path:
      [no] (4 rows: no 2, yes 2)
      x0 is 4, above 2.5: yes (2 rows)
      => yes (yes 100 %)
    to change it: x0: 2.5 instead of 4 would make it no (the smallest change)
    >>> found.counterfactual.changes[0].after
    2.5
    """
    predictor = find_predictor(model, "explain")
    values = read_row(predictor, row)
    spreads = None if X is None else np.asarray(predictor.encode(X), np.float64)
    change, is_searched = None, predictor.classes is not None or wanted is not None
    if is_searched:
        change = counterfactual(predictor, values, wanted=wanted, vary=vary, ranges=ranges, X=spreads)
    answer = answer_of(predictor, values)
    try:
        found = shap_values(predictor, as_table(predictor, row), background=background)
    except NoSumError:
        nothing = float("nan")
        votes = sum_up_votes(predictor, values, answer) if isinstance(predictor, WeightedPredictor) else None
        return RowExplanation(answer, nothing, nothing, (), None, change, None, is_searched, None, votes)
    chosen = answer if predictor.classes is not None else found.outputs[0]  # of several quantiles the first
    output = chosen if chosen in found.outputs else found.outputs[-1]
    one = found.of(output)
    order = np.argsort(-np.abs(one.values[0]), kind="stable").tolist()
    parts = tuple(Contribution(one.names[j], cell(one.data[0, j]), float(one.values[0, j])) for j in order)
    path = None
    if isinstance(predictor, TreePredictor):
        smoothed = None if predictor.smoothing is None else predictor.smoothed
        path = explain_path(predictor.tree, values, {}, smoothed)
    score = float(one.base + one.values[0].sum())
    unit = score_unit(predictor) if found.output == "raw" else None
    return RowExplanation(answer, score, float(one.base), parts, path, change, output, is_searched, unit)


def sum_up_votes(predictor: WeightedPredictor, row: NDArray[np.float64], answer: float) -> Votes:
    """What the trees of a weighted median say of an encoded row."""
    said = tree_predictions(predictor.forest, row[None])[:, 0]
    order = np.argsort(said, kind="stable")
    weight = np.abs(predictor.weights)[order]
    weight = weight if weight.any() else np.ones(len(weight))
    part, said = np.cumsum(weight) / weight.sum(), said[order]
    low, high = (float(said[min(int(np.searchsorted(part, share)), len(said) - 1)]) for share in (0.25, 0.75))
    below, above = (float(weight @ side / weight.sum()) for side in (said < answer, said > answer))
    return Votes(len(said), low, high, below, above)


def cell(value: Any) -> Any:
    """A value of a table, None where it is missing."""
    return None if isinstance(value, float) and np.isnan(value) else value


def as_table(predictor: Predictor, row: Any) -> Any:
    """One row as a table of one."""
    if isinstance(row, Mapping):
        return [row]
    if getattr(row, "ndim", None) == 1 and hasattr(row, "to_dict") and hasattr(row, "index"):
        return [dict(row.items())] if predictor.schema.names is not None else [list(row)]
    is_flat = isinstance(row, list | tuple) and not any(isinstance(x, list | tuple | np.ndarray | Mapping) for x in row)
    if not is_flat and not (isinstance(row, np.ndarray) and row.ndim == 1):
        return row
    names = predictor.schema.column_names
    return [list(row)] if names is None else [dict(zip(names, list(row), strict=True))]


def read_row(predictor: Predictor, row: Any) -> NDArray[np.float64]:
    """One row as values, (n_features,)."""
    values = np.asarray(predictor.encode(as_table(predictor, row)), np.float64)
    if len(values) != 1:
        raise ValueError(f"row has {len(values)} rows: give one, for example X[i : i + 1] or X.iloc[[i]].")
    return values[0]
