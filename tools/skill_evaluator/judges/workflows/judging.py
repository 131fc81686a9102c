"""The workflow of `judge score`, `pairwise` and `regression`: the task of a mode, the calls, the decision, the files.

A panel of judges is called about everything. In a cascade a cheap judge is called about everything, a strong judge
about what the cheap one leaves open, and people judge the rest. The second stage is a judge run in the folder of the
first, so that each resumes by itself.
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
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason, for_people
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
STRONG = "strong"  # the folder of the second stage of a cascade
_SETTLED: frozenset[ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons that leave no doubt
_NOT_AGAIN = {"resume", "judge_run", "dry_run", "batch", "format"}  # options that the command to resume leaves out
Drawn = Callable[[Any], str]
"""Draws bias_analysis_report.md from the results."""


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
    compared = read_compared(request, settings.limits)
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
    strict = [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a judge run and its folder. `stopped`: why calls were not made; `again`: the command to resume."""

    results: Any
    folder: Path
    code: int
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()

    @classmethod
    def of(cls, request: JudgeRequest, asked: JudgeResults, results: Any, last: JudgeResults | None = None) -> "Judged":
        """Return the results of a judge run; `last` is its last stage, by default the run itself."""
        last = last or asked
        code = EXIT_OK if results is None else results.exit_code
        if not last.complete and code != EXIT_REGRESSED:
            code = EXIT_INCOMPLETE
        again = [] if last.complete else again_of(request, asked.judging, asked.folder, last.stopped)
        return cls(results=results, folder=asked.folder, code=code, stopped=last.stopped, again=again)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledJudges(Generic[JudgeT, OutcomeT]):
    """The judges' parts of the results, and by item the outcomes that count; `first` and `last` are the stages."""

    first: JudgeResults
    last: JudgeResults
    judges: Sequence[JudgeT] = ()
    outcomes: Mapping[Key, Sequence[OutcomeT]] = field(default_factory=dict)
    cascade: CascadeResult | None = None


def judge(request: JudgedRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgeRunSize:
    """Call the judges of a request, decide, save the results and queue items for review."""
    judges = cascade_judges(request)
    session = JudgeSession.of(request, watch, judges)
    mode = make_task(request, session)
    if request.dry_run:
        notes = [] if judges is None else ["at most: {1} is called only about what {0} leaves open".format(*judges)]
        return session.size(replace(mode.task, notes=[*mode.task.notes, *notes]))
    called = call_panel(mode, session) if judges is None else call_cascade(mode, session)
    first, last, results = called.first, called.last, None
    if called.judges:
        results = mode.results(first.judging, called.judges, called.cascade)
        write_papers(first.folder, mode.task, results, drawn(results))
        if isinstance(results, ScoreResults):
            write_scores(first.folder, results.judges)
        elif isinstance(results, PairwiseResults):
            write_verdicts(first.folder, results)
    if request.review and not last.complete:
        print("nothing is queued for review until the judge run is complete", file=sys.stderr)
    elif last.complete and (request.review or called.cascade is not None):
        _queue(mode, called, request)
    return Judged.of(request, first, results, last)


def _queue(mode: ModeTask[JudgeT, OutcomeT], called: CalledJudges[JudgeT, OutcomeT], request: JudgedRequest) -> None:
    """Queue the items in doubt and, with --review, a sample of the others."""
    judging = called.first.judging
    doubts = [(mode.review_item(key, judging.id), mode.reasons(called.outcomes.get(key, []))) for key in mode.questions]
    people = for_people(doubts, request.review_sample if request.review else 0, judging.seed)
    if people or request.review:
        queue = queue_in(request.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def again_of(request: JudgeRequest, judging: JudgeRun, folder: Path, stopped: Sequence[str]) -> list[str]:
    """Return the command to resume a judge run; if the cost limit stopped it, with a limit twice as high."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    words = words_of(request, *(request.__dataclass_fields__.keys() - _NOT_AGAIN))
    return ["skill-evaluator", "judge", judging.mode, *words, "--judge-run", str(folder)]


def call_panel(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call one judge or several about everything."""
    results = session.ask(mode.task)
    judges = _reduce(mode, results, mode.questions)
    outcomes = by_key(outcome for judge in judges for outcome in mode.outcomes(judge).items())
    return CalledJudges(first=results, last=results, judges=judges, outcomes=outcomes)


def _reduce(mode: ModeTask[JudgeT, OutcomeT], results: JudgeResults, keys: Collection[Key]) -> list[JudgeT]:
    return [mode.reduce(keys, run.answers, results.record_of(run)) for run in results.runs]


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings. Return None if --judge names others."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def call_cascade(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call the cheap judge about everything, then the strong one about what the cheap one leaves open."""
    cheap, strong = session.models
    first = last = replace(session, models=[cheap]).ask(mode.task)
    if not first.complete:
        print(f"{strong.id} is called once {cheap.id} has judged everything", file=sys.stderr)
        return CalledJudges(first=first, last=first)
    judges = _reduce(mode, first, mode.questions)
    outcomes = dict(mode.outcomes(judges[0]))
    further = [key for key, outcome in outcomes.items() if mode.questions[key] and not _is_settled(mode, outcome)]
    if further:
        last = _call_strong(mode, session, first, further)
        judges += _reduce(mode, last, further)
        outcomes.update(*(mode.outcomes(judge) for judge in judges[1:]))
    decisions = [_decide(mode, key, outcomes[key], strong.id if key in further else cheap.id) for key in outcomes]
    decided = [decision.by for decision in decisions]
    stages = (
        CascadeStage(judge=cheap.id, asked=len(decisions), decided=decided.count(cheap.id)),
        CascadeStage(judge=strong.id, asked=len(further), decided=decided.count(strong.id)),
    )
    return CalledJudges(
        first=first,
        last=last,
        judges=judges,
        outcomes={key: [outcome] for key, outcome in outcomes.items()},
        cascade=CascadeResult(stages=stages, people=decided.count(PEOPLE), decisions=decisions),
    )


def _is_settled(mode: ModeTask[JudgeT, OutcomeT], outcome: OutcomeT) -> bool:
    """Return whether a judge is sure enough, says the same in both orders, and gave an output that counts."""
    return set(mode.reasons([outcome])) <= _SETTLED


def _call_strong(
    mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession, first: JudgeResults, keys: Sequence[Key]
) -> JudgeResults:
    """Call the strong judge about these keys, with what the first stage left of the budget."""
    names = {key[0] for key in keys}
    task = replace(
        mode.task,
        items={name: digest for name, digest in mode.task.items.items() if name in names},
        questions=[question for key in keys for question in mode.questions[key]],
        warnings=(),
    )
    request = session.request
    if isinstance(request, BatchJudgeRequest):  # --resume need not repeat --batch
        request = replace(request, batch=first.judging.transport == "batch")
    stage = replace(session, models=session.models[1:], request=request)
    return stage.ask(task, inside=first.folder / STRONG, budget=first.session.budget)


def _decide(mode: ModeTask[JudgeT, OutcomeT], key: Key, outcome: OutcomeT, judge_id: str) -> CascadeDecision:
    settled, verdict = _is_settled(mode, outcome), mode.verdict(outcome)
    reasons: list[str] = list(mode.reasons([outcome]))
    if not settled:  # the decision on a regression stands, but nothing ships
        verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
    by = judge_id if settled else PEOPLE
    return CascadeDecision(item=key[0], names=key[1:], by=by, verdict=verdict, reasons=reasons)
