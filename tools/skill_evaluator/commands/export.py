"""`skill-evaluator export`: export records as tables, and verdicts as JUnit XML. Makes no call."""

from skill_evaluator.api import Library
from skill_evaluator.display.options import folders_of, keywords_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import write
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.exchange.exported import ExportRequest
from skill_evaluator.text import counted

EXAMPLES = (
    "skill-evaluator export --table cases --to jsonl --out cases.jsonl",
    "skill-evaluator export <component> --table leaves > leaves.csv",
    "skill-evaluator export --to junit --out verdicts.xml",
)


def export(options: ExportRequest) -> int:
    """Export records as tables, or verdicts as JUnit XML. Makes no call."""
    exported = Library(**folders_of(options)).export(**keywords_of(options, ExportRequest, "out"))
    if options.out is None:
        write(exported.text)
        return EXIT_OK
    exported.save(options.out)
    if options.to != "junit":
        print(f"{counted(exported.rows, 'row')} written to {visible(str(options.out))}")
    return EXIT_OK
