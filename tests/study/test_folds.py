"""Folds are those of scikit-learn, and keep apart what must be apart."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.model_selection import KFold, RepeatedStratifiedKFold

from spinney.study.folds import make_folds
from spinney.study.tables import prepare


def data(n_rows, *, is_regression=False, **options):
    rng = np.random.default_rng(n_rows)
    y = rng.normal(size=n_rows) if is_regression else rng.permutation(np.arange(n_rows) % 3).astype(str)
    columns = {"x": rng.normal(size=n_rows), "who": rng.integers(0, 9, n_rows), "day": rng.integers(0, 50, n_rows)}
    return prepare(pa.table({**columns, "y": y}), "y", **options)


def same(splits, others):
    return len(splits) == len(others) and all(
        np.array_equal(one, other)
        for pair, two in zip(splits, others, strict=True)
        for one, other in zip(pair, two, strict=True)
    )


def test_many_rows_one_partition():
    table = data(1000, is_regression=True)
    folds = make_folds(table, 5, seed=3)
    assert same(folds.splits, list(KFold(5, shuffle=True, random_state=3).split(table.y)))
    assert (folds.n_train, folds.n_test) == (800, 200)


@pytest.mark.parametrize(("n_rows", "n_repeats"), [(999, 2), (199, 5)])
def test_few_rows_are_cut_again(n_rows, n_repeats):
    table = data(n_rows)
    expected = RepeatedStratifiedKFold(n_splits=4, n_repeats=n_repeats, random_state=1)
    folds = make_folds(table, 4, seed=1)
    assert same(folds.splits, list(expected.split(table.y, table.y)))
    assert f"{n_repeats} times" in folds.description
    assert len(make_folds(table, 4, 1).splits) == 4


def test_groups_are_whole():
    table = data(90, groups="who")
    for train, test in make_folds(table, 3).splits:
        assert not set(table.groups[train]) & set(table.groups[test])


def test_held_out_rows_are_later():
    table = data(90, time="day", is_regression=True)
    splits = make_folds(table, 4).splits
    for train, test in splits:
        assert table.times[train].max() < table.times[test].min()
    assert len(np.unique(np.concatenate([test for _, test in splits]))) == sum(len(test) for _, test in splits)


def test_errors():
    with pytest.raises(ValueError, match="9 rows are too few for 5 folds"):
        make_folds(data(9), 5)
    with pytest.raises(ValueError, match="at least 2"):
        make_folds(data(9), 1)
    rare = prepare(pa.table({"x": [3.0, 1.0, 2.0, 5.0] * 3, "y": [*[1] * 5, *[2] * 5, 3, 3]}), "y")
    with pytest.raises(ValueError, match=r"1 of 3 classes .* \(3\): .* or ask for 2 folds.* the task is regression"):
        make_folds(rare, 5)
    with pytest.raises(ValueError, match="has 9 groups, fewer than 10"):
        make_folds(data(90, groups="who"), 10)
    with pytest.raises(ValueError, match="cannot be repeated"):
        make_folds(data(90, groups="who"), 3, 2)
    with pytest.raises(ValueError, match="not by both"):
        make_folds(data(90, groups="who", time="day"), 3)


def test_rows_of_one_time_are_on_one_side():
    years = pa.table({"x": np.arange(60) % 7, "year": [2018] * 10 + [2019] * 30 + [2020] * 20, "y": np.arange(60) / 7})
    table = prepare(years, "y", time="year")
    assert [set(table.times[train].tolist()) for train, _ in make_folds(table, 2).splits] == [{2018}, {2018, 2019}]
    always = prepare(years.set_column(1, "year", [[2020] * 60]), "y", time="year")
    with pytest.raises(ValueError, match="'year': too few rows are earlier than fold 1 of 6"):
        make_folds(always, 6)


def test_rows_of_rare_classes_are_left_out_where_they_are_few():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 60 + ["b"] * 58 + ["odd"] * 2)
    table = pa.table({"x": rng.normal(size=120), "y": y})
    data = prepare(table, "y", fewest=5)
    assert data.n_rows == data.X.num_rows == 118
    assert data.summary.rare == (("odd", 2),)
    assert "'odd' (2)" in data.summary.rare_warning
    assert len(make_folds(data, 5, 1).splits) == 5
    with pytest.raises(ValueError, match="fewer rows than there are folds"):
        make_folds(prepare(table, "y"), 5)
    many = pa.table({"x": rng.normal(size=120), "y": np.array(["a"] * 60 + ["b"] * 50 + ["c", "d", "e"] * 3 + ["f"])})
    assert prepare(many, "y", fewest=5).summary.rare == ()  # a twelfth of the rows: for the reader to decide
