"""What a search hands on: the best test so far."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

from ..common.structs import Candidate


@inlined
def none_better(best: Candidate) -> Candidate:
    """Nothing beats `best`."""
    return Candidate(best.score, np.int64(-1), np.int64(-1), np.int64(0), best.n_ties, np.inf)


@inlined
def cut_between(score: float, cut: int, following: int, n_ties: int) -> Candidate:
    """A cut after code `cut` of a feature without missing rows; cut -1: nothing better was found."""
    return Candidate(score, np.int64(cut), np.int64(following), np.int64(0), n_ties, np.inf)
