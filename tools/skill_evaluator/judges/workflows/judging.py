"""The workflow of `judge score`, `pairwise` and `regression`: the task of a mode, the calls, the decision, the files.

A panel calls all judges on all items. A cascade calls a cheap judge on all items, then a strong judge on the items that
the cheap judge leaves in doubt; people judge the remaining items. The second stage is a judge run in the folder of the
first, so that the stages resume independently.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from skill_evaluator.display.options import words_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.calibration.detection import with_alerts
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.modes import pairwise, regression, regression_results, scoring
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    JudgePreferences,
    MatchResult,
    PairwiseResults,
    write_verdicts,
)
from skill_evaluator.judges.modes.panel import panel_preferences, panel_regressions, panel_scores
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import DECISIONS, JudgeRegressions, PairResult, RegressionResults
from skill_evaluator.judges.modes.results import PEOPLE, CascadeDecision, CascadeResult, CascadeStage, PanelResult
from skill_evaluator.judges.modes.run_outputs import NOT_APPLICABLE, ComparedOutputs, read_compared, read_outputs
from skill_evaluator.judges.modes.scoring import ItemScores, JudgeScores, ScoreResults, write_scores
from skill_evaluator.judges.modes.ship_rules import ShipDecision, ShipRules, blocking_sentence
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, family_warnings, mitigations_of
from skill_evaluator.judges.prompting.items import read_items
from skill_evaluator.judges.prompting.judging import RESULTS, JudgeRun, JudgeTask, find_judge_run, write_papers
from skill_evaluator.judges.prompting.questions import JudgeQuestion
from skill_evaluator.judges.prompting.results import JudgeRecord
from skill_evaluator.judges.prompting.session import JudgeResults, JudgeRunSize, JudgeSession
from skill_evaluator.judges.review import items as review
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason, select_for_review
from skill_evaluator.judges.review.queue import queue_in
from skill_evaluator.judges.workflows.requests import (
    BatchJudgeRequest,
    JudgedRequest,
    JudgeRequest,
    PairwiseRequest,
    RegressionRequest,
    ScoreRequest,
)
from skill_evaluator.library.config import JudgePolicy, load_settings
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest

Key = tuple[str, ...]
"""The id of an item, and in a match the names of the two outputs."""
JudgeT = TypeVar("JudgeT")
OutcomeT = TypeVar("OutcomeT")
JudgedResults = ScoreResults | PairwiseResults | RegressionResults
STRONG = "strong"  # folder of a cascade's second stage
_SETTLED: frozenset[ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons other than doubt
_OMITTED_OPTIONS = {"resume", "judge_run", "dry_run", "batch", "format"}  # of the command that resumes a run
BiasReport = Callable[[Any], str]
"""A function that formats bias_analysis_report.md from the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeTask(Generic[JudgeT, OutcomeT]):
    """The questions of a judge run by item or match, and the functions of its mode.

    `reduce` returns one judge's results on some keys, `outcomes` its outcome on each key. `reasons` returns the reasons
    to send a key to human review, from the outcomes of all judges. `verdict` summarizes an outcome as a ship decision,
    or as a score or share from 0 to 1. `panel` combines several judges; `build` makes the results from head, judges,
    panel and cascade.
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
        """Build the results of a judge run. Several judges form a panel, unless they are the stages of a cascade."""
        panel = self.panel(judges) if len(judges) > 1 and cascade is None else None
        head = judging.head(self.rubric_file)
        return self.build(judging=head, judges=list(judges), panel=panel, cascade=cascade)


def make_task(request: JudgedRequest, session: JudgeSession) -> ModeTask[Any, Any]:
    """Read the items and make the questions of the request's mode.

    Raise JudgeError, RunError, ComponentError, FixtureError or ConfigError for invalid input.
    """
    if isinstance(request, ScoreRequest):
        return score_task(request, session)
    return pair_task(request, session) if isinstance(request, PairwiseRequest) else regression_task(request, session)


def score_task(request: ScoreRequest, session: JudgeSession) -> ModeTask[JudgeScores, ItemScores]:
    """Build the task of `judge score`."""
    rubric = _load_criteria(request, session, ("direct_scoring", "reference_based"))
    criteria, weights = rubric.criteria, session.configuration.settings.policy.judge.panel.weights
    items, left_out, skill = read_outputs(request, rubric, session.configuration.settings.limits)
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
    """Build the task of `judge pairwise`."""
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
    """Build the task of `judge regression`. The request or the component's policy can set high stakes."""
    settings, models = session.configuration.settings, {model.id: model for model in session.models}
    policy = settings.policy.judge
    compared = read_compared(request, settings.limits)
    component = settings.policy.components.get(compared.skill or "")
    high_stakes = "high" in (request.stakes, component.stakes if component else "normal")
    rules = ShipRules(one_low=policy.one_low, high_stakes=high_stakes)
    all_pairs = regression.pairs_of(compared.items, request.dimensions, request.preset, policy.blocking)
    calibration = read_calibration(request.config, settings)
    task = _regression_questions(compared, all_pairs, rules, session)
    earlier = _read_earlier(request, session, task)
    pairs: dict[Key, JudgedPair] = {(pair.id,): pair for pair in all_pairs}
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
        panel=lambda judges: panel_regressions(judges, all_pairs, rules, policy.panel.weights),
        build=partial(_regression_results, compared, earlier, policy, calibration),
    )


