"""One counter-based generator: a draw is a pure function of its key, whatever the order of the calls.

Words: a *key* is 64 bits that name a place (seed, tree, node ...); `fold` makes the key of a part of it.
The mixing is the finaliser of SplitMix64 (Steele, Lea and Flood 2014, Stafford's variant 13), applied twice:
weakly mixed seeds grow correlated trees.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
STEP = 1.0 / 9007199254740992.0  # 2**-53
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)


@inlined
def mix(x: np.uint64) -> np.uint64:
    """Scatter the bits of x; a bijection."""
    x = (x ^ (x >> S30)) * FIRST
    x = (x ^ (x >> S27)) * SECOND
    return x ^ (x >> S31)


@inlined
def fold(key: np.uint64, part: np.uint64) -> np.uint64:
    """Return the key of part number `part` of the place named by `key`."""
    return mix(mix(key + GOLDEN) ^ (part * GOLDEN + SECOND))


@inlined
def fraction(word: np.uint64) -> float:
    """A word of random bits as a number of 0 .. 1, 1 excluded, in steps of 2**-53."""
    return np.float64(word >> S11) * STEP


@inlined
def below(key: np.uint64, index: int, bound: int) -> int:
    """Draw number `index` of `key`, uniform over 0 .. bound - 1 (bound < 2**53)."""
    return np.int64(fraction(fold(key, np.uint64(index))) * np.float64(bound))
