"""`skill-evaluator compare`: is a version worse than the recorded one, where, and how sure is that?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from skill_evaluator.commands.inputs import Format
from skill_evaluator.commands.verdicts import judge_by
from skill_evaluator.components import Component, load_component
from skill_evaluator.config import Settings, VerdictName, load_settings
from skill_evaluator.errors import ConfigError, LeaderboardError
from skill_evaluator.records import Record, read_record
from skill_evaluator.regression.choosing import choose, entry_of, of_models, read_entries, record_of
from skill_evaluator.regression.comparing import Pair, compare_records
from skill_evaluator.regression.verdicts import exit_code
from skill_evaluator.reports.verdict_page import print_comparison
from skill_evaluator.text import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, typed. `baseline` and `candidate`: a version, a run id, or a record's file."""

    skill: str | None = None
    baseline: str | None = None
    candidate: str | None = None
    models: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    components: Path = Path("components")
    config: Path = Path(".evaluator")
    format: Format = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The records of each model, and the models that have nothing to judge, with why."""

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def compare(options: Options) -> int:
    """Choose the runs, compare them, print the verdict; returns the exit code the policy asks for."""
    settings = load_settings(options.config)
    fail_on = _fail_on(options, settings)
    component = None if options.skill is None else load_component(options.components, options.skill)
    chosen = _chosen(options, component)
    first = chosen.pairs[0].candidate
    judge = judge_by(settings, options.config, first)
    result = compare_records(first.skill, chosen.pairs, judge, left_out=chosen.left_out)
    print_comparison(result, options.format)
    return exit_code(result.verdict, fail_on)


def _fail_on(options: Options, settings: Settings) -> tuple[str, ...]:
    names = [name.strip() for part in options.fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return tuple(names) or settings.policy.fail_on


def _chosen(options: Options, component: Component | None) -> _Chosen:
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
    entries = of_models(entries, options.models, component.leaderboard_path)
    chosen = choose(
        entries,
        options.candidate if candidate is None else entry_of(candidate),
        options.baseline if baseline is None else entry_of(baseline),
    )
    pairs = [
        Pair(
            baseline=baseline or (None if one.baseline is None else record_of(one.baseline, component.records_dir)),
            candidate=candidate or record_of(one.candidate, component.records_dir),
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
