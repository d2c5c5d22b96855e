"""A table made ready for a study: target and task, a summary of every column, and what cannot or must not be used.

Left out are columns that hold nothing (constant, missing throughout), that no method takes (durations, lists), that are
the target again, and names of rows (text that hardly repeats, whole numbers that count the rows, ids). What is only
suspicious stays, with a remark; so does what gives the target away, for its reader to decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.column_checks import (
    COUNTER,
    check_kind,
    check_text,
    count_copies,
    explain_number,
    explain_target,
    is_date,
    is_near_unique,
    tell_names,
)
from spinney.study.leaks import GIVEN_AWAY, find_sum, score_columns
from spinney.study.redundancy import find_redundant
from spinney.study.result import ASKED, Column, TableSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

N_TOP = 5  # levels that a summary names
MAX_RARE = 0.05  # of the rows may be of classes that are left out
MAX_TARGET = 1e150  # of a number: R² adds the squares of many
_ROLES = {  # what a column cannot be beside the target, and why methods do not see it
    "drop": ("left out", ASKED),
    "groups": ("what makes the folds", "it makes the folds"),
    "time": ("what orders the folds", "it orders the folds"),
}
_CONSTANT = "it has one value throughout"
_COPY = "it equals the target"


class StudyData(NamedTuple):
    """What methods are fitted on: inputs, target, and what decides the folds."""

    X: pa.Table
    y: NDArray[Any]
    summary: TableSummary
    groups: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    group_column: str | None = None
    time_column: str | None = None
    kept: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.y)

    @property
    def is_regression(self) -> bool:
        """Whether the target is numbers."""
        return self.summary.task == "regression"


def prepare(
    table: pa.Table,
    target: str,
    *,
    name: str = "table",
    task: str = "auto",
    groups: str | None = None,
    time: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    fewest: int = 1,
) -> StudyData:
    """Take a table apart into what a study needs.

    Parameters
    ----------
    table : pyarrow.Table
    target : str
        The column to predict; it must have no missing values.
    name : str
        What the summary calls the table.
    task : {"auto", "classification", "regression"}
        "auto": regression if the target has fractions, more than 20 distinct numbers, or few equal ones.
    groups, time : str, optional
        Columns that decide the folds; methods do not see them.
    drop : sequence of str
        Columns that nothing sees.
    keep : sequence of str
        Columns that methods see although they seem to name the rows, or to be the target again.
    fewest : int
        Rows of classes that have fewer than this are left out, where they are few in all: folds need a row of each.

    Returns
    -------
    StudyData
        With `summary`, what is known of every column before any work.

    Examples
    --------
    >>> from spinney import datasets
    >>> from spinney.study import prepare
    >>> data = prepare(datasets.load("play_tennis"), "play", drop=["wind"])
    >>> data.summary.task, data.summary.dropped
    ('classification', {'wind': 'you asked for it'})
    """
    check_column(table, target, "target")
    if task != "classification":
        check_target(table[target], target)
    y = _target(table, target)
    is_regression = looks_continuous(table[target]) if task == "auto" else task == "regression"
    if is_regression:
        y = _numbers(y, target)
    rare: dict[str, int] = {}
    if not is_regression and fewest > 1:
        rows, rare = _find_rare(y, fewest)
        table, y = (table.take(rows), y[rows]) if rare else (table, y)
    if len(np.unique(y)) < 2:
        what = "value throughout" if is_regression else "class only"
        raise ValueError(f"column {target!r} has one {what}, {str(y[0])!r}: there is nothing to predict")
    roles = dict.fromkeys(drop, "drop") | {
        column: role for column, role in ((groups, "groups"), (time, "time")) if column
    }
    _check_roles(table, target, roles, keep)
    columns, dropped = _choose_columns(table, target, y, roles, keep, is_regression=is_regression)
    summary = TableSummary(
        name=name,
        n_rows=len(y),
        target=target,
        task="regression" if is_regression else "classification",
        classes=() if is_regression else _count(y),
        columns=tuple(columns),
        dropped=dropped,
        n_copies=count_copies(table),
        rare=tuple(rare.items()),
    )
    X = table.select([column.name for column in summary.used])
    summary = _look_for_leaks(summary, X, y)
    return StudyData(X, y, summary, _folding(table, groups), _folding(table, time), groups, time, tuple(keep))


def _check_roles(table: pa.Table, target: str, roles: dict[str, str], keep: Sequence[str]) -> None:
    """Whether the columns that are asked for are there, and asked for one thing."""
    for column, role in roles.items():
        check_column(table, column, role)
        if column == target:
            raise ValueError(f"column {target!r} is the target: it cannot be {_ROLES[role][0]} too")
    for column in keep:
        check_column(table, column, "keep")
        if column in roles or column == target:
            other = "the target" if column == target else _ROLES[roles[column]][0]
            raise ValueError(f"column {column!r} is {other}: it cannot be kept as an input too")


def _choose_columns(
    table: pa.Table,
    target: str,
    y: NDArray[Any],
    roles: dict[str, str],
    keep: Sequence[str],
    *,
    is_regression: bool,
) -> tuple[list[Column], dict[str, str]]:
    """What every column is, and those that are left out with the reason."""
    columns, dropped = [], {}
    for column in (one for one in table.column_names if one != target):
        check_column(table, column, "input")
        described, why = _describe(table[column], column, y, is_regression=is_regression)
        columns.append(described)
        if column in keep:
            if described.kind == "other":
                raise ValueError(f"column {column!r} cannot be kept: {why}")
            why = None
        why = _ROLES[roles[column]][1] if column in roles else why
        if why is not None:
            dropped[column] = why
    if len(dropped) == len(columns):  # then the numbers of rows are all there is: the x of a textbook's table
        dropped = {column: why for column, why in dropped.items() if why != COUNTER}
    if len(dropped) == len(columns):
        reasons = "; ".join(f"{column!r}: {why}" for column, why in dropped.items())
        raise ValueError(f"no column is left to predict {target!r} from ({reasons or 'there is no other column'})")
    return columns, dropped


def _find_rare(y: NDArray[Any], fewest: int) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The rows of classes with enough of them, and the other classes; none where that would be many rows or classes."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_rare = counts < fewest
    rows = np.flatnonzero(~is_rare[codes])
    if (~is_rare).sum() < 2 or len(y) - len(rows) > MAX_RARE * len(y):
        return np.arange(len(y)), {}
    return rows, {str(name): int(n) for name, n, one in zip(classes, counts, is_rare, strict=True) if one}


def check_target(column: pa.ChunkedArray, target: str) -> None:
    """Refuse a target of text that is numbers or dates."""
    why = explain_target(column)
    if why is not None:
        raise ValueError(f"column {target!r} is the target: {why}; if it names classes, the task is classification")


def _look_for_leaks(summary: TableSummary, X: pa.Table, y: NDArray[Any]) -> TableSummary:
    """The summary with what each column predicts alone, which of them leak the target, and which say the same."""
    is_regression = summary.task == "regression"
    scores = score_columns(X, y, is_regression=is_regression)
    summed = find_sum(X, y) if is_regression else ()
    share = 0.0 if is_regression else summary.classes[0][1] / summary.n_rows
    columns = []
    for column in summary.columns:
        alone, leak = scores.get(column.name), None
        if alone is not None and alone >= GIVEN_AWAY:
            measure = f"R² {alone:.4f}" if is_regression else f"accuracy {share + alone * (1.0 - share):.4f}"
            leak = f"alone it predicts the target with {measure}"
        elif column.name in summed:
            others = ", ".join(repr(one) for one in summed if one != column.name)
            leak = f"with {others} it adds up to the target" if others else "it is a linear function of the target"
        columns.append(replace(column, alone=alone, leak=leak))
    return replace(summary, columns=tuple(columns), redundant=find_redundant(X))


def check_column(table: pa.Table, column: str, role: str) -> None:
    """Whether the table has this column, once."""
    names = table.column_names
    if names.count(column) > 1:
        raise ValueError(f"there is more than one column {column!r}; rename or remove all but one")
    if column not in names:
        raise ValueError(f"no column {column!r} ({role}); columns: {', '.join(names)}")


def looks_continuous(column: pa.ChunkedArray) -> bool:
    """Whether a target is to be averaged rather than counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = plain(column)
    if pa.types.is_floating(column.type) and pc.any(pc.not_equal(column, pc.floor(column))).as_py():
        return True
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    n_distinct = pc.count_distinct(column).as_py()
    return bool(is_number and (n_distinct > 20 or 2 * n_distinct > len(column)))


