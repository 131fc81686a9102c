"""`skill-evaluator review export`: labels as CSV, or as labelled pairs that judges are measured by. Makes no call."""

from pathlib import Path

from skill_evaluator.commands.options import ConfigOption, flag, option, options
from skill_evaluator.commands.review_options import queue_with_items
from skill_evaluator.display.sheets import write
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.files import replace_text
from skill_evaluator.judges.calibration.files import read_pairs, read_scored
from skill_evaluator.judges.review.edge_cases import proposed_edge_cases
from skill_evaluator.judges.review.labelled import labelled_pairs, labelled_regressions, merge_items, scored_items
from skill_evaluator.judges.review.labels import latest
from skill_evaluator.judges.review.table import labels_table
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review export --out labels.csv", "skill-evaluator review export --items items.jsonl")


@options
class ReviewExportOptions(ConfigOption):
    """The options of `review export`."""

    out: Path | None = option("Where the CSV is written; default: stdout.", metavar="FILE")
    items: Path | None = option("Instead: add what people agree on to the items of `judge calibrate`.", metavar="FILE")
    scores: Path | None = option("Instead: the same of outputs that people scored.", metavar="FILE")
    labels: Path | None = option("Instead: write what people say of regressions drawn by chance.", metavar="FILE")
    edge_cases: bool = flag("Instead: print reviewers' notes as edge cases for a rubric, in YAML.")


def review_export(options: ReviewExportOptions) -> int:
    """Write the labels that count as CSV; or, with --items, what people agree on as pairs for `judge calibrate`.

    Those pairs are of the split `development`; an item that is held out there stays as it is. So it is with --scores,
    which adds outputs with each person's scores. With --labels it writes what `judge calibrate --batch` takes: what
    people say of regressions that were drawn by chance.
    """
    queue = queue_with_items(options.config)
    items = queue.items()
    counting = latest(queue.labels(items))
    if options.items is not None:
        labelled = labelled_pairs(items, counting)
        taken, kept_out = merge_items(options.items, labelled.pairs, read_pairs)
        print(
            f"{counted(taken, 'pair')} in {options.items}, split development; left out: {labelled.disputed} disputed, "
            f"{kept_out} held out there"
        )
        return EXIT_OK
    if options.scores is not None:
        taken, kept_out = merge_items(options.scores, scored_items(items, counting), read_scored)
        print(f"{counted(taken, 'output')} in {options.scores}, split development; left out: {kept_out} held out there")
        return EXIT_OK
    if options.labels is not None:
        labelled = labelled_regressions(items, counting)
        replace_text(options.labels, "".join(f"{label.model_dump_json()}\n" for label in labelled.labels))
        print(f"{counted(len(labelled.labels), 'label')} in {options.labels}; left out: {labelled.disputed} disputed")
        return EXIT_OK
    if options.edge_cases:
        write(proposed_edge_cases(items, counting))
        return EXIT_OK
    table = labels_table(items, (label for given in counting.values() for label in given.values()))
    if options.out is None:
        write(table)
    else:
        replace_text(options.out, table)
        print(f"{counted(table.count(chr(10)) - 1, 'line')} written to {options.out}")
    return EXIT_OK
