"""Rows that are held out block by block are those that are drawn of all rows at once."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.ensemble.held_out import HeldBlocks, draw_held_out
from spinney.ensemble.sampling import BLOCK_BITS

pytestmark = pytest.mark.compiled(reason="blocks have 65,536 rows")
SIZE = 1 << BLOCK_BITS


def draw_codes(kind, n_rows, rng):
    """Classes of rows; None: numbers."""
    if kind == "numbers":
        return None
    if kind != "rare":
        return rng.integers(0, {"two": 2, "nine": 9}[kind], n_rows)
    codes = np.zeros(n_rows, np.int64)
    codes[rng.integers(0, n_rows, 3)] = 1
    codes[n_rows // 2 : n_rows // 2 + 2] = 4
    codes[-1] = 3  # a lone one; 2 has none
    return codes


def outcome(call):
    """What a call gives, or what it says."""
    try:
        return call().tolist()
    except ValueError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore:Of . of the")
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    n_rows=st.sampled_from([2, 9, 500, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 17, 5 * SIZE - 3]),
    kind=st.sampled_from(["numbers", "two", "nine", "rare"]),
    share=st.sampled_from([1.0, 0.7, 0.001]),
    fraction=st.sampled_from([0.1, 0.5, 0.95, 0.999999, 1, 7, 10**6]),
    seed=st.integers(0, 2**62),
)
def test_blocks_hold_out_what_all_rows_do(n_rows, kind, share, fraction, seed):
    rng = np.random.default_rng(seed)
    codes, is_used = draw_codes(kind, n_rows, rng), rng.random(n_rows) < share
    is_used[0] = True
    stratum = np.zeros(n_rows, np.int64) if codes is None else codes
    blocks = [slice(lo, lo + SIZE) for lo in range(0, n_rows, SIZE)]
    n_classes = int(stratum.max()) + 1
    counts = np.array([np.bincount(stratum[here][is_used[here]], minlength=n_classes) for here in blocks])

    def by_blocks():
        draw = HeldBlocks(fraction, seed, n_rows, counts, has_classes=codes is not None)
        found = [draw.draw(k, is_used[here], None if codes is None else codes[here]) for k, here in enumerate(blocks)]
        is_held = np.concatenate(found)
        is_held[draw.released] = False
        return is_held

    def at_once():
        used = None if is_used.all() else is_used
        return draw_held_out(fraction, n_rows, used, None if codes is None else codes.astype(np.int32), seed)

    assert outcome(by_blocks) == outcome(at_once)
