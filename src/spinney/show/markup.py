"""HTML and SVG as text that cannot be mistaken: whatever is not `Html` is escaped where it enters an element."""

from __future__ import annotations

from html import escape

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "wbr"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Html:
    """An element of its children; texts are escaped, `Html` is taken as it is.

    `class_` is the attribute `class`, `stroke_width` is `stroke-width`; an attribute that is None or False is left out,
    one that is True has no value.

    Examples
    --------
    >>> tag("p", "a < b ", tag("b", "bold"), class_="note", hidden=None)
    '<p class="note">a &lt; b <b>bold</b></p>'
    """
    words = "".join(
        f" {spelt(key)}" if value is True else f' {spelt(key)}="{escape(written(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{join(*children)}</{name}>")


def join(*children: str, between: str = "") -> Html:
    """Children one after the other, texts escaped."""
    return Html(between.join(one if isinstance(one, Html) else escape(one) for one in children))


def spelt(key: str) -> str:
    """The name of an attribute in markup."""
    return key.rstrip("_").replace("_", "-")


def written(value: str | float) -> str:
    """The value of an attribute; numbers to a hundredth, which is less than a pixel."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").removesuffix(".")
