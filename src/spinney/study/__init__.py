"""The comparative study: a table in, every method of the library compared on the same folds, plain data out.

| file | holds |
|---|---|
| `tables.py` | a table made ready: target, task, what cannot be used |
| `column_checks.py` | columns of text that are suspicious |
| `leaks.py` | columns that give the target away |
| `redundancy.py` | columns that say what others say |
| `profile.py` | the columns as they are |
| `methods.py` | the methods, at their usual settings |
| `folds.py` | the same folds for all |
| `compare.py` | methods over folds, timed |
| `turns.py` | whose turn it is under a budget |
| `clock.py` | time that may be spent |
| `fold_record.py` | what is kept of each fit |
| `metrics.py` | scores by name |
| `resampling.py` | standard errors of scores of folds |
| `significance.py` | which methods are worse |
| `result.py` | `Study`: what was found, as plain data |
| `advice.py` | the same in words |
| `reproduce.py` | lines of Python that repeat it |
| `json_io.py` | plain data to JSON and back |
| `examine.py` | evidence for a report: where it is computed |
| `evidence.py` | `Evidence`: the numbers themselves |
| `held_out.py` | how good predictions for held-out rows are |
| `staged.py` | predictions by fewer trees |
| `importance.py` | what columns are worth to a forest |
| `worth.py` | what they are worth to one method |
| `dependence.py` | how a prediction changes with one column |
| `reasons.py` | what columns add to single answers |
| `tree_view.py` | one tree for a page |
| `node_pictures.py` | the rows of its nodes, and where each is cut |
| `housing.py` | the figure on California housing |
| `housing_setup.py` | its table, folds and ensembles |
| `housing_evidence.py` | its evidence |

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
