"""Bins of numeric columns from their sorted values, and bytes for the rows.

Words: a *run* is a stretch of equal values in a sorted column; a *segment* is one of many stretches of the number line,
found from a value without a search, that knows how many bins begin below it: only those that begin inside are compared.

From the sorted values alone (every weight 1) a bin ends after two looks: the run that holds the last of its share
belongs to it or opens the next. No other run matters, however many there are. The rule is that of `fill_bins`.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import MISSING_CODE, OFFSET

from ..common.structs import BinSegments, ByteTable, FloatTable

TILE_ROWS = 512  # rows coded together: their bytes, 16 kB for 32 features, stay in the first-level cache
LAST_KEY = 2**31 - 1  # above the bits of every known float32
ONE = np.uint64(1)
NONE = np.uint64(0)
BYTE = np.uint64(255)
BYTE_BITS = np.uint64(8)


@door
def narrow(block: np.ndarray, narrowed: np.ndarray) -> bool:
    """Copy float64 values (n_columns, n_rows) to float32; return whether that lost nothing."""
    n_lost = np.int64(0)
    for j in range(block.shape[0]):
        for i in range(block.shape[1]):
            value = block[j, i]
            short = np.float32(value)
            n_lost += np.int64(np.float64(short) != value) & np.int64(value == value)
            narrowed[j, i] = short
    return n_lost == 0


# --- The bins of sorted columns ---------------------------------------------------------------------------------


@inlined
def count_known(values: np.ndarray, j: int) -> int:
    """Values of column j before the NaNs, which are last."""
    lo = np.int64(0)
    hi = np.int64(values.shape[1])
    while lo < hi:
        middle = (lo + hi) >> 1
        if values[j, middle] == values[j, middle]:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def run_end(values: np.ndarray, j: int, at: int, end: int) -> int:
    """First position behind the run of position `at`, `end` at most."""
    value = values[j, at]
    step = np.int64(1)
    while at + step < end and values[j, at + step] == value:
        step *= 2
    lo = at + (step >> 1)  # in the run
    hi = min(at + step, end)  # behind it
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if values[j, middle] == value:
            lo = middle
        else:
            hi = middle
    return hi


@kernel
def run_start(values: np.ndarray, j: int, at: int) -> int:
    """First position of the run of position `at`."""
    value = values[j, at]
    step = np.int64(1)
    while at - step >= 0 and values[j, at - step] == value:
        step *= 2
    hi = at - (step >> 1)  # in the run
    lo = max(at - step, -1)  # before it
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if values[j, middle] == value:
            hi = middle
        else:
            lo = middle
    return hi


@kernel
def end_bin(values: np.ndarray, j: int, begin: int, n_known: int, n_left: int, tail: np.ndarray) -> int:
    """First position behind the bin that begins at `begin`, when `n_left` bins are left, this one included.

    tail: where the last runs of the column start, the last run first.
    """
    if n_left == 1:
        return n_known
    share = (n_known - begin) // n_left
    last = begin + share  # runs that end up to here are in
    start = run_start(values, j, last)
    end = run_end(values, j, last, n_known)
    if start > begin and start - begin + (end - start + 1) // 2 > share:
        end = start
    return min(end, tail[n_left - 2])  # a value for each bin after this one; there are more from `begin` on


@door
def cut(
    values: np.ndarray,  # (n_columns, n_rows) float32 or float64, each column sorted, NaN last
    max_bins: int,
    tail: np.ndarray,  # (max_bins,) int64 scratch, see `end_bin`
    low: np.ndarray,  # (n_columns, max_bins) of the type of the values, written
    high: np.ndarray,
    n_bins: np.ndarray,  # (n_columns,) int64, written
    n_known: np.ndarray,  # (n_columns,) int64, written
) -> None:
    """Write the lowest and highest value of each bin: a value each if they are few, else about equally many rows."""
    for j in range(values.shape[0]):
        known = count_known(values, j)
        at = known
        n_runs = np.int64(0)
        while at > 0 and n_runs < max_bins:
            at = run_start(values, j, at - 1)
            tail[n_runs] = at
            n_runs += 1
        n = np.int64(0)
        if at == 0:
            while n < n_runs:
                low[j, n] = values[j, tail[n_runs - 1 - n]]
                high[j, n] = low[j, n]
                n += 1
        else:
            begin = np.int64(0)
            while begin < known:
                end = end_bin(values, j, begin, known, max_bins - n, tail)
                low[j, n] = values[j, begin]
                high[j, n] = values[j, end - 1]
                begin = end
                n += 1
        n_bins[j] = n
        n_known[j] = known


@door
def pack_rows(values: np.ndarray, bits: np.ndarray, keys: np.ndarray) -> None:
    """Write for each row an int64 that sorts as its float32 value does, NaN last, and holds the row in its low half.

    bits: the memory of the values as int32; all are (n_rows,).
    """
    for i in range(len(values)):
        key = np.int64(bits[i])
        if values[i] != values[i]:
            key = LAST_KEY
        elif key < 0:
            key = -LAST_KEY - 1 - key  # a greater magnitude is a lower value; -0.0 becomes 0.0
        keys[i] = (key << 32) | i


@door
def weigh_runs(
    ordered: np.ndarray,  # (n_rows,) float32 or float64, sorted, NaN last
    order: np.ndarray,  # (n_rows,) int64: the rows of these values, in the bits of `mask`
    mask: int,
    weight: np.ndarray,  # (n_rows,) int64
    starts: np.ndarray,  # (n_rows + 1,) int64, written: where each run starts, and where the last ends
    mass: np.ndarray,  # (n_rows,) int64, written: weight of each run
) -> int:
    """Add up the weights of equal values; return how many different ones there are."""
    n_runs = np.int64(0)
    end = np.int64(0)
    while end < len(ordered) and ordered[end] == ordered[end]:
        if end == 0 or ordered[end] != ordered[end - 1]:
            starts[n_runs] = end
            mass[n_runs] = 0
            n_runs += 1
        mass[n_runs - 1] += weight[order[end] & mask]
        end += 1
    starts[n_runs] = end
    return n_runs


# --- The bytes of rows ------------------------------------------------------------------------------------------


@inlined
def segment_of(value: float, base: float, scale: float, top: float) -> np.uint64:
    """Segment of a value by its distance from the base: never a lower one for a greater value; the first for NaN."""
    place = (value - base) * scale
    place = place if place > 0 else top - top
    place = place if place < top else top
    return np.uint64(np.int64(place))  # straight to unsigned takes three times as long


@inlined
def segment_of_bits(bits: int, lowest: int, base: int, shift: int, top: int) -> np.uint64:
    """Segment of a value by its bits, which grow as its logarithm does: never a lower one for a greater value."""
    key = bits if bits >= 0 else lowest - bits  # in the order of the values; -0.0 is 0.0
    place = (key >> shift) - base
    place = place if place > 0 else np.int64(0)
    return np.uint64(place if place < top else top)


@inlined
def sum_segments(n_below: np.ndarray, j: int) -> int:
    """Turn counts per segment to counts in the segments below; return the largest count."""
    n_all = np.int64(0)
    most = np.int64(0)
    for c in range(n_below.shape[1]):
        n_here = np.int64(n_below[j, c])
        most = max(most, n_here)
        n_below[j, c] = n_all
        n_all += n_here
    return most


@kernel
def lay_evenly(segments: BinSegments, j: int, first: int, last: int, n: int) -> int:
    """Lay segments of equal width over bins first .. last of column j; return how many bins begin in the fullest."""
    low = segments.low
    n_below = segments.n_below
    base = segments.base
    scale = segments.scale
    top = segments.top
    base[j] = 0
    scale[j] = 0
    top[j] = n_below.shape[1] - 1
    if last > first:
        width = (low[j, last] - low[j, first]) / top[j]
        base[j] = low[j, first] - 2 * width  # the bins before begin in the first segment, this one does not
        scale[j] = 1 / width
        if base[j] - base[j] != 0 or scale[j] - scale[j] != 0:
            base[j] = 0  # infinite: the bins are too far apart, or too close to each other
            scale[j] = 0
    for c in range(n_below.shape[1]):
        n_below[j, c] = 0
    for k in range(n):
        segment = np.int64(segment_of(low[j, k], base[j], scale[j], top[j]))
        n_below[j, segment] += 1
    return sum_segments(n_below, j)


@kernel
def lay_by_bits(segments: BinSegments, bits: np.ndarray, lowest: int, j: int, first: int, last: int, n: int) -> int:
    """The same with segments of equally many floating-point numbers; bits: the memory of `low` as whole numbers."""
    n_below = segments.n_below
    top = n_below.shape[1] - 1
    begin = np.int64(bits[j, first])
    begin = begin if begin >= 0 else lowest - begin
    end = np.int64(bits[j, last])
    end = end if end >= 0 else lowest - end
    shift = np.int64(1)
    while (end >> shift) - (begin >> shift) > top - 1:  # ends: at worst they are 0 and -1
        shift += 1
    base = (begin >> shift) - 1
    for c in range(n_below.shape[1]):
        n_below[j, c] = 0
    for k in range(n):
        segment = np.int64(segment_of_bits(np.int64(bits[j, k]), lowest, base, shift, top))
        n_below[j, segment] += 1
    segments.shift[j] = shift
    segments.base_bits[j] = base
    return sum_segments(n_below, j)


@door
def lay_segments(
    segments: BinSegments,  # `low` is read, the rest is written
    bits: np.ndarray,  # the memory of `low` as signed integers of its size
    lowest: int,  # of those integers
    n_bins: np.ndarray,  # (n_columns,) int64
) -> None:
    """Lay segments, at least 4, over the bins of each column, between its outer bins: an outlier does not stretch them.

    Segments of equal width leave many bins of a skewed column in one: there, segments by bits take their place.
    """
    low = segments.low
    shift = segments.shift
    n_steps = segments.n_steps
    for j in range(low.shape[0]):
        n = n_bins[j]
        first = np.int64(n > 2)
        while first < n - 1 and low[j, first] - low[j, first] != 0:  # infinite
            first += 1
        last = n - 1
        while last > first and low[j, last] - low[j, last] != 0:
            last -= 1
        most = lay_evenly(segments, j, first, last, n)
        shift[j] = 0
        if most > 1:
            most_by_bits = lay_by_bits(segments, bits, lowest, j, first, last, n)
            if most_by_bits < most:
                most = most_by_bits
            else:
                lay_evenly(segments, j, first, last, n)
                shift[j] = 0
        n_steps[j] = 0
        while most >> n_steps[j] > 0:
            n_steps[j] += 1


@inlined
def climb(value: float, low: np.ndarray, column: np.uint64, n_below: np.uint64, n_steps: np.uint64) -> np.uint64:
    """How many bins begin at or below a value, which are `n_below` and less than 2**n_steps more."""
    step = n_steps
    while step > NONE:  # adds, does not jump: which half a value is in cannot be predicted
        step -= ONE
        n_below += np.uint64(value >= low[column, n_below + (ONE << step) - ONE]) << step
    return n_below


@door
def code(
    table: FloatTable,  # (n_columns, n_rows), in the order of the rows
    lo: int,
    hi: int,
    segments: BinSegments,  # `low` has as many NaN behind it as the bins of a segment, to a power of two, or more
    coded: ByteTable,  # written
) -> None:
    """Write the codes of rows lo .. hi: how many bins begin at or below a value, which is none for NaN."""
    values = table.values
    bits = table.bits
    lowest = table.lowest
    low = segments.low
    n_below = segments.n_below
    rows = coded.rows
    last_segment = np.int64(n_below.shape[1] - 1)
    for first in range(lo, hi, TILE_ROWS):
        last = min(first + TILE_ROWS, hi)
        for j in range(values.shape[0]):
            column = np.uint64(j)
            base = segments.base[j]
            scale = segments.scale[j]
            top = segments.top[j]
            base_bits = segments.base_bits[j]
            shift = segments.shift[j]
            n_steps = np.uint64(segments.n_steps[j])
            byte = np.uint64(coded.place[j])
            has_two = coded.is_wide[j]
            if shift > 0:
                for i in range(first, last):
                    row = np.uint64(i)
                    value = values[column, row]
                    segment = segment_of_bits(np.int64(bits[column, row]), lowest, base_bits, shift, last_segment)
                    n = climb(value, low, column, np.uint64(n_below[column, segment]), n_steps)
                    n = n if value == value else NONE
                    rows[row, byte] = n & BYTE
                    if has_two:
                        rows[row, byte + ONE] = n >> BYTE_BITS
            elif n_steps == ONE and not has_two:  # the usual case: 1.2 ns a value, against 1.7 ns for each step
                for i in range(first, last):
                    row = np.uint64(i)
                    value = values[column, row]
                    n = np.uint64(n_below[column, segment_of(value, base, scale, top)])
                    rows[row, byte] = n + np.uint64(value >= low[column, n])
            else:
                for i in range(first, last):
                    row = np.uint64(i)
                    value = values[column, row]
                    segment = segment_of(value, base, scale, top)
                    n = climb(value, low, column, np.uint64(n_below[column, segment]), n_steps)
                    rows[row, byte] = n & BYTE
                    if has_two:
                        rows[row, byte + ONE] = n >> BYTE_BITS


# --- Codes of bins merged anew ----------------------------------------------------------------------------------


@inlined
def load_code(rows: np.ndarray, row: np.uint64, byte: np.uint64, has_two: bool) -> int:
    """Code of a feature in a row."""
    if has_two:
        return np.int64(rows[row, byte]) | (np.int64(rows[row, byte + ONE]) << 8)
    return np.int64(rows[row, byte])


@door
def sum_mass(
    table: ByteTable,
    features: np.ndarray,
    mass: np.ndarray,  # (n_rows,) int64
    first_feature: int,
    last_feature: int,
    sums: np.ndarray,  # (n_codes of all features,) int64, added to
) -> None:
    """Add the mass of the rows to that of their known codes, for features first .. last."""
    rows = table.rows
    for first in range(0, rows.shape[0], TILE_ROWS):
        last = min(first + TILE_ROWS, rows.shape[0])
        for j in range(first_feature, last_feature):
            byte = np.uint64(table.place[j])
            before = features[OFFSET, j] - 1
            has_two = table.is_wide[j]
            for i in range(first, last):
                found = load_code(rows, np.uint64(i), byte, has_two)
                if found != MISSING_CODE:
                    sums[before + found] += mass[i]


@door
def recode(
    old: ByteTable,
    lookup: np.ndarray,  # (n_codes of all features + n_features,) uint16: new code of each code, the missing one first
    features: np.ndarray,
    lo: int,
    hi: int,
    new: ByteTable,  # written
) -> None:
    """Write new codes for rows lo .. hi."""
    old_rows = old.rows
    new_rows = new.rows
    for first in range(lo, hi, TILE_ROWS):
        last = min(first + TILE_ROWS, hi)
        for j in range(len(old.place)):
            byte = np.uint64(old.place[j])
            to_byte = np.uint64(new.place[j])
            before = features[OFFSET, j] + j
            has_two = old.is_wide[j]
            has_two_now = new.is_wide[j]
            for i in range(first, last):
                row = np.uint64(i)
                found = np.uint64(lookup[before + load_code(old_rows, row, byte, has_two)])
                new_rows[row, to_byte] = found & BYTE
                if has_two_now:
                    new_rows[row, to_byte + ONE] = found >> BYTE_BITS


@door
def fill_bins(mass: np.ndarray, n_bins: int, bins: np.ndarray) -> int:
    """Number the bins of values in order, given the weight of each; return how many there are.

    A bin takes values until it holds its share of what was left when it opened, so that a heavy value gets a bin of
    its own and the rest share the remaining bins evenly.
    """
    left = np.int64(0)
    for k in range(len(mass)):
        left += mass[k]
    at = np.int64(0)  # the bin that is open
    held = np.int64(0)  # its weight
    share = left // n_bins  # what it should hold
    for k in range(len(mass)):
        if ends_bin(mass[k], held, share, n_bins - at, len(mass) - k):
            at += 1
            held = np.int64(0)
            share = left // (n_bins - at)
        held += mass[k]
        left -= mass[k]
        bins[k] = at
    return at + 1


@inlined
def ends_bin(w: int, held: int, share: int, n_bins: int, n_values: int) -> bool:
    """Whether the open bin ends before a value of weight w; n_bins, n_values: with the open one and it, how many."""
    return held > 0 and n_bins > 1 and (held + (w + 1) // 2 > share or n_values < n_bins)


@door
def fill_sorted(
    values: np.ndarray,  # (n,) float32 or float64, ascending, perhaps with repeats
    mass: np.ndarray,  # (n,) int64; (0,): 1 each
    n_values: int,  # distinct values from here to the last of all, or any number above that of the bins
    n_bins: int,
    chain: np.ndarray,  # (5,) int64, see `start_chain`
    low: np.ndarray,  # (n_bins,) float64, written: the lowest value of each bin ...
    high: np.ndarray,  # ... and the highest
) -> None:
    """The bins of `fill_bins` for some values at a time, by their ends; `chain` goes from call to call."""
    at = chain[0]
    held = chain[1]
    share = chain[2]
    left = chain[3]
    n_seen = chain[4]
    has_mass = len(mass) > 0
    k = 0
    while k < len(values):
        v = values[k]
        w = np.int64(0)
        while k < len(values) and values[k] == v:
            w += mass[k] if has_mass else np.int64(1)
            k += 1
        if ends_bin(w, held, share, n_bins - at, n_values):
            at += 1
            held = np.int64(0)
            share = left // (n_bins - at)
            low[at] = v
        if n_seen == 0:
            low[0] = v
        high[at] = v
        held += w
        left -= w
        n_seen += 1
        n_values -= 1
    chain[0] = at
    chain[1] = held
    chain[2] = share
    chain[3] = left
    chain[4] = n_seen


@door
def find_last_values(values: np.ndarray, n_wanted: int) -> tuple[int, int]:
    """Where the last so many distinct values of ascending ones begin, and how many these are: perhaps fewer."""
    n_found = 0
    k = len(values)
    while k > 0 and n_found < n_wanted:
        k -= 1
        while k > 0 and values[k - 1] == values[k]:
            k -= 1
        n_found += 1
    return k, n_found


@door
def start_chain(left: int, n_bins: int, chain: np.ndarray) -> None:
    """Before the first value of a column that weighs `left`: open bin, its weight, its share, weight left, values."""
    chain[0] = 0
    chain[1] = 0
    chain[2] = left // n_bins
    chain[3] = left
    chain[4] = 0
