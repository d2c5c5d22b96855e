"""The trace: what it says of a node must agree with the tree, with the lectures and with a plain recount."""

import io
import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from spinney import CARTClassifier, CARTRegressor
from spinney.tree.replay import NotTheRowsError
from strategies import many_level_tables, parameters, tables


def read(folder, name):
    frame = pd.read_csv(folder / f"{name}.csv")
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    return frame.astype(dict.fromkeys(text, "category"))


def entropy(counts):
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts if c)


def gini(counts):
    total = sum(counts)
    return 1.0 - sum((c / total) ** 2 for c in counts)


def mean_over(branches, impurity):
    """Weighted mean impurity of branches given as class weights."""
    total = sum(map(sum, branches))
    return sum(sum(counts) / total * impurity(counts) for counts in branches if sum(counts))


def best_of(frame, node=0):
    """The best test of each feature at a node, by name of the feature."""
    return frame[(frame.node == node) & frame.is_best_of_feature].set_index("feature")


# ------------------------------------------------------------------------------------------- lectures


@pytest.mark.parametrize(
    ("cut", "after"),
    [
        (65, 0.4),
        (72.5, 0.375),
        (80, 0.342857),
        (87.5, 0.416667),
        (92.5, 0.4),
        (97.5, 0.3),
        (110, 0.342857),
        (122.5, 0.375),
        (172.5, 0.4),
    ],
)
def test_every_cut_of_taxable_income(shared_data, cut, after):
    table = read(shared_data, "toy_taxable_income")
    X, y = table[["taxable_income"]], table["cheat"]
    frame = CARTClassifier(trace=True).fit(X, y).trace_.to_frame()
    root = frame[frame.node == 0].set_index("test")
    assert len(root) == 9
    assert root.loc[f"taxable_income <= {cut:g}", "impurity_after"] == pytest.approx(after, abs=1e-6)
    assert root.index[root.chosen].tolist() == ["taxable_income <= 97.5"]


@pytest.mark.parametrize(
    ("column", "cut", "gain"),
    [
        ("temperature", "84", 0.113401),
        ("temperature", "64.5", 0.047709),
        ("temperature", "70.5", 0.045334),
        ("temperature", "71.5", 0.940286 - 0.938946),
        ("humidity", "82.5", 0.151836),
        ("humidity", "88", 0.102244),
    ],
)
def test_cuts_of_numeric_weather(shared_data, column, cut, gain):
    table = read(shared_data, "toy_weather_numeric")
    X, y = table.drop(columns="play"), table["play"]
    frame = CARTClassifier(criterion="entropy").fit(X, y, trace=True).trace_.to_frame()
    root = frame[frame.node == 0].set_index("test")
    assert root.loc[f"{column} <= {cut}", "gain"] == pytest.approx(gain, abs=2e-6)
    counts = root.loc["temperature <= 71.5", "counts"]
    assert counts == [[2.0, 4.0], [3.0, 5.0]]


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        (
            "toy_play_tennis",
            "play",
            {"outlook": 0.357143, "temperature": 0.442857, "humidity": 0.367347, "wind": 0.428571},
        ),
        (
            "toy_buys_computer",
            "buys_computer",
            {"age": 0.357143, "income": 0.442857, "student": 0.367347, "credit_rating": 0.428571},
        ),
    ],
)
def test_best_subset_of_every_feature(shared_data, name, target, expected):
    table = read(shared_data, name)
    X, y = table[list(expected)], table[target]
    tree = CARTClassifier().fit(X, y)
    root = best_of(spinney.trace(tree, X, y).to_frame())
    for feature, after in expected.items():
        assert root.loc[feature, "impurity_after"] == pytest.approx(after, abs=1e-6)
        assert root.loc[feature, "gini_decrease"] == pytest.approx(0.459184 - after, abs=2e-6)


# ------------------------------------------------------------------------- agreement with the tree


def fit(table, **params):
    names = [f"f{j}" for j in range(table.n_features)]
    frame = pd.DataFrame(dict(zip(names, table.columns, strict=True)))
    for name, is_categorical, n_levels in zip(names, table.is_categorical, table.n_levels, strict=True):
        if is_categorical:
            codes = frame[name].fillna(-1).astype(int)
            frame[name] = pd.Categorical.from_codes(codes, [f"L{k:02}" for k in range(n_levels)])
    model = (CARTRegressor if table.n_classes is None else CARTClassifier)(**params)
    return model.fit(frame, table.y, table.weights, trace=True)


