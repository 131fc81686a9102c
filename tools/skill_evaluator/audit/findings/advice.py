"""The advice of an audit in sentences: which model to take under which regime, and what to beware of.

Agentic: a step that fails spoils the steps after it, so stability comes first. Single-shot: each answer stands alone,
so ability does. Cost-sensitive: what a right answer costs, and how long it takes. Whatever comes first, a model never
stands above a model that dominates it, unless it is cheaper and cost decides. A model dominates a second one if it is
at least as able and as steady, or if its worst scenario is above the other's best. Steadiness is the fluctuation as
measured, or without noise; between equals in ability the measured fluctuation decides.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from skill_evaluator.audit.cube import Cube
from skill_evaluator.audit.request import Resampled
from skill_evaluator.audit.results import AuditResult, ModelAudit, Ranked, Regime
from skill_evaluator.audit.run.plan import FEWEST_MODELS, FEWEST_QUESTIONS, FEWEST_SCENARIOS
from skill_evaluator.audit.statistics.figures import spread_p
from skill_evaluator.audit.statistics.grades import BEST_FIRST
from skill_evaluator.audit.statistics.posterior import Posterior
from skill_evaluator.records.record import ANSWERED, SCORED
from skill_evaluator.stats import ALPHA
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.effects import adjusted

SETTLED = 0.7  # what is less probable than this is said to be uncertain
_DEEP = 5.0  # points below its ability in its worst scenario
_LEAST_ABLE = 0.9  # of the best ability: a model that is cheap and mostly wrong is no bargain
_MOST_UNREAD = 0.1  # of a model's answers
_MOST_OF_ONE = 0.8  # share of σ² that one benchmark may carry
_MOST_NAMED = 3
_NEARLY_NORMAL = 30  # degrees of freedom of Student's t
_BY_GRADE = (
    "by grade, and within a grade by ability; never above a model that is abler and steadier, "
    "or better in its worst scenario than this one in its best"
)
_BY_ABILITY = "by ability, with a warning where the prompt moves a model much"


def regimes_of(models: Sequence[ModelAudit]) -> dict[str, Regime]:
    """Return the three regimes by their names."""
    steady, able = [], []
    for model in steadiest_first(models):
        grade = model.grade or "ungraded"
        if model.grade and model.odds is not None:
            grade += f" (probability {model.odds:.2f})"
        moves = f"moves by {model.fluctuation:.2f} points at an ability of {model.ability:.1f}"
        worst = f"at its worst {model.worst.score:.1f} ({model.worst.scenario})"
        steady.append(Ranked(model=model.model, reason=f"{grade}, {moves}; {worst}"))
    for model in dominated_last(sorted(models, key=lambda model: -model.ability)):
        reason = f"ability {model.ability:.1f}"
        if model.ability_ci95 is not None:
            reason += f" ({model.ability_ci95[0]:.1f} to {model.ability_ci95[1]:.1f})"
        risks = ["scenario-fragile"] * (model.quadrant == "strong but scenario-fragile")
        if model.worst.drop >= _DEEP:
            risks.append(f"{model.worst.drop:.1f} points lower in {model.worst.scenario}")
        able.append(Ranked(model=model.model, reason=f"{reason}; beware: {', '.join(risks)}" if risks else reason))
    return {
        "agentic": Regime(title="Agentic: many steps, each on the one before", note=_BY_GRADE, ranked=steady),
        "single-shot": Regime(title="Single-shot: every answer stands alone", note=_BY_ABILITY, ranked=able),
        "cost-sensitive": _cheap(models),
    }


def steadiest_first(models: Sequence[ModelAudit]) -> list[ModelAudit]:
    """Sort models by grade, then by ability; those without a grade come last. No dominated model comes first."""
    last = len(BEST_FIRST)
    return dominated_last(sorted(models, key=lambda one: (BEST_FIRST.get(one.grade or "", last), -one.ability)))


def premise_of(scenarios: int, posterior: Posterior | None) -> str | None:
    """Name the assumption behind all statements about other scenarios; None without any."""
    if posterior is None:
        return None
    shape = f"Student's t with about {posterior.tails:g} degrees of freedom"
    if posterior.tails > _NEARLY_NORMAL:
        shape = "nearly normal"
    breaks = f"{posterior.breaking:.1%} that break a model" if posterior.breaking else "none that breaks a model"
    return (
        f"what is said of other scenarios rests on a model of their effects ({shape}, and {breaks}) and on their being "
        f"drawn like these {scenarios}; no data here can show that"
    )


def is_settled(model: ModelAudit) -> bool:
    """Return whether a model's printed grade is clearly its own; also where the odds are not known."""
    return model.odds is None or model.odds >= SETTLED


