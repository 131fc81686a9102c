"""The rules that turn a measured effect into a verdict, and a verdict into an exit code. Nothing else decides.

The policy of settings.yaml and the waivers come in as the `VerdictRules` of one component. The verdicts follow from the
small to the large: `measure_verdict` on a metric or field, `model_verdict` from those of one model, `component_verdict`
from those of all models, and `exit_code` for the process.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, ConfigError, SkillEvaluatorError
from skill_evaluator.files import StrictModel, validated
from skill_evaluator.library.config import (
    DEFAULT_LIMITS,
    ComponentPolicy,
    MetricPolicy,
    Policy,
    SafetyLimits,
    Settings,
    Tier,
    VerdictName,
)
from skill_evaluator.library.roots import Root
from skill_evaluator.library.yaml_files import read_yaml
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Measure
from skill_evaluator.verdicts.missing import Missing, crosses
from skill_evaluator.verdicts.results import CaseChange, Watch

if TYPE_CHECKING:  # numpy is imported where an effect is measured
    from skill_evaluator.verdicts.effects import Effect

ROUNDING = 1e-9  # two scores that differ by less are equal
_FEWEST_LOST = 3
WORST_FIRST: tuple[VerdictName, ...] = ("regressed", "inconclusive", "incomparable", "improved", "unchanged")


class Waiver(StrictModel):
    """A file in `.evaluator/waivers/`: a regression of a metric or field that is accepted until a day, and why.

    `down_to` is its floor: a candidate that scores below it regressed all the same.
    """

    component: str
    metric: str | None = None
    field: str | None = None
    model: str | None = None
    reason: str = Field(min_length=1)
    expires: datetime.date
    down_to: float | None = Field(default=None, ge=0.0, le=1.0)

    def breaks_floor(self, score: float) -> bool:
        """Return whether a candidate's strict mean is below the floor."""
        return self.down_to is not None and score < self.down_to - ROUNDING


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """The policy for one component, the waivers, and the day on which they are looked at."""

    policy: Policy
    skill: str
    primary_metric: str
    required_coverage: float
    waivers: Sequence[Waiver]
    today: datetime.date

    @property
    def alpha(self) -> float:
        """The share of false alarms that is accepted."""
        own = self._component
        return self.policy.alpha if own is None or own.alpha is None else own.alpha

    def tier(self, measure: Measure) -> Tier:
        """Return how much a measure weighs.

        A tier that the policy declares comes first. Without one the primary metric is critical, every other metric is
        supporting, and a field is advisory.
        """
        for declared in self._declared(measure):
            if declared.tier is not None:
                return declared.tier
        if measure.kind == "field":
            return "advisory"
        return "critical" if measure.name == self.primary_metric else "supporting"

    def is_critical(self, measure: Measure) -> bool:
        """Return whether a measure decides the verdict by itself."""
        return self.tier(measure) == "critical"

    def tolerance(self, measure: Measure) -> float:
        """Return the tolerated drop of a measure: its own, else the component's, else the general one."""
        tolerances = [declared.tolerance for declared in self._declared(measure)]
        if self._component is not None:
            tolerances.append(self._component.tolerance)
        return next((tolerance for tolerance in tolerances if tolerance is not None), self.policy.tolerance)

    def waiver_for(self, measure: Measure, model_id: str) -> Waiver | None:
        """Return the waiver of a measure that ends last, in force or expired; None if there is none.

        Of those that end on the same day the one with the highest floor counts.
        """
        waivers = [
            waiver
            for waiver in self.waivers
            if waiver.component == self.skill
            and waiver.model in (None, model_id)
            and measure.name == (waiver.field if measure.kind == "field" else waiver.metric)
        ]
        return max(waivers, key=lambda waiver: (waiver.expires, waiver.down_to or 0.0), default=None)

    @property
    def critical_cases(self) -> tuple[str, ...]:
        """The cases whose loss alone is a regression."""
        return self._component.critical_cases if self._component else ()

    @property
    def _component(self) -> ComponentPolicy | None:
        """The part of the policy that is for this component alone."""
        return self.policy.components.get(self.skill)

    def _declared(self, measure: Measure) -> list[MetricPolicy]:
        """Return what the policy declares of a measure, the component's part before the general one."""
        own = self._component
        if measure.kind == "field":
            declared = [own.fields.get(measure.name) if own else None]
        else:
            declared = [own.metrics.get(measure.name) if own else None, self.policy.metrics.get(measure.name)]
        return [policy for policy in declared if policy is not None]


