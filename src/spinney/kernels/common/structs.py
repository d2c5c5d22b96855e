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

from typing import NamedTuple

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


class Queue(NamedTuple):
    """What `common.queue` reads of a frontier; see there."""

    queue: NDArray[np.int64]
    node: NDArray[np.int64]
    gain: NDArray[np.float64]
    state: NDArray[np.int64]


# --- Boosting ---------------------------------------------------------------------------------------------------


class ByteRows(NamedTuple):
    """Rows of bytes: of the table (fit; the sums of a tree), or the two halves of the buffer (tree), end to end."""

    codes: NDArray[np.uint8]  # (n_rows * n_words * 8,): a byte for each narrow feature, then two for each wide one
    words: NDArray[np.uint64]  # (n_rows * n_words,): the same memory
    sums: NDArray[np.int64]  # (n_rows,): gradient and hessian of each row as a packed sum
    ids: NDArray[np.int32]  # (n_rows,): rows of the table


class Column(NamedTuple):
    """Where the codes of one feature stand in rows of bytes."""

    n_words: int  # of a row
    place: int  # first byte in a row
    is_wide: bool  # two bytes


class Runs(NamedTuple):
    """Where the rows of a shard in a node stand: runs of neighbouring rows, one every so many."""

    lo: int
    hi: int
    size: int  # of a run; the last one may be shorter
    jump: int  # from the beginning of a run to that of the next


class BoostTable(NamedTuple):
    """What is known about the features and rows of a table; fit, but for what says tree."""

    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features): see `_types`
    edges: NDArray[np.float64]  # (2, n_codes of all features): lowest and highest value behind each code
    place: NDArray[np.int64]  # (n_features,): first byte of a feature in a row
    is_wide: NDArray[np.bool_]  # (n_features,): two bytes
    first_cell: NDArray[np.int64]  # (n_features,): first of its cells in a slot; -1: none are kept
    used: NDArray[np.int64]  # (n,): features of the tree
    used_places: NDArray[np.int64]  # (n,): places of the narrow ones among them; tree
    kept_cell: NDArray[np.int64]  # (n,): of the features of the tree whose cells are kept, the first cell in a slot ...
    kept_size: NDArray[np.int64]  # ... the number of cells ...
    kept_place: NDArray[np.int64]  # ... and the first byte of a wide one; -1: narrow
    weights: NDArray[np.int64]  # (n_rows,) or (1,): row weights in units
    starts: NDArray[np.int64]  # (n_shards + 1,): where the rows of each shard stand in the first half of the buffer
    interactions: NDArray[np.uint64]  # (n_features, n_set_words): bit s: set s has the feature; no word: all interact
    n_words: int  # of a row
    n_narrow: int  # features of one byte, which come first in a row
    n_slot_cells: int  # cells of an open node


class BoostNodes(NamedTuple):
    """The nodes of a boosted tree, children side by side; tree, enlarged by Python on NEEDS_ROOM."""

    test: NDArray[np.int64]  # (n_nodes,): packed, see `common.layout`
    first_child: NDArray[np.int64]  # 0: a leaf
    side: NDArray[np.int64]  # where its rows stand: 0 the table, 1 and 2 the halves of the buffer
    n_rows: NDArray[np.int64]
    last_code: NDArray[np.int64]  # of branch 0, where the test is a threshold
    first_word: NDArray[np.int64]  # of the levels of branch 0, where it is a subset
    cut_value: NDArray[np.float64]  # threshold, or the first word as a float
    gain: NDArray[np.float64]  # of its split, less gamma
    lower: NDArray[np.float64]  # bounds of the values below: monotone constraints
    upper: NDArray[np.float64]
    begin: NDArray[np.int64]  # (n_shards, n_nodes): where the rows of each shard begin ...
    end: NDArray[np.int64]  # ... and end in the buffer
    split_order: NDArray[np.int64]  # (n_nodes,): the nodes that were split, in that order
    subsets: NDArray[np.uint64]  # (any,): levels of branch 0 as bits; no word where there are no categories


