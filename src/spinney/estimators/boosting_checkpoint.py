"""Rounds of gradient boosting in a checkpoint: kept while they are grown, and taken up again."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._threads import count_workers, run_beside
from spinney.ensemble.rounds import grow_rounds
from spinney.estimators.checkpoints import Saved, check_floats, open_checkpoint
from spinney.estimators.fingerprints import HASHED_ROWS, fingerprint
from spinney.model.boosted_scores import add_rounds
from spinney.model.container import BrokenFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.ensemble.boosting import Boosting
    from spinney.ensemble.rounds import Curves, Monitor
    from spinney.estimators.boosting_data import BoostingData
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

HASH_SECONDS = 4e-9  # of a number


def open_rounds(
    model: Any, data: BoostingData, hashes: dict[str, str], old: Any, mark_rows: Callable[[], str] | None = None
) -> None:
    """Open the checkpoint of a fit, if it is to have one; hashes: of all but X; mark_rows: that of X and y on disk."""
    if model.checkpoint is not None and model.init is not None and not isinstance(model.init, str):
        raise ValueError(
            f"checkpoint keeps trees, and init={type(model.init).__name__} is another model to begin with: set one of "
            "them to None"
        )

    def mark() -> dict[str, str]:
        rows = fingerprint(data.table, data.y, model._labels) if mark_rows is None else mark_rows()  # noqa: SLF001
        return {"X or y": rows, **hashes}

    data.checkpoint = open_checkpoint(model, data.seed, old, mark)
    if data.checkpoint is not None:
        data.seed = data.checkpoint.seed


def hash_rows(model: Any, data: BoostingData) -> tuple[dict[str, str], Callable[[], dict[str, str]]]:
    """Hashes of all but X, as far as they are asked for before the first round, and what waits for all of them.

    Threads grow rounds while another one hashes: 500,000 numbers take 1.9 ms, which all others would wait for.
    """
    hash_data = partial(model._hash_data, copy(data))  # noqa: SLF001  (copied: y is in other units later)
    seconds, is_asked = len(data.y) * HASH_SECONDS, model.warm_start or model.checkpoint is not None
    if is_asked or len(data.y) < HASHED_ROWS or count_workers(model.n_jobs, 2, seconds) == 1:
        hashes = hash_data()
        return hashes, lambda: hashes
    return {}, run_beside(hash_data)


class KeptRounds:
    """The rounds of a fit, and how a checkpoint holds them.

    Parameters
    ----------
    checkpoint : Checkpoint
    engine : Boosting
        About to grow its first round.
    monitor : Monitor

    Attributes
    ----------
    n_rounds : int
        Rounds that are whole: grown, measured and judged. Another one may be under way.
    is_over : bool
        Whether the last of them was the last one wanted.
    """

    def __init__(self, checkpoint: Checkpoint, engine: Boosting, monitor: Monitor) -> None:
        self.checkpoint, self.engine, self.monitor = checkpoint, engine, monitor
        self.n_rounds, self.is_over = 0, False

    def note(self, is_last: bool) -> None:
        """Count a round."""
        self.n_rounds, self.is_over = self.n_rounds + 1, is_last
        self.checkpoint.note()

    def take(self) -> Saved | None:
        """The whole rounds so far."""
        n, engine = self.n_rounds, self.engine
        if n == 0:
            return None
        more: dict[str, Any] = {
            "is_over": self.is_over,
            "likely_gain": np.array(engine.likely_gain),
            "curves": {
                group: {name: np.array(values[:n]) for name, values in of.items()}
                for group, of in self.monitor.curves.items()
            },
        }
        if engine.out_of_bag is not None:
            more["improvement"] = np.array(engine.out_of_bag.improvement[:n])
            more["score"] = np.array(engine.out_of_bag.score[:n])
        if engine.loss.name == "huber":
            more["delta"] = float(engine.loss.parameter)
        return Saved(engine.store.forest(0, engine.trees_per_round * n, is_full=True), more)

    def grow(self, data: BoostingData, n_rounds: int, *, is_short: bool) -> None:
        """Grow the rounds that the checkpoint lacks, of `n_rounds`; is_short: see `grow_rounds`."""
        n_left = self.resume(data, n_rounds)
        with self.checkpoint.saving(self.take):
            grow_rounds(self.engine, self.monitor, n_left, is_short=is_short, on_round=self.note)

    def resume(self, data: BoostingData, n_rounds: int) -> int:
        """Take up the rounds that the checkpoint has; returns how many are left to be grown, of `n_rounds`."""
        per_round = self.engine.trees_per_round
        n_trees = self.checkpoint.check_trees(data.table.schema, 0, n_rounds * per_round)
        if self.checkpoint.found is None:
            return n_rounds
        forest, more = self.checkpoint.found
        n = n_trees // per_round
        with self.checkpoint.trusting():
            curves = self.check(more, n)
            if n * per_round != n_trees:
                raise BrokenFileError(f"{n_trees} trees are no rounds of {per_round}")
        self.add_scores(forest, n, data)
        self.monitor.resume(curves, n)
        self.compare_sets()
        self.engine.resume(forest, more["likely_gain"].tolist())
        if self.engine.out_of_bag is not None:
            self.engine.out_of_bag.resume(more["improvement"].tolist(), more["score"].tolist())
        if "delta" in more:
            self.engine.loss.parameter = more["delta"]
        self.n_rounds, self.is_over = n, more["is_over"]
        return 0 if self.is_over else n_rounds - n

    def check(self, more: dict[str, Any], n: int) -> Curves:
        """The curves of a checkpoint, if there is all that goes with n rounds."""
        lengths = {"likely_gain": self.engine.loss.n_raw}
        if self.engine.out_of_bag is not None:
            lengths |= {"improvement": n, "score": n}
        for name, length in lengths.items():
            check_floats(more.get(name), name, length)
        is_huber = self.engine.loss.name == "huber"
        if type(more.get("is_over")) is not bool or (is_huber and not 0.0 < more.get("delta", 0.0) < np.inf):
            raise BrokenFileError("it does not say how its rounds ended")
        curves, known = more.get("curves"), self.monitor.curves
        if not isinstance(curves, dict) or list_names(curves) != list_names(known):
            raise BrokenFileError("its curves are those of other rows")
        for group, of in curves.items():
            for name, values in of.items():
                check_floats(values, f"{group} {name}", n)
        return {group: {name: curves[group][name].tolist() for name in of} for group, of in known.items()}

    def add_scores(self, forest: Forest, n_rounds: int, data: BoostingData) -> None:
        """Add what the rounds say of all rows to their scores, block by block."""
        rounds = range(n_rounds)

        def add(values: Values, raw: NDArray[np.float64]) -> None:
            add_rounds(forest, rounds, values, 0, len(values), raw)

        blocks = data.table.value_blocks(data.keep)
        self.engine.change_scores((len(values), partial(add, values)) for values in blocks)
        for rows in self.monitor.evaluation_sets:
            add_rounds(forest, rounds, rows.values, 0, len(rows.values), rows.raw)

    def compare_sets(self) -> None:
        """Refuse other rows to evaluate on: scores of the last round would be others."""
        for rows in self.monitor.evaluation_sets:
            measured = self.monitor.measure_set(rows)
            if any(self.monitor.curves[rows.name][name][-1] != value for name, value in measured.items()):
                self.checkpoint.refuse(f"the rows to evaluate on differ ({rows.name})")


def list_names(curves: dict[str, Any]) -> dict[str, set[str]]:
    """Which curves there are."""
    return {group: set(of) for group, of in curves.items()}
