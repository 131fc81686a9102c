"""A judge's answers on all pairs → what was found of each pair and in each dimension."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from skill_evaluator.judges.asking.reading import Unscored, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, Order
from skill_evaluator.judges.modes.findings import check_answer, combine_orders
from skill_evaluator.judges.modes.regression import ORDERS, JudgedPair, question_id, read_answer
from skill_evaluator.judges.modes.regression_results import (
    DECISIONS,
    AnswerResult,
    DimensionSummary,
    JudgeRegressions,
    PairResult,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import IMPACTS, NONE, Finding, ShipRules, count_severities
from skill_evaluator.judges.statistics.bounded import mean_within, rate
from skill_evaluator.runner.schedule import Call, Replicate

_STANDING: Mapping[Finding, int] = {"candidate_worse": -1, "same": 0, "candidate_better": 1}


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
    results = [
        combine_orders(
            pair,
            [
                _read(pair, answers.get(Call(question_id(pair.id, order), replicate)), rules, order, replicate)
                for replicate in range(replicates)
                for order in ORDERS
            ],
            rules,
        )
        for pair in pairs
    ]
    given = [answer for result in results for answer in result.answers]
    decisions = [result.ship_decision for result in results]
    compared = [result for result in results if result.compared]  # else half an answer counts as less
    decided = [result.ship_decision for result in compared]
    blocking: dict[str, bool] = {}
    for dimension in (dimension for pair in pairs for dimension in pair.dimensions):
        blocking[dimension.name] = blocking.get(dimension.name, False) or dimension.blocking
    return JudgeRegressions(
        judge=judge,
        declared_strong=declared_strong,
        ship_decision=most_careful(decisions),
        decisions={name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        undecided=decisions.count(None),
        dimensions=[_summary(name, blocks, results) for name, blocks in blocking.items()],
        flips=rate(sum(result.flipped > 0 for result in compared), len(compared)),
        lean=mean_within([_lean(result) for result in compared], -1.0, 1.0),
        repeats=mean_within([share for result in results if (share := _repeats(result)) is not None]),
        answers=len(given),
        unscored=Counter(answer.unscored for answer in given if answer.unscored is not None),
        mismatches=Counter(name for answer in given if answer.conclusion for name in answer.conclusion.mismatches),
        severity=count_severities(result.regression_severity or NONE for result in compared),
        pairs=results,
    )


def _read(pair: JudgedPair, made: Replicate | None, rules: ShipRules, order: Order, replicate: int) -> AnswerResult:
    text, outputs = text_of(made), pair.outputs
    shown = (outputs.prompt, outputs.baseline, outputs.candidate)
    answer = text if isinstance(text, Unscored) else read_answer(text, pair.dimensions, shown)
    return check_answer(answer, outputs, pair.dimensions, rules, order, replicate)


def _lean(result: PairResult) -> float:
    """Return how much better the candidate comes off where it stands first, from -1 to 1; the mean over dimensions."""
    by_order = [dimension.by_order for dimension in result.dimensions]
    return fmean((_STANDING[second] - _STANDING[first]) / 2 for first, second in by_order if first and second)


def _repeats(result: PairResult) -> float | None:
    """Return in what share of its further replicates a pair's verdicts are those of the first; None without any."""
    same = []
    for order in ORDERS:
        first, *further = (
            None if one.unscored else {finding.dimension: finding.verdict for finding in one.findings}
            for one in result.answers
            if one.order == order
        )
        same += [other == first for other in further if None not in (first, other)]
    return sum(same) / len(same) if same else None


def _summary(name: str, blocking: bool, results: Sequence[PairResult]) -> DimensionSummary:
    every = (one for result in results for one in result.dimensions if one.dimension == name)
    verdicts = [one for one in every if None not in one.by_order]
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
        unsupported=sum("unsupported" in one.flags for one in worse),
        style_only=sum("style_only" in one.flags for one in worse),
        flips=rate(sum(one.flipped for one in verdicts), len(verdicts)),
    )
