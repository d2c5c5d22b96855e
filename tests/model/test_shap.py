"""SHAP values against their definition, for every kind of model; depth, threads, and what is refused."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import export_cases
import hand_trees
import plain_shap
import spinney
import strategies
from spinney._jit import load_compiled
from spinney.model.explained_trees import NoSumError, explained, raw_scores
from spinney.model.predictors import TreePredictor
from spinney.model.shap import against, along_paths, pair_up, shap_values
from spinney.table.schema import Schema

NAMES = [name for name in export_cases.NAMES if name != "adaboost numbers"]
N_ROWS = 3  # of each kind of row


def rows_of(name):
    """A model, and some rows of it, plain ones and hostile ones, as the model's table."""
    model, cells = export_cases.fitted(name)
    plain = [row for row in cells[:40] if not any(isinstance(x, float) and np.isinf(x) for x in row)][:N_ROWS]
    hostile = cells[len(cells) - 2 * N_ROWS :]
    if name == "cart linear":
        hostile = [row for row in hostile if not any(isinstance(x, float) and np.isinf(x) for x in row)]
    return model, export_cases.table_of(model, [*plain, *hostile])


def leaf_shares(tree, smoothed=None):
    """What each node says of the classes, by the weights of its rows."""
    return tree.values() if smoothed is None else smoothed


def outputs_game(model, row):
    """The path-dependent game of a model and an encoded row, written down for each kind."""
    predictor = model.predictor()
    kind = type(predictor).__name__
    if predictor.n_classes == 1:
        return lambda _: np.ones(1)
    if kind == "TreePredictor":
        tree = predictor.tree
        if not predictor.n_classes:
            return plain_shap.path_game(tree, tree.threshold[:, None], row)
        return plain_shap.path_game(tree, leaf_shares(tree, predictor.smoothed if predictor.smoothing else None), row)
    trees = list(model.forest_)
    if kind == "VotePredictor":
        said = [tree.values() if predictor.n_classes else tree.threshold[:, None] for tree in trees]
        if predictor.is_hard:
            said = [np.eye(predictor.n_classes)[np.argmax(one, axis=1)] for one in said]
        said = [one / len(trees) for one in said]
        start = 0.0
    elif kind == "RoundPredictor":
        n_raw = predictor.n_raw
        trees = trees[: predictor.n_rounds * n_raw]
        said = [
            np.eye(n_raw)[t % n_raw] * tree.threshold[:, None] * 2.0**predictor.exponent for t, tree in enumerate(trees)
        ]
        start = predictor.start * 2.0**predictor.exponent
    else:
        n_classes, total, start = predictor.n_classes, np.abs(predictor.weights).sum(), 0.0
        said = []
        for tree, weight in zip(trees, predictor.weights, strict=True):
            voted = np.eye(n_classes)[np.argmax(tree.values(), axis=1)]
            if n_classes == 2:
                said.append(2.0 * weight / total * (2.0 * voted[:, 1:] - 1.0))
            else:
                said.append(weight / total * (voted - (1.0 - voted) / (n_classes - 1)))
    games = [plain_shap.path_game(tree, one, row) for tree, one in zip(trees, said, strict=True)]
    return plain_shap.sum_of_games(games, start)


def three_axes(values):
    """Values with an axis of outputs."""
    return values[..., None] if values.ndim == 2 else values


