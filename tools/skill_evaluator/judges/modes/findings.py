"""A regression judge's answers → the verdict on each pair and the rates of the batch.

The replicates of an order vote. A verdict that only one order gives is *uncertain*, and a person decides; a regression
of high impact still blocks if no answer of the other order counts. A regression without a quotation that shows the
difference counts like every other, and is marked as unverified.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from skill_evaluator.judges.asking.reading import text_of
from skill_evaluator.judges.asking.results import JudgeRecord, no_usable_output, texts_of
from skill_evaluator.judges.modes.regression import (
    ORDERS,
    DimensionFinding,
    JudgedPair,
    RegressionAnswer,
    question_id,
    read_answer,
)
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    DimensionResult,
    DimensionSummary,
    JudgeRegressions,
    PairResult,
    PairVerdict,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import (
    IMPACTS,
    NONE,
    Finding,
    Impact,
    ShipRules,
    count_severities,
    decide,
    severity_of,
)
from skill_evaluator.judges.statistics.bounded import mean_within, rate
from skill_evaluator.runner.schedule import Call, Replicate

_UNCERTAIN = 0.5  # the confidence of a verdict on which the orders disagree
_POINTS: Mapping[Finding, int] = {"candidate_worse": -1, "same": 0, "candidate_better": 1}


class OrderVote(NamedTuple):
    """The verdict of one order's replicates in a dimension; `confidence` is the share of the answers that give it."""

    verdict: Finding
    impact: Impact | None
    confidence: float


def vote(findings: Sequence[DimensionFinding]) -> OrderVote | None:
    """Return the majority of one order's findings; a tie is *same* with half the confidence. Return None without any.

    The impact is the highest that the majority gives.
    """
    if not findings:
        return None
    counts = Counter(finding.verdict for finding in findings)
    (verdict, votes), *others = counts.most_common(2)
    confidence = votes / len(findings)
    if others and others[0][1] == votes:
        return OrderVote("same", None, confidence / 2)
    impacts = [finding.impact for finding in findings if finding.verdict == verdict and finding.impact is not None]
    return OrderVote(verdict, _highest(impacts), confidence)


def _highest(impacts: Sequence[Impact]) -> Impact | None:
    return max(impacts, key=IMPACTS.index) if impacts else None


def combine_orders(pair: JudgedPair, answers: Sequence[RegressionAnswer], rules: ShipRules) -> PairResult:
    """Return the verdict of a judge's answers on a pair, in both orders and all replicates."""
    dimensions = [_combine(dimension.name, answers) for dimension in pair.dimensions]
    worse = {one.dimension: one.impact for one in dimensions if one.impact is not None}
    decision, reason = decide(worse, pair.dimensions, rules)
    doubts = list(_doubts(dimensions, answers))
    if doubts and decision == "ship":
        decision, reason = "review_required", doubts.pop(0)
    unverified = [f"unverified: {one.dimension}" for one in dimensions if one.verified is False]
    judged = any(answer.unscored is None for answer in answers)
    reported = any("candidate_worse" in one.by_order for one in dimensions)
    known = judged and (bool(worse) or not reported)
    return PairResult(
        id=pair.id,
        stratum=pair.item.stratum,
        ship_decision=decision if judged else None,
        reasons=[reason, *unverified, *doubts],
        regression_detected=bool(worse) if known else None,
        regression_severity=severity_of(list(worse.values())) if known else None,
        dimensions=dimensions,
        answers=list(answers),
    )


def _doubts(dimensions: Sequence[DimensionResult], answers: Sequence[RegressionAnswer]) -> Iterator[str]:
    """Yield the reasons why a pair without a regression does not ship."""
    yield from (
        f"uncertain: {one.dimension} ({', then '.join(map(str, one.by_order))})" for one in dimensions if one.flipped
    )
    unrequested = dict.fromkeys(name for answer in answers for name in answer.unrequested)
    if unrequested:
        yield f"dimension that was not requested: {', '.join(unrequested)}"
    yield from dict.fromkeys(
        f"unscored answer: {answer.unscored}{f' ({answer.detail})' if answer.detail else ''}"
        for answer in answers
        if answer.unscored is not None
    )


def _combine(name: str, answers: Sequence[RegressionAnswer]) -> DimensionResult:
    by_order = [
        [finding for answer in answers if answer.order == order and (finding := answer.finding(name)) is not None]
        for order in ORDERS
    ]
    votes = [vote(findings) for findings in by_order]
    made = [one for one in votes if one is not None]
    verdict: PairVerdict = "uncertain"
    confidence = _UNCERTAIN if made else 0.0
    if len(made) == len(ORDERS) and made[0].verdict == made[1].verdict:
        verdict, confidence = made[0].verdict, fmean(one.confidence for one in made)
    elif len(made) == 1 and made[0].impact == "high":
        verdict, confidence = made[0].verdict, made[0].confidence / len(ORDERS)
    impacts = [one.impact for one in made if one.impact is not None]
    worse = verdict == "candidate_worse"
    return DimensionResult(
        dimension=name,
        verdict=verdict,
        impact=_highest(impacts) if worse else None,
        by_order=[None if one is None else one.verdict for one in votes],
        confidence=round(confidence, 6),
        verified=any(finding.verified for findings in by_order for finding in findings) if worse else None,
    )


