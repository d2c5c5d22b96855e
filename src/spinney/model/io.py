"""Model files: how a model gets into a container, and out of one that may be a stranger's.

The container (`model.container`) holds four texts: `format`, which is "spinney"; `version`, that of the format;
`library`, the version of Spinney that wrote it; and `model`, JSON with the parts below. A fifth, `training`, is JSON
too, and tells of the training data what `spinney train` knows; files without it are of version 1.0. Files of models
that read dates are of version 1.2; those of models whose rows are drawn or hashed by blocks, of trees by Poisson's
deviance or the absolute error or of several outputs, of members that were fitted on other rows than the last ones, and
of a predictor alone, which has no estimator, of version 1.3; those of trees with packed subsets of version 1.4; those
of sparse training data that are hashed by their cells of version 1.5.

    method      the estimator's class
    summary     what the model is made of: features, classes, trees, nodes, rows that the first tree grew on
    predictor   what `load_predictor` reads, in the words of `model.state`; null where the members are no trees
    estimator   parameters and fitted attributes, which `load_model` reads after it; null where there are none, and then
                `method` is the kind of predictor
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.base_predictor import Predictor
from spinney.model.container import BrokenFileError, Container, dump, load_json, read, write
from spinney.model.predictors import TreePredictor
from spinney.model.state import KINDS, PACKED_PART, Kind, Reader, Writer

if TYPE_CHECKING:
    import os

FORMAT = "spinney"
MAJOR, MINOR = 1, 5
# minor versions that added the training data, dates, bags by blocks, trees by Poisson's deviance and predictors alone,
# packed subsets, and hashes of cells
TOLD_SINCE, DATED, ALONE, PACKED, CELLS = 1, 2, 3, 4, 5
_DATES = '"is":"DateColumn"'  # as `dump` writes it, and no text that it quotes
_BLOCKS = re.compile('"block_bits":|"tree:[0-9a-f]{64}')  # bags drawn by blocks, and data hashed by them
_POISSON = '"criterion":"poisson"'
_ANSWERS = '"answers":'  # of trees by the absolute error, and of several outputs
_HAS_PACKED = f'"{PACKED_PART}":true'  # subsets of features with many levels
_CELLS = re.compile('"cells:[0-9a-f]{64}')  # sparse data hashed by them
_EARLIER = '["_n_before",'  # of ensembles whose members were fitted on several tables
TEXTS = {"format", "version", "library", "model"}
TRAINING = "training"
TOLD: dict[str, type] = {"target": str, "rows": int, "sha256": str}  # of the training data, each optional
MOST_TOLD = 100_000  # letters
PARTS = {"method", "summary", "predictor", "estimator"}


def save(
    path: str | os.PathLike[str],
    method: str,
    predictor: Predictor | None,
    estimator: Any,
    kinds: dict[str, Kind],
    training: dict[str, str | int] | None = None,
) -> None:
    """Write a model file; equal models give equal bytes. `training` tells of the training data, see `TOLD`.

    It is read first as it would be loaded: there is never a file that cannot be.
    """
    from spinney import __version__

    writer = Writer(kinds)
    content = {
        "method": method,
        "predictor": writer.write(predictor, "", is_named=True),
        "estimator": writer.write(estimator, ""),
        "summary": summarise(predictor),
    }
    model = dump(content).decode()
    minor = max(
        [
            *list_later(model).values(),
            ALONE if estimator is None or _EARLIER in model else 0,
            TOLD_SINCE if training is not None else 0,
        ]
    )
    text = {"format": FORMAT, "version": f"{MAJOR}.{minor}", "library": __version__, "model": model}
    if training is not None:
        text[TRAINING] = dump(training).decode()
    container = Container(writer.all_arrays(), text)
    file = ModelFile(f"the {method} to be saved", container, kinds)
    if not file.is_alone:
        file.load()
    write(path, *container)


def summarise(predictor: Predictor | None) -> dict[str, int]:
    """What a model is made of."""
    if predictor is None:
        return {}
    model: Any = predictor.tree if isinstance(predictor, TreePredictor) else predictor.forest  # type: ignore[attr-defined]
    n_trees = 1 if isinstance(predictor, TreePredictor) else len(model)
    return {
        "n_features": predictor.n_features,
        "n_classes": predictor.n_classes,
        "n_trees": n_trees,
        "n_nodes": model.n_nodes,
        "n_rows": int(model.n_rows[0]) if len(model.n_rows) else 0,
    }


class ModelFile:
    """A model file that was read and is about to be understood.

    Parameters
    ----------
    path : path
        What messages call it.
    container : Container
    kinds : dict
        The classes that it may hold.
    """

    def __init__(self, path: str | os.PathLike[str], container: Container, kinds: dict[str, Kind]) -> None:
        self.path = path
        self.content = self.trust(lambda: open_content(container))
        self.reader = Reader(kinds, container.arrays)
        self.predictor: Predictor | None = self.trust(self.read_predictor)

    @property
    def method(self) -> str:
        """The estimator's class."""
        return str(self.content["method"])

    def trust(self, step: Any) -> Any:
        """What a step gives; whatever goes wrong in it is the file's fault."""
        try:
            with np.errstate(all="ignore"):  # not `catch_warnings`, which is not for threads
                return step()
        except (MemoryError, NewerFileError, MissingLossError):
            raise
        except BrokenFileError as error:
            raise BrokenFileError(f"{self.path}: {error}") from None
        except Exception as error:
            kind = type(error).__name__
            raise BrokenFileError(f"{self.path} holds no sound model: {error} ({kind})") from error

    @property
    def is_alone(self) -> bool:
        """Whether the file holds a predictor and no estimator."""
        return self.content["estimator"] is None

    def load(self) -> Any:
        """The estimator."""
        if self.is_alone:
            raise PredictorAloneError(
                f"{self.path} holds a predictor without an estimator: open it with spinney.load_predictor"
            )
        return self.trust(self.read_estimator)

    def read_predictor(self) -> Predictor | None:
        """The predictor, which the summary must fit."""
        predictor = self.reader.read(self.content["predictor"])
        if not isinstance(predictor, Predictor | None):
            raise BrokenFileError("the predictor is none")
        if summarise(predictor) != self.content["summary"]:
            raise BrokenFileError("the summary is not that of the model")
        if self.is_alone:
            if type(predictor).__name__ != self.method:
                raise BrokenFileError(f"the predictor is not the {self.method} that the file names")
            self.reader.check_all_used()
        return predictor

    def read_estimator(self) -> Any:
        """The estimator; nothing of the file is left over then."""
        estimator = self.reader.read(self.content["estimator"])
        if type(estimator).__name__ != self.method:
            raise BrokenFileError(f"the estimator is not the {self.method} that the file names")
        if not estimator._is_fitted():  # noqa: SLF001
            raise BrokenFileError("the estimator is not fitted")
        if (self.predictor is not None) != estimator._has_predictor():  # noqa: SLF001
            raise BrokenFileError("the estimator has no trees, but the predictor has, or the other way round")
        self.reader.check_all_used()
        return estimator


