"""A study as text: what the table is, before work; then the methods, the best first, the notes and the advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spinney.cli.group import PLAIN_LETTERS, printable
from spinney.cli.tables import show_name
from spinney.show import numbers
from spinney.study.housing_setup import WORDS
from spinney.study.significance import LEVEL, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from spinney.study.result import Difference, Figure, MethodResult, Study, TableSummary

LAST = ("fit s", "predict s", "size", "leaves")
SPARED = ("leaves", "predict s", "size", "p", "±")  # columns that a narrow terminal does without, the first to go first
MOST_INPUTS = 12  # of a kind, named before work begins
MOST_LETTERS = 40  # of their names
FIGURE_WIDE = 72
BARS = "▁▂▃▄▅▆▇█"
PLAIN = str.maketrans({**PLAIN_LETTERS, **dict(zip(BARS, "._-=+*%#", strict=True))})


class Writer:
    """Lines and tables on a console; plain ones in ASCII, without frames."""

    def __init__(self, console: Console, *, is_plain: bool) -> None:
        self.console = console
        self.is_plain = is_plain

    def text(self, text: str) -> str:
        """The text in the letters that are wanted; whatever acts on a terminal is written out."""
        seen = printable(text)
        return seen.translate(PLAIN).encode("ascii", "backslashreplace").decode() if self.is_plain else seen

    def line(self, text: str = "", style: str | None = None) -> None:
        """One line, wrapped where the console ends."""
        self.console.print(self.text(text), style=style, markup=False, highlight=False)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], bold: int | None = None) -> None:
        """A table whose first column is words and whose others are numbers."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        made = Table(
            box=None if self.is_plain else box.SIMPLE_HEAD, pad_edge=False, padding=(0, int(self.is_plain), 0, 0)
        )
        cut: Literal["crop", "ellipsis"] = "crop" if self.is_plain else "ellipsis"
        for place, heading in enumerate(headings):
            width = max(len(row[place]) for row in (headings, *rows)) if place else None  # only names may be cut
            made.add_column(
                Text(self.text(heading)),
                justify="right" if place else "left",
                no_wrap=True,
                min_width=width,
                overflow=cut,
            )
        for place, row in enumerate(rows):
            made.add_row(*(Text(self.text(cell)) for cell in row), style="bold" if place == bold else None)
        self.console.print(made)


def print_summary(summary: TableSummary, form: str | None, plan: str, writer: Writer) -> None:
    """What the table is, how it was read and what will be done, for a reader to object before work begins."""
    if summary.classes:
        name, count = summary.classes[0]
        what = f"{len(summary.classes)} classes, {count / summary.n_rows:.1%} {show_name(name)}"
    else:
        what = "numbers"
    read = "" if form is None else f" ({form})"
    writer.line(
        f"{summary.name}{read}: {summary.n_rows:,} rows, target {show_name(summary.target)} ({summary.task}: {what})"
    )
    n_cells = summary.n_rows * len(summary.used)
    missing = sum(column.n_missing for column in summary.used) / n_cells
    inputs = " and ".join(
        part
        for kind, words in (("number", "numbers"), ("date", "dates"), ("category", "categories"))
        if (part := _name_inputs(summary, kind, words))
    )
    writer.line(f"inputs: {inputs}; {missing:.1%} of the cells are missing")
    for leak in summary.leaks:
        writer.line(f"LEAK? {leak}", style="bold")
    for name, why in summary.dropped.items():
        writer.line(f"left out: {show_name(name)}, {why}")
    for column in summary.used:
        if column.suspicion is not None:
            writer.line(f"suspicious: {show_name(column.name)}, {column.suspicion}")
    if summary.rare_warning is not None:
        writer.line(f"left out: {summary.rare_warning}")
    for text in summary.redundant:
        writer.line(f"redundant: {text}")
    if summary.copies_warning is not None:
        writer.line(f"suspicious: {summary.copies_warning}")
    writer.line(plan)
    if set(summary.dropped) - set(summary.asked):
        writer.line("(--keep COLUMN brings a column back)")


def _name_inputs(summary: TableSummary, kind: str, words: str) -> str:
    """How many inputs of a kind there are, and which; of categories with their numbers of levels."""
    found = [column for column in summary.used if column.kind == kind]
    names = [_brief(one.name) + (f" {one.n_distinct}" if kind == "category" else "") for one in found[:MOST_INPUTS]]
    more = [f"{len(found) - MOST_INPUTS} more"] if len(found) > MOST_INPUTS else []
    return f"{len(found)} {words if len(found) > 1 else kind} ({', '.join(names + more)})" if found else ""


def _brief(name: str) -> str:
    """A name in a list: shortened if long, quoted if its end would be unclear."""
    text = f"{name[: MOST_LETTERS - 3]}..." if len(name) > MOST_LETTERS else name
    return text if text.replace("_", "").isalnum() else repr(text)


