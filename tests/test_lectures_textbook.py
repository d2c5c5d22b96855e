"""What lectures and textbooks print of ID3 and C4.5: gains, ratios, trees, ties, empty branches, prunings."""

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney import C45Classifier, ID3Classifier, ID3Regressor
from test_lectures import read, root_impurity

TARGETS = {
    "toy_play_tennis": "play",
    "toy_buys_computer": "buys_computer",
    "toy_weather_numeric": "play",
    "toy_dhbw_q1": "C",
    "toy_dhbw_sport": "sport",
    "toy_casablanca": "likes_casablanca",
    "toy_contact_lenses": "contact-lenses",
}


def load(folder, name):
    """Features, every text a category, and target."""
    table = read(folder, name)
    if name == "toy_weather_numeric":
        table["windy"] = table["windy"].astype(str).astype("category")
    return table.drop(columns=["rid"] if "rid" in table else []).drop(columns=TARGETS[name]), table[TARGETS[name]]


def figures(model, X, y, name="gain", at=()):
    """A figure of each feature's best test, at the node that these levels lead to from the root."""
    node = node_at(model.tree_.arrays, *at)
    frame = spinney.trace(model, X, y).to_frame()
    found = frame[(frame.node == node) & frame.is_best_of_feature]
    return dict(zip(found.feature, found[name], strict=True))


def node_at(tree, *levels):
    node = 0
    for level in levels:
        node = int(tree.first_child[node]) + tree.legend.levels[int(tree.feature[node])].index(level)
    return node


def shape(tree, node=0):
    """A leaf is its class; another node the name of its feature and what each branch leads to."""
    legend = tree.legend
    if tree.is_leaf[node]:
        return legend.classes[int(tree.leaf_class[node])]
    feature, first = int(tree.feature[node]), int(tree.first_child[node])
    branches = legend.levels[feature] or (f"<= {tree.threshold[node]:g}", f"> {tree.threshold[node]:g}")
    return legend.features[feature], {name: shape(tree, first + branch) for branch, name in enumerate(branches)}


def close(expected):
    return pytest.approx(expected, abs=1e-6)


# ------------------------------------------------------------------------------- DHBW: play tennis, and with its days

TENNIS = {
    "gain": {"outlook": 0.246750, "temperature": 0.029223, "humidity": 0.151836, "wind": 0.048127, "day": 0.940286},
    "impurity_after": {"outlook": 0.693536, "temperature": 0.911063, "humidity": 0.788450, "wind": 0.892159, "day": 0},
    "split_info": {"outlook": 1.577406, "temperature": 1.556657, "humidity": 1, "wind": 0.985228, "day": 3.807355},
    "gain_ratio": {
        "outlook": 0.156428,
        "temperature": 0.018773,
        "humidity": 0.151836,
        "wind": 0.048849,
        "day": 0.246966,
    },
    "gini_decrease": {
        "outlook": 0.116327,
        "temperature": 0.018707,
        "humidity": 0.091837,
        "wind": 0.030612,
        "day": 0.459184,
    },
}
TENNIS_TREE = (
    "outlook",
    {
        "overcast": "yes",
        "rainy": ("wind", {"strong": "no", "weak": "yes"}),
        "sunny": ("humidity", {"high": "no", "normal": "yes"}),
    },
)


@pytest.mark.parametrize("name", TENNIS)
def test_dhbw_candidates_of_play_tennis(shared_data, name):
    X, y = load(shared_data, "toy_play_tennis")
    X["day"] = pd.Categorical([f"D{k}" for k in range(1, 15)])
    model = ID3Classifier().fit(X, y)
    assert root_impurity(model.tree_.arrays) == close(0.940286)
    assert figures(model, X, y, name) == close(TENNIS[name])
    assert model.tree_.arrays.feature[0] == 4  # an id has the largest gain, and the largest gain ratio: drop it
    assert model.get_n_leaves() == 14


def test_dhbw_play_tennis(shared_data):
    X, y = load(shared_data, "toy_play_tennis")
    model = ID3Classifier().fit(X, y)
    assert shape(model.tree_.arrays) == TENNIS_TREE
    sunny = {"temperature": 0.570951, "humidity": 0.970951, "wind": 0.019973}
    rainy = {"temperature": 0.019973, "humidity": 0.019973, "wind": 0.970951}
    assert figures(model, X, y, at=["sunny"]) == close(sunny)  # outlook is used up: no test of it
    assert figures(model, X, y, at=["rainy"]) == close(rainy)
    new = pd.DataFrame([["rainy", "mild", "normal", "strong"]], columns=X.columns)
    assert model.predict(new).tolist() == ["no"]


