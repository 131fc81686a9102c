"""`skill-evaluator export`: records as tables, and verdicts as tests, for other programs. Makes no call."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from skill_evaluator.api import Library
from skill_evaluator.display.options import ComponentsOption, ConfigOption, OnlyModels, argument, option, options
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import write
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.exchange.exported import (
    TABLES,
    Row,
    junit_text,
    record_files,
    recorded_components,
    records_of,
    table_blocks,
    verdict_suites,
)
from skill_evaluator.files import replace_blocks
from skill_evaluator.text import counted

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
        completes="components",
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
    names = options.sources or recorded_components(options.components)
    blocks: Iterable[str | bytes]
    count = 0
    if options.to == "junit":
        library = Library(options.components, config=options.config)
        suites = verdict_suites(map(library.recorded, names), options.models)
        blocks = [junit_text(suites, "skill-evaluator")]
    elif options.to == "parquet" and options.out is None:
        raise LeaderboardError("Parquet is no text to print; give --out FILE")
    else:
        paths = [path for name in names for path in record_files(name, options.components)]
        if not paths:
            raise LeaderboardError(f"nothing is recorded in {', '.join(options.sources) or options.components} yet")

        def rows() -> Iterator[Row]:
            nonlocal count
            for record in records_of(paths, options.models):
                for row in TABLES[options.table].rows(record):
                    count += 1
                    yield row

        blocks = table_blocks(TABLES[options.table], rows(), options.to)
    if options.out is None:
        for block in blocks:
            write(block if isinstance(block, str) else block.decode())
        return EXIT_OK
    replace_blocks(options.out, blocks)
    if options.to != "junit":
        print(f"{counted(count, 'row')} written to {visible(str(options.out))}")
    return EXIT_OK
