"""The state that kernels pass to each other: every NamedTuple, a comment per field.

A struct is what one owner makes and keeps for one time. A docstring ends with `Life: <word>; <who writes, who
enlarges>.` The words:

  fit      made once for a table, or for the bags of an ensemble; shared by threads
  model    kept with finished trees, as long as these are; shared by threads
  tree     made or reset for each tree that is grown, pruned or looked at
  node     no meaning between two nodes: scratch, or what functions say to each other about a node
  call     made for one call of a kernel, or for calls that go one after the other: no meaning behind it

Where a field lives for another time than its struct, its comment or docstring says so. Sums, weights and targets are
whole numbers of a unit that Python has chosen (fixed point) unless their type is float.

Python makes the structs (`tree/grow.py`, `tree/boost.py`, `tree/textbook.py`, `tree/predict.py`, ...); kernels write
into the arrays and never into the tuples. A struct that may be None as a whole selects a variant of the kernel at
compile time, so that a first fit compiles what it needs: it must reach the function that asks `is None` as an argument
of its own, since Numba drops dead branches for arguments, not for fields (docs/decisions/0001).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# --- Trees: CART, forests, extra-trees, stumps ------------------------------------------------------------------


class Settings(NamedTuple):
    """Scalars of one grow; weights and gains are in the units of the fixed-point sums. Life: tree; Python makes it."""

    criterion: int  # SQUARED_ERROR, GINI, ENTROPY, ...; Gini of two classes goes as SQUARED_ERROR
    n_classes: int  # at least 2, also for numbers
    missing: int  # LEARNED, OWN_BRANCH or SURROGATE
    order: int  # DEPTH_FIRST or BEST_FIRST
    max_depth: int  # of a leaf, the root's being 0
    max_leaves: int  # of the tree, with BEST_FIRST; unlimited with DEPTH_FIRST
    min_samples_split: int  # fewest rows of a node that is split
    min_samples_leaf: int  # fewest rows of a branch
    min_weight_leaf: int  # least weight of a branch
    n_try: int  # features drawn per node
    max_surrogates: int  # most surrogates of a node; 0: none are looked for
    is_centred: bool  # squared error of whole weights: targets are taken from the node's mean
    is_class: bool  # the target is a class, also where two classes go as moments
    is_unit: bool  # every weight is 1
    is_whole: bool  # every weight is a whole number and their sum is below 2**31, so squares of sums fit an int64
    is_plain: bool  # squared error, whole weights, no constraint, no random ties: the scan without bins serves
    is_packed: bool  # read by Python only, to make PackedScratch: classes, few features tried, small whole weights
    is_shuffled: bool  # features are searched in an order drawn for each node
    is_random: bool  # one random test per feature
    is_ratio: bool  # tests are chosen by their gain ratio
    has_monotone: bool  # some feature has a monotone constraint
    has_random_ties: bool  # equal scores: each of them with equal chance; else the first
    min_gain: float  # least gain of a split, in score units; -inf: any
    min_spread: float  # least standard deviation of a node that is split, in target units
    value_slack: float  # values of branches that differ by less count as equal for monotone constraints
    square_unit: float  # turns a sum of squares into squared target units
    seed: int  # of all draws of the tree
    most_words: int  # words of the largest subset: levels / 64, rounded up; 0: no categories
    most_listed: int  # largest node that sorted lists are made for; 0: none
    cat_penalty: float  # how much of what its levels gain by chance a subset must pay; 0: nothing
    cat_margin: float  # deviations of that chance by which a subset must gain more
    free_levels: int  # a category of no more levels in the whole table pays nothing
    row_weight: float  # units of weight of an independent row: 1 where weights are whole, for weight 2 is two rows
    noise_unit: float  # units of a target in 1: what squared targets are divided by before they are summed


class Table(NamedTuple):
    """What does not change while a tree grows.

    Life: tree; Python makes it, `edges` and `truth` are the fit's, kernels only read.
    """

    features: NDArray[np.int64]  # (FEATURE_ROWS + 1, n_features): number of codes, kind, ..., NUMBER; see `_types`
    edges: NDArray[np.float64]  # (2, n_values): lowest and highest value behind each code of each feature
    truth: NDArray[np.float64]  # (n_rows of the table,): targets by id, not moved with the rows
    xlogx: NDArray[np.int64]  # (total weight + 2,): k log2 k in fixed point; (1,): logarithms are computed


class Lists(NamedTuple):
    """Sorted lists of one subtree's rows, see `tree.sorted_lists`; `state` says which rows.

    Life: tree; kernels write them anew for each subtree that fits.
    """

    keys: NDArray[Any]  # (n_features, most) uint32 (moments) or uint64 (classes): code << bits | position, in order
    addends: NDArray[np.int64]  # (1 .. 3, most): addends by position
    place: NDArray[np.int32]  # (n_rows of the table,), or (1,) without lists: position of a row by its id
    branch: NDArray[np.uint8]  # (most,): the branch that a position takes in the split at hand


class Rows(NamedTuple):
    """The rows of a tree, moved in place so that those of a node are neighbours.

    Life: tree; Python fills it, kernels move the rows.
    """

    codes: NDArray[np.uint16]  # (n_rows, stride): codes of the features, padded to whole words, then bits; 0: missing
    words: NDArray[np.uint64]  # (n_rows, stride / 4): the same memory, eight bytes at a time
    addends: NDArray[np.int64]  # (1 .. 3, n_rows): TARGET, WEIGHT, SQUARE, as far as they are needed
    ids: NDArray[np.int32]  # (n_rows,): where a row stands in the table
    lists: Lists  # sorted lists of the subtree at hand
    ahead: NDArray[np.uint16]  # (n_rows, or 1: not wanted; a few): codes of the node at hand, see `tree.feature_order`
    ahead_of: NDArray[np.int64]  # (n_coded,): the column of `ahead` that holds a feature with codes; -1: none
    varying: NDArray[np.uint64]  # (words of bits,): flags that vary in the node at hand, see `tree.flags`
    cells: Cells | None  # None: every feature has its codes, or bits, in the rows


class SparseDraws(NamedTuple):
    """Draws of features of which few may vary, see `tree.sparse_draws`. Life: tree; kernels write all but `others`."""

    others: NDArray[np.uint64]  # (words,): places of features that are not sparse in the order of draws, as bits
    asked: NDArray[np.uint64]  # (words,): places of those that may vary in the node at hand
    ahead: NDArray[np.uint64]  # (64,): the places that draws swap with
    drawn: NDArray[np.int64]  # (3,): how many draws the node has made, features listed, and places moved
    listed: NDArray[np.int64]  # (n_features,): features that it has drawn, of those that may vary
    moved: NDArray[np.int64]  # (2, n_features): places of the permutation that were overwritten, what stood there


class ColumnCells(NamedTuple):
    """What a pass over a column of `Cells` takes: a call with all of them takes 0.1 microseconds. Life: call."""

    place: NDArray[np.int32]
    row: NDArray[np.int32]
    code: NDArray[np.uint16]
    at: NDArray[np.int32]
    found: NDArray[np.int32]


class RowCells(NamedTuple):
    """The same of a look at each row of a node."""

    row_begin: NDArray[np.int64]
    feature: NDArray[np.int32]
    row_code: NDArray[np.uint16]
    at: NDArray[np.int32]
    found: NDArray[np.int32]


class Cells(NamedTuple):
    """Codes of sparse features, which are not the usual one of their column, by column and by row; see `tree.cells`.

    Life: fit down to `row_code`, tree from `place` on, which kernels write.
    """

    first: int  # the sparse feature that comes first; features are numbered as in `Table`, sparse ones from 0 below
    begin: NDArray[np.int64]  # (n_sparse + 1,): where the cells of a column begin
    row: NDArray[np.int32]  # (n_cells,): their rows of the table, ascending
    code: NDArray[np.uint16]  # (n_cells,)
    usual: NDArray[np.uint16]  # (n_sparse,): the code of all other rows
    row_begin: NDArray[np.int64]  # (n_rows of the table + 1,): where the cells of a row begin
    feature: NDArray[np.int32]  # (n_cells,): their sparse features, ascending
    row_code: NDArray[np.uint16]  # (n_cells,)
    row_cost: int  # cells of a column that are looked through in the time that a row is
    most_marked: int  # rows of the largest node whose features are marked
    most_gathered: int  # rows of the largest node whose cells are put together by features
    place: NDArray[np.int32]  # (n_rows of the table,): where a row stands among those of the tree; -1: nowhere
    marks: NDArray[np.uint64]  # (words,): sparse features that may vary in the node at hand, as bits
    is_gathered: NDArray[np.int64]  # (1,): 1 while a node is searched whose cells are put together, in the next four
    n_of: NDArray[np.int32]  # (n_sparse,): cells of each feature in the node; 0 between nodes
    first_of: NDArray[np.int32]  # (n_sparse,): where they begin
    node_at: NDArray[np.int32]  # (room,): their rows, counted from the first one of the node
    node_code: NDArray[np.int32]  # (room,): their codes
    draws: SparseDraws
    whole: NDArray[np.uint16]  # (n_rows, 1): every code of one feature, of the node at hand
    at: NDArray[np.int32]  # (n_rows + 1,): cells of one feature in a node: their rows, counted from its first one
    found: NDArray[np.int32]  # (n_rows + 1,): their codes
    wide: NDArray[np.int64]  # (n_rows + 1,): what they add, as in `PackedScratch`, and what all other rows do
    addends: NDArray[np.int32]  # (n_rows + 1,): the same of three classes or more


class Nodes(NamedTuple):
    """The nodes of a tree under way, each array (room,) but the last. Life: tree; kernels write, Python enlarges."""

    test: NDArray[np.int64]  # as `common.node_layout` packs it; 0: a leaf
    first_child: NDArray[np.int64]  # 0: a leaf
    begin: NDArray[np.int64]  # first row
    n_rows: NDArray[np.int64]  # rows
    cut_value: NDArray[np.float64]  # threshold (see `tree.late_thresholds`), or first word of a subset
    score: NDArray[np.float64]  # of its rows, see `common.criteria`; meaningless if it was not searched
    lower: NDArray[np.float64]  # least value that monotone constraints above allow, in units of the sums; (1,): none
    upper: NDArray[np.float64]  # greatest value that they allow
    subsets: NDArray[np.uint64]  # (words,): subsets of levels, behind each other; see `common.packed_levels`


class TopTests(NamedTuple):
    """The tests of the top of a tree, each array (n_nodes,) but the last; see `tree.levels`.

    Life: pass; Python makes it.
    """

    feature: NDArray[np.int64]  # that is asked for
    kind: NDArray[np.int64]  # THRESHOLD or SUBSET
    cut: NDArray[np.int64]  # last code of branch 0, or first word of the subset
    missing: NDArray[np.int64]  # branch of missing values
    first_child: NDArray[np.int64]  # 0: rows stay here
    subsets: NDArray[np.uint64]  # (words,): as in Nodes


class TopRows(NamedTuple):
    """The rows of a part that are in the bag of a tree, those of one node side by side. Life: part; Python makes it."""

    codes: NDArray[np.uint16]  # (n_rows of the part, stride)
    rows: NDArray[np.int32]  # (n,): which rows of the part they are
    addends: NDArray[np.int64]  # (1 or 2, n): TARGET, WEIGHT


class Children(NamedTuple):
    """The branches of the split just carried out, each array (MOST_BRANCHES,). Life: node; kernels write."""

    begin: NDArray[np.int64]  # first row
    end: NDArray[np.int64]  # behind its last row
    weight: NDArray[np.int64]  # of its rows, where that is noted, see `tree.branch_sums`
    total: NDArray[np.int64]  # the same of class 1
    lower: NDArray[np.float64]  # least value that monotone constraints allow, as in Nodes
    upper: NDArray[np.float64]  # greatest value that they allow


class Frontier(NamedTuple):
    """Open nodes, each in a slot; arrays are (n_slots,) unless said.

    Life: tree; kernels write, Python enlarges the arrays of slots.
    """

    queue: NDArray[np.int64]  # slots in the order of `common.queue`; the first state[N_QUEUED] count
    free: NDArray[np.int64]  # slots that hold nothing; the first state[N_FREE] count
    node: NDArray[np.int64]  # number of the node in a slot
    depth: NDArray[np.int64]  # of the node, the root's being 0
    key: NDArray[np.int64]  # of the node's random draws
    feature: NDArray[np.int64]  # here and below: the best test, once the node has been searched
    kind: NDArray[np.int64]  # THRESHOLD or SUBSET
    cut: NDArray[np.int64]  # last code of branch 0, or first word of the subset; -1: not searched yet
    missing: NDArray[np.int64]  # branch of missing values; -1: the node has none
    n_branches: NDArray[np.int64]  # 2 or 3
    constant: NDArray[np.int64]  # bits of features, of the first 64, that are known not to vary in the node
    weight: NDArray[np.int64]  # of the node, where that is noted, see `tree.branch_sums`
    total: NDArray[np.int64]  # the same of class 1
    gain: NDArray[np.float64]  # of the test, in score units, rounded to float32; inf: not searched yet
    cut_value: NDArray[np.float64]  # as in Nodes; while the search is on, the code after the cut
    lower: NDArray[np.float64]  # least value of the node by monotone constraints, as in Nodes
    upper: NDArray[np.float64]  # greatest value
    state: NDArray[np.int64]  # (STATE_SIZE,): N_NODES, N_QUEUED, ...: counters of the driver
    control: NDArray[np.int64]  # (CONTROL_SIZE,): asked to stop, rows done; shared by the trees of a forest
    children: Children  # of the split just carried out


class SubsetScratch(NamedTuple):
    """For all subsets of up to n = EXHAUSTIVE_LEVELS levels, with three classes or more. Life: node; kernels write."""

    products: NDArray[np.int64]  # (n, n + 1): of the class weights of two levels; last, of a level and the node
    cross: NDArray[np.int64]  # (2**(n - 1),): products of subsets and a level, see `tree.class_levels`
    squares: NDArray[np.int64]  # (2**(n - 1),): sums of squared class weights
    with_node: NDArray[np.int64]  # (2**(n - 1),): products with the node
    weights: NDArray[np.int64]  # (2**(n - 1),)
    scores: NDArray[np.float64]  # (2**(n - 1),)
    roots: NDArray[np.float64]  # (2**(n - 1),): sums of sqrt(weight) over levels
    most: NDArray[np.float64]  # (2**(n - 1),): what scores less luck are at most


class ClassScratch(NamedTuple):
    """For three classes or more; None: moments (numbers, two classes). Life: node; kernels write."""

    sums: NDArray[np.int64]  # (CLASS_ROWS, n_classes): ALL, LEFT, RIGHT, MISSING, PRESENT, RANK, HELD
    vectors: NDArray[np.float64]  # (3, n_classes): mean shares, direction, next direction
    shares: NDArray[np.float64]  # (most levels * n_classes,): see `tree.components`
    matrix: NDArray[np.float64]  # (2, n, n), n <= MOST_SQUARED: covariance of shares, and its square
    subsets: SubsetScratch


class LevelScratch(NamedTuple):
    """For tables with categories; None: there are none. Life: node; kernels write."""

    bitset: NDArray[np.uint64]  # (2 * most_words,): the subset that was found; the second half is for random tests
    scores: NDArray[np.float64]  # (most codes,): what levels are ordered by
    ranked: NDArray[np.float64]  # (most codes,): the same in their order, see `tree.level_means`
    order: NDArray[np.int32]  # (most codes,): places of levels in that order
    place: NDArray[np.int32]  # (most codes + 1,): place of a level among those of the node, by code


class PackedScratch(NamedTuple):
    """For the searches of forests, where a row's addend fits 32 bits; None: addends are not packed.

    Most rows: those of the tree, 65,535 (MAX_CODES) at most; larger nodes are not packed.
    Life: node; kernels write.
    """

    addends: NDArray[np.int32]  # (most rows + PAIR_LANES,): weight << 16 | weight of class 1, or RANK << 16 | weight
    wide: NDArray[np.int64]  # (most rows,): weight << 32 | weight of class 1; of three classes or more nothing
    column: NDArray[np.int32]  # (most rows + PAIR_LANES,): codes of one feature
    pair_sums: NDArray[np.int32]  # (PAIR_ROWS,): packed sum of the rows with codes up to a row's
    pair_scores: NDArray[np.float64]  # (PAIR_ROWS,): score of the cut behind a row's code
    bucket_keys: NDArray[np.uint32]  # (2, most rows + PAIR_LANES): code << 16 | row of rows to be sorted, and room


class RandomScratch(NamedTuple):
    """For random tests; None: there are none. Life: node; kernels write."""

    column: NDArray[np.int32]  # (n_rows, PAIR_ROWS at least): codes of one feature
    values: NDArray[np.float64]  # (PAIR_ROWS,): the values behind them
    padded: NDArray[np.int64]  # (2, PAIR_ROWS): target and weight of the rows of a small node, see `tree.small_tests`


class SubtreeScratch(NamedTuple):
    """For subtrees of few rows, see `tree.small_subtrees`; None: nodes of any size go through the queue.

    Their rows are PAIR_ROWS at most. A lane holds a feature; there are as many as features, or a few more.
    `order`, `stack` and, where nodes share them, `values` last as long as the subtree. Life: node; kernels write.
    """

    order: NDArray[np.uint64]  # (rows,): places of the rows, those of a node side by side
    stack: NDArray[np.int64]  # (3, rows): open nodes: number, depth, key
    places: NDArray[np.uint64]  # (rows,): of the node at hand
    at: NDArray[np.uint64]  # (rows,): where `values` holds the same rows
    addends: NDArray[np.int64]  # (1 or 2, rows): of the same rows
    values: NDArray[np.float64]  # (rows, lanes)
    low: NDArray[np.float64]  # (lanes,): lowest value of the rows of the node at hand
    high: NDArray[np.float64]  # (lanes,): highest one
    tried: NDArray[np.uint64]  # here and below (lanes,): features that are tried, in the order of the search
    lanes: NDArray[np.uint64]  # that hold them
    thresholds: NDArray[np.float64]  # that were drawn for them
    scores: NDArray[np.float64]  # of these tests
    members: NDArray[np.uint64]  # (n_classes,): the rows of the node that have a class, as bits


class RowBits(NamedTuple):
    """For subtrees of few rows of classes, see `tree.bit_subtrees`; None: nodes go through the queue, or another way.

    Their rows are PAIR_ROWS at most, each a bit of a word. All but the values and levels of a feature, and what the
    node at hand has of the classes, last as long as the subtree. Life: node; kernels write.
    """

    order: NDArray[np.uint64]  # (rows,): places of the rows, those of a node side by side
    stack: NDArray[np.int64]  # (5, rows): open nodes: number, depth, key, rows, features that do not vary
    places: NDArray[np.uint64]  # (rows,): of the node at hand, and the last again
    targets: NDArray[np.uint64]  # (rows,): class of each place
    members: NDArray[np.uint64]  # (n_classes,): the rows of each class
    present: NDArray[np.uint64]  # (rows,): rows of the node, a word for each class that it has
    codes: NDArray[np.uint64]  # (rows,): levels of the category at hand
    values: NDArray[np.float64]  # (rows,): values of the number at hand


class FourTests(NamedTuple):
    """For random tests that are judged four at a time, see `tree.four_tests`; None: one after the other.

    Life: node; kernels write.
    """

    words: NDArray[np.uint64]  # (n_rows, MAX_CODES at most): four counts of a row, 1 where it goes left
    counts: NDArray[np.uint64]  # (n_classes,): the sums of these words
    number: NDArray[np.int64]  # (n_features,): of the feature's test among those below; -1: none; -2: it does not vary
    scores: NDArray[np.float64]  # here and below (n_features,): of both branches together
    cuts: NDArray[np.int64]  # last code on the left
    thresholds: NDArray[np.float64]  # of a number
    draws: NDArray[np.uint64]  # number of the draw that has parted the levels of a category


class RateScratch(NamedTuple):
    """For Poisson's deviance, see `tree.rates`; None: another criterion. Life: node; kernels write."""

    unit: NDArray[np.float64]  # (1,): the mean of the node, or near it, in units of the sums


