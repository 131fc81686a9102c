"""The policy of settings.yaml as it is for one component, and the waivers: regressions that somebody took on.

The partition: a measured effect, its tolerance and its coverage → one of five verdicts. Nothing else decides.

The verdict on runs that were just made, against what is recorded; and what every verdict is drawn by.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, ConfigError
from skill_evaluator.files import StrictModel, read_yaml, validated
from skill_evaluator.library.config import MetricPolicy, Policy, Tier, VerdictName
from skill_evaluator.verdicts.measures import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRules:
    """The policy for one component: what each measure weighs, and the drop of it that is tolerated."""

    policy: Policy
    skill: str
    primary_metric: str

    @property
    def alpha(self) -> float:
        """The share of false alarms that is accepted."""
        own = self.policy.components.get(self.skill)
        return own.alpha if own and own.alpha is not None else self.policy.alpha

    def tier(self, measure: Measure) -> Tier:
        """What a measure weighs."""
        named = next((one.tier for one in self._of(measure) if one.tier is not None), None)
        usual: Tier = "critical" if measure.name == self.primary_metric else "supporting"
        return named or ("advisory" if measure.kind == "field" else usual)

    def tolerance(self, measure: Measure) -> float:
        """The drop of a measure that is tolerated."""
        named = [one.tolerance for one in self._of(measure)]
        own = self.policy.components.get(self.skill)
        general = [own.tolerance if own else None, self.policy.tolerance]
        return next(value for value in (*named, *general) if value is not None)

    def _of(self, measure: Measure) -> list[MetricPolicy]:
        """What is said of a measure, the component's own word first."""
        own = self.policy.components.get(self.skill)
        if measure.kind == "field":
            return [own.fields[measure.name]] if own and measure.name in own.fields else []
        said = [own.metrics.get(measure.name) if own else None, self.policy.metrics.get(measure.name)]
        return [one for one in said if one is not None]


class Waiver(StrictModel):
    """A file in `.evaluator/waivers/`: a regression of a metric or field that is accepted until a day, and why."""

    component: str
    metric: str | None = None
    field: str | None = None
    model: str | None = None
    reason: str = Field(min_length=1)
    expires: datetime.date

    @property
    def measure(self) -> str:
        """The metric or field."""
        return str(self.metric or self.field)


def load_waivers(config_dir: Path) -> list[Waiver]:
    """Read every waiver, expired ones too; raises ConfigError."""
    found = []
    for path in sorted((config_dir / "waivers").glob("*.y*ml")):
        waiver = validated(Waiver, read_yaml(path), path)
        if (waiver.metric is None) == (waiver.field is None):
            raise ConfigError(f"{path} must name either a metric or a field")
        found.append(waiver)
    return found


def waiver_for(measure: Measure, skill: str, model_id: str, waivers: list[Waiver]) -> Waiver | None:
    """The waiver of a measure that ends last, in force or not."""
    kind = "field" if measure.kind == "field" else "metric"
    fitting = [
        one
        for one in waivers
        if (one.component, getattr(one, kind)) == (skill, measure.name) and one.model in (None, model_id)
    ]
    return max(fitting, key=lambda one: one.expires, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """What verdicts are drawn by: the rules, the share that must be covered, the waivers and the day."""

    rules: TierRules
    required_coverage: float
    waivers: list[Waiver]
    today: datetime.date


if TYPE_CHECKING:  # numpy is imported where an effect is measured
    from skill_evaluator.verdicts.effects import Effect

Tiered = tuple[Literal["critical", "supporting", "advisory"], VerdictName]
WORST_FIRST: tuple[VerdictName, ...] = ("regressed", "inconclusive", "incomparable", "improved", "unchanged")


def verdict(effect: "Effect | None", q: float | None, tolerance: float, alpha: float, *, covered: bool) -> VerdictName:
    """What an effect says: it must exclude a drop beyond the tolerance to be anything but regressed or inconclusive.

    `covered`: whether enough of what was planned was measured. No effect is no answer. Where a failure may have gone
    unseen in more answers than is tolerated, nothing is unchanged, however little the answers vary.
    """
    if effect is None or q is None or not covered:
        return "inconclusive"
    beyond_chance = q <= alpha
    if effect.ci95[0] >= -tolerance:
        if beyond_chance and effect.difference > 0:
            return "improved"
        return "unchanged" if effect.unseen <= tolerance else "inconclusive"
    return "regressed" if beyond_chance and effect.difference < 0 else "inconclusive"


def of_model(tiered: Iterable[Tiered]) -> VerdictName:
    """The verdict on a model from those on its measures.

    A regression decides unless it is advisory; only a critical measure holds a verdict up by being inconclusive.
    """
    deciding = [(tier, said) for tier, said in tiered if tier != "advisory"]
    critical = [said for tier, said in deciding if tier == "critical"]
    if any(said == "regressed" for _, said in deciding):
        return "regressed"
    if not critical or "inconclusive" in critical:
        return "inconclusive"
    if "incomparable" in critical:
        return "incomparable"
    return "improved" if "improved" in critical else "unchanged"


def of_component(verdicts: Iterable[VerdictName]) -> VerdictName:
    """The verdict on a component: that of the model for which it is worst; of nothing, none can be drawn."""
    return min(verdicts, key=WORST_FIRST.index, default="incomparable")


def exit_code(verdict: VerdictName, fail_on: Iterable[str]) -> int:
    """0, or what the policy makes of a verdict: 3 of a regression, 4 of one that says nothing either way."""
    if verdict not in fail_on:
        return EXIT_OK
    return EXIT_REGRESSED if verdict == "regressed" else EXIT_INCOMPLETE
