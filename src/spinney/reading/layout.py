"""A tidy drawing of a tree (after Reingold and Tilford 1981): where its boxes stand, and how wide text is.

Boxes of one depth stand in line. Subtrees are set side by side as close as their outlines allow, once from the left and
once from the right; the mean of both is as free of overlaps as they are, and even. A parent stands over the middle
between its first and last child. Where boxes stand to the right of their parents, ends have a line each.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Widths in ems of the widest common sans-serif (DejaVu Sans): in another, text has some room to spare.
_WIDTHS = {
    0.36: "'ijlIf ,./:;|\\",
    0.42: "-()[]t!r",
    0.56: '"*`Jszc',
    0.64: "?L_kvxyaeo$0123456789FTbdghnpqu{}",
    0.78: "ABEKPSVXYZCRUHN&D",
    0.88: "GOQw#+<=>^~≤M",
    1.05: "%mW@…",
}
_WIDTH_OF = {c: width for width, group in _WIDTHS.items() for c in group}
_OTHER = 0.75
_WIDE = 1.1
_BOLD = 1.12
SLACK = 1e-6  # a box as wide as its text must hold it, whatever roundings there are


def text_width(text: str, size: float, *, is_bold: bool = False) -> float:
    """An upper estimate of the width of text, in the units of its size."""
    ems = sum(character_width(c) for c in text)
    return ems * size * (_BOLD if is_bold else 1.0)


def character_width(c: str) -> float:
    """Width of a character in ems."""
    if c in _WIDTH_OF:
        return _WIDTH_OF[c]
    if unicodedata.combining(c):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(c) in {"W", "F"} else _OTHER


def shorten(text: str, width: float, size: float, *, is_bold: bool = False) -> str:
    """Text cut to a width, with an ellipsis where something is cut."""
    if text_width(text, size, is_bold=is_bold) <= width + SLACK:
        return text
    room = width - text_width("…", size, is_bold=is_bold)
    kept = ""
    for c in text:
        room -= text_width(c, size, is_bold=is_bold)
        if room < 0.0:
            break
        kept += c
    return f"{kept.rstrip()}…"


def wrap(text: str, width: float, size: float) -> list[str]:
    """Text in lines of at most a width, unless a word is wider."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def place_across(parents: Sequence[int], extents: Sequence[float]) -> list[float]:
    """Centres of boxes along their lines, so that no two of one depth overlap.

    parents: place of each box's parent, before it; -1 for the root. Children stand in the order of their places.
    extents: what each box takes of its line, with the gap to the next.
    """
    children: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(place)
    offsets = [0.0] * len(parents)
    outlines = [Outline() for _ in parents]
    for place in range(len(parents) - 1, -1, -1):
        below = [outlines[child] for child in children[place]]
        centres = spread(below)
        middle = (centres[0] + centres[-1]) / 2 if below else 0.0
        for child, centre, outline in zip(children[place], centres, below, strict=True):
            offsets[child] = centre - middle
            outline.shift += offsets[child]
        outlines[place] = merge(below)
        outlines[place].add_line(extents[place] / 2)
    centres = offsets
    for place, parent in enumerate(parents):
        if parent >= 0:
            centres[place] += centres[parent]
    first = -min(outlines[0].lows) - outlines[0].shift
    return [centre + first for centre in centres]


@dataclass
class Outline:
    """Lowest and highest end of a subtree at each depth, the deepest first, both to be moved by `shift`.

    A box on top is then an entry at the end, and a move one addition: an outline is never copied, so that a drawing
    takes time in the number of its boxes, however deep it is.
    """

    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    shift: float = 0.0

    @property
    def depth(self) -> int:
        """Lines of boxes."""
        return len(self.lows)

    def add_line(self, half: float) -> None:
        """Put a box on top, in the middle, that reaches as far to both sides."""
        self.lows.append(-half - self.shift)
        self.highs.append(half - self.shift)


def spread(below: Sequence[Outline]) -> list[float]:
    """Centres of subtrees side by side."""
    after: list[list[tuple[int, float]]] = [[] for _ in below]
    up = [0.0] * len(below)
    for j in range(1, len(below)):
        for i in nearest(below, j):
            least = distance(below[i], below[j])
            up[j] = max(up[j], up[i] + least)
            after[i].append((j, least))
    down = up.copy()
    for i in range(len(below) - 2, -1, -1):
        down[i] = min(down[j] - least for j, least in after[i])
    return [(a + b) / 2 for a, b in zip(up, down, strict=True)]


def distance(left: Outline, right: Outline) -> float:
    """How far apart the roots of two subtrees must stand: no line of the one may reach into the other's."""
    lines = zip(reversed(left.highs), reversed(right.lows), strict=False)
    return max(high - low for high, low in lines) + left.shift - right.shift


def nearest(below: Sequence[Outline], j: int) -> list[int]:
    """The subtrees before number j that it can meet: those deeper than all between them, and its neighbour."""
    found: list[int] = []
    for i in range(j - 1, -1, -1):
        depth = below[i].depth
        if not found or depth > below[found[-1]].depth:
            found.append(i)
        if depth >= below[j].depth:
            break
    return found


def merge(outlines: Sequence[Outline]) -> Outline:
    """One outline around several: the deepest takes in the others, and is no longer its own."""
    if not outlines:
        return Outline()
    whole = max(outlines, key=lambda outline: outline.depth)
    for outline in outlines:
        if outline is not whole:
            move = outline.shift - whole.shift
            for line in range(1, outline.depth + 1):
                whole.lows[-line] = min(whole.lows[-line], outline.lows[-line] + move)
                whole.highs[-line] = max(whole.highs[-line], outline.highs[-line] + move)
    return whole


def stack_ends(parents: Sequence[int], extents: Sequence[float]) -> list[float]:
    """Centres of boxes across, every end on a line of its own, which runs on behind it.

    parents, extents: as in `place_across`, a box before what is below it.
    """
    has_children = [False] * len(parents)
    for parent in parents[1:]:
        has_children[parent] = True
    centres, firsts, lasts = [0.0] * len(parents), [0.0] * len(parents), [0.0] * len(parents)
    end = 0.0
    for place, extent in enumerate(extents):
        if not has_children[place]:
            centres[place] = end + extent / 2
            end += extent
    for place in range(len(parents) - 1, -1, -1):
        if has_children[place]:
            centres[place] = (firsts[place] + lasts[place]) / 2
        parent = parents[place]
        if parent >= 0:
            firsts[parent] = centres[place]  # the first child comes last
            lasts[parent] = lasts[parent] or centres[place]
    return centres


def place_along(depths: Sequence[int], extents: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Where the line of each depth begins: behind the deepest box of the line before, and a gap."""
    sizes = [0.0] * (max(depths) + 1)
    for depth, extent in zip(depths, extents, strict=True):
        sizes[depth] = max(sizes[depth], extent)
    begins = [0.0]
    for depth, _ in pairwise(range(len(sizes))):
        begins.append(begins[-1] + sizes[depth] + gaps[depth + 1])
    return begins
