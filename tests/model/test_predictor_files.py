"""Files of a predictor alone."""

import json

import pytest

import spinney
from peer_models import read_model, rows_for
from spinney.model.container import BrokenFileError, read, write


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.spn"
    spinney.save_predictor(read_model("lightgbm_linear.txt"), path)
    return path


def rewrite(path, *, arrays=None, version=None, **parts):
    """Change a file, its hash right."""
    container = read(path, is_mapped=False)
    text = dict(container.text)
    text["model"] = json.dumps(json.loads(text["model"]) | parts, sort_keys=True, separators=(",", ":"))
    text["version"] = version or text["version"]
    write(path, container.arrays | (arrays or {}), text)


def test_equal_predictors_are_equal_files(file, tmp_path):
    spinney.save_predictor(spinney.load_predictor(file), tmp_path / "again.spn")
    assert (tmp_path / "again.spn").read_bytes() == file.read_bytes()


def test_a_predictor_of_ours_is_saved_alone(tmp_path):
    model = spinney.RandomForestClassifier(n_estimators=3, random_state=0).fit([[1.0], [2.0], [3.0]], ["a", "b", "b"])
    spinney.save_predictor(model.predictor(), tmp_path / "m.spn")
    assert list(spinney.load_predictor(tmp_path / "m.spn").predict([[1.0], [3.0]])) == list(
        model.predict([[1.0], [3.0]])
    )


def test_files_of_older_versions_have_an_estimator(file):
    rewrite(file, version="1.2")
    with pytest.raises(BrokenFileError, match=r"a predictor without an estimator is of version 1\.3"):
        spinney.load_predictor(file)


@pytest.mark.parametrize("method", ["VotePredictor", "CARTClassifier", ""])
def test_the_kind_of_predictor_is_the_one_named(file, method):
    rewrite(file, method=method)
    with pytest.raises(BrokenFileError, match="the predictor is not the"):
        spinney.load_predictor(file)


def test_nothing_else_is_in_the_file(file):
    import numpy as np

    rewrite(file, arrays={"more": np.zeros(3)})
    with pytest.raises(BrokenFileError, match="'more' is no part of the model"):
        spinney.load_predictor(file)


def test_a_file_of_nothing_is_refused(file):
    rewrite(file, predictor=None, summary={})
    with pytest.raises(BrokenFileError):
        spinney.load_predictor(file)


def test_linear_terms_beyond_the_table_are_refused(file):
    container = read(file, is_mapped=False)
    name = next(name for name in container.arrays if name.endswith("linear.feature"))
    rewrite(file, arrays={name: container.arrays[name] + 100})
    with pytest.raises(BrokenFileError, match="is no number of the table"):
        spinney.load_predictor(file)


def test_rows_are_predicted_by_the_file(file):
    assert spinney.load_predictor(file).predict(rows_for("lightgbm_linear.txt")).shape == (60,)
