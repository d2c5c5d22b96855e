"""What both kinds of stacking share: members, what they predict for rows they have not seen, and the second stage.

fit:   X, y ──► StackRows ──► CrossFits or OutOfBagFits (members: as given) ──► columns ──fit──► second stage
predict:   X ──► members ──► columns ──► second stage
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, Self, runtime_checkable

import numpy as np
from scipy import sparse
from sklearn.base import TransformerMixin, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch, assert_all_finite, get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from spinney._threads import count_workers
from spinney._warnings import warn
from spinney.estimators.base import Estimator
from spinney.estimators.checks import all_or_nothing, check_codes, draw_seed, open_x
from spinney.estimators.cross_fitting import (
    CrossFits,
    Fitted,
    OutOfBagFits,
    StackMember,
    StackRows,
    ask_member,
    copy_member,
    make_stack_folds,
    naming,
    reads_columns,
    run_in_threads,
    take_for,
)
from spinney.estimators.kept import Kept, Part, is_fitted, kept_by, set_parts
from spinney.estimators.other_members import Rows, hold_rows
from spinney.estimators.parameters import parameter
from spinney.estimators.scanned import is_scanned
from spinney.estimators.training import open_training
from spinney.model.fitted_stacking import METHODS, FittedStacking
from spinney.table.columns import Columns
from spinney.table.schema import Schema
from spinney.table.shared_columns import SharedColumns, join_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.estimators.training import OpenedData

DROP = "drop"  # in place of an estimator: there is no such member
STACKING_CONSTRAINTS: dict[str, list[Any]] = {
    "estimators": [list],
    "final_estimator": [HasMethods(["fit", "predict"]), None],
    "cv": ["cv_object", StrOptions({"prefit", "oob"})],
    "n_jobs": [Integral, None],
    "passthrough": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


@runtime_checkable
class SecondStage(Protocol):
    """What can be fitted to the columns of members, of whatever library."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predict."""
        raise NotImplementedError


def has_stage(method: str) -> Callable[[Any], bool]:
    """A test of whether the second stage of a stack, fitted or not, has a method; AttributeError where it has not."""

    def find(stack: Any) -> bool:
        getattr(stack._find_stage(), method)  # noqa: SLF001
        return True

    return find


