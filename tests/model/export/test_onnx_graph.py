"""Exports to ONNX: sums to the bit, exponentials within the last places of onnxruntime's own."""

import math
import sys

import numpy as np
import pyarrow as pa
import pytest

import spinney
from export_cases import NAMES, fitted, table_of, truth_of

WITH_EXP = {"adaboost", "adaboost classes"}
WITH_EXP |= {"boosting", "boosting classes", "boosting exponential", "boosting lifetimes"}


@pytest.fixture
def runtime():
    pytest.importorskip("onnx", reason="onnx is not installed")
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def ask(runtime, content, table):
    """What a graph answers to the columns of a table of ours, fed by name."""
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {}
    for j, tensor in enumerate(session.get_inputs()):
        column = table[:, j].tolist() if isinstance(table, np.ndarray) else table[tensor.name].to_pylist()
        if tensor.type == "tensor(string)":
            feed[tensor.name] = np.array([["?" if cell is None else cell] for cell in column], object)
        else:
            feed[tensor.name] = np.array([[math.nan if cell is None else float(cell)] for cell in column])
    found = dict(zip((output.name for output in session.get_outputs()), session.run(None, feed), strict=True))
    if "probabilities" in found:
        return found["probabilities"], found["prediction"].tolist()
    return found["prediction"], None


@pytest.mark.parametrize("name", NAMES)
def test_onnx_answers_as_the_model(name, runtime):
    import onnx

    model, rows = fitted(name)
    exported = spinney.export(model, "onnx")
    onnx.checker.check_model(onnx.load_from_string(exported.content), full_check=True)
    answers, classes = ask(runtime, exported.content, table_of(model, rows))
    expected, predicted = truth_of(model, rows)
    if name in WITH_EXP | {"cart linear"}:
        np.testing.assert_allclose(answers, expected, rtol=1e-14, atol=1e-15)
        assert exported.difference < 1e-14
    else:
        np.testing.assert_array_equal(answers, expected)
        assert exported.difference == 0.0
    assert classes == predicted


def test_subsets_of_many_levels_and_deep_trees(runtime):
    levels = [f"level {k}" for k in range(300)]
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    table = pa.table({"prediction": pa.array(levels * 2), "%": pa.array(np.arange(600.0))})
    model = spinney.CARTRegressor().fit(table, np.tile(y, 2) + np.repeat([0.0, 100.0], 300))
    assert spinney.export(model, "onnx", X=table).difference == 0.0
    x = np.arange(121.0)[:, None]
    deep = spinney.CARTRegressor().fit(x, 4.0 ** x[:, 0])
    assert spinney.export(deep, "onnx", X=x).difference == 0.0
    del runtime


def test_levels_of_one_branch_and_of_numbers(runtime):
    del runtime
    flags = pa.array([True, False] * 8).dictionary_encode()
    table = pa.table(
        {"only": pa.array(["a"] * 16), "flag": flags, "code": pa.array([3, 3, 7, 11] * 4).dictionary_encode()}
    )
    model = spinney.ID3Regressor().fit(table, [1.0, 2.0, 3.0, 4.0] * 4)
    assert spinney.export(model, "onnx", X=table).difference == 0.0


@pytest.mark.parametrize("classes", [[1, 2], [True, False], [1.0, 2.0], ["it's", '"'], [2**60 + 1, 0]])
def test_classes_of_any_kind(classes, runtime):
    del runtime
    model = spinney.CARTClassifier().fit([[1.0], [2.0]] * 3, np.array(classes * 3))
    exported = spinney.export(model, "onnx")
    assert (exported.difference, exported.n_other_classes) == (0.0, 0)


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'spinney\[onnx\]'"):
        spinney.export(fitted("forest")[0], "onnx")


def test_without_a_runtime_it_is_not_run(monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert spinney.export(fitted("forest")[0], "onnx").note == "onnxruntime is not installed"