def check_agreement(model, tolerance=1e-9):
    """Every inner node has one chosen test, the tree's, and no admissible test beats it; leaves have none."""
    tree, trace = model.tree_, model.trace_
    frame = trace.to_frame()
    assert sorted(record.node for record in trace.records) == list(range(tree.n_nodes))
    impurity = np.ldexp(tree.impurity, tree.impurity_exponent)
    for record in trace.records:
        rows = frame[frame.node == record.node]
        chosen = rows[rows.chosen]
        assert len(chosen) == (0 if tree.is_leaf[record.node] else 1)
        assert record.verdict
        if tree.is_leaf[record.node]:
            continue
        won = chosen.iloc[0]
        children = tree.children_of(np.array([record.node]))
        assert won.feature == tree.legend.features[tree.feature[record.node]]
        assert won.admissible
        assert won["rows"] == tree.n_rows[children].tolist()
        assert won.impurity_before == pytest.approx(impurity[record.node], rel=1e-6, abs=1e-9 * impurity[0])
        after = np.average(impurity[children], weights=tree.weight[children])
        assert won.impurity_after == pytest.approx(after, rel=1e-6, abs=1e-6 * max(impurity[0], 1e-300))
        beaten = rows[rows.admissible].impurity_decrease <= won.impurity_decrease + tolerance * impurity[record.node]
        assert beaten.all(), rows[rows.admissible][["test", "impurity_decrease", "chosen"]]
    return frame


@st.composite
def fits(draw, source):
    """A table and the parameters of a tree for it, as the estimators call them."""
    table = draw(source)
    params = draw(parameters(table))
    if params.get("max_depth") == 0:
        del params["max_depth"]
    if "monotonic" in params:
        params["monotonic_cst"] = params.pop("monotonic")
    return table, params


@settings(max_examples=50, deadline=None)
@given(fits(st.one_of(tables(is_regression=False), many_level_tables())))
def test_the_trace_of_classes_agrees_with_the_tree(drawn):
    table, params = drawn
    check_agreement(fit(table, **params))


@settings(max_examples=40, deadline=None)
@given(fits(tables(is_regression=True)))
def test_the_trace_of_numbers_agrees_with_the_tree(drawn):
    table, params = drawn
    check_agreement(fit(table, **params), tolerance=1e-6)


@settings(max_examples=25, deadline=None)
@given(tables(is_regression=False, has_weights=False))
def test_figures_of_classes_by_a_plain_count(table):
    """Gains, split information, ratios, Gini and chi-square from the counts that the trace itself gives."""
    model = fit(table, max_depth=2)
    for row in model.trace_.to_frame().itertuples():
        counts = [branch for branch in row.counts if sum(branch)]
        whole = [sum(branch[k] for branch in counts) for k in range(table.n_classes)]
        assert sum(whole) == row.n_rows
        gain = entropy(whole) - mean_over(counts, entropy)
        info = entropy([sum(branch) for branch in counts])
        assert row.gain == pytest.approx(gain, abs=1e-12)
        assert row.split_info == pytest.approx(info, abs=1e-12)
        assert row.gini_decrease == pytest.approx(gini(whole) - mean_over(counts, gini), abs=1e-12)
        if info:
            assert row.gain_ratio == pytest.approx(gain / info, abs=1e-12)
        total = sum(whole)
        chi = sum(
            (branch[k] - sum(branch) * whole[k] / total) ** 2 / (sum(branch) * whole[k] / total)
            for branch in counts
            for k in range(table.n_classes)
            if whole[k]
        )
        assert row.chi_square == pytest.approx(chi, abs=1e-9)