class Stacking(TransformerMixin, _BaseComposition, Estimator[FittedStacking]):
    """What both kinds of stacking share."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "_schema": Kept(Schema, is_needed=False),
        "_names": Kept(list),
        "estimators_": Kept(list),
        "stack_method_": Kept(list),
        "_widths": Kept(list),
        "final_estimator_": Kept(SecondStage),
        "_is_prefit": Kept(bool),
        "_passes_x": Kept(bool),
    }
    _names = Part("names")
    estimators_ = Part("members")
    stack_method_ = Part("methods")
    _widths = Part("widths")
    final_estimator_ = Part("final")
    _is_prefit = Part("is_prefit")
    _passes_x = Part("passes_x")
    _takes_columns: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = [item[1] for item in self.estimators if isinstance(item, tuple) and len(item) == 2]
        readers = [member for member in members if hasattr(member, "__sklearn_tags__")]
        if self.passthrough:
            readers.append(self._find_stage())
        if readers:
            inputs = [get_tags(reader).input_tags for reader in readers]
            for name in ("allow_nan", "sparse", "categorical", "string"):
                setattr(tags.input_tags, name, all(getattr(tag, name) for tag in inputs))
        return tags

    # --- parameters ---

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters; `deep` adds the members by name, and their parameters as `name__parameter`."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, members by name ("drop" leaves one out), or parameters of members: `name__parameter`."""
        self._set_params("estimators", **params)
        return self

    def _make_default(self) -> Any:
        """The second stage where none is given."""
        raise NotImplementedError

    def _find_stage(self) -> Any:
        """The second stage: the fitted one, or what it will be a copy of."""
        fitted = vars(self).get("_fitted")
        if fitted is not None:
            return fitted.final
        return self._make_default() if self.final_estimator is None else self.final_estimator

    def _list_members(self) -> list[StackMember]:
        """The members that `estimators` names, with what each is to be asked by."""
        kind, members = type(self).__name__, []
        for place, item in enumerate(self.estimators):
            if not (isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)):
                raise ValueError(
                    f"estimators[{place}] of {kind} is {item!r:.80}: give a pair (name, estimator), such as "
                    "('forest', RandomForestClassifier())"
                )
            name, estimator = item
            if isinstance(estimator, str) and estimator == DROP:
                continue
            self._check_member(place, name, estimator)
            members.append(StackMember(name, estimator, self._choose_method(name, estimator)))
        self._check_names([item[0] for item in self.estimators])
        if not members:
            raise ValueError(f"estimators of {kind} names no member: give at least one pair (name, estimator)")
        return members

    def _check_member(self, place: int, name: str, estimator: Any) -> None:
        """Refuse what cannot be a member."""
        if isinstance(estimator, type):
            raise TypeError(
                f"estimators[{place}], {name!r}, is the class {estimator.__name__}: give an instance, "
                f"{estimator.__name__}()"
            )
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
            raise TypeError(f"estimators[{place}], {name!r}, is {estimator!r:.80}, which has no fit and predict")
        if self._labels_wanted or not hasattr(estimator, "__sklearn_tags__"):
            return  # a regressor may be a member for classes: it learns their numbers
        if is_classifier(estimator):
            raise ValueError(f"estimators[{place}], {name!r}, is {estimator!r:.80}, which is no regressor: give one")

    def _check_names(self, names: list[str]) -> None:
        """Refuse names that could not be told apart, or from parameters."""
        taken = self.get_params(deep=False)
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ValueError(f"estimators: two members are called {name!r}: give each a name of its own")
            if name in taken:
                raise ValueError(
                    f"estimators: a member is called {name!r}, as a parameter of {type(self).__name__} is: rename it"
                )
            if "__" in name:
                raise ValueError(
                    f"estimators: {name!r} holds '__', which stands before a member's parameter: rename it"
                )

    def _choose_method(self, name: str, estimator: Any) -> str:
        """What a member is asked by."""
        wanted = parameter(self, "stack_method", "predict")
        if wanted == "auto":
            return next(method for method in METHODS if hasattr(estimator, method))
        if not hasattr(estimator, wanted):
            has = [method for method in METHODS if hasattr(estimator, method)]
            raise ValueError(
                f"stack_method={wanted!r}: {name!r} of estimators, {estimator!r:.80}, has no {wanted}. It has "
                f"{', '.join(has)}: set stack_method='auto' to take what each has, or give another estimator"
            )
        return str(wanted)

    def _make_stage(self, seed: int | None, number: int) -> Any:
        """The second stage, not fitted."""
        given = self._make_default() if self.final_estimator is None else self.final_estimator
        wanted, is_wrong = ("classifier", is_regressor) if self._labels_wanted else ("regressor", is_classifier)
        if hasattr(given, "__sklearn_tags__") and is_wrong(given):
            raise ValueError(f"final_estimator is {given!r:.80}, which is no {wanted}: give one, or None")
        return copy_member(given, seed, number)

    @property
    def _labels_wanted(self) -> bool:
        """Whether classes are predicted; of an estimator that need not be fitted."""
        return bool(is_classifier(self))

    # --- fitting ---

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Fit the members to all rows, and the second stage to what members say of rows they have not seen.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            What the members take; frames reach them as frames.
        y : array-like (n_rows,)
            Classes of any type, or numbers for a regressor.
        sample_weight : array-like (n_rows,), optional
            Goes to the members whose `fit` takes weights (a warning names the others) and to the second stage. Rows of
            weight 0 are left out.
        groups : array-like (n_rows,), optional
            Rows of one group are held out together: for the splitter `cv`; a number of folds is then of whole groups.
            With `cv="oob"` the members draw whole groups.
        """
        with all_or_nothing(self):
            self._validate_params()
            members = self._list_members()
            if is_scanned(X):
                raise ValueError(
                    f"{type(self).__name__} takes rows in memory, and X is a scan: read a sample of the rows, or fit "
                    "one of its members to all of them"
                )
            data = open_training(self, X, y, sample_weight)
            codes = check_codes(groups, "groups", data.n_rows)
            if codes is not None and self._asks("prefit"):
                raise ValueError("groups: cv='prefit' holds out no rows: leave out groups, or give a splitter as cv")
            seed = None if self.random_state is None else draw_seed(self.random_state)
            stage = self._make_stage(seed, len(members))
            kept = None if data.weight is None or np.all(data.weight > 0.0) else np.flatnonzero(data.weight > 0.0)
            readers = [member.estimator for member in members] + ([stage] if self.passthrough else [])
            used = self._gather_rows(readers, data, codes, kept)
            self._check_weighing(members, stage, used.weight)
            fitted = self._fit_members(members, used, kept, seed)
            names = [member.name for member in members]
            self._fit_stage(stage, names, fitted.columns, used)
            self._fitted = FittedStacking(
                names=names,
                members=fitted.members,
                methods=[member.method for member in members],
                widths=[columns.shape[1] for columns in fitted.columns],
                final=stage,
                classes=self.classes_ if used.n_classes else None,
                is_prefit=self._asks("prefit"),
                passes_x=bool(self.passthrough),
            )
            return self

    def _asks(self, word: str) -> bool:
        """Whether `cv` is a word; comparing lists of arrays with one would not do."""
        return isinstance(self.cv, str) and self.cv == word

    def _gather_rows(
        self, readers: list[Any], data: OpenedData, groups: NDArray[np.int32] | None, kept: Any
    ) -> StackRows:
        """The rows that have a weight, X read once for those of the readers that are ours."""
        n_classes = 0 if self._labels is None else len(self.classes_)
        rows, opened = data.rows(), data.opened
        shared = share_columns(opened, readers)
        y, weight = data.y, data.weight
        if kept is not None:
            assert weight is not None
            rows = Rows(rows.take(kept, None), len(kept), rows.names)
            shared = None if shared is None else SharedColumns(shared.take(kept))
            y, weight = y[kept], weight[kept]
            groups = None if groups is None else np.unique(groups[kept], return_inverse=True)[1].astype(np.int32)
        return StackRows(rows, shared, y, weight, groups, n_classes)

    @staticmethod
    def _check_weighing(members: list[StackMember], stage: Any, weight: NDArray[np.float64] | None) -> None:
        """Say who takes no weights; refuse them where the second stage does not."""
        if weight is None or np.ptp(weight) == 0.0:
            return
        if not has_fit_parameter(stage, "sample_weight"):
            raise ValueError(
                f"sample_weight: the fit of final_estimator, {stage!r:.80}, takes no sample_weight: give another, or "
                "leave out the weights"
            )
        for member in members:
            if not has_fit_parameter(member.estimator, "sample_weight"):
                warn(
                    f"sample_weight: the fit of {member.name!r} of estimators, {member.estimator!r:.80}, takes no "
                    "sample_weight; it is fitted without"
                )

    def _fit_members(self, members: list[StackMember], used: StackRows, kept: Any, seed: int | None) -> Fitted:
        """Members fitted to all rows, and what they predict for rows that they have not seen."""
        if self._asks("prefit"):
            return self._ask_prefit(members, used)
        verbose = bool(self.verbose)
        if self._asks("oob"):
            n_workers = count_workers(self.n_jobs, len(members), 0.0)
            return OutOfBagFits(members, used, seed).run(n_workers, verbose=verbose)
        cv = self.cv
        if kept is not None and cv is not None and not isinstance(cv, Integral) and not hasattr(cv, "split"):
            cv = [drop_rows(split, kept) for split in cv]
        folds = make_stack_folds(cv, used.rows.data, used.y, used.groups, seed, has_classes=bool(used.n_classes))
        # nobody knows how long a member takes, or whether it lets others run: threads only where they are asked for
        n_workers = count_workers(self.n_jobs, len(members) * (1 + len(folds)), 0.0)
        return CrossFits(members, used, folds, seed).run(n_workers, verbose=verbose)

    def _ask_prefit(self, members: list[StackMember], used: StackRows) -> Fitted:
        """Members that came fitted, and what they predict for all rows."""
        classes, columns = (self.classes_ if used.n_classes else None), []
        for member in members:
            try:
                check_is_fitted(member.estimator)
            except NotFittedError:
                raise NotFittedError(
                    f"cv='prefit' takes members as they are, and {member.name!r} of estimators, "
                    f"{member.estimator!r:.80}, is not fitted: fit it, or set cv to a number of folds"
                ) from None
            with naming(member):
                X = used.take(None, member.estimator)
                columns.append(ask_member(member.estimator, X, member.method, classes))
        return Fitted([member.estimator for member in members], columns)

    def _fit_stage(self, stage: Any, names: list[str], columns: list[NDArray[np.float64]], used: StackRows) -> None:
        """Fit the second stage to rows that every member has predicted without having seen them."""
        held_out = np.hstack(columns)
        y, weight, chosen = used.y, used.weight, None
        if self._asks("oob") and np.isnan(held_out).any():
            chosen = np.flatnonzero(~np.isnan(held_out).any(axis=1))
            if len(chosen) == 0:
                raise ValueError(
                    f"cv='oob': of n_samples={len(used.y)} no row is out of bag for every member: give members more "
                    "trees (n_estimators), or set cv to a number of folds"
                )
            held_out, y, weight = held_out[chosen], y[chosen], None if weight is None else weight[chosen]
        Z: Any = held_out
        if self.passthrough:
            labels = name_columns(self, names, [part.shape[1] for part in columns])
            Z = join_for(stage, held_out, labels, used.rows, used.shared, chosen)
        weighing = {} if weight is None or not has_fit_parameter(stage, "sample_weight") else {"sample_weight": weight}
        try:
            stage.fit(Z, y, **weighing)
        except Exception as error:
            error.add_note(f"raised by final_estimator: {stage!r}")
            raise

    # --- the fitted stack ---

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes by the names that files have."""
        set_parts(self, values, self._restore)

    @staticmethod
    def _restore(values: dict[str, Any]) -> FittedStacking:
        """The fitted stack from the attributes of a file."""
        return FittedStacking(
            names=values["_names"],
            members=values["estimators_"],
            methods=values["stack_method_"],
            widths=values["_widths"],
            final=values["final_estimator_"],
            classes=values.get("classes_"),
            is_prefit=values["_is_prefit"],
            passes_x=values["_passes_x"],
        )

    def _find_fault(self) -> str | None:
        """What is wrong with a fitted stack that was just read."""
        fitted = self._find_fitted()
        ours = [one for one in (*fitted.members, fitted.final) if kept_by(type(one))]
        if not all(is_fitted(one) for one in ours):
            return "a member or the second stage is not fitted"
        fault = fitted.find_fault(self.n_features_in_)
        if fault is not None or self._labels is None:
            return fault
        assert fitted.known is not None
        known, numbers = set(fitted.known.tolist()), set(range(self.n_classes_))
        for one, names in [*((member, known) for member in fitted.members), (fitted.final, numbers)]:
            if kept_by(type(one)) and one._labels is not None and not set(one._labels) <= names:  # noqa: SLF001
                return "a member or the second stage has other classes than the model"
        is_classifier_ = not kept_by(type(fitted.final)) or fitted.final._labels is not None  # noqa: SLF001
        return None if is_classifier_ else "the second stage predicts no classes"

    def _has_predictor(self) -> bool:
        """A stack is no forest: its members are of different kinds."""
        return False

    def _make_predictor(self) -> NoReturn:
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """What the members predict: the columns that the second stage reads, shape (n_rows, n_columns).

        Of a classifier, probabilities have a column for each class, of two classes the second alone; a named class is
        its number. With `passthrough` the columns of X follow.
        """
        columns, rows, _ = self._ask_members(X)
        if not self._find_fitted().passes_x:
            return columns
        joined = join_x(columns, rows.data)
        if isinstance(joined, np.ndarray) and not get_tags(self).input_tags.allow_nan:
            assert_all_finite(joined, input_name="X", estimator_name=type(self).__name__)  # as `predict` refuses them
        return joined

    def _ask_members(self, X: Any) -> tuple[NDArray[np.float64], Rows, SharedColumns | None]:
        """What the members predict, and X as it is and as it was read."""
        fitted = self._find_fitted()
        opened = open_x(self, X, is_fit=False)
        readers = [*fitted.members, fitted.final] if fitted.passes_x else fitted.members
        rows, shared = hold_rows(X, opened), share_columns(opened, readers)

        def ask(number: int) -> NDArray[np.float64]:
            member, method = fitted.members[number], fitted.methods[number]
            with naming(StackMember(fitted.names[number], member, method)):
                return ask_member(member, take_for(member, rows, shared, None), method, fitted.known)

        n_members = len(fitted.members)
        n_workers = count_workers(self.n_jobs, n_members, 0.0)
        return np.hstack(run_in_threads(ask, n_members, n_workers, label="predicting")), rows, shared

    def _ask_stage(self, method: str, X: Any) -> NDArray[Any]:
        """What the second stage says of X."""
        fitted = self._find_fitted()
        columns, rows, shared = self._ask_members(X)
        Z: Any = columns
        if fitted.passes_x:
            labels = name_columns(self, fitted.names, fitted.widths)
            Z = join_for(fitted.final, columns, labels, rows, shared, None)
        return np.asarray(getattr(fitted.final, method)(Z))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns that `transform` gives: the class, the member, and the class's number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X, where `passthrough` adds them and X had none.
        """
        fitted = self._find_fitted()
        names = name_columns(self, fitted.names, fitted.widths)
        own = vars(self).get("feature_names_in_")
        if input_features is not None:
            given = np.asarray(input_features, dtype=object)
            if len(given) != self.n_features_in_ or (own is not None and not np.array_equal(given, own)):
                raise ValueError(
                    f"input_features must be the {self.n_features_in_} names of the columns of X: leave them out"
                )
            own = given
        if fitted.passes_x:
            names += [f"x{j}" for j in range(self.n_features_in_)] if own is None else own.tolist()
        return np.array(names, dtype=object)

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name, also as attributes."""
        fitted = self._find_fitted()
        return Bunch(**dict(zip(fitted.names, fitted.members, strict=True)))


