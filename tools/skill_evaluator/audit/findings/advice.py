"""The advice of an audit in sentences: which model to take under which regime, and what to beware of."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from skill_evaluator.audit.cube.cube import Cube
from skill_evaluator.audit.findings.results import (
    FEWEST_MODELS,
    FEWEST_QUESTIONS,
    FEWEST_SCENARIOS,
    AuditResult,
    ModelAudit,
    Ranked,
    Regime,
)
from skill_evaluator.audit.statistics.grades import BEST_FIRST
from skill_evaluator.audit.statistics.significance import spread_p
from skill_evaluator.records.strict_score import ANSWERED, SCORED
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.effects import ALPHA, adjusted

SETTLED = 0.7  # what is less probable than this is said to be uncertain
_DEEP = 5.0  # points below its ability in its worst scenario
_LEAST_ABLE = 0.9  # of the best ability: a model that is cheap and mostly wrong is no bargain


def regimes_of(models: Sequence[ModelAudit]) -> dict[str, Regime]:
    """The three regimes by their names."""
    return {"agentic": _agentic(models), "single-shot": _single_shot(models), "cost-sensitive": _cheap(models)}


def is_settled(model: ModelAudit) -> bool:
    """Whether a model's printed grade is clearly its own; also when nobody knows the odds."""
    return model.odds is None or model.odds >= SETTLED


def _agentic(models: Sequence[ModelAudit]) -> Regime:
    order = sorted(models, key=lambda one: (BEST_FIRST[one.grade] if one.grade else 0, -one.ability))
    return Regime(
        title="Agentic: many steps, each on the one before",
        note="by grade, and within a grade by ability",
        ranked=[Ranked(model=one.model, reason=_why_stable(one)) for one in order],
    )


def _why_stable(model: ModelAudit) -> str:
    words = f"{_graded(model)} moves by {model.fluctuation:.2f} points at an ability of {model.ability:.1f}"
    return f"{words}; at its worst {model.worst.score:.1f} ({model.worst.scenario})"


def _graded(model: ModelAudit) -> str:
    if model.grade is None:
        return "ungraded,"
    return f"{model.grade}," if model.odds is None else f"{model.grade} (probability {model.odds:.2f}),"


def _single_shot(models: Sequence[ModelAudit]) -> Regime:
    order = sorted(models, key=lambda one: -one.ability)
    return Regime(
        title="Single-shot: every answer stands alone",
        note="by ability, with a warning where the prompt moves a model much",
        ranked=[Ranked(model=one.model, reason=_why_able(one)) for one in order],
    )


def _why_able(model: ModelAudit) -> str:
    words = f"ability {model.ability:.1f}"
    if model.ability_ci95 is not None:
        words += f" ({model.ability_ci95[0]:.1f} to {model.ability_ci95[1]:.1f})"
    cautions = []
    if model.quadrant == "strong but scenario-fragile":
        cautions.append("scenario-fragile")
    if model.worst.drop >= _DEEP:
        cautions.append(f"{model.worst.drop:.1f} points lower in {model.worst.scenario}")
    return f"{words}; beware: {', '.join(cautions)}" if cautions else words


def _cheap(models: Sequence[ModelAudit]) -> Regime:
    title = "Cost-sensitive: many answers on a budget"
    priced = [one for one in models if one.usd_per_1000_right is not None]
    if not priced:
        return Regime(title=title, note="no order: what a right answer costs is not known of any model", ranked=[])
    least = _LEAST_ABLE * max(one.ability for one in models)
    order = sorted(priced, key=lambda one: (one.ability < least, one.usd_per_1000_right, _or_last(one.latency_s)))
    unknown = [one.model for one in models if one.usd_per_1000_right is None]
    note = f"by the cost of 1,000 right answers, then latency; models below 90 % of the best ability ({least:.1f}) last"
    return Regime(
        title=title,
        note=f"{note}; not known of {', '.join(unknown)}" if unknown else note,
        ranked=[Ranked(model=one.model, reason=_why_cheap(one, one.ability < least)) for one in order],
    )


def _or_last(latency_s: float | None) -> float:
    return math.inf if latency_s is None else latency_s


def _why_cheap(model: ModelAudit, weak: bool) -> str:
    words = f"${model.usd_per_1000_right:.2f} for 1,000 right answers"
    if model.latency_s is not None:
        words += f", {model.latency_s:.2f} s each"
    words += f", ability {model.ability:.1f}"
    return f"{words}: too weak to be a bargain" if weak else words


_MOST_UNREAD = 0.1  # of a model's answers
_MOST_OF_ONE = 0.8  # share of σ² that one benchmark may carry


def cautions(cube: Cube, models: Sequence[ModelAudit], steadiest: tuple[str, float] | None) -> list[str]:
    """Warnings about the sample, the grades and what carries the fluctuation.

    `steadiest`: the model that moved least, and how probable it is that it does.
    """
    found = [
        *_about_size(cube),
        *_about_answers(models),
        *_about_missing(cube),
        *_about_likeness(cube),
        *_about_noise(models),
        *_about_grades(models, steadiest),
        *_about_shares(models),
    ]
    if cube.treatment is not None:
        found.append(f"{cube.treatment}; all figures are of what is left")
    return found


