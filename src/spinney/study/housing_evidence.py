"""Evidence for a report on the housing figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.study.clock import Clock
from spinney.study.evidence import LearningCurve
from spinney.study.examine import LEAST_SECONDS, SHARE, EvidenceParts, Subject, gather
from spinney.study.fold_record import FoldRecord
from spinney.study.housing_setup import SEED, TABLE, TARGET, cut_rows, ensembles
from spinney.study.reproduce import write_figure_recipe
from spinney.study.tables import prepare

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.study.evidence import Evidence
    from spinney.study.result import Figure
    from spinney.study.tables import StudyData

REHEARSED_ROWS, REHEARSED_SECONDS = 2000, 600.0


def examine_figure(
    figure: Figure,
    record: FoldRecord | None = None,
    *,
    clock: Clock | None = None,
    on_step: Callable[[str, int, int], object] | None = None,
) -> Evidence:
    """Look closer at the best ensemble of the housing figure; see `examine`.

    Parameters
    ----------
    figure : Figure
        In which an ensemble has finished a fold.
    record : FoldRecord, optional
        That `draw_figure` has filled. Without one there are no residuals.
    clock, on_step
        As in `examine`.

    Returns
    -------
    Evidence
        Of the largest number of trees; importances and coverage are of a random forest of the usual size.
    """
    from spinney import CARTRegressor, RandomForestRegressor

    data = prepare_table()
    best = find_best_ensemble(figure)
    splits = cut_rows(data.n_rows)
    subject = Subject(
        key=best,
        name=best,
        recipe=write_figure_recipe(best, figure.trees[-1]),
        model=ensembles()[best].set_params(n_estimators=figure.trees[-1], random_state=SEED),
        forest=RandomForestRegressor(n_jobs=-1, random_state=SEED),
        tree=CARTRegressor(random_state=SEED),
        curves=list_learning_curves(figure),
        has_ensembles=True,
        splits=splits,
        seed=SEED,
    )
    parts = EvidenceParts(clock or Clock(), SHARE * figure.seconds + LEAST_SECONDS, on_step)
    return gather(subject, data, record or FoldRecord(), parts)


def rehearse_figure() -> Evidence:
    """Compile the kernels of `examine_figure`, or read them from the store: the same parts with few rows and trees."""
    from spinney import CARTRegressor, RandomForestRegressor

    data = prepare_table(REHEARSED_ROWS)
    forest = RandomForestRegressor(n_estimators=10, random_state=0)
    subject = Subject(
        key="",
        name="",
        recipe="",
        model=forest,
        forest=forest,
        tree=CARTRegressor(),
        curves=(),
        has_ensembles=False,
        splits=cut_rows(data.n_rows),
        seed=0,
    )
    return gather(subject, data, FoldRecord(), EvidenceParts(Clock(), REHEARSED_SECONDS, None))


def prepare_table(n_rows: int | None = None) -> StudyData:
    """The table made ready, or its first rows."""
    from spinney import datasets

    return prepare(datasets.load(TABLE).slice(0, n_rows), TARGET, name=TABLE)


def find_best_ensemble(figure: Figure) -> str:
    """The name of the ensemble with the highest mean R² at the most trees, among those with the most folds."""
    most = max(len(curve.scores) for curve in figure.curves)
    if most == 0:
        raise ValueError("no ensemble finished a fold: there is nothing to examine")
    whole = [curve for curve in figure.curves if len(curve.scores) == most]
    return max(whole, key=lambda curve: float(np.mean([fold[-1] for fold in curve.scores]))).name


def list_learning_curves(figure: Figure) -> tuple[LearningCurve, ...]:
    """The curves as means over folds with standard errors, of those with two folds at least."""
    return tuple(
        LearningCurve(
            key=curve.name,
            name=curve.name,
            trees=figure.trees,
            scores=tuple(np.mean(curve.scores, axis=0).tolist()),
            errors=tuple(figure.standard_error(tuple(column)) or 0.0 for column in zip(*curve.scores, strict=True)),
            seconds=tuple(np.mean(curve.seconds, axis=0).tolist()),
        )
        for curve in figure.curves
        if len(curve.scores) > 1
    )
