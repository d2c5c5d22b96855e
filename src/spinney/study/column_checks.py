"""What makes a column of text suspicious: numbers and dates that were not read as such, and names of rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

MIN_LEVELS = 10  # of numbers and dates: fewer may well be codes
MAX_CODES = 20  # levels of a target that may well name classes, though they look like numbers
MOST = 0.9  # of the levels, or of the rows
MANY_VALUES = 100  # of a column, such that equal rows are hardly chance
MIN_COPIES = 0.01  # of the rows
ENOUGH_ROWS = 50  # of a table, such that values that never repeat are hardly chance
MANY_ROWS, HALF = 200, 0.5  # of so many rows, half as many levels are names
ID_NAME = re.compile(r"(?i:(.*[^a-z])?(id|ids|uuid|guid|key|rownum|index))|.*[a-z](Id|ID)")
MAX_LETTERS = 30  # of an example
YEAR = 365.2425 * 86_400_000_000  # microseconds
DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([ T].*)?|\d{1,2}[-. ][A-Za-z]{3,9}[-. ]\d{2,4}")
COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
NUMBER = re.compile(r"[€$£]?\s?[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s?[%€$£]?")


NAMES = "every value is different text: it names the rows"
COUNTER = "it numbers the rows"
ID = "every value is a different number, and it is called an id"


def name_rows(table: pa.Table) -> dict[str, str]:
    """Columns that name the rows and say nothing of new ones, with the reason: text of few repeats, counters, ids.

    In a table of few rows any column may look like that, and none is named.
    """
    found: dict[str, str] = {}
    if table.num_rows < ENOUGH_ROWS:
        return found
    for name, column in zip(table.column_names, table.columns, strict=True):
        numbers = read_numbers(column)
        why = explain_text(column) if numbers is None else explain_number(name, numbers)
        if why is not None:
            found[name] = why
    return found


def explain_text(column: pa.ChunkedArray) -> str | None:
    """Why text names the rows: it hardly repeats."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    known = column.cast(kind).drop_null()
    levels = known.unique().to_pylist()
    if not is_near_unique(len(levels), len(known)):
        return None
    return check_kind(levels) or tell_names(len(levels), len(known))


def tell_names(n_levels: int, n_known: int) -> str:
    """That text names the rows."""
    if n_levels == n_known:
        return NAMES
    return f"{n_levels:,} different texts in {n_known:,} rows name the rows"


def is_near_unique(n_levels: int, n_known: int) -> bool:
    """Whether text repeats so rarely that it names the rows."""
    return n_levels >= MIN_LEVELS and n_levels >= (HALF if n_known >= MANY_ROWS else MOST) * n_known


def explain_number(name: str, values: NDArray[np.float64]) -> str | None:
    """Why a number names the rows: it counts them, or is called an id and never the same."""
    if not len(values) or not np.isfinite(values).all() or (values != np.floor(values)).any():
        return None
    if len(np.unique(values)) < len(values) or len(values) < 2:
        return None
    if float(np.ptp(values)) == len(values) - 1:
        return COUNTER
    return ID if len(values) >= ENOUGH_ROWS and ID_NAME.fullmatch(name) else None


def read_numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """The values of a column of numbers, or of dates in years, NaN where they are missing; None for other columns."""
    import pyarrow as pa

    kind = column.type
    if is_date(kind):
        return read_years(column)
    is_odd = pa.types.is_decimal(kind) or pa.types.is_float16(kind)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_odd):
        return None
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def is_date(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is dates, or times of a day."""
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def read_years(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Dates and times as the year with a fraction, NaN where they are missing: what a chart of them counts in."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    moments = pc.cast(column, options=pc.CastOptions(pa.timestamp("us", tz=zone), allow_time_truncate=True))
    ticks = np.asarray(moments.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return 1970.0 + ticks / YEAR


def read_codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The levels of a column as numbers from 0 on; what is missing is a level too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat: Any = column.combine_chunks()
    flat = flat if pa.types.is_dictionary(flat.type) else pc.dictionary_encode(flat)
    return np.asarray(flat.indices.cast(pa.int64()).fill_null(len(flat.dictionary)).to_numpy(zero_copy_only=False))


def explain_target(column: pa.ChunkedArray) -> str | None:
    """Why a target of text is numbers or dates that were not read as such; None where it is text."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    levels = column.cast(kind).drop_null().unique().to_pylist()
    is_code = len(levels) <= MAX_CODES and not any(map(COMMA.fullmatch, levels))
    return None if is_code else check_kind(levels)


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
    why = check_kind(levels)
    if why is None and len(levels) >= MIN_LEVELS and len(levels) >= MOST * n_known:
        return f"nearly every value is different text ({len(levels):,} in {n_known:,} rows): does it name the rows?"
    return why


def check_kind(levels: Sequence[str]) -> str | None:
    """Why distinct texts may be numbers or dates that were not read as such, or None."""
    if len(levels) < MIN_LEVELS:
        return None
    dates = [level for level in levels if DATE.fullmatch(level)]
    if len(dates) >= MOST * len(levels):
        return f"its text looks like dates ({example(dates)}): derive numbers from it (year, month, days since a date)"
    numbers = [level for level in levels if NUMBER.fullmatch(level)]
    return explain_numbers(levels, numbers) if len(numbers) >= MOST * len(levels) else None


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
