"""Numbers are formatted in one module."""

import ast
from typing import Any

import pytest
from skill_evaluator import display

from tests.test_architecture import modules


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (display.clock, {(62.9,): "1:02"}),
        (display.number, {(0.5,): "0.500", (-0.0001,): "0.000", (None,): "–"}),
        (display.amount, {(1234.5,): "1,234.50", (0.0123,): "0.0123", (0.0,): "0.00", (None,): "–"}),
        (display.times, {(1.234,): "× 1.23", (196.7,): "× 197", (2000.0,): "× 2,000"}),
        (display.count, {(1234,): "1,234"}),
        (display.short_count, {(999,): "999", (5_200,): "5.2k", (1_250_000,): "1.25M"}),
        (display.plain, {(0.05,): "0.05", (1234.5678, 4): "1,235", (None,): "–"}),
        (display.relative_change, {(2.0, 3.0): "+50 %", (2.0, 2.0): "=", (0.0, 3.0): "+3", (None, 3.0): ""}),
        (display.interval, {((0.5, 0.75), 5): "0.500 to 0.750", ((0.307, 1.0), 3): "too few", (None, 0): "–"}),
        (display.cost_words, {(1.5, 0.69): "$1.5000 (69% cached)", (None,): "unknown"}),
        (display.stability_words, {("stable_right", 3): "right", ("unscored", 1): "answered once"}),
    ],
)
def test_numbers_are_formatted(write: Any, texts: dict[tuple[Any, ...], str]) -> None:
    assert {arguments: write(*arguments) for arguments in texts} == texts


def test_reports_do_not_format_numbers() -> None:
    found = [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module, tree in modules().items()
        if module.startswith("reports.")
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
    ]
    assert not [place for place in found if ".judg" not in place]
