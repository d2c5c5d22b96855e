"""Files that XGBoost, LightGBM and CatBoost wrote: predictions are theirs, and all that a predictor can do works."""

import json

import numpy as np
import pytest

import spinney
from peer_models import (
    FOLDER,
    TOLERANCE,
    answer,
    expected_of,
    list_models,
    read_model,
    rows_for,
    write_xgboost_tree,
)
from spinney.model.imports.float32_cuts import cut_rounded_below
from spinney.model.imports.foreign_file import NotImportedError
from spinney.model.imports.xgboost_model import read_categories


@pytest.mark.parametrize("name", list_models())
def test_predictions_are_those_of_the_library(name):
    predictor, X, expected = read_model(name), rows_for(name), expected_of(name)
    library = name.partition("_")[0]
    found = answer(predictor, X, expected)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE[library], atol=TOLERANCE[library])
    assert len(np.unique(expected)) > 5, "a model that says the same of all rows shows nothing"


@pytest.mark.parametrize("name", list_models())
def test_files_one_row_and_pictures(name, tmp_path):
    predictor, X = read_model(name), rows_for(name)
    values = predictor.encode(X)
    answers = predictor.answer(values)
    path = tmp_path / "model.spn"
    spinney.save_predictor(predictor, path)
    loaded = spinney.load_predictor(path)
    np.testing.assert_array_equal(loaded.answer(values), answers)
    for row, said in zip(values[:5], answers[:5], strict=True):
        np.testing.assert_array_equal(predictor(row), said)
    assert predictor.predict_trees(X).shape == (len(predictor.forest), len(values))
    raw = (
        predictor.start[:, None]
        + np.add.reduceat(
            predictor.predict_trees(X).reshape(-1, predictor.n_raw, len(values)).swapaxes(0, 1), [0], axis=1
        )[:, 0]
    )
    np.testing.assert_allclose(predictor.respond(np.ascontiguousarray(raw)), answers, rtol=1e-12, atol=1e-15)
    assert predictor.feature_importances.sum() == pytest.approx(1.0)
    tree = predictor.forest[0]
    assert tree.to_text().count("\n") == tree.n_nodes - 1
    assert tree.to_svg().startswith("<svg")
    assert len(tree.to_rules()) == tree.n_leaves
    with pytest.raises(ValueError, match="holds a predictor without an estimator: open it with"):
        spinney.load_model(path)


@pytest.mark.parametrize("to", ["sql", "python", "c", "javascript", "json"])
@pytest.mark.parametrize(
    "name", ["xgboost_frame.json", "xgboost_dart.ubj", "lightgbm_binary.txt", "catboost_classes.json"]
)
def test_exports_are_the_same_model(name, to):
    exported = spinney.export(read_model(name), to, X=rows_for(name))
    assert exported.difference in {0.0, None}
    assert exported.difference == 0.0 or to in {"c", "javascript"}  # which need a compiler, or node


def test_linear_leaves_are_exported_but_to_what_adds_up_no_terms():
    predictor, X = read_model("lightgbm_linear.txt"), rows_for("lightgbm_linear.txt")
    assert spinney.export(predictor, "python", X=X).difference == 0.0
    assert predictor.forest.linear.n_terms > 0
    with pytest.raises(ValueError, match="sums of trees with linear leaves are not written in SQL"):
        spinney.export(predictor, "sql")
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        predictor.predict(X)


@pytest.mark.parametrize("name", ["xgboost_frame.json", "lightgbm_linear.txt", "catboost_classes.json"])
def test_imported_models_explain_themselves(name):
    predictor, X = read_model(name), rows_for(name)
    found = spinney.shap_values(predictor, X)
    assert found.relative_difference < 1e-9
    of_each = [found] if found.values.ndim == 2 else [found.of(k) for k in found.outputs]
    raw = predictor.sum_rounds(predictor.encode(X), None, 1)
    for one, scores in zip(of_each, raw, strict=True):
        np.testing.assert_allclose(one.values.sum(axis=1) + one.base, scores, rtol=1e-9, atol=1e-12)
    assert np.abs(found.values).max() > 0.01


