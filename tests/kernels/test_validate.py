"""What is checked of every node of a forest before a kernel believes it: by one pass, and by `Tree.check` in words."""

import itertools
import subprocess
import sys
import textwrap
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import fast
from spinney import _jit
from spinney._node_layout import kind_of_link, missing_of_link, pack_test
from spinney._types import EVERY_BRANCH, MULTIWAY, SUBSET, THRESHOLD
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import Forest, join_trees
from spinney.tree.linear import LinearLeaves
from spinney.tree.structure import Legend, Tree

RNG = np.random.default_rng(0)
N_ROWS = 60
LEVELS = RNG.integers(70, size=N_ROWS).astype(float)  # two words a subset
NUMBERS = np.where(RNG.random(N_ROWS) < 0.2, np.nan, RNG.integers(9, size=N_ROWS))
CLASSES = RNG.integers(3, size=N_ROWS)
KINDS = {"is_categorical": [True, False], "n_levels": [70, 0]}


def forest_of(n_classes, **choices):
    """Five trees of a category and a number with missing values; for classes, most leaves are mixed."""
    target = {"n_classes": n_classes, "criterion": "gini"} if n_classes else {"criterion": "squared_error"}
    y = CLASSES if n_classes else CLASSES + np.arange(N_ROWS) / 7
    trees = [
        fast.grow([np.roll(LEVELS, t), NUMBERS], y, max_depth=4, min_samples_leaf=2, **KINDS, **target, **choices)
        for t in range(5)
    ]
    return join_trees(trees)


def forests():
    weights = (RNG.random(N_ROWS) + 0.1).tolist()
    return {
        "classes": forest_of(3),
        "numbers": forest_of(0),
        "branches for missing values": forest_of(3, missing="branch"),
        "weighted classes": forest_of(3, weights=weights),
        "weighted numbers": forest_of(0, weights=weights),
        "compact": forest_of(3).compact(),
        "single leaves": join_trees([fast.grow([[1.0, 1.0]], [0, 1], n_classes=2, criterion="gini") for _ in "ab"]),
    }


FORESTS = forests()


def test_the_forests_have_everything_to_break():
    for name, forest in FORESTS.items():
        forest.check()
        assert forest.is_compact == (name == "compact")
    kinds = kind_of_link(FORESTS["classes"].hot[:, 1])
    assert {THRESHOLD, SUBSET} <= set(kinds.tolist())
    assert len(FORESTS["classes"].distributions) > 9
    assert 2 in missing_of_link(FORESTS["branches for missing values"].hot[:, 1]).tolist()
    assert FORESTS["weighted numbers"].weight.dtype == np.float64
    assert FORESTS["classes"].weight.dtype == np.uint32


# ------------------------------------------------------------------------------------------------ one pass and words


def has_fault(forest, t):
    try:
        forest.check_tree(t)
    except BrokenTreeError:
        return True
    return False


def fault_in_words(forest):
    """The first tree that is not sound, or -1, tree by tree."""
    return next((t for t in range(len(forest)) if has_fault(forest, t)), -1)


def break_numbers(forest, rng):
    """One entry of an array of numbers changed: to something odd, to another entry, or by a bit."""
    names = ["hot", "n_rows", "weight", "impurity", "distributions"]
    name = rng.choice([name for name in names if getattr(forest, name).size])
    array = getattr(forest, name).copy()
    flat = array.reshape(-1)
    if name == "hot" and rng.random() < 0.5:
        flat = array[:, 0].view(np.float64)  # the arguments of tests, and what leaves say
    at = rng.integers(len(flat))
    odd = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -1.5, 3.0, 1e9, -1e300]
    if flat.dtype.kind == "f":
        odd += [np.nan, np.inf, -np.inf, 5e-324, flat[at] * (1 + 1e-7), flat[at] * (1 + 1e-12), flat[at] + 1]
    match rng.integers(3):
        case 0 if flat.dtype.kind == "f":
            flat[at] = rng.choice(odd)
        case 1:
            flat[at] = flat[rng.integers(len(flat))]
        case _:
            bits = flat.view(f"u{flat.itemsize}")
            bits[at] ^= bits.dtype.type(1 << int(rng.integers(8 * flat.itemsize)))
    return replace(forest, **{name: array})