def test_figures_of_numbers_by_a_plain_count():
    X, y = pd.DataFrame({"x": [1.0, 2, 3, 4, 5]}), np.array([1.0, 1.0, 2.0, 8.0, 10.0])
    frame = CARTRegressor(criterion="sdr", max_depth=1).fit(X, y, trace=True).trace_.to_frame()
    root = frame[frame.node == 0].reset_index()
    for k in range(4):
        left, right = y[: k + 1], y[k + 1 :]
        share = len(left) / 5
        row = root.loc[k]
        assert row.test == f"x <= {k + 1.5}"
        assert row.sdr == pytest.approx(np.std(y) - share * np.std(left) - (1 - share) * np.std(right), abs=1e-12)
        variance = np.var(y) - share * np.var(left) - (1 - share) * np.var(right)
        assert row.variance_reduction == pytest.approx(variance, abs=1e-12)
        np.testing.assert_allclose(row.counts, [[part.mean(), np.std(part)] for part in (left, right)], atol=1e-12)
    assert root.chosen.tolist() == [False, False, True, False]


# -------------------------------------------------------------------------------------------- reasons


def test_reasons_of_nodes_and_tests():
    X = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [5, 5, 5, 5]})
    model = CARTClassifier(trace=True).fit(X, ["no", "yes", "yes", "no"])
    verdicts = {record.node: record.verdict for record in model.trace_.records}
    assert verdicts[0] == "no test lowers the impurity; tie with b: the first feature wins"
    assert verdicts[1] == "the only admissible test"
    assert verdicts[3] == "pure"
    frame = model.trace_.to_frame()
    root = frame[frame.node == 0].set_index("feature")
    assert root.reason[["b", "c"]].tolist() == ["tie with a", "constant here"]
    assert root.admissible.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"max_depth": 1}, "max_depth=1 reached"),
        ({"min_samples_split": 6}, "fewer than min_samples_split=6 rows"),
        ({"min_samples_leaf": 3}, "fewer rows than two branches of min_samples_leaf=3 need"),
        ({"min_impurity_decrease": 0.15}, "lowers the impurity by less than min_impurity_decrease=0.15"),
        ({"ccp_alpha": 0.15}, "cut back by cost-complexity pruning, ccp_alpha=0.15"),
        ({"max_leaf_nodes": 2}, "max_leaf_nodes=2 reached"),
    ],
)
def test_reasons_of_leaves(params, reason):
    X, y = np.arange(8.0).reshape(-1, 1), [0, 0, 0, 0, 1, 1, 0, 1]
    model = CARTClassifier(trace=True, **params).fit(X, y)
    leaves = [record for record in model.trace_.records if record.chosen is None and record.impurity > 0]
    assert leaves
    assert any(reason in record.verdict for record in leaves)


def test_features_that_were_not_drawn():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (60, 6)).astype(float)
    model = CARTClassifier(max_features=1, max_depth=3, random_state=0, trace=True).fit(X, X[:, 5] > 1)
    frame = model.trace_.to_frame()
    assert "not among the features drawn" in set(frame.reason)
    assert "among 1 features drawn" in model.trace_.records[0].verdict


# ---------------------------------------------------------------------------------------------- input


def weather(n=14):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.integers(0, 5, n), "b": rng.normal(size=n)}), rng.integers(0, 2, n)


def test_other_rows_are_refused():
    X, y = weather()
    model = CARTClassifier().fit(X, y)
    with pytest.raises(NotTheRowsError, match=r"not the rows that the tree was grown on: .* reach node"):
        spinney.trace(model, X[:10], y[:10])
    frame, other = (pd.DataFrame({"c": pd.Categorical(["u", level] * 7)}) for level in "vw")
    model = CARTClassifier().fit(frame, y)
    with pytest.raises(NotTheRowsError, match="column 'c' has other levels"):
        spinney.trace(model, other, y)


def test_forests_have_no_trace():
    with pytest.raises(TypeError, match="a trace shows the reasons of one tree, and RandomForestClassifier is not one"):
        spinney.trace(spinney.RandomForestClassifier(), [[1]], [0])


def test_the_order_of_rows_does_not_matter():
    X, y = weather(50)
    model = CARTClassifier().fit(X, y)
    order = np.random.default_rng(2).permutation(50)
    a, b = spinney.trace(model, X, y).to_frame(), spinney.trace(model, X.iloc[order], y[order]).to_frame()
    pd.testing.assert_frame_equal(a, b)


