"""Publish records: push one commit that adds them to a branch and derives their leaderboards.

If the branch moves meanwhile, its commit is fetched and everything is derived again on top of it; texts are never
merged. Publishing existing records changes nothing.
"""

import datetime
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from skill_evaluator.ci.collecting import MAX_CLOCK_SKEW
from skill_evaluator.ci.plan import OUTCOME, RECORDS, RunOutcome
from skill_evaluator.errors import GitError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, parse_json, read_json, validated
from skill_evaluator.identifiers import moment
from skill_evaluator.library.options import ComponentsOption, FormatOption, argument, option, options, rare
from skill_evaluator.records.archive import with_rows
from skill_evaluator.records.record import Record, parse_record, read_record
from skill_evaluator.repository import Repository, within
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

_MAX_ATTEMPTS = 6
_MIN_WAIT_S = 0.5


@options
class PublishRequest(ComponentsOption, FormatOption):
    """The options of `ci publish`."""

    collected: Path = argument("The folder that `ci collect` wrote.", Path("collected"))
    mode: Literal["push", "branch", "pull-request"] = option(
        "push: push to --to; branch and pull-request: to --branch.", "push"
    )
    to: str = rare("Branch that CI evaluates; `--mode push` also pushes to it.", "main", metavar="BRANCH")
    branch: str = rare(
        "Branch for `--mode branch` and `--mode pull-request`.", "skill-evaluator-records", metavar="BRANCH"
    )

    @property
    def target(self) -> str:
        """The branch that receives the commit."""
        return self.to if self.mode == "push" else self.branch


def publish(request: PublishRequest) -> tuple[list[Record], str | None, list[LeaderboardError]]:
    """Add collected records to a branch in one commit and push it. If the branch moved meanwhile, try again.

    Return the records, the commit (None if no record is new), and the errors of records that cannot be read.
    """
    if not request.collected.is_dir():
        raise PlanError(f"{request.collected} is not a folder; name the folder that `ci collect` wrote")
    records, problems = read_records(request.collected)
    try:
        commit = publish_records(Repository(request.components), records, request) if records else None
    except LeaderboardError as problem:
        raise LeaderboardError("; ".join(map(str, (*problems, problem)))) from None
    return records, commit, problems


def _commit_message(records: Sequence[Record]) -> str:
    runs = ", ".join(dict.fromkeys(f"{record.skill} {record.skill_version}" for record in records))
    head = f"Record {counted(len(records), 'evaluation')}: {runs}"
    lines = [
        f"{record.skill} {record.skill_version} with {record.model_id}: {record.run_id}"
        + ("" if record.complete else " (incomplete)")
        for record in records
    ]
    return "\n".join([head[:200], "", *lines])


def read_records(folder: Path) -> tuple[list[Record], list[LeaderboardError]]:
    """Return the records, sorted by run id, and errors in reading them. Raise PlanError if outcome.json is invalid."""
    path = folder / OUTCOME
    outcome = read_json(path, PlanError)
    runs = outcome.get("runs") if isinstance(outcome, dict) else None
    if not isinstance(runs, list):
        raise PlanError(f"{path} lists no runs; name the folder that `ci collect` wrote")
    records, problems = list[Record](), list[LeaderboardError]()
    for number, value in enumerate(runs):
        try:
            run = validated(RunOutcome, value, Path(f"runs[{number}] of {path}"), LeaderboardError)
            if run.run_id:
                records.append(_read_collected(folder, run.skill, run.run_id))
        except LeaderboardError as problem:
            problems.append(problem)
    return sorted(records, key=lambda record: record.run_id), problems


def _read_collected(folder: Path, skill: str, run_id: str) -> Record:
    path = folder / RECORDS / skill / f"{run_id}.json"
    record = read_record(path)
    if (record.skill, record.run_id) != (skill, run_id):
        raise LeaderboardError(
            f"{path} holds the record of a different run, '{record.run_id}' of '{record.skill}'; rerun `ci collect`"
        )
    with suppress(ValueError, TypeError):  # the time is invalid, or has no equivalent in UTC
        if moment(record.timestamp) <= datetime.datetime.now(datetime.UTC) + MAX_CLOCK_SKEW:
            return record
    raise LeaderboardError(f"{path}: timestamp '{record.timestamp}' is invalid or in the future; rerun `ci collect`")


