"""The state that kernels pass to each other: every NamedTuple, a comment per field.

A group is what one owner makes and keeps for one time. The words of lifetimes:

  fit      made once for a table; read only, shared by threads
  tree     made or reset for each tree
  node     no meaning between two nodes: scratch

Python makes the groups (`tree/grow.py`, `tree/boost.py`, `tree/textbook.py`, `model/predict.py`, ...); kernels write
into the arrays and never into the tuples. A group that may be None as a whole selects a variant of the kernel at
compile time, so that a first fit compiles what it needs: it must reach the function that asks `is None` as an argument
of its own, since Numba drops dead branches for arguments, not for fields (docs/decisions/0001).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# --- Trees: CART, forests, extra-trees, stumps ------------------------------------------------------------------


class Settings(NamedTuple):
    """Scalars of one grow; weights and gains are in the units of the fixed-point sums."""

    criterion: int
    n_classes: int
    missing: int  # LEARNED, OWN_BRANCH or SURROGATE
    order: int  # DEPTH_FIRST or BEST_FIRST
    max_depth: int
    max_leaves: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int
    n_try: int  # features drawn per node
    max_surrogates: int
    is_centred: bool  # squared error of whole weights: targets are taken from the node's mean
    is_class: bool  # the target is a class, also where two classes go as moments
    is_unit: bool  # every weight is 1
    is_whole: bool  # every weight is a whole number and their sum is below 2**31, so squares of sums fit an int64
    is_plain: bool  # squared error, whole weights, no constraint, no random ties: the scan without groups serves
    is_packed: bool  # squared error or Gini of classes, small whole weights, no constraint: packed labels serve
    is_shuffled: bool  # features are searched in an order drawn for each node
    is_random: bool  # one random test per feature
    is_ratio: bool  # tests are chosen by their gain ratio
    has_monotone: bool
    has_random_ties: bool
    min_gain: float  # in score units
    min_spread: float  # least standard deviation of a node that is split, in target units
    value_slack: float  # values of branches that differ by less count as equal for monotone constraints
    square_unit: float  # turns a sum of squares into squared target units
    seed: int
    most_words: int  # of one subset
    most_listed: int  # largest node that sorted lists are made for; 0: none


class Table(NamedTuple):
    """What does not change while a tree grows. Life: fit; read only, shared by threads."""

    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features): number of codes, kind, constraint, ...; see `_types`
    edges: NDArray[np.float64]  # (2, n_values): lowest and highest value behind each code of each feature
    truth: NDArray[np.float64]  # (n_rows of the table,): targets in their first order
    xlogx: NDArray[np.int64]  # (weight + 2,): k log2 k in fixed point; (1,): logarithms are computed


class Lists(NamedTuple):
    """Sorted lists of one subtree's rows; see `tree.sorted_lists`. Life: the subtree; `state` says which rows."""

    keys: NDArray[np.uint32]  # (n_features, most) uint32 or uint64: code << bits | position, in order
    labels: NDArray[np.int64]  # (1 .. 3, most): labels by position
    place: NDArray[np.int32]  # (n_rows of the table,): position of a row by its id
    branch: NDArray[np.uint8]  # (most,): the branch that a position takes in the split at hand


class Rows(NamedTuple):
    """The rows of a tree, moved in place so that those of a node are neighbours. Life: tree."""

    codes: NDArray[np.uint16]  # (n_rows, stride)
    words: NDArray[np.uint64]  # the same memory, eight bytes at a time
    labels: NDArray[np.int64]  # (1 .. 3, n_rows): TARGET, WEIGHT, SQUARE, as far as they are needed
    ids: NDArray[np.int32]  # (n_rows,): where a row stands in the table
    lists: Lists


class Nodes(NamedTuple):
    """The nodes of a tree under way, each array (room,) but the last. Life: tree; Python enlarges them."""

    test: NDArray[np.int64]  # as `common.layout` packs it; 0: a leaf
    first_child: NDArray[np.int64]  # 0: a leaf
    begin: NDArray[np.int64]  # first row
    n_rows: NDArray[np.int64]
    cut_value: NDArray[np.float64]  # threshold, or first word of a subset
    score: NDArray[np.float64]  # of its rows, see `common.criteria`
    lower: NDArray[np.float64]  # bounds on its value by monotone constraints above
    upper: NDArray[np.float64]
    subsets: NDArray[np.uint64]  # (words,): bitsets of levels that go to branch 0, behind each other


