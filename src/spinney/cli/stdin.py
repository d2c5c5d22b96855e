"""Data that come by stdin, written `-`: kept in a file of the kind that they are, for as long as the command runs."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney._files import unfinished
from spinney.cli.group import Problem

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

NAME = "stdin"
STARTS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrow", b"\x1f\x8b": ".csv.gz"}


def as_file(path: str) -> Path:
    """The file of this name; for `-`, one that holds what comes by stdin and is removed when the command ends."""
    if path != "-":
        return Path(path)
    if sys.stdin is None or sys.stdin.isatty():
        raise Problem("- reads a table from stdin, and there is none: pipe one into the command")
    folder = click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="spinney-"))
    unfinished.add(Path(folder))
    stream = sys.stdin.buffer
    start = stream.read(max(map(len, STARTS)))
    if not start:
        raise Problem("stdin is empty: a table was expected")
    ending = next((ending for letters, ending in STARTS.items() if start.startswith(letters)), ".csv")
    place = Path(folder) / f"{NAME}{ending}"
    with place.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
    return place


def naming(place: Path | str, path: str) -> AbstractContextManager[None]:
    """Let errors name stdin, not the file that stands for it."""
    from spinney.scale.spilling import naming as naming_parts

    return naming_parts({Path(place): NAME} if path == "-" else {})
