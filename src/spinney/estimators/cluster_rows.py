"""The tables of a fit at the workers of a cluster, cut into parts of equal lengths whatever the partitions were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.estimators.fingerprints import HASHED_ROWS, has_blocks
from spinney.estimators.level_tasks import lay_tables
from spinney.scale.cluster.row_ranges import choose_heads, find_ranges, take_head, take_range
from spinney.table.row_sums import SUM_BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spinney.scale.cluster.engine import Engine, Held
    from spinney.scale.cluster.row_ranges import Joining, Range


class Spread(NamedTuple):
    """One of X, y and weights: partitions on a cluster, or rows here that go along."""

    lengths: list[int]
    joining: Joining | None  # None: `here` has the rows
    parts: list[Any]
    here: Any = None

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return sum(self.lengths)


class ClusterRows:
    """The tables of a fit, in parts of equal lengths at the workers.

    Parameters
    ----------
    engine : Engine
    X, y : Spread
    weight : Spread, optional
    """

    def __init__(self, engine: Engine, X: Spread, y: Spread, weight: Spread | None) -> None:
        self.engine, self.X = engine, X
        self.n_rows = X.n_rows
        unit = HASHED_ROWS if has_blocks(self.n_rows, "") else SUM_BLOCK
        self.block_rows = max(-(-self.n_rows // (engine.count_threads() * unit)), 1) * unit
        self.n_blocks = -(-self.n_rows // self.block_rows)
        spreads = [X, y, weight]
        self.has_weight = weight is not None
        self.tables = [
            self.lay(k, k * self.block_rows, min((k + 1) * self.block_rows, self.n_rows), spreads)
            for k in range(self.n_blocks)
        ]
        engine.hold_all(self.tables)

    def lay(self, k: int, first: int, last: int, spreads: Sequence[Spread | None]) -> Held:
        """The tables of part k, of rows first .. last."""
        joinings: list[Joining | None] = []
        ranges: list[list[Range]] = []
        parts: list[list[Any]] = []
        for spread in spreads:
            if spread is None or spread.joining is None:
                joinings.append(None)
                ranges.append([])
                parts.append([] if spread is None else [take_range(spread.here, first, last)])
                continue
            of = find_ranges(spread.lengths, first, last)
            joinings.append(spread.joining)
            ranges.append(of)
            parts.append([spread.parts[one.partition] for one in of])
        return self.engine.hold("table", lay_tables, first, last - first, joinings, ranges, parts, turn=k)

    def each(self, name: str, task: Any, *more: Any) -> Iterator[Any]:
        """What a task gives for every part and more, in any order."""
        for _, found in self.engine.map(name, task, ([table, *more] for table in self.tables)):
            yield found


def take_heads(engine: Engine, parts: list[Any]) -> list[Any]:
    """A few rows of some partitions, as many as tell how all are joined."""
    place = {id(part): k for k, part in enumerate(parts)}
    found = {place[id(part)]: head for part, head in engine.map("head", take_head, parts, is_short=True)}
    return choose_heads([found[k] for k in sorted(found)])
