"""`skill-evaluator history`: every recorded version of every model, and which of them made it worse. Makes no call."""

from dataclasses import dataclass
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
from skill_evaluator.library.config import VerdictName, load_settings
from skill_evaluator.records.archive import load_record, read_entries
from skill_evaluator.records.leaderboard import load_leaderboard
from skill_evaluator.records.selection import newest_of_versions, runs_of_models
from skill_evaluator.reports.history import print_csv, print_history, print_junit
from skill_evaluator.verdicts.history import History, history_of
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

    Exit code: 0, unless --fail-on names the verdict on the highest version: 3 if it is regressed, else 4.
    """
    fail_on = named_verdicts(options.fail_on)
    settings = load_settings(options.config)
    component = load_component(options.components, options.skill)
    where = component.leaderboard_path
    entries = runs_of_models(read_entries(where), options.models, where)
    if not entries:
        raise LeaderboardError(f"{where} holds no run yet; evaluate '{component.name}' first")
    chosen = newest_of_versions(entries)
    if options.format == "csv":  # of every run, and so also of an unfinished one
        board = load_leaderboard(where, component.name)
        print_csv([row for row in board.runs if not options.models or row.model_id in options.models])
        if not fail_on:
            return EXIT_OK
    if not chosen:
        raise LeaderboardError(f"{where} holds no complete run yet; --format csv shows the others")
    by_model = {
        model_id: [load_record(entry, component.records_dir) for entry in versions]
        for model_id, versions in sorted(chosen.items())
    }
    newest = max((records[-1] for records in by_model.values()), key=lambda record: record.timestamp)
    judged = history_of(component.name, by_model, rules_for(settings, options.config, newest))
    if options.format == "junit":
        print_junit(judged)
    elif options.format != "csv":
        print_history(judged, options.format)
    return exit_code(_newest_verdict(judged), fail_on)


def _newest_verdict(judged: History) -> VerdictName:
    """Return the verdict on the highest version that any model has; incomparable where it is a model's first."""
    newest = [model.points[-1] for model in judged.models]
    highest = max((point.version for point in newest), key=semver.Version.parse)
    steps = [point.step for point in newest if point.version == highest]
    return component_verdict("incomparable" if step is None else step.verdict for step in steps)
