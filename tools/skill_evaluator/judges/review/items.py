"""Items of the review queue: outputs with questions for people, and the reasons why an item is queued.

An item names no model and no judge, so that a reviewer who reads the file is as blind as one who reads the page.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, read_checked
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.modes.pairwise import OVERALL, PAIR, MatchResult, PairItem
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of
from skill_evaluator.judges.modes.regression_results import PairResult
from skill_evaluator.judges.modes.scoring import ItemScores
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.text import canonical_json

ReviewKind = Literal["pairwise", "regression", "score"]
ReviewReason = Literal[
    "block", "regression", "disagreement", "unverified", "unrequested", "low_confidence", "unscored", "stakes", "random"
]
ReviewId = Annotated[str, Field(pattern="^[0-9a-f]{20}$")]
_ID_DIGITS = 20
_OUTPUTS: Mapping[ReviewKind, int] = MappingProxyType({"pairwise": 2, "regression": 2, "score": 1})
_SHOWN = ("kind", "document", "reference", "outputs", "questions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """Counts of queued items: `fresh` ones of all are new."""

    folder: Path
    fresh: int
    given: int


class ReviewQuestion(StrictModel):
    """A question about an item: which of two outputs is better or, if it has `levels`, which score an output has."""

    name: Label = Field(min_length=1, description="a criterion, a dimension, or overall")
    text: str = ""
    levels: dict[Annotated[int, Field(ge=1, le=10)], str] = Field(
        default_factory=dict, description="of a score: each score of the scale with what it means"
    )


class ReviewItem(StrictModel):
    """A line of queue.jsonl. `outputs` of a regression are the baseline's and the candidate's.

    `id` is a digest of what a reviewer sees, so that the same texts and questions are one item whoever queues them.
    """

    id: ReviewId
    kind: ReviewKind
    item: Label = Field(min_length=1, description="its id in the judge run")
    judging: Label | None = Field(default=None, description="the id of the judge run")
    stratum: Label = Field(default="all", description="the kind of item, for the calibration")
    reasons: tuple[ReviewReason, ...] = Field(min_length=1, description="why it is queued")
    document: str = Field(default="", description="the prompt, or what the outputs answer")
    reference: str = Field(default="", description="a right answer or a source, where there is one")
    outputs: tuple[str, ...] = Field(min_length=1, max_length=2)
    questions: tuple[ReviewQuestion, ...] = Field(min_length=1)

    @property
    def is_random(self) -> bool:
        """Whether the item was drawn at random from all items, so that its label measures a judge."""
        return "random" in self.reasons and not (self.kind == "regression" and self.judging)

    @model_validator(mode="after")
    def _validate_questions(self) -> Self:
        if len(self.outputs) != _OUTPUTS[self.kind]:
            raise ValueError(f"kind {self.kind} needs {_OUTPUTS[self.kind]} outputs, not {len(self.outputs)}")
        names = [question.name for question in self.questions]
        if len(set(names)) < len(names):
            raise ValueError("two questions have the same name")
        for question in self.questions:
            if (self.kind == "score") != bool(question.levels):
                raise ValueError(f"question '{question.name}': levels are for kind score, which requires them")
        if self.id != self.content_id():
            raise ValueError(f"the item was edited: the id {self.id} does not match its texts and questions")
        return self

    def content_id(self) -> str:
        """Return the digest of the texts and questions."""
        shown = canonical_json(self.model_dump(mode="json", include=set(_SHOWN)))
        return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def review_item(
    kind: ReviewKind,
    item: str,
    outputs: Sequence[str],
    questions: Sequence[ReviewQuestion],
    reasons: Sequence[ReviewReason] = ("random",),
    **more: Any,
) -> ReviewItem:
    """Build an item with its id; `more` are fields that have a default.

    Raise pydantic's ValidationError for outputs and questions that do not fit the kind.

    >>> question = ReviewQuestion(name="overall", text="Which is better?")
    >>> len(review_item("pairwise", "p1", ["one", "two"], [question]).id)
    20
    """
    drawn = ReviewItem.model_construct(
        id="",
        kind=kind,
        item=item,
        reasons=tuple(dict.fromkeys(reasons)),
        outputs=tuple(outputs),
        questions=tuple(questions),
        **more,
    )
    return ReviewItem.model_validate({**drawn.model_dump(), "id": drawn.content_id()})


def scored_item(item: OutputItem, criteria: Sequence[Criterion], judging: str | None = None) -> ReviewItem:
    """Build the item for scoring an output by each criterion, with its reference and source."""
    questions = [
        ReviewQuestion(
            name=criterion.id,
            text=f"{criterion.name}: {criterion.description}",
            levels={
                score: f"{level.label}: {level.description}" if (level := criterion.rubric.get(score)) else ""
                for score in range(1, criterion.highest + 1)
            },
        )
        for criterion in criteria
    ]
    beside = [text for text in (item.reference, item.source) if text and text != item.input]
    return review_item(
        "score",
        item.id,
        [item.output],
        questions,
        document=item.input,
        reference="\n\n".join(beside),
        judging=judging,
        stratum=item.stratum,
    )


def paired_item(
    item: PairItem, names: tuple[str, str], criteria: Sequence[Criterion] = (), judging: str | None = None
) -> ReviewItem:
    """Build the item for comparing two outputs, by each of several criteria and overall.

    An item with more than two outputs has their positions after its id, because their names may be those of models.
    """
    texts = [f"{criterion.name}: {criterion.description}" for criterion in criteria]
    questions = [ReviewQuestion(name=criterion.id, text=text) for criterion, text in zip(criteria, texts, strict=True)]
    overall = ReviewQuestion(name=OVERALL, text=texts[0] if len(texts) == 1 else "Which output is better?")
    places = [list(item.texts).index(name) + 1 for name in names]
    return review_item(
        "pairwise",
        item.id if tuple(item.texts) == PAIR else f"{item.id}/{places[0]}-{places[1]}",
        [item.texts[name] for name in names],
        [*(questions if len(questions) > 1 else []), overall],
        document=item.input,
        judging=judging,
        stratum=item.stratum,
    )


def regression_item(pair: JudgedPair, judging: str | None = None) -> ReviewItem:
    """Build the item for comparing a candidate with its baseline in each dimension."""
    return review_item(
        "regression",
        pair.id,
        [pair.item.baseline_output, pair.item.candidate_output],
        [ReviewQuestion(name=dimension.name, text=dimension.question) for dimension in pair.dimensions],
        document=pair.item.input,
        judging=judging,
        stratum=pair.item.stratum,
    )


def items_from(path: Path, dimensions: Sequence[str], preset: str) -> list[ReviewItem]:
    """Read a file of pairs in the format of `judge pairwise` or `judge regression`.

    Raise JudgeError with file and line for an invalid line, and ConfigError for invalid dimensions.
    """

    def item_of(value: Any) -> RegressionItem | PairItem:
        changed = isinstance(value, dict) and "baseline_output" in value
        return (RegressionItem if changed else PairItem).model_validate(value)

    items: list[ReviewItem] = []
    for _, item in read_checked(path, item_of, JudgeError):
        if isinstance(item, PairItem):
            items += [paired_item(item, names) for names in combinations(item.texts, 2)]
        else:
            items += [regression_item(pair) for pair in pairs_of({item.id: item}, dimensions, preset, ())]
    if not items:
        raise JudgeError(f"{path} is empty; it needs a JSON object on each line")
    return items


def sampled(items: Sequence[ReviewItem], count: int | None, seed: int) -> list[ReviewItem]:
    """Return a random sample of the items in their order, or all items if `count` is None."""
    if count is None or count >= len(items):
        return list(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), count))  # noqa: S311 (no secret)
    return [items[place] for place in chosen]


Doubts = Sequence[tuple[ReviewItem, Sequence[ReviewReason]]]
"""Every judged item with its reasons for human review; an item without a doubt has none."""

_DISAGREEMENT = 2  # levels between two scores of one output


def for_people(doubts: Doubts, sample: int, seed: int) -> list[ReviewItem]:
    """Return the items in doubt with their reasons, and a random sample with the reason `random`.

    The sample of pairs and scores is drawn from all items, so that their labels measure the judge. The sample of
    regressions is drawn from those without a doubt, to verify what ships.
    """
    drawn_from = [item for item, reasons in doubts if item.kind != "regression" or not reasons]
    by_chance = {item.id for item in sampled(drawn_from, sample, seed)}
    people: list[ReviewItem] = []
    for item, reasons in doubts:
        every: tuple[ReviewReason, ...] = (*reasons, "random") if item.id in by_chance else tuple(reasons)
        if every:
            people.append(item.model_copy(update={"reasons": every}))
    return people


def reasons_of_scores(given: Sequence[ItemScores], criteria: Sequence[Criterion]) -> list[ReviewReason]:
    """Return why what judges say of one output is left to somebody else; nothing where it is settled.

    Judges or replicates whose scores are two levels apart disagree.
    """
    reasons: dict[ReviewReason, None] = {}
    for criterion in criteria:
        made = [one for scores in given for one in scores.judgements if one.criterion == criterion.id]
        if any(one.confidence is not None and one.confidence < criterion.confidence_threshold for one in made):
            reasons["low_confidence"] = None
        levels = [one.score for one in made if one.score is not None]
        if levels and max(levels) - min(levels) >= _DISAGREEMENT:
            reasons["disagreement"] = None
        if any(one.unscored is not None for one in made):
            reasons["unscored"] = None
    return list(reasons)


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


def reasons_of_regression(given: Sequence[PairResult], *, high_stakes: bool) -> list[ReviewReason]:
    """Return why a person is to look at what judges find of one pair; nothing where it ships."""
    decisions = {one.ship_decision for one in given}
    found = [dimension for one in given for dimension in one.dimensions]
    holds: Mapping[ReviewReason, bool] = {
        "block": "block" in decisions,
        "regression": any(one.ship_decision == "review_required" and one.regression_detected for one in given),
        "disagreement": len(decisions) > 1 or any(len({*one.by_order} - {None}) > 1 for one in found),
        "unverified": any(one.verified is False for one in found),
        "unrequested": any(answer.unrequested for one in given for answer in one.answers),
        "unscored": any(answer.unscored is not None for one in given for answer in one.answers),
        "stakes": high_stakes,
    }
    return [reason for reason, here in holds.items() if here]
