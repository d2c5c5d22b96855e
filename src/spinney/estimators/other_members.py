"""Members that are not our trees: any scikit-learn estimators, each fitted on its own bag of rows and columns."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from spinney._threads import run_tasks
from spinney.ensemble.subspaces import member_seed
from spinney.estimators.kept import is_fitted, kept_by
from spinney.estimators.routing import take_params
from spinney.table.columns import Columns, Numbers
from spinney.table.shared_columns import take_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.out_of_bag import OutOfBagSums
    from spinney.ensemble.sampling import Draw
    from spinney.ensemble.subspaces import Bags
    from spinney.model.fitted_bagging import FittedBagging


NOTHING: Mapping[str, Any] = MappingProxyType({})
HASHED_ROWS = 1 << 14  # of a block that is hashed at once


class Template(NamedTuple):
    """What members are copied from."""

    name: str
    estimator: Any


def list_templates(owner: Any, default: Any) -> list[Template]:
    """The estimators that members take turns in, from `owner.estimator`: one, a list, a list of pairs, or None."""
    given = owner.estimator
    if given is None:
        return [Template(type(default).__name__, default)]
    if not isinstance(given, list):
        return [check_template(owner, "estimator", given)]
    if not given:
        raise ValueError("estimator is an empty list: give at least one estimator, or None for CART trees")
    return [check_template(owner, f"estimator[{place}]", item) for place, item in enumerate(given)]


def check_template(owner: Any, place: str, item: Any) -> Template:
    """An estimator, or a pair of name and estimator, that can be a member."""
    name, estimator = item if isinstance(item, tuple) and len(item) == 2 else (type(item).__name__, item)
    kind = type(owner).__name__
    if isinstance(estimator, type):
        raise TypeError(
            f"{place} of {kind} is the class {estimator.__name__}: give an instance, {estimator.__name__}()"
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"{place} of {kind} is {estimator!r}, which has no fit and predict: "
            "give an estimator, or a pair (name, estimator)"
        )
    wanted, is_wrong = ("classifier", is_regressor) if is_classifier(owner) else ("regressor", is_classifier)
    if hasattr(estimator, "__sklearn_tags__") and is_wrong(estimator):
        raise ValueError(f"{place} of {kind} is {estimator!r}, which is no {wanted}: give one")
    return Template(str(name), estimator)


def check_members(members: list[Any], model: Any) -> str | None:
    """What is wrong with the members of a model that was read from a file; None: nothing.

    Members of ours must be fitted, and know no class that the model does not know: their votes go into its columns.
    """
    ours = [member for member in members if kept_by(type(member))]
    if not all(is_fitted(member) for member in ours):
        return "a member is not fitted"
    labels = model._labels  # noqa: SLF001
    if labels is None or not ours:
        return None
    known = {label for member in ours for label in member._labels or ()}  # noqa: SLF001
    return None if known <= set(labels) else "a member has other classes than the model"


def takes_outputs(estimator: Any) -> bool:
    """Whether an estimator of any library says that it learns several outputs."""
    return hasattr(estimator, "__sklearn_tags__") and bool(get_tags(estimator).target_tags.multi_output)


def find_member_fault(fitted: FittedBagging) -> str | None:
    """What is wrong with members of ours in a bag that was read from a file; None: nothing."""
    members = [] if fitted.others is None else fitted.others.members
    for member in members:
        if not hasattr(member, "predict"):
            return f"{member!r:.60} is no member that predicts"
        if not kept_by(type(member)):
            continue  # an estimator of another library, in a pickle
        if not is_fitted(member) or member.n_features_in_ != fitted.bags.spaces.n_drawn:
            return "a member is not fitted, or to another number of columns than its bag has"
        is_classifier_ = member._labels is not None  # noqa: SLF001
        if is_classifier_ != (fitted.classes is not None) or (fitted.is_soft and not hasattr(member, "predict_proba")):
            return "a member predicts something else than the model"
    return None


# --- rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """X as members take it: a frame stays one, with its names; anything else is an array or a sparse matrix."""

    data: Any
    n_rows: int
    names: tuple[str, ...] | None = None  # of the columns

    def take(self, rows: NDArray[np.int64] | None, columns: NDArray[np.int64] | None) -> Any:
        """Some rows, as often as they are named, and some columns; None: all."""
        data = self.data
        if isinstance(data, Columns):  # of a table on disk
            return take_columns(data, rows, columns)
        if hasattr(data, "iloc"):  # pandas and its kin, whose names need not be text
            data = data if rows is None else data.iloc[rows]
            return data if columns is None else data.iloc[:, columns]
        if isinstance(data, np.ndarray) or hasattr(data, "tocsr"):
            data = data if rows is None else data[rows]
            return data if columns is None else data[:, columns]
        import narwhals.stable.v2 as nw

        frame = nw.from_native(data, eager_only=True)
        frame = frame if rows is None else frame[rows]
        return (frame if columns is None else frame[:, columns.tolist()]).to_native()


def hold_rows(X: Any, columns: Columns) -> Rows:
    """X after `open_x` has looked at it, its columns in the order of fit."""
    if columns.deferred is not None:
        return Rows(columns, columns.n_rows, columns.names)
    if columns.is_records:
        return make_table([X] if isinstance(X, Mapping) else X, columns)
    if columns.is_frame:
        import narwhals.stable.v2 as nw

        rows = Rows(nw.to_native(X, pass_through=True), columns.n_rows, columns.names)
        return rows if columns.order is None else replace(rows, data=rows.take(None, np.array(columns.order)))
    if columns.packed is not None:
        by_column = columns.packed.stored.format == "csc"  # as it was given, for members that ask
        data = columns.packed.by_column if by_column else columns.packed.by_row
        return Rows(data, columns.n_rows, columns.names)
    if columns.matrix is not None:
        return Rows(columns.matrix, columns.n_rows, columns.names)
    data = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    return Rows(data, columns.n_rows, columns.names)


def make_table(records: list[Mapping[str, Any]], columns: Columns) -> Rows:
    """Rows by name as a table in the order of fit: a frame of pandas, as members may know the names of fit.

    Without pandas it is an array, of floats where all columns are numbers and of objects otherwise.
    """
    names = columns.names or ()
    try:
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        read = [columns.read(j) for j in range(columns.n_columns)]
        if all(isinstance(column, Numbers) for column in read):
            numbers = [column.read() for column in read if isinstance(column, Numbers)]
            data: Any = np.stack(numbers, axis=1).astype(np.float64)
        else:
            data = np.array([[record[name] for name in names] for record in records], dtype=object)
    else:
        data = pd.DataFrame({name: [record[name] for record in records] for name in names})
    return Rows(data, columns.n_rows, columns.names)


def mark_rows(rows: Rows, n_features: int, y: NDArray[Any], classes: NDArray[Any] | None) -> str:
    """Hash of the training data, to know it again: X as the members take it, names, classes, and the target."""
    names, labels = list(rows.names or ()), [] if classes is None else classes.tolist()
    digest = hashlib.sha256(repr((rows.n_rows, n_features, names, labels)).encode())
    for part in list_parts(rows, n_features):
        if part.dtype.kind in "OTV":  # bytes would be addresses
            digest.update(f"{part.dtype} {part.tolist()!r}".encode())
        else:
            digest.update(str(part.dtype).encode())
            digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(np.ascontiguousarray(y).tobytes())
    return digest.hexdigest()


def list_parts(rows: Rows, n_features: int) -> Iterator[NDArray[Any]]:
    """All there is in X as arrays: those of a sparse matrix, blocks of rows of an array, columns of a frame."""
    data = rows.data
    if hasattr(data, "tocsr"):
        data = data.tocsr()
        yield from (data.indptr, data.indices, data.data)
    elif isinstance(data, np.ndarray):
        for first in range(0, rows.n_rows, HASHED_ROWS):
            yield data[first : first + HASHED_ROWS]
    else:
        for j in range(n_features):
            yield np.asarray(rows.take(None, np.array([j])))


# --- one member -------------------------------------------------------------------------------------------------


def make_member(template: Template, seed: int, member: int) -> Any:
    """An unfitted copy whose generators, also those of its parts, begin at seeds of its own."""
    copy = clone(template.estimator)
    names = [name for name in sorted(copy.get_params()) if name.split("__")[-1] == "random_state"]
    if names:
        copy.set_params(**{name: member_seed(seed, member, index) for index, name in enumerate(names)})
    return copy


def fit_bag(
    member: Any,
    rows: Rows,
    columns: NDArray[np.int64] | None,
    y: NDArray[Any],
    counts: NDArray[np.int32],
    weight: NDArray[np.float64] | None,
    params: dict[str, Any],
) -> None:
    """Fit a member on a bag, by weights where it takes them, else on the rows of the bag, repeated as often as drawn.

    By weights it gets all rows, each with its count as weight, 0 outside the bag, as in scikit-learn: it then knows
    every class, and a bag that lacks one is no error.

    params: more arguments of its `fit`, for all rows.
    """
    if has_fit_parameter(member, "sample_weight"):
        held = counts * (1.0 if weight is None else weight)
        X, more = rows.take(None, columns), take_params(params, None, len(counts))
        if np.all(held == 1.0):
            member.fit(X, y, **more)
        else:
            member.fit(X, y, sample_weight=held, **more)
        return
    if weight is not None and np.ptp(weight[weight > 0.0]) > 0.0:
        raise ValueError(
            f"{type(member).__name__}.fit takes no sample_weight, and only bags of rows with replacement are drawn by "
            "weight: set bootstrap=True, without groups, block_size and strata, or leave out sample_weight"
        )
    bag = np.repeat(np.arange(len(counts)), counts)
    member.fit(rows.take(bag, columns), y[bag], **take_params(params, bag, len(counts)))


def member_votes(
    member: Any,
    X: Any,
    classes: NDArray[Any] | None,
    *,
    is_soft: bool,
    shift: int = 0,
    params: Mapping[str, Any] = NOTHING,
) -> NDArray[np.float64]:
    """The votes of a member on rows: class shares or one class, (n_rows, n_classes); or numbers, (n_rows, n_outputs).

    A class that its bag did not hold gets nothing. Numbers are in units of `2**shift`, so that no sum overflows.
    params: more arguments of its method.
    """
    if classes is None:
        predicted = np.asarray(member.predict(X, **params), np.float64)
        return np.ldexp(predicted.reshape(len(predicted), -1), -shift)
    if is_soft:
        given = np.asarray(member.predict_proba(X, **params), np.float64)
        votes = np.zeros((len(given), len(classes)))
        votes[:, np.searchsorted(classes, member.classes_)] = given
        return votes
    named = np.searchsorted(classes, np.asarray(member.predict(X, **params)).ravel())
    votes = np.zeros((len(named), len(classes)))
    votes[np.arange(len(named)), named] = 1.0
    return votes


# --- all of them ------------------------------------------------------------------------------------------------


class FittedMember(NamedTuple):
    """One member, and its votes on the rows outside its bag."""

    member: Any
    oob_rows: NDArray[np.int64]
    oob_votes: NDArray[np.float64]


class MemberTarget(NamedTuple):
    """What members learn."""

    n_classes: int  # 0 for regression
    widths: None = None  # of several outputs of classes, which members of any kind do not have


@dataclass(frozen=True)
class MemberPlan:
    """What members share; names are those of `ensemble.forest.Plan` where it has the same."""

    templates: list[Template]
    rows: Rows
    y: NDArray[Any]  # classes or numbers
    classes: NDArray[Any] | None
    weight: NDArray[np.float64] | None  # of the rows, as members see it
    bags: Bags
    is_hard: bool  # members name a class, or give no shares
    has_oob: bool
    shift: int  # numbers are added up in units of 2**shift
    params: dict[str, Any] = field(default_factory=dict)  # more arguments of the members' `fit`

    @property
    def draw(self) -> Draw:
        """How often each row is in the bag of each member."""
        return self.bags.draw

    @property
    def target(self) -> MemberTarget:
        """How many classes there are."""
        return MemberTarget(0 if self.classes is None else len(self.classes))

    @property
    def has_weight(self) -> NDArray[np.bool_] | None:
        """Rows of positive weight, where others stay out of every bag; None: all."""
        return None if self.weight is None or np.all(self.weight > 0.0) else self.weight > 0.0


class MemberFits:
    """Members under way: fitted in any order, taken in theirs."""

    def __init__(self, plan: MemberPlan, out_of_bag: OutOfBagSums | None = None) -> None:
        self.plan = plan
        self.out_of_bag = out_of_bag  # where votes on out-of-bag rows are added up; needed where `plan.has_oob`
        self.members: list[Any] = []

    def fit_one(self, member: int) -> FittedMember:
        """Fit member number `member`."""
        plan = self.plan
        template = plan.templates[member % len(plan.templates)]
        counts = plan.draw.counts(member)
        is_out = counts == 0
        if plan.weight is not None:
            is_out &= plan.weight > 0.0
        columns = plan.bags.columns(member)
        with self.named(member, template, counts):
            fitted = make_member(template, plan.bags.seed, member)  # kept itself: some fits return nothing
            fit_bag(fitted, plan.rows, columns, plan.y, counts, plan.weight, plan.params)
            oob = np.flatnonzero(is_out) if plan.has_oob else np.zeros(0, np.int64)
            if len(oob) == 0:
                return FittedMember(fitted, oob, np.zeros((0, 1)))
            X = plan.rows.take(oob, columns)
            votes = member_votes(fitted, X, plan.classes, is_soft=not plan.is_hard, shift=plan.shift)
            return FittedMember(fitted, oob, votes)

    @contextlib.contextmanager
    def named(self, member: int, template: Template, counts: NDArray[np.int32]) -> Iterator[None]:
        """Let an error say whose it is, and whether the bag is the reason."""
        try:
            yield
        except Exception as error:
            error.add_note(f"raised by member {member} of {template.name!r}: {template.estimator!r}")
            bag = np.unique(self.plan.y[counts > 0])
            if len(bag) == 1 < self.plan.target.n_classes:
                error.add_note(f"its bag holds class {bag.item()!r} only; stratify='class' draws from every class")
            raise

    def add(self, _: int, fitted: FittedMember) -> None:
        """Take the next member."""
        self.members.append(fitted.member)
        if self.out_of_bag is not None:
            self.out_of_bag.add(fitted.oob_rows, fitted.oob_votes)

    def run(self, first: int, n_members: int, n_workers: int, *, verbose: bool) -> list[Any]:
        """Fit members first .. first + n_members."""
        config = get_config()  # of this thread; others have their own

        def work(task: int, _: Any) -> FittedMember:
            with config_context(**config):
                return self.fit_one(first + task)

        run_tasks(
            work,
            n_members,
            n_workers,
            on_done=self.add,
            label="fitting",
            unit="members",
            verbose=verbose,
            is_short=n_workers == 1 and not verbose,
        )
        return self.members


def sum_member_votes(
    fitted: FittedBagging, rows: Rows, n_workers: int, params: Mapping[str, Any] = NOTHING
) -> NDArray[np.float64]:
    """The votes of all members, added up in their order; numbers in units of `2**shift`."""

    def vote(member: Any, X: Any) -> NDArray[np.float64]:
        return member_votes(member, X, fitted.classes, is_soft=fitted.is_soft, shift=fitted.shift, params=params)

    return sum_members(fitted, rows, vote, n_workers)


def sum_decisions(
    fitted: FittedBagging, rows: Rows, n_workers: int, params: Mapping[str, Any] = NOTHING
) -> NDArray[np.float64]:
    """The decision functions of all members, added up in their order."""

    def decide(member: Any, X: Any) -> NDArray[np.float64]:
        if not np.array_equal(member.classes_, np.asarray(fitted.classes)):
            raise ValueError(
                "decision_function needs members that know every class, and a bag lacked one: stratify='class' draws "
                "from every class; or use predict_proba"
            )
        return np.asarray(member.decision_function(X, **params), np.float64)

    return sum_members(fitted, rows, decide, n_workers)


def sum_members(
    fitted: FittedBagging, rows: Rows, answer: Callable[[Any, Any], NDArray[np.float64]], n_workers: int
) -> NDArray[np.float64]:
    """What `answer` says of (member, its columns of the rows), added up in the order of the members."""
    assert fitted.others is not None
    config, members, bags = get_config(), fitted.others.members, fitted.bags
    totals: list[NDArray[np.float64]] = []

    def work(task: int, _: Any) -> NDArray[np.float64]:
        with config_context(**config):
            return answer(members[task], rows.take(None, bags.columns(task)))

    def add(_: int, found: NDArray[np.float64]) -> None:
        if totals:
            np.add(totals[0], found, out=totals[0])
        else:
            totals.append(0.0 + found)

    run_tasks(work, len(members), n_workers, on_done=add, label="predicting", unit="members", is_short=n_workers == 1)
    return totals[0]
