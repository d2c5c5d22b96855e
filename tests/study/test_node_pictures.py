"""Pictures of nodes: their bars are the rows that a decision path brings there, on both sides of the cut."""

import numpy as np
import pyarrow as pa
import pytest

from spinney import CARTClassifier, CARTRegressor
from spinney._types import SUBSET, THRESHOLD
from spinney.reading.wording import rounded_cut
from spinney.study import node_pictures
from spinney.study.node_pictures import picture_nodes, place_edges


def make_case(*, is_regression, seed=0, n_rows=500):
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n_rows).round(1)
    level = rng.integers(0, 5, n_rows)
    holes = rng.random(n_rows) < 0.1
    score = number * (level % 2) + level + rng.normal(size=n_rows) / 3
    columns = {
        "number": [None if hole else float(x) for x, hole in zip(number, holes, strict=True)],
        "level": pa.array([f"l{k}" for k in level]).dictionary_encode(),
    }
    y = score if is_regression else np.digitize(score, [1.0, 2.5])
    return pa.table(columns), y, np.where(holes, np.nan, number), level


@pytest.mark.parametrize("is_regression", [True, False])
def test_the_bars_are_the_rows_of_the_node(is_regression):
    X, y, number, level = make_case(is_regression=is_regression)
    model = (CARTRegressor if is_regression else CARTClassifier)(max_depth=4).fit(X, y)
    tree = model.tree_.arrays
    path = model.decision_path(X).toarray().astype(bool)
    found = picture_nodes(tree, model._schema, X, y)
    assert set(found) == set(np.flatnonzero(~tree.is_leaf).tolist())
    kinds = set()
    for node, picture in found.items():
        here = path[:, node]
        kinds.add(int(tree.kind[node]))
        # numbers: (rows, mean); classes: (class, rows)
        rows = [sum(part[0] for part in one) if is_regression else sum(part[1] for part in one) for one in picture.bins]
        if tree.kind[node] == THRESHOLD:
            values = number[here]
            n_left = round(picture.share * len(rows))
            assert picture.share * len(rows) == pytest.approx(n_left)
            assert sum(rows[:n_left]) == np.sum(values <= tree.threshold[node])
            assert sum(rows[n_left:]) == np.sum(values > tree.threshold[node])
            assert picture.n_missing == np.isnan(values).sum()
        else:
            assert tree.kind[node] == SUBSET
            assert dict(zip(picture.marks, rows, strict=True)) == {
                f"l{k}": int(n) for k, n in enumerate(np.bincount(level[here])) if n
            }
            n_left = round(picture.share * len(rows))
            assert {int(name[1:]) for name in picture.marks[:n_left]} <= set(np.flatnonzero(tree.subset(node)))
            assert not {int(name[1:]) for name in picture.marks[n_left:]} & set(np.flatnonzero(tree.subset(node)))
            for name, one in zip(picture.marks, picture.bins, strict=True):
                target = y[here & (level == int(name[1:]))]
                if is_regression:
                    assert one[0][1] == pytest.approx(target.mean())
                else:
                    assert dict(one) == {k: float(n) for k, n in enumerate(np.bincount(target)) if n}
    assert kinds == {THRESHOLD, SUBSET}


def test_large_tables_are_drawn_by_a_part_of_their_rows(monkeypatch):
    monkeypatch.setattr(node_pictures, "MAX_ROWS", 50)
    monkeypatch.setattr(node_pictures, "MAX_PICTURES", 2)
    X, y, _, _ = make_case(is_regression=False)
    model = CARTClassifier(max_depth=4).fit(X, y)
    found = picture_nodes(model.tree_.arrays, model._schema, X, y)
    assert len(found) == 2
    assert sum(part[1] for one in found[0].bins for part in one) + found[0].n_missing == 50


@pytest.mark.parametrize(
    ("values", "cut"), [([1.0, 2.0, 9.0], 8.9), ([], 3.0), ([2.0, 2.0], 2.0), ([-1e308, 1e308], 0.0), ([0.0, 1.0], 0.5)]
)
def test_no_bin_is_on_both_sides_of_the_cut(values, cut):
    edges = place_edges(np.array(values), cut)
    assert cut in edges
    assert np.all(np.diff(edges) > 0)
    if cut:  # what lies further apart than float64 reaches is drawn in two bars
        assert all(edges[0] - 1e-9 <= value <= edges[-1] + 1e-9 for value in values)


def test_a_cut_between_years_is_told_in_full():
    assert rounded_cut(2021.5) == "2021.5"
    assert rounded_cut(-3.5) == "-3.5"
    assert rounded_cut(123456.5) == "123500"
    assert rounded_cut(0.123456) == "0.1235"
