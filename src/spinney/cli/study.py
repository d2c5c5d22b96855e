"""`spinney study`: all methods on one table, or the lectures' figure."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli import signals
from spinney.cli.output import check_new, force_option, json_option
from spinney.cli.report import no_report_option, place_report, report_option, write_report
from spinney.cli.tables import (
    check_column,
    drop_option,
    find_target,
    keep_option,
    list_columns,
    open_data,
    target_option,
    task_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spinney.cli.study_text import Writer
    from spinney.study.clock import Clock
    from spinney.study.evidence import Evidence
    from spinney.study.fold_record import FoldRecord
    from spinney.study.result import Figure, Study
    from spinney.study.tables import StudyData

COMPARING = 0.8  # of a budget, where a report is to be made of what is left
REPORTING, LEAST_COMPARING = 3.0, 0.6  # seconds that are kept for a report, and what of a budget is not


@click.command()
@click.argument("data", required=False, metavar="[DATA]")
@target_option
@task_option
@drop_option
@keep_option
@click.option("--methods", metavar="A,B,...", help="Only these: id3, c45, cart, bagging, forest, extra-trees, ...")
@click.option(
    "--metric", help="accuracy, balanced_accuracy, log_loss, roc_auc; r2, mae, rmse.  [default: accuracy, r2]"
)
@click.option("--folds", metavar="K[xR]", help="K folds, R times.  [default: 5; 5x2 below 1000 rows, 5x5 below 200]")
@click.option("--groups", metavar="COLUMN", help="Rows with the same value here stay in one fold.")
@click.option("--time", "time_column", metavar="COLUMN", help="Hold out later rows than those trained on.")
@click.option("--budget", metavar="TIME", help="Stop after this time, with what is done: 60s, 5m.")
@click.option("--tune", is_flag=True, help="Search a few settings of each method inside each fold's training rows.")
@click.option("--save", metavar="FILE.spn", type=click.Path(), help="Fit the best method to all rows and save it.")
@report_option
@no_report_option
@force_option
@json_option
@click.option("--plain", is_flag=True, help="Plain ASCII text without frames and colours.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of folds and methods.")
def study(data: str | None, **options: Any) -> None:
    """Compare all methods on a table, and write a report.

    DATA is a CSV, Parquet or Arrow file, or the name of an embedded table.

    Without DATA: the lectures' figure on California housing, R² and fit time of four ensembles by number of trees.
    """
    from rich.console import Console

    from spinney.cli.study_text import Writer
    from spinney.study.clock import Clock, read_duration

    budget = options["budget"]
    clock = Clock(None if budget is None else read_duration(budget), start=time.perf_counter())
    is_plain = options["plain"]
    writer = Writer(Console(no_color=is_plain or None, color_system=None if is_plain else "auto"), is_plain=is_plain)
    with signals.reporting():
        stopped = _study_table(data, options, clock, writer) if data is not None else _draw(options, clock, writer)
    if stopped == "interrupt":
        raise KeyboardInterrupt
    if stopped == "budget" and not options["as_json"]:
        click.echo("the budget is spent: some of the work was left out", err=True)


def _study_table(source: str, options: dict[str, Any], clock: Clock, writer: Writer) -> str | None:
    """Compare on a table, print, save; why it stopped early, or None."""
    from spinney.cli.study_text import print_study, print_summary
    from spinney.study.compare import compare
    from spinney.study.fold_record import FoldRecord
    from spinney.study.folds import make_folds
    from spinney.study.methods import choose_methods
    from spinney.study.metrics import choose_metric
    from spinney.study.tables import prepare

    if options["save"] is not None:
        check_new(options["save"], force=options["force"])
    place = place_report(source, options)
    n_splits, n_repeats = _read_folds(options["folds"])
    data = open_data(source)
    drop = list_columns(data, options["drop"], "drop")
    target = find_target(data, options["target"], drop)
    for column in (options["groups"], options["time_column"]):
        if column is not None:
            check_column(data, column)
    ready = prepare(
        data.table,
        target,
        name=Path(data.name).name,
        task=options["task"],
        groups=options["groups"],
        time=options["time_column"],
        drop=drop,
        keep=list_columns(data, options["keep"], "keep"),
        fewest=n_splits if options["groups"] is None and options["time_column"] is None else 1,
    )
    keys = None if options["methods"] is None else [key.strip() for key in options["methods"].split(",") if key.strip()]
    methods = choose_methods(ready.summary.task, keys)
    metric = choose_metric(options["metric"], ready.summary.task)
    folds = make_folds(ready, n_splits, n_repeats, options["seed"])
    if not options["as_json"]:
        tuned = ", tuned inside each fold" if options["tune"] else ""
        plan = f"{len(methods)} methods{tuned}, {metric.title}, {folds.description}"
        print_summary(ready.summary, data.form, plan, writer)
    record = None if place is None else FoldRecord()
    with progress() as on_fold:
        result = compare(
            ready,
            methods=[method.key for method in methods],
            metric=metric.name,
            n_splits=n_splits,
            n_repeats=n_repeats,
            is_tuned=options["tune"],
            seed=options["seed"],
            clock=clock if place is None else clock.share(_find_share(clock)),
            on_fold=on_fold,
            record=record,
        )
    _answer(result)
    if options["as_json"]:
        click.echo(result.to_json())
    else:
        print_study(result, writer)
    trouble = None
    if options["save"] is not None and result.stopped != "interrupt":
        try:
            _save(result, ready, options, writer)
        except ValueError as error:  # there is no model, but there are scores
            trouble = error
    errors = [None if one.folds else one.error for one in result.methods if not one.is_baseline]
    if all(errors):
        trouble = ValueError(f"every method failed: {errors[0]}")
    stopped = result.stopped if place is None else _report(place, result, ready, record, options, clock, writer)
    if trouble is not None and stopped != "interrupt":
        raise trouble
    return stopped


def _report(
    place: Path,
    result: Study,
    ready: StudyData,
    record: FoldRecord | None,
    options: dict[str, Any],
    clock: Clock,
    writer: Writer,
) -> str | None:
    """Look closer and write the report; why the study or this stopped early, or None."""
    from spinney.show.report import make_report
    from spinney.study.examine import examine, has_subject

    evidence = None
    if result.stopped != "interrupt" and has_subject(result):
        with progress() as on_step:
            evidence = examine(result, ready, record, clock=clock, on_step=on_step)
        _answer(evidence)
    _print_place(write_report(place, partial(make_report, result, evidence)), options, writer)
    return result.stopped or (None if evidence is None else evidence.stopped)


def _save(result: Study, data: StudyData, options: dict[str, Any], writer: Writer) -> None:
    """Fit the best method to all rows and save it."""
    from spinney.study.compare import refit

    refit(result, data).save_model(options["save"])
    if not options["as_json"]:
        assert result.best is not None
        writer.line(
            f"{result.method(result.best).name}, fitted to all {data.n_rows:,} rows: saved in {options['save']}"
        )


def _draw(options: dict[str, Any], clock: Clock, writer: Writer) -> str | None:
    """The lectures' figure; why it stopped early, or None."""
    from spinney.cli.study_text import print_figure
    from spinney.show.report import make_figure_report
    from spinney.study.fold_record import FoldRecord
    from spinney.study.housing import draw_figure
    from spinney.study.housing_evidence import examine_figure, prepare_table
    from spinney.study.housing_setup import SEED, TABLE, WORDS, list_settings

    for option in ("target", "drop", "keep", "methods", "metric", "folds", "groups", "time_column", "tune", "save"):
        if options[option]:
            name = option.removesuffix("_column")
            raise ValueError(
                f"--{name} needs DATA; `spinney study california_housing` compares all methods on that table"
            )
    place = place_report(TABLE, options)
    record = None if place is None else FoldRecord()
    with progress() as on_step:
        part = clock if place is None else clock.share(_find_share(clock))
        figure = draw_figure(clock=part, on_step=on_step, record=record)
    _answer(figure)
    if options["as_json"]:
        click.echo(figure.to_json())
    else:
        print_figure(figure, writer)
    if place is None:
        return figure.stopped
    evidence = None
    if figure.stopped != "interrupt" and any(curve.scores for curve in figure.curves):
        with progress() as on_step:
            evidence = examine_figure(figure, record, clock=clock, on_step=on_step)
        _answer(evidence)
    make = partial(
        make_figure_report,
        figure,
        evidence,
        summary=prepare_table().summary,
        settings=list_settings(),
        words=WORDS,
        seed=SEED,
    )
    _print_place(write_report(place, make), options, writer)
    return figure.stopped or (None if evidence is None else evidence.stopped)


def _find_share(clock: Clock) -> float:
    """What of a budget is for comparing; the last seconds are kept for the report."""
    return COMPARING if clock.budget is None else max(min(COMPARING, 1.0 - REPORTING / clock.budget), LEAST_COMPARING)


def _answer(found: Study | Figure | Evidence | None) -> None:
    """Take Ctrl-C for answered: what was found becomes a table and a report, and a second Ctrl-C stops these."""
    if found is not None and found.stopped == "interrupt":
        signals.answer()


def _print_place(words: str, options: dict[str, Any], writer: Writer) -> None:
    """Where the report is; on stderr where stdout is a program's."""
    if options["as_json"]:
        click.echo(words, err=True)
    else:
        writer.line(words)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str, int, int], object]]:
    """A bar with the time left on stderr, on a terminal only: a pipe gets the table and nothing else."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("preparing", total=None)
        yield lambda what, n_done, n_all: bars.update(task, description=what, completed=n_done, total=n_all)


def _read_folds(text: str | None) -> tuple[int, int | None]:
    """Folds and repeats of "5" or "5x2"."""
    if text is None:
        return 5, None
    splits, cross, repeats = text.partition("x")
    if not splits.isdecimal() or (cross and not repeats.isdecimal()) or int(splits) < 2 or (cross and int(repeats) < 1):
        raise ValueError(f"--folds {text}: write 5, or 5x2 for five folds two times; at least 2 folds")
    return int(splits), int(repeats) if cross else None
