"""Flags: features of two values are bits of a row, and trees are those of a row of codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor, _jit
from spinney.ensemble import forest
from spinney.table.coding import code_table
from spinney.table.flags import find_flags, pack_flags, whole_codes
from spinney.table.ingest import read_columns

ONE = np.ones(1, np.int64)


def draw_columns(kinds, n_rows, seed):
    """Columns of two values ("flag"), of many, of two with a missing one ("gap"), and of one."""
    rng = np.random.default_rng(seed)
    columns = []
    for kind in kinds:
        column = rng.integers(0, 2, n_rows) * 2.5 - 1.0
        column[:2] = -1.0, 1.5
        if kind == "many":
            column = rng.normal(size=n_rows).round(1)
        elif kind == "gap":
            column[rng.integers(2, n_rows)] = np.nan
        elif kind == "one":
            column[:] = 4.0
        columns.append(column)
    return np.stack(columns, axis=1)


@given(
    st.lists(st.sampled_from(["flag", "flag", "flag", "many", "gap", "one"]), min_size=1, max_size=140),
    st.integers(3, 40),
    st.integers(0, 2**32 - 1),
)
def test_every_code_is_kept(kinds, n_rows, seed):
    codes = code_table(read_columns(draw_columns(kinds, n_rows, seed)), ONE, 65_535, _jit.interpreted())
    rows, packing = pack_flags(codes)
    assert sorted(packing.number.tolist()) == list(range(len(kinds)))
    np.testing.assert_array_equal(packing.number[packing.place], np.arange(len(kinds)))
    assert rows.shape[1] <= codes.rows.shape[1]
    for place, feature in enumerate(packing.number.tolist()):
        if place < packing.n_coded:
            found = rows[:, place]
        else:
            bit = place - packing.n_coded
            word = rows.view(np.uint64)[:, -(-packing.n_coded // 4) + bit // 64]
            found = 1 + ((word >> np.uint64(bit % 64)) & np.uint64(1))
        np.testing.assert_array_equal(found, codes.rows[:, feature])
    if packing.n_coded < len(kinds):
        assert packing.n_coded == len(kinds) - np.count_nonzero(find_flags(codes))


def test_rows_that_would_not_be_shorter_stay():
    codes = code_table(read_columns(draw_columns(["many"] * 7 + ["flag"], 9, 0)), ONE, 65_535, _jit.interpreted())
    rows, packing = pack_flags(codes)
    assert rows is codes.rows
    assert packing.n_coded == 8


def test_rows_of_a_one_hot_table_are_short():
    kinds = ["many"] * 6 + ["flag"] * 99
    codes = code_table(read_columns(draw_columns(kinds, 30, 0)), ONE, 65_535, _jit.interpreted())
    rows, packing = pack_flags(codes)
    assert codes.rows.itemsize * codes.rows.shape[1] == 216
    assert rows.itemsize * rows.shape[1] == 32
    assert packing.n_coded == 6


CASES = [
    (RandomForestClassifier, 2, {}),
    (RandomForestClassifier, 2, {"criterion": "entropy"}),
    (RandomForestClassifier, 2, {"max_features": 1.0}),
    (RandomForestClassifier, 5, {}),
    (RandomForestClassifier, 5, {"criterion": "entropy", "class_weight": "balanced"}),
    (RandomForestClassifier, 5, {"max_leaf_nodes": 9, "bootstrap": False}),
    (RandomForestRegressor, 0, {}),
    (RandomForestRegressor, 0, {"max_features": 0.3, "min_samples_leaf": 3}),
    (RandomForestRegressor, 0, {"criterion": "poisson"}),
    (RandomForestRegressor, 0, {"criterion": "absolute_error"}),
    (ExtraTreesClassifier, 2, {}),
    (ExtraTreesClassifier, 2, {"bootstrap": True, "min_samples_leaf": 2}),
    (ExtraTreesClassifier, 5, {}),
    (ExtraTreesRegressor, 0, {}),
    (ExtraTreesRegressor, 0, {"max_bins": 2}),
    (ExtraTreesRegressor, 0, {"bootstrap": True, "max_features": 0.3}),
]


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize(("estimator", "n_classes", "params"), CASES)
def test_trees_are_those_of_codes(estimator, n_classes, params, weighs, monkeypatch):
    X = draw_columns((["flag"] * 9 + ["many", "gap", "flag"]) * 8, 700, 5)
    rng = np.random.default_rng(1)
    score = X[:, 0] + X[:, 9] * X[:, 3] + (X[:, 20] > 0) * 2 + rng.normal(size=len(X))
    y = np.abs(score) if n_classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    weight = rng.random(len(X)) + 0.5 if weighs else None

    def fit():
        return estimator(n_estimators=4, random_state=3, **params).fit(X, y, sample_weight=weight)

    made, pack = [], forest.pack_flags
    monkeypatch.setattr(forest, "pack_flags", lambda *given: made.append(pack(*given)) or made[-1])
    packed = fit()  # of columns of many values two bins are no flag
    if params.get("criterion") != "absolute_error":
        assert [packing.n_coded for _, packing in made] == [16]
    monkeypatch.setattr(forest, "pack_flags", lambda codes, _: (codes.rows, whole_codes(codes.n_features)))
    plain = fit()
    for mine, theirs in zip(packed.forest_, plain.forest_, strict=True):
        for name in ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(packed.predict(X), plain.predict(X))