class NewerFileError(BrokenFileError):
    """A file is of a later version of the format."""


class PredictorAloneError(ValueError):
    """A file holds no estimator."""


class MissingLossError(ValueError):
    """A model was fitted with a loss that must be given again."""


def list_later(model: str) -> dict[str, int]:
    """The parts of a model that minor versions have added, and which."""
    parts = {
        "a model of sparse data that is hashed by its cells": (CELLS, _CELLS.search(model) is not None),
        "a tree with packed subsets": (PACKED, _HAS_PACKED in model),
        "a model whose rows are drawn or hashed by blocks": (ALONE, _BLOCKS.search(model) is not None),
        "a tree by Poisson's deviance": (ALONE, _POISSON in model),
        "a tree whose nodes hold their answers": (ALONE, _ANSWERS in model),
        "a model that reads dates": (DATED, _DATES in model),
    }
    return {what: version for what, (version, is_there) in parts.items() if is_there}


def open_content(container: Container) -> dict[str, Any]:
    """The JSON of a model file of a version that is known."""
    text = container.text
    if text.get("format") != FORMAT:
        raise BrokenFileError("it is a safetensors file, but no model of Spinney")
    major, _, minor = text.get("version", "").partition(".")
    if not (major.isdecimal() and minor.isdecimal() and len(major) + len(minor) < 8):
        raise BrokenFileError("the version of the format is not readable")
    if (int(major), int(minor)) > (MAJOR, MINOR):
        raise NewerFileError(
            f"the model was saved by Spinney {text.get('library')} in format {major}.{minor}; this version reads up to "
            f"{MAJOR}.{MINOR}: install Spinney {text.get('library')} or later"
        )
    if set(text) - {TRAINING} != TEXTS or (TRAINING in text and int(minor) < TOLD_SINCE):
        raise BrokenFileError(f"the texts must be {sorted(TEXTS)}")
    for what, version in list_later(text["model"]).items():
        if int(minor) < version:
            raise BrokenFileError(f"{what} is of version 1.{version}")
    read_training(text)
    content = load_json(text["model"], sum(array.nbytes for array in container.arrays.values()) + len(text["model"]))
    if not isinstance(content, dict) or set(content) != PARTS or not isinstance(content["method"], str):
        raise BrokenFileError(f"the model must have {sorted(PARTS)}")
    if content["estimator"] is None and int(minor) < ALONE:
        raise BrokenFileError(f"a predictor without an estimator is of version 1.{ALONE}")
    return content


