"""The rules that a test draws its verdicts by: a policy and a primary metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from skill_evaluator.library.config import Policy
from skill_evaluator.verdicts.decide.measuring import Measure
from skill_evaluator.verdicts.decide.rules import VerdictRules


def a_measured(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> Measure:
    """A measure of cases that are named by their number, from the scores of each case's replicates."""
    old, new = (tuple(tuple(map(float, case)) for case in arm) for arm in (before, after))
    return Measure(name="m", kind="accuracy", case_ids=tuple(map(str, range(len(old)))), scores=(old, new))


def some_rules(
    policy: Mapping[str, Any] | None = None, *, skill: str = "s", primary_metric: str = "field_level_f1"
) -> VerdictRules:
    return VerdictRules(
        policy=Policy.model_validate(policy or {}), skill=skill, primary_metric=primary_metric, required_coverage=0.9
    )
