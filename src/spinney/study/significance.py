"""What a study may conclude: the best method, and whether the others are significantly worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.study.resampling import corrected_t_test, standard_error
from spinney.study.result import Difference, MethodResult

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.05  # below it a difference is called one
SMALLEST = 0.01  # of the way from the baseline to the best: what is less does not matter


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


def find_smallest(results: Sequence[MethodResult], best: str | None, *, is_greater_better: bool) -> float | None:
    """The smallest difference that matters: a part of what the best gains over the baseline; None without a gain."""
    named = {result.key: result for result in results}
    if best is None or "baseline" not in named:
        return None
    gaps = find_gaps(named[best], named["baseline"], 1.0 if is_greater_better else -1.0)
    gain = float(np.mean(gaps)) if gaps else 0.0
    return SMALLEST * gain if gain > 0.0 else None
