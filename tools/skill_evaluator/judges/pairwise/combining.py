"""The answers in both orders → one verdict a criterion, and one overall that code makes of them by their weights.

Agreement is the winner with the mean confidence. Disagreement is a tie at 0.5: what the judge said then came from the
order.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from skill_evaluator.judges.asking.grounds import read_grounds
from skill_evaluator.judges.asking.reading import Unscored, read_criteria, text_of
from skill_evaluator.judges.pairwise.matches import ORDERS, PairMatch, winners_of
from skill_evaluator.judges.pairwise.results import OVERALL, OrderJudgement, PairJudgement, Preferred
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import rounded

_EVIDENCE = ("evidence_first", "evidence_second")
_UNDECIDED = 0.5
SHARES: Mapping[Preferred, float] = {1: 1.0, 2: 0.0, "tie": _UNDECIDED}


def judge_match(
    match: PairMatch, criteria: Sequence[Criterion], answers: Mapping[Call, Replicate], replicate: int
) -> list[PairJudgement]:
    """Return what one replicate of both orders says of a match: each criterion, then `overall`."""
    by_order = []
    for order, question in zip(ORDERS, match.questions, strict=True):
        answer = text_of(answers.get(Call(question.case_id, replicate)))
        by_order.append(read_order(answer, criteria, match.shown, order))
    names = [*(criterion.id for criterion in criteria), OVERALL]
    return [combine(name, replicate, [said[name] for said in by_order]) for name in names]


def read_order(
    answer: str | Unscored, criteria: Sequence[Criterion], texts: Sequence[str], order: int
) -> dict[str, OrderJudgement]:
    """Return what an answer says by criterion and overall, mapped back to the outputs."""
    written = read_criteria(answer, [criterion.id for criterion in criteria], texts)
    said = {criterion.id: _read(written[criterion.id], criterion, texts, order) for criterion in criteria}
    return {**said, OVERALL: weigh(said, {criterion.id: criterion.weight for criterion in criteria})}


def _read(
    written: Mapping[str, Any] | Unscored, criterion: Criterion, texts: Sequence[str], order: int
) -> OrderJudgement:
    if isinstance(written, Unscored):
        return OrderJudgement(unscored=written.reason, detail=written.detail)
    word = written.get("winner")
    allowed = winners_of(criterion)
    if not isinstance(word, str) or word not in allowed:
        detail = f"winner {word!r} is none of {', '.join(allowed)}"
        return OrderJudgement(unscored="off_scale", detail=detail[:200])
    grounds = read_grounds(written, "winner", _EVIDENCE, criterion, texts)
    if isinstance(grounds, Unscored):
        return OrderJudgement(unscored=grounds.reason, detail=grounds.detail)
    winner: Preferred = "tie" if word == "tie" else 1 if (word == "first") == (order == ORDERS[0]) else 2
    return OrderJudgement(
        evidence=list(grounds.evidence),
        justification=grounds.justification,
        winner=winner,
        confidence=grounds.confidence,
        quotes=grounds.quotes,
    )


def weigh(said: Mapping[str, OrderJudgement], weights: Mapping[str, float]) -> OrderJudgement:
    """Return the overall verdict of one order: what the criteria prefer by their weights, with the mean confidence.

    It counts only where every criterion does.
    """
    lacking = next((one for one in said.values() if one.winner is None), None)
    if lacking is not None:
        return OrderJudgement(unscored=lacking.unscored, detail=lacking.detail)
    total = sum(weights.values())
    balance = sum(weights[name] * (SHARES[one.winner or "tie"] - _UNDECIDED) for name, one in said.items())
    sure = sum(weights[name] * (one.confidence or 0.0) for name, one in said.items()) / total
    return OrderJudgement(
        winner="tie" if abs(balance) < 1e-9 else 1 if balance > 0 else 2, confidence=rounded(min(1.0, sure))
    )


def combine(criterion: str, replicate: int, orders: Sequence[OrderJudgement]) -> PairJudgement:
    """Return what both orders say together; nothing unless both count."""
    winners = [said.winner for said in orders]
    if None in winners:
        verdict: dict[str, Any] = {"winner": None, "share": None, "confidence": None, "agreed": None}
    elif len(set(winners)) == 1:
        sure = fmean(said.confidence or 0.0 for said in orders)
        winner = winners[0] or "tie"
        verdict = {"winner": winner, "share": SHARES[winner], "confidence": rounded(sure), "agreed": True}
    else:
        verdict = {"winner": "tie", "share": _UNDECIDED, "confidence": _UNDECIDED, "agreed": False}
    return PairJudgement(criterion=criterion, replicate=replicate, orders=list(orders), **verdict)
