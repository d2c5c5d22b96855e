"""`spinney datasets`, `spinney warmup` and `spinney doctor`: what comes with the library, and what it runs on."""

from __future__ import annotations

import os
import textwrap
from typing import Any

import click

from spinney.cli.output import check_new, force_option, json_option, print_json, print_lines, print_pairs, width

OPTIONAL = {  # packages, and what they are for
    "pandas": "frames of pandas as X; Trace.to_frame",
    "polars": "frames of polars as X",
    "matplotlib": "plots from Python: the extra spinney[plot]",
    "onnx": "exports to ONNX: the extra spinney[onnx]",
    "treelite": "exports to Treelite: the extra spinney[treelite]",
    "psutil": "memory in benchmarks",
    "lightgbm": "comparison in benchmarks",
    "xgboost": "comparison in benchmarks",
}


@click.command()
@click.argument("name", required=False)
@click.option("--out", metavar="FILE", type=click.Path(), help="Write the table NAME as CSV, Parquet or Arrow.")
@force_option
@json_option
def datasets(name: str | None, out: str | None, force: bool, as_json: bool) -> None:
    """List the embedded tables; or show or write one.

    Each is listed with its source and licence. With NAME, that table alone.
    """
    from spinney import datasets as tables
    from spinney.cli.group import Problem

    if out is not None:
        if name is None:
            raise Problem("--out is for one table: give its NAME")
        write_table(tables.load(name), out, force=force)
        return
    found = {key: tables.source(key)._asdict() for key in ([name] if name else tables.names())}
    if name is not None:
        found[name]["columns"] = tables.load(name).column_names
    if as_json:
        print_json([{"name": key, **about} for key, about in found.items()])
    elif name is not None:
        about = found[name]
        pairs = {key: value for key, value in about.items() if key not in {"file", "columns"} and value != ""}
        print_pairs([("name", name), *pairs.items(), ("columns", ", ".join(about["columns"]))])
    else:
        for key, about in found.items():
            print_lines(key)
            more = [f"{about['rows']:,} rows, {about['task']} of {about['target']}", about["origin"], about["licence"]]
            for line in more:
                print_lines(*textwrap.wrap(line, width(), initial_indent="  ", subsequent_indent="    "))


def write_table(table: Any, out: str, *, force: bool) -> None:
    """Write a table in the form that the suffix of the file names."""
    from spinney._files import replacing
    from spinney.cli.writers import Sink, kind_of

    kind = kind_of(out)
    check_new(out, force=force)
    with replacing(out) as file, Sink(file, kind) as sink:
        sink.write(table)


@click.command()
def warmup() -> None:
    """Compile the kernels now, so that later fits do not wait.

    Takes two to four minutes, once for a machine and version. Fits from disk or on a cluster, boosting of 262,144
    rows and more, and forests of a hundred columns that are almost always one value compile what they need besides
    when first asked for.
    """
    from spinney import _jit
    from spinney import warmup as compile_kernels

    compile_kernels()
    place = _jit.cache_directory() or "memory only: no cache directory is writable"
    print_lines(f"kernels are compiled; kept in {place}")


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Show what Spinney runs on.

    Versions, cores, where compiled kernels are kept, and what is optional and missing.
    """
    from joblib import cpu_count

    from spinney import _jit
    from spinney._jit.numba_names import find_moved
    from spinney._versions import find_versions, installed

    cache = _jit.cache_directory()
    missing = {name: purpose for name, purpose in OPTIONAL.items() if installed(name) is None}
    n_kernels = 0 if cache is None else len(list(cache.glob("*.kernel")))
    facts: dict[str, Any] = {
        "versions": find_versions(),
        "cores": os.cpu_count(),
        "cores_to_use": int(cpu_count()),
        "cache": None if cache is None else str(cache),
        "cache_is_writable": cache is not None,
        "compiled_kernels": n_kernels,
        "numba_changes": find_moved(),
        "missing": missing,
    }
    if as_json:
        print_json(facts)
        return
    print_pairs((name, version or "not installed") for name, version in facts["versions"].items())
    print_lines("")
    print_pairs(
        [
            ("cores", f"{facts['cores_to_use']} to use, {facts['cores']} in the machine"),
            ("cache", str(cache) if cache else "none is writable: every process compiles anew; set SPINNEY_CACHE_DIR"),
            ("kernels", f"{n_kernels} compiled" if n_kernels else "none compiled yet: spinney warmup does it ahead"),
        ]
    )
    if facts["numba_changes"]:
        print_lines("", "kernels may compile slowly or anew in each process, since names of Numba have changed:")
        print_lines(*(f"  {change}" for change in facts["numba_changes"]))
    if missing:
        print_lines("", "optional, and not installed:")
        print_pairs((f"  {name}", purpose) for name, purpose in missing.items())
