"""What engines of SQL write differently: numbers, text, names; and how a column becomes a number or a level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from spinney.model.export.literals import is_unicode

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.model.export.tree_sum import Column

SAFE_DIGITS, SAFE_EXPONENT = 15, 22  # of decimals that every reader of numbers gets right
MOST_NAME = 63  # bytes, in PostgreSQL
FACTOR_BITS = 62  # of a power of two that is a whole number to SQLite
SQLITE_NUMERIC = "typeof({0}) IN ('integer', 'real') OR (typeof({0}) = 'text' AND CAST({0} AS NUMERIC) = {0})"
# numbers, and text that is one as a whole: columns of an imported CSV are text to SQLite


@dataclass(frozen=True)
class Dialect:
    """One engine.

    Attributes
    ----------
    name : str
    number : function
        A float64 as a literal that is read back with the same bits.
    text : function
        Text as a literal; None where the engine cannot hold it.
    read_number : str
        A column as a float64, NULL where it is missing; `{}` is the column.
    text_type : str
    least, greatest : str
        Functions of several numbers.
    steps_at_once : int
        How deep expressions may be nested.
    most_columns : int
        Of one SELECT.
    has_booleans : bool
    is_strict_case : bool
        Whether names that differ in case alone are different.
    most_name : int, optional
        Bytes of a name; the engine leaves off what is beyond.
    """

    name: str
    number: Callable[[float], str]
    text: Callable[[str], str | None]
    read_number: str
    text_type: str
    least: str
    greatest: str
    steps_at_once: int
    most_columns: int
    has_booleans: bool
    is_strict_case: bool
    most_name: int | None = None

    def fold(self, name: str) -> str:
        """What the engine tells names apart by."""
        kept = name.encode("utf-8", "backslashreplace")[: self.most_name].decode("utf-8", "ignore")
        return kept if self.is_strict_case else kept.lower()


def quote_name(name: str) -> str:
    """A name of a table or column, whatever is in it."""
    if "\0" in name or not name or not is_unicode(name):
        raise ValueError(
            f"{name!r}: SQL has no name that is empty or holds a zero byte or half a letter: rename it, or export "
            "the model to c, python, javascript or json"
        )
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Text between quotes."""
    return "'" + text.replace("'", "''") + "'"


# --- SQLite -------------------------------------------------------------------------------------------------------


def sqlite_number(x: float) -> str:
    """A number: a decimal, or a quotient that is exact where SQLite might misread a decimal by a last bit.

    SQLite 3.40 misread 4 of 100,000 numbers between 0 and 1,000, and more of those far from 1.
    """
    if math.isinf(x):
        return "9e999" if x > 0.0 else "-9e999"
    shown = repr(x)
    digits, _, exponent = shown.lower().lstrip("-").partition("e")
    n_digits = len(digits.replace(".", "").strip("0"))
    shift = int(exponent or 0) - len(digits.partition(".")[2])
    if n_digits <= SAFE_DIGITS and abs(shift) + len(digits) <= SAFE_EXPONENT:
        return shown
    ratio = Fraction(abs(x))
    top, twos = ratio.numerator, -(ratio.denominator.bit_length() - 1)
    while top % 2 == 0:
        top, twos = top // 2, twos + 1
    operator, left = ("*", twos) if twos > 0 else ("/", -twos)
    factors = [f"{operator}{1 << min(left - at, FACTOR_BITS)}" for at in range(0, left, FACTOR_BITS)]
    return f"({'-' if x < 0.0 else ''}{top}.0{''.join(factors)})"


def sqlite_text(text: str) -> str | None:
    """Text, with a zero byte in hexadecimals."""
    if not is_unicode(text):
        return None
    return f"CAST(X'{text.encode().hex()}' AS TEXT)" if "\0" in text else quote_text(text)


# --- DuckDB and PostgreSQL ----------------------------------------------------------------------------------------


def duckdb_number(x: float) -> str:
    """A number of type DOUBLE, which a literal without an exponent is not."""
    if math.isinf(x):
        return f"CAST('{'-' if x < 0.0 else ''}Infinity' AS DOUBLE)"
    shown = repr(x)
    shown = shown if "e" in shown else f"{shown}e0"
    return f"({shown})" if x < 0.0 else shown


