"""What the two families of textbook trees share: the column of a node, the figures of a test, the choice.

`ids[i]` is the row of entry i; the code of feature j is `columns[j, ids[i]]`. Where a scan sorts or lists bins, its
feature's codes are gathered first, so that the kernels of all growers serve.

`Figures` say how good the best test of each feature is. Three rules choose among them:

  BY_GAIN    largest gain (ID3)
  BY_RATIO   largest gain ratio
  BY_C45     largest gain ratio among the tests whose gain is at least the average, as C4.5 release 8
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BY_C45, BY_RATIO, HIGH, IS_CATEGORICAL, LOW, MISSING_CODE, N_CODES, OFFSET

from ..common.elementary import any_log2, log2
from ..common.structs import CodeRange, Cuts, Figures, TextbookSettings
from ..common.ties import C45_AVERAGE_SLACK, C45_NEAR, C45_SMALL, is_better

LEAST_SHARE = 0.1  # C4.5: least weight of a side of a cut, in shares of the mean weight of a class ...
MOST_LEAST = 25.0  # ... and no more than this


# --- Parts of a scan -----------------------------------------------------------------------------------------------


@inlined
def gather(columns: np.ndarray, ids: np.ndarray, lo: int, hi: int, feature: int, column: np.ndarray) -> CodeRange:
    """Write the codes of entries lo .. hi to `column`; return their range.

    column: (n_entries, 1), so that it can stand for the table's codes.
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
    return CodeRange(lowest, highest, n_missing)


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
    if settings.rule == BY_C45 and abs(info) < C45_SMALL:
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
    return edges[HIGH, at + last] + C45_NEAR < edges[LOW, at + code]


@inlined
def least_weight(w_known: float, settings: TextbookSettings) -> float:
    """Weight that C4.5 wants on each side of a cut."""
    least = LEAST_SHARE * w_known / np.float64(settings.n_classes)
    if least - settings.min_weight < C45_SMALL:
        return settings.min_weight
    if least - MOST_LEAST > C45_SMALL:
        return MOST_LEAST
    return least


# --- The figures of a feature --------------------------------------------------------------------------------------


@inlined
def clear_figures(figures: Figures, feature: int, settings: TextbookSettings) -> None:
    """No test yet: C4.5 wants a gain above 0, the other rules take any."""
    nothing = 0.0 if settings.rule == BY_C45 else -1.0
    figures.gain[feature] = nothing
    figures.split_info[feature] = 0.0
    figures.ratio[feature] = nothing
    figures.missing_weight[feature] = 0.0
    figures.is_valid[feature] = False
    figures.is_counted[feature] = False
    figures.last_below[feature] = 0
    figures.first_above[feature] = 0
    figures.n_tried[feature] = 0
    figures.n_cuts[feature] = 0
    figures.n_full[feature] = 0


@inlined
def best_figure(figures: Figures, feature: int, rule: int) -> float:
    """What the cuts of a feature are compared by: gain or ratio of the best so far."""
    return figures.ratio[feature] if rule == BY_RATIO else figures.gain[feature]


@inlined
def keep_cut(last: int, code: int, gain: float, split_info: float, feature: int, figures: Figures) -> None:
    """Make a cut the best of its feature."""
    figures.gain[feature] = gain
    figures.split_info[feature] = split_info
    figures.ratio[feature] = gain_ratio(gain, split_info)
    figures.last_below[feature] = last
    figures.first_above[feature] = code
    figures.is_valid[feature] = True


@inlined
def note_cut(at: int, last: int, code: int, gain: float, split_info: float, is_valid: bool, cuts: Cuts) -> None:
    """Write one cut down for people, as far as there is room."""
    if at < len(cuts.gain):
        cuts.gain[at] = gain
        cuts.split_info[at] = split_info
        cuts.ratio[at] = gain_ratio(gain, split_info)
        cuts.is_valid[at] = is_valid
        cuts.last_below[at] = last
        cuts.first_above[at] = code


@inlined
def count_full(n_missing: int, feature: int, settings: TextbookSettings, figures: Figures) -> None:
    """Note the branches of the best cut: missing values have one more, unless the cut sets them against the known."""
    figures.n_full[feature] = 2
    if n_missing > 0 and not settings.spreads_missing and figures.first_above[feature] >= 0:
        figures.n_full[feature] = 3


@inlined
def keep_levels(
    gain: float, split_info: float, n_full: int, w_missing: int, is_valid: bool, feature: int, figures: Figures
) -> None:
    """Note the test of a category."""
    figures.gain[feature] = gain
    figures.split_info[feature] = split_info
    figures.n_full[feature] = n_full
    figures.missing_weight[feature] = w_missing
    figures.is_valid[feature] = is_valid


@kernel
def close_figures(features: np.ndarray, feature: int, w_all: int, settings: TextbookSettings, figures: Figures) -> None:
    """Settle the figures of a feature whose best test was found: penalty, ratio, whether it may be made."""
    is_category = features[IS_CATEGORICAL, feature] != 0
    if settings.rule == BY_C45 and not is_category:
        n_cuts = figures.n_cuts[feature]
        if n_cuts == 0:
            figures.is_valid[feature] = False
            return
        figures.gain[feature] -= log2(np.float64(n_cuts)) / (np.float64(w_all) * settings.weight_unit)
        if figures.gain[feature] < C45_SMALL:
            figures.is_valid[feature] = False
    figures.ratio[feature] = gain_ratio(figures.gain[feature], figures.split_info[feature])
    is_many = np.float64(features[N_CODES, feature]) >= settings.many_levels
    if figures.is_valid[feature] and (not is_category or not is_many or settings.is_all_many):
        figures.is_counted[feature] = True


# --- The choice ----------------------------------------------------------------------------------------------------


@kernel
def choose(figures: Figures, slack: float, settings: TextbookSettings) -> int:
    """The feature to test, the first among equals; -1: none."""
    if settings.rule == BY_C45:
        return choose_c45(figures)
    chosen = np.int64(-1)
    best = -1.0
    for j in range(len(figures.gain)):
        if not figures.is_valid[j]:
            continue
        if chosen < 0 or is_better(figures.gain[j], figures.split_info[j], best, slack, settings.rule):
            best = best_figure(figures, j, settings.rule)
            chosen = np.int64(j)
    return chosen


@kernel
def choose_c45(figures: Figures) -> int:
    """The same by C4.5: the largest gain ratio among the tests of at least average gain."""
    chosen = np.int64(-1)
    total = 0.0
    n_counted = np.int64(0)
    for j in range(len(figures.gain)):
        if figures.is_counted[j]:
            total += figures.gain[j]
            n_counted += 1
    if n_counted == 0:
        return chosen
    average = total / np.float64(n_counted)
    best = 0.0
    for j in range(len(figures.gain)):
        is_good = figures.is_valid[j] and figures.gain[j] >= average - C45_AVERAGE_SLACK
        if is_good and figures.ratio[j] - best > C45_SMALL:
            best = figures.ratio[j]
            chosen = np.int64(j)
    return chosen