def test_sparse_rows_go_through_linear_leaves():
    sparse = pytest.importorskip("scipy.sparse")
    predictor = read_model("lightgbm_linear.txt")
    X = np.nan_to_num(rows_for("lightgbm_linear.txt"))
    np.testing.assert_array_equal(predictor.predict(sparse.csr_array(X)), predictor.predict(X))
    np.testing.assert_array_equal(predictor.predict_trees(sparse.csr_array(X)), predictor.predict_trees(X))


def test_xgboost_margins_are_its_own_to_the_bit_of_float32():
    """Leaves added up in float32, as XGBoost does, give its predictions: every row is in its leaf."""
    for name in ("xgboost_regression.json", "xgboost_frame.json", "xgboost_pruned.json", "xgboost_quantile.json"):
        predictor, X = read_model(name), rows_for(name)
        total = np.full(len(X), predictor.start[0], np.float32)
        for said in predictor.predict_trees(X):
            total += said.astype(np.float32)
        np.testing.assert_array_equal(total, expected_of(name).astype(np.float32))


# --- what a file says ---------------------------------------------------------------------------------------------


def change(name, tmp_path, *edits):
    """A JSON file with parts replaced: (path of names, value)."""
    content = json.loads((FOLDER / name).read_text())
    for path, value in edits:
        part = content
        for key in path[:-1]:
            part = part[key]
        if value is None:
            del part[path[-1]]
        else:
            part[path[-1]] = value
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(content))
    return file


PARAMS = ("learner", "learner_model_param")
TREE = ("learner", "gradient_booster", "model", "trees", 0)


@pytest.mark.parametrize(
    ("edits", "match"),
    [
        ([(("learner", "gradient_booster", "name"), "gblinear")], "the booster 'gblinear' is not read"),
        ([(("learner", "objective", "name"), "binary:hinge")], "the objective 'binary:hinge' is not read"),
        ([((*PARAMS, "num_target"), "2")], "several targets or quantiles"),
        ([((*PARAMS, "num_class"), "3")], "num_class=3 is not read"),
        ([((*TREE, "tree_param", "size_leaf_vector"), "3")], "a vector in each leaf"),
        ([((*TREE, "split_type", 0), 2)], "a split_type beyond numbers and categories"),
    ],
)
def test_xgboost_refuses_by_name(edits, match, tmp_path):
    with pytest.raises(NotImportedError, match=match):
        spinney.from_xgboost(change("xgboost_binary.json", tmp_path, *edits))


@pytest.mark.parametrize(
    ("edits", "match"),
    [
        ([((*TREE, "left_children", 0), 99)], "a branch leads out of the tree"),
        ([((*TREE, "left_children", 1), 0)], "two branches lead to the same node"),
        ([((*TREE, "left_children", 1), 2)], "two branches lead to the same node"),
        ([((*TREE, "split_indices", 0), 6)], "column 6 of 6|of no column"),
        ([((*TREE, "split_conditions", 0), "x")], "split_conditions must be numbers"),
        ([((*TREE, "split_conditions"), [1.0])], "an entry for each node"),
        ([((*TREE, "categories_segments", 0), 10**6)], "go beyond their list"),
        ([((*PARAMS, "base_score"), "[1,2]")], "is not 1 finite numbers"),
        ([((*PARAMS, "base_score"), "1.5")], "none of binary:logistic"),
        ([((*PARAMS, "num_feature"), "99999999999")], "num_feature"),
        ([(("learner", "gradient_booster", "model", "tree_info", 0), 1)], "tree_info"),
        ([(("learner",), None)], "it has no learner"),
    ],
)
def test_damaged_xgboost_files_say_what_is_wrong(edits, match, tmp_path):
    with pytest.raises(spinney.BrokenFileError, match=match) as caught:
        spinney.from_xgboost(change("xgboost_binary.json", tmp_path, *edits))
    assert "\n" not in str(caught.value)
    assert "changed.json is no sound model of XGBoost" in str(caught.value)


