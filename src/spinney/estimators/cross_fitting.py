"""Predictions of members for rows that they have not seen: of the folds of a cross-validation, or out of bag.

X, y ──make_stack_folds──► folds ──CrossFits──► members fitted to all rows, and what members of each fold predict
└─────────── cv="oob": OutOfBagFits ──► members fitted to all rows, and what their trees predict out of bag
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from spinney._threads import run_tasks
from spinney.ensemble.subspaces import member_seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.estimators.other_members import Rows
    from spinney.table.shared_columns import SharedColumns

N_FOLDS = 5  # where cv is None, as in scikit-learn


class StackMember(NamedTuple):
    """A member to be fitted."""

    name: str
    estimator: Any  # what is copied
    method: str  # what it is asked by


class StackFold(NamedTuple):
    """Rows to fit on, and rows to predict, by number."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


# --- folds ------------------------------------------------------------------------------------------------------


def make_stack_folds(
    cv: Any, X: Any, y: NDArray[Any], groups: NDArray[np.int32] | None, seed: int | None, *, has_classes: bool
) -> list[StackFold]:
    """The folds that `cv` asks for, each row held out in one of them, and no group on both sides of one.

    cv: a number of folds, None for five or as many as there are groups, a splitter of scikit-learn's kind, or pairs of
    row numbers; seed: shuffles the rows (or groups) of a number of folds; None: they stay in order.
    """
    n_rows = len(y)
    if cv is None or isinstance(cv, Integral):
        n_most = N_FOLDS if groups is None else max(min(N_FOLDS, int(groups.max()) + 1), 2)
        n_folds = n_most if cv is None else int(cv)
        splitter = choose_splitter(n_folds, y, groups, seed, has_classes=has_classes)
        splits = list(splitter.split(X, y, groups))
    else:
        splits = list(cv.split(X, y, groups) if hasattr(cv, "split") else cv)
    folds = [read_fold(number, split, n_rows) for number, split in enumerate(splits)]
    n_times = np.bincount(np.concatenate([fold.test for fold in folds] or [np.zeros(0, np.int64)]), minlength=n_rows)
    if not np.all(n_times == 1):
        row = int(np.argmax(n_times != 1))
        raise ValueError(
            f"cv must hold out every row once, but row {row} is held out {n_times[row]} times: give a number of folds, "
            "or a splitter whose test rows are a partition, such as KFold; a stack cannot use others"
        )
    if groups is not None:
        check_groups_are_whole(folds, groups)
    return folds


