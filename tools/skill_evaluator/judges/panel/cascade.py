"""A cheap judge asked about everything, a strong one about the rest → who decides on each thing, and what went where.

A judge settles what leaves no doubt: by the criteria's own thresholds of confidence or, for the cheap judge, by one
threshold that people's labels choose.
"""

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, ModelId, Share
from skill_evaluator.judges.asking.judging import Asking, Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.modes.pairwise import PairwiseResults, Preferred
from skill_evaluator.judges.modes.regression_results import RegressionResults
from skill_evaluator.judges.modes.scoring import ScoreResults
from skill_evaluator.judges.modes.ship_rules import ShipDecision
from skill_evaluator.judges.people.items import ReviewItem, ReviewReason
from skill_evaluator.judges.people.labelled import agreed_answer
from skill_evaluator.judges.people.queue import ReviewAnswer, ReviewQueue, latest
from skill_evaluator.judges.statistics.bounded import Figure, rate
from skill_evaluator.library.config import JudgeCascade
from skill_evaluator.runner.schedule import Call, Replicate

PEOPLE = "people"
Key = tuple[str, ...]
"""What is judged: the id of an item, and of a match the names of the two outputs."""
Verdicts = Mapping[Key, Any]
Agree = Callable[[Any, Any], bool]
_GRID = tuple(step / 100 for step in range(100, -1, -1))  # chosen before any label is seen
_SLACK = 1e-9


class CascadeGuarantee(FrozenModel):
    """With confidence 1 − `delta` at least 1 − `alpha` of what the cheap judge settles agrees with people."""

    alpha: Share
    delta: Share


class CascadeStage(FrozenModel):
    """One judge: of `asked` things it settled `settled`.

    `threshold`: the confidence from which the cheap judge settles, chosen on `labels` labels. It is null without
    labels, when each criterion's own threshold counts, and where none could be shown to be safe: then it settles
    nothing. The strong judge settles by the criteria's own thresholds.
    """

    judge: ModelId
    asked: NonNegativeInt
    settled: NonNegativeInt
    labels: NonNegativeInt
    threshold: Share | None


class CascadeShares(FrozenModel):
    """Both stages. `people`: how much is left to them. `guarantee` is null without labels.

    `reviewed`: labels from the review queue on what is judged here and was drawn by chance. Where no other labels are
    given they count from `fewest_labels` on. `audited` of what the first judge settled was drawn by chance for the
    second one, too; `audit`: how often it agreed.
    """

    stages: tuple[CascadeStage, CascadeStage]
    people: NonNegativeInt
    guarantee: CascadeGuarantee | None
    reviewed: NonNegativeInt = 0
    fewest_labels: NonNegativeInt = 0
    audited: NonNegativeInt
    audit: Figure


class CascadeDecision(FrozenModel):
    """Who decided on an item; `reasons`: why a person is to look at it, such as what the judge asked last left open."""

    item: Label
    by: ModelId | Literal["people"]
    confidence: Share | None
    reasons: list[ReviewReason] = []


class CascadeMatch(CascadeDecision):
    """Two outputs of an item; `winner` is null where it is left to people."""

    names: tuple[Label, Label]
    winner: Preferred | None


class CascadeResult(CascadeShares):
    """A cascade of comparisons. `wins`: how often output 1 wins, over what the judges settled."""

    wins: Figure
    matches: list[CascadeMatch]


class CascadeResults(PairwiseResults):
    """The file of a cascade: each judge's verdicts on its matches, and who decided."""

    cascade: CascadeResult


class CascadeScore(CascadeDecision):
    """An output; `scores` by criterion and their weighted `summary` are null where they are left to people."""

    scores: dict[Label, float] | None
    summary: Share | None


class ScoreCascade(CascadeShares):
    """A cascade of scores; `summary` is over the outputs that the judges settled."""

    summary: Figure
    items: list[CascadeScore]


class ScoreCascadeResults(ScoreResults):
    """The file of a cascade: each judge's scores of its outputs, and who decided."""

    cascade: ScoreCascade


class CascadePair(CascadeDecision):
    """A pair; if it is left to people, it never ships without them."""

    ship_decision: ShipDecision | None


class RegressionCascade(CascadeShares):
    """A cascade of regressions. `confidence` of a pair: the share of the judge's answers that say what it came to."""

    pairs: list[CascadePair]


