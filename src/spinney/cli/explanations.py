"""`spinney explain`: why a model answers the rows of a file as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spinney.cli.exports import read_rows_of
from spinney.cli.group import Problem, printable
from spinney.cli.output import check_new, force_option, json_option, print_json, print_lines, print_table

if TYPE_CHECKING:
    from spinney.model.row_explanation import RowExplanation
    from spinney.model.shap_table import ShapValues

MOST_COLUMNS = 20  # that are listed
OF_TWO = " alone; values of the other of two classes have the opposite sign"


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data")
@click.option(
    "--row", metavar="N", type=int, help="One row, counted from 0: its contributions and what would change it."
)
@click.option("--wanted", metavar="CLASS", help="--row: the class that it is to become; by default any other.")
@click.option("--vary", metavar="COLUMN", multiple=True, help="--row: a column that may change; repeatable.")
@click.option("--of", metavar="CLASS", help="The class whose values are listed and written.")
@click.option("--out", metavar="FILE", type=click.Path(), help="Write the SHAP values of all rows to a CSV file.")
@force_option
@json_option
def explain(
    model: str,
    data: str,
    row: int | None,
    wanted: str | None,
    vary: tuple[str, ...],
    of: str | None,
    out: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Tell what each column of DATA added to the answers of a MODEL file: exact SHAP values.

    Without --row the mean size of each column over all rows is listed. With it, that row is told: what each column
    added, the path of a tree in words, and the smallest change that would change the answer.
    """
    import spinney
    from spinney.model.explained_trees import NoSumError

    if row is None and (wanted is not None or vary):
        raise Problem("--wanted and --vary are about one row: give --row N")
    if row is not None and out is not None:
        raise Problem("--out writes the values of all rows: leave --row out")
    if out is not None:
        check_new(out, force=force)
    X = read_rows_of(model, data)
    if row is not None:
        show_row(model, X, row, wanted, vary, as_json=as_json)
        return
    try:
        found = spinney.shap_values(model, X)
    except NoSumError as error:
        raise Problem(str(error)) from error
    found = choose(found, of)
    if out is not None:
        write_csv(found, out)
    show_sizes(found, as_json=as_json)


def show_row(model: str, X: Any, row: int, wanted: str | None, vary: tuple[str, ...], *, as_json: bool) -> None:
    """Tell why one row got its answer."""
    import spinney

    if not 0 <= row < len(X):
        raise Problem(f"--row {row}: the file has rows 0 to {len(X) - 1}")
    predictor = spinney.load_predictor(model)
    goal: Any = None
    if wanted is not None:
        if predictor.classes is None:
            raise Problem("--wanted is a class, and this model predicts numbers")
        classes = {str(name): name for name in predictor.classes.tolist()}
        if wanted not in classes:
            raise Problem(f"--wanted {wanted}: the classes are {', '.join(list(classes)[:20])}")
        goal = classes[wanted]
    one = X.slice(row, 1) if hasattr(X, "slice") else X[row : row + 1]
    found = spinney.explain(predictor, one, wanted=goal, vary=list(vary) or None, X=X)
    if as_json:
        print_json(row_json(found))
    else:
        print_lines(*(printable(line) for line in str(found).splitlines()))


def row_json(found: RowExplanation) -> dict[str, Any]:
    """A row's explanation as plain data."""
    change = found.counterfactual
    return {
        "answer": found.answer,
        "output": found.output,
        "score": found.score,
        "base": found.base,
        "unit": found.unit,
        "contributions": [one._asdict() for one in found.contributions],
        "votes": None if found.votes is None else found.votes._asdict(),
        "path": None if found.path is None else [{"node": step.child, "words": str(step)} for step in found.path.steps],
        "counterfactual": None
        if change is None
        else {
            "changes": [one._asdict() for one in change.changes],
            "answer": change.answer,
            "is_exact": change.is_exact,
        },
    }


def choose(found: ShapValues, of: str | None) -> ShapValues:
    """The values of one class, where one is named."""
    if of is None:
        return found
    outputs = {str(name): name for name in found.outputs}
    if of not in outputs:
        if found.outputs == (None,):
            raise Problem(f"--of {of}: this model predicts numbers, not classes")
        told = f"the outputs are {', '.join(list(outputs)[:20])}"
        raise Problem(f"--of {of}: {told}{OF_TWO if len(outputs) == 1 else ''}")
    return found.of(outputs[of])


def write_csv(found: ShapValues, out: str) -> None:
    """Write values to a file, a row for each row, or for each row and class."""
    import csv
    import io

    from spinney._files import replacing

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    values = found.values if found.values.ndim == 3 else found.values[..., None]
    is_many = found.values.ndim == 3
    writer.writerow([*(["row", "output"] if is_many else ["row"]), *found.names])
    for i, row in enumerate(values.tolist()):
        for k, name in enumerate(found.outputs):
            writer.writerow([*([i, name] if is_many else [i]), *(repr(column[k]) for column in row)])
    with replacing(out) as file:
        file.write(text.getvalue().encode())


def show_sizes(found: ShapValues, *, as_json: bool) -> None:
    """List the mean size of each column."""
    import numpy as np

    size = found.sizes()
    order = np.argsort(-size, kind="stable").tolist()
    if as_json:
        print_json(
            {
                "rows": len(found),
                "outputs": list(found.outputs),
                "base": np.reshape(found.base, -1).tolist(),
                "mean_size": {found.names[j]: float(size[j]) for j in order},
                "largest_difference": found.largest_difference,
            }
        )
        return
    print_table(["column", "mean size"], [[found.names[j], f"{size[j]:.4g}"] for j in order[:MOST_COLUMNS]])
    rest = len(order) - MOST_COLUMNS
    tail = [f"{rest} columns more"] if rest > 0 else []
    print_lines(*tail, f"{len(found)} rows; sums differ from the answers by {found.largest_difference:.1g} at most")
