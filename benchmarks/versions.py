"""Is a change as fast as what it changes? Two checkouts, alternating processes, CPU time, best of several.

    python -m benchmarks.versions OLD/src NEW/src [--compile] [--rounds N] [group ...]

Groups: cart, forest, ada, boost, textbook, predict. With `--compile` each row is a first fit with no kernel on disk;
the rows of a group share a process, so that a row pays for what those before it have not compiled. Needs the tables
of `../shared/data`. Both checkouts run in this environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "shared" / "data"
CHILD = """
import json, sys, time, warnings
import numpy as np, pandas as pd
import spinney as S
warnings.simplefilter("ignore")
group, is_compile, folder, out = sys.argv[1], sys.argv[2] == "1", sys.argv[3], sys.argv[4]

def read(name, target):
    x = pd.read_parquet(f"{folder}/{name}.parquet")
    y = x.pop(target)
    for c in x.columns:
        if not pd.api.types.is_numeric_dtype(x[c]):
            x[c] = x[c].astype("category")
    return x, y

r = np.random.default_rng(0)
house, price = read("california_housing", "MedHouseVal")
house, price = house.to_numpy(np.float64), price.to_numpy(np.float64)
adult, letter = read("adult", "income"), read("letter", "lettr")
X = r.normal(size=(60_000, 20))
y = (X[:, 0] + X[:, 1] * X[:, 2] + r.normal(size=len(X)) > 0).astype(int)
one = {"n_jobs": 1}

def forest(kind, n, **more):
    return kind(n_estimators=n, random_state=0, **one, **more)

# what older versions have for defaults
whole = {"learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 20, "subsample": 1.0, "max_features": None}

def boosted(kind, n, **more):
    return kind(n_estimators=n, reg_lambda=1.0, **(whole | one | more))

def predict():
    f = forest(S.RandomForestClassifier, 20).fit(X, y)
    b = boosted(S.GradientBoostingClassifier, 50).fit(X, y)
    levels = forest(S.RandomForestClassifier, 10).fit(*adult)
    c45 = S.C45Classifier().fit(*letter)
    numbers = forest(S.RandomForestRegressor, 20).fit(house, price)
    of_forest, of_boosted, row = f.predictor(), b.predictor(), X[0]
    return {
        "predict: forest 60,000 rows": lambda: f.predict_proba(X),
        "predict: boosting 60,000 rows": lambda: b.predict_proba(X),
        "predict: forest, frame with categories": lambda: levels.predict_proba(adult[0]),
        "predict: C4.5 letter": lambda: c45.predict(letter[0]),
        "predict: forest of numbers": lambda: numbers.predict(house),
        "predict: 2,000 single rows, forest": lambda: [of_forest(row) for _ in range(2000)],
        "predict: 2,000 single rows, boosting": lambda: [of_boosted(row) for _ in range(2000)],
    }

GROUPS = {
    "cart": lambda: {
        "CART california": lambda: S.CARTRegressor().fit(house, price),
        "CART 60,000 x 20": lambda: S.CARTClassifier().fit(X, y),
        "CART adult": lambda: S.CARTClassifier().fit(*adult),
        "CART letter": lambda: S.CARTClassifier().fit(*letter),
        "CART california, surrogates": lambda: S.CARTRegressor(missing="surrogate", max_depth=8).fit(house, price),
        "CART 200 rows": lambda: S.CARTClassifier().fit(X[:200], y[:200]),
    },
    "forest": lambda: {
        "forest 60,000 x 20": lambda: forest(S.RandomForestClassifier, 6).fit(X, y),
        "forest letter": lambda: forest(S.RandomForestClassifier, 10).fit(*letter),
        "forest california": lambda: forest(S.RandomForestRegressor, 6).fit(house, price),
        "forest adult": lambda: forest(S.RandomForestClassifier, 8).fit(*adult),
        "forest 500 rows, 50 trees": lambda: forest(S.RandomForestClassifier, 50).fit(X[:500], y[:500]),
        "extra-trees 60,000 x 20": lambda: forest(S.ExtraTreesClassifier, 5).fit(X, y),
        "extra-trees california": lambda: forest(S.ExtraTreesRegressor, 8).fit(house, price),
        "extra-trees letter": lambda: forest(S.ExtraTreesClassifier, 8).fit(*letter),
    },
    "ada": lambda: {
        "AdaBoost, 100 stumps": lambda: S.AdaBoostClassifier(n_estimators=100).fit(X, y),
        "AdaBoost letter": lambda: S.AdaBoostClassifier(n_estimators=20).fit(*letter),
    },
    "boost": lambda: {
        "boosting 60,000 x 20": lambda: boosted(S.GradientBoostingClassifier, 50).fit(X, y),
        "boosting california": lambda: boosted(S.GradientBoostingRegressor, 100).fit(house, price),
        "boosting adult": lambda: boosted(S.GradientBoostingClassifier, 50).fit(*adult),
        "boosting letter": lambda: boosted(S.GradientBoostingClassifier, 5).fit(*letter),
        "boosting 500 rows": lambda: boosted(S.GradientBoostingRegressor, 100).fit(house[:500], price[:500]),
        "boosting, two threads": lambda: boosted(S.GradientBoostingClassifier, 30, n_jobs=2).fit(X, y),
    },
    "textbook": lambda: {
        "C4.5 adult": lambda: S.C45Classifier().fit(*adult),
        "C4.5 letter": lambda: S.C45Classifier().fit(*letter),
        "ID3 letter": lambda: S.ID3Classifier().fit(*letter),
        "ID3 california": lambda: S.ID3Regressor(max_depth=8).fit(house, price),
    },
    "predict": predict,
}
found = {}
for name, work in GROUPS[group]().items():
    times = []
    while len(times) < (1 if is_compile else 4) or (not is_compile and sum(times) < 1.2 and len(times) < 40):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    found[name] = 1e3 * min(times)
with open(out, "w") as file:
    json.dump(found, file)
"""


def measure(source: Path, group: str, *, is_compile: bool) -> dict[str, float]:
    """CPU milliseconds of each row of a group, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
        if is_compile:
            environment["SPINNEY_CACHE_DIR"] = folder
        command = [sys.executable, "-c", CHILD, group, str(int(is_compile)), str(TABLES), str(out)]
        subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("groups", nargs="*", default=["cart", "forest", "ada", "boost", "textbook", "predict"])
    parser.add_argument("--compile", action="store_true", dest="is_compile")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    unit, scale = ("s", 1e-3) if options.is_compile else ("ms", 1.0)
    print(
        f"| CPU {unit}, best of {options.rounds} alternating processes | old | new | new / old |\n|---|---:|---:|---:|"
    )
    for group in options.groups:
        best: dict[str, list[float]] = {}
        for k in range(options.rounds):
            for side in (0, 1) if k % 2 == 0 else (1, 0):
                source = (options.old, options.new)[side]
                for name, time in measure(source, group, is_compile=options.is_compile).items():
                    times = best.setdefault(name, [float("inf")] * 2)
                    times[side] = min(times[side], time)
        for name, (old, new) in best.items():
            print(f"| {name} | {old * scale:.2f} | {new * scale:.2f} | {new / old:.3f} |", flush=True)


if __name__ == "__main__":
    main()
