"""Files that earlier versions wrote: they load for ever, and say what they said then.

`tests/golden/<version of the format>/` is never changed. A new format adds a folder: run this file with Python.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import saved_models
import spinney

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*/*.spn"))
KEPT = (
    "cart classes", "cart surrogates", "cart linear", "cart named", "id3", "c45 named", "forest hard", "forest named",
    "extra numbers", "bagging", "bagging c45", "adaboost", "adaboost numbers", "boosting", "boosting classes",
    "boosting early", "boosting custom",
)  # fmt: skip


def rows_of(options):
    """Rows to ask about."""
    X, _ = saved_models.make_data(0, **{**options, "seed": 7})
    return X[:9] if isinstance(X, np.ndarray) else X.slice(0, 9)


def what_it_says(model, options):
    """Answers as text: floats by all their digits."""
    X = rows_of(options)
    said = {"predict": model.predict(X).tolist()}
    if hasattr(model, "predict_proba"):
        said["predict_proba"] = model.predict_proba(X).tolist()
    return said


def assert_same(said, kept):
    """The same labels; numbers to the last digits, which `exp` of another processor may change."""
    for name, answers in said.items():
        if np.asarray(answers).dtype.kind == "f":
            np.testing.assert_allclose(answers, kept[name], rtol=1e-14, atol=1e-300)
        else:
            assert answers == kept[name]


def test_there_are_files():
    assert {path.parent.name for path in FILES} == {"1.0"}
    assert {path.stem for path in FILES} == {name.replace(" ", "_") for name in KEPT}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_fault_99_old_files_say_what_they_said(path):
    model = spinney.load_model(path, losses=saved_models.LOSSES)
    kept = json.loads(path.with_suffix(".json").read_text())
    said = what_it_says(model, kept["options"])
    assert_same(said, kept["said"])
    if path.stem != "bagging_c45":
        predictor = spinney.load_predictor(path)
        assert_same({"predict": predictor.predict(rows_of(kept["options"])).tolist()}, kept["said"])


def write(folder):
    """Write the files of this version of the format."""
    folder.mkdir(parents=True)
    for name in KEPT:
        model, _ = saved_models.fit(name)
        path = folder / f"{name.replace(' ', '_')}.spn"
        model.save_model(path)
        options = saved_models.MODELS[name][2]
        kept = {"options": options, "said": what_it_says(model, options)}
        path.with_suffix(".json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    write(GOLDEN / sys.argv[1])
