"""Out-of-bag results of a fit: how they are made, scored, and named in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._warnings import warn
from spinney.estimators.kept import Kept
from spinney.estimators.scoring import score_rows
from spinney.model.container import BrokenFileError
from spinney.model.out_of_bag import OutOfBag, mean_votes

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney.ensemble.out_of_bag import OutOfBagSums

OOB_KEPT = {
    "_oob_votes": Kept(np.ndarray, is_needed=False),
    "_oob_n_votes": Kept(np.ndarray, is_needed=False),
    "_oob_is_hard": Kept(bool, is_needed=False),
    "oob_curve_": Kept(np.ndarray, is_needed=False),
    "oob_score_": Kept(float, is_needed=False),
}
"""What every ensemble keeps of out-of-bag rows, beside `oob_decision_function_` or `oob_prediction_`."""


def restore_out_of_bag(values: dict[str, Any], predictions: str) -> OutOfBag | None:
    """The results from the attributes of a file, which has all or none of them; predictions: the name of these."""
    names = ("_oob_votes", "_oob_n_votes", "_oob_is_hard", "oob_curve_", "oob_score_", predictions)
    missing = [name for name in names if name not in values]
    if len(missing) == len(names):
        return None
    if missing:
        raise BrokenFileError(f"out-of-bag results lack {', '.join(missing)}")
    return OutOfBag(*(values[name] for name in names))


def finish_out_of_bag(
    estimator: Any, sums: OutOfBagSums, score: Callable[..., float] | None, *, is_hard: bool
) -> OutOfBag:
    """Out-of-bag results from the votes of all members; warns where rows have none."""
    n_silent = sums.finish()
    if n_silent:
        warn(
            "Some inputs do not have OOB scores. This probably means too few estimators were used to compute any "
            f"reliable oob estimates. {n_silent} of {len(sums.y)} rows were in every bag: they have no out-of-bag "
            "prediction (NaN) and do not count in the score. More trees would leave fewer such rows."
        )
    predictions = mean_votes(sums.votes, sums.n_votes, sums.n_classes, sums.shift, sums.widths)
    found = score_rows(estimator, predictions, sums.y, np.flatnonzero(sums.n_votes), score)
    return OutOfBag(sums.votes, sums.n_votes, is_hard, np.array(sums.curve), found, predictions)
