"""Dates and times as inputs: what a column of them was in fit, and the numbers that a model reads instead.

A column `sold` becomes `sold.year`, `sold.month` (1 to 12), `sold.weekday` (0 is Monday), `sold.days` (since the first
day that fit has seen, with the fraction of the day where there are times) and `sold.hour` (0 to 23). A part that was
the same in every row of fit is not made, but for the days. Times with a zone are read in UTC. A missing date is
missing in every part; a date before the first has negative days.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spinney.table.columns import Categories, Column, Dates, is_missing_type, to_moment

if TYPE_CHECKING:
    from numpy.typing import NDArray

DATE_PARTS = ("year", "month", "weekday", "days", "hour")
AUTO = "auto"
_DAY = 86_400_000_000  # microseconds
_MONDAY = 4  # 1970-01-05 was one


@dataclass(frozen=True, slots=True)
class DateColumn:
    """A column of dates as fit has seen it; plain data.

    `parts` are the numbers made of it, some of `DATE_PARTS` in that order; `first` is the first day, counted from
    1970-01-01; `has_zone` says that the times were in a time zone, and so are points in time.
    """

    name: str
    parts: tuple[str, ...]
    first: int
    has_zone: bool

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the numbers, such as `sold.year`."""
        return tuple(f"{self.name}.{part}" for part in self.parts)


def learn_dates(column: Dates, name: str) -> tuple[DateColumn, list[NDArray[np.float64]]]:
    """What a column of dates is to a model, and its parts."""
    known = column.values[~np.isnat(column.values)]
    first = int(known.min().astype("datetime64[D]").astype(np.int64)) if len(known) else 0
    parts = {part: _make_part(column.values, part, first) for part in DATE_PARTS}
    made = tuple(part for part in DATE_PARTS if part == "days" or not _is_constant(parts[part]))
    return DateColumn(name, made, first, column.has_zone), [parts[part] for part in made]


def pick_extremes(values: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
    """A few of many dates, of which `learn_dates` learns the same: those with the least and the most of each part."""
    known = values[~np.isnat(values)]
    if not len(known):
        return known
    parts = [_make_part(known, part, 0) for part in DATE_PARTS]
    return known[[at for part in parts for at in (np.argmin(part), np.argmax(part))]]


def read_dates(column: Column, fitted: DateColumn) -> list[NDArray[np.float64]]:
    """The parts of a column that was dates in fit: of dates, or of text that is written as ISO 8601 has it."""
    if isinstance(column, Categories):
        column = parse_dates(column, fitted.name)
    if not isinstance(column, Dates):
        values = column.read()
        bad = np.flatnonzero(~np.isnan(values))
        if len(bad):
            _refuse(fitted.name, str(bad[0]), values[bad[0]])
        column = Dates(np.full(len(values), "NaT", "datetime64[us]"), has_zone=fitted.has_zone)
    check_zone(column, fitted)
    return [_make_part(column.values, part, fitted.first) for part in fitted.parts]


def check_zone(column: Dates, fitted: DateColumn, first_row: int = 0, below: str = "") -> None:
    """Refuse times with a zone where fit had none, and the reverse; rows are counted as in `parse_dates`."""
    if column.has_zone is fitted.has_zone or np.isnat(column.values).all():
        return
    was, now = ("with", "without") if fitted.has_zone else ("without", "with")
    row = first_row + int(np.argmin(np.isnat(column.values)))
    raise ValueError(
        f"Column {fitted.name!r} had times {was} a time zone when the model was fitted, and has them {now} one, "
        f"from row {row}{below} on: {'give them their zone' if fitted.has_zone else 'convert them to local times'}."
    )


def parse_dates(column: Categories, name: str, first_row: int = 0, below: str = "") -> Dates:
    """Text as dates and times, as ISO 8601 has them; other text raises, with its row. Categories may be dates, too.

    first_row: the number of the first, for messages; below: what rows are counted from.
    """
    is_known = [not is_missing_type(type(value)) for value in column.values]
    parsed = [_parse(value) if known else None for value, known in zip(column.values, is_known, strict=True)]

    def row_of(code: int) -> str:
        return f"{first_row + int(np.argmax(column.codes == code))}{below}"

    for code, (moment, known) in enumerate(zip(parsed, is_known, strict=True)):
        if known and moment is None:
            _refuse(name, row_of(code), column.values[code])
    by_zone = {moment.tzinfo is not None: code for code, moment in reversed([*enumerate(parsed)]) if moment is not None}
    if len(by_zone) > 1:
        raise ValueError(
            f"Column {name!r} has times with a time zone, as in row {row_of(by_zone[True])}, and without, as in row "
            f"{row_of(by_zone[False])}: give all of them one, or none."
        )
    table = [np.datetime64("NaT") if moment is None else to_moment(moment) for moment in parsed]
    return Dates(np.array([*table, np.datetime64("NaT")], "datetime64[us]")[column.codes], has_zone=True in by_zone)


def _parse(value: Any) -> dt.datetime | None:
    if isinstance(value, dt.date):
        return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    if not isinstance(value, str):
        return None
    try:
        return dt.datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _refuse(name: str, row: str, value: Any) -> NoReturn:
    raise ValueError(
        f"Column {name!r} held dates when the model was fitted, but has {str(value)[:60]!r} in row {row}: give a date, "
        "such as 2024-05-31, or None where it is missing."
    )


def check_date_features(date_features: Any) -> bool:
    """Whether dates become inputs."""
    if date_features is None:
        return False
    if not isinstance(date_features, str) or date_features != AUTO:
        raise ValueError(f"date_features={date_features!r}: give 'auto', or None to refuse dates.")
    return True


def _make_part(values: NDArray[np.datetime64], part: str, first: int) -> NDArray[np.float64]:
    """One number a row, NaN where the date is missing."""
    is_missing = np.isnat(values)
    days = values.astype("datetime64[D]").astype(np.int64)
    found: NDArray[Any]
    if part == "year":
        found = values.astype("datetime64[Y]").astype(np.int64) + 1970
    elif part == "month":
        found = values.astype("datetime64[M]").astype(np.int64) % 12 + 1
    elif part == "weekday":
        found = (days - _MONDAY) % 7
    elif part == "hour":
        found = (values.astype(np.int64) % _DAY) // (_DAY // 24)
    else:
        found = (days - first) + (values.astype(np.int64) % _DAY) / _DAY
    made = np.asarray(found, np.float64)
    made[is_missing] = np.nan
    return made


def _is_constant(values: NDArray[np.float64]) -> bool:
    known = values[~np.isnan(values)]
    return len(known) == 0 or bool((known == known[0]).all())
