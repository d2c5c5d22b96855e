"""criterion="gain_ratio": the grower against the naive one, and what the guard is for."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings

import fast
import naive
import strategies
from spinney import _jit
from spinney.estimators.cart import CARTClassifier
from spinney.estimators.random_forest import RandomForestClassifier
from spinney.estimators.trace import trace

TWIN = _jit.interpreted()


@settings(max_examples=200)
@given(strategies.chosen_by_ratio())
def test_grows_what_the_oracle_grows(case):
    table, parameters = case
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    tree = fast.grow_table(table, kernels=TWIN, **parameters)
    tree.check()
    fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds="monotonic" in parameters)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 4])
def test_compiled_kernels_grow_the_same_bits(n_classes):
    rng = np.random.default_rng(4)
    columns = [rng.normal(size=300), rng.integers(0, 9, 300), rng.integers(0, 5, 300), rng.integers(0, 3, 300)]
    y = ((columns[0] + columns[1] + rng.normal(size=300)) // 3 % n_classes).astype(int).tolist()
    columns = [np.where(rng.random(300) < 0.1, math.nan, column).tolist() for column in columns]
    table = strategies.SmallTable(columns, y, None, n_classes, [False, False, True, True], [0, 0, 5, 3])
    drawn = {"criterion": "gain_ratio", "max_features": 2, "seed": 3}
    assert fast.arrays_of(fast.grow_table(table, **drawn)) == fast.arrays_of(
        fast.grow_table(table, kernels=TWIN, **drawn)
    )


def entropy(*counts):
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts if c)


def test_the_ratio_prefers_the_uneven_test_of_nearly_the_same_gain():
    """Ten rows, five of each class: x0 cuts 4 | 6, x1 cuts 2 | 8; the gains are close, the split informations not."""
    y = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    x0 = [0, 0, 0, 1, 1, 0, 1, 1, 1, 1]  # (3, 1) against (2, 4)
    x1 = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]  # (2, 0) against (3, 5)
    gain = [1 - 0.4 * entropy(3, 1) - 0.6 * entropy(2, 4), 1 - 0.8 * entropy(3, 5)]
    ratio = [gain[0] / entropy(4, 6), gain[1] / entropy(2, 8)]
    assert ratio[1] > ratio[0]
    assert gain[1] > gain[0]
    tree = CARTClassifier(criterion="gain_ratio", max_depth=1).fit(np.array([x0, x1]).T, y).tree_.arrays
    assert tree.feature[0] == 1


def test_a_test_of_less_than_average_gain_does_not_win_by_its_ratio():
    """x1 cuts off one row: the largest ratio, but less gain than the average of the two."""
    y = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1]
    x0 = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0]
    x1 = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    gains = [entropy(5, 7) - 5 / 12 * entropy(4, 1) - 7 / 12 * entropy(1, 6), entropy(5, 7) - 11 / 12 * entropy(4, 7)]
    assert gains[1] < sum(gains) / 2
    tree = CARTClassifier(criterion="gain_ratio", max_depth=1).fit(np.array([x0, x1]).T, y).tree_.arrays
    assert tree.feature[0] == 0


def test_a_feature_proposes_its_test_of_largest_gain_not_of_largest_ratio():
    """Cutting the first row off alone has the larger ratio; the cut in the middle has the larger gain and is taken."""
    y = [1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    x = np.arange(16.0)
    by_gain = CARTClassifier(criterion="entropy", max_depth=1).fit(x[:, None], y).tree_.arrays.threshold[0]
    by_ratio = CARTClassifier(criterion="gain_ratio", max_depth=1).fit(x[:, None], y).tree_.arrays.threshold[0]
    assert by_ratio == by_gain


def test_a_trace_names_the_average():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, (60, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = math.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1] > 3) + (rng.random(60) < 0.2)) % 2
    for missing in ("learned", "branch", "surrogate"):
        model = CARTClassifier(criterion="gain_ratio", missing=missing, max_depth=3, min_samples_leaf=3).fit(X, y)
        frame = trace(model, X, y).to_frame()
        for node in frame[frame.chosen].node:
            tests = frame[(frame.node == node) & frame.admissible & frame.is_best_of_feature]
            offered = tests[tests.gain >= tests.gain.mean() - 1e-9]
            assert offered.chosen.sum() == 1
            own = float(offered[offered.chosen].gain_ratio.iloc[0])
            assert offered.gain_ratio.max() == pytest.approx(own, rel=1e-9)


def test_without_any_gain_the_first_feature_is_taken():
    X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    tree = CARTClassifier(criterion="gain_ratio").fit(X, [0, 1, 1, 0]).tree_.arrays
    assert tree.feature[0] == 0
    assert tree.n_leaves == 4


def test_random_ties_are_drawn_between_features():
    x = np.arange(8.0)
    X, y = np.stack([x, x, -x], axis=1), [0, 0, 0, 0, 1, 1, 1, 1]
    roots = {
        int(CARTClassifier(criterion="gain_ratio", ties="random", random_state=seed).fit(X, y).tree_.arrays.feature[0])
        for seed in range(40)
    }
    assert roots == {0, 1, 2}


def test_forests_keep_their_own_criteria():
    with pytest.raises(ValueError, match="criterion"):
        RandomForestClassifier(criterion="gain_ratio", n_estimators=1).fit([[0], [1]], [0, 1])
