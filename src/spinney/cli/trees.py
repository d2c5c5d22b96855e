"""`spinney tree`, `spinney trace` and `spinney prune`: single trees, to be read and pruned."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.group import Problem
from spinney.cli.inspection import list_trees, load_whole
from spinney.cli.methods import find_method, read_settings
from spinney.cli.models import set_option
from spinney.cli.output import check_new, force_option, json_option, print_json, print_lines
from spinney.cli.tables import TrainingTable, drop_option, open_data, split_target, target_option, task_option

if TYPE_CHECKING:
    from collections.abc import Callable

SINGLE = ("cart", "id3", "c45")
FORMS: dict[str, Callable[[Any, int | None, bool], str]] = {
    "text": lambda tree, depth, numbers: tree.to_text(depth, numbers=numbers),
    "rules": lambda tree, _depth, _numbers: str(tree.to_rules()),
    "svg": lambda tree, depth, _numbers: tree.to_svg(max_depth=depth),
    "dot": lambda tree, depth, _numbers: tree.to_dot(max_depth=depth),
    "mermaid": lambda tree, depth, _numbers: tree.to_mermaid(max_depth=depth),
}
SUFFIXES = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".txt": "text"}

single_option = click.option(
    "--method", type=click.Choice(SINGLE), default="cart", show_default=True, help="How the tree is grown."
)


# --- tree ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("source", type=click.Path())
@target_option
@task_option
@drop_option
@single_option
@click.option("--criterion", help="How a split is judged: gini, entropy, ...; default: that of the method.")
@click.option("--max-depth", type=click.IntRange(min=1), help="Most tests from the root to a leaf.")
@click.option("--max-leaf-nodes", type=click.IntRange(min=2), help="Grow best first, to this many leaves.")
@click.option("--min-samples-leaf", type=click.IntRange(min=1), help="Fewest rows of a leaf.")
@click.option("--ccp-alpha", type=click.FloatRange(min=0), help="Cost-complexity pruning with this cost per leaf.")
@set_option
@click.option("--tree", "number", type=click.IntRange(min=0), help="Which tree of an ensemble; the first is 0.")
@click.option("--text", "form", flag_value="text", help="As text; this is the default.")
@click.option("--rules", "form", flag_value="rules", help="As if-then rules, one for each leaf.")
@click.option("--svg", "form", flag_value="svg", help="As an SVG picture, for a browser.")
@click.option("--dot", "form", flag_value="dot", help="In the language of Graphviz.")
@click.option("--mermaid", "form", flag_value="mermaid", help="In the language of Mermaid.")
@click.option("--show-depth", type=click.IntRange(min=0), help="Show no node deeper than this.")
@click.option("--numbers", is_flag=True, help="Show the number of each node, in text.")
@click.option("--out", metavar="FILE", type=click.Path(), help="Write a file instead; its suffix decides the form.")
@force_option
@json_option
def tree(
    source: str,
    target: str | None,
    task: str,
    drop: tuple[str, ...],
    method: str,
    settings: tuple[str, ...],
    number: int | None,
    form: str | None,
    show_depth: int | None,
    numbers: bool,
    out: str | None,
    force: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Show a tree: one grown on DATA, or one of a MODEL file.

    SOURCE is a CSV, Parquet or Arrow file, the name of an embedded table, or a model file (.spn).
    """
    if as_json and (form is not None or out is not None or numbers):
        raise Problem("--json goes to stdout, with all numbers: it is for no other form and no --out")
    if out is not None:
        check_new(out, force=force)
        form = form or next((kind for suffix, kind in SUFFIXES.items() if out.lower().endswith(suffix)), None)
    params = {name: value for name, value in limits.items() if value is not None} | read_settings(settings)
    if source.lower().endswith(".spn"):
        if params or target or drop:
            raise Problem(f"{source} is a model, grown already: --target, --drop and parameters are for DATA")
        shown, note = take_tree(source, number)
    else:
        if number:
            raise Problem("--tree is for models of many trees, and one tree is grown on DATA")
        training = split_target(open_data(source), target, task, drop)
        shown, note = grow_tree(training, method, params, is_told=task != "auto")
    if as_json:
        from spinney.cli.tree_json import describe_tree

        print_json({"about": note, **describe_tree(shown, show_depth)})
        return
    text = FORMS[form or "text"](shown, show_depth, numbers).rstrip() + "\n"
    if out is not None:
        from spinney._files import replacing

        with replacing(out) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        return
    print_lines(text)
    if form in {None, "text", "rules"}:
        print_lines(note)


def grow_tree(training: TrainingTable, method: str, params: dict[str, Any], *, is_told: bool) -> tuple[Any, str]:
    """A tree, and a line about it."""
    from spinney.reading.wording import count

    model = fit_single(training, method, params, is_told=is_told)
    kind = "regression" if training.is_regression else "classification"
    n_rows, n_features = training.X.num_rows, training.X.num_columns
    parts = (count(n_rows, "row"), count(n_features, "feature"), count(model.get_n_leaves(), "leaf"))
    return model.tree_.arrays, f"{kind} of {training.target!r}: {', '.join(parts)}"


def fit_single(training: TrainingTable, method: str, params: dict[str, Any], *, is_told: bool) -> Any:
    """A fitted estimator of one tree."""
    cls = find_method(method, is_regression=training.is_regression, is_told=is_told)
    return cls(**params).fit(training.X, training.y)


