"""Rounds of AdaBoost in a checkpoint: kept while they go on, and taken up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.ensemble.adaboost import Round
from spinney.estimators.checkpoints import Saved, check_floats
from spinney.model.container import BrokenFileError
from spinney.tree.forest import ForestParts

if TYPE_CHECKING:
    from spinney.ensemble.adaboost import AdaBoost, EarlyStopping
    from spinney.ensemble.adaboost_levels import LevelFitter
    from spinney.ensemble.adaboost_trees import TreeFitter
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.table.schema import Schema


class KeptMembers:
    """The rounds of a fit whose members are trees, and how a checkpoint holds them.

    Parameters
    ----------
    checkpoint : Checkpoint
    boost : AdaBoost
        About to begin; tells of each round.
    fit : TreeFitter or LevelFitter
    stopping : EarlyStopping, optional

    Attributes
    ----------
    n_rounds : int
        Rounds that are whole. Another one may be under way.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        boost: AdaBoost,
        fit: TreeFitter | LevelFitter,
        stopping: EarlyStopping | None,
    ) -> None:
        self.checkpoint, self.boost, self.fit, self.stopping = checkpoint, boost, fit, stopping
        self.n_rounds = 0
        boost.on_round = self.note

    def note(self) -> None:
        """Count the rounds."""
        self.n_rounds = len(self.boost.rounds)
        self.checkpoint.note()

    def take(self) -> Saved | None:
        """The whole rounds so far."""
        rounds = self.boost.rounds[: self.n_rounds]
        if not rounds:
            return None
        parts = ForestParts(len(rounds))
        for done in rounds:
            parts.add(done.member)
        more: dict[str, Any] = {
            "alphas": np.array([done.alpha for done in rounds]),
            "errors": np.array([done.error for done in rounds]),
            "is_over": self.boost.is_over and len(rounds) == len(self.boost.rounds),
        }
        if self.stopping is not None:
            more["scores"] = np.array(self.stopping.scores[: len(rounds)])
        return Saved(parts.peek(), more)

    def resume(self, schema: Schema, n_rounds: int) -> None:
        """Take up the rounds that the checkpoint has, of at most `n_rounds`."""
        n_found = self.checkpoint.check_trees(schema, self.fit.n_classes, n_rounds)
        if self.checkpoint.found is None:
            return
        forest, more = self.checkpoint.found
        with self.checkpoint.trusting():
            for name in ("alphas", "errors", *(("scores",) if self.stopping is not None else ())):
                check_floats(more.get(name), name, n_found)
            if type(more.get("is_over")) is not bool:
                raise BrokenFileError("it does not say how its rounds ended")
        numbers = zip(forest, more["errors"].tolist(), more["alphas"].tolist(), strict=True)
        rounds = [Round(tree, error, alpha) for tree, error, alpha in numbers]
        self.boost.resume(rounds, self.fit.predict, is_over=more["is_over"])
        if self.stopping is not None:
            for done in rounds:
                self.stopping(done)
            if not np.array_equal(self.stopping.scores, more["scores"]):
                self.checkpoint.refuse("X_val, y_val or sample_weight_val differs")
        self.n_rounds = n_found