@pytest.mark.parametrize("name", NAMES)
def test_path_dependent_values_are_shapleys(name):
    model, X = rows_of(name)
    found = model.shap_values(X)
    rows = np.asarray(model.predictor().encode(X), np.float64)
    for i, row in enumerate(rows):
        game = outputs_game(model, row)
        truth = plain_shap.shapley(game, len(row))
        np.testing.assert_allclose(three_axes(found.values)[i], truth, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.reshape(found.base, -1), game(frozenset()), rtol=1e-9, atol=1e-12)
    assert found.relative_difference < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_values_and_base_add_up_to_what_the_model_says(name):
    model, cells = export_cases.fitted(name)
    if name == "cart linear":
        cells = [row for row in cells if not any(isinstance(x, float) and np.isinf(x) for x in row)]
    X = export_cases.table_of(model, cells)
    found = model.shap_values(X)
    predictor = model.predictor()
    raw = raw_scores(predictor, predictor.encode(X))
    np.testing.assert_allclose(three_axes(found.values).sum(axis=1) + found.base, raw, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_interactions_are_shapleys(name):
    model, X = rows_of(name)
    found = model.shap_values(X, interactions=True)
    rows = np.asarray(model.predictor().encode(X), np.float64)
    pairs = found.interactions[..., None] if found.values.ndim == 2 else found.interactions
    for i, row in enumerate(rows[::3]):
        truth = plain_shap.interactions(outputs_game(model, row), len(row))
        np.testing.assert_allclose(pairs[3 * i], truth, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_values_against_background_rows_are_shapleys(name):
    model, X = rows_of(name)
    predictor = model.predictor()
    rows = np.asarray(predictor.encode(X), np.float64)
    others = rows[::-1][:5]
    found = shap_values(predictor, X, background=take(X, others))
    for i, row in enumerate(rows):
        game = plain_shap.background_game(lambda hybrid: raw_scores(predictor, hybrid), row, others)
        truth = plain_shap.shapley(game, len(row))
        np.testing.assert_allclose(three_axes(found.values)[i], truth, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(np.reshape(found.base, -1), game(frozenset()), rtol=1e-9, atol=1e-12)


def take(X, others):
    """The last rows of a table, backwards, as many as `others`."""
    places = list(range(len(X) - 1, len(X) - 1 - len(others), -1))
    return X[places] if isinstance(X, np.ndarray) else X.take(places)


@pytest.mark.parametrize("name", ["boosting", "boosting classes", "adaboost", "adaboost classes", "adaboost numbers"])
def test_answers_that_are_no_sum_are_explained_by_all_sets_of_columns(name):
    model, X = rows_of(name)
    predictor = model.predictor()
    rows = np.asarray(predictor.encode(X), np.float64)
    others = rows[::-1][:4]
    found = model.shap_values(X, background=take(X, others), output="probability")
    for i, row in enumerate(rows[:4]):
        game = plain_shap.background_game(lambda hybrid: predictor.answer(hybrid).reshape(len(hybrid), -1), row, others)
        np.testing.assert_allclose(three_axes(found.values)[i], plain_shap.shapley(game, len(row)), atol=1e-12)


# --- trees by chance ----------------------------------------------------------------------------------------------


@given(strategies.tables(), st.integers(0, 1000), st.data())
def test_trees_of_every_kind_of_test_by_chance(table, seed, data):
    tree = hand_trees.ChanceGrower(table, seed).grow()
    levels = tuple(tuple(range(n)) if n else None for n in table.n_levels)
    classes = np.arange(table.n_classes) if table.n_classes else None
    predictor = TreePredictor(Schema(None, levels), classes, tree)
    n_features = min(table.n_features, 5)  # brute force over all sets
    assume(table.n_features == n_features and (classes is None or len(classes) > 1))
    rows = np.array(data.draw(strategies.query_rows(table)), np.float64).reshape(-1, n_features)[:3]
    assume(len(rows) > 0)
    said = tree.values() if table.n_classes else tree.threshold[:, None]
    size = max(float(np.abs(said[tree.is_leaf]).max()), 1e-300)
    assume(size < 1e150)
    parts = explained(predictor)
    found, base = along_paths(parts, rows, 1)
    pairs = pair_up(parts, rows, found, 1)
    against_rows = against(parts, rows, rows[::-1].copy(), 1)
    for i, row in enumerate(rows):
        game = plain_shap.path_game(tree, said, row)
        assert np.abs(found[i] - plain_shap.shapley(game, n_features)).max() <= 1e-10 * size
        assert np.abs(base - game(frozenset())).max() <= 1e-10 * size
        assert np.abs(pairs[i] - plain_shap.interactions(game, n_features)).max() <= 1e-10 * size
        hybrids = plain_shap.background_game(lambda mix: raw_scores(predictor, mix), row, rows[::-1].copy())
        assert np.abs(against_rows[i] - plain_shap.shapley(hybrids, n_features)).max() <= 1e-10 * size


# --- depth --------------------------------------------------------------------------------------------------------


def predictor_of(tree):
    """A tree of numbers as a predictor."""
    return TreePredictor(Schema(None, (None,) * tree.n_features), None, tree)


@pytest.mark.compiled(reason="thousands of nodes and points")
@pytest.mark.parametrize("n_features", [1, 7, 5000])
def test_a_chain_of_5000_nodes_adds_up(n_features):
    load_compiled()
    tree = hand_trees.chain_of_features(5000, n_features)
    predictor = predictor_of(tree)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, n_features)) + np.array([[0.0], [3.0], [5.0]])
    found = shap_values(predictor, X)
    assert found.relative_difference < 1e-9
    assert np.abs(found.values).max() > 0.0


@pytest.mark.compiled(reason="thousands of nodes")
def test_a_deep_chain_of_one_column_has_the_difference_to_the_mean():
    load_compiled()
    predictor = predictor_of(hand_trees.chain_of_features(5000, 1))
    X = np.array([[-0.2], [0.1], [0.7]])
    found = shap_values(predictor, X)
    np.testing.assert_allclose(found.values[:, 0], predictor.predict(X) - found.base, rtol=1e-12)


# --- same bits, blocks --------------------------------------------------------------------------------------------


@pytest.mark.compiled(reason="a thousand rows")
def test_threads_blocks_and_neighbours_change_no_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 3))
    y = X[:, 0] * X[:, 1] > 0
    predictor = spinney.RandomForestClassifier(n_estimators=3, max_depth=5, random_state=0).fit(X, y).predictor()
    load_compiled()
    one = shap_values(predictor, X, n_jobs=1).values
    assert np.array_equal(one, shap_values(predictor, X, n_jobs=2).values)
    assert np.array_equal(one[700:703], shap_values(predictor, X[700:703]).values)
    against = shap_values(predictor, X[:300], background=X[:9], n_jobs=1).values
    assert np.array_equal(against, shap_values(predictor, X[:300], background=X[:9], n_jobs=2).values)


