"""What one run leaves behind: a `Record`, the `Row` of it on the leaderboard, which model answered, and what failed.

A record holds enough to draw every verdict again without the raw outputs; a row is what people and scripts read. Where
a server sends no name, the model that answered is unknown, and differs from nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel, json_blocks, read_json, replace_blocks, validated
from skill_evaluator.identifiers import (
    CaseId,
    Commit,
    ComponentName,
    Digest,
    Label,
    ModelId,
    RunId,
    ShardText,
    Share,
    Tier,
    Usd,
    VersionText,
    is_baseline,
)
from skill_evaluator.library.config import IGNORABLE
from skill_evaluator.library.prompts import DOCUMENT, TURNS
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.parsing import NotJson
from skill_evaluator.records.summaries import (
    LATER,
    ArraySummary,
    CallSpreads,
    ContractSummary,
    Drift,
    FailedCalls,
    FieldSummary,
    JudgedChecks,
    Latency,
    RowTokens,
    Server,
    Summary,
    Tokens,
)
from skill_evaluator.text import canonical_json, digest, listed

Served = str | dict[str, PositiveInt] | None
"""The name of what answered a run; of several names each with its answers; None where the server sent none."""
Change = Literal["model", "date"]

_PLACE = (  # vendor/, models/, the folders of a file; a region; a vendor
    r"(?:.*[/\\])?(?:(?:us|us-gov|eu|apac|au|ca|jp|global)\.)?"
    r"(?:(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.)?"
)
_RELEASE = r"-\d{4}-\d\d-\d\d|-\d\d-\d\d(?:\d\d)?|-\d{8}|-\d{4}|@[\d-]+|-0\d\d|(?:-v\d+)?:\d"
_NEWEST = r"\.gguf|\.safetensors|[-:@](?:latest|default)"  # and the kind of a file: neither says which model it is
_FORMS = re.compile(rf"{_PLACE}(?P<base>.+?)(?P<release>(?:{_RELEASE})*)(?:{_NEWEST})?", re.DOTALL)


@lru_cache(maxsize=1000)
def parts_of(name: str) -> tuple[str, str]:
    """Return the base of a name, and its release; what says where the model is belongs to neither.

    >>> [parts_of(name) for name in ("models/Gem-001", "us.anthropic.c-20240620-v1:0", "/w/T.gguf", "x:latest")]
    [('gem', '-001'), ('c', '-20240620-v1:0'), ('t', ''), ('x', '')]
    """
    match = _FORMS.fullmatch(name.casefold())
    return (match["base"], match["release"]) if match else (name, "")


def _identity(name: str) -> tuple[str, str]:
    """Return what two names of one release share, however each spells its date: `@20240620`, `-2024-06-20-v1:0`."""
    base, release = parts_of(name)
    return base, re.sub(r"(?<=\d{4})(?:-v\d+)?:\d$|\D", "", release)


def served_of(names: Iterable[str | None]) -> Served:
    """Return what answered, from the name in each answer."""
    counts = Counter(name for name in names if name)
    return dict(counts.most_common()) if len(counts) > 1 else next(iter(counts), None)


def served_text(served: Served) -> str | None:
    """Return what answered as a text, each of several names with its answers."""
    return ", ".join(f"{name} ({n})" for name, n in served.items()) if isinstance(served, dict) else served


def names_of(served: Served) -> list[str]:
    """Return the names of what answered."""
    return list(served) if isinstance(served, dict) else [served] if served else []


def is_mixed(served: Served) -> bool:
    """Return whether several models, or releases of one, answered a run."""
    return len(set(map(_identity, names_of(served)))) > 1


def is_requested(served: str, requested: Iterable[str]) -> bool:
    """Return whether a name is of the model that was requested by one of these, in its release if one is named."""
    base, release = _identity(served)
    alike = [wanted for name, wanted in map(_identity, requested) if name == base]
    return bool(alike) and all(wanted in ("", release) for wanted in alike)


def change_of(before: Served, after: Served, requested: Iterable[str]) -> Change | None:
    """Return what differs between two runs: several models in one run, or an unrequested release, count as a model."""
    if is_mixed(before) or is_mixed(after):
        return "model"
    answered = {_identity(name) for name in (*names_of(before), *names_of(after))}
    if len(answered) < 2:
        return None
    bases = {base for base, _ in answered}
    is_pinned = any(base in bases and release for base, release in map(parts_of, requested))
    return "model" if is_pinned or len(bases) > 1 else "date"


RECORD_VERSION = 1
BOARD_VERSION: Literal[2] = 2
SCORER_VERSION = 3  # raised when equal answers score differently than before: older records are then not comparable
SCORED_ELSEWHERE = 0  # the version of another tool's scorer: its results are compared with each other alone
PARTIAL = "-partial"  # between the id of a run and how many answers of it were scored, where it is not complete
_CHOSEN_BY = ("prompt", "schema", "contract", "datasets", "settings", "scenario")
_DIGITS = 16

CHECKS_METRIC = "checks"
MIN_USABLE = 0.5  # of the planned outputs must be readable, or a run measures nothing
PASSED_FROM = 0.5  # a graded check is passed from here on
CHECK = "check"  # how a check is compared, where it stands among the fields
SCORED = "scored"
UNPARSEABLE = "unparseable"
NOT_RUN = "not_run"
_NAMES_NO_MODEL = ("local", "replay", "program")  # providers without an API that names a model
ANSWERED = (SCORED, UNPARSEABLE, "refused", "truncated")  # the model's own doing; any other outcome lowers coverage


class CaseAccuracy(FrozenModel):
    """One metric over one case's replicates."""

    mean: Share | None
    strict_mean: Share | None
    n: NonNegativeInt


