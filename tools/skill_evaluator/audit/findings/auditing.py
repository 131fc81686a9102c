"""A cube → everything an audit finds: the statistics, each computed in a module of its own, put together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skill_evaluator.audit.cube.cube import Cube, Floats
from skill_evaluator.audit.findings.advice import cautions, cohort_changes, premise_of, regimes_of
from skill_evaluator.audit.findings.results import AuditResult, BenchmarkFigures, BenchmarkUsed, Beyond, ModelAudit
from skill_evaluator.audit.request import Resampled
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
from skill_evaluator.audit.statistics.posterior import DRAWS, Posterior, draw_posterior
from skill_evaluator.audit.statistics.uncertainty import (
    Intervals,
    Noise,
    bounds,
    corrected_fluctuation,
    intervals_of,
    most_noise,
    noise_of,
)
from skill_evaluator.errors import AuditError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CohortFigures:
    """The statistics that are computed for all models at once."""

    abilities: Floats
    fluctuations: Floats
    corrected: Floats | None
    noise: Noise
    intervals: Intervals
    odds: GradeOdds | None
    odds_beyond: GradeOdds | None
    posterior: Posterior | None


def audit(
    cube: Cube,
    *,
    resampled: Resampled | None = None,
    bins: int = len(QUARTERS),
    previous: AuditResult | None = None,
) -> AuditResult:
    """Audit a cube of at least two scenarios; raise AuditError for fewer, or for what its table cannot tell.

    `resampled`: what the intervals are over; by default cases where single answers are known, so that they hold for
    these very scenarios, else scenarios.
    """
    if len(cube.scenarios) < 2:
        raise AuditError(f"one scenario ({cube.scenarios[0]}) has no fluctuation; give at least two, better ten")
    if resampled in ("cases", "both") and cube.outcomes is None:
        raise AuditError(
            f"--resample {resampled} needs single answers; this table has scores only: --resample scenarios"
        )
    scale = scale_of(bins, len(cube.models))
    resampled = resampled or ("scenarios" if cube.outcomes is None else "cases")
    measured = _measure(cube, resampled, scale)
    on_benchmarks = [_audit_benchmark(cube, name, resampled, scale) for name in cube.benchmarks]
    models = _audit_models(cube, measured, [models for _, models in on_benchmarks], scale)
    first = int(measured.fluctuations.argmin())
    steadiest = None if measured.odds is None else (cube.models[first], float(measured.odds.most_stable[first]))
    warnings = [
        *cautions(cube, models, steadiest, resampled),
        *(cohort_changes(cube.models, previous) if previous else []),
    ]
    return AuditResult(
        cohort=list(cube.models),
        scenarios=list(cube.scenarios),
        used=[used for used, _ in on_benchmarks],
        replicates=cube.replicates,
        treatment=cube.treatment,
        resampled=resampled,
        draws=DRAWS,
        premise=premise_of(len(cube.scenarios), measured.posterior),
        models=sorted(models, key=lambda model: (model.fluctuation, -model.ability)),
        thresholds=thresholds_of(measured.fluctuations, scale),
        medians=medians_of(measured.abilities, measured.fluctuations),
        noise_floor=_typical(measured.noise.floor),
        noise_ceiling=_typical(most_noise(cube)),
        neutrality=figures.neutrality_of(cube),
        regimes=regimes_of(models),
        warnings=warnings,
    )


def _audit_benchmark(
    cube: Cube, name: str, resampled: Resampled, scale: Sequence[str]
) -> tuple[BenchmarkUsed, list[BenchmarkFigures]]:
    """Return a benchmark with its thresholds and noise, and every model on it alone.

    The models are graded against each other on this benchmark: a mean over benchmarks fluctuates less than each of
    them, so that its thresholds would make nearly every model a BBB on nearly every benchmark.
    """
    alone = cube.on(name)
    noise = noise_of(alone, resampled)
    abilities, fluctuations = figures.abilities(alone), figures.fluctuations(alone)
    corrected = _corrected(alone, noise, resampled)
    used = BenchmarkUsed(
        name=name,
        weight=float(cube.weights[cube.benchmarks.index(name)]),
        questions=cube.questions.get(name),
        thresholds=thresholds_of(fluctuations, scale),
        noise_floor=_typical(noise.floor),
        noise_ceiling=_typical(most_noise(alone)),
    )
    return used, [
        BenchmarkFigures(
            ability=float(abilities[m]),
            fluctuation=float(fluctuations[m]),
            grade=grade,
            corrected=None if corrected is None else float(corrected[m]),
        )
        for m, grade in enumerate(grades_of(fluctuations, scale))
    ]


def _corrected(cube: Cube, noise: Noise, resampled: Resampled) -> Floats | None:
    """Return the fluctuations without their noise; None where it is not known."""
    if noise.floor is None:
        return None
    variance, degrees = cube.overall.var(axis=1, ddof=1), len(cube.scenarios) - 1
    return corrected_fluctuation(variance, noise.floor, degrees, resampled)


def _regraded(corrected: Floats | None, scale: Sequence[str], models: int) -> list[str | None]:
    """Return the grades of what is left without noise; a model of whose fluctuation nothing is left has none."""
    if corrected is None:
        return [None] * models
    return [grade if left > 0 else None for grade, left in zip(grades_of(corrected, scale), corrected, strict=True)]


def _measure(cube: Cube, resampled: Resampled, scale: Sequence[str]) -> _CohortFigures:
    overall = cube.overall
    noise = noise_of(cube, resampled)
    posterior = draw_posterior(overall, noise.cells, noise.degrees * (len(cube.scenarios) - 1))
    here = beyond = None
    if posterior is not None:
        beyond = grade_odds(posterior.beyond, len(scale))
        here = None if noise.cells is None else grade_odds(posterior.here, len(scale))
    return _CohortFigures(
        abilities=figures.abilities(cube),
        fluctuations=figures.fluctuations(cube),
        corrected=_corrected(cube, noise, resampled),
        noise=noise,
        intervals=intervals_of(overall, noise, posterior, resampled),
        odds=here if resampled == "cases" else beyond,
        odds_beyond=beyond,
        posterior=posterior,
    )


def _audit_models(
    cube: Cube, measured: _CohortFigures, on_benchmarks: Sequence[Sequence[BenchmarkFigures]], scale: Sequence[str]
) -> list[ModelAudit]:
    """Put together what is known of each model; `on_benchmarks`: by benchmark, each model on it alone."""
    grades = grades_of(measured.fluctuations, scale)
    corrected = _regraded(measured.corrected, scale, len(cube.models))
    quadrants = quadrants_of(measured.abilities, measured.fluctuations)
    intervals = measured.intervals
    return [
        ModelAudit(
            model=name,
            ability=float(measured.abilities[m]),
            ability_ci95=bounds(intervals.ability, m),
            fluctuation=float(measured.fluctuations[m]),
            fluctuation_ci95=bounds(intervals.fluctuation, m),
            grade=grades[m],
            quadrant=quadrants[m],
            grade_probability=_odds_of(measured.odds, m, scale),
            noise=None if measured.noise.floor is None else float(np.sqrt(measured.noise.floor[m])),
            corrected=None if measured.corrected is None else float(measured.corrected[m]),
            corrected_ci95=None if measured.noise.floor is None else bounds(intervals.fluctuation, m),
            corrected_grade=corrected[m],
            benchmarks={name: on[m] for name, on in zip(cube.benchmarks, on_benchmarks, strict=True)},
            shares=figures.shares_by_benchmark(cube, m),
            scenarios=dict(zip(cube.scenarios, map(float, cube.overall[m]), strict=True)),
            worst=figures.worst_of(cube, m),
            beyond=Beyond(
                fluctuation_ci95=bounds(intervals.beyond, m),
                grade_probability=_odds_of(measured.odds_beyond, m, scale),
            ),
            answers=dict(cube.answers[name]) if name in cube.answers else None,
            usd_per_1000_right=figures.usd_per_1000_right(cube, m),
            latency_s=cube.spending[name].latency_s if name in cube.spending else None,
        )
        for m, name in enumerate(cube.models)
    ]


def _odds_of(odds: GradeOdds | None, model: int, scale: Sequence[str]) -> dict[str, float] | None:
    return None if odds is None else dict(zip(scale, odds.probabilities[model].tolist(), strict=True))


def _typical(variances: Floats | None) -> float | None:
    """Return the cohort's typical standard deviation: the root of the median variance."""
    return None if variances is None else float(np.sqrt(np.median(variances)))
