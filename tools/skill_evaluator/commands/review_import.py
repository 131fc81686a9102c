"""`skill-evaluator review import`: labels of a CSV file into the repository. Makes no call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import CONFIG, Config
from skill_evaluator.commands.review_options import now, queue_with_items
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.review.table import read_labels_table
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review import labels.csv",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewImportOptions:
    """The options of `review import`."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV as `review export` writes it.")]
    config: Config = CONFIG


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
