"""Save a model, open it again, and predict single rows without the rest of the library."""

import tempfile
from pathlib import Path

import numpy as np

from spinney import BrokenFileError, GradientBoostingClassifier, datasets, load_model, load_predictor

table = datasets.load("german_credit")
X, y = table.drop_columns(["class"]), table["class"].to_pylist()
model = GradientBoostingClassifier(random_state=0).fit(X, y)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "loans.spn"
    model.save_model(path)
    same = load_model(path)  # an estimator as before, to the last bit
    predictor = load_predictor(path)  # what predicts, without scikit-learn
    print(f"{path.name}: {path.stat().st_size // 1024} kB, {same.n_estimators_} rounds")
    assert (same.predict_proba(X) == model.predict_proba(X)).all()

    one = predictor.encode(X.slice(0, 1))[0]  # values as the trees read them: a category is the number of its level
    print(f"first row: {dict(zip(predictor.classes.tolist(), predictor(one).round(3).tolist(), strict=True))}")
    assert np.array_equal(predictor(one), model.predict_proba(X)[0])

    # A damaged file is refused, never run: opening a stranger's file is safe.
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    broken = Path(folder) / "broken.spn"
    broken.write_bytes(damaged)
    try:
        load_model(broken)
    except BrokenFileError as error:
        print(f"refused: {str(error).rpartition(f'{broken}: ')[2]}")
    else:
        raise AssertionError("a damaged file was opened")
