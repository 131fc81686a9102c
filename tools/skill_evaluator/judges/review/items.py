"""Items of the review queue: outputs with questions for reviewers, and the reasons why an item is queued.

An item names no model and no judge, so that a review is blind even if the reviewer reads the file.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, read_lines
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.modes.pairwise import OVERALL, PAIR, MatchResult, PairItem
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of
from skill_evaluator.judges.modes.regression_results import PairResult
from skill_evaluator.judges.modes.scoring import ItemScores
from skill_evaluator.judges.prompting.items import JudgedItem, OutputItem, read_items
from skill_evaluator.library.rubrics import USUAL_THRESHOLD, Criterion
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, digest

ReviewKind = Literal["pairwise", "regression", "score"]
ReviewReason = Literal[
    "block", "regression", "disagreement", "unverified", "unrequested", "low_confidence", "unscored", "stakes", "random"
]
ReviewId = Annotated[str, Field(pattern="^[0-9a-f]{20}$")]


class ReviewQuestion(StrictModel):
    """A question about an item: which of two outputs is better or, if there are `levels`, the score of an output."""

    name: Label = Field(min_length=1, description="a criterion, a dimension, or overall")
    text: str = ""
    levels: dict[Annotated[int, Field(ge=1, le=10)], str] = Field(
        default_factory=dict, description="each score of the scale with its meaning; empty for two outputs"
    )


class ReviewItem(StrictModel):
    """A line of queue.jsonl. `id` is a digest of the shown texts and questions, so that equal texts are one item."""

    id: ReviewId
    kind: ReviewKind
    item: Label = Field(min_length=1, description="its id in the judge run")
    judging: Label | None = Field(default=None, description="the id of the judge run")
    stratum: Label = Field(default="all", description="the kind of item, for the calibration")
    reasons: tuple[ReviewReason, ...] = Field(min_length=1, description="why it is queued")
    document: str = Field(default="", description="the prompt or input of the outputs")
    reference: str = Field(default="", description="a right answer or a source; empty if unknown")
    outputs: tuple[str, ...] = Field(min_length=1, max_length=2)
    questions: tuple[ReviewQuestion, ...] = Field(min_length=1)

    @property
    def is_random(self) -> bool:
        """Whether the item was drawn at random from all items, so that its label can measure a judge."""
        return "random" in self.reasons and not (self.kind == "regression" and self.judging)

    @model_validator(mode="after")
    def _refuse_edited(self) -> Self:
        if self.id != self.content_id():
            raise ValueError(f"the item was edited: the id {self.id} does not match its texts and questions")
        return self

    def content_id(self) -> str:
        """Return the digest of the texts and questions."""
        shown = self.model_dump(mode="json", include={"kind", "document", "reference", "outputs", "questions"})
        return digest(canonical_json(shown)).removeprefix("sha256:")[:20]


def review_item(
    kind: ReviewKind, item: str, outputs: tuple[str, ...], questions: Iterable[ReviewQuestion], **more: Any
) -> ReviewItem:
    """Build an item with its id. `more` has further fields; by default `reasons` is `random`."""
    fields: dict[str, Any] = {"kind": kind, "item": item, "outputs": outputs, "questions": tuple(questions)}
    fields |= {"reasons": ("random",), **more}
    return ReviewItem.model_validate({"id": ReviewItem.model_construct(id="", **fields).content_id(), **fields})


def scored_item(item: OutputItem, criteria: Sequence[Criterion], judging: str | None = None) -> ReviewItem:
    """Build the item for scoring an output by each criterion, with its reference and source."""
    questions = []
    for criterion in criteria:
        levels = {score: f"{level.label}: {level.description}" for score, level in criterion.rubric.items()}
        scale = {score: levels.get(score, "") for score in range(1, criterion.highest + 1)}
        text = f"{criterion.name}: {criterion.description}"
        questions.append(ReviewQuestion(name=criterion.id, text=text, levels=scale))
    reference = "\n\n".join(text for text in (item.reference, item.source) if text and text != item.input)
    return review_item("score", item.id, (item.output,), questions, reference=reference, **_item_fields(item, judging))


def paired_item(
    item: PairItem, names: tuple[str, str], criteria: Sequence[Criterion] = (), judging: str | None = None
) -> ReviewItem:
    """Build the item for comparing two outputs. Its id omits the outputs' names, which may name models."""
    texts = [(criterion.id, f"{criterion.name}: {criterion.description}") for criterion in criteria]
    texts = [(OVERALL, texts[0][1])] if len(texts) == 1 else [*texts, (OVERALL, "Which output is better?")]
    first, second = (list(item.texts).index(name) + 1 for name in names)
    item_id = item.id if tuple(item.texts) == PAIR else f"{item.id}/{first}-{second}"
    outputs = (item.texts[names[0]], item.texts[names[1]])
    questions = (ReviewQuestion(name=name, text=text) for name, text in texts)
    return review_item("pairwise", item_id, outputs, questions, **_item_fields(item, judging))


