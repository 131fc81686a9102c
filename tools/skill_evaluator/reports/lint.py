"""The reports of `lint` (comparators of fields, hints, problems), `judge lint`, `cases draft` and `init --adopt`."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from json import loads
from typing import Any

from skill_evaluator.checking.lint import LintResult, PlanLine, RubricLint
from skill_evaluator.checks import Check
from skill_evaluator.ci.layout import Proposal
from skill_evaluator.ci.linting import LintedLibrary
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.comparing.declarations import aligned_by, compared_as
from skill_evaluator.display import WHOLE, abridged, name_text, pages, plain, visible
from skill_evaluator.display.pages import Block, Cell, Format, Heading, Line, Lines, Page, Section, Sheet
from skill_evaluator.judges.workflows.drafting import DraftedCases
from skill_evaluator.library.options import PlatformName
from skill_evaluator.text import counted

_MAX_MESSAGE = 400  # characters; a message may quote a schema
_COLUMNS = ("path", "compared, aligned", "weight", "in F1", "why")


def print_linted(library: LintedLibrary, form: Format) -> None:
    """Print each component's comparators, hints and problems, and the numbers of cases that are not evaluated."""
    linted = library.components
    sections = (Section(name=result.name, blocks=list(_component_blocks(result))) for result in linted)
    clean = not (library.problems or library.broken or any(result.hints for result in linted))
    counts = [*not_evaluated(linted), *[f"no problem in {counted(len(linted), 'component')}"] * clean]
    page = Page([*sections, Section(name="the counts", blocks=list(map(Line, counts)))])
    pages.print_page(form, json=lambda: {"components": list(map(_component_json, linted))}, page=lambda: page)


def mark_linted(library: LintedLibrary, platform: PlatformName | None) -> None:
    """Print the warnings of a linted library to stderr. On a CI platform, also annotate the warnings and problems."""
    warnings = [*library.edited, *library.stale]
    for warning in warnings:
        print(f"warning: {visible(warning.message)}", file=sys.stderr)
    if platform is not None:
        for level, problems in (("error", [*library.problems, *library.broken]), ("warning", warnings)):
            for problem in problems:
                PLATFORMS[platform].annotate(level, problem.message, problem.file, problem.line)


def not_evaluated(linted: Sequence[LintResult]) -> list[str]:
    """Return one line on the numbers of components and cases that are not evaluated. Return [] if there are none."""
    left_out = sum(component.not_evaluated is not None for component in linted)
    waiting = sum(len(component.cases.waiting) for component in linted)
    drafts = sum(len(component.cases.unreviewed) for component in linted)
    counts = [f"{left_out} of {counted(len(linted), 'component')}"] if left_out else []
    counts += [f"{counted(waiting, 'case')} without a document"] if waiting else []
    counts += [f"{counted(drafts, 'unreviewed case')} (see `skill-evaluator review cases COMPONENT`)"] if drafts else []
    return [f"not evaluated: {' and '.join(counts)}"] if counts else []


def _component_json(linted: LintResult) -> dict[str, Any]:
    fields = []
    for line in linted.lines:
        rule = line.rule
        how = {"compare": rule.compare, **rule.options, "weight": rule.weight, "counted": line.counted}
        if line.kind == "array":
            how = {"align": rule.align, "key": list(rule.key)}
        fields.append({"path": line.path, "kind": line.kind, **how, "why": line.reason})
    return {
        "component": linted.name,
        "version": linted.version,
        "output": linted.output,
        "metrics": linted.metrics,
        "primary_metric": linted.primary_metric,
        "cases": linted.cases.reviewed,
        "labelled": linted.cases.labelled,
        "fields": fields,
        "checks": [
            {"id": check.id, "words": check.text, "weight": check.weight, "tier": check.tier} for check in linted.checks
        ],
        "not_evaluated": linted.not_evaluated,
        "waiting": linted.cases.waiting,
        "unreviewed": linted.cases.unreviewed,
        "hints": linted.hints,
        "problems": linted.problems,
    }


def _field_plan_sheet(lines: Sequence[PlanLine], checks: Sequence[Check]) -> Sheet:
    rows = []
    for line in lines:
        if line.kind == "array":
            how = (Cell(f"array, {aligned_by(line.rule)}", "cyan", code=True), Cell("–"), Cell("–"))
        else:
            counts = Cell("yes") if line.counted else Cell("no", "yellow")
            how = (Cell(compared_as(line.rule), code=True), Cell(plain(line.rule.weight)), counts)
        path = Cell(name_text(line.path), code=True) if line.path else Cell(WHOLE)
        rows.append((path, *how, Cell(line.reason, code=True)))
    for check in checks:
        path, weight = Cell(f"checks.{name_text(check.id)}", code=True), Cell(plain(check.weight))
        rows.append((path, Cell("check", "cyan"), weight, Cell(check.tier or "advisory"), Cell(check.text, code=True)))
    return Sheet(columns=_COLUMNS, rows=rows, numbers=frozenset({"weight"}), whole=frozenset({"path"}))


