"""A checked family of scenarios → text, Markdown or JSON: the verdict, what stands against it, and what to read for."""

import shlex
import sys

from skill_evaluator.audit.findings.family import FamilyCheck, Trial
from skill_evaluator.audit.report.wording import share
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.display import probability
from skill_evaluator.display.options import words_of
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Only, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet
from skill_evaluator.text import counted

_STYLES = {"error": "red", "warning": "yellow"}
_REMARKS = ("scenario", "", "rule", "remark")
_PAIRS = ("scenario", "and", "text alike", "answers alike")


def print_family(check: FamilyCheck, form: Format, request: ScenariosCheckRequest | None = None) -> None:
    """Print what is known of a family; a `request` to check it gets the command of a trial that it lacks."""
    name = "the scenarios" if check.family is None else f"the family {check.family}"
    remarks = [
        [
            Cell("all" if remark.scenario is None else remark.scenario, code=remark.scenario is not None),
            Cell(remark.severity, _STYLES[remark.severity]),
            Cell(remark.rule),
            Cell(remark.message, code=True),
        ]
        for remark in check.remarks
    ]
    pairs = [
        [
            *(Cell(name, code=True) for name in (pair.first, pair.second)),
            Cell(share(pair.likeness)),
            Cell(share(pair.agreement)),
        ]
        for pair in check.pairs
    ]
    words = f"{name}, {counted(len(check.scenarios), 'template')}: {check.verdict} ({'; '.join(check.reasons)})."
    blocks: list[Block] = [
        Only(("markdown",), [Heading("Scenarios", level=2)]),
        Line(words, style="bold"),
        Sheet(columns=_REMARKS, rows=remarks, whole=frozenset({"scenario", "rule"})),
        Line(f"{_trial_words(check.trial)}."),
        Sheet(columns=_PAIRS, rows=pairs, numbers=frozenset(_PAIRS[2:])),
        Line("What no program can say; read each template for it:"),
        Lines(check.review, "[ ]"),
    ]
    print_page(form, json=lambda: check.model_dump(mode="json"), page=lambda: page_of("the family", blocks))
    if request is not None and check.trial is None and check.verdict == "not settled":
        again = ["skill-evaluator", "audit", "run", *words_of(request, "components", "fixtures", "config", "audits")]
        again += ["--scenario", check.family] if check.family else []
        print(f"a small trial, once all are reviewed: {shlex.join([*again, '--questions', '20'])}", file=sys.stderr)


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
