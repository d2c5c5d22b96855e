"""The arrays of a forest under way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import RandomForestRegressor
from spinney.tree import forest, grow

KINDS = (np.uint32, np.float64)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(KINDS)), min_size=1, max_size=12),
    st.integers(1, 12),
    st.sampled_from([(), (0,), (3,)]),
)
@settings(max_examples=60)
def test_arrays_end_to_end(parts, n_parts, more):
    arrays = [np.arange(n * int(np.prod(more)), dtype=kind).reshape(n, *more) for n, kind in parts]
    row = forest.ArrayBuilder(n_parts)
    for array in arrays:
        row.add(array)
    whole, expected = row.join(), np.concatenate(arrays)
    np.testing.assert_array_equal(whole, expected)
    assert (whole.dtype, whole.base, row.sizes) == (expected.dtype, None, [len(array) for array in arrays])


def test_no_more_is_taken_ahead_than_is_allowed(monkeypatch):
    monkeypatch.setattr(forest, "MOST_AHEAD", 80)
    row = forest.ArrayBuilder(1000)
    row.add(np.zeros(100))
    assert len(row.whole) == 110


@pytest.mark.parametrize("room", [1, 40, 10_000])
def test_trees_are_the_same_whatever_room_they_start_with(room, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    expected = RandomForestRegressor(n_estimators=4, random_state=0).fit(X, y)
    monkeypatch.setattr(grow.Growth.__init__, "__defaults__", (None, None, room))
    monkeypatch.setattr("spinney.ensemble.forest.FIRST_NODES", room)
    found = RandomForestRegressor(n_estimators=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.forest_.hot, expected.forest_.hot)
    np.testing.assert_array_equal(found.forest_.first_node, expected.forest_.first_node)
