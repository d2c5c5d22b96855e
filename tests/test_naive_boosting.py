"""The second gradient boosting itself: against a book, scikit-learn, XGBoost, LightGBM, and what must hold of any tree.

The peers hold gradients as float32, hence the tolerance `NEAR`; scikit-learn's older classes hold float64 (`CLOSE`).
Data are drawn without ties, so that there is one best split everywhere.
"""

import csv
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

import naive
import naive_boosting as nb

CLOSE = 1e-9
NEAR = 2e-5
N_ROWS = 120


def draw_columns(seed=0, n_features=4, share_missing=0.0, n_rows=N_ROWS):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n_features, n_rows))
    columns[rng.random(columns.shape) < share_missing] = math.nan
    return columns


def draw_target(columns, kind, seed=0):
    """A target of one kind that depends on the columns."""
    rng = np.random.default_rng([seed, 1])
    known = np.nan_to_num(columns, nan=0.7)
    score = known[0] - known[1] ** 2 + 0.5 * known[2] * known[0] + 0.3 * rng.normal(size=columns.shape[1])
    if kind == "number":
        return score
    if kind == "count":
        return rng.poisson(np.exp(score / 2)).astype(float)
    if kind == "positive":
        return np.exp(score / 2) * rng.gamma(3.0, size=len(score))
    n_classes = int(kind)
    return (np.argsort(np.argsort(score)) * n_classes // len(score)).astype(float)


def draw_weights(seed=0):
    return np.random.default_rng([seed, 2]).uniform(0.5, 2.0, N_ROWS)


def raw_of(model):
    """Raw scores of the training rows, (n_rows,) or (n_rows, n_classes)."""
    raw = np.array(model.raw)
    return raw[:, 0] if raw.shape[1] == 1 else raw


def softmax(raw):
    parts = np.exp(raw - raw.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


# -------------------------------------------------------------------------------------------------------------- a book


@pytest.fixture
def li_hang(shared_data):
    with (shared_data / "toy_boosting_lihang.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [float(row["x"]) for row in rows], [float(row["y"]) for row in rows]


def test_least_squares_boosting_by_hand(li_hang):
    """Li Hang, example 8.2."""
    x, y = li_hang
    rounds = [
        (6.5, 6.2367, 8.9125, 1.9300),
        (3.5, -0.5133, 0.2200, 0.8007),
        (6.5, 0.1467, -0.2200, 0.4780),
        (4.5, -0.1608, 0.1072, 0.3056),
        (6.5, 0.0715, -0.1072, 0.2289),
        (2.5, -0.1506, 0.0377, 0.1722),
    ]
    for newton in (True, False):
        for n_rounds, expected in enumerate(rounds, 1):
            model = nb.boost(
                [x], y, loss=nb.Loss("squared_error"), n_rounds=n_rounds, learning_rate=1.0, start=[0.0],
                max_leaf_nodes=2, newton=newton,
            )  # fmt: skip
            ((tree,), loss) = model.rounds[-1], sum((a - b) ** 2 for a, (b,) in zip(y, model.raw, strict=True))
            found = (tree.threshold, tree.children[0].value, tree.children[1].value, loss)
            assert found == pytest.approx(expected, abs=5.0001e-5)


def test_gain_and_weights_of_the_xgboost_form(li_hang):
    x, y = li_hang
    tree = nb.grow([x], [np.mean(y) - v for v in y], [1.0] * 10, max_depth=1, reg_lambda=1.0)
    found = (tree.threshold, tree.gain, tree.children[0].value, tree.children[1].value)
    assert found == pytest.approx((6.5, 7.070072, -0.917429, 1.284400), abs=5.0001e-7)


# ------------------------------------------------------------------------------------- scikit-learn, Friedman's method


@pytest.mark.parametrize(
    ("loss", "shape", "has_weights"),
    [
        ("squared_error", {"max_depth": 3}, False),
        ("squared_error", {"max_depth": 3}, True),
        ("squared_error", {"max_leaf_nodes": 6}, True),
        # Gradients of two values tie unless weights part them. A quantile between two rows is another matter in
        # scikit-learn without weights. By level, scikit-learn splits pure nodes whose variance is not rounded to zero.
        ("absolute_error", {"max_leaf_nodes": 6}, True),
        ("quantile", {"max_leaf_nodes": 6}, True),
        ("huber", {"max_leaf_nodes": 6}, True),
        ("huber", {"max_depth": 3}, True),
    ],
)
@pytest.mark.sampled(3)
def test_friedman_regression(loss, shape, has_weights):
    columns = draw_columns()
    y, weights = draw_target(columns, "number"), draw_weights() if has_weights else None
    peer = GradientBoostingRegressor(
        loss=loss, alpha=0.77, n_estimators=10, learning_rate=0.3, min_samples_leaf=4, random_state=0,
        **{"max_depth": None, **shape},
    ).fit(columns.T, y, weights)  # fmt: skip
    model = nb.boost(
        columns, y, weights, loss=nb.Loss(loss, alpha=0.77, is_flat_at_y=False), n_rounds=10, learning_rate=0.3,
        newton=False, min_samples_leaf=4, **shape,
    )  # fmt: skip
    np.testing.assert_allclose(raw_of(model), peer.predict(columns.T), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize(("loss", "n_classes"), [("log_loss", 2), ("exponential", 2), ("log_loss", 3)])
@pytest.mark.sampled(3)
def test_friedman_classification(loss, n_classes):
    columns = draw_columns(1)
    y, weights = draw_target(columns, str(n_classes)), draw_weights()
    peer = GradientBoostingClassifier(
        loss=loss, n_estimators=10, learning_rate=0.3, max_leaf_nodes=5, max_depth=None, min_samples_leaf=3,
        random_state=0,
    ).fit(columns.T, y, weights)  # fmt: skip
    model = nb.boost(
        columns, y, weights, loss=nb.Loss(loss, n_classes=n_classes, hessian_factor=n_classes / (n_classes - 1)),
        n_rounds=10, learning_rate=0.3, newton=False, min_samples_leaf=3, max_leaf_nodes=5,
    )  # fmt: skip
    if n_classes == 2:
        np.testing.assert_allclose(raw_of(model), peer.decision_function(columns.T), rtol=CLOSE, atol=CLOSE)
    else:
        np.testing.assert_allclose(softmax(raw_of(model)), peer.predict_proba(columns.T), rtol=CLOSE, atol=CLOSE)


# ---------------------------------------------------------------------------------- scikit-learn, second order on bins


def hist(kind, columns, y, weights=None, **parameters):
    """Raw scores of scikit-learn's histogram boosting; with at most 255 values a column, a bin holds one."""
    peer = kind(
        max_iter=5, learning_rate=0.3, max_leaf_nodes=8, early_stopping=False, random_state=0, **parameters
    ).fit(np.asarray(columns).T, y, weights)  # fmt: skip
    return peer._raw_predict(np.asarray(columns).T)


HIST = {"n_rounds": 5, "learning_rate": 0.3, "max_leaf_nodes": 8, "min_child_weight": 1e-3}


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("loss", "kind", "has_weights"),
    [
        ("squared_error", "number", False),
        ("squared_error", "number", True),
        ("absolute_error", "number", True),
        ("poisson", "count", True),
        ("gamma", "positive", False),
    ],
)
@pytest.mark.sampled(3)
def test_second_order_regression(loss, kind, has_weights, share_missing):
    columns = draw_columns(2, share_missing=share_missing)
    y, weights = draw_target(columns, kind), draw_weights() if has_weights else None
    options = {"loss": loss, "min_samples_leaf": 4, "l2_regularization": 0.5}
    expected = hist(HistGradientBoostingRegressor, columns, y, weights, **options)
    model = nb.boost(
        columns, y, weights, loss=nb.Loss(loss, is_flat_at_y=False), min_samples_leaf=4, reg_lambda=0.5, **HIST
    )
    np.testing.assert_allclose(raw_of(model), expected[:, 0], rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_second_order_classification(n_classes):
    columns = draw_columns(3, share_missing=0.1)
    y, weights = draw_target(columns, str(n_classes)), draw_weights()
    expected = hist(HistGradientBoostingClassifier, columns, y, weights, min_samples_leaf=4)
    model = nb.boost(columns, y, weights, loss=nb.Loss("log_loss", n_classes=n_classes), min_samples_leaf=4, **HIST)
    np.testing.assert_allclose(np.array(model.raw), expected, rtol=NEAR, atol=NEAR)


def test_categories_in_the_order_of_their_gradients():
    """scikit-learn smooths by 10 and leaves out levels of fewer than 10 rows: there is none here."""
    columns = draw_columns(4)
    columns[1] = np.random.default_rng(0).permutation(np.arange(N_ROWS) % 8)
    y = draw_target(columns, "number") + np.array([0.3, -1, 2, 0.1, -0.4, 1.1, 0.9, -2])[columns[1].astype(int)]
    expected = hist(HistGradientBoostingRegressor, columns, y, min_samples_leaf=5, categorical_features=[1])
    model = nb.boost(
        columns, y, loss=nb.Loss("squared_error"), n_levels=[0, 8, 0, 0], cat_smooth=10.0,
        min_samples_leaf=5, **HIST,
    )  # fmt: skip
    first = [node.subset for trees in model.rounds for node in naive.walk(trees[0]) if node.subset and node.depth == 0]
    assert first
    root = nb.boost(
        columns, y, loss=nb.Loss("squared_error"), n_levels=[0, 8, 0, 0], cat_smooth=10.0,
        min_samples_leaf=5, **{**HIST, "n_rounds": 1, "max_leaf_nodes": 2},
    )  # fmt: skip
    shallow = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=0.3, max_leaf_nodes=2, early_stopping=False, min_samples_leaf=5,
        categorical_features=[1],
    ).fit(columns.T, y)  # fmt: skip
    np.testing.assert_allclose(raw_of(root), shallow.predict(columns.T), rtol=NEAR, atol=NEAR)
    # Below the root levels have fewer than 10 rows, and scikit-learn goes its own way.
    assert np.corrcoef(raw_of(model), expected[:, 0])[0, 1] > 0.98


@pytest.mark.parametrize("sets", [[[0, 1], [1, 2]], [[0], [1, 2, 3]], [[0, 1, 2, 3], [0, 2]], [[2]], []])
@pytest.mark.sampled(3)
def test_interaction_constraints(sets):
    columns = draw_columns(5)
    y = draw_target(columns, "number") + columns[3] * columns[0]
    expected = hist(HistGradientBoostingRegressor, columns, y, min_samples_leaf=4, interaction_cst=sets)
    model = nb.boost(columns, y, loss=nb.Loss("squared_error"), min_samples_leaf=4, interactions=sets, **HIST)
    np.testing.assert_allclose(raw_of(model), expected[:, 0], rtol=NEAR, atol=NEAR)


# ------------------------------------------------------------------------------------------------------------- XGBoost


def xgboost_raw(columns, y, weights=None, *, n_rounds=4, **parameters):
    """Raw scores of XGBoost's exact greedy search after each round, (n_rounds, n_rows, ...)."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.asarray(columns).T, y, weight=weights)
    model = xgboost.train(
        {"tree_method": "exact", "eta": 0.3, "nthread": 1, "base_score": 0.5, **parameters}, data, n_rounds
    )
    return np.stack([model.predict(data, output_margin=True, iteration_range=(0, t + 1)) for t in range(n_rounds)])


def raw_by_round(columns, y, weights=None, *, start, n_rounds=4, loss="squared_error", n_classes=0, factor=1.0, **more):
    """Raw scores of the training rows after each round, (n_rounds, n_rows, ...)."""
    loss = nb.Loss(loss, n_classes=n_classes, hessian_factor=factor)
    options = {"loss": loss, "learning_rate": 0.3, "start": start, "n_rounds": n_rounds, **more}
    model = nb.boost(columns, y, weights, **options)
    raw = np.tile(np.array(start), (len(y), 1))
    stages = []
    for trees in model.rounds:
        for k, tree in enumerate(trees):
            for leaf in naive.leaves(tree):
                raw[leaf.rows, k] += 0.3 * leaf.value
        stages.append(raw.copy())
    np.testing.assert_allclose(raw, model.raw, rtol=CLOSE)
    return np.stack(stages) if len(start) > 1 else np.stack(stages)[:, :, 0]


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"max_depth": 3}, {"max_depth": 3, "lambda": 0.0}),
        ({"max_depth": 3, "reg_lambda": 2.0}, {"max_depth": 3, "lambda": 2.0}),
        ({"max_depth": 4, "reg_alpha": 1.3}, {"max_depth": 4, "lambda": 0.0, "alpha": 1.3}),
        ({"max_depth": 3, "reg_lambda": 1.0, "min_child_weight": 7.5}, {"max_depth": 3, "min_child_weight": 7.5}),
    ],
)
def test_exact_greedy_of_xgboost(ours, theirs, share_missing):
    columns = draw_columns(6, share_missing=share_missing)
    y, weights = draw_target(columns, "number"), draw_weights()
    expected = xgboost_raw(columns, y, weights, **{"min_child_weight": 0.0, **theirs})
    found = raw_by_round(columns, y, weights, start=[0.5], **ours)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


def test_post_pruning_is_that_of_xgboost():
    """Its gamma bounds twice the gain."""
    columns = draw_columns(7)
    y = draw_target(columns, "number")
    differences = []
    for gamma in (0.5, 1.5, 2.5, 8.0):
        theirs = {"max_depth": 4, "lambda": 0.5, "min_child_weight": 0.0, "gamma": 2 * gamma}
        expected = xgboost_raw(columns, y, **theirs)
        ours = {"start": [0.5], "max_depth": 4, "gamma": gamma, "reg_lambda": 0.5}
        np.testing.assert_allclose(raw_by_round(columns, y, pruning="post", **ours), expected, rtol=NEAR, atol=NEAR)
        differences.append(np.abs(raw_by_round(columns, y, pruning="pre", **ours) - expected).max())
    assert max(differences) > 0.01


@pytest.mark.parametrize(
    ("loss", "objective", "kind"),
    [("log_loss", "binary:logistic", "2"), ("gamma", "reg:gamma", "positive"), ("tweedie", "reg:tweedie", "count")],
)
def test_losses_of_xgboost(loss, objective, kind):
    """Without poisson, whose second derivative XGBoost changes."""
    columns = draw_columns(8)
    y, weights = draw_target(columns, kind), draw_weights()
    expected = xgboost_raw(columns, y, weights, objective=objective, max_depth=3, min_child_weight=0.0)
    start = 0.0 if loss == "log_loss" else math.log(0.5)
    found = raw_by_round(columns, y, weights, start=[start], loss=loss, max_depth=3, reg_lambda=1.0)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


def test_many_classes_of_xgboost():
    columns = draw_columns(9)
    y, weights = draw_target(columns, "3"), draw_weights()
    theirs = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "min_child_weight": 0.1}
    expected = xgboost_raw(columns, y, weights, **theirs)
    ours = {"n_classes": 3, "factor": 2.0, "max_depth": 3, "reg_lambda": 1.0, "min_child_weight": 0.1}
    found = raw_by_round(columns, y, weights, start=[0.5] * 3, loss="log_loss", **ours)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("signs", [(1, 0, 0, 0), (1, -1, 0, 1), (-1, -1, -1, -1)])
def test_monotone_constraints_of_xgboost(signs):
    columns = draw_columns(10)  # XGBoost tries missing values on the lower side of all others too, we do not
    y = draw_target(columns, "number")
    theirs = {"max_depth": 4, "lambda": 1.0, "min_child_weight": 0.0, "monotone_constraints": signs}
    expected = xgboost_raw(columns, y, **theirs)
    found = raw_by_round(columns, y, start=[0.5], max_depth=4, reg_lambda=1.0, monotone=signs)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


# ------------------------------------------------------------------------------------------------------------ LightGBM


LIGHTGBM = {
    "learning_rate": 0.3,
    "boost_from_average": False,
    "min_data_in_bin": 1,
    "max_bin": 255,
    "min_sum_hessian_in_leaf": 0.0,
    "feature_pre_filter": False,
    "num_threads": 1,
    "verbose": -1,
    "deterministic": True,
}


def lightgbm_raw(columns, y, *, n_rounds=4, categories="auto", **parameters):
    lightgbm = pytest.importorskip("lightgbm")
    X = np.asarray(columns).T
    data = lightgbm.Dataset(X, y, categorical_feature=categories, params=LIGHTGBM)
    model = lightgbm.train({**LIGHTGBM, **parameters}, data, n_rounds)
    return np.stack([model.predict(X, raw_score=True, num_iteration=t + 1) for t in range(n_rounds)])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"max_leaf_nodes": 6}, {"num_leaves": 6, "min_data_in_leaf": 1}),
        (
            {"max_leaf_nodes": 9, "reg_lambda": 2.0, "reg_alpha": 0.7, "min_samples_leaf": 6},
            {"num_leaves": 9, "lambda_l2": 2.0, "lambda_l1": 0.7, "min_data_in_leaf": 6},
        ),
        (
            {"max_leaf_nodes": 12, "max_depth": 4},
            {"num_leaves": 12, "min_data_in_leaf": 1, "max_depth": 4},
        ),
    ],
)
def test_leaf_wise_growth_of_lightgbm(ours, theirs):
    """No weights: it would estimate the rows of a leaf from them."""
    columns = draw_columns(11)
    y = draw_target(columns, "number")
    expected = lightgbm_raw(columns, y, **theirs)
    found = raw_by_round(columns, y, start=[0.0], **ours)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("cat_smooth", [0.5, 3.5])
def test_categories_of_lightgbm(cat_smooth):
    """It leaves out levels of fewer rows than `cat_smooth`: trees of two leaves, levels of ten rows and more."""
    columns = draw_columns(12)
    columns[1] = np.random.default_rng(1).permutation([0] * 24 + [*range(6)] * 16)
    assert np.bincount(columns[1].astype(int)).min() >= 10
    y = (
        draw_target(columns[[0, 2, 3, 1]], "number")
        + np.array([0.3, -1, 2, 0.1, -0.4, 1.1, 0.9])[columns[1].astype(int)]
    )
    theirs = {
        "max_cat_to_onehot": 1, "cat_l2": 0.0, "cat_smooth": cat_smooth, "min_data_per_group": 1,
        "max_cat_threshold": 100,
    }  # fmt: skip
    expected = lightgbm_raw(columns, y, n_rounds=6, num_leaves=2, min_data_in_leaf=1, categories=[1], **theirs)
    ours = {"n_levels": [0, 7, 0, 0], "cat_smooth": cat_smooth, "max_leaf_nodes": 2}
    found = raw_by_round(columns, y, start=[0.0], n_rounds=6, **ours)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("signs", [(1, 0, 0, 0), (1, -1, 0, 1)])
def test_monotone_constraints_of_lightgbm(signs):
    columns = draw_columns(13)
    y = draw_target(columns, "number")
    theirs = {"num_leaves": 8, "min_data_in_leaf": 2, "monotone_constraints": list(signs)}
    expected = lightgbm_raw(columns, y, **theirs)
    found = raw_by_round(columns, y, start=[0.0], max_leaf_nodes=8, min_samples_leaf=2, monotone=signs)
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


# ----------------------------------------------------------------------------------------------- what must always hold


@st.composite
def gradients(draw, max_rows=30):
    """Columns (the second a category) with missing cells, g, h and weights of one tree; many ties."""
    n_rows = draw(st.integers(1, max_rows))
    cells = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.nan])
    columns = [draw(st.lists(cells, min_size=n_rows, max_size=n_rows)) for _ in range(3)]
    g = draw(st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=n_rows, max_size=n_rows))
    h = draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=n_rows, max_size=n_rows))
    weights = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n_rows, max_size=n_rows))
    return columns, g, h, weights


LEVELS = [0, 5, 0]


def shape_of(node):
    """Tests and values of a tree."""
    return [
        (below.feature, below.threshold, below.subset, below.missing_branch, below.value) for below in naive.walk(node)
    ]


@given(gradients(), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 0.3]))
def test_values_and_gains_are_those_of_their_rows(case, reg_lambda, reg_alpha):
    """By the formula of the texts, from float sums of NumPy."""
    columns, g, h, weights = case
    tree = nb.grow(columns, g, h, weights, n_levels=LEVELS, reg_lambda=reg_lambda, reg_alpha=reg_alpha)
    wg, wh = np.multiply(weights, g), np.multiply(weights, h)

    def threshold(node):
        G = wg[node.rows].sum()
        return np.sign(G) * max(abs(G) - reg_alpha, 0.0), wh[node.rows].sum() + reg_lambda

    for node in naive.walk(tree):
        G, H = threshold(node)
        assert node.value == pytest.approx(-G / H, abs=1e-12)
        assert node.n_rows == len(node.rows)
        if not node.is_leaf:
            terms = [a**2 / b / 2 for a, b in map(threshold, (*node.children, node))]
            assert node.gain == pytest.approx(terms[0] + terms[1] - terms[2], abs=1e-9)
            assert node.gain > 0
            assert sorted(node.rows) == sorted(node.children[0].rows + node.children[1].rows)
            for branch, child in enumerate(node.children):
                assert child.rows
                assert all(naive.branch_of(node, columns[node.feature][i]) == branch for i in child.rows)


@given(gradients(), st.sampled_from([0.3137, 0.9371, 2.5713]))
def test_gamma_cuts_the_tree_without_it_from_above_or_from_below(case, gamma):
    columns, g, h, weights = case
    options = {"n_levels": LEVELS, "max_depth": 3}

    def cut_from_above(node):
        node.gain -= gamma
        if node.gain <= 0:
            node.children = []
            node.feature = node.threshold = node.subset = node.missing_branch = None
        for child in node.children:
            cut_from_above(child)
        return node

    def cut_from_below(node):
        for child in node.children:
            cut_from_below(child)
        if all(child.is_leaf for child in node.children) and node.gain - gamma < 0:
            node.children = []
            node.feature = node.threshold = node.subset = node.missing_branch = None
        return node

    pre = nb.grow(columns, g, h, weights, gamma=gamma, **options)
    assert shape_of(pre) == shape_of(cut_from_above(nb.grow(columns, g, h, weights, **options)))
    post = nb.grow(columns, g, h, weights, gamma=gamma, pruning="post", **options)
    assert shape_of(post) == shape_of(cut_from_below(nb.grow(columns, g, h, weights, **options)))
    assert len(naive.leaves(post)) >= len(naive.leaves(pre))


@given(gradients(), st.tuples(st.sampled_from([-1, 1]), st.just(0), st.sampled_from([-1, 0, 1])))
def test_monotone_trees_are_monotone_on_a_grid(case, signs):
    columns, g, h, weights = case
    tree = nb.grow(columns, g, h, weights, n_levels=LEVELS, monotone=signs)
    values = [0.0, 1.0, 2.0, 3.0, 4.0]
    for level in [*values, math.nan]:
        for other in [*values, math.nan]:
            first = [naive.predict(tree, [v, level, other]) for v in values]
            assert all(signs[0] * (b - a) >= -1e-12 for a, b in pairwise(first))
            last = [naive.predict(tree, [other, level, v]) for v in values]
            assert signs[2] == 0 or all(signs[2] * (b - a) >= -1e-12 for a, b in pairwise(last))


@given(gradients(), st.sampled_from([[[0, 1]], [[0], [1, 2]], [[0, 1], [1, 2]], [[2]]]))
def test_interacting_features_share_a_set(case, sets):
    columns, g, h, weights = case
    tree = nb.grow(columns, g, h, weights, n_levels=LEVELS, interactions=sets)
    groups = [*map(set, sets), {0, 1, 2} - set().union(*sets)]

    def paths(node, used):
        if node.is_leaf:
            yield used
        for child in node.children:
            yield from paths(child, used | {node.feature})

    assert all(any(path <= group for group in groups) for path in paths(tree, set()))


@given(gradients(), st.integers(2, 6))
def test_a_tree_is_its_own_guide(case, max_leaf_nodes):
    columns, g, h, weights = case
    options = {"n_levels": LEVELS, "max_leaf_nodes": max_leaf_nodes, "cat_smooth": 0.5}
    tree = nb.grow(columns, g, h, weights, **options)
    assert shape_of(nb.grow(columns, g, h, weights, guide=tree, rounding=1e-9, **options)) == shape_of(tree)
    assert len(naive.leaves(tree)) <= max_leaf_nodes


@given(gradients())
def test_limits_hold(case):
    columns, g, h, weights = case
    limits = {
        "min_samples_leaf": 2,
        "min_samples_split": 6,
        "min_child_weight": 1.1,
        "min_weight_fraction_leaf": 0.11,
        "max_depth": 4,
    }
    tree = nb.grow(columns, g, h, weights, n_levels=LEVELS, **limits)
    wh = np.multiply(weights, h)
    for node in naive.walk(tree):
        assert node.is_leaf or node.n_rows >= 6
        if node is not tree:
            assert node.n_rows >= 2
            assert node.depth <= 4
            assert wh[node.rows].sum() >= 1.1
            assert np.sum(np.array(weights)[node.rows]) >= 0.11 * sum(weights)


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=20),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
)
def test_quantiles_are_those_of_repeated_values(pairs, level):
    values, counts = zip(*pairs, strict=True)
    expected = np.quantile(np.repeat(np.float64(values), counts), level, method="averaged_inverted_cdf")
    assert nb.quantile(list(map(float, values)), counts, level) == pytest.approx(expected)