class MedianScratch(NamedTuple):
    """For the absolute error, see `tree.medians`; None: another criterion. Life: node; kernels write.

    A place is that of a row among the targets of its node in ascending order, from 1 on.
    """

    ranks: NDArray[np.int32]  # (rows of the table,): of the targets; life: tree, kernels read
    keys: NDArray[np.uint64]  # (2, n_rows): rank << 32 | position of the rows to be sorted, and room
    place: NDArray[np.int32]  # (n_rows,): by the position of a row in its node
    listed: NDArray[np.int32]  # (rows of the sorted lists,): place by the position in the lists
    row: NDArray[np.int32]  # (n_rows,): position of the row at place k + 1
    value: NDArray[np.int64]  # here and below (n_rows + 2,), by place: addend of the target
    weight: NDArray[np.int64]  # addend of the weight
    level: NDArray[np.int64]  # target of a unit of weight, where weights are whole
    before: NDArray[np.int32]  # the place before, of those that are left
    after: NDArray[np.int32]  # the place after
    order: NDArray[np.int32]  # (n_rows,): places in the order of a feature, missing rows first
    errors: NDArray[np.float64]  # (4, most codes, at least 2): sums of absolute deviations of branches, by cut
    middles: NDArray[np.float64]  # the same of their medians, where constraints ask for them
    start: NDArray[np.int64]  # (3,): place of the node's median, weight and sum up to it
    whole: NDArray[np.float64]  # (1,): sum of absolute deviations of the node
    blur: NDArray[np.float64]  # (1,): rounding of the node's scores by fractional weights


class TimeScratch(NamedTuple):
    """For times until an event, see `tree.scan_logrank`; None: other targets. Life: node; kernels write.

    A code is the number of the table's times of events up to the time of a row, 0 .. n; an event comes at the last of
    these. A place is the same among the times of the node's events.
    """

    code: NDArray[np.int64]  # (rows of the table,); kernels read
    events: NDArray[np.int64]  # (n + 1,): weight of the node's events by code
    leaving: NDArray[np.int64]  # (n + 1,): weight of the node's rows by code
    place: NDArray[np.int64]  # (n + 1,): by code
    died: NDArray[np.int64]  # (n + 1,): weight of events at the k-th time of the node
    risk: NDArray[np.int64]  # (n + 1,): weight of the rows at risk then
    left: NDArray[np.int64]  # (2, n + 1): weight of the rows on the left by place, and of their events by time
    missing: NDArray[np.int64]  # the same of missing ones
    hazard: NDArray[np.float64]  # (n + 1,): cumulative hazard of the node by place
    n_times: NDArray[np.int64]  # (1,): times of the node
    unit: int  # weight of a row of weight 1; 0: weights are not whole
    scale: float  # of residuals, whose sums are whole numbers


class OutputScratch(NamedTuple):
    """For several outputs, see `tree.scan_outputs`; None: one. Life: node; kernels write."""

    sums: NDArray[np.int64]  # (4, n_columns): of the node, of known rows on the left, of missing ones; centres
    place: NDArray[np.int32]  # (n_rows,): 0, 1, 2, ...: the places of `common.bins` are positions here
    order: NDArray[np.int32]  # (n_rows,): positions in the order of a feature, missing rows first
    errors: NDArray[np.float64]  # (4, most codes, at least 2): minus the scores of branches, by cut
    middles: NDArray[np.float64]  # of the same shape, not used: there are no constraints
    whole: NDArray[np.float64]  # (1,): minus the score of the node
    blur: NDArray[np.float64]  # (1,): rounding of the node's scores by fractional weights
    n_entropies: int  # outputs whose entropies are added up, each of several columns; 0: squared errors are
    xlogx: NDArray[np.int64]  # as `Table.xlogx`, for entropies
    times: TimeScratch | None  # None: numbers or classes


class KeptSurrogates(NamedTuple):
    """Surrogates, behind each other as nodes are split, best first; each array (room,).

    Life: tree; kernels write, Python enlarges.
    """

    node: NDArray[np.int64]  # whose test it stands in for
    test: NDArray[np.int64]  # as `common.node_layout` packs it, "missing" being 1 if its branches are swapped
    cut: NDArray[np.int64]  # last code of branch 0, or first word of two bitsets: levels of branch 0, levels it knows
    agree: NDArray[np.int64]  # weight that goes the same way as by the node's own test
    known: NDArray[np.int64]  # weight of the rows that the node's own test knows
    most: NDArray[np.int64]  # weight of its heavier branch
    cut_value: NDArray[np.float64]  # threshold, or first word of the bitsets


class ExtraScratch(NamedTuple):
    """For the gain ratio and for surrogates, which share one variant: both are asked for less often.

    `improve` and `kept` last as long as the tree, and Python enlarges them.
    Life: node; kernels write.
    """

    ratio_gain: NDArray[np.float64]  # (n_features,): gain of the test that the k-th feature proposes, in score units
    ratio_information: NDArray[np.float64]  # (n_features,): its split information * weight, in score units; 0: no test
    improve: NDArray[np.float64]  # (room of the nodes,): gain over the rows of known value; life: tree
    tally: NDArray[np.int64]  # (4, most codes + 1): rows, known rows, their weight in branch 0 and 1; zero between uses
    agree: NDArray[np.int64]  # here and below (n_features,): weight that agrees with the node's test; 0: no surrogate
    agree_cut: NDArray[np.int64]  # last code of branch 0
    agree_next: NDArray[np.int64]  # next code of the node
    agree_reversed: NDArray[np.int64]  # 1: its branches are swapped
    kept: KeptSurrogates  # the surrogates of all nodes so far


