"""Colours that people with any colour vision tell apart (Okabe and Ito 2008), and shades for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Okabe and Ito's, the most different first; their black is grey here, to be seen on a dark ground too.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#606060")
# From blue to amber, lighter all the way, and to be seen on light and dark ground.
SHADES = ("#2A5DA8", "#5F7DB0", "#8C94A3", "#B49C68", "#DDA60A")
PLAIN, STRIPED, DOTTED, GREY = range(4)


def class_colour(place: int) -> tuple[str, int]:
    """Colour and texture of class number `place`: eight colours plain, striped, dotted, then grey."""
    texture = min(place // len(PALETTE), GREY)
    return (PALETTE[place % len(PALETTE)] if texture < GREY else PALETTE[-1]), texture


def class_places(weights: Sequence[float]) -> list[int]:
    """Place of each class among the colours: its own, or by weight where the colours do not suffice."""
    n_classes = len(weights)
    order = sorted(range(n_classes), key=lambda k: -weights[k]) if n_classes > len(PALETTE) else range(n_classes)
    places = [0] * n_classes
    for place, k in enumerate(order):
        places[k] = place
    return places


def shade(t: float) -> str:
    """Colour of a number at `t` between the lowest, 0, and the highest, 1."""
    at = min(max(t, 0.0), 1.0) * (len(SHADES) - 1)
    low = min(int(at), len(SHADES) - 2)
    return mix(SHADES[low], SHADES[low + 1], at - low)


def mix(first: str, second: str, t: float) -> str:
    """The colour at `t` on the way from the first, 0, to the second, 1."""
    parts = [(int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * t):02X}" for a, b in parts)