def test_float32_rows_go_where_predict_sends_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    model = spinney.GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, X[:, 0])
    found = model.shap_values(X)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(X), rtol=1e-12)


# --- what is refused ----------------------------------------------------------------------------------------------


def small():
    return spinney.CARTRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])


def test_what_cannot_be_is_refused_with_a_way_out():
    model = small()
    with pytest.raises(ValueError, match="output='prob'"):
        model.shap_values([[1.0]], output="prob")
    with pytest.raises(ValueError, match="leave `background` out"):
        model.shap_values([[1.0]], background=[[1.0]], interactions=True)
    with pytest.raises(ValueError, match=r"no rows|minimum of 1"):
        model.shap_values([[1.0]], background=np.zeros((0, 1)))
    median, X = rows_of("adaboost numbers")
    with pytest.raises(NoSumError, match="weighted median"):
        median.shap_values(X)
    boosted, X = rows_of("boosting")
    with pytest.raises(ValueError, match="needs background rows"):
        boosted.shap_values(X, output="probability")
    stack = spinney.StackingRegressor([("tree", spinney.CARTRegressor())]).fit(np.eye(20), np.arange(20.0))
    with pytest.raises(ValueError, match="no trees of one forest"):
        stack.shap_values(np.eye(20))


def test_a_compact_forest_needs_background_rows():
    X = np.arange(40.0).reshape(20, 2)
    forest = spinney.RandomForestRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0]).predictor()
    from dataclasses import replace

    compact = replace(forest, forest=forest.forest.compact())
    with pytest.raises(ValueError, match="compact forest has dropped"):
        shap_values(compact, X)
    found = shap_values(compact, X, background=X[:3])
    assert np.array_equal(found.values, shap_values(forest, X, background=X[:3]).values)


def test_many_columns_are_not_told_apart_one_by_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    model = spinney.GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, X.sum(axis=1) > 0)
    with pytest.raises(ValueError, match="of 16 at most"):
        model.shap_values(X[:1], background=X[:2], output="probability")


def test_values_that_cannot_add_up_are_warned_of():
    tree = spinney.CARTRegressor().fit([[1.0], [2.0], [3.0], [4.0]], [1e308, -1e308, 1e308, -1e308])
    huge = tree.predictor()
    object.__setattr__(huge.tree, "threshold", np.where(huge.tree.is_leaf, 1.7e308, huge.tree.threshold))
    huge.tree.threshold[np.flatnonzero(huge.tree.is_leaf)[0]] = -1.7e308
    with pytest.warns(UserWarning, match="do not add up"):
        shap_values(huge, [[1.0], [4.0]])


# --- the table ----------------------------------------------------------------------------------------------------


def test_the_table_says_what_it_is_of():
    model, X = rows_of("forest named")
    found = model.shap_values(X)
    n_rows = len(found)
    assert found.names == ("ä", "b c", "tree", "n")
    assert found.values.shape == (n_rows, 4, 2)
    assert found.outputs == ("ash", "birch")
    one = found.of("birch")
    assert np.array_equal(one.values, found.values[..., 1])
    assert one.base == found.base[1]
    assert found.data[0, 2] is None or str(found.data[0, 2]).startswith("level")
    frame = found.to_frame()
    assert frame.shape == (2 * n_rows, 6)
    assert frame["output"].tolist()[:2] == ["ash", "birch"]
    assert frame["ä"][3] == found.values[1, 0, 1]
    assert one.to_frame().iloc[1, 0] == found.values[1, 0, 1]
    assert np.array_equal(found.take([2, 0]).values, found.values[[2, 0]])
    assert "4 columns x 2 outputs" in repr(found)
    with pytest.raises(ValueError, match="'oak' is no output"):
        found.of("oak")
