"""Records → one pushed commit on a branch that adds them and derives their leaderboards; never a textual merge.

If somebody else pushes meanwhile, their commit is fetched and everything is derived again on top of it. Publishing
existing records changes nothing.
"""

import datetime
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from skill_evaluator.ci.arrivals import CLOCKS_APART
from skill_evaluator.ci.outcome import OUTCOME, RECORDS, RunOutcome
from skill_evaluator.display.options import ComponentsOption, FormatOption, argument, option, options, rare
from skill_evaluator.errors import GitError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, parse_json, read_json, validated
from skill_evaluator.identifiers import moment
from skill_evaluator.records.archive import with_rows
from skill_evaluator.records.record import Record, parse_record, read_record
from skill_evaluator.repository import Repository, within
from skill_evaluator.text import counted

_ATTEMPTS = 6  # the first, and five more
_LEAST_WAIT_S = 0.5


@options
class PublishRequest(ComponentsOption, FormatOption):
    """What is to be published, and where it goes."""

    collected: Path = argument("What collect wrote.", Path("collected"))
    mode: Literal["push", "branch", "pull-request"] = option("To the branch, a data branch or one for review.", "push")
    to: str = rare("The branch that is evaluated.", "main", metavar="BRANCH")
    branch: str = rare("The data branch, or the one for review.", "skill-evaluator-records", metavar="BRANCH")
    remote: str = rare("The remote to push to.", "origin")

    @property
    def target(self) -> str:
        """The branch that receives the commit."""
        return self.to if self.mode == "push" else self.branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The ids of the published records and their commit, None if they existed already; `problems` of the others.

    `branch` is None if there was nothing to publish.
    """

    records: Sequence[str]
    branch: str | None
    commit: str | None
    problems: Sequence[LeaderboardError]


def publish(request: PublishRequest) -> Published:
    """Add collected records to a branch in one commit and push it; retry on top of a concurrent push."""
    if not request.collected.is_dir():
        raise PlanError(f"{request.collected} is not a folder; name the folder that collect wrote")
    records, problems = read_records(request.collected)
    if not records:
        return Published(records=(), branch=None, commit=None, problems=problems)
    try:
        commit = publish_records(Repository(request.components), records, request)
    except LeaderboardError as problem:
        raise LeaderboardError("; ".join(map(str, (*problems, problem)))) from None
    ids = [record.run_id for record in records]
    return Published(records=ids, branch=request.target, commit=commit, problems=problems)


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
    """Read the records that `collect` wrote last, sorted by id, and return why others cannot be published.

    Raise PlanError if the list of them cannot be read.
    """
    path = folder / OUTCOME
    outcome = read_json(path, PlanError)
    runs = outcome.get("runs") if isinstance(outcome, dict) else None
    if not isinstance(runs, list):
        raise PlanError(f"{path} lists no runs; name the folder that collect wrote")
    records: list[Record] = []
    problems: list[LeaderboardError] = []
    for number, value in enumerate(runs):
        try:
            run = validated(RunOutcome, value, Path(f"runs[{number}] of {path}"), LeaderboardError)
            if run.run_id:
                records.append(_read_collected(folder, run.skill, run.run_id))
        except LeaderboardError as problem:
            problems.append(problem)
    return sorted(records, key=lambda record: record.run_id), problems


def _read_collected(folder: Path, skill: str, run_id: str) -> Record:
    """Read one record; raise LeaderboardError if it is a different one, or its time is invalid or in the future."""
    path = folder / RECORDS / skill / f"{run_id}.json"
    record = read_record(path)
    if (record.skill, record.run_id) != (skill, run_id):
        raise LeaderboardError(f"{path} holds the record of a different run, '{record.run_id}' of '{record.skill}'")
    try:
        is_ahead = moment(record.timestamp) > datetime.datetime.now(datetime.UTC) + CLOCKS_APART
    except (ValueError, TypeError):  # the time is invalid, or has no equivalent in UTC
        is_ahead = True
    if is_ahead:
        raise LeaderboardError(f"timestamp '{record.timestamp}' in {path} is not a time in the past")
    return record


def publish_records(
    repository: Repository,
    records: Sequence[Record],
    request: PublishRequest,
    wait: Callable[[float], None] = time.sleep,
) -> str | None:
    """Add records to a branch of a remote; return the pushed commit, or None if nothing was new.

    Raise GitError when the remote refuses or others moved it before every attempt. Raise LeaderboardError, after all
    other records are in place, when a record is there already with other content or does not fit its leaderboard.
    """
    folder = repository.place(request.components)
    longest = _LEAST_WAIT_S
    for attempt in range(_ATTEMPTS):
        if attempt:  # long attempts need long waits, or jobs that publish at once keep colliding
            wait(random.uniform(0, longest * 2**attempt))  # noqa: S311 (a delay, not a secret)
        begun = time.monotonic()
        parents, waiting, unread = _find_parents(repository, request, folder)
        tip = parents[-1] if parents else None
        files, problems = _derive_files(repository, tip, [*waiting, *records], folder)
        commit = repository.add(parents, files, _message(records))
        if commit is None or repository.push(request.remote, commit, request.target):
            if problems := [*unread, *problems]:
                raise LeaderboardError("; ".join(map(str, problems)))
            return commit
        longest = max(longest, time.monotonic() - begun)
    raise GitError(
        f"{request.target} of {request.remote} moved {_ATTEMPTS} times while records were added to it; run this again"
    )


def _find_parents(
    repository: Repository, request: PublishRequest, folder: str
) -> tuple[list[str], list[Record], list[LeaderboardError]]:
    """Return the commit's parents, and the records of a branch for review that the evaluated branch lacks.

    If both branches moved, the commit joins them: the tree of the evaluated branch, with all records derived again. The
    problems are those of records on the branch for review that cannot be read.
    """
    tip = repository.fetch(request.remote, request.target)
    if tip is None and request.mode == "push":  # the evaluated branch has to exist; the name is of a tag
        raise _no_branch(request)
    if request.mode != "pull-request":
        return ([] if tip is None else [tip]), [], []
    onto = repository.fetch(request.remote, request.to)
    if onto is None:
        raise _no_branch(request)
    if tip is None or repository.is_ancestor(tip, onto):
        return [onto], [], []
    if repository.is_ancestor(onto, tip):
        return [tip], [], []
    there = repository.files(onto, folder)
    missing = {
        path: blob
        for path, blob in repository.files(tip, folder).items()
        if fnmatch(path, "*/evals/records/*.json") and path not in there
    }
    contents = repository.contents(missing.values())
    waiting: list[Record] = []
    problems: list[LeaderboardError] = []
    for path, blob in missing.items():
        where = Path(f"{tip[:12]}:{path}")
        text = contents[blob].decode("utf-8", "replace")
        try:
            waiting.append(parse_record(parse_json(text, where, LeaderboardError), where))
        except LeaderboardError as problem:
            problems.append(problem)
    return [tip, onto], waiting, problems


def _no_branch(request: PublishRequest) -> GitError:
    return GitError(f"{request.remote} has no branch '{request.to}'; name the evaluated branch with --to (not a tag)")


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
