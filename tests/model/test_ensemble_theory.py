"""Why ensembles work: each number against exact fractions, brute force over pairs and subsets, or a closed form."""

import doctest
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import betainc
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from spinney.model import ensemble_theory
from spinney.model.ensemble_theory import decompose_error, decompose_variance, strength_and_correlation, vote_error


def test_the_examples_of_the_docstrings_are_true():
    done = doctest.testmod(ensemble_theory)
    assert done.attempted > 8
    assert done.failed == 0


# --- Independent voters -------------------------------------------------------------------------------------


def exact_vote_error(error, n_voters):
    """The binomial tail in whole numbers: no rounding at all."""
    wrong, whole = float(error).as_integer_ratio()
    half = n_voters // 2
    twice = 0
    for k in range(half + n_voters % 2, n_voters + 1):
        ways = math.comb(n_voters, k) * wrong**k * (whole - wrong) ** (n_voters - k)
        twice += ways if 2 * k == n_voters else 2 * ways
    return twice / (2 * whole**n_voters)


def test_the_lecture_s_and_dietterich_s_numbers():
    assert vote_error(0.35, 25) == pytest.approx(0.060445, abs=5e-7)  # lectures, equation 9: about 0.06
    assert vote_error(0.3, 21) == pytest.approx(0.026, abs=5e-4)  # Dietterich 2000, figure 1


@given(st.floats(0, 1), st.integers(1, 150))
def test_votes_equal_the_exact_fraction(error, n_voters):
    expected = exact_vote_error(error, n_voters)
    found = vote_error(error, n_voters)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300 if error < 0.5 else 1e-15)


@pytest.mark.parametrize("error", [1e-3, 0.2499, 0.25, 0.45, 0.4999])
def test_small_and_large_numbers_of_voters_are_equally_exact(error):
    n_voters = [*range(1, 131), 1001]  # exact coefficients up to 102, then a series
    expected = [exact_vote_error(error, n) for n in n_voters]
    assert vote_error(error, n_voters) == pytest.approx(expected, rel=2e-13, abs=0)


@pytest.mark.parametrize(
    ("error", "n_voters"), [(0.35, 5001), (0.49, 100_001), (0.499, 1_000_001), (0.4999, 10_000_001), (0.51, 99_999)]
)
def test_many_voters_equal_the_incomplete_beta_function(error, n_voters):
    m = (n_voters + 1) / 2
    assert vote_error(error, n_voters) == pytest.approx(betainc(m, m, error), rel=1e-9)


def test_very_many_voters_equal_the_normal_limit():
    n = 10**10
    error = 0.5 - 0.5 / math.sqrt(n)  # one standard deviation below a half
    assert vote_error(error, n) == pytest.approx(0.5 * math.erfc(1 / math.sqrt(2)), rel=1e-8)


def test_the_ends_are_exact():
    assert vote_error([0.0, 0.5, 1.0], 10**12).tolist() == [0.0, 0.5, 1.0]
    assert vote_error([0.1, 0.25, 0.7], 1).tolist() == pytest.approx([0.1, 0.25, 0.7], rel=1e-15)
    assert vote_error(0.01, 10**6) == 0.0  # below the smallest float


def test_voters_broadcast_and_scalars_stay_scalars():
    found = vote_error(np.array([[0.2], [0.4]]), np.array([1, 5, 25]))
    assert found.shape == (2, 3)
    assert found[1, 2] == vote_error(0.4, 25)
    assert isinstance(vote_error(0.4, np.int32(25)), float)
    assert vote_error([], 3).shape == (0,)


@pytest.mark.parametrize(
    ("error", "n_voters", "kind", "match"),
    [
        (-0.1, 3, ValueError, r"error must be a probability between 0 and 1, got -0\.1"),
        ([0.2, math.nan], 3, ValueError, "got nan"),
        (0.2, [3, 0], ValueError, "n_voters must be between 1 and 1000000000000, got 0"),
        (0.2, 10**13, ValueError, "got 10000000000000"),
        (0.2, 3.0, TypeError, r"whole numbers, got 3\.0"),
        (0.2, True, TypeError, "whole numbers, got True"),
    ],
)
def test_impossible_voters_are_refused(error, n_voters, kind, match):
    with pytest.raises(kind, match=match):
        vote_error(error, n_voters)


# --- Variance -----------------------------------------------------------------------------------------------


numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
tables = st.tuples(st.integers(2, 5), st.integers(2, 7)).flatmap(lambda shape: arrays(float, shape, elements=numbers))
blocks = st.tuples(st.integers(2, 4), st.integers(2, 4), st.integers(1, 5)).flatmap(
    lambda shape: arrays(float, shape, elements=numbers)
)


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-10)  # of squares up to 10^4


