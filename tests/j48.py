"""The tables that Weka's J48 was run on, as it read them, and C4.5 of the package on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from spinney import _jit
from spinney.estimators.cart import CARTClassifier
from spinney.estimators.checks import open_x
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights
from spinney.table.ingest import read_columns
from spinney.table.schema import encode
from spinney.tree.pessimistic import collapse, prune_pessimistic
from spinney.tree.textbook import TextbookParams, grow_textbook

TARGETS = {"mushroom": "class", "soybean": "Class", "letter": "lettr", "adult": "income", "vowel": "Class"}
LEFT_OUT = {"toy_buys_computer": ["rid"], "vowel": ["SpeakerNumber", "Sex"]}


class Rows(NamedTuple):
    """A table as growing and predicting take it."""

    codes: Any
    values: np.ndarray
    truth: np.ndarray
    classes: list[Any]
    schema: Any


def load(folder, name):
    """The inputs and the target of a table: bool columns are categories, the official split is no input."""
    path = folder / f"{name}.csv"
    frame = pd.read_csv(path) if path.exists() else pd.read_parquet(folder / f"{name}.parquet")
    frame = frame.drop(columns=[*LEFT_OUT.get(name, []), *({"split"} & set(frame.columns))])
    if name == "pima_diabetes":
        frame = frame.fillna(0)
    for column in frame:
        if frame[column].dtype == bool:
            frame[column] = frame[column].astype(str)
    target = TARGETS.get(name, frame.columns[-1])
    return frame.drop(columns=target), frame[target]


def read(X, y, kernels=None):
    """Encode a frame and code it."""
    columns = open_x(CARTClassifier(), X, is_fit=True)
    table = read_columns(columns, "from_dtype")
    classes = sorted(y.unique())
    truth = np.searchsorted(np.array(classes), y.to_numpy())
    codes = code_table(table, np.ones(1, np.int64), 65_535, kernels or _jit.load_compiled())
    values = np.asarray(encode(columns, table.schema), np.float64)
    return Rows(codes, values, truth, classes, table.schema)


def grow(rows, params, kernels=None):
    """A textbook tree of classes on a whole table."""
    weights = fix_weights(None, len(rows.truth))
    target = class_target(rows.truth, len(rows.classes), weights)
    return grow_textbook(rows.codes, target, weights, params, kernels or _jit.load_compiled())


def grow_c45(rows, kernels=None):
    """C4.5 with its defaults: the tree without pruning (but collapsed, as J48 -U is), and the pruned one."""
    params = TextbookParams("entropy", rule="c45", missing="every", min_samples_leaf=2)
    whole = collapse(grow(rows, params, kernels))
    return whole, prune_pessimistic(whole, 0.25, values=rows.values, truth=rows.truth, raising=True)
