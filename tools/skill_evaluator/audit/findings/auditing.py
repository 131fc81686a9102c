"""Runs or a table → a cube → everything an audit finds: the statistics, each computed in a module of its own."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skill_evaluator.audit.cube import Cube, Floats, read_cube
from skill_evaluator.audit.findings.advice import cautions, cohort_changes, premise_of, regimes_of
from skill_evaluator.audit.request import AuditReportRequest, Resampled
from skill_evaluator.audit.results import (
    REPORTED,
    AuditResult,
    BenchmarkFigures,
    BenchmarkUsed,
    Beyond,
    ModelAudit,
    read_audit,
)
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.plan import AUDIT, read_audit_plan
from skill_evaluator.audit.statistics import figures
from skill_evaluator.audit.statistics.grades import (
    QUARTERS,
    GradeOdds,
    grade_odds,
    grades_of,
    medians_of,
    quadrants_of,
    scale_of,
    thresholds_of,
)
from skill_evaluator.audit.statistics.posterior import DRAWS, draw_posterior
from skill_evaluator.audit.statistics.uncertainty import (
    Intervals,
    bounds,
    corrected_fluctuation,
    intervals_of,
    most_noise,
    noise_of,
)
from skill_evaluator.errors import AuditError
from skill_evaluator.text import nearest


class _Measured:
    """What is measured of all models, over all benchmarks or on one: arrays by model."""

    def __init__(self, cube: Cube, resampled: Resampled, scale: Sequence[str]) -> None:
        self.abilities, self.fluctuations = figures.abilities(cube), figures.fluctuations(cube)
        self.noise = noise_of(cube, resampled)
        self.grades = grades_of(self.fluctuations, scale)
        self.thresholds = thresholds_of(self.fluctuations, scale)
        self.corrected: Floats | None = None  # None where the noise is not known
        if self.noise.floor is not None:
            variance, degrees = cube.overall.var(axis=1, ddof=1), len(cube.scenarios) - 1
            self.corrected = corrected_fluctuation(variance, self.noise.floor, degrees, resampled)
        self.noise_floor, self.noise_ceiling = _typical(self.noise.floor), _typical(most_noise(cube))


def audit(
    cube: Cube, *, resampled: Resampled | None = None, bins: int = len(QUARTERS), previous: AuditResult | None = None
) -> AuditResult:
    """Audit a cube of at least two scenarios; raise AuditError for fewer, or for what its table cannot tell.

    `resampled`: what the intervals are over; by default cases where single answers are known, so that they hold for
    these very scenarios, else scenarios. On each benchmark the models are graded against each other there: a mean over
    benchmarks fluctuates less than each of them, so that its thresholds would make nearly every model a BBB.
    """
    if len(cube.scenarios) < 2:
        raise AuditError(f"one scenario ({cube.scenarios[0]}) shows no fluctuation; use at least 2, better 10")
    if resampled in ("cases", "both") and cube.outcomes is None:
        raise AuditError(
            f"--resample {resampled} needs single answers; this table has scores only: --resample scenarios"
        )
    scale = scale_of(bins, len(cube.models))
    resampled = resampled or ("scenarios" if cube.outcomes is None else "cases")
    measured = _Measured(cube, resampled, scale)
    alone = {name: _Measured(cube.on(name), resampled, scale) for name in cube.benchmarks}
    noise = measured.noise
    posterior = draw_posterior(cube.overall, noise.cells, noise.degrees * (len(cube.scenarios) - 1))
    beyond = None if posterior is None else grade_odds(posterior.beyond, len(scale))
    odds = beyond
    if resampled == "cases":
        odds = None if posterior is None or noise.cells is None else grade_odds(posterior.here, len(scale))
    intervals = intervals_of(cube.overall, noise, posterior, resampled)
    if measured.corrected is not None:  # an estimate lies in its interval
        np.minimum(intervals.fluctuation[:, 0], measured.corrected, out=intervals.fluctuation[:, 0])
    models = _audit_models(cube, measured, alone, intervals, (odds, beyond), scale)
    first = int(measured.fluctuations.argmin())
    steadiest = None if odds is None else (cube.models[first], float(odds.most_stable[first]))
    return AuditResult.view(
        measured,
        cohort=list(cube.models),
        scenarios=list(cube.scenarios),
        used=[
            BenchmarkUsed.view(on, name=name, weight=float(weight), questions=cube.questions.get(name))
            for (name, on), weight in zip(alone.items(), cube.weights, strict=True)
        ],
        replicates=cube.replicates,
        treatment=cube.treatment,
        resampled=resampled,
        draws=DRAWS,
        premise=premise_of(len(cube.scenarios), posterior),
        models=sorted(models, key=lambda model: (model.fluctuation, -model.ability)),
        medians=medians_of(measured.abilities, measured.fluctuations),
        neutrality=figures.neutrality_of(cube),
        regimes=regimes_of(models),
        warnings=[
            *cautions(cube, models, steadiest, resampled),
            *(cohort_changes(cube.models, previous) if previous else []),
        ],
    )


def _audit_models(
    cube: Cube,
    measured: _Measured,
    alone: Mapping[str, _Measured],
    intervals: Intervals,
    odds: tuple[GradeOdds | None, GradeOdds | None],
    scale: Sequence[str],
) -> list[ModelAudit]:
    """Put together what is known of each model; `odds`: over what is resampled, and over other scenarios."""
    corrected, floor = measured.corrected, measured.noise.floor
    regraded = [None] * len(cube.models) if corrected is None else grades_of(corrected, scale)
    quadrants = quadrants_of(measured.abilities, measured.fluctuations)
    here, beyond = ([None] * len(cube.models) if each is None else each.by_model(scale) for each in odds)
    return [
        ModelAudit(
            model=name,
            ability=float(measured.abilities[m]),
            ability_ci95=bounds(intervals.ability, m),
            fluctuation=float(measured.fluctuations[m]),
            fluctuation_ci95=bounds(intervals.fluctuation, m),
            grade=measured.grades[m],
            quadrant=quadrants[m],
            grade_probability=here[m],
            noise=None if floor is None else float(np.sqrt(floor[m])),
            corrected=None if corrected is None else float(corrected[m]),
            corrected_ci95=None if floor is None else bounds(intervals.fluctuation, m),
            corrected_grade=regraded[m] if corrected is not None and corrected[m] > 0 else None,
            benchmarks={
                benchmark: BenchmarkFigures(
                    ability=float(on.abilities[m]),
                    fluctuation=float(on.fluctuations[m]),
                    grade=on.grades[m],
                    corrected=None if on.corrected is None else float(on.corrected[m]),
                )
                for benchmark, on in alone.items()
            },
            shares=figures.shares_by_benchmark(cube, m),
            scenarios=dict(zip(cube.scenarios, map(float, cube.overall[m]), strict=True)),
            worst=figures.worst_of(cube, m),
            beyond=Beyond(fluctuation_ci95=bounds(intervals.beyond, m), grade_probability=beyond[m]),
            answers=dict(cube.answers[name]) if name in cube.answers else None,
            usd_per_1000_right=figures.usd_per_1000_right(cube, m),
            latency_s=cube.spending[name].latency_s if name in cube.spending else None,
        )
        for m, name in enumerate(cube.models)
    ]


def _typical(variances: Floats | None) -> float | None:
    """Return the cohort's typical standard deviation: the root of the median variance."""
    return None if variances is None else float(np.sqrt(np.median(variances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAudit:
    """The findings of an audit and the models that answered nothing; `out`: where its files belong (None: nowhere)."""

    result: AuditResult
    cube: Cube
    absent: list[str]
    out: Path | None


def report_audit(request: AuditReportRequest) -> ReportedAudit:
    """Audit a table, or the runs below some folders; raise AuditError if they cannot be read or combined.

    The cohort is compared with that of the report that is named, else of the last one beside a single folder.
    """
    weights = _read_weights(request.weights)
    folders: tuple[Path, ...] = ()
    absent: list[str] = []
    remarks: list[str] = []
    if request.cube:
        if request.folders or request.plan:
            raise AuditError(
                "--cube cannot be combined with folders of runs or a plan: it is either a table or an audit"
            )
        cube = read_cube(request.cube, weights=weights, missing=request.missing)
        _refuse_unknown(weights, cube.benchmarks)
        if request.questions is not None and cube.outcomes is not None:
            raise AuditError("--questions is for a table of scores; this one has the questions themselves")
        if request.questions is not None:
            cube = replace(cube, questions=dict.fromkeys(cube.benchmarks, request.questions))
    else:
        folders = request.folders or tuple(sorted(path.parent for path in request.audits.glob(f"*/{AUDIT}"))[-1:])
        if not folders:
            raise AuditError(
                f"{request.audits} holds no audit; make one with audit run, or give a table with --cube FILE"
            )
        if request.questions is not None:
            raise AuditError("--questions is for a table of scores; an audit has the questions it was drawn with")
        gathered = gather(folders, request, read_audit_plan(request.plan).audit if request.plan else None)
        _refuse_unknown(weights, gathered.outcomes)
        cube, absent = gathered.cube(weights, request.missing), gathered.absent
        remarks = [f"left out, as nothing is there of them: {', '.join(absent)}"] if absent else []
        remarks += gathered.remarks
    previous = _read_previous(request.previous, folders)
    result = audit(cube, resampled=request.resampled, bins=request.grades, previous=previous)
    return ReportedAudit(
        result=result.model_copy(update={"warnings": [*remarks, *result.warnings]}),
        cube=cube,
        absent=absent,
        out=request.out or (folders[0] if len(folders) == 1 and (folders[0] / AUDIT).is_file() else None),
    )


def _read_weights(texts: Iterable[str]) -> dict[str, float]:
    """Read the weight of each benchmark from `NAME=W`; raise AuditError."""
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


def _refuse_unknown(weights: Iterable[str], benchmarks: Iterable[str]) -> None:
    for name in weights:
        if name not in benchmarks:
            raise AuditError(f"--weight names an unknown benchmark '{name}' {nearest(name, benchmarks)}")


def _read_previous(named: Path | None, folders: tuple[Path, ...]) -> AuditResult | None:
    """Read the audit to compare the cohort with: the one named, else the last that was reported before this one."""
    if named is not None:
        return read_audit(named / REPORTED if named.is_dir() else named)
    if len(folders) != 1:
        return None
    earlier = sorted(path for path in folders[0].parent.glob(f"*/{REPORTED}") if path.parent.name < folders[0].name)
    try:
        return read_audit(earlier[-1]) if earlier else None
    except AuditError as problem:  # of a file that nobody named
        print(f"warning: whether the cohort changed is not known: {problem}", file=sys.stderr)
        return None
