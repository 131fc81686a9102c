"""`--resume`: which runs to go on with, and the command line that does so for what a run left unmade."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.commands.inputs import Inputs, Options
from skill_evaluator.components import Component
from skill_evaluator.errors import RunError
from skill_evaluator.leaderboard import append_rows
from skill_evaluator.records import read_record
from skill_evaluator.runner.journal import find_runs, invocation_of
from skill_evaluator.runner.runs import Run, resumed_run


def find(inputs: Inputs, results_dir: Path, options: Options) -> list[Run]:
    """The runs that `--resume` means and that are not recorded yet; raises RunError when none is left."""
    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    found = find_runs(results_dir, options.resume or "", inputs.component.name)
    runs = [
        resumed_run(folder, inputs.component, cases, models)
        for folder, manifest in found
        if not options.models or manifest.model_id in models
    ]
    if not runs:
        raise RunError(f"no run of --model {' '.join(options.models)} among those to resume")
    for run in runs:
        _refuse_another_plan(run, options)
    open_runs = [run for run in runs if not _is_recorded(run, inputs.component)]
    if not open_runs:
        raise RunError(f"{runs[0].manifest.run_id} is recorded and complete: there is nothing to resume")
    return open_runs


def record_path(run: Run, component: Component) -> Path:
    """Where the record of a complete run is kept."""
    return component.records_dir / f"{run.manifest.run_id}.json"


def _is_recorded(run: Run, component: Component) -> bool:
    """Whether the run's record is there; the leaderboard is given its row if a crash came between the two."""
    path = record_path(run, component)
    if not path.exists():
        return False
    append_rows(component.leaderboard_path, component.name, [read_record(path).row()])
    return True


def _refuse_another_plan(run: Run, options: Options) -> None:
    for flag, asked, planned in (
        ("--replicates", options.replicates, run.manifest.replicates),
        ("--seed", options.seed, run.manifest.seed),
        ("--shard", options.shard, run.manifest.shard),
        ("--case", options.cases or None, run.manifest.selection),
    ):
        if asked is not None and asked != planned:
            raise RunError(f"cannot resume {run.folder} with another {flag}: it was planned with {planned}")


def say_how_to_resume(runs: Sequence[Run], options: Options) -> None:
    """Print the command that goes on with runs that are not complete, on stderr; nothing when there is none."""
    if not runs:
        return
    run_id = runs[0].manifest.run_id
    target = run_id if len(runs) == 1 else invocation_of(run_id)
    print(f"to go on where this stopped: {_same_command(options)} --resume {target}", file=sys.stderr)


def _same_command(options: Options) -> str:
    """This command as it was called, without what the run itself remembers."""
    program = sys.argv[0]
    words = ["python", program] if program.endswith("evaluate_skill.py") else ["skill-evaluator", "evaluate"]
    words.append(options.skill)
    for flag, value, default in (
        ("--components", options.components, Path("components")),
        ("--fixtures", options.fixtures, None),
        ("--config", options.config, Path(".evaluator")),
        ("--results", options.results, None),
        ("--concurrency", options.concurrency, None),
        ("--max-cost", options.max_cost, None),
        ("--max-calls", options.max_calls, None),
    ):
        if value != default:
            words += [flag, str(value)]
    if not options.leaderboard:
        words.append("--no-leaderboard")
    return shlex.join(words)
