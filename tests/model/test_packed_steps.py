"""One row through a forest of steps: to the bit what the array of links says, and what the kernels for many rows do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance_forests import Chance
from spinney import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor, _jit
from spinney._types import AT_COLUMNS, HEAD_SIZE, N_CELLS, TREES, WIDTH
from spinney.model import packed_steps
from spinney.model.boosted_scores import add_rounds
from spinney.model.packed_forest import pack_links, sum_shares, sum_values
from spinney.model.packed_steps import lay_columns, pack_steps, pays_for_ranks
from spinney.tree.bitvectors import DistinctThresholds, distinct_thresholds
from spinney.tree.forest import join_trees
from spinney.tree.predict import add_votes, find_all_leaves
from spinney.tree.structure import Tree

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan, 1.0, 1e300, -1e-300]


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def doors(request):
    """The kernels for an array of steps and for one of links."""
    k = _jit.load_compiled() if request.param == "compiled" else _jit.interpreted()
    return k.predict.ranked_row.add_ranked, k.predict.one_row.add_up


def add_ranked(doors, packed, values):
    """One kernel call per row: the sums, shape (n_rows, width)."""
    out = np.full((len(values), int(packed[N_CELLS])), np.nan)
    for row, cells in zip(values, out, strict=True):
        assert doors[0](packed, row, cells)
    return np.ascontiguousarray(out[:, : int(packed[WIDTH])])


def add_linked(doors, packed, values):
    out = np.full((len(values), int(packed[WIDTH])), np.nan)
    for row, cells in zip(values, out, strict=True):
        assert doors[1](packed, row, cells)
    return out


def with_cuts(tree, leaves, inner):
    """The tree with other numbers at its leaves and inner nodes."""
    fields = {name: getattr(tree, name) for name in tree.__dataclass_fields__}
    return Tree(**{**fields, "threshold": np.where(tree.is_leaf, leaves, inner)})


seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


@given(seeds, st.integers(1, 2 * TREES + 1), dtypes)
def test_leaves_are_those_of_the_walk_of_many_rows(doors, seed, n_trees, dtype):
    chance = Chance(seed, 0, n_sides=2)
    trees = [chance.tree() for _ in range(n_trees)]
    forest = join_trees([with_cuts(tree, np.arange(tree.n_nodes), tree.threshold) for tree in trees])
    values = chance.rows(20, dtype)
    packed = pack_steps(sum_values(forest, n_trees, n_trees, np.zeros(n_trees)))
    np.testing.assert_array_equal(add_ranked(doors, packed, values), find_all_leaves(forest, values))


@given(seeds, st.integers(1, TREES + 1), st.integers(1, 4), dtypes)
def test_sums_of_rounds_have_the_same_bits(doors, seed, n_rounds, n_raw, dtype):
    chance = Chance(seed, 0, n_sides=2)
    forest, values = chance.forest(n_rounds * n_raw), chance.rows(40, dtype)
    n_used = chance.random.randint(1, n_rounds)
    start = np.array([chance.random.choice([-0.0, 0.3, 1e10]) for _ in range(n_raw)])
    raw = np.repeat(start[:, None], len(values), axis=1)
    add_rounds(forest, range(n_used), values, 0, len(values), raw)
    packed = pack_steps(sum_values(forest, n_raw, n_used * n_raw, start))
    assert add_ranked(doors, packed, values).T.tobytes() == raw.tobytes()


@given(seeds, st.integers(1, 2 * TREES + 1), st.integers(0, 5), dtypes)
def test_means_of_votes_have_the_same_bits(doors, seed, n_trees, n_classes, dtype):
    chance = Chance(seed, n_classes, n_sides=2)
    forest, values = chance.forest(n_trees), chance.rows(10, dtype)
    n_used = chance.random.randint(1, n_trees)
    votes = np.zeros((len(values), max(n_classes, 1)))
    add_votes(forest.head(n_used), values, 0, len(values), votes)
    sums = sum_shares(forest, n_used, 7.0) if n_classes else sum_values(forest, 1, n_used, np.zeros(1), 7.0)
    assert add_ranked(doors, pack_steps(sums), values).tobytes() == (votes / 7.0).tobytes()
    assert add_linked(doors, pack_links(sums), values).tobytes() == (votes / 7.0).tobytes()


@given(seeds, dtypes)
def test_extreme_values_at_and_beside_extreme_thresholds(doors, seed, dtype):
    """Thresholds so far apart, or so close, that segments of equal width cannot part them; infinite ones."""
    rng = np.random.default_rng(seed)
    cuts = np.array([x for x in EXTREMES if not np.isnan(x)])
    some = rng.choice(cuts, rng.integers(1, len(cuts) + 1))
    trees = [Chance(seed + t, 0, n_sides=2).tree() for t in range(12)]
    forest = join_trees([with_cuts(tree, tree.threshold, rng.choice(some, tree.n_nodes)) for tree in trees])
    beside = np.concatenate([EXTREMES, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)])
    with np.errstate(over="ignore"):
        values = rng.choice(beside, (30, forest.n_features)).astype(dtype)
    sums = sum_values(forest, 12, 12, np.zeros(12))
    found = add_ranked(doors, pack_steps(sums), values)
    assert found.tobytes() == add_linked(doors, pack_links(sums), values).tobytes()


@given(seeds, st.sampled_from(["even", "skewed", "close", "outliers"]))
def test_a_rank_is_the_count_of_thresholds_below(seed, shape):
    rng = np.random.default_rng(seed)
    cuts = {
        "even": lambda n: rng.normal(size=n),
        "skewed": lambda n: np.exp(rng.normal(size=n) * 60.0),
        "close": lambda n: 1.0 + rng.integers(0, 2 * n, n) * 2.0**-52,
        "outliers": lambda n: np.append(rng.normal(size=n - 1), 1e305),
    }[shape](int(rng.integers(1, 200)))
    cuts = np.unique(cuts)
    nothing = np.zeros(0, np.int64)
    columns = lay_columns(DistinctThresholds(np.zeros(1, np.int64), np.array([len(cuts)]), cuts, nothing, nothing))
    words = columns.words.reshape(-1).copy()
    n_words = len(words) + len(columns.cuts)
    words[1] += np.uint64(len(words))
    words[5] += np.uint64(2 * n_words)
    packed = np.zeros(n_words + len(columns.guides), np.uint64)
    packed[: len(words)] = words
    packed[len(words) : n_words] = columns.cuts.view(np.uint64)
    packed.view(np.uint32)[2 * n_words : 2 * n_words + len(columns.guides)] = columns.guides
    rank_value = _jit.interpreted().predict.ranked_row.rank_value
    for value in [*cuts, *np.nextafter(cuts, np.inf), *np.nextafter(cuts, -np.inf), *EXTREMES]:
        with np.errstate(all="ignore"):
            rank = rank_value(value, np.uint64(0), packed, packed.view(np.float64), packed.view(np.uint32))
        assert rank == np.count_nonzero(cuts < value)


@pytest.mark.parametrize("has_missing", [False, True])
def test_predictors_of_grown_forests(has_missing):
    """Forests large enough for steps: every row as in a table, of both types."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    if has_missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    y = np.where(np.isnan(y), 3.0, y)
    classes = np.digitize(y, [-0.5, 0.5])
    for model, target, answer in (
        (RandomForestClassifier(40, random_state=0), classes, "predict_proba"),
        (RandomForestRegressor(40, random_state=0), y, "predict"),
        (GradientBoostingRegressor(n_estimators=40, random_state=0), y, "predict"),
    ):
        predictor = model.fit(X, target).predictor()
        assert predictor._one_row.add_up is _jit.load_compiled().predict.ranked_row.add_ranked
        for dtype in (np.float32, np.float64):
            values = X[:50].astype(dtype)
            one_by_one = np.array([predictor(row) for row in values])
            assert one_by_one.tobytes() == getattr(model, answer)(values).tobytes()


