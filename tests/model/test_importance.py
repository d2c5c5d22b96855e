"""Importances: permuted rows against a walk of each row by itself, the rest against formulas written out."""

import doctest
import itertools
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spinney import RandomForestClassifier, RandomForestRegressor, _jit
from spinney.model import correlation, importance_table, permutation
from spinney.model.correlation import correlate, find_partners
from spinney.model.importance import unbiased_decrease
from spinney.model.importance_table import ImportanceTable, tabulate
from spinney.model.permutation import LeftOut, Trial, disjoint, leaf_predictions

KERNELS = [pytest.param(_jit.load_compiled, id="compiled"), pytest.param(_jit.interpreted, id="interpreted")]


def test_the_examples_of_the_docstrings_are_true():
    done = doctest.testmod(importance_table)
    assert done.attempted > 2
    assert done.failed == 0


def mixed_table(n_rows, seed, *, dtype=np.float64):
    """Two numbers with missing values, one category, and a target that depends on all of them."""
    draw = np.random.default_rng(seed)
    X = np.column_stack([draw.normal(size=(n_rows, 2)), draw.integers(0, 5, n_rows)]).astype(dtype)
    y = X[:, 0] + 0.5 * X[:, 1] + (X[:, 2] % 2) + draw.normal(scale=0.3, size=n_rows)
    X[draw.random(n_rows) < 0.1, 0] = np.nan
    return X, y


def forest_of(kind, X, y, **params):
    params = {"n_estimators": 3, "random_state": 1, "categorical_features": [2], **params}
    if kind == "classes":
        return RandomForestClassifier(**params).fit(X, np.digitize(y, [0.0, 1.0]))
    return RandomForestRegressor(**params).fit(X, y)


def left_out(forest, X, y, tree=0, units=None, k=None, **options):
    values, truth = forest._training_values(X, y)
    units = units or tuple(np.array([j]) for j in range(values.shape[1]))
    trial = Trial(forest.forest_, values, truth, units, 5, **options)
    rows = np.flatnonzero(forest._draw.counts(tree) == 0).astype(np.int32)
    return LeftOut(trial, tree, rows, k or _jit.load_compiled())


def walk(tree, row):
    """The leaf of one row, test by test."""
    node = 0
    while not tree.is_leaf[node]:
        value = row[tree.feature[node]]
        if np.isnan(value):
            branch = tree.missing_branch[node]
        elif tree.n_levels[tree.feature[node]]:
            branch = 0 if tree.subset(node)[int(value)] else 1
        else:
            branch = 0 if value <= tree.threshold[node] else 1
        node = tree.first_child[node] + branch
    return node


