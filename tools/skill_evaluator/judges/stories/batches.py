"""What judges are asked in each mode, and what comes of it, alone, as a panel or as a cascade.

`judge score`: outputs one by one, by the criteria of a rubric, beside a source if need be. `judge pairwise`: which of
two outputs is better, in both orders; or which of several is best. `judge regression`: is the new output worse than
the one in use, dimension by dimension?
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, Voices, choose_criteria, strict_criteria
from skill_evaluator.judges.asking.items import OutputItem, items_of_run, read_items
from skill_evaluator.judges.asking.judging import Asking, Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, Winner, head_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.modes.findings import reduce_regressions
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    SHARES,
    JudgePreferences,
    MatchResult,
    PairItem,
    PairMatch,
    PairwiseResults,
    Preferred,
    make_matches,
    pairs_among,
    reduce_matches,
    write_verdicts,
)
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
from skill_evaluator.judges.modes.scoring import (
    ItemScores,
    JudgeScores,
    ScoreQuestion,
    ScoreResults,
    reduce_scores,
    score_questions,
    weighted_summary,
    write_scores,
)
from skill_evaluator.judges.modes.ship_rules import Impact, ShipDecision, decide
from skill_evaluator.judges.panel.cascade import (
    PEOPLE,
    CascadeMatch,
    CascadePair,
    CascadeResult,
    CascadeResults,
    CascadeScore,
    CascadeShares,
    Decided,
    Key,
    RegressionCascade,
    RegressionCascadeResults,
    ScoreCascade,
    ScoreCascadeResults,
    Standing,
)
from skill_evaluator.judges.panel.panel import reduce_panel_pairs, reduce_panel_regressions, reduce_panel_scores
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
from skill_evaluator.judges.stories.requests import PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import JudgePolicy, SafetyLimits
from skill_evaluator.library.rubrics import USUAL_THRESHOLD, MethodName, load_rubric
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.runner.journal import find_run, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate

_NEAR = 0.25  # of a scale: scores this near agree. Of 1-3 they are the same, of 1-5 a level apart, of 1-10 two
Scores = Mapping[str, float]


def read_scoring(request: ScoreRequest, bench: Bench, *, cascade: bool) -> "ScoreBatch":
    """Return what is to be scored; raise JudgeError, RunError, ComponentError or FixtureError for what cannot be."""
    settings = bench.configuration.settings
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=settings.limits.follow_links),
        request.criteria,
        ("direct_scoring", "reference_based"),
    )
    items, left_out, skill = _read_items(request, rubric, settings.limits)
    writers = {item.id: (item.model,) for item in items.values()}
    voices = bench.voices(writers, strict_criteria(rubric))
    questions, prompts = score_questions(rubric, list(items.values()), request.seed, reference=request.reference)
    return ScoreBatch(
        asking=Asking(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=[asked.question for asked in questions],
            warnings=voices.check_families(cascade=cascade),
            paper=rubric.paper,
            skill=skill,
        ),
        rubric=rubric,
        items=items,
        asked=questions,
        methods={one.id: "reference_based" if request.reference else one.primary_method for one in rubric.criteria},
        left_out=left_out,
        voices=voices,
    )


def _read_items(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[Mapping[str, OutputItem], Mapping[str, str], str | None]:
    """Return the items by id, why the answers of other cases cannot be judged, and the component of a run."""
    if (request.items is None) == (request.run is None):
        raise JudgeError("say what is judged: --items FILE, or --run DIR for the answers of a component's run")
    if request.items is not None:
        return read_items(request.items, OutputItem), {}, None
    folder = find_run(request.run or "", request.components)
    manifest = read_component_manifest(folder)
    component = load_component(request.components, manifest.skill, limits, request.fixtures)
    cases = [case for case in load_cases(component, request.fixtures) if case.id in manifest.cases]
    changed = [case.id for case in cases if not case.was(manifest.cases[case.id])]
    if changed or len(cases) < len(manifest.cases):
        gone = changed or sorted(manifest.cases.keys() - {case.id for case in cases})
        raise JudgeError(f"case '{gone[0]}' changed since {folder} was run; check out its commit")
    items, left_out = items_of_run(
        component, cases, outcomes(folder), manifest.model_id, request.field or rubric.field_of(component.name)
    )
    if not items:
        raise JudgeError(f"no answer of {folder} can be judged: {next(iter(left_out.values()))}")
    return items, left_out, component.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBatch:
    """The outputs with their rubric; a key is the id of an item. `left_out`: why other outputs cannot be judged."""

    asking: Asking
    rubric: NamedRubric
    items: Mapping[str, OutputItem]
    asked: Sequence[ScoreQuestion]
    methods: Mapping[str, MethodName]
    left_out: Mapping[str, str]
    voices: Voices
    cascade_remarks: Sequence[str] = ()

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

    def outcomes(self, judge: JudgeScores) -> dict[Key, ItemScores]:
        """Return the scores of each output."""
        return {(item.id,): item for item in judge.items}

    def reasons(self, said: Sequence[ItemScores]) -> list[ReviewReason]:
        """Return why what judges say of one output is left to people."""
        return reasons_of_scores(said, self.rubric.criteria)

    def standing(self, outcome: ItemScores) -> Standing:
        """Return the scores of an output, with the confidence of the criterion that the judge is least sure of."""
        scores = {name: score for name, score in outcome.scores.items() if score is not None}
        sure = [
            [one.confidence for one in outcome.judgements if one.criterion == name and one.confidence is not None]
            for name in outcome.scores
        ]
        reasons = self.reasons([outcome])
        return Standing(
            verdict=scores if len(scores) == len(outcome.scores) else None,
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
            if name in self.items and all(criterion.id in item.scores for criterion in self.rubric.criteria)
        }
        if not scored:
            raise JudgeError(f"{labels.path} has no score by every criterion of an output judged here")
        return scored

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Scores | None:
        """Return the scores that people agree on, if they do by every criterion."""
        if not all(criterion.id in answers for criterion in self.rubric.criteria):
            return None
        return {criterion.id: int(answers[criterion.id].answer) for criterion in self.rubric.criteria}

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the outputs as people are asked about them."""
        return {(name,): scored_item(item, self.rubric.criteria, judging) for name, item in self.items.items()}

    def results(self, judging: Judging, judges: Sequence[JudgeScores]) -> ScoreResults:
        """Return the file of the results; several judges are a panel."""
        together = len(judges) > 1
        return ScoreResults(
            judging=head_of(judging, self.rubric.file),
            left_out=dict(self.left_out),
            judges=list(judges),
            panel=reduce_panel_scores(judges, self.rubric.criteria, self.voices) if together else None,
        )

    def cascaded(
        self, judging: Judging, judges: Sequence[JudgeScores], shares: CascadeShares, decisions: Mapping[Key, Decided]
    ) -> ScoreCascadeResults:
        """Return the file of the results of a cascade."""
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

    def write(self, folder: Path, results: ScoreResults) -> None:
        """Write the scores, which say with people's scores what the judges are worth."""
        write_scores(folder, results.judges)


