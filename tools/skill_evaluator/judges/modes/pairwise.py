"""`judge pairwise`: items → matches of two outputs with a question in each order; and the models of its results."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Protocol, Self, TypeVar

from pydantic import NonNegativeInt, PositiveFloat, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, replace_blocks
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.asking.criteria import NamedRubric, criteria_text, mitigations_of
from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.asking.questions import (
    CONFIDENCE,
    TEXT,
    TEXTS,
    Form,
    JudgePrompt,
    JudgeQuestion,
    form_of,
    form_text,
    load_prompt,
    make_question,
    mark_of,
    one_of,
)
from skill_evaluator.judges.asking.reading import Unscored, UnscoredReason, read_criteria, read_grounds, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, JudgeText, JudgingHead, Order, StoredVerdict
from skill_evaluator.judges.statistics.bounded import Figure, difference, mean_within
from skill_evaluator.judges.statistics.habits import own_noise, position_bias, pull_of_length
from skill_evaluator.judges.statistics.strengths import WinMatrix, strengths_of
from skill_evaluator.library.config import JudgePanel
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import mean_or_none, rounded

ORDERS: tuple[Order, Order] = (1, 2)  # in the second one output 2 stands first
PAIR = ("1", "2")


class PairItem(JudgedItem):
    """Two outputs, or several by name; `model_1`, `model_2` and `models` say who wrote them, where that is known."""

    output_1: JudgedText | None = None
    output_2: JudgedText | None = None
    outputs: dict[Label, JudgedText] = {}
    model_1: Label | None = None
    model_2: Label | None = None
    models: dict[Label, Label] = {}

    @model_validator(mode="after")
    def _refuse_other_forms(self) -> Self:
        given = [output for output in (self.output_1, self.output_2) if output]
        if not ((len(given) == 2 and not self.outputs) or (not given and len(self.outputs) > 1)):
            raise ValueError("output_1 and output_2 are needed, or outputs with two texts or more by name")
        if not all(self.outputs.values()):
            raise ValueError("an output is empty")
        return self

    @property
    def texts(self) -> Mapping[str, str]:
        """The outputs by name; those of a pair are called 1 and 2."""
        return self.outputs or dict(zip(PAIR, (self.output_1 or "", self.output_2 or ""), strict=True))

    @property
    def writers(self) -> tuple[str | None, ...]:
        """Who wrote each output, None if unknown."""
        if self.outputs:
            return tuple(self.models.get(name) for name in self.outputs)
        return self.model_1, self.model_2


class _OfAnItem(Protocol):
    @property
    def item(self) -> str: ...
    @property
    def names(self) -> tuple[str, str]: ...


MatchT = TypeVar("MatchT", bound=_OfAnItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatch:
    """Two outputs of an item by name, and the questions about them: in order, then exchanged."""

    item: PairItem
    names: tuple[str, str]
    questions: tuple[JudgeQuestion, JudgeQuestion]

    @property
    def outputs(self) -> tuple[str, str]:
        """The two texts."""
        left, right = self.names
        return self.item.texts[left], self.item.texts[right]

    @property
    def shown(self) -> tuple[str, ...]:
        """All texts that the judge sees."""
        return tuple(text for text in (*self.outputs, self.item.input) if text)

    @property
    def of_a_pair(self) -> bool:
        """Whether the item has just these two outputs, called 1 and 2."""
        return tuple(self.item.texts) == PAIR


def make_matches(
    rubric: NamedRubric, items: Sequence[PairItem], seed: int, opponents: int | None = None
) -> tuple[list[PairMatch], JudgePrompt]:
    """Return the matches of all items with the prompt: all pairs of outputs, or each output with `opponents` others."""
    prompt, form = load_prompt("pairwise"), preference_form(rubric.criteria)
    instructions = {
        "criteria": criteria_text(rubric.rubric, rubric.criteria, prompt.mitigations, scored=False),
        "form": form_text(form),
    }
    matches = []
    for item in items:
        places = {name: place for place, name in enumerate(item.texts, 1)}
        mark = mark_of(seed, item.digest)
        for left, right in drawn_pairs(tuple(item.texts), opponents, f"{seed}/{item.id}"):
            between = "" if not item.outputs else f"/{places[left]}-{places[right]}"
            asked = []
            for order in ORDERS:
                first, second = (left, right) if order == ORDERS[0] else (right, left)
                texts = {"first_output": item.texts[first], "second_output": item.texts[second]}
                case_id = f"{item.id}{between}/{order}"
                asked.append(
                    make_question(case_id, prompt, instructions, {"input": item.input, **texts}, form[0], mark)
                )
            matches.append(PairMatch(item=item, names=(left, right), questions=(asked[0], asked[1])))
    return matches, prompt


def drawn_pairs(names: Sequence[str], opponents: int | None, seed: str) -> list[tuple[str, str]]:
    """Return all pairs of some names, or so few that each name meets `opponents` (an even number) others.

    The few lie on a circle that the seed draws: each meets its neighbours, so that any two are linked.

    >>> len(drawn_pairs("abcdef", None, "")), len(drawn_pairs("abcdef", 2, ""))
    (15, 6)
    """
    if opponents is None or opponents >= len(names) - 1:
        return list(combinations(names, 2))
    if opponents < 2 or opponents % 2:
        raise JudgeError(f"--opponents must be an even number from 2, not {opponents}")
    circle = list(names)
    random.Random(seed).shuffle(circle)  # noqa: S311 (no secret)
    place = {name: index for index, name in enumerate(names)}
    drawn = {
        tuple(sorted((circle[start], circle[(start + step) % len(circle)]), key=place.__getitem__))
        for start in range(len(circle))
        for step in range(1, opponents // 2 + 1)
    }
    return [pair for pair in combinations(names, 2) if pair in drawn]


def preference_form(criteria: Sequence[Criterion]) -> Form:
    """Return the form of an answer; the order of its keys has the judge argue before it decides."""
    by_criterion = {
        criterion.id: form_of(
            {
                "evidence_first": TEXTS,
                "evidence_second": TEXTS,
                "justification": TEXT,
                "winner": one_of(winners_of(criterion), " or "),
                "confidence": CONFIDENCE,
            }
        )
        for criterion in criteria
    }
    return form_of({"criteria": form_of(by_criterion)})


def winners_of(criterion: Criterion) -> list[str]:
    """Return the words for a winner that a criterion allows."""
    return ["first", "second", *(["tie"] if "ties_allowed" in mitigations_of(criterion) else [])]


PAIRWISE_VERSION = 1
OVERALL = "overall"
Preferred = Literal[1, 2, "tie"]


class OrderJudgement(FrozenModel):
    """A judge's verdict in one order; `winner` is mapped back to the outputs. Without one `unscored` says why."""

    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    winner: Preferred | None = None
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class PairJudgement(FrozenModel):
    """What both orders say by one criterion, or overall: the winner, or a tie where they differ.

    `share` is output 1's: 1, 0.5 or 0. Null, all of it, unless both orders count.
    """

    criterion: Label
    replicate: NonNegativeInt
    winner: Preferred | None
    share: Share | None
    confidence: Share | None
    agreed: bool | None
    orders: list[OrderJudgement]


