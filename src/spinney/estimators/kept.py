"""What an estimator keeps of a fit, declared by its class attribute by attribute: all that files and pickles hold."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from spinney.model.container import BrokenFileError
from spinney.model.state import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = "_fitted"  # the attribute that holds a fitted model as one value; its parts are kept by their own names


HASH = re.compile("((tree:|cells:)?[0-9a-f]{64}){1,2}")


class _Absent:
    """There is no such attribute; None may be the value of one."""


ABSENT = _Absent()


class Part:
    """A fitted attribute that is a part of `_fitted`, the fitted model.

    Parameters
    ----------
    path : str
        Names of fields, such as "forest" or "out_of_bag.votes". Where a group on the way is None there is no attribute.
        The last name may be that of a property of the model: such an attribute follows from others, and is read only.
    source : str, optional
        The attribute that it follows from, where that one can be set.
    shown : str, optional
        Property of the fitted model that users are shown in its place, whose `arrays` is the part; files hold the part.
    """

    def __init__(self, path: str, source: str | None = None, shown: str | None = None) -> None:
        self.path = path
        self.source = source
        self.shown = shown

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember what messages call it."""
        self.name = name

    def find(self, estimator: Any) -> Any:
        """The value, or ABSENT."""
        value = vars(estimator).get(VALUE)
        if value is None:
            return ABSENT
        *groups, last = self.path.split(".")
        for group in groups:
            value = getattr(value, group)
            if value is None:
                return ABSENT
        return getattr(value, last)

    def __get__(self, estimator: Any, owner: type) -> Any:
        """The value; an AttributeError where scikit-learn's rules want one."""
        if estimator is None:
            return self
        value = self.find(estimator)
        if value is ABSENT:
            raise AttributeError(f"this {type(estimator).__name__} has no attribute {self.name!r}")
        return value if self.shown is None else getattr(vars(estimator)[VALUE], self.shown)

    def __set__(self, estimator: Any, value: Any) -> None:
        """Put another value in place of the part: in a model that is otherwise the same, for the old one is frozen."""
        if vars(estimator).get(VALUE) is None:
            raise AttributeError(f"{self.name!r} can be set once this {type(estimator).__name__} has been fitted")
        if self.shown is not None:
            value = getattr(value, "arrays", value)
        try:
            vars(estimator)[VALUE] = replace_at(vars(estimator)[VALUE], self.path.split("."), value)
        except NoFieldError:
            way_out = "fit again" if self.source is None else f"fit again, or set {self.source!r}"
            raise AttributeError(
                f"{self.name!r} of a fitted {type(estimator).__name__} is read only, for it follows from other "
                f"attributes: {way_out}"
            ) from None

    def __delete__(self, estimator: Any) -> None:
        """Refuse: a model without one of its parts would be none."""
        raise AttributeError(
            f"{self.name!r} of a {type(estimator).__name__} is a part of its model and cannot be deleted: fit again, "
            "or take an unfitted copy by sklearn.base.clone"
        )


class NoFieldError(Exception):
    """A value has no such field that could be replaced."""


def replace_at(value: Any, path: list[str], new: Any) -> Any:
    """A frozen dataclass or named tuple with another value in place of a field, given by the names on the way to it."""
    first, *rest = path
    is_tuple = isinstance(value, tuple)
    if value is None:
        raise AttributeError(f"there is no {first!r} to change in this model: fit again with parameters that make it")
    if first not in (value._fields if is_tuple else {field.name for field in fields(value)}):
        raise NoFieldError
    change = {first: replace_at(getattr(value, first), rest, new) if rest else new}
    return value._replace(**change) if is_tuple else replace(value, **change)


class Stored(Protocol):
    """A value that knows how files hold it, under the name of its class."""

    def store(self) -> dict[str, Any]:
        """Its parts by name, from which it can be made again: numbers, texts, arrays, other values that are stored."""
        raise NotImplementedError

    @classmethod
    def restore(cls, parts: dict[str, Any]) -> Self:
        """The value of such parts, which nobody has checked: ValueError, or another, where there is none."""
        raise NotImplementedError


