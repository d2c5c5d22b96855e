"""How kernels are run: the twin, the store on disk, and what can go wrong there.

Most tests run a process of their own on a copy of `_jit` beside two tiny kernel files, because what is
tested is what a fresh process does. The numbers in names are those of `tests/FAULTS.md`.
"""

import operator
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import spinney
from spinney import _jit
from spinney._jit import cache_dir, choice, process, ready, store

SOURCE = Path(spinney.__file__).parent

CALLEE = """
import numpy as np
from spinney._jit import door, kernel

STEP = np.uint64(0x9E3779B97F4A7C15)

@kernel
def mix(x):
    return (x + STEP) * STEP

@door
def mix_one(x):
    return mix(x)
"""

TYPES = """
from typing import Any, NamedTuple

class Pair(NamedTuple):
    values: Any
    out: Any
"""

CALLER = """
import numpy as np
from spinney._jit import door
from .callee import mix

@door
def total(pair):
    s = np.uint64(0)
    for i in range(pair.values.size):
        s = s ^ mix(np.uint64(pair.values[i]))
    pair.out[0] = np.int64(s >> np.uint64(1))
    return pair.out[0] / (pair.values[0] - pair.values[0])
"""

CALL = """
import sys
import numpy as np
from spinney import _jit
from spinney._types import Pair

def call(kernels):
    out = np.zeros(1, np.int64)
    kernels.callee.mix_one(np.uint64(1))
    ratio = kernels.caller.total(Pair(np.arange(1, 100), out))
    return int(out[0]), str(ratio)
"""


def make_copy(directory):
    """A copy of the package with two doors, `caller.total` and `callee.mix_one`, both on the kernel `mix`."""
    package = directory / "site" / "spinney"
    (package / "kernels").mkdir(parents=True)
    for name in ("__init__.py", "_files.py"):
        shutil.copy(SOURCE / name, package)
    shutil.copytree(SOURCE / "_jit", package / "_jit", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "_types.py").write_text(TYPES)
    (package / "kernels" / "__init__.py").write_text("")
    (package / "kernels" / "callee.py").write_text(CALLEE)
    (package / "kernels" / "caller.py").write_text(CALLER)
    return package


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, with an empty store."""
    return make_copy(tmp_path)


# What is asked of one fresh process, which compiles: it loads Numba, which takes as long as all the questions.
QUESTIONS = """
import numba
import threading

def settings():
    return {name: value for name, value in vars(numba.config).items() if name.isupper()}

before = settings()
kernels = _jit.load_compiled()
print(call(kernels))
print(before == settings())

from numba.np.ufunc import parallel
print(parallel._is_initialized, threading.active_count())

from numba.core.registry import cpu_target
names = cpu_target.target_context.codegen()._engine._defined_symbols
mangled = [f"_ZN7spinney7kernels6callee{len(name)}{name}B" for name in ("mix_one", "mix")]
print([any(name.startswith(start) for name in names) for start in mangled])

# The interpreter ends while a thread compiles.
threading.Thread(target=lambda: kernels.callee.mix_one(np.float32(1)), daemon=True).start()
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A copy whose kernels are stored, the answers to the questions of the process that did so, and what it said."""
    copy = make_copy(tmp_path_factory.mktemp("asked"))
    out, err = run(copy, QUESTIONS, NUMBA_NUM_THREADS="1")
    return copy, out.splitlines(), err


def environment(copy, **changes):
    """The environment of a process: a store of its own, and compiled whatever the mode of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "SPINNEY_", "XDG_"))}
    kept |= {"PYTHONPATH": str(copy.parent), "SPINNEY_CACHE_DIR": str(copy.parent / "store")}
    kept |= changes
    return {name: value for name, value in kept.items() if value is not None}


