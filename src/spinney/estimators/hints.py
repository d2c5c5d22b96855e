"""Which name was meant: what other libraries call our parameters and arguments, and what looks much the same."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ALIKE = 0.75  # of difflib: slips of the hand are above, other words that share letters below

# What others call what we have, most general first; docs/coming-from.md has them too, with what differs. A name may
# stand for one thing in boosting and another in trees: the first counts that the estimator, or its fit, has.
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    # boosting: XGBoost, LightGBM, CatBoost, scikit-learn
    "alpha": ("reg_alpha", "ccp_alpha"),
    "auto_class_weights": ("class_weight",),
    "bagging_fraction": ("subsample", "max_samples"),
    "bagging_freq": ("subsample",),
    "bagging_seed": ("random_state",),
    "base_margin": ("init_score",),
    "base_margin_eval_set": ("init_score_val",),
    "base_score": ("init",),
    "baseline": ("init_score",),
    "boost_from_average": ("init",),
    "border_count": ("max_bins",),
    "cat_features": ("categorical_features",),
    "categorical_feature": ("categorical_features",),
    "class_weights": ("class_weight",),
    "colsample_bylevel": ("max_features",),
    "colsample_bynode": ("max_features",),
    "colsample_bytree": ("max_features_per_tree", "max_features"),
    "depth": ("max_depth",),
    "early_stopping": ("n_iter_no_change",),
    "early_stopping_min_delta": ("tol",),
    "early_stopping_round": ("n_iter_no_change",),
    "early_stopping_rounds": ("n_iter_no_change",),
    "enable_categorical": ("categorical_features",),
    "eta": ("learning_rate",),
    "eval_init_score": ("init_score_val",),
    "eval_metric": ("scoring", "oob_score"),
    "eval_sample_weight": ("sample_weight_val",),
    "eval_set": ("X_val",),
    "eval_X": ("X_val",),
    "eval_y": ("y_val",),
    "feature_fraction": ("max_features_per_tree", "max_features"),
    "feature_fraction_bynode": ("max_features",),
    "grow_policy": ("max_leaf_nodes",),
    "huber_slope": ("alpha",),
    "init_model": ("warm_start",),
    "interaction_constraints": ("interaction_cst",),
    "is_unbalance": ("class_weight",),
    "iterations": ("n_estimators",),
    "l2_leaf_reg": ("reg_lambda",),
    "l2_regularization": ("reg_lambda",),
    "lambda": ("reg_lambda",),
    "lambda_l1": ("reg_alpha",),
    "lambda_l2": ("reg_lambda",),
    "leaf_estimation_method": ("newton",),
    "learn_rate": ("learning_rate",),
    "logging_level": ("verbose",),
    "loss_function": ("loss", "criterion"),
    "max_bin": ("max_bins",),
    "max_iter": ("n_estimators",),
    "max_leaves": ("max_leaf_nodes",),
    "metric": ("scoring", "oob_score"),
    "min_child_samples": ("min_samples_leaf",),
    "min_child_weight": ("min_weight_fraction_leaf",),
    "min_data_in_leaf": ("min_samples_leaf",),
    "min_delta": ("tol",),
    "min_impurity_decrease": ("gamma",),
    "min_split_gain": ("gamma", "min_impurity_decrease"),
    "min_split_loss": ("gamma", "min_impurity_decrease"),
    "min_sum_hessian_in_leaf": ("min_child_weight",),
    "monitor": ("callbacks",),
    "monotone_constraints": ("monotonic_cst",),
    "n_iter": ("n_estimators",),
    "nthread": ("n_jobs",),
    "num_boost_round": ("n_estimators",),
    "num_iterations": ("n_estimators",),
    "num_leaves": ("max_leaf_nodes",),
    "num_round": ("n_estimators",),
    "num_threads": ("n_jobs",),
    "objective": ("loss", "criterion"),
    "od_pval": ("tol",),
    "od_wait": ("n_iter_no_change",),
    "quantile": ("alpha",),
    "quantile_alpha": ("alpha",),
    "random_seed": ("random_state",),
    "rsm": ("max_features",),
    "sample_weight_eval_set": ("sample_weight_val",),
    "scale_pos_weight": ("class_weight",),
    "seed": ("random_state",),
    "silent": ("verbose",),
    "subsample": ("max_samples",),
    "subsample_freq": ("subsample",),
    "thread_count": ("n_jobs",),
    "tree_method": ("max_bins",),
    "tweedie_variance_power": ("power",),
    "validation_set": ("X_val",),
    "variance_power": ("power",),
    "verbose_eval": ("verbose",),
    "verbosity": ("verbose",),
    "xgb_model": ("warm_start",),
    # forests and bags: R's randomForest and ranger, H2O, older versions of scikit-learn
    "base_estimator": ("estimator",),
    "maxnodes": ("max_leaf_nodes",),
    "min_impurity_split": ("min_impurity_decrease",),
    "min_node_size": ("min_samples_leaf",),
    "mtries": ("max_features",),
    "mtry": ("max_features",),
    "n_trees": ("n_estimators",),
    "nodesize": ("min_samples_leaf",),
    "ntree": ("n_estimators",),
    "ntrees": ("n_estimators",),
    "num_trees": ("n_estimators",),
    "sample_fraction": ("max_samples",),
    "sampsize": ("max_samples",),
    # single trees: rpart, and J48 with its options
    "collapseTree": ("collapse",),
    "confidenceFactor": ("confidence",),
    "cp": ("ccp_alpha",),
    "maxcompete": ("trace",),
    "maxdepth": ("max_depth",),
    "maxsurrogate": ("max_surrogates",),
    "minbucket": ("min_samples_leaf",),
    "minNumObj": ("min_samples_leaf",),
    "minsplit": ("min_samples_split",),
    "parms": ("criterion",),
    "reducedErrorPruning": ("pruning",),
    "subtreeRaising": ("raising",),
    "surrogatestyle": ("missing",),
    "unpruned": ("pruning",),
    "useLaplace": ("smoothing",),
    "usesurrogate": ("missing",),
    "weights": ("sample_weight",),
    "xval": ("ccp_alpha",),
}

# Names of others that nothing here answers to: no guess is better than a wrong one.
NO_COUNTERPART = frozenset(
    {
        *("algorithm", "binarySplits", "booster", "boosting", "boosting_type", "cat_l2", "check_input", "cost"),
        *("device", "feature_name", "gpu_id", "importance_type", "max_cat_to_onehot", "max_delta_step", "method"),
        *("multi_strategy", "num_parallel_tree", "predictor", "splitter", "task_type"),
    }
)

# What must be said beside the name, by the two of them.
NOTES = {
    ("base_score", "init"): "init='zero' begins at 0; other constants go to fit as init_score.",
    ("early_stopping_rounds", "n_iter_no_change"): "Rows to validate on are X_val= and y_val= of fit.",
    ("enable_categorical", "categorical_features"): "Text and category columns of frames are categories anyway.",
    ("eval_metric", "scoring"): "It takes a score of scikit-learn, of which more is better.",
    ("eval_set", "X_val"): "One table for validation: X_val= and y_val=.",
    ("grow_policy", "max_leaf_nodes"): "Trees grow best first; max_leaf_nodes=None with max_depth= is by level.",
    ("huber_slope", "alpha"): "alpha is the share of the rows whose residuals count squared.",
    ("maxcompete", "trace"): "trace=True keeps every competitor.",
    ("metric", "scoring"): "It takes a score of scikit-learn, of which more is better.",
    ("min_split_gain", "gamma"): "Theirs is twice ours.",
    ("min_split_loss", "gamma"): "Theirs is twice ours.",
    ("parms", "criterion"): "A prior is class_weight=.",
    ("silent", "verbose"): "verbose=0 is silent, and the default.",
    ("tree_method", "max_bins"): "'hist' is the default, 'exact' is max_bins=None, 'approx' is candidates='hessian'.",
    ("xval", "ccp_alpha"): "ccp_alpha='cv' chooses it by cross-validation.",
}


def find_own(name: str, known: Iterable[str]) -> str | None:
    """The name among `known` that is what another library calls `name`."""
    known = set(known)
    return next((own for own in OTHER_NAMES.get(name, ()) if own in known), None)


def with_note(text: str, name: str, own: str) -> str:
    """A hint, and what differs where that must be said."""
    note = NOTES.get((name, own))
    return text if note is None else f"{text} {note}"


def hint_parameter(cls: type, name: str, known: list[str]) -> str:
    """What to write in place of a parameter that an estimator does not have; known: those it has."""
    own = find_own(name, known)
    if own is not None:
        return with_note(f"Did you mean {own!r}?", name, own)
    taken = list_arguments(getattr(cls, "fit", None))
    own = name if name in taken else find_own(name, taken)
    if own is not None:
        return with_note(f"It is an argument of fit: fit(..., {own}=...).", name, own)
    close = [] if is_foreign(name) else difflib.get_close_matches(name, known, n=1, cutoff=ALIKE)
    return f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known)}."


def hint_argument(cls: type, name: str, taken: list[str]) -> str:
    """What to write in place of an argument that `fit` does not take; taken: those it takes."""
    own = find_own(name, taken)
    if own is not None:
        return with_note(f"Did you mean {own!r}?", name, own)
    known = list(inspect.signature(cls.__init__).parameters)[1:]  # type: ignore[misc]
    own = name if name in known else find_own(name, known)
    if own is not None:
        return with_note(f"It is a parameter of the estimator: {cls.__name__}({own}=...).", name, own)
    close = [] if is_foreign(name) else difflib.get_close_matches(name, taken, n=1, cutoff=ALIKE)
    return f"Did you mean {close[0]!r}?" if close else f"It takes {', '.join(taken)}."


def is_foreign(name: str) -> bool:
    """Whether a name is known to be another library's, so that likeness of letters means nothing."""
    return name in OTHER_NAMES or name in NO_COUNTERPART


def list_arguments(function: Any) -> list[str]:
    """The names that a method takes, without self."""
    return [] if function is None else list(inspect.signature(function).parameters)[1:]


def explain_arguments(fit: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, whose error of an argument that it does not take says what to write instead."""
    parameters = inspect.signature(fit).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return fit  # passes names on

    @functools.wraps(fit)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        for name in named:
            if name not in parameters:
                cls = type(self)
                hint = hint_argument(cls, name, list(parameters)[1:])
                raise TypeError(f"{cls.__name__}.fit has no argument {name!r}. {hint}")
        return fit(self, *args, **named)

    return checked
