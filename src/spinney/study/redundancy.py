"""Columns that say what others say: copies, other names of the same levels, linear functions and combinations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.study.column_checks import read_codes, read_numbers
from spinney.study.leaks import EXACT, choose_rows, list_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

MAX_COLUMNS = 100  # of a kind: more would take long
MAX_NAMED = 4  # columns of a combination that are named


def find_redundant(X: pa.Table) -> tuple[str, ...]:
    """What can be told of columns that others determine, each in a line."""
    if X.num_columns < 2 or not X.num_rows:
        return ()
    part = X.take(choose_rows(X.num_rows, X.num_columns))
    return (*_compare_levels(part), *_combine_numbers(part))


def _compare_levels(X: pa.Table) -> Iterator[str]:
    """Categories whose levels stand for those of an earlier one, one to one."""
    known: list[tuple[str, np.ndarray]] = []
    for name in X.column_names:
        if read_numbers(X[name]) is not None or len(known) == MAX_COLUMNS:
            continue
        codes = read_codes(X[name])
        n_levels = len(np.unique(codes))
        for other, others in known:
            if len(np.unique(others)) == n_levels == len(np.unique(others * (codes.max() + 1) + codes)):
                is_copy = X[name].cast("string").equals(X[other].cast("string"))
                yield (
                    f"{name!r} equals {other!r}" if is_copy else f"{name!r} has other names for the levels of {other!r}"
                )
                break
        else:
            known.append((name, codes))


def _combine_numbers(X: pa.Table) -> Iterator[str]:
    """Numbers that a linear combination of earlier ones gives."""
    names: list[str] = []
    kept: list[np.ndarray] = []
    for name, values in list_numbers(X):
        if len(kept) == MAX_COLUMNS or len(values) < 2 * len(kept) + 10:
            return
        if kept:
            table = np.column_stack(kept)
            weights, *_ = np.linalg.lstsq(table, values, rcond=1e-10)
            if np.square(values - table @ weights).mean() <= EXACT:
                used = [other for other, weight in zip(names, weights, strict=True) if abs(weight) > 1e-6]
                is_copy = len(used) == 1 and _are_equal(X[name], X[used[0]])
                yield f"{name!r} equals {used[0]!r}" if is_copy else _tell_combination(name, used)
                continue
        names.append(name)
        kept.append(values)


def _are_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    first, second = read_numbers(one), read_numbers(other)
    return first is not None and second is not None and np.array_equal(first, second)


def _tell_combination(name: str, used: list[str]) -> str:
    if len(used) == 1:
        return f"{name!r} is a linear function of {used[0]!r}"
    shown = ", ".join(map(repr, used[:MAX_NAMED])) + (" and others" if len(used) > MAX_NAMED else "")
    return f"{name!r} is a linear combination of {shown}"
