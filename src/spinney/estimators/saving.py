"""Estimators that can be saved: as model files, which are safe to open, and as pickles, both of the same arrays."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from spinney._warnings import warn
from spinney.ensemble.custom_loss import Custom
from spinney.ensemble.loss_names import make_loss
from spinney.ensemble.losses import Loss
from spinney.estimators.kept import VALUE, is_fitted, is_of, kept_by, kinds_of, take_fitted
from spinney.model.container import BrokenFileError, dump, read
from spinney.model.io import MissingLossError, ModelFile, save
from spinney.model.state import KINDS, Kind, Reader, Unstorable, Writer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray


TEMPORARY = ("trace_",)
"""Fitted attributes that no file holds: a trace is made from the training data again, by `spinney.trace`."""

CUSTOM_LOSS = "CustomLoss"
"""What files call a loss by functions."""

NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)


# --- Checking what was read -----------------------------------------------------------------------------------------


def check_kept(estimator: Any) -> None:
    """Raise `BrokenFileError` unless the fitted attributes of an estimator, just read, go together.

    An estimator without any is as good as new, and passes.
    """
    declared, values = kept_by(type(estimator)), take_fitted(estimator)
    kind = type(estimator).__name__
    for name, value in values.items():
        if not is_of(value, declared[name].types):
            raise BrokenFileError(f"{name!r} of a {kind} cannot be {value!r:.60}")
    if not is_fitted(estimator):
        return
    missing = [name for name, kept in declared.items() if kept.is_needed and name not in values]
    if missing:
        raise BrokenFileError(f"a fitted {kind} has {', '.join(missing)}")
    check_columns(values)
    if "classes_" in values:
        check_all_labels(values["classes_"], values["n_classes_"])
    fault = estimator._find_fault()
    if fault is not None:
        raise BrokenFileError(fault)
    if estimator._has_predictor():
        estimator._make_predictor().check()
    for name, value in values.items():
        check = declared[name].check
        fault = None if check is None else check(value, estimator)
        if fault is not None:
            raise BrokenFileError(f"{name} of a {kind}: {fault}")


def check_columns(values: dict[str, Any]) -> None:
    """Columns have different names, or none; where there is a schema, their number and names are those of it."""
    n_columns, schema, names = values["n_features_in_"], values.get("_schema"), values.get("feature_names_in_")
    if n_columns < 1:
        raise BrokenFileError("a model has columns")
    if names is not None:
        texts = names.tolist() if names.ndim == 1 else []
        if not all(isinstance(text, str) for text in texts) or not len(set(texts)) == len(texts) == n_columns:
            raise BrokenFileError(f"feature_names_in_ must be {n_columns} different names of columns")
    if schema is not None and schema.n_columns != values["n_features_in_"]:
        raise BrokenFileError("n_features_in_ is not that of the schema")
    if schema is not None and (None if names is None else tuple(names.tolist())) != schema.column_names:
        raise BrokenFileError("feature_names_in_ are not those of the schema")


def check_all_labels(classes: Any, n_classes: Any) -> None:
    """The classes of one output, or of each of several."""
    if not isinstance(classes, list):
        check_labels(classes, n_classes)
        return
    is_several = isinstance(n_classes, list) and len(n_classes) == len(classes) > 1
    if not is_several or not all(isinstance(each, np.ndarray) for each in classes):
        raise BrokenFileError("classes_ of several outputs are a list of arrays, n_classes_ a list of their lengths")
    for each, n in zip(classes, n_classes, strict=True):
        check_labels(each, n)


def check_labels(classes: NDArray[Any], n_classes: int) -> None:
    """Classes are a row of texts, or of numbers, each less than the next: codes of rows are positions among them."""
    labels = classes.tolist() if classes.ndim == 1 else []
    is_number = bool(labels) and all(isinstance(label, NUMBER) and math.isfinite(label) for label in labels)
    is_text = bool(labels) and any(all(isinstance(label, kind) for label in labels) for kind in (str, bytes))
    if not (is_number or is_text) or not all(a < b for a, b in pairwise(labels)):
        raise BrokenFileError("classes_ must be a row of texts or of numbers, different and ascending")
    if n_classes != len(labels):
        raise BrokenFileError(f"n_classes_={n_classes} is not the number of classes_, {len(labels)}")


# --- Files and pickles ---------------------------------------------------------------------------------------------


def save_estimator(estimator: Any, path: str | os.PathLike[str], training: dict[str, str | int] | None = None) -> None:
    """Write a fitted estimator to a model file; see `Estimator.save_model`, and `model.io.TOLD` for `training`."""
    kind = type(estimator).__name__
    if type(estimator) not in estimator_names():
        raise TypeError(f"{kind} is not one of Spinney's estimators: only these can be saved; pickle keeps others")
    kinds = kinds_of_files(named_losses({}))
    try:
        predictor = estimator._make_predictor() if estimator._has_predictor() else None
        save(path, kind, predictor, estimator, kinds, training)
    except BrokenFileError as error:
        raise ValueError(f"save_model: no file is written, for it could not be loaded again: {error}") from None
    except Unstorable as error:
        raise ValueError(
            f"save_model cannot store this {kind}: {error}. A model file holds trees and numbers, no code; "
            "pickle keeps what it can import."
        ) from None


def to_pickle(estimator: Any) -> dict[str, Any]:
    """The state of an estimator: text and arrays, as in a model file, and beside them what a file could not hold."""
    from spinney import __version__

    foreign: list[Any] = []
    writer = Writer(kinds_of_pickles(type(estimator)), foreign)
    others = {name: value for name, value in vars(estimator).items() if name != VALUE}
    content = writer.write({**others, **take_fitted(estimator)}, "")
    return {
        "version": __version__,
        "content": dump(content).decode(),
        "arrays": writer.all_arrays(),
        "foreign": foreign,
    }


def from_pickle(estimator: Any, state: dict[str, Any]) -> None:
    """Restore the attributes of an estimator from its state, checked as those of a model file are.

    A class of a user's may have a `__getstate__` of its own, which gives the attributes as they are.
    """
    from spinney import __version__

    if state.keys().isdisjoint(("version", "content", "arrays", "foreign")):
        vars(estimator).update(state)
        estimator._check_fitted()
        return
    if state["version"] != __version__:
        warn(
            InconsistentVersionWarning(
                estimator_name=type(estimator).__name__,
                current_sklearn_version=__version__,
                original_sklearn_version=state["version"],
            )
        )
    reader = Reader(kinds_of_pickles(type(estimator)), state["arrays"], state["foreign"])
    values = reader.read(json.loads(state["content"]))
    kept = {name: value for name, value in values.items() if name in kept_by(type(estimator))}
    vars(estimator).update({name: value for name, value in values.items() if name not in kept})
    estimator._set_fitted(kept)
    estimator._check_fitted()


# --- Estimators as values ------------------------------------------------------------------------------------------


@cache
def estimator_names() -> dict[type, str]:
    """The public estimators that can be saved."""
    import spinney

    kinds = "Classifier", "Regressor", "Ranker", "Survival"
    public = {getattr(spinney, name): name for name in spinney.__all__ if name.endswith(kinds)}
    return {cls: name for cls, name in public.items() if kept_by(cls)}


def kinds_of_files(custom: Kind) -> dict[str, Kind]:
    """All that fitted estimators of any class are made of, and they themselves; custom: losses by functions."""
    kinds = {**KINDS, CUSTOM_LOSS: custom}
    for cls, name in estimator_names().items():
        kinds |= kinds_of(cls)
        kinds[name] = Kind(cls, take_estimator, estimator_maker(cls))
    return kinds


def kinds_of_pickles(cls: type) -> dict[str, Kind]:
    """All that a fitted estimator of a class is made of, but for other estimators, which pickle keeps."""
    return {**KINDS, CUSTOM_LOSS: KEPT_LOSS, **kinds_of(cls)}


def take_estimator(estimator: Any) -> dict[str, Any]:
    """Parameters, and fitted attributes."""
    parameters = estimator.get_params(deep=False)
    for name, value in parameters.items():
        is_splitter = name == "cv" and not isinstance(value, int | np.integer | str | None)
        is_drawn = isinstance(value, np.random.RandomState | np.random.Generator)
        if is_drawn or is_splitter or (callable(value) and name == "scoring"):
            warn_not_stored(f"{name}={value!r:.60}", f"the loaded model has {name}=None")
            parameters[name] = None
    fitted = take_fitted(estimator)
    for name in sorted(vars(estimator).keys() - parameters.keys() - fitted.keys() - {*TEMPORARY, VALUE}):
        warn_not_stored(f"the attribute {name}", "it is none of Spinney's; pickle keeps it")
    if isinstance(parameters.get("loss"), tuple | list):
        parameters["loss"] = fitted.get("_loss", make_loss(parameters["loss"]))
    parameters.pop("checkpoint", None)  # a place on the disk of whoever has fitted it
    return {"parameters": dict(sorted(parameters.items())), "fitted": fitted}


def warn_not_stored(what: str, why: str) -> None:
    """Say what the file will lack."""
    warn(f"{what} is not stored: {why}")


def estimator_maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    """What makes an estimator of its parameters and attributes."""

    def make(parts: dict[str, Any]) -> Any:
        if set(parts) != {"parameters", "fitted"} or not all(isinstance(part, dict) for part in parts.values()):
            raise BrokenFileError("an estimator has parameters and fitted attributes")
        parameters, fitted = parts["parameters"], parts["fitted"]
        if isinstance(parameters.get("loss"), Loss):
            parameters["loss"] = (parameters["loss"].gradient, parameters["loss"].hessian)
        estimator = cls(**parameters)
        estimator._validate_params()
        for name, value in fitted.items():
            if name not in kept_by(cls) or not is_of(value, kept_by(cls)[name].types):
                raise BrokenFileError(f"{name!r} of a {cls.__name__} cannot be {value!r:.60}")
        estimator._set_fitted(fitted)
        estimator._check_fitted()
        return estimator

    return make


# --- Losses by functions, of which files hold no code ----------------------------------------------------------------


def named_losses(given: dict[str, Any]) -> Kind:
    """Losses by functions, of which a file holds the name of the first.

    given: pairs of functions by name, as the user gives them again; those that are written are added.
    """

    def take(loss: Any) -> dict[str, Any]:
        name = getattr(loss.gradient, "__name__", type(loss.gradient).__name__)
        given[name] = loss.gradient, loss.hessian
        return {"name": name, "n_classes": loss.n_classes}

    def make(parts: dict[str, Any]) -> Any:
        if set(parts) != {"name", "n_classes"} or type(parts["n_classes"]) is not int:
            raise BrokenFileError("a loss by functions has a name and a number of classes")
        name = parts["name"]
        if name not in given:
            raise MissingLossError(
                f"the model was fitted with a loss of your own, {name!r}, and files hold no code: give it again, "
                f"load_model(path, losses={{{name!r}: (gradient, hessian)}})"
            )
        return make_loss(given[name], n_classes=parts["n_classes"])

    return Kind(Custom, take, make)


def check_losses(given: Any) -> dict[str, Any]:
    """Pairs of functions by name."""
    if not isinstance(given, Mapping):
        raise TypeError(f"losses must be a dict, {{name: (gradient, hessian)}}, not {given!r:.80}")
    for name, pair in given.items():
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(map(callable, pair))):
            raise TypeError(f"losses[{name!r}] must be two functions, (gradient, hessian), not {pair!r:.80}")
    return {name: tuple(pair) for name, pair in given.items()}


def restore_loss(parts: dict[str, Any]) -> Any:
    """A loss by functions from its pickled attributes."""
    loss = Custom.__new__(Custom)
    vars(loss).update(parts)
    return loss


KEPT_LOSS = Kind(Custom, Custom.__getstate__, restore_loss)
"""A loss by functions in a pickle, which keeps them."""


def load_model(path: str | os.PathLike[str], *, losses: Mapping[str, Any] | None = None) -> Any:
    """Open a model file.

    Nothing in a file is executed. Whatever it holds, every array is checked before it is used, so that a file of a
    stranger can at worst be refused.

    Parameters
    ----------
    path : path
        As given to `save_model`.
    losses : dict, optional
        Losses of your own that the model was fitted with, by the name of the function of their gradient: a pair of
        functions, gradient and Hessian. Files hold their names only.

    Returns
    -------
    estimator
        As it was fitted: the same predictions to the last bit. Its trees stay in the file, which is mapped into memory,
        so that processes share them.

    Raises
    ------
    OSError
        There is no such file, or it cannot be read.
    BrokenFileError
        A ValueError: the file is no model, damaged, or of a later version.

    Examples
    --------
    >>> import os, tempfile
    >>> from spinney import CARTClassifier, load_model
    >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
    >>> CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"]).save_model(path)
    >>> load_model(path)
    CARTClassifier()
    """
    kinds = kinds_of_files(named_losses(check_losses(losses or {})))
    return ModelFile(path, read(path), kinds).load()
