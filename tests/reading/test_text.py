"""Trees in text: tests of every kind, shared rows, surrogates, linear leaves, odd names."""

import textwrap
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import hand_trees
from spinney import CARTRegressor, GradientBoostingClassifier, RandomForestClassifier
from spinney._types import MULTIWAY
from spinney.reading.wording import percent, quoted, weight_of
from spinney.tree.structure import Legend


def drawn(text):
    return textwrap.dedent(text).strip("\n")


def test_a_branch_for_each_level():
    assert hand_trees.weather_tree().to_text() == drawn("""
        [yes] (14 rows: yes 9, no 5)
        ├─ outlook = foggy: yes (0 rows)
        ├─ outlook = overcast: yes (5 rows, weight 4.5)
        ├─ outlook = rainy: [yes] (5 rows, weight 4.5: yes 2.5, no 2)
        │  ├─ wind = strong: no (2 rows)
        │  └─ wind = weak: yes (3 rows, weight 2.5)
        └─ outlook = sunny: [no] (5 rows: no 3, yes 2)
           ├─ humidity <= 77.5: yes (2 rows)
           └─ humidity > 77.5: no (3 rows)
        (missing values go down every branch, by its share of the rows)
    """)


def test_numbers_of_nodes():
    tree = hand_trees.weather_tree()
    lines = tree.to_text(1, numbers=True).splitlines()
    assert lines[:3] == [
        "#0 [yes] (14 rows: yes 9, no 5)",
        "├─ outlook = foggy: #1 yes (0 rows)",
        "├─ outlook = overcast: #2 yes (5 rows, weight 4.5)",
    ]
    numbers = [int(line.split("#")[1].split()[0]) for line in tree.to_text(numbers=True).splitlines()[:-1]]
    assert sorted(numbers) == list(range(tree.n_nodes))
    text = multiway(5, 0, [2, 0, 0, 3, 0]).to_text(numbers=True)
    assert text.splitlines()[-2:] == ["├─ x0 = 3: #4 1 (3 rows)", "└─ x0 in {1, 2, 4}: 1 (0 rows)"]


def test_sharing_is_said_only_where_training_rows_were_shared():
    legend = replace(hand_trees.WEATHER, has_missing=(False, False, False))
    assert "missing" not in hand_trees.weather_tree(legend).to_text()
    assert "missing" not in hand_trees.weather_tree(None).to_text()


def multiway(n_levels, missing, counts, legend=None):
    """A root with a branch for each level of x0, pure leaves of class 1 for those that have rows."""
    empty = {"mixed": [0.0, float(sum(counts))], "n_rows": 0}
    leaves = [{"threshold": 1, "n_rows": n} if n else empty for n in counts]
    root = {"test": hand_trees.packed(0, 0, MULTIWAY), "first_child": 1, "threshold": missing, "n_rows": sum(counts)}
    return hand_trees.assemble([root, *leaves], 2, [n_levels], legend)


def test_missing_values_of_a_branch_for_each_level():
    legend = Legend(("size",), (("l", "m", "s"),), ("n", "y"), (True,))
    text = multiway(3, 1, [2, 3, 4], legend).to_text()
    assert "├─ size = m or missing: y (3 rows)" in text
    text = multiway(3, 3, [2, 3, 4, 1], legend).to_text()
    assert text.splitlines()[-1] == "└─ size is missing: y (1 row)"


def test_many_empty_leaves_share_a_line():
    lines = multiway(5, 0, [2, 0, 0, 3, 0]).to_text().splitlines()
    assert lines[1:] == ["├─ x0 = 0: 1 (2 rows)", "├─ x0 = 3: 1 (3 rows)", "└─ x0 in {1, 2, 4}: 1 (0 rows)"]
    assert len(multiway(4, 0, [2, 0, 0, 3]).to_text().splitlines()) == 5


def test_a_feature_of_very_many_levels():
    n = 20_000
    lines = multiway(n, 0, [1] * n).to_text().splitlines()
    assert lines[-1] == "... (10001 more nodes)"
    lines = multiway(n, 0, [1, 1, *[0] * (n - 2)]).to_text().splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith("... 19986 more}: 1 (0 rows)")


def test_surrogates_stand_behind_the_test():
    assert hand_trees.surrogate_tree().to_text() == drawn("""
        [3.1] (10 rows)
        ├─ g2 <= 13.2, else grade > 2.5, else ploidy in {a, b}, else ...: 1.5 (6 rows)
        └─ g2 > 13.2, else grade <= 2.5, else ploidy = c, else ...: 5.5 (4 rows)
    """)
    tree = hand_trees.surrogate_tree()
    assert "else" not in tree.with_legend(replace(tree.legend, has_missing=(False,) * 4)).to_text()


