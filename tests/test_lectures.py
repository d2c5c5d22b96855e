"""Numbers that lectures and textbooks print, as the estimators reach them; ID3 and C4.5: `test_lectures_textbook`."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney
from spinney.estimators.cart import CARTClassifier, CARTRegressor


def read(folder, name):
    frame = pd.read_csv(folder / f"{name}.csv")
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    return frame.astype(dict.fromkeys(text, "category"))


def split_impurity(tree):
    """Weighted mean impurity of the root's branches."""
    impurity = np.ldexp(tree.impurity, tree.impurity_exponent)
    first, n = int(tree.first_child[0]), int(tree.n_branches[0])
    return float(np.average(impurity[first : first + n], weights=tree.weight[first : first + n]))


def root_impurity(tree):
    return math.ldexp(float(tree.impurity[0]), tree.impurity_exponent)


def left_levels(tree):
    """Names of the levels that take branch 0 at the root."""
    levels = tree.legend.levels[int(tree.feature[0])]
    return {levels[k] for k in np.flatnonzero(tree.subset(0))}


def stump(X, y, **params):
    return CARTClassifier(max_depth=1, cat_penalty=0.0, **params).fit(X, y).tree_.arrays


# ---------------------------------------------------------------------------------------------------- numbers


def test_taxable_income(shared_data):
    table = read(shared_data, "toy_taxable_income")
    X, y = table[["taxable_income"]], table["cheat"]
    tree = stump(X, y)
    assert tree.threshold[0] == 97.5
    assert root_impurity(tree) == pytest.approx(0.42, abs=1e-12)
    assert split_impurity(tree) == pytest.approx(0.3, abs=1e-12)
    assert split_impurity(stump(X, y, criterion="entropy")) == pytest.approx(0.6, abs=1e-12)


TAXABLE_GINI = {
    65: 0.4,
    72.5: 0.375,
    80: 0.342857,
    87.5: 0.416667,
    92.5: 0.4,
    97.5: 0.3,
    110: 0.342857,
    122.5: 0.375,
    172.5: 0.4,
}


@pytest.mark.parametrize(("cut", "gini"), TAXABLE_GINI.items())
def test_a_given_cut_of_taxable_income(shared_data, cut, gini):
    """A column that knows only the one cut."""
    table = read(shared_data, "toy_taxable_income")
    tree = stump((table[["taxable_income"]] > cut).astype(float), table["cheat"])
    assert split_impurity(tree) == pytest.approx(gini, abs=1e-6)


def candidates(X, y, node=0, **params):
    """Every test that a node of a CART tree could have asked."""
    frame = spinney.trace(CARTClassifier(cat_penalty=0.0, **params).fit(X, y), X, y).to_frame()
    return frame[frame.node == node]


def cut_values(frame):
    return [float(test.split("<= ")[1]) for test in frame.test]


def test_every_cut_of_taxable_income(shared_data):
    """DHBW. The slide's 55 and 230 lie outside the values: all rows on one side, 0.42 as before."""
    table = read(shared_data, "toy_taxable_income")
    found = candidates(table[["taxable_income"]], table["cheat"])
    assert cut_values(found) == list(TAXABLE_GINI)
    assert found.impurity_after.tolist() == pytest.approx(list(TAXABLE_GINI.values()), abs=1e-6)
    assert found.impurity_before.tolist() == pytest.approx([0.42] * 9, abs=1e-12)
    assert found.test[found.chosen].tolist() == ["taxable_income <= 97.5"]


@pytest.mark.parametrize(("column", "cut", "gain"), [("temperature", 84.0, 0.113401), ("humidity", 82.5, 0.151836)])
def test_numeric_weather(shared_data, column, cut, gain):
    table = read(shared_data, "toy_weather_numeric")
    tree = stump(table[[column]], table["play"], criterion="entropy")
    assert tree.threshold[0] == cut
    assert root_impurity(tree) == pytest.approx(0.940286, abs=1e-6)
    assert root_impurity(tree) - split_impurity(tree) == pytest.approx(gain, abs=1e-6)


BEST_CUTS = {
    "temperature": {84.0: 0.113401, 64.5: 0.047709, 70.5: 0.045334},
    "humidity": {82.5: 0.151836, 88.0: 0.102244},
}


