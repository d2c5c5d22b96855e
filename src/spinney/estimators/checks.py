"""What every estimator checks of X, y, weights and parameters, in scikit-learn's words where it has them."""

from __future__ import annotations

import difflib
import inspect
import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from spinney.table.columns import Columns, open_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema

MODERATE = (1e-100, 1e100)  # largest weights whose products and sums are far from the ends of float64


class CheckedParams:
    """Parameters by scikit-learn's rules, a little stricter: misspelt names and booleans for numbers are refused."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep the signature of `__init__` visible: `__new__` would hide it."""
        super().__init_subclass__(**options)
        signature = inspect.signature(cls.__init__)
        cls.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )

    def __new__(cls, *_: Any, **params: Any) -> Any:
        """Check the spelling, and say which name was probably meant; `__init__` does the rest."""
        known = inspect.signature(cls.__init__).parameters
        for name in params:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(list(known)[1:])}."
                message = f"{cls.__name__} has no parameter {name!r}. {hint}"
                raise TypeError(message)
        return super().__new__(cls)

    def _validate_params(self) -> None:
        """Check the values."""
        super()._validate_params()  # type: ignore[misc]
        for name, rules in self._parameter_constraints.items():
            value = getattr(self, name)
            # True is 1 to Python, but max_depth=True is a mistake
            if isinstance(value, bool | np.bool_) and any(isinstance(rule, Interval) for rule in rules):
                message = (
                    f"The {name!r} parameter of {type(self).__name__} must be a number. Got {value} instead."
                )
                raise InvalidParameterError(message)


def open_x(estimator: Any, X: Any, *, is_fit: bool) -> Columns:
    """The columns of X, its names and width recorded (fit) or compared with those of fit."""
    _check_feature_names(estimator, X, reset=is_fit)
    columns = open_columns(X)
    _check_n_features(estimator, np.broadcast_to(0.0, (columns.n_rows, columns.n_columns)), reset=is_fit)
    return columns


def check_y(estimator: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Y as one column without missing values, of the length of X; a copy, which no other thread can change."""
    if y is None:
        message = f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        raise ValueError(message)
    y = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    y = np.array(column_or_1d(y, warn=True))
    if y.dtype.kind == "c":
        message = f"Complex data not supported\n{y}\n"
        raise ValueError(message)
    assert_all_finite(y, input_name="y")
    if len(y) != n_rows:
        message = (
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, y has {len(y)}."
        )
        raise ValueError(message)
    return y


def check_numbers(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """The target of a regression as float64."""
    y = check_y(estimator, y, n_rows)
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = (
            f"y must hold numbers for a regression, got {y.dtype}: {error}. For classes use a classifier."
        )
        raise ValueError(message) from error


def check_classes(estimator: Any, y: Any, n_rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and the position of each row's class among them."""
    y = check_y(estimator, y, n_rows)
    check_classification_targets(y)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in y})
        message = f"y mixes classes of different types ({', '.join(kinds)}); convert them to one"
        raise TypeError(message) from error
    return classes, codes.astype(np.int64)


def check_known(y: Any, classes: NDArray[Any]) -> None:
    """Refuse classes that fit has not seen: "Yes" instead of "yes" would be counted as an error of the model."""
    unseen = set(np.asarray(y).ravel().tolist()) - set(classes.tolist())
    if unseen:
        message = (
            f"y holds the class {min(unseen, key=repr)!r}, which was not among the classes in fit: "
            f"{classes.tolist()[:10]}. To count such rows as wrong, use sklearn.metrics.accuracy_score, "
            "or scoring='accuracy' in cross-validation."
        )
        raise ValueError(message)


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Row weights as float64, finite, not negative, not all zero; a copy. None means 1 each."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64] = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        copy=True,  # another thread may still write to it
        ensure_all_finite=True,
        input_name="sample_weight",
    )
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.ndim != 1:
        message = f"Sample weights must be 1D array or scalar, got {weight.ndim}D array"
        raise ValueError(message)
    if len(weight) != n_rows:
        message = f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}!"
        raise ValueError(message)
    if np.any(weight < 0.0):
        row = int(np.argmax(weight < 0.0))
        message = f"Negative values in data passed to `sample_weight`: {weight[row]} in row {row}"
        raise ValueError(message)
    if not np.any(weight > 0.0):
        message = "Sample weights are all zero: at least one weight must be positive."
        raise ValueError(message)
    return weight


