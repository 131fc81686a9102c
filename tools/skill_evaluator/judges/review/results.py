"""What `review status --format json` prints: how far a queue is, and how far people agree. Nothing is computed here."""

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Timestamp
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.review.items import ReviewKind


class ReviewerAgreement(FrozenModel):
    """Two reviewers on one question. `agreed` of `n` items; κ is weighted by distance for scores."""

    question: str
    kind: ReviewKind
    reviewers: tuple[str, str]
    n: int
    agreed: int
    kappa: FigureResult


class DisputedItem(FrozenModel):
    """An item of which reviewers say different things: a rubric may need an edge case for it. Notes by reviewer."""

    item: str
    id: str
    question: str
    answers: dict[str, str]
    notes: dict[str, str]


class ReviewStatus(FrozenModel):
    """How far a queue is: items by kind and reason, items without a label, labels by reviewer, and agreement.

    `open`: the items without a label by reason; `oldest`: when the judging began that left the oldest of them, where
    that is known. `newest_label`: when the latest label was given.
    """

    items: int
    unlabelled: int
    reasons: dict[str, int]
    open: dict[str, int]
    oldest: Timestamp | None
    newest_label: Timestamp | None
    reviewers: dict[str, int]
    agreement: list[ReviewerAgreement]
    disputed: list[DisputedItem]
