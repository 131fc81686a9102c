"""A checked family of scenarios → text, Markdown or JSON: the verdict, what stands against it, and what to read for."""

from skill_evaluator.audit.findings.family import FamilyCheck, Trial
from skill_evaluator.audit.report.wording import share
from skill_evaluator.display import probability
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Only, Page, Section, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.text import counted

_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")
_PAIRS = ("scenario", "and", "text alike", "answers alike")


def print_family(check: FamilyCheck, form: Format) -> None:
    """Print what `scenarios check` says of a family."""
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    reasons = "; ".join(check.reasons)
    remarks = [
        [
            Cell("all" if remark.scenario is None else remark.scenario, code=remark.scenario is not None),
            Cell(remark.severity, _STYLES[remark.severity]),
            Cell(remark.rule),
            Cell(remark.message, code=True),
        ]
        for remark in check.remarks
    ]
    remark_sheet = Sheet(columns=_REMARKS, rows=remarks, whole=frozenset({"scenario", "rule"}))
    pairs = [
        [
            Cell(pair.first, code=True),
            Cell(pair.second, code=True),
            Cell(share(pair.likeness)),
            Cell(share(pair.agreement)),
        ]
        for pair in check.pairs
    ]
    pair_sheet = Sheet(columns=_PAIRS, rows=pairs, numbers=frozenset(_PAIRS[2:]))
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Scenarios", level=2)]),
        Line(f"{name}, {counted(len(check.scenarios), 'template')}: {check.verdict} ({reasons}).", style="bold"),
        remark_sheet,
        Line(f"{_trial_words(check.trial)}."),
        pair_sheet,
        Line("What no program can say; read each template for it:"),
        Lines(check.review, "[ ]"),
    ]
    page = Page([Section(name="the family", blocks=blocks)])
    print_page(form, json=lambda: check.model_dump(mode="json"), page=lambda: page)


def _trial_words(trial: Trial | None) -> str:
    """Say what answers tell of the family."""
    if trial is None:
        return "trial: none of these scenarios"
    size = f"{counted(trial.models, 'model')}, {counted(trial.questions, 'question')}"
    words = f"trial ({size}): answers differ between two scenarios in {share(trial.moved)} of the questions"
    if trial.itself is not None:
        words += f", and in {share(trial.itself)} by themselves"
    if trial.p is not None:
        words += f" (p of no more: {probability(trial.p)})"
    return f"{words}; {trial.neutrality}"