class GivenSums(NamedTuple):
    """Sums of a node whose rows are elsewhere, see `tree.levels`; None: its rows are at hand.

    Of numbers and two classes a code has its rows, the sum of its targets and, unless all weights are 1, its weight; of
    more classes the weight of each, and its rows.
    Life: node; Python makes it.
    """

    first: NDArray[np.int64]  # (n_features,): where the sums of a feature begin; -1: they are not there
    sums: NDArray[np.int64]  # by code from 0 (missing) on, feature after feature
    totals: NDArray[np.int64]  # (3,): weight and sum of the node's targets, and the sum of their squares if asked for
    classes: NDArray[np.int64]  # (n_classes,): weight of each class, of three or more
    lacking: NDArray[np.int64]  # (1,): written: a feature that the search had no sums of; -1: none


class Scratch(NamedTuple):
    """Memory that kernels only write to pass it on; `histogram` is zero between uses, `permutation` is sorted.

    Life: node; kernels write.
    """

    permutation: NDArray[np.int64]  # (n_features,): features in the order of the search
    places: NDArray[np.int64]  # (n_features,): where each was drawn from
    keys: NDArray[Any]  # (2, most rows sorted) uint32 (moments) or uint64 (classes): code << bits | position, and room
    counts: NDArray[np.int32]  # (MOST_BUCKETS,): of counting sorts, and of buckets of codes
    histogram: NDArray[np.int64]  # (at most (codes + 1) * (2, 4 or n_classes + 1),): sums by code, or by code and class
    bins: NDArray[np.int64]  # (BIN_ROWS, most codes, at least 2): sums of the rows with one code
    totals: NDArray[np.int64]  # (TOTALS_SIZE,): sums of the node, and of its rows with a missing value
    moves: NDArray[np.int32]  # (n_rows up to a multiple of 64, and 64 more): rows to be swapped, see `tree.partition`
    sides: NDArray[np.uint64]  # (n_rows / 64,): a bit for each row, set where it belongs behind
    classes: ClassScratch | None  # None: numbers or two classes
    levels: LevelScratch | None  # None: no categories
    packed: PackedScratch | None  # None: addends are not packed
    random: RandomScratch | None  # None: no random tests
    subtrees: SubtreeScratch | None  # None: small nodes are searched one by one, or as bits
    bits: RowBits | None  # None: small nodes are searched one by one, or in lanes
    fours: FourTests | None  # None: random tests are judged one after the other
    extra: ExtraScratch | None  # None: neither gain ratio nor surrogates
    rates: RateScratch | None  # None: not Poisson's deviance
    medians: MedianScratch | None  # None: not the absolute error
    outputs: OutputScratch | None  # None: one output
    given: GivenSums | None  # None: rows are at hand


class GivenTest(NamedTuple):
    """A random test, and the sums that it is judged by. Life: node; kernels make it."""

    drawn: DrawnTest
    n_codes: int  # known ones of the feature that the node has
    first: int  # where the sums of the feature begin
    sums: NDArray[np.int64]  # as in GivenSums


class CodeSums(NamedTuple):
    """What some rows add up to. Life: node; kernels make it."""

    n_rows: int
    weight: int


class OpenNode(NamedTuple):
    """The node under search: its rows, and what is known before its features are tried.

    Life: node; `open_node` makes it, of stumps `open_rows`.
    """

    lo: int  # its rows are lo .. hi
    hi: int  # behind its last row
    list_lo: int  # first row of the sorted lists that cover them; -1: none do
    n_present: int  # classes that its rows have; 0 for moments
    centre: int  # near the mean target, taken off every target: scores are close to gains and lose no digits
    power: int  # sum of squared class weights, where addends are packed
    is_packed: bool  # addends have been packed
    lower: float  # least value of its branches by monotone constraints
    upper: float  # greatest value
    test_key: np.uint64  # of random tests
    tie_key: np.uint64  # of ties broken at random


class Candidate(NamedTuple):
    """The better of what a search was given and what it found; `cut` tells which. Life: node; each scan makes one."""

    score: float  # of both branches together, see `common.criteria`
    cut: int  # last code (bin, place) of the left branch; -1: nothing better was found
    following: int  # the next code that the node has; -1: the cut sets known rows against missing ones
    missing: int  # branch of missing rows; -1: the feature does not vary here (random tests)
    n_ties: int  # met so far; see `common.ties`
    threshold: float  # of a random test, as a value; inf for others


class Chance(NamedTuple):
    """What levels gain by chance, see `common.category_chance`. Life: node; a scan of a category makes it."""

    noise: float  # what a unit of luck is worth, in units of the score; 0: luck is not asked for
    roots: float  # sum of sqrt(weight) over the levels
    few: float  # 0: levels have many rows; 1: they have one or next to none
    floor: float  # score of the node: a cut that may be luck must exceed it ...
    margin: float  # ... by so many deviations of what luck gains


class LeastLuck(NamedTuple):
    """What a cut of levels gains by chance at least, see `least_luck` of `common.category_chance`.

    Life: node; a scan of a category makes it.
    """

    first: float  # times the product of the roots on either side
    second: float  # times its square


class BinWalk(NamedTuple):
    """The bins that a scan of moments walks. Life: node; whoever calls the scan makes it."""

    n_bins: int  # how many
    sign: int  # monotone constraint of the feature: -1, 0 or 1
    chance: Chance  # of a category; see `no_chance`


class CutAtHand(NamedTuple):
    """A cut of three classes or more under trial: what lies left of it, missing rows apart.

    Life: node; a scan makes one for each cut.
    """

    code: int  # last code (bin, place) of the left branch
    following: int  # the next code that the node has; -1: none, or it is not asked for
    is_last: bool  # known rows against missing ones
    n_left: int  # rows left of it
    w_left: int  # their weight, in units of the sums
    power_left: int  # sum of f over the classes left of it, see `tree.scan_classes`
    power_right: int  # sum of f over the classes right of it, missing rows included
    roots: float  # sum of sqrt(weight) over the levels left of it, see `common.category_chance`; 0: a number


class DrawnTest(NamedTuple):
    """A random test of a feature over the rows of a node, before it is judged. Life: node; `draw_test` makes it."""

    n_bins: int  # 2: it parts the known rows; 1: it sets them against the missing ones; 0: the feature does not vary
    cut: int  # last code of the left branch; of a category 1, as its rows are marked 1 (left) and 2
    threshold: float  # as a value; inf: known rows against missing ones, or a category
    highest: int  # highest code of the node; 0: none is known, or it is not needed
    n_missing: int  # rows with a missing value
    sign: int  # monotone constraint of the feature: -1, 0 or 1


class DrawnCells(NamedTuple):
    """A random test of a sparse feature whose cells have been listed. Life: node; `try_cell_test` makes it."""

    n_cells: int
    cut: int  # last code on the left
    is_usual_left: bool  # whether rows without a cell go there
    sign: int  # of the feature's monotone constraint
    at: NDArray[np.int32]  # (room,): see `Cells`
    found: NDArray[np.int32]  # (room,)


class SmallTest(NamedTuple):
    """The best test of a node of few rows. Life: node; `search_few` makes it."""

    feature: int  # -1: none varies
    side: np.uint64  # a bit for each row of the node, set if it goes left
    threshold: float
    score: float  # of both branches together


class BitNode(NamedTuple):
    """A node of few rows, each a bit. Life: node; `finish_bits` makes it."""

    lo: int  # first row of the subtree
    n: np.uint64  # rows
    n_places: np.uint64  # of RowBits.places
    rows: np.uint64  # the rows as bits
    n_present: int  # classes, of three or more
    total: int  # rows of class 1, of two classes
    bound: float  # a score that no test can exceed
    test_key: np.uint64  # of the tests that are drawn


class BitTest(NamedTuple):
    """A test of a node of few rows. Life: node; kernels make it."""

    feature: int  # -1: none varies
    left: np.uint64  # rows that go left
    missing: int  # branch of those without a value; -1: there are none
    threshold: float  # of a number
    draw: np.uint64  # number of the draw that parted the levels of a category; all bits: every level goes left
    score: float  # of both branches together


class CodedRows(NamedTuple):
    """What `common.bins` reads of rows: any tuple with these fields serves. Life: node; a scan makes it."""

    codes: NDArray[np.uint16]  # (n_rows, any): codes; 0: missing
    addends: NDArray[np.int64]  # (1 .. 3, n_rows): TARGET, WEIGHT, SQUARE, as far as they are needed


class SortedKeys(NamedTuple):
    """The rows of a node in the order of a feature's codes: keys[row, first:end]. Life: node; a scan makes it."""

    keys: NDArray[Any]  # (any, any) uint32 or uint64: code << bits | position
    row: int  # the row of `keys` that holds them
    first: int  # its first key there
    end: int  # behind its last key
    addends: NDArray[np.int64]  # (1 .. 3, any): addends[:, base + position] is the row's
    base: int  # what positions are counted from in `addends`


class CodeTest(NamedTuple):
    """What a node asks, in codes. Life: node; kernels make it."""

    feature: int  # that is asked for
    kind: int  # THRESHOLD or SUBSET
    cut: int  # last code of branch 0, or first word of the subset
    missing: int  # branch of missing values
    n_codes: int  # of the feature, beside that of missing values


class Parts(NamedTuple):
    """A node whose rows were moved: lo .. middle branch 0, middle .. end branch 1, end .. hi missing.

    Life: node; `expand` makes it.
    """

    node: int  # number of the node
    feature: int  # of its test
    lo: int  # first row, of branch 0
    middle: int  # first row of branch 1
    end: int  # first row with a missing value
    hi: int  # behind the last row
    w_first: int  # weight of branch 0, in units of the sums
    w_second: int  # weight of branch 1


class Targets(NamedTuple):
    """What leaves are summed up from: row i has target truth[ids[i]] and weight addends[WEIGHT, i].

    A textbook tree has entries in the place of rows.
    Life: tree; whoever sums up makes it, kernels only read.
    """

    addends: NDArray[np.int64]  # (1 .. 3, n_rows): TARGET, WEIGHT, SQUARE; one row: every weight is 1
    ids: NDArray[np.int32]  # (n_rows,): where a row stands in the table
    truth: NDArray[np.float64]  # (n_rows of the table,): targets, or classes as numbers


class RowRange(NamedTuple):
    """The rows lo .. hi of a leaf. Life: node; kernels make it."""

    lo: int  # first row
    hi: int  # behind the last row
    weight: int  # of these rows, in units of the sums


class ValueUnits(NamedTuple):
    """How targets are summed: as weight * (target - centre) * stretch.

    `TextbookUnits` has these fields too, and takes its place.
    Life: tree; Python makes it.
    """

    is_whole: bool  # weights are whole numbers
    centre: float  # what is taken off every target, in units of `truth`
    stretch: float  # power of two that brings targets near 1
    share: float  # turns fixed-point weights into at most 1 each, or into whole ones
    rough_scale: float  # units in 1 of a first sum of magnitudes, which says how fine the next may be


class StatUnits(NamedTuple):
    """Scalars of `tree.node_stats`. Life: tree; Python makes it."""

    criterion: int  # SQUARED_ERROR, GINI, ENTROPY, ...: that of the user
    n_features: int  # what the link of a leaf asks for, see `common.node_layout`
    has_monotone: bool  # leaves of numbers are kept within their bounds
    weight_unit: float  # worth of a unit of weight
    score_unit: float  # worth of a unit of a node's score, times its weight; three classes or more
    bound_unit: float  # worth of a unit of a monotone bound; here and below: regression only
    value_unit: float  # turns targets into the user's units in two steps, for its square may leave a float's range
    value_unit_2: float  # the second step
    values: ValueUnits  # how targets are summed
    scale: float  # units in 1 of the sums that values of leaves are taken from; 0: the rows at hand are all of the tree


class NodeSums(NamedTuple):
    """Scratch of `tree.node_stats`, each array (n_nodes,), in units of the fixed-point sums.

    Life: tree; kernels write.
    """

    weight: NDArray[np.int64]  # of the rows
    ones: NDArray[np.int64]  # weight of class 1 of two


class NodeMedians(NamedTuple):
    """What `tree.node_stats` needs for trees by the absolute error; None: by another criterion.

    Life: tree; kernels write.
    """

    ranks: NDArray[np.int32]  # as in MedianScratch
    keys: NDArray[np.uint64]  # as in MedianScratch
    counts: NDArray[np.int32]  # (MOST_BUCKETS,): of counting sorts
    answers: NDArray[np.float64]  # (n_nodes,): median of each node, in the user's units


class NodeOutputs(NamedTuple):
    """What `tree.node_stats` needs for trees of several outputs; None: of one. Life: tree; kernels write."""

    truth: NDArray[np.float64]  # (n_outputs, rows of the table): as `Target.truth` of one
    answers: NDArray[np.float64]  # (n_nodes, n_outputs): means, in the user's units


class NodeSide(NamedTuple):
    """What trees whose nodes do not follow from their leaves need besides. Life: tree; kernels write."""

    medians: NodeMedians | None  # None: not by the absolute error
    outputs: NodeOutputs | None  # None: one output


