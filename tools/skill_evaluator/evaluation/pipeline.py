"""The pipeline of `evaluate`: read → plan → call → score → record → save → compare → report."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from watchfiles import watch as watch_files

from skill_evaluator.display import visible, with_progress
from skill_evaluator.errors import LeaderboardError, SkillEvaluatorError
from skill_evaluator.evaluation.outputs import JudgedRun, judge_run
from skill_evaluator.evaluation.runs import (
    EvaluationRequest,
    Finished,
    Inputs,
    max_remaining_costs,
    plan_runs,
    read_inputs,
)
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.components import Component
from skill_evaluator.library.options import FOLDERS, words_of
from skill_evaluator.records.archive import Archive, append_rows, read_entries
from skill_evaluator.records.record import Record, short_digest, write_record
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.runner import journal
from skill_evaluator.runner.engine import make_calls
from skill_evaluator.runner.journal import RECORD, ComponentRun, check_writable
from skill_evaluator.runner.schedule import Budget
from skill_evaluator.runner.session import Session, Watch, print_resume_command, with_keys
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import open_scorer, score_outcomes
from skill_evaluator.text import counted
from skill_evaluator.verdicts.component import RunSpread
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.shipping import ModelRanking

RequestT = TypeVar("RequestT", bound=EvaluationRequest)
MAX_CALLS = 200  # total of all tries, unless the request has a limit
_STEP_MS = 300  # editors save in several steps
_IGNORED = re.compile(r"/evals/(results|records)/|/(README\.md|CHANGELOG\.md|leaderboard\.json|\.[^/]*|[^/]*~)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """The runs of an evaluation, the verdict on the evaluated version, and the ranking of the models.

    `runs` are the runs that had calls to make. `finished` are the runs with a saved record. `problems` are errors of
    saving and reporting. `verdict` compares the records in `judged` with earlier records in `archive`. `spreads` has
    the variation of scores between reruns of a version.
    """

    inputs: Inputs
    runs: Sequence[ComponentRun]
    finished: Sequence[Finished]
    problems: Sequence[SkillEvaluatorError]
    archive: Archive
    judged: Sequence[Record]
    verdict: ComparisonResult | None
    ranking: ModelRanking | None
    spreads: Sequence[RunSpread]

    @property
    def is_partial(self) -> bool:
        """Whether only some of the cases were run."""
        return any(not run.manifest.whole for run in self.runs)

    def remaining(self, request: RequestT) -> RequestT:
        """Return the request with its limits, if any, reduced by the calls and cost of this evaluation."""
        records = [each.record for each in self.finished]
        judges = [record.judged for record in records if record.judged]
        calls = sum(len(journal.outcomes(each.folder)) for each in self.finished) + sum(judge.calls for judge in judges)
        costs = [*(record.cost.cost_usd for record in records), *(judge.cost_usd for judge in judges)]
        if request.max_calls is not None:
            request = replace(request, max_calls=max(0, request.max_calls - calls))
        if request.max_cost is not None:
            request = replace(request, max_cost=max(0.0, request.max_cost - sum(cost or 0.0 for cost in costs)))
        return request

    def changed_outputs(self) -> list[ChangedAnswers]:
        """Return the changed outputs of each compared model, or the reason why they are unknown."""
        finished = {each.record.run_id: each for each in self.finished}
        models = self.verdict.models if self.verdict else ()
        pairs = [(finished.get(model.candidate.run_id), model.baseline) for model in models]
        return [self._changed_of(run, baseline.run_id) for run, baseline in pairs if run and baseline]

    def _changed_of(self, candidate: Finished, baseline_id: str) -> ChangedAnswers:
        component, record, inputs = self.inputs.component, candidate.record, self.inputs
        folders = [results / baseline_id for results in (inputs.results_dir, component.results_dir)]
        folder = next((folder for folder in folders if (folder / journal.ANSWERS).exists()), None)
        if folder is None:
            command = (
                f"`skill-evaluator evaluate {component.name} --model {record.model_id} --rerun-baseline` runs it again"
            )
            absent = f"its run folder, which is not committed, is not on this machine; {command}"
            return ChangedAnswers(model_id=record.model_id, baseline=baseline_id, absent=absent)
        baseline = self.archive.record(baseline_id)
        answers = journal.outcomes(folder), journal.outcomes(candidate.folder)
        return ChangedAnswers(
            model_id=record.model_id,
            baseline=baseline_id,
            compared=len(common_part(baseline, record).cases),
            changes=tuple(answer_changes(component, inputs.cases, baseline, record, answers)),
        )

    def resume_command(self) -> list[str]:
        """Return the command that resumes the unfinished runs, as arguments. Return [] if all runs are finished."""
        return _resume_command(self.runs, self.finished, self.inputs)


def evaluate(request: EvaluationRequest, watch: Watch) -> EvaluationResult:
    """Evaluate a component. Raise SkillEvaluatorError for invalid inputs, before any call.

    Pass the result to `write_reports`: a run without a report counts as unfinished.
    """
    inputs = read_inputs(request)
    runs, recorded = plan_runs(inputs)
    try:
        scored = call_and_score(runs, inputs, watch)
    except KeyboardInterrupt:  # during the scoring, since an interruption of the calls ends them without an error
        begun = [run for run in runs if (run.folder / journal.MANIFEST).exists()]
        print_resume_command(_resume_command(begun, recorded, inputs))
        raise
    finished, problems = _save(scored, recorded, inputs)
    return _compare(finished, problems, runs, inputs)


def _resume_command(runs: Sequence[ComponentRun], finished: Sequence[Finished], inputs: Inputs) -> list[str]:
    final = [each for each in finished if each.record.is_final or "model_retired" in each.record.reasons]
    folders = {each.folder for each in final}
    unfinished = [run for run in runs if run.folder not in folders]
    if not unfinished:
        return []
    request, stops = inputs.request, " ".join(each.record.stopped or "" for each in finished)
    if "max_calls" in stops:
        answered = sum(len(journal.answered_calls(run.folder)) for run in unfinished)
        request = replace(request, max_calls=sum(run.manifest.calls for run in unfinished) - answered)
    if "max_cost" in stops:
        remaining = max_remaining_costs(runs, inputs).values()
        costs = (*remaining, *(each.record.cost.cost_usd for each in finished))
        request = replace(request, max_cost=round(sum(cost or 0.0 for cost in costs) + 0.01, 2))
    program = sys.argv[0]
    command = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
    limits = words_of(request, "scenario", "concurrency", "max_cost", "max_calls")
    command += [request.skill, *words_of(request, *FOLDERS, "results"), *limits]
    if not request.leaderboard:
        command.append("--no-leaderboard")
    run_id = unfinished[0].manifest.run_id
    return [*command, "--run", run_id if len(unfinished) == 1 else invocation_of(run_id)]


def call_and_score(planned: Sequence[ComponentRun], inputs: Inputs, watch: Watch) -> list[Finished]:
    """Call and score all planned runs whose model has a key. Return these runs; their records are not saved."""
    if not planned:
        return []
    request, component, session = inputs.request, inputs.component, _session_of(planned, inputs, watch)
    usable = with_keys([run.model for run in planned], inputs)
    runs = [run for run in planned if run.model.id in usable]
    check_writable(inputs.results_dir)
    if request.leaderboard and any(run.manifest.whole for run in runs):
        check_writable(component.records_dir)
    cases = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    with open_scorer(component, cases, sum(run.manifest.calls for run in runs)) as scorer:
        for case in cases:
            scorer.undefined(case.id)  # raises FixtureError if a ground truth is too costly to score
        failures = make_calls(session, [(run, {case.id: (run.component, case) for case in cases}) for run in runs])
        recorder = Recorder.of(component, inputs)
        finished = []
        for run in runs:
            failure, judged = failures[run.manifest.run_id], JudgedRun()
            if inputs.judge is not None and failure is None:
                judged = judge_run(run, cases, inputs.judge, session, request.config)
            stopped = str(failure) if failure else judged.stopped
            replicates = journal.read_journal(run.folder, [])  # `make_calls` has printed the problems
            made = journal.made_calls(run.manifest, replicates)
            outcomes = with_progress(made, run.manifest.calls, f"scored outputs of {run.model.id}")
            scorecard = score_outcomes(scorer, run.manifest, outcomes, judged.scores)
            run = replace(run, manifest=journal.read_manifest(run.folder))  # `make_calls` has written the server
            record = recorder.record(run.model, run.manifest, scorecard, stopped=stopped, judge=judged.summary)
            finished.append(Finished(run=run, record=record, record_path=run.folder / RECORD))
    is_rerun = [each.run.manifest.role == "again" for each in finished]
    records = inputs.recorded().with_drift([each.record for each in finished], is_rerun)
    return [replace(each, record=record) for each, record in zip(finished, records, strict=True)]


def _session_of(planned: Sequence[ComponentRun], inputs: Inputs, watch: Watch) -> Session:
    request, entries = inputs.request, read_entries(inputs.component.leaderboard_path)
    recorded = {(entry.model_id, entry.digests.get("settings")) for entry in entries}
    settings = {(run.model.id, short_digest(run.manifest.digests["settings"])) for run in planned}
    return Session(
        configuration=inputs,
        watch=watch,
        budget=Budget(request.max_cost, request.max_calls),
        concurrency=request.concurrency,
        limits=request.planned.limits if request.planned else {},
        recorded_models={model_id for model_id, _ in settings & recorded},
    )


def _save(
    scored: Sequence[Finished], recorded: Sequence[Finished], inputs: Inputs
) -> tuple[list[Finished], list[SkillEvaluatorError]]:
    """Save the records of `scored` runs. Return (these and the `recorded` runs, errors of saving)."""
    finished, problems = list(recorded), list[SkillEvaluatorError]()
    for earlier in recorded:  # a full disk may have prevented the record in the run's folder
        if not (earlier.folder / RECORD).exists():
            write_record(earlier.folder / RECORD, earlier.record)
    final = {each.record.run_id for each in (*scored, *recorded) if each.record.is_final}
    for each in scored:
        record, path = each.record, each.record_path
        # a baseline is recorded only with the final run of the new version that was interleaved with it
        is_final = record.is_final and (not record.is_baseline or record.beside in final)
        try:
            if is_final and inputs.request.leaderboard and each.run.manifest.whole:
                path = _add_to_records(each, inputs.component)
            write_record(each.folder / RECORD, record)
            finished.append(replace(each, record_path=path))
        except SkillEvaluatorError as problem:  # the other runs are still saved
            problems.append(problem)
    return finished, problems


def _compare(
    finished: Sequence[Finished], problems: Sequence[SkillEvaluatorError], runs: Sequence[ComponentRun], inputs: Inputs
) -> EvaluationResult:
    final = {each.record.run_id: each for each in finished if each.record.is_final}
    reruns_failed = any(run.manifest.reruns_failing for run in runs)  # --failing needs both versions
    judged = [
        each.record
        for each in final.values()
        if each.record.shard is None and each.run.manifest.role is None
        if not reruns_failed or each.record.beside in final
    ]
    baselines = [each.record for each in finished if each.run.manifest.role == "baseline"]
    partial = {run.manifest.run_id for run in runs if not run.manifest.whole}
    recorded = inputs.recorded().with_records([*baselines, *(one for one in judged if one.run_id not in partial)])
    verdict, ranking = None, None
    if judged:
        verdict = recorded.verdict_on(judged, partial, asked_again=reruns_failed)
    ranked = [record for record in judged if record.complete]
    if not (inputs.request.cases or reruns_failed) and len({record.model_id for record in ranked}) == len(ranked) > 1:
        recorded = recorded.with_records(ranked)
        ranking = recorded.ranking_of(ranked, verdict)
        if runs_of_versions(recorded.archive.entries) and not any(record.draft for record in ranked):
            ranking = recorded.with_advice(recorded.archive.entries, ranking)[1]
    if verdict is not None and not all(record.draft for record in judged):
        ship = ranking.advice.sentence if ranking and ranking.advice.version else recorded.ship_words()
        verdict = verdict.model_copy(update={"ship": ship})
    in_component = [each for each in finished if each.record_path.parent == inputs.component.records_dir]
    repeated = [each.record for each in in_component if each.run.manifest.role == "again"]
    return EvaluationResult(
        inputs=inputs,
        runs=runs,
        finished=finished,
        problems=problems,
        archive=recorded.archive,
        judged=judged,
        verdict=verdict,
        ranking=ranking,
        spreads=recorded.spreads_of(repeated),
    )


def _add_to_records(scored: Finished, component: Component) -> Path:
    """Add a record to the component's records, and its row, if any, to the leaderboard. Return the record's path."""
    path, record = component.records_dir / f"{scored.record.run_id}.json", scored.record
    try:
        if record.has_row:
            append_rows(component.leaderboard_path, record.skill, [record.row()], {path: record})
        else:
            write_record(path, record)
    except LeaderboardError:  # the version was recorded with another prompt meanwhile; the paid outputs stay
        write_record(scored.folder / RECORD, record)
        raise
    return path


def evaluate_at_each_save(request: EvaluationRequest, watch: Watch) -> Iterator[EvaluationResult]:
    """Yield the evaluation of a component now and after each save of its files, up to a limit of calls or cost.

    The default limit is 200 calls. Errors are printed, or raised if the component has no folder to watch.
    """
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