class MatchResult(FrozenModel):
    """Two outputs of an item, by name; `shares`: by criterion the mean share of the first, over replicates."""

    item: Label
    stratum: Label
    names: tuple[Label, Label]
    shares: dict[Label, Share | None]
    judgements: list[PairJudgement]


def pairs_among(matches: Iterable[MatchT]) -> list[MatchT]:
    """Return the matches of items with just two outputs, called 1 and 2: there are no others of such an item."""
    every = list(matches)
    counts = Counter(match.item for match in every)
    return [match for match in every if match.names == PAIR and counts[match.item] == 1]


def winner_of(share: float | None) -> Preferred | None:
    """Return whom all replicates prefer, by the mean share of output 1; a tie where they differ, None without any."""
    return None if share is None else 1 if share == 1 else 2 if share == 0 else "tie"


class PairwiseCriterion(FrozenModel):
    """One criterion over all matches, or all criteria together (`overall`).

    `wins`: how often output 1 wins, a tie being half a win; over items with two outputs. `length`: the
    pull of length on verdicts, in log-odds. `counts`: judgements by winner, `disagreed`: ties because orders differ.

    Over the matches in which both orders count, `flips` is the share whose verdict changes with the order,
    `picks_first` the share of verdicts for what stands first, `lean` that minus the share for the second. `noise`: how
    often two answers to the same request differ, where there are replicates; `flips_beyond_noise`: what it leaves of
    the flips.
    """

    criterion: Label
    weight: PositiveFloat
    wins: Figure
    length: Figure
    counts: dict[str, NonNegativeInt]
    disagreed: NonNegativeInt
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: Figure
    unsure: NonNegativeInt
    flips: Figure
    picks_first: Figure
    lean: Figure
    noise: Figure | None = None
    flips_beyond_noise: Figure | None = None