class BoostFrontier(NamedTuple):
    """The open nodes, each in a slot: its best test, its sums, the cells of its features; tree, enlarged.

    A node has two numbers: `number` while the tree grows, and `node`, that of the finished tree. They differ where
    children were made ready in vain.
    """

    queue: NDArray[np.int64]  # (n_slots,): slots in the order they are expanded, see `common.queue`
    free: NDArray[np.int64]  # slots that are not taken
    node: NDArray[np.int64]
    number: NDArray[np.int64]
    depth: NDArray[np.int64]
    key: NDArray[np.int64]  # of its draws: a function of its path
    packed: NDArray[np.int64]  # packed sum of its rows ...
    left_packed: NDArray[np.int64]  # ... and of those of branch 0
    feature: NDArray[np.int64]  # the test that was found, as in `BoostNodes`
    kind: NDArray[np.int64]
    cut: NDArray[np.int64]
    missing: NDArray[np.int64]  # branch of missing values
    first_child: NDArray[np.int64]  # number of its first child, once it has children ...
    left_slot: NDArray[np.int64]  # ... and their slots
    right_slot: NDArray[np.int64]
    gain: NDArray[np.float64]
    cut_value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    is_ready: NDArray[np.bool_]  # its children have rows, sums and tests
    is_open: NDArray[np.bool_]  # a test was found: it may be split
    is_last: NDArray[np.bool_]  # its children will be leaves: row numbers alone are moved to them
    subsets: NDArray[np.uint64]  # (n_slots, most_words): levels of branch 0
    allowed_sets: NDArray[np.uint64]  # (n_slots, n_set_words): interaction sets that hold every feature used above
    cells: NDArray[np.int64]  # (n_slots * n_slot_cells,): packed sums by code
    shard_cells: NDArray[np.int64]  # ((n_shards - 1) * n_slot_cells,): those of one node, of the shards but the first
    batch: NDArray[np.int64]  # (MOST_BATCH,): slots of nodes to be made ready side by side
    state: NDArray[np.int64]  # (BOOST_STATE_SIZE,): counters of the driver, see `_types`


class BestCuts(NamedTuple):
    """The best test of each feature of a node; node."""

    gain: NDArray[np.float64]  # (n_features of the tree,): scores of both branches; -inf: there is none
    cut: NDArray[np.int64]  # last code of branch 0; of a category its last group
    following: NDArray[np.int64]  # next code of the node; -1: none
    missing: NDArray[np.int64]  # branch of missing values; -1: there are none
    left: NDArray[np.int64]  # packed sum of branch 0
    is_counted: NDArray[np.bool_]  # rows of the branches were counted


class CellScan(NamedTuple):
    """The present codes of a narrow feature, packed together; node."""

    code: NDArray[np.int32]  # (NARROW_CODES,)
    left: NDArray[np.int64]  # packed sum up to each ...
    gradient: NDArray[np.float64]  # ... its gradient ...
    hessian: NDArray[np.float64]  # ... and its hessian
    gain: NDArray[np.float64]  # of a cut behind it


class BoostScratch(NamedTuple):
    """What the search of one thread writes to read it again; node, but for the first two."""

    goes_left: NDArray[np.uint8]  # (n_codes + 1,): by code of the tested feature; kept while threads move a node's rows
    wide_cells: NDArray[
        np.int64
    ]  # (n_codes + 1,): packed sums of a wide feature whose cells are not kept; zero between
    row_counts: NDArray[np.int64]  # (n_codes + 1,): rows by code ...
    weight_counts: NDArray[np.int64]  # ... and their weight
    groups: NDArray[np.int64]  # (BOOST_GROUP_ROWS, n_codes + 2): rows of the node with one code, see `_types`
    scores: NDArray[np.float64]  # (n_codes + 2,): what groups are sorted by
    spare: NDArray[np.float64]  # (n_codes + 2,)
    buckets: NDArray[np.int64]  # (n_codes + 2,)
    cell_scan: CellScan
    best: BestCuts


class BoostCut(NamedTuple):
    """A cut of a feature; fields as in `BestCuts`."""

    gain: float
    cut: int
    following: int
    missing: int
    left: int


