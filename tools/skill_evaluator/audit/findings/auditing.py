"""`audit report`: read an audit or a table of scores, and compute everything that its report shows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from skill_evaluator.audit.cube import Cube, Floats, read_cube
from skill_evaluator.audit.findings.advice import regimes_of, warnings_of
from skill_evaluator.audit.request import AuditReportRequest
from skill_evaluator.audit.results import AuditResult, BenchmarkFigures, BenchmarkUsed, ModelAudit
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.manifest import AUDIT
from skill_evaluator.audit.statistics.grades import (
    QUARTERS,
    cuts_of,
    grades_of,
    is_settled,
    medians_of,
    quadrants_of,
    scale_of,
    thresholds_of,
)
from skill_evaluator.audit.statistics.neutrality import neutrality_of
from skill_evaluator.audit.statistics.uncertainty import (
    ability_interval,
    binomial_noise,
    fluctuation_interval,
    question_noise,
    replicate_noise,
    widest_interval,
    without_noise,
)
from skill_evaluator.errors import AuditError
from skill_evaluator.text import listed, nearest


class _Figures:
    """The figures of all models, over all benchmarks or on one: arrays by model."""

    def __init__(self, cube: Cube, scale: Sequence[str]) -> None:
        self.abilities, self.fluctuations = cube.abilities, cube.fluctuations
        self.grades = grades_of(self.fluctuations, scale)
        self.thresholds = thresholds_of(self.fluctuations, scale)
        self.noise, ceiling = replicate_noise(cube), binomial_noise(cube)
        self.corrected = None if self.noise is None else without_noise(self.fluctuations**2, self.noise)
        self.noise_floor, self.noise_ceiling = _typical(self.noise), _typical(ceiling)


def audit(cube: Cube, *, bins: int = len(QUARTERS), centered: bool = False) -> AuditResult:
    """Audit a cube of at least two scenarios; raise AuditError for fewer.

    On each benchmark the models are graded against each other there: a mean over benchmarks fluctuates less than each
    of them, so that its thresholds would make nearly every model a BBB. `centered`: fluctuations and grades are those
    of the centered scores; the neutrality test always uses the scores as measured.
    """
    if len(cube.scenarios) < 2:
        raise AuditError(f"one scenario ({cube.scenarios[0]}) has no fluctuation; use at least 2, better 10")
    scale = scale_of(bins, len(cube.models))
    neutrality, shifted = neutrality_of(cube), cube.centered()
    plain, center = (grades_of(each.fluctuations, scale) for each in (cube, shifted))
    if centered:
        note = "scores are centered: each scenario's mean over the models is subtracted"
        cube = replace(shifted, treatment=f"{cube.treatment}; {note}" if cube.treatment else note)
    overall = _Figures(cube, scale)
    alone = {name: _Figures(cube.on(name), scale) for name in cube.benchmarks}
    models = _model_audits(cube, overall, alone, center, scale)
    return AuditResult.view(
        overall,
        cohort=list(cube.models),
        scenarios=list(cube.scenarios),
        used=[
            BenchmarkUsed.view(on, name=name, weight=float(weight), questions=cube.questions.get(name))
            for (name, on), weight in zip(alone.items(), cube.weights, strict=True)
        ],
        replicates=cube.replicates,
        treatment=cube.treatment,
        models=sorted(models, key=lambda model: (model.fluctuation, -model.ability)),
        medians=medians_of(overall.abilities, overall.fluctuations),
        neutrality=neutrality,
        regraded=None if len(cube.models) < 2 else sum(a != b for a, b in zip(plain, center, strict=True)),
        regimes=regimes_of(models),
        warnings=warnings_of(cube, models),
    )


def _model_audits(
    cube: Cube,
    overall: _Figures,
    alone: Mapping[str, _Figures],
    centered_grades: Sequence[str | None],
    scale: Sequence[str],
) -> list[ModelAudit]:
    quadrants = quadrants_of(overall.abilities, overall.fluctuations)
    noise, bounded = question_noise(cube), fluctuation_interval
    if cube.outcomes is None:
        noise, bounded = binomial_noise(cube), widest_interval
    cuts = cuts_of(overall.fluctuations, len(scale))
    audits = []
    for m, name in enumerate(cube.models):
        fluctuation, interval, settled = float(overall.fluctuations[m]), None, None
        if noise is not None:
            interval = bounded(fluctuation**2, float(noise[m]), len(cube.scenarios))
        if noise is not None and interval is not None and overall.grades[m] is not None:
            settled = is_settled(fluctuation, interval, float(np.sqrt(noise[m])), cuts)
        audits.append(
            ModelAudit(
                model=name,
                ability=float(overall.abilities[m]),
                ability_ci95=ability_interval(cube, m),
                fluctuation=fluctuation,
                fluctuation_ci95=interval,
                grade=overall.grades[m],
                settled=settled,
                centered_grade=centered_grades[m],
                quadrant=quadrants[m],
                noise=None if overall.noise is None else float(np.sqrt(overall.noise[m])),
                corrected=None if overall.corrected is None else float(overall.corrected[m]),
                benchmarks={benchmark: _on_benchmark(on, m) for benchmark, on in alone.items()},
                shares=shares_by_benchmark(cube, m),
                scenarios=dict(zip(cube.scenarios, map(float, cube.overall[m]), strict=True)),
                answers=dict(cube.answers[name]) if name in cube.answers else None,
                usd_per_1000_right=_usd_per_1000_right(cube, m),
                latency_s=cube.spending[name].latency_s if name in cube.spending else None,
            )
        )
    return audits


def _on_benchmark(on: _Figures, model: int) -> BenchmarkFigures:
    return BenchmarkFigures(
        ability=float(on.abilities[model]),
        fluctuation=float(on.fluctuations[model]),
        grade=on.grades[model],
        corrected=None if on.corrected is None else float(on.corrected[model]),
    )


def shares_by_benchmark(cube: Cube, model: int) -> dict[str, float]:
    """Return the share of a model's σ² that each benchmark contributes: w·cov(S_b, S) ÷ σ².

    The shares sum to 1; if σ is 0, each is 0.
    """
    scores = cube.scores[model] - cube.scores[model].mean(axis=0)
    total = scores @ cube.weights
    variance = float(total @ total)
    parts = cube.weights * (scores.T @ total)
    return {
        name: float(part / variance) if variance else 0.0 for name, part in zip(cube.benchmarks, parts, strict=True)
    }


def _usd_per_1000_right(cube: Cube, model: int) -> float | None:
    """Return the cost of 1,000 right outputs in USD; None if the cost is unknown or no output is right."""
    spent, ability = cube.spending.get(cube.models[model]), float(cube.abilities[model])
    if spent is None or spent.usd_per_call is None or ability == 0:
        return None
    return 1000 * spent.usd_per_call / (ability / 100)


def _typical(variances: Floats | None) -> float | None:
    """Return the root of the median variance over the models."""
    return None if variances is None else float(np.sqrt(np.median(variances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAudit:
    """An audit's result and cube (as measured), the models without outputs, and the folder for its files, if any."""

    result: AuditResult
    cube: Cube
    absent: list[str]
    out: Path | None


