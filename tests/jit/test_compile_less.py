"""What a compile leaves out comes back, and what is asked once has the answer that Numba gives."""

import gc
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import types
from numba.core.base import BaseContext
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from spinney._jit import door, kernel
from spinney._jit.compile_less import NEEDLESS, REPEATED, needed, sparing_compile
from spinney._jit.store import Store


class State:
    flags = Flags()
    func_ir = None


def test_every_needless_pass_is_one_of_numba_and_the_others_stay_in_order():
    passes = DefaultPassBuilder.define_nopython_pipeline(State()).passes
    names = [step.__name__ for step, _ in passes]
    assert set(names) > NEEDLESS
    left = [name for name in names if name not in NEEDLESS]
    assert left.count(REPEATED) == 3
    once = [name for i, name in enumerate(left) if name != REPEATED or REPEATED not in left[:i]]
    assert [step.__name__ for step, _ in needed(passes)] == once


@pytest.mark.parametrize("is_collected", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_all_is_as_before_when_a_compile_has_ended(is_collected, fails):
    before = vars(BaseContext)["get_abi_sizeof"], vars(BaseFunction)["get_call_type"]
    was_collected = gc.isenabled()
    (gc.enable if is_collected else gc.disable)()
    try:
        with suppress(ValueError), sparing_compile()():
            assert not gc.isenabled()
            assert vars(BaseContext)["get_abi_sizeof"] is not before[0]
            if fails:
                raise ValueError
        assert gc.isenabled() == is_collected
        assert (vars(BaseContext)["get_abi_sizeof"], vars(BaseFunction)["get_call_type"]) == before
    finally:
        (gc.enable if was_collected else gc.disable)()


def test_what_is_asked_once_has_numbas_answers():
    typing, target = cpu_target.typing_context, cpu_target.target_context
    target.refresh()
    maximum = typing.resolve_value_type(max)
    pairs = [(types.int64, types.int64), (types.int64, types.float64), (types.float64, types.float64)]
    kinds = [target.get_value_type(kind) for kind in (types.int64, types.float32, types.Array(types.int8, 2, "C"))]

    def answers():
        calls = [maximum.get_call_type(typing, pair, {}) for pair in pairs]
        return calls, [target.get_abi_sizeof(kind) for kind in kinds]

    numbas = answers()
    with sparing_compile()():
        first, again = answers(), answers()
    assert first == again == numbas
    assert all(one is other for one, other in zip(first[0], again[0], strict=True))


class Pair(NamedTuple):
    values: Any
    scale: Any


@kernel
def spared(pair):
    return pair.values[0] * 1000.0


@kernel
def deep(pair, extra):
    if extra is None:
        return spared(pair)
    return pair.values[0] * extra.scale


@kernel
def unused(pair, extra):
    return deep(pair, extra) + 1.0


@kernel
def both(pair, extra):
    if extra is not None:
        return deep(pair, extra) + deep(extra, extra)
    return unused(pair, extra)


@pytest.fixture
def outer(tmp_path):
    """A door whose kernels meet again on the way down."""

    def outer(pair, extra):
        return both(pair, extra) + deep(pair, extra)

    dispatcher = door(outer)
    dispatcher._cache = Store(outer, tmp_path)
    return dispatcher


def test_what_an_argument_that_is_something_spares_is_not_compiled(outer):
    one, two = Pair(np.array([3.0]), 2.0), Pair(np.array([5.0]), 7.0)
    n_before = [len(function.overloads) for function in (spared, unused)]
    assert outer(one, two) == 3.0 * 7.0 + 5.0 * 7.0 + 3.0 * 7.0
    assert [len(function.overloads) for function in (spared, unused)] == n_before
    assert outer(one, None) == 3000.0 + 1.0 + 3000.0
    assert [len(function.overloads) for function in (spared, unused)] == [n + 1 for n in n_before]


def test_every_kernel_is_linked_once_into_a_door(outer):
    pair = Pair(np.array([3.0]), 2.0)
    outer(pair, pair)
    (result,) = outer.overloads.values()
    called = [library.name for library in result.library._linking_libraries]
    assert called.index("both") < called.index("deep")  # LLVM links what is asked for
    assert len(set(called)) == len(called)
    inner, *_ = both.overloads.values()
    defined = [function.name for function in inner.library._final_module.functions if not function.is_declaration]
    assert len(defined) == 1


def test_structs_are_one_argument(outer):
    pair = Pair(np.array([3.0]), 2.0)
    outer(pair, pair)
    for result in both.overloads.values():
        (function,) = (f for f in result.library._final_module.functions if not f.is_declaration)
        assert len(list(function.arguments)) <= 4  # what is returned, what is raised, and two
