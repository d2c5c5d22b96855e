"""The state that kernels pass to each other: every NamedTuple, a comment per field.

A group is what one owner makes and keeps for one time. The words of lifetimes:

  fit      made once for a table; read only, shared by threads
  tree     made or reset for each tree
  node     no meaning between two nodes: scratch

Python makes the groups (`tree/grow.py`, `tree/boost.py`, `tree/textbook.py`); kernels write into the arrays and never
into the tuples. A group that may be None as a whole selects a variant of the kernel at compile time, so that a first
fit compiles what it needs: it must reach the function that asks `is None` as an argument of its own, since Numba drops
dead branches for arguments, not for fields (docs/decisions/0001).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# --- Trees: CART, forests, extra-trees, stumps ------------------------------------------------------------------


class Settings(NamedTuple):
    """Scalars of one grow; weights and gains are in the units of the fixed-point sums."""

    criterion: int
    n_classes: int
    missing: int
    order: int
    max_depth: int
    max_leaves: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int
    n_try: int  # features drawn per node
    max_surrogates: int
    is_centred: int  # squared error of whole weights: targets are taken from the node's mean
    is_class: int  # the target is a class, also where two classes go as moments
    is_unit: int  # every weight is 1
    is_whole: int  # every weight is a whole number and their sum is below 2**31, so squares of sums fit an int64
    is_plain: int  # squared error, whole weights, no constraint, no random ties: the scan without groups serves
    is_packed: int  # two classes by squared error, small whole weights, no constraint: packed labels serve
    is_shuffled: int  # features are searched in an order drawn for each node
    is_random: int  # one random test per feature
    is_ratio: int  # tests are chosen by their gain ratio
    has_monotone: int
    has_random_ties: int
    min_gain: float  # in score units
    min_spread: float  # least standard deviation of a node that is split, in target units
    value_slack: float  # values of branches that differ by less count as equal for monotone constraints
    square_unit: float  # turns a sum of squares into squared target units
    seed: int
    most_words: int  # of one subset
    most_listed: int  # largest node that sorted lists are made for; 0: none


# --- Boosting ---------------------------------------------------------------------------------------------------


class BoostSettings(NamedTuple):
    """Scalars of one boosted tree; sums of gradients and hessians are whole numbers of their units."""

    order: int
    max_depth: int
    max_leaves: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # in units of the row weights; 0: not asked for
    min_hessian: int  # of a branch, in units; at least 1
    most_hessian: int  # of one row, in units: a branch has at least its sum / most_hessian rows
    n_try: int  # features drawn per node
    n_shards: int
    share_rows: int  # rows of a node that is worth sharing out among threads
    batch_rows: int  # rows of a node from which on several are made ready side by side ...
    most_words: int  # of one subset
    is_plain: int  # no L1 penalty, no monotone constraint: the scan of cells serves
    has_monotone: int
    is_post: int  # tests without gain are made, and removed from below at the end
    seed: int
    gradient_unit: float
    hessian_unit: float
    reg_lambda: float
    reg_alpha: float
    gamma: float
    cat_smooth: float
    max_cat_threshold: int  # levels of a category in the branch that has fewer, where a node has many
    likely_gain: float  # ... those whose gain makes it likely that they will be split


# --- Textbook trees: ID3, C4.5 ----------------------------------------------------------------------------------
# The words are those of `kernels.textbook`: an entry is a row in a node, or a piece of one.


class TextbookTable(NamedTuple):
    """The table by columns, and what its codes stand for; fit."""

    columns: NDArray[np.uint16]  # (n_features, n_rows): codes
    times: NDArray[np.int64]  # (n_rows,) whole weights: a row of weight w is w rows; (1,): every row is one
    truth: NDArray[np.float64]  # (n_rows,): classes or targets
    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features)
    edges: NDArray[np.float64]  # (2, values of all features): lowest and highest value behind each code
    xlogx: NDArray[np.int64]  # (total weight + 1,): k log2 k in fixed point; (1,): weights are not whole, or too large


class Entries(NamedTuple):
    """What nodes hold: rows, or pieces of them. The arena of a tree has those of all open nodes; tree, enlarged."""

    ids: NDArray[np.int32]  # (n_entries,): rows
    labels: NDArray[np.int64]  # (1 .. 3, n_entries): class or weighted target; weight (without: 1 each); square


class TextbookSettings(NamedTuple):
    """Scalars of one textbook tree; fit."""

    criterion: int
    rule: int  # BY_GAIN, BY_RATIO, BY_C45
    n_classes: int  # 0: numbers
    spreads_missing: bool  # a row with a missing value takes every branch; else missing is a value of its own
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # least weight of a branch that has any, in units of the sums; not for C4.5
    is_centred: bool  # squared error of whole weights: targets are taken from the node's mean
    shift: int  # weights are whole numbers times 2 ** shift, but for the pieces of rows; 0 where they are not whole
    is_all_many: bool  # every feature is a category with too many levels for the average gain
    weight_unit: float  # worth of a unit of weight
    log_scale: float  # units of f(weight) = weight log2 weight in a bit
    square_unit: float  # turns a sum of squares into squared target units
    min_weight: float  # of a branch (C4.5), in the user's weights
    many_levels: float  # a category with as many is left out of the average gain
    min_gain: float  # times the weight of the node in units
    truth_unit: float  # turns a target into units of the sums (numbers)


class TextbookNodes(NamedTuple):
    """The tree as it grows; tree, enlarged. All but `distributions` are (room,)."""

    test: NDArray[np.int64]  # as `kernels.common.layout` packs it
    first_child: NDArray[np.int64]  # 0: a leaf
    begin: NDArray[np.int64]  # first entry in the arena; of an inner node what it was
    n_rows: NDArray[np.int64]  # entries
    n_branches: NDArray[np.int64]  # 0: a leaf
    weight: NDArray[np.int64]  # of its entries, in units of the sums
    class_of: NDArray[np.int64]  # of a leaf: its class, or -1 - its row in `distributions`
    cut_value: NDArray[np.float64]  # threshold; of a branch for each level that of missing values
    impurity: NDArray[np.float64]  # classes: by the tree's criterion
    distributions: NDArray[np.int64]  # (room, n_classes): weights per class of leaves that are not pure


class TextbookStack(NamedTuple):
    """The open nodes, the next one last, and the driver's counters; tree, enlarged."""

    node: NDArray[np.int64]  # (room,)
    depth: NDArray[np.int64]  # (room,)
    state: NDArray[np.int64]  # (TEXTBOOK_STATE_SIZE,): N_NODES, N_QUEUED, N_MIXED, N_ENTRIES


