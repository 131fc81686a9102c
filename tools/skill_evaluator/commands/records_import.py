"""`skill-evaluator records import`: results that another tool measured become records of a component. Makes no call."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import COMPONENTS, CONFIG, Components, Config
from skill_evaluator.display import number
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.files import replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.components import check_semver, load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.archive import read_entries
from skill_evaluator.records.elsewhere_tools import read_results
from skill_evaluator.records.leaderboard import add_record
from skill_evaluator.scoring.imported import record_of
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator records import results.json --skill <component> --version 1.2.0",
    "skill-evaluator records import logs/2026-11-22_capitals.eval",
    "skill-evaluator records import scores.csv --skill <component> --version 1.2.0 --model <model>",
)
_PROMPT = """---
name: {name}
version: {version}
output: text
---
The prompt of this component is kept elsewhere. Here are the results that were imported from {tool}.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsImportOptions:
    """The options of `records import`."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="promptfoo's .json, inspect's .eval or .json, lm-eval's samples, .csv, .tsv, .jsonl."
        ),
    ]
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="NAME", help="The component; default: the source's task.")
    ] = None
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="What was measured; default: as the source says.")
    ] = None
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="ID", help="The model, where the source names none.")
    ] = None
    components: Components = COMPONENTS
    config: Config = CONFIG


def records_import(options: RecordsImportOptions) -> int:
    """Make records of another tool's results, for `compare`, `history` and `leaderboard`; importing again adds nothing.

    A component that is not there is laid out with a prompt.md that says where its results come from.
    """
    settings = load_settings(options.config)
    for run in read_results(options.file):
        skill, version, model = options.skill or run.skill, options.version or run.version, options.model or run.model
        lacking = {"--skill NAME": skill, "--version VERSION": version, "--model ID": model}
        unsaid = [flag for flag, value in lacking.items() if value is None]
        if unsaid or skill is None or version is None:
            raise LeaderboardError(f"{options.file} does not say it; give {' and '.join(unsaid)}")
        check_semver(version, options.file)
        if not is_component_name(skill):
            raise LeaderboardError(f"'{skill}' cannot be the name of a component; give --skill NAME")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        coverage = settings.required_coverage
        record = record_of(run, skill=skill, version=version, model=model, timestamp=now, required_coverage=coverage)
        folder = options.components / skill
        if not (folder / "prompt.md").exists():
            replace_text(folder / "prompt.md", _PROMPT.format(name=skill, version=version, tool=run.tool))
        component = load_component(options.components, skill, settings.limits)
        path = component.records_dir / f"{record.run_id}.json"
        if any(entry.run_id == record.run_id for entry in read_entries(component.leaderboard_path)):
            print(visible(f"{path} is there already"))
            continue
        add_record(component.leaderboard_path, path, record)
        score = number(record.accuracy[record.primary_metric].strict_mean)
        size = f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}"
        print(visible(f"{path}: {run.tool}, {record.model_id}, {size}, {record.primary_metric} {score}"))
    return EXIT_OK
