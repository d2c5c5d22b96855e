"""What all tests share: where the real tables are, how hard hypothesis tries, and what is left out where."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("SPINNEY_CHECK_TYPES", "1")  # see `_jit.same_types`; before the package is imported
# Read when NumPy is loaded, which is later. Threads of OpenBLAS wait by spinning, and on tables of a hundred rows do
# little else: with two, a logistic regression as a member takes thirty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Real tables kept beside the repository, not in it; tests that need them are skipped where they are absent.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NO_TABLES = f"no tables in {SHARED}"

IS_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
NOT_COMPILED = "NUMBA_DISABLE_JIT is set"
A_MOMENT = 0.01  # of the processor, after which a test that could not be stopped is looked at again
MOST_SECONDS = 5  # of the processor, for a test with interpreted kernels: compiled, most take a hundredth of it
TOO_LONG = f"stopped after {MOST_SECONDS} seconds of interpreted kernels"

# The oracle is slow on purpose, so neither a deadline nor the "too slow" check says anything. The same examples each
# time: who runs the tests of a change should meet its faults only. HYPOTHESIS_PROFILE=fresh and =thorough try others.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fresh", settings.get_profile("default"), derandomize=False)
settings.register_profile("thorough", settings.get_profile("fresh"), max_examples=2000)
# `make test`: a quarter of the examples that `make test-all` tries.
settings.register_profile("quick", settings.get_profile("default"), max_examples=12)
# Interpreted kernels take a hundred times as long; they are run to reach every line, which few examples do.
settings.register_profile("interpreted", settings.get_profile("default"), max_examples=5)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "interpreted" if IS_INTERPRETED else "default")
settings.load_profile(PROFILE)


def pytest_configure():
    import known_types  # once the folder of the tests is on the path

    known_types.remember()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what it puts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # and the processes of tests would ignore it too


_met = Counter()  # cases collected so far, by their function
_held = set()  # functions whose examples are cut down: one function has many cases


def pytest_itemcollected(item):
    """Mark what `sampled` leaves out as slow, hold a test to the examples of the profile, and check its markers."""
    for mark in item.iter_markers("compiled"):
        if set(mark.kwargs) != {"reason"} or mark.args:
            raise pytest.UsageError(f"{item.nodeid}: say why, as in @pytest.mark.compiled(reason='...')")
    if (mark := item.get_closest_marker("sampled")) is not None:
        (every,) = mark.args
        function = item.nodeid.partition("[")[0]
        if _met[function] % every:
            item.add_marker(pytest.mark.slow)
        _met[function] += 1
    hold_examples(getattr(item, "obj", None))


# Files that take seconds, for want of many tests to share them: first, so that processes end together.
LONG = (
    "cli/test_signals",
    "estimators/",
    "jit/test_jit",
    "scale/test_dask",
    "study/",
    "test_boosting",
    "test_examples",
    "tracing/",
)


def pytest_collection_modifyitems(items):
    """Put the long files first; the others stay as pytest-randomly has shuffled them."""
    tests = Path(__file__).parent
    items.sort(key=lambda item: not item.path.relative_to(tests).as_posix().startswith(LONG))


def hold_examples(test):
    """Cut down the examples that a test asks for by `settings` of its own, which would go before the profile's."""
    own = getattr(test, "_hypothesis_internal_use_settings", None)
    if own is None or PROFILE not in {"quick", "interpreted"} or test in _held:
        return
    _held.add(test)
    few = settings.get_profile(PROFILE).max_examples
    most = max(few, own.max_examples // 4) if PROFILE == "quick" else few
    if own.max_examples > most:
        test._hypothesis_internal_use_settings = settings(own, max_examples=most)


def pytest_runtest_setup(item):
    mark = item.get_closest_marker("compiled")
    if IS_INTERPRETED and mark is not None:
        pytest.skip(f"{NOT_COMPILED}: {mark.kwargs['reason']}")


def stop_test(_number, frame):
    """End a test whose time is over; a little later where coverage holds its lock, which it would keep for ever."""
    if frame is not None and "coverage" in Path(frame.f_code.co_filename).parts:
        signal.setitimer(signal.ITIMER_PROF, A_MOMENT)
        return
    pytest.skip(TOO_LONG)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Stop a test that is of a size for compiled kernels and not marked: an hour of it would say nothing more."""
    if not (IS_INTERPRETED and hasattr(signal, "setitimer")):
        return (yield)
    signal.signal(signal.SIGPROF, stop_test)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # the time of this process, however busy the machine is
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_terminal_summary(terminalreporter):
    """What a passing run has not looked at: `-ra` lists it, and the number is easily overlooked there."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if count := sum(NO_TABLES in reason for reason in reasons):
        terminalreporter.write_line(
            f"skipped for lack of the shared tables, which should be in {SHARED}: {count} tests"
        )
    if count := sum(NOT_COMPILED in reason for reason in reasons):
        terminalreporter.write_line(
            f"skipped because they need compiled kernels (NUMBA_DISABLE_JIT is set): {count} tests"
        )
    if count := sum(TOO_LONG in reason for reason in reasons):
        terminalreporter.write_line(f"{TOO_LONG}, to be made smaller or marked as compiled: {count} tests")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real tables."""
    if not SHARED.is_dir():
        pytest.skip(NO_TABLES)
    return SHARED
