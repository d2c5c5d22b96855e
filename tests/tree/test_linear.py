"""Linear models of leaves: against rational arithmetic, for any order of rows, and their arrays."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fast
from spinney import _jit
from spinney.tree.broken import BrokenTreeError
from spinney.tree.linear import LeafRows, LinearLeaves, LinearParams, fit_leaves
from spinney.tree.predict import find_leaves, predict_values
from spinney.tree.refit import refit_leaves
from spinney.tree.subtree import cut_nodes

NAN = float("nan")


def exact_ridge(columns, y, weights, alpha):
    """Coefficients, means and mean of y by the normal equations in fractions; None where they have no one solution."""
    y, weights = [Fraction(v) for v in y], [Fraction(w) for w in weights]
    fill, centred = [], []
    for column in columns:
        known = [(Fraction(v), w) for v, w in zip(column, weights, strict=True) if v == v]  # noqa: PLR0124
        fill.append(sum(v * w for v, w in known) / sum(w for _, w in known))
        centred.append([Fraction(v) - fill[-1] if v == v else Fraction(0) for v in column])  # noqa: PLR0124
    mean = sum(v * w for v, w in zip(y, weights, strict=True)) / sum(weights)
    rows = [*centred, [v - mean for v in y]]
    n = len(columns)
    system = [
        [sum(w * a * b for w, a, b in zip(weights, one, other, strict=True)) for other in rows] for one in centred
    ]
    for i in range(n):
        system[i][i] += Fraction(alpha)
    for i in range(n):
        pivot = next((j for j in range(i, n) if system[j][i] != 0), None)
        if pivot is None:
            return None
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [v / system[i][i] for v in system[i]]
        for j in range(n):
            if j != i:
                system[j] = [v - system[j][i] * u for v, u in zip(system[j], system[i], strict=True)]
    return [float(row[n]) for row in system], [float(v) for v in fill], float(mean)


def leaf_of(columns, y, weights=None):
    """A tree of one leaf."""
    return fast.grow(columns, y, weights, criterion="squared_error", max_depth=0)


def fit_root(columns, y, weights=None, alpha=1.0, kernels=None):
    """Terms of the model of one leaf: which features, coefficients, means."""
    values = np.array(columns, np.float64).T.copy()
    weight = None if weights is None else np.array(weights, np.float64)
    rows = LeafRows(values, np.array(y, np.float64), weight)
    leaf = np.zeros(len(values), np.int32)
    kernels = kernels or fast.compiled()
    tree = fit_leaves(leaf_of(columns, y, weights), leaf, rows, LinearParams("all", alpha), kernels)
    tree.check()
    return tree


def as_lists(tree):
    linear = tree.linear
    return linear.feature.tolist(), linear.coefficient.tolist(), linear.fill.tolist()


numbers = st.one_of(st.integers(-4, 4).map(float), st.integers(-400, 400).map(lambda k: k / 16), st.floats(-1e3, 1e3))


@st.composite
def leaves(draw, *, has_missing=True):
    n_rows = draw(st.integers(2, 9))
    column = st.lists(numbers, min_size=n_rows, max_size=n_rows)
    columns = draw(st.lists(column, min_size=1, max_size=4))
    if has_missing:
        columns = [[NAN if draw(st.integers(0, 5)) == 0 else v for v in column] for column in columns]
    scale = draw(st.sampled_from([1.0, 2.0**-40, 2.0**60]))
    columns[0] = [v * scale for v in columns[0]]
    weights = draw(st.none() | st.lists(st.sampled_from([0.25, 1.0, 2.0, 3.5]), min_size=n_rows, max_size=n_rows))
    return columns, draw(column), weights


@given(leaves(), st.sampled_from([0.5, 1.0, 64.0]))
def test_a_model_is_the_solution_of_the_normal_equations(case, alpha):
    columns, y, weights = case
    tree = fit_root(columns, y, weights, alpha)
    features, coefficients, fill = as_lists(tree)
    varying = [j for j, column in enumerate(columns) if len({v for v in column if v == v}) > 1]  # noqa: PLR0124
    if len(set(y)) == 1:
        assert features == []
        return
    assert features == varying
    truth = exact_ridge([columns[j] for j in varying], y, weights or [1.0] * len(y), alpha)
    assert np.allclose(fill, truth[1], rtol=1e-12, atol=1e-12 * max(np.abs(fill), default=0.0))
    # an error of a coefficient counts by what it does to a prediction
    reach = np.array([np.nanmax(np.abs(np.array(columns[j]) - c)) for j, c in zip(varying, truth[1], strict=True)])
    assert np.all(np.abs(np.subtract(coefficients, truth[0])) * reach <= 1e-9 * np.ptp(y))


@given(leaves(), st.sampled_from([0.0, 1.0]), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_bit(case, alpha, random):
    columns, y, weights = case
    order = list(range(len(y)))
    random.shuffle(order)
    other = fit_root(
        [[column[i] for i in order] for column in columns],
        [y[i] for i in order],
        None if weights is None else [weights[i] for i in order],
        alpha,
    )
    assert as_lists(other) == as_lists(fit_root(columns, y, weights, alpha))


@given(leaves(), st.sampled_from([0.0, 1.0]), st.data())
def test_a_row_of_weight_2_is_two_rows_to_the_last_bit(case, alpha, data):
    columns, y, _ = case
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(y), max_size=len(y)))
    repeated = fit_root([np.repeat(column, times) for column in columns], np.repeat(y, times), None, alpha)
    assert as_lists(repeated) == as_lists(fit_root(columns, y, [float(t) for t in times], alpha))


@given(leaves())
def test_interpreted_kernels_give_the_same_models(case):
    columns, y, weights = case
    one = fit_root(columns, y, weights, kernels=_jit.interpreted())
    other = fit_root(columns, y, weights)
    assert as_lists(one) == as_lists(other)


@given(leaves(has_missing=False))
@settings(max_examples=50)
def test_no_penalty_gives_the_least_squares_of_least_norm(case):
    columns, y, weights = case
    columns = [*columns[1:], columns[-1], [1000.0 * v for v in columns[-1]]]  # so that there are many solutions
    features, coefficients, _ = as_lists(fit_root(columns, y, weights, alpha=0.0))
    if not features:
        return
    root = np.sqrt(weights if weights is not None else np.ones(len(y)))
    x = np.array(columns)[features].T
    target = np.array(y) - np.average(y, weights=root**2)
    x = (x - np.average(x, axis=0, weights=root**2)) * root[:, None]
    singular = np.linalg.svd(x / np.abs(x).max(axis=0), compute_uv=False)
    if np.any((singular > 1e-12 * singular[0]) & (singular < 1e-4 * singular[0])):
        return  # neither of full rank nor clearly not
    sizes = np.abs(x).max(axis=0)
    if sizes.min() < 1e-8 * sizes.max():
        return  # least squares would leave out a column that is so small beside another
    best = np.linalg.lstsq(x, target * root, rcond=1e-11)[0]
    assert np.allclose(x @ coefficients, x @ best, rtol=1e-6, atol=1e-7 * np.ptp(y))
    assert np.linalg.norm(coefficients) <= np.linalg.norm(best) * (1 + 1e-5) + 1e-9


def test_many_rows_of_many_features_keep_their_digits():
    random = np.random.default_rng(0)
    columns = random.normal(size=(6, 20_000)) * [[1.0], [1e-9], [1e9], [1.0], [1.0], [1.0]] + 1e4
    y = columns.sum(axis=0) + random.normal(size=20_000)
    for weights in (None, random.integers(1, 5, 20_000).astype(float), random.random(20_000)):
        w = np.ones(20_000) if weights is None else weights
        _, coefficients, fill = as_lists(fit_root(columns, y, weights))
        wide = columns.astype(np.longdouble)
        centred = wide - np.average(wide, axis=1, weights=w)[:, None]
        assert np.allclose(fill, (wide * w).sum(axis=1) / w.sum(), rtol=1e-13)
        target = y - (w * y.astype(np.longdouble)).sum() / w.sum()
        # of the true coefficients, the gradient of the loss is 0
        gradient = (w * centred * (target - coefficients @ centred)).sum(axis=1) - coefficients
        size = (w * np.abs(centred * target)).sum(axis=1)
        assert np.all(np.abs(gradient) <= 1e-14 * size)


def test_heavy_weights_and_one_outlier_keep_their_digits():
    x = [[0.0, 1.0, 2.0, 3.0, 4.0, 1e9]]
    y = [0.0, 2.0, 4.0, 6.0, 8.0, 1.0]
    for weights in ([1.0] * 6, [2.0**40] * 6, [1e300] * 5 + [1e280], [1e-300] * 6):
        _, coefficients, _ = as_lists(fit_root(x, y, weights, alpha=0.0))
        truth = exact_ridge(x, y, weights, 0.0)
        assert coefficients == pytest.approx(truth[0], rel=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150, 1e307])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_numbers_of_any_size_give_finite_models(size, alpha):
    x, y = np.array([-1.0, 0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.5, 2.0])
    for target in (y, y * 1e307, y * 1e-300):
        tree = fit_root([x * size], target, None, alpha)
        rows = (x * size)[:, None]
        answer = predict_values(tree, rows)
        assert np.isfinite(answer).all()
        if alpha == 0.0 and abs(np.log10(target.max()) - np.log10(size)) < 300:  # else float64 cannot hold the slope
            assert np.allclose(answer, target, rtol=1e-12, atol=1e-12 * target.max())


def test_a_slope_beyond_float64_leaves_the_mean():
    tree = fit_root([[0.0, 1e-300, 2e-300]], [0.0, 1e300, 2e300], None, 0.0)
    assert tree.linear.n_terms == 0
    assert predict_values(tree, np.zeros((1, 1))).tolist() == [1e300]


def test_far_away_an_answer_stays_finite():
    tree = fit_root([[0.0, 1.0], [1.0, 0.0]], [-1e300, 1e300], None, 0.0)
    answers = predict_values(tree, np.array([[1e308, -1e308], [-1e308, 1e308], [1e308, 1e308], [NAN, NAN]]))
    assert np.isfinite(answers).all()
    assert answers[3] == 0.0


# ------------------------------------------------------------------------------------------------ whole trees


def grown(max_depth=3, features="path", n_rows=60):
    """A tree on three numbers and a category, with linear leaves, and its rows."""
    random = np.random.default_rng(1)
    columns = random.integers(0, 20, size=(4, n_rows)).astype(float)
    columns[3] %= 3
    columns[1, ::9] = NAN
    y = columns[0] * 2.0 + np.abs(columns[2] - 10.0) + 5.0 * columns[3] + random.random(n_rows)
    kinds = {"is_categorical": [False, False, False, True], "n_levels": [0, 0, 0, 3]}
    tree = fast.grow(columns, y, criterion="squared_error", max_depth=max_depth, **kinds)
    values = columns.T.copy()
    leaf = find_leaves(tree, values)
    return fit_leaves(tree, leaf, LeafRows(values, y, None), LinearParams(features), fast.compiled()), values, y


@pytest.mark.parametrize("features", ["path", "all"])
def test_models_are_on_the_features_of_the_path_or_on_all_numbers(features):
    tree, values, y = grown(features=features)
    tree.check()
    assert tree.linear.n_terms
    leaf = find_leaves(tree, values)
    for node in np.flatnonzero(tree.is_leaf):
        above, path = tree.parent[node], set()
        while above >= 0:
            path.add(int(tree.feature[above]))
            above = tree.parent[above]
        possible = [j for j in range(3) if features == "all" or j in path]
        known = [[v for v in values[leaf == node, j] if v == v] for j in possible]  # noqa: PLR0124
        expected = [j for j, column in zip(possible, known, strict=True) if len(set(column)) > 1]
        terms = tree.linear.terms(node)
        assert tree.linear.feature[terms].tolist() == (expected if len(set(y[leaf == node])) > 1 else [])
        columns = [values[leaf == node, j].tolist() for j in expected]
        truth = exact_ridge(columns, y[leaf == node], [1.0] * int(sum(leaf == node)), 1.0)
        assert tree.linear.coefficient[terms] == pytest.approx(truth[0], rel=1e-9)
        origin = truth[2] - np.dot(truth[0], truth[1])
        assert tree.linear.intercept(node, float(tree.threshold[node])) == pytest.approx(origin, rel=1e-9)


def test_a_prediction_is_the_mean_and_the_terms():
    tree, values, _ = grown()
    leaf = find_leaves(tree, values)
    expected = []
    for row, node in zip(values, leaf, strict=True):
        at = tree.linear.terms(node)
        deviations = row[tree.linear.feature[at]] - tree.linear.fill[at]
        expected.append(tree.threshold[node] + np.nansum(tree.linear.coefficient[at] * deviations))
    assert np.allclose(predict_values(tree, values), expected, rtol=1e-12)
    assert np.array_equal(predict_values(tree, values), predict_values(tree, values.astype(np.float32)))


def test_a_cut_node_answers_by_its_mean_and_the_others_as_before():
    tree, values, y = grown()
    node = int(tree.first_child[0])
    assert not tree.is_leaf[node]
    cut = cut_nodes(tree, [node])
    cut.check()
    is_below = find_leaves(cut, values) == node
    answers = predict_values(cut, values)
    assert np.allclose(answers[is_below], y[is_below].mean())
    assert np.array_equal(answers[~is_below], predict_values(tree, values)[~is_below])
    assert cut_nodes(tree, [0]).linear.n_terms == 0


def test_new_leaf_values_drop_the_models():
    tree, values, y = grown()
    refit = refit_leaves(tree, find_leaves(tree, values), y, criterion="squared_error")
    assert refit.linear is None


def test_models_taken_in_another_order_stay_with_their_nodes():
    tree, _, _ = grown()
    order = np.random.default_rng(0).permutation(tree.n_nodes)
    taken = tree.linear.take(order)
    for new, old in enumerate(order):
        for name in ("feature", "coefficient", "fill"):
            own, given_ = getattr(taken, name), getattr(tree.linear, name)
            assert np.array_equal(own[taken.terms(new)], given_[tree.linear.terms(old)])


BREAKS = {
    "shape": (lambda x: replace(x, first=x.first[:-1]), "linear.first has shape"),
    "terms": (lambda x: replace(x, fill=x.fill[:-1]), "linear.fill has shape"),
    "start": (lambda x: replace(x, first=np.where(np.arange(len(x.first)) == 0, 1, x.first)), "end before they begin"),
    "order": (lambda x: replace(x, first=reorder(x.first)), "end before they begin"),
    "inner": (lambda x: replace(x, first=np.where(np.arange(len(x.first)) == 0, 0, x.n_terms)), "an inner node"),
    "feature": (lambda x: replace(x, feature=np.full_like(x.feature, 4)), "is no number of the table"),
    "negative": (lambda x: replace(x, feature=np.full_like(x.feature, -1)), "is no number of the table"),
    "category": (lambda x: replace(x, feature=np.full_like(x.feature, 3)), "is no number of the table"),
    "coefficient": (lambda x: replace(x, coefficient=np.full_like(x.fill, np.inf)), "is not finite"),
    "fill": (lambda x: replace(x, fill=np.full_like(x.fill, np.nan)), "is not finite"),
}


def reorder(first):
    """Bounds that go back once."""
    first = first.copy()
    at = int(np.argmax(np.diff(first) > 0))
    first[at + 1] = first[-1] + 1
    return first


@pytest.mark.parametrize("name", BREAKS)
def test_the_check_notices_broken_models(name):
    tree, _, _ = grown()
    tree.check()
    change, fault = BREAKS[name]
    with pytest.raises(BrokenTreeError, match=fault):
        replace(tree, linear=change(tree.linear)).check()


def test_a_tree_for_classes_has_no_linear_leaves():
    tree = fast.grow([[0.0, 1.0]], [0, 1], n_classes=2, criterion="gini")
    empty = LinearLeaves(np.zeros(tree.n_nodes + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
    with pytest.raises(BrokenTreeError, match="for classes"):
        replace(tree, linear=empty).check()
