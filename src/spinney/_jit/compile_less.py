"""What Numba does for every function and kernels do without, left out while a door is compiled: a quarter of the time.

A compile is of one door with all the kernels that it calls, a hundred and fifty for the driver of a tree. Numba's lock
is held meanwhile: nobody else compiles, and what is replaced here is back when the lock is given up. The
machine code is the same; see docs/decisions/0043.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from typing import TYPE_CHECKING, Any

from spinney._jit.arguments import packer_of_structs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEEDLESS = frozenset(
    {
        # for functions within functions, `with`, `raise`, `inline=` and `literally`, none of which kernels have
        "WithLifting",
        "InlineClosureLikes",
        "RewriteDynamicRaises",
        "MakeFunctionToJitFunction",
        "InlineInlinables",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        # for expressions of whole arrays
        "NopythonRewrites",
    }
)
"""Passes of Numba that change nothing in a kernel, but look at every variable of every line of it."""


REPEATED = "DeadBranchPrune"  # once after the bytecode is read, twice after passes that are not needed


def needed(passes: list[Any]) -> list[Any]:
    """The passes of a pipeline, pairs of a class and a reason, without the needless ones and those done before."""
    left = [step for step in passes if step[0].__name__ not in NEEDLESS]
    first = next((i for i, step in enumerate(left) if step[0].__name__ == REPEATED), len(left))
    return left[: first + 1] + [step for step in left[first + 1 :] if step[0].__name__ != REPEATED]


class _Something:
    """Stands for the type of an argument that cannot be None, where Numba compares it with None."""

    literal_type = object()


@functools.cache
def branches_known() -> Any:
    """Numba's pruning of branches, told that an argument which is not None is something.

    It takes out what `if x is not None` guards where x is None, but not what `if x is None` guards where x is
    something: that was typed and lowered, with all that it calls, for LLVM to throw away.
    """
    from numba.core.analysis import dead_branch_prune
    from numba.core.compiler_machinery import register_pass
    from numba.core.types import NoneType, Omitted, Optional  # type: ignore[attr-defined]
    from numba.core.untyped_passes import DeadBranchPrune

    @register_pass(mutates_CFG=True, analysis_only=False)
    class KnownBranches(DeadBranchPrune):  # type: ignore[misc]
        _name = "spinney_known_branches"

        def run_pass(self, state: Any) -> bool:
            may_be_none = (NoneType, Omitted, Optional)
            dead_branch_prune(
                state.func_ir, tuple(kind if isinstance(kind, may_be_none) else _Something for kind in state.args)
            )
            return True

    return KnownBranches


def late_lifetimes() -> Callable[..., None]:
    """What takes the place of `PostProcessor.run`, which looks after each pass for where variables end.

    That is read after the last one.
    """
    from numba.core.postproc import PostProcessor, VariableLifetime
    from numba.core.transforms import canonicalize_cfg

    original = PostProcessor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir.is_generator:
            original(self, emit_dels, extend_lifetimes)
            return
        self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
        self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
        self.func_ir.generator_info = None

    return run


def sparing_compile() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A maker of contexts in which a door is compiled: without collecting garbage, and asking the same thing once.

    Raises AttributeError where Numba has no such thing to ask, as it should do before a compile begins.
    """
    from numba.core.base import BaseContext
    from numba.core.postproc import PostProcessor
    from numba.core.types.functions import BaseFunction

    pack_structs, find_lifetimes_late = packer_of_structs(), late_lifetimes()
    size_of, call_type_of = BaseContext.get_abi_sizeof, BaseFunction.get_call_type

    @contextlib.contextmanager
    def sparing() -> Iterator[None]:
        sizes: dict[str, int] = {}
        signatures: dict[tuple[int, ...], Any] = {}

        def known_size_of(self: Any, ty: Any) -> int:
            """Numba prints a module and has it parsed, for every variable, and needs the answer for debuggers only."""
            name = str(ty)
            if name not in sizes:
                sizes[name] = size_of(self, ty)
            return sizes[name]

        def known_call_type_of(self: Any, context: Any, args: Any, kws: Any) -> Any:
            """Numba tries all templates for each sum and index, twice: 6,700 questions, of which 1,000 differ."""
            if kws:
                return call_type_of(self, context, args, kws)
            key = (self._code, *[kind._code for kind in args])  # noqa: SLF001  (hashing types takes as long as asking)
            if key not in signatures:
                signatures[key] = call_type_of(self, context, args, kws)
            return signatures[key]

        with (
            _no_garbage_collection(),
            _replaced(BaseContext, "get_abi_sizeof", known_size_of),
            _replaced(BaseFunction, "get_call_type", known_call_type_of),
            _replaced(BaseContext, "get_arg_packer", pack_structs),
            _replaced(PostProcessor, "run", find_lifetimes_late),
        ):
            yield

    return sparing


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Two thousand collections are a seventh of a compile; without them a driver's takes 0.13 GB more."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _replaced(owner: type, name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = vars(owner)[name]
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, original)
