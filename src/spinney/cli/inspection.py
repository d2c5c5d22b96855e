"""`spinney inspect`: what a model file holds. Trees of one forest are read without scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spinney.cli.methods import TASKS
from spinney.cli.output import json_option, print_json, print_lines, print_pairs, print_table, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.model.io import ModelFile
    from spinney.table.schema import Schema

MOST_LISTED = 20  # features or classes


class ModelFacts(NamedTuple):
    """What is known of a model without fitting or predicting anything."""

    method: str
    classes: list[Any] | None  # of several outputs a list for each; None for numbers
    schema: Schema | None  # None where its members know it
    names: list[str]  # of the features
    importances: NDArray[Any] | None
    trees: Any  # a forest, or a list of trees; None where the members have none
    parameters: dict[str, Any]
    changed: list[str]  # parameters that are not at their defaults
    rounds: int | None = None
    oob_score: float | None = None
    pruning: str | None = None


@click.command()
@click.argument("model", type=click.Path())
@click.option("--all", "is_all", is_flag=True, help=f"List every feature, not the first {MOST_LISTED} by importance.")
@json_option
def inspect(model: str, is_all: bool, as_json: bool) -> None:
    """Show what is in a MODEL file.

    Its method, parameters, columns, importances, size and versions; of a model that `spinney train` wrote also the
    target, the number of training rows and the hash of their file, as `sha256sum` gives it.
    """
    from spinney.model.container import read
    from spinney.model.io import ModelFile, read_training
    from spinney.model.state import KINDS

    container = read(model)
    file = ModelFile(model, container, KINDS)
    found = ask_estimator(model) if file.predictor is None else file.trust(lambda: ask_file(file))
    told, features = read_training(container.text), list(describe_features(found))
    facts: dict[str, Any] = {
        "method": found.method,
        "task": TASKS.get(found.method, "regression" if found.classes is None else "classification"),
        "features": len(features),
        **count_parts(found.trees, found.classes),
        "rounds that predict": found.rounds,
        "out-of-bag score": found.oob_score,
        "bytes": Path(model).stat().st_size,
        "target": told.get("target"),
        "training rows": told.get("rows"),
        "training data": None if "sha256" not in told else f"sha256 {told['sha256']}",
        "saved by": f"spinney {container.text['library']}",
        "file of": find_day(model),
        "format": container.text["version"],
    }
    if as_json:
        names = {name.replace(" ", "_").replace("-", "_"): value for name, value in facts.items()}
        print_json({**names, "parameters": found.parameters, "classes": found.classes, "features": features})
        return
    if found.classes is not None:
        facts["classes"] = tell_classes(found.classes)
    told_parameters = f"{', '.join(found.changed)}; others at their defaults" if found.changed else "defaults"
    facts["parameters"] = "not in the file, which holds a predictor alone" if file.is_alone else told_parameters
    if found.pruning is not None:
        facts["pruning"] = found.pruning
    print_pairs(facts.items())
    print_features(features, is_all=is_all)


def find_day(path: str) -> str:
    """The day on which a file was written; the model itself has none, so that equal models are equal files."""
    import datetime as dt

    return dt.datetime.fromtimestamp(Path(path).stat().st_mtime, tz=dt.UTC).date().isoformat()


# --- of a file ----------------------------------------------------------------------------------------------------


def ask_file(file: ModelFile) -> ModelFacts:
    """The facts of a model that is trees of one forest: what predicts is read, the rest of the file is looked at."""
    predictor: Any = file.predictor
    schema = predictor.schema
    facts = ModelFacts(
        method=file.method,
        classes=None if predictor.classes is None else predictor.classes.tolist(),
        schema=schema,
        names=list(schema.names or [f"x{j}" for j in range(schema.n_features)]),
        importances=predictor.feature_importances,
        trees=list_trees(predictor),
        parameters={},
        changed=[],
    )
    if file.is_alone:
        return facts._replace(rounds=getattr(predictor, "n_rounds", None))
    stored = file.content["estimator"]
    fitted = dict(stored["fitted"]["items"])
    return facts._replace(
        parameters=read_parameters(stored),
        changed=tell_changes(stored),
        rounds=fitted.get("best_iteration_"),
        oob_score=read_stored(fitted.get("oob_score_")),
        pruning=tell_pruning(fitted.get("pruning_")),
    )


def read_parameters(stored: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stored estimator, by name; a loss of one's own is stored among what was fitted."""
    fitted = dict(stored["fitted"]["items"])
    return {
        name: read_stored(fitted.get(f"_{name}", content) if is_reference(content) else content)
        for name, content in stored["parameters"]["items"]
    }


