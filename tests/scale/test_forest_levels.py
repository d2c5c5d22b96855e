"""Forests grown from disk are those of the table in memory, byte for byte, however little room nodes have."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spinney
from disk_tables import clone, fill_disk, fit_in_memory, make_table, model_bytes, note_tops, with_column
from spinney.ensemble.forest_levels import LevelForest, TopBudget
from spinney.estimators import bags_on_disk
from spinney.scale import plan
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")

FEW = {"n_estimators": 2, "random_state": 0}
FOREST, NUMBERS = spinney.RandomForestClassifier, spinney.RandomForestRegressor
EXTRA, EXTRA_NUMBERS = spinney.ExtraTreesClassifier, spinney.ExtraTreesRegressor
BAG, BAG_OF_NUMBERS = spinney.BaggingClassifier, spinney.BaggingRegressor
PRUNED = spinney.CARTRegressor(max_features=0.5, ccp_alpha=0.01)
CASES = [
    (FOREST(**FEW), "classes"),
    (FOREST(criterion="entropy", min_samples_leaf=5, **FEW), "three"),
    (FOREST(criterion="misclassification", max_bins=20, **FEW), "three"),
    (FOREST(max_depth=3, missing="branch", **FEW), "three"),
    (FOREST(max_depth=3, missing="branch", **FEW), "classes"),
    (FOREST(oob_score=True, voting="hard", ties="random", **FEW), "three"),
    (FOREST(bootstrap="poisson", min_weight_fraction_leaf=0.01, **FEW), "classes"),
    (FOREST(replace=False, max_samples=0.5, **FEW), "classes"),
    (FOREST(bootstrap=False, criterion="entropy", **FEW), "classes"),
    (FOREST(class_weight="balanced", oob_score=True, **FEW), "three"),
    (FOREST(stratify="balanced", max_features=None, **FEW), "classes"),
    (FOREST(block_size=7, cat_penalty=1.0, **FEW), "classes"),
    (NUMBERS(**FEW), "numbers"),
    (NUMBERS(max_depth=3, missing="branch", **FEW), "numbers"),
    (NUMBERS(max_features=None, min_impurity_decrease=0.01, cat_penalty=1.0, **FEW), "numbers"),
    (NUMBERS(oob_score=True, ccp_alpha=0.001, **FEW), "numbers"),
    (EXTRA(**FEW), "classes"),
    (EXTRA(bootstrap=True, oob_score=True, missing="branch", **FEW), "three"),
    (EXTRA(min_samples_leaf=7, max_depth=4, **FEW), "three"),
    (EXTRA_NUMBERS(**FEW), "numbers"),
    (EXTRA_NUMBERS(bootstrap=True, min_samples_leaf=7, **FEW), "numbers"),
    (BAG(**FEW), "classes"),
    (BAG(spinney.CARTClassifier(max_depth=5, ties="random"), oob_score=True, **FEW), "three"),
    (BAG(spinney.CARTClassifier(class_weight={"yes": 2.0}, splitter="random"), **FEW), "classes"),
    (BAG_OF_NUMBERS(**FEW), "numbers"),
    (BAG_OF_NUMBERS(PRUNED, bootstrap=False, max_samples=0.6, oob_score=True, **FEW), "numbers"),
]
NO_VOTES = pytest.mark.filterwarnings("ignore:.*were in every bag")


@pytest.fixture
def room(monkeypatch):
    """Take no table for one that memory holds; what nodes have room for may be set."""
    budget = {"n_sums": 10**6, "most_rows": 300}
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)
    monkeypatch.setattr(bags_on_disk, "share_room", lambda *_: TopBudget(**budget))
    return budget


def scan(table, **more):
    return Scan(table, "y", memory=10**9, block_rows=4096, **{"drop": ["w", "g"], **more})


@NO_VOTES
@pytest.mark.parametrize(("model", "target"), CASES, ids=str)
def test_a_forest_grown_from_disk_is_that_of_the_table(model, target, room, tmp_path, monkeypatch):  # noqa: ARG001
    tops = note_tops(monkeypatch)
    table = make_table(9000, target=target)
    expected = model_bytes(fit_in_memory(model, table), tmp_path)
    assert model_bytes(clone(model).fit(scan(table)), tmp_path) == expected
    assert len(tops) == 2
    assert min(tops) >= 5  # nodes were split by passes


@NO_VOTES
@pytest.mark.parametrize("kind", ["whole weights", "zero weights", "fractions", "groups", "strata"])
@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_weights_groups_and_strata(kind, target, room, tmp_path):  # noqa: ARG001
    table = make_table(9000, target=target)
    rng = np.random.default_rng(5)
    weight = rng.integers(1, 4, 9000).astype(np.float64)
    if kind == "zero weights":
        weight = np.where(rng.random(9000) < 0.3, 0.0, weight)
    elif kind == "fractions":
        weight /= 8.0
    table = with_column(table, "w", weight)
    forest = NUMBERS if target == "numbers" else FOREST
    if kind == "groups":
        models, given, more = (
            [forest(oob_score=True, **FEW)],
            {"groups": "g", "drop": ["w"]},
            {"groups": table["g"].to_numpy()},
        )
    elif kind == "strata":
        strata = rng.integers(0, 4, 9000)
        models, given, more = [forest(**FEW)], {}, {"strata": strata}
    else:
        models, given, more = [forest(oob_score=True, **FEW)], {"weight": "w", "drop": ["g"]}, {}
        if kind != "fractions":
            models += [forest(replace=False, max_samples=0.6, **FEW), forest(bootstrap=False, **FEW)]
    for model in models:
        in_memory = fit_in_memory(model, table, weight if "weight" in given else None, **more)
        from_disk = clone(model).fit(scan(table, **given), **({"strata": more["strata"]} if kind == "strata" else {}))
        assert model_bytes(from_disk, tmp_path) == model_bytes(in_memory, tmp_path)


TREE, TREE_OF_NUMBERS = spinney.CARTClassifier, spinney.CARTRegressor
TREES = [
    (TREE(), "classes"),
    (TREE(ccp_alpha=0.002, ties="random", random_state=1), "three"),
    (TREE(pruning="pessimistic", missing="branch"), "classes"),
    (TREE(pruning="merge", max_depth=6, criterion="entropy"), "three"),
    (TREE(splitter="random", max_features=3, random_state=3), "three"),
    (TREE_OF_NUMBERS(), "numbers"),
    (TREE_OF_NUMBERS(max_depth=4, pruning="min_gain", min_gain=0.01, cat_penalty=0.0), "numbers"),
    (TREE_OF_NUMBERS(splitter="random", random_state=3, min_samples_leaf=20), "numbers"),
]


@pytest.mark.parametrize(("model", "target"), TREES, ids=str)
def test_a_tree_grown_from_disk_is_that_of_the_table(model, target, room, tmp_path):  # noqa: ARG001
    table = make_table(9000, target=target)
    weight = np.random.default_rng(4).integers(1, 4, 9000).astype(np.float64)
    table = with_column(table, "w", weight)
    for more, mine in (({}, None), ({"weight": "w", "drop": ["g"]}, weight)):
        expected = model_bytes(fit_in_memory(model, table, mine), tmp_path)
        assert model_bytes(clone(model).fit(scan(table, **more)), tmp_path) == expected


def test_a_tree_from_disk_takes_no_rows_of_weight_0(room):  # noqa: ARG001
    table = with_column(make_table(5000), "w", np.arange(5000.0))
    with pytest.raises(
        ValueError,
        match=r"CARTClassifier of rows .* needs weights above 0: leave rows of weight 0 out",
    ):
        TREE().fit(scan(table, weight="w", drop=["g"]))


def test_fractions_that_trees_would_see_are_refused(room):  # noqa: ARG001
    model = FOREST(replace=False, max_samples=0.5, **FEW)
    with pytest.raises(
        ValueError, match=r"see weights need whole numbers .*, and a plain bootstrap draws by any: scale them"
    ):
        model.fit(scan(make_table(5000), weight="w", drop=["g"]))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    most_rows=st.sampled_from([64, 100, 500, 2500, 10**6]),
    n_sums=st.sampled_from([1, 30_000, 10**7]),
    n_rows=st.sampled_from([1, 2, 100, 4095, 4097, 8192, 12_289]),
    n_jobs=st.integers(1, 2),
    target=st.sampled_from(["classes", "three", "numbers"]),
    seed=st.integers(0, 5),
)
def test_any_room_gives_the_same_forest(tmp_path_factory, most_rows, n_sums, n_rows, n_jobs, target, seed):
    folder = tmp_path_factory.mktemp("room")
    table = make_table(n_rows, seed, target=target)
    forest = NUMBERS if target == "numbers" else FOREST
    model = forest(n_estimators=3, random_state=seed, n_jobs=n_jobs, max_features=4)
    expected = model_bytes(fit_in_memory(model, table), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fits", lambda plan: plan.by_levels)
        patch.setattr(bags_on_disk, "share_room", lambda *_: TopBudget(n_sums, most_rows))
        assert model_bytes(clone(model).fit(scan(table)), folder) == expected


def test_categories_with_other_dictionaries_and_columns_that_are_empty_in_a_file(room, tmp_path):  # noqa: ARG001
    rng = np.random.default_rng(2)
    parts = []
    for k, levels in enumerate((["b", "a", "c"], ["d", "a"], ["a", "c", "b", "e"])):
        codes = rng.integers(0, len(levels), 3000)
        text = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(levels))
        number = pa.nulls(3000, pa.float64()) if k == 1 else pa.array(rng.normal(size=3000).round(1))
        y = np.where((codes + rng.random(3000) * 2) > 1.7, "yes", "no")
        parts.append(pa.table({"text": text, "number": number, "y": y}))
        pa.parquet.write_table(parts[-1], tmp_path / f"part-{k}.parquet")
    whole = pa.concat_tables([part.set_column(0, "text", part["text"].cast(pa.string())) for part in parts])
    model = FOREST(n_estimators=3, random_state=0)
    expected = model_bytes(fit_in_memory_of(model, whole), tmp_path)
    found = clone(model).fit(Scan(str(tmp_path / "*.parquet"), "y", memory=10**9, block_rows=4096))
    assert model_bytes(found, tmp_path) == expected


def fit_in_memory_of(model, table):
    return clone(model).fit(table.drop_columns(["y"]), table["y"].to_numpy())


def test_constant_columns_ask_for_more_features(room, tmp_path):  # noqa: ARG001
    rng = np.random.default_rng(0)
    columns = {f"flat{k}": np.zeros(6000) for k in range(12)}
    columns["x"] = rng.normal(size=6000)
    columns["y"] = np.where(columns["x"] + rng.normal(size=6000) > 0, "yes", "no")
    table = pa.table(columns)
    for model in (FOREST(max_features=2, **FEW), EXTRA(max_features=2, **FEW)):
        expected = model_bytes(fit_in_memory_of(model, table), tmp_path)
        assert model_bytes(clone(model).fit(Scan(table, "y", memory=10**9, block_rows=4096)), tmp_path) == expected


def test_targets_that_are_one_number_and_leaves_too_large_to_hold(room, tmp_path):  # noqa: ARG001
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 6000).astype(np.float64)
    for y in (np.where(x > 1, 2.0, -1e200), np.where(x > 1, 7.5, rng.normal(size=6000)), np.full(6000, -3.0)):
        table = pa.table({"x": x, "other": rng.normal(size=6000), "y": y})
        for more in ({}, {"max_depth": 1}):
            model = NUMBERS(max_features=None, **FEW, **more)
            expected = model_bytes(fit_in_memory_of(model, table), tmp_path)
            assert model_bytes(clone(model).fit(Scan(table, "y", memory=10**9, block_rows=4096)), tmp_path) == expected


def test_a_checkpoint_goes_on_from_disk(room, tmp_path, monkeypatch):  # noqa: ARG001
    table = make_table(5000)
    model = FOREST(n_estimators=5, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="were in every bag"):
        expected = model_bytes(fit_in_memory(model, table), tmp_path)
    kept = FOREST(n_estimators=5, oob_score=True, random_state=0, checkpoint=str(tmp_path / "run"))
    finish, seen = LevelForest.finish_tree, []

    def stop(self, number, tree, kernels):
        seen.append(number)
        if seen == [0, 1, 2]:
            raise KeyboardInterrupt
        return finish(self, number, tree, kernels)

    monkeypatch.setattr(LevelForest, "finish_tree", stop)
    with pytest.raises(KeyboardInterrupt):
        kept.fit(scan(table))
    with pytest.warns(UserWarning, match="were in every bag"):
        kept.fit(scan(table))
    assert seen[:4] == [0, 1, 2, 2]
    assert model_bytes(kept, tmp_path).replace(b"run", b"") != b""
    kept.checkpoint = None
    assert model_bytes(kept, tmp_path) == expected
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["truth", "codes", "count"])
def test_a_full_disk_is_told(name, room, tmp_path, monkeypatch):  # noqa: ARG001
    store = scan(make_table(5000)).store(tmp_path / "t.codes")
    fill_disk(monkeypatch, name)
    store.memory = 10**9
    with pytest.raises(OSError, match="choose a disk with more room") as caught:
        FOREST(**FEW).fit(store)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.codes"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"max_leaf_nodes": 8}, "max_leaf_nodes"),
        ({"honest": True}, "honest=True"),
        ({"pruning": "oob"}, "pruning='oob'"),
        ({"class_weight": "balanced_subsample"}, "class_weight='balanced_subsample'"),
        ({"monotonic_cst": {"number": 1}}, "monotonic_cst"),
        ({"max_features": 0.5}, "max_features=0.5"),
        ({"bootstrap_features": True}, "bootstrap_features=True"),
        ({"estimator": spinney.CARTClassifier(criterion="gain_ratio")}, "criterion='gain_ratio'"),
        ({"estimator": spinney.CARTClassifier(class_weight="balanced")}, "class_weight='balanced' of its trees"),
        ({"ccp_alpha": "cv"}, "ccp_alpha='cv'"),
        ({"pruning": "reduced_error"}, "pruning='reduced_error'"),
        ({"trace": True}, "trace=True"),
    ],
)
def test_what_needs_rows_in_memory_is_named(more, named):
    is_bag = any(name in more for name in ("estimator", "bootstrap_features")) or more == {"max_features": 0.5}
    is_tree = "trace" in more or more.get("ccp_alpha") == "cv" or more.get("pruning") == "reduced_error"
    model = TREE(**more) if is_tree else (BAG if is_bag else FOREST)(**FEW, **more)
    with pytest.raises(ValueError, match=rf"or change {named}, which needs the rows in memory"):
        model.fit(Scan(make_table(60_000), "y", drop=["w", "g"], memory=10**8))


def test_the_plan_of_a_forest_from_disk_has_room_for_nodes():
    store = Scan(make_table(6000), "y", drop=["w", "g"]).read()
    columns = list(store._layout.columns)
    needs = [plan.make_plan(FOREST(n_jobs=1), columns, n_rows, 0, 10**9) for n_rows in (10**7, 10**8)]
    for found in needs:
        assert found.by_levels
        assert found.room > 10**8
        assert found.peak_bytes == found.memory
        assert "nodes by passes over the codes, then in memory" in str(found)
    assert needs[0].room == needs[1].room  # whatever the number of rows
    assert not plan.make_plan(
        FOREST(n_jobs=1), columns, 6000, 0, 10**8
    ).by_levels  # which would need more than all rows
