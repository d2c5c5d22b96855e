"""The oracle itself: against lectures, published trees, scikit-learn, and what must hold of any tree."""

import csv
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import naive
import strategies


def read_csv(path):
    """Columns by name: numbers where every cell is one, level indices (levels sorted) otherwise."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return {name: as_numbers(cells) for name, cells in columns.items()}


def as_numbers(cells):
    try:
        return [float(cell) if cell else math.nan for cell in cells]
    except ValueError:
        levels = sorted(set(cells) - {""})
        return [float(levels.index(cell)) if cell else math.nan for cell in cells]


def levels_of(path, name):
    with path.open(newline="") as file:
        return sorted({row[name] for row in csv.DictReader(file)})


def gains_of_thresholds(column, y, criterion):
    ranked = naive.rank_root([column], y, n_classes=2, criterion=criterion)
    return {candidate.threshold: gain for candidate, gain in ranked}


# ---------------------------------------------------------------------------------------------- lectures


def test_taxable_income(shared_data):
    table = read_csv(shared_data / "toy_taxable_income.csv")
    gains = gains_of_thresholds(table["taxable_income"], table["cheat"], "gini")
    root_gini = 0.42
    expected = {
        65.0: 0.4,
        72.5: 0.375,
        80.0: 12 / 35,
        87.5: 5 / 12,
        92.5: 0.4,
        97.5: 0.3,
        110.0: 12 / 35,
        122.5: 0.375,
        172.5: 0.4,
    }
    assert list(gains) == list(expected)
    assert [root_gini - gain for gain in gains.values()] == pytest.approx(list(expected.values()), abs=1e-15)

    stump = naive.grow([table["taxable_income"]], table["cheat"], n_classes=2, criterion="gini", max_depth=1)
    assert (stump.threshold, stump.impurity, stump.gain) == (97.5, 0.42, 0.12)
    entropies = gains_of_thresholds(table["taxable_income"], table["cheat"], "entropy")
    root_entropy = naive.grow([[0.0] * 10], table["cheat"], n_classes=2, criterion="entropy").impurity
    assert root_entropy - entropies[97.5] == pytest.approx(0.6, abs=1e-15)


def test_numeric_weather(shared_data):
    table = read_csv(shared_data / "toy_weather_numeric.csv")
    temperature = gains_of_thresholds(table["temperature"], table["play"], "entropy")
    humidity = gains_of_thresholds(table["humidity"], table["play"], "entropy")
    best_first = sorted(temperature, key=temperature.get, reverse=True)
    assert best_first[:3] == [84.0, 64.5, 70.5]
    assert [temperature[cut] for cut in best_first[:3]] == pytest.approx([0.113401, 0.047709, 0.045334], abs=5e-7)
    assert temperature[71.5] == pytest.approx(0.940286 - 0.938946, abs=1e-6)
    best_first = sorted(humidity, key=humidity.get, reverse=True)
    assert best_first[:2] == [82.5, 88.0]
    assert [humidity[cut] for cut in best_first[:2]] == pytest.approx([0.151836, 0.102244], abs=5e-7)


@pytest.mark.parametrize(
    ("file", "target", "expected"),
    [
        (
            "toy_play_tennis.csv",
            "play",
            {
                "outlook": (Fraction(5, 14), {"overcast"}),
                "temperature": (Fraction(31, 70), {"hot"}),
                "humidity": (Fraction(18, 49), {"high"}),
                "wind": (Fraction(3, 7), {"strong"}),
            },
        ),
        (
            "toy_buys_computer.csv",
            "buys_computer",
            {
                "age": (Fraction(5, 14), {"middle_aged"}),
                "income": (Fraction(31, 70), {"high"}),
                "student": (Fraction(18, 49), {"no"}),
                "credit_rating": (Fraction(3, 7), {"excellent"}),
            },
        ),
    ],
)
def test_subset_gini(shared_data, file, target, expected):
    table = read_csv(shared_data / file)
    y = table[target]
    for name, (gini, side) in expected.items():
        levels = levels_of(shared_data / file, name)
        stump = naive.grow([table[name]], y, n_classes=2, criterion="gini", is_categorical=[True], max_depth=1)
        assert stump.impurity == pytest.approx(0.459184, abs=5e-7)
        assert stump.impurity - stump.gain == pytest.approx(float(gini), abs=1e-15)
        left = {levels[level] for level in stump.subset}
        assert side in (left, set(levels) - left)

    # The root over all attributes is the one of least Gini.
    columns = [table[name] for name in expected]
    root = naive.grow(columns, y, n_classes=2, criterion="gini", is_categorical=[True] * 4)
    assert root.feature == 0
    assert all(naive.predict(root, row)[int(c)] == 1.0 for row, c in zip(zip(*columns, strict=True), y, strict=True))


def test_misclassification_does_not_see_what_gini_and_entropy_see():
    # 40 + 60 A over 60 A + 40 B in four blocks; splitting the second half off leaves 20 % mistakes.
    column, y, weights = [0.0, 1.0, 1.0], [0, 0, 1], [100.0, 60.0, 40.0]
    stumps = {
        criterion: naive.grow([column], y, weights, n_classes=2, criterion=criterion)
        for criterion in ("misclassification", "gini", "entropy")
    }
    assert stumps["misclassification"].gain == 0.0
    assert stumps["gini"].impurity == pytest.approx(0.32)
    assert stumps["gini"].impurity - stumps["gini"].gain == pytest.approx(0.24)
    assert stumps["entropy"].impurity == pytest.approx(0.721928, abs=5e-7)
    assert stumps["entropy"].impurity - stumps["entropy"].gain == pytest.approx(0.485475, abs=5e-7)


@pytest.mark.parametrize(
    ("labels", "entropy", "gini"),
    [
        ("AABCBACCAC", 1.521928, 0.64),
        ("ABCAABBC", 1.561278, 0.65625),
        ("AAAAAABB", 0.811278, 0.375),
        ("AAAABBBB", 1.0, 0.5),
        ("AAAAAAAA", 0.0, 0.0),
    ],
)
def test_impurities(labels, entropy, gini):
    y = ["ABC".index(label) for label in labels]
    for criterion, expected in (("entropy", entropy), ("gini", gini)):
        root = naive.grow([[0.0] * len(y)], y, n_classes=3, criterion=criterion)
        assert root.is_leaf
        assert root.impurity == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "squared_error", "sdr"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_xor_is_fitted_through_a_split_of_no_gain(criterion, repeats):
    columns = [[0.0, 0.0, 1.0, 1.0] * repeats, [0.0, 1.0, 0.0, 1.0] * repeats]
    y = [0, 1, 1, 0] * repeats
    n_classes = None if criterion in ("squared_error", "sdr") else 2
    root = naive.grow(columns, y, n_classes=n_classes, criterion=criterion)
    assert (root.feature, root.threshold, root.gain) == (0, 0.5, 0.0)
    assert len(naive.leaves(root)) == 4
    assert all(leaf.impurity == 0.0 for leaf in naive.leaves(root))


def test_equal_rows_of_different_classes_end_in_one_leaf():
    root = naive.grow([[1.0, 1.0, 2.0]], [0, 1, 1], n_classes=2, criterion="gini")
    assert [leaf.value for leaf in naive.leaves(root)] == [[0.5, 0.5], [0.0, 1.0]]


def test_spirals():
    rng = np.random.RandomState(42)
    t = 0.75 * np.pi * (1 + 3 * rng.rand(200))
    X = np.column_stack([t * np.cos(t), t * np.sin(t)])
    X[:100] *= -1
    X += 0.5 * rng.randn(2, 200).T
    y = [0] * 100 + [1] * 100
    assert X[0] == pytest.approx([-1.776926, 5.221733], abs=5e-7)

    columns = X.T.tolist()
    for criterion in ("gini", "entropy"):
        trees = {d: naive.grow(columns, y, n_classes=2, criterion=criterion, max_depth=d) for d in (1, 3, 5, None)}
        full = trees[None]
        assert full.feature == 1
        assert full.threshold == pytest.approx(-5.4694, abs=5e-5)
        assert (len(naive.leaves(full)), naive.height(full)) == (15, 8)
        accuracy = {
            depth: np.mean([np.argmax(naive.predict(tree, row)) == c for row, c in zip(X.tolist(), y, strict=True)])
            for depth, tree in trees.items()
        }
        assert accuracy == {1: 0.615, 3: 0.725, 5: 0.895, None: 1.0}


def test_least_squares_stump(shared_data):
    table = read_csv(shared_data / "toy_boosting_lihang.csv")
    stump = naive.grow([table["x"]], table["y"], criterion="squared_error", max_depth=1)
    assert stump.threshold == 6.5
    assert [leaf.value for leaf in stump.children] == pytest.approx([6.2367, 8.9125], abs=5e-5)
    assert 10 * (stump.impurity - stump.gain) == pytest.approx(1.93, abs=5e-5)


# ------------------------------------------------------------------------------------------------- rpart


def outline(node, names):
    """(rule, rows) of each node from the root down."""
    lines = []
    for below in naive.walk(node):
        rule = None if below.is_leaf else (names[below.feature], below.threshold)
        lines.append((below.n_rows, rule))
    return lines


def test_rpart_kyphosis(shared_data):
    table = read_csv(shared_data / "kyphosis.csv")
    names = ["Age", "Number", "Start"]
    columns = [table[name] for name in names]
    limits = {"n_classes": 2, "criterion": "gini", "min_samples_split": 20, "min_samples_leaf": 7}
    root = naive.grow(columns, table["Kyphosis"], **limits)
    # As published; rpart lists the larger side first where the smaller values are the sicker ones.
    assert outline(root, names) == [
        (81, ("Start", 8.5)),
        (19, None),
        (62, ("Start", 14.5)),
        (33, ("Age", 55.0)),
        (12, None),
        (21, ("Age", 111.0)),
        (7, None),
        (14, None),
        (29, None),
    ]
    assert [node.value[1] * node.n_rows for node in naive.leaves(root)] == pytest.approx([11, 0, 4, 2, 0])

    ranked = naive.rank_root(columns, table["Kyphosis"], **limits)
    improve = {}
    for candidate, gain in ranked:
        name = names[candidate.feature]
        improve[name] = max(improve.get(name, (0.0, None)), (81 * gain, candidate.threshold))
    assert {name: cut for name, (_, cut) in improve.items()} == {"Start": 8.5, "Number": 5.5, "Age": 39.5}
    assert [improve[name][0] for name in ("Start", "Number", "Age")] == pytest.approx(
        [6.762330, 2.866795, 2.250212], abs=5e-7
    )
    second = root.children[1]
    fifth = second.children[0]
    eleventh = fifth.children[1]
    assert [81 * node.gain for node in (second, fifth, eleventh)] == pytest.approx(
        [1.020528, 1.246753, 1.714286], abs=5e-7
    )


def test_rpart_car_mileage(shared_data):
    table = read_csv(shared_data / "car_test_frame.csv")
    root = naive.grow(
        [table["Weight"]],
        table["Mileage"],
        criterion="squared_error",
        min_samples_split=20,
        min_samples_leaf=7,
        min_impurity_decrease=0.01 * 1354.583 / 60,  # cp = 0.01 of the root's risk
    )
    assert outline(root, ["Weight"]) == [
        (60, ("Weight", 2567.5)),
        (15, None),
        (45, ("Weight", 3087.5)),
        (23, ("Weight", 2747.5)),
        (8, None),
        (15, None),
        (22, None),
    ]
    assert [node.value for node in naive.walk(root)] == pytest.approx(
        [24.58333, 30.93333, 22.46667, 24.43478, 25.62500, 23.80000, 20.40909], abs=5e-6
    )
    assert [node.impurity * node.n_rows for node in naive.walk(root)] == pytest.approx(
        [1354.583, 186.9333, 361.2, 117.6522, 39.875, 60.4, 61.31818], rel=1e-6
    )
    alphas, impurities = naive.cost_complexity_path(root)
    assert [alpha / root.impurity for alpha in reversed(alphas)][:3] == pytest.approx(
        [0.59534912, 0.13452819, 0.01282843], abs=5e-9
    )
    assert [risk / root.impurity for risk in reversed(impurities)] == pytest.approx(
        [1.0, 0.4046509, 0.2701227, 0.2572943], abs=5e-8
    )


# ------------------------------------------------------------------------------------------ scikit-learn


def random_table(seed, *, is_regression, has_missing=False, n_rows=60, n_features=3):
    """Numbers that are all different, and exact as float32, which is what scikit-learn computes with."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.permutation(n_rows * 3)[:n_rows] / 16 for _ in range(n_features)])
    signal = X[:, 0] - X[:, -1] / 2 + rng.normal(scale=4, size=n_rows)
    y = signal if is_regression else np.digitize(signal, np.quantile(signal, [0.3, 0.6]))
    if has_missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    # Of few bits: with others, rounding makes scikit-learn split pure nodes.
    weights = rng.integers(2**9, 2**11, size=n_rows) / 2**10
    return X, y, weights