def break_links(forest, rng):
    """A node gets another test or child, or becomes a leaf or none."""
    hot = forest.hot.copy()
    at = rng.integers(len(hot))
    child, test = int(hot[at, 1]) >> 32, int(hot[at, 1]) & 0xFFFFFFFF
    feature, missing, kind = test >> 4, test >> 2 & 3, test & 3
    match rng.integers(5):
        case 0:
            child = int(rng.choice([0, 1, child - 1, child + 1, len(hot), 2**31, 2**32 - 1, rng.integers(len(hot))]))
        case 1:
            feature = int(rng.integers(4))
        case 2:
            missing = int(rng.integers(4))
        case 3:
            kind = int(rng.integers(4))
        case _:
            child, feature, missing, kind = (int(x) for x in rng.integers([len(hot), 4, 4, 4]))
    hot[at, 1] = max(child, 0) << 32 | feature << 4 | missing << 2 | kind
    return replace(forest, hot=hot)


def break_kinds(forest, rng):
    """Another number of levels or classes, or other parts of the arrays."""
    match rng.integers(3):
        case 0:
            n_levels = forest.n_levels.copy()
            n_levels[rng.integers(len(n_levels))] = rng.choice([0, 1, 64, 65, 128, 129, 2**31 - 1])
            return replace(forest, n_levels=n_levels)
        case 1 if forest.n_classes:
            return replace(forest, n_classes=2, distributions=np.ascontiguousarray(forest.distributions[:, :2]))
        case _:
            name = rng.choice(["first_node", "first_word", "first_mixed"])
            first = getattr(forest, name).copy()
            first[rng.integers(1, len(first))] += rng.choice([-1, 1])
            return replace(forest, **{name: first})


def broken_forests(n, seed):
    """Forests with one to three faults that no check of types and lengths finds."""
    rng = np.random.default_rng(seed)
    names = list(FORESTS)
    while n > 0:
        forest = FORESTS[names[rng.integers(len(names))]]
        with np.errstate(all="ignore"):
            for _ in range(rng.choice([1, 1, 1, 2, 3])):
                forest = rng.choice([break_numbers, break_links, break_kinds], p=[0.5, 0.4, 0.1])(forest, rng)
        try:
            forest.check_types()
            forest.check_lengths()
        except BrokenTreeError:
            continue
        n -= 1
        yield forest


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(3)
def test_one_pass_agrees_with_the_words(seed):
    n_sound = 0
    for forest in broken_forests(400, seed):
        expected = fault_in_words(forest)
        assert forest.find_fault(fast.compiled()) == expected
        n_sound += expected < 0
    assert 20 < n_sound < 380  # else little was shown: bits of subsets are free, and small changes of sums


def test_one_pass_is_the_same_interpreted():
    for forest in broken_forests(200, seed=99):
        assert forest.find_fault(_jit.interpreted()) == forest.find_fault(fast.compiled())


def test_every_byte_of_a_forest_may_be_anything():
    """Neither way ever fails otherwise than by BrokenTreeError, or warns."""
    rng = np.random.default_rng(5)
    forest = FORESTS["branches for missing values"]
    for _ in range(500):
        arrays = {
            name: rng.integers(256, size=getattr(forest, name).nbytes, dtype=np.uint8)
            .view(getattr(forest, name).dtype)
            .reshape(getattr(forest, name).shape)
            for name in rng.choice(["hot", "weight", "impurity", "distributions", "n_levels"], size=2)
        }
        if "n_levels" in arrays:
            arrays["n_levels"] = (arrays["n_levels"] & 0x7FFFFFFF) >> rng.integers(32)
        wild = replace(forest, **arrays)
        assert wild.find_fault(fast.compiled()) == fault_in_words(wild)


def test_the_message_names_tree_and_node():
    forest = FORESTS["classes"]
    hot = forest.hot.copy()
    at = int(forest.first_node[3]) + 2
    hot[at, 1] = pack_test(5, 0, THRESHOLD)
    with pytest.raises(BrokenTreeError, match=r"^tree 3: node 2: feature beyond the 2"):
        replace(forest, hot=hot).check()


def test_a_leaf_that_leads_away_is_refused():
    """A walk would never end: to `Tree` a node without a test is a leaf, to prediction it leads to the root."""
    for forest in FORESTS.values():
        for leaf in np.flatnonzero(forest.is_leaf):
            for link in (0, 1 << 32, int(leaf) << 32):
                hot = forest.hot.copy()
                hot[leaf, 1] = link
                with pytest.raises(BrokenTreeError):
                    replace(forest, hot=hot).check()