def cohort_changes(cohort: Sequence[str], previous: AuditResult) -> list[str]:
    """A warning where the models are not those of the last audit: grades are relative to the cohort."""
    came = [name for name in cohort if name not in previous.cohort]
    went = [name for name in previous.cohort if name not in cohort]
    if not came and not went:
        return []
    changes = [f"new: {listed(came)}"] * bool(came) + [f"gone: {listed(went)}"] * bool(went)
    return [
        f"the cohort changed since the last audit ({'; '.join(changes)}): grades are relative to it, so compare none"
    ]


def _about_size(cube: Cube) -> list[str]:
    found = []
    models, scenarios = cube.overall.shape
    if models < FEWEST_MODELS:
        known = (
            "a grade needs others to compare with"
            if models == 1
            else "quartiles of so few are hardly more than an order"
        )
        found.append(f"{counted(models, 'model')}, fewer than {FEWEST_MODELS}: {known}")
    if scenarios < FEWEST_SCENARIOS:
        found.append(
            f"{counted(scenarios, 'scenario')}, fewer than {FEWEST_SCENARIOS}: a fluctuation of so few is a guess"
        )
    few = {name: count for name, count in cube.questions.items() if count < FEWEST_QUESTIONS}
    if few:
        counts = ", ".join(f"{name} {count}" for name, count in few.items())
        found.append(
            f"fewer than {FEWEST_QUESTIONS} questions ({counts}): which they are may be much of the fluctuation"
        )
    if cube.outcomes is not None and cube.replicates == 1:
        found.append("one answer a question: how a model varies by itself is not told from what suits a question")
    return found


def _about_missing(cube: Cube) -> list[str]:
    """Replicates that nobody has, where another of the same question stands for them."""
    outcomes = list((cube.outcomes or {}).values())
    missing = sum((np.isnan(one.scores).sum(axis=(1, 2, 3)) for one in outcomes), np.zeros(len(cube.models), dtype=int))
    planned = sum(one.scores[0].size for one in outcomes)
    holes = [f"{name} {count:,}" for name, count in zip(cube.models, missing, strict=True) if count]
    if not holes:
        return []
    return [f"answers are missing, of {planned:,} a model, and means are of the replicates there are: {listed(holes)}"]


def _about_answers(models: Sequence[ModelAudit]) -> list[str]:
    """Models whose score says as much of the form of their answers as of what they know."""
    lost = [
        f"{one.model} {share:.0%}"
        for one in models
        if (share := _unread_share(one)) is not None and share > _MOST_UNREAD
    ]
    if not lost:
        return []
    return [f"answers that are unparseable, refused or cut off count as wrong, and are many of {listed(lost)}"]


def _unread_share(model: ModelAudit) -> float | None:
    """Of a model's answers, those that could not be scored and count as wrong; None where it is not known."""
    if model.answers is None:
        return None
    answered = sum(model.answers.get(kind, 0) for kind in ANSWERED)
    return 1 - model.answers.get(SCORED, 0) / answered if answered else None


def _about_likeness(cube: Cube) -> list[str]:
    """All fluctuations alike: no pair of models differs, after correction for the number of pairs."""
    overall = cube.overall
    if len(overall) < 2 or overall.shape[1] < 3:
        return []
    if np.ptp(overall, axis=1).max() == 0:
        return ["no model moved at all: every score is the same in every scenario"]
    p_values = [spread_p(one, other) for one, other in combinations(overall, 2)]
    least = min(adjusted([1.0 if p is None else p for p in p_values]))
    if least <= ALPHA:
        return []
    return [f"no two fluctuations differ beyond chance (q = {least:.2f} at best): the grades may rank noise"]


def _about_noise(models: Sequence[ModelAudit]) -> list[str]:
    """Models that chance alone would move as much."""
    still = [one.model for one in models if one.corrected == 0 and one.fluctuation > 0]
    if not still:
        return []
    return [f"nothing is left of {counted(len(still), 'fluctuation')} once its noise is taken off: {listed(still)}"]


def _about_grades(models: Sequence[ModelAudit], steadiest: tuple[str, float] | None) -> list[str]:
    found = []
    unsettled = [one for one in models if not is_settled(one)]
    if unsettled:
        names = [f"{one.model} {one.grade} {one.odds:.2f}" for one in unsettled]
        found.append(
            f"{len(unsettled)} of {counted(len(models), 'grade')} are not settled (the odds of each): {listed(names)}"
        )
    if steadiest is not None and steadiest[1] < SETTLED:
        found.append(f"which model moves least is not settled: {steadiest[0]} does with probability {steadiest[1]:.2f}")
    return found


def _about_shares(models: Sequence[ModelAudit]) -> list[str]:
    return [
        f"{'all' if share >= 1 else f'{share:.0%}'} of the variance of {one.model} is from {benchmark} alone"
        for one in models
        if len(one.shares) > 1
        for benchmark, share in one.shares.items()
        if share > _MOST_OF_ONE
    ]
