"""What the trees promise beyond scikit-learn's contract, each on the smallest case that could break it."""

import numpy as np
import pytest

from spinney import CARTClassifier, CARTRegressor


@pytest.mark.parametrize("step", [1e-6, 5e-8, 1e-9])
def test_a_tight_cluster_far_from_the_mean_is_still_split_by_what_explains_it(step):
    """Scores are taken from the node's mean: a gain of 1e-18 of the score must not drown in its rounding."""
    row = np.arange(200)
    coarse, fine = row % 2, (row // 2) % 2
    noise = np.random.default_rng(0).normal(size=200)
    tree = CARTRegressor().fit(np.column_stack([noise, coarse, fine]), coarse + fine * step).tree_.arrays
    assert tree.n_leaves == 4
    assert set(tree.feature[~tree.is_leaf]) == {1, 2}


def test_best_first_growth_takes_a_row_of_weight_two_for_two_rows():
    """Equal gains must stay equal whichever way they were summed: the older node goes first in both fits."""
    X = np.array([[5, 1], [4, 0], [4, 2], [0, 1], [1, 5], [4, 2], [4, 3], [5, 5]])
    y = np.array([3, 0, 1, 2, 1, 3, 3, 3])
    weight = np.array([2, 1, 1, 1, 1, 2, 1, 2])
    for n_leaves in (2, 3, 4, 5):
        repeated = CARTRegressor(max_leaf_nodes=n_leaves).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        weighted = CARTRegressor(max_leaf_nodes=n_leaves).fit(X, y, weight)
        for name in ("test", "first_child", "threshold", "weight"):
            np.testing.assert_array_equal(getattr(repeated.tree_.arrays, name), getattr(weighted.tree_.arrays, name))


def test_a_refused_refit_keeps_the_old_model():
    X, y = np.eye(5), np.arange(5.0)
    model = CARTRegressor().fit(X, y)
    with pytest.raises(ValueError, match="3 rows, y has 2"):
        model.fit(np.eye(3), [1.0, 2.0])
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("limit", [{"min_target_std": 1e308}, {"min_impurity_decrease": 1e300}, {"ccp_alpha": 1e300}])
def test_limits_beyond_the_targets_range_give_one_leaf(limit):
    assert CARTRegressor(**limit).fit([[1], [2]], [0.0, 1e-300]).get_n_leaves() == 1


def test_a_target_too_large_for_a_float_is_refused():
    with pytest.raises(ValueError, match="y"):
        CARTRegressor().fit([[1], [2]], [10**400, 1])


def test_text_shows_enough_digits_to_apply_a_threshold_by_hand():
    text = CARTRegressor(max_depth=1).fit(52 + np.arange(60.0)[:, None] * 1e-6, np.arange(60)).tree_.to_text()
    assert "x0 <= 52.0000295" in text
    stamps = 1_700_000_000 + 3600 * np.arange(42.0)[:, None]
    assert "x0 <= 1700073800" in CARTRegressor(max_depth=1).fit(stamps, np.arange(42) > 20).tree_.to_text()


def test_text_names_only_levels_that_can_reach_a_node():
    levels = ["a", "b", "c"]
    X = [[levels[k % 3], k // 3] for k in range(12)]
    y = ["x" if level == "a" else "yz"[level == "c"] for level, _ in X]
    text = CARTClassifier(categorical_features=[0]).fit(np.array(X, dtype=object), y).tree_.to_text()
    below = [line for line in text.splitlines() if line.startswith(("│  ", "   "))]
    assert below, text
    for level in levels:
        assert sum(f"x0 = {level}:" in line for line in text.splitlines()) == 1, text


@pytest.mark.parametrize("kind", [CARTClassifier, CARTRegressor])
@pytest.mark.parametrize("weight", [[1.0] * 8, [1.0, 2.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0]], ids=["equal", "of all sizes"])
@pytest.mark.parametrize("max_depth", [1, 2])
def test_a_leaf_may_have_exactly_the_least_weight_and_no_less(kind, weight, max_depth):
    """The first two rows, which are to be told from the others, have a quarter of the weight."""
    X, y = np.arange(8.0)[:, None], np.array([1, 1, 0, 0, 0, 0, 0, 0])
    for least, threshold in ((0.25, 1.5), (0.26, 2.5)):
        model = kind(min_weight_fraction_leaf=least, max_depth=max_depth).fit(X, y, weight)
        assert model.tree_.arrays.threshold[0] == threshold
