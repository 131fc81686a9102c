"""The rules that a test draws its verdicts by: a policy, its waivers, and one day."""

import datetime
from collections.abc import Mapping
from typing import Any

from skill_evaluator.library.config import Policy
from skill_evaluator.verdicts.rules import VerdictRules, Waiver


def some_rules(
    policy: Mapping[str, Any] | None = None,
    *waivers: Waiver,
    skill: str = "s",
    primary_metric: str = "field_level_f1",
) -> VerdictRules:
    return VerdictRules(
        policy=Policy.model_validate(policy or {}),
        skill=skill,
        primary_metric=primary_metric,
        required_coverage=0.9,
        waivers=waivers,
        today=datetime.date(2026, 6, 1),
    )
