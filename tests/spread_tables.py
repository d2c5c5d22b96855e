"""Tables in partitions that an engine holds, for fits by levels, and how they are fitted."""

import itertools

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from spinney.estimators.cluster_fits import Opened, fit_on_parts
from spinney.scale.cluster.collections import Partitions, Place

scripts = st.lists(st.tuples(st.integers(0, 20), st.booleans(), st.integers(0, 9).map(lambda k: k == 0)), max_size=80)
N = 9100
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 6)).round(2)
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 1] = RNG.integers(0, 12, N)
X[:, 4:] = (RNG.integers(0, 4, N)[:, None] == [1, 2]) * 1.0  # which share a byte
NUMBERS = np.abs(2 * np.nan_to_num(X[:, 0]) + np.sin(X[:, 1]) + RNG.normal(size=N))
CLASSES = np.digitize(NUMBERS, [0.7, 1.9])
WORDS = np.array(["no", "yes"], dtype=object)[(NUMBERS > 1.0).astype(int)]
WEIGHT = RNG.integers(0, 4, N).astype(float)


def join_rows(parts):
    """What `compute` does of these collections."""
    return pd.concat(parts) if isinstance(parts[0], pd.DataFrame) else np.concatenate(parts)


def take(table, first, last):
    return table.iloc[first:last] if isinstance(table, pd.DataFrame) else table[first:last]


def spread_fit(engine, model, X, y, more=(), ends=((3000, 3000, 7200), (5000,))):
    """A fit of rows in partitions that an engine holds, which end at these rows: those of X, then all else."""
    tables = {"X": X, "y": y, **dict(more)}
    arguments, parts, lengths = {}, [], []
    for name, table in tables.items():
        if name not in {"X", "y", "sample_weight"}:
            arguments[name] = table
            continue
        edges = [0, *ends[0 if name == "X" else 1], len(table)]
        arguments[name] = Place(len(parts))
        pairs = list(itertools.pairwise(edges))
        parts.append([engine.hold("part", take, table, *pair) for pair in pairs])
        lengths.append([last - first for first, last in pairs])
    pieces = [Partitions([], join_rows, (), is_matrix=False)] * len(parts)
    fit_on_parts(engine, model, Opened(arguments, parts, None, None, pieces, lengths), None)
    return model


def make_mixed(n_rows):
    """A frame whose partitions differ in type and dictionary; as `compute` has it."""
    rng = np.random.default_rng(3)
    text = rng.choice(["red", "blue", "green"], n_rows).astype(object)
    text[: n_rows // 3] = None  # a partition without any
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows).astype(np.float32),
            "whole": rng.integers(-5, 40, n_rows),
            "text": text,
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n_rows), categories=["s", "m", "l", "xl"], ordered=True),
            "flag": rng.random(n_rows) < 0.3,
            "day": np.datetime64("2021-03-01") + rng.integers(0, 700, n_rows).astype("timedelta64[D]"),
        }
    )
    return frame, frame["number"].to_numpy() + (frame["size"] == "m") + rng.normal(size=n_rows)
