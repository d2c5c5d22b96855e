"""Pictures of why a method answers as it does: the SHAP values that a study has kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spinney.model.shap_table import ShapValues
from spinney.show.shap_charts import row_chart, swarm_chart

if TYPE_CHECKING:
    from spinney.show.chart_model import Chart
    from spinney.study.evidence import Reasons


def swarm(reasons: Reasons) -> Chart:
    """What the columns that add most add, row by row."""
    return swarm_chart(as_values(reasons))


def one_row(reasons: Reasons, at: int) -> Chart:
    """How the answer to one row comes about."""
    found = as_values(reasons)
    answers = found.base + found.values.sum(axis=1) + np.array(reasons.others)
    rank = "highest" if answers[at] >= answers.max() else "lowest" if answers[at] <= answers.min() else "middle"
    chart = row_chart(found, at, reasons.n_others, reasons.others[at])
    return replace(chart, title=f"Row {reasons.rows[at]:,}, the {rank} answer of {len(answers)}")


def as_values(reasons: Reasons) -> ShapValues:
    """The values of the columns that add most, as charts take them."""
    cells = np.empty((len(reasons.cells), len(reasons.features)), object)
    for row, given in enumerate(reasons.cells):
        cells[row] = given
    return ShapValues(
        values=np.array(reasons.values, np.float64).reshape(cells.shape),
        base=reasons.base,
        names=reasons.features,
        data=cells,
        outputs=(reasons.label,),
        output="raw",
        interactions=None,
        largest_difference=0.0,
        relative_difference=0.0,
    )
