"""What every estimator checks of X, y, weights and parameters, in scikit-learn's words where it has them."""

from __future__ import annotations

import contextlib
import contextvars
import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from spinney.estimators.kept import VALUE
from spinney.estimators.scanned import is_scanned
from spinney.scale.cluster.collections import is_collection
from spinney.table.columns import Categories, Columns, is_missing_type, match_names, open_columns
from spinney.table.fixed_point import WHOLE_LIMIT
from spinney.table.sparse import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.table.schema import Schema

WHOLE_BITS = 52  # of the share of a class in whole weights
NO_WEIGHT = "Sample weights are all zero: at least one weight must be positive."
NO_CLASS_WEIGHT = "Sample weights are all zero after class_weight: at least one weight must be positive."
NO_MONOTONE = "Monotonicity constraints are not supported with multiple outputs: monotonic_cst"  # takes one output
MOST_STATE = 2**32 - 1  # of a number that NumPy's generator takes
MOST_NAMED = 5  # of unknown names
LETTER = np.dtype("U1")
MOST_LOOKED_UP = 1 << 62  # size of a class whose difference to another is an int64
MODERATE = (1e-100, 1e100)  # largest weights whose products and sums are far from the ends of float64


@contextlib.contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if what follows fails: a refused or interrupted refit keeps the old model.

    So does a warm start that has learnt nothing: names and classes stay those of the model, too.
    """
    before, is_new = dict(vars(estimator)), False
    try:
        yield
        is_new = VALUE not in before or vars(estimator).get(VALUE) is not before[VALUE]
    finally:
        if not is_new:
            vars(estimator).clear()
            vars(estimator).update(before)


def open_x(estimator: Any, X: Any, *, is_fit: bool) -> Columns:
    """The columns of X: in fit its names and width are recorded, later they are brought into the order of fit."""
    if is_collection(X):
        raise TypeError(
            f"X is a Dask {type(X).__name__}, and this takes rows in memory: give X.compute(), or a sample of the rows"
        )
    if is_scanned(X):
        way_out = "read a sample of them" if is_fit else f"use predict_batches of {type(estimator).__name__}"
        raise TypeError(f"X is a {type(X).__name__.lower()}, and this takes rows in memory: {way_out}")
    columns = open_columns(X)
    if is_fit:
        if columns.is_records:
            message = "fit takes tables, and X is a dict or a list of them: give a frame, say pandas.DataFrame(X)."
            raise TypeError(message)
        estimator.n_features_in_ = columns.n_columns
        if columns.names is not None:
            estimator.feature_names_in_ = np.array(columns.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return columns
    columns = match_names(columns, getattr(estimator, "feature_names_in_", None), type(estimator).__name__)
    if columns.n_columns != estimator.n_features_in_:
        message = (
            f"X has {columns.n_columns} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
        raise ValueError(message)
    return columns


def check_y(estimator: Any, y: Any, n_rows: int, first: int = 0) -> NDArray[Any]:
    """`y` as one column without missing values, of the length of X; a copy, out of other threads' reach.

    estimator: it, or its name; first: row of y[0].
    """
    if y is None:
        name = estimator if isinstance(estimator, str) else type(estimator).__name__
        message = f"{name} requires y to be passed, but the target y is None."
        raise ValueError(message)
    y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    column: NDArray[Any] = np.array(column_or_1d(y, warn=True))
    if column.dtype.kind in "cmM":
        what = "Complex data" if column.dtype.kind == "c" else f"Data of type {column.dtype}"
        message = f"{what} not supported in y, such as {column[0]}. Convert it to numbers or text."
        raise ValueError(message)
    check_complete(column, first)
    if len(column) != n_rows:
        message = (
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(column)}."
        )
        raise ValueError(message)
    return column


def check_complete(y: NDArray[Any], first: int = 0) -> None:
    """Refuse missing and infinite targets, in scikit-learn's words, and say where the first is; first: row of y[0]."""
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        bad = find_missing(y)
    else:
        return
    if bad.any():
        row = int(np.argmax(bad))
        is_infinite = y.dtype.kind == "f" and np.isinf(y[row])
        what = f"infinity or a value too large for {y.dtype!r}" if is_infinite else "NaN"
        message = f"Input y contains {what}. The first is in row {first + row}; leave out such rows."
        raise ValueError(message)


