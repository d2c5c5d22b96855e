"""A model grown from disk, level by level, is that of the table in memory, byte for byte."""

import numpy as np
import pytest

import spinney
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.scale import plan
from spinney.scale.memory import show_bytes
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
    """Take no table for one that memory holds, nor blocks for so small that they are worked on together."""
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)
    monkeypatch.setattr(plan, "MOST_TOGETHER", 1)
    monkeypatch.setattr(plan, "SPARE_BYTES", 1 << 40)  # none are held


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
    store = scanned.read() if isinstance(scanned, Scan) else scanned
    assert store.plan(fitted).by_levels
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
@pytest.mark.parametrize("loss", ["absolute_error", "quantile", "several quantiles", "huber"])
def test_quantiles_grown_from_disk_are_those_of_the_table(loss, tmp_path):
    table = make_table(8500, target="numbers")
    weight = 2 * table["w"].to_numpy()  # whole numbers
    table = table.set_column(table.column_names.index("w"), "w", [weight])
    alpha = [0.2, 0.5, 0.8] if loss == "several quantiles" else 0.8
    model = spinney.GradientBoostingRegressor(loss=loss.split()[-1].removesuffix("s"), alpha=alpha, **FEW)
    scanned = Scan(table, "y", weight="w", drop=["g"], memory=10**9, block_rows=4096)
    check_same(model, table, scanned, tmp_path, weight)
    check_same(model, table, Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096), tmp_path)
    halves = table.set_column(table.column_names.index("w"), "w", [weight / 2])
    with pytest.raises(
        ValueError, match="from disk needs weights that are whole numbers: scale them, or raise memory="
    ):
        clone(model).fit(Scan(halves, "y", weight="w", drop=["g"], memory=10**9))


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("more", [{}, {"newton": False, "subsample": 1.0}, {"class_weight": "balanced"}], ids=str)
def test_a_model_of_three_classes_grown_from_disk_is_that_of_the_table(more, tmp_path):
    table = make_table(8500, target="three")
    scanned = Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096)
    check_same(spinney.GradientBoostingClassifier(**FEW, **more), table, scanned, tmp_path)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("target", ["classes", "three", "numbers"])
