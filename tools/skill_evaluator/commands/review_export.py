"""`skill-evaluator review export`: labels as CSV, or as the labels that judges are measured by. Makes no call."""

from pathlib import Path

from skill_evaluator.commands.options import ConfigOption, option, options
from skill_evaluator.commands.review_options import queue_with_items
from skill_evaluator.display.sheets import write
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import replace_text
from skill_evaluator.judges.people.labelled import labelled_items, merge_labels
from skill_evaluator.judges.people.queue import labels_table, latest
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review export --out labels.csv", "skill-evaluator review export --labels labels.jsonl")


@options
class ReviewExportOptions(ConfigOption):
    """The options of `review export`."""

    out: Path | None = option("Where the CSV is written; default: stdout.", metavar="FILE")
    labels: Path | None = option("Instead: add what people agree on, for `judge calibrate`.", metavar="FILE")


def review_export(options: ReviewExportOptions) -> int:
    """Write the labels that count as CSV; or, with --labels, what people agree on for `judge calibrate`.

    Pairs and scored outputs are of the split `development`; an item that is held out there stays as it is. Of
    regressions it takes only what was drawn by chance.
    """
    queue = queue_with_items(options.config)
    items = queue.items()
    counting = latest(queue.labels(items))
    if options.labels is not None:
        labelled = labelled_items(items, counting)
        taken, kept_out = merge_labels(options.labels, labelled.lines)
        print(
            f"{counted(taken, 'label')} in {options.labels}; left out: {labelled.disputed} disputed, {kept_out} held "
            "out there"
        )
        return EXIT_OK
    table = labels_table(items, (label for given in counting.values() for label in given.values()))
    if options.out is None:
        write(table)
    else:
        replace_text(options.out, table)
        print(f"{counted(table.count(chr(10)) - 1, 'line')} written to {options.out}")
    return EXIT_OK
