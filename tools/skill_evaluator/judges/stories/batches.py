"""What judges are asked in each mode, and how their answers are read.

`judge score`: outputs one by one, by the criteria of a rubric. `judge pairwise`: which of two outputs is better, in
both orders. `judge regression`: whether the new output is worse than the one in use, dimension by dimension.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, choose_criteria, family_warnings, strict_criteria
from skill_evaluator.judges.asking.items import OutputItem, items_of_run, read_items
from skill_evaluator.judges.asking.judging import RESULTS, Asking, Judging, find_judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, head_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.calibration.results import read_calibration
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    JudgePreferences,
    MatchResult,
    PairItem,
    PairwiseResults,
    make_matches,
    reduce_matches,
    write_verdicts,
)
from skill_evaluator.judges.modes.regression import RegressionItem, question_id, refuse_unasked_blocking
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
    rate_changes,
    read_regressions,
    reduce_regressions,
    refuse_incomparable,
)
from skill_evaluator.judges.modes.scoring import (
    ItemScores,
    JudgeScores,
    ScoreResults,
    reduce_scores,
    score_questions,
    write_scores,
)
from skill_evaluator.judges.panel.panel import panel_preferences, panel_regressions, panel_scores
from skill_evaluator.judges.panel.results import CascadeResult
from skill_evaluator.judges.review.items import (
    ReviewItem,
    ReviewReason,
    paired_item,
    reasons_of_match,
    reasons_of_regression,
    reasons_of_scores,
    regression_item,
    scored_item,
)
from skill_evaluator.judges.stories.requests import PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.rubrics import USUAL_THRESHOLD, MethodName, load_rubric
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.runner.journal import find_run, outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate

Key = tuple[str, ...]
"""The id of an item, and in a match the names of the two outputs."""
JudgeT = TypeVar("JudgeT")
OutcomeT = TypeVar("OutcomeT")
ResultsT = TypeVar("ResultsT", ScoreResults, PairwiseResults, RegressionResults)
JudgedResults = ScoreResults | PairwiseResults | RegressionResults


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask(Generic[JudgeT, OutcomeT, ResultsT]):
    """The questions of one judge run, and the functions of its mode that read the answers.

    `reduce` returns one judge's part of the results about some keys, `outcomes` the outcome of each key in it.
    `reasons` returns the reasons to send one key to a person, from the outcomes of all judges. `verdict` returns an
    outcome in short, and whether it is settled is its second argument. `results` returns the file of the results.
    `write` writes further files of the mode.
    """

    asking: Asking
    questions: Mapping[Key, Sequence[JudgeQuestion]]
    reduce: Callable[[Collection[Key], Mapping[Call, Replicate], JudgeRecord], JudgeT]
    outcomes: Callable[[JudgeT], Mapping[Key, OutcomeT]]
    reasons: Callable[[Sequence[OutcomeT]], Sequence[ReviewReason]]
    verdict: Callable[[OutcomeT, bool], str | float | None]
    review_items: Callable[[str], Mapping[Key, ReviewItem]]
    results: Callable[[Judging, Sequence[JudgeT], CascadeResult | None], ResultsT]
    write: Callable[[Path, ResultsT], None]


ScoreTask = JudgeTask[JudgeScores, ItemScores, ScoreResults]
PairTask = JudgeTask[JudgePreferences, MatchResult, PairwiseResults]
RegressionTask = JudgeTask[JudgeRegressions, PairResult, RegressionResults]


def score_task(request: ScoreRequest, bench: Bench) -> ScoreTask:
    """Read the outputs to score; raise JudgeError, RunError, ComponentError or FixtureError."""
    settings = bench.configuration.settings
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=settings.limits.follow_links),
        request.criteria,
        ("direct_scoring", "reference_based"),
    )
    items, left_out, skill = _read_outputs(request, rubric, settings.limits)
    questions, prompts = score_questions(rubric, list(items.values()), request.seed, reference=request.reference)
    methods: dict[str, MethodName] = {
        one.id: "reference_based" if request.reference else one.primary_method for one in rubric.criteria
    }
    weights = settings.policy.judge.panel.weights

    def results(judging: Judging, judges: Sequence[JudgeScores], cascade: CascadeResult | None) -> ScoreResults:
        return ScoreResults(
            judging=head_of(judging, rubric.file),
            left_out=dict(left_out),
            judges=list(judges),
            panel=panel_scores(judges, rubric.criteria, weights) if len(judges) > 1 and cascade is None else None,
            cascade=cascade,
        )

    return JudgeTask(
        asking=Asking(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=[one.question for one in questions],
            warnings=_writer_warnings(bench, rubric, [item.model for item in items.values()]),
            paper=rubric.paper,
            skill=skill,
            source=str(request.items or request.run),
        ),
        questions={(name,): [one.question for one in questions if one.item.id == name] for name in items},
        reduce=lambda keys, answers, judge: reduce_scores(
            [one for one in questions if (one.item.id,) in keys], answers, request.replicates, judge, methods
        ),
        outcomes=lambda judge: {(item.id,): item for item in judge.items},
        reasons=lambda given: reasons_of_scores(given, rubric.criteria),
        verdict=lambda item, settled: item.summary if settled else None,
        review_items=lambda judging: {
            (name,): scored_item(item, rubric.criteria, judging) for name, item in items.items()
        },
        results=results,
        write=lambda folder, whole: write_scores(folder, whole.judges),
    )


def _read_outputs(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[Mapping[str, OutputItem], Mapping[str, str], str | None]:
    """Return the items by id, the reasons why other cases have none, and the component of a run."""
    if (request.items is None) == (request.run is None):
        raise JudgeError("use either --items FILE, or --run RUN for the outputs of a component's run")
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
    field = request.field or rubric.field_of(component.name)
    items, left_out = items_of_run(component, cases, outcomes(folder), manifest.model_id, field)
    if not items:
        raise JudgeError(f"{folder} has no output to judge: {next(iter(left_out.values()))}")
    return items, left_out, component.name


def _writer_warnings(bench: Bench, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
    """Return warnings on judges of a writer's family if a criterion forbids it; raise JudgeError to refuse."""
    strict = strict_criteria(rubric)
    if not strict:
        return []
    configuration = bench.configuration
    refuse = configuration.settings.policy.judge.panel.same_family == "refuse"
    demand = f"'{strict[0]}' requires a judge of another family (different_model_family)"
    warnings = family_warnings(bench.models, configuration.models, writers, demand, refuse=refuse)
    unknown = writers.count(None)
    if unknown:
        warnings.append(f"the model of {unknown} of {len(writers)} outputs is not known; a judge may be of its family")
    return warnings


