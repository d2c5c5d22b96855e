"""`spinney train`: a model of a table, in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from spinney.cli.clusters import ClusterOptions, dask_option, train_on_cluster, workers_option
from spinney.cli.group import Problem
from spinney.cli.inspection import count_parts, list_trees
from spinney.cli.many_files import is_many
from spinney.cli.methods import METHODS, find_bag_score, find_method, make_estimator, read_settings
from spinney.cli.output import check_new, force_option, json_option, print_json, print_pairs
from spinney.cli.scans import ScanOptions, memory_option, train_scan
from spinney.cli.tables import (
    TrainingTable,
    drop_option,
    find_target,
    keep_option,
    leave_out,
    list_columns,
    open_data,
    show_name,
    split_target,
    target_option,
    task_option,
)

OUT_OF_BAG = "out-of-bag"
checkpoint_option = click.option(
    "--checkpoint", metavar="FOLDER", type=click.Path(), help="Keep the trees so far there while the fit runs."
)
resume_option = click.option(
    "--resume", metavar="FOLDER", type=click.Path(), help="Go on with the fit that has left its checkpoint there."
)
QUICK_ROWS = 5000  # of a table, by which a model without bags is scored
QUICK_FOLDS = 3

method_option = click.option(
    "--method",
    default="forest",
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(METHODS)}; or the name of a class, such as RandomForestClassifier.",
)
set_option = click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the method, such as max_depth=4 or categorical_features='[\"zip\"]'; repeatable.",
)


@click.command()
@click.argument("data", type=click.Path())
@target_option
@method_option
@set_option
@task_option
@drop_option
@keep_option
@memory_option
@dask_option
@workers_option
@checkpoint_option
@resume_option
@click.option("--out", metavar="MODEL", required=True, type=click.Path(), help="The model file to write: model.spn.")
@force_option
@json_option
def train(
    data: str,
    target: str | None,
    method: str,
    settings: tuple[str, ...],
    task: str,
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    memory: str | None,
    dask: str | None,
    workers: int | None,
    checkpoint: str | None,
    resume: str | None,
    out: str,
    force: bool,
    as_json: bool,
) -> None:
    """Fit a method to DATA and save the model.

    DATA is a CSV (also gzipped), Parquet or Arrow file, or the name of an embedded table. A folder of such files, a
    pattern in quotes, a folder that `spinney store` has made, and with --memory any file, is read in blocks of rows:
    it may be larger than memory, and no column is left out but by --drop. With --workers or --dask the workers of a
    cluster read DATA and fit, and the model is that of a fit here, to the byte. The same DATA and options
    give the same model: random_state is 0 unless set. A forest is scored by its out-of-bag rows and keeps their votes,
    with which `predict --interval` works; --set oob_score=false leaves both out. A long fit with --checkpoint FOLDER
    that was interrupted goes on with --resume FOLDER, and gives the model of a fit at once.
    """
    from spinney.estimators.saving import save_estimator
    from spinney.study.column_checks import check_text_columns

    check_new(out, force=force)
    params = add_checkpoint(read_settings(settings), checkpoint, resume)
    blocks = ScanOptions(data, target, method, params, task, drop, memory, out)
    cluster = ClusterOptions(dask, workers)
    if cluster.is_wanted:
        train_on_cluster(blocks, cluster, as_json=as_json)
        return
    if memory is not None or is_many(data):
        train_scan(blocks, as_json=as_json)
        return
    table = open_data(data)
    drop = list_columns(table, drop, "drop")
    target = find_target(table, target, drop)
    named = leave_out(table, target, drop, list_columns(table, keep, "keep"))
    if named:
        reasons = ", ".join(f"{show_name(name)} ({why})" for name, why in named.items())
        click.echo(f"left out: {reasons}; --keep COLUMN brings a column back", err=True)
    training = split_target(table, target, task, (*drop, *named))
    for name, suspicion in check_text_columns(training.X):
        click.echo(f"Warning: column {show_name(name)}: {suspicion}", err=True)
    cls = find_method(method, is_regression=training.is_regression, is_told=task != "auto")
    if isinstance(params.get("estimator"), str):
        base = find_method(params["estimator"], is_regression=training.is_regression, is_told=False)
        params["estimator"] = base()
    estimator = make_estimator(cls, params)
    start = time.perf_counter()
    estimator.fit(training.X, training.y)
    seconds = time.perf_counter() - start
    if "checkpoint" in params:
        estimator.set_params(checkpoint=None)  # fits that score it keep none
    save_estimator(estimator, out, tell_training(data, training))
    facts = {
        "model": out,
        "bytes": Path(out).stat().st_size,
        "method": cls.__name__,
        "target": training.target,
        "rows": training.X.num_rows,
        "features": training.X.num_columns,
        **count_parts(list_trees(estimator), getattr(estimator, "classes_", None)),
        "seconds": round(seconds, 3),
    }
    score = score_training(estimator, training)
    held_out = score if score is not None and score["rows"] == OUT_OF_BAG else score_held_out(estimator, training)
    if held_out is not None and is_worse(held_out, training.X.num_rows):
        click.echo(f"Warning: {tell_weakness(held_out)}", err=True)
    if as_json:
        print_json({**facts, "score": score, "held_out": held_out})
        return
    if score is not None:
        facts[f"{score['measure']}, {score['rows']} rows"] = score["value"]
    print_pairs(facts.items())


def add_checkpoint(params: dict[str, Any], checkpoint: str | None, resume: str | None) -> dict[str, Any]:
    """The settings with the folder of a checkpoint; one to go on from must have one."""
    if resume is not None:
        from spinney.estimators.checkpoints import NAME

        if checkpoint not in (None, resume):
            raise Problem(f"--resume {resume} goes on, and keeps its checkpoint there: leave out --checkpoint")
        if not (Path(resume) / NAME).is_file():
            raise Problem(f"--resume {resume} holds no checkpoint: begin with --checkpoint {resume}")
    folder = checkpoint if resume is None else resume
    return params if folder is None else {**params, "checkpoint": folder}


def tell_training(source: str, training: TrainingTable) -> dict[str, str | int]:
    """What a model file is to tell of its training data: target, rows, and the hash of the file they came in."""
    import hashlib

    told: dict[str, str | int] = {"target": training.target, "rows": training.X.num_rows}
    place = Path(source)
    if place.is_file():
        with place.open("rb") as file:
            told["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
    return told


def score_training(estimator: Any, training: TrainingTable) -> dict[str, Any] | None:
    """The score of a fit, and of which rows: those outside the bags if there are bags, else those it has seen."""
    from sklearn.base import is_classifier

    measure = "accuracy" if is_classifier(estimator) else "R2"
    value = find_bag_score(estimator)
    if value is not None:
        baseline = score_baseline(training, is_classes=measure == "accuracy")
        return {"measure": measure, "rows": OUT_OF_BAG, "value": value, "baseline": baseline}
    if measure == "R2" and training.X.num_rows < 2:
        return None
    return {"measure": measure, "rows": "training", "value": float(estimator.score(training.X, training.y))}


def score_held_out(estimator: Any, training: TrainingTable) -> dict[str, Any] | None:
    """The score of rows that fits did not see, in a few folds of at most so many rows; None where there are too few."""
    import warnings

    import numpy as np
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

    is_classes = is_classifier(estimator)
    rows = np.random.default_rng(0).permutation(training.X.num_rows)[:QUICK_ROWS]
    y = training.y[rows]
    if is_classes:  # a class that a fold lacks is no matter here, and no reason for an error either
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        rows, y = rows[counts[codes] >= QUICK_FOLDS], y[counts[codes] >= QUICK_FOLDS]
    if len(rows) < 2 * QUICK_FOLDS or len(np.unique(y)) < 2:
        return None
    folds = (StratifiedKFold if is_classes else KFold)(QUICK_FOLDS, shuffle=True, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has given them
            predicted = cross_val_predict(clone(estimator), training.X.take(rows), y, cv=folds)
    except ValueError:  # parameters that fit all rows, such as weights by class, and not a part of them
        return None
    measure, baseline = "R2", 0.0
    if is_classes:
        measure, baseline, value = "accuracy", score_baseline(training, is_classes=True), np.mean(predicted == y)
    else:
        value = 1.0 - np.square(y - predicted).sum() / np.square(y - y.mean()).sum()
    return {"measure": measure, "rows": "cross-fitted", "value": float(value), "baseline": baseline}


def score_baseline(training: TrainingTable, *, is_classes: bool) -> float:
    """The score of saying the commonest class, or the mean, of every row."""
    import numpy as np

    if not is_classes:
        return 0.0
    _, counts = np.unique(training.y, return_counts=True)
    return float(counts.max() / counts.sum())


def is_worse(score: dict[str, Any], n_rows: int) -> bool:
    """Whether a score is below that of the baseline, a share of rows by more than its own standard error."""
    share = score["baseline"]
    slack = (share * (1.0 - share) / n_rows) ** 0.5 if score["measure"] == "accuracy" else 0.0
    return bool(score["value"] < share - slack)


def tell_weakness(score: dict[str, Any]) -> str:
    """That a model does worse than no model."""
    simple = "the commonest class" if score["measure"] == "accuracy" else "the mean"
    return (
        f"the model is worse than predicting {simple}: {score['measure']} of {score['rows']} rows "
        f"{score['value']:.3f}, against {score['baseline']:.3f}. `spinney study` shows which method does better"
    )
