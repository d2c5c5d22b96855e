"""`spinney inspect`: what it says is what the estimator says, and it needs no scikit-learn."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import saved_models
import spinney
from command_line import works
from spinney.cli.output import as_plain

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted(GOLDEN.glob("*/*.spn"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_facts_are_those_of_the_estimator(path):
    facts = json.loads(works("inspect", path, "--json"))
    model = spinney.load_model(path, losses=saved_models.LOSSES)
    assert facts["method"] == type(model).__name__
    assert facts["classes"] == (model.classes_.tolist() if hasattr(model, "classes_") else None)
    told = [feature["importance"] for feature in facts["features"]]
    if hasattr(model, "feature_importances_"):
        np.testing.assert_allclose(told, model.feature_importances_, rtol=1e-14)
    assert facts["rounds_that_predict"] == getattr(model, "best_iteration_", None)
    assert facts["out_of_bag_score"] == getattr(model, "oob_score_", None)
    stored = {name: value for name, value in model.get_params(deep=False).items() if name in facts["parameters"]}
    for name, value in facts["parameters"].items():
        if name == "loss" and not isinstance(stored[name], str):
            assert value == stored[name][0].__name__
        else:
            assert value == as_plain(stored[name])
    assert f"method{' ' * 4}" in (text := works("inspect", path)), text
    if getattr(model, "pruning_", None) is not None:
        assert model.pruning_.title in text


BLOCKED = """
import sys

class NoScikitLearn:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "scipy", "joblib"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, NoScikitLearn())
from spinney.cli import main

main(["inspect", sys.argv[1], *sys.argv[2:]])
"""


@pytest.mark.parametrize("stem", ["cart_surrogates", "c45_named", "boosting_classes", "bagging"])
def test_inspect_works_without_scikit_learn(stem):
    path = next(path for path in FILES if path.stem == stem)
    command = [sys.executable, "-c", BLOCKED, path, "--json"]
    blocked = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert blocked == json.loads(works("inspect", path, "--json"))
    shown = subprocess.run(command[:-1], check=True, capture_output=True, text=True).stdout
    assert blocked["method"] in shown
    assert "random_state=" in shown  # every parameter is told where nothing says what the defaults are
