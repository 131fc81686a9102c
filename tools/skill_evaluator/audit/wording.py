"""Format the figures and findings of an audit as text for tables, sentences and charts."""

from skill_evaluator.audit.results import QUADRANTS, AuditResult, ModelAudit, Quadrant, Thresholds
from skill_evaluator.audit.statistics import GRADE_ORDER, QUARTERS
from skill_evaluator.stats import Interval
from skill_evaluator.text import counted, listed

_MAX_NAMED = 5


def points(value: float | None, digits: int = 2) -> str:
    """Format a score in per cent, or a spread in points.

    >>> points(79.066), points(79.066, 1), points(None)
    ('79.07', '79.1', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def signed_points(value: float) -> str:
    """Format a difference; without a sign if it rounds to zero.

    >>> signed_points(-1.234), signed_points(0.001)
    ('-1.23', '0.00')
    """
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def interval_text(ci95: Interval | None) -> str:
    """Format a 95 % confidence interval.

    >>> interval_text((77.9, 80.21)), interval_text(None)
    ('77.90–80.21', '–')
    """
    return "–" if ci95 is None else f"{points(ci95[0])}–{points(ci95[1])}"


def settled_text(settled: bool | None) -> str:
    """Format whether a grade is settled.

    >>> settled_text(True), settled_text(False), settled_text(None)
    ('settled', 'not settled', '–')
    """
    return "–" if settled is None else "settled" if settled else "not settled"


def quadrant_text(quadrant: Quadrant) -> str:
    """Format a quadrant with its number.

    >>> quadrant_text("safe default")
    'Q1 safe default'
    """
    return f"{QUADRANTS[quadrant]} {quadrant}"


def best_first(result: AuditResult) -> list[ModelAudit]:
    """Sort models by grade, then by ability; models without a grade come last."""
    last = len(GRADE_ORDER)
    return sorted(
        result.models, key=lambda model: (GRADE_ORDER.get(model.grade or "", last), -model.ability, model.model)
    )


def ablest_first(result: AuditResult) -> list[ModelAudit]:
    """Sort models by ability, as charts show them."""
    return sorted(result.models, key=lambda model: (-model.ability, model.model))


def threshold_text(cuts: Thresholds | None) -> str:
    """Format the upper bound of each grade.

    >>> threshold_text(Thresholds(q25=1.3, q50=1.57, q75=2.04))
    'AAA ≤ 1.30 · AA ≤ 1.57 · A ≤ 2.04 · BBB above'
    """
    if cuts is None:
        return "none (a single model has no cohort)"
    bounds = cuts.cuts or dict(zip(QUARTERS, (cuts.q25, cuts.q50, cuts.q75), strict=False))
    return " · ".join([*(f"{grade} ≤ {points(cut)}" for grade, cut in bounds.items()), f"{QUARTERS[-1]} above"])


def size_text(result: AuditResult) -> str:
    """Format the size of an audit as a product of its factors."""
    questions = [used.questions for used in result.used]
    known_counts = [count for count in questions if count is not None]
    factors = [
        counted(len(result.cohort), "model"),
        counted(len(result.scenarios), "scenario"),
        counted(len(result.used), "benchmark"),
    ]
    if len(known_counts) == len(questions):
        factors[-1] += f" ({counted(sum(known_counts), 'question')})"
    if result.replicates is not None:
        factors.append(counted(result.replicates, "replicate"))
    return " × ".join(factors)


def neutrality_text(result: AuditResult) -> str:
    """Format the neutrality verdict, the range of the means, and the number of grades that centering changes."""
    means, neutrality = result.neutrality.means, result.neutrality
    ranged = f"means {points(min(means))} to {points(max(means))}, range {points(neutrality.range)} points"
    if result.regraded is None:
        return f"{neutrality.verdict}; {ranged}."
    grades = counted(len(result.models), "grade")
    return f"{neutrality.verdict}; {ranged}. Centering changes {result.regraded} of {grades}."


def noise_text(result: AuditResult) -> str:
    """Format the median noise of a score; if it is unknown, name the option that measures it."""
    if result.noise_floor is not None:
        noise = f"{points(result.noise_floor)} points within a scenario (median over the models)"
        return f"{noise}, from {counted(result.replicates or 0, 'replicate')} per question."
    unknown = "unknown within a scenario, which requires two replicates"
    if result.noise_ceiling is not None:
        return f"{unknown}; at most {points(result.noise_ceiling)} points, if outputs were independent."
    return f"{unknown}; --questions N would give an upper bound." if result.replicates is None else f"{unknown}."


def finding_text(result: AuditResult) -> tuple[str, str]:
    """Return the headline of an audit, which names the safe defaults (Q1), and its explanation."""
    cohort = f"grades and quadrants are relative to the {counted(len(result.cohort), 'model')} of this audit"
    if result.medians is None:
        return "No model is called a safe default", f"a single model has no cohort to be compared with; {cohort}."
    safe = [model.model for model in best_first(result) if model.quadrant == "safe default"]
    if not safe:
        return "No model is a safe default (Q1)", f"none is both able and stable; {cohort}."
    return f"{listed(safe, _MAX_NAMED)}: safe default (Q1)", f"{cohort}."
