"""`skill-evaluator review add`: queue outputs for people to label, all of a file or a sample of it. Makes no call."""

from pathlib import Path

from skill_evaluator.commands.options import ConfigOption, argument, option, options
from skill_evaluator.commands.review_options import queue_in
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.people.items import items_from, sampled
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review add pairs.jsonl --sample 20",)


@options
class ReviewAddOptions(ConfigOption):
    """The options of `review add`."""

    file: Path = argument("JSON Lines: id, output_1, output_2; or baseline_output, candidate_output.", metavar="FILE")
    sample: int | None = option("Only so many, by chance.", min=1)
    seed: int = option("Seed of the sample.", 0)
    dimensions: tuple[str, ...] = option("What a candidate is compared in; repeatable.", (), metavar="NAME")
    preset: str = option("Dimensions by name: default, chat, code, checklist.", "default")


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
