"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil

import skill_evaluator

OPTIONAL = ("skill_evaluator.__main__",)
MODULES = [
    found.name
    for found in pkgutil.walk_packages(skill_evaluator.__path__, "skill_evaluator.")
    if found.name not in OPTIONAL
]


def test_the_examples_of_every_module_are_true() -> None:
    failed = {
        module.__name__
        for module in map(importlib.import_module, MODULES)
        if doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed
    }
    assert not failed
