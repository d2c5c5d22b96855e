"""`spinney store`, and `spinney train` of tables that are read in blocks: folders, patterns, stores, limited memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spinney.cli.group import Problem
from spinney.cli.inspection import count_parts, list_trees
from spinney.cli.methods import find_bag_score, find_method, make_estimator
from spinney.cli.output import json_option, print_json, print_pairs
from spinney.cli.tables import drop_option, target_option

if TYPE_CHECKING:
    from spinney.scale.store import Store

memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help="Read DATA in blocks, and refuse a fit that takes more memory than this, such as 4GB.",
)


class ScanOptions(NamedTuple):
    """What `spinney train` was asked for, of a table that is read in blocks."""

    data: str
    target: str | None
    method: str
    params: dict[str, Any]
    task: str
    drop: tuple[str, ...]
    memory: str | None
    out: str


@click.command()
@click.argument("data", type=click.Path())
@target_option
@click.option("--weight", metavar="COLUMN", help="The column of row weights.")
@click.option("--groups", metavar="COLUMN", help="The column of groups, which bags draw together.")
@drop_option
@click.option("--out", metavar="FOLDER", required=True, type=click.Path(), help="The folder to make: table.codes.")
@json_option
def store(
    data: str,
    target: str | None,
    weight: str | None,
    groups: str | None,
    drop: tuple[str, ...],
    out: str,
    as_json: bool,
) -> None:
    """Keep DATA in a folder that fits read in blocks.

    DATA is a CSV (also gzipped), Parquet or Arrow file, a folder of such files or a pattern in quotes. The folder is
    then DATA of `spinney train`, as often as wanted: rows are decoded once, and codes that a fit makes are kept.
    """
    from spinney import scan
    from spinney.cli.stdin import naming

    if target is None:
        raise Problem(f"--target is missing: which column of {data} is to be predicted?")
    if Path(out).exists():
        raise Problem(f"--out {out} is there already: remove it, or give another folder")
    start = time.perf_counter()
    place = find_place(data)
    with naming(place, data):
        kept = scan(place, target, weight=weight, groups=groups, drop=list_names(drop)).store(out)  # type: ignore[union-attr]
    facts = {
        "store": out,
        "bytes": sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file()),
        "target": target,
        "rows": kept.n_rows,
        "features": len(kept.feature_names),
        "seconds": round(time.perf_counter() - start, 3),
    }
    if as_json:
        print_json(facts)
    else:
        print_pairs(facts.items())


def find_place(data: str) -> str | Path:
    """What is scanned: an address, or a path, of stdin that of a file."""
    from spinney.cli.stdin import as_file
    from spinney.scale.addresses import is_address

    return data if is_address(data) else as_file(data)


def list_names(texts: tuple[str, ...]) -> list[str]:
    """Columns of an option, each given alone or with others between commas."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def train_scan(options: ScanOptions, *, as_json: bool) -> None:
    """Fit a method to a table that is read in blocks, and save the model."""
    from spinney import scan
    from spinney.cli.stdin import naming
    from spinney.scale.layout import is_store
    from spinney.scale.scan import Scan

    place = find_place(options.data)
    if is_store(Path(place)):
        if options.target is not None or options.drop:
            raise Problem(f"{options.data} is a store, which has its target: leave out --target and --drop")
        table: Any = scan(place, memory=options.memory)
    elif options.target is None:
        raise Problem(f"--target is missing: which column of {options.data} is to be predicted?")
    else:
        table = scan(place, options.target, drop=list_names(options.drop), memory=options.memory)
    start = time.perf_counter()
    with naming(place, options.data):
        opened: Store = table.read() if isinstance(table, Scan) else table
    is_regression = is_continuous(opened) if options.task == "auto" else options.task == "regression"
    cls = find_method(options.method, is_regression=is_regression, is_told=options.task != "auto")
    estimator = make_estimator(cls, options.params)
    estimator.fit(table)
    seconds = time.perf_counter() - start
    known = FitFacts(opened.target or "", opened.n_rows, len(opened.feature_names), seconds, is_regression)
    save_and_tell(options.out, estimator, known, as_json=as_json)


class FitFacts(NamedTuple):
    """What is known of a fit beside its model."""

    target: str
    n_rows: int
    n_features: int
    seconds: float
    is_regression: bool


def save_and_tell(out: str, estimator: Any, known: FitFacts, *, as_json: bool) -> None:
    """Save the model, and print what it is."""
    from spinney.estimators.saving import save_estimator

    save_estimator(estimator, out, {"target": known.target, "rows": known.n_rows})
    facts = {
        "model": out,
        "bytes": Path(out).stat().st_size,
        "method": type(estimator).__name__,
        "target": known.target,
        "rows": known.n_rows,
        "features": known.n_features,
        **count_parts(list_trees(estimator), getattr(estimator, "classes_", None)),
        "seconds": round(known.seconds, 3),
    }
    score = find_bag_score(estimator)
    if score is not None:
        facts[f"{'R2' if known.is_regression else 'accuracy'}, out-of-bag rows"] = score
    if as_json:
        print_json(facts)
    else:
        print_pairs(facts.items())


def is_continuous(table: Store) -> bool:
    """Whether the target of a table is numbers to be averaged."""
    import pyarrow as pa

    from spinney.study.tables import looks_continuous
    from spinney.table.columns import Categories

    y = table.read_target()
    return False if isinstance(y, Categories) else looks_continuous(pa.chunked_array([pa.array(y)]))
