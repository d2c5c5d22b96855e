"""Trees, cp tables, improvements, surrogates and importance as rpart prints them.

Printed numbers are those of rpart 4.1.19 (R 4.2.2): its documentation's examples and vignette, re-run, and its defaults
(minsplit 20, minbucket 7, cp 0.01) on the tables in the shared folder. rpart's left branch is the one with more of the
first class or the smaller mean; ours has the smaller values: nodes are compared by their rows.

rpart's rules that show here: a test must improve (`min_impurity_decrease` a little above 0 says so; no table below
needs it), the first feature and the lowest cut win ties, and a tree is cut at alpha = cp * R(root) by the error of its
nodes. `cp_table` computes rpart's own column CP. It is found in one pass while growing, in which a node is held against
the splits of its sons that fall no sooner than the son, though more of them may stand when the node falls. So CP is not
always the alpha at which the tree changes; `test_cp_is_alpha` says where. The trees at cp are the same.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import fast
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.tree.prune import cut_sequence, from_units, node_risk, prune_to_alpha

LIMITS = {"min_samples_split": 20, "min_samples_leaf": 7, "cat_penalty": 0.0}  # rpart takes nothing off
CP = 0.01
ABOVE = 1.0 + 1e-9  # cp * R(root) is a rounding below the alpha of a split that falls at cp


def read(shared_data, name):
    path = shared_data / f"{name}.parquet"
    return pd.read_parquet(path) if path.exists() else pd.read_csv(path.with_suffix(".csv"))


def cut_at(tree, cp):
    root = from_units(tree, float(node_risk(tree, "error")[0]), "error")
    return prune_to_alpha(tree, cp * root * ABOVE, "error")


# ---------------------------------------------------------------------------------------------------- rpart's CP


class Complexity:
    """rpart's complexities of the nodes of a tree, after its partition.c."""

    def __init__(self, tree, cp):
        self.tree, self.risk = tree, node_risk(tree, "error")
        self.alpha = cp * self.risk[0] * ABOVE
        self.of = np.full(tree.n_nodes, self.alpha)
        self.is_split = np.zeros(tree.n_nodes, bool)
        self.find(0)
        self.cap(0, self.of[0])

    def sons(self, node):
        first = int(self.tree.first_child[node])
        return first, first + 1

    def find(self, node):
        """Set what is at and below a node; return the risk and the splits left when the node itself falls."""
        if self.tree.is_leaf[node]:
            return self.risk[node], 0
        left = {son: self.find(son) for son in self.sons(node)}
        for son in sorted(left, key=lambda son: self.of[son]):  # a son that falls before the node is a leaf to it
            if self.price(node, left) <= self.of[son]:
                break
            left[son] = (self.risk[son], 0)
        price = self.price(node, left)
        if price <= self.alpha:
            self.drop(node)
            return self.risk[node], 0
        self.of[node], self.is_split[node] = price, True
        return sum(risk for risk, _ in left.values()), 1 + sum(n for _, n in left.values())

    def price(self, node, left):
        return (self.risk[node] - sum(r for r, _ in left.values())) / (1 + sum(n for _, n in left.values()))

    def drop(self, node):
        self.of[node], self.is_split[node] = self.alpha, False
        if not self.tree.is_leaf[node]:
            for son in self.sons(node):
                self.drop(son)

    def cap(self, node, most):
        """No node falls later than the one above it."""
        self.of[node] = min(self.of[node], most)
        if self.is_split[node]:
            for son in self.sons(node):
                self.cap(son, self.of[node])

    def leaves(self, alpha, node=0):
        if not self.is_split[node] or self.of[node] <= alpha * ABOVE:
            return [node]
        return [leaf for son in self.sons(node) for leaf in self.leaves(alpha, son)]


def cp_table(tree, cp=CP):
    """Rows (CP, number of splits, relative error) as `printcp` shows them, the root first."""
    found = Complexity(tree, cp)
    root = found.risk[0]
    steps = sorted(found.of[found.is_split], reverse=True)
    steps = [step for at, step in enumerate(steps) if at == 0 or steps[at - 1] > step * ABOVE]
    rows = []
    for alpha in [*steps, found.alpha]:
        leaves = found.leaves(alpha)
        rows.append((alpha / root, len(leaves) - 1, sum(found.risk[leaf] for leaf in leaves) / root))
    return rows