@pytest.mark.parametrize(
    "more",
    [
        {"validation_fraction": 0.1},
        {"validation_fraction": 700, "scoring": "own"},
        {"validation_fraction": 0.25, "class_weight": "balanced"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_rows_are_held_out_as_in_memory(target, more, weights, tmp_path):
    if target == "numbers":
        more = {name: value for name, value in more.items() if name != "class_weight"}
    if more.get("scoring") == "own":
        more = {**more, "scoring": "r2" if target == "numbers" else "accuracy"}
    n_rows = 70_000 if more["validation_fraction"] == 0.1 else 9000  # beyond one block that is drawn at once
    table = make_table(n_rows, target=target)
    weight = np.where(np.arange(n_rows) % 3 == 0, 0.0, table["w"].to_numpy())
    table = table.set_column(table.column_names.index("w"), "w", [weight])
    kind = spinney.GradientBoostingRegressor if target == "numbers" else spinney.GradientBoostingClassifier
    model = kind(n_estimators=6, max_leaf_nodes=6, n_iter_no_change=2, random_state=3, **more)
    given = {"drop": ["w", "g"]} if weights == "none" else {"weight": "w", "drop": ["g"]}
    scanned = Scan(table, "y", memory=10**9, block_rows=4096, **given)
    check_same(model, table, scanned, tmp_path, None if weights == "none" else weight)


@pytest.mark.usefixtures("_from_disk")
def test_a_checkpoint_with_rows_held_out_goes_on(tmp_path):
    table = make_table(9000)
    scanned = Scan(table, "y", memory=10**9, block_rows=4096, drop=["w", "g"])
    given = {"n_estimators": 6, "n_iter_no_change": 3, "validation_fraction": 0.2, "random_state": 0}
    model = spinney.GradientBoostingClassifier(checkpoint=str(tmp_path / "run"), **given)

    def stop(iteration, _):
        if iteration == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(scanned, callbacks=stop)
    assert (tmp_path / "run").exists()
    model.fit(scanned).checkpoint = None
    expected = model_bytes(spinney.GradientBoostingClassifier(**given).fit(*split(table)), tmp_path)
    assert model_bytes(model, tmp_path) == expected


@pytest.mark.parametrize("kind", [spinney.GradientBoostingClassifier, spinney.AdaBoostClassifier])
def test_rows_that_are_given_are_not_held_out_besides(kind, monkeypatch):
    table, make, shares = make_table(200), Scan.plan, []
    monkeypatch.setattr(Scan, "plan", lambda self, model: shares.append(model.validation_fraction) or make(self, model))
    for rows in ({"X_val": Scan(table, "y")}, {}):
        model = kind(n_estimators=1, n_iter_no_change=5).fit(Scan(table, "y"), **rows)
        assert model.validation_fraction == 0.1
    assert shares == [None, 0.1]


def test_the_plan_counts_rows_that_are_held_out():
    columns = list(Scan(make_table(50), "y").read()._layout.columns)
    for kind in (spinney.GradientBoostingClassifier, spinney.AdaBoostClassifier):
        plain, held = (plan.make_plan(kind(n_iter_no_change=n), columns, 10**8, 0, 4 * 10**9) for n in (None, 5))
        room = [found.room + found.held for found in (plain, held)]
        assert room[0] - room[1] > 10**7 * (8 * plain.n_features + 24)
        whole = kind(n_iter_no_change=5, validation_fraction=np.int64(10**7))  # a number of rows, not a share
        assert plan.make_plan(whole, columns, 10**8, 0, 4 * 10**9) == held
        more = plan.make_plan(kind(n_iter_no_change=5, validation_fraction=0.5), columns, 10**8, 0, 10**9)
        with pytest.raises(ValueError, match="or fewer rows to validate on"):
            plan.refuse_beyond(more, kind.__name__)
    many = spinney.AdaBoostRegressor(n_estimators=500, n_iter_no_change=5)  # whose predictions are all kept
    with pytest.raises(ValueError, match="or fewer rows to validate on"):
        plan.refuse_beyond(plan.make_plan(many, columns, 10**8, 0, 10**9), "AdaBoostRegressor")


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


@pytest.mark.usefixtures("_from_disk")
def test_rows_to_validate_on_stop_rounds_alike(tmp_path):
    table, others = make_table(8500), make_table(700, seed=1)
    X, y = split(table)
    X_val, y_val = split(others)
    seen = []
    more = {"X_val": X_val, "y_val": y_val, "callbacks": [lambda n, found: seen.append((n, str(found)))]}
    for scoring in ("loss", "roc_auc"):
        model = spinney.GradientBoostingClassifier(
            n_estimators=30, learning_rate=1.0, n_iter_no_change=2, scoring=scoring, random_state=0
        )
        expected = model_bytes(clone(model).fit(X, y, **more), tmp_path)
        told = seen[:]
        seen.clear()
        scanned = Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096)
        assert model_bytes(clone(model).fit(scanned, **more), tmp_path) == expected
        assert seen == told
        assert len(seen) < 30  # it stopped
        seen.clear()


@pytest.mark.usefixtures("_from_disk")
def test_codes_of_a_store_serve_fits_from_disk_and_from_memory(tmp_path, monkeypatch):
    table = make_table(9000)
    codes = Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096).store(tmp_path / "t.codes")
    model = spinney.GradientBoostingClassifier(**FEW)
    check_same(model, table, codes, tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    monkeypatch.setattr("spinney.scale.block_coding.BlockMaker.write", lambda *_: pytest.fail("made anew"))
    check_same(model, table, codes, tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before  # nothing is left behind


def test_the_plan_of_a_fit_from_disk_does_not_depend_on_the_number_of_rows():
    scanned = Scan(make_table(50), "y", memory=290 << 20)
    columns, model = list(scanned.read()._layout.columns), spinney.GradientBoostingClassifier()
    found = [plan.make_plan(model, columns, n_rows, 0, scanned.memory) for n_rows in (10**5, 10**7, 10**9)]
    assert [one.by_levels for one in found] == [False, True, True]
    assert found[1].peak_bytes == found[2].peak_bytes <= scanned.memory
    assert found[1].held == found[2].held > 0
    assert f"{show_bytes(found[1].held)} of them held" in str(found[1])
    assert "one pass over the codes a level" in str(found[1])
    assert "one pass" not in str(found[0])


def test_rows_are_held_as_far_as_the_limit_allows():
    columns, model = list(Scan(make_table(50), "y").read()._layout.columns), spinney.GradientBoostingClassifier()
    found = [plan.make_plan(model, columns, 10**7, 0, limit << 20) for limit in (270, 300, 500, 1000)]
    assert all(one.by_levels for one in found)
    assert all(one.peak_bytes <= one.memory for one in found)
    held = [one.held for one in found]
    assert 0 < held[1] < held[2] < held[3]
    assert held[3] == 10**7 * plan.held_bytes(16, 1, has_weights=False)  # all of them, and no more


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (spinney.GradientBoostingClassifier(max_leaf_nodes=5000), "to grow trees of 13 features from disk"),
        (
            spinney.GradientBoostingClassifier(candidates="hessian"),
            "or change candidates='hessian', which needs the rows",
        ),
        (spinney.GradientBoostingClassifier(max_leaf_nodes=None), "or change max_leaf_nodes=None without max_depth"),
        (spinney.GradientBoostingClassifier(sampling="gradient"), "or change sampling='gradient'"),
        (spinney.GradientBoostingRegressor(loss=(abs, abs)), "or change loss, two functions of all rows"),
        (spinney.GradientBoostingClassifier(drop_rate=0.1), "or change drop_rate"),
    ],
    ids=str,
)
def test_what_a_limit_is_too_small_for_is_refused_with_what_it_needs(model, message):
    scanned = Scan(make_table(50), "y", memory=280 << 20)
    columns = list(scanned.read()._layout.columns)
    refused = plan.make_plan(model, columns, 10**8, 0, scanned.memory)
    with pytest.raises(
        ValueError, match=rf"GradientBoosting\w+ needs [\d.]+ [MG]B .*memory=280\.0 MB: raise it.*{message}|{message}"
    ):
        plan.refuse_beyond(refused, type(model).__name__)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize(
    ("params", "more", "message"),
    [
        ({}, {"init_score": np.zeros(60)}, "leave out init_score, or raise memory="),
        (
            {"n_iter_no_change": 2, "validation_fraction": None, "scoring": "roc_auc"},
            {},
            "give X_val for scoring='roc_auc'",
        ),
    ],
    ids=str,
)
def test_what_would_hold_rows_is_refused_with_the_way_out(params, more, message):
    scanned = Scan(make_table(60), "y", memory=10**9)
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingClassifier(**params).fit(scanned, **more)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("y", np.inf, r"Input y contains infinity .* The first is in row 5000"),
        ("y", -1.0, "y is -1 in row 904: loss='poisson' requires non-negative y .* from row 4096 of the table on"),
        ("w", -2.0, "Negative values in data passed to `sample_weight`: -2.0 in row 5000"),
        ("w", np.nan, "sample_weight contains NaN"),
    ],
    ids=str,
)
def test_faults_of_rows_are_told_with_their_place(column, value, message):
    table = make_table(9000, target="numbers")
    values = table[column].to_numpy().copy()
    values[5000] = value
    table = table.set_column(table.column_names.index(column), column, [values])
    scanned = Scan(table, "y", weight="w", memory=10**9, block_rows=4096)
    with pytest.raises(ValueError, match=message):
        spinney.GradientBoostingRegressor(loss="poisson", **FEW).fit(scanned)


