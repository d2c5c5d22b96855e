"""Scans and stores in place of X and y: what an estimator is fitted on, and whether it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.scale.plan import refuse_beyond
from spinney.scale.scan import Scan
from spinney.scale.store import Store
from spinney.table.columns import Categories

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.scale.plan import FitPlan


class GivenRows(NamedTuple):
    """What a fit was given, a scan taken apart."""

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None


def is_scanned(X: Any) -> bool:
    """Whether X stands for a table on disk."""
    return isinstance(X, Scan | Store)


def unpack(estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> GivenRows:
    """The arguments of a fit; of a scan or store its columns, target, weights and groups.

    estimator: refuses by `_refuse_scan` what it cannot do without rows in memory.
    """
    if not is_scanned(X):
        return GivenRows(X, y, sample_weight, groups)
    return give_rows(*open_store(estimator, X, y, sample_weight, groups))


def open_store(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, has_sets: bool = False
) -> tuple[Store, FitPlan]:
    """The table on disk that a scan or store stands for, and how an estimator is fitted to it; see `unpack`.

    has_sets: whether rows to evaluate on are given, so that none are held out, which the plan would count.
    """
    given = {"y": y, "sample_weight": sample_weight, "groups": groups}
    extra = [name for name, value in given.items() if value is not None]
    if extra:
        raise ValueError(f"X is a {type(X).__name__.lower()}, which names its columns itself: leave out {extra[0]}")
    estimator._refuse_scan()  # noqa: SLF001
    name = type(estimator).__name__
    if has_sets:
        planned = object.__new__(type(estimator))  # `copy.copy` would go by the text of a model file
        vars(planned).update(vars(estimator), validation_fraction=None)
        estimator = planned
    refuse_beyond(X.plan(estimator), name)  # before anything is read, where the source tells how many rows it has
    store = open_rows(X, name)
    plan = store.plan(estimator)
    refuse_beyond(plan, name)
    return store, plan


def give_rows(store: Store, plan: FitPlan) -> GivenRows:
    """The columns of a table on disk, and what goes with them in memory."""
    return GivenRows(store.columns(plan.n_workers), store.read_target(), store.read_weight(), store.read_groups())


def unpack_evaluated(X: Any, y: Any, sample_weight: Any, kind: str, groups: Any = None) -> GivenRows:
    """Rows to evaluate on; of a scan or store what it has of them. kind: what messages call the model."""
    if not is_scanned(X):
        return GivenRows(X, y, sample_weight, groups)
    given = {"y": y, "weights": sample_weight, "groups": groups}
    extra = next((name for name, value in given.items() if value is not None), None)
    if extra is not None:
        raise ValueError(
            f"the rows to evaluate on are a {type(X).__name__.lower()}, which names its columns itself: leave out "
            f"their {extra}"
        )
    store = open_rows(X, kind)
    return GivenRows(store.columns(), to_array(store.read_target()), store.read_weight(), store.read_groups())


def open_rows(X: Scan | Store, kind: str) -> Store:
    """The table on disk; it has a target."""
    if X.target is None:
        raise ValueError(f"{kind} requires y to be passed, but the scan has no target: give scan(..., target=...)")
    return X.read() if isinstance(X, Scan) else X


def to_array(target: NDArray[Any] | Categories | None) -> Any:
    """A target as users have it."""
    if not isinstance(target, Categories):
        return target
    return np.array(target.values, dtype=object)[target.codes]