def _regression_results(
    compared: ComparedOutputs,
    earlier: RegressionResults | None,
    policy: JudgePolicy,
    calibration: JudgeCalibration | None,
    **shared: Any,
) -> RegressionResults:

    results = RegressionResults(
        **shared,
        baseline=compared.baseline,
        candidate=compared.candidate,
        left_out=dict(compared.left_out),
        ship_decision=None,
        against=None if earlier is None else earlier.judging.id,
        changes=[] if earlier is None else regression_results.rate_changes(shared["judges"], earlier.judges),
    )
    results = results.model_copy(update={"ship_decision": _ship_decision(results)})
    return results if results.cascade is not None else with_alerts(results, policy, calibration)


def _regression_questions(
    compared: ComparedOutputs, pairs: Sequence[JudgedPair], rules: ShipRules, session: JudgeSession
) -> JudgeTask:
    """Build the questions on the pairs; the dimensions and rules take the place of a rubric."""
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
    """Return the decision of the panel, of the cascade or of the only judge. Skipped cases require a person."""
    decisions = [judge.ship_decision for judge in results.judges]
    joint_decisions = results.panel.by_item if results.panel else results.cascade.decisions if results.cascade else ()
    if joint_decisions:
        decisions = [next((name for name in DECISIONS if name == one.verdict), None) for one in joint_decisions]
    undecided = [None] if set(results.left_out.values()) - {NOT_APPLICABLE} else []
    return regression_results.most_careful([*decisions, *undecided])


def _load_criteria(
    request: ScoreRequest | PairwiseRequest, session: JudgeSession, methods: Sequence[MethodName]
) -> NamedRubric:
    rubric = load_rubric(request.rubric, follow_links=session.configuration.settings.limits.follow_links)
    return choose_criteria(str(request.rubric), rubric, request.criteria, methods)