def print_study(study: Study, writer: Writer) -> None:
    """The table of methods, what to know beside it, and the advice."""
    title = study.metric_title
    gaps = {one.key: one for one in study.differences}
    headings = ["method", title if len(title) < 10 else study.metric, "±", "behind", "p", *LAST]
    rows = [_cells(study, result, gaps.get(result.key)) for result in study.ranked]
    headings, rows = _fit_width(headings, rows, writer.console.width)
    writer.line()
    writer.table(headings, rows, bold=0 if study.best is not None else None)
    done = "the finished ones of " if study.is_partial else ""
    better = "higher" if study.is_greater_better else "lower"
    writer.line(
        f"{title}: {better} is better; mean of {done}{study.folds}, ± its standard error. behind: mean "
        f"difference to the best in the same folds; p: corrected t-test (Nadeau and Bengio), Holm's correction; "
        f"* below {LEVEL}{_tell_smallest(study)}. Times are means per fold, of {study.train_rows:,.0f} rows to fit "
        f"and {study.test_rows:,.0f} to predict, on {study.n_cores} core{'s' if study.n_cores > 1 else ''}"
        f"{'; a fit has its search in it' if study.is_tuned else ''}."
    )
    for note in study.notes:
        if not note.startswith("column ") and note not in {
            study.summary.copies_warning,
            study.summary.rare_warning,
        }:  # printed before the work
            writer.line(f"note: {note}")
    writer.line()
    writer.line(study.recommendation, style="bold")


def _tell_smallest(study: Study) -> str:
    """The smallest difference that matters, in words."""
    if study.smallest is None:
        return ""
    return (
        f"; differences below {study.smallest:.2g} do not matter ({SMALLEST:.0%} of the best's gain over the baseline)"
    )


def _fit_width(headings: list[str], rows: list[list[str]], width: int) -> tuple[list[str], list[list[str]]]:
    """The table without as many of its columns as a terminal has no room for."""
    kept = list(range(len(headings)))
    for spared in SPARED:
        needed = sum(max(len(row[j]) for row in [headings, *rows]) for j in kept) + len(kept) + 1
        if needed <= width:
            break
        kept.remove(headings.index(spared))
    return [headings[j] for j in kept], [[row[j] for j in kept] for row in rows]


def _cells(study: Study, result: MethodResult, gap: Difference | None) -> list[str]:
    """A row of the table: method, score, error, behind, p, fit, predict, size, leaves."""
    if result.mean is None:
        return [study.label(result), "failed" if result.error else "-", *[""] * 7]
    error = study.standard_error(result)
    p = None if gap is None else gap.p_adjusted
    return [
        study.label(result),
        numbers.short(result.mean),
        "" if error is None else numbers.short(error),
        "best" if result.key == study.best else "" if gap is None else numbers.short(gap.mean),
        "" if p is None else numbers.chance(p) + ("*" if p < LEVEL else " "),
        numbers.seconds(float(np.mean(result.fit_seconds))),
        numbers.seconds(float(np.mean(result.predict_seconds))),
        "" if result.model_bytes is None else numbers.size(result.model_bytes),
        "" if result.n_leaves is None else f"{result.n_leaves:,.0f}",
    ]  # fmt: skip


# --- The figure on housing ------------------------------------------------------------------------------------


def print_figure(figure: Figure, writer: Writer) -> None:
    """R² and seconds by method and number of trees, and the shape of each curve."""
    width = writer.console.width
    curves = [curve for curve in figure.curves if curve.scores]
    writer.line(f"California housing: R² on held-out rows and seconds to fit, mean of {figure.folds}")
    if not curves:
        writer.line("nothing was finished")
        return
    r2 = [(curve.name, [f"{value:.3f}" for value in np.mean(curve.scores, axis=0)]) for curve in curves]
    fit = [(curve.name, [f"{value:.2f}" for value in np.mean(curve.seconds, axis=0)]) for curve in curves]
    lowest = min(float(np.mean(curve.scores, axis=0).min()) for curve in curves)
    highest = max(float(np.mean(curve.scores, axis=0).max()) for curve in curves)
    shapes = [_spark(np.mean(curve.scores, axis=0), lowest, highest) for curve in curves]
    trees = [str(n_trees) for n_trees in figure.trees]
    if width >= FIGURE_WIDE:
        headings = ["trees", *(f"{_initials(name)} R²" for name, _ in r2), *(f"{_initials(name)} s" for name, _ in fit)]
        columns = [trees, *(values for _, values in r2), *(values for _, values in fit)]
        writer.table(headings, [list(row) for row in zip(*columns, strict=True)])
    else:
        for unit, part in (("R²", r2), ("s", fit)):
            writer.table([f"{unit}, trees", *(_initials(name) for name, _ in part)],
                         [list(row) for row in zip(trees, *(values for _, values in part), strict=True)])  # fmt: skip
    for curve, shape in zip(curves, shapes, strict=True):
        n_done = len(curve.scores)
        short = "" if n_done == figure.n_folds else f"  ({n_done} of {figure.n_folds} folds)"
        writer.line(f"{_initials(curve.name):<4} {shape}  {curve.name}{short}")
    for curve in curves:
        if curve.name in WORDS:
            writer.line(f"{curve.name}: {WORDS[curve.name]}")
    writer.line(f"{figure.seconds:.0f} s in all on {figure.n_cores} core{'s' if figure.n_cores > 1 else ''}")


def _initials(name: str) -> str:
    return {"random forest": "RF", "extra-trees": "ET", "XGBoost's form": "XGB", "weak boosting": "GB"}.get(
        name, name[:4]
    )


def _spark(values: Any, lowest: float, highest: float) -> str:
    """A curve in eight heights, all curves on one scale."""
    share = (np.asarray(values) - lowest) / max(highest - lowest, 1e-12)
    return "".join(BARS[min(int(8 * one), 7)] for one in share)
