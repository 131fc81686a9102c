"""The pipeline of `evaluate`: read → plan → call → score → record → save → compare → report."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import LeaderboardError, SkillEvaluatorError
from skill_evaluator.evaluation.outputs import JudgedRun, judge_run
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.runs import (
    Inputs,
    PlannedRuns,
    is_recordable,
    max_remaining_costs,
    plan_runs,
    read_inputs,
    record_path,
)
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.components import Component
from skill_evaluator.library.options import FOLDERS, words_of
from skill_evaluator.records.archive import Archive, append_rows, read_entries
from skill_evaluator.records.record import Record, short_digest, write_record
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.runner.engine import make_calls
from skill_evaluator.runner.journal import ANSWERS, RECORD, Run, check_writable, outcomes, read_manifest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.schedule import build_request
from skill_evaluator.runner.session import Session, Watch, with_keys
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.scoring.recording import Finished, Recorder
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.text import counted
from skill_evaluator.verdicts.component import RecordedComponent, RunSpread
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.shipping import ModelRanking

RequestT = TypeVar("RequestT", bound=EvaluationRequest)
MAX_CALLS = 200  # total of all tries, unless the request has a limit
_STEP_MS = 300  # editors save in several steps
_IGNORED = re.compile(r"/evals/(results|records)/|/(README\.md|CHANGELOG\.md|leaderboard\.json|\.[^/]*|[^/]*~)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """The runs of an evaluation, the verdict on the new version, and the ranking of its models.

    `problems` are the errors of runs that could not be saved or reported. `judged` has the records that may get a
    verdict, `archive` the records that they are compared with. `spreads` has the variation over reruns.
    """

    inputs: Inputs
    planned: PlannedRuns
    finished: Sequence[Finished]
    problems: Sequence[SkillEvaluatorError]
    archive: Archive
    judged: Sequence[Record]
    verdict: ComparisonResult | None
    ranking: ModelRanking | None
    spreads: Sequence[RunSpread]

    def is_recorded(self, record: Record) -> bool:
        """Return whether a record is saved among the component's records."""
        folder = self.inputs.component.records_dir
        return any(run.record is record and run.record_path.parent == folder for run in self.finished)

    def remaining(self, request: RequestT) -> RequestT:
        """Return the request with its limits, if any, reduced by the calls and cost of this evaluation."""
        judges = [run.record.judged for run in self.finished if run.record.judged]
        calls = sum(len(outcomes(run.folder)) for run in self.finished) + sum(judge.calls for judge in judges)
        costs = [*(run.record.cost_usd for run in self.finished), *(judge.cost_usd for judge in judges)]
        if request.max_calls is not None:
            request = replace(request, max_calls=max(0, request.max_calls - calls))
        if request.max_cost is not None:
            request = replace(request, max_cost=max(0.0, request.max_cost - sum(cost or 0.0 for cost in costs)))
        return request

    def changed_outputs(self) -> list[ChangedAnswers]:
        """Return the changed outputs of each compared model, or the reason if its baseline has no run folder here."""
        changed, runs = [], {run.record.run_id: run for run in self.finished}
        for model in self.verdict.models if self.verdict else ():
            run = runs.get(model.candidate.run_id)
            if run is not None and model.baseline is not None:
                changed.append(self._changed_of(run, model.baseline.run_id))
        return changed

    def _changed_of(self, run: Finished, baseline_id: str) -> ChangedAnswers:
        component, record, inputs = self.inputs.component, run.record, self.inputs
        folders = [results / baseline_id for results in (inputs.results_dir, component.results_dir)]
        folder = next((folder for folder in folders if (folder / ANSWERS).exists()), None)
        if folder is None:
            command = f"`evaluate {component.name} --model {record.model_id} --rerun-baseline` runs it again here"
            absent = f"its run folder, which is not committed, is not on this machine; {command}"
            return ChangedAnswers(model_id=record.model_id, baseline=baseline_id, absent=absent)
        baseline, answers = self.archive.record(baseline_id), (outcomes(folder), outcomes(run.folder))
        return ChangedAnswers(
            model_id=record.model_id,
            baseline=baseline_id,
            compared=len(common_part(baseline, record).cases),
            changes=tuple(answer_changes(component, inputs.cases, baseline, record, answers)),
        )

    def resume_command(self) -> list[str]:
        """Return the command that resumes the unfinished runs, as arguments. Return [] if all runs are finished."""
        final = {run.folder for run in self.finished if run.record.is_final or "model_retired" in run.record.reasons}
        unfinished = [run for run in self.planned.runs if run.folder not in final]
        if not unfinished:
            return []
        request, stops = self.inputs.request, " ".join(run.record.stopped or "" for run in self.finished)
        if "max_calls" in stops:
            answered = sum(replicate.answered for run in unfinished for replicate in outcomes(run.folder).values())
            request = replace(request, max_calls=sum(run.manifest.calls for run in unfinished) - answered)
        if "max_cost" in stops:
            remaining = max_remaining_costs(self.planned, self.inputs).values()
            costs = (*remaining, *(run.record.cost_usd for run in self.finished))
            request = replace(request, max_cost=round(sum(cost or 0.0 for cost in costs) + 0.01, 2))
        program = sys.argv[0]
        command = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
        limits = words_of(request, "scenario", "concurrency", "max_cost", "max_calls")
        command += [request.skill, *words_of(request, *FOLDERS, "results"), *limits]
        if not request.leaderboard:
            command.append("--no-leaderboard")
        run_id = unfinished[0].manifest.run_id
        return [*command, "--run", run_id if len(unfinished) == 1 else invocation_of(run_id)]


