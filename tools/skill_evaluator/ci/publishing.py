"""Records → one pushed commit on a branch that adds them and derives their leaderboards; never a textual merge.

When somebody else pushes meanwhile, their commit is fetched and everything derived again on top of it. Publishing
records that are there already changes nothing.
"""

import datetime
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Literal

from skill_evaluator.ci.arrivals import CLOCKS_APART
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, RunOutcome
from skill_evaluator.display.options import ComponentsOption, argument, option, options, rare
from skill_evaluator.errors import GitError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, parse_json, read_json, validated
from skill_evaluator.identifiers import moment
from skill_evaluator.records.leaderboard import with_rows
from skill_evaluator.records.record import Record, parse_record, read_record
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import counted

_ATTEMPTS = 6  # the first, and five more
_LEAST_WAIT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The branch that records go to; it stays on top of the branch `onto`, or stands alone when that is None.

    `begins` says whether `branch` may be new. A branch that is evaluated exists; if it does not, it is a tag.
    """

    remote: str
    branch: str
    onto: str | None
    components: str
    begins: bool = True


@options
class PublishRequest(ComponentsOption):
    """What is to be published, and where it goes."""

    collected: Path = argument("What collect wrote.", Path("collected"))
    mode: Literal["push", "branch", "pull-request"] = option(
        "Onto the branch itself, a data branch, or a branch for review.", "push"
    )
    to: str = rare("The branch that is evaluated.", "main", metavar="BRANCH")
    branch: str = rare("The data branch, or the one for review.", "skill-evaluator-records", metavar="BRANCH")
    remote: str = rare("The remote to push to.", "origin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was published, by ids, in which commit (None: it was there already), and what could not be.

    `branch` is None where there was nothing to publish.
    """

    records: Sequence[str]
    branch: str | None
    commit: str | None
    problems: Sequence[LeaderboardError]


def publish(request: PublishRequest) -> Published:
    """Add collected records to a branch in one commit and push it; try again on top of whoever was quicker."""
    if not request.collected.is_dir():
        raise PlanError(f"{request.collected} is not a folder; name the folder that collect wrote")
    records, problems = read_records(request.collected)
    commit = branch = None
    if records:
        repository = Repository(request.components)
        branch = request.to if request.mode == "push" else request.branch
        target = Target(
            remote=request.remote,
            branch=branch,
            onto=request.to if request.mode == "pull-request" else None,
            components=repository.place(request.components),
            begins=request.mode != "push",
        )
        try:
            commit = publish_records(repository, records, target, _message(records))
        except LeaderboardError as problem:
            raise LeaderboardError("; ".join(map(str, (*problems, problem)))) from None
    ids = [record.run_id for record in records]
    return Published(records=ids, branch=branch, commit=commit, problems=problems)


def _message(records: Sequence[Record]) -> str:
    """Return the message of the commit that adds the records."""
    runs = ", ".join(dict.fromkeys(f"{record.skill} {record.skill_version}" for record in records))
    head = f"Record {counted(len(records), 'evaluation')}: {runs}"
    lines = [
        f"{record.skill} {record.skill_version} on {record.model_id}: {record.run_id}"
        + ("" if record.complete else " (incomplete)")
        for record in records
    ]
    return "\n".join([head[:200], "", *lines])


def read_records(folder: Path) -> tuple[list[Record], list[LeaderboardError]]:
    """Read the records that `collect` wrote last, sorted by id, and say why any other cannot be published.

    Raise PlanError where the list of them cannot be read.
    """
    runs, problems = _read_runs(folder)
    records: list[Record] = []
    for run in runs:
        try:
            if run.run_id:
                records.append(_read_collected(folder, run.skill, run.run_id))
        except LeaderboardError as problem:
            problems.append(problem)
    return sorted(records, key=lambda record: record.run_id), problems


def _read_runs(folder: Path) -> tuple[list[RunOutcome], list[LeaderboardError]]:
    """Read what outcome.json says of each run, and why it cannot be read of others."""
    path = folder / OUTCOME
    outcome = read_json(path, PlanError)
    values = outcome.get("runs") if isinstance(outcome, dict) else None
    if not isinstance(values, list):
        raise PlanError(f"{path} lists no runs; name the folder that collect wrote")
    runs: list[RunOutcome] = []
    problems: list[LeaderboardError] = []
    for number, value in enumerate(values):
        try:
            runs.append(validated(RunOutcome, value, Path(f"runs[{number}] of {path}"), LeaderboardError))
        except LeaderboardError as problem:
            problems.append(problem)
    return runs, problems


def _read_collected(folder: Path, skill: str, run_id: str) -> Record:
    """Read one record; raise LeaderboardError if it is a different one, or its time is invalid or in the future."""
    path = folder / RECORDS / skill / f"{run_id}.json"
    record = read_record(path)
    if (record.skill, record.run_id) != (skill, run_id):
        raise LeaderboardError(f"{path} holds the record of a different run, '{record.run_id}' of '{record.skill}'")
    try:
        is_ahead = moment(record.timestamp) > datetime.datetime.now(datetime.UTC) + CLOCKS_APART
    except (ValueError, TypeError):  # it names no moment, or none in UTC
        is_ahead = True
    if is_ahead:
        raise LeaderboardError(f"timestamp '{record.timestamp}' in {path} is not a time in the past")
    return record


