"""One row through all trees of a forest of thresholds by the ranks of its values: one word a node.

As in `ranked`, each value becomes its rank among the thresholds of its feature, once for all trees, and the rank is
added to a node's step: what carries is the branch. `one_row` reads 16 bytes a node, this 8, and most of the time of one
row is waiting for nodes to come from memory.

`model.packed_steps` lays out a single array, in words of 64 bits:

    head, start of each sum, root of each tree    as in `one_row`
    columns     COLUMN_WORDS for each column that trees ask for: see `rank_value`
    cuts        the thresholds of each column, ascending, then NaN
    guides      32 bits for each segment of a column: how many of its thresholds are in the segments below
    steps       a word for each node; all places are words from the beginning of the array
    said        what leaves say: distinct values, or rows of shares

A leaf's step leads to itself, since the place that it asks for always has rank 0, and where others have a threshold it
has the place of what it says, counted from `said`; of a pure leaf that is its class. Ranks are written behind the sums.
The roots are filled up with a leaf that says -0.0, which changes no sum.

TREES trees are walked at a time: 100 trees of 5,400 nodes took 4.7 us, 8 at a time 5.2.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    AT_COLUMNS,
    AT_SAID,
    COLUMN_WORDS,
    DIVISOR,
    HAS_SHARES,
    HEAD_SIZE,
    MOST_STEPS,
    N_CELLS,
    N_COLUMNS,
    N_FEATURES,
    N_TREES,
    PLACE_BITS,
    TREES,
    WIDTH,
)

from ..common.node_layout import child_by_rank, held_by_step, most_held, place_in_row

NONE = np.uint64(0)
ONE = np.uint64(1)
HALF = np.uint64(TREES // 2)
BLIND_STEPS = 3  # in a row before it is asked who has arrived, as in `one_row`


# --- Ranks ---------------------------------------------------------------------------------------------------------


@inlined
def rank_value(value: float, column: np.uint64, packed: np.ndarray, cuts: np.ndarray, guides: np.ndarray) -> np.uint64:
    """How many thresholds of a column are below a value, none for NaN.

    The words of the column: feature; first cut; base and scale of its segments, which are of equal width, and the
    number of the last; first guide; how many halvings find a cut within a segment; where the other rank goes.
    """
    top = cuts[column + np.uint64(4)]
    place = (value - cuts[column + np.uint64(2)]) * cuts[column + np.uint64(3)]
    place = place if place > 0.0 else 0.0  # so is NaN
    place = place if place < top else top
    first = packed[column + ONE]
    cut = first + np.uint64(guides[packed[column + np.uint64(5)] + np.uint64(np.int64(place))])
    halving = packed[column + np.uint64(6)]
    while halving > NONE:  # adds, does not jump: by jumps 28 values took 2 us more
        halving -= ONE
        cut += np.uint64(value > cuts[cut + (ONE << halving) - ONE]) << halving
    return cut - first


@inlined
def rank_row(packed: np.ndarray, cuts: np.ndarray, x: np.ndarray, ranks: np.ndarray, first: np.uint64) -> None:
    """Write the lifted ranks of a row from cell `first` on, one for each column, and those of missing values.

    A missing value is below every threshold; for tests that send it to branch 1 there is a second rank, above all. The
    last place is that of leaves: columns without a second rank write theirs there, before it becomes 0.
    """
    guides = packed.view(np.uint32)
    bits = packed[PLACE_BITS]
    above_all = most_held(bits) << bits
    column = packed[AT_COLUMNS]
    for c in range(np.int64(packed[N_COLUMNS])):
        value = np.float64(x[packed[column]])
        rank = rank_value(value, column, packed, cuts, guides) << bits
        ranks[first + np.uint64(c)] = rank
        ranks[first + packed[column + np.uint64(7)]] = above_all if value != value else rank
        column += np.uint64(COLUMN_WORDS)
    ranks[packed[N_CELLS] - ONE] = NONE


# --- Steps ---------------------------------------------------------------------------------------------------------


@inlined
def step(node: np.uint64, packed: np.ndarray, ranks: np.ndarray, first: np.uint64, bits: np.uint64) -> np.uint64:
    """Where the row goes from `node`."""
    word = packed[node]
    return child_by_rank(word, ranks[first + place_in_row(word, bits)])


@inlined
def step_all(
    nodes: tuple[np.uint64, ...], packed: np.ndarray, ranks: np.ndarray, first: np.uint64, bits: np.uint64
) -> tuple[np.uint64, ...]:
    """Where the row goes from each of eight nodes."""
    a, b, c, d, e, f, g, h = nodes
    return (
        step(a, packed, ranks, first, bits),
        step(b, packed, ranks, first, bits),
        step(c, packed, ranks, first, bits),
        step(d, packed, ranks, first, bits),
        step(e, packed, ranks, first, bits),
        step(f, packed, ranks, first, bits),
        step(g, packed, ranks, first, bits),
        step(h, packed, ranks, first, bits),
    )


@inlined
def roots_from(place: np.uint64, packed: np.ndarray) -> tuple[np.uint64, ...]:
    """The roots of eight trees."""
    return (
        packed[place],
        packed[place + np.uint64(1)],
        packed[place + np.uint64(2)],
        packed[place + np.uint64(3)],
        packed[place + np.uint64(4)],
        packed[place + np.uint64(5)],
        packed[place + np.uint64(6)],
        packed[place + np.uint64(7)],
    )


@inlined
def difference(nodes: tuple[np.uint64, ...], others: tuple[np.uint64, ...]) -> np.uint64:
    """0 where eight nodes are the same as eight others."""
    a, b, c, d, e, f, g, h = nodes
    i, j, k, m, n, o, p, q = others
    return (a ^ i) | (b ^ j) | (c ^ k) | (d ^ m) | (e ^ n) | (f ^ o) | (g ^ p) | (h ^ q)


@inlined
def descend(
    place: np.uint64, packed: np.ndarray, ranks: np.ndarray, first: np.uint64, bits: np.uint64
) -> tuple[tuple[np.uint64, ...], tuple[np.uint64, ...]]:
    """Leaves of the row in the TREES trees whose roots stand from `place` on."""
    left = roots_from(place, packed)
    right = roots_from(place + HALF, packed)
    for _ in range(0, np.int64(packed[MOST_STEPS]), BLIND_STEPS + 1):
        for _ in range(BLIND_STEPS):
            left = step_all(left, packed, ranks, first, bits)
            right = step_all(right, packed, ranks, first, bits)
        old_left = left
        old_right = right
        left = step_all(left, packed, ranks, first, bits)
        right = step_all(right, packed, ranks, first, bits)
        if difference(left, old_left) | difference(right, old_right) == NONE:
            break
    return left, right


# --- Sums ----------------------------------------------------------------------------------------------------------


@inlined
def add_held_share(leaf: np.uint64, packed: np.ndarray, cuts: np.ndarray, out: np.ndarray) -> None:
    """Add a leaf's class, or its row of shares; see `lanes.add_leaf`."""
    place = held_by_step(packed[leaf], packed[PLACE_BITS])
    width = packed[WIDTH]
    if place < width:
        out[place] += 1.0
        return
    place += packed[AT_SAID]
    for c in range(np.int64(width)):
        out[c] += cuts[place + np.uint64(c)]


