"""Files that are damaged at random: a reader raises its own errors, or gives a predictor that predicts."""

import random

import numpy as np
import pytest

import spinney
from peer_models import FOLDER, READERS, list_models, rows_for, write_xgboost_tree
from spinney.model.imports.foreign_file import NotImportedError
from spinney.model.imports.ubjson import parse_ubjson

N_TRIALS = 40
DIGITS = b'0123456789.-eE,:[]{}" nulltrue=\n'


def damage(data, rng):
    """The bytes with a few of them changed, cut, moved or repeated."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                data[at] = rng.choice(DIGITS)
            case 2:
                del data[at : at + rng.choice([1, 2, 8, 200])]
            case 3:
                data[at:at] = data[at : at + rng.choice([1, 5, 100])]
            case 4:
                data[at:at] = rng.choice([b"9", b"-", b"99999999", b"1e400", b"NaN", b"\x00", b"[[[[", b'{"a":'])
            case 5 if rng.random() < 0.2:
                del data[at:]
        if not data:
            return b" "
    return bytes(data)


@pytest.mark.parametrize("name", list_models())
def test_damaged_files_are_refused_or_predict(name, tmp_path):
    read = READERS[name.partition("_")[0]]
    data = (FOLDER / name).read_bytes()
    file = tmp_path / name
    rng = random.Random(name)
    refused = []
    for _ in range(N_TRIALS):
        file.write_bytes(damage(data, rng))
        try:
            predictor = read(file)
        except (spinney.BrokenFileError, NotImportedError) as error:
            refused.append(str(error))
            continue
        predictor.check()
        n = predictor.n_features
        values = np.random.default_rng(0).normal(size=(40, n)) * 3
        predictor(values)
        predictor(np.full(n, np.nan))
    assert len(refused) > N_TRIALS // 10
    assert all(len(message) < 1000 for message in refused)


@pytest.mark.parametrize(
    "name", ["xgboost_binary.json", "lightgbm_linear.txt", "catboost_binary.json", "xgboost_dart.ubj"]
)
def test_files_that_were_cut_off_are_refused(name, tmp_path):
    data = (FOLDER / name).read_bytes()
    end = data.index(b"end of trees") if name.endswith(".txt") else len(data) - 2
    for at in np.linspace(0, end, 60).astype(int).tolist():
        (tmp_path / name).write_bytes(data[:at])
        with pytest.raises(spinney.BrokenFileError):
            READERS[name.partition("_")[0]](tmp_path / name)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b"{" + b"i\x01a{" * 1000,
        b"[$d#L" + (1 << 60).to_bytes(8, "big"),
        b"[#L" + (1 << 60).to_bytes(8, "big") + b"Z",
        b"[$Z#l" + (1 << 30).to_bytes(4, "big"),
        b"[$d#i\xff",
        b"{i\x01ai\x01i\x01ai\x01}",
        b"[$i",
        b"q",
        b"Si\x02\xff\xfe",
        b"i",
        b"TT",
    ],
)
def test_hostile_ubjson_is_refused(data):
    with pytest.raises(spinney.BrokenFileError):
        parse_ubjson(data)


def test_ubjson_is_read():
    data = (
        b"{i\x01a[$U#i\x03\x01\x02\x03i\x01b[i\x05Si\x02hiTFZCx]i\x01c[#i\x01d\x3f\x80\x00\x00i\x01d{#i\x01i\x01eN[]}"
    )
    found = parse_ubjson(data)
    np.testing.assert_array_equal(found.pop("a"), [1, 2, 3])
    assert found == {"b": [5, "hi", True, False, None, "x"], "c": [1.0], "d": {"e": []}}


def test_nesting_beyond_reason_is_refused(tmp_path):
    file = tmp_path / "deep.json"
    file.write_bytes(b'{"learner":' * 100_000)
    with pytest.raises(spinney.BrokenFileError, match="the JSON is not valid"):
        spinney.from_xgboost(file)
    tree = b'{"split":{"split_type":"FloatFeature","float_feature_index":0,"border":0},"left":{"value":1},"right":'
    head = b'{"features_info":{"float_features":[{"flat_feature_index":0,"nan_value_treatment":"AsIs"}]},'
    head += b'"model_info":{"params":{"loss_function":{"type":"RMSE"}}},"scale_and_bias":[1,[0]],"trees":['
    for depth, is_read in ((200, True), (100_000, False)):
        file.write_bytes(head + tree * depth + b'{"value":2}' + b"}" * depth + b"]}")
        if is_read:
            assert spinney.from_catboost(file).forest[0].depth == depth
        else:
            with pytest.raises(spinney.BrokenFileError, match="the JSON is not valid"):
                spinney.from_catboost(file)


def test_a_chain_of_thousands_of_tests_is_read(tmp_path):
    n = 5000
    nodes = 2 * n + 1
    left_children, right_children = [-1] * nodes, [-1] * nodes
    at = 0
    for i in range(n):
        left_children[at], right_children[at] = 2 * i + 1, 2 * i + 2
        at = 2 * i + 2
    tree = {
        "left_children": left_children, "right_children": right_children, "split_indices": [0] * nodes,
        "split_conditions": [float(i // 2) for i in range(nodes)], "default_left": [1] * nodes,
        "tree_param": {"size_leaf_vector": "0"},
    }  # fmt: skip
    file = write_xgboost_tree(tree, tmp_path / "chain.json")
    predictor = spinney.from_xgboost(file)
    assert predictor.forest[0].depth == n
    np.testing.assert_array_equal(predictor.predict([[-0.5], [17.5], [1e9]]), [0.0, 18.0, n])


def test_rows_of_a_damaged_model_stay_rows(tmp_path):
    """The damage above reaches what predicts: some files that are read say something else."""
    name = "xgboost_regression.json"
    data, X = (FOLDER / name).read_bytes(), rows_for(name)
    (tmp_path / name).write_bytes(data.replace(b"E-1", b"E-2"))
    changed = spinney.from_xgboost(tmp_path / name).predict(X)
    assert np.isfinite(changed).all()
    assert not np.array_equal(changed, spinney.from_xgboost(FOLDER / name).predict(X))
