"""`skill-evaluator evaluate`: N replicates × cases × models → scores, a record per model, the leaderboard."""

import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skill_evaluator.commands.inputs import Inputs, Kinds, Options, read_inputs
from skill_evaluator.components import Component
from skill_evaluator.config import Model
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError, RunError
from skill_evaluator.fixtures import cases_folder
from skill_evaluator.leaderboard import append_rows
from skill_evaluator.prompting import build_request, most_input_tokens
from skill_evaluator.providers.base import Failure
from skill_evaluator.providers.kinds import find_key, key_variables
from skill_evaluator.providers.secrets import Redactor
from skill_evaluator.recording import Origin, build_record, describe_settings
from skill_evaluator.records import write_record
from skill_evaluator.reports.evaluation import Finished, print_finished, write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.execute import Assignment, Spending, execute
from skill_evaluator.runner.journal import RECORD, check_writable, find_runs, read_manifest
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.runs import Run, new_runs, resumed_run
from skill_evaluator.scoring import Scorer
from skill_evaluator.stats import load_quantiles
from skill_evaluator.versions import commit_of


def evaluate(options: Options) -> int:
    """Run one component on its models; returns the exit code."""
    inputs = read_inputs(options)
    results_dir = options.results or inputs.component.results_dir
    runs = _resumed(options, inputs, results_dir) if options.resume else _planned(options, inputs, results_dir)
    _refuse_unpriced(runs, inputs.kinds, options.max_cost)
    check_writable(results_dir)
    scorers = {run.folder: _scorer(run, inputs) for run in runs}
    with ThreadPoolExecutor(max_workers=1) as aside:  # what needs no answer is done while answers are awaited
        origin = aside.submit(_origin, options, inputs.component)
        aside.submit(load_quantiles)
        halted = execute(
            [_assignment(run, inputs, options, scorers[run.folder]) for run in runs],
            inputs.settings,
            Spending(max_cost_usd=options.max_cost, max_calls=options.max_calls),
            _redactor(inputs),
            watch,
        )
    finished = [
        _finish(run, scorers[run.folder], halted[run.manifest.run_id], inputs, origin.result(), options) for run in runs
    ]
    print_finished(finished, inputs.component, options.format)
    _say_how_to_resume(finished, options)
    return EXIT_OK if all(one.record.complete for one in finished) else EXIT_INCOMPLETE


def _planned(options: Options, inputs: Inputs, results_dir: Path) -> list[Run]:
    return new_runs(
        inputs.component,
        inputs.cases,
        _with_keys(inputs.models, inputs.kinds),
        results_dir,
        replicates=options.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if options.seed is None else options.seed,
        shard=inputs.shard,
    )


def _resumed(options: Options, inputs: Inputs, results_dir: Path) -> list[Run]:
    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    folders = find_runs(results_dir, options.resume or "latest")
    if options.models:
        folders = [folder for folder in folders if read_manifest(folder).model_id in models]
    runs = [resumed_run(folder, inputs.component, cases, models) for folder in folders]
    for run in runs:
        for flag, asked, planned in (
            ("--replicates", options.replicates, run.manifest.replicates),
            ("--seed", options.seed, run.manifest.seed),
            ("--shard", options.shard, run.manifest.shard),
        ):
            if asked is not None and asked != planned:
                raise RunError(f"cannot resume {run.folder} with {flag} {asked}: it was planned with {planned}")
    usable = {model.id for model in _with_keys([run.model for run in runs], inputs.kinds)}
    return [run for run in runs if run.model.id in usable]


def _with_keys(models: Sequence[Model], kinds: Kinds) -> list[Model]:
    """The models that can be asked; warns of each that cannot, and raises ConfigError when none is left."""
    usable = []
    for model in models:
        variables = key_variables(model, kinds[model.provider])
        if variables and find_key(model, kinds[model.provider]) is None:
            print(f"warning: skipping {model.id}: {' or '.join(variables)} is not set", file=sys.stderr)
        else:
            usable.append(model)
    if not usable:
        raise ConfigError(
            "no model is left to run; set a key named above, or add --model smollm2-135m-instruct (needs no key)"
        )
    return usable