def evaluate(request: EvaluationRequest, watch: Watch) -> EvaluationResult:
    """Evaluate a component. Raise SkillEvaluatorError for invalid inputs, before any call.

    Pass the result to `write_reports`: a run without a report counts as unfinished.
    """
    inputs = read_inputs(request)
    planned = plan_runs(inputs)
    records = call_and_score(planned, inputs, watch)
    finished, problems = _save(records, planned, inputs)
    return _compare(finished, problems, planned, inputs)


def call_and_score(planned: PlannedRuns, inputs: Inputs, watch: Watch) -> list[tuple[Run, Record]]:
    """Call and score all runs whose model has a key. Return (run, record) of each of them."""
    if not planned.runs:
        return []
    request, component = inputs.request, inputs.component
    recorded = {(entry.model_id, entry.digests.get("settings")) for entry in read_entries(component.leaderboard_path)}
    settings = {(run.model.id, short_digest(run.manifest.digests["settings"])) for run in planned.runs}
    session = Session(
        configuration=inputs,
        watch=watch,
        budget=Budget(request.max_cost, request.max_calls),
        concurrency=request.concurrency,
        limits=request.limits,
        recorded_models={model_id for model_id, _ in settings & recorded},
    )
    usable = with_keys([run.model for run in planned.runs], inputs)
    runs = [run for run in planned.runs if run.model.id in usable]
    check_writable(inputs.results_dir)
    if any(is_recordable(run, request) for run in runs):
        check_writable(component.records_dir)
    cases = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    with open_scores(component, cases, sum(run.manifest.calls for run in runs)) as scores:
        for case in cases:
            scores.undefined(case.id)  # raises FixtureError if a ground truth is too costly to score
        scorers = {}
        for run in runs:
            run_cases = [case for case in cases if case.id in run.manifest.cases]
            scorers[run.manifest.run_id] = Scorer(component, run_cases, run.manifest.replicates, scores)
        components = {run.manifest.run_id: run.component for run in runs}
        cases_by_id = {case.id: case for case in inputs.cases}
        failures = make_calls(
            session,
            runs,
            lambda run, case_id: build_request(components[run.manifest.run_id], cases_by_id[case_id]),
            lambda run, replicate: scorers[run.manifest.run_id].add(replicate),
        )
        recorder = Recorder.of(component, inputs)
        records = []
        for run in runs:
            scorer, failure = scorers.pop(run.manifest.run_id), failures[run.manifest.run_id]
            stopped, judged = str(failure) if failure else None, JudgedRun()
            if inputs.judge is not None and stopped is None:
                judged = judge_run(run, cases, inputs.judge, session, request.config)
                scorer.take(judged.scores)
            stopped, scorecard = stopped or judged.stopped, scorer.scorecard()
            manifest = read_manifest(run.folder)  # the server's version is written during the calls
            records.append(recorder.record(run.model, manifest, scorecard, stopped=stopped, judge=judged.summary))
    is_rerun = [run.manifest.role == "again" for run in runs]
    return list(zip(runs, _recorded(inputs).with_drift(records, is_rerun), strict=True))


def _save(
    records: Sequence[tuple[Run, Record]], planned: PlannedRuns, inputs: Inputs
) -> tuple[list[Finished], list[SkillEvaluatorError]]:
    finished, problems = list(planned.finished), list[SkillEvaluatorError]()
    for earlier in planned.finished:  # a full disk may have prevented the record in the run's folder
        if not (earlier.folder / RECORD).exists():
            write_record(earlier.folder / RECORD, earlier.record)
    final = {record.run_id for _, record in records if record.is_final}
    final |= {run.record.run_id for run in planned.finished if run.record.is_final}
    for run, record in records:
        # a baseline is recorded only with the final run of the new version that was interleaved with it
        is_final = record.is_final and (not record.is_baseline or record.beside in final)
        try:
            recorded = is_final and is_recordable(run, inputs.request)
            finished.append(_save_record(run, record, inputs.component, recorded=recorded))
        except SkillEvaluatorError as problem:  # the other runs are still saved
            problems.append(problem)
    return finished, problems