class Figures(NamedTuple):
    """How good the best test of each feature of a node is; node. All are (n_features,)."""

    gain: NDArray[np.float64]  # bits, Gini or variance (SD) per unit of the node's weight; C4.5: less its penalty
    split_info: NDArray[np.float64]  # bits
    ratio: NDArray[np.float64]  # gain / split information
    missing_weight: NDArray[np.float64]  # in units of the sums
    is_valid: NDArray[np.bool_]  # the test may be made
    is_counted: NDArray[np.bool_]  # its gain enters the average (C4.5)
    last_below: NDArray[np.int64]  # numbers: last code of branch 0
    first_above: NDArray[np.int64]  # numbers: first code of branch 1; -1: known rows are set against missing ones
    n_tried: NDArray[np.int64]  # numbers: cuts between values of the node
    n_cuts: NDArray[np.int64]  # numbers: those that were admissible
    n_full: NDArray[np.int64]  # branches that have rows, that of missing values included


class Cuts(NamedTuple):
    """Every cut of a number in a node, in order, for people; node. All are (room,)."""

    gain: NDArray[np.float64]  # without C4.5's penalty
    split_info: NDArray[np.float64]
    ratio: NDArray[np.float64]
    is_valid: NDArray[np.bool_]
    last_below: NDArray[np.int64]  # codes around the cut, as in `Figures`
    first_above: NDArray[np.int64]


class ScanScratch(NamedTuple):
    """What the scan of a node writes to; node."""

    column: NDArray[np.uint16]  # (n_entries, 1): codes of the feature at hand
    keys: NDArray[np.uint64]  # (2, n_rows): codes and positions, to be sorted
    counts: NDArray[np.int32]  # (MOST_BUCKETS,): of the sort
    cells: NDArray[np.int64]  # sums per code (and class); zero between uses
    totals: NDArray[np.int64]  # (TOTALS_SIZE,)
    groups: Any  # (GROUP_ROWS, most codes) int64; None: classes
    sums: Any  # (TEXTBOOK_CLASS_ROWS, n_classes) int64; None: numbers
    figures: Figures


class Branches(NamedTuple):
    """The branches of the node at hand; node."""

    of_entry: NDArray[np.int32]  # (n_entries,): the branch that an entry takes; -1: every one
    weight: NDArray[np.int64]  # (most branches,): of the entries that take it alone
    n: NDArray[np.int64]  # (most branches,): entries, pieces included
    begin: NDArray[np.int64]  # (most branches,): first entry
    share: NDArray[np.int64]  # (most branches,): what it gets of a row in pieces, in shares of `Parting.known`


class TextbookScratch(NamedTuple):
    """What the driver writes to pass it on; node."""

    scan: ScanScratch
    branches: Branches


class ClassSpan(NamedTuple):
    """A node of classes whose features are scanned; `ScanScratch.sums` and `totals` hold its sums."""

    lo: int
    hi: int  # its entries are lo .. hi
    n_present: int  # classes that it has


class ValueSpan(NamedTuple):
    """A node of numbers whose features are scanned; `ScanScratch.totals` hold its sums."""

    lo: int
    hi: int  # its entries are lo .. hi
    centre: int  # what its targets are taken from
    score: float  # see `kernels.common.criteria`
    slack: float  # gains that differ by less are equal


