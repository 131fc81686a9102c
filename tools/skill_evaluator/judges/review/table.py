"""Labels as CSV, a row for each answer, for whoever labels or counts in a spreadsheet; and rows back into labels."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import first_problem, read_text
from skill_evaluator.judges.review.items import ReviewItem
from skill_evaluator.judges.review.labels import ReviewLabel, refuse_misfit
from skill_evaluator.judges.review.queue import item_of
from skill_evaluator.text import nearest

COLUMNS = ("item", "reviewer", "at", "first", "question", "answer", "impact", "note", "source")
_REQUIRED = ("item", "reviewer", "question", "answer")
_FORMULA = ("=", "+", "-", "@", "'", "\t")  # what a spreadsheet would compute; an apostrophe before it is not shown


def labels_table(items: Mapping[str, ReviewItem], labels: Iterable[ReviewLabel]) -> str:
    """Return labels as CSV; `source` is the item's id in its judging, for people to read."""
    page = io.StringIO()
    rows = csv.writer(page, lineterminator="\n")
    rows.writerow(COLUMNS)
    for label in labels:
        for place, answer in enumerate(label.answers):
            cells = (
                label.item,
                label.reviewer,
                label.at,
                label.first or "",
                answer.question,
                answer.answer,
                answer.impact or "",
                label.note if place == 0 else "",
                items[label.item].item,
            )
            rows.writerow(_inert(str(cell)) for cell in cells)
    return page.getvalue()


def read_labels_table(path: Path, items: Mapping[str, ReviewItem], now: str) -> list[ReviewLabel]:
    """Read labels from CSV, with commas or semicolons; raise JudgeError with the line of what is wrong.

    Rows with the same item, reviewer and time are one label. Where the time is empty it is `now`.
    """
    labels = []
    for (item, reviewer, at), rows in _grouped(path).items():
        line, first = rows[0]
        answers = [
            {"question": row["question"], "answer": row["answer"], "impact": row.get("impact") or None}
            for _, row in rows
        ]
        try:
            label = ReviewLabel.model_validate(
                {
                    "item": item,
                    "reviewer": reviewer,
                    "at": at or now,
                    "first": {"1": 1, "2": 2}.get(first.get("first", "")),
                    "answers": answers,
                    "note": next((row["note"] for _, row in rows if row.get("note")), ""),
                }
            )
            refuse_misfit(label, item_of(items, item))
        except ValidationError as problem:
            raise JudgeError(f"{path}:{line}: {first_problem(problem)}") from None
        except JudgeError as problem:
            raise JudgeError(f"{path}:{line}: {problem}") from None
        labels.append(label)
    return labels


def _grouped(path: Path) -> dict[tuple[str, str, str], list[tuple[int, dict[str, str]]]]:
    """Return the rows of each label with their lines."""
    groups: dict[tuple[str, str, str], list[tuple[int, dict[str, str]]]] = {}
    for line, row in _rows(path):
        for name in _REQUIRED:
            if not row[name]:
                raise JudgeError(f"{path}:{line}: the column {name} is empty")
        groups.setdefault((row["item"], row["reviewer"], row.get("at", "")), []).append((line, row))
    return groups


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows below the head with the line on which each begins."""
    text = read_text(path, JudgeError)
    head_line = text.partition("\n")[0]
    semicolons = ";" in head_line and "," not in head_line  # as spreadsheets of some countries write
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if semicolons else ",", strict=True)
    try:
        head = next(reader, [])
        _refuse_columns(path, head)
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cells):
                continue
            if len(cells) != len(head):
                raise JudgeError(f"{path}:{line}: {len(cells)} cells where the head has {len(head)} columns")
            row = dict(zip(head, cells, strict=True))
            yield line, {name: _bare(cell if name == "note" else cell.strip()) for name, cell in row.items()}
    except csv.Error as problem:
        raise JudgeError(f"{path}:{reader.line_num}: not CSV: {problem}") from None


def _refuse_columns(path: Path, head: Sequence[str]) -> None:
    for name in _REQUIRED:
        if name not in head:
            raise JudgeError(f"{path}:1: the column {name} is missing; the columns are {', '.join(COLUMNS)}")
    for name in head:
        if name not in COLUMNS:
            raise JudgeError(f"{path}:1: unknown column '{name}' {nearest(name, COLUMNS)}")
        if head.count(name) > 1:
            raise JudgeError(f"{path}:1: the column {name} is there twice")


def _inert(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    >>> _inert("=1+1"), _bare("'=1+1"), _inert("fine")
    ("'=1+1", '=1+1', 'fine')
    """
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