@pytest.mark.usefixtures("_from_disk")
def test_a_target_that_no_loss_learns_from_is_told():
    table = make_table(5000, target="numbers")
    zeros = table.set_column(table.column_names.index("y"), "y", [np.zeros(5000)])
    with pytest.raises(ValueError, match="y is 0 in every row: loss='poisson'"):
        spinney.GradientBoostingRegressor(loss="poisson").fit(Scan(zeros, "y", memory=10**9, block_rows=4096))
    weightless = table.set_column(table.column_names.index("w"), "w", [np.zeros(5000)])
    with pytest.raises(ValueError, match="Sample weights are all zero"):
        spinney.GradientBoostingRegressor().fit(Scan(weightless, "y", weight="w", memory=10**9))
    with pytest.raises(ValueError, match="must hold numbers for a regression"):
        spinney.GradientBoostingRegressor().fit(Scan(make_table(5000), "y", memory=10**9))


def stop_after(n_rounds):
    def stop(iteration, _):
        if iteration == n_rounds:
            raise KeyboardInterrupt

    return stop


@pytest.mark.parametrize(("begins", "ends"), [("disk", "disk"), ("memory", "disk"), ("disk", "memory")])
@pytest.mark.parametrize("n_rows", [9000, 70_000])
def test_a_fit_that_was_cut_short_goes_on_from_disk_or_from_memory(begins, ends, n_rows, tmp_path, monkeypatch):
    table = make_table(n_rows, target="three")
    weight = table["w"].to_numpy() * (np.arange(n_rows) % 5 > 0)
    table = table.set_column(table.column_names.index("w"), "w", [weight])
    model = spinney.GradientBoostingClassifier(subsample=0.7, n_estimators=5, max_leaf_nodes=6, random_state=0)
    block_rows = 4096 if n_rows < 65_536 else 65_536
    scanned = Scan(table, "y", weight="w", drop=["g"], memory=10**9, block_rows=block_rows)
    expected = model_bytes(clone(model).fit(scanned), tmp_path)
    kept = clone(model).set_params(checkpoint=tmp_path / "run")
    monkeypatch.setattr(plan, "fits", lambda plan: begins == "memory" or plan.by_levels)
    with pytest.raises(KeyboardInterrupt):
        kept.fit(scanned, callbacks=stop_after(3))
    assert (tmp_path / "run").exists()
    seen = []
    monkeypatch.setattr(plan, "fits", lambda plan: ends == "memory" or plan.by_levels)
    kept.fit(scanned, callbacks=lambda iteration, _: seen.append(iteration))
    assert seen == [3, 4, 5]  # the third was cut short before it was judged
    assert model_bytes(kept.set_params(checkpoint=None), tmp_path) == expected
    assert not (tmp_path / "run").exists()
    others = Scan(make_table(n_rows, seed=5, target="three"), "y", weight="w", drop=["g"], memory=10**9)
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)
    kept.set_params(checkpoint=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        kept.fit(scanned, callbacks=stop_after(3))
    with pytest.raises(ValueError, match="is of another fit: X or y differ"):
        kept.fit(others)


def test_where_memory_is_short_fewer_blocks_are_worked_on_at_a_time():
    columns = list(Scan(make_table(50), "y").read()._layout.columns)
    model = spinney.GradientBoostingClassifier(n_jobs=8)
    found = [plan.make_plan(model, columns, 10**8, 0, limit << 20) for limit in (1000, 190, 120)]
    assert found[0].n_workers == 8
    assert 1 < found[1].n_workers < 8
    assert found[1].peak_bytes <= 190 << 20
    assert found[2].n_workers == 1
    assert found[2].peak_bytes > 120 << 20  # which is refused
