"""`skill-evaluator lint`: read and check components with all their cases, and show what will be scored, and why.

A component that is wrong does not hide the others: every problem is printed, and the exit code comes at the end.
"""

import datetime
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from skill_evaluator.checking.lint import lint_component
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.options import COMPONENTS, CONFIG, Components, Config, Fixtures, Form, Names, OnPlatform
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, ComponentError, SkillEvaluatorError
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.integrity import Past, past_at, problems_of
from skill_evaluator.reports.lint import print_linted
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import counted
from skill_evaluator.verdicts.rules import load_waivers

EXAMPLES = ("skill-evaluator lint receipt-extraction", "skill-evaluator lint --base origin/main")


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """The options of `lint`."""

    names: Names = ()
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="COMMIT",
            help="Also check what changed since: honest versions, and leaderboards and records only added to.",
        ),
    ] = None
    components: Components = COMPONENTS
    fixtures: Fixtures = None
    config: Config = CONFIG
    platform: OnPlatform = None
    format: Form = "text"


def lint(options: LintOptions) -> int:
    """Check components and all their cases; show how every field is compared, and why. Exit code 2 if one is wrong."""
    names = tuple(dict.fromkeys(options.names))
    if not names:
        if not options.components.is_dir():
            raise ComponentError(f"{options.components} is not a folder; name the components with --components DIR")
        marks = ("prompt.md", "schema.json", "leaderboard.json", "evals")  # of a component, or of one that is meant
        folders = (path for path in options.components.iterdir() if any((path / mark).exists() for mark in marks))
        names = tuple(sorted(path.name for path in folders))
        if not names:
            raise ComponentError(
                f"{options.components} holds no component; add {options.components / '<name>' / 'prompt.md'}"
            )
    folder, past = _read_past(options, names)
    problems: dict[str, list[Problem]] = {}  # of a component's history: version, leaderboard, records
    for name in names:
        try:
            problems[name] = problems_of(options.components, name, folder, past)
        except SkillEvaluatorError as problem:
            problems[name] = [Problem(file=within(folder, f"{name}/prompt.md"), line=1, message=str(problem))]
    today = datetime.datetime.now(datetime.UTC).date()
    waivers = [waiver for waiver in load_waivers(options.config) if today <= waiver.expires]
    linted = [
        lint_component(
            options.components, name, options.fixtures, [_line(problem) for problem in problems[name]], waivers
        )
        for name in names
    ]
    print_linted(linted, options.format)
    if options.platform:
        for component in linted:
            placed = {_line(problem): problem for problem in problems[component.name]}
            prompt = within(folder, f"{component.name}/prompt.md")  # the mark of a problem without a place of its own
            for line in component.problems:
                mark = placed.get(line, Problem(file=prompt, line=1, message=line))
                PLATFORMS[options.platform].annotate("error", mark.message, mark.file, mark.line)
    count = sum(len(component.problems) for component in linted)
    if not count:
        return EXIT_OK
    bad = sum(bool(component.problems) for component in linted)
    print(f"error: {counted(count, 'problem')} in {bad} of {counted(len(linted), 'component')}", file=sys.stderr)
    return EXIT_USER_ERROR


def _read_past(options: LintOptions, names: Sequence[str]) -> tuple[str, Past | None]:
    """Return how problems call the folder of the components, and what was in it at the base, if that can be read."""
    if options.base is None:
        return options.components.as_posix(), None
    repository = Repository(options.components)
    folder, commit = repository.place(options.components), repository.commit(options.base)
    if commit is None:
        print(f"warning: no commit '{options.base}' here; what changed is not checked", file=sys.stderr)
        return folder, None
    if not repository.is_ancestor(commit, "HEAD"):
        print(
            f"warning: '{options.base}' is not in the history of HEAD; what was added there counts as removed here",
            file=sys.stderr,
        )
    return folder, past_at(repository, commit, folder, names)


def _line(problem: Problem) -> str:
    """Write a problem as one line, with its place in it once."""
    return problem.message if problem.file in problem.message else f"{problem.file}:{problem.line}: {problem.message}"