def alpha_table(tree, cp=CP):
    """The same by minimal cost-complexity pruning."""
    root = float(node_risk(tree, "error")[0])
    rows = [(step.alpha / root, step.n_leaves - 1, step.risk / root) for step in cut_sequence(tree, "error")]
    kept = [row for row in rows[::-1] if row[0] > cp * ABOVE]
    last = rows[len(rows) - 1 - len(kept)]
    return [*kept, (cp, *last[1:])]


# ------------------------------------------------------------------------------------------------ published trees


def rows_of(model, X):
    """The rows of each node, by node."""
    path = model.decision_path(X).tocsc()
    return [frozenset(path.indices[path.indptr[k] : path.indptr[k + 1]].tolist()) for k in range(path.shape[1])]


def outline(tree, names, node=0):
    """(depth, feature, threshold or levels of branch 0, rows) in the order of a walk."""
    depth = int(tree.depths[node])
    if tree.is_leaf[node]:
        return [(depth, None, None, int(tree.n_rows[node]))]
    feature = int(tree.feature[node])
    test = round(float(tree.threshold[node]), 9)
    if tree.n_levels[feature]:
        test = {level for level, is_in in zip(tree.legend.levels[feature], tree.subset(node), strict=True) if is_in}
    first = int(tree.first_child[node])
    below = outline(tree, names, first) + outline(tree, names, first + 1)
    return [(depth, names[feature], test, int(tree.n_rows[node])), *below]


def improvements(tree):
    """rpart's `improve` of every inner node by (feature, threshold): the weight times the decrease."""
    held = tree.surrogates
    scale = float(np.ldexp(tree.weight[0], tree.impurity_exponent))
    return {int(k): float(held.improve[k]) * scale for k in np.flatnonzero(~tree.is_leaf)}


def test_kyphosis(shared_data):
    table = read(shared_data, "kyphosis")
    names = ["Age", "Number", "Start"]
    X, y = table[names], table["Kyphosis"]
    model = CARTClassifier(missing="surrogate", **LIMITS).fit(X, y)
    tree = cut_at(model.tree_.arrays, CP)
    assert outline(tree, names) == [
        (0, "Start", 8.5, 81),
        (1, None, None, 19),
        (1, "Start", 14.5, 62),
        (2, "Age", 55.0, 33),
        (3, None, None, 12),
        (3, "Age", 111.0, 21),
        (4, None, None, 7),
        (4, None, None, 14),
        (2, None, None, 29),
    ]
    absent = tree.class_weights()[:, 0]
    loss = {int(n): (int(a), int(n - a)) for n, a in zip(tree.n_rows, absent, strict=True)}
    assert loss == {81: (64, 17), 19: (8, 11), 62: (56, 6), 33: (27, 6), 12: (12, 0), 21: (15, 6), 7: (3, 4),
                    14: (12, 2), 29: (29, 0)}  # fmt: skip
    by_rows = {int(tree.n_rows[k]): improve for k, improve in improvements(tree).items()}
    expected = {81: 6.762330, 62: 1.020528, 33: 1.246753, 21: 1.714286}
    assert by_rows == pytest.approx(expected, abs=5e-7)
    (number,) = fast.surrogates_of(tree, 0)
    assert (names[number.feature], number.threshold, number.is_reversed) == ("Number", 6.5, True)
    assert (round(number.agree, 3), round(number.adjusted, 3)) == (0.802, 0.158)
    table = [(0.17647059, 0, 1), (0.01960784, 1, 0.8235294), (0.01, 4, 0.7647059)]
    np.testing.assert_allclose(cp_table(model.tree_.arrays), table, atol=5e-8)
    np.testing.assert_allclose(alpha_table(model.tree_.arrays), table, atol=5e-8)
    model.tree_ = tree
    assert np.round(100 * model.surrogate_importances_).tolist() == [24, 12, 64]


