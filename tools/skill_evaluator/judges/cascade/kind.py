"""What a cascade needs to know of a mode, and the labels that choose its thresholds: of a file, and of the review.

Its own module because scores, comparisons and regressions go through the same two stages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.cascade.reducing import Decided, Ways
from skill_evaluator.judges.cascade.results import CascadeShares
from skill_evaluator.judges.cascade.routing import Key, Labels, Standing, halves
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labelled import agreed_answer
from skill_evaluator.judges.review.labels import ReviewAnswer, latest
from skill_evaluator.judges.review.queue import ReviewQueue
from skill_evaluator.runner.schedule import Call, Replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLabels:
    """What people say of some of what is judged, by a file; what is `held_out` there chooses nothing."""

    labels: Labels
    held_out: frozenset[Key] = frozenset()


class CascadeKind(Protocol):
    """Scores, comparisons or regressions, with all that is judged."""

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by what it is about."""

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> Any:
        """Return what one judge says of these, as the mode's results have it."""

    def standings(self, judge: Any) -> dict[Key, Standing]:
        """Return what that comes to, and why it is left to somebody else."""

    def agree(self, one: Any, other: Any) -> bool:
        """Return whether two verdicts, or a verdict and a label, say the same."""

    def read_labels(self, path: Path) -> GivenLabels:
        """Read what people say; raise JudgeError for what is wrong, and where nothing is about what is judged."""

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Any | None:
        """Return the label that a review's answers make, by question; None where they leave something open."""

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the items as people are asked about them."""

    def results(
        self, judging: Judging, judges: Sequence[Any], shares: CascadeShares, decisions: Mapping[Key, Decided]
    ) -> Any:
        """Return the file of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeLabels:
    """All labels that there are: those of a file, and those of the review queue on what was drawn by chance.

    Whatever else is in the queue is there because a judge was in doubt of it, so that it says nothing of the rest.
    """

    given: Labels | None
    reviewed: Labels = field(default_factory=dict)

    def counting(self, fewest: int) -> Labels | None:
        """Return the labels that choose thresholds; None without a file where those of the review are too few."""
        if self.given is None:
            return self.reviewed if len(self.reviewed) >= fewest else None
        return {**self.reviewed, **self.given}

    def halves(self, fewest: int, seed: int) -> tuple[Ways, Ways]:
        """Return what chooses the threshold of the cheap judge, and of the strong one."""
        with_review, without = (
            (None, None) if labels is None else halves(labels, seed) for labels in (self.counting(fewest), self.given)
        )
        return (with_review[0], without[0]), (with_review[1], without[1])


def cascade_labels(kind: CascadeKind, path: Path | None, queue: ReviewQueue) -> CascadeLabels:
    """Read the labels of a file and of the queue; raise JudgeError for what is wrong in either."""
    given = None if path is None else kind.read_labels(path)
    queued = queue.items()
    counting = latest(queue.labels(queued))
    reviewed = {}
    for key, item in kind.review_items().items():
        there = queued.get(item.id)
        if there is None or "random" not in there.reasons or (given is not None and key in given.held_out):
            continue
        answers = [answer for label in counting.get(item.id, {}).values() for answer in label.answers]
        agreed = {
            name: answer
            for name in {answer.question for answer in answers}
            if (answer := agreed_answer(name, [one for one in answers if one.question == name])) is not None
        }
        label = kind.label(key, agreed)
        if label is not None:
            reviewed[key] = label
    return CascadeLabels(given=None if given is None else given.labels, reviewed=reviewed)
