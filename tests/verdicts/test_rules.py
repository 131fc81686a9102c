"""What each measure weighs and tolerates, and the verdict on one measure."""

from typing import Any

import pytest
from scipy.special import stdtrit
from skill_evaluator.library.config import VerdictName
from skill_evaluator.verdicts.decide.comparability import Kind
from skill_evaluator.verdicts.decide.measuring import Effect, Measure
from skill_evaluator.verdicts.decide.rules import (
    ACCEPTED_SHARE,
    VerdictRules,
    exit_code,
    has_collapsed,
    is_harmed_everywhere,
    measure_verdict,
)

from tests.verdicts.rules import a_measured, some_rules


def measure(name: str, kind: Kind = "accuracy") -> Measure:
    return Measure(name=name, kind=kind, case_ids=("a",), scores=(((1.0,),), ((1.0,),)))


def rules(policy: dict[str, Any], skill: str = "s") -> VerdictRules:
    return some_rules(policy, skill=skill, primary_metric="f1")


PRIMARY, OTHER, FIELD = measure("f1"), measure("exact_match"), measure("total", "field")
AGREEMENT = measure("pairwise_exact_match", "reproducibility")
OWN = {"components": {"s": {"metrics": {"f1": {"tolerance": 0.3}}, "fields": {"total": {"tier": "critical"}}}}}


@pytest.mark.parametrize(
    ("policy", "of", "tier", "tolerance"),
    [
        ({}, PRIMARY, "critical", 0.05),
        ({}, OTHER, "supporting", 0.05),
        ({}, FIELD, "advisory", 0.05),
        ({}, AGREEMENT, "advisory", 0.05),
        ({"tolerance": 0.1}, PRIMARY, "critical", 0.1),
        ({"metrics": {"f1": {"tier": "advisory", "tolerance": 0.2}}}, PRIMARY, "advisory", 0.2),
        ({"metrics": {"f1": {"tier": "advisory", "tolerance": 0.2}}, **OWN}, PRIMARY, "advisory", 0.3),
        ({"metrics": {"total": {"tier": "critical"}}}, FIELD, "advisory", 0.05),
        (OWN, FIELD, "critical", 0.05),
        ({"components": {"s": {"tolerance": 0.0}}}, PRIMARY, "critical", 0.0),
        ({"metrics": {"f1": {"tolerance": 0.2}}, "components": {"s": {"tolerance": 0.0}}}, PRIMARY, "critical", 0.2),
        ({"components": {"other": {"tolerance": 0.0}}}, PRIMARY, "critical", 0.05),
    ],
)
def test_tier_and_tolerance_follow_the_policy(policy: dict[str, Any], of: Measure, tier: str, tolerance: float) -> None:
    found = rules(policy)
    assert (found.tier(of), found.tolerance(of)) == (tier, tolerance)


def test_component_alpha_precedes_the_general_alpha() -> None:
    policy = {"alpha": 0.1, "components": {"s": {"alpha": 0.01}}}
    assert (rules(policy).alpha, rules(policy, skill="other").alpha) == (0.01, 0.1)


def an_effect(difference: float, low: float, unseen: float = 0.0) -> Effect:
    error = (difference - low) / float(stdtrit(1e9, 0.975))
    lowest, ci95 = difference - 1.88 * error, (low, 2 * difference - low)
    return Effect(
        difference=difference, error=error, degrees=1e9, p=0.5, ci95=ci95, lowest=lowest, n=100, unseen=unseen
    )


