"""`skill-evaluator review`: label what the queue holds, in the terminal, with single keys. Makes no call."""

import sys

import typer
from rich.text import Text

from skill_evaluator.commands.options import ConfigOption, options
from skill_evaluator.commands.review_options import OrderSeed, Reviewer, now, queue_with_items
from skill_evaluator.display.sheets import show
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.people.items import ReviewItem
from skill_evaluator.judges.people.queue import latest
from skill_evaluator.judges.people.steps import first_shown, label_from, shown_outputs, steps_of
from skill_evaluator.reports.reviewing import item_pieces, step_text
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator review label --reviewer ada",)
_INTERRUPT, _END = "\x03", "\x04"


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