class Children(NamedTuple):
    """The branches of the split just carried out, each array (MOST_BRANCHES,). Life: node."""

    begin: NDArray[np.int64]  # first row
    end: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Frontier(NamedTuple):
    """Open nodes. Life: tree; Python enlarges the arrays of slots, each (n_slots,)."""

    queue: NDArray[np.int64]  # slots in the order of `common.queue`; the first state[N_QUEUED] count
    free: NDArray[np.int64]  # slots that hold nothing; the first state[N_FREE] count
    node: NDArray[np.int64]  # number of the node in a slot
    depth: NDArray[np.int64]
    key: NDArray[np.int64]  # of the node's random draws
    feature: NDArray[np.int64]  # here and below: the best test, once the node has been searched
    kind: NDArray[np.int64]  # THRESHOLD or SUBSET
    cut: NDArray[np.int64]  # last code of branch 0, or first word of the subset; -1: not searched yet
    missing: NDArray[np.int64]  # branch of missing values; -1: the node has none
    n_branches: NDArray[np.int64]
    gain: NDArray[np.float64]
    cut_value: NDArray[np.float64]  # as in Nodes; while the search is on, the code after the cut
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    state: NDArray[np.int64]  # (STATE_SIZE,): N_NODES, N_QUEUED, ...: counters of the driver
    control: NDArray[np.int64]  # (CONTROL_SIZE,): asked to stop, rows done; shared by the trees of a forest
    children: Children


class ClassScratch(NamedTuple):
    """For three classes or more; None: moments (numbers, two classes). Life: node."""

    sums: NDArray[np.int64]  # (CLASS_ROWS, n_classes): ALL, LEFT, RIGHT, MISSING, PRESENT
    vectors: NDArray[np.float64]  # (3, n_classes): mean shares, direction, next direction


class LevelScratch(NamedTuple):
    """For tables with categories. Life: node."""

    bitset: NDArray[np.uint64]  # (2 * most_words,): the subset that was found; the second half is for random tests
    scores: NDArray[np.float64]  # (most codes,): what levels are ordered by


class PackedScratch(NamedTuple):
    """For the searches of forests, where a row's label fits 32 bits. Life: node."""

    labels: NDArray[np.int32]  # (most rows + PAIR_LANES,): weight << 16 | weight of class 1, or class << 16 | weight
    column: NDArray[np.int32]  # the same length: codes of one feature
    pair_sums: NDArray[np.int32]  # (PAIR_ROWS,): packed sum of the rows with codes up to a row's
    pair_scores: NDArray[np.float64]  # (PAIR_ROWS,)
    bucket_keys: NDArray[np.uint32]  # (2, most rows): code << 16 | row, of the rows that are put in order


class RandomScratch(NamedTuple):
    """For random tests. Life: node."""

    column: NDArray[np.int32]  # (n_rows,): codes of one feature
    values: NDArray[np.float64]  # (PAIR_ROWS,): the values behind them


class KeptSurrogates(NamedTuple):
    """Surrogates, behind each other as nodes are split, best first; each array (room,). Life: tree, enlarged."""

    node: NDArray[np.int64]
    test: NDArray[np.int64]  # as `common.layout` packs it, "missing" being 1 if its branches are swapped
    cut: NDArray[np.int64]  # last code of branch 0, or first word of two bitsets: levels of branch 0, levels it knows
    agree: NDArray[np.int64]  # weight that goes the same way as by the node's own test
    known: NDArray[np.int64]  # weight of the rows that the node's own test knows
    most: NDArray[np.int64]  # weight of its heavier branch
    cut_value: NDArray[np.float64]  # threshold, or first word of the bitsets


