"""A component's records, and what a platform attests of them: which the workflow wrote, and nobody since."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from skill_evaluator.ci.platforms import Platform
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import read_bytes
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.integrity import Past
from skill_evaluator.records.record import read_record
from skill_evaluator.repository import within

_MEANINGS = {"absent": "this record has no attestation", "failed": "the attestation of this record does not hold"}


def attested_records(
    platform: Platform, components: Path, name: str, folder: str, past: Past | None
) -> tuple[Mapping[str, int], list[Problem]]:
    """Return how many records of a component are `verified`, `absent` (without attestation) or `failed`, and problems.

    Every record that is not verified is a problem, but for those without attestation that stood as they are in the
    past: they may be older than attesting. Drafts count for nothing, here too. Raise ConfigError.
    """
    paths = sorted((components / name / "evals" / "records").glob("*.json"))
    attestations = platform.attestations([path for path in paths if not _is_draft(path)])
    stood = past.books[name].records if past is not None and name in past.books else {}
    problems = []
    for path, attestation in attestations.items():
        is_old = stood.get(path.stem) == read_bytes(path, LeaderboardError)
        if attestation.status == "verified" or (attestation.status == "absent" and is_old):
            continue
        reason = f": {attestation.reason}" if attestation.reason else ""
        file = within(folder, f"{name}/evals/records/{path.name}")
        problems.append(Problem(file=file, line=1, message=f"{_MEANINGS[attestation.status]}{reason}"))
    counts = Counter(attestation.status for attestation in attestations.values())
    return {status: counts[status] for status in ("verified", "absent", "failed")}, problems


def _is_draft(path: Path) -> bool:
    try:
        return read_record(path).draft
    except LeaderboardError:  # said by the check of the file
        return False
