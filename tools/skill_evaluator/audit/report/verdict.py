"""What an audit found, in a sentence and its reasons: the same on a page, in a chart and on the site."""

from collections.abc import Callable, Iterator

from skill_evaluator.audit.findings.advice import is_settled, steadiest_first
from skill_evaluator.audit.findings.dominance import dominates, outdoes
from skill_evaluator.audit.findings.results import AuditResult, ModelAudit
from skill_evaluator.audit.report.wording import about_words, fluctuation_words, likelihood, points, with_interval
from skill_evaluator.display.safe_text import visible
from skill_evaluator.text import counted

_MOST_NAMED = 5


def verdict_words(result: AuditResult, quoted: Callable[[str], str] = visible) -> tuple[str, str]:
    """Say which model is the safe default; then why, and how clear that is."""
    safe = [model for model in steadiest_first(result.models) if model.quadrant == "safe default"]
    none_is = "No model is a safe default"
    among = f"Grades and quadrants are relative to the {counted(len(result.cohort), 'model')} of this audit."
    if result.medians is None:
        return "No model is called a safe default", f"without medians there are no quadrants. {among}"
    if not safe:
        return none_is, f"none is both among the abler and among the steadier half. {among}"
    first, *others = safe
    rival = next((model for model in result.models if dominates(model, first)), None)
    if rival is not None:  # which is not among the steadier half: by noise alone, or as it has far to fall
        better, worse = quoted(rival.model), quoted(first.model)
        if outdoes(rival, first):
            why = f"{better} is no less able and, without noise, no less steady than {worse}"
        else:
            why = f"{better} scores more in its worst scenario than {worse} in its best"
        return none_is, f"{why}, which is the first by its grade. {among}"
    without = ""
    if first.corrected is not None:
        without = f", without noise {with_interval(first.corrected, first.corrected_ci95)}"
    figures = (
        f"ability {with_interval(first.ability, first.ability_ci95)}, "
        f"fluctuation {fluctuation_words(first)}{without}; "
        f"in its worst scenario, {quoted(first.worst.scenario)}, it is {points(first.worst.drop)} points below"
    )
    sentences = [f"{figures}.", *_grade_sentences(result, first, quoted)]
    if others:
        named = []
        for model in others[:_MOST_NAMED]:
            odds = "" if model.odds is None else f", {likelihood(model.odds)}"
            grade = "" if model.grade is None else f" ({quoted(model.grade)}{odds})"
            named.append(f"{quoted(model.model)}{grade}")
        more = [f"{len(others) - _MOST_NAMED} more"] if len(others) > _MOST_NAMED else []
        sentences.append(f"Safe defaults as well: {', '.join([*named, *more])}.")
    return f"{quoted(first.model)} is the safe default", " ".join([*sentences, among])


def spread_words(result: AuditResult) -> str:
    """Say which model fluctuates least and which most; as the title of a chart."""
    ordered = sorted(result.models, key=lambda model: model.fluctuation)
    least, most = ordered[0], ordered[-1]
    if least is most:
        return f"{visible(least.model)} fluctuates by {points(least.fluctuation)} points"
    return (
        f"{visible(least.model)} fluctuates least ({points(least.fluctuation)} points), "
        f"{visible(most.model)} most ({points(most.fluctuation)})"
    )


def fall_words(result: AuditResult) -> str:
    """Say which model falls farthest below its ability, and where; as the title of a chart."""
    falls = max(result.models, key=lambda model: model.worst.drop)
    where = f"{points(falls.worst.drop)} points below its ability in {visible(falls.worst.scenario)}"
    return f"{visible(falls.model)} falls farthest: {where}"


def odds_words(result: AuditResult) -> str:
    """Say how many grades are settled; as the title of a chart."""
    judged = [model for model in result.models if model.odds is not None]
    settled = sum(is_settled(model) for model in judged)
    return f"{settled} of {counted(len(judged), 'grade')} {'is' if settled == 1 else 'are'} settled"


def _grade_sentences(result: AuditResult, model: ModelAudit, quoted: Callable[[str], str]) -> Iterator[str]:
    """Say how sure a grade is, over these scenarios and over others."""
    if model.grade is None:
        return
    grade = quoted(model.grade)
    if model.odds is None:
        yield f"Its grade is {grade}; how sure that is, is not known."
        return
    clear = "settled" if is_settled(model) else "not settled: its true fluctuation may well belong to another"
    odds = f"{likelihood(model.odds)} over {about_words(result)}"
    yield f"Its grade, {grade}, has a probability of {odds} and is {clear}."
    if result.resampled == "cases" and model.beyond is not None:
        other = likelihood(model.odds_among(model.beyond.grade_probability))
        yield f"Over other scenarios like these, if their effects are as modelled, it has {other}."