def _identical(pair: JudgedPair, rules: ShipRules) -> PairResult:
    """Return the result of identical outputs: the same in every dimension, without a call."""
    same = [DimensionFinding(dimension=dimension.name, verdict="same") for dimension in pair.dimensions]
    result = combine_orders(pair, [RegressionAnswer(order=order, findings=same) for order in ORDERS], rules)
    reasons = ["identical outputs"] if result.ship_decision == "ship" else result.reasons
    return result.model_copy(update={"answers": [], "identical": True, "reasons": reasons})


def reduce_regressions(
    pairs: Sequence[JudgedPair],
    answers: Mapping[Call, Replicate],
    replicates: int,
    rules: ShipRules,
    judge: JudgeRecord,
    *,
    declared_strong: bool,
) -> JudgeRegressions:
    """Return a judge's verdicts on pairs, and their rates."""
    results = [
        _identical(pair, rules)
        if pair.identical
        else combine_orders(pair, list(_read(pair, answers, replicates, rules)), rules)
        for pair in pairs
    ]
    given = [answer for result in results for answer in result.answers]
    unscored = Counter(answer.unscored for answer in given if answer.unscored is not None)
    unusable = no_usable_output(unscored, len(given), texts_of(answers.values()))
    decisions = [result.ship_decision for result in results]
    compared = [result for result in results if result.compared]  # half an answer would count as less
    decided = [result.ship_decision for result in compared]
    blocking = dict.fromkeys((one.name for pair in pairs for one in pair.dimensions), False)
    blocking |= {one.name: True for pair in pairs for one in pair.dimensions if one.blocking}
    worse = [one for result in compared for one in result.dimensions if one.verified is not None]
    return JudgeRegressions(
        judge=judge,
        declared_strong=declared_strong,
        ship_decision=most_careful(decisions),
        decisions={} if unusable else {name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        undecided=decisions.count(None),
        dimensions=[] if unusable else [_summary(name, blocks, compared) for name, blocks in blocking.items()],
        flips=rate(sum(any(one.flipped for one in result.dimensions) for result in compared), len(compared)),
        lean=mean_within([_lean(result) for result in compared if not result.identical], -1.0, 1.0),
        repeats=mean_within([share for result in results if (share := _repeats(result)) is not None]),
        unverified=rate(sum(not one.verified for one in worse), len(worse)),
        answers=len(given),
        unscored=unscored,
        mismatches=Counter(name for answer in given for name in answer.mismatches),
        unrequested=Counter(name for answer in given for name in answer.unrequested),
        severity=count_severities(result.regression_severity or NONE for result in compared),
        unusable=unusable,
        pairs=results,
    )


def _read(
    pair: JudgedPair, answers: Mapping[Call, Replicate], replicates: int, rules: ShipRules
) -> Iterator[RegressionAnswer]:
    for replicate in range(replicates):
        for order in ORDERS:
            text = text_of(answers.get(Call(question_id(pair.id, order), replicate)))
            yield read_answer(text, pair, rules, order, replicate)


def _lean(result: PairResult) -> float:
    """Return how much better the candidate is judged when it stands first, from -1 to 1; the mean over dimensions."""
    by_order = [dimension.by_order for dimension in result.dimensions]
    return fmean((_POINTS[second] - _POINTS[first]) / 2 for first, second in by_order if first and second)


def _repeats(result: PairResult) -> float | None:
    """Return the share of replicate pairs that agree in every dimension. Return None without two that count."""
    same = []
    for order in ORDERS:
        verdicts = [
            [finding.verdict for finding in answer.findings]
            for answer in result.answers
            if answer.order == order and answer.unscored is None
        ]
        same += [one == other for one, other in combinations(verdicts, 2)]
    return fmean(same) if same else None


def _summary(name: str, blocking: bool, compared: Sequence[PairResult]) -> DimensionSummary:
    verdicts = [one for result in compared for one in result.dimensions if one.dimension == name]
    worse = [one for one in verdicts if one.verdict == "candidate_worse"]
    counts = Counter(one.verdict for one in verdicts)
    return DimensionSummary(
        dimension=name,
        blocking=blocking,
        better=counts["candidate_better"],
        same=counts["same"],
        uncertain=counts["uncertain"],
        worse=rate(len(worse), len(verdicts)),
        impacts={impact: sum(one.impact == impact for one in worse) for impact in IMPACTS},
        unverified=sum(one.verified is False for one in worse),
        flips=rate(sum(one.flipped for one in verdicts), len(verdicts)),
    )
