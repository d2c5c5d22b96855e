"""One row through a forest in one array: against a plain walk, and to the bit against the kernels for many rows."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chance_forests import N_LEVELS, Chance
from hand_trees import packed as pack_test
from spinney import RandomForestClassifier, _jit
from spinney._types import HEAD_SIZE, LANES, THRESHOLD
from spinney.model import packed_forest as packing
from spinney.model.boosted_scores import add_rounds
from spinney.model.packed_forest import pack_links, sum_shares, sum_values
from spinney.tree.forest import join_trees
from spinney.tree.predict import add_votes, find_all_leaves
from spinney.tree.structure import Tree


def pack_values(forest, n_raw, n_trees, start):
    return pack_links(sum_values(forest, n_raw, n_trees, start))


def pack_shares(forest, n_trees):
    return pack_links(sum_shares(forest, n_trees))


def plain_leaf(tree, row):
    """Walk down a tree by the words of its documentation."""
    node = 0
    while not tree.is_leaf[node]:
        value = float(row[tree.feature[node]])
        if np.isnan(value):
            branch = tree.missing_branch[node]
        elif tree.kind[node] == THRESHOLD:
            branch = 0 if value <= tree.threshold[node] else 1
        else:
            branch = 0 if tree.subset(node)[int(value)] else 1
        node = int(tree.first_child[node] + branch)
    return node


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def add_up(request):
    """One kernel call per row: what it writes, shape (n_rows, width)."""
    k = _jit.load_compiled() if request.param == "compiled" else _jit.interpreted()

    def run(packed, values):
        width = int(packed[1])
        out = np.full((len(values), width), np.nan)
        for row, answer in zip(values, out, strict=True):
            assert k.predict.one_row.add_up(packed, row, answer)
        return out

    return run


seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])


@given(seeds, st.integers(1, 2 * LANES + 1), st.booleans(), dtypes)
@example(0, 2 * LANES, True, np.float64)
def test_leaves_are_those_of_a_plain_walk(add_up, seed, n_trees, has_subsets, dtype):
    chance = Chance(seed, 0, has_subsets=has_subsets)
    trees = [chance.tree() for _ in range(n_trees)]
    values = chance.rows(20, dtype)
    numbered = [
        Tree(**{**vars_of(tree), "threshold": np.where(tree.is_leaf, np.arange(tree.n_nodes), tree.threshold)})
        for tree in trees
    ]
    forest = join_trees(numbered)
    found = add_up(pack_values(forest, n_trees, n_trees, np.zeros(n_trees)), values)
    assert found.tolist() == [[plain_leaf(tree, row) for tree in trees] for row in values]
    np.testing.assert_array_equal(found, find_all_leaves(forest, values))


def vars_of(tree):
    return {name: getattr(tree, name) for name in tree.__dataclass_fields__}


@given(seeds, st.integers(1, 2 * LANES + 1), st.integers(1, 4), st.booleans(), dtypes)
def test_sums_of_rounds_have_the_same_bits(add_up, seed, n_rounds, n_raw, has_subsets, dtype):
    chance = Chance(seed, 0, has_subsets=has_subsets)
    forest = chance.forest(n_rounds * n_raw)
    values = chance.rows(40, dtype)  # enough for words of bits
    n_used = chance.random.randint(1, n_rounds)
    start = np.array([chance.random.choice([-0.0, 0.3, 1e10]) for _ in range(n_raw)])
    raw = np.repeat(start[:, None], len(values), axis=1)
    add_rounds(forest, range(n_used), values, 0, len(values), raw)
    found = add_up(pack_values(forest, n_raw, n_used * n_raw, start), values)
    assert found.T.tobytes() == raw.tobytes()


@given(seeds, st.integers(1, 2 * LANES + 1), st.integers(0, 5), st.booleans(), dtypes)
@example(0, LANES, 1, False, np.float32)
def test_votes_have_the_same_bits(add_up, seed, n_trees, n_classes, has_subsets, dtype):
    chance = Chance(seed, n_classes, has_subsets=has_subsets)
    forest = chance.forest(n_trees)
    values = chance.rows(10, dtype)
    n_used = chance.random.randint(1, n_trees)
    votes = np.zeros((len(values), max(n_classes, 1)))
    add_votes(forest.head(n_used), values, 0, len(values), votes)
    packed = pack_shares(forest, n_used) if n_classes else pack_values(forest, 1, n_used, np.zeros(1))
    assert add_up(packed, values).tobytes() == votes.tobytes()


def test_a_grown_forest_of_many_classes(add_up):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = RandomForestClassifier(n_estimators=30, max_leaf_nodes=20, random_state=0).fit(X, rng.integers(0, 12, 400))
    votes = np.zeros((20, 12))
    add_votes(model.forest_, X, 0, 20, votes)
    assert add_up(pack_shares(model.forest_, 30), X[:20]).tobytes() == votes.tobytes()


def test_levels_that_no_tree_knows_are_missing(add_up):
    chance = Chance(3, 0, has_subsets=True)
    forest = chance.forest(30)
    packed = pack_values(forest, 1, 30, np.zeros(1))
    row = chance.rows(1, np.float64)
    for feature in (2, 3, 4):
        row[0, feature] = np.nan
        lost = add_up(packed, row)
        for value in (-1.0, -0.5, N_LEVELS[feature], N_LEVELS[feature] + 0.5, 1e6, 1e300, np.inf, -np.inf):
            row[0, feature] = value
            assert add_up(packed, row).tobytes() == lost.tobytes()


def test_rows_and_answers_of_another_width_are_refused():
    forest = Chance(0, 3).forest(3)
    packed = pack_shares(forest, 3)
    for k in (_jit.load_compiled(), _jit.interpreted()):
        for n_features, width in ((4, 3), (6, 3), (5, 2), (5, 4), (0, 3), (5, 0)):
            out = np.full(width, 7.0)
            assert not k.predict.one_row.add_up(packed, np.zeros(n_features), out)
            assert np.all(out == 7.0)
        assert k.predict.one_row.add_up(packed, np.zeros(5), np.zeros(3))


def test_the_array_is_read_only_and_nothing_else_is_kept():
    forest = Chance(1, 0, has_subsets=True).forest(5)
    packed = pack_values(forest, 1, 5, np.zeros(1))
    assert packed.dtype == np.uint64
    assert packed.flags.c_contiguous
    assert not packed.flags.writeable
    assert len(packed) <= HEAD_SIZE + 1 + LANES + 2 * forest.n_nodes + len(forest.subsets) + 4


def test_a_walk_in_a_circle_ends(add_up):
    """A root and its child that lead to each other: no validator has seen them, and the kernel must come back."""
    forest = Chance(4, 0).forest(9)
    packed = pack_values(forest, 1, 9, np.zeros(1)).copy()
    largest = int(np.argmax(forest.n_leaves))
    assert forest.n_leaves[largest] > 1
    root = int(packed[HEAD_SIZE + 1 + largest])
    for node, child in ((root, root + 2), (root + 2, root)):
        packed[node] = np.float64(np.inf).view(np.uint64)
        packed[node + 1] = (child << 32) | pack_test(0, 0, THRESHOLD)
    packed.flags.writeable = False
    assert add_up(packed, np.zeros((1, 5))).shape == (1, 1)


def test_a_forest_beyond_32_gigabytes_is_refused(monkeypatch):
    monkeypatch.setattr(packing, "MOST_WORDS", 10)
    with pytest.raises(ValueError, match="too large for one array"):
        pack_values(Chance(0, 0).forest(2), 1, 2, np.zeros(1))
