"""A door that is called many times with arguments of the same types: they are looked at once.

Before each call Numba asks what type every argument has. For an array it knows at once; named tuples of arrays cost a
driver 40 to 50 us a call, a tenth of a small tree. A caller that can tell by a word of its own, the *variant*, when
types are the same goes to the machine code directly (0.6 us for 72 arrays in 8 tuples, against 8.4).
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

CHECKS = os.environ.get("SPINNEY_CHECK_TYPES", "0") not in {"", "0"}
"""Whether every call is looked at after all: a wrong variant would be wrong memory. The tests set it."""


class SameTypes:
    """A door for calls of which those of one `variant` have arguments of the same types, in one fit.

    The caller answers for that: dtypes, dimensions, layout and which groups are None may differ between variants only.
    """

    def __init__(self, door: Callable[..., Any]) -> None:
        self._door = door
        self._entries: dict[Hashable, tuple[Callable[..., Any], Any]] = {}

    def __call__(self, variant: Hashable, *args: Any) -> Any:
        known = self._entries.get(variant)
        if known is not None:
            if CHECKS:
                found = types_of(self._door, args)
                assert found == known[1], f"variant {variant} of {self._door} had {known[1]}, has {found}"
            return known[0](*args)
        answer = self._door(*args)
        types = types_of(self._door, args)
        if types is not None and (result := _dispatcher(self._door).overloads.get(types)) is not None:
            self._entries[variant] = result.entry_point, types
        return answer


class SameDoors:
    """The doors of a module of kernels, each called with arguments of the same types, in one fit."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The door of this name; it is kept, so that this is asked once."""
        door = partial(SameTypes(getattr(self._module, name)), None)
        setattr(self, name, door)
        return door


def types_of(door: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Numba's types of the arguments; None for an interpreted door."""
    dispatcher = _dispatcher(door)
    if not hasattr(dispatcher, "overloads"):
        return None
    return tuple(map(dispatcher.typeof_pyval, args))


def _dispatcher(door: Any) -> Any:
    return getattr(door, "dispatcher", door)
