"""How many tasks, and how many bytes on the wire, does a tree take on a large cluster? Boosting by levels, simulated.

The client, the orders, the sums and their tree of tasks are those of a fit (`scale.cluster.level_parts`); the workers
are turns of this process, each with a part of few rows, since neither tasks nor bytes depend on how many rows a part
has. What is counted: tasks; bytes of what the client sends, of sums from worker to worker, and of sums to the client,
as pickles. What is not: how long anything takes. Run it by `python -m benchmarks.simulated_cluster`.
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit.choice import compiled
from spinney._types import CONTROL_SIZE
from spinney.ensemble.boosting_levels import LevelBoosting
from spinney.ensemble.loss_names import make_loss
from spinney.scale.cluster.engine import NOTHING, Done, Engine, Held
from spinney.scale.cluster.level_parts import LevelParts, PlacedRows
from spinney.table.binning import make_bins
from spinney.table.fixed_point import fix_weights
from spinney.table.ingest import read_columns
from spinney.table.row_sums import SUM_BLOCK
from spinney.tree.boost import BoostParams

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS = (16, 160)
FEATURES, LEAVES, ROUNDS = 100, 31, 4


class CountingEngine(Engine):
    """Tasks in this process, each counted, with the bytes that would go over a network.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        self.n_workers = n_workers
        self.n_tasks = self.to_workers = self.between_workers = self.to_client = 0
        self.done: list[tuple[int, Any]] = []

    def count_slots(self) -> int:
        """All at once."""
        return self.n_workers

    def start(self, name: str, task: Callable[..., Any], part: Any, held: Held | None) -> int:  # noqa: ARG002
        """Do it."""
        self.n_tasks += 1
        result = task(self.give(part))
        self.to_client += len(pickle.dumps(result))
        self.done.append((self.n_tasks, Done(result)))
        return self.n_tasks

    def give(self, value: Any) -> Any:
        """What a task gets of a value."""
        if isinstance(value, Held):
            return self.find(value)
        if type(value) is list:
            return [self.give(item) for item in value]
        self.to_workers += len(pickle.dumps(value))
        return value

    def find(self, held: Held) -> Any:
        """A value that workers hold; made by a task, unless it is a part, and sent to whoever asks."""
        if held.value is NOTHING:
            self.n_tasks += 1
            held.value = held.make(*(self.give(one) for one in held.sources))
        if not isinstance(held.value, PlacedRows):
            self.between_workers += len(pickle.dumps(held.value))
        return held.value

    def wait(self) -> list[tuple[Any, Any]]:
        """All that was begun."""
        found, self.done = self.done, []
        return found

    def forget(self, values: Any) -> None:
        """Let values go."""
        for held in values:
            held.value = NOTHING


def simulate(n_workers: int, n_features: int = FEATURES) -> dict[str, float]:
    """Tasks and megabytes of a tree, the mean of all but the first."""
    rng = np.random.default_rng(0)
    n_rows = n_workers * SUM_BLOCK
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    y = (X[:, :8].sum(axis=1) + X[:, 8] * X[:, 9] + rng.normal(size=n_rows) > 0).astype(np.float64)
    kernels, weights = compiled(), fix_weights(None, n_rows)
    bins = make_bins(read_columns(X), weights.values, 255, kernels)
    outline = bins._replace(rows=bins.rows[:0])
    engine = CountingEngine(n_workers)
    parts = []
    for k in range(n_workers):
        rows = slice(k * SUM_BLOCK, (k + 1) * SUM_BLOCK)
        held = engine.hold("rows", PlacedRows)
        held.value = PlacedRows(k, rows.start, [{"codes": bins.rows[rows], "y": y[rows]}], outline)
        parts.append(held)
    level_parts = LevelParts(engine, parts, np.zeros(1), [outline.edges])
    loss = make_loss("log_loss", n_classes=2)
    params = BoostParams(max_leaf_nodes=LEAVES, learning_rate=0.1)
    boosting = LevelBoosting(level_parts, outline, weights, n_rows, loss, params, kernels)
    counts: list[np.ndarray] = []
    for _ in range(ROUNDS):
        boosting.grow_round(np.zeros(CONTROL_SIZE, np.int64))
        found = [level_parts.number, engine.n_tasks, engine.to_workers, engine.between_workers, engine.to_client]
        counts.append(np.array(found, np.float64))
    passes, tasks, sent, between, back = (counts[-1] - counts[0]) / (ROUNDS - 1)
    return {
        "passes": passes,
        "tasks": tasks,
        "sent": sent / 1e6,
        "between": between / 1e6,
        "back": back / 1e6,
    }


def main() -> None:
    """Print a line for each size."""
    print(f"{FEATURES} features, {LEAVES} leaves, a part for each worker; of a tree:")
    for n_workers in WORKERS:
        found = simulate(n_workers)
        print(
            f"{n_workers:>4} workers: {found['passes']:.1f} passes, {found['tasks']:,.0f} tasks; orders "
            f"{found['sent']:.1f} MB, sums between workers {found['between']:.0f} MB "
            f"({found['between'] / n_workers:.1f} MB of each), to the client {found['back']:.1f} MB"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
