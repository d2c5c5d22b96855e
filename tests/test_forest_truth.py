"""Errors and importances that papers and other programs print for forests, as ours reach them.

Where a published number is one run of a random method, its own spread is part of the tolerance; each test says so.
"""

import itertools
import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, make_friedman1
from sklearn.ensemble import ExtraTreesClassifier as PeerExtraClassifier
from sklearn.ensemble import ExtraTreesRegressor as PeerExtraRegressor
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import KFold, train_test_split

from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

TARGETS = {
    "glass": "Type",
    "pima_diabetes": "diabetes",
    "sonar": "Class",
    "vowel": "Class",
    "ionosphere": "Class",
    "vehicle": "Class",
    "german_credit": "class",
    "soybean": "Class",
    "letter": "lettr",
    "satimage": "class",
    "spambase": "type",
    "mammography": "class",
    "adult": "income",
    "bike_sharing_hour": "cnt",
    "california_housing": "MedHouseVal",
}
NOT_INPUTS = ["split", "casual", "registered", "SpeakerNumber", "Sex"]
NOISY = {"glass", "sonar"}  # some 200 rows: a row is half a point


def read(folder, name):
    """Inputs of a table as a frame, its target, and its official split (None where it has none)."""
    path = next(folder.glob(f"{name}.*"))
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    target = frame[TARGETS[name]]
    y = target.to_numpy(float) if name in {"bike_sharing_hour", "california_housing"} else target.astype(str).to_numpy()
    split = frame["split"].astype(str).to_numpy() if "split" in frame else None
    X = frame.drop(columns=[TARGETS[name], *(c for c in NOT_INPUTS if c in frame)])
    if name == "pima_diabetes":
        X = X.fillna(0)  # as in the original file
    return X, y, split


def in_percent(wrong):
    return 100.0 * float(np.mean(wrong))


# ------------------------------------------------------------------------------------------------------ Breiman 2001

FOREST_RI = {  # test error of the forest that is better out of bag, F = 1 or F = int(log2 M + 1)
    "glass": 20.6,
    "pima_diabetes": 24.2,
    "sonar": 15.9,
    "vowel": 3.4,
    "ionosphere": 7.1,
    "vehicle": 25.8,
    "german_credit": 24.4,
}
LARGE = {"letter": 3.5, "satimage": 8.6}
SYNTHETIC = {"waveform": 17.2, "twonorm": 3.9, "threenorm": 17.5, "ringnorm": 4.9}
N_CUBE = 20  # inputs of the three normal problems
SHIFT = 2.0 / math.sqrt(N_CUBE)


def select_forest(X, y, seed):
    """Breiman's choice: 100 trees with 1 and with int(log2 M + 1) features a node; the lower out-of-bag error wins."""
    forests = [
        RandomForestClassifier(
            n_estimators=100, max_features=k, voting="hard", oob_score=True, ties="random", random_state=seed
        ).fit(X, y)
        for k in (1, int(math.log2(X.shape[1]) + 1))
    ]
    return max(forests, key=lambda forest: forest.oob_score_)


def draw_waveform(generator, n):
    """Three classes, each a random mix of two of three triangular waves at 21 places, with unit noise."""
    places = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(places - peak), 0) for peak in (11, 15, 7)], float)
    y = generator.integers(3, size=n)
    share = generator.random((n, 1))
    X = share * waves[[0, 0, 1]][y] + (1.0 - share) * waves[[1, 2, 2]][y]
    return X + generator.normal(size=X.shape), y


def draw_twonorm(generator, n):
    y = generator.integers(2, size=n)
    return generator.normal(size=(n, N_CUBE)) + np.where(y, SHIFT, -SHIFT)[:, None], y


def draw_threenorm(generator, n):
    """Class 0 around one of two opposite corners, class 1 around a third with alternating signs."""
    y = generator.integers(2, size=n)
    corner = np.where(generator.random((n, 1)) < 0.5, SHIFT, -SHIFT) * np.ones(N_CUBE)
    alternating = SHIFT * (-1.0) ** np.arange(N_CUBE)
    return generator.normal(size=(n, N_CUBE)) + np.where(y[:, None] == 0, corner, alternating), y


