"""Pictures of fitted models and studies: each function gives a `Chart`.

A chart is shown by notebooks as it is; `to_svg()` and `save("picture.svg")` need nothing else, `show()`,
`to_matplotlib()` and `save("picture.png")` need matplotlib (`pip install "spinney[plot]"`). Most functions take rows
that the model has not seen: on its own rows every model looks better than it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.show import charts
from spinney.show.chart_model import Chart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.model.shap_table import ShapValues
    from spinney.study.result import Study

__all__ = [
    "Chart",
    "calibration",
    "confusion",
    "coverage",
    "dependence",
    "growth",
    "importances",
    "precision_recall",
    "pruning",
    "residuals",
    "roc",
    "scores",
    "shap",
]

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
N_ROWS = 300  # that `dependence` predicts at each point


def roc(model: Any, X: Any, y: Any) -> Chart:
    """Draw how many rows of a class are found against how many others are taken for it.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their classes. Of two classes the second has a curve, of more each, or
        the eight commonest.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestClassifier, plot
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "high", "low")
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> plot.roc(forest, X[200:], y[200:])
    <Chart: ROC: rows found against false alarms>
    """
    from spinney.study.held_out import separation_curves

    return charts.roc(separation_curves(*_read_probabilities(model, X, y)))


def precision_recall(model: Any, X: Any, y: Any) -> Chart:
    """Draw how many of the rows that are taken for a class are of it against how many of its rows are found.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their classes; curves are for the classes that `roc` has.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestClassifier, plot
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = X[:, 0] + X[:, 1] > 1
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> plot.precision_recall(forest, X[200:], y[200:])
    <Chart: Precision against recall>
    """
    from spinney.study.held_out import separation_curves

    return charts.precision_recall(separation_curves(*_read_probabilities(model, X, y)))


def calibration(model: Any, X: Any, y: Any) -> Chart:
    """Draw how often a class came against the probability that it was given, with 95 % intervals.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their classes; curves are for the classes that `roc` has.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestClassifier, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 1))
    >>> y = rng.random(600) < X[:, 0]
    >>> forest = RandomForestClassifier(min_samples_leaf=20, random_state=0).fit(X[:300], y[:300])
    >>> plot.calibration(forest, X[300:], y[300:])
    <Chart: Calibration: what probabilities are worth>
    """
    from spinney.study.held_out import calibration_bins

    return charts.calibration(calibration_bins(*_read_probabilities(model, X, y)))


def confusion(model: Any, X: Any, y: Any) -> Chart:
    """Draw rows by true and predicted class.

    Parameters
    ----------
    model : classifier
        Fitted.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their classes.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from spinney import C45Classifier, datasets, plot
    >>> table = datasets.load("contact_lenses")
    >>> X, y = table.drop_columns(["contact-lenses"]), table["contact-lenses"]
    >>> plot.confusion(C45Classifier().fit(X, y), X, y).to_table().rows[0]  # its own rows, for shortness
    ('hard', '3', '1', '0')
    """
    from spinney.study.held_out import count_confusion

    classes = _classes(model, "confusion")
    return charts.confusion(count_confusion(_read_classes(y, X, classes), np.asarray(model.predict(X)), classes))


def residuals(model: Any, X: Any, y: Any, *, kind: str = "points") -> Chart:
    """Draw the errors of predicted numbers.

    Parameters
    ----------
    model : regressor
        Fitted.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their true values.
    kind : {"points", "histogram"}
        True against predicted values, of at most 2000 rows; or how often predictions are wrong by how much.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import CARTRegressor, plot
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> tree = CARTRegressor(max_depth=3).fit(X[::2], np.sin(X[::2, 0]))
    >>> plot.residuals(tree, X[1::2], np.sin(X[1::2, 0]))
    <Chart: True against predicted values>
    """
    from sklearn.base import is_classifier

    from spinney.study.held_out import measure_residuals

    draw = {"points": charts.residuals, "histogram": charts.residual_histogram}
    if kind not in draw:
        raise ValueError(f"kind is 'points' or 'histogram', not {kind!r}")
    if is_classifier(model):
        raise TypeError(f"residuals are errors of predicted numbers; {_name(model)} predicts classes: see confusion")
    truth = _read_numbers(y, X)
    return draw[kind](measure_residuals(truth, np.asarray(model.predict(X), np.float64)))


def coverage(model: Any, X: Any, y: Any, *, levels: Sequence[float] = LEVELS, train: Any = None) -> Chart:
    """Draw how often the intervals or sets of classes of a forest hold the truth.

    Parameters
    ----------
    model : forest
        Fitted, with `predict_interval` or `predict_set`.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their true values or classes.
    levels : sequence of float
        Nominal coverages: the shares of rows whose truth is to be held.
    train : (X, y), optional
        The training data again; not needed after a fit with `oob_score`.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((400, 1))
    >>> y = X[:, 0] + rng.normal(0.0, 0.1, 400)
    >>> forest = RandomForestRegressor(n_estimators=50, oob_score=True, random_state=0).fit(X[:200], y[:200])
    >>> plot.coverage(forest, X[200:], y[200:], levels=[0.5, 0.9])
    <Chart: Coverage: how often the truth was inside>
    """
    from spinney.estimators.forest_classifier import ForestClassifier
    from spinney.estimators.forest_regressor import ForestRegressor
    from spinney.study.held_out import measure_coverage

    predict: Callable[..., NDArray[Any]]
    classes: NDArray[Any] | None = None
    if isinstance(model, ForestClassifier):
        classes = _classes(model, "coverage")
        truth, predict = _read_classes(y, X, classes), model.predict_set
    elif isinstance(model, ForestRegressor):
        truth, predict = _read_numbers(y, X), model.predict_interval
    else:
        raise TypeError(f"{_name(model)} has neither intervals nor sets: use a forest")
    regions = {float(level): predict(X, level, train=train) for level in levels}
    return charts.coverage([measure_coverage(_name(model), truth, regions, classes)])


def importances(model: Any, X: Any = None, y: Any = None) -> Chart:
    """Draw what each column is worth to a model, with standard errors over the trees; of many columns the first 15.

    Parameters
    ----------
    model : estimator
        Fitted, with `feature_importances_`; with X and y a forest.
    X, y : optional
        The rows that the model was fitted on. With them columns are permuted among out-of-bag rows; without, the
        fall of impurity on the training rows is drawn, which flatters columns of many values.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from spinney import RandomForestRegressor, datasets, plot
    >>> table = datasets.load("california_housing").slice(0, 500)
    >>> X, y = table.drop_columns(["MedHouseVal"]), table["MedHouseVal"]
    >>> forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> plot.importances(forest, X, y).y.levels[0]
    'MedInc'
    """
    from spinney.estimators.base_forest import BaseForest
    from spinney.study.evidence import Importance
    from spinney.study.importance import list_importances

    if (X is None) != (y is None):
        raise ValueError("importances by permutation need both X and y, the rows that the model was fitted on")
    if X is not None:
        if not isinstance(model, BaseForest):
            raise TypeError(
                f"{_name(model)} does not permute columns among out-of-bag rows, forests do: leave X and y out for "
                "importances by impurity, or use sklearn.inspection.permutation_importance on rows held out"
            )
        return charts.permutation_importances(list_importances(model, X, y))
    names: Sequence[str]
    errors: Sequence[float]
    if isinstance(model, BaseForest):
        table = model.importance("impurity")
        names, values, errors = table.feature, table.importance.tolist(), table.std_error.tolist()
    else:
        values = model.feature_importances_.tolist()
        # scikit-learn's rule for any fitted model: there is no such attribute where X had no names
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(values))])
        schema = getattr(model, "_schema", None)  # of a model of ours: dates are several features
        names = names if schema is None or schema.dates is None else schema.names
        errors = [np.nan] * len(values)
    found = [
        Importance(str(name), value, None if np.isnan(error) else error, value, None)
        for name, value, error in zip(names, values, errors, strict=True)
    ]
    return charts.impurity_importances(found)


def dependence(model: Any, X: Any, feature: str | int, *, label: Any = None, random_state: int = 0) -> Chart:
    """Draw how the prediction changes with one column, the others staying as they are: on average, and for single rows.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like or frame of shape (n_rows, n_features)
        Rows as the model knows them; 300 of them are drawn.
    feature : str or int
        Name or position of the column.
    label : optional
        The class whose probability is drawn: of two the second, else the one that is predicted most often.
    random_state : int
        Seed of the draw.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from spinney import GradientBoostingRegressor, datasets, plot
    >>> table = datasets.load("california_housing").slice(0, 500)
    >>> X, y = table.drop_columns(["MedHouseVal"]), table["MedHouseVal"]
    >>> model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    >>> plot.dependence(model, X, "MedInc")
    <Chart: Dependence on MedInc>
    """
    import pyarrow.compute as pc
    from sklearn.base import is_classifier

    from spinney.study.dependence import depend

    table, back = _open(X)
    names = table.column_names
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        feature = names[feature]
    if feature not in names:
        raise ValueError(f"feature {feature!r} is not a column of X: it has {', '.join(names[:20])}")
    if pc.all(pc.is_null(table[feature], nan_is_null=True)).as_py():
        raise ValueError(f"feature {feature!r} has no values in X")
    rows = np.random.default_rng(random_state).permutation(table.num_rows)[:N_ROWS]
    if not is_classifier(model):
        found = depend(lambda changed: model.predict(back(changed)), table, str(feature), rows, None)
        return charts.dependence(found, "target")
    place = _choose_class(model, back(table.take(rows)), label)
    found = depend(
        lambda changed: model.predict_proba(back(changed))[:, place],
        table,
        str(feature),
        rows,
        str(model.classes_[place]),
    )
    return charts.dependence(found, "target")


def growth(model: Any, X: Any, y: Any, *, metric: str | None = None) -> Chart:
    """Draw the score of an ensemble on held-out rows against its number of trees.

    Parameters
    ----------
    model : forest, bagging of trees or boosting
        Fitted. Boosting is read in its stages, a forest is the mean of its first trees.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        Rows that the model has not seen, and their true values or classes.
    metric : str, optional
        "accuracy", "balanced_accuracy", "log_loss" or "roc_auc"; "r2", "mae" or "rmse". By default the first for the
        task.

    Returns
    -------
    Chart

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import GradientBoostingRegressor, plot
    >>> X = np.random.default_rng(0).random((400, 2))
    >>> y = np.sin(5 * X[:, 0]) + X[:, 1]
    >>> model = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(X[:200], y[:200])
    >>> plot.growth(model, X[200:], y[200:]).to_table().header
    ('trees', 'R²')
    """
    from sklearn.base import is_classifier
    from sklearn.utils.validation import check_is_fitted

    from spinney.study.evidence import LearningCurve
    from spinney.study.metrics import choose_metric
    from spinney.study.staged import staged_predictions

    check_is_fitted(model)
    classes = model.classes_ if is_classifier(model) else None
    score = choose_metric(metric, "regression" if classes is None else "classification")
    truth = _read_numbers(y, X) if classes is None else _read_classes(y, X, classes)
    known = np.empty(0) if classes is None else classes
    rows = np.asarray(X) if isinstance(X, list | tuple) else X
    found = [
        (n, score.score(truth, predicted, known))
        for n, predicted in staged_predictions(model, rows, needs_probabilities=score.needs_probabilities)
    ]
    if not found:
        raise TypeError(f"{_name(model)} has no trees to count: growth is drawn of ensembles of trees")
    trees, values = zip(*found, strict=True)
    return charts.scores_by_trees([LearningCurve("", _name(model), trees, values, (), ())], score.title)


def pruning(model: Any, X: Any, y: Any) -> Chart:
    """Draw the error of a tree along its pruning path: on its own rows, and in a cross-validation.

    Parameters
    ----------
    model : CARTClassifier or CARTRegressor
        Its parameters are used; whether it is fitted does not matter, the tree is grown anew.
    X, y : array-like or frame of shape (n_rows, n_features), array-like of shape (n_rows,)
        The training rows.

    Returns
    -------
    Chart
        From at most 200 leaves on.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import CARTRegressor, plot
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 1))
    >>> plot.pruning(CARTRegressor(), X, (X[:, 0] > 0.5) + rng.normal(0.0, 0.1, 300))
    <Chart: Pruning: error against size of the tree>
    """
    from spinney.estimators.cart import CARTClassifier, CARTRegressor
    from spinney.study.tree_view import view_tree

    if not isinstance(model, CARTClassifier | CARTRegressor):
        raise TypeError(f"pruning paths are those of CARTClassifier and CARTRegressor, not of {_name(model)}")
    story = view_tree(model, X, _read_truth(y, X), name=_name(model), target="y")
    return charts.pruning(story.steps, story.chosen, story.one_error, story.measure)


def scores(study: Study) -> Chart:
    """Draw the mean score of each method of a study with its standard error.

    Parameters
    ----------
    study : Study
        Of `spinney.study.compare`, or `Study.from_json` of what `spinney study --json` printed.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from spinney import datasets, plot
    >>> from spinney.study import compare, prepare
    >>> data = prepare(datasets.load("contact_lenses"), "contact-lenses")
    >>> plot.scores(compare(data, methods=["id3"], n_splits=2, n_repeats=1))
    <Chart: Accuracy of each method>
    """
    return charts.scores(study)


# --- reading ---


def shap(
    found: ShapValues, kind: str = "beeswarm", *, output: Any = None, row: int = 0, feature: str | int | None = None
) -> Chart:
    """Draw SHAP values: what columns add to answers.

    Parameters
    ----------
    found : ShapValues
        What `shap_values` gave.
    kind : {"beeswarm", "bar", "waterfall", "dependence"}
        A point for each row and column; the mean size of each column; one row, column by column; one column, by its
        value.
    output : optional
        The class, where there are several outputs: the second of two by default.
    row : int, default=0
        The row of a waterfall.
    feature : str or int, optional
        The column of a dependence; by default the one that adds most.

    Returns
    -------
    Chart

    Examples
    --------
    >>> from spinney import GradientBoostingRegressor, datasets, plot
    >>> table = datasets.load("california_housing").slice(0, 500)
    >>> X, y = table.drop_columns(["MedHouseVal"]), table["MedHouseVal"]
    >>> found = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y).shap_values(X)
    >>> plot.shap(found, "dependence", feature="MedInc")
    <Chart: What MedInc adds>
    """
    from spinney.show import shap_charts

    if kind not in {"beeswarm", "bar", "waterfall", "dependence"}:
        raise ValueError(f"kind={kind!r}: give 'beeswarm', 'bar', 'waterfall' or 'dependence'")
    if len(found) == 0:
        raise ValueError("there are no rows to draw")
    if output is not None or kind != "bar":
        found = shap_charts.choose_output(found, output)
    if kind == "bar":
        return shap_charts.sizes_chart(found)
    if kind == "beeswarm":
        return shap_charts.swarm_chart(found)
    if kind == "waterfall":
        if not -len(found) <= row < len(found):
            raise ValueError(f"row={row}: there are {len(found)} rows")
        return shap_charts.row_chart(found, row)
    return shap_charts.column_chart(found, shap_charts.find_column(found, feature))


def _name(model: Any) -> str:
    return type(model).__name__


def _classes(model: Any, what: str) -> NDArray[Any]:
    """The classes of a fitted model."""
    from sklearn.base import is_classifier
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not is_classifier(model):
        raise TypeError(f"{what} is of classes; {_name(model)} predicts numbers: see residuals")
    return np.asarray(model.classes_)


def _read_truth(y: Any, X: Any) -> NDArray[Any]:
    """True values or classes, one for each row of X."""
    from sklearn.utils import check_consistent_length, column_or_1d

    truth = column_or_1d(np.asarray(y))
    check_consistent_length(X, truth)
    if len(truth) == 0:
        raise ValueError("X and y have no rows")
    return truth


def _read_numbers(y: Any, X: Any) -> NDArray[np.float64]:
    """True values, all of them numbers."""
    truth = _read_truth(y, X)
    try:
        numbers = truth.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y is to hold numbers: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"y has a value that is missing or infinite, first in row {np.flatnonzero(~np.isfinite(numbers))[0]}"
        )
    return numbers


def _read_classes(y: Any, X: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """True classes, all of which the model knows."""
    truth = _read_truth(y, X)
    unknown = [name for name in np.unique(truth).tolist() if name not in classes.tolist()]
    if unknown:
        raise ValueError(f"y has classes that the model does not know: {', '.join(map(repr, unknown[:5]))}")
    return truth


def _read_probabilities(model: Any, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """True classes, probabilities and the classes they are in order of."""
    classes = _classes(model, "this picture")
    if not hasattr(model, "predict_proba"):  # scikit-learn's rule: whether there are any may depend on parameters
        raise TypeError(f"{_name(model)} has no probabilities (predict_proba)")
    truth = _read_classes(y, X, classes)
    if len(np.unique(truth)) < 2:
        raise ValueError("y holds one class only: two are needed")
    return truth, np.asarray(model.predict_proba(X), np.float64), classes


def _open(X: Any) -> tuple[pa.Table, Callable[[pa.Table], Any]]:
    """X as an Arrow table, and how to get rows of it back into the form that the model was given."""
    import narwhals as nw
    import pyarrow as pa

    frame: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.to_arrow(), lambda table: table
    values = np.asarray(X)
    if values.ndim != 2:
        raise ValueError(f"X is to have rows and columns, not {values.ndim} dimensions")
    table = pa.table({f"x{j}": values[:, j] for j in range(values.shape[1])})
    return table, lambda rows: np.column_stack([np.asarray(column) for column in rows.columns])


def _choose_class(model: Any, X: Any, label: Any) -> int:
    """Position of the class whose probability is drawn."""
    classes = model.classes_.tolist()
    if label is not None:
        if label not in classes:
            raise ValueError(f"label {label!r} is not a class of the model: {', '.join(map(repr, classes[:20]))}")
        return classes.index(label)
    if len(classes) <= 2:
        return len(classes) - 1
    return int(np.bincount(np.searchsorted(model.classes_, model.predict(X))).argmax())
