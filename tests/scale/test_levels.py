"""A model grown from disk, level by level, is that of the table in memory, byte for byte."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.scale import plan
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")

FEW = {"n_estimators": 4, "random_state": 0}
CLASSIFIERS = [
    spinney.GradientBoostingClassifier(**FEW),
    spinney.GradientBoostingClassifier(subsample=1.0, max_features=None, max_leaf_nodes=15, **FEW),
    spinney.GradientBoostingClassifier(subsample=0.6, max_features=0.5, class_weight="balanced", **FEW),
    spinney.GradientBoostingClassifier(loss="exponential", min_samples_leaf=400, **FEW),
    spinney.GradientBoostingClassifier(newton=False, min_weight_fraction_leaf=0.02, **FEW),
    spinney.GradientBoostingClassifier(max_leaf_nodes=None, max_depth=5, max_features_per_tree=0.6, **FEW),
    spinney.GradientBoostingClassifier(pruning="post", gamma=5.0, reg_alpha=1.0, cat_penalty=1.0, **FEW),
    spinney.GradientBoostingClassifier(monotonic_cst={"number": 1, "whole": -1}, max_bins=20, **FEW),
    spinney.GradientBoostingClassifier(interaction_cst="no_interactions", max_bins=None, init="zero", **FEW),
    spinney.GradientBoostingClassifier(class_weight={"yes": 0.25}, n_iter_no_change=2, validation_fraction=None, **FEW),
    spinney.GradientBoostingClassifier(random_state=0, effort=0.02, subsample=0.5),
]
REGRESSORS = [
    spinney.GradientBoostingRegressor(loss=loss, **FEW) for loss in ("squared_error", "poisson", "gamma", "tweedie")
]


@pytest.fixture
def _from_disk(monkeypatch):
    """Take no table for one that memory holds."""
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)


def clone(model):
    return type(model)(**model.get_params(deep=False))


def check_same(model, table, scanned, folder, weight=None):
    """The same file from memory and from disk."""
    assert scanned.memory is not None
    X, y = split(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fits", lambda _: True)
        expected = model_bytes(clone(model).fit(X, y, sample_weight=weight), folder)
    fitted = clone(model)
    assert scanned.read().plan(fitted).by_levels
    assert model_bytes(fitted.fit(scanned), folder) == expected


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("is_weighted", [False, True], ids=["", "weights"])
def test_a_classifier_grown_from_disk_is_that_of_the_table(model, is_weighted, tmp_path):
    table = make_table(9000)
    pattern = write_parts(table, tmp_path, [1000, 1001, 4000])
    drop = ["g"] if is_weighted else ["g", "w"]
    scanned = Scan(pattern, "y", weight="w" if is_weighted else None, drop=drop, memory=10**9, block_rows=4096)
    check_same(model, table, scanned, tmp_path, table["w"].to_numpy() if is_weighted else None)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_a_regressor_grown_from_disk_is_that_of_the_table(model, tmp_path):
    table = make_table(8500, target="numbers")
    scanned = Scan(table, "y", weight="w", drop=["g"], memory=10**9, block_rows=4096)
    check_same(model, table, scanned, tmp_path, table["w"].to_numpy())


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("more", [{}, {"newton": False, "subsample": 1.0}, {"class_weight": "balanced"}], ids=str)
def test_a_model_of_three_classes_grown_from_disk_is_that_of_the_table(more, tmp_path):
    table = make_table(8500, target="three")
    scanned = Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096)
    check_same(spinney.GradientBoostingClassifier(**FEW, **more), table, scanned, tmp_path)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("n_rows", [1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 12_289])
def test_rows_around_the_ends_of_blocks(n_rows, tmp_path):
    table = make_table(n_rows)
    weight = np.where(np.arange(n_rows) == n_rows - 1, 3.25, table["w"].to_numpy())
    table = table.set_column(table.column_names.index("w"), "w", [weight])
    model = spinney.GradientBoostingClassifier(min_samples_leaf=3, **FEW)
    scanned = Scan(table, "y", weight="w", drop=["g"], memory=10**9, block_rows=4096)
    check_same(model, table, scanned, tmp_path, weight)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("shares", [(0.0, 1.0), (0.5, 2.0), (1e-120, 1e-119), (1.0, 3.0)])
def test_weights_of_every_kind(shares, tmp_path):
    table = make_table(9001)
    rng = np.random.default_rng(3)
    weight = np.where(rng.random(9001) < 0.4, *shares)
    table = table.set_column(table.column_names.index("w"), "w", [weight])
    scanned = Scan(table, "y", weight="w", drop=["g"], memory=10**9, block_rows=4096)
    for class_weight in (None, "balanced"):
        model = spinney.GradientBoostingClassifier(class_weight=class_weight, **FEW)
        check_same(model, table, scanned, tmp_path, weight)
