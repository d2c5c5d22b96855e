"""What commands print and write: aligned pairs, JSON, and files that replace none without leave."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.group import Problem, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

PIPE_WIDTH = 100  # columns where there is no terminal
LEAST_VALUE = 16  # columns for a value; where there are fewer, it gets a line of its own

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
force_option = click.option("--force", is_flag=True, help="Replace an existing file.")


def width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def print_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values in two columns; values that are too long go on below."""
    texts = [(name, printable(show(value))) for name, value in pairs if value is not None]
    left = max((len(name) for name, _ in texts), default=0) + 2
    room = width() - left
    for name, text in texts:
        if room >= LEAST_VALUE or len(text) <= room:
            first, *rest = textwrap.wrap(text, max(room, LEAST_VALUE)) or [""]
            print_lines(f"{name:<{left}}{first}", *(" " * left + line for line in rest))
        else:
            print_lines(name, *textwrap.wrap(text, width(), initial_indent="  ", subsequent_indent="  "))


def print_lines(*lines: str) -> None:
    """Print lines."""
    for line in lines:
        click.echo(line.rstrip(), file=sys.stdout)  # by default click takes a terminal of ASCII for one of UTF-8


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """Print a table: the first column to the left, shortened where the terminal is narrow; the others to the right."""
    cells = [[printable(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    widths[0] = max(min(widths[0], width() - sum(widths[1:]) - 2 * len(widths[1:])), 8)
    for row in cells:
        name = row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 3]}..."
        print_lines("  ".join([name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]))


def show(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if math.isnan(value) else f"{value:.4g}"


def print_json(content: Any) -> None:
    """Print JSON in ASCII; what is no number in JSON is null."""
    click.echo(json.dumps(as_plain(content), indent=2, allow_nan=False))


def as_plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, dict):
        return {str(name): as_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return as_plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def check_new(path: str, *, force: bool) -> None:
    """Refuse a file that is there already, or cannot be, before any work is done."""
    if not path:
        raise Problem("--out is empty: give the name of a file")
    place = Path(path)
    if place.is_dir():
        raise Problem(f"{path} is a directory")
    if place.exists() and not force:
        raise Problem(f"{path} exists; --force replaces it")
    folder = place.resolve().parent
    if not folder.is_dir():
        raise Problem(f"{path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK):
        raise Problem(f"{path}: the directory {folder} is not writable")
