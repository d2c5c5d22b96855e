"""One HTML page that needs nothing else: style and script are inside, and a policy forbids all that is not.

The policy names the style and the script by their hashes, so that no text of a table can become either, should it ever
get out of its element. Hence no `style` attribute anywhere in the page.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from spinney.show.markup import Html, join, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

GENERATOR = '<meta name="generator" content="Spinney '  # how a report is known again
MAX_HEAD = 4096  # bytes of a file in which it must be found


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: `key` is its address, `brief` its name in the table of contents."""

    key: str
    title: str
    brief: str
    body: Html


def write_page(
    *, kind: str, title: str, about: str, sections: Sequence[Section], version: str, style: str = "", made: str | None
) -> str:
    """The page; `style` is added to the report's own."""
    sheet = read_asset("report.css") + style
    script = read_asset("report.js")
    entries = (tag("li", tag("a", one.brief, href=f"#{one.key}")) for one in sections)
    parts = (
        tag("section", tag("h2", one.title, id=f"{one.key}-title"), one.body, id=one.key,
            aria_labelledby=f"{one.key}-title")
        for one in sections
    )  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=make_policy(sheet, script)),
        Html(f'{GENERATOR}{version}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title}: {kind}"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(sheet)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", class_="skip", href="#report"),
        tag(
            "div",
            tag(
                "header",
                tag("p", kind, class_="kind"),
                tag("h1", title),
                tag("p", about if made is None else f"{about} · {made}", class_="about"),
                tag("button", "Dark", id="theme", type="button", class_="live"),
                class_="top",
            ),
            tag(
                "div",
                tag("nav", tag("ol", *entries), class_="contents", aria_label="Contents"),
                tag("main", *parts, id="report", tabindex="-1"),
                class_="columns",
            ),
            class_="sheet",
        ),
        tag("script", Html(script)),
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def read_asset(name: str) -> str:
    """A file of the package."""
    return files("spinney.show").joinpath("assets", name).read_text(encoding="utf-8")


def make_policy(style: str, script: str) -> str:
    """What the page may load: its own style and script, and pictures inside it."""

    def named(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {named(style)}; script-src {named(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def is_report(head: bytes) -> bool:
    """Whether a file that begins so is a report of ours."""
    return GENERATOR.encode() in head[:MAX_HEAD]


# --- Pieces ---------------------------------------------------------------------------------------------------


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers_from: int = 1) -> Html:
    """A table of texts; the first column names the rows, those from `numbers_from` on stand to the right."""
    kinds = ["number" if place >= numbers_from else None for place in range(len(head))]
    columns = (tag("th", one, scope="col", class_=kind) for one, kind in zip(head, kinds, strict=True))
    lines = (
        tag("tr", *(
            tag("td" if place else "th", cell, scope=None if place else "row", class_=kind)
            for place, (cell, kind) in enumerate(zip(row, kinds, strict=True))
        ))
        for row in rows
    )  # fmt: skip
    return scrolled(tag("table", tag("caption", title), tag("thead", tag("tr", *columns)), tag("tbody", *lines)), title)


def scrolled(inside: Html, label: str) -> Html:
    """Something wide that scrolls by itself, by keyboard too."""
    return tag("div", inside, class_="wide", role="region", aria_label=label, tabindex="0")


def folded(summary: str, *inside: str) -> Html:
    """What is shown on request."""
    return tag("details", tag("summary", summary), *inside)


def explained(*words: str) -> Html:
    """How to read what follows."""
    return tag("p", *words, class_="how")


def missing(why: str) -> Html:
    """Why there is nothing here."""
    return tag("p", why, class_="missing")


def facts(pairs: Sequence[tuple[str, str]]) -> Html:
    """A few figures that matter."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")


def listed(items: Sequence[str]) -> Html:
    """Notes, one below the other."""
    return tag("ul", *(tag("li", item) for item in items), class_="notes") if items else join()
