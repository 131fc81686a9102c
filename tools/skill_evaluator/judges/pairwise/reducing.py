"""Verdicts on matches of one judge → win rates, raw and at equal length, position bias, and rankings of several."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from skill_evaluator.judges.asking.criteria import mitigations_of
from skill_evaluator.judges.asking.results import JudgeRecord, figure
from skill_evaluator.judges.calibration.results import FigureResult
from skill_evaluator.judges.pairwise.combining import judge_match
from skill_evaluator.judges.pairwise.matches import PairMatch
from skill_evaluator.judges.pairwise.results import (
    OVERALL,
    JudgePreferences,
    MatchResult,
    PairJudgement,
    PairwiseCriterion,
    Ranking,
)
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.judges.statistics.bradley_terry import WinMatrix, strengths_of
from skill_evaluator.judges.statistics.length_control import win_rates
from skill_evaluator.judges.statistics.position import flips_beyond_noise, position_bias
from skill_evaluator.judges.statistics.scores import own_noise
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import mean_or_none, rounded

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
        criteria=[*(_criterion(criterion, judged) for criterion in criteria), _overall(criteria, judged)],
        strata={
            stratum: figure(mean_within(_shares([pair for pair in pairs if pair.stratum == stratum], OVERALL)))
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


def _criterion(criterion: Criterion, judged: Judged) -> PairwiseCriterion:
    normalised = "length_normalization" in mitigations_of(criterion)
    return _figures(criterion.id, criterion.weight, criterion.confidence_threshold, judged, by_equal_length=normalised)


def _overall(criteria: Sequence[Criterion], judged: Judged) -> PairwiseCriterion:
    thresholds = [criterion.confidence_threshold for criterion in criteria]
    normalised = all("length_normalization" in mitigations_of(criterion) for criterion in criteria)
    weight = sum(criterion.weight for criterion in criteria)
    return _figures(OVERALL, weight, max(thresholds), judged, by_equal_length=normalised)


def _figures(name: str, weight: float, threshold: float, judged: Judged, *, by_equal_length: bool) -> PairwiseCriterion:
    """Return the figures of one criterion. Position bias is that of the first replicate; noise needs a second one."""
    mine = [[one for one in result.judgements if one.criterion == name] for _, result in judged]
    given = [one for match in mine for one in match]
    pairs = [
        (share, len(match.outputs[0]) - len(match.outputs[1]))
        for match, result in judged
        if match.of_a_pair and (share := result.shares[name]) is not None
    ]
    rates = win_rates([share for share, _ in pairs], [longer for _, longer in pairs])
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
        wins=figure(rates.raw),
        equal_length=figure(rates.controlled),
        by_equal_length=by_equal_length,
        length=figure(rates.length),
        counts=dict(Counter(str(one.winner) for one in given if one.winner is not None)),
        disagreed=sum(one.agreed is False for one in given),
        unscored=dict(unscored),
        confidence=figure(mean_within([fmean(shares) for shares in sure if shares])),
        unsure=sum(share < threshold for shares in sure for share in shares),
        flips=figure(position.flips),
        picks_first=figure(position.picks_first),
        lean=figure(position.lean),
        noise=None if noise is None else figure(noise),
        flips_beyond_noise=None if noise is None else figure(flips_beyond_noise(position.flips, noise)),
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
    strengths: list[FigureResult] | None = None
    remark = ""
    order = list(range(len(names)))
    try:
        fitted = strengths_of(matrix)
    except ValueError as problem:
        remark = str(problem)
    else:
        order.sort(key=lambda index: -(fitted.items[index].value or 0.0))
        strengths = [figure(fitted.items[index]) for index in order]
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
