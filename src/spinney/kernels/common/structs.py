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