class FieldCount(FrozenModel):
    """One field of one case: right of n."""

    right: NonNegativeInt
    n: NonNegativeInt


class ArrayLength(FrozenModel):
    """One array of one case: share of the commonest length, shortest and longest among the parsed answers."""

    stability: float
    shortest: NonNegativeInt | None
    longest: NonNegativeInt | None


class CheckRecord(FrozenModel):
    """One check of one case: what each planned answer scored (None: it was not measured), and how much it weighs.

    Two are the same check where their digests are equal, whatever their ids, weights and tiers.
    """

    digest: Digest
    scores: list[Share | None]
    weight: float = Field(default=1.0, exclude_if=lambda weight: weight == 1.0)
    tier: Tier | None = LATER
    judged: bool = Field(default=False, exclude_if=lambda judged: not judged)


def check_path(check_id: str) -> str:
    """Return the path under which a check stands among the fields."""
    return f"checks.{check_id}"


class CaseRecord(FrozenModel):
    """One case as the record keeps it: per replicate its outcome and every metric, per field right of n and standing.

    `exact` counts the answers equal to the truth, `arrays` has the lengths of each array. `digest` is of inputs, turns
    and truth; `parts` has that of each, unless the document is the only input. A check is a field, too, as
    `checks.<id>`; `checks` has it by its id.
    """

    case_id: CaseId
    accuracy: dict[str, CaseAccuracy]
    reproducibility: dict[str, float | None]
    failures: dict[str, NonNegativeInt]
    digest: Digest
    outcomes: list[str]
    replicates: dict[str, list[float | None]]
    fields: dict[str, FieldCount]
    profile: dict[str, Standing] = {}
    arrays: dict[str, ArrayLength] = {}
    exact: NonNegativeInt | None = None
    checks: dict[str, CheckRecord] = Field(default={}, exclude_if=lambda checks: not checks)
    parts: dict[str, Digest] = Field(default={}, exclude_if=lambda parts: not parts)

    @property
    def question(self) -> tuple[str, ...]:
        """The case and the digests of all that it asks, the same in all records of a version."""
        return (self.case_id, *(f"{name} {part}" for name, part in sorted(self._digests.items())))

    def asks_what(self, older: "CaseRecord") -> bool:
        """Return whether it is the case that an older version was asked, as far as both versions use its inputs."""
        now, before = self._digests, older._digests
        shared = now.keys() & before.keys()
        same_turns = (TURNS in now) == (TURNS in before)
        return self.digest == older.digest or bool(
            shared and same_turns and all(now[name] == before[name] for name in shared)
        )

    def passed(self, primary_metric: str) -> list[bool]:
        """Return whether each measured answer passes the case: all of its checks that count, and the truth as a whole.

        Every check counts, but those of which the case says `advisory`. The truth is met where the primary metric is 1.
        Empty where neither says anything about the case.
        """
        parts = [(check.scores, PASSED_FROM) for check in self.checks.values() if check.tier != "advisory"]
        if primary_metric != CHECKS_METRIC and (scores := strict_by_replicate(self, primary_metric)):
            parts.append((scores, 1.0))
        answers = zip(
            *([None if score is None else score >= least for score in scores] for scores, least in parts), strict=False
        )
        return [all(answer) for answer in answers if False in answer or None not in answer]

    def words(self, primary_metric: str) -> str | None:
        """Return how often its answers pass; None where nothing is to be passed, or there are fewer than two."""
        passed = self.passed(primary_metric)
        if len(passed) <= 1:
            return None
        flaky = f"flaky ({sum(passed)} of {len(passed)})"
        return "passes always" if all(passed) else flaky if any(passed) else "fails always"

    @property
    def _digests(self) -> dict[str, str]:
        return self.parts or {DOCUMENT: self.digest}


