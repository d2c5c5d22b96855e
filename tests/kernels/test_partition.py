"""Rows that are moved to their branches, against a plain listing and swaps one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import _jit
from spinney._types import PAIR_ROWS, SUBSET, THRESHOLD

N_CODED = 5  # features with codes; one flag stands behind them
KINDS = ("threshold", "few levels", "levels", "flag")


def branch_of(code, kind, cut, missing, levels):
    """The branch that a code takes."""
    if code == 0:
        return missing
    return int(code > cut) if kind == "threshold" else int(code not in levels)


def plain_order(branches, last):
    """Row numbers after the swaps: the first that belongs behind with the last that belongs in front, and so on."""
    order = list(range(len(branches)))
    behind = [i for i in order if branches[i] >= last]
    front = [i for i in order if branches[i] < last]
    for i, j in zip(behind, front[::-1], strict=False):
        if i >= len(front):
            break
        order[i], order[j] = order[j], order[i]
    return order, len(front)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_are_moved_as_if_one_by_one(kind, data):
    sizes = st.integers(1, PAIR_ROWS) | st.integers(PAIR_ROWS + 1, 3 * PAIR_ROWS + 1)
    n, before = data.draw(sizes), data.draw(st.integers(0, 3))
    n_codes = {"few levels": data.draw(st.sampled_from([1, 3, 63])), "levels": data.draw(st.integers(64, 200))}.get(
        kind, 65_535
    )
    missing = 0 if kind == "flag" else data.draw(st.integers(-1, 2))
    last = 2 if missing == 2 else 1
    r = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n_rows = before + n + 2
    codes = r.integers(0, n_codes + 1, (n_rows, 12)).astype(np.uint16)
    codes[:, 3] = r.choice(np.array([0, 1, n_codes // 2, n_codes], np.uint16), n_rows)
    levels = set((1 + np.flatnonzero(r.random(n_codes) < r.random())).tolist())
    cut = int(r.integers(0, n_codes + 1))
    subsets = np.zeros(2 + n_codes // 64 + 1, np.uint64)
    for level in levels:
        subsets[2 + (level - 1) // 64] |= np.uint64(1 << (level - 1) % 64)
    feature = N_CODED if kind == "flag" else int(r.integers(0, N_CODED))
    words = codes.view(np.uint64)
    addends, ids = r.integers(-9, 9, (2, n_rows)), r.permutation(n_rows).astype(np.int32)
    if kind == "flag":
        branches = [int(words[i, 2]) & 1 for i in range(before, before + n)]
    else:
        branches = [branch_of(int(c), kind, cut, missing, levels) for c in codes[before : before + n, feature]]
    order, n_front = plain_order(branches, last)
    moved = np.arange(n_rows)
    moved[before : before + n] = before + np.array(order)
    expected = codes[moved], addends[:, moved], ids[moved]

    rows = SimpleNamespace(
        codes=codes, words=words, addends=addends, ids=ids, ahead_of=np.full(N_CODED, -1), cells=None
    )
    is_number = kind in {"threshold", "flag"}
    test = SimpleNamespace(
        feature=feature,
        kind=THRESHOLD if is_number else SUBSET,
        cut=(1 if kind == "flag" else cut) if is_number else 2,
        missing=missing,
        n_codes=n_codes,
    )
    room = -(-n // 64)
    moves, sides = np.full(64 * (room + 1), 7, np.int32), np.full(room, ~np.uint64(0))
    with np.errstate(over="ignore"):
        middle = _jit.interpreted().tree.partition.partition(
            rows, before, before + n, test, last, subsets, moves, sides
        )
    assert middle == before + n_front
    for found, wanted in zip((codes, addends, ids), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
