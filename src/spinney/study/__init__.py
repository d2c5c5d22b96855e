"""The comparative study: the library's methods against plain baselines, on an embedded table."""

from spinney.study.comparison import Row, compare, print_rows

__all__ = ["Row", "compare", "print_rows"]
