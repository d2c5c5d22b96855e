"""The package's grower behind the arguments of `naive.grow`, and its trees as naive nodes."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass

import numpy as np

import naive
from spinney import _jit
from spinney._types import LEARNED, OWN_BRANCH, SUBSET, SURROGATE
from spinney.estimators.cart import FREE_LEVELS
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, label_target, output_target, value_target
from spinney.table.schema import NO_LEVEL, Schema
from spinney.tree.grow import grow_tree
from spinney.tree.grow_params import GrowParams

CLOSE = 1e-9
MISSING = {"learned": LEARNED, "branch": OWN_BRANCH, "surrogate": SURROGATE}


def compile_door(function):
    """Compile a function that calls kernels as doors are, but for the store: Numba's own way would not link them."""
    import numba

    from spinney._jit.inner_compiler import door_options

    return numba.njit(nogil=True, error_model="numpy", _nrt=False, **door_options())(function)


class ColumnTable:
    """Columns of floats as the coder reads them."""

    stored = None  # it is not sparse
    shelf = least_columns = None  # and not on disk
    is_short = False  # its numbers have 64 bits
    floats = None  # its columns are not side by side

    def __init__(self, columns, levels):
        self.columns = np.array(columns, np.float64).reshape(len(levels), -1)
        self.n_rows = self.columns.shape[1]
        self.schema = Schema(None, tuple(levels))

    def indices(self, j):
        """Level indices of a category."""
        return np.where(np.isnan(self.columns[j]), NO_LEVEL, self.columns[j]).astype(np.uint16)

    def block(self, start, stop, out=None):
        assert out is None
        return self.columns[start:stop].copy()


def compiled():
    return _jit.load_compiled()


def grow(
    columns,
    y,
    weights=None,
    *,
    criterion,
    n_classes=None,
    is_categorical=None,
    n_levels=None,
    missing="learned",
    monotonic=None,
    kernels=None,
    max_bins=65_535,
    **parameters,
):
    """Grow a tree as `naive.grow` does; `kernels` chooses compiled (the default) or interpreted ones."""
    kernels = kernels or compiled()
    is_categorical = is_categorical or [False] * len(columns)
    n_levels = n_levels or [0] * len(columns)
    levels = [tuple(range(n)) if is_it else None for n, is_it in zip(n_levels, is_categorical, strict=True)]
    table = ColumnTable(columns, levels)
    keep = None
    if weights is not None:
        keep = np.asarray(weights, np.float64) > 0
        weights = np.asarray(weights, np.float64)[keep]
    y = np.asarray(y, np.float64 if n_classes is None else np.int64)
    y = y if keep is None else y[keep]
    fixed = fix_weights(weights, len(y))
    codes = code_table(table, fixed.values, max_bins, kernels, keep)
    if isinstance(n_classes, tuple):
        target = label_target(y, np.array(n_classes), fixed)
    elif y.ndim == 2:
        target = output_target(y, fixed)
    elif n_classes is None:
        has_square = criterion == "sdr" or parameters.get("min_target_std", 0.0) > 0.0
        target = value_target(y, fixed, has_square=has_square, has_origin=criterion == "poisson")
    else:
        target = class_target(y, n_classes, fixed)
    if parameters.get("cat_penalty") == "auto":
        parameters |= {"cat_penalty": 1.0, "free_levels": FREE_LEVELS}
    params = GrowParams(criterion, missing=MISSING[missing], **parameters)
    return grow_tree(codes, target, fixed, params, kernels, None if monotonic is None else np.int8(monotonic))


def grow_table(table, **parameters):
    """Grow on a `strategies.SmallTable`."""
    return grow(table.columns, table.y, table.weights, **table.data, **parameters)


def impurity(tree):
    """Impurity of every node."""
    return np.ldexp(tree.impurity, tree.impurity_exponent)