def share_columns(opened: Columns, members: list[Any]) -> SharedColumns | None:
    """X read once, where it is no array of numbers, nor sparse, and members of ours can share it."""
    if opened.matrix is not None or opened.packed is not None or not any(map(reads_columns, members)):
        return None
    return SharedColumns(opened)


def name_columns(stack: Any, names: list[str], widths: list[int]) -> list[str]:
    """What the columns that members fill are called."""
    kind, columns = type(stack).__name__.lower(), []
    for name, width in zip(names, widths, strict=True):
        columns += [f"{kind}_{name}"] if width == 1 else [f"{kind}_{name}{place}" for place in range(width)]
    return columns


def drop_rows(split: Any, kept: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Row numbers of a fold, after rows of weight 0 were left out."""
    parts = []
    for part in split:
        rows = np.asarray(part)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        parts.append(np.searchsorted(kept, rows[np.isin(rows, kept)]))
    return tuple(parts)


def join_for(
    stage: Any,
    columns: NDArray[np.float64],
    names: list[str],
    rows: Rows,
    shared: SharedColumns | None,
    chosen: NDArray[np.int64] | None,
) -> Any:
    """What the second stage reads where X is passed on; a stage of ours gets categories as what they are.

    columns: of the members, for the chosen rows; names: theirs.
    """
    if shared is not None and reads_columns(stage):
        return join_columns(columns, names, shared.take(chosen))
    return join_x(columns, rows.take(chosen, None))


def join_x(columns: NDArray[np.float64], X: Any) -> Any:
    """The columns of the second stage, and those of X after them."""
    if sparse.issparse(X):
        return sparse.hstack([columns, X], format="csr")
    values = np.asarray(X)
    return np.hstack([columns, values if values.dtype.kind in "fiub" else values.astype(object)])