def publish_records(
    repository: Repository,
    records: Sequence[Record],
    target: Target,
    message: str,
    wait: Callable[[float], None] = time.sleep,
) -> str | None:
    """Add records to a branch of a remote; return the commit that was pushed, or None when nothing was new.

    Raise GitError when the remote refuses or others moved it before every attempt. Raise LeaderboardError, after all
    other records are in place, when a record is there already with other content or does not fit its leaderboard.
    """
    longest = _LEAST_WAIT_S
    for attempt in range(_ATTEMPTS):
        if attempt:  # long attempts need long waits, or jobs that publish at once keep colliding
            wait(random.uniform(0, longest * 2**attempt))  # noqa: S311 (a delay, not a secret)
        begun = time.monotonic()
        parents, waiting, unread = _find_parents(repository, target)
        tip = parents[-1] if parents else None
        files, problems = _derive_files(repository, tip, [*waiting, *records], target.components)
        commit = repository.add(parents, files, message)
        if commit is None or repository.push(target.remote, commit, target.branch):
            if problems := [*unread, *problems]:
                raise LeaderboardError("; ".join(map(str, problems)))
            return commit
        longest = max(longest, time.monotonic() - begun)
    raise GitError(
        f"{target.branch} of {target.remote} moved {_ATTEMPTS} times while records were added to it; run this again"
    )


def _find_parents(repository: Repository, target: Target) -> tuple[list[str], list[Record], list[LeaderboardError]]:
    """Return the commit's parents, and the records of a branch for review that the branch it is for lacks.

    Where both branches have moved, the commit joins them: the tree of the latter, with all records derived again. The
    problems are those of records on the branch for review that cannot be read.
    """
    tip = repository.fetch(target.remote, target.branch)
    if tip is None and not target.begins:
        raise _no_branch(target.remote, target.branch)
    if target.onto is None:
        return ([] if tip is None else [tip]), [], []
    onto = repository.fetch(target.remote, target.onto)
    if onto is None:
        raise _no_branch(target.remote, target.onto)
    if tip is None or repository.is_ancestor(tip, onto):
        return [onto], [], []
    if repository.is_ancestor(onto, tip):
        return [tip], [], []
    there = repository.files(onto, target.components)
    waiting: list[Record] = []
    problems: list[LeaderboardError] = []
    missing = {
        path: blob
        for path, blob in repository.files(tip, target.components).items()
        if fnmatch(path, "*/evals/records/*.json") and path not in there
    }
    contents = repository.contents(missing.values())
    for path, blob in missing.items():
        where = Path(f"{tip[:12]}:{path}")
        text = contents[blob].decode("utf-8", "replace")
        try:
            waiting.append(parse_record(parse_json(text, where, LeaderboardError), where))
        except LeaderboardError as problem:
            problems.append(problem)
    return [tip, onto], waiting, problems


def _no_branch(remote: str, name: str) -> GitError:
    return GitError(f"{remote} has no branch '{name}'; name the evaluated branch with --to (not a tag)")


def _derive_files(
    repository: Repository, tip: str | None, records: Iterable[Record], folder: str
) -> tuple[Mapping[str, bytes], list[LeaderboardError]]:
    """Return the files to add or replace on top of a commit, and the problems of some components.

    A record that is there stays as it is. Two attempts at an incomplete run may differ; at a complete one, that is
    a problem.
    """
    by_skill: dict[str, dict[str, Record]] = {}
    for record in records:
        path = within(folder, f"{record.skill}/evals/records/{record.run_id}.json")
        by_skill.setdefault(record.skill, {}).setdefault(path, record)
    boards = {skill: within(folder, f"{skill}/leaderboard.json") for skill in by_skill}
    wanted = {*boards.values(), *(path for paths in by_skill.values() for path in paths)}
    listed = {} if tip is None else repository.files(tip, folder)
    blobs = {path: blob for path, blob in listed.items() if path in wanted}
    contents = repository.contents(blobs.values())
    there = {path: contents[blob] for path, blob in blobs.items()}
    files: dict[str, bytes] = {}
    problems: list[LeaderboardError] = []
    for skill, of_skill in by_skill.items():
        board = boards[skill]
        rows = [record.row() for record in of_skill.values() if record.has_row]
        try:
            additions = with_rows(there.get(board), Path(board), skill, rows)
        except LeaderboardError as problem:
            problems.append(problem)
            continue
        problems += additions.refused.values()
        of_skill = {path: record for path, record in of_skill.items() if record.run_id not in additions.refused}
        new = {path: json_text(record.model_dump(mode="json")).encode() for path, record in of_skill.items()}
        files |= {board: b"".join(additions.blocks)} if additions.blocks else {}
        files |= {path: content for path, content in new.items() if path not in there}
        problems += [
            LeaderboardError(f"{path} exists with different content; a record is never edited")
            for path, record in of_skill.items()
            if record.complete and there.get(path, new[path]) != new[path]
        ]
    return files, problems


def edited_checks(repository: Repository, base: str, config: str) -> list[str]:
    """Return the files that decide how a change is checked, and that the change itself edits, adds or removes."""
    edited, head = [], str(repository.commit("HEAD"))
    for folder, name in ((".github", "*"), (config, "requirements*")):
        before, after = (repository.files(commit, folder) for commit in (base, head))
        edited += [path for path, _ in before.items() ^ after.items() if fnmatch(PurePosixPath(path).name, name)]
    return sorted(set(edited))
