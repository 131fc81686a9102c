"""What one run leaves behind: a `Record`, and the `Row` of it on the leaderboard.

A record holds enough to draw every verdict again without the raw outputs.
"""

from pathlib import Path
from typing import Any

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel, json_text, read_json, replace_text, validated
from skill_evaluator.library.config import VerdictName
from skill_evaluator.metrics.diagnosis.field_profile import Standing

SCHEMA_VERSION = 1
SCORER_VERSION = 1  # raised when equal answers score differently than before: older records are then not comparable
PARTIAL = "-partial"  # between the id of a run and how many answers of it were scored, where it is not complete

SCORED = "scored"
UNPARSEABLE = "unparseable"
NOT_RUN = "not_run"
ANSWERED = (SCORED, UNPARSEABLE, "refused", "truncated")  # the model's own doing; any other outcome lowers coverage


class Summary(FrozenModel):
    """One metric over a run. `n` counts what entered `mean`; `ci95` has the case as unit (None for one case)."""

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    stdev_cases: float | None = None
    n: int
    n_cases: int
    ci95: tuple[float, float] | None


class Filled(FrozenModel):
    """Of n parsed outputs of labelled cases, how many have a value in a field, and for how many the truth has one."""

    n: int
    output: int
    truth: int


class Profile(FrozenModel):
    """The cases by how a field stands in them: right or wrong alike in every answer, or now this, now that.

    `stable` is for cases without truth; `unscored` where fewer than two answers, or none that was parsed, say nothing.
    """

    stable_right: int = 0
    stable_wrong: int = 0
    stable: int = 0
    flaky: int = 0
    unscored: int = 0


class FieldSummary(FrozenModel):
    """One leaf path over a run: accuracy is right ÷ n, `confusion` is {truth: {output: count}} of a category.

    `macro_f1` is of that confusion, `alpha` Krippendorff's between replicates with the cases as units. `token_f1` and
    `rouge_l` are means over the leaves of a free text, and so is `embedding` where the field declares that similarity.
    """

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
    embedding: float | None = None
    confusion: dict[str, dict[str, int]] | None = None
    macro_f1: float | None = None
    alpha: float | None = None
    filled: Filled | None = None
    profile: Profile | None = None


class ArraySummary(FrozenModel):
    """One array over a run: how steady its length is between replicates, mean over cases; where and how far it varied.

    `varied` counts the cases in which parsed answers differ in length, `widest` is the largest such difference.
    """

    stability: float
    n_cases: int
    varied: int
    widest: int


class ContractFault(FrozenModel):
    """One rule that outputs broke: the path, the schema's keyword, how many times, and one of the messages."""

    path: str
    rule: str
    count: int
    message: str


class ContractSummary(FrozenModel):
    """What the schema holds against the n parsed outputs of a run; the commonest errors first.

    The shares are of n. `missing_keys` and `extra_keys` count outputs by required top-level keys they lack and
    by keys the schema does not name.
    """

    n: int
    valid: float | None
    valid_apart_from_extra_keys: float | None
    errors: list[ContractFault]
    missing_keys: dict[str, int]
    extra_keys: dict[str, int]


class CaseAccuracy(FrozenModel):
    """One metric over one case's replicates."""

    mean: float | None
    strict_mean: float | None
    n: int


class CaseRow(FrozenModel):
    """One case as the leaderboard shows it."""

    case_id: str
    accuracy: dict[str, CaseAccuracy]
    reproducibility: dict[str, float | None]
    failures: dict[str, int]


class FieldCount(FrozenModel):
    """One field of one case: right of n."""

    right: int
    n: int


class ArrayLength(FrozenModel):
    """One array of one case: share of the commonest length, shortest and longest among the parsed answers."""

    stability: float
    shortest: int | None
    longest: int | None


class CaseRecord(CaseRow):
    """One case as the record keeps it: per replicate its outcome and every metric, per field right of n and standing.

    `exact` counts the answers equal to the truth, `arrays` has the lengths of each array.
    """

    digest: str
    outcomes: list[str]
    replicates: dict[str, list[float | None]]
    fields: dict[str, FieldCount]
    profile: dict[str, Standing] = {}
    arrays: dict[str, ArrayLength] = {}
    exact: int | None = None


