"""`skill-evaluator review import`: labels of a CSV file into the repository. Makes no call."""

from pathlib import Path

from skill_evaluator.commands.options import ConfigOption, argument, options
from skill_evaluator.commands.review_options import now, queue_with_items
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.people.queue import read_labels_table
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review import labels.csv",)


@options
class ReviewImportOptions(ConfigOption):
    """The options of `review import`."""

    file: Path = argument("CSV as `review export` writes it.", metavar="FILE")


def review_import(options: ReviewImportOptions) -> int:
    """Add the labels of a CSV file, as `review export` writes it; importing it again changes nothing.

    The whole file is checked before anything is written.
    """
    queue = queue_with_items(options.config)
    labels = read_labels_table(options.file, queue.items(), now())
    fresh = queue.label(labels)
    there = len(labels) - len(fresh)
    print(f"{counted(len(fresh), 'label')} added to {queue.folder}{f', {there} there already' if there else ''}")
    return EXIT_OK
