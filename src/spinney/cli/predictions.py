"""`spinney predict` and `spinney evaluate`: a model and a file of rows, batch by batch."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.group import Problem
from spinney.cli.output import (
    check_new,
    force_option,
    json_option,
    print_json,
    print_lines,
    print_pairs,
    print_table,
    show,
)
from spinney.cli.tables import as_target, join_names, show_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.table.prediction_batches import Batches
    from spinney.table.schema import Schema

MOST_UNKNOWN = 3  # levels that are named
MOST_CLASSES = 12  # of a confusion matrix that is printed


@dataclass(frozen=True)
class LoadedModel:
    """A model that predicts: what `load_predictor` gives, or the estimator where that cannot."""

    model: Any
    names: tuple[str, ...] | None
    n_features: int
    classes: Any  # array (n_classes,); of several outputs a list of such; None for numbers
    schema: Schema | None
    n_numbers: int = 1  # predicted for a row: several quantiles are several, and several outputs

    @property
    def has_text(self) -> bool:
        """Whether the classes are text."""
        return self.classes is not None and self.classes.dtype.kind in "UO" and isinstance(self.classes[0], str)


def open_model(path: str, *, is_whole: bool = False) -> LoadedModel:
    """The model in a file; `is_whole`: the estimator, with all that it can do."""
    from spinney import load_model, load_predictor
    from spinney.model.container import BrokenFileError

    if not is_whole:
        try:
            model = load_predictor(path)
            return LoadedModel(
                model,
                model.schema.column_names,
                model.schema.n_columns,
                model.classes,
                model.schema,
                model.n_numbers,
            )
        except BrokenFileError:
            raise
        except ValueError:  # its members are no trees of one forest
            pass
    from sklearn.base import is_classifier

    estimator = load_model(path)
    names = getattr(estimator, "feature_names_in_", None)
    return LoadedModel(
        estimator,
        None if names is None else tuple(names.tolist()),
        estimator.n_features_in_,
        estimator.classes_ if is_classifier(estimator) else None,
        getattr(estimator, "_schema", None),
        getattr(estimator, "n_outputs_", 1),
    )


def open_rows(path: str, loaded: LoadedModel) -> Batches:
    """A file, several, a store, stdin or an embedded table in batches; whole where the model knows no columns."""
    from pathlib import Path

    from spinney import datasets
    from spinney.cli.many_files import is_many, open_many
    from spinney.cli.stdin import as_file, naming
    from spinney.cli.tables import open_data
    from spinney.table.prediction_batches import Batches, open_batches

    is_embedded = not Path(path).exists() and path in datasets.names()
    if is_embedded or loaded.schema is None:
        table = open_data(path).table
        rows = iter([table] if table.num_rows else [])
        return Batches(table.column_names, is_text=False, rows=rows, n_rows=table.num_rows)
    if is_many(path):
        return open_many(path)
    place = as_file(path)
    with naming(place, path):
        batches = open_batches(place)

    def read() -> Iterator[pa.Table]:
        with naming(place, path):
            yield from batches.rows

    return batches._replace(rows=read())


class Features:
    """How the features of a model are found among the columns of a file."""

    def __init__(self, loaded: LoadedModel, batches: Batches, path: str, target: str | None = None) -> None:
        self.loaded = loaded
        self.is_text = batches.is_text
        self.columns = find_columns(loaded, batches.names, path, target)
        self.n_read = 0
        self.unknown: dict[str, Counter[str]] = {}  # rows by level that the model does not know, by feature

    def take(self, table: pa.Table) -> pa.Table:
        """The features of a batch, as the model wants them."""
        from spinney.table.prediction_batches import convert

        X = table.select(self.columns)
        if self.is_text and self.loaded.schema is not None:
            X = convert(X, self.loaded.schema, self.n_read)
        if self.loaded.schema is not None:
            self.count_unknown(X, self.loaded.schema)
        self.n_read += table.num_rows
        if self.loaded.names is None:  # it was fitted without names: give none
            import numpy as np

            return np.column_stack([column.to_numpy() for column in X.columns])
        return X

    def count_unknown(self, X: pa.Table, schema: Schema) -> None:
        """Count the rows of levels that the model has not seen: it takes them for missing values."""
        import pyarrow.compute as pc

        for j, (k, dates) in enumerate(schema.inputs()):
            levels = schema.levels[k]
            if levels is None or dates is not None:
                continue
            known = set(levels)
            for one in pc.value_counts(X.column(j)).to_pylist():
                if one["values"] is not None and one["values"] not in known:
                    self.unknown.setdefault(X.column_names[j], Counter())[str(one["values"])] += one["counts"]

    def warn_unknown(self) -> None:
        """Say how many rows have unknown levels."""
        for name, found in self.unknown.items():
            rows = found.total()
            shown = join_names([level for level, _ in found.most_common(MOST_UNKNOWN)])
            more = "" if len(found) <= MOST_UNKNOWN else f" and {len(found) - MOST_UNKNOWN} more"
            click.echo(
                f"Warning: column {show_name(name)}: {rows:,} of {self.n_read:,} rows have levels that the model "
                f"does not know, taken for missing: {shown}{more}",
                err=True,
            )


def find_columns(loaded: LoadedModel, names: list[str], path: str, target: str | None = None) -> list[int]:
    """Positions of a model's features in a file: by name, in any order; without names by position."""
    if loaded.names is None:
        rest = [j for j, name in enumerate(names) if name != target]
        if len(rest) != loaded.n_features:
            raise Problem(
                f"the model has {loaded.n_features} features without names, and {path} has {len(rest)} columns"
            )
        return rest
    missing = [name for name in loaded.names if name not in names]
    if missing:
        close = difflib.get_close_matches(missing[0], [name for name in names if name not in loaded.names], n=1)
        hint = f" Is {show_name(close[0])} meant?" if close else ""
        raise Problem(f"{path} lacks columns that the model was fitted on: {join_names(missing)}.{hint}")
    twice = [name for name in loaded.names if names.count(name) > 1]
    if twice:
        raise Problem(f"{path} has more than one column {show_name(twice[0])}; rename or remove all but one")
    return [names.index(name) for name in loaded.names]


