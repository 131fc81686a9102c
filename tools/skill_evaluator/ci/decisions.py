"""What a push asks for: by component and model, whether it is evaluated, and the reason in words.

Pure: versions and records in, decisions out. A push is judged twice: by its own bump (base to head), and by what is
recorded, so that a run that was lost is made up for by the next push.

What the leaderboards in some commits say was measured: the branch itself, and where its records wait or are kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.versions import (
    Bump,
    ComponentVersion,
    Problem,
    breaks_contract,
    bump,
    needs_evaluation,
    versioning_problems,
)
from skill_evaluator.records.leaderboard import Recorded, newest_recorded
from skill_evaluator.repository import Repository, within

Board = Mapping[str, Recorded]
"""By model, the newest version on a component's leaderboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a component is evaluated on a model."""

    skill: str
    model_id: str
    runs: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedComponent:
    """A component at the head of a push, what it was at the base, and what is recorded of it.

    Without a known base (a force push) `before` says nothing, and only the records count.
    """

    after: ComponentVersion
    before: ComponentVersion | None
    base_known: bool
    board: Board


def decide(change: PushedComponent, model_ids: Iterable[str]) -> tuple[list[Decision], list[Problem]]:
    """A decision for every model, and what is wrong with the change: then nothing runs."""
    problems = list(versioning_problems(change.before, change.after))
    if problems or change.after.version is None:
        return [_skipped(change, model_id, "wrong, as said below") for model_id in model_ids], problems
    return [_decision(change, change.after.version, model_id) for model_id in model_ids], []


def _decision(change: PushedComponent, version: str, model_id: str) -> Decision:
    recorded = change.board.get(model_id)
    if recorded is None:
        runs, reason = _by_push(change, version)
    else:
        runs, reason = _by_record(change, version, recorded)
    return Decision(skill=change.after.name, model_id=model_id, runs=runs, reason=reason)


def _by_record(change: PushedComponent, version: str, recorded: Recorded) -> tuple[bool, str]:
    step = bump(recorded.version, version)
    if step is Bump.SAME:
        return False, f"{version} is recorded"
    if step is Bump.LOWERED:
        return False, f"{version} is below the recorded {recorded.version}"
    if not needs_evaluation(step):
        return False, f"{step} since the recorded {recorded.version}"
    schema_changed = None not in (recorded.schema, change.after.schema) and recorded.schema != change.after.schema
    if schema_changed and not breaks_contract(recorded.version, version):
        return False, f"the schema is not that of the recorded {recorded.version}, which asks for a new MAJOR version"
    return True, f"{step} {recorded.version} → {version}{_healing(change, version)}"


def _healing(change: PushedComponent, version: str) -> str:
    """Says so when it is not this push that asks for the run."""
    known = change.base_known and change.before is not None and change.before.version is not None
    if not known or change.before is None or needs_evaluation(bump(change.before.version, version)):
        return ""
    return f" ({version} was never recorded)"


def _by_push(change: PushedComponent, version: str) -> tuple[bool, str]:
    if not change.base_known:
        return False, "no record of this model, and the base of this push is unknown; start it by hand"
    before = change.before.version if change.before else None
    if change.before is not None and before is None:
        return True, f"{version}, after a version that could not be read"
    step = bump(before, version)
    if step is Bump.NEW:
        return True, f"new component at {version}"
    if needs_evaluation(step):
        return True, f"{step} {before} → {version}"
    change_in_words = "unchanged" if step is Bump.SAME else f"{step} {before} → {version}"
    return False, f"{change_in_words}; no record of this model yet: start it by hand to have one"


def _skipped(change: PushedComponent, model_id: str, reason: str) -> Decision:
    return Decision(skill=change.after.name, model_id=model_id, runs=False, reason=reason)


def grouped(decisions: Iterable[Decision]) -> Iterator[tuple[Decision, list[str]]]:
    """Decisions alike but for the model, as one with its models, in the order they came."""
    groups: dict[tuple[str, bool, str], tuple[Decision, list[str]]] = {}
    for decision in decisions:
        key = (decision.skill, decision.runs, decision.reason)
        groups.setdefault(key, (decision, []))[1].append(decision.model_id)
    yield from groups.values()


_FILE = "leaderboard.json"


def recorded_boards(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, dict[str, Recorded]], list[Problem]]:
    """By component and model, the newest version on the leaderboards of any of the commits; one not here is left out.

    A leaderboard that cannot be read is a problem.
    """
    commits = dict.fromkeys(filter(None, (repository.commit(ref) for ref in refs)))
    blobs = [
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path == within(folder, f"{PurePosixPath(path).parent.name}/{_FILE}")
    ]
    texts = repository.contents(blob for _, blob in blobs)
    boards: dict[str, dict[str, Recorded]] = {}
    problems: dict[tuple[str, str], Problem] = {}
    for path, blob in dict.fromkeys(blobs):
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[path, str(problem)] = Problem(file=path, line=1, message=str(problem))
            continue
        board = boards.setdefault(PurePosixPath(path).parent.name, {})
        for model_id, recorded in newest.items():
            known = board.get(model_id)
            if known is None or bump(recorded.version, known.version) is Bump.LOWERED:
                board[model_id] = recorded
    return boards, list(problems.values())
