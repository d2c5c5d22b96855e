"""What stacking has learnt, as a value: its members, and the second stage that reads what they predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

METHODS = ("predict_proba", "decision_function", "predict")
"""What a member may be asked by, the first that it has where the user leaves the choice."""


@dataclass(frozen=True, eq=False)
class FittedStacking:
    """A fitted stack.

    Attributes
    ----------
    names : list of str
        Of the members.
    members : list of estimators
        Fitted to all rows. Classes are numbers to them, 0 and up, unless they came fitted.
    methods : list of str
        What each is asked by, one of `METHODS`.
    widths : list of int
        How many columns of the second stage each member fills.
    final : estimator
        The second stage; classes are numbers to it, 0 and up.
    classes : array (n_classes,), or None for numbers
    is_prefit : bool
        Whether the members came fitted, and know the classes by their own names.
    passes_x : bool
        Whether the second stage sees the columns of X too, after those of the members.
    """

    names: list[str]
    members: list[Any]
    methods: list[str]
    widths: list[int]
    final: Any
    classes: NDArray[Any] | None
    is_prefit: bool
    passes_x: bool

    @property
    def known(self) -> NDArray[Any] | None:
        """What the members call the classes, in the order of these; None for numbers."""
        if self.classes is None or self.is_prefit:
            return self.classes
        return np.arange(len(self.classes))

    def find_fault(self, n_features: int) -> str | None:
        """What is wrong with a stack that was read from a file, before any method reads it; None: nothing."""
        parts = self.names, self.members, self.methods, self.widths
        if not self.members or len({len(part) for part in parts}) > 1:
            return "every member of a stack has a name, a method and a number of columns"
        if not all(type(name) is str for name in self.names) or len(set(self.names)) < len(self.names):
            return "the names of members are different texts"
        if not all(type(width) is int and width > 0 for width in self.widths):
            return "a member fills at least one column"
        return self.find_fault_of_stages(n_features)

    def find_fault_of_stages(self, n_features: int) -> str | None:
        """The same, of the members and the second stage."""
        for member, method in zip(self.members, self.methods, strict=True):
            if method not in METHODS or not hasattr(member, method):
                return f"a member is not asked by {method!r:.30}"
            if getattr(member, "n_features_in_", n_features) != n_features:
                return "a member was fitted to another number of columns"
        n_columns = sum(self.widths) + (n_features if self.passes_x else 0)
        if not hasattr(self.final, "predict") or getattr(self.final, "n_features_in_", n_columns) != n_columns:
            return "the second stage was fitted to other columns than the members fill"
        return None