@pytest.mark.parametrize("column", BEST_CUTS)
def test_best_cuts_of_numeric_weather(shared_data, column):
    table = read(shared_data, "toy_weather_numeric")
    found = candidates(table[[column]], table["play"], criterion="entropy").sort_values("gain", ascending=False)
    best = BEST_CUTS[column]
    assert cut_values(found)[: len(best)] == list(best)
    assert found.gain.tolist()[: len(best)] == pytest.approx(list(best.values()), abs=1e-6)


def test_the_cut_of_the_slide(shared_data):
    """DHBW: temperature < 71.5 leaves 4 yes and 2 no below, 5 and 3 above."""
    table = read(shared_data, "toy_weather_numeric")
    found = candidates(table[["temperature"]], table["play"], criterion="entropy")
    (row,) = found[found.test == "temperature <= 71.5"].to_dict("records")
    assert [list(map(float, counts)) for counts in row["counts"]] == [[2, 4], [3, 5]]
    assert row["impurity_after"] == pytest.approx(0.938946, abs=1e-6)


# ---------------------------------------------------------------------------------------------------- subsets

SUBSETS = [
    ("toy_play_tennis", "play", "outlook", {"overcast"}, 0.357143),
    ("toy_play_tennis", "play", "temperature", {"hot"}, 0.442857),
    ("toy_play_tennis", "play", "humidity", {"high"}, 0.367347),
    ("toy_play_tennis", "play", "wind", {"strong"}, 0.428571),
    ("toy_buys_computer", "buys_computer", "age", {"middle_aged"}, 0.357143),
    ("toy_buys_computer", "buys_computer", "income", {"high"}, 0.442857),
    ("toy_buys_computer", "buys_computer", "student", {"no"}, 0.367347),
    ("toy_buys_computer", "buys_computer", "credit_rating", {"excellent"}, 0.428571),
]


@pytest.mark.parametrize(("name", "target", "column", "side", "gini"), SUBSETS)
def test_best_binary_subset(shared_data, name, target, column, side, gini):
    table = read(shared_data, name)
    tree = stump(table[[column]], table[target])
    levels = set(tree.legend.levels[0])
    assert left_levels(tree) in (side, levels - side)
    assert root_impurity(tree) == pytest.approx(0.459184, abs=1e-6)
    assert split_impurity(tree) == pytest.approx(gini, abs=1e-6)


def test_play_tennis_root_and_new_row(shared_data):
    table = read(shared_data, "toy_play_tennis")
    X = table[["outlook", "temperature", "humidity", "wind"]]
    model = CARTClassifier(cat_penalty=0.0).fit(X, table["play"])
    assert X.columns[model.tree_.arrays.feature[0]] == "outlook"
    assert model.score(X, table["play"]) == 1.0
    new = pd.DataFrame([["rainy", "mild", "normal", "strong"]], columns=X.columns)
    if "rainy" not in set(table["outlook"]):
        new["outlook"] = "rain"
    assert model.predict(new).tolist() == ["no"]


@pytest.mark.parametrize("side", [0, 1])
def test_error_is_a_poor_criterion(side):
    """DHBW: blocks of 40 A and 60 A over 60 A and 40 B. Either cut takes off pure A, and the error stays 20 %."""
    X = np.repeat([[0, 0], [1, 0], [0, 1], [1, 1]], [40, 60, 60, 40], axis=0)[:, [side]]
    y = ["A"] * 160 + ["B"] * 40
    before_after = {
        "misclassification": (0.2, 0.2),
        "entropy": (0.721928, 0.485475),
        "gini": (0.32, 0.24),
    }
    for criterion, (before, after) in before_after.items():
        tree = stump(X, y, criterion=criterion)
        assert root_impurity(tree) == pytest.approx(before, abs=1e-6)
        assert split_impurity(tree) == pytest.approx(after, abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "entropy", "gini"),
    [
        ("AABCBACCAC", 1.521928, 0.64),
        ("ABCAABBC", 1.561278, 0.65625),
        ("AAAAAAAA", 0, 0),  # DHBW: eight labels with none, two, four of B
        ("AAAAAABB", 0.811278, 0.375),
        ("AAAABBBB", 1, 0.5),
    ],
)
def test_impurity_of_a_set(labels, entropy, gini):
    X = np.zeros((len(labels), 1))
    assert root_impurity(stump(X, list(labels), criterion="entropy")) == pytest.approx(entropy, abs=1e-6)
    assert root_impurity(stump(X, list(labels))) == pytest.approx(gini, abs=1e-12)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_entropy_is_what_is_left_to_the_uniform_distribution(counts):
    """Cornell: KL(p || uniform) = log c - H(p)."""
    y = np.repeat(np.arange(len(counts)), counts)
    shares = np.array(counts) / sum(counts)
    divergence = float(np.sum(shares * np.log2(shares * len(counts))))
    entropy = root_impurity(stump(np.zeros((len(y), 1)), y, criterion="entropy"))
    assert math.log2(len(counts)) - entropy == pytest.approx(divergence, abs=1e-12)


