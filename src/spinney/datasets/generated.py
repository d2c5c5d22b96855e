"""Tables that are defined rather than collected: made when they are loaded, the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

SEGMENTS = (  # lit for 0 ... 9: top, upper left, upper right, middle, lower left, lower right, bottom
    "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011",
)  # fmt: skip
LED_ROWS, LED_NOISE, LED_SEED = 1000, 0.1, 1984
SPIRAL_ROWS, SPIRAL_SEED = 200, 42


def make_led_digits() -> pa.Table:
    """The ten digits of a seven-segment display, without noise: columns x1 ... x7 (0 or 1) and digit."""
    return _light([[int(lit) for lit in segments] for segments in SEGMENTS], list(range(10)))


def make_led() -> pa.Table:
    """Digits drawn at random on a display whose segments each fail with probability 0.1, independently."""
    import numpy as np

    random = np.random.RandomState(LED_SEED)  # its draws are the same in every version of NumPy
    digits = random.randint(0, 10, LED_ROWS)
    lit = np.array([[int(one) for one in segments] for segments in SEGMENTS])[digits]
    return _light((lit ^ (random.uniform(size=lit.shape) < LED_NOISE)).tolist(), digits.tolist())


def make_spirals() -> pa.Table:
    """Two arms around each other: columns x1, x2 and arm.

    An arm is (t cos t, t sin t) for t = 0.75 pi (1 + 3 u), u uniform on [0, 1); the other is its mirror image at the
    origin. Normal noise of standard deviation 0.5 is added to both coordinates.
    """
    import numpy as np
    import pyarrow as pa

    random = np.random.RandomState(SPIRAL_SEED)
    arms = []
    for sign in (-1.0, 1.0):
        t = 0.75 * np.pi * (1.0 + 3.0 * random.uniform(size=SPIRAL_ROWS // 2))
        arms.append(sign * np.array([t * np.cos(t), t * np.sin(t)]))
    points = np.concatenate(arms, axis=1)
    points += 0.5 * random.standard_normal(points.shape)
    names = pa.array(["inner"] * (SPIRAL_ROWS // 2) + ["mirrored"] * (SPIRAL_ROWS // 2)).dictionary_encode()
    return pa.table({"x1": points[0], "x2": points[1], "arm": names})


def _light(rows: list[list[int]], digits: list[int]) -> pa.Table:
    import pyarrow as pa

    columns = {f"x{j + 1}": pa.array(column, pa.int8()) for j, column in enumerate(zip(*rows, strict=True))}
    return pa.table({**columns, "digit": pa.array([str(digit) for digit in digits]).dictionary_encode()})


MAKERS: dict[str, Callable[[], pa.Table]] = {
    "led": make_led,
    "led_digits": make_led_digits,
    "spirals": make_spirals,
}
