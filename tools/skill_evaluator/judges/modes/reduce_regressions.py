"""A judge's answers on all pairs → what was found of each pair and in each dimension."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skill_evaluator.judges.asking.reading import Unscored, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, figure
from skill_evaluator.judges.modes.findings import (
    DimensionVerdict,
    Reading,
    RegressionVerdict,
    check_answer,
    combine_orders,
)
from skill_evaluator.judges.modes.regression import ORDERS, JudgedPair, question_id, read_answer
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    AnswerResult,
    ConclusionResult,
    DimensionResult,
    DimensionSummary,
    JudgeRegressions,
    PairResult,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS, NONE, Finding, ShipRules, count_severities
from skill_evaluator.judges.statistics.bounded import mean_within, rate
from skill_evaluator.runner.schedule import Call, Replicate

_STANDING: Mapping[Finding, int] = {"candidate_worse": -1, "same": 0, "candidate_better": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """One answer, held against the outputs; or why it counts for nothing."""

    order: int
    replicate: int
    reading: Reading | Unscored


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A pair with all its answers and the verdict on it."""

    pair: JudgedPair
    given: Sequence[_Given]
    verdict: RegressionVerdict


def reduce_regressions(
    pairs: Sequence[JudgedPair],
    answers: Mapping[Call, Replicate],
    replicates: int,
    rules: ShipRules,
    judge: JudgeRecord,
    *,
    declared_strong: bool,
) -> JudgeRegressions:
    """Return what a judge found. The first replicate of each order decides; the others show how well it repeats."""
    judged = [_judge(pair, answers, replicates, rules) for pair in pairs]
    given = [one for result in judged for one in result.given]
    decisions = [result.verdict.decision for result in judged]
    compared = [result.verdict for result in judged if result.verdict.compared]  # else half an answer counts as less
    decided = [verdict.decision for verdict in compared]
    names = dict.fromkeys(dimension.name for pair in pairs for dimension in pair.dimensions)
    results = [_pair_result(result) for result in judged]
    return JudgeRegressions(
        judge=judge,
        declared_strong=declared_strong,
        ship_decision=most_careful(decisions),
        decisions={name: figure(rate(decided.count(name), len(decided))) for name in DECISIONS},
        undecided=decisions.count(None),
        dimensions=[_summary(name, judged) for name in names],
        flips=figure(rate(sum(verdict.flipped > 0 for verdict in compared), len(compared))),
        lean=figure(mean_within([_lean(verdict) for verdict in compared], -1.0, 1.0)),
        repeats=figure(mean_within([share for result in judged if (share := _repeats(result)) is not None])),
        answers=len(given),
        unscored=Counter(one.reading.reason for one in given if isinstance(one.reading, Unscored)),
        mismatches=Counter(
            name for one in given if isinstance(one.reading, Reading) for name in one.reading.mismatches
        ),
        severity=count_severities(
            pair.regression_severity or NONE
            for pair in results
            if all(None not in one.by_order for one in pair.dimensions)
        ),
        pairs=results,
    )


def _judge(pair: JudgedPair, answers: Mapping[Call, Replicate], replicates: int, rules: ShipRules) -> _Judged:
    given = [
        _Given(
            order=order,
            replicate=replicate,
            reading=_read(pair, answers.get(Call(question_id(pair.id, order), replicate)), rules),
        )
        for replicate in range(replicates)
        for order in ORDERS
    ]
    first, second = (one.reading for one in given[: len(ORDERS)])
    return _Judged(pair=pair, given=given, verdict=combine_orders(first, second, pair.dimensions, rules))


def _read(pair: JudgedPair, made: Replicate | None, rules: ShipRules) -> Reading | Unscored:
    text = text_of(made)
    if isinstance(text, Unscored):
        return text
    outputs = pair.outputs
    answer = read_answer(text, pair.dimensions, (outputs.prompt, outputs.baseline, outputs.candidate))
    return answer if isinstance(answer, Unscored) else check_answer(answer, outputs, pair.dimensions, rules)


def _lean(verdict: RegressionVerdict) -> float:
    """Return how much better the candidate comes off where it stands first, from -1 to 1; the mean over dimensions."""
    by_order = [dimension.by_order for dimension in verdict.dimensions]
    return fmean((_STANDING[second] - _STANDING[first]) / 2 for first, second in by_order if first and second)


def _repeats(result: _Judged) -> float | None:
    """Return in what share of its further replicates a pair's verdicts are those of the first; None without any."""
    same = []
    for order in ORDERS:
        first, *further = (_verdicts(one.reading) for one in result.given if one.order == order)
        same += [other == first for other in further if None not in (first, other)]
    return sum(same) / len(same) if same else None


def _verdicts(reading: Reading | Unscored) -> dict[str, str] | None:
    if isinstance(reading, Unscored):
        return None
    return {name: finding.verdict for name, finding in reading.findings.items()}


def _summary(name: str, judged: Sequence[_Judged]) -> DimensionSummary:
    verdicts = [
        verdict
        for result in judged
        for verdict in result.verdict.dimensions
        if verdict.dimension == name and None not in verdict.by_order
    ]
    worse = [verdict for verdict in verdicts if verdict.verdict == "candidate_worse"]
    counts = Counter(verdict.verdict for verdict in verdicts)
    return DimensionSummary(
        dimension=name,
        blocking=any(
            dimension.blocking for result in judged for dimension in result.pair.dimensions if dimension.name == name
        ),
        better=counts["candidate_better"],
        same=counts["same"],
        uncertain=counts["uncertain"],
        worse=figure(rate(len(worse), len(verdicts))),
        impacts={impact: sum(verdict.impact == impact for verdict in worse) for impact in IMPACTS},
        unsupported=sum("unsupported" in verdict.flags for verdict in worse),
        style_only=sum("style_only" in verdict.flags for verdict in worse),
        flips=figure(rate(sum(len(set(verdict.by_order)) > 1 for verdict in verdicts), len(verdicts))),
    )


def _pair_result(result: _Judged) -> PairResult:
    verdict = result.verdict
    return PairResult(
        id=result.pair.id,
        stratum=result.pair.stratum,
        ship_decision=verdict.decision,
        reasons=list(verdict.reasons),
        regression_detected=verdict.regression_detected,
        regression_severity=verdict.regression_severity,
        dimensions=[_dimension_result(dimension) for dimension in verdict.dimensions],
        answers=[_answer_result(one) for one in result.given],
    )


def _dimension_result(verdict: DimensionVerdict) -> DimensionResult:
    worse = verdict.verdict == "candidate_worse"
    return DimensionResult(
        dimension=verdict.dimension,
        verdict=verdict.verdict,
        impact=verdict.impact,
        by_order=list(verdict.by_order),
        supported="unsupported" not in verdict.flags if worse else None,
        legs=list(verdict.legs),
        flags=list(verdict.flags),
    )


def _answer_result(given: _Given) -> AnswerResult:
    place = {"order": given.order, "replicate": given.replicate}
    if isinstance(given.reading, Unscored):
        unscored = {"unscored": given.reading.reason, "detail": given.reading.detail}
        return AnswerResult.model_validate({**place, **unscored})
    conclusion = ConclusionResult(
        **given.reading.answer.model_dump(exclude={"per_dimension"}),
        mismatches=list(given.reading.mismatches),
        basis_too_long=given.reading.basis_too_long,
    )
    findings = list(given.reading.findings.values())
    return AnswerResult.model_validate({**place, "findings": findings, "conclusion": conclusion})
