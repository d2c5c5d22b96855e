"""Boosting on rows that are spread over workers: the bytes of memory, by any parts, through any losses."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import spinney
from disk_tables import model_bytes
from lossy_engine import LossyEngine
from spinney.scale.cluster import level_parts
from spinney.scale.cluster.engine import LostError, ThreadEngine
from spinney.scale.cluster.level_parts import decode, do_each
from spinney.scale.cluster.row_ranges import choose_heads, find_ranges, take_head
from spread_tables import CLASSES, NUMBERS, WEIGHT, WORDS, N, X, make_mixed, scripts, spread_fit
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="tables of several parts, which have 4,096 rows at least")


@pytest.fixture(autouse=True)
def time_limit():
    with limited(300):
        yield


FEW = {"n_estimators": 3, "max_leaf_nodes": 6, "random_state": 1}
MODELS = {
    "words": (spinney.GradientBoostingClassifier(**FEW), WORDS, {}),
    "three classes": (spinney.GradientBoostingClassifier(**FEW, subsample=0.5), CLASSES, {}),
    "balanced": (
        spinney.GradientBoostingClassifier(**FEW, class_weight={0: 0.0, 1: 2.5, 2: 1.0}),
        CLASSES,
        {"sample_weight": WEIGHT},
    ),
    "weights": (spinney.GradientBoostingRegressor(**FEW), NUMBERS, {"sample_weight": WEIGHT / 3}),
    "quantiles": (
        spinney.GradientBoostingRegressor(**FEW, loss="quantile", alpha=[0.2, 0.8]),
        NUMBERS,
        {"sample_weight": WEIGHT},
    ),
    "huber": (
        spinney.GradientBoostingRegressor(**FEW, loss="huber", newton=False),
        NUMBERS,
        {"sample_weight": WEIGHT},
    ),
    "categories": (
        spinney.GradientBoostingRegressor(
            **FEW, categorical_features=[1], max_features=2, max_features_per_tree=4, cat_penalty=1.0
        ),
        NUMBERS,
        {},
    ),
    "constraints": (
        spinney.GradientBoostingRegressor(
            **FEW, monotonic_cst=[1, 0, 0, -1, 0, 0], interaction_cst=[[0, 1, 2], [2, 3, 4, 5]], loss="poisson"
        ),
        NUMBERS,
        {},
    ),
    "stopping": (
        spinney.GradientBoostingClassifier(**FEW | {"n_estimators": 30}, n_iter_no_change=1, learning_rate=1.5),
        WORDS,
        {"X_val": X[:500], "y_val": WORDS[:500]},
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("n_slots", [1, 3])
def test_the_file_is_that_of_the_table_in_memory(kind, n_slots, tmp_path):
    model, y, more = MODELS[kind]
    alone = clone(model).fit(X, y, **more)
    fitted = spread_fit(LossyEngine(n_slots=n_slots), clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == model_bytes(alone, tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Bytes of the models of the tables in memory."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: model_bytes(clone(model).fit(X, y, **more), folder) for kind, (model, y, more) in MODELS.items()}


@pytest.mark.parametrize("fan", [8, 2])
@settings(max_examples=25, deadline=None)
@given(script=scripts, kind=st.sampled_from(sorted(MODELS)), data=st.data())
def test_models_are_those_of_memory_through_any_losses(fan, script, kind, data, alone, tmp_path_factory):
    model, y, more = MODELS[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(level_parts, "FAN", fan)
        ends = [sorted(data.draw(st.lists(st.integers(0, N), max_size=5), f"partitions {k}")) for k in range(2)]
        fitted = spread_fit(LossyEngine(script, n_slots=3), clone(model), X, y, more, ends)
    assert model_bytes(fitted, tmp_path_factory.mktemp("models")) == alone[kind]


def test_what_is_lost_is_made_again_from_the_trees_so_far(alone, tmp_path):
    """All that workers hold goes in the middle of the last round: two rounds are not grown again."""
    model, y, more = MODELS["three classes"]
    quiet = LossyEngine(n_slots=3)
    spread_fit(quiet, clone(model), X, y, more)
    n_tasks = quiet.n_begun
    script = [(0, False, False)] * (n_tasks - 15) + [(0, True, True)]
    engine = LossyEngine(script, n_slots=3)
    fitted = spread_fit(engine, clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == alone["three classes"]
    assert engine.n_begun < n_tasks + 20


def test_threads_do_the_same(alone, tmp_path):
    model, y, more = MODELS["weights"]
    with ThreadEngine(2) as engine:
        fitted = spread_fit(engine, clone(model), X, y, more)
    assert model_bytes(fitted, tmp_path) == alone["weights"]


@pytest.mark.parametrize("kind", ["words", "quantiles"])
def test_a_worker_has_one_part_whatever_threads_it_has(kind, alone, tmp_path, monkeypatch):
    """One task for each worker and pass; its threads share the blocks of the part."""
    from spinney.estimators import level_tasks

    class Worker(LossyEngine):
        def threads_each(self):
            return 2

    monkeypatch.setattr(level_parts, "count_threads", lambda: 2)
    monkeypatch.setattr(level_tasks, "BLOCK_ROWS", 4096)
    model, y, more = MODELS[kind]
    both, each = Worker(n_slots=4), LossyEngine(n_slots=4)
    with pytest.MonkeyPatch.context() as patch:
        seen = []
        patch.setattr(level_parts, "do_each", lambda *given: seen.append(len(given[1])) or do_each(*given))
        fitted = spread_fit(both, clone(model), X, y, more)
    assert max(seen) == 2  # of the three blocks of 9,100 rows, or the two of those that weigh something
    assert model_bytes(fitted, tmp_path) == alone[kind]
    spread_fit(each, clone(model), X, y, more)
    assert both.n_begun < each.n_begun


@pytest.mark.parametrize("kind", ["words", "three classes"])
@pytest.mark.parametrize("n_kept", [1, 2])
def test_a_fit_goes_on_from_a_checkpoint(kind, n_kept, alone, tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.estimators.checkpoints.SECONDS", 0.0)
    model, y, more = MODELS[kind]
    counted = clone(model).set_params(checkpoint=tmp_path / "run")

    def stop(iteration, _):
        if iteration == n_kept + 1:  # which is not whole then
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spread_fit(LossyEngine(), counted, X, y, {**more, "callbacks": [stop]})
    assert not hasattr(counted, "forest_")
    assert (tmp_path / "run" / "checkpoint.spn").exists()
    other = clone(counted).fit(X, y, **more)  # in memory
    assert model_bytes(other.set_params(checkpoint=None), tmp_path) == alone[kind]
    with pytest.raises(KeyboardInterrupt):
        clone(counted).fit(X, y, **more, callbacks=[stop])
    fitted = spread_fit(LossyEngine(), counted, X, y, more)  # and back
    assert model_bytes(fitted.set_params(checkpoint=None), tmp_path) == alone[kind]


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    model, y, _ = MODELS["words"]
    counted = clone(model).set_params(checkpoint=tmp_path / "run")
    quiet = LossyEngine()
    spread_fit(quiet, clone(model), X, y)
    script = [(0, False, False)] * (quiet.n_begun - 3) + [(0, True, False)] * 40
    with pytest.raises(LostError, match="lost 3 times without a result between, last spinney-"):
        spread_fit(LossyEngine(script, patience=2), counted, X, y)
    assert (tmp_path / "run" / "checkpoint.spn").exists()
    with pytest.raises(ValueError, match="is of another fit: X or y differs"):
        spread_fit(LossyEngine(), counted, X + 1.0, y)


def test_frames_of_every_kind_of_column(tmp_path):
    frame, y = make_mixed(9000)
    model = spinney.GradientBoostingRegressor(n_estimators=3, random_state=2, max_bins=40)
    expected = clone(model).fit(frame, y)
    fitted = spread_fit(LossyEngine(), clone(model), frame, y, ends=((2500, 2500, 6000), (4000,)))
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)
    assert fitted.feature_names_in_.tolist() == expected.feature_names_in_.tolist()


def test_partitions_are_not_written_to(tmp_path):
    """Sorting, and summing in place, are done on copies: partitions may be the user's own arrays."""
    values, y = X.astype(np.float32), NUMBERS.copy()
    before = values.tobytes(), y.tobytes()
    spread_fit(LossyEngine(n_slots=2), clone(MODELS["weights"][0]), values, y)
    assert (values.tobytes(), y.tobytes()) == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({"n_iter_no_change": 2, "validation_fraction": 0.2}, {}, r"give X_val .*spinney\.plan"),
        ({"loss": "quantile"}, {"sample_weight": np.full(N, 0.5)}, r"spread over workers needs weights that are whole"),
    ],
)
def test_what_needs_all_rows_at_once_is_refused(change, more, message):
    model = spinney.GradientBoostingRegressor(**FEW, **change)
    with pytest.raises(ValueError, match=message):
        spread_fit(LossyEngine(), model, X, NUMBERS, more)


