"""Textbook trees: the rules of ID3 and C4.5 on small tables, pieces of rows, and what no order of rows may change."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
from spinney import _jit
from spinney._types import BY_C45, CONTROL_STOP, EVERY_BRANCH, MULTIWAY, N_NODES, THRESHOLD
from spinney.kernels.common.structs import Branches, Entries
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target
from spinney.tree import textbook
from spinney.tree.predict import predict_classes, predict_shares, predict_values
from spinney.tree.textbook import Textbook, TextbookParams

NAN = math.nan
C45 = {"rule": "c45", "missing": "every", "min_samples_leaf": 2}
CLASS_RULES = [
    {},
    {"criterion": "gini"},
    {"rule": "gain_ratio"},
    {"criterion": "gini", "rule": "gain_ratio", "min_samples_leaf": 2},
    {"missing": "every"},
    C45,
]
VALUE_RULES = [
    {"criterion": "squared_error"},
    {"criterion": "sdr"},
    {"criterion": "squared_error", "rule": "gain_ratio"},
]


def book(columns, y, levels=None, weight=None, n_classes=None, kernels=None, max_codes=65_535, **params):
    """What a textbook tree is grown with. levels: per column the number of levels, None for numbers."""
    kernels = kernels or _jit.interpreted()
    levels = levels or [None] * len(columns)
    table = fast.ColumnTable(columns, [None if n is None else tuple(range(n)) for n in levels])
    weights = fix_weights(None if weight is None else np.asarray(weight, np.float64), table.n_rows)
    codes = code_table(table, weights.values, max_codes, kernels)
    params = {"criterion": "entropy", **params}
    if params["criterion"] in {"squared_error", "sdr"}:
        target = value_target(np.asarray(y, np.float64), weights, has_square=params["criterion"] == "sdr")
    else:
        target = class_target(np.asarray(y, np.int64), n_classes or int(max(y)) + 1, weights)
    return Textbook(codes, target, weights, TextbookParams(**params), kernels)


def grow(*data, **options):
    tree = book(*data, **options).grow()
    tree.check()
    return tree


def arrays(tree):
    names = ("test", "first_child", "threshold", "n_rows", "weight", "impurity", "distributions")
    return {name: getattr(tree, name) for name in names}


def assert_same(a, b, *, but=()):
    for name, array in arrays(a).items():
        if name not in but:
            np.testing.assert_array_equal(array, arrays(b)[name], err_msg=name)


@st.composite
def tables(draw, n_classes=3):
    n = draw(st.integers(2, 24))
    cell = st.sampled_from([NAN, 0.0, 1.0, 2.0])
    columns = [draw(st.lists(cell, min_size=n, max_size=n)) for _ in range(3)]
    columns.append(draw(st.lists(st.sampled_from([NAN, -1.5, 0.25, 0.25 + 5e-6, 4.0]), min_size=n, max_size=n)))
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.integers(1, 3).map(float), min_size=n, max_size=n))
    return columns, y, weight


LEVELS = [4, 3, None, None]


# --- ID3 ---


def test_a_branch_for_each_level_and_an_empty_leaf_that_answers_as_its_parent():
    tree = grow([[0.0, 0.0, 2.0, 2.0, 2.0]], [0, 0, 1, 1, 1], [3])
    assert tree.kind.tolist() == [MULTIWAY, 0, 0, 0]
    assert tree.n_rows.tolist() == [5, 2, 0, 3]
    assert tree.is_empty.tolist() == [False, False, True, False]
    np.testing.assert_allclose(predict_shares(tree, np.array([[1.0]])), [[0.4, 0.6]])
    assert predict_classes(tree, np.array([[0.0], [1.0], [2.0], [NAN]])).tolist() == [0, 1, 1, 1]


def test_an_empty_leaf_of_numbers_answers_by_the_mean():
    tree = grow([[0.0, 0.0, 2.0, 2.0]], [1.0, 2.0, 4.0, 9.0], [3], criterion="squared_error")
    assert predict_values(tree, np.array([[0.0], [1.0], [2.0]])).tolist() == [1.5, 4.0, 6.5]


def test_a_used_category_is_not_asked_again_but_a_number_is():
    colour = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    number = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
    tree = grow([colour, number], [0, 1, 0, 1, 0, 1], [2, None])
    paths = [path_of(tree, node) for node in np.flatnonzero(tree.is_leaf)]
    assert all(path.count(0) <= 1 for path in paths)
    assert any(path.count(1) == 2 for path in paths)
    assert tree.impurity[tree.is_leaf].max() == 0.0


def path_of(tree, node):
    features = []
    while node > 0:
        node = tree.parent[node]
        features.append(int(tree.feature[node]))
    return features


def test_tests_without_gain_are_made_where_rows_still_differ():
    tree = grow([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]], [0, 1, 1, 0], [2, 2])
    assert tree.feature[0] == 0  # both gain nothing: the first
    assert tree.n_leaves == 4
    assert grow([[1.0, 1.0, 1.0]], [0, 1, 1]).n_nodes == 1  # nothing to ask


def test_ties_take_the_first_feature_and_the_lowest_threshold():
    tree = grow([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]], [0, 1, 1, 0])
    assert tree.feature[0] == 0
    assert tree.threshold[0] == 0.5


def test_thresholds_lie_between_values_of_the_node():
    number = [0.0, 10.0, 4.0, 5.0]
    tree = grow([[0.0, 0.0, 1.0, 1.0], number], [0, 1, 2, 2], [2, None])
    assert sorted(tree.threshold[tree.kind == THRESHOLD]) == [5.0]  # between 0 and 10, not between 4 and 5


def test_missing_is_a_value_of_its_own():
    tree = grow([[0.0, 0.0, 1.0, 1.0, NAN, NAN]], [0, 0, 1, 1, 2, 2], [2])
    assert tree.n_branches[0] == 3
    assert tree.missing_branch[0] == 2
    assert predict_classes(tree, np.array([[NAN], [0.0]])).tolist() == [2, 0]
    tree = grow([[0.0, 0.0, 1.0, 1.0, NAN, NAN]], [0, 0, 1, 1, 2, 2])
    assert (tree.n_branches[0], tree.missing_branch[0], tree.threshold[0]) == (3, 2, 0.5)
    tree = grow([[5.0, 5.0, NAN, NAN]], [0, 0, 1, 1])  # known against missing
    assert (tree.n_branches[0], tree.missing_branch[0], tree.threshold[0]) == (2, 1, math.inf)
    tree = grow([[0.0, NAN]], [0, 1], [1])
    assert (tree.n_branches[0], tree.missing_branch[0]) == (2, 1)


def test_missing_values_to_come_take_the_heaviest_branch():
    tree = grow([[0.0, 1.0, 1.0, 2.0]], [0, 1, 1, 0], [3])
    assert tree.missing_branch[0] == 1
    assert grow([[0.0, 1.0, 1.0]], [0, 1, 1]).missing_branch[0] == 1
    assert grow([[0.0, 0.0, 1.0, 1.0]], [0, 0, 1, 1]).missing_branch[0] == 0  # the first among equals


def test_limits_of_growth():
    columns, y = [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]], [0, 1, 1, 0, 1, 0]
    assert grow(columns, y, max_depth=1).depth == 1
    assert grow(columns, y, min_samples_split=7).n_nodes == 1
    assert grow(columns, y, min_samples_leaf=3).n_rows[1:].tolist() == [3, 3]
    assert grow([[0.0, 0.0, 1.0]], [0, 0, 1], [3], min_samples_leaf=2).n_nodes == 1  # of levels that have rows
    assert grow(columns, y, min_impurity_decrease=2.0).n_nodes == 1
    gain = book(columns, y).scan(book(columns, y).entries())[0].gain[0]
    assert grow(columns, y, min_impurity_decrease=gain).depth >= 1
    assert grow(columns, y, min_impurity_decrease=gain * 1.001).n_nodes == 1


def test_binned_codes_grow_too():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    tree = grow([x], (x > 0.3).astype(int), max_codes=16)
    assert tree.n_leaves >= 2
    assert np.mean(predict_classes(tree, x[:, None]) == (x > 0.3)) > 0.9


# --- C4.5 ---


def test_c45_puts_thresholds_at_values_of_the_table():
    # the node below colour 1 has 1 and 9 as neighbours of its cut; 4 is in the other branch; the midpoint is 5
    colour = [0.0] * 6 + [1.0] * 8
    number = [4.0] * 6 + [1.0] * 4 + [9.0] * 4
    y = [2] * 6 + [0] * 4 + [1] * 4
    tree = grow([colour, number], y, [2, None], **C45)
    assert 4.0 in tree.threshold[tree.kind == THRESHOLD]


def test_c45_does_not_cut_between_values_that_are_near():
    y = [0] * 4 + [1] * 4
    assert grow([[1.0] * 4 + [1.0 + 9e-6] * 4], y, **C45).n_nodes == 1
    assert grow([[1.0] * 4 + [1.0 + 2e-5] * 4], y, **C45).n_nodes == 3
    assert grow([[1.0] * 4 + [1.0 + 9e-6] * 4], y).n_nodes == 3


def test_c45_wants_two_branches_of_some_weight():
    y = [0] * 5 + [1]
    assert grow([[0.0] * 5 + [1.0]], y, [2], **C45).n_nodes == 1
    assert grow([[0.0] * 5 + [1.0]], y, [2], **{**C45, "min_samples_leaf": 1}).n_nodes == 3


def test_c45_takes_the_penalty_of_numbers_off_their_gain():
    x = [float(k) for k in range(8)]
    y = [0] * 4 + [1] * 4
    owned = book([x], y, **C45)
    figures = owned.scan(owned.entries())[0]
    assert figures.n_cuts[0] == 5  # 2 rows on each side
    assert figures.gain[0] == pytest.approx(1.0 - math.log2(5) / 8, rel=1e-12)
    assert figures.split_info[0] == pytest.approx(1.0, rel=1e-12)


def test_c45_takes_the_best_ratio_among_tests_of_average_gain():
    # x0 tells the classes apart by 8 levels; x1 names two of the four rows of class 1: a better ratio, a small gain
    x0 = [float(k // 4) for k in range(32)]
    x1 = [1.0, 1.0] + [0.0] * 30
    y = [1] * 4 + [0] * 28
    owned = book([x0, x1], y, [8, 2], **C45)
    figures, feature = owned.scan(owned.entries())
    entropy = -(4 / 32) * math.log2(4 / 32) - (28 / 32) * math.log2(28 / 32)
    rest = -(2 / 30) * math.log2(2 / 30) - (28 / 30) * math.log2(28 / 30)
    np.testing.assert_allclose(figures.gain, [entropy, entropy - 30 / 32 * rest], rtol=1e-12)
    assert figures.ratio[0] < figures.ratio[1]
    assert feature == 0
    assert grow([x0, x1], y, [8, 2], rule="gain_ratio").feature[0] == 1
    # two tests without gain lower the average
    x2 = [float(k % 2) for k in range(32)]
    assert grow([x0, x1, x2, x2], y, [8, 2, 2, 2], **C45).feature[0] == 1


def test_c45_leaves_categories_of_many_levels_out_of_the_average():
    names = [float(k // 2) for k in range(20)]  # 10 levels among 20 rows, not fewer than 0.3 of them
    half = [0.0] * 10 + [1.0] * 10
    y = [0] * 9 + [1, 0] + [1] * 9
    owned = book([names, half], y, [10, 2], **C45)
    figures, _ = owned.scan(owned.entries())
    assert figures.is_counted.tolist() == [False, True]
    alone = book([names], y, [10], **C45)
    assert alone.scan(alone.entries())[0].is_counted[0]  # every feature is one


def test_a_row_with_a_missing_value_takes_every_branch_in_pieces():
    x = [0.0] * 6 + [1.0] * 3 + [NAN]
    tree = grow([x], [0] * 6 + [1] * 4, [2], **C45)
    assert tree.spreads_missing[0]
    assert tree.n_rows.tolist() == [10, 7, 4]
    np.testing.assert_allclose(tree.weight, [10, 6 + 6 / 9, 3 + 3 / 9], rtol=1e-13)
    assert tree.weight[1] + tree.weight[2] == 10.0
    np.testing.assert_allclose(tree.class_weights()[1], [6, 6 / 9], rtol=1e-13)
    # gain over known rows, times their share; the missing row counts as a branch in the split information
    owned = book([x], [0] * 6 + [1] * 4, [2], **C45)
    figures = owned.scan(owned.entries())[0]
    known = -(6 / 9) * math.log2(6 / 9) - (3 / 9) * math.log2(3 / 9)
    assert figures.gain[0] == pytest.approx(0.9 * known, rel=1e-12)
    info = -sum(p * math.log2(p) for p in (0.6, 0.3, 0.1))
    assert figures.split_info[0] == pytest.approx(info, rel=1e-12)
    assert figures.ratio[0] == pytest.approx(0.9 * known / info, rel=1e-12)


def test_tests_say_that_missing_values_take_every_branch():
    tree = grow([[0.0] * 4 + [1.0] * 4], [0] * 4 + [1] * 4, **C45)
    assert (int(tree.test[0]) >> 2) & 3 == EVERY_BRANCH


@pytest.mark.parametrize("params", [{"rule": "c45"}, {"rule": "c45", "missing": "every", "criterion": "gini"}])
def test_c45_needs_its_criterion_and_its_way_with_missing_values(params):
    with pytest.raises(ValueError, match="rule='c45' needs"):
        book([[0.0, 1.0]], [0, 1], **params)


@given(st.integers(2, 3), st.lists(st.tuples(st.integers(-1, 2), st.integers(1, 3)), min_size=1, max_size=8))
def test_branches_hold_the_entries_in_their_order_and_pieces_that_add_up(n_branches, entries):
    branch = np.array([min(b, n_branches - 1) for b, _ in entries], np.int32)
    weight = [w << 20 for _, w in entries]
    ids = np.arange(len(entries), dtype=np.int32)
    addends = np.array([ids % 2, weight], np.int64)
    share = [sum(w for b, w in zip(branch, weight, strict=True) if b == k) for k in range(n_branches)]
    share = share if any(share) else [1] * n_branches
    heaviest = share.index(max(share))
    expected = [[] for _ in range(n_branches)]
    for i, (b, w) in enumerate(zip(branch, weight, strict=True)):
        pieces = [w if k == b else 0 for k in range(n_branches)]
        if b < 0:
            pieces = [math.floor(w * (x / sum(share))) for x in share]
            pieces[heaviest] += w - sum(pieces)
        for k, piece in enumerate(pieces):
            if piece > 0:
                expected[k].append((i, i % 2, piece))
    kernels, times = _jit.interpreted().textbook.branches, np.ones(1, np.int64)
    branches = Branches(branch, *np.zeros((4, n_branches), np.int64))
    parting = kernels.count_branches(n_branches, Entries(ids, addends), times, branches)
    n = parting.n_entries
    filled = Entries(np.resize(ids, n), np.array([np.resize(row, n) for row in addends]))
    spare = Entries(np.empty_like(filled.ids), np.empty_like(filled.addends))
    kernels.fill_branches(parting, filled, spare, times, branches)
    found = list(zip(filled.ids, *filled.addends, strict=True))
    for k, (begin, n) in enumerate(zip(branches.begin, branches.n, strict=True)):
        assert found[begin : begin + n] == expected[k]
    assert (parting.heaviest, parting.known) == (heaviest, sum(share))


def test_numbers_cannot_be_in_pieces():
    with pytest.raises(ValueError, match="missing='every' is for classes"):
        book([[0.0, 1.0]], [0.0, 1.0], criterion="squared_error", missing="every")


# --- what must not matter ---


@pytest.mark.parametrize("params", CLASS_RULES)
@given(table=tables(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(params, table, seed):
    columns, y, weight = table
    order = np.random.default_rng(seed).permutation(len(y))
    tree = grow(columns, y, LEVELS, weight, n_classes=3, **params)
    moved = grow(
        np.array(columns)[:, order],
        np.array(y)[order],
        LEVELS,
        weight and np.array(weight)[order],
        n_classes=3,
        **params,
    )
    assert_same(tree, moved)


@pytest.mark.parametrize("params", VALUE_RULES)
@given(table=tables(n_classes=5), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter_to_numbers(params, table, seed):
    columns, y, weight = table
    if len(set(y)) == 1:
        return
    order = np.random.default_rng(seed).permutation(len(y))
    y = np.array(y) / 7.0
    tree = grow(columns, y, LEVELS, weight, **params)
    moved = grow(np.array(columns)[:, order], y[order], LEVELS, weight and np.array(weight)[order], **params)
    assert_same(tree, moved)


@pytest.mark.parametrize("params", [{}, {"criterion": "gini"}, {"rule": "gain_ratio"}, {"missing": "every"}, C45])
@given(table=tables())
def test_a_row_of_weight_two_is_two_rows(params, table):
    columns, y, weight = table
    weight = weight or [float(1 + k % 3) for k in range(len(y))]
    order = np.repeat(np.arange(len(y)), np.array(weight, int))
    tree = grow(columns, y, LEVELS, weight, n_classes=3, **params)
    copies = grow(np.array(columns)[:, order], np.array(y)[order], LEVELS, n_classes=3, **params)
    assert_same(tree, copies, but={"n_rows"})


@pytest.mark.parametrize("params", CLASS_RULES)
@given(table=tables())
def test_compiled_kernels_grow_the_same(params, table):
    columns, y, weight = table
    a, b = (
        grow(columns, y, LEVELS, weight, n_classes=3, kernels=kernels, **params)
        for kernels in (_jit.interpreted(), _jit.load_compiled())
    )
    assert_same(a, b)


@pytest.mark.parametrize("params", CLASS_RULES)
def test_little_room_is_enlarged(params, monkeypatch):
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 4, (4, 120)).astype(float)
    columns[rng.random(columns.shape) < 0.3] = NAN
    y = rng.integers(0, 3, 120)
    wide = grow(columns, y, [4, 4, None, None], **params)
    monkeypatch.setattr(textbook, "FIRST_NODES", 1)
    assert_same(wide, grow(columns, y, [4, 4, None, None], **params))


def test_sorted_keys_and_cells_find_the_same_cuts(monkeypatch):
    rng = np.random.default_rng(2)
    columns = rng.integers(0, 30, (3, 200)).astype(float)
    columns[rng.random(columns.shape) < 0.1] = NAN
    y = rng.integers(0, 3, 200)
    for params in CLASS_RULES:
        cells = grow(columns, y, **params)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["spinney._interpreted.textbook.scan_classes"], "SUMS_PER_ROW", 0)
            assert_same(cells, grow(columns, y, **params))


def test_a_stop_is_heard(monkeypatch):
    owned = book([[float(k) for k in range(50)]], [k % 2 for k in range(50)])
    drive_on = owned.drive

    def drive_stopped():
        owned.control[CONTROL_STOP] = 1
        return drive_on()

    monkeypatch.setattr(owned, "drive", drive_stopped)
    with pytest.raises(KeyboardInterrupt):
        owned.grow()
    assert owned.stack.state[N_NODES] == 1


# --- seeing why ---


@pytest.mark.parametrize("params", [*CLASS_RULES, *VALUE_RULES])
@given(table=tables())
def test_a_finished_tree_can_be_scanned_again(params, table):
    columns, y, weight = table
    if len(set(y)) == 1:
        return
    owned = book(columns, y, LEVELS, weight, n_classes=3, **params)
    tree = owned.grow()
    stack = [(0, owned.entries())]
    while stack:
        node, entries = stack.pop()
        assert len(entries.ids) == tree.n_rows[node]
        if tree.is_leaf[node]:
            continue
        figures, feature = owned.scan(entries)
        assert feature == tree.feature[node]
        assert figures.is_valid[feature]
        if tree.kind[node] == THRESHOLD:
            last, first = figures.last_below[feature], figures.first_above[feature]
            place = _jit.interpreted().common.thresholds.place_threshold
            at = owned.features, owned.codes.edges, feature, last, first, owned.settings.rule == BY_C45
            assert place(*at) == tree.threshold[node]
            cuts = owned.cuts(entries, feature)
            assert len(cuts.gain) == figures.n_tried[feature]
            assert np.count_nonzero(cuts.is_valid) == figures.n_cuts[feature]
            if params.get("rule") is None:
                assert cuts.gain[cuts.is_valid].max() == pytest.approx(figures.gain[feature], abs=1e-11)
        stack += [(int(tree.first_child[node]) + b, part) for b, part in enumerate(owned.send(entries, tree, node))]


@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_gains_of_numbers_are_in_their_units(criterion):
    y = np.array([10.0, 12.0, 30.0, 36.0]) * 1e3
    owned = book([[0.0, 0.0, 1.0, 1.0]], y, [2], criterion=criterion)
    gain = owned.scan(owned.entries())[0].gain[0]
    if criterion == "sdr":
        assert gain == pytest.approx(y.std() - (y[:2].std() + y[2:].std()) / 2, rel=1e-12)
    else:
        assert gain == pytest.approx(y.var() - (y[:2].var() + y[2:].var()) / 2, rel=1e-12)
    tree = owned.grow()
    scale = 2.0**tree.impurity_exponent
    expected = y.std() if criterion == "sdr" else y.var()
    assert tree.impurity[0] * scale == pytest.approx(expected, rel=1e-12)
