"""Bags gathered by a kernel, against indexing by arrays."""

import numpy as np
import pytest

from spinney import _jit


@pytest.mark.parametrize("is_product", [False, True])
@pytest.mark.parametrize("n_drawn", [1, 40, 400])
def test_rows_of_a_bag(is_product, n_drawn):
    r = np.random.default_rng(n_drawn)
    counts = np.bincount(r.integers(0, 200, n_drawn), minlength=230).astype(np.int32)  # the last rows are not drawn
    words, classes = r.integers(0, 2**63, (230, 3)).astype(np.uint64), r.integers(0, 2, 230)
    rows = np.flatnonzero(counts)
    ids, addends = np.full(len(rows), -1, np.int32), np.zeros((2, len(rows)), np.int64)
    drawn = np.zeros((len(rows), 3), np.uint64)
    gather = _jit.interpreted().data.bags.gather_bag
    squares = gather(counts, words, classes, is_product, ids, drawn, addends)
    np.testing.assert_array_equal(ids, rows)
    np.testing.assert_array_equal(drawn, words[rows])
    np.testing.assert_array_equal(addends[0], classes[rows] * (counts[rows] if is_product else 1))
    np.testing.assert_array_equal(addends[1], counts[rows])
    assert squares == (counts.astype(np.int64) ** 2).sum()
