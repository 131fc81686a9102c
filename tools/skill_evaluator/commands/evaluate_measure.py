"""The story of `evaluate`: N replicates × cases × models → scores, a record per model, the leaderboard."""

import shlex
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.commands.batching import mode_of, pending_in, print_pending
from skill_evaluator.commands.evaluate_adaptive import lookout_for, with_looks
from skill_evaluator.commands.evaluate_inputs import Inputs, as_asked, read_inputs
from skill_evaluator.commands.evaluate_options import EvaluateOptions
from skill_evaluator.commands.evaluate_runs import PlannedRuns, costs_left, is_measurement, plan_runs, record_path
from skill_evaluator.commands.options import words_of
from skill_evaluator.display.addresses import Site
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, LeaderboardError, SkillEvaluatorError
from skill_evaluator.evaluation.drifting import drift_of, drifts_in
from skill_evaluator.evaluation.spreads import spreads_of
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.components import Component
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.redaction import redactor_of
from skill_evaluator.records.archive import Archive, entry_of, read_entries
from skill_evaluator.records.leaderboard import add_records
from skill_evaluator.records.record import Record, short_digest, write_record
from skill_evaluator.records.selection import passed_over
from skill_evaluator.reports.ending import print_first
from skill_evaluator.reports.evaluation import print_finished, write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.assignment import Assignment, assignment, with_keys
from skill_evaluator.runner.batch import BatchMode
from skill_evaluator.runner.execute import execute
from skill_evaluator.runner.journal import ANSWERS, RECORD, outcomes, read_manifest
from skill_evaluator.runner.limits import Budget
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run, check_writable
from skill_evaluator.runner.spending import month_of
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.scoring.parallel import open_scores
from skill_evaluator.scoring.recording import Finished, Origin, Recorder, origin_of
from skill_evaluator.scoring.scorer import AnswerScores, Scorer
from skill_evaluator.stats import load_quantiles
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import exit_code_of
from skill_evaluator.verdicts.history.component import ranking_of, verdict_on


def measure(options: EvaluateOptions, *, show_changes: bool = False, collecting: Configuration | None = None) -> int:
    """Do as `evaluate` without --dry-run, and return its exit code; `show_changes` shows which answers changed, too.

    With the configuration for `collecting`, take what batches have brought by now, and ask nothing anew.
    """
    options = as_asked(options)
    inputs = read_inputs(options, collecting)
    planned = plan_runs(inputs, options)
    finished, component, site = planned.finished, inputs.component, Site(inputs.settings.site.address)
    if collecting is None:
        _hold_month(planned, inputs, options)
    batch_mode = mode_of(submit_only=options.submit_only, collecting=collecting is not None)
    pending: dict[str, str] = {}
    problems = ask_and_keep(planned, inputs, options, batch_mode, pending)
    recorded = [run.record for run in finished if run.record_path.parent == component.records_dir]
    judged = [run.record for run in finished if planned.is_judged(run.record) and run.record.complete]
    verdict, archive = None, Archive(component)
    archive.add(run.record for run in finished if planned.roles[run.record.run_id] == "baseline")
    if judged:  # against a lower version, if there is one
        partial = {run.manifest.run_id for run in planned.runs if not run.manifest.whole}
        verdict = verdict_on(judged, component, archive, inputs.settings, options.config, partial)
    print_pending(pending)
    if pending and not finished and not problems:
        return EXIT_OK
    again = [record for record in recorded if planned.roles[record.run_id] in ("again", "neutral")]
    spreads = spreads_of(again, archive)
    changes = list(_changed_answers(verdict, finished, archive, inputs)) if show_changes and verdict else []
    ranking = None
    if not options.cases and len({record.model_id for record in judged}) == len(judged) > 1:
        ranking = ranking_of(judged, component, archive, inputs.settings, options.config, verdict)
    if verdict is not None:
        for judged_run in finished:
            write_report(judged_run, verdict, site)
    folders = words_of(options, "components", "fixtures", "config")
    print_finished(finished, component, options.format, verdict, spreads, changes, ranking, site, folders)
    if verdict is None:  # else it says so itself
        if judged and options.scenario is None:
            kept = judged[0] in recorded and not judged[0].draft
            print_first(judged[0], options.format, folders, kept=kept)
        _warn_of_skipped(judged, archive)
        for words in filter(None, (record.served_otherwise for record in judged)):
            print(f"warning: {words}", file=sys.stderr)
        if options.scenario == SCHEMA_ALONE and judged:
            print(f"evaluate {component.name} without --bare, too: what the prompt adds is told then", file=sys.stderr)
        if show_changes and judged:
            print(f"there is no complete record to judge against: evaluate {component.name} first", file=sys.stderr)
    print_how_to_resume([run for run in planned.runs if run.manifest.run_id not in pending], finished, options)
    if problems:
        raise problems[0]
    if not all(run.record.complete for run in finished):
        return EXIT_INCOMPLETE
    return EXIT_OK if verdict is None else exit_code_of([verdict], inputs.settings.policy)


