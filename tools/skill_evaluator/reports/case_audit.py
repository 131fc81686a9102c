"""What each case tells, for people: those that disagree and those that never told anything apart first."""

from typing import TYPE_CHECKING

from skill_evaluator.display import number, probability
from skill_evaluator.display.pages import Block, Heading, Lines, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.text import counted, listed

if TYPE_CHECKING:  # scipy comes with it
    from skill_evaluator.evaluation.discrimination import AuditedCase, CaseAudit

_ADVICE = {
    "disagrees": "those who are better elsewhere are worse here: look at its ground truth",
    "all wrong": "nobody solves it: too hard, or its ground truth is wrong",
    "all alike": "scored alike by all, neither right nor wrong: one field of it may be unsolvable",
    "all right": "everybody solves it: it guards what works, and tells nobody apart",
    "too few": "fewer than two versions or models answered it as it is now",
}
_STYLES = {"disagrees": "red", "all wrong": "red", "all alike": "yellow", "all right": "dim", "too few": "dim"}
_ORDER = ("disagrees", "all wrong", "all alike", "all right", "too few", "tells apart")


def print_case_audit(audit: "CaseAudit", form: Format) -> None:
    """Print an audit of cases to stdout."""
    blocks: list[Block] = [
        _title(audit),
        Lines(_facts(audit)),
        _sheet(audit),
        Lines([f"{name} is left out: {why}" for name, why in audit.left_out.items()]),
    ]
    print_page(
        form,
        json=lambda: audit.model_dump(mode="json"),
        page=lambda: page_of(audit.skill, blocks),
    )


def _title(audit: "CaseAudit") -> Heading:
    told = sum(case.standing in ("tells apart", "disagrees") for case in audit.cases)
    takers = f"{len(audit.takers)} versions and models"
    words = f": {told} of {counted(len(audit.cases), 'case')} tell {takers} apart, by {audit.metric}"
    return Heading(Cell(audit.skill, code=True), words, level=2)


def _facts(audit: "CaseAudit") -> list[str]:
    """Return a line for each standing that wants something, with its cases."""
    lines = []
    for standing, advice in _ADVICE.items():
        names = [case.case_id for case in audit.cases if case.standing == standing]
        if names:
            lines.append(f"{standing} ({advice}): {listed(names)}")
    return lines


def _sheet(audit: "CaseAudit") -> Sheet:
    rows = [
        [
            Cell(case.case_id, code=True),
            Cell(case.standing, _STYLES.get(case.standing, "")),
            Cell(number(case.discrimination)),
            Cell(probability(case.q)),
            Cell(str(case.n)),
            Cell(_extreme(case.lowest, case.lowest_by), code=True),
            Cell(_extreme(case.highest, case.highest_by), code=True),
        ]
        for case in sorted(audit.cases, key=_key)
    ]
    columns = ("case", "standing", "with the rest", "q", "n", "lowest", "highest")
    extremes = ("lowest", "highest")
    return Sheet(
        columns=columns,
        rows=rows,
        numbers=frozenset({"with the rest", "q", "n"}),
        whole=frozenset(extremes),
        below=extremes,
    )


def _key(case: "AuditedCase") -> tuple[int, float]:
    return _ORDER.index(case.standing), case.discrimination if case.discrimination is not None else 2.0


def _extreme(mean: float | None, taker: str | None) -> str:
    return "–" if mean is None else f"{mean:.3f} ({taker})"