def draw_ringnorm(generator, n):
    """Class 0 wide around the origin, class 1 narrow inside it."""
    y = generator.integers(2, size=n)
    X = generator.normal(size=(n, N_CUBE))
    return np.where(y[:, None] == 0, 2.0 * X, X + SHIFT), y


DRAWS = {
    "waveform": draw_waveform,
    "twonorm": draw_twonorm,
    "threenorm": draw_threenorm,
    "ringnorm": draw_ringnorm,
}


def densities(name, X):
    """What each class of a normal problem has of density at the rows, up to a common factor."""
    ones = np.ones(N_CUBE)
    normal = lambda mean, scale=1.0: multivariate_normal.pdf(X, mean, scale * np.eye(N_CUBE))  # noqa: E731
    if name == "twonorm":
        return normal(-SHIFT * ones), normal(SHIFT * ones)
    if name == "threenorm":
        return (normal(SHIFT * ones) + normal(-SHIFT * ones)) / 2, normal(SHIFT * (-1.0) ** np.arange(N_CUBE))
    return normal(0.0 * ones, 4.0), normal(SHIFT * ones)


@pytest.mark.parametrize(("name", "bayes"), [("twonorm", 2.28), ("threenorm", 10.5), ("ringnorm", 1.3)])
def test_the_generators_have_the_published_bayes_errors(name, bayes):
    X, y = DRAWS[name](np.random.default_rng(0), 60_000)
    assert in_percent(np.argmax(densities(name, X), axis=0) != y) == pytest.approx(bayes, abs=0.35)


def test_the_waves_have_the_published_bayes_error():
    """14 % by the CART book; the integral over the share of the two waves of a class says 13."""
    X, y = draw_waveform(np.random.default_rng(0), 20_000)
    places = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(places - peak), 0) for peak in (11, 15, 7)], float)
    density = np.zeros((3, len(y)))
    for share in (np.arange(40) + 0.5) / 40:
        for c, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
            density[c] += np.exp(-0.5 * ((X - share * waves[a] - (1 - share) * waves[b]) ** 2).sum(axis=1))
    assert in_percent(density.argmax(axis=0) != y) == pytest.approx(14.0, abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREST_RI)
