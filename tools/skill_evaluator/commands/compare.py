"""`skill-evaluator compare`: is a version worse than the recorded one, where, and how sure is that?"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from skill_evaluator.commands.inputs import Format
from skill_evaluator.components import Component, load_component
from skill_evaluator.config import Settings, VerdictName, load_settings
from skill_evaluator.errors import ConfigError, LeaderboardError
from skill_evaluator.records import Record, read_record
from skill_evaluator.regression.choosing import Entry, choose_baseline, choose_candidate, read_entries, record_of
from skill_evaluator.regression.comparing import Judge, Pair, compare_records
from skill_evaluator.regression.policy import Rules, load_waivers
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


def compare(options: Options) -> int:
    """Choose the runs, compare them, print the verdict; returns the exit code the policy asks for."""
    settings = load_settings(options.config)
    fail_on = _fail_on(options, settings)
    component = None if options.skill is None else load_component(options.components, options.skill)
    pairs = _pairs(options, component)
    first = pairs[0].candidate
    judge = Judge(
        rules=Rules(policy=settings.policy, skill=first.skill, primary_metric=first.primary_metric),
        required_coverage=settings.required_coverage,
        waivers=load_waivers(options.config),
        today=datetime.datetime.now(datetime.UTC).date(),
    )
    result = compare_records(first.skill, pairs, judge)
    print_comparison(result, options.format)
    return exit_code(result.verdict, fail_on)


def _fail_on(options: Options, settings: Settings) -> tuple[str, ...]:
    names = [name.strip() for part in options.fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return tuple(names) or settings.policy.fail_on


def _pairs(options: Options, component: Component | None) -> list[Pair]:
    """The records to compare, one pair a model; raises LeaderboardError when there is nothing to judge."""
    candidate_file, baseline_file = _file(options.candidate), _file(options.baseline)
    if component is None:
        if candidate_file is None or baseline_file is None:
            raise LeaderboardError("name a component, or two record files with --baseline and --candidate")
        return [Pair(baseline=baseline_file, candidate=candidate_file)]
    by_model = _by_model(read_entries(component.leaderboard_path), options.models, component)
    if candidate_file is not None:
        by_model = {candidate_file.model_id: by_model.get(candidate_file.model_id, [])}
    pairs = []
    for entries in by_model.values():
        chosen = candidate_file or record_of(choose_candidate(entries, options.candidate), component.records_dir)
        if baseline_file is not None:
            pairs.append(Pair(baseline=baseline_file, candidate=chosen))
            continue
        before = choose_baseline(entries, chosen, options.baseline)
        record = None if before is None else record_of(before, component.records_dir)
        pairs.append(Pair(baseline=record, candidate=chosen))
    return pairs


def _file(named: str | None) -> Record | None:
    """The record, if a file was named."""
    if named is None or not (named.endswith(".json") or Path(named).is_file()):
        return None
    return read_record(Path(named))


def _by_model(entries: Sequence[Entry], wanted: Sequence[str], component: Component) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.model_id, []).append(entry)
    for model_id in wanted:
        if model_id not in found:
            raise LeaderboardError(
                f"no run of model '{model_id}' in {component.leaderboard_path} {nearest(model_id, found)}"
            )
    if not found:
        raise LeaderboardError(f"{component.leaderboard_path} holds no run yet; evaluate '{component.name}' first")
    return {model_id: found[model_id] for model_id in (wanted or found)}
