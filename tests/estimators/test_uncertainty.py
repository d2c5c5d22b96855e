"""What forests say of their own doubt: against plain loops over their trees and bags, and in effect."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError

import naive_forest
from spinney import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from spinney.ensemble.sampling import split_bag
from spinney.model import forest_uncertainty, forest_votes

pytestmark = pytest.mark.filterwarnings("ignore:pruning='oob' has shaped each tree")

N_ROWS = 40
REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)
NAIVE = {"jackknife": naive_forest.jackknife, "infinitesimal": naive_forest.infinitesimal_jackknife}
GROUPS = np.arange(N_ROWS) % 12
WEIGHT = np.random.default_rng(5).integers(0, 4, N_ROWS).astype(float)  # some are 0

# How rows are drawn and trees made: parameters, and what else fit is given.
DRAWS = {
    "bootstrap": ({}, {}),
    "paste": ({"replace": False, "max_samples": 0.6}, {}),
    "poisson": ({"bootstrap": "poisson"}, {}),
    "groups": ({}, {"groups": GROUPS}),
    "blocks": ({"block_size": 4}, {}),
    "weights that draw": ({}, {"sample_weight": WEIGHT}),
    "weights that trees see": ({"replace": False, "max_samples": 0.6}, {"sample_weight": WEIGHT}),
    "weights and groups": ({}, {"sample_weight": WEIGHT, "groups": GROUPS}),
    "strata": ({}, {"strata": np.arange(N_ROWS) % 3}),
}
TREES = {
    "pruned by cost": {"ccp_alpha": 2.0},
    "pruned out of bag": {"pruning": "oob"},
    "best first": {"max_leaf_nodes": 6},
    "missing in a branch of their own": {"missing": "branch"},
    "small": {"min_samples_leaf": 4, "max_features": "third"},
}
draws = pytest.mark.parametrize("draw", DRAWS)


def make_table(n_rows=N_ROWS, seed=0):
    """Numbers, some missing, and a category; targets with ties."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    X.loc[rng.random(n_rows) < 0.15, "b"] = np.nan
    X["d"] = pd.Categorical(rng.choice(list("uvw"), n_rows))
    y = np.round(3 * X["a"] + (X["d"] == "u") + rng.normal(size=n_rows), 1).to_numpy(copy=True)
    return X, y


def make_forest(kind=RandomForestRegressor, draw="bootstrap", **settings):
    """A forest of twelve trees, and the table it was fitted on."""
    params, data = DRAWS[draw]
    X, y = make_table()
    if kind is RandomForestClassifier:
        y = np.array(["low", "mid", "top"])[np.digitize(y, [-1.0, 1.5])]
    forest = kind(**{"n_estimators": 12, "random_state": 3, **params, **settings})
    return forest.fit(X, y, **data), X, y


def new_rows():
    return make_table(9, seed=1)[0]


def count_bags(forest):
    """How often each row is in each bag, (n_trees, n_rows)."""
    return np.array([np.bincount(bag, minlength=N_ROWS) for bag in forest.estimators_samples_])


def keep_weighed(draw):
    """Rows that are not without weight."""
    return np.flatnonzero(DRAWS[draw][1].get("sample_weight", np.ones(N_ROWS)) > 0)


def naive_oob(forest, X, draw="bootstrap"):
    """Mean of the trees that have not seen the row, NaN where there is none: (n_rows,), or (n_rows, n_classes)."""
    said, counts = forest.predict_trees(X), count_bags(forest)
    found = np.full(said.shape[1:], np.nan)
    for i in keep_weighed(draw):
        if (counts[:, i] == 0).any():
            found[i] = said[counts[:, i] == 0, i].mean(axis=0)
    return found


# --- single trees -------------------------------------------------------------------------------------------------


