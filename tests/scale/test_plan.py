"""What a fit will take, and the error of one that would take more than it may."""

import numpy as np
import pyarrow as pa
import pytest

import spinney
from disk_tables import make_table, model_bytes, write_parts
from spinney.ensemble.forest import ForestGrowth
from spinney.scale.plan import make_plan, peak_bytes, reading_bytes
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")


def test_the_plan_of_a_scan_is_known_before_it_is_read(tmp_path):
    pattern = write_parts(make_table(5000), tmp_path, [2000])
    scanned = spinney.scan(pattern, "y", weight="w", drop=["g"], memory="1GB")
    model = spinney.GradientBoostingClassifier()
    plan = scanned.plan(model)
    n_features = 6 + 5  # a date is five at most
    assert plan.n_rows == 5000
    assert plan.n_features == n_features
    assert plan.bytes_read == sum(path.stat().st_size for path in tmp_path.glob("*.parquet"))
    assert plan.bytes_written == 5000 * (8 + 8 + 8 + 4 + 1 + 4 + 8 + 4 + 8)
    assert plan.peak_bytes == reading_bytes(11) + 5000 * (3 * 16 + 90) + 65_536 * (8 + 8 + 8 + 4 + 1 + 4 + 8 + 4 + 8)
    assert "5,000" in str(plan)
    assert "limit 1.0 GB" in str(plan)
    assert scanned._spilled is None
    after = (scanned.read(), scanned.plan(model))[1]
    assert after._replace(bytes_read=plan.bytes_read) == plan


@pytest.mark.parametrize(
    ("model", "others"),
    [
        (spinney.GradientBoostingClassifier(n_estimators=50), {"max_leaf_nodes": 255}),
        (spinney.RandomForestClassifier(n_estimators=20), {"max_features": None}),
        (spinney.ExtraTreesRegressor(n_estimators=20), {"n_estimators": 40}),
        (spinney.CARTRegressor(max_depth=5), {"max_depth": None}),
    ],
    ids=str,
)
def test_the_time_of_a_fit_is_told_before_it(model, others):
    columns = list(Scan(make_table(50), "y").read()._layout.columns)
    few, many, from_disk = (
        make_plan(model, columns, n_rows, 0, limit) for n_rows, limit in ((10**5, None), (10**8, None), (10**8, 10**9))
    )
    assert from_disk.by_levels
    assert 900 * few.seconds < many.seconds < 2000 * few.seconds
    assert many.seconds < from_disk.seconds < 2 * many.seconds
    assert "of one processor" in str(few)
    assert " hours of one processor" in str(many) or " minutes of one processor" in str(many)
    changed = type(model)(**{**model.get_params(), **others})
    assert make_plan(changed, columns, 10**5, 0, None).seconds > 1.2 * few.seconds


def test_the_plan_of_what_does_not_tell_its_rows_waits_for_them(tmp_path):
    scanned = Scan(write_parts(make_table(500), tmp_path, [], "csv"), "y")
    assert scanned.plan(spinney.CARTClassifier()).n_rows is None
    assert "known once the source is read" in str(scanned.plan(spinney.CARTClassifier()))
    scanned.read()
    assert scanned.plan(spinney.CARTClassifier()).n_rows == 500


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_fit_beyond_the_limit_is_refused_with_what_it_needs(kind, tmp_path, monkeypatch):
    pattern = write_parts(make_table(5000), tmp_path, [2000], kind)
    scanned = spinney.scan(pattern, "y", memory="80MB")
    if kind == "parquet":
        monkeypatch.setattr(Scan, "read", lambda _: pytest.fail("read"))
    with pytest.raises(
        ValueError, match=r"CARTClassifier needs 12\d\.\d MB with the codes of 5,000 rows and 13 features"
    ):
        spinney.CARTClassifier().fit(scanned)