def duckdb_text(text: str) -> str | None:
    """Text, with zero bytes by their number."""
    if not is_unicode(text):
        return None
    parts = [quote_text(part) for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def postgresql_number(x: float) -> str:
    """A number of type float8, which a literal is not."""
    shown = repr(x).replace("inf", "Infinity")
    return f"'{shown}'::float8"


def postgresql_text(text: str) -> str | None:
    """Text; backslashes mean themselves whatever the server's settings are. A zero byte is in no text of PostgreSQL."""
    if "\0" in text or not is_unicode(text):
        return None
    return f"E{quote_text(text.replace(chr(92), chr(92) * 2))}" if "\\" in text else quote_text(text)


DIALECTS = {
    "sqlite": Dialect(
        "sqlite",
        sqlite_number,
        sqlite_text,
        f"CASE WHEN {SQLITE_NUMERIC} THEN CAST({{0}} AS REAL) END",
        "TEXT",
        "min",
        "max",
        steps_at_once=8,
        most_columns=2000,
        has_booleans=False,
        is_strict_case=False,
    ),
    "duckdb": Dialect(
        "duckdb",
        duckdb_number,
        duckdb_text,
        "NULLIF(CAST({0} AS DOUBLE), CAST('NaN' AS DOUBLE))",
        "VARCHAR",
        "least",
        "greatest",
        steps_at_once=24,
        most_columns=10_000,
        has_booleans=True,
        is_strict_case=False,
    ),
    "postgresql": Dialect(
        "postgresql",
        postgresql_number,
        postgresql_text,
        "NULLIF(CAST({0} AS double precision), 'NaN'::float8)",
        "text",
        "least",
        "greatest",
        steps_at_once=24,
        most_columns=1600,
        has_booleans=True,
        is_strict_case=True,
        most_name=MOST_NAME,
    ),
}


# --- columns ------------------------------------------------------------------------------------------------------


def read_column(dialect: Dialect, column: Column) -> str:
    """A column of the table, called t, as a number or as the index of its level; NULL where it is missing."""
    cell = f"t.{quote_name(column.name)}"  # with its table: SQLite takes a name that it does not know for text
    if column.levels is None:
        return dialect.read_number.format(cell)
    cases = "".join(
        f" WHEN {literal} THEN {place}"
        for place, level in enumerate(column.levels)
        for literal in level_literals(dialect, level)
    )
    if not cases:
        return "CAST(NULL AS integer)"
    is_text = isinstance(column.levels[0], str)
    if dialect.name == "sqlite":
        if is_text:  # whole numbers are the text that shows them, as in the other engines
            shown = f"CAST({cell} AS TEXT) COLLATE BINARY"
            return f"CASE WHEN typeof({cell}) IN ('text', 'integer') THEN CASE {shown}{cases} END END"
        return f"CASE WHEN {SQLITE_NUMERIC.format(cell)} THEN CASE CAST({cell} AS NUMERIC){cases} END END"
    if is_text or isinstance(column.levels[0], bool):
        cell = f"CAST({cell} AS {dialect.text_type})"
    return f"CASE {cell}{cases} END"


def level_literals(dialect: Dialect, level: Any) -> list[str]:
    """What a cell of a level is equal to; nothing where no cell can be."""
    if isinstance(level, str):
        text = dialect.text(level)
        return [] if text is None else [text]
    if isinstance(level, bool):
        if dialect.name == "sqlite":
            return [str(int(level))]
        return [quote_text(shown) for shown in (str(level).lower(), str(int(level)), f"{int(level)}.0")]
    if isinstance(level, int):
        return [str(level)] if abs(level) < 1 << 63 else []
    return [dialect.number(level)]


def class_literal(dialect: Dialect, label: Any) -> str:
    """A class as a literal."""
    if isinstance(label, bool):
        return str(label).upper() if dialect.has_booleans else str(int(label))
    if isinstance(label, int):
        return str(label)
    if isinstance(label, float):
        return dialect.number(label)
    text = dialect.text(label) if isinstance(label, str) else None
    if text is None:
        raise ValueError(f"the class {label!r:.60} is no text or number that {dialect.name} can hold")
    return text
