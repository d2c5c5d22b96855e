"""How kernels are run: compiled by Numba and kept on disk, or interpreted from the same source.

Words: a *kernel* is a function of `spinney.kernels`, marked by `kernel`, `inlined` or `door`; the *twin* is the package
`spinney._interpreted`, made in memory, whose modules are the very kernel files with `kernel` doing nothing.

Where a call goes (`kernels`):

    small work, nothing compiled loaded yet ──► twin: starts at once, Numba is never imported
    everything else                         ──► compiled: read from the store, else compiled and stored

The store stands in for Numba's own disk cache, which does not notice an edited callee in another file nor
NUMBA_BOUNDSCHECK, fails at import where nothing is writable, raises into user code on a damaged file, and
keeps index and data apart, so that two processes can mix them up. Here one directory belongs to one state
of sources, versions and mode; one file holds one compiled kernel, is moved into place whole, and is read
only if its checksum holds. `numba.config` is never changed, so other libraries in the process notice
nothing. No lock is waited for: neither a fork nor an exit in the middle of a compile can hang on one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import pickle
import pkgutil
import shutil
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

    F = TypeVar("F", bound=Callable[..., Any])

LOAD_SECONDS = 0.7
"""What compiled kernels cost a process even when stored: measured, import 0.32 s and first kernel 0.39 s."""

COMPILE_SECONDS = 8.0
"""What compiling a method's kernels costs, once for a machine; see benchmarks/startup.py."""

_COMPILED = "spinney.kernels"
_TWIN = "spinney._interpreted"
_LONGEST = (
    "tree.driver.grow",
    "boost.driver.grow",
    "boost.driver.prepare_batch",
    "textbook.driver.grow",
)  # the driver and all it calls; a variant of it takes ten times as long as any other kernel
_UNUSED_SECONDS = 30 * 24 * 3600.0
# Settings that change the machine code without changing the signature or the CPU.
_MODES = ("NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE")
_IS_JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}

_log = logging.getLogger("spinney")
_log.addHandler(logging.NullHandler())


# --- The decorator ------------------------------------------------------------------------------------------


def kernel(function: F) -> F:
    """Mark a kernel that other kernels call.

    It is compiled into its callers, runs without the GIL, divides as NumPy does, and uses neither fast math nor
    threads. A file of kernels has no decorator but this, `inlined` and `door`; kernels call each other directly.
    """
    return _compile(function, is_door=False)


def inlined(function: F) -> F:
    """Mark a kernel whose body replaces its call, for one called per feature or row: a call passes a hundred words."""
    return _compile(function, is_door=False, is_inlined=True)


def door(function: F) -> F:
    """Mark a kernel that Python calls: it is compiled at its first call, with all it calls, and kept in the store."""
    return _compile(function, is_door=True)


def _compile(function: F, *, is_door: bool, is_inlined: bool = False) -> F:
    if function.__module__.startswith(_TWIN):
        return function
    if _IS_JIT_DISABLED:
        return cast("F", _quiet(function)) if is_door else function
    global _is_compiled_loaded  # noqa: PLW0603
    import numba  # 0.3 s: paid only by processes that use compiled kernels

    _is_compiled_loaded = True
    # without Numba's memory manager: kernels allocate nothing, and its reference counts took a third of a scan's time
    dispatcher = numba.njit(
        nogil=True, error_model="numpy", _nrt=False, forceinline=is_inlined, **({} if is_door else _inner_options())
    )(function)
    if numba.extending.is_jitted(dispatcher):  # else a .numba_config.yaml has disabled the JIT
        if is_door:
            dispatcher._cache = _Store(function, cache_directory())  # noqa: SLF001
        _widen_literals(dispatcher)
    return cast("F", dispatcher)


@functools.cache
def _inner_options() -> dict[str, Any]:
    """Options for kernels that only kernels call: no wrappers for Python and C, no machine code of their own.

    Numba would optimise and emit every function by itself and again as part of each caller, six deep: 3.8 s of the
    8.3 s that the driver of a tree took. Stopping at LLVM's language leaves that to the door. It reaches into Numba's
    pipeline (seen with 0.68); where that has changed, kernels compile the long way.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    with contextlib.suppress(ImportError, AttributeError):
        options["pipeline_class"] = _inner_compiler()
    return options


def _inner_compiler() -> Any:
    from numba._dynfunc import make_function
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering

    class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            """Left to the door."""

        def _finalize_final_module(self) -> None:
            """No machine code: unknown to the engine, which would emit this with the first door.

            The engine takes the first function of a name, so a door's calls would end here and not in what the door
            optimised: a process that compiled C4.5 grew twice as long as one that read the same code from the store.
            """
            self._finalized = True

    def no_executable(library: Any, description: Any, environment: Any) -> Any:
        return make_function(description.lookup_module(), description.qualname, "", 0, environment, (library,))

    @register_pass(mutates_CFG=True, analysis_only=False)
    class InnerLowering(NativeLowering):  # type: ignore[misc]
        _name = "spinney_inner_lowering"

        def run_pass(self, state: Any) -> Any:
            context = state.targetctx
            state.library = InnerLibrary(context.codegen(), state.func_id.func_qualname)
            context.get_executable = no_executable  # Numba holds its compiler lock here
            try:
                return super().run_pass(state)
            finally:
                del context.get_executable

    class InnerCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            pipeline.passes = [
                (InnerLowering if step is NativeLowering else step, why) for step, why in pipeline.passes
            ]
            pipeline.finalize()
            return [pipeline]

    return InnerCompiler


def _widen_literals(dispatcher: Any) -> None:
    """Make calls between kernels see `int64` where the caller wrote `0`: a literal is a type of its own."""
    from numba.core.types import unliteral  # type: ignore[attr-defined]

    resolve = dispatcher.get_call_template

    def resolve_wide(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = resolve_wide


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without NumPy's warnings: compiled arithmetic wraps and divides by zero silently."""
    import numpy as np  # late: `import spinney._jit` stays free of NumPy

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return run


