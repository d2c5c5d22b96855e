"""Rows to evaluate a boosted model on, as users give them to `fit`: one table, or several in a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from spinney.ensemble.rounds import TRAIN
from spinney.estimators.scanned import is_scanned

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GivenSet(NamedTuple):
    """Rows to evaluate on, not read yet."""

    name: str  # what curves call it
    place: str  # what messages call it
    X: Any
    y: Any
    weight: Any = None
    offset: Any = None
    offset_place: str = "init_score_val"


class Validation(NamedTuple):
    """The arguments of `fit` about rows that no tree learns from."""

    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    init_score_val: Any = None
    eval_set: Any = None
    eval_names: Any = None

    def list_sets(self) -> list[GivenSet]:
        """The sets that are given, in order; ValueError for half a set."""
        has_rows = self.X_val is not None
        if has_rows != (self.y_val is not None) and not is_scanned(self.X_val):
            given, other = ("X_val", "y_val") if has_rows else ("y_val", "X_val")
            raise ValueError(f"{given} is provided, but {other} was not provided: X_val and y_val belong together")
        if self.eval_set is not None:
            return self._list_eval_sets()
        if self.eval_names is not None:
            raise ValueError("eval_names belongs to eval_set, which is not given")
        for name in ("sample_weight_val", "init_score_val"):
            if getattr(self, name) is not None and not has_rows:
                raise ValueError(f"{name} belongs to X_val and y_val, which are not given")
        if not has_rows:
            return []
        return [GivenSet("valid", "X_val, y_val", self.X_val, self.y_val, self.sample_weight_val, self.init_score_val)]

    def _list_eval_sets(self) -> list[GivenSet]:
        if self.X_val is not None:
            raise ValueError("X_val, y_val and eval_set say the same: put all rows to evaluate on into eval_set")
        if self.sample_weight_val is not None:
            raise ValueError("sample_weight_val belongs to X_val: in eval_set a set of rows is (X, y, sample_weight)")
        items = list_items(self.eval_set)
        names = name_sets(self.eval_names, len(items))
        offsets = [None] * len(items) if self.init_score_val is None else list(self.init_score_val)
        if len(offsets) != len(items):
            raise ValueError(
                f"init_score_val has {len(offsets)} items: beside eval_set it is a list of one array for each of its "
                f"{len(items)} sets"
            )
        return [
            GivenSet(name, f"eval_set[{i}]", item[0], item[1], None if len(item) == 2 else item[2], offset, place)
            for i, (name, item, offset) in enumerate(zip(names, items, offsets, strict=True))
            for place in (f"init_score_val[{i}]",)
        ]


def check_stopping(estimator: Any, given: list[GivenSet]) -> None:
    """Refuse early stopping without rows to judge by."""
    if estimator.n_iter_no_change is not None and not given and estimator.validation_fraction is None:
        raise ValueError(
            f"n_iter_no_change={estimator.n_iter_no_change} stops early by rows held out, but there are none: give "
            "X_val and y_val to fit, or a validation_fraction"
        )


def list_items(eval_set: Any) -> list[tuple[Any, ...]]:
    """The sets of `eval_set`: a list of (X, y) or (X, y, sample_weight), each a tuple or a list, or one such tuple."""
    rule = "eval_set must be a list of (X, y) or (X, y, sample_weight)"
    if not isinstance(eval_set, list | tuple):
        raise TypeError(f"{rule}, not {type(eval_set).__name__}")
    is_one = isinstance(eval_set, tuple) and not all(isinstance(item, tuple) for item in eval_set)
    items: list[Any] = [eval_set] if is_one else list(eval_set)
    if not items:
        raise ValueError(f"{rule}, and this list is empty: leave it out, or give a set")
    for i, item in enumerate(items):
        if is_scanned(item):
            continue
        is_set = isinstance(item, tuple | list)
        if not is_set or len(item) not in {2, 3}:
            what = f"a {type(item).__name__} of {len(item)}" if is_set else type(item).__name__
            raise TypeError(f"{rule}, but eval_set[{i}] is {what}")
    return [(item, None) if is_scanned(item) else tuple(item) for item in items]


def name_sets(eval_names: Any, n_sets: int) -> list[str]:
    """Names of the sets of `eval_set`; valid_0, valid_1 and so on by default."""
    if eval_names is None:
        return [f"valid_{i}" for i in range(n_sets)]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(names) != n_sets or not all(isinstance(name, str) for name in names):
        raise ValueError(f"eval_names must be {n_sets} texts, one for each set of eval_set, got {eval_names!r}")
    if len({*names, TRAIN}) != n_sets + 1:
        raise ValueError(f"eval_names={names} must differ from each other and from {TRAIN!r}, the training rows")
    return names


def read_offset(score: Any, name: str, n_rows: int, n_raw: int) -> NDArray[np.float64] | None:
    """Scores that rows bring along, (n_raw, n_rows), from an array of one row per row of X."""
    if score is None:
        return None
    offset = check_array(score, ensure_2d=False, dtype=np.float64, copy=True, input_name=name, ensure_all_finite=False)
    if offset.shape == (n_rows,) and n_raw == 1:
        offset = offset[:, None]
    if offset.shape != (n_rows, n_raw):
        wanted = f"({n_rows},)" if n_raw == 1 else f"({n_rows}, {n_raw}), a column per class, output or quantile"
        raise ValueError(f"{name} has shape {offset.shape}, expected {wanted}")
    is_bad = ~np.isfinite(offset).all(axis=1)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"{name} contains NaN or infinity in row {row}; give every row a finite score, 0 for none")
    return np.ascontiguousarray(offset.T)