def test_kyphosis_other_splits(shared_data):
    """What the best test of every feature would have improved, read off the trace."""
    table = read(shared_data, "kyphosis")
    names = ["Age", "Number", "Start"]
    model = CARTClassifier(missing="surrogate", trace=True, **LIMITS).fit(table[names], table["Kyphosis"])
    frame = model.trace_.to_frame()
    frame = frame[frame.is_best_of_feature]
    columns = frame.n_rows, frame.test, frame.gini_decrease
    improve = {(n, test): n * decrease for n, test, decrease in zip(*columns, strict=True)}
    printed = {
        (81, "Start <= 8.5"): 6.762330,
        (81, "Number <= 5.5"): 2.866795,
        (81, "Age <= 39.5"): 2.250212,
        (62, "Start <= 14.5"): 1.020528,
        (62, "Age <= 55"): 0.6848635,
        (33, "Age <= 55"): 1.246753,
        (21, "Age <= 111"): 1.714286,
    }
    assert {at: improve[at] for at in printed} == pytest.approx(printed, rel=5e-7)


def test_car_mileage(shared_data):
    table = read(shared_data, "car_test_frame")
    X, y = table[["Weight"]], table["Mileage"]
    model = CARTRegressor(missing="surrogate", **LIMITS).fit(X, y)
    tree = cut_at(model.tree_.arrays, CP)
    assert outline(tree, ["Weight"]) == [
        (0, "Weight", 2567.5, 60),
        (1, None, None, 15),
        (1, "Weight", 3087.5, 45),
        (2, "Weight", 2747.5, 23),
        (3, None, None, 8),
        (3, None, None, 15),
        (2, None, None, 22),
    ]
    printed = {
        60: (1354.58300, 24.58333), 45: (361.20000, 22.46667), 22: (61.31818, 20.40909), 23: (117.65220, 24.43478),
        8: (39.87500, 25.62500),
    }  # fmt: skip
    deviance = np.ldexp(tree.impurity * tree.weight, tree.impurity_exponent)
    found = {int(n): (d, v) for n, d, v in zip(tree.n_rows, deviance, tree.values(), strict=True)}
    for n_rows, numbers in printed.items():
        assert found[n_rows] == pytest.approx(numbers, rel=5e-7)
    leaves = sorted((v, d) for n, d, v in zip(tree.n_rows, deviance, tree.values(), strict=True) if n == 15)
    np.testing.assert_allclose(leaves, [(23.8, 60.4), (30.93333, 186.9333)], rtol=5e-7)
    expected = [(0.59534912, 0, 1), (0.13452819, 1, 0.4046509), (0.01282843, 2, 0.2701227), (0.01, 3, 0.2572943)]
    np.testing.assert_allclose(cp_table(model.tree_.arrays), expected, atol=5e-8)
    np.testing.assert_allclose(alpha_table(model.tree_.arrays), expected, atol=5e-8)


STAGEC = ["age", "eet", "g2", "grade", "gleason", "ploidy"]


@pytest.fixture(scope="module")
def stagec(shared_data):
    table = read(shared_data, "stagec")
    X, y = table[STAGEC], table["pgstat"]
    return CARTClassifier(missing="surrogate", **LIMITS).fit(X, y), X, y


def test_stagec(stagec):
    model, X, _ = stagec
    tree = cut_at(model.tree_.arrays, CP)
    tree.check()
    assert outline(tree, STAGEC) == [
        (0, "grade", 2.5, 146),
        (1, None, None, 61),
        (1, "g2", 13.2, 85),
        (2, "ploidy", {"diploid", "tetraploid"}, 40),
        (3, "g2", 11.845, 31),
        (4, "g2", 11.005, 24),
        (5, None, None, 17),
        (5, None, None, 7),
        (4, None, None, 7),
        (3, None, None, 9),
        (2, "g2", 17.91, 45),
        (3, None, None, 23),
        (3, "age", 62.5, 22),
        (4, None, None, 7),
        (4, None, None, 15),
    ]
    failed = {tuple(x) for x in np.stack([tree.n_rows, tree.class_weights()[:, 1]], axis=1).astype(int).tolist()}
    assert failed == {
        (146, 54), (61, 9), (85, 45), (40, 17), (31, 11), (24, 10), (17, 5), (7, 5), (7, 1), (9, 6), (45, 28), (23, 20),
        (22, 8), (7, 4), (15, 4),
    }  # fmt: skip
    by_rows = {int(tree.n_rows[k]): improve for k, improve in improvements(tree).items()}
    expected = {146: 10.357590, 85: 2.178136, 40: 1.356452, 45: 5.241483, 31: 0.812596, 22: 0.8865801, 24: 1.750700}
    assert by_rows == pytest.approx(expected, rel=5e-7)
    assert rows_of(model, X)[0] == frozenset(range(146))


