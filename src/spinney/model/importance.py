"""Which features matter to a forest: what their tests bring, and what is lost when their values are permuted.

Words: a *unit* is what gets an importance, a feature or a group of features. Every kind is a number per tree and unit;
the importance is the mean over the trees, the standard error the spread over the trees.

    impurity        decrease of the impurity of the training rows (Breiman et al. 1984), `Tree.importances`
    impurity_oob    the same with one of its two factors from rows out of the bag (Zhou and Hooker 2021)
    permutation     rise of the error of rows out of the bag with the unit permuted among them (Breiman 2001)
    conditional     the same, permuted among rows alike in correlated features only (Strobl et al. 2008)
"""

from __future__ import annotations

import difflib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._cost import SHORT_SECONDS
from spinney._jit import kernels
from spinney._threads import count_workers, run_tasks
from spinney._types import ROW
from spinney._warnings import warn
from spinney.model.correlation import find_partners
from spinney.model.importance_table import ImportanceTable, tabulate
from spinney.model.permutation import LeftOut, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.model.fitted_forest import FittedForest, TrainingRows
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

KINDS = ("impurity", "impurity_oob", "permutation", "conditional")
ROW_SECONDS = 5e-7  # a row through a tree with its features permuted, compiled
INTERPRETED = 200  # times as long
CORRELATED = 0.2  # Strobl et al. 2008
STD_ERRORS = 2.0  # standard errors within which an importance may be 0

Units = tuple[NDArray[np.int64], ...]  # the features of each unit


# --- Of a fitted forest -----------------------------------------------------------------------------------------


class ImportanceParams(NamedTuple):
    """Which importance is wanted, as the user gives it."""

    kind: Any = "impurity"
    groups: Any = None
    n_repeats: Any = 1
    threshold: Any = CORRELATED

    def check(self) -> None:
        """Refuse what cannot be computed."""
        kind, n_repeats, threshold = self.kind, self.n_repeats, self.threshold
        if not isinstance(kind, str) or kind not in KINDS:
            got = repr(kind) if isinstance(kind, str) else f"{type(kind).__name__}; X and y come after it"
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {got}")
        if isinstance(n_repeats, bool) or not isinstance(n_repeats, Integral) or n_repeats < 1:
            raise ValueError(f"n_repeats must be a whole number of at least 1, got {n_repeats!r}")
        if not isinstance(threshold, Real) or not 0.0 <= float(threshold) <= 1.0:
            raise ValueError(f"threshold must lie between 0 and 1, got {threshold!r}")


class RunParams(NamedTuple):
    """By how many threads, and whether with a progress bar."""

    n_jobs: int | None = None
    verbose: bool = False


def impurity_importance(fitted: FittedForest, groups: dict[Any, Any] | None) -> ImportanceTable:
    """Decrease of impurity on the training rows, by feature or group, scaled to sum 1."""
    names, units = name_units(fitted.forest, groups)
    return tabulate(names, add_up(impurity_by_tree(fitted.forest), units), "impurity")


def out_of_bag_importance(
    fitted: FittedForest,
    params: ImportanceParams,
    training: TrainingRows,
    seed: int,
    score: Callable[..., float] | None,
    run: RunParams,
) -> ImportanceTable:
    """Importance by out-of-bag rows: "impurity_oob", "permutation" or "conditional".

    score: of (tree, rows, leaves), larger being better; None: the error of the tree.
    """
    names, units = name_units(fitted.forest, params.groups)
    partners = None
    if params.kind == "conditional":
        partners = find_partners(training.values, fitted.forest.n_levels, units, float(params.threshold))
    trial = Trial(fitted.forest, training.values, training.y, units, seed, int(params.n_repeats), partners, score)
    if params.kind == "impurity_oob":
        by_tree = add_up(for_each_tree(fitted, trial, confirm, run), units)
    else:
        by_tree = for_each_tree(fitted, trial, LeftOut.permutation, run)
    return tabulate(names, by_tree, params.kind)


def warn_of_noise(fitted: FittedForest, training: TrainingRows, seed: int, run: RunParams) -> tuple[str, ...]:
    """Warn of features in the upper half by impurity whose permutation out of bag costs nothing; their names."""
    names, _ = name_units(fitted.forest, None)
    permuted = out_of_bag_importance(fitted, ImportanceParams("permutation"), training, seed, None, run)
    impurity = fitted.forest.importances()
    rank = np.argsort(np.argsort(-impurity, kind="stable"), kind="stable")
    is_high = (2 * rank < len(names)) & (impurity > 0.0)
    suspects = np.flatnonzero(is_high & ~(permuted.importance > STD_ERRORS * permuted.std_error))
    suspects = suspects[np.argsort(rank[suspects])]
    for j in suspects.tolist():
        column = training.values[:, j]
        warn(
            f"column {names[j]!r} ({len(np.unique(column[~np.isnan(column)]))} distinct values) is number "
            f"{rank[j] + 1} of {len(names)} by impurity ({impurity[j]:.3g}), but permuting it among out-of-bag "
            f"rows costs {permuted.importance[j]:.2g} ± {permuted.std_error[j]:.2g}, nothing to speak of. Either "
            "it is noise, which impurity rewards the more the more values a column has, or correlated columns "
            "carry the same information; importance(kind='impurity_oob', X=X, y=y) is near 0 for noise only."
        )
    return tuple(names[j] for j in suspects.tolist())


