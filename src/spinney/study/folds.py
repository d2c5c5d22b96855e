"""The folds: one list of (training rows, held-out rows), the same for every method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.study.result import Study
    from spinney.study.tables import StudyData

FEW_ROWS = 1000  # below it folds are repeated: which rows share a fold then matters as much as many differences
VERY_FEW_ROWS = 200
MIN_EARLIER = 2  # rows before those that a fold by time holds out


class Folds(NamedTuple):
    """Row numbers of every fold, their description, and how many there are in one repeat."""

    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    description: str
    n_splits: int

    @property
    def n_train(self) -> float:
        """Mean number of training rows."""
        return float(np.mean([len(train) for train, _ in self.splits]))

    @property
    def n_test(self) -> float:
        """Mean number of held-out rows."""
        return float(np.mean([len(test) for _, test in self.splits]))


def make_folds(data: StudyData, n_splits: int = 5, n_repeats: int | None = None, seed: int = 0) -> Folds:
    """Split the rows of a table into folds.

    Parameters
    ----------
    data : StudyData
        With `times`, each fold holds out later rows than all it trains on, so that rows of one time are never on both
        sides; with `groups`, no group is on both sides; else rows are shuffled, and for classes every fold has about
        the same shares.
    n_splits : int, at least 2
    n_repeats : int, optional
        How often the rows are split anew. By default once, twice below 1,000 rows and five times below 200; folds of
        groups or times are not repeated.
    seed : int

    Returns
    -------
    Folds
    """
    if n_splits < 2:
        raise ValueError(f"folds must be at least 2, got {n_splits}")
    if data.n_rows < 2 * n_splits:
        raise ValueError(f"{data.n_rows} rows are too few for {n_splits} folds: at least {2 * n_splits} are needed")
    if data.times is not None and data.groups is not None:
        raise ValueError("folds are made by groups or by time, not by both: choose one")
    if data.times is not None or data.groups is not None:
        if n_repeats not in {None, 1}:
            raise ValueError("folds by groups or time cannot be repeated: leave out the number of repeats")
        return _by_time(data, n_splits) if data.times is not None else _by_group(data, n_splits)
    if n_repeats is None:
        n_repeats = 5 if data.n_rows < VERY_FEW_ROWS else 2 if data.n_rows < FEW_ROWS else 1
    if data.is_regression:
        return _shuffled(data, n_splits, n_repeats, seed)
    return _stratified(data, n_splits, n_repeats, seed)


def recall_folds(data: StudyData, study: Study) -> Folds:
    """The folds of a study, made again; their description begins with how many there are in a repeat."""
    n_splits = int(study.folds.partition(" ")[0])
    folds = make_folds(data, n_splits, study.n_folds // n_splits, study.seed)
    if folds.description != study.folds:
        raise ValueError(f"the data make {folds.description}, the study had {study.folds}: pass the data of the study")
    return folds


def _shuffled(data: StudyData, n_splits: int, n_repeats: int, seed: int) -> Folds:
    from sklearn.model_selection import KFold, RepeatedKFold

    if n_repeats == 1:
        cut: Any = KFold(n_splits, shuffle=True, random_state=seed)
    else:
        cut = RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    return Folds(list(cut.split(data.y)), f"{n_splits} shuffled folds{_repeated(n_repeats)}", n_splits)


def _stratified(data: StudyData, n_splits: int, n_repeats: int, seed: int) -> Folds:
    from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

    classes, counts = np.unique(data.y, return_counts=True)
    rare = [str(name) for name, count in zip(classes, counts, strict=True) if count < n_splits]
    if rare:  # a class that a training part may lack: scikit-learn would only warn
        shown = ", ".join(rare[:3]) + (", ..." if len(rare) > 3 else "")
        fewer = f", or ask for {counts.min()} folds" if counts.min() > 1 else ""
        numbers = " If these numbers are amounts, the task is regression." if data.y.dtype.kind in "iuf" else ""
        raise ValueError(
            f"{len(rare)} of {len(classes)} classes have fewer rows than there are folds ({shown}): "
            f"merge or remove them{fewer}.{numbers}"
        )
    if n_repeats == 1:
        cut: Any = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    else:
        cut = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    description = f"{n_splits} folds stratified by class{_repeated(n_repeats)}"
    return Folds(list(cut.split(data.y, data.y)), description, n_splits)


def _by_group(data: StudyData, n_splits: int) -> Folds:
    from sklearn.model_selection import GroupKFold

    assert data.groups is not None
    n_groups = len(np.unique(data.groups))
    if n_groups < n_splits:
        raise ValueError(f"column {data.group_column!r} has {n_groups} groups, fewer than {n_splits} folds")
    splits = list(GroupKFold(n_splits).split(data.y, groups=data.groups))
    return Folds(splits, f"{n_splits} folds of whole groups of {data.group_column!r}", n_splits)


def _by_time(data: StudyData, n_splits: int) -> Folds:
    from sklearn.model_selection import TimeSeriesSplit

    assert data.times is not None
    order = np.argsort(data.times, kind="stable")
    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for train, test in TimeSeriesSplit(n_splits).split(order):
        before = order[train][data.times[order[train]] < data.times[order[test[0]]]]  # rows of one time stay together
        if len(before) < MIN_EARLIER:
            raise ValueError(
                f"column {data.time_column!r}: too few rows are earlier than fold {len(splits) + 1} of {n_splits}; "
                "ask for fewer folds, or give times that differ more"
            )
        splits.append((before, order[test]))
    description = f"{n_splits} folds in the order of {data.time_column!r}, each later than its training rows"
    return Folds(splits, description, n_splits)


def _repeated(n_repeats: int) -> str:
    return f", {n_repeats} times" if n_repeats > 1 else ""
