"""Names of columns, classes and levels as pages and charts show them."""

from __future__ import annotations

from spinney.reading.wording import caption

MAX_LETTERS = 120


def shown(name: object) -> str:
    """A name of the table: shortened where it is endless, quoted where it could not be seen."""
    return clip(caption(name))


def clip(text: str, most: int = MAX_LETTERS) -> str:
    """A text, shortened where it is endless."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