class RegressionCascadeResults(RegressionResults):
    """The file of a cascade: what each judge found in the pairs that it was asked about, and who decided.

    `ship_decision` is the most careful one of who decided on each pair.
    """

    cascade: RegressionCascade


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a judge says of one thing, and why that is left to somebody else.

    `open`: the reasons that stand however sure the judge is; `own`: all reasons by the criteria's own thresholds.
    `besides`: why a person is to look at it even if a judge settles it.
    """

    verdict: Any
    confidence: float | None
    open: tuple[ReviewReason, ...]
    own: tuple[ReviewReason, ...]
    besides: tuple[ReviewReason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A judge, what it says and why that is left open: what has no reason is settled.

    `threshold` was chosen on `labels` labels; it is None without labels, and if no threshold is shown to be safe.
    """

    judge: str
    standings: Mapping[Key, Standing]
    reasons: Mapping[Key, tuple[ReviewReason, ...]]
    threshold: float | None = None
    labels: int = 0

    @property
    def settled(self) -> list[Key]:
        """What needs nobody else."""
        return [key for key, reasons in self.reasons.items() if not reasons]


def own_stage(judge: str, standings: Mapping[Key, Standing]) -> Stage:
    """Return what a judge settles by the criteria's own thresholds."""
    return Stage(judge=judge, standings=standings, reasons={key: one.own for key, one in standings.items()})


def labelled_stage(
    judge: str, standings: Mapping[Key, Standing], labels: Verdicts, agree: Agree, policy: JudgeCascade
) -> Stage:
    """Return what a judge settles from a confidence on that labels show to be safe."""
    labelled = [(one, labels[key]) for key, one in standings.items() if key in labels and not one.open]
    threshold = threshold_for(
        [one.confidence or 0.0 for one, _ in labelled],
        [agree(one.verdict, human) for one, human in labelled],
        alpha=policy.alpha,
        delta=policy.delta,
    )
    lowest = math.inf if threshold is None else threshold - _SLACK
    unsure: tuple[ReviewReason, ...] = ("low_confidence",)
    reasons = {key: one.open or (() if (one.confidence or 0.0) >= lowest else unsure) for key, one in standings.items()}
    return Stage(judge=judge, standings=standings, reasons=reasons, threshold=threshold, labels=len(labelled))


def threshold_for(confidences: Sequence[float], agrees: Sequence[bool], *, alpha: float, delta: float) -> float | None:
    """Return the lowest confidence with P(agreement with people ≥ 1 − α) ≥ 1 − δ from it on; None without one.

    Thresholds from 1 down in steps of 0.01 are tested in this fixed order, each at level δ: that disagreement is above
    α is refuted where so few disagreements have probability ≤ δ under Binomial(n, α). The first that is not refuted
    ends it, so no level is spent on how many are tried. Thresholds with too few verdicts for any outcome to refute are
    passed over, which looks at confidences only.

    Fixed-sequence testing: Bauer 1991 (doi:10.1002/sim.4780100609); for judges «Trust or Escalate», arXiv 2407.18370.

    >>> sure = [0.95] * 60 + [0.6] * 40
    >>> threshold_for(sure, [True] * 60 + [True, False] * 20, alpha=0.1, delta=0.1)
    0.61
    """
    from scipy.special import bdtr

    passed = None
    for lowest in _GRID:
        right = [agreed for sure, agreed in zip(confidences, agrees, strict=True) if sure >= lowest - _SLACK]
        n, wrong = len(right), len(right) - sum(right)
        if (1 - alpha) ** n > delta:
            continue
        if float(bdtr(wrong, n, alpha)) > delta:
            break
        passed = lowest
    return passed


def fewest_labels(policy: JudgeCascade) -> int:
    """Return the least number of labels with which there can be a threshold.

    >>> fewest_labels(JudgeCascade(alpha=0.1, delta=0.1))
    22
    """
    return math.ceil(math.log(policy.delta) / math.log(1 - policy.alpha))


def audited(settled: Sequence[Key], share: float, seed: int) -> set[Key]:
    """Draw about a share of what is settled, each by itself, so that who is drawn does not depend on the others."""
    return {key for key in settled if random.Random(f"{seed}/audit/{key}").random() < share}  # noqa: S311 (no secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Who decided, by what the judge asked last says; `reasons`: why a person is to look at it."""

    by: str
    standing: Standing
    reasons: tuple[ReviewReason, ...]


def decisions_of(cheap: Stage, strong: Stage) -> dict[Key, Decided]:
    """Return who decided on each thing that was judged."""
    decisions = {}
    for key, doubts in cheap.reasons.items():
        stage = strong if doubts and key in strong.standings else cheap
        standing, reasons = stage.standings[key], stage.reasons[key]
        by = PEOPLE if reasons else stage.judge
        decisions[key] = Decided(by=by, standing=standing, reasons=(*reasons, *standing.besides))
    return decisions


