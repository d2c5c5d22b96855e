"""Numbers as people read them, in the report and on a terminal."""

from __future__ import annotations


def short(value: float) -> str:
    """Three decimals, or four digits of a large number; no "-0.000"."""
    return (
        f"{round(value, 3) + 0.0:.3f}" if abs(value) < 100 else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    )


def seconds(value: float) -> str:
    """Seconds, to the millisecond below ten."""
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def size(n_bytes: float) -> str:
    """Bytes, in the unit that suits them."""
    for unit in ("B", "kB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} MB"


def chance(p: float) -> str:
    """A p-value in three decimals."""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def rows(n_rows: float) -> str:
    """A number of rows; it has a fraction where rows have weights."""
    return f"{n_rows:,.0f}" if float(n_rows).is_integer() else f"{n_rows:,.1f}"
