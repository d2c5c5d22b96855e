"""Random forests and extra-trees: their trees, bags and votes against plain loops and single trees."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import KFold, cross_validate

from spinney import (
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.ensemble.sampling import split_bag

pytestmark = pytest.mark.filterwarnings("ignore:pruning='oob' has shaped each tree")

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
RANDOM_FORESTS = {RandomForestClassifier: CARTClassifier, RandomForestRegressor: CARTRegressor}
ARRAYS = ("hot", "n_rows", "weight", "impurity", "subsets", "distributions", "first_node", "first_word", "first_mixed")
TREE_ARRAYS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")


@pytest.fixture(
    params=[*CLASSIFIERS, RandomForestRegressor, ExtraTreesRegressor],
    ids=lambda kind: kind.__name__,
)
def kind(request):
    return request.param


@pytest.fixture(params=RANDOM_FORESTS, ids=lambda kind: kind.__name__)
def random_forest(request):
    return request.param


def make(kind, **settings):
    return kind(**{"n_estimators": 10, "random_state": 0, **settings})


def make_frame(n_rows=200, seed=0):
    """Numbers with holes and ties, and a category; three noisy classes."""
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(generator.normal(size=(n_rows, 3)).round(1), columns=["a", "b", "c"])
    X["colour"] = pd.Categorical(generator.choice(["red", "green", "blue", "grey", "pink"], n_rows))
    noise = generator.normal(scale=0.5, size=n_rows)
    y = np.digitize(X["a"] + X["colour"].isin(["red", "pink"]) + noise, [0.0, 1.0])
    X.loc[generator.random(n_rows) < 0.15, "b"] = np.nan
    X.loc[generator.random(n_rows) < 0.15, "colour"] = np.nan
    return X, y


def make_table(n_rows=200, seed=0):
    X, y = make_frame(n_rows, seed)
    return X[["a", "b", "c"]].to_numpy(), y


def same_forest(one, other):
    return all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in ARRAYS)


def assert_same_tree(one, other, names=TREE_ARRAYS):
    for name in names:
        expected = getattr(other, name)
        if name == "impurity" and np.any(other.weight % 1.0):  # a forest has four bytes for it beside such weights
            expected = expected.astype(np.float32)
        np.testing.assert_array_equal(getattr(one, name), expected, err_msg=name)


# --- forests and single trees ---------------------------------------------------------------------------------------

TREE_SETTINGS = [
    {},
    {"missing": "branch"},
    {"max_leaf_nodes": 9},
    {"max_depth": 4, "min_samples_leaf": 3},
    {"min_samples_split": 0.1, "min_weight_fraction_leaf": 0.02},
    {"min_impurity_decrease": 0.01},
    {"ccp_alpha": 0.005},
    {"max_bins": 8},
]


@pytest.mark.parametrize("settings", TREE_SETTINGS, ids=str)
@pytest.mark.parametrize("is_weighed", [False, True], ids=["plain", "weighed"])
def test_a_forest_of_one_tree_without_draws_is_cart(random_forest, settings, is_weighed):
    X, y = make_frame()
    weight = np.random.default_rng(1).integers(0, 4, len(y)) * 0.5 if is_weighed else None
    settings = {"ties": "first", **settings}
    forest = make(random_forest, n_estimators=1, bootstrap=False, max_features=None, **settings).fit(X, y, weight)
    single = RANDOM_FORESTS[random_forest](**settings).fit(X, y, weight)
    assert_same_tree(forest.forest_[0], single.tree_.arrays)
    assert_same_tree(forest.estimators_[0].tree_.arrays, single.tree_.arrays)
    assert forest.estimators_[0].tree_.to_text() == single.tree_.to_text()
    other, _ = make_frame(seed=1)
    np.testing.assert_array_equal(forest.predict(other), single.predict(other))
    rtol = 1e-6 if is_weighed else 1e-12  # impurities in four bytes beside weights that are not whole
    np.testing.assert_allclose(forest.feature_importances_, single.feature_importances_, rtol=rtol)


@pytest.mark.parametrize(
    "settings",
    [{}, {"bootstrap": "poisson"}, {"bootstrap": False, "replace": False, "max_samples": 0.5}, {"max_depth": 3}],
    ids=str,
)
def test_a_tree_of_a_forest_is_cart_on_its_bag(random_forest, settings):
    """But that a row drawn twice is one to a forest that judges chance, and two to CART: subsets are exact here."""
    X, y = make_frame()
    forest = make(random_forest, max_features=None, ties="first", cat_penalty=0.0, **settings).fit(X, y)
    depth = settings.get("max_depth")
    for tree, rows in zip(forest.forest_, forest.estimators_samples_, strict=True):
        counts = np.bincount(rows, minlength=len(y))
        single = RANDOM_FORESTS[random_forest](max_depth=depth, cat_penalty=0.0).fit(X, y, counts).tree_.arrays
        assert_same_tree(tree, single, ("test", "first_child", "n_rows", "weight", "subsets", "distributions"))
        np.testing.assert_allclose(tree.threshold, single.threshold, rtol=1e-12)


def test_features_are_drawn_for_every_node(random_forest):
    X = np.random.default_rng(0).normal(size=(300, 8))
    y = X[:, 0] > 0  # told by the first feature alone
    alone = make(random_forest, max_features=None).fit(X, y)
    assert {tree.feature[0] for tree in alone.forest_} == {0}
    drawn = make(random_forest, n_estimators=100, max_features=2).fit(X, y)
    roots = np.bincount([tree.feature[0] for tree in drawn.forest_], minlength=8)
    # it is in 2 of 8 draws, and then wins: 25 of 100 trees, give or take three standard deviations
    assert 12 <= roots[0] <= 38
    # were features drawn once a tree, three quarters of the trees would not know it at all
    assert np.mean([(tree.feature[~tree.is_leaf] == 0).any() for tree in drawn.forest_]) > 0.9
    assert drawn.max_features_ == 2


def test_trees_are_sound_and_know_their_bags(kind):
    X, y = make_frame()
    for settings in ({"bootstrap": True}, {"bootstrap": "poisson"}, {"replace": False, "max_samples": 50}, {}):
        model = make(kind, **settings).fit(X, y)
        model.forest_.check()
        assert len(model) == len(model.estimators_) == len(model.forest_) == 10
        for t, rows in enumerate(model.estimators_samples_):
            tree = model[t].tree_.arrays
            tree.check()
            assert tree.n_rows[0] == len(np.unique(rows))
            assert tree.weight[0] == len(rows)
            assert (np.diff(rows) >= 0).all()
        leaf = model.apply(X)
        assert leaf.shape == (200, 10)
        assert leaf.dtype == np.int64
        for t in (0, 9, -1):
            np.testing.assert_array_equal(leaf[:, t], model[t].apply(X))
    with pytest.raises(IndexError):
        _ = model[10]


def test_decision_path_is_that_of_the_trees_side_by_side(kind):
    X, y = make_frame()
    model = make(kind, missing="branch").fit(X, y)
    other, _ = make_frame(seed=1)
    indicator, first = model.decision_path(other)
    assert indicator.shape == (200, model.forest_.n_nodes)
    assert first.tolist() == model.forest_.first_node.tolist()
    for t, tree in enumerate(model.estimators_):
        own = indicator[:, first[t] : first[t + 1]]
        assert (own != tree.decision_path(other)).nnz == 0


def test_bags_differ_from_tree_to_tree(kind):
    X, y = make_table()
    bags = make(kind, bootstrap=True).fit(X, y).estimators_samples_
    assert len({rows.tobytes() for rows in bags}) == 10
    assert 0.55 < np.mean([len(np.unique(rows)) / 200 for rows in bags]) < 0.72  # 1 - 1/e = 0.632


# --- votes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_voting_equals_a_loop_over_the_trees(kind, voting):
    X, y = make_frame()
    model = make(kind, voting=voting, min_samples_leaf=5).fit(X, np.array(["low", "mid", "top"])[y])
    other, _ = make_frame(seed=1)
    total = np.zeros((200, 3))
    for tree in model.estimators_:
        if voting == "soft":
            total += tree.predict_proba(other)
        else:
            total += tree.predict(other)[:, None] == model.classes_
    shares = model.predict_proba(other)
    np.testing.assert_allclose(shares, total / 10, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(model.predict(other), model.classes_[shares.argmax(axis=1)])
    logs = model.predict_log_proba(other)[shares > 0]
    np.testing.assert_allclose(logs, np.log(shares[shares > 0]), rtol=4e-16)  # NumPy's logarithm depends on the CPU
    assert np.isneginf(model.predict_log_proba(other)[shares == 0]).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor], ids=lambda kind: kind.__name__)
def test_the_mean_equals_a_loop_over_the_trees(kind):
    X, y = make_frame()
    model = make(kind).fit(X, y)
    other, _ = make_frame(seed=1)
    np.testing.assert_allclose(model.predict(other), np.mean([t.predict(other) for t in model.estimators_], axis=0))


def test_importances_are_the_mean_over_the_trees(kind):
    X, y = make_frame()
    model = make(kind, max_depth=3).fit(X, y)
    total = np.sum([tree.feature_importances_ for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.feature_importances_, total / total.sum())


def test_many_rows_are_predicted_in_blocks_alike(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
    many = np.tile(X, (60, 1))
    for n_jobs in (1, 2):
        model.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(model.predict(many), np.tile(model.predict(X), 60))


# --- weights --------------------------------------------------------------------------------------------------------


def test_a_bootstrap_draws_by_weight(kind):
    X, y = make_table()
    weight = np.where(np.arange(200) < 50, 9.0, 1.0)  # three quarters of the weight
    model = make(kind, n_estimators=50, bootstrap=True).fit(X, y, weight)
    share = np.mean([np.mean(rows < 50) for rows in model.estimators_samples_])
    assert share == pytest.approx(0.75, abs=0.02)  # 10,000 draws: four standard deviations
    for tree, rows in zip(model.forest_, model.estimators_samples_, strict=True):
        assert tree.weight[0] == len(rows) == 200  # a tree sees counts


@pytest.mark.parametrize(
    "settings", [{"replace": False, "max_samples": 0.5}, {"bootstrap": True, "block_size": 4}], ids=str
)
def test_other_bags_leave_the_weights_to_the_trees(kind, settings):
    X, y = make_table()
    weight = 1.0 + np.arange(200) % 3
    model = make(kind, **settings).fit(X, y, weight)
    for tree, rows in zip(model.forest_, model.estimators_samples_, strict=True):
        assert tree.weight[0] == pytest.approx(weight[rows].sum())


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_class_weights(kind):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 2))
    y = (generator.random(400) < 0.1).astype(int)  # noise
    settings = {"n_estimators": 40, "min_samples_leaf": 40}
    rare = {
        weight: make(kind, class_weight=weight, bootstrap=True, **settings).fit(X, y).predict_proba(X)[:, 1].mean()
        for weight in (None, "balanced", "balanced_subsample")
    }
    assert rare[None] == pytest.approx(0.1, abs=0.03)
    assert rare["balanced"] == pytest.approx(0.5, abs=0.05)
    assert rare["balanced_subsample"] == pytest.approx(0.5, abs=0.05)
    # "balanced" draws: half of a bag is of the rare class; "balanced_subsample" weighs what a plain bag holds
    drawn = make(kind, class_weight="balanced", bootstrap=True, **settings).fit(X, y)
    assert np.mean([y[rows].mean() for rows in drawn.estimators_samples_]) == pytest.approx(0.5, abs=0.02)
    weighed = make(kind, class_weight="balanced_subsample", bootstrap=True, **settings).fit(X, y)
    assert np.mean([y[rows].mean() for rows in weighed.estimators_samples_]) == pytest.approx(y.mean(), abs=0.02)
    for tree, rows in zip(weighed.forest_, weighed.estimators_samples_, strict=True):
        counts = np.bincount(y[rows], minlength=2)
        # each class weighs half, and a leaf holds its rows times that
        expected = counts.sum() / 2 / counts
        leaf = weighed[0].apply(X) if tree is weighed.forest_[0] else None
        if leaf is not None:
            node = leaf[0]
            inside = rows[leaf[rows] == node]
            by_hand = np.bincount(y[inside], expected[y[inside]], 2)
            np.testing.assert_allclose(weighed[0].predict_proba(X[:1])[0], by_hand / by_hand.sum(), rtol=1e-9)


def test_without_bags_class_weights_are_row_weights():
    X, y = make_table()
    weight = {0: 1.0, 1: 2.0, 2: 5.0}
    for kind in CLASSIFIERS:
        model = make(kind, bootstrap=False, class_weight=weight).fit(X, y)
        assert same_forest(model, make(kind, bootstrap=False).fit(X, y, np.array([1.0, 2.0, 5.0])[y]))
        per_bag = make(kind, bootstrap=False, class_weight="balanced_subsample").fit(X, y)
        assert same_forest(per_bag, make(kind, bootstrap=False, class_weight="balanced").fit(X, y))


# --- the same bits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["first", "random"])
def test_without_bags_the_order_of_rows_does_not_matter(kind, ties):
    X, y = make_frame()
    order = np.random.default_rng(5).permutation(200)
    weight = 1.0 + np.arange(200) % 3
    for weights in (None, weight):
        shuffled = None if weights is None else weights[order]
        one = make(kind, bootstrap=False, ties=ties).fit(X, y, weights)
        assert same_forest(make(kind, bootstrap=False, ties=ties).fit(X.iloc[order], y[order], shuffled), one)


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_answer_alike(kind, duplicate):
    X, y = make_frame()
    model = make(kind, bootstrap=True, oob_score=True, n_estimators=30, warm_start=True).fit(X, y)
    other = duplicate(model)
    assert same_forest(model, other)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert all(map(np.array_equal, model.estimators_samples_, other.estimators_samples_))
    np.testing.assert_array_equal(model.vote_table(X.iloc[[0]]).leaf, other.vote_table(X.iloc[[0]]).leaf)
    other.set_params(n_estimators=32).fit(X, y)  # the copy can go on
    assert (len(model), len(other)) == (30, 32)
    assert same_forest(make(kind, bootstrap=True, n_estimators=32).fit(X, y), other)


def test_a_model_loaded_as_memory_maps_answers_alike(kind, tmp_path):
    X, y = make_frame()
    model = make(kind).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    other = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert isinstance(other.forest_.hot.base, np.memmap)  # processes that load it share it
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_memory_of_a_node(kind):
    X, y = make_table()
    weight = 0.1 + np.arange(len(y)) % 7
    for settings, held in (({}, None), ({"bootstrap": True}, None), ({"bootstrap": False}, weight)):
        forest = make(kind, **settings).fit(X, y, held).forest_
        assert forest.hot.nbytes == 16 * forest.n_nodes
        assert forest.n_rows.nbytes + forest.weight.nbytes + forest.impurity.nbytes <= 16 * forest.n_nodes


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_metadata_routing(kind):
    X, y = make_table()
    weight = (np.arange(200) % 2).astype(float)
    model = make(kind, bootstrap=True).set_fit_request(sample_weight=True, groups=True)
    model.set_score_request(sample_weight=True)
    result = cross_validate(
        model, X, y, cv=KFold(2), params={"sample_weight": weight, "groups": np.arange(200) // 4}, return_estimator=True
    )
    for forest in result["estimator"]:
        for rows in forest.estimators_samples_:
            assert (rows % 2 == 1).all()
            count = np.bincount(rows, minlength=100)[1::2]
            np.testing.assert_array_equal(count[::2], count[1::2])  # two of weight 1 in each group of four


def test_scikit_learn_tools(kind):
    X, y = make_frame()
    model = make(kind, n_estimators=20, max_depth=6).fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[[0, 3]].min() > 0.05
    dependence = partial_dependence(model, X, ["a"], kind="average")
    assert dependence["average"][-1, -1] > dependence["average"][-1, 0]
    assert "n_estimators" in model._repr_html_()
    assert repr(kind(n_estimators=3)) == f"{kind.__name__}(n_estimators=3)"


# --- honest trees and pruning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8])
def test_honest_leaves_hold_the_second_part_alone(kind, fraction):
    X, y = make_table()
    model = make(kind, bootstrap=True, honest=True, honest_fraction=fraction).fit(X, y)
    for t, rows in enumerate(model.estimators_samples_):
        counts = np.bincount(rows, minlength=200).astype(np.int32)
        built, valued = split_bag(counts, t, model._seed, fraction)
        np.testing.assert_array_equal(built + valued, counts)
        assert not (built * valued).any()
        tree = model[t]
        leaf = tree.apply(X)
        for node in np.flatnonzero(tree.tree_.is_leaf):
            inside = np.flatnonzero((leaf == node) & (valued > 0))
            assert len(inside) == tree.tree_.n_rows[node] > 0  # no leaf without rows of the second part
            if kind in CLASSIFIERS:
                by_hand = np.bincount(y[inside], valued[inside], 3) / valued[inside].sum()
                np.testing.assert_allclose(tree.predict_proba(X[inside[:1]])[0], by_hand, rtol=1e-12)
            else:
                by_hand = np.average(y[inside], weights=valued[inside])
                assert tree.predict(X[inside[:1]])[0] == pytest.approx(by_hand, rel=1e-12)


def test_the_second_part_has_no_say_in_the_tests(kind):
    X, y = make_table()
    model = make(kind, n_estimators=1, bootstrap=True, honest=True, min_samples_leaf=20).fit(X, y)
    counts = np.bincount(model.estimators_samples_[0], minlength=200).astype(np.int32)
    _, valued = split_bag(counts, 0, model._seed, 0.5)
    other = np.where(valued > 0, (y + 1) % 3, y)
    changed = make(kind, n_estimators=1, bootstrap=True, honest=True, min_samples_leaf=20).fit(X, other)
    one, two = model.forest_[0], changed.forest_[0]
    np.testing.assert_array_equal(one.test, two.test)
    np.testing.assert_array_equal(one.threshold[~one.is_leaf], two.threshold[~two.is_leaf])
    assert not np.array_equal(model.predict(X), changed.predict(X))


def test_honest_trees_are_less_sure_of_noise():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(400, 3)), generator.normal(size=400)
    plain = make(RandomForestRegressor, n_estimators=30, min_samples_leaf=5, max_features=None).fit(X, y)
    honest = make(RandomForestRegressor, n_estimators=30, min_samples_leaf=5, max_features=None, honest=True).fit(X, y)
    assert honest.score(X, y) < plain.score(X, y)


def test_pruning_on_out_of_bag_rows_is_never_worse_on_them(kind):
    X, y = make_frame()
    whole = make(kind, bootstrap=True).fit(X, y)
    pruned = make(kind, bootstrap=True, pruning="oob").fit(X, y)
    smaller = 0
    for t, rows in enumerate(whole.estimators_samples_):
        np.testing.assert_array_equal(rows, pruned.estimators_samples_[t])
        outside = np.setdiff1d(np.arange(200), rows)
        errors = []
        for tree in (whole[t], pruned[t]):
            said = tree.predict(X.iloc[outside])
            errors.append(np.mean(said != y[outside]) if kind in CLASSIFIERS else np.mean((said - y[outside]) ** 2))
        assert errors[1] <= errors[0] + 1e-12
        smaller += pruned[t].get_n_leaves() < whole[t].get_n_leaves()
        assert pruned[t].get_n_leaves() > 1  # there is something to learn
    assert smaller == 10


def test_pruning_leaves_nothing_of_noise():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 3)), generator.integers(0, 2, 300)
    whole = make(RandomForestClassifier).fit(X, y)
    pruned = make(RandomForestClassifier, pruning="oob").fit(X, y)
    assert pruned.forest_.n_nodes < 0.5 * whole.forest_.n_nodes


# --- constraints, members -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 12}, {"bootstrap": True, "max_features": 2}], ids=str)
def test_monotone_constraints_hold_on_a_grid(kind, settings):
    generator = np.random.default_rng(0)
    X = generator.uniform(size=(300, 3))
    y = X[:, 0] - X[:, 1] + 2.0 * X[:, 2] * (X[:, 2] - 1.0) + generator.normal(scale=0.5, size=300)
    if kind in CLASSIFIERS:
        y = y > np.median(y)
    model = make(kind, monotonic_cst=[1, -1, 0], **settings).fit(X, y)
    loose = make(kind, **settings).fit(X, y)
    grid = np.linspace(0.0, 1.0, 60)
    answer = (lambda m, Z: m.predict_proba(Z)[:, 1]) if kind in CLASSIFIERS else (lambda m, Z: m.predict(Z))
    falls = 0.0
    for start in generator.uniform(size=(15, 3)):
        for feature, sign in ((0, 1), (1, -1)):
            rows = np.tile(start, (60, 1))
            rows[:, feature] = grid
            assert (sign * np.diff(answer(model, rows)) >= -1e-12).all()
            falls = min(falls, (sign * np.diff(answer(loose, rows))).min())
    assert falls < -0.01  # without the constraint it would not hold


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("settings", [{}, {"honest": True, "honest_fraction": 0.4}], ids=str)
def test_members_of_leaves(kind, settings):
    X, y = make_table()
    model = make(kind, bootstrap=True, keep_members=True, **settings).fit(X, y)
    assert len(model._members) == 10
    for t in range(10):
        counts = model._draw.counts(t)
        rows = np.flatnonzero(split_bag(counts, t, model._seed, 0.4)[1] if settings else counts)
        members = model._members[t]
        np.testing.assert_array_equal(np.sort(members), rows)
        leaf = model[t].apply(X)[members]
        assert np.count_nonzero(np.diff(leaf)) + 1 == model[t].get_n_leaves()  # those of a leaf side by side
    assert not hasattr(make(kind).fit(X, y), "_members")
