"""Metadata routing: arguments of `fit` and `predict` that members of an ensemble have asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from spinney.estimators.hints import hint_argument

if TYPE_CHECKING:
    from numpy.typing import NDArray


def choose_methods(owner: Any, member: Any) -> dict[str, str]:
    """Which method of a member answers for each of the ensemble: shares of classes if it has them and they count."""
    gives_shares = hasattr(member, "predict_proba") and not owner._is_hard  # noqa: SLF001
    proba = "predict_proba" if gives_shares else "predict"
    return {
        "fit": "fit",
        "predict": proba,
        "predict_proba": proba,
        "predict_log_proba": proba,
        "decision_function": "decision_function",
    }


def make_router(owner: Any, member: Any) -> MetadataRouter:
    """What `get_metadata_routing` of an ensemble gives; member: what the members are copies of, None: several kinds."""
    router = MetadataRouter(owner=owner).add_self_request(owner)
    if member is None:
        return router
    mapping = MethodMapping()
    for caller, callee in choose_methods(owner, member).items():
        mapping.add(caller=caller, callee=callee)
    return router.add(estimator=member, method_mapping=mapping)


def route(owner: Any, method: str, member: Any, params: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """The arguments that members are to be given; known: those of the method itself.

    Without routing, or where members are of several kinds, there are none: a TypeError says what was meant.
    """
    if not params:
        return {}
    if member is None or not get_config()["enable_metadata_routing"]:
        name = next(iter(params))
        cls = type(owner)
        hint = hint_argument(cls, name, list(known))
        raise TypeError(
            f"{cls.__name__}.{method} has no argument {name!r}. {hint} Members get more arguments only with "
            "sklearn.set_config(enable_metadata_routing=True), and if they are of one kind that has asked for them."
        )
    routed = process_routing(owner, method, **params)
    return dict(routed.estimator[choose_methods(owner, member)[method]])


def take_params(params: dict[str, Any], rows: NDArray[np.int64] | None, n_rows: int) -> dict[str, Any]:
    """Arguments for some of the rows: what has an entry for each row is cut to them, the rest stays; None: all."""
    if rows is None:
        return params
    return {name: _safe_indexing(value, rows) if is_by_row(value, n_rows) else value for name, value in params.items()}


def is_by_row(value: Any, n_rows: int) -> bool:
    """Whether an argument has an entry for each row."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict) and len(value) == n_rows
