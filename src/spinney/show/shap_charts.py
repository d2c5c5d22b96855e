"""Pictures of SHAP values: bars, all rows at once, one row, one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.show.chart_model import Chart
from spinney.show.marks import NEUTRAL, Axis, Bars, Guide, Mark, Points
from spinney.show.names import shown as caption
from spinney.show.numbers import short

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.shap_table import ShapValues

MAX_COLUMNS = 15
MAX_POINTS = 400  # of a column
HALF = 0.38  # of the height of a level, for points that would cover each other
N_SLOTS = 60  # along the axis: points of one stand above each other
UP, DOWN = 0, 1  # series
WHOLE = 1e15  # below it whole numbers are written as such
THIRDS = ("low values", "middle values", "high values")


def sizes_chart(found: ShapValues) -> Chart:
    """The mean size of each column's values, the largest first."""
    size = found.sizes()
    order = rank(size)
    values = tuple(size[order].tolist())
    return Chart(
        title="What columns add, on average",
        description=f"Mean absolute SHAP value over {len(found)} rows{words_of(found)}. "
        + first_three(found, order, size),
        x=Axis("mean absolute SHAP value", lowest=0.0),
        y=Axis("column", levels=names_of(found, order)),
        marks=(Bars(values),),
    )


def swarm_chart(found: ShapValues) -> Chart:
    """A point for each row and column: what the column added there, by whether its value is low or high."""
    size = found.sizes()
    order = rank(size)
    rows = thin_rows(len(found))
    groups: dict[str, tuple[list[float], list[float]]] = {}
    for level, j in enumerate(order.tolist()):
        values = found.values[rows, j]
        place = level + spread_out(values, found.values)
        for name, at in split_thirds(found.data[rows, j]):
            x, y = groups.setdefault(name, ([], []))
            x += values[at].tolist()
            y += place[at].tolist()
    series = {name: k for k, name in enumerate(THIRDS)}
    marks: list[Mark] = [Guide(x=0.0)]
    for name in (*THIRDS, "categories, missing"):
        if name in groups:
            x, y = groups[name]
            marks.append(Points(tuple(x), tuple(y), name, series.get(name, NEUTRAL)))
    some = "" if len(rows) == len(found) else f" {len(rows)} of {len(found)} rows are drawn."
    return Chart(
        title="What columns add, row by row",
        description=f"SHAP values{words_of(found)}: right of 0 a value raises the answer, left of it lowers it.{some} "
        + first_three(found, order, size),
        x=Axis("SHAP value"),
        y=Axis("column", levels=names_of(found, order)),
        marks=tuple(marks),
    )


def row_chart(found: ShapValues, row: int, n_others: int = 0, others: float = 0.0) -> Chart:
    """How the answer to one row comes about: from the base, column by column, the largest first.

    others: what `n_others` columns add together that are not among the values.
    """
    values = found.values[row]
    order = np.argsort(-np.abs(values), kind="stable")
    order, rest = order[:MAX_COLUMNS], order[MAX_COLUMNS:]
    n_others += len(rest)
    steps = [*values[order].tolist(), *([float(values[rest].sum()) + others] if n_others else [])]
    names = [f"{caption(found.names[j])} = {caption(cell_text(found.data[row, j]))}" for j in order.tolist()]
    names += [f"{n_others} {'other' if n_others == 1 else 'others'}"] if n_others else []
    ends = np.cumsum([found.base, *steps]).tolist()
    marks: list[Mark] = [Guide(x=found.base, name=f"base {short(found.base)}")]
    for series, name, is_up in ((UP, "raises", True), (DOWN, "lowers", False)):
        at = [k for k, step in enumerate(steps) if step != 0.0 and (step > 0.0) == is_up]
        if at:
            spans = tuple((min(ends[k], ends[k + 1]), max(ends[k], ends[k + 1])) for k in at)
            marks.append(Points(tuple(ends[k + 1] for k in at), tuple(map(float, at)), name, series, x_ends=spans))
    marks.append(Guide(x=ends[-1], name=f"answer {short(ends[-1])}"))
    return Chart(
        title="Why this answer",
        description=f"From the base {short(found.base)} to the answer {short(ends[-1])}{words_of(found)}: "
        + ", ".join(f"{name} {step:+.4g}" for name, step in list(zip(names, steps, strict=True))[:3])
        + ".",
        x=Axis("answer, column by column"),
        y=Axis("column", levels=tuple(names)),
        marks=tuple(marks),
    )


