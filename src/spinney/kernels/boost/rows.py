"""Rows of small codes that move with the partition: sums per code, and the two branches of a test.

A row is a few 64-bit words: one byte for each narrow feature, then two for each wide one (`table.binning`). The
rows of a node that is split change places, words, packed sums and row numbers together, so that those of each child
stand side by side: 1.3 ns a row, and a histogram then takes 0.5 ns a code instead of 2.3 ns behind a gather.

A packed sum is `gradient << 32 | hessian`: one addition for both. Hessians are positive and add up to less than 2**31.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BIN_CODE, HISTOGRAM_STRIDE

from ..common.bits import lowest_bit
from ..common.structs import ByteRows, Column, Part, Range

NONE, ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(5))
EIGHT = np.uint64(8)
BYTE = np.uint64(8)
BYTE_MASK = np.uint64(255)
STRIDE = np.uint64(HISTOGRAM_STRIDE)
S16, S24, S32, S40, S48, S56 = (np.uint64(bits) for bits in (16, 24, 32, 40, 48, 56))
WIDE = np.bool_(True)  # typed as any bool: a literal would be a type of its own
LOOK_ROWS = 32
BLOCK = np.uint64(64)  # rows of a node that are looked at before any is swapped
C2, C3, C4, C5, C6, C7, C8 = (np.uint64(k * HISTOGRAM_STRIDE) for k in range(2, 9))


@inlined
def read_code(codes: np.ndarray, at: np.uint64, is_wide: bool) -> np.uint64:
    """The code whose first byte is `at`."""
    code = np.uint64(codes[at])
    if is_wide:
        code |= np.uint64(codes[at + ONE]) << BYTE
    return code


@inlined
def number_of(k: np.uint64, ids: np.ndarray) -> np.uint64:
    """The number of the k-th row in the table, in whose own order rows have none written down."""
    return np.uint64(ids[k]) if len(ids) > 0 else k


@inlined
def own_byte(n_words: int, place: int, is_wide: bool) -> Column:
    """A column whose bytes are taken as they stand."""
    return Column(n_words, place, is_wide, np.int64(-1), np.int64(0), np.int64(0))


@inlined
def decode(code: int, column: Column) -> int:
    """The code of a feature by that of its byte, which it may share with features that are never unusual together."""
    if column.base < 0:
        return code
    other = code - column.base + 1
    if other < 1 or other >= column.n_codes:
        return column.usual
    return other + np.int64(other >= column.usual)


@inlined
def encode(code: int, column: Column) -> int:
    """The code of the byte for a code of a feature; that of the usual one stands for all that other features write."""
    if column.base < 0:
        return code
    return column.base + code - 1 - np.int64(code > column.usual)


# --- Sums by code -------------------------------------------------------------------------------------------


@inlined
def add_rows(
    rows: ByteRows,
    lo: int,
    hi: int,
    n_words: int,  # of a row
    n_narrow: int,
    histogram: np.ndarray,  # added to from `first` on, HISTOGRAM_STRIDE for each feature
    first: int,
) -> None:
    """Add the packed sums of rows lo .. hi to the histogram of all narrow features."""
    words = rows.words
    sums = rows.sums
    step = np.uint64(n_words)
    full = np.uint64(n_narrow >> 3)
    rest = np.uint64(n_narrow & 7)
    start = np.uint64(first)
    for k in range(np.uint64(lo), np.uint64(hi)):
        v = sums[k]
        at = k * step
        base = start
        for w in range(full):  # eight codes by one load
            word = words[at + w]
            histogram[base + (word & BYTE_MASK)] += v
            histogram[base + STRIDE + ((word >> BYTE) & BYTE_MASK)] += v
            histogram[base + C2 + ((word >> S16) & BYTE_MASK)] += v
            histogram[base + C3 + ((word >> S24) & BYTE_MASK)] += v
            histogram[base + C4 + ((word >> S32) & BYTE_MASK)] += v
            histogram[base + C5 + ((word >> S40) & BYTE_MASK)] += v
            histogram[base + C6 + ((word >> S48) & BYTE_MASK)] += v
            histogram[base + C7 + (word >> S56)] += v
            base += C8
        if rest > NONE:
            word = words[at + full]
            for _ in range(rest):
                histogram[base + (word & BYTE_MASK)] += v
                word = word >> BYTE
                base += STRIDE


@kernel
def add_some(
    rows: ByteRows,
    lo: int,
    hi: int,
    n_words: int,
    used_places: np.ndarray,  # (n,) int64: narrow features by place
    histogram: np.ndarray,
    first: int,
) -> None:
    """The same for some of the narrow features."""
    codes = rows.codes
    sums = rows.sums
    stride = np.uint64(n_words) * EIGHT
    n_used = len(used_places)
    for k in range(np.uint64(lo), np.uint64(hi)):
        v = sums[k]
        at = k * stride
        for f in range(n_used):
            place = np.uint64(used_places[f])
            histogram[np.uint64(first) + place * STRIDE + np.uint64(codes[at + place])] += v


@kernel
def add_one(rows: ByteRows, lo: int, hi: int, column: Column, histogram: np.ndarray, first: int) -> None:
    """The same for one wide feature."""
    codes = rows.codes
    sums = rows.sums
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    for k in range(np.uint64(lo), np.uint64(hi)):
        histogram[np.uint64(first) + read_code(codes, k * stride + place, True)] += sums[k]


@kernel
def add_wide(
    rows: ByteRows,
    lo: int,
    hi: int,
    column: Column,
    histogram: np.ndarray,
    bins: np.ndarray,  # its BIN_CODE written: codes in the order in which they are met
    n_met: int,
) -> int:
    """Add the packed sums of rows lo .. hi to the histogram of a wide feature; return how many codes have been met."""
    codes = rows.codes
    sums = rows.sums
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    for k in range(np.uint64(lo), np.uint64(hi)):
        code = read_code(codes, k * stride + place, True)
        bins[BIN_CODE, n_met] = np.int64(code)
        n_met += np.int64(histogram[code] == 0)
        histogram[code] += sums[k]
    return n_met


@kernel
def add_by_cells(
    rows: ByteRows,
    lo: int,
    hi: int,
    cell_begin: np.ndarray,  # (n_rows of the table + 1,)
    cell_sum: np.ndarray,
    histogram: np.ndarray,
    first: int,
) -> None:
    """The same for all narrow features, by the cells of the rows."""
    sums = rows.sums
    start = np.uint64(first)
    for k in range(np.uint64(lo), np.uint64(hi)):
        v = sums[k]
        row = number_of(k, rows.ids)
        for c in range(np.uint64(cell_begin[row]), np.uint64(cell_begin[row + ONE])):
            histogram[start + np.uint64(cell_sum[c])] += v


# --- Counts -------------------------------------------------------------------------------------------------


@inlined
def count_enough(
    rows: ByteRows,
    lo: int,
    hi: int,
    column: Column,
    inside: Range,  # codes of the byte, or two, of a feature
    n_inside: int,  # rows counted so far ...
    n_outside: int,
    least: int,  # ... up to so many of either
) -> tuple[int, int]:
    """Count rows of lo .. hi by whether their code is inside a range, until there are enough of both.

    One unsigned comparison a row, and a look at the counts every few rows: 0.3 ns a row, with two comparisons 0.5.
    """
    codes = rows.codes
    stride = np.uint64(column.n_words) * EIGHT
    is_wide = column.is_wide
    first = np.uint64(inside.first)
    width = np.uint64(inside.last - inside.first)
    at = np.uint64(lo) * stride + np.uint64(column.place)
    for begin in range(lo, hi, LOOK_ROWS):
        n = min(hi - begin, LOOK_ROWS)
        n_met = NONE
        for _ in range(n):
            n_met += np.uint64(read_code(codes, at, is_wide) - first <= width)
            at += stride
        n_inside += np.int64(n_met)
        n_outside += n - np.int64(n_met)
        if min(n_inside, n_outside) >= least:
            break
    return n_inside, n_outside


@inlined
def count_codes(rows: ByteRows, lo: int, hi: int, column: Column, row_counts: np.ndarray) -> None:
    """Count rows lo .. hi by the code of one feature; row_counts: (n_codes + 1,) int64, added to."""
    codes = rows.codes
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    is_wide = column.is_wide
    if column.base < 0:
        for k in range(np.uint64(lo), np.uint64(hi)):
            row_counts[read_code(codes, k * stride + place, is_wide)] += 1
        return
    # most rows have the usual code: to add each to its count is to wait for the row before, 1.3 ns
    first = np.uint64(column.base)
    n_codes = np.uint64(column.n_codes - 1)
    n_others = np.int64(0)
    for k in range(np.uint64(lo), np.uint64(hi)):
        code = np.uint64(codes[k * stride + place])
        if code - first < n_codes:
            row_counts[decode(np.int64(code), column)] += 1
            n_others += 1
    row_counts[column.usual] += hi - lo - n_others


@kernel
def count_rows(
    rows: ByteRows,
    lo: int,
    hi: int,
    column: Column,
    weights: np.ndarray,  # (n_rows of the table,) or (1,) int64
    row_counts: np.ndarray,  # (n_codes + 1,) int64, added to
    weight_counts: np.ndarray,  # the same
) -> None:
    """Count rows lo .. hi, and their weights, by the code of one feature."""
    codes = rows.codes
    ids = rows.ids
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    is_wide = column.is_wide
    for k in range(np.uint64(lo), np.uint64(hi)):
        code = decode(np.int64(read_code(codes, k * stride + place, is_wide)), column)
        row_counts[code] += 1
        weight_counts[code] += weights[number_of(k, ids)] if len(weights) > 1 else weights[0]


# --- The two branches of a test -----------------------------------------------------------------------------


@kernel
def move_rows(
    rows: ByteRows,
    lo: int,
    hi: int,
    to: ByteRows,
    room: Part,  # where branch 0 begins, and branch 1 ends, growing downwards
    column: Column,  # of the test
    n_moved: int,  # words of a row there: all, or the first ones
    goes_left: np.ndarray,  # uint8 by code
) -> int:
    """Move rows lo .. hi to their branches elsewhere; return where branch 0 ends.

    Which way a row goes cannot be predicted, so it is computed, not jumped on.
    """
    codes = rows.codes
    words = rows.words
    sums = rows.sums
    ids = rows.ids
    to_words = to.words
    to_sums = to.sums
    to_ids = to.ids
    n_own = np.uint64(column.n_words)
    n_words = np.uint64(n_moved)
    is_wide = column.is_wide
    low = np.uint64(room.begin)
    high = np.uint64(room.end) - ONE
    where = np.uint64(column.place)
    for k in range(np.uint64(lo), np.uint64(hi)):
        go = goes_left[read_code(codes, k * n_own * EIGHT + where, is_wide)] != 0
        q = low if go else high
        low += np.uint64(go)
        high -= ONE - np.uint64(go)
        row = np.int32(number_of(k, ids))
        packed = sums[k]
        at = k * n_own
        dest = q * n_words
        if n_words & THREE == NONE:
            for w in range(NONE, n_words, FOUR):
                a = words[at + w]
                b = words[at + w + ONE]
                c = words[at + w + TWO]
                d = words[at + w + THREE]
                to_words[dest + w] = a
                to_words[dest + w + ONE] = b
                to_words[dest + w + TWO] = c
                to_words[dest + w + THREE] = d
        elif n_words == TWO:  # 1.6 ns a row, by a loop 2.3 ns
            a = words[at]
            b = words[at + ONE]
            to_words[dest] = a
            to_words[dest + ONE] = b
        else:
            for w in range(n_words):
                to_words[dest + w] = words[at + w]
        to_ids[q] = row
        to_sums[q] = packed
    return np.int64(low)


@kernel
def lend_codes(source: ByteRows, column: Column, rows: ByteRows, lo: int, hi: int) -> None:
    """Write the codes of a narrow column of the table to the first byte of rows lo .. hi, which have a word each."""
    codes = source.codes
    ids = rows.ids
    to = rows.codes
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    for k in range(np.uint64(lo), np.uint64(hi)):
        to[k * EIGHT] = codes[np.uint64(ids[k]) * stride + place]


@inlined
def swap_rows(rows: ByteRows, i: np.uint64, j: np.uint64, n_words: np.uint64, is_last: bool) -> None:
    """Swap two rows, or their numbers alone.

    Words are read before others are written, as many as that pays for: the compiler cannot know that the ones are not
    the others, and waits for each.
    """
    words = rows.words
    sums = rows.sums
    ids = rows.ids
    row = ids[i]
    other = ids[j]
    ids[i] = other
    ids[j] = row
    if is_last:
        return
    packed = sums[i]
    rest = sums[j]
    sums[i] = rest
    sums[j] = packed
    p = i * n_words
    q = j * n_words
    if n_words & THREE == NONE:
        for w in range(NONE, n_words, FOUR):
            a = words[p + w]
            b = words[p + w + ONE]
            c = words[p + w + TWO]
            d = words[p + w + THREE]
            e = words[q + w]
            f = words[q + w + ONE]
            g = words[q + w + TWO]
            h = words[q + w + THREE]
            words[p + w] = e
            words[p + w + ONE] = f
            words[p + w + TWO] = g
            words[p + w + THREE] = h
            words[q + w] = a
            words[q + w + ONE] = b
            words[q + w + TWO] = c
            words[q + w + THREE] = d
        return
    for w in range(NONE, n_words & ~ONE, TWO):
        a = words[p + w]
        b = words[p + w + ONE]
        e = words[q + w]
        f = words[q + w + ONE]
        words[p + w] = e
        words[p + w + ONE] = f
        words[q + w] = a
        words[q + w + ONE] = b
    if n_words & ONE != NONE:
        a = words[p + n_words - ONE]
        e = words[q + n_words - ONE]
        words[p + n_words - ONE] = e
        words[q + n_words - ONE] = a


@inlined
def part_words(
    rows: ByteRows, lo: int, hi: int, n_words: np.uint64, column: Column, goes_left: np.ndarray, is_last: bool
) -> int:
    """`part_rows` for rows of some width, a constant where this is inlined."""
    codes = rows.codes
    stride = n_words * EIGHT
    where = np.uint64(column.place)
    is_wide = column.is_wide
    first = np.uint64(lo)  # rows first .. last have not been looked at
    last = np.uint64(hi)
    low = first  # begin of the lower block; bit i of `rights`: the i-th row of it goes right
    rights = NONE
    high = last  # last row of the upper block; bit i of `lefts`: the i-th before it goes left
    lefts = NONE
    while first < last:
        n_new = last - first
        n_low = NONE
        if rights == NONE:
            n_low = min(n_new >> ONE if lefts == NONE else n_new, BLOCK)
            low = first
            for i in range(NONE, n_low):
                go = np.uint64(goes_left[read_code(codes, (low + i) * stride + where, is_wide)])
                rights |= (ONE - go) << i
            first += n_low
        if lefts == NONE:
            n_high = min(n_new - n_low, BLOCK)
            high = last - ONE
            for i in range(NONE, n_high):
                lefts |= np.uint64(goes_left[read_code(codes, (high - i) * stride + where, is_wide)]) << i
            last -= n_high
        while min(rights, lefts) != NONE:
            swap_rows(rows, low + lowest_bit(rights), high - lowest_bit(lefts), n_words, is_last)
            rights &= rights - ONE
            lefts &= lefts - ONE
    while rights != NONE:  # of the lower block alone: they go behind its other rows
        last -= ONE
        bit = ONE << (last - low)
        if rights & bit != NONE:
            rights &= ~bit
        else:
            swap_rows(rows, low + lowest_bit(rights), last, n_words, is_last)
            rights &= rights - ONE
    while lefts != NONE:  # or of the upper block alone: before its other rows
        bit = ONE << (high - last)
        if lefts & bit != NONE:
            lefts &= ~bit
        else:
            swap_rows(rows, high - lowest_bit(lefts), last, n_words, is_last)
            lefts &= lefts - ONE
        last += ONE
    return np.int64(last)


@kernel
def part_rows(
    rows: ByteRows,
    lo: int,
    hi: int,
    column: Column,  # of the test
    goes_left: np.ndarray,  # uint8 by code
    is_last: bool,  # no node below will be split: row numbers alone are moved
) -> int:
    """Bring rows lo .. hi that go left before the others, in place and in any order; return where the others begin.

    Blocks of 64 rows from either end are looked at without a jump: a bit for each row that stands on the wrong side.
    Then rows of wrong sides are swapped, as many as both blocks have, and the block that has none left is followed by
    the next one inwards. 1.0 to 1.5 ns a row of two or four words; to move all rows elsewhere took 1.5 to 3.7. The
    common widths are constants where the loops are compiled.
    """
    if column.n_words == 4:
        return part_words(rows, lo, hi, FOUR, column, goes_left, is_last)
    if column.n_words == 2:
        return part_words(rows, lo, hi, TWO, column, goes_left, is_last)
    if column.n_words == 8:
        return part_words(rows, lo, hi, EIGHT, column, goes_left, is_last)
    return part_words(rows, lo, hi, np.uint64(column.n_words), column, goes_left, is_last)
