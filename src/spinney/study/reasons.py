"""Why the examined method answers as it does: SHAP values of some rows, and three of these to look at closely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.evidence import Reasons

if TYPE_CHECKING:
    from spinney.study.tables import StudyData

N_ROWS = 150  # that are explained: as many points as a column of the chart has room for
N_COLUMNS = 15  # that are kept, those that add most; the rest is one


def explain_answers(model: Any, data: StudyData, *, label: Any = None, seed: int = 0) -> Reasons:
    """What each column added to the answers to some rows of the table.

    Parameters
    ----------
    model : estimator of trees, fitted
    data : StudyData
    label : class, or its text, optional
        Whose probability or score is explained; the last class, and the only one where a model has one score.
    seed : int
        Draws the rows.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(data.n_rows)[:N_ROWS])
    found = model.shap_values(data.X.take(rows))
    found = found.of(next((one for one in found.outputs if str(one) == str(label)), found.outputs[-1]))
    order = np.argsort(-found.sizes(), kind="stable")
    kept, rest = order[:N_COLUMNS], order[N_COLUMNS:]
    answers = found.base + found.values.sum(axis=1)
    middle = np.argsort(answers, kind="stable")[len(answers) // 2]
    return Reasons(
        label=None if found.outputs[0] is None else str(found.outputs[0]),
        base=float(found.base),
        features=tuple(found.names[j] for j in kept.tolist()),
        values=tuple(tuple(row) for row in found.values[:, kept].tolist()),
        cells=tuple(tuple(map(_plain, row)) for row in found.data[:, kept].tolist()),
        others=tuple(found.values[:, rest].sum(axis=1).tolist()),
        n_others=len(rest),
        rows=tuple((rows + 1).tolist()),
        chosen=tuple(dict.fromkeys(int(at) for at in (np.argmax(answers), middle, np.argmin(answers)))),
    )


def _plain(cell: Any) -> float | str | None:
    """A cell as JSON has it."""
    if cell is None or (isinstance(cell, float) and not np.isfinite(cell)):
        return None
    return float(cell) if isinstance(cell, float | int) and not isinstance(cell, bool) else str(cell)
