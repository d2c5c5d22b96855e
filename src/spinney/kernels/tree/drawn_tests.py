"""The random test of a feature, drawn and judged: by the rows of a node, or by sums where these are elsewhere.

The sums of a node tell its lowest and highest code, and what the codes on either side of a test add up to, so that the
test is the one that `random_tests` would draw of the rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    HIGH,
    IS_BINNED,
    IS_CATEGORICAL,
    LEFT,
    LOW,
    MISSING,
    MONOTONE,
    MOST_LEVELS,
    N_CODES,
    N_MISSING,
    NUMBER,
    OFFSET,
    PAIR_ROWS,
    PLAIN_LEVELS,
    PRESENT,
    Q_MISSING,
    S_MISSING,
    W_ALL,
    W_MISSING,
)

from ..common.category_chance import no_chance
from ..common.rng import fold
from ..common.structs import (
    BinWalk,
    Candidate,
    Cells,
    ClassScratch,
    CodeSums,
    DrawnCells,
    DrawnTest,
    FourTests,
    GivenSums,
    GivenTest,
    OpenNode,
    RowBits,
    Rows,
    Scratch,
    Settings,
    Table,
)
from ..common.thresholds import last_below
from .cells import is_sparse, list_cells, range_of_cells
from .flags import is_flag, sum_classes_unset, sum_unset
from .given_sums import has_given
from .random_tests import (
    complete_subset,
    draw_levels,
    draw_test,
    draw_threshold,
    is_quick,
    judge_class_sums,
    judge_test,
    send_all_left,
    sum_right,
)
from .scan_cells import judge_all_of_cells, judge_cells
from .scan_moments import scan_moments
from .small_tests import (
    NONE,
    ONE,
    collect_levels,
    count_steps,
    draw_value,
    judge_left_classes,
    judge_left_sums,
    judge_small,
    last_left,
    load_few,
    part_levels,
)

# --- Sums in the place of rows --------------------------------------------------------------------------------------


@inlined
def rows_of_code(at: int, n_classes: int, is_unit: bool, sums: np.ndarray) -> int:
    """Rows of a code whose sums begin at a place; n_classes: three or more, 0 for numbers and two classes."""
    if n_classes == 0:
        return sums[at]
    if not is_unit:
        return sums[at + n_classes]
    total = np.int64(0)
    for c in range(n_classes):
        total += sums[at + c]
    return total


@inlined
def list_given_codes(feature: int, table: Table, width: int, is_unit: bool, scratch: Scratch, given: GivenSums) -> int:
    """List the known codes that a node has in `column` and bins[BIN_CODE]; return how many."""
    n_classes = np.int64(len(given.classes))
    first = given.first[feature]
    n = np.int64(0)
    for code in range(1, table.features[N_CODES, feature] + 1):
        if rows_of_code(first + code * width, n_classes, is_unit, given.sums) > 0:
            scratch.random.column[n] = np.int32(code)
            scratch.bins[BIN_CODE, n] = code
            n += 1
    return n


@inlined
def draw_given(feature: int, n: int, n_missing: int, node: OpenNode, table: Table, scratch: Scratch) -> DrawnTest:
    """Draw a test of a feature of which the node has n codes, see `list_given_codes`; as `draw_test`."""
    features, column = table.features, scratch.random.column
    sign = features[MONOTONE, feature]
    cut = np.int64(0)
    threshold = np.inf
    if n == 0 or (n == 1 and n_missing == 0):
        return DrawnTest(np.int64(0), cut, threshold, np.int64(0), n_missing, sign)
    lowest = np.int64(column[0])
    highest = np.int64(column[n - 1])
    n_bins = np.int64(2 if lowest < highest else 1)
    cut = highest
    if features[IS_CATEGORICAL, feature] != 0:
        draw_key = fold(node.test_key, np.uint64(feature))
        draw_levels(n, features[N_CODES, feature], draw_key, n_bins == 2, column, scratch.levels)
        cut = np.int64(1)
    elif n_bins == 2:
        cut, threshold = draw_threshold(features, table.edges, feature, lowest, highest, node.test_key)
    return DrawnTest(n_bins, cut, threshold, highest, n_missing, sign)


@inlined
def judge_given_moments(
    best: Candidate, test: GivenTest, node: OpenNode, settings: Settings, xlogx: np.ndarray, scratch: Scratch
) -> Candidate:
    """Judge a test by the sums of codes, for numbers and two classes."""
    drawn, n, first, sums = test.drawn, test.n_codes, test.first, test.sums
    bins, totals, column = scratch.bins, scratch.totals, scratch.random.column
    width = 2 if settings.is_unit else 3
    count = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    for k in range(n):
        if column[k] <= drawn.cut:
            at = first + bins[BIN_CODE, k] * width
            count += sums[at]
            total += sums[at + 1]
            weight += sums[at if width == 2 else at + 2]
    totals[N_MISSING] = drawn.n_missing
    totals[S_MISSING] = sums[first + 1]
    totals[W_MISSING] = sums[first if width == 2 else first + 2]
    totals[Q_MISSING] = totals[W_MISSING]
    if settings.is_plain and drawn.n_missing == 0:
        return judge_left_sums(best, total, weight, node, totals)
    bins[BIN_N, 0] = count
    bins[BIN_SUM, 0] = total
    bins[BIN_WEIGHT, 0] = weight
    bins[BIN_SQUARE, 0] = weight
    sum_right(drawn, node.hi - node.lo, bins, totals)
    walk = BinWalk(drawn.n_bins, drawn.sign, no_chance())
    return scan_moments(best, walk, node, settings, xlogx, bins, totals, scratch.rates)


@inlined
def judge_given_classes(
    best: Candidate, test: GivenTest, node: OpenNode, settings: Settings, xlogx: np.ndarray, scratch: Scratch
) -> Candidate:
    """The same for three classes or more."""
    drawn, n, first, given = test.drawn, test.n_codes, test.first, test.sums
    sums, totals, bins, column = scratch.classes.sums, scratch.totals, scratch.bins, scratch.random.column
    n_classes = settings.n_classes
    for k in range(node.n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[MISSING, c] = given[first + c]
    totals[N_MISSING] = drawn.n_missing
    totals[W_MISSING] = 0
    for c in range(n_classes):
        totals[W_MISSING] += given[first + c]
    n_left = np.int64(0)
    w_left = np.int64(0)
    for k in range(n):
        if column[k] <= drawn.cut:
            at = first + bins[BIN_CODE, k] * (n_classes + 1)
            n_left += rows_of_code(at, n_classes, settings.is_unit, given)
            for c in range(n_classes):
                sums[LEFT, c] += given[at + c]
                w_left += given[at + c]
    return judge_class_sums(best, drawn, CodeSums(n_left, w_left), node, settings, xlogx, scratch)


@inlined
def judge_given(
    best: Candidate,
    test: GivenTest,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    classes: ClassScratch | None,
) -> Candidate:
    """The same for any target."""
    if classes is None:
        return judge_given_moments(best, test, node, settings, xlogx, scratch)
    return judge_given_classes(best, test, node, settings, xlogx, scratch)


# --- The test of a feature ------------------------------------------------------------------------------------------


@inlined
def draw_and_judge(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    given: GivenSums | None,
) -> tuple[DrawnTest, Candidate]:
    """Draw a test of a feature, and judge it if the feature varies."""
    if given is None:
        drawn = draw_test(feature, node, rows, table, scratch, scratch.bits)
        if drawn.n_bins == 0:
            return drawn, best
        return drawn, judge_test(best, drawn, node, rows, settings, table.xlogx, scratch, scratch.classes)
    n_classes = np.int64(len(given.classes))
    width = n_classes + 1
    if n_classes == 0:
        width = 2 if settings.is_unit else 3
    n = list_given_codes(feature, table, width, settings.is_unit, scratch, given)
    n_missing = rows_of_code(given.first[feature], n_classes, settings.is_unit, given.sums)
    drawn = draw_given(feature, n, n_missing, node, table, scratch)
    if drawn.n_bins == 0:
        return drawn, best
    test = GivenTest(drawn, n, given.first[feature], given.sums)
    return drawn, judge_given(best, test, node, settings, table.xlogx, scratch, scratch.classes)


@kernel
def spare_bins(feature: int, cut: int, threshold: float, table: Table) -> float:
    """A threshold moved up to the end of its bin, a code from `cut` on: no bin is torn apart, be it of no row here."""
    at = table.features[OFFSET, feature] - 1
    last = last_below(table.edges, at, cut, table.features[N_CODES, feature], threshold)
    return max(threshold, table.edges[HIGH, at + last])


@inlined
def is_drawn_alone(n_levels: int, fours: FourTests | None) -> bool:
    """Whether the words that the rows of a node need are there and are all that is asked for: see `settled_levels`."""
    if fours is None:
        return n_levels > PLAIN_LEVELS
    return False  # other tests may have been drawn since


@inlined
def settle_drawn(
    score: float, feature: int, cut: int, threshold: float, n_ties: int, node: OpenNode, table: Table, scratch: Scratch
) -> Candidate:
    """A test that was chosen: the words of its subset are completed, its threshold does not tear a bin apart."""
    features = table.features
    n_codes = features[N_CODES, feature]
    if features[IS_CATEGORICAL, feature] != 0 and not is_drawn_alone(n_codes, scratch.fours):
        complete_subset(n_codes, fold(node.test_key, np.uint64(features[NUMBER, feature])), scratch.levels)
    if features[IS_BINNED, feature] != 0:
        threshold = spare_bins(feature, cut, threshold, table)
    return Candidate(score, cut, np.int64(-1), np.int64(1), n_ties, threshold)


@inlined
def try_small_test(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    bits: RowBits | None,
) -> tuple[bool, Candidate]:
    """Draw and judge a test in a node of few rows; False where something is missing, or the draw needs the long way.

    Where rows of few are bits, a small node comes here only if the tree lacks room for its subtree: it goes that way.
    """
    if bits is not None:
        return False, best
    features, random = table.features, scratch.random
    lo, hi = node.lo, node.hi
    unknown = Candidate(best.score, np.int64(-1), np.int64(-1), np.int64(-1), best.n_ties, np.inf)
    if hi - lo > PAIR_ROWS or not is_quick(settings, table.xlogx, scratch.classes):
        return False, unknown
    n_steps = count_steps(hi - lo, scratch.classes)
    n_codes = features[N_CODES, feature]
    is_subset = features[IS_CATEGORICAL, feature] != 0
    threshold = 0.5  # between the parts of a category's levels
    if is_subset:
        if n_codes > MOST_LEVELS:
            return False, unknown
        seen = collect_levels(rows.codes, lo, hi, n_steps, feature, random.column)
        if seen & (seen - ONE) == NONE:
            return True, unknown
        if seen & ONE != NONE:
            return False, unknown
        draw_key = fold(node.test_key, np.uint64(features[NUMBER, feature]))
        part_levels(n_steps, seen, draw_key, random.column, random.values, scratch.levels)
    else:
        if n_codes == 0:
            return True, unknown
        low, high, is_missing = load_few(feature, lo, hi, n_steps, rows, table, random)
        if is_missing:
            return False, unknown
        if low == high:
            return True, unknown
        is_drawn, threshold = draw_value(low, high, node.test_key, features[NUMBER, feature])
        if not is_drawn:
            return False, unknown
    found = judge_small(best, threshold, node, rows.addends, scratch.totals, random, scratch.classes)
    if found.cut < 0:
        return True, found
    cut = np.int64(1) if is_subset else last_left(n_steps, threshold, random.column, random.values)
    if is_subset:
        threshold = np.inf
    return True, settle_drawn(found.score, feature, cut, threshold, found.n_ties, node, table, scratch)


@inlined
def judge_flag(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, totals: np.ndarray, classes: ClassScratch | None
) -> Candidate:
    """Judge the one cut of a flag that varies in the node; the cut is 0 if it is chosen."""
    totals[N_MISSING] = 0
    if classes is not None:
        sum_classes_unset(feature, node, rows, classes.sums)
        return judge_left_classes(best, node, classes.sums, totals[W_ALL])
    left, w_left = sum_unset(feature, node, rows)
    return judge_left_sums(best, left, w_left, node, totals)


@inlined
def try_flag_test(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> tuple[bool, Candidate]:
    """The same of a flag, in a node of any size: its threshold is drawn only if it is chosen."""
    if not is_flag(feature, rows) or not is_quick(settings, table.xlogx, scratch.classes):
        return False, best
    found = judge_flag(best, feature, node, rows, scratch.totals, scratch.classes)
    if found.cut < 0:
        return True, found
    at = table.features[OFFSET, feature]
    low, high = table.edges[LOW, at], table.edges[LOW, at + 1]
    is_drawn, threshold = draw_value(low, high, node.test_key, table.features[NUMBER, feature])
    if not is_drawn:
        return False, best
    return True, Candidate(found.score, np.int64(1), np.int64(-1), np.int64(1), found.n_ties, threshold)


@inlined
def try_cell_test(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    cells: Cells | None,
) -> tuple[bool, Candidate]:
    """The same of a sparse feature, by its cells: what the others add is what the node does less that of the cells.

    It may be judged in any way.
    """
    if cells is None:
        return False, best
    if not is_sparse(feature, cells):
        return False, best
    n = node.hi - node.lo
    n_cells = list_cells(feature, node.lo, node.hi, rows.ids, cells)
    lowest, highest = range_of_cells(feature, n_cells, n, cells)
    if lowest == highest:
        return True, Candidate(best.score, np.int64(-1), np.int64(-1), np.int64(-1), best.n_ties, np.inf)
    cut, threshold = draw_threshold(table.features, table.edges, feature, lowest, highest, node.test_key)
    scratch.totals[N_MISSING] = 0
    is_usual_left = np.int64(cells.usual[feature - cells.first]) <= cut
    sign = table.features[MONOTONE, feature]
    drawn = DrawnCells(n_cells, cut, is_usual_left, sign, cells.at, cells.found)
    if is_quick(settings, table.xlogx, scratch.classes):
        found = judge_cells(best, drawn, node, rows, scratch, scratch.classes)
    else:
        found = judge_all_of_cells(best, drawn, node, rows, settings, table.xlogx, scratch, scratch.classes)
    if found.cut < 0:
        return True, found
    return True, settle_drawn(found.score, feature, cut, threshold, found.n_ties, node, table, scratch)


@inlined
def try_random_test(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> Candidate:
    """Draw a test of a feature over the rows of a node and judge it; a subset is left in `scratch.levels`.

    The branch of missing rows is -1 if the feature does not vary here.
    """
    features = table.features
    is_settled, found = try_flag_test(best, feature, node, rows, table, settings, scratch)
    if is_settled:
        return found
    is_settled, found = try_cell_test(best, feature, node, rows, table, settings, scratch, rows.cells)
    if is_settled:
        return found
    if not has_given(scratch.given):
        is_settled, found = try_small_test(best, feature, node, rows, table, settings, scratch, scratch.bits)
        if is_settled:
            return found
    drawn, found = draw_and_judge(best, feature, node, rows, table, settings, scratch, scratch.given)
    if drawn.n_bins == 0:
        return Candidate(best.score, np.int64(-1), np.int64(-1), np.int64(-1), best.n_ties, np.inf)
    if found.cut < 0:
        return found
    if found.cut == drawn.n_bins - 1:  # known against missing
        if features[IS_CATEGORICAL, feature] != 0:
            send_all_left(features[N_CODES, feature], scratch.levels)
        return Candidate(found.score, drawn.highest, np.int64(-1), found.missing, found.n_ties, np.inf)
    settled = settle_drawn(found.score, feature, drawn.cut, drawn.threshold, found.n_ties, node, table, scratch)
    return Candidate(settled.score, settled.cut, np.int64(-1), found.missing, settled.n_ties, settled.threshold)
