"""Pruning of single trees: by parameter in `fit`, by `prune` afterwards, and by hand."""

from __future__ import annotations

import copy
import difflib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from spinney.estimators.base_tree import SingleTree
from spinney.estimators.checks import all_or_nothing, check_known, check_numbers, check_weights, check_y, weigh_classes
from spinney.estimators.cross_validated_pruning import Fold, PathErrors, Training, check_folds, cross_validate
from spinney.estimators.trace import keep_trace
from spinney.tree.pessimistic import prune_pessimistic
from spinney.tree.predict import predict_classes, predict_values, spread_rows
from spinney.tree.prune import cut_sequence, from_units, merge_leaves, prune_by_gain, prune_to_alpha, snip
from spinney.tree.pruning_report import PruningReport, training_error
from spinney.tree.reduced_error import prune_on_rows
from spinney.tree.subtree import cut_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

OPTIONS: dict[str, tuple[str, ...]] = {  # of each method, by the names of the parameters
    "cost_complexity": ("ccp_alpha", "ccp_risk"),
    "reduced_error": ("validation_fraction",),
    "pessimistic": ("confidence", "raising"),
    "min_gain": ("min_gain",),
    "merge": (),
}

VALUE_CONSTRAINTS: dict[str, list[Any]] = {  # what trees for numbers take
    "pruning": [StrOptions(set(OPTIONS) - {"pessimistic"}), None],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left"), StrOptions({"cv"})],
    "ccp_risk": [StrOptions({"impurity", "error"})],
    "validation_fraction": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_gain": [Interval(Real, 0.0, None, closed="left")],
}

CLASS_CONSTRAINTS: dict[str, list[Any]] = {  # and trees for classes, whose errors can be bounded
    **VALUE_CONSTRAINTS,
    "pruning": [StrOptions(set(OPTIONS)), None],
    "confidence": [Interval(Real, 0.0, 0.5, closed="right")],
    "raising": ["boolean"],
}


class GivenRows(NamedTuple):
    """Rows to judge by."""

    values: NDArray[Any]  # (n_rows, n_features)
    truth: NDArray[Any]  # (n_rows,) class codes int64, or targets float64
    weight: NDArray[np.float64] | None  # (n_rows,)


class Pruned(NamedTuple):
    """A pruned tree, and what is to be said of it."""

    tree: Tree
    report: PruningReport
    path: PathErrors | None = None


