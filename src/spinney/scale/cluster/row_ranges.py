"""Collections cut anew: tables of so many rows each, whatever the partitions were, as `compute` would have them.

    partitions of X  ├──────┼─┼───────────┼────┤          heads: a few rows of each, that tell how all are joined
    partitions of y  ├─────────┼──────────┼────┤                        │
    parts            ├────────┼────────┼───────┤ ──► each by the collection's own function, heads in front

The type of a column, and the dictionary of a category, are known from all partitions only. A few rows of each, joined
with those of a part by the function that `compute` uses, give a part the types that the whole table has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.scale.cluster.collections import join_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.scale.cluster.collections import Partitions


class Joining(NamedTuple):
    """How rows of a collection become a table."""

    partitions: Partitions  # without partitions
    heads: list[Any]

    def join_heads(self) -> Any:
        """A table of a few rows, with the types of all."""
        return join_parts(self.partitions, self.heads)

    def join(self, pieces: list[Any]) -> Any:
        """The table of some rows."""
        n_heads = sum(count_rows(head) for head in self.heads)
        table = join_parts(self.partitions, [*self.heads, *pieces])
        return take_range(table, n_heads, count_rows(table))


class Range(NamedTuple):
    """Rows of a partition."""

    partition: int
    first: int
    last: int


def take_head(part: Any) -> Any:
    """A few rows of a partition, that have its types: a known one of every column among them, if it has any."""
    if not hasattr(part, "iloc") or not len(part):
        return take_range(part, 0, min(count_rows(part), 1))
    known = np.asarray(part.notna()).reshape(len(part), -1)
    return part.iloc[np.unique(np.append(known.argmax(axis=0), 0))]


def sign_head(head: Any) -> tuple[Any, ...]:
    """What joining looks at in a head: those that are alike here need be there once."""
    if hasattr(head, "column_names"):  # of Arrow
        ordered = [column for column in head.columns if getattr(column.type, "ordered", False)]
        orders = [tuple(chunk.dictionary.to_pylist()) for column in ordered for chunk in column.chunks]
        return str(head.schema), count_rows(head) > 0, *orders
    if not hasattr(head, "iloc"):
        return str(getattr(head, "dtype", None)), count_rows(head) > 0
    columns = [head.iloc[:, j] for j in range(head.shape[1])] if head.ndim == 2 else [head]
    return tuple(
        (str(column.dtype), tuple(getattr(column.dtype, "categories", ())), bool(column.notna().any()), len(head) > 0)
        for column in columns
    )


def choose_heads(heads: Sequence[Any]) -> list[Any]:
    """Heads without those that others stand for, in their order."""
    chosen: dict[Any, Any] = {}
    for head in heads:
        chosen.setdefault(sign_head(head), head)
    return list(chosen.values())


def count_rows(table: Any) -> int:
    """Rows of a frame, a series, an array or a table of Arrow."""
    return int(table.shape[0])


def take_range(table: Any, first: int, last: int) -> Any:
    """Rows that follow each other."""
    if first == 0 and last == count_rows(table):
        return table
    if hasattr(table, "iloc"):
        return table.iloc[first:last]
    if hasattr(table, "column_names"):  # of Arrow
        return table.slice(first, last - first)
    return table[first:last]


def find_ranges(lengths: Sequence[int], first: int, last: int) -> list[Range]:
    """Where rows first .. last are, in partitions of these lengths; no partition of none of them."""
    ends = np.cumsum(lengths)
    found = []
    for k in range(int(np.searchsorted(ends, first, side="right")), len(lengths)):
        begin = int(ends[k]) - int(lengths[k])
        if begin >= last:
            break
        lo, hi = max(first - begin, 0), min(last, int(ends[k])) - begin
        if lo < hi:
            found.append(Range(k, lo, hi))
    return found