def pair_task(request: PairwiseRequest, bench: Bench) -> PairTask:
    """Read the outputs to compare; raise JudgeError."""
    settings = bench.configuration.settings
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=settings.limits.follow_links),
        request.criteria,
        ("pairwise_comparison",),
    )
    items = list(read_items(request.items, PairItem).values())
    matches, prompt = make_matches(rubric, items, request.seed)
    by_key = {(match.item.id, *match.names): match for match in matches}
    criteria = [criterion.id for criterion in rubric.criteria]
    weights = settings.policy.judge.panel.weights

    def results(judging: Judging, judges: Sequence[JudgePreferences], cascade: CascadeResult | None) -> PairwiseResults:
        several = len(judges) > 1 and cascade is None
        return PairwiseResults(
            judging=head_of(judging, rubric.file),
            judges=list(judges),
            panel=panel_preferences(judges, [*criteria, OVERALL], weights) if several else None,
            cascade=cascade,
        )

    def verdict(match: MatchResult, settled: bool) -> float | None:
        return match.shares[OVERALL] if settled else None

    return JudgeTask(
        asking=Asking(
            mode="pairwise",
            rubric=rubric.rubric.digest,
            criteria=criteria,
            prompts=[prompt],
            items={item.id: item.digest for item in items},
            questions=[question for match in matches for question in match.questions],
            notes=["every pair is judged in both orders"],
            warnings=_writer_warnings(bench, rubric, [writer for item in items for writer in item.writers]),
            paper=rubric.paper,
            source=str(request.items),
        ),
        questions={key: match.questions for key, match in by_key.items()},
        reduce=lambda keys, answers, judge: reduce_matches(
            [match for key, match in by_key.items() if key in keys],
            rubric.criteria,
            answers,
            request.replicates,
            judge,
        ),
        outcomes=lambda judge: {(match.item, *match.names): match for match in judge.matches},
        reasons=lambda given: reasons_of_match(given, rubric.criteria),
        verdict=verdict,
        review_items=lambda judging: {
            key: paired_item(match.item, match.names, rubric.criteria, judging) for key, match in by_key.items()
        },
        results=results,
        write=write_verdicts,
    )


def read_regression(request: RegressionRequest, bench: Bench) -> RegressionTask:
    """Read the outputs to compare; raise JudgeError, RunError, ComponentError or FixtureError."""
    settings = bench.configuration.settings
    batch = batch_of(
        _read_compared(request, settings.limits),
        settings.policy,
        request.seed,
        dimensions=request.dimensions,
        preset=request.preset,
        blocking=request.blocking,
        high_stakes=request.stakes == "high",
    )
    refuse_unasked_blocking(batch.pairs, request.blocking)
    earlier = None if request.against is None else _read_earlier(request.against, request.out)
    return regression_task(batch, bench, earlier)


