"""Reviews on the terminal: an item with both outputs, and how far a queue is. What is asked is decided elsewhere."""

import sys
from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.pages import Block, Captioned, Heading, Lines, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format, Sheet, show
from skill_evaluator.errors import EXIT_OK
from skill_evaluator.judges.people.queue import Queued, ReviewStatus
from skill_evaluator.judges.people.steps import ReviewScreen, ReviewStep, differences
from skill_evaluator.reports.judging import row_of
from skill_evaluator.text import counted

_SHOWN_AS = "\n\t"


class QuitError(Exception):
    """The reviewer has had enough for now."""


class SkipError(Exception):
    """The reviewer leaves this item for later."""


def ask_reviewer(screen: ReviewScreen, read_key: Callable[[], str]) -> tuple[dict[str, str], str]:
    """Show an item and take its answers; return the keys by step, and a note if one was written.

    Raise SkipError or QuitError where the reviewer presses s or q.
    """
    show(_item_pieces(screen))
    keys: dict[str, str] = {}
    note = ""
    for step in screen.steps:
        if not step.is_asked(keys):
            continue
        show([_step_text(step)])
        key = read_key()
        while key not in step.choices:
            if key == "q":
                raise QuitError
            if key == "s":
                raise SkipError
            if key == "t":
                print("note: ", end="", file=sys.stderr, flush=True)
                note = sys.stdin.readline().strip()
            key = read_key()
        keys[step.name] = key
    return keys, note


def _item_pieces(screen: ReviewScreen) -> Iterator[Text]:
    """Yield the texts of an item under headings, with what either output has alone in bold."""
    item, outputs = screen.item, screen.outputs
    for name, text in (("Document", item.document), ("Reference", item.reference)):
        if text:
            yield _heading(name)
            yield Text(visible(text, keep=_SHOWN_AS))
    if len(outputs) == 1:
        yield _heading("Output")
        yield Text(visible(outputs[0], keep=_SHOWN_AS))
        return
    for name, pieces in zip("AB", differences(*outputs), strict=True):
        yield _heading(f"Output {name}")
        marked = Text()
        for part, own in pieces:
            marked.append(visible(part, keep=_SHOWN_AS), f"bold {'green' if name == 'A' else 'cyan'}" if own else "")
        yield marked


def _step_text(step: ReviewStep) -> Text:
    """Return a question with its keys."""
    text = Text("\n").append(visible(step.name), "bold")
    if step.text:
        text.append(f": {visible(step.text)}")
    for key, meaning in step.choices.items():
        text.append("\n  ").append(key, "bold").append(f"  {visible(meaning)}")
    return text


def _heading(name: str) -> Text:
    return Text(f"\n── {name} ──", "bold")


def print_queued(queued: Queued, noun: str) -> int:
    """Print how many items or labels came to the queue; return the exit code."""
    there = queued.given - queued.fresh
    print(f"{counted(queued.fresh, noun)} added to {queued.folder}{f', {there} there already' if there else ''}")
    return EXIT_OK


def print_review_status(status: ReviewStatus, form: Format) -> None:
    """Print how far a queue is, and how far its reviewers agree."""
    print_page(form, json=lambda: status, page=lambda: page_of("the review queue", queue_blocks(status)))


def queue_blocks(status: ReviewStatus, *, published: bool = False) -> Iterator[Block]:
    """Yield how far a queue is and where reviewers differ; on a `published` page they are numbered, without notes."""
    names = {name: f"reviewer {at}" if published else name for at, name in enumerate(status.reviewers, 1)}
    labelled = f"{status.items - status.unlabelled} labelled, {status.unlabelled} without a label"
    lines = [f"{counted(status.items, 'item')} in the queue: {labelled}"]
    if status.oldest is not None:
        lines.append(f"the oldest item that waits was judged at {status.oldest}")
    if status.newest_label is not None:
        lines.append(f"the latest label was given at {status.newest_label}")
    if status.disputed:
        lines.append(f"reviewers differ on {counted(len({item.id for item in status.disputed}), 'item')}")
    yield Heading("Review queue", level=2)
    yield Lines([*lines, *(f"{names[name]}: {counted(count, 'label')}" for name, count in status.reviewers.items())])
    reasons = [row_of([], reason, status.open.get(reason, 0), count) for reason, count in status.reasons.items()]
    counts = Sheet(
        columns=("why", "waiting", "in the queue"), rows=reasons, numbers=frozenset({"waiting", "in the queue"})
    )
    yield Captioned(counts, "The queue by reason")
    agreement = []
    for row in status.agreement:
        reviewers = " · ".join(names.get(name, name) for name in row.reviewers)
        bounds = " to ".join(map(number, row.kappa.ci95)) if row.kappa.ci95 else None
        agreement.append(row_of([row.question, reviewers], row.n, row.agreed, number(row.kappa.value), bounds))
    columns = ("question", "reviewers", "items", "agreed", "κ", "95 % interval")
    sheet = Sheet(columns=columns, rows=agreement, numbers=frozenset({"items", "agreed", "κ"}))
    yield Captioned(sheet, "How far reviewers agree")
    disputed = [
        row_of([item.item, item.question, _said(item.answers, {} if published else item.notes, names)])
        for item in status.disputed
    ]
    yield Captioned(Sheet(columns=("item", "question", "answers"), rows=disputed), "Reviewers differ on")


def _said(answers: Mapping[str, str], notes: Mapping[str, str], names: Mapping[str, str]) -> str:
    return " · ".join(
        f"{names.get(name, 'reviewer')} says {answer}{f' ({notes[name]})' if name in notes else ''}"
        for name, answer in answers.items()
    )