# --- The doors to the kernels -------------------------------------------------------------------------------


class Kernels:
    """Kernel modules as attributes, loaded when first named: `k.tree.driver.grow(...)`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def path(self) -> list[str]:
        """Folders of this package."""
        return list(importlib.import_module(self._package).__path__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by copy, pickle, inspect: never a module
            raise AttributeError(name)
        module = importlib.import_module(f"{self._package}.{name}")
        door: Any = module
        if hasattr(module, "__path__"):
            door = Kernels(module.__name__)
        elif self._package.startswith(_TWIN):
            door = _quiet_door(module)
        setattr(self, name, door)
        return door


def _quiet_door(module: ModuleType) -> ModuleType:
    """A copy of an interpreted module for calls from outside; kernels call each other without the wrapper."""
    door = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if not name.startswith("__"):
            setattr(door, name, _quiet(value) if isinstance(value, FunctionType) else value)
    return door


_compiled = Kernels(_COMPILED)
_interpreted = Kernels(_TWIN)
_is_compiled_loaded = False
_seconds_interpreted = 0.0  # work given to the twin so far; a lost update between threads would do no harm


def kernels(interpreted_seconds: float) -> Kernels:
    """The kernels for work that would take about `interpreted_seconds` interpreted.

    Results are the same either way. Small work goes to the twin until this process has spent there what the
    compiled kernels would have cost it (rent, then buy: as far as the estimates hold, at most twice the
    best). Once compiled kernels are loaded they do everything.
    """
    global _seconds_interpreted  # noqa: PLW0603
    if _IS_JIT_DISABLED:
        return interpreted()
    if _is_compiled_loaded or interpreted_seconds >= LOAD_SECONDS:
        return _compiled
    _seconds_interpreted += interpreted_seconds
    if _seconds_interpreted >= LOAD_SECONDS and _seconds_interpreted >= _price():
        return _compiled
    return interpreted()


def fixed(x: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view for a kernel that only reads: it is compiled per type, and some arrays are read-only."""
    import numpy as np

    view = x.view(np.ndarray)
    view.flags.writeable = False
    return view


def interpreted() -> Kernels:
    """The twin, whatever the size of the work."""
    if _TWIN not in sys.modules:
        spec = importlib.util.find_spec(_COMPILED)
        package = ModuleType(_TWIN, "The kernels, interpreted.")
        package.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        package.__package__ = _TWIN
        sys.modules.setdefault(_TWIN, package)  # atomic: threads agree on one
    return _interpreted


def load_compiled() -> Kernels:
    """Load every compiled kernel module, so that this process uses them for everything from now on."""
    if _IS_JIT_DISABLED:
        return interpreted()
    _load(_compiled)
    return _compiled


def _load(package: Kernels) -> None:
    for module in pkgutil.iter_modules(package.path()):
        if isinstance(part := getattr(package, module.name), Kernels):
            _load(part)


def _price() -> float:
    directory = cache_directory()
    is_stored = directory is not None and any(directory.glob("*.kernel"))
    return LOAD_SECONDS if is_stored else COMPILE_SECONDS


# --- The store ----------------------------------------------------------------------------------------------