def shares_of(
    stages: tuple[Stage, Stage],
    decisions: Mapping[Key, Decided],
    checks: Mapping[Key, Standing],
    agree: Agree,
    policy: JudgeCascade,
    *,
    reviewed: int,
    guaranteed: bool,
) -> CascadeShares:
    """Return how much went where. `checks`: what the strong judge says of what was audited."""
    cheap = stages[0].standings
    both = [(cheap[key].verdict, one.verdict) for key, one in checks.items() if one.verdict is not None]
    first, second = (
        CascadeStage(
            judge=stage.judge,
            asked=len(stage.standings),
            settled=sum(one.by == stage.judge for one in decisions.values()),
            labels=stage.labels,
            threshold=stage.threshold,
        )
        for stage in stages
    )
    return CascadeShares(
        stages=(first, second),
        people=sum(one.by == PEOPLE for one in decisions.values()),
        guarantee=CascadeGuarantee(alpha=policy.alpha, delta=policy.delta) if guaranteed else None,
        reviewed=reviewed,
        fewest_labels=fewest_labels(policy),
        audited=len(both),
        audit=rate(sum(agree(left, right) for left, right in both), len(both)),
    )


class JudgedBatch(Protocol):
    """Outputs to be scored, compared or held against others: what is asked, and what comes of the answers."""

    @property
    def asking(self) -> Asking:
        """What judges are asked."""

    @property
    def cascade_remarks(self) -> Sequence[str]:
        """Remarks on a cascade."""

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by what it is about."""

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> Any:
        """Return what one judge says of these, as the mode's results have it."""

    def outcomes(self, judge: Any) -> dict[Key, Any]:
        """Return the same by what it is about."""

    def reasons(self, said: Sequence[Any]) -> Sequence[ReviewReason]:
        """Return why what judges say of one thing is left to people; nothing where it is settled."""

    def standing(self, outcome: Any) -> Standing:
        """Return what a judge's outcome comes to, and why it is left to somebody else."""

    def agree(self, one: Any, other: Any) -> bool:
        """Return whether two verdicts, or a verdict and a label, say the same."""

    def labels_in(self, labels: Labels) -> dict[Key, Any]:
        """Return what people say of what is judged; raise JudgeError where nothing is about it."""

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Any | None:
        """Return the label that a review's answers make, by question; None where they leave something open."""

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the items as people are asked about them."""

    def results(self, judging: Judging, judges: Sequence[Any]) -> Any:
        """Return the file of the results; several judges are a panel."""

    def cascaded(
        self, judging: Judging, judges: Sequence[Any], shares: CascadeShares, decisions: Mapping[Key, Decided]
    ) -> Any:
        """Return the file of the results of a cascade."""

    def write(self, folder: Path, results: Any) -> None:
        """Write what the mode keeps besides; raise StorageError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeLabels:
    """The labels of a file, and those of the review queue on what was drawn by chance.

    Whatever else is in the queue is there because a judge was in doubt of it, so that it says nothing of the rest.
    """

    given: Verdicts | None
    reviewed: Verdicts = field(default_factory=dict)

    def counting(self, fewest: int) -> Verdicts | None:
        """Return the labels that choose the threshold; None without a file where those of the review are too few."""
        if self.given is None:
            return self.reviewed if len(self.reviewed) >= fewest else None
        return {**self.reviewed, **self.given}


def cascade_labels(batch: JudgedBatch, labels: Labels | None, queue: ReviewQueue) -> CascadeLabels:
    """Find the labels of what is judged in a file and in the queue; what is held out in the file chooses nothing."""
    held_out = {line.id for line in labels.lines if getattr(line, "split", None) == "held_out"} if labels else set()
    queued = queue.items()
    counting = latest(queue.labels(queued))
    reviewed = {}
    for key, item in batch.review_items().items():
        there = queued.get(item.id)
        if there is None or "random" not in there.reasons or key[0] in held_out:
            continue
        answers = [answer for label in counting.get(item.id, {}).values() for answer in label.answers]
        agreed = {
            name: answer
            for name in {answer.question for answer in answers}
            if (answer := agreed_answer(name, [one for one in answers if one.question == name])) is not None
        }
        label = batch.label(key, agreed)
        if label is not None:
            reviewed[key] = label
    return CascadeLabels(given=None if labels is None else batch.labels_in(labels), reviewed=reviewed)
