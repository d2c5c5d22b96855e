"""Bags by blocks: any range of rows gives its part of the bag, which is drawn as the whole table would be at once.

The distributions are tested on small blocks, where borders are everywhere; `naive_bags` is a second version in whole
numbers. What tables of one block, and models of before there were blocks, draw was recorded then: `golden_bags`.
"""

import hashlib
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import naive_bags
from spinney import BaggingRegressor, CARTRegressor, RandomForestClassifier, _jit, load_model
from spinney.ensemble import sampling
from spinney.ensemble.sampling import BLOCK_BITS, Draw
from spinney.ensemble.subspaces import Subspaces
from spinney.model import container

GOLDEN = Path(__file__).parents[1] / "golden_bags"
UNLIKELY = 1e-4  # seeds are fixed: what holds once holds for ever
HALVES = _jit.interpreted().data.halves


def options(n_rows, seed=5):
    """What a draw can be given beside its kind and size, by name."""
    generator = np.random.default_rng(seed)
    weight = generator.exponential(size=n_rows) * (generator.random(n_rows) < 0.8)
    strata = generator.integers(0, 3, n_rows).astype(np.int32)
    groups = (np.arange(n_rows) // 4).astype(np.int32)
    mixed = generator.permutation(groups * 2)  # rows of a group far from each other, codes without rows
    return {
        "plain": {},
        "weighted": {"probability": weight},
        "strata": {"strata": strata},
        "some": {"probability": (weight > 0).astype(float)},
        "groups": {"groups": groups},
        "mixed groups": {"groups": mixed},
        "balanced": {"strata": strata, "is_balanced": True},
        "weighted strata": {"probability": weight, "strata": strata},
        "some of strata": {"probability": (weight > 0).astype(float), "strata": strata},
    }


def chi_square(observed, expected, n_constraints=1):
    """The chance of a deviation this large from the expected numbers."""
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - n_constraints)


# --- The count of a half ------------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_first_chance_is_exact_to_twelve_digits(n, left, right, data):
    k = data.draw(st.integers(0, n))
    exact = math.comb(n, k) * Fraction(left, left + right) ** k * Fraction(right, left + right) ** (n - k)
    found = HALVES.binomial_chance(float(k), float(n), float(left), float(right))
    if exact > Fraction(1, 2**900):
        assert abs(Fraction(found) / exact - 1) < Fraction(1, 10**12)


