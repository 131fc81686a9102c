"""`skill-evaluator evaluate`: N replicates × cases × models → scores, a record per model, the leaderboard."""

import shlex
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from skill_evaluator.commands.evaluate_adaptive import lookout_for, with_looks
from skill_evaluator.commands.evaluate_dry_run import dry_run
from skill_evaluator.commands.evaluate_inputs import EvaluateOptions, Inputs, read_inputs
from skill_evaluator.commands.evaluate_runs import PlannedRuns, plan_runs, record_path
from skill_evaluator.commands.options import words_of
from skill_evaluator.comparing.similarity import load_model
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, SkillEvaluatorError
from skill_evaluator.library.components import Component
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import Record, write_record
from skill_evaluator.reports.evaluation import print_finished, write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.execute import Assignment, SpendingLimits, assignment, execute, redactor, with_keys
from skill_evaluator.runner.journal import RECORD, check_writable, invocation_of, read_manifest
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run
from skill_evaluator.scoring.recording import Finished, Origin, Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import load_quantiles
from skill_evaluator.verdicts.recorded import verdict_on
from skill_evaluator.verdicts.rules import exit_code
from skill_evaluator.verdicts.spreads import spreads_of

EXAMPLES = (
    "skill-evaluator evaluate receipt-extraction --dry-run",
    "skill-evaluator evaluate receipt-extraction --model smollm2-135m-instruct --replicates 2",
    "skill-evaluator evaluate receipt-extraction --with-baseline",
    "skill-evaluator evaluate receipt-extraction --resume",
)


def evaluate(options: EvaluateOptions) -> int:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard.

    Exit code: 0 done, 2 wrong input (one line says what), 3 worse than the recorded version, 4 incomplete (it prints
    the command that goes on).
    """
    if options.dry_run:
        return dry_run(options)
    inputs = read_inputs(options)
    planned = plan_runs(inputs, options)
    finished, component = planned.finished, inputs.component
    scored = _ask(planned, inputs, options)  # every answer is scored as it comes
    records = [*(run.record for run in finished), *(run.record for run in scored)]
    complete = {record.run_id for record in records if record.complete}
    problems: list[SkillEvaluatorError] = []
    for run in scored:
        try:
            finished.append(_keep(run, component, kept=_is_measurement(run.run, options) and run.is_whole(complete)))
        except SkillEvaluatorError as problem:  # a run that cannot be kept does not take the others with it
            problems.append(problem)
    recorded = [run.record for run in finished if run.record_path.parent == component.records_dir]
    judged = [record for record in recorded if planned.is_judged(record.run_id)]
    verdict, archive = None, Archive(component)
    if judged:  # against a lower version, if there is one
        verdict = verdict_on(judged, component, archive, inputs.settings, options.config)
    spreads = spreads_of([record for record in recorded if record not in judged], archive)
    print_finished(finished, component, options.format, verdict, spreads)
    _print_how_to_resume(planned.runs, finished, options)
    if problems:
        raise problems[0]
    if not all(run.record.complete for run in finished):
        return EXIT_INCOMPLETE
    return EXIT_OK if verdict is None else exit_code(verdict.verdict, inputs.settings.policy.fail_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScoredRun:
    """A run whose calls are made, and the record of it."""

    run: Run
    record: Record

    def is_whole(self, complete: Container[str]) -> bool:
        """Return whether the run is complete, and so is the one beside it: one without the other compares nothing."""
        beside = self.run.manifest.beside
        return self.record.complete and (beside is None or beside in complete)


def _ask(planned: PlannedRuns, inputs: Inputs, options: EvaluateOptions) -> list[_ScoredRun]:
    """Make the calls of all runs whose model has a key; every answer is given to its run's scorer as it comes."""
    if not planned.runs:
        return []
    usable = with_keys([run.model for run in planned.runs], inputs.kinds)
    runs = [run for run in planned.runs if run.model.id in usable]
    component = inputs.component
    check_writable(inputs.results_dir)
    if any(_is_measurement(run, options) for run in runs):
        check_writable(component.records_dir)
    if component.plan.embeds:
        load_model()  # with calls in flight, the seconds it takes would count as theirs
    scorers = {
        run.folder: Scorer(
            component, [case for case in inputs.cases if case.id in run.manifest.cases], run.manifest.replicates
        )
        for run in runs
    }
    origins: list[Origin] = []

    def prepare_records() -> None:
        origins.append(origin_of(component, options.fixtures))
        load_quantiles()

    halted = execute(
        [
            _assignment(run, planned.components[run.manifest.run_id], scorers[run.folder], inputs, options, len(runs))
            for run in runs
        ],
        inputs.settings,
        SpendingLimits(max_cost_usd=options.max_cost, max_calls=options.max_calls),
        redactor(inputs.models, inputs.kinds),
        watch,
        meanwhile=prepare_records,  # it takes a while, and the calls need not wait for it
    )
    recorder = Recorder(component=component, settings=inputs.settings, kinds=inputs.kinds, origin=origins[0])
    scored = []
    for run in runs:
        failure = halted[run.manifest.run_id]
        stopped = f"{failure.reason}: {failure.message}" if failure else None
        manifest = read_manifest(run.folder) if run.manifest.adaptive else run.manifest  # with the looks there were
        scorecard = scorers[run.folder].scorecard(manifest.asked)
        record = recorder.record(run.model, manifest, scorecard, stopped=stopped)
        record = with_looks(record, manifest, component, inputs.settings, options.config)
        scored.append(_ScoredRun(run=run, record=record))
    return scored


def _assignment(
    run: Run, component: Component, scorer: Scorer, inputs: Inputs, options: EvaluateOptions, models: int
) -> Assignment:
    """Return what the engine needs to ask one run: how a request is made, and who gets the answers."""
    lookout = lookout_for(run, scorer, inputs, options, models)
    cases = {case.id: case for case in inputs.cases}
    plain = assignment(
        run,
        inputs.kinds,
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
    return replace(plain, looks=tuple(look.after for look in lookout.looks), look=lookout.look) if lookout else plain


def _keep(scored: _ScoredRun, component: Component, *, kept: bool) -> Finished:
    """Write the record of one run: into the component if it is `kept`, into the run's own folder always."""
    run, record = scored.run, scored.record
    path = run.folder / RECORD
    if kept:
        path = record_path(run, component)
        write_record(path, record)
        append_rows(component.leaderboard_path, component.name, [record.row()])
    finished = Finished(record=record, record_path=path, folder=run.folder)
    write_record(run.folder / RECORD, record)
    write_report(finished, component)
    return finished


def _is_measurement(run: Run, options: EvaluateOptions) -> bool:
    """Return whether the run, once complete, is kept among the component's records."""
    return options.leaderboard and run.manifest.whole


def _print_how_to_resume(runs: Sequence[Run], finished: Sequence[Finished], options: EvaluateOptions) -> None:
    """Print on stderr the command that goes on with the runs that are not complete, if there are any."""
    complete = {run.folder for run in finished if run.record.complete}
    run_ids = [run.manifest.run_id for run in runs if run.folder not in complete]
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