def _writer_warnings(session: JudgeSession, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
    """Warn of judges of a writer's family if a criterion forbids them; raise JudgeError if the policy refuses them."""
    demanding = [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]
    if not demanding:
        return []
    demand = f"'{demanding[0]}' requires a judge of another family (different_model_family)"
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


def _read_earlier(request: RegressionRequest, session: JudgeSession, task: JudgeTask) -> RegressionResults | None:
    """Read the results of the earlier judge run of --against: a file, a folder or an id."""
    if request.against is None:
        return None
    if not request.judges:
        raise JudgeError("--against cannot be combined with a cascade; use --judge")
    path = Path(request.against)
    if not path.is_file():
        path = find_judge_run(request.against, request.out, "regression") / RESULTS
        if not path.exists():
            raise JudgeError(f"--against {request.against}: {path} does not exist; that judge run is incomplete")
    earlier = regression_results.read_regressions(path)
    regression_results.refuse_incomparable(earlier, session.planned(task).judges, task.prompts[0].identity.digest)
    return earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a judge run and its folder. `stopped`: reasons for missing calls; `again`: the resume command."""

    results: Any
    folder: Path
    code: int
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()

    @classmethod
    def of(cls, request: JudgeRequest, first: JudgeResults, results: Any, last: JudgeResults | None = None) -> "Judged":
        """Build the result of a command; `last` is the last stage of a cascade, None if there is one stage."""
        last = last or first
        code = EXIT_OK if results is None else results.exit_code
        if not last.complete and code != EXIT_REGRESSED:
            code = EXIT_INCOMPLETE
        again = [] if last.complete else resume_command(request, first.judging, first.folder, last.stopped)
        return cls(results=results, folder=first.folder, code=code, stopped=last.stopped, again=again)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledJudges(Generic[JudgeT, OutcomeT]):
    """The results by judge, and the outcomes that count by item; `first` and `last` are the stages."""

    first: JudgeResults
    last: JudgeResults
    judges: Sequence[JudgeT] = ()
    outcomes: Mapping[Key, Sequence[OutcomeT]] = field(default_factory=dict)
    cascade: CascadeResult | None = None


def judge(request: JudgedRequest, watch: Watch | None, draw_report: BiasReport) -> Judged | JudgeRunSize:
    """Call the judges of a request, decide, save the results and queue items for review."""
    judges = cascade_judges(request)
    session = JudgeSession.of(request, watch, judges)
    mode = make_task(request, session)
    if request.dry_run:
        notes = [] if judges is None else ["at most: {1} is called only if {0} is in doubt".format(*judges)]
        return session.size(replace(mode.task, notes=[*mode.task.notes, *notes]))
    called = call_panel(mode, session) if judges is None else call_cascade(mode, session)
    first, last, results = called.first, called.last, None
    if called.judges:
        results = mode.results(first.judging, called.judges, called.cascade)
        write_papers(first.folder, mode.task, results, draw_report(results))
        if isinstance(results, ScoreResults):
            write_scores(first.folder, results.judges)
        elif isinstance(results, PairwiseResults):
            write_verdicts(first.folder, results)
    if request.review and not last.complete:
        print("items are queued for review once the judge run is complete", file=sys.stderr)
    elif last.complete and (request.review or called.cascade is not None):
        _queue(mode, called, request)
    return Judged.of(request, first, results, last)


def _queue(mode: ModeTask[JudgeT, OutcomeT], called: CalledJudges[JudgeT, OutcomeT], request: JudgedRequest) -> None:
    """Queue the doubtful items for review and, with --review, a random sample."""
    judging = called.first.judging
    doubts = [(mode.review_item(key, judging.id), mode.reasons(called.outcomes.get(key, []))) for key in mode.questions]
    queued = select_for_review(doubts, request.review_sample if request.review else 0, judging.seed)
    if queued or request.review:
        queue = queue_in(request.config)
        print(f"{counted(len(queue.add(queued)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def resume_command(request: JudgeRequest, judging: JudgeRun, folder: Path, stopped: Sequence[str]) -> list[str]:
    """Return the command that resumes a judge run, with twice the cost limit if that limit stopped the run."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    options = words_of(request, *(request.__dataclass_fields__.keys() - _OMITTED_OPTIONS))
    return ["skill-evaluator", "judge", judging.mode, *options, "--judge-run", str(folder)]


def call_panel(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call each judge on all items."""
    results = session.ask(mode.task)
    judges = _reduce(mode, results, mode.questions)
    outcomes = by_key(outcome for judge in judges for outcome in mode.outcomes(judge).items())
    return CalledJudges(first=results, last=results, judges=judges, outcomes=outcomes)


def _reduce(mode: ModeTask[JudgeT, OutcomeT], results: JudgeResults, keys: Collection[Key]) -> list[JudgeT]:
    return [mode.reduce(keys, run.answers, results.record_of(run)) for run in results.runs]


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade from the option or the settings. Return None if there is no cascade.

    Raise JudgeError if the option is invalid.
    """
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def call_cascade(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call the cheap judge on all items, then the strong judge on the items that are still in doubt."""
    cheap, strong = session.models
    first = last = replace(session, models=[cheap]).ask(mode.task)
    if not first.complete:
        print(f"{strong.id} is called once {cheap.id} has judged all items", file=sys.stderr)
        return CalledJudges(first=first, last=first)
    judges = _reduce(mode, first, mode.questions)
    outcomes = dict(mode.outcomes(judges[0]))
    open_keys = [key for key, outcome in outcomes.items() if mode.questions[key] and not _is_settled(mode, outcome)]
    if open_keys:
        last = _call_strong(mode, session, first, open_keys)
        judges += _reduce(mode, last, open_keys)
        outcomes.update(*(mode.outcomes(judge) for judge in judges[1:]))
    decisions = [_decide(mode, key, outcomes[key], strong.id if key in open_keys else cheap.id) for key in outcomes]
    deciders = [decision.by for decision in decisions]
    stages = (
        CascadeStage(judge=cheap.id, asked=len(decisions), decided=deciders.count(cheap.id)),
        CascadeStage(judge=strong.id, asked=len(open_keys), decided=deciders.count(strong.id)),
    )
    return CalledJudges(
        first=first,
        last=last,
        judges=judges,
        outcomes={key: [outcome] for key, outcome in outcomes.items()},
        cascade=CascadeResult(stages=stages, people=deciders.count(PEOPLE), decisions=decisions),
    )


def _is_settled(mode: ModeTask[JudgeT, OutcomeT], outcome: OutcomeT) -> bool:
    """Return whether an outcome has no reason for doubt, such as low confidence or disagreeing orders."""
    return set(mode.reasons([outcome])) <= _SETTLED


def _call_strong(
    mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession, first: JudgeResults, keys: Sequence[Key]
) -> JudgeResults:
    """Call the strong judge on these keys with the remaining budget of the first stage."""
    names = {key[0] for key in keys}
    task = replace(
        mode.task,
        items={name: digest for name, digest in mode.task.items.items() if name in names},
        questions=[question for key in keys for question in mode.questions[key]],
        warnings=(),
    )
    request = session.request
    if isinstance(request, BatchJudgeRequest):  # a resumed run keeps its transport without --batch
        request = replace(request, batch=first.judging.transport == "batch")
    stage = replace(session, models=session.models[1:], request=request)
    return stage.ask(task, stage_folder=first.folder / STRONG, budget=first.session.budget)


def _decide(mode: ModeTask[JudgeT, OutcomeT], key: Key, outcome: OutcomeT, judge_id: str) -> CascadeDecision:
    settled, verdict = _is_settled(mode, outcome), mode.verdict(outcome)
    reasons: list[str] = list(mode.reasons([outcome]))
    if not settled:  # a doubtful block stays a block, but nothing ships
        verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
    by = judge_id if settled else PEOPLE
    return CascadeDecision(item=key[0], names=key[1:], by=by, verdict=verdict, reasons=reasons)
