"""Bags are pure functions of (seed, tree), follow their closed forms, and never split what belongs together."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.ensemble._bootstrap import _get_n_samples_bootstrap

from spinney import _jit
from spinney.ensemble import sampling
from spinney.ensemble.sampling import Draw, DrawParams, draw_size, fix_chances, make_draw, share_draws, split_bag

UNLIKELY = 1e-4  # a sound draw fails a test at this level once in ten thousand seeds; the seeds here are fixed


def sum_counts(draw, n_trees):
    """How often each row was drawn in all bags together."""
    return sum(draw.counts(tree).astype(np.int64) for tree in range(n_trees))


def chi_square(observed, expected, n_constraints=1):
    """The chance of a deviation this large from the expected numbers."""
    deviation = ((observed - expected) ** 2 / expected).sum()
    return stats.chi2.sf(deviation, len(observed) - n_constraints)


def some_draws(n_rows=60):
    """One draw of every kind and combination, by name."""
    generator = np.random.default_rng(5)
    weight = generator.exponential(size=n_rows) * (generator.random(n_rows) < 0.8)
    strata = generator.integers(0, 3, n_rows).astype(np.int32)
    groups = (np.arange(n_rows) // 4 * 3).astype(np.int32)  # with gaps
    parents = (groups // 3 % 2).astype(np.int32)
    options = {
        "plain": {},
        "weighted": {"probability": weight},
        "strata": {"strata": strata},
        "balanced": {"strata": strata, "is_balanced": True},
        "groups": {"groups": groups},
        "weighted strata": {"probability": weight, "strata": strata},
        "weighted balanced": {"probability": weight, "strata": strata, "is_balanced": True},
        "weighted groups": {"probability": weight, "groups": groups},
        "all": {"probability": weight, "groups": groups, "strata": parents},
        "all balanced": {"probability": weight, "groups": groups, "strata": parents, "is_balanced": True},
    }
    return {
        f"{kind} {name}": Draw(kind, n_rows, 12 if "groups" in option else 30, seed=11, **option)
        for kind in ("whole", "bootstrap", "paste", "poisson")
        for name, option in options.items()
    }


DRAWS = some_draws()
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())

# --- Purity -------------------------------------------------------------------------------------------------


@every_draw
def test_a_bag_depends_on_seed_and_tree_alone(draw):
    before = [draw.counts(tree) for tree in range(8)]
    again = pickle.loads(pickle.dumps(draw))
    with ThreadPoolExecutor(8) as pool:
        after = list(pool.map(again.counts, [7, 6, 5, 4, 3, 2, 1, 0] * 4))
    for k, counts in enumerate(after):
        assert np.array_equal(counts, before[7 - k % 8])
    if draw.kind != "whole":
        assert len({counts.tobytes() for counts in before}) > 1
        other = Draw(draw.kind, 60, draw.n_drawn, 12, draw.probability, draw.strata, draw.is_balanced, draw.groups)
        assert any(not np.array_equal(other.counts(tree), before[tree]) for tree in range(8))


@every_draw
def test_a_pickled_draw_holds_what_was_given_and_no_tables(draw):
    state = draw.__getstate__()
    assert not {"units", "guide", "rates"} & set(state)
    again = pickle.loads(pickle.dumps(draw))
    for name in ("units", "guide", "rates"):
        old, new = getattr(draw, name), getattr(again, name)
        assert (old is None) == (new is None)
        for a, b in zip(old or (), new or (), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_pickled_draw_is_small():
    plain = Draw("bootstrap", 100_000, 100_000, 0)
    assert len(pickle.dumps(plain)) < 1000
    weighted = Draw("bootstrap", 100_000, 100_000, 0, np.arange(1.0, 100_001.0))
    assert len(pickle.dumps(weighted)) < 8 * 100_000 + 1000  # the chances


@every_draw
def test_compiled_and_interpreted_kernels_draw_the_same_bits(draw, monkeypatch):
    bags = []
    for chosen in (_jit.load_compiled(), _jit.interpreted()):
        monkeypatch.setattr(sampling, "kernels", lambda _, chosen=chosen: chosen)
        bag = [draw.counts(tree) for tree in range(3)]
        parts = [part for tree in range(3) for part in split_bag(bag[tree], tree, 3, 0.4, draw.groups)]
        bags.append([part.tobytes() for part in [*bag, *parts]])
    assert bags[0] == bags[1]


@every_draw
def test_counts_and_rows_say_the_same(draw):
    for tree in range(3):
        counts, rows = draw.counts(tree), draw.rows(tree)
        assert counts.dtype == np.int32
        assert counts.shape == (60,)
        assert rows.dtype == np.int64
        assert np.all(np.diff(rows) >= 0)
        assert np.array_equal(np.bincount(rows, minlength=60), counts)
        assert counts.sum() > 0


@every_draw
def test_rows_without_a_chance_are_never_drawn(draw):
    total = sum_counts(draw, 300)
    chance = np.ones(60) if draw.probability is None else draw.probability
    assert not total[chance == 0.0].any()
    assert np.all(total[chance > 0.05] > 0)


@pytest.mark.parametrize("draw", [draw for draw in DRAWS.values() if draw.groups is not None])
def test_groups_are_never_split(draw):
    has_chance = np.ones(60, bool) if draw.probability is None else draw.probability > 0.0
    for tree in range(20):
        counts = draw.counts(tree)
        for group in np.unique(draw.groups):
            assert len(set(counts[(draw.groups == group) & has_chance].tolist())) <= 1
        for part in split_bag(counts, tree, 1, 0.5, draw.groups):
            for group in np.unique(draw.groups):
                is_member = (draw.groups == group) & (counts > 0)
                assert np.array_equal(part[is_member], counts[is_member]) or not part[is_member].any()


def test_large_seeds_and_read_only_arrays_are_taken():
    strata = np.zeros(10, np.int64)
    strata.flags.writeable = False
    assert Draw("bootstrap", 10, 10, 2**63 + 5, strata=strata).counts(2**40).sum() == 10
    assert Draw("bootstrap", np.int64(10), np.int32(10), np.int64(3)).counts(np.int32(1)).sum() == 10


# --- Bootstrap ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "share"), [(10, 0.651322), (100, 0.633968), (1000, 0.632305)])
def test_the_share_of_distinct_rows_is_the_closed_form(n_rows, share):
    assert math.isclose(1 - (1 - 1 / n_rows) ** n_rows, share, abs_tol=1e-6)
    draw = Draw("bootstrap", n_rows, n_rows, 0)
    n_trees = 2000 if n_rows < 1000 else 300
    shares = [np.count_nonzero(draw.counts(tree)) / n_rows for tree in range(n_trees)]
    assert abs(np.mean(shares) - share) < 4 * np.std(shares) / math.sqrt(n_trees)


def test_bootstrap_counts_are_binomial_and_all_rows_alike():
    n_rows, n_trees = 50, 4000
    draw = Draw("bootstrap", n_rows, n_rows, 1)
    bags = np.array([draw.counts(tree) for tree in range(n_trees)])
    assert np.all(bags.sum(axis=1) == n_rows)
    assert chi_square(bags.sum(axis=0), np.full(n_rows, float(n_trees))) > UNLIKELY
    # one row over many trees: its counts are independent and binomial
    for row in (0, 17, n_rows - 1):
        observed = np.bincount(np.minimum(bags[:, row], 4), minlength=5)
        chance = stats.binom.pmf(np.arange(4), n_rows, 1 / n_rows)
        assert chi_square(observed, n_trees * np.append(chance, 1 - chance.sum())) > UNLIKELY
    # two rows of one bag: covariance of a multinomial, -1 / n
    assert abs(np.cov(bags[:, 3], bags[:, 4])[0, 1] + 1 / n_rows) < 4 / math.sqrt(n_trees)


@pytest.mark.parametrize("kind", ["bootstrap", "paste", "poisson"])
def test_bags_of_different_trees_and_seeds_are_uncorrelated(kind):
    n_rows = 2000
    bags = [Draw(kind, n_rows, n_rows // 2, seed).counts(tree) for seed in range(12) for tree in range(12)]
    correlation = np.corrcoef(np.array(bags))[np.triu_indices(144, k=1)] * math.sqrt(n_rows)
    assert np.abs(correlation).max() < 5.0  # 10,296 pairs, each about standard normal
    assert abs(correlation.mean()) < 0.05
    assert abs(correlation.std() - 1.0) < 0.05


def test_bags_and_honest_parts_do_not_share_their_draws():
    n_rows = 4000
    draw = Draw("poisson", n_rows, n_rows, 0)
    counts = draw.counts(0)
    first, _ = split_bag(np.ones(n_rows, np.int32), 0, 0, 0.5)
    assert abs(np.corrcoef(counts, first)[0, 1]) * math.sqrt(n_rows) < 4.0


def test_weighted_draws_are_in_proportion_to_the_weights():
    weight = np.array([0.0, 1.0, 2.0, 3.0, 0.5, 0.0, 10.0, 1e-3])
    draw = Draw("bootstrap", 8, 20, 3, weight)
    total = sum_counts(draw, 3000)
    is_drawn = weight > 0
    assert not total[~is_drawn].any()
    expected = 60_000 * weight / weight.sum()
    assert chi_square(total[is_drawn], expected[is_drawn]) > UNLIKELY


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e300])
def test_a_heavy_row_does_not_hide_light_ones_and_the_unit_of_weights_does_not_matter(scale):
    weight = np.concatenate([[1e6], np.ones(1000)])
    expected = Draw("bootstrap", 1001, 2000, 3, weight)
    found = Draw("bootstrap", 1001, 2000, 3, weight * scale)
    total, other = sum_counts(expected, 40), sum_counts(found, 40)
    light = 80_000 * 1000 / 1.001e6
    assert abs(total[1:].sum() - light) < 5 * math.sqrt(light)
    assert np.abs(total - other).max() <= 2  # but for draws at the very edge between two rows


@given(st.lists(st.floats(0.0, 1e300), min_size=1, max_size=40).filter(any))
def test_chances_in_fixed_point_are_exact_to_forty_bits(weights):
    values = fix_chances(np.array(weights))
    exact = [Fraction(weight) for weight in weights]
    assert 0 < int(values.sum()) < 2**52
    for value, weight in zip(values.tolist(), exact, strict=True):
        assert (value > 0) == (weight > 0)
        assert abs(Fraction(value, int(values.sum())) - weight / sum(exact)) <= Fraction(1, 2**40)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60).filter(any), st.integers(0, 2**31), st.integers(1, 30))
def test_the_guided_search_is_a_plain_search(weights, seed, n_drawn):
    draw = Draw("bootstrap", len(weights), n_drawn, seed, np.array(weights, float))
    if draw.guide is None:
        return
    line = np.concatenate([[0], np.cumsum(fix_chances(np.array(weights, float))[draw.units.order])])
    places = np.concatenate([line[:-1], line[1:] - 1, (line[:-1] + line[1:]) // 2])
    found = [_jit.interpreted().data.draws.find_unit(at, draw.guide) for at in places]
    assert found == (np.searchsorted(line, places, side="right") - 1).tolist()


def test_equal_weights_draw_as_none():
    for kind in ("bootstrap", "paste", "poisson"):
        plain, weighted = (Draw(kind, 50, 25, 7, weight) for weight in (None, np.full(50, 0.3)))
        assert np.array_equal(plain.counts(4), weighted.counts(4))


# --- Pasting ------------------------------------------------------------------------------------------------


def test_pasted_bags_are_all_subsets_alike():
    draw = Draw("paste", 6, 3, 0)
    bags = [tuple(draw.rows(tree).tolist()) for tree in range(8000)]
    assert {len(set(bag)) for bag in bags} == {3}
    subsets, observed = np.unique(np.array(bags), axis=0, return_counts=True)
    assert len(subsets) == 20
    assert chi_square(observed, np.full(20, 400.0)) > UNLIKELY


def test_pasting_everything_is_the_whole_table():
    assert np.all(Draw("paste", 40, 40, 0).counts(3) == 1)
    weight = np.append(np.arange(1.0, 40.0), 1e-250)
    assert np.all(Draw("paste", 40, 40, 0, weight).counts(3) == 1)


def test_weighted_pasting_draws_one_after_the_other():
    weight = np.array([1.0, 2.0, 3.0, 6.0])
    share = weight / weight.sum()
    draw = Draw("paste", 4, 2, 0, weight)
    pairs, observed = np.unique(np.array([draw.rows(tree) for tree in range(12_000)]), axis=0, return_counts=True)
    chance = [share[a] * share[b] / (1 - share[a]) + share[b] * share[a] / (1 - share[b]) for a, b in pairs]
    assert len(pairs) == 6
    assert chi_square(observed, 12_000 * np.array(chance)) > UNLIKELY


# --- Poisson ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.1, 1.0, 3.0, 15.9, 16.1, 1000.0])
def test_poisson_counts_follow_their_distribution(mean):
    n_rows = 20_000 if mean < 100 else 1000
    counts = Draw("poisson", n_rows, round(n_rows * mean), 2).counts(0)
    assert abs(counts.mean() - mean) < 4 * math.sqrt(mean / n_rows)
    assert abs(counts.var() / mean - 1) < 5 * math.sqrt((2 + 1 / mean) / n_rows)
    edges = np.unique(stats.poisson.ppf(np.linspace(0.02, 0.98, 15), mean)).astype(int)
    chance = np.diff(np.concatenate([[0.0], stats.poisson.cdf(edges, mean), [1.0]]))
    observed = np.bincount(np.searchsorted(edges, counts), minlength=len(edges) + 1)
    assert chi_square(observed, n_rows * chance) > UNLIKELY


def test_a_poisson_count_does_not_depend_on_the_other_rows():
    small, large = (Draw("poisson", n, n, 9) for n in (1000, 5000))
    assert np.array_equal(small.counts(4), large.counts(4)[:1000])


def test_poisson_means_follow_weights_and_balance():
    weight = np.array([0.0, 1.0, 4.0, 50.0])
    total = sum_counts(Draw("poisson", 4, 11, 5, weight), 2000)
    assert total[0] == 0
    assert np.all(np.abs(total[1:] - 400 * weight[1:]) < 4 * np.sqrt(400 * weight[1:]))
    strata = np.repeat(np.array([0, 1], np.int32), [90, 10])
    total = sum_counts(Draw("poisson", 100, 100, 5, strata=strata, is_balanced=True), 1000)
    for s in (0, 1):
        assert abs(total[strata == s].sum() - 10_000) < 400


def test_a_poisson_bag_is_never_empty():
    draw = Draw("poisson", 100, 1, 0)
    sizes = np.array([draw.counts(tree).sum() for tree in range(1000)])
    assert sizes.min() == 1
    is_empty = math.exp(-1.0)
    assert abs(np.mean(sizes == 1) - 2 * is_empty) < 0.06
    weight = np.append(np.zeros(20), [1.0, 2.0])
    tiny = [Draw("poisson", 22, 1, seed, weight).rows(0).min() for seed in range(50)]
    assert min(tiny) == 20


# --- Strata, balance, groups ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10).filter(any), st.integers(1, 200))
def test_draws_are_shared_by_largest_remainder(sizes, n_drawn):
    shares = share_draws(n_drawn, np.array(sizes))
    quotas = [Fraction(n_drawn * size, sum(sizes)) for size in sizes]
    assert shares.sum() == n_drawn
    rounded_up = [quota - int(quota) for quota, share in zip(quotas, shares, strict=True) if share > quota]
    rounded_down = [quota - int(quota) for quota, share in zip(quotas, shares, strict=True) if share < quota]
    assert all(abs(quota - int(share)) < 1 for quota, share in zip(quotas, shares, strict=True))
    assert not rounded_up or not rounded_down or min(rounded_up) >= max(rounded_down)


@pytest.mark.parametrize("kind", ["bootstrap", "paste"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_every_stratum_gives_its_share_in_every_bag(kind, has_weights):
    generator = np.random.default_rng(0)
    strata = generator.permutation(np.repeat(np.array([0, 1, 3], np.int32), [70, 20, 10]))
    weight = generator.random(100) + 0.1 if has_weights else None
    for n_drawn, expected in ((100, [70, 20, 0, 10]), (50, [35, 10, 0, 5]), (33, [23, 7, 0, 3])):
        draw = Draw(kind, 100, n_drawn, 1, weight, strata)
        for tree in range(10):
            assert np.bincount(strata, draw.counts(tree), 4).tolist() == expected
    draw = Draw(kind, 100, 100, 1, weight, strata, is_balanced=True)
    for tree in range(10):
        assert np.bincount(strata, draw.counts(tree), 4).tolist() == [10, 10, 0, 10]
    total = sum_counts(draw, 400)
    if not has_weights and kind == "bootstrap":
        for stratum, size in ((0, 70), (1, 20), (3, 10)):
            assert chi_square(total[strata == stratum], np.full(size, 4000 / size)) > UNLIKELY


def test_one_stratum_is_no_stratum():
    strata = np.zeros(20, np.int32)
    assert np.array_equal(Draw("bootstrap", 20, 9, 0, strata=strata).counts(1), Draw("bootstrap", 20, 9, 0).counts(1))
    assert Draw("bootstrap", 20, 9, 0, strata=strata, is_balanced=True).counts(1).sum() == 20


def test_groups_are_drawn_alike_whatever_their_size():
    groups = np.array([5, 0, 0, 0, 0, 2, 2, 5], np.int32)  # sizes 4, 2, 2; codes 1, 3 and 4 have no rows
    n_filled = 3000 * math.exp(-2.0)  # Poisson bags that would be empty
    for kind, n_drawn in (("bootstrap", 6000.0), ("poisson", 6000.0 + n_filled), ("paste", 6000.0)):
        draw = Draw(kind, 8, 2, 0, groups=groups)
        total = sum_counts(draw, 3000)[[1, 5, 0]]
        assert chi_square(total, np.full(3, n_drawn / 3)) > UNLIKELY
    bags = [Draw("bootstrap", 8, 2, 0, groups=groups).counts(tree)[[1, 5, 0]].sum() for tree in range(50)]
    assert set(bags) == {2}


def test_a_group_is_drawn_by_the_mean_of_its_rows():
    groups = np.array([0, 0, 0, 1, 1], np.int32)
    draw = Draw("bootstrap", 5, 4, 0, np.array([1.0, 2.0, 0.0, 3.0, 6.0]), groups=groups)  # means 1.5 and 4.5
    total = sum_counts(draw, 2000)
    assert total[2] == 0
    assert chi_square(total[[0, 3]], np.array([2000.0, 6000.0])) > UNLIKELY


# --- Honest parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.8])
def test_parts_of_a_bag_are_disjoint_whole_and_of_the_asked_share(fraction):
    draw = Draw("bootstrap", 500, 500, 0)
    shares = []
    for tree in range(200):
        counts = draw.counts(tree)
        first, second = split_bag(counts, tree, 0, fraction)
        assert np.array_equal(first + second, counts)
        assert not np.any((first > 0) & (second > 0))
        shares.append(np.count_nonzero(first) / np.count_nonzero(counts))
    error = math.sqrt(fraction * (1 - fraction) / (200 * 316))
    assert abs(np.mean(shares) - fraction) < 5 * error


def test_the_part_of_a_row_depends_on_seed_tree_and_row_alone():
    few = np.zeros(100, np.int32)
    few[::7] = 2
    first, _ = split_bag(np.ones(100, np.int32), 3, 8, 0.5)
    again, _ = split_bag(few, 3, 8, 0.5)
    assert np.array_equal(again[::7] > 0, first[::7] > 0)
    other = [split_bag(np.ones(100, np.int32), tree, seed, 0.5)[0] for tree, seed in ((4, 8), (3, 9))]
    assert not np.array_equal(first, other[0])
    assert not np.array_equal(first, other[1])


@pytest.mark.parametrize("fraction", [1e-9, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("has_groups", [False, True])
def test_neither_part_is_empty_where_there_are_two_units(fraction, has_groups):
    groups = np.array([4, 4, 1, 1, 5, 5], np.int32) if has_groups else None
    counts = np.array([3, 1, 0, 0, 2, 2], np.int32)
    for tree in range(50):
        first, second = split_bag(counts, tree, 1, fraction, groups)
        assert first.any()
        assert second.any()
        assert np.array_equal(first + second, counts)
    one = np.array([3, 1, 0, 0, 0, 0], np.int32) if has_groups else np.array([0, 5, 0, 0, 0, 0], np.int32)
    first, second = split_bag(one, 0, 1, fraction, groups)
    assert np.array_equal(first, one)
    assert not second.any()


# --- Sizes --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Using the fractional value:UserWarning", "ignore:max_samples:UserWarning")
@pytest.mark.parametrize(
    "max_samples", [None, 1, 7, 50, np.int32(9), 0.001, 0.29, 0.5, 0.999, 1.0, np.float32(0.3), 200, 2.5]
)
@pytest.mark.parametrize("n_rows", [50, 101])
def test_sizes_are_those_of_scikit_learn(max_samples, n_rows):
    weight = np.random.default_rng(0).integers(0, 4, n_rows).astype(float)
    for weights in (None, weight, weight / 8):
        size = draw_size(max_samples, n_rows, weights)
        assert size == _get_n_samples_bootstrap(n_rows, max_samples, weights)
        assert type(size) is int


@pytest.mark.parametrize(
    ("max_samples", "error", "match"),
    [
        (0, ValueError, "max_samples=0 must lie between 1 and 10"),
        (-1, ValueError, "max_samples=-1 must lie between 1 and 10"),
        (11, ValueError, "max_samples=11 must lie between 1 and 10"),
        (0.0, ValueError, "fraction of the rows"),
        (-0.5, ValueError, "fraction of the rows"),
        (1.5, ValueError, "max_samples=1.5 must be a fraction of the rows in .0.0, 1.0., .*; give an int"),
        (math.nan, ValueError, "fraction of the rows"),
        (math.inf, ValueError, "fraction of the rows"),
        (True, TypeError, "must be None, an int or a float, got True"),
        (np.True_, TypeError, "must be None, an int or a float"),
        ("half", TypeError, "got 'half'"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(max_samples, error, match):
    with pytest.raises(error, match=match):
        draw_size(max_samples, 10, replaces=False)


@pytest.mark.parametrize("max_samples", [0, -1, 2**31, 0.0, -0.5, math.nan, math.inf, 1e9, True, "half"])
def test_with_replacement_the_size_has_no_other_limit_than_what_can_be_counted(max_samples):
    with pytest.raises((ValueError, TypeError), match="max_samples"):
        draw_size(max_samples, 10)
    assert (draw_size(11, 10), draw_size(1.5, 10), draw_size(2**31 - 1, 10)) == (11, 15, 2**31 - 1)


@pytest.mark.parametrize("kind", ["bootstrap", "poisson"])
def test_bags_larger_than_the_table_hold_rows_more_often(kind):
    params = DrawParams(bootstrap=True if kind == "bootstrap" else kind, max_samples=3.0)
    draw, _ = make_draw(params, 400, None, None, None, 0)
    counts = np.array([draw.counts(tree) for tree in range(50)])
    if kind == "bootstrap":
        assert (counts.sum(axis=1) == 1200).all()
    assert np.mean(counts) == pytest.approx(3.0, abs=0.06)
    assert np.mean(counts == 0) == pytest.approx(np.exp(-3.0), abs=0.01)  # rows out of the bag are fewer, but there


def test_weights_set_the_size_but_not_beyond_reason():
    assert draw_size(25, 10, np.full(10, 3.0)) == 25  # 30 rows, counted by their weights
    for weight in (np.full(10, 1e12), np.full(10, 1e308)):
        with pytest.raises(ValueError, match="give an int, or smaller weights"):
            draw_size(0.5, 10, weight)
    with pytest.warns(UserWarning, match=r"results in a low number \(1\) of bootstrap samples"):
        assert draw_size(0.5, 100, np.full(100, 0.01)) == 1


# --- Faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"kind": "jackknife"}, ValueError, "kind must be one of 'whole'"),
        ({"n_rows": 0}, ValueError, "n_rows must be at least 1"),
        ({"n_drawn": 0}, ValueError, "n_drawn must lie between 1"),
        ({"n_drawn": 2**31}, ValueError, "n_drawn must lie between 1"),
        ({"seed": -1}, ValueError, "seed must not be negative"),
        ({"is_balanced": True}, ValueError, "is_balanced needs strata"),
        ({"probability": np.ones(3)}, ValueError, "probability has shape"),
        ({"probability": np.array([1, 1, -1, 1.0])}, ValueError, "got -1.0 in row 2"),
        ({"probability": np.array([1, np.nan, 1, 1.0])}, ValueError, "got nan in row 1"),
        ({"probability": np.zeros(4)}, ValueError, "0 in every row"),
        ({"strata": np.zeros((4, 1), np.int32)}, ValueError, "strata has shape"),
        ({"strata": np.zeros(4)}, TypeError, "strata must hold integer codes"),
        ({"groups": np.array([0, 1, 2, -1])}, ValueError, "groups must hold codes 0 .. 3, got -1 in row 3"),
        ({"groups": np.array([0, 1, 2, 2**40])}, ValueError, "in row 3"),
        ({"kind": "paste", "n_drawn": 5}, ValueError, "at most all 4 rows .* not 5"),
        ({"kind": "paste", "probability": np.array([0, 0, 1, 2.0])}, ValueError, "at most all 2 rows"),
        ({"kind": "paste", "groups": np.array([0, 0, 1, 1])}, ValueError, "at most all 2 groups"),
        ({"groups": np.array([1, 0, 1, 0]), "strata": np.array([1, 0, 0, 0])}, ValueError, "rows 0 and 2 are of one"),
    ],
)
def test_draws_that_make_no_sense_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        Draw(**{"kind": "bootstrap", "n_rows": 4, "n_drawn": 4, "seed": 0, **options})


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, math.nan])
def test_parts_without_a_share_are_refused(fraction):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        split_bag(np.ones(4, np.int32), 0, 0, fraction)


# --- from parameters to a draw --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "kind", "draws_by_weight"),
    [
        (DrawParams(), "bootstrap", True),
        (DrawParams(bootstrap="poisson"), "poisson", True),
        (DrawParams(replace=False, max_samples=4), "paste", False),
        (DrawParams(bootstrap=False), "whole", False),
        (DrawParams(block_size=3), "bootstrap", False),
    ],
)
def test_weights_draw_the_rows_or_are_left_for_the_trees(params, kind, draws_by_weight):
    """Never both, which would count them twice; a row of weight 0 is in no bag."""
    weight = np.array([0.0, 1.0, 2.0, 3.0, 1.0, 1.0, 0.0, 2.0, 1.0])
    draw, left = make_draw(params, 9, weight, None, None, seed=5)
    assert draw.kind == kind
    np.testing.assert_array_equal(draw.probability, weight if draws_by_weight else weight > 0)
    np.testing.assert_array_equal(left, weight > 0 if draws_by_weight else weight)
    bags = np.array([draw.counts(tree) for tree in range(50)])
    assert not bags[:, weight == 0].any()
    assert bags[:, weight > 0].any(axis=0).all()


def test_without_weights_nothing_is_left_for_the_trees():
    draw, left = make_draw(DrawParams(max_samples=0.5), 10, None, None, None, seed=5)
    assert (draw.n_drawn, draw.probability, left) == (5, None, None)
