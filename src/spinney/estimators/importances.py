"""Importances of the features of a fitted forest, and a selector by them."""

from __future__ import annotations

import difflib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from spinney._cost import SHORT_SECONDS
from spinney._jit import kernels
from spinney._threads import count_workers, run_tasks
from spinney._types import ROW
from spinney._warnings import warn
from spinney.estimators import parameters
from spinney.estimators.base_estimators import hold_rows
from spinney.estimators.checks import all_or_nothing, draw_seed, open_x
from spinney.estimators.out_of_bag import KnownAnswers, find_score
from spinney.model.importance import (
    ImportanceTable,
    LeftOut,
    Trial,
    find_partners,
    impurity_by_tree,
    tabulate,
    unbiased_decrease,
)
from spinney.tree.predict import leaf_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.ensemble.sampling import Draw
    from spinney.tree.forest import Forest

KINDS = ("impurity", "impurity_oob", "permutation", "conditional")
ROW_SECONDS = 5e-7  # a row through a tree with its features permuted, compiled
INTERPRETED = 200  # times as long
CORRELATED = 0.2  # Strobl et al. 2008
DOUBT = 2.0  # standard errors within which an importance may be 0


class Importances:
    """Importances of the features of a forest, after the fit."""

    forest_: Forest
    n_jobs: int | None
    verbose: int
    _draw: Draw
    _seed: int
    _training_values: Callable[[Any, Any], tuple[NDArray[Any], NDArray[Any]]]

    def importance(
        self,
        kind: str = "impurity",
        X: Any = None,
        y: Any = None,
        *,
        groups: dict[Any, Any] | None = None,
        n_repeats: int = 1,
        random_state: Any = None,
        scoring: Any = None,
        threshold: float = CORRELATED,
    ) -> ImportanceTable:
        """Say how much each feature, or group of features, matters to the forest.

        Parameters
        ----------
        kind : {"impurity", "impurity_oob", "permutation", "conditional"}
            - "impurity": decrease of impurity on the training rows, scaled to sum 1, as `feature_importances_`. Fast,
              but it favours features with many values, and gives noise a share. With X and y, `check_importance`
              warns of such features.
            - "impurity_oob": decrease of impurity that rows out of the bag confirm (Zhou and Hooker 2021); 0 in
              expectation for a feature that says nothing of y. In units of Gini impurity or squared target. With
              `pruning="oob"` those rows have chosen the tree, and it is not free of bias.
            - "permutation": how much larger a tree's error on its out-of-bag rows is when the feature is permuted
              among them, in the mean over the trees (Breiman 2001): share of wrong classes, or squared error.
            - "conditional": the same, permuted only among rows that are alike in the features correlated with this
              one, by the tree's own tests of them (Strobl et al. 2008): what the feature says beyond those. Rows are
              alike by the tree's largest tests, so many that five rows go with each other in the mean; what is left
              of the correlation within such cells is still counted. A tree that does not test a correlated feature,
              as where one is an exact copy of the other, cannot hold it.
        X, y : array-like, optional
            The training data again, which no model keeps; needed for all kinds but "impurity", for which both or none
            are given.
        groups : dict, optional
            Name of a group -> its features, by name or position. Features of a group are permuted together, and the
            table has one row a group. Groups may overlap.
        n_repeats : int
            Permutations for each tree, of which the mean is taken.
        random_state : int, RandomState or None
            Seed of the permutations; None: that of the forest. The number of threads changes nothing.
        scoring : str or callable, optional
            For the two permutations, in place of the error: the name of a scorer of scikit-learn, a scorer, or a
            function `score(y, predicted)`, larger being better. The importance is the fall of a tree's score. Slower.
        threshold : float
            For "conditional": features correlated by more than this are held.

        Returns
        -------
        ImportanceTable
            `feature`, `importance`, `std_error` (over the trees); prints, plots and becomes a frame.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.column_stack([np.arange(60) % 4, np.arange(60) % 7])
        >>> forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, X[:, 0])
        >>> forest.importance("permutation", X, X[:, 0]).sorted().feature
        ('x0', 'x1')
        """
        check_is_fitted(self, "forest_")
        check_asked(kind, n_repeats, scoring, threshold)
        names, units = self._name_units(groups)
        if kind == "impurity":
            if (X is None) != (y is None):
                raise ValueError(
                    "impurity importance is checked against the training data if both X and y are given: pass the "
                    "other as well, or neither"
                )
            if X is not None and y is not None and self._draw.kind != "whole":
                self._warn_of_noise(X, y, random_state)
            by_feature = impurity_by_tree(self.forest_)
            return tabulate(names, add_up(by_feature, units), kind)
        self._refuse_without_oob(kind)
        values, truth = self._training_values(X, y)
        seed = self._seed if random_state is None else draw_seed(random_state)
        partners = None
        if kind == "conditional":
            partners = find_partners(values, self.forest_.n_levels, units, float(threshold))
        score = None if scoring is None else self._make_score(truth, scoring)
        trial = Trial(self.forest_, values, truth, units, seed, int(n_repeats), partners, score)
        if kind == "impurity_oob":
            by_tree = add_up(self._for_each_tree(trial, confirm), units)
        else:
            by_tree = self._for_each_tree(trial, LeftOut.permutation)
        return tabulate(names, by_tree, kind)

    def check_importance(self, X: Any, y: Any, *, random_state: Any = None) -> tuple[str, ...]:
        """Warn of features that impurity ranks high and out-of-bag rows do not.

        A feature is named if it is in the upper half by impurity while its permutation importance is not above two
        standard errors: the trees split on it, but nothing is lost without it. Either it is noise, which the impurity
        of deep trees rewards the more the more values it has, or others carry the same information.

        Parameters
        ----------
        X, y : array-like
            The training data again.
        random_state : int, RandomState or None
            Seed of the permutations; None: that of the forest.

        Returns
        -------
        tuple of str
            The names of these features, the highest by impurity first.
        """
        check_is_fitted(self, "forest_")
        self._refuse_without_oob("permutation")
        return self._warn_of_noise(X, y, random_state)

    def _warn_of_noise(self, X: Any, y: Any, random_state: Any) -> tuple[str, ...]:
        names, units = self._name_units(None)
        values, truth = self._training_values(X, y)
        seed = self._seed if random_state is None else draw_seed(random_state)
        trial = Trial(self.forest_, values, truth, units, seed)
        permuted = tabulate(names, self._for_each_tree(trial, LeftOut.permutation), "permutation")
        impurity = self.forest_.importances()
        rank = np.argsort(np.argsort(-impurity, kind="stable"), kind="stable")
        is_high = (2 * rank < len(names)) & (impurity > 0.0)
        suspects = np.flatnonzero(is_high & ~(permuted.importance > DOUBT * permuted.std_error))
        suspects = suspects[np.argsort(rank[suspects])]
        for j in suspects.tolist():
            column = values[:, j]
            warn(
                f"column {names[j]!r} ({len(np.unique(column[~np.isnan(column)]))} distinct values) is number "
                f"{rank[j] + 1} of {len(names)} by impurity ({impurity[j]:.3g}), but permuting it among out-of-bag "
                f"rows costs {permuted.importance[j]:.2g} ± {permuted.std_error[j]:.2g}, nothing to speak of. Either "
                "it is noise, which impurity rewards the more the more values a column has, or correlated columns "
                "carry the same information; importance(kind='impurity_oob', X=X, y=y) is near 0 for noise only."
            )
        return tuple(names[j] for j in suspects.tolist())

    def _name_units(self, groups: Any) -> tuple[tuple[str, ...], tuple[NDArray[np.int64], ...]]:
        """Names and features of what gets an importance."""
        legend = self.forest_.legend
        assert legend is not None
        names = legend.features
        if groups is None:
            return names, tuple(np.array([j]) for j in range(len(names)))
        if not isinstance(groups, dict) or not groups:
            message = f"groups must be a dict of names of groups to lists of features, got {groups!r}"
            raise ValueError(message)
        return tuple(map(str, groups)), tuple(find_features(name, group, names) for name, group in groups.items())

    def _refuse_without_oob(self, kind: str) -> None:
        if self._draw.kind == "whole":
            message = (
                f"{kind} importance needs out-of-bag rows, but with bootstrap=False every tree has seen all rows: "
                "fit with bootstrap=True, or use sklearn.inspection.permutation_importance on rows held out"
            )
            raise ValueError(message)

    def _for_each_tree(self, trial: Trial, work: Callable[..., NDArray[np.float64]]) -> NDArray[np.float64]:
        """What `work` finds for each tree that has out-of-bag rows, (n_trees, any)."""
        forest, draw = trial.forest, self._draw
        seconds = len(forest) * draw.n_rows * trial.n_repeats * ROW_SECONDS
        chosen = kernels(seconds * INTERPRETED)
        has_weight = None if draw.probability is None else draw.probability > 0.0
        _ = forest.is_leaf  # made here and not by several threads at once

        def run(tree: int, _: NDArray[np.int64]) -> NDArray[np.float64] | None:
            is_out = draw.counts(tree) == 0
            if has_weight is not None:
                is_out &= has_weight  # rows of no weight are in no bag, and count for nothing
            rows = np.flatnonzero(is_out).astype(ROW)
            return work(LeftOut(trial, tree, rows, chosen)) if len(rows) else None

        n_workers = count_workers(self.n_jobs, len(forest), seconds)
        results = run_tasks(
            run,
            len(forest),
            n_workers,
            label="permuting",
            unit="trees",
            verbose=bool(self.verbose),
            is_short=seconds < SHORT_SECONDS,
        )
        found = [result for result in results if result is not None]
        if not found:
            message = (
                f"no tree has an out-of-bag row: every bag holds all rows (n_samples={draw.n_rows}). "
                "Draw smaller bags with max_samples."
            )
            raise ValueError(message)
        return np.stack(found)

    def _make_score(self, truth: NDArray[Any], scoring: Any) -> Callable[..., float]:
        """A score of rows in leaves of a tree, from a scorer, its name or a metric."""
        classes = getattr(self, "classes_", None)
        y = truth if classes is None else classes[truth]
        scorer = find_score(scoring, "scoring")

        def score(tree: int, rows: NDArray[np.int32], leaf: NDArray[np.int32]) -> float:
            grown = self.forest_[tree]
            answers = grown.threshold[leaf] if classes is None else leaf_shares(grown, leaf)
            return scorer(KnownAnswers(self, answers), np.arange(len(rows))[:, None], y[rows])

        return score


