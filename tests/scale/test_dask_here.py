"""Dask collections without a cluster: lazy predictions, fits that compute here, and clients that cannot be used."""

import asyncio
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse

import spinney
from dask_tables import FEATURES, cut_frame, make_frame
from disk_tables import model_bytes
from spinney.estimators.cluster_tasks import Sown, describe_sown
from spinney.scale.cluster.engine import LostError
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about collections, not kernels")
FRAME = make_frame(300)


@pytest.fixture(autouse=True)
def time_limit():
    with limited(120):
        yield


# --- predictions --------------------------------------------------------------------------------------------------


def test_predictions_are_lazy_and_equal():
    ddf = cut_frame(FRAME, 5, has_empty=True)
    X = ddf[FEATURES].compute()
    model = spinney.RandomForestClassifier(n_estimators=3, random_state=0).fit(X, FRAME["y"])
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        lazy, here = getattr(model, method)(ddf[FEATURES]), getattr(model, method)(X)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == here.dtype
        assert lazy.npartitions == ddf.npartitions
        assert np.array_equal(lazy.compute(), here), method


def test_predictions_of_arrays_have_known_lengths_and_need_no_client():
    values = FRAME[["number", "whole", "holes"]].to_numpy()
    X = da.from_array(values, chunks=(100, 3))
    model = spinney.GradientBoostingRegressor(n_estimators=4).fit(values, FRAME["z"])
    lazy = model.predict(X)
    assert lazy.chunks == ((100, 100, 100),)
    assert np.array_equal(lazy.compute(), model.predict(values))
    leaves = model.apply(X)
    assert leaves.shape == model.apply(values).shape
    assert np.array_equal(leaves.compute(), model.apply(values))
    for lazy_stage, stage in zip(model.staged_predict(X), model.staged_predict(values), strict=True):
        assert np.array_equal(lazy_stage.compute(), stage)
    one = spinney.CARTClassifier(max_depth=2).fit(values, FRAME["y"])
    assert np.array_equal(one.apply(X).compute(), one.apply(values))
    assert np.array_equal(one.predict(X).compute(), one.predict(values))


@pytest.mark.parametrize("pack", [sparse.csr_array, sparse.csr_matrix])
def test_chunks_may_be_sparse(pack):
    """Models were fitted to them; predictions asked for their length, which scipy refuses to tell."""
    values = np.where(FRAME[["number", "whole"]].to_numpy() > 0, 1.0, 0.0)
    X = da.from_array(values, chunks=(100, 2)).map_blocks(pack, dtype=float)
    y = FRAME["y"].to_numpy()
    model = spinney.RandomForestClassifier(n_estimators=3, random_state=0).fit(X, da.from_array(y, chunks=100))
    here = spinney.RandomForestClassifier(n_estimators=3, random_state=0).fit(values, y)
    assert np.array_equal(model.predict_proba(X).compute(), here.predict_proba(values))


def test_codes_of_all_cells_are_not_made_to_leave_them_out():
    """What the client gets of a forest that workers grow has no rows."""
    values = np.zeros((200, 150))
    values[np.arange(200), np.arange(200) % 150] = np.arange(200) % 5
    y = np.arange(200) % 2
    forest = spinney.RandomForestClassifier(n_estimators=3)
    prepared = forest._prepare_growth(sparse.csr_array(values), y, seed=0)
    sent = describe_sown(Sown({}, prepared, None, []), None).prepared.growth.plan
    full = forest._prepare_growth(values, y, seed=0)
    expected = describe_sown(Sown({}, full, None, []), None).prepared.growth.plan
    assert sent.codes.rows.shape == expected.codes.rows.shape == (0, full.growth.plan.codes.rows.shape[1])
    assert "rows" not in vars(prepared.growth.plan.codes)


