"""A study in words: its advice in a sentence or two, and what a reader of the table must know beside it.

A method is *as good* as the best if it is behind by less than matters and not significantly; *open* if it is behind by
more, which the folds do not tell from chance; *uneven* if it is far behind and they still do not, as it differs so much
from fold to fold. One that does not beat the baseline is none of these, whatever the test says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney.study.resampling import standard_error
from spinney.study.significance import LEVEL, SMALLEST, find_gaps, find_smallest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from spinney.study.metrics import Metric
    from spinney.study.result import Difference, MethodResult, TableSummary

MANY = 0.9  # share of the commonest class above which accuracy means little
FAR = 1 / 3  # of the way from the baseline to the best: what is further behind is no choice, whatever the test says
READABLE = 50  # leaves of a tree that people still read
NOTICED = 0.1  # seconds of a fit: what is shorter is as good as at once
TIMES = 1.5  # as fast: less is not worth a word
BUDGET = "the budget was spent"


class Standing(NamedTuple):
    """The other methods, by what is known of their distance to the best."""

    equal: list[MethodResult]
    open: list[MethodResult]
    uneven: list[MethodResult]
    slight: list[MethodResult]  # significantly worse, but by less than matters
    weak: list[MethodResult]  # not better than the baseline, and not significantly worse than the best either
    unknown: list[MethodResult]  # too few folds, or an error


def recommend(
    results: Sequence[MethodResult],
    best: str | None,
    differences: Sequence[Difference],
    metric: Metric,
    ratio: float,
    *,
    one_tree: AbstractSet[str],
    leaks: Sequence[str] = (),
) -> str:
    """The advice, in a sentence or two; `leaks` are columns that give the target away."""
    advice = _recommend(results, best, differences, metric, ratio, one_tree) + _tell_unfinished(results)
    if leaks:
        names = join([repr(name) for name in leaks])
        advice += f" But first look at {names}, which {'gives' if len(leaks) == 1 else 'give'} the answer away."
    return advice


def _recommend(
    results: Sequence[MethodResult],
    best: str | None,
    differences: Sequence[Difference],
    metric: Metric,
    ratio: float,
    one_tree: AbstractSet[str],
) -> str:
    if best is None:
        return "No method finished a fold: there is nothing to recommend."
    top = next(result for result in results if result.key == best)
    error = standard_error(top.scores, ratio)
    score = f"{metric.title} {np.mean(top.scores):.3f}" + (f" ± {error:.3f}" if error is not None else "")
    rows = "" if top.n_rows is None else f", fitted on {top.n_rows:,} rows"
    first = f"{_capital(top.name)} is best ({score}{rows})"
    unseen = [result for result in results if not result.scores or result.error is not None]
    if top.is_baseline and len(unseen) == len(results) - 1:
        return f"No method finished a fold but the baseline ({top.name}, {score}): there is nothing to recommend."
    if len(top.scores) < 2:
        return f"{first}, on one fold only: too little to compare methods."
    if top.is_baseline:
        return f"No method beats the baseline ({top.name}, {score}): these columns do not seem to predict the target."
    gaps = {one.key: one for one in differences}
    base = next(result for result in results if result.is_baseline)
    if _is_open(gaps.get(base.key)):
        tale = f"{base.name}, {np.mean(base.scores):.3f}"
        few = f"{len(top.scores)} folds do not separate it from the baseline ({tale})"
        return f"{first}, but {few}: rely on no method yet."
    standing = _sort_out(results, top, gaps, base, is_greater_better=metric.is_greater_better)
    smallest = find_smallest(results, best, is_greater_better=metric.is_greater_better)
    return first + _set_apart(top, standing, gaps, smallest) + _advise(top, standing, one_tree) + "."


def _sort_out(
    results: Sequence[MethodResult],
    top: MethodResult,
    gaps: dict[str, Difference],
    baseline: MethodResult,
    *,
    is_greater_better: bool,
) -> Standing:
    """Which methods are as good as the best, which may be, and of which nothing is known."""
    smallest = find_smallest(results, top.key, is_greater_better=is_greater_better) or 0.0
    standing = Standing([], [], [], [], [], [])
    for result in results:
        gap = gaps.get(result.key)
        if result.key == top.key or result.is_baseline:
            continue
        if gap is None or gap.p_adjusted is None or result.error is not None or result.n_rows is not None:
            standing.unknown.append(result)
        elif _is_open(gap):
            gains = find_gaps(result, baseline, 1.0 if is_greater_better else -1.0)
            is_weak = not gains or float(np.mean(gains)) <= 0.0
            is_far = gap.mean > FAR / SMALLEST * smallest
            near = standing.equal if abs(gap.mean) <= smallest else standing.uneven if is_far else standing.open
            (standing.weak if is_weak else near).append(result)
        elif gap.mean <= smallest:
            standing.slight.append(result)
    for place in (standing.equal, standing.open, standing.uneven, standing.slight):
        place.sort(key=lambda result: gaps[result.key].mean)
    return standing


def _is_open(gap: Difference | None) -> bool:
    """Whether a method was compared with the best, and is not significantly worse."""
    return gap is not None and gap.p_adjusted is not None and gap.p_adjusted >= LEVEL


def _set_apart(top: MethodResult, standing: Standing, gaps: dict[str, Difference], smallest: float | None) -> str:
    """The best method against the others."""
    folds = f"by these {len(top.scores)} folds"
    if not standing.equal and not standing.open:
        which = " that beats the baseline" if standing.weak else " that was scored" if standing.unknown else ""
        which = " that was scored and beats the baseline" if standing.weak and standing.unknown else which
        text = f", and significantly better than every other method{which}"
        if standing.uneven:
            names = _name_with_gaps(standing.uneven, gaps)
            text += f" but {names}, too uneven {folds} to be sure"
        if standing.slight:
            names = join([one.name for one in standing.slight])
            verb = "is" if len(standing.slight) == 1 else "are"
            text += f"; {names} {verb} less than {smallest:.2g} behind, which hardly matters"
        return text
    text = ""
    if standing.equal:
        verb = "does" if len(standing.equal) == 1 else "do"
        text += (
            f"; {join([one.name for one in standing.equal])} {verb} as well, less than {smallest:.2g} apart "
            f"({SMALLEST:.0%} of the way from the baseline to the best) and not significantly"
        )
        text += "" if standing.open else f" {folds}"
    if standing.open:
        names = _name_with_gaps(standing.open, gaps)
        text += f"; {names} {'is' if len(standing.open) == 1 else 'are'} not significantly worse {folds}"
    if standing.uneven:
        names = _name_with_gaps(standing.uneven, gaps)
        text += f"; {names} {'is' if len(standing.uneven) == 1 else 'are'} too uneven to be sure"
    return text


def _name_with_gaps(methods: Sequence[MethodResult], gaps: dict[str, Difference]) -> str:
    """Methods in a sentence, each with how far it is behind."""
    return join([f"{one.name} ({tell_gap(gaps[one.key].mean)})" for one in methods])


def tell_gap(gap: float) -> str:
    """How far a method is behind the best, or ahead in the folds that both finished."""
    size = abs(gap)
    text = f"{size:,.0f}" if size >= 100.0 else f"{size:.3f}" if size >= 0.0005 else f"{size:.1g}"
    return f"{text} {'behind' if gap >= 0.0 else 'ahead'}"


def _advise(top: MethodResult, standing: Standing, one_tree: AbstractSet[str]) -> str:
    """Why another method may be preferred: it is a tree that can be read, or much faster to fit."""

    def is_readable(result: MethodResult) -> bool:
        return result.key in one_tree and (result.n_leaves or math.inf) <= READABLE

    near = [*standing.equal, *standing.open, *standing.slight]
    if not near:
        return ""
    readable = [result for result in near if is_readable(result)]
    if readable and not is_readable(top):
        least = min(readable, key=lambda result: result.n_leaves or math.inf)
        return f", and {least.name} is a single tree, of {least.n_leaves or 1:.0f} leaves, that can be read"
    fastest = min(near, key=lambda result: float(np.mean(result.fit_seconds)))
    long, brief = float(np.mean(top.fit_seconds)), float(np.mean(fastest.fit_seconds))
    if long < TIMES * max(brief, NOTICED):
        return ""
    if brief < NOTICED:  # how many times is a matter of chance there
        return f", and {fastest.name} takes less than {NOTICED} s to fit instead of {long:.1f} s"
    return f", and {fastest.name} is {long / brief:.{0 if long >= 2 * brief else 1}f} times faster to fit"


def _tell_unfinished(results: Sequence[MethodResult]) -> str:
    """Which methods lack folds, as the advice might be another with them."""
    missing = [result for result in results if result.left_out is not None and not result.is_baseline]
    if not missing:
        return ""
    why = "Time was short" if any(result.left_out == BUDGET for result in missing) else "The study was interrupted"
    return f" {why}: {join([one.name for one in missing])} did not finish every fold."


def note_problems(
    summary: TableSummary, metric: Metric, results: Sequence[MethodResult], n_folds: int
) -> tuple[str, ...]:
    """What a reader of the table must know beside it."""
    notes = list(summary.leaks)
    notes += [f"column {name!r} was left out: {why}" for name, why in summary.dropped.items()]
    notes += [f"column {one.name!r}: {one.suspicion}" for one in summary.used if one.suspicion is not None]
    notes += [f"column {text}" for text in summary.redundant]
    notes += [] if summary.rare_warning is None else [summary.rare_warning]
    notes += [] if summary.copies_warning is None else [summary.copies_warning]
    if summary.classes and metric.name == "accuracy" and summary.classes[0][1] > MANY * summary.n_rows:
        share = summary.classes[0][1] / summary.n_rows
        notes.append(f"{share:.1%} of the rows are of one class: look at balanced_accuracy or roc_auc too")
    base = next((result for result in results if result.is_baseline), None)
    sign = 1.0 if metric.is_greater_better else -1.0
    for result in results:
        if result.error is not None:
            notes.append(f"{result.name} failed: {result.error}")
        elif result.left_out is not None:
            rows = "" if result.n_rows is None else f" fitted on {result.n_rows:,} rows"
            notes.append(f"{result.name}: {len(result.folds)} of {n_folds} folds{rows}, {result.left_out}")
        gains = [] if base is None or result is base or result.error is not None else find_gaps(result, base, sign)
        if gains and float(np.mean(gains)) < 0.0:
            notes.append(
                f"{result.name} is worse than the baseline ({metric.title} {np.mean(result.scores):.3f}): "
                "do not use it here"
            )
    return tuple(notes)


def join(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