@inlined
def add_held_shares(leaves: tuple[np.uint64, ...], packed: np.ndarray, cuts: np.ndarray, out: np.ndarray) -> None:
    """Add what eight leaves say of classes."""
    a, b, c, d, e, f, g, h = leaves
    add_held_share(a, packed, cuts, out)
    add_held_share(b, packed, cuts, out)
    add_held_share(c, packed, cuts, out)
    add_held_share(d, packed, cuts, out)
    add_held_share(e, packed, cuts, out)
    add_held_share(f, packed, cuts, out)
    add_held_share(g, packed, cuts, out)
    add_held_share(h, packed, cuts, out)


@inlined
def value_of(leaf: np.uint64, packed: np.ndarray, cuts: np.ndarray, said: np.uint64, bits: np.uint64) -> float:
    """The value that a leaf says."""
    return cuts[said + held_by_step(packed[leaf], bits)]


@inlined
def sum_held_values(
    total: float, leaves: tuple[np.uint64, ...], packed: np.ndarray, cuts: np.ndarray, said: np.uint64, bits: np.uint64
) -> float:
    """A sum and what eight leaves say, added in their order."""
    a, b, c, d, e, f, g, h = leaves
    total += value_of(a, packed, cuts, said, bits)
    total += value_of(b, packed, cuts, said, bits)
    total += value_of(c, packed, cuts, said, bits)
    total += value_of(d, packed, cuts, said, bits)
    total += value_of(e, packed, cuts, said, bits)
    total += value_of(f, packed, cuts, said, bits)
    total += value_of(g, packed, cuts, said, bits)
    total += value_of(h, packed, cuts, said, bits)
    return total


