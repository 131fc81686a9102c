"""`judge pairwise`: matches of two outputs, judged in both orders; the verdicts and their figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveFloat, model_validator

from skill_evaluator.files import FrozenModel, NestingModel, flat_part
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.judge_run import ORDERS, JudgeCalls, Order, StoredVerdict
from skill_evaluator.judges.modes.results import NO_FIGURE, JudgeFigures, Judgement, ModeResults
from skill_evaluator.judges.prompting import questions
from skill_evaluator.judges.prompting.criteria import NamedRubric, criteria_text, mitigations_of
from skill_evaluator.judges.prompting.questions import Form
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, read_criteria, read_judgement
from skill_evaluator.judges.statistics import Estimate, PositionBias, mean_within, own_noise, position_bias
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.providers.base import Request
from skill_evaluator.stats import by_key, mean_or_none, rounded

PROMPT = "pairwise"
PAIR = ("1", "2")


class PairItem(questions.JudgedItem):
    """An item with two outputs (`output_1`, `output_2`), or with several by name (`outputs`).

    `model_1`, `model_2` and `models` (by name of the output) are the models that wrote them, if known.
    """

    output_1: questions.JudgedText | None = None
    output_2: questions.JudgedText | None = None
    outputs: dict[Label, questions.JudgedText] = {}
    model_1: Label | None = None
    model_2: Label | None = None
    models: dict[Label, Label] = {}

    @model_validator(mode="after")
    def _require_two_outputs(self) -> Self:
        pair = [output for output in (self.output_1, self.output_2) if output]
        if not ((len(pair) == 2 and not self.outputs) or (not pair and len(self.outputs) > 1)):
            raise ValueError("expected output_1 and output_2, or outputs with at least two named texts")
        if not all(self.outputs.values()):
            raise ValueError("an output is empty")
        return self

    @property
    def texts(self) -> Mapping[str, str]:
        """The outputs by name; the outputs of a pair are named 1 and 2."""
        return self.outputs or dict(zip(PAIR, (self.output_1 or "", self.output_2 or ""), strict=True))

    @property
    def writers(self) -> tuple[str | None, ...]:
        """The model that wrote each output, None if unknown."""
        if self.outputs:
            return tuple(self.models.get(name) for name in self.outputs)
        return self.model_1, self.model_2


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatch:
    """A match: two outputs of an item, by name."""

    item: PairItem
    names: tuple[str, str]

    @property
    def id(self) -> str:
        """The id of the item, with the numbers of the two outputs if the outputs have names."""
        first, second = (list(self.item.texts).index(name) + 1 for name in self.names)
        return f"{self.item.id}/{first}-{second}" if self.item.outputs else self.item.id


def matches_of(items: Iterable[PairItem]) -> list[PairMatch]:
    """Return a match for each pair of outputs of each item."""
    return [PairMatch(item=item, names=names) for item in items for names in combinations(item.texts, 2)]


def match_questions(rubric: NamedRubric, matches: Sequence[PairMatch], seed: int) -> list[Request]:
    """Return two questions on each match: in order, then swapped."""
    prompt, form = questions.load_prompt(PROMPT), preference_form(rubric.criteria)
    instructions = {"criteria": criteria_text(rubric.rubric, rubric.criteria, prompt.mitigations, scored=False)}
    in_orders = []
    for match in matches:
        item, mark = match.item, questions.mark_of(seed, match.item.digest)
        for order, (first, second) in zip(ORDERS, (match.names, reversed(match.names)), strict=True):
            texts = {"input": item.input, "first_output": item.texts[first], "second_output": item.texts[second]}
            in_orders.append(prompt.question(f"{match.id}/{order}", instructions, texts, form, mark))
    return in_orders


def preference_form(criteria: Sequence[Criterion]) -> Form:
    """Return the form of a judge's output: evidence, justification, winner and confidence by criterion."""
    by_criterion = {}
    for criterion in criteria:
        grounds = {**dict.fromkeys(_EVIDENCE, Form.list_of(Form.text())), "justification": Form.text()}
        winner = Form.one_of(winners_of(criterion), " or ")
        by_criterion[criterion.id] = Form.object_of({**grounds, "winner": winner, "confidence": Form.confidence()})
    return Form.object_of({"criteria": Form.object_of(by_criterion)})


