"""What follows from compared models: groups that cannot be told apart, the frontier of cost and score, and the advice.

Its own module because it decides and measures nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

from skill_evaluator.records.record import Record
from skill_evaluator.text import listed
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


def advise(rows: Sequence[RankedModel], pairs: Sequence[Contrast]) -> Advice:
    """Return the model to ship, as far as anything shows it.

    No other is shown to be better than it. Where that holds of several, the cheapest of them is named, or the quickest.
    A model that regressed is never named.
    """
    if len(rows) < 2:
        return Advice(reason="there is no other model to hold it against" if rows else "no model can be ranked")
    beaten = {pair.higher if pair.verdict == "improved" else pair.lower for pair in pairs if pair.told_apart}
    best = [row for row in rows if row.model_id not in beaten] or list(rows)
    sound = [row for row in best if row.verdict != "regressed"]
    if not sound:
        worse = listed([row.model_id for row in best])
        return Advice(reason=f"{worse} regressed against the version before, and no other is as good")
    if len(best) == 1:
        return Advice(model_id=best[0].model_id, reason="told apart from every other, and better")
    named, merits = _thriftiest(sound)
    if named is None:
        names = listed([row.model_id for row in sound])
        return Advice(reason=f"{names} are not told apart, and neither cost nor time tells which to take")
    rest = [row.model_id for row in best if row.model_id != named.model_id]
    drops = [pair.detectable_drop for pair in pairs if {pair.higher, pair.lower} <= {named.model_id, *rest}]
    reach = max((drop for drop in drops if drop is not None), default=None)
    seen = "" if reach is None else f"; a gap of {reach:.3f} would have shown 4 times in 5"
    return Advice(model_id=named.model_id, reason=f"not told apart from {listed(rest)}; {merits}{seen}")


def _thriftiest(rows: Sequence[RankedModel]) -> tuple[RankedModel | None, str]:
    """Return the row that is cheapest, of equally cheap ones the quickest, and in words why it; None where none is."""
    if len(rows) == 1:
        return rows[0], "the only one of them that did not regress"
    words = []
    for word, values in (
        ("cheapest", {row.model_id: row.usd_per_1000_cases for row in rows}),
        ("quickest", {row.model_id: row.latency_p50_s for row in rows}),
    ):
        known = [value for row in rows if (value := values[row.model_id]) is not None]
        if len(known) < len(rows) or min(known) == max(known):
            continue
        words.append(word)
        rows = [row for row in rows if values[row.model_id] == min(known)]
        if len(rows) == 1:
            return rows[0], f"the {' and '.join(words)} of them"
    return None, ""
