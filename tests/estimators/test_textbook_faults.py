"""Bad and odd input for ID3 and C4.5 where they have their own ways, by the numbers of `tests/FAULTS.md`.

What every class answers alike is in `test_faults`, what depends on how trees grow in `test_tree_faults`; here are
missing values, weights of next to nothing, and the parameters that CART has not.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from fault_cases import FRAMES, make_table, refuses
from spinney import C45Classifier, ID3Classifier, ID3Regressor

KINDS = [ID3Classifier, ID3Regressor, C45Classifier]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=KINDS[:2], ids=lambda kind: kind.__name__)
def id3(request):
    return request.param


@pytest.fixture(params=FRAMES)
def frame_of(request):
    return FRAMES[request.param]


# --- B. values ----------------------------------------------------------------------------------------------------


def test_fault_030_missing_is_a_value_of_its_own_in_id3(id3):
    X = [[np.nan], [np.nan], [1.0], [2.0], [3.0]]
    y = [5, 5, 1, 1, 2]
    model = id3().fit(X, y)
    assert model.predict(X).tolist() == y
    assert model.tree_.n_branches[0] == 3


def test_fault_030_missing_numbers_take_every_branch_in_c45():
    X = np.array([[1.0], [1.0], [1.0], [2.0], [2.0], [np.nan]])
    model = C45Classifier(pruning=None).fit(X, [0, 0, 0, 1, 1, 1])
    assert model.tree_.spreads_missing.tolist() == [True, False, False]
    # three fifths of the last row, a 1, lie in the first branch
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[3 / 3.6, 0.6 / 3.6]])
    np.testing.assert_allclose(model.predict_proba([[2.0]]), [[0.0, 1.0]])
    np.testing.assert_allclose(model.predict_proba([[np.nan]]), [[0.5, 0.5]])


def test_fault_032_missing_only_in_predict_takes_the_heaviest_branch_in_id3(id3):
    model = id3().fit([[1.0], [2.0], [2.0], [3.0]], [0, 1, 1, 1])
    assert model.predict([[np.nan]]).tolist() == [1]


def test_fault_033_infinite_values_are_the_largest_and_the_smallest(kind):
    X = np.repeat([-np.inf, -1e308, 0.0, 1e308, np.inf], 2)[:, None]
    for y in ([1, 1, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]):
        model = kind().fit(X, y)
        model.tree_.check()
        assert model.predict(X).tolist() == y


def test_fault_036_c45_tells_values_apart_that_differ_by_more_than_1e_5():
    """As J48 has it, where CART and ID3 tell neighbouring floats apart."""
    y = [0, 0, 1, 1]
    assert C45Classifier(pruning=None).fit([[1.0], [1.0], [1.000009], [1.000009]], y).get_n_leaves() == 1
    assert C45Classifier(pruning=None).fit([[1.0], [1.0], [1.00002], [1.00002]], y).get_n_leaves() == 2


def test_fault_039_more_values_than_codes_in_c45():
    X = np.arange(70_000.0)[:, None]
    y = (X[:, 0] >= 35_000).astype(int)
    assert (C45Classifier().fit(X, y).predict(X) == y).mean() > 0.999
    assert C45Classifier(max_bins=2).fit(X, y).get_n_leaves() == 2


# --- D. weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e300, 1e308, 1e-300, 5e-324])
def test_fault_060_huge_and_tiny_weights(kind, scale):
    """To C4.5, which asks for a weight of 2 in two branches, weights of next to nothing are too few rows."""
    X, y = make_table(100)
    X[::5, 0] = np.nan
    for weight in (np.full(100, scale), np.where(np.arange(100) % 3, scale, 1.0)):
        model = kind().fit(X, y, weight)
        model.tree_.check()
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.feature_importances_).all()
    if kind is C45Classifier and scale < 1.0:
        assert kind().fit(X, y, np.full(100, scale)).get_n_leaves() == 1


# --- E. parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((ID3Classifier, "criterion", value) for value in ("squared_error", "ginny", None)),
        *((ID3Regressor, "criterion", value) for value in ("entropy", "gini")),
        *((kind, "max_depth", value) for kind in KINDS for value in (0, -5, 1.5, True)),
        *((kind, "max_bins", value) for kind in KINDS for value in (1, 65_536, "auto")),
        *((kind, "min_samples_leaf", value) for kind in KINDS for value in (0, "2", True)),
        (C45Classifier, "min_samples_leaf", 0.5),
        *((ID3Classifier, "min_weight_fraction_leaf", value) for value in (-0.1, 0.6)),
        *((C45Classifier, "confidence", value) for value in (0.0, 0.51, -1, "low")),
        *((C45Classifier, "smoothing", value) for value in (-1.0, "m", True)),
        *((C45Classifier, "raising", value) for value in (2, "yes")),
        *((C45Classifier, "collapse", value) for value in (2, None)),
        (ID3Regressor, "pruning", "pessimistic"),
        (C45Classifier, "pruning", "oob"),
        *((kind, "class_weight", "even") for kind in (ID3Classifier, C45Classifier)),
        *((kind, "trace", "all") for kind in KINDS),
    ],
)
def test_fault_074_parameters_out_of_range(kind, name, value):
    with refuses(InvalidParameterError, f"The '{name}' parameter of {kind.__name__} must be"):
        kind(**{name: value}).fit(*make_table())


# --- F. categories ------------------------------------------------------------------------------------------------


def colours(frame_of, values):
    return frame_of({"colour": values})


def test_fault_085_an_unseen_level_takes_the_heaviest_branch_in_id3(id3, frame_of):
    model = id3().fit(colours(frame_of, ["red", "red", "red", "blue"]), [1, 1, 1, 0])
    assert model.predict(colours(frame_of, ["green", "blue", None])).tolist() == [1, 0, 1]


def test_fault_085_an_unseen_level_takes_every_branch_in_c45(frame_of):
    model = C45Classifier(pruning=None).fit(colours(frame_of, ["red"] * 3 + ["blue"] * 2), [1, 1, 1, 0, 0])
    shares = model.predict_proba(colours(frame_of, ["green", "blue", "red"]))
    np.testing.assert_allclose(shares, [[0.4, 0.6], [1.0, 0.0], [0.0, 1.0]])


def test_fault_086_a_missing_category_is_a_level_of_its_own_in_id3(id3, frame_of):
    frame = colours(frame_of, ["red", "red", "blue", None, None])
    model = id3().fit(frame, [0, 0, 1, 5, 5])
    assert model.predict(frame).tolist() == [0, 0, 1, 5, 5]
    assert model.tree_.n_branches[0] == 3


def test_levels_of_weight_zero_make_an_empty_leaf(kind, frame_of):
    """They are in the vocabulary, but no row counts: the leaf answers as its parent."""
    frame = colours(frame_of, ["red"] * 4 + ["blue"] * 3 + ["green"])
    model = kind(pruning=None).fit(frame, [0, 0, 0, 0, 1, 1, 1, 1], [1] * 7 + [0])
    assert model.tree_.n_branches[0] == 3
    assert np.count_nonzero(model.tree_.is_empty) == 1
    answer = model.predict(colours(frame_of, ["green"]))[0]
    assert answer == (pytest.approx(3 / 7) if kind is ID3Regressor else 0)


def test_fault_089_as_many_categories_as_there_are_codes(kind):
    levels = [f"level {k}" for k in range(65_535)]
    frame = pd.DataFrame({"a": levels * 2})
    y = np.random.default_rng(0).integers(0, 2, 65_535)
    model = kind(pruning=None).fit(frame, np.tile(y, 2))
    assert model.tree_.n_nodes == 65_536
    assert model.predict(frame[:65_535]).tolist() == y.tolist()
    with refuses(ValueError, "'a'", "65,535"):
        kind().fit(pd.DataFrame({"a": [*levels, "one more"] * 2}), np.zeros(131_072, int))


@pytest.mark.parametrize("kind", [ID3Classifier, C45Classifier])
def test_fault_045_five_hundred_classes(kind):
    y = np.random.default_rng(0).permutation(np.arange(2_000) % 500)
    frame = pd.DataFrame({"tens": [f"t{label // 10:02}" for label in y], "ones": y % 10})
    model = kind().fit(frame, y)
    assert model.tree_.arrays.impurity[0] == pytest.approx(np.log2(500))
    assert model.predict(frame).tolist() == y.tolist()
    stump = kind(max_depth=1).fit(frame, y)
    expected = pd.crosstab(frame["tens"], y, normalize="index").loc[frame["tens"]]
    np.testing.assert_allclose(stump.predict_proba(frame), expected)
