"""Which name was meant: what other libraries call our parameters and arguments, and what looks much the same."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ALIKE = 0.75  # of difflib: slips of the hand are above, other words that share letters below

# A parameter that one family of estimators has and the ones below it have not; single trees have none of them.
MARKS = {"boosting": "reg_lambda", "forests": "honest", "bags": "bootstrap_features", "adaboost": "learning_rate"}
GROWN = "forests trees"  # whose parameters are those of the trees


class Alias(NamedTuple):
    """A parameter or argument of `fit`, and what others call it; docs/coming-from.md has the most of them too."""

    own: str
    others: str  # names, dots of R as underscores
    note: str = ""  # what differs
    families: str = "boosting forests bags adaboost trees selector"


MEASURE = "It takes a score of scikit-learn, of which more is better."
PER_NODE = "It is drawn for each node."
TWICE = "Theirs is twice ours."
DECREASE = "It is a decrease of impurity, times the share of the rows that are in the node."
BALANCED = "class_weight='balanced' makes classes count alike."
CHANCE = "Another thing: it takes off what levels gain by chance; 1 is the default."
EVERY_TREE = "Rows are drawn for every tree where it is below 1."

# XGBoost, LightGBM, CatBoost, scikit-learn, H2O, YDF, R's gbm, randomForest, ranger and rpart, Weka, C5.0. Where a
# name stands in two rows, the first counts whose own name the estimator, or its fit, has.
ALIASES = (
    # ensembles
    Alias("n_estimators", "iterations max_iter n_iter n_trees nrounds ntree ntrees num_boost_round num_iteration"),
    Alias("n_estimators", "num_iterations num_round num_rounds num_tree num_trees numIterations"),
    Alias("learning_rate", "eta learn_rate shrinkage shrinkage_rate"),
    Alias("estimator", "base_estimator"),
    Alias("warm_start", "init_model xgb_model checkpoint", "A second fit, with more n_estimators, goes on."),
    Alias("n_jobs", "nthread nthreads num_thread num_threads numExecutionSlots thread_count"),
    Alias("random_state", "bagging_seed random_seed seed"),
    Alias("verbose", "do_trace logging_level verbose_eval verbosity"),
    Alias("verbose", "silent", "verbose=0 is silent, and the default."),
    # trees
    Alias("max_depth", "depth interaction_depth maxDepth maxdepth"),
    Alias("max_leaf_nodes", "max_leaf max_leaves maxnodes num_leaf num_leaves"),
    Alias("min_samples_leaf", "min_bucket min_child_samples min_data min_data_in_leaf min_data_per_leaf min_examples"),
    Alias("min_samples_leaf", "min_rows minbucket minCases minNumObj n_minobsinnode nodesize"),
    Alias("min_samples_split", "min_node_size minsplit"),
    Alias("min_child_weight", "min_hessian min_sum_hessian min_sum_hessian_in_leaf min_sum_hessian_per_leaf"),
    Alias(
        "min_weight_fraction_leaf",
        "min_child_weight",
        "It is a share of the weight of all rows; theirs sums second derivatives.",
        GROWN,
    ),
    Alias("min_impurity_decrease", "min_impurity_split"),
    Alias("min_impurity_decrease", "gamma min_gain_to_split min_split_gain min_split_loss", DECREASE, GROWN),
    Alias("criterion", "split_criterion splitrule"),
    Alias("criterion", "loss_function objective", families=GROWN),
    Alias("ties", "breakTiesRandomly", "ties='random' draws among equal tests."),
    Alias(
        "max_features",
        "colsample_bynode feature_fraction_bynode mtries mtry num_candidate_attributes "
        "num_candidate_attributes_ratio numFeatures",
        families="boosting forests trees",
    ),
    Alias("max_features", "col_sample_rate colsample_bylevel rsm", PER_NODE, "boosting forests trees"),
    Alias("max_features_per_tree", "col_sample_rate_per_tree colsample_bytree feature_fraction sub_feature"),
    Alias("max_features", "col_sample_rate_per_tree colsample_bytree feature_fraction sub_feature", families="bags"),
    Alias(
        "max_features",
        "col_sample_rate_per_tree colsample_bytree feature_fraction sub_feature",
        "It is drawn for each node, not for each tree: BaggingClassifier and BaggingRegressor do that.",
        "forests",
    ),
    # rows
    Alias("subsample", "bag_fraction bagging bagging_fraction max_samples sample_rate sub_row"),
    Alias("subsample", "bagging_freq subsample_freq", EVERY_TREE),
    Alias("sampling", "data_sample_strategy sampling_method", "sampling='gradient' is GOSS."),
    Alias("drop_rate", "rate_drop"),
    Alias("groups", "group group_id qid", "It has a label for each row."),
    Alias("truncation", "lambdarank_num_pair_per_sample lambdarank_truncation_level"),
    Alias("places", "eval_at ndcg_eval_at"),
    Alias("max_samples", "bag_fraction bagging bagging_fraction bootstrap_size_ratio sample_fraction sample_rate"),
    Alias("max_samples", "sampsize sub_row subsample"),
    Alias("max_samples", "bagSizePercent", "It is a share, or a number of rows."),
    Alias("bootstrap", "bootstrap_training_dataset"),
    Alias("oob_score", "calcOutOfBag compute_oob_performances oob_error"),
    Alias("voting", "winner_take_all", "voting='hard' counts one vote a tree."),
    Alias("keep_members", "quantreg", "It keeps what predict_quantiles needs."),
    Alias("sample_weight", "case_weights weight weights"),
    Alias("class_weight", "class_weights classwt"),
    Alias("class_weight", "auto_class_weights balance_classes is_unbalance unbalance", BALANCED),
    Alias("class_weight", "scale_pos_weight", "It takes {label: weight}, or 'balanced'."),
    # columns
    Alias("max_bins", "border_count max_bin n_bins nbins"),
    Alias("categorical_features", "cat_column cat_feature cat_features categorical_column categorical_feature"),
    Alias(
        "categorical_features",
        "enable_categorical feature_types respect_unordered_factors",
        "Text and category columns of frames are categories anyway.",
    ),
    Alias("cat_penalty", "cat_l2 min_data_per_group", CHANCE),
    Alias("monotonic_cst", "monotone_constraint monotone_constraints monotonic_constraints"),
    Alias("interaction_cst", "interaction_constraints"),
    # boosting
    Alias("loss", "app application distribution loss_function obj objective", families="boosting"),
    Alias("effort", "budget", "It divides the learning rate, and is 1 by default.", "boosting"),
    Alias("alpha", "huber_alpha quantile quantile_alpha"),
    Alias("alpha", "huber_slope", "alpha is the share of the rows whose residuals count squared."),
    Alias("power", "tweedie_power tweedie_variance_power variance_power"),
    Alias("reg_lambda", "l2_leaf_reg l2_regularization lambda lambda_l2"),
    Alias("reg_alpha", "alpha l1_regularization lambda_l1"),
    Alias("gamma", "min_gain_to_split min_split_gain min_split_loss", TWICE),
    Alias("gamma", "min_impurity_decrease", "Another thing: gamma is in units of the loss, summed over the rows."),
    Alias("newton", "leaf_estimation_method", "newton=False is 'Gradient', nearly."),
    Alias("init", "base_score", "init='zero' begins at 0; other constants go to fit as init_score."),
    Alias("init", "boost_from_average", "init='zero' is boost_from_average=False."),
    Alias("init_score", "base_margin baseline offset offset_column"),
    Alias("init_score_val", "base_margin_eval_set eval_init_score"),
    Alias("max_time", "max_runtime_secs maximum_training_duration_seconds"),
    Alias("callbacks", "monitor"),
    Alias(
        "max_leaf_nodes",
        "grow_policy growing_strategy",
        "Trees grow best first; max_leaf_nodes=None with max_depth= is by level.",
        "boosting",
    ),
    Alias(
        "max_bins",
        "tree_method",
        "'hist' is the default, 'exact' is max_bins=None, 'approx' is candidates='hessian'.",
        "boosting",
    ),
    # early stopping
    Alias("n_iter_no_change", "early_stopping_num_trees_look_ahead early_stopping_round od_wait stopping_rounds"),
    Alias("n_iter_no_change", "early_stopping_rounds", "Rows to validate on are X_val= and y_val= of fit."),
    Alias("n_iter_no_change", "early_stopping", "A number of rounds switches it on."),
    Alias("n_iter_no_change", "use_best_model", "Where it is set, predict uses the best round."),
    Alias("tol", "early_stopping_min_delta min_delta"),
    Alias("tol", "stopping_tolerance", "Theirs is relative, ours is not."),
    Alias("tol", "od_pval", "Another thing: by how much a score must improve."),
    Alias("scoring", "custom_metric eval_metric feval metric stopping_metric", MEASURE),
    Alias("X_val", "eval_set evals validation_frame validation_set", "One table for validation: X_val= and y_val=."),
    Alias("X_val", "eval_X"),
    Alias("y_val", "eval_y"),
    Alias("sample_weight_val", "eval_sample_weight sample_weight_eval_set"),
    Alias("validation_fraction", "validation_ratio"),
    Alias("validation_fraction", "train_fraction", "It is 1 less theirs.", "boosting adaboost"),
    # single trees: rpart, Weka's J48, C5.0
    Alias("ccp_alpha", "alpha", families="trees"),
    Alias("ccp_alpha", "cp", "It is cp times the error of the root, with ccp_risk='error'.", "trees"),
    Alias("ccp_alpha", "xval", "ccp_alpha='cv' chooses it by cross-validation.", "trees"),
    Alias("trace", "maxcompete", "trace=True keeps every competitor."),
    Alias("criterion", "parms", "A prior is class_weight=.", "trees"),
    Alias("missing", "surrogatestyle usesurrogate", "missing='surrogate' is rpart's way.", "trees"),
    Alias("max_surrogates", "maxsurrogate"),
    Alias("leaf_model", "linear_tree", "leaf_model='linear' fits a line in each leaf."),
    Alias("confidence", "CF confidenceFactor"),
    Alias("collapse", "collapseTree"),
    Alias("raising", "subtreeRaising"),
    Alias("smoothing", "useLaplace", "smoothing='laplace' is it."),
    Alias("pruning", "unpruned", "pruning=None grows without.", "trees"),
    Alias("pruning", "reducedErrorPruning", "pruning='reduced_error' is it.", "trees"),
    Alias("validation_fraction", "numFolds", "The rows of one fold are held out: 1/3 of them for 3 folds.", "trees"),
)

# Names of others that nothing here answers to: no guess is better than a wrong one.
NO_COUNTERPART = """
algorithm allow_const_label allow_writing_files always_split_variables approx_on_full_history bagging_by_query
bagging_temperature bands best_model_min_trees bin_construct_sample_cnt binarySplits booster boosting boosting_type
bootstrap_type build_tree_one_node categorical_algorithm categorical_encoding check_input class_names
class_sampling_factors cost custom_loss cutoff cv cv_folds data_random_seed device device_type devices
diffusion_temperature doNotMakeSplitPointActualValue eval_class_weight eval_group eval_names evals_result
extra_seed extra_trees feature_border_type feature_contri feature_fraction_seed feature_name feature_names
feature_selector feature_weights first_feature_use_penalties fold_column folds force_col_wise force_row_wise
fuzzyThreshold gpu_id gpu_ram_part has_time histogram_type holdout ignored_columns ignored_features importance
importance_type inbag input_borders keep_forest keep_inbag keep_training_booster langevin leaf_estimation_backtracking
leaf_estimation_iterations learn_rate_annealing linear_lambda local_importance localImp max_abs_leafnode_pred
max_after_balance_size max_cached_hist_node max_cat_to_onehot max_ctr_complexity max_delta_step max_drop
max_leaf_output max_tree_output method metric_freq metric_period min_data_in_bin
min_split_improvement minprop model_shrink_mode model_shrink_rate model_size_reg monotone_constraints_method
monotone_penalty multi_strategy n_streams na_action nan_mode nbins_cats nbins_top_level nfolds noGlobalPruning
norm_votes normalize_type num_class num_machines num_parallel_tree num_random_splits one_hot_max_size path_smooth
penalties_coefficient pin_memory plot predictor probability process_type proximity ram_limit random_strength
refresh_leaf regularization_factor regularization_usedepth sampling_frequency sampling_unit
save_memory scale_permutation_importance score_function snapshot_file split_select_weights splitter
subsample_for_bin task task_type text_features top_k top_rate train_dir training_frame uniform_drop use_missing
used_ram_limit validate_parameters write_forest xgboost_dart_mode zero_as_missing
"""


def index_aliases() -> dict[str, list[Alias]]:
    """The rows in which each name of others stands."""
    rows: dict[str, list[Alias]] = {}
    for alias in ALIASES:
        for name in alias.others.split():
            rows.setdefault(name, []).append(alias)
    return rows


BY_NAME = index_aliases()
FOREIGN = frozenset((*BY_NAME, *NO_COUNTERPART.split()))


def family_of(parameters: Iterable[str]) -> str:
    """The family of an estimator, by its parameters."""
    known = set(parameters)
    marked = next((family for family, mark in MARKS.items() if mark in known), None)
    return marked or ("trees" if "ccp_alpha" in known else "selector")


def find_own(name: str, known: Iterable[str], family: str) -> Alias | None:
    """What one of the names in `known` is called by others, if one is called `name`."""
    known = set(known)
    rows = BY_NAME.get(name.replace(".", "_"), ())
    return next((alias for alias in rows if alias.own in known and family in alias.families.split()), None)


def with_note(text: str, alias: Alias | None) -> str:
    """A hint, and what differs where that must be said."""
    return f"{text} {alias.note}" if alias is not None and alias.note else text


def hint_parameter(cls: type, name: str, known: list[str]) -> str:
    """What to write in place of a parameter that an estimator does not have; known: those it has."""
    family = family_of(known)
    alias = find_own(name, known, family)
    if alias is not None:
        return with_note(f"Did you mean {alias.own!r}?", alias)
    taken = list_arguments(getattr(cls, "fit", None))
    alias = None if name in taken else find_own(name, taken, family)
    if name in taken or alias is not None:
        return with_note(f"It is an argument of fit: fit(..., {alias.own if alias else name}=...).", alias)
    close = [] if is_foreign(name) else difflib.get_close_matches(name, known, n=1, cutoff=ALIKE)
    return f"Did you mean {close[0]!r}?" if close else f"It has {', '.join(known)}."


def hint_argument(cls: type, name: str, taken: list[str]) -> str:
    """What to write in place of an argument that `fit` does not take; taken: those it takes."""
    known = list(inspect.signature(cls.__init__).parameters)[1:]  # type: ignore[misc]
    family = family_of(known)
    alias = find_own(name, taken, family)
    if alias is not None:
        return with_note(f"Did you mean {alias.own!r}?", alias)
    alias = None if name in known else find_own(name, known, family)
    if name in known or alias is not None:
        own = alias.own if alias else name
        return with_note(f"It is a parameter of the estimator: {cls.__name__}({own}=...).", alias)
    close = [] if is_foreign(name) else difflib.get_close_matches(name, taken, n=1, cutoff=ALIKE)
    return f"Did you mean {close[0]!r}?" if close else f"It takes {', '.join(taken)}."


def is_foreign(name: str) -> bool:
    """Whether a name is known to be another library's, so that likeness of letters means nothing."""
    return name.replace(".", "_") in FOREIGN


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