@inlined
def add_held_value(leaf: np.uint64, at: np.uint64, packed: np.ndarray, cuts: np.ndarray, out: np.ndarray) -> np.uint64:
    """Add a leaf's value to sum `at`; return which sum the next tree adds to."""
    out[at] += value_of(leaf, packed, cuts, packed[AT_SAID], packed[PLACE_BITS])
    return at + ONE if at + ONE < packed[WIDTH] else NONE


@inlined
def add_held_values(
    leaves: tuple[np.uint64, ...], at: np.uint64, packed: np.ndarray, cuts: np.ndarray, out: np.ndarray
) -> np.uint64:
    """Add what eight leaves say to sums by turns, from sum `at` on; return the next."""
    a, b, c, d, e, f, g, h = leaves
    at = add_held_value(a, at, packed, cuts, out)
    at = add_held_value(b, at, packed, cuts, out)
    at = add_held_value(c, at, packed, cuts, out)
    at = add_held_value(d, at, packed, cuts, out)
    at = add_held_value(e, at, packed, cuts, out)
    at = add_held_value(f, at, packed, cuts, out)
    at = add_held_value(g, at, packed, cuts, out)
    return add_held_value(h, at, packed, cuts, out)


@door
def add_ranked(
    packed: np.ndarray,  # (any,) uint64
    x: np.ndarray,  # (n_features,) float32 or float64, missing NaN
    out: np.ndarray,  # (n_cells,) float64, written: the sums, then ranks
) -> bool:
    """Write what the trees say of a row, as `one_row.add_up`; False: x or out is not as long as they should be."""
    if len(x) != np.int64(packed[N_FEATURES]) or len(out) != np.int64(packed[N_CELLS]):
        return False
    cuts = packed.view(np.float64)
    ranks = out.view(np.uint64)
    first = packed[WIDTH]
    bits = packed[PLACE_BITS]
    said = packed[AT_SAID]
    width = np.int64(first)
    rank_row(packed, cuts, x, ranks, first)
    for k in range(width):
        out[k] = cuts[HEAD_SIZE + k]
    has_shares = packed[HAS_SHARES] != NONE
    is_single = width == 1 and not has_shares
    total = out[0]  # a sum in a register, as in `one_row`
    at = NONE
    for t in range(0, np.int64(packed[N_TREES]), TREES):
        left, right = descend(np.uint64(HEAD_SIZE + width + t), packed, ranks, first, bits)
        if is_single:
            total = sum_held_values(total, left, packed, cuts, said, bits)
            total = sum_held_values(total, right, packed, cuts, said, bits)
        elif has_shares:
            add_held_shares(left, packed, cuts, out)
            add_held_shares(right, packed, cuts, out)
        else:
            at = add_held_values(left, at, packed, cuts, out)
            at = add_held_values(right, at, packed, cuts, out)
    if is_single:
        out[0] = total
    for k in range(width):
        out[k] /= cuts[DIVISOR]
    return True
