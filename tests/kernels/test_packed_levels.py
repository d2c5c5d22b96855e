"""Subsets of features with many levels: packed and read they are what they were, and nothing damaged is believed."""

import math
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fast
import naive
import plain_reader
import spinney
import strategies
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, _jit, load_model
from spinney._types import PLAIN_LEVELS, SUBSET
from spinney.model.container import BrokenFileError
from spinney.model.state import has_packed
from spinney.tree.broken import BrokenTreeError
from spinney.tree.subset_words import (
    HEAD_WORDS,
    PACKED,
    any_packed,
    lie_inside,
    pack_bits,
    pack_levels,
    read_levels,
    subset_sizes,
)

MANY = [129, 192, 193, 4000, 4096, 4097, 65_535]
ASKED = [1, 63, 64, 65, 128, 129, 4000]


@st.composite
def subsets(draw):
    """Levels of branch 0: few of many, or all but few, or any; and whether the others are told apart by a bit."""
    n_levels = draw(st.sampled_from(MANY))
    others_first = draw(st.booleans())
    listed = np.zeros(n_levels, np.bool_)
    near = st.sampled_from([0, 63, 64, n_levels - 1, n_levels // 2])
    listed[draw(st.lists(st.one_of(near, st.integers(0, n_levels - 1)), max_size=20))] = True
    if draw(st.booleans()):
        listed |= np.random.default_rng(draw(st.integers(0, 9))).random(n_levels) < 0.5
    return listed ^ others_first, others_first


# ----------------------------------------------------------------------------------------- words


@given(subsets(), st.lists(st.integers(0, 2**64 - 1), max_size=3))
def test_what_is_packed_is_read_again(case, before):
    is_first, others_first = case
    n_levels = len(is_first)
    packed = pack_levels(is_first, others_first=others_first)
    words = np.concatenate([np.array(before, np.uint64), packed])
    place = len(before) + PACKED
    assert np.array_equal(read_levels(words, place, n_levels), is_first)
    takes_first = _jit.interpreted().common.branch.takes_first
    asked = {0, n_levels - 1, *np.flatnonzero(is_first != others_first)[:30].tolist(), *range(0, n_levels, 977)}
    for level in asked:
        assert takes_first(words, place, level) == is_first[level]
    arguments, levels = np.array([place]), np.array([n_levels], np.int32)
    assert subset_sizes(words, arguments, levels).tolist() == [len(packed)]
    held = np.flatnonzero(is_first != others_first) // 64
    size = max(-(-n_levels // 4096), 1)
    size = 1 << (size - 1).bit_length()
    assert len(packed) == HEAD_WORDS + size * len(np.unique(held // size))


@given(subsets())
def test_both_kinds_stand_in_one_array(case):
    is_first, others_first = case
    n_levels = len(is_first)
    parts = [pack_bits(is_first), pack_levels(is_first, others_first=others_first), pack_bits(~is_first)]
    first = np.cumsum([0, *map(len, parts)])[:3].astype(np.float64)
    arguments, levels = first + np.array([0.0, PACKED, 0.0]), np.full(3, n_levels, np.int32)
    words = np.concatenate(parts)
    assert subset_sizes(words, arguments, levels).tolist() == [*map(len, parts)]
    assert lie_inside(words, arguments, levels).all()
    for argument, expected in zip(arguments, (is_first, is_first, ~is_first), strict=True):
        assert np.array_equal(read_levels(words, argument, n_levels), expected)


@given(subsets(), st.data())
def test_a_damaged_subset_is_refused(case, data):
    is_first, others_first = case
    n_levels = len(is_first)
    words = pack_levels(is_first, others_first=others_first)
    levels = np.array([n_levels], np.int32)

    def is_sound(words=words, argument=PACKED, levels=levels):
        return bool(lie_inside(words, np.array([argument]), levels)[0])

    assert is_sound()
    assert not is_sound(words[:-1])
    assert not is_sound(levels=np.array([PLAIN_LEVELS], np.int32))
    for argument in (-0.5, 0.25, len(words) + PACKED, 2.0**50 + PACKED, 2.0**60, math.nan, math.inf, -math.inf):
        assert not is_sound(argument=argument)
    for bits in (2, 4, 1 << data.draw(st.integers(3, 63))):
        assert not is_sound(np.concatenate([words[:1] ^ np.uint64(bits), words[1:], words, words]))
    size = 1 << (int(words[0]) >> 1)
    n_blocks = -(-n_levels // (64 * size))
    if n_blocks < 64:
        beyond = np.uint64(1) << np.uint64(data.draw(st.integers(n_blocks, 63)))
        longer = np.concatenate([words, np.zeros(64 * size, np.uint64)])
        longer[1] |= beyond
        assert not is_sound(longer)


# ----------------------------------------------------------------------------------------- trees


@contextmanager
def packing_all():
    """Interpreted kernels that pack every subset, be there ever so few levels, and of every tree."""
    kernels = _jit.interpreted()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("common.packed_levels", "tree.settled_levels", "tree.drawn_tests"):
            patch.setattr(sys.modules[f"{_jit.twin.TWIN}.{name}"], "PLAIN_LEVELS", 0)
        patch.setattr("spinney.tree.subset_words.PLAIN_LEVELS", 0)
        patch.setattr(sys.modules[f"{_jit.twin.TWIN}.tree.settled_levels"], "packs", lambda *_: True)
        yield kernels


def assert_packs_as_naive(table, parameters):
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(parameters.get("criterion") != "sdr" or "monotonic" not in parameters)
    assume(naive.is_certain(expected))
    with packing_all() as kernels:
        tree = fast.grow_table(table, **parameters, kernels=kernels)
        tree.check()
        fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds="monotonic" in parameters)
        if parameters.get("max_leaf_nodes") is None:
            has_subset = bool(np.any(tree.kind == SUBSET))
            assert any_packed(tree.kind, tree.threshold, tree.n_levels) == has_subset


@given(strategies.growing())
def test_packed_trees_are_those_of_the_oracle(case):
    """Classes and numbers, missing values either way, depth first and best first, weights of zero."""
    assert_packs_as_naive(*case)


@given(strategies.judged_by_known_rows())
def test_packed_subsets_stand_before_surrogates(case):
    assert_packs_as_naive(*case)


def draw_rows(generator, n_levels, n_rows):
    """Rows of two levels and a number, as columns."""
    return np.vstack([generator.integers(0, n_levels, (2, n_rows)), generator.normal(size=(1, n_rows))])


def draw_table(n_levels, n_rows=400, n_classes=None, seed=0):
    """Two categories of so many levels and a number; every level is met if there are rows enough, some are missing."""
    generator = np.random.default_rng(seed)
    columns = draw_rows(generator, n_levels, n_rows)
    n_covered = min(n_levels, n_rows)
    columns[:2, :n_covered] = np.arange(n_covered)
    effect = generator.normal(size=n_levels)
    y = effect[columns[0].astype(int)] + columns[2] + generator.normal(size=n_rows)
    is_missing = generator.random(n_rows) < 0.3
    is_missing[:n_covered] = False
    columns[:2, is_missing] = np.nan
    kinds = {"is_categorical": [True, True, False], "n_levels": [n_levels, n_levels, 0]}
    if n_classes:
        y = np.digitize(y, np.linspace(-1.5, 1.5, n_classes + 1)[1:-1])
    return columns, y, {"n_classes": n_classes, "criterion": "gini" if n_classes else "squared_error", **kinds}


@pytest.mark.parametrize("n_classes", [None, 2, 4])
@pytest.mark.parametrize("n_levels", ASKED)
def test_a_tree_of_many_levels_is_that_of_the_oracle(n_levels, n_classes):
    columns, y, kinds = draw_table(n_levels, 60, n_classes)
    expected = naive.grow(columns.tolist(), y.tolist(), **kinds)
    tree = fast.grow(columns, y, **kinds)
    tree.check()
    if naive.is_certain(expected):
        fast.assert_same_tree(fast.as_nodes(tree), expected)
    assert not any_packed(tree.kind, tree.threshold, tree.n_levels)  # those of random tests alone are


@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.parametrize("n_classes", [None, 2, 4])
def test_random_tests_send_levels_that_a_node_lacks_by_rule(n_classes, missing):
    """Of many levels: where missing values go, or with the heavier branch. Training rows go as they are drawn."""
    columns, y, kinds = draw_table(300, n_classes=n_classes)
    tree = fast.grow(columns, y, has_random_tests=True, seed=5, missing=missing, **kinds)
    tree.check()
    rows = {0: np.arange(len(y))}
    n_packed = 0
    for node in np.flatnonzero(~tree.is_leaf):
        at, column = rows[node], columns[tree.feature[node]][rows[node]]
        branch = np.where(np.isnan(column), tree.missing_branch[node], column > tree.threshold[node])
        if tree.kind[node] == SUBSET:
            n_packed += 1
            is_first = tree.subset(node)
            known = ~np.isnan(column)
            branch[known] = np.where(is_first[column[known].astype(int)], 0, 1)
            sizes = [int(tree.n_rows[tree.first_child[node] + b]) for b in range(2)]
            if missing == "learned" and not known.all():
                sizes[tree.missing_branch[node]] = len(y)
            is_absent = np.bincount(column[known].astype(int), minlength=300) == 0
            assert (is_first[is_absent] == (sizes[0] > sizes[1])).all()
        for b in range(tree.n_branches[node]):
            rows[tree.first_child[node] + b] = at[branch == b]
            assert tree.n_rows[tree.first_child[node] + b] == np.count_nonzero(branch == b)
    assert n_packed > 20
    assert len(tree.subsets) < 4 * n_packed + 40


# ----------------------------------------------------------------------------------------- readers and files


def walk(tree, row):
    """The leaf of a row, by the bits of every level."""
    node = 0
    while not tree.is_leaf[node]:
        value = row[tree.feature[node]]
        if math.isnan(value):
            branch = int(tree.missing_branch[node])
        elif tree.kind[node] == SUBSET:
            branch = int(not tree.subset(node)[int(value)])
        else:
            branch = int(value > tree.threshold[node])
        node = int(tree.first_child[node]) + branch
    return node


def make_frame(columns, n_levels):
    pd = pytest.importorskip("pandas")
    names = [f"level {i:05}" for i in range(n_levels)]

    def category(column):
        return pd.Categorical.from_codes(np.where(np.isnan(column), -1, column).astype(int), categories=names)

    return pd.DataFrame({"a": category(columns[0]), "b": category(columns[1]), "c": columns[2]})


MODELS = {
    "forest": (RandomForestClassifier, {"cat_penalty": 0.0}, 2),
    "extra-trees of classes": (ExtraTreesClassifier, {}, 4),
    "extra-trees": (ExtraTreesRegressor, {}, None),
    "small trees": (ExtraTreesRegressor, {"max_leaf_nodes": None, "max_depth": 4}, None),
}


@pytest.mark.parametrize("n_levels", ASKED[2:])
@pytest.mark.parametrize("name", MODELS)
def test_every_reader_says_the_same(name, n_levels, tmp_path):
    cls, parameters, n_classes = MODELS[name]
    columns, y, _ = draw_table(n_levels, n_levels + 200, n_classes)
    X = make_frame(columns, n_levels)
    model = cls(n_estimators=5, random_state=0, n_jobs=1, **parameters).fit(X, y)
    forest = model.forest_
    forest.check()
    is_packed = n_levels > PLAIN_LEVELS and cls is not RandomForestClassifier
    assert has_packed(forest) == is_packed
    generator = np.random.default_rng(1)
    new = draw_rows(generator, n_levels, 40)
    new[0, ::7] = np.nan
    rows = make_frame(new, n_levels)
    said = model.predict_proba(rows) if n_classes else model.predict(rows)[:, None]
    leaves = np.array([[walk(tree, row) for tree in forest] for row in new.T])
    expected = np.mean([tree.values()[leaves[:, t]] for t, tree in enumerate(forest)], axis=0).reshape(len(said), -1)
    np.testing.assert_allclose(said, expected, rtol=1e-12)
    assert np.array_equal(model.apply(rows), leaves)
    path = tmp_path / "model.spn"
    model.save_model(path)
    assert (b'"version":"1.4"' in path.read_bytes()) == is_packed
    again = load_model(path)
    assert np.array_equal(again.predict_proba(rows) if n_classes else again.predict(rows)[:, None], said)
    file = plain_reader.File(path)
    for row, answer in zip(new.T.tolist(), said, strict=True):
        by_page = plain_reader.answer(file.predictor, row)
        np.testing.assert_allclose(by_page, answer if n_classes else answer[0], rtol=1e-12)


def test_a_damaged_tree_is_refused():
    columns, y, kinds = draw_table(300)
    tree = fast.grow(columns, y, has_random_tests=True, seed=5, **kinds)
    node = int(np.flatnonzero(tree.kind == SUBSET)[0])
    place = int(tree.threshold[node])
    for at, bits in ((place, 2), (place, 1 << 63), (place + 1, 1 << 62)):
        words = tree.subsets.copy()
        words[at] ^= np.uint64(bits)
        with pytest.raises(BrokenTreeError, match="bitset beyond the array"):
            replace(tree, subsets=words).check()
    threshold = tree.threshold.copy()
    threshold[node] += 0.25
    with pytest.raises(BrokenTreeError, match="bitset beyond the array"):
        replace(tree, threshold=threshold).check()


def test_an_older_version_has_no_packed_subsets(tmp_path):
    columns, y, _ = draw_table(300)
    model = ExtraTreesRegressor(n_estimators=2, random_state=0).fit(make_frame(columns, 300), y)
    path = tmp_path / "model.spn"
    model.save_model(path)
    data = path.read_bytes()
    for old, new in ((b'"version":"1.4"', b'"version":"1.3"'), (b'\\"has_packed\\":true', b'\\"has_packed\\":null')):
        assert data.count(old) == 1
        (tmp_path / "changed.spn").write_bytes(data.replace(old, new))
        with pytest.raises(BrokenFileError):
            load_model(tmp_path / "changed.spn")


def unpack(forest):
    """The same forest with a bit for each level in all subsets."""
    hot, words, first_word = forest.hot.copy(), [], [0]
    cuts = hot.view(np.float64)[:, 0]
    for t, tree in enumerate(forest):
        for node in np.flatnonzero(tree.kind == SUBSET):
            cuts[forest.first_node[t] + node] = sum(map(len, words)) - first_word[-1]
            words.append(pack_bits(tree.subset(int(node))))
        first_word.append(sum(map(len, words)))
    return replace(forest, hot=hot, subsets=np.concatenate(words), first_word=np.array(first_word, np.int64))


@pytest.mark.parametrize("n_classes", [None, 2])
def test_models_say_the_same_with_plain_subsets(n_classes):
    """Whatever reads trees: many rows and one, importances, explanations, exports, rules."""
    columns, y, _ = draw_table(300, 600, n_classes)
    X = make_frame(columns, 300)
    cls = ExtraTreesClassifier if n_classes else ExtraTreesRegressor
    model = cls(n_estimators=4, bootstrap=True, max_depth=7, random_state=0, n_jobs=1).fit(X, y)
    assert has_packed(model.forest_)
    rows = X.iloc[:12]

    def say():
        one = model.predictor()
        shares = model.predict_proba(X) if n_classes else model.predict(X)
        importance = model.importance("permutation", X, y)
        return [
            shares,
            *(one(row) for row in rows.replace({np.nan: None}).to_dict("records")),
            str(importance),
            model.shap_values(rows).values,
            model.shap_values(rows, background=X.iloc[:9]).values,
            spinney.export(model, "json").content,
        ]

    packed = say()
    plain = unpack(model.forest_)
    plain.check()
    assert not has_packed(plain)
    model._fitted = replace(model._fitted, forest=plain)
    assert model.forest_ is plain
    for mine, other in zip(packed, say(), strict=True):
        assert np.array_equal(mine, other)
