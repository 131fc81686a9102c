"""What people are to look at: a line of queue.jsonl. Whatever judges or code find doubtful becomes a `ReviewItem`.

An item names no model and no judge: who reads the file is as blind as who reads the page.
"""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import Label
from skill_evaluator.text import canonical_json

ReviewKind = Literal["pairwise", "regression", "score"]
ReviewReason = Literal[
    "block", "regression", "disagreement", "unsupported", "low_confidence", "unscored", "stakes", "random"
]
ReviewId = Annotated[str, Field(pattern="^[0-9a-f]{20}$")]
_ID_DIGITS = 20
_OUTPUTS: Mapping[ReviewKind, int] = MappingProxyType({"pairwise": 2, "regression": 2, "score": 1})
_SHOWN = ("kind", "document", "reference", "outputs", "questions")


class ReviewQuestion(StrictModel):
    """One thing that is asked of an item: which of two is better, or, with `levels`, what score it has."""

    name: Label = Field(min_length=1, description="a criterion, a dimension, or overall")
    text: str = ""
    levels: dict[Annotated[int, Field(ge=1, le=10)], str] = Field(
        default_factory=dict, description="of a score: each score of the scale with what it means"
    )


class ReviewItem(StrictModel):
    """A line of the queue: the texts, what is asked of them, and why. `outputs` of a regression: baseline, candidate.

    `id` is made from all that a reviewer sees, so that the same texts and questions are one item whoever queues them.
    """

    id: ReviewId
    kind: ReviewKind
    item: Label = Field(min_length=1, description="its id in the judging that it is from")
    judging: Label | None = Field(default=None, description="the id of that judging")
    stratum: Label = Field(default="all", description="the kind of item, for the calibration")
    reasons: tuple[ReviewReason, ...] = Field(min_length=1, description="why a person is to look at it")
    document: str = Field(default="", description="the prompt, or what the outputs answer")
    reference: str = Field(default="", description="a right answer or a source, where there is one")
    outputs: tuple[str, ...] = Field(min_length=1, max_length=2)
    questions: tuple[ReviewQuestion, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_asked(self) -> Self:
        if len(self.outputs) != _OUTPUTS[self.kind]:
            raise ValueError(f"kind {self.kind} has {_OUTPUTS[self.kind]} outputs, and here are {len(self.outputs)}")
        names = [question.name for question in self.questions]
        if len(set(names)) < len(names):
            raise ValueError("two questions have the same name")
        for question in self.questions:
            if (self.kind == "score") != bool(question.levels):
                raise ValueError(f"question '{question.name}': levels are for kind score, which needs them")
        if self.id != self.content_id():
            raise ValueError(f"the id {self.id} is not that of these texts and questions: it was edited")
        return self

    def content_id(self) -> str:
        """Return the id that the texts and the questions give."""
        shown = canonical_json(self.model_dump(mode="json", include=set(_SHOWN)))
        return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]

    def question(self, name: str) -> ReviewQuestion | None:
        """Return the question of a name; None without one."""
        return next((question for question in self.questions if question.name == name), None)


def review_item(
    kind: ReviewKind,
    item: str,
    outputs: Sequence[str],
    questions: Sequence[ReviewQuestion],
    reasons: Sequence[ReviewReason],
    *,
    document: str = "",
    reference: str = "",
    judging: str | None = None,
    stratum: str = "all",
) -> ReviewItem:
    """Return an item with its id; raise pydantic's ValidationError for texts and questions that do not go together.

    >>> question = ReviewQuestion(name="overall", text="Which is better?")
    >>> len(review_item("pairwise", "p1", ["one", "two"], [question], ["random"]).id)
    20
    """
    drawn = ReviewItem.model_construct(
        id="",
        kind=kind,
        item=item,
        judging=judging,
        stratum=stratum,
        reasons=tuple(dict.fromkeys(reasons)),
        document=document,
        reference=reference,
        outputs=tuple(outputs),
        questions=tuple(questions),
    )
    return ReviewItem.model_validate({**drawn.model_dump(), "id": drawn.content_id()})
