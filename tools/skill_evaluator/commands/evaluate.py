"""`skill-evaluator evaluate`: N replicates × cases × models → scores, a record per model, the leaderboard."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator.commands.adapting import lookout_for
from skill_evaluator.commands.dry_run import dry_run
from skill_evaluator.commands.inputs import EvaluateOptions, Inputs, read_inputs
from skill_evaluator.commands.resuming import find, record_path, say_how_to_resume
from skill_evaluator.comparing.similarity import load_model
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, SkillEvaluatorError
from skill_evaluator.providers.base import Failure
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import write_record
from skill_evaluator.records.selection import Archive
from skill_evaluator.reports.evaluation import print_finished, write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.asking import assignment, redactor, with_keys
from skill_evaluator.runner.execute import Assignment, SpendingLimits, execute
from skill_evaluator.runner.journal import RECORD, check_writable, read_manifest
from skill_evaluator.runner.prompting import build_request
from skill_evaluator.runner.runs import Run, new_runs
from skill_evaluator.scoring.recording import Finished, Origin, Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import load_quantiles
from skill_evaluator.verdicts.recorded import verdict_on
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rules import exit_code

EXAMPLES = (
    "skill-evaluator evaluate receipt-extraction --dry-run",
    "skill-evaluator evaluate receipt-extraction --model smollm2-135m-instruct --replicates 2",
    "skill-evaluator evaluate receipt-extraction --resume",
)


def evaluate(options: EvaluateOptions) -> int:
    """Run a component N times per case on its models; score accuracy and reproducibility; append to its leaderboard.

    Exit code: 0 done, 2 wrong input (one line says what), 4 incomplete (it prints the command that goes on).
    """
    if options.dry_run:
        return dry_run(options)
    inputs = read_inputs(options)
    results_dir = options.results or inputs.component.results_dir
    recorded: list[Finished] = []
    if options.resume is None:
        runs = _planned(inputs, results_dir, options)
    else:
        runs, recorded = find(inputs, results_dir, options)
    measured, problems = _measure(_askable(runs, inputs), inputs, results_dir, options) if runs else ([], [])
    finished = [*recorded, *measured]
    verdict = _verdict(finished, inputs, options)
    print_finished(finished, inputs.component, options.format, verdict)
    say_how_to_resume([run for run in runs if not _is_done(run, finished)], options)
    if problems:
        raise problems[0]
    if not all(one.record.complete for one in finished):
        return EXIT_INCOMPLETE
    return EXIT_OK if verdict is None else exit_code(verdict.verdict, inputs.settings.policy.fail_on)


def _verdict(finished: Sequence[Finished], inputs: Inputs, options: EvaluateOptions) -> ComparisonResult | None:
    """Whether the runs that were recorded are worse than a lower version's; None where there is nothing to compare."""
    component = inputs.component
    recorded = [one.record for one in finished if one.record_path.parent == component.records_dir]
    if not recorded:
        return None
    return verdict_on(recorded, component, Archive(component), inputs.settings, options.config)


def _measure(
    runs: Sequence[Run], inputs: Inputs, results_dir: Path, options: EvaluateOptions
) -> tuple[list[Finished], list[SkillEvaluatorError]]:
    """Make the calls, score the answers and record every run; the runs that could not be written are the problems."""
    check_writable(results_dir)
    if any(_is_committed(run, options) for run in runs):
        check_writable(inputs.component.records_dir)
    if inputs.component.plan.embeds:
        load_model()  # with calls in flight, the seconds it takes would count as theirs
    scorers = {run.folder: _scorer(run, inputs) for run in runs}
    origins: list[Origin] = []

    def prepare_the_end() -> None:
        origins.append(origin_of(inputs.component, options.fixtures))
        load_quantiles()

    halted = execute(
        [_assignment(run, inputs, options, scorers[run.folder], len(runs)) for run in runs],
        inputs.settings,
        SpendingLimits(max_cost_usd=options.max_cost, max_calls=options.max_calls),
        redactor(inputs.models, inputs.kinds),
        watch,
        meanwhile=prepare_the_end,
    )
    return _finish_all(runs, scorers, halted, inputs, origins[0], options)


