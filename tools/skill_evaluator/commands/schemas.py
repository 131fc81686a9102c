"""`skill-evaluator schemas`: write the JSON Schema of every file format, for editors and other tools."""

from pathlib import Path

from skill_evaluator.api.schemas import write_schemas
from skill_evaluator.display.options import CONFIG, argument, options
from skill_evaluator.errors import EXIT_OK

EXAMPLES = ("skill-evaluator schemas .evaluator/schemas",)


@options
class SchemasOptions:
    """The options of `schemas`."""

    folder: Path = argument("Where to write them.", CONFIG / "schemas")


def schemas(options: SchemasOptions) -> int:
    """Write the JSON Schemas of all file formats."""
    for path in write_schemas(options.folder):
        print(path)
    return EXIT_OK
