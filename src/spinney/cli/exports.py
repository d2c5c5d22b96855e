"""`spinney export`: a model in the language of where it is to run."""

from __future__ import annotations

import sys
from typing import Any

import click

from spinney.cli.group import Problem
from spinney.cli.output import check_new, force_option, json_option, print_json

LANGUAGES = ("sql", "c", "python", "javascript", "json", "onnx", "pmml", "treelite", "rules")
DIALECTS = ("sqlite", "duckdb", "postgresql")


@click.command()
@click.argument("model", type=click.Path())
@click.option("--to", type=click.Choice([*LANGUAGES, "js"]), help="The language; by default that of --out's suffix.")
@click.option("--out", metavar="FILE", type=click.Path(), help="The file to write; by default, and as -, stdout.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="sql: of which engine; default: sqlite.")
@click.option("--table", metavar="NAME", help="sql: the table to query; default: data.")
@click.option("--schema", metavar="NAME", help="sql: the schema that the table is in; by default none is named.")
@click.option("--key", metavar="COLUMN", multiple=True, help="sql: a column beside the answers; repeatable.")
@click.option("--name", metavar="NAME", help="c, javascript: what its names begin with; default: model.")
@click.option("--check", metavar="DATA", help="Compare these rows too, beside those that are made up.")
@force_option
@json_option
def export(
    model: str,
    to: str | None,
    out: str | None,
    check: str | None,
    key: tuple[str, ...],
    schema: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Write a MODEL file as SQL, C, Python, JavaScript, JSON, ONNX, PMML, Treelite or rules.

    The export is run where that is possible here, on rows at the thresholds of the trees, with missing values and
    levels never seen, and compared with the model: the last line says how near it comes.
    """
    import spinney

    out = None if out == "-" else out
    if out is None and to is None:
        raise Problem(f"say what to export to: --to {', '.join(LANGUAGES)}; or --out FILE with their suffix")
    if out is None and as_json:
        raise Problem("--json tells of the export on stdout: give --out FILE for the export itself")
    if out is not None:
        check_new(out, force=force)
    options = {name: value for name, value in given.items() if value is not None} | ({"key": key} if key else {})
    if schema is not None:
        options["table"] = [schema, options.get("table", "data")]
    X = None if check is None else read_rows_of(model, check)
    try:
        found = spinney.export(model, to, out, X=X, **options)
    except TypeError as error:
        raise Problem(str(error)) from error
    if as_json:
        print_json(
            {
                "to": found.to,
                "file": found.path,
                "rows": found.n_rows,
                "difference": found.difference,
                "other_classes": found.n_other_classes,
                "note": found.note,
            }
        )
        return
    if out is None:
        write_content(found.content)
    click.echo(f"{found.to}, {len(found.content):,} {found.unit}: {found.verdict}", err=out is None)


def read_rows_of(model: str, data: str) -> Any:
    """All rows of a file as a model reads them."""
    import numpy as np
    import pyarrow as pa

    from spinney.cli.predictions import Features, open_model, open_rows

    loaded = open_model(model)
    batches = open_rows(data, loaded)
    features = Features(loaded, batches, data)
    parts = [features.take(table) for table in batches.rows]
    if not parts:
        raise Problem(f"{data} has no rows")
    return pa.concat_tables(parts).unify_dictionaries() if isinstance(parts[0], pa.Table) else np.concatenate(parts)


def write_content(content: str | bytes) -> None:
    """Write an export to stdout."""
    if isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        click.echo(content, nl=False, file=sys.stdout)