def covariance(a, b):
    return float(np.mean((a - a.mean()) * (b - b.mean())))


@given(tables)
def test_variance_over_rows_is_that_of_every_tree_and_pair(f):
    parts = decompose_variance(f)
    pairs = [covariance(a, b) for a, b in itertools.permutations(f, 2)]
    assert parts.sigma2 == close(np.mean([np.var(a) for a in f]))
    assert parts.covariance == close(np.mean(pairs))
    assert parts.over == "rows"
    if parts.sigma2 > 1e-6:
        b, rho, sigma2 = parts.n_trees, parts.rho, parts.sigma2
        assert rho * sigma2 + (1 - rho) * sigma2 / b == close(np.var(f.mean(axis=0)))
    assert parts.ensemble_variance == close(np.var(f.mean(axis=0)))


@given(tables)
def test_the_variance_of_fewer_trees_is_the_mean_over_every_choice(f):
    sizes = range(1, len(f) + 1)
    expected = [
        np.mean([np.var(f[list(chosen)].mean(axis=0)) for chosen in itertools.combinations(range(len(f)), n)])
        for n in sizes
    ]
    assert decompose_variance(f).at(list(sizes)) == close(expected)


@given(tables, st.data())
def test_with_y_it_is_the_variance_of_errors(f, data):
    y = data.draw(arrays(float, f.shape[1], elements=numbers))
    parts = decompose_variance(f, y)
    assert parts.ensemble_variance == close(np.var(f.mean(axis=0) - y))
    assert parts.covariance == close(np.mean([covariance(a - y, b - y) for a, b in itertools.permutations(f, 2)]))


def test_rho_is_the_mean_correlation_where_trees_vary_alike():
    f = np.random.default_rng(3).normal(size=(6, 40)) + np.linspace(0, 2, 40)
    f = (f - f.mean(axis=1, keepdims=True)) / f.std(axis=1, keepdims=True)
    expected = np.corrcoef(f)[np.triu_indices(6, 1)].mean()
    assert decompose_variance(f).rho == pytest.approx(expected, rel=1e-12)


@given(blocks)
def test_variance_over_repeats_is_exact_for_the_mean_prediction(f):
    parts = decompose_variance(f)
    b = f.shape[1]
    of_mean = np.mean([np.var(f[:, :, i].mean(axis=1), ddof=1) for i in range(f.shape[2])])
    assert parts.over == "repeats"
    assert parts.ensemble_variance == close(of_mean)
    assert parts.covariance + (parts.sigma2 - parts.covariance) / b == close(of_mean)
    within = np.mean([np.var(f[r, :, i], ddof=1) for r in range(len(f)) for i in range(f.shape[2])])
    assert parts.sigma2 - parts.covariance == close(within)  # what two trees of one forest do not share


def test_variance_over_repeats_finds_the_parts_it_was_made_of():
    rng = np.random.default_rng(0)
    shared, own = 1.5, 2.0  # standard deviations: of a training set, of a tree given it
    row = rng.normal(0, 50, 400)  # the signal, which is not variance
    f = row + rng.normal(0, shared, (60, 1, 400)) + rng.normal(0, own, (60, 8, 400))
    parts = decompose_variance(f)
    assert parts.covariance == pytest.approx(shared**2, rel=0.03)
    assert parts.sigma2 == pytest.approx(shared**2 + own**2, rel=0.03)
    assert parts.rho == pytest.approx(2.25 / 6.25, rel=0.03)
    assert parts.at(math.inf) == parts.covariance


def test_trees_that_do_not_vary_have_no_correlation():
    parts = decompose_variance(np.ones((3, 4)))
    assert parts.sigma2 == 0.0
    assert math.isnan(parts.rho)
    assert parts.ensemble_variance == 0.0


def test_a_forest_s_trees_share_less_than_a_bag_s():
    X, y = make_friedman1(600, noise=1.0, random_state=1)

    def rho(max_features):
        forest = RandomForestRegressor(30, max_features=max_features, random_state=0).fit(X[:200], y[:200])
        return decompose_variance([tree.predict(X[200:]) for tree in forest.estimators_], y[200:]).rho

    assert 0.1 < rho(0.3) < rho(1.0) < 0.8  # Breiman 2001, table 7: 0.41 for errors on Friedman 1


# --- Error --------------------------------------------------------------------------------------------------