# --- Permuted rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_end_where_a_walk_with_their_source_s_values_ends(kernels, missing, dtype):
    X, y = mixed_table(150, 0, dtype=dtype)
    forest = forest_of("classes", X, y, missing=missing)
    truth = np.digitize(y, [0.0, 1.0])
    tree = forest.forest_[1]
    assert missing == "learned" or np.any(tree.n_branches == 3)
    assert np.any(tree.n_levels[tree.feature[~tree.is_leaf]] > 0)
    some = left_out(forest, X, truth, 1, (np.array([0, 2]), np.array([1])), kernels())
    source = np.stack([some.draw_sources(u, 0) for u in range(2)])
    leaf = np.full(len(some.rows), -1, np.int32)
    (changes,) = some.reroute(np.array([0, 1, 0], np.int32), source, leaf)
    values = some.trial.table[some.rows]
    np.testing.assert_array_equal(leaf, [walk(tree, row) for row in values])
    moved = np.stack([leaf, leaf])
    unit, place, end = changes
    assert len(set(zip(unit.tolist(), place.tolist(), strict=True))) == len(unit) > 20
    moved[unit, place] = end
    for u, features in enumerate(([0, 2], [1])):
        permuted = values.copy()
        permuted[:, features] = values[source[u]][:, features]
        np.testing.assert_array_equal(moved[u], [walk(tree, row) for row in permuted])


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_importance_of_a_tree_equals_the_rise_of_its_error(kind, monkeypatch):
    X, y = mixed_table(200, 3)
    forest = forest_of(kind, X, y, max_features=None)
    truth = np.digitize(y, [0.0, 1.0]) if kind == "classes" else y
    some = left_out(forest, X, truth, n_repeats=2)
    tree, values, truth = forest.forest_[0], some.trial.table[some.rows], truth[some.rows]

    def error(values):
        leaf = [walk(tree, row) for row in values]
        said = tree.leaf_class[leaf] if kind == "classes" else tree.threshold[leaf]
        return np.mean(said != truth) if kind == "classes" else np.mean((said - truth) ** 2)

    expected = np.zeros(3)
    for j, repeat in itertools.product(range(3), range(2)):
        permuted = values.copy()
        permuted[:, j] = values[some.draw_sources(j, repeat), j]
        expected[j] += (error(permuted) - error(values)) / 2
    found = some.permutation()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    assert np.all(expected[:2] > 0)
    twin = left_out(forest, X, some.trial.truth, n_repeats=2, k=_jit.interpreted()).permutation()
    assert found.tobytes() == twin.tobytes()
    monkeypatch.setattr(permutation, "WALKERS", 7)  # a few rows at a time
    np.testing.assert_allclose(some.permutation(), found, rtol=1e-12)
    monkeypatch.setattr(permutation, "SOURCES", 1)  # one unit at a time
    np.testing.assert_allclose(some.permutation(), found, rtol=1e-12)


def test_a_tree_of_one_leaf_and_unused_features_have_no_importance():
    X, y = mixed_table(60, 1)
    stump = forest_of("numbers", X, y, max_depth=1, max_features=1)
    some = left_out(stump, X, y)
    used = stump.forest_[0].feature[0]
    assert np.flatnonzero(some.permutation()).tolist() == [used]
    leaf = RandomForestRegressor(n_estimators=2, min_samples_split=61, random_state=0).fit(X, y)
    values, truth = leaf._training_values(X, y)
    trial = Trial(leaf.forest_, values, truth, tuple(np.array([j]) for j in range(3)), 0)
    rows = np.flatnonzero(leaf._draw.counts(0) == 0).astype(np.int32)
    assert LeftOut(trial, 0, rows, _jit.load_compiled()).permutation().tolist() == [0.0] * 3


def test_units_that_share_features_are_kept_apart():
    units = [np.array(u) for u in ([0, 1], [1, 2], [3], [0], [4])]
    assert disjoint(range(5), units, 9) == [[0, 2, 4], [1, 3]]
    assert disjoint([0, 2, 4], units, 2) == [[0, 2], [4]]
    X, y = mixed_table(100, 4)
    forest = forest_of("numbers", X, y)
    together = left_out(forest, X, y, units=(np.array([0, 1]), np.array([1, 2]))).permutation()
    apart = [left_out(forest, X, y, units=(np.array(u),)).permutation()[0] for u in ([0, 1], [1, 2])]
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_leaf_answers_are_those_of_the_trees():
    X, y = mixed_table(80, 5)
    for kind in ("classes", "numbers"):
        forest = forest_of(kind, X, y, max_depth=3).forest_
        for t, tree in enumerate(forest):
            said = leaf_predictions(forest, t)[tree.is_leaf]
            expected = tree.leaf_class if kind == "classes" else tree.threshold
            np.testing.assert_array_equal(said, expected[tree.is_leaf])


# --- Permutations -------------------------------------------------------------------------------------------


def shuffle(order, begin, *, tree=0, unit=0, repeat=0, kernels=_jit.load_compiled):
    order = np.array(order, np.int32)
    source = np.full(len(order), -1, np.int32)
    key = [np.uint64(part) for part in (9, tree, unit, repeat)]
    kernels().predict.permutation.shuffle(*key, order, np.array(begin, np.int64), np.empty_like(order), source)
    return source


