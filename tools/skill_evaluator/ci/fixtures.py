"""Fixtures of another repository: fetched, and checked out once per commit."""

import os
import re
import sys
from pathlib import Path

from skill_evaluator.ci.platforms import clone_access
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import FixtureError, GitError
from skill_evaluator.files import locked
from skill_evaluator.library.reading import ConfinedFolder, FixturesElsewhere
from skill_evaluator.providers.local import cache_dir
from skill_evaluator.repository import open_store
from skill_evaluator.text import digest

_COMMIT = re.compile(r"[0-9a-f]{40}")
_PATIENCE_S = 900


def fetched_fixtures(declared: FixturesElsewhere) -> tuple[Path, str]:
    """Fetch the declared fixtures; return their folder and the commit that the ref points to.

    If the repository cannot be reached, warn and use the last known commit. The variable FIXTURES_COMMIT pins the
    commit. Raise FixtureError if there is no commit.
    """
    address, access = clone_access(declared.repository)
    if not access and declared.repository[0] in "./":
        address = str(Path(address).resolve())
    ref = os.environ.get("FIXTURES_COMMIT") or declared.ref
    if ref != declared.ref and not _COMMIT.fullmatch(ref):
        raise FixtureError(f"FIXTURES_COMMIT is {ref[:100]!a}; set it to a full commit id (40 hexadecimal digits)")
    name = re.sub(r"[^A-Za-z0-9]+", "-", declared.repository).strip("-").lower()[-40:]
    folder = cache_dir() / "fixtures" / f"{name}-{digest(address).rpartition(':')[2][:12]}"
    with locked(folder.with_name(f".{folder.name}.lock"), seconds=_PATIENCE_S):
        store = open_store(folder)
        commit = store.fetched_commit(ref)
        if commit != ref:
            try:
                commit = store.fetch_commit(address, ref, access)
            except GitError as problem:
                if commit is None or "couldn't find remote ref" in str(problem):
                    raise FixtureError(
                        f"the fixtures in {declared.repository} at {ref} cannot be fetched: {problem}; see `fixtures` "
                        "in settings.yaml and your access (in CI: the secret FIXTURES_TOKEN), or give --fixtures DIR"
                    ) from None
                message = (
                    f"the fixtures in {declared.repository} are those of {commit[:12]}, fetched earlier: {problem}"
                )
                print(f"warning: {visible(' '.join(message.split()))}", file=sys.stderr)
        checkout = folder / commit
        store.check_out(commit, checkout)
    root = ConfinedFolder(checkout, FixtureError)
    if not (checkout / declared.path).is_dir():
        raise FixtureError(
            f"{declared.repository} has no folder '{declared.path}' at {commit[:12]}; "
            "correct fixtures.path in settings.yaml"
        )
    return root.inside(checkout / declared.path), commit


def refuse_fetched(declared: FixturesElsewhere | None, fixtures: Path | None) -> None:
    """Raise FixtureError if cases would be written into the fetched fixtures of another repository."""
    if declared and fixtures and fixtures.is_relative_to(cache_dir()):
        raise FixtureError(f"the cases belong in {declared.repository}; name a clone of it with --fixtures DIR")