def draw_columns(data, n_rows):
    return [data.draw(arrays(float, n_rows, elements=numbers)) for _ in range(2)]


@given(tables, st.data(), st.booleans())
def test_errors_of_members_and_of_their_mean_are_exact(f, data, has_truth):
    y, truth = draw_columns(data, f.shape[1])
    parts = decompose_error(f, y, truth if has_truth else None)
    assert parts.member_error == close(np.mean((f - y) ** 2))
    assert parts.bias2 + parts.variance + parts.noise + parts.cross == close(np.mean((f - y) ** 2))
    assert parts.ensemble_error == close(np.mean((f.mean(axis=0) - y) ** 2))
    assert parts.noise == close(np.mean((y - truth) ** 2) if has_truth else 0.0)
    assert parts.variance == close(np.mean([np.var(f[:, i], ddof=1) for i in range(f.shape[1])]))


@given(tables, st.data())
def test_the_error_of_fewer_members_is_the_mean_over_every_choice(f, data):
    y, truth = draw_columns(data, f.shape[1])
    sizes = range(1, len(f) + 1)
    expected = [
        np.mean([np.mean((f[list(c)].mean(axis=0) - y) ** 2) for c in itertools.combinations(range(len(f)), n)])
        for n in sizes
    ]
    assert decompose_error(f, y, truth).at(list(sizes)) == close(expected)


@given(blocks, st.data(), st.booleans())
def test_errors_over_repeats_are_exact(f, data, has_truth):
    y, truth = draw_columns(data, f.shape[2])
    parts = decompose_error(f, y, truth if has_truth else None)
    b = f.shape[1]
    assert parts.member_error == close(np.mean((f - y) ** 2))
    assert parts.ensemble_error == close(np.mean((f.mean(axis=1) - y) ** 2))
    rest = parts.noise + parts.cross
    by_ueda_and_nakano = parts.bias2 + parts.variance / b + (1 - 1 / b) * parts.covariance + rest
    assert by_ueda_and_nakano == close(parts.ensemble_error)
    variance = decompose_variance(f)
    assert (parts.variance, parts.covariance) == (variance.sigma2, variance.covariance)


def test_errors_over_repeats_find_the_parts_they_were_made_of():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 50, 4000)
    y = truth + rng.normal(0, 3, 4000)
    f = truth + 0.7 + rng.normal(0, 1.5, (12, 1, 4000)) + rng.normal(0, 2, (12, 6, 4000))
    parts = decompose_error(f, y, truth)
    assert parts.bias2 == pytest.approx(0.49, abs=0.05)
    assert parts.covariance == pytest.approx(2.25, rel=0.05)
    assert parts.variance == pytest.approx(6.25, rel=0.05)
    assert parts.noise == pytest.approx(9.0, rel=0.1)
    assert parts.cross == pytest.approx(0.0, abs=0.3)
    assert decompose_error(f, y).bias2 == pytest.approx(parts.bias2 + parts.noise + parts.cross, rel=1e-9)


def test_the_estimate_of_bias_is_itself_unbiased():
    rng = np.random.default_rng(1)
    found = [decompose_error(rng.normal(1.0, 2.0, (3, 10)), np.zeros(10)).bias2 for _ in range(4000)]
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(1.0, abs=4 * error)
    assert error < 0.03  # the plain square would be 1 + 4 / 3


def test_a_large_offset_costs_no_digits_of_the_variance():
    f = np.random.default_rng(2).integers(-8, 8, (4, 16)).astype(float)
    assert decompose_variance(f + 2.0**40).sigma2 == pytest.approx(decompose_variance(f).sigma2, rel=1e-12)


@pytest.mark.parametrize(
    ("predictions", "y", "match"),
    [
        ([1.0, 2.0], [1.0, 2.0], r"\(n_members, n_rows\) or .*got shape \(2,\)"),
        ([[1.0, 2.0]], [1.0, 2.0], r"at least two members, got shape \(1, 2\). Give more members"),
        ([[[1.0, 2.0]], [[1.0, 2.0]]], [1.0, 2.0], r"Give single models as \(n_members, n_rows\)"),
        ([[[1.0, 2.0], [1.0, 2.0]]], [1.0, 2.0], r"one repeat: give predictions\[0\]"),
        (np.empty((3, 0)), [], r"empty: shape \(3, 0\)"),
        ([[1.0, 2.0], [math.nan, 2.0]], [1.0, 2.0], r"predictions\[1, 0\] is nan: every member must predict"),
        ([[1.0, 2.0], [3.0, 2.0]], [1.0], r"y must be \(2,\), one value per row of predictions, got shape \(1,\)"),
        ([[1.0, 2.0], [3.0, 2.0]], [1.0, math.inf], r"y\[1\] is inf. Drop such rows"),
    ],
)
def test_predictions_without_parts_are_refused(predictions, y, match):
    with pytest.raises(ValueError, match=match):
        decompose_error(predictions, y)


