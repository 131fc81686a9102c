"""`skill-evaluator records import`: results that another tool measured become records of a component. Makes no call."""

from datetime import UTC, datetime
from pathlib import Path

from skill_evaluator.commands.options import leave_out
from skill_evaluator.display import number
from skill_evaluator.display.options import ComponentsOption, ConfigOption, SkipInvalid, argument, option, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, LeaderboardError, refuse
from skill_evaluator.exchange.foreign import ForeignRun, read_results
from skill_evaluator.exchange.imported import record_imported, record_of
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.components import check_semver
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.record import Record
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator records import results.json --skill <component> --version 1.2.0",
    "skill-evaluator records import logs/2026-11-22_capitals.eval",
    "skill-evaluator records import scores.csv --skill <component> --version 1.2.0 --model <model>",
)


@options
class RecordsImportOptions(ComponentsOption, ConfigOption):
    """The options of `records import`."""

    file: Path = argument(
        "promptfoo's .json, inspect's .eval or .json, lm-eval's samples, .csv, .tsv, .jsonl.", metavar="FILE"
    )
    skill: str | None = option("The component; default: the source's task.", metavar="NAME")
    version: str | None = option("What was measured; default: as the source says.", metavar="VERSION")
    model: str | None = option("The model, where the source names none.", None, "-m", metavar="ID")
    skip_invalid: SkipInvalid = False


def records_import(options: RecordsImportOptions) -> int:
    """Make records of another tool's results, for `compare`, `history` and `leaderboard`; importing again adds nothing.

    A component that is not there is laid out with a prompt.md that says where its results come from.
    """
    settings = load_settings(options.config)
    runs = read_results(options.file, leave_out if options.skip_invalid else refuse)
    records = [_record_of(run, options, settings.required_coverage) for run in runs]
    if not records:
        raise LeaderboardError(f"{options.file} holds no row that can be read")
    files = record_imported(records, options.components, settings.limits)
    for record in records:
        path, is_new = files[record.run_id]
        score = number(record.accuracy[record.primary_metric].strict_mean)
        size = f"{counted(record.n_cases, 'case')} × {counted(record.replicates, 'replicate')}"
        added = f": {record.provider}, {record.model_id}, {size}, {record.primary_metric} {score}"
        print(visible(f"{path}{added if is_new else ' is there already'}"))
    return EXIT_OK


def _record_of(run: ForeignRun, options: RecordsImportOptions, required_coverage: float) -> Record:
    """Return the record of a run, once it is said what was measured; raise LeaderboardError."""
    skill, version, model = options.skill or run.skill, options.version or run.version, options.model or run.model
    lacking = {"--skill NAME": skill, "--version VERSION": version, "--model ID": model}
    unsaid = [flag for flag, value in lacking.items() if value is None]
    if unsaid or skill is None or version is None:
        raise LeaderboardError(f"{options.file} does not say it; give {' and '.join(unsaid)}")
    check_semver(version, options.file)
    if not is_component_name(skill):
        raise LeaderboardError(f"'{skill}' cannot be the name of a component; give --skill NAME")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return record_of(run, skill=skill, version=version, model=model, timestamp=now, required_coverage=required_coverage)
