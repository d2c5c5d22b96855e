"""Which values another language can hold as they are."""

from __future__ import annotations

from typing import Any


def is_unicode(text: str) -> bool:
    """Whether text has an encoding in UTF-8: half a letter of two has none, and no other program's text equals it."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_float(number: Any) -> bool:
    """Whether a number is a float64: not every whole one beyond 2**53 is."""
    try:
        return bool(float(number) == number)
    except OverflowError:
        return False


def is_identifier(name: Any) -> bool:
    """Whether C and JavaScript may call something so."""
    return isinstance(name, str) and name.isascii() and name.isidentifier()
