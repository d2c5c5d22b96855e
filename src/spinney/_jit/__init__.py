"""How kernels are run: compiled by Numba and kept on disk, or interpreted from the same source.

| file | holds |
|---|---|
| `decorators.py` | `kernel`, `inlined`, `door`: what marks the functions of `spinney.kernels` |
| `choice.py` | `kernels(seconds)`: which kernels do a piece of work |
| `ready.py` | doors for small work beside compiled kernels |
| `process.py` | what this process has loaded and spent |
| `locks.py` | locks that kernels of several threads wait for each other by |
| `same_types.py` | doors whose arguments have the same types call after call |
| `twin.py` | the kernels interpreted, and handles to either |
| `whole.py` | work that Ctrl-C must not cut in two |
| `inner_compiler.py` | what reaches into Numba's pipeline |
| `compile_less.py` | what of that pipeline kernels do without |
| `libraries.py` | code of kernels and doors before the machine has it |
| `arguments.py` | how kernels pass structs on |
| `numba_names.py` | the private names of Numba that all this relies on |
| `store.py` | files of compiled kernels |
| `cache_dir.py` | where they are |

Only these files know Numba, and none imports it before a compiled kernel is wanted.
"""

from spinney._jit import cache_dir, choice, store, twin
from spinney._jit.cache_dir import cache_directory
from spinney._jit.choice import IS_JIT_DISABLED, LOAD_SECONDS, SMALL_SECONDS, compiled, kernels, load_compiled
from spinney._jit.decorators import door, fixed, inlined, kernel
from spinney._jit.locks import LockCalls, free_lock, lock_calls, make_lock, open_lock, take_lock
from spinney._jit.process import COMPILE_SECONDS
from spinney._jit.ready import is_compiled
from spinney._jit.same_types import SameDoors, SameTypes
from spinney._jit.twin import Kernels, interpreted

__all__ = [
    "COMPILE_SECONDS",
    "IS_JIT_DISABLED",
    "LOAD_SECONDS",
    "SMALL_SECONDS",
    "Kernels",
    "LockCalls",
    "SameDoors",
    "SameTypes",
    "cache_dir",
    "cache_directory",
    "choice",
    "compiled",
    "door",
    "fixed",
    "free_lock",
    "inlined",
    "interpreted",
    "is_compiled",
    "kernel",
    "kernels",
    "load_compiled",
    "lock_calls",
    "make_lock",
    "open_lock",
    "store",
    "take_lock",
    "twin",
]