def ask_and_keep(
    planned: PlannedRuns, inputs: Inputs, options: EvaluateOptions, batch_mode: BatchMode, pending: dict[str, str]
) -> list[SkillEvaluatorError]:
    """Ask the runs and keep the finished; name in `pending` those not waited for. Return why some could not be kept."""
    scored = _ask(planned, inputs, options, batch_mode, pending)  # every answer is scored as it comes
    scored = _with_drift(scored, inputs, options)
    records = [*(run.record for run in planned.finished), *(run.record for run in scored)]
    complete = {record.run_id for record in records if record.complete}
    component, site = inputs.component, Site(inputs.settings.site.address)
    problems: list[SkillEvaluatorError] = []
    for run in scored:
        kept = is_measurement(run.run, options) and _counts(run.record, complete)
        try:
            planned.finished.append(_keep(run, component, site, kept=kept))
        except SkillEvaluatorError as problem:  # a run that cannot be kept does not take the others with it
            problems.append(problem)
    return problems


def _hold_month(planned: PlannedRuns, inputs: Inputs, options: EvaluateOptions) -> None:
    """Raise ConfigError where the cap on a month leaves too little; warn of runs that its sum lacks."""
    month = month_of(inputs.settings, options.config, options.components, results=inputs.results_dir)
    if month is None:
        return
    month.refuse(costs_left(planned, inputs), options.max_cost)
    if month.unknown:
        print(f"warning: {month.words}: {listed(month.unknown)}", file=sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoredRun:
    """A run whose calls are made, and the record of it."""

    run: Run
    record: Record


def _with_drift(scored: Sequence[_ScoredRun], inputs: Inputs, options: EvaluateOptions) -> list[_ScoredRun]:
    """Return the runs, those that asked a recorded version again with whether the model moved; warn where it did."""
    again = [run.record for run in scored if run.run.manifest.role == "again" and run.record.complete]
    archive = Archive(inputs.component)
    drifts = drifts_in(drift_of(again, inputs.component, archive, inputs.settings, options.config)) if again else {}
    for record in again:
        if record.run_id in drifts and (moved := drifts[record.run_id].moved):
            told = f"{record.model_id} moved though the prompt did not: {listed(moved)}"
            print(f"warning: {told}; this run begins a series of its own", file=sys.stderr)
    return [
        replace(run, record=run.record.model_copy(update={"drift": drifts.get(run.record.run_id)})) for run in scored
    ]


def _counts(record: Record, complete: Container[str]) -> bool:
    """Return whether a run is recorded: a complete one, and a baseline only beside a complete run of a new version."""
    return record.complete and (not entry_of(record).is_baseline or record.beside in complete)


def _ask(
    planned: PlannedRuns, inputs: Inputs, options: EvaluateOptions, batch_mode: BatchMode, pending: dict[str, str]
) -> list[_ScoredRun]:
    """Make the calls of all runs whose model has a key; every answer is given to its run's scorer as it comes."""
    if not planned.runs:
        return []
    usable = with_keys([run.model for run in planned.runs], inputs.kinds, inputs.keys)
    runs = [run for run in planned.runs if run.model.id in usable]
    component = inputs.component
    check_writable(inputs.results_dir)
    if any(is_measurement(run, options) for run in runs):
        check_writable(component.records_dir)
    planned_calls = sum(run.manifest.calls for run in runs)
    cases = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    with open_scores(component, cases, planned_calls) as scores:
        return _ask_and_score(runs, planned, inputs, options, scores, batch_mode, pending)


def _ask_and_score(
    runs: Sequence[Run],
    planned: PlannedRuns,
    inputs: Inputs,
    options: EvaluateOptions,
    scores: AnswerScores,
    batch_mode: BatchMode,
    pending: dict[str, str],
) -> list[_ScoredRun]:
    """Make the calls of the runs, and a record of each."""
    component = inputs.component
    scorers = {
        run.folder: Scorer(
            component, [case for case in inputs.cases if case.id in run.manifest.cases], run.manifest.replicates, scores
        )
        for run in runs
    }
    origins: list[Origin] = []

    def check_truths() -> None:
        for run in runs:
            for case_id in run.manifest.cases:
                scores.undefined(case_id)  # raises where a truth is too costly to score

    def prepare_records() -> None:
        origins.append(origin_of(component, options.fixtures))
        load_quantiles()

    budget = Budget(options.max_cost, options.max_calls)
    halted = execute(
        [
            _assignment(run, planned.components[run.manifest.run_id], scorers[run.folder], inputs, options, len(runs))
            for run in runs
        ],
        inputs.settings,
        budget,
        redactor_of(inputs.keys, inputs.models),
        watch,
        check=check_truths,
        meanwhile=prepare_records,  # it takes a while, and the calls need not wait for it
        batch_mode=batch_mode,
    )
    pending |= pending_in(halted, batch_mode)
    recorder = Recorder(component=component, settings=inputs.settings, kinds=inputs.kinds, origin=origins[0])
    scored = []
    for run in (run for run in runs if run.manifest.run_id not in pending):
        failure = halted[run.manifest.run_id]
        stopped = f"{failure.reason}: {failure.message}" if failure else None
        manifest = read_manifest(run.folder)  # with the looks there were, and what the server said
        scorecard = scorers[run.folder].scorecard(manifest.asked)
        record = recorder.record(run.model, manifest, scorecard, stopped=stopped)
        record = with_looks(record, manifest)
        scored.append((run, record))
    waiting = [record.run_id for _, record in scored if record.beside in pending]
    pending |= dict.fromkeys(waiting, "answered; it waits for the run beside it")
    return [_ScoredRun(run=run, record=record) for run, record in scored if record.run_id not in waiting]


def _assignment(
    run: Run, component: Component, scorer: Scorer, inputs: Inputs, options: EvaluateOptions, models: int
) -> Assignment:
    """Return what the engine needs to ask one run: how a request is made, and who gets the answers."""
    lookout = lookout_for(run, scorer, inputs, options, models)
    cases = {case.id: case for case in inputs.cases}
    plain = assignment(
        run,
        inputs.kinds,
        inputs.keys,
        options.concurrency or inputs.settings.concurrency,
        lambda call: build_request(
            component,
            cases[call.case_id],
            replicate=call.replicate,
            seed=run.manifest.seed,
            max_output_tokens=run.model.params.max_output_tokens,
        ),
        scorer.add,
    )
    asked = run.model.id, short_digest(run.manifest.digests["settings"])
    recorded = {(one.model_id, one.digests.get("settings")) for one in read_entries(component.leaderboard_path)}
    plain = replace(plain, answered_before=asked in recorded)
    return replace(plain, looks=tuple(look.after for look in lookout.looks), look=lookout.look) if lookout else plain


def _keep(scored: _ScoredRun, component: Component, site: Site, *, kept: bool) -> Finished:
    """Write the record of one run: into the component if it is `kept`, into the run's own folder always."""
    run, record = scored.run, scored.record
    path = run.folder / RECORD
    if kept:
        path = record_path(run, component)
        try:
            if not record.has_row:
                write_record(path, record)
            else:
                add_records(component.leaderboard_path, {path: record})
        except LeaderboardError:  # another prompt came first; what was paid for stays in the run's folder
            write_record(run.folder / RECORD, record)
            raise
    finished = Finished(record=record, record_path=path, folder=run.folder)
    write_record(run.folder / RECORD, record)
    write_report(finished, site=site)
    return finished


def _changed_answers(
    verdict: ComparisonResult, finished: Sequence[Finished], archive: Archive, inputs: Inputs
) -> Iterator[ChangedAnswers]:
    """Yield of each model which of its answers are others than its baseline's, whose run folder may be gone."""
    runs = {run.record.run_id: run for run in finished}
    for model in verdict.models:
        run = runs.get(model.candidate.run_id)
        if run is None or model.baseline is None:
            continue
        run_id = model.baseline.run_id
        folders = [results / run_id for results in (inputs.results_dir, inputs.component.results_dir)]
        folder = next((folder for folder in folders if (folder / ANSWERS).exists()), None)
        if folder is None:
            again = f"`evaluate {inputs.component.name} --model {model.model_id} --aa` asks it again here"
            absent = f"its run folder, which is not committed, is not on this machine; {again}"
            yield ChangedAnswers(model_id=model.model_id, baseline=run_id, absent=absent)
            continue
        baseline, answers = archive.record_of(run_id), (outcomes(folder), outcomes(run.folder))
        yield ChangedAnswers(
            model_id=model.model_id,
            baseline=run_id,
            compared=len(common_part(baseline, run.record).cases),
            changes=tuple(answer_changes(inputs.component, inputs.cases, baseline, run.record, answers)),
        )


def _warn_of_skipped(records: Sequence[Record], archive: Archive) -> None:
    """Name on stderr the runs that would be baselines of these, had their prompts not been edited."""
    for record in records:
        for words in passed_over(archive.entries, entry_of(record), None):
            print(f"warning: {words}", file=sys.stderr)


def print_how_to_resume(runs: Sequence[Run], finished: Sequence[Finished], options: EvaluateOptions) -> None:
    """Print on stderr the command that goes on with the runs that are not complete, if there are any."""
    over = {run.folder for run in finished if run.record.complete or "model_retired" in run.record.reasons}
    run_ids = [run.manifest.run_id for run in runs if run.folder not in over]
    if not run_ids:
        return
    program = sys.argv[0]
    words = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
    folders = words_of(options, "components", "fixtures", "config", "results")
    words += [options.skill, *folders, *words_of(options, "scenario", "concurrency", "max_cost", "max_calls")]
    if not options.leaderboard:
        words.append("--no-leaderboard")
    target = run_ids[0] if len(run_ids) == 1 else invocation_of(run_ids[0])
    print(f"to go on where this stopped: {shlex.join(words)} --resume {target}", file=sys.stderr)