def _target(table: pa.Table, target: str) -> NDArray[Any]:
    column = plain(table[target])
    if table.num_rows == 0:
        raise ValueError("the table has no rows")
    values = column.to_numpy()
    n_missing = column.null_count
    if values.dtype.kind == "f" and not n_missing:
        n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise ValueError(f"column {target!r} has {n_missing} missing values; remove those rows first")
    if values.dtype.kind == "O":
        return values.astype(str)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"column {target!r} is of type {column.type}: a target is text, booleans or numbers")
    return values


def _numbers(y: NDArray[Any], target: str) -> NDArray[np.float64]:
    if y.dtype.kind not in "biuf":
        raise ValueError(f"column {target!r} is text, no numbers: its task is classification")
    numbers = y.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"column {target!r} has infinite values; remove those rows first")
    if np.abs(numbers).max() > MAX_TARGET:
        raise ValueError(f"column {target!r} has values beyond {MAX_TARGET:g}, whose squares overflow: divide it")
    return numbers


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary as its values; as floats, decimals, which NumPy lacks, and halves, which Arrow cannot round."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_odd = pa.types.is_decimal(column.type) or pa.types.is_float16(column.type)
    return column.cast(pa.float64()) if is_odd else column


def _folding(table: pa.Table, column: str | None) -> NDArray[Any] | None:
    """The values of a column that decides the folds."""
    if column is None:
        return None
    values = plain(table[column])
    if values.null_count:
        raise ValueError(f"column {column!r} has {values.null_count} missing values, but decides the folds")
    array = values.to_numpy()
    return array.astype(str) if array.dtype.kind == "O" else array