# --- predict ------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option(
    "--out", metavar="FILE", type=click.Path(), help="Write CSV, Parquet or Arrow, by the suffix; else CSV to stdout."
)
@click.option("--keep", is_flag=True, help="Write the columns of DATA too, before the predictions.")
@click.option("--probabilities", is_flag=True, help="Write the probability of each class too.")
@click.option(
    "--interval",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="COVERAGE",
    help="Write a prediction interval of this coverage too, such as 0.9; for forests that predict numbers.",
)
@click.option("--name", default="prediction", show_default=True, help="Name of the column of predictions.")
@force_option
def predict(
    model: str,
    data: str,
    out: str | None,
    keep: bool,
    probabilities: bool,
    interval: float | None,
    name: str,
    force: bool,
) -> None:
    """Predict the rows of DATA with a MODEL file.

    DATA is a file, a folder of files, a pattern in quotes or a store. It is read and predicted in batches, however long
    it is. Columns are found by name; those that the model does not know are ignored.
    """
    if out is not None:
        check_new(out, force=force)
    loaded = open_model(model, is_whole=interval is not None)
    outputs = make_outputs(loaded, name, probabilities=probabilities, interval=interval)
    batches = open_rows(data, loaded)
    features = Features(loaded, batches, data)
    kept = list(batches.names) if keep else []
    added = [column for output in outputs for column in output.columns]
    clash = next((column for column in added if column in kept), None)
    if clash is not None:
        raise Problem(f"{data} has a column {show_name(clash)} already: give another --name, or leave out --keep")
    with open_sink(out) as write, count_rows(batches.n_rows, is_shown=out is not None) as count:
        for table in batches.rows:
            X = features.take(table)
            arrays = [array for output in outputs for array in output.predict(X)]
            write(join_columns(table if keep else None, added, arrays))
            count(table.num_rows)
        if not features.n_read:
            raise Problem(f"{data} has no rows")
    features.warn_unknown()


@dataclass(frozen=True)
class Output:
    """Columns of the output, and the function that predicts them for a batch of rows."""

    columns: list[str]
    predict: Callable[[Any], list[NDArray[Any]]]


