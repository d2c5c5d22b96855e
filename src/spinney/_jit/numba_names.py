"""The private names of Numba that this package relies on, and which of them are gone.

Users lose no results where one is: kernels then compile the long way, or anew in each process. But they wait, and
nothing else would tell; so a test and `spinney doctor` ask. `pyproject.toml` keeps Numba below the first version that
was not tried.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple

from spinney._jit.compile_less import NEEDLESS


class Name(NamedTuple):
    """A name of Numba: its place, the file here that needs it, and the parameters it is called or replaced with."""

    module: str
    path: str
    file: str
    parameters: tuple[str, ...] | None = None


REBUILT = (
    "target_context",
    "libdata",
    "fndesc",
    "env",
    "signature",
    "objectmode",
    "lifted",
    "typeann",
    "reload_init",
    "referenced_envs",
)
NAMES = (
    Name("numba._dynfunc", "make_function", "inner_compiler.py"),
    Name("numba.core.analysis", "dead_branch_prune", "compile_less.py", ("func_ir", "called_args")),
    Name("numba.core.untyped_passes", "DeadBranchPrune.run_pass", "compile_less.py", ("self", "state")),
    Name("numba.core.codegen", "JITCodeLibrary.finalize", "libraries.py", ("self",)),
    Name("numba.core.codegen", "JITCodeLibrary._get_module_for_linking", "libraries.py", ("self",)),
    Name("numba.core.codegen", "JITCodeLibrary._finalized", "libraries.py"),
    Name("numba.core.codegen", "JITCodeLibrary", "libraries.py", ("codegen", "name")),
    Name("numba.core.codegen", "JITCodeLibrary._optimize_functions", "libraries.py", ("self", "ll_module")),
    Name("numba.core.codegen", "CPUCodegen._function_pass_manager", "libraries.py", ("self", "kwargs")),
    Name("numba.core.compiler", "Compiler.compile_extra", "inner_compiler.py", ("self", "func")),
    Name("numba.core.compiler", "Compiler.define_pipelines", "inner_compiler.py", ("self",)),
    Name(
        "numba.core.compiler",
        "DefaultPassBuilder.define_nopython_pipeline",
        "inner_compiler.py",
        ("state", "name"),
    ),
    Name("numba.core.compiler_machinery", "register_pass", "inner_compiler.py", ("mutates_CFG", "analysis_only")),
    Name("numba.core.compiler_machinery", "PassManager.finalize", "inner_compiler.py", ("self",)),
    Name("numba.core.typed_passes", "NativeLowering.run_pass", "inner_compiler.py", ("self", "state")),
    Name("numba.core.cpu", "CPUContext.get_executable", "inner_compiler.py", ("self", "library", "fndesc", "env")),
    Name("numba.core.base", "BaseContext.get_abi_sizeof", "compile_less.py", ("self", "ty")),
    Name("numba.core.base", "BaseContext.get_arg_packer", "compile_less.py", ("self", "fe_args")),
    Name("numba.core.datamodel.packer", "ArgPacker", "arguments.py", ("dmm", "fe_args")),
    Name("numba.core.types", "BaseNamedTuple", "arguments.py"),
    Name(
        "numba.core.postproc",
        "PostProcessor.run",
        "compile_less.py",
        ("self", "emit_dels", "extend_lifetimes"),
    ),
    Name("numba.core.postproc", "VariableLifetime", "compile_less.py", ("blocks",)),
    Name("numba.core.transforms", "canonicalize_cfg", "compile_less.py", ("blocks",)),
    Name(
        "numba.core.types.functions",
        "BaseFunction.get_call_type",
        "compile_less.py",
        ("self", "context", "args", "kws"),
    ),
    Name("numba.core.types", "int64._code", "compile_less.py"),
    *(Name("numba.core.compiler", name, "compile_less.py") for name in sorted(NEEDLESS)),
    Name("numba.core.types", "unliteral", "inner_compiler.py"),
    Name("numba.core.dispatcher", "Dispatcher.get_call_template", "inner_compiler.py", ("self", "args", "kws")),
    Name("numba.core.cpu", "CPUTargetOptions._nrt", "decorators.py"),
    Name("numba.core.cpu", "CPUTargetOptions.forceinline", "decorators.py"),
    Name("numba.core.cpu", "CPUTargetOptions.no_cpython_wrapper", "inner_compiler.py"),
    Name("numba.core.cpu", "CPUTargetOptions.no_cfunc_wrapper", "inner_compiler.py"),
    Name("numba.extending", "is_jitted", "decorators.py"),
    Name("numba.core.dispatcher", "Dispatcher._compile_for_args", "ready.py", ("self", "args", "kws")),
    Name("numba.core.dispatcher", "Dispatcher.typeof_pyval", "ready.py", ("self", "val")),
    Name("numba.core.compiler", "CompileResult.entry_point", "same_types.py"),
    Name("numba.core.compiler", "CompileResult._reduce", "store.py", ("self",)),
    Name("numba.core.compiler", "CompileResult._replace", "store.py"),
    Name("numba.core.compiler", "CompileResult.type_annotation", "store.py"),
    Name("numba.core.compiler", "CompileResult.lifted", "store.py"),
    Name(
        "numba.core.compiler",
        "CompileResult._rebuild",
        "store.py",
        REBUILT,
    ),
    Name("numba.core.serialize", "dumps", "store.py", ("obj",)),
    Name("numba.core.codegen", "JITCPUCodegen.magic_tuple", "store.py", ("self",)),
    Name("numba.core.codegen", "JITCodeLibrary.has_dynamic_globals", "store.py"),
    Name("numba.core.caching", "FunctionCache.load_overload", "store.py", ("self", "sig", "target_context")),
    Name("numba.core.caching", "FunctionCache.save_overload", "store.py", ("self", "sig", "data")),
    Name("numba.core.caching", "FunctionCache.flush", "store.py", ("self",)),
    Name("numba.core.caching", "FunctionCache.cache_path", "store.py"),
)

OF_DISPATCHERS = ("_cache", "overloads", "py_func", "targetctx")  # attributes of each that njit makes


def find_moved(names: tuple[Name, ...] = NAMES, attributes: tuple[str, ...] = OF_DISPATCHERS) -> list[str]:
    """What has moved or changed, one sentence each that names Numba's version, the name and the file to mend."""
    import numba

    version = f"Numba {numba.__version__}"
    faults = [(name, _fault(name)) for name in names]
    found = [
        f"{version}: {name.module}.{name.path} {fault}; mend spinney/_jit/{name.file}."
        for name, fault in faults
        if fault
    ]
    dispatcher = numba.njit(_nothing)
    if numba.extending.is_jitted(dispatcher):
        found += [
            f"{version}: dispatchers have no attribute {name!r}; mend spinney/_jit/ready.py and store.py."
            for name in attributes
            if not hasattr(dispatcher, name)
        ]
    return found


def _nothing() -> None:
    pass


def _fault(name: Name) -> str:
    """What is wrong with a name; empty where all is well."""
    try:
        thing: Any = importlib.import_module(name.module)
        for part in name.path.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError):
        return "is gone"
    if name.parameters is None:
        return ""
    seen = tuple(inspect.signature(thing).parameters)
    return "" if seen == name.parameters else f"takes ({', '.join(seen)}) and not ({', '.join(name.parameters)})"
