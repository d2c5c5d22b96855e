"""What the two label families of textbook trees share: the column of a node, the figures of a test, the choice.

Entries are what a node holds: a row, or a piece of one (C4.5), with its labels. `ids[i]` is the row of entry i; the
code of feature j is `columns[j, ids[i]]`. A feature's codes are gathered first, so that the scans of all growers serve.

`figures[:, j]` say how good the best test of feature j is. Three rules choose among them:

  BY_GAIN    largest gain (ID3)
  BY_RATIO   largest gain ratio
  BY_C45     largest gain ratio among the tests whose gain is at least the average, as C4.5 release 8
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BY_C45,
    BY_RATIO,
    CUT_FIRST,
    CUT_GAIN,
    CUT_IS_VALID,
    CUT_LAST,
    CUT_RATIO,
    CUT_SPLIT_INFO,
    FIGURE_ROWS,
    FIRST_ABOVE,
    GAIN_FIGURE,
    HIGH,
    IS_CATEGORICAL,
    IS_COUNTED,
    IS_VALID,
    LAST_BELOW,
    LOW,
    MISSING_CODE,
    MISSING_WEIGHT,
    N_CODES,
    N_CUTS,
    N_FULL,
    OFFSET,
    RATIO,
    SPLIT_INFO,
)

from ..common.elementary import any_log2, log2
from ..common.structs import TextbookSettings

SMALL = 1e-6  # C4.5, as J48 has it: figures that differ by less are equal
NEAR = 1e-5  # C4.5: values that differ by less are equal
AVERAGE_SLACK = 1e-3  # C4.5: by which a gain may miss the average


@inlined
def gather(
    columns: np.ndarray, ids: np.ndarray, lo: int, hi: int, feature: int, column: np.ndarray
) -> tuple[int, int, int]:
    """Write the codes of entries lo .. hi to `column`; return lowest and highest known code and the missing entries.

    column: (n_entries, 1), so that it can stand for the table's codes. Without known codes the highest is 0.
    """
    lowest = np.int64(1 << 30)
    highest = np.int64(0)
    n_missing = np.int64(0)
    at = np.uint64(feature)
    for i in range(np.uint64(lo), np.uint64(hi)):
        code = columns[at, np.uint64(ids[i])]
        column[i, np.uint64(0)] = code
        c = np.int64(code)
        highest = max(highest, c)
        if c == MISSING_CODE:
            n_missing += 1
        else:
            lowest = min(lowest, c)
    return lowest, highest, n_missing


@inlined
def clear_figures(figures: np.ndarray, feature: int, settings: TextbookSettings) -> None:
    """No test yet: C4.5 wants a gain above 0, the other rules take any."""
    for row in range(FIGURE_ROWS):
        figures[row, feature] = 0.0
    if settings.rule != BY_C45:
        figures[GAIN_FIGURE, feature] = -1.0
        figures[RATIO, feature] = -1.0


@kernel
def entropy_power(weight: int, settings: TextbookSettings, xlogx: np.ndarray) -> int:
    """f(w) = w log2 w in fixed point: sums of it do not depend on their order. Whole weights read a table."""
    if weight <= 0:
        return np.int64(0)
    if len(xlogx) > 1 and weight & ((np.int64(1) << settings.shift) - 1) == 0:
        return xlogx[weight >> settings.shift]
    x = np.float64(weight) * settings.weight_unit
    return np.int64(np.rint(x * any_log2(x) * settings.log_scale))


@inlined
def split_entropy(power_all: int, powers: int, w_all: int, settings: TextbookSettings) -> float:
    """Split information in bits; powers: the sum of f over the branches, missing entries among them."""
    info = np.float64(power_all - powers) / settings.log_scale
    if settings.rule == BY_C45 and abs(info) < SMALL:
        return 0.0
    return max(info, 0.0) / (np.float64(w_all) * settings.weight_unit)


@inlined
def gain_ratio(gain: float, split_info: float) -> float:
    """Gain / split information; 0 for a test that does not split."""
    return gain / split_info if split_info > 0.0 else 0.0


@inlined
def is_apart(features: np.ndarray, edges: np.ndarray, feature: int, last: int, code: int) -> bool:
    """Whether C4.5 may cut between these codes."""
    at = features[OFFSET, feature] - 1
    return edges[HIGH, at + last] + NEAR < edges[LOW, at + code]


@inlined
def least_weight(w_known: float, settings: TextbookSettings) -> float:
    """Weight that C4.5 wants on each side of a cut."""
    least = 0.1 * w_known / np.float64(settings.n_classes)
    if least - settings.min_weight < SMALL:
        return settings.min_weight
    if least - 25.0 > SMALL:
        return 25.0
    return least


@inlined
def note_cut(cuts: np.ndarray, at: int, last: int, code: int, gain: float, split_info: float, is_valid: bool) -> None:
    """Write one cut down for people."""
    if at < cuts.shape[1]:
        cuts[CUT_LAST, at] = last
        cuts[CUT_FIRST, at] = code
        cuts[CUT_GAIN, at] = gain
        cuts[CUT_SPLIT_INFO, at] = split_info
        cuts[CUT_RATIO, at] = gain_ratio(gain, split_info)
        cuts[CUT_IS_VALID, at] = 1.0 if is_valid else 0.0


@inlined
def is_better(gain: float, split_info: float, best: float, slack: float, rule: int) -> bool:
    """Whether a test beats the best so far, whose gain (BY_RATIO: ratio) is `best`."""
    if rule == BY_C45:
        return gain - best > SMALL
    if rule == BY_RATIO:
        return gain > best * split_info + slack
    return gain > best + slack


@kernel
def close_figures(
    features: np.ndarray, feature: int, w_all: int, settings: TextbookSettings, figures: np.ndarray
) -> None:
    """Settle the figures of a feature whose best test was found: penalty, ratio, whether it may be made."""
    is_category = features[IS_CATEGORICAL, feature] != 0
    if settings.rule == BY_C45 and not is_category:
        n_cuts = figures[N_CUTS, feature]
        if n_cuts == 0.0:
            figures[IS_VALID, feature] = 0.0
            return
        figures[GAIN_FIGURE, feature] -= log2(n_cuts) / (np.float64(w_all) * settings.weight_unit)
        if figures[GAIN_FIGURE, feature] < SMALL:
            figures[IS_VALID, feature] = 0.0
    figures[RATIO, feature] = gain_ratio(figures[GAIN_FIGURE, feature], figures[SPLIT_INFO, feature])
    is_many = np.float64(features[N_CODES, feature]) >= settings.many_levels
    if figures[IS_VALID, feature] != 0.0 and (not is_category or not is_many or settings.is_all_many != 0):
        figures[IS_COUNTED, feature] = 1.0


@kernel
def choose(figures: np.ndarray, slack: float, settings: TextbookSettings) -> int:
    """The feature to test, the first among equals; -1: none."""
    n_features = figures.shape[1]
    chosen = np.int64(-1)
    if settings.rule != BY_C45:
        row = RATIO if settings.rule == BY_RATIO else GAIN_FIGURE
        best = -1.0
        for j in range(n_features):
            if figures[IS_VALID, j] == 0.0:
                continue
            if chosen < 0 or is_better(figures[GAIN_FIGURE, j], figures[SPLIT_INFO, j], best, slack, settings.rule):
                best = figures[row, j]
                chosen = np.int64(j)
        return chosen
    total = 0.0
    n_counted = np.int64(0)
    for j in range(n_features):
        if figures[IS_COUNTED, j] != 0.0:
            total += figures[GAIN_FIGURE, j]
            n_counted += 1
    if n_counted == 0:
        return chosen
    average = total / np.float64(n_counted)
    best = 0.0
    for j in range(n_features):
        is_good = figures[IS_VALID, j] != 0.0 and figures[GAIN_FIGURE, j] >= average - AVERAGE_SLACK
        if is_good and figures[RATIO, j] - best > SMALL:
            best = figures[RATIO, j]
            chosen = np.int64(j)
    return chosen


@inlined
def keep_cut(last: int, code: int, gain: float, split_info: float, feature: int, figures: np.ndarray) -> None:
    """Make a cut the best of its feature."""
    figures[GAIN_FIGURE, feature] = gain
    figures[SPLIT_INFO, feature] = split_info
    figures[RATIO, feature] = gain_ratio(gain, split_info)
    figures[LAST_BELOW, feature] = last
    figures[FIRST_ABOVE, feature] = code
    figures[IS_VALID, feature] = 1.0


@inlined
def count_full(n_missing: int, feature: int, settings: TextbookSettings, figures: np.ndarray) -> None:
    """Note the branches of the best cut: missing values have one more, unless the cut sets them against the known."""
    figures[N_FULL, feature] = 2.0
    if n_missing > 0 and settings.spreads_missing == 0 and figures[FIRST_ABOVE, feature] >= 0.0:
        figures[N_FULL, feature] = 3.0


@inlined
def keep_levels(gain: float, split_info: float, n_full: int, w_missing: int, feature: int, figures: np.ndarray) -> None:
    """Note the test of a category."""
    figures[GAIN_FIGURE, feature] = gain
    figures[SPLIT_INFO, feature] = split_info
    figures[N_FULL, feature] = n_full
    figures[MISSING_WEIGHT, feature] = w_missing
