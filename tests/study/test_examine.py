"""The evidence of a study equals what scikit-learn and the estimators by hand say of the same folds."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from sklearn.inspection import partial_dependence
from sklearn.metrics import confusion_matrix, mean_squared_error, r2_score, roc_auc_score
from sklearn.model_selection import cross_val_predict

from spinney import (
    CARTClassifier,
    CARTRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    datasets,
    trace,
)
from spinney.study import Evidence, FoldRecord, compare, examine, examine_figure, housing, prepare
from spinney.study.clock import Clock
from spinney.study.dependence import choose_output, make_grid, nearest, trace_columns
from spinney.study.fold_record import Stages
from spinney.study.folds import make_folds, recall_folds
from spinney.study.housing_evidence import find_best_ensemble, list_learning_curves, rehearse_figure
from spinney.study.housing_setup import cut_rows
from spinney.study.methods import choose_methods, known_methods
from spinney.study.reasons import explain_answers
from spinney.study.result import Curve, Figure
from spinney.study.staged import list_points
from spinney.study.tree_view import view_tree

compiled_only = pytest.mark.compiled(reason="takes minutes interpreted")


def make_data(n_rows=160, *, is_regression=False, **options):
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=n_rows), rng.choice(["u", "v", "w"], n_rows)
    raw = x + (z == "u") + 0.5 * rng.normal(size=n_rows)
    y = raw if is_regression else np.where(raw > 0.7, "high", "low")
    holes = np.where(rng.random(n_rows) < 0.1, np.nan, x)
    g = rng.integers(0, 8, n_rows)
    return prepare(pa.table({"x": holes, "z": z, "noise": rng.normal(size=n_rows), "g": g, "y": y}), "y", **options)


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "numbers"])
def case(request):
    """Data, a study of two repeats, its record and its evidence."""
    data, record = make_data(is_regression=request.param), FoldRecord()
    study = compare(data, methods=["forest", "boosting"], n_splits=3, n_repeats=2, seed=1, record=record)
    return data, study, examine(study, data, record)


@compiled_only
@pytest.mark.sampled(2)
def test_answers_are_those_of_cross_val_predict(case):
    data, study, evidence = case
    assert evidence.left_out == ()
    assert evidence.key == study.best
    folds = make_folds(data, 3, 2, seed=1).splits[:3]
    model = {one.key: one for one in choose_methods(data.summary.task)}[study.best].make(1)
    said = cross_val_predict(model, data.X, data.y, cv=folds)
    if data.is_regression:
        residuals = evidence.residuals
        assert residuals.rmse**2 == pytest.approx(mean_squared_error(data.y, said))
        assert sorted(residuals.predicted) == pytest.approx(sorted(said))
        assert evidence.confusion is None
        assert evidence.separations == evidence.calibrations == ()
        return
    assert np.array_equal(evidence.confusion.counts, confusion_matrix(data.y, said))
    shares = cross_val_predict(model, data.X, data.y, cv=folds, method="predict_proba")
    (separation,) = evidence.separations
    assert separation.label == "low"
    assert separation.roc_auc == pytest.approx(roc_auc_score(data.y == "low", shares[:, 1]))
    assert separation.n_rows == data.n_rows
    assert evidence.calibrations[0].brier == pytest.approx(np.mean((shares[:, 1] - (data.y == "low")) ** 2))
    assert evidence.residuals is None


@compiled_only
def test_growth_is_the_score_of_smaller_ensembles(case):
    data, study, evidence = case
    folds = make_folds(data, 3, 2, seed=1).splits[:3]
    assert [one.key for one in evidence.learning_curves] == ["forest", "boosting"]
    methods = {one.key: one for one in choose_methods(data.summary.task)}
    for growth in evidence.learning_curves:
        last = growth.trees[-1]
        if growth.key == "forest":
            assert last == 100
            assert growth.scores[-1] == pytest.approx(np.mean(study.method(growth.key).scores[:3]))
            assert growth.seconds[-1] == pytest.approx(np.mean(study.method(growth.key).fit_seconds[:3]))
        else:  # folds stop by their own out-of-bag rows: the curve ends at the last point that all of them have
            whole = [methods[growth.key].make(1).fit(data.X.take(a), data.y[a]) for a, _ in folds]
            assert last == list_points(min(model.n_estimators_ for model in whole))[-2]
        place = growth.trees.index(7)
        few = methods[growth.key].make(1).set_params(n_estimators=7)
        if growth.key == "boosting":  # a number of rounds has longer steps
            few.set_params(learning_rate=whole[0].chosen_params_["learning_rate"])
        by_hand = [few.fit(data.X.take(a), data.y[a]).score(data.X.take(b), data.y[b]) for a, b in folds]
        assert growth.scores[place] == pytest.approx(np.mean(by_hand))
        spread = np.std(by_hand, ddof=1) * np.sqrt(1 / 3 + 1 / 2)
        assert growth.errors[place] == pytest.approx(spread, rel=0.02)  # folds differ by a row


@compiled_only
def test_importances_and_coverage_are_the_forest_s(case):
    data, _, evidence = case
    forest = (RandomForestRegressor if data.is_regression else RandomForestClassifier)(random_state=1)
    whole = forest.fit(data.X, data.y)
    permuted, impurity = whole.importance("permutation", data.X, data.y), whole.importance("impurity")
    assert sorted(one.feature for one in evidence.importances) == sorted(data.X.column_names)
    for one in evidence.importances:
        j = permuted.feature.index(one.feature)
        assert one.permutation == permuted.importance[j]
        assert one.permutation_error == permuted.std_error[j]
        assert one.impurity == impurity.importance[j]
        assert one.impurity_error == impurity.std_error[j]
    assert [one.permutation for one in evidence.importances] == sorted(permuted.importance, reverse=True)
    (coverage,) = evidence.coverages
    hits = 0
    for train, test in make_folds(data, 3, 2, seed=1).splits[:3]:
        forest = forest.set_params(oob_score=True).fit(data.X.take(train), data.y[train])
        if data.is_regression:
            low, high = forest.predict_interval(data.X.take(test), 0.8).T
            hits += np.sum((low <= data.y[test]) & (data.y[test] <= high))
        else:
            sets = forest.predict_set(data.X.take(test), 0.8)
            hits += np.sum(sets[np.arange(len(test)), (data.y[test] == "low").astype(int)])
    assert coverage.n_rows == data.n_rows
    assert coverage.covered[coverage.nominal.index(0.8)] == pytest.approx(hits / data.n_rows)


@compiled_only
def test_evidence_is_the_same_after_json(case):
    _, _, evidence = case
    assert Evidence.from_json(evidence.to_json()) == evidence
    with pytest.raises(ValueError, match="not the JSON of evidence"):
        Evidence.from_json('{"kind": "study"}')


@compiled_only
def test_the_recipe_repeats_the_study():
    table = datasets.load("contact_lenses")
    data = prepare(table, "contact-lenses", name="contact_lenses", drop=["age"])
    study = compare(data, methods=["c45"], n_splits=3, n_repeats=2, seed=5)
    evidence = examine(study, data)
    names: dict = {}
    exec(evidence.recipe, names)
    assert names["study"].methods[1].scores == study.methods[1].scores
    by_hand = choose_methods("classification")[2].make(5).fit(data.X, data.y)
    assert (names["model"].predict(data.X) == by_hand.predict(data.X)).all()


# --- Dependence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_regression", [False, True])
def test_dependence_is_that_of_scikit_learn(is_regression):
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(size=80), 1), rng.integers(0, 5, 80)
    y = a * b if is_regression else np.where(a * b > 0.5, "p", "n")
    data = prepare(pa.table({"a": a, "b": b, "y": y}), "y")
    X = np.column_stack([a, b])
    model = (CARTRegressor if is_regression else CARTClassifier)(max_depth=5)
    found = trace_columns(model.fit(data.X, data.y), data, ["b", "a"])
    assert [one.feature for one in found] == ["b", "a"]
    model.fit(X, data.y)
    for j, one in zip((1, 0), found, strict=True):
        peer = partial_dependence(model, X, [j], kind="both")  # its grid: all values, as they are few
        assert one.is_number
        assert one.grid == tuple(peer["grid_values"][0])
        assert one.mean == pytest.approx(peer["average"][0])
        lines = np.round(one.lines, 9)
        peers = {tuple(line) for line in np.round(peer["individual"][0], 9)}
        assert len(lines) == 40
        assert {tuple(line) for line in lines} <= peers
        assert one.counts == tuple(np.unique(X[:, j], return_counts=True)[1])
        assert one.label == (None if is_regression else "p")


def test_a_grid_of_numbers_is_of_values_at_even_distances():
    values = np.concatenate([np.linspace(0.0, 1.0, 500), [1000.0, np.nan, np.inf]])
    grid = make_grid(pa.chunked_array([values]))
    assert len(grid.values) == 40
    assert set(grid.values) <= set(values)
    assert grid.values[-1] <= 1.0
    assert np.ptp(np.diff(grid.values)) < 0.005
    assert sum(grid.counts) == 501
    assert (values[grid.rows] == grid.values).all()


@pytest.mark.parametrize("kind", ["text", "dictionary", "boolean"])
def test_a_grid_of_levels_is_of_the_commonest(kind):
    texts = [None, *("ab" * 3), *(f"level {k}" for k in range(40)), "a"]
    column = pa.chunked_array([pa.array(texts)])
    if kind == "boolean":
        column = pa.chunked_array([pa.array([True, None, False, True])])
    grid = make_grid(column.dictionary_encode() if kind == "dictionary" else column)
    assert not grid.is_number
    if kind == "boolean":
        assert (grid.values, grid.counts) == (("false", "true"), (1, 2))
        return
    assert len(grid.values) == 20
    assert (grid.values[:2], grid.counts[:3]) == (("a", "b"), (4, 3, 1))
    assert [texts[row] for row in grid.rows] == list(grid.values)


def test_the_nearest_is_found():
    known = np.array([0.0, 1.0, 4.0])
    assert nearest(known, np.array([-5.0, 0.4, 0.5, 0.6, 2.5, 2.6, 9.0])).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert nearest(known[:1], np.array([-1.0, 3.0])).tolist() == [0, 0]


def test_of_many_classes_the_commonest_is_asked_for():
    y = np.array(["a", "b", "b", "c"] * 5)
    data = prepare(pa.table({"x": np.arange(20.0) % 4, "y": y}), "y")
    ask, label = choose_output(CARTClassifier().fit(data.X, data.y), data)
    assert label == "b"
    assert ask(data.X)[:4].tolist() == [0.0, 1.0, 1.0, 0.0]


# --- The tree -------------------------------------------------------------------------------------------------


def leaves_at(story, step):
    """Nodes that are leaves of the tree at one step: cut, and not below a node that is."""
    nodes = story.nodes
    is_below = [False] * len(nodes)
    for k, node in enumerate(nodes):
        is_below[k] = node.parent >= 0 and (is_below[node.parent] or nodes[node.parent].cut <= step)
    return [node for node, below in zip(nodes, is_below, strict=True) if not below and node.cut <= step]


@pytest.mark.parametrize("is_regression", [False, True])
@pytest.mark.parametrize("most", [200, 9])
def test_the_steps_of_a_tree_are_those_of_cart(is_regression, most):
    data = make_data(is_regression=is_regression)
    model = (CARTRegressor if is_regression else CARTClassifier)(random_state=1, ccp_alpha="cv")
    story = view_tree(model, data.X, data.y, name="CART", target="y", most=most)
    path = model.cost_complexity_pruning_path(data.X, data.y)
    first = next(k for k, n in enumerate(path.n_leaves) if n <= most)
    assert (first == 0) == (most == 200)
    assert [step.n_leaves for step in story.steps] == path.n_leaves[first:].tolist()
    assert [step.alpha for step in story.steps] == pytest.approx(path.ccp_alphas[first:])
    fitted = model.fit(data.X, data.y)
    errors, spreads = fitted.cv_results_["error"][first:], fitted.cv_results_["standard_error"][first:]
    assert [step.error for step in story.steps] == pytest.approx(errors)
    assert [step.standard_error for step in story.steps] == pytest.approx(spreads)
    assert story.steps[story.chosen].error == errors.min()
    assert story.steps[story.one_error].alpha == pytest.approx(fitted.ccp_alpha_)
    for number, step in enumerate(story.steps):
        pruned = type(model)(random_state=1, ccp_alpha=float(path.ccp_alphas[first + number]) * (1 + 1e-9))
        tree = pruned.fit(data.X, data.y).tree_.arrays
        leaves = leaves_at(story, number)
        assert sorted(leaf.n_rows for leaf in leaves) == sorted(tree.n_rows[tree.is_leaf])
        said = pruned.predict(data.X)
        if is_regression:
            assert step.training_error == pytest.approx(np.mean((said - data.y) ** 2))
            assert sorted(leaf.value for leaf in leaves) == pytest.approx(sorted(tree.values()[tree.is_leaf]))
        else:
            assert step.training_error == pytest.approx(np.mean(said != data.y))
            weights = tree.class_weights()[tree.is_leaf]
            assert sorted(leaf.counts for leaf in leaves) == sorted(map(tuple, weights.tolist()))
            assert {leaf.answer for leaf in leaves} <= {"high", "low"}
    assert story.nodes[0].n_rows == data.n_rows
    assert len(story.nodes) <= 2 * most - 1
    assert all(node.parent < k for k, node in enumerate(story.nodes))
    assert all((node.test is None) == (node.cut == 0) for node in story.nodes)


def test_the_first_question_is_told_with_its_rivals():
    data = make_data()
    story = view_tree(CARTClassifier(random_state=1), data.X, data.y, name="CART", target="y")
    frame = trace(CARTClassifier(random_state=1).fit(data.X, data.y), data.X, data.y, max_depth=0).to_frame()
    best = frame[frame.is_best_of_feature].sort_values("gini_decrease", ascending=False)
    assert [row[0] for row in story.trace_rows] == best.test.tolist()
    assert len(set(map(len, story.trace_rows))) == 1
    assert len(story.trace_columns) == len(story.trace_rows[0])
    column = story.trace_columns.index("Gini decr.")
    assert [float(row[column]) for row in story.trace_rows] == pytest.approx(best.gini_decrease.tolist(), abs=1e-6)
    assert story.trace_words.startswith("160 rows")
    assert "largest Gini decrease" in story.trace_words


def test_a_tree_that_asks_nothing_has_a_story():
    X = pa.table({"x": [1.0, 1.0, 1.0, 2.0] * 3})
    story = view_tree(CARTRegressor(), X, np.full(12, 1.5), name="CART", target="y")
    (node,) = story.nodes
    assert (node.test, node.answer, node.cut) == (None, "1.5", 0)
    (step,) = story.steps
    assert (step.n_leaves, step.training_error, step.error) == (1, 0.0, None)
    assert (story.chosen, story.one_error) == (0, 0)


# --- What goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"groups": "g"}, {"time": "g"}])
def test_the_folds_of_a_study_are_cut_again(options):
    data = make_data(**options)
    study = compare(data, methods=["id3"], n_splits=4, seed=7)
    folds = recall_folds(data, study)
    by_hand = make_folds(data, 4, None, seed=7)
    assert folds.n_splits == 4
    for one, other in zip(folds.splits, by_hand.splits, strict=True):
        assert np.array_equal(one[1], other[1])
    with pytest.raises(ValueError, match="pass the data of the study"):
        recall_folds(make_data(is_regression=True), study)


@compiled_only
def test_relatives_are_on_one_side_in_the_evidence_too():
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(30), 8)  # x tells the family, and nothing of other families
    x, y = rng.normal(size=30)[family], rng.normal(size=30)[family]
    table = pa.table({"x": x + 1e-3 * rng.normal(size=240), "z": rng.normal(size=240), "family": family, "y": y})
    data = prepare(table, "y", groups="family")
    study = compare(data, methods=["cart", "forest"], n_splits=3)
    evidence = examine(study, data)
    assert min(step.error for step in evidence.tree.steps) > 0.5 * np.var(y)
    by_rows = view_tree(CARTRegressor(), data.X, data.y, name="CART", target="y")
    assert min(step.error for step in by_rows.steps) < 0.1 * np.var(y)  # what folds of single rows would have said
    model = choose_methods("regression")[5].make(0).fit(data.X, data.y, groups=data.groups)
    by_hand = model.importance("permutation", data.X, data.y).importance
    assert sorted(one.permutation for one in evidence.importances) == pytest.approx(sorted(by_hand))
    assert {"importances", "tree", "residuals"} == set(dict(evidence.remarks))


@compiled_only
@pytest.mark.slow
def test_the_folds_behind_the_parts_are_told():
    data = make_data(is_regression=True, time="g")
    remarks = dict(examine(compare(data, methods=["cart"], n_splits=2), data).remarks)
    assert "never held out" in remarks["residuals"]
    assert "later" in remarks["importances"]
    data = make_data()
    study = compare(data, methods=["cart"], n_splits=2, n_repeats=3)
    assert "first of the 3 times" in dict(examine(study, data).remarks)["confusion"]
    assert dict(examine(study, data, FoldRecord()).remarks)["confusion"] == "They are of 0 of 2 folds."


@compiled_only
def test_without_a_record_the_best_is_fitted_again():
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["cart", "id3"], n_splits=3, n_repeats=2, seed=1, record=record)
    with_it, without = examine(study, data, record), examine(study, data)
    assert without.confusion == with_it.confusion
    assert without.separations == with_it.separations


@compiled_only
def test_a_budget_leaves_out_what_is_late():
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=2, n_repeats=1, record=record)
    evidence = examine(study, data, record, clock=Clock(1e-9))
    assert evidence.confusion is not None  # the answers are at hand
    parts = ["tree", "importances", "worths", "dependences", "reasons", "coverages"]
    late = dict.fromkeys(parts, "the budget was spent")
    assert dict(evidence.left_out) == late | {"learning_curves": "no ensemble took part"}
    assert evidence.stopped == "budget"


@compiled_only
def test_an_interrupt_leaves_what_is_done():
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=2, n_repeats=1, record=record)

    def stop(what, n_done, n_all):
        assert n_done < n_all
        if what == "importances":
            raise KeyboardInterrupt

    evidence = examine(study, data, record, on_step=stop)
    assert evidence.confusion is not None
    assert evidence.tree is not None
    missing = dict.fromkeys(["importances", "worths", "dependences", "reasons", "coverages"], "it was interrupted")
    assert dict(evidence.left_out) == missing | {"learning_curves": "no ensemble took part"}
    assert evidence.stopped == "interrupt"


@compiled_only
def test_a_part_that_fails_is_said(monkeypatch):
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=2, n_repeats=1, record=record)

    def fail(*_):
        raise ValueError("no such  thing")

    monkeypatch.setattr(import_module("spinney.study.examine"), "list_importances", fail)
    monkeypatch.setattr(import_module("spinney.study.examine"), "permute_columns", lambda *_, **__: fail())
    evidence = examine(study, data, record)
    missing = {"learning_curves": "no ensemble took part", "importances": "no such thing", "worths": "no such thing"}
    assert dict(evidence.left_out) == missing
    assert [one.feature for one in evidence.dependences] == ["x", "z", "noise", "g"]


def test_a_record_that_fails_does_not_end_the_study(monkeypatch):
    def fail(*_, **__):
        raise ValueError("no answer")

    monkeypatch.setattr("spinney.study.fold_record.staged_predictions", fail)
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=2, n_repeats=1, record=record)
    assert study.method("id3").error is None
    assert record.failures["id3"] == "no answer"
    with pytest.raises(ValueError, match="no fold was finished"):
        record.pool("cart")


@compiled_only
def test_where_the_baseline_is_best_the_next_is_examined():
    rng = np.random.default_rng(0)
    noise = pa.table({"x": rng.normal(size=60), "y": rng.permutation(["a"] * 50 + ["b"] * 10)})
    data, record = prepare(noise, "y"), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=3, n_repeats=1, record=record)
    assert study.best == "baseline"
    evidence = examine(study, data, record)
    assert evidence.key == "id3"
    assert "refit(" not in evidence.recipe


@compiled_only
def test_a_tuned_method_is_examined_with_what_most_folds_chose():
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3"], n_splits=3, n_repeats=1, is_tuned=True, record=record)
    evidence = examine(study, data, record)
    assert evidence.name == "ID3 (tuned)"
    assert "is_tuned=True" in evidence.recipe
    assert dict(evidence.left_out) == {"learning_curves": "no ensemble took part"}


# --- The record ----------------------------------------------------------------------------------------------


@compiled_only
@pytest.mark.parametrize("metric", ["accuracy", "log_loss", "roc_auc", "balanced_accuracy"])
@pytest.mark.sampled(3)
def test_a_part_of_the_rows_shows_the_way_and_all_the_end(metric, monkeypatch):
    data = make_data(n_rows=400)
    study, scores = None, []
    for most in (2000, 100):
        monkeypatch.setattr("spinney.study.fold_record.MAX_ROWS", most)
        record = FoldRecord()
        study = compare(data, methods=["adaboost", "bagging"], metric=metric, n_splits=2, n_repeats=1, record=record)
        assert record.failures == {}
        for key in ("adaboost", "bagging"):
            growth = record.learning_curve(key, key, 1.0)
            assert growth.scores[-1] == pytest.approx(study.method(key).mean)
            scores.append(growth.scores)
    assert scores[2] != pytest.approx(scores[0])  # of other rows
    assert scores[2] == pytest.approx(scores[0], abs=0.25)


@compiled_only
def test_ensembles_without_two_folds_are_said():
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=["id3", "forest"], n_splits=2, n_repeats=1, record=record)
    for folds in record.stages.values():
        folds.pop()
    assert dict(examine(study, data, record).left_out) == {"learning_curves": "no ensemble has finished two folds"}


def test_one_fold_has_no_growth():
    record = FoldRecord()
    record.stages["forest"] = [Stages({1: 0.5, 100: 0.7}, 2.0)]
    assert record.learning_curve("forest", "random forest", 0.25) is None
    record.stages["forest"].append(Stages({1: 0.7, 50: 0.7}, 4.0))
    growth = record.learning_curve("forest", "random forest", 0.25)
    assert (growth.trees, growth.scores) == ((1,), (0.6,))
    assert growth.seconds == pytest.approx((np.mean([2.0 / 100, 4.0 / 50]),))
    assert growth.errors == pytest.approx((np.std([0.5, 0.7], ddof=1) * np.sqrt(0.5 + 0.25),))


# --- The figure -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@compiled_only
def test_the_figure_is_examined():
    record = FoldRecord()
    figure = replace(housing.draw_figure((5, 10), n_folds=2, record=record), seconds=600.0)
    evidence = examine_figure(figure, record)
    assert evidence.left_out == ()
    assert evidence.key == find_best_ensemble(figure) == "random forest"
    assert [one.key for one in evidence.learning_curves] == [curve.name for curve in figure.curves]
    growth, curve = evidence.learning_curves[0], figure.curves[0]
    assert growth.scores == pytest.approx(np.mean(curve.scores, axis=0))
    assert growth.trees == (5, 10)
    table = datasets.load("california_housing")
    y = table["MedHouseVal"].to_numpy()
    rows = np.concatenate([test for _, test in cut_rows(len(y))[:2]])
    assert evidence.residuals.n_rows == len(rows)
    said = record.pool("random forest").predicted
    assert evidence.residuals.rmse == pytest.approx(np.sqrt(np.mean((said - y[rows]) ** 2)))
    first = len(rows) // 2
    assert curve.scores[0][-1] == pytest.approx(r2_score(y[rows[:first]], said[:first]))
    assert {one.feature for one in evidence.dependences} <= set(table.column_names)
    assert Evidence.from_json(evidence.to_json()) == evidence
    names: dict = {}
    exec(evidence.recipe.replace("figure = draw_figure()", ""), names)
    assert names["model"].n_estimators == 10


@compiled_only
def test_a_rehearsal_makes_every_part_that_calls_kernels():
    evidence = rehearse_figure()
    assert [name for name, _ in evidence.left_out] == ["residuals", "learning_curves"]
    assert evidence.tree is not None
    assert evidence.importances
    assert evidence.dependences
    assert evidence.coverages


def test_a_figure_without_folds_has_no_best():
    figure = Figure("t", "", 5, (5,), (Curve("a", (), ()), Curve("b", ((0.5,),), ((1.0,),))), 1, {}, 1.0)
    assert find_best_ensemble(figure) == "b"
    assert list_learning_curves(figure) == ()
    with pytest.raises(ValueError, match="nothing to examine"):
        find_best_ensemble(Figure("t", "", 5, (5,), figure.curves[:1], 1, {}, 1.0))


@compiled_only
@pytest.mark.parametrize("key", ["forest", "boosting", "cart"])
def test_reasons_add_up_to_the_answers(key):
    data, record = make_data(), FoldRecord()
    study = compare(data, methods=[key], n_splits=2, n_repeats=1, record=record)
    reasons = examine(study, data, record).reasons
    model = known_methods(data.summary.task)[key].make(study.seed).fit(data.X, data.y)
    rows = [row - 1 for row in reasons.rows]
    sums = [reasons.base + sum(row) + rest for row, rest in zip(reasons.values, reasons.others, strict=True)]
    at = list(map(str, model.classes_)).index(reasons.label)
    probability = model.predict_proba(data.X.take(rows))[:, at]
    if key == "boosting":
        probability = np.log(probability / (1.0 - probability))
    np.testing.assert_allclose(sums, probability, rtol=1e-6, atol=1e-9)
    answers = [sums[place] for place in reasons.chosen]
    assert answers == sorted(answers, reverse=True)
    assert (answers[0], answers[-1]) == (max(sums), min(sums))


def test_reasons_are_those_of_the_class_that_is_asked_for_also_where_classes_are_numbers():
    y = np.array([3, 5, 5, 9] * 5)
    data = prepare(pa.table({"x": np.arange(20.0) % 4, "y": y}), "y", task="classification")
    model = CARTClassifier().fit(data.X, data.y)
    label = choose_output(model, data)[1]
    assert label == "5"
    assert explain_answers(model, data, label=label).label == "5"
    assert explain_answers(model, data).label == "9"
