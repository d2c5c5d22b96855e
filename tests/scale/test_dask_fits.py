"""Fits of Dask collections: files equal to those of the tables in memory, byte for byte, and nothing left behind."""

import time
import warnings

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import spinney
from dask_tables import FEATURES, count_keys, cut_frame, make_frame, open_client
from disk_tables import model_bytes
from spinney.scale.cluster import workers
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about clusters, not kernels")
FRAME = make_frame(300)


@pytest.fixture(autouse=True)
def time_limit():
    with limited(180):
        yield


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread, in this process."""
    with open_client(2) as client:
        yield client


def fit_both(model, ddf, target, way=None, **given):
    """The same estimator fitted to collections and to the tables of them."""
    here = clone(model)
    tables = dask.compute(ddf[FEATURES], ddf[target], given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few trees leave rows without out-of-bag votes
        here.fit(tables[0], tables[1], **tables[2])
        with dask.config.set({"spinney.plan": way}):
            model.fit(ddf[FEATURES], ddf[target], **given)
    return model, here


# --- the same bytes -----------------------------------------------------------------------------------------------

METHODS = {
    "boosting": (spinney.GradientBoostingClassifier(n_estimators=3, random_state=0), "y", ["one"]),
    "boosted numbers": (spinney.GradientBoostingRegressor(n_estimators=3, subsample=0.5, random_state=0), "z", ["one"]),
    "forest": (spinney.RandomForestClassifier(n_estimators=5, oob_score=True, random_state=0), "y", ["one", "trees"]),
    "forest of numbers": (
        spinney.RandomForestRegressor(n_estimators=4, keep_members=True, random_state=0),
        "z",
        ["one", "trees"],
    ),
    "extra-trees": (spinney.ExtraTreesClassifier(n_estimators=4, random_state=0), "y", ["one", "trees"]),
    "bagging": (spinney.BaggingRegressor(n_estimators=4, oob_score=True, random_state=0), "z", ["one", "trees"]),
    "CART": (spinney.CARTClassifier(), "y", ["one"]),
    "C4.5": (spinney.C45Classifier(), "y", ["one"]),
    "AdaBoost": (spinney.AdaBoostClassifier(n_estimators=3, random_state=0), "y", ["one"]),
}
CASES = [(name, way) for name, (_, _, ways) in METHODS.items() for way in ways]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(("name", "way"), CASES)
def test_the_file_is_that_of_the_table_in_memory(name, way, n_parts, client, tmp_path):
    model, target, _ = METHODS[name]
    ddf = cut_frame(FRAME, n_parts, n_parts, has_empty=n_parts > 2)
    fitted, here = fit_both(clone(model), ddf, target, way)
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)
    assert fitted.get_params() == here.get_params()
    assert count_keys(client) == 0


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "trees"])
def test_weights_groups_and_strata_come_along(way, tmp_path):
    ddf = cut_frame(FRAME, 4)
    model = spinney.RandomForestClassifier(n_estimators=4, oob_score=True, random_state=1)
    fitted, here = fit_both(clone(model), ddf, "y", way, sample_weight=ddf["w"], groups=ddf["g"])
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)
    fitted, here = fit_both(clone(model), ddf, "y", way, strata=ddf["text"])
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.usefixtures("client")
def test_rows_to_evaluate_on_may_be_collections_in_lists(tmp_path):
    ddf, other = cut_frame(FRAME, 4), cut_frame(make_frame(120, seed=5), 3, has_empty=True)
    model = spinney.GradientBoostingClassifier(n_estimators=30, n_iter_no_change=2, random_state=1)
    sets = [(other[FEATURES], other["y"]), (ddf[FEATURES], ddf["y"])][::-1]
    fitted, here = fit_both(clone(model), ddf, "y", eval_set=sets)
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)
    fitted, here = fit_both(clone(model), ddf, "y", X_val=other[FEATURES], y_val=other["y"])
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)
    assert len(fitted.estimators_) < 30


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "trees"])
def test_arrays_of_known_and_unknown_lengths(way, tmp_path):
    values = FRAME[["number", "whole", "holes"]].to_numpy()
    X, y = da.from_array(values, chunks=(77, 3)), da.from_array(FRAME["z"].to_numpy(), chunks=50)
    some = y > -0.5
    here = spinney.ExtraTreesRegressor(n_estimators=4, random_state=1).fit(values, FRAME["z"].to_numpy())
    few = clone(here).fit(values[some.compute()], FRAME["z"].to_numpy()[some.compute()])
    with dask.config.set({"spinney.plan": way}):
        assert model_bytes(clone(here).fit(X, y), tmp_path) == model_bytes(here, tmp_path)
        fitted = clone(here).fit(X[some.rechunk(77)], y[some])
        assert model_bytes(fitted, tmp_path) == model_bytes(few, tmp_path)
        mixed = clone(here).fit(X, FRAME["z"].to_numpy())  # y in memory goes along
    assert model_bytes(mixed, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.usefixtures("client")
def test_a_warm_start_adds_to_the_model(tmp_path):
    ddf = cut_frame(FRAME, 3)
    here = spinney.RandomForestRegressor(n_estimators=5, random_state=0).fit(
        ddf[FEATURES].compute(), ddf["z"].compute()
    )
    model = spinney.RandomForestRegressor(n_estimators=2, random_state=0, warm_start=True)
    model.fit(ddf[FEATURES], ddf["z"]).set_params(n_estimators=5).fit(ddf[FEATURES], ddf["z"])
    assert model_bytes(model.set_params(warm_start=False), tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "trees"])
def test_a_checkpoint_is_kept_and_goes(way, tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.estimators.cluster_fits.SECONDS", 0.0)
    ddf = cut_frame(FRAME, 3)
    model = spinney.RandomForestClassifier(n_estimators=6, random_state=2, checkpoint=tmp_path / "run")
    here = clone(model).set_params(checkpoint=None).fit(ddf[FEATURES].compute(), ddf["y"].compute())
    with dask.config.set({"spinney.plan": way}):
        model.fit(ddf[FEATURES], ddf["y"])
    assert model_bytes(model, tmp_path) == model_bytes(here, tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "trees"])
def test_a_fit_goes_on_from_a_checkpoint_of_memory(way, tmp_path):
    ddf = cut_frame(FRAME, 3)
    X, y = ddf[FEATURES].compute(), ddf["y"].compute()
    model = spinney.RandomForestClassifier(n_estimators=6, oob_score=True, checkpoint=tmp_path / "run")
    stop_after(model, 3, X, y)
    with dask.config.set({"spinney.plan": way}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = clone(model).fit(ddf[FEATURES], ddf["y"])  # the seed, which nobody has named, is the checkpoint's
        here = clone(model).set_params(checkpoint=None, random_state=None)
        stop_after(model, 3, X, y, seed=other._seed)
    assert len(other) == 6
    whole = clone(here).set_params(checkpoint=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.fit(X, y)
    assert model_bytes(other, tmp_path) == model_bytes(whole, tmp_path)


def stop_after(model, n_trees, X, y, seed=None):
    """Interrupt a fit in memory after so many trees, its checkpoint left behind."""
    from spinney.estimators import forest_training
    from spinney.estimators.checkpoints import Checkpoint

    left = [n_trees]

    def note(_):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "note", note)
        if seed is not None:
            patch.setattr(forest_training, "draw_seed", lambda _: seed)
        with pytest.raises(KeyboardInterrupt):
            clone(model).set_params(n_jobs=1).fit(X, y)


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("client")
def test_collections_that_are_no_rows_are_refused_with_the_cure():
    y = da.from_array(FRAME["z"].to_numpy(), chunks=100)
    with pytest.raises(ValueError, match=r"X is an Array in 2 chunks of columns.*give X\.rechunk\(\{1: -1\}\)"):
        spinney.CARTRegressor().fit(da.zeros((300, 4), chunks=(100, 2)), y)
    with pytest.raises(ValueError, match="3 axes"):
        spinney.CARTRegressor().fit(da.zeros((300, 4, 1)), y)
    with pytest.raises(TypeError, match="X is a Dask Bag: give a DataFrame"):
        spinney.CARTRegressor().fit(dask.bag.from_sequence([1, 2]), y)
    with pytest.raises(ValueError, match=r"y is an array of 16,000,000 bytes in memory.*from_array\(y, chunks"):
        spinney.CARTRegressor().fit(da.zeros((2_000_000, 1)), np.zeros(2_000_000))


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "trees"])
def test_errors_are_those_of_memory_and_leave_the_model_as_it_was(way):
    ddf = cut_frame(FRAME, 3)
    model = spinney.RandomForestRegressor(n_estimators=2, random_state=0).fit(FRAME[["number"]], FRAME["z"])
    with dask.config.set({"spinney.plan": way}):
        with pytest.raises(ValueError, match="y must hold numbers for a regression"):
            model.fit(ddf[FEATURES], ddf["y"])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(ddf[FEATURES], cut_frame(make_frame(200), 2)["z"])
        with pytest.raises(spinney_parameter_error()):
            clone(model).set_params(n_estimators=-1).fit(ddf[FEATURES], ddf["z"])
    assert model.n_features_in_ == 1
    assert len(model) == 2


def spinney_parameter_error():
    from sklearn.utils._param_validation import InvalidParameterError

    return InvalidParameterError


@pytest.mark.usefixtures("client")
def test_ways_that_there_are_not_are_refused():
    ddf = cut_frame(FRAME, 3)
    with dask.config.set({"spinney.plan": "trees"}), pytest.raises(ValueError, match="set it to 'one'"):
        spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])
    with dask.config.set({"spinney.plan": "twice"}), pytest.raises(ValueError, match="none of one, trees"):
        spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])


@pytest.mark.usefixtures("client")
def test_a_worker_of_another_version_is_named(monkeypatch):
    ddf = cut_frame(FRAME, 2)
    here = workers.describe_process()
    assert workers.tell_difference(here, dict(here)) is None
    found = {"tcp://a:1": dict(here), "tcp://b:2": {**here, "numba": "0.1"}}
    with pytest.raises(workers.OtherWorkerError, match=r"worker tcp://b:2 .*numba is 0\.1, and .* here"):
        workers.compare_workers(here, found)
    with pytest.raises(workers.OtherWorkerError, match=r"worker tcp://c:3 cannot load Spinney \(ImportError"):
        workers.compare_workers(here, {"tcp://c:3": ImportError("no module")})
    workers.compare_workers(here, {"tcp://d:4": ConnectionResetError("it was killed")})  # no other version, but gone
    monkeypatch.setattr(workers, "_described", [workers.write_down({**here, "processor": "abacus"})])
    with pytest.raises(workers.OtherWorkerError, match=r"worker inproc://.* processor is abacus"):
        spinney.CARTRegressor().fit(ddf[FEATURES], ddf["z"])


@pytest.mark.usefixtures("client")
def test_a_fit_that_no_worker_has_memory_for_is_refused(monkeypatch):
    from spinney.scale.cluster.dask_engine import DaskEngine

    monkeypatch.setattr(DaskEngine, "list_workers", lambda _: {"tcp://a:1": {"nthreads": 2, "memory_limit": 10**8}})
    ddf = cut_frame(FRAME, 2)
    with pytest.raises(ValueError, match=r"needs .* on one worker .* has 100\.0 MB: start workers .*spinney\.scan"):
        spinney.GradientBoostingRegressor().fit(ddf[FEATURES], ddf["z"])


@pytest.mark.usefixtures("client")
def test_a_plan_says_what_a_fit_will_do():
    ddf = cut_frame(FRAME, 4)
    text = str(spinney.plan_fit(spinney.GradientBoostingClassifier(), ddf[FEATURES], ddf["y"]))
    assert text.startswith("way       one: one worker joins the partitions and fits\nrows      300 in 4 partitions\n")
    large = da.zeros((500_000, 4), chunks=100_000)
    plan = spinney.plan_fit(spinney.RandomForestRegressor(), large, large[:, 0])
    assert (plan.way, plan.n_rows, plan.n_workers) == ("trees", 500_000, 2)
    assert spinney.plan_fit(spinney.GradientBoostingRegressor(), large, large[:, 0]).way == "one"
    with pytest.raises(TypeError, match="no Dask collection"):
        spinney.plan_fit(spinney.CARTRegressor(), FRAME, FRAME["z"])


def test_two_fits_at_once_do_not_meet(client, tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    ddf = cut_frame(FRAME, 3)
    models = [spinney.RandomForestRegressor(n_estimators=4, random_state=seed) for seed in (1, 2)]
    here = [clone(model).fit(ddf[FEATURES].compute(), ddf["z"].compute()) for model in models]
    with dask.config.set({"spinney.plan": "trees"}), ThreadPoolExecutor(2) as pool:
        fitted = list(pool.map(lambda model: model.fit(ddf[FEATURES], ddf["z"]), models))
    for i, (one, other) in enumerate(zip(fitted, here, strict=True)):
        folder = tmp_path / str(i)
        folder.mkdir()
        assert model_bytes(one, folder) == model_bytes(other, folder)
    assert count_keys(client) == 0


@pytest.mark.usefixtures("client")
def test_frames_of_files_are_read_by_workers(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    make_frame(100, seed=3).to_parquet(tmp_path / "b.parquet")
    ddf = dd.read_parquet(tmp_path)
    fitted, here = fit_both(spinney.CARTClassifier(), ddf, "y")
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)


def test_workers_of_two_threads_and_more_workers_than_partitions(tmp_path):
    ddf = cut_frame(FRAME, 2)
    model = spinney.RandomForestClassifier(n_estimators=12, oob_score=True, random_state=4)
    with (
        LocalCluster(n_workers=3, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=True),
    ):
        fitted, here = fit_both(model, ddf, "y", "trees")
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.usefixtures("client")
def test_lists_are_ranked_by_collections_of_groups(tmp_path):
    ddf = cut_frame(FRAME.sort_values("g"), 3)
    ddf["rank"] = (ddf["z"] > 0.5).astype(int)
    fitted, here = fit_both(
        spinney.GradientBoostingRanker(n_estimators=3, random_state=0), ddf, "rank", groups=ddf["g"]
    )
    assert model_bytes(fitted, tmp_path) == model_bytes(here, tmp_path)


@pytest.mark.usefixtures("client")
def test_searches_over_joblib_go_on_working():
    import joblib
    from sklearn.model_selection import cross_val_score

    X, y = FRAME[["number", "whole"]].to_numpy(), FRAME["y"].to_numpy()
    model = spinney.RandomForestClassifier(n_estimators=3, random_state=0)
    with joblib.parallel_config("dask"):
        there = cross_val_score(model, X, y, cv=3)
    assert np.array_equal(there, cross_val_score(model, X, y, cv=3))


@pytest.mark.usefixtures("client")
def test_warnings_of_workers_come_at_the_users_line():
    ddf = cut_frame(FRAME, 3)
    model = spinney.RandomForestClassifier(n_estimators=2, oob_score=True, random_state=0)
    for way in ("one", "trees"):
        with dask.config.set({"spinney.plan": way}), pytest.warns(UserWarning, match="were in every bag") as caught:
            model.fit(ddf[FEATURES], ddf["y"])
        assert caught[0].filename == __file__


@pytest.mark.parametrize("kind", ["permutation", "conditional"])
def test_permutation_importance_is_that_of_the_tables(kind, client):
    ddf = cut_frame(FRAME, 4)
    X, y = dask.compute(ddf[FEATURES], ddf["y"])
    model = spinney.RandomForestClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y)
    there, here = model.importance(kind, ddf[FEATURES], ddf["y"]), model.importance(kind, X, y)
    assert there.feature == here.feature
    assert np.array_equal(there.importance, here.importance)
    assert np.array_equal(there.std_error, here.std_error)
    assert count_keys(client) == 0


def test_memory_of_workers_is_given_back_after_large_fits(client, monkeypatch):
    """The system gets back what was freed, a moment later, since the user's rows may go then too."""
    asked = []
    monkeypatch.setattr("spinney.scale.cluster.workers.trim_memory", lambda: asked.append(True))
    monkeypatch.setattr("spinney.scale.cluster.workers.TRIM_SECONDS", 0.01)
    ddf = cut_frame(FRAME, 3)
    model = spinney.CARTClassifier(max_depth=2)
    model.fit(ddf[FEATURES], ddf["y"])
    time.sleep(0.3)
    assert asked == []
    monkeypatch.setattr("spinney.estimators.cluster_fits.TRIMMED_BYTES", 0)
    model.fit(ddf[FEATURES], ddf["y"])
    end = time.monotonic() + 10
    while len(asked) < len(client.nthreads()) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(asked) == len(client.nthreads())


def test_trimming_is_for_systems_that_can():
    from spinney.scale.cluster.workers import trim_memory

    trim_memory()