def test_errors_name_the_row_of_the_table():
    y = NUMBERS.copy()
    y[5003] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN.*row 5003"):
        spread_fit(LossyEngine(), clone(MODELS["weights"][0]), X, y)
    weight = np.ones(N)
    weight[8000] = -1.0
    with pytest.raises(ValueError, match="in row 8000"):
        spread_fit(LossyEngine(), clone(MODELS["weights"][0]), X, NUMBERS, {"sample_weight": weight})
    with pytest.raises(ValueError, match="X has 9100 rows, y has 9000"):
        spread_fit(LossyEngine(), clone(MODELS["weights"][0]), X, NUMBERS[:9000])
    mixed = pd.DataFrame({"a": np.array([1.0] * 8192 + ["red"] * (N - 8192), dtype=object)})
    with pytest.raises(ValueError, match="'a' holds numbers in some rows and text"):
        spread_fit(LossyEngine(), clone(MODELS["weights"][0]), mixed, NUMBERS, ends=((5000,), ()))


# --- what it is made of -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.data())
def test_ranges_are_the_rows_asked_for(lengths, data):
    n_rows = sum(lengths)
    first = data.draw(st.integers(0, n_rows))
    last = data.draw(st.integers(first, n_rows))
    rows = np.split(np.arange(n_rows), np.cumsum(lengths)[:-1])
    found = [rows[one.partition][one.first : one.last] for one in find_ranges(lengths, first, last)]
    assert all(len(piece) for piece in found)
    assert np.concatenate([np.empty(0), *found]).tolist() == list(range(first, last))


def test_heads_have_a_known_value_of_every_column():
    frame = pd.DataFrame({"a": [None, None, "x"], "b": [1.0, 2.0, 3.0]})
    assert take_head(frame)["a"].tolist()[-1] == "x"
    assert len(take_head(frame.iloc[:0])) == 0
    heads = choose_heads([take_head(frame), take_head(frame.iloc[:2]), take_head(frame), take_head(frame.iloc[:0])])
    assert [len(head) for head in heads] == [2, 1, 0]


def test_codes_decode_to_values_that_go_the_same_way():
    from spinney._jit.choice import compiled
    from spinney.table.binning import make_bins
    from spinney.table.bundles import bundle_features
    from spinney.table.ingest import read_columns

    bins = bundle_features(make_bins(read_columns(X, [1]), np.ones(1, np.int64), 20, compiled()))
    assert (bins.base >= 0).any()
    values = decode(bins.rows, bins)
    assert np.array_equal(np.isnan(values), np.isnan(X))
    model = spinney.GradientBoostingRegressor(n_estimators=3, max_bins=20, categorical_features=[1]).fit(X, NUMBERS)
    assert np.array_equal(model.predict(values), model.predict(X))