def _cheap(models: Sequence[ModelAudit]) -> Regime:
    title = "Cost-sensitive: many answers on a budget"
    priced = [(model.usd_per_1000_right, model) for model in models if model.usd_per_1000_right is not None]
    if not priced:
        return Regime(title=title, note="no order: what a right answer costs is not known of any model", ranked=[])
    least = _LEAST_ABLE * max(model.ability for model in models)

    def place(priced_model: tuple[float, ModelAudit]) -> tuple[float, ...]:
        usd, model = priced_model
        latency = math.inf if model.latency_s is None else model.latency_s
        return model.ability < least, usd, latency, -model.ability, model.fluctuation, model.corrected or 0.0

    ranked = []
    for usd, model in sorted(priced, key=place):
        latency = "" if model.latency_s is None else f", {model.latency_s:.2f} s each"
        weak = ": too weak to be a bargain" if model.ability < least else ""
        price = ""
        for what, beats in (("no less able and no less steady", outdoes), ("above it in every scenario", is_above)):
            better = [other.model for other in models if beats(other, model)]
            price += f"; {what}: {listed(better, _MOST_NAMED)}" if better else ""
        reason = f"${usd:.2f} for 1,000 right answers{latency}, ability {model.ability:.1f}{weak}{price}"
        ranked.append(Ranked(model=model.model, reason=reason))
    note = f"by the cost of 1,000 right answers, then latency; models below 90 % of the best ability ({least:.1f}) last"
    unpriced = [model.model for model in models if model.usd_per_1000_right is None]
    return Regime(title=title, note=f"{note}; not known of {', '.join(unpriced)}" if unpriced else note, ranked=ranked)