def strict_score(outcome: str, score: float | None) -> float | None:
    """Return the score that a call counts with: 0 for a refused, truncated or unparseable answer.

    Means, verdicts and audits all count by it, so that a model gains nothing by answers that cannot be read. Only what
    was measured of an unparseable answer counts: checks look at its text. None is not measured: the provider or the
    network failed, or the metric says nothing about the case.
    """
    if outcome == SCORED:
        return score
    return (score or 0.0) if outcome in ANSWERED else None


def strict_by_replicate(case: CaseRecord, metric: str) -> list[float | None]:
    """Return what each answer to a case counts with by a metric.

    Empty where the metric says nothing about the case (all of its scored replicates lack it).
    """
    replicates = list(zip(case.outcomes, case.replicates.get(metric, []), strict=False))
    scored = [value for outcome, value in replicates if outcome == SCORED]
    if scored and scored.count(None) == len(scored):
        return []
    return scored if len(scored) == len(replicates) else [strict_score(*each) for each in replicates]


class ModelSettings(FrozenModel):
    """What shaped the answers: what the provider was sent, and what of it the provider cannot be told."""

    api_model: str
    profile: str
    structured_output: str
    max_output_tokens: NonNegativeInt
    sent: dict[str, Any]
    unavailable: list[str]
    params: dict[str, Any]
    base_url: str | None = None
    place: str | None = Field(default=None, exclude_if=lambda place: place is None)
    region: str | None = Field(default=None, exclude_if=lambda region: region is None)
    timeout_s: NonNegativeFloat


def _only(name: str) -> BeforeValidator:
    """Return a validator that takes one number of a record's summary; a number is left as it is."""
    return BeforeValidator(lambda value: value.get(name) if isinstance(value, dict) else getattr(value, name, value))


def short_digest(digest: str) -> str:
    """Return the digits that tell any two prompts apart; what is short already stays as it is."""
    return digest.removeprefix("sha256:")[:_DIGITS]


