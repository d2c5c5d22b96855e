"""scikit-learn's estimator checks: all of them once for a class, and for its other settings those that can tell.

`make test` runs the whole suite on the first setting of each class, and again on a setting that changes what the
estimator says it can do (its tags: a bag of support vector machines takes no missing values). What the other settings
are there for is to grow other trees: of them are asked the dozen checks that fit a model and compare what it says. The
rest (names, tags, clones, representations, parameters as they are given, messages about tables that are refused
before anything is grown) is the same code for every setting; `make test-all` runs it all the same.
"""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

# The checks whose outcome can depend on a setting, and what would show there.
ASKED_OF_EVERY_SETTING = {
    "check_sample_weight_equivalence_on_dense_data",  # a weight of 2 is a row twice: each criterion and pruning sums it
    "check_sample_weight_equivalence_on_sparse_data",  # the same, of sparse tables
    "check_class_weight_classifiers",  # class weights reach the criterion
    "check_fit_idempotent",  # a second fit gives the same model: draws, held-out rows, what is left from the first
    "check_dict_unchanged",  # asking leaves the model as it is
    "check_estimators_pickle",  # a pickle says what the model says, whatever the model keeps
    "check_methods_subset_invariance",  # the answer for a row does not depend on the others
    "check_classifiers_train",  # it learns; read-only tables are read-only for every search
    "check_classifiers_one_label",  # one class: no split, no gain, nothing to prune or to stratify
    "check_classifiers_one_label_sample_weights",  # one class, once rows of weight 0 are left out
    "check_regressors_train",  # as check_classifiers_train
    "check_regressors_int",  # whole targets are sums of another unit
    "check_fit2d_1sample",  # one row: nothing can be held out, drawn without others, or binned
    "check_fit2d_1feature",  # one column: nothing can be left out of a draw
}


def weighing_fails(reason):
    """The checks that a row of weight 2 is two rows, which an estimator does not pass, and why."""
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


def parametrize_with_contract(estimators, expected_failed_checks=None):
    """As scikit-learn's `parametrize_with_checks`: `slow` are the checks that an earlier setting has answered."""
    cases, kinds = [], []
    name = parametrize_with_checks([]).kwargs["ids"]
    for estimator in estimators:
        kind = type(estimator), get_tags(estimator)
        is_first = kind not in kinds
        kinds.append(kind)
        said = name(estimator)  # takes a millisecond: not once for each check
        for case in parametrize_with_checks([estimator], expected_failed_checks=expected_failed_checks).args[1]:
            values, marks = getattr(case, "values", case), [*getattr(case, "marks", ())]
            is_known = any(mark.name == "xfail" for mark in marks)  # to fail, and why: that is the same for all
            if not is_first and (is_known or name_of(values[1]) not in ASKED_OF_EVERY_SETTING):
                marks.append(pytest.mark.slow)
            marks.append(pytest.mark.compiled(reason="scikit-learn's checks say nothing about interpreted kernels"))
            cases.append(pytest.param(*values, marks=marks, id=f"{said}-{name(values[1])}"))
    return pytest.mark.parametrize(("estimator", "check"), cases)


def name_of(check):
    """The name of a check, which may have some of its arguments already."""
    while hasattr(check, "func"):
        check = check.func
    return check.__name__