class TreeArrays(NamedTuple):
    """A finished tree: fields of `tree.structure.Tree`, each (n_nodes,) unless said.

    Life: tree; `tree.node_stats` writes, Python enlarges `distributions`.
    """

    test: NDArray[np.uint32]  # as `common.node_layout` packs it; 0: a leaf
    first_child: NDArray[np.int32]  # 0: a leaf
    n_rows: NDArray[np.uint32]  # training rows
    threshold: NDArray[np.float64]  # or first word of a subset; of a leaf value, class or -1 - row in `distributions`
    weight: NDArray[np.float64]  # of the rows, in the user's units
    impurity: NDArray[np.float64]  # by the user's criterion, in units of 2 ** `Tree.impurity_exponent`
    distributions: NDArray[np.float64]  # (room, n_classes): class weights of mixed leaves
    links: NDArray[np.uint64]  # (n_nodes, 2): `Tree.hot`; column 1 is the link
    cuts: NDArray[np.float64]  # (n_nodes, 2): the same memory as floats; column 0 is `threshold`


class Order(NamedTuple):
    """The rows of a table by the codes of each feature, for stumps; `pairs` are made anew for each tree.

    Life: fit; Python makes it.
    """

    rows: NDArray[np.int32]  # (n_features, n_rows); the last row of each code as its complement, missing rows first
    n_missing: NDArray[np.int64]  # (n_features,): rows with a missing value
    pairs: NDArray[np.int64]  # (n_rows, 2): target or class, weight; life: tree; (0, 2) until a tree is begun


class StumpScratch(NamedTuple):
    """Sums for a stump of numbers or two classes. Life: tree; kernels write."""

    bins: NDArray[np.int64]  # (BIN_ROWS, most codes): sums of the rows with one code
    totals: NDArray[np.int64]  # (TOTALS_SIZE,): sums of all rows, and of those with a missing value


class StumpClassScratch(NamedTuple):
    """Sums for a stump of three classes or more. Life: tree; kernels write."""

    sums: NDArray[np.int64]  # (CLASS_ROWS, n_classes): ALL, LEFT, RIGHT, MISSING, PRESENT
    totals: NDArray[np.int64]  # (TOTALS_SIZE,): sums of all rows, and of those with a missing value
    n_present: int  # classes that have rows


class RootSplit(NamedTuple):
    """The best split of a stump so far. Life: tree; each search makes one."""

    score: float  # of both branches together, see `common.criteria`
    feature: int  # -1: none
    at: int  # place in the feature's order after which rows take branch 1
    missing: int  # branch of missing rows; -1: there are none


# --- Boosting ---------------------------------------------------------------------------------------------------


class ByteRows(NamedTuple):
    """Rows of bytes: those of the table, or of the buffer.

    Of the table codes and ids last as long as the fit, but for bins that are made anew for each tree.
    Life: tree; kernels write, Python enlarges the buffer where rows become wider.
    """

    codes: NDArray[np.uint8]  # (n_rows * n_words * 8,): a byte for each narrow feature, then two for each wide one
    words: NDArray[np.uint64]  # (n_rows * n_words,): the same memory, eight bytes at a time
    sums: NDArray[np.int64]  # (n_rows,): gradient and hessian of each row as a packed sum
    ids: NDArray[np.int32]  # (n_rows,): rows of the table; (0,) of the table itself: 0, 1, 2, ...


class Column(NamedTuple):
    """Where the codes of one feature stand in rows of bytes. Life: node; kernels make it."""

    n_words: int  # of a row
    place: int  # first byte in a row
    is_wide: bool  # two bytes
    base: int  # of a bundled feature: the code of its byte for the first of its other codes; -1: has its own byte
    usual: int  # of a bundled feature: the code that its byte does not tell
    n_codes: int


class Runs(NamedTuple):
    """Where the rows of a shard in a node stand: runs of neighbouring rows, one every so many.

    Life: node; `runs_of` makes it.
    """

    lo: int  # first row of the first run
    hi: int  # behind the last row
    size: int  # of a run; the last one may be shorter
    jump: int  # from the beginning of a run to that of the next


class Range(NamedTuple):
    """Codes from the first to the last, both included. Life: node; kernels make it."""

    first: int
    last: int


class Part(NamedTuple):
    """What a thread takes of several things, shards or features. Life: node; kernels make it."""

    begin: int
    end: int  # not included


class BoostTable(NamedTuple):
    """What is known about the features and rows of a table.

    `used`, `used_places`, `bundled` and the four `kept_*` are replaced for each tree that draws its features; all that
    depends on the codes, where bins are made anew for each tree.
    Life: fit; Python makes it, kernels only read.
    """

    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features): see `_types`
    edges: NDArray[np.float64]  # (2, n_codes of all features): lowest and highest value behind each code
    place: NDArray[np.int64]  # (n_features,): first byte of a feature in a row
    is_wide: NDArray[np.bool_]  # (n_features,): two bytes
    base: NDArray[np.int64]  # (n_features,): of a bundled feature, its first code in the byte; -1: has its own byte
    usual: NDArray[np.int64]  # (n_features,): of a bundled feature, the code that the byte does not tell
    is_paired: NDArray[np.bool_]  # (n_features,): bundled, of two codes: the sum of the byte's one code tells both
    histogram_start: NDArray[np.int64]  # (n_features,): its first sum in a histogram, or that code's; -1: none are kept
    used: NDArray[np.int64]  # (n,): features of the tree, ascending; replaced for each tree
    used_places: NDArray[np.int64]  # (n_narrow used,): bytes of the narrow ones among them; replaced for each tree
    kept_start: NDArray[np.int64]  # (n_kept,): the same of used ones that keep any; replaced for each tree
    kept_size: NDArray[np.int64]  # (n_kept,): the number of their sums; replaced for each tree
    kept_place: NDArray[np.int64]  # (n_kept,): the first byte of a wide one, -1: narrow; replaced for each tree
    kept_feature: NDArray[np.int64]  # (n_kept,): whose sums these are, -1: of a byte that is shared; the same
    bundled: NDArray[np.int64]  # (n_bundled used,): those that share a byte and are not paired; replaced for each tree
    weights: NDArray[np.int64]  # (n_rows,): row weights in units; (1,): all are alike
    starts: NDArray[np.int64]  # (n_shards + 1,): where the rows of each shard stand in the buffer
    interactions: NDArray[np.uint64]  # (n_features, n_set_words): bit s: set s has the feature; no word: all interact
    cell_begin: NDArray[np.int64]  # (n_rows + 1,): where the cells of each row begin; (0,): bytes are summed
    cell_sum: NDArray[np.int32]  # (n_cells,): the sum in a histogram that a row adds to
    n_words: int  # words of a row, eight bytes each
    n_moved: int  # of these in the buffer: all, or, where there are cells, one for a byte that is lent
    n_narrow: int  # bytes of narrow features, alone or bundled, which come first in a row
    histogram_size: int  # sums in the histogram of an open node


class BoostNodes(NamedTuple):
    """The nodes of a boosted tree, children side by side; arrays are (room,) unless said.

    Life: tree; kernels write, Python enlarges on NEEDS_ROOM.
    """

    test: NDArray[np.int64]  # packed, see `common.node_layout`; 0: a leaf
    first_child: NDArray[np.int64]  # 0: a leaf
    side: NDArray[np.int64]  # where its rows stand: 0 the table, 1 the buffer
    n_rows: NDArray[np.int64]  # rows, of all shards
    last_code: NDArray[np.int64]  # last code of branch 0, where the test is a threshold
    first_word: NDArray[np.int64]  # of the levels of branch 0 in `subsets`, where it is a subset
    cut_value: NDArray[np.float64]  # threshold, or the first word as a float
    gain: NDArray[np.float64]  # of its split, less gamma; 0: a leaf
    lower: NDArray[np.float64]  # least value below, by monotone constraints
    upper: NDArray[np.float64]  # greatest value below
    begin: NDArray[np.int64]  # (n_shards, room): where the rows of each shard begin ...
    end: NDArray[np.int64]  # (n_shards, room): ... and end there
    split_order: NDArray[np.int64]  # the nodes that were split, in that order, by their numbers while the tree grew
    subsets: NDArray[np.uint64]  # (any,): levels of branch 0 as bits; no word where there are no categories


class BestCuts(NamedTuple):
    """The best test of each feature of a node; each array (n_features,), by place in `BoostTable.used`.

    Life: node; kernels write.
    """

    gain: NDArray[np.float64]  # scores of both branches; -inf: there is none
    cut: NDArray[np.int64]  # last code of branch 0; of a category its last bin
    following: NDArray[np.int64]  # next code of the node; -1: none
    missing: NDArray[np.int64]  # branch of missing values; -1: there are none
    left: NDArray[np.int64]  # packed sum of branch 0
    is_counted: NDArray[np.bool_]  # rows of the branches were counted


class ThreadLocks(NamedTuple):
    """The locks by which threads that make batches ready wait for each other, see `_jit.locks`.

    Life: fit; kernels take and open them, Python sets `is_over` and `has_failed`.
    """

    begin: NDArray[np.int64]  # (n_followers,): opened when a thread is to go on; none: nobody waits
    end: NDArray[np.int64]  # (n_followers,): opened by a thread when it and those that it has woken are done
    is_over: NDArray[np.uint8]  # (1,): 1 once no batch follows: who is woken goes
    has_failed: NDArray[np.uint8]  # (1,): 1 once a thread has gone before: the others go unwoken
    take: int  # where in memory the function is that waits for a lock ...
    open: int  # ... and the one that opens it


class BoostBatch(NamedTuple):
    """Nodes whose children threads make ready side by side; arrays are (MOST_BATCH,) unless said.

    Life: tree; the driver fills it in, threads write `squares` and `cuts`.
    """

    slot: NDArray[np.int64]  # of the node
    small: NDArray[np.int64]  # the branch that is summed, fewer rows by a sample; -1: no child will be split
    begin: NDArray[np.int64]  # (MOST_BATCH + 1,): what the nodes before it cost, in rows of a node that is summed
    squares: NDArray[np.int64]  # (n_shards, 2 * MOST_BATCH): of gradients in a child, where luck is asked for
    cuts: BestCuts  # of the children, one after the other: each array (2 * MOST_BATCH * n_features,)
    locks: ThreadLocks  # of the threads that wait for batches


class BoostFrontier(NamedTuple):
    """The open nodes, each in a slot: its best test, its sums, its histogram.

    Arrays are (n_slots,) unless said. A node has two numbers: `number` while the tree grows, and `node`, that of the
    finished tree. They differ where children were made ready in vain.
    Life: tree; kernels write, Python enlarges on NEEDS_ROOM.
    """

    queue: NDArray[np.int64]  # slots in the order of `common.queue`; the first state[N_QUEUED] count
    free: NDArray[np.int64]  # slots that are not taken; the first state[N_FREE] count
    unready: NDArray[
        np.int64
    ]  # slots with a test whose children are not ready, for batches; the first state[N_UNREADY] count
    node: NDArray[np.int64]  # number of its node in the finished tree
    number: NDArray[np.int64]  # number of its node while the tree grows: its place in `BoostNodes`
    depth: NDArray[np.int64]  # of its node, the root's being 0
    key: NDArray[np.int64]  # of its draws: a function of its path
    packed: NDArray[np.int64]  # packed sum of its rows ...
    left_packed: NDArray[np.int64]  # ... and of those of branch 0
    feature: NDArray[np.int64]  # here and below the test that was found: its feature
    kind: NDArray[np.int64]  # THRESHOLD or SUBSET
    cut: NDArray[np.int64]  # last code of branch 0; of a category the last bin, in the order of the search
    missing: NDArray[np.int64]  # branch of missing values; of a node that has none, the heavier one
    first_child: NDArray[np.int64]  # number of its first child, once it has children ...
    left_slot: NDArray[np.int64]  # ... the slot of branch 0 ...
    right_slot: NDArray[np.int64]  # ... and that of branch 1
    gain: NDArray[np.float64]  # of the test, less gamma
    cut_value: NDArray[np.float64]  # threshold; of a category not used
    lower: NDArray[np.float64]  # least value of the node, by monotone constraints
    upper: NDArray[np.float64]  # greatest value
    noise: NDArray[np.float64]  # what a unit of luck is worth, see `common.category_chance`; 0: luck is not asked for
    is_ready: NDArray[np.bool_]  # its children have rows, sums and tests, or are in the batch that gets them
    is_open: NDArray[np.bool_]  # a test was found: it may be split
    is_last: NDArray[np.bool_]  # its children will be leaves: row numbers alone are moved to them
    subsets: NDArray[np.uint64]  # (n_slots, most_words): levels of branch 0
    allowed_sets: NDArray[np.uint64]  # (n_slots, n_set_words): interaction sets that hold every feature used above
    spans: NDArray[np.int64]  # (n_slots, n_features, 2): its rows have no code below the first, none above the second
    histogram: NDArray[np.int64]  # (n_slots * histogram_size, or more,): packed sums by code; any outside of `spans`
    shard_histogram: NDArray[np.int64]  # ((n_threads - 1) * histogram_size,): what threads but the first have summed
    batch: BoostBatch  # nodes to be made ready side by side
    state: NDArray[np.int64]  # (BOOST_STATE_SIZE,): counters of the driver, see `_types`


