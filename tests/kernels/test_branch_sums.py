"""Sums of branches that are noted at a split, against sums of their rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from spinney import _jit

TWO = SimpleNamespace(is_packed=True, n_classes=2)


def split(middle, end, *, n_addends=2, how=TWO):
    """A node of rows 3 .. 13 in slot 1, split; its weights, the noted sums, and the addends."""
    r = np.random.default_rng(middle + 20 * end)
    weight = r.integers(1, 4, 20) if n_addends == 2 else np.ones(20, np.int64)
    addends = np.stack([weight * r.integers(0, 2, 20), weight])[:n_addends]
    children = SimpleNamespace(weight=np.full(3, -1), total=np.full(3, -1))
    frontier = SimpleNamespace(
        node=np.array([0, 2]),
        weight=np.array([0, weight[3:13].sum()]),
        total=np.array([0, addends[0, 3:13].sum()]),
        children=children,
    )
    nodes = SimpleNamespace(begin=np.array([0, 0, 3]), n_rows=np.array([20, 3, 10]))
    rows = SimpleNamespace(addends=addends, ids=np.arange(20))
    k = _jit.interpreted().tree.branch_sums
    weights = k.sum_branches(1, middle, end, rows, how, nodes, frontier)
    return weights, children, addends, weight


@pytest.mark.parametrize("n_addends", [1, 2])
@pytest.mark.parametrize(("middle", "end"), [(4, 13), (12, 13), (7, 13), (5, 9)])
def test_sums_of_branches(middle, end, n_addends):
    weights, children, addends, weight = split(middle, end, n_addends=n_addends)
    for b, (lo, hi) in enumerate([(3, middle), (middle, end), (end, 13)]):
        assert children.weight[b] == weight[lo:hi].sum()
        assert children.total[b] == addends[0, lo:hi].sum()
    assert weights == (weight[3:middle].sum(), weight[middle:end].sum())


@pytest.mark.parametrize(
    "how", [SimpleNamespace(is_packed=False, n_classes=2), SimpleNamespace(is_packed=True, n_classes=3)]
)
def test_other_targets_note_nothing(how):
    weights, children, _, weight = split(6, 13, how=how)
    assert weights == (weight[3:6].sum(), weight[6:13].sum())
    assert set(children.weight) == {-1}