def test_what_the_variance_cannot_say_is_refused():
    with pytest.raises(ValueError, match="a variance over rows needs at least two"):
        decompose_variance([[1.0], [2.0]])
    with pytest.raises(ValueError, match="at least two trees"):
        decompose_variance([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"at least 1, got 0"):
        decompose_variance([[1.0, 2.0], [2.0, 4.0]]).at(0)
    with pytest.raises(ValueError, match=r"truth must be \(2,\)"):
        decompose_error([[1.0, 2.0], [3.0, 2.0]], [1.0, 2.0], truth=[1.0, 2.0, 3.0])


def test_the_text_of_an_error_shows_the_noise_only_where_it_is_known():
    f, y = [[1.0, 2.0], [3.0, 2.0]], [1.0, 2.0]
    assert "bias^2, with the noise" in str(decompose_error(f, y))
    assert "\n  noise  " in str(decompose_error(f, y, truth=[1.0, 1.0]))


# --- Strength and correlation -------------------------------------------------------------------------------


@st.composite
def elections(draw):
    n_trees, n_rows, n_classes = draw(st.integers(1, 6)), draw(st.integers(1, 8)), draw(st.integers(1, 4))
    codes = st.integers(0, n_classes - 1)
    votes = draw(arrays(np.int64, (n_trees, n_rows), elements=codes))
    y = draw(arrays(np.int64, n_rows, elements=codes))
    is_oob = draw(arrays(np.bool_, (n_trees, n_rows)))
    is_oob[draw(st.integers(0, n_trees - 1)), draw(st.integers(0, n_rows - 1))] = True
    return votes, y, is_oob


def brute_strength(votes, y, is_oob):
    """Breiman's definitions, one row and one tree at a time, with the spread of raw margins taken as it is."""
    n_trees, n_rows = votes.shape
    margins, rivals, misses = {}, {}, 0
    for i in range(n_rows):
        cast = [int(votes[t, i]) for t in range(n_trees) if is_oob[t, i]]
        if cast:
            wrong = [c for c in range(5) if c != y[i]]
            rivals[i] = max(wrong, key=lambda c: (cast.count(c), -c))
            margins[i] = (cast.count(int(y[i])) - cast.count(rivals[i])) / len(cast)
            misses += max(range(5), key=lambda c: (cast.count(c), -c)) != y[i]
    sds, errors = [], []
    for t in range(n_trees):
        own = [i for i in range(n_rows) if is_oob[t, i]]
        raw = [int(votes[t, i] == y[i]) - int(votes[t, i] == rivals[i]) for i in own]
        if own:
            sds.append(np.std(raw))
            errors.append(np.mean([votes[t, i] != y[i] for i in own]))
    spread = np.var(list(margins.values()))
    return np.mean(list(margins.values())), spread, np.mean(sds), misses / len(margins), np.mean(errors)


@given(elections())
def test_strength_and_correlation_equal_the_definitions(election):
    votes, y, is_oob = election
    strength, spread, sd, error, tree_error = brute_strength(votes, y, is_oob)
    not_counted = np.where(np.arange(len(y)) % 2, -9, 10**15)
    found = strength_and_correlation(np.where(is_oob, votes, not_counted), y, is_oob)
    assert found.strength == pytest.approx(strength, abs=1e-12)
    assert found.margin_variance == pytest.approx(spread, abs=1e-12)
    assert found.mean_sd == pytest.approx(sd, abs=1e-7)  # the root of a rounding
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.tree_error == pytest.approx(tree_error, abs=1e-12)
    assert np.isnan(found.tree_errors).tolist() == (~is_oob.any(axis=1)).tolist()
    assert found.n_rows == np.count_nonzero(is_oob.any(axis=0))
    if sd > 1e-6:
        assert found.correlation == pytest.approx(spread / sd**2, rel=1e-6, abs=1e-12)


@given(elections())
def test_no_error_exceeds_the_bound_where_all_votes_count(election):
    votes, y, _ = election
    found = strength_and_correlation(votes, y)
    assert found.error <= found.bound + 1e-9
    if found.strength > 0:
        chebyshev = found.margin_variance / found.strength**2
        assert found.error - 1e-9 <= chebyshev <= found.bound + 1e-9


@given(elections())
def test_with_two_classes_the_margin_varies_as_a_mean_of_trees_does(election):
    votes, y, _ = election
    votes, y = np.minimum(votes, 1), np.minimum(y, 1)
    raw = np.where(votes == y, 1.0, -1.0)
    if min(raw.shape) >= 2:
        found = strength_and_correlation(votes, y)
        assert found.margin_variance == pytest.approx(decompose_variance(raw).ensemble_variance, abs=1e-12)


def test_voters_of_known_correlation():
    # Each row has its own chance p to be got right: margins average 2p - 1, and what they share is its spread.
    rng = np.random.default_rng(0)
    p = rng.choice([0.5, 0.9], 4000)
    y = rng.integers(0, 2, 4000)
    votes = np.where(rng.random((300, 4000)) < p, y, 1 - y)
    found = strength_and_correlation(votes, y, rng.random(votes.shape) < 0.37)
    s, spread = 0.4, 0.16  # mean and variance of 2p - 1
    c = spread / (1 - s**2)
    assert found.strength == pytest.approx(s, abs=0.02)
    assert found.correlation == pytest.approx(c + (1 - c) / (0.37 * 300), abs=0.01)
    assert found.tree_error == pytest.approx(0.3, abs=0.01)
    assert found.ratio == found.correlation / found.strength**2
    assert found.bound == pytest.approx(found.ratio * (1 - found.strength**2), rel=1e-12)


def test_perfect_and_useless_trees():
    y = np.array([0, 1, 2, 1])
    perfect = strength_and_correlation([y, y], y)
    assert (perfect.strength, perfect.bound, perfect.error, perfect.tree_error) == (1.0, 0.0, 0.0, 0.0)
    assert math.isnan(perfect.correlation)
    useless = strength_and_correlation([y * 0 + 3, y * 0 + 3], y)
    assert (useless.strength, useless.ratio, useless.bound, useless.error) == (-1.0, math.inf, math.inf, 1.0)


def test_copies_of_one_tree_correlate_fully():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 200)
    vote = np.where(rng.random(200) < 0.8, y, 1 - y)
    found = strength_and_correlation(np.tile(vote, (7, 1)), y)
    assert found.correlation == pytest.approx(1.0, rel=1e-12)
    assert found.error == found.tree_error == np.mean(vote != y)


