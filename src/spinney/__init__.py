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
    from spinney.estimators.cart import CARTClassifier, CARTRegressor
    from spinney.table.ingest import read_table

_HOMES = {
    "CARTClassifier": "spinney.estimators.cart",
    "CARTRegressor": "spinney.estimators.cart",
    "datasets": "",  # a package of its own
    "read_table": "spinney.table.ingest",
    "show_versions": "spinney._versions",
    "warmup": "spinney._warmup",
}

__all__ = [
    "CARTClassifier",
    "CARTRegressor",
    "__version__",
    "datasets",
    "read_table",
    "show_versions",
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