class RowSums(NamedTuple):
    """Sums over some rows."""

    packed: int
    n_rows: int  # 0: rows and weights were not counted
    weight: int  # in units


class Bounds(NamedTuple):
    """Of the values of leaves, by monotone constraints."""

    lower: float
    upper: float


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
    is_plain: bool  # no L1 penalty, no monotone constraint: the scan of cells serves
    has_monotone: bool
    is_post: bool  # tests without gain are made, and removed from below at the end
    seed: int
    gradient_unit: float
    hessian_unit: float
    reg_lambda: float
    reg_alpha: float
    gamma: float
    cat_smooth: float
    max_cat_threshold: int  # levels of a category in the branch that has fewer, where a node has many
    likely_gain: float  # ... those whose gain makes it likely that they will be split


class Gradients(NamedTuple):
    """Derivatives of the loss by the raw scores of the rows, without their weights; round, the weights fit."""

    g: NDArray[np.float64]  # (n_rows,)
    h: NDArray[np.float64]  # (n_rows,)
    weight: NDArray[np.float64]  # (n_rows,), or (1,) for all alike
    is_whole: bool  # weights are whole numbers and multiply what is rounded: a row of weight 2 is two rows


class PackedUnits(NamedTuple):
    """Powers of two that gradients and hessians are multiplied by before they are rounded to whole numbers."""

    gradient: float
    hessian: float


class LeafLinks(NamedTuple):
    """From nodes as they were grown to those that are left by pruning; tree."""

    target: NDArray[np.int64]  # (n_nodes,): the node that the rows of a grown leaf belong to in the end; -1: not a leaf
    owner: NDArray[np.int64]  # the kept node that a node has gone into
    grown_child: NDArray[np.int64]  # first child before pruning
    number: NDArray[np.int64]  # of a kept node


class LeafSums(NamedTuple):
    """Sums of true gradients and hessians by leaf, in fixed point; tree."""

    gradient: NDArray[np.int64]  # (n_shards, n_nodes)
    hessian: NDArray[np.int64]  # (n_shards, n_nodes)


class LeafSettings(NamedTuple):
    """How sums become values of leaves."""

    n_features: int
    gradient_unit: float  # worth of a unit of the sums
    hessian_unit: float
    reg_lambda: float
    reg_alpha: float
    learning_rate: float


class StoredTrees(NamedTuple):
    """The trees of a boosted model end to end; model, enlarged. Fields as of `tree.forest.Forest`."""

    first: int  # node where the next tree begins
    cuts: NDArray[np.float64]  # (any, 2): its first column thresholds and values of leaves ...
    words: NDArray[np.uint64]  # ... the same memory: its second column links, see `common.layout`
    n_rows: NDArray[np.uint32]  # (any,)
    weight: NDArray[np.float64]  # (any,): sum of hessians
    gain: NDArray[np.float64]  # (any,): gain of the tests below each node, per weight


# --- Textbook trees: ID3, C4.5 ----------------------------------------------------------------------------------


class TextbookSettings(NamedTuple):
    """Scalars of one textbook tree."""

    criterion: int
    rule: int
    n_classes: int
    spreads_missing: int  # a row with a missing value takes every branch; else missing is a value of its own
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # least weight of a branch that has any, in units of the sums; not for C4.5
    is_centred: int  # squared error of whole weights: targets are taken from the node's mean
    shift: int  # weights are whole numbers times 2 ** shift, but for the pieces of rows; 0 where they are not whole
    is_all_many: int  # every feature is a category with too many levels for the average gain
    weight_unit: float  # worth of a unit of weight
    log_scale: float  # units of f(weight) = weight log2 weight in a bit
    square_unit: float  # turns a sum of squares into squared target units
    min_weight: float  # of a branch (C4.5), in the user's weights
    many_levels: float  # a category with as many is left out of the average gain
    min_gain: float  # times the weight of the node in units
    truth_unit: float  # turns a target into units of the sums (numbers)


# --- Prediction, data -------------------------------------------------------------------------------------------
