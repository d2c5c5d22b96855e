"""The methods of a study: each of the library at its usual settings, and a baseline that uses no column."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Method:
    """One method for one task.

    `parameters` are given to the class `estimator` (a public name of the library, or of `sklearn.dummy`), with the seed
    and all cores where the class takes them. `grid` is what `--tune` tries, `warmup` what makes a first fit short that
    loads the same kernels. `is_one_tree`: the model is a tree. `members`: of a stack, the classes that are stacked, by
    name. Names have no comma, so that lists of them can be read.
    """

    key: str
    name: str
    estimator: str
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    warmup: dict[str, Any] = field(default_factory=dict)
    is_one_tree: bool = False
    members: dict[str, str] = field(default_factory=dict)

    @property
    def is_baseline(self) -> bool:
        """Whether this is no method but what one must beat."""
        return self.key == "baseline"

    @property
    def is_ensemble(self) -> bool:
        """Whether the model is of many trees."""
        return not self.is_one_tree and not self.is_baseline

    def make(self, seed: int) -> Any:
        """An estimator, unfitted."""
        if self.is_baseline:
            from sklearn import dummy

            return getattr(dummy, self.estimator)(**self.parameters)
        import spinney

        stacked = [(name, getattr(spinney, member)()) for name, member in self.members.items()]
        given = {"estimators": stacked, **self.parameters} if stacked else self.parameters
        estimator = getattr(spinney, self.estimator)(**given)
        known = estimator.get_params(deep=False)
        return estimator.set_params(
            **({"random_state": seed} if "random_state" in known else {}),
            **({"n_jobs": -1} if "n_jobs" in known else {}),
        )


_FEW = {"n_estimators": 2}  # trees of a first fit: the kernels are those of a hundred
_LEAVES: dict[str, list[Any]] = {"min_samples_leaf": [1, 5, 20]}
_FOREST: dict[str, list[Any]] = {"max_features": ["sqrt", 0.5, 1.0], "min_samples_leaf": [1, 3]}
_BOOSTING: dict[str, list[Any]] = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [8, 31], "n_estimators": [100, 300]}
_ADABOOST: dict[str, list[Any]] = {"n_estimators": [50, 200], "learning_rate": [0.3, 1.0]}
# Breiman's way to a single tree: grow it out, then prune to the size that cross-validation in the training rows finds.
_CART: dict[str, Any] = {"ccp_alpha": "cv"}
_BAGGING: dict[str, Any] = {"n_estimators": 50}
# What is stacked: three kinds of ensembles that err in different rows; the second stage is linear.
_STACKED = {"forest": "RandomForest", "extra_trees": "ExtraTrees", "boosting": "GradientBoosting"}


def all_methods(task: str) -> tuple[Method, ...]:
    """Every method that a study compares by default, for "classification" or "regression", single trees first."""
    if task == "classification":
        return (
            Method("baseline", "commonest class", "DummyClassifier", {"strategy": "prior"}),
            Method("id3", "ID3", "ID3Classifier", grid=_LEAVES, is_one_tree=True),
            Method(
                "c45", "C4.5", "C45Classifier", grid={"confidence": [0.05, 0.25], "min_samples_leaf": [2, 10]},
                is_one_tree=True,
            ),
            Method("cart", "pruned CART", "CARTClassifier", _CART, _LEAVES, is_one_tree=True),
            Method("bagging", "bagging", "BaggingClassifier", _BAGGING, {"max_samples": [0.5, 1.0]}, _FEW),
            Method("forest", "random forest", "RandomForestClassifier", {}, _FOREST, _FEW),
            Method("extra-trees", "extra-trees", "ExtraTreesClassifier", {}, _FOREST, _FEW),
            Method("adaboost", "AdaBoost", "AdaBoostClassifier", {}, _ADABOOST, _FEW),
            Method("boosting", "gradient boosting", "GradientBoostingClassifier", {}, _BOOSTING, _FEW),
        )  # fmt: skip
    return (
        Method("baseline", "mean", "DummyRegressor"),
        Method("id3", "ID3", "ID3Regressor", grid=_LEAVES, is_one_tree=True),
        Method("cart", "pruned CART", "CARTRegressor", _CART, _LEAVES, is_one_tree=True),
        Method(
            "linear", "CART with linear leaves", "CARTRegressor", {"leaf_model": "linear", "min_samples_leaf": 20},
            {"min_samples_leaf": [10, 20, 50]}, is_one_tree=True,
        ),
        Method("bagging", "bagging", "BaggingRegressor", _BAGGING, {"max_samples": [0.5, 1.0]}, _FEW),
        Method("forest", "random forest", "RandomForestRegressor", {}, _FOREST, _FEW),
        Method("extra-trees", "extra-trees", "ExtraTreesRegressor", {}, _FOREST, _FEW),
        Method("adaboost", "AdaBoost", "AdaBoostRegressor", {}, _ADABOOST, _FEW),
        Method("boosting", "gradient boosting", "GradientBoostingRegressor", {}, _BOOSTING, _FEW),
    )  # fmt: skip


def more_methods(task: str) -> tuple[Method, ...]:
    """Methods that take part only where they are named: they cost several times as much as the others."""
    kind = "Classifier" if task == "classification" else "Regressor"
    members = {name: f"{stem}{kind}" for name, stem in _STACKED.items()}
    few = {f"{name}__n_estimators": 2 for name in members}
    return (Method("stacking", "stacking", f"Stacking{kind}", warmup=few, members=members),)


def known_methods(task: str) -> dict[str, Method]:
    """Every method that can be named, by its key."""
    return {method.key: method for method in (*all_methods(task), *more_methods(task))}


def choose_methods(task: str, keys: list[str] | None = None) -> tuple[Method, ...]:
    """The methods of these keys, and the baseline always; without keys those of `all_methods`."""
    if keys is None:
        return all_methods(task)
    methods = known_methods(task).values()
    known = [method.key for method in methods]
    for key in keys:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"no method {key!r} for {task}{hint} Methods: {', '.join(known)}")
    if not set(keys) - {"baseline"}:
        raise ValueError(f"methods: name at least one of {', '.join(known[1:])}")
    return tuple(method for method in methods if method.key in {*keys, "baseline"})
