"""Tests and links, packed: the functions for arrays, those of the kernels and formulas written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
from spinney import _jit
from spinney import _node_layout as packing
from spinney._types import EVERY_BRANCH, LEAF, MOST_PLACES, MOST_RANKS, MULTIWAY, SUBSET, THRESHOLD

FEATURES = st.integers(0, packing.MOST_FEATURES - 1)
PARTS = st.tuples(FEATURES, st.integers(0, EVERY_BRANCH), st.sampled_from([LEAF, THRESHOLD, SUBSET, MULTIWAY]))
CHILDREN = st.integers(0, 2**31 - 1)


@given(st.lists(st.tuples(CHILDREN, PARTS), min_size=1, max_size=9))
def test_what_is_packed_comes_out_again(nodes):
    child = np.array([one for one, _ in nodes], np.int32)
    feature, missing, kind = np.array([parts for _, parts in nodes]).T
    test = packing.pack_test(feature, missing, kind)
    assert test.tolist() == [f << 4 | m << 2 | k for _, (f, m, k) in nodes]
    test = test.astype(np.uint32)  # it fits
    link = packing.pack_link(child, test)
    assert link.dtype == np.uint64
    assert link.tolist() == [c << 32 | int(t) for c, t in zip(child.tolist(), test, strict=True)]
    for found in (packing.feature_of(test), packing.feature_of_link(link)):
        assert (found.dtype, found.tolist()) == (np.int64, feature.tolist())
    for found in (packing.missing_of(test), packing.missing_of_link(link)):
        assert (found.dtype, found.tolist()) == (np.int64, missing.tolist())
    for found in (packing.kind_of(test), packing.kind_of_link(link)):
        assert (found.dtype, found.tolist()) == (np.int64, kind.tolist())
    assert packing.child_of_link(link).tolist() == child.tolist()
    assert packing.test_of_link(link).tolist() == test.tolist()


@given(PARTS)
def test_one_test_is_packed_as_an_int(parts):
    test = packing.pack_test(*parts)
    assert isinstance(test, int)
    assert packing.unpack_test(test) == parts


@given(CHILDREN, FEATURES)
def test_a_leaf_leads_to_itself_by_a_feature_behind_the_last(node, n_features):
    link = packing.pack_leaf(np.array([node]), n_features)
    assert packing.child_of_link(link) == node
    assert packing.feature_of_link(link) == n_features
    assert packing.missing_of_link(link) == 0
    assert packing.kind_of_link(link) == THRESHOLD


@given(CHILDREN, st.integers(0, MOST_RANKS), st.integers(0, MOST_PLACES - 1), st.integers(0, 0xFFFF))
def test_a_step_carries_ranks_above_its_own_to_the_second_child(child, rank, place, value):
    layout = _jit.interpreted().common.node_layout
    (step,) = packing.pack_step(np.array([child]), np.array([rank]), np.array([place]))
    assert layout.place_of_step(step) == place
    assert layout.child_by_rank(step, layout.lift_rank(np.uint16(value))) == child + (value > rank)


@pytest.mark.compiled(reason="there is the twin alone")
def test_compiled_layouts_are_the_interpreted_ones():
    layout = _jit.load_compiled().common.node_layout
    pack_test, pack_link, pack_leaf = layout.pack_test, layout.pack_link, layout.pack_leaf
    of_tests = layout.feature_of, layout.missing_of, layout.kind_of
    of_links = layout.feature_of_link, layout.missing_of_link, layout.kind_of_link
    feature_of, missing_of, kind_of = of_tests
    feature_of_link, missing_of_link, kind_of_link = of_links
    child_of_link, test_of_link = layout.child_of_link, layout.test_of_link

    @fast.compile_door
    def pack(feature, missing, kind, child):  # kernels that are inlined have no entrance for Python
        test = pack_test(feature, missing, kind)
        return test, pack_link(child, test), pack_leaf(child, feature)

    @fast.compile_door
    def unpack(test, link):
        return (
            (feature_of(test), missing_of(test), kind_of(test)),
            (feature_of_link(link), missing_of_link(link), kind_of_link(link)),
            (child_of_link(link), test_of_link(link)),
        )

    draw = np.random.default_rng(0)
    for feature, missing, kind, child in draw.integers([2**28, 4, 4, 2**31], size=(50, 4)):
        test, link, leaf = pack(feature, missing, kind, child)
        assert test == packing.pack_test(feature, missing, kind)
        assert link == packing.pack_link(child, test)
        assert leaf == packing.pack_leaf(child, int(feature))
        assert unpack(test, np.uint64(link)) == ((feature, missing, kind),) * 2 + ((child, test),)
