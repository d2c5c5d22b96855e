"""A plugin of pytest that runs tests of scikit-learn with our classes in the place of its own, and writes the outcome.

Everything of scikit-learn that could use these classes itself is imported before: it keeps its own.
"""

import importlib
import json
import os
import pkgutil
import warnings
from pathlib import Path

import pytest
import sklearn
from substitutes import list_substitutes

from spinney.estimators.base import Estimator

REPORT = Path(os.environ["SPINNEY_PEER_REPORT"])
met: list[bool] = []  # filled when an estimator of ours is made, fitted or asked


def import_all():
    """Import every module of scikit-learn but its tests."""
    for found in pkgutil.walk_packages(sklearn.__path__, "sklearn.", onerror=lambda _: None):
        if ".tests" not in found.name and ".externals" not in found.name and "conftest" not in found.name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    importlib.import_module(found.name)
                except ImportError:
                    continue


def watch(method):
    """The method of an estimator, which notes that a test has come by one of ours."""

    def watched(*given, **named):
        met.append(True)
        return method(*given, **named)

    return watched


def pytest_configure():
    """Put our classes in place, before any test is imported."""
    import_all()
    made = Estimator.__new__
    Estimator.__new__ = staticmethod(watch(made))
    Estimator._validate_params = watch(Estimator._validate_params)
    Estimator._find_fitted = watch(Estimator._find_fitted)
    for module, name, cls in list_substitutes():
        setattr(module, name, cls)


def pytest_collection_finish():
    """Forget what the import of the tests has met."""
    met.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Write the outcome of a test: its name, what came of it, the last line of an error, and whether it met ours."""
    outcome = yield
    report = outcome.get_result()
    if call.when == "setup":
        item.peer_touched, item.peer_outcome, item.peer_words = False, report.outcome, ""
    elif report.outcome != "passed":
        item.peer_outcome = report.outcome
    if call.excinfo is not None:
        item.peer_words = f"{call.excinfo.typename}: {call.excinfo.value}".replace("\n", " ")[:400]
    if hasattr(report, "wasxfail"):
        item.peer_outcome = "skipped"
    item.peer_touched = item.peer_touched or bool(met)
    met.clear()
    if call.when == "teardown":
        line = {
            "test": item.nodeid.rpartition("sklearn/")[2],
            "outcome": item.peer_outcome,
            "words": item.peer_words,
            "is_ours": item.peer_touched,
        }
        with REPORT.open("a") as file:
            file.write(json.dumps(line) + "\n")
