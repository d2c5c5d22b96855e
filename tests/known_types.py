"""Numba's types of arguments that have been seen before: what `_jit.same_types` asks at every call of a test.

To ask Numba takes most of a millisecond for the 72 arrays of a driver, four times as long as the small trees of the
tests. What its answer depends on is read from the arguments in a tenth of that, and Numba is asked once for each.
"""

import numpy as np

from spinney._jit import same_types

# Bits of `flags.num` that are part of an array's type: its layout (C, Fortran), aligned, writeable.
IN_TYPE = 0x0001 | 0x0002 | 0x0100 | 0x0400

ask_numba = same_types.types_of
_known = {}


def types_of(door, args):
    """As `same_types.types_of`, from memory where the same question has been asked."""
    is_compiled = hasattr(same_types._dispatcher(door), "overloads")
    question = is_compiled, look(args)
    if question not in _known:
        _known[question] = ask_numba(door, args)
    return _known[question]


def look(value):
    """All of an argument that its type depends on."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num & IN_TYPE, type(value)
    if isinstance(value, tuple):
        return type(value), *map(look, value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return int, "beyond 63 bits"
    return type(value)


def remember():
    """Let `same_types` ask here."""
    same_types.types_of = types_of
