"""`audit report`: compute the result of an audit, which report.json stores."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import Field

from skill_evaluator.audit import statistics
from skill_evaluator.audit.calls import CallTally, gather
from skill_evaluator.audit.cube import Cube, read_cube
from skill_evaluator.audit.manifest import audit_folders, size_warnings
from skill_evaluator.audit.request import AuditReportRequest
from skill_evaluator.audit.statistics import GRADE_ORDER, QUARTERS, Medians, Neutrality, Quadrant, Thresholds
from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, NestingModel, flat_part, read_versioned
from skill_evaluator.records.record import ANSWERED, SCORED
from skill_evaluator.stats import Interval
from skill_evaluator.text import counted, listed, nearest

AUDIT_VERSION = 1
REPORTED = "report.json"
_MAX_UNSCORED = 0.1  # share of a model's outputs
_MAX_SHARE = 0.8  # share of σ² from one benchmark
_STABLE_GRADES = [grade for grade in GRADE_ORDER if grade.startswith("AA")]


class BenchmarkFigures(FrozenModel):
    """The figures of a model on one benchmark. Its grade is relative to the other models on this benchmark."""

    ability: float
    fluctuation: float
    grade: str | None = None
    corrected: float | None = Field(default=None, description="fluctuation without the noise; null if unknown")


class Grading(FrozenModel):
    """A model's grade and quadrant, relative to the other models. They are null if the audit has only one model."""

    grade: str | None
    settled: bool | None = Field(default=None, description="whether the interval is within the grade; null: unknown")
    centered_grade: str | None = Field(default=None, description="the grade if the scores are centered")
    quadrant: Quadrant | None


class CallFigures(FrozenModel):
    """The outputs, cost and median latency of a model's calls; each is null if the calls are unknown."""

    answers: dict[str, int] | None = Field(default=None, description="number of outputs by kind, such as unparseable")
    usd_per_1000_right: float | None = None
    latency_s: float | None = None


class ModelAudit(NestingModel):
    """The figures of one model; scores and ability are in per cent, fluctuation and noise in points."""

    model: str
    ability: float
    ability_ci95: Interval | None = None
    fluctuation: float
    fluctuation_ci95: Interval | None = Field(default=None, description="for other questions like these")
    grading: Grading = flat_part("grading")
    noise: float | None = Field(default=None, description="standard deviation of a score within a scenario")
    corrected: float | None = Field(default=None, description="fluctuation without the noise; null if unknown")
    benchmarks: dict[str, BenchmarkFigures]
    shares: dict[str, float] = Field(description="share of the variance by benchmark")
    scenarios: dict[str, float] = Field(description="score in each scenario")
    calls: CallFigures = flat_part("calls")


class RankEntry(FrozenModel):
    """A model in a ranking. `reason` is its ability and any note, such as `81.5 (no grade)`."""

    model: str
    reason: str


class Regime(FrozenModel):
    """A ranking of the models for one use, best first. `left_out`: models without the grade that the use requires."""

    title: str
    note: str
    ranked: list[RankEntry]
    left_out: list[RankEntry] = []


class BenchmarkUsed(FrozenModel):
    """A benchmark of the audit. `questions` is the number of its questions, or null if it is unknown."""

    name: str
    weight: float
    questions: int | None
    thresholds: Thresholds | None = None
    noise_floor: float | None = None
    noise_ceiling: float | None = None


class CohortFigures(FrozenModel):
    """The thresholds of the grades and quadrants, and the noise of the scores in points."""

    thresholds: Thresholds | None
    medians: Medians | None
    noise_floor: float | None = Field(default=None, description="median noise within a scenario, from replicates")
    noise_ceiling: float | None = Field(default=None, description="binomial noise, an upper bound")


class AuditResult(NestingModel):
    """The result of an audit. Its models are sorted by fluctuation, the most stable first."""

    audit_version: int = AUDIT_VERSION
    cohort: list[str]
    scenarios: list[str]
    used: list[BenchmarkUsed]
    replicates: int | None
    treatment: str | None = Field(default=None, description="the scores that were excluded or centered")
    models: list[ModelAudit]
    figures: CohortFigures = flat_part("figures")
    neutrality: Neutrality
    regraded: int | None = Field(default=None, description="number of grades that centering changes")
    regimes: dict[str, Regime]
    warnings: list[str]

    def best_first(self) -> list[ModelAudit]:
        """Return the models by grade, then by ability; models without a grade come last."""
        ranks = {model.model: GRADE_ORDER.get(model.grading.grade or "", len(GRADE_ORDER)) for model in self.models}
        return sorted(self.models, key=lambda model: (ranks[model.model], -model.ability, model.model))

    def ablest_first(self) -> list[ModelAudit]:
        """Return the models by ability, the highest first."""
        return sorted(self.models, key=lambda model: (-model.ability, model.model))