class LevelTests(NamedTuple):
    """The tests that part the open nodes of a boosted tree at one level, in as few words as a row can be sent on by.

    Life: tree; Python makes it for each level, kernels only read.
    """

    test: NDArray[np.uint64]  # (n_nodes,): see `kernels.boost.levels`; a node without a test leads to itself
    goes_to: NDArray[np.int32]  # (codes of all tests, and one for each other node): twice the node, + 1 if it is summed
    place_of: NDArray[np.int64]  # (n_nodes after the level,): the histogram that a node's rows are added to; -1: none
    n_words: int  # of a row


class PassScratch(NamedTuple):
    """What some rows of a part are listed and copied in, before they are added to the sums of their nodes.

    Life: a task; kernels write.
    """

    chosen: NDArray[np.int32]  # (n,): so many rows are looked at a time
    starts: NDArray[np.int64]  # (n_histograms + 2,)
    buffer: ByteRows  # (n,), without ids


class NodeCounts(NamedTuple):
    """What is known of the rows of an open node that are not at hand, beside their sums.

    Life: node; Python makes it.
    """

    is_known: bool  # whether rows and weights were counted
    rows: NDArray[np.int64]  # (histogram_size,): rows by code, laid out as the histogram of the node
    weights: NDArray[np.int64]  # (histogram_size,) their weight, in units; (1,): none is asked for
    squares: int  # sum of squared gradients, see `boost.category_chance`


class HistogramScan(NamedTuple):
    """A narrow feature at a node, code by code; each array (NARROW_CODES + 8,). Life: node; kernels write."""

    left: NDArray[np.int64]  # packed sum of the rows with codes up to one, none of them missing
    gain_bits: NDArray[np.int64]  # bits of twice the scores of both branches of a cut behind it; -1: not allowed


class BoostScratch(NamedTuple):
    """What the search of one thread writes to read it again.

    n_codes: of the feature that has most, at least NARROW_CODES - 1.
    Life: node; kernels write, Python enlarges where bins are made anew.
    """

    goes_left: NDArray[np.uint8]  # (n_codes + 1,): 1 for codes of branch 0
    wide_histogram: NDArray[np.int64]  # (n_codes + 1,): sums of a wide feature that keeps none; zero between uses
    row_counts: NDArray[np.int64]  # (n_codes + 1,): rows by code
    weight_counts: NDArray[np.int64]  # (n_codes + 1,): their weight, in units
    bins: NDArray[np.int64]  # (BOOST_BIN_ROWS, n_codes + 2): rows of the node with one code, see `_types`
    scores: NDArray[np.float64]  # (n_codes + 2,): what bins are sorted by
    spare: NDArray[np.float64]  # (n_codes + 2,): room to sort scores
    buckets: NDArray[np.int64]  # (n_codes + 2,): counts of that sort
    histogram_scan: HistogramScan  # of the narrow feature at hand
    best: BestCuts  # of every feature of the node


class BoostCut(NamedTuple):
    """A cut of a feature; fields as in `BestCuts`. Life: node; each scan makes one."""

    gain: float  # scores of both branches; -inf: there is none
    cut: int  # last code of branch 0, or last bin; -1: has not been looked for
    following: int  # next code (bin) of the node; -1: none
    missing: int  # branch of missing values; -1: there are none
    left: int  # packed sum of branch 0


class LeastHessians(NamedTuple):
    """What the branches of a test must have at least, in units. Life: node; kernels make it."""

    left: int
    right: int


class RowSums(NamedTuple):
    """Sums over some rows of a node. Life: node; kernels make it."""

    packed: int  # gradient << SUM_SHIFT | hessian, in units
    n_rows: int  # rows; 0: rows and weights were not counted
    weight: int  # of the rows, in units
    noise: float  # what a unit of luck is worth, see `common.category_chance`; 0: of a number, or luck is not asked for


class Bounds(NamedTuple):
    """Of the values of leaves, by monotone constraints. Life: node; kernels make it."""

    lower: float  # least value; -inf: none
    upper: float  # greatest value; inf: none


class BoostSettings(NamedTuple):
    """Scalars of one boosted tree; sums of gradients and hessians are whole numbers of their units.

    Life: tree; Python makes it.
    """

    order: int  # DEPTH_FIRST or BEST_FIRST
    max_depth: int  # of a leaf, the root's being 0
    max_leaves: int  # of the tree
    min_samples_split: int  # fewest rows of a node that is split
    min_samples_leaf: int  # fewest rows of a branch
    min_weight_leaf: int  # in units of the row weights; 0: not asked for
    weights_are_counts: bool  # a row stands for so many that are alike, and counts as often
    min_hessian: int  # of a branch, in units; at least 1
    most_hessian: int  # of one row, in units: a branch has at least its sum / most_hessian rows
    n_try: int  # features drawn per node
    n_threads: int  # that share what is worth it
    n_shards: int  # parts that rows are dealt out to; 1 for one thread
    share_rows: int  # rows of a node that is worth sharing out among threads
    piece_rows: int  # rows of a node that are worth a thread of their own
    batch_rows: int  # rows of a node from which on others are made ready beside it
    most_words: int  # words of the largest subset: levels / 64, rounded up; 0: no categories
    is_plain: bool  # no L1 penalty, no monotone constraint: the scan of a histogram serves
    has_monotone: bool  # some feature has a monotone constraint
    is_post: bool  # tests without gain are made, and removed from below at the end
    seed: int  # of the features drawn per node
    gradient_unit: float  # worth of a unit of a gradient
    hessian_unit: float  # worth of a unit of a hessian
    reg_lambda: float  # L2 penalty of values, added to every hessian
    reg_alpha: float  # L1 penalty of values, taken off every gradient
    gamma: float  # what a split costs: without `is_post` its gain must exceed it
    cat_smooth: float  # added to the hessian of a level where levels are ordered by gradient / hessian
    max_cat_threshold: int  # levels of a category in the branch that has fewer, where a node has many
    cat_penalty: float  # how much of the gain that levels have by chance a subset must pay; 0: none
    weight_shift: int  # bits of row weights that are dropped where squared gradients are divided by them
    square_unit: float  # worth of a squared gradient in units, divided by a weight without these bits
    likely_gain: float  # gain from which on a node will likely be split, and is worth being made ready beside another


class VectorSums(NamedTuple):
    """Sums of several outputs in cells, see `boost.vector_search`: those of rows, and of open nodes.

    Life: tree; Python makes it and writes the rows and units, kernels the rest.
    """

    rows: NDArray[np.int64]  # (n_rows * width,): the cell of each row of the table
    total: NDArray[np.int64]  # (n_slots * width,): of all rows of an open node ...
    left: NDArray[np.int64]  # (n_slots * width,): ... and of those of branch 0 of its test
    gradient_unit: NDArray[np.float64]  # (n_outputs,): worth of a unit of a gradient
    hessian_unit: NDArray[np.float64]  # (n_outputs,): the same of a hessian
    square_unit: NDArray[np.float64]  # (n_outputs,): see `BoostSettings`
    least_hessian: float  # of a branch, the outputs added up
    width: int  # words of a cell, a multiple of four
    n_parts: int  # of the features, one for each thread
    has_weight: bool  # cells hold the weight of their rows
    keeps_cells: bool  # every slot has cells, so that one child comes by subtraction; else there are those of two nodes


class VectorScan(NamedTuple):
    """Some cuts of a feature at a time, for several outputs. Life: node; kernels write."""

    left: NDArray[np.int64]  # (width,): the cell of branch 0, under way
    squares: NDArray[np.int64]  # (n_outputs,): squared gradients of the rows of a node
    gradient: NDArray[np.float64]  # (n_outputs, n): of branch 0 after each cut, without missing values ...
    hessian: NDArray[np.float64]  # (n_outputs, n): ... its hessians ...
    n_rows: NDArray[np.int64]  # (n,): ... its rows ...
    weight: NDArray[np.int64]  # (n,): ... and their weight
    gain: NDArray[np.float64]  # (n,): twice the scores of both branches
    held: NDArray[np.float64]  # (n,): hessians of branch 0, the outputs added up
    roots: NDArray[np.float64]  # (n,): of a category, see `common.category_chance`
    root: NDArray[np.float64]  # (1,): the same, under way
    best: NDArray[np.float64]  # (2,): the best gain with missing values in branch 1, in branch 0 ...
    cut: NDArray[np.int64]  # (2,): ... and its cut


class VectorScratch(NamedTuple):
    """What the search of one thread for several outputs writes to read it again. Life: node; kernels write."""

    plain: BoostScratch
    scan: VectorScan
    first: BestCuts  # of the root or of branch 0, by all threads: `left` is the output that levels are ordered by
    second: BestCuts  # of branch 1
    sums: VectorSums  # of all threads


class Gradients(NamedTuple):
    """Derivatives of the loss by one raw score of the rows, without their weights, which last as long as the fit.

    Life: tree; `boost.gradients` writes `g` and `h`.
    """

    g: NDArray[np.float64]  # (n_rows,): first derivatives
    h: NDArray[np.float64]  # (n_rows,): second derivatives, or what stands for them
    weight: NDArray[np.float64]  # (n_rows,): row weights; (1,): all are alike
    is_whole: bool  # weights are whole numbers and multiply what is rounded: a row of weight 2 is two rows


class Queries(NamedTuple):
    """Lists of rows that are ranked, each for itself. Life: fit; `boost.ranking` puts `order` in order of scores."""

    order: NDArray[np.int64]  # (n_rows,): the rows, query by query
    starts: NDArray[np.int64]  # (n_queries + 1,): where each query begins in `order`
    relevance: NDArray[np.int64]  # (n_rows,): how high a row should stand
    gain: NDArray[np.float64]  # (n_relevances,): 2**relevance - 1
    discount: NDArray[np.float64]  # (longest query,): 1 / log2(place + 2)
    per_best: NDArray[np.float64]  # (n_queries,): 1 over the greatest value that an order has; 0: all orders are alike


class PackedUnits(NamedTuple):
    """Powers of two that gradients and hessians are multiplied by before they are rounded to whole numbers.

    Life: tree; Python makes it.
    """

    gradient: float  # units in a gradient of 1
    hessian: float  # units in a hessian of 1


class LeafLinks(NamedTuple):
    """From nodes as they were grown to those that are left by pruning; each array (n_nodes as grown,).

    Life: tree; `close_tree` writes.
    """

    target: NDArray[np.int64]  # the node that the rows of a grown leaf belong to in the end; -1: not a leaf
    owner: NDArray[np.int64]  # the kept node that a node has gone into
    grown_child: NDArray[np.int64]  # first child before pruning
    number: NDArray[np.int64]  # of a kept node among those that are left


class RoutedRows(NamedTuple):
    """Room to find the leaves of rows of the table. Life: fit, of a thread; `route_rest` writes.

    A leaf is a bit of a word. For each byte of a row that the tree tests and each code, a word has the leaves that are
    left: of a row, one leaf is in the words of all its codes.
    """

    waiting: NDArray[np.int32]  # (any,): rows whose leaves are found together
    left: NDArray[np.uint64]  # the same: leaves that are left of each
    n_places: NDArray[np.int64]  # (1,): bytes that the tree tests; NOT_LISTED before the first rows of a tree, ...
    places: NDArray[np.int64]  # (room,): these bytes; of no more there are words
    words: NDArray[np.uint64]  # (room * HISTOGRAM_STRIDE,): leaves that are left, by byte and code
    below: NDArray[np.uint64]  # (2 * 64 - 1,): leaves below each node
    leaf: NDArray[np.int64]  # (64,): the node of each bit


class LeafSums(NamedTuple):
    """Sums of true gradients and hessians by leaf, in fixed point. Life: tree; `sum_leaves` writes."""

    gradient: NDArray[np.int64]  # (n_shards, n_nodes): by part of the rows
    hessian: NDArray[np.int64]  # (n_shards, n_nodes): the same


class LeafSettings(NamedTuple):
    """How sums become values of leaves. Life: tree; Python makes it."""

    n_features: int  # what the link of a leaf asks for, see `common.node_layout`
    gradient_unit: float  # worth of a unit of the sums of gradients
    hessian_unit: float  # worth of a unit of the sums of hessians
    reg_lambda: float  # L2 penalty of values
    reg_alpha: float  # L1 penalty of values
    learning_rate: float  # what values are multiplied by in the end


