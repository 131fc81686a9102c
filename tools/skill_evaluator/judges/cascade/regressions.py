"""A cascade of `judge regression`: a pair is settled by the decision that follows from the judge's findings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.calibration.batch import read_labels
from skill_evaluator.judges.cascade.kind import GivenLabels
from skill_evaluator.judges.cascade.reducing import PEOPLE, Decided
from skill_evaluator.judges.cascade.results import (
    CascadePair,
    CascadeShares,
    RegressionCascade,
    RegressionCascadeResults,
)
from skill_evaluator.judges.cascade.routing import Key, Standing
from skill_evaluator.judges.modes.reduce_regressions import reduce_regressions
from skill_evaluator.judges.modes.regression import ORDERS, JudgedPair, question_id
from skill_evaluator.judges.modes.regression_batch import RegressionBatch
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, PairResult, most_careful
from skill_evaluator.judges.modes.ship_rules import Impact, ShipDecision, decide
from skill_evaluator.judges.review.doubts import reasons_of_regression
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason
from skill_evaluator.judges.review.labels import ReviewAnswer
from skill_evaluator.judges.review.making import regression_item
from skill_evaluator.library.config import Model
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.runner.schedule import Call, Replicate

_BESIDES = ("block", "regression", "stakes")  # what a judge settles, and a person is to see all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionsCascade:
    """The pairs with their rules; a key is the id of a pair."""

    batch: RegressionBatch
    models: Sequence[Model]

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by pair."""
        by_id = {question.case_id: question for question in self.batch.questions}
        return {(pair.id,): [by_id[question_id(pair.id, order)] for order in ORDERS] for pair in self.batch.pairs}

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> JudgeRegressions:
        """Return what one judge finds in these pairs."""
        mine = [pair for pair in self.batch.pairs if (pair.id,) in keys]
        strong = any(model.id == judge.model_id and model.judge == "strong" for model in self.models)
        return reduce_regressions(mine, answers, replicates, self.batch.rules, judge, declared_strong=strong)

    def standings(self, judge: JudgeRegressions) -> dict[Key, Standing]:
        """Return the decision on each pair."""
        return {(pair.id,): self._standing(pair) for pair in judge.pairs}

    def _standing(self, pair: PairResult) -> Standing:
        reasons = reasons_of_regression([pair], high_stakes=self.batch.rules.high_stakes)
        doubts = tuple(reason for reason in reasons if reason not in _BESIDES)
        confidence = confidence_of(pair)
        unsure: tuple[ReviewReason, ...] = ("low_confidence",) if confidence < USUAL_THRESHOLD else ()
        return Standing(
            verdict=pair.ship_decision,
            confidence=confidence,
            open=doubts,
            own=doubts or unsure,
            besides=tuple(reason for reason in reasons if reason in _BESIDES),
        )

    def agree(self, one: ShipDecision, other: ShipDecision) -> bool:
        """Return whether it is the same decision."""
        return one == other

    def read_labels(self, path: Path) -> GivenLabels:
        """Read people's findings; raise JudgeError where they decide on no pair that is judged here."""
        asked = {pair.id: [dimension.name for dimension in pair.dimensions] for pair in self.batch.pairs}
        given = read_labels(path, asked)
        labels: dict[Key, ShipDecision] = {}
        for pair in self.batch.pairs:
            findings = {name: (one.human, one.impact) for name, one in given.get(pair.id, {}).items()}
            decision = self._decision(pair, findings)
            if decision is not None:
                labels[pair.id,] = decision
        if not labels:
            raise JudgeError(f"{path} has of no pair that is judged here a label in every dimension")
        return GivenLabels(labels=labels)

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> ShipDecision | None:
        """Return what follows from people's findings."""
        (pair,) = (pair for pair in self.batch.pairs if (pair.id,) == key)
        return self._decision(pair, {name: (one.answer, one.impact) for name, one in answers.items()})

    def _decision(self, pair: JudgedPair, findings: Mapping[str, tuple[str, Impact | None]]) -> ShipDecision | None:
        """Return what the rules make of people's findings; None where one, or the impact of a worse one, is missing."""
        worse = {name: impact for name, (finding, impact) in findings.items() if finding == "candidate_worse"}
        rated = {name: impact for name, impact in worse.items() if impact is not None}
        if len(rated) < len(worse) or not all(dimension.name in findings for dimension in pair.dimensions):
            return None
        decision, _ = decide(rated, pair.dimensions, self.batch.rules)
        return decision

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the pairs as people are asked about them."""
        return {(pair.id,): regression_item(pair, judging) for pair in self.batch.pairs}

    def results(
        self,
        judging: Judging,
        judges: Sequence[JudgeRegressions],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> RegressionCascadeResults:
        """Return the file of the results."""
        pairs = []
        for (name,), one in decisions.items():
            decision = one.standing.verdict
            if one.by == PEOPLE and decision == "ship":
                decision = "review_required"
            pairs.append(
                CascadePair(
                    item=name,
                    by=one.by,
                    ship_decision=decision,
                    confidence=one.standing.confidence,
                    reasons=list(one.reasons),
                )
            )
        unseen = [None] if self.batch.compared.left_out else []
        decided = most_careful([*(pair.ship_decision for pair in pairs), *unseen])
        results = self.batch.results(judging, judges).model_copy(update={"ship_decision": decided})
        return RegressionCascadeResults(**dict(results), cascade=RegressionCascade(**dict(shares), pairs=pairs))


def confidence_of(pair: PairResult) -> float:
    """Return the share of a judge's answers, in both orders and all replicates, that say what the pair came to.

    It is that of the dimension with the least. An answer that does not count says nothing.
    """
    shares = [
        sum(
            finding.verdict == verdict.verdict
            for answer in pair.answers
            for finding in answer.findings
            if finding.dimension == verdict.dimension
        )
        / len(pair.answers)
        for verdict in pair.dimensions
    ]
    return min(shares, default=0.0)