def _count(y: NDArray[Any]) -> tuple[tuple[str, int], ...]:
    classes, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return tuple((str(classes[i]), int(counts[i])) for i in order)


# --- Columns --------------------------------------------------------------------------------------------------


def _describe(column: pa.ChunkedArray, name: str, y: NDArray[Any], *, is_regression: bool) -> tuple[Column, str | None]:
    """One input as a summary shows it, and why it is left out, or None."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if pa.types.is_null(kind):
        return Column(name, "other", len(column), 0), "it is missing throughout"
    if is_date(kind):
        return _describe_dates(column, name)
    if is_number:
        return _describe_number(column, name, y, is_regression=is_regression)
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _describe_category(column, name, y, is_regression=is_regression)
    advice = "make numbers of it, such as hours" if pa.types.is_temporal(kind) else "convert it"
    return Column(name, "other", column.null_count, 0), f"methods do not take {kind}: {advice}"


def _describe_dates(column: pa.ChunkedArray, name: str) -> tuple[Column, str | None]:
    import pyarrow.compute as pc

    known = column.drop_null()
    n_distinct = pc.count_distinct(known).as_py()
    if not n_distinct:
        return Column(name, "date", len(column), 0), "it is missing throughout"
    ends = [str(one.as_py()) for one in pc.min_max(known).values()]
    described = Column(name, "date", column.null_count, n_distinct, span=(ends[0], ends[1]))
    return described, _CONSTANT if n_distinct == 1 and len(known) == len(column) else None


def _describe_number(
    column: pa.ChunkedArray, name: str, y: NDArray[Any], *, is_regression: bool
) -> tuple[Column, str | None]:
    import pyarrow as pa

    values = np.asarray(plain(column).cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    described: dict[str, Any] = {
        "name": name,
        "kind": "number",
        "n_missing": len(values) - len(known),
        "n_distinct": len(distinct),
    }
    if len(known) and np.isfinite(known).all():
        described |= {
            "lowest": float(distinct[0]),
            "median": float(np.median(known)),
            "highest": float(distinct[-1]),
        }
    is_whole = bool(len(known) == len(values) and np.isfinite(known).all() and (known == np.floor(known)).all())
    is_different = is_whole and len(distinct) == len(values)
    dropped, suspicion = None, None
    if len(distinct) == 0:
        dropped = "it is missing throughout"
    elif len(distinct) == 1 and len(known) == len(values):
        dropped = _CONSTANT
    elif y.dtype.kind != "U" and len(known) == len(values) and bool((values == y).all()):
        dropped = _COPY
    elif (why := explain_number(name, values)) is not None:
        dropped = why
    elif is_regression and len(known) == len(values) and _is_same_order(values, y):
        suspicion = "it puts the rows in the order of the target"
    elif not is_regression and len(known) == len(values) and _is_one_to_one(values, y):
        suspicion = "it determines the class of every row, one to one"
    elif is_different:
        suspicion = "every value is a different whole number: does it name the rows?"
    return Column(**described, suspicion=suspicion), dropped


def _describe_category(
    column: pa.ChunkedArray, name: str, y: NDArray[Any], *, is_regression: bool
) -> tuple[Column, str | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = plain(column).cast(pa.string())
    counts = pc.value_counts(values.drop_null()).to_pylist()
    counts.sort(key=lambda one: (-one["counts"], one["values"]))
    top = tuple((one["values"], one["counts"]) for one in counts[:N_TOP])
    texts = values.to_numpy().astype(str) if not values.null_count else None
    dropped, suspicion = None, None
    if not counts:
        dropped = "it is missing throughout"
    elif len(counts) == 1 and texts is not None:
        dropped = _CONSTANT
    elif len(counts) == len(values) or is_near_unique(len(counts), len(values) - values.null_count):
        n_known = len(values) - values.null_count
        dropped = check_kind([one["values"] for one in counts]) or tell_names(len(counts), n_known)
    elif texts is not None and not is_regression:
        if bool((texts == y.astype(str)).all()):
            dropped = _COPY
        elif _is_one_to_one(texts, y):
            suspicion = "it determines the class of every row, one to one"
    suspicion = suspicion or check_text([one["values"] for one in counts], len(values) - values.null_count)
    return Column(name, "category", values.null_count, len(counts), top=top, suspicion=suspicion), dropped


def _is_one_to_one(values: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether each value stands for one class and each class for one value."""
    names, codes = np.unique(values, return_inverse=True)
    classes, labels = np.unique(y, return_inverse=True)
    if len(names) != len(classes):
        return False
    return len(np.unique(codes.astype(np.int64) * len(classes) + labels)) == len(classes)


def _is_same_order(values: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Whether a column orders the rows as the target does, or the other way round, ties at the same places."""
    order = np.argsort(values, kind="stable")
    with np.errstate(invalid="ignore"):  # infinite values are equal too, their difference is not a number
        steps, climbs = np.diff(values[order]), np.diff(y[order])
    return bool(((steps > 0) == (climbs > 0)).all() and (climbs >= 0).all()) or bool(
        ((steps > 0) == (climbs < 0)).all() and (climbs <= 0).all()
    )