def find_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of a column of any type are None, NaN, NaT or the like."""
    if column.dtype.kind in "fmM":
        return np.isnan(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), np.bool_)
    return np.array([is_missing_type(type(value)) or value != value for value in column])  # noqa: PLR0124  (NaN)


def check_numbers(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """The target of a regression as float64."""
    if isinstance(y, Categories):
        message = f"y must hold numbers for a regression, got text: {y.values[0]!r:.60}. For classes use a classifier."
        raise ValueError(message)  # noqa: TRY004, as any bad content
    y = check_y(estimator, y, n_rows)
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"y must hold numbers for a regression, got {y.dtype}: {error}. For classes use a classifier."
        raise ValueError(message) from error


class SparseTargetError(TypeError, ValueError):
    """A sparse y: scikit-learn's trees raise the one, its forests the other."""

    def __init__(self) -> None:
        super().__init__("sparse multilabel-indicator for y is not supported. Give its outputs in full, y.toarray()")


def has_outputs(y: Any) -> bool:
    """Whether y has several columns."""
    shape = getattr(y, "shape", None)
    if shape is None and isinstance(y, list | tuple) and len(y) and isinstance(y[0], list | tuple | np.ndarray):
        shape = np.shape(y[0])
        return len(shape) == 1 and shape[0] > 1
    return shape is not None and len(shape) == 2 and shape[1] > 1


def refuse_several(estimator: Any, y: Any, many: str) -> None:
    """Refuse y of several columns where a method takes one; many: a method of the same kind that takes several."""
    if has_outputs(y):
        name = type(estimator).__name__
        wrapper = f"MultiOutput{'Classifier' if 'Classifier' in many else 'Regressor'}"
        raise ValueError(
            f"y should be a 1d array, got an array of shape {np.shape(y)} instead: {name} takes one output. Fit "
            f"one model for each column, as sklearn.multioutput.{wrapper}({name}()) does, or use {many}, which takes "
            "several"
        )


def check_outputs(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """The targets of a regression with several outputs as float64, (n_rows, n_outputs)."""
    if is_sparse(y):
        raise SparseTargetError
    return np.stack(read_outputs(y, n_rows, lambda column: check_numbers(estimator, column, n_rows)), axis=1)


def read_outputs(y: Any, n_rows: int, check: Callable[[NDArray[Any]], Any]) -> list[Any]:
    """What a check gives for each column of y; where it raises, the message says in which."""
    try:
        table = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"y must have as many outputs in every row: {error}") from error
    columns = []
    for k, column in enumerate(table.T):
        is_named = table.dtype == object and any(isinstance(value, str) for value in column)
        try:
            columns.append(check(column if table.dtype != object or is_named else np.array(column.tolist())))
        except ValueError as error:
            if len(table) != n_rows:
                raise
            raise ValueError(f"{error} (In column {k} of y.)") from error
    return columns


def check_classes(estimator: Any, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and the position of each row's class among them."""
    if isinstance(y, Categories):  # of a table on disk, complete, of as many rows as X
        classes = np.array(sorted(y.values), dtype=object)
        place = {value: i for i, value in enumerate(classes.tolist())}
        return classes, np.array([place[value] for value in y.values], np.int64)[y.codes]
    y = check_y(estimator, y, n_rows)
    is_plain = y.dtype.kind in "biuU"  # only doubted where there are many: it takes as long as a fit of few rows
    try:
        if not is_plain:
            check_classification_targets(y)
        classes, codes = number_classes(y)
        if is_plain and len(classes) > len(y) // 2:
            check_classification_targets(y)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in y})
        if all(isinstance(value, bytes) for value in y):
            message = f"y holds bytes, such as {bytes(y[0])!r}. Decode them to text: [label.decode() for label in y]."
            raise TypeError(message) from error
        message = f"y mixes classes of different types ({', '.join(kinds)}); convert them to one"
        raise TypeError(message) from error
    return classes, codes


