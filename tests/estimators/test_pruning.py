"""Pruning by the parameters of an estimator, by `prune` and `snip`, and what they report."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.utils._param_validation import InvalidParameterError

from spinney import AdaBoostClassifier, BaggingClassifier, C45Classifier, CARTClassifier, CARTRegressor
from spinney.ensemble.held_out import draw_held_out
from spinney.estimators.cross_validated_pruning import deal_folds
from spinney.tree.predict import find_leaves
from spinney.tree.prune import merge_leaves, node_risk, prune_by_gain, prune_to_alpha, snip
from spinney.tree.pruning_report import PruningReport
from spinney.tree.reduced_error import prune_on_rows

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
TABLES = {"classes": (CARTClassifier, *CANCER), "numbers": (CARTRegressor, *DIABETES)}


@pytest.fixture(params=TABLES)
def case(request):
    return TABLES[request.param]


def same_tree(one, other):
    names = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def seed_of(model):
    """The one seed that a fit draws."""
    return int(np.random.RandomState(model.random_state).randint(np.iinfo(np.int32).max))


# ---------------------------------------------------------------------------------------------- parameters and prune

CHOICES = [
    {"ccp_alpha": 0.005},
    {"pruning": "cost_complexity", "ccp_alpha": 0.005, "ccp_risk": "error"},
    {"pruning": "min_gain", "min_gain": 0.004},
    {"pruning": "merge"},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_a_parameter_does_what_prune_does(case, choice):
    kind, X, y = case
    if kind is CARTRegressor:
        choice = {name: value * 5000 if isinstance(value, float) else value for name, value in choice.items()}
    whole = kind(max_depth=6).fit(X, y)
    fitted = kind(max_depth=6, **choice).fit(X, y)
    options = {name: value for name, value in choice.items() if name != "pruning"}
    pruned = whole.prune(choice.get("pruning", "cost_complexity"), **options)
    assert same_tree(fitted.tree_.arrays, pruned.tree_.arrays)
    assert fitted.pruning_ == pruned.pruning_
    assert whole.pruning_ is None
    again = kind(max_depth=6, **choice).fit(X, y)
    again.tree_ = whole.tree_.arrays
    assert same_tree(again.prune(choice.get("pruning", "cost_complexity")).tree_.arrays, fitted.tree_.arrays)


def test_each_method_is_the_function_on_the_tree(case):
    kind, X, y = case
    model = kind(max_depth=7).fit(X, y)
    scale = float(node_risk(model.tree_.arrays)[0]) * 2.0**model.tree_.impurity_exponent
    expected = {
        "cost_complexity": (prune_to_alpha(model.tree_.arrays, scale / 50), {"ccp_alpha": scale / 50}),
        "min_gain": (prune_by_gain(model.tree_.arrays, scale / 50), {"min_gain": scale / 50}),
        "merge": (merge_leaves(model.tree_.arrays), {}),
    }
    for method, (tree, options) in expected.items():
        pruned = model.prune(method, **options)
        assert type(pruned) is kind
        assert same_tree(pruned.tree_.arrays, tree)
        assert pruned.pruning_.n_leaves == (model.tree_.n_leaves, tree.n_leaves)
        assert pruned.get_params() == model.get_params()
    assert same_tree(model.snip(1).tree_.arrays, snip(model.tree_.arrays, 1))
    assert model.snip([1, 2]).get_n_leaves() == 2


def test_snip_then_predict_is_predict_on_the_hand_cut_tree(case):
    kind, X, y = case
    model = kind(max_depth=3).fit(X, y)
    node = int(model.tree_.first_child[0])  # the first branch of the root
    inside = model.decision_path(X)[:, [node]].toarray().ravel() == 1
    snipped = model.snip(node).predict(X)
    np.testing.assert_array_equal(snipped[~inside], model.predict(X)[~inside])
    mine = y[inside]
    answer = np.bincount(mine).argmax() if kind is CARTClassifier else mine.mean()
    np.testing.assert_allclose(snipped[inside], answer, rtol=1e-12)


def test_the_tree_that_is_pruned_stays(case):
    kind, X, y = case
    model = kind(max_depth=5).fit(X, y)
    before = pickle.dumps(model)
    model.prune("merge")
    model.prune("reduced_error", X[::3], y[::3])
    model.snip(0)
    assert pickle.dumps(model) == before


def test_pruned_models_are_copied_and_kept(case):
    kind, X, y = case
    pruned = kind(ccp_alpha="cv", random_state=0, max_depth=4).fit(X, y)
    for other in (pickle.loads(pickle.dumps(pruned)), copy.deepcopy(pruned)):
        assert other.pruning_ == pruned.pruning_
        np.testing.assert_array_equal(other.predict(X), pruned.predict(X))
    fresh = clone(pruned)
    assert not hasattr(fresh, "pruning_")
    # a fit without pruning leaves nothing of the old one
    plain = pruned.set_params(ccp_alpha=0.0).fit(X, y)
    assert plain.pruning_ is None
    assert not hasattr(plain, "cv_results_")
    assert not hasattr(plain, "ccp_alpha_")


# -------------------------------------------------------------------------------------------------- cross-validation


def naive_path_errors(model, X, y, weight, alphas, folds=None):
    """Mean loss and its standard error of a tree pruned inside each range of alpha, by fitting it anew."""
    is_regression = isinstance(model, CARTRegressor)
    codes = np.unique(y, return_inverse=True)[1]
    used = np.ones(len(y), bool) if weight is None else weight > 0
    if folds is None:
        fold = deal_folds(used, None if is_regression else codes, 10, seed_of(model))
        folds = [(np.flatnonzero((fold >= 0) & (fold != f)), np.flatnonzero(fold == f)) for f in range(10)]
    w = np.ones(len(y)) if weight is None else weight
    errors, spreads = [], []
    for k, alpha in enumerate(alphas):
        inside = math.inf if k + 1 == len(alphas) else math.sqrt(alpha * alphas[k + 1])
        loss = np.full(len(y), np.nan)
        for rest, out in folds:
            copy_ = clone(model).set_params(ccp_alpha=inside if math.isfinite(inside) else 1e300)
            said = copy_.fit(X[rest], y[rest], w[rest]).predict(X[out])
            loss[out] = (said - y[out]) ** 2 if is_regression else said != y[out]
        judge = used & ~np.isnan(loss)
        total = w[judge].sum()
        mean = (w * loss)[judge].sum() / total
        errors.append(mean)
        spreads.append(math.sqrt(((w * (loss - mean)) ** 2)[judge].sum()) / total)
    return np.array(errors), np.array(spreads)


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("risk", ["impurity", "error"])
@pytest.mark.sampled(3)
def test_the_cross_validated_alpha_is_the_rule_word_for_word(case, risk, has_weights):
    kind, X, y = case
    X, y = X[:150], y[:150]
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if has_weights else None
    model = kind(ccp_risk=risk, max_depth=4, random_state=3)
    fitted = clone(model).set_params(ccp_alpha="cv").fit(X, y, weight)
    table = fitted.cv_results_
    path = model.cost_complexity_pruning_path(X, y, weight)
    np.testing.assert_array_equal(table["alpha"], path.ccp_alphas)
    np.testing.assert_array_equal(table["n_leaves"], path.n_leaves)
    error, spread = naive_path_errors(model, X, y, weight, path.ccp_alphas)
    np.testing.assert_allclose(table["error"], error, rtol=1e-9)
    np.testing.assert_allclose(table["standard_error"], spread, rtol=1e-9)
    best = np.flatnonzero(error == error.min())[-1]
    chosen = np.flatnonzero(table["error"] <= table["error"][best] + table["standard_error"][best])[-1]
    assert fitted.ccp_alpha_ == table["alpha"][chosen]
    assert fitted.get_n_leaves() == table["n_leaves"][chosen]
    assert fitted.pruning_.options == {"ccp_alpha": fitted.ccp_alpha_, "ccp_risk": risk}
    # the same by `prune`, of the whole tree and the training rows
    later = clone(model).fit(X, y, weight).prune("cost_complexity", X, y, weight, ccp_alpha="cv")
    assert same_tree(later.tree_.arrays, fitted.tree_.arrays)
    np.testing.assert_array_equal(later.cv_results_["error"], table["error"])


@pytest.mark.parametrize("is_grouped", [True, False])
def test_the_path_is_cross_validated_by_given_folds(case, is_grouped):
    kind, X, y = case
    X, y = X[:150], y[:150]
    model = kind(max_depth=4, random_state=3).fit(X, y)
    groups = np.arange(150) // 7 % 11
    folds = list(GroupKFold(4).split(X, groups=groups) if is_grouped else TimeSeriesSplit(3).split(X))
    found = model.prune("cost_complexity", X, y, ccp_alpha="cv", cv=folds).cv_results_
    error, spread = naive_path_errors(model, X, y, None, found["alpha"], folds)
    np.testing.assert_allclose(found["error"], error, rtol=1e-9)
    np.testing.assert_allclose(found["standard_error"], spread, rtol=1e-9)
    assert not np.allclose(error, model.prune("cost_complexity", X, y, ccp_alpha="cv").cv_results_["error"])


def test_folds_that_judge_nothing_are_refused(case):
    kind, X, y = case
    model, rows = kind(max_depth=2).fit(X, y), np.arange(len(y))
    for words, folds in {
        "once": [(rows[9:], rows[:9])],
        "held out once at most": [(rows[9:], rows[:9]), (rows[9:], rows[:9])],
        "others": [(rows, rows[:9]), (rows[9:], rows[:9])],
        "held out, that judge": [(rows, []), (rows[9:], rows[:9])],
    }.items():
        with pytest.raises(ValueError, match=words):
            model.prune("cost_complexity", X, y, ccp_alpha="cv", cv=folds)
    with pytest.raises(ValueError, match="nothing else has folds"):
        model.prune("merge", X, y, cv=[(rows[9:], rows[:9])])


def test_folds_are_even_and_stratified():
    rng = np.random.default_rng(0)
    strata, used = rng.integers(0, 3, 207), rng.random(207) < 0.9
    fold = deal_folds(used, strata, 10, 5)
    assert np.array_equal(fold >= 0, used)
    for part in [used, *(used & (strata == k) for k in range(3))]:
        sizes = np.bincount(fold[part], minlength=10)
        assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(fold, deal_folds(used, strata, 10, 5))
    assert not np.array_equal(fold, deal_folds(used, strata, 10, 6))


def test_cross_validation_of_few_rows():
    assert CARTClassifier(ccp_alpha="cv").fit([[1.0]], [0]).get_n_leaves() == 1
    two = CARTClassifier(ccp_alpha="cv", random_state=0).fit([[1.0], [2.0]], [0, 1])
    assert two.get_n_leaves() == 1  # grown without one of them, a tree knows nothing of it
    assert CARTRegressor(ccp_alpha="cv").fit([[1.0], [2.0]], [3, 3]).get_n_leaves() == 1


@pytest.mark.parametrize("scale", [1e-300, 1e150, 1e300])
def test_cross_validation_of_huge_and_tiny_targets(scale):
    X, y = DIABETES
    plain = CARTRegressor(ccp_alpha="cv", random_state=0).fit(X, y)
    scaled = CARTRegressor(ccp_alpha="cv", random_state=0).fit(X, y * scale)
    np.testing.assert_array_equal(plain.tree_.test, scaled.tree_.test)


# ----------------------------------------------------------------------------------------------------- reduced error


@pytest.mark.parametrize("has_weights", [False, True])
def test_reduced_error_grows_on_the_rest_and_prunes_on_what_is_held_out(case, has_weights):
    kind, X, y = case
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if has_weights else None
    model = kind(pruning="reduced_error", validation_fraction=0.3, random_state=1).fit(X, y, weight)
    is_regression = kind is CARTRegressor
    codes = None if is_regression else np.unique(y, return_inverse=True)[1].astype(np.int32)
    used = None if weight is None else weight > 0
    held = draw_held_out(0.3, len(y), used, codes, seed_of(model))
    assert np.count_nonzero(held) == math.ceil(0.3 * (len(y) if used is None else np.count_nonzero(used)))
    rest = ~held if used is None else ~held & used
    whole = kind().fit(X[rest], y[rest], None if weight is None else weight[rest])
    leaf = find_leaves(whole.tree_.arrays, X[held])
    expected = prune_on_rows(whole.tree_.arrays, leaf, y[held], None if weight is None else weight[held])
    assert same_tree(model.tree_.arrays, expected)
    assert 1 < expected.n_leaves < whole.get_n_leaves()
    report = model.pruning_
    assert report.n_leaves == (whole.get_n_leaves(), expected.n_leaves)
    assert report.judged_on == "held out"
    w = None if weight is None else weight[held]
    for tree, error in zip((whole, model), report.error, strict=True):
        loss = (tree.predict(X[held]) - y[held]) ** 2 if is_regression else tree.predict(X[held]) != y[held]
        assert error == pytest.approx(np.average(loss, weights=w))
    assert report.error[1] <= report.error[0]
    pruned = whole.prune("reduced_error", X[held], y[held], w)
    assert same_tree(pruned.tree_.arrays, expected)
    assert pruned.pruning_.judged_on == "given rows"


def test_classes_of_one_row_are_not_held_out():
    X, y = np.arange(40.0).reshape(-1, 1), np.repeat([0, 1, 2], [20, 19, 1])
    model = CARTClassifier(pruning="reduced_error", random_state=0).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="call `prune` on the fitted tree"):
        CARTClassifier(pruning="reduced_error", validation_fraction=40).fit(X, y)


def test_names_of_classes_and_frames():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = CARTClassifier().fit(frame, names)
    pruned = model.prune("reduced_error", frame[::2], names[::2])
    assert pruned.predict(frame).dtype == names.dtype
    with pytest.raises(ValueError, match="'Setosa', which was not among the classes in fit"):
        model.prune("reduced_error", frame[:1], ["Setosa"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.prune("reduced_error", frame.rename(columns={"a": "z"}), names)


# --------------------------------------------------------------------------------------------------- risks, as rpart


def test_the_path_in_errors_is_rpart_s():
    """Iris grown out (reference: R 4.2.2, rpart 4.1.19, cp=0, minsplit=2): cp is alpha over the risk of the root."""
    path = CARTClassifier(ccp_risk="error").cost_complexity_pruning_path(*load_iris(return_X_y=True))
    np.testing.assert_allclose(path.ccp_alphas / path.impurities[-1], [0, 0.005, 0.01, 0.02, 0.44, 0.5], atol=1e-12)
    np.testing.assert_allclose(path.impurities / path.impurities[-1], [0, 0.01, 0.04, 0.06, 0.5, 1], atol=1e-12)
    assert path.n_leaves.tolist() == [9, 7, 4, 3, 2, 1]


def test_standard_deviations_have_the_errors_of_variances():
    X, y = DIABETES
    one, two = (CARTRegressor(criterion=name, max_depth=1, ccp_risk="error") for name in ("squared_error", "sdr"))
    one, two = (model.cost_complexity_pruning_path(X, y) for model in (one, two))
    np.testing.assert_allclose(one.impurities, two.impurities, rtol=1e-9)
    assert one.impurities[-1] == pytest.approx(np.var(y))


# ------------------------------------------------------------------------------------------------------------ report


def test_reports_print_as_tables():
    report = PruningReport("cost_complexity", {"ccp_alpha": 0.01}, (22, 6), (7, 3), (0.0, 0.0246046), "training rows")
    assert str(report).splitlines() == [
        "cost_complexity (ccp_alpha=0.01)",
        "                      before      after",
        "leaves                    22          6",
        "depth                      7          3",
        "error, training rows       0  0.0246046",
    ]
    assert repr(report) == str(report)
    html = PruningReport("snip", {"node": "<b>"})._repr_html_()
    assert "<caption>snip (node=&#x27;&lt;b&gt;&#x27;)</caption>" in html
    assert html.count("<tr>") == 4


def test_errors_of_the_report_without_rows_are_those_of_the_training_rows(case):
    kind, X, y = case
    weight = np.random.default_rng(0).random(len(y))
    model = kind(max_depth=6).fit(X, y, weight)
    pruned = model.prune("min_gain", min_gain=0.01 if kind is CARTClassifier else 50.0)
    for tree, error in zip((model, pruned), pruned.pruning_.error, strict=True):
        loss = tree.predict(X) != y if kind is CARTClassifier else (tree.predict(X) - y) ** 2
        assert error == pytest.approx(np.average(loss, weights=weight))
    counted = model.prune("min_gain", X, y, weight, min_gain=pruned.pruning_.options["min_gain"])
    assert counted.pruning_.error == pytest.approx(pruned.pruning_.error)
    assert counted.pruning_.judged_on == "given rows"


# ------------------------------------------------------------------------------------------------------------ faults


def test_what_prune_refuses(case):
    kind, X, y = case
    with pytest.raises(NotFittedError):
        kind().prune("merge")
    with pytest.raises(NotFittedError):
        kind().snip(0)
    model = kind(max_depth=3).fit(X, y)
    for method in ("reduced", 3):
        with pytest.raises(ValueError, match=f"method={method!r} is not known to {kind.__name__}; choose one of"):
            model.prune(method)
    if kind is not CARTClassifier:
        with pytest.raises(ValueError, match=r"bounds the errors of classes, and \w+ predicts numbers; choose one of"):
            model.prune("pessimistic")
    with pytest.raises(TypeError, match=r"has no option 'alpha'\. Did you mean 'ccp_alpha'"):
        model.prune("cost_complexity", alpha=0.1)
    with pytest.raises(TypeError, match=r"'merge' has no option 'min_gain'\. It has none"):
        model.prune("merge", min_gain=0.1)
    with pytest.raises(InvalidParameterError, match="'ccp_alpha' parameter of prune must be"):
        model.prune("cost_complexity", ccp_alpha=-1.0)
    with pytest.raises(ValueError, match="reduced_error needs X and y, rows that did not grow the tree"):
        model.prune("reduced_error")
    with pytest.raises(ValueError, match="ccp_alpha='cv' needs X and y, the training rows"):
        model.prune("cost_complexity", ccp_alpha="cv")
    with pytest.raises(ValueError, match="give both X and y"):
        model.prune("merge", X)
    with pytest.raises(ValueError, match="node 99: the tree has the nodes"):
        model.snip(99)


def test_parameters_that_contradict_each_other(case):
    kind, X, y = case
    for alpha in (0.1, "cv"):
        with pytest.raises(ValueError, match="ccp_alpha belongs to pruning='cost_complexity'"):
            kind(pruning="merge", ccp_alpha=alpha).fit(X, y)
    for name, value in {
        "pruning": "oob",
        "ccp_alpha": "CV",
        "ccp_risk": "gini",
        "validation_fraction": 1.0,
        "min_gain": -1.0,
    }.items():
        with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {kind.__name__}"):
            kind(**{name: value}).fit(X, y)
    with pytest.raises(InvalidParameterError, match="'confidence' parameter of CARTClassifier"):
        CARTClassifier(confidence=0.6).fit(*CANCER)


# ------------------------------------------------------------------------------------------------------- as members


def test_members_are_pruned_as_by_themselves():
    """A bag of trees with a pruning that forests do not know fits each tree by itself."""
    X, y = CANCER
    base = CARTClassifier(pruning="min_gain", min_gain=0.02)
    bag = BaggingClassifier(base, n_estimators=3, random_state=0).fit(X, y)
    assert [member.pruning_.method for member in bag.estimators_] == ["min_gain"] * 3
    boosted = AdaBoostClassifier(CARTClassifier(max_depth=2, pruning="merge"), n_estimators=2).fit(X, y)
    assert [member.pruning_.method for member in boosted.estimators_] == ["merge"] * len(boosted.estimators_)


def shared_table(n_rows=80):
    """Levels of which some are missing and one is rare, and classes that follow them roughly."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame({name: rng.choice(list("abcde"), n_rows, p=[0.4, 0.3, 0.2, 0.07, 0.03]) for name in "uvw"})
    y = np.where(rng.random(n_rows) < 0.15, "no", np.where(X["u"] < "b", X["v"], "no"))
    return X.mask(rng.random(X.shape) < 0.2), y