def test_forest_ri_on_small_tables(shared_data, name):
    """Breiman holds out a random tenth 100 times; we hold out each tenth once, in several shuffles.

    The share trained on is the same. Since every row is tested equally often, the choice of rows adds no noise:
    three shuffles spread less than his 100 draws, whose own standard error is 0.9 on glass and sonar and 0.5 else.
    """
    X, y, _ = read(shared_data, name)
    errors = []
    for shuffle in range(5 if name in NOISY else 3):
        for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=shuffle).split(X)):
            forest = select_forest(X.iloc[train], y[train], 10 * shuffle + fold)
            errors += (forest.predict(X.iloc[test]) != y[test]).tolist()
    assert in_percent(errors) == pytest.approx(FOREST_RI[name], abs=3.0 if name in NOISY else 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_forest_ri_on_large_tables(shared_data, name):
    X, y, split = read(shared_data, name)
    is_train = split == "train" if name == "satimage" else np.arange(len(y)) < 15_000
    forest = select_forest(X[is_train], y[is_train], 0)
    error = in_percent(forest.predict(X[~is_train]) != y[~is_train])
    assert error == pytest.approx(LARGE[name], abs=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYNTHETIC)
def test_forest_ri_on_synthetic_tables(name):
    """300 rows to train on, 3000 to test, 20 runs instead of 50: the standard error is about 0.3."""
    errors = []
    for seed in range(20):
        X, y = DRAWS[name](np.random.default_rng(seed), 3300)
        forest = select_forest(X[:300], y[:300], seed)
        errors.append(in_percent(forest.predict(X[300:]) != y[300:]))
    assert np.mean(errors) == pytest.approx(SYNTHETIC[name], abs=1.5)


# -------------------------------------------------------------------------------------------------- R, Weka, the blog

# One seed of a forest on a small table says little: R's 500 trees on pima spread by 0.7 from seed to seed, Weka's 100
# on sonar by 2.1. So means of ten seeds are compared, theirs found by running them; behind each, the one seed that
# reference.md prints.
R_FOREST = {  # randomForest 4.7-1.1, 500 trees, seeds 1 to 10: features a node, out-of-bag error
    "iris": (2, 4.47),  # 4.67
    "sonar": (7, 15.38),  # 14.90
    "glass": (3, 20.42),  # 21.50
    "ionosphere": (5, 6.52),  # 6.27
    "vehicle": (4, 25.34),  # 25.06
    "pima_diabetes": (2, 23.07),  # 22.27
    "german_credit": (4, 23.29),  # 23.30
    "vowel": (3, 2.62),  # 2.73
}
WEKA_FOREST = {  # RandomForest of Weka 3.6.14, 100 trees, seeds 1 to 10: out-of-bag error
    "soybean": 6.89,  # 7.76
    "german_credit": 24.72,  # 23.20
    "glass": 21.92,  # 21.03
    "sonar": 16.73,  # 19.23
    "ionosphere": 6.41,  # 6.84
    "vehicle": 24.73,  # 24.82
    "pima_diabetes": 24.16,  # 24.09
    "vowel": 3.94,  # 3.74
}


def mean_oob_error(X, y, **params):
    scores = [
        RandomForestClassifier(voting="hard", ties="random", oob_score=True, random_state=seed, **params)
        .fit(X, y)
        .oob_score_
        for seed in range(10)
    ]
    return 100.0 * (1.0 - float(np.mean(scores)))


@pytest.mark.slow
@pytest.mark.parametrize("name", R_FOREST)
def test_oob_errors_of_r(shared_data, name):
    X, y = load_iris(return_X_y=True) if name == "iris" else read(shared_data, name)[:2]
    mtry, error = R_FOREST[name]
    found = mean_oob_error(X, y, n_estimators=500, max_features=mtry)
    assert found == pytest.approx(error, abs=2.0 if name in NOISY else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WEKA_FOREST)
def test_oob_errors_of_weka(shared_data, name):
    """Its trees choose by entropy among int(log2 M + 1) features.

    They give each level a branch and send missing values down all of them; on soybean, all levels and every tenth row
    with gaps, two branches do a little better, so there ours may be better by more than a point.
    """
    X, y, _ = read(shared_data, name)
    k = int(math.log2(X.shape[1]) + 1)
    found = mean_oob_error(X, y, n_estimators=100, max_features=k, criterion="entropy")
    slack = 2.0 if name in NOISY else 1.0
    assert found <= WEKA_FOREST[name] + slack
    assert found >= WEKA_FOREST[name] - (2.0 if name == "soybean" else slack)


@pytest.mark.slow
def test_satimage_of_r(shared_data):
    """randomForest, 200 trees, official split: test error 8.95, out of bag 8.70."""
    X, y, split = read(shared_data, "satimage")
    is_train = split == "train"
    forest = RandomForestClassifier(n_estimators=200, voting="hard", oob_score=True, random_state=0)
    forest.fit(X[is_train], y[is_train])
    assert in_percent(forest.predict(X[~is_train]) != y[~is_train]) == pytest.approx(8.95, abs=1.0)
    assert 100.0 * (1.0 - forest.oob_score_) == pytest.approx(8.70, abs=1.0)


@pytest.mark.slow
def test_california_of_r(shared_data):
    """randomForest with mtry 2 and 50 trees, nodes of up to five rows being leaves: out-of-bag R2 0.8108, one seed."""
    X, y, _ = read(shared_data, "california_housing")
    scores = [
        RandomForestRegressor(n_estimators=50, max_features=2, min_samples_split=6, oob_score=True, random_state=seed)
        .fit(X, y)
        .oob_score_
        for seed in range(5)
    ]
    # the standard error of our mean, and the spread of the one run of R, three of each
    spread = float(np.std(scores, ddof=1))
    assert np.mean(scores) == pytest.approx(0.8108, abs=3.0 * spread * math.sqrt(1.0 + 1.0 / len(scores)))
    assert spread < 0.004  # or the line above says nothing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "r2", "seeds"), [(RandomForestRegressor, 0.808, [0]), (ExtraTreesRegressor, 0.8118, [0, 1, 2])]
)
def test_california_of_the_blog(shared_data, kind, r2, seeds):
    """50 trees, defaults, five folds.

    For extra-trees the figure shows one seed, 0.809; scikit-learn's seeds 0, 1 and 2 give 0.8094, 0.8147 and 0.8112,
    so their mean is compared.
    """
    X, y, _ = read(shared_data, "california_housing")
    scores = []
    for train, test in KFold(5, shuffle=True, random_state=42).split(X):
        for seed in seeds:
            model = kind(n_estimators=50, random_state=seed).fit(X.iloc[train], y[train])
            scores.append(model.score(X.iloc[test], y[test]))
    assert np.mean(scores) == pytest.approx(r2, abs=0.003)