class Ranking(FrozenModel):
    """Several outputs by name, best first. `wins[i][j]`: how often i beat j; `ties` likewise.

    `strengths`: log strengths of Bradley and Terry with ties, their mean being 0; null where `remark` says why.
    """

    criterion: Label
    names: list[Label]
    wins: list[list[NonNegativeInt]]
    ties: list[list[NonNegativeInt]]
    strengths: list[Figure] | None
    remark: str = ""


class JudgePreferences(FrozenModel):
    """One judge: `criteria` with the overall figures last, the overall wins by stratum, the rankings, every match."""

    judge: JudgeRecord
    criteria: list[PairwiseCriterion]
    strata: dict[Label, Figure]
    rankings: list[Ranking]
    matches: list[MatchResult]

    @property
    def shown(self) -> list[Label]:
        """The criteria worth showing: of one criterion the overall figures say the same again."""
        names = [criterion.criterion for criterion in self.criteria]
        return names[:1] if names[1:] == [OVERALL] else names


class PanelMatch(FrozenModel):
    """Two outputs of an item; by criterion, the winner and the weight of the judges behind each verdict.

    Without a majority it is a tie; null where no judge's verdict counts.
    """

    item: Label
    stratum: Label
    names: tuple[Label, Label]
    winners: dict[Label, Preferred | None]
    votes: dict[Label, dict[str, PositiveFloat]]


class PanelPreference(FrozenModel):
    """One criterion, or overall; `disputed` counts the matches on which judges differ.

    `wins`: how often output 1 wins, over items with two outputs. `agreement`: Krippendorff's α of the judges.
    """

    criterion: Label
    counts: dict[str, NonNegativeInt]
    wins: Figure
    disputed: NonNegativeInt
    agreement: Figure


class PanelPreferences(FrozenModel):
    """Several judges as one, by majority; the overall figures are last."""

    policy: JudgePanel
    criteria: list[PanelPreference]
    rankings: list[Ranking]
    matches: list[PanelMatch]


class PairwiseResults(FrozenModel):
    """The file. `panel` is null for a single judge. No figure here is about people."""

    results_version: int = PAIRWISE_VERSION
    judging: JudgingHead
    judges: list[JudgePreferences]
    panel: PanelPreferences | None = None


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
    strictest = max(criterion.confidence_threshold for criterion in criteria)
    return JudgePreferences(
        judge=judge,
        criteria=[
            *(_figures(one.id, one.weight, one.confidence_threshold, judged) for one in criteria),
            _figures(OVERALL, sum(one.weight for one in criteria), strictest, judged),
        ],
        strata={
            stratum: mean_within(
                [share for pair in pairs if pair.stratum == stratum and (share := pair.shares[OVERALL]) is not None]
            )
            for stratum in (strata if pairs else ())
        },
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
    return PairwiseCriterion.view(
        position,
        criterion=name,
        weight=weight,
        wins=mean_within(shares),
        length=pull_of_length(shares, [longer for _, longer in pairs]),
        counts=dict(Counter(str(one.winner) for one in given if one.winner is not None)),
        disagreed=sum(one.agreed is False for one in given),
        unscored=dict(unscored),
        confidence=mean_within([fmean(shares) for shares in sure if shares]),
        unsure=sum(share < threshold for shares in sure for share in shares),
        noise=noise,
        flips_beyond_noise=None if noise is None else difference(position.flips, noise),
    )


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
