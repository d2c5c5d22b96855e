"""Dask collections in place of X: every estimator is fitted to them by `fit`, and predicts them lazily.

A scan of files is fitted likewise where there is a client of Dask: workers read the files.

Methods are wrapped where a class is made, in one place, so that no estimator and no method of one is forgotten. A table
in memory costs them a look at its type.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from spinney.scale.cluster.collections import has_collection, is_collection
from spinney.scale.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable

PREDICTING = ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply")
AT_ONE = ("importance",)  # what takes all rows at once, and so goes to one worker
MARK = "takes_collections"  # of a method that has been wrapped
STAGED = {
    "staged_predict": "predict",
    "staged_predict_proba": "predict_proba",
    "staged_decision_function": "decision_function",
}


def take_collections(cls: type) -> None:
    """Let the methods that a class has of its own take collections; called once or twice, it does the same."""
    ways = {
        "fit": wrap_fit,
        **dict.fromkeys(PREDICTING, wrap_predicting),
        **dict.fromkeys(STAGED, wrap_staged),
        **dict.fromkeys(AT_ONE, wrap_whole),
    }
    for name, wrap in ways.items():
        method = vars(cls).get(name)
        if method is None:
            continue
        if inspect.isfunction(method):
            setattr(cls, name, wrap_once(method, wrap))
        else:  # scikit-learn's `available_if`, a method for some
            method.fn = wrap_once(method.fn, wrap)
    score = inspect.getattr_static(cls, "score", None)
    if inspect.isfunction(score):  # of the class, or scikit-learn's
        cls.score = wrap_once(score, wrap_score)  # type: ignore[attr-defined]


def wrap_once(method: Callable[..., Any], wrap: Callable[..., Any]) -> Callable[..., Any]:
    """The method wrapped, or as it is where it has been."""
    if MARK in vars(method):
        return method
    wrapped: Callable[..., Any] = wrap(method)
    vars(wrapped)[MARK] = True
    return wrapped


def wrap_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, for collections too."""
    parameters = list(inspect.signature(fit).parameters)[1:]

    @functools.wraps(fit)
    def wrapped(self: Any, *args: Any, **named: Any) -> Any:
        is_spread = has_collection((*args, *named.values()))
        if not is_spread and not isinstance(args[0] if args else named.get("X"), Scan):
            return fit(self, *args, **named)
        from spinney.estimators.cluster_fits import fit_collections, spread_files

        arguments = {**dict(zip(parameters, args, strict=False)), **named}
        given = {name: value for name, value in arguments.items() if value is not None}
        if not is_spread:
            files = spread_files(given)
            if files is None:
                return fit(self, *args, **named)
            given = files
        return fit_collections(self, fit, given)

    return wrapped


def wrap_predicting(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, lazy for collections."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **named: Any) -> Any:
        if not is_collection(X):
            return method(self, X, *args, **named)
        from spinney.estimators.lazy_predictions import predict_collection

        return predict_collection(self, method.__name__, X, args, named)

    return wrapped


def wrap_staged(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, whose stages are lazy for collections."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **named: Any) -> Any:
        if not is_collection(X):
            return method(self, X, *args, **named)
        from spinney.estimators.lazy_predictions import predict_stages

        return predict_stages(self, STAGED[method.__name__], X, args, named)

    return wrapped


def wrap_whole(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, at a worker that has joined the collections."""
    parameters = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **named: Any) -> Any:
        if not has_collection((*args, *named.values())):
            return method(self, *args, **named)
        from spinney.estimators.cluster_fits import call_at_one

        return call_at_one(self, method.__name__, {**dict(zip(parameters, args, strict=False)), **named})

    return wrapped


def wrap_score(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, which refuses collections."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **named: Any) -> Any:
        if has_collection((X, *args, *named.values())):
            raise TypeError(
                "score takes rows in memory, and was given a Dask collection: give X.compute() and y.compute(), or "
                "compare predict(X).compute() with the truth"
            )
        return method(self, X, *args, **named)

    return wrapped
