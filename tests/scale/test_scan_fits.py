"""A model of a scan or store is that of the table in memory, byte for byte."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")

FEW = {"n_estimators": 4, "random_state": 0}
TREES = [
    spinney.RandomForestClassifier(oob_score=True, **FEW),
    spinney.RandomForestClassifier(bootstrap="poisson", class_weight="balanced_subsample", **FEW),
    spinney.ExtraTreesClassifier(**FEW),
    spinney.BaggingClassifier(oob_score=True, max_features=0.7, **FEW),
    spinney.CARTClassifier(max_depth=6, ccp_alpha=0.001),
    spinney.CARTClassifier(ccp_alpha="cv", random_state=0, max_depth=5),
    spinney.CARTClassifier(pruning="reduced_error", random_state=0),
    spinney.AdaBoostClassifier(**FEW),
    spinney.AdaBoostClassifier(n_iter_no_change=2, **FEW),
]
BOOSTED = [
    spinney.GradientBoostingClassifier(**FEW),
    spinney.GradientBoostingClassifier(subsample=0.6, max_features=0.5, class_weight="balanced", **FEW),
    spinney.GradientBoostingClassifier(n_iter_no_change=2, validation_fraction=0.2, **FEW),
    spinney.GradientBoostingClassifier(n_iter_no_change=2, validation_fraction=0.2, scoring="roc_auc", **FEW),
    spinney.GradientBoostingClassifier(max_bins=None, warm_start=True, **FEW),
    spinney.GradientBoostingClassifier(candidates="hessian", max_bins=16, **FEW),
]
REGRESSORS = [
    *(
        spinney.GradientBoostingRegressor(loss=loss, **FEW)
        for loss in ("squared_error", "absolute_error", "huber", "poisson", "gamma", "tweedie", "quantile")
    ),
    spinney.GradientBoostingRegressor(loss="quantile", alpha=[0.2, 0.8], **FEW),
    spinney.RandomForestRegressor(oob_score=True, **FEW),
    spinney.RandomForestRegressor(honest=True, **FEW),
    spinney.ExtraTreesRegressor(bootstrap=True, **FEW),
    spinney.BaggingRegressor(**FEW),
    spinney.CARTRegressor(max_depth=5),
    spinney.AdaBoostRegressor(**FEW),
]


def check_same(model, table, scanned, folder, weight=None, **more):
    """The same file from memory and from a scan."""
    X, y = split(table)
    expected = model_bytes(clone(model).fit(X, y, sample_weight=weight, **more), folder)
    assert model_bytes(clone(model).fit(scanned), folder) == expected


def clone(model):
    return type(model)(**model.get_params(deep=False))


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*in every bag")
@pytest.mark.parametrize("model", [*TREES, *BOOSTED], ids=str)
@pytest.mark.parametrize("is_weighted", [False, True], ids=["", "weights"])
def test_a_classifier_of_a_scan_is_that_of_the_table(model, is_weighted, tmp_path):
    table = make_table(5000)
    pattern = write_parts(table, tmp_path, [1000, 1001, 4000])
    if is_weighted:
        scanned = Scan(pattern, "y", weight="w", drop=["g"], block_rows=4096)
        check_same(model, table, scanned, tmp_path, table["w"].to_numpy())
    else:
        check_same(model, table, Scan(pattern, "y", drop=["g", "w"], block_rows=4096), tmp_path)


@pytest.mark.filterwarnings("ignore:.*in every bag")
@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_a_regressor_of_a_scan_is_that_of_the_table(model, tmp_path):
    table = make_table(4500, target="numbers")
    scanned = Scan(write_parts(table, tmp_path, [2000]), "y", weight="w", drop=["g"], block_rows=4096)
    check_same(model, table, scanned, tmp_path, table["w"].to_numpy())


def test_a_model_of_three_classes_of_a_scan_is_that_of_the_table(tmp_path):
    table = make_table(4200, target="three")
    scanned = Scan(table, "y", drop=["w", "g"], block_rows=4096)
    check_same(spinney.GradientBoostingClassifier(**FEW), table, scanned, tmp_path)
    check_same(spinney.CARTClassifier(), table, scanned, tmp_path)


def test_groups_of_a_scan_are_drawn_together(tmp_path):
    table = make_table(4200)
    model = spinney.RandomForestClassifier(**FEW)
    scanned = Scan(table, "y", groups="g", drop=["w"])
    check_same(model, table, scanned, tmp_path, groups=table["g"].to_numpy())
    named = table.set_column(table.column_names.index("g"), "g", pa.array([f"g{i}" for i in table["g"].to_pylist()]))
    check_same(model, table, Scan(named, "y", groups="g", drop=["w"]), tmp_path, groups=named["g"].to_numpy())


def test_rows_to_validate_on_may_be_a_scan(tmp_path):
    table, others = make_table(4200), make_table(600, seed=1)
    model = spinney.GradientBoostingClassifier(n_iter_no_change=2, **FEW)
    X, y = split(table)
    X_val, y_val = split(others)
    expected = model_bytes(clone(model).fit(X, y, X_val=X_val, y_val=y_val), tmp_path)
    scanned, held = (Scan(one, "y", drop=["w", "g"]) for one in (table, others))
    assert model_bytes(clone(model).fit(scanned, X_val=held), tmp_path) == expected
    again = clone(model).fit(scanned, eval_set=[held], eval_names=["valid"])
    assert model_bytes(again, tmp_path) == expected


def test_parameters_that_change_what_columns_mean_hold_for_scans(tmp_path):
    table = make_table(4200)
    scanned = Scan(table, "y", drop=["w", "g"])
    codes = scanned.store(tmp_path / "t.codes")
    shifted = table.set_column(1, "whole", pa.array(np.abs(table["whole"].to_numpy())))
    for one, source in ((table, scanned), (table, codes)):
        check_same(spinney.CARTClassifier(max_depth=4, categorical_features=["text", "flag"]), one, source, tmp_path)
    again = Scan(shifted, "y", drop=["w", "g"])
    check_same(spinney.CARTClassifier(max_depth=4, categorical_features=["whole", "text"]), shifted, again, tmp_path)
    with pytest.raises(ValueError, match="'day' holds dates or times"):
        spinney.CARTClassifier(date_features=None).fit(codes)


@given(
    n_rows=st.sampled_from([1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 12_300]),
    block_rows=st.sampled_from([1 << 12, 1 << 13, 1 << 16, 1 << 20]),
    cuts=st.lists(st.floats(0.0, 1.0), max_size=3),
    kind=st.sampled_from(["parquet", "arrow", "csv", "frame", "stream", "polars", "lazy", "iterator"]),
    has_weight=st.booleans(),
    seed=st.integers(0, 3),
)
@settings(max_examples=25)
def test_cuts_blocks_and_kinds_of_sources_make_no_difference(
    n_rows, block_rows, cuts, kind, has_weight, seed, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("scan")
    table = make_table(n_rows, seed, target="numbers")
    ends = sorted(int(cut * n_rows) for cut in cuts)
    source = make_source(table, kind, ends, folder)
    if kind == "csv":  # which does not tell empty text from empty numbers
        whole = folder / "whole"
        whole.mkdir()
        table = spinney.read_table(write_parts(table, whole, [], "csv").replace("*", "part-7"))
    scanned = Scan(
        source,
        "y",
        weight="w" if has_weight else None,
        drop=["g"] if has_weight else ["g", "w"],
        block_rows=block_rows,
        block_bytes=1 << 14,
    )
    model = spinney.GradientBoostingRegressor(n_estimators=2, max_leaf_nodes=8, min_samples_leaf=5, random_state=0)
    check_same(model, table, scanned, folder, table["w"].to_numpy() if has_weight else None)


def make_source(table, kind, ends, folder):
    if kind in {"parquet", "arrow", "csv"}:
        return write_parts(table, folder, ends, kind)
    parts = [table.slice(a, b - a) for a, b in zip([0, *ends], [*ends, table.num_rows], strict=True)]
    if kind == "stream":
        return pa.concat_tables(parts).to_reader(max_chunksize=500)
    if kind == "iterator":
        return iter([part.to_pandas() if i % 2 else part for i, part in enumerate(parts) if part.num_rows])
    if kind == "lazy":
        return pl.from_arrow(table).lazy()
    return pl.from_arrow(table) if kind == "polars" else table


def test_frames_of_other_libraries_mean_what_they_mean_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 500
    number, letter = rng.normal(size=n_rows), rng.choice(list("xyz"), n_rows)
    y = (number > 0) & (letter != "z")
    order = ["z", "y", "x", "w"]
    pandas = pd.DataFrame(
        {
            "number": number,
            "ordered": pd.Categorical(letter, categories=order, ordered=True),
            "holes": pd.array([None if i % 3 == 0 else i for i in range(n_rows)], dtype="Int64"),
            "flag": pd.array([None if i % 4 == 0 else i % 2 == 0 for i in range(n_rows)], dtype="boolean"),
            "moment": pd.date_range("2020", periods=n_rows, tz="UTC"),
            "y": y,
        },
        index=np.arange(n_rows) * 2,
    )
    polars = pl.DataFrame(
        {
            "number": number,
            "ordered": pl.Series(letter, dtype=pl.Enum(order)),
            "text": pl.Series(letter, dtype=pl.Categorical),
            "y": y,
        }
    )
    model = spinney.GradientBoostingClassifier(n_estimators=3, random_state=0)
    for frame, X, sources in (
        (pandas, pandas.drop(columns="y"), [pandas, iter([pandas[:200], pandas[200:]])]),
        (polars, polars.drop("y"), [polars, polars.lazy(), iter([polars[:100], polars[100:]])]),
    ):
        expected = model_bytes(model.fit(X, frame["y"]), tmp_path)
        for source in sources:
            assert model_bytes(model.fit(spinney.scan(source, "y")), tmp_path) == expected


def test_a_column_of_more_values_than_codes_is_binned_alike(tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 70_000
    table = pa.table({"x": rng.permutation(n_rows) * 0.1, "y": rng.normal(size=n_rows), "w": rng.random(n_rows) + 0.1})
    table = table.append_column("g", pa.array(np.zeros(n_rows)))
    scanned = Scan(table, "y", weight="w", drop=["g"], block_rows=1 << 13)
    weight = table["w"].to_numpy()
    for model in (
        spinney.CARTRegressor(max_depth=3),
        spinney.GradientBoostingRegressor(max_bins=None, n_estimators=2, random_state=0),
        spinney.GradientBoostingRegressor(n_estimators=2, random_state=0),
    ):
        with pytest.warns(UserWarning, match="distinct values") if model.max_bins is None else no_warning():
            check_same(model, table, scanned, tmp_path, weight)


def no_warning():
    import contextlib

    return contextlib.nullcontext()


def test_rows_without_weight_are_left_out_alike(tmp_path):
    table = make_table(4300)
    weight = table["w"].to_numpy() * (np.arange(4300) % 3 > 0)
    table = table.set_column(table.column_names.index("w"), "w", pa.array(weight))
    scanned = Scan(table, "y", weight="w", drop=["g"])
    for model in (spinney.GradientBoostingClassifier(**FEW), spinney.CARTClassifier()):
        check_same(model, table, scanned, tmp_path, weight)


def test_codes_in_a_store_are_used_again(tmp_path, monkeypatch):
    table = make_table(5000)
    codes = Scan(table, "y", drop=["w", "g"], block_rows=4096).store(tmp_path / "t.codes")
    models = spinney.GradientBoostingClassifier(**FEW), spinney.RandomForestClassifier(**FEW)
    for model in models:
        check_same(model, table, codes, tmp_path)
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "t.codes" / "codes").iterdir()) == [
        "bins",
        "codes",
    ]
    expected = [model_bytes(clone(model).fit(codes), tmp_path) for model in models]
    for module in ("binning.make_bins", "coding.make_codes"):
        monkeypatch.setattr(f"spinney.table.{module}", lambda *_: pytest.fail("made anew"))
    again = spinney.scan(tmp_path / "t.codes")
    assert [model_bytes(clone(model).fit(again), tmp_path) for model in models] == expected


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (spinney.ID3Classifier(), "ID3Classifier takes rows in memory, and X is a scan: use CARTClassifier"),
        (spinney.C45Classifier(), "use CARTClassifier"),
        (spinney.ID3Regressor(), "use CARTRegressor"),
        (spinney.CARTClassifier(missing="surrogate"), "set missing='learned'"),
        (spinney.GradientBoostingClassifier(init=spinney.CARTClassifier()), "init=CARTClassifier of .* set init=None"),
        (spinney.CARTRegressor(leaf_model="linear"), "set leaf_model=None"),
        (spinney.RandomForestRegressor(keep_members=True), "GradientBoostingRegressor"),
        (spinney.BaggingClassifier(spinney.C45Classifier()), "use CART trees as members"),
        (spinney.AdaBoostClassifier(spinney.ID3Classifier()), "use CART trees as members"),
        (spinney.StackingClassifier([("a", spinney.CARTClassifier())]), "StackingClassifier takes rows in memory"),
    ],
    ids=str,
)
def test_what_needs_rows_is_refused_with_the_way_out(model, message):
    scanned = spinney.scan(make_table(50), "y")
    with pytest.raises(ValueError, match=message):
        model.fit(scanned)


def test_a_scan_brings_its_own_target():
    table = make_table(50)
    X, y = split(table)
    with pytest.raises(ValueError, match="leave out y"):
        spinney.CARTClassifier().fit(spinney.scan(table, "y"), y)
    with pytest.raises(ValueError, match="leave out sample_weight"):
        spinney.GradientBoostingClassifier().fit(spinney.scan(table, "y"), sample_weight=np.ones(50))
    with pytest.raises(ValueError, match="the scan has no target"):
        spinney.CARTClassifier().fit(spinney.scan(X))
    with pytest.raises(ValueError, match="must hold numbers for a regression"):
        spinney.CARTRegressor().fit(spinney.scan(table, "y"))
