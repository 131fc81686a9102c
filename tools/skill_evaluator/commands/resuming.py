"""`--resume`: which runs to go on with, and the command line that does so for what a run left unmade."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.commands.inputs import EvaluateOptions, Inputs
from skill_evaluator.commands.options import words_of
from skill_evaluator.errors import RunError
from skill_evaluator.library.components import Component
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import Manifest, find_runs, invocation_of
from skill_evaluator.runner.runs import Run, resumed_run
from skill_evaluator.scoring.recording import Finished


def find(inputs: Inputs, results_dir: Path, options: EvaluateOptions) -> tuple[list[Run], list[Finished]]:
    """The runs that `--resume` means: those to go on with, and those that are recorded and stay as they are."""
    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    found = find_runs(results_dir, options.resume or "", inputs.component.name)
    for folder, manifest in found:
        _refuse_another_scenario(folder, manifest, options)
    runs = [
        resumed_run(folder, inputs.component, cases, models)
        for folder, manifest in found
        if not options.models or manifest.model_id in models
    ]
    if not runs:
        raise RunError(f"no run of --model {' '.join(options.models)} among those to resume")
    for run in runs:
        _refuse_another_plan(run, options)
    recorded = [run for run in runs if record_path(run, inputs.component).exists()]
    return [run for run in runs if run not in recorded], [_recorded(run, inputs.component) for run in recorded]


def record_path(run: Run, component: Component) -> Path:
    """Where the record of a complete run is kept."""
    return component.records_dir / f"{run.manifest.run_id}.json"


def _recorded(run: Run, component: Component) -> Finished:
    """A run whose record is there; the leaderboard is given its row if a crash came between the two."""
    path = record_path(run, component)
    record = read_record(path)
    append_rows(component.leaderboard_path, component.name, [record.row()])
    print(f"{run.manifest.run_id} is recorded and complete: there is nothing to resume", file=sys.stderr)
    return Finished(record=record, record_path=path, folder=run.folder)


def _refuse_another_plan(run: Run, options: EvaluateOptions) -> None:
    for flag, asked, planned in (
        ("--replicates", options.replicates, run.manifest.replicates),
        ("--seed", options.seed, run.manifest.seed),
        ("--shard", options.shard, run.manifest.shard),
        ("--case", options.cases or None, run.manifest.selection),
    ):
        if asked is not None and asked != planned:
            was = f"with {_word(planned)}" if planned not in (None, ()) else "without it"
            raise RunError(f"cannot resume {run.folder} with {flag} {_word(asked)}: it was planned {was}")
    if options.adaptive and not run.manifest.adaptive:
        raise RunError(f"cannot resume {run.folder} with --adaptive: it was planned without it")


def _refuse_another_scenario(folder: Path, manifest: Manifest, options: EvaluateOptions) -> None:
    if manifest.scenario != options.scenario:
        how = f"with --scenario {manifest.scenario}" if manifest.scenario else "without --scenario"
        raise RunError(f"cannot resume {folder} like this: it was begun {how}")


def _word(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def say_how_to_resume(runs: Sequence[Run], options: EvaluateOptions) -> None:
    """Print the command that goes on with runs that are not complete, on stderr; nothing when there is none."""
    if not runs:
        return
    run_id = runs[0].manifest.run_id
    target = run_id if len(runs) == 1 else invocation_of(run_id)
    print(f"to go on where this stopped: {_same_command(options)} --resume {target}", file=sys.stderr)


def _same_command(options: EvaluateOptions) -> str:
    """This command as it was called, without what the run itself remembers."""
    program = sys.argv[0]
    words = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
    folders = words_of(options, "components", "fixtures", "config", "results")
    words += [options.skill, *folders, *words_of(options, "scenario", "concurrency", "max_cost", "max_calls")]
    if not options.leaderboard:
        words.append("--no-leaderboard")
    return shlex.join(words)