class ExtraScratch(NamedTuple):
    """For the gain ratio and for surrogates, which share one variant: both are asked for less often. Life: node."""

    ratio_gain: NDArray[np.float64]  # (n_features,): gain of the test that the k-th feature proposes, in score units
    ratio_information: NDArray[np.float64]  # (n_features,): its split information; 0: no test
    improve: NDArray[np.float64]  # (room of the nodes,): gain over the rows of known value; life: tree
    tally: NDArray[np.int64]  # (4, codes + 1): rows, known rows, their weight in branch 0 and 1; zero between uses
    agree: NDArray[np.int64]  # here and below (n_features,): weight that agrees with the node's test; 0: no surrogate
    agree_cut: NDArray[np.int64]  # last code of branch 0
    agree_next: NDArray[np.int64]  # next code of the node
    agree_reversed: NDArray[np.int64]  # 1: its branches are swapped
    kept: KeptSurrogates


class Scratch(NamedTuple):
    """Memory that kernels only write to pass it on. Life: node; `cells` are zero between uses, `permutation` sorted."""

    permutation: NDArray[np.int64]  # (n_features,): features in the order of the search
    places: NDArray[np.int64]  # (n_features,): where each was drawn from
    keys: NDArray[np.uint32]  # (2, most rows sorted) uint32 or uint64: code << bits | position
    counts: NDArray[np.int32]  # (MOST_BUCKETS,)
    cells: NDArray[np.int64]  # sums of a feature by code, or by code and class
    groups: NDArray[np.int64]  # (GROUP_ROWS, most codes): sums of the rows with one code
    totals: NDArray[np.int64]  # (TOTALS_SIZE,): sums of the node, and of its rows with a missing value
    moves: NDArray[np.int32]  # (2, n_rows): rows that change sides
    classes: ClassScratch | None
    levels: LevelScratch | None
    packed: PackedScratch | None
    random: RandomScratch | None
    extra: ExtraScratch | None


class OpenNode(NamedTuple):
    """The node under search: its rows, and what is known before its features are tried. Life: node."""

    lo: int  # rows lo .. hi
    hi: int
    list_lo: int  # first row of the sorted lists that cover them; -1: none do
    n_present: int  # classes that its rows have; 0 for moments
    centre: int  # near the mean target, taken off every target: scores are close to gains and lose no digits
    power: int  # sum of squared class weights, where labels are packed
    is_packed: bool  # labels have been packed
    lower: float  # bounds on the values of its branches
    upper: float
    test_key: np.uint64  # of random tests
    tie_key: np.uint64  # of ties broken at random


class Candidate(NamedTuple):
    """The better of what a search was given and what it found; `cut` tells which."""

    score: float
    cut: int  # last code (group, place) of the left branch; -1: nothing better was found
    following: int  # the next code that the node has; -1: the cut sets known rows against missing ones
    missing: int  # branch of missing rows; -1: the feature does not vary here (random tests)
    n_ties: int  # met so far; see `common.ties`
    threshold: float  # of a random test


class CutAtHand(NamedTuple):
    """A cut of three classes or more under trial: what lies left of it, missing rows apart."""

    code: int  # last code (group, place) of the left branch
    following: int
    is_last: bool  # known rows against missing ones
    n_left: int
    w_left: int
    power_left: int  # see `tree.scan_classes`
    power_right: int


class DrawnTest(NamedTuple):
    """A random test of a feature over the rows of a node, before it is judged. Life: node."""

    n_groups: int  # 2: it parts the known rows; 1: it sets them against the missing ones; 0: the feature does not vary
    cut: int  # last code of the left branch; of a category 1, as its rows are marked 1 (left) and 2
    threshold: float
    highest: int  # code of the node
    n_missing: int
    sign: int  # monotone constraint of the feature


class CodedRows(NamedTuple):
    """What `common.groups` reads of rows: any tuple with these fields serves."""

    codes: NDArray[np.uint16]  # (n_rows, any)
    labels: NDArray[np.int64]  # (1 .. 3, n_rows)


