"""Measures of answers against scikit-learn's, SciPy's and counts by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    mean_absolute_error,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
    root_mean_squared_error,
)

from spinney.study.held_out import (
    MAX_CLASSES,
    MAX_POINTS,
    MIN_ROWS,
    N_BINS,
    PIXEL,
    calibration_bins,
    count_confusion,
    join_bins,
    measure_coverage,
    measure_residuals,
    separation_curves,
)

CLASSES = np.array(["ash", "birch", "cedar"])


def make_shares(n_rows, n_classes, seed=0):
    """Truths, and probabilities that know something of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    shares = rng.random((n_rows, n_classes)) + 0.8 * (np.arange(n_classes) == y[:, None])
    return y, shares / shares.sum(axis=1, keepdims=True)


def distance_to_curve(points, curve):
    """The largest distance of points to a polyline, by the definition."""
    start, step = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum((step**2).sum(axis=1), 1e-300)
    t = np.clip(((points[:, None] - start) * step).sum(axis=2) / length, 0, 1)
    return np.sqrt((((start + t[:, :, None] * step) - points[:, None]) ** 2).sum(axis=2)).min(axis=1).max()


@pytest.mark.parametrize("n_rows", [30, 3000])
def test_separations_are_scikit_learns(n_rows):
    codes, shares = make_shares(n_rows, 3)
    found = separation_curves(CLASSES[codes], shares, CLASSES)
    assert [one.label for one in found] == CLASSES.tolist()
    for k, one in enumerate(found):
        is_of, share = codes == k, shares[:, k]
        false_rate, true_rate, _ = roc_curve(is_of, share, drop_intermediate=False)
        precision, recall, _ = precision_recall_curve(is_of, share)
        assert (one.n_positive, one.n_rows) == (is_of.sum(), n_rows)
        assert one.roc_auc == pytest.approx(roc_auc_score(is_of, share))
        assert one.average_precision == pytest.approx(average_precision_score(is_of, share))
        for curve, x, y in ((one.roc, false_rate, true_rate), (one.recall, recall, precision)):
            whole = np.column_stack((x, y))
            assert distance_to_curve(whole, np.array(curve)) <= PIXEL * math.sqrt(2)
            assert set(curve) <= set(map(tuple, whole.tolist()))
            assert len(curve) < 1000
        assert (one.roc[0], one.roc[-1]) == ((0.0, 0.0), (1.0, 1.0))
        assert (one.recall[0], one.recall[-1][0]) == ((0.0, 1.0), 1.0)


def test_of_two_classes_the_second_is_shown_and_of_many_the_commonest():
    codes, shares = make_shares(50, 2)
    assert [one.label for one in separation_curves(CLASSES[codes], shares, CLASSES[:2])] == ["birch"]
    codes, shares = make_shares(400, 12)
    codes[codes == 5] = 6
    labels = [one.label for one in calibration_bins(codes, shares, np.arange(12))]
    counts = np.bincount(codes, minlength=12)
    assert len(labels) == MAX_CLASSES
    assert "6" in labels
    assert min(counts[list(map(int, labels))]) >= np.sort(counts)[-MAX_CLASSES]


def test_a_class_without_rows_or_without_others_has_no_curve():
    _, shares = make_shares(20, 3)
    y = np.repeat(CLASSES[:2], 10)
    assert [one.label for one in separation_curves(y, shares, CLASSES)] == ["ash", "birch"]
    assert separation_curves(np.repeat(CLASSES[:1], 20), shares, CLASSES) == ()
    assert calibration_bins(np.repeat(CLASSES[:1], 20), shares, CLASSES) == ()


def test_calibrations_are_scikit_learns():
    codes, shares = make_shares(2000, 2)
    shares[:, 1] = np.linspace(0.0, 1.0, 2000)
    shares[:3, 1] = 0.0, 0.5, 1.0  # edges of bins
    (one,) = calibration_bins(CLASSES[codes], shares, CLASSES[:2])
    observed, predicted = calibration_curve(codes, shares[:, 1], n_bins=N_BINS)
    assert one.observed == pytest.approx(observed)
    assert one.predicted == pytest.approx(predicted)
    assert one.brier == pytest.approx(brier_score_loss(codes, shares[:, 1]))
    assert sum(one.counts) == 2000
    for share, low, high, n in zip(one.observed, one.low, one.high, one.counts, strict=True):
        interval = binomtest(round(share * n), n).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((interval.low, interval.high), abs=1e-12)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.05, 0.33, 0.5, 0.95, 1.0]), st.booleans()), min_size=2, max_size=60))
