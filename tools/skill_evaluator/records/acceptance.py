"""`evals/accepted.json` of a component: the versions that people accepted, with who and why; newest last.

Later versions are held against an accepted one, their *anchor*. Taking an entry out of the file takes it back.
"""

import datetime
from collections.abc import Iterable
from pathlib import Path

import semver
from pydantic import Field, field_validator

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel, json_text, locked, parse_json, read_text, replace_text, validated
from skill_evaluator.identifiers import ComponentName, ModelId, RunId

_NEWEST_FORMAT = 1


class Acceptance(FrozenModel):
    """A version that was accepted. `models`: those it is accepted for; None: all.

    `run_ids` are the complete runs that it rests on, by model, oldest first.
    """

    version: str
    by: str = Field(min_length=1)
    why: str = Field(min_length=1)
    date: datetime.date
    run_ids: dict[ModelId, list[RunId]]
    models: list[ModelId] | None = None

    @field_validator("version")
    @classmethod
    def _semver(cls, version: str) -> str:
        if not semver.Version.is_valid(version):
            raise ValueError(f"version '{version}' is not semver")
        return version

    def holds_for(self, model_id: str) -> bool:
        """Return whether the version is accepted for a model."""
        return self.models is None or model_id in self.models


class AcceptedVersions(FrozenModel):
    """The file evals/accepted.json."""

    skill: ComponentName
    schema_version: int = _NEWEST_FORMAT
    accepted: list[Acceptance] = []


def read_acceptances(path: Path) -> list[Acceptance]:
    """Return what was accepted, newest last, nothing without a file; raise LeaderboardError for a broken one."""
    return parse_acceptances(read_text(path, LeaderboardError), path) if path.exists() else []


def parse_acceptances(text: str, path: Path) -> list[Acceptance]:
    """Return what was accepted by the text of the file; raise LeaderboardError for a broken or a newer one."""
    accepted = validated(AcceptedVersions, parse_json(text, path, LeaderboardError), path, LeaderboardError)
    if accepted.schema_version > _NEWEST_FORMAT:
        raise LeaderboardError(
            f"{path} has schema_version {accepted.schema_version}, this evaluator knows {_NEWEST_FORMAT}; "
            "upgrade skill-evaluator"
        )
    return accepted.accepted


def accept_version(path: Path, lock: Path, skill: str, acceptance: Acceptance) -> Acceptance | None:
    """Add an acceptance to the file; return the one that is there already for the same version, models and reason.

    Raise LeaderboardError or StorageError, and leave the file as it was.
    """
    with locked(lock):
        before = read_acceptances(path)
        for there in before:
            if (there.version, there.models, there.why) == (acceptance.version, acceptance.models, acceptance.why):
                return there
        file = AcceptedVersions(skill=skill, accepted=[*before, acceptance])
        replace_text(path, json_text(file.model_dump(mode="json")))
    return None


def versions_accepted(acceptances: Iterable[Acceptance], model_id: str) -> frozenset[str]:
    """Return the versions that are accepted for a model."""
    return frozenset(acceptance.version for acceptance in acceptances if acceptance.holds_for(model_id))
