"""Pruning of single trees: which method the parameters ask for, what each method needs, and the methods themselves.

tree, method, options, rows ──prune_tree──► Pruned: the smaller tree, its report, and the path of a cross-validation
"""

from __future__ import annotations

import difflib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions, validate_parameter_constraints

from spinney._criteria import SPREAD_CRITERIA, VALUE_CRITERIA
from spinney.ensemble.held_out import draw_held_out
from spinney.estimators.cross_validated_pruning import Fold, cross_validate
from spinney.estimators.growers import EncodedRows, TreeTraining
from spinney.model.fitted_tree import CrossValidation, Pruning
from spinney.table.row_sums import sum_rows
from spinney.table.sparse import fill_in
from spinney.tree.pessimistic import prune_pessimistic
from spinney.tree.predict import predict_classes, predict_values, spread_rows
from spinney.tree.prune import merge_leaves, prune_by_gain, prune_to_alpha
from spinney.tree.pruning_report import PruningReport, training_error
from spinney.tree.reduced_error import prune_on_rows
from spinney.tree.subtree import cut_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class Pruned(NamedTuple):
    """A pruned tree, and what is to be said of it."""

    tree: Tree
    pruning: Pruning


# --- what the parameters ask for ---


def choose_method(pruning: str | None, ccp_alpha: float | str) -> str | None:
    """The pruning that the parameters ask for; an alpha by itself asks for cost-complexity, as in scikit-learn."""
    has_alpha = ccp_alpha == "cv" or ccp_alpha > 0.0  # type: ignore[operator]
    if pruning is None:
        return "cost_complexity" if has_alpha else None
    if has_alpha and pruning != "cost_complexity":
        raise ValueError(
            f"ccp_alpha={ccp_alpha!r} with pruning={pruning!r}: ccp_alpha belongs to "
            "pruning='cost_complexity'. Set that, or leave ccp_alpha at 0; after fit `prune` can do the other."
        )
    return pruning


def draws_rows(pruning: str | None, ccp_alpha: float | str) -> bool:
    """Whether pruning draws rows in fit."""
    method = choose_method(pruning, ccp_alpha)
    return method == "reduced_error" or (method == "cost_complexity" and ccp_alpha == "cv")


def hold_out(training: TreeTraining, fraction: float, *, has_classes: bool) -> tuple[TreeTraining, EncodedRows]:
    """The training without the rows that are to judge the tree, and these rows; drawn from each class in proportion."""
    rows = training.encode_rows()  # not kept: only some are needed while the tree grows
    is_held = draw_held_out(
        fraction,
        len(rows.y),
        None if rows.weight is None else training.is_used,
        rows.y.astype(np.int32) if has_classes else None,
        training.seed,
        warns=False,  # no harm: such a class is not judged
        remedy="call `prune` on the fitted tree with rows of your own",
    )
    weight = None if rows.weight is None else rows.weight[is_held]
    return training.without(is_held), EncodedRows(rows.values[is_held], rows.y[is_held], weight)


# --- checks of `prune` ---


def check_method(method: str | None, rules: list[Any], name: str) -> str:
    """The method, if the rules of the parameter `pruning` know it; name: of the estimator."""
    known = next(rule.options for rule in rules if isinstance(rule, StrOptions))
    if method is None or method not in known:
        what = f"method={method!r} is not known to {name}"
        if method in OPTIONS:
            what = f"method={method!r} bounds the errors of classes, and {name} predicts numbers"
        raise ValueError(
            f"prune: {'no method is given, and pruning=None' if method is None else what}; choose one of "
            f"{', '.join(map(repr, sorted(known)))}"
        )
    return method


def check_options(
    method: str, options: dict[str, Any], parameters: Mapping[str, Any], constraints: Mapping[str, list[Any]]
) -> dict[str, Any]:
    """The options of a method, from the parameters where they are not given."""
    known = [name for name in OPTIONS[method] if name != "validation_fraction"]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known) or 'none'}."
            raise TypeError(f"prune: the method {method!r} has no option {name!r}. {hint}")
    options = {name: options.get(name, parameters[name]) for name in known}
    validate_parameter_constraints({name: constraints[name] for name in known}, options, caller_name="prune")
    return options


def check_needs(method: str, options: dict[str, Any], X: Any, y: Any) -> None:
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


# --- the methods ---


