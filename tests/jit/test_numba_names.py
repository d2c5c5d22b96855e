"""Private names of Numba: a new version that has moved one must not pass unnoticed."""

import numba
import pytest

from spinney._jit import numba_names
from spinney._jit.numba_names import NAMES, Name, find_moved


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_numba_has_what_jit_relies_on(name):
    assert find_moved((name,), ()) == []


def test_dispatchers_have_what_jit_relies_on():
    assert find_moved((), numba_names.OF_DISPATCHERS) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            Name("numba.core.codegen", "JITCodeLibrary._no_such_thing", "inner_compiler.py"),
            "numba.core.codegen.JITCodeLibrary._no_such_thing is gone; mend spinney/_jit/inner_compiler.py.",
        ),
        (Name("numba.core.no_such_module", "f", "store.py"), "numba.core.no_such_module.f is gone; mend"),
        (
            Name("numba.core.codegen", "JITCodeLibrary._finalize_final_module", "store.py", ("self", "more")),
            "takes (self) and not (self, more); mend spinney/_jit/store.py.",
        ),
    ],
)
def test_the_check_can_fail(name, message):
    (found,) = find_moved((name,), ())
    assert found.startswith(f"Numba {numba.__version__}: ")
    assert message in found


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="no dispatchers")
def test_the_check_of_dispatchers_can_fail():
    (found,) = find_moved((), ("overloads", "_no_such_thing"))
    assert "dispatchers have no attribute '_no_such_thing'; mend spinney/_jit/ready.py and store.py." in found
