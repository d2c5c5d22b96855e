"""The commands. An error is one line on stderr and exit code 2; Ctrl-C is exit code 130."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spinney import __version__

if TYPE_CHECKING:
    import pyarrow as pa


class Commands(click.Group):
    """A group that says expected errors in one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what a user can mend becomes a usage error."""
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError, OSError, ImportError) as error:
            if isinstance(error, BrokenPipeError):  # `spinney ... | head`: click ends quietly
                raise
            text = " ".join(str(error).split()) or type(error).__name__
            raise Problem(text) from error
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(130)


class Problem(click.ClickException):
    """Something the user can mend."""

    exit_code = 2


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="spinney", message="%(prog)s %(version)s")
def main() -> None:
    """Tree methods, from the lecture slide to the cluster."""


@main.command()
def study() -> None:
    """Compare the methods on the embedded California housing table."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from spinney.study.comparison import compare, methods, print_rows

    errors = Console(stderr=True)
    n_splits = 5
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    # Progress goes to stderr, on a terminal only: a pipe gets the table and nothing else.
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("preparing", total=len(methods()) * n_splits)

        def on_fit(method: str) -> None:
            progress.update(task, advance=1, description=method)

        rows = compare(n_splits=n_splits, on_fit=on_fit)
    print_rows(rows, Console(), f"California housing, {n_splits} folds, held-out R²")


@main.command()
@click.argument("path", type=click.Path())
@click.option("--target", metavar="COLUMN", required=True, help="The column to predict.")
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="auto: regression if the target has fractions, more than 20 distinct numbers, or few equal ones.",
)
@click.option("--criterion", help="How a split is judged: gini, entropy, ...; default: that of the estimator.")
@click.option("--max-depth", type=click.IntRange(min=1), help="No leaf is deeper than this.")
@click.option("--max-leaf-nodes", type=click.IntRange(min=2), help="Grow the best node first, to this many leaves.")
@click.option("--min-samples-leaf", type=click.IntRange(min=1), default=1, show_default=True, help="Rows in a leaf.")
@click.option("--ccp-alpha", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Prune by this cost.")
def tree(path: str, target: str, task: str, **params: Any) -> None:
    """Grow a CART tree on a CSV, Parquet or Arrow file and print it."""
    import pyarrow as pa

    from spinney import CARTClassifier, CARTRegressor, read_table

    table = read_table(path)
    if target not in table.column_names:
        raise Problem(f"no column {target!r} in {path}; columns: {', '.join(map(str, table.column_names))}")
    if table.column_names.count(target) > 1:
        raise Problem(f"{path} has more than one column {target!r}; rename or remove all but one")
    y = table[target]
    if pa.types.is_dictionary(y.type):
        y = y.cast(y.type.value_type)
    if y.null_count:
        raise Problem(f"column {target!r} has {y.null_count} missing values; remove those rows first")
    is_regression = _looks_continuous(y) if task == "auto" else task == "regression"
    settings = {name: value for name, value in params.items() if value is not None}
    model = (CARTRegressor if is_regression else CARTClassifier)(**settings)
    model.fit(table.drop_columns([target]), y.to_numpy())
    kind = "regression" if is_regression else "classification"
    click.echo(model.tree_.to_text().rstrip())
    n_features = table.num_columns - 1
    click.echo(f"{kind} of {target!r}: {table.num_rows} rows, {n_features} features, {model.get_n_leaves()} leaves")


def _looks_continuous(column: pa.ChunkedArray) -> bool:
    """Whether a target is to be averaged rather than counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type) and pc.any(pc.not_equal(column, pc.floor(column))).as_py():
        return True
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    n_distinct = pc.count_distinct(column).as_py()
    return bool(is_number and (n_distinct > 20 or 2 * n_distinct > len(column)))


@main.command()
def warmup() -> None:
    """Compile the kernels now, so that no later fit waits."""
    from spinney import _jit
    from spinney import warmup as compile_kernels

    compile_kernels()
    place = _jit.cache_directory() or "memory only: no cache directory is writable"
    click.echo(f"kernels are compiled; kept in {place}")


@main.command()
def datasets() -> None:
    """List the embedded tables."""
    from spinney import datasets as tables

    for name in tables.names():
        about = tables.source(name)
        click.echo(f"{name:<20} {about.rows:>6} rows  {about.task:<14} target {about.target:<14} {about.origin}")