@pytest.mark.parametrize("n", [1000, 131_072, 10_000_000, 2**31 - 1])
@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.3, 0.5, 0.999])
def test_the_chances_of_large_counts_are_those_of_scipy(n, share):
    left = max(int(2**51 * share), 1)
    k, chance = HALVES.start_count(float(n), float(left), float(2**51 - left), True)
    assert chance == pytest.approx(stats.binom.pmf(k, n, left / 2**51), rel=1e-7)  # its own error for large n
    k, chance = HALVES.start_count(n / 2, float(n // 3), float(n - n // 3), False)
    if n <= 131_072:
        assert chance == pytest.approx(stats.hypergeom.pmf(k, n, n // 3, n / 2), rel=1e-7)


@given(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(0, 80), st.integers(0, 80), st.booleans())
@example(2**64 - 1, 300, 1, 1, True)  # the very end of 0 .. 1
@example(0, 300, 1, 1, True)
@example(2**63, 1, 0, 5, True)
@example(2**63, 1, 5, 0, False)
def test_the_count_of_a_half_is_that_of_exact_chances(word, n_drawn, left, right, is_replaced):
    if left + right == 0:
        left = 1
    if not is_replaced:
        n_drawn = min(n_drawn, left + right)
    found = HALVES.deal_left(np.uint64(word), n_drawn, left, right, is_replaced)
    if word >> 11 < 2**53 - 64:  # beyond, chances that were rounded may end before 1
        assert found == naive_bags.deal_left(word, n_drawn, left, right, is_replaced)
    least, most = (0, n_drawn) if is_replaced else (max(0, n_drawn - right), min(n_drawn, left))
    assert least <= found <= most


@pytest.mark.parametrize(
    ("n_drawn", "left", "right"), [(9000, 65_536, 65_536), (40_000, 65_536, 3), (20_000, 131_072, 9)]
)
@pytest.mark.parametrize("is_replaced", [True, False])
def test_counts_of_whole_blocks_are_those_of_exact_chances(n_drawn, left, right, is_replaced):
    for word in np.random.default_rng(left).integers(0, 2**64, 5, np.uint64):
        found = HALVES.deal_left(word, n_drawn, left, right, is_replaced)
        assert found == naive_bags.deal_left(int(word), n_drawn, left, right, is_replaced)


@pytest.mark.parametrize("is_replaced", [True, False])
def test_counts_of_halves_follow_their_distribution(is_replaced):
    n_drawn, left, right = 150_000, 131_072, 100_000
    law = stats.binom(n_drawn, left / 231_072) if is_replaced else stats.hypergeom(231_072, left, n_drawn)
    deal = _jit.interpreted().data.halves.deal_left
    words = np.random.default_rng(3).integers(0, 2**64, 2000, np.uint64)
    found = np.array([deal(word, n_drawn, left, right, is_replaced) for word in words])
    edges = law.ppf(np.linspace(0.05, 0.95, 19))
    observed = np.bincount(np.searchsorted(edges, found), minlength=20)
    assert chi_square(observed, 2000 * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))) > UNLIKELY


# --- The rule, against a second version ---------------------------------------------------------------------------


def naive_counts(draw, tree):
    """The bag as `naive_bags` draws it; weights in whole numbers are the draw's."""
    units = draw.units
    weight = np.ones(len(units.order), int) if units.weight is None else units.weight
    ends = zip(units.begin[:-1], units.begin[1:], strict=True)
    strata = [list(zip(units.order[a:b].tolist(), weight[a:b].tolist(), strict=True)) for a, b in ends]
    counts = naive_bags.bag(
        draw.seed, tree, strata, units.n_drawn.tolist(), units.n_ids, 1 << draw.block_bits, draw.kind == "bootstrap"
    )
    return np.array(counts) if draw.groups is None else np.array(counts)[draw.groups]


@given(
    st.sampled_from(["bootstrap", "paste"]),
    st.integers(9, 70),
    st.integers(0, 3),
    st.sampled_from(sorted(options(9))),
    st.integers(0, 2**64 - 1),
    st.data(),
)
def test_bags_are_those_of_the_plain_rule(kind, n_rows, block_bits, name, seed, data):
    given_to = options(n_rows, seed % 1000)[name]
    if kind == "paste" and name.startswith("weighted"):
        return  # not by blocks
    most = len(Draw("bootstrap", n_rows, 1, seed, **given_to).units.order) if kind == "paste" else 3 * n_rows
    draw = Draw(kind, n_rows, data.draw(st.integers(1, most)), seed, **given_to, block_bits=block_bits)
    assert draw.has_blocks
    counts = draw.counts(7)
    expected = naive_counts(draw, 7)
    if draw.probability is not None:
        expected = expected * (draw.probability > 0)
    assert counts.tolist() == expected.tolist()
    first = data.draw(st.integers(0, n_rows))
    last = data.draw(st.integers(first, n_rows))
    assert draw.counts(7, first, last).tolist() == expected[first:last].tolist()


@pytest.mark.parametrize("kind", ["bootstrap", "paste"])
def test_bags_of_large_blocks_are_those_of_the_plain_rule(kind):
    draw = Draw(kind, 150_000, 900, 4)
    assert (draw.block_bits, draw.has_blocks) == (16, True)
    assert draw.counts(1).tolist() == naive_counts(draw, 1).tolist()


@pytest.mark.parametrize("kind", ["whole", "bootstrap", "paste", "poisson"])
@pytest.mark.parametrize("name", sorted(options(9)))
def test_a_range_is_the_part_of_the_whole(kind, name):
    n_rows = 203
    n_drawn = 12 if "groups" in name else 60
    for block_bits in (None, 2, 5, BLOCK_BITS):
        draw = Draw(kind, n_rows, n_drawn, 3, **options(n_rows)[name], block_bits=block_bits)
        for tree in (0, 1):
            whole = draw.counts(tree)
            for first, last in ((0, 203), (0, 1), (31, 33), (202, 203), (64, 128), (5, 190), (7, 7)):
                assert draw.counts(tree, first, last).tolist() == whole[first:last].tolist()


@pytest.mark.parametrize("options", [{}, {"probability": np.append(np.zeros(40), np.arange(1.0, 101.0))}])
def test_ranges_agree_on_the_one_row_of_an_empty_poisson_bag(options):
    draw = Draw("poisson", 140, 1, 0, **options)
    bags = [np.concatenate([draw.counts(tree, k, k + 7) for k in range(0, 140, 7)]) for tree in range(40)]
    assert [bag.tolist() for bag in bags] == [draw.counts(tree).tolist() for tree in range(40)]
    assert min(bag.sum() for bag in bags) == 1


@pytest.mark.parametrize("kind", ["bootstrap", "paste"])
@pytest.mark.parametrize("name", sorted(options(9)))
def test_compiled_and_interpreted_kernels_draw_the_same_bits(kind, name, monkeypatch):
    draw = Draw(kind, 203, 12 if "groups" in name else 60, 3, **options(203)[name], block_bits=2)
    bags = []
    for chosen in (_jit.load_compiled(), _jit.interpreted()):
        monkeypatch.setattr(sampling, "kernels", lambda _, chosen=chosen: chosen)
        bags.append([draw.counts(tree).tobytes() for tree in range(3)])
    assert bags[0] == bags[1]


# --- The distribution ---------------------------------------------------------------------------------------------


def test_counts_are_binomial_and_all_rows_alike_whatever_the_blocks():
    n_rows, n_trees = 50, 4000
    draw = Draw("bootstrap", n_rows, n_rows, 1, block_bits=2)
    bags = np.array([draw.counts(tree) for tree in range(n_trees)])
    assert np.all(bags.sum(axis=1) == n_rows)
    assert chi_square(bags.sum(axis=0), np.full(n_rows, float(n_trees))) > UNLIKELY
    for row in (0, 3, 4, 31, 32, n_rows - 1):  # on either side of borders
        observed = np.bincount(np.minimum(bags[:, row], 4), minlength=5)
        chance = stats.binom.pmf(np.arange(4), n_rows, 1 / n_rows)
        assert chi_square(observed, n_trees * np.append(chance, 1 - chance.sum())) > UNLIKELY
    covariance = np.cov(bags.T)
    for a, b in ((3, 4), (0, 3), (31, 32), (0, 49)):  # of a multinomial, in one block or not
        assert abs(covariance[a, b] + 1 / n_rows) < 4 / math.sqrt(n_trees)


def test_pasted_bags_are_all_subsets_alike_whatever_the_blocks():
    draw = Draw("paste", 7, 3, 0, block_bits=1)
    bags = [tuple(draw.rows(tree).tolist()) for tree in range(14_000)]
    subsets, observed = np.unique(np.array(bags), axis=0, return_counts=True)
    assert len(subsets) == 35
    assert chi_square(observed, np.full(35, 400.0)) > UNLIKELY
    draw = Draw("paste", 7, 3, 0, np.array([1.0, 0, 1, 1, 1, 0, 1]), block_bits=1)
    bags = [tuple(draw.rows(tree).tolist()) for tree in range(4000)]
    subsets, observed = np.unique(np.array(bags), axis=0, return_counts=True)
    assert len(subsets) == 10
    assert not np.isin(subsets, [1, 5]).any()
    assert chi_square(observed, np.full(10, 400.0)) > UNLIKELY


def test_weighted_draws_are_in_proportion_whatever_the_blocks():
    weight = np.array([0.0, 1.0, 2.0, 3.0, 0.5, 0.0, 0.0, 0.0, 10.0, 1e-3])
    draw = Draw("bootstrap", 10, 20, 3, weight, block_bits=1)
    bags = np.array([draw.counts(tree) for tree in range(3000)])
    is_drawn = weight > 0
    assert not bags[:, ~is_drawn].any()
    share = weight / weight.sum()
    assert chi_square(bags.sum(axis=0)[is_drawn], 60_000 * share[is_drawn]) > UNLIKELY
    assert abs(np.cov(bags[:, 3], bags[:, 8])[0, 1] + 20 * share[3] * share[8]) < 0.3


@pytest.mark.parametrize("kind", ["bootstrap", "paste"])
def test_blocks_of_a_large_table_get_their_share(kind):
    n_rows, n_drawn = 3 * 65_536 + 5, 100_000
    draw = Draw(kind, n_rows, n_drawn, 8)
    bags = np.array([np.add.reduceat(draw.counts(tree), [0, 65_536, 131_072, 196_608]) for tree in range(300)])
    assert np.all(bags.sum(axis=1) == n_drawn)
    for k, size in enumerate([65_536, 65_536, 65_536, 5]):
        share = size / n_rows
        law = stats.binom(n_drawn, share) if kind == "bootstrap" else stats.hypergeom(n_rows, size, n_drawn)
        assert abs(bags[:, k].mean() - law.mean()) < 4 * law.std() / math.sqrt(300)
        assert abs(bags[:, k].var() / law.var() - 1) < 4 * math.sqrt(2.6 / 300)
    if kind == "bootstrap":  # counts of single rows, in one bag
        times = np.bincount(np.minimum(draw.counts(0), 4), minlength=5)
        chance = stats.binom.pmf(np.arange(4), n_drawn, 1 / n_rows)
        assert chi_square(times, n_rows * np.append(chance, 1 - chance.sum())) > UNLIKELY


def test_a_range_of_a_table_beyond_memory_is_drawn():
    """A billion rows: 4 GB of counts, of which the middle is asked for."""
    for kind in ("bootstrap", "paste", "poisson"):
        draw = Draw(kind, 10**9, 5 * 10**8, 6)
        counts = draw.counts(0, 5 * 10**8 - 50_000, 5 * 10**8 + 50_000)
        assert abs(counts.mean() - 0.5) < 0.01
        again = draw.counts(0, 5 * 10**8, 5 * 10**8 + 10)
        assert again.tolist() == counts[50_000:50_010].tolist()


# --- Versions -----------------------------------------------------------------------------------------------------


def recorded():
    """What the rule without blocks drew, by "kind, what it was given, rows"."""
    return json.loads((GOLDEN / "counts.json").read_text())


@pytest.mark.parametrize("key", sorted(recorded()))
def test_small_tables_and_old_models_draw_what_they_drew(key):
    kind, name, n_rows = key.split()
    n_rows = int(n_rows)
    for block_bits in (None,) if n_rows > 65_536 else (None, BLOCK_BITS):
        draw = Draw(kind, n_rows, n_rows // 5, 9, **options(n_rows)[name], block_bits=block_bits)
        assert hashlib.sha256(draw.counts(2).tobytes()).hexdigest()[:16] == recorded()[key]


def test_columns_are_drawn_as_they_were():
    """No file says how: a model of more columns than a block keeps its columns."""
    for has_repeats in (False, True):
        spaces = Subspaces(70_000, 1000, 1, has_repeats)
        assert not spaces.draw.has_blocks


def test_a_draw_keeps_its_blocks():
    large, small = (Draw("bootstrap", n, 10, 0) for n in (65_537, 65_536))
    assert large.store()["block_bits"] == BLOCK_BITS
    assert "block_bits" not in small.store()
    for draw in (large, small, Draw("bootstrap", 65_537, 10, 0, block_bits=None)):
        for again in (Draw.restore(draw.store()), pickle.loads(pickle.dumps(draw))):
            assert again.has_blocks == draw.has_blocks
            assert np.array_equal(again.counts(3), draw.counts(3))
    old = {name: part for name, part in large.store().items() if name != "block_bits"}
    assert np.array_equal(Draw.restore(old).counts(3), Draw("bootstrap", 65_537, 10, 0, block_bits=None).counts(3))
    assert not np.array_equal(Draw.restore(old).counts(3), large.counts(3))
    for wrong in (True, 3, 16.0, "16", 10**30):
        with pytest.raises(ValueError, match=r"blocks of 2\*\*16 rows"):
            Draw.restore({**large.store(), "block_bits": wrong})


def golden_rows():
    """The rows of the models in `golden_bags`."""
    i = np.arange(70_000)
    X = np.column_stack([(i * 7919 % 1009) / 1009.0, (i * 104_729 % 997) / 997.0])
    return X, (X[:, 0] + X[:, 1] > 1.0).astype(int)


@pytest.mark.parametrize("name", ["forest", "pasted", "bagging"])
def test_old_files_have_their_old_bags(name):
    model = load_model(GOLDEN / f"{name}.spn")
    said = json.loads((GOLDEN / "said.json").read_text())[name]
    bags = [hashlib.sha256(bag.astype(np.int64)).hexdigest() for bag in model.estimators_samples_]
    assert bags == said["bags"]
    X, y = golden_rows()
    if name != "bagging":  # of rows out of the bags, after a look whether these are the rows of then
        found = model.importance("permutation", X, y).importance
        np.testing.assert_allclose(found, said["importance"], rtol=1e-12)
    model.set_params(warm_start=True, n_estimators=3).fit(X, y)  # the new tree as well
    assert [hashlib.sha256(bag.astype(np.int64)).hexdigest() for bag in model.estimators_samples_][:2] == said["bags"]
    assert [tree.n_rows.tolist() for tree in model.forest_][:2] == said["trees"]
    sizes = [len(np.unique(bag)) for bag in model.estimators_samples_]
    assert [int(tree.n_rows[0]) for tree in model.forest_] == sizes


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=2, max_depth=2, random_state=3),
        BaggingRegressor(CARTRegressor(max_depth=2), n_estimators=2, random_state=3, bootstrap=False, max_samples=0.5),
    ],
)
def test_new_files_say_how_bags_are_drawn(model, tmp_path):
    X, y = golden_rows()
    small = model.fit(X[:1000], y[:1000])
    small.save_model(tmp_path / "small.spn")
    assert b'"version":"1.0"' in (tmp_path / "small.spn").read_bytes()
    model.fit(X, y).save_model(tmp_path / "large.spn")
    data = (tmp_path / "large.spn").read_bytes()
    assert b'"version":"1.3"' in data
    again = load_model(tmp_path / "large.spn")
    for bag, other in zip(model.estimators_samples_, again.estimators_samples_, strict=True):
        assert np.array_equal(bag, other)
    again.save_model(tmp_path / "again.spn")
    assert (tmp_path / "again.spn").read_bytes() == data
    arrays, text = container.read(tmp_path / "large.spn")
    container.write(tmp_path / "older.spn", arrays, {**text, "version": "1.2"})
    with pytest.raises(ValueError, match=r"drawn or hashed by blocks is of version 1\.3"):
        load_model(tmp_path / "older.spn")
