"""The examples in the docstrings of the study print what they say."""

import doctest
import pkgutil
from importlib import import_module

import pytest

from spinney import study

MODULES = ["spinney.study", *(f"spinney.study.{module.name}" for module in pkgutil.iter_modules(study.__path__))]


@pytest.mark.compiled(reason="takes minutes interpreted")
@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name):
    failed, _ = doctest.testmod(import_module(name))
    assert failed == 0
