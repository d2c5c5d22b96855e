"""What is derived once: of threads that want it at the same moment, one derives it and the others wait.

`functools.cached_property` lets each of them derive it, which for the layout of a large forest takes its memory as many
times. One lock serves the whole process, so that what is derived may ask for what else is derived, in any order. The
child of a fork gets a new one: a thread that held the old one is not there to give it back.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

T = TypeVar("T")

_deriving = threading.RLock()


def _renew() -> None:
    global _deriving  # noqa: PLW0603
    _deriving = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


class once(cached_property[T]):  # noqa: N801  (as the class it is)
    """A `cached_property` that one thread computes."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        if instance is None:
            return self
        assert self.attrname is not None
        return derive(instance, self.attrname, lambda: self.func(instance))


def derive(owner: object, name: str, make: Callable[[], T]) -> T:
    """What `owner` keeps under a name, made at first.

    Examples
    --------
    >>> class Owner: pass
    >>> owner = Owner()
    >>> derive(owner, "answer", lambda: 42), derive(owner, "answer", lambda: 7)
    (42, 42)
    """
    kept = vars(owner)
    if name not in kept:
        with _deriving:
            if name not in kept:
                kept[name] = make()
    made: T = kept[name]
    return made