def test_weights_count_as_rows():
    X, y = weather(30)
    weight = np.random.default_rng(3).integers(0, 4, 30)
    one = CARTClassifier(max_depth=3).fit(X, y, weight, trace=True).trace_.to_frame()
    many = CARTClassifier(max_depth=3).fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight), trace=True)
    other = many.trace_.to_frame()
    same = ["node", "test", "gain", "split_info", "gini_decrease", "chi_square", "chosen", "counts"]
    pd.testing.assert_frame_equal(one[same], other[same])


def test_a_refit_without_trace_drops_the_old_one():
    X, y = weather()
    model = CARTClassifier().fit(X, y, trace=True)
    assert model.trace_.records
    assert not hasattr(model.fit(X, y), "trace_")


def test_parts_of_a_large_tree():
    X, y = weather(400)
    model = CARTClassifier().fit(X, y)
    few = spinney.trace(model, X, y, max_nodes=5)
    assert len(few.records) == 5
    assert few.n_hidden == model.tree_.n_nodes - 5
    assert "nodes of the tree were not looked at" in str(few)
    assert {record.depth for record in spinney.trace(model, X, y, max_depth=1).records} == {0, 1}


def test_a_feature_of_many_cuts_keeps_the_best():
    X, y = np.arange(200.0).reshape(-1, 1), (np.arange(200) > 120).astype(int)
    frame = CARTClassifier().fit(X, y, trace=True).trace_.to_frame()
    assert frame.test.tolist() == ["x0 <= 120.5"]
    small = CARTClassifier().fit(X[90:155], y[90:155], trace=True).trace_.to_frame()
    assert len(small) == 64


def test_frame_without_pandas(monkeypatch):
    X, y = weather()
    trace = CARTClassifier(max_depth=2).fit(X, y, trace=True).trace_
    frame = trace.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = trace.to_frame()
    assert type(table).__module__ == "pyarrow.lib"
    assert table.column_names == list(frame.columns)
    assert table["gain"].to_pylist() == frame.gain.tolist()


# ------------------------------------------------------------------------------------------- pictures


def play_tennis(shared_data, **params):
    table = read(shared_data, "toy_play_tennis")
    X = table[["outlook", "temperature", "humidity", "wind"]]
    return CARTClassifier(criterion="entropy", trace=True, **params).fit(X, table["play"])


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width(shared_data, width):
    trace = play_tennis(shared_data).trace_
    text = trace.to_text(width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "▶ outlook in {rainy" in text
    assert "largest gain" in text
    for number in ("0.226000", "0.151836", "0.048127", "0.025078"):
        assert number in text


def test_parts_of_the_text(shared_data):
    trace = play_tennis(shared_data).trace_
    assert trace.to_text(max_depth=0).count("Node ") == 1
    assert trace.to_text(node=1).startswith("Node 1 · outlook in {rainy, sunny}")
    with pytest.raises(ValueError, match=r"node=99 is not in the trace; the tree has nodes 0 \.\. "):
        trace.to_text(node=99)


def test_cuts_are_listed_where_they_are_few(shared_data):
    table = read(shared_data, "toy_weather_numeric")
    model = CARTClassifier(criterion="entropy", trace=True).fit(table.drop(columns="play"), table["play"])
    text = model.trace_.to_text(node=0, width=80)
    assert "    <= 64.5" in text
    assert "    <= 64.5" not in model.trace_.to_text(node=0, width=80, cuts=False)


def test_show_has_colours_in_a_terminal_only(shared_data, monkeypatch, capsys):
    trace = play_tennis(shared_data, max_depth=1).trace_
    trace.show()
    assert capsys.readouterr().out == f"{trace}\n"

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    trace.show()
    assert "\x1b[1;32m" in screen.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    monkeypatch.setattr("sys.stdout", plain)
    trace.show()
    assert "32m" not in plain.getvalue()


def test_html_escapes_names():
    X = pd.DataFrame({"<b>": pd.Categorical(["<i>", "u", "<i>", "u"])})
    page = CARTClassifier(trace=True).fit(X, ["x", "<y>", "x", "<y>"]).trace_._repr_html_()
    assert "<b>" not in page.replace("<b>&lt;", "").replace("<b>x", "").replace("<b>&lt;y", "")
    assert "&lt;b&gt; in {&lt;i&gt;}" in page
    assert "class='winner'" in page
