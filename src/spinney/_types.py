"""The dtypes, integer codes and array layouts that the kernels and their callers share.

Every choice inside a kernel is an integer branch: an argument that is itself a jitted function is never found in
Numba's disk cache and would recompile in each process.

State is passed in the named tuples of `kernels.common.structs`. What a scan sums up stays in arrays of one row per
quantity, named by constants below: `bins[BIN_SUM, b]`. An argument that may be None selects a variant at compile
time, so that a first fit compiles what it needs. How a test and a link are packed: `kernels.common.node_layout`.
"""

from __future__ import annotations

import numpy as np

# --- dtypes, each with its reason -------------------------------------------------------------------------------

CODE = np.uint16  # 65,535 values cost a tree nothing measurable against exact values; 255 cost it 0.004-0.008 AUC
SUM = np.int64  # fixed point: integer sums do not depend on the order of rows, threads or chunks
ROW = np.int32  # row ids: 2**31 rows are beyond one machine's table

MISSING_CODE = 0  # known codes are 1 .. n_codes, so that missing sorts apart and a code fits an unsigned type
MAX_CODES = 65_535
SUM_BITS = 62  # a fixed-point sum stays below 2**62 in magnitude, one bit short of int64's range

# --- codes of choices -------------------------------------------------------------------------------------------

# families: which sums a scan keeps
MOMENTS = 0  # (weight, weighted target); regression and two classes
CLASSES = 1  # one weight per class; three classes or more

# criteria; two-class Gini is twice the variance of a 0/1 target, so SQUARED_ERROR serves it
SQUARED_ERROR = 0
GINI = 1
ENTROPY = 2
MISCLASSIFICATION = 3
SDR = 4
POISSON = 5
ABSOLUTE_ERROR = 6

# what a node asks
LEAF = 0
THRESHOLD = 1
SUBSET = 2
MULTIWAY = 3

# where missing values go while growing
LEARNED = 0
OWN_BRANCH = 1
SURROGATE = 2  # a split is judged by the rows whose value is known; the others go by what other features say

# how a textbook tree chooses among the tests of a node
BY_GAIN = 0
BY_RATIO = 1
BY_C45 = 2  # gain ratio among tests of at least average gain, with all of C4.5's conditions

# which open node is expanded next
DEPTH_FIRST = 0
BEST_FIRST = 1

# why the driver came back
DONE = 0
STOPPED = 1
NEEDS_ROOM = 2
NEEDS_THREADS = 3  # there is work for many threads

# positions in the driver's `state` and `control`
N_NODES, N_QUEUED, N_FREE, N_LEAVES, N_WORDS, LIST_LO, LIST_HI, N_SURROGATES, CONSTANT = range(9)
STATE_SIZE = 9
# of the driver of boosting: what is to be done, slot of the node at hand, its smaller child (of vectors; -1: it is the
# root), packed sum of the root, nodes in the batch, splits, open nodes that a batch may take, whether nodes were made
# ready that may not be needed, parts of the batch
PHASE, CURRENT_SLOT, SMALL_CHILD, ROOT_SUM, N_BATCH, N_SPLITS, N_UNREADY, HAS_GUESSED, N_PARTS = range(7, 16)
BOOST_STATE_SIZE = 16
# phases: pick the next open node, sum and search the root, choose its test after threads have summed and scanned it,
# choose the tests of children after threads have done the same for the nodes of a batch
PICK, ROOT, SUMMED, CHILDREN = range(4)
MOST_BATCH = 16  # nodes whose children are made ready side by side
NOT_LISTED, TOO_MANY = -1, 0  # of the bytes that a tree tests: see `RoutedRows`
WORD_LEAVES = 64  # of a tree whose leaves are bits of a word
MOST_AHEAD = 24  # nodes whose children are ready, and that are not split yet
CONTROL_STOP = 0
CONTROL_ROWS = 1  # rows that have reached a leaf: progress
CONTROL_SIZE = 2

EVERY_BRANCH = 3  # as branch of missing values: a row goes down all of them, its weight shared out as theirs is

MOST_BRANCHES = 3  # below, above, missing
MOST_BUCKETS = 4096  # of a counting sort: 16 kB of counts stay in the first-level cache
SMALL_SHIFT = 16  # bits of a position in the keys of the moments family; larger nodes have more rows than codes
LARGE_SHIFT = 32  # the same in the classes family
SUMS_PER_ROW = 8  # a histogram beats sorting up to this many sums (codes x classes of the node) per row
PAIR_ROWS = 64  # two classes: up to this many rows, comparing all pairs beats sorting
CODES_OF_WORD = 4  # of 16 bits, in the rows that trees grow on
AHEAD_BYTES = 1 << 18  # of a node's rows from which its features' codes are copied first: more than the second cache
PLAIN_LEVELS = 128  # of a category whose subsets are a bit for each level; those of more are packed, and smaller so
MOST_LEVELS = 63  # of a category whose levels, and a bit for missing, fit one word
PAIR_LANES = 8  # rows that the processor compares at a time
MOST_PAIR_WEIGHT = 511  # of a row, so that the sums of PAIR_ROWS rows fit 16 bits
MOST_PACKED_CLASSES = 1 << 14
LANES = 8  # rows that go down a tree together
ABREAST = 12  # rows that go down a tree of steps together
MOST_RANKS = 0xFFFF  # the rank of a missing value that is above all: those of thresholds are below
HOLDS_NODES, HOLDS_PLACES, HOLDS_CLASSES = range(3)  # what steps of leaves say: see `RankedTrees`
MOST_PLACES = 1 << 16  # of values in a row that steps ask for