def regression_item(pair: JudgedPair, judging: str | None = None) -> ReviewItem:
    """Build the item for comparing a candidate with its baseline in each dimension."""
    outputs = (pair.item.baseline_output, pair.item.candidate_output)
    questions = [ReviewQuestion(name=dimension.name, text=dimension.question) for dimension in pair.dimensions]
    return review_item("regression", pair.id, outputs, questions, **_item_fields(pair.item, judging))


def _item_fields(item: JudgedItem, judging: str | None) -> dict[str, Any]:
    return {"document": item.input, "stratum": item.stratum, "judging": judging}


def items_from(path: Path, dimensions: Sequence[str] = ()) -> list[ReviewItem]:
    """Read a file of pairs, as `judge pairwise` or `judge regression` do. Raise JudgeError or ConfigError."""
    if any(isinstance(value, dict) and "baseline_output" in value for _, value in read_lines(path, JudgeError)):
        return [regression_item(pair) for pair in pairs_of(read_items(path, RegressionItem), dimensions, "default", ())]
    pairs = read_items(path, PairItem).values()
    return [paired_item(pair, names) for pair in pairs for names in combinations(pair.texts, 2)]


Doubts = Sequence[tuple[ReviewItem, Sequence[ReviewReason]]]  # all judged items, each with its reasons for review


def select_for_review(doubts: Doubts, sample: int, seed: int) -> list[ReviewItem]:
    """Return the doubtful items with their reasons, and a random sample with the reason `random`.

    Pairs and scores are sampled from all items, so that their labels measure the judge. Regressions are sampled from
    the items without a doubt, to verify the outputs that ship.
    """
    candidates = [item for item, reasons in doubts if item.kind != "regression" or not reasons]
    sampled_ids = random.Random(seed).sample([item.id for item in candidates], min(sample, len(candidates)))  # noqa: S311
    with_reasons = [(item, (*reasons, *["random"] * (item.id in sampled_ids))) for item, reasons in doubts]
    return [item.model_copy(update={"reasons": reasons}) for item, reasons in with_reasons if reasons]


def reasons_of_scores(outcomes: Sequence[ItemScores], criteria: Sequence[Criterion]) -> list[ReviewReason]:
    """Return the reasons to send an output to human review. Scores that are two levels apart are a disagreement."""
    thresholds = {criterion.id: criterion.confidence_threshold for criterion in criteria}
    judgements = [one for scores in outcomes for one in scores.judgements]
    levels = by_key((one.criterion, one.score) for one in judgements if one.score is not None)
    return _reasons(
        low_confidence=any(
            one.confidence is not None and one.confidence < thresholds[one.criterion] for one in judgements
        ),
        disagreement=any(max(scores) - min(scores) >= 2 for scores in levels.values()),
        unscored=any(one.unscored is not None for one in judgements),
    )


def reasons_of_match(outcomes: Sequence[MatchResult], criteria: Sequence[Criterion]) -> list[ReviewReason]:
    """Return the reasons to send a match to human review; the confidence counts only if both orders agree."""
    thresholds = {criterion.id: criterion.confidence_threshold for criterion in criteria}
    judgements = [one for result in outcomes for one in result.judgements if one.criterion in thresholds]
    winners = by_key((one.criterion, one.winner) for one in judgements if one.winner is not None)
    agreed = [(one.confidence, thresholds[one.criterion]) for one in judgements if one.agreed]
    return _reasons(
        low_confidence=any(confidence is not None and confidence < threshold for confidence, threshold in agreed),
        disagreement=any(one.agreed is False for one in judgements)
        or any(len(set(each)) > 1 for each in winners.values()),
        unscored=any(one.winner is None for one in judgements),
    )


def reasons_of_regression(outcomes: Sequence[PairResult], *, high_stakes: bool) -> list[ReviewReason]:
    """Return the reasons to send a pair to human review; empty if it ships."""
    decisions = {result.ship_decision for result in outcomes}
    dimensions = [dimension for result in outcomes for dimension in result.dimensions]
    answers = [answer for result in outcomes for answer in result.answers]
    return _reasons(
        block="block" in decisions,
        regression=any(result.ship_decision == "review_required" and result.regression_detected for result in outcomes),
        disagreement=len(decisions) > 1 or any(result.flipped for result in dimensions),
        unverified=any(result.verified is False for result in dimensions),
        unrequested=any(answer.unrequested for answer in answers),
        low_confidence=any(result.confidence < USUAL_THRESHOLD for result in outcomes),
        unscored=any(answer.unscored is not None for answer in answers),
        stakes=high_stakes,
    )


def _reasons(**holds: bool) -> list[ReviewReason]:
    return [reason for reason in get_args(ReviewReason) if holds.get(reason)]
