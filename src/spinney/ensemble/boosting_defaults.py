"""Parameters of gradient boosting that follow the table where they are "auto": a few written rules, no search.

A table is *large* from 20,000 rows on: those of a round, that is rows times classes where there are three or more.
Small tables are learnt in many short steps from random parts of rows and columns, and stop by the rows that rounds
leave out; large ones in fewer, longer steps, of numbers from all rows: a round is a third faster where none is drawn.
docs/decisions/0020-defaults.md has the measurements, and which tables chose and which judged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

AUTO = "auto"
LARGE = 20_000
STEP, SHORT_STEP = 0.1, 0.03
MOST_ROUNDS, MOST_ROUNDS_LARGE = 2000, 250
MOST_ROUNDS_NUMBERS, ROUNDS_SQUARED = 120, 150  # of large tables of numbers; the second by the squared error, no fewer
ROUNDS_PER_ROW = 5  # at most, where rows are few
FEWEST_ROUNDS = 100  # that a table may take
WITHOUT_VALUE = 100  # rounds where the loss of out-of-bag rows tells nothing
LEAVES = (6, 31)
LEAF_ROWS = (3, 20)
FEWEST_FEATURES = 4


class TableSize(NamedTuple):
    """What the rules look at."""

    n_rows: int
    n_features: int
    n_classes: int  # 0: numbers
    n_raw: int  # trees of a round
    has_value: bool = True  # whether the loss of out-of-bag rows can be told, and stop rounds
    effort: float = 1.0
    is_counted: bool = False  # whether the user gave a number of rounds
    is_deep: bool = False  # whether the user gave a depth
    fills_leaves: bool = True  # whether leaves may have values of rows outside the bag
    is_squared: bool = False  # whether the loss is the squared error
    has_numbers: bool = True  # whether a column is not a category

    @property
    def is_multiclass(self) -> bool:
        """Whether each class has a tree in a round."""
        return self.n_classes > 2

    @property
    def is_large(self) -> bool:
        """Whether a round is much work."""
        return self.n_rows * self.n_raw >= LARGE

    @property
    def has_short_steps(self) -> bool:
        """Whether out-of-bag rows may end rounds of a small table, so that these can be many."""
        return self.has_value and not (self.is_counted or self.is_large)


def clip(x: float, limits: tuple[int, int]) -> int:
    """The whole number below x, within limits."""
    return min(max(int(x), limits[0]), limits[1])


def learning_rate(size: TableSize) -> float:
    """0.03, of three classes or more 0.06, divided by the effort; 0.1 for large tables and where rounds are counted."""
    if size.is_counted or not size.has_value:
        return STEP
    short = 2 * SHORT_STEP if size.is_multiclass else SHORT_STEP
    return (short if size.has_short_steps else STEP) / size.effort


def n_estimators(size: TableSize) -> int:
    """The most rounds: 2,000, of large tables 250, of numbers 120, times the effort; five a row where rows are few.

    150, all of them, for large tables by the squared error: no row is left out that could stop them.
    """
    if not size.has_value:
        return WITHOUT_VALUE
    most = MOST_ROUNDS
    if size.is_large:
        of_numbers = ROUNDS_SQUARED if size.is_squared else MOST_ROUNDS_NUMBERS
        most = MOST_ROUNDS_LARGE if size.n_classes else of_numbers
    most = max(min(ROUNDS_PER_ROW * size.n_rows, most), FEWEST_ROUNDS)
    return max(math.ceil(most * size.effort), 1)


def max_leaf_nodes(size: TableSize) -> int:
    """Half the root of the number of rows, from 6 to 31; 31 where a depth is given."""
    return LEAVES[1] if size.is_deep else clip(math.sqrt(size.n_rows) / 2, LEAVES)


def min_samples_leaf(size: TableSize) -> int:
    """A row in 150, from 3 to 20; 1 by the squared error, which does not punish certainty, in tables that are small."""
    if size.is_squared and not size.is_large:
        return 1
    return clip(size.n_rows / 150, LEAF_ROWS)


def max_features(size: TableSize) -> int:
    """The root of the number of columns and one, half of them by the squared error, at least 4.

    All of them for large tables but of many classes.
    """
    if size.is_large and not size.is_multiclass:
        return max(size.n_features, 1)
    share = -(-size.n_features // 2) if size.is_squared else math.isqrt(size.n_features) + 1
    return min(max(share, FEWEST_FEATURES), max(size.n_features, 1))


def subsample(size: TableSize) -> float:
    """Seven rows in ten, of large tables eight, of three classes or more half of them: the others tell when to stop.

    17 in 20 where all columns are categories, whose few tests leave little to learn by heart; all of large tables by
    the squared error.
    """
    if size.is_large and size.is_squared and size.has_value:
        return 1.0
    if not size.has_numbers and not size.is_large:
        return 0.85
    if size.is_multiclass:
        return 0.5
    return 0.8 if size.is_large else 0.7


def leaf_rows(size: TableSize) -> str:
    """All rows, where rows are drawn by these rules and leaves have Newton's steps; those of the bag elsewhere."""
    return "all" if size.fills_leaves else "bag"


def reg_lambda(size: TableSize) -> float:
    """1; 2 / n for n classes, whose second derivatives are about so much smaller; of two one half in short steps."""
    if size.is_multiclass:
        return 2.0 / size.n_classes
    return 0.5 if size.n_classes == 2 and size.has_short_steps else 1.0


RULES: dict[str, Callable[[TableSize], Any]] = {
    rule.__name__: rule
    for rule in (
        learning_rate,
        n_estimators,
        max_leaf_nodes,
        min_samples_leaf,
        max_features,
        subsample,
        leaf_rows,
        reg_lambda,
    )
}


def choose_params(given: dict[str, Any], size: TableSize) -> dict[str, Any]:
    """The parameters that have a rule, with numbers in the place of "auto"."""
    return {
        name: rule(size) if isinstance(given[name], str) and given[name] == AUTO else given[name]
        for name, rule in RULES.items()
    }
