"""Real tables under budgets: the strong methods always have a score, and the advice is right or says what it lacks.

The tables are small, and so are the budgets: all methods take some six seconds. They are counted in seconds of the
processor, so that other work on the machine changes nothing.
"""

import contextlib
import signal
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from spinney import read_table
from spinney.study import compare, prepare
from spinney.study.clock import Clock

TABLES = {
    "german_credit.parquet": "class",
    "car.parquet": "Acceptability",
    "ionosphere.parquet": "Class",
    "sonar.parquet": "Class",
    "vehicle.parquet": "Class",
    "soybean.parquet": "Class",
    "glass.csv": "Type",
    "pima_diabetes.csv": "diabetes",
    "california_housing.parquet": "MedHouseVal",
    "diamonds.parquet": "price",
}
MOST_ROWS = 1500
BUDGETS = (2.0, 4.0, 8.0)


class ProcessorClock(Clock):
    """Counts seconds of the processor."""

    def __init__(self, budget=None, start=None):
        super().__init__(budget, time.process_time() if start is None else start)

    @property
    def seconds(self):
        return time.process_time() - self.start - self._spared[0]

    def _until(self, budget):
        part = ProcessorClock(budget, self.start)
        part._spared = self._spared
        return part

    @contextlib.contextmanager
    def alarm(self):
        if self.budget is None:
            yield
            return

        def ring(_signal, _frame):
            if self.left > 0.0:  # this timer counts in ticks, and may be a little early
                signal.setitimer(signal.ITIMER_PROF, max(self.left, 0.001))
                return
            raise KeyboardInterrupt

        old = signal.signal(signal.SIGPROF, ring)
        signal.setitimer(signal.ITIMER_PROF, max(self.left, 0.001))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, old)


@pytest.mark.slow
@pytest.mark.compiled(reason="times are those of compiled kernels")
@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="the system has no timer of the processor")
@pytest.mark.parametrize("name", TABLES)
def test_boosting_and_forest_have_a_score_and_the_advice_is_right_or_says_time_was_short(
    name, shared_data, monkeypatch
):
    for module in ("compare", "turns"):
        clock = SimpleNamespace(perf_counter=time.process_time)
        monkeypatch.setattr(sys.modules[f"spinney.study.{module}"], "time", clock)
    table = read_table(shared_data / name)
    table = table.take(np.sort(np.random.default_rng(0).permutation(table.num_rows)[:MOST_ROWS]))
    data = prepare(table, TABLES[name])
    whole = compare(data, n_splits=5, n_repeats=1)
    assert whole.stopped is None
    for budget in BUDGETS:
        study = compare(data, n_splits=5, n_repeats=1, clock=ProcessorClock(budget))
        assert study.method("boosting").scores
        assert study.method("forest").scores
        if "Time was short" not in study.recommendation:
            assert study.stopped is None
            assert study.best == whole.best
            assert [one.scores for one in study.methods] == [one.scores for one in whole.methods]
