"""Predictions of Dask collections: lazy Arrays, made partition by partition, equal to those of tables in memory."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.scale.cluster.collections import check_rows, has_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Asked = tuple[str, NDArray[Any], tuple[Any, ...], dict[str, Any]]  # a method, its answer to no row, its arguments


def predict_collection(estimator: Any, method: str, X: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a method says of every row, as a Dask Array whose chunks are the partitions of X."""
    estimator._find_fitted()  # noqa: SLF001
    check_rows(X, "X")
    if has_collection((*args, *named.values())):
        raise TypeError(f"{method} of a collection takes no other collection beside X: give arrays, or X.compute()")
    from dask import delayed

    empty = predict_nothing(estimator, method, args, named)
    asked = method, empty, args, named
    model = delayed(estimator, name=f"spinney-model-{secrets.token_hex(8)}", traverse=False)
    if not hasattr(X, "numblocks"):
        return X.map_partitions(spinney_predict, model, asked=asked, meta=empty)
    chunks = (X.chunks[0], *((n,) for n in empty.shape[1:]))
    drop = [1] if empty.ndim == 1 and X.ndim == 2 else None
    new = list(range(X.ndim, empty.ndim)) or None  # classes of the leaves of boosting
    return X.map_blocks(
        spinney_predict, model, asked=asked, dtype=empty.dtype, chunks=chunks, drop_axis=drop, new_axis=new, meta=empty
    )


def predict_stages(estimator: Any, method: str, X: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Any]:
    """What a method says of every row after each round."""
    for n in range(1, count_rounds(estimator) + 1):
        yield predict_collection(estimator, method, X, args, {**named, "n_rounds": n})


def count_rounds(estimator: Any) -> int:
    """Rounds that a model has."""
    fitted = estimator._find_fitted()  # noqa: SLF001
    return fitted.n_rounds if hasattr(fitted, "n_rounds") else len(estimator)


def spinney_predict(part: Any, model: Any, *, asked: Asked) -> NDArray[Any]:
    """What a method says of the rows of a partition, if it has any; dashboards show the name of this function."""
    method, empty, args, named = asked
    is_empty = part.shape[0] == 0  # `len` is refused by sparse chunks
    return empty if is_empty else getattr(model, method)(part, *args, **named)


def predict_nothing(estimator: Any, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> NDArray[Any]:
    """The predictions of no row: their type and shape."""
    names = getattr(estimator, "feature_names_in_", None)
    row: Any = np.full((1, estimator.n_features_in_), np.nan) if names is None else [dict.fromkeys(names.tolist())]
    return getattr(estimator, method)(row, *args, **named)[:0]
