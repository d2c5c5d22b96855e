"""What makes a column of text suspicious: numbers and dates that were not read as such, and names of rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

MIN_LEVELS = 10  # of numbers and dates: fewer may well be codes
MOST = 0.9  # of the levels, or of the rows
MANY_VALUES = 100  # of a column, such that equal rows are hardly chance
MIN_COPIES = 0.01  # of the rows
MAX_LETTERS = 30  # of an example
DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}[-. ][A-Za-z]{3,9}[-. ]\d{2,4}")
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
NUMBER = re.compile(r"[€$£]?\s?[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s?[%€$£]?")


def check_text_columns(table: pa.Table) -> Iterator[tuple[str, str]]:
    """Columns of text that may not be what they are taken for, and why."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            known = column.cast(kind).drop_null()
            suspicion = check_text(known.unique().to_pylist(), len(known))
            if suspicion is not None:
                yield name, suspicion


def check_text(levels: Sequence[str], n_known: int) -> str | None:
    """Why a column of these distinct texts in `n_known` rows may not be what it is taken for, or None."""
    if len(levels) < MIN_LEVELS:
        return None
    dates = [level for level in levels if DATE.fullmatch(level)]
    if len(dates) >= MOST * len(levels):
        return f"its text looks like dates ({example(dates)}): derive numbers from it (year, month, days since a date)"
    numbers = [level for level in levels if NUMBER.fullmatch(level)]
    if len(numbers) >= MOST * len(levels):
        return explain_numbers(levels, numbers)
    if len(levels) >= MOST * n_known:
        return f"nearly every value is different text ({len(levels):,} in {n_known:,} rows): does it name the rows?"
    return None


def explain_numbers(levels: Sequence[str], numbers: Sequence[str]) -> str:
    """Why numbers are read as text, and what to do."""
    commas = [level for level in numbers if COMMA.fullmatch(level)]
    if 2 * len(commas) > len(numbers):
        return f"its text looks like numbers with a decimal comma ({example(commas)}): write them with a point"
    known = set(numbers)
    others = [level for level in levels if level not in known]
    if others:
        return f"its text looks like numbers but for {example(others)}: leave such cells empty"
    return f"its text looks like numbers ({example(numbers)}): if it measures something, store it as numbers"


def example(levels: Sequence[str]) -> str:
    """One of these, the first by the alphabet, so that it is the same in every run."""
    first = min(levels)
    return repr(first if len(first) <= MAX_LETTERS else f"{first[:MAX_LETTERS]}…")


def count_copies(table: pa.Table) -> int:
    """How many rows equal an earlier one in every column; 0 where some are bound to, or where they are few."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes, widest = [], 0
    for column in table.columns:
        flat = column.combine_chunks()
        flat = flat if pa.types.is_dictionary(flat.type) else pc.dictionary_encode(flat)
        widest = max(widest, len(flat.dictionary))
        codes.append(flat.indices.cast(pa.int64()).fill_null(-1))
    if widest <= MANY_VALUES:
        return 0
    names = [str(k) for k in range(len(codes))]
    n_copies = table.num_rows - pa.table(codes, names).group_by(names).aggregate([]).num_rows
    return n_copies if n_copies >= MIN_COPIES * table.num_rows else 0
