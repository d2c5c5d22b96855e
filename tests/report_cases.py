"""Studies and evidence made by hand, for pages of every kind."""

from dataclasses import replace

from spinney.study.evidence import (
    Calibration,
    Confusion,
    Coverage,
    Dependence,
    Evidence,
    Importance,
    LearningCurve,
    PruningStep,
    Reasons,
    Residuals,
    Separation,
    TreeNode,
    TreeView,
)
from spinney.study.result import Column, Curve, Difference, Figure, MethodResult, Study, TableSummary

EVIL = "</script><b>\"'><img src=x onerror=alert(1)>"


def make_study(name="fruit.csv", target="kind", column="weight", *, is_classes=True):
    """Three methods and the baseline on four folds, one of which failed."""
    summary = TableSummary(
        name=name,
        n_rows=120,
        target=target,
        task="classification" if is_classes else "regression",
        classes=(("apple", 70), ("plum", 50)) if is_classes else (),
        columns=(
            Column(column, "number", 6, 100, 40.5, 100.0, 160.25, suspicion="nearly a copy of the target"),
            Column("colour", "category", 0, 2, top=(("red", 70), ("green", 50))),
            Column("row", "number", 0, 120, 1.0, 60.5, 120.0),
        ),
        dropped={"row": "it numbers the rows"},
    )
    folds = (0, 1, 2, 3)
    times = {"fit_seconds": (0.5, 0.25, 0.25, 0.5), "predict_seconds": (0.01,) * 4, "model_bytes": 2500.0}
    methods = (
        MethodResult("baseline", "commonest class", "DummyClassifier", {}, folds, (0.5, 0.6, 0.5, 0.6), **times),
        MethodResult(
            "cart", "pruned CART", "CARTClassifier", {"ccp_alpha": "cv"}, folds, (0.7, 0.8, 0.7, 0.8), **times
        ),
        MethodResult("forest", "random forest", "RandomForestClassifier", {}, folds, (0.8, 0.9, 0.9, 0.8), **times),
        MethodResult("id3", "ID3", "ID3Classifier", {}, error="it fell over a branch"),
    )
    return Study(
        summary=summary,
        metric="accuracy" if is_classes else "r2",
        is_greater_better=True,
        folds="4 folds stratified by class",
        n_folds=4,
        train_rows=90.0,
        test_rows=30.0,
        methods=methods,
        best="forest",
        differences=(
            Difference("baseline", 0.3, 0.02, 0.001, 0.002, 4),
            Difference("cart", 0.1, 0.06, 0.2, 0.2, 4),
        ),
        recommendation="Random forest is best (accuracy 0.850 ± 0.044).",
        notes=(f"column {column!r}: nearly a copy of the target", "ID3 failed: it fell over a branch"),
        seed=7,
        is_tuned=False,
        n_cores=2,
        versions={"spinney": "1.0", "python": "3.11"},
        seconds=12.0,
    )


def make_tree(test="weight", *, is_classes=True):
    """Three leaves: the root asks for `test`, its right child for the colour; cut from below."""

    def node(parent, branch, asks, answer, counts, cut):
        n_rows = float(sum(counts))
        return TreeNode(
            parent, branch, asks, answer, n_rows, counts if is_classes else None, None if is_classes else counts[0], cut
        )

    return TreeView(
        name="CART",
        classes=("apple", "plum") if is_classes else (),
        target="kind",
        nodes=(
            node(-1, "", test, "apple", (70.0, 50.0), 2),
            node(0, "≤ 105", None, "plum", (10.0, 40.0), 0),
            node(0, "> 105", "colour", "apple", (60.0, 10.0), 1),
            node(2, "= green", None, "apple", (55.0, 2.0), 0),
            node(2, "= red", None, "plum", (5.0, 8.0), 0),
        ),
        steps=(
            PruningStep(0.0, 3, 0.125, 0.25, 0.02),
            PruningStep(0.01, 2, 0.2, 0.21, 0.03),
            PruningStep(0.2, 1, 0.42, 0.42, 0.04),
        ),
        chosen=1,
        one_error=1,
        measure="error rate" if is_classes else "mean squared error",
        trace_columns=("test", "rows", "gain"),
        trace_rows=((f"{test} <= 105", "50 | 70", "0.2"), ("colour = red", "70 | 50", "0.1")),
        trace_words=f"120 rows. {test} <= 105: it has the highest gain.",
    )


def make_evidence(name="weight", *, is_classes=True):
    """Every part that a task has."""
    whole = Evidence(
        key="forest",
        name="random forest",
        recipe="import spinney\nprint('<b>')",
        learning_curves=(LearningCurve("forest", "random forest", (1, 10), (0.6, 0.8), (0.02, 0.02), (0.1, 0.2)),),
        coverages=(Coverage("forest", (0.5, 0.9), (0.55, 0.88), (0.5, 0.85), (0.6, 0.91), (1.0, 1.5), 120),),
        importances=(Importance(name, 0.6, 0.1, 0.2, 0.03), Importance("colour", 0.4, None, 0.1, None)),
        dependences=(
            Dependence(name, True, (50.0, 100.0, 150.0), (0.2, 0.5, 0.8), ((0.1, 0.4, 0.9),), (30, 60, 30),
                       "apple" if is_classes else None),
            Dependence("colour", False, ("red", "green"), (0.4, 0.6), ((0.3, 0.7),), (70, 50),
                       "apple" if is_classes else None),
        ),
        reasons=Reasons("apple" if is_classes else None, 0.5, (name, "colour"), ((0.2, -0.1), (-0.3, 0.0), (0.1, 0.05)),
                        ((105.0, "red"), (90.0, None), (None, "green")), (0.01, 0.0, -0.02), 3, (4, 17, 30), (0, 2, 1)),
        tree=make_tree(name, is_classes=is_classes),
    )  # fmt: skip
    if is_classes:
        curve = ((0.0, 0.0), (0.2, 0.7), (1.0, 1.0))
        return replace(
            whole,
            separations=(Separation("apple", 70, 120, curve, 0.75, ((0.0, 1.0), (1.0, 0.6)), 0.8),),
            calibrations=(Calibration("apple", (0.2, 0.8), (0.25, 0.7), (0.2, 0.6), (0.3, 0.8), (60, 60), 0.15),),
            confusion=Confusion(("apple", "plum"), ((60, 10), (8, 42))),
        )
    return replace(
        whole, residuals=Residuals((1.0, 2.0, 3.0), (1.5, 2.0, 2.5), (-1.0, 0.0, 1.0), (1, 2), 0.4, 0.33, 120)
    )


def make_figure():
    """Two ensembles at two numbers of trees on three folds."""
    return Figure(
        table="california_housing",
        folds="5 shuffled folds",
        n_folds=3,
        trees=(50, 100),
        curves=(
            Curve("random forest", ((0.8, 0.81), (0.79, 0.8), (0.8, 0.82)), ((1.0, 2.0),) * 3),
            Curve("weak boosting", ((0.6, 0.7), (0.61, 0.71), (0.6, 0.69)), ((0.5, 1.0),) * 3),
        ),
        n_cores=2,
        versions={"spinney": "1.0"},
        seconds=30.0,
    )