def compare_with_sklearn(node, peer, index=0):
    """Same sizes, impurities, values and tests from this node down; how many tests were the same.

    Two tests of one gain are both right: what is below them is not compared. Small nodes have many of them,
    as any feature can part two rows.
    """
    assert node.n_rows == peer.n_node_samples[index]
    assert node.weight == pytest.approx(peer.weighted_n_node_samples[index])
    assert node.impurity == pytest.approx(peer.impurity[index], abs=1e-9)
    value = peer.value[index, 0] if peer.n_classes[0] > 1 else peer.value[index, 0, 0]
    assert node.value == pytest.approx(value)
    left, right = peer.children_left[index], peer.children_right[index]
    assert node.is_leaf == (left == -1)
    if node.is_leaf:
        return 0
    shares = peer.weighted_n_node_samples / peer.weighted_n_node_samples[0]
    gain = shares[index] * peer.impurity[index] - sum(shares[i] * peer.impurity[i] for i in (left, right))
    assert node.gain == pytest.approx(gain, abs=1e-9)
    if (node.feature, node.threshold) != (peer.feature[index], peer.threshold[index]):
        return 0
    if [child.n_rows for child in node.children] != [peer.n_node_samples[i] for i in (left, right)]:
        return 0  # missing rows are as good on either side
    return 1 + compare_with_sklearn(node.children[0], peer, left) + compare_with_sklearn(node.children[1], peer, right)