class WrittenTree(NamedTuple):
    """A boosted tree as a model keeps it; fields as of `tree.forest.Forest`.

    Life: fit; `leaf_values.settle` writes over the last tree, which Python has copied, Python enlarges.
    """

    cuts: NDArray[np.float64]  # (room, 2): its first column thresholds and values of leaves ...
    words: NDArray[np.uint64]  # (room, 2): ... the same memory: its second column links, see `common.node_layout`
    n_rows: NDArray[np.uint32]  # (room,): training rows
    weight: NDArray[np.float64]  # (room,): sum of hessians
    gain: NDArray[np.float64]  # (room,): gain of the tests of each node's subtree, per weight


class TreeEnd(NamedTuple):
    """What `finish_tree` writes beside the tree. Life: fit; kernels write, Python enlarges what has room for nodes."""

    links: LeafLinks  # (room,)
    is_in: NDArray[np.uint8]  # (n_rows,): rows that the tree was grown on; (1,): all. Not written
    sums: LeafSums  # (1, room)
    values: NDArray[np.float64]  # (room,): the shrunken values of leaves
    raw: NDArray[np.float64]  # (n_raw, n_rows): the scores, to one row of which the values are added


class TreeEndSettings(NamedTuple):
    """How a tree is finished. Life: tree; Python makes it."""

    n_grown: int  # nodes
    is_post: bool  # tests without gain are removed from below
    row: int  # of the scores
    weights_are_counts: bool  # a row counts as often as it weighs
    scale: PackedUnits  # of sums of true derivatives
    leaves: LeafSettings


# --- Textbook trees: ID3, C4.5 ----------------------------------------------------------------------------------
# The words are those of `kernels.textbook`: an entry is a row in a node, or a piece of one.


class TextbookTable(NamedTuple):
    """The table by columns, and what its codes stand for. Life: tree; Python makes it, kernels only read."""

    columns: NDArray[np.uint16]  # (n_features, n_rows): codes; 0: missing
    times: NDArray[np.int64]  # (n_rows,) whole weights: a row of weight w is w rows; (1,): every row is one
    truth: NDArray[np.float64]  # (n_rows,): classes or targets
    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features): number of codes, kind, ...; see `_types`
    edges: NDArray[np.float64]  # (2, values of all features): lowest and highest value behind each code
    xlogx: NDArray[np.int64]  # (total weight + 2,): k log2 k in fixed point; (1,): weights are not whole, or too large


class Entries(NamedTuple):
    """What nodes hold: rows, or pieces of them. The arena of a tree has those of all open nodes.

    Life: tree; kernels write, Python enlarges.
    """

    ids: NDArray[np.int32]  # (n_entries,): rows
    addends: NDArray[np.int64]  # (1 .. 3, n_entries): class or weighted target; weight (without: 1 each); square


class TextbookSettings(NamedTuple):
    """Scalars of one textbook tree. Life: tree; Python makes it."""

    criterion: int  # SQUARED_ERROR, SDR, GINI or ENTROPY
    rule: int  # BY_GAIN, BY_RATIO, BY_C45
    n_classes: int  # 0: numbers
    spreads_missing: bool  # a row with a missing value takes every branch; else missing is a value of its own
    max_depth: int  # of a leaf, the root's being 0
    min_samples_split: int  # fewest entries of a node that is split
    min_samples_leaf: int  # fewest entries of a branch that has any; not for C4.5
    min_weight_leaf: int  # least weight of a branch that has any, in units of the sums; not for C4.5
    is_centred: bool  # squared error of whole weights: targets are taken from the node's mean
    shift: int  # weights are whole numbers times 2 ** shift, but for the pieces of rows; 0 where they are not whole
    is_all_many: bool  # every feature is a category with too many levels for the average gain
    weight_unit: float  # worth of a unit of weight
    log_scale: float  # units of f(weight) = weight log2 weight in a bit
    square_unit: float  # turns a sum of squares into squared target units
    min_weight: float  # of a branch (C4.5), in the user's weights
    many_levels: float  # a category with as many is left out of the average gain
    min_gain: float  # least gain times the weight of the node, in units; -inf: any
    truth_unit: float  # turns a target into units of the sums (numbers)


class TextbookNodes(NamedTuple):
    """The tree as it grows; all but `distributions` are (room,). Life: tree; kernels write, Python enlarges."""

    test: NDArray[np.int64]  # as `kernels.common.node_layout` packs it
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
    """The open nodes, the next one last, and the driver's counters. Life: tree; kernels write, Python enlarges."""

    node: NDArray[np.int64]  # (room,): number of the node
    depth: NDArray[np.int64]  # (room,): its depth, the root's being 0
    state: NDArray[np.int64]  # (TEXTBOOK_STATE_SIZE,): N_NODES, N_QUEUED, N_MIXED, N_ENTRIES


class Figures(NamedTuple):
    """How good the best test of each feature of a node is; all are (n_features,). Life: node; kernels write."""

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
    """Every cut of a number in a node, in order, for people; all are (room,). Life: node; kernels write."""

    gain: NDArray[np.float64]  # without C4.5's penalty
    split_info: NDArray[np.float64]  # bits
    ratio: NDArray[np.float64]  # gain / split information
    is_valid: NDArray[np.bool_]  # the cut may be made
    last_below: NDArray[np.int64]  # last code below the cut
    first_above: NDArray[np.int64]  # first code above; -1: known rows are set against missing ones


class ScanScratch(NamedTuple):
    """What the scan of a node writes to. Life: node; kernels write, Python enlarges `column`."""

    column: NDArray[np.uint16]  # (n_entries, 1): codes of the feature at hand
    keys: NDArray[np.uint64]  # (2, n_rows): code << 32 | position, and room to sort
    counts: NDArray[np.int32]  # (MOST_BUCKETS,): of the sort
    histogram: NDArray[np.int64]  # (at most (codes + 1) * (4 or n_classes + 1),): by code, class; zero between uses
    totals: NDArray[np.int64]  # (TOTALS_SIZE,): sums of the node, and of its entries with a missing value
    bins: Any  # (BIN_ROWS, most codes, at least 2) int64: sums of the entries with one code; None: classes
    sums: Any  # (TEXTBOOK_CLASS_ROWS, n_classes) int64: weights per class, see `_types`; None: numbers
    figures: Figures  # of the best test of each feature


class Branches(NamedTuple):
    """The branches of the node at hand. Life: node; kernels write, Python enlarges."""

    of_entry: NDArray[np.int32]  # (n_entries,): the branch that an entry takes; -1: every one
    weight: NDArray[np.int64]  # (most branches,): of the entries that take it alone
    n: NDArray[np.int64]  # (most branches,): entries, pieces included
    begin: NDArray[np.int64]  # (most branches,): first entry
    share: NDArray[np.int64]  # (most branches,): what it gets of a row in pieces, in shares of `Parting.known`


class TextbookScratch(NamedTuple):
    """What the driver writes to pass it on. Life: node; kernels write."""

    scan: ScanScratch  # of the search
    branches: Branches  # of the split


class ClassSpan(NamedTuple):
    """A node of classes whose features are scanned; `ScanScratch.sums` and `totals` hold its sums.

    Life: node; kernels make it.
    """

    lo: int  # its entries are lo .. hi
    hi: int  # behind its last entry
    n_present: int  # classes that it has


class ValueSpan(NamedTuple):
    """A node of numbers whose features are scanned; `ScanScratch.totals` hold its sums. Life: node; kernels make it."""

    lo: int  # its entries are lo .. hi
    hi: int  # behind its last entry
    centre: int  # what its targets are taken from, in units of the sums
    score: float  # see `kernels.common.criteria`
    slack: float  # gains per unit of weight that are smaller count as 0


class CodeRange(NamedTuple):
    """The codes of a feature in a node. Life: node; kernels make it."""

    lowest: int  # of the known codes; meaningless if none is known
    highest: int  # 0: none is known; some other known code than the lowest where that is all one asks
    n_missing: int  # entries with a missing value


class CutSearch(NamedTuple):
    """What all cuts of a feature in a node of classes have in common. Life: node; kernels make it."""

    feature: int  # that is cut
    n_present: int  # classes of the node
    base: float  # score that the branches must exceed, in the user's units
    apart: int  # f of the missing entries' weight, f(w) = w log2 w in fixed point
    least: float  # weight that C4.5 wants on each side


class Cut(NamedTuple):
    """A cut of a number in a node of classes: what lies below it. Life: node; kernels make it."""

    last: int  # last code below
    code: int  # first code above; -1: known entries against missing ones
    n_left: int  # entries below
    w_left: int  # their weight, in units of the sums
    power: int  # sum of f over the classes of both sides, f(w) = w log2 w in fixed point


class CutTally(NamedTuple):
    """The cuts of a feature so far. Life: node; kernels make it."""

    n_tried: int  # cuts
    n_valid: int  # those that may be made
    best: float  # gain (BY_RATIO: ratio) of the best


class NodeWeights(NamedTuple):
    """What decides whether a node may be split. Life: node; kernels make it."""

    weight: int  # in units of the sums
    heaviest: int  # weight of its heaviest class; 0: numbers
    n_present: int  # classes; 0: numbers


class Split(NamedTuple):
    """A test that was chosen, in codes. Life: node; kernels make it."""

    feature: int  # that is asked for
    kind: int  # THRESHOLD, MULTIWAY
    cut: int  # last code of branch 0
    following: int  # first code of branch 1; -1: known rows are set against missing ones
    missing: int  # branch of missing values; -1: no entry has one, or such entries take every branch
    n_branches: int  # with that of missing values


class Parting(NamedTuple):
    """How the entries of a node are shared out. Life: node; kernels make it."""

    n_branches: int  # of the node
    n_entries: int  # of all branches
    heaviest: int  # branch by weight of known entries, the first among equals
    known: int  # sum of the branches' shares


class TextbookUnits(NamedTuple):
    """How targets of a regression tree are summed and scaled. Life: tree; Python makes it."""

    is_whole: bool  # weights are whole numbers
    centre: float  # targets are taken from here ...
    stretch: float  # ... and multiplied by this power of two
    share: float  # worth of a unit of weight
    rough_scale: float  # units of a first sum, which says how fine the next may be
    criterion: int  # SQUARED_ERROR or SDR
    value_unit: float  # turns targets into the user's units in two steps: a square may leave a float's range
    value_unit_2: float  # the second step


class TextbookStats(NamedTuple):
    """What is written about the nodes of a regression tree; all are (n_nodes,). Life: tree; `settle_values` writes."""

    mean: NDArray[np.float64]  # centred, stretched: scratch
    value: NDArray[np.float64]  # of leaves with rows, in the user's units
    impurity: NDArray[np.float64]  # variance or standard deviation, in units of 2 ** `Tree.impurity_exponent`


class PruneTable(NamedTuple):
    """The rows that a tree is pruned with. Life: tree; Python makes it, kernels only read."""

    values: NDArray[np.float64]  # (n_features, n_rows): the rows of a node lie close together in a column
    times: NDArray[np.int64]  # (n_rows,) whole weights, or (1,): as in `TextbookTable`
    subsets: NDArray[np.uint64]  # (words,): `Tree.subsets`, bitsets of levels that go to branch 0


class PruneSettings(NamedTuple):
    """Scalars of one pruning. Life: tree; Python makes it."""

    is_pruned: bool  # False: only settle what the nodes hold
    confidence: float  # probability that the true errors exceed the limit that is estimated; less prunes more
    z: float  # normal quantile of 1 - confidence
    weight_unit: float  # worth of a unit of weight


class PruneNodes(NamedTuple):
    """The tree that is pruned, changed in place; nodes that no path reaches are gone. (n_nodes,) unless said.

    Life: tree; kernels write.
    """

    test: NDArray[np.int64]  # as `common.node_layout` packs it
    first_child: NDArray[np.int64]  # 0: a leaf
    n_branches: NDArray[np.int64]  # 0: a leaf
    n_rows: NDArray[np.int64]  # entries
    weight: NDArray[np.int64]  # of the entries, in units of the sums
    error: NDArray[np.int64]  # weight of all but the heaviest class
    cut_value: NDArray[np.float64]  # `Tree.threshold`
    estimate: NDArray[np.float64]  # errors that the subtree is expected to make
    class_weights: NDArray[np.int64]  # (n_nodes, n_classes) zeros, added to; (0, 1): not asked for


class Frame(NamedTuple):
    """A node under way. Life: node; kernels make it."""

    node: int  # number of the node
    lo: int  # its entries are lo .. hi
    hi: int  # behind its last entry
    top: int  # end of the arena that is in use


class PruneFrames(NamedTuple):
    """Frames behind each other; all are (n_nodes + 1,). Life: tree; kernels write."""

    node: NDArray[np.int64]  # number of the node
    lo: NDArray[np.int64]  # first entry
    hi: NDArray[np.int64]  # behind the last entry
    top: NDArray[np.int64]  # end of the arena that is in use
    phase: NDArray[np.int64]  # SETTLE, ENTER, DECIDE


class PruneStack(NamedTuple):
    """What is under way, and counters. Life: tree; kernels write."""

    frames: PruneFrames  # the open nodes, the next one last
    state: NDArray[np.int64]  # (TEXTBOOK_STATE_SIZE,): N_QUEUED, N_RAISED, N_ENTRIES


