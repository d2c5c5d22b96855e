"""Several outputs: trees whose nodes hold a number for each column of y. What does without them says so here."""

from __future__ import annotations

from typing import Any


def refuse_outputs(model: Any, what: str) -> None:
    """Raise where a tree or forest has several outputs; what: that there is of one alone."""
    if model.n_outputs > 1:
        raise ValueError(
            f"{what}: not there for several outputs, and this model has {model.n_outputs}; fit one model for each "
            "column of y, and of classes a tree for each (multi_strategy='one_tree_per_class')"
        )