MOST_SQUARED = 64  # classes of a node: with more, powers of their covariance are not computed
EXHAUSTIVE_LEVELS = 8  # 127 subsets; above, levels are ordered by their first principal component

# --- layouts: rows of two-dimensional arrays --------------------------------------------------------------------

# addends (int64): what a row adds to a sum; one row when every weight is 1 and no criterion asks for squares
TARGET, WEIGHT, SQUARE = range(3)  # class, or weighted target; weight; weighted square of the target

# features (int64)
N_CODES, IS_CATEGORICAL, MONOTONE, OFFSET, IS_LISTED, IS_BINNED = range(6)
FEATURE_ROWS = 6  # code c of feature j has its values at OFFSET + c - 1; a binned feature has several behind some codes
NUMBER = FEATURE_ROWS  # what the table calls a feature of CART, forests and extra-trees, see `table.flags`: a last row

# edges (float64): lowest and highest value behind each code
LOW, HIGH = range(2)

# totals (int64): sums over the rows of a node, and over its rows with a missing value
# SPREAD: squares as the noise of categories asks for them, plus 1; 0: not summed yet
N_ALL, W_ALL, S_ALL, Q_ALL, N_MISSING, W_MISSING, S_MISSING, Q_MISSING, SPREAD = range(9)
TOTALS_SIZE = 9

# bins (int64): the rows of a node with one code
BIN_CODE, BIN_N, BIN_SUM, BIN_WEIGHT, BIN_SQUARE = range(5)
BIN_ROWS = 5

# sums (int64): weights per class, for three classes or more; PRESENT lists the classes of the node
ALL, LEFT, RIGHT, MISSING, PRESENT = range(5)
# packed addends count the classes of the node from 0: RANK is a class's number, HELD the weight of each number
RANK, HELD = range(5, 7)
CLASS_ROWS = 7

# textbook trees: two more rows of the sums of classes, f(weight) per class on both sides of a cut
LEFT_POWER, RIGHT_POWER = range(5, 7)
TEXTBOOK_CLASS_ROWS = 7
# of their `state`, behind N_NODES and N_QUEUED: rows of `distributions`; entries that the next node wants room for;
# branches that were raised
N_MIXED, N_ENTRIES, N_RAISED = range(2, 5)
TEXTBOOK_STATE_SIZE = 5

# boosting: the same `bins` without squares; sums are packed
BOOST_BIN_ROWS = 4

SUM_SHIFT = 32  # a packed sum is gradient << 32 | hessian
NARROW_CODES = 256  # of a feature that takes one byte, missing included
# From one narrow feature to the next in a histogram: 64 bytes more than needed. At 2,048 bytes sums of equal codes of
# every other feature would differ by whole pages, and a processor takes a load for dependent on a store at such a
# distance: where most rows have the same codes, as in kddcup99, a tree took three times as long.
HISTOGRAM_STRIDE = NARROW_CODES + 8
GAIN_LANES = 8  # float64 of a vector of 512 bits: gains that are worked out at once
SHARD_ROWS = 256  # neighbouring rows of a table that go to one shard

PLANE_LEAVES = 16  # of trees as bits: leaves in a plane; see `kernels.predict.bits`
FLAG_LEVELS = PLANE_LEAVES - 1  # of a category whose levels, and the missing one, are bits of 16
SYMMETRIC_ROWS = 1024  # rows of a block that symmetric trees are asked for; see `kernels.predict.symmetric`
SYMMETRIC_TREES = 8  # whose leaves are added up together
SYMMETRIC_TESTS = 3  # of a tree that are asked together
SHAP_ROWS = 64  # rows that go through a tree together for SHAP values: loops over them are what costs
SHAP_POINTS = 8  # of a quadrature that are held at once

# the head of a forest as one array (uint64); see `kernels.predict.one_row`
N_TREES, WIDTH, N_FEATURES, HAS_SHARES, MOST_STEPS = range(5)
N_CELLS = 5  # of what a kernel writes: the sums, then scratch
DIVISOR = 6  # of the sums, the bits of a float64
PLACE_BITS = 7  # of a step; 0: nodes have links. From here on, see `kernels.predict.ranked_row`
N_COLUMNS, AT_COLUMNS, AT_SAID = range(8, 11)
HEAD_SIZE = 11
COLUMN_WORDS = 8
TREES = 16  # that one row goes down together
