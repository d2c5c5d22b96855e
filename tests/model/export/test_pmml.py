"""Exports to PMML, read by a reader of ours, by the schema and by the engine that others are measured by."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney
from export_cases import NAMES, fitted, names_of, plain_cells, truth_of
from pmml_reader import PmmlReader

REFUSED = {
    "cart linear": "linear leaves",
    "c45": "several branches",
    "c45 named": "several branches",
    "c45 smoothed": "several branches",
    "adaboost numbers": "weighted median",
    "boosting quantiles": "several quantiles",
}
WRITTEN = [name for name in NAMES if name not in REFUSED]


def write(model):
    return spinney.export(model, "pmml").content


def records_of(model, rows):
    return [dict(zip(names_of(model), row, strict=True)) for row in plain_cells(rows)]


@pytest.mark.parametrize("name", WRITTEN)
def test_pmml_answers_as_the_model(name):
    model, rows = fitted(name)
    reader = PmmlReader(write(model))
    expected, _ = truth_of(model, rows)
    found = [reader.ask(record) for record in records_of(model, rows)]
    if hasattr(model, "classes_"):
        found = [[shares[str(label)] for label in model.classes_] for shares in found]
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", REFUSED)
def test_what_pmml_cannot_say_is_refused(name):
    with pytest.raises(ValueError, match=rf"{REFUSED[name]}.*export it to c, python, javascript or json"):
        write(fitted(name)[0])


def test_it_is_not_run_here():
    exported = spinney.export(fitted("forest")[0], "pmml")
    assert exported.verdict == "not run here: engines of PMML run outside of Python; compare some rows there"


def test_names_and_levels_are_escaped():
    levels = ['"', "a\\", "'&<>", "]]>", "line\nbreak\r\t", "</Array>", " ", "量"]
    table = pa.table({'<a b="c">&': pa.array(levels * 4), "prediction": np.arange(32.0), "sum 0": np.arange(32.0) % 3})
    y = np.array(['<no>"', "yes&"])[np.arange(8) % 2]
    model = spinney.CARTClassifier().fit(table, np.tile(y, 4))
    reader = PmmlReader(write(model))
    for level, label in zip(levels, y, strict=True):
        shares = reader.ask({'<a b="c">&': level, "prediction": 1.0, "sum 0": 0.0})
        assert max(shares, key=shares.get) == label
    boosted = spinney.GradientBoostingRegressor(n_estimators=2, loss="poisson").fit(table, np.arange(32.0) + 1.0)
    found = PmmlReader(write(boosted)).ask({'<a b="c">&': None, "prediction": 5.0, "sum 0": 1.0})
    row = pa.table({'<a b="c">&': pa.array([None], pa.string()), "prediction": [5.0], "sum 0": [1.0]})
    assert found == pytest.approx(boosted.predict(row)[0], rel=1e-13)


def test_letters_that_xml_has_not_are_refused():
    table = pa.table({"a": pa.array(["x\x01", "y"] * 4)})
    with pytest.raises(ValueError, match=r"'x\\x01' holds '\\x01', which XML has no letter for: rename it, or export"):
        write(spinney.CARTRegressor().fit(table, [1.0, 2.0] * 4))


def test_levels_of_numbers_and_booleans():
    flags = pa.array([True, False] * 8).dictionary_encode()
    table = pa.table({"flag": flags, "code": pa.array([3, 3, 7, 11] * 4).dictionary_encode()})
    model = spinney.CARTRegressor().fit(table, [1.0, 2.0, 3.0, 4.0] * 4)
    reader = PmmlReader(write(model))
    rows = [
        {"flag": True, "code": 3},
        {"flag": False, "code": 3},
        {"flag": True, "code": 7},
        {"flag": False, "code": 11},
    ]
    assert [reader.ask(row) for row in rows] == [1.0, 2.0, 3.0, 4.0]


@pytest.fixture(scope="module")
def engine():
    package = pytest.importorskip("jpmml_evaluator", reason="jpmml_evaluator is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    return package


@pytest.mark.slow
def test_the_documents_are_valid(engine):
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed")
    (jar,) = (Path(engine.__file__).parent / "dependencies").glob("pmml-model-1*.jar")
    with zipfile.ZipFile(jar) as archive:
        schema = xmlschema.XMLSchema(archive.read("pmml.xsd").decode())
    for name in WRITTEN:
        schema.validate(write(fitted(name)[0]))


@pytest.mark.slow
def test_the_reference_engine_answers_as_the_model(engine, tmp_path):
    from jpmml_evaluator.jpype import JPypeBackend

    backend = JPypeBackend()
    for name in WRITTEN:
        model, rows = fitted(name)
        path = tmp_path / "model.pmml"
        path.write_text(write(model), encoding="utf-8")
        evaluator = engine.make_evaluator(str(path), backend=backend).verify()
        expected, predicted = truth_of(model, rows)
        found = [evaluator.evaluate(record) for record in records_of(model, rows)]
        if predicted is None:
            answers = [[row["prediction"]] for row in found]
        else:
            answers = [[row[f"probability({label})"] for label in model.classes_] for row in found]
            assert [row["prediction"] for row in found] == predicted, name
        np.testing.assert_allclose(np.array(answers, float), expected, rtol=1e-13, atol=1e-15, err_msg=name)