def winners_of(criterion: Criterion) -> list[str]:
    """Return the values of `winner` that a criterion allows: first, second and, if it allows ties, tie."""
    return ["first", "second", *(["tie"] if "ties_allowed" in mitigations_of(criterion) else [])]


OVERALL = "overall"
Preferred = Literal[1, 2, "tie"]


class OrderJudgement(Judgement):
    """A judge's verdict in one order. `winner` is the number of the output; null if the verdict does not count."""

    winner: Preferred | None = None


class PairJudgement(FrozenModel):
    """A judge's verdict on a criterion or overall. `winner` and `agreed` are null unless both orders have a winner."""

    criterion: Label
    replicate: NonNegativeInt
    winner: Preferred | None = None
    confidence: Share | None = None
    agreed: bool | None = None
    orders: list[OrderJudgement]


class MatchResult(FrozenModel):
    """A judge's verdicts on a match of the two outputs in `names`.

    `shares` has the first output's share of wins among the replicates, by criterion and `overall`. A tie counts half.
    The share is null if no replicate has a usable verdict.
    """

    item: Label
    stratum: Label
    names: tuple[Label, Label]
    shares: dict[Label, Share | None]
    judgements: list[PairJudgement]


def pair_results(matches: Sequence[MatchResult]) -> list[MatchResult]:
    """Return the results of items whose only two outputs are named 1 and 2."""
    several = {match.item for match in matches if match.names != PAIR}
    return [match for match in matches if match.item not in several]


def winner_of(share: float | None) -> Preferred | None:
    """Return the winner for output 1's share of wins: 1 if it is 1, 2 if it is 0, else a tie. Return None for None."""
    return None if share is None else 1 if share == 1 else 2 if share == 0 else "tie"


class PairwiseCriterion(NestingModel):
    """A judge's figures on one criterion over all matches, or on all criteria together (`overall`).

    `wins` and `similar_length` are win rates of output 1, and `longer` is the win rate of the longer output. A tie
    counts half, and items with named outputs do not count. `PositionBias` explains `flips`, `picks_first` and `lean`.
    """

    criterion: Label
    weight: PositiveFloat
    wins: Estimate  # win rate of output 1
    similar_length: Estimate = NO_FIGURE  # win rate of output 1 if the lengths differ by at most 20 %
    longer: Estimate = NO_FIGURE  # win rate of the longer output
    counts: dict[str, NonNegativeInt]  # judgements by winner
    disagreed: NonNegativeInt  # ties because the verdict changes with the order
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: Estimate
    unsure: NonNegativeInt  # same verdict in both orders, but with a confidence below the threshold
    position: PositionBias = flat_part("position")
    noise: Estimate | None = None  # share of the pairs of replicates that differ


class JudgePreferences(JudgeFigures):
    """The preferences of one judge."""

    criteria: list[PairwiseCriterion]  # the last is `overall`
    strata: dict[Label, Estimate]  # overall win rate of output 1, by stratum
    win_rates: dict[Label, Estimate] = {}  # win rate of each output by name; empty if the outputs have no names
    matches: list[MatchResult]

    @property
    def shown(self) -> list[PairwiseCriterion]:
        """The criteria to show. If there is only one criterion, `overall` has the same figures and is skipped."""
        return self.criteria[:1] if len(self.criteria) == 2 else self.criteria


class PairwiseResults(ModeResults):
    """The results of `judge pairwise`."""

    judges: list[JudgePreferences]


_EVIDENCE = ("evidence_first", "evidence_second")
_TIE_SHARE = 0.5
_MAX_LENGTH_DIFFERENCE = 0.2  # share of the longer output's length
SHARES: Mapping[object, float] = {1: 1.0, 2: 0.0, "tie": _TIE_SHARE}


