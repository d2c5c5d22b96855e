"""What a study may conclude: the best method, and whether the others are significantly worse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.resampling import corrected_t_test, standard_error
from spinney.study.result import Difference, MethodResult

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.05  # below it a difference is called one
NEARLY = 2 / 3  # of the most folds: methods that finished so many are compared by their mean in the folds of all
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
    """The key of the best method without an error: by its mean among those that finished most folds, or nearly.

    The mean is over the folds that all of these finished. One that finished fewer takes its place where it is
    significantly better in the folds that both finished, and better than all others in its own. Methods that do not
    beat the baseline in the folds that both finished are not looked at, nor are those that were fitted on fewer rows,
    unless there are no others.
    """
    sound = [result for result in results if result.scores and result.error is None]
    if not sound:
        return None
    sign = 1.0 if is_greater_better else -1.0
    base = next((result for result in sound if result.is_baseline), None)
    rivals = [one for one in sound if one is not base and (base is None or _is_ahead(one, base, sign))]
    rivals = [one for one in rivals if one.n_rows is None] or rivals
    if not rivals:
        return None if base is None else base.key
    most = max(len(result.scores) for result in rivals)
    near = [result for result in rivals if len(result.scores) >= NEARLY * most]
    shared = set.intersection(*(set(result.folds) for result in near))
    best = max(near, key=lambda result: sign * _mean_of(result, shared))
    ahead = {best.key: 0.0}
    for result in (one for one in rivals if one not in near):
        gaps = find_gaps(best, result, sign)
        p = corrected_t_test(gaps, ratio, step)
        if p is not None and p < LEVEL and not any(_is_ahead(one, result, sign) for one in rivals):
            ahead[result.key] = -float(np.mean(gaps))
    return max(ahead, key=lambda key: ahead[key])


def _mean_of(result: MethodResult, folds: set[int]) -> float:
    """Mean score in some folds; in all of them where these are none."""
    scores = [score for fold, score in zip(result.folds, result.scores, strict=True) if fold in folds]
    return float(np.mean(scores or result.scores))


def _is_ahead(one: MethodResult, other: MethodResult, sign: float) -> bool:
    """Whether a method scored better than another in the folds that both finished, and these are all of the other's."""
    gaps = find_gaps(one, other, sign)
    is_whole = other.is_baseline or len(gaps) == len(other.folds)
    return bool(gaps) and is_whole and float(np.mean(gaps)) > 0.0


def keep_folds(results: Sequence[MethodResult], best: str | None) -> tuple[MethodResult, ...]:
    """The results in the folds of the best alone, where it finished fewer: so that scores are of the same folds.

    The baseline keeps all of its own: it costs nothing, and is no rival.
    """
    top = next((result for result in results if result.key == best), None)
    if top is None:
        return tuple(results)
    return tuple(
        _cut(one, top.folds) if set(one.folds) > set(top.folds) and not one.is_baseline else one for one in results
    )


def _cut(result: MethodResult, folds: tuple[int, ...]) -> MethodResult:
    kept = [place for place, fold in enumerate(result.folds) if fold in folds]

    def of_these(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(values[place] for place in kept) if values else ()

    return replace(
        result,
        folds=of_these(result.folds),
        scores=of_these(result.scores),
        fit_seconds=of_these(result.fit_seconds),
        predict_seconds=of_these(result.predict_seconds),
        chosen=of_these(result.chosen),
    )


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
