"""Forests with linear leaves, which imported models have."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from peer_models import read_model, rows_for
from spinney.model.predictors import VotePredictor
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import Forest, join_forests
from spinney.tree.predict import predict_values

NAME = "lightgbm_linear.txt"


@pytest.fixture(scope="module")
def predictor():
    return read_model(NAME)


def test_a_tree_taken_out_says_the_same(predictor):
    values = predictor.encode(rows_for(NAME))
    said = predictor.predict_trees(rows_for(NAME))
    for t, tree in enumerate(predictor.forest):
        np.testing.assert_array_equal(predict_values(tree, values), said[t])
        tree.check()


def test_the_first_trees_keep_their_terms(predictor):
    values = predictor.encode(rows_for(NAME))
    head = replace(predictor, forest=predictor.forest.head(2), n_rounds=2)
    head.check()
    head.forest.check()
    np.testing.assert_array_equal(head.sum_rounds(values), replace(predictor, n_rounds=2).sum_rounds(values))
    compact = replace(predictor, forest=predictor.forest.compact())
    np.testing.assert_array_equal(compact.answer(values), predictor.answer(values))


@pytest.mark.parametrize(
    ("part", "change", "fault"),
    [
        ("first", lambda x: x[:-1], "linear.first has shape"),
        ("first", lambda x: x - (np.arange(len(x)) == 0), "end before they begin"),
        ("feature", lambda x: x + 100, "is no number of the table"),
        ("feature", lambda x: x * 0 + 4, "is no number of the table"),  # a category
        ("coefficient", lambda x: x * np.nan, "is not finite"),
        ("coefficient", lambda x: x.astype(np.float32), "type float64"),
        ("fill", lambda x: x[1:], "linear.fill has shape"),
    ],
)
def test_terms_that_are_none_are_found(predictor, part, change, fault):
    forest = predictor.forest
    broken = replace(forest.linear, **{part: change(getattr(forest.linear, part))})
    with pytest.raises(BrokenTreeError, match=fault):
        replace(forest, linear=broken).check()


def test_terms_of_an_inner_node_are_found(predictor):
    forest = predictor.forest
    first = forest.linear.first.copy()
    first[1:] = np.maximum(first[1:], 1)  # the first root has a term
    with pytest.raises(BrokenTreeError, match="an inner node has a linear model"):
        replace(forest, linear=replace(forest.linear, first=first)).check()


def test_trees_that_vote_have_none(predictor):
    with pytest.raises(BrokenTreeError, match="trees that vote have no linear leaves"):
        VotePredictor(predictor.schema, None, predictor.forest).check()
    with pytest.raises(ValueError, match="cannot be joined"):
        join_forests(predictor.forest, predictor.forest)


def test_pickles_keep_them_and_older_ones_have_none(predictor):
    again = pickle.loads(pickle.dumps(predictor))
    X = rows_for(NAME)
    np.testing.assert_array_equal(again.predict(X), predictor.predict(X))
    state = predictor.forest.__getstate__()
    del state["linear"]
    older = Forest.__new__(Forest)
    older.__setstate__(state)
    assert older.linear is None
