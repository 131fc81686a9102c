"""The workflow of `judge score`, `pairwise` and `regression`: make the task, call the judges, decide, write the files.

A panel calls all judges on all items. A cascade calls a cheap judge on all items, then a strong judge on the items that
the cheap judge leaves in doubt; people judge the remaining items. The second stage is a judge run in the folder of the
first, so that the stages resume independently.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.calibration.agreement import with_alerts
from skill_evaluator.judges.calibration.results import JudgeCalibration, read_calibration
from skill_evaluator.judges.modes import pairwise, panel, regression, scoring
from skill_evaluator.judges.modes.regression import RegressionResults
from skill_evaluator.judges.modes.results import PEOPLE, CascadeDecision, CascadeResult, CascadeStage, PanelResult
from skill_evaluator.judges.modes.run_outputs import NOT_APPLICABLE, ComparedOutputs, read_compared, read_outputs
from skill_evaluator.judges.modes.ship_rules import ShipDecision, ShipRules, blocking_sentence
from skill_evaluator.judges.prompting import judging
from skill_evaluator.judges.prompting.criteria import NamedRubric, choose_criteria, family_warnings, mitigations_of
from skill_evaluator.judges.prompting.questions import read_items
from skill_evaluator.judges.review import queue as review
from skill_evaluator.judges.review.queue import queue_in
from skill_evaluator.judges.workflows import requests
from skill_evaluator.judges.workflows.requests import JudgedRequest, PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.config import JudgePolicy, load_settings
from skill_evaluator.library.options import words_of
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import canonical_json, counted, digest

Key = tuple[str, ...]
"""The id of an item; `judge pairwise` adds the names of the two outputs."""
JudgedResults = scoring.ScoreResults | pairwise.PairwiseResults | RegressionResults
STRONG = "strong"  # folder of a cascade's second stage
_SETTLED: frozenset[review.ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons other than doubt
_OMITTED_OPTIONS = {"resume", "judge_run", "dry_run", "batch", "format"}  # absent in the command that resumes a run
BiasReport = Callable[[Any], str]
"""A function that formats bias_analysis_report.md from the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a judge run (None if not computed), its folder and its exit code.

    `stopped`: the reasons for calls without an output. `again`: the command to resume; empty if complete.
    """

    results: Any
    folder: Path
    code: int
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()

    @classmethod
    def of(
        cls, request: requests.JudgeRequest, first: judging.JudgeResults, last: judging.JudgeResults, results: Any
    ) -> "Judged":
        """Build the result of a command; `first` and `last` are the stages of a cascade, or the same stage."""
        code = EXIT_OK if results is None else results.exit_code
        if not last.complete and code != EXIT_REGRESSED:
            code = EXIT_INCOMPLETE
        again = [] if last.complete else resume_command(request, first.judging, first.folder, last.stopped)
        return cls(results=results, folder=first.folder, code=code, stopped=last.stopped, again=again)


def resume_command(
    request: requests.JudgeRequest, judge_run: judging.JudgeRun, folder: Path, stopped: Sequence[str]
) -> list[str]:
    """Return the words of the command that resumes a judge run; a `--max-cost` that stopped the run is doubled."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    options = words_of(request, *(request.__dataclass_fields__.keys() - _OMITTED_OPTIONS))
    return ["skill-evaluator", "judge", judge_run.mode, *options, "--judge-run", str(folder)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """The task of a judge run, its units (items, matches or pairs) by key, and the functions of its mode.

    `reduce` returns the results of one judge on some units, and `outcomes` the results of each unit by key. `reasons`
    returns why a unit's results need human review, and `verdict` their ship decision, or score or share from 0 to 1.
    `panel` combines the results of several judges; `build` makes the file of results.
    """

    task: judging.JudgeTask
    units: Mapping[Key, Any]
    reduce: Callable[[Sequence[Any], judging.JudgeCalls], Any]
    outcomes: Callable[[Any], Mapping[Key, Any]]
    reasons: Callable[[Sequence[Any]], Sequence[review.ReviewReason]]
    verdict: Callable[[Any], str | float | None]
    review_item: Callable[[Any, str], review.ReviewItem]
    panel: Callable[[Sequence[Any]], PanelResult]
    build: Callable[..., JudgedResults]

    def run(
        self,
        request: JudgedRequest,
        session: judging.JudgeSession,
        cascade_ids: Sequence[str] | None,
        draw_report: BiasReport,
    ) -> Judged:
        """Call the judges, decide, save the results and queue items for review. `cascade_ids`: judges of a cascade."""
        first = last = (session if cascade_ids is None else replace(session, models=session.models[:1])).ask(self.task)
        judges = [self.reduce(list(self.units.values()), calls) for calls in first.runs]
        cascade = results = None
        if cascade_ids is not None and not first.complete:
            print("{1} is called once {0} has judged all items".format(*cascade_ids), file=sys.stderr)
        else:
            if cascade_ids is not None:
                outcomes = self.outcomes(judges[0]).items()
                open_units = {
                    key: self.units[key]
                    for key, outcome in outcomes
                    if self.units[key].questions and not self._is_settled(outcome)
                }
                if open_units:
                    last = self._call_strong(session, first, open_units)
                    judges += [self.reduce(list(open_units.values()), calls) for calls in last.runs]
                cascade = self._cascade_result(judges, cascade_ids, open_units)
            results = self._write_results(first, judges, cascade, draw_report)
        if request.review and not last.complete:
            print("items are queued for review once the judge run is complete", file=sys.stderr)
        elif last.complete and (request.review or cascade is not None):
            self._queue(judges, first.judging, request, is_cascade=cascade is not None)
        return Judged.of(request, first, last, results)

    def _is_settled(self, outcome: Any) -> bool:
        return set(self.reasons([outcome])) <= _SETTLED

    def _call_strong(
        self, session: judging.JudgeSession, first: judging.JudgeResults, units: Mapping[Key, Any]
    ) -> judging.JudgeResults:
        """Call the strong judge of a cascade on these units, with the budget that the cheap judge has left."""
        names = {key[0] for key in units}
        task = replace(
            self.task,
            items={name: digest for name, digest in self.task.items.items() if name in names},
            questions=[question for unit in units.values() for question in unit.questions],
            warnings=(),
        )
        request = session.request
        if isinstance(request, requests.BatchJudgeRequest):  # a resumed run keeps its transport without --batch
            request = replace(request, batch=first.judging.transport == "batch")
        stage = replace(session, models=session.models[1:], request=request)
        return stage.ask(task, stage_folder=first.folder / STRONG, budget=first.session.budget)

    def _cascade_result(self, judges: Sequence[Any], ids: Sequence[str], open_keys: Collection[Key]) -> CascadeResult:
        """Take the last verdict on each unit. If in doubt, `ship` becomes `review_required`, a number becomes None."""
        decisions = []
        for key, outcome in {key: one for judge in judges for key, one in self.outcomes(judge).items()}.items():
            verdict, by = self.verdict(outcome), ids[key in open_keys]
            if not self._is_settled(outcome):
                verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
                by = PEOPLE
            reasons: list[str] = list(self.reasons([outcome]))
            decisions.append(CascadeDecision(item=key[0], names=key[1:], by=by, verdict=verdict, reasons=reasons))
        deciders = [decision.by for decision in decisions]
        stages = (
            CascadeStage(judge=ids[0], asked=len(decisions), decided=deciders.count(ids[0])),
            CascadeStage(judge=ids[1], asked=len(open_keys), decided=deciders.count(ids[1])),
        )
        return CascadeResult(stages=stages, people=deciders.count(PEOPLE), decisions=decisions)

    def _write_results(
        self, stage: judging.JudgeResults, judges: Sequence[Any], cascade: CascadeResult | None, draw_report: BiasReport
    ) -> JudgedResults | None:
        """Build and write the results. Return None if no judge was called."""
        if not judges:
            return None
        joint = self.panel(judges) if len(judges) > 1 and cascade is None else None
        head = stage.judging.head(self.task.rubric_file)
        results = self.build(judging=head, judges=list(judges), panel=joint, cascade=cascade)
        judging.write_papers(stage.folder, self.task, results, draw_report(results))
        if isinstance(results, scoring.ScoreResults):
            scores = (line for one in judges for line in scoring.scores_of(one))
            judging.write_lines(stage.folder / scoring.SCORES, scores)
        elif isinstance(results, pairwise.PairwiseResults):
            verdicts = (line for one in judges for line in pairwise.verdicts_of(one))
            judging.write_lines(stage.folder / pairwise.VERDICTS, verdicts)
        return results

    def _queue(
        self, judges: Sequence[Any], judge_run: judging.JudgeRun, request: JudgedRequest, *, is_cascade: bool
    ) -> None:
        """Queue the doubtful items and, with --review, a random sample. In a cascade the last judge counts."""
        outcomes = by_key(outcome for judge in judges for outcome in self.outcomes(judge).items())
        counting = {key: outcomes.get(key, [])[-1 if is_cascade else 0 :] for key in self.units}
        doubts = [(self.review_item(self.units[key], judge_run.id), self.reasons(one)) for key, one in counting.items()]
        queued = review.select_for_review(doubts, request.review_sample if request.review else 0, judge_run.seed)
        if queued or request.review:
            queue = queue_in(request.config)
            print(f"{counted(len(queue.add(queued)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def judge(request: JudgedRequest, watch: Watch | None, draw_report: BiasReport) -> Judged | judging.JudgeRunSize:
    """Judge the outputs of a request. In a dry run return the size. Raise JudgeError, RunError or ConfigError."""
    cascade_ids = cascade_judges(request)
    session = judging.JudgeSession.of(request, watch, cascade_ids)
    if isinstance(request, RegressionRequest):
        mode = _regression_mode(request, session)
    else:
        mode = _score_mode(request, session) if isinstance(request, ScoreRequest) else _pair_mode(request, session)
    if request.dry_run:
        notes = [] if cascade_ids is None else ["at most: {1} is called only if {0} is in doubt".format(*cascade_ids)]
        return session.size(replace(mode.task, notes=[*mode.task.notes, *notes]))
    return mode.run(request, session, cascade_ids, draw_report)


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the ids of the cheap and the strong judge. Return None if there is no cascade. Raise JudgeError."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def _score_mode(request: ScoreRequest, session: judging.JudgeSession) -> Mode:
    settings = session.configuration.settings
    rubric = _load_criteria(request, session, ("direct_scoring", "reference_based"))
    criteria, weights = rubric.criteria, settings.policy.judge.panel.weights
    items, left_out, skill = read_outputs(request, rubric, settings.limits)
    units, prompts = scoring.score_questions(rubric, list(items.values()), request.seed)
    return Mode(
        task=judging.JudgeTask(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=scoring.questions_of(units),
            warnings=_writer_warnings(session, rubric, [item.model for item in items.values()]),
            paper=rubric.paper,
            rubric_file=rubric.file,
            skill=skill,
            source=str(request.items or request.run),
        ),
        units={(unit.item.id,): unit for unit in units},
        reduce=lambda units, calls: scoring.reduce_scores(units, criteria, calls),
        outcomes=lambda judge: {(item.id,): item for item in judge.items},
        reasons=lambda outcomes: review.reasons_of_scores(outcomes, criteria),
        verdict=lambda item: item.summary,
        review_item=lambda unit, judge_run: review.scored_item(unit.item, criteria, judge_run),
        panel=lambda judges: panel.panel_scores(judges, criteria, weights),
        build=partial(scoring.ScoreResults, left_out=left_out),
    )


def _pair_mode(request: PairwiseRequest, session: judging.JudgeSession) -> Mode:
    rubric = _load_criteria(request, session, ("pairwise_comparison",))
    criteria, weights = rubric.criteria, session.configuration.settings.policy.judge.panel.weights
    items = list(read_items(request.items, pairwise.PairItem).values())
    matches, prompt = pairwise.make_matches(rubric, items, request.seed)
    names = [criterion.id for criterion in criteria]
    return Mode(
        task=judging.JudgeTask(
            mode="pairwise",
            rubric=rubric.rubric.digest,
            criteria=names,
            prompts=[prompt],
            items={item.id: item.digest for item in items},
            questions=[question for match in matches for question in match.questions],
            notes=["every pair is judged in both orders"],
            warnings=_writer_warnings(session, rubric, [writer for item in items for writer in item.writers]),
            paper=rubric.paper,
            rubric_file=rubric.file,
            source=str(request.items),
        ),
        units={(match.item.id, *match.names): match for match in matches},
        reduce=lambda units, calls: pairwise.reduce_matches(units, criteria, calls),
        outcomes=lambda judge: {(match.item, *match.names): match for match in judge.matches},
        reasons=lambda outcomes: review.reasons_of_match(outcomes, criteria),
        verdict=lambda match: match.shares[pairwise.OVERALL],
        review_item=lambda match, judge_run: review.paired_item(match.item, match.names, criteria, judge_run),
        panel=lambda judges: panel.panel_preferences(judges, [*names, pairwise.OVERALL], weights),
        build=pairwise.PairwiseResults,
    )


def _regression_mode(request: RegressionRequest, session: judging.JudgeSession) -> Mode:
    settings = session.configuration.settings
    policy = settings.policy.judge
    compared = read_compared(request, settings.limits)
    component = settings.policy.components.get(compared.skill or "")
    high_stakes = "high" in (request.stakes, component.stakes if component else "normal")
    rules = ShipRules(one_low=policy.one_low, high_stakes=high_stakes)
    pairs = regression.pairs_of(compared.items, request.dimensions, request.preset, policy.blocking)
    calibration = read_calibration(request.config, settings)
    task, pairs = _regression_task(compared, pairs, rules, session)
    return Mode(
        task=task,
        units={(pair.item.id,): pair for pair in pairs},
        reduce=lambda units, calls: regression.reduce_regressions(
            units, calls, rules, declared_strong=calls.run.model.judge == "strong"
        ),
        outcomes=lambda judge: {(pair.id,): pair for pair in judge.pairs},
        reasons=lambda outcomes: review.reasons_of_regression(outcomes, high_stakes=high_stakes),
        verdict=lambda pair: pair.ship_decision,
        review_item=review.regression_item,
        panel=lambda judges: panel.panel_regressions(judges, pairs, rules, policy.panel.weights),
        build=partial(_build_regression, compared, _read_earlier(request, session, task), policy, calibration),
    )


def _regression_task(
    compared: ComparedOutputs, pairs: Sequence[regression.JudgedPair], rules: ShipRules, session: judging.JudgeSession
) -> tuple[judging.JudgeTask, list[regression.JudgedPair]]:
    """Return the task and the pairs with their questions; dimensions and rules take the place of a rubric."""
    judged_pairs, prompt = regression.with_questions(pairs, rules, session.request.seed)
    dimensions = {
        one.name: {"question": one.question, "blocking": one.blocking} for pair in pairs for one in pair.dimensions
    }
    paper = {"dimensions": dimensions, "one_low": rules.one_low, "high_stakes": rules.high_stakes}
    blocking = dict.fromkeys(blocking_sentence(pair.dimensions) for pair in pairs)
    orders = "every pair is judged in both orders, identical outputs need no call"
    task = judging.JudgeTask(
        mode="regression",
        rubric=digest(canonical_json(paper)),
        criteria=list(dimensions),
        prompts=[prompt],
        items={pair.item.id: pair.item.digest for pair in pairs},
        questions=[question for pair in judged_pairs for question in pair.questions],
        notes=[orders, *blocking, *compared.notes],
        warnings=_regression_warnings(compared, session),
        paper=paper,
        skill=compared.skill,
        source=compared.source,
    )
    return task, judged_pairs


def _build_regression(
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
        changes=[] if earlier is None else regression.rate_changes(shared["judges"], earlier.judges),
    )
    results = results.model_copy(update={"ship_decision": _ship_decision(results)})
    return results if results.cascade is not None else with_alerts(results, policy, calibration)


def _ship_decision(results: RegressionResults) -> ShipDecision | None:
    """Return the most careful decision on an item by the panel, the cascade or the only judge; None if none decided.

    Skipped cases turn `ship` into `review_required`, except cases that are not applicable to the model.
    """
    decisions = [judge.ship_decision for judge in results.judges]
    joint_decisions = results.panel.by_item if results.panel else results.cascade.decisions if results.cascade else ()
    if joint_decisions:
        names: dict[str, ShipDecision] = {name: name for name in regression.DECISIONS}
        decisions = [names.get(str(decision.verdict)) for decision in joint_decisions]
    undecided = [None] if set(results.left_out.values()) - {NOT_APPLICABLE} else []
    return regression.most_careful([*decisions, *undecided])


def _load_criteria(
    request: ScoreRequest | PairwiseRequest, session: judging.JudgeSession, methods: Sequence[MethodName]
) -> NamedRubric:
    rubric = load_rubric(request.rubric, follow_links=session.configuration.settings.limits.follow_links)
    return choose_criteria(str(request.rubric), rubric, request.criteria, methods)


def _writer_warnings(session: judging.JudgeSession, rubric: NamedRubric, writers: Sequence[str | None]) -> list[str]:
    """Return warnings of judges in a writer's family and of unknown writers, if a criterion forbids such judges.

    If the policy refuses such judges, raise JudgeError for the first one.
    """
    demanding = [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]
    if not demanding:
        return []
    demand = f"criterion '{demanding[0]}' requires a judge of another family (different_model_family)"
    refuse = session.configuration.settings.policy.judge.panel.same_family == "refuse"
    warnings = family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse)
    if None in writers:
        unknown = f"{writers.count(None)} of {len(writers)} outputs"
        warnings.append(f"the model of {unknown} is not known; a judge may be of its family")
    return warnings


def _regression_warnings(compared: ComparedOutputs, session: judging.JudgeSession) -> list[str]:
    same_family = session.configuration.settings.policy.judge.panel.same_family
    writers = [writer for item in compared.items.values() for writer in item.writers]
    refuse = len(session.request.judges) > 1 and same_family == "refuse"
    demand = f"policy.judge.panel has same_family: {same_family}, so that a panel requires another family"
    undeclared = [
        f"{model.id} is not declared strong enough to judge regressions; measure it with `judge calibrate`, then "
        "declare `judge: strong` in models.yaml"
        for model in session.models
        if model.judge is None
    ]
    return family_warnings(session.models, session.configuration.models, writers, demand, refuse=refuse) + undeclared


def _read_earlier(
    request: RegressionRequest, session: judging.JudgeSession, task: judging.JudgeTask
) -> RegressionResults | None:
    """Return the results of the judge run that --against names. Return None if the option is not set."""
    if request.against is None:
        return None
    if not request.judges:
        raise JudgeError("--against cannot be combined with a cascade; use --judge")
    path = Path(request.against)
    if not path.is_file():
        path = judging.find_judge_run(request.against, request.out, "regression") / judging.RESULTS
        if not path.exists():
            raise JudgeError(f"--against {request.against}: {path} does not exist; complete that judge run first")
    earlier = regression.read_regressions(path)
    regression.refuse_incomparable(earlier, session.planned(task).judges, task.prompts[0].identity.digest)
    return earlier