def test_bins_of_few_rows_are_joined(pairs):
    share, is_of = map(np.array, zip(*pairs, strict=True))
    if 0 < is_of.sum() < len(is_of):
        (one,) = calibration_bins(is_of, np.column_stack((1 - share, share)), np.array([False, True]))
        counts = np.array(one.counts)
        assert min(counts) >= min(MIN_ROWS, len(pairs))
        assert counts.sum() == len(pairs)
        assert counts @ one.observed == pytest.approx(is_of.sum())
        assert counts @ one.predicted == pytest.approx(share.sum())
        assert list(one.predicted) == sorted(one.predicted)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([10, 12, 30], [0, 1, 2]),
        ([10, 3, 0, 7, 11], [0, 1, 1, 1, 2]),
        ([10, 30, 4], [0, 1, 1]),
        ([1, 2, 3], [0, 0, 0]),
    ],
)
def test_which_bins_are_joined(counts, expected):
    assert join_bins(np.array(counts)).tolist() == expected


def test_rows_are_counted_by_truth_and_answer():
    y = CLASSES[[0, 0, 0, 1, 1, 2]]
    said = CLASSES[[0, 0, 1, 1, 2, 2]]
    found = count_confusion(y, said, CLASSES)
    assert found.classes == ("ash", "birch", "cedar")
    assert found.counts == ((2, 1, 0), (0, 1, 1), (0, 0, 1))


def test_residuals_are_of_all_rows_and_points_of_a_sample():
    rng = np.random.default_rng(0)
    y = rng.normal(size=5000)
    said = y - rng.standard_t(2, 5000)
    found = measure_residuals(y, said)
    assert found.rmse == pytest.approx(root_mean_squared_error(y, said))
    assert found.mae == pytest.approx(mean_absolute_error(y, said))
    assert found.n_rows == sum(found.counts) == 5000
    pairs = dict(zip(y.tolist(), said.tolist(), strict=True))
    assert len(set(found.actual)) == MAX_POINTS
    assert all(pairs[truth] == answer for truth, answer in zip(found.actual, found.predicted, strict=True))
    inside = np.histogram(y - said, found.edges)[0]
    assert found.counts[1:-1] == tuple(inside[1:-1])


@given(st.lists(st.tuples(st.floats(-1e150, 1e150), st.floats(-1e150, 1e150)), min_size=1, max_size=20))
def test_residuals_of_any_numbers_have_a_histogram(pairs):
    y, said = np.array(pairs).T
    found = measure_residuals(y, said)
    assert sum(found.counts) == len(pairs)
    assert len(found.edges) == len(found.counts) + 1
    assert all(np.diff(found.edges) > 0)
    assert math.isfinite(found.rmse)
    assert found.rmse >= found.mae * (1 - 1e-9)


def test_one_outlier_does_not_flatten_the_histogram():
    residuals = np.r_[np.linspace(-1, 1, 999), 1e6]
    found = measure_residuals(residuals, np.zeros(1000))
    assert found.edges[-1] < 10
    assert max(found.counts[:-1]) < 200
    assert found.counts[-1] >= 1


def test_intervals_hold_what_lies_in_them():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    ends = {0.9: np.array([[-1, 1], [1, 1], [0, 1.5], [2, 5]]), 0.5: np.array([[-np.inf, np.inf]] * 4)}
    found = measure_coverage("forest", y, ends)
    assert found.nominal == (0.5, 0.9)
    assert found.covered == (1.0, 0.75)
    assert found.width == (None, (2 + 0 + 1.5 + 3) / 4)
    interval = binomtest(3, 4).proportion_ci(method="wilson")
    assert (found.low[1], found.high[1]) == pytest.approx((interval.low, interval.high))


def test_sets_hold_the_classes_in_them():
    sets = np.array([[True, False, False], [True, False, True], [False, True, True], [False, False, False]])
    found = measure_coverage("forest", CLASSES[[0, 1, 2, 0]], {0.8: sets}, CLASSES)
    assert found.covered == (0.5,)
    assert found.width == (5 / 4,)