class SortedKeys(NamedTuple):
    """The rows of a node in the order of a feature's codes: keys[row, first:end]. Life: node."""

    keys: NDArray[np.uint32]  # (any, any) uint32 or uint64: code << bits | position
    row: int
    first: int
    end: int
    labels: NDArray[np.int64]  # labels[:, base + position] is the row's
    base: int


class CodeTest(NamedTuple):
    """What a node asks, in codes."""

    feature: int
    kind: int
    cut: int  # last code of branch 0, or first word of the subset
    missing: int  # branch of missing values


class Parts(NamedTuple):
    """A node whose rows were moved: lo .. middle branch 0, middle .. end branch 1, end .. hi missing."""

    node: int
    feature: int  # of its test
    lo: int
    middle: int
    end: int
    hi: int
    w_first: int  # weight of branch 0
    w_second: int  # weight of branch 1


class Targets(NamedTuple):
    """What leaves are summed up from: row i has target truth[ids[i]] and weight labels[WEIGHT, i]. Life: tree."""

    labels: NDArray[np.int64]
    ids: NDArray[np.int32]
    truth: NDArray[np.float64]


class RowRange(NamedTuple):
    """The rows lo .. hi of a leaf."""

    lo: int
    hi: int
    weight: int


class ValueUnits(NamedTuple):
    """How targets are summed: as weight * (target - centre) * stretch."""

    is_whole: bool  # weights are whole numbers
    centre: float
    stretch: float
    share: float  # turns fixed-point weights into at most 1 each, or into whole ones
    rough_scale: float  # of a sum of weights


class StatUnits(NamedTuple):
    """Scalars of `tree.node_stats`."""

    criterion: int
    n_features: int
    has_monotone: bool
    weight_unit: float  # worth of a unit of weight
    score_unit: float  # worth of a unit of a node's score, times its weight; three classes or more
    bound_unit: float  # worth of a unit of a monotone bound; here and below: regression only
    value_unit: float  # turns targets into the user's units in two steps, for its square may leave a float's range
    value_unit_2: float
    values: ValueUnits


class NodeSums(NamedTuple):
    """Scratch of `tree.node_stats`, each array (n_nodes,)."""

    weight: NDArray[np.int64]
    ones: NDArray[np.int64]  # weight of class 1 of two


class TreeArrays(NamedTuple):
    """A finished tree, written by `tree.node_stats`: fields of `tree.structure.Tree`, each (n_nodes,) unless said."""

    test: NDArray[np.uint32]
    first_child: NDArray[np.int32]
    n_rows: NDArray[np.uint32]
    threshold: NDArray[np.float64]
    weight: NDArray[np.float64]
    impurity: NDArray[np.float64]
    distributions: NDArray[np.float64]  # (room, n_classes): class weights of mixed leaves
    links: NDArray[np.uint64]  # (n_nodes, 2): `Tree.hot`
    cuts: NDArray[np.float64]  # the same memory as floats


class Order(NamedTuple):
    """The rows of a table by the codes of each feature, for stumps. Life: fit, but for `pairs`."""

    rows: NDArray[np.int32]  # (n_features, n_rows); the last row of each code as its complement, missing rows first
    n_missing: NDArray[np.int64]  # (n_features,)
    pairs: NDArray[np.int64]  # (n_rows, 2): target or class, weight; life: tree


class StumpScratch(NamedTuple):
    """Sums for a stump of numbers or two classes. Life: tree."""

    groups: NDArray[np.int64]  # (GROUP_ROWS, most codes)
    totals: NDArray[np.int64]  # (TOTALS_SIZE,)


class StumpClassScratch(NamedTuple):
    """Sums for a stump of three classes or more. Life: tree."""

    sums: NDArray[np.int64]  # (CLASS_ROWS, n_classes)
    totals: NDArray[np.int64]  # (TOTALS_SIZE,)
    n_present: int  # classes that have rows


class RootSplit(NamedTuple):
    """The best split of a stump so far."""

    score: float
    feature: int  # -1: none
    at: int  # place in the feature's order after which rows take branch 1
    missing: int  # branch of missing rows; -1: there are none


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


# --- Prediction -------------------------------------------------------------------------------------------------