@pytest.mark.slow
def test_friedman_1():
    """200 rows to train on, 2000 to test, unit noise; the mean of ten draws has a standard error of about 0.1."""
    errors = []
    for seed in range(10):
        X, y = make_friedman1(2200, noise=1.0, random_state=seed)
        model = RandomForestRegressor(max_features=0.7, random_state=seed).fit(X[:200], y[:200])
        errors.append(np.mean((model.predict(X[200:]) - y[200:]) ** 2))
    assert np.mean(errors) == pytest.approx(6.2, abs=0.4)


# --------------------------------------------------------------------------------------------------- LED importances

LED_EXACT = [0.412693, 0.581541, 0.531156, 0.542129, 0.656582, 0.225816, 0.372011]
LED_BEST = [0.306, 0.799, 0.475, 0.412, 0.835, 0.120, 0.372]  # Louppe 2014, K = 7


def read_led(folder):
    table = pd.read_csv(folder / "toy_led_digits.csv")
    return table.drop(columns="digit").to_numpy(float), table["digit"].to_numpy()


def decreases(trees):
    """Impurity decrease in bits by the tests of each feature, the mean over the trees."""
    trees = list(trees)
    total = np.zeros(trees[0].n_features)
    for tree in trees:
        loss = tree.weight / tree.weight[0] * np.ldexp(tree.impurity, tree.impurity_exponent)
        inner = np.flatnonzero(~tree.is_leaf)
        first = tree.first_child[inner]
        np.add.at(total, tree.feature[inner], loss[inner] - loss[first] - loss[first + 1])
    return total / len(trees)


def expected_decreases(X, k):
    """What `decreases` of trees of k features a node tend to, exactly; for binary inputs, each row a class of its own.

    Of k features drawn among those that part the rows the best wins, equals by lot (Geurts et al. 2006). The thesis
    prints numbers for k = 2 and 4 that lie up to 0.015 from these: it counts features that a test above has settled.
    """
    n_rows, n_features = X.shape

    @cache
    def below(rows):
        n = len(rows)
        right = X[list(rows)].sum(axis=0)
        useful = np.flatnonzero((right > 0) & (right < n))
        gain = np.full(n_features, -1.0)
        p = right[useful] / n
        gain[useful] = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
        total = np.zeros(n_features)
        for j, chance in enumerate(chances(gain, useful)):
            if chance > 0.0:
                sides = [tuple(r for r in rows if X[r, j] == side) for side in (0, 1)]
                total[j] += chance * gain[j] * n / n_rows
                total += chance * sum(below(side) for side in sides if len(side) > 1)
        return total

    def chances(gain, useful):
        chance = np.zeros(n_features)
        draws = [list(draw) for draw in itertools.combinations(useful, min(k, len(useful)))]
        for draw in draws:
            best = [j for j in draw if math.isclose(gain[j], max(gain[draw]), abs_tol=1e-12)]
            chance[best] += 1.0 / len(best)
        return chance / len(draws)

    return below(tuple(range(n_rows)))


