"""How series look: colours that stand out on light and dark ground; dashes and markers that do without colours."""

from __future__ import annotations

from dataclasses import dataclass

from spinney.reading.colours import PALETTE, mix
from spinney.show.marks import NEUTRAL

DASHES = ((), (7, 3), (2, 2.5), (8, 3, 2, 3), (12, 4), (5, 2, 1, 2, 1, 2), (4, 4), (1, 3))
N_LOOKS = len(PALETTE)


@dataclass(frozen=True)
class Theme:
    """Colours on one ground: of text, of lesser text, of lines, of the grid; and the least contrast of series to it.

    Lines and markers are to have 3 (WCAG 2.1, 1.4.11); on a dark ground thin lines of 3 are hard to see.
    """

    ground: str
    ink: str
    soft: str
    line: str
    grid: str
    clear: float

    def colour(self, series: int) -> str:
        """The colour of a series, as much darker or lighter than the palette's as the ground asks."""
        return self.soft if series == NEUTRAL else stand_out(PALETTE[series % N_LOOKS], self.ground, self.clear)


LIGHT = Theme(ground="#FFFFFF", ink="#1F2328", soft="#57606A", line="#8C959F", grid="#E3E7EB", clear=3.0)
DARK = Theme(ground="#0D1117", ink="#E6EDF3", soft="#A9B4C0", line="#6E7681", grid="#262C34", clear=5.0)


def dash(series: int) -> tuple[float, ...]:
    """Lengths of dashes and gaps; none for a solid line."""
    return () if series == NEUTRAL else DASHES[series % N_LOOKS]


def stand_out(colour: str, ground: str, least: float) -> str:
    """The colour, mixed with black or white until its contrast to the ground is at least that much."""
    pole = "#000000" if luminance(ground) > 0.5 else "#FFFFFF"
    mixed = (mix(colour, pole, step / 20) for step in range(21))
    return next(made for made in mixed if contrast(made, ground) >= least)


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, between 1 and 21 (WCAG 2.1)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of a colour, between 0 and 1 (WCAG 2.1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