def refuse_without_oob(fitted: FittedForest, kind: str) -> None:
    """Refuse importances by out-of-bag rows where there are none."""
    if fitted.draw.kind == "whole":
        raise ValueError(
            f"{kind} importance needs out-of-bag rows, but with bootstrap=False every tree has seen all rows: "
            "fit with bootstrap=True, or use sklearn.inspection.permutation_importance on rows held out"
        )


def for_each_tree(
    fitted: FittedForest, trial: Trial, work: Callable[[LeftOut], NDArray[np.float64]], run: RunParams
) -> NDArray[np.float64]:
    """What `work` finds for each tree that has out-of-bag rows, (n_trees, any)."""
    forest, draw = fitted.forest, fitted.draw
    seconds = len(forest) * draw.n_rows * trial.n_repeats * ROW_SECONDS
    chosen = kernels(seconds * INTERPRETED)
    has_weight = None if draw.probability is None else draw.probability > 0.0
    _ = forest.is_leaf  # made here and not by several threads at once

    def work_on(tree: int, _: NDArray[np.int64]) -> NDArray[np.float64] | None:
        is_out = draw.counts(tree) == 0
        if has_weight is not None:
            is_out &= has_weight  # rows of no weight are in no bag, and count for nothing
        rows = np.flatnonzero(is_out).astype(ROW)
        return work(LeftOut(trial, tree, rows, chosen)) if len(rows) else None

    results = run_tasks(
        work_on,
        len(forest),
        count_workers(run.n_jobs, len(forest), seconds),
        label="permuting",
        unit="trees",
        verbose=run.verbose,
        is_short=seconds < SHORT_SECONDS,
    )
    found = [result for result in results if result is not None]
    if not found:
        raise ValueError(
            f"no tree has an out-of-bag row: every bag holds all rows (n_samples={draw.n_rows}). "
            "Draw smaller bags with max_samples."
        )
    return np.stack(found)


# --- Units ------------------------------------------------------------------------------------------------------


def name_units(forest: Forest, groups: Any) -> tuple[tuple[str, ...], Units]:
    """Names and features of what gets an importance: every feature, or every group."""
    assert forest.legend is not None
    names = forest.legend.features
    if groups is None:
        return names, tuple(np.array([j]) for j in range(len(names)))
    if not isinstance(groups, dict) or not groups:
        raise ValueError(f"groups must be a dict of names of groups to lists of features, got {groups!r}")
    return tuple(map(str, groups)), tuple(find_features(name, group, names) for name, group in groups.items())


def add_up(by_feature: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
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


# --- Impurity ---------------------------------------------------------------------------------------------------


def impurity_by_tree(forest: Forest) -> NDArray[np.float64]:
    """Impurity decrease by tree and feature, (n_trees, n_features), scaled so that the means have sum 1."""
    by_tree = np.array([tree.importances() for tree in forest])
    total = by_tree.sum()
    return by_tree * (len(by_tree) / total if total > 0.0 else 1.0)


def unbiased_decrease(tree: Tree, leaf: NDArray[np.int32], truth: NDArray[Any]) -> NDArray[np.float64]:
    """Impurity decrease by feature as rows out of the bag confirm it (UFI of Zhou and Hooker 2021), (n_features,).

    A split of node t lowers Gini impurity by the sum over its branches c of w_c |p_c|² less w_t |p_t|², p being class
    shares and w shares of the weight of the bag. Chance alone makes that positive. Here one p of each square comes from
    rows out of the bag, p' (for numbers, means of y from the root's mean on stand for the shares):

        sum over c of w_c p_c·p'_c  -  w_t p_t·p'_t

    Where y does not depend on the feature, all p' of a node have the same expectation whatever the tree, and because
    the w_c p_c add up to w_t p_t, the expectation is 0. A branch that no such row reaches takes its parent's p', which
    keeps that true. The formula is that of Gini and variance, whatever the criterion of the tree.

    Parameters
    ----------
    leaf : int32 (n,)
        Leaves of the rows out of the bag.
    truth : (n,)
        Their classes, as codes, or targets.
    """
    inside = tree.values()
    if tree.n_classes:
        at = leaf.astype(np.int64) * tree.n_classes + truth
        sums = np.bincount(at, minlength=tree.n_nodes * tree.n_classes).reshape(-1, tree.n_classes).astype(np.float64)
    else:
        sums = np.bincount(leaf, truth - inside[0], tree.n_nodes)[:, None].astype(np.float64)
        inside = (inside - inside[0])[:, None]
    counts = tree.sum_up(np.bincount(leaf, minlength=tree.n_nodes).astype(np.float64))
    outside = tree.sum_up(sums) / np.maximum(counts, 1.0)[:, None]
    for level in tree.nodes_by_depth[1:]:
        empty = level[counts[level] == 0.0]
        outside[empty] = outside[tree.parent[empty]]
    agreement = tree.weight / tree.weight[0] * np.einsum("nk,nk->n", inside, outside)
    inner = np.flatnonzero(~tree.is_leaf)
    decrease = -agreement[inner]
    for branch in range(int(tree.n_branches.max(initial=0))):
        has = tree.n_branches[inner] > branch
        decrease[has] += agreement[tree.first_child[inner[has]] + branch]
    total: NDArray[np.float64] = np.bincount(tree.feature[inner], decrease, tree.n_features).astype(np.float64)
    return total


def confirm(left_out: LeftOut) -> NDArray[np.float64]:
    """Impurity decrease of a tree by feature, as its out-of-bag rows confirm it."""
    trial, tree = left_out.trial, left_out.tree
    return unbiased_decrease(trial.forest[tree], left_out.find_leaves(), trial.truth[left_out.rows])