class PrunableTree(SingleTree):
    """A single tree with the parameters of pruning; a subclass opens its training rows."""

    pruning_: PruningReport | None
    criterion: str
    pruning: str | None
    ccp_alpha: float | str
    ccp_risk: str
    validation_fraction: float
    random_state: Any
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def _open_training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check and read what fit was given."""
        raise NotImplementedError

    # --- in fit ---

    def _choose_method(self) -> str | None:
        """The pruning that the parameters ask for; an alpha by itself asks for cost-complexity, as in scikit-learn."""
        has_alpha = self.ccp_alpha == "cv" or self.ccp_alpha > 0.0  # type: ignore[operator]
        if self.pruning is None:
            return "cost_complexity" if has_alpha else None
        if has_alpha and self.pruning != "cost_complexity":
            raise ValueError(
                f"ccp_alpha={self.ccp_alpha!r} with pruning={self.pruning!r}: ccp_alpha belongs to "
                "pruning='cost_complexity'. Set that, or leave ccp_alpha at 0; after fit `prune` can do the other."
            )
        return self.pruning

    def _is_drawn(self) -> bool:
        """Whether pruning draws rows in fit."""
        method = self._choose_method()
        return method == "reduced_error" or (method == "cost_complexity" and self.ccp_alpha == "cv")

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, is_traced: bool) -> Self:
        """Grow and prune the tree."""
        with all_or_nothing(self):
            training, held = self._open_training(X, y, sample_weight), None
            if self._choose_method() == "reduced_error":
                is_held = self._draw_validation(training)
                weight = None if training.weight is None else training.weight[is_held]
                held = GivenRows(training.read()[is_held], training.truth[is_held], weight)
                training = training._replace(weight=training.without(is_held))
            self.tree_ = self._complete(self._grow_and_prune(training, held), training)
            keep_trace(self, X, training.truth, training.weight, training.times, is_wanted=is_traced)
            return self

    def _complete(self, tree: Tree, training: Training) -> Tree:  # noqa: ARG002
        """What a subclass adds to the pruned tree."""
        return tree

    def _grow_and_prune(self, training: Training, held: GivenRows | None) -> Tree:
        """The tree of a fit, as its parameters want it pruned; sets `pruning_`."""
        method = self._choose_method()
        forget(self, "cv_results_", "ccp_alpha_")
        self.pruning_ = None
        tree = training.grow(training.weight)
        if method is None:
            return tree
        options = {name: getattr(self, name) for name in OPTIONS[method]}
        return self._note(self._prune_tree(tree, method, options, training, held))

    def _draw_validation(self, training: Training) -> NDArray[np.bool_]:
        """Rows that judge the tree and do not grow it."""
        from spinney.estimators.early_stopping import draw_held

        is_used = None if training.weight is None else training.weight > 0.0
        strata = training.truth.astype(np.int32) if hasattr(self, "classes_") else None
        return draw_held(
            self.validation_fraction,
            len(training.truth),
            is_used,
            strata,
            training.seed,
            is_told=False,  # no harm: such a class is not judged
            way_out="call `prune` on the fitted tree with rows of your own",
        )

    def _note(self, pruned: Pruned) -> Tree:
        """Set what a pruning leaves to be read."""
        self.pruning_ = pruned.report
        if pruned.path is not None:
            self.cv_results_ = pruned.path.table()
            self.ccp_alpha_ = float(pruned.path.alpha[pruned.path.chosen])
        return pruned.tree

    # --- after fit ---

    def prune(
        self,
        method: str | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cv: Any = None,
        **options: Any,
    ) -> Self:
        """Prune the fitted tree.

        Parameters
        ----------
        method : {"cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge"}, optional
            As the parameter `pruning`, which is the default. "pessimistic" is for classes only.
        X, y, sample_weight : optional
            Rows to judge by: for "reduced_error" rows that did not grow the tree; the training rows for a
            cross-validated `ccp_alpha` and for `raising`. The others need none; given rows then only count the errors
            of the report.
        cv : iterable of pairs of arrays, optional
            Folds of a cross-validated `ccp_alpha`: numbers of the rows that grow a tree, and of those that judge it, as
            `GroupKFold.split` gives them. By default ten folds, dealt out by class.
        **options
            `ccp_alpha` and `ccp_risk`, `confidence` and `raising`, or `min_gain`; by default what the parameters say.

        Returns
        -------
        pruned : estimator
            A new one of the same class and parameters, whose tree is pruned. `pruned.pruning_` says how, with leaves,
            depth and error before and after. This one stays as it is.
        """
        check_is_fitted(self, "tree_")
        method = self._check_method(method)
        options = self._check_options(method, options)
        self._check_needs(method, options, X, y)
        rows = None if X is None or y is None else self._given_rows(X, y, sample_weight)
        training, folds = None, None
        if cv is not None:
            if rows is None or options.get("ccp_alpha") != "cv":
                raise ValueError("prune: cv are the folds of ccp_alpha='cv', and nothing else has folds")
            folds = check_folds(cv, len(rows.truth))
        if options.get("ccp_alpha") == "cv":
            again = clone(self).set_params(pruning=method, ccp_alpha="cv")
            training = again._open_training(X, y, sample_weight)  # noqa: SLF001
        elif options.get("raising") and rows is not None:
            training = Training(lambda _: self.tree_, lambda: rows.values, rows.truth, rows.weight)
        return self._with(self._prune_tree(self.tree_, method, options, training, rows, folds))

    def snip(self, node: int | list[int]) -> Self:
        """Make nodes of the tree leaves, by hand.

        Parameters
        ----------
        node : int or list of int
            Index among the nodes of `tree_`, which `tree_.to_text(numbers=True)` shows; what hangs below goes.

        Returns
        -------
        snipped : estimator
            A new one of the same class and parameters; this one stays as it is.
        """
        check_is_fitted(self, "tree_")
        tree = snip(self.tree_, node)
        return self._with(Pruned(tree, self._report("snip", {"node": node}, self.tree_, tree)))

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Grow a tree and list the steps of minimal cost-complexity pruning.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        path : Bunch
            `ccp_alphas`, ascending, and `impurities`, the summed risk of the leaves after each step, which is in errors
            if `ccp_risk="error"`; alpha / `impurities[-1]` is then rpart's cp. Links of equal alpha are cut in one
            step. `n_leaves` counts what is left.
        """
        plain = clone(self).set_params(ccp_alpha=0.0, pruning=None)
        if hasattr(plain, "leaf_model"):
            plain.set_params(leaf_model=None)
        training = plain._open_training(X, y, sample_weight)  # noqa: SLF001
        tree, risk = training.grow(training.weight), self._risk(self.ccp_risk)
        steps = cut_sequence(tree, risk)
        return Bunch(
            ccp_alphas=np.array([from_units(tree, step.alpha, risk) for step in steps]),
            impurities=np.array([from_units(tree, step.risk, risk) for step in steps]),
            n_leaves=np.array([step.n_leaves for step in steps]),
        )

    def _with(self, pruned: Pruned) -> Self:
        """A fitted copy with another tree."""
        other = copy.copy(self)
        forget(other, "cv_results_", "ccp_alpha_", "trace_")
        other.tree_ = other._note(pruned)  # noqa: SLF001
        return other

    # --- checks ---

    def _check_method(self, method: str | None) -> str:
        method = self.pruning if method is None else method
        known = next(rule.options for rule in self._parameter_constraints["pruning"] if isinstance(rule, StrOptions))
        if method is None or method not in known:
            what = f"method={method!r} is not known to {type(self).__name__}"
            if method in OPTIONS:
                what = f"method={method!r} bounds the errors of classes, and {type(self).__name__} predicts numbers"
            raise ValueError(
                f"prune: {'no method is given, and pruning=None' if method is None else what}; choose one of "
                f"{', '.join(map(repr, sorted(known)))}"
            )
        return method

    def _check_options(self, method: str, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a method, from the parameters where they are not given."""
        known = [name for name in OPTIONS[method] if name != "validation_fraction"]
        for name in options:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known) or 'none'}."
                raise TypeError(f"prune: the method {method!r} has no option {name!r}. {hint}")
        options = {name: options.get(name, getattr(self, name)) for name in known}
        rules = {name: self._parameter_constraints[name] for name in known}
        validate_parameter_constraints(rules, options, caller_name="prune")
        return options

    @staticmethod
    def _check_needs(method: str, options: dict[str, Any], X: Any, y: Any) -> None:
        """Refuse a method without the rows that it needs."""
        if (X is None) != (y is None):
            raise ValueError("prune: give both X and y, or none of them")
        if X is not None:
            return
        needs = {
            "reduced_error": method == "reduced_error",
            "ccp_alpha='cv'": options.get("ccp_alpha") == "cv",
            "raising=True": bool(options.get("raising")),
        }
        for what, is_needed in needs.items():
            if is_needed:
                rows = "rows that did not grow the tree" if what == "reduced_error" else "the training rows"
                raise ValueError(f"prune: {what} needs X and y, {rows}")

    def _given_rows(self, X: Any, y: Any, sample_weight: Any) -> GivenRows:
        """Rows as users give them; classes are weighed as in fit."""
        values = self._values(X)
        weight = check_weights(sample_weight, len(values))
        classes = getattr(self, "classes_", None)
        if classes is None:
            return GivenRows(values, check_numbers(self, y, len(values)), weight)
        labels = check_y(self, y, len(values))
        check_known(labels, classes)
        codes = np.searchsorted(classes, labels).astype(np.int64)
        return GivenRows(values, codes, weigh_classes(getattr(self, "class_weight", None), classes, codes, weight))

    # --- the methods ---

    def _risk(self, ccp_risk: str) -> str:
        """The risk as trees know it."""
        if ccp_risk == "impurity":
            return "impurity"
        return "squared" if self.criterion == "sdr" else "error"

    def _prune_tree(
        self,
        tree: Tree,
        method: str,
        options: dict[str, Any],
        training: Training | None,
        rows: GivenRows | None,
        folds: list[Fold] | None = None,
    ) -> Pruned:
        """A tree pruned by one method; `training` where it must be grown or filled again, `rows` to judge by."""
        path = None
        if method == "cost_complexity" and options["ccp_alpha"] == "cv":
            assert training is not None
            steps, path = cross_validate(tree, training, self._risk(options["ccp_risk"]), folds)
            left = cut_nodes(tree, [node for step in steps[: path.chosen + 1] for node in step.nodes])
            options = {**options, "ccp_alpha": float(path.alpha[path.chosen])}
        elif method == "cost_complexity":
            left = prune_to_alpha(tree, options["ccp_alpha"], self._risk(options["ccp_risk"]))
        elif method == "reduced_error":
            assert rows is not None
            left = reduce_error(tree, rows)
        elif method == "pessimistic":
            left = prune_by_bounds(tree, options, training)
        elif method == "min_gain":
            left = prune_by_gain(tree, options["min_gain"])
        else:
            left = merge_leaves(tree)
        return Pruned(left, self._report(method, options, tree, left, training, rows), path)

    def _report(
        self,
        method: str,
        options: dict[str, Any],
        before: Tree,
        after: Tree,
        training: Training | None = None,
        rows: GivenRows | None = None,
    ) -> PruningReport:
        rows, judged_on = find_judges(before, options, training, rows)
        risk = self._risk("error")
        trees = [before] if after is before else [before, after]
        errors = [training_error(tree, risk) if rows is None else error_on(tree, rows) for tree in trees]
        return PruningReport(
            method,
            options,
            (before.n_leaves, after.n_leaves),
            (before.depth, after.depth),
            (errors[0], errors[-1]),
            judged_on,
        )


def forget(estimator: Any, *names: str) -> None:
    """Drop fitted attributes that may be there."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def find_judges(
    tree: Tree, options: dict[str, Any], training: Training | None, rows: GivenRows | None
) -> tuple[GivenRows | None, str]:
    """Rows whose errors are counted, none where leaves know the errors of the training rows, and what they are called.

    Where rows are in several leaves by parts, a leaf counts its part as right or wrong; the row itself may be neither.
    """
    if rows is not None:
        return rows, "held out" if "validation_fraction" in options else "given rows"
    if int(tree.n_rows[tree.is_leaf].sum()) == int(tree.n_rows[0]):
        return None, "training rows"
    if training is None:
        return None, "parts of training rows"
    return GivenRows(training.read(), training.truth, training.weight), "training rows"


