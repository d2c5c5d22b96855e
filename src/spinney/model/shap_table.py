"""What SHAP values are handed over as: the numbers, what they are about, and how well they add up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_SHOWN = 5  # features in a repr


@dataclass(frozen=True, eq=False, repr=False)
class ShapValues:
    """SHAP values of rows: what each column added to the answer, from the answer where nothing is known.

    `base + values.sum(axis=1)` is the answer to each row. Made by `shap_values` of an estimator or a predictor.

    Attributes
    ----------
    values : float64 (n_rows, n_features), or (n_rows, n_features, n_outputs)
        The latter where a model has several outputs: a probability for each class, a raw score for each.
    base : float, or float64 (n_outputs,)
        The answer where nothing is known: path dependent, the mean over the training rows as the trees weigh them;
        with background rows, the mean of their answers.
    names : tuple of str
        Of the columns; `x0`, `x1`, ... where the model was fitted without.
    data : object (n_rows, n_features)
        The rows: numbers, levels, None where a value is missing.
    outputs : tuple
        Classes; (None,) for one number.
    output : {"raw", "probability"}
        Whether the values add up to raw scores, which a link makes probabilities of, or to what `predict` and
        `predict_proba` give. Of trees and forests both are the same.
    interactions : float64 (n_rows, n_features, n_features), or one more axis of outputs, or None
        Where they were asked for. Row and column sums are `values`.
    largest_difference : float
        Between any `base + sum of values` and the model's own answer.
    relative_difference : float
        The same, over the largest answer or base; of the order of 1e-15 but for models that overflow.

    Examples
    --------
    >>> from spinney import CARTRegressor
    >>> tree = CARTRegressor().fit([[1, 5], [2, 5], [3, 5], [4, 6]], [1.0, 1.0, 3.0, 3.0])
    >>> found = tree.shap_values([[4, 5]])
    >>> found.values, found.base
    (array([[1., 0.]]), 2.0)
    """

    values: NDArray[np.float64]
    base: Any
    names: tuple[str, ...]
    data: NDArray[Any] = field(repr=False)
    outputs: tuple[Any, ...]
    output: str
    interactions: NDArray[np.float64] | None
    largest_difference: float
    relative_difference: float

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_rows, n_features = self.values.shape[:2]
        what = "" if self.values.ndim == 2 else f" x {len(self.outputs)} outputs"
        size = self.sizes()
        order = np.argsort(-size, kind="stable")[:N_SHOWN]
        most = ", ".join(f"{self.names[j]} {size[j]:.4g}" for j in order.tolist())
        return (
            f"ShapValues({n_rows} rows x {n_features} columns{what}; mean size: {most}; "
            f"sums differ by {self.largest_difference:.1g})"
        )

    def sizes(self) -> NDArray[np.float64]:
        """Mean of the absolute values of each column, over rows and outputs, (n_features,)."""
        if len(self.values) == 0:
            return np.zeros(self.values.shape[1])
        mean = np.abs(self.values).mean(axis=0)
        return mean if mean.ndim == 1 else mean.mean(axis=1)

    def of(self, output: Any) -> ShapValues:
        """The values of one output alone: a class, or the place of a raw score.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> tree = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> tree.shap_values([[4]]).of("yes").values
        array([[0.5]])
        """
        if output not in self.outputs:
            raise ValueError(f"{output!r} is no output: there are {', '.join(map(repr, self.outputs[:20]))}")
        if self.values.ndim == 2:
            return self
        k = self.outputs.index(output)
        pairs = None if self.interactions is None else self.interactions[..., k]
        one = (self.outputs[k],)
        return replace(self, values=self.values[..., k], base=float(self.base[k]), outputs=one, interactions=pairs)

    def take(self, rows: Any) -> ShapValues:
        """The values of some rows: a slice, or their places."""
        rows = np.arange(len(self))[rows].reshape(-1)
        pairs = None if self.interactions is None else self.interactions[rows]
        return replace(self, values=self.values[rows], data=self.data[rows], interactions=pairs)

    def to_frame(self) -> Any:
        """The values by name: a pandas frame, or an Arrow table where pandas is not installed.

        There is a row for each row; of several outputs one for each row and output, which columns in front name.

        Examples
        --------
        >>> from spinney import CARTRegressor
        >>> CARTRegressor().fit([[1], [2]], [0.0, 1.0]).shap_values([[1], [2]]).to_frame()
            x0
        0 -0.5
        1  0.5
        """
        n_rows, n_features = self.values.shape[:2]
        front: dict[str, Any] = {}
        values = self.values
        if values.ndim > 2:
            n_outputs = len(self.outputs)
            front = {"row": np.repeat(np.arange(n_rows), n_outputs), "output": list(self.outputs) * n_rows}
            values = values.swapaxes(1, 2).reshape(-1, n_features)
        columns = front | {name: values[:, j] for j, name in enumerate(self.names)}
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)

    def to_shap(self) -> Any:
        """The same as `shap.Explanation`, for the pictures of that library (needs `shap`)."""
        try:
            from shap import Explanation  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise ImportError(
                "this needs the library shap: pip install shap; spinney.plot.shap does without"
            ) from error
        base = np.broadcast_to(self.base, (len(self), *self.values.shape[2:])).astype(np.float64)
        outputs = None if self.values.ndim == 2 else [str(name) for name in self.outputs]
        return Explanation(self.values, base, self.data, feature_names=list(self.names), output_names=outputs)