def levels_at(tree, word, feature):
    """The levels of a bitset."""
    n_levels = int(tree.n_levels[feature])
    return frozenset(k for k in range(n_levels) if int(tree.subsets[word + k // 64]) >> (k % 64) & 1)


def surrogates_of(tree, node):
    """The surrogates of a node as naive ones."""
    held = tree.surrogates
    found = []
    for s in range(held.first[node], held.first[node + 1]) if held is not None else ():
        feature, threshold = int(held.feature[s]), float(held.threshold[s])
        subset = known = None
        if held.kind[s] == SUBSET:
            word = int(threshold)
            subset = levels_at(tree, word, feature)
            known = levels_at(tree, word + -(-int(tree.n_levels[feature]) // 64), feature)
            threshold = None
        numbers = float(held.agree[s]), float(held.adjusted[s])
        found.append(naive.Surrogate(feature, threshold, subset, known, bool(held.is_reversed[s]), *numbers))
    return found


def as_nodes(tree):
    """A tree as naive nodes, without gains."""
    values, impurities = tree.values(), impurity(tree)

    def node_of(k, depth):
        node = naive.Node(
            n_rows=int(tree.n_rows[k]),
            weight=float(tree.weight[k]),
            impurity=float(impurities[k]),
            value=values[k].tolist(),
            depth=depth,
        )
        if not tree.is_leaf[k]:
            node.feature = int(tree.feature[k])
            node.missing_branch = int(tree.missing_branch[k])
            if tree.kind[k] == SUBSET:
                node.subset = frozenset(np.flatnonzero(tree.subset(k)).tolist())
            else:
                node.threshold = float(tree.threshold[k])
            node.surrogates = surrogates_of(tree, k)
            first, n_branches = int(tree.first_child[k]), int(tree.n_branches[k])
            node.children = [node_of(first + b, depth + 1) for b in range(n_branches)]
        return node

    return node_of(0, 0)


def rule_of(node):
    """What must be equal to the last bit: the test, how many rows met it, how many branches it has."""
    return (
        node.n_rows,
        node.depth,
        node.feature,
        node.threshold,
        node.subset,
        node.missing_branch,
        len(node.children),
        [(s.feature, s.threshold, s.subset, s.known, s.is_reversed) for s in node.surrogates],
    )


def assert_same_tree(found, expected, *, has_bounds=False):
    """Equal structure; weights, impurities and values to nine digits.

    With monotone constraints (`has_bounds`) the value of an inner node is the mean of its leaves' values,
    which were moved inside their bounds: only leaves are compared then.
    """
    spread = max(expected.impurity, math.sqrt(expected.impurity))  # a mean of 0 is exact to the spread of what it sums
    for ours, theirs in zip(naive.walk(found), naive.walk(expected), strict=True):
        assert rule_of(ours) == rule_of(theirs)
        assert math.isclose(ours.weight, theirs.weight, rel_tol=CLOSE)
        for mine, other in zip(ours.surrogates, theirs.surrogates, strict=True):
            np.testing.assert_allclose([mine.agree, mine.adjusted], [other.agree, other.adjusted], rtol=CLOSE)
        # A variance is a difference of squares: its digits are those of the spread at the root.
        np.testing.assert_allclose(ours.impurity, theirs.impurity, rtol=CLOSE, atol=CLOSE * expected.impurity)
        if theirs.is_leaf or not has_bounds:
            scale = 1.0 if isinstance(theirs.value, list) else abs(theirs.value) + abs(expected.value) + spread
            np.testing.assert_allclose(ours.value, theirs.value, rtol=CLOSE, atol=CLOSE * scale)


def arrays_of(tree):
    """Every field of a tree by name, arrays as bytes: equal if and only if the trees are, to the last bit."""
    held = {field.name: getattr(tree, field.name) for field in fields(tree) if field.name != "legend"}
    held |= {name: arrays_of(value) for name, value in held.items() if is_dataclass(value)}
    return {name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in held.items()}
