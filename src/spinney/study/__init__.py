"""The comparative study: a table in, every method of the library compared on the same folds, plain data out.

Examples
--------
>>> from spinney import datasets, study
>>> data = study.prepare(datasets.load("contact_lenses"), "contact-lenses")
>>> found = study.compare(data, methods=["id3", "c45"], n_splits=2, n_repeats=1)
>>> [method.name for method in found.ranked]
['C4.5', 'commonest class', 'ID3']
"""

from spinney.study.compare import compare, refit
from spinney.study.evidence import Evidence
from spinney.study.examine import examine
from spinney.study.fold_record import FoldRecord
from spinney.study.housing import draw_figure
from spinney.study.housing_evidence import examine_figure
from spinney.study.result import Figure, Study
from spinney.study.tables import prepare

__all__ = [
    "Evidence",
    "Figure",
    "FoldRecord",
    "Study",
    "compare",
    "draw_figure",
    "examine",
    "examine_figure",
    "prepare",
    "refit",
]
