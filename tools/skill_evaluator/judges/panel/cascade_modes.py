"""A cascade of `judge score`, `judge pairwise` and `judge regression`: what each mode settles, and by which labels.

An output is settled by its scores on all criteria, a match by its overall winner in both orders, a pair by the decision
that follows from the judge's findings.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, Winner, head_of
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    JudgePreferences,
    MatchResult,
    PairMatch,
    Preferred,
    pairs_among,
)
from skill_evaluator.judges.modes.reduce_pairs import SHARES, reduce_matches
from skill_evaluator.judges.modes.reduce_regressions import reduce_regressions
from skill_evaluator.judges.modes.reduce_scores import reduce_scores, weighted_summary
from skill_evaluator.judges.modes.regression import JudgedPair, question_id
from skill_evaluator.judges.modes.regression_batch import RegressionBatch
from skill_evaluator.judges.modes.regression_results import JudgeRegressions, PairResult, most_careful
from skill_evaluator.judges.modes.scoring import ItemScores, JudgeScores, ScoreQuestion
from skill_evaluator.judges.modes.ship_rules import Impact, ShipDecision, decide
from skill_evaluator.judges.panel.cascade import PEOPLE, Decided, Key, Standing
from skill_evaluator.judges.panel.cascade_results import (
    CascadeMatch,
    CascadePair,
    CascadeResult,
    CascadeResults,
    CascadeScore,
    CascadeShares,
    RegressionCascade,
    RegressionCascadeResults,
    ScoreCascade,
    ScoreCascadeResults,
)
from skill_evaluator.judges.people.items import (
    ReviewItem,
    ReviewReason,
    paired_item,
    reasons_of_match,
    reasons_of_regression,
    reasons_of_scores,
    regression_item,
    scored_item,
)
from skill_evaluator.judges.people.labelled import WINNERS
from skill_evaluator.judges.people.queue import ReviewAnswer
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.library.config import Model
from skill_evaluator.library.rubrics import USUAL_THRESHOLD, MethodName
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

    def labels_in(self, labels: Labels) -> dict[Key, Scores]:
        """Return what people scored, of several their mean; raise JudgeError where no output has each criterion."""
        scored: dict[Key, Scores] = {
            (name,): {criterion: fmean(scores) for criterion, scores in item.scores.items()}
            for name, item in labels.scored.items()
            if name in self.items
            and item.split != "held_out"
            and all(criterion.id in item.scores for criterion in self.rubric.criteria)
        }
        if not scored:
            raise JudgeError(
                f"{labels.path} has no score by every criterion of an output judged here, apart from held_out ones"
            )
        return scored

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
            cascade=ScoreCascade(**dict(shares), summary=summary, items=items),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCascade:
    """The matches with their rubric; a key is the id of an item and the names of two outputs."""

    rubric: NamedRubric
    matches: Sequence[PairMatch]

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by match."""
        return {(match.item.id, *match.names): match.questions for match in self.matches}

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> JudgePreferences:
        """Return what one judge says of these matches."""
        mine = [match for match in self.matches if (match.item.id, *match.names) in keys]
        return reduce_matches(mine, self.rubric.criteria, answers, replicates, judge)

    def standings(self, judge: JudgePreferences) -> dict[Key, Standing]:
        """Return the overall winner of each match, in the first replicate."""
        return {(match.item, *match.names): self._standing(match) for match in judge.matches}

    def _standing(self, match: MatchResult) -> Standing:
        overall = next(one for one in match.judgements if one.criterion == OVERALL)
        unsettled: tuple[ReviewReason, ...] = ("unscored",) if overall.winner is None else ("disagreement",)
        return Standing(
            verdict=overall.winner,
            confidence=overall.confidence,
            open=() if overall.agreed else unsettled,
            own=tuple(reasons_of_match([match], self.rubric.criteria)),
        )

    def agree(self, one: Preferred, other: Preferred) -> bool:
        """Return whether it is the same winner."""
        return one == other

    def labels_in(self, labels: Labels) -> dict[Key, Winner]:
        """Return the preferred outputs; raise JudgeError where no pair is judged here, apart from held-out ones."""
        there = {match.item.id for match in self.matches if match.of_a_pair}
        preferred: dict[Key, Winner] = {
            (name, *PAIR): pair.human
            for name, pair in labels.pairs.items()
            if name in there and pair.human is not None and pair.split != "held_out"
        }
        if not preferred:
            raise JudgeError(f"{labels.path} has no label of a pair that is judged here, apart from held_out ones")
        return preferred

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Winner | None:
        """Return the output that people find better overall."""
        return WINNERS[answers[OVERALL].answer] if OVERALL in answers else None

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the matches as people are asked about them."""
        return {
            (match.item.id, *match.names): paired_item(match.item, match.names, self.rubric.criteria, judging)
            for match in self.matches
        }

    def results(
        self,
        judging: Judging,
        judges: Sequence[JudgePreferences],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> CascadeResults:
        """Return the file of the results."""
        matches = []
        for (item, left, right), one in decisions.items():
            settled = one.by != PEOPLE
            matches.append(
                CascadeMatch(
                    item=item,
                    names=(left, right),
                    by=one.by,
                    winner=one.standing.verdict if settled else None,
                    confidence=one.standing.confidence if settled else None,
                    reasons=list(one.reasons),
                )
            )
        wins = [SHARES[match.winner] for match in pairs_among(matches) if match.winner is not None]
        cascade = CascadeResult(**dict(shares), wins=mean_within(wins), matches=matches)
        return CascadeResults(judging=head_of(judging, self.rubric.file), judges=list(judges), cascade=cascade)


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
        return {(pair.id,): [by_id[question_id(pair.id, order)] for order in (1, 2)] for pair in self.batch.pairs}

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

    def labels_in(self, labels: Labels) -> dict[Key, ShipDecision]:
        """Return the decisions that follow from people's findings; raise JudgeError where there is none."""
        decisions: dict[Key, ShipDecision] = {}
        for pair in self.batch.pairs:
            given = labels.regressions.get(pair.id, {})
            decision = self._decision(pair, {name: (one.human, one.impact) for name, one in given.items()})
            if decision is not None:
                decisions[pair.id,] = decision
        if not decisions:
            raise JudgeError(f"no pair judged here is labelled in every dimension in {labels.path}")
        return decisions

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
