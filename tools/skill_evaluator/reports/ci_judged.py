"""What judges say of new outputs beside pinned ones → parts of the page of an outcome: conclusions, table, evidence."""

from collections.abc import Iterator, Sequence

from skill_evaluator.ci.outcome import JudgedOutcome, Outcome
from skill_evaluator.display import cost_words
from skill_evaluator.display.pages import Section, bullets, cut_table
from skill_evaluator.display.safe_text import abridged, code_span, prose
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.reports.judge_regressions import alert_sentences, judge_markdown, regression_notes
from skill_evaluator.runner.prices import pooled_hit_rate

_COLUMNS = ("component", "model", "judge", "decision", "pairs", "worse", "uncertain", "answers", "cost", "")
_NUMBERS = frozenset(("pairs", "worse", "uncertain", "answers", "cost"))
_MOST_NAMED = 10  # judgings in one conclusion
_LONGEST = 400  # characters of a reason
_UNJUDGED = "not judged"
_MEANINGS = {  # the worst first
    "block": ("■", "**blocked** by a judge, worse than the pinned outputs"),
    "review_required": ("?", "**a person must look** at what a judge says, or could not say"),
    "ship": ("=", "**ships** as far as a judge can tell"),
}


def judged_conclusions(outcome: Outcome) -> list[str]:
    """Return a line for each alert, then for each decision, the worst first, with what it is on."""
    lines = [
        f"- ■ {code_span(one.skill)} on {code_span(one.candidate)}: {prose(sentence)}"
        for one in outcome.judged
        if one.results is not None
        for sentence in alert_sentences(alert for alert in one.results.alerts if alert.above)
    ]
    for decision, (mark, meaning) in _MEANINGS.items():
        judged = [one for one in outcome.judged if one.decides and (one.decision or "review_required") == decision]
        names = [f"{code_span(one.skill)} on {code_span(one.candidate)}" for one in judged[:_MOST_NAMED]]
        more = [f"{len(judged) - _MOST_NAMED} more"] if len(judged) > _MOST_NAMED else []
        lines += [f"- {mark} {meaning}: {', '.join([*names, *more])}"] if judged else []
    return lines


def judged_sheet(judged: Sequence[JudgedOutcome]) -> Sheet:
    """Return the table of all judgings."""
    return Sheet(
        columns=_COLUMNS, rows=[list(_row(one)) for one in judged], numbers=_NUMBERS, below=("cost", "answers")
    )


def judged_sections(judged: Sequence[JudgedOutcome], most: int) -> Iterator[Section]:
    """Yield the table of all judgings, at most so many; then what each judge found, blocks first."""
    if judged:
        table = cut_table(judged_sheet(judged), most)
        yield Section(name="all judgings", heading="## Judged beside the pinned outputs", blocks=table)
    shown = [one for one in judged if one.results is not None]
    for one in sorted(shown, key=lambda one: list(_MEANINGS).index(one.decision or "review_required")):
        if one.results is not None:
            whose = f"{code_span(one.skill)} on {code_span(one.candidate)}, judged by {code_span(one.judge)}"
            notes = bullets([prose(note) for note in regression_notes(one.results)])
            yield Section(
                name=f"{one.skill} on {one.candidate}, judged",
                heading=f"### {whose}",
                blocks=[*map(judge_markdown, one.results.judges), notes],
            )


def _row(one: JudgedOutcome) -> Iterator[Cell]:
    yield from (Cell(name, code=True) for name in (one.skill, one.candidate, one.judge))
    words = [] if one.status == "judged" else [one.status.upper()]
    remark = "; ".join(filter(None, [*words, abridged(one.reason, _LONGEST)]))
    if one.results is None:
        yield Cell("review_required" if one.decides else _UNJUDGED)
        yield from (Cell("–") for _ in _NUMBERS)
    else:
        judges = one.results.judges
        pairs = [pair for judge in judges for pair in judge.pairs]
        verdicts = [[dimension.verdict for dimension in pair.dimensions] for pair in pairs]
        costs = [judge.judge.cost_usd for judge in judges]
        yield Cell(one.decision or "no decision")
        yield Cell(str(len(pairs)))
        yield Cell(str(sum("candidate_worse" in verdict for verdict in verdicts)))
        yield Cell(str(sum("uncertain" in verdict for verdict in verdicts)))
        answered = sum(judge.judge.answered for judge in judges)
        yield Cell(f"{answered}/{sum(judge.judge.planned for judge in judges)}")
        rate = pooled_hit_rate((judge.judge.input_tokens, judge.judge.hit_rate) for judge in judges)
        yield Cell("–" if None in costs else cost_words(sum(cost or 0.0 for cost in costs), rate))
    yield Cell(remark, code=bool(remark))
