"""Best cut for two classes with whole weights: the search of forests, and of plain trees.

What a row adds is packed as sums of all rows are, `weight << 32 | weight of class 1`: one addition serves both. In 32
bits, `weight << 16 | weight of class 1`, so are sums of up to PAIR_ROWS rows. Nothing is sorted but a few rows of large
nodes:

  up to PAIR_ROWS rows   every row is compared with every other, eight at a time by the processor: the sum left of a cut
                         at a row's code is the sum over rows with codes up to it
  more rows              rows fall into buckets of neighbouring codes; the score is convex in the sums left of a cut, so
                         inside a bucket it is at most that of its two classes in perfect order. Only buckets that could
                         hold a better cut than the best between buckets are looked into
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_SUM,
    BIN_WEIGHT,
    MAX_CODES,
    MOST_BUCKETS,
    N_CODES,
    N_MISSING,
    PAIR_LANES,
    PAIR_ROWS,
    S_ALL,
    TARGET,
    W_ALL,
    WEIGHT,
)

from ..common.bits import bit_place
from ..common.category_chance import least_luck, less_luck, luck_room, sum_roots
from ..common.sorting import sort_keys
from ..common.structs import Candidate, OpenNode, PackedScratch, Rows, Scratch, Settings, Table
from ..common.ties import bar_above, floor_below
from .candidates import cut_between, none_better
from .category_chance import chance_of_numbers
from .feature_order import source_of
from .level_bits import mark_codes

LOW_HALF = 0xFFFFFFFF
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
ROWS_PER_BUCKET = 8
ROOM = 1.0 + 2.0**-30  # for the rounding of a sum over levels


@inlined
def pack_addends(addends: np.ndarray, lo: int, hi: int, packed: PackedScratch) -> None:
    """Pack what rows lo .. hi add; in 32 bits too where they are few, and nothing for the lanes behind them."""
    wide, narrow = packed.wide, packed.addends
    n = np.uint64(hi - lo)
    first = np.uint64(lo)
    if len(addends) == 1:
        for k in range(n):
            wide[k] = (np.int64(1) << 32) | addends[TARGET, first + k]
    else:
        for k in range(n):
            wide[k] = (addends[WEIGHT, first + k] << 32) | addends[TARGET, first + k]
    if n <= np.uint64(PAIR_ROWS):
        for k in range(n):
            narrow[k] = np.int32((wide[k] >> 16) | (wide[k] & LOW_HALF))
        for k in range(PAIR_LANES):
            narrow[n + np.uint64(k)] = np.int32(0)


@inlined
def load_column(codes: np.ndarray, lo: int, hi: int, feature: int, column: np.ndarray) -> tuple[int, int]:
    """Copy the codes of a feature to `column`; return the lowest and the highest."""
    lowest = np.int32(MAX_CODES)
    highest = np.int32(0)
    first = np.uint64(lo)
    at = np.uint64(feature)
    n = np.uint64(hi - lo)
    for k in range(n):
        column[k] = np.int32(codes[first + k, at])
    for k in range(n):  # apart: of codes side by side the processor takes several at a time
        lowest = min(lowest, column[k])
        highest = max(highest, column[k])
    return np.int64(lowest), np.int64(highest)


@inlined
def score_cut(w_left: int, left: int, weight: int, total: int) -> tuple[float, float]:
    """Numerator and denominator of the score of a cut: the division is left to the one who needs it."""
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    a = np.float64(left)
    b = np.float64(total - left)
    return a * a * wb + b * b * wa, wa * wb


@inlined
def scan_pairs(best: Candidate, n: int, highest: int, weight: int, total: int, packed: PackedScratch) -> Candidate:
    """Best cut of n rows, at most PAIR_ROWS; weight, total: sums of the node."""
    column, addends = packed.column, packed.addends
    pair_sums, pair_scores = packed.pair_sums, packed.pair_scores
    rows = np.uint64(n)
    lanes = (rows + np.uint64(PAIR_LANES - 1)) & ~np.uint64(PAIR_LANES - 1)  # what lies behind the rows adds nothing
    for i in range(rows):
        code = column[i]
        left = np.int32(0)
        for j in range(lanes):
            left = np.int32(left + (addends[j] if column[j] <= code else np.int32(0)))
        pair_sums[i] = left
    all_weight = np.float64(weight)
    all_total = np.float64(total)
    for i in range(lanes):  # 0 / 0 for the cut behind the last row
        wa = np.float64(np.int32(pair_sums[i] >> 16))
        a = np.float64(np.int32(pair_sums[i] & 0xFFFF))
        wb = all_weight - wa
        b = all_total - a
        pair_scores[i] = (a * a * wb + b * b * wa) / (wa * wb)
    top = best.score
    for i in range(rows):
        score = pair_scores[i]
        top = score if score > top else top
    if not top > bar_above(best.score):
        return none_better(best)
    floor = floor_below(top)
    cut = highest
    for i in range(rows):  # the lowest among equals
        code = np.int64(column[i])
        if pair_scores[i] >= floor and code < cut:
            cut = code
    following = highest
    for i in range(rows):
        code = np.int64(column[i])
        if code > cut and code < following:
            following = code
    return cut_between(top, cut, following, best.n_ties)


@inlined
def join_parts(n: np.uint64, n_parts: np.uint64, histogram: np.ndarray) -> None:
    """Add the later parts of a histogram, n sums each, to the first, and empty them.

    Rows go to the parts in turns: where many have one code, a sum would wait for the one before it to be stored.
    """
    for part in range(ONE, n_parts):
        for b in range(n):
            histogram[b] += histogram[part * n + b]
            histogram[part * n + b] = 0


@inlined
def open_buckets(n_buckets: int, floor: float, weight: int, total: int, histogram: np.ndarray) -> int:
    """Find the buckets that may hold a cut of at least the score `floor`; return how many there are.

    The sum of such a bucket becomes -1 - the packed sum of the buckets before it, those of the others 0.
    """
    left = np.int64(0)
    n_open = np.int64(0)
    for b in range(n_buckets):
        here = histogram[b]
        w = here >> 32
        if w > 1:
            s = here & LOW_HALF
            w_before = left >> 32
            before = left & LOW_HALF
            ones, ones_run = score_cut(w_before + s, before + s, weight, total)
            zeros, zeros_run = score_cut(w_before + w - s, before, weight, total)
            is_open = (ones >= floor * ones_run) | (zeros >= floor * zeros_run)
            histogram[b] = -1 - left if is_open else np.int64(0)
            n_open += np.int64(is_open)
        else:
            histogram[b] = 0
        left += here
    return n_open


@inlined
def codes_beside(cut_code: int, n: int, highest: int, column: np.ndarray) -> tuple[int, int]:
    """The last code of the node up to `cut_code`, and the first above it."""
    cut = np.int64(-1)
    following = highest
    for k in range(np.uint64(n)):
        code = np.int64(column[k])
        if code <= cut_code:
            cut = max(cut, code)
        else:
            following = min(following, code)
    return cut, following


@kernel
def scan_buckets(
    best: Candidate,
    n: int,
    lowest: int,
    highest: int,
    totals: np.ndarray,
    packed: PackedScratch,
    counts: np.ndarray,
    histogram: np.ndarray,
) -> Candidate:
    """Best cut of n rows, more than PAIR_ROWS. The histogram is zero before and after."""
    column, wide, bucket_keys = packed.column, packed.wide, packed.bucket_keys
    weight, total = totals[W_ALL], totals[S_ALL]
    top = best.score
    n_buckets = highest - lowest + 1
    drop = np.int64(0)
    if n_buckets > n:
        most = min(max(n // ROWS_PER_BUCKET, 16), MOST_BUCKETS)
        while ((highest - lowest) >> drop) >= most:
            drop += 1
        n_buckets = ((highest - lowest) >> drop) + 1
    shift = np.uint64(drop)
    least = np.uint64(lowest)
    rows = np.uint64(n)
    done = np.uint64(0)
    part = np.uint64(n_buckets)
    if n_buckets <= n >> 3 and 4 * n_buckets <= len(histogram):
        done = rows & ~THREE
        for k in range(np.uint64(0), done, FOUR):
            histogram[(np.uint64(column[k]) - least) >> shift] += wide[k]
            histogram[part + ((np.uint64(column[k + ONE]) - least) >> shift)] += wide[k + ONE]
            histogram[TWO * part + ((np.uint64(column[k + TWO]) - least) >> shift)] += wide[k + TWO]
            histogram[THREE * part + ((np.uint64(column[k + THREE]) - least) >> shift)] += wide[k + THREE]
        join_parts(part, FOUR, histogram)
    for k in range(done, rows):
        histogram[(np.uint64(column[k]) - least) >> shift] += wide[k]
    # cuts between buckets
    bar = bar_above(top)
    cut = np.int64(-1)  # last bucket of the left branch
    left = np.int64(0)
    for b in range(n_buckets - 1):
        here = histogram[b]
        if here == 0:
            continue
        left += here
        rise, run = score_cut(left >> 32, left & LOW_HALF, weight, total)
        if rise > bar * run:
            top = rise / run
            bar = bar_above(top)
            cut = np.int64(b)
    if drop == 0:
        following = np.int64(-1)
        if cut >= 0:
            following = cut + 1
            while histogram[following] == 0:
                following += 1
            following += lowest
            cut += lowest
        for b in range(n_buckets):
            histogram[b] = 0
        return cut_between(top, cut, following, best.n_ties)
    n_open = open_buckets(n_buckets, floor_below(top), weight, total, histogram)
    left = np.int64(0)
    cut_code = np.int64(-1)
    if cut >= 0:
        cut_code = lowest + ((cut + 1) << drop) - 1
    if n_open > 0:
        n_open_rows = np.uint64(0)
        for k in range(np.uint64(n)):
            code = np.uint64(column[k])
            bucket_keys[0, n_open_rows] = np.uint32((code << np.uint64(16)) | k)
            n_open_rows += np.uint64(histogram[(code - least) >> shift] < 0)
        side = sort_keys(bucket_keys, np.int64(n_open_rows), 16, lowest, highest, counts)
        bucket = np.int64(-1)
        code = np.int64(-1)
        for k in range(n_open_rows):
            key = np.int64(bucket_keys[side, k])
            if code != key >> 16 and (key >> 16) - lowest >> drop == bucket:
                rise, run = score_cut(left >> 32, left & LOW_HALF, weight, total)
                if rise > bar * run:
                    top = rise / run
                    bar = bar_above(top)
                    cut_code = code
                elif code < cut_code and rise >= floor_below(top) * run:
                    cut_code = code
            code = key >> 16
            if (code - lowest) >> drop != bucket:
                bucket = (code - lowest) >> drop
                left = -1 - histogram[bucket]
            left += wide[np.uint64(key & 0xFFFF)]
    for b in range(n_buckets):
        histogram[b] = 0
    if cut_code < 0:
        return none_better(best)
    cut, following = codes_beside(cut_code, n, highest, column)
    return cut_between(top, cut, following, best.n_ties)


@inlined
def scan_two_classes(
    best: Candidate,
    lowest: int,
    highest: int,
    node: OpenNode,
    totals: np.ndarray,
    packed: PackedScratch,
    counts: np.ndarray,
    histogram: np.ndarray,
) -> Candidate:
    """Best cut of a numeric feature that no row of the node misses; `load_column` has put its codes into `packed`."""
    n = node.hi - node.lo
    if lowest == highest:
        return none_better(best)
    if n <= PAIR_ROWS:
        return scan_pairs(best, n, highest, totals[W_ALL], totals[S_ALL], packed)
    return scan_buckets(best, n, lowest, highest, totals, packed, counts, histogram)


@inlined
def sum_levels(feature: int, n_codes: int, node: OpenNode, rows: Rows, wide: np.ndarray, histogram: np.ndarray) -> None:
    """Add what the rows of a node add to the sums of their levels."""
    codes, begin, column = source_of(feature, node.lo, node.hi, rows)
    first = np.uint64(begin)
    at = np.uint64(column)
    n = np.uint64(node.hi - node.lo)
    done = np.uint64(0)
    part = np.uint64(n_codes + 1)
    if 2 * n_codes <= node.hi - node.lo and 4 * (n_codes + 1) <= len(histogram):
        done = n & ~THREE
        for k in range(np.uint64(0), done, FOUR):
            i = first + k
            histogram[np.uint64(codes[i, at])] += wide[k]
            histogram[part + np.uint64(codes[i + ONE, at])] += wide[k + ONE]
            histogram[TWO * part + np.uint64(codes[i + TWO, at])] += wide[k + TWO]
            histogram[THREE * part + np.uint64(codes[i + THREE, at])] += wide[k + THREE]
        join_parts(part, FOUR, histogram)
    for k in range(done, n):
        histogram[np.uint64(codes[first + k, at])] += wide[k]


@inlined
def sum_few_levels(feature: int, node: OpenNode, rows: Rows, wide: np.ndarray, histogram: np.ndarray) -> np.uint64:
    """The same where all codes are below 64; returns which of them the rows have, as bits."""
    codes = rows.codes
    first = np.uint64(node.lo)
    at = np.uint64(feature)
    seen = np.uint64(0)
    for k in range(np.uint64(node.hi - node.lo)):
        code = np.uint64(codes[first + k, at])
        histogram[code] += wide[k]
        seen |= ONE << code
    return seen


@inlined
def take_level(code: np.uint64, n_bins: np.uint64, histogram: np.ndarray, bins: np.ndarray) -> float:
    """Move the sums of a level to bin n_bins, in the order of codes; return what it scores as a branch of its own."""
    here = histogram[code]
    histogram[code] = 0
    w = here >> 32
    s = here & LOW_HALF
    bins[BIN_CODE, n_bins] = np.int64(code)
    bins[BIN_SUM, n_bins] = s
    bins[BIN_WEIGHT, n_bins] = w
    return np.float64(s) * np.float64(s) / np.float64(w)


@inlined
def list_shares(
    feature: int,
    n_codes: int,
    node: OpenNode,
    rows: Rows,
    wide: np.ndarray,
    histogram: np.ndarray,
    bins: np.ndarray,
    seen: np.ndarray,
) -> tuple[int, float]:
    """List the levels of a node and their sums, but for the sum of missing rows, which is left in the histogram.

    Returns how many levels there are, and what they score apart.
    """
    n_bins = np.uint64(0)
    apart = 0.0
    n_words = ONE
    if node.hi - node.lo <= PAIR_ROWS and n_codes < 64:
        seen[0] = sum_few_levels(feature, node, rows, wide, histogram)
    else:
        sum_levels(feature, n_codes, node, rows, wide, histogram)
        if n_codes <= node.hi - node.lo:
            for code in range(ONE, np.uint64(n_codes + 1)):
                if histogram[code] != 0:
                    apart += take_level(code, n_bins, histogram, bins)
                    n_bins += ONE
            return np.int64(n_bins), apart
        n_words = mark_codes(feature, n_codes, node.lo, node.hi, rows.codes, seen)
    seen[0] &= ~ONE  # missing rows are no level
    for w in range(n_words):
        word = seen[w]
        while word != np.uint64(0):
            rest = word & (word - ONE)
            apart += take_level((w << np.uint64(6)) + bit_place(word ^ rest), n_bins, histogram, bins)
            n_bins += ONE
            word = rest
    return np.int64(n_bins), apart


@inlined
def order_by_share(n_bins: int, bins: np.ndarray) -> None:
    """Order levels by share, then by code, by insertion: exact, since products of whole weights are."""
    for b in range(1, n_bins):
        s = bins[BIN_SUM, b]
        w = bins[BIN_WEIGHT, b]
        if bins[BIN_SUM, b - 1] * w <= s * bins[BIN_WEIGHT, b - 1]:
            continue
        code = bins[BIN_CODE, b]
        k = np.int64(b)
        while k > 0 and bins[BIN_SUM, k - 1] * w > s * bins[BIN_WEIGHT, k - 1]:
            bins[BIN_SUM, k] = bins[BIN_SUM, k - 1]
            bins[BIN_WEIGHT, k] = bins[BIN_WEIGHT, k - 1]
            bins[BIN_CODE, k] = bins[BIN_CODE, k - 1]
            k -= 1
        bins[BIN_SUM, k] = s
        bins[BIN_WEIGHT, k] = w
        bins[BIN_CODE, k] = code


@inlined
def scan_levels(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> Candidate:
    """Best subset of the levels of a category, by their shares of class 1, with missing rows on either side.

    The subset goes to `scratch.levels`; the cut is the last level, in the order of shares, that goes left.
    """
    wide, histogram = scratch.packed.wide, scratch.histogram
    bins, totals, subset = scratch.bins, scratch.totals, scratch.levels.bitset
    n_codes = table.features[N_CODES, feature]
    top = best.score
    weight = totals[W_ALL]
    total = totals[S_ALL]
    n_bins, apart = list_shares(feature, n_codes, node, rows, wide, histogram, bins, subset)
    absent = histogram[0]
    histogram[0] = 0
    w_absent = absent >> 32
    s_absent = absent & LOW_HALF
    totals[N_MISSING] = w_absent  # as far as anyone asks: none or some
    if n_bins == 0 or (n_bins == 1 and absent == 0):
        return none_better(best)
    if absent == 0 and apart * ROOM < floor_below(top):  # no subset scores more than all levels apart
        return none_better(best)
    order_by_share(n_bins, bins)
    bar = bar_above(top)
    cut = np.int64(-1)
    branch = np.int64(0)
    w_left = np.int64(0)
    left = np.int64(0)
    roots = 0.0
    all_roots = sum_roots(bins, n_bins, BIN_WEIGHT)
    chance = chance_of_numbers(n_codes, n_bins, all_roots, node, rows, settings, table.xlogx, totals)
    has_luck = chance.noise > 0.0
    least = least_luck(chance, weight)
    room = luck_room(chance, top)
    for b in range(n_bins if absent != 0 else n_bins - 1):
        w_left += bins[BIN_WEIGHT, b]
        left += bins[BIN_SUM, b]
        rise, run = score_cut(w_left, left, weight, total)
        spread = 0.0
        if has_luck:
            roots += np.sqrt(np.float64(bins[BIN_WEIGHT, b]))
            spread = roots * (all_roots - roots)
        may_win = rise >= floor_below(top) * run  # else it cannot, whatever its luck
        if has_luck and may_win:
            may_win = rise + room * run >= spread * (least.first + spread * least.second)
            if may_win:
                rise = run * less_luck(rise / run, chance, roots, w_left, weight - w_left)
        if may_win and rise > bar * run:
            top = rise / run
            bar = bar_above(top)
            room = luck_room(chance, top)
            cut = np.int64(b)
            branch = np.int64(1)
        if absent != 0 and b < n_bins - 1:
            rise, run = score_cut(w_left + w_absent, left + s_absent, weight, total)
            if has_luck and rise >= floor_below(top) * run:
                rise = run * less_luck(rise / run, chance, roots, w_left + w_absent, weight - w_left - w_absent)
            if rise > bar * run:
                top = rise / run
                bar = bar_above(top)
                room = luck_room(chance, top)
                cut = np.int64(b)
                branch = np.int64(0)
    if cut >= 0:
        for w in range((n_codes + 63) >> 6):
            subset[w] = np.uint64(0)
        for b in range(cut + 1):
            level = bins[BIN_CODE, b] - 1
            subset[level >> 6] |= np.uint64(1) << np.uint64(level & 63)
    return Candidate(top, cut, np.int64(-1), branch, best.n_ties, np.inf)