def test_linear_leaves_are_formulas():
    assert hand_trees.linear_tree().to_text() == drawn("""
        [276.5556] (9 rows)
        ├─ x0 <= 1: 1 + 0.5 x0 - 1.25 x1 + 3 x2 + ... 2 more (4 rows)
        └─ x0 > 1: -7 + 2 x1 (5 rows)
    """)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("petal length (cm)", "petal length (cm)"),
        ("größe", "größe"),
        ("a, b", '"a, b"'),
        ("a:b", '"a:b"'),
        ("<=", '"<="'),
        ("", '""'),
        (" x", '" x"'),
        ("two\nlines", '"two\\nlines"'),
        ('say "no"', '"say \\"no\\""'),
        ("back\\slash,", '"back\\\\slash,"'),
        ("\u202eabc", '"\\u202eabc"'),
        (3, "3"),
        (True, "True"),
    ],
)
def test_odd_names_are_quoted(name, shown):
    assert quoted(name) == shown


def test_odd_names_do_not_break_lines():
    legend = Legend(("a\nb",), (("x, y", "}", "\t"),), ("no\n", "yes: 3"), (False,))
    lines = multiway(3, 0, [2, 3, 4], legend).to_text().splitlines()
    assert lines[1:] == [
        '├─ "a\\nb" = "x, y": "yes: 3" (2 rows)',
        '├─ "a\\nb" = "}": "yes: 3" (3 rows)',
        '└─ "a\\nb" = "\\t": "yes: 3" (4 rows)',
    ]


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.0, "0 %"), (0.125, "12.5 %"), (0.9999, "> 99.9 %"), (1e-5, "< 0.1 %"), (1 / 3, "33.3 %")],
)
def test_shares_are_rounded_but_never_to_all_or_nothing(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("weight", "text"), [(3.0, "3"), (58.15194, "58.15"), (12345.678, "12345.68"), (4.5, "4.5"), (0.4966834, "0.5")]
)
def test_parts_of_rows_are_rounded(weight, text):
    assert weight_of(hand_trees.weather_tree(), weight) == text
    assert weight_of(hand_trees.linear_tree(), 58.15194) == "58.1519"


def test_trees_of_forests_and_boosting_can_be_read():
    X, y = [[i, -i] for i in range(20)], ["a"] * 10 + ["b"] * 10
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(X, y).forest_
    assert "a (" in forest[1].to_text()
    assert "then a" in str(forest[1].to_rules())
    raw = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(np.array(X, float), y).forest_[0]
    for text in (raw.to_text(), str(raw.to_rules()), str(raw.explain([3.0, -3.0]))):
        assert "x0" in text or "always" in text or "rows" in text
        assert "a (" not in text


def make_ages():
    """Numbers with holes, whose rows are far from all others; and a category."""
    age = np.where(np.arange(60) < 10, np.nan, np.arange(60.0))
    kind = np.array(list("abcdef"))[np.arange(60) % 6]
    y = np.where(np.isnan(age), 100.0, np.floor(np.nan_to_num(age) / 10)) + (np.arange(60) % 6) / 100
    return pd.DataFrame({"age": age, "kind": kind}), y


@pytest.mark.parametrize("missing", ["learned", "branch", "surrogate"])
def test_f10_missing_values_are_told_only_where_they_can_come(missing):
    X, y = make_ages()
    tree = CARTRegressor(max_depth=4, missing=missing).fit(X, y).tree_.arrays
    known = []  # indents of the lines below which no missing value of age comes
    for line in tree.to_text().splitlines()[1:]:
        depth, asks = line.index("─"), line.split(": ")[0]
        known = [other for other in known if other < depth]
        if "age" in asks:
            assert not known or "missing" not in asks, tree.to_text()
            if "missing" not in asks and "else" not in asks:
                known.append(depth)
    for text in (tree.to_dot(), tree.to_mermaid()):
        assert text.count("or missing") == tree.to_text().count("or missing")


def test_f10_levels_are_told_only_where_they_can_come():
    X, y = make_ages()
    model = CARTRegressor(max_depth=6).fit(X[["kind"]], y)
    for level in "abcdef":
        sets = [
            set(step.words.partition("{")[2].rstrip("}").split(", ")) for step in model.explain({"kind": level}).steps
        ]
        for above, below in pairwise(group for group in sets if group != {""}):
            assert below < above
