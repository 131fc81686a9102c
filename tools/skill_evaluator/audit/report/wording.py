"""An audit's figures and orders in words: the same ones on a terminal, on a page and in charts."""

from collections.abc import Callable, Sequence

from skill_evaluator.audit.findings.results import (
    AuditResult,
    BenchmarkUsed,
    Interval,
    ModelAudit,
    Neutrality,
    Thresholds,
)
from skill_evaluator.display import probability
from skill_evaluator.display.safe_text import visible
from skill_evaluator.text import counted


def points(value: float | None, places: int = 2) -> str:
    """Format per cent right, or a spread in the same points.

    >>> points(79.066), points(79.066, 1), points(None)
    ('79.07', '79.1', '–')
    """
    return "–" if value is None else f"{value:.{places}f}"


def signed_points(value: float | None) -> str:
    """Format a difference; one that rounds to nothing has no sign.

    >>> signed_points(-1.234), signed_points(0.001)
    ('-1.23', '0.00')
    """
    return "–" if value is None else f"{value:+.2f}" if round(value, 2) else "0.00"


def with_interval(value: float | None, ci95: Interval | None) -> str:
    """Format a figure and its 95 % interval, where there is one.

    >>> with_interval(79.066, (77.9, 80.21))
    '79.07 (77.90 to 80.21)'
    """
    return points(value) if ci95 is None else f"{points(value)} ({points(ci95[0])} to {points(ci95[1])})"


def fluctuation_words(model: ModelAudit) -> str:
    """Give a fluctuation with its interval; where the noise is known, that stands beside what is left without it."""
    return with_interval(model.fluctuation, model.fluctuation_ci95 if model.corrected is None else None)


def about_words(result: AuditResult) -> str:
    """Say which scenarios the intervals and odds are about."""
    return "these scenarios" if result.resampled == "cases" else "other scenarios like these"


def close_interval(value: float | None, ci95: Interval | None, places: int) -> str:
    """Format a figure and its interval where there is little room.

    >>> close_interval(79.066, (77.9, 80.21), 1)
    '79.1 (77.9–80.2)'
    """
    ends = "" if ci95 is None else f" ({points(ci95[0], places)}–{points(ci95[1], places)})"
    return points(value, places) + ends


def share(value: float | None) -> str:
    """Format a share of a whole, in per cent.

    >>> share(0.1234), share(None)
    ('12 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %" if value >= 0.1 or not value else f"{value * 100:.1f} %"


def likelihood(value: float | None) -> str:
    """Format the probability of a grade; what only rounds to 0 or 1 is shown as a bound.

    >>> likelihood(0.714), likelihood(0.999), likelihood(0.001), likelihood(1.0)
    ('0.71', '>0.99', '<0.01', '1.00')
    """
    if value is None:
        return "–"
    if value in (0.0, 1.0):
        return f"{value:.2f}"
    return ">0.99" if value >= 0.995 else "<0.01" if value < 0.005 else f"{value:.2f}"


def best_first(result: AuditResult) -> list[ModelAudit]:
    """Sort models by grade, then by ability; models without a grade come last."""
    places = {grade: place for place, grade in enumerate(grades(result))}
    return sorted(
        result.models,
        key=lambda model: (len(places) if model.grade is None else places[model.grade], -model.ability, model.model),
    )


def ablest_first(result: AuditResult) -> list[ModelAudit]:
    """Sort models by ability alone, as charts show them."""
    return sorted(result.models, key=lambda model: (-model.ability, model.model))


def grades(result: AuditResult) -> list[str]:
    """Return the grades that models were given, the best first: a grade goes by the fluctuation."""
    steadiest = sorted(result.models, key=lambda model: model.fluctuation)
    return list(dict.fromkeys(model.grade for model in steadiest if model.grade is not None))


def possible_grades(models: Sequence[ModelAudit]) -> list[str]:
    """Return every grade that a model has a probability of, the best first."""
    return list(dict.fromkeys(grade for model in models for grade in model.grade_probability or {}))


def threshold_words(result: AuditResult) -> str:
    """Say where each grade ends and the next begins, and where the quadrants meet."""
    cuts, medians = result.thresholds, result.medians
    words = "no thresholds" if cuts is None else f"thresholds of the fluctuation: {quartile_words(cuts)}"
    if medians is None:
        return f"{words}; no medians"
    return f"{words}; medians: ability {points(medians.ability)}, fluctuation {points(medians.fluctuation)}"


def quartile_words(cuts: Thresholds | None) -> str:
    """Say where each grade ends and the next begins.

    >>> quartile_words(Thresholds(q25=1.3, q50=1.57, q75=2.04))
    '1.30 · 1.57 · 2.04'
    """
    if cuts is None:
        return "–"
    quartiles = " · ".join(map(points, (cuts.q25, cuts.q50, cuts.q75)))
    finer = f" ({', '.join(f'{name} {points(cut)}' for name, cut in cuts.cuts.items())})" if cuts.cuts else ""
    return f"{quartiles}{finer}"


def benchmark_words(used: BenchmarkUsed) -> str:
    """Say what the grades on a benchmark rest on: where they end, and what noise alone would give.

    >>> benchmark_words(BenchmarkUsed(name="law", weight=0.5, questions=50, noise_floor=2.2))
    'law: no thresholds; noise floor 2.20'
    """
    words = "no thresholds" if used.thresholds is None else f"grades end at {quartile_words(used.thresholds)}"
    noise = {"floor": used.noise_floor, "ceiling": used.noise_ceiling}
    return "; noise ".join([f"{used.name}: {words}", *(f"{name} {points(at)}" for name, at in noise.items() if at)])


def cohort_words(result: AuditResult) -> str:
    """Say among how many models the grades were given: without them a grade means nothing."""
    return f"cohort, to which all grades are relative: {counted(len(result.cohort), 'model')}"


def neutrality_words(neutrality: Neutrality, quoted: Callable[[str], str] = visible) -> str:
    """Say whether the scenarios are alike, and the figures that this goes by."""
    tests = {
        "trend τ": None if neutrality.trend_tau is None else signed_points(neutrality.trend_tau),
        "trend p": None if neutrality.trend_p is None else probability(neutrality.trend_p),
        "any difference p": None if neutrality.friedman_p is None else probability(neutrality.friedman_p),
    }
    figures = "".join(f", {name} {value}" for name, value in tests.items() if value is not None)
    return f"{quoted(neutrality.verdict)}; range of their means {points(neutrality.range)} points{figures}"


def method_words(
    result: AuditResult, named: Callable[[str], str] = visible, quoted: Callable[[str], str] = visible
) -> list[str]:
    """Say what was asked, what was left out of it, and what the intervals and odds rest on."""
    replicates = "not known" if result.replicates is None else f"{result.replicates:,}"
    resampled = {"both": "other scenarios and cases", "cases": "other cases, but no other scenarios,"}
    drawn = resampled.get(result.resampled, "other scenarios")
    facts = [
        f"models: {', '.join(map(named, result.cohort))}",
        f"scenarios: {', '.join(map(named, result.scenarios))}",
        f"answers to a question (replicates): {replicates}",
        f"left out of what was measured: {'nothing' if result.treatment is None else quoted(result.treatment)}",
        f"intervals: as if {drawn} had been drawn",
    ]
    if any(model.grade_probability for model in result.models):
        facts.append(f"odds of the grades: from {result.draws:,} draws of the models' true fluctuations")
    return facts
