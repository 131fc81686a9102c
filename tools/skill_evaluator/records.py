"""What one run leaves behind: a `Record` (enough to decide again without the raw outputs) and its leaderboard row."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import json_text, read_json, replace_text, validated

SCHEMA_VERSION = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Summary(_Part):
    """One metric over a run. `n` counts what entered `mean`; `ci95` has the case as unit (None for one case)."""

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    stdev_cases: float | None = None
    n: int
    n_cases: int
    ci95: tuple[float, float] | None


class FieldSummary(_Part):
    """One leaf path over a run: accuracy is right ÷ n, `confusion` is {truth: {output: count}} of a category."""

    compare: str
    accuracy: float | None
    n: int
    right: int
    wrong: int
    missing: int
    extra: int
    stability: float | None
    token_f1: float | None = None
    rouge_l: float | None = None
    confusion: dict[str, dict[str, int]] | None = None


class CaseAccuracy(_Part):
    """One metric over one case's replicates."""

    mean: float | None
    strict_mean: float | None
    n: int


class CaseRow(_Part):
    """One case as the leaderboard shows it."""

    case_id: str
    accuracy: dict[str, CaseAccuracy]
    reproducibility: dict[str, float | None]
    failures: dict[str, int]


class FieldCount(_Part):
    """One field of one case: right of n."""

    right: int
    n: int


class CaseRecord(CaseRow):
    """One case as the record keeps it: per replicate its outcome and every metric, per field right of n."""

    digest: str
    outcomes: list[str]
    replicates: dict[str, list[float | None]]
    fields: dict[str, FieldCount]


class Tokens(_Part):
    """Tokens the vendor counted; None where it counted none for some answer."""

    input: int | None
    output: int | None


class Latency(_Part):
    """Seconds from sending a call's last attempt to its answer."""

    p50: float | None
    p95: float | None


class ModelSettings(_Part):
    """What shaped the answers: what the provider was sent, and what of it the provider cannot be told."""

    api_model: str
    profile: str
    structured_output: str
    max_output_tokens: int
    sent: dict[str, Any]
    unavailable: list[str]
    params: dict[str, Any]
    base_url: str | None = None
    timeout_s: float


class _Row(_Part):
    run_id: str
    timestamp: str
    skill: str
    skill_version: str
    prompt_commit: str | None
    dataset_commit: str | None
    model_id: str
    served_model: str | None
    provider: str
    replicates: int
    seed: int
    shard: str | None
    n_cases: int
    planned: int
    scored: int
    coverage: float
    complete: bool
    stopped: str | None
    primary_metric: str
    accuracy: dict[str, Summary]
    reproducibility: dict[str, Summary]
    per_field: dict[str, FieldSummary]
    failures: dict[str, int]
    reasons: dict[str, int]
    retries: int
    tokens: Tokens
    cost_usd: float | None
    latency_s: Latency
    settings: ModelSettings
    digests: dict[str, str]
    evaluator_version: str


class Row(_Row):
    """A leaderboard row: the summary of one run. `failures` and `scored` add up to `planned`."""

    per_case: list[CaseRow]


class Record(_Row):
    """A run in full: the row's keys and, per case, what every replicate scored."""

    schema_version: int = SCHEMA_VERSION
    per_case: list[CaseRecord]

    def row(self) -> Row:
        """The summary for the leaderboard."""
        return Row.model_validate(self.model_dump(exclude={"schema_version"}))


def write_record(path: Path, record: Record) -> None:
    """Write one record; raises StorageError."""
    replace_text(path, json_text(record.model_dump(mode="json")))


def read_record(path: Path) -> Record:
    """Read one record; raises LeaderboardError when it is broken or of a newer version."""
    value = read_json(path, LeaderboardError)
    refuse_newer(value, path)
    return validated(Record, value, path, LeaderboardError)


def refuse_newer(value: Any, where: Path) -> None:
    """Raise LeaderboardError for a file that a newer evaluator wrote; it is not touched."""
    version = value.get("schema_version", 0) if isinstance(value, dict) else 0
    if not isinstance(version, int):
        raise LeaderboardError(f"schema_version in {where} is {version!r}; a whole number is expected")
    if version > SCHEMA_VERSION:
        raise LeaderboardError(
            f"{where} has schema_version {version}, this evaluator knows {SCHEMA_VERSION}; upgrade skill-evaluator"
        )
