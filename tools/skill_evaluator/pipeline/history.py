"""What a work tree changed since a commit that it may not: versions that are not honest, records that were rewritten.

Reads components here and there; the rules themselves are in `versions` and `bookkeeping`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import read_bytes
from skill_evaluator.pipeline.bookkeeping import Books, disagreements, rewritings
from skill_evaluator.repository import Repository, within
from skill_evaluator.versions import ComponentVersion, Problem, problems_between, version_in, versions_at

_BOOK = re.compile(r"(?P<skill>[^/]+)/(?:leaderboard|evals/records/(?P<run>[^/]+))\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The components at a commit: by name, what they were and which leaderboards and records they had."""

    versions: Mapping[str, ComponentVersion]
    books: Mapping[str, Books]


def past_at(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> Past:
    """What some components in a folder were at a commit."""
    (versions,) = versions_at(repository, (commit,), folder)
    return Past(versions=versions, books=_books_at(repository, commit, folder, names))


def problems_of(components: Path, name: str, folder: str, past: Past | None) -> list[Problem]:
    """What is wrong with a component's leaderboard and records, and with what it became since; may raise.

    `folder` is how problems are to call that of the components.
    """
    books = _books_here(components, name, folder)
    found = list(disagreements(books))
    if past is None:
        return found
    if name in past.books:
        found += rewritings(past.books[name], books)
    after = version_in(components / name, within(folder, name))
    return found if after is None else [*problems_between(past.versions.get(name), after), *found]


def _books_here(components: Path, name: str, folder: str) -> Books:
    board = components / name / "leaderboard.json"
    records = sorted((components / name / "evals" / "records").glob("*.json"))
    return Books(
        skill=name,
        folder=within(folder, name),
        leaderboard=read_bytes(board, LeaderboardError) if board.exists() else None,
        records={path.stem: read_bytes(path, LeaderboardError) for path in records},
    )


def _books_at(repository: Repository, commit: str, folder: str, names: Iterable[str]) -> dict[str, Books]:
    """The books that the components had at a commit, if any."""
    blobs: dict[str, dict[str | None, str]] = {}
    for skill, run_id, blob in _book_files(repository, commit, folder):
        blobs.setdefault(skill, {})[run_id] = blob
    wanted = [name for name in names if name in blobs]
    texts = repository.contents(blob for name in wanted for blob in blobs[name].values())
    return {
        name: Books(
            skill=name,
            folder=within(folder, name),
            leaderboard=texts[blobs[name][None]] if None in blobs[name] else None,
            records={run_id: texts[blob] for run_id, blob in blobs[name].items() if run_id is not None},
        )
        for name in wanted
    }


def _book_files(repository: Repository, commit: str, folder: str) -> Iterator[tuple[str, str | None, str]]:
    """Of every leaderboard and record, the component, the run (None: the leaderboard), and the blob."""
    prefix = within(folder, "")
    for path, blob in repository.files(commit, folder).items():
        match = _BOOK.fullmatch(path.removeprefix(prefix))
        if match:
            yield match["skill"], match["run"], blob
