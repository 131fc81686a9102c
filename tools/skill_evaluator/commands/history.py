"""`skill-evaluator history`: every recorded version of every model, and which of them made it worse. Makes no call."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import semver
import typer

from skill_evaluator.commands.options import (
    COMPONENTS,
    CONFIG,
    Components,
    Config,
    OnlyModels,
    Skill,
    named_verdicts,
)
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Policy, VerdictName, load_settings
from skill_evaluator.records.archive import Archive, RecordedRun
from skill_evaluator.records.leaderboard import load_leaderboard
from skill_evaluator.records.selection import next_lower, runs_of_models, runs_of_versions
from skill_evaluator.reports.history import print_csv, print_history, print_junit
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.history import History, history_of
from skill_evaluator.verdicts.recorded import pair_of
from skill_evaluator.verdicts.rules import component_verdict, exit_code, rules_for

EXAMPLES = (
    "skill-evaluator history receipt-extraction",
    "skill-evaluator history receipt-extraction --format junit > history.xml",
    "skill-evaluator history receipt-extraction --fail-on regressed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The options of `history`."""

    skill: Skill
    models: OnlyModels = ()
    fail_on: Annotated[
        tuple[str, ...],
        typer.Option(
            "--fail-on", metavar="VERDICT,...", help="Verdicts on the highest version that fail; default: none."
        ),
    ] = ()
    components: Components = COMPONENTS
    config: Config = CONFIG
    format: Annotated[
        Literal["text", "json", "markdown", "csv", "junit"],
        typer.Option("--format", help="How to print it (on stdout); csv: every run, junit: every step."),
    ] = "text"


def history(options: HistoryOptions) -> int:
    """Show every recorded version beside every model, each judged against the one before, and what made it worse.

    The highest version is also held against the last accepted one (the anchor), so that small losses add up.
    Exit code: 0, unless --fail-on names the verdict on the highest version: 3 if it is regressed, else 4.
    """
    fail_on = named_verdicts(options.fail_on)
    settings = load_settings(options.config)
    component = load_component(options.components, options.skill)
    where = component.leaderboard_path
    archive = Archive(component)
    entries = runs_of_models(archive.entries, options.models, where)
    if not entries:
        raise LeaderboardError(f"{where} holds no run yet; evaluate '{component.name}' first")
    chosen = runs_of_versions(entries)
    if options.format == "csv":  # of every run, and so also of an unfinished one
        board = load_leaderboard(where, component.name)
        print_csv([row for row in board.runs if not options.models or row.model_id in options.models])
        if not fail_on:
            return EXIT_OK
    if not chosen:
        raise LeaderboardError(f"{where} holds no complete run yet; --format csv shows the others")
    by_model = {
        model_id: _versions([runs[-1] for runs in versions.values()], archive, settings.policy)
        for model_id, versions in sorted(chosen.items())
    }
    newest = max((pairs[-1].candidate for pairs in by_model.values()), key=lambda record: record.timestamp)
    judged = history_of(component.name, by_model, rules_for(settings, options.config, newest))
    if options.format == "junit":
        print_junit(judged)
    elif options.format != "csv":
        print_history(judged, options.format)
    return exit_code(_newest_verdict(judged), fail_on)


def _versions(newest: list[RecordedRun], archive: Archive, policy: Policy) -> list[Pair]:
    """Return a model's versions, each beside the one before; only the highest is also held against the anchor."""
    pairs = [pair_of(archive.record(run), next_lower(archive.entries, run), archive, policy) for run in newest]
    return [*(replace(pair, anchor=None, anchor_again=(), look=1) for pair in pairs[:-1]), pairs[-1]]


def _newest_verdict(judged: History) -> VerdictName:
    """Return the verdict on the highest version that any model has; incomparable where it is a model's first."""
    newest = [model.points[-1] for model in judged.models]
    highest = max((point.version for point in newest), key=semver.Version.parse)
    steps = [point.step for point in newest if point.version == highest]
    return component_verdict("incomparable" if step is None else step.verdict for step in steps)
