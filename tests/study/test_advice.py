"""What a study says: never more than its folds show."""

import numpy as np
import pytest

from spinney.study.advice import BUDGET, join, note_problems, recommend
from spinney.study.metrics import METRICS
from spinney.study.result import Column, TableSummary
from spinney.study.significance import find_best, find_differences
from study_results import result


def advise(results, one_tree=frozenset()):
    best = find_best(results, 0.25, is_greater_better=True)
    differences = find_differences(results, best, 0.25, is_greater_better=True)
    return recommend(results, best, differences, METRICS["accuracy"], 0.25, one_tree=one_tree)


def test_what_is_recommended():
    rng = np.random.default_rng(0)
    top = 0.9 + 0.01 * rng.normal(size=5)
    base = result("baseline", [0.5, 0.51, 0.5, 0.49, 0.5], seconds=0.01)
    forest, near = result("forest", top, seconds=3.0), result("near", top - 0.005 + 0.01 * rng.normal(size=5))
    tree = result("tree", top - 0.005 + 0.01 * rng.normal(size=5), n_leaves=7.0)
    far = result("far", top - 0.2)
    alone = advise([base, forest, far])
    assert alone.startswith("Forest is best (accuracy 0.9")
    assert alone.endswith("significantly better than every other method.")
    equal = advise([base, forest, near, far])
    assert (
        "(1% of the way from the baseline to the best) and not significantly by these 5 folds, and near is 3" in equal
    )
    assert "tree is a single tree, of 7 leaves, that can be read" in advise([base, forest, tree, far], {"tree"})
    assert "No method beats the baseline" in advise([result("baseline", top), far])
    assert "do not separate it from the baseline" in advise(
        [result("baseline", top - 0.001 * rng.normal(size=5) ** 2), forest]
    )
    assert "on one fold only" in advise([result("baseline", [0.5]), result("a", [0.9])])
    assert "on one fold only" in advise([result("baseline", [0.5] * 5), result("a", [0.9])])
    broken = result("broken", [], error="no")
    assert "significantly better than every other method that was scored." in advise([base, forest, far, broken])
    assert "No method finished a fold but the baseline" in advise([base, broken])
    assert "nothing to recommend" in recommend([], None, [], METRICS["accuracy"], 0.25, one_tree=set())


def test_notes():
    columns = (Column("x", "number", 0, 5, suspicion="odd"), Column("id", "number", 0, 9))
    summary = TableSummary("t", 100, "y", "classification", (("a", 95), ("b", 5)), columns, {"id": "it counts"})
    failed, cut = result("f", [], error="boom"), result("c", [0.9], left_out="the budget was spent")
    notes = note_problems(summary, METRICS["accuracy"], [failed, cut], 5)
    assert notes == (
        "column 'id' was left out: it counts",
        "column 'x': odd",
        "95.0% of the rows are of one class: look at balanced_accuracy or roc_auc too",
        "f failed: boom",
        "c: 1 of 5 folds, the budget was spent",
    )


# --- Advice that was wrong ----------------------------------------------------------------------------------------

BASE = [0.0, 0.001, -0.001, 0.0, 0.0]
TOP = [0.88, 0.89, 0.885, 0.887, 0.888]


def test_a_method_below_the_baseline_is_no_rival_however_it_varies():
    wild = result("AdaBoost", [-2.5, 0.4, 0.3, -1.8, 0.4])  # not significantly worse: its folds vary too much
    said = advise([result("baseline", BASE), result("boosting", TOP), wild])
    (_, gap) = find_differences(
        [result("baseline", BASE), result("boosting", TOP), wild], "boosting", 0.25, is_greater_better=True
    )
    assert gap.p_adjusted > 0.05
    assert "AdaBoost" not in said
    assert said.endswith(", and significantly better than every other method that beats the baseline.")
    summary = TableSummary("t", 100, "y", "regression", (), (), {})
    (note,) = note_problems(summary, METRICS["r2"], [result("baseline", BASE), result("boosting", TOP), wild], 5)
    assert note == "AdaBoost is worse than the baseline (R² -0.640): do not use it here"


def test_as_good_means_in_size_too():
    near = result("near", [0.881, 0.889, 0.884, 0.888, 0.887])
    apart = result("apart", [0.90, 0.84, 0.87, 0.91, 0.80])
    said = advise([result("baseline", BASE), result("top", TOP), near, apart])
    assert "near does as well, less than 0.0089 apart (1% of the way from the baseline to the best)" in said
    assert "apart (0.022 behind) is not significantly worse by these 5 folds" in said