def prune_tree(
    tree: Tree,
    method: str,
    options: dict[str, Any],
    criterion: str,
    training: TreeTraining | None,
    rows: EncodedRows | None,
    folds: list[Fold] | None = None,
) -> Pruned:
    """A tree pruned by one method.

    Parameters
    ----------
    tree : Tree
    method : str
        A key of `OPTIONS`.
    options : dict
        Values for the method's options.
    criterion : str
        That the tree was grown by.
    training : TreeTraining, optional
        In fit, and where trees must be grown again: for a cross-validated `ccp_alpha`.
    rows : EncodedRows, optional
        To judge by; in fit those that were held out. For `raising` the training rows, if there is no `training`.
    folds : list of Fold, optional
        Of a cross-validation.
    """
    path = None
    if method == "cost_complexity" and options["ccp_alpha"] == "cv":
        assert training is not None
        steps, errors = cross_validate(tree, training, risk_of(options["ccp_risk"], criterion), folds)
        left = cut_nodes(tree, [node for step in steps[: errors.chosen + 1] for node in step.nodes])
        path = CrossValidation(errors.table(), float(errors.alpha[errors.chosen]))
        options = {**options, "ccp_alpha": path.alpha}
    elif method == "cost_complexity":
        left = prune_to_alpha(tree, options["ccp_alpha"], risk_of(options["ccp_risk"], criterion))
    elif method == "reduced_error":
        assert rows is not None
        left = reduce_error(tree, rows)
    elif method == "pessimistic":
        left = prune_by_bounds(tree, options, rows if training is None else training.rows)
    elif method == "min_gain":
        left = prune_by_gain(tree, options["min_gain"])
    else:
        left = merge_leaves(tree)
    judges, judged_on = find_judges(tree, options, training, rows)
    if judges is None and training is not None and criterion in VALUE_CRITERIA and criterion not in SPREAD_CRITERIA:
        judges = training.rows  # leaves hold another error than the squared one
    report = make_report(method, options, (tree, left), criterion, judges, judged_on)
    return Pruned(left, Pruning(report, path))


def risk_of(ccp_risk: str, criterion: str) -> str:
    """The parameter `ccp_risk` as `tree.prune` knows it."""
    if ccp_risk == "impurity":
        return "impurity"
    return "squared" if criterion == "sdr" else "error"


def reduce_error(tree: Tree, rows: EncodedRows) -> Tree:
    """Reduced-error pruning by values; a row that takes several branches counts in each by its share."""
    row, leaf, share = spread_rows(tree, rows.values)
    weight = None if rows.weight is None else rows.weight[row]
    if len(row) > len(rows.values):
        weight = share if weight is None else weight * share
    return prune_on_rows(tree, leaf, rows.y[row], weight)


def prune_by_bounds(tree: Tree, options: dict[str, Any], rows: EncodedRows | None) -> Tree:
    """C4.5's pessimistic pruning; raising sends the training rows down again."""
    confidence = float(options["confidence"])
    if not options["raising"]:
        return prune_pessimistic(tree, confidence)
    assert rows is not None
    given, y, weight, times = rows.weighted()
    values = fill_in(given)
    return prune_pessimistic(tree, confidence, values=values, truth=y, weight=weight, times=times, raising=True)


# --- the report ---


def make_report(
    method: str,
    options: dict[str, Any],
    trees: tuple[Tree, Tree],
    criterion: str,
    rows: EncodedRows | None = None,
    judged_on: str = "training rows",
) -> PruningReport:
    """Leaves, depth and error of a tree before and after; rows: whose errors are counted, else what leaves know."""
    before, after = trees
    risk = risk_of("error", criterion)
    different = [before] if after is before else [before, after]
    errors = [training_error(tree, risk) if rows is None else error_on(tree, rows) for tree in different]
    return PruningReport(
        method,
        options,
        (before.n_leaves, after.n_leaves),
        (before.depth, after.depth),
        (errors[0], errors[-1]),
        judged_on,
    )


def find_judges(
    tree: Tree, options: dict[str, Any], training: TreeTraining | None, rows: EncodedRows | None
) -> tuple[EncodedRows | None, str]:
    """Rows whose errors are counted, none where leaves know the errors of the training rows, and what they are called.

    Where rows are in several leaves by parts, a leaf counts its part as right or wrong; the row itself may be neither.
    """
    if rows is not None:
        return rows, "held out" if "validation_fraction" in options else "given rows"
    if int(tree.n_rows[tree.is_leaf].sum()) == int(tree.n_rows[0]):
        return None, "training rows"
    if training is None:
        return None, "parts of training rows"
    return training.rows, "training rows"


def error_on(tree: Tree, rows: EncodedRows) -> float:
    """Share of the weight of rows whose class is missed, or their mean squared error."""
    if tree.n_classes:
        loss = (predict_classes(tree, rows.values) != rows.y).astype(np.float64)
    else:
        with np.errstate(over="ignore"):
            loss = (predict_values(tree, rows.values) - rows.y) ** 2
    # Weights near the largest number would overflow their sum.
    if rows.weight is None:
        return sum_rows(loss) / len(loss)
    weight = rows.weight / rows.weight.max()
    return sum_rows(loss * weight) / sum_rows(weight)
