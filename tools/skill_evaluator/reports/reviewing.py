"""Reviews on the terminal: an item with both outputs, and how far a queue is. What is asked is decided elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.text import Text

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.judges.people.items import ReviewItem
from skill_evaluator.judges.people.queue import ReviewStatus
from skill_evaluator.judges.people.steps import Piece, ReviewStep, differences
from skill_evaluator.text import counted

_SHOWN_AS = "\n\t"


def item_pieces(item: ReviewItem, outputs: Sequence[str]) -> Iterator[Text]:
    """Yield the texts of an item under headings, with what either output has alone in bold."""
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
        yield _marked(pieces, "green" if name == "A" else "cyan")


def step_text(step: ReviewStep) -> Text:
    """Return a question with its keys."""
    text = Text("\n").append(visible(step.name), "bold")
    if step.text:
        text.append(f": {visible(step.text)}")
    for key, meaning in step.choices.items():
        text.append("\n  ").append(key, "bold").append(f"  {visible(meaning)}")
    return text


def _heading(name: str) -> Text:
    return Text(f"\n── {name} ──", "bold")


def _marked(pieces: Sequence[Piece], style: str) -> Text:
    text = Text()
    for part, own in pieces:
        text.append(visible(part, keep=_SHOWN_AS), f"bold {style}" if own else "")
    return text


def print_review_status(status: ReviewStatus, form: Format) -> None:
    """Print how far a queue is, and how far its reviewers agree."""
    sheet = agreement_sheet(status)
    lines = queue_sentences(status)
    lines += [f"{name}: {counted(count, 'label')}" for name, count in status.reviewers.items()]

    def text() -> Iterator[Sheet | Text]:
        yield Text("\n".join(visible(line) for line in lines))
        if sheet.rows:
            yield Text()
            yield sheet
        for item in status.disputed:
            yield Text(visible(f"disputed: {item.item}, {item.question}: {_said(item.answers, item.notes)}"))

    def markdown() -> str:
        disputed = "".join(
            f"- {code_span(f'{item.item}, {item.question}: {_said(item.answers, item.notes)}')}\n"
            for item in status.disputed
        )
        table = f"{markdown_table(sheet)}\n" if sheet.rows else ""
        return "\n".join(f"{line}\n" for line in queue_sentences(status)) + "\n" + table + disputed

    print_result(form, json=lambda: status.model_dump(mode="json"), markdown=markdown, text=text)


def agreement_sheet(status: ReviewStatus, names: Mapping[str, str] = MappingProxyType({})) -> Sheet:
    """Return how far each two reviewers agree; `names` are shown in place of theirs."""
    return Sheet(
        columns=("question", "reviewers", "items", "agreed", "κ", "95 % interval"),
        rows=[
            [
                Cell(row.question, code=True),
                Cell(" · ".join(names.get(name, name) for name in row.reviewers), code=True),
                Cell(str(row.n)),
                Cell(str(row.agreed)),
                Cell(number(row.kappa.value)),
                Cell(" to ".join(map(number, row.kappa.ci95)) if row.kappa.ci95 else "–"),
            ]
            for row in status.agreement
        ],
        numbers=frozenset({"items", "agreed", "κ"}),
    )


def queue_sentences(status: ReviewStatus) -> list[str]:
    """Say how far a queue is, and how long the oldest item waits."""
    because = ", ".join(f"{reason} {count}" for reason, count in status.reasons.items())
    lines = [
        f"{counted(status.items, 'item')} in the queue{f' ({because})' if because else ''}, "
        f"{status.unlabelled} without a label"
    ]
    if status.oldest is not None:
        lines.append(f"the oldest of them was judged at {status.oldest}")
    return lines


def _said(answers: Mapping[str, str], notes: Mapping[str, str]) -> str:
    return " · ".join(
        f"{name} says {answer}{f' ({notes[name]})' if name in notes else ''}" for name, answer in answers.items()
    )
