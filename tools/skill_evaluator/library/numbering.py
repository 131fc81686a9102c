"""Version numbers of prompts whose format has none: each new prompt is a MINOR above what is recorded.

A prompt that is recorded already keeps the version of its record, whichever commit it is in.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import semver
from pydantic import BaseModel, ValidationError

from skill_evaluator.errors import ComponentError
from skill_evaluator.files import SizeLimit, read_bytes
from skill_evaluator.text import comparable_version

BOARD_SIZE = SizeLimit(most=500_000_000)
_CONTENT = ("prompt", "schema")  # the digests that make a version


class _Row(BaseModel):
    """The keys of a leaderboard's row that say which prompt a version is."""

    skill_version: str
    digests: dict[str, str] = {}


class _Board(BaseModel):
    runs: list[_Row] = []


Recorded = Iterable[tuple[str, Mapping[str, str]]]
"""The version and the digests of each recorded run, newest first."""


def recorded_in(leaderboard: Path) -> Recorded:
    """Return the version and digests of each run on a leaderboard file, which may be missing."""
    with suppress(ComponentError):
        return recorded_rows(read_bytes(leaderboard, ComponentError, BOARD_SIZE)) if leaderboard.exists() else []
    return []


def recorded_rows(leaderboard: bytes) -> Recorded:
    """Return the version and digests of each run; none of a broken leaderboard, which `lint` and `evaluate` report."""
    with suppress(ValidationError):
        return [(row.skill_version, row.digests) for row in _Board.model_validate_json(leaderboard).runs]
    return []


def numbered(
    digests: Mapping[str, str], recorded: Iterable[tuple[str, Mapping[str, str]]], below: str | None = None
) -> str:
    """Return the recorded version of a prompt and schema, or the next MINOR version with the prompt's digest.

    With `below`, the prompt of an earlier commit gets a PATCH above the recorded versions that are lower than that.

    >>> numbered({"prompt": "sha256:0123abcd99"}, [("0.2.0+4567abcd", {"prompt": "4567abcd11"})])
    '0.3.0+0123abcd'
    """
    of_versions = {version: told for version, told in recorded if semver.Version.is_valid(version)}  # the oldest run's
    versions = sorted(of_versions, key=_order)
    same = [version for version in versions if _is_same(digests, of_versions[version])]
    if same:
        return same[-1]
    lower = [version for version in versions if below is None or _order(version) < _order(below)]
    highest = _order(lower[-1]) if lower else semver.Version(0)
    raised = highest.bump_minor() if below is None else highest.bump_patch()
    return f"{raised}+{digests['prompt'].removeprefix('sha256:')[:8]}"


def _order(version: str) -> semver.Version:
    return semver.Version.parse(comparable_version(version))


def _is_same(digests: Mapping[str, str], told: Mapping[str, str]) -> bool:
    """Return whether the digests of a row, which are abbreviated, are those of a prompt and schema."""
    shared = [name for name in _CONTENT if name in told]  # an old row may lack the schema
    bare = ((digests[name].removeprefix("sha256:"), told[name].removeprefix("sha256:")) for name in shared)
    return "prompt" in told and all(whole.startswith(short) for whole, short in bare)