def test_the_best_iteration_predicts_where_there_is_one(tmp_path):
    whole = read_model("xgboost_regression.json")
    early = spinney.from_xgboost(
        change("xgboost_regression.json", tmp_path, (("learner", "attributes"), {"best_iteration": "1"}))
    )
    X = rows_for("xgboost_regression.json")
    assert (whole.n_rounds, early.n_rounds) == (4, 2)
    np.testing.assert_allclose(early.predict(X), whole.start[0] + whole.predict_trees(X)[:2].sum(axis=0), rtol=1e-14)


def test_a_model_without_trees_says_its_base_score(tmp_path):
    model = ("learner", "gradient_booster", "model")
    file = change("xgboost_regression.json", tmp_path, ((*model, "trees"), []), ((*model, "tree_info"), []))
    np.testing.assert_allclose(spinney.from_xgboost(file).predict([[0.0] * 4]), 0.08, atol=1)


def test_codes_of_xgboost_that_no_set_has_go_left_and_missing_ones_where_the_node_says(tmp_path):
    tree = {
        "left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0],
        "split_conditions": [0.0, -1.0, 1.0], "default_left": [0, 0, 0], "split_type": [1, 0, 0],
        "categories": [2], "categories_nodes": [0], "categories_segments": [0], "categories_sizes": [1],
        "tree_param": {"size_leaf_vector": "1"},
    }  # fmt: skip
    file = write_xgboost_tree(tree, tmp_path / "codes.json")
    X = [[0.0], [2.0], [63.0], [66.0], [np.nan]]
    np.testing.assert_array_equal(spinney.from_xgboost(file).predict(X), [-1.0, 1.0, -1.0, -1.0, 1.0])


def test_names_of_categories_that_xgboost_cut_are_not_taken_for_others():
    """Names of pandas are counted in letters: "café" and "thé" then stand as here. Names of Arrow are whole."""
    cut = {"offsets": [0, 4, 7], "values": [99, 97, 102, -61, -87, 116, 104]}
    with pytest.raises(NotImportedError, match=r"column 0 are cut in the middle of a letter.* pyarrow"):
        read_categories({"enc": [cut]})
    whole = list("xé日".encode())
    with pytest.warns(UserWarning, match="column 0 have letters beyond ASCII"):
        assert read_categories({"enc": [{"offsets": [0, 1, 3, 6], "values": whole}]}) == {0: ["x", "é", "日"]}
    assert read_categories({"enc": [{"offsets": [0, 1, 3], "values": list(b"xab")}]}) == {0: ["x", "ab"]}


def test_thresholds_of_xgboost_are_strict():
    predictor = read_model("xgboost_regression.json")
    content = json.loads((FOLDER / "xgboost_regression.json").read_text())
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    cut = np.float32(tree["split_conditions"][0])
    assert predictor.forest[0].threshold[0] == cut_rounded_below(np.array([cut]))[0] < cut


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (
            "objective=binary sigmoid:0.7",
            "objective=multiclassova num_class:3 sigmoid:1",
            "'multiclassova' is not read",
        ),
        ("objective=binary sigmoid:0.7", "objective=regression sqrt", "reg_sqrt"),
        ("version=v4", "version=v9", "the version 'v9' is not read"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=2", "num_tree_per_iteration=2 is not read"),
        ("pandas_categorical:null", 'pandas_categorical:[["a"]]', "which belong together it does not say"),
    ],
)
def test_lightgbm_refuses_by_name(old, new, match, tmp_path):
    text = (FOLDER / "lightgbm_binary.txt").read_text()
    assert old in text
    file = tmp_path / "model.txt"
    file.write_text(text.replace(old, new))
    with pytest.raises(NotImportedError, match=match):
        spinney.from_lightgbm(file)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("end of trees", "end", "it was cut off"),
        ("tree\n", "", "its first line is not 'tree'"),
        ("num_leaves=7", "num_leaves=8", "a tree of 8 leaves"),
        ("left_child=2 ", "left_child=0 ", "lead to the same node"),
        ("left_child=2 ", "left_child=77 ", "out of the tree"),
        ("cat_boundaries=0 ", "cat_boundaries=9 ", "beyond its words"),
        ("max_feature_idx=5", "max_feature_idx=6", "feature_infos tells of 6 columns"),
    ],
)
def test_damaged_lightgbm_files_say_what_is_wrong(old, new, match, tmp_path):
    text = (FOLDER / "lightgbm_binary.txt").read_text()
    assert old in text
    file = tmp_path / "model.txt"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(spinney.BrokenFileError, match=match):
        spinney.from_lightgbm(file)


