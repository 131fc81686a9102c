"""What follows from compared models: groups that cannot be told apart, the frontier of cost and score, and the advice.

Its own module because it decides and measures nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.ranking_results import Advice, Contrast, RankedModel

Point = tuple[float | None, float]
"""What a model costs, and its score."""


def usd_per_1000(record: Record) -> float | None:
    """Return what a thousand answers, one to a case, cost; None where that is not known."""
    answered = round(record.coverage * record.planned)
    return None if record.cost_usd is None or not answered else round(1000 * record.cost_usd / answered, 6)


def alike(names: Sequence[str], apart: Iterable[frozenset[str]]) -> list[list[str]]:
    """Return the largest sets of models of which no two are told apart, the best models' first.

    Two models that are not told apart are in one set together (Piepho 2004, doi:10.1198/1061860043515: insert, absorb).
    """
    groups = [frozenset(names)]
    for two in apart:
        split = {part for group in groups for part in ([group - {one} for one in two] if two <= group else [group])}
        groups = [group for group in split if not any(group < other for other in split)]
    places = sorted(sorted(map(names.index, group)) for group in groups)
    return [[names[place] for place in group] for group in places]


def letters() -> Iterator[str]:
    """Yield a, b, …, z, a2, b2, …"""
    yield from ascii_lowercase
    yield from (f"{letter}{lap}" for lap in range(2, 1000) for letter in ascii_lowercase)


def on_frontier(model: Point, models: Iterable[Point]) -> bool | None:
    """Return whether no other model is as good and as cheap, and better or cheaper; None without its cost."""
    cost, score = model
    if cost is None:
        return None
    others = ((other, of_other) for other, of_other in models if other is not None and (other, of_other) != model)
    return not any(other <= cost and of_other >= score for other, of_other in others)


def advise(rows: Sequence[RankedModel], pairs: Sequence[Contrast]) -> list[Advice]:
    """Return the best model, and the cheapest that cannot be told apart from it, if that is another."""
    sound = [row for row in rows if not row.dominated_by]
    if not sound:
        return []
    best = sound[0]
    advice = [Advice(model_id=best.model_id, reason="the highest score" if len(rows) > 1 else "there is no other")]
    contrasts = {pair.lower: pair for pair in pairs if pair.higher == best.model_id}
    cheaper = [
        row
        for row in sound[1:]
        if row.usd_per_1000_cases is not None
        and best.usd_per_1000_cases is not None
        and row.usd_per_1000_cases < best.usd_per_1000_cases
        and set(row.groups) & set(best.groups)
    ]
    if cheaper:
        thrifty = min(cheaper, key=lambda row: row.usd_per_1000_cases or 0.0)
        share = 1 - (thrifty.usd_per_1000_cases or 0.0) / (best.usd_per_1000_cases or 1.0)
        seen = contrasts[thrifty.model_id].detectable_drop
        reach = "" if seen is None else f"; a gap of {seen:.3f} would have shown 4 times in 5"
        reason = f"{share:.0%} cheaper and not told apart from {best.model_id}{reach}"
        advice.append(Advice(model_id=thrifty.model_id, reason=reason))
    return advice