def is_reference(content: Any) -> bool:
    """Whether a stored value is one that stands elsewhere in the file."""
    return isinstance(content, dict) and content.get("is") == "same"


def read_stored(content: Any) -> Any:
    """A stored parameter: its value, or how it is written where it is an estimator, or a loss of one's own."""
    from spinney.model.container import BrokenFileError
    from spinney.model.state import KINDS, Reader

    if isinstance(content, dict) and set(content) >= {"is", "parameters", "fitted"}:
        return f"{content['is']}({', '.join(tell_changes(content))})"
    try:
        return Reader(KINDS, {}).read(content)
    except BrokenFileError:  # a loss by functions
        return "..." if is_reference(content) else content.get("name", content.get("is"))


def tell_changes(stored: dict[str, Any]) -> list[str]:
    """Parameters that are not at their defaults, as a call has them; all of them where scikit-learn is not there."""
    defaults = find_defaults(stored["is"])
    return [
        f"{name}={value if is_estimator(content) else repr(value)}"
        for (name, content), value in zip(stored["parameters"]["items"], read_parameters(stored).values(), strict=True)
        if name not in defaults or repr(value) != repr(defaults[name])
    ]


def is_estimator(content: Any) -> bool:
    """Whether a stored value is an estimator, which is told by its call."""
    return isinstance(content, dict) and "parameters" in content


def find_defaults(method: str) -> dict[str, Any]:
    """The defaults of an estimator's parameters; none where the classes cannot be imported."""
    import inspect as python

    import spinney

    try:
        cls = getattr(spinney, method)
    except ImportError:
        return {}
    return {name: one.default for name, one in python.signature(cls).parameters.items()}


def tell_pruning(content: Any) -> str | None:
    """The title of a stored report of a pruning."""
    from spinney.model.state import KINDS, Reader
    from spinney.tree.pruning_report import PruningReport

    if content is None:
        return None
    reader = Reader(KINDS, {})
    return PruningReport(**{name: reader.read(part) for name, part in content.items() if name != "is"}).title


# --- of an estimator ----------------------------------------------------------------------------------------------


def ask_estimator(path: str) -> ModelFacts:
    """The facts of a model whose members are no trees of one forest: they are estimators of their own."""
    from sklearn.base import is_classifier

    from spinney import load_model

    estimator = load_model(path)
    schema = getattr(estimator, "_schema", None)
    names = getattr(estimator, "feature_names_in_", None) if schema is None else schema.names
    n_features = estimator.n_features_in_ if schema is None else schema.n_features
    parameters = estimator.get_params(deep=False)
    defaults = find_defaults(type(estimator).__name__)
    return ModelFacts(
        method=type(estimator).__name__,
        classes=list_classes(estimator.classes_) if is_classifier(estimator) else None,
        schema=schema,
        names=[f"x{j}" for j in range(n_features)] if names is None else [str(name) for name in names],
        importances=importances_of(estimator),
        trees=list_trees(estimator),
        parameters=parameters,
        changed=[f"{name}={value!r}" for name, value in parameters.items() if repr(value) != repr(defaults[name])],
        rounds=getattr(estimator, "best_iteration_", None),
        oob_score=getattr(estimator, "oob_score_", None),
    )