def test_lines_may_end_as_on_windows(tmp_path):
    file = tmp_path / "model.txt"
    file.write_bytes((FOLDER / "lightgbm_binary.txt").read_bytes().replace(b"\n", b"\r\n"))
    X = rows_for("lightgbm_binary.txt")
    np.testing.assert_array_equal(spinney.from_lightgbm(file).predict(X), read_model("lightgbm_binary.txt").predict(X))


@pytest.mark.parametrize(
    ("edits", "match"),
    [
        ([(("model_info", "params", "loss_function", "type"), "RMSEWithUncertainty")], "'RMSEWithUncertainty' is not"),
        ([(("features_info", "categorical_features"), [{"feature_id": "k"}])], r"categorical_features \(k\) are not"),
        ([(("oblivious_trees", 0, "splits", 0, "split_type"), "OnlineCtr")], "tests of 'OnlineCtr' are not read"),
        ([(("features_info", "float_features", 0, "nan_value_treatment"), "AsX")], "a nan_value_treatment beyond"),
        ([(("scale_and_bias",), [1, [0, 0]])], "the loss RMSE with 2 scores is not read"),
    ],
)
def test_catboost_refuses_by_name(edits, match, tmp_path):
    with pytest.raises(NotImportedError, match=match):
        spinney.from_catboost(change("catboost_regression.json", tmp_path, *edits))


@pytest.mark.parametrize(
    ("edits", "match"),
    [
        ([(("oblivious_trees", 0, "leaf_values"), [1.0])], "a tree of depth 3 has 8 leaves"),
        ([(("oblivious_trees", 0, "splits", 0, "float_feature_index"), 9)], "float_feature_index is 9"),
        ([(("oblivious_trees",), [])], "there are no trees"),
        ([(("features_info", "float_features", 1, "flat_feature_index"), 0)], "two features have one"),
    ],
)
def test_damaged_catboost_files_say_what_is_wrong(edits, match, tmp_path):
    with pytest.raises(spinney.BrokenFileError, match=match):
        spinney.from_catboost(change("catboost_regression.json", tmp_path, *edits))


@pytest.mark.parametrize("read", [spinney.from_xgboost, spinney.from_lightgbm, spinney.from_catboost])
def test_what_is_no_model_is_refused(read, tmp_path):
    with pytest.raises(TypeError, match="is neither a file nor a model of"):
        read(3)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.json")
    for content in (b"", b"{", b"tree", b"{}", b"[1, 2]", b"\xff\xfe"):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(spinney.BrokenFileError):
            read(tmp_path / "bad")


class Booster:
    """What the classes of the libraries have that the readers ask for."""

    tree_count_ = 4
    classes_ = np.array(["no", "yes"])

    def __init__(self, name):
        self.name = name

    def save_raw(self, form):
        assert form == "ubj"
        return bytearray((FOLDER / self.name).read_bytes())

    def model_to_string(self):
        return (FOLDER / self.name).read_text()

    def save_model(self, path, format):  # noqa: A002
        assert format == "json"
        from pathlib import Path

        Path(path).write_bytes((FOLDER / self.name).read_bytes())


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (spinney.from_xgboost, "xgboost_base.ubj"),
        (spinney.from_lightgbm, "lightgbm_binary.txt"),
        (spinney.from_catboost, "catboost_binary.json"),
    ],
)
def test_models_in_memory_are_read_as_their_files(read, name):
    X = rows_for(name)
    predictor = read(Booster(name))
    np.testing.assert_array_equal(predictor.predict_proba(X), read_model(name).predict_proba(X))
    if read is spinney.from_lightgbm:
        assert set(predictor.predict(X)) == {"no", "yes"}


def test_a_predictor_alone_is_told_from_others():
    with pytest.raises(TypeError, match="`predictor\\(\\)` of a fitted model gives one"):
        spinney.save_predictor(3, "x.spn")
