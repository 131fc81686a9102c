"""`.evaluator/waivers/`: regressions of a metric or field that somebody accepts until a day, a file for each.

Files in, checked waivers out; what they excuse is decided with the verdicts.
"""

import datetime
from pathlib import Path

from pydantic import Field

from skill_evaluator.errors import ConfigError, SkillEvaluatorError
from skill_evaluator.files import StrictModel, validated
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.roots import Root
from skill_evaluator.library.yaml_files import read_yaml
from skill_evaluator.stats import ROUNDING


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