@pytest.mark.parametrize(
    ("says", "effect", "q", "tolerance", "expected"),
    [
        ("a drop is excluded, nothing moved", an_effect(0.0, -0.04), 0.45, 0.05, "unchanged"),
        ("a drop is not excluded, nothing moved", an_effect(0.0, -0.06), 0.45, 0.05, "inconclusive"),
        ("a failure could have gone unseen", an_effect(0.0, -0.04, unseen=0.06), 0.45, 0.05, "inconclusive"),
        ("fell beyond chance, excluded", an_effect(-0.02, -0.04), 0.01, 0.05, "unchanged"),
        ("fell beyond chance, not excluded", an_effect(-0.04, -0.06), 0.034, 0.05, "regressed"),
        ("fell, but within chance", an_effect(-0.04, -0.1), 0.036, 0.05, "inconclusive"),
        ("rose beyond chance", an_effect(0.06, 0.01), 0.025, 0.05, "improved"),
        ("rose within chance", an_effect(0.06, -0.01), 0.026, 0.05, "unchanged"),
        ("none tolerated: none seen", an_effect(0.0, -0.04), 0.45, 0.0, "unchanged"),
        ("none tolerated: none seen, few answers", an_effect(0.0, -0.4, unseen=0.3), 0.5, 0.0, "unchanged"),
        ("none tolerated: a difference of rounding", an_effect(-1e-17, -0.04), 0.45, 0.0, "unchanged"),
        ("none tolerated: rose within chance", an_effect(0.02, -0.01), 0.2, 0.0, "unchanged"),
        ("none tolerated: rose beyond chance", an_effect(0.02, 0.01), 0.01, 0.0, "improved"),
        ("none tolerated: fell within chance", an_effect(-0.001, -0.04), 0.45, 0.0, "inconclusive"),
        ("none tolerated: fell beyond chance", an_effect(-0.001, -0.002), 0.01, 0.0, "regressed"),
    ],
)
def test_measure_has_the_specified_verdict(
    says: str, effect: Effect, q: float, tolerance: float, expected: str
) -> None:
    level = rules({}).level(PRIMARY)
    assert level == pytest.approx(0.035)
    assert measure_verdict(effect, q, tolerance, level, 0.05) == expected, says
    assert measure_verdict(None, None, tolerance, level, 0.05) == "inconclusive"


@pytest.mark.parametrize(
    ("verdict", "fail_on", "code"),
    [
        ("regressed", ["regressed"], 3),
        ("regressed", ["inconclusive"], 0),
        ("inconclusive", ["inconclusive", "regressed"], 4),
        ("incomparable", ["incomparable"], 4),
        ("improved", ["regressed"], 0),
    ],
)
def test_exit_code_follows_from_verdict_and_policy(verdict: VerdictName, fail_on: list[str], code: int) -> None:
    assert exit_code(verdict, fail_on) == code


def test_levels_of_all_families_add_up_to_1_2_alpha() -> None:
    levels = [rules({"alpha": 0.1}).level(of) for of in (PRIMARY, OTHER, FIELD)]
    levels.append(0.1 * ACCEPTED_SHARE)
    assert levels == pytest.approx([0.07, 0.015, 0.015, 0.02])
    assert sum(levels) == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("says", "before", "after", "models", "lost"),
    [
        ("29 of 30, then none", [[1] * 10, [1] * 10, [1] * 9 + [0]], [[0] * 10] * 3, 1, True),
        ("the same, of one of several models", [[1] * 10, [1] * 10, [1] * 9 + [0]], [[0] * 10] * 3, 8, True),
        ("two cases", [[1] * 5] * 2, [[0] * 10] * 2, 1, True),
        ("two cases of one of several models", [[1] * 5] * 2, [[0] * 10] * 2, 2, False),
        ("one case", [[1] * 10], [[0] * 10], 1, False),
        ("three cases, one replicate", [[1]] * 3, [[0]] * 3, 1, True),
        ("three cases, one replicate, of several models", [[1]] * 3, [[0]] * 3, 2, False),
        ("two cases, one replicate", [[1]] * 2, [[0]] * 2, 1, False),
        ("one case stayed", [[1] * 9 + [0], [1] * 10, [0] * 10], [[0] * 10] * 3, 1, False),
        ("half of the outputs stayed right", [[1] * 10] * 3, [[1] * 5 + [0] * 5] * 3, 1, True),
        ("most of the outputs stayed right", [[1] * 10] * 3, [[1] * 6 + [0] * 4] * 3, 1, False),
        ("half of four outputs stayed right", [[1] * 4] * 3, [[1, 1, 0, 0]] * 3, 1, False),
        ("two cases, a fifth stayed right", [[1] * 5] * 2, [[1] + [0] * 4] * 2, 1, False),
        ("it rose", [[0] * 10] * 3, [[1] * 10] * 3, 1, False),
    ],
)
def test_lost_measure_is_detected_in_few_cases(
    says: str, before: list[list[int]], after: list[list[int]], models: int, *, lost: bool
) -> None:
    assert has_collapsed(a_measured(before, after), models) is lost, says


@pytest.mark.parametrize(("after", "harmed"), [([0.5, 0.6, 0.7], True), ([0.1, 0.1, 0.8], False), ([0.1, 0.1], False)])
def test_harm_in_every_case_requires_three_cases(after: list[float], *, harmed: bool) -> None:
    measured = a_measured([[1.0]] * len(after), [[score] for score in after])
    assert is_harmed_everywhere(measured, 0.25) is harmed