def number_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """`np.unique` with places; whole numbers that lie close together are looked up instead of sorted.

    500,000 rows of two classes take 4 ms instead of 76, which no thread shares. Single letters are whole numbers too.
    """
    if y.dtype == LETTER and y.flags.c_contiguous:
        classes, codes = number_classes(y.view(np.uint32))
        return classes.view(LETTER), codes
    if y.dtype.kind in "biu" and len(y):
        low, high = int(y.min()), int(y.max())
        if high - low < len(y) and max(-low, high) < MOST_LOOKED_UP:
            place = y.astype(np.int64) - low
            is_met = np.bincount(place) > 0
            return (np.flatnonzero(is_met) + low).astype(y.dtype), (np.cumsum(is_met) - 1)[place]
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.int64)


def check_known(y: Any, classes: NDArray[Any]) -> None:
    """Refuse classes that fit has not seen where there is no counting them as wrong: losses, margins, pruning."""
    unseen = set(np.asarray(y).ravel().tolist()) - set(classes.tolist())
    if unseen:
        message = (
            f"y holds the class {min(unseen, key=repr)!r}, which was not among the classes in fit: "
            f"{classes.tolist()[:10]}. Correct the label, or leave out such rows."
        )
        raise ValueError(message)


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Row weights as float64, finite, not negative, not all zero; a copy. None means 1 each."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64]
    try:
        weight = check_array(
            sample_weight,
            ensure_2d=False,
            dtype=np.float64,
            copy=True,  # another thread may still write to it
            ensure_all_finite=True,
            input_name="sample_weight",
        )
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        message = f"sample_weight must hold numbers: {error}"
        raise ValueError(message) from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        message = f"Sample weights must be 1D array or scalar, got {weight.ndim}D array"
        raise ValueError(message)
    if len(weight) != n_rows:
        message = f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}!"
        raise ValueError(message)
    refuse_negative(weight)
    if not np.any(weight > 0.0):
        raise ValueError(NO_WEIGHT)
    return weight


def refuse_negative(weight: NDArray[np.float64], first: int = 0) -> None:
    """Refuse negative weights; first: row of weight[0]."""
    if np.any(weight < 0.0):
        row = int(np.argmax(weight < 0.0))
        message = f"Negative values in data passed to `sample_weight`: {weight[row]} in row {first + row}"
        raise ValueError(message)


def check_codes(labels: Any, name: str, n_rows: int) -> NDArray[np.int32] | None:
    """Labels of groups or strata, one per row, as codes from 0."""
    if labels is None:
        return None
    column = np.asarray(labels)
    if column.shape != (n_rows,):
        message = f"{name} must have one label per row, shape ({n_rows},), got shape {column.shape}"
        raise ValueError(message)
    is_missing = find_missing(column)
    if is_missing.any():
        message = f"{name} must not be missing; row {int(np.argmax(is_missing))} is"
        raise ValueError(message)
    try:
        _, codes = np.unique(column, return_inverse=True)
    except TypeError as error:
        message = f"{name} mixes labels of different types; convert them to one"
        raise TypeError(message) from error
    return codes.astype(np.int32)


def weigh_classes(
    class_weight: Any,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    rounds: bool = True,
) -> NDArray[np.float64] | None:
    """Row weights times class weights, times a power of two where the product would leave float64.

    rounds: whether weights that balance the classes may be rounded, as in `balance_classes`.
    """
    if class_weight is None:
        return weight
    if weight is not None and not MODERATE[0] < weight.max() < MODERATE[1]:
        weight = scale_down(weight)
    weighted = find_class_weights(class_weight, classes, codes, weight, rounds=rounds)[codes] * (
        1.0 if weight is None else weight
    )
    if not np.any(weighted > 0.0):
        raise ValueError(NO_CLASS_WEIGHT)
    return weighted


def find_class_weights(
    class_weight: Any,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    rounds: bool,
) -> NDArray[np.float64]:
    """The weight of each class, (n_classes,), times a power of two near the ends of float64.

    Weights of classes that these rows lack do no harm, as in a fold of few rows; beside a class without a weight, such
    a name is taken for a slip.
    """
    if isinstance(class_weight, dict):
        known = set(classes.tolist())
        unknown = [label for label in class_weight if label not in known]
        if unknown and not known <= set(class_weight):
            raise ValueError(
                f"The classes, {sorted(known - set(class_weight), key=str)[:10]}, are not in class_weight, which names "
                f"{unknown[0]!r}: that is not among the classes {classes.tolist()[:10]}"
            )
        per_class = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
        if not np.all(np.isfinite(per_class) & (per_class >= 0.0)):
            message = f"class_weight must hold finite weights that are not negative, got {class_weight}"
            raise ValueError(message)
    else:
        per_class = balance_classes(codes, weight, len(classes), rounds=rounds)
    return per_class if MODERATE[0] < per_class.max() < MODERATE[1] else scale_down(per_class)


