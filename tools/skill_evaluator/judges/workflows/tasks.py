"""The task of each judge command: its questions, and the functions that read the outputs of the judges."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.modes import pairwise, regression, regression_batch, regression_results, scoring
from skill_evaluator.judges.modes.pairwise import OVERALL, JudgePreferences, MatchResult, PairwiseResults
from skill_evaluator.judges.modes.panel import panel_preferences, panel_regressions, panel_scores
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_batch import NOT_APPLICABLE, ComparedOutputs, outputs_of_run
from skill_evaluator.judges.modes.regression_results import DECISIONS, JudgeRegressions, PairResult, RegressionResults
from skill_evaluator.judges.modes.results import CascadeResult, PanelResult
from skill_evaluator.judges.modes.scoring import ItemScores, JudgeScores, ScoreResults
from skill_evaluator.judges.modes.ship_rules import ShipDecision, ShipRules, blocking_sentence
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, family_warnings, strict_criteria
from skill_evaluator.judges.prompting.items import OutputItem, read_items, value_at
from skill_evaluator.judges.prompting.judging import RESULTS, JudgeRun, JudgeTask, find_judge_run
from skill_evaluator.judges.prompting.questions import JudgeQuestion
from skill_evaluator.judges.prompting.results import JudgeRecord
from skill_evaluator.judges.prompting.session import JudgeSession
from skill_evaluator.judges.review import items as review
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason
from skill_evaluator.judges.workflows.requests import JudgedRequest, PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.cases import load_cases, parse_case_output
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import JudgePolicy, SafetyLimits
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.records.pinned import pinned_of_model
from skill_evaluator.runner.journal import find_run
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, digest

Key = tuple[str, ...]
"""The id of an item, and in a match the names of the two outputs."""
JudgeT = TypeVar("JudgeT")
OutcomeT = TypeVar("OutcomeT")
JudgedResults = ScoreResults | PairwiseResults | RegressionResults


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeTask(Generic[JudgeT, OutcomeT]):
    """The questions of a judge run by item or match, and the functions of its mode.

    `reduce` returns one judge's part of the results about some keys, `outcomes` its outcome on each of them. `reasons`
    returns the reasons to send a key to human review, from the outcomes of all judges. `verdict` returns an outcome in
    short: a ship decision, or a score or share from 0 to 1. `panel` joins several judges, and `build` makes the
    results of their head, judges, panel and cascade.
    """

    task: JudgeTask
    questions: Mapping[Key, Sequence[JudgeQuestion]]
    reduce: Callable[[Collection[Key], Mapping[Call, Replicate], JudgeRecord], JudgeT]
    outcomes: Callable[[JudgeT], Mapping[Key, OutcomeT]]
    reasons: Callable[[Sequence[OutcomeT]], Sequence[ReviewReason]]
    verdict: Callable[[OutcomeT], str | float | None]
    review_item: Callable[[Key, str], ReviewItem]
    panel: Callable[[Sequence[JudgeT]], PanelResult]
    build: Callable[..., JudgedResults]
    rubric_file: str = "dimensions"

    def results(self, judging: JudgeRun, judges: Sequence[JudgeT], cascade: CascadeResult | None) -> JudgedResults:
        """Return the results of a judge run; several judges are a panel, unless they are the stages of a cascade."""
        panel = self.panel(judges) if len(judges) > 1 and cascade is None else None
        head = judging.head(self.rubric_file)
        return self.build(judging=head, judges=list(judges), panel=panel, cascade=cascade)


def make_task(request: JudgedRequest, session: JudgeSession) -> ModeTask[Any, Any]:
    """Read the items and make the questions. Raise JudgeError, RunError, ComponentError, FixtureError, ConfigError."""
    if isinstance(request, ScoreRequest):
        return score_task(request, session)
    return pair_task(request, session) if isinstance(request, PairwiseRequest) else regression_task(request, session)


def score_task(request: ScoreRequest, session: JudgeSession) -> ModeTask[JudgeScores, ItemScores]:
    """Return the task of `judge score`."""
    rubric = _load_criteria(request, session, ("direct_scoring", "reference_based"))
    criteria, weights = rubric.criteria, session.configuration.settings.policy.judge.panel.weights
    items, left_out, skill = _read_outputs(request, rubric, session.configuration.settings.limits)
    questions, prompts = scoring.score_questions(rubric, list(items.values()), request.seed)
    by_item: dict[Key, list[scoring.ScoreQuestion]] = by_key(((question.item.id,), question) for question in questions)
    return ModeTask(
        task=JudgeTask(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=[question.question for question in questions],
            warnings=_writer_warnings(session, rubric, [item.model for item in items.values()]),
            paper=rubric.paper,
            skill=skill,
            source=str(request.items or request.run),
        ),
        questions={key: [question.question for question in group] for key, group in by_item.items()},
        reduce=lambda keys, answers, judge: scoring.reduce_scores(
            [question for key in keys for question in by_item[key]], answers, request.replicates, judge
        ),
        outcomes=lambda judge: {(item.id,): item for item in judge.items},
        reasons=lambda outcomes: review.reasons_of_scores(outcomes, criteria),
        verdict=lambda item: item.summary,
        review_item=lambda key, judging: review.scored_item(items[key[0]], criteria, judging),
        panel=lambda judges: panel_scores(judges, criteria, weights),
        build=partial(ScoreResults, left_out=left_out),
        rubric_file=rubric.file,
    )


def pair_task(request: PairwiseRequest, session: JudgeSession) -> ModeTask[JudgePreferences, MatchResult]:
    """Return the task of `judge pairwise`."""
    rubric = _load_criteria(request, session, ("pairwise_comparison",))
    criteria, weights = rubric.criteria, session.configuration.settings.policy.judge.panel.weights
    items = list(read_items(request.items, pairwise.PairItem).values())
    pairs, prompt = pairwise.make_matches(rubric, items, request.seed)
    matches: dict[Key, pairwise.PairMatch] = {(match.item.id, *match.names): match for match in pairs}
    names = [criterion.id for criterion in criteria]
    return ModeTask(
        task=JudgeTask(
            mode="pairwise",
            rubric=rubric.rubric.digest,
            criteria=names,
            prompts=[prompt],
            items={item.id: item.digest for item in items},
            questions=[question for match in pairs for question in match.questions],
            notes=["every pair is judged in both orders"],
            warnings=_writer_warnings(session, rubric, [writer for item in items for writer in item.writers]),
            paper=rubric.paper,
            source=str(request.items),
        ),
        questions={key: match.questions for key, match in matches.items()},
        reduce=lambda keys, answers, judge: pairwise.reduce_matches(
            [matches[key] for key in keys], criteria, answers, request.replicates, judge
        ),
        outcomes=lambda judge: {(match.item, *match.names): match for match in judge.matches},
        reasons=lambda outcomes: review.reasons_of_match(outcomes, criteria),
        verdict=lambda match: match.shares[OVERALL],
        review_item=lambda key, judging: review.paired_item(matches[key].item, matches[key].names, criteria, judging),
        panel=lambda judges: panel_preferences(judges, [*names, OVERALL], weights),
        build=PairwiseResults,
        rubric_file=rubric.file,
    )


def regression_task(request: RegressionRequest, session: JudgeSession) -> ModeTask[JudgeRegressions, PairResult]:
    """Return the task of `judge regression`. The stakes are high by the request or by the policy of the component."""
    settings, models = session.configuration.settings, {model.id: model for model in session.models}
    policy = settings.policy.judge
    compared = _read_compared(request, settings.limits)
    component = settings.policy.components.get(compared.skill or "")
    high_stakes = "high" in (request.stakes, component.stakes if component else "normal")
    rules = ShipRules(one_low=policy.one_low, high_stakes=high_stakes)
    every = regression.pairs_of(compared.items, request.dimensions, request.preset, policy.blocking)
    calibration = read_calibration(request.config, settings)
    task = _regression_questions(compared, every, rules, session)
    earlier = _read_earlier(request, session, task)
    pairs: dict[Key, JudgedPair] = {(pair.id,): pair for pair in every}
    questions: dict[Key, list[JudgeQuestion]] = by_key(
        ((question.case_id.rpartition("/")[0],), question) for question in task.questions
    )
    return ModeTask(
        task=task,
        questions={key: questions.get(key, []) for key in pairs},
        reduce=lambda keys, answers, judge: regression_results.reduce_regressions(
            [pairs[key] for key in keys],
            answers,
            request.replicates,
            rules,
            judge,
            declared_strong=models[judge.model_id].judge == "strong",
        ),
        outcomes=lambda judge: {(pair.id,): pair for pair in judge.pairs},
        reasons=lambda outcomes: review.reasons_of_regression(outcomes, high_stakes=high_stakes),
        verdict=lambda pair: pair.ship_decision,
        review_item=lambda key, judging: review.regression_item(pairs[key], judging),
        panel=lambda judges: panel_regressions(judges, every, rules, policy.panel.weights),
        build=partial(_regression_results, compared, earlier, policy, calibration),
    )


def _regression_results(
    compared: ComparedOutputs,
    earlier: RegressionResults | None,
    policy: JudgePolicy,
    calibration: JudgeCalibration | None,
    **shared: Any,
) -> RegressionResults:
    """Build the results with the decision, the changes since an earlier batch and, without a cascade, the alerts."""
    from skill_evaluator.judges.calibration.detection import with_alerts  # imports numpy

    whole = RegressionResults(
        **shared,
        baseline=compared.baseline,
        candidate=compared.candidate,
        left_out=dict(compared.left_out),
        ship_decision=None,
        against=None if earlier is None else earlier.judging.id,
        changes=[] if earlier is None else regression_results.rate_changes(shared["judges"], earlier.judges),
    )
    whole = whole.model_copy(update={"ship_decision": _ship_decision(whole)})
    return whole if whole.cascade is not None else with_alerts(whole, policy, calibration)


def _regression_questions(
    compared: ComparedOutputs, pairs: Sequence[JudgedPair], rules: ShipRules, session: JudgeSession
) -> JudgeTask:
    """Return the questions about the pairs; dimensions and rules stand in place of a rubric."""
    questions, prompt = regression.regression_questions(pairs, rules, session.request.seed)
    dimensions = {
        one.name: {"question": one.question, "blocking": one.blocking} for pair in pairs for one in pair.dimensions
    }
    paper = {"dimensions": dimensions, "one_low": rules.one_low, "high_stakes": rules.high_stakes}
    blocking = dict.fromkeys(blocking_sentence(pair.dimensions) for pair in pairs)
    orders = "every pair is judged in both orders, identical outputs need no call"
    return JudgeTask(
        mode="regression",
        rubric=digest(canonical_json(paper)),
        criteria=list(dimensions),
        prompts=[prompt],
        items={pair.id: pair.item.digest for pair in pairs},
        questions=questions,
        notes=[orders, *blocking, *compared.notes],
        warnings=_regression_warnings(compared, session),
        paper=paper,
        skill=compared.skill,
        source=compared.source,
    )


def _ship_decision(results: RegressionResults) -> ShipDecision | None:
    """Return the decision of the panel, of the cascade, or of the one judge; a case that is left out needs a person."""
    decisions = [judge.ship_decision for judge in results.judges]
    joint = results.panel.by_item if results.panel else results.cascade.decisions if results.cascade else ()
    if joint:
        decisions = [next((name for name in DECISIONS if name == one.verdict), None) for one in joint]
    unseen = [None] if set(results.left_out.values()) - {NOT_APPLICABLE} else []
    return regression_results.most_careful([*decisions, *unseen])


def _load_criteria(
    request: ScoreRequest | PairwiseRequest, session: JudgeSession, methods: Sequence[MethodName]
) -> NamedRubric:
    rubric = load_rubric(request.rubric, follow_links=session.configuration.settings.limits.follow_links)
    return choose_criteria(str(request.rubric), rubric, request.criteria, methods)


def _writer_warnings(session: JudgeSession, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
    """Return warnings on judges of a writer's family if a criterion forbids it; raise JudgeError to refuse."""
    strict = strict_criteria(rubric)
    if not strict:
        return []
    demand = f"'{strict[0]}' requires a judge of another family (different_model_family)"
    refuse = session.configuration.settings.policy.judge.panel.same_family == "refuse"
    warnings = family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse)
    if None in writers:
        unknown = f"{writers.count(None)} of {len(writers)} outputs"
        warnings.append(f"the model of {unknown} is not known; a judge may be of its family")
    return warnings