@draws
def test_trees_say_what_the_single_estimators_say(draw):
    forest, _, _ = make_forest(draw=draw)
    said = forest.predict_trees(new_rows())
    np.testing.assert_array_equal(said, [tree.predict(new_rows()) for tree in forest.estimators_])
    np.testing.assert_allclose(said.mean(axis=0), forest.predict(new_rows()), rtol=1e-14)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_trees_say_class_shares_or_votes(voting):
    forest, _, _ = make_forest(RandomForestClassifier, voting=voting, min_samples_leaf=5)
    said = forest.predict_trees(new_rows())
    if voting == "soft":
        np.testing.assert_allclose(said, [tree.predict_proba(new_rows()) for tree in forest.estimators_], rtol=1e-14)
        assert ((said > 0) & (said < 1)).any()
    else:
        votes = np.stack([tree.predict(new_rows()) for tree in forest.estimators_])
        np.testing.assert_array_equal(said, votes[:, :, None] == forest.classes_)
    np.testing.assert_allclose(said.mean(axis=0), forest.predict_proba(new_rows()), rtol=1e-13)


# --- variances ----------------------------------------------------------------------------------------------------


def leave_out(draw):
    """One row of everything that is drawn as a whole."""
    rows = keep_weighed(draw)
    groups = GROUPS if "groups" in DRAWS[draw][1] else np.arange(N_ROWS) // DRAWS[draw][0].get("block_size", 1)
    return rows[np.unique(groups[rows], return_index=True)[1]]


@draws
@pytest.mark.parametrize("kind", NAIVE)
@pytest.mark.parametrize("correction", forest_uncertainty.CORRECTIONS)
@pytest.mark.filterwarnings("ignore:.*noise of 12 trees")
def test_variances_equal_the_plain_formulas(draw, kind, correction):
    forest, _, _ = make_forest(draw=draw)
    said = forest.predict_trees(new_rows())
    counts = count_bags(forest)[:, leave_out(draw)].tolist()
    expected = [NAIVE[kind](column, counts, correction) for column in said.T.tolist()]
    found = forest.predict_variance(new_rows(), kind, correction=correction)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert correction != "none" or (found > 0).any()


