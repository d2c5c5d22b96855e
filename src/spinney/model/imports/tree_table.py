"""The nodes of another library's trees, as every reader lists them, and the forest that is made of them.

A reader says of each node which feature it asks for, where its two branches lead and what its leaf says. Here the nodes
are put into our order (children side by side, behind their parent), what the library keeps of its training rows is
summed from the leaves up, and everything that a file may have wrong is found: branches that lead out of the tree, or
back into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._node_layout import WORD_BITS, pack_leaf, pack_link, pack_test
from spinney._types import SUBSET, THRESHOLD
from spinney.model.container import BrokenFileError
from spinney.tree.forest import Forest, fit_impurity, narrow_weights, starts
from spinney.tree.linear import LinearLeaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spinney.tree.structure import Legend

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

NO_CHILD = -1
MOST_WORDS = 1 << 24  # of all bitsets: a few letters of a file may ask for thousands of levels
MOST_ROWS = 1 << 31  # that a node is said to have had
LEAST_WEIGHT = 2.0**-45  # of the heaviest leaf: what a leaf counts for that no training row came to
COUNT_TOLERANCE = 1e-9  # of the weight of a leaf
MOST_GAIN = 1e30  # of a test, so that sums of them stay within float32


class TreeNodes(NamedTuple):
    """The nodes of one tree, arrays (n_nodes,); node 0 is the root.

    Attributes
    ----------
    left, right : int64
        Nodes of the same tree; NO_CHILD in both for a leaf.
    feature : int64
        What a node asks for; any number for a leaf.
    cut : float64
        A threshold: values up to it go left. Of a subset its place in `subsets`, of a leaf its value.
    is_missing_left : bool
    weight : float64
        Training weight of each leaf.
    n_rows : float64
        Training rows of each leaf.
    gain : float64
        What each test has gained, NaN where the library does not say; or impurities of nodes, see `is_impurity`.
    subsets : list of bool arrays (n_levels,)
        Levels that go left.
    is_subset : bool, or None where no node asks for a subset
    is_impurity : bool
        Whether `gain` holds impurities.
    shares : float64 (n_nodes, n_classes), or None for numbers
        Shares of the classes in each leaf.
    terms : dict of leaf to (features, coefficients), or None
        What linear leaves add to their value.
    """

    left: Whole
    right: Whole
    feature: Whole
    cut: Floats
    is_missing_left: NDArray[np.bool_]
    weight: Floats
    n_rows: Floats
    gain: Floats
    subsets: Sequence[NDArray[np.bool_]] = ()
    is_subset: NDArray[np.bool_] | None = None
    is_impurity: bool = False
    shares: Floats | None = None
    terms: dict[int, tuple[Whole, Floats]] | None = None


class Walk(NamedTuple):
    """Nodes of all trees in our order."""

    order: Whole  # (n_reached,): places of nodes before
    child: Whole  # (n_reached,): where branch 0 leads, in the new order; of a leaf 0
    first: Whole  # (n_trees + 1,)
    levels: list[Whole]  # inner nodes of each depth, in the new order


def join_nodes(
    trees: Iterable[TreeNodes], n_levels: NDArray[np.int32], legend: Legend | None, n_classes: int = 0
) -> Forest:
    """The forest of these trees, whose nodes are checked."""
    nodes = list(trees)
    if not nodes:
        raise BrokenFileError("there are no trees")
    check_sizes(nodes)
    first = starts([len(tree.left) for tree in nodes])
    tree_of = np.repeat(np.arange(len(nodes)), np.diff(first))
    left, right = (np.concatenate(parts) for parts in ([t.left for t in nodes], [t.right for t in nodes]))
    walk = walk_down(left, right, first, tree_of)
    column = {
        name: np.concatenate([np.asarray(getattr(tree, name)) for tree in nodes])[walk.order]
        for name in ("feature", "cut", "is_missing_left", "weight", "n_rows", "gain")
    }
    is_leaf = left[walk.order] == NO_CHILD
    tree_of = tree_of[walk.order]
    is_subset = np.concatenate(
        [np.zeros(len(tree.left), bool) if tree.is_subset is None else tree.is_subset for tree in nodes]
    )[walk.order]
    is_subset &= ~is_leaf
    check_features(column["feature"], is_leaf, is_subset, n_levels, tree_of)
    cut, subsets, first_word = place_subsets(nodes, column, is_subset, tree_of, n_levels)
    local = np.arange(len(walk.order)) - walk.first[tree_of]
    kind = np.where(is_subset, SUBSET, THRESHOLD)
    feature = np.where(is_leaf, 0, column["feature"]).astype(np.int64)
    test = pack_test(feature, np.where(column["is_missing_left"], 0, 1).astype(np.int64), kind)
    stay = pack_leaf(local, len(n_levels))
    link = np.where(is_leaf, stay, pack_link(np.where(is_leaf, 0, walk.child - walk.first[tree_of]), test))
    cut, distributions, first_mixed = place_shares(nodes, cut, is_leaf, walk, tree_of, n_classes)
    weight = sum_leaves(sound_weights(column["weight"], is_leaf, tree_of), walk)
    n_rows = sum_leaves(sound_rows(column["n_rows"], is_leaf, walk), walk)
    gain = column["gain"]
    if np.isnan(gain).any():
        gain = np.where(np.isnan(gain), spread_of_branches(np.where(is_leaf, cut, 0.0), weight, walk), gain)
    impurity = find_impurities(gain, weight, walk, is_given=nodes[0].is_impurity)
    if n_classes:
        distributions = count_classes(distributions, weight[is_mixed(cut, is_leaf)])
    hot = np.stack([cut.view(np.uint64), link], axis=1)
    kept = narrow_weights(weight)
    forest = Forest(
        hot=hot, n_rows=n_rows.astype(np.uint32), weight=kept, impurity=fit_impurity(impurity, kept),
        first_node=walk.first, first_word=first_word, first_mixed=first_mixed, subsets=subsets,
        distributions=distributions, impurity_exponent=0, n_classes=n_classes, n_levels=n_levels, legend=legend,
        linear=place_terms(nodes, walk, first),
    )  # fmt: skip
    forest.check()
    return forest


def check_sizes(trees: list[TreeNodes]) -> None:
    """Every node of a tree has an entry in each of its arrays."""
    for number, tree in enumerate(trees):
        sizes = {len(getattr(tree, name)) for name in TreeNodes._fields[:8]}
        if len(sizes) != 1 or 0 in sizes:
            raise BrokenFileError(f"tree {number}: its arrays have {sorted(sizes)} entries: they must have one a node")


def check_features(
    feature: Whole,
    is_leaf: NDArray[np.bool_],
    is_subset: NDArray[np.bool_],
    n_levels: NDArray[np.int32],
    tree_of: Whole,
) -> None:
    """Tests ask for columns that there are, thresholds of numbers and subsets of categories."""
    is_known = is_leaf | ((feature >= 0) & (feature < len(n_levels)))
    if not is_known.all():
        at = int(np.argmin(is_known))
        raise BrokenFileError(f"tree {tree_of[at]}: a test asks for column {feature[at]} of {len(n_levels)}")
    is_category = n_levels[np.where(is_leaf, 0, feature)] > 0
    fits = is_leaf | (is_category == is_subset)
    if not fits.all():
        at = int(np.argmin(fits))
        wrong = "a set of categories, but it has none" if is_subset[at] else "a threshold, but it has categories"
        raise BrokenFileError(f"tree {tree_of[at]}: column {feature[at]} is asked for {wrong}")


def walk_down(left: Whole, right: Whole, first: Whole, tree_of: Whole) -> Walk:
    """All trees from their roots down at once; nodes that no branch leads to are left out."""
    size = np.diff(first)
    is_inner = (left != NO_CHILD) | (right != NO_CHILD)
    fits = ~is_inner | ((left >= 0) & (left < size[tree_of]) & (right >= 0) & (right < size[tree_of]))
    if not fits.all():
        raise BrokenFileError(f"tree {tree_of[int(np.argmin(fits))]}: a branch leads out of the tree")
    is_seen = np.zeros(len(left), bool)
    at = first[:-1].copy()
    is_seen[at] = True
    layers = [at]
    while len(at):
        inner = at[is_inner[at]]
        at = np.stack([left[inner], right[inner]], axis=1).reshape(-1) + np.repeat(first[tree_of[inner]], 2)
        if is_seen[at].any() or len(np.unique(at)) < len(at):
            raise BrokenFileError("two branches lead to the same node: that is no tree")
        is_seen[at] = True
        layers.append(at)
    reached = np.concatenate(layers)
    order = reached[np.argsort(tree_of[reached], kind="stable")]
    place = np.zeros(len(left), np.int64)
    place[order] = np.arange(len(order))
    child = np.where(is_inner[order], place[np.where(is_inner, left + first[tree_of], 0)[order]], 0)
    levels = [place[layer[is_inner[layer]]] for layer in layers]
    return Walk(order, child, starts(np.bincount(tree_of[order], minlength=len(size)).tolist()), levels)


def sum_leaves(of_leaves: Any, walk: Walk) -> Any:
    """A quantity of leaves, so that each node has the sum of its leaves."""
    total = of_leaves.copy()
    for inner in reversed(walk.levels):
        total[inner] = total[walk.child[inner]] + total[walk.child[inner] + 1]
    return total


def sound_weights(weight: Floats, is_leaf: NDArray[np.bool_], tree_of: Whole) -> Floats:
    """Positive weights of leaves: what is no weight counts next to nothing; 0 for tests."""
    weight = np.where(is_leaf & np.isfinite(weight) & (weight > 0.0) & (weight < MOST_GAIN), weight, 0.0)
    most = np.zeros(int(tree_of[-1]) + 1)
    np.maximum.at(most, tree_of, weight)
    least = np.where(most > 0.0, most * LEAST_WEIGHT, 1.0)[tree_of]
    return np.where(is_leaf, np.maximum(weight, least), 0.0)


def sound_rows(n_rows: Floats, is_leaf: NDArray[np.bool_], walk: Walk) -> Whole:
    """Rows of leaves, at least one each, and not more in a tree than a node can count."""
    rows = np.where(is_leaf & np.isfinite(n_rows), np.clip(np.rint(n_rows), 1.0, MOST_ROWS), 0.0)
    rows[is_leaf] = np.maximum(rows[is_leaf], 1.0)
    total = np.add.reduceat(rows, walk.first[:-1])
    share = np.minimum(MOST_ROWS / total, 1.0)[np.repeat(np.arange(len(total)), np.diff(walk.first))]
    return np.where(is_leaf, np.maximum(np.floor(rows * share), 1.0), 0.0).astype(np.int64)


def find_impurities(gain: Floats, weight: Floats, walk: Walk, *, is_given: bool) -> Floats:
    """The impurity of each node: that which the library has, or, times its weight, all gains of the tests below it."""
    gain = np.where(np.isfinite(gain), np.clip(gain, 0.0, MOST_GAIN), 0.0)
    loss = gain * weight if is_given else np.zeros(len(gain))
    for inner in reversed(walk.levels):
        below = loss[walk.child[inner]] + loss[walk.child[inner] + 1]
        loss[inner] = np.maximum(loss[inner], below) if is_given else gain[inner] + below
    return loss / weight


def spread_of_branches(value: Floats, weight: Floats, walk: Walk) -> Floats:
    """What each test takes off the weighted variance of the values of the leaves."""
    mean, gain = value.copy(), np.zeros(len(value))
    for inner in reversed(walk.levels):
        child = walk.child[inner]
        share = weight[child] / weight[inner]
        apart = mean[child] - mean[child + 1]
        mean[inner] = mean[child + 1] + share * apart
        gain[inner] = weight[inner] * share * (1.0 - share) * (apart * apart)
    return gain


def place_subsets(
    trees: list[TreeNodes],
    column: dict[str, NDArray[Any]],
    is_subset: NDArray[np.bool_],
    tree_of: Whole,
    n_levels: NDArray[np.int32],
) -> tuple[Floats, NDArray[np.uint64], Whole]:
    """Cuts of nodes, where those of subsets are places of words; the words, and where those of each tree begin."""
    cut = np.ascontiguousarray(column["cut"], np.float64)
    words: list[NDArray[np.uint64]] = []
    n_words = np.zeros(len(trees), np.int64)
    n_all = 0
    for at in np.flatnonzero(is_subset).tolist():
        t = int(tree_of[at])
        levels = trees[t].subsets[int(cut[at])]
        n = -(-int(n_levels[column["feature"][at]]) // WORD_BITS)
        n_all += n
        if n_all > MOST_WORDS:
            raise BrokenFileError("the sets of categories are too many, of too many levels")
        bits = np.zeros(n * WORD_BITS, np.uint8)
        bits[: len(levels)] = levels
        words.append(np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64))
        cut[at] = n_words[t]
        n_words[t] += n
    return cut, np.concatenate([np.zeros(0, np.uint64), *words]), starts(n_words.tolist())


def is_mixed(cut: Floats, is_leaf: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Leaves for classes that have a row of shares."""
    return is_leaf & (cut < 0.0)


