"""Methods by the names that people give them, and their parameters by `--set`."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
from typing import Any

from spinney.cli.group import Problem

METHODS = {  # the short name: the stem of the classes, and what else it may be called
    "cart": ("CART", ("tree", "decisiontree")),
    "id3": ("ID3", ()),
    "c45": ("C45", ("j48",)),
    "bagging": ("Bagging", ()),
    "forest": ("RandomForest", ("rf",)),
    "extra-trees": ("ExtraTrees", ("extratree", "et")),
    "adaboost": ("AdaBoost", ()),
    "boosting": ("GradientBoosting", ("gbm", "gb", "gbdt")),
}
TASKS = {
    "GradientBoostingRanker": "ranking",
    "GradientBoostingSurvival": "survival",
    "RandomForestSurvival": "survival",
}  # neither classes nor numbers
WORDS = {"true": True, "false": False, "none": None, "null": None}


def find_method(name: str, *, is_regression: bool, is_told: bool) -> Any:
    """The class of a method by its short or full name; is_told: the task was not found but given."""
    import spinney

    key = plain(name)
    task = next((task for task in ("classifier", "regressor") if key.endswith(task)), None)
    known = {alias: stem for short, (stem, more) in METHODS.items() for alias in (plain(short), plain(stem), *more)}
    stem = known.get(key.removesuffix(task or ""))
    if stem is None:
        stems = tuple(stem for stem, _ in METHODS.values())  # stacks are not among them: they need members
        classes = (one for one in spinney.__all__ if one.endswith(("Classifier", "Regressor")))
        names = [*METHODS, *(one for one in classes if one.startswith(stems))]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise Problem(f"--method {name!r} is not known. {hint}There are: {', '.join(METHODS)}")
    wanted = "regressor" if is_regression else "classifier"
    if task is not None and task != wanted and is_told:
        raise Problem(f"--method {name!r} is not for --task {'regression' if is_regression else 'classification'}")
    cls = getattr(spinney, stem + (task or wanted).capitalize(), None)
    if cls is None:
        raise Problem(
            f"{stem} predicts classes only, and the target is numbers: use cart, or --task classification "
            "if the numbers are names of classes"
        )
    return cls


def plain(name: str) -> str:
    """A name without signs and capitals."""
    return "".join(c for c in name.lower() if c.isalnum())


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """Parameters by name, from `name=value`."""
    params: dict[str, Any] = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name:
            raise Problem(f"--set {setting!r}: give it as name=value, for example max_depth=4")
        if name in params:
            raise Problem(f"--set {name}: given twice")
        params[name] = read_value(text.strip())
    return params


def read_value(text: str) -> Any:
    """A value as JSON or Python writes it; what is neither is text."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, str | int | float | list | tuple | dict):
            return value
    return text


def make_estimator(cls: Any, params: dict[str, Any]) -> Any:
    """An estimator: reproducible, and a forest with out-of-bag rows that score it, unless the parameters differ."""
    known = inspect.signature(cls).parameters
    params = dict(params)
    if "checkpoint" in params and "checkpoint" not in known:
        raise Problem(f"--checkpoint keeps the trees of an ensemble, and {cls.__name__} keeps none: leave it out")
    if "random_state" in known:
        params.setdefault("random_state", 0)
    if "oob_score" in known and params.get("bootstrap", known["bootstrap"].default):
        params.setdefault("oob_score", True)
    return cls(**params)


def find_bag_score(estimator: Any) -> float | None:
    """Accuracy or R2 of the out-of-bag rows; None without them.

    What boosting calls `oob_score_` is a loss, and a scorer that was named (`--set oob_score=roc_auc`) measures
    something else.
    """
    if getattr(estimator, "oob_score", None) is not True or not hasattr(estimator, "oob_score_"):
        return None
    return float(estimator.oob_score_)
