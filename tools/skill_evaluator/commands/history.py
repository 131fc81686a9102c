"""`skill-evaluator history`: every recorded version of every model, and which of them made it worse. Makes no call."""

import semver

from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    FormatOption,
    OnlyModels,
    Skill,
    named_verdicts,
    option,
    options,
)
from skill_evaluator.display.addresses import Site
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import VerdictName, load_settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.selection import runs_of_models, runs_of_versions
from skill_evaluator.reports.history import print_history
from skill_evaluator.verdicts.decide.rules import component_verdict, exit_code
from skill_evaluator.verdicts.history.component import kept_of
from skill_evaluator.verdicts.history.series import History, judged_history

EXAMPLES = (
    "skill-evaluator history <component>",
    "skill-evaluator history <component> --fail-on regressed",
)
EXITS = {3: "regressed, if --fail-on names it", 4: "another verdict that --fail-on names"}


@options
class HistoryOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `history`."""

    skill: Skill
    models: OnlyModels = ()
    fail_on: tuple[str, ...] = option(
        "Verdicts on the highest version that fail; default: none.", (), metavar="VERDICT,..."
    )


def history(options: HistoryOptions) -> int:
    """Show every recorded version beside every model, each judged against the one before, and what made it worse.

    The highest version is also held against the last accepted one (the anchor), so that small losses add up.
    """
    fail_on = named_verdicts(options.fail_on)
    settings = load_settings(options.config)
    component = load_component(options.components, options.skill, settings.limits)
    where = component.leaderboard_path
    archive = Archive(component)
    entries = runs_of_models(archive.entries, options.models, where)
    if not entries:
        raise LeaderboardError(f"{where} holds no run yet; evaluate '{component.name}' first")
    if not runs_of_versions(entries):
        raise LeaderboardError(f"{where} holds no complete run yet; `export` writes the others")
    kept = kept_of(component, archive, settings, options.config)
    judged = kept.history(
        entries, lambda: judged_history(entries, archive, settings, options.config, component.name, kept.steps)
    )
    print_history(judged, options.format, Site(settings.site.address))
    return exit_code(_newest_verdict(judged), fail_on)


def _newest_verdict(judged: History) -> VerdictName:
    """Return the verdict on the highest version that any model has; incomparable where it is a model's first."""
    newest = [model.points[-1] for model in judged.models]
    highest = max((point.version for point in newest), key=semver.Version.parse)
    steps = [point.step for point in newest if point.version == highest]
    return component_verdict("incomparable" if step is None else step.verdict for step in steps)