def make_outputs(loaded: LoadedModel, name: str, *, probabilities: bool, interval: float | None) -> list[Output]:
    """What is to be predicted: numbers or classes, then probabilities or an interval if wanted."""
    model, n_numbers = loaded.model, loaded.n_numbers
    if n_numbers == 1:
        outputs = [Output([name], lambda X: [model.predict(X)])]
    else:
        outputs = [Output([f"{name}_{k + 1}" for k in range(n_numbers)], lambda X: list(model.predict(X).T))]
    if probabilities:
        if loaded.classes is None:
            raise Problem("--probabilities: this model predicts numbers, which have no classes")
        if not hasattr(model, "predict_proba"):
            raise Problem("--probabilities: the members of this model give none")
        stem = "probability" if name == "prediction" else f"{name}_probability"
        if isinstance(loaded.classes, list):
            columns = [f"{stem}_{k + 1}_{one}" for k, each in enumerate(loaded.classes) for one in each.tolist()]
            outputs.append(Output(columns, lambda X: [each for shares in model.predict_proba(X) for each in shares.T]))
        else:
            columns = [f"{stem}_{label}" for label in loaded.classes.tolist()]
            outputs.append(Output(columns, lambda X: list(model.predict_proba(X).T)))
    if interval is not None:
        from spinney.estimators.forest_regressor import ForestRegressor

        if not isinstance(model, ForestRegressor):
            raise Problem(f"--interval: {type(model).__name__} has none; forests that predict numbers have")
        if not hasattr(model, "oob_prediction_"):  # which fit sets with oob_score alone
            raise Problem("--interval: the forest was trained without oob_score, which says how wide intervals must be")
        stem = "" if name == "prediction" else f"{name}_"
        outputs.append(Output([f"{stem}low", f"{stem}high"], lambda X: list(model.predict_interval(X, interval).T)))
    return outputs


def join_columns(kept: pa.Table | None, names: list[str], arrays: list[NDArray[Any]]) -> pa.Table:
    """Kept columns and predictions, side by side."""
    import pyarrow as pa

    predictions = [pa.array(array) for array in arrays]
    if kept is None:
        return pa.table(predictions, names=names)
    return pa.table([*kept.columns, *predictions], names=[*kept.column_names, *names])