def reduce_error(tree: Tree, rows: GivenRows) -> Tree:
    """Reduced-error pruning by values; a row that takes several branches counts in each by its share."""
    row, leaf, share = spread_rows(tree, rows.values)
    weight = None if rows.weight is None else rows.weight[row]
    if len(row) > len(rows.values):
        weight = share if weight is None else weight * share
    return prune_on_rows(tree, leaf, rows.truth[row], weight)


def prune_by_bounds(tree: Tree, options: dict[str, Any], training: Training | None) -> Tree:
    """C4.5's pessimistic pruning; raising sends the training rows down again."""
    if not options["raising"]:
        return prune_pessimistic(tree, float(options["confidence"]))
    assert training is not None
    values, truth, weight, times = training.read(), training.truth, training.weight, training.times
    if weight is not None and not bool(np.all(weight > 0.0)):
        keep = weight > 0.0
        values, truth, weight = values[keep], truth[keep], weight[keep]
        times = None if times is None else times[keep]
    return prune_pessimistic(
        tree, float(options["confidence"]), values=values, truth=truth, weight=weight, times=times, raising=True
    )


def error_on(tree: Tree, rows: GivenRows) -> float:
    """Share of the weight of given rows whose class is missed, or their mean squared error."""
    if tree.n_classes:
        loss = (predict_classes(tree, rows.values) != rows.truth).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            loss = (predict_values(tree, rows.values) - rows.truth) ** 2
    # Weights near the largest number would overflow their sum.
    weight = None if rows.weight is None else rows.weight / rows.weight.max()
    return float(np.average(loss, weights=weight))
