"""Engines: every part done once, sums exact, models the same, whatever is lost; and when they give up."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import spinney
from disk_tables import model_bytes
from lossy_engine import LossyEngine, WorkerGoneError
from spinney.estimators.checkpoints import Checkpoint
from spinney.estimators.checks import set_state, take_state
from spinney.estimators.cluster_fits import Opened, fit_at_one, fit_by_trees
from spinney.scale.cluster.cluster_line import ClusterLine
from spinney.scale.cluster.collections import Place
from spinney.scale.cluster.engine import LostError, ThreadEngine
from time_limits import limited

scripts = st.lists(st.tuples(st.integers(0, 20), st.booleans(), st.booleans()), max_size=60)


@pytest.fixture(autouse=True)
def time_limit():
    with limited(120):
        yield


def square(part):
    return part * part


def scale(held, part):
    return held * part


def fail_at_three(part):
    if part == 3:
        raise KeyError("three")
    return part


# --- the interface ----------------------------------------------------------------------------------------------


@given(scripts, st.integers(0, 12), st.integers(1, 5))
def test_every_part_is_done_once_whatever_is_lost(script, n_parts, n_slots):
    engine = LossyEngine(script, n_slots)
    found = list(engine.map("square", square, range(n_parts)))
    assert sorted(found) == [(k, k * k) for k in range(n_parts)]
    assert engine.n_begun == n_parts + engine.n_lost
    assert not engine.under_way


@given(scripts, st.integers(1, 12))
def test_a_sum_is_that_of_all_parts_and_what_is_held_is_made_again(script, n_parts):
    engine = LossyEngine(script)
    first = engine.hold("first", square, 3)
    held = engine.hold("second", operator.add, first, 1)  # 10
    assert engine.add("scale", scale, range(n_parts), operator.add, held) == 10 * sum(range(n_parts))
    assert engine.n_made >= 2


@given(st.integers(0, 6), st.integers(1, 4))
def test_patience_is_for_losses_in_a_row(n_losses, patience):
    engine = LossyEngine([(0, True, False)] * n_losses, n_slots=1, patience=patience)
    if n_losses <= patience:
        assert engine.run("square", square, 4) == 16
        return
    with pytest.raises(LostError, match=rf"lost {patience + 1} times .*spinney-square 4.*checkpoint=") as caught:
        engine.run("square", square, 4)
    assert isinstance(caught.value.__cause__, WorkerGoneError)
    assert not engine.under_way


def test_results_between_losses_renew_patience():
    script = [(0, True, False), (0, False, False)] * 20
    engine = LossyEngine(script, n_slots=1, patience=1)
    assert len(list(engine.map("square", square, range(20)))) == 20
    assert engine.n_lost == 20


def test_a_worker_that_takes_many_tasks_with_it_is_one_loss():
    engine = LossyEngine([(0, True, False)] * 8, n_slots=8, patience=1)
    assert len(list(engine.map("square", square, range(8)))) == 8
    assert engine.n_lost == 8


def test_an_error_of_a_task_is_raised_and_not_repeated():
    engine = LossyEngine(n_slots=2)
    with pytest.raises(KeyError, match="three"):
        list(engine.map("fail", fail_at_three, range(9)))
    assert engine.n_begun < 9
    assert engine.n_lost == 0


def test_there_is_something_to_add_up():
    with pytest.raises(ValueError, match="no part"):
        LossyEngine().add("square", square, [], operator.add)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_threads_do_the_same(n_workers):
    with ThreadEngine(n_workers) as engine:
        held = engine.hold("ten", square, 10)
        assert engine.add("scale", scale, range(50), operator.add, held) == 100 * sum(range(50))
        with pytest.raises(KeyError, match="three"):
            list(engine.map("fail", fail_at_three, range(9)))


def test_parts_are_taken_as_tasks_can_begin():
    engine, taken = LossyEngine(n_slots=2), []

    def parts():
        for k in range(6):
            taken.append(k)
            yield k

    for n_done, _ in enumerate(engine.map("square", square, parts()), 1):
        assert len(taken) <= n_done + 2


# --- whole fits -------------------------------------------------------------------------------------------------

N = 90
RNG = np.random.default_rng(7)
X = np.round(RNG.normal(size=(N, 3)), 1)
NUMBERS = X[:, 0] + RNG.normal(size=N)
CLASSES = np.digitize(NUMBERS, [-0.5, 0.7])
WEIGHT = RNG.integers(0, 4, N).astype(float)
SHARED = {
    "forest": (spinney.RandomForestClassifier(n_estimators=6, oob_score=True, random_state=1), CLASSES, None),
    "weights": (spinney.RandomForestRegressor(n_estimators=5, oob_score=True, random_state=2), NUMBERS, WEIGHT),
    "rows": (spinney.RandomForestRegressor(n_estimators=5, keep_members=True, random_state=2), NUMBERS, None),
    "honest": (
        spinney.RandomForestClassifier(n_estimators=4, honest=True, voting="hard", random_state=3),
        CLASSES,
        None,
    ),
    "extra": (spinney.ExtraTreesClassifier(n_estimators=4, random_state=4), CLASSES, None),
    "bagging": (
        spinney.BaggingClassifier(n_estimators=5, max_features=2, oob_score=True, random_state=5),
        CLASSES,
        WEIGHT,
    ),
}


def lossy_fit(way, engine, model, y, weight, state=None):
    """A fit on an engine, of rows that it holds."""
    arguments = {"X": Place(0), "y": Place(1)} | ({} if weight is None else {"sample_weight": Place(2)})
    rows = engine.hold("rows", list, [X, y, weight])
    way(engine, model, Opened(arguments, [], rows, None), state)
    return model


@pytest.mark.filterwarnings("ignore:.*rows were in every bag")
@pytest.mark.parametrize("kind", SHARED)
@settings(max_examples=20)
@given(script=scripts, n_slots=st.integers(1, 4))
def test_forests_are_those_of_memory_through_any_losses(kind, script, n_slots, tmp_path_factory):
    model, y, weight = SHARED[kind]
    folder = tmp_path_factory.mktemp("models")
    alone = model_bytes(clone(model).fit(X, y, weight), folder)
    fitted = lossy_fit(fit_by_trees, LossyEngine(script, n_slots), clone(model), y, weight)
    assert model_bytes(fitted, folder) == alone


@pytest.mark.filterwarnings("ignore:.*rows were in every bag")
@settings(max_examples=20)
@given(script=scripts, n_kept=st.integers(1, 6))
def test_forests_go_on_after_a_checkpoint(script, n_kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    model = spinney.RandomForestClassifier(n_estimators=6, oob_score=True, checkpoint=folder / "run")
    alone = model_bytes(clone(model).set_params(checkpoint=None, random_state=1).fit(X, CLASSES), folder)
    given_up = LossyEngine([(0, False, False)] * (1 + n_kept) + [(0, True, False)] * 4, n_slots=1, patience=2)
    model.random_state = 1
    if n_kept < 6:
        with pytest.raises(LostError):
            lossy_fit(fit_by_trees, given_up, model, CLASSES, None)
        assert (folder / "run" / "checkpoint.spn").exists()
        assert not hasattr(model, "forest_")
    engine = LossyEngine(script)
    assert (
        model_bytes(lossy_fit(fit_by_trees, engine, model, CLASSES, None).set_params(checkpoint=None), folder) == alone
    )
    assert not (folder / "run").exists()


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "AdaBoostClassifier", "RandomForestClassifier"])
def test_slices_of_a_fit_are_the_fit(name, tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.estimators.cluster_fits.SECONDS", 0.0)
    monkeypatch.setattr("spinney.estimators.checkpoints._Pause.is_due", lambda _: True)  # a tree at a time
    model = getattr(spinney, name)(n_estimators=4, random_state=3)
    alone = model_bytes(clone(model).fit(X, CLASSES), tmp_path)
    engine = LossyEngine([(0, k % 2 == 0, True) for k in range(8)])
    model.checkpoint = tmp_path / "run"
    lossy_fit(fit_at_one, engine, model, CLASSES, None)
    assert model_bytes(model.set_params(checkpoint=None), tmp_path) == alone
    assert engine.n_begun >= 4 + engine.n_lost
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(5)])
def test_seeds_are_drawn_as_by_a_fit_here(random_state):
    np.random.seed(11)  # noqa: NPY002  what None draws from
    twin = None if random_state is None else np.random.RandomState(5)
    here = spinney.RandomForestClassifier(n_estimators=2, random_state=twin).fit(X, CLASSES)
    after = np.random.get_state()[1].tolist() if twin is None else twin.get_state()[1].tolist()  # noqa: NPY002
    np.random.seed(11)  # noqa: NPY002
    model = spinney.RandomForestClassifier(n_estimators=2, random_state=random_state)
    state = take_state(model.random_state)
    engine = LossyEngine([(0, True, True), (0, False, True)] * 3)
    rows = engine.hold("rows", list, [X, CLASSES])
    end = fit_by_trees(engine, model, Opened({"X": Place(0), "y": Place(1)}, [], rows, None), state)
    set_state(model.random_state, end)
    now = (np.random.get_state() if twin is None else random_state.get_state())[1].tolist()  # noqa: NPY002
    assert now == after
    assert np.array_equal(model.predict_proba(X), here.predict_proba(X))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    model = spinney.RandomForestClassifier(n_estimators=3, random_state=1, checkpoint=tmp_path)
    engine = LossyEngine([(0, False, False)] * 2 + [(0, True, False)] * 4, n_slots=1, patience=2)
    with pytest.raises(LostError):
        lossy_fit(fit_by_trees, engine, model, CLASSES, None)
    with pytest.raises(ValueError, match="is of another fit: X or y differs"):
        lossy_fit(fit_by_trees, LossyEngine(), model, 2 - CLASSES, None)
    assert Checkpoint(tmp_path, {}, 0).path.exists()


def test_the_line_tells_trees_workers_and_losses(monkeypatch):
    engine = LossyEngine()
    engine.n_now, engine.n_most, engine.n_lost = 7, 8, 1
    line = ClusterLine(engine, 100, 5000, is_eager=True)
    line.n_done = 40
    assert line.describe(20.0) == "growing: 40 of 100 trees, workers 7/8, lost 1, 10,000 rows/s, 30 s left"
    line.n_before = 20  # of a checkpoint
    assert line.describe(20.0).endswith("lost 1, 5,000 rows/s, 60 s left")
    alone = ClusterLine(engine, None, 5000, is_eager=True)
    assert alone.describe(20.0) == "fitting 5,000 rows at one worker: workers 7/8, lost 1, 20 s"
    drawn = []
    monkeypatch.setattr(line, "draw", drawn.append)
    line.due = 0.0
    line.show(41)
    line.show(42)  # too soon
    assert len(drawn) == 1
    assert "growing: 41 of 100 trees" in drawn[0]
