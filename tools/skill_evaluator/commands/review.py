"""`skill-evaluator review`: people label what judges leave to them, in the terminal or on a page. Makes no call."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer
from rich.text import Text

from skill_evaluator.api import Library
from skill_evaluator.display.options import ConfigOption, argument, option, options, rare, shared
from skill_evaluator.display.sheets import Format, show, write
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.reports.reviewing import QuitError, SkipError, ask_reviewer, print_queued, print_review_status
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
OrderSeed = Annotated[int, shared("Seed of the order in which each reviewer sees the two outputs.", hidden=True)]
_INTERRUPT, _END = "\x03", "\x04"


@options
class ReviewLabelOptions(ConfigOption):
    """The options of `review`."""

    reviewer: Reviewer
    seed: OrderSeed = 0


def review_label(options: ReviewLabelOptions) -> int:
    """Label outputs in the terminal, with single keys; goes on where it stopped. Makes no call.

    Each answer is kept as soon as an item is complete. Outputs are called A and B, in an order by chance.
    """
    queue, screens = Library(config=options.config).judge.review(options.reviewer, options.seed)
    print(f"{counted(len(screens), 'item')} to label; s skips one, t adds a note, q ends", file=sys.stderr)
    kept = 0
    for place, screen in enumerate(screens, 1):
        show([Text(f"\n{place} of {len(screens)}", "dim")])
        try:
            keys, note = ask_reviewer(screen, _read_key)
        except SkipError:
            continue
        except QuitError:
            break
        kept += len(queue.label([screen.label(keys, note=note)]))
    print(f"{counted(kept, 'label')} kept in {queue.folder}", file=sys.stderr)
    return EXIT_OK


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
    port: int = option("Port of the page; default: any.", 0, min=0, max=65535, show_default=False)
    seed: OrderSeed = 0


def review_serve(options: ReviewServeOptions) -> int:
    """Label outputs on a page in the browser; for this machine alone, until Ctrl-C. Makes no call.

    The address holds a token: only who has it can read or label. Several people may open it, each with a name.
    """
    server = Library(config=options.config).judge.review_page(options.port, options.seed)
    query = f"?{urlencode({'reviewer': options.reviewer})}" if options.reviewer else ""
    print(
        f"{counted(len(server.queue.items()), 'item')} to review at {server.address}{query} (Ctrl-C ends)", flush=True
    )
    with server, suppress(KeyboardInterrupt):  # which is how it is ended
        server.serve_forever()
    return EXIT_OK


@options
class ReviewAddOptions(ConfigOption):
    """The options of `review add`."""

    file: Path = argument("JSON Lines: id, output_1, output_2; or baseline_output, candidate_output.", metavar="FILE")
    sample: int | None = option("Take N items at random.", min=1)
    seed: int = rare("Seed of the sample.", 0)
    dimensions: tuple[str, ...] = option("A dimension to compare candidates in; repeatable.", (), metavar="NAME")
    preset: str = rare("Dimensions by name: default, chat, code, checklist.", "default", metavar="NAME")


def review_add(options: ReviewAddOptions) -> int:
    """Queue outputs for people to label; all of a file or a sample of it. Adding twice changes nothing.

    `judge pairwise` or `judge regression` read the same file. What these leave to people they queue themselves.
    """
    how = {"dimensions": options.dimensions, "preset": options.preset}
    judge = Library(config=options.config).judge
    return print_queued(judge.queue_for_review(options.file, sample=options.sample, seed=options.seed, **how), "item")


@options
class ReviewExportOptions(ConfigOption):
    """The options of `review export`."""

    out: Path | None = option("Where the CSV is written; default: stdout.", metavar="FILE")
    labels: Path | None = option("Instead: append the labels people agree on, for `judge calibrate`.", metavar="FILE")


def review_export(options: ReviewExportOptions) -> int:
    """Write the labels that count as CSV; or, with --labels, what people agree on for `judge calibrate`.

    Pairs and scored outputs are of the split `development`; an item that is held out there stays as it is. Of
    regressions it takes only what was drawn by chance.
    """
    judge = Library(config=options.config).judge
    if options.labels is not None:
        exported = judge.export_labels(options.labels)
        left_out = f"left out: {exported.disputed} disputed, {exported.held_out} held out there"
        print(f"{counted(exported.taken, 'label')} in {options.labels}; {left_out}")
        return EXIT_OK
    table = judge.review_table(options.out)
    if options.out is None:
        write(table)
    else:
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
    return print_queued(Library(config=options.config).judge.import_labels(options.file), "label")


def review_status(options: ConfigOption, form: Format) -> int:
    """Say how far the queue is, and how far reviewers agree; which items they see differently. Makes no call."""
    print_review_status(Library(config=options.config).judge.review_status(), form)
    return EXIT_OK
