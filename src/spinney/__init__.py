"""Spinney: every tree method, each faithful to its source, all on one kind of tree.

Public names load when first used: `import spinney` itself imports the standard library only.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from spinney import datasets, plot, study
    from spinney._versions import show_versions
    from spinney._warmup import warmup
    from spinney.estimators.adaboost import AdaBoostClassifier, AdaBoostRegressor
    from spinney.estimators.bagging import BaggingClassifier, BaggingRegressor
    from spinney.estimators.c45 import C45Classifier
    from spinney.estimators.cart import CARTClassifier, CARTRegressor
    from spinney.estimators.cluster_fits import plan_fit
    from spinney.estimators.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
    from spinney.estimators.forest_survival import RandomForestSurvival
    from spinney.estimators.gradient_boosting import GradientBoostingClassifier, GradientBoostingRegressor
    from spinney.estimators.id3 import ID3Classifier, ID3Regressor
    from spinney.estimators.oob_selector import OOBSelector
    from spinney.estimators.random_forest import RandomForestClassifier, RandomForestRegressor
    from spinney.estimators.ranker import GradientBoostingRanker
    from spinney.estimators.saving import load_model
    from spinney.estimators.stacking import StackingClassifier, StackingRegressor
    from spinney.estimators.survival import GradientBoostingSurvival
    from spinney.estimators.trace import trace
    from spinney.model.adaboost_bounds import rounds_to_fit, training_bound
    from spinney.model.base_predictor import Predictor
    from spinney.model.container import BrokenFileError
    from spinney.model.dependence import dependence
    from spinney.model.ensemble_theory import decompose_error, decompose_variance, strength_and_correlation, vote_error
    from spinney.model.export.exporting import export
    from spinney.model.imports.catboost_model import from_catboost
    from spinney.model.imports.lightgbm_model import from_lightgbm
    from spinney.model.imports.sklearn_model import from_sklearn
    from spinney.model.imports.xgboost_model import from_xgboost
    from spinney.model.io import load_predictor, save_predictor
    from spinney.model.row_explanation import explain
    from spinney.model.shap import shap_values
    from spinney.model.shap_trees import to_shap_trees
    from spinney.scale.scan import scan
    from spinney.table.binning import equal_density_bins
    from spinney.table.ingest import read_table

_HOMES = {
    "AdaBoostClassifier": "spinney.estimators.adaboost",
    "AdaBoostRegressor": "spinney.estimators.adaboost",
    "BaggingClassifier": "spinney.estimators.bagging",
    "BaggingRegressor": "spinney.estimators.bagging",
    "BrokenFileError": "spinney.model.container",
    "C45Classifier": "spinney.estimators.c45",
    "CARTClassifier": "spinney.estimators.cart",
    "CARTRegressor": "spinney.estimators.cart",
    "ExtraTreesClassifier": "spinney.estimators.extra_trees",
    "ExtraTreesRegressor": "spinney.estimators.extra_trees",
    "GradientBoostingClassifier": "spinney.estimators.gradient_boosting",
    "GradientBoostingRanker": "spinney.estimators.ranker",
    "GradientBoostingRegressor": "spinney.estimators.gradient_boosting",
    "GradientBoostingSurvival": "spinney.estimators.survival",
    "RandomForestSurvival": "spinney.estimators.forest_survival",
    "ID3Classifier": "spinney.estimators.id3",
    "ID3Regressor": "spinney.estimators.id3",
    "OOBSelector": "spinney.estimators.oob_selector",
    "Predictor": "spinney.model.base_predictor",
    "RandomForestClassifier": "spinney.estimators.random_forest",
    "RandomForestRegressor": "spinney.estimators.random_forest",
    "StackingClassifier": "spinney.estimators.stacking",
    "StackingRegressor": "spinney.estimators.stacking",
    "datasets": "",  # a package of its own
    "decompose_error": "spinney.model.ensemble_theory",
    "decompose_variance": "spinney.model.ensemble_theory",
    "dependence": "spinney.model.dependence",
    "equal_density_bins": "spinney.table.binning",
    "explain": "spinney.model.row_explanation",
    "export": "spinney.model.export.exporting",
    "from_catboost": "spinney.model.imports.catboost_model",
    "from_lightgbm": "spinney.model.imports.lightgbm_model",
    "from_sklearn": "spinney.model.imports.sklearn_model",
    "from_xgboost": "spinney.model.imports.xgboost_model",
    "load_model": "spinney.estimators.saving",
    "load_predictor": "spinney.model.io",
    "plan_fit": "spinney.estimators.cluster_fits",
    "plot": "",  # a module of its own
    "read_table": "spinney.table.ingest",
    "rounds_to_fit": "spinney.model.adaboost_bounds",
    "save_predictor": "spinney.model.io",
    "shap_values": "spinney.model.shap",
    "scan": "spinney.scale.scan",
    "show_versions": "spinney._versions",
    "strength_and_correlation": "spinney.model.ensemble_theory",
    "study": "",  # a package of its own
    "to_shap_trees": "spinney.model.shap_trees",
    "trace": "spinney.estimators.trace",
    "training_bound": "spinney.model.adaboost_bounds",
    "vote_error": "spinney.model.ensemble_theory",
    "warmup": "spinney._warmup",
}

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "BrokenFileError",
    "C45Classifier",
    "CARTClassifier",
    "CARTRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "GradientBoostingSurvival",
    "ID3Classifier",
    "ID3Regressor",
    "OOBSelector",
    "Predictor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomForestSurvival",
    "StackingClassifier",
    "StackingRegressor",
    "__version__",
    "datasets",
    "decompose_error",
    "decompose_variance",
    "dependence",
    "equal_density_bins",
    "explain",
    "export",
    "from_catboost",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "load_model",
    "load_predictor",
    "plan_fit",
    "plot",
    "read_table",
    "rounds_to_fit",
    "save_predictor",
    "scan",
    "shap_values",
    "show_versions",
    "strength_and_correlation",
    "study",
    "to_shap_trees",
    "trace",
    "training_bound",
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