def test_stagec_surrogates(stagec):
    """Thresholds, directions (towards branch 0), agreement and adjusted agreement of the first nodes."""
    tree = cut_at(stagec[0].tree_.arrays, CP)
    printed = {
        146: [("gleason", 5.5, False, 0.863, 0.672), ("ploidy", {"diploid"}, False, 0.644, 0.148),
              ("g2", 9.945, False, 0.630, 0.115), ("age", 66.5, True, 0.589, 0.016)],
        85: [("ploidy", {"aneuploid", "diploid"}, False, 0.962, 0.914), ("age", 68.5, True, 0.608, 0.114),
             ("gleason", 6.5, False, 0.582, 0.057)],
        40: [("g2", 4.33, True, 0.8, 0.111)],
        45: [("age", 61.5, False, 0.614, 0.190), ("eet", 1.5, False, 0.591, 0.143), ("grade", 3.5, False, 0.545, 0.048),
             ("gleason", 6.5, False, 0.545, 0.048)],
        31: [("ploidy", {"diploid"}, False, 0.839, 0.286)],
        22: [("gleason", 6.5, False, 0.773, 0.286)],
        24: [("age", 71.5, False, 0.792, 0.286)],
    }  # fmt: skip
    for node in np.flatnonzero(~tree.is_leaf):
        found = []
        for s in fast.surrogates_of(tree, int(node)):
            test = s.threshold
            if s.subset is not None:
                test = {tree.legend.levels[s.feature][level] for level in s.subset}
            numbers = round(s.agree, 3), round(s.adjusted, 3)
            found.append((STAGEC[s.feature], test, s.is_reversed, *numbers))
        assert found == printed[int(tree.n_rows[node])]


def test_stagec_cp_and_importance(stagec):
    model = stagec[0]
    expected = [(0.104938, 0, 1), (0.055556, 3, 0.68519), (0.027778, 4, 0.62963), (0.018519, 6, 0.57407),
                (0.01, 7, 0.55556)]  # fmt: skip
    np.testing.assert_allclose(cp_table(model.tree_.arrays), expected, atol=5e-6)
    np.testing.assert_allclose(alpha_table(model.tree_.arrays), expected, atol=5e-6)
    cut = model.prune("merge")  # another fitted tree
    cut.tree_ = cut_at(model.tree_.arrays, CP)
    importance = dict(zip(STAGEC, np.round(100 * cut.surrogate_importances_).tolist(), strict=True))
    assert importance == {"g2": 30, "grade": 28, "gleason": 20, "ploidy": 13, "age": 7, "eet": 2}


def test_stagec_other_splits_of_the_root(stagec):
    """The best test of each feature over the rows where it is known."""
    _, X, y = stagec
    improve = {}
    for name in STAGEC:
        alone = CARTClassifier(missing="surrogate", max_depth=1, **LIMITS).fit(X[[name]], y).tree_.arrays
        improve[name] = improvements(alone)[0]
    printed = {"grade": 10.357590, "gleason": 8.399574, "ploidy": 7.656533, "g2": 7.186766, "age": 1.388128}
    assert {name: improve[name] for name in printed} == pytest.approx(printed, rel=5e-7)
    assert improve["eet"] < 1.388128


# --------------------------------------------------------------------------------------------- tables of our files

