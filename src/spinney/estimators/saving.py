"""Estimators that can be saved: as model files, which are safe to open, and as pickles, both of the same arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from spinney._warnings import warn
from spinney.ensemble import losses
from spinney.ensemble.losses import Loss
from spinney.ensemble.sampling import Draw
from spinney.ensemble.subspaces import Subspaces
from spinney.estimators.base_estimators import Bags, Template
from spinney.model.container import BrokenFileError, dump, read
from spinney.model.io import MissingLossError, ModelFile, save
from spinney.model.state import KINDS, Kind, Reader, Unstorable, Writer, of_dataclass
from spinney.table.schema import Schema
from spinney.tree.forest import Forest
from spinney.tree.pruning_report import PruningReport
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.model.predictor import Predictor

NOT_STORED = ("trace_",)
"""A trace is made from the training data again: `spinney.trace`."""

LOSSES = (
    "SquaredError", "AbsoluteError", "Quantile", "Huber", "Poisson", "Gamma", "Tweedie", "LogLoss", "Exponential",
    "Softmax",
)  # fmt: skip

NUMBER = (bool, int, float, np.bool_, np.integer, np.floating)
FITTED: dict[str, Any] = {  # attributes, and the types of what they may hold
    "n_features_in_": int, "feature_names_in_": np.ndarray, "n_outputs_": int, "classes_": np.ndarray,
    "n_classes_": int, "max_features_": int, "_schema": Schema, "tree_": Tree, "forest_": Forest,
    "pruning_": PruningReport | None, "ccp_alpha_": float, "cv_results_": dict,
    "_draw": Draw, "_seed": int, "_fingerprint": str, "_weight_mark": str, "_honest_fraction": float | None,
    "_shift": int, "_oob_votes": np.ndarray, "_oob_n_votes": np.ndarray, "_oob_is_hard": bool,
    "oob_curve_": np.ndarray, "oob_score_": float, "oob_decision_function_": np.ndarray, "oob_prediction_": np.ndarray,
    "_y": np.ndarray, "_weight": np.ndarray | None,
    "estimator_": BaseEstimator, "_base": BaseEstimator, "_bags": Bags, "_is_soft": bool, "_members": list,
    "_templates": list, "_template": Template,
    "_start": np.ndarray, "_exponent": int, "_loss": Loss, "_marks": dict, "_class_factors": np.ndarray | None,
    "init_": np.ndarray, "n_trees_per_iteration_": int, "n_estimators_": int, "n_iter_": int, "best_iteration_": int,
    "evals_result_": dict, "train_score_": np.ndarray, "validation_score_": np.ndarray,
    "estimator_weights_": np.ndarray, "estimator_errors_": np.ndarray, "_unit": float, "validation_scores_": np.ndarray,
}  # fmt: skip


class Saved:
    """Methods of estimators that can be saved.

    The arrays of a model are written as they are; whoever reads them, from a file or from a pickle, checks them before
    a kernel sees them.
    """

    _learnt: ClassVar[tuple[str, ...]]  # attributes without which none can predict

    def _make_predictor(self) -> Predictor:
        """What predicts; of a fitted estimator whose trees are of one forest."""
        raise NotImplementedError

    def _has_predictor(self) -> bool:
        """Whether the model is trees of one forest."""
        return hasattr(self, "tree_") or hasattr(self, "forest_")

    def _is_learnt(self) -> bool:
        """Whether it has all that predicting asks for."""
        has_all = all(hasattr(self, name) for name in ("n_features_in_", *self._learnt))
        return has_all and (self._has_predictor() or hasattr(self, "_members"))

    def predictor(self) -> Predictor:
        """What predicts, without the rest: for one row in microseconds, see `Predictor`.

        Returns
        -------
        Predictor

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import CARTRegressor
        >>> ask = CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0]).predictor()
        >>> ask(np.array([2.2]))
        20.0
        """
        check_is_fitted(self, "n_features_in_")
        if not self._has_predictor():
            raise ValueError(f"the members of this {type(self).__name__} are no trees of one forest: use predict")
        return self._make_predictor()

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model in a file that is safe to open; see `spinney.load_model`.

        Parameters
        ----------
        path : path
            By custom with the suffix `.spn`. The file that was there is whole until the new one is.

        Examples
        --------
        >>> import os, tempfile
        >>> from spinney import CARTRegressor, load_model
        >>> model = CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
        >>> model.save_model(path)
        >>> load_model(path).predict([[2.2]])
        array([20.])
        """
        check_is_fitted(self, "n_features_in_")
        kind = type(self).__name__
        if type(self) not in estimator_names():
            raise TypeError(f"{kind} is not one of Spinney's estimators: only these can be saved; pickle keeps others")
        self._validate_params()  # type: ignore[attr-defined]
        kinds = all_kinds(named_losses({}), is_file=True)
        try:
            save(path, kind, self._make_predictor() if self._has_predictor() else None, self, kinds)
        except BrokenFileError as error:
            raise ValueError(f"save_model: no file is written, for it could not be loaded again: {error}") from None
        except Unstorable as error:
            raise ValueError(
                f"save_model cannot store this {kind}: {error}. A model file holds trees and numbers, no code; "
                "pickle keeps what it can import."
            ) from None

    def _check_fitted(self) -> None:
        """Raise unless the fitted attributes go together: before a kernel sees them."""
        values = vars(self)
        if "n_features_in_" not in values:
            if self._has_predictor():
                raise BrokenFileError("trees without n_features_in_: they could not be checked against the columns")
            return
        if values["n_features_in_"] < 1:
            raise BrokenFileError("a model has columns")
        members = [member for member in values.get("_members", ()) if isinstance(member, Saved)]
        if not all(member._is_learnt() for member in members):  # noqa: SLF001
            raise BrokenFileError("a member is not fitted")
        check_member_classes(values.get("classes_"), members)
        schema, names = values.get("_schema"), values.get("feature_names_in_")
        if schema is not None and schema.n_features != values["n_features_in_"]:
            raise BrokenFileError("n_features_in_ is not that of the schema")
        if schema is not None and names is not None and tuple(names.tolist()) != schema.names:
            raise BrokenFileError("feature_names_in_ are not those of the schema")
        is_counted = "n_classes_" in values or (isinstance(self, ClassifierMixin) and self._is_learnt())
        if is_counted and values.get("n_classes_") != len(values.get("classes_", ())):
            raise BrokenFileError("n_classes_ is not the number of classes_")
        if self._has_predictor():
            if not self._is_learnt():
                raise BrokenFileError(f"a fitted {type(self).__name__} has {', '.join(self._learnt)}")
            self._make_predictor().check()

    def __getstate__(self) -> dict[str, Any]:
        """Text and arrays, as in a model file, and beside them what a file could not hold."""
        from spinney import __version__

        foreign: list[Any] = []
        writer = Writer(all_kinds(KEPT_LOSS), foreign)
        content = writer.write(vars(self), "")
        return {
            "version": __version__,
            "content": dump(content).decode(),
            "arrays": writer.all_arrays(),
            "foreign": foreign,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, checked as those of a model file are."""
        from spinney import __version__

        if state["version"] != __version__:
            warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=__version__,
                    original_sklearn_version=state["version"],
                )
            )
        reader = Reader(all_kinds(KEPT_LOSS), state["arrays"], state["foreign"])
        values = reader.read(json.loads(state["content"]))
        vars(self).update(values)
        self._check_fitted()


def check_member_classes(classes: NDArray[Any] | None, members: list[Any]) -> None:
    """Members know classes of the model's, which are in order: their votes are put in its columns."""
    if not members or classes is None:
        return
    known = classes.tolist()
    heard = {label for member in members if hasattr(member, "classes_") for label in member.classes_.tolist()}
    if known != sorted(set(known)) or not heard <= set(known):
        raise BrokenFileError("a member has other classes than the model, or these are out of order")


# --- Estimators as values ------------------------------------------------------------------------------------------


@cache
def estimator_names() -> dict[type, str]:
    """The public estimators that can be saved."""
    import spinney

    public = {getattr(spinney, name): name for name in spinney.__all__ if name.endswith(("Classifier", "Regressor"))}
    return {cls: name for cls, name in public.items() if issubclass(cls, Saved)}


def all_kinds(custom: Kind, *, is_file: bool = False) -> dict[str, Kind]:
    """Everything that fitted estimators are made of."""
    kinds = {
        **KINDS,
        "PruningReport": of_dataclass(PruningReport, check_report),
        "Draw": Kind(Draw, Draw.__getstate__, make_draw),
        "Subspaces": of_dataclass(Subspaces, lambda _: None),
        "Bags": Kind(Bags, Bags._asdict, make_bags),
        "Template": Kind(Template, Template._asdict, lambda parts: Template(**parts)),
        "CustomLoss": custom,
    }
    for name in LOSSES:
        kinds[name] = of_loss(getattr(losses, name))
    if is_file:
        for cls, name in estimator_names().items():
            kinds[name] = Kind(cls, take_estimator, estimator_maker(cls))
    return kinds


def take_estimator(estimator: Any) -> dict[str, Any]:
    """Parameters, and fitted attributes."""
    parameters = estimator.get_params(deep=False)
    fitted = {name: value for name, value in sorted(vars(estimator).items()) if name not in parameters}
    for name, value in parameters.items():
        if isinstance(value, np.random.RandomState | np.random.Generator) or (callable(value) and name == "scoring"):
            warn_not_stored(f"{name}={value!r:.60}", f"the loaded model has {name}=None")
            parameters[name] = None
    for name in sorted(fitted.keys() - FITTED.keys() - {*NOT_STORED}):
        warn_not_stored(f"the attribute {name}", "it is none of Spinney's; pickle keeps it")
    if isinstance(parameters.get("loss"), tuple | list):
        parameters["loss"] = fitted.get("_loss", losses.make_loss(parameters["loss"]))
    kept = {name: value for name, value in fitted.items() if name in FITTED}
    return {"parameters": dict(sorted(parameters.items())), "fitted": kept}


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
            if name not in FITTED or not isinstance(value, FITTED[name]):
                raise BrokenFileError(f"{name!r} of a {cls.__name__} cannot be {value!r:.60}")
        vars(estimator).update(fitted)
        estimator._check_fitted()
        return estimator

    return make


# --- The rest ------------------------------------------------------------------------------------------------------


def check_report(report: Any) -> None:
    """Texts and pairs of numbers."""
    pairs = (report.n_leaves, report.depth, report.error)
    is_fine = all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], NUMBER) for pair in pairs)
    is_fine = is_fine and isinstance(report.method, str) and isinstance(report.judged_on, str)
    if not is_fine or not isinstance(report.options, dict):
        raise BrokenFileError("a report of a pruning has a method, options, and pairs of numbers")


