"""How fast is predict? Both sides get the same array through their public `predict`, checks included.

Both predict with their own tree of full depth, grown on the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.fit import models
from benchmarks.runner import Answer, Scale, Timing, alternate, in_seconds, measure, report
from benchmarks.tables import splits

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_RATIO = 2.0
TURN_SECONDS = 0.1  # a turn is as many calls as fill this, so that the clock's grain does not show


def agreement(ours: NDArray[Any], peer: NDArray[Any]) -> str:
    """How far two predictions agree. Trees grown to the last row may still differ where tests tie."""
    same = np.isclose(ours, peer, rtol=1e-6) if ours.dtype.kind == "f" else ours == peer
    return f"{np.mean(same):.2%} of the predictions agree"


def compare(ours: Any, peer: Any, X: NDArray[Any], case: str, repeats: int) -> Answer:
    """Let two fitted trees predict the same rows in turns."""
    first, prediction = measure(lambda: ours.predict(X))
    sides, n_calls = [], []
    for model in (ours, peer):
        timing, _ = measure(lambda model=model: model.predict(X))
        n_calls.append(max(1, round(TURN_SECONDS / timing.wall)))

        def call(_turn: int, model: Any = model, n: int = n_calls[-1]) -> None:
            for _ in range(n):
                model.predict(X)

        sides.append(call)
    runs = alternate(sides, repeats)
    a, b = (Timing(run.best.wall / n, run.best.cpu / n) for run, n in zip(runs, n_calls, strict=True))
    waited = in_seconds(max(first.wall - a.wall, 0.0))
    return Answer(
        "predict",
        case,
        str(a),
        str(b),
        b.wall / a.wall,
        " x",
        LEAST_RATIO,
        note=f"CPU {b.cpu / a.cpu:.3g} x; leaves {ours.get_n_leaves():,} / {peer.get_n_leaves():,}; "
        f"{agreement(prediction, peer.predict(X))}; first call {waited} longer",
    )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    for split in splits(scale):
        make_ours, make_peer = models(split)
        ours, peer = make_ours().fit(split.X, split.y), make_peer(0).fit(split.X, split.y)
        X = np.concatenate([split.X, split.X_test])
        for dtype in (np.float32, np.float64) if X.dtype == np.float32 else (np.float64,):
            case = f"{split.name.split()[0]} {len(X):,} x {X.shape[1]} {np.dtype(dtype).name}"
            report(answers, compare(ours, peer, X.astype(dtype), case, scale.repeats))
    return answers