def dominates(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model is better than a second one in both figures, or even in its worst scenario."""
    return is_above(better, worse) or outdoes(better, worse)


def is_above(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model scores more in its worst scenario than a second model in its best."""
    return bool(better.scenarios and worse.scenarios) and min(better.scenarios.values()) > max(worse.scenarios.values())


def outdoes(better: ModelAudit, worse: ModelAudit) -> bool:
    """Return whether a model is no worse than a second one in ability and in fluctuation, and better in one of them."""
    if better.ability < worse.ability:
        return False
    measured = better.fluctuation - worse.fluctuation
    left = measured  # without noise, where it is known of both
    if better.corrected is not None and worse.corrected is not None:
        left = better.corrected - worse.corrected
    if better.ability == worse.ability:
        return (measured, left) < (0.0, 0.0)
    return measured <= 0 or left <= 0


def dominated_last(models: Sequence[ModelAudit]) -> list[ModelAudit]:
    """Keep the order of the models, but move a dominated model behind the one that dominates it.

    Each place goes to the first model that is left and that no other model left dominates. There always is one: along
    a chain of dominance ability never rises, and between equals in ability (where none is above another in every
    scenario) the order is one of numbers.
    """
    left, order = list(models), []
    while left:
        best = next(model for model in left if not any(dominates(other, model) for other in left))
        left.remove(best)
        order.append(best)
    return order


def cautions(
    cube: Cube, models: Sequence[ModelAudit], steadiest: tuple[str, float] | None, resampled: Resampled
) -> list[str]:
    """Return what a reader must be told before the figures are used: one sentence each, the weightiest first.

    `steadiest`: the model that moved least, and how probable it is that it does. `resampled`: what the odds are over.
    """
    return [
        *_about_size(cube),
        *_about_answers(cube, models),
        *_about_differences(cube, resampled),
        *_about_grades(models, steadiest),
        *([] if cube.treatment is None else [f"{cube.treatment}; all figures are of what is left"]),
    ]


def cohort_changes(cohort: Sequence[str], previous: AuditResult) -> list[str]:
    """Warn where the models are not those of the last audit: grades are relative to the cohort."""
    came = [name for name in cohort if name not in previous.cohort]
    went = [name for name in previous.cohort if name not in cohort]
    if not came and not went:
        return []
    changes = [f"new: {listed(came)}"] * bool(came) + [f"gone: {listed(went)}"] * bool(went)
    return [
        f"the cohort changed since the last audit ({'; '.join(changes)}): grades are relative to it, so compare none"
    ]


def _about_size(cube: Cube) -> Iterator[str]:
    models, scenarios = cube.overall.shape
    if models == 1:
        yield f"1 model, fewer than {FEWEST_MODELS}: a grade needs others to compare with"
    elif models < FEWEST_MODELS:
        yield f"{models} models, fewer than {FEWEST_MODELS}: quartiles of so few are hardly more than an order"
    if scenarios < FEWEST_SCENARIOS:
        yield f"{counted(scenarios, 'scenario')}, fewer than {FEWEST_SCENARIOS}: a fluctuation of so few is a guess"
    few = [f"{name} {count}" for name, count in cube.questions.items() if count < FEWEST_QUESTIONS]
    if few:
        yield (
            f"fewer than {FEWEST_QUESTIONS} questions ({', '.join(few)}): which they are may be much of the fluctuation"
        )
    if cube.outcomes is not None and cube.replicates == 1:
        yield "one answer a question: how a model varies by itself is not told from what suits a question"


def _about_answers(cube: Cube, models: Sequence[ModelAudit]) -> Iterator[str]:
    """Warn of scores that say as much of an answer's form as of its content, and of missing replicates."""
    unread = []
    for model in models:
        answers = model.answers or {}
        answered = sum(answers.get(kind, 0) for kind in ANSWERED)
        share = 1 - answers.get(SCORED, 0) / answered if answered else 0.0
        if share > _MOST_UNREAD:
            unread.append(f"{model.model} {share:.0%}")
    if unread:
        yield f"answers that are unparseable, refused or cut off count as wrong, and are many of {listed(unread)}"
    benchmarks = [outcomes.scores for outcomes in (cube.outcomes or {}).values()]
    missing = sum((np.isnan(scores).sum(axis=(1, 2, 3)) for scores in benchmarks), np.zeros(len(cube.models), int))
    planned = sum(scores[0].size for scores in benchmarks)
    holes = [f"{name} {count:,}" for name, count in zip(cube.models, missing, strict=True) if count]
    if holes:
        yield f"answers are missing, of {planned:,} a model, and means are of the replicates there are: {listed(holes)}"


def _about_differences(cube: Cube, resampled: Resampled) -> Iterator[str]:
    """Warn of fluctuations that are alike."""
    if len(cube.models) < 2 or len(cube.scenarios) < 3:
        return
    if np.ptp(cube.overall, axis=1).max() == 0:
        yield "no model moved at all: every score is the same in every scenario"
        return
    p_values = [spread_p(first, second) for first, second in combinations(cube.overall, 2)]
    least = min(adjusted([1.0 if p is None else p for p in p_values]))  # corrected for the number of pairs
    if least > ALPHA:
        chance = f"differ beyond chance (q = {least:.2f} at best)"
        if resampled == "cases":
            yield f"as far as other scenarios go, no two fluctuations {chance}: the grades hold for these ones"
        else:
            yield f"no two fluctuations {chance}: the grades may rank noise"


def _about_grades(models: Sequence[ModelAudit], steadiest: tuple[str, float] | None) -> Iterator[str]:
    """Warn of fluctuations that one benchmark or chance makes, and of uncertain grades."""
    still = [model.model for model in models if model.corrected == 0 and model.fluctuation > 0]
    if still:
        yield f"nothing is left of {counted(len(still), 'fluctuation')} once its noise is taken off: {listed(still)}"
    unsettled = [f"{model.model} {model.grade} {model.odds:.2f}" for model in models if not is_settled(model)]
    if unsettled:
        grades = f"{len(unsettled)} of {counted(len(models), 'grade')}"
        yield f"{grades} are not settled (the odds of each): {listed(unsettled)}"
    if steadiest is not None and steadiest[1] < SETTLED:
        yield f"which model moves least is not settled: {steadiest[0]} does with probability {steadiest[1]:.2f}"
    for model in models:
        for benchmark, share in model.shares.items():
            if len(model.shares) > 1 and share > _MOST_OF_ONE:
                part = "all" if share >= 1 else f"{share:.0%}"
                yield f"{part} of the variance of {model.model} is from {benchmark} alone"
