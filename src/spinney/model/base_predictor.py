"""One predictor for every model: from a row, or a table of them, to an answer, without scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._cached import once
from spinney._jit import kernels
from spinney._types import N_CELLS
from spinney.model.packed_forest import RowSums, pack_links
from spinney.model.packed_steps import pack_steps, pays_for_ranks
from spinney.table.columns import match_names, open_columns
from spinney.table.records import RecordReader
from spinney.table.schema import Schema, encode
from spinney.table.sparse import fill_in, is_sparse
from spinney.tree.broken import BrokenTreeError

if TYPE_CHECKING:
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class OneRow(NamedTuple):
    """How one row is added up: `add_up(packed, x, out)`."""

    add_up: Any
    packed: NDArray[np.uint64]
    n_cells: int  # of out
    width: int  # of the sums, which are the first of them


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """What a fitted model needs to predict, and nothing else.

    `predictor()` of an estimator gives one, or `spinney.load_predictor`. It can be called: `predictor(x)` with one row
    gives a number, or the probabilities of the classes, in microseconds. The row is a dict, by name, or an array of
    values, of which nothing but the shape is looked at. `predict` and the other methods read tables and find columns by
    name, as those of the estimators do. Threads may share one.

    Attributes
    ----------
    schema : Schema
        Names and levels of the columns.
    classes : array (n_classes,), or None for numbers

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import CARTClassifier
    >>> predictor = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"]).predictor()
    >>> predictor(np.array([3.3]))
    array([0., 1.])
    >>> predictor.predict([[3.3], [0.5]])
    array(['yes', 'no'], dtype='<U3')
    """

    schema: Schema
    classes: NDArray[Any] | None

    def __repr__(self) -> str:
        what = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"{type(self).__name__}({self.n_features} features, {what})"

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what is derived from them is derived again."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields and check them."""
        self.__dict__.update({name: state[name] for name in self.__dataclass_fields__})
        self.check()

    @property
    def n_features(self) -> int:
        """How many values a row has, one for each column, but several for dates."""
        return self.schema.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of those values; None where the model was fitted without."""
        return self.schema.names

    @property
    def feature_importances(self) -> NDArray[np.float64]:
        """Importances of the features as `feature_importances_` of the model had them, (n_features,)."""
        raise NotImplementedError

    # --- what each kind of model says of values ---

    def answer(self, values: Values, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Numbers (n_rows,), or probabilities (n_rows, n_classes), of encoded rows."""
        raise NotImplementedError

    def choose(self, values: Values, n_jobs: int | None = None) -> NDArray[np.intp]:
        """Code of the class of each encoded row: the most probable, the first among equals."""
        return self.answer(values, n_jobs).argmax(axis=1)

    def find(self, values: Values) -> NDArray[np.int64]:
        """Leaf of each encoded row, (n_rows,), or in each tree, (n_rows, n_trees)."""
        raise NotImplementedError

    def _predict_by_tree(self, values: Values) -> NDArray[np.float64]:
        """What each tree says of each encoded row, (n_trees, n_rows), or shares (n_trees, n_rows, n_classes)."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise BrokenTreeError unless the parts fit each other: before a kernel sees them."""
        raise NotImplementedError

    def check_model(self, model: Tree | Forest, n_classes: int) -> None:
        """The trees are for these columns and classes."""
        levels = [0 if levels is None else len(levels) for levels in self.schema.levels]
        if model.n_features != len(levels) or model.n_levels.tolist() != levels:
            raise BrokenTreeError("the trees have other columns or levels than the schema")
        if model.n_classes != n_classes:
            raise BrokenTreeError(f"the trees have {model.n_classes} classes, expected {n_classes}")

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for numbers."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def n_numbers(self) -> int:
        """Numbers that `predict` gives for a row, 1 but for several quantiles."""
        return 1

    # --- one row ---

    def row_sums(self) -> RowSums | None:
        """The sums over trees that answer one row; None where it is not answered by such."""
        return None

    def finish(self, out: NDArray[np.float64]) -> Any:
        """The answer to one row from the sums over its trees."""
        raise NotImplementedError

    @once
    def _one_row(self) -> OneRow | None:
        """The kernel for one row and what it reads; None: there are no sums.

        Made at the first single row: tables do not need it, and it is memory of this process alone.
        """
        sums = self.row_sums()
        if sums is None:
            return None
        k = kernels(math.inf).predict
        steps = pack_steps(sums) if pays_for_ranks(sums) else None
        add_up, packed = (k.one_row.add_up, pack_links(sums)) if steps is None else (k.ranked_row.add_ranked, steps)
        return OneRow(add_up, packed, int(packed[N_CELLS]), sums.width)

    @once
    def _shape(self) -> tuple[int]:
        """The shape of a row."""
        return (self.n_features,)

    @once
    def _level_columns(self) -> NDArray[np.intp] | None:
        """Columns of categories; None where there are none."""
        columns = np.flatnonzero(self.schema.is_categorical)
        return columns if len(columns) else None

    @once
    def _n_levels(self) -> NDArray[np.float64]:
        """How many levels each column of categories has."""
        return np.array([len(levels) for levels in self.schema.levels if levels is not None], np.float64)

    def __call__(self, x: Any) -> Any:
        """Answer for one row by name, or for values.

        Parameters
        ----------
        x : dict, or float64 or float32 array (n_features,) or (n_rows, n_features)
            A dict has a cell for each name of fit, in any order: a number, a level, None where it is missing; a level
            that fit has not seen is missing. A list of dicts is rows.
            Of an array nothing is looked at but the shape: a category is the index of its level (`encode` of a table
            gives that), a missing value is NaN. Lists and other arrays of numbers are converted; frames are refused,
            since nobody would look at their names.

        Returns
        -------
        float, or float64 array (n_classes,), for one row; else arrays (n_rows,) or (n_rows, n_classes)
            The very numbers of `predict` and `predict_proba`.
        """
        if not (type(x) is np.ndarray and x.flags.carray and x.dtype in FLOATS):
            if isinstance(x, Mapping):
                return self._answer_row(self._read_record(x))
            x = self.encode(x) if is_records(x) else read_floats(x)
        if x.shape == self._shape:
            return self._answer_row(x if self._level_columns is None else self._know_levels(x))
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise ValueError(f"x has shape {x.shape}: a row has {self.n_features} values")
        return self.answer(x if self._level_columns is None else self._know_levels(x))

    def _answer_row(self, x: NDArray[Any]) -> Any:
        """Answer for the values of one row, of which every level is one."""
        one_row = self._one_row
        if one_row is None:
            return self.answer(x[None])[0]
        add_up, packed, n_cells, width = one_row
        out = np.empty(n_cells)
        add_up(packed, x, out)
        return self.finish(out[:width])

    @once
    def _records(self) -> RecordReader:
        """What reads dicts."""
        return RecordReader(self.schema)

    def _read_record(self, record: Mapping[str, Any]) -> NDArray[np.float64]:
        """The values of one row by name: of a table of one where that is needed."""
        values = self._records.read(record)
        return self.encode(record)[0] if values is None else values

    def _know_levels(self, x: NDArray[Any]) -> NDArray[Any]:
        """X where a category whose value is not the index of one of its levels is NaN.

        Kernels look an index up in a bitset without a check, so one that is out of range must not reach them.
        """
        level = x[..., self._level_columns]
        with np.errstate(invalid="ignore"):
            is_level = (level >= 0.0) & (level < self._n_levels) & (level == np.floor(level))
        if is_level.all():
            return x
        x = x.copy()
        x[..., self._level_columns] = np.where(is_level, level, np.nan)
        return x

    # --- tables ---

    def encode(self, X: Any) -> NDArray[Any]:
        """A table as values, (n_rows, n_features): categories as the index of their level, missing as NaN."""
        return fill_in(self._read(X))

    def _read(self, X: Any) -> Values:
        """A table as values; of a sparse one, in full only by blocks."""
        listed = "feature_names" if self.schema.dates is None else "schema.column_names"
        columns = match_names(open_columns(X), self.schema.column_names, type(self).__name__, listed)
        return encode(columns, self.schema)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Predict the class or the number of each row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), dict of one row, or list of dicts
            Columns with names are found by them, in any order.
        n_jobs : int, optional
            Threads at most; None: as many as the work pays for.
        """
        values = self._read(X)
        if self.classes is None:
            return self.answer(values, n_jobs)
        return self.classes[self.choose(values, n_jobs)]

    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_rows, n_classes)."""
        if self.classes is None:
            raise ValueError("this model predicts numbers, which have no classes: use predict")
        return self.answer(self._read(X), n_jobs)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row, shape (n_rows,), or in each tree, shape (n_rows, n_trees)."""
        return self.find(self._read(X))

    def predict_trees(self, X: Any) -> NDArray[np.float64]:
        """What each tree says by itself: (n_trees, n_rows), or class shares (n_trees, n_rows, n_classes).

        Of gradient boosting: the raw score that each tree adds.
        """
        return self._predict_by_tree(self._read(X))


def is_records(x: Any) -> bool:
    """Whether these are rows by name."""
    return isinstance(x, list | tuple) and len(x) > 0 and isinstance(x[0], Mapping)


def read_floats(x: Any) -> NDArray[Any]:
    """Numbers of any kind as an array that kernels read: C-contiguous float32, or float64."""
    if is_sparse(x):
        raise TypeError("x is sparse: `predict` and `predict_proba` read that, and `encode` makes values of it")
    if hasattr(x, "columns"):
        raise TypeError("x is a frame: `predict` and `predict_proba` read those, and `encode` makes values of them")
    rule = "x must be numbers, a category the index of its level (`encode` makes them of a table), or a dict by name"
    if np.iscomplexobj(x):
        raise TypeError(f"{rule}: these are complex")
    try:
        return np.array(x, np.float32 if getattr(x, "dtype", None) == np.float32 else np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{rule}: {error}") from None
