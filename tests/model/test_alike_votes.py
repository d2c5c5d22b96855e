"""Rows that repeat others are predicted as each of them is by itself."""

from copy import copy

import numpy as np
import pandas as pd
import pytest

from spinney import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from spinney.model import alike_votes
from spinney.model.alike_votes import FEWEST_ROWS, FEWEST_TREES, as_words, find_repeats, may_be_alike
from spinney.table.bundles import sample_step

N_ROWS = 3 * FEWEST_ROWS


def draw(n_differ, n_features=5, seed=0, n_rows=N_ROWS):
    """Rows that repeat `n_differ` of them in no order; some values are missing, some zeros have a sign."""
    generator = np.random.default_rng(seed)
    some = generator.normal(size=(n_differ, n_features)).round(2)
    some[generator.random(some.shape) < 0.05] = np.nan
    some[:10, 0], some[:5, 0] = 0.0, -0.0
    return some[generator.integers(n_differ, size=n_rows)]


def one_by_one(ask, X):
    """What is asked of so few rows that none is looked for."""
    step = FEWEST_ROWS - 1
    return np.concatenate([ask(X[lo : lo + step]) for lo in range(0, len(X), step)])


@pytest.fixture(scope="module")
def forest():
    X = draw(400, n_rows=600)
    y = np.nan_to_num(X[:, 0] + X[:, 1] > 0).astype(int) + (np.nan_to_num(X[:, 2]) > 1)
    return RandomForestClassifier(FEWEST_TREES, random_state=0, n_jobs=1).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_differ", [7, 700, N_ROWS])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shares_are_those_of_rows_by_themselves(forest, dtype, n_differ, order, monkeypatch):
    X = np.array(draw(min(n_differ, 700), seed=1), dtype, order=order)
    if n_differ == N_ROWS:  # only the sample repeats itself
        X += np.arange(N_ROWS, dtype=dtype)[:, np.newaxis]
        X[:: sample_step(N_ROWS)] = 1.0
    X.flags.writeable = False
    found = []
    monkeypatch.setattr(
        "spinney.model.forest_votes.find_repeats", lambda *asked: found.append(find_repeats(*asked)) or found[-1]
    )
    shares = forest.predict_proba(X)
    assert len(found) == 1
    assert (found[0] is None) == (n_differ == N_ROWS)
    assert shares.tobytes() == one_by_one(forest.predict_proba, X).tobytes()
    assert len(found) == 1


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_say_the_same(forest, n_jobs):
    X = draw(500, seed=2)
    shared = copy(forest).set_params(n_jobs=n_jobs)
    assert shared.predict_proba(X).tobytes() == (one_by_one(forest.predict_proba, X).tobytes())


def test_numbers_and_large_trees():
    X = draw(3000, n_rows=6000, seed=3)
    numbers = RandomForestRegressor(FEWEST_TREES, random_state=0).fit(X, np.arange(6000.0) % 97)
    classes = ExtraTreesClassifier(FEWEST_TREES, random_state=0).fit(X, np.arange(6000) % 5)
    rows = draw(600, seed=3)
    assert numbers.predict(rows).tobytes() == one_by_one(numbers.predict, rows).tobytes()
    assert classes.predict_proba(rows).tobytes() == one_by_one(classes.predict_proba, rows).tobytes()


def test_frames_with_categories():
    generator = np.random.default_rng(4)
    some = pd.DataFrame(
        {"a": pd.Categorical(generator.choice(list("uvwxyz"), 900)), "b": generator.normal(size=900).round(1)}
    )
    model = RandomForestClassifier(FEWEST_TREES, random_state=0).fit(some, (some["b"] > 0) ^ (some["a"] == "u"))
    frame = some.iloc[generator.integers(900, size=N_ROWS)].reset_index(drop=True)
    frame.loc[::7, "a"] = None
    whole = model.predict_proba(frame)
    pieces = [model.predict_proba(frame.iloc[lo : lo + 8000]) for lo in range(0, N_ROWS, 8000)]
    assert whole.tobytes() == np.concatenate(pieces).tobytes()


def test_who_looks_for_rows_that_are_alike(forest):
    voting = forest.forest_
    repeated = draw(600, seed=5)
    assert may_be_alike(voting, repeated)
    assert not may_be_alike(voting, repeated[: FEWEST_ROWS - 1])
    assert not may_be_alike(voting, repeated + np.arange(N_ROWS)[:, np.newaxis])
    assert not may_be_alike(voting, np.zeros((N_ROWS, FEWEST_TREES + 1)))  # so many columns take longer than the trees


def test_a_block_of_rows_that_differ_has_no_numbers():
    block = np.arange(4000.0).reshape(-1, 1)
    assert find_repeats(block, FEWEST_TREES) is None
    assert find_repeats(block[:1], FEWEST_TREES) is None


def test_numbers_of_rows():
    block = np.array([[1.0, np.nan], [2.0, 0.0], [1.0, np.nan], [2.0, -0.0]] * 2000)
    numbers, first, _ = find_repeats(block, FEWEST_TREES)
    assert numbers.tolist() == [0, 1, 0, 2] * 2000  # zeros of two signs are two rows: they cost a walk
    assert first.tolist() == [0, 1, 3]


def test_words_have_all_bytes_of_a_row():
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    words = as_words(rows)
    assert words.shape == (2, 2)
    assert words.view(np.float32).tolist() == [[0.0, 1.0, 2.0, 0.0], [3.0, 4.0, 5.0, 0.0]]
    assert words.itemsize == alike_votes.WORD
