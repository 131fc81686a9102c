"""The result of an audit, as report.json stores it: scores in per cent, fluctuations and noise in points."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, read_versioned
from skill_evaluator.stats import Interval

Quadrant = Literal["safe default", "predictable baseline", "strong but scenario-fragile", "avoid"]
QUADRANTS: dict[Quadrant, str] = {  # numbered as in the paper
    "safe default": "Q1",
    "predictable baseline": "Q2",
    "avoid": "Q3",
    "strong but scenario-fragile": "Q4",
}
QUARTERS = ("AAA", "AA", "A", "BBB")
_FINER = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB")
SCALES = {len(scale): scale for scale in (QUARTERS, _FINER)}
GRADE_ORDER = {grade: index for index, grade in enumerate(_FINER)}  # the grades of both scales, best first
AUDIT_VERSION = 1
REPORTED = "report.json"


class BenchmarkFigures(FrozenModel):
    """The figures of a model on one benchmark. Its grade is relative to the other models on this benchmark."""

    ability: float
    fluctuation: float
    grade: str | None = None
    corrected: float | None = Field(default=None, description="fluctuation without the noise; null if unknown")


class ModelAudit(FrozenModel):
    """One model; `grade` and `quadrant` are relative to the cohort and null for a model alone."""

    model: str
    ability: float
    ability_ci95: Interval | None = None
    fluctuation: float
    fluctuation_ci95: Interval | None = Field(default=None, description="for other questions like these")
    grade: str | None
    settled: bool | None = Field(default=None, description="whether the interval is within the grade; null: unknown")
    centered_grade: str | None = Field(default=None, description="the grade if the scores are centered")
    quadrant: Quadrant | None
    noise: float | None = Field(default=None, description="standard deviation of a score within a scenario")
    corrected: float | None = Field(default=None, description="fluctuation without the noise; null if unknown")
    benchmarks: dict[str, BenchmarkFigures]
    shares: dict[str, float] = Field(description="share of the variance by benchmark")
    scenarios: dict[str, float] = Field(description="score in each scenario")
    answers: dict[str, int] | None = Field(default=None, description="number of outputs by kind, such as unparseable")
    usd_per_1000_right: float | None = None
    latency_s: float | None = None


class Thresholds(FrozenModel):
    """Quartiles of the fluctuation over the cohort. `cuts`: upper bounds by grade, if there are more than 4 grades."""

    q25: float
    q50: float
    q75: float
    cuts: dict[str, float] = {}


class Medians(FrozenModel):
    """The medians of ability and fluctuation over the cohort, which separate the quadrants."""

    ability: float
    fluctuation: float


class ScenarioEffect(FrozenModel):
    """The median shift of a scenario over the models; `ratio` is its size in standard errors."""

    scenario: str
    shift: float
    ratio: float | None = None
    significant: bool


class Neutrality(FrozenModel):
    """Whether the scenarios are equally hard. `means` has each scenario's mean over the models, in order."""

    means: list[float]
    range: float = Field(description="largest less smallest mean")
    limit: float | None = Field(default=None, description="a larger ratio is significant; null: not tested")
    shifts: list[ScenarioEffect] = []
    verdict: str


class RankEntry(FrozenModel):
    """A model in a ranking; `reason` begins with the ability."""

    model: str
    reason: str


class Regime(FrozenModel):
    """A use of models and the models to prefer for it, best first.

    `left_out`: in the agentic regime the models without a grade from AAA to AA-.
    """

    title: str
    note: str
    ranked: list[RankEntry]
    left_out: list[RankEntry] = []


class BenchmarkUsed(FrozenModel):
    """A benchmark of the audit. `questions` is their number, or null if it is unknown."""

    name: str
    weight: float
    questions: int | None
    thresholds: Thresholds | None = None
    noise_floor: float | None = None
    noise_ceiling: float | None = None


class AuditResult(FrozenModel):
    """The result of an audit, its models sorted by fluctuation."""

    audit_version: int = AUDIT_VERSION
    cohort: list[str]
    scenarios: list[str]
    used: list[BenchmarkUsed]
    replicates: int | None
    treatment: str | None = Field(default=None, description="the scores that were excluded or centered")
    models: list[ModelAudit]
    thresholds: Thresholds | None
    medians: Medians | None
    noise_floor: float | None = Field(default=None, description="median noise within a scenario, from replicates")
    noise_ceiling: float | None = Field(default=None, description="binomial noise, an upper bound")
    neutrality: Neutrality
    regraded: int | None = Field(default=None, description="number of grades that centering changes")
    regimes: dict[str, Regime]
    warnings: list[str]

    def best_first(self) -> list[ModelAudit]:
        """Return the models by grade, then by ability; models without a grade come last."""
        ranks = {model.model: GRADE_ORDER.get(model.grade or "", len(GRADE_ORDER)) for model in self.models}
        return sorted(self.models, key=lambda model: (ranks[model.model], -model.ability, model.model))

    def ablest_first(self) -> list[ModelAudit]:
        """Return the models by ability, the highest first."""
        return sorted(self.models, key=lambda model: (-model.ability, model.model))


def read_audit(path: Path) -> AuditResult:
    """Read a report.json; raise AuditError if it is invalid or of a newer version."""
    return read_versioned(AuditResult, path, "audit_version", AUDIT_VERSION, AuditError)
