"""Which features do not vary in a node, against a look at every column."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import _jit
from spinney._types import PAIR_ROWS

NOT_BY_RATIO = SimpleNamespace(is_ratio=False)


def find_constant(codes, n_coded, lo, hi, how=NOT_BY_RATIO, random=None, sums=None):
    """The features that the kernel says do not vary in rows lo .. hi, as a set."""
    rows = SimpleNamespace(words=codes.view(np.uint64), ahead_of=np.full(n_coded, -1))
    with np.errstate(over="ignore"):
        bits = int(_jit.interpreted().tree.feature_order.find_constant(lo, hi, rows, how, random, sums))
    return {feature for feature in range(64) if bits >> feature & 1}


@settings(max_examples=80)
@given(st.integers(1, 64), st.integers(0, 9), st.integers(1, PAIR_ROWS), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_features_that_do_not_vary(n_coded, n_more, n_rows, n_before, seed):
    r = np.random.default_rng(seed)
    n_words = -(-n_coded // 4) + n_more  # flags and padding stand behind the codes
    codes = r.choice(np.array([0, 1, 2, 256, 65_535], np.uint16), (n_before + n_rows + 2, 4 * n_words))
    is_alike = r.random(codes.shape[1]) < 0.6
    codes[n_before:-2, is_alike] = codes[n_before, is_alike]
    node = codes[n_before : n_before + n_rows]
    found = find_constant(codes, n_coded, n_before, n_before + n_rows)
    assert found == set(np.flatnonzero((node == node[0]).all(axis=0)[:n_coded]).tolist())


def test_no_look_where_it_does_not_pay():
    codes = np.ones((PAIR_ROWS + 1, 68), np.uint16)
    assert len(find_constant(codes, 64, 0, PAIR_ROWS)) == 64
    assert find_constant(codes, 64, 0, PAIR_ROWS + 1) == set()
    assert find_constant(codes, 65, 0, 5) == set()
    assert find_constant(codes, 8, 0, 5, SimpleNamespace(is_ratio=True)) == set()
    assert find_constant(codes, 8, 0, 5, random=SimpleNamespace()) == set()
    assert find_constant(codes, 8, 0, 5, sums=SimpleNamespace()) == set()
