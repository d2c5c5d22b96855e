"""Trees name only what can come: levels and missing values that no test above has sent elsewhere."""

import re

import numpy as np
import pyarrow as pa
import pytest

from spinney import CARTClassifier, CARTRegressor
from spinney._types import SUBSET
from spinney.reading.outline import edge_label, make_outline

LEVELS = [f"l{k}" for k in range(9)]


def grow(seed, *, is_regression):
    """A tree that asks the same category several times, which is missing in some rows."""
    rng = np.random.default_rng(seed)
    codes, x = rng.integers(0, len(LEVELS), 400), rng.normal(size=400).round(1)
    cells = [None if rng.random() < 0.1 else LEVELS[code] for code in codes]
    effect = np.random.default_rng(seed + 100).normal(size=len(LEVELS))
    target = effect[codes] * (1.0 + (x > 0)) + x
    numbers = [None if rng.random() < 0.1 else float(one) for one in x]
    X = pa.table({"kind": pa.array(cells).dictionary_encode(), "x": numbers})
    if is_regression:
        return CARTRegressor(max_depth=6).fit(X, target).tree_.arrays
    return CARTClassifier(max_depth=6).fit(X, np.digitize(target, [-1.0, 0.5])).tree_.arrays


def walk(tree, feature, value):
    """Every node that a row of this value may come to, whatever the other features are."""
    found, stack = set(), [0]
    while stack:
        node = stack.pop()
        found.add(node)
        if tree.is_leaf[node]:
            continue
        children = range(tree.first_child[node], tree.first_child[node] + tree.n_branches[node])
        if tree.feature[node] != feature:
            stack += children
        elif value is None:
            stack.append(children[tree.missing_branch[node]])
        elif tree.kind[node] == SUBSET:
            stack.append(children[0 if tree.subset(node)[value] else 1])
    return found


@pytest.mark.parametrize("is_regression", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_pictures_text_and_rules_name_what_can_come(seed, is_regression):
    tree = grow(seed, is_regression=is_regression)
    reached = {k: walk(tree, 0, k) for k in range(len(LEVELS))}
    missing = {feature: walk(tree, feature, None) for feature in (0, 1)}
    items = make_outline(tree)
    n_repeated = 0
    lines = tree.to_text().splitlines()
    for item in items[1:]:
        parent = items[item.parent].node
        feature, label = int(tree.feature[parent]), str(edge_label(tree, parent, item, len(LEVELS)))
        assert (" or missing" in label or label == "missing") == (item.node in missing[feature])
        if feature:
            continue
        possible = {LEVELS[k] for k in range(len(LEVELS)) if item.node in reached[k]}
        assert set(re.findall(r"l\d", label)) == possible
        n_repeated += len(possible) < len(LEVELS) and parent != 0
        named = [set(re.findall(r"l\d", line)) for line in lines if "kind" in line]
        assert possible in named
    assert n_repeated > 2
    for rule in tree.to_rules():
        for text in rule.conditions:
            if text.startswith("kind"):
                assert set(re.findall(r"l\d", text)) == {
                    LEVELS[k] for k in range(len(LEVELS)) if rule.leaf in reached[k]
                }
            assert ("missing" in text) == (rule.leaf in missing[0 if text.startswith("kind") else 1])