def _regression_warnings(compared: ComparedOutputs, session: JudgeSession) -> list[str]:
    panel = session.configuration.settings.policy.judge.panel
    writers = [writer for item in compared.items.values() for writer in item.writers]
    refuse = len(session.request.judges) > 1 and panel.same_family == "refuse"
    demand = f"policy.judge.panel has same_family: {panel.same_family}, so that a panel requires another family"
    return [
        *family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse),
        *(
            f"{model.id} is not declared strong enough to judge regressions; measure it with `judge calibrate`, then "
            "declare `judge: strong` in models.yaml"
            for model in session.models
            if model.judge is None
        ),
    ]


def _read_outputs(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[dict[str, OutputItem], dict[str, str], str | None]:
    """Read the outputs to score: by id the items and the reasons why cases have none, and the component of a run.

    An item of a run is the first output to a case, or its value of a field such as `budget[].amount`, with the document
    as source and the ground truth as reference. Raise JudgeError, RunError, ComponentError or FixtureError.
    """
    if (request.items is None) == (request.run is None):
        raise JudgeError("use either --items FILE, or --run RUN for the outputs of a component's run")
    if request.items is not None:
        return read_items(request.items, OutputItem), {}, None
    folder = find_run(request.run or "", request.components)
    run, left_out = outputs_of_run(folder)
    component = load_component(request.components, run.skill, limits, request.fixtures)
    cases = {case.id: case for case in load_cases(component, request.fixtures)}
    field = request.field or rubric.field_of(component.name)
    items: dict[str, OutputItem] = {}
    for case_id, output in run.outputs.items():
        case = cases.get(case_id)
        if case is None or not case.was(output.case):
            raise JudgeError(f"case '{case_id}' changed since {folder} was run; check out its commit")
        parsed = parse_case_output(component, case, output.text)
        value = value_at(parsed.value, field) if parsed.problem is None else None
        if value in (None, "", []):
            left_out[case_id] = f"no {field} in the answer" if field and parsed.problem is None else "unparseable"
        else:
            truth = value_at(case.truth, field) if case.labelled else None
            texts = {"input": case.document, "source": case.document, "reference": "" if truth is None else truth}
            items[case_id] = OutputItem.model_validate({"id": case_id, **texts, "output": value, "model": run.model_id})
    if not items:
        raise JudgeError(f"{folder} has no output to judge: {next(iter(left_out.values()))}")
    return items, left_out, component.name


def _read_compared(request: RegressionRequest, limits: SafetyLimits) -> ComparedOutputs:
    """Read the outputs to compare; raise JudgeError, RunError, ComponentError or FixtureError."""
    if (request.items is None) == (request.candidate is None) or (request.items and request.baseline):
        raise JudgeError("use either --items FILE, or --candidate RUN with or without --baseline RUN")
    if request.items is not None:
        return ComparedOutputs(items=read_items(request.items, regression.RegressionItem), source=str(request.items))
    candidate, unanswered = outputs_of_run(find_run(request.candidate or "", request.components))
    component = load_component(request.components, candidate.skill, limits, request.fixtures)
    missing: Mapping[str, str] = {}
    if request.baseline is None:
        baseline = pinned_of_model(component.folder, component.name, candidate.model_id)
    else:
        baseline, missing = outputs_of_run(find_run(request.baseline, request.components))
    cases = load_cases(component, request.fixtures)
    items, left_out = regression_batch.pairs_of_outputs(component, cases, baseline, candidate, unanswered)
    for case_id, reason in missing.items():
        left_out[case_id] = reason if reason == NOT_APPLICABLE else f"baseline: {reason}"
    sides = (("baseline", baseline), ("candidate", candidate))
    return ComparedOutputs(
        items=items,
        left_out=left_out,
        skill=component.name,
        baseline=baseline.run_id,
        candidate=candidate.run_id,
        source=candidate.run_id,
        notes=[f"{side}: {run.skill_version} by {run.model_id}, {run.run_id}" for side, run in sides],
    )


def _read_earlier(request: RegressionRequest, session: JudgeSession, task: JudgeTask) -> RegressionResults | None:
    """Read the results of the earlier judge run of --against: a file, a folder or an id."""
    if request.against is None:
        return None
    if not request.judges:
        raise JudgeError("--against compares the rates of each judge, which a cascade does not have; use --judge")
    path = Path(request.against)
    if not path.is_file():
        path = find_judge_run(request.against, request.out, "regression") / RESULTS
        if not path.exists():
            raise JudgeError(f"--against {request.against}: {path} does not exist; that judge run is incomplete")
    earlier = regression_results.read_regressions(path)
    regression_results.refuse_incomparable(earlier, session.planned(task).judges, task.prompts[0].identity.digest)
    return earlier