def read_audit(path: Path) -> AuditResult:
    """Read a report.json; raise AuditError if it is invalid or of a newer version."""
    return read_versioned(AuditResult, path, "audit_version", AUDIT_VERSION, AuditError)


def audit(
    cube: Cube, *, bins: int = len(QUARTERS), centered: bool = False, tallies: Mapping[str, CallTally] = {}
) -> AuditResult:
    """Compute the result of an audit from the scores in `cube`. `tallies` has the counts of calls by model, if known.

    `bins` is the number of grades: 4, or 8 for at least 20 models. If `centered`, use the scores of `Cube.centered`.
    Raise AuditError if `bins` is invalid, or if there are fewer than two scenarios.
    """
    if len(cube.scenarios) < 2:
        raise AuditError(f"an audit requires at least 2 scenarios, better 10; this one has {len(cube.scenarios)}")
    scale = statistics.scale_of(bins, len(cube.models))
    neutrality, centered_cube = statistics.neutrality_of(cube), cube.centered()
    raw_grades, new_grades = (statistics.grades_of(each.fluctuations, scale) for each in (cube, centered_cube))
    if centered:
        note = "scores are centered: each scenario's mean over the models is subtracted"
        cube = centered_cube.with_treatment(note)
    models = _model_audits(cube, scale, new_grades, tallies)
    return AuditResult.view(
        cube,
        cohort=list(cube.models),
        used=[
            BenchmarkUsed.view(
                _cohort_figures(cube.for_benchmark(name), scale),
                name=name,
                weight=float(weight),
                questions=cube.questions.get(name),
            )
            for name, weight in zip(cube.benchmarks, cube.weights, strict=True)
        ],
        models=sorted(models, key=lambda model: (model.fluctuation, -model.ability)),
        figures=_cohort_figures(cube, scale),
        neutrality=neutrality,
        regraded=None if len(cube.models) < 2 else sum(a != b for a, b in zip(raw_grades, new_grades, strict=True)),
        regimes=regimes_of(models),
        warnings=[
            *size_warnings(len(cube.models), len(cube.scenarios), cube.questions, cube.replicates),
            *_output_warnings(cube, models),
            *_grade_warnings(cube, models),
        ],
    )


def _cohort_figures(cube: Cube, scale: Sequence[str]) -> CohortFigures:
    noises = statistics.replicate_noise(cube), statistics.binomial_noise(cube)
    floor, ceiling = (None if noise is None else float(np.sqrt(np.median(noise))) for noise in noises)
    return CohortFigures(
        thresholds=statistics.thresholds_of(cube.fluctuations, scale),
        medians=statistics.medians_of(cube.abilities, cube.fluctuations),
        noise_floor=floor,
        noise_ceiling=ceiling,
    )


def _figures_by_model(cube: Cube, scale: Sequence[str]) -> list[BenchmarkFigures]:
    grades, noise = statistics.grades_of(cube.fluctuations, scale), statistics.replicate_noise(cube)
    corrected = [None] * len(grades)
    if noise is not None:
        corrected = statistics.without_noise(cube.fluctuations**2, noise).tolist()
    columns = zip(cube.abilities.tolist(), cube.fluctuations.tolist(), grades, corrected, strict=True)
    return [
        BenchmarkFigures(ability=ability, fluctuation=fluctuation, grade=grade, corrected=without_noise)
        for ability, fluctuation, grade, without_noise in columns
    ]