def test_dhbw_gini_of_play_tennis(shared_data):
    X, y = load(shared_data, "toy_play_tennis")
    model = ID3Classifier(criterion="gini").fit(X, y)
    assert root_impurity(model.tree_.arrays) == close(0.459184)
    assert shape(model.tree_.arrays) == TENNIS_TREE


def test_dhbw_empty_branch_below_temperature(shared_data):
    """The worse tree has leaves "?": on hot days it was never rainy, so that branch answers as its parent.

    Other days are a class of their own here, which makes temperature the root.
    """
    X, y = load(shared_data, "toy_play_tennis")
    y = y.astype(str).where(X["temperature"] == "hot", "other")
    model = ID3Classifier().fit(X, y)
    assert shape(model.tree_.arrays) == (
        "temperature",
        {"cool": "other", "hot": ("outlook", {"overcast": "yes", "rainy": "no", "sunny": "no"}), "mild": "other"},
    )
    assert np.flatnonzero(model.tree_.is_empty).tolist() == [node_at(model.tree_.arrays, "hot", "rainy")]
    new = pd.DataFrame([["rainy", "hot", "high", "weak"]], columns=X.columns)
    np.testing.assert_array_equal(model.predict_proba(new), [[0.5, 0.0, 0.5]])  # no, other, yes
    assert model.predict(new).tolist() == ["no"]  # the first among equals


def test_dhbw_c45_of_play_tennis(shared_data):
    X, y = load(shared_data, "toy_play_tennis")
    for pruning in (None, "pessimistic"):
        model = C45Classifier(pruning=pruning).fit(X, y)
        assert shape(model.tree_.arrays) == TENNIS_TREE
        assert (model.get_n_leaves(), model.tree_.n_nodes, model.score(X, y)) == (5, 8, 1.0)


def test_dhbw_c45_of_numeric_weather(shared_data):
    """J48's tree: outlook, humidity <= 75, windy; the cut is a value of the table, between 70 and 85 of the sunny."""
    X, y = load(shared_data, "toy_weather_numeric")
    model = C45Classifier().fit(X, y)
    assert shape(model.tree_.arrays) == (
        "outlook",
        {
            "overcast": "yes",
            "rainy": ("windy", {"False": "yes", "True": "no"}),
            "sunny": ("humidity", {"<= 75": "yes", "> 75": "no"}),
        },
    )
    assert (model.get_n_leaves(), model.tree_.n_nodes, model.score(X, y)) == (5, 8, 1.0)


def test_dhbw_id3_of_numeric_weather(shared_data):
    X, y = load(shared_data, "toy_weather_numeric")
    model = ID3Classifier().fit(X, y)
    assert figures(model, X, y)["temperature"] == close(0.113401)
    assert figures(model, X, y)["humidity"] == close(0.151836)
    assert model.tree_.arrays.threshold[node_at(model.tree_.arrays, "sunny")] == 77.5  # a midpoint
    assert model.score(X, y) == 1.0


# ------------------------------------------------------------------------------------------------ DHBW: exercise 8


def test_dhbw_exercise_8_question_1(shared_data):
    X, y = load(shared_data, "toy_dhbw_q1")
    expected = ("A1", {"a": ("A3", {"x": "+", "y": "+", "z": "-"}), "b": "-"})
    model = ID3Classifier().fit(X, y)
    assert root_impurity(model.tree_.arrays) == close(0.970951)
    assert figures(model, X, y) == close({"A1": 0.419973, "A2": 0.019973, "A3": 0.295462})
    assert figures(model, X, y, at=["a"]) == close({"A2": 0.0, "A3": 0.918296})
    assert shape(model.tree_.arrays) == expected
    assert (model.get_n_leaves(), model.score(X, y)) == (4, 1.0)
    for pruning in (None, "pessimistic"):
        model = C45Classifier(pruning=pruning).fit(X, y)
        assert shape(model.tree_.arrays) == expected
        assert (model.get_n_leaves(), model.tree_.n_nodes) == (4, 6)


