"""Which values the parameters of gradient boosting may have, as scikit-learn checks them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

from spinney.ensemble.boosting_defaults import AUTO
from spinney.estimators.cart import SHARED_CONSTRAINTS
from spinney.estimators.checkpoints import CHECKPOINT_CONSTRAINTS

AUTOMATIC = StrOptions({AUTO})

BOOST_CONSTRAINTS: dict[str, list[Any]] = {
    **{
        name: SHARED_CONSTRAINTS[name]
        for name in (
            *("max_depth", "min_samples_split", "min_weight_fraction_leaf"),
            *("monotonic_cst", "categorical_features", "date_features"),
        )
    },
    "random_state": ["random_state"],
    "learning_rate": [Interval(Real, 0.0, None, closed="neither"), AUTOMATIC],
    "n_estimators": [Interval(Integral, 1, None, closed="left"), AUTOMATIC],
    "effort": [Interval(Real, 0.0, None, closed="neither")],
    "max_leaf_nodes": [*SHARED_CONSTRAINTS["max_leaf_nodes"], AUTOMATIC],
    "min_samples_leaf": [*SHARED_CONSTRAINTS["min_samples_leaf"], AUTOMATIC],
    "max_features": [*SHARED_CONSTRAINTS["max_features"], AUTOMATIC],
    "min_child_weight": [Interval(Real, 0.0, None, closed="left")],
    "reg_lambda": [Interval(Real, 0.0, None, closed="left"), None],
    "reg_alpha": [Interval(Real, 0.0, None, closed="left")],
    "gamma": [Interval(Real, 0.0, None, closed="left")],
    "pruning": [StrOptions({"pre", "post"})],
    "subsample": [Interval(Real, 0.0, 1.0, closed="right"), AUTOMATIC],
    "sampling": [StrOptions({"uniform", "gradient"})],
    "leaf_rows": [StrOptions({AUTO, "bag", "all"})],
    "drop_rate": [Interval(Real, 0.0, 1.0, closed="left")],
    "skip_drop": [Interval(Real, 0.0, 1.0, closed="left")],
    "max_features_per_tree": SHARED_CONSTRAINTS["max_features"],
    "newton": ["boolean"],
    "init": [HasMethods(["fit", "predict"]), StrOptions({"zero"}), None],
    "max_bins": [*SHARED_CONSTRAINTS["max_bins"], None],
    "candidates": [StrOptions({"weight", "hessian"})],
    "cat_smooth": [Interval(Real, 0.0, None, closed="left")],
    "max_cat_threshold": [Interval(Integral, 1, None, closed="left"), None],
    "cat_penalty": [Interval(Real, 0.0, None, closed="left")],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "validation_fraction": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        None,
    ],
    "scoring": [str, callable],
    "tol": [Interval(Real, 0.0, None, closed="left")],
    "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    **CHECKPOINT_CONSTRAINTS,
}

JOINT_CONSTRAINTS = {
    name: rule for name, rule in BOOST_CONSTRAINTS.items() if name not in ("init", "newton", "scoring")
}
"""The same without parameters that have one value where a loss has a target of its own (`JointTarget`)."""
