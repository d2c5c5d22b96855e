"""Models and answers are the same to the last bit whatever vectors NumPy uses, compiled and interpreted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import same_bits
import spinney
from spinney import _jit

TESTS = Path(__file__).parent


def run_alone(code, **environment):
    """What a new process prints, as JSON."""
    places = os.pathsep.join([str(Path(spinney.__file__).parents[1]), str(TESTS)])
    places = {**os.environ, "PYTHONPATH": places, "NUMBA_DISABLE_JIT": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=places, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def without_vectors():
    """An environment where NumPy uses none of the vectors that it asks this CPU for."""
    numpy = np._core._multiarray_umath
    found = [name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__[name]]
    if not found or os.environ.get("NPY_DISABLE_CPU_FEATURES"):
        pytest.skip("NumPy chooses nothing by this CPU")
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(found)}


MARKS = "import json, same_bits; print(json.dumps(same_bits.find_marks()))"


@pytest.fixture(scope="module")
def compiled_marks():
    _jit.load_compiled()
    return same_bits.find_marks()


def test_models_depend_neither_on_the_vectors_of_the_cpu_nor_on_the_compiler(compiled_marks, without_vectors):
    """Interpreted without vectors as compiled with them: were one of the two to matter, they would differ."""
    assert run_alone(MARKS, **without_vectors) == compiled_marks


def test_the_comparison_can_fail(without_vectors):
    """NumPy's own functions do depend on them, on a CPU with AVX-512: there the test above says something."""
    if not np._core._multiarray_umath.__cpu_features__.get("AVX512_SKX"):
        pytest.skip("NumPy has its own logarithm for AVX-512 only")
    code = (
        "import numpy as np; x = np.random.default_rng(0).random(100_000)\n"
        "print([f(x).tobytes().hex().__hash__() for f in (np.exp, np.log, np.log2)])"
    )
    seed = {"PYTHONHASHSEED": "0"}
    assert run_alone(code, **seed) != run_alone(code, **seed, **without_vectors)


@pytest.mark.slow
def test_interpreted_models_with_vectors_are_the_same(compiled_marks):
    assert run_alone(MARKS) == compiled_marks