def short_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that a baseline is chosen by, each abbreviated."""
    return {name: short_digest(digests[name]) for name in _CHOSEN_BY if name in digests}


class RowAccuracy(FrozenModel):
    """One accuracy metric over a run. `n` counts what entered `mean`; `ci95` has the case as unit."""

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    n: NonNegativeInt
    ci95: tuple[float, float] | None


class CaseRow(FrozenModel):
    """One case as the leaderboard shows it: means over its scored replicates, None where none was scored."""

    case_id: CaseId
    accuracy: dict[str, Annotated[Share | None, _only("mean")]]
    reproducibility: dict[str, float | None]


class _Run(FrozenModel):
    """What was asked of which model, when and how often."""

    run_id: RunId
    timestamp: Label
    skill: ComponentName
    skill_version: VersionText
    prompt_commit: Commit | None
    dataset_commit: Commit | None
    model_id: ModelId
    served_model: Served
    provider: Label
    replicates: NonNegativeInt


class Row(_Run):
    """A leaderboard row: what people and scripts read of a run; all else is in its record, whose digest is `digest`.

    `failures` and `scored` add up to `planned`. The reproducibility is strict means. `digests` are those that a
    baseline is chosen by, abbreviated. A key with a default is left out of the file where it says nothing.
    """

    shard: ShardText | None = None
    scenario: Label | None = None
    beside: RunId | None = None
    n_cases: NonNegativeInt
    planned: NonNegativeInt
    scored: NonNegativeInt
    coverage: Share
    complete: bool
    usable: Share | None = None
    stopped: str | None = None
    primary_metric: str
    accuracy: dict[str, RowAccuracy]
    reproducibility: dict[str, Annotated[float | None, _only("strict_mean")]]
    failures: dict[str, NonNegativeInt]
    tokens: RowTokens
    cost_usd: Usd | None
    latency_s: Latency
    digests: Annotated[dict[str, Digest], AfterValidator(short_digests)]
    evaluator_version: Label
    scorer_version: NonNegativeInt = 1
    digest: Digest | None = None
    per_case: list[CaseRow]

    def as_json(self) -> dict[str, Any]:
        """Return the row as its file has it."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Record(_Run):
    """A run in full: what became of its calls and, per case, what every replicate scored.

    `failures` and `scored` add up to `planned`. `usable` is the share of planned outputs that could be read; it is
    there only if the calls were made and that share is below `MIN_USABLE`, so that the run is not complete.
    `beside` is the id of the run whose calls alternated with this one's, so that no time lies between the two. A
    `draft` has no row, and nothing is compared with it unless a person names it. `faults` says where and why calls
    were not scored, the most frequent reason first. `not_applicable` has the cases that the model was not asked,
    and why; no count and no score includes them. `left_out` says what the component's source holds and was not
    used, such as files beside a skill, which were not sent. `transport` says whether each call was made by itself,
    or many in a batch, whose latency is unknown. `calls` says how time and cost of single calls are spread. `drift`
    is what asking a recorded version again showed. `server` is that of a `base_url`, or one that has fingerprints.
    `judged` says who decided checks that are sentences. Keys with a default were added later; older records lack
    them.
    """

    seed: int | None
    shard: ShardText | None
    scenario: Label | None = None
    beside: RunId | None = None
    n_cases: NonNegativeInt
    planned: NonNegativeInt
    scored: NonNegativeInt
    coverage: Share
    complete: bool
    usable: Share | None = LATER
    stopped: str | None
    primary_metric: str
    accuracy: dict[str, Summary]
    reproducibility: dict[str, Summary]
    per_field: dict[str, FieldSummary]
    per_array: dict[str, ArraySummary] = {}
    pass_hat_k: dict[int, Summary] = {}
    contract: ContractSummary | None = None
    failures: dict[str, NonNegativeInt]
    reasons: dict[str, NonNegativeInt]
    retries: NonNegativeInt | None
    tokens: Tokens
    cost_usd: Usd | None
    latency_s: Latency
    settings: ModelSettings | None
    digests: dict[str, Digest]
    evaluator_version: Label
    scorer_version: NonNegativeInt = 1
    schema_version: NonNegativeInt = RECORD_VERSION
    draft: bool = False
    calls: CallSpreads | None = LATER
    drift: Drift | None = LATER
    server: Server | None = LATER
    judged: JudgedChecks | None = LATER
    transport: Literal["direct", "batch"] = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    faults: list[FailedCalls] = Field(default=[], exclude_if=lambda faults: not faults)
    not_applicable: dict[CaseId, Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    left_out: list[str] = Field(default=[], exclude_if=lambda lines: not lines)
    per_case: list[CaseRecord]

    @property
    def is_final(self) -> bool:
        """Whether no further call is needed: the run is complete, or too few of its outputs could be read."""
        return self.complete or self.usable is not None

    @property
    def has_row(self) -> bool:
        """Whether the leaderboard shows it: drafts and baselines beside a candidate are not shown."""
        return not self.draft and not is_baseline(self.run_id, self.beside)

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether another tool asked and scored."""
        return self.scorer_version == SCORED_ELSEWHERE

    @property
    def moment(self) -> datetime | None:
        """When the run began, in UTC if the record names no time zone; None if it names no moment."""
        try:
            moment = datetime.fromisoformat(self.timestamp)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def outputs(self) -> int:
        """The number of calls that gave an output."""
        return round(self.coverage * self.planned)

    @property
    def requested(self) -> tuple[str, ...]:
        """The names of the model that was asked: its API's, and that in models.yaml."""
        return (self.model_id,) if self.settings is None else (self.settings.api_model, self.model_id)

    @property
    def served_otherwise(self) -> str | None:
        """That a different model answered than was requested, or several did, and what to do; else None."""
        others = [name for name in names_of(self.served_model) if not is_requested(name, self.requested)]
        if self.provider in _NAMES_NO_MODEL or not (others or is_mixed(self.served_model)):
            return None
        asked = self.requested[0]
        words = f"{served_text(self.served_model)} answered, and {asked} was requested: "
        if is_mixed(self.served_model):
            return f"{words}no version is compared with this run; `skill-evaluator evaluate {self.skill}` asks anew"
        name = re.split(r"[/\\]", others[0])[-1]  # no id is a path
        return f"{words}where that is meant, say `id: {name}` and `api_id: {asked}` in models.yaml"

    @property
    def digest(self) -> str:
        """The digest of the record's file."""
        return digest(canonical_json(self.model_dump(mode="json")))

    def row(self) -> Row:
        """Return the record as a row of the leaderboard."""
        return Row.model_validate(self, from_attributes=True)


def write_record(path: Path, record: Record) -> None:
    """Write a record; raise StorageError."""
    replace_blocks(path, json_blocks(record.model_dump(mode="json")))


def read_record(path: Path) -> Record:
    """Read a record; raise LeaderboardError if it is broken or newer."""
    return parse_record(read_json(path, LeaderboardError), path)


def parse_record(value: Any, where: Path) -> Record:
    """Return the record in a JSON value; raise LeaderboardError if it is broken or newer."""
    refuse_newer(value, where)
    return validated(Record, value, where, LeaderboardError)


def refuse_newer(value: Any, where: Path, known: int = RECORD_VERSION) -> None:
    """Raise LeaderboardError for a file that a newer evaluator wrote, or one from before the first release."""
    version = value.get("schema_version", known) if isinstance(value, dict) else known
    if not isinstance(version, int):
        raise LeaderboardError(f"schema_version in {where} is {version!r}; a whole number is expected")
    if version > known:
        raise LeaderboardError(
            f"{where} has schema_version {version}, this evaluator knows {known}; upgrade skill-evaluator"
        )
    if version < known:
        raise LeaderboardError(f"{where} has schema_version {version}, which was never released; {known} is expected")


_LATER = "--resume asks again"
_PRESSED = f"{_LATER}; limits: {{{{max_concurrency, requests_per_minute}}}} of '{{model}}' in models.yaml press less"
_SLOW = f"{_LATER}; timeout_s in settings.yaml is the time that a call may take"
_UNREAD = "`explain` shows the answer as it came"
REMEDIES: Mapping[str, str] = {
    "unreachable": "start the server, then --resume; or correct base_url of '{model}' in models.yaml and begin anew",
    "wrong_key": "give '{model}' another key (api_key_env in models.yaml names its variable); then --resume",
    "permission_denied": "let the key of '{model}' use this model; then --resume",
    "no_login": "log in to the cloud that '{model}' names as its place, in this shell or job; then --resume",
    "identity_refused": "mend that rule or the rights it gives, by the token's subject and audience; then --resume",
    "unknown_model": "correct api_id or base_url of '{model}' in models.yaml",
    "model_retired": "the model is retired: `skill-evaluator switch {model} NEW` says whether another will do",
    "out_of_credit": "top up the account; then --resume",
    "context_exceeded": "raise the context of the server, or shorten document or prompt",
    "request_too_large": "let the server take more, or shorten document or prompt",
    "bad_request": "correct params or structured_output of '{model}' in models.yaml, by what the server says",
    **{f"{name}_refused": f"add `ignores: [{name}]` to '{{model}}' in models.yaml" for name in IGNORABLE},
    "malformed_body": "see that base_url of '{model}' in models.yaml is that of the API itself, not of a page or proxy",
    **dict.fromkeys(("rate_limited", "overloaded", "unavailable"), _PRESSED),
    **dict.fromkeys(("connection_lost", "conflict", "server_error", "bad_gateway"), _LATER),
    **dict.fromkeys(("read_timeout", "request_timeout", "gateway_timeout"), _SLOW),
    "output_limit": "raise max_output_tokens of '{model}' (params in models.yaml)",
    "answer_too_large": "limits.answer_bytes in settings.yaml is the most that is taken of an answer",
    "too_costly_to_score": "limits.score_seconds and score_megabytes in settings.yaml are the most an answer may "
    "take, collect_seconds the most that all of a `collect` may",
    "provider_bug": "tell whoever wrote the provider of '{model}'",
    "in_reasoning": "raise params: {{max_output_tokens}} of '{model}' in models.yaml, or turn its reasoning off",
    "tool_call": "let the prompt ask for the output as content; take tools out of params of '{model}' in models.yaml",
    **dict.fromkeys(("refusal", "empty", *get_args(NotJson), "ambiguous", "no_option"), _UNREAD),
}


def remedy(reason: str, model_id: str) -> str | None:
    """Return what to do about a failure with this reason; None for a reason that is not known."""
    words = REMEDIES.get(reason)
    if words and model_id == "program" and ".yaml" in words:
        words = "correct program: in prompt.md (its url, headers, body or timeout_s), or what it asks"
    return None if words is None else words.format(model=model_id)


def unusable_words(record: Record) -> str | None:
    """Return how many outputs could be read, why the others could not, and a remedy for the most frequent reason.

    Return None if enough outputs could be read, or if the run is incomplete for another reason.
    """
    if record.usable is None:
        return None
    state = "could be read" if record.contract is None else "are JSON"
    words = f"{record.scored} of {record.planned} outputs {state}"
    faults = [fault for fault in record.faults if fault.kind != "scored"]
    if not faults:
        return words
    what = remedy(faults[0].reason, record.model_id)
    words += f": {listed([f'{fault.count} × {fault.reason}' for fault in faults])}"
    return words if what is None else f"{words}; {what}"


def fault_lines(record: Record, quote: Callable[[str], str]) -> Iterator[str]:
    """Yield a sentence for each reason why calls of a run were not scored; `quote` writes text from outside."""
    address = None if record.settings is None else record.settings.base_url
    for fault in record.faults:
        more = f" and {fault.n_cases - len(fault.cases)} more" if fault.n_cases > len(fault.cases) else ""
        words = f"{fault.count} × {quote(fault.reason)} in {', '.join(map(quote, fault.cases))}{more}"
        if fault.message:
            words += f": {quote(fault.message)}"
        if address is not None and fault.kind in ("provider_error", "timeout", "no_credentials"):
            words += f" ({quote(address)})"
        what = remedy(fault.reason, record.model_id)
        yield words if what is None else f"{words} → {quote(what)}"
