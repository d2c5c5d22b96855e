"""What reaches into Numba's pipeline: kernels that only kernels call get no machine code of their own.

Numba would optimise and emit every function by itself and again as part of each caller, six deep: 3.8 s of the 8.3 s
that the driver of a tree took. Stopping at LLVM's language leaves that to the door; see docs/decisions/0005.
The private names of Numba used here were seen with 0.68; where one is gone, kernels
compile the long way, with the same results.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from spinney._jit.compile_less import branches_known, needed, sparing_compile
from spinney._jit.libraries import libraries

_log = logging.getLogger("spinney")


@functools.cache
def inner_options() -> dict[str, Any]:
    """Options for kernels that only kernels call: no wrappers for Python and C, no machine code of their own."""
    return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} | _own_compiler("inner")


@functools.cache
def door_options() -> dict[str, Any]:
    """Options for kernels that Python calls."""
    return {"no_cfunc_wrapper": True} | _own_compiler("door")


def _own_compiler(kind: str) -> dict[str, Any]:
    """The option that names a compiler of ours; nothing where Numba's pipeline has changed."""
    try:
        return {"pipeline_class": _compilers()[kind]}
    except (ImportError, AttributeError) as error:
        _log.info("Numba's pipeline has changed (%r): kernels compile the long way", error)
    return {}


@functools.cache
def _compilers() -> dict[str, Any]:
    from numba._dynfunc import make_function
    from numba.core.compiler import Compiler, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering
    from numba.core.untyped_passes import DeadBranchPrune

    sparing = sparing_compile()
    library_of, known_branches = libraries(), branches_known()

    def no_executable(library: Any, description: Any, environment: Any) -> Any:
        return make_function(description.lookup_module(), description.qualname, "", 0, environment, (library,))

    @register_pass(mutates_CFG=True, analysis_only=False)
    class InnerLowering(NativeLowering):  # type: ignore[misc]
        _name = "spinney_inner_lowering"

        def run_pass(self, state: Any) -> Any:
            context = state.targetctx
            state.library = library_of["inner"](context.codegen(), state.func_id.func_qualname)
            context.get_executable = no_executable  # Numba holds its compiler lock here
            try:
                return super().run_pass(state)
            finally:
                del context.get_executable

    @register_pass(mutates_CFG=True, analysis_only=False)
    class DoorLowering(NativeLowering):  # type: ignore[misc]
        _name = "spinney_door_lowering"

        def run_pass(self, state: Any) -> Any:
            state.library = library_of["door"](state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().run_pass(state)

    class KernelCompiler(Compiler):  # type: ignore[misc]
        lowering = DoorLowering

        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            own = {NativeLowering: self.lowering, DeadBranchPrune: known_branches}
            pipeline.passes = [(own.get(step, step), why) for step, why in needed(pipeline.passes)]
            pipeline.finalize()
            return [pipeline]

    class InnerCompiler(KernelCompiler):
        lowering = InnerLowering

    class DoorCompiler(KernelCompiler):
        def compile_extra(self, func: Any) -> Any:
            with sparing():
                return super().compile_extra(func)

    return {"door": DoorCompiler, "inner": InnerCompiler}


def widen_literals(dispatcher: Any) -> None:
    """Make calls between kernels see `int64` where the caller wrote `0`: a literal is a type of its own."""
    from numba.core.types import unliteral  # type: ignore[attr-defined]

    resolve = dispatcher.get_call_template

    def resolve_wide(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = resolve_wide