def choose_splitter(
    n_folds: int, y: NDArray[Any], groups: NDArray[np.int32] | None, seed: int | None, *, has_classes: bool
) -> Any:
    """So many folds: stratified by class, of whole groups where there are any, shuffled where there is a seed."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    if len(y) < n_folds:
        raise ValueError(
            f"cv makes {n_folds} folds, but n_samples={len(y)}: give at least {n_folds} rows, or a smaller cv"
        )
    if groups is not None and groups.max() + 1 < n_folds:
        raise ValueError(
            f"cv makes {n_folds} folds of whole groups, but there are {groups.max() + 1} groups: set cv to that at most"
        )
    if has_classes and np.bincount(y).max() < n_folds:
        raise ValueError(
            f"cv makes {n_folds} folds with rows of each class, but no class has so many, the largest "
            f"{np.bincount(y).max()}: set cv to that at most, or give KFold({n_folds})"
        )
    options = {"shuffle": seed is not None, "random_state": None if seed is None else seed & 0xFFFFFFFF}
    if groups is None:
        return (StratifiedKFold if has_classes else KFold)(n_folds, **options)
    return (StratifiedGroupKFold if has_classes else GroupKFold)(n_folds, **options)


def read_fold(number: int, split: Any, n_rows: int) -> StackFold:
    """A pair of row numbers as a fold; masks are row numbers as well."""
    try:
        train, test = (np.asarray(part) for part in split)
    except (TypeError, ValueError):
        raise ValueError(f"cv: fold {number} must be a pair of row numbers, (train, test), not {split!r:.60}") from None
    fold = StackFold(*(np.flatnonzero(part) if part.dtype == bool else part for part in (train, test)))
    for rows in fold:
        is_rows = rows.ndim == 1 and rows.dtype.kind in "iu" and len(rows) > 0
        if not is_rows or rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(f"cv: fold {number} must name rows to fit on and rows to predict, from 0 to {n_rows - 1}")
    is_seen = np.isin(fold.test, fold.train)
    if is_seen.any():
        row = fold.test[np.argmax(is_seen)]
        raise ValueError(f"cv: fold {number} holds out row {row} and is fitted on it as well: name it once")
    return fold


def check_groups_are_whole(folds: list[StackFold], groups: NDArray[np.int32]) -> None:
    """Refuse folds that fit on some rows of a group and predict others."""
    for number, (train, test) in enumerate(folds):
        is_shared = np.isin(groups[test], groups[train])
        if is_shared.any():
            row = int(test[np.argmax(is_shared)])
            raise ValueError(
                f"groups: fold {number} of cv holds out row {row} and is fitted on other rows of its group: give a "
                "splitter that keeps groups whole, such as GroupKFold, or a number of folds"
            )


# --- members ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StackRows:
    """What all members are fitted on.

    Attributes
    ----------
    rows : Rows
        X, of rows that have a weight.
    shared : SharedColumns, optional
        The same read once, for members of ours.
    y : array (n_rows,)
        Codes of classes, or numbers.
    weight : float64 (n_rows,), optional
    groups : int32 (n_rows,), optional
    n_classes : int
        0 for numbers.
    """

    rows: Rows
    shared: SharedColumns | None
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    groups: NDArray[np.int32] | None
    n_classes: int

    @property
    def known(self) -> NDArray[np.int64] | None:
        """What members call the classes; None for numbers."""
        return np.arange(self.n_classes) if self.n_classes else None

    def take(self, rows: NDArray[np.int64] | None, member: Any) -> Any:
        """Some rows of X as a member takes them; None: all."""
        return take_for(member, self.rows, self.shared, rows)

    def fit(
        self, member: Any, rows: NDArray[np.int64] | None = None, *, groups: NDArray[np.int32] | None = None
    ) -> Any:
        """Fit a member to some rows, by weight where it takes one; None: all. groups: for its bags."""
        y = self.y if rows is None else self.y[rows]
        options: dict[str, Any] = {} if groups is None else {"groups": groups}
        if self.weight is not None and has_fit_parameter(member, "sample_weight"):
            options["sample_weight"] = self.weight if rows is None else self.weight[rows]
        member.fit(self.take(rows, member), y, **options)  # some fits return nothing
        return member


def take_for(member: Any, rows: Rows, shared: SharedColumns | None, chosen: NDArray[np.int64] | None) -> Any:
    """Some rows of X for a member: of columns that are read already if it is one of ours, else of what X is."""
    return shared.take(chosen) if shared is not None and reads_columns(member) else rows.take(chosen, None)


def reads_columns(member: Any) -> bool:
    """Whether a member is one of ours that hands X on to nobody."""
    from spinney.estimators.saving import estimator_names

    return type(member) in estimator_names() and type(member)._takes_columns  # noqa: SLF001


def copy_member(estimator: Any, seed: int | None, number: int) -> Any:
    """An unfitted copy; with a seed, its generators that have none, and those of its parts, get seeds of their own."""
    copy = clone(estimator)
    if seed is not None:
        given = copy.get_params()
        names = [name for name in sorted(given) if name.split("__")[-1] == "random_state" and given[name] is None]
        if names:
            copy.set_params(**{name: member_seed(seed, number, index) for index, name in enumerate(names)})
    return copy


def ask_member(member: Any, X: Any, method: str, known: NDArray[Any] | None) -> NDArray[np.float64]:
    """What a member predicts, as columns of the second stage, shape (n_rows, n_columns).

    Class probabilities have a column for each class, of two classes the second alone; a class that the member does not
    know has probability 0. A named class is its number.

    known: what the members of the stack call its classes; None for numbers.
    """
    given = np.asarray(getattr(member, method)(X))
    if known is None or not hasattr(member, "classes_"):
        return as_columns(given)
    places = find_places(member, known)
    if method == "predict":
        order = np.searchsorted(member.classes_, given.ravel())
        return as_columns(places[order])
    if method == "decision_function":
        if len(places) < len(known):
            raise ValueError(
                f"it has seen {len(places)} of {len(known)} classes, and its decision_function says nothing of the "
                "others: set stack_method='predict_proba' or 'predict', or a cv whose folds hold every class"
            )
        return as_columns(given)
    return place_shares(given, places, len(known))


def place_shares(shares: NDArray[Any], places: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Class probabilities as columns of the second stage; places: the classes that they are of, by number."""
    columns = as_columns(shares)
    if len(places) < n_classes:
        columns = np.zeros((len(shares), n_classes))
        columns[:, places] = shares
    return columns[:, 1:] if n_classes == 2 else columns


def as_columns(values: NDArray[Any]) -> NDArray[np.float64]:
    """Predictions as columns of numbers."""
    columns = np.asarray(values, np.float64)
    return columns.reshape(-1, 1) if columns.ndim == 1 else columns


