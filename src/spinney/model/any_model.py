"""What predicts, of whatever users call a model."""

from __future__ import annotations

import os
from typing import Any

from spinney.model.base_predictor import Predictor
from spinney.model.io import load_predictor
from spinney.reading.several_outputs import refuse_many, refuse_outputs


def find_predictor(model: Any, doing: str) -> Predictor:
    """What predicts one output, of an estimator, a predictor or a model file; doing: what it is for, as "export"."""
    predictor = take_predictor(model, doing)
    held = getattr(predictor, "tree", None) or getattr(predictor, "forest", None)
    if held is not None:
        refuse_outputs(held, doing)
    return predictor


def take_predictor(model: Any, doing: str) -> Predictor:
    """What predicts, as `find_predictor` has it."""
    if isinstance(model, Predictor):
        return model
    if isinstance(model, str | os.PathLike):
        return load_predictor(model)
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class: give a fitted model, such as {model.__name__}().fit(X, y)")
    if not hasattr(model, "predictor"):
        raise TypeError(f"{type(model).__name__} is no model of Spinney")
    refuse_many(getattr(model, "n_outputs_", 1), doing)
    try:
        predictor: Predictor = model.predictor()
    except ValueError as error:
        if type(error) is not ValueError:  # not fitted
            raise
        instead = f"; {doing} each member" if hasattr(model, "estimators_") else ""
        raise ValueError(f"{type(model).__name__} cannot be {doing}ed as a whole: {error}{instead}") from None
    return predictor