def rules_for(settings: Settings, config: Path, candidate: Record) -> VerdictRules:
    """Return the rules for a candidate, as settings and waivers stand today; raises ConfigError."""
    own = settings.policy.components.get(candidate.skill)
    return VerdictRules(
        policy=settings.policy,
        skill=candidate.skill,
        primary_metric=candidate.primary_metric,
        required_coverage=(
            settings.required_coverage if own is None or own.required_coverage is None else own.required_coverage
        ),
        waivers=load_waivers(config, settings.limits),
        today=datetime.datetime.now(datetime.UTC).date(),
    )


def load_waivers(config: Path, limits: SafetyLimits = DEFAULT_LIMITS) -> list[Waiver]:
    """Read every waiver, expired ones too; raises ConfigError."""
    waivers, problems = check_waivers(config, limits)
    if problems:
        raise ConfigError(next(iter(problems.values())))
    return waivers


def check_waivers(config: Path, limits: SafetyLimits) -> tuple[list[Waiver], dict[Path, str]]:
    """Return the waivers that are in order, and by file what is wrong with the others."""
    waivers, problems = [], {}
    root = Root(config, ConfigError, follow_links=limits.follow_links)
    for path in sorted((config / "waivers").glob("*.y*ml")):
        try:
            waiver = validated(Waiver, read_yaml(root.inside(path), depth=limits.yaml_depth), path)
            if (waiver.metric is None) == (waiver.field is None):
                raise ConfigError(f"{path} must name either a metric or a field")
        except SkillEvaluatorError as problem:
            problems[path] = str(problem)
        else:
            waivers.append(waiver)
    return waivers, problems


def measure_verdict(
    effect: "Effect | None", q: float | None, tolerance: float, alpha: float, *, covered: bool
) -> VerdictName:
    """Return the verdict on one measure: that of the first line that holds.

    1. inconclusive: nothing was measured, or too little of what was planned (not `covered`).
    2. improved: a drop beyond the tolerance is excluded, and the score rose beyond chance.
    3. unchanged: such a drop is excluded, and a failure that no answer showed would be rarer than the tolerance.
    4. regressed: such a drop is not excluded, and the score fell beyond chance.
    5. inconclusive: anything else. Nothing is unchanged merely because its difference is not significant.

    A drop is excluded when the 95 % interval lies above it. Beyond chance means q ≤ alpha. No interval excludes every
    drop, so a tolerance of 0 means «no drop beyond chance and none seen»: a score that fell is regressed beyond chance
    and inconclusive within it, any other is improved or unchanged.
    """
    if effect is None or q is None or not covered:
        return "inconclusive"
    beyond_chance = q <= alpha
    if tolerance == 0.0:
        if effect.difference < -ROUNDING:
            return "regressed" if beyond_chance else "inconclusive"
        return "improved" if beyond_chance and effect.difference > ROUNDING else "unchanged"
    if effect.ci95[0] >= -tolerance:
        if beyond_chance and effect.difference > 0:
            return "improved"
        return "unchanged" if effect.unseen <= tolerance else "inconclusive"
    return "regressed" if beyond_chance and effect.difference < 0 else "inconclusive"


