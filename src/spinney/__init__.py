"""Spinney: every tree method, each faithful to its source, all on one kind of tree.

Public names load when first used: `import spinney` itself imports the standard library only.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from spinney import datasets
    from spinney._versions import show_versions
    from spinney._warmup import warmup
    from spinney.estimators.bagging import BaggingClassifier, BaggingRegressor
    from spinney.estimators.cart import CARTClassifier, CARTRegressor
    from spinney.estimators.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
    from spinney.estimators.importances import OOBSelector
    from spinney.estimators.random_forest import RandomForestClassifier, RandomForestRegressor
    from spinney.model.voters import decompose_error, decompose_variance, strength_and_correlation, vote_error
    from spinney.table.ingest import read_table

_HOMES = {
    "BaggingClassifier": "spinney.estimators.bagging",
    "BaggingRegressor": "spinney.estimators.bagging",
    "CARTClassifier": "spinney.estimators.cart",
    "CARTRegressor": "spinney.estimators.cart",
    "ExtraTreesClassifier": "spinney.estimators.extra_trees",
    "ExtraTreesRegressor": "spinney.estimators.extra_trees",
    "OOBSelector": "spinney.estimators.importances",
    "RandomForestClassifier": "spinney.estimators.random_forest",
    "RandomForestRegressor": "spinney.estimators.random_forest",
    "datasets": "",  # a package of its own
    "decompose_error": "spinney.model.voters",
    "decompose_variance": "spinney.model.voters",
    "read_table": "spinney.table.ingest",
    "show_versions": "spinney._versions",
    "strength_and_correlation": "spinney.model.voters",
    "vote_error": "spinney.model.voters",
    "warmup": "spinney._warmup",
}

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "CARTClassifier",
    "CARTRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "OOBSelector",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "__version__",
    "datasets",
    "decompose_error",
    "decompose_variance",
    "read_table",
    "show_versions",
    "strength_and_correlation",
    "vote_error",
    "warmup",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'spinney' has no attribute {name!r}; public names: {', '.join(__all__)}")
    home = _HOMES[name]
    value = getattr(import_module(home), name) if home else import_module(f"spinney.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