def test_dhbw_exercise_8_question_2(shared_data):
    """Below cloudy, humidity and wind tie: the first column wins."""
    X, y = load(shared_data, "toy_dhbw_sport")
    model = ID3Classifier(max_depth=2).fit(X, y)
    gains = {"outlook": 0.483356, "temperature": 0.013733, "humidity": 0.355389, "wind": 0.054585}
    assert root_impurity(model.tree_.arrays) == close(1.554585)
    assert figures(model, X, y) == close(gains)
    assert figures(model, X, y, at=["sunny"]) == close({"temperature": 0.311278, "humidity": 0.5, "wind": 0.811278})
    cloudy = {"temperature": 0.170951, "humidity": 0.419973, "wind": 0.419973}
    assert figures(model, X, y, at=["cloudy"]) == close(cloudy)
    assert shape(model.tree_.arrays) == (
        "outlook",
        {
            "cloudy": ("humidity", {"high": "tennis", "low": "soccer"}),
            "rainy": "squash",
            "sunny": ("wind", {"strong": "tennis", "weak": "soccer"}),
        },
    )
    weak = node_at(model.tree_.arrays, "sunny", "weak")
    assert model.tree_.class_weights()[weak].tolist() == [2, 1, 0]
    turned = X[["outlook", "temperature", "wind", "humidity"]]
    tree = ID3Classifier(max_depth=2).fit(turned, y).tree_.arrays
    assert tree.legend.features[tree.feature[node_at(tree, "cloudy")]] == "wind"


def test_dhbw_gain_ratio_of_the_sport_table(shared_data):
    X, y = load(shared_data, "toy_dhbw_sport")
    ratios = figures(ID3Classifier(max_depth=2).fit(X, y), X, y, "gain_ratio")
    assert (ratios["humidity"], ratios["outlook"]) == close((0.387009, 0.310923))
    model = C45Classifier(pruning=None).fit(X, y)
    assert shape(model.tree_.arrays) == (
        "humidity",
        {"high": ("outlook", {"cloudy": "tennis", "rainy": "squash", "sunny": "soccer"}), "low": "soccer"},
    )
    assert 1 - model.score(X, y) == pytest.approx(4 / 12)
    pruned = C45Classifier().fit(X, y)
    assert shape(pruned.tree_.arrays) == ("humidity", {"high": "squash", "low": "soccer"})
    assert 1 - pruned.score(X, y) == pytest.approx(5 / 12)


# -------------------------------------------------------------------------------------------------- KAUST, Cornell


def test_kaust_casablanca(shared_data):
    """H(Y) = 1, H(X) = 1.5, H(Y|X) = 0.5."""
    X, y = load(shared_data, "toy_casablanca")
    model = ID3Classifier().fit(X, y)
    assert root_impurity(model.tree_.arrays) == close(1.0)
    expected = {"split_info": 1.5, "impurity_after": 0.5, "gain": 0.5, "gain_ratio": 1 / 3}
    assert {name: figures(model, X, y, name)["major"] for name in expected} == close(expected)
    assert shape(model.tree_.arrays) == ("major", {"CS": "Yes", "History": "No", "Math": "No"})


@pytest.mark.parametrize("is_category", [False, True])
@pytest.mark.parametrize("n_copies", [1, 25])
def test_cornell_xor(is_category, n_copies):
    """The first split gains nothing, and yet the tree fits."""
    X = pd.DataFrame([[0, 0], [0, 1], [1, 0], [1, 1]] * n_copies, columns=["a", "b"])
    y = X["a"] ^ X["b"]
    X = X.astype("category") if is_category else X
    model = ID3Classifier().fit(X, y)
    assert figures(model, X, y) == close({"a": 0.0, "b": 0.0})
    assert (model.get_n_leaves(), model.get_depth(), model.score(X, y)) == (4, 2, 1.0)
    values = ID3Regressor().fit(X, y.astype(float))
    assert values.predict(X).tolist() == y.tolist()


def test_kaust_stopping_early_is_not_pruning_late():
    """A bound on the gain stops XOR at its root; taking back poor splits of the grown tree leaves it whole."""
    X = pd.DataFrame([[0, 0], [0, 1], [1, 0], [1, 1]], columns=["a", "b"])
    y = X["a"] ^ X["b"]
    assert ID3Classifier(min_impurity_decrease=0.1).fit(X, y).get_n_leaves() == 1
    assert ID3Classifier().fit(X, y).prune("min_gain", min_gain=0.1).get_n_leaves() == 4


def test_cornell_equal_rows_of_different_classes_share_a_leaf():
    X = pd.DataFrame([["r", 1], ["r", 1], ["r", 1], ["g", 1]], columns=["colour", "x"]).astype({"colour": "category"})
    model = ID3Classifier().fit(X, ["a", "b", "b", "a"])
    assert model.get_n_leaves() == 2
    np.testing.assert_allclose(model.predict_proba(X[2:]), [[1 / 3, 2 / 3], [1, 0]])