def judge_match(match: PairMatch, criteria: Sequence[Criterion], calls: JudgeCalls) -> MatchResult:
    """Read a judge's verdicts on a match of two outputs, in both orders and all replicates."""
    texts = [text for text in (*(match.item.texts[name] for name in match.names), match.item.input) if text]
    judgements = []
    for replicate in range(calls.replicates):
        first, second = (
            read_order(calls.output(f"{match.id}/{order}", replicate), criteria, texts, order) for order in ORDERS
        )
        judgements += [combine(name, replicate, [first[name], second[name]]) for name in first]
    shares: dict[str, list[float]] = {judgement.criterion: [] for judgement in judgements}
    for judgement in judgements:
        shares[judgement.criterion] += [] if judgement.winner is None else [SHARES[judgement.winner]]
    return MatchResult(
        item=match.item.id,
        stratum=match.item.stratum,
        names=match.names,
        shares={name: rounded(mean_or_none(values)) for name, values in shares.items()},
        judgements=judgements,
    )


def read_order(
    answer: str | Unscored, criteria: Sequence[Criterion], texts: Sequence[str], order: Order
) -> dict[str, OrderJudgement]:
    """Return the judge's verdicts in one order by criterion id, and under `overall` the weighted verdict."""
    written = read_criteria(answer, [criterion.id for criterion in criteria], texts)
    outputs: dict[object, Preferred] = {"first": order, "second": 2 if order == 1 else 1, "tie": "tie"}
    judgements = {}
    for criterion in criteria:
        fields = read_judgement(written[criterion.id], "winner", winners_of(criterion), _EVIDENCE, criterion, texts)
        judgements[criterion.id] = OrderJudgement(**{**fields, "winner": outputs.get(fields.get("winner"))})
    return {**judgements, OVERALL: weigh(judgements, criteria)}


def weigh(judgements: Mapping[str, OrderJudgement], criteria: Sequence[Criterion]) -> OrderJudgement:
    """Combine the verdicts on all criteria by weight. The overall verdict is unscored if a verdict is unscored."""
    total = sum(criterion.weight for criterion in criteria)
    balance = confidence = 0.0
    for criterion in criteria:
        judgement = judgements[criterion.id]
        if judgement.winner is None:
            return OrderJudgement(unscored=judgement.unscored, detail=judgement.detail)
        balance += criterion.weight * (SHARES[judgement.winner] - _TIE_SHARE)
        confidence += criterion.weight * (judgement.confidence or 0.0)
    winner: Preferred = "tie" if abs(balance) < 1e-9 else 1 if balance > 0 else 2
    return OrderJudgement(winner=winner, confidence=rounded(min(1.0, confidence / total)))


def combine(criterion: str, replicate: int, orders: list[OrderJudgement]) -> PairJudgement:
    """Combine the verdicts of both orders: a tie if the winners differ, and no winner if a verdict is unscored."""
    first, second = (order.winner for order in orders)
    if first is None or second is None:
        return PairJudgement(criterion=criterion, replicate=replicate, orders=orders)
    agreed = first == second
    return PairJudgement(
        criterion=criterion,
        replicate=replicate,
        winner=first if agreed else "tie",
        confidence=rounded(fmean(order.confidence or 0.0 for order in orders)) if agreed else _TIE_SHARE,
        agreed=agreed,
        orders=orders,
    )


def reduce_matches(matches: Sequence[PairMatch], calls: JudgeCalls, criteria: Sequence[Criterion]) -> JudgePreferences:
    """Read one judge's verdicts on the matches of two outputs, and compute the figures of each criterion."""
    results = [judge_match(match, criteria, calls) for match in matches]
    orders = [order for one in results for part in one.judgements if part.criterion == OVERALL for order in part.orders]
    unusable = calls.unusable([one.unscored for one in orders])
    judged = list(zip(matches, results, strict=True))
    figures = [_criterion_figures(one.id, one.weight, one.confidence_threshold, judged) for one in criteria]
    strictest = max(criterion.confidence_threshold for criterion in criteria)
    figures.append(_criterion_figures(OVERALL, sum(one.weight for one in criteria), strictest, judged))
    pairs = pair_results(results)
    by_stratum = by_key((pair.stratum, share) for pair in pairs if (share := pair.shares[OVERALL]) is not None)
    return JudgePreferences(
        judge=calls.record,
        criteria=[] if unusable else figures,
        strata={stratum: mean_within(shares) for stratum, shares in by_stratum.items()},
        win_rates=rank_outputs([(one.item, one.names, one.shares[OVERALL]) for one in results if one not in pairs]),
        unusable=unusable,
        matches=results,
    )


