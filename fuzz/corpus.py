"""Small model files of every kind of model: what is damaged."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
SMALL = {"n_estimators": 3, "max_depth": 4, "max_leaf_nodes": 8, "n_iter_no_change": 1}


def is_least(now, value):
    """Whether a parameter is no larger than a value; None and "auto" stay as they are."""
    return now is None or isinstance(now, str) or now <= value


def write_corpus(folder: Path) -> None:
    """Save the models of the tests in a folder, with fewer trees."""
    sys.path.insert(0, str(TESTS))
    from sklearn.base import clone

    from saved_models import MODELS, make_data

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three trees leave rows without out-of-bag votes
        for name, (estimator, n_classes, options) in MODELS.items():
            now = estimator.get_params()
            less = {key: value for key, value in SMALL.items() if key in now and not is_least(now[key], value)}
            model = clone(estimator).set_params(**less).fit(*make_data(n_classes, **options))
            model.save_model(folder / f"{name}.spn")


def read_corpus(folder: Path) -> list[bytes]:
    """The files of a folder, by name."""
    return [path.read_bytes() for path in sorted(folder.glob("*.spn"))]
