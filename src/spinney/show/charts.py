"""The pictures of a study and its evidence: one function each, from plain data to a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.reading.wording import count
from spinney.show.chart_model import Chart
from spinney.show.marks import NEUTRAL, Axis, Band, Bars, Cells, Ends, Guide, Histogram, Line, Mark, Points, RowStrip
from spinney.show.names import shown as caption
from spinney.show.numbers import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.study.evidence import (
        Calibration,
        Confusion,
        Coverage,
        Dependence,
        Importance,
        LearningCurve,
        Profile,
        PruningStep,
        Residuals,
        Separation,
        Worth,
    )
    from spinney.study.result import Study

BASE = "baseline"
FAR = 1.5  # times the range of all others: a baseline so far off is not drawn
MAX_SERIES = 8  # in one picture: more could not be told apart
MAX_INTERVALS = 3  # series whose error bars do not hide each other
MAX_CLASSES = 12  # of a confusion, the last for all others
MAX_FEATURES = 15
MAX_LEVELS = 15
MAX_LINES = 40  # of single rows
MANY_TIMES = 20  # the fewest trees: then they are counted on a logarithmic axis
MANY_LEAVES = 20  # from here on leaves are counted on a logarithmic axis


def scores(study: Study) -> Chart:
    """The mean score of each method with its standard error, the best first.

    A baseline that is far off is named in the label instead: beside it all others would be one point.
    """
    shown = {one.key: (one, mean, study.standard_error(one)) for one in study.ranked if (mean := one.mean) is not None}
    ends = [mean + side * (error or 0.0) for key, (_, mean, error) in shown.items() for side in (-1, 1) if key != BASE]
    better = "higher is better" if study.is_greater_better else "lower is better"
    label, rules = f"{study.metric_title}, {better}", []
    if BASE in shown:
        base, mean, _ = shown[BASE]
        name = f"{caption(base.name)}, {short(mean)}"
        if ends and max(min(ends) - mean, mean - max(ends)) > FAR * (max(ends) - min(ends)):
            label += f" (far off: {name})"
            del shown[BASE]
        else:
            rules = [Guide(x=mean, name=name)]
    names = tuple(caption(one.name) for one, _, _ in shown.values())
    means, errors = tuple(mean for _, mean, _ in shown.values()), [error for *_, error in shown.values()]
    best = f" Best: {names[0]}, {short(means[0])}{plus_minus(errors[0])}." if shown else ""
    return Chart(
        title=f"{capital(study.metric_title)} of each method",
        description=f"Mean over {study.folds}, with its standard error. {capital(label)}.{best}",
        x=Axis(label),
        y=Axis("method", levels=names),
        marks=(*rules, Points(means, tuple(map(float, range(len(names)))), x_ends=ends_of(means, errors))),
    )


def scores_by_trees(curves: Sequence[LearningCurve], metric: str) -> Chart:
    """Held-out scores against the number of trees; `metric` names them."""
    marks: list[Mark] = []
    for series, one in enumerate(curves[:MAX_SERIES]):
        x, name = tuple(map(float, one.trees)), caption(one.name)
        none = (None,) * len(x)
        marks += [
            Line(x, one.scores, name, series),
            Points(x, one.scores, name, series, y_ends=ends_of(one.scores, one.errors or none)),
        ]
    last = "; ".join(
        f"{caption(one.name)} {short(one.scores[-1])} with {one.trees[-1]} trees" for one in curves if one.trees
    )
    trees = [n for one in curves for n in one.trees]
    spread = ", with the standard error over folds" if any(one.errors for one in curves) else ""
    return Chart(
        title=f"{capital(metric)} against the number of trees",
        description=f"On held-out rows{spread}. {last}.",
        x=Axis("trees", is_log=max(trees, default=1) > MANY_TIMES * min(trees, default=1), is_whole=True),
        y=Axis(metric),
        marks=tuple(marks),
    )


def seconds_by_trees(curves: Sequence[LearningCurve]) -> Chart:
    """Seconds to fit against the number of trees."""
    marks: list[Mark] = []
    for series, one in enumerate(curves[:MAX_SERIES]):
        x, name = tuple(map(float, one.trees)), caption(one.name)
        marks += [Line(x, one.seconds, name, series), Points(x, one.seconds, name, series)]
    last = "; ".join(
        f"{caption(one.name)} {one.seconds[-1]:.3g} s for {one.trees[-1]} trees" for one in curves if one.trees
    )
    return Chart(
        title="Time to fit against the number of trees",
        description=f"Mean seconds over folds. {last}.",
        x=Axis("trees", is_whole=True),
        y=Axis("seconds", lowest=0.0),
        marks=tuple(marks),
    )


def roc(separations: Sequence[Separation]) -> Chart:
    """True against false positive rate, a curve for each class."""
    shown = separations[:MAX_SERIES]
    return Chart(
        title="ROC: rows found against false alarms",
        description=f"{rows_of(shown)} "
        + "; ".join(f"{caption(one.label)}: area {one.roc_auc:.3f} under the curve" for one in shown)
        + ". Chance gives the diagonal and an area of 0.5.",
        x=Axis("false positive rate", 0.0, 1.0),
        y=Axis("true positive rate", 0.0, 1.0),
        marks=(
            Guide(name="chance"),
            *(curve(one.roc, f"{caption(one.label)}, area {one.roc_auc:.3f}", k) for k, one in enumerate(shown)),
        ),
        is_square=True,
    )


def precision_recall(separations: Sequence[Separation]) -> Chart:
    """Precision against recall, a curve for each class."""
    shown = separations[:MAX_SERIES]
    base = [Guide(y=one.n_positive / one.n_rows, name="chance") for one in shown if len(shown) == 1]
    return Chart(
        title="Precision against recall",
        description=f"{rows_of(shown)} "
        + "; ".join(f"{caption(one.label)}: average precision {one.average_precision:.3f}" for one in shown)
        + ". Chance gives the share of the class.",
        x=Axis("recall: share of the class that is found", 0.0, 1.0),
        y=Axis("precision: share of the found that is right", 0.0, 1.0),
        marks=(
            *base,
            *(
                curve(one.recall, f"{caption(one.label)}, mean {one.average_precision:.3f}", k, is_step=True)
                for k, one in enumerate(shown)
            ),
        ),
        is_square=True,
    )


def calibration(calibrations: Sequence[Calibration]) -> Chart:
    """How often rows were of a class against the predicted probability of the class."""
    shown = calibrations[:MAX_SERIES]
    marks: list[Mark] = [Guide(name="as often as predicted")]
    for k, one in enumerate(shown):
        name = f"{caption(one.label)}, Brier score {one.brier:.3f}"
        ends = tuple(zip(one.low, one.high, strict=True)) if len(shown) <= MAX_INTERVALS else None
        marks += [
            Line(one.predicted, one.observed, name, k),
            Points(one.predicted, one.observed, name, k, y_ends=ends),
        ]
    return Chart(
        title="Calibration: what probabilities are worth",
        description="How often held-out rows were of a class, by its predicted probability, with 95% intervals. "
        + "; ".join(f"{caption(one.label)}: Brier score {one.brier:.3f}" for one in shown)
        + ". Below the diagonal probabilities are too high, above it too low.",
        x=Axis("predicted probability", 0.0, 1.0),
        y=Axis("share of rows that were of the class", 0.0, 1.0),
        marks=tuple(marks),
        is_square=True,
    )


def confusion(found: Confusion) -> Chart:
    """Rows by true and predicted class, shaded by their share of the true class."""
    names, counts = fold_classes(found)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right, n_rows = int(np.trace(np.array(found.counts))), int(counts.sum())
    return Chart(
        title="Confusion: predicted against true class",
        description=f"Of {n_rows:,} held-out rows {right:,} were predicted correctly: those on the diagonal. "
        "Rows are true classes, columns are predicted classes.",
        x=Axis("predicted class", levels=names),
        y=Axis("true class", levels=names),
        marks=(
            Cells(
                tuple(map(tuple, (counts / totals).tolist())), tuple(tuple(map(str, row)) for row in counts.tolist())
            ),
        ),
    )


def residuals(found: Residuals) -> Chart:
    """True against predicted values."""
    low, high = min(found.predicted + found.actual), max(found.predicted + found.actual)
    shown = len(found.predicted)
    sample = "" if shown == found.n_rows else f" {shown} of them are drawn."
    return Chart(
        title="True against predicted values",
        description=f"{found.n_rows:,} held-out rows: root mean squared error {short(found.rmse)}, mean absolute error "
        f"{short(found.mae)}.{sample} A perfect prediction is on the diagonal.",
        x=Axis("predicted value", low, high),
        y=Axis("true value", low, high),
        marks=(Points(found.predicted, found.actual, "held-out rows"), Guide(name="right")),
        is_square=True,
    )


def residual_histogram(found: Residuals) -> Chart:
    """How often predictions were wrong by how much."""
    return Chart(
        title="Residuals: true minus predicted value",
        description=f"Residuals of {found.n_rows:,} held-out rows: root mean squared error "
        f"{short(found.rmse)}, mean absolute error {short(found.mae)}. The outermost columns hold what lies beyond.",
        x=Axis("true minus predicted value"),
        y=Axis("rows", is_whole=True),
        marks=(Histogram(found.edges, tuple(map(float, found.counts))), Guide(x=0.0, name="no error")),
    )


def coverage(coverages: Sequence[Coverage]) -> Chart:
    """Share of rows whose true value or class was covered, against the nominal coverage."""
    shown = coverages[:MAX_SERIES]
    lowest = min((min((*one.nominal, *one.low)) for one in shown), default=0.0)
    marks: list[Mark] = [Guide(name="as promised")]
    for k, one in enumerate(shown):
        name = caption(one.name)
        marks += [
            Line(one.nominal, one.covered, name, k),
            Points(one.nominal, one.covered, name, k, y_ends=tuple(zip(one.low, one.high, strict=True))),
        ]
    return Chart(
        title="Coverage: how often the truth was inside",
        description="Share of held-out rows whose true value or class was covered, with 95% intervals. "
        + "; ".join(
            f"{caption(one.name)}: {one.covered[-1]:.1%} where {one.nominal[-1]:.0%} is nominal" for one in shown
        )
        + ". Above the diagonal intervals or sets are wider than they need to be, below it too narrow.",
        x=Axis("nominal coverage", lowest, 1.0),
        y=Axis("share of rows covered", lowest, 1.0),
        marks=tuple(marks),
        is_square=True,
    )


def permutation_importances(importances: Sequence[Importance]) -> Chart:
    """How much worse trees are on their out-of-bag rows when a column is permuted, the most important first."""
    shown = by_worth(importances)
    values = tuple(one.permutation for one in shown)
    return Chart(
        title="Importance by permutation",
        description="How much the error of trees on their out-of-bag rows rises when a column is permuted, with "
        "standard errors. " + list_first([one.feature for one in shown], values),
        x=Axis("rise of the error when permuted"),
        y=Axis("column", levels=tuple(caption(one.feature) for one in shown)),
        marks=(Bars(values, ends=ends_of(values, [one.permutation_error for one in shown])),),
    )


def impurity_importances(importances: Sequence[Importance]) -> Chart:
    """What splits on a column took from the impurity of nodes, in the order of `permutation_importances`."""
    shown = by_worth(importances)
    values = tuple(one.impurity for one in shown)
    return Chart(
        title="Importance by impurity",
        description="The share of the fall in impurity that splits on a column brought, on the training rows; columns "
        "of many values are flattered. " + list_first([one.feature for one in shown], values),
        x=Axis("share of the fall in impurity"),
        y=Axis("column", levels=tuple(caption(one.feature) for one in shown)),
        marks=(Bars(values, series=1, ends=ends_of(values, [one.impurity_error for one in shown])),),
    )


def worths(found: Sequence[Worth], method: str, metric: str) -> Chart:
    """How much the score of a method on held-out rows falls when a column is shuffled, the most first."""
    shown = found[:MAX_FEATURES]
    values = tuple(one.fall for one in shown)
    return Chart(
        title=f"What columns are worth to {method}",
        description=f"How much worse {metric} is on held-out rows when a column is shuffled, with standard errors of "
        "the shuffles. " + list_first([one.feature for one in shown], values),
        x=Axis(f"loss of {metric} when shuffled"),
        y=Axis("column", levels=tuple(caption(one.feature) for one in shown)),
        marks=(Bars(values, ends=ends_of(values, [one.error for one in shown])),),
    )


def spread(found: Profile) -> Chart:
    """How many rows have which values of a column."""
    feature = caption(found.feature)
    missing = f" {found.n_missing:,} are missing." if found.n_missing else ""
    if found.edges:
        return Chart(
            title=f"{feature}: rows",
            description=f"Rows by {feature}; beyond both ends lies one row in a hundred, counted in the last bars."
            + missing,
            x=Axis(feature),
            y=Axis("rows", lowest=0.0),
            marks=(Histogram(found.edges, tuple(map(float, found.counts))),),
        )
    some = f" The commonest {len(found.levels)} of {found.n_levels:,}." if found.n_levels > len(found.levels) else ""
    return Chart(
        title=f"{feature}: rows",
        description=f"Rows by level.{some}{missing}",
        x=Axis("rows", lowest=0.0),
        y=Axis(feature, levels=tuple(map(caption, found.levels))),
        marks=(Bars(tuple(map(float, found.counts))),),
    )


def target_by(found: Profile, target: str) -> Chart:
    """The mean of the target, or the share of a class, by the values of a column."""
    feature = caption(found.feature)
    goal = f"mean of {caption(target)}" if found.label is None else f"share of {caption(found.label)}"
    known = [k for k, value in enumerate(found.goals) if value is not None]
    values = tuple(float(found.goals[k] or 0.0) for k in known)
    title = f"{feature} and {caption(target)}"
    low, high = min(values), max(values)
    words = f"The {goal} in the rows of each value: from {short(low)} to {short(high)}, as the table has it."
    if found.edges:
        x = tuple((found.edges[k] + found.edges[k + 1]) / 2.0 for k in known)
        return Chart(title, words, Axis(feature), Axis(goal), (Line(x, values), Points(x, values)))
    levels = tuple(caption(found.levels[k]) for k in known)
    places = tuple(map(float, range(len(known))))
    return Chart(title, words, Axis(goal), Axis(feature, levels=levels), (Points(values, places),))


def dependence(found: Dependence, target: str) -> Chart:
    """The mean prediction as one column varies; `target` names what is predicted."""
    output = (
        f"probability of {caption(found.label)}" if found.label is not None else f"{caption(target)}, mean prediction"
    )
    feature = caption(found.feature)
    title = f"Dependence on {feature}"
    if found.is_number:
        grid = tuple(map(float, found.grid))
        low, high = min(found.mean), max(found.mean)
        return Chart(
            title=title,
            description=f"As {feature} goes from {short(grid[0])} to {short(grid[-1])}, the {output} lies between "
            f"{short(low)} and {short(high)}. Thin lines are single rows; the strip below shows where rows are.",
            x=Axis(feature),
            y=Axis(output),
            marks=(
                *(
                    Line(grid, one, "" if k else "single rows", NEUTRAL, is_faint=True)
                    for k, one in enumerate(found.lines[:MAX_LINES])
                ),
                RowStrip(grid, found.counts),
                Line(grid, found.mean, "mean"),
            ),
        )
    return level_dependence(found, title, output)


def level_dependence(found: Dependence, title: str, output: str) -> Chart:
    """The mean prediction by level of a category, in the order of the grid, with the range of most single rows."""
    order = sorted(sorted(range(len(found.grid)), key=lambda k: -found.counts[k])[:MAX_LEVELS])
    means = tuple(found.mean[k] for k in order)
    spread: Ends | None = None
    if found.lines:
        lows, highs = np.quantile(np.array(found.lines)[:, order], [0.1, 0.9], axis=0).tolist()
        spread = tuple(zip(lows, highs, strict=True))
    return Chart(
        title=title,
        description=f"The {output} by level, with its number of rows; bars hold the middle 80% of single rows.",
        x=Axis(output),
        y=Axis(
            caption(found.feature),
            levels=tuple(caption(found.grid[k]) for k in order),
            notes=tuple(f"({found.counts[k]})" for k in order),
        ),
        marks=(
            Points(means, tuple(map(float, range(len(order)))), "mean, middle 80% (and number) of rows", x_ends=spread),
        ),
    )


def pruning(steps: Sequence[PruningStep], chosen: int, one_error: int, measure: str) -> Chart:
    """Errors of a tree along its pruning path; `chosen` and `one_error` are the steps that were chosen."""
    leaves = tuple(float(step.n_leaves) for step in steps)
    held = [step for step in steps if step.error is not None]
    x, errors = tuple(float(step.n_leaves) for step in held), tuple(step.error or 0.0 for step in held)
    ends = ends_of(errors, [step.standard_error for step in held])
    marks: list[Mark] = []
    if held and all(ends):
        low, high = zip(*(pair for pair in ends if pair is not None), strict=True)
        marks.append(Band(x, low, high, "± standard error"))
    marks.append(Line(leaves, tuple(step.training_error for step in steps), "on the training rows", 1))
    if held:
        marks.append(Line(x, errors, "cross-validated"))
    marks.append(Guide(x=leaves[chosen], name=f"chosen: {count(steps[chosen].n_leaves, 'leaf')}"))
    if one_error != chosen:
        simple = steps[one_error]
        marks.append(
            Points(
                (float(simple.n_leaves),),
                (simple.error if simple.error is not None else simple.training_error,),
                f"within one standard error: {count(simple.n_leaves, 'leaf')}",
                NEUTRAL,
            )
        )
    best = steps[chosen]
    score = "" if best.error is None else f", {measure} {short(best.error)}{plus_minus(best.standard_error)}"
    return Chart(
        title="Pruning: error against size of the tree",
        description=f"{capital(measure)} of the tree from {count(steps[0].n_leaves, 'leaf')} to the root. "
        f"Cross-validation chose {count(best.n_leaves, 'leaf')}{score}.",
        x=Axis("leaves", is_log=max(leaves) > MANY_LEAVES, is_whole=True),
        y=Axis(measure, lowest=0.0),
        marks=tuple(marks),
    )


# --- parts ---


def ends_of(values: Sequence[float], errors: Sequence[float | None]) -> Ends:
    """Error bars of one error to both sides."""
    return tuple(
        None if error is None else (value - error, value + error) for value, error in zip(values, errors, strict=True)
    )


def plus_minus(error: float | None) -> str:
    """An error after its number."""
    return "" if error is None else f" ± {short(error)}"


def capital(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def curve(points: Sequence[tuple[float, float]], name: str, series: int, *, is_step: bool = False) -> Line:
    """A line through points given as pairs."""
    x, y = zip(*points, strict=True)
    return Line(x, y, name, series, is_step=is_step)


def rows_of(separations: Sequence[Separation]) -> str:
    """How many rows curves are of."""
    return f"On {separations[0].n_rows:,} held-out rows." if separations else ""


def fold_classes(found: Confusion) -> tuple[tuple[str, ...], np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Names and counts of the commonest classes, those of all others together."""
    names, counts = [caption(name) for name in found.classes], np.array(found.counts)
    if len(names) <= MAX_CLASSES:
        return tuple(names), counts
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    kept = np.sort(order[: MAX_CLASSES - 1])
    group = np.full(len(names), len(kept))
    group[kept] = np.arange(len(kept))
    folded = np.zeros((MAX_CLASSES, MAX_CLASSES), np.int64)
    np.add.at(folded, (group[:, None], group[None, :]), counts)
    return (*(names[k] for k in kept), f"{len(names) - len(kept)} others"), folded


def by_worth(importances: Sequence[Importance]) -> list[Importance]:
    """The columns that matter most when permuted."""
    return sorted(importances, key=lambda one: -one.permutation)[:MAX_FEATURES]


def list_first(features: Sequence[str], values: Sequence[float]) -> str:
    """The first few values in words."""
    first = [f"{caption(name)} {short(value)}" for name, value in zip(features[:3], values, strict=False)]
    return f"The first: {', '.join(first)}."
