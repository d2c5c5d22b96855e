"""What a compile leaves out comes back, and what is asked once has the answer that Numba gives."""

import gc
from contextlib import suppress

import pytest
from numba.core import types
from numba.core.base import BaseContext
from numba.core.compiler import DefaultPassBuilder, Flags
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from spinney._jit.compile_less import NEEDLESS, REPEATED, needed, sparing_compile


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