@pytest.mark.parametrize("kind", ["AdaBoostClassifier", "BaggingClassifier", "StackingClassifier"])
def test_every_ensemble_predicts_collections(kind):
    values = FRAME[["number", "whole"]].to_numpy()
    X = da.from_array(values, chunks=(100, 2))
    members = (
        {"estimators": [("tree", spinney.CARTClassifier(max_depth=2))]} if "Stacking" in kind else {"n_estimators": 3}
    )
    model = getattr(spinney, kind)(**members).fit(values, FRAME["y"])
    assert np.array_equal(model.predict(X).compute(), model.predict(values))
    assert np.array_equal(model.predict_proba(X).compute(), model.predict_proba(values))
    if kind == "AdaBoostClassifier":
        stages = zip(model.staged_predict_proba(X), model.staged_predict_proba(values), strict=True)
        assert all(np.array_equal(a.compute(), b) for a, b in stages)
        assert np.array_equal(model.decision_function(X).compute(), model.decision_function(values))


def test_what_predicts_no_collection_says_so():
    X = da.from_array(FRAME[["number", "whole"]].to_numpy(), chunks=(100, 2))
    model = spinney.RandomForestRegressor(n_estimators=3).fit(X.compute(), FRAME["z"])
    with pytest.raises(TypeError, match=r"X is a Dask Array, and this takes rows in memory: give X\.compute\(\)"):
        model.predict_trees(X)
    boosted = spinney.GradientBoostingRegressor(n_estimators=3).fit(X.compute(), FRAME["z"])
    with pytest.raises(TypeError, match="takes no other collection beside X"):
        boosted.predict(X, init_score=X[:, 0])
    with pytest.raises(ValueError, match=r"3 chunks of columns.*X\.rechunk\(\{1: -1\}\)"):
        boosted.predict(da.zeros((9, 3), chunks=(9, 1)))


@pytest.mark.parametrize(
    "model",
    [
        spinney.CARTClassifier(),
        spinney.RandomForestRegressor(n_estimators=3),
        spinney.GradientBoostingRanker(n_estimators=3),
        spinney.GradientBoostingSurvival(n_estimators=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scores_of_collections_are_refused_with_the_way_out(model):
    X, y = FRAME[["number", "whole"]].fillna(0.0), np.arange(len(FRAME)) % 2 + 1
    model.fit(X, y)
    ddf = cut_frame(FRAME, 3)[["number", "whole"]]
    with pytest.raises(TypeError, match=r"score takes rows in memory.* give X\.compute\(\) and y\.compute\(\)"):
        model.score(ddf, y)
    with pytest.raises(TypeError, match="score takes rows in memory"):
        model.score(X, y=da.from_array(y))
    assert np.isfinite(model.score(X=X, y=y))


# --- fits ---


def test_without_a_client_it_is_computed_here(tmp_path):
    ddf = cut_frame(FRAME, 3)
    here = spinney.CARTRegressor().fit(ddf[FEATURES].compute(), ddf["z"].compute())
    fitted = spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)


def test_an_asynchronous_client_is_refused_with_the_way_out():
    ddf = cut_frame(FRAME, 2)

    async def fit():
        async with (
            LocalCluster(n_workers=1, processes=False, dashboard_address=":0", asynchronous=True) as cluster,
            Client(cluster, asynchronous=True),
        ):
            spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])

    with pytest.raises(ValueError, match=r"asynchronous.*asyncio\.to_thread\(model\.fit, X, y\)"):
        asyncio.run(fit())


def test_a_plan_needs_a_client():
    ddf = cut_frame(FRAME, 4)
    with pytest.raises(ValueError, match="no Dask client"):
        spinney.plan_fit(spinney.CARTRegressor(), ddf[FEATURES], ddf["z"])


def test_no_worker_is_waited_for_in_vain(capsys, monkeypatch):
    monkeypatch.setattr("spinney.scale.cluster.dask_engine.TELL_SECONDS", 0.5)
    ddf = cut_frame(FRAME, 2)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        dask.config.set({"spinney.no-workers-timeout": 2}),
        pytest.raises(LostError, match=r"no worker for \d+ seconds: start some"),
    ):
        spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])
    assert "has no workers: waiting for some" in capsys.readouterr().err


def test_tables_in_memory_never_load_dask():
    code = "import sys, spinney; spinney.CARTRegressor().fit([[1.0], [2.0]], [1.0, 2.0]).predict([[1.0]]); "
    code += "print([name for name in ('dask', 'distributed') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_leaves_of_classes_have_an_axis_more():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = spinney.GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    leaves = model.apply(da.from_array(X, chunks=20))
    assert leaves.shape == (60, 2, 3)
    assert np.array_equal(leaves.compute(), model.apply(X))
