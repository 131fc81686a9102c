"""What a push asks for: whether each component is evaluated on each model, and the reason in words.

Versions and records in, decisions out. A push is judged by its own bump (base to head) and by what the leaderboards
record, so that the next push makes up for a lost run.
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
from skill_evaluator.records.archive import RecordedRun
from skill_evaluator.records.leaderboard import newest_recorded
from skill_evaluator.records.record import short_digest
from skill_evaluator.repository import Repository, within

Board = Mapping[str, RecordedRun]
"""The newest version on a component's leaderboard, by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a component is evaluated on a model."""

    skill: str
    model_id: str
    runs: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedComponent:
    """A component at the head of a push and at its base, and its recorded versions.

    Without a known base (a force push) `before` says nothing, and only the recorded versions count.
    """

    after: ComponentVersion
    before: ComponentVersion | None
    base_known: bool
    board: Board


def decide(change: PushedComponent, model_ids: Iterable[str]) -> tuple[list[Decision], list[Problem]]:
    """Return a decision for every model, and the problems of the change; where there are problems, nothing runs."""
    problems = list(versioning_problems(change.before, change.after))
    version = change.after.version
    decisions = []
    for model_id in model_ids:
        recorded = change.board.get(model_id)
        if problems or version is None:
            runs, reason = False, "wrong, as said below"
        elif recorded is None:
            runs, reason = _decide_by_push(change, version)
        else:
            runs, reason = _decide_by_record(change, version, recorded)
        decisions.append(Decision(skill=change.after.name, model_id=model_id, runs=runs, reason=reason))
    return decisions, problems


def decide_again(change: PushedComponent, model_ids: Iterable[str]) -> list[Decision]:
    """Return a decision for every model: the version at the head is asked again if it, or what it patches, is recorded.

    After a PATCH the prompt at the head is asked, not the recorded one: that is what is in use.
    """
    decisions = []
    for model_id in model_ids:
        recorded, version = change.board.get(model_id), change.after.version
        step = None if recorded is None or version is None else bump(recorded.version, version)
        runs, reason = step in (Bump.SAME, Bump.PATCH), f"{version} is not recorded"
        if recorded is not None and runs:
            reason = f"{version} is recorded" if step is Bump.SAME else f"PATCH since the recorded {recorded.version}"
        decisions.append(Decision(skill=change.after.name, model_id=model_id, runs=runs, reason=reason))
    return decisions


def _decide_by_record(change: PushedComponent, version: str, recorded: RecordedRun) -> tuple[bool, str]:
    step = bump(recorded.version, version)
    if step is Bump.SAME:
        return False, f"{version} is recorded"
    if step is Bump.LOWERED:
        return False, f"{version} is below the recorded {recorded.version}"
    if not needs_evaluation(step):
        return False, f"{step} since the recorded {recorded.version}"
    schema = change.after.schema and short_digest(change.after.schema)
    recorded_schema = recorded.digests.get("schema")
    schema_changed = None not in (recorded_schema, schema) and recorded_schema != schema
    if schema_changed and not breaks_contract(recorded.version, version):
        return False, f"the schema is not that of the recorded {recorded.version}, which asks for a new MAJOR version"
    before = change.before.version if change.base_known and change.before else None
    asked_by_push = before is None or needs_evaluation(bump(before, version))
    return True, f"{step} {recorded.version} → {version}{'' if asked_by_push else f' ({version} was never recorded)'}"


def _decide_by_push(change: PushedComponent, version: str) -> tuple[bool, str]:
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


def grouped(decisions: Iterable[Decision]) -> Iterator[tuple[Decision, list[str]]]:
    """Yield each decision once with all models it is the same for, in the order of the decisions."""
    groups: dict[tuple[str, bool, str], tuple[Decision, list[str]]] = {}
    for decision in decisions:
        key = (decision.skill, decision.runs, decision.reason)
        groups.setdefault(key, (decision, []))[1].append(decision.model_id)
    yield from groups.values()


def recorded_boards(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, dict[str, RecordedRun]], list[Problem]]:
    """Return the newest recorded version by component and model over the leaderboards of some commits, and problems.

    A commit that is not here is left out; a leaderboard that cannot be read is a problem.
    """
    commits = dict.fromkeys(filter(None, (repository.commit(ref) for ref in refs)))
    blobs = [
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path == within(folder, f"{PurePosixPath(path).parent.name}/leaderboard.json")
    ]
    texts = repository.contents(blob for _, blob in blobs)
    boards: dict[str, dict[str, RecordedRun]] = {}
    problems: dict[tuple[str, str], Problem] = {}
    for path, blob in dict.fromkeys(blobs):
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[path, str(problem)] = Problem(file=path, line=1, message=str(problem))
            continue
        board = boards.setdefault(PurePosixPath(path).parent.name, {})
        for model_id, recorded in newest.items():
            highest = board.get(model_id)
            if highest is None or bump(recorded.version, highest.version) is Bump.LOWERED:
                board[model_id] = recorded
    return boards, list(problems.values())
