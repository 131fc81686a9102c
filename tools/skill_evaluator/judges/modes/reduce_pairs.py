"""Answers of one judge in both orders → verdicts on matches → win rates, position bias, and rankings.

Agreement of the orders is the winner with the mean confidence. Disagreement is a tie at 0.5: the order decided.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.reading import Unscored, read_criteria, read_grounds, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, StoredVerdict
from skill_evaluator.judges.modes.pairwise import (
    ORDERS,
    OVERALL,
    JudgePreferences,
    MatchResult,
    OrderJudgement,
    PairJudgement,
    PairMatch,
    PairwiseCriterion,
    PairwiseResults,
    Preferred,
    Ranking,
    pairs_among,
    winners_of,
)
from skill_evaluator.judges.statistics.bounded import Figure, difference, mean_within
from skill_evaluator.judges.statistics.habits import own_noise, position_bias, pull_of_length
from skill_evaluator.judges.statistics.strengths import WinMatrix, strengths_of
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import mean_or_none, rounded

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
    return OrderJudgement(winner=winner, **grounds)


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


Judged = Sequence[tuple[PairMatch, MatchResult]]


def reduce_matches(
    matches: Sequence[PairMatch],
    criteria: Sequence[Criterion],
    answers: Mapping[Call, Replicate],
    replicates: int,
    judge: JudgeRecord,
) -> JudgePreferences:
    """Read and sum up what one judge answered."""
    names = [*(criterion.id for criterion in criteria), OVERALL]
    results = []
    for match in matches:
        given = [judge_match(match, criteria, answers, replicate) for replicate in range(replicates)]
        results.append(_result(match, names, [one for judgements in given for one in judgements]))
    judged = list(zip(matches, results, strict=True))
    strata = dict.fromkeys(result.stratum for result in results)
    pairs = [result for match, result in judged if match.of_a_pair]
    named = [result for match, result in judged if not match.of_a_pair]
    return JudgePreferences(
        judge=judge,
        criteria=[
            *(_figures(one.id, one.weight, one.confidence_threshold, judged) for one in criteria),
            _overall(criteria, judged),
        ],
        strata={
            stratum: mean_within(_shares([pair for pair in pairs if pair.stratum == stratum], OVERALL))
            for stratum in strata
        }
        if pairs
        else {},
        rankings=[rank(name, named) for name in names] if named else [],
        matches=results,
    )


def _result(match: PairMatch, names: Sequence[str], judgements: Sequence[PairJudgement]) -> MatchResult:
    shares = {
        name: [one.share for one in judgements if one.criterion == name and one.share is not None] for name in names
    }
    return MatchResult(
        item=match.item.id,
        stratum=match.item.stratum,
        names=match.names,
        shares={name: rounded(mean_or_none(given)) for name, given in shares.items()},
        judgements=list(judgements),
    )


def _overall(criteria: Sequence[Criterion], judged: Judged) -> PairwiseCriterion:
    thresholds = [criterion.confidence_threshold for criterion in criteria]
    weight = sum(criterion.weight for criterion in criteria)
    return _figures(OVERALL, weight, max(thresholds), judged)


def _figures(name: str, weight: float, threshold: float, judged: Judged) -> PairwiseCriterion:
    """Return the figures of one criterion. Position bias is that of the first replicate; noise needs a second one."""
    mine = [[one for one in result.judgements if one.criterion == name] for _, result in judged]
    given = [one for match in mine for one in match]
    pairs = [
        (share, len(match.outputs[0]) - len(match.outputs[1]))
        for match, result in judged
        if match.of_a_pair and (share := result.shares[name]) is not None
    ]
    shares = [share for share, _ in pairs]
    firsts = [match[0].orders for match in mine if match[0].winner is not None]
    position = position_bias([in_order.winner for in_order, _ in firsts], [swapped.winner for _, swapped in firsts])
    sure = [[one.confidence for one in match if one.confidence is not None] for match in mine]
    unscored = Counter(said.unscored for one in given for said in one.orders if said.unscored is not None)
    noise = own_noise(
        [[one.orders[order].winner for one in match if one.orders[order].winner] for order in (0, 1)] for match in mine
    )
    return PairwiseCriterion(
        criterion=name,
        weight=weight,
        wins=mean_within(shares),
        length=pull_of_length(shares, [longer for _, longer in pairs]),
        counts=dict(Counter(str(one.winner) for one in given if one.winner is not None)),
        disagreed=sum(one.agreed is False for one in given),
        unscored=dict(unscored),
        confidence=mean_within([fmean(shares) for shares in sure if shares]),
        unsure=sum(share < threshold for shares in sure for share in shares),
        flips=position.flips,
        picks_first=position.picks_first,
        lean=position.lean,
        noise=noise,
        flips_beyond_noise=None if noise is None else difference(position.flips, noise),
    )


def _shares(results: Sequence[MatchResult], name: str) -> list[float]:
    return [share for result in results if (share := result.shares[name]) is not None]


def rank(criterion: str, results: Sequence[MatchResult]) -> Ranking:
    """Return the outputs of several by strength, best first; those of the same name in several items are one."""
    names = list(dict.fromkeys(name for result in results for name in result.names))
    place = {name: index for index, name in enumerate(names)}
    met = [
        (place[result.names[0]], place[result.names[1]], share)
        for result in results
        if (share := result.shares[criterion]) is not None
    ]
    matrix = WinMatrix.of(met, len(names))
    strengths: list[Figure] | None = None
    remark = ""
    order = list(range(len(names)))
    try:
        fitted = strengths_of(matrix)
    except ValueError as problem:
        remark = str(problem)
    else:
        order.sort(key=lambda index: -(fitted.items[index].value or 0.0))
        strengths = [fitted.items[index] for index in order]
        if fitted.softened:
            remark = "an output won or lost everything, so that half a win either way was added to each pair"
    return Ranking(
        criterion=criterion,
        names=[names[index] for index in order],
        wins=[[int(matrix.wins[row, column]) for column in order] for row in order],
        ties=[[int(matrix.ties[row, column]) for column in order] for row in order],
        strengths=strengths,
        remark=remark,
    )


VERDICTS = "verdicts.jsonl"


def write_verdicts(folder: Path, results: PairwiseResults) -> None:
    """Write the verdicts of every answer about an item with two outputs; raise StorageError."""
    verdicts = (verdict for judge in results.judges for verdict in verdicts_of(judge))
    replace_blocks(folder / VERDICTS, (f"{verdict.model_dump_json(exclude_none=False)}\n" for verdict in verdicts))


def verdicts_of(judge: JudgePreferences) -> Iterator[StoredVerdict]:
    """Yield the verdict of every answer about an item with two outputs: overall, and by each criterion."""
    for match in pairs_among(judge.matches):
        by_replicate: dict[int, dict[str, PairJudgement]] = {}
        for judgement in match.judgements:
            by_replicate.setdefault(judgement.replicate, {})[judgement.criterion] = judgement
        for replicate, judgements in by_replicate.items():
            overall = judgements.pop(OVERALL)
            for place, said in enumerate(overall.orders):
                if said.unscored != "not_answered":  # nothing was said, which is no verdict
                    yield StoredVerdict(
                        id=match.item,
                        judge=judge.judge.model_id,
                        order=ORDERS[place],
                        winner=said.winner,
                        confidence=said.confidence,
                        replicate=replicate,
                        criteria={name: one.orders[place].winner for name, one in judgements.items()},
                    )
