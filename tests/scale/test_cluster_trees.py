"""Forests and trees on rows that are spread over workers: the bytes of memory, by any parts, through any losses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import spinney
from disk_tables import model_bytes
from lossy_engine import LossyEngine
from spinney.scale.cluster import level_parts, tree_parts
from spinney.scale.cluster.engine import ThreadEngine
from spread_tables import CLASSES, NUMBERS, WEIGHT, WORDS, N, X, make_mixed, scripts, spread_fit
from time_limits import limited

pytestmark = [
    pytest.mark.compiled(reason="tables of several parts, which have 4,096 rows at least"),
    pytest.mark.filterwarnings("ignore:.* rows were in every bag"),  # few trees will do
]
GROUPS = np.random.default_rng(1).integers(0, 400, N)
FEW = {"n_estimators": 3, "random_state": 1}
MODELS = {
    "words": (spinney.RandomForestClassifier(**FEW), WORDS, {}),
    "three classes": (spinney.RandomForestClassifier(**FEW, max_depth=7, class_weight="balanced"), CLASSES, {}),
    "numbers": (spinney.RandomForestRegressor(**FEW, min_samples_leaf=3), NUMBERS, {}),
    "drawn by weight": (spinney.RandomForestRegressor(**FEW), NUMBERS, {"sample_weight": WEIGHT / 3}),
    "weighed": (spinney.RandomForestClassifier(**FEW, bootstrap=False), WORDS, {"sample_weight": WEIGHT}),
    "groups": (spinney.RandomForestClassifier(**FEW), WORDS, {"groups": GROUPS}),
    "out of bag": (
        spinney.RandomForestClassifier(n_estimators=4, random_state=0, oob_score=True, min_samples_leaf=20),
        CLASSES,
        {},
    ),
    "extra-trees": (spinney.ExtraTreesRegressor(**FEW, min_samples_leaf=2), NUMBERS, {}),
    "categories": (spinney.RandomForestClassifier(**FEW, categorical_features=[1]), WORDS, {}),
    "bagging": (spinney.BaggingRegressor(**FEW, max_samples=0.5), NUMBERS, {}),
    "CART": (spinney.CARTClassifier(), CLASSES, {}),
    "pruned CART": (spinney.CARTRegressor(ccp_alpha=0.01, min_samples_leaf=5), NUMBERS, {}),
}


@pytest.fixture(autouse=True)
def time_limit():
    with limited(300):
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Bytes of the models of the tables in memory."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: model_bytes(clone(model).fit(X, y, **more), folder) for kind, (model, y, more) in MODELS.items()}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("n_slots", [1, 3])
def test_the_file_is_that_of_the_table_in_memory(kind, n_slots, alone, tmp_path):
    model, y, more = MODELS[kind]
    fitted = spread_fit(LossyEngine(n_slots=n_slots), clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == alone[kind]


@pytest.mark.parametrize("fan", [8, 2])
@settings(max_examples=15, deadline=None)
@given(script=scripts, kind=st.sampled_from(sorted(MODELS)), data=st.data())
def test_models_are_those_of_memory_through_any_losses(fan, script, kind, data, alone, tmp_path_factory):
    model, y, more = MODELS[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_parts, "FAN", fan)
        patch.setattr(tree_parts, "TURNS", data.draw(st.sampled_from([1, 2, 8]), "bundles for each thread"))
        ends = [sorted(data.draw(st.lists(st.integers(0, N), max_size=5), f"partitions {k}")) for k in range(2)]
        fitted = spread_fit(LossyEngine(script, n_slots=3), clone(model), X, y, more, ends)
    assert model_bytes(fitted, tmp_path_factory.mktemp("models")) == alone[kind]


@pytest.mark.parametrize("kind", ["words", "CART"])
def test_rows_below_the_top_are_finished_by_several_tasks(kind, alone, tmp_path):
    """And never come to the client: what comes are sums, pieces of trees and votes."""
    names = []

    class Watched(LossyEngine):
        def start(self, name, task, part, held):
            names.append(name)
            return super().start(name, task, part, held)

    model, y, more = MODELS[kind]
    fitted = spread_fit(Watched(n_slots=3), clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == alone[kind]
    n_trees = len(getattr(fitted, "estimators_", [0]))
    assert names.count("top") > 1
    assert names.count("tree") > 2 * n_trees
    assert "gather" not in names
    assert "pick" not in names


def test_a_lost_part_is_made_again_and_trees_are_not(alone, tmp_path):
    """All that workers hold goes in the middle of the last tree: the trees before are not grown again."""
    model, y, more = MODELS["words"]
    quiet = LossyEngine(n_slots=3)
    spread_fit(quiet, clone(model), X, y, more)
    script = [(0, False, False)] * (quiet.n_begun - 4) + [(0, True, True)]
    engine = LossyEngine(script, n_slots=3)
    assert model_bytes(spread_fit(engine, clone(model), X, y, more), tmp_path) == alone["words"]
    assert engine.n_begun < quiet.n_begun + 5


@pytest.mark.parametrize("kind", ["numbers", "out of bag"])
def test_threads_of_a_worker_share_its_blocks(kind, alone, tmp_path, monkeypatch):
    from spinney.estimators import level_tasks

    class Worker(LossyEngine):
        def threads_each(self):
            return 2

    monkeypatch.setattr(level_tasks, "BLOCK_ROWS", 4096)
    for module in (level_parts, tree_parts):
        monkeypatch.setattr(module, "count_threads", lambda: 2)
    model, y, more = MODELS[kind]
    assert model_bytes(spread_fit(Worker(n_slots=4), clone(model), X, y, more), tmp_path) == alone[kind]


def test_threads_do_the_same(alone, tmp_path):
    model, y, more = MODELS["extra-trees"]
    with ThreadEngine(2) as engine:
        fitted = spread_fit(engine, clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == alone["extra-trees"]


def test_frames_of_every_kind_of_column(tmp_path):
    frame, y = make_mixed(9000)
    model = spinney.RandomForestRegressor(**FEW, max_bins=400)
    expected = clone(model).fit(frame, y)
    fitted = spread_fit(LossyEngine(), clone(model), frame, y, ends=((2500, 2500, 6000), (4000,)))
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)


def test_a_forest_goes_on_from_a_checkpoint(alone, tmp_path, monkeypatch):
    """Of a fit on workers in memory, and the other way round."""
    monkeypatch.setattr("spinney.estimators.checkpoints.SECONDS", 0.0)
    model, y, more = MODELS["out of bag"]
    counted = clone(model).set_params(checkpoint=tmp_path / "run")
    quiet = LossyEngine()
    spread_fit(quiet, clone(model), X, y, more)
    script = [(0, False, False)] * (quiet.n_begun - 20) + [(0, True, False)] * 60
    from spinney.scale.cluster.engine import LostError

    with pytest.raises(LostError):
        spread_fit(LossyEngine(script, patience=2), clone(counted), X, y, more)
    assert (tmp_path / "run" / "checkpoint.spn").exists()
    again = LossyEngine()
    fitted = spread_fit(again, clone(counted), X, y, more)
    assert model_bytes(fitted.set_params(checkpoint=None), tmp_path) == alone["out of bag"]
    assert again.n_begun < quiet.n_begun
    with pytest.raises(LostError):
        spread_fit(LossyEngine(script, patience=2), clone(counted), X, y, more)
    here = clone(counted).fit(X, y, **more)
    assert model_bytes(here.set_params(checkpoint=None), tmp_path) == alone["out of bag"]


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (spinney.CARTRegressor(), {"sample_weight": WEIGHT}, "needs weights above 0.*plan 'one'"),
        (spinney.CARTRegressor(), {"sample_weight": WEIGHT / 3 + 1}, "need whole numbers.*plan 'one'"),
    ],
)
def test_what_needs_all_rows_at_once_is_refused(model, more, message):
    with pytest.raises(ValueError, match=message):
        spread_fit(LossyEngine(), clone(model), X, NUMBERS, more)


def test_errors_name_the_row_of_the_table():
    y = NUMBERS.copy()
    y[5003] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN.*row 5003"):
        spread_fit(LossyEngine(), clone(MODELS["numbers"][0]), X, y)