class PackedTrees(NamedTuple):
    """Trees end to end, as prediction reads them. Life of the model; read only, shared by threads."""

    cuts: NDArray[np.float64]  # (n_nodes, 2); column 0: threshold, first word of a subset, or what a leaf says
    links: NDArray[np.uint64]  # (n_nodes, 2), the same memory; column 1: the link, see `layout`
    first_node: NDArray[np.int64]  # (n_trees,): the root of each tree
    subsets: NDArray[np.uint64]  # bitsets of levels
    first_word: NDArray[np.int64]  # (n_trees,): where the subsets of each tree begin


class PackedTree(NamedTuple):
    """One of those trees. Life of a call."""

    cuts: NDArray[np.float64]
    links: NDArray[np.uint64]
    subsets: NDArray[np.uint64]
    root: int  # its node among all
    first_word: int  # of its subsets


class LeafShares(NamedTuple):
    """Class shares of the mixed leaves of trees end to end. Life of the model; read only."""

    shares: NDArray[np.float64]  # (n_mixed, n_classes); one row of zeros where there are none
    first: NDArray[np.int64]  # (n_trees,): the first row of each tree


class LaneScratch(NamedTuple):
    """Scratch of one thread in `lanes`."""

    block: NDArray[Any]  # (any, n_features + 1), of the type of the values: rows on their way, and a column for leaves
    ends: NDArray[np.uint64]  # (LANES,): nodes where rows that go down together have arrived


class Descent(NamedTuple):
    """What LANES rows need on their way down one tree; made within `lanes`."""

    root: np.uint64
    first_word: np.uint64
    is_easy: bool  # no value of the block is missing, no test is a subset
    block: NDArray[Any]
    cuts: NDArray[np.float64]
    links: NDArray[np.uint64]
    subsets: NDArray[np.uint64]


class FloatTable(NamedTuple):
    """A table of values that is looked up by bits as well. Life of a call; read only."""

    values: NDArray[Any]  # float32 or float64
    bits: NDArray[Any]  # the same memory as signed integers of that size
    lowest: int  # of those integers


class BitTrees(NamedTuple):
    """Trees of few leaves as tests and bits, see `bits`. Life of the model; read only once laid out.

    A test has a line for each plane of leaves that it touches; the lines of a tree stand end to end.
    """

    first_line: NDArray[np.int64]  # (n_trees + 1,): where the lines of each tree begin, and the end
    column: NDArray[np.uint16]  # (n_lines,): place of the feature among those that are asked for
    missing: NDArray[np.uint16]  # (n_lines,): branch of missing values
    rank: NDArray[np.uint16]  # (n_lines,): of the threshold among those of its feature
    mask: NDArray[np.uint16]  # (n_lines,): leaves of the plane that stay for a row in branch 1
    plane: NDArray[np.uint16]  # (n_lines,)
    first_leaf: NDArray[np.int64]  # (n_trees + 1,): where the leaves of each tree begin, and the end
    leaf_values: NDArray[np.float64]  # (n_leaves,): from left to right


class LeafRanges(NamedTuple):
    """Leaves below each node, numbered from left to right in their tree. Scratch of laying out bits."""

    n_below: NDArray[np.int64]  # (n_nodes,)
    first_below: NDArray[np.int64]  # (n_nodes,)


class ScoreSpan(NamedTuple):
    """Rows and trees of one call of `bits.score`."""

    lo: int  # rows lo .. hi
    hi: int
    first_tree: int
    last_tree: int
    n_raw: int  # sums to which trees add values by turns; 0: each adds shares of classes


class BitScratch(NamedTuple):
    """Scratch of one thread in `bits`, but for the constants."""

    constants: NDArray[np.uint16]  # 0; all bits; 1; leaves of a plane; each bit of a place, and where it is set
    ranks: NDArray[np.uint16]  # (2 * n_columns, width): of values; then of those whose missing ones are above all
    live: NDArray[np.uint16]  # (planes, width): leaves that a row can still reach
    word: NDArray[np.uint16]  # (width,): the lowest of a row
    place: NDArray[np.uint16]  # (width,): its number