def count_classes(shares: Floats, weight: Floats) -> Floats:
    """Weights of the classes of mixed leaves: whole numbers where their shares come from those."""
    weights = shares * weight[:, None]
    counts = np.rint(weights)
    is_count = np.all(np.abs(weights - counts) <= COUNT_TOLERANCE * weight[:, None], axis=1)
    is_count &= counts.sum(axis=1) == weight
    return np.where(is_count[:, None], counts, weights)


def place_terms(trees: list[TreeNodes], walk: Walk, first: Whole) -> LinearLeaves | None:
    """The terms of linear leaves in our order; None where no tree has any."""
    found = {int(first[t]) + node: terms for t, tree in enumerate(trees) for node, terms in (tree.terms or {}).items()}
    if not found:
        return None
    kept = [found.get(node) for node in walk.order.tolist()]
    n_terms = [0 if terms is None else len(terms[0]) for terms in kept]
    parts = [terms for terms in kept if terms is not None]
    feature = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    coefficient = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
    return LinearLeaves(starts(n_terms), feature.astype(np.int32), coefficient, np.zeros(len(feature)))


def place_shares(
    trees: list[TreeNodes], cut: Floats, is_leaf: NDArray[np.bool_], walk: Walk, tree_of: Whole, n_classes: int
) -> tuple[Floats, Floats, Whole]:
    """Cuts of nodes, where a leaf for classes has its class or the place of its shares; the shares; their starts."""
    if not n_classes:
        return cut, np.zeros((0, 0)), np.zeros(len(trees) + 1, np.int64)
    shares = np.concatenate([np.asarray(tree.shares, np.float64) for tree in trees])[walk.order]
    if shares.shape[1:] != (n_classes,):
        raise BrokenFileError(f"leaves have shares of {shares.shape[1:]} classes, not of {n_classes}")
    is_pure = np.count_nonzero(shares, axis=1) == 1
    cut = np.where(is_leaf, shares.argmax(axis=1).astype(np.float64), cut)
    mixed = is_leaf & ~is_pure
    n_mixed = np.bincount(tree_of[mixed], minlength=len(trees))
    first = starts(n_mixed.tolist())
    cut[mixed] = -1.0 - (np.arange(int(first[-1])) - first[tree_of[mixed]])
    return cut, shares[mixed], first