class CodeRange(NamedTuple):
    """The codes of a feature in a node."""

    lowest: int
    highest: int  # 0: none is known; some other known code than the lowest where that is all one asks
    n_missing: int


class CutSearch(NamedTuple):
    """What all cuts of a feature in a node of classes have in common."""

    feature: int
    n_present: int  # classes of the node
    base: float  # score that the branches must exceed, in the user's units
    apart: int  # f of the missing entries
    least: float  # weight that C4.5 wants on each side


class Cut(NamedTuple):
    """A cut of a number in a node of classes: what lies below it."""

    last: int  # last code below
    code: int  # first code above; -1: known entries against missing ones
    n_left: int
    w_left: int
    power: int  # f over the classes, of both sides


class CutTally(NamedTuple):
    """The cuts of a feature so far."""

    n_tried: int
    n_valid: int
    best: float  # gain (BY_RATIO: ratio) of the best


class NodeWeights(NamedTuple):
    """What decides whether a node may be split."""

    weight: int  # in units of the sums
    heaviest: int  # of its classes; 0: numbers
    n_present: int  # classes; 0: numbers


class Split(NamedTuple):
    """A test that was chosen, in codes."""

    feature: int
    kind: int  # THRESHOLD, MULTIWAY
    cut: int  # last code of branch 0
    following: int  # first code of branch 1; -1: known rows are set against missing ones
    missing: int  # branch of missing values; -1: no entry has one, or such entries take every branch
    n_branches: int


class Parting(NamedTuple):
    """How the entries of a node are shared out."""

    n_branches: int
    n_entries: int  # of all branches
    heaviest: int  # branch by weight of known entries, the first among equals
    known: int  # sum of the branches' shares


class TextbookUnits(NamedTuple):
    """How targets of a regression tree are summed and scaled; fit."""

    is_whole: bool  # weights are whole numbers
    centre: float  # targets are taken from here ...
    stretch: float  # ... and multiplied by this power of two
    share: float  # worth of a unit of weight
    rough_scale: float  # units of a first sum, which says how fine the next may be
    criterion: int
    value_unit: float  # turns targets into the user's units in two steps: a square may leave a float's range
    value_unit_2: float


class TextbookStats(NamedTuple):
    """What is written about the nodes of a regression tree; all are (n_nodes,)."""

    mean: NDArray[np.float64]  # centred, stretched: scratch
    value: NDArray[np.float64]  # of leaves with rows, in the user's units
    impurity: NDArray[np.float64]


class PruneTable(NamedTuple):
    """The rows that a tree is pruned with; fit."""

    values: NDArray[np.float64]  # (n_features, n_rows): the rows of a node lie close together in a column
    times: NDArray[np.int64]  # as in `TextbookTable`
    subsets: NDArray[np.uint64]  # `Tree.subsets`


class PruneSettings(NamedTuple):
    """Scalars of one pruning."""

    is_pruned: bool  # False: only settle what the nodes hold
    confidence: float
    z: float  # normal quantile of 1 - confidence
    weight_unit: float  # worth of a unit of weight


class PruneNodes(NamedTuple):
    """The tree that is pruned, changed in place; nodes that no path reaches are gone. (n_nodes,) unless said."""

    test: NDArray[np.int64]
    first_child: NDArray[np.int64]  # 0: a leaf
    n_branches: NDArray[np.int64]
    n_rows: NDArray[np.int64]  # entries
    weight: NDArray[np.int64]  # of the entries, in units of the sums
    error: NDArray[np.int64]  # weight of all but the heaviest class
    cut_value: NDArray[np.float64]  # `Tree.threshold`
    estimate: NDArray[np.float64]  # errors that the subtree is expected to make
    class_weights: NDArray[np.int64]  # (n_nodes, n_classes) zeros, added to; (0, 1): not asked for


class Frame(NamedTuple):
    """A node under way."""

    node: int
    lo: int
    hi: int  # its entries are lo .. hi
    top: int  # end of the arena that is in use


class PruneFrames(NamedTuple):
    """Frames behind each other; all are (n_nodes + 1,)."""

    node: NDArray[np.int64]
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    top: NDArray[np.int64]
    phase: NDArray[np.int64]  # SETTLE, ENTER, DECIDE


class PruneStack(NamedTuple):
    """What is under way, and counters; one pruning."""

    frames: PruneFrames
    state: NDArray[np.int64]  # (TEXTBOOK_STATE_SIZE,): N_QUEUED, N_RAISED, N_ENTRIES


class PruneScratch(NamedTuple):
    """What pruning writes to pass it on; node."""

    spare: Entries  # as large as the arena
    branches: Branches
    class_sums: NDArray[np.int64]  # (n_classes,)
    path: PruneFrames  # nodes that entries still have to go to


# --- Prediction, data -------------------------------------------------------------------------------------------