def _component_facts(linted: LintResult) -> str:
    fields = sum(line.kind == "field" for line in linted.lines)
    arrays = len(linted.lines) - fields
    checks = f", {counted(len(linted.checks), 'check')}" if linted.checks else ""
    others = ", ".join(name for name in linted.metrics if name != linted.primary_metric)
    cases = counted(linted.cases.reviewed, "question" if linted.output == "choice" else "case")
    return (
        f"{cases}, {linted.cases.labelled} with ground truth · "
        f"{counted(fields, 'field')}, {counted(arrays, 'array')}{checks} · "
        f"ranked by {linted.primary_metric}{f', also {others}' if others else ''}"
    )


def _component_blocks(linted: LintResult) -> Iterator[Block]:
    yield Heading(Cell(linted.name, code=True), f" {linted.version}" if linted.version else "", level=2)
    if linted.version:
        yield Line(_component_facts(linted))
        yield _field_plan_sheet(linted.lines, linted.checks)
    unevaluated_text = "case '{}' is not evaluated yet: it {}".format
    drafts = [unevaluated_text(case_id, "is an unreviewed draft") for case_id in linted.cases.unreviewed]
    waiting = [unevaluated_text(case_id, "has no document") for case_id in linted.cases.waiting]
    yield Lines([*drafts, *waiting] if linted.not_evaluated is None else [linted.not_evaluated, *drafts])
    yield Lines([f"hint: {hint}" for hint in linted.hints], style="yellow")
    problems = (f" {abridged(problem, _MAX_MESSAGE)}" for problem in linted.problems)
    yield Lines([Line(Cell("problem:", "bold"), problem, style="red") for problem in problems])


def print_rubric_lint(linted: RubricLint, form: Format) -> None:
    """Print the remarks on rubrics with file and line, and the numbers of errors and warnings."""
    criteria = sum(len(rubric.criteria) for rubric in linted.rubrics)
    closing = (
        f"{counted(len(linted.rubrics), 'rubric')}, {criteria} {'criterion' if criteria == 1 else 'criteria'}: "
        f"{counted(linted.errors, 'error')}, {counted(linted.warnings, 'warning')}"
    )
    remarks = [
        Line(
            Cell(f"{rubric.file}:{remark.line}", code=True),
            ": ",
            Cell(remark.severity, {"error": "red", "warning": "yellow"}[remark.severity]),
            f" {remark.rule}: ",
            Cell(remark.message, code=True),
        )
        for rubric in linted.rubrics
        for remark in rubric.remarks
    ]
    pages.print_page(
        form, json=lambda: linted, page=lambda: pages.page_of("the rubrics", [Lines(remarks), Line(closing)])
    )


def print_drafted_cases(drafted: DraftedCases) -> None:
    """Print the drafted cases of a component, their files, and the drafts that were left out."""
    name = drafted.component.name
    print(f"{counted(len(drafted.cases), 'unreviewed case')} of {name}, in {drafted.folder}:")
    for case_id, files in sorted(drafted.cases.items()):
        print(f"  {case_id}: {', '.join(files)}")
    for reason, drafts in drafted.left_out.items():
        print(f"left out: {counted(drafts, 'draft')}: {reason}")
    print(f"Next: skill-evaluator review cases {name}")


def adoption_sheet(proposal: Proposal) -> Sheet:
    """Build the table of the components of a proposal: whether each can be evaluated, and details."""
    rows = []
    for component in proposal.linted:
        if component.name in proposal.contracts:
            state, explanation = "ready", f"with {proposal.contracts[component.name]} as its contract"
        elif component.problems:
            state, explanation = "wrong", abridged(component.problems[0], _MAX_MESSAGE)
        elif component.not_evaluated is not None:
            reason = component.not_evaluated.partition(": ")[2]
            state, explanation = "not yet", reason.replace(f"/{component.name}/", "/…/")
        else:
            unlabelled = [] if component.cases.labelled or component.checks else ["no ground truth and no check"]
            state = "ready"
            explanation = "; ".join((counted(component.cases.reviewed, "case"), *unlabelled, *component.inferred))
        rows.append((Cell(component.name), Cell(state, "red" if state == "wrong" else ""), Cell(explanation)))
    return Sheet(columns=("component", "evaluated", "why"), rows=rows)


def declared_words(text: str) -> str:
    """Describe a proposed evals/datasets.json: its schema, and the number of fields by comparator."""
    dataset = loads(text)["datasets"][0]
    compared = Counter(rule["compare"] for rule in dataset.get("fields", {}).values())
    parts = [f"contract {dataset['schema']}"] if "schema" in dataset else []
    return visible(", ".join([*parts, *(f"{counted(n, 'field')} compared as {kind}" for kind, n in compared.items())]))
