"""`spinney study`: the comparison of all methods."""

from __future__ import annotations

import click


@click.command()
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