def start(copy, code, *options, **changes):
    return subprocess.Popen(
        [sys.executable, *options, "-c", CALL + textwrap.dedent(code)],
        env=environment(copy, **changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip(), err.strip()


def run(copy, code="print(call(_jit.load_compiled()))", *options, **changes):
    return finish(start(copy, code, *options, **changes))


def stored(copy):
    return sorted((copy.parent / "store").rglob("*.kernel"))


def expected():
    total = 0
    for value in range(1, 100):
        total ^= ((value + 0x9E3779B97F4A7C15) * 0x9E3779B97F4A7C15) % 2**64
    return str((total >> 1, "inf"))


# --- The twin -----------------------------------------------------------------------------------------------


def test_small_work_is_interpreted_without_numba_and_large_work_compiled(copy):
    out, err = run(
        copy,
        """
        print(call(_jit.kernels(0.01)), "numba" in sys.modules, "spinney._interpreted.callee" in sys.modules)
        print(call(_jit.kernels(60.0)), "numba" in sys.modules)
        print(_jit.kernels(0.01) is _jit.load_compiled(), _jit.kernels(0.01) is _jit.load_compiled())
        """,
        "-W",
        "error",
    )
    assert out.splitlines() == [f"{expected()} False True", f"{expected()} True", "False True"]
    assert err.count("compiling kernels once for this machine") == 1


def test_interpreted_calls_do_not_warn_and_calls_between_kernels_are_direct(copy):
    out, err = run(
        copy,
        """
        kernels = _jit.interpreted()
        print(call(kernels), kernels.caller.mix is kernels.callee.mix)
        inside = sys.modules["spinney._interpreted.caller"]
        print(inside.mix is sys.modules["spinney._interpreted.callee"].mix, inside.mix.__name__)
        """,
        "-W",
        "error",
    )
    assert out.splitlines() == [f"{expected()} False", "True mix"]
    assert err == ""


@pytest.fixture
def fresh(monkeypatch):
    """A process that has neither loaded nor spent anything."""
    for name, value in vars(process.Process()).items():
        monkeypatch.setattr(process.process, name, value)
    monkeypatch.setattr(choice, "IS_JIT_DISABLED", False)
    return process.process


@pytest.mark.parametrize("price", [_jit.LOAD_SECONDS, _jit.COMPILE_SECONDS])
def test_many_small_works_load_the_compiled_kernels_in_the_end(fresh, monkeypatch, price):
    monkeypatch.setattr(choice, "_price", lambda: price)
    n_calls = 0
    while _jit.kernels(0.125) is _jit.interpreted():
        fresh.pay(f"door {n_calls % 3}", 0.125)
        n_calls += 1
    assert (n_calls - 1) * 0.125 < price <= n_calls * 0.125
    assert _jit.kernels(0.125) is choice._ready


def test_large_work_is_compiled(fresh):
    assert _jit.kernels(_jit.SMALL_SECONDS) is _jit.compiled() is choice._compiled
    assert not fresh.waits_always


def test_rent_is_paid_by_door_and_ends_with_the_purchase(fresh):
    long, short = process.LONGEST[0], "predict.lanes.find"
    for seconds, has_paid in ((0.5, [False, False]), (0.5, [False, True]), (7.0, [True, True])):
        for door in (long, short):
            fresh.pay(door, seconds)
        assert [fresh.has_paid(door) for door in (long, short)] == has_paid
    fresh.buy(long)
    assert [fresh.has_paid(door) for door in (long, short)] == [False, True]
    assert fresh.rent == 16.0


def test_interpreted_calls_pay_rent(fresh):
    _jit.interpreted().common.rng.fold(np.uint64(1), np.uint64(2))
    assert list(fresh.rents) == ["common.rng.fold"]
    assert fresh.rent == fresh.rents["common.rng.fold"] > 0.0


# --- Small work beside compiled kernels ---------------------------------------------------------------------

LARGE = "large = _jit.kernels(60.0); large.callee.mix_one(np.uint64(1)); small = _jit.kernels(0.01)\n"
HOW = """
def how(door, *arguments):
    before = len(door.dispatcher.overloads), process.rent
    door(*arguments)
    return "compiled" if len(door.dispatcher.overloads) > before[0] else "twin" if process.rent > before[1] else "ready"
"""


def test_f5_small_work_beside_compiled_kernels_does_not_wait(copy):
    code = (
        "from spinney._jit.process import process\n" + LARGE + HOW + "print(how(small.callee.mix_one, np.uint64(2)))\n"
        "print(call(small), len(small.caller.total.dispatcher.overloads))\n"
        "print(how(small.callee.mix_one, np.float32(2)), small.caller.np is np, _jit.kernels(60.0) is large)\n"
        "print(_jit.is_compiled(small.callee.mix_one), _jit.is_compiled(small.caller.total))\n"
    )
    out, err = run(copy, code)
    assert out.splitlines() == ["ready", f"{expected()} 0", "twin True True", "True False"]
    assert err.count("compiling") == 1
    assert [path.name.split("-")[0] for path in stored(copy)] == ["callee.mix_one"]


def test_large_work_waits_beside_small_work_and_a_door_that_has_paid_its_rent_is_compiled_once(copy):
    code = (
        "from spinney._jit.process import process\n"
        + LARGE
        + HOW
        + """
from threading import Thread
plain = _jit.interpreted().callee.mix_one
def slow(x):
    thread = Thread(target=large.callee.mix_one, args=(np.int64(1),))
    thread.start()
    thread.join()
    return "twin"
_jit.interpreted().callee.mix_one = slow
print(small.callee.mix_one(np.float32(1)), [str(kind) for kind, in large.callee.mix_one.overloads])
_jit.interpreted().callee.mix_one = plain

process.pay('callee.mix_one', 60.0)
print(*[how(small.callee.mix_one, kind(1)) for kind in (np.float32, np.float32, np.float64)])
"""
    )
    assert run(copy, code)[0].splitlines() == ["twin ['uint64', 'int64']", "compiled ready twin"]


@pytest.mark.parametrize(("module", "kind"), [("grow", "CARTClassifier"), ("textbook", "ID3Classifier")])
def test_growth_that_takes_long_interpreted_asks_for_compiled_kernels(fresh, monkeypatch, module, kind):
    asked = []
    monkeypatch.setattr(f"spinney.tree.{module}.INTERPRETED_SECONDS", -1.0)
    monkeypatch.setattr(f"spinney.tree.{module}.compiled", lambda: asked.append(1) or _jit.interpreted())
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    labels = np.random.default_rng(0).integers(0, 2, 256)
    getattr(spinney, kind)().fit(bits, labels)  # more nodes than there is room for at first
    assert asked
    assert not fresh.waits_always


TINY = """
import sys
import numpy as np
from spinney import (
    AdaBoostClassifier, C45Classifier, CARTClassifier, CARTRegressor, GradientBoostingClassifier, ID3Classifier,
    RandomForestClassifier, RandomForestRegressor, _jit,
)
if "beside" in sys.argv:  # one compiled door
    _jit.kernels(60.0).data.binning.fill_bins(np.ones(3, np.int64), 2, np.zeros(3, np.int64))
    assert _jit.kernels(0.0) is not _jit.interpreted()
n_stored = len(list(_jit.cache_directory().glob("*.kernel")))
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 3)).round(1)
y = np.arange(50) % 3
for kind, n in (
    (CARTClassifier, 3), (CARTRegressor, 14), (ID3Classifier, 3), (C45Classifier, 14), (AdaBoostClassifier, 10),
    (RandomForestClassifier, 10), (RandomForestRegressor, 10), (GradientBoostingClassifier, 50),
):
    options = {"n_estimators": 3} if hasattr(kind(), "n_estimators") else {}
    if hasattr(kind(), "random_state"):
        options["random_state"] = 0
    model = kind(**options).fit(X[:n], y[:n])
    answer = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    print(kind.__name__, answer.tobytes().hex())
print(len(list(_jit.cache_directory().glob("*.kernel"))) - n_stored)
"""


@pytest.mark.compiled(reason="nothing is compiled")
@pytest.mark.slow
def test_f5_tiny_fits_of_every_method_do_not_wait_beside_compiled_kernels(tmp_path):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    kept |= {"SPINNEY_CACHE_DIR": str(tmp_path)}
    done = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", TINY, *how], env=kept, capture_output=True, text=True, check=True
        )
        for how in ((), ("beside",))
    ]
    alone, beside = (process.stdout.splitlines() for process in done)
    assert alone == beside
    assert beside[-1] == "0"
    assert [process.stderr.count("compiling kernels") for process in done] == [0, 1]


