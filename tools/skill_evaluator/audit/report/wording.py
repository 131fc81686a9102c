"""An audit in words: its figures, its orders, and what it found, the same in tables, sentences and charts."""

from collections.abc import Iterator, Sequence

from skill_evaluator.audit.findings.advice import dominates, is_settled, outdoes, steadiest_first
from skill_evaluator.audit.results import AuditResult, Interval, ModelAudit, Thresholds
from skill_evaluator.text import counted

_MOST_NAMED = 5
_NONE = "No model is a safe default"


def points(value: float | None, places: int = 2) -> str:
    """Format per cent right, or a spread in the same points.

    >>> points(79.066), points(79.066, 1), points(None)
    ('79.07', '79.1', '–')
    """
    return "–" if value is None else f"{value:.{places}f}"


def signed_points(value: float) -> str:
    """Format a difference; without a sign if it rounds to zero.

    >>> signed_points(-1.234), signed_points(0.001)
    ('-1.23', '0.00')
    """
    return f"{value:+.2f}" if round(value, 2) else "0.00"


def with_interval(value: float | None, ci95: Interval | None) -> str:
    """Format a figure and its 95 % interval, where there is one.

    >>> with_interval(79.066, (77.9, 80.21))
    '79.07 (77.90–80.21)'
    """
    return points(value) if ci95 is None else f"{points(value)} ({points(ci95[0])}–{points(ci95[1])})"


def fluctuation_words(model: ModelAudit) -> str:
    """Give a fluctuation with its interval; where the noise is known, that stands beside what is left without it."""
    return with_interval(model.fluctuation, model.fluctuation_ci95 if model.corrected is None else None)


def about_words(result: AuditResult) -> str:
    """Say which scenarios the intervals and odds are about."""
    return "these scenarios" if result.resampled == "cases" else "other scenarios like these"


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
    """Return the grades of the models, the best first: a grade goes by the fluctuation."""
    steadiest = sorted(result.models, key=lambda model: model.fluctuation)
    return list(dict.fromkeys(model.grade for model in steadiest if model.grade is not None))


def possible_grades(models: Sequence[ModelAudit]) -> list[str]:
    """Return every grade that a model has a probability of, the best first."""
    return list(dict.fromkeys(grade for model in models for grade in model.grade_probability or {}))


def quartile_words(cuts: Thresholds) -> str:
    """Say where each grade ends and the next begins.

    >>> quartile_words(Thresholds(q25=1.3, q50=1.57, q75=2.04))
    '1.30 · 1.57 · 2.04'
    """
    quartiles = " · ".join(map(points, (cuts.q25, cuts.q50, cuts.q75)))
    finer = f" ({', '.join(f'{name} {points(cut)}' for name, cut in cuts.cuts.items())})" if cuts.cuts else ""
    return f"{quartiles}{finer}"


def finding_words(result: AuditResult) -> tuple[str, str]:
    """Say which model is the safe default; then why, and how clear that is."""
    safe = [model for model in steadiest_first(result.models) if model.quadrant == "safe default"]
    among = f"Grades and quadrants are relative to the {counted(len(result.cohort), 'model')} of this audit."
    if result.medians is None:
        return "No model is called a safe default", f"without medians there are no quadrants. {among}"
    if not safe:
        return _NONE, f"none is both among the abler and among the steadier half. {among}"
    first, *others = safe
    rival = next((model for model in result.models if dominates(model, first)), None)
    if rival is not None:  # which is not among the steadier half: by noise alone, or as it has far to fall
        better, worse = rival.model, first.model
        why = f"{better} scores more in its worst scenario than {worse} in its best"
        if outdoes(rival, first):
            why = f"{better} is no less able and, without noise, no less steady than {worse}"
        return _NONE, f"{why}, which is the first by its grade. {among}"
    without = ""
    if first.corrected is not None:
        without = f", without noise {with_interval(first.corrected, first.corrected_ci95)}"
    figures = (
        f"ability {with_interval(first.ability, first.ability_ci95)}, "
        f"fluctuation {fluctuation_words(first)}{without}; "
        f"in its worst scenario, {first.worst.scenario}, it is {points(first.worst.drop)} points below"
    )
    sentences = [f"{figures}.", *_grade_sentences(result, first)]
    if others:
        named = []
        for model in others[:_MOST_NAMED]:
            odds = "" if model.odds is None else f", {likelihood(model.odds)}"
            named.append(model.model if model.grade is None else f"{model.model} ({model.grade}{odds})")
        more = [f"{len(others) - _MOST_NAMED} more"] if len(others) > _MOST_NAMED else []
        sentences.append(f"Safe defaults as well: {', '.join([*named, *more])}.")
    return f"{first.model} is the safe default", " ".join([*sentences, among])


def spread_words(result: AuditResult) -> str:
    """Say which model fluctuates least and which most; as the title of a chart."""
    ordered = sorted(result.models, key=lambda model: model.fluctuation)
    least, most = ordered[0], ordered[-1]
    if least is most:
        return f"{least.model} fluctuates by {points(least.fluctuation)} points"
    return (
        f"{least.model} fluctuates least ({points(least.fluctuation)} points), "
        f"{most.model} most ({points(most.fluctuation)})"
    )


def fall_words(result: AuditResult) -> str:
    """Say which model falls farthest below its ability, and where; as the title of a chart."""
    falls = max(result.models, key=lambda model: model.worst.drop)
    where = f"{points(falls.worst.drop)} points below its ability in {falls.worst.scenario}"
    return f"{falls.model} falls farthest: {where}"


def odds_words(result: AuditResult) -> str:
    """Say how many grades are settled; as the title of a chart."""
    judged = [model for model in result.models if model.odds is not None]
    settled = sum(is_settled(model) for model in judged)
    return f"{settled} of {counted(len(judged), 'grade')} {'is' if settled == 1 else 'are'} settled"


def _grade_sentences(result: AuditResult, model: ModelAudit) -> Iterator[str]:
    """Say how sure a grade is, over these scenarios and over others."""
    if model.grade is None:
        return
    grade = model.grade
    if model.odds is None:
        yield f"Its grade is {grade}; how sure that is, is not known."
        return
    clear = "settled" if is_settled(model) else "not settled: its true fluctuation may well belong to another"
    odds = f"{likelihood(model.odds)} over {about_words(result)}"
    yield f"Its grade, {grade}, has a probability of {odds} and is {clear}."
    if result.resampled == "cases" and model.beyond is not None:
        other = likelihood(model.odds_among(model.beyond.grade_probability))
        yield f"Over other scenarios like these, if their effects are as modelled, it has {other}."