LIMITS = [
    {},
    {"max_depth": 3},
    {"min_samples_leaf": 5},
    {"min_samples_split": 15},
    {"min_impurity_decrease": 0.02},
    {"min_weight_fraction_leaf": 0.07},
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("has_weights", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("has_missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.sampled(5)
def test_equals_sklearn(criterion, has_missing, has_weights, limits):
    is_regression = criterion == "squared_error"
    estimator = DecisionTreeRegressor if is_regression else DecisionTreeClassifier
    n_same, n_tests = 0, 0
    for seed in range(4):
        X, y, weights = random_table(seed, is_regression=is_regression, has_missing=has_missing)
        weights = weights if has_weights else None
        peer = estimator(criterion=criterion, random_state=0, **limits).fit(X, y, sample_weight=weights).tree_
        root = naive.grow(
            X.T.tolist(), y, weights, n_classes=None if is_regression else 3, criterion=criterion, **limits
        )
        n_same += compare_with_sklearn(root, peer)
        n_tests += len(naive.leaves(root)) - 1
    assert n_same >= n_tests / 2


@pytest.mark.parametrize("limits", [{"max_leaf_nodes": 6}, {"max_leaf_nodes": 12, "min_samples_leaf": 3}], ids=str)
@pytest.mark.parametrize("has_missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_best_first_equals_sklearn(criterion, has_missing, limits):
    """One feature and odd weights: no ties, which would change what is expanded elsewhere."""
    is_regression = criterion == "squared_error"
    estimator = DecisionTreeRegressor if is_regression else DecisionTreeClassifier
    for seed in range(4):
        X, y, weights = random_table(seed, is_regression=is_regression, has_missing=has_missing, n_features=1)
        peer = estimator(criterion=criterion, random_state=0, **limits).fit(X, y, sample_weight=weights).tree_
        root = naive.grow(
            X.T.tolist(), y, weights, n_classes=None if is_regression else 3, criterion=criterion, **limits
        )
        assert compare_with_sklearn(root, peer) == len(naive.leaves(root)) - 1
        predictions = [naive.predict(root, row) for row in X.tolist()]
        expected = peer.predict(X.astype(np.float32)).reshape(len(X), -1)
        assert np.array(predictions).reshape(len(X), -1) == pytest.approx(expected)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("seed", range(3))
def test_pruning_equals_sklearn(criterion, seed):
    is_regression = criterion == "squared_error"
    estimator = DecisionTreeRegressor if is_regression else DecisionTreeClassifier
    X, y, weights = random_table(seed, is_regression=is_regression, n_features=1)
    grown = naive.grow(
        X.T.tolist(),
        y,
        weights,
        n_classes=None if is_regression else 3,
        criterion=criterion,
        min_samples_leaf=2,
    )
    peer = estimator(criterion=criterion, min_samples_leaf=2, random_state=0)
    path = peer.cost_complexity_pruning_path(X, y, sample_weight=weights)
    alphas, impurities = naive.cost_complexity_path(grown)
    assert len(alphas) > 5
    assert alphas == pytest.approx(path.ccp_alphas, abs=1e-12)
    assert impurities == pytest.approx(path.impurities, abs=1e-9)
    for low, high in pairwise(alphas):
        alpha = (low + high) / 2
        pruned = peer.set_params(ccp_alpha=alpha).fit(X, y, sample_weight=weights)
        expected = naive.prune(grown, alpha)
        assert compare_with_sklearn(expected, pruned.tree_) == len(naive.leaves(expected)) - 1


def test_tied_links_are_cut_together():
    # Four pure quarters: all three splits have one alpha, so the path has one step.
    columns = [[0.0, 1.0, 2.0, 3.0]]
    root = naive.grow(columns, [0, 1, 2, 3], n_classes=4, criterion="gini")
    alphas, impurities = naive.cost_complexity_path(root)
    assert alphas == pytest.approx([0.0, 0.25])
    assert impurities == pytest.approx([0.0, 0.75])
    assert naive.prune(root, 0.25).is_leaf
    assert len(naive.leaves(naive.prune(root, 0.2499))) == 4


def test_links_of_no_cost():
    # A first split of XOR gains nothing, but what is below it does: nothing is free here.
    xor = naive.grow([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]], [0, 1, 1, 0], n_classes=2, criterion="gini")
    assert naive.cost_complexity_path(xor) == ([0.0, pytest.approx(0.5 / 3)], [0.0, 0.5])
    # Misclassification sees no gain in this split at all: the whole tree is free, and alpha 0 keeps it.
    free = naive.grow([[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]], [0, 0, 0, 0, 0, 1], n_classes=2, criterion="misclassification")
    assert naive.cost_complexity_path(free) == ([0.0], [pytest.approx(1 / 6)])
    assert not naive.prune(free, 0.0).is_leaf
    assert naive.prune(free, 1e-6).is_leaf


# --------------------------------------------------------------------------------------------- the rules


NAN = math.nan


def test_ties_go_to_the_first_feature_and_the_lowest_threshold():
    column = [1.0, 2.0, 3.0, 4.0]
    root = naive.grow([column, column], [0, 1, 1, 0], n_classes=2, criterion="gini")
    assert (root.feature, root.threshold) == (0, 1.5)


@pytest.mark.parametrize(
    ("low", "high", "threshold"),
    [
        (1.0, 2.0, 1.5),
        (1.0, math.nextafter(1.0, 2.0), 1.0),
        (-math.inf, 0.0, -math.inf),
        (0.0, math.inf, 0.0),
        (-math.inf, math.inf, -math.inf),
        (-1.7e308, 1.7e308, -1.7e308),
        (0.0, 5e-324, 0.0),
    ],
)
def test_thresholds_part_any_two_floats(low, high, threshold):
    root = naive.grow([[low, high]], [0.0, 1.0], criterion="squared_error")
    assert root.threshold == threshold
    assert [naive.predict(root, [v]) for v in (low, high)] == [0.0, 1.0]


def test_signed_zeros_are_one_value():
    assert naive.grow([[-0.0, 0.0]], [0.0, 1.0], criterion="squared_error").is_leaf


def test_missing_rows_take_the_better_side():
    column = [1.0, 2.0, 3.0, NAN]
    left = naive.grow([column], [0, 0, 1, 0], n_classes=2, criterion="gini")
    right = naive.grow([column], [0, 0, 1, 1], n_classes=2, criterion="gini")
    apart = naive.grow([column], [0, 0, 0, 1], n_classes=2, criterion="gini")
    assert (left.threshold, left.missing_branch) == (2.5, 0)
    assert (right.threshold, right.missing_branch) == (2.5, 1)
    assert (apart.threshold, apart.missing_branch) == (math.inf, 1)
    assert naive.predict(apart, [math.inf]) == [1.0, 0.0]


def test_missing_rows_take_a_branch_of_their_own():
    root = naive.grow([[1.0, 2.0, NAN]], [0, 1, 2], n_classes=3, criterion="gini", missing="branch")
    assert (root.threshold, root.missing_branch, len(root.children)) == (1.5, 2, 3)
    assert naive.predict(root, [NAN]) == [0.0, 0.0, 1.0]


def test_unseen_missing_goes_with_the_heavier_branch():
    root = naive.grow([[1.0, 2.0]], [0.0, 1.0], [2.0, 1.0], criterion="squared_error")
    even = naive.grow([[1.0, 2.0]], [0.0, 1.0], criterion="squared_error")
    assert (root.missing_branch, even.missing_branch) == (0, 1)


def test_absent_levels_go_with_the_missing():
    """Levels 0, 1 and 2 occur; 3 and 4 are in the vocabulary only."""

    def grow(column, y, **parameters):
        return naive.grow([column], y, criterion="squared_error", is_categorical=[True], n_levels=[5], **parameters)

    # The prefix is {1}, the lowest mean; the missing row is like it.
    assert grow([0, 1, 2, NAN], [1.0, 0.0, 1.0, 0.0]).subset == {1, 3, 4}
    assert grow([0, 1, 2, NAN], [1.0, 0.0, 1.0, 1.0]).subset == {1}
    apart = grow([0, 1, 2, NAN], [0.0, 0.0, 0.0, 1.0])
    assert (apart.subset, apart.missing_branch) == ({0, 1, 2}, 1)
    # With a third branch, and where nothing is missing, they go with the heavier side.
    three = grow([0, 1, 2, NAN], [1.0, 0.0, 0.0, 7.0], missing="branch", max_depth=1)
    assert (three.missing_branch, three.subset) == (2, {1, 2, 3, 4})
    assert grow([0, 1, 2], [1.0, 0.0, 0.0]).subset == {1, 2, 3, 4}
    assert grow([0, 1], [1.0, 0.0]).subset == {1}


def test_three_classes_try_every_subset():
    # {0, 2} against {1, 3} is no prefix of any order by a single class.
    column = [0, 1, 2, 3] * 2
    y = [0, 1, 0, 2, 0, 1, 0, 2]
    ranked = naive.rank_root([column], y, n_classes=3, criterion="gini", is_categorical=[True])
    subsets = [candidate.subset for candidate, _ in ranked]
    assert subsets == [{0}, {0, 1}, {0, 2}, {0, 1, 2}, {0, 3}, {0, 1, 3}, {0, 2, 3}]
    root = naive.grow([column], y, n_classes=3, criterion="gini", is_categorical=[True])
    assert root.subset == {0, 2}


def test_many_levels_are_ordered_by_the_principal_component():
    # Shares move from class 0 to class 2 along a shuffled order of ten levels; class 1 is constant noise.
    order = [3, 8, 0, 5, 1, 9, 4, 7, 2, 6]
    column, y = [], []
    for position, level in enumerate(order):
        counts = [10 - position, 3, position]
        column += [float(level)] * sum(counts)
        y += [0] * counts[0] + [1] * counts[1] + [2] * counts[2]
    ranked = naive.rank_root([column], y, n_classes=3, criterion="gini", is_categorical=[True])
    assert [candidate.subset for candidate, _ in ranked] == [frozenset(order[:c]) for c in range(1, 10)]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
def test_order_by_mean_loses_no_subset(criterion):
    """Two classes: the best prefix is as good as the best of all subsets (Breiman et al., theorem 4.5)."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        column, y = rng.integers(0, 6, 40).astype(float).tolist(), rng.integers(0, 2, 40).tolist()
        ranked = {
            n_classes: naive.rank_root([column], y, n_classes=n_classes, criterion=criterion, is_categorical=[True])
            for n_classes in (2, 3)  # a third class without rows: the search is exhaustive
        }
        assert (len(ranked[2]), len(ranked[3])) == (5, 31)
        best = {n_classes: max(gain for _, gain in found) for n_classes, found in ranked.items()}
        assert best[2] == pytest.approx(best[3], abs=1e-15)


@pytest.mark.parametrize(
    ("y", "sizes"),
    [
        ([0, 0, 4, 4, 100, 100, 110, 110], [4, 2, 2]),
        ([0, 0, 10, 10, 100, 100, 104, 104], [2, 2, 4]),
        ([0, 0, 4, 4, 100, 100, 104, 104], [2, 2, 4]),  # a tie: the node created first
    ],
)
@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_best_first_expands_the_largest_gain(criterion, y, sizes):
    root = naive.grow([list(range(8))], y, criterion=criterion, max_leaf_nodes=3)
    assert [leaf.n_rows for leaf in naive.leaves(root)] == sizes


def test_best_first_stops_at_a_split_that_does_not_fit():
    columns = [[0.0, 1.0, 2.0, 3.0, NAN]]
    root = naive.grow(columns, [0, 1, 2, 3, 4], n_classes=5, criterion="gini", missing="branch", max_leaf_nodes=2)
    assert root.is_leaf
    root = naive.grow(columns, [0, 1, 2, 3, 4], n_classes=5, criterion="gini", missing="branch", max_leaf_nodes=3)
    assert len(root.children) == 3


def test_small_spread_stops_regression():
    y = [0.0, 0.1, 5.0, 5.1]
    root = naive.grow([[0.0, 1.0, 2.0, 3.0]], y, criterion="sdr", min_target_std=0.06)
    assert [leaf.n_rows for leaf in naive.leaves(root)] == [2, 2]
    assert root.impurity == pytest.approx(np.std(y))
    assert root.gain == pytest.approx(np.std(y) - 0.05)


def test_monotone_constraint_is_needed_and_kept():
    columns, y = [[0.0, 1.0, 2.0, 3.0]], [0.0, 3.0, 1.0, 2.0]
    free = naive.grow(columns, y, criterion="squared_error")
    held = naive.grow(columns, y, criterion="squared_error", monotonic=[1])
    assert [naive.predict(free, [v]) for v in columns[0]] == y
    assert [naive.predict(held, [v]) for v in columns[0]] == [0.0, 2.0, 2.0, 2.0]
    falling = naive.grow(columns, [-v for v in y], criterion="squared_error", monotonic=[-1])
    assert [naive.predict(falling, [v]) for v in columns[0]] == [0.0, -2.0, -2.0, -2.0]


# ------------------------------------------------------------------------------- what holds for any tree


def grow(case):
    table, parameters = case
    return naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)


def check_tree(table, parameters, root):
    """Rows reach leaves by the rules alone, so everything a node says is recomputed from the rows it gets."""
    reached = {}
    weights = table.weights or [1.0] * table.n_rows
    for row, y, weight in zip(table.rows, table.y, weights, strict=True):
        if weight:
            node = root
            reached.setdefault(id(node), []).append((Fraction(y), Fraction(weight)))
            while not node.is_leaf:
                node = node.children[naive.branch_of(node, row[node.feature])]
                reached.setdefault(id(node), []).append((Fraction(y), Fraction(weight)))
    n_leaves = 0
    total = sum(weight for _, weight in reached[id(root)])
    for node in naive.walk(root):
        rows = reached[id(node)]
        weight = sum(w for _, w in rows)
        assert node.n_rows == len(rows)
        assert node.weight == float(weight)
        assert node is root or node.n_rows >= parameters.get("min_samples_leaf", 1)
        assert node.depth <= parameters.get("max_depth", math.inf)
        if "monotonic" not in parameters:
            if parameters.get("criterion") == "absolute_error":
                loss = sum(w * abs(y - Fraction(node.value)) for y, w in rows)
                assert all(loss <= sum(w * abs(y - other) for y, w in rows) * (1 + 1e-12) for other, _ in rows)
            elif table.n_classes is None:
                assert node.value == float(sum(w * y for y, w in rows) / weight)
            else:
                shares = [sum(w for y, w in rows if y == c) / weight for c in range(table.n_classes)]
                assert node.value == [float(share) for share in shares]
        n_leaves += node.is_leaf
        if not node.is_leaf:
            assert node.n_rows >= parameters.get("min_samples_split", 2)
            assert node.gain >= parameters.get("min_impurity_decrease", 0.0) - 1e-12
            below = math.fsum(child.weight * child.impurity for child in node.children)
            gain = (node.weight * node.impurity - below) / float(total)
            slack = 1e-9 * (1.0 + root.impurity)
            if table.is_categorical[node.feature] and parameters.get("cat_penalty", 0.0):
                assert node.gain <= gain + slack  # less what its levels gain by chance
            else:
                assert node.gain == pytest.approx(gain, abs=slack)
    assert n_leaves <= parameters.get("max_leaf_nodes", math.inf)


@given(strategies.growing())
def test_tree_is_consistent(case):
    check_tree(*case, grow(case))


def test_check_notices_a_broken_tree():
    table = strategies.SmallTable([[0.0, 1.0, 2.0]], [0.0, 1.0, 5.0], None, None, [False], [0])
    root = grow((table, {"criterion": "squared_error"}))
    check_tree(table, {}, root)
    root.threshold = 0.5
    with pytest.raises(AssertionError):
        check_tree(table, {}, root)


@given(strategies.growing(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(case, random):
    table, parameters = case
    order = list(range(table.n_rows))
    random.shuffle(order)
    shuffled = strategies.SmallTable(
        [[column[i] for i in order] for column in table.columns],
        [table.y[i] for i in order],
        table.weights and [table.weights[i] for i in order],
        table.n_classes,
        table.is_categorical,
        table.n_levels,
    )
    assert grow((shuffled, parameters)) == grow(case)


@given(strategies.growing(has_weights=False), st.data())
def test_a_duplicated_row_is_weight_two(case, data):
    table, parameters = case
    assume(not {"min_samples_split", "min_samples_leaf"} & set(parameters))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=table.n_rows, max_size=table.n_rows))
    assume(any(counts))
    repeated = [i for i, count in enumerate(counts) for _ in range(count)]
    tree = naive.grow(table.columns, table.y, counts, **table.data, **parameters)
    twin = naive.grow(
        [[column[i] for i in repeated] for column in table.columns],
        [table.y[i] for i in repeated],
        **table.data,
        **parameters,
    )
    for node, other in zip(naive.walk(tree), naive.walk(twin), strict=True):
        assert (node.feature, node.threshold, node.subset) == (other.feature, other.threshold, other.subset)
        assert (node.weight, node.value, node.gain) == (other.weight, other.value, other.gain)


@given(strategies.growing(has_missing=False, has_categories=False), st.data())
def test_monotone_predictions(case, data):
    table, parameters = case
    assume(table.n_classes is None or table.n_classes == 2)
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=table.n_features, max_size=table.n_features))
    root = grow((table, parameters | {"monotonic": signs}))
    feature = data.draw(st.integers(0, table.n_features - 1))
    row = data.draw(st.sampled_from(table.rows))
    answers = []
    for value in sorted({*table.columns[feature], *strategies.EDGES}):
        answer = naive.predict(root, [*row[:feature], value, *row[feature + 1 :]])
        answers.append(answer if table.n_classes is None else answer[1])
    assert answers == sorted(answers, reverse=signs[feature] < 0)


@given(strategies.growing())
def test_pruning_path_is_nested(case):
    root = grow(case)
    alphas, impurities = naive.cost_complexity_path(root)
    assert alphas == sorted(set(alphas))
    assert impurities == sorted(impurities)
    sizes = [len(naive.leaves(naive.prune(root, alpha))) for alpha in alphas[1:]]
    assert sizes == sorted(set(sizes), reverse=True)
    assert not sizes or sizes[-1] == 1