def test_exact_led_importances_are_those_of_the_thesis(shared_data):
    X, _ = read_led(shared_data)
    assert expected_decreases(X, 1) == pytest.approx(LED_EXACT, abs=1e-6)
    assert expected_decreases(X, 7) == pytest.approx(LED_BEST, abs=0.005)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_led_trees_explain_every_bit(shared_data, k):
    """log2(10) bits in each tree, whatever k."""
    X, y = read_led(shared_data)
    forest = ExtraTreesClassifier(n_estimators=100, max_features=k, criterion="entropy", random_state=0).fit(X, y)
    for tree in forest.forest_:
        assert decreases([tree]).sum() == pytest.approx(math.log2(10), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_led_importances(shared_data, k):
    """Totally randomised trees (k = 1) and their kin; 12,000 of them bring the standard error to 0.003 at most."""
    X, y = read_led(shared_data)
    forest = ExtraTreesClassifier(n_estimators=12_000, max_features=k, criterion="entropy", random_state=0).fit(X, y)
    found = decreases(forest.forest_)
    assert found == pytest.approx(expected_decreases(X, k), abs=0.01)
    assert found.sum() == pytest.approx(math.log2(10), abs=1e-9)


@pytest.mark.slow
def test_led_importances_of_id3_with_random_ties(shared_data):
    X, y = read_led(shared_data)
    forest = RandomForestClassifier(
        n_estimators=12_000, max_features=None, criterion="entropy", bootstrap=False, ties="random", random_state=0
    ).fit(X, y)
    found = decreases(forest.forest_)
    assert found == pytest.approx(LED_BEST, abs=0.01)
    assert found.sum() == pytest.approx(math.log2(10), abs=1e-9)


# ------------------------------------------------------------------------------------------------------- scikit-learn

SIX = ["pima_diabetes", "spambase", "mammography", "satimage", "bike_sharing_hour", "california_housing"]
KINDS = {
    "forest": (RandomForestClassifier, RandomForestRegressor, PeerClassifier, PeerRegressor),
    "extra": (ExtraTreesClassifier, ExtraTreesRegressor, PeerExtraClassifier, PeerExtraRegressor),
}


def rate(model, X, y):
    """Area under the curve (mean over the classes, one against the others), or R2."""
    if not hasattr(model, "predict_proba"):
        return r2_score(y, model.predict(X))
    shares = model.predict_proba(X)
    if len(model.classes_) == 2:
        return roc_auc_score(y == model.classes_[1], shares[:, 1])
    return roc_auc_score(y, shares, multi_class="ovr")


def rate_both(folder, name, kind, n_seeds=10):
    """Scores of both sides on one half of a table, grown on the other, by split and seed: shape (2, n_seeds)."""
    X, y, _ = read(folder, name)
    if name == "bike_sharing_hour":
        X = X.select_dtypes("number")
    X = X.to_numpy(float)
    is_number = y.dtype.kind == "f"
    sides = KINDS[kind][is_number], KINDS[kind][2 + is_number]
    scores = []
    for seed in range(n_seeds):
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
        models = [side(n_estimators=50, random_state=seed).fit(train, y_train) for side in sides]
        scores.append([rate(model, test, y_test) for model in models])
    return np.array(scores).T


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SIX)
def test_as_good_as_scikit_learn_and_no_better(shared_data, name, kind):
    """The same method at the same defaults scores the same: ten splits, both sides on each.

    Three standard errors, since there are twelve comparisons: at two, equal methods would miss one of them in half of
    all runs.
    """
    ours, peer = rate_both(shared_data, name, kind)
    difference = ours - peer
    assert abs(difference.mean()) <= 3.0 * difference.std(ddof=1) / math.sqrt(len(difference))


@pytest.mark.slow
def test_adult_with_categories_as_they_are(shared_data):
    """At least as good as scikit-learn's forest on one column per level: area under the curve, accuracy; 3 seeds."""
    X, y, split = read(shared_data, "adult")
    is_train = split == "train"
    y = y == ">50K"
    wide = pd.get_dummies(X).to_numpy(np.float32)
    scores = {"ours": [], "peer": []}
    for seed in range(3):
        for side, model, table in (
            ("ours", RandomForestClassifier(random_state=seed), X),
            ("peer", PeerClassifier(random_state=seed), wide),
        ):
            model.fit(table[is_train], y[is_train])
            share = model.predict_proba(table[~is_train])[:, 1]
            scores[side].append([roc_auc_score(y[~is_train], share), np.mean((share > 0.5) == y[~is_train])])
    assert np.all(np.mean(scores["ours"], axis=0) >= np.mean(scores["peer"], axis=0))
