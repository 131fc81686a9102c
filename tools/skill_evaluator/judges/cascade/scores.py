"""A cascade of `judge score`: an output is settled by its scores on all criteria."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, figure, head_of
from skill_evaluator.judges.calibration.files import read_scored
from skill_evaluator.judges.cascade.kind import GivenLabels
from skill_evaluator.judges.cascade.reducing import PEOPLE, Decided
from skill_evaluator.judges.cascade.results import CascadeScore, CascadeShares, ScoreCascade, ScoreCascadeResults
from skill_evaluator.judges.cascade.routing import Key, Standing
from skill_evaluator.judges.modes.reduce_scores import reduce_scores, weighted_summary
from skill_evaluator.judges.modes.scoring import ItemScores, JudgeScores, ScoreQuestion
from skill_evaluator.judges.review.doubts import reasons_of_scores
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewAnswer
from skill_evaluator.judges.review.making import scored_item
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.library.rubrics import MethodName
from skill_evaluator.runner.schedule import Call, Replicate

_NEAR = 0.25  # of a scale: scores this near agree. Of 1-3 they are the same, of 1-5 a level apart, of 1-10 two
Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresCascade:
    """The outputs with their rubric; a key is the id of an item. `left_out`: why other outputs cannot be judged."""

    rubric: NamedRubric
    items: Mapping[str, OutputItem]
    asked: Sequence[ScoreQuestion]
    methods: Mapping[str, MethodName]
    left_out: Mapping[str, str]

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by output."""
        return {(name,): [one.question for one in self.asked if one.item.id == name] for name in self.items}

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> JudgeScores:
        """Return what one judge says of these outputs."""
        mine = [one for one in self.asked if (one.item.id,) in keys]
        return reduce_scores(mine, answers, replicates, judge, self.methods)

    def standings(self, judge: JudgeScores) -> dict[Key, Standing]:
        """Return the scores of each output, with the confidence of the criterion that the judge is least sure of."""
        return {(item.id,): self._standing(item) for item in judge.items}

    def _standing(self, item: ItemScores) -> Standing:
        scores = {name: score for name, score in item.scores.items() if score is not None}
        sure = [
            [one.confidence for one in item.judgements if one.criterion == name and one.confidence is not None]
            for name in item.scores
        ]
        reasons = reasons_of_scores([item], self.rubric.criteria)
        return Standing(
            verdict=scores if len(scores) == len(item.scores) else None,
            confidence=min((fmean(given) for given in sure if given), default=None),
            open=tuple(reason for reason in reasons if reason != "low_confidence"),
            own=tuple(reasons),
        )

    def agree(self, one: Scores, other: Scores) -> bool:
        """Return whether the scores of each criterion are no further apart than a quarter of its scale."""
        return all(
            abs(one[criterion.id] - other[criterion.id]) <= _NEAR * (criterion.highest - 1) + 1e-9
            for criterion in self.rubric.criteria
        )

    def read_labels(self, path: Path) -> GivenLabels:
        """Read what people scored, of several their mean; raise JudgeError where no output has each criterion."""
        labels: dict[Key, Scores] = {}
        held_out = set()
        for name, item in read_scored(path).items():
            if name in self.items and all(criterion.id in item.scores for criterion in self.rubric.criteria):
                if item.split == "held_out":
                    held_out.add((name,))
                else:
                    labels[name,] = {criterion: fmean(scores) for criterion, scores in item.scores.items()}
        if not labels:
            raise JudgeError(
                f"{path} has no score by every criterion of an output judged here, apart from held_out ones"
            )
        return GivenLabels(labels=labels, held_out=frozenset(held_out))

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Scores | None:
        """Return the scores that people agree on, if they do by every criterion."""
        if not all(criterion.id in answers for criterion in self.rubric.criteria):
            return None
        return {criterion.id: int(answers[criterion.id].answer) for criterion in self.rubric.criteria}

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the outputs as people are asked about them."""
        return {(name,): scored_item(item, self.rubric.criteria, judging) for name, item in self.items.items()}

    def results(
        self, judging: Judging, judges: Sequence[JudgeScores], shares: CascadeShares, decisions: Mapping[Key, Decided]
    ) -> ScoreCascadeResults:
        """Return the file of the results."""
        items = []
        for (name,), one in decisions.items():
            scores = one.standing.verdict if one.by != PEOPLE else None
            items.append(
                CascadeScore(
                    item=name,
                    by=one.by,
                    scores=scores,
                    summary=None if scores is None else weighted_summary(scores, self.rubric.criteria),
                    confidence=None if scores is None else one.standing.confidence,
                    reasons=list(one.reasons),
                )
            )
        summary = mean_within([item.summary for item in items if item.summary is not None])
        return ScoreCascadeResults(
            judging=head_of(judging, self.rubric.file),
            left_out=dict(self.left_out),
            judges=list(judges),
            cascade=ScoreCascade(**dict(shares), summary=figure(summary), items=items),
        )
