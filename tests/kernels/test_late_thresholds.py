"""Thresholds that are placed once a tree is grown, against those of single cuts."""

import math
from types import SimpleNamespace

import numpy as np

from spinney import _jit
from spinney._types import FEATURE_ROWS, IS_BINNED, LEAF, MAX_CODES, N_CODES, OFFSET, SUBSET, THRESHOLD


def grown(is_random):
    """The `cut_value` of five nodes once thresholds are placed; features 0 and 1 of the table have changed places."""
    features = np.zeros((FEATURE_ROWS, 2), np.int64)
    features[N_CODES] = 4
    features[OFFSET] = 0, 4
    edges = np.array([[10.0, 20.0, 40.0, 80.0, 1.0, 2.0, 4.0, 8.0]] * 2)
    pack, pack_test = (
        _jit.interpreted().tree.late_thresholds.pack_codes,
        _jit.interpreted().common.node_layout.pack_test,
    )
    test = [pack_test(1, 0, THRESHOLD), pack_test(0, 1, THRESHOLD), LEAF, pack_test(0, 0, SUBSET)]
    test.append(pack_test(0, 0, THRESHOLD))
    cut_value = np.array([pack(2, 4), pack(1, 2), 0.0, 7.0, pack(4, -1)])
    nodes = SimpleNamespace(test=np.array(test), cut_value=cut_value)
    table, how = SimpleNamespace(features=features, edges=edges), SimpleNamespace(is_random=is_random)
    _jit.interpreted().tree.late_thresholds.place_thresholds(5, table, how, nodes, np.array([1, 0]))
    return cut_value, pack


def test_thresholds_of_a_grown_tree():
    cut_value, _ = grown(is_random=False)
    assert cut_value.tolist() == [50.0, 1.5, 0.0, 7.0, math.inf]


def test_random_tests_have_theirs():
    cut_value, pack = grown(is_random=True)
    assert cut_value[0] == pack(2, 4)


def test_codes_of_any_size_are_told_apart():
    pack = _jit.interpreted().tree.late_thresholds.pack_codes
    assert len({pack(a, b) for a in (0, 1, MAX_CODES) for b in (-1, 0, 1, MAX_CODES)}) == 12
    assert pack(MAX_CODES, MAX_CODES) < 2**34


def test_features_placed_one_by_one_have_the_same_thresholds():
    rng = np.random.default_rng(0)
    late, layout = _jit.interpreted().tree.late_thresholds, _jit.interpreted().common.node_layout
    features = np.zeros((FEATURE_ROWS, 3), np.int64)
    features[N_CODES] = 5
    features[OFFSET] = 0, 5, 10
    features[IS_BINNED] = 0, 1, 0
    low = np.sort(rng.random((3, 5)), axis=1)
    high = np.where(features[IS_BINNED, :, None] > 0, low + 0.1 * np.diff(low, append=2.0), low)
    edges = np.array([low.ravel(), high.ravel()])
    made = [(j, *sorted(rng.choice(np.arange(1, 6), 2, replace=False).tolist())) for j in (0, 1, 2) for _ in range(9)]
    made += [(1, 3, -1), (2, 5, -1)]
    test = np.array([LEAF, *(layout.pack_test(j, 0, THRESHOLD) for j, _, _ in made), layout.pack_test(1, 0, SUBSET)])
    cut_value = np.array([0.0, *(late.pack_codes(cut, following) for _, cut, following in made), 7.0])
    one_by_one = cut_value.copy()
    nodes = SimpleNamespace(test=test, cut_value=cut_value)
    table, how = SimpleNamespace(features=features, edges=np.zeros((2, 0))), SimpleNamespace(is_random=False)
    late.place_thresholds(len(test), table, how, nodes, np.arange(3))
    assert cut_value.tolist() == one_by_one.tolist()  # without edges nothing is placed
    table.edges = edges
    late.place_thresholds(len(test), table, how, nodes, np.arange(3))
    for j in range(3):
        alone = features[:, j : j + 1].copy()
        alone[OFFSET] = 0
        late.place_feature(len(test), j, alone, edges[:, 5 * j : 5 * j + 5].copy(), test, one_by_one)
    assert one_by_one.tolist() == cut_value.tolist()
