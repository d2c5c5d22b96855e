"""Whether all workers compute the same bits: versions, kernels and processors, compared before work begins."""

from __future__ import annotations

import contextlib
import ctypes
import json
import platform
import sys
from typing import TYPE_CHECKING, Any

from spinney import _jit
from spinney._versions import installed

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = ("numpy", "numba", "llvmlite", "scikit-learn", "narwhals", "pandas", "pyarrow")
FEATURES = ("AVX2", "FMA3", "AVX512F", "ASIMD", "SVE")  # of processors, that arithmetic may depend on
TRIM_SECONDS = 1.0  # after a fit
GROWING = "tree.driver.grow"  # the kernel that takes longest to compile, of trees


class OtherWorkerError(ValueError):
    """A worker computes by other versions, kernels or processors than this process."""


def describe_process() -> dict[str, str]:
    """What the bits of a model may depend on, in this process."""
    import spinney

    directory = _jit.cache_directory()
    return {
        "spinney": spinney.__version__,
        "python": platform.python_version(),
        **{name: installed(name) or "none" for name in LIBRARIES},
        "kernels": "none" if directory is None else directory.name,
        "processor": describe_processor(),
    }


def describe_processor() -> str:
    """The class of a processor: its architecture, and what arithmetic of it there is."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:
        features = {}
    return " ".join([platform.machine(), sys.byteorder, *(name for name in FEATURES if features.get(name))])


def tell_difference(here: dict[str, str], there: dict[str, str]) -> str | None:
    """How another process differs from this one; None: in nothing that matters."""
    for name, value in here.items():
        if there.get(name) != value:
            return f"{name} is {there.get(name)}, and {value} here"
    return None


def compare_workers(here: dict[str, str], found: dict[str, Any]) -> None:
    """Refuse workers that differ; found: what `describe_process` says on each of them."""
    for address, there in sorted(found.items()):
        if isinstance(there, OSError):  # it has gone meanwhile: who comes instead is compared by `run_alike`
            continue
        if isinstance(there, BaseException):
            raise OtherWorkerError(
                f"worker {address} cannot load Spinney ({there!r:.200}): install it there, of version {here['spinney']}"
            ) from there
        difference = tell_difference(here, there)
        if difference is not None:
            raise OtherWorkerError(
                f"worker {address} would not compute the same bits: {difference}. Install the same versions on all "
                "workers and here, or retire that worker"
            )


def write_down(facts: dict[str, str]) -> str:
    """What `describe_process` says, as one word that goes along with every task: Dask looks into dictionaries."""
    return json.dumps(facts, sort_keys=True)


def run_alike(here: str, task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task on a worker that computes the same bits: one that has joined later is compared here."""
    if here != _describe_once():
        from distributed import get_worker

        difference = tell_difference(json.loads(here), json.loads(_describe_once()))
        raise OtherWorkerError(f"worker {get_worker().address} would not compute the same bits: {difference}")
    return task(*arguments)


_described: list[str] = []


def _describe_once() -> str:
    """What this process is, which does not change."""
    if not _described:
        _described.append(write_down(describe_process()))
    return _described[0]


def count_threads() -> int:
    """Threads of this worker; 1 where this is none of Dask."""
    if "distributed" not in sys.modules:
        return 1
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:
        return 1


def trim_later(dask_worker: Any) -> None:
    """Have this worker give memory back that is free, once what the fit has held is gone."""
    dask_worker.loop.call_later(TRIM_SECONDS, trim_memory)


def trim_memory() -> None:
    """Give memory back to the system that is free: of 500,000 x 28, 150 MB a worker stayed with its allocators."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # of systems whose C library has no such function
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def lacks_kernels() -> bool:
    """Whether trees have to wait for the compiler on this host."""
    directory = _jit.cache_directory()
    return not _jit.choice.IS_JIT_DISABLED and (directory is None or not any(directory.glob(f"{GROWING}*.kernel")))
