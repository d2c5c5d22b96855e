"""What is raised where arrays do not describe a tree, and the check of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class BrokenTreeError(ValueError):
    """The arrays do not describe a tree."""


def require(holds: NDArray[np.bool_], fault: str) -> None:
    """Raise for the first node where `holds` is false."""
    if not holds.all():
        raise BrokenTreeError(f"node {int(np.argmin(holds))}: {fault}")


def check_types(holder: Any, field_types: dict[str, tuple[Any, ...]], prefix: str = "") -> None:
    """Every array has its type and number of dimensions: a kernel is compiled for these alone."""
    for name, (n_axes, *types) in field_types.items():
        array = getattr(holder, name, None)
        if not (isinstance(array, np.ndarray) and array.ndim == n_axes and array.dtype in types):
            what = " or ".join(np.dtype(kind).name for kind in types)
            raise BrokenTreeError(f"{prefix}{name} must be an array of {n_axes} axes and type {what}")
