"""Model files that someone has made to do harm: their hashes are right, what they say is not."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import saved_models
from damaged_files import peak_of, rewritten
from spinney import GradientBoostingClassifier, ID3Classifier, RandomForestRegressor, load_model, load_predictor
from spinney._types import SUBSET, THRESHOLD
from spinney.model.container import BrokenFileError
from spinney.model.fitted_adaboost import VotingEstimators
from spinney.model.state import KINDS, Reader, Writer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzz.mutations import seal, split


@pytest.fixture(scope="module")
def forest_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "forest.spn"
    model, _ = saved_models.fit("forest")
    model.save_model(path)
    return path


def assert_refused(path, match=None):
    for load in (load_model, load_predictor):
        with pytest.raises(BrokenFileError, match=match):
            load(path)


def link(child, feature, missing, kind):
    return np.uint64(child << 32 | feature << 4 | missing << 2 | kind)


def of_kind(hot, kind):
    """An inner node that asks so."""
    is_leaf = hot[:, 1] >> np.uint64(4) & np.uint64(2**28 - 1) == 4
    return int(np.flatnonzero(~is_leaf & (hot[:, 1] & np.uint64(3) == kind))[0])


def set_link(**parts):
    def change(arrays):
        hot = arrays["forest.hot"]
        at = of_kind(hot, parts.get("kind", THRESHOLD))
        test = int(hot[at, 1]) & 0xFFFFFFFF
        child = parts.get("child", int(hot[at, 1]) >> 32)
        hot[at, 1] = link(child, parts.get("feature", test >> 4), parts.get("missing", test >> 2 & 3), test & 3)

    return change


def set_cut(kind, cut):
    def change(arrays):
        hot = arrays["forest.hot"]
        hot[of_kind(hot, kind), 0] = np.float64(cut).view(np.uint64)

    return change


FAULTS = {
    "child beyond the end": set_link(child=2**31),
    "child of another tree": set_link(child=10_000),
    "cycle": set_link(child=0),
    "two parents": set_link(child=40),
    "feature beyond the table": set_link(feature=9),
    "another leaf's feature": set_link(feature=2**28 - 1),
    "every branch": set_link(missing=3),
    "threshold that is no number": set_cut(THRESHOLD, np.nan),
    "bitset beyond the words": set_cut(SUBSET, 1e6),
    "bitset before the words": set_cut(SUBSET, -1.0),
    "bitset between words": set_cut(SUBSET, 0.5),
    "bitset nowhere": set_cut(SUBSET, np.inf),
    "parts out of order": lambda arrays: (
        arrays["forest.first_node"].sort(kind="stable") or arrays["forest.first_node"].__setitem__(1, 2**62)
    ),
    "no rows": lambda arrays: arrays["forest.n_rows"].fill(0),
    "weights that do not add up": lambda arrays: arrays["forest.weight"].put(0, 7),
    "another type": lambda arrays: arrays.update({"forest.hot": arrays["forest.hot"].view(np.float64)}),
    "one node less": lambda arrays: arrays.update({"forest.hot": arrays["forest.hot"][:-1]}),
    "no hot nodes": lambda arrays: arrays.pop("forest.hot"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_97_nodes_that_lead_astray_are_refused(name, forest_file):
    load_model(forest_file)
    assert_refused(rewritten(forest_file, FAULTS[name]))


def with_text(whole, **text):
    header, payload = split(whole)
    header["__metadata__"].update(text)
    return seal(header, payload)


def test_fault_99_a_later_format_says_what_to_install(forest_file):
    other = forest_file.with_name("later.spn")
    for version in ("2.0", "1.6", "9.9"):
        other.write_bytes(with_text(forest_file.read_bytes(), version=version, library="3.1.4"))
        assert_refused(other, match=r"install Spinney 3\.1\.4 or later")
    for version in ("", "1", "one", "1.0.0", "-1.0", "1e9.0", "99999999.0"):
        other.write_bytes(with_text(forest_file.read_bytes(), version=version))
        assert_refused(other, match="version")


@pytest.mark.parametrize(
    "told",
    [
        "[]",
        "{",
        '{"rows":"6"}',
        '{"rows":true}',
        '{"owner":"x"}',
        '{"target":["y"]}',
        '{"target":"' + "x" * 100_000 + '"}',
    ],
)
def test_what_is_told_of_the_training_data_is_checked(told, forest_file):
    other = forest_file.with_name("told.spn")
    other.write_bytes(with_text(forest_file.read_bytes(), version="1.1", training='{"rows":6,"target":"y"}'))
    load_model(other)
    other.write_bytes(with_text(forest_file.read_bytes(), version="1.1", training=told))
    assert_refused(other)
    other.write_bytes(with_text(forest_file.read_bytes(), training="{}"))  # which version 1.0 does not have
    assert_refused(other)


def test_one_long_label_does_not_make_all_long(forest_file):
    """An array of texts is as wide as its longest."""

    def change(content):
        items = ["x" * 100_000, *(f"{i}" for i in range(50_000))]
        labels = {"is": "labels", "type": "<U100000", "shape": [len(items)], "items": items}
        content["predictor"]["classes"] = labels  # 20 GB

    other = rewritten(forest_file, change_json=change)

    def action():
        assert_refused(other, match="too many")

    assert peak_of(action) < 1 << 26


PERIOD = 2**61 - 1  # of the hashes of whole numbers


@pytest.mark.parametrize(
    "value",
    [
        {"is": "dict", "items": [[i * PERIOD, 0] for i in range(20_000)]},
        {"is": "set", "items": [i * PERIOD for i in range(20_000)]},
        {"is": "labels", "type": "|O", "shape": [20_000], "items": [i * PERIOD for i in range(20_000)]},
        {"is": "dict", "items": [[{"is": "tuple", "items": [i]}, 0] for i in range(10)]},
        {"is": "set", "items": [{"is": "tuple", "items": [i]} for i in range(10)]},
        {"is": "dict", "items": [[[1], 0]]},
    ],
    ids=["a dict", "a set", "labels", "keys that are tuples", "items that are tuples", "a key that is a list"],
)
def test_numbers_of_one_hash_do_not_hang(value, forest_file):
    """Sets and dicts of such compare each with each: a hundred thousand of them for minutes."""
    assert len({hash(i * PERIOD) for i in range(100)}) == 1

    def change(content):
        content["predictor"]["classes"] = value

    assert_refused(rewritten(forest_file, change_json=change), match="beyond 64 bits|text or numbers")


def test_levels_of_one_hash_do_not_hang(forest_file):
    def change(content):
        content["predictor"]["schema"]["levels"][2] = [i * PERIOD for i in range(60_000)]

    assert_refused(rewritten(forest_file, change_json=change), match="beyond 64 bits")


def test_trees_that_share_arrays_are_not_checked_for_ever():
    """Each takes a line of JSON, and as long to check as its arrays are."""
    tree = saved_models.fit("cart numbers")[0].tree_.arrays
    found = read_again([replace(tree) for _ in range(3)])
    assert found[0].threshold is found[2].threshold  # not a copy each
    with pytest.raises(BrokenFileError, match="more than the arrays have room for"):
        read_again([replace(tree) for _ in range(5000)])


def test_objects_that_share_columns_are_not_checked_for_ever():
    """Each takes a line of JSON, and as long to check as the table has columns."""
    X = np.zeros((20, 2000))
    X[:, 0] = np.arange(20)
    predictor = RandomForestRegressor(n_estimators=1, max_depth=1).fit(X, np.arange(20.0)).predictor()
    found = read_again([replace(predictor) for _ in range(100)])
    assert found[0].schema is found[99].schema
    with pytest.raises(BrokenFileError, match="columns are more than the arrays have room for"):
        read_again([replace(predictor) for _ in range(5000)])


def read_again(value):
    writer = Writer(KINDS)
    content = writer.write(value, "")
    return Reader(KINDS, writer.all_arrays()).read(content)


@pytest.mark.parametrize("name", ["forest_", "n_features_in_", "_schema", "classes_"])
def test_an_estimator_without_an_attribute_is_refused(name, forest_file):
    def change(content):
        fitted = dict(content["estimator"]["fitted"]["items"])
        del fitted[name]
        content["estimator"]["fitted"]["items"] = [[key, value] for key, value in fitted.items()]

    with pytest.raises(BrokenFileError):
        load_model(rewritten(forest_file, change_json=change))


def test_json_that_would_fill_the_memory_is_refused(forest_file):
    def change(content):
        content["predictor"] = [[]] * 1_000_000

    assert_refused(rewritten(forest_file, change_json=change), match="too many")


def test_a_single_class_is_certain_whatever_the_score():
    X = np.arange(8.0).reshape(-1, 1)
    model = GradientBoostingClassifier(n_estimators=2).fit(X, ["one"] * 8)
    assert model.predict(X, init_score=np.full(8, 50.0)).tolist() == ["one"] * 8


def test_a_model_of_no_rounds_answers():
    model, X = saved_models.fit("boosting numbers")
    predictor = replace(model.predictor(), n_rounds=0)
    predictor.check()
    row = np.nan_to_num(predictor.encode(X)[0])
    assert predictor(row) == predictor.predict(X)[0]


def test_a_number_of_classes_is_no_boolean(tmp_path):
    path = tmp_path / "model.spn"
    model, _ = saved_models.fit("cart one class")
    model.save_model(path)

    def change(content):
        content["predictor"]["tree"]["n_classes"] = True

    assert_refused(rewritten(path, change_json=change), match="whole numbers")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("n_features_in_", 0, "has columns"), ("_fitted", [ID3Classifier()] * 3, "a member is")],
)
def test_a_model_has_columns_and_fitted_members(name, value, words, tmp_path):
    model, _ = saved_models.fit("adaboost id3")
    if name == "_fitted":
        value = replace(model._fitted, others=VotingEstimators(value))
    setattr(model, name, value)
    with pytest.raises(BrokenFileError, match=words):
        model._check_fitted()
    with pytest.raises(ValueError, match=words):  # what could not be loaded is not written
        model.save_model(tmp_path / "model.spn")


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("bagging numbers", "_bags"),
        ("bagging c45", "_bags"),
        ("bagging c45", "_members"),
        ("adaboost id3", "_members"),
        ("adaboost id3", "estimator_weights_"),
    ],
)
def test_a_model_has_all_that_predicting_asks_for(name, missing, tmp_path):
    path = tmp_path / "model.spn"
    saved_models.fit(name)[0].save_model(path)

    def change(content):
        pairs = content["estimator"]["fitted"]["items"]
        pairs[:] = [pair for pair in pairs if pair[0] != missing]

    with pytest.raises(BrokenFileError, match=r"fitted|has |refers to none"):
        load_model(rewritten(path, change_json=change))


def test_members_vote_for_classes_of_the_model(tmp_path):
    model, X = saved_models.fit("bagging c45")
    path = tmp_path / "model.spn"
    model.save_model(path)
    for classes in (["ash", "cedar"], ["birch", "ash"], ["ash"]):

        def change(content, classes=classes):
            pairs = dict(content["estimator"]["fitted"]["items"])
            pairs["classes_"] |= {"items": classes, "shape": [len(classes)]}
            pairs["n_classes_"] = len(classes)
            content["estimator"]["fitted"]["items"] = [list(pair) for pair in pairs.items()]

        with pytest.raises(BrokenFileError, match=r"a member has other classes than the model|classes_ must be"):
            load_model(rewritten(path, change_json=change))
    assert load_model(path).predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("name", ["adaboost id3", "bagging c45", "adaboost", "forest", "boosting", "c45"])
def test_classifiers_say_how_many_classes_they_know(name, tmp_path):
    path = tmp_path / "model.spn"
    saved_models.fit(name)[0].save_model(path)
    for lost in ("n_classes_", "classes_"):

        def change(content, lost=lost):
            fitted = content["estimator"]["fitted"]
            fitted["items"] = [[key, value] for key, value in fitted["items"] if key != lost]

        with pytest.raises(BrokenFileError):
            load_model(rewritten(path, change_json=change))
