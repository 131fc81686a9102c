"""Results of judges → what they leave to people, and why; beside it a sample of what they are sure of.

A doubt that code can name is a reason: low confidence, orders or judges that differ, evidence that is missing, answers
that do not count, and whatever would keep a version from being shipped.
"""

from collections.abc import Iterable, Mapping, Sequence

from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.modes.pairwise import MatchResult, PairMatch, PairwiseResults
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import PairResult, RegressionResults
from skill_evaluator.judges.modes.scoring import ItemScores, ScoreResults
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason
from skill_evaluator.judges.review.making import paired_item, regression_item, sampled, scored_item
from skill_evaluator.library.rubrics import Criterion

Doubts = Sequence[tuple[ReviewItem, Sequence[ReviewReason]]]
"""Every item that judges were asked about, with the reasons why a person is to look at it, if there are any."""

_APART = 2  # scores of one output so far from each other are a disagreement


def for_people(doubts: Doubts, sample: int, seed: int) -> list[ReviewItem]:
    """Return the items in doubt with their reasons, and so many by chance of all, which have the reason `random`.

    The sample is of all items, in doubt or not, so that what people say of it holds for the judging as a whole.
    """
    by_chance = {item.id for item in sampled([item for item, _ in doubts], sample, seed)}
    people: list[ReviewItem] = []
    for item, reasons in doubts:
        every: tuple[ReviewReason, ...] = (*reasons, "random") if item.id in by_chance else tuple(reasons)
        if every:
            people.append(item.model_copy(update={"reasons": every}))
    return people


def doubts_of_scores(results: ScoreResults, items: Iterable[OutputItem], criteria: Sequence[Criterion]) -> Doubts:
    """Return the outputs of `judge score`. Judges or replicates whose scores are two levels apart disagree."""
    given: dict[str, list[ItemScores]] = {}
    for judge in results.judges:
        for scores in judge.items:
            given.setdefault(scores.id, []).append(scores)
    return [
        (scored_item(item, criteria, results.judging.id), reasons_of_scores(given.get(item.id, []), criteria))
        for item in items
    ]


def reasons_of_scores(given: Sequence[ItemScores], criteria: Sequence[Criterion]) -> list[ReviewReason]:
    """Return why what judges say of one output is left to somebody else; nothing where it is settled."""
    reasons: dict[ReviewReason, None] = {}
    for criterion in criteria:
        made = [one for scores in given for one in scores.judgements if one.criterion == criterion.id]
        if any(one.confidence is not None and one.confidence < criterion.confidence_threshold for one in made):
            reasons["low_confidence"] = None
        levels = [one.score for one in made if one.score is not None]
        if levels and max(levels) - min(levels) >= _APART:
            reasons["disagreement"] = None
        if any(one.unscored is not None for one in made):
            reasons["unscored"] = None
    return list(reasons)


def doubts_of_pairs(results: PairwiseResults, matches: Iterable[PairMatch], criteria: Sequence[Criterion]) -> Doubts:
    """Return the matches of `judge pairwise`. Orders, replicates or judges with other winners disagree."""
    given: dict[tuple[str, tuple[str, str]], list[MatchResult]] = {}
    for judge in results.judges:
        for result in judge.matches:
            given.setdefault((result.item, result.names), []).append(result)
    return [
        (
            paired_item(match.item, match.names, criteria, results.judging.id),
            reasons_of_match(given.get((match.item.id, match.names), []), criteria),
        )
        for match in matches
    ]


def reasons_of_match(given: Sequence[MatchResult], criteria: Sequence[Criterion]) -> list[ReviewReason]:
    """Return why what judges say of one match is left to somebody else; nothing where it is settled."""
    reasons: dict[ReviewReason, None] = {}
    for criterion in criteria:
        made = [one for result in given for one in result.judgements if one.criterion == criterion.id]
        sure = [one.confidence for one in made if one.agreed and one.confidence is not None]
        if any(share < criterion.confidence_threshold for share in sure):  # where the orders differ it is 0.5
            reasons["low_confidence"] = None
        if any(one.agreed is False for one in made) or len({one.winner for one in made} - {None}) > 1:
            reasons["disagreement"] = None
        if any(one.winner is None for one in made):
            reasons["unscored"] = None
    return list(reasons)


def doubts_of_regressions(results: RegressionResults, pairs: Sequence[JudgedPair]) -> Doubts:
    """Return the pairs of `judge regression`: each that does not ship is in doubt."""
    given: dict[str, list[PairResult]] = {}
    for judge in results.judges:
        for result in judge.pairs:
            given.setdefault(result.id, []).append(result)
    stakes = results.rules.high_stakes
    return [
        (regression_item(pair, results.judging.id), reasons_of_regression(given.get(pair.id, []), high_stakes=stakes))
        for pair in pairs
    ]


def reasons_of_regression(given: Sequence[PairResult], *, high_stakes: bool) -> list[ReviewReason]:
    """Return why a person is to look at what judges find of one pair; nothing where it ships."""
    decisions = {one.ship_decision for one in given}
    found = [dimension for one in given for dimension in one.dimensions]
    holds: Mapping[ReviewReason, bool] = {
        "block": "block" in decisions,
        "regression": any(one.ship_decision == "review_required" and one.regression_detected for one in given),
        "disagreement": len(decisions) > 1 or any(len({*one.by_order} - {None}) > 1 for one in found),
        "unsupported": any("unsupported" in one.flags for one in found),
        "unscored": any(answer.unscored is not None for one in given for answer in one.answers),
        "stakes": high_stakes,
    }
    return [reason for reason, here in holds.items() if here]
