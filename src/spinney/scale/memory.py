"""Bytes as people write them."""

from __future__ import annotations

import re
from typing import Any

UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(B?)\s*", re.IGNORECASE)


def read_bytes(given: Any) -> int | None:
    """A number of bytes: a whole number, or text such as 4GB or 512 MiB; None stays None.

    Examples
    --------
    >>> read_bytes("4GB"), read_bytes("1.5 KiB"), read_bytes(None)
    (4000000000, 1536, None)
    """
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if found is None or float(found[1]) == 0.0:
        raise ValueError(f"memory={given!r}: give a number of bytes, or text such as '4GB' or '512MB'")
    unit = UNITS[found[2].upper()]
    if found[3]:
        unit = 1024 ** "BKMGT".index(found[2].upper() or "B")
    return int(float(found[1]) * unit)


def show_bytes(n_bytes: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> show_bytes(5.13e9), show_bytes(999)
    ('5.1 GB', '999 B')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{int(n_bytes)} B"