def _read_earlier(against: str, place: Path) -> RegressionResults:
    """Read the results of an earlier judge run: a file, a folder or an id."""
    if Path(against).is_file():
        return read_regressions(Path(against))
    path = find_judging(against, place, "regression") / RESULTS
    if not path.exists():
        raise JudgeError(f"--against {against}: {path} does not exist; that judge run is incomplete")
    return read_regressions(path)


def regression_task(batch: RegressionBatch, bench: Bench, earlier: RegressionResults | None = None) -> RegressionTask:
    """Return a batch as these judges are asked about it; raise JudgeError for a broken calibration.

    With several judges raise JudgeError for one of a writer's family, unless the settings allow it. `earlier` is the
    batch whose rates of regressions are compared.
    """
    settings = bench.configuration.settings
    policy, models = settings.policy.judge, {model.id: model for model in bench.models}
    replicates, rules = bench.request.replicates, batch.rules
    calibration = read_calibration(bench.request.config, settings)
    asking = batch.asking(_regression_warnings(batch, bench))
    if earlier is not None:
        refuse_incomparable(earlier, bench.planned(asking).judges, batch.prompt.identity.digest)

    def reduce(keys: Collection[Key], answers: Mapping[Call, Replicate], judge: JudgeRecord) -> JudgeRegressions:
        pairs = [pair for pair in batch.pairs if (pair.id,) in keys]
        strong = models[judge.model_id].judge == "strong"
        return reduce_regressions(pairs, answers, replicates, rules, judge, declared_strong=strong)

    def reasons(given: Sequence[PairResult]) -> list[ReviewReason]:
        unsure: list[ReviewReason] = (
            ["low_confidence"] if any(one.confidence < USUAL_THRESHOLD for one in given) else []
        )
        return [*reasons_of_regression(given, high_stakes=rules.high_stakes), *unsure]

    def verdict(pair: PairResult, settled: bool) -> str | None:
        return "review_required" if pair.ship_decision == "ship" and not settled else pair.ship_decision

    def results(
        judging: Judging, judges: Sequence[JudgeRegressions], cascade: CascadeResult | None
    ) -> RegressionResults:
        from skill_evaluator.judges.calibration.detection import with_alerts  # imports numpy

        if cascade is not None:
            return batch.results(judging, judges, cascade=cascade)
        several = len(judges) > 1
        panel = panel_regressions(judges, batch.pairs, rules, policy.panel.weights) if several else None
        whole = batch.results(judging, judges, panel)
        if earlier is not None:
            changes = rate_changes(judges, earlier.judges)
            whole = whole.model_copy(update={"against": earlier.judging.id, "changes": changes})
        return with_alerts(whole, policy, calibration)

    by_id = {question.case_id: question for question in batch.questions}
    return JudgeTask(
        asking=asking,
        questions={
            (pair.id,): [by_id[name] for order in (1, 2) if (name := question_id(pair.id, order)) in by_id]
            for pair in batch.pairs
        },
        reduce=reduce,
        outcomes=lambda judge: {(pair.id,): pair for pair in judge.pairs},
        reasons=reasons,
        verdict=verdict,
        review_items=lambda judging: {(pair.id,): regression_item(pair, judging) for pair in batch.pairs},
        results=results,
        write=lambda folder, whole: None,
    )


def _regression_warnings(batch: RegressionBatch, bench: Bench) -> list[str]:
    configuration = bench.configuration
    panel = configuration.settings.policy.judge.panel
    writers = [writer for item in batch.compared.items.values() for writer in item.writers]
    refuse = len(bench.request.judges) > 1 and panel.same_family == "refuse"
    demand = f"policy.judge.panel has same_family: {panel.same_family}, so that a panel requires another family"
    return [
        *family_warnings(bench.models, configuration.models, writers, demand, refuse=refuse),
        *(
            f"{model.id} is not declared strong enough to judge regressions; measure it with `judge calibrate`, then "
            "declare `judge: strong` in models.yaml"
            for model in bench.models
            if model.judge is None
        ),
    ]


def _read_compared(request: RegressionRequest, limits: SafetyLimits) -> ComparedOutputs:
    """Return the outputs to compare; raise JudgeError, RunError, ComponentError or FixtureError."""
    if (request.items is None) == (request.candidate is None) or (request.items and request.baseline):
        raise JudgeError("use either --items FILE, or --candidate RUN with or without --baseline RUN")
    if request.items is not None:
        return ComparedOutputs(items=read_items(request.items, RegressionItem), source=str(request.items))
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
        source=candidate.run_id,
        notes=side_notes(baseline, candidate),
    )