class AnyTree(NamedTuple):
    """A tree of any kind. Life of the model; read only."""

    test: NDArray[np.uint32]  # (n_nodes,)
    first_child: NDArray[np.int32]  # (n_nodes,)
    cut: NDArray[np.float64]  # (n_nodes,): `Tree.threshold`
    weight: NDArray[np.float64]  # (n_nodes,)
    n_branches: NDArray[np.int64]  # (n_nodes,)
    subsets: NDArray[np.uint64]


class SurrogateTests(NamedTuple):
    """The surrogate tests of a tree, node by node, best first. Life of the model; read only."""

    first: NDArray[np.int32]  # (n_nodes + 1,): where those of each node begin; (1,): the tree has none
    test: NDArray[np.uint32]  # (n,); branch of missing values 1: its branches are swapped
    cut: NDArray[np.float64]  # (n,)
    n_words: NDArray[np.int64]  # (n,): words of a bitset of levels; the levels that are known stand behind it


class LeafAnswers(NamedTuple):
    """What the leaves of a tree say. Life of a call; read only."""

    row_of: NDArray[np.int32]  # (n_nodes,): row of each leaf in `values`
    values: NDArray[np.float64]  # (n_leaves, width)


class OpenNodes(NamedTuple):
    """Nodes that a row has yet to visit in `any_tree`: scratch of one thread."""

    node: NDArray[np.int32]  # (most branches * depth + 1,)
    share: NDArray[np.float64]  # the same: of the row, that goes there


class ForestArrays(NamedTuple):
    """A forest as a file has it, with ends. Life of a check; read only."""

    cuts: NDArray[np.float64]  # as in `PackedTrees`
    links: NDArray[np.uint64]
    first_node: NDArray[np.int64]  # (n_trees + 1,), as are the next two; that they part the arrays has been checked
    first_word: NDArray[np.int64]
    first_mixed: NDArray[np.int64]
    n_levels: NDArray[np.int32]  # (n_features,), none negative
    distributions: NDArray[np.float64]  # (n_mixed, n_classes)


class ForestSums(NamedTuple):
    """What the nodes of a forest have counted. Life of a check; read only.

    Where there are two types the array of the other one is empty: one signature for all forests, so that no file waits
    for a compiler.
    """

    n_rows: NDArray[np.uint32]  # (n_nodes,); (0,): a compact forest, without any of these
    weights: NDArray[np.float64]  # (n_nodes,), or
    whole_weights: NDArray[np.uint32]
    impurities: NDArray[np.float64]  # (n_nodes,), or
    single_impurities: NDArray[np.float32]


class CheckTolerances(NamedTuple):
    """By how much sums of branches may differ from those of their node."""

    sums: float  # relative
    impurity: float  # relative to the largest of the tree


class CheckMarks(NamedTuple):
    """Scratch of a check: what has been met in the tree at hand."""

    is_child: NDArray[np.uint8]  # (nodes of the largest tree,)
    is_used: NDArray[np.uint8]  # (most mixed leaves of a tree,)


class Branching(NamedTuple):
    """A node and its branches; made within `validate`."""

    node: int
    first_child: int
    n_branches: int


class LinearTerms(NamedTuple):
    """Terms of the linear models of leaves, see `LinearLeaves`. Life of the model; read only."""

    first: NDArray[np.int64]  # (n_nodes + 1,): where the terms of each node begin
    feature: NDArray[np.int32]  # (n_terms,)
    coefficient: NDArray[np.float64]  # (n_terms,)
    fill: NDArray[np.float64]  # (n_terms,): what a missing value counts as


class AskedTest(NamedTuple):
    """The test of a node, unpacked; made within `permutation`."""

    feature: int
    kind: int
    cut: float  # threshold, or first word of the subset among all
    missing: int  # branch of missing values


class Permuted(NamedTuple):
    """Which features are permuted, and how. Life of a call; read only."""

    unit_of: NDArray[np.int32]  # (n_features,): unit of each feature; -1: it stays
    source: NDArray[np.int32]  # (n_units, n): the place that a place takes the unit's values from


