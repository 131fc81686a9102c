"""`skill-evaluator plan --detect DROP`: the cases and replicates that would show a drop, and their cost; no call."""

from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.commands.inputs import Format
from skill_evaluator.components import load_component
from skill_evaluator.errors import EXIT_OK, ConfigError, LeaderboardError
from skill_evaluator.regression.choosing import newest_of_versions, of_models, read_entries, record_of
from skill_evaluator.regression.sizing import SizingPlan, sizing_of
from skill_evaluator.reports.sizing_page import print_sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, typed."""

    names: tuple[str, ...]
    detect: float
    models: tuple[str, ...] = ()
    components: Path = Path("components")
    format: Format = "text"


def detect(options: Options) -> int:
    """Read the newest complete record of each model, work out the choices, print; returns the exit code."""
    if not 0 < options.detect < 1:  # not a number compares false
        raise ConfigError(f"--detect must be a drop between 0 and 1, such as 0.05, not {options.detect:g}")
    if len(options.names) != 1:
        raise ConfigError("--detect takes one component: skill-evaluator plan --detect 0.05 <component>")
    component = load_component(options.components, options.names[0])
    where = component.leaderboard_path
    entries = newest_of_versions(of_models(read_entries(where), options.models, where))
    if not entries:
        raise LeaderboardError(f"{where} holds no complete run to plan by; evaluate '{component.name}' first")
    records = [record_of(versions[-1], component.records_dir) for _, versions in sorted(entries.items())]
    models = [sizing_of(record, record.primary_metric, options.detect) for record in records]
    print_sizing(SizingPlan(skill=component.name, detect=options.detect, models=models), options.format)
    return EXIT_OK