def _is_committed(run: Run, options: EvaluateOptions) -> bool:
    """Whether the run, once complete, is a measurement of the component to be kept in its records."""
    return options.leaderboard and run.manifest.whole


def _planned(inputs: Inputs, results_dir: Path, options: EvaluateOptions) -> list[Run]:
    return new_runs(
        inputs.component,
        inputs.cases,
        inputs.models,
        results_dir,
        replicates=options.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if options.seed is None else options.seed,
        shard=inputs.shard,
        selection=options.cases,
        invocation=options.invocation,
        adaptive=options.adaptive,
    )


def _askable(runs: Sequence[Run], inputs: Inputs) -> list[Run]:
    usable = with_keys([run.model for run in runs], inputs.kinds)
    return [run for run in runs if run.model.id in usable]


def _scorer(run: Run, inputs: Inputs) -> Scorer:
    cases = [case for case in inputs.cases if case.id in run.manifest.cases]
    return Scorer(inputs.component, cases, run.manifest.replicates)


def _assignment(run: Run, inputs: Inputs, options: EvaluateOptions, scorer: Scorer, models: int) -> Assignment:
    lookout = lookout_for(run, scorer, inputs, options, models)
    cases = {case.id: case for case in inputs.cases}
    plain = assignment(
        run,
        inputs.kinds,
        options.concurrency or inputs.settings.concurrency,
        lambda call: build_request(
            inputs.component,
            cases[call.case_id],
            replicate=call.replicate,
            seed=run.manifest.seed,
            max_output_tokens=run.model.params.max_output_tokens,
        ),
        scorer.add,
    )
    return replace(plain, looks=tuple(lookout.shares), is_settled=lookout.is_settled) if lookout else plain


def _finish_all(
    runs: Sequence[Run],
    scorers: Mapping[Path, Scorer],
    halted: Mapping[str, Failure | None],
    inputs: Inputs,
    origin: Origin,
    options: EvaluateOptions,
) -> tuple[list[Finished], list[SkillEvaluatorError]]:
    """Record every run; one that cannot be written does not take the others with it."""
    finished: list[Finished] = []
    problems: list[SkillEvaluatorError] = []
    for run in runs:
        try:
            finished.append(_finish(run, scorers[run.folder], halted[run.manifest.run_id], inputs, origin, options))
        except SkillEvaluatorError as problem:
            problems.append(problem)
    return finished, problems


def _finish(
    run: Run, scorer: Scorer, halted: Failure | None, inputs: Inputs, origin: Origin, options: EvaluateOptions
) -> Finished:
    """Record one run: in the component if it is complete and of all its cases, in its own folder always."""
    manifest = read_manifest(run.folder) if run.manifest.adaptive else run.manifest  # it may have been settled
    recorder = Recorder(component=inputs.component, settings=inputs.settings, kinds=inputs.kinds, origin=origin)
    stopped = f"{halted.reason}: {halted.message}" if halted else None
    record = recorder.record(run.model, manifest, scorer.scorecard(manifest.asked), stopped=stopped)
    committed = record.complete and _is_committed(run, options)
    path = record_path(run, inputs.component) if committed else run.folder / RECORD
    if committed:
        write_record(path, record)
        append_rows(inputs.component.leaderboard_path, inputs.component.name, [record.row()])
    finished = Finished(record=record, record_path=path, folder=run.folder)
    write_record(run.folder / RECORD, record)
    write_report(finished, inputs.component)
    return finished


def _is_done(run: Run, finished: Sequence[Finished]) -> bool:
    return any(one.folder == run.folder and one.record.complete for one in finished)
