"""`skill-evaluator compare`: is a version worse than the recorded one, where, and how sure is that?

`skill-evaluator compare --calibrate RUN`: how far can this gate be trusted at the size of this run?
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, get_args

import typer

from skill_evaluator.commands.options import COMPONENTS, CONFIG, Components, Config, Form, OnlyModels
from skill_evaluator.errors import EXIT_OK, ConfigError, LeaderboardError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Settings, VerdictName, load_settings
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.records.selection import (
    choose,
    choose_candidate,
    entry_of,
    load_record,
    read_entries,
    runs_of_models,
)
from skill_evaluator.reports.comparison import print_comparison
from skill_evaluator.reports.sensitivity import print_calibration
from skill_evaluator.text import nearest
from skill_evaluator.verdicts.calibration import calibrate as measured
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.rules import exit_code, rules_for

EXAMPLES = (
    "skill-evaluator compare receipt-extraction",
    "skill-evaluator compare receipt-extraction --baseline 1.2.0 --model gpt-5",
    "skill-evaluator compare --baseline old.json --candidate new.json",
    "skill-evaluator compare receipt-extraction --calibrate 1.2.0 --model gpt-5",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of `compare`."""

    skill: Annotated[
        str | None, typer.Argument(help="The component; not needed when both records are named by their files.")
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="VERSION|RUN|FILE", help="Default: the newest complete lower version."),
    ] = None
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="VERSION|RUN|FILE", help="Default: the newest of the highest version."),
    ] = None
    models: OnlyModels = ()
    fail_on: Annotated[
        tuple[str, ...],
        typer.Option("--fail-on", metavar="VERDICT,...", help="Verdicts that fail; default: policy of settings.yaml."),
    ] = ()
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="RUN|VERSION|FILE",
            help="Instead: measure false alarms and power of this gate on random halves of a run's replicates.",
        ),
    ] = None
    components: Components = COMPONENTS
    config: Config = CONFIG
    format: Form = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The records of each model, and the models that have nothing to judge, with why."""

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def compare(options: CompareOptions) -> int:
    """Say whether a version is worse than the recorded one, where, and how sure that is; makes no call.

    Exit code: 0 fine, 3 regressed, 4 inconclusive or incomparable if --fail-on names it.
    """
    if options.calibrate is not None:
        return _calibrate(options, options.calibrate)
    settings = load_settings(options.config)
    fail_on = _fail_on(options, settings)
    component = None if options.skill is None else load_component(options.components, options.skill)
    chosen = _chosen(options, component)
    first = chosen.pairs[0].candidate
    rules = rules_for(settings, options.config, first)
    result = compare_records(first.skill, chosen.pairs, rules, left_out=chosen.left_out)
    print_comparison(result, options.format)
    return exit_code(result.verdict, fail_on)


def _fail_on(options: CompareOptions, settings: Settings) -> tuple[str, ...]:
    names = [name.strip() for part in options.fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return tuple(names) or settings.policy.fail_on


def _chosen(options: CompareOptions, component: Component | None) -> _Chosen:
    """The records to compare, one pair a model; raises LeaderboardError when there is nothing to judge."""
    files = {name: _file(name) for name in (options.candidate, options.baseline)}
    candidate, baseline = files[options.candidate], files[options.baseline]
    if candidate is not None and baseline is not None:
        return _Chosen(pairs=(Pair(baseline=baseline, candidate=candidate),))
    if component is None:
        raise LeaderboardError("name a component, or two record files with --baseline and --candidate")
    entries = read_entries(component.leaderboard_path)
    if not entries and candidate is None:
        raise LeaderboardError(f"{component.leaderboard_path} holds no run yet; evaluate '{component.name}' first")
    entries = runs_of_models(entries, options.models, component.leaderboard_path)
    chosen = choose(
        entries,
        options.candidate if candidate is None else entry_of(candidate),
        options.baseline if baseline is None else entry_of(baseline),
    )
    pairs = [
        Pair(
            baseline=baseline or (None if one.baseline is None else load_record(one.baseline, component.records_dir)),
            candidate=candidate or load_record(one.candidate, component.records_dir),
            absent=one.absent,
        )
        for one in chosen.choices
    ]
    return _Chosen(pairs=tuple(pairs), left_out=chosen.left_out)


def _file(named: str | None) -> Record | None:
    """The record, if a file was named."""
    if named is None or not (named.endswith(".json") or Path(named).is_file()):
        return None
    return read_record(Path(named))


TIMES = 1_000
_QUIET_S = 5.0


def _calibrate(options: CompareOptions, run: str) -> int:
    """Deal the run's replicates into halves, judge them many times, print how often the gate was right."""
    settings = load_settings(options.config)
    record = _record(options, run)
    rules = replace(rules_for(settings, options.config, record), waivers=[])
    print_calibration(measured(record, rules, TIMES, settings.seed, _Progress()), options.format)
    return EXIT_OK


def _record(options: CompareOptions, run: str) -> Record:
    """The run that is named; raises LeaderboardError when it is not one."""
    if run.endswith(".json") or Path(run).is_file():
        return read_record(Path(run))
    if options.skill is None:
        raise LeaderboardError("name the component of the run to calibrate by, or the file of its record")
    component = load_component(options.components, options.skill)
    recorded = read_entries(component.leaderboard_path)
    entries = [one for one in recorded if not options.models or one.model_id in options.models]
    if not entries:
        of = f" of {', '.join(options.models)}" if recorded else ""
        raise LeaderboardError(f"{component.leaderboard_path} holds no run{of} yet; evaluate '{component.name}' first")
    named = [one for one in entries if one.run_id == run or (one.version == run and one.complete)]
    models = sorted({one.model_id for one in named})
    if len(models) > 1:
        raise LeaderboardError(f"version '{run}' was run on {', '.join(models)}; name one with --model")
    fitting = [one for one in entries if one.model_id in models] or entries
    return load_record(choose_candidate(fitting, run), component.records_dir)


class _Progress:
    """A line on stderr now and then, if it takes long."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._said >= _QUIET_S:
            self._said = now
            print(f"calibrating: {done:,} of {of:,} comparisons", file=sys.stderr, flush=True)