def test_small_forests_are_checked_without_numba():
    code = """
        import pickle, sys
        import numpy as np
        from spinney.tree.forest import join_trees
        from spinney.tree.structure import Tree

        none = np.zeros(0)
        leaf = Tree(
            test=np.zeros(1, np.uint32), first_child=np.zeros(1, np.int32), threshold=np.ones(1),
            subsets=none.astype(np.uint64), n_rows=np.ones(1, np.uint32), weight=np.ones(1), impurity=np.zeros(1),
            impurity_exponent=0, distributions=np.zeros((0, 0)), n_classes=0, n_levels=np.zeros(1, np.int32),
        )
        pickle.loads(pickle.dumps(join_trees([leaf] * 9)))
        print("numba" in sys.modules)
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "False"


# -------------------------------------------------------------------------------------------------------- parts


def one_leaf(**changes):
    """A tree of one leaf for numbers."""
    fields = {
        "test": np.zeros(1, np.uint32),
        "first_child": np.zeros(1, np.int32),
        "threshold": np.ones(1),
        "subsets": np.zeros(0, np.uint64),
        "n_rows": np.ones(1, np.uint32),
        "weight": np.ones(1),
        "impurity": np.zeros(1),
        "impurity_exponent": 0,
        "distributions": np.zeros((0, 0)),
        "n_classes": 0,
        "n_levels": np.zeros(1, np.int32),
    }
    return Tree(**(fields | changes))


def parted(name, values):
    forest = FORESTS["classes"]
    return replace(forest, **{name: np.array(values, np.int64)})


def test_parts_that_only_seem_to_ascend_are_refused():
    """Differences of these overflow and look positive."""
    n_nodes = FORESTS["classes"].n_nodes
    with pytest.raises(BrokenTreeError, match="first_node does not ascend"):
        parted("first_node", [0, 2**63 - 1, -(2**63), -9, -1, n_nodes]).check()
    n_words = len(FORESTS["classes"].subsets)
    with pytest.raises(BrokenTreeError, match="first_word does not ascend"):
        parted("first_word", [0, 2**63 - 1, -(2**63), -9, -1, n_words]).check()
    nothing = np.zeros(0)
    linear = LinearLeaves(np.array([2**63 - 1, 0]), nothing.astype(np.int32), nothing, nothing)
    with pytest.raises(BrokenTreeError, match="end before they begin"):
        one_leaf(linear=linear).check()


def test_some_cold_arrays_are_not_dropped_without_the_others():
    forest = FORESTS["classes"]
    nothing = np.zeros(0, np.uint32)
    for changes in ({"n_rows": nothing}, {"weight": nothing}, {"impurity": np.zeros(0)}):
        with pytest.raises(BrokenTreeError, match="one entry a node, or none"):
            replace(forest, **changes).check()
    seven = np.ones(7, np.uint32)
    with pytest.raises(BrokenTreeError, match="one entry a node, or none"):
        replace(forest, n_rows=seven, weight=seven, impurity=np.zeros(7)).check()


def test_distributions_without_classes_are_refused():
    """They take no bytes, and their shares would be as many numbers as the shape says."""
    forest = FORESTS["numbers"]
    first = np.array([0, 0, 0, 0, 0, 2**40])
    with pytest.raises(BrokenTreeError, match="0 classes do not fit"):
        replace(forest, distributions=np.zeros((2**40, 0)), first_mixed=first).check()
    with pytest.raises(BrokenTreeError, match="for 0 classes"):
        one_leaf(distributions=np.zeros((2**40, 0))).check()


def test_a_distribution_of_zeros_is_refused():
    """It would be divided by its sum."""
    forest = FORESTS["compact"]
    for row in ([0.0, 0.0, 0.0], [1e308, 1e308, 1e308], [1.0, -1.0, 1.0], [np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0]):
        distributions = forest.distributions.copy()
        distributions[4] = row
        with pytest.raises(BrokenTreeError, match="finite and not negative, and not all zero"):
            replace(forest, distributions=distributions).check()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_classes": 1 << 40},
        {"n_classes": -1},
        {"n_classes": 1.0},
        {"impurity_exponent": 10**400},
        {"impurity_exponent": -(10**9)},
        {"n_levels": np.array([-1], np.int32)},
        {"legend": "x0"},
        {"legend": Legend((), (), None, ())},
        {"legend": Legend(("x",), (("a", "b"),), None, (False,))},
        {"legend": Legend(("x",), ("",), None, (False,))},
        {"legend": Legend(["x"], (None,), None, (False,))},
        {"legend": Legend(("x",), (None,), ["no", "yes"], (False,))},
    ],
    ids=repr,
)
def test_what_stands_beside_the_arrays_is_checked(changes):
    tree = one_leaf()
    tree.check()
    forest = join_trees([tree])
    forest.check()
    with pytest.raises(BrokenTreeError):
        one_leaf(**changes).check()
    with pytest.raises(BrokenTreeError):
        replace(forest, **changes).check()


def test_a_legend_has_a_name_for_each_class():
    legend = Legend(("x",), (None,), ("no", "yes"), (False,))
    one_leaf(n_classes=2, distributions=np.zeros((0, 2)), legend=legend).check()
    with pytest.raises(BrokenTreeError, match="does not name the 3 classes"):
        one_leaf(n_classes=3, distributions=np.zeros((0, 3)), legend=legend).check()


# ------------------------------------------------------------------------------- arrays made to take time or memory


def chain(n_inner, kind=THRESHOLD, **changes):
    """A tree as deep as its inner nodes are many: children of node 2k are 2k + 1, a leaf, and 2k + 2."""
    n_nodes = 2 * n_inner + 1
    is_inner = (np.arange(n_nodes) % 2 == 0) & (np.arange(n_nodes) < n_nodes - 1)
    n_rows = np.where(np.arange(n_nodes) % 2 == 1, 1, n_inner + 1 - np.arange(n_nodes) // 2).astype(np.uint32)
    fields = {
        "test": np.where(is_inner, kind, 0).astype(np.uint32),
        "first_child": np.where(is_inner, np.arange(n_nodes) + 1, 0).astype(np.int32),
        "threshold": np.zeros(n_nodes),
        "n_rows": n_rows,
        "weight": n_rows.astype(np.float64),
        "impurity": np.zeros(n_nodes),
    }
    return one_leaf(**(fields | changes))


HOSTILE = {
    "more levels than nodes": chain(50_000, MULTIWAY, n_levels=np.array([2**31 - 1], np.int32)),
    "levels that overflow with the branch of missing values": chain(
        1, MULTIWAY, n_levels=np.array([2**31 - 1], np.int32), threshold=np.full(3, 2.0**31 - 1)
    ),
    "every node claims half of all": chain(
        50_000,
        MULTIWAY,
        n_levels=np.array([50_000], np.int32),
        test=np.where(np.arange(100_001) < 50_000, MULTIWAY, 0).astype(np.uint32),
        first_child=np.where(np.arange(100_001) < 50_000, np.arange(100_001) + 1, 0).astype(np.int32),
    ),
    "a bitset of all levels": chain(9, SUBSET, n_levels=np.array([2**31 - 1], np.int32)),
    "a huge place of a bitset": chain(1, SUBSET, n_levels=np.array([9], np.int32), threshold=np.full(3, 1e300)),
    "a missing branch that is not a number": chain(
        1, MULTIWAY, n_levels=np.array([2], np.int32), threshold=np.full(3, np.nan)
    ),
    "an infinite missing branch": chain(1, MULTIWAY, n_levels=np.array([2], np.int32), threshold=np.full(3, np.inf)),
    "weights that overflow": chain(9, weight=np.full(19, 1e308)),
    "the smallest weights": chain(9, weight=np.full(19, 5e-324)),
    "impurities that overflow": chain(9, impurity=np.where(np.arange(19) == 18, 1e308, 0.0)),
    "every branch of a subset": chain(
        1, pack_test(0, EVERY_BRANCH, SUBSET), n_levels=np.array([9], np.int32), subsets=np.zeros(1, np.uint64)
    ),
    "many classes and a negative one": one_leaf(
        n_classes=2**31 - 1, distributions=np.zeros((0, 2**31 - 1)), threshold=np.array([-(2.0**62)])
    ),
    "a class beyond them": one_leaf(n_classes=2, distributions=np.zeros((0, 2)), threshold=np.array([1e300])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused_at_once(name):
    tree = HOSTILE[name]
    tracemalloc.start()
    try:
        with pytest.raises(BrokenTreeError):
            tree.check()
        assert tracemalloc.get_traced_memory()[1] < 200 * tree.n_nodes + 50_000
    finally:
        tracemalloc.stop()


def test_a_chain_is_sound():
    """Nothing goes through a tree depth by depth before it is known to be one."""
    tree = chain(100_000)
    tree.check()
    assert tree.depth == 100_000
    np.testing.assert_array_equal(tree.depths, (np.arange(tree.n_nodes) + 1) // 2)
    join_trees([tree]).check()


def test_depths_and_levels_are_those_of_the_paths():
    tree = FORESTS["branches for missing values"].take(2)
    for node in range(tree.n_nodes):
        path = list(itertools.takewhile(lambda k: k >= 0, iterate(tree.parent, node)))
        assert len(path) - 1 == tree.depths[node]
        assert node in tree.nodes_by_depth[len(path) - 1]
    assert sum(map(len, tree.nodes_by_depth)) == tree.n_nodes


def iterate(step, k):
    while True:
        yield k
        k = int(step[k])


def test_an_array_in_any_layout_is_checked():
    """A view that is not contiguous, or not writable, is the same forest."""
    forest = FORESTS["classes"]
    assert isinstance(forest, Forest)
    turned = replace(forest, hot=np.asfortranarray(forest.hot), weight=forest.weight.repeat(2)[::2])
    turned.check()
    frozen = replace(forest, hot=forest.hot.copy())
    frozen.hot.flags.writeable = False
    frozen.check()
