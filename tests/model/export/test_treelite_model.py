"""Exports to Treelite, asked by its reference runtime."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest

import spinney
from export_cases import NAMES, fitted, table_of, truth_of

REFUSED = {
    "cart surrogates": "surrogates",
    "cart linear": "linear leaves",
    "c45": "several branches",
    "c45 named": "several branches",
    "c45 smoothed": "several branches",
    "adaboost numbers": "'median'",
    "boosting quantiles": "'sort'",
}
SOFTMAX = {"adaboost classes", "boosting classes"}  # which the runtime has in float32


@pytest.fixture
def treelite():
    pytest.importorskip("treelite.gtil", reason="treelite is not installed")
    return pytest.importorskip("treelite")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_treelite_answers_as_the_model(name, treelite):
    model, rows = fitted(name)
    exported = spinney.export(model, "treelite")
    values = model.predictor().encode(table_of(model, rows)).astype(np.float64)
    found = treelite.gtil.predict(treelite.Model.deserialize_bytes(exported.content), values)[:, 0]
    expected, _ = truth_of(model, rows)
    if found.shape[1] < expected.shape[1]:
        found = np.concatenate([1.0 - found, found], axis=1)
    tolerance = 1e-6 if name in SOFTMAX else 1e-13
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 100)
    assert exported.difference <= tolerance * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("name", REFUSED)
def test_what_treelite_has_not_is_refused(name, treelite):
    del treelite
    with pytest.raises(ValueError, match=rf"{REFUSED[name]}.*export it to c, python, javascript or json"):
        spinney.export(fitted(name)[0], "treelite")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "treelite", None)
    with pytest.raises(ImportError, match=r"pip install 'spinney\[treelite\]'"):
        spinney.export(fitted("forest")[0], "treelite")


def test_attributes_say_how_the_parts_of_dates_are_made(treelite):
    days = np.datetime64("2024-03-04") + np.arange(0, 600, 25)
    model = spinney.CARTRegressor(max_depth=3).fit(pa.table({"x": np.arange(24.0), "sold": days}), np.arange(24) % 7)
    content = spinney.export(model, "treelite").content
    attributes = json.loads(treelite.Model.deserialize_bytes(content).dump_as_json())["attributes"]
    attributes = json.loads(attributes) if isinstance(attributes, str) else attributes
    assert attributes["dates"] == json.loads(spinney.export(model, "json").content)["dates"]
