"""A tree in the languages of Graphviz (DOT) and Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.reading.colours import class_colour, mix, shade
from spinney.reading.outline import Item, closed_words, edge_label, feature_caption, make_outline
from spinney.reading.text import SHARED, Contents, shares_missing
from spinney.reading.wording import MAX_LEVELS, count, row_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.tree.structure import Tree

PAPER = "#FFFFFF"
TINT = 0.45  # how much of its colour a leaf has: black text stays legible on it
MERMAID_CODES = {"#": "#35;", "&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}


def to_dot(tree: Tree, max_leaves: int | None, max_depth: int | None) -> str:
    """Graphviz source of a tree."""
    items = make_outline(tree, max_leaves, max_depth)
    contents = Contents(tree)
    colours = leaf_colours(tree, items)
    lines = [
        "digraph tree {",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fillcolor="#F3F4F6", fontcolor="#000000"];',
        '  edge [fontname="Helvetica"];',
    ]
    for place, item in enumerate(items):
        label = "\\n".join(map(escape_dot, node_lines(tree, item, contents)))
        look = f', fillcolor="{colours[place]}"' if place in colours else ""
        look += ', style="rounded,dashed"' if item.n_hidden else ""
        lines.append(f'  n{place} [label="{label}"{look}];')
    for place, item in enumerate(items[1:], 1):
        label = escape_dot(str(edge_label(tree, items[item.parent].node, item, MAX_LEVELS)))
        lines.append(f'  n{item.parent} -> n{place} [label="{label}"];')
    if shares_missing(tree):
        lines.append(f'  label="{escape_dot(SHARED)}"; fontname="Helvetica";')
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(tree: Tree, max_leaves: int | None, max_depth: int | None) -> str:
    """Mermaid source of a tree."""
    items = make_outline(tree, max_leaves, max_depth)
    contents = Contents(tree)
    lines = ["flowchart TD"]
    for place, item in enumerate(items):
        label = "<br/>".join(map(escape_mermaid, node_lines(tree, item, contents)))
        lines.append(f'  n{place}["{label}"]' if item.is_open else f'  n{place}(["{label}"])')
    for place, item in enumerate(items[1:], 1):
        label = escape_mermaid(str(edge_label(tree, items[item.parent].node, item, MAX_LEVELS)))
        lines.append(f'  n{item.parent} -->|"{label}"| n{place}')
    for place, colour in leaf_colours(tree, items).items():
        lines.append(f"  style n{place} fill:{colour},stroke:#57606A,color:#000000")
    if shares_missing(tree):
        lines.append(f"  %% {SHARED}")
    return "\n".join(lines) + "\n"


def node_lines(tree: Tree, item: Item, contents: Contents) -> list[str]:
    """What stands in the box of an item, line by line."""
    if item.n_hidden:
        return [closed_words(item), count(item.rows(tree), "row")]
    title = feature_caption(tree, item.node) if item.is_open else contents.prediction(item.node)
    lines = [title, row_count(tree, item.node)]
    if tree.n_classes == 0 and item.is_open:
        lines.append(contents.prediction(item.node))
    shares = contents.shares(item.node)
    return [*lines, shares] if shares else lines


def leaf_colours(tree: Tree, items: Sequence[Item]) -> dict[int, str]:
    """A light colour for each leaf: of its class, or of its value among those of the leaves."""
    leaves = [place for place, item in enumerate(items) if not item.is_open and not item.n_hidden]
    if tree.n_classes:
        return {place: mix(PAPER, class_colour(int(tree.leaf_class[items[place].node]))[0], TINT) for place in leaves}
    values = tree.threshold[tree.is_leaf]
    low, span = float(values.min()), float(np.ptp(values)) or 1.0
    return {place: mix(PAPER, shade((float(tree.threshold[items[place].node]) - low) / span), TINT) for place in leaves}


def escape_dot(text: str) -> str:
    """Text inside a quoted string of DOT, which reads backslashes and the entities of HTML."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


def escape_mermaid(text: str) -> str:
    """Text inside a quoted string of Mermaid, which knows no backslash, but codes for characters."""
    return "".join(MERMAID_CODES.get(c, c) for c in text)
