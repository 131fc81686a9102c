"""The rules that a test draws its verdicts by: a policy and a primary metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from skill_evaluator.library.config import Policy
from skill_evaluator.verdicts.decide.comparability import PairedScores
from skill_evaluator.verdicts.decide.measuring import ArmStatistics, MeasureEffects
from skill_evaluator.verdicts.decide.rules import VerdictRules


def a_measured(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], *, draws: bool = False
) -> MeasureEffects:
    """A measure of cases that are named by their number, from the scores of each case's replicates."""
    arms = [tuple(tuple(map(float, case)) for case in arm) for arm in (before, after)]
    names = tuple(map(str, range(len(arms[0]))))
    return MeasureEffects(
        measure=PairedScores(name="m", kind="accuracy", case_ids=names, before=arms[0], after=arms[1]),
        before=ArmStatistics.of(arms[0]),
        after=ArmStatistics.of(arms[1]),
        is_sampled=draws,
    )


def some_rules(
    policy: Mapping[str, Any] | None = None, *, skill: str = "s", primary_metric: str = "field_level_f1"
) -> VerdictRules:
    return VerdictRules(
        policy=Policy.model_validate(policy or {}), skill=skill, primary_metric=primary_metric, required_coverage=0.9
    )
