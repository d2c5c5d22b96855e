import numpy as np
import pytest

from spinney.model.imports.float32_cuts import cut_rounded, cut_rounded_below

TINY, MOST = np.float32(1e-45), np.finfo(np.float32).max


def list_thresholds():
    """Float32 and float64 numbers of every size, ends and neighbours of powers of two."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32).view(np.float32)
    powers = np.ldexp(np.float32(1.0), np.arange(-149, 128)).astype(np.float32)
    singles = [
        bits,
        powers,
        -powers,
        np.nextafter(powers, np.float32(0)),
        np.float32([0.0, -0.0, TINY, -TINY, MOST, -MOST]),
    ]
    single = np.concatenate([*singles, np.float32([np.inf, -np.inf])])
    single = single[~np.isnan(single)]
    double = rng.integers(0, 1 << 64, 20_000, dtype=np.uint64).view(np.float64)
    near = single.astype(np.float64)
    with np.errstate(over="ignore"):
        middles = (
            0.5 * near[np.isfinite(near)]
            + 0.5 * np.nextafter(single, np.float32(np.inf)).astype(float)[np.isfinite(near)]
        )
    doubles = np.concatenate([double, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), middles])
    return single, doubles[~np.isnan(doubles)]


def to_single(x):
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


@pytest.mark.parametrize("kind", [0, 1], ids=["float32", "float64"])
def test_no_float64_changes_side(kind):
    """The cut rounds to what is not above the threshold, the next float64 to what is: rounding keeps the order."""
    threshold = list_thresholds()[kind].astype(np.float64)
    cut = cut_rounded(threshold)
    assert cut.dtype == np.float64
    assert np.all(to_single(cut) <= threshold)
    above = np.nextafter(cut, np.inf)
    is_last = np.isinf(cut) & (cut > 0)
    assert np.all((to_single(above) > threshold) | is_last)
    assert np.all(threshold[is_last] == np.inf)


def test_brute_force_on_values_around_each_threshold():
    rng = np.random.default_rng(1)
    threshold = np.float32(rng.normal(size=200) * 10.0 ** rng.integers(-40, 38, 200))
    for t, cut, below in zip(threshold, cut_rounded(threshold), cut_rounded_below(threshold), strict=True):
        step = float(np.nextafter(t, np.float32(np.inf))) - float(t)
        x = float(t) + step * rng.uniform(-2, 2, 500)
        x = np.concatenate([x, np.float64(t) + step * np.arange(-8, 9) / 4])
        np.testing.assert_array_equal(x <= cut, to_single(x) <= t)
        np.testing.assert_array_equal(x <= below, to_single(x) < t)


def test_below_is_strict_at_the_ends():
    cut = cut_rounded_below(np.float32([0.0, -MOST, np.inf, TINY]))
    np.testing.assert_array_equal(to_single(cut) < np.float32([0.0, -MOST, np.inf, TINY]), True)
    np.testing.assert_array_equal(to_single(np.nextafter(cut, np.inf)) < np.float32([0.0, -MOST, np.inf, TINY]), False)


def test_what_is_no_number_stays_none():
    assert np.isnan(cut_rounded(np.array([np.nan]))).all()
