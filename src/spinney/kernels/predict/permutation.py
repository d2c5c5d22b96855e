"""Route rows that take some of their values from other rows: what permuting a feature does to a tree.

Words: a *place* is the position of a row in a list of rows (those out of the bag of a tree); a *unit* is what is
permuted as one, a feature or a group of them; `source[u, i]` is the place that the row at place i takes the values of
unit u from. No table is permuted: a test that asks for a feature of unit u reads it from the source's place.

Rows go down the tree together, node by node, as in growing: a node's test is looked at once for all its rows, and no
row waits for another's memory. At a test of unit u the branch of the source's value is found as well. While the two
agree the permuted row is where the row is; where they part a *walker* begins, (unit, place), which goes on by itself.
Units that a path does not test, or that never part, cost nothing.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import MOST_BRANCHES, THRESHOLD

from ..common.branch import branch_of_value
from ..common.node_layout import child_of_link, feature_of_link, kind_of_link, missing_of_link
from ..common.rng import below, fold
from ..common.structs import AskedTest, PackedTree, Permuted, RouteChanges, RouteScratch, RouteStack

NONE = np.uint64(0)
ONE = np.uint64(1)
PERMUTE = np.uint64(0x7065726D)  # purpose of a draw: the letters of "perm"

# a walker packs `unit << 32 | place`
PLACE_BITS = 32
PLACE_MASK = (1 << PLACE_BITS) - 1


@door
def shuffle(
    seed: np.uint64,
    tree: np.uint64,
    unit: np.uint64,
    repeat: np.uint64,
    order: np.ndarray,  # (n,) int32: places, stratum by stratum
    begin: np.ndarray,  # (n_strata + 1,) int64: where each stratum begins in `order`
    mixed: np.ndarray,  # (n,) int32 scratch
    source: np.ndarray,  # (n,) int32, written
) -> None:
    """Draw a uniform permutation of the places of each stratum (Knuth, volume 2, algorithm 3.4.2 P, inside out)."""
    key = fold(fold(fold(fold(seed, PERMUTE), tree), unit), repeat)
    for stratum in range(len(begin) - 1):
        first = begin[stratum]
        for k in range(first, begin[stratum + 1]):
            at = first + below(key, k, k - first + 1)
            mixed[k] = mixed[at]
            mixed[at] = order[k]
    for k in range(len(order)):
        source[np.int64(order[k])] = mixed[k]


@inlined
def ask(tree: PackedTree, node: int) -> AskedTest:
    """The test of a node."""
    link = tree.links[node, 1]
    kind = np.int64(kind_of_link(link))
    cut = tree.cuts[node, 0]
    if kind != THRESHOLD:
        cut += np.float64(tree.first_word)
    return AskedTest(np.int64(feature_of_link(link)), kind, cut, np.int64(missing_of_link(link)))


@inlined
def take(columns: np.ndarray, place: np.uint64, test: AskedTest, subsets: np.ndarray) -> int:
    """Branch of the row at a place at a test."""
    value = np.float64(columns[np.uint64(test.feature), place])
    return branch_of_value(value, test.kind, test.cut, test.missing, subsets)


@inlined
def push(stack: RouteStack, n_open: int, node: int, lo: int, hi: int, walk_lo: int, walk_hi: int) -> int:
    """Put a node on the stack if anything goes there; return the height of the stack."""
    stack.node[n_open] = node
    stack.lo[n_open] = lo
    stack.hi[n_open] = hi
    stack.walk_lo[n_open] = walk_lo
    stack.walk_hi[n_open] = walk_hi
    return n_open + np.int64(hi > lo or walk_hi > walk_lo)


@inlined
def join_lists(lists: np.ndarray, end_0: int, end_1: int, end_2: int) -> None:
    """Move lists 1 and 2 behind list 0, which ends at end_0, so that they end at end_1 and end_2."""
    for i in range(end_1 - end_0):
        lists[0, end_0 + i] = lists[1, i]
    for i in range(end_2 - end_1):
        lists[0, end_1 + i] = lists[2, i]


@inlined
def note_changes(walkers: np.ndarray, lo: int, hi: int, leaf: int, n_changes: int, changes: RouteChanges) -> int:
    """List the walkers that have come to a leaf; return how many are listed."""
    for i in range(lo, hi):
        changes.unit[n_changes] = walkers[0, i] >> PLACE_BITS
        changes.place[n_changes] = walkers[0, i] & PLACE_MASK
        changes.leaf[n_changes] = leaf
        n_changes += 1
    return n_changes


@door
def reroute(
    columns: np.ndarray,  # (n_features, n) float32 or float64: values of the rows at the places
    permuted: Permuted,
    tree: PackedTree,
    begin: int,  # first place to do
    scratch: RouteScratch,
    leaf: np.ndarray,  # (n,) int32, written: leaves of the rows as they are
    changes: RouteChanges,  # written
) -> int:
    """Route rows as they are and with each unit permuted; return the number of changes.

    A unit that does not part from the row's path ends where the row ends, and is not listed.
    """
    n_features = np.int64(columns.shape[0])
    source = permuted.source
    subsets = tree.subsets
    places = scratch.places
    walkers = scratch.walkers
    has_parted = scratch.has_parted
    stack = scratch.stack
    n = np.int64(has_parted.shape[1])
    first = np.uint64(begin)
    for i in range(n):
        places[0, i] = begin + i
    n_open = push(stack, 0, tree.root, 0, n, 0, 0)
    n_changes = np.int64(0)
    while n_open > 0:
        n_open -= 1
        node = stack.node[n_open]
        lo = stack.lo[n_open]
        hi = stack.hi[n_open]
        walk_lo = stack.walk_lo[n_open]
        walk_hi = stack.walk_hi[n_open]
        test = ask(tree, node)
        if test.feature == n_features:
            for i in range(lo, hi):
                leaf[np.int64(places[0, i])] = node - tree.root
            n_changes = note_changes(walkers, walk_lo, walk_hi, node - tree.root, n_changes, changes)
            continue
        unit = np.int64(permuted.unit_of[test.feature])
        # Everything goes to the lists of all branches, and the one list that it belongs to grows: no jump to predict.
        # List 0 grows where the node's own list was, which is the last one in use; the others are moved behind it.
        # Unsigned, because a signed index is asked each time whether it counts from the end: a fifth of the time.
        at_unit = np.uint64(unit)
        w0 = np.uint64(walk_lo)
        w1 = NONE
        w2 = NONE
        for i in range(walk_lo, walk_hi):
            walker = walkers[0, i]
            place = np.uint64(walker & PLACE_MASK)
            if walker >> PLACE_BITS == unit:
                place = np.uint64(source[at_unit, place])
            branch = take(columns, place, test, subsets)
            walkers[0, w0] = walker
            walkers[1, w1] = walker
            walkers[2, w2] = walker
            w0 += np.uint64(branch == 0)
            w1 += np.uint64(branch == 1)
            w2 += np.uint64(branch == 2)
        n0 = np.uint64(lo)
        n1 = NONE
        n2 = NONE
        for i in range(lo, hi):
            place = np.uint64(places[0, i])
            branch = take(columns, place, test, subsets)
            if unit >= 0:
                other = take(columns, np.uint64(source[at_unit, place]), test, subsets)
                was_parted = np.uint64(has_parted[at_unit, place - first])
                is_new = np.uint64(other != branch) & (ONE - was_parted)
                has_parted[at_unit, place - first] = was_parted | is_new
                walker = (unit << PLACE_BITS) | np.int64(place)
                walkers[0, w0] = walker
                walkers[1, w1] = walker
                walkers[2, w2] = walker
                w0 += is_new & np.uint64(other == 0)
                w1 += is_new & np.uint64(other == 1)
                w2 += is_new & np.uint64(other == 2)
            places[0, n0] = place
            places[1, n1] = place
            places[2, n2] = place
            n0 += np.uint64(branch == 0)
            n1 += np.uint64(branch == 1)
            n2 += np.uint64(branch == 2)
        end_0 = np.int64(n0)
        end_1 = end_0 + np.int64(n1)
        end_2 = end_1 + np.int64(n2)
        walk_0 = np.int64(w0)
        walk_1 = walk_0 + np.int64(w1)
        walk_2 = walk_1 + np.int64(w2)
        join_lists(walkers, walk_0, walk_1, walk_2)
        join_lists(places, end_0, end_1, end_2)
        child = tree.root + np.int64(child_of_link(tree.links[node, 1]))
        n_open = push(stack, n_open, child, lo, end_0, walk_lo, walk_0)
        n_open = push(stack, n_open, child + 1, end_0, end_1, walk_0, walk_1)
        n_open = push(stack, n_open, child + 2, end_1, end_2, walk_1, walk_2)
    return n_changes


@door
def make_strata(
    columns: np.ndarray,  # as in `reroute`
    nodes: np.ndarray,  # (n_tests,) int64: nodes whose tests part the rows, in this order
    tree: PackedTree,
    names: np.ndarray,  # (MOST_BRANCHES * most,) int32, -1 in and out: number of the stratum of each (stratum, branch)
    most: int,  # strata
    finer: np.ndarray,  # (n,) int32 scratch
    stratum: np.ndarray,  # (n,) int32, zeros; written: the stratum of each place
) -> int:
    """Part the rows by the tests of some nodes, wherever in the tree they stand; return the number of strata.

    The first test that would make more than `most` strata ends it.
    """
    n = np.int64(columns.shape[1])
    n_strata = np.int64(1)
    for t in range(len(nodes)):
        test = ask(tree, nodes[t])
        n_finer = np.int64(0)
        for i in range(n):
            branch = take(columns, np.uint64(i), test, tree.subsets)
            at = np.int64(stratum[i]) * MOST_BRANCHES + branch
            if names[at] < 0:
                names[at] = n_finer
                n_finer += 1
            finer[i] = names[at]
        for at in range(n_strata * MOST_BRANCHES):
            names[at] = -1
        if n_finer > most:
            break
        for i in range(n):
            stratum[i] = finer[i]
        n_strata = n_finer
    return n_strata
