"""Evaluation of a pull request before its merge: refused changes, and the required cap.

The jobs have keys, so a pull request that changes code, workflows or settings is refused.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath

from skill_evaluator.errors import GitError, PlanError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Jobs
from skill_evaluator.library.versions import Problem
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import listed

_REFUSED = (".evaluator/*", ".github/*", "tools/*", "*.py", ".gitmodules")
_CAN_DECLARE_CHECKS = ("datasets.json", "meta.json", "*checks*", "cases.*")


def changed_paths(repository: Repository, commit: str) -> set[str]:
    """Return the paths that a pull request changes, by its merge commit; raise GitError if the commit is not here."""
    merge, base = repository.commit(commit), repository.commit(f"{commit}^1")
    if merge is None or base is None:
        raise GitError(f"--pull-request {commit} is not a merge commit here")
    return {path for path, _ in repository.files(base, "").items() ^ repository.files(merge, "").items()}


def refusals(changed: set[str], settings: str, jobs: Jobs) -> Iterator[Problem]:
    """Yield the reasons not to evaluate a pull request: it changes code or settings, or there is no cost cap."""
    refused = sorted(path for path in changed if any(fnmatch(path, pattern) for pattern in _REFUSED))
    if refused:
        message = (
            f"the pull request changes {listed(refused, 3)}: files of .evaluator, .github and tools and Python files "
            "decide which code runs with keys; merge them first"
        )
        yield Problem(file=refused[0], line=1, message=message)
    if jobs.max_cost is None:
        message = "a pull request is evaluated only up to a cap: set jobs: {max_cost: USD} in settings.yaml"
        yield Problem(file=settings, line=1, message=message)


def refuse_code(component: Component, cases: Sequence[Case], folder: str, changed: set[str]) -> None:
    """Raise PlanError if a pull request changes a program, or a file that may declare Python checks."""
    changed_here = {path for path in changed if path.startswith(f"{within(folder, component.name)}/")}
    if component.program is not None and changed_here:
        raise PlanError(f"'{component.name}' is a program, which would run with keys; merge the pull request first")
    related = changed_here | {path for path in changed if component.fixtures in PurePosixPath(path).parts}
    declaring = {
        path for path in related if any(fnmatch(PurePosixPath(path).name, name) for name in _CAN_DECLARE_CHECKS)
    }
    if declaring and any(check.kind == "python" for case in cases for check in case.checks):
        raise PlanError(
            f"'{component.name}' has checks in Python, and the pull request changes {listed(sorted(declaring), 3)}: "
            "their code would run with keys; merge it first"
        )
