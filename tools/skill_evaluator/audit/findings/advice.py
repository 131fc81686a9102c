"""Which model to prefer under which regime, and the warnings of an audit.

Agentic: an error in one step spoils the following ones, so only the grades AAA and AA are considered, by ability.
Single-shot: every output stands alone, so ability decides, with a warning for fragile models. Cost-sensitive:
predictable models of lower ability (Q2), by cost if it is known.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from skill_evaluator.audit.cube import Cube
from skill_evaluator.audit.results import ModelAudit, RankEntry, Regime
from skill_evaluator.audit.run.manifest import size_warnings
from skill_evaluator.audit.statistics.grades import GRADE_ORDER
from skill_evaluator.records.record import ANSWERED, SCORED
from skill_evaluator.text import counted, listed

_MAX_UNSCORED = 0.1  # of a model's outputs
_MAX_SHARE = 0.8  # of σ² that one benchmark may contribute
_STABLE_GRADES = [grade for grade in GRADE_ORDER if grade.startswith("AA")]


def regimes_of(models: Sequence[ModelAudit]) -> dict[str, Regime]:
    """Return the three regimes by name."""
    by_ability = sorted(models, key=lambda model: -model.ability)
    return {
        "agentic": _agentic(by_ability),
        "single-shot": _single_shot(by_ability),
        "cost-sensitive": _cost_sensitive(by_ability),
    }


def _agentic(by_ability: Sequence[ModelAudit]) -> Regime:
    stable = [model for model in by_ability if model.grade in _STABLE_GRADES]
    return Regime(
        title="Agentic",
        note="AAA and AA, by μ",
        ranked=[RankEntry(model=model.model, reason=f"{model.ability:.1f}") for model in stable],
        left_out=[
            RankEntry(model=model.model, reason=f"{model.ability:.1f} ({model.grade or 'no grade'})")
            for model in by_ability
            if model not in stable
        ],
    )


def _single_shot(by_ability: Sequence[ModelAudit]) -> Regime:
    ranked = []
    for model in by_ability:
        warning = " (Q4: stability warning)" if model.quadrant == "strong but scenario-fragile" else ""
        ranked.append(RankEntry(model=model.model, reason=f"{model.ability:.1f}{warning}"))
    return Regime(title="Single-shot", note="by μ", ranked=ranked)


def _cost_sensitive(by_ability: Sequence[ModelAudit]) -> Regime:
    predictable = [model for model in by_ability if model.quadrant == "predictable baseline"]
    priced = bool(predictable) and all(model.usd_per_1000_right is not None for model in predictable)
    if priced:
        predictable.sort(key=lambda model: model.usd_per_1000_right or 0.0)
    ranked = []
    for model in predictable:
        price = f" (${model.usd_per_1000_right:.2f} for 1,000 right outputs)" if priced else ""
        ranked.append(RankEntry(model=model.model, reason=f"{model.ability:.1f}{price}"))
    note = f"Q2, predictable at a lower ability, by {'cost' if priced else 'μ'}"
    return Regime(title="Cost-sensitive", note=note, ranked=ranked)


def warnings_of(cube: Cube, models: Sequence[ModelAudit]) -> list[str]:
    """Return the warnings about an audit's size, outputs and grades, one sentence each."""
    return [
        *size_warnings(len(cube.models), len(cube.scenarios), cube.questions, cube.replicates),
        *_output_warnings(cube, models),
        *_grade_warnings(cube, models),
    ]


def _output_warnings(cube: Cube, models: Sequence[ModelAudit]) -> Iterator[str]:
    """Warn about unparseable outputs, which count as wrong, and about missing replicates."""
    unscored = []
    for model in models:
        answers = model.answers or {}
        answered = sum(answers.get(kind, 0) for kind in ANSWERED)
        share = 1 - answers.get(SCORED, 0) / answered if answered else 0.0
        if share > _MAX_UNSCORED:
            unscored.append(f"{model.model} {share:.0%}")
    if unscored:
        yield f"many outputs are unparseable, refused or truncated, and count as wrong: {listed(unscored)}"
    benchmarks = [outcomes.scores for outcomes in (cube.outcomes or {}).values()]
    missing = sum((np.isnan(scores).sum(axis=(1, 2, 3)) for scores in benchmarks), np.zeros(len(cube.models), int))
    planned = sum(scores[0].size for scores in benchmarks)
    holes = [f"{name} {count:,}" for name, count in zip(cube.models, missing, strict=True) if count]
    if holes:
        yield f"outputs are missing, of {planned:,} per model; means are over the others: {listed(holes)}"


def _grade_warnings(cube: Cube, models: Sequence[ModelAudit]) -> Iterator[str]:
    if len(models) > 1 and np.ptp(cube.overall, axis=1).max() == 0:
        yield "every score is the same in every scenario: look at the outputs (outcomes.csv) and at the scenarios"
        return
    noisy = [model.model for model in models if model.corrected == 0 and model.fluctuation > 0]
    if noisy:
        yield f"noise within a scenario explains the whole fluctuation of {listed(noisy)}"
    unsettled = [model.model for model in models if model.settled is False]
    if unsettled:
        yield f"{len(unsettled)} of {counted(len(models), 'grade')} are not settled: more questions would tell"
    for model in models:
        for benchmark, share in model.shares.items():
            if len(model.shares) > 1 and share > _MAX_SHARE:
                yield f"{min(share, 1.0):.0%} of the variance of {model.model} is from {benchmark}"
