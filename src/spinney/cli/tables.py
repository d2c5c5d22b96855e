"""DATA as commands take it: a file, or the name of an embedded table; its target, and what kind of target it is."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spinney.cli.group import Problem, printable

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MOST_NAMES = 20  # of a list in an error
MOST_LETTERS = 60  # of a name
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

task_option = click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="auto: regression if the target has fractions, more than 20 distinct numbers, or few repeats.",
)
target_option = click.option("--target", metavar="COLUMN", help="The column to predict. Embedded tables know theirs.")
drop_option = click.option(
    "--drop", metavar="COLUMN", multiple=True, help="Columns to leave out, such as a row number: A,B; repeatable."
)
keep_option = click.option(
    "--keep",
    metavar="COLUMN",
    multiple=True,
    help="Columns to use although they seem to name the rows, or to be the target again: A,B; repeatable.",
)


class OpenedTable(NamedTuple):
    """A table, the column that it is about if that is known, and how its file was read, if it is of one."""

    name: str
    table: pa.Table
    target: str | None
    form: str | None


class TrainingTable(NamedTuple):
    """What a method is fitted on."""

    X: pa.Table
    y: NDArray[Any]
    target: str
    is_regression: bool


def open_data(path: str) -> OpenedTable:
    """The table in a file, in several, in a store or, for `-`, in stdin; or the embedded one of this name."""
    from spinney import datasets, read_table
    from spinney.cli.many_files import is_many, read_many
    from spinney.cli.stdin import NAME, as_file, naming

    if not Path(path).exists() and path in datasets.names():
        return OpenedTable(path, datasets.load(path), datasets.source(path).target, None)
    if is_many(path):
        return OpenedTable(path, *read_many(path))
    place = as_file(path)
    with naming(place, path):
        return OpenedTable(NAME if path == "-" else path, read_table(place), None, describe_form(place))


def describe_form(place: Path) -> str:
    """What kind of file a table was read from, and what separates its fields."""
    from spinney.table.ingest import check_file, find_delimiter

    kind = check_file(place)
    if kind == "csv":
        return f"CSV separated by {SEPARATORS[find_delimiter(place)]}"
    return "Parquet" if kind == "parquet" else "Arrow"


def list_columns(data: OpenedTable, texts: tuple[str, ...], option: str) -> tuple[str, ...]:
    """Columns of an option, each given alone or with others between commas; a name may have a comma of its own."""
    names = []
    for text in texts:
        parts = [text] if text in data.table.column_names else [part.strip() for part in text.split(",")]
        names += [part for part in parts if part]
        if not any(parts):
            raise Problem(f"--{option} is empty: name a column")
    for name in names:
        check_column(data, name)
    return tuple(dict.fromkeys(names))


def leave_out(data: OpenedTable, target: str, drop: tuple[str, ...], keep: tuple[str, ...]) -> dict[str, str]:
    """Columns that name the rows, with the reason; none where no other column would be left."""
    from spinney.study.column_checks import name_rows

    X = data.table.drop_columns([target, *drop])
    found = {name: why for name, why in name_rows(X).items() if name not in keep}
    return found if len(found) < X.num_columns else {}


def split_target(
    data: OpenedTable, target: str | None, task: str = "auto", drop: tuple[str, ...] = ()
) -> TrainingTable:
    """Features and target; the target has no missing values, and its task is found or given."""
    drop = list_columns(data, drop, "drop")
    target = find_target(data, target, drop)
    if not data.table.num_rows:
        raise Problem(f"{data.name} has no rows")
    if task != "classification":
        from spinney.study.tables import check_target

        check_target(data.table[target], target)
    y = as_target(data.table[target], target)
    X = data.table.drop_columns([target, *dict.fromkeys(drop)])
    if not X.num_columns:
        raise Problem(f"{data.name} has no column beside the target {show_name(target)} to predict it from")
    from spinney.study.tables import looks_continuous

    is_regression = looks_continuous(y) if task == "auto" else task == "regression"
    return TrainingTable(X, y.to_numpy(), target, is_regression)


def find_target(data: OpenedTable, target: str | None, drop: tuple[str, ...]) -> str:
    """The column to predict; it and those to leave out are in the table, once, and are not the same."""
    target = target or data.target
    if target is None:
        raise Problem(f"--target is missing: which column of {data.name} is to be predicted? {listed(data)}")
    for name in dict.fromkeys((*drop, target)):
        check_column(data, name)
    if target in drop:
        raise Problem(f"--drop {show_name(target)}: it is the target")
    return target


def check_column(data: OpenedTable, name: str) -> None:
    """The table has a column of this name, and one only."""
    names = data.table.column_names
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {show_name(close[0])}?" if close else listed(data)
        raise Problem(f"no column {show_name(name)} in {data.name}. {hint}")
    if names.count(name) > 1:
        raise Problem(f"{data.name} has more than one column {show_name(name)}; rename or remove all but one")


def as_target(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column of plain values, without missing ones."""
    import pyarrow as pa

    from spinney.study.tables import plain

    column = plain(column)
    if pa.types.is_nested(column.type):
        raise Problem(f"column {show_name(name)} is nested ({column.type}): it cannot be predicted")
    if column.null_count:
        raise Problem(f"column {show_name(name)} has {column.null_count} missing values; remove those rows first")
    return column


def listed(data: OpenedTable) -> str:
    """The columns of a table, in words."""
    return f"Its columns: {join_names(data.table.column_names)}"


def join_names(names: list[str]) -> str:
    """Names in a row, the first of many."""
    shown = ", ".join(show_name(name) for name in names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown}, ... {len(names) - MOST_NAMES} more"


def show_name(name: str) -> str:
    """A name as a user can find it: short, in quotes, without letters that act on a terminal."""
    text = printable(name)
    return f"'{text}'" if len(text) <= MOST_LETTERS else f"'{text[:MOST_LETTERS]}...'"
