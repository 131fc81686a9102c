"""What the commands of the review queue share: where it lies, and who reviews."""

import datetime
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.people.queue import QUEUE, REVIEWS, ReviewQueue

Reviewer = Annotated[str, typer.Option("--reviewer", metavar="NAME", help="Who labels: a name in the repository.")]
OrderSeed = Annotated[
    int, typer.Option("--seed", help="Seed of the order in which each reviewer sees the two outputs.")
]


def queue_in(config: Path) -> ReviewQueue:
    """Return the queue of a configuration folder."""
    return ReviewQueue(folder=config / REVIEWS)


def queue_with_items(config: Path) -> ReviewQueue:
    """Return the queue; raise JudgeError where nothing was ever queued."""
    queue = queue_in(config)
    if not (queue.folder / QUEUE).exists():
        raise JudgeError(f"{queue.folder / QUEUE} does not exist; queue something with `review add FILE`")
    return queue


def now() -> str:
    """Return this moment as the files have it."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
