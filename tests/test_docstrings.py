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


def test_examples_in_docstrings_are_true() -> None:
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    docstrings = (found for name in MODULES for found in finder.find(importlib.import_module(name)))
    failed = {found.name for found in docstrings if found.examples and runner.run(found).failed}
    assert not failed