def confirm(left_out: LeftOut) -> NDArray[np.float64]:
    """Impurity decrease of a tree by feature, as its out-of-bag rows confirm it."""
    trial, tree = left_out.trial, left_out.tree
    return unbiased_decrease(trial.forest[tree], left_out.find_leaves(), trial.truth[left_out.rows])


def add_up(by_feature: NDArray[np.float64], units: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
    """Sums over the features of each unit, (n_trees, n_units)."""
    return np.stack([by_feature[:, features].sum(axis=1) for features in units], axis=1)


def find_features(name: Any, group: Any, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Positions of the features of a group, ascending, each once."""
    members = [group] if isinstance(group, str | int | np.integer) else list(group)
    if not members:
        message = f"group {name!r} is empty: give it at least one feature"
        raise ValueError(message)
    found = set()
    for member in members:
        if isinstance(member, int | np.integer) and not isinstance(member, bool):
            if not -len(names) <= int(member) < len(names):
                message = f"group {name!r} has the feature {member}, but there are {len(names)}, counted from 0"
                raise ValueError(message)
            found.add(int(member) % len(names))
        elif member in names:
            found.add(names.index(member))
        else:
            close = difflib.get_close_matches(str(member), names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names[:10])}"
            message = f"group {name!r} has the feature {member!r}, which the forest does not know; {hint}"
            raise ValueError(message)
    return np.array(sorted(found))


def check_asked(kind: Any, n_repeats: Any, scoring: Any, threshold: Any) -> None:
    """Refuse what cannot be computed, or would be ignored."""
    if not isinstance(kind, str) or kind not in KINDS:
        got = repr(kind) if isinstance(kind, str) else f"{type(kind).__name__}; X and y come after it"
        message = f"kind must be one of {', '.join(map(repr, KINDS))}, got {got}"
        raise ValueError(message)
    if isinstance(n_repeats, bool) or not isinstance(n_repeats, Integral) or n_repeats < 1:
        message = f"n_repeats must be a whole number of at least 1, got {n_repeats!r}"
        raise ValueError(message)
    if scoring is not None and kind not in {"permutation", "conditional"}:
        message = f"scoring is for permutations; {kind} importance has no score. Leave it out."
        raise ValueError(message)
    if scoring is not None:
        find_score(scoring, "scoring")  # what is none is refused before the work
    if not isinstance(threshold, Real) or not 0.0 <= float(threshold) <= 1.0:
        message = f"threshold must lie between 0 and 1, got {threshold!r}"
        raise ValueError(message)


# --- The selector -----------------------------------------------------------------------------------------------


class OOBSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select features by their permutation importance on out-of-bag rows.

    No rows are held out and no model is fitted twice. Importances can be negative; a feature that does nothing is
    about 0.

    Parameters
    ----------
    estimator : RandomForestClassifier, RandomForestRegressor or another forest with bags
        Cloned and fitted.
    threshold : float, str or None
        Least importance: a number; "mean", "median" or a multiple such as "1.25*mean"; None: more than two standard
        errors (over the trees) above 0, a mild rule, since by chance some noise passes it.
    max_features : int or None
        Keep no more than the most important of those.

    Attributes
    ----------
    estimator_ : the fitted forest
    importance_ : ImportanceTable
    threshold_ : float or (n_features,) array
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import OOBSelector, RandomForestRegressor
    >>> X = np.column_stack([np.arange(90) % 4, np.arange(90) % 7, np.arange(90) % 9])
    >>> selector = OOBSelector(RandomForestRegressor(n_estimators=20, random_state=0), max_features=1)
    >>> selector.fit(X, 2.0 * X[:, 0] - X[:, 2]).get_support()
    array([False, False,  True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "importance"])],
        "threshold": [Interval(Real, None, None, closed="both"), str, None],
        "max_features": [Interval(Integral, 0, None, closed="left"), None],
    }

    def __init__(
        self, estimator: Any, *, threshold: float | str | None = None, max_features: int | None = None
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.max_features = max_features

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a class explain names that it does not know."""
        super().__init_subclass__(**options)
        parameters.finish_class(cls)

    def __new__(cls, *_: Any, **params: Any) -> Any:
        """Check the spelling of parameters; `__init__` does the rest."""
        parameters.check_spelling(cls, params)
        return super().__new__(cls)

    def _validate_params(self) -> None:
        """Check the values of the parameters."""
        super()._validate_params()
        parameters.refuse_booleans(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit a clone of the forest and take its importances.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like (n_rows,)
        **fit_params
            For the `fit` of the forest: `sample_weight`, `groups`, `strata`.
        """
        with all_or_nothing(self):
            self._validate_params()
            open_x(self, X, is_fit=True)
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
            self.importance_ = self.estimator_.importance("permutation", X, y)
            self.threshold_ = find_threshold(self.threshold, self.importance_)
            return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "importance_")
        importance = self.importance_.importance
        is_kept = importance > self.threshold_ if self.threshold is None else importance >= self.threshold_
        if self.max_features is not None:
            order = np.argsort(-importance, kind="stable")
            is_kept[order[int(self.max_features) :]] = False
        return is_kept

    def transform(self, X: Any) -> Any:
        """Keep the selected columns: of a frame as a frame of the same kind; of anything else as an array."""
        check_is_fitted(self, "importance_")
        columns = open_x(self, X, is_fit=False)
        kept = self.get_support(indices=True)
        if len(kept) == 0:
            warn("No features were selected: either the data is too noisy or the selection test too strict.")
        return hold_rows(X, columns).take(None, kept)


parameters.finish_class(OOBSelector)


def find_threshold(threshold: float | str | None, table: ImportanceTable) -> Any:
    """The least importance as a number, or one number a feature."""
    if threshold is None:
        return DOUBT * np.nan_to_num(table.std_error)
    if not isinstance(threshold, str):
        return float(threshold)
    scale, _, reference = threshold.rpartition("*")
    means = {"mean": float(np.mean(table.importance)), "median": float(np.median(table.importance))}
    try:
        return (float(scale) if scale else 1.0) * means[reference.strip()]
    except (KeyError, ValueError):
        message = f"threshold must be a number, 'mean', 'median' or a multiple such as '1.25*mean', got {threshold!r}"
        raise ValueError(message) from None