@contextlib.contextmanager
def count_rows(n_rows: int | None, *, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """What counts rows, on stderr if that is a terminal; with the time left where their number is known."""
    if not (is_shown and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns: tuple[bars.ProgressColumn, ...]
    if n_rows is None:
        columns = (bars.SpinnerColumn(), bars.TextColumn("{task.completed:,.0f} rows"), bars.TimeElapsedColumn())
    else:
        count = bars.TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows")
        columns = (bars.BarColumn(), count, bars.TimeRemainingColumn())
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=n_rows)
        yield lambda n: progress.advance(task, n)


@contextlib.contextmanager
def open_sink(out: str | None) -> Iterator[Callable[[pa.Table], None]]:
    """What writes batches: into a file that is whole at the end or not there, or to stdout."""
    from spinney._files import replacing
    from spinney.cli.writers import Sink, kind_of

    kind = "csv" if out is None else kind_of(out)
    if out is None:
        if sys.stdout is None:  # closed: `>&-`
            raise Problem("there is no stdout to write to: give --out")
        with Sink(sys.stdout.buffer, kind) as sink:
            yield sink.write
        return
    with replacing(out) as file, Sink(file, kind) as sink:
        yield sink.write


# --- evaluate -----------------------------------------------------------------------------------------------------


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--target", metavar="COLUMN", help="The column of true values; by default the one that is no feature.")
@json_option
def evaluate(model: str, data: str, target: str | None, as_json: bool) -> None:
    """Score a MODEL file on rows with known true values.

    DATA is a file, a folder of files, a pattern in quotes or a store, read in batches. Its rows should not be those
    that the model was trained on.
    """
    import numpy as np

    from spinney.cli.scores import score_classes, score_numbers

    loaded = open_model(model)
    refuse_unscored(model, loaded)
    target, features, pairs = read_pairs(loaded, data, target)
    truth, predictions = [], []
    for X, y in pairs:
        truth.append(y)
        predictions.append(loaded.model.predict(X) if loaded.classes is None else predict_classes(loaded, X))
    y, predicted = np.concatenate(truth), np.concatenate(predictions)
    features.warn_unknown()
    unknown = {"unknown_levels": {name: found.total() for name, found in features.unknown.items()}}
    if loaded.classes is None:
        scores = {"target": target, "rows": len(y), **score_numbers(y, predicted)}
        if as_json:
            print_json(scores | unknown)
        else:
            print_pairs((name.replace("_", " "), value) for name, value in scores.items())
        return
    codes = find_codes(loaded.classes, y, target)
    report = score_classes(codes, predicted[:, 0].astype(np.int64), predicted[:, 1:], loaded.classes.tolist())
    if as_json:
        print_json({"target": target, "rows": len(y), **report, **unknown})
        return
    print_pairs(
        [("target", target), ("rows", len(y)), *((k.replace("_", " "), v) for k, v in report["scores"].items())]
    )
    print_lines("")
    print_classes(report)


def refuse_unscored(path: str, loaded: LoadedModel) -> None:
    """Refuse models whose answers are not what a column of true values could be compared with."""
    from spinney.cli.methods import TASKS
    from spinney.model.container import read
    from spinney.model.io import ModelFile
    from spinney.model.state import KINDS

    if loaded.n_numbers > 1:
        raise Problem(
            f"this model gives {loaded.n_numbers} answers for a row, several quantiles or outputs, and evaluate scores "
            "one column: predict, and compare"
        )
    method = None if loaded.classes is not None else ModelFile(path, read(path), KINDS).method
    if method in TASKS:
        raise Problem(
            f"evaluate has scores of classes and numbers, and none of {TASKS[method]}: use load_model({path!r}) in "
            "Python, and its score"
        )


def read_pairs(
    loaded: LoadedModel, path: str, target: str | None
) -> tuple[str, Features, Iterator[tuple[Any, NDArray[Any]]]]:
    """The column of true values, how features are found, and features and true values of each batch."""
    batches = open_rows(path, loaded)
    if loaded.names is not None:
        find_columns(loaded, batches.names, path)
    found = find_truth(loaded, batches.names, path, target)
    features = Features(loaded, batches, path, found)
    at = batches.names.index(found)

    def read() -> Iterator[tuple[Any, NDArray[Any]]]:
        for table in batches.rows:
            y = read_truth(loaded, table.column(at), found, batches, features.n_read)
            yield features.take(table), y
        if not features.n_read:
            raise Problem(f"{path} has no rows")

    return found, features, read()


def predict_classes(loaded: LoadedModel, X: Any) -> NDArray[Any]:
    """Code of the class, then the probabilities, of each row."""
    import numpy as np

    model = loaded.model
    assert loaded.classes is not None
    code = np.searchsorted(loaded.classes, model.predict(X))
    return np.column_stack([code, model.predict_proba(X)])


def find_truth(loaded: LoadedModel, names: list[str], path: str, target: str | None) -> str:
    """The column of true values."""
    if target is None and loaded.names is None:
        raise Problem(f"--target is missing: the model has no names of columns. {path} has {join_names(names)}")
    if target is None:
        rest = [name for name in names if name not in (loaded.names or ())]
        if len(rest) != 1:
            found = f"beside the features it has {join_names(rest)}" if rest else "it has no column beside the features"
            raise Problem(f"--target is missing: which column of {path} has the true values? {found}")
        return rest[0]
    if target not in names:
        close = difflib.get_close_matches(target, names, n=1)
        hint = f"Did you mean {show_name(close[0])}?" if close else f"Its columns: {join_names(names)}"
        raise Problem(f"no column {show_name(target)} in {path}. {hint}")
    if names.count(target) > 1:
        raise Problem(f"{path} has more than one column {show_name(target)}; rename or remove all but one")
    if loaded.names is not None and target in loaded.names:
        raise Problem(f"--target {show_name(target)} is a feature of the model")
    return target


def read_truth(
    loaded: LoadedModel, column: pa.ChunkedArray, target: str, batches: Batches, first_row: int
) -> NDArray[Any]:
    """The true values of a batch, as NumPy has them."""
    from spinney.table.prediction_batches import as_category, as_numbers

    if batches.is_text:
        column = as_category(column) if loaded.has_text else as_numbers(column, show_name(target), first_row)
    return as_target(column, target).to_numpy()


def find_codes(classes: NDArray[Any], y: NDArray[Any], target: str) -> NDArray[Any]:
    """Positions of labels among the classes; a label that the model does not know is named.

    Where one file has numbers and another the same in text, they are the same: kinds are a matter of formats.
    """
    import numpy as np

    places = {label: k for k, label in enumerate(classes.tolist())}
    texts = {str(label): k for label, k in places.items()}
    codes = np.array([places.get(label, texts.get(str(label), -1)) for label in y.tolist()], np.int64)
    if (codes < 0).any():
        label = y[int(np.argmax(codes < 0))]
        shown = join_names([str(label) for label in classes.tolist()])
        raise Problem(
            f"column {show_name(target)} holds {label!r}, which the model does not know; its classes: {shown}"
        )
    return codes


def print_classes(report: dict[str, Any]) -> None:
    """Print the scores of each class, and the confusion matrix."""
    rows = [
        [str(one["class"]), *(show(one[name]) for name in ("rows", "precision", "recall", "f1"))]
        for one in report["classes"]
    ]
    print_table(["class", "rows", "precision", "recall", "f1"], rows)
    if len(rows) <= MOST_CLASSES:
        print_lines("", "true class (rows) by predicted class")
        labels = [row[0] for row in rows]
        print_table(
            ["", *labels], [[a, *map(show, counts)] for a, counts in zip(labels, report["confusion"], strict=True)]
        )