def bounded_verdict(
    verdict: VerdictName, missing: Missing | None, tolerance: float, required_coverage: float
) -> VerdictName:
    """Return what remains of the verdict on a measure, whatever the missing values would have been.

    1. A regression is inconclusive where the score did not fall in the best case. Else it stands: the documents that
       were answered show it.
    2. improved or unchanged is inconclusive where the worst case is a drop beyond the tolerance, and where the metric
       says nothing about too many of the cases that have a ground truth.

    The bounds are those of the measured difference; chance stays with the interval. So a few lost answers move them by
    their share and change no verdict, while documents that were lost altogether do.
    """
    if missing is None or verdict in ("inconclusive", "incomparable"):
        return verdict
    if verdict == "regressed":
        return "inconclusive" if missing.lost and missing.best >= -ROUNDING else verdict
    too_few = missing.rests_on < required_coverage
    return "inconclusive" if too_few or crosses(missing, tolerance) else verdict


def model_verdict(measures: Iterable[tuple[Tier, VerdictName]]) -> VerdictName:
    """Return the verdict on a model from the tiers of its measures and the verdicts on them.

    A regression decides unless it is advisory. Only critical measures can make a model inconclusive, incomparable or
    improved, in this order.
    """
    verdicts = [(tier, verdict) for tier, verdict in measures if tier != "advisory"]
    critical = [verdict for tier, verdict in verdicts if tier == "critical"]
    if any(verdict == "regressed" for _, verdict in verdicts):
        return "regressed"
    if not critical or "inconclusive" in critical:
        return "inconclusive"
    if "incomparable" in critical:
        return "incomparable"
    return "improved" if "improved" in critical else "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What a good mean may not hide.

    `fields` lost more than `policy.harm`, and so did `cases`; `earlier_run` of the same version was a regression;
    `watch` is what became of the critical measures since the anchor.
    """

    fields: tuple[str, ...] = ()
    cases: tuple[CaseChange, ...] = ()
    critical_cases: tuple[str, ...] = ()
    earlier_run: str | None = None
    watch: Watch | None = None

    @property
    def lost_critical_cases(self) -> list[str]:
        """The cases that are critical and lost."""
        return [case.case_id for case in self.cases if case.case_id in self.critical_cases]


def is_harmed(measure: Measure, q: float | None, rules: VerdictRules) -> bool:
    """Return whether a field fell by more than `policy.harm` over all cases, beyond chance.

    A field that was right in every answer of at least three cases and now is in none needs no test: even if each case
    were a coin toss, that is one chance in 64.
    """
    if sum(measure.differences) / len(measure.differences) >= -rules.policy.harm:
        return False
    was_right = all(score == 1.0 for scores in measure.before for score in scores)
    is_lost = was_right and not any(score for scores in measure.after for score in scores)
    return (is_lost and len(measure.case_ids) >= _FEWEST_LOST) or (q is not None and q <= rules.alpha)


def verdict_with_losses(verdict: VerdictName, losses: Losses) -> VerdictName:
    """Return the verdict on a model with what its means hide.

    A field that is lost, a critical case that is lost, and loss since the anchor are regressions whatever the means do.
    After an earlier run of the same version that regressed, a later one that leaves the drop open does not pass.
    A case that is lost withholds *improved*.
    """
    watched = losses.watch is not None and losses.watch.verdict == "regressed"
    if losses.fields or losses.lost_critical_cases or watched:
        return "regressed"
    if losses.earlier_run is not None and verdict == "inconclusive":
        return "regressed"
    return "unchanged" if verdict == "improved" and losses.cases else verdict


def component_verdict(models: Iterable[VerdictName]) -> VerdictName:
    """Return the verdict on a component: the worst of those on its models, or incomparable if it has none."""
    return min(models, key=WORST_FIRST.index, default="incomparable")


def exit_code(verdict: VerdictName, fail_on: Iterable[str]) -> int:
    """Return 0 for a verdict that the policy does not fail on, else 3 for a regression and 4 for any other verdict."""
    if verdict not in fail_on:
        return EXIT_OK
    return EXIT_REGRESSED if verdict == "regressed" else EXIT_INCOMPLETE