def _compare(
    finished: Sequence[Finished], problems: Sequence[SkillEvaluatorError], planned: PlannedRuns, inputs: Inputs
) -> EvaluationResult:
    recorded = _recorded(inputs)
    archive = recorded.archive
    roles = {run.record.run_id: read_manifest(run.folder).role for run in finished}
    final = {run.record.run_id: run.record for run in finished if run.record.is_final}
    reruns_failed = any(run.manifest.reruns_failing for run in planned.runs)  # --failing needs both versions
    judged = [record for record in final.values() if record.shard is None and roles[record.run_id] is None]
    judged = [record for record in judged if not reruns_failed or record.beside in final]
    archive.add(run.record for run in finished if roles[run.record.run_id] == "baseline")
    verdict, ranking = None, None
    if judged:
        partial = {run.manifest.run_id for run in planned.runs if not run.manifest.whole}
        verdict = recorded.verdict_on(judged, partial, asked_again=reruns_failed)
    ranked = [record for record in judged if record.complete]
    if not (inputs.request.cases or reruns_failed) and len({record.model_id for record in ranked}) == len(ranked) > 1:
        ranking = recorded.ranking_of(ranked, verdict)
        if runs_of_versions(archive.entries) and not any(record.draft for record in ranked):
            ranking = recorded.with_advice(archive.entries, ranking)[1]
    if verdict is not None and not all(record.draft for record in judged):
        ship = ranking.advice.words if ranking and ranking.advice.version else recorded.ship_words()
        verdict = verdict.model_copy(update={"ship": ship})
    in_component = [run.record for run in finished if run.record_path.parent == inputs.component.records_dir]
    repeated = [record for record in in_component if roles[record.run_id] == "again"]
    return EvaluationResult(
        inputs=inputs,
        planned=planned,
        finished=finished,
        problems=problems,
        archive=archive,
        judged=judged,
        verdict=verdict,
        ranking=ranking,
        spreads=recorded.spreads_of(repeated),
    )


def _recorded(inputs: Inputs) -> RecordedComponent:
    return RecordedComponent(component=inputs.component, archive=Archive(inputs.component), settings=inputs.settings)


def _save_record(run: Run, record: Record, component: Component, *, recorded: bool) -> Finished:
    path = run.folder / RECORD
    if recorded:
        path = record_path(run, component)
        try:
            if record.has_row:
                append_rows(component.leaderboard_path, record.skill, [record.row()], {path: record})
            else:
                write_record(path, record)
        except LeaderboardError:  # the version was recorded with another prompt meanwhile; the paid outputs stay
            write_record(run.folder / RECORD, record)
            raise
    write_record(run.folder / RECORD, record)
    return Finished(record=record, record_path=path, folder=run.folder)


def evaluate_at_each_save(request: EvaluationRequest, watch: Watch) -> Iterator[EvaluationResult]:
    """Yield the evaluation of a component now and after each save, until the limit of calls or cost is reached.

    The default limit is 200 calls. Errors are printed before the next try, or raised if there is no folder to watch.
    """
    from watchfiles import watch as watch_files

    cases = (request.fixtures or Path("fixtures")) / request.skill
    folders = [folder for folder in (request.components / request.skill, cases) if folder.exists()]
    if request.max_calls is None and request.max_cost is None:
        request = replace(request, max_calls=MAX_CALLS)
    # watching begins before the first try, so that a save during the try counts
    saves = watch_files(
        *folders,
        watch_filter=lambda _, path: not _IGNORED.search(path) and not Path(path).is_dir(),
        step=_STEP_MS,
        rust_timeout=_STEP_MS,
        yield_on_timeout=True,
    )
    next(saves)
    while True:
        try:
            result = evaluate(request, watch)
        except SkillEvaluatorError as problem:
            if not folders:
                raise
            print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        else:
            yield result
            request = result.remaining(request)
            stopped = [run.record.stopped or "" for run in result.finished]
            if request.max_calls == 0 or any(reason.startswith(("max_calls", "max_cost")) for reason in stopped):
                return
        limit = counted(request.max_calls or 0, "call") if request.max_cost is None else f"${request.max_cost:.2f}"
        print(f"waiting for a save; {limit} left, Ctrl-C stops", file=sys.stderr, flush=True)
        next(filter(None, saves))
