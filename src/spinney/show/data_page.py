"""The data of a report: what each column holds, and why some are left out or suspicious."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.reading.wording import percent, rounded
from spinney.show.markup import Html, join, tag
from spinney.show.names import shown
from spinney.show.page import explained, listed, scrolled

if TYPE_CHECKING:
    from spinney.study.result import Column, TableSummary

MAX_COLUMNS = 200
MAX_NOTES = 20
MAX_CLASSES = 20
MAX_TOP = 3


def describe_data(summary: TableSummary, *more: Html) -> Html:
    """All about the table, and more of its columns."""
    columns = f"{len(summary.used):,} of {len(summary.columns):,} columns"
    words = f"{summary.n_rows:,} rows; {columns} are used to predict {shown(summary.target)}."
    odd = [f"{shown(column.name)}: {column.leak}" for column in summary.used if column.leak is not None]
    odd += [f"{shown(column.name)}: {column.suspicion}" for column in summary.used if column.suspicion is not None]
    if len(odd) > MAX_NOTES:
        odd = [*odd[:MAX_NOTES], f"and {len(odd) - MAX_NOTES:,} more columns"]
    odd += [] if summary.rare_warning is None else [summary.rare_warning]
    odd += [] if summary.copies_warning is None else [summary.copies_warning]
    suspicions = [tag("h3", "To look at before trusting the scores"), listed(odd)] if odd else []
    return join(tag("p", words), *suspicions, describe_classes(summary), list_columns(summary), *more)


def describe_classes(summary: TableSummary) -> Html:
    """How many rows each class has."""
    if not summary.classes:
        return join()
    head = tag(
        "tr",
        tag("th", f"class of {shown(summary.target)}", scope="col"),
        tag("th", "rows", scope="col", class_="number"),
        tag("th", "share", scope="col", class_="number"),
        tag("td"),
    )
    lines = []
    for name, n_rows in summary.classes[:MAX_CLASSES]:
        share = n_rows / summary.n_rows
        lines.append(
            tag(
                "tr",
                tag("th", shown(name), scope="row"),
                tag("td", f"{n_rows:,}", class_="number"),
                tag("td", percent(share), class_="number"),
                tag("td", draw_share(share)),
            )
        )
    more = len(summary.classes) - MAX_CLASSES
    title = "Classes" if more <= 0 else f"The commonest {MAX_CLASSES} of {len(summary.classes)} classes"
    made = tag("table", tag("caption", title), tag("thead", head), tag("tbody", *lines))
    return scrolled(made, "Classes")


def list_columns(summary: TableSummary) -> Html:
    """A line for each column."""
    names = ("column", "kind", "missing", "distinct", "values", "remarks")
    looks = (None, None, "number", "number", None, None)
    head = tag("tr", *(tag("th", word, scope="col", class_=look) for word, look in zip(names, looks, strict=True)))
    lines = [write_column(summary, column) for column in summary.columns[:MAX_COLUMNS]]
    more = len(summary.columns) - MAX_COLUMNS
    title = "Columns" if more <= 0 else f"The first {MAX_COLUMNS} of {len(summary.columns):,} columns"
    made = tag("table", tag("caption", title), tag("thead", head), tag("tbody", *lines))
    return join(
        explained(
            "Of numbers: lowest, median, highest. Of dates: first and last. "
            "Of categories: the commonest levels with their rows."
        ),
        scrolled(made, "Columns"),
    )


def write_column(summary: TableSummary, column: Column) -> Html:
    """One column."""
    dropped = summary.dropped.get(column.name)
    remark = f"left out: {dropped}" if dropped is not None else column.leak or column.suspicion or ""
    return tag(
        "tr",
        tag("th", shown(column.name), scope="row"),
        tag("td", column.kind),
        tag("td", percent(column.n_missing / summary.n_rows) if column.n_missing else "", class_="number"),
        tag("td", f"{column.n_distinct:,}", class_="number"),
        tag("td", write_values(column), class_="values"),
        tag("td", remark, class_="suspicion" if remark and dropped is None else None),
    )


def write_values(column: Column) -> Html:
    """What is in a column, in a few words."""
    if column.lowest is not None and column.highest is not None:
        middle = "" if column.median is None else f" · {rounded(column.median)}"
        return join(f"{rounded(column.lowest)}{middle} · {rounded(column.highest)}")
    if column.span is not None:
        return join(" · ".join(column.span))
    parts: list[str] = []
    for name, n_rows in column.top[:MAX_TOP]:
        parts += [", "] if parts else []
        parts += [shown(name), " ", tag("small", f"{n_rows:,}")]
    if len(column.top) > MAX_TOP or column.n_distinct > len(column.top) > 0:
        parts.append(", …")
    return join(*parts)


def draw_share(share: float) -> Html:
    """A share as a bar."""
    return tag(
        "svg",
        tag("rect", class_="track", width=100, height=8),
        tag("rect", class_="part", width=100 * share, height=8),
        class_="share", viewBox="0 0 100 8", width=100, height=8, aria_hidden="true",
    )  # fmt: skip
