"""What holds of every prediction, whatever the data."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import strategies
from spinney import C45Classifier, ID3Classifier
from spinney._criteria import CLASS_CRITERIA
from spinney.estimators.cart import CARTClassifier, CARTRegressor


@st.composite
def constrained_fits(draw):
    """A fitted tree with constraints, the table it was fitted on, and the signs."""
    is_regression = draw(st.booleans())
    table = draw(strategies.tables(is_regression=is_regression, max_features=3))
    assume(not all(table.is_categorical))
    assume(not any(is_it and n == 0 for is_it, n in zip(table.is_categorical, table.n_levels, strict=True)))
    signs = [0 if is_it else draw(st.sampled_from([-1, 0, 1])) for is_it in table.is_categorical]
    assume(any(signs))
    params = {
        "monotonic_cst": signs,
        "missing": draw(st.sampled_from(["learned", "branch"])),
        "categorical_features": [j for j, is_it in enumerate(table.is_categorical) if is_it] or None,
        "max_leaf_nodes": draw(st.sampled_from([None, 5])),
        "ccp_alpha": draw(st.sampled_from([0.0, 0.01])),
    }
    X = np.array(table.columns).T
    if is_regression:
        criterion = draw(st.sampled_from(table.criteria))
        return CARTRegressor(criterion=criterion, **params).fit(X, table.y, table.weights), table, signs
    y = [int(code > 0) for code in table.y]
    criterion = draw(st.sampled_from(CLASS_CRITERIA))
    assume(len(set(y)) == 2)
    return CARTClassifier(criterion=criterion, **params).fit(X, y, table.weights), table, signs


def probes(column, is_category):
    """Values between and beyond those of a column, ascending; levels as they are; and missing."""
    values = sorted({value for value in column if not math.isnan(value)})
    if not is_category:
        finite = [value for value in values if math.isfinite(value)]
        middles = [a + (b - a) / 2 for a, b in pairwise(finite)]
        values = sorted({-math.inf, *values, *middles, math.inf})
    return values[:: max(1, len(values) // 8)]


def answers(model, rows):
    return model.predict_proba(rows)[:, 1] if isinstance(model, CARTClassifier) else model.predict(rows)


@settings(max_examples=200)
@given(constrained_fits())
def test_constraints_hold_on_a_grid(fit):
    model, table, signs = fit
    model.tree_.check()
    grids = [probes(column, is_it) for column, is_it in zip(table.columns, table.is_categorical, strict=True)]
    for j, sign in enumerate(signs):
        if not sign:
            continue
        others = [[*grid[::2], math.nan] for k, grid in enumerate(grids) if k != j]
        rows = np.array([[*fixed[:j], value, *fixed[j:]] for fixed in product(*others) for value in grids[j]])
        steps = np.diff(answers(model, rows).reshape(-1, len(grids[j])), axis=1) * sign
        assert steps.min(initial=0.0) >= 0.0


def noisy(n_rows=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n_rows, 3))
    X[rng.random(X.shape) < 0.05] = math.nan
    known = np.nan_to_num(X)
    return X, known[:, 0] - known[:, 1] + np.sin(4 * known[:, 2]) + rng.normal(size=n_rows)


@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.parametrize("signs", [[1, -1, 0], [1, 0, 1], [-1, 1, -1]])
@pytest.mark.parametrize("is_regression", [False, True])
def test_constraints_hold_on_noise(is_regression, signs, missing):
    """Signs that fit the data and signs that do not."""
    X, y = noisy()
    model = (
        CARTRegressor(monotonic_cst=signs, missing=missing).fit(X, y)
        if is_regression
        else CARTClassifier(monotonic_cst=signs, missing=missing).fit(X, y > 0)
    )
    free = CARTRegressor(missing=missing).fit(X, y) if is_regression else CARTClassifier(missing=missing).fit(X, y > 0)
    line = np.linspace(-2.5, 2.5, 60)
    others = [-1.5, -0.5, 0.5, 1.5, math.nan]
    has_free_fall = False
    for j, sign in enumerate(signs):
        if not sign:
            continue
        rows = np.array([[*fixed[:j], value, *fixed[j:]] for fixed in product(others, others) for value in line])
        steps = [np.diff(answers(m, rows).reshape(-1, len(line)), axis=1) * sign for m in (model, free)]
        assert steps[0].min() >= 0.0
        has_free_fall |= steps[1].min() < 0.0
    assert has_free_fall  # without the constraint the same data breaks it: the test can fail
    assert model.get_n_leaves() > 3


@pytest.mark.parametrize("kind", [CARTClassifier, CARTRegressor])
def test_predictions_do_not_depend_on_the_batch(kind):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(150, 4)), rng.integers(0, 3, 150)
    model = kind().fit(X, y)
    whole = model.predict(X)
    assert [model.predict(X[i : i + 1])[0] for i in range(150)] == whole.tolist()
    order = rng.permutation(150)
    np.testing.assert_array_equal(model.predict(X[order]), whole[order])
    np.testing.assert_array_equal(model.predict(np.asfortranarray(X)), whole)


@pytest.mark.parametrize("kind", [CARTClassifier, CARTRegressor])
def test_training_rows_go_where_they_were_when_the_tree_grew(kind):
    """Routing by value agrees with the partition by code: a leaf is reached by the rows it was grown from."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 9, 500), rng.integers(0, 30, 500)]).astype(float)
    X[rng.random(X.shape) < 0.1] = math.nan
    y = rng.integers(0, 4, 500)
    for missing in ("learned", "branch"):
        model = kind(missing=missing, categorical_features=[2], max_depth=6).fit(X, y)
        reached = np.bincount(model.apply(X), minlength=model.tree_.n_nodes)
        np.testing.assert_array_equal(reached[model.tree_.is_leaf], model.tree_.n_rows[model.tree_.is_leaf])
        paths = np.asarray(model.decision_path(X).sum(axis=0)).ravel()
        np.testing.assert_array_equal(paths, model.tree_.n_rows)