class PruneScratch(NamedTuple):
    """What pruning writes to pass it on. Life: node; kernels write, Python enlarges it with the arena."""

    spare: Entries  # as large as the arena
    branches: Branches  # of the node that was parted last
    class_sums: NDArray[np.int64]  # (n_classes,): weight of each class in the node at hand
    path: PruneFrames  # nodes that entries still have to go to


# --- Prediction -------------------------------------------------------------------------------------------------


class PackedTrees(NamedTuple):
    """Trees end to end, as prediction reads them. Life: model; Python makes it, kernels only read."""

    cuts: NDArray[np.float64]  # (n_nodes, 2); column 0: threshold, first word of a subset, or what a leaf says
    links: NDArray[np.uint64]  # (n_nodes, 2), the same memory; column 1: the link, see `layout`
    first_node: NDArray[np.int64]  # (n_trees,): the root of each tree
    subsets: NDArray[np.uint64]  # (words,): bitsets of levels that go to branch 0, those of all trees behind each other
    first_word: NDArray[np.int64]  # (n_trees,): where the subsets of each tree begin
    has_masks: bool = False  # column 0 of a subset is its one word itself


class PackedTree(NamedTuple):
    """One of those trees. Life: tree; Python makes it, kernels only read."""

    cuts: NDArray[np.float64]  # (n_nodes, 2): of all trees, as in `PackedTrees`
    links: NDArray[np.uint64]  # (n_nodes, 2): of all trees
    subsets: NDArray[np.uint64]  # (words,): of all trees
    root: int  # its node among all
    first_word: int  # where its subsets begin in `subsets`


class LeafShares(NamedTuple):
    """Class shares of the mixed leaves of trees end to end. Life: model; Python makes it, kernels only read."""

    shares: NDArray[np.float64]  # (n_mixed, n_classes); one row of zeros where there are none
    first: NDArray[np.int64]  # (n_trees,): the first row of each tree


class LaneScratch(NamedTuple):
    """Scratch of one thread in `lanes`. Life: call; kernels write."""

    block: NDArray[Any]  # (any, n_features + 1) float32 or float64: rows on their way, and a column for leaves
    ends: NDArray[np.uint64]  # (LANES,): nodes where rows that go down together have arrived


class Descent(NamedTuple):
    """What LANES rows need on their way down one tree. Life: call; `lanes` makes it."""

    root: np.uint64  # node of the root among all
    first_word: np.uint64  # where the subsets of the tree begin
    block: NDArray[Any]  # (any * (n_features + 1),): of `LaneScratch`, row after row
    cuts: NDArray[np.float64]  # (2 * n_nodes,): as in `PackedTrees`, node after node
    links: NDArray[np.uint64]  # (2 * n_nodes,): as in `PackedTrees`, node after node
    subsets: NDArray[np.uint64]  # (words,): as in `PackedTrees`


class FloatTable(NamedTuple):
    """A table of values that is looked up by bits as well. Life: call; Python makes it, kernels only read."""

    values: NDArray[Any]  # (n_rows, n_features), or (n_columns, n_rows) for binning; float32 or float64
    bits: NDArray[Any]  # the same memory and shape as int32 or int64
    lowest: int  # least number of that integer type


class BitTrees(NamedTuple):
    """Trees of few leaves as tests and bits, see `bits`.

    A test has a line for each plane of leaves that it touches; the lines of a tree stand end to end.
    Life: model; `lay_bits` writes, all but `first_leaf`.
    """

    first_line: NDArray[np.int64]  # (n_trees + 1,): where the lines of each tree begin, and the end
    column: NDArray[np.uint16]  # (n_lines,): place of the feature among those that are asked for
    missing: NDArray[np.uint16]  # (n_lines,): branch of missing values, 0 or 1; 0 for subsets, whose masks know it
    rank: NDArray[np.uint16]  # (n_lines,): of the threshold among those of its feature; bits of few levels in branch 0
    mask: NDArray[np.uint16]  # (n_lines,): leaves of the plane that stay for a row in branch 1
    plane: NDArray[np.uint16]  # (n_lines,): the plane of leaves that the mask is for
    lookup: NDArray[np.int64]  # (n_lines,): of many levels, where their masks begin; NO_LOOKUP or FLAGS
    level_masks: NDArray[np.uint16]  # (any,): of each subset of many levels, what stays for each; then if missing
    first_leaf: NDArray[np.int64]  # (n_trees + 1,): where the leaves of each tree begin, and the end
    leaf_values: NDArray[np.float64]  # (n_leaves,): what leaves say, from left to right


class LeafRanges(NamedTuple):
    """Leaves below each node, numbered from left to right in their tree: scratch of laying out bits.

    Life: call; `count_leaves` writes.
    """

    n_below: NDArray[np.int64]  # (n_nodes,): how many there are
    first_below: NDArray[np.int64]  # (n_nodes,): number of the first; -1: no row gets there
    n_lines: NDArray[np.int64]  # (n_nodes,): lines of its test, see `BitTrees`; 0: a leaf, or nothing to ask


class AskedColumns(NamedTuple):
    """The columns that trees ask for, see `bits`. Life: model; Python makes it, kernels only read."""

    feature: NDArray[np.int64]  # (n_columns,): which column of the table it is
    n_levels: NDArray[np.int64]  # (n_columns,): of a category; 0: numbers
    goes_up: NDArray[np.bool_]  # (n_columns,): whether some threshold sends missing values to branch 1


class SymmetricTrees(NamedTuple):
    """Trees that ask the same at all nodes of a depth, see `symmetric`.

    Life: model; Python makes it, kernels only read.
    """

    first_test: NDArray[np.int64]  # (n_trees + 1,): where the tests of each tree begin, and the end
    column: NDArray[np.int64]  # (n_tests,): place of the feature among those that are asked for
    missing: NDArray[np.int64]  # (n_tests,): branch of missing values, 0 or 1
    rank: NDArray[Any]  # (n_tests,) uint8 or uint16: of the threshold among those of its feature
    worth: NDArray[Any]  # (n_tests,) as `rank`: what branch 1 adds to the number of the leaf; 0: nothing is asked
    first_leaf: NDArray[np.uint64]  # (n_trees + 1,): where the leaves of each tree begin, and the end
    leaf_values: NDArray[np.float64]  # (n_leaves,): what leaves say, from left to right
    is_shared: bool  # whether the trees of a round ask the same, those of several raw scores


class SymmetricScratch(NamedTuple):
    """Scratch of one thread in `symmetric`; the constants are the model's. Life: call; kernels write."""

    constants: NDArray[Any]  # (2,) as `ranks`: 0; all bits
    ranks: NDArray[Any]  # (2 * n_columns, SYMMETRIC_ROWS) uint8 or uint16: see `BitScratch`
    place: NDArray[Any]  # (SYMMETRIC_TREES * SYMMETRIC_ROWS,) as `ranks`: number of the leaf in each of some trees


class ScoreSpan(NamedTuple):
    """Rows and trees of one call of `bits` or `symmetric`. Life: call; Python makes it."""

    lo: int  # rows lo .. hi
    hi: int  # behind the last row
    first_tree: int  # the first tree
    last_tree: int  # behind the last tree
    n_raw: int  # sums to which trees add values by turns; 0: each adds shares of classes


class BitScratch(NamedTuple):
    """Scratch of one thread in `bits`; the constants are the model's. Width: rows of a block.

    Life: call; kernels write.
    """

    constants: NDArray[np.uint16]  # (12,): 0; all bits; 1; leaves of a plane; each bit of a place, and where it is set
    ranks: NDArray[np.uint16]  # (2 * n_columns, width): of values; then of those whose missing ones are above all
    live: NDArray[np.uint16]  # (planes of the largest tree, width): leaves that a row can still reach, as bits
    word: NDArray[np.uint16]  # (width,): the lowest plane of a row that has a bit, then that bit
    place: NDArray[np.uint16]  # (width,): number of the leaf


class RankedTrees(NamedTuple):
    """Trees end to end whose tests are thresholds of ranks, see `ranked`. Life: model; Python makes it.

    What a leaf says is its step's: a class, or the number of classes and the row of its shares, both of the tree
    (HOLDS_CLASSES); or it stands in `said`, at the place that its step holds (HOLDS_PLACES) or at that of its node.
    """

    steps: NDArray[np.uint64]  # (n_nodes,): where each node leads, see `node_layout`; children from the root on
    first_node: NDArray[np.int64]  # (n_trees + 1,): the root of each tree, and the end
    said: NDArray[np.float64]  # (n_leaves or n_nodes, any): column 0 is what a leaf says
    first_said: NDArray[np.int64]  # (n_trees,): where places in `said` count from
    up_place: NDArray[np.int64]  # (n_columns,): place of the copy whose missing values are above all; that of the other
    n_blind: NDArray[np.int64]  # (n_trees,): steps before it is asked who has arrived
    holds: int


class RankScratch(NamedTuple):
    """Scratch of one thread in `ranked`. Life: call; kernels write."""

    ranks: NDArray[np.uint16]  # (2 * n_columns, width): as in `BitScratch`
    block: NDArray[np.uint32]  # (any,): lifted ranks of rows, ABREAST of them side by side, place by place
    n_places: int  # of a row of the block
    ends: NDArray[np.uint64]  # (ABREAST,): as in `LaneScratch`


class AnyTree(NamedTuple):
    """A tree of any kind. Life: model; Python makes it, kernels only read."""

    test: NDArray[np.uint32]  # (n_nodes,): as `common.node_layout` packs it
    first_child: NDArray[np.int32]  # (n_nodes,): 0: a leaf
    cut: NDArray[np.float64]  # (n_nodes,): `Tree.threshold`
    weight: NDArray[np.float64]  # (n_nodes,): of the training rows, in the user's units
    n_branches: NDArray[np.int64]  # (n_nodes,): 0: a leaf
    subsets: NDArray[np.uint64]  # (words,): `Tree.subsets`, bitsets of levels that go to branch 0


class SurrogateTests(NamedTuple):
    """The surrogate tests of a tree, node by node, best first. Life: model; Python makes it, kernels only read."""

    first: NDArray[np.int32]  # (n_nodes + 1,): where those of each node begin; (1,): the tree has none
    test: NDArray[np.uint32]  # (n,): see `common.node_layout`; branch of missing values 1: its branches are swapped
    cut: NDArray[np.float64]  # (n,): threshold, or first word of its bitsets
    n_words: NDArray[np.int64]  # (n,): words of a bitset of levels; the levels that are known stand behind it


class LeafAnswers(NamedTuple):
    """What the leaves of a tree say. Life: call; Python makes it, kernels only read."""

    row_of: NDArray[np.int32]  # (n_nodes,): row of each leaf in `values`
    values: NDArray[np.float64]  # (n_leaves, width): class shares, or whatever is asked for


class OpenNodes(NamedTuple):
    """Nodes that a row has yet to visit in `any_tree`: scratch of one thread, each array (room,).

    Room: most branches * depth + 1, or the nodes of the tree if these are fewer.
    Life: call; kernels write.
    """

    node: NDArray[np.int32]  # number of the node
    share: NDArray[np.float64]  # of the row, that goes there


class ForestArrays(NamedTuple):
    """A forest as a file has it, with ends. Life: call; Python makes it, kernels only read."""

    cuts: NDArray[np.float64]  # (n_nodes, 2): as in `PackedTrees`
    links: NDArray[np.uint64]  # (n_nodes, 2): as in `PackedTrees`
    first_node: NDArray[np.int64]  # (n_trees + 1,): where nodes begin; it and the next two have been checked
    first_word: NDArray[np.int64]  # (n_trees + 1,): where the words of subsets begin
    first_mixed: NDArray[np.int64]  # (n_trees + 1,): where the mixed leaves begin
    n_levels: NDArray[np.int32]  # (n_features,): levels of a category, none negative; 0: a number
    distributions: NDArray[np.float64]  # (n_mixed, n_classes): weight per class of mixed leaves
    subsets: NDArray[np.uint64]  # (words,): `Forest.subsets`


class ForestSums(NamedTuple):
    """What the nodes of a forest have counted.

    Where there are two types the array of the other one is empty: one signature for all forests, so that no file waits
    for a compiler.
    Life: call; Python makes it, kernels only read.
    """

    n_rows: NDArray[np.uint32]  # (n_nodes,): training rows; (0,): a compact forest, without any of these
    weights: NDArray[np.float64]  # (n_nodes,): weight of the rows, or (0,)
    whole_weights: NDArray[np.uint32]  # (n_nodes,): the same where weights are whole, or (0,)
    impurities: NDArray[np.float64]  # (n_nodes,): impurity, or (0,)
    single_impurities: NDArray[np.float32]  # (n_nodes,): the same as float32, or (0,)


class CheckTolerances(NamedTuple):
    """By how much sums of branches may differ from those of their node. Life: call; Python makes it."""

    sums: float  # relative
    impurity: float  # relative to the largest of the tree


