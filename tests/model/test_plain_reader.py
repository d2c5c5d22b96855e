"""The reader that the page on the format gives, against ours: what is written there is enough to read a file."""

import re
from pathlib import Path

import numpy as np
import pytest

import plain_reader
import saved_models
import spinney

DOCS = Path(__file__).resolve().parents[2] / "docs" / "model-files.md"


def test_fault_107_the_documented_reader_reads_our_files_byte_by_byte(tmp_path):
    code = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
    reader = {}
    exec(code, reader)
    path = tmp_path / "model.spn"
    for name in ("boosting", "boosting numbers", "boosting huber"):
        model, X = saved_models.fit(name)
        model.save_model(path)
        values = model.predictor().encode(X)
        values = values[~np.isnan(values).any(axis=1)]
        raw = model.predictor().sum_rounds(values)[0]
        assert [reader["predict"](path, row.tolist()) for row in values] == raw.tolist()


def test_the_first_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)[0]
    names = {}
    exec(code, names)
    np.testing.assert_array_equal(names["ask"].predict(names["X"]), names["model"].predict(names["X"]))


@pytest.mark.parametrize("name", [name for name in saved_models.MODELS if name not in saved_models.OF_SEVERAL_KINDS])
def test_the_page_says_all_that_a_reader_needs(name, tmp_path):
    """Every kind of model, through a reader that knows the page alone."""
    model, X = saved_models.fit(name)
    model.save_model(tmp_path / "model.spn")
    predictor = spinney.load_predictor(tmp_path / "model.spn")
    values = predictor.encode(X)
    file = plain_reader.File(tmp_path / "model.spn")
    found = [plain_reader.answer(file.predictor, row.tolist()) for row in values]
    np.testing.assert_allclose(found, predictor(values), rtol=1e-9, atol=1e-12)
    if predictor.classes is not None:
        assert file.predictor["classes"] == predictor.classes.tolist()
    levels = [None if column is None else list(column) for column in predictor.schema.levels]
    assert file.predictor["schema"]["levels"] == levels
