"""Which components run on which models, decided by the version bump of a push and the recorded versions.

A pull request that changes code, workflows or settings is refused, because the jobs have keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath

from skill_evaluator.ci.plan import OnModels
from skill_evaluator.errors import GitError, LeaderboardError, PlanError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Jobs
from skill_evaluator.library.versions import Bump, ComponentVersion, Problem, breaks_contract, bump, needs_evaluation
from skill_evaluator.records.archive import RecordedRun, newest_recorded
from skill_evaluator.records.record import short_digest
from skill_evaluator.repository import Repository, within
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed

_REFUSED = (".evaluator/*", ".github/*", "tools/*", "*.py", ".gitmodules")
_CAN_DECLARE_CHECKS = ("datasets.json", "meta.json", "*checks*", "cases.*")

Board = Mapping[str, RecordedRun]
"""The newest version on a component's leaderboard, by model."""


def decide(
    before: ComponentVersion | None, after: ComponentVersion, recorded: RecordedRun | None, *, base_known: bool
) -> tuple[bool, str]:
    """Return whether a component runs on a model, and the reason.

    `before` and `after` are the component at the base and the head of the push; `after` has a valid version. If the
    base is unknown (a force push), `before` is None and only the recorded version counts.
    """
    version = str(after.version)
    if recorded is not None:
        return _decide_by_record(before, after, version, recorded)
    if not base_known:
        return False, "no record of this model, and the base of this push is unknown; start it by hand"
    if before is not None and before.version is None:
        return True, f"{version}, after a version that could not be read"
    old = None if before is None else before.version
    step = bump(old, version)
    if step is Bump.NEW:
        return True, f"new component at {version}"
    if needs_evaluation(step):
        return True, f"{step} {old} → {version}"
    change = "unchanged" if step is Bump.SAME else f"{step} {old} → {version}"
    return False, f"{change}; no record of this model yet: start it by hand to have one"


def _decide_by_record(
    before: ComponentVersion | None, after: ComponentVersion, version: str, recorded: RecordedRun
) -> tuple[bool, str]:
    step = bump(recorded.version, version)
    if step is Bump.SAME:
        return False, f"{version} is recorded"
    if step is Bump.LOWERED:
        return False, f"{version} is below the recorded {recorded.version}"
    if not needs_evaluation(step):
        return False, f"{step} since the recorded {recorded.version}"
    schema = after.schema and short_digest(after.schema)
    recorded_schema = recorded.digests.get("schema")
    schema_changed = None not in (recorded_schema, schema) and recorded_schema != schema
    if schema_changed and not breaks_contract(recorded.version, version):
        return False, f"the schema differs from that of the recorded {recorded.version}: bump the MAJOR version"
    of_this_push = before is None or needs_evaluation(bump(before.version, version))
    return True, f"{step} {recorded.version} → {version}{'' if of_this_push else f' ({version} was never recorded)'}"


def decide_again(version: str | None, recorded: RecordedRun | None) -> tuple[bool, str]:
    """Return whether `plan --drift` runs a version on a model, and the reason.

    A version runs if it, or the version that it patches, is recorded. The prompt at the head runs, since it is the one
    in use.
    """
    step = None if recorded is None or version is None else bump(recorded.version, version)
    if recorded is None or step not in (Bump.SAME, Bump.PATCH):
        return False, f"{version} is not recorded"
    return True, f"{version} is recorded" if step is Bump.SAME else f"PATCH since the recorded {recorded.version}"


def grouped(decisions: Iterable[OnModels]) -> list[OnModels]:
    """Merge decisions with the same component and reason into one with all their models, in order."""
    groups = by_key(
        ((decision.skill, decision.reason), model_id) for decision in decisions for model_id in decision.models
    )
    return [OnModels(skill=skill, models=models, reason=reason) for (skill, reason), models in groups.items()]


def recorded_boards(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, dict[str, RecordedRun]], list[Problem]]:
    """Return the newest recorded version by component and model over the leaderboards at `refs`, and the problems.

    Skip refs that do not exist here. A leaderboard that cannot be read is a problem.
    """
    commits = dict.fromkeys(filter(None, map(repository.commit, refs)))
    depth = within(folder, "name/leaderboard.json").count("/")
    blobs = [
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path.endswith("/leaderboard.json") and path.count("/") == depth
    ]
    texts = repository.contents(blob for _, blob in blobs)
    boards: dict[str, dict[str, RecordedRun]] = {}
    problems: dict[str, Problem] = {}
    for path, blob in dict.fromkeys(blobs):
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[str(problem)] = Problem(file=path, line=1, message=str(problem))
            continue
        name = PurePosixPath(path).parent.name
        boards[name] = newest_of((boards.get(name, {}), newest))
    return boards, list(problems.values())


def newest_of(boards: Iterable[Board]) -> dict[str, RecordedRun]:
    """Return the highest recorded version of each model over several leaderboards."""
    newest: dict[str, RecordedRun] = {}
    for model_id, recorded in (item for board in boards for item in board.items()):
        highest = newest.get(model_id)
        if highest is None or bump(recorded.version, highest.version) is Bump.LOWERED:
            newest[model_id] = recorded
    return newest


def changed_paths(repository: Repository, commit: str) -> set[str]:
    """Return the paths that a pull request changes. Raise GitError if `commit` is not a merge commit in this clone."""
    merge, base = repository.commit(commit), repository.commit(f"{commit}^1")
    if merge is None or base is None:
        raise GitError(f"--pull-request {commit} is not a merge commit in this clone; fetch it")
    return {path for path, _ in repository.files(base, "").items() ^ repository.files(merge, "").items()}


def refusals(changed: set[str], settings: str, jobs: Jobs) -> Iterator[Problem]:
    """Yield a problem if a pull request changes code or settings, and one if settings.yaml has no cost cap for jobs."""
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
            f"'{component.name}' has checks in Python, whose code would run with keys, and the pull request changes "
            f"{listed(sorted(declaring), 3)}; merge the pull request first"
        )
