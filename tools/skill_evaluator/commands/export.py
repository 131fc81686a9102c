"""`skill-evaluator export`: records as tables, and verdicts as tests, for other programs. Makes no call."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    OnlyModels,
    argument,
    component_names,
    option,
    options,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import write
from skill_evaluator.errors import EXIT_OK, LeaderboardError, RunError
from skill_evaluator.exchange.exported import TABLES, Row, Test, junit_text, table_blocks, verdict_suites
from skill_evaluator.files import replace_blocks
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.records.selection import choose, runs_of_models
from skill_evaluator.runner.journal import RECORD, find_run
from skill_evaluator.text import counted, nearest
from skill_evaluator.verdicts.history.component import verdict_on

EXAMPLES = (
    "skill-evaluator export --table cases --to parquet --out cases.parquet",
    "skill-evaluator export <component> --table leaves > leaves.csv",
    "skill-evaluator export --to junit --out verdicts.xml",
)


@options
class ExportOptions(ComponentsOption, ConfigOption):
    """The options of `export`."""

    sources: tuple[str, ...] = argument(
        "Components, run folders, run ids, or files of records; default: all components.",
        (),
        metavar="[SOURCE]...",
        autocompletion=component_names,
        show_default=False,
    )
    to: Literal["csv", "jsonl", "parquet", "junit"] = option("The form to write.", "csv")
    table: Literal["records", "cases", "leaves"] = option(
        "A row a run, an answer, or a field of a case (of csv, jsonl, parquet).", "records"
    )
    out: Path | None = option("Default: stdout.", metavar="FILE")
    models: OnlyModels = ()


def export(options: ExportOptions) -> int:
    """Write records as tables (CSV, JSON Lines, Parquet), or verdicts as JUnit XML. Makes no call."""
    if options.to == "junit":
        _write([junit_text(_suites(options), "skill-evaluator")], options.out)
        return EXIT_OK
    if options.to == "parquet" and options.out is None:
        raise LeaderboardError("Parquet is no text to print; give --out FILE")
    table, count = TABLES[options.table], 0

    def rows() -> Iterator[Row]:
        nonlocal count
        for record in _records(options):
            for row in table.rows(record):
                count += 1
                yield row

    _write(table_blocks(table, rows(), options.to), options.out)
    if options.out is not None:
        print(f"{counted(count, 'row')} written to {visible(str(options.out))}")
    return EXIT_OK


def _records(options: ExportOptions) -> Iterator[Record]:
    """Yield the records that are named, one at a time, of a component the oldest first; raise LeaderboardError."""
    paths = [path for source in options.sources or _components(options) for path in _paths(source, options)]
    if not paths:
        raise LeaderboardError(f"nothing is recorded in {', '.join(options.sources) or options.components} yet")
    models = set()
    for path in dict.fromkeys(paths):
        record = read_record(path)
        models.add(record.model_id)
        if not options.models or record.model_id in options.models:
            yield record
    for model_id in options.models:
        if model_id not in models:
            raise LeaderboardError(f"no record of model '{model_id}' is among them {nearest(model_id, models)}")


def _components(options: ExportOptions) -> list[str]:
    return sorted({path.parents[2].name for path in options.components.glob("*/evals/records/*.json")})


def _paths(source: str, options: ExportOptions) -> list[Path]:
    """Return the files of the records that a source names."""
    if (options.components / source / "prompt.md").exists():
        return sorted((options.components / source / "evals" / "records").glob("*.json"))
    if Path(source).is_file():
        return [Path(source)]
    recorded = [*options.components.glob(f"*/evals/records/{source}.json")] if is_file_name(source) else []
    try:
        folder = find_run(source, options.components)
    except RunError:
        if recorded:
            return recorded
        names = sorted(path.parent.name for path in options.components.glob("*/prompt.md"))
        raise LeaderboardError(
            f"'{source}' is no component, run or file of a record {nearest(source, names)}"
        ) from None
    if not (folder / RECORD).exists():
        raise LeaderboardError(f"{folder} has no {RECORD} yet: `skill-evaluator score {folder}` writes it")
    return [folder / RECORD]


def _suites(options: ExportOptions) -> Iterator[tuple[str, Iterable[Test]]]:
    """Yield a suite for each component and model that `compare` would judge."""
    settings = load_settings(options.config)
    for name in options.sources or _components(options):
        component = load_component(options.components, name, settings.limits)
        archive = Archive(component)
        if not archive.entries:
            raise LeaderboardError(f"{component.leaderboard_path} holds no run yet; evaluate '{name}' first")
        entries = runs_of_models(archive.entries, options.models, component.leaderboard_path)
        records = [archive.record(choice.candidate) for choice in choose(entries, None, None).choices]
        yield from verdict_suites(records, verdict_on(records, component, archive, settings, options.config))


def _write(blocks: Iterable[str | bytes], out: Path | None) -> None:
    if out is not None:
        replace_blocks(out, blocks)
        return
    for block in blocks:
        write(block if isinstance(block, str) else block.decode())