def test_the_report_of_shared_rows_counts_rows():
    X, y = shared_table()
    whole = C45Classifier(pruning=None).fit(X, y)
    pruned = C45Classifier().fit(X, y)
    assert pruned.pruning_.judged_on == "training rows"
    assert pruned.pruning_.error == pytest.approx((1 - whole.score(X, y), 1 - pruned.score(X, y)))
    assert whole.prune("merge").pruning_.judged_on == "parts of training rows"
    assert whole.prune("merge").pruning_.error[0] != pytest.approx(1 - whole.score(X, y))


@pytest.mark.filterwarnings("error")
def test_shared_rows_are_held_out_without_a_word():
    X, y = shared_table()
    report = C45Classifier(pruning="reduced_error", random_state=0).fit(X, y).pruning_
    assert report.judged_on == "held out"


def test_a_method_must_be_named():
    with pytest.raises(ValueError, match="no method is given, and pruning=None; choose one of 'cost_complexity'"):
        CARTClassifier().fit(*CANCER).prune()


def test_names_of_rpart_and_weka_are_known():
    for kind, foreign, own in [
        (CARTRegressor, "cp", "ccp_alpha"),
        (CARTClassifier, "minbucket", "min_samples_leaf"),
        (C45Classifier, "unpruned", "pruning"),
        (C45Classifier, "useLaplace", "smoothing"),
    ]:
        with pytest.raises(TypeError, match=f"has no parameter '{foreign}'. Did you mean '{own}'"):
            kind(**{foreign: 1})
    with pytest.raises(TypeError, match=r"has no parameter 'subtreeRaising'\. It has criterion"):
        CARTRegressor(subtreeRaising=True)  # which has none


def test_folds_take_the_seed_of_a_member():
    X = np.random.default_rng(0).normal(size=(60, 2))
    tree, again = (CARTRegressor(ccp_alpha="cv", random_state=2**40 + 5).fit(X, X[:, 0]) for _ in range(2))
    np.testing.assert_array_equal(tree.predict(X), again.predict(X))