def report_audit(request: AuditReportRequest) -> ReportedAudit:
    """Audit a table of scores or an audit's folder; raise AuditError if it cannot be read."""
    weights = _read_weights(request.weights)
    folder, absent, remarks = None, [], []
    if request.cube:
        cube = _read_table(request, weights)
    else:
        folder = request.folder or next(iter(sorted(_folders(request), reverse=True)), None)
        if folder is None:
            raise AuditError(
                f"{request.audits} holds no audit; make one with audit run, or give a table with --cube FILE"
            )
        if request.questions is not None:
            raise AuditError("--questions is for --cube; an audit knows its questions")
        gathered = gather(folder, request)
        _validate_names("--weight", weights, gathered.outcomes)
        cube, absent = gathered.cube(weights, request.missing), gathered.absent
        remarks = [f"left out, without any output: {', '.join(absent)}"] if absent else []
        remarks += gathered.remarks
    result = audit(_without(cube, request.without), bins=request.grades, centered=request.centered)
    return ReportedAudit(
        result=result.model_copy(update={"warnings": [*remarks, *result.warnings]}),
        cube=cube,
        absent=absent,
        out=request.out or folder,
    )


def _folders(request: AuditReportRequest) -> list[Path]:
    return [path.parent for path in request.audits.glob(f"*/{AUDIT}")]


def _read_table(request: AuditReportRequest, weights: Mapping[str, float]) -> Cube:
    if request.cube is None or request.folder:
        raise AuditError("--cube cannot be combined with an audit's folder")
    cube = read_cube(request.cube, weights=weights, missing=request.missing)
    _validate_names("--weight", weights, cube.benchmarks)
    if request.questions is None:
        return cube
    return replace(cube, questions=dict.fromkeys(cube.benchmarks, request.questions))


def _without(cube: Cube, names: Sequence[str]) -> Cube:
    """Return the cube without some scenarios, which its treatment names; raise AuditError for unknown ones."""
    if not names:
        return cube
    _validate_names("--without", names, cube.scenarios)
    note = f"left out scenario {listed(list(dict.fromkeys(names)))} (--without)"
    rest = [name for name in cube.scenarios if name not in names]
    if not rest:
        raise AuditError("--without leaves out every scenario")
    return replace(cube.within(rest), treatment=f"{cube.treatment}; {note}" if cube.treatment else note)


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


def _validate_names(flag: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            noun = "scenario" if flag == "--without" else "benchmark"
            raise AuditError(f"{flag}: unknown {noun} '{name}' {nearest(name, known)}")
