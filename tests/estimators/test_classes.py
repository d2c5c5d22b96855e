"""How the estimators are put together: few classes deep, no attribute found by trial, everything kept is declared."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import spinney
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.kept import kept_by, take_fitted

ESTIMATORS = [
    cls for name in spinney.__all__ if isinstance(cls := getattr(spinney, name), type) and issubclass(cls, Estimator)
]
FILES = sorted(Path(inspect.getfile(Estimator)).parent.glob("*.py"))
MOST_DEEP = 3


def depth(cls):
    """Classes of ours on the longest way up from a class, itself included."""
    is_ours = cls.__module__.startswith("spinney.")
    return is_ours + max((depth(base) for base in cls.__bases__), default=0)


def test_the_depth_of_a_class_counts_ours_alone():
    class Middle(Estimator):
        pass

    class Public(Classifier, Middle):
        pass

    Middle.__module__ = Public.__module__ = "spinney.somewhere"
    assert [depth(cls) for cls in (dict, Estimator, Middle, Public)] == [0, 1, 2, 3]


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_public_class_is_at_most_three_of_ours_deep(cls):
    assert depth(cls) <= MOST_DEEP


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_public_class_says_what_it_predicts(cls):
    assert issubclass(cls, Classifier) != issubclass(cls, Regressor)
    assert issubclass(cls, Classifier) == cls.__name__.endswith("Classifier")


def find_trials(source):
    """Lines that ask of `self` whether it has an attribute."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3))
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == "self"
    ]


def test_asking_self_for_an_attribute_is_found():
    assert find_trials("hasattr(self, 'a')\ngetattr(self, 'b', None)\ngetattr(self, name)\nhasattr(member, 'c')") == [
        1,
        2,
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_estimator_asks_itself_what_it_is(path):
    assert find_trials(path.read_text()) == []


@pytest.mark.parametrize("cls", [*ESTIMATORS, spinney.OOBSelector], ids=lambda cls: cls.__name__)
def test_a_public_attribute_is_a_parameter_a_method_or_documented(cls):
    parameters = set(inspect.signature(cls.__init__).parameters) - {"self"}
    assert parameters == set(cls._parameter_constraints)
    public = {name for name in dir(cls) if not name.startswith("_") and not name.endswith("_")}
    others = {name: inspect.getattr_static(cls, name) for name in public - parameters}
    assert [name for name, value in others.items() if not inspect.isroutine(value) and not is_documented(value)] == []


def is_documented(value):
    """Whether a class attribute is a property with a docstring."""
    return isinstance(value, property) and bool(value.__doc__)


LACKED = {  # an ensemble or a tree, a parameter that others of its family have, and a value that would change their fit
    "forest classes": (spinney.RandomForestRegressor, "class_weight", "balanced"),
    "forest votes": (spinney.RandomForestRegressor, "voting", "hard"),
    "forest strata": (spinney.RandomForestRegressor, "stratify", "balanced"),
    "forest members": (spinney.RandomForestClassifier, "keep_members", True),
    "forest spread": (spinney.RandomForestClassifier, "min_target_std", 1e9),
    "bag votes": (spinney.BaggingRegressor, "voting", "hard"),
    "cart classes": (spinney.CARTRegressor, "class_weight", "balanced"),
    "cart leaves": (spinney.CARTClassifier, "leaf_model", "linear"),
    "cart spread": (spinney.CARTClassifier, "min_target_std", 1e9),
    "id3 ties": (spinney.ID3Classifier, "ties", "random"),
    "id3 features": (spinney.ID3Regressor, "max_features", 1),
    "id3 shares": (spinney.ID3Classifier, "smoothing", 5.0),
    "adaboost weights": (spinney.AdaBoostRegressor, "convention", "half"),
}


@pytest.mark.parametrize(("cls", "name", "value"), LACKED.values(), ids=LACKED.keys())
def test_what_is_no_parameter_changes_no_fit(cls, name, value):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] + X[:, 1] > 0.0).astype(float)
    fits = []
    for has_name in (False, True):
        options = {"n_estimators": 3} if "n_estimators" in cls._parameter_constraints else {}
        model = cls(random_state=0, **options)
        assert not hasattr(model, name)
        if has_name:
            setattr(model, name, value)
        model.fit(X, y)
        fits.append(model)
    plain, other = fits
    assert np.array_equal(plain.predict(X), other.predict(X))
    assert sorted(take_fitted(plain)) == sorted(take_fitted(other))


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_what_is_kept_has_a_type(cls):
    for name, kept in kept_by(cls).items():
        assert kept.types is not None, name
        isinstance(None, kept.types)  # a type, or a union of types