def _refuse_unpriced(runs: Sequence[Run], kinds: Kinds, max_cost: float | None) -> None:
    for run in runs if max_cost is not None else ():
        if price_of(run.model, kinds[run.model.provider]) is None:
            raise ConfigError(
                f"--max-cost cannot be kept: no price is known for '{run.model.id}'; "
                "give it price: {input, output} in models.yaml"
            )


def _scorer(run: Run, inputs: Inputs) -> Scorer:
    cases = [case for case in inputs.cases if case.id in run.manifest.cases]
    return Scorer(inputs.component, cases, run.manifest.replicates)


def _assignment(run: Run, inputs: Inputs, options: Options, scorer: Scorer) -> Assignment:
    kind = inputs.kinds[run.model.provider]
    cases = {case.id: case for case in inputs.cases}
    wanted = options.concurrency or inputs.settings.concurrency
    return Assignment(
        run=run,
        kind=kind,
        key=find_key(run.model, kind),
        price=price_of(run.model, kind),
        concurrency=1 if kind.one_at_a_time else min(wanted, run.model.limits.max_concurrency or wanted),
        request_for=lambda call: build_request(
            inputs.component,
            cases[call.case_id],
            replicate=call.replicate,
            seed=run.manifest.seed,
            max_output_tokens=run.model.params.max_output_tokens,
        ),
        most_input_tokens=most_input_tokens,
        on_outcome=scorer.add,
    )


def _redactor(inputs: Inputs) -> Redactor:
    known = {name for kind in inputs.kinds.values() for name in kind.key_variables}
    return Redactor(known | {model.api_key_env for model in inputs.models if model.api_key_env})


def _origin(options: Options, component: Component) -> Origin:
    return Origin(
        prompt_commit=commit_of(component.folder / "prompt.md"),
        dataset_commit=commit_of(cases_folder(component, options.fixtures)),
    )


def _finish(
    run: Run, scorer: Scorer, halted: Failure | None, inputs: Inputs, origin: Origin, options: Options
) -> Finished:
    """Record one run: in the component if it ran to its end, in its own folder always."""
    kind = inputs.kinds[run.model.provider]
    record = build_record(
        run.manifest,
        inputs.component,
        scorer.scorecard(),
        origin,
        describe_settings(run.model, kind.sampling(run.model), inputs.settings),
        price_of(run.model, kind),
        inputs.settings.required_coverage,
        halted,
    )
    committed = options.leaderboard and halted is None and run.manifest.shard is None
    path = inputs.component.records_dir / f"{run.manifest.run_id}.json" if committed else run.folder / RECORD
    if committed:
        write_record(path, record)
        append_rows(inputs.component.leaderboard_path, inputs.component.name, [record.row()])
    finished = Finished(record=record, record_path=path, folder=run.folder)
    write_record(run.folder / RECORD, record)
    write_report(finished, inputs.component)
    return finished


def _say_how_to_resume(finished: Sequence[Finished], options: Options) -> None:
    stopped = [one for one in finished if one.record.stopped]
    if not stopped or options.format != "text":
        return
    target = stopped[0].invocation if len(stopped) > 1 else stopped[0].record.run_id
    print(f"to go on where this stopped: {_same_command(options)} --resume {target}", file=sys.stderr)


def _same_command(options: Options) -> str:
    words = ["python tools/evaluate_skill.py", options.skill]
    for flag, value, default in (
        ("--components", options.components, Path("components")),
        ("--fixtures", options.fixtures, None),
        ("--config", options.config, Path(".evaluator")),
        ("--results", options.results, None),
    ):
        if value != default:
            words.append(f"{flag} {shlex.quote(str(value))}")
    if not options.leaderboard:
        words.append("--no-leaderboard")
    return " ".join(words)
