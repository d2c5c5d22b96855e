"""How the estimators are put together: few classes deep, no attribute found by trial, everything kept is declared."""

import ast
import inspect
from pathlib import Path

import pytest

import spinney
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.kept import kept_by

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


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_what_is_kept_has_a_type(cls):
    for name, kept in kept_by(cls).items():
        assert kept.types is not None, name
        isinstance(None, kept.types)  # a type, or a union of types
