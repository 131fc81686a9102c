"""`skill-evaluator schemas`: write the JSON Schema of every file format, for editors and other tools."""

from pathlib import Path

from skill_evaluator.api.schemas import FORMATS, schema_text
from skill_evaluator.display.options import CONFIG, argument, options
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import replace_text

EXAMPLES = ("skill-evaluator schemas .evaluator/schemas",)


@options
class SchemasOptions:
    """The options of `schemas`."""

    folder: Path = argument("Where to write them.", CONFIG / "schemas")


def schemas(options: SchemasOptions) -> int:
    """Write the JSON Schema of every file format, for editors and other tools."""
    for name in FORMATS:
        path = options.folder / f"{name}.json"
        replace_text(path, schema_text(name))
        print(path)
    return EXIT_OK