def test_kernel_modules_are_not_confused_with_special_names():
    with pytest.raises(AttributeError):
        _ = _jit.Kernels("spinney.kernels", ready.ready_doors).__wrapped__
    with pytest.raises(ModuleNotFoundError):
        _ = _jit.Kernels("spinney.kernels", ready.ready_doors).no_such_kernels


@pytest.mark.parametrize("path", sorted((SOURCE / "kernels").rglob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_kernel_file_loads_as_a_twin(path):
    name = ".".join(path.relative_to(SOURCE / "kernels").with_suffix("").parts)
    door = operator.attrgetter(name)(_jit.interpreted())
    inside = sys.modules[f"spinney._interpreted.{name}"]
    assert Path(inside.__file__) == path
    own = [name for name, value in vars(inside).items() if getattr(value, "__module__", "") == inside.__name__]
    assert own
    assert all(callable(getattr(door, name)) for name in own)


# --- The store ----------------------------------------------------------------------------------------------


def test_a_process_that_compiles_says_so_once(asked):
    _, answers, said = asked
    assert answers[0] == expected()
    assert said.count("compiling kernels once for this machine") == 1


def test_second_process_compiles_nothing_and_says_nothing(asked):
    """Small work beside compiled kernels takes what is stored."""
    copy, _, _ = asked
    before = [(path, path.stat().st_mtime_ns) for path in stored(copy)]
    code = (
        "from spinney._jit.process import process\n" + LARGE + HOW + "print(_jit.is_compiled(small.caller.total))\n"
        "print(how(small.caller.total, Pair(np.arange(1, 100), np.zeros(1, np.int64))))\n"  # loaded, that is
        "print(how(small.caller.total, Pair(np.arange(1.0, 100.0), np.zeros(1, np.int64))))\n"
        "print(call(_jit.load_compiled()))"
    )
    assert run(copy, code) == (f"True\ncompiled\ntwin\n{expected()}", "")
    assert before == [(path, path.stat().st_mtime_ns) for path in stored(copy)]
    assert {path.name.split("-")[0] for path, _ in before} == {"callee.mix_one", "caller.total"}


@pytest.mark.slow
def test_bytecode_that_python_writes_beside_the_sources_is_no_other_state(copy):
    nested = copy / "kernels" / "folder"
    nested.mkdir()
    (nested / "__init__.py").write_text("")
    assert run(copy, PYTHONDONTWRITEBYTECODE=None)[0] == expected()
    assert list(copy.rglob("__pycache__/callee.*.pyc"))
    assert run(copy, PYTHONDONTWRITEBYTECODE=None) == (expected(), "")


@pytest.mark.parametrize("name", ["_types.py", "_jit/store.py", "_jit/folder/new.py", "kernels/folder/new.py"])
def test_every_source_of_machine_code_is_part_of_the_state(copy, name):
    code = "print(_jit.cache_directory())"
    before = run(copy, code)[0]
    path = copy / name
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "\n# edited\n")
    assert run(copy, code)[0] != before


def test_fault_115_read_only_install_and_home(copy, tmp_path):
    # Every place is barred by a file where a directory would have to be: permissions do not stop root.
    barred = tmp_path / "file"
    barred.write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / f"spinney-{os.getuid()}").write_text("")
    before = sorted(copy.rglob("*.py"))
    out, err = run(
        copy,
        "import logging; logging.basicConfig(); print(call(_jit.load_compiled()))",
        "-B",
        HOME=str(barred),
        SPINNEY_CACHE_DIR=str(barred / "a"),
        NUMBA_CACHE_DIR=str(barred / "b"),
        XDG_CACHE_HOME=str(barred / "c"),
        TMPDIR=str(temporary),
    )
    assert out == expected()
    assert err.count("no cache directory is writable: kernels are compiled in every process") == 1
    assert err.count("compiling kernels for this process only") == 1
    assert sorted(path for path in copy.rglob("*") if path.is_file()) == before