def make_draw(parts: dict[str, Any]) -> Draw:
    """A draw refuses what cannot be drawn."""
    types = {"kind": str, "n_rows": int, "n_drawn": int, "seed": int, "is_balanced": bool}
    if not all(type(parts.get(name)) is kind for name, kind in types.items()):
        raise BrokenFileError("a draw has a kind, counts and a seed")
    for name, kinds in (("probability", "f"), ("strata", "iu"), ("groups", "iu")):
        part = parts.get(name)
        if part is not None and not (isinstance(part, np.ndarray) and part.dtype.kind in kinds):
            raise BrokenFileError("a draw has arrays of chances, strata and groups, or none")
    return Draw(**parts)


def make_bags(parts: dict[str, Any]) -> Bags:
    """A draw of rows, one of columns, and a seed."""
    bags: Any = Bags(**parts)
    if not (isinstance(bags.draw, Draw) and isinstance(bags.spaces, Subspaces) and type(bags.seed) is int):
        raise BrokenFileError("bags have a draw, spaces and a seed")
    return bags


def of_loss(cls: Any) -> Kind:
    """A loss with its numbers."""

    def make(parts: dict[str, Any]) -> Any:
        if not all(isinstance(value, NUMBER) for value in parts.values()):
            raise BrokenFileError("a loss has numbers")
        loss = cls.__new__(cls)
        vars(loss).update(parts)
        return loss

    return Kind(cls, lambda loss: dict(vars(loss)), make)


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
        return losses.make_loss(given[name], n_classes=parts["n_classes"])

    return Kind(losses.Custom, take, make)


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
    loss = losses.Custom.__new__(losses.Custom)
    vars(loss).update(parts)
    return loss


KEPT_LOSS = Kind(losses.Custom, losses.Custom.__getstate__, restore_loss)
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
    kinds = all_kinds(named_losses(check_losses(losses or {})), is_file=True)
    return ModelFile(path, read(path), kinds).load()
