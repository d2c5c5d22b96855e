"""What the nodes of a grown tree say, against exact fractions over their rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

import fast
from spinney import _jit
from spinney._types import N_NODES, OWN_BRANCH
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target
from spinney.tree import grow
from spinney.tree.structure import Tree

FIELDS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions", "hot")
N = 300


def grow_rows(y, weights=None, *, n_classes=0, kernels=None, monotone=None, n_features=3, seed=0, **params):
    """A growth that has run, over columns of a few numbers with missing values."""
    generator = np.random.default_rng(seed)
    columns = generator.integers(0, 25, size=(n_features, len(y))).astype(float)
    columns[generator.random(columns.shape) < 0.1] = math.nan
    kernels = kernels or fast.compiled()
    fixed = fix_weights(weights, len(y))
    codes = code_table(fast.ColumnTable(columns, [None] * n_features), fixed.values, 65_535, kernels)
    criterion = params.setdefault("criterion", "gini" if n_classes else "squared_error")
    target = class_target(y, n_classes, fixed) if n_classes else value_target(y, fixed, has_square=criterion == "sdr")
    growth = grow.Growth(codes, target, fixed, grow.GrowParams(**params), kernels, monotone)
    growth.run()
    return growth


def rows_of(growth):
    """The rows of every node."""
    n_nodes = int(growth.state[N_NODES])
    begin, n_rows = growth.nodes.begin[:n_nodes], growth.nodes.n_rows[:n_nodes]
    return [growth.ids[first : first + n] for first, n in zip(begin, n_rows, strict=True)]


def weighting(kind, n=N, seed=5):
    generator = np.random.default_rng(seed)
    choices = {"none": None, "whole": generator.integers(1, 5, n) * 1.0, "decimal": generator.random(n) ** 4 + 1e-6}
    return choices[kind]


def moments(y, weights):
    """Exact weight, mean and variance."""
    y, w = [Fraction(float(v)) for v in y], [Fraction(float(v)) for v in weights]
    mean = sum(a * b for a, b in zip(w, y, strict=True)) / sum(w)
    return sum(w), mean, sum(a * (b - mean) ** 2 for a, b in zip(w, y, strict=True)) / sum(w)


def class_impurity(criterion, shares):
    if criterion == "gini":
        return 1.0 - sum(s * s for s in shares)
    if criterion == "misclassification":
        return 1.0 - max(shares)
    return -sum(s * math.log2(s) for s in shares if s > 0.0)


def assert_same(a, b):
    for name in FIELDS:
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.impurity_exponent == b.impurity_exponent


# ----------------------------------------------------------------------------------------- against exact fractions


@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
@pytest.mark.parametrize("weights", ["none", "whole", "decimal"])
@pytest.mark.parametrize("missing", [0, OWN_BRANCH])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e300), (0.0, 1e-300)])
@pytest.mark.sampled(5)
def test_numbers(criterion, weights, missing, offset, scale):
    y = (np.round(np.random.default_rng(1).normal(size=N), 1) + offset) * scale
    w = weighting(weights)
    growth = grow_rows(y, w, criterion=criterion, missing=missing, min_samples_leaf=2)
    tree = growth.finish()
    tree.check()
    w = np.ones(N) if w is None else w
    near = 1e-11 if weights == "decimal" else 1e-13  # small weights have fewer digits in fixed point
    for k, rows in enumerate(rows_of(growth)):
        weight, mean, variance = moments(y[rows] / scale, w[rows])
        assert tree.weight[k] == pytest.approx(float(weight), rel=1e-12)
        assert tree.n_rows[k] == len(rows)
        if tree.is_leaf[k]:
            assert tree.threshold[k] / scale == pytest.approx(float(mean), rel=near, abs=near)
            if len(set(y[rows])) == 1:
                assert tree.threshold[k] == y[rows[0]]
                assert tree.impurity[k] == 0.0
        spread = math.sqrt(variance) if criterion == "sdr" else float(variance)
        unit = math.frexp(scale)[1] * (1 if criterion == "sdr" else 2)
        found = math.ldexp(tree.impurity[k], tree.impurity_exponent - unit)
        found *= math.ldexp(1.0 / scale, math.frexp(scale)[1]) ** (1 if criterion == "sdr" else 2)
        assert found == pytest.approx(spread, rel=1e-7 if offset else 1e-11, abs=1e-9 if offset else 1e-13)


def test_a_leaf_beside_an_outlier_keeps_its_digits():
    y = np.concatenate([np.array([1e12]), 1.0 + 1e-3 * np.arange(7.0)])
    tree = grow_rows(y, max_depth=0).finish()
    _, mean, variance = moments(y, np.ones(8))
    assert tree.threshold[0] == pytest.approx(float(mean), rel=1e-15)
    assert fast.impurity(tree)[0] == pytest.approx(float(variance), rel=1e-14)


def test_means_of_close_targets_lie_between_them():
    low, high = 0.1, math.nextafter(0.1, 1.0)
    y = np.array([low, high, low, high, high, 1e6, -1e6, low])
    growth = grow_rows(y, min_samples_leaf=2)
    tree = growth.finish()
    for k, rows in enumerate(rows_of(growth)):
        if tree.is_leaf[k]:
            assert y[rows].min() <= tree.threshold[k] <= y[rows].max()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize("weights", ["none", "whole", "decimal"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
@pytest.mark.parametrize("missing", [0, OWN_BRANCH])
def test_classes(criterion, weights, n_classes, missing):
    y = np.random.default_rng(2).integers(0, n_classes, N)
    w = weighting(weights)
    growth = grow_rows(y, w, n_classes=n_classes, criterion=criterion, missing=missing, min_samples_leaf=3)
    tree = growth.finish()
    tree.check()
    w = np.ones(N) if w is None else w
    mixed = [k for k, rows in enumerate(rows_of(growth)) if tree.is_leaf[k] and len(set(y[rows])) > 1]
    assert tree.threshold[mixed].tolist() == [-1 - k for k in range(len(tree.distributions))]
    for k, rows in enumerate(rows_of(growth)):
        held = np.bincount(y[rows], w[rows], n_classes)
        assert tree.weight[k] == pytest.approx(held.sum(), rel=1e-12)
        assert tree.impurity[k] == pytest.approx(class_impurity(criterion, held / held.sum()), rel=1e-10, abs=1e-12)
        if tree.is_leaf[k] and k in mixed:
            row = tree.distributions[int(-1 - tree.threshold[k])]
            assert row == pytest.approx(held, rel=1e-12)
            assert weights == "decimal" or np.array_equal(row, held)
        elif tree.is_leaf[k]:
            assert tree.threshold[k] == y[rows[0]]


# ----------------------------------------------------------------------------------------- what must not matter


CASES = [
    (n_classes, criterion, weights)
    for n_classes, criteria in (
        (0, ("squared_error", "sdr")),
        (2, ("gini", "entropy")),
        (4, ("gini", "entropy", "misclassification")),
    )
    for criterion in criteria
    for weights in ("none", "whole", "decimal")
]


def target_of(n_classes, n=N):
    generator = np.random.default_rng(3)
    return generator.integers(0, n_classes, n) if n_classes else generator.normal(size=n)


@pytest.mark.parametrize(("n_classes", "criterion", "weights"), CASES)
def test_the_order_of_rows_inside_a_leaf(n_classes, criterion, weights):
    growth = grow_rows(
        target_of(n_classes), weighting(weights), n_classes=n_classes, criterion=criterion, min_samples_leaf=12
    )
    before = growth.finish()
    order = np.arange(N)
    generator = np.random.default_rng(4)
    for k in np.flatnonzero(growth.nodes.first_child[: before.n_nodes] == 0):
        first, n = growth.nodes.begin[k], growth.nodes.n_rows[k]
        order[first : first + n] = generator.permutation(order[first : first + n])
    assert not np.array_equal(order, np.arange(N))
    growth.ids, growth.addends = growth.ids[order], growth.addends[:, order].copy()
    assert_same(growth.finish(), before)


@pytest.mark.parametrize(
    ("n_classes", "criterion", "weights", "is_bounded"),
    [(*case, False) for case in CASES] + [(*case, True) for case in CASES if case[0] <= 2],
)
def test_interpreted_kernels_say_the_same(n_classes, criterion, weights, is_bounded):
    growth = grow_rows(
        target_of(n_classes), weighting(weights), n_classes=n_classes, criterion=criterion, min_samples_leaf=3,
        monotone=np.array([1, -1, 0], np.int8) if is_bounded else None, missing=OWN_BRANCH,
    )  # fmt: skip
    before = growth.finish()
    growth.kernels = _jit.interpreted()
    assert_same(growth.finish(), before)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_a_row_of_weight_two_is_two_rows(n_classes):
    y, weights = target_of(n_classes), weighting("whole")
    weighted = grow_rows(y, weights, n_classes=n_classes, max_depth=0).finish()
    repeated = grow_rows(np.repeat(y, weights.astype(int)), n_classes=n_classes, max_depth=0).finish()
    assert weighted.weight[0] == repeated.weight[0]
    assert np.array_equal(weighted.distributions, repeated.distributions)
    shift = weighted.impurity_exponent - repeated.impurity_exponent
    assert math.ldexp(weighted.impurity[0], shift) == repeated.impurity[0]
    assert weighted.threshold[0] == repeated.threshold[0]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_mixed_leaves_beyond_the_first_room(n_classes, monkeypatch):
    growth = grow_rows(target_of(n_classes), n_classes=n_classes, min_samples_leaf=5)
    before = growth.finish()
    assert len(before.distributions) > 3
    monkeypatch.setattr(grow, "MIXED_WEIGHTS", 3 * n_classes)
    assert_same(growth.finish(), before)


@pytest.mark.parametrize(("n_classes", "is_bounded"), [(0, False), (0, True), (2, False), (2, True), (5, False)])
def test_the_bytes_for_prediction(n_classes, is_bounded):
    monotone = np.array([1, -1, 0], np.int8) if is_bounded else None
    tree = grow_rows(target_of(n_classes), n_classes=n_classes, monotone=monotone, missing=OWN_BRANCH).finish()
    assert set(tree.n_branches.tolist()) == {0, 2, 3}
    assert np.array_equal(tree.hot, Tree.hot.func(tree))


def test_what_a_tree_keeps_is_its_own():
    growth = grow_rows(target_of(3), n_classes=3, min_samples_leaf=5)
    tree = growth.finish()
    assert tree.distributions.base is None  # no room that was never used
    for name in FIELDS[:-1]:
        for mine in growth.nodes:
            assert not np.shares_memory(getattr(tree, name), mine)