NODE_FIELDS = ("test", "first_child", "threshold", "weight", "impurity", "distributions")


def make_classes(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, 40, p=[0.6, 0.3, 0.1]) if seed % 2 else (rng.random(40) < 0.3).astype(int)
    return rng, rng.integers(0, 6, (40, 3)).astype(float), y


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [CARTClassifier, ID3Classifier, C45Classifier])
def test_f7_the_order_of_rows_does_not_matter_to_balanced_classes(kind, seed):
    rng, X, y = make_classes(seed)
    weight, order = rng.random(40), rng.permutation(40)
    one = kind(class_weight="balanced").fit(X, y, weight).tree_.arrays
    other = kind(class_weight="balanced").fit(X[order], y[order], weight[order]).tree_.arrays
    for name in NODE_FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [CARTClassifier, ID3Classifier, C45Classifier])
def test_f7_a_weight_is_so_many_copies_with_balanced_classes(kind, seed):
    rng, X, y = make_classes(seed)
    times = rng.integers(1, 4, 40)
    one = kind(class_weight="balanced").fit(X, y, times).tree_.arrays
    other = kind(class_weight="balanced").fit(np.repeat(X, times, axis=0), np.repeat(y, times)).tree_.arrays
    for name in NODE_FIELDS:
        given = getattr(one, name), getattr(other, name)
        if name == "impurity":  # logarithms are of weights in other units
            np.testing.assert_allclose(*given, rtol=1e-12, atol=1e-15, err_msg=name)
        else:
            np.testing.assert_array_equal(*given, err_msg=name)


C45_WAYS = {
    "grown": {"pruning": None, "collapse": False},
    "pruned": {},
    "cut": {"pruning": "cost_complexity", "ccp_alpha": 0.01},
    "no raising": {"raising": False, "confidence": 0.1},
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("way", C45_WAYS)
def test_f7_c45_counts_and_parts_rows_as_their_copies(way, seed):
    """J48's rules that count rows, and rows that are parted where a value is missing."""
    rng, X, y = make_classes(seed)
    X[rng.random(X.shape) < 0.15] = math.nan
    X[:, 2] = rng.integers(0, 15, 40)  # a category of many levels, for 40 rows, and of few for their copies
    times = rng.integers(1, 4, 40)  # 0 would leave a level without rows, which copies do not know of
    one = C45Classifier(class_weight="balanced", categorical_features=[2], **C45_WAYS[way])
    other = C45Classifier(class_weight="balanced", categorical_features=[2], **C45_WAYS[way])
    copies = np.repeat(X, times, axis=0), np.repeat(y, times)
    one.fit(X, y, times, trace=True)
    other.fit(*copies, trace=True)
    for name in (*NODE_FIELDS, "n_branches", "feature"):
        np.testing.assert_array_equal(getattr(one.tree_.arrays, name), getattr(other.tree_.arrays, name), err_msg=name)
    if way == "grown":
        frames = [model.trace_.to_frame() for model in (one, other)]
        for name in ("node", "test", "chosen", "gain", "gain_ratio", "admissible"):
            assert frames[0][name].equals(frames[1][name]), name


@pytest.mark.parametrize("seed", range(4))
def test_f7_products_of_class_weights_may_be_whole(seed):
    """Class weights of 0.5, 2 and 2 beside weights of 2, 1 and 1: a row of weight 2 is two rows, not one."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [20, 10, 10])
    times = np.where(y == 0, 2, 1)
    X = rng.integers(0, 8, (40, 3)).astype(float) + np.column_stack([y, y, 0 * y])
    X[rng.random(X.shape) < 0.1] = math.nan
    one = C45Classifier(class_weight="balanced").fit(X, y, times).tree_.arrays
    other = C45Classifier(class_weight="balanced").fit(np.repeat(X, times, axis=0), np.repeat(y, times)).tree_.arrays
    for name in NODE_FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
