"""What every estimator shares: checked parameters, a model that can be saved, and what it predicts, classes or numbers.

An estimator is three classes deep: `Estimator` < a family, which adds how it is fitted and what its model can tell <
the public class, which has the parameters and their meaning. `Classifier` or `Regressor` beside says what it predicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from spinney.estimators import saving
from spinney.estimators.batches import predict_batches
from spinney.estimators.checks import check_classes, check_numbers, check_outputs, has_outputs, refuse_several
from spinney.estimators.class_outputs import check_class_outputs, has_class_outputs, refuse_score
from spinney.estimators.kept import VALUE, Kept, is_fitted
from spinney.estimators.parameters import strict
from spinney.estimators.taking_collections import take_collections
from spinney.scale.plan import GrowingBytes, LevelGrowing, TopGrowing
from spinney.table.schema import Schema

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.model.base_predictor import Predictor
    from spinney.model.shap_table import ShapValues


Model = TypeVar("Model")


def find_outputs_fault(n_outputs: int, estimator: Any) -> str | None:
    """There are as many outputs as the trees have."""
    n: int = estimator._count_outputs()  # noqa: SLF001
    return None if n_outputs == n else f"there {'is one output' if n == 1 else f'are {n} outputs'}"


class Classifier(ClassifierMixin):
    """An estimator that predicts classes."""

    _keeps: ClassVar[dict[str, Kept]] = {"classes_": Kept(np.ndarray | list), "n_classes_": Kept(int | list)}
    _takes_outputs: ClassVar[bool] = False  # y may have several columns

    classes_: Any  # array (n_classes,) ascending; of several outputs a list of such
    n_classes_: Any  # int; of several outputs a list

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_collections(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes_outputs = self._takes_outputs and not any(self._asks_one_output().values())
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = takes_outputs
        return tags

    def _asks_one_output(self) -> dict[str, bool]:
        """Settings that take one output, as messages call them, and whether they are there; not checked yet."""
        return {}

    @property
    def _labels(self) -> tuple[Any, ...] | None:
        """The classes as Python's own values, in order; of several outputs a tuple for each."""
        if has_class_outputs(self):
            return tuple(tuple(each.tolist()) for each in self.classes_)
        return tuple(self.classes_.tolist())

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int64]:
        """Check the target of `fit`, set the classes in it, and return the code of each row's class."""
        if self._takes_outputs and has_outputs(y):
            self.classes_, codes = check_class_outputs(self, y, n_rows)
            self.n_classes_ = [len(each) for each in self.classes_]
            return codes
        refuse_several(self, y, "RandomForestClassifier")
        self.classes_, codes = check_classes(self, y, n_rows)
        self.n_classes_ = len(self.classes_)
        return codes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`; of several outputs, marks of 0 and 1, the share of the rows that are right in all."""
        if has_class_outputs(self):
            refuse_score(self.classes_)
        return float(super().score(X, y, sample_weight=sample_weight))


class Regressor(RegressorMixin):
    """An estimator that predicts numbers."""

    _takes_outputs: ClassVar[bool] = False  # y may have several columns

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_collections(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_outputs and not any(self._asks_one_output().values())
        return tags

    def _asks_one_output(self) -> dict[str, bool]:
        """Settings that take one output, as messages call them, and whether they are there; not checked yet."""
        return {}

    @property
    def _labels(self) -> tuple[Any, ...] | None:
        """None: there are no classes."""
        return None

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Check the target of `fit`, and return it as numbers."""
        if self._takes_outputs and has_outputs(y):
            return check_outputs(self, y, n_rows)
        refuse_several(self, y, "RandomForestRegressor")
        return check_numbers(self, y, n_rows)


@strict
class Estimator(BaseEstimator, Generic[Model]):
    """An estimator of this library, whose fitted model is one value, a `Model`.

    A class declares in `_keeps` which fitted attributes files and pickles hold, and what each may be; those of its
    bases come with it. What it needs while it is fitted travels as arguments, never as attributes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _keeps: ClassVar[dict[str, Kept]] = {
        "n_features_in_": Kept(int),
        "feature_names_in_": Kept(np.ndarray, is_needed=False),
        "n_outputs_": Kept(int, is_needed=False, check=find_outputs_fault),
        "_schema": Kept(Schema),
    }
    _takes_columns: ClassVar[bool] = True  # X may be `Columns`, opened before: no member of another library sees it
    n_features_in_: int
    _fitted: Model  # there after a fit, and not before

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_collections(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def __bool__(self) -> bool:
        """True, whatever the length: `model or default` is asked of models that are not fitted, too."""
        return True

    # --- the model ---

    def _count_outputs(self) -> int:
        """Numbers, or classes, that a row is predicted."""
        return 1

    def _find_fitted(self) -> Model:
        """The fitted model; scikit-learn's NotFittedError where there is none."""
        check_is_fitted(self, VALUE)
        return self._fitted

    def _find_old(self, *, warm_start: bool) -> Model | None:
        """The model that a fit adds to: that of the last fit, if this is a warm start."""
        return self._fitted if warm_start and VALUE in vars(self) else None

    @property
    def _labels(self) -> tuple[Any, ...] | None:
        """The classes of a fitted classifier; None of a regressor."""
        raise NotImplementedError

    def _make_predictor(self) -> Predictor:
        """What predicts; of a fitted estimator whose trees are of one forest."""
        raise NotImplementedError

    def _has_predictor(self) -> bool:
        """Whether the model is trees of one forest, for numbers or the classes of one output; of a fitted estimator."""
        return not has_class_outputs(self)

    def _why_no_predictor(self) -> str:
        """What a model is made of that is not trees of one forest, for a message."""
        if has_class_outputs(self):
            return "a predictor gives numbers, or the classes of one output, and this model has several"
        return f"the members of this {type(self).__name__} are no trees of one forest"

    def predictor(self) -> Predictor:
        """What predicts, without the rest: for one row in microseconds, see `Predictor`.

        Returns
        -------
        Predictor

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import CARTRegressor
        >>> ask = CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0]).predictor()
        >>> ask(np.array([2.2]))
        20.0
        """
        self._find_fitted()
        if not self._has_predictor():
            raise ValueError(f"{self._why_no_predictor()}: use predict")
        return self._make_predictor()

    def shap_values(
        self,
        X: Any,
        *,
        background: Any = None,
        output: str = "raw",
        interactions: bool = False,
        n_jobs: int | None = None,
    ) -> ShapValues:
        """Tell what each column added to the answer to each row, as `spinney.shap_values` does.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        background : array-like or frame, optional
            Rows that a column which is not known takes its values from; see `spinney.shap_values`.
        output : {"raw", "probability"}, default="raw"
            What values add up to.
        interactions : bool, default=False
            Whether to tell what pairs of columns add too.
        n_jobs : int, optional
            Threads at most; None: as many as the work pays for. Values are the same for any.

        Returns
        -------
        ShapValues

        Examples
        --------
        >>> from spinney import CARTRegressor
        >>> CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0]).shap_values([[3.0]]).values
        array([[10.]])
        """
        from spinney.model.shap import shap_values

        self._find_fitted()
        return shap_values(self, X, background=background, output=output, interactions=interactions, n_jobs=n_jobs)

    # --- tables on disk ---

    _growing_bytes: ClassVar[GrowingBytes] = GrowingBytes(has_bins=False, copies=1, state=110)

    def _level_growing(self) -> LevelGrowing | TopGrowing | None:
        """How trees are grown from disk, where memory cannot hold the rows; None: they cannot be."""
        return None

    def _refuse_scan(self) -> None:
        """Raise where the parameters ask for what needs the rows of X themselves, beside their codes."""

    def predict_batches(self, source: Any, method: str = "predict") -> Iterator[NDArray[Any]]:
        """Predict rows that are read in batches, so that neither they nor the predictions need fit into memory.

        Parameters
        ----------
        source : path, list of paths, frame, Arrow stream, Scan or Store
            As of `spinney.scan`: a file, a folder, a pattern. Columns are found by name; those that the model does not
            know are passed over.
        method : str
            The method that predicts: "predict", "predict_proba" or another that takes X alone.

        Returns
        -------
        iterator of arrays
            What the method gives for each batch, in the order of the rows.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from spinney import CARTRegressor
        >>> frame = pa.table({"x": [1.0, 2.0, 3.0]})
        >>> model = CARTRegressor().fit(frame, [10.0, 20.0, 30.0])
        >>> [batch.tolist() for batch in model.predict_batches(frame)]
        [[10.0, 20.0, 30.0]]
        """
        self._find_fitted()
        return predict_batches(self, source, method)

    # --- files and pickles ---

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model in a file that is safe to open; see `spinney.load_model`.

        Parameters
        ----------
        path : path
            By custom with the suffix `.spn`. The file that was there is whole until the new one is.

        Examples
        --------
        >>> import os, tempfile
        >>> from spinney import CARTRegressor, load_model
        >>> model = CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.spn")
        >>> model.save_model(path)
        >>> load_model(path).predict([[2.2]])
        array([20.])
        """
        self._find_fitted()
        self._validate_params()
        saving.save_estimator(self, path)

    def _is_fitted(self) -> bool:
        """Whether there is anything to be saved."""
        return is_fitted(self)

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes, given by the names that files have; they are not checked yet."""
        self.__dict__.update(values)

    def _find_fault(self) -> str | None:
        """What is wrong with the fitted attributes as a whole; each by itself is known to be of its type."""
        return None

    def _check_fitted(self) -> None:
        """Raise `BrokenFileError` unless the fitted attributes, just read, go together: before a kernel sees them."""
        saving.check_kept(self)

    def __getstate__(self) -> dict[str, Any]:
        """Text and arrays, as in a model file, and beside them what a file could not hold."""
        return saving.to_pickle(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes, checked as those of a model file are."""
        saving.from_pickle(self, state)