def weigh_classes(
    class_weight: Any, classes: NDArray[Any], codes: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Row weights times class weights, times a power of two where the product would leave float64."""
    if class_weight is None:
        return weight
    if weight is not None and not MODERATE[0] < weight.max() < MODERATE[1]:
        weight = scale_down(weight)
    if isinstance(class_weight, dict):
        unknown = [label for label in class_weight if label not in set(classes.tolist())]
        if unknown:
            message = (
                f"class_weight names {unknown[0]!r}, which is not among the classes {classes.tolist()[:10]}"
            )
            raise ValueError(message)
        per_class = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
        if not np.all(np.isfinite(per_class) & (per_class >= 0.0)):
            message = f"class_weight must hold finite weights that are not negative, got {class_weight}"
            raise ValueError(message)
    else:  # "balanced": every class gets the same weight in sum
        counts = np.bincount(codes, weight, len(classes))
        per_class = np.zeros(len(classes))
        with np.errstate(over="ignore"):  # beside a class of next to no weight
            np.divide(counts.sum(), len(classes) * counts, out=per_class, where=counts > 0)
        per_class = np.minimum(per_class, np.finfo(np.float64).max)
    if not MODERATE[0] < per_class.max() < MODERATE[1]:
        per_class = scale_down(per_class)
    weighted = per_class[codes] * (1.0 if weight is None else weight)
    if not np.any(weighted > 0.0):
        message = "Sample weights are all zero after class_weight: at least one weight must be positive."
        raise ValueError(message)
    return weighted


def scale_down(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights times the power of two that brings the largest into [0.5, 1); trees do not depend on it."""
    return np.ldexp(weight, -math.frexp(float(weight.max()))[1])


def row_count(value: float, n_rows: int, least: int) -> int:
    """A number of rows given as such, or as a fraction of all rows; more than all rows count as one more."""
    wanted = int(value) if isinstance(value, Integral) else math.ceil(value * n_rows)
    return max(min(wanted, n_rows + 1), least)


def draw_seed(random_state: Any) -> int:
    """One seed from `random_state`; a RandomState object is drawn from once."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_monotone(constraint: Any, estimator: Any, schema: Schema) -> NDArray[np.int8] | None:
    """Constraints as -1, 0 or 1 per feature, from a list, an array or a dict by name."""
    if constraint is None:
        return None
    n_features = schema.n_features
    if isinstance(constraint, dict):
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            message = (
                "monotonic_cst by name needs an X with column names; pass a list of one value per feature"
            )
            raise ValueError(message)
        unknown = [name for name in constraint if name not in set(names)]
        if unknown:
            message = (
                f"monotonic_cst names {unknown[0]!r}, which is not among the columns {list(names)[:10]}"
            )
            raise ValueError(message)
        constraint = [constraint.get(name, 0) for name in names]
    try:
        signs = np.asarray(constraint)
    except ValueError as error:
        message = "monotonic_cst must be one list of -1, 0 or 1 per feature, but its entries differ in length."
        raise ValueError(message) from error
    if signs.shape != (n_features,):
        message = f"monotonic_cst has shape {signs.shape} but the input data X has {n_features} features."
        raise ValueError(message)
    if signs.dtype.kind not in "iufb" or not np.all(np.isin(signs, (-1, 0, 1))):
        message = (
            f"monotonic_cst must be None or an array-like of -1, 0 or 1, but got {signs.tolist()[:10]}"
        )
        raise ValueError(message)
    clash = (signs != 0) & schema.is_categorical
    if np.any(clash):
        message = (
            f"monotonic_cst constrains column {schema.name_of(int(np.argmax(clash)))}, which is categorical; "
            "only numeric columns have a direction."
        )
        raise ValueError(message)
    return signs.astype(np.int8)
