"""`judge regression`: is the new output worse than the one in use, dimension by dimension?"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import Voices
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.judging import Asking, Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.calibration.results import JudgeCalibration
from skill_evaluator.judges.modes.findings import reduce_regressions
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, question_id, refuse_unasked_blocking
from skill_evaluator.judges.modes.regression_batch import (
    NOT_APPLICABLE,
    ComparedOutputs,
    RegressionBatch,
    batch_of,
    outputs_of_run,
    pairs_of_outputs,
    side_notes,
)
from skill_evaluator.judges.modes.regression_results import (
    JudgeRegressions,
    PairResult,
    RegressionResults,
    most_careful,
)
from skill_evaluator.judges.modes.ship_rules import Impact, ShipDecision, decide
from skill_evaluator.judges.panel.cascade import (
    PEOPLE,
    CascadePair,
    CascadeShares,
    Decided,
    Key,
    RegressionCascade,
    RegressionCascadeResults,
    Standing,
)
from skill_evaluator.judges.panel.panel import reduce_panel_regressions
from skill_evaluator.judges.people.items import ReviewItem, ReviewReason, reasons_of_regression, regression_item
from skill_evaluator.judges.people.queue import ReviewAnswer
from skill_evaluator.judges.stories.requests import RegressionRequest
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import JudgePolicy, SafetyLimits
from skill_evaluator.library.rubrics import USUAL_THRESHOLD
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.runner.journal import find_run
from skill_evaluator.runner.schedule import Call, Replicate

_BESIDES = ("block", "regression", "stakes")  # what a judge settles, and a person is to see all the same


def read_regression(request: RegressionRequest, bench: Bench, *, cascade: bool) -> "JudgedRegressions":
    """Return what is to be held against what; raise JudgeError, RunError, ComponentError or FixtureError."""
    settings = bench.configuration.settings
    batch = batch_of(
        _read_compared(request, settings.limits),
        settings.policy,
        request.seed,
        dimensions=request.dimensions,
        preset=request.preset,
        blocking=request.blocking,
    )
    refuse_unasked_blocking(batch.pairs, request.blocking)
    return judged_regressions(batch, bench, cascade=cascade)


def judged_regressions(
    batch: RegressionBatch, bench: Bench, judging_id: str | None = None, *, cascade: bool = False
) -> "JudgedRegressions":
    """Return the batch as these judges are asked about it; raise JudgeError for a broken calibration.

    Name judges of a writer's family in warnings; of a panel refuse them with JudgeError, if the settings say so.
    """
    written = {name: item.writers for name, item in batch.compared.items.items()}
    voices, policy = bench.voices(written, list(batch.paper["dimensions"])), bench.configuration.settings.policy.judge
    warnings = []
    if not cascade:
        same_family = policy.panel.same_family if len(bench.models) > 1 else "allow"
        wanted = f"policy.judge.panel has same_family: {same_family}: a panel needs judges of a second family"
        warnings += voices.refuse_family(wanted, same_family)
    warnings += [
        f"nothing says that {model.id} is strong enough to judge regressions; see what `judge calibrate` says of it, "
        "then declare `judge: strong` in models.yaml"
        for model in bench.models
        if model.judge is None
    ]
    without = ["no alert is computed of a cascade: its judges see different pairs"]
    calibration = None
    if not (cascade or bench.request.dry_run):
        from skill_evaluator.judges.calibration.detection import read_calibration  # imports numpy

        calibration = read_calibration(bench.request.config, bench.configuration.settings)
    return JudgedRegressions(
        asking=batch.asking(judging_id, warnings),
        batch=batch,
        voices=voices,
        policy=policy,
        calibration=calibration,
        cascade_remarks=without if policy.alert_above is not None else (),
    )


def _read_compared(request: RegressionRequest, limits: SafetyLimits) -> ComparedOutputs:
    """Return what is compared; raise JudgeError, RunError, ComponentError or FixtureError for what cannot be."""
    if (request.items is None) == (request.candidate is None) or (request.items and request.baseline):
        raise JudgeError("say what is compared: --items FILE, or --candidate RUN with or without --baseline RUN")
    if request.items is not None:
        return ComparedOutputs(items=read_items(request.items, RegressionItem))
    candidate, unanswered = outputs_of_run(find_run(request.candidate or "", request.components))
    component = load_component(request.components, candidate.skill, limits, request.fixtures)
    cases = load_cases(component, request.fixtures)
    missing: Mapping[str, str] = {}
    if request.baseline is None:
        baseline = pinned_of_model(component.folder, component.name, candidate.model_id)
    else:
        baseline, missing = outputs_of_run(find_run(request.baseline, request.components))
    items, left_out = pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    return ComparedOutputs(
        items=items,
        left_out=left_out
        | {case_id: why if why == NOT_APPLICABLE else f"baseline: {why}" for case_id, why in missing.items()},
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        notes=side_notes(baseline, candidate),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRegressions:
    """The pairs with their rules; a key is the id of a pair. `calibration` corrects the rates that `policy` bounds."""

    asking: Asking
    batch: RegressionBatch
    voices: Voices
    policy: JudgePolicy
    calibration: JudgeCalibration | None
    cascade_remarks: Sequence[str] = ()

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
        strong = self.voices.judges[judge.model_id].judge == "strong"
        return reduce_regressions(mine, answers, replicates, self.batch.rules, judge, declared_strong=strong)

    def outcomes(self, judge: JudgeRegressions) -> dict[Key, PairResult]:
        """Return what is found in each pair."""
        return {(pair.id,): pair for pair in judge.pairs}

    def reasons(self, said: Sequence[PairResult]) -> list[ReviewReason]:
        """Return why a person is to look at what judges find of one pair."""
        return reasons_of_regression(said, high_stakes=self.batch.rules.high_stakes)

    def standing(self, outcome: PairResult) -> Standing:
        """Return the decision on a pair."""
        reasons = self.reasons([outcome])
        doubts = tuple(reason for reason in reasons if reason not in _BESIDES)
        confidence = confidence_of(outcome)
        unsure: tuple[ReviewReason, ...] = ("low_confidence",) if confidence < USUAL_THRESHOLD else ()
        return Standing(
            verdict=outcome.ship_decision,
            confidence=confidence,
            open=doubts,
            own=doubts or unsure,
            besides=tuple(reason for reason in reasons if reason in _BESIDES),
        )

    def agree(self, one: ShipDecision, other: ShipDecision) -> bool:
        """Return whether it is the same decision."""
        return one == other

    def labels_in(self, labels: Labels) -> dict[Key, ShipDecision]:
        """Return the decisions that follow from people's findings; raise JudgeError without any."""
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

    def results(self, judging: Judging, judges: Sequence[JudgeRegressions]) -> RegressionResults:
        """Return the file of the results; several judges are a panel, and rates that the policy bounds may alert."""
        from skill_evaluator.judges.calibration.detection import with_alerts  # imports numpy

        panel = None
        if len(judges) > 1:
            panel = reduce_panel_regressions(judges, self.batch.pairs, self.batch.rules, self.voices)
        return with_alerts(self.batch.results(judging, judges, panel), self.policy, self.calibration)

    def cascaded(
        self,
        judging: Judging,
        judges: Sequence[JudgeRegressions],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> RegressionCascadeResults:
        """Return the file of the results of a cascade."""
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

    def write(self, folder: Path, results: RegressionResults) -> None:
        """Write nothing: the results have it all."""


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