def test_shuffles_are_uniform_and_keep_to_their_cells():
    seen = {}
    for tree in range(3000):
        source = tuple(shuffle([2, 0, 1, 4, 3], [0, 3, 5], tree=tree).tolist())
        assert sorted(source[:3]) == [0, 1, 2]
        assert sorted(source[3:]) == [3, 4]
        seen[source] = seen.get(source, 0) + 1
    assert len(seen) == 12
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


def test_each_part_of_the_key_makes_another_permutation():
    draws = [shuffle(range(50), [0, 50], **{part: 1}).tobytes() for part in ("tree", "unit", "repeat")]
    draws.append(shuffle(range(50), [0, 50]).tobytes())
    assert len(set(draws)) == 4
    assert draws[-1] == shuffle(range(50), [0, 50], kernels=_jit.interpreted).tobytes()


@pytest.mark.parametrize("kernels", KERNELS)
def test_cells_are_the_rows_alike_at_the_largest_tests_of_the_partners(kernels):
    X, y = mixed_table(200, 7)
    forest = forest_of("numbers", X, y, missing="branch")
    some = left_out(forest, X, y, k=kernels())
    stratum, n_strata = some.part_rows(np.array([True, False, True]))
    tree, values = forest.forest_[0], some.trial.table[some.rows]
    nodes = [v for v in range(tree.n_nodes) if tree.feature[v] in {0, 2}]
    nodes.sort(key=lambda v: -int(tree.n_rows[v]))

    def branches(v, row):
        value = row[tree.feature[v]]
        if np.isnan(value):
            return tree.missing_branch[v]
        return int(not tree.subset(v)[int(value)]) if tree.feature[v] == 2 else int(value > tree.threshold[v])

    answers = [()] * len(values)
    for v in nodes:
        finer = [(*a, branches(v, row)) for a, row in zip(answers, values, strict=True)]
        if len(set(finer)) > len(values) // permutation.STRATUM_ROWS:
            break
        answers = finer
    assert n_strata == len(set(answers)) > 5
    assert len(set(zip(answers, stratum.tolist(), strict=True))) == n_strata == len(set(stratum.tolist()))
    alone, n_alone = some.part_rows(np.zeros(3, bool))
    assert n_alone == 1
    assert not alone.any()


def test_conditional_sources_stay_in_their_cells():
    X, y = mixed_table(200, 8)
    forest = forest_of("numbers", X, y)
    partners = np.array([[False, True, True]] * 3)
    some = left_out(forest, X, y, partners=partners)
    stratum, _ = some.part_rows(partners[0])
    source = some.draw_sources(0, 0)
    assert sorted(source.tolist()) == list(range(len(stratum)))
    np.testing.assert_array_equal(stratum[source], stratum)
    assert np.count_nonzero(source != np.arange(len(stratum))) > len(stratum) / 2


# --- Impurity, confirmed out of the bag ---------------------------------------------------------------------


