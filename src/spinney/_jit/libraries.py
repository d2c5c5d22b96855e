"""Libraries, which is what Numba calls the LLVM code of one function: that of a kernel, and that of a door.

Numba links into each function what it calls, with what that calls in turn: the smallest kernels were copied dozens of
times. Here a kernel's library holds the kernel alone, and a door asks each for itself; see docs/decisions/0061.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def libraries() -> dict[str, Any]:
    """The classes of both, by the names `inner` and `door`; AttributeError or ImportError if Numba has changed."""
    from numba.core.codegen import CPUCodegen, JITCodeLibrary

    function_passes = CPUCodegen._function_pass_manager  # noqa: SLF001

    class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_functions(self, module: Any) -> None:
            """As Numba does it, but the passes are made once for a module, and not run on what it only declares."""
            module.data_layout = self._codegen._data_layout  # noqa: SLF001
            passes, builder = function_passes(self._codegen)
            for function in module.functions:
                if not function.is_declaration:
                    passes.run(function, builder)

        def finalize(self) -> None:
            """Neither linked nor optimised, which is left to the door, nor handed to the engine to be emitted.

            The engine takes the first function of a name, so a door's calls would end here and not in what the door
            optimised: a process that compiled C4.5 grew twice as long as one that read the same code from the store.
            """
            self._finalized = True

        def _get_module_for_linking(self) -> Any:
            """What this kernel is, without what it calls."""
            for function in self._final_module.functions:
                if not function.is_declaration:
                    function.linkage = "linkonce_odr"  # several doors of a process may hold it
            return self._final_module

    class DoorLibrary(JITCodeLibrary):  # type: ignore[misc]
        def finalize(self) -> None:
            """As Numba does it, with what is called in turn. Callers come first: LLVM links what was asked for."""
            found: dict[Any, None] = {}
            called: list[Any] = self._linking_libraries
            _add_all_called(called, found, InnerLibrary)
            called[:] = list(found)[::-1]
            super().finalize()

    return {"inner": InnerLibrary, "door": DoorLibrary}


def _add_all_called(called: list[Any], found: dict[Any, None], alone: type) -> None:
    """Add libraries, each behind what it calls; alone: the class of those that do not hold that themselves."""
    for library in called:
        if library not in found:
            if isinstance(library, alone):
                _add_all_called(library._linking_libraries, found, alone)  # type: ignore[attr-defined]  # noqa: SLF001
            found[library] = None