def test_variance_over_trees_is_that_of_the_trees():
    forest, _, _ = make_forest(ExtraTreesRegressor)
    found = forest.predict_variance(new_rows())
    np.testing.assert_allclose(found, forest.predict_trees(new_rows()).var(axis=0), rtol=1e-12, atol=1e-12)
    assert (found > 0).any()


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_variances_of_class_shares(voting):
    forest, _, _ = make_forest(RandomForestClassifier, voting=voting)
    said, counts = forest.predict_trees(new_rows()), count_bags(forest).tolist()
    np.testing.assert_allclose(forest.predict_variance(new_rows()), said.var(axis=0), atol=1e-15)
    found = forest.predict_variance(new_rows(), "jackknife", correction="none")
    expected = [[naive_forest.jackknife(said[:, r, c].tolist(), counts, "none") for c in range(3)] for r in range(9)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_jackknives_find_the_variance_of_a_mean():
    """A forest without a test predicts the mean of y, whose variance is known."""
    y = np.random.default_rng(0).normal(size=25)
    forest = RandomForestRegressor(n_estimators=1000, random_state=0).fit(np.zeros((25, 1)), y)
    for kind in NAIVE:
        assert forest.predict_variance([[0.0]], kind)[0] == pytest.approx(y.var() / 25, rel=0.1)


def test_variances_hidden_by_noise_are_named():
    forest, _, _ = make_forest(n_estimators=6)
    new = make_table(200, seed=1)[0]
    with pytest.warns(UserWarning, match=r"noise of 6 trees and are given as 0: grow more .* 40 rows") as caught:
        found = forest.predict_variance(new, "infinitesimal")
    n_hidden = np.count_nonzero((found == 0.0) & (np.ptp(forest.predict_trees(new), axis=0) > 0))
    assert str(caught[0].message).startswith(f"{n_hidden} of 200 ")
    grouped, _, _ = make_forest(draw="groups", n_estimators=6)
    with pytest.warns(UserWarning, match=r"the 12 groups"):
        grouped.predict_variance(new, "infinitesimal")
    agreed = RandomForestRegressor(n_estimators=6, random_state=0).fit([[0.0], [1.0]] * 20, [5.0] * 40)
    assert agreed.predict_variance([[0.5]], "infinitesimal").tolist() == [0.0]  # truly 0, and no warning


# --- quantiles ----------------------------------------------------------------------------------------------------

LEVELS = [Fraction(1, 2), Fraction(0), Fraction(1, 10), Fraction(1), Fraction(19, 20)]


def naive_quantiles(forest, X, y, counts, weight=None):
    leaves, own = forest.apply(X).T, forest.apply(new_rows())
    weight = None if weight is None else weight.tolist()
    rows = [naive_forest.forest_weights(leaf, leaves.tolist(), counts.tolist(), weight) for leaf in own.tolist()]
    predicted = [sum(float(w) * t for w, t in zip(row, y.tolist(), strict=True)) for row in rows]
    np.testing.assert_allclose(predicted, forest.predict(new_rows()), rtol=1e-9)  # the truth is about this forest
    return [[naive_forest.forest_quantile(row, y.tolist(), level) for level in LEVELS] for row in rows]


@draws
@pytest.mark.sampled(2)
def test_quantiles_are_meinshausens(draw):
    forest, X, y = make_forest(draw=draw, keep_members=True)
    weight = WEIGHT if "that trees see" in draw or "and groups" in draw else None
    expected = naive_quantiles(forest, X, y, count_bags(forest), weight)
    found = forest.predict_quantiles(new_rows(), [float(level) for level in LEVELS])
    np.testing.assert_array_equal(found, expected)
    train = (X, y) if weight is None else (X, y, WEIGHT)
    again = forest.predict_quantiles(new_rows(), [float(level) for level in LEVELS], train=train)
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("trees", TREES)
@pytest.mark.sampled(3)
def test_quantiles_of_trees_of_any_make(kind, trees):
    bags = {"bootstrap": True} if trees == "pruned out of bag" else {}
    forest, X, y = make_forest(kind, keep_members=True, **TREES[trees], **bags)
    expected = naive_quantiles(forest, X, y, count_bags(forest))
    for train in (None, (X, y)):
        found = forest.predict_quantiles(new_rows(), [float(level) for level in LEVELS], train=train)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("draw", ["bootstrap", "groups"])
def test_quantiles_of_honest_trees_come_from_the_part_that_made_the_values(draw):
    forest, X, y = make_forest(draw=draw, honest=True, honest_fraction=0.4, keep_members=True)
    groups = forest._draw.groups
    parts = [split_bag(bag, t, forest._seed, 0.4, groups)[1] for t, bag in enumerate(count_bags(forest))]
    expected = naive_quantiles(forest, X, y, np.array(parts))
    found = forest.predict_quantiles(new_rows(), [float(level) for level in LEVELS], train=(X, y))
    np.testing.assert_array_equal(found, expected)
    for change in ({}, {"honest_fraction": 0.7}, {"honest": False}):  # what counts is how the trees were grown
        forest.set_params(**change)
        found = forest.predict_quantiles(new_rows(), [float(level) for level in LEVELS])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("trees", ["pruned by cost", "pruned out of bag", "missing in a branch of their own"])
def test_kept_members_of_honest_trees_follow_them_through_pruning(trees):
    forest, X, y = make_forest(honest=True, keep_members=True, **TREES[trees])
    levels = [float(level) for level in LEVELS]
    np.testing.assert_array_equal(
        forest.predict_quantiles(new_rows(), levels), forest.predict_quantiles(new_rows(), levels, train=(X, y))
    )


def test_one_level_gives_one_number_a_row():
    forest, _, _ = make_forest(keep_members=True)
    default = forest.predict_quantiles(new_rows())
    assert default.shape == (9, 3)
    np.testing.assert_array_equal(forest.predict_quantiles(new_rows(), 0.95), default[:, 2])
    assert (np.diff(default) >= 0).all()


def test_quantiles_want_the_weights_of_the_fit():
    forest, X, y = make_forest(draw="weights that trees see")
    with pytest.raises(ValueError, match="sample weights: pass train="):
        forest.predict_quantiles(new_rows(), train=(X, y))
    with pytest.raises(ValueError, match="not what fit has seen"):
        forest.predict_quantiles(new_rows(), train=(X, y, WEIGHT[::-1]))
    with pytest.raises(ValueError, match="sample_weight"):
        forest.predict_quantiles(new_rows(), train=(X, y, WEIGHT[1:]))


# --- intervals and sets -------------------------------------------------------------------------------------------


@draws
@pytest.mark.filterwarnings("ignore:.*rows were in every bag")
def test_intervals_are_those_of_the_jackknife_plus(draw):
    forest, X, y = make_forest(draw=draw, oob_score=True)
    rows = keep_weighed(draw)
    oob, counts = naive_oob(forest, X, draw)[rows], count_bags(forest)[:, rows]
    used = ~np.isnan(oob)
    naive = [
        naive_forest.interval_after_bootstrap(
            said, counts[:, used].tolist(), oob[used].tolist(), y[rows][used].tolist(), Fraction(4, 5)
        )
        for said in forest.predict_trees(new_rows()).T.tolist()
    ]
    found = forest.predict_interval(new_rows(), coverage=0.8)
    np.testing.assert_allclose(found, naive, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found, forest.predict_interval(new_rows(), 0.8, train=(X, y)))
    residuals = np.sort(np.abs(y[rows] - oob)[used])
    half = residuals[int(np.ceil(Fraction(4, 5) * (len(residuals) + 1))) - 1]
    plain = forest.predict_interval(new_rows(), 0.8, method="oob")
    np.testing.assert_allclose(plain, forest.predict(new_rows())[:, None] + [[-half, half]], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(plain, forest.predict_interval(new_rows(), 0.8, method="oob", train=(X, y)))


@draws
@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.filterwarnings("ignore:.*rows were in every bag")
def test_sets_are_those_of_the_jackknife_plus(draw, voting):
    forest, X, y = make_forest(RandomForestClassifier, draw, oob_score=True, voting=voting)
    rows = keep_weighed(draw)
    codes = np.searchsorted(forest.classes_, y)[rows]
    oob, counts = naive_oob(forest, X, draw)[rows], count_bags(forest)[:, rows]
    used = ~np.isnan(oob[:, 0])
    naive = [
        naive_forest.set_after_bootstrap(
            said, counts[:, used].tolist(), oob[used].tolist(), codes[used].tolist(), Fraction(4, 5)
        )
        for said in forest.predict_trees(new_rows()).swapaxes(0, 1).tolist()
    ]
    found = forest.predict_set(new_rows(), 0.8)
    np.testing.assert_array_equal(found, naive)
    np.testing.assert_array_equal(found, forest.predict_set(new_rows(), 0.8, train=(X, y)))
    scores = np.sort(1 - oob[used, codes[used]])
    limit = scores[int(np.ceil(Fraction(4, 5) * (len(scores) + 1))) - 1]
    plain = forest.predict_set(new_rows(), 0.8, method="oob")
    np.testing.assert_array_equal(plain, 1 - forest.predict_proba(new_rows()) <= limit + 1e-9)
    np.testing.assert_array_equal(plain, forest.predict_set(new_rows(), 0.8, method="oob", train=(X, y)))


@pytest.mark.parametrize("settings", [{}, {"voting": "hard"}, {"replace": False, "max_samples": 0.3}])
def test_settled_classes_need_no_products(monkeypatch, settings):
    """Sums over all trees decide many classes; what they decide is what the trees without each row say."""
    X, numbers = make_friedman1(300, noise=1.0, random_state=0)
    y = np.digitize(numbers, [11, 14, 18])
    forest = RandomForestClassifier(n_estimators=40, min_samples_leaf=3, oob_score=True, random_state=0, **settings)
    forest.fit(X[:120], y[:120])
    settle, n_open = forest_uncertainty.settle_sets, []

    def note(said, limits):
        is_in, is_open = settle(said, limits)
        n_open.append(np.count_nonzero(is_open))
        assert not (is_in & is_open).any()
        return is_in, is_open

    for coverage in (0.1, 0.5, 0.8, 0.9, 0.995):
        monkeypatch.setattr(forest_uncertainty, "settle_sets", note)
        found = forest.predict_set(X[120:], coverage)
        monkeypatch.setattr(forest_uncertainty, "settle_sets", lambda said, _: (said[0] < 0.0, said[0] >= 0.0))
        np.testing.assert_array_equal(found, forest.predict_set(X[120:], coverage))
        assert n_open.pop() < found.size


def test_auto_takes_the_fast_way_on_large_tables(monkeypatch):
    forest, _, _ = make_forest(oob_score=True)
    classes, _, _ = make_forest(RandomForestClassifier, oob_score=True)
    slow, fast = (forest.predict_interval(new_rows(), method=method) for method in ("jackknife+", "oob"))
    assert not np.allclose(slow, fast)
    for limit, expected, method in [(N_ROWS, slow, "jackknife+"), (N_ROWS - 1, fast, "oob")]:
        monkeypatch.setattr(forest_uncertainty, "MOST_ROWS", limit)
        np.testing.assert_array_equal(forest.predict_interval(new_rows()), expected)
        np.testing.assert_array_equal(classes.predict_set(new_rows()), classes.predict_set(new_rows(), method=method))


def test_too_few_rows_for_the_coverage_promise_nothing():
    forest, _, _ = make_forest(oob_score=True)
    classes, _, _ = make_forest(RandomForestClassifier, oob_score=True)
    for method in ("jackknife+", "oob"):
        assert np.isinf(forest.predict_interval(new_rows(), 0.99, method=method)).all()
        assert np.isfinite(forest.predict_interval(new_rows(), 0.9, method=method)).all()
        assert classes.predict_set(new_rows(), 0.99, method=method).all()


def test_one_class_is_always_in_its_set():
    X, y = np.arange(30.0)[:, None], np.full(30, "only")
    forest = RandomForestClassifier(n_estimators=20, oob_score=True, random_state=0).fit(X, y)
    assert forest.predict_set(X[:4]).tolist() == [[True]] * 4
    assert forest.predict_trees(X[:4]).shape == (20, 4, 1)


# --- the same answer however it is asked --------------------------------------------------------------------------


def ask_everything(forest, X):
    if hasattr(forest, "classes_"):
        more = [forest.predict_set(X, 0.8), forest.predict_set(X, 0.8, method="oob")]
    else:
        more = [forest.predict_quantiles(X), forest.predict_interval(X), forest.predict_interval(X, method="oob")]
    return [
        forest.predict_trees(X),
        *(forest.predict_variance(X, kind, correction="none") for kind in forest_uncertainty.KINDS),
        *more,
    ]


@pytest.fixture(params=[RandomForestRegressor, RandomForestClassifier], ids=["numbers", "classes"])
def asked(request):
    """A fitted forest, new rows in plenty, and all answers."""
    keep = {"keep_members": True} if request.param in REGRESSORS else {}
    forest, X, y = make_forest(request.param, oob_score=True, min_samples_leaf=3, **keep)
    new = pd.concat([make_table(150, seed=2)[0]] * 2, ignore_index=True)
    return forest, X, y, new, ask_everything(forest, new)


def same(some, others):
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_and_blocks_change_nothing(asked, monkeypatch):
    forest, X, y, new, answers = asked
    monkeypatch.setattr(forest_votes, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(forest_votes, "MOST_BLOCK", 7)
    for n_jobs in (1, 2, 5):
        same(ask_everything(forest.set_params(n_jobs=n_jobs), new), answers)
    monkeypatch.setattr(forest_uncertainty, "HELD_CELLS", 0)  # bags are drawn again for every block
    same(ask_everything(forest, new), answers)
    kept = forest._fitted
    forest._fitted = replace(kept, out_of_bag=None, target=None, leaf_rows=None)
    if hasattr(forest, "classes_"):
        same([forest.predict_set(new, 0.8, train=(X, y))], [answers[4]])
    else:
        same([forest.predict_quantiles(new, train=(X, y)), forest.predict_interval(new, train=(X, y))], answers[4:6])
    forest._fitted = kept


def test_a_row_does_not_depend_on_its_neighbours(asked):
    forest, _, _, new, answers = asked
    alone = ask_everything(forest, new.iloc[[4]])
    for one, all_rows in zip(alone, answers, strict=True):
        expected = all_rows[:, [4]] if len(all_rows) == len(forest) else all_rows[[4]]
        np.testing.assert_array_equal(one, expected)


def test_a_pickled_forest_says_the_same(asked):
    forest, _, _, new, answers = asked
    same(ask_everything(pickle.loads(pickle.dumps(forest)), new), answers)


def test_fit_keeps_its_own_targets(asked):
    forest, X, y, new, answers = asked
    y[:] = y[0]
    X.loc[:, "a"] = 0.0
    same(ask_everything(forest, new), answers)


@pytest.mark.parametrize("kind", [RandomForestRegressor, RandomForestClassifier])
def test_a_warm_start_says_what_one_fit_says(kind):
    settings = {"oob_score": True, "min_samples_leaf": 3, **({"keep_members": True} if kind in REGRESSORS else {})}
    whole, X, y = make_forest(kind, **settings)
    forest, _, _ = make_forest(kind, n_estimators=9, warm_start=True, **settings)
    forest.set_params(n_estimators=12).fit(X, y)
    same(ask_everything(forest, new_rows()), ask_everything(whole, new_rows()))


def test_a_fit_forgets_what_it_was_not_asked_for():
    forest, X, y = make_forest(oob_score=True, keep_members=True)
    forest.set_params(oob_score=False).fit(X, y)
    forest.predict_quantiles(new_rows())
    with pytest.raises(ValueError, match="fit with oob_score=True, or pass train="):
        forest.predict_interval(new_rows())
    forest.set_params(keep_members=False).fit(X, y)
    with pytest.raises(ValueError, match="fit with keep_members=True, or pass train="):
        forest.predict_quantiles(new_rows())
    assert not {"_y", "_weight"} & set(vars(forest))


# --- what is refused ----------------------------------------------------------------------------------------------


def test_methods_belong_to_their_kind():
    assert not hasattr(RandomForestRegressor, "predict_set")
    assert not hasattr(RandomForestClassifier, "predict_interval")
    assert not hasattr(RandomForestClassifier, "predict_quantiles")


@pytest.mark.parametrize("method", ["predict_trees", "predict_variance", "predict_quantiles", "predict_interval"])
def test_an_unfitted_forest_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(RandomForestRegressor(), method)([[0.0]])


def test_without_bags_there_is_no_left_out_row():
    forest, X, y = make_forest(ExtraTreesRegressor)
    for ask in (
        lambda: forest.predict_variance(X, "jackknife"),
        lambda: forest.predict_variance(X, "infinitesimal"),
        lambda: forest.predict_interval(X, train=(X, y)),
    ):
        with pytest.raises(ValueError, match=r"needs bags.*fit with bootstrap=True"):
            ask()
    full = RandomForestRegressor(n_estimators=3, replace=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="out of any bag"):
        full.predict_interval(X, train=(X, y))


def test_bad_arguments_are_named():
    forest, X, y = make_forest(oob_score=True, keep_members=True)
    for coverage, error in [
        (0.0, ValueError),
        (1.0, ValueError),
        (90, ValueError),
        ("0.9", TypeError),
        (True, TypeError),
    ]:
        with pytest.raises(error, match="coverage"):
            forest.predict_interval(X, coverage)
    for levels, error in [(-0.1, ValueError), ([0.5, np.nan], ValueError), ([], ValueError), ("low", TypeError)]:
        with pytest.raises(error, match="quantiles"):
            forest.predict_quantiles(X, levels)
    with pytest.raises(ValueError, match="kind must be one of 'trees', 'jackknife'"):
        forest.predict_variance(X, "jacknife")
    with pytest.raises(ValueError, match="correction must be one of"):
        forest.predict_variance(X, "jackknife", correction="some")
    with pytest.raises(ValueError, match="method must be one of"):
        forest.predict_interval(X, method="split")
    with pytest.raises(ValueError, match=r"train must be \(X, y\)"):
        forest.predict_interval(X, train=X)
    for ask in (forest.predict_interval, forest.predict_quantiles):
        with pytest.raises(ValueError, match="not the training data"):
            ask(X, train=(X, y + 1.0))


# --- coverage -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def friedman():
    """Forests on 200 rows each, and new rows."""
    forests = []
    for seed in range(4):  # a single table of this size covers 0.8 with a standard deviation of 0.04
        X, y = make_friedman1(1200, noise=1.0, random_state=seed)
        settings = {"min_samples_leaf": 5, "oob_score": True, "keep_members": True, "random_state": seed}
        forests.append((RandomForestRegressor(n_estimators=50, **settings).fit(X[:200], y[:200]), X[200:], y[200:]))
    return forests


@pytest.mark.parametrize("method", ["jackknife+", "oob"])
@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_intervals_cover(friedman, method, coverage):
    covered = []
    for forest, X, y in friedman:
        low, high = forest.predict_interval(X, coverage, method=method).T
        covered.append(np.mean((low <= y) & (y <= high)))
    assert coverage - 0.03 < np.mean(covered) < coverage + 0.07  # a third of 50 trees err more than all of them


def test_quantiles_part_the_targets(friedman):
    below = [(y[:, None] <= forest.predict_quantiles(X, [0.1, 0.5, 0.9])).mean(axis=0) for forest, X, y in friedman]
    assert np.mean(below, axis=0) == pytest.approx([0.1, 0.5, 0.9], abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "n_train"),
    [
        ("california_housing", "MedHouseVal", 16_512),
        ("bike_sharing_hour", "cnt", 13_903),
        ("satimage", "class", 5_148),
        ("adult", "income", 39_073),
    ],
)
def test_coverage_on_real_tables(shared_data, name, target, n_train):
    """Within 1.5 points of nominal, in the mean of five splits."""
    table = pd.read_parquet(shared_data / f"{name}.parquet")
    X = table.drop(columns=[target, "split", "casual", "registered"], errors="ignore")
    y = table[target].to_numpy()
    covered = []
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        settings = {"n_estimators": 200, "oob_score": True, "random_state": seed}
        if name in {"satimage", "adult"}:
            forest = RandomForestClassifier(**settings).fit(X.iloc[train], y[train])
            is_in = forest.predict_set(X.iloc[test], coverage=0.9)
            covered.append(np.mean(is_in[y[test][:, None] == forest.classes_]))
        else:
            forest = RandomForestRegressor(max_features="third", **settings).fit(X.iloc[train], y[train])
            low, high = forest.predict_interval(X.iloc[test], coverage=0.9).T
            covered.append(np.mean((low <= y[test]) & (y[test] <= high)))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.015)