def test_fault_115_places_are_tried_in_order(monkeypatch, tmp_path):
    barred = tmp_path / "file"
    barred.write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    places = {"SPINNEY_CACHE_DIR": "own", "NUMBA_CACHE_DIR": "numba", "XDG_CACHE_HOME": "user"}
    for variable, name in places.items():
        monkeypatch.setenv(variable, str(tmp_path / name))
    chosen = []
    for variable in [*places, "TMPDIR"]:
        directory = _jit.cache_directory.__wrapped__()
        chosen.append(directory.parent.relative_to(tmp_path).as_posix())
        monkeypatch.setenv(variable, str(barred))
    assert chosen == ["own", "numba/spinney", "user/spinney", f"spinney-{os.getuid()}"]


@pytest.mark.parametrize("trap", ["symlink", "open to others"])
def test_fault_115_a_temporary_directory_open_to_others_is_refused(trap, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / f"spinney-{os.getuid()}"
    if trap == "symlink":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
        path.chmod(0o777)
    with pytest.raises(PermissionError):
        cache_dir._private_temporary()


def test_fault_116_damaged_file_is_compiled_again(copy):
    out, err = run(
        copy,
        """
        import hashlib, importlib
        kernels = _jit.load_compiled()
        call(kernels)
        callee, caller = sorted(_jit.cache_directory().glob("*.kernel"))
        sound = caller.read_bytes()
        for content in (
            sound,
            b"",
            sound[: len(sound) // 2],
            b"garbage" * 1000,
            sound[:-5000] + bytes([sound[-5000] ^ 1]) + sound[-4999:],
            hashlib.sha256(b"text").digest() + b"text",
            callee.read_bytes(),
        ):
            caller.write_bytes(content)
            importlib.reload(kernels.caller)  # a new dispatcher, which looks on disk again
            print(call(kernels), sum(kernels.caller.total.stats.cache_misses.values()))
        """,
    )
    assert out.splitlines() == [f"{expected()} {n_compiles}" for n_compiles in (0, 1, 1, 1, 1, 1, 1)]
    assert "Traceback" not in err
    assert run(copy) == (expected(), "")  # mended for the next process


def test_fault_116_store_deleted_or_full_in_mid_run(copy):
    out, err = run(
        copy,
        """
        import shutil
        from pathlib import Path
        store = _jit.cache_directory()
        kernels = _jit.load_compiled()
        shutil.rmtree(store)
        print(call(kernels), len(list(store.glob("*"))))
        from spinney._jit import store as files
        def full(path):
            raise OSError(28, "No space left on device")
        files.replacing = full
        print(kernels.callee.mix_one(np.float32(1)) > 0)
        shutil.rmtree(store)
        store.write_text("a file in its place")
        print(kernels.callee.mix_one(np.float64(1)) > 0)
        """,
    )
    assert out.splitlines() == [f"{expected()} 2", "True", "True"]
    assert "Traceback" not in err


def test_fault_116_interrupted_write_leaves_nothing_behind(tmp_path):
    def write():
        with store.replacing(tmp_path / "a.kernel") as file:
            file.write(b"content")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_fault_117_other_versions_cpus_and_modes_have_files_of_their_own(copy, monkeypatch):
    run(copy)
    assert len(stored(copy)) == 2
    run(copy, NUMBA_CPU_NAME="generic")  # another CPU: same directory, other names
    assert len(stored(copy)) == 4
    assert len({path.parent for path in stored(copy)}) == 1
    state = cache_dir._state()
    monkeypatch.setattr(cache_dir, "_version", lambda _: "99.0")
    assert cache_dir._state() != state


@pytest.mark.slow
def test_fault_117_bounds_checks_are_not_lost_in_the_store(copy):
    (copy / "kernels" / "reader.py").write_text(
        "from spinney._jit import door\n@door\ndef read(values, i):\n    return values[i]\n"
    )
    code = """
    try:
        print(_jit.load_compiled().reader.read(np.zeros(2), 2) is not None)
    except IndexError:
        print("IndexError")
    """
    assert [run(copy, code, NUMBA_BOUNDSCHECK=mode)[0] for mode in ("0", "1", "0", "1")] == [
        "True",
        "IndexError",
    ] * 2


def test_fault_118_two_cold_processes_at_once(copy):
    results = [finish(process) for process in [start(copy, "print(call(_jit.load_compiled()))") for _ in range(2)]]
    assert [out for out, _ in results] == [expected()] * 2
    assert run(copy) == (expected(), "")
    assert list((copy.parent / "store").rglob("*.part")) == []


def test_fault_110_threads_that_begin_together_agree(copy):
    out, err = run(
        copy,
        """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        together = Barrier(8)
        def one(seconds):
            together.wait()
            return call(_jit.kernels(seconds))
        with ThreadPoolExecutor(8) as pool:
            print(*set(pool.map(one, [0.01, 60.0] * 4)))
        """,
    )
    assert out == expected()
    assert err.count("compiling kernels") == 1


def test_fault_119_an_edited_callee_in_another_file_is_noticed(copy):
    assert run(copy)[0] == expected()
    (copy / "kernels" / "callee.py").write_text(CALLEE.replace("(x + STEP)", "(x - x + STEP)"))
    changed = (0x9E3779B97F4A7C15 * 0x9E3779B97F4A7C15) % 2**64 >> 1
    assert run(copy)[0] == str((changed, "inf"))


def test_fault_121_disabled_jit_gives_the_same_and_never_imports_numba(copy):
    out, err = run(
        copy,
        """
        print(call(_jit.kernels(60.0)), call(_jit.load_compiled()))
        from spinney.kernels import caller
        print(caller.total(Pair(np.arange(1, 100), np.zeros(1, np.int64))), "numba" in sys.modules)
        """,
        "-W",
        "error",
        NUMBA_DISABLE_JIT="1",
    )
    assert out.splitlines() == [f"{expected()} {expected()}", "inf False"]
    assert err == ""


def test_fault_122_123_124_one_thread_no_parallel_layer_and_exit_during_a_compile(asked):
    _, answers, _ = asked
    assert answers[2] == "False 1"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for another process")
def test_fault_124_interrupt_during_a_compile_ends_the_process(copy):
    process = start(copy, "kernels = _jit.load_compiled(); print('ready', flush=True); call(kernels)")
    assert process.stdout.readline() == "ready\n"
    process.stderr.readline()  # the announcement: the compiler is at work
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert run(copy)[0] == expected()


def test_numba_configuration_is_left_alone(asked):
    _, answers, _ = asked
    assert answers[1] == "True"


def test_kernels_that_only_kernels_call_are_unknown_to_the_engine(asked):
    """It would take their code, which is not optimised, for the calls that a door did not inline."""
    _, answers, _ = asked
    assert answers[3] == "[True, False]"


def test_kernels_compile_the_long_way_where_numba_has_changed(copy):
    moved = """
    from spinney._jit import inner_compiler
    def moved():
        raise AttributeError("BaseContext")
    inner_compiler.sparing_compile = moved
    print(call(_jit.load_compiled()))
    print(sorted(inner_compiler.inner_options()), sorted(inner_compiler.door_options()))
    """
    out, _ = run(copy, moved)
    assert out.splitlines() == [expected(), "['no_cfunc_wrapper', 'no_cpython_wrapper'] ['no_cfunc_wrapper']"]


@pytest.mark.slow
def test_recompile_forgets_the_stored_code(copy):
    run(copy)
    out, err = run(copy, "k = _jit.load_compiled(); print(call(k)); k.caller.total.recompile(); print(call(k))")
    assert out == f"{expected()}\n{expected()}"
    assert "compiling" in err


def test_directories_unused_for_a_month_are_removed(tmp_path):
    old, recent, keep, other = (tmp_path / name for name in ("kernels-a", "kernels-b", "kernels-c", "other"))
    long_ago = time.time() - 40 * 24 * 3600
    for path in (old, recent, keep, other):
        path.mkdir()
        (path / "f.kernel").write_text("")
    for path in (old, keep, other):
        os.utime(path, (long_ago, long_ago))
    cache_dir._prune(tmp_path, keep)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels-b", "kernels-c", "other"]


def test_without_stderr_nothing_is_announced(monkeypatch):
    monkeypatch.setattr(store, "_announcement", store.threading.Lock())
    monkeypatch.setattr(sys, "stderr", None)
    store._announce(None)


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals to one process only")
@pytest.mark.parametrize("module", ["numba.core.typeconv", "numba.core.datamodel", "spinney.kernels.caller"])
def test_fault_120_an_interrupted_load_of_numba_is_ended_all_the_same(copy, module):
    """Half a package that is imported anew lacks what its modules were before: nothing would be compiled any more."""
    interrupted = f"""
    import os, signal, time

    class Interrupter:
        def find_spec(self, name, path=None, target=None):
            if name == {module!r}:
                sys.meta_path.remove(self)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)  # by when the main thread has heard of it

    sys.meta_path.insert(0, Interrupter())
    try:
        _jit.load_compiled()
        print("loaded")
    except KeyboardInterrupt:
        print("interrupted")
    print(call(_jit.load_compiled()))
    """
    out, _ = run(copy, interrupted)
    assert out.splitlines() == ["interrupted", expected()]
