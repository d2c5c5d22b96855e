"""The rows of a node along the feature that it tests: a histogram, and where the test cuts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import SUBSET, THRESHOLD
from spinney.reading.wording import level_name, rounded, rounded_cut
from spinney.study.evidence import NodePicture
from spinney.table.columns import open_columns
from spinney.table.schema import Schema, encode
from spinney.tree.predict import find_leaves, passed_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

MAX_ROWS = 50_000  # by which the pictures are drawn
MAX_PICTURES = 60  # of the nodes with most rows
N_BINS = 20
MAX_LEVELS = 16  # on both sides of the cut, the commonest


def picture_nodes(tree: Tree, schema: Schema, X: Any, goal: NDArray[Any], seed: int = 0) -> dict[int, NodePicture]:
    """Pictures of the nodes with most rows that test a number, or a set of levels.

    tree: of the columns of X, as the schema has them; goal: (n_rows,) class codes, or numbers.
    """
    columns = open_columns(X)
    rows = np.sort(np.random.default_rng(seed).permutation(columns.n_rows)[:MAX_ROWS])
    values, goal = encode(columns, schema)[rows], goal[rows]
    nodes, ends = passed_nodes(tree, find_leaves(tree, values).astype(np.int64))
    order = np.argsort(nodes, kind="stable")
    owner = np.repeat(np.arange(len(rows)), np.diff(ends))[order]
    first = np.searchsorted(nodes[order], np.arange(tree.n_nodes + 1))
    tests = np.flatnonzero(np.isin(tree.kind, (THRESHOLD, SUBSET)) & ~tree.is_leaf & (np.diff(first) > 0))
    heaviest = tests[np.argsort(-np.diff(first)[tests], kind="stable")[:MAX_PICTURES]]
    found = {}
    for node in heaviest.tolist():
        here = owner[first[node] : first[node + 1]]
        found[node] = picture_node(tree, node, values[here, tree.feature[node]], goal[here])
    return found


def picture_node(tree: Tree, node: int, values: NDArray[np.float64], goal: NDArray[Any]) -> NodePicture:
    """The picture of one node; values: of the feature that it tests, in its rows."""
    known = ~np.isnan(values)
    n_missing = int((~known).sum())
    if tree.kind[node] == THRESHOLD:
        finite = known & np.isfinite(values)
        cut, name = float(tree.threshold[node]), rounded_cut(float(tree.threshold[node]))
        if not np.isfinite(cut):  # it tells known values from missing ones, all on one side
            cut, name = float(values[finite].max()) if finite.any() else 0.0, ""
        edges = place_edges(values[finite], cut)
        bins = np.clip(np.searchsorted(edges, values[finite], "left") - 1, 0, len(edges) - 2)
        marks = tuple(map(rounded, (edges[0], edges[-1])))
        share = float((cut - edges[0]) / (edges[-1] - edges[0]))
        return NodePicture(marks, name, share, count_bins(tree, bins, goal[finite], len(edges) - 1), n_missing)
    codes = values[known].astype(np.int64)
    counts = np.bincount(codes, minlength=int(tree.n_levels[tree.feature[node]]))
    common = np.argsort(-counts, kind="stable")[:MAX_LEVELS]
    goes_left = tree.subset(node)
    shown = sorted(common[counts[common] > 0].tolist(), key=lambda level: (not goes_left[level], level))
    place = np.full(len(counts), -1)
    place[shown] = np.arange(len(shown))
    is_shown = place[codes] >= 0
    names = tuple(level_name(tree, int(tree.feature[node]), level) for level in shown)
    share = sum(bool(goes_left[level]) for level in shown) / max(len(shown), 1)
    counted = count_bins(tree, place[codes[is_shown]], goal[known][is_shown], len(shown))
    return NodePicture(names, "", share, counted, n_missing, is_number=False)


def place_edges(values: NDArray[np.float64], cut: float) -> NDArray[np.float64]:
    """Edges of bins of one width that hold all values; no bin lies on both sides of the cut."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (cut, cut)
    low, high = min(low, cut), max(high, cut)
    if not low < high or not np.isfinite(high - low):
        return np.array([cut - 0.5, cut, cut + 0.5])
    width = (high - low) / N_BINS
    n_left = max(int(np.ceil((cut - low) / width)), 1)
    n_right = max(int(np.ceil((high - cut) / width)), 1)
    return cut + width * np.arange(-n_left, n_right + 1, dtype=np.float64)


def count_bins(
    tree: Tree, bins: NDArray[np.int64], goal: NDArray[Any], n_bins: int
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """For each bin its rows: by class as (code, rows), or of numbers as (rows, mean of the target)."""
    rows = np.bincount(bins, minlength=n_bins)
    if not tree.n_classes:
        sums = np.bincount(bins, goal, n_bins)
        return tuple(((int(n), float(s / n)),) if n else () for n, s in zip(rows, sums, strict=True))
    table = np.bincount(bins * tree.n_classes + goal, minlength=n_bins * tree.n_classes).reshape(n_bins, -1)
    return tuple(tuple((int(k), float(one[k])) for k in np.flatnonzero(one)) for one in table)
