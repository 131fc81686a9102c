"""`skill-evaluator lint`: read and check components with all their cases, and show what will be scored, and why.

A component that is wrong does not hide the others: every problem is printed, and the exit code comes at the end.
"""

import glob
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.commands.inputs import Format
from skill_evaluator.components import Component, load_component
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, ComponentError, SkillEvaluatorError
from skill_evaluator.files import read_json
from skill_evaluator.fixtures import Case, cases_folder, load_cases
from skill_evaluator.hints import hints
from skill_evaluator.linting import Declaration, plan_lines
from skill_evaluator.reports.plan_table import Linted, print_linted
from skill_evaluator.reports.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, typed."""

    names: tuple[str, ...] = ()
    components: Path = Path("components")
    fixtures: Path | None = None
    format: Format = "text"


def lint(options: Options) -> int:
    """Look at the components named, or at all; print their field plans, hints and problems. Returns the exit code."""
    names = options.names or _all_names(options.components)
    linted = [_linted(name, options) for name in dict.fromkeys(names)]
    print_linted(linted, options.format)
    problems = sum(len(one.problems) for one in linted)
    if not problems:
        return EXIT_OK
    bad = sum(bool(one.problems) for one in linted)
    print(f"error: {counted(problems, 'problem')} in {bad} of {counted(len(linted), 'component')}", file=sys.stderr)
    return EXIT_USER_ERROR


def _all_names(folder: Path) -> list[str]:
    """Every folder that is a component, or was meant to be one."""
    if not folder.is_dir():
        raise ComponentError(f"{folder} is not a folder; name the components with --components DIR")
    marks = ("prompt.md", "schema.json", "evals")
    names = sorted(path.name for path in folder.iterdir() if any((path / mark).exists() for mark in marks))
    if not names:
        raise ComponentError(f"{folder} holds no component; add {folder / '<name>' / 'prompt.md'}")
    return names


def _linted(name: str, options: Options) -> Linted:
    try:
        component = load_component(options.components, name)
        declared = _declared(component)
    except SkillEvaluatorError as problem:
        return Linted(name=name, problems=[str(problem)])
    cases, problems = _cases(component, options.fixtures)
    return Linted(
        name=name,
        component=component,
        lines=plan_lines(component, declared),
        cases=len(cases),
        labelled=sum(case.labelled for case in cases),
        hints=hints(component, [case.truth for case in cases if case.labelled]),
        problems=problems,
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
        names = sorted(path.name for path in cases_folder(component, fixtures).iterdir() if path.is_dir())
    except SkillEvaluatorError:
        return [], [first]
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
