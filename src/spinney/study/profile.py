"""The columns as they are: how their values are spread, how the target goes with them, what is missing together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.column_checks import is_near_unique, read_codes, read_numbers
from spinney.study.evidence import Gap, Profile
from spinney.study.leaks import choose_rows, list_numbers

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.study.tables import StudyData

N_BINS = 20
FEW = 12  # distinct numbers that are shown one by one
MAX_LEVELS = 15
MAX_PROFILES = 12  # columns, those that predict most alone
MAX_GAPS = 8
MAX_PAIRS = 12
CORRELATED = 0.9


def profile_columns(data: StudyData) -> tuple[Profile, ...]:
    """The columns that predict most by themselves, each with its values and with the target by them.

    Names of rows are not shown level by level.
    """
    goal, label = choose_goal(data)
    used = sorted(data.summary.used, key=lambda one: -(one.alone or 0.0))
    found = (profile_column(data.X[one.name], one.name, goal, label) for one in used)
    shown = (one for one in found if one is not None)
    return tuple(one for one, _ in zip(shown, range(MAX_PROFILES), strict=False))


def choose_goal(data: StudyData) -> tuple[NDArray[np.float64], str | None]:
    """What is averaged: the target, or whether it is the second of two classes, else the commonest."""
    if data.is_regression:
        return data.y.astype(np.float64), None
    classes, counts = np.unique(data.y, return_counts=True)
    label = classes[1] if len(classes) == 2 else classes[int(np.argmax(counts))]
    return (data.y == label).astype(np.float64), str(label)


def profile_column(column: pa.ChunkedArray, name: str, goal: NDArray[np.float64], label: str | None) -> Profile | None:
    """One column; None where it has nothing to show."""
    numbers = read_numbers(column)
    edges: tuple[float, ...] = ()
    if numbers is not None and len(np.unique(numbers[np.isfinite(numbers)])) > FEW:
        known = np.isfinite(numbers)
        cuts = cut_bins(numbers[known])
        edges = tuple(cuts.tolist())
        codes = np.where(known, np.clip(np.searchsorted(cuts, numbers, "right") - 1, 0, len(cuts) - 2), -1)
        texts: list[str] = [""] * (len(cuts) - 1)
    else:
        texts, codes = list_levels(column, numbers)
        if not texts or is_near_unique(len(texts), int((codes >= 0).sum())):
            return None
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    sums = np.bincount(codes[codes >= 0], goal[codes >= 0], len(texts))
    kept = range(len(texts))
    if not edges and len(texts) > MAX_LEVELS:
        kept = sorted(np.argsort(-counts, kind="stable")[:MAX_LEVELS].tolist())  # type: ignore[assignment]
    return Profile(
        feature=name,
        edges=edges,
        levels=() if edges else tuple(texts[k] for k in kept),
        counts=tuple(int(counts[k]) for k in kept),
        goals=tuple(float(sums[k] / counts[k]) if counts[k] else None for k in kept),
        label=label,
        n_missing=int((codes < 0).sum()),
        n_levels=0 if edges else len(texts),
    )


def cut_bins(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of bins over all values but one in a hundred at each end; as many whole numbers in each bin of such."""
    low, high = np.quantile(values, [0.01, 0.99], method="nearest")
    if (values == np.floor(values)).all():
        width = 1.0 if high - low < 2 * N_BINS else np.ceil((high - low + 1.0) / N_BINS)
        return np.arange(low, high + width + 0.5, width) - 0.5
    return np.linspace(low, high, N_BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])


def list_levels(column: pa.ChunkedArray, numbers: NDArray[np.float64] | None) -> tuple[list[str], NDArray[np.int64]]:
    """The levels of a column in their natural order, and that of each row (-1: missing)."""
    if numbers is not None:
        distinct, codes = np.unique(numbers, return_inverse=True)
        known = np.isfinite(distinct)
        return [f"{one:g}" for one in distinct[known]], np.where(np.isfinite(numbers), codes, -1)
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    texts = column.cast(kind).cast(pa.string())
    codes = read_codes(texts)
    names = texts.combine_chunks().dictionary_encode().dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda k: natural(names[k]))
    place = np.full(len(names) + 1, -1)
    place[order] = np.arange(len(names))
    return [names[k] for k in order], place[codes]


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """By which texts are in the order that people put them: "9 km" before "10 km".

    Examples
    --------
    >>> sorted(["10-19", "100+", "5-9"], key=natural)
    ['5-9', '10-19', '100+']
    """
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", text)
    return tuple((0, float(one), "") if one[0].isdecimal() else (1, 0.0, one.casefold()) for one in parts)


def list_gaps(X: pa.Table) -> tuple[Gap, ...]:
    """Which columns are missing together, in how many rows, the commonest first; none where nothing is missing."""
    holes = [name for name in X.column_names if X[name].null_count or _has_nan(X[name])]
    if not holes:
        return ()
    table = np.column_stack([_is_missing(X[name]) for name in holes])
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MAX_GAPS]
    return tuple(
        Gap(tuple(name for name, one in zip(holes, patterns[k], strict=True) if one), int(counts[k])) for k in order
    )


def _is_missing(column: Any) -> NDArray[np.bool_]:
    numbers = read_numbers(column)
    return np.isnan(numbers) if numbers is not None else ~np.asarray(column.is_valid().to_numpy(), np.bool_)


def _has_nan(column: Any) -> bool:
    numbers = read_numbers(column)
    return numbers is not None and bool(np.isnan(numbers).any())


def correlate(X: pa.Table) -> tuple[tuple[str, str, float], ...]:
    """Pairs of numbers whose correlation is strong, the strongest first."""
    part = X.take(choose_rows(X.num_rows, X.num_columns))
    columns = dict(list_numbers(part))
    if len(columns) < 2:
        return ()
    names, table = list(columns), np.column_stack(list(columns.values()))
    found = table.T @ table / len(table)
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(found[first, second]), kind="stable")[:MAX_PAIRS]
    pairs = [(names[first[k]], names[second[k]], float(found[first[k], second[k]])) for k in order]
    return tuple(pair for pair in pairs if abs(pair[2]) >= CORRELATED)