# (CP, splits, relative error) of rpart's default trees by Gini
TABLES = {
    "iris": [(0.500000, 0, 1.00000), (0.440000, 1, 0.50000), (0.010000, 2, 0.06000)],
    "sonar": [(0.484536, 0, 1.00000), (0.067010, 1, 0.51546), (0.051546, 3, 0.38144), (0.010309, 5, 0.27835),
              (0.010000, 6, 0.26804)],
    "glass": [(0.206522, 0, 1.00000), (0.072464, 2, 0.58696), (0.057971, 3, 0.51449), (0.036232, 4, 0.45652),
              (0.032609, 5, 0.42029), (0.010870, 7, 0.35507), (0.010000, 9, 0.33333)],
    "ionosphere": [(0.547619, 0, 1.00000), (0.206349, 1, 0.45238), (0.021164, 2, 0.24603), (0.010000, 5, 0.18254)],
    "vehicle": [(0.205414, 0, 1.00000), (0.121019, 1, 0.79459), (0.095541, 2, 0.67357), (0.050955, 4, 0.48248),
                (0.027070, 5, 0.43153), (0.012739, 6, 0.40446), (0.010000, 10, 0.35350)],
    "pima_diabetes": [(0.242537, 0, 1.00000), (0.104478, 1, 0.75746), (0.017413, 2, 0.65299), (0.014925, 5, 0.60075),
                      (0.013060, 9, 0.54104), (0.011194, 12, 0.49254), (0.010000, 15, 0.45896)],
    "german_credit": [(0.051667, 0, 1.00000), (0.046667, 3, 0.84000), (0.018333, 4, 0.79333), (0.016667, 6, 0.75667),
                      (0.015556, 8, 0.72333), (0.010000, 11, 0.67667)],
    "vowel": [(0.091111, 0, 1.00000), (0.080000, 2, 0.81778), (0.048889, 3, 0.73778), (0.047778, 4, 0.68889),
              (0.042222, 5, 0.64111), (0.041111, 6, 0.59889), (0.021111, 7, 0.55778), (0.020000, 8, 0.53667),
              (0.019444, 9, 0.51667), (0.017778, 11, 0.47778), (0.016667, 12, 0.46000), (0.015556, 13, 0.44333),
              (0.015000, 14, 0.42778), (0.014444, 16, 0.39778), (0.013333, 17, 0.38333), (0.011111, 19, 0.35667),
              (0.010000, 20, 0.34556)],
    "california_housing": [(0.309978, 0, 1.00000), (0.079100, 1, 0.69002), (0.058136, 2, 0.61092),
                           (0.045626, 3, 0.55279), (0.018395, 4, 0.50716), (0.014494, 5, 0.48876),
                           (0.011405, 6, 0.47427), (0.010155, 7, 0.46287), (0.010000, 8, 0.45271)],
}  # fmt: skip
# leaves, training error and root of the default tree by Gini and by entropy; leaves grown out (cp = 0, minsplit = 2)
DEFAULTS = {
    "iris": (3, 0.0400, "petal length (cm)", 3, 0.0400, "petal length (cm)", 9),
    "sonar": (7, 0.1250, "V11", 8, 0.0817, "V11", 22),
    "glass": (10, 0.2150, "Ba", 9, 0.2056, "Mg", 50),
    "ionosphere": (6, 0.0655, "V5", 9, 0.0484, "V5", 23),
    "vehicle": (11, 0.2624, "Elong", 9, 0.2754, "Elong", 135),
    "pima_diabetes": (16, 0.1602, "glucose", 17, 0.1589, "glucose", 128),
    "german_credit": (12, 0.2030, "checking_status", 11, 0.2070, "checking_status", None),
    "vowel": (21, 0.3141, "F1", 24, 0.3434, "F0", 153),
}
TARGETS = {"pima_diabetes": "diabetes", "german_credit": "class", "glass": "Type", "california_housing": "MedHouseVal"}
NOT_ALPHA = {"pima_diabetes", "german_credit"}


def load(shared_data, name):
    if name == "iris":
        return load_iris(return_X_y=True, as_frame=True)
    table = read(shared_data, name)
    target = TARGETS.get(name, "Class")
    X = table.drop(columns=[target, "split", "SpeakerNumber", "Sex"], errors="ignore")
    if name == "pima_diabetes":
        X = X.fillna(0)  # the original file
    return X, table[target]


@pytest.fixture(scope="module")
def default_trees(shared_data):
    """Trees by rpart's limits, not yet cut."""
    trees = {}
    for name in TABLES:
        X, y = load(shared_data, name)
        kind = CARTRegressor if name == "california_housing" else CARTClassifier
        trees[name] = kind(**LIMITS).fit(X, y).tree_.arrays
    return trees


@pytest.mark.parametrize("name", TABLES)
def test_cp_tables(default_trees, name):
    np.testing.assert_allclose(cp_table(default_trees[name]), TABLES[name], atol=6e-6)


