"""Records onto a branch: one commit that adds them and re-derives their leaderboards, pushed; never a textual merge.

When somebody else pushed meanwhile, their commit is fetched and everything derived again on top of it. Publishing what
is there already changes nothing.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from skill_evaluator.errors import GitError, LeaderboardError
from skill_evaluator.files import json_text
from skill_evaluator.leaderboard import text_with_rows
from skill_evaluator.records import Record, read_record
from skill_evaluator.repository import Repository, within

_ATTEMPTS = 6  # the first, and five more
_FIRST_WAIT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where records go: `branch`, which begins and stays on top of the branch `onto` (None: it stands alone)."""

    remote: str
    branch: str
    onto: str | None
    components: str


def read_records(folder: Path) -> list[Record]:
    """The records that `collect` wrote, in the order of their ids; raises LeaderboardError."""
    return [read_record(path) for path in sorted(folder.glob("records/*/*.json"), key=lambda path: path.name)]


def publish_records(
    repository: Repository,
    records: Sequence[Record],
    target: Target,
    message: str,
    wait: Callable[[float], None] = time.sleep,
) -> str | None:
    """Add records to a branch of a remote; the commit that is there now because of it, None when nothing was new.

    Raises GitError when the remote refuses, or was moved by others before every attempt; LeaderboardError, with the
    others in place, when a complete record is there already and says something else.
    """
    for attempt in range(_ATTEMPTS):
        if attempt:
            wait(random.uniform(0.1, 1.0) * _FIRST_WAIT_S * 2 ** (attempt - 1))  # noqa: S311 (a delay, not a secret)
        parents, waiting = _parents(repository, target)
        tip = parents[-1] if parents else None
        files, contradicted = _new_files(repository, tip, [*waiting, *records], target.components)
        commit = repository.add(parents, files, message)
        if commit is None or repository.push(target.remote, commit, target.branch):
            if contradicted:
                raise LeaderboardError(f"{contradicted[0]} is there and says something else; a record is never edited")
            return commit
    raise GitError(
        f"{target.branch} of {target.remote} moved {_ATTEMPTS} times while records were added to it; run this again"
    )


def _parents(repository: Repository, target: Target) -> tuple[list[str], list[Record]]:
    """What the commit stands on, and the records of a branch for review that are not yet in the branch it is for.

    Where both have moved, the commit joins them: the tree of the latter, with all records derived again on top.
    """
    tip = repository.fetch(target.remote, target.branch)
    if target.onto is None:
        return ([] if tip is None else [tip]), []
    onto = repository.fetch(target.remote, target.onto)
    if onto is None:
        raise GitError(f"{target.remote} has no branch '{target.onto}'; name the one that is evaluated with --to")
    if tip is None or repository.is_ancestor(tip, onto):
        return [onto], []
    if repository.is_ancestor(onto, tip):
        return [tip], []
    there = repository.files(onto, target.components)
    missing = [
        blob
        for path, blob in repository.files(tip, target.components).items()
        if fnmatch(path, "*/evals/records/*.json") and path not in there
    ]
    return [tip, onto], [Record.model_validate_json(text) for text in repository.contents(missing).values()]


def _new_files(
    repository: Repository, tip: str | None, records: Iterable[Record], folder: str
) -> tuple[Mapping[str, bytes], list[str]]:
    """The files to add or replace on top of a commit: every record, and the leaderboard of its component.

    A record that is there stays as it is; the paths of complete ones that say something else come second. (Of an
    incomplete one two attempts may tell differently, having come equally far.)
    """
    by_skill: dict[str, list[Record]] = {}
    for record in records:
        by_skill.setdefault(record.skill, []).append(record)
    files: dict[str, bytes] = {}
    contradicted: list[str] = []
    for skill, of_skill in by_skill.items():
        place = within(folder, skill)
        there = {} if tip is None else repository.files(tip, place)
        board = f"{place}/leaderboard.json"
        old = repository.contents([there[board]])[there[board]].decode() if board in there else None
        new = text_with_rows(old, Path(board), skill, [record.row() for record in of_skill])
        if new != old:
            files[board] = new.encode()
        for record in of_skill:
            path = f"{place}/evals/records/{record.run_id}.json"
            content = json_text(record.model_dump(mode="json")).encode()
            if path not in there:
                files[path] = content
            elif record.complete and repository.contents([there[path]])[there[path]] != content:
                contradicted.append(path)
    return files, contradicted
