"""What the levels of a category gain by chance at a node, as the grower takes it off a subset.

The same as in `kernels.tree.category_chance`, but in the units of a decrease of the criterion, from the sums of the
node, for all criteria and any number of classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spinney._criteria import CRITERIA
from spinney._jit import interpreted
from spinney._types import ENTROPY, GINI, SDR, SQUARED_ERROR
from spinney.kernels.common.structs import Chance
from spinney.tree.grow_params import SURE
from spinney.tree.split_measures import impurity, weigh_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.split_measures import Sums

KNOWN = {SQUARED_ERROR, SDR, GINI, ENTROPY}  # criteria


@dataclass(frozen=True)
class LevelLuck:
    """What levels gain by chance at a node, and which gains that explains.

    Attributes
    ----------
    chance : Chance
        In units of a decrease times a weight.
    weight : float
        Of the node.
    """

    chance: Chance
    weight: float

    def gain(self, roots: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.float64]:
        """Decrease that tests owe to chance, (n_tests,).

        roots: sums of sqrt(weight) over the levels of branch 0; sides: (n_tests, 2) weights of the two branches.
        """
        luck_of = interpreted().common.category_chance.luck_of
        found = [luck_of(self.chance, *test) for test in zip(roots.tolist(), *sides.T.tolist(), strict=True)]
        return np.array(found) / self.weight

    def explains(self, decrease: NDArray[np.float64], luck: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which decreases chance is enough to tell, (n_tests,): the grower then does not make the test."""
        deviations = self.chance.margin * np.sqrt(luck * self.chance.noise / self.weight)
        return (luck > 0.0) & (decrease - luck - deviations <= 0.0)


def level_luck(
    total: Sums, levels: Sums, criterion: str, n_classes: int, cat_penalty: float, row_weight: float
) -> LevelLuck | None:
    """Luck of the levels that a node has; None where none is taken off.

    total: sums of the node; levels: (n_levels, n_sums); row_weight: weight of an independent row.
    """
    code = CRITERIA[criterion].code
    if cat_penalty == 0.0 or not len(levels) or code not in KNOWN:  # others: the kernels know no luck of them either
        return None
    kernels = interpreted()
    weight = float(weigh_sums(total, n_classes))
    information = max(weight / row_weight / len(levels) - 1.0, 0.0)
    alike = float(np.sum(np.square(total[1:] / weight))) if n_classes else 0.0  # chance that two rows have one class
    few = kernels.common.category_chance.few_rows(information * 0.5 * (1.0 - alike) if n_classes else information)
    before = float(impurity(total, criterion))
    if code == SQUARED_ERROR:
        noise = before
    elif code == SDR:
        noise = kernels.tree.category_chance.mix(0.5 * before, before, few)
    else:
        effective = max(1.0 / alike, 2.0)
        surplus = (1.0 + math.sqrt((effective - 2.0) / len(levels))) ** 2
        noise = before * min(surplus / (effective - 1.0), 1.0)
        if code == ENTROPY:
            least = float(kernels.tree.category_chance.NATS)
            noise = kernels.tree.category_chance.mix(max(min(least * surplus, before), least), before, few)
    roots = float(np.sqrt(weigh_sums(levels, n_classes)).sum())
    return LevelLuck(Chance(cat_penalty * row_weight * noise, roots, few, 0.0, SURE), weight)
