"""The comparative study: a table in, every method of the library compared on the same folds, plain data out."""

from spinney.study.compare import compare, refit
from spinney.study.evidence import Evidence
from spinney.study.examine import examine, examine_figure
from spinney.study.result import Study
from spinney.study.tables import prepare
from spinney.study.witness import Witness

__all__ = ["Evidence", "Study", "Witness", "compare", "examine", "examine_figure", "prepare", "refit"]
