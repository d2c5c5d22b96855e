"""Tables for tests of scans and stores: in memory, as files of every kind, and the bytes of a model fitted on them."""

import errno
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from spinney.ensemble import forest_levels
from spinney.scale import plan, row_files

LEVELS = ["red", "blue", "green", "violet", ""]


def make_table(n_rows, seed=0, *, target="classes"):
    """A table with every kind of column; `y` is the target, `w` has weights, `g` groups."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    text = rng.choice(LEVELS[:4], n_rows)
    hidden = np.where(rng.random(n_rows) < 0.2, None, text)
    signal = number + (text == "red") + 0.5 * rng.normal(size=n_rows)
    whole = rng.integers(-50, 1000, n_rows)
    columns = {
        "number": number,
        "whole": whole,
        "holes": pa.array([None if i % 5 == 0 else int(v) for i, v in enumerate(whole)], pa.int64()),
        "short": number.round(2).astype(np.float32),
        "flag": rng.random(n_rows) < 0.5,
        "text": pa.array(hidden, pa.string()),
        "day": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 900, n_rows).astype("timedelta64[D]")),
        "w": rng.integers(1, 5, n_rows) / 2,
        "g": rng.integers(0, max(n_rows // 10, 1), n_rows),
    }
    if target == "classes":
        columns["y"] = np.where(signal > 0.5, "yes", "no")
    elif target == "three":
        columns["y"] = np.digitize(signal, [0.0, 1.0])
    else:
        columns["y"] = np.abs(signal) + 0.5
    return pa.table(columns)


def write_parts(table, folder, ends, kind="parquet"):
    """Write parts of a table, cut at some rows, to files whose names sort as numbers; their pattern."""
    starts = [0, *ends]
    for i, (first, last) in enumerate(zip(starts, [*ends, table.num_rows], strict=True)):
        part = table.slice(first, last - first)
        path = str(folder / f"part-{7 + i}.{kind}")
        if kind == "parquet":
            parquet.write_table(part, path, row_group_size=999)
        elif kind == "csv":
            csv.write_csv(part, path)
        else:
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, part.schema) as writer:
                writer.write_table(part, max_chunksize=777)
    return str(folder / f"*.{kind}")


def split(table, others=("w", "g")):
    """X and y of a table, as `fit` takes them."""
    y = table["y"]
    if pa.types.is_dictionary(y.type):
        y = y.cast(y.type.value_type)
    return table.drop_columns(["y", *others]), y.to_numpy()


def model_bytes(model, folder):
    """The file that a fitted model is saved as."""
    path = folder / "model.spn"
    model.save_model(path)
    return path.read_bytes()


def with_column(table, name, values):
    """The same table with other values of a column."""
    return table.set_column(table.column_names.index(name), name, [values])


def clone(model, **more):
    """A model with the same parameters, and others."""
    return type(model)(**{**model.get_params(deep=False), **more})


def fit_in_memory(model, table, weight=None, **more):
    """A copy of a model, fitted to a table as if there were memory for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fits", lambda _: True)
        return clone(model).fit(*split(table), sample_weight=weight, **more)


def note_tops(monkeypatch):
    """A list that will have, for each tree grown from disk, how many of its nodes passes over the codes have split."""
    tops, join = [], forest_levels.join_pieces

    def note(top, pieces, scale):
        tops.append(sum(node.state == "split" for node in top.top))
        return join(top, pieces, scale)

    monkeypatch.setattr(forest_levels, "join_pieces", note)
    return tops


def fill_disk(monkeypatch, name):
    """Have the disk be full whenever rows of the file of this name are written."""
    write = row_files.RowFiles._write_at

    def fill(self, file, view, at):
        if self.files.get(name, (None,))[0] is file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, file, view, at)

    monkeypatch.setattr(row_files.RowFiles, "_write_at", fill)
