"""Doors that are called many times with arguments of the same types."""

import numpy as np
import pytest

import fast
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


def test_trees_of_one_forest_share_the_types_whatever_their_bags(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(0, 2, 300)
    one = RandomForestClassifier(n_estimators=12, random_state=0).fit(X, y)
    monkeypatch.setattr(SameTypes, "__call__", lambda self, _, *args: self._door(*args))
    other = RandomForestClassifier(n_estimators=12, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
