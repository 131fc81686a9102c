"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest
import skill_evaluator

OPTIONAL = ("skill_evaluator.__main__",)
MODULES = [
    found.name
    for found in pkgutil.walk_packages(skill_evaluator.__path__, "skill_evaluator.")
    if found.name not in OPTIONAL
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed
