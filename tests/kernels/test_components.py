"""The component that levels are ordered along, against NumPy's eigenvectors."""

import numpy as np
import pytest

from spinney import _jit
from spinney._types import BIN_ROWS, BIN_WEIGHT
from spinney.tree.workspace import make_classes


def coordinates(counts, by_steps=False):
    """What `score_levels` writes for class weights (n_levels, n_classes)."""
    n_levels, n_classes = counts.shape
    classes = make_classes(n_classes, n_levels)
    classes.shares[: counts.size] = counts.ravel()
    bins, scores = np.zeros((BIN_ROWS, n_levels), np.int64), np.zeros(n_levels)
    bins[BIN_WEIGHT] = counts.sum(axis=1)
    twin = _jit.interpreted().tree.components
    if by_steps:
        args = n_levels, n_classes, classes.shares, bins, classes.vectors
        twin.centre_shares(*args)
        twin.choose_start(*args)
        twin.turn_by_steps(*args)
        return classes.shares[: counts.size].reshape(counts.shape) @ classes.vectors[1]
    twin.score_levels(n_levels, n_classes, bins, classes, scores)
    return scores


@pytest.mark.parametrize("seed", range(10))
def test_coordinates_are_those_of_the_first_eigenvector(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, (int(rng.integers(9, 20)), int(rng.integers(3, 9)))).astype(float)
    counts[:, 0] += 40.0 * rng.random(len(counts))  # one direction stands out, so that the iteration gets there
    counts = np.rint(counts)
    weight = counts.sum(axis=1)
    shares = counts / weight[:, None] - counts.sum(axis=0) / weight.sum()
    _, vectors = np.linalg.eigh((shares * weight[:, None]).T @ shares)
    expected = shares @ vectors[:, -1]
    found = coordinates(counts)
    assert found[0] <= 0.0  # the lowest level comes first
    np.testing.assert_allclose(found, expected if expected[0] <= 0.0 else -expected, atol=1e-9)


def test_squares_go_as_far_as_steps():
    """Also where two directions are nearly alike, so that the iteration ends before it has found either."""
    counts = np.array([[50, 30, 20], [30, 50, 20], [20, 30, 50], [50, 20, 30], [30, 20, 50], [20, 50, 30]], float)
    counts[0, 0] += 1.0
    squared, stepped = coordinates(counts), coordinates(counts, by_steps=True)
    np.testing.assert_allclose(squared, stepped if stepped[0] <= 0.0 else -stepped, atol=1e-3)
    assert np.argsort(squared).tolist() == np.argsort(stepped if stepped[0] <= 0.0 else -stepped).tolist()


def test_levels_of_one_distribution_have_no_component():
    assert not coordinates(np.full((9, 4), 3.0)).any()
