"""A checked family of scenarios → text, Markdown or JSON: the verdict, what stands against it, and what to read for."""

from collections.abc import Iterator

from rich.text import Text

from skill_evaluator.audit.findings.family import FamilyCheck, Trial
from skill_evaluator.audit.report.wording import share
from skill_evaluator.display import probability
from skill_evaluator.display.safe_text import prose, visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, markdown_table, print_result
from skill_evaluator.text import counted

_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")
_PAIRS = ("scenario", "and", "text alike", "answers alike")


def print_family(check: FamilyCheck, form: Format) -> None:
    """Print what `scenarios check` says of a family."""
    print_result(
        form,
        json=lambda: check.model_dump(mode="json"),
        markdown=lambda: _page(check),
        text=lambda: _pieces(check),
    )


def _headline(check: FamilyCheck) -> str:
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    return f"{name}, {counted(len(check.scenarios), 'template')}: {check.verdict} ({'; '.join(check.reasons)})"


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


def _remark_sheet(check: FamilyCheck) -> Sheet:
    rows = [
        [
            Cell("all" if remark.scenario is None else remark.scenario, code=remark.scenario is not None),
            Cell(remark.severity, _STYLES[remark.severity]),
            Cell(remark.rule),
            Cell(remark.message, code=True),
        ]
        for remark in check.remarks
    ]
    return Sheet(columns=_REMARKS, rows=rows, whole=frozenset({"scenario", "rule"}))


def _pair_sheet(check: FamilyCheck) -> Sheet:
    rows = [
        [
            Cell(pair.first, code=True),
            Cell(pair.second, code=True),
            Cell(share(pair.likeness)),
            Cell(share(pair.agreement)),
        ]
        for pair in check.pairs
    ]
    return Sheet(columns=_PAIRS, rows=rows, numbers=frozenset(_PAIRS[2:]))


def _pieces(check: FamilyCheck) -> Iterator[Sheet | Text]:
    yield Text(visible(_headline(check)), style="bold")
    if check.remarks:
        yield Text()
        yield _remark_sheet(check)
    yield Text()
    yield Text(visible(_trial_words(check.trial)))
    if check.pairs:
        yield Text()
        yield _pair_sheet(check)
    yield Text()
    yield Text("What no program can say; read each template for it:")
    yield from (Text(f"  - {question}") for question in check.review)


def _page(check: FamilyCheck) -> str:
    blocks = ["## Scenarios", f"{prose(_headline(check))}."]
    if check.remarks:
        blocks.append(markdown_table(_remark_sheet(check)))
    blocks.append(f"{prose(_trial_words(check.trial))}.")
    if check.pairs:
        blocks.append(markdown_table(_pair_sheet(check)))
    blocks.append("What no program can say; read each template for it:")
    blocks.append("\n".join(f"- [ ] {question}" for question in check.review))
    return "\n\n".join(block.rstrip("\n") for block in blocks) + "\n"
