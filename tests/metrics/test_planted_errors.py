"""Each value removed from, or changed in, a shipped ground truth is reported at its path and costs its weight."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.library.components import load_component
from skill_evaluator.metrics.accuracy.field_level_f1 import field_level_f1
from skill_evaluator.metrics.base import Comparison

ROOT = Path(__file__).parents[2]
COMPONENTS = sorted(path.parent.name for path in ROOT.glob("components/*/schema.json"))
Place = tuple[str | int, ...]


def values_of(value: Any, path: str = "", place: Place = ()) -> Iterator[tuple[str, Place]]:
    """Yield the path and the place of each value that is not null."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from values_of(child, f"{path}.{key}" if path else key, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from values_of(child, f"{path}[]", (*place, index))
    elif value is not None:
        yield path, place


def changed(truth: Any, place: Place, value: Any) -> Any:
    """Return a copy with another value at one place."""
    output = copy.deepcopy(truth)
    holder = output
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return output


def weight(plan: FieldPlan, path: str) -> float:
    rule = plan.leaf(path)
    return rule.weight if rule.counts else 0.0


def identifies_its_item(plan: FieldPlan, path: str) -> bool:
    """Whether array items are aligned by this value, so that a wrong one is a missing and an extra item."""
    array, _, field = path.rpartition("[]")
    return "[]" in path and (not field or plan.field(array).array_rule().align != "best")


@pytest.mark.parametrize("name", COMPONENTS)
def test_error_in_a_ground_truth_is_reported_at_its_path(name: str) -> None:
    plan = load_component(ROOT / "components", name).plan
    for file in sorted(ROOT.glob(f"fixtures/{name}/cases/*/ground_truth.json"))[:3]:
        truth = json.loads(file.read_text())
        total = sum(weight(plan, path) for path, _ in values_of(truth))
        for path, place in values_of(truth):
            if identifies_its_item(plan, path) or plan.leaf(path).compare == "ignore":
                continue
            for outcome, value, lost in (("missing", None, 0), ("wrong", "\u2603 zqxv", 1)):
                output = changed(truth, place, value)
                reported = [row for row in compare(truth, output, plan) if row.outcome != "right"]
                assert [(row.path, row.outcome, row.truth_at) for row in reported] == [(path, outcome, place)]
                matched = total - weight(plan, path)
                expected = 2 * matched / (total + matched + lost * weight(plan, path))
                assert field_level_f1(Comparison(truth, output, plan, bool)) == pytest.approx(expected)
