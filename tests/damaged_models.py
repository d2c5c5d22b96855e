"""Models whose fitted attributes are damaged one by one, as a file with the right hash would hold them."""

import math

import numpy as np

import saved_models
from spinney.estimators.kept import take_fitted
from spinney.estimators.saving import kinds_of_files, named_losses
from spinney.model.container import BrokenFileError, Container, dump
from spinney.model.io import FORMAT, MAJOR, MINOR, ModelFile, summarise
from spinney.model.state import Writer

DELETE = object()
FREE = {"estimator_"}  # any template will do: its members are there


def load_changed(model, change):
    """The estimator of a file of `model` in which `change` has been applied to the dict of fitted attributes."""
    kinds = kinds_of_files(named_losses(dict(saved_models.LOSSES)))
    method = type(model).__name__

    def take(estimator):
        parts = kinds[method].take(estimator)
        fitted = dict(parts["fitted"])
        change(fitted)
        return {**parts, "fitted": fitted}

    writer = Writer({**kinds, method: kinds[method]._replace(take=take)})
    predictor = model._make_predictor() if model._has_predictor() else None
    content = {
        "method": method,
        "predictor": writer.write(predictor, "", is_named=True),
        "estimator": writer.write(model, ""),
        "summary": summarise(predictor),
    }
    text = {"format": FORMAT, "version": f"{MAJOR}.{MINOR}", "library": "0", "model": dump(content).decode()}
    return ModelFile("a damaged model", Container(writer.all_arrays(), text), kinds).load()


def list_damages(value):
    """What to put in place of a fitted attribute: other types, other shapes, numbers out of range."""
    others = [DELETE, None, True, -1, 0, 10**9, 1.5, math.nan, "text", [], {}, (), np.zeros(0), np.zeros(3)]
    if isinstance(value, int):
        others += [value + 1, value - 1, 63 * value, -value]
    elif isinstance(value, np.ndarray):
        others += [value[:-1], np.concatenate([value, value]), value[None], value.astype(object), value[::-1]]
        others += [np.repeat(value[:1], len(value), axis=0), np.array([1, "a"] * len(value), object)[: len(value)]]
        if value.dtype.kind == "f":
            others += [value.astype(np.float32), *(np.full_like(value, x) for x in (math.nan, math.inf, -1.0, 1e308))]
    elif isinstance(value, dict):
        others += [{1: 2}, dict.fromkeys(value, 3), {name: {"loss": [1.0]} for name in value}]
        others += [{name: {"loss": ["a"] * 99} for name in value}, dict.fromkeys(value)]
        others += [{key: value[key] for key in value if key != name} for name in value]
    elif isinstance(value, list):
        others += [value[:-1], value * 2, [None] * len(value), [3] * len(value)]
    return others


def put(name, value):
    """A change of one attribute."""

    def change(fitted):
        if value is DELETE:
            del fitted[name]
        else:
            fitted[name] = value

    return change


def check_damages(model, use, more_damages=lambda _name, _value: []):
    """Damage each fitted attribute of a model in every way: the file is refused, or `use(loaded)` raises nothing.

    Of each attribute at least one damage must be refused. `more_damages(name, value)` are those of one's own.
    """
    for name, value in take_fitted(model).items():
        n_refused = 0
        for other in list_damages(value) + more_damages(name, value):
            try:
                loaded = load_changed(model, put(name, other))
            except BrokenFileError:
                n_refused += 1
                continue
            try:
                use(loaded)
            except Exception as error:
                error.add_note(f"with {name} = {other!r:.200}")
                raise
        assert n_refused > 0 or name in FREE, name
