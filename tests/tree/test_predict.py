"""Rows through arrays that no validator has seen: a walk ends, whatever they say."""

import numpy as np
import pytest

from hand_trees import packed
from spinney import RandomForestClassifier, _jit
from spinney._types import EVERY_BRANCH, LANES, MULTIWAY, THRESHOLD
from spinney.kernels.common.structs import AnyTree, LaneScratch, LeafAnswers, OpenNodes, PackedTrees, SurrogateTests


@pytest.fixture(params=["compiled", "interpreted"])
def k(request):
    return _jit.load_compiled() if request.param == "compiled" else _jit.interpreted()


def fixed(x):
    x.flags.writeable = False
    return x


def test_a_walk_in_a_circle_ends(k):
    """The root leads to its child, and that back to the root."""
    test = packed(0, 0, THRESHOLD)
    hot = fixed(np.array([[0, (1 << 32) | test], [0, (0 << 32) | test]], np.uint64))
    leaf = np.full((3, 1), -1, np.int32)
    zero = fixed(np.zeros(1, np.int64))
    k.predict.lanes.find(
        fixed(np.zeros((3, 5))),
        PackedTrees(hot.view(np.float64), hot, zero, fixed(np.zeros(0, np.uint64)), zero),
        LaneScratch(np.empty((LANES, 6)), np.empty(LANES, np.uint64)),
        leaf,
    )
    assert set(leaf[:, 0].tolist()) <= {0, 1}


def walk_one(tree, row):
    """The leaf of a row, by the fields of the tree."""
    node = 0
    while tree.first_child[node] > 0:
        value, cut = row[tree.feature[node]], tree.threshold[node]
        if np.isnan(value):
            branch = tree.missing_branch[node]
        elif tree.n_levels[tree.feature[node]]:
            word = int(tree.subsets[int(cut) + int(value) // 64])
            branch = 1 - (word >> (int(value) % 64) & 1)
        else:
            branch = int(value > cut)
        node = tree.first_child[node] + branch
    return node


@pytest.mark.parametrize("n_levels", [5, 64, 65, 130])
@pytest.mark.parametrize("is_missing", [False, True], ids=["known", "missing"])
def test_rows_find_their_leaves_by_masks_and_by_words(k, n_levels, is_missing):
    """Subsets of up to 64 levels may stand in their nodes; wider ones are looked up."""
    rng = np.random.default_rng(n_levels)
    n = 10 * n_levels  # so that every level is there
    values = np.column_stack([rng.permutation(n) % n_levels, rng.normal(size=n), rng.integers(0, 3, n)])
    if is_missing:
        values[rng.random(values.shape) < 0.2] = np.nan
    wave = np.where(np.isnan(values[:, 0]), 0.5, np.sin(values[:, 0] * 7.0))
    y = np.nan_to_num(wave + values[:, 1] * (values[:, 2] != 1)) > rng.normal(size=n)
    model = RandomForestClassifier(3, categorical_features=[0, 2], cat_penalty=0.0, random_state=0).fit(values, y)
    forest = model.forest_
    assert forest.masked.has_masks == (n_levels <= 64)
    rows = values[:60]
    expected = [[walk_one(tree, row) for tree in forest] for row in rows]
    for packed_trees in (forest.packed, forest.masked):
        leaf = np.full((len(rows), 3), -1, np.int32)
        scratch = LaneScratch(np.empty((24, 4)), np.empty(LANES, np.uint64))
        k.predict.lanes.find(fixed(rows.copy()), packed_trees, scratch, leaf)
        assert leaf.tolist() == expected


@pytest.mark.parametrize("missing", [0, EVERY_BRANCH])
def test_a_walk_of_any_tree_ends(k, missing):
    """Two nodes that are each other's children, by a level or by all of them."""
    value = np.nan if missing == EVERY_BRANCH else 0.0
    test = np.full(2, packed(0, missing, MULTIWAY), np.uint32)
    tree = AnyTree(
        fixed(test),
        first_child=fixed(np.array([1, 0], np.int32)),
        cut=fixed(np.zeros(2)),
        weight=fixed(np.ones(2)),
        n_branches=fixed(np.ones(2, np.int64)),
        subsets=fixed(np.zeros(0, np.uint64)),
    )
    none = [fixed(np.zeros(n, dtype)) for n, dtype in ((1, np.int32), (0, np.uint32), (0, np.float64), (0, np.int64))]
    leaf, out = np.zeros(1, np.int32), np.zeros((1, 1))
    k.predict.any_tree.walk(
        fixed(np.array([[value]])),
        tree,
        SurrogateTests(*none),
        LeafAnswers(np.zeros(2, np.int32), np.zeros((1, 1))),
        OpenNodes(np.zeros(9, np.int32), np.zeros(9)),
        leaf,
        out,
    )
    assert out.tolist() == [[0.0]]  # it met no leaf
