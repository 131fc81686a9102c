"""One component, read with all its cases: its field plan, hints, and everything that is wrong with it."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.components import Component, load_component
from skill_evaluator.errors import ComponentError, SkillEvaluatorError
from skill_evaluator.files import read_json
from skill_evaluator.fixtures import Case, cases_of_questions, cases_place, load_cases
from skill_evaluator.hints import hints
from skill_evaluator.key_balance import key_balance
from skill_evaluator.linting import Declaration, plan_lines
from skill_evaluator.reports.plan_table import Linted


def checked(components: Path, name: str, fixtures: Path | None, found: Sequence[str]) -> Linted:
    """Read a component with all its cases; `found`: what is known to be wrong with it already."""
    try:
        component = load_component(components, name)
        declared = _declared(component)
    except SkillEvaluatorError as problem:
        return Linted(name=name, problems=list(dict.fromkeys([str(problem), *found])))
    cases, problems = _cases(component, fixtures)
    balance = key_balance(cases) if component.output == "choice" else None
    return Linted(
        name=name,
        component=component,
        lines=plan_lines(component, declared),
        cases=len(cases),
        labelled=sum(case.labelled for case in cases),
        hints=[
            *hints(component, [case.truth for case in cases if case.labelled]),
            *(balance.warnings if balance else ()),
        ],
        balance=balance,
        problems=[*problems, *found],
    )


def _declared(component: Component) -> Mapping[str, Declaration]:
    """What evals/datasets.json, which was checked with the component, says of each path."""
    path = component.folder / "evals" / "datasets.json"
    if not path.exists():
        return {}
    declared: Mapping[str, Declaration] = read_json(path, ComponentError)["datasets"][0].get("fields", {})
    return declared


def _cases(component: Component, fixtures: Path | None) -> tuple[list[Case], list[str]]:
    """The cases that are in order, and what is wrong with the others."""
    try:
        return list(load_cases(component, fixtures)), []
    except SkillEvaluatorError as problem:
        first = str(problem)
    try:
        place = cases_place(component, fixtures)
    except SkillEvaluatorError:
        return [], [first]
    if component.output == "choice":
        return cases_of_questions(place)
    names = sorted(path.name for path in place.iterdir() if path.is_dir())
    good: list[Case] = []
    problems: list[str] = []
    for name in names:
        if name.startswith("."):
            continue
        try:
            good += load_cases(component, fixtures, [glob.escape(name)])
        except SkillEvaluatorError as problem:
            problems.append(str(problem))
    return good, problems or [first]
