"""Classes of several outputs: y of shape (n_rows, n_outputs), of which every column has classes of its own.

`classes_` is a list of arrays then, one for each output, and `n_classes_` a list of numbers. Trees hold shares of the
classes of all outputs side by side, which are parted here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.estimators.checks import (
    MODERATE,
    NO_CLASS_WEIGHT,
    SparseTargetError,
    check_classes,
    find_class_weights,
    read_outputs,
    scale_down,
)
from spinney.reading.several_outputs import part_shares
from spinney.table.fixed_point import count_labels
from spinney.table.sparse import is_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_OOB = (
    "The type of target cannot be used to compute OOB estimates: y has several outputs that are not "
    "marks of 0 and 1, for which there is no accuracy. Set oob_score=False, or fit one model for each column of y"
)
NO_SCORE = (
    "multiclass-multioutput is not supported: y has several outputs that are not marks of 0 and 1, for which there is "
    "no accuracy. Score each column j by itself: numpy.mean(model.predict(X)[:, j] == y[:, j])"
)


def check_class_outputs(estimator: Any, y: Any, n_rows: int) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """The classes of each output in order, and the position of each row's class among them, (n_rows, n_outputs)."""
    if is_sparse(y):
        raise SparseTargetError
    found = read_outputs(y, n_rows, lambda column: check_classes(estimator, column, n_rows))
    return [classes for classes, _ in found], np.stack([codes for _, codes in found], axis=1)


def weigh_outputs(
    class_weight: Any,
    classes: list[NDArray[Any]],
    codes: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Row weights times the class weights of all outputs; class_weight: of all, or a list of one for each."""
    each = check_class_weights(class_weight, len(classes))
    if each is None:
        return weight
    weighted = np.ones(len(codes)) if weight is None else weight
    if not MODERATE[0] < weighted.max() < MODERATE[1]:
        weighted = scale_down(weighted)
    for o, one in enumerate(each):
        if one is not None:
            weighted = weighted * find_class_weights(one, classes[o], codes[:, o], weight, rounds=True)[codes[:, o]]
    if not np.any(weighted > 0.0):
        raise ValueError(NO_CLASS_WEIGHT)
    return weighted


def check_class_weights(class_weight: Any, n_outputs: int) -> list[Any] | None:
    """One class weight for each output; None: there are none."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        return [class_weight] * n_outputs
    if isinstance(class_weight, dict):
        raise ValueError(  # noqa: TRY004, as any bad content
            "For multi-output, class_weight should be a list of dicts, one for each column of y, or the string "
            "'balanced'; got one dict"
        )
    if len(class_weight) != n_outputs:
        raise ValueError(
            f"For multi-output, number of elements in class_weight should match number of outputs: it has "
            f"{len(class_weight)}, y has {n_outputs} columns"
        )
    return list(class_weight)


def has_class_outputs(estimator: Any) -> bool:
    """Whether a classifier, which knows its classes, has several outputs."""
    return isinstance(getattr(estimator, "classes_", None), list)


def part_answers(shares: NDArray[np.float64], classes: list[NDArray[Any]]) -> list[NDArray[np.float64]]:
    """Class shares of each output, (n_rows, n_classes); shares: of all, side by side."""
    return [np.ascontiguousarray(each) for each in part_shares(shares, count_labels(classes))]


def name_classes(codes: NDArray[np.int64], classes: list[NDArray[Any]]) -> NDArray[Any]:
    """The classes of codes (n_rows, n_outputs)."""
    return np.stack([each[codes[:, o]] for o, each in enumerate(classes)], axis=1)


def choose_classes(shares: NDArray[np.float64], classes: list[NDArray[Any]]) -> NDArray[Any]:
    """The most probable class of each output, the first among equals, (n_rows, n_outputs)."""
    codes = np.stack([each.argmax(axis=1) for each in part_answers(shares, classes)], axis=1)
    return name_classes(codes, classes)


def has_accuracy(classes: list[NDArray[Any]]) -> bool:
    """Whether several outputs have an accuracy: as scikit-learn has it, they are marks, two whole numbers or bools."""
    if any(each.dtype.kind not in "biuf" for each in classes):
        return False
    found = np.unique(np.concatenate(classes))
    return len(found) < 3 and bool(np.all(found % 1 == 0))


def refuse_oob(classes: list[NDArray[Any]]) -> None:
    """Raise where several outputs have no accuracy."""
    if not has_accuracy(classes):
        raise ValueError(NO_OOB)


def refuse_score(classes: list[NDArray[Any]]) -> None:
    """Raise where several outputs have no accuracy, for `score`."""
    if not has_accuracy(classes):
        raise ValueError(NO_SCORE)
