"""Hashes of training data: those of large tables are hashes of blocks of rows, which anyone can make."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from spinney import (
    BaggingClassifier,
    CARTClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
)
from spinney.estimators import fingerprints, forest_training
from spinney.estimators.fingerprints import fingerprint, mark_weights
from spinney.table.ingest import read_columns

LARGE = 150_001


def make_rows(n_rows):
    """A table with missing values, and a target."""
    generator = np.random.default_rng(4)
    X = generator.normal(size=(n_rows, 5))
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, generator.normal(size=n_rows)


def sha(*parts):
    return hashlib.sha256(b"".join(parts))


def meaning_of(X):
    return repr((len(X), X.shape[1], None, (None,) * X.shape[1], None)).encode()


def test_a_small_table_is_hashed_as_a_whole():
    for n_rows in (1, 1000, 65_536):
        X, y = make_rows(n_rows)
        expected = sha(meaning_of(X), np.ascontiguousarray(X.T).tobytes(), y.tobytes()).hexdigest()
        assert fingerprint(read_columns(X), y) == expected
        assert mark_weights(y) == sha(y.tobytes()).hexdigest()


def test_a_large_table_is_hashed_by_blocks_of_rows():
    X, y = make_rows(LARGE)
    blocks = [slice(k, k + 65_536) for k in range(0, LARGE, 65_536)]
    leaves = [sha(np.ascontiguousarray(X[rows].T).tobytes(), y[rows].tobytes()).digest() for rows in blocks]
    assert fingerprint(read_columns(X), y) == "tree:" + sha(meaning_of(X), *leaves).hexdigest()
    assert mark_weights(y) == "tree:" + sha(*(sha(y[rows].tobytes()).digest() for rows in blocks)).hexdigest()


def test_how_many_columns_are_read_at_once_does_not_matter(monkeypatch):
    X, y = make_rows(LARGE)
    found = fingerprint(read_columns(X), y)
    for n_cells in (1, 2 * LARGE, 10 * LARGE):
        monkeypatch.setattr(fingerprints, "HASHED_CELLS", n_cells)
        assert fingerprint(read_columns(X), y) == found


@pytest.mark.parametrize("like", ["", "0" * 64, "tree:" + "0" * 64])
def test_every_cell_counts_and_a_hash_is_compared_with_one_of_its_kind(like):
    X, y = make_rows(LARGE)
    found = fingerprint(read_columns(X), y, like=like)
    assert found.startswith("tree:") == (not like or like.startswith("tree:"))
    for row in (0, 65_535, 65_536, LARGE - 1):
        other = X.copy()
        other[row, 3] = 9.0
        assert fingerprint(read_columns(other), y, like=like) != found
        target = y.copy()
        target[row] = 9.0
        assert fingerprint(read_columns(X), target, like=like) != found
        assert mark_weights(target, like=like) != mark_weights(y, like=like)
    X[np.isnan(X)] = -np.nan
    assert fingerprint(read_columns(X), y, like=like) == found
    assert mark_weights(np.ones(LARGE), like=like) == ""


def make_sparse(n_rows=300, n_columns=40):
    """A table of which one cell in twenty is not 0, some are missing and some are stored zeros; and a target."""
    generator = np.random.default_rng(5)
    X = np.where(generator.random((n_rows, n_columns)) < 0.05, generator.integers(-3, 4, (n_rows, n_columns)) / 2, 0.0)
    X[generator.random(X.shape) < 0.01] = np.nan
    stored = (X != 0.0) | (generator.random(X.shape) < 0.01)
    return X, sparse.csr_array((X[stored], np.nonzero(stored)), shape=X.shape), generator.integers(0, 2, n_rows)


def test_a_large_sparse_table_is_hashed_by_its_cells(monkeypatch):
    X, S, y = make_sparse()
    assert fingerprint(read_columns(S), y) == fingerprint(read_columns(X), y)
    monkeypatch.setattr(fingerprints, "SPARSE_CELLS", X.size)
    column, row = np.nonzero(X.T)
    parts = np.bincount(column, minlength=X.shape[1]), row, np.where(np.isnan(X.T), np.nan, X.T)[column, row], y
    found = fingerprint(read_columns(S), y)
    assert found == "cells:" + sha(meaning_of(X), *(sha(part.tobytes()).digest() for part in parts)).hexdigest()
    for n_cells in (1, 7 * len(X), 1 << 20):
        monkeypatch.setattr(fingerprints, "HASHED_CELLS", n_cells)
        assert fingerprint(read_columns(X), y, like=found) == found
    assert fingerprint(read_columns(S), y, like="0" * 64) == fingerprint(read_columns(X), y)
    for change in (lambda X: X[[1, 0, *range(2, len(X))]], lambda X: np.where(X == 0.5, -0.5, X), lambda X: X[:, ::-1]):
        assert fingerprint(read_columns(change(X)), y, like=found) != found
        assert fingerprint(read_columns(sparse.csc_array(change(X))), y) != found
    assert fingerprint(read_columns(S), 1 - y) != found


def test_forests_of_sparse_rows_know_them_again_in_any_form(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprints, "SPARSE_CELLS", 1)
    X, S, y = make_sparse()
    forest = RandomForestClassifier(3, n_jobs=1, random_state=0, warm_start=True).fit(S, y)
    assert forest._fitted.fingerprint.startswith("cells:")
    forest.save_model(tmp_path / "forest.spn")
    file = (tmp_path / "forest.spn").read_bytes()
    assert b'"version":"1.5"' in file
    again = load_model(tmp_path / "forest.spn")
    expected = forest.strength(S, y).tree_errors
    for given in (S, X, sparse.coo_array(X)):
        np.testing.assert_array_equal(again.strength(given, y).tree_errors, expected)
    assert len(again.set_params(n_estimators=5).fit(X, y).forest_) == 5
    with pytest.raises(ValueError, match="not the training data"):
        forest.strength(X[::-1], y)


@pytest.mark.parametrize("kind", [RandomForestClassifier, BaggingClassifier])
def test_a_warm_start_of_many_sparse_rows_knows_their_weights(kind):
    """Weights were hashed by blocks in the first fit, and as a whole beside a hash of cells."""
    X, S, y = make_sparse(70_000, 16)
    weight = np.arange(len(y)) % 3 + 1.0
    own = {"estimator": CARTClassifier(max_depth=1)} if kind is BaggingClassifier else {"max_depth": 1}
    model = kind(n_estimators=1, bootstrap=False, warm_start=True, random_state=0, **own).fit(S, y, weight)
    assert model._fitted.fingerprint.startswith("cells:")
    for given in (S, X):
        model.set_params(n_estimators=model.n_estimators + 1).fit(given, y, weight)
        assert model._fitted.earlier is None
    model.set_params(n_estimators=4).fit(S, y, weight[::-1])
    assert model._fitted.earlier is not None


def test_a_warm_start_of_a_large_table_knows_its_rows(tmp_path):
    X, y = make_rows(LARGE)
    X = np.nan_to_num(X)
    forest = RandomForestRegressor(n_estimators=1, max_depth=1, random_state=0, warm_start=True, replace=False)
    forest.set_params(bootstrap="poisson", replace=True).fit(X, y)
    assert forest._fitted.fingerprint.startswith("tree:")
    forest.save_model(tmp_path / "forest.spn")
    assert b'"version":"1.3"' in (tmp_path / "forest.spn").read_bytes()
    again = load_model(tmp_path / "forest.spn").set_params(n_estimators=2).fit(X, y)
    assert len(again.forest_) == 2
    X[100_000, 2] = 7.0
    with pytest.raises(ValueError, match="2 of them come from an earlier fit on other rows"):
        again.set_params(n_estimators=3, oob_score=True).fit(X, y)


def test_rounds_are_added_to_boosting_of_before():
    """Its hashes were those of whole columns; rounds go on with other rows too."""
    X, y = make_rows(LARGE)
    model = GradientBoostingRegressor(n_estimators=1, max_depth=1, random_state=0, warm_start=True).fit(X, y, y * y)
    assert model._fitted.hashes["y"].startswith("tree:")
    old = {
        "y": mark_weights(y, like="0" * 64),
        "sample_weight or class_weight": mark_weights(y * y, like="0" * 64),
    }
    model._fitted = replace(model._fitted, hashes={**model._fitted.hashes, **old})
    model.set_params(n_estimators=2).fit(X, y, y * y)
    assert len(model.forest_) == 2
    assert model.set_params(n_estimators=3).fit(X, y + 1.0, y * y)._fitted.hashes["y"].startswith("tree:")
    assert len(model.forest_) == 3


def test_bags_without_replacement_of_weighted_rows_are_saved(tmp_path):
    """Their trees see the weights, so that the hash has two parts; no file was written of them."""
    X, y = make_rows(200)
    model = BaggingClassifier(CARTClassifier(max_depth=2), n_estimators=3, bootstrap=False, max_samples=0.5)
    model.fit(X, y > 0, np.abs(y) + 0.1).save_model(tmp_path / "bags.spn")
    again = load_model(tmp_path / "bags.spn")
    assert len(again._fitted.fingerprint) == 128
    assert np.array_equal(again.predict(X), model.predict(X))


def test_rows_that_are_hashed_while_a_forest_grows_have_the_same_hash(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    alone = RandomForestClassifier(4, n_jobs=1, random_state=0).fit(X, y)
    monkeypatch.setattr(forest_training, "SHARE_SECONDS", 0.0)
    beside = RandomForestClassifier(4, n_jobs=2, random_state=0).fit(X, y)
    assert beside._fitted.fingerprint == alone._fitted.fingerprint != ""
