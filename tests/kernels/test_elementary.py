"""Our own exponentials, logarithms and powers: how exact they are, and the same bits however they are asked for."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import fast
from spinney import _elementary, _jit

TWIN = _jit.interpreted().common.elementary
LN2 = Decimal("0.69314718055994530941723212145817656807550013436025525412068")


@pytest.fixture(autouse=True)
def _sixty_digits():
    with localcontext() as context:
        context.prec = 60
        yield


def worst(said, truth):
    """Largest error in units in the last place."""
    return max(
        float(abs(Decimal(float(x)) - exact) / Decimal(math.ulp(float(exact) or 1.0)))
        for x, exact in zip(said, truth, strict=True)
    )


def positive(n):
    """Numbers of all sizes, many near 1 and near where the mantissa begins again."""
    generator = np.random.default_rng(0)
    return np.concatenate(
        [
            generator.random(n),
            1.0 + generator.normal(size=n) * 1e-3,
            1.0 + generator.normal(size=n) * 1e-9,
            math.sqrt(0.5) * (1.0 + generator.normal(size=n) * 1e-3),
            2.0 ** generator.uniform(-1022.0, 1023.9, n),
            generator.integers(1, 1 << 22, n).astype(np.float64),
            generator.random(n) * 2.0**-1030,
            [5e-324, 2.0**-1022, np.nextafter(2.0**-1022, 0.0), np.finfo(float).max, 0.5, 1.0, 2.0, 3.0],
        ]
    )


def exponents(n):
    generator = np.random.default_rng(1)
    ends = [0.0, -0.0, -708.0, 709.0, 5e-324, math.log(2.0) / 2.0, -math.log(2.0) / 2.0]
    sizes = (1.0, 1e-9, 30.0, 250.0)
    return np.concatenate([*(np.clip(generator.normal(size=n) * size, -708.0, 709.0) for size in sizes), ends])


# --- How exact they are -------------------------------------------------------------------------------------


def test_logarithms_are_as_exact_as_they_say():
    x = positive(400)
    truth = [Decimal(value).ln() for value in x.tolist()]
    in_twos = [exact / LN2 for exact in truth]
    assert worst(_elementary.log(x), truth) < 1.1
    assert worst(_elementary.log2(x), in_twos) < 0.8
    assert worst([TWIN.any_log2(value) for value in x], in_twos) < 0.8
    is_normal = x >= 2.0**-1022
    truth, in_twos = (np.array(some)[is_normal] for some in (truth, in_twos))
    assert worst(TWIN.log(x[is_normal]), truth) < 0.53
    assert worst(TWIN.log2(x[is_normal]), in_twos) < 0.55
    assert worst(TWIN.logarithm(x[is_normal]), truth) < 2.0


def test_logarithms_of_weights_are_as_exact_as_they_say():
    x = np.concatenate([np.arange(2.0, 2000.0), np.random.default_rng(5).integers(64, 1 << 62, 1000).astype(float)])
    truth = [Decimal(value).ln() / LN2 for value in x.tolist()]
    assert worst(TWIN.weight_log2(x), truth) < 1.1
    assert worst(TWIN.weight_log2(x[62:]), truth[62:]) < 0.56
    powers = np.arange(0, 63)
    np.testing.assert_array_equal(TWIN.weight_log2(np.ldexp(1.0, powers)), powers)


def test_logarithms_of_one_more_are_as_exact_as_they_say():
    generator = np.random.default_rng(2)
    x = np.concatenate([generator.uniform(-0.999, 3.0, 500), generator.normal(size=500) * 1e-8])
    truth = [(1 + Decimal(value)).ln() for value in x.tolist()]
    assert worst([_elementary.log1p_one(value) for value in x.tolist()], truth) < 1.1


def test_relative_entropies_are_as_exact_as_they_say():
    generator = np.random.default_rng(4)
    sizes = (1e-12, 1e-5, 0.1, 0.9)
    x = np.concatenate([*(generator.uniform(-size, size, 200) for size in sizes), [-0.28, 0.4, 3.0, 1e4, 1e18]])
    truth = [(1 + d) * (1 + d).ln() - d for d in map(Decimal, x.tolist())]
    numbers = [TWIN.relative_entropy(value) for value in x]
    assert worst(numbers, truth) < 24.0
    np.testing.assert_array_equal(TWIN.relative_entropy(np.float64(-1.0)), 1.0)
    assert TWIN.relative_entropy(np.float64(0.0)) == 0.0
    np.testing.assert_allclose(_elementary.relative_entropy(x), numbers, rtol=4e-15)
    assert _elementary.relative_entropy(np.array([-1.0, 0.0])).tolist() == [1.0, 0.0]


def test_exponentials_are_as_exact_as_they_say():
    x = exponents(400)
    assert worst(_elementary.exp(x), [Decimal(value).exp() for value in x.tolist()]) < 1.1


def test_exponentials_less_one_are_as_exact_as_they_say():
    generator = np.random.default_rng(3)
    x = -np.concatenate([generator.random(1000), generator.random(300) * 1e-7, [1.0, 0.25]])
    assert worst(_elementary.expm1(x), [Decimal(value).exp() - 1 for value in x.tolist()]) < 1.2
    assert _elementary.expm1(np.zeros(1)) == 0.0


def test_powers_are_as_exact_as_they_say():
    generator = np.random.default_rng(4)
    x = np.concatenate([np.full(400, 0.25), generator.random(400) + 1e-9, 10.0 ** generator.uniform(-9.0, 9.0, 400)])
    y = np.concatenate(
        [1.0 / generator.integers(1, 10_000, 400), generator.random(400), generator.normal(size=400) * 9.0]
    )
    said = np.array([TWIN.power(a, b) for a, b in zip(x, y, strict=True)])
    truth = [(Decimal(a).ln() * Decimal(b)).exp() for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert worst(said[:800], truth[:800]) < 0.7
    assert worst(said, truth) < 7.0


def test_what_is_exact_is_exact():
    k = np.arange(-1074, 1024)
    np.testing.assert_array_equal(_elementary.log2(np.ldexp(1.0, k)), k)
    assert _elementary.log(np.ones(1)) == 0.0
    assert _elementary.exp(np.zeros(20)).tolist() == [1.0] * 20
    assert _elementary.exp_one(0.0) == 1.0
    powers = {(0.25, 0.5): 0.5, (0.25, 1.0): 0.25, (2.0, 10.0): 1024.0, (9.0, 0.0): 1.0}
    assert all(TWIN.power(np.float64(x), np.float64(y)) == exact for (x, y), exact in powers.items())


def test_ends_are_as_said():
    odd = [0.0, -0.0, np.inf, -1.0, -np.inf, np.nan, 1.0]
    expected = [-np.inf, -np.inf, np.inf, np.nan, np.nan, np.nan, 0.0]
    np.testing.assert_array_equal(_elementary.log(odd), expected)
    np.testing.assert_array_equal(_elementary.log2(odd), expected)
    few, many = (_elementary.exp(np.resize([-np.inf, np.inf, np.nan, -800.0], n)) for n in (4, 40))
    np.testing.assert_array_equal(np.resize(few, 40), many)
    assert few[0] == few[3] == _elementary.exp_one(-708.0) > 0.0
    assert np.isfinite(few[1])
    assert np.isnan(few[2])
    assert float(TWIN.power(np.float64(0.25), np.float64(1e6))) == 2.0**-1022
    assert float(TWIN.power(np.float64(4.0), np.float64(1e6))) == 2.0**1023
    assert _elementary.log2([]).shape == _elementary.exp([]).shape == (0,)
    assert _elementary.log2(np.full((2, 3), 8.0)).tolist() == [[3.0] * 3] * 2


@pytest.mark.parametrize("function", [_elementary.exp, _elementary.log, _elementary.log2], ids=lambda f: f.__name__)
def test_neighbours_are_in_order(function):
    start = exponents(500) if function is _elementary.exp else positive(200)[:-8]
    x = np.unique(np.concatenate([start, np.nextafter(start, np.inf), np.nextafter(start, -np.inf)]))
    x = x[x > 0.0] if function is not _elementary.exp else x
    # within 1.1 units in the last place, neighbours may be said one unit the wrong way round
    room = np.spacing(np.abs(function(x)[1:])) * (function is _elementary.exp)
    assert np.all(np.diff(function(x)) >= -room)


# --- The same bits however they are asked for ---------------------------------------------------------------


@pytest.mark.compiled(reason="compares a million values with compiled kernels")
def test_f1_numbers_arrays_and_compiled_kernels_have_the_same_bits():
    x = positive(150_000)[:1_000_000]
    x = x[x >= 2.0**-1022]
    y = exponents(250_000)
    kernels = _jit.load_compiled().common.elementary
    for values, door, function in (
        (x, kernels.log_all, TWIN.log),
        (x, kernels.log2_all, TWIN.log2),
        (y, kernels.exp_all, TWIN.exp_between),
    ):
        said = values.copy()
        door(said)
        by_blocks = np.concatenate([function(part) for part in np.array_split(values, 500)])
        np.testing.assert_array_equal(said, by_blocks)
        some = slice(None, None, 1009)
        np.testing.assert_array_equal(said[some], [function(value) for value in values[some]])
    few = y[::5]
    np.testing.assert_array_equal(_elementary.exp(few), [_elementary.exp_one(value) for value in few.tolist()])
    np.testing.assert_array_equal(_elementary.exp(few[:1000]), [TWIN.exponential(value) for value in few[:1000]])


@pytest.mark.compiled(reason="nothing is compiled")
def test_f1_compiled_powers_and_the_rest_have_the_same_bits():
    """Kernels that only kernels call, compiled here on their own."""
    compiled = _jit.load_compiled().common.elementary
    power, less_one, log1p = compiled.power, compiled.exp_less_one, compiled.log1p
    weight_log2, any_log2 = compiled.weight_log2, compiled.any_log2

    @fast.compile_door
    def fill(x, y, out):
        for i in range(len(x)):
            out[0, i] = power(x[i], y[i])
            out[1, i] = less_one(-x[i])
            out[2, i] = log1p(x[i])
            out[3, i] = weight_log2(np.rint(x[i] * 1e9) + 1.0)
            out[4, i] = any_log2(x[i] if i % 2 else x[i] * 1e-310)

    generator = np.random.default_rng(6)
    x, y = generator.random(5000), generator.normal(size=5000) * 3.0
    out = np.empty((5, 5000))
    fill(x, y, out)
    np.testing.assert_array_equal(out[0], [TWIN.power(a, b) for a, b in zip(x, y, strict=True)])
    np.testing.assert_array_equal(out[1], TWIN.exp_less_one(-x))
    np.testing.assert_array_equal(out[2], TWIN.log1p(x))
    np.testing.assert_array_equal(out[3], TWIN.weight_log2(np.rint(x * 1e9) + 1.0))
    np.testing.assert_array_equal(out[4], _elementary.log2(np.where(np.arange(5000) % 2, x, x * 1e-310)))


def test_what_is_asked_for_is_not_changed():
    x = np.full(20_000, 2.0)
    x.flags.writeable = False
    assert _elementary.log2(x)[0] == 1.0
    assert _elementary.exp(x)[0] == pytest.approx(math.e**2)
    assert x[0] == 2.0
    assert _elementary.log2(np.asfortranarray(np.full((200, 100), 4.0)))[7, 7] == 2.0
