"""Why a node asks what it asks, in short sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._types import LEAF, THRESHOLD
from spinney.tree.candidates import TIE_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.tree.candidates import Rules, Tests

DECREASES = {
    "entropy": "gain",
    "gini": "Gini decrease",
    "misclassification": "decrease of the error",
    "squared_error": "decrease of the variance",
    "sdr": "standard deviation reduction",
}
C45_AVERAGE_SLACK = 1e-3  # below the average gain that J48 still admits
C45_RATIO_SLACK = 1e-6


def measure_word(rules: Rules) -> str:
    """What the tests are compared by."""
    return DECREASES[rules.criterion] if rules.choice == "decrease" else "gain ratio"


def slack_of(rules: Rules, tests: list[Tests]) -> float:
    """Scores that differ by no more are a tie."""
    if rules.choice == "c45":
        return C45_RATIO_SLACK
    scale = max(float(t.worth.before[0]) for t in tests) if rules.choice == "decrease" else 1.0
    return TIE_SCORE * scale


def give_reasons(
    rules: Rules, tests: list[Tests], chosen: tuple[int, int], name: Callable[[int], str], average: float | None
) -> tuple[str, list[list[str]]]:
    """The verdict on a node that asks a test, and what speaks against each other test.

    average: gain of the features' best tests, where it enters the choice.
    """
    feature, position = chosen
    own = tests[feature]
    score = float(own.score[position])
    word, slack = measure_word(rules), slack_of(rules, tests)
    average = average if rules.choice == "c45" else None
    is_drawn = 0 < rules.n_try < len(tests)
    reasons = []
    rivals, ties = 0, []
    for t in tests:
        why = list(t.reasons)
        for k in np.flatnonzero(t.is_admissible):
            if (t.feature, int(k)) == chosen:
                continue
            other = float(t.score[k])
            if t.feature == feature:
                is_tie = abs(other - score) <= slack
                why[k] = "tie with a lower cut" if is_tie else f"smaller {word} than another cut"
            elif k != t.best:
                why[k] = f"not the best cut of {name(t.feature)}"
            elif average is not None and t.worth.gain[k] < average - C45_AVERAGE_SLACK:
                why[k] = f"gain below the average {average:.6f}"
            elif abs(other - score) <= slack:
                why[k] = f"tie with {name(feature)}"
                ties.append(name(t.feature))
            elif other > score and is_drawn:
                why[k] = "not among the features drawn"
            else:
                why[k] = f"smaller {word}"
            rivals += t.feature != feature
        reasons.append(why)
    verdict = chosen_because(rules, own, position, word, ties, rivals, average, slack)
    if is_drawn:
        verdict += f", among {rules.n_try} features drawn"
    reasons[feature][position] = verdict
    return verdict, reasons


def chosen_because(
    rules: Rules,
    own: Tests,
    position: int,
    word: str,
    ties: list[str],
    rivals: int,
    average: float | None,
    slack: float,
) -> str:
    """Why the chosen test won."""
    rule = "drawn among equals" if rules.has_random_ties else "the first feature wins"
    if ties:
        verdict = f"tie with {', '.join(ties)}: {rule}"
        return f"no test lowers the impurity; {verdict}" if float(own.worth.decrease[position]) <= slack else verdict
    is_equal = own.is_admissible & (np.abs(own.score - own.score[position]) <= slack)
    if rivals == 0 and np.count_nonzero(own.is_admissible) == 1:
        return "the only admissible test"
    verdict = f"largest {word}"
    if average is not None:
        verdict += f" among tests of at least the average gain {average:.6f}"
    if own.kind == THRESHOLD and np.count_nonzero(is_equal) > 1:
        verdict += "; of equal cuts " + ("one is drawn" if rules.has_random_ties else "the lowest wins")
    return verdict


def why_leaf(
    rules: Rules, tests: list[Tests], depth: int, n_rows: int, weight: float, spread: float, *, is_pure: bool
) -> str:
    """Why a node asks nothing: the first rule of the grower that holds. spread: standard deviation of the targets."""
    least = rules.min_samples_leaf
    rules_that_end = [
        (n_rows == 0, "no rows: answers as its parent"),
        (is_pure, "pure"),
        (rules.max_depth is not None and depth >= rules.max_depth, f"max_depth={rules.max_depth} reached"),
        (n_rows < rules.min_samples_split, f"fewer than min_samples_split={rules.min_samples_split} rows"),
        (
            (weight if rules.choice == "c45" else n_rows) < 2 * least,
            f"fewer rows than two branches of min_samples_leaf={least} need",
        ),
        (spread < rules.min_target_std, f"standard deviation below min_target_std={rules.min_target_std:g}"),
        (weight < 2.0 * rules.min_weight_leaf, "less weight than two branches of min_weight_fraction_leaf need"),
    ]
    return next((why for holds, why in rules_that_end if holds), "") or no_test_because(rules, tests)


def no_test_because(rules: Rules, tests: list[Tests]) -> str:
    """Why none of the tests was made at a node that was large enough."""
    offered = [t for t in tests if t.kind != LEAF]
    if not offered:
        return "no feature tells the rows apart"
    if not any(t.is_admissible.any() for t in offered):
        faults = sorted({reason for t in offered for reason in t.reasons})
        return f"no admissible test: {faults[0]}" if len(faults) == 1 else "no admissible test"
    if rules.choice == "c45" and max(float(t.score[t.best]) for t in offered) <= C45_RATIO_SLACK:
        return "no test gains"
    if rules.max_leaf_nodes is not None:
        return f"max_leaf_nodes={rules.max_leaf_nodes} reached"
    return f"cut back by {rules.pruning}" if rules.pruning else "cut back after growing"


def leaf_reasons(tests: list[Tests], verdict: str) -> list[list[str]]:
    """What speaks against the tests of a leaf: their own faults, else what speaks against all."""
    return [[reason or verdict for reason in t.reasons] for t in tests]
