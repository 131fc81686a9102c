"""`skill-evaluator review add`: queue outputs for people to label, all of a file or a sample of it. Makes no call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import CONFIG, Config
from skill_evaluator.commands.review_options import queue_in
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.review.making import items_from, sampled
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review add pairs.jsonl --sample 20",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewAddOptions:
    """The options of `review add`."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="JSON Lines: id, output_1, output_2; or baseline_output, candidate_output."
        ),
    ]
    sample: Annotated[int | None, typer.Option("--sample", min=1, help="Only so many, by chance.")] = None
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample.")] = 0
    dimensions: Annotated[
        tuple[str, ...],
        typer.Option("--dimensions", metavar="NAME", help="What a candidate is compared in; repeatable."),
    ] = ()
    preset: Annotated[str, typer.Option("--preset", help="Dimensions by name: default, chat, code, checklist.")] = (
        "default"
    )
    config: Config = CONFIG


def review_add(options: ReviewAddOptions) -> int:
    """Queue outputs for people to label, all of a file or a sample of it; adding twice changes nothing.

    The file is one that `judge pairwise` or `judge regression` reads. What these leave to people they queue themselves.
    """
    items = items_from(options.file, options.dimensions, options.preset)
    chosen = sampled(items, options.sample, options.seed)
    queue = queue_in(options.config)
    fresh = queue.add(chosen)
    there = len(chosen) - len(fresh)
    print(f"{counted(len(fresh), 'item')} added to {queue.folder}{f', {there} there already' if there else ''}")
    return EXIT_OK