def _criterion_figures(
    name: str, weight: float, threshold: float, judged: Sequence[tuple[PairMatch, MatchResult]]
) -> PairwiseCriterion:
    """Return the figures of one criterion. Position bias uses the first replicate; noise requires two replicates."""
    by_match = [[one for one in result.judgements if one.criterion == name] for _, result in judged]
    judgements = [one for match in by_match for one in match]
    pairs = [
        (share, *(len(text) for text in match.item.texts.values()))
        for match, result in judged
        if tuple(match.item.texts) == PAIR and (share := result.shares[name]) is not None
    ]
    first_replicates = [match[0].orders for match in by_match if match[0].winner is not None]
    judged_matches = [usable for match in by_match if (usable := [one for one in match if one.winner is not None])]
    return PairwiseCriterion(
        criterion=name,
        weight=weight,
        wins=mean_within([share for share, *_ in pairs]),
        similar_length=mean_within(
            [share for share, left, right in pairs if abs(left - right) <= _MAX_LENGTH_DIFFERENCE * max(left, right)]
        ),
        longer=mean_within([share if left > right else 1 - share for share, left, right in pairs if left != right]),
        counts=dict(Counter(str(one.winner) for one in judgements if one.winner is not None)),
        disagreed=sum(one.agreed is False for one in judgements),
        unscored=dict(Counter(part.unscored for one in judgements for part in one.orders if part.unscored is not None)),
        confidence=mean_within([fmean(one.confidence or 0.0 for one in match) for match in judged_matches]),
        unsure=sum(bool(one.agreed) and (one.confidence or 0.0) < threshold for one in judgements),
        position=position_bias(*([orders[index].winner for orders in first_replicates] for index in (0, 1))),
        noise=own_noise(
            [[one.orders[index].winner for one in match if one.orders[index].winner] for index in (0, 1)]
            for match in by_match
        ),
    )


def rank_outputs(results: Sequence[tuple[str, Sequence[str], float | None]]) -> dict[str, Estimate]:
    """Return the win rate by output name, best first. `results`: item id, two names and the first's share of wins."""
    shares: dict[str, dict[str, list[float]]] = {}  # keys: name, item
    for item, (first, second), share in results:
        if share is not None:
            shares.setdefault(first, {}).setdefault(item, []).append(share)
            shares.setdefault(second, {}).setdefault(item, []).append(1 - share)
    wins = {name: mean_within([fmean(values) for values in by_item.values()]) for name, by_item in shares.items()}
    return dict(sorted(wins.items(), key=lambda row: -(row[1].value or 0.0)))


VERDICTS = "verdicts.jsonl"


def verdicts_of(judge: JudgePreferences) -> Iterator[StoredVerdict]:
    """Yield the lines of verdicts.jsonl, one per call. Skip unanswered calls, and items whose outputs have names."""
    for match in pair_results(judge.matches):
        for replicate, judgements in by_key((one.replicate, one) for one in match.judgements).items():
            *criteria, overall = judgements
            for index, order_judgement in enumerate(overall.orders):
                if order_judgement.unscored != "not_answered":
                    yield StoredVerdict(
                        id=match.item,
                        judge=judge.judge.model_id,
                        order=ORDERS[index],
                        winner=order_judgement.winner,
                        confidence=order_judgement.confidence,
                        replicate=replicate,
                        criteria={one.criterion: one.orders[index].winner for one in criteria},
                    )