class NaiveNodes:
    """Class shares, or means counted from the bag's, of any rows in any node."""

    def __init__(self, tree, leaf, y, centre):
        self.tree, self.y, self.centre = tree, y, centre
        self.paths = [self.path(int(v)) for v in leaf]

    def path(self, v):
        return {v} if v == 0 else {v} | self.path(int(self.tree.parent[v]))

    def rows(self, v):
        return self.y[[v in path for path in self.paths]]

    def share(self, v):
        """Of the node, or of the nearest ancestor with rows."""
        rows = self.rows(v)
        if len(rows) == 0:
            return self.share(int(self.tree.parent[v]))
        return (
            np.bincount(rows, minlength=3) / len(rows) if self.centre is None else np.array([rows.mean() - self.centre])
        )


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_unbiased_decrease_equals_its_formula_node_by_node(kind):
    X, y = mixed_table(60, 11)
    forest = forest_of(kind, X, y, missing="branch")
    truth = np.digitize(y, [0.0, 1.0]) if kind == "classes" else y
    some = left_out(forest, X, truth)
    tree, leaf = forest.forest_[0], some.find_leaves()
    bag = np.repeat(np.arange(60), forest._draw.counts(0))
    centre = None if kind == "classes" else truth[bag].mean()
    inside = NaiveNodes(tree, [walk(tree, row) for row in some.trial.table[bag]], truth[bag], centre)
    outside = NaiveNodes(tree, leaf, truth[some.rows], centre)
    agreement = [
        len(inside.rows(v)) / len(bag) * float(inside.share(v) @ outside.share(v)) for v in range(tree.n_nodes)
    ]
    expected = np.zeros(3)
    for v in np.flatnonzero(~tree.is_leaf):
        children = range(tree.first_child[v], tree.first_child[v] + tree.n_branches[v])
        expected[tree.feature[v]] += sum(agreement[c] for c in children) - agreement[v]
    assert any(len(outside.rows(v)) == 0 for v in range(tree.n_nodes))
    np.testing.assert_allclose(unbiased_decrease(tree, leaf, truth[some.rows]), expected, rtol=1e-9, atol=1e-12)


def test_on_the_bag_itself_the_unbiased_decrease_is_the_decrease():
    X, y = mixed_table(80, 12)
    forest = forest_of("numbers", X, y, bootstrap=False, n_estimators=1)
    tree = forest.forest_[0]
    values, truth = forest._training_values(X, y)
    leaf = np.array([walk(tree, row) for row in values], np.int32)
    found = unbiased_decrease(tree, leaf, truth)
    np.testing.assert_allclose(found / found.sum(), tree.importances(), rtol=1e-9)
    assert found.sum() == pytest.approx(np.var(y), rel=1e-9)
    shifted = forest_of("numbers", X, y + 1e6, bootstrap=False, n_estimators=1)
    np.testing.assert_allclose(unbiased_decrease(shifted.forest_[0], leaf, y + 1e6), found, rtol=1e-6)


# --- Correlation --------------------------------------------------------------------------------------------


def test_numbers_correlate_by_spearman():
    draw = np.random.default_rng(0)
    X = draw.integers(0, 6, (200, 3)) + draw.integers(0, 3, (200, 1))
    found = correlate(X.astype(float), np.zeros(3, np.int32))
    np.testing.assert_allclose(found, np.abs(stats.spearmanr(X).statistic), rtol=1e-12)


def test_categories_correlate_by_the_corrected_v_and_ratio():
    draw = np.random.default_rng(1)
    a = draw.integers(0, 4, 300)
    b = np.where(draw.random(300) < 0.5, a % 3, draw.integers(0, 3, 300))
    number = a + draw.normal(size=300)
    X = np.column_stack([a, b, number]).astype(float)
    found = correlate(X, np.array([4, 3, 0], np.int32))
    chi2 = stats.contingency.chi2_contingency(pd.crosstab(a, b).to_numpy(), correction=False).statistic
    phi2 = chi2 / 300 - 3 * 2 / 299
    expected = np.sqrt(phi2 / min(4 - 9 / 299 - 1, 3 - 4 / 299 - 1))
    assert found[0, 1] == found[1, 0] == pytest.approx(expected, rel=1e-12)
    f = stats.f_oneway(*(stats.rankdata(number)[a == level] for level in range(4))).statistic
    share = 3 * f / (3 * f + 296)
    assert found[0, 2] == found[2, 0] == pytest.approx(np.sqrt(1 - (1 - share) * 299 / 296), rel=1e-12)


