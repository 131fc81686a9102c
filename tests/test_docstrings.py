"""The examples in the docstrings are true, and every metric has one."""

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest
import skill_evaluator
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY

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


@pytest.mark.parametrize("name", [*METRICS, *REPRODUCIBILITY])
def test_every_metric_says_its_range_its_best_and_its_undefined_case(name: str) -> None:
    function = METRICS[name].score if name in METRICS else REPRODUCIBILITY[name]
    text = function.__doc__ or ""
    assert doctest.DocTestParser().get_examples(text), "no example"
    assert "Range" in text
    assert "best" in text
    assert "ndefined" in text or name == "schema_valid", "when is it undefined?"
