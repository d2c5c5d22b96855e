"""DOT and Mermaid: sources that their readers take, with every node, branch and odd name."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hand_trees
import strategies
from spinney import CARTClassifier, CARTRegressor
from spinney._types import MULTIWAY
from spinney.reading.outline import make_outline
from spinney.tree.structure import Legend

QUOTED = r'"((?:[^"\\\n]|\\.)*)"'
DOT_NODE = re.compile(rf"  n(\d+) \[label={QUOTED}((?:, \w+={QUOTED})*)\];")
DOT_EDGE = re.compile(rf"  n(\d+) -> n(\d+) \[label={QUOTED}\];")
MERMAID_TEXT = r'"((?:[^"#<>`\\\n]|<br/>|#\w+;)*)"'
MERMAID_NODE = re.compile(rf"  n(\d+)(?:\[{MERMAID_TEXT}\]|\(\[{MERMAID_TEXT}\]\))")
MERMAID_EDGE = re.compile(rf"  n(\d+) -->\|{MERMAID_TEXT}\| n(\d+)")
MERMAID_STYLE = re.compile(r"  style n(\d+) fill:#[0-9A-F]{6},stroke:#[0-9A-F]{6},color:#000000")
CODES = {"#35;": "#", "#amp;": "&", "#quot;": '"', "#lt;": "<", "#gt;": ">", "#96;": "`", "#92;": "\\"}


def read_dot(source):
    """Labels of nodes and of edges, as Graphviz would show them."""
    lines = source.splitlines()
    assert lines[0] == "digraph tree {"
    assert lines[-1] == "}"
    nodes, edges = {}, {}
    for line in lines[3:-1]:
        if line.startswith("  label="):
            continue
        node, edge = DOT_NODE.fullmatch(line), DOT_EDGE.fullmatch(line)
        assert node or edge, line
        if node:
            nodes[int(node[1])] = plain_dot(node[2])
        else:
            edges[int(edge[1]), int(edge[2])] = plain_dot(edge[3])
    return nodes, edges


def plain_dot(text):
    text = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
    assert re.search(r"&(?!amp;)", text) is None
    return text.replace("&amp;", "&")


def read_mermaid(source):
    lines = source.splitlines()
    assert lines[0] == "flowchart TD"
    nodes, edges = {}, {}
    for line in lines[1:]:
        node, edge = MERMAID_NODE.fullmatch(line), MERMAID_EDGE.fullmatch(line)
        assert node or edge or MERMAID_STYLE.fullmatch(line) or line.startswith("  %% "), line
        if node:
            nodes[int(node[1])] = plain_mermaid(node[2] or node[3])
        elif edge:
            edges[int(edge[1]), int(edge[3])] = plain_mermaid(edge[2])
    return nodes, edges


def plain_mermaid(text):
    return re.sub(r"#\w+;", lambda found: CODES[found[0]], text.replace("<br/>", "\n"))


READERS = {"dot": read_dot, "mermaid": read_mermaid}


def sources(tree, **limits):
    return [("dot", tree.to_dot(**limits)), ("mermaid", tree.to_mermaid(**limits))]


def test_weather():
    for kind, source in sources(hand_trees.weather_tree()):
        nodes, edges = READERS[kind](source)
        assert nodes[0] == "outlook\n14 rows\nyes 9, no 5"
        assert nodes[1] == "yes\n0 rows"
        assert edges[0, 1] == "foggy"
        assert {edges[6, 7], edges[6, 8]} == {"≤ 77.5", "> 77.5"}
        assert len(nodes) == 9
        assert len(edges) == 8
        assert "missing values go down every branch" in source


def test_odd_names_are_shown_as_they_are():
    names = ('a "b" \\N & <i>&lt;', "x|y]")
    legend = Legend(names, (("q`#1;", "\\", "<br/>"), None), ('say "no"', "1. yes"), (False, False))
    leaves = [{"threshold": 0, "n_rows": 2}, {"threshold": 1, "n_rows": 3}, {"threshold": 1, "n_rows": 4}]
    root = {"test": hand_trees.packed(0, 0, MULTIWAY), "first_child": 1, "n_rows": 9}
    tree = hand_trees.assemble([root, *leaves], 2, [3, 0], legend)
    for kind, source in sources(tree):
        nodes, edges = READERS[kind](source)
        assert nodes[0].splitlines()[0] == names[0]
        assert nodes[1].splitlines()[0] == '"say \\"no\\""'
        assert edges[0, 1] == "q`#1;"
        assert edges[0, 3] == '"<br/>"'


@given(strategies.tables(), st.integers(0, 1000))
def test_every_node_and_branch_is_there_once(table, seed):
    tree = hand_trees.ChanceGrower(table, seed).grow()
    items = make_outline(tree)
    for kind, source in sources(tree):
        nodes, edges = READERS[kind](source)
        assert sorted(nodes) == list(range(len(items)))
        assert sorted(child for _, child in edges) == list(range(1, len(items)))
        assert all(items[child].parent == parent for parent, child in edges)
        assert source == dict(sources(tree))[kind]


@given(strategies.tables(), st.integers(0, 1000), st.integers(1, 12), st.integers(0, 4))
def test_what_is_closed_is_counted(table, seed, max_leaves, max_depth):
    tree = hand_trees.ChanceGrower(table, seed).grow()
    items = make_outline(tree, max_leaves, max_depth)
    ends = [item for item in items if not item.is_open]
    assert len(ends) <= max_leaves
    assert sum(item.n_hidden or len(item.nodes) for item in ends) == tree.n_leaves
    assert sum(item.weight(tree) for item in ends) == pytest.approx(tree.weight[0])
    assert all(tree.depths[item.node] <= max_depth for item in items)
    for kind, source in sources(tree, max_leaves=max_leaves, max_depth=max_depth):
        nodes, _ = READERS[kind](source)
        for place, item in enumerate(items):
            assert nodes[place].startswith("+ ") == (item.n_hidden > 0)


def test_the_heaviest_branches_are_opened():
    X, y = np.arange(1000.0)[:, None], np.arange(1000) // 50 % 3
    tree = CARTClassifier().fit(X, y).tree_.arrays
    items = make_outline(tree, 8)
    opened = [tree.weight[item.node] for item in items if item.is_open]
    closed = [tree.weight[item.node] for item in items if item.n_hidden]
    assert min(opened) >= max(closed)


def test_a_branch_for_each_of_many_levels():
    leaves = [{"threshold": k % 2, "n_rows": k + 1} for k in range(60)]
    n_rows = sum(leaf["n_rows"] for leaf in leaves)
    root = {"test": hand_trees.packed(0, 0, MULTIWAY), "first_child": 1, "n_rows": n_rows}
    tree = hand_trees.assemble([root, *leaves], 2, [60])
    nodes, edges = read_dot(tree.to_dot(max_leaves=10))
    assert nodes[10] == f"+ 51 branches\n{sum(range(1, 52))} rows"
    assert edges[0, 10] == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 + 39"
    assert [edges[0, k] for k in (1, 9)] == ["51", "59"]


def test_levels_that_cannot_come_are_not_named():
    X = [["a"], ["b"], ["c"], ["d"]]
    tree = CARTRegressor(categorical_features=[0], cat_penalty=0.0).fit(X, [1.0, 2.0, 5.0, 9.0]).tree_.arrays
    _, edges = read_dot(tree.to_dot())
    assert sorted(edges.values()) == ["a", "a, b", "b", "c", "c, d", "d"]


def test_missing_values_on_edges():
    X = [[1.0], [2.0], [3.0], [np.nan]]
    _, edges = read_dot(CARTRegressor(missing="branch").fit(X, [1.0, 1.0, 5.0, 9.0]).tree_.to_dot())
    assert list(edges.values()) == ["≤ 2.5", "> 2.5", "missing"]
    _, edges = read_dot(CARTRegressor().fit(X, [1.0, 1.0, 5.0, 5.0]).tree_.to_dot())
    assert list(edges.values()) == ["≤ 2.5", "> 2.5 or missing"]


def test_numbers_and_a_single_leaf():
    nodes, edges = read_dot(CARTRegressor().fit([[1.0]], [2.5]).tree_.to_dot())
    assert nodes == {0: "2.5\n1 row"}
    assert edges == {}
    nodes, _ = read_mermaid(CARTRegressor().fit([[1.0], [2.0]], [2.0, 4.0]).tree_.to_mermaid())
    assert nodes == {0: "x0\n2 rows\n3", 1: "2\n1 row", 2: "4\n1 row"}


def test_limits_are_checked():
    tree = hand_trees.weather_tree()
    for draw in (tree.to_dot, tree.to_mermaid, tree.to_svg):
        with pytest.raises(ValueError, match="max_leaves=0: it must be at least 1"):
            draw(max_leaves=0)
        with pytest.raises(ValueError, match="max_depth=-1: it must be at least 0"):
            draw(max_depth=-1)


def test_without_names():
    bare = replace(hand_trees.weather_tree(), legend=None)
    nodes, edges = read_dot(bare.to_dot())
    assert nodes[0].startswith("x0\n")
    assert edges[0, 3] == "2"