# -------------------------------------------------------------------------------------------- XOR and spirals


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize("n_copies", [1, 25])
def test_xor_is_fitted_through_a_split_without_gain(criterion, n_copies):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * n_copies)
    y = X[:, 0] ^ X[:, 1]
    model = CARTClassifier(criterion=criterion).fit(X, y)
    assert split_impurity(model.tree_.arrays) == pytest.approx(root_impurity(model.tree_.arrays))
    assert (model.get_n_leaves(), model.get_depth()) == (4, 2)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_xor_as_a_regression(criterion):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    y = (X[:, 0] ^ X[:, 1]).astype(float)
    assert CARTRegressor(criterion=criterion).fit(X, y).predict(X).tolist() == y.tolist()


def test_equal_rows_of_different_classes_share_a_leaf():
    model = CARTClassifier().fit([[1, 2], [1, 2], [1, 2], [5, 2]], ["a", "b", "b", "a"])
    assert model.get_n_leaves() == 2
    np.testing.assert_allclose(model.predict_proba([[1, 2], [5, 2]]), [[1 / 3, 2 / 3], [1, 0]])


def spirals():
    rng = np.random.RandomState(42)
    t = 0.75 * np.pi * (1 + 3 * rng.rand(200))
    X = np.column_stack([t * np.cos(t), t * np.sin(t)])
    X[:100] *= -1
    return X + 0.5 * rng.randn(2, 200).T, np.repeat([0, 1], 100)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_spirals(criterion):
    X, y = spirals()
    np.testing.assert_allclose(X[0], [-1.776926, 5.221733], atol=1e-6)
    model = CARTClassifier(criterion=criterion).fit(X, y)
    assert model.tree_.arrays.feature[0] == 1
    assert model.tree_.arrays.threshold[0] == pytest.approx(-5.4694, abs=1e-4)
    assert (model.get_n_leaves(), model.get_depth(), model.score(X, y)) == (15, 8, 1.0)
    for depth, accuracy in [(1, 0.615), (3, 0.725), (5, 0.895)]:
        grown = CARTClassifier(criterion=criterion, max_depth=depth).fit(X, y)
        assert grown.score(X, y) == pytest.approx(accuracy, abs=1e-12)


# ------------------------------------------------------------------------------------------------- regression


def test_standard_deviation_reduction():
    """Two groups far apart: SD(D) less the weighted SD of the sides, not the variance."""
    X, y = np.array([[1], [2], [3], [4], [5.0]]), np.array([1.0, 1.0, 2.0, 8.0, 10.0])
    tree = CARTRegressor(criterion="sdr", max_depth=1).fit(X, y).tree_.arrays
    assert tree.threshold[0] == 3.5
    assert root_impurity(tree) == pytest.approx(np.std(y))
    expected = 0.6 * np.std(y[:3]) + 0.4 * np.std(y[3:])
    assert split_impurity(tree) == pytest.approx(expected, rel=1e-12)