def read_training(text: dict[str, str]) -> dict[str, Any]:
    """What the texts of a model file tell of its training data: target, rows, hash of the file; empty in most."""
    told = text.get(TRAINING, "{}")
    if len(told) > MOST_TOLD:
        raise BrokenFileError("the training data are told at too great length")
    found = load_json(told, len(told))
    if not isinstance(found, dict) or any(type(value) is not TOLD.get(name) for name, value in found.items()):
        raise BrokenFileError(f"of the training data a file tells {sorted(TOLD)}")
    return found


def save_predictor(predictor: Predictor, path: str | os.PathLike[str]) -> None:
    """Save what predicts, without the estimator that it is of: imported models have none.

    The file is safe to open, by `load_predictor`, and goes wherever model files go: `spinney predict`, `inspect`,
    `tree`, `export`. Estimators have `save_model`, which keeps all that they can do.

    Parameters
    ----------
    predictor : Predictor
    path : path

    Examples
    --------
    >>> import os, tempfile
    >>> import spinney
    >>> model = spinney.CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
    >>> spinney.save_predictor(model.predictor(), path)
    >>> spinney.load_predictor(path).predict([[2.2]])
    array([20.])
    """
    if not isinstance(predictor, Predictor):
        raise TypeError(f"predictor={predictor!r:.60} is none: `predictor()` of a fitted model gives one")
    save(path, type(predictor).__name__, predictor, None, KINDS)


def load_predictor(path: str | os.PathLike[str]) -> Predictor:
    """Open a model file for prediction alone: without scikit-learn, its trees shared by all processes that open it.

    Parameters
    ----------
    path : path
        As given to `save_model`. It may be a stranger's: whatever is in it, it is checked before it is used.

    Returns
    -------
    Predictor
        To be called with a row, or to `predict` tables.

    Examples
    --------
    >>> import os, tempfile
    >>> from spinney import CARTRegressor, load_predictor
    >>> model = CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
    >>> model.save_model(path)
    >>> load_predictor(path).predict([[2.2]])
    array([20.])
    """
    file = ModelFile(path, read(path), KINDS)
    if file.predictor is None:
        raise ValueError(
            f"{path} holds a {file.method} that has no predictor, for its members are no trees of one forest, or they "
            "answer by more than a number or the classes of one output: open it with spinney.load_model"
        )
    return file.predictor