def publish_records(
    repository: Repository, records: Sequence[Record], request: PublishRequest, wait: Callable[..., None] = time.sleep
) -> str | None:
    """Add records to a branch of `origin` and return the pushed commit, or None if the branch has all of them.

    Raise GitError if the remote refuses or the branch keeps moving. Raise LeaderboardError, after all other records are
    pushed, if a record exists with other content or does not fit its leaderboard.
    """
    folder = repository.relative_path(request.components)
    longest_attempt_s = _MIN_WAIT_S
    for attempt in range(_MAX_ATTEMPTS):
        if attempt:  # long attempts need long waits, or jobs that publish at once keep colliding
            wait(random.uniform(0, longest_attempt_s * 2**attempt))  # noqa: S311 (a delay, not a secret)
        started = time.monotonic()
        parents, waiting, unreadable = _find_parents(repository, request, folder)
        tip = parents[-1] if parents else None
        files, problems = _derive_files(repository, tip, [*waiting, *records], folder)
        commit = repository.add(parents, files, _commit_message(records))
        if commit is None or repository.push(commit, request.target):
            if problems := [*unreadable, *problems]:
                raise LeaderboardError("; ".join(map(str, problems)))
            return commit
        longest_attempt_s = max(longest_attempt_s, time.monotonic() - started)
    raise GitError(f"{request.target} of origin moved {_MAX_ATTEMPTS} times during publishing; run this again")


def _find_parents(
    repository: Repository, request: PublishRequest, folder: str
) -> tuple[list[str], list[Record], list[LeaderboardError]]:
    """Return the parents of the commit to push, the records to copy, and the errors in reading these records.

    If the evaluated branch (`request.to`) and the pushed branch diverged, the commit merges them: it has the files of
    the evaluated branch, and copies the records that only the pushed branch has.
    """
    tip = repository.fetch(request.target)
    if request.mode == "branch":
        return ([] if tip is None else [tip]), [], []
    evaluated = tip if request.mode == "push" else repository.fetch(request.to)
    if evaluated is None:
        raise GitError(f"origin has no branch '{request.to}'; name the evaluated branch with --to (not a tag)")
    if tip is None or repository.is_ancestor(tip, evaluated):
        return [evaluated], [], []
    if repository.is_ancestor(evaluated, tip):
        return [tip], [], []
    existing = repository.files(evaluated, folder)
    missing = {
        path: blob
        for path, blob in repository.files(tip, folder).items()
        if fnmatch(path, "*/evals/records/*.json") and path not in existing
    }
    contents = repository.contents(missing.values())
    waiting, problems = list[Record](), list[LeaderboardError]()
    for path, blob in missing.items():
        source = Path(f"{tip[:12]}:{path}")
        try:
            text = contents[blob].decode("utf-8", "replace")
            waiting.append(parse_record(parse_json(text, source, LeaderboardError), source))
        except LeaderboardError as problem:
            problems.append(problem)
    return [tip, evaluated], waiting, problems


def _derive_files(
    repository: Repository, tip: str | None, records: Iterable[Record], folder: str
) -> tuple[Mapping[str, bytes], list[LeaderboardError]]:
    """Return the contents of new records and changed leaderboards by path, and the errors of refused records."""
    tree = {} if tip is None else repository.files(tip, folder)
    files: dict[str, bytes] = {}
    problems: list[LeaderboardError] = []
    for skill, records_of_skill in by_key((record.skill, record) for record in records).items():
        board = within(folder, f"{skill}/leaderboard.json")
        by_path: dict[str, Record] = {}
        for record in records_of_skill:
            by_path.setdefault(within(folder, f"{skill}/evals/records/{record.run_id}.json"), record)
        blobs = {path: tree[path] for path in (board, *by_path) if path in tree}
        contents = repository.contents(blobs.values())
        existing = {path: contents[blob] for path, blob in blobs.items()}
        rows = [record.row() for record in by_path.values() if record.has_row]
        try:
            content, refused = with_rows(existing.get(board), Path(board), skill, rows)
        except LeaderboardError as problem:
            problems.append(problem)
            continue
        problems += refused.values()
        if content is not None:
            files[board] = content
        for path, record in by_path.items():
            record_content = json_text(record.model_dump(mode="json")).encode()
            if record.run_id in refused:
                continue
            if path not in existing:
                files[path] = record_content
            elif record.complete and existing[path] != record_content:
                problems.append(LeaderboardError(f"{path} exists with different content; a record is never edited"))
    return files, problems