def _model_audits(
    cube: Cube, scale: Sequence[str], centered_grades: Sequence[str | None], tallies: Mapping[str, CallTally]
) -> list[ModelAudit]:
    by_benchmark = {name: _figures_by_model(cube.for_benchmark(name), scale) for name in cube.benchmarks}
    quadrants = statistics.quadrants_of(cube.abilities, cube.fluctuations)
    own_noise = statistics.replicate_noise(cube)
    noise, interval_of = statistics.question_noise(cube), statistics.fluctuation_interval
    if cube.outcomes is None:
        noise, interval_of = statistics.binomial_noise(cube), statistics.widest_interval
    cuts = statistics.upper_bounds(cube.fluctuations, len(scale))
    audits = []
    for m, figures in enumerate(_figures_by_model(cube, scale)):
        name, interval, settled = cube.models[m], None, None
        if noise is not None:
            interval = interval_of(figures.fluctuation**2, float(noise[m]), len(cube.scenarios))
        if noise is not None and interval is not None and figures.grade is not None:
            settled = statistics.is_settled(figures.fluctuation, interval, float(np.sqrt(noise[m])), cuts)
        audits.append(
            ModelAudit.view(
                figures,
                model=name,
                ability_ci95=statistics.ability_interval(cube, m),
                fluctuation_ci95=interval,
                grading=Grading(
                    grade=figures.grade, settled=settled, centered_grade=centered_grades[m], quadrant=quadrants[m]
                ),
                noise=None if own_noise is None else float(np.sqrt(own_noise[m])),
                benchmarks={benchmark: models[m] for benchmark, models in by_benchmark.items()},
                shares=shares_by_benchmark(cube, m),
                scenarios=dict(zip(cube.scenarios, map(float, cube.overall[m]), strict=True)),
                calls=_call_figures(tallies.get(name), figures.ability / 100),
            )
        )
    return audits


def _call_figures(tally: CallTally | None, right: float) -> CallFigures:
    if tally is None:
        return CallFigures()
    usd = tally.usd_per_output
    cost = None if usd is None or not right else 1000 * usd / right
    return CallFigures(answers=dict(tally.outcomes), usd_per_1000_right=cost, latency_s=tally.latency_s)


def shares_by_benchmark(cube: Cube, model: int) -> dict[str, float]:
    """Return each benchmark's share of the σ² of the model at index `model`: w·cov(S_b, S) ÷ σ².

    S_b are the scores in benchmark b, w is its weight, and S = Σ w·S_b. All shares are 0 if σ is 0.
    """
    scores = cube.scores[model] - cube.scores[model].mean(axis=0)
    total = scores @ cube.weights
    variance = float(total @ total)
    parts = cube.weights * (scores.T @ total)
    return {
        name: float(part / variance) if variance else 0.0 for name, part in zip(cube.benchmarks, parts, strict=True)
    }


def regimes_of(models: Sequence[ModelAudit]) -> dict[str, Regime]:
    """Rank the models for three uses. Return the rankings by name: `agentic`, `single-shot` and `cost-sensitive`.

    `agentic` ranks the models with a grade from AAA to AA- by ability. `single-shot` ranks all models by ability.
    `cost-sensitive` ranks the models with low fluctuation and low ability by cost, or by ability if a cost is unknown.
    """
    by_ability = sorted(models, key=lambda model: -model.ability)
    agentic, left_out, single_shot = [], [], []
    for model in by_ability:
        if model.grading.grade in _STABLE_GRADES:
            agentic.append(_entry(model))
        else:
            left_out.append(_entry(model, model.grading.grade or "no grade"))
        fragile = model.grading.quadrant == "strong but scenario-fragile"
        single_shot.append(_entry(model, "Q4: stability warning" if fragile else ""))
    predictable = [model for model in by_ability if model.grading.quadrant == "predictable baseline"]
    prices = {model.model: model.calls.usd_per_1000_right for model in predictable}
    costs = {name: usd for name, usd in prices.items() if usd is not None}
    by_cost = bool(predictable) and len(costs) == len(predictable)
    if by_cost:
        predictable.sort(key=lambda model: costs[model.model])
    cost_sensitive = [
        _entry(model, f"${costs[model.model]:.2f} for 1,000 right outputs" if by_cost else "") for model in predictable
    ]
    note = f"Q2, predictable at a lower ability, by {'cost' if by_cost else 'μ'}"
    return {
        "agentic": Regime(title="Agentic", note="AAA and AA, by μ", ranked=agentic, left_out=left_out),
        "single-shot": Regime(title="Single-shot", note="by μ", ranked=single_shot),
        "cost-sensitive": Regime(title="Cost-sensitive", note=note, ranked=cost_sensitive),
    }


def _entry(model: ModelAudit, note: str = "") -> RankEntry:
    return RankEntry(model=model.model, reason=f"{model.ability:.1f} ({note})" if note else f"{model.ability:.1f}")


