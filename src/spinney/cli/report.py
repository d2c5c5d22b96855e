"""The report of `spinney study`: where it goes, what it may replace, how it is written."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney._files import replacing
from spinney.cli.group import Problem
from spinney.cli.output import check_new

if TYPE_CHECKING:
    from collections.abc import Callable

ENDING = ".report.html"
DATA_ENDINGS = (".gz", ".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")  # of tables
KNOWN_BYTES = 4096  # of a file, by which a report is known

report_option = click.option(
    "--report",
    metavar="FILE.html",
    type=click.Path(),
    help="Where to write the report.  [default: DATA's name, .report.html]",
)
no_report_option = click.option("--no-report", is_flag=True, help="Write no report.")


def place_report(source: str, options: dict[str, Any]) -> Path | None:
    """Where the report goes, None for nowhere; a file that it must not replace is refused before any work is done.

    Programs that ask for JSON get a report on request only. Beside data that lie where nothing can be written, it goes
    to the current directory; where that is no place either, a study that was not asked for a report has none.
    """
    if options["no_report"]:
        if options["report"] is not None:
            raise Problem("--report and --no-report: choose one")
        return None
    if options["report"] is not None:
        place = Path(options["report"])
    elif options["as_json"]:
        return None
    else:
        place = beside(source)
        if not os.access(place.parent, os.W_OK):
            click.echo("no report: nothing can be written here; --report names another place", err=True)
            return None
    if options["report"] == "":
        raise Problem("--report is empty: give the name of a file")
    if place.is_file() and not options["force"] and not is_ours(place):
        raise Problem(
            f"{place} exists and is not a report of Spinney; --force replaces it, --report names another, "
            "--no-report writes none"
        )
    check_new(str(place), force=True)
    return place


def beside(source: str) -> Path:
    """The report's place beside the data, or in the current directory."""
    data = Path(source)
    name = data.name
    while name.lower().endswith(DATA_ENDINGS):
        name = name[: name.rindex(".")]
    folder = data.parent if data.is_file() and os.access(data.parent, os.W_OK) else Path()
    return folder / f"{name.strip('-.') or 'study'}{ENDING}"


def is_ours(place: Path) -> bool:
    """Whether a file is a report that may be written anew."""
    from spinney.show.page import is_report

    with place.open("rb") as file:
        return is_report(file.read(KNOWN_BYTES))


def write_report(place: Path, make: Callable[..., str]) -> str:
    """Make a page and write it whole; return the line that says where it is."""
    from spinney.show.numbers import size

    page = make(made=today(), command=shlex.join(["spinney", *sys.argv[1:]])).encode("utf-8", "replace")
    with replacing(place) as file:
        file.write(page)
    return f"report: {place} ({size(len(page))})"


def today() -> str:
    """The date, in words."""
    now = dt.datetime.now(tz=dt.UTC).astimezone()
    return f"{now.day} {now:%B %Y}"
