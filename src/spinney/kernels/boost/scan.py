"""Find the best test of a node from sums of gradients and hessians.

  score of a branch with sums G, H and value v     -(G v + (H + lambda) v**2 / 2 + alpha |v|)
  value                                            -T(G) / (H + lambda), T shrinking by alpha; within the node's bounds
  gain of a test                                   scores of the branches - score of the node - gamma

Without L1 penalty and constraints the score is G**2 / (H + lambda) / 2, and `scan_histogram` takes the sums of a
narrow number as they stand: the loop over the gains has no jumps, and eight divisions go at once. Everything else goes
by *bins*: the rows of the node with one code, in the order of the codes or, for the levels of a category, of
G / (H + cat_smooth).
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BIN_CODE, BIN_N, BIN_SUM, BIN_WEIGHT, GAIN_LANES, MISSING_CODE, SUM_SHIFT

from ..common.bins import order_bins
from ..common.category_chance import few_rows, luck_of, no_chance
from ..common.structs import BoostCut, BoostSettings, Bounds, Chance, HistogramScan, LeastHessians, Range, RowSums

HESSIAN_MASK = np.int64((1 << SUM_SHIFT) - 1)
NO_GAIN = -np.inf
UNKNOWN = -1  # a cut that has not been looked for
FEW_BINS = 24  # are sorted by insertion alone
CROWD = 64
ONE, THREE, SEVEN, EIGHT, NINE = (np.uint64(k) for k in (1, 3, 7, GAIN_LANES, 9))
HUGE = 1e300
TINY = 1e-300
INFINITY_BITS = np.int64(0x7FF0_0000_0000_0000)  # of an infinite float64: what is greater is NaN


@inlined
def gradient_of(packed: int) -> int:
    """The gradient of a packed sum, in units."""
    return packed >> SUM_SHIFT


@inlined
def hessian_of(packed: int) -> int:
    """The hessian of a packed sum, in units."""
    return packed & HESSIAN_MASK


@inlined
def value_of(packed: int, lower: float, upper: float, settings: BoostSettings) -> float:
    """Best value of a leaf with this sum, within bounds."""
    g = np.float64(gradient_of(packed)) * settings.gradient_unit
    h = np.float64(hessian_of(packed)) * settings.hessian_unit + settings.reg_lambda
    if g > settings.reg_alpha:
        value = -(g - settings.reg_alpha) / h
    elif g < -settings.reg_alpha:
        value = -(g + settings.reg_alpha) / h
    else:
        value = 0.0
    return min(max(value, lower), upper)


@inlined
def score_of(packed: int, value: float, settings: BoostSettings) -> float:
    """What a leaf of this sum lowers the loss by with a value."""
    g = np.float64(gradient_of(packed)) * settings.gradient_unit
    h = np.float64(hessian_of(packed)) * settings.hessian_unit + settings.reg_lambda
    return -(g * value + 0.5 * h * value * value + settings.reg_alpha * abs(value))


@inlined
def plain_gain(g: float, h: float, g_all: float, h_all: float, reg_lambda: float) -> float:
    """Twice the scores of two branches without L1 penalty and bounds; one way to the number, so that ties are equal."""
    rest = g_all - g
    a = h + reg_lambda
    b = h_all - h + reg_lambda
    return (g * g * b + rest * rest * a) / (a * b)


@inlined
def scan_two_codes(left: int, right: int, total: int, settings: BoostSettings) -> BoostCut:
    """The one cut of two codes without missing values, as of a one-hot block, if it is allowed."""
    h = hessian_of(left)
    rest = hessian_of(total) - h
    if left == 0 or right == 0 or h < settings.min_hessian or rest < settings.min_hessian:
        return BoostCut(NO_GAIN, np.int64(0), np.int64(-1), np.int64(0), np.int64(0))
    gain = 0.5 * plain_gain(
        np.float64(gradient_of(left)) * settings.gradient_unit,
        np.float64(h) * settings.hessian_unit,
        np.float64(gradient_of(total)) * settings.gradient_unit,
        np.float64(hessian_of(total)) * settings.hessian_unit,
        settings.reg_lambda,
    )
    return BoostCut(gain, np.int64(1), np.int64(2), np.int64(-1), left)


@inlined
def scan_histogram(
    histogram: np.ndarray,
    first: int,  # place of the missing code
    span: Range,  # codes that the node may have
    total: int,
    least: LeastHessians,
    floor: float,  # a gain that is not above this is told without its cut
    room: HistogramScan,
    settings: BoostSettings,
) -> tuple[BoostCut, Range]:
    """Best cut of a narrow number; a gain of -inf where none is allowed, a cut of UNKNOWN where the gain is too low.

    Of 36 features four or so are better than all before them, and where the others are cut is mostly not asked for: to
    find the place of a gain and the code behind it are two loops that end where no processor can foresee.

    Returns the codes that the node has, too, give or take seven at either end: its children have no others. Codes in
    between that it does not have are not passed over: a cut behind one parts the rows as the cut before it does, and
    the first of equal gains counts. Gains are worked out eight at a time, and what is not allowed is masked: fewer ends
    of loops that the processor cannot foresee.
    """
    lefts = room.left
    bits = room.gain_bits
    missing = histogram[first]
    acc = np.int64(0)
    start = np.uint64(first + span.first)
    n = np.uint64(span.last + 1 - span.first)
    for k in range(np.uint64(0), n):
        acc += histogram[start + k]
        lefts[k] = acc
    for k in range(n, n + SEVEN):  # as of codes behind the last that no row has
        lefts[k] = acc
    if acc == 0:
        return BoostCut(NO_GAIN, np.int64(0), np.int64(-1), np.int64(0), np.int64(0)), span
    begin = np.uint64(0)
    while lefts[begin + SEVEN] == 0:
        begin += EIGHT
    end = (n + SEVEN) & ~SEVEN
    while end - begin > EIGHT and lefts[end - NINE] == acc:
        end -= EIGHT
    gradient_unit = settings.gradient_unit
    hessian_unit = settings.hessian_unit
    reg_lambda = settings.reg_lambda
    least_left = least.left
    least_right = least.right
    g_all = np.float64(gradient_of(total)) * gradient_unit
    whole = hessian_of(total)
    h_all = np.float64(whole) * hessian_unit
    best = NO_GAIN
    best_top = np.int64(-1)
    cut = np.uint64(0)
    side = np.int64(-1)
    n_gains = ((end - begin) >> THREE) << THREE  # a multiple of eight, so that LLVM makes no loop for a rest
    for with_missing in range(2 if missing != 0 else 1):
        more = missing * with_missing
        top = np.int64(-1)  # bits of gains: LLVM makes vectors of a maximum of whole numbers, for NaN not of floats
        for k in range(n_gains):
            left = lefts[begin + k] + more
            g = np.float64(gradient_of(left)) * gradient_unit
            h = hessian_of(left)
            gain = plain_gain(g, np.float64(h) * hessian_unit, g_all, h_all, reg_lambda)
            is_allowed = (lefts[begin + k] != 0) & (h >= least_left) & (whole - h >= least_right)
            word = np.float64(gain).view(np.int64)
            word = word if is_allowed & (word <= INFINITY_BITS) else np.int64(-1)
            bits[begin + k] = word
            top = max(top, word)
        if top <= best_top:
            continue
        best_top = top
        best = 0.5 * np.int64(top).view(np.float64)
        side = np.int64(with_missing)
        if best > floor:
            cut = begin
            while bits[cut] != top:
                cut += ONE
    span = Range(span.first + np.int64(begin), min(span.last, span.first + np.int64(end) - 1))
    if side < 0:
        return BoostCut(NO_GAIN, np.int64(0), np.int64(-1), np.int64(0), np.int64(0)), span
    if not best > floor:
        return BoostCut(best, np.int64(UNKNOWN), np.int64(-1), np.int64(0), np.int64(0)), span
    following = cut + ONE
    while following < n and lefts[following] == lefts[cut]:
        following += ONE
    code = np.int64(start + cut) - first
    branch = np.int64(1) - side if missing != 0 else np.int64(-1)
    left = lefts[cut] + missing * side
    next_code = np.int64(start + following) - first if following < n else np.int64(-1)
    return BoostCut(best, code, next_code, branch, left), span


@kernel
def score_apart(histogram: np.ndarray, first: int, span: Range, reg_lambda: float, settings: BoostSettings) -> float:
    """What the codes of a feature score, each by itself, missing values included: see `best_apart`.

    first: place of the missing code; reg_lambda: the part of it that a code has.
    """
    start = np.uint64(first)
    score = score_code(histogram[start], reg_lambda, settings)
    for code in range(np.uint64(span.first), np.uint64(span.last) + ONE):
        score += score_code(histogram[start + code], reg_lambda, settings)
    return score


@inlined
def score_code(packed: int, reg_lambda: float, settings: BoostSettings) -> float:
    """Twice the score of a code by itself; TINY keeps a code that no row has from being 0 / 0."""
    g = np.float64(gradient_of(packed)) * settings.gradient_unit
    h = np.float64(hessian_of(packed)) * settings.hessian_unit
    return g * g / (h + (reg_lambda + TINY))


@inlined
def root_of(packed: int) -> float:
    """Root of a hessian, in units."""
    return np.sqrt(np.float64(hessian_of(packed)))


@inlined
def chance_of(bins: np.ndarray, n_bins: int, whole: RowSums, settings: BoostSettings) -> Chance:
    """What the levels of a category gain by chance; a hessian is what a weight is elsewhere."""
    if whole.noise == 0.0:
        return no_chance()
    roots = 0.0
    for k in range(n_bins):
        roots += root_of(bins[BIN_SUM, k])
    information = np.float64(hessian_of(whole.packed)) * settings.hessian_unit / np.float64(n_bins)
    return Chance(whole.noise, roots, few_rows(information), 0.0, 0.0)


@kernel
def scan_bins(
    bins: np.ndarray,
    n_bins: int,
    whole: RowSums,  # rows of the node; their number is 0 where they have not been counted
    missing: RowSums,  # those whose value is missing
    bounds: Bounds,
    direction: int,  # of a monotone constraint
    most: int,  # bins of the smaller branch
    settings: BoostSettings,
) -> BoostCut:
    """Best cut of bins in their order: `cut` is the last bin of branch 0, `following` the next one."""
    best = NO_GAIN
    cut = np.int64(-1)
    side = np.int64(-1)
    best_left = np.int64(0)
    total = whole.packed
    lower = bounds.lower
    upper = bounds.upper
    is_counted = whole.n_rows > 0
    least = np.int64(settings.min_hessian)
    h_all = hessian_of(total)
    chance = chance_of(bins, n_bins, whole, settings)
    for with_missing in range(2 if missing.packed != 0 else 1):
        roots = 0.0
        left = missing.packed * with_missing
        n_left = missing.n_rows * with_missing
        w_left = missing.weight * with_missing
        for k in range(n_bins):
            left += bins[BIN_SUM, k]
            h = hessian_of(left)
            if chance.noise > 0.0:
                roots += root_of(bins[BIN_SUM, k])
            if is_counted:
                n_left += bins[BIN_N, k]
                w_left += bins[BIN_WEIGHT, k]
                if n_left < settings.min_samples_leaf or whole.n_rows - n_left < settings.min_samples_leaf:
                    continue
                if w_left < settings.min_weight_leaf or whole.weight - w_left < settings.min_weight_leaf:
                    continue
            if h < least or h_all - h < least or min(k + 1, n_bins - k - 1) > most:
                continue
            if settings.is_plain:
                gain = 0.5 * plain_gain(
                    np.float64(gradient_of(left)) * settings.gradient_unit,
                    np.float64(h) * settings.hessian_unit,
                    np.float64(gradient_of(total)) * settings.gradient_unit,
                    np.float64(h_all) * settings.hessian_unit,
                    settings.reg_lambda,
                )
            else:
                value_left = value_of(left, lower, upper, settings)
                value_right = value_of(total - left, lower, upper, settings)
                if (value_right - value_left) * direction < 0.0:
                    continue
                gain = score_of(left, value_left, settings) + score_of(total - left, value_right, settings)
            gain -= luck_of(chance, roots, h, h_all - h)
            if gain > best:
                best = gain
                cut = np.int64(k)
                side = np.int64(with_missing)
                best_left = left
    following = cut + 1 if 0 <= cut < n_bins - 1 else np.int64(-1)
    branch = np.int64(1) - side if missing.packed != 0 else np.int64(-1)
    return BoostCut(best, cut, following, branch, best_left)


@kernel
def list_bins(histogram: np.ndarray, first: int, span: Range, bins: np.ndarray) -> int:
    """List the present codes of a feature with their sums, in the order of the codes; return how many there are."""
    n = np.uint64(0)
    start = np.uint64(first)
    for code in range(np.uint64(span.first), np.uint64(span.last) + ONE):
        v = histogram[start + code]
        bins[BIN_CODE, n] = code
        bins[BIN_SUM, n] = v
        n += np.uint64(v != 0)
    return np.int64(n)


@inlined
def list_pair(first: int, total: int, bins: np.ndarray) -> int:
    """The same of a feature of two codes by the sum of the first; none is missing."""
    bins[BIN_CODE, 0] = 1
    bins[BIN_SUM, 0] = first
    n = np.int64(first != 0)
    bins[BIN_CODE, n] = 2
    bins[BIN_SUM, n] = total - first
    return n + np.int64(total != first)


@kernel
def list_met_bins(histogram: np.ndarray, n_met: int, bins: np.ndarray, scores: np.ndarray) -> int:
    """The same from a list of the codes that were met, in any order and with the missing code; clears the histogram."""
    n = np.int64(0)
    for k in range(n_met):
        code = bins[BIN_CODE, k]
        v = histogram[code]
        histogram[code] = 0
        if code != MISSING_CODE:
            bins[BIN_CODE, n] = code
            bins[BIN_SUM, n] = v
            scores[n] = np.float64(code)
            n += 1
    return n


@kernel
def score_levels(bins: np.ndarray, n_bins: int, scores: np.ndarray, settings: BoostSettings) -> None:
    """Write the order of the levels of a category: gradient per smoothed hessian."""
    for k in range(n_bins):
        packed = bins[BIN_SUM, k]
        h = np.float64(hessian_of(packed)) * settings.hessian_unit
        scores[k] = np.float64(gradient_of(packed)) * settings.gradient_unit / (h + settings.cat_smooth)


@kernel
def insert_bins(bins: np.ndarray, scores: np.ndarray, n_bins: int) -> None:
    """Sort bins by score, then by code, in place: fast where they are nearly in order."""
    for k in range(1, n_bins):
        score = scores[k]
        code = bins[BIN_CODE, k]
        packed = bins[BIN_SUM, k]
        at = k - 1
        while at >= 0:
            other = scores[at]
            if other < score or (other == score and bins[BIN_CODE, at] < code):
                break
            scores[at + 1] = other
            bins[BIN_CODE, at + 1] = bins[BIN_CODE, at]
            bins[BIN_SUM, at + 1] = bins[BIN_SUM, at]
            at -= 1
        scores[at + 1] = score
        bins[BIN_CODE, at + 1] = code
        bins[BIN_SUM, at + 1] = packed


@kernel
def sort_bins(bins: np.ndarray, scores: np.ndarray, n_bins: int, spare: np.ndarray, buckets: np.ndarray) -> None:
    """Sort bins by score, then by code.

    Scores are spread over buckets between the least and the greatest, which leaves an insertion sort little to do.
    Where they crowd in a bucket, a heap takes over. Counts and weights of the bins, and `spare`, are scratch.
    """
    if n_bins > FEW_BINS:
        low = scores[0]
        high = scores[0]
        for k in range(n_bins):
            low = min(low, scores[k])
            high = max(high, scores[k])
        if not (high - low < HUGE):  # 0 * inf is no bucket
            order_bins(bins, scores, n_bins, 0.0)
            return
        n_buckets = min(len(buckets), n_bins + 2)
        scale = np.float64(n_buckets - 2) / (high - low) if high > low else 0.0
        if not (scale < HUGE):
            scale = 0.0
        for b in range(n_buckets):
            buckets[b] = 0
        for k in range(n_bins):
            buckets[np.int64((scores[k] - low) * scale) + 1] += 1
        fullest = np.int64(0)
        for b in range(1, n_buckets):
            fullest = max(fullest, np.int64(buckets[b]))
            buckets[b] += buckets[b - 1]
        if fullest > CROWD and high > low:
            order_bins(bins, scores, n_bins, 0.0)
            return
        for k in range(n_bins):
            b = np.int64((scores[k] - low) * scale)
            at = buckets[b]
            buckets[b] += 1
            spare[at] = scores[k]
            bins[BIN_N, at] = bins[BIN_CODE, k]
            bins[BIN_WEIGHT, at] = bins[BIN_SUM, k]
        for k in range(n_bins):
            scores[k] = spare[k]
            bins[BIN_CODE, k] = bins[BIN_N, k]
            bins[BIN_SUM, k] = bins[BIN_WEIGHT, k]
    insert_bins(bins, scores, n_bins)
