"""How does the cost of a fit grow? The slope of log time over log rows; n log n has about 1.09 here."""

from __future__ import annotations

import numpy as np

from benchmarks.runner import Answer, Scale, alternate, in_seconds, measure, report
from benchmarks.tables import N_FEATURES, draw_numeric
from spinney import CARTClassifier

ROWS = (10_000, 31_623, 100_000, 316_228, 1_000_000)
MOST_SLOPE = 1.15


def run(scale: Scale) -> list[Answer]:
    sizes = sorted({scale.rows(n) for n in ROWS})
    X, y = draw_numeric(sizes[-1])
    tables = [(np.ascontiguousarray(X[:n]), y[:n]) for n in sizes]
    for table in tables[-1:]:  # the largest reaches every kernel: the compiler is done before the clock runs
        measure(lambda table=table: CARTClassifier().fit(*table))
    runs = alternate([lambda _, table=table: CARTClassifier().fit(*table) for table in tables], scale.repeats)
    seconds = [side.best.wall for side in runs]
    steps = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    for n, spent, side in zip(sizes, seconds, runs, strict=True):
        print(f"{n:>9,} rows  {in_seconds(spent):>9}  {side.results[0].get_n_leaves():>8,} leaves")
    answers: list[Answer] = []
    report(
        answers,
        Answer(
            "scaling",
            f"{sizes[0]:,} to {sizes[-1]:,} x {N_FEATURES} float32",
            ", ".join(map(in_seconds, seconds)),
            "",
            slope,
            "",
            MOST_SLOPE,
            is_least=False,
            note=f"slope from size to size: {', '.join(f'{step:.2f}' for step in steps)}",
        ),
    )
    return answers