def test_where_memory_is_short_fewer_trees_grow_side_by_side(tmp_path, monkeypatch):
    table = make_table(60_000)
    model = spinney.RandomForestClassifier(n_estimators=4, max_depth=4, n_jobs=4, random_state=0)
    free = spinney.scan(table, "y").plan(model)
    block = 65_536 * free.bytes_written // free.n_rows
    needs = [peak_bytes(model._growing_bytes, free.n_rows, free.n_features, k) + block for k in (1, 2, 4)]
    assert (free.n_workers, free.peak_bytes) == (4, needs[2])
    seen, run = [], ForestGrowth.run

    def note(self, first, n_trees, kernels, n_workers, **options):
        seen.append(n_workers)
        return run(self, first, n_trees, kernels, n_workers, **options)

    monkeypatch.setattr(ForestGrowth, "run", note)
    X = table.drop_columns(["y"])
    expected = model_bytes(model.fit(X, table["y"].to_numpy()), tmp_path)
    for limit in (needs[1], needs[0]):
        assert model_bytes(model.fit(spinney.scan(table, "y", memory=limit)), tmp_path) == expected
    assert seen[1:] == [2, 1]
    with pytest.raises(ValueError, match="RandomForestClassifier needs"):
        model.fit(spinney.scan(table, "y", memory=needs[0] - 1))


def test_every_class_and_quantile_takes_memory():
    boosted = spinney.GradientBoostingClassifier()
    peaks = []
    for target in ("classes", "three"):
        store = Scan(make_table(4000, target=target), "y").read()
        plan = store.plan(boosted)
        peaks.append(plan.peak_bytes - 65_536 * plan.bytes_written // 4000)
    assert peaks[1] - peaks[0] == 4000 * 16 * 2
    store = Scan(make_table(4000, target="numbers"), "y").read()
    several = spinney.GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.5, 0.9])
    block = 65_536 * store.plan(several).bytes_written // 4000
    assert store.plan(several).peak_bytes - block == peaks[1]
    assert store.plan(spinney.GradientBoostingRegressor()).peak_bytes - block == peaks[0]


def test_more_rows_and_features_need_more_memory():
    needs = [
        [peak_bytes(model._growing_bytes, n_rows, n_features) for n_rows in (10**6, 10**8) for n_features in (10, 1000)]
        for model in (spinney.GradientBoostingRegressor(), spinney.RandomForestRegressor(), spinney.CARTRegressor())
    ]
    for few in needs:
        assert few == sorted(set(few))
    assert needs[0][3] < needs[1][3]  # a byte a cell, twice; two bytes a cell


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "frame", "scan", "store"])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_predictions_in_batches_are_those_of_all_rows(kind, method, tmp_path):
    table = make_table(5000)
    X = table.drop_columns(["y"])
    model = spinney.GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, table["y"].to_numpy())
    source = table
    if kind in {"parquet", "arrow", "csv"}:
        source = write_parts(table, tmp_path, [10, 4000], kind)
    elif kind == "scan":
        source = Scan(table, "y")
    elif kind == "store":
        source = Scan(table, "y", block_rows=4096).store(tmp_path / "t.codes")
    batches = list(model.predict_batches(source, method))
    assert len(batches) > 1 or kind in {"frame", "scan"}
    np.testing.assert_array_equal(np.concatenate(batches), getattr(model, method)(X))


def test_predictions_in_batches_need_the_columns_of_fit(tmp_path):
    table = make_table(50)
    model = spinney.CARTClassifier().fit(table.drop_columns(["y"]), table["y"].to_numpy())
    with pytest.raises(ValueError, match="yet now missing"):
        list(model.predict_batches(table.drop_columns(["number"])))
    with pytest.raises(ValueError, match="method='fit' is none"):
        list(model.predict_batches(table, "fit"))
    rows = np.arange(8.0).reshape(4, 2)
    nameless = spinney.CARTRegressor().fit(rows, rows[:, 0])
    write_parts(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), tmp_path, [], "csv")
    assert np.concatenate(list(nameless.predict_batches(tmp_path))).tolist() == rows[:, 0].tolist()
