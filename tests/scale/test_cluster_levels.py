"""Boosting on rows that are spread over workers: the bytes of memory, by any parts, through any losses."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import spinney
from disk_tables import model_bytes
from lossy_engine import LossyEngine
from spinney.estimators.cluster_fits import Opened, fit_on_parts
from spinney.scale.cluster import level_parts
from spinney.scale.cluster.collections import Partitions, Place
from spinney.scale.cluster.engine import LostError, ThreadEngine
from spinney.scale.cluster.level_parts import decode
from spinney.scale.cluster.row_ranges import choose_heads, find_ranges, take_head
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="tables of several parts, which have 4,096 rows at least")
scripts = st.lists(st.tuples(st.integers(0, 20), st.booleans(), st.integers(0, 9).map(lambda k: k == 0)), max_size=80)


@pytest.fixture(autouse=True)
def time_limit():
    with limited(300):
        yield


N = 9100
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 6)).round(2)
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 1] = RNG.integers(0, 12, N)
X[:, 4:] = (RNG.integers(0, 4, N)[:, None] == [1, 2]) * 1.0  # which share a byte
NUMBERS = np.abs(2 * np.nan_to_num(X[:, 0]) + np.sin(X[:, 1]) + RNG.normal(size=N))
CLASSES = np.digitize(NUMBERS, [0.7, 1.9])
WORDS = np.array(["no", "yes"], dtype=object)[(NUMBERS > 1.0).astype(int)]
WEIGHT = RNG.integers(0, 4, N).astype(float)
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


def join_rows(parts):
    """What `compute` does of these collections."""
    return pd.concat(parts) if isinstance(parts[0], pd.DataFrame) else np.concatenate(parts)


def take(table, first, last):
    return table.iloc[first:last] if isinstance(table, pd.DataFrame) else table[first:last]


def spread_fit(engine, model, X, y, more=(), ends=((3000, 3000, 7200), (5000,))):
    """A fit of rows in partitions that an engine holds, which end at these rows: those of X, then all else."""
    tables = {"X": X, "y": y, **dict(more)}
    arguments, parts, lengths = {}, [], []
    for name, table in tables.items():
        if name not in {"X", "y", "sample_weight"}:
            arguments[name] = table
            continue
        edges = [0, *ends[0 if name == "X" else 1], len(table)]
        arguments[name] = Place(len(parts))
        pairs = list(itertools.pairwise(edges))
        parts.append([engine.hold("part", take, table, *pair) for pair in pairs])
        lengths.append([last - first for first, last in pairs])
    pieces = [Partitions([], join_rows, (), is_matrix=False)] * len(parts)
    fit_on_parts(engine, model, Opened(arguments, parts, None, None, pieces, lengths), None)
    return model


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


def make_mixed(n_rows):
    """A frame whose partitions differ in type and dictionary; as `compute` has it."""
    rng = np.random.default_rng(3)
    text = rng.choice(["red", "blue", "green"], n_rows).astype(object)
    text[: n_rows // 3] = None  # a partition without any
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows).astype(np.float32),
            "whole": rng.integers(-5, 40, n_rows),
            "text": text,
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n_rows), categories=["s", "m", "l", "xl"], ordered=True),
            "flag": rng.random(n_rows) < 0.3,
            "day": np.datetime64("2021-03-01") + rng.integers(0, 700, n_rows).astype("timedelta64[D]"),
        }
    )
    return frame, frame["number"].to_numpy() + (frame["size"] == "m") + rng.normal(size=n_rows)


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
