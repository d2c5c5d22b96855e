"""Very deep trees: whatever is told, drawn or cut of a chain of thousands of tests is done test by test."""

import copy
import pickle
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import hand_trees
from spinney._types import EVERY_BRANCH, MULTIWAY, SUBSET, THRESHOLD
from spinney.tree.pessimistic import collapse, prune_pessimistic
from spinney.tree.prune import cut_sequence, merge_leaves, prune_by_gain, prune_to_alpha, snip
from spinney.tree.reduced_error import prune_on_rows

DEPTH = 2_500  # Python's own stack ends at a thousand calls
KINDS = pytest.mark.parametrize("kind", [THRESHOLD, MULTIWAY, SUBSET], ids=["threshold", "multiway", "subset"])


@KINDS
def test_text_of_a_chain_ends_where_it_would_be_mostly_indents(kind):
    lines = hand_trees.chain(DEPTH, kind).to_text().splitlines()
    told = len(lines) - 1
    assert lines[-1] == f"... ({2 * DEPTH + 1 - told} more nodes)"
    assert told > 2_000
    assert lines[-2].startswith(" " * 3 * 1_000)
    assert hand_trees.chain(50, kind).to_text().count("\n") == 100


@KINDS
def test_rules_of_a_chain(kind):
    rules = hand_trees.chain(DEPTH, kind).to_rules()
    assert len(rules) == DEPTH + 1
    assert {len(rule.conditions) for rule in rules} == {1}
    if kind == THRESHOLD:
        assert rules[-2].conditions == (f"{DEPTH - 2}.5 < x <= {DEPTH - 1}.5",)
    if kind == SUBSET:
        assert rules[-2].conditions == (f"x = l{DEPTH - 1}",)


@pytest.mark.parametrize("kind", [THRESHOLD, SUBSET], ids=["threshold", "subset"])
@pytest.mark.sampled(2)
def test_diagrams_of_a_chain(kind):
    tree = hand_trees.chain(DEPTH, kind)
    last = f"> {DEPTH - 1}.5" if kind == THRESHOLD else f"l{DEPTH}"
    assert tree.to_dot().splitlines()[-2] == f'  n{2 * DEPTH - 2} -> n{2 * DEPTH} [label="{last}"];'
    edges = [line for line in tree.to_mermaid().splitlines() if "-->" in line]
    assert len(edges) == 2 * DEPTH
    assert last.removeprefix("> ") in edges[-1]


@pytest.mark.parametrize("direction", ["down", "right"])
@pytest.mark.sampled(2)
def test_picture_of_a_chain(direction):
    tree = hand_trees.chain(DEPTH)
    root = ET.fromstring(tree.to_svg(direction=direction, max_leaves=DEPTH + 1))
    boxes = [part for part in root.iter() if part.tag.endswith("rect") and part.get("class") in {"test", "leaf"}]
    assert len(boxes) == 2 * DEPTH + 1
    assert len({(part.get("x"), part.get("y")) for part in boxes}) == len(boxes)
    assert f"+ {DEPTH - 48} leaves" in tree.to_svg(direction=direction)


def test_a_missing_value_in_a_chain_is_told_at_every_test():
    story = hand_trees.chain(DEPTH, missing=EVERY_BRANCH).explain([np.nan])
    assert len(story.steps) == 2 * DEPTH
    assert str(story).count("\n") == 2 * DEPTH + 1
    assert sum(share for _, share in story.leaves) == pytest.approx(1.0)


@KINDS
@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.sampled(5)
def test_prunings_of_a_chain(kind, n_classes):
    tree = hand_trees.chain(DEPTH, kind, n_classes)
    assert cut_sequence(tree)[-1].n_leaves == 1
    assert prune_to_alpha(tree, 10.0).n_nodes == 1
    assert prune_by_gain(tree, 10.0).n_nodes == 1
    assert merge_leaves(tree) is tree
    assert snip(tree, DEPTH).n_nodes == DEPTH + 1
    leaves = np.flatnonzero(tree.is_leaf)
    truth = tree.threshold[leaves].astype(np.int64 if n_classes else np.float64)
    assert prune_on_rows(tree, leaves, truth) is tree
    if n_classes:
        assert prune_pessimistic(tree, 0.25).n_nodes == 1
        assert collapse(tree) is tree


def test_copies_of_a_chain():
    tree = hand_trees.chain(DEPTH)
    for twin in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert np.array_equal(twin.threshold, tree.threshold)
