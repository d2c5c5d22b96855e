"""What a warm start may go on with: the columns and classes of the first fit, on the same rows or on others.

On the same rows an ensemble is that fitted at once. On others the trees there are stay as they are, and their bags
cannot be had again: what needs those is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._warnings import warn
from spinney.estimators.parameters import parameter

if TYPE_CHECKING:
    from spinney.ensemble.sampling import Draw
    from spinney.table.schema import Schema

DRAWN_BY = ("kind", "n_rows", "groups", "strata", "is_balanced", "probability", "n_drawn")  # what a bag follows from


def find_other_columns(schema: Schema, old: Schema) -> str | None:
    """Why trees that know columns by their places cannot go on with those of a fit; None: they can."""
    names, known = schema.column_names, old.column_names
    if names is None or known is None:
        names, known = tuple("x" * schema.n_features), tuple("x" * old.n_features)
    if len(names) != len(known):
        return f"X has {len(names)} columns, and had {len(known)}"
    for k, (name, was) in enumerate(zip(names, known, strict=True)):
        if name != was:
            return f"column {k} of X is {name!r}, and was {was!r}"
    if schema.dates != old.dates:
        return "X differs in its dates: the first of them, or the parts that change"
    return None if schema.levels == old.levels else "X differs in the levels of its categories"


def find_other_classes(labels: Any, old: Any) -> str | None:
    """Why classes of a fit are not those that the model knows; None: they are."""
    return None if labels == old else f"y differs: its classes are {labels!r:.60}, and were {old!r:.60}"


def find_other_outputs(y: Any, n_old: int) -> str | None:
    """Why a target, (n_rows,) or (n_rows, n_outputs), is not like that of the trees there are; None: it is."""
    n_now = 1 if y.ndim == 1 else y.shape[1]
    return None if n_now == n_old else f"y has {n_now} columns, and had {n_old}"


def find_other_draw(draw: Draw, old: Draw) -> str | None:
    """What makes bags other than those of the trees there are; None: nothing."""
    for name in DRAWN_BY:
        if not np.array_equal(getattr(old, name), getattr(draw, name)):
            return f"sample_weight, groups, strata or a parameter of the draw ({name})"
    return None


def check_number(n_estimators: int, n_old: int) -> None:
    """Refuse fewer members than there are, and warn where none are added."""
    if n_estimators < n_old:
        raise ValueError(
            f"n_estimators={n_estimators} must be larger or equal to len(estimators_)={n_old} when warm_start==True"
        )
    if n_estimators == n_old:
        warn("Warm-start fitting without increasing n_estimators does not fit new trees.")


def refuse_on_other_rows(model: Any, n_before: int, difference: str | None) -> None:
    """Refuse what needs the bags of all trees where some were grown on other rows, and warn of shares of classes.

    n_before: how many were; difference: what this fit has other than the last one, None where that was before.
    """
    asked = {
        "oob_score": bool(model.oob_score),
        "keep_members": bool(parameter(model, "keep_members", False)),
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise ValueError(
                f"{name} needs the bags of all members, but {n_before} of them come from an earlier fit on other rows "
                f"({difference or 'X or y'} differed): set {name}=False, or warm_start=False to begin anew"
            )
    weight = parameter(model, "class_weight", None)
    if difference is not None and isinstance(weight, str):
        warn(
            f"class_weight={weight!r} is found from the rows of each fit, and these differ from those of the trees "
            "there are: give a dict of weights from all rows, which sklearn.utils.compute_class_weight computes"
        )