def test_a_method_far_behind_is_no_choice_however_it_varies():
    wild = result("linear", [0.9, 0.88, -0.75, 0.86, 0.89], n_leaves=5.0)  # 0.33 behind on average, by one fold
    said = advise([result("baseline", BASE), result("top", TOP), wild], {"linear"})
    assert said.endswith("than every other method but linear (0.330 behind), too uneven by these 5 folds to be sure.")
    near = result("near", [0.881, 0.889, 0.884, 0.888, 0.887])
    said = advise([result("baseline", BASE), result("top", TOP), near, wild], {"linear"})
    assert said.endswith("not significantly by these 5 folds; linear (0.330 behind) is too uneven to be sure.")


@pytest.mark.parametrize(("n_leaves", "is_read"), [(50.0, True), (51.0, False), (4021.0, False)])
def test_trees_to_read_are_small(n_leaves, is_read):
    tree = result("tree", [one + 1e-4 for one in reversed(TOP)], n_leaves=n_leaves)
    forest = result("forest", [one + 2e-4 for one in TOP], n_leaves=9000.0)
    said = advise([result("baseline", BASE), forest, tree], {"tree"})
    assert ("that can be read" in said) == is_read


@pytest.mark.parametrize(
    ("long", "brief", "words"),
    [
        (0.09, 0.001, None),  # nobody waits for either
        (3.0, 0.004, "near takes less than 0.1 s to fit instead of 3.0 s"),
        (3.0, 0.5, "near is 6 times faster to fit"),
        (0.9, 0.55, "near is 1.6 times faster to fit"),
        (0.12, 0.05, None),
    ],
)
def test_speed_is_told_where_it_is_noticed(long, brief, words):
    near = result("near", list(reversed(TOP)), seconds=brief)
    forest = result("forest", [one + 2e-4 for one in TOP], seconds=long)
    said = advise([result("baseline", BASE), forest, near])
    assert ("to fit" in said) == (words is not None)
    assert words is None or words in said


def test_what_the_time_did_not_allow_is_told_and_not_judged():
    one = result("late", [0.95], left_out=BUDGET)
    said = advise([result("baseline", BASE), result("top", TOP), one])
    assert "late is" not in said
    assert "every other method that was scored." in said
    assert said.endswith(" Time was short: late did not finish every fold.")
    stopped = result("late", [0.95], left_out="it was interrupted")
    assert "interrupted: late did" in advise([result("baseline", BASE), result("top", TOP), stopped])


def test_a_list_of_names_can_be_read():
    from spinney.study.methods import all_methods

    names = [one.name for task in ("classification", "regression") for one in all_methods(task)]
    assert not any("," in name for name in names)
    assert join(["a", "b", "c"]) == "a, b and c"


def test_what_is_significant_and_does_not_matter_is_told():
    close = result("close", [one - 0.002 for one in TOP], n_leaves=9.0)
    said = advise([result("baseline", BASE), result("top", TOP), close], {"close"})
    assert "every other method; close is less than 0.0089 behind, which hardly matters" in said
    assert said.endswith(", and close is a single tree, of 9 leaves, that can be read.")


def test_leaks_are_part_of_the_advice():
    results = [result("baseline", BASE), result("top", TOP)]
    differences = find_differences(results, "top", 0.25, is_greater_better=True)
    said = recommend(results, "top", differences, METRICS["r2"], 0.25, one_tree=set(), leaks=["a", "b"])
    assert said.endswith(" But first look at 'a' and 'b', which give the answer away.")


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05])
def test_what_is_called_significant_is_true_nineteen_times_in_twenty(spread):
    """Scores of five folds of methods whose true means are known; folds share training rows, so scores go together."""
    rng = np.random.default_rng(11)
    n_studies, n_wrong, n_sure = 200, 0, 0
    for _ in range(n_studies):
        truth = 0.7 + spread * rng.normal(size=5)
        common = 0.01 * rng.normal(size=5)  # what the training rows that all folds share do to each method
        folds = 0.02 * rng.normal(size=(5, 1)) + 0.02 * rng.normal(size=(5, 5))
        scores = truth + common + folds
        results = [result(f"m{k}", scores[:, k]) for k in range(5)]
        said = advise([result("baseline", np.full(5, 0.3)), *results])
        top = int(said.split(" is best")[0].removeprefix("M"))
        if "significantly better than every other method" in said:
            n_sure += 1
            n_wrong += truth[top] < truth.max() or (truth == truth.max()).sum() > 1
        named = {k for k in range(5) if k != top and f"m{k}" in said}
        gaps = scores[:, top].mean() - scores.mean(axis=0)
        assert all(f"m{k} ({gaps[k]:.3f} behind)" in said or gaps[k] <= 0.01 * 0.5 for k in named)
    assert n_wrong <= 0.05 * n_studies
    assert spread < 0.05 or n_sure > 0.05 * n_studies  # it does find differences where they are large
