"""The comparative study: a table in, every method of the library compared on the same folds, plain data out."""

from spinney.study.compare import compare, refit
from spinney.study.result import Study
from spinney.study.tables import prepare

__all__ = ["Study", "compare", "prepare", "refit"]