def read_comparison(request: PairwiseRequest, bench: Bench, *, cascade: bool) -> "PairBatch":
    """Return what is to be compared; raise JudgeError for what cannot be."""
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=bench.configuration.settings.limits.follow_links),
        request.criteria,
        ("pairwise_comparison",),
    )
    items = list(read_items(request.items, PairItem).values())
    strict = strict_criteria(rubric)
    voices = bench.voices({item.id: item.writers for item in items}, [*strict, OVERALL] if strict else ())
    matches, prompt = make_matches(rubric, items, request.seed, request.opponents)
    return PairBatch(
        asking=Asking(
            mode="pairwise",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=[prompt],
            items={item.id: item.digest for item in items},
            questions=[question for match in matches for question in match.questions],
            notes=["every pair is asked in both orders"],
            warnings=voices.check_families(cascade=cascade),
            paper=rubric.paper,
        ),
        rubric=rubric,
        matches=matches,
        voices=voices,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBatch:
    """The matches with their rubric; a key is the id of an item and the names of two outputs."""

    asking: Asking
    rubric: NamedRubric
    matches: Sequence[PairMatch]
    voices: Voices
    cascade_remarks: Sequence[str] = ()

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

    def outcomes(self, judge: JudgePreferences) -> dict[Key, MatchResult]:
        """Return the verdict on each match."""
        return {(match.item, *match.names): match for match in judge.matches}

    def reasons(self, said: Sequence[MatchResult]) -> list[ReviewReason]:
        """Return why what judges say of one match is left to people."""
        return reasons_of_match(said, self.rubric.criteria)

    def standing(self, outcome: MatchResult) -> Standing:
        """Return the overall winner of a match, in the first replicate."""
        overall = next(one for one in outcome.judgements if one.criterion == OVERALL)
        unsettled: tuple[ReviewReason, ...] = ("unscored",) if overall.winner is None else ("disagreement",)
        return Standing(
            verdict=overall.winner,
            confidence=overall.confidence,
            open=() if overall.agreed else unsettled,
            own=tuple(self.reasons([outcome])),
        )

    def agree(self, one: Preferred, other: Preferred) -> bool:
        """Return whether it is the same winner."""
        return one == other

    def labels_in(self, labels: Labels) -> dict[Key, Winner]:
        """Return the preferred outputs; raise JudgeError where no pair is judged here."""
        there = {match.item.id for match in self.matches if match.of_a_pair}
        preferred: dict[Key, Winner] = {
            (name, *PAIR): pair.human for name, pair in labels.pairs.items() if name in there and pair.human is not None
        }
        if not preferred:
            raise JudgeError(f"{labels.path} has no label of a pair that is judged here")
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

    def results(self, judging: Judging, judges: Sequence[JudgePreferences]) -> PairwiseResults:
        """Return the file of the results; several judges are a panel."""
        return PairwiseResults(
            judging=head_of(judging, self.rubric.file),
            judges=list(judges),
            panel=reduce_panel_pairs(judges, self.voices) if len(judges) > 1 else None,
        )

    def cascaded(
        self,
        judging: Judging,
        judges: Sequence[JudgePreferences],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> CascadeResults:
        """Return the file of the results of a cascade."""
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

    def write(self, folder: Path, results: PairwiseResults) -> None:
        """Write the verdicts of every answer about an item with two outputs."""
        write_verdicts(folder, results)


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
    calibration = None if cascade else read_calibration(bench.request.config, bench.configuration.settings)
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