class Kept(NamedTuple):
    """A fitted attribute that files and pickles hold.

    Attributes
    ----------
    types : type or union of types
        Of the values that it may have.
    is_needed : bool
        Whether every fitted estimator of the class has it.
    check : callable, optional
        Of (value, estimator), after all attributes of the estimator have been set and are of their types: what is wrong
        with the value, or None. Kernels and methods trust what has passed.
    stored : tuple of classes
        That say themselves how files hold them: those that the value may be of, and those inside it. Arrays, trees and
        what else `model.state` knows need not be named.
    """

    types: Any
    is_needed: bool = True
    check: Callable[[Any, Any], str | None] | None = None
    stored: tuple[type[Stored], ...] = ()


def find_hash_fault(text: str, _: Any) -> str | None:
    """A hash of data is 64 hexadecimal digits, marked where it is one of blocks or cells; bagging has two.

    The second is that of weights; that of weights which are all 1 is empty.
    """
    return None if not text or HASH.fullmatch(text) else f"{text!r:.60} is no hash"


def kept_by(cls: Any) -> dict[str, Kept]:
    """The declarations of a class and its bases; those of the class itself go before."""
    declared: dict[str, Kept] = {}
    for base in reversed(cls.__mro__):
        declared |= vars(base).get("_keeps", {})
    return declared


def kinds_of(cls: Any) -> dict[str, Kind]:
    """How the values that a class keeps are taken apart and made again, where they say it themselves."""
    stored = {one for kept in kept_by(cls).values() for one in kept.stored}
    return {one.__name__: Kind(one, one.store, one.restore) for one in stored}


def take_fitted(estimator: Any) -> dict[str, Any]:
    """The fitted attributes that an estimator keeps and has, by name."""
    cls, own = type(estimator), vars(estimator)
    found = {}
    for name in sorted(kept_by(cls)):
        part = getattr(cls, name, None)
        value = part.find(estimator) if isinstance(part, Part) else own.get(name, ABSENT)
        if value is not ABSENT:
            found[name] = value
    return found


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator has any of the attributes that every fitted one of its class has."""
    needed = {name for name, kept in kept_by(type(estimator)).items() if kept.is_needed}
    return not needed.isdisjoint(take_fitted(estimator))


def set_parts(estimator: Any, values: dict[str, Any], build: Callable[[dict[str, Any]], Any]) -> None:
    """Set fitted attributes by the names that files have, those that are parts of the fitted model through `build`.

    build: makes the model from the attributes, all of which are of their types. Attributes that follow from others
    must be what the model makes of these. `BrokenFileError` if any is missing, of another type, or contradicts.
    """
    cls, declared = type(estimator), kept_by(type(estimator))
    for name, value in values.items():
        if not is_of(value, declared[name].types):
            raise BrokenFileError(f"{name!r} of a {cls.__name__} cannot be {value!r:.60}")
    parts = {name for name in declared if isinstance(getattr(cls, name, None), Part)}
    vars(estimator).update({name: value for name, value in values.items() if name not in parts})
    if parts.isdisjoint(values):
        return
    missing = sorted(name for name, kept in declared.items() if kept.is_needed and name not in values)
    if missing:
        raise BrokenFileError(f"a fitted {cls.__name__} has {', '.join(missing)}")
    vars(estimator)[VALUE] = build(values)
    for name in parts & values.keys():
        if not is_same(getattr(cls, name).find(estimator), values[name]):
            raise BrokenFileError(f"{name!r} of a {cls.__name__} contradicts its other attributes")


def is_same(one: Any, other: Any) -> bool:
    """Whether two attributes are the same object, or equal."""
    if one is other:
        return True
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return type(one) is type(other) and not isinstance(one, np.ndarray) and bool(one == other)


def is_of(value: Any, types: Any) -> bool:
    """Whether a value is of the declared types; True and False are no numbers."""
    return isinstance(value, types) and not (isinstance(value, bool) and types in {int, float})