def test_equal_pairs_of_leaves_share_their_steps():
    """Of two classes there are four pairs of pure leaves, however many nodes end in them."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(500, 4)), rng.integers(0, 2, 500)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y).forest_
    n_pairs = 0
    for tree in forest:
        child = tree.first_child[~tree.is_leaf]
        n_pairs += np.count_nonzero(tree.is_leaf[child] & tree.is_leaf[child + 1])
    sums = sum_shares(forest, 10)
    packed = pack_steps(sums)
    found = distinct_thresholds(forest, np.dtype(np.float64))
    columns = lay_columns(found)
    before = int(packed[AT_COLUMNS]) + columns.words.size + len(columns.cuts) + -(-len(columns.guides) // 2)
    assert len(forest.distributions) == 0  # no leaf is mixed
    assert len(packed) - before - 2 * 2 - 1 <= forest.n_nodes - 2 * n_pairs + 2 * 4
    assert n_pairs > forest.n_nodes // 10


def test_what_pays_for_ranks(monkeypatch):
    forest = Chance(0, 0, n_sides=2).forest(40)
    assert pays_for_ranks(sum_values(forest, 1, 40, np.zeros(1)))
    assert not pays_for_ranks(sum_values(forest, 1, TREES - 1, np.zeros(1)))
    for other in (Chance(3, 0, has_subsets=True, n_sides=2), Chance(3, 0, n_sides=3)):
        assert not pays_for_ranks(sum_values(other.forest(40), 1, 40, np.zeros(1)))
    monkeypatch.setattr(packed_steps, "COLUMN_STEPS", 1000)
    assert not pays_for_ranks(sum_values(forest, 1, 40, np.zeros(1)))


def test_a_forest_of_too_many_ranks_has_links(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = RandomForestRegressor(30, random_state=0).fit(X, X[:, 0])
    monkeypatch.setattr(packed_steps, "most_held", lambda _: 10)
    predictor = model.predictor()
    assert predictor._one_row.add_up is _jit.load_compiled().predict.one_row.add_up
    assert [predictor(row) for row in X[:10]] == model.predict(X[:10]).tolist()


def test_a_forest_too_large_for_the_places_of_steps(monkeypatch):
    monkeypatch.setattr(packed_steps, "MOST_WORDS", 10)
    assert pack_steps(sum_values(Chance(0, 0, n_sides=2).forest(2), 1, 2, np.zeros(1))) is None


def test_rows_and_cells_of_another_number_are_refused(doors):
    packed = pack_steps(sum_shares(Chance(0, 3, n_sides=2).forest(3), 3))
    n_cells = int(packed[N_CELLS])
    for n_features, n_out in ((4, n_cells), (6, n_cells), (5, n_cells - 1), (5, n_cells + 1), (0, n_cells), (5, 0)):
        out = np.full(n_out, 7.0)
        assert not doors[0](packed, np.zeros(n_features), out)
        assert np.all(out == 7.0)
    assert doors[0](packed, np.zeros(5), np.zeros(n_cells))


def test_a_walk_in_a_circle_ends(doors):
    """A root and its child that lead to each other: no validator has seen them, and the kernel must come back."""
    forest = Chance(4, 0, n_sides=2).forest(9)
    packed = pack_steps(sum_values(forest, 1, 9, np.zeros(1))).copy()
    root = int(packed[HEAD_SIZE + 1 + int(np.argmax(forest.n_leaves))])
    low = (1 << 32) - 1
    for node, child in ((root, root + 1), (root + 1, root)):
        packed[node] = (child << 32) | (int(packed[node]) & low)
    packed.flags.writeable = False
    assert add_ranked(doors, packed, np.zeros((1, 5))).shape == (1, 1)