@pytest.mark.parametrize("name", TABLES)
def test_cp_is_alpha(default_trees, name):
    """rpart's CP is the alpha at which the tree changes, on all tables but two; the tree at cp is the same on all."""
    ours, printed = alpha_table(default_trees[name]), TABLES[name]
    if name not in NOT_ALPHA:
        np.testing.assert_allclose(ours, printed, atol=6e-6)
        return
    np.testing.assert_allclose(ours[-1], printed[-1], atol=6e-6)
    alphas = [alpha for alpha, _, _ in ours]
    slopes = [(b[2] - a[2]) / (a[1] - b[1]) for a, b in pairwise(printed)]
    if name == "german_credit":  # the first step gains 0.16 by 3 splits, and rpart prints 0.0517 for it
        assert alphas[0] == pytest.approx(slopes[0], abs=1e-5)
        assert printed[0][0] < slopes[0] - 1e-3
    else:  # seven splits fall at once: those that rpart cuts first gain more than those that it keeps
        assert slopes[4] > slopes[3]
        assert alphas[3] == pytest.approx((printed[3][2] - printed[5][2]) / 7, abs=1e-5)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("name", DEFAULTS)
def test_default_trees(shared_data, name, criterion):
    X, y = load(shared_data, name)
    model = CARTClassifier(criterion=criterion, **LIMITS).fit(X, y)
    model.tree_ = cut_at(model.tree_.arrays, CP)
    leaves, error, root = DEFAULTS[name][:3] if criterion == "gini" else DEFAULTS[name][3:6]
    assert model.get_n_leaves() == leaves
    assert 1.0 - model.score(X, y) == pytest.approx(error, abs=5e-5)
    assert X.columns[model.tree_.arrays.feature[0]] == root


@pytest.mark.parametrize("name", [name for name in DEFAULTS if DEFAULTS[name][-1]])
def test_grown_out(shared_data, name):
    """german_credit is left out: two subsets of property_magnitude tie at a node of 15 rows, and rpart orders levels
    from the other end, which gives 192 leaves against our 190."""
    X, y = load(shared_data, name)
    assert CARTClassifier(cat_penalty=0.0).fit(X, y).get_n_leaves() == DEFAULTS[name][-1]


def test_iris_grown_out():
    X, y = load_iris(return_X_y=True)
    tree = CARTClassifier(cat_penalty=0.0).fit(X, y).tree_.arrays
    assert (int(tree.feature[0]), float(tree.threshold[0])) == (2, 2.45)  # a tie with petal width: the first column
    expected = [(0.5, 0, 1), (0.44, 1, 0.5), (0.02, 2, 0.06), (0.01, 3, 0.04), (0.005, 6, 0.01), (0, 8, 0)]
    np.testing.assert_allclose(cp_table(tree, 0.0), expected, atol=1e-9)


compiled = pytest.mark.compiled(reason="a larger table")


@compiled
def test_california(shared_data):
    X, y = load(shared_data, "california_housing")
    model = CARTRegressor(**LIMITS).fit(X, y)
    tree = cut_at(model.tree_.arrays, CP)
    assert tree.n_leaves == 9
    assert X.columns[tree.feature[0]] == "MedInc"
    assert from_units(tree, float(node_risk(tree, "error")[tree.is_leaf].sum()), "error") == pytest.approx(
        0.60281, abs=5e-6
    )


@pytest.mark.parametrize(
    ("name", "target", "cp", "leaves", "error"),
    [
        pytest.param("satimage", "class", 0.01, 8, 0.2170, marks=compiled),
        pytest.param("satimage", "class", 0.001, 56, 0.1455, marks=compiled),
        ("vowel", "Class", 0.01, 31, None),
    ],
)
def test_official_splits(shared_data, name, target, cp, leaves, error):
    """rpart asks x < threshold, ours is x <= threshold: a new value may be the midpoint itself.

    On vowel two nodes have tests of F2 and F5 that part the rows alike; rpart takes the second by a rounding, and errs
    on 57.36 % of the test rows where ours errs on 56.28.
    """
    table = read(shared_data, name)
    X = table.drop(columns=[target, "split", "SpeakerNumber", "Sex"], errors="ignore")
    is_train = table["split"].astype(str) == "train"
    model = CARTClassifier(**LIMITS).fit(X[is_train], table[target][is_train])
    tree = cut_at(model.tree_.arrays, cp)
    assert tree.n_leaves == leaves
    below = np.nextafter(tree.threshold, -np.inf)
    model.tree_ = replace(tree, threshold=np.where(tree.is_leaf, tree.threshold, below))
    if error is not None:
        assert 1.0 - model.score(X[~is_train], table[target][~is_train]) == pytest.approx(error, abs=5e-5)
