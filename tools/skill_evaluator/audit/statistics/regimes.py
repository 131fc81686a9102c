"""Which model to take under which regime: three orders of the same models, each place with its reason.

Agentic: a step that fails spoils the steps after it, so stability comes first. Single-shot: each answer stands alone,
so ability does. Cost-sensitive: what a right answer costs, and how long it takes.
"""

import math
from collections.abc import Sequence

from skill_evaluator.audit.findings.results import ModelAudit, Ranked, Regime
from skill_evaluator.audit.statistics.grades import BEST_FIRST

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