def take_tree(path: str, number: int | None) -> tuple[Any, str]:
    """A tree of a model, and a line about it."""
    from spinney.reading.wording import count

    estimator = load_whole(path)
    trees = list_trees(estimator)
    kind = type(estimator).__name__
    if trees is None:
        raise Problem(f"the members of this {kind} are no trees")
    at = number or 0
    if at >= len(trees):
        raise Problem(f"--tree {at}: the model has trees 0 to {len(trees) - 1}")
    found = trees[at]
    note = f"{kind}: {count(found.n_leaves, 'leaf')}"
    return found, note if len(trees) == 1 else f"{note} in tree {at} of {len(trees)}"


# --- trace --------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("data", type=click.Path(), default="play_tennis")
@target_option
@task_option
@drop_option
@click.option(
    "--method", type=click.Choice(SINGLE), default="id3", show_default=True, help="The method whose steps are shown."
)
@set_option
@click.option("--node", type=click.IntRange(min=0), help="One node alone; the root is 0.")
@click.option("--max-depth", type=click.IntRange(min=0), help="Nodes down to this depth.")
@click.option(
    "--cuts/--no-cuts", default=None, help="All thresholds of numbers, or the best alone; default: all if few."
)
@json_option
def trace(
    data: str,
    target: str | None,
    task: str,
    drop: tuple[str, ...],
    method: str,
    settings: tuple[str, ...],
    node: int | None,
    max_depth: int | None,
    cuts: bool | None,
    as_json: bool,
) -> None:
    """Show why a tree splits as it does, node by node.

    Every test that a node could have, with its figures, and why one won. DATA is a file or the name of an embedded
    table; without it the weather table of the lectures.
    """
    import spinney

    training = split_target(open_data(data), target, task, drop)
    model = fit_single(training, method, read_settings(settings), is_told=task != "auto")
    found = spinney.trace(model, training.X, training.y)
    if as_json:
        columns = found.to_columns()
        names = list(columns)
        print_json([dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)])
        return
    if sys.stdout.isatty():
        found.show(node=node, max_depth=max_depth, cuts=cuts)
    else:
        print_lines(found.to_text(node=node, max_depth=max_depth, cuts=cuts))
    if node is None:
        print_lines("", model.tree_.to_text(max_depth, numbers=True))


# --- prune --------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@click.option(
    "--method",
    type=click.Choice(["cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge"]),
    required=True,
    help="How branches are judged. pessimistic: classes only; reduced_error: by rows that did not grow the tree.",
)
@click.option(
    "--target", metavar="COLUMN", help="The column of true values in DATA; by default the one that is no feature."
)
@click.option(
    "--ccp-alpha", metavar="NUMBER", help="cost_complexity: the cost of a leaf; cv: by cross-validation on DATA."
)
@click.option("--ccp-risk", type=click.Choice(["impurity", "error"]), help="cost_complexity: the risk of a leaf.")
@click.option("--confidence", type=float, help="pessimistic: the lower, the more is pruned; J48 has 0.25.")
@click.option("--raising/--no-raising", default=None, help="pessimistic: whether a branch may take its parent's place.")
@click.option("--min-gain", type=float, help="min_gain: splits of a smaller gain are removed.")
@click.option("--out", metavar="MODEL", required=True, type=click.Path(), help="The model file to write.")
@force_option
@json_option
def prune(
    model: str,
    data: str | None,
    method: str,
    target: str | None,
    out: str,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Prune the tree of a MODEL file, and save it as another.

    DATA: for reduced_error rows that did not grow the tree; the training rows for --ccp-alpha cv and for raising.
    """
    from spinney import load_model
    from spinney.estimators.base_tree import TreeEstimator

    check_new(out, force=force)
    estimator = load_model(model)
    if not isinstance(estimator, TreeEstimator):
        raise Problem(f"{model} holds {type(estimator).__name__}, and single trees alone are pruned: cart, id3, c45")
    options = {name: value for name, value in given.items() if value is not None}
    if "ccp_alpha" in options:
        options["ccp_alpha"] = read_alpha(options["ccp_alpha"])
    X = y = None
    if data is not None:
        X, y = read_rows(model, data, target)
    try:
        pruned = estimator.prune(method, X, y, **options)
    except ValueError as error:  # in the words of this command
        raise Problem(str(error).replace("needs X and y", "needs DATA")) from error
    pruned.save_model(out)
    if as_json:
        report = pruned.pruning_
        pairs = {name: getattr(report, name) for name in ("n_leaves", "depth", "error")}
        parts = {name: dict(zip(("before", "after"), pair, strict=True)) for name, pair in pairs.items()}
        print_json(
            {"model": out, "method": report.method, "options": report.options, **parts, "rows": report.judged_on}
        )
    else:
        print_lines(str(pruned.pruning_))


def read_alpha(text: str) -> float | str:
    """A number, or "cv"."""
    try:
        return "cv" if text == "cv" else float(text)
    except ValueError:
        raise Problem(f"--ccp-alpha {text!r}: give a number, or cv") from None


def read_rows(model: str, data: str, target: str | None) -> tuple[Any, Any]:
    """All rows of a file as a model reads them, and the true values."""
    import numpy as np
    import pyarrow as pa

    from spinney.cli.predictions import open_model, read_pairs

    _, _, pairs = read_pairs(open_model(model), data, target)
    parts, truth = zip(*pairs, strict=True)
    X = pa.concat_tables(parts).unify_dictionaries() if isinstance(parts[0], pa.Table) else np.concatenate(parts)
    return X, np.concatenate(truth)
