"""An audit's figures and orders in words: the same ones on a terminal, on a page and in charts."""

from collections.abc import Callable, Sequence

from skill_evaluator.audit.findings.results import AuditResult, Interval, ModelAudit, Neutrality
from skill_evaluator.display import probability
from skill_evaluator.display.safe_text import visible
from skill_evaluator.text import counted


def points(value: float | None, places: int = 2) -> str:
    """Per cent right, or a spread in the same points.

    >>> points(79.066), points(79.066, 1), points(None)
    ('79.07', '79.1', '–')
    """
    return "–" if value is None else f"{value:.{places}f}"


def signed_points(value: float | None) -> str:
    """A difference; nothing is neither more nor less.

    >>> signed_points(-1.234), signed_points(0.001)
    ('-1.23', '0.00')
    """
    return "–" if value is None else f"{value:+.2f}" if round(value, 2) else "0.00"


def with_interval(value: float | None, ci95: Interval | None) -> str:
    """A figure and its 95 % interval, where there is one.

    >>> with_interval(79.066, (77.9, 80.21))
    '79.07 (77.90 to 80.21)'
    """
    return points(value) if ci95 is None else f"{points(value)} ({points(ci95[0])} to {points(ci95[1])})"


def close_interval(value: float, ci95: Interval | None, places: int) -> str:
    """The same where there is little room.

    >>> close_interval(79.066, (77.9, 80.21), 1)
    '79.1 (77.9–80.2)'
    """
    ends = "" if ci95 is None else f" ({points(ci95[0], places)}–{points(ci95[1], places)})"
    return points(value, places) + ends


def share(value: float | None) -> str:
    """A share of a whole, in per cent.

    >>> share(0.1234), share(None)
    ('12 %', '–')
    """
    return "–" if value is None else f"{value * 100:.0f} %" if value >= 0.1 or not value else f"{value * 100:.1f} %"


def likelihood(value: float | None) -> str:
    """The probability of a grade; one that rounds to certainty or to nothing is neither.

    >>> likelihood(0.714), likelihood(0.999), likelihood(0.001), likelihood(1.0)
    ('0.71', '>0.99', '<0.01', '1.00')
    """
    if value is None:
        return "–"
    if value in (0.0, 1.0):
        return f"{value:.2f}"
    return ">0.99" if value >= 0.995 else "<0.01" if value < 0.005 else f"{value:.2f}"


def best_first(result: AuditResult) -> list[ModelAudit]:
    """By grade, then by ability; models without a grade come last."""
    places = {grade: place for place, grade in enumerate(grades(result))}
    return sorted(
        result.models,
        key=lambda one: (len(places) if one.grade is None else places[one.grade], -one.ability, one.model),
    )


def ablest_first(result: AuditResult) -> list[ModelAudit]:
    """By ability alone, as charts are sorted."""
    return sorted(result.models, key=lambda one: (-one.ability, one.model))


def grades(result: AuditResult) -> list[str]:
    """Grades that models were given, the best first: a grade goes by the fluctuation."""
    steadiest = sorted(result.models, key=lambda one: one.fluctuation)
    return list(dict.fromkeys(one.grade for one in steadiest if one.grade is not None))


def possible_grades(models: Sequence[ModelAudit]) -> list[str]:
    """Every grade that a model has a probability of, in the order they are kept in."""
    return list(dict.fromkeys(grade for one in models for grade in one.grade_probability or {}))


def threshold_words(result: AuditResult) -> str:
    """Where one grade ends and the next begins, and where the quadrants meet."""
    cuts, medians = result.thresholds, result.medians
    if cuts is None:
        said = "no thresholds"
    else:
        quartiles = " · ".join(points(one) for one in (cuts.q25, cuts.q50, cuts.q75))
        finer = f" ({', '.join(f'{name} {points(cut)}' for name, cut in cuts.cuts.items())})" if cuts.cuts else ""
        said = f"thresholds of the fluctuation: {quartiles}{finer}"
    if medians is None:
        return f"{said}; no medians"
    return f"{said}; medians: ability {points(medians.ability)}, fluctuation {points(medians.fluctuation)}"


def cohort_words(result: AuditResult) -> str:
    """Grades mean nothing without the models they were given among."""
    return f"cohort, to which all grades are relative: {counted(len(result.cohort), 'model')}"


def neutrality_words(found: Neutrality, quoted: Callable[[str], str] = visible) -> str:
    """The verdict and the figures it goes by."""
    tests = {
        "trend τ": None if found.trend_tau is None else signed_points(found.trend_tau),
        "trend p": None if found.trend_p is None else probability(found.trend_p),
        "any difference p": None if found.friedman_p is None else probability(found.friedman_p),
    }
    figures = "".join(f", {name} {value}" for name, value in tests.items() if value is not None)
    return f"{quoted(found.verdict)}; range of their means {points(found.range)} points{figures}"
