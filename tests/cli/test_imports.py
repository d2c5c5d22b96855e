"""`spinney import`, and what becomes of its files."""

import json

import numpy as np
import pytest

import spinney
from command_line import fails, run, works
from peer_models import FOLDER, expected_of, rows_for
from spinney.cli.imports import LIBRARIES


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.spn"
    told = works("import", FOLDER / "xgboost_frame.json", "--from", "xgboost", "--out", path)
    assert told.startswith(f"{path}: 6 features, numbers, 4 trees, ")
    return path


@pytest.mark.parametrize("name", ["xgboost_classes.ubj", "lightgbm_classes.txt", "catboost_classes.json"])
def test_every_library_is_read(name, tmp_path):
    out = tmp_path / "model.spn"
    library = name.partition("_")[0]
    assert library in LIBRARIES
    told = json.loads(works("import", FOLDER / name, "--from", library, "--out", out, "--json"))
    assert (told["from"], told["classes"], told["file"]) == (library, 3, str(out))
    assert told["trees"] == 12
    predictor = spinney.load_predictor(out)
    np.testing.assert_allclose(predictor.predict_proba(rows_for(name)), expected_of(name), rtol=3e-6)


def test_the_file_predicts_as_any_other(model, tmp_path):
    import pyarrow.csv

    X = rows_for("xgboost_frame.json")
    pyarrow.csv.write_csv(X, tmp_path / "rows.csv")
    lines = works("predict", model, tmp_path / "rows.csv").splitlines()[1:]
    np.testing.assert_allclose([float(line) for line in lines], expected_of("xgboost_frame.json"), rtol=3e-6, atol=3e-6)


def test_the_file_is_inspected_shown_and_exported(model, tmp_path):
    told = works("inspect", model)
    assert "RoundPredictor" in told
    assert "not in the file, which holds a predictor alone" in told
    facts = json.loads(works("inspect", model, "--json"))
    assert (facts["trees"], facts["rounds_that_predict"], facts["format"]) == (4, 4, "1.3")
    assert facts["parameters"] == {}
    assert "RoundPredictor: 8 leaves in tree 1 of 4" in works("tree", model, "--tree", "1")
    told = works("export", model, "--to", "sql", "--out", tmp_path / "m.sql")
    assert told.endswith("the same as the model on 200 rows\n")


def test_refusals_are_one_line(model, tmp_path):
    fails(run("import", FOLDER / "xgboost_frame.json", "--from", "xgboost", "--out", model), "exists; --force")
    works("import", FOLDER / "xgboost_frame.json", "--from", "xgboost", "--out", model, "--force")
    out = tmp_path / "other.spn"
    fails(
        run("import", FOLDER / "lightgbm_dart.txt", "--from", "xgboost", "--out", out), "is no sound model of XGBoost"
    )
    fails(run("import", FOLDER / "xgboost_frame.json", "--from", "lightgbm", "--out", out), "first line is not 'tree'")
    text = (FOLDER / "lightgbm_dart.txt").read_text().replace("objective=regression", "objective=multiclassova")
    (tmp_path / "m.txt").write_text(text)
    fails(run("import", tmp_path / "m.txt", "--from", "lightgbm", "--out", out), "'multiclassova' is not read")
    fails(run("import", tmp_path / "none.txt", "--from", "lightgbm", "--out", out), "none.txt")
    fails(run("prune", model, "--method", "pessimistic", "--out", out), "holds a predictor without an estimator")
    assert not out.exists()