def test_a_forest_out_of_bag_as_breiman_describes_it():
    # Twonorm: more features per node make trees stronger and more alike (Breiman 2001, section 6).
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 20)) + np.where(y[:, None] == 1, 2, -2) / math.sqrt(20)

    def measure(max_features):
        forest = RandomForestClassifier(60, max_features=max_features, random_state=0).fit(X, y)
        is_oob = np.ones((60, 300), np.bool_)
        for t, rows in enumerate(forest.estimators_samples_):
            is_oob[t, rows] = False
        votes = np.array([tree.predict(X) for tree in forest.estimators_]).astype(np.int64)
        return strength_and_correlation(votes, y, is_oob)

    few, all_of_them = measure(1), measure(20)
    assert few.correlation < all_of_them.correlation
    assert few.strength < all_of_them.strength
    for found in (few, all_of_them):
        assert found.error < found.tree_error
        assert found.error < found.bound


@pytest.mark.parametrize(
    ("votes", "y", "is_oob", "kind", "match"),
    [
        ([0, 1], [0, 1], None, ValueError, r"votes must be \(n_trees, n_rows\), got shape \(2,\)"),
        ([[0, 1]], [0], None, ValueError, r"y must be \(2,\), one value per row of votes"),
        ([["a", "b"]], [0, 1], None, TypeError, "votes must be class codes"),
        ([[0, 1]], [0.0, 1.0], None, TypeError, "y must be class codes, whole numbers from 0, got float64"),
        ([[0, -1]], [0, 1], None, ValueError, r"votes\[0, 1\] is -1: class codes run from 0"),
        ([[0, 1]], [0, 10**9], None, ValueError, r"y\[1\] is 1000000000"),
        ([[0, 1]], [0, 1], [[1, 0]], TypeError, "is_oob must be booleans"),
        ([[0, 1]], [0, 1], [True, False], ValueError, "is_oob must have the shape of votes"),
        ([[0, 1]], [0, 1], [[False, False]], ValueError, "no vote counts"),
    ],
)
def test_votes_that_cannot_be_counted_are_refused(votes, y, is_oob, kind, match):
    with pytest.raises(kind, match=match):
        strength_and_correlation(votes, y, is_oob)
