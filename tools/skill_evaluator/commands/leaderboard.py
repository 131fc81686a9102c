"""`skill-evaluator leaderboard`: which model should we ship? Recorded models beside each other. Makes no call."""

from collections.abc import Sequence

from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    FormatOption,
    Names,
    OnlyModels,
    option,
    options,
)
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Settings, load_settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.selection import runs_of_models
from skill_evaluator.reports.ranking import print_rankings
from skill_evaluator.verdicts.history.component import ranked_models
from skill_evaluator.verdicts.planning.advice import ModelRanking

EXAMPLES = (
    "skill-evaluator leaderboard",
    "skill-evaluator leaderboard <component> --model <model> --model <model>",
)


@options
class LeaderboardOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `leaderboard`."""

    skills: Names = ()
    models: OnlyModels = ()
    version: str | None = option("Default: the highest that a model has.", metavar="VERSION")


def leaderboard(options: LeaderboardOptions) -> int:
    """Rank the models of each component: who is told apart, what each costs, and which one to ship. Makes no call."""
    settings = load_settings(options.config)
    names = options.skills or sorted(path.parent.name for path in options.components.glob("*/leaderboard.json"))
    if not names:
        raise LeaderboardError(f"no component in {options.components} has a recorded run yet; evaluate one first")
    rankings = _rank(names, options, settings)
    print_rankings(rankings, options.format)
    return EXIT_OK


def _rank(names: Sequence[str], options: LeaderboardOptions, settings: Settings) -> list[ModelRanking]:
    rankings = []
    for name in names:
        component = load_component(options.components, name, settings.limits)
        archive = Archive(component)
        if not archive.entries:
            raise LeaderboardError(f"{component.leaderboard_path} holds no run yet; evaluate '{name}' first")
        entries = runs_of_models(archive.entries, options.models, component.leaderboard_path)
        rankings.append(ranked_models(entries, options.version, component, archive, settings, options.config))
    return rankings
