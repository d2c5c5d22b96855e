"""What a study may conclude: the best method, whether the others are significantly worse, and advice in a sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney.study.resampling import corrected_t_test, standard_error
from spinney.study.result import Difference, MethodResult, TableSummary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from spinney.study.metrics import Metric

LEVEL = 0.05  # below it a difference is called one
MANY = 0.9  # share of the commonest class above which accuracy means little


def adjust_by_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's p-values for as many comparisons as there are numbers; None stays None.

    Examples
    --------
    >>> adjust_by_holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def find_best(
    results: Sequence[MethodResult], ratio: float, *, is_greater_better: bool, step: float = 0.0
) -> str | None:
    """The key of the best method without an error: by its mean among those that finished the most folds.

    One that finished fewer takes its place where it is significantly better in the folds that both finished; that of
    the baseline, which costs no time and so has most folds, where it is better at all.
    """
    sound = [result for result in results if result.scores and result.error is None]
    if not sound:
        return None
    most = max(len(result.scores) for result in sound)
    sign = 1.0 if is_greater_better else -1.0
    best = max(
        (result for result in sound if len(result.scores) == most),
        key=lambda result: sign * float(np.mean(result.scores)),
    )
    ahead = {best.key: 0.0}
    for result in (one for one in sound if len(one.scores) < most):
        gaps = find_gaps(best, result, sign)
        p = corrected_t_test(gaps, ratio, step)
        if gaps and (best.is_baseline or (p is not None and p < LEVEL)):
            ahead[result.key] = -float(np.mean(gaps))
    return max(ahead, key=lambda key: ahead[key])


def find_gaps(best: MethodResult, other: MethodResult, sign: float) -> list[float]:
    """How much worse the other scored in each fold that both finished; `sign` is -1 where less is better."""
    of_best = dict(zip(best.folds, best.scores, strict=True))
    return [
        sign * (of_best[fold] - score) for fold, score in zip(other.folds, other.scores, strict=True) if fold in of_best
    ]


def find_differences(
    results: Sequence[MethodResult], best: str | None, ratio: float, *, is_greater_better: bool, step: float = 0.0
) -> tuple[Difference, ...]:
    """Every other method with a score against the best, fold by fold; `step` as in `standard_error`."""
    if best is None:
        return ()
    top = next(result for result in results if result.key == best)
    sign = 1.0 if is_greater_better else -1.0
    others = ((result.key, find_gaps(top, result, sign)) for result in results if result.key != best)
    found = [(key, gaps) for key, gaps in others if gaps]
    p_values = [corrected_t_test(gaps, ratio, step) for _, gaps in found]
    return tuple(
        Difference(key, float(np.mean(gaps)), standard_error(gaps, ratio, step), p, adjusted, len(gaps))
        for (key, gaps), p, adjusted in zip(found, p_values, adjust_by_holm(p_values), strict=True)
    )


# --- In words -------------------------------------------------------------------------------------------------


def recommend(
    results: Sequence[MethodResult],
    best: str | None,
    differences: Sequence[Difference],
    metric: Metric,
    ratio: float,
    *,
    one_tree: AbstractSet[str],
) -> str:
    """The advice, in a sentence or two."""
    if best is None:
        return "No method finished a fold: there is nothing to recommend."
    named = {result.key: result for result in results}
    top = named[best]
    tied = [named[one.key] for one in differences if one.p_adjusted is None or one.p_adjusted >= LEVEL]
    tied = [result for result in tied if result.error is None]
    error = standard_error(top.scores, ratio)
    score = f"{metric.title} {np.mean(top.scores):.3f}" + (f" ± {error:.3f}" if error is not None else "")
    first = f"{_capital(top.name)} is best ({score})"
    unseen = [result for result in results if not result.scores or result.error is not None]
    if top.is_baseline and len(unseen) == len(results) - 1:
        return f"No method finished a fold but the baseline ({top.name}, {score}): there is nothing to recommend."
    if len(top.scores) < 2:
        return f"{first}, on one fold only: too little to compare methods."
    if top.is_baseline:
        return f"No method beats the baseline ({top.name}, {score}): these columns do not seem to predict the target."
    return first + _set_apart(top, tied, named["baseline"], one_tree, is_all=not unseen)


def _set_apart(
    top: MethodResult,
    tied: Sequence[MethodResult],
    baseline: MethodResult,
    one_tree: AbstractSet[str],
    *,
    is_all: bool,
) -> str:
    """The best method against the others: `tied` are not significantly worse; `is_all`: each method was scored."""
    if any(result.is_baseline for result in tied):
        base = f"{baseline.name}, {np.mean(baseline.scores):.3f}"
        return f", but {len(top.scores)} folds do not separate it from the baseline ({base}): rely on no method yet."
    if not tied:
        return f", and significantly better than every other method{'' if is_all else ' that was scored'}."
    names = _list([result.name for result in tied])
    verb = "is" if len(tied) == 1 else "are"
    folds = f"by these {len(top.scores)} folds"
    return f"; {names} {verb} not significantly worse {folds}{_advise(top, tied, one_tree)}."


def _advise(top: MethodResult, tied: Sequence[MethodResult], one_tree: AbstractSet[str]) -> str:
    """Why one of the tied methods may be preferred: it is a single tree, or much faster to fit."""
    if top.key not in one_tree:
        readable = [result for result in tied if result.key in one_tree]
        if readable:
            least = min(readable, key=lambda result: result.n_leaves or math.inf)
            return f", and {least.name} is a single tree, of {least.n_leaves or 1:.0f} leaves, that can be read"
    fastest = min(tied, key=lambda result: float(np.mean(result.fit_seconds)))
    times = float(np.mean(top.fit_seconds)) / max(float(np.mean(fastest.fit_seconds)), 1e-9)
    return f", and {fastest.name} is {times:.0f} times faster to fit" if times >= 1.5 else ""


def note_problems(
    summary: TableSummary, metric: Metric, results: Sequence[MethodResult], n_folds: int
) -> tuple[str, ...]:
    """What a reader of the table must know beside it."""
    notes = [f"column {name!r} was left out: {why}" for name, why in summary.dropped.items()]
    notes += [f"column {one.name!r}: {one.suspicion}" for one in summary.used if one.suspicion is not None]
    notes += [] if summary.copies_warning is None else [summary.copies_warning]
    if summary.classes and metric.name == "accuracy" and summary.classes[0][1] > MANY * summary.n_rows:
        share = summary.classes[0][1] / summary.n_rows
        notes.append(f"{share:.1%} of the rows are of one class: look at balanced_accuracy or roc_auc too")
    for result in results:
        if result.error is not None:
            notes.append(f"{result.name} failed: {result.error}")
        elif result.left_out is not None:
            notes.append(f"{result.name}: {len(result.folds)} of {n_folds} folds, {result.left_out}")
    return tuple(notes)


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
