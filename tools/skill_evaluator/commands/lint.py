"""`skill-evaluator lint`: read and check components with all their cases, and show what will be scored, and why.

A component that is wrong does not hide the others: every problem is printed, and the exit code comes at the end.
"""

import datetime
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from skill_evaluator.checking.lint import Linted, answer_problems, lint_component
from skill_evaluator.ci.legs import secrets_of, stale_workflows
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.ci.publishing import attested_records, edited_checks, needing_no_proof
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    Names,
    PlatformOption,
    flag,
    option,
    options,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR, ComponentError, SkillEvaluatorError
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.config import check_waivers, load_settings, settings_at
from skill_evaluator.library.versions import Problem
from skill_evaluator.providers import read_configuration
from skill_evaluator.records.integrity import Past, past_at, problems_of
from skill_evaluator.reports.lint import not_evaluated, print_linted
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import counted

Checked = tuple[Linted, list[Problem]]
_MANY = 16  # components; fewer are checked in the time that it takes to begin processes
_checks: list[Callable[[str], Checked]] = []  # of a process that only checks
EXAMPLES = ("skill-evaluator lint <component>", "skill-evaluator lint --base origin/main")
EXITS = {2: "wrong input, or a component that is wrong"}


@options
class LintOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `lint`."""

    names: Names = ()
    base: str | None = option(
        "Also check what changed since: honest versions, and leaderboards and records only added to.", metavar="COMMIT"
    )
    attested: bool = flag(
        "Have `gh` verify that the workflow wrote each record; with --base, those there before need no proof."
    )
    strict: bool = flag("Fail where a component or case is not evaluated, or not yet.")


def lint(options: LintOptions) -> int:
    """Check components and all their cases; show how every field is compared, and why. Exit code 2 if one is wrong."""
    names = tuple(dict.fromkeys(options.names)) or _names_of_all(options.components)
    settings = load_settings(options.config)
    limits, trusted = settings.limits, settings.attestations
    folder, commit, past = _read_past(options, names)
    old, warnings = past, {}
    if commit is not None:  # what a change says of itself is not what it is checked by
        repository = Repository(options.components)
        trusted = settings_at(repository, commit, options.config).attestations
        old = needing_no_proof(trusted, repository, folder, names) or past
        edited = edited_checks(repository, commit, repository.place(options.config))
        why = "this change edits what checks it; a person must read it before it is merged"
        warnings = {Path(path): f"{path}: {why}" for path in edited}
    must_prove = options.attested or (commit is not None and trusted.since is not None)
    today = datetime.datetime.now(datetime.UTC).date()
    every, broken = check_waivers(options.config, limits)
    waivers = [waiver for waiver in every if today <= waiver.expires]

    def check(name: str) -> tuple[Linted, list[Problem]]:
        problems, attested = _problems_of_history(options, name, folder, past), None
        if must_prove:
            platform = PLATFORMS[options.platform or "github"]
            attested, unproven = attested_records(platform, options.components, name, folder, old, trusted)
            problems = [*problems, *unproven]
        lines = [_line(problem) for problem in problems]
        of_component = lint_component(options.components, name, options.fixtures, lines, waivers, limits)
        return replace(of_component, attested=attested), problems

    checked = list(_side_by_side(check, names))
    linted = [component for component, _ in checked]
    print_linted(linted, options.format)
    if options.platform:
        for component, problems in checked:
            placed = {_line(problem): problem for problem in problems}
            prompt = within(folder, f"{component.name}/prompt.md")  # the mark of a problem without a place of its own
            for line in component.problems:
                mark = placed.get(line, Problem(file=prompt, line=1, message=line))
                PLATFORMS[options.platform].annotate("error", mark.message, mark.file, mark.line)
        for path, message in broken.items():
            PLATFORMS[options.platform].annotate("error", message, path.as_posix(), 1)
    count = sum(len(component.problems) for component in linted)
    wrong = list(broken.values())
    if count:
        bad = sum(bool(component.problems) for component in linted)
        wrong.insert(0, f"{counted(count, 'problem')} in {bad} of {counted(len(linted), 'component')}")
    stale: Mapping[Path, str] = {}
    if (options.config / "models.yaml").exists():
        stale = stale_workflows(options.config, secrets_of(read_configuration(options.config)))
    for path, message in {**warnings, **stale}.items():
        print(f"warning: {visible(message)}", file=sys.stderr)
        if options.platform:
            PLATFORMS[options.platform].annotate("warning", message, path.as_posix())
    if options.strict:
        wrong += [*not_evaluated(linted), *stale.values()]
    if not wrong:
        return EXIT_OK
    print(f"error: {visible('; '.join(wrong))}", file=sys.stderr)
    return EXIT_USER_ERROR


def _side_by_side(check: Callable[[str], Checked], names: Sequence[str]) -> Iterator[Checked]:
    """Check each, and yield what was found in the order of the names; many of them in as many processes as cores."""
    cores = os.cpu_count() or 1
    if len(names) < _MANY or cores == 1 or not hasattr(os, "fork"):
        yield from map(check, names)
        return
    with futures.ProcessPoolExecutor(cores, get_context("fork"), initializer=_begin, initargs=(check,)) as pool:
        yield from pool.map(_check, names, chunksize=8)


def _begin(check: Callable[[str], Checked]) -> None:
    """Keep what this process was forked with; it leaves Ctrl-C to the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _checks.append(check)


def _check(name: str) -> Checked:
    return _checks[0](name)


def _names_of_all(components: Path) -> tuple[str, ...]:
    """Return the names of all components, and of what is meant to be one; raise ComponentError where there is none."""
    if not components.is_dir():
        raise ComponentError(f"{components} is not a folder; name the components with --components DIR")
    marks = ("prompt.md", "schema.json", "leaderboard.json", "evals")
    names = sorted(path.name for path in components.iterdir() if any((path / mark).exists() for mark in marks))
    if not names:
        raise ComponentError(f"{components} holds no component; add {components / '<name>' / 'prompt.md'}")
    return tuple(names)


def _problems_of_history(options: LintOptions, name: str, folder: str, past: Past | None) -> list[Problem]:
    """Return what is wrong with a component's version, leaderboard and records, and with the answers still here."""
    if not is_component_name(name):  # as loading it says
        return []
    try:
        of_history = problems_of(options.components, name, folder, past)
        return [*of_history, *answer_problems(options.components, name, folder)]
    except SkillEvaluatorError as problem:
        return [Problem(file=within(folder, f"{name}/prompt.md"), line=1, message=str(problem))]


def _read_past(options: LintOptions, names: Sequence[str]) -> tuple[str, str | None, Past | None]:
    """Return how problems call the folder of the components, the base's commit, and what was in the folder there."""
    if options.base is None:
        return options.components.as_posix(), None, None
    repository = Repository(options.components)
    folder, commit = repository.place(options.components), repository.commit(options.base)
    if commit is None:
        print(f"warning: no commit '{options.base}' here; what changed is not checked", file=sys.stderr)
        return folder, None, None
    if not repository.is_ancestor(commit, "HEAD"):
        print(
            f"warning: '{options.base}' is not in the history of HEAD; what was added there counts as removed here",
            file=sys.stderr,
        )
    return folder, commit, past_at(repository, commit, folder, names)


def _line(problem: Problem) -> str:
    """Write a problem as one line, with its place in it once."""
    return problem.message if problem.file in problem.message else f"{problem.file}:{problem.line}: {problem.message}"