class Tokens(FrozenModel):
    """Tokens the vendor counted; None where it counted none for some answer."""

    input: int | None
    output: int | None


class Latency(FrozenModel):
    """Seconds from sending a call's last attempt to its answer."""

    p50: float | None
    p95: float | None


class ModelSettings(FrozenModel):
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


class CorrectedMean(FrozenModel):
    """The strict mean of a metric that is unbiased although looks could stop the run, and its 95 % interval.

    Both are of what these very cases are expected to score: `ci95` of a summary is of cases not seen.
    """

    strict_mean: float
    ci95: tuple[float, float]


class AdaptiveLooks(FrozenModel):
    """How an adaptive run was looked at: after so many replicates; the last look may have settled the verdict.

    `against` is the run of a lower version that it was compared with. `corrected` has the accuracy metrics without the
    bias of stopping, or of not stopping; it is empty where that run is no longer there or no longer comparable.
    """

    planned_replicates: int
    looks: list[int]
    verdict: VerdictName | None
    against: str
    corrected: dict[str, CorrectedMean] = {}


class _Row(FrozenModel):
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
    saved_calls: int = 0
    adaptive: AdaptiveLooks | None = None
    tops_up: str | None = None
    seed: int
    shard: str | None
    scenario: str | None = None
    beside: str | None = None
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
    per_array: dict[str, ArraySummary] = {}
    pass_hat_k: dict[int, Summary] = {}
    contract: ContractSummary | None = None
    failures: dict[str, int]
    reasons: dict[str, int]
    retries: int
    tokens: Tokens
    cost_usd: float | None
    latency_s: Latency
    settings: ModelSettings
    digests: dict[str, str]
    evaluator_version: str
    scorer_version: int = 1


class Row(_Row):
    """A leaderboard row: the summary of one run. `failures` and `scored` add up to `planned`.

    `saved_calls` were planned and not asked, because the verdict was settled; `planned` is without them. `adaptive`
    has the looks that could settle it. `tops_up` is a run stopped so, whose answers this one took over. `beside` is the
    id of the run whose calls alternated with this one's, so that no time lies between the two.
    Keys with a default came later: a row or record written before has them not, and is read all the same.
    """

    per_case: list[CaseRow]


class Record(_Row):
    """A run in full: the row's keys and, per case, what every replicate scored."""

    schema_version: int = SCHEMA_VERSION
    per_case: list[CaseRecord]

    def row(self) -> Row:
        """Return the row that sums the run up on the leaderboard."""
        return Row.model_validate(self.model_dump(exclude={"schema_version"}))


def strict_score(outcome: str, score: float | None) -> float | None:
    """Return the score that a call counts with: 0 for an unparseable, refused or truncated answer.

    Means, verdicts and audits all count by it, so that a model gains nothing by answers that cannot be read.
    None is not measured: the provider or the network failed, or the metric says nothing about the case.
    """
    if outcome == SCORED:
        return score
    return 0.0 if outcome in ANSWERED else None


def write_record(path: Path, record: Record) -> None:
    """Write a record; raise StorageError."""
    replace_text(path, json_text(record.model_dump(mode="json")))


def read_record(path: Path) -> Record:
    """Read a record; raise LeaderboardError for one that is broken or newer."""
    return parse_record(read_json(path, LeaderboardError), path)


def parse_record(value: Any, where: Path) -> Record:
    """Return the record in a JSON value; raise LeaderboardError for one that is broken or newer."""
    refuse_newer(value, where)
    return validated(Record, value, where, LeaderboardError)


def refuse_newer(value: Any, where: Path) -> None:
    """Raise LeaderboardError for a file that a newer evaluator wrote."""
    version = value.get("schema_version", 0) if isinstance(value, dict) else 0
    if not isinstance(version, int):
        raise LeaderboardError(f"schema_version in {where} is {version!r}; a whole number is expected")
    if version > SCHEMA_VERSION:
        raise LeaderboardError(
            f"{where} has schema_version {version}, this evaluator knows {SCHEMA_VERSION}; upgrade skill-evaluator"
        )