class RouteChanges(NamedTuple):
    """Rows that a permuted unit parts from their path; written."""

    unit: NDArray[np.int32]  # (at least m * n_units,), m being the places of a call
    place: NDArray[np.int32]
    leaf: NDArray[np.int32]  # where they end


class RouteStack(NamedTuple):
    """Open nodes of `permutation.reroute`, with their places and walkers as ranges of lists. Scratch of one thread."""

    node: NDArray[np.int64]  # (at least the nodes of the tree + MOST_BRANCHES,), as are all
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    walk_lo: NDArray[np.int64]
    walk_hi: NDArray[np.int64]


class RouteScratch(NamedTuple):
    """Scratch of one thread in `permutation.reroute`."""

    places: NDArray[np.int32]  # (3, at least m + 1), a row for each branch; m being the places of a call
    walkers: NDArray[np.int64]  # (3, at least m * n_units + 1)
    has_parted: NDArray[np.uint8]  # (n_units, m), zeros at the beginning
    stack: RouteStack


class Members(NamedTuple):
    """The rows of every bag, by tree and leaf, repeated as often as drawn. Life of the model; read only."""

    ids: NDArray[np.int32]  # (n_members,): training rows
    first: NDArray[np.int64]  # (n_nodes + 1 of each tree, end to end): where each node's members begin
    offset: NDArray[np.int64]  # (n_trees + 1,): where each tree begins in `first`


class PlaceScratch(NamedTuple):
    """Scratch of one thread in `quantiles`."""

    sums: NDArray[np.float64]  # (n_rows,), zeros before and after a call: weights at places
    touched: NDArray[np.int32]  # (2, n_rows): places with a weight, and room to sort them
    buckets: NDArray[np.int64]  # (N_DIGITS,)


# --- Data -------------------------------------------------------------------------------------------------------


class BinCells(NamedTuple):
    """Where the bins of columns begin, and cells that find them without a search, see `binning`. Life of the bins.

    Python lays out `low`; `lay_cells` writes the rest.
    """

    low: NDArray[Any]  # (n_columns, any) of the type of the values: where bins begin, then NaN
    n_below: NDArray[np.uint16]  # (n_columns, n_cells): bins that begin in the cells below
    base: NDArray[Any]  # (n_columns,) as `low`: where cells of equal width begin
    scale: NDArray[Any]  # as `low`: cells per unit
    top: NDArray[Any]  # as `low`: the last cell
    base_bits: NDArray[np.int64]  # (n_columns,): where cells by bits begin
    shift: NDArray[np.int64]  # bits that do not matter to a cell; 0: cells are of equal width
    n_steps: NDArray[np.int64]  # halvings that find a bin from its cell


class ByteTable(NamedTuple):
    """A table in codes of one or two bytes. Life of the fit; read only once written."""

    rows: NDArray[np.uint8]  # (n_rows, stride)
    place: NDArray[np.int64]  # (n_columns,): first byte of each column in a row
    is_wide: NDArray[np.bool_]  # (n_columns,): whether it has two


class DrawStrata(NamedTuple):
    """What a bag is drawn from. Life of the ensemble; read only."""

    order: NDArray[np.int32]  # (n_units,): units that can be drawn, those of one stratum side by side
    begin: NDArray[np.int64]  # (n_strata + 1,): where each stratum begins in `order`
    n_drawn: NDArray[np.int64]  # (n_strata,): draws from each


class DrawGuide(NamedTuple):
    """How a place on the line of all weights leads to its unit. Life of the ensemble; read only."""

    line: NDArray[np.int64]  # (n_units + 1,): weight of the units before each place in `order`, and of all
    start: NDArray[np.int32]  # the place that holds `bucket << shift`
    shift: int  # a bucket is 2**shift wide


class PoissonRates(NamedTuple):
    """Poisson means of the units in small pieces; one entry if all are alike. Life of the ensemble; read only."""

    n_pieces: NDArray[np.int64]  # (n_units,)
    mean: NDArray[np.float64]  # (n_units,): of a piece
    none: NDArray[np.float64]  # (n_units,): exp(-mean), the chance that a piece is 0