def find_places(member: Any, known: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers of the classes that a member knows."""
    own = np.asarray(member.classes_)
    place = {label: number for number, label in enumerate(known.tolist())}
    unknown = [label for label in own.tolist() if label not in place]
    if unknown:
        raise ValueError(f"it was fitted to the class {unknown[0]!r}, which is not among those of y: fit it on this y")
    return np.array([place[label] for label in own.tolist()])


@contextlib.contextmanager
def naming(member: StackMember, fold: int | None = None) -> Iterator[None]:
    """Let an error say which member raised it, and in which fold."""
    try:
        yield
    except Exception as error:
        where = "" if fold is None else f", in fold {fold} of cv"
        error.add_note(f"raised by {member.name!r} of estimators{where}: {member.estimator!r}")
        raise


# --- fits -------------------------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """Members fitted to all rows, and what they say of rows that they have not seen."""

    members: list[Any]
    columns: list[NDArray[np.float64]]  # of each member, (n_rows, n_columns); NaN where it has seen the row


class CrossFits:
    """Members under way, each fitted to all rows and to those of each fold.

    Parameters
    ----------
    members : list of StackMember
    data : StackRows
    folds : list of StackFold
    seed : int, optional
        For members that have none.
    """

    def __init__(self, members: list[StackMember], data: StackRows, folds: list[StackFold], seed: int | None) -> None:
        self.members, self.data, self.folds, self.seed = members, data, folds, seed

    def fit_one(self, task: int) -> Any:
        """A member fitted to all rows (the first tasks), or its predictions for the held-out rows of a fold."""
        turn, number = divmod(task, len(self.members))
        member, fold = self.members[number], turn - 1
        copy = copy_member(member.estimator, self.seed, number)
        if turn == 0:
            with naming(member):
                return self.data.fit(copy)
        train, test = self.folds[fold]
        with naming(member, fold):
            self.data.fit(copy, train)
            return ask_member(copy, self.data.take(test, copy), member.method, self.data.known)

    def run(self, n_workers: int, *, verbose: bool) -> Fitted:
        """Fit them all."""
        n_members = len(self.members)
        done = run_in_threads(self.fit_one, n_members * (1 + len(self.folds)), n_workers, verbose=verbose)
        columns = []
        for number in range(n_members):
            parts = [done[n_members * (1 + fold) + number] for fold in range(len(self.folds))]
            held_out = np.empty((len(self.data.y), parts[0].shape[1]))
            for (_, test), part in zip(self.folds, parts, strict=True):
                held_out[test] = part
            columns.append(held_out)
        return Fitted(done[:n_members], columns)


class OutOfBagFits:
    """Members under way that are ensembles on bags, each fitted once; parameters as those of `CrossFits`."""

    def __init__(self, members: list[StackMember], data: StackRows, seed: int | None) -> None:
        self.members, self.data, self.seed = members, data, seed

    def fit_one(self, number: int) -> tuple[Any, NDArray[np.float64]]:
        """A member fitted to all rows, and its out-of-bag predictions."""
        member, data = self.members[number], self.data
        copy = copy_member(member.estimator, self.seed, number)
        if not copy.get_params(deep=False)["oob_score"]:
            copy.set_params(oob_score=True)
        with naming(member):
            data.fit(copy, groups=data.groups)
            return copy, self.read(member, copy)

    def read(self, member: StackMember, fitted: Any) -> NDArray[np.float64]:
        """The out-of-bag predictions of a fitted member, as columns of the second stage."""
        n_classes = self.data.n_classes
        found = getattr(fitted, "oob_decision_function_" if n_classes else "oob_prediction_", None)
        if found is None:
            refuse_without_bags(member)
        values = as_columns(found)
        if self.data.known is None:
            return values
        places = find_places(fitted, self.data.known)
        if member.method == "predict":
            is_seen = np.isnan(values).any(axis=1, keepdims=True)
            return np.where(is_seen, np.nan, places[values.argmax(axis=1)][:, None])
        return place_shares(values, places, n_classes)

    def run(self, n_workers: int, *, verbose: bool) -> Fitted:
        """Fit them all."""
        for member in self.members:
            check_has_bags(member, self.data)
        done = run_in_threads(self.fit_one, len(self.members), n_workers, verbose=verbose)
        return Fitted([member for member, _ in done], [columns for _, columns in done])


def check_has_bags(member: StackMember, data: StackRows) -> None:
    """Refuse a member that has no out-of-bag predictions, or none of the kind that is asked for."""
    if "oob_score" not in member.estimator.get_params(deep=False):
        refuse_without_bags(member)
    if member.method == "decision_function":
        raise ValueError(
            f"stack_method='decision_function' has no out-of-bag values, which cv='oob' needs ({member.name!r}): set "
            "stack_method='predict_proba', or a number of folds as cv"
        )
    if data.groups is not None and not has_fit_parameter(member.estimator, "groups"):
        raise ValueError(
            f"groups: {member.name!r} of estimators, {member.estimator!r}, draws rows, not groups, and cv='oob' rests "
            "on its bags: use forests or bagging of Spinney, or a number of folds as cv"
        )


def refuse_without_bags(member: StackMember) -> NoReturn:
    """Raise: a member has no out-of-bag predictions."""
    raise ValueError(
        f"cv='oob' needs out-of-bag predictions, which {member.name!r} of estimators, {member.estimator!r}, does not "
        "have: use forests or bagging of Spinney (with bootstrap=True), or cross-fit all members by a number as cv"
    )


def run_in_threads(
    work: Any, n_tasks: int, n_workers: int, *, label: str = "fitting", verbose: bool = False
) -> list[Any]:
    """The results of `work(task)` in order, with scikit-learn's configuration of this thread in all others."""
    config = get_config()

    def run(task: int, _: Any) -> Any:
        with config_context(**config):
            return work(task)

    return run_tasks(
        run,
        n_tasks,
        n_workers,
        label=label,
        unit="members",
        verbose=verbose,
        is_short=n_workers == 1 and not verbose,
    )
