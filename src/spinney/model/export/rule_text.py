"""Rules: every tree as if-then lines, to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.model.predictors import RoundPredictor, TreePredictor
from spinney.reading.rules import find_rules

if TYPE_CHECKING:
    from spinney.model.base_predictor import Predictor


def write_rules(predictor: Predictor) -> str:
    """The rules of each tree; where there are many, under its number."""
    if isinstance(predictor, TreePredictor):
        return f"{find_rules(predictor.tree)}\n"
    forest = predictor.used if isinstance(predictor, RoundPredictor) else predictor.forest  # type: ignore[attr-defined]
    return "\n".join(f"tree {number}\n{find_rules(tree)}\n" for number, tree in enumerate(forest))
