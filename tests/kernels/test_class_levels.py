"""What bounds the worth of a subset of levels is above it, so that nothing which could win is passed over."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import _jit
from spinney._types import BIN_WEIGHT, EXHAUSTIVE_LEVELS
from spinney.kernels.common.structs import Chance
from spinney.tree.workspace import make_subsets

BIN_ROWS = BIN_WEIGHT + 1


def worth(score, weights, is_left, chance):
    """Score of a subset less its luck, by the formulas of `common.category_chance`, written anew."""
    roots = np.sqrt(weights)
    r = roots[is_left].sum() / roots.sum()
    normal = 1.342 * (r * (1 - r)) ** (7 / 8)
    density = (1 - chance.few) * normal + chance.few * np.sqrt(r * (1 - r))
    gain = (roots.sum() * density) ** 2 * (1 / weights[is_left].sum() + 1 / weights[~is_left].sum())
    return score - chance.noise * max(gain - 4 / np.pi, 0.0)


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 10_000), min_size=2, max_size=EXHAUSTIVE_LEVELS),
    st.floats(1e-6, 10.0),
    st.floats(0.0, 1.0),
    st.integers(0, 2**32 - 1),
)
def test_no_subset_is_worth_more_than_its_bound(weights, noise, few, seed):
    twin = _jit.interpreted().tree.class_levels
    weights = np.array(weights)
    n = len(weights)
    scores = np.random.default_rng(seed).uniform(0.0, weights.sum(), 2 ** (n - 1))
    subsets = make_subsets(EXHAUSTIVE_LEVELS)
    bins = np.zeros((BIN_ROWS, n), np.int64)
    bins[BIN_WEIGHT] = weights
    chance = Chance(noise, np.sqrt(weights).sum(), few, 0.0, 0.0)
    subsets.scores[: len(scores)] = scores
    exact = []
    for m in range(2 ** (n - 1) - 1):
        is_left = np.array([((2 * m + 1) >> b) & 1 for b in range(n)], bool)
        subsets.weights[m] = weights[is_left].sum()
        exact.append(worth(scores[m], weights, is_left, chance))
    top = twin.bound_subsets(n, int(weights.sum()), chance, bins, subsets)
    most = subsets.most[: len(exact)]
    assert top == most.max()
    assert (most >= np.array(exact) - 1e-9 * np.abs(exact)).all()
    assert most.max() <= scores.max() + noise * 4 / np.pi