def _output_warnings(cube: Cube, models: Sequence[ModelAudit]) -> Iterator[str]:
    high_shares = []
    for model in models:
        answers = model.calls.answers or {}
        outputs = sum(answers.get(kind, 0) for kind in ANSWERED)
        share = 1 - answers.get(SCORED, 0) / outputs if outputs else 0.0
        if share > _MAX_UNSCORED:
            high_shares.append(f"{model.model} {share:.0%}")
    if high_shares:
        yield f"many outputs are unparseable, refused or truncated, and count as wrong: {listed(high_shares)}"
    benchmarks = [outcomes.scores for outcomes in (cube.outcomes or {}).values()]
    n_missing = sum((np.isnan(scores).sum(axis=(1, 2, 3)) for scores in benchmarks), np.zeros(len(cube.models), int))
    planned = sum(scores[0].size for scores in benchmarks)
    gaps = [f"{name} {count:,}" for name, count in zip(cube.models, n_missing, strict=True) if count]
    if gaps:
        yield f"outputs are missing, of {planned:,} per model; means are over the others: {listed(gaps)}"


def _grade_warnings(cube: Cube, models: Sequence[ModelAudit]) -> Iterator[str]:
    if len(models) > 1 and np.ptp(cube.overall, axis=1).max() == 0:
        yield "each model has the same score in every scenario: look at the outputs (outcomes.csv) and at the scenarios"
        return
    noisy = [model.model for model in models if model.corrected == 0 and model.fluctuation > 0]
    if noisy:
        yield f"noise within a scenario explains the whole fluctuation of {listed(noisy)}"
    unsettled = [model.model for model in models if model.grading.settled is False]
    if unsettled:
        yield f"{len(unsettled)} of {counted(len(models), 'grade')} are not settled: add questions"
    for model in models:
        for benchmark, share in model.shares.items():
            if len(model.shares) > 1 and share > _MAX_SHARE:
                yield f"{min(share, 1.0):.0%} of the variance of {model.model} is from {benchmark}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAudit:
    """The result of an audit. `cube` still has scenarios excluded by `--without`; `absent`: models without outputs."""

    result: AuditResult
    cube: Cube
    absent: list[str]
    out: Path | None


def report_audit(request: AuditReportRequest) -> ReportedAudit:
    """Compute the result of an audit or of a table of scores. Raise AuditError if an input or option is invalid."""
    weights = _read_weights(request.weights)
    folder, absent, remarks = None, [], []
    tallies: Mapping[str, CallTally] = {}
    if request.cube:
        if request.folder:
            raise AuditError("--cube cannot be combined with an audit's folder")
        cube = read_cube(request.cube, weights=weights, missing=request.missing)
        _validate_names("--weight", "benchmark", weights, cube.benchmarks)
        if request.questions is not None:
            cube = replace(cube, questions=dict.fromkeys(cube.benchmarks, request.questions))
    else:
        folder = request.folder or next(reversed(audit_folders(request.audits)), None)
        if folder is None:
            raise AuditError(
                f"{request.audits} contains no audit; create one with `skill-evaluator audit run`, or use --cube FILE"
            )
        if request.questions is not None:
            raise AuditError("--questions requires --cube")
        gathered = gather(folder, request)
        _validate_names("--weight", "benchmark", weights, gathered.outcomes)
        cube, absent, tallies = gathered.cube(weights, request.missing), gathered.absent, gathered.tallies
        remarks = [f"excluded, since they have no output: {', '.join(absent)}"] if absent else []
        remarks += gathered.remarks
    _validate_names("--without", "scenario", request.without, cube.scenarios)
    selected = cube
    if request.without:
        note = f"excluded scenario {listed(list(dict.fromkeys(request.without)))} (--without)"
        remaining = [name for name in cube.scenarios if name not in request.without]
        selected = cube.select(cube.models, remaining).with_treatment(note)
    result = audit(selected, bins=request.grades, centered=request.centered, tallies=tallies)
    return ReportedAudit(
        result=result.model_copy(update={"warnings": [*remarks, *result.warnings]}),
        cube=cube,
        absent=absent,
        out=request.out or folder,
    )


def _read_weights(texts: Iterable[str]) -> dict[str, float]:
    weights = {}
    for text in texts:
        name, _, weight = text.rpartition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = math.nan
        if not name or not 0 < weights[name] < math.inf:
            raise AuditError(f"--weight '{text}' is not NAME=W with W above 0, such as quiz-reasoning=2")
    return weights


def _validate_names(option: str, noun: str, names: Iterable[str], valid_names: Collection[str]) -> None:
    for name in names:
        if name not in valid_names:
            raise AuditError(f"{option}: unknown {noun} '{name}' {nearest(name, valid_names)}")
