"""Known errors planted in the shipped ground truths: each is reported where it is and as what it is, and no other."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, plan_fields
from skill_evaluator.library.components import load_component
from skill_evaluator.metrics.accuracy.field_level_f1 import field_level_f1
from skill_evaluator.metrics.base import Comparison

from tests.support.json_values import ALIGNMENTS, ORDER_SCHEMA
from tests.support.mutations import Planted, leaves_of, mutate, pool_of

ROOT = Path(__file__).parents[2]
AWARD = "award-notice-extraction"
COMPONENTS = {
    path.parent.name: load_component(ROOT / "components", path.parent.name)
    for path in sorted((ROOT / "components").glob("*/prompt.md"))
}
CASES = [path.parent for name in COMPONENTS for path in sorted(ROOT.glob(f"fixtures/{name}/cases/*/ground_truth.json"))]
TRUTHS = {folder: json.loads((folder / "ground_truth.json").read_text()) for folder in CASES}
POOLS = {name: pool_of(truth for folder, truth in TRUTHS.items() if folder.parts[-3] == name) for name in COMPONENTS}


def reported(truth: Any, output: Any, plan: FieldPlan) -> list[Planted]:
    return [
        Planted(path=row.path, kind=row.outcome, truth_at=row.truth_at, output_at=row.output_at)
        for row in compare(truth, output, plan)
        if row.outcome != "right"
    ]


def assert_the_planted_are_reported(truth: Any, plan: FieldPlan, pool: Any, seed: int) -> list[Planted]:
    output, planted = mutate(truth, plan, pool, seed)
    found, meant = Counter(reported(truth, output, plan)), Counter(planted)
    assert found == meant, f"seed {seed}: overlooked {[*(meant - found)]}, invented {[*(found - meant)]}"
    left = expected_f1(truth, planted, plan)
    assert field_level_f1(Comparison(truth, output, plan, bool)) == pytest.approx(left), f"seed {seed}"
    return planted


def expected_f1(truth: Any, planted: Sequence[Planted], plan: FieldPlan) -> float:
    """What the score must be, from the errors alone."""

    def weight(path: str) -> float:
        rule = plan.leaf(path)
        return rule.weight if rule.counts else 0.0

    of_truth = sum(weight(path) for path, _, _ in leaves_of(truth))
    lost = {kind: sum(weight(error.path) for error in planted if error.kind == kind) for kind in ("wrong", "missing")}
    invented = sum(weight(error.path) for error in planted if error.kind == "extra")
    matched = of_truth - lost["wrong"] - lost["missing"]
    of_output = of_truth - lost["missing"] + invented
    return 2 * matched / (of_truth + of_output)


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_every_planted_error_is_reported_at_its_place_and_none_is_invented(folder: Path) -> None:
    component = folder.parts[-3]
    for seed in range(12 if component == AWARD else 6):  # the others have fewer fields
        assert_the_planted_are_reported(TRUTHS[folder], COMPONENTS[component].plan, POOLS[component], seed)


@pytest.mark.simulation
def test_the_planted_errors_of_a_thousand_award_notices_are_reported() -> None:
    notices = [folder for folder in CASES if folder.parts[-3] == AWARD]
    assert len(notices) * 72 >= 1000
    for folder in notices:
        for seed in range(12, 84):
            assert_the_planted_are_reported(TRUTHS[folder], COMPONENTS[AWARD].plan, POOLS[AWARD], seed)


ORDER = {
    "id": "A 17",
    "total": 61.25,
    "paid": True,
    "day": "2024-01-02",
    "kind": "sale",
    "note": "as we agreed by phone",
    "tags": ["express", "gift", "retour"],
    "steps": [3, 1, 2, 2],
    "lines": [
        {"sku": "x-1", "qty": 2, "price": 10.5, "marks": ["blue", "large"]},
        {"sku": "x-2", "qty": 1, "price": 7, "marks": []},
        {"sku": "y-1", "qty": 4, "price": 3.25, "marks": ["red"]},
        {"sku": "z-9", "qty": 7, "price": 0, "marks": None},
    ],
}


@pytest.mark.parametrize("align", ALIGNMENTS)
def test_planted_errors_are_reported_under_every_alignment(align: str) -> None:
    declared = {
        "lines": ALIGNMENTS[align],
        "steps": FieldRule(align="ordered"),
        "total": FieldRule(compare="number", tolerance=0.005, weight=3),
        "note": FieldRule(compare="text", threshold=0.8),
        "lines[].qty": FieldRule(weight=0.5),
    }
    plan = plan_fields(ORDER_SCHEMA, declared, "datasets.json")
    for seed in range(40):
        assert_the_planted_are_reported(ORDER, plan, pool_of([ORDER]), seed)


def test_a_seed_says_everything_about_a_mutation() -> None:
    for folder, truth in TRUTHS.items():
        component = folder.parts[-3]
        before = json.dumps(truth)
        one, other = (mutate(truth, COMPONENTS[component].plan, POOLS[component], 1) for _ in range(2))
        assert json.dumps(one[0]) == json.dumps(other[0])
        assert one[1] == other[1]
        assert json.dumps(truth) == before


def test_there_are_errors_of_every_kind_in_every_part_and_answers_without_any() -> None:
    notices = [truth for folder, truth in TRUTHS.items() if folder.parts[-3] == AWARD]
    found: Counter[tuple[str, str]] = Counter()
    changed_leaves = leaves = faultless = 0
    for truth in notices:
        for seed in range(20):
            _, planted = mutate(truth, COMPONENTS[AWARD].plan, POOLS[AWARD], seed)
            found.update((error.path.partition(".")[0], error.kind) for error in planted)
            changed_leaves += sum(error.kind == "wrong" for error in planted)
            leaves += sum(1 for _ in leaves_of(truth))
            faultless += not planted
    arrays = ("personnel[]", "budget[]", "conditions[]", "reporting[]")
    assert 0.03 < changed_leaves / leaves < 0.05  # of the 5 %, some stood in items that were dropped
    assert all(found[part, kind] for part in (*arrays, "identifiers") for kind in ("wrong", "missing", "extra"))
    assert faultless