def list_classes(classes: Any) -> list[Any]:
    """The classes of an estimator as Python's own values; of several outputs a list for each."""
    return [each.tolist() for each in classes] if isinstance(classes, list) else classes.tolist()


def load_whole(path: str) -> Any:
    """The estimator of a model file, or the predictor where it holds nothing else."""
    from spinney import load_model, load_predictor
    from spinney.model.io import PredictorAloneError

    try:
        return load_model(path)
    except PredictorAloneError:
        return load_predictor(path)


def importances_of(estimator: Any) -> Any:
    """Importances of the features, where the model has some."""
    try:
        return estimator.feature_importances_
    except (AttributeError, ValueError):
        return None


def list_trees(estimator: Any) -> Any:
    """The trees of a model: a forest, or a list of trees; None where its members have none."""
    from spinney.model.base_predictor import Predictor

    if isinstance(estimator, Predictor):
        return estimator.forest if hasattr(estimator, "forest") else [estimator.tree]  # type: ignore[attr-defined]
    from spinney.estimators.base_tree import TreeEstimator

    if isinstance(estimator, TreeEstimator):
        return [estimator.tree_.arrays]
    if hasattr(estimator, "forest_"):  # of bags and AdaBoost only where members are trees of one forest
        return estimator.forest_
    members = list(estimator.estimators_)
    return (
        [member.tree_.arrays for member in members]
        if all(isinstance(member, TreeEstimator) for member in members)
        else None
    )


# --- in words -----------------------------------------------------------------------------------------------------


def tell_classes(classes: list[Any]) -> str:
    """How many classes there are, and the first; of several outputs one after the other."""
    if classes and isinstance(classes[0], list):
        return f"of {len(classes)} outputs, {'; '.join(map(tell_classes, classes))}"
    return f"{len(classes)}: {', '.join(map(str, classes[:MOST_LISTED]))}" + " ..." * (len(classes) > MOST_LISTED)


def count_parts(trees: Any, classes: Any) -> dict[str, int]:
    """Classes, trees, nodes and leaves of a model; classes: a list of them, or None."""
    parts: dict[str, int] = {} if classes is None else {"classes": len(classes)}
    if isinstance(trees, list):
        parts["trees"] = len(trees)
        parts["nodes"] = sum(tree.n_nodes for tree in trees)
        parts["leaves"] = sum(tree.n_leaves for tree in trees)
        if len(trees) == 1:
            parts["depth"] = trees[0].depth
    elif trees is not None:
        parts |= {"trees": len(trees), "nodes": trees.n_nodes, "leaves": int(trees.is_leaf.sum())}
    return parts


def describe_features(found: ModelFacts) -> Iterator[dict[str, Any]]:
    """Name, kind and importance of each feature."""
    for j, name in enumerate(found.names):
        feature: dict[str, Any] = {"name": name}
        if found.schema is not None:
            levels = found.schema.levels[j]
            feature["kind"] = "number" if levels is None else "category"
            feature["levels"] = None if levels is None else list(levels)
        feature["importance"] = None if found.importances is None else float(found.importances[j])
        yield feature


def print_features(features: list[dict[str, Any]], *, is_all: bool) -> None:
    """Print the features, those that matter most first."""
    ranked = sorted(features, key=lambda feature: -(feature["importance"] or 0.0))
    shown = ranked if is_all else ranked[:MOST_LISTED]
    print_lines("")
    rows = []
    for feature in shown:
        levels = feature.get("levels")
        kind = feature.get("kind", "") if levels is None else f"{len(levels)} levels"
        importance = "" if feature["importance"] is None else show(round(feature["importance"], 4))
        rows.append([feature["name"], kind, importance])
    print_table(["feature", "kind", "importance"], rows)
    if len(shown) < len(ranked):
        print_lines(f"... {len(ranked) - len(shown)} more: --all lists them")