class _Store:
    """Compiled code of one kernel on disk, in place of `numba.core.caching.FunctionCache` in a dispatcher.

    Numba calls `load_overload` before a compile and `save_overload` after it. Whatever goes wrong on disk
    is a miss. A file is the SHA-256 of the rest (32 bytes), then a pickle of (signature, result reduced
    by Numba).
    """

    def __init__(self, function: Callable[..., Any], directory: Path | None) -> None:
        self._name = f"{function.__module__.removeprefix(_COMPILED + '.')}.{function.__qualname__}"
        self._directory = directory

    @property
    def cache_path(self) -> str | None:
        return None if self._directory is None else str(self._directory)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The stored compile result, or None: then Numba compiles, and this says so first."""
        target_context.refresh()  # as Numba's own cache does: registers what a stored kernel may refer to
        result = None
        if self._directory is not None:
            result = self._read(self._path(signature, target_context.codegen()), signature, target_context)
        if result is None:
            _announce(self._directory, is_long=self._name in _LONGEST)
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compile result; a full disk or a lost directory only costs the next process a compile."""
        from numba.core.serialize import dumps

        if self._directory is None or result.lifted or result.library.has_dynamic_globals:
            return
        path = self._path(signature, result.codegen)
        try:
            body = dumps((signature, result._reduce()))  # noqa: SLF001
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_whole(path, hashlib.sha256(body).digest() + body)
        except Exception as error:  # noqa: BLE001
            _log.info("kernel %s could not be stored: %r", self._name, error)

    def _path(self, signature: Any, codegen: Any) -> Path:
        assert self._directory is not None
        # The triple, CPU name and CPU features are in the name: a home shared by unlike machines is safe.
        key = hashlib.sha256(repr((str(signature), codegen.magic_tuple())).encode()).hexdigest()[:20]
        return self._directory / f"{self._name}-{key}.kernel"

    def _read(self, path: Path, signature: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            body = memoryview(content)[32:]
            # A flipped bit in machine code would crash the process: nothing is unpickled before this test.
            if hashlib.sha256(body).digest() == content[:32]:
                stored_signature, reduced = pickle.loads(body)  # noqa: S301  (a private directory, see below)
                if stored_signature == signature:
                    return CompileResult._rebuild(target_context, *reduced)  # noqa: SLF001
            _log.info("stored kernel %s is damaged: compiling again", path)
        except Exception as error:  # noqa: BLE001
            _log.info("stored kernel %s cannot be used (%r): compiling again", path, error)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def flush(self) -> None:
        """Forget every stored signature of this kernel (Numba calls it from `recompile`)."""
        if self._directory is not None:
            for path in self._directory.glob(f"{self._name}-*.kernel"):
                path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Part of the interface; the store is always on."""

    def disable(self) -> None:
        """Part of the interface; the store is always on."""


def _write_whole(path: Path, content: bytes) -> None:
    """Write beside, then move: readers and other writers see a whole file or none."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


_announcement = threading.Lock()  # taken once, without waiting, and never given back


def _announce(directory: Path | None, *, is_long: bool = False) -> None:
    """Say when a compile really begins why it waits: once in a process, and again for each that takes long."""
    is_first = _announcement.acquire(blocking=False)
    if not (is_first or is_long) or sys.stderr is None:
        return
    kept = "once for this machine" if directory else "for this process only: no cache directory is writable"
    wait = "some ten seconds (`spinney warmup` does all at once)" if is_long else "a few seconds"
    with contextlib.suppress(OSError, ValueError):
        print(f"spinney: compiling kernels {kept}, {wait} ...", file=sys.stderr, flush=True)  # noqa: T201


# --- Where the store is -------------------------------------------------------------------------------------


@functools.cache
def cache_directory() -> Path | None:
    """The directory of this state of sources, versions and mode; None where nothing is writable."""
    name = f"kernels-{_state()}"
    for base in _bases():
        directory = base / name
        with contextlib.suppress(OSError):
            is_new = not directory.exists()
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Writing is the only honest test; it also dates the directory, which `_prune` looks at.
            with tempfile.NamedTemporaryFile(dir=directory, suffix=".part") as probe:
                probe.write(b"spinney")
                probe.flush()
            if is_new:
                _prune(base, keep=directory)
            return directory
    _log.warning("no cache directory is writable: kernels are compiled in every process (set SPINNEY_CACHE_DIR)")
    return None


def _state() -> str:
    """Hash of everything the machine code depends on, beyond signature and CPU."""
    from importlib.resources import files  # reads sources from a zip as well

    root = files("spinney")
    sources = {name: root / name for name in ("_jit.py", "_types.py")} | dict(_files_below(root / "kernels", "kernels"))
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        if name.endswith((".py", ".pyc")):
            digest.update(f"{name}\n".encode() + source.read_bytes())
    versions = [f"{name} {_version(name)}" for name in ("numba", "llvmlite", "numpy")]
    modes = [f"{name}={os.environ.get(name, '')}" for name in _MODES]
    digest.update("\n".join([sys.version, sys.platform, *versions, *modes]).encode())
    return digest.hexdigest()[:20]


def _files_below(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Every file below a folder, with its path from there on."""
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry, path)
        else:
            yield path, entry


def _version(name: str) -> str:
    """An installed version without importing the library."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a frozen application carries no metadata
        return str(importlib.import_module(name).__version__)


def _bases() -> Iterator[Path]:
    """Places to try, in order."""
    if chosen := os.environ.get("SPINNEY_CACHE_DIR"):
        yield Path(chosen)
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "spinney"
    with contextlib.suppress(RuntimeError):  # no home directory
        yield _user_cache() / "spinney"
    with contextlib.suppress(OSError):  # no temporary directory, or somebody else's
        yield _private_temporary()


def _user_cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def _private_temporary() -> Path:
    """A directory only this user can write to: the store is unpickled, and others write beside it."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.gettempdir()) / "spinney"  # Windows: the temporary directory is the user's own
    path = Path(tempfile.gettempdir()) / f"spinney-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(path)
    return path


def _prune(base: Path, keep: Path) -> None:
    """Remove the directories of states that no process has opened for a month."""
    for other in base.glob("kernels-*"):
        with contextlib.suppress(OSError):
            if other != keep and time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
