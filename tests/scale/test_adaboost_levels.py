"""AdaBoost grown from disk is that of the table in memory, byte for byte: any weights, any room for nodes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import spinney
from disk_tables import clone, fill_disk, fit_in_memory, make_table, model_bytes, note_tops, split, with_column
from spinney import AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, CARTClassifier, CARTRegressor
from spinney.ensemble.adaboost import AdaBoost
from spinney.ensemble.adaboost_levels import LevelFitter
from spinney.ensemble.forest_levels import TopBudget
from spinney.estimators import adaboost_by_levels
from spinney.scale import plan
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")

FEW = {"n_estimators": 4, "random_state": 0}
CASES = [
    (AdaBoostClassifier(**FEW), "classes"),
    (AdaBoostClassifier(**FEW), "three"),
    (AdaBoostClassifier(CARTClassifier(max_depth=1, criterion="entropy", missing="branch"), **FEW), "three"),
    (AdaBoostClassifier(CARTClassifier(max_depth=1, min_samples_leaf=900), learning_rate=0.3, **FEW), "classes"),
    (AdaBoostClassifier(CARTClassifier(max_depth=3), convention="half", **FEW), "classes"),
    (AdaBoostClassifier(CARTClassifier(max_depth=4, criterion="entropy"), **FEW), "classes"),
    (AdaBoostClassifier(CARTClassifier(max_depth=4, criterion="misclassification", max_bins=20), **FEW), "three"),
    (AdaBoostClassifier(CARTClassifier(max_depth=6, max_features=3, ties="random", missing="branch"), **FEW), "three"),
    (AdaBoostClassifier(CARTClassifier(max_depth=5, class_weight="balanced", cat_penalty=1.0), **FEW), "three"),
    (AdaBoostClassifier(CARTClassifier(class_weight={"yes": 0.3}, min_weight_fraction_leaf=0.01), **FEW), "classes"),
    (AdaBoostClassifier(CARTClassifier(max_depth=5, ccp_alpha=0.01, splitter="random"), **FEW), "classes"),
    (AdaBoostRegressor(**FEW), "numbers"),
    (AdaBoostRegressor(CARTRegressor(max_depth=1), loss="square", learning_rate=0.5, **FEW), "numbers"),
    (AdaBoostRegressor(CARTRegressor(max_depth=1, missing="branch"), loss="exponential", **FEW), "numbers"),
    (AdaBoostRegressor(CARTRegressor(max_depth=7, cat_penalty=1.0), loss="exponential", **FEW), "numbers"),
    (AdaBoostRegressor(CARTRegressor(min_samples_leaf=20, ccp_alpha=0.001, missing="branch"), **FEW), "numbers"),
    (AdaBoostRegressor(CARTRegressor(max_features=0.5, splitter="random", max_depth=6), **FEW), "numbers"),
]
WEIGHTS = ["none", "ones", "whole", "zeros", "fractions", "tiny", "spread"]


def make_weights(kind, n_rows, seed=5):
    rng = np.random.default_rng(seed)
    whole = rng.integers(1, 4, n_rows).astype(np.float64)
    return {
        "none": None,
        "ones": np.ones(n_rows),
        "whole": whole,
        "zeros": np.where(rng.random(n_rows) < 0.3, 0.0, whole),
        "fractions": np.where(rng.random(n_rows) < 0.1, 0.0, rng.random(n_rows)),
        "tiny": rng.random(n_rows) * 1e-290,
        "spread": 10.0 ** rng.uniform(-12, 12, n_rows),
    }[kind]


@pytest.fixture
def room(monkeypatch):
    """Take no table for one that memory holds; what nodes have room for may be set."""
    budget = {"n_sums": 10**6, "most_rows": 300}
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)
    monkeypatch.setattr(adaboost_by_levels, "share_room", lambda *_: TopBudget(**budget))
    return budget


def scan(table, weight=None, **more):
    more = {"drop": ["w", "g"], "block_rows": 4096, **more}
    if weight is not None:
        table = with_column(table, "w", weight)
        more |= {"weight": "w", "drop": ["g"]}
    return Scan(table, "y", memory=10**9, **more)


@pytest.mark.parametrize(("model", "target"), CASES, ids=str)
def test_boosting_from_disk_is_that_of_the_table(model, target, room, tmp_path, monkeypatch):  # noqa: ARG001
    tops = note_tops(monkeypatch)
    table = make_table(9000, target=target)
    expected = fit_in_memory(model, table)
    found = clone(model).fit(scan(table))
    assert model_bytes(found, tmp_path) == model_bytes(expected, tmp_path)
    assert len(tops) == len(expected.estimator_weights_) >= 2
    assert min(tops) >= 1  # roots at least were split by passes


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("target", ["classes", "three", "numbers"])
def test_any_weights_are_those_of_memory(kind, target, room, tmp_path):  # noqa: ARG001
    table, weight = make_table(9000, target=target), make_weights(kind, 9000)
    if target == "numbers":
        models = [AdaBoostRegressor(**FEW), AdaBoostRegressor(CARTRegressor(max_depth=1), **FEW)]
    else:
        deep = CARTClassifier(max_depth=4, class_weight="balanced")
        models = [AdaBoostClassifier(**FEW), AdaBoostClassifier(deep, **FEW)]
    for model in models:
        expected = model_bytes(fit_in_memory(model, table, weight), tmp_path)
        assert model_bytes(clone(model).fit(scan(table, weight)), tmp_path) == expected


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    most_rows=st.sampled_from([0, 64, 100, 500, 2500, 10**6]),
    n_sums=st.sampled_from([1, 30_000, 10**7]),
    n_rows=st.sampled_from([1, 2, 3, 100, 4095, 4097, 8192, 12_289]),
    block_rows=st.sampled_from([4096, 8192, 1 << 16]),
    kind=st.sampled_from(WEIGHTS),
    depth=st.sampled_from([1, 2, 5, None]),
    target=st.sampled_from(["classes", "three", "numbers"]),
    seed=st.integers(0, 5),
)
def test_any_room_gives_the_same_model(
    tmp_path_factory, most_rows, n_sums, n_rows, block_rows, kind, depth, target, seed
):
    folder = tmp_path_factory.mktemp("room")
    table, weight = make_table(n_rows, seed, target=target), make_weights(kind, n_rows, seed)
    if weight is not None:
        weight[0] = max(weight[0], weight[-1], 1e-290)
    if target == "numbers":
        model = AdaBoostRegressor(CARTRegressor(max_depth=depth), n_estimators=3, random_state=seed)
    else:
        model = AdaBoostClassifier(CARTClassifier(max_depth=depth), n_estimators=3, random_state=seed)
    expected = model_bytes(fit_in_memory(model, table, weight), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fits", lambda plan: plan.by_levels)
        patch.setattr(adaboost_by_levels, "share_room", lambda *_: TopBudget(n_sums, most_rows))
        assert model_bytes(clone(model).fit(scan(table, weight, block_rows=block_rows)), folder) == expected


def test_the_store_of_a_table_gives_the_same_model_as_its_files(room, tmp_path):  # noqa: ARG001
    table, weight = make_table(9000), make_weights("fractions", 9000)
    expected = model_bytes(fit_in_memory(AdaBoostClassifier(**FEW), table, weight), tmp_path)
    store = scan(table, weight).store(tmp_path / "t.codes")
    store.memory = 10**9
    for _ in range(2):  # the second time codes are on the shelf
        assert model_bytes(AdaBoostClassifier(**FEW).fit(store), tmp_path) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.spn", "t.codes"]


@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_rounds_stop_early_by_rows_that_are_given(target, room, tmp_path):  # noqa: ARG001
    table, other = make_table(9000, target=target), make_table(1500, 1, target=target)
    kind = AdaBoostRegressor if target == "numbers" else AdaBoostClassifier
    model = kind(n_estimators=12, n_iter_no_change=2, random_state=0)
    X_val, y_val = split(other)
    expected = fit_in_memory(model, table, X_val=X_val, y_val=y_val)
    for rows in ({"X_val": X_val, "y_val": y_val}, {"X_val": scan(other)}):
        found = clone(model).fit(scan(table), **rows)
        assert found.validation_scores_.tolist() == expected.validation_scores_.tolist()
        assert model_bytes(found, tmp_path) == model_bytes(expected, tmp_path)


@pytest.mark.parametrize("weights", ["none", "zeros"])
@pytest.mark.parametrize(("target", "n_rows"), [("classes", 9000), ("three", 70_000), ("numbers", 9000)])
def test_rounds_stop_early_by_rows_that_are_held_out(target, n_rows, weights, room, tmp_path):  # noqa: ARG001
    table, weight = make_table(n_rows, target=target), make_weights(weights, n_rows)
    kind = AdaBoostRegressor if target == "numbers" else AdaBoostClassifier
    model = kind(n_estimators=8, n_iter_no_change=2, validation_fraction=0.2, random_state=4)
    expected = fit_in_memory(model, table, weight)
    found = clone(model).fit(scan(table, weight))
    assert found.validation_scores_.tolist() == expected.validation_scores_.tolist()
    assert model_bytes(found, tmp_path) == model_bytes(expected, tmp_path)


def test_a_perfect_member_a_member_of_no_use_and_one_class_end_the_rounds(room, tmp_path):  # noqa: ARG001
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 6000).astype(np.float64)
    for y in (x, rng.permutation(np.arange(6000) % 2), np.zeros(6000), 3.0 * x + 1e200 * (x - 1)):
        table = pa.table({"x": x, "flat": np.zeros(6000), "y": y, "w": np.ones(6000), "g": np.zeros(6000)})
        kind = AdaBoostClassifier if y.max() <= 1.0 and y.min() >= 0.0 else AdaBoostRegressor
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spinney.estimators.adaboost.warn", lambda _: None)
            expected = model_bytes(fit_in_memory(kind(**FEW), table), tmp_path)
            assert model_bytes(kind(**FEW).fit(scan(table)), tmp_path) == expected


@pytest.mark.parametrize("goes_on", ["from disk", "in memory"])
@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_a_checkpoint_goes_on(goes_on, target, room, tmp_path, monkeypatch):  # noqa: ARG001
    table, weight = make_table(5000, target=target), make_weights("fractions", 5000)
    kind = AdaBoostRegressor if target == "numbers" else AdaBoostClassifier
    model = kind(n_estimators=6, random_state=0)
    expected = model_bytes(fit_in_memory(model, table, weight), tmp_path)
    kept = clone(model, checkpoint=str(tmp_path / "run"))
    step, seen = AdaBoost.step, []

    def stop(self, number, control):
        seen.append(number)
        if seen == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return step(self, number, control)

    monkeypatch.setattr(AdaBoost, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        kept.fit(scan(table, weight))
    found = kept.fit(scan(table, weight)) if goes_on == "from disk" else fit_in_memory(kept, table, weight)
    assert seen == [0, 1, 2, 3, 3, 4, 5]
    assert not (tmp_path / "run").exists()
    assert model_bytes(clone_fitted(found), tmp_path) == expected


def clone_fitted(model):
    model.checkpoint = None
    return model


def test_a_checkpoint_of_memory_goes_on_from_disk_and_other_weights_are_refused(room, tmp_path, monkeypatch):  # noqa: ARG001
    table, weight = make_table(5000), make_weights("whole", 5000)
    kept = AdaBoostClassifier(n_estimators=6, random_state=0, checkpoint=str(tmp_path / "run"))
    expected = model_bytes(fit_in_memory(clone(kept, checkpoint=None), table, weight), tmp_path)
    step = AdaBoost.step

    def stop(self, number, control):
        if number == 2:
            raise KeyboardInterrupt
        return step(self, number, control)

    monkeypatch.setattr(AdaBoost, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        fit_in_memory(kept, table, weight)
    monkeypatch.setattr(AdaBoost, "step", step)
    with pytest.raises(ValueError, match="sample_weight differs"):
        kept.fit(scan(table, weight + 1.0))
    assert model_bytes(clone_fitted(kept.fit(scan(table, weight))), tmp_path) == expected


@pytest.mark.parametrize("name", ["y", "logs", "base", "units", "loss", "values", "codes"])
def test_a_full_disk_is_told(name, room, tmp_path, monkeypatch):
    room["most_rows"] = 10**4 if name == "codes" else 300
    target = "numbers" if name == "values" else "classes"
    kind = AdaBoostRegressor if name == "values" else AdaBoostClassifier
    model = kind(CARTClassifier(max_depth=3) if name == "codes" else None, **FEW)
    store = scan(make_table(5000, target=target), make_weights("whole", 5000)).store(tmp_path / "t.codes")
    fill_disk(monkeypatch, name)
    store.memory = 10**9
    with pytest.raises(OSError, match="choose a disk with more room") as caught:
        model.fit(store)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.codes"]
    assert not hasattr(model, "estimator_weights_")


def test_a_request_to_stop_ends_a_round(room, monkeypatch):  # noqa: ARG001
    fit = LevelFitter.__call__

    def stop(self, number, rows, control):
        control[0] = 1
        return fit(self, number, rows, control)

    monkeypatch.setattr(LevelFitter, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        AdaBoostClassifier(**FEW).fit(scan(make_table(5000)))


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"max_leaf_nodes": 8}, "max_leaf_nodes of its trees"),
        ({"monotonic_cst": {"number": 1}}, "monotonic_cst of its trees"),
        ({"criterion": "gain_ratio"}, "criterion='gain_ratio' of its trees"),
    ],
)
def test_what_needs_rows_in_memory_is_named(tree, named):
    model = AdaBoostClassifier(CARTClassifier(**tree), **FEW)
    with pytest.raises(ValueError, match=rf"or change {named}, which needs the rows in memory"):
        model.fit(Scan(make_table(90_000), "y", drop=["w", "g"], memory=10**8))


@pytest.mark.parametrize("kind", [AdaBoostClassifier, BaggingClassifier])
@pytest.mark.parametrize("tree", [{"max_bins": None}, {"max_depth": "z"}, {"max_features": "zz"}, {"criterion": "q"}])
def test_a_parameter_of_the_trees_that_is_wrong_is_told_as_in_memory(kind, tree):
    model, table = kind(CARTClassifier(**tree), n_estimators=2), make_table(30)
    with pytest.raises(ValueError, match=f"The '{next(iter(tree))}' parameter of CARTClassifier must be") as expected:
        clone(model).fit(*split(table))
    with pytest.raises(type(expected.value)) as found:
        clone(model).fit(scan(table))
    assert str(found.value).split("among")[0] == str(expected.value).split("among")[0]  # names have no order


def test_members_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match="use CART trees as members"):
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=1)).fit(scan(make_table(5000)))


def test_the_plan_counts_no_weights():
    store = Scan(make_table(6000), "y", weight="w", drop=["g"]).read()
    columns = list(store._layout.columns)
    needs = [plan.make_plan(AdaBoostClassifier(), columns, n_rows, 0, 5 * 10**8) for n_rows in (10**7, 10**8)]
    for found in needs:
        assert found.by_levels
        assert found.room > 10**8
        assert found.peak_bytes == found.memory
        assert "nodes by passes over the codes" in str(found)
    assert needs[0].room == needs[1].room  # whatever the number of rows
    deep = plan.make_plan(spinney.AdaBoostClassifier(CARTClassifier(max_depth=8)), columns, 10**7, 0, 5 * 10**8)
    assert deep.seconds > 3 * needs[0].seconds