class CheckMarks(NamedTuple):
    """Scratch of a check: what has been met in the tree at hand. Life: call; kernels write."""

    is_child: NDArray[np.uint8]  # (nodes of the largest tree,): 1: some node leads there
    is_used: NDArray[np.uint8]  # (most mixed leaves of a tree,): 1: some leaf has this row of `distributions`


class Branching(NamedTuple):
    """A node and its branches. Life: node; `validate` makes it."""

    node: int  # number among all
    first_child: int  # number of branch 0 among all
    n_branches: int  # 2 or 3


class LinearTerms(NamedTuple):
    """Terms of the linear models of leaves, see `LinearLeaves`. Life: model; Python makes it, kernels only read."""

    first: NDArray[np.int64]  # (n_nodes + 1,): where the terms of each node begin
    feature: NDArray[np.int32]  # (n_terms,): that is multiplied
    coefficient: NDArray[np.float64]  # (n_terms,): per unit of the feature, taken from `fill`
    fill: NDArray[np.float64]  # (n_terms,): what a missing value counts as


class AskedTest(NamedTuple):
    """The test of a node, unpacked. Life: node; `permutation` makes it."""

    feature: int  # that is asked for; of a leaf the number of features
    kind: int  # THRESHOLD or SUBSET
    cut: float  # threshold, or first word of the subset among all
    missing: int  # branch of missing values


class Permuted(NamedTuple):
    """Which features are permuted, and how. Life: call; Python makes it, kernels only read."""

    unit_of: NDArray[np.int32]  # (n_features,): unit of each feature; -1: it stays
    source: NDArray[np.int32]  # (n_units, n): the place that a place takes the unit's values from


class RouteChanges(NamedTuple):
    """Rows that a permuted unit parts from their path; m being the places of a call. Life: call; `reroute` writes."""

    unit: NDArray[np.int32]  # (at least m * n_units,): the unit
    place: NDArray[np.int32]  # (at least m * n_units,): place of the row
    leaf: NDArray[np.int32]  # (at least m * n_units,): where the row ends, counted from the root


class RouteStack(NamedTuple):
    """Open nodes of `permutation.reroute`, with their places and walkers as ranges of lists.

    Each array has room for the nodes of the tree + MOST_BRANCHES, at least.
    Life: call; kernels write.
    """

    node: NDArray[np.int64]  # number of the node among all
    lo: NDArray[np.int64]  # its places are lo .. hi of row 0 of the lists
    hi: NDArray[np.int64]  # behind its last place
    walk_lo: NDArray[np.int64]  # its walkers are walk_lo .. walk_hi of theirs
    walk_hi: NDArray[np.int64]  # behind its last walker


class RouteScratch(NamedTuple):
    """Scratch of one thread in `permutation.reroute`; m being the places of a call. Life: call; kernels write."""

    places: NDArray[np.int32]  # (3, at least m + 1): places of rows, a row for each branch
    walkers: NDArray[np.int64]  # (3, at least m * n_units + 1): unit << 32 | place, a row for each branch
    has_parted: NDArray[np.uint8]  # (n_units, m), zeros at the beginning: 1: the unit has parted from the row's path
    stack: RouteStack  # the open nodes


class Members(NamedTuple):
    """The rows of every bag, by tree and leaf, repeated as often as drawn.

    Life: model; Python makes it, kernels only read.
    """

    ids: NDArray[np.int32]  # (n_members,): training rows
    first: NDArray[np.int64]  # (n_nodes + 1 of each tree, end to end): where each node's members begin
    offset: NDArray[np.int64]  # (n_trees + 1,): where each tree begins in `first`


class PlaceScratch(NamedTuple):
    """Scratch of one thread in `quantiles`. Life: call; kernels write."""

    sums: NDArray[np.float64]  # (n_rows,), zeros before and after a call: weights at places
    touched: NDArray[np.int32]  # (2, n_rows): places with a weight, and room to sort them
    buckets: NDArray[np.int64]  # (N_DIGITS,): counts of that sort


class ExplainedTrees(NamedTuple):
    """Trees of any kind end to end, as explanations read them: arrays (n_nodes,) unless said otherwise.

    Life: model; Python makes it, `shap.lay_covers` writes `ratio` and `above`, the others only read.
    """

    test: NDArray[np.uint32]  # as `common.node_layout` packs it
    feature: NDArray[np.int64]  # that is asked for; 0: a leaf
    first_child: NDArray[np.int64]  # counted over all trees; 0: a leaf
    n_branches: NDArray[np.int64]  # 0: a leaf
    cut: NDArray[np.float64]  # `Tree.threshold`; of a subset the first of its words among those of all trees
    subsets: NDArray[np.uint64]  # (words,)
    weight: NDArray[np.float64]  # of the training rows; of no meaning between trees
    first_node: NDArray[np.int64]  # (n_trees + 1,)
    ratio: NDArray[np.float64]  # part of its parent's weight; 1: a root
    above: NDArray[np.float64]  # product of the ratios on the way down to the parent, behind tests of its feature


class ExplainedLeaves(NamedTuple):
    """What leaves add to which outputs. Life: model; Python makes it, `lay_covers` writes `term_above`."""

    row_of: NDArray[np.int64]  # (n_nodes,): row of each leaf in `values`
    values: NDArray[np.float64]  # (n, width): the width is 1, or that of all outputs
    scale: NDArray[np.float64]  # (n_trees,): what the values of a tree are multiplied by
    output: NDArray[np.int64]  # (n_trees,): the output of the first of these values
    terms: LinearTerms  # of linear models; `first` of length 1: there are none
    term_above: NDArray[np.float64]  # (n_terms,): product of the ratios behind tests of its feature above the leaf


class ExplainedModel(NamedTuple):
    """What explanations are of. Life: model; Python makes it, kernels only read."""

    trees: ExplainedTrees
    leaves: ExplainedLeaves
    surrogates: SurrogateTests


class ShapPoints(NamedTuple):
    """Points and weights of Gauss-Legendre rules on 0 .. 1, end to end. Life: call; Python makes it."""

    here: NDArray[np.float64]  # (n,): t
    there: NDArray[np.float64]  # (n,): 1 - t
    weight: NDArray[np.float64]  # (n,)
    first: NDArray[np.int64]  # (n_trees,): where the rule of each tree begins
    size: NDArray[np.int64]  # (n_trees,): its points


class ShapRows(NamedTuple):
    """Rows in blocks of SHAP_ROWS, feature by feature. Life: call; Python makes it, kernels only read."""

    values: NDArray[Any]  # (n_rows, n_features) float32 or float64
    columns: NDArray[np.float64]  # (n_blocks, n_features, SHAP_ROWS): the same; what is behind the last row counts not


class ShapTables(NamedTuple):
    """What the edges of one tree do to polynomials at SHAP_POINTS points. Life: tree; `shap.tabulate` writes.

    Arrays (most nodes of a tree, ...): an edge has the number of the node that it leads to, counted from its root.
    """

    taken: NDArray[np.float64]  # (..., SHAP_POINTS): factor for a row that takes the edge
    passed: NDArray[np.float64]  # (..., SHAP_POINTS): for one that takes another
    open: NDArray[np.float64]  # (...,): for one that has left the way to the node by a test of the feature above
    gain: NDArray[np.float64]  # (..., SHAP_POINTS): what a sum behind an edge taken is weighed by
    loss: NDArray[np.float64]  # (..., SHAP_POINTS): what one behind an edge that is not taken is weighed by
    has_sum: NDArray[np.uint8]  # (...,): whether a leaf behind the edge says other than 0


class ShapScratch(NamedTuple):
    """Scratch of one thread on its way down a tree with SHAP_ROWS rows; room: the most tests on a path + 1.

    Life: call; kernels write.
    """

    tables: ShapTables
    stack: NDArray[np.int64]  # (2, room): the node of each depth, the branch that it is at
    way: NDArray[np.float64]  # (room, SHAP_POINTS, SHAP_ROWS): product of the factors down to the node
    sums: NDArray[np.float64]  # (room, SHAP_POINTS, SHAP_ROWS): of the leaves behind the node, so far
    branch: NDArray[np.float64]  # (room, SHAP_ROWS): the branch that a row takes; -1: nothing is told by the test
    kept: NDArray[np.float64]  # (room, SHAP_ROWS): `live` of the feature before its test
    total: NDArray[np.float64]  # (room, SHAP_ROWS): what the test adds to its feature
    live: NDArray[np.float64]  # (n_features, SHAP_ROWS): 1: all tests of the feature so far lead here, else 0
    part: NDArray[np.float64]  # (SHAP_ROWS,)


class PairScratch(NamedTuple):
    """What pairs of features need beside `ShapScratch`. Life: call; `shap_pairs` writes."""

    slope: NDArray[np.float64]  # (n_features, SHAP_POINTS, SHAP_ROWS): how much a factor gains by knowing the feature
    kept_slope: NDArray[np.float64]  # (room, SHAP_POINTS, SHAP_ROWS): that of the tested feature before its test
    path: NDArray[np.int64]  # (n_features + 1,): features on the way, each once
    is_new: NDArray[np.uint8]  # (room,): whether the test is the first of its feature on the way


class HybridScratch(NamedTuple):
    """Scratch of one thread for rows that take each value from one of two rows; room: see `OpenNodes`.

    Life: call; `shap_background` writes.
    """

    node: NDArray[np.int64]  # (room,): open nodes
    stage: NDArray[np.int64]  # (room,): 0: the node's own test is asked, 1 ..: its surrogates
    share: NDArray[np.float64]  # (room,): of the row, that goes there
    n_known: NDArray[np.int64]  # (room,): features that are decided before
    feature: NDArray[np.int64]  # (room,): the one that is decided by going there; -1: none
    side: NDArray[np.int8]  # (room,): from which row
    known: NDArray[np.int64]  # (n_features,): features that are decided, in their order
    side_of: NDArray[np.int8]  # (n_features,), UNDECIDED before and after a call


# --- Data -------------------------------------------------------------------------------------------------------


class BinSegments(NamedTuple):
    """Where the bins of columns begin, and segments of the number line that find them without a search, see `binning`.

    Of the thresholds of `BitTrees` they last as long as the model.
    Life: fit; Python lays out `low`, `lay_segments` writes the rest.
    """

    low: NDArray[Any]  # (n_columns, any) float32 or float64, as the values: where bins begin, then NaN
    n_below: NDArray[np.uint16]  # (n_columns, n_segments): bins that begin in the segments below
    base: NDArray[Any]  # (n_columns,) as `low`: where segments of equal width begin, as a value
    scale: NDArray[Any]  # (n_columns,) as `low`: segments per unit of the value; 0: all values are in the first
    top: NDArray[Any]  # (n_columns,) as `low`: number of the last segment, n_segments - 1
    base_bits: NDArray[np.int64]  # (n_columns,): bits >> shift where segments by bits begin; unused where `shift` is 0
    shift: NDArray[np.int64]  # (n_columns,): low bits that do not matter to a segment; 0: all are of equal width
    n_steps: NDArray[np.int64]  # (n_columns,): halvings that find a bin from its segment


class ByteTable(NamedTuple):
    """A table in codes of one or two bytes. Life: fit; `data.binning` writes `rows`."""

    rows: NDArray[np.uint8]  # (n_rows, stride): codes of one or two bytes; 0: missing
    place: NDArray[np.int64]  # (n_columns,): first byte of each column in a row
    is_wide: NDArray[np.bool_]  # (n_columns,): whether it has two


class DrawStrata(NamedTuple):
    """What a bag is drawn from. Life: fit; Python makes it, kernels only read."""

    order: NDArray[np.int32]  # (n_units,): units that can be drawn, those of one stratum side by side
    begin: NDArray[np.int64]  # (n_strata + 1,): where each stratum begins in `order`
    n_drawn: NDArray[np.int64]  # (n_strata,): draws from each


class DrawSpan(NamedTuple):
    """The ids whose part of a bag is wanted, and the tree over the blocks of all. Life: a draw; kernels only read."""

    first: int  # id
    last: int  # id, excluded
    block_bits: int  # a block has 2**block_bits ids
    n_levels: int  # of the tree below its top: 2**n_levels blocks hold all ids


class DrawGuide(NamedTuple):
    """How a place on the line of all weights leads to its unit. Life: fit; Python makes it, kernels only read."""

    line: NDArray[np.int64]  # (n_units + 1,): weight of the units before each place in `order`, and of all
    start: NDArray[np.int32]  # (n_buckets + 1,): the place in `order` whose weight holds `bucket << shift`
    shift: int  # a bucket is 2**shift wide


class PoissonRates(NamedTuple):
    """Poisson means of the units in small pieces; one entry in place of n_units if all are alike.

    Life: fit; Python makes it, kernels only read.
    """

    n_pieces: NDArray[np.int64]  # (n_units,): pieces of a unit's mean
    mean: NDArray[np.float64]  # (n_units,): Poisson mean of a piece
    none: NDArray[np.float64]  # (n_units,): exp(-mean), the chance that a piece is 0
