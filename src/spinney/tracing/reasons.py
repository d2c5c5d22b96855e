"""Why a node has the test it has, in short sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._criteria import CRITERIA
from spinney._jit import interpreted
from spinney._types import LEAF, THRESHOLD
from spinney.tracing.candidates import TIE_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.tracing.candidates import SplitRules, Tests

_ties = interpreted().common.ties
C45_AVERAGE_SLACK, C45_RATIO_SLACK = _ties.C45_AVERAGE_SLACK, _ties.C45_SMALL


def measure_word(rules: SplitRules) -> str:
    """What the tests are compared by."""
    return CRITERIA[rules.criterion].decrease if rules.choice == "decrease" else "gain ratio"


def slack_of(rules: SplitRules, tests: list[Tests]) -> float:
    """Scores that differ by no more are a tie."""
    if rules.choice == "c45":
        return C45_RATIO_SLACK
    scale = max(float(t.worth.before[0]) for t in tests) if rules.choice == "decrease" else 1.0
    return TIE_SCORE * scale


def average_gain(tests: list[Tests]) -> float | None:
    """Mean gain of the features' best tests; None where no feature has one."""
    gains = [max(float(t.worth.gain[t.best]), 0.0) for t in tests if t.kind != LEAF and t.is_admissible[t.best]]
    return sum(gains) / len(gains) if gains else None


class Contest:
    """The tests of a node against the one it has.

    Parameters
    ----------
    rules : Rules
    tests : list of Tests
    chosen : (int, int)
        Feature, and position among its tests.
    name : callable
        What people call a feature.
    average : float, optional
        Gain that C4.5 wants at least.
    """

    def __init__(
        self,
        rules: SplitRules,
        tests: list[Tests],
        chosen: tuple[int, int],
        name: Callable[[int], str],
        average: float | None,
    ) -> None:
        self.rules = rules
        self.tests = tests
        self.name = name
        self.feature, self.position = chosen
        self.own = tests[self.feature]
        self.score = float(self.own.score[self.position])
        self.word = measure_word(rules) + " beyond chance" * any(t.luck[t.best] > 0.0 for t in tests)
        self.slack = slack_of(rules, tests)
        self.average = average_gain(tests) if rules.choice == "guarded_ratio" else average
        self.average_slack = C45_AVERAGE_SLACK if rules.choice == "c45" else self.slack
        self.is_drawn = 0 < rules.n_try < len(tests)
        self.ties: list[str] = []  # features that are just as good
        self.better: list[str] = []  # tests that are better: pruning has led other rows here than growing did

    def against(self, t: Tests, k: int) -> str:
        """What speaks against an admissible test, other than the one chosen."""
        is_tie = abs(float(t.score[k]) - self.score) <= self.slack
        if t.feature == self.feature:
            return self.against_own(t, k, is_tie=is_tie)
        if k != t.best:
            return f"not the best threshold of {self.name(t.feature)}"
        if self.average is not None and t.worth.gain[k] < self.average - self.average_slack:
            return f"gain below the average {self.average:.6f}"
        if is_tie:
            self.ties.append(self.name(t.feature))
            return f"tie with {self.name(self.feature)}"
        return f"smaller {self.word}" if float(t.score[k]) < self.score else self.outdone(t, self.name(t.feature))

    def against_own(self, t: Tests, k: int, *, is_tie: bool) -> str:
        """What speaks against another threshold of the feature that won."""
        if is_tie:
            return "tie with a lower threshold"
        if k == t.best and float(t.score[k]) > self.score:
            return self.outdone(t, f"another threshold of {self.name(t.feature)}")
        return f"smaller {self.word} than another threshold"

    def outdone(self, t: Tests, name: str) -> str:
        """Why a better test, by this name, did not win."""
        if self.is_drawn and t.feature != self.feature:
            return "not among the features drawn"
        self.better.append(name)
        return f"larger {self.word}, but pruning has raised this subtree"

    def reason(self) -> str:
        """Why the chosen test won; to be called after `against` of all others, which finds the ties."""
        own = self.own
        if self.better:
            return f"raised from below by pruning: {', '.join(self.better)} would be better here"
        if not own.is_admissible[self.position]:
            return "raised from below by pruning: growing would not make this split here"
        if self.ties:
            rule = "drawn among equals" if self.rules.has_random_ties else "the first feature wins"
            is_useless = float(own.worth.decrease[self.position]) <= self.slack
            return f"{'no test lowers the impurity; ' * is_useless}tie with {', '.join(self.ties)}: {rule}"
        if sum(np.count_nonzero(t.is_admissible) for t in self.tests) == 1:
            return "the only admissible test"
        reason = f"largest {self.word}"
        if self.average is not None:
            reason += f" among tests of at least the average gain {self.average:.6f}"
        n_equal = np.count_nonzero(own.is_admissible & (np.abs(own.score - self.score) <= self.slack))
        if own.kind == THRESHOLD and n_equal > 1:
            reason += (
                f"; of {n_equal} equal thresholds {'one is drawn' if self.rules.has_random_ties else 'the lowest wins'}"
            )
        return reason


def give_reasons(
    rules: SplitRules, tests: list[Tests], chosen: tuple[int, int], name: Callable[[int], str], average: float | None
) -> tuple[str, list[list[str]]]:
    """Why a node has its test, and what speaks against each other test.

    average: gain of the features' best tests by C4.5's count, where it enters the choice.
    """
    contest = Contest(rules, tests, chosen, name, average)
    reasons = []
    for t in tests:
        why = list(t.reasons)
        for k in np.flatnonzero(t.is_admissible):
            if (t.feature, int(k)) != chosen:
                why[k] = contest.against(t, int(k))
        reasons.append(why)
    reason = contest.reason()
    if contest.is_drawn:
        reason += f", among {rules.n_try} features drawn"
    reasons[chosen[0]][chosen[1]] = reason
    return reason, reasons


def why_leaf(
    rules: SplitRules, tests: list[Tests], depth: int, n_rows: int, weight: float, spread: float, *, is_pure: bool
) -> str:
    """Why a node is a leaf: the first rule of the grower that holds. spread: standard deviation of the targets."""
    least = rules.min_samples_leaf
    rules_that_end = [
        (n_rows == 0, "no rows: predicts as its parent"),
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


def no_test_because(rules: SplitRules, tests: list[Tests]) -> str:
    """Why none of the tests was made at a node that was large enough."""
    offered = [t for t in tests if t.kind != LEAF]
    if not offered:
        return "no feature differs among the rows"
    if not any(t.is_admissible.any() for t in offered):
        faults = sorted({reason for t in offered for reason in t.reasons})
        return f"no admissible test: {faults[0]}" if len(faults) == 1 else "no admissible test"
    if rules.choice == "c45" and max(float(t.score[t.best]) for t in offered) <= C45_RATIO_SLACK:
        return "no test gains"
    if rules.max_leaf_nodes is not None:
        return f"max_leaf_nodes={rules.max_leaf_nodes} reached"
    return f"its split was removed by {rules.pruning}" if rules.pruning else "its split was removed after growing"


def leaf_reasons(tests: list[Tests], common: str) -> list[list[str]]:
    """What speaks against the tests of a leaf: their own faults, else what speaks against all."""
    return [[reason or common for reason in t.reasons] for t in tests]