def test_standard_deviation_and_variance_choose_apart():
    """Variance cuts off the far value; the standard deviation prefers to make one side pure."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        y = rng.integers(0, 12, 8).astype(float)
        X = np.arange(8.0).reshape(-1, 1)
        cuts = [
            CARTRegressor(criterion=criterion, max_depth=1).fit(X, y).tree_.arrays.threshold[0]
            for criterion in ("squared_error", "sdr")
        ]
        best = [
            min(range(1, 8), key=lambda k: sum(len(part) * f(part) for part in (y[:k], y[k:]))) - 0.5
            for f in (np.var, np.std)
        ]
        if cuts == best and cuts[0] != cuts[1]:
            return
    pytest.fail("no table on which the two criteria differ")


def test_variance_reduction_weighted_by_rows():
    """KAUST: |D| Var(D) - |D_L| Var(D_L) - |D_R| Var(D_R)."""
    X, y = np.array([[1], [2], [3], [4], [5.0]]), np.array([1.0, 1.0, 2.0, 8.0, 10.0])
    tree = CARTRegressor(max_depth=1).fit(X, y).tree_.arrays
    reduction = tree.n_rows[0] * (root_impurity(tree) - split_impurity(tree))
    expected = [5 * np.var(y) - k * np.var(y[:k]) - (5 - k) * np.var(y[k:]) for k in range(1, 5)]
    assert reduction == pytest.approx(max(expected), rel=1e-12)


def test_growth_stops_at_a_small_standard_deviation():
    X, y = np.arange(6.0).reshape(-1, 1), [1.0, 1.1, 1.2, 5.0, 5.1, 5.2]
    model = CARTRegressor(min_target_std=0.1).fit(X, y)
    assert model.get_n_leaves() == 2
    np.testing.assert_allclose(model.predict([[0], [5]]), [1.1, 5.1])


def test_least_squares_stump(shared_data):
    """The first round of least-squares boosting on Li Hang's example 8.2."""
    table = read(shared_data, "toy_boosting_lihang")
    X = table.drop(columns="y")
    model = CARTRegressor(max_depth=1).fit(X, table["y"])
    assert model.tree_.arrays.threshold[0] == 6.5
    np.testing.assert_allclose(model.predict(X)[[0, -1]], [6.2367, 8.9125], atol=1e-4)
    assert float(((model.predict(X) - table["y"]) ** 2).sum()) == pytest.approx(1.93, abs=1e-4)


# ------------------------------------------------------------------------------------ rpart's published trees

RPART = {"min_samples_split": 20, "min_samples_leaf": 7}


def node_at(tree, *branches):
    node = 0
    for branch in branches:
        node = int(tree.first_child[node]) + branch
    return node


def test_car_mileage(shared_data):
    """A regression's risk is its squared error, so rpart's cp is ccp_alpha over the variance at the root."""
    table = read(shared_data, "car_test_frame")
    X, y = table[["Weight"]], table["Mileage"]
    model = CARTRegressor(ccp_alpha=0.01 * float(np.var(y)), **RPART).fit(X, y)
    tree = model.tree_.arrays
    deviance = tree.n_rows * np.ldexp(tree.impurity, tree.impurity_exponent)
    expected = {
        (): (60, 1354.58300, 24.58333),
        (1,): (45, 361.20000, 22.46667),
        (1, 1): (22, 61.31818, 20.40909),
        (1, 0): (23, 117.65220, 24.43478),
        (1, 0, 1): (15, 60.40000, 23.80000),
        (1, 0, 0): (8, 39.87500, 25.62500),
        (0,): (15, 186.93330, 30.93333),
    }
    assert tree.n_nodes == len(expected)
    for path, (n_rows, sum_of_squares, mean) in expected.items():
        node = node_at(tree, *path)
        assert int(tree.n_rows[node]) == n_rows
        assert deviance[node] == pytest.approx(sum_of_squares, rel=1e-6)
        assert tree.values()[node] == pytest.approx(mean, abs=1e-5)
    cuts = [float(tree.threshold[node_at(tree, *path)]) for path in [(), (1,), (1, 0)]]
    assert cuts == [2567.5, 3087.5, 2747.5]
    path = CARTRegressor(**RPART).cost_complexity_pruning_path(X, y)
    largest = (path.ccp_alphas / np.var(y))[::-1][:3]
    np.testing.assert_allclose(largest, [0.59534912, 0.13452819, 0.01282843], rtol=1e-6)
    errors = (path.impurities / np.var(y))[::-1][:4]
    np.testing.assert_allclose(errors, [1, 0.4046509, 0.2701227, 0.2572943], rtol=1e-6)


@pytest.mark.parametrize(("name", "gini_root", "entropy_root"), [("glass", "Ba", "Mg"), ("vowel", "F1", "F0")])
def test_gini_and_entropy_can_disagree(shared_data, name, gini_root, entropy_root):
    path = next(shared_data.glob(f"{name}.*"))
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    target = "Type" if name == "glass" else "Class"
    X = table.drop(columns=[c for c in (target, "split", "SpeakerNumber", "Sex") if c in table])
    roots = [X.columns[stump(X, table[target].astype(str), criterion=c).feature[0]] for c in ("gini", "entropy")]
    assert roots == [gini_root, entropy_root]
