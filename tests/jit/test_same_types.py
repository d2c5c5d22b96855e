"""Doors that are called many times with arguments of the same types."""

import numpy as np
import pytest

import fast
import known_types
from spinney import RandomForestClassifier, _jit
from spinney._jit import same_types
from spinney._jit.same_types import SameTypes
from spinney.kernels.common.structs import PackedUnits

pytestmark = pytest.mark.skipif(_jit.IS_JIT_DISABLED, reason="nothing is typed without the compiler")


def add_one(door, x):
    door("a variant", x)
    return x


def test_the_second_call_goes_to_the_machine_code():
    door = SameTypes(fast.compiled().common.elementary.exp_all)
    first, second = add_one(door, np.zeros(3)), add_one(door, np.zeros(5))
    np.testing.assert_array_equal(first, np.ones(3))
    np.testing.assert_array_equal(second, np.ones(5))
    entry, types = door._entries["a variant"]
    assert entry is not door._door
    assert str(types[0]) == "array(float64, 1d, C)"


def test_an_interpreted_door_is_called_as_it_is():
    door = SameTypes(_jit.interpreted().common.elementary.exp_all)
    np.testing.assert_array_equal(add_one(door, np.zeros(3)), np.ones(3))
    assert door._entries == {}


def test_the_tests_see_a_variant_that_is_none():
    assert same_types.CHECKS, "conftest.py asks for it"
    door = SameTypes(fast.compiled().common.elementary.exp_all)
    add_one(door, np.zeros(3))
    with pytest.raises(AssertionError, match=r"variant a variant of .* had .*float64.* has .*float32"):
        add_one(door, np.zeros(3, np.float32))


def test_tuples_are_typed_by_their_classes():
    types = same_types.types_of(fast.compiled().common.elementary.exp_all, (PackedUnits(1.0, 2.0),))
    assert "PackedUnits" in str(types[0])


def arguments():
    """Arguments that differ in one thing each that is part of their type."""
    plain = np.zeros((4, 6))
    read_only, unaligned = plain.copy(), np.zeros(193, np.uint8)[1:].view(np.float64).reshape(4, 6)
    read_only.flags.writeable = False
    yield from (plain, plain.T, plain[::2], plain[0], plain[:, 0], plain.astype(np.float32), read_only, unaligned)
    yield from (plain > 0, plain.astype(">f8"), np.zeros(3, np.int8), np.zeros(3, np.uint64), np.zeros(3, "M8[s]"))
    yield from (1, True, 1.0, None, 2**63, np.int32(1), np.float32(1), np.bool_(1), 1j)
    yield from ((1, 2), (1, 2.0), (1,), (plain, None), (plain, (plain[0],)))
    yield from (PackedUnits(1.0, 2.0), PackedUnits(1, 2.0), PackedUnits(plain, plain[0]))


def test_types_that_are_remembered_are_those_that_numba_says():
    """Also of arguments that are other ones of the same type, and never of arguments of another type."""
    door = fast.compiled().common.elementary.exp_all
    assert same_types.types_of is known_types.types_of
    for _ in range(2):
        for value in arguments():
            assert known_types.types_of(door, (value,)) == known_types.ask_numba(door, (value,))
    looks = {}
    for value in arguments():
        looks.setdefault(known_types.look(value), set()).add(known_types.ask_numba(door, (value,)))
    assert {len(types) for types in looks.values()} == {1}
    assert known_types.types_of(_jit.interpreted().common.elementary.exp_all, (np.zeros((4, 6)),)) is None


def test_trees_of_one_forest_share_the_types_whatever_their_bags(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(0, 2, 300)
    one = RandomForestClassifier(n_estimators=12, random_state=0).fit(X, y)
    monkeypatch.setattr(SameTypes, "__call__", lambda self, _, *args: self._door(*args))
    other = RandomForestClassifier(n_estimators=12, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
