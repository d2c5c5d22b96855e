"""What the drivers of trees share: impurities of nodes, and the queue of open ones."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import _jit
from spinney._criteria import CLASS_CRITERIA, CRITERIA
from spinney._types import BEST_FIRST, DEPTH_FIRST, FEATURE_ROWS, HIGH, IS_BINNED, LOW, N_QUEUED, OFFSET
from spinney.tree.split_measures import class_impurity, impurity


@pytest.mark.parametrize("name", CLASS_CRITERIA)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=6).filter(any))
def test_every_form_of_an_impurity_says_the_same(name, weights):
    criteria = _jit.interpreted().common.criteria
    held, total = np.array(weights, np.int64), sum(weights)
    of_node = criteria.impurity_of_classes(CRITERIA[name].code, held, total)
    assert of_node == pytest.approx(class_impurity(name, held[None] / total)[0], rel=1e-13, abs=1e-15)
    assert of_node == pytest.approx(impurity(np.array([total, *weights], float), name), rel=1e-12, abs=1e-14)
    if len(weights) == 2:
        assert of_node == pytest.approx(criteria.impurity_of_two(CRITERIA[name].code, weights[1] / total), abs=1e-14)


class Queue(NamedTuple):
    queue: np.ndarray
    node: np.ndarray
    gain: np.ndarray
    state: np.ndarray


def make_queue(gains):
    n = len(gains)
    state = np.zeros(N_QUEUED + 1, np.int64)
    return Queue(np.zeros(n, np.int64), np.arange(n)[::-1].copy(), np.array(gains, float), state)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 30))
def test_best_first_takes_the_largest_gain_then_the_older_node(gains, n_first):
    queue = _jit.interpreted().common.queue
    frontier, popped, waiting = make_queue(gains), [], set()
    for slot in range(len(gains)):
        queue.push(frontier, BEST_FIRST, slot)
        waiting.add(slot)
        if slot == n_first:
            popped.append(int(queue.pop(frontier, BEST_FIRST)))
            best = min(waiting, key=lambda slot: (-gains[slot], frontier.node[slot]))
            assert popped == [best]
            waiting.remove(best)
    rest = [int(queue.pop(frontier, BEST_FIRST)) for _ in range(len(waiting))]
    assert rest == sorted(waiting, key=lambda slot: (-gains[slot], frontier.node[slot]))
    assert frontier.state[N_QUEUED] == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 30))
def test_the_last_of_a_heap_is_dropped(gains, n_dropped):
    queue = _jit.interpreted().common.queue
    frontier = make_queue(gains)
    for slot in range(len(gains)):
        queue.push(frontier, BEST_FIRST, slot)
    order = sorted(range(len(gains)), key=lambda slot: (-gains[slot], frontier.node[slot]))
    n_left = max(len(gains) - n_dropped, 0)
    assert [int(queue.drop_last(frontier)) for _ in order[n_left:]] == order[n_left:][::-1]
    assert [int(queue.pop(frontier, BEST_FIRST)) for _ in order[:n_left]] == order[:n_left]


def test_depth_first_takes_the_last():
    queue = _jit.interpreted().common.queue
    frontier = make_queue([3, 1, 2])
    for slot in (0, 1, 2):
        queue.push(frontier, DEPTH_FIRST, slot)
    assert [int(queue.pop(frontier, DEPTH_FIRST)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("cut", "following", "expected"), [(1, 2, 1.5), (1, 4, 5.0), (2, 4, 5.0), (1, 3, 2.0), (4, -1, np.inf)]
)
def test_a_threshold_tears_no_bin_that_the_node_has_no_rows_of(cut, following, expected):
    """Codes 1 to 4 hold the values 1, 2, 3 to 5 and 6: the middle of 1 and 6 is inside the third."""
    features = np.zeros((FEATURE_ROWS, 1), np.int64)
    features[OFFSET, 0], features[IS_BINNED, 0] = 1, 1
    edges = np.zeros((2, 6))
    edges[LOW, 1:5], edges[HIGH, 1:5] = [1.0, 2.0, 3.0, 6.0], [1.0, 2.0, 5.0, 6.0]
    place = _jit.interpreted().common.thresholds.place_threshold
    assert place(features, edges, 0, cut, following, False) == expected
