"""Dask collections for tests: frames cut anywhere, with empty partitions and other dictionaries of categories."""

import contextlib
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.utils import clear_known_categories
from distributed import Client, LocalCluster


@contextlib.contextmanager
def open_client(n_workers):
    """A client of so many workers of one thread, in this process, whatever memory they have."""
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def make_frame(n_rows, seed=0):
    """A frame with every kind of column: `y` has classes, `z` numbers, `w` weights, `g` groups."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows)
    text = rng.choice(["red", "blue", "green"], n_rows)
    signal = number + (text == "red") + 0.5 * rng.normal(size=n_rows)
    whole = rng.integers(-5, 40, n_rows)
    return pd.DataFrame(
        {
            "number": number,
            "whole": whole,
            "holes": np.where(whole % 5 == 0, np.nan, whole / 2),
            "short": number.round(1).astype(np.float32),
            "text": text,
            "kind": pd.Categorical(rng.choice(["u", "v", "w"], n_rows)),
            "y": np.where(signal > 0.5, "yes", "no"),
            "z": signal,
            "w": rng.integers(0, 4, n_rows) / 2,
            "g": rng.integers(0, max(n_rows // 8, 1), n_rows),
        }
    )


def cut_frame(frame, n_parts, seed=0, *, has_empty=False):
    """A Dask frame of uneven partitions; each knows the categories of its own rows alone."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(frame) + 1, n_parts - 1))
    if has_empty and n_parts > 2:
        ends[0], ends[-1] = 0, len(frame)
    places = list(zip([0, *ends], [*ends, len(frame)], strict=True))
    meta = clear_known_categories(frame.iloc[:0])
    return dd.from_map(take_rows, places, frame=frame, meta=meta, enforce_metadata=False)


def take_rows(place, frame):
    """Some rows, whose categories are those that they have."""
    part = frame.iloc[slice(*place)].copy()
    part["kind"] = part["kind"].cat.remove_unused_categories()
    return part


FEATURES = ["number", "whole", "holes", "short", "text", "kind"]


def count_keys(client, seconds=20):
    """Keys that the scheduler knows, after a while for it to forget them."""
    end = time.monotonic() + seconds
    while True:
        n = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if n == 0 or time.monotonic() > end:
            return n
        time.sleep(0.05)
