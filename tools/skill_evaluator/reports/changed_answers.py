"""What became of the answers to each case, as a table: the commonest answer before and after, value by value."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from skill_evaluator.display import WHOLE, number
from skill_evaluator.display.pages import Section
from skill_evaluator.display.safe_text import name_text, prose, value_pair, visible
from skill_evaluator.display.sheets import Cell, Sheet, show
from skill_evaluator.reports.explanation import value_cell
from skill_evaluator.scoring.answer_views import AnswerChange, ChangedAnswers, CommonAnswer
from skill_evaluator.text import counted

_MOST_VALUES = 8  # of one case
_COLUMNS = ("case", "score", "path", "before", "after")


def print_changes(models: Sequence[ChangedAnswers]) -> None:
    """Print the changed answers of each model to stdout."""
    for model in models:
        show([Text(f"\n{visible(_head(model))}", style="bold"), *([_sheet(model)] if model.changes else [])])


def changes_section(model: ChangedAnswers) -> Section:
    """Return the changed answers of one model as a section of a page."""
    return Section(name=f"changed answers of {model.model_id}", blocks=[prose(_head(model)), _sheet(model)])


def changes_part(model: ChangedAnswers) -> tuple[str, Sheet]:
    """Return what became of a model's answers in a sentence, and the table of those that changed."""
    return _head(model), _sheet(model)


def _head(model: ChangedAnswers) -> str:
    if model.absent is not None:
        return f"{model.model_id}: which answers changed since {model.baseline} cannot be shown: {model.absent}"
    cases = counted(model.compared, "case")
    return f"{model.model_id}: the commonest answer changed in {len(model.changes)} of {cases} since {model.baseline}"


def _sheet(model: ChangedAnswers) -> Sheet:
    return Sheet(
        columns=_COLUMNS, rows=[row for change in model.changes for row in _rows(change)], whole=frozenset({"path"})
    )


def _rows(change: AnswerChange) -> Iterator[list[Cell]]:
    case = Cell(name_text(change.case_id), code=True)
    score = Cell(f"{number(change.score_before)} → {number(change.score_after)}")
    for value in change.values[:_MOST_VALUES]:
        before, after = value_pair(value.before, value.after)
        path = Cell(name_text(value.path), code=True) if value.path else Cell(WHOLE)
        yield [case, score, path, value_cell(before), value_cell(after)]
        case = score = Cell("")
    left = len(change.values) - _MOST_VALUES
    if left > 0:
        yield [case, score, Cell(f"and {left} more"), Cell(""), Cell("")]
    if not change.values:
        before, after = value_pair(change.before.value, change.after.value)
        shown = [_failed(side) or value_cell(text) for side, text in ((change.before, before), (change.after, after))]
        yield [case, score, Cell(WHOLE), *shown]


def _failed(answer: CommonAnswer) -> Cell | None:
    return None if answer.failure is None else Cell(f"{answer.failure} ({answer.times} of {answer.n})", "yellow")
