"""Find the best test of a node from sums of gradients and hessians.

  score of a branch with sums G, H and value v     -(G v + (H + lambda) v**2 / 2 + alpha |v|)
  value                                            -T(G) / (H + lambda), T shrinking by alpha; within the node's bounds
  gain of a test                                   scores of the branches - score of the node - gamma

Without L1 penalty and constraints the score is G**2 / (H + lambda) / 2, and `scan_cells` takes the cells of a narrow
number as they stand: present codes are packed together first, so that the loop over their gains has no jumps and four
divisions go at once (2 ns a cell instead of 4). Everything else goes by *bunches*: the rows of the node with one code,
in the order of the codes or, for the levels of a category, of G / (H + cat_smooth).
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BUNCH_CODE, BUNCH_N, BUNCH_SUM, BUNCH_WEIGHT, MISSING_CODE, SUM_SHIFT

from ..common.groups import order_groups
from ..common.structs import BoostSettings

HESSIAN_MASK = np.int64((1 << SUM_SHIFT) - 1)
NO_GAIN = -np.inf
FEW_BUNCHES = 24  # are sorted by insertion alone
CROWD = 64
HUGE = 1e300


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
def scan_cells(
    cells: np.ndarray,
    first: int,  # cell of the missing code
    n_codes: int,
    total: int,
    settings: BoostSettings,
    prefix: np.ndarray,  # (NARROW_CODES,) int64 scratch: packed sums up to each present code, ...
    lefts: np.ndarray,  # (3, NARROW_CODES) float64 scratch: ... their gradients, their hessians, and gains
    present: np.ndarray,  # (NARROW_CODES,) int32 scratch: the present codes
) -> tuple[float, int, int, int, int]:
    """Best cut of a narrow number.

    Returns twice the scores of its branches, the last code of branch 0, the next present code (-1: none), the branch of
    missing values (-1: there are none) and the sum of branch 0; a gain of -inf where no cut is allowed.
    """
    missing = cells[first]
    n = np.int64(0)
    acc = np.int64(0)
    for code in range(1, n_codes + 1):
        v = cells[first + code]
        acc += v
        prefix[n] = acc
        lefts[0, n] = np.float64(gradient_of(acc)) * settings.gradient_unit
        lefts[1, n] = np.float64(hessian_of(acc)) * settings.hessian_unit
        present[n] = code
        n += np.int64(v != 0)
    g_all = np.float64(gradient_of(total)) * settings.gradient_unit
    h_all = np.float64(hessian_of(total)) * settings.hessian_unit
    least = np.float64(settings.min_hessian) * settings.hessian_unit
    best = NO_GAIN
    cut = np.int64(-1)
    side = np.int64(-1)
    for with_missing in range(2 if missing != 0 else 1):
        g_more = np.float64(gradient_of(missing * with_missing)) * settings.gradient_unit
        h_more = np.float64(hessian_of(missing * with_missing)) * settings.hessian_unit
        begin = np.int64(0)
        end = n
        while begin < end and lefts[1, begin] + h_more < least:
            begin += 1
        while end > begin and h_all - (lefts[1, end - 1] + h_more) < least:
            end -= 1
        for k in range(np.uint64(begin), np.uint64(end)):
            lefts[2, k] = plain_gain(lefts[0, k] + g_more, lefts[1, k] + h_more, g_all, h_all, settings.reg_lambda)
        for k in range(np.uint64(begin), np.uint64(end)):
            if lefts[2, k] > best:
                best = lefts[2, k]
                cut = np.int64(k)
                side = np.int64(with_missing)
    if cut < 0:
        return NO_GAIN, 0, -1, 0, 0
    left = prefix[cut] + missing * side
    following = np.int64(present[cut + 1]) if cut + 1 < n else np.int64(-1)
    return best, np.int64(present[cut]), following, np.int64(1) - side if missing != 0 else np.int64(-1), left


@kernel
def scan_bunches(
    bunches: np.ndarray,
    n_bunches: int,
    total: int,
    missing: int,  # packed sum, rows and weight of the rows whose value is missing
    n_missing: int,
    w_missing: int,
    n_all: int,
    w_all: int,
    is_counted: bool,  # rows and weights of the bunches are known
    direction: int,  # of a monotone constraint
    most: int,  # bunches of the smaller branch
    lower: float,
    upper: float,
    settings: BoostSettings,
) -> tuple[float, int, int, int]:
    """Best cut of bunches in their order.

    Returns the scores of its branches, the last bunch of branch 0, the branch of missing values (-1: there are none)
    and the sum of branch 0.
    """
    best = NO_GAIN
    cut = np.int64(-1)
    side = np.int64(-1)
    best_left = np.int64(0)
    least = np.int64(settings.min_hessian)
    h_all = hessian_of(total)
    for with_missing in range(2 if missing != 0 else 1):
        left = missing * with_missing
        n_left = n_missing * with_missing
        w_left = w_missing * with_missing
        for k in range(n_bunches):
            left += bunches[BUNCH_SUM, k]
            h = hessian_of(left)
            if is_counted:
                n_left += bunches[BUNCH_N, k]
                w_left += bunches[BUNCH_WEIGHT, k]
                if n_left < settings.min_samples_leaf or n_all - n_left < settings.min_samples_leaf:
                    continue
                if w_left < settings.min_weight_leaf or w_all - w_left < settings.min_weight_leaf:
                    continue
            if h < least or h_all - h < least or min(k + 1, n_bunches - k - 1) > most:
                continue
            if settings.is_plain != 0:
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
            if gain > best:
                best = gain
                cut = np.int64(k)
                side = np.int64(with_missing)
                best_left = left
    return best, cut, np.int64(1) - side if missing != 0 else np.int64(-1), best_left


@kernel
def bunch_cells(cells: np.ndarray, first: int, n_codes: int, bunches: np.ndarray) -> int:
    """List the present codes of a feature with their sums, in the order of the codes; return how many there are."""
    n = np.int64(0)
    for code in range(1, n_codes + 1):
        v = cells[first + code]
        bunches[BUNCH_CODE, n] = code
        bunches[BUNCH_SUM, n] = v
        n += np.int64(v != 0)
    return n


@kernel
def bunch_met(cells: np.ndarray, n_met: int, bunches: np.ndarray, scores: np.ndarray) -> int:
    """The same from a list of the codes that were met, in any order and with the missing code; clears the cells."""
    n = np.int64(0)
    for k in range(n_met):
        code = bunches[BUNCH_CODE, k]
        v = cells[code]
        cells[code] = 0
        if code != MISSING_CODE:
            bunches[BUNCH_CODE, n] = code
            bunches[BUNCH_SUM, n] = v
            scores[n] = np.float64(code)
            n += 1
    return n


@kernel
def score_levels(bunches: np.ndarray, n_bunches: int, scores: np.ndarray, settings: BoostSettings) -> None:
    """Write the order of the levels of a category: gradient per smoothed hessian."""
    for k in range(n_bunches):
        packed = bunches[BUNCH_SUM, k]
        h = np.float64(hessian_of(packed)) * settings.hessian_unit
        scores[k] = np.float64(gradient_of(packed)) * settings.gradient_unit / (h + settings.cat_smooth)


@kernel
def insert_bunches(bunches: np.ndarray, scores: np.ndarray, n_bunches: int) -> None:
    """Sort bunches by score, then by code, in place: fast where they are nearly in order."""
    for k in range(1, n_bunches):
        score = scores[k]
        code = bunches[BUNCH_CODE, k]
        packed = bunches[BUNCH_SUM, k]
        at = k - 1
        while at >= 0:
            other = scores[at]
            if other < score or (other == score and bunches[BUNCH_CODE, at] < code):
                break
            scores[at + 1] = other
            bunches[BUNCH_CODE, at + 1] = bunches[BUNCH_CODE, at]
            bunches[BUNCH_SUM, at + 1] = bunches[BUNCH_SUM, at]
            at -= 1
        scores[at + 1] = score
        bunches[BUNCH_CODE, at + 1] = code
        bunches[BUNCH_SUM, at + 1] = packed


@kernel
def order_bunches(
    bunches: np.ndarray, scores: np.ndarray, n_bunches: int, spare: np.ndarray, buckets: np.ndarray
) -> None:
    """Sort bunches by score, then by code.

    Scores are spread over buckets between the least and the greatest, which leaves an insertion sort little to do.
    Where they crowd in a bucket, a heap takes over. Counts and weights of the bunches, and `spare`, are scratch.
    """
    if n_bunches > FEW_BUNCHES:
        low = scores[0]
        high = scores[0]
        for k in range(n_bunches):
            low = min(low, scores[k])
            high = max(high, scores[k])
        if not (high - low < HUGE):  # 0 * inf is no bucket
            order_groups(bunches, scores, n_bunches, 0.0)
            return
        n_buckets = min(len(buckets), n_bunches + 2)
        scale = np.float64(n_buckets - 2) / (high - low) if high > low else 0.0
        if not (scale < HUGE):
            scale = 0.0
        for b in range(n_buckets):
            buckets[b] = 0
        for k in range(n_bunches):
            buckets[np.int64((scores[k] - low) * scale) + 1] += 1
        fullest = np.int64(0)
        for b in range(1, n_buckets):
            fullest = max(fullest, np.int64(buckets[b]))
            buckets[b] += buckets[b - 1]
        if fullest > CROWD and high > low:
            order_groups(bunches, scores, n_bunches, 0.0)
            return
        for k in range(n_bunches):
            b = np.int64((scores[k] - low) * scale)
            at = buckets[b]
            buckets[b] += 1
            spare[at] = scores[k]
            bunches[BUNCH_N, at] = bunches[BUNCH_CODE, k]
            bunches[BUNCH_WEIGHT, at] = bunches[BUNCH_SUM, k]
        for k in range(n_bunches):
            scores[k] = spare[k]
            bunches[BUNCH_CODE, k] = bunches[BUNCH_N, k]
            bunches[BUNCH_SUM, k] = bunches[BUNCH_WEIGHT, k]
    insert_bunches(bunches, scores, n_bunches)
