"""The findings of an audit, as `audit report --format json` prints them and as `report.json` keeps them.

Figures are per cent right; spreads are in the same points. Nothing is computed here.
"""

from pathlib import Path
from typing import Literal

from skill_evaluator.audit.request import Resampled
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, read_versioned

Quadrant = Literal["safe default", "predictable baseline", "strong but scenario-fragile", "avoid"]
Interval = tuple[float, float]
AUDIT_VERSION = 1
REPORTED = "report.json"


class BenchmarkFigures(FrozenModel):
    """One model on one benchmark alone; its grade is among the models on this benchmark."""

    ability: float
    fluctuation: float
    grade: str | None = None
    corrected: float | None = None


class Worst(FrozenModel):
    """A model's tail: the scenario it is weakest in, its score there, and how far below its ability that is."""

    scenario: str
    score: float
    drop: float


class Beyond(FrozenModel):
    """The fluctuation over other scenarios like these; it rests on a model of their effects (`AuditResult.premise`)."""

    fluctuation_ci95: Interval | None
    grade_probability: dict[str, float] | None = None


class ModelAudit(FrozenModel):
    """One model. `scenarios`: its score in each. `noise`: the spread that chance alone would give (a standard
    deviation; what counts as chance goes by what is resampled), `corrected`: the fluctuation without it; None: unknown.

    `fluctuation_ci95` is that of the true fluctuation: where the noise is known it is taken off, and `corrected_ci95`
    is the same. It and `grade_probability` are of these scenarios where `resampled` is cases, else of others like them.

    `grade` goes by `fluctuation` as measured, `corrected_grade` by `corrected`; `shares` of the variance by benchmark.
    `answers`: how many were scored, and how many were unparseable, refused or truncated (and count as wrong) or failed.
    """

    model: str
    ability: float
    ability_ci95: Interval | None = None
    fluctuation: float
    fluctuation_ci95: Interval | None = None
    grade: str | None
    quadrant: Quadrant | None
    grade_probability: dict[str, float] | None = None
    noise: float | None = None
    corrected: float | None = None
    corrected_ci95: Interval | None = None
    corrected_grade: str | None = None
    benchmarks: dict[str, BenchmarkFigures]
    shares: dict[str, float]
    scenarios: dict[str, float]
    worst: Worst
    beyond: Beyond | None = None
    answers: dict[str, int] | None = None
    usd_per_1000_right: float | None = None
    latency_s: float | None = None

    @property
    def odds(self) -> float | None:
        """The probability of the grade that is printed."""
        return self.odds_among(self.grade_probability)

    def odds_among(self, probabilities: dict[str, float] | None) -> float | None:
        """Return the probability of the grade that is printed, among those of all grades."""
        return (probabilities or {}).get(self.grade) if self.grade else None


class Thresholds(FrozenModel):
    """Quartiles of the fluctuation over the cohort; `cuts` are all of them where finer grades were asked for."""

    q25: float
    q50: float
    q75: float
    cuts: dict[str, float] = {}


class Medians(FrozenModel):
    """The cohort's medians, where the quadrants meet."""

    ability: float
    fluctuation: float


class Shift(FrozenModel):
    """A scenario that moves all models alike: by how many points on average, p, and q over the scenarios."""

    scenario: str
    shift: float
    p: float
    q: float
    significant: bool


class Neutrality(FrozenModel):
    """The tests whether the scenarios are alike in difficulty. `means`: over the models, by scenario, in order.

    `range` is largest less smallest mean; `trend_p` of a trend along the order (Mann and Kendall), `friedman_p` of any
    difference at all.
    """

    means: list[float]
    range: float
    trend_tau: float | None = None
    trend_p: float | None
    friedman_p: float | None = None
    shifts: list[Shift] = []
    verdict: str


class Ranked(FrozenModel):
    """One place in a regime's list, and why in a sentence."""

    model: str
    reason: str


class Regime(FrozenModel):
    """The models to take under a regime, best first; `note` says what the order goes by, or why it is missing."""

    title: str
    note: str
    ranked: list[Ranked]


class BenchmarkUsed(FrozenModel):
    """A benchmark as it was used; `questions` is None where a table does not say.

    `thresholds`: the quartiles of the models' fluctuations on this benchmark, by which they are graded on it.
    """

    name: str
    weight: float
    questions: int | None
    thresholds: Thresholds | None = None
    noise_floor: float | None = None
    noise_ceiling: float | None = None


class AuditResult(FrozenModel):
    """The whole audit. `premise`: the assumption behind all statements about other scenarios."""

    audit_version: int = AUDIT_VERSION
    cohort: list[str]
    scenarios: list[str]
    used: list[BenchmarkUsed]
    replicates: int | None
    treatment: str | None = None
    resampled: Resampled
    draws: int
    premise: str | None = None
    models: list[ModelAudit]
    thresholds: Thresholds | None
    medians: Medians | None
    noise_floor: float | None = None
    noise_ceiling: float | None = None
    neutrality: Neutrality
    regimes: dict[str, Regime]
    warnings: list[str]


def read_audit(path: Path) -> AuditResult:
    """Read an earlier audit's report.json; raise AuditError when it is broken or of a newer version."""
    return read_versioned(AuditResult, path, "audit_version", AUDIT_VERSION, AuditError)
