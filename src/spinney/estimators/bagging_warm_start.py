"""What a warm start of bagging goes on with: members of the same columns, classes and kind, on any rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.estimators.warm_starts import (
    check_number,
    find_other_classes,
    find_other_columns,
    find_other_draw,
    refuse_on_other_rows,
)
from spinney.model.earlier_members import EarlierMembers
from spinney.model.fitted_tree import label_classes

if TYPE_CHECKING:
    from spinney.ensemble.subspaces import Bags
    from spinney.model.fitted_bagging import FittedBagging
    from spinney.table.schema import Schema

WARM = (
    "warm_start adds members to an ensemble, so fit needs columns, classes and a kind of estimator like those of the "
    "first fit"
)


class Start(NamedTuple):
    """What a warm start goes on with."""

    n_old: int = 0  # members
    n_before: int = 0  # of them from fits on other rows
    is_resumed: bool = True  # whether it is on the rows of the last fit
    shift: int = 0  # of the sums of its numbers

    @property
    def earlier(self) -> EarlierMembers | None:
        """What the model says of it."""
        return EarlierMembers(self.n_before) if self.n_before else None


def refuse_columns(schema: Schema, known: Schema) -> None:
    """Refuse to add trees to those of other columns."""
    difference = find_other_columns(schema, known)
    if difference is not None:
        raise ValueError(f"{WARM}; {difference}. Set warm_start=False to begin anew.")


def start_from(
    model: Any, old: FittedBagging, mark: str, bags: Bags, n_outputs: int, *, is_soft: bool, has_trees: bool
) -> Start:
    """What a warm start keeps, if it is one of the same columns, classes and kind of members."""
    check_number(model.n_estimators, len(old))
    numbers = {"X": (bags.spaces.n_features, old.bags.spaces.n_features), "y": (n_outputs, model._count_outputs())}  # noqa: SLF001
    found = [find_other_classes(model._labels, label_classes(old.classes))]  # noqa: SLF001
    found += [f"{name} has {now} columns, and had {was}" for name, (now, was) in numbers.items() if now != was]
    found += ["estimator is of another kind"] if has_trees != (old.trees is not None) else []
    if any(found):
        raise ValueError(f"{WARM}; {next(filter(None, found))}. Set warm_start=False to begin anew.")
    if not np.array_equal(bags.spaces.columns(0), old.bags.spaces.columns(0)):
        raise ValueError(
            "warm_start adds members whose columns are drawn as those before; keep max_features and "
            "bootstrap_features, or set warm_start=False to begin anew."
        )
    other = "X, y or sample_weight" if mark != old.fingerprint else find_other_draw(bags.draw, old.bags.draw)
    start = Start(len(old), 0 if old.earlier is None else old.earlier.n_members, other is None, old.shift)
    if other is not None:
        start = start._replace(n_before=len(old))
    if start.n_before:
        refuse_on_other_rows(model, start.n_before, other)
    if model.oob_score and not has_trees:  # trees can vote again, on codes
        if old.out_of_bag is None:
            raise ValueError(
                "oob_score with warm_start must be set from the first fit on where members are no CART trees: "
                "set warm_start=False to begin anew"
            )
        if is_soft != old.is_soft:
            raise ValueError(
                "out-of-bag rows have class shares from some members and would have votes from others: keep voting "
                "and whether members have predict_proba, or set warm_start=False to begin anew"
            )
    return start
