"""The parts of a boosted model: made again from the attributes of a file, joined in a warm start, called back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._warnings import warn
from spinney.estimators.training import make_legend
from spinney.estimators.warm_starts import find_other_classes, find_other_columns
from spinney.model.boosted_scores import add_rounds
from spinney.model.container import BrokenFileError
from spinney.model.fitted_boosting import BaseModel, FittedBoosting, OutOfBagScores, Scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.oob_stopping import OutOfBagCurve
    from spinney.table.schema import Schema
    from spinney.tree.forest import Forest


def make_fitted_boosting(values: dict[str, Any]) -> FittedBoosting:
    """A model from its fitted attributes, by the names that files have."""
    scores = {
        name: None if values.get(name) is None else Scores(values[name])
        for name in ("train_score_", "validation_score_")
    }
    return FittedBoosting(
        schema=values["_schema"],
        classes=values.get("classes_"),
        forest=values["forest_"],
        loss=values["_loss"],
        start=values["_start"],
        exponent=values.get("_exponent", 0),
        best_round=values["best_iteration_"],
        seed=values["_seed"],
        max_features=values["max_features_"],
        chosen=values.get("chosen_params_"),
        class_factors=values.get("_class_factors"),
        hashes=values["_marks"],
        curves=values["evals_result_"],
        train=scores["train_score_"],
        validation=scores["validation_score_"],
        out_of_bag=restore_curves(values),
        base=BaseModel(values["init_estimator_"]) if "init_estimator_" in values else None,
    )


def restore_curves(values: dict[str, Any]) -> OutOfBagScores | None:
    """The out-of-bag curves of a file, if it has them; they come together."""
    names = ("oob_improvement_", "oob_scores_")
    found = [values[name] for name in names if values.get(name) is not None]
    if len(found) == 1:
        raise BrokenFileError(f"{' and '.join(names)} come together")
    return OutOfBagScores(*found) if found else None


def join_curves(old: FittedBoosting | None, new: OutOfBagCurve | None, n_rounds: int) -> OutOfBagScores | None:
    """The out-of-bag curves of all rounds, NaN for those that were not measured; None: none was."""
    before = None if old is None else old.out_of_bag
    if before is None and new is None:
        return None
    curves = []
    for name in ("improvement", "scores"):
        curve = np.full(n_rounds, np.nan)
        if before is not None:
            curve[: len(before.scores)] = getattr(before, name)
        if new is not None:
            measured = new.improvement if name == "improvement" else new.score
            curve[n_rounds - len(measured) :] = measured
        curves.append(curve)
    return OutOfBagScores(*curves)


def rename_features(forest: Forest, schema: Schema) -> Forest:
    """The trees of the rounds there are, by the names that the columns of a fit have; a table without may get some."""
    legend = forest.legend
    if legend is None or legend.features == schema.names:
        return forest
    return replace(forest, legend=make_legend(schema, None, np.array(legend.has_missing)))


def find_difference(
    old: FittedBoosting, hashes: dict[str, str], schema: Schema, labels: tuple[Any, ...] | None
) -> str | None:
    """Why the rounds of an old model cannot go on with the data of a fit; None: they can.

    Rows, targets and weights may be others.
    """
    before = None if old.classes is None else tuple(old.classes.tolist())
    difference = find_other_columns(schema, old.schema) or find_other_classes(labels, before)
    if difference is not None:
        return difference
    now, then = hashes["loss"], old.hashes["loss"]
    return None if now == then else f"loss differs: it is {now:.60}, and was {then:.60}"


def check_rounds(
    n_estimators: Any,
    old: FittedBoosting,
    hashes: dict[str, str],
    schema: Schema,
    labels: tuple[Any, ...] | None,
) -> FittedBoosting:
    """The model that a warm start adds rounds to; refused where it cannot go on with the data of a fit."""
    if n_estimators == "auto":
        raise ValueError(
            "warm_start adds rounds up to n_estimators, which is 'auto': give a number, larger than the "
            f"{old.n_rounds} rounds there are"
        )
    difference = find_difference(old, hashes, schema, labels)
    if difference is not None:
        raise ValueError(
            f"warm_start adds rounds to a model, so fit needs columns, classes and a loss like those of the first "
            f"fit; {difference}. Set warm_start=False to begin anew."
        )
    if n_estimators < old.n_rounds:
        raise ValueError(
            f"n_estimators={n_estimators} must be larger or equal to the {old.n_rounds} rounds there "
            "are when warm_start==True"
        )
    if n_estimators == old.n_rounds:
        warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
    return old


def add_rounds_of(forest: Forest) -> Any:
    """A function of (rounds, values, raw) that adds rounds of a forest to the scores of all rows."""
    return lambda rounds, values, raw: add_rounds(forest, rounds, values, 0, len(values), raw)


def check_callbacks(callbacks: Any) -> list[Any]:
    """Functions of (iteration, results)."""
    found = [callbacks] if callable(callbacks) else list(callbacks or ())
    for callback in found:
        if not callable(callback):
            raise TypeError(f"callbacks must be functions of (iteration, results), got {callback!r}")
    return found


def compare_outputs(y: NDArray[np.float64], learnt: NDArray[np.float64]) -> None:
    """Refuse a target of rows to evaluate on that has other outputs than that of the rows to learn from."""
    n, n_learnt = (1 if target.ndim == 1 else target.shape[1] for target in (y, learnt))
    if n != n_learnt:
        raise ValueError(f"y has {n} columns here, and {n_learnt} in the rows to learn from: give the same outputs")


def refuse_vectors(estimator: Any) -> None:
    """Refuse what trees whose leaves hold several numbers do not have."""
    gaps = {
        "candidates='hessian', whose cuts are those of one score": estimator.candidates == "hessian",
        "drop_rate": bool(estimator.drop_rate),
        "monotonic_cst: vectors have no order": estimator.monotonic_cst is not None,
    }
    for what, is_asked in gaps.items():
        if is_asked:
            raise ValueError(
                f"one tree a round for all classes or outputs does without {what}. Leave it out, or grow a tree for "
                "each: multi_strategy='one_tree_per_class', or a model for each column of y"
            )


def refuse_clashes(estimator: Any) -> None:
    """Refuse parameters of boosting that exclude each other."""
    if estimator.candidates == "hessian" and not estimator.newton:
        raise ValueError(
            "candidates='hessian' places cuts by second derivatives, which newton=False does without: use one"
        )
    if estimator.candidates == "hessian" and estimator.max_bins is None:
        raise ValueError("candidates='hessian' chooses cuts among values, max_bins=None tries every one: use one")
    has_steps = estimator.newton and estimator.loss not in ("absolute_error", "quantile", "huber")
    if estimator.sampling == "gradient" and not has_steps:
        raise ValueError(
            "sampling='gradient' multiplies derivatives, which the leaves of newton=False and of the losses "
            "'absolute_error', 'quantile' and 'huber' are not made of: use sampling='uniform'"
        )
    if estimator.sampling == "gradient" and estimator.leaf_rows == "all":
        raise ValueError(
            "leaf_rows='all' takes every row for itself, and sampling='gradient' has drawn rows stand for others: use "
            "leaf_rows='bag'"
        )
    if estimator.drop_rate:
        for name in ("n_iter_no_change", "warm_start", "checkpoint"):
            if getattr(estimator, name):
                raise ValueError(
                    f"drop_rate changes trees of rounds before, and {name} needs them as they were: use one of the two"
                )