def test_what_does_not_vary_or_is_missing_correlates_with_nothing():
    draw = np.random.default_rng(2)
    X = np.column_stack([np.full(40, 3.0), draw.normal(size=40), np.full(40, np.nan), np.zeros(40), np.arange(40)])
    found = correlate(X, np.array([0, 0, 0, 1, 40], np.int32))
    np.testing.assert_array_equal(found, np.eye(5))


def test_noise_with_many_levels_is_no_partner_and_a_unit_is_not_its_own():
    draw = np.random.default_rng(3)
    x = draw.normal(size=3000)
    X = np.column_stack([x, x + draw.normal(size=3000), draw.integers(0, 300, 3000), draw.integers(0, 300, 3000)])
    levels = np.array([0, 0, 300, 300], np.int32)
    units = (np.array([0]), np.array([1]), np.array([2]), np.array([0, 1]))
    partners = find_partners(X, levels, units, 0.2)
    assert partners.tolist() == [[False, True, False, False], [True, False, False, False], [False] * 4, [False] * 4]


def test_many_rows_are_thinned_out_evenly(monkeypatch):
    monkeypatch.setattr(correlation, "CORRELATED_ROWS", 50)
    X = np.column_stack([np.arange(1000.0), np.arange(1000.0) ** 3])
    np.testing.assert_allclose(correlate(X, np.zeros(2, np.int32)), 1.0)


# --- The table ----------------------------------------------------------------------------------------------


def table():
    return ImportanceTable(("a<b", "long name", "c"), np.array([0.1, 0.5, -0.25]), np.array([0.01, 0.125, 0.2]), "any")


def test_a_table_prints_the_most_important_first():
    lines = str(table()).splitlines()
    assert lines[0] == "any importance"
    assert [line.split()[-2:] for line in lines[2:]] == [["0.5", "0.12"], ["0.1", "0.01"], ["-0.25", "0.2"]]
    assert len({len(line) for line in lines[1:]}) == 1
    assert repr(table()) == str(table())
    assert "<td>a&lt;b</td><td>0.1</td>" in table()._repr_html_()
    assert len(table()) == 3


def test_a_table_becomes_a_frame(monkeypatch):
    frame = table().to_frame()
    assert frame["feature"].tolist() == ["a<b", "long name", "c"]
    assert frame["importance"].tolist() == [0.1, 0.5, -0.25]
    monkeypatch.setitem(sys.modules, "pandas", None)
    arrow = table().to_frame()
    assert type(arrow).__module__.startswith("pyarrow")
    assert arrow["std_error"].to_pylist() == [0.01, 0.125, 0.2]


class Axes:
    """Stands in for matplotlib's."""

    def __init__(self):
        self.calls = {}

    def __getattr__(self, name):
        return lambda *args, **options: self.calls.__setitem__(name, (args, options))


def test_a_table_draws_bars_on_given_axes():
    axes = Axes()
    assert table().plot(axes) is axes
    (_, widths), options = axes.calls["barh"]
    assert widths.tolist() == [0.5, 0.1, -0.25]
    assert options["xerr"].tolist() == [0.25, 0.02, 0.4]
    assert axes.calls["set_yticks"][1]["labels"] == ("long name", "a<b", "c")


def test_a_plot_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"spinney\[plot\]"):
        table().plot()


def test_the_extra_that_the_message_names_exists():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert any(need.startswith("matplotlib") for need in project["optional-dependencies"]["plot"])


def test_a_table_draws_bars_by_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = table().plot()
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.1, -0.25]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["long name", "a<b", "c"]
    matplotlib.pyplot.close(axes.figure)


def test_means_and_errors_are_those_of_the_trees():
    by_tree = np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 0.0]])
    found = tabulate(["a", "b"], by_tree, "x")
    assert found.importance.tolist() == [3.0, 0.0]
    assert found.std_error[0] == pytest.approx(float(Fraction(7, 3)) ** 0.5)
    assert np.isnan(tabulate(["a", "b"], by_tree[:1], "x").std_error).all()
