"""Boosting that ranks: learns orders, keeps groups whole, says what is wrong with its input."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupKFold

import spinney
from spinney import GradientBoostingRanker, load_model
from spinney.ensemble.ranking_loss import LambdaRank

FEW = {"n_estimators": 12, "random_state": 0}


def make_lists(n_rows=600, n_queries=40, seed=0):
    """Rows of lists in any order, whose relevance follows two features but for noise, and a shift for each list."""
    rng = np.random.default_rng(seed)
    X, query = rng.normal(size=(n_rows, 4)), rng.integers(0, n_queries, n_rows)
    relevance = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows) / 3 + 1.0), 0, 4)
    X[:, 3] = rng.normal(size=n_queries)[query]
    return X, relevance, query


@pytest.mark.parametrize("metric", ["ndcg", "map"])
def test_lists_that_were_not_seen_are_put_in_order(metric):
    X, y, query = make_lists(3000, 150)
    is_new = query >= 100
    model = GradientBoostingRanker(metric=metric, random_state=0).fit(X[~is_new], y[~is_new], groups=query[~is_new])
    chance = GradientBoostingRanker(metric=metric, n_estimators=1, max_leaf_nodes=2, random_state=0)
    chance.fit(X[~is_new], y[~is_new], groups=query[~is_new])
    assert model.score(X[is_new], y[is_new], groups=query[is_new]) > 0.9
    assert model.score(X[is_new], y[is_new], groups=query[is_new]) > chance.score(
        X[is_new], y[is_new], groups=query[is_new]
    )
    assert model.n_estimators_ == 100  # "auto"


def test_score_is_the_ndcg_of_scikit_learn():
    X, y, query = make_lists()
    model = GradientBoostingRanker(**FEW, places=5).fit(X, y, groups=query)
    place = np.argsort(np.argsort(-model.predict(X), kind="stable"))  # rows of equal scores as they come
    each = [
        ndcg_score([2.0 ** y[query == q] - 1.0], [-place[query == q]], k=5)
        for q in np.unique(query)
        if y[query == q].any()
    ]
    n_empty = sum(not y[query == q].any() for q in np.unique(query))
    assert model.score(X, y, groups=query) == pytest.approx((sum(each) + n_empty) / (len(each) + n_empty))


@pytest.mark.parametrize("metric", ["ndcg", "map"])
def test_the_number_of_threads_changes_no_bit(metric, tmp_path):
    X, y, query = make_lists(9000, 300)
    files = []
    for n_jobs in (1, 2, 3):
        path = tmp_path / f"{n_jobs}.spn"
        GradientBoostingRanker(metric=metric, n_jobs=n_jobs, **FEW).fit(X, y, groups=query).save_model(path)
        model = load_model(path).set_params(n_jobs=1)
        model.save_model(path)
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


def test_names_of_groups_do_not_matter():
    X, y, query = make_lists()
    names = np.array([f"query {q:03}" for q in range(40)])[query]
    scores = [GradientBoostingRanker(**FEW).fit(X, y, groups=each).predict(X) for each in (query, query * 2.5, names)]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_without_groups_all_rows_are_one_list():
    X, y, _ = make_lists(200)
    one = GradientBoostingRanker(**FEW).fit(X, y)
    same = GradientBoostingRanker(**FEW).fit(X, y, groups=np.full(200, "all"))
    np.testing.assert_array_equal(one.predict(X), same.predict(X))


def test_early_stopping_holds_out_whole_groups(monkeypatch):
    seen = {}
    part = spinney.estimators.boosting_data.BoostingData.part

    def spy(data, rows):
        seen["y"], seen["held"] = data.y, data.is_held
        return part(data, rows)

    monkeypatch.setattr(spinney.estimators.boosting_data.BoostingData, "part", spy)
    X, y, query = make_lists()
    GradientBoostingRanker(n_iter_no_change=3, validation_fraction=0.25, **FEW).fit(X, y, groups=query)
    held = np.unique(seen["y"][seen["held"]] // 32)
    kept = np.unique(seen["y"][~seen["held"]] // 32)
    assert len(held) == 10
    assert not set(held) & set(kept)


def test_validation_rows_have_groups_of_their_own():
    X, y, query = make_lists()
    other_X, other_y, other = make_lists(seed=1)
    model = GradientBoostingRanker(**FEW).fit(X, y, groups=query, X_val=other_X, y_val=other_y, groups_val=other)
    assert 1.0 - model.evals_result_["valid"]["loss"][-1] == pytest.approx(model.score(other_X, other_y, groups=other))


def test_a_scan_brings_its_groups(tmp_path):
    X, y, query = make_lists()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, query=query)
    frame.to_parquet(tmp_path / "lists.parquet")
    rows = spinney.scan(tmp_path / "lists.parquet", target="y", groups="query")
    scanned = GradientBoostingRanker(**FEW).fit(rows)
    plain = GradientBoostingRanker(**FEW).fit(frame[list("abcd")], y, groups=query)
    np.testing.assert_array_equal(scanned.predict(frame[list("abcd")]), plain.predict(frame[list("abcd")]))


def test_a_scan_to_evaluate_on_brings_its_groups(tmp_path):
    X, y, query = make_lists()
    other_X, other_y, other = make_lists(seed=1)
    path = tmp_path / "lists.parquet"
    pd.DataFrame(other_X, columns=list("abcd")).assign(y=other_y, query=other).to_parquet(path)
    rows = spinney.scan(path, target="y", groups="query")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GradientBoostingRanker(**FEW).fit(frame, y, groups=query, X_val=rows)
    plain = GradientBoostingRanker(**FEW).fit(X, y, groups=query, X_val=other_X, y_val=other_y, groups_val=other)
    assert model.evals_result_ == plain.evals_result_
    with pytest.raises(ValueError, match="names its columns itself: leave out their groups"):
        GradientBoostingRanker(**FEW).fit(frame, y, groups=query, X_val=rows, groups_val=other)


def test_a_scan_says_what_its_target_and_its_memory_lack():
    X, y, query = make_lists()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, query=query, word="so")
    with pytest.raises(ValueError, match="y must hold numbers for a regression, got text: 'so'"):
        GradientBoostingRanker(**FEW).fit(spinney.scan(frame, target="word", groups="query"))
    with pytest.raises(ValueError, match="raise it, drop columns, or scan fewer files"):  # there is no other loss
        GradientBoostingRanker(**FEW).fit(spinney.scan(frame, target="y", groups="query", memory="1MB"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1], "groups": [0, 0]}, "X has 600 rows, y has 2"),
        ({"sample_weight": np.ones(3)}, "sample_weight.shape == (3,), expected (600,)"),
        ({"sample_weight": np.zeros(600)}, "Sample weights are all zero"),
        ({"sample_weight": -np.ones(600)}, "Negative values in data passed to `sample_weight`"),
    ],
)
def test_score_names_what_is_wrong(change, message):
    X, y, query = make_lists()
    model = GradientBoostingRanker(**FEW).fit(X, y, groups=query)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.score(X, **{"y": y, "groups": query, **change})


def test_huge_weights_change_no_score():
    X, y, query = make_lists()
    model = GradientBoostingRanker(**FEW).fit(X, y, groups=query)
    assert model.score(X, y, np.full(len(y), 2.0**1023), groups=query) == pytest.approx(
        model.score(X, y, groups=query), rel=1e-12
    )


@pytest.mark.parametrize("metric", ["ndcg", "map"])
def test_no_order_is_better_than_the_best(metric):
    for seed in range(30):
        y = np.random.default_rng(seed).integers(0, 5, 40).astype(float)
        loss = LambdaRank(metric, 30, 40).value(y, None, y[None, :])
        assert 0.0 <= loss < 1e-12


def test_cross_validation_by_groups_works():
    X, y, query = make_lists()
    scores = []
    for train, test in GroupKFold(4).split(X, y, query):
        model = GradientBoostingRanker(**FEW).fit(X[train], y[train], groups=query[train])
        scores.append(model.score(X[test], y[test], groups=query[test]))
    assert min(scores) > 0.7


def test_a_warm_start_continues():
    X, y, query = make_lists()
    whole = GradientBoostingRanker(**FEW).fit(X, y, groups=query)
    model = GradientBoostingRanker(n_estimators=5, random_state=0, warm_start=True).fit(X, y, groups=query)
    model.set_params(n_estimators=12).fit(X, y, groups=query)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([0.0, 1.0, 2.5])}, "y is 2.5 in row 2: relevances are whole numbers from 0 to 31"),
        ({"y": np.array([0.0, -1.0, 2.0])}, "y is -1 in row 1: relevances"),
        ({"y": np.array([0.0, 32.0, 2.0])}, "y is 32 in row 1: relevances"),
        ({"y": None}, "GradientBoostingRanker requires y to be passed"),
        ({"groups": [1, 2]}, r"groups must have one label per row, shape (3,), got shape (2,)"),
        ({"groups": [1.0, np.nan, 2.0]}, "groups must not be missing; row 1 is"),
        ({"groups": np.array([1.0, np.nan, 2.0], object)}, "groups must not be missing; row 1 is"),
        ({"groups": ["a", None, "b"]}, "groups must not be missing; row 1 is"),
        ({"groups": pd.Series([1, None, 2], dtype="Int64")}, "groups must not be missing; row 1 is"),
        ({"groups": pd.to_datetime(["2020-01-01", None, "2020-01-02"])}, "groups must not be missing; row 1 is"),
        ({"y": np.array(["a", "b", "c"])}, "y must hold numbers"),
        ({"n_iter_no_change": 2}, "validation_fraction=0.1 holds out 1 of 1 groups, so that none is left"),
        ({"X_val": np.zeros((2, 1))}, "X_val and y_val belong together"),
        ({"X_val": np.zeros((2, 1)), "groups_val": [0, 0]}, "X_val and y_val belong together"),
        ({"groups_val": [0, 0]}, "groups_val belongs to X_val and y_val, which are not given"),
        ({"X_val": np.zeros((2, 1)), "y_val": [0, 1]}, "groups is given and groups_val is not"),
        ({"X_val": np.zeros((2, 1)), "y_val": [0, np.nan], "groups_val": [0, 0]}, "y_val: Input y contains NaN"),
    ],
)
def test_faults_name_what_is_wrong(change, message):
    given = {"X": np.arange(3.0)[:, None], "y": np.array([0.0, 1.0, 2.0]), "groups": [0, 0, 0], **change}
    settings = {"n_iter_no_change": given.pop("n_iter_no_change", None)}
    with pytest.raises(ValueError, match=re.escape(message)):
        GradientBoostingRanker(**FEW, **settings).fit(**given)


def test_lists_of_one_row_teach_nothing():
    X, y, _ = make_lists(50)
    model = GradientBoostingRanker(**FEW).fit(X, y, groups=np.arange(50))
    assert np.unique(model.predict(X)).tolist() == [0.0]