def column_chart(found: ShapValues, j: int) -> Chart:
    """What a column adds, by its value."""
    name = caption(found.names[j])
    rows = thin_rows(len(found))
    cells, values = found.data[rows, j], found.values[rows, j]
    title, words = f"What {name} adds", f"SHAP values of {name} by its value{words_of(found)}."
    if all(cell is None or isinstance(cell, float) for cell in cells.tolist()):
        numbers = np.array([np.nan if cell is None else cell for cell in cells.tolist()], float)
        is_known = np.isfinite(numbers)
        marks = (Guide(y=0.0), Points(tuple(numbers[is_known].tolist()), tuple(values[is_known].tolist())))
        missing = f" {np.count_nonzero(np.isnan(numbers))} rows without one are left out." if not is_known.all() else ""
        return Chart(title, words + missing, Axis(name), Axis("SHAP value"), marks)
    levels = list(dict.fromkeys(cell_text(cell) for cell in cells))
    place = np.array([levels.index(cell_text(cell)) for cell in cells]) + spread_out(values, values)
    return Chart(
        title,
        words,
        Axis("SHAP value"),
        Axis(name, levels=tuple(caption(level) for level in levels)),
        (Guide(x=0.0), Points(tuple(values.tolist()), tuple(place.tolist()))),
    )


# --- parts ---


def choose_output(found: ShapValues, output: Any) -> ShapValues:
    """The values of one output: of two the second, unless one is named."""
    if output is None and len(found.outputs) > 2:
        raise ValueError(f"give output, one of {', '.join(map(repr, found.outputs[:20]))}")
    return found.of(found.outputs[-1] if output is None else output)


def find_column(found: ShapValues, feature: str | int | None) -> int:
    """The place of a column; where none is named, of the one that adds most."""
    if feature is None:
        return int(np.argmax(found.sizes()))
    if isinstance(feature, str) and feature in found.names:
        return found.names.index(feature)
    if isinstance(feature, str) or not -len(found.names) <= feature < len(found.names):
        raise ValueError(f"feature {feature!r} is not a column: there are {', '.join(found.names[:20])}")
    return int(feature)


def rank(size: NDArray[np.float64]) -> NDArray[np.intp]:
    """The columns that add most."""
    return np.argsort(-size, kind="stable")[:MAX_COLUMNS]


def names_of(found: ShapValues, order: NDArray[np.intp]) -> tuple[str, ...]:
    """Names of columns."""
    return tuple(caption(found.names[j]) for j in order.tolist())


def words_of(found: ShapValues) -> str:
    """What the values are for, where there is a choice."""
    return "" if found.outputs == (None,) or len(found.outputs) > 1 else f" for {caption(str(found.outputs[0]))}"


def first_three(found: ShapValues, order: NDArray[np.intp], size: NDArray[np.float64]) -> str:
    """The first few columns in words."""
    return "The first: " + ", ".join(f"{caption(found.names[j])} {short(size[j])}" for j in order[:3].tolist()) + "."


def cell_text(cell: Any) -> str:
    """A value of a row."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return "missing"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < WHOLE:
        return f"{cell:,.0f}"
    return short(cell) if isinstance(cell, float) else str(cell)


def thin_rows(n_rows: int) -> NDArray[np.intp]:
    """Rows that are drawn, evenly chosen."""
    return np.unique(np.linspace(0, max(n_rows - 1, 0), min(n_rows, MAX_POINTS)).round().astype(np.intp))


def spread_out(values: NDArray[np.float64], of_all: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each point is moved aside so that points of about one value do not cover each other."""
    width = float(of_all.max() - of_all.min()) or 1.0
    slot = np.floor((values - of_all.min()) / width * N_SLOTS).astype(np.int64)
    aside = np.zeros(len(values))
    counts = {int(one): int(n) for one, n in zip(*np.unique(slot, return_counts=True), strict=True)}
    most, seen = max(counts.values(), default=1), dict.fromkeys(counts, 0)
    for i, one in enumerate(slot.tolist()):
        seen[one] += 1
        step = (seen[one] // 2) * (1 if seen[one] % 2 else -1)
        aside[i] = step * 2.0 * HALF / max(most, 8)
    return aside


def split_thirds(cells: NDArray[Any]) -> list[tuple[str, NDArray[np.intp]]]:
    """The rows of low, middle and high numbers, and those of other cells."""
    is_number = np.array([isinstance(cell, float) and not np.isnan(cell) for cell in cells.tolist()], bool)
    numbers = np.array([cell if known else 0.0 for cell, known in zip(cells.tolist(), is_number, strict=True)], float)
    parts: list[tuple[str, NDArray[np.intp]]] = []
    if is_number.any():
        low, high = np.quantile(numbers[is_number], [1 / 3, 2 / 3], method="lower")
        third = np.where(numbers <= low, 0, np.where(numbers <= high, 1, 2))
        parts = [(name, np.flatnonzero(is_number & (third == k))) for k, name in enumerate(THIRDS)]
    parts.append(("categories, missing", np.flatnonzero(~is_number)))
    return [(name, rows) for name, rows in parts if len(rows)]
