"""How members of AdaBoost that are trees of one forest are grown and kept, wherever their rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from spinney.ensemble.adaboost_levels import LevelFitter
    from spinney.ensemble.adaboost_trees import TreeFitter
    from spinney.estimators.training import Effort
    from spinney.table.schema import Schema
    from spinney.tree.structure import Legend


class TreePlan(NamedTuple):
    """How members that are trees of one forest are grown and kept."""

    fit: TreeFitter | LevelFitter
    schema: Schema
    legend: Legend
    base: Any  # see `VotingTrees`
    effort: Effort
