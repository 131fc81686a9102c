"""The policy of settings.yaml as it is for one component, and the waivers: regressions that somebody took on."""

import datetime
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from skill_evaluator.config import MetricPolicy, Policy, Tier
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import read_yaml, validated
from skill_evaluator.regression.measures import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
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


class Waiver(BaseModel):
    """A file in `.evaluator/waivers/`: a regression of a metric or field that is accepted until a day, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
class Judge:
    """What verdicts are drawn by: the rules, the share that must be covered, the waivers and the day."""

    rules: Rules
    required_coverage: float
    waivers: list[Waiver]
    today: datetime.date