def count_copies(class_weight: Any, weight: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
    """How many copies of a row each row stands for, by whole weights that class weights are about to change.

    None where the weights themselves will say it, or where they are fractions and every row stands for one.
    """
    if class_weight != "balanced" or weight is None or not _is_whole(weight):
        return None
    return weight.astype(np.int64)


def _is_whole(weight: NDArray[np.float64]) -> bool:
    # the largest first: a sum of huge weights would overflow
    return bool(np.all(weight == np.floor(weight)) and weight.max() < WHOLE_LIMIT and weight.sum() < WHOLE_LIMIT)


def balance_classes(
    codes: NDArray[np.int64], weight: NDArray[np.float64] | None, n_classes: int, *, rounds: bool
) -> NDArray[np.float64]:
    """The weight of each class that makes all of them weigh the same in sum, shape (n_classes,); 0 where none has any.

    Sums are exact: the order of the rows makes no difference. With `rounds`, class weights beside whole weights have so
    few bits that all products are exact, in float64 and in fixed point: a row of weight 2 is two rows.
    """
    is_whole = weight is None or _is_whole(weight)
    if weight is None or is_whole:
        counts = np.bincount(codes, weight, n_classes).astype(np.float64)
    else:
        ends = np.cumsum(np.bincount(codes, minlength=n_classes))[:-1]
        parts = np.split(weight[np.argsort(codes, kind="stable")], ends)
        counts = np.array([math.fsum(part.tolist()) for part in parts])
    share = math.fsum(counts.tolist()) / n_classes
    per_class = np.zeros(n_classes)
    with np.errstate(over="ignore"):  # beside a class of next to no weight
        np.divide(share, counts, out=per_class, where=counts > 0.0)
    per_class = np.minimum(per_class, np.finfo(np.float64).max)
    if not (is_whole and rounds):
        return per_class
    bits = WHOLE_BITS - math.frexp(share)[1]  # no class, and so no row, weighs more than the share
    return np.ldexp(np.rint(np.ldexp(per_class, bits)), -bits)


def scale_down(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights times the power of two that brings the largest into [0.5, 1); trees do not depend on it."""
    return np.ldexp(weight, -math.frexp(float(weight.max()))[1])


def row_count(value: float, n_rows: int, least: int) -> int:
    """A number of rows given as such, or as a fraction of all rows; more than all rows count as one more."""
    wanted = int(value) if isinstance(value, int | np.integer) else math.ceil(value * n_rows)
    return max(min(wanted, n_rows + 1), least)


_generator: contextvars.ContextVar[Any] = contextvars.ContextVar("generator", default=None)


def draw_seed(random_state: Any) -> int:
    """One seed from `random_state`; a RandomState object is drawn from once.

    A number of more than 32 bits is a seed as it is: that of a member of an ensemble, which grows the same tree again.
    """
    if is_member_seed(random_state):
        return int(random_state)
    stand_in = _generator.get()
    if stand_in is not None and not isinstance(random_state, Integral):
        random_state = stand_in
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def is_member_seed(random_state: Any) -> bool:
    """Whether a `random_state` is the seed of a member of an ensemble, of more bits than NumPy's generator takes."""
    return isinstance(random_state, Integral) and int(random_state) > MOST_STATE


def take_state(random_state: Any) -> Any:
    """The state of the generator that seeds are drawn from; None where they follow from a number."""
    return None if isinstance(random_state, Integral) else check_random_state(random_state).get_state()


def set_state(random_state: Any, state: Any) -> None:
    """Leave a generator as a fit elsewhere has left its copy."""
    if state is not None:
        check_random_state(random_state).set_state(state)


@contextlib.contextmanager
def drawing_from(state: Any) -> Iterator[Callable[[], Any]]:
    """Draw seeds from a copy of the generator of another process; yields what gives its state then."""
    generator = None
    if state is not None:
        generator = np.random.RandomState()
        generator.set_state(state)
    token = _generator.set(generator)
    try:
        yield lambda: None if generator is None else generator.get_state()
    finally:
        _generator.reset(token)


def refuse_places(schema: Schema, name: str) -> None:
    """Refuse a parameter that counts features where columns of dates have made several of one."""
    if schema.dates is not None:
        dates = next(dates for dates in schema.dates if dates is not None)
        message = (
            f"{name} counts features, but column {dates.name!r} holds dates and becomes {', '.join(dates.features)}: "
            f"give {name} by name."
        )
        raise ValueError(message)


def refuse_date(schema: Schema, name: str, column: Any) -> None:
    """Refuse a column of dates where a feature is to be named."""
    for dates in schema.dates or ():
        if dates is not None and dates.name == column:
            raise ValueError(f"{name} names {column!r}, which holds dates: name one of {', '.join(dates.features)}.")


def list_named_signs(constraint: dict[Any, Any], estimator: Any, schema: Schema) -> list[Any]:
    """Constraints by the names of columns, one for each feature; 0 for those that are not named."""
    names = schema.names
    if names is None:
        raise ValueError(
            f"{type(estimator).__name__} was not fitted on data with feature names. Pass monotonic_cst as an "
            "integer array instead."
        )
    unknown = [name for name in constraint if name not in set(names)]
    if unknown:
        refuse_date(schema, "monotonic_cst", unknown[0])
        shown = sorted(map(str, unknown))[:MOST_NAMED] + ["..."] * (len(unknown) > MOST_NAMED)
        raise ValueError(
            f"monotonic_cst contains {len(unknown)} unexpected feature names: {shown}. "
            f"The columns are {list(names)[:10]}"
        )
    for name, sign in constraint.items():
        if isinstance(sign, str) or sign not in {-1, 0, 1}:
            raise ValueError(f"monotonic_cst[{name!r}] must be either -1, 0 or 1. Got {sign!r}.")
    return [constraint.get(name, 0) for name in names]


def check_monotone(constraint: Any, estimator: Any, schema: Schema) -> NDArray[np.int8] | None:
    """Constraints as -1, 0 or 1 per feature, from a list, an array or a dict by name.

    They are on the share of the second of two classes: more classes are refused, and one leaves nothing to constrain.
    """
    if constraint is None:
        return None
    n_features = schema.n_features
    is_boosted = hasattr(estimator, "learning_rate")  # scikit-learn's words for boosting are not those for trees
    if isinstance(constraint, dict):
        constraint = list_named_signs(constraint, estimator, schema)
    else:
        refuse_places(schema, "monotonic_cst")
    try:
        signs = np.asarray(constraint)
    except ValueError as error:
        message = "monotonic_cst must be one list of -1, 0 or 1 per feature, but its entries differ in length."
        raise ValueError(message) from error
    if signs.shape != (n_features,):
        shape = len(signs) if signs.ndim == 1 and not is_boosted else signs.shape
        message = f"monotonic_cst has shape {shape} but the input data X has {n_features} features."
        raise ValueError(message)
    if signs.dtype.kind not in "iufb" or not np.all(np.isin(signs, (-1, 0, 1))):
        what = "an array-like" if is_boosted else "None or an array-like"
        raise ValueError(f"monotonic_cst must be {what} of -1, 0 or 1. Observed values: {signs.tolist()[:10]}")
    clash = (signs != 0) & schema.is_categorical
    if np.any(clash):
        message = (
            "Categorical features cannot have monotonic constraints: only numbers have a direction, and "
            f"monotonic_cst constrains column {schema.name_of(int(np.argmax(clash)))}, which is categorical."
        )
        raise ValueError(message)
    n_classes = len(estimator._labels or ())  # noqa: SLF001
    if n_classes > 2 and np.any(signs):
        raise ValueError(
            "monotonic constraints are not supported for multiclass classification"
            if is_boosted
            else "Monotonicity constraints are not supported with multiclass classification"
        )
    return None if n_classes == 1 else signs.astype(np.int8)