def test_cornell_an_empty_child_has_its_parents_mode_or_mean():
    X = pd.DataFrame({"a": list("uuuvvv"), "b": list("xxzxyz")}).astype("category")
    model = ID3Classifier().fit(X, [0, 0, 1, 2, 2, 2])
    below = node_at(model.tree_.arrays, "u")
    assert model.tree_.is_empty[node_at(model.tree_.arrays, "u", "y")]
    new = pd.DataFrame({"a": ["u"], "b": ["y"]})
    assert model.predict(new).tolist() == [0]
    np.testing.assert_allclose(model.predict_proba(new), [[2 / 3, 1 / 3, 0]])
    values = ID3Regressor().fit(X, [0.0, 0.0, 3.0, 20.0, 20.0, 20.0])
    assert values.tree_.n_rows[below] == 3
    assert values.predict(new).tolist() == [1.0]


# ------------------------------------------------------------------------------------------------------ Nottingham

BUYS = {
    "gain": {"rid": 0.940286, "age": 0.246750, "income": 0.029223, "student": 0.151836, "credit_rating": 0.048127},
    "gain_ratio": {
        "rid": 0.246966,
        "age": 0.156428,
        "income": 0.018773,
        "student": 0.151836,
        "credit_rating": 0.048849,
    },
}
BUYS_TREE = (
    "age",
    {
        "middle_aged": "yes",
        "senior": ("credit_rating", {"excellent": "no", "fair": "yes"}),
        "youth": ("student", {"no": "no", "yes": "yes"}),
    },
)


def test_nottingham_buys_computer(shared_data):
    X, y = load(shared_data, "toy_buys_computer")
    model = ID3Classifier().fit(X, y)
    assert root_impurity(model.tree_.arrays) == close(0.940286)
    assert figures(model, X, y, "impurity_after")["age"] == close(0.693536)
    assert shape(model.tree_.arrays) == BUYS_TREE
    assert shape(C45Classifier().fit(X, y).tree_.arrays) == BUYS_TREE


def test_nottingham_buys_computer_with_ids(shared_data):
    """Gain and gain ratio take the id; C4.5 does not, since no two branches of it have two rows (J48 -M 2 and -M 1)."""
    X, y = load(shared_data, "toy_buys_computer")
    X.insert(0, "rid", pd.Categorical([f"r{k:02}" for k in range(1, 15)]))
    model = ID3Classifier().fit(X, y)
    for name, expected in BUYS.items():
        assert figures(model, X, y, name) == close(expected)
    assert (model.tree_.arrays.feature[0], model.get_n_leaves()) == (0, 14)
    assert shape(C45Classifier().fit(X, y).tree_.arrays) == BUYS_TREE
    alone = C45Classifier(min_samples_leaf=1, pruning=None).fit(X, y)
    assert (alone.tree_.arrays.feature[0], alone.get_n_leaves()) == (0, 14)


# ------------------------------------------------------------------------------------- Weka's Id3 (reference.md, 3.1)

ID3_ERRORS = {
    "toy_play_tennis": 0,
    "toy_buys_computer": 0,
    "toy_dhbw_q1": 0,
    "toy_dhbw_sport": 3,
    "toy_contact_lenses": 0,
}


@pytest.mark.parametrize("name", ID3_ERRORS)
def test_training_errors_of_wekas_id3(shared_data, name):
    X, y = load(shared_data, name)
    assert int((ID3Classifier().fit(X, y).predict(X) != y).sum()) == ID3_ERRORS[name]


def test_id3_of_the_car_table(shared_data):
    table = pd.read_parquet(shared_data / "car.parquet").astype("category")
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    assert ID3Classifier().fit(X, y).score(X, y) == 1.0


def test_id3_of_contact_lenses(shared_data):
    X, y = load(shared_data, "toy_contact_lenses")
    model = ID3Classifier().fit(X, y)
    prescription = "spectacle-prescrip"
    astigmatism = {
        "no": (
            "age",
            {
                "pre-presbyopic": "soft",
                "presbyopic": (prescription, {"hypermetrope": "soft", "myope": "none"}),
                "young": "soft",
            },
        ),
        "yes": (
            prescription,
            {
                "hypermetrope": ("age", {"pre-presbyopic": "none", "presbyopic": "none", "young": "hard"}),
                "myope": "hard",
            },
        ),
    }
    assert shape(model.tree_.arrays) == ("tear-prod-rate", {"normal": ("astigmatism", astigmatism), "reduced": "none"})
    assert model.get_n_leaves() == 9
    pruned = C45Classifier().fit(X, y)
    assert (pruned.get_n_leaves(), pruned.tree_.n_nodes) == (4, 7)
    assert pruned.score(X, y) == pytest.approx(0.916667, abs=1e-6)
