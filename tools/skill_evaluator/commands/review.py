"""`skill-evaluator review`: people label what judges leave to them, in the terminal or on a page. Makes no call."""

import datetime
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer
from rich.text import Text

from skill_evaluator.display.options import ConfigOption, FormatOption, argument, option, options, shared
from skill_evaluator.display.sheets import show, write
from skill_evaluator.errors import EXIT_OK, JudgeError
from skill_evaluator.files import replace_text
from skill_evaluator.judges.people.items import ReviewItem, items_from, sampled
from skill_evaluator.judges.people.queue import QUEUE, ReviewQueue, labels_table, latest, queue_in, read_labels_table
from skill_evaluator.judges.people.server import HOST, ReviewServer
from skill_evaluator.judges.people.steps import first_shown, label_from, shown_outputs, steps_of
from skill_evaluator.reports.reviewing import item_pieces, print_review_status, step_text
from skill_evaluator.text import counted

EXAMPLES = {
    "review_label": ("skill-evaluator review label --reviewer ada",),
    "review_serve": ("skill-evaluator review serve --reviewer ada",),
    "review_add": ("skill-evaluator review add pairs.jsonl --sample 20",),
    "review_export": (
        "skill-evaluator review export --out labels.csv",
        "skill-evaluator review export --labels labels.jsonl",
    ),
    "review_import": ("skill-evaluator review import labels.csv",),
    "review_status": ("skill-evaluator review status",),
}
Reviewer = Annotated[str, shared("Who labels: a name in the repository.", metavar="NAME")]
OrderSeed = Annotated[int, shared("Seed of the order in which each reviewer sees the two outputs.")]
_INTERRUPT, _END = "\x03", "\x04"


def queue_with_items(config: Path) -> ReviewQueue:
    """Return the queue; raise JudgeError where nothing was ever queued."""
    queue = queue_in(config)
    if not (queue.folder / QUEUE).exists():
        raise JudgeError(f"{queue.folder / QUEUE} does not exist; queue something with `review add FILE`")
    return queue


def now() -> str:
    """Return this moment as the files have it."""
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


@options
class ReviewLabelOptions(ConfigOption):
    """The options of `review`."""

    reviewer: Reviewer
    seed: OrderSeed = 0


class _QuitError(Exception):
    """The reviewer has had enough for now."""


class _SkipError(Exception):
    """The reviewer leaves this item for later."""


def review_label(options: ReviewLabelOptions) -> int:
    """Label what the queue holds, item by item, with single keys; goes on where it stopped. Makes no call.

    Each answer is kept as soon as an item is complete. Outputs are called A and B, in an order by chance.
    """
    queue = queue_with_items(options.config)
    items = queue.items()
    counting = latest(queue.labels(items))
    left = [item for item in items.values() if options.reviewer not in counting.get(item.id, {})]
    print(f"{counted(len(left), 'item')} to label; s skips one, t adds a note, q ends", file=sys.stderr)
    kept = 0
    for place, item in enumerate(left, 1):
        show([Text(f"\n{place} of {len(left)}", "dim")])
        first = first_shown(item, options.reviewer, options.seed)
        try:
            keys, note = _ask(item, shown_outputs(item, first))
        except _SkipError:
            continue
        except _QuitError:
            break
        kept += len(queue.label([label_from(item, options.reviewer, first, keys, now(), note)]))
    print(f"{counted(kept, 'label')} kept in {queue.folder}", file=sys.stderr)
    return EXIT_OK


def _ask(item: ReviewItem, outputs: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """Show an item and take its answers; return the keys by step, and a note if one was written."""
    show(item_pieces(item, outputs))
    keys: dict[str, str] = {}
    note = ""
    for step in steps_of(item):
        if not step.is_asked(keys):
            continue
        show([step_text(step)])
        key = _read_key()
        while key not in step.choices:
            if key == "q":
                raise _QuitError
            if key == "s":
                raise _SkipError
            if key == "t":
                print("note: ", end="", file=sys.stderr, flush=True)
                note = sys.stdin.readline().strip()
            key = _read_key()
        keys[step.name] = key
    return keys, note


def _read_key() -> str:
    """Return the key that is pressed, or the next line where no terminal is there; the end means q."""
    print("> ", end="", file=sys.stderr, flush=True)
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip() if line else "q"
    try:
        key = str(typer.getchar())
    except (EOFError, KeyboardInterrupt):
        key = "q"
    print(key if key.isprintable() else "", file=sys.stderr)
    return "q" if key in (_INTERRUPT, _END) else key


@options
class ReviewServeOptions(ConfigOption):
    """The options of `review serve`."""

    reviewer: str = option("Who labels; without it the page asks.", "", metavar="NAME")
    port: int = option("Default: any that is free.", 0, min=0, max=65535)
    seed: OrderSeed = 0


def review_serve(options: ReviewServeOptions) -> int:
    """Show the review queue as a page in the browser, for this machine alone, until Ctrl-C. Makes no call.

    The address holds a token: only who has it can read or label. Several people may open it, each with a name.
    """
    queue = queue_with_items(options.config)
    items = queue.items()
    queue.labels(items)  # what is wrong with them is said now, and not on the page
    try:
        server = ReviewServer(queue, options.port, options.seed)
    except OSError as problem:
        raise JudgeError(f"cannot listen on {HOST}:{options.port}: {problem.strerror}; choose another --port") from None
    query = f"?{urlencode({'reviewer': options.reviewer})}" if options.reviewer else ""
    print(f"{counted(len(items), 'item')} to review at {server.address}{query} (Ctrl-C ends)", flush=True)
    with server, suppress(KeyboardInterrupt):  # which is how it is ended
        server.serve_forever()
    return EXIT_OK


@options
class ReviewAddOptions(ConfigOption):
    """The options of `review add`."""

    file: Path = argument("JSON Lines: id, output_1, output_2; or baseline_output, candidate_output.", metavar="FILE")
    sample: int | None = option("Take N items at random.", min=1)
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
        from skill_evaluator.judges.people.labelled import labelled_items, merge_labels  # imports numpy

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


@options
class ReviewStatusOptions(ConfigOption, FormatOption):
    """The options of `review status`."""


def review_status(options: ReviewStatusOptions) -> int:
    """Say how far the queue is, how far its reviewers agree, and which items they see differently. Makes no call."""
    from skill_evaluator.judges.people.labelled import review_status as status_of  # imports numpy: not for the others

    queue = queue_with_items(options.config)
    items = queue.items()
    print_review_status(status_of(items, queue.labels(items)), options.format)
    return EXIT_OK
