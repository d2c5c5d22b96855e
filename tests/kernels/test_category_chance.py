"""What a unit of luck is worth: growers and traces say the same by every criterion, nothing by an unknown one."""

from types import SimpleNamespace

import numpy as np
import pytest

from spinney import _criteria, _jit
from spinney._criteria import CRITERIA, Criterion
from spinney._types import ALL, CLASS_ROWS, PRESENT, Q_ALL, S_ALL, SQUARED_ERROR, TOTALS_SIZE, W_ALL
from spinney.tracing.category_chance import level_luck

Y = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
LEVELS = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 0])
PENALTY = 0.5
UNKNOWN = 99
SUMMED = [name for name in CRITERIA if name != "absolute_error"]  # medians are no sums, and have no rule of chance
KINDS = [(name, n) for name in SUMMED for n in ([0] if CRITERIA[name].power else [2, 3])]

kernels = _jit.interpreted()


def sums_of(y, n_classes):
    """Sums of rows as `tree.split_measures` has them."""
    rows = float(len(y))
    if n_classes:
        return np.array([rows, *np.bincount(y, minlength=n_classes)])
    known = np.abs(y)  # of centred targets, where there are no logarithms: nothing comes of these two sums here
    return np.array([rows, rows, y.sum(), np.square(y).sum(), known.sum(), np.sum(known * np.log(known))])


def grown(code, y, n_classes):
    """What a grower makes of the levels."""
    settings = SimpleNamespace(
        criterion=code, cat_penalty=PENALTY, free_levels=0, row_weight=1.0, is_class=n_classes > 0, is_whole=True,
        noise_unit=1.0, square_unit=1.0, cat_margin=0.0,
    )  # fmt: skip
    totals = np.zeros(TOTALS_SIZE, np.int64)
    totals[[W_ALL, S_ALL, Q_ALL]] = len(y), y.sum(), np.square(y).sum()
    counts = np.bincount(LEVELS)
    levels = len(counts), len(counts), np.sqrt(counts).sum()
    xlogx = np.zeros(1)
    if n_classes > 2:
        sums = np.zeros((CLASS_ROWS, n_classes), np.int64)
        sums[ALL], sums[PRESENT] = np.bincount(y), np.arange(n_classes)
        node = SimpleNamespace(n_present=n_classes)
        return kernels.tree.category_chance.chance_of_classes(*levels, node, settings, xlogx, sums, totals)
    node = SimpleNamespace(lo=0, hi=len(y), centre=0)
    rows = SimpleNamespace(addends=y[None])  # targets alone: every weight is 1
    return kernels.tree.category_chance.chance_of_numbers(*levels, node, rows, settings, xlogx, totals)


def traced(name, y, n_classes):
    """What a trace makes of them."""
    y = y if n_classes else y - y.mean()
    levels = np.array([sums_of(y[level == LEVELS], n_classes) for level in np.unique(LEVELS)])
    return level_luck(sums_of(y, n_classes), levels, name, n_classes, PENALTY, 1.0)


@pytest.mark.parametrize(("name", "n_classes"), KINDS)
def test_growers_and_traces_agree(name, n_classes):
    y = Y % n_classes if n_classes else Y
    is_halved = name == "gini" and n_classes == 2  # two-class Gini goes as the variance, of which it is twice
    found = grown(SQUARED_ERROR if is_halved else CRITERIA[name].code, y, n_classes)
    seen = traced(name, y, n_classes)
    if name in {"misclassification", "poisson"}:  # whose luck nobody has worked out
        assert seen is None
        assert found.noise == 0.0
        return
    is_entropy = CRITERIA[name].impurity == "entropy"
    unit = 0.5 if is_halved else kernels.tree.category_chance.bit_of(np.zeros(1)) if is_entropy else 1.0
    assert found.noise > 0.0
    assert found.noise == pytest.approx(unit * seen.chance.noise, rel=1e-12)
    assert (found.roots, found.few) == pytest.approx((seen.chance.roots, seen.chance.few), rel=1e-12)


@pytest.mark.parametrize(("power", "n_classes"), [(1, 0), (2, 0), (0, 2), (0, 3)])
def test_by_a_criterion_that_neither_knows_nothing_is_taken_off(power, n_classes, monkeypatch):
    y = Y % n_classes if n_classes else Y
    monkeypatch.setitem(_criteria.CRITERIA, "new", Criterion(UNKNOWN, power, power == 1, "new", "new"))
    assert grown(UNKNOWN, y, n_classes).noise == 0.0
    assert traced("new", y, n_classes) is None
