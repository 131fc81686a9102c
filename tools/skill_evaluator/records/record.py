"""The result of one run: a `Record`, its leaderboard `Row`, the served models and the failures."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from skill_evaluator import identifiers as ids
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import (
    FrozenModel,
    NestingModel,
    flat_part,
    json_text,
    read_json,
    refuse_newer,
    replace_text,
    validated,
)
from skill_evaluator.library.config import IGNORABLE
from skill_evaluator.library.prompts import DOCUMENT, TURNS
from skill_evaluator.metrics.agreement import ArrayLengths, Stability
from skill_evaluator.parsing import NotJson
from skill_evaluator.records import summaries
from skill_evaluator.text import canonical_json, digest, listed

Served = str | dict[str, PositiveInt] | None
"""The name of the model that served a run, or several names with their output counts. None if the server sent none."""
Change = Literal["model", "date"]

_LOCATION = (  # prefixes such as vendor/, models/, folders of a file; a region; a vendor
    r"(?:.*[/\\])?(?:(?:us|us-gov|eu|apac|au|ca|jp|global)\.)?"
    r"(?:(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.)?"
)
_RELEASE = r"-\d{4}-\d\d-\d\d|-\d\d-\d\d(?:\d\d)?|-\d{8}|-\d{4}|@[\d-]+|-0\d\d|(?:-v\d+)?:\d"
_SUFFIX = r"\.gguf|\.safetensors|[-:@](?:latest|default)"  # does not identify the model
_FORMS = re.compile(rf"{_LOCATION}(?P<base>.+?)(?P<release>(?:{_RELEASE})*)(?:{_SUFFIX})?", re.DOTALL)


@lru_cache(maxsize=1000)
def parts_of(name: str) -> tuple[str, str]:
    """Split a model name into base name and release, both in lower case.

    Drop the folder, region and vendor before the name, and an ending such as `.gguf` or `:latest`.

    >>> [parts_of(name) for name in ("models/Gem-001", "us.anthropic.c-20240620-v1:0", "/w/T.gguf", "x:latest")]
    [('gem', '-001'), ('c', '-20240620-v1:0'), ('t', ''), ('x', '')]
    """
    match = _FORMS.fullmatch(name.casefold())
    return (match["base"], match["release"]) if match else (name, "")


def _identity(name: str) -> tuple[str, str]:
    base, release = parts_of(name)  # `@20240620` equals `-2024-06-20-v1:0`
    return base, re.sub(r"(?<=\d{4})(?:-v\d+)?:\d$|\D", "", release)


def served_of(names: Iterable[str | None]) -> Served:
    """Return the name of the model that served all outputs. Return output counts by name if several models did.

    Return None if no output has a name.
    """
    counts = Counter(name for name in names if name)
    return dict(counts.most_common()) if len(counts) > 1 else next(iter(counts), None)


def served_text(served: Served) -> str | None:
    """Format the served model, or several with their output counts. Return None if it is unknown."""
    return ", ".join(f"{name} ({n})" for name, n in served.items()) if isinstance(served, dict) else served


def names_of(served: Served) -> list[str]:
    """Return the names of the served models; empty if they are unknown."""
    return list(served) if isinstance(served, dict) else [served] if served else []


def is_mixed(served: Served) -> bool:
    """Return whether several models, or releases of a model, served a run."""
    return len(set(map(_identity, names_of(served)))) > 1


def is_requested(served: str, requested: Iterable[str]) -> bool:
    """Return whether a served name is a requested model, in the requested release if the request names one."""
    base, release = _identity(served)
    releases = [requested_release for name, requested_release in map(_identity, requested) if name == base]
    return bool(releases) and all(requested_release in ("", release) for requested_release in releases)


def change_of(before: Served, after: Served, requested: Iterable[str]) -> Change | None:
    """Compare the models that served two runs. Return "model" for another model, "date" for another release of it.

    If a requested name contains a release, return "model" for another release, too. If several models or releases
    served one of the runs, return "model". Return None if the models are equal, or if one is unknown.
    """
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
SCORER_VERSION = 3  # raised if equal outputs score differently; records with another version are not comparable
SCORED_ELSEWHERE = 0  # the scorer version of imported results, which are comparable only with each other
PARTIAL = "-partial"  # separates the run id of an incomplete run and its number of scored outputs
_SELECTING_DIGESTS = ("prompt", "schema", "contract", "datasets", "settings", "scenario")
_DIGEST_DIGITS = 16

CHECKS_METRIC = "checks"
MIN_USABLE = 0.5  # minimum share of planned outputs that are readable; below, a run measures nothing
PASSED_FROM = 0.5  # minimum score of a passed graded check
CHECK = "check"  # the comparator of a check, which is also a field
SCORED = "scored"
UNPARSEABLE = "unparseable"
NOT_RUN = "not_run"
_WITHOUT_MODEL_NAMES = ("local", "replay", "program")  # providers without an API that returns a model name
# outcomes caused by the model; any other outcome lowers the completion
ANSWERED = (SCORED, UNPARSEABLE, "refused", "truncated")


class CaseAccuracy(FrozenModel):
    """The mean of a metric over the n scored replicates of a case. `strict_mean` counts unreadable outputs as 0."""

    mean: ids.Share | None
    strict_mean: ids.Share | None
    n: NonNegativeInt


class FieldCount(FrozenModel):
    """The number of right values among the n values of a field in the outputs of a case."""

    right: NonNegativeInt
    n: NonNegativeInt


class CheckRecord(FrozenModel):
    """A check of a case, and its score of each planned output (None: not measured).

    Checks with equal digests are the same check, even if ids, weights or tiers differ.
    """

    digest: ids.Digest
    scores: list[ids.Share | None]
    weight: float = Field(default=1.0, exclude_if=lambda weight: weight == 1.0)
    tier: ids.Tier | None = summaries.LATER
    judged: bool = Field(default=False, exclude_if=lambda judged: not judged)


def check_path(check_id: str) -> str:
    """Return the path of a check as a field, `checks.<id>`."""
    return f"checks.{check_id}"


class CaseRecord(FrozenModel):
    """A case in a record: outcome and metrics per replicate, and right values and stability per field.

    `exact` counts the outputs that equal the ground truth. `digest` covers the inputs, the turns and the ground truth.
    `parts` has one digest for each input and one for the turns, by name; each digest also covers the ground truth.
    `parts` is empty if the document is the only input and there are no turns. Checks are also fields, as `checks.<id>`.
    `amounts` has the mean tokens, cost and latency of an output.
    """

    case_id: ids.CaseId
    accuracy: dict[str, CaseAccuracy]
    reproducibility: dict[str, float | None]
    failures: dict[str, NonNegativeInt]
    digest: ids.Digest
    outcomes: list[str]
    replicates: dict[str, list[float | None]]
    fields: dict[str, FieldCount]
    profile: dict[str, Stability] = {}
    arrays: dict[str, ArrayLengths] = {}
    exact: NonNegativeInt | None = None
    checks: dict[str, CheckRecord] = Field(default={}, exclude_if=lambda checks: not checks)
    parts: dict[str, ids.Digest] = Field(default={}, exclude_if=lambda parts: not parts)
    amounts: dict[str, summaries.CaseAmount] = Field(default={}, exclude_if=lambda amounts: not amounts)

    @property
    def question(self) -> tuple[str, ...]:
        """The case id and the digests of inputs, turns and truth: equal in two records if the case did not change."""
        return (self.case_id, *(f"{name} {part}" for name, part in sorted(self._digests.items())))

    def has_same_inputs(self, older: "CaseRecord") -> bool:
        """Return whether an older record's case is the same: turns, ground truth and the inputs that both have."""
        digests, older_digests = self._digests, older._digests
        shared = digests.keys() & older_digests.keys()
        has_same_turns = (TURNS in digests) == (TURNS in older_digests)
        return self.digest == older.digest or bool(
            shared and has_same_turns and all(digests[name] == older_digests[name] for name in shared)
        )

    def passed(self, primary_metric: str) -> list[bool]:
        """Return whether each measured output passes, in order. Return [] if the case has neither checks nor scores.

        An output passes if it scores 1 on the primary metric and fails no check, except advisory ones.
        """
        parts = [(check.scores, PASSED_FROM) for check in self.checks.values() if check.tier != "advisory"]
        if primary_metric != CHECKS_METRIC and (scores := strict_by_replicate(self, primary_metric)):
            parts.append((scores, 1.0))
        answers = zip(
            *([None if score is None else score >= threshold for score in scores] for scores, threshold in parts),
            strict=False,
        )
        return [all(answer) for answer in answers if False in answer or None not in answer]

    def pass_text(self, primary_metric: str) -> str | None:
        """Describe whether the outputs pass always, never or sometimes. Return None if fewer than two were measured."""
        passed = self.passed(primary_metric)
        if len(passed) <= 1:
            return None
        flaky = f"flaky ({sum(passed)} of {len(passed)})"
        return "passes always" if all(passed) else flaky if any(passed) else "fails always"

    @property
    def _digests(self) -> dict[str, str]:
        return self.parts or {DOCUMENT: self.digest}


def strict_score(outcome: str, score: float | None) -> float | None:
    """Return a replicate's score, or 0 if the model's output cannot be scored, or None if a call has no output."""
    if outcome == SCORED:
        return score
    return (score or 0.0) if outcome in ANSWERED else None


def strict_by_replicate(case: CaseRecord, metric: str) -> list[float | None]:
    """Return the `strict_score` of each replicate by a metric. Return [] if the metric is undefined for the case."""
    replicates = list(zip(case.outcomes, case.replicates.get(metric, []), strict=False))
    scored = [value for outcome, value in replicates if outcome == SCORED]
    if scored and scored.count(None) == len(scored):
        return []
    return scored if len(scored) == len(replicates) else [strict_score(*pair) for pair in replicates]


class ModelSettings(FrozenModel):
    """The settings of a model: `sent` to the provider, or `unavailable` because the model does not support them."""

    api_model: str
    profile: str
    structured_output: str
    max_output_tokens: NonNegativeInt
    sent: dict[str, Any]
    unavailable: list[str]
    params: dict[str, Any]
    base_url: str | None = None
    place: str | None = Field(default=None, exclude_if=lambda cloud: cloud is None)
    region: str | None = Field(default=None, exclude_if=lambda region: region is None)
    timeout_s: NonNegativeFloat


def _extract(name: str) -> BeforeValidator:
    """Return a validator that replaces a `Summary` by its attribute `name`, and leaves a number unchanged."""
    return BeforeValidator(lambda value: value.get(name) if isinstance(value, dict) else getattr(value, name, value))


def short_digest(digest: str) -> str:
    """Return the first 16 digits of a digest, without `sha256:`."""
    return digest.removeprefix("sha256:")[:_DIGEST_DIGITS]


def short_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the first 16 digits of the digests that select a baseline, by name."""
    return {name: short_digest(digests[name]) for name in _SELECTING_DIGESTS if name in digests}


class RowAccuracy(FrozenModel):
    """An accuracy metric over a run. `mean` is over the `n` scored outputs.

    `strict_mean` counts unreadable outputs as 0. `ci95` is its 95 % confidence interval, with the cases as units.
    """

    mean: float | None
    strict_mean: float | None
    stdev: float | None
    n: NonNegativeInt
    ci95: tuple[float, float] | None


def _without_cache_counts(cost: summaries.Cost) -> summaries.Cost:
    tokens = cost.tokens.model_copy(update={"cache_read": None, "cache_write": None, "uncached": None})
    return cost.model_copy(update={"tokens": tokens})


class CaseRow(FrozenModel):
    """A case on the leaderboard. `accuracy`: means over its scored replicates, or None if no replicate was scored.

    `reproducibility`: the agreement of its outputs, or None if it is undefined.
    """

    case_id: ids.CaseId
    accuracy: dict[str, Annotated[ids.Share | None, _extract("mean")]]
    reproducibility: dict[str, float | None]


class _Run(NestingModel):
    run_id: ids.RunId
    timestamp: ids.Label
    skill: ids.ComponentName
    skill_version: ids.VersionText
    git: summaries.Commits = flat_part("git")
    model_id: ids.ModelId
    served_model: Served
    provider: ids.Label
    replicates: NonNegativeInt


class Row(_Run):
    """A leaderboard row: the summary of a record. Its keys have the same meaning as in the record.

    `digest` is the digest of the whole record. `digests` has the first 16 digits of each digest that selects a
    baseline. `reproducibility` has the strict means.
    """

    shard: ids.ShardText | None = None
    scenario: ids.Label | None = None
    beside: ids.RunId | None = None
    n_cases: NonNegativeInt
    planned: NonNegativeInt
    scored: NonNegativeInt
    coverage: ids.Share
    complete: bool
    usable: ids.Share | None = None
    stopped: str | None = None
    primary_metric: str
    accuracy: dict[str, RowAccuracy]
    reproducibility: dict[str, Annotated[float | None, _extract("strict_mean")]]
    failures: dict[str, NonNegativeInt]
    cost: Annotated[summaries.Cost, AfterValidator(_without_cache_counts)] = flat_part("cost")
    digests: Annotated[dict[str, ids.Digest], AfterValidator(short_digests)]
    evaluator_version: ids.Label
    scorer_version: NonNegativeInt = 1
    digest: ids.Digest | None = None
    per_case: list[CaseRow]

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON, without keys that have their default."""
        return self.model_dump(mode="json", exclude_defaults=True)


class Record(_Run):
    """The result of a run: the outcomes of its calls and, per case, the scores of every replicate.

    `beside` is the id of the run whose calls were interleaved. `scored` and the counts in `failures` add up to
    `planned`. `usable` is the share of planned outputs that could be read; it is set only below `MIN_USABLE`. A `draft`
    has no leaderboard row and is no baseline of later runs. `faults` has the reasons why calls were not scored, most
    frequent first. Cases in `not_applicable` are not counted. `left_out` lists unused parts of the component's source.
    """

    seed: int | None
    shard: ids.ShardText | None
    scenario: ids.Label | None = None
    beside: ids.RunId | None = None
    n_cases: NonNegativeInt
    planned: NonNegativeInt
    scored: NonNegativeInt
    coverage: ids.Share
    complete: bool
    usable: ids.Share | None = summaries.LATER
    stopped: str | None
    primary_metric: str
    accuracy: dict[str, summaries.Summary]
    reproducibility: dict[str, summaries.Summary]
    per_field: dict[str, summaries.FieldSummary]
    per_array: dict[str, summaries.ArraySummary] = {}
    pass_hat_k: dict[int, summaries.Summary] = {}
    contract: summaries.ContractSummary | None = None
    failures: dict[str, NonNegativeInt]
    reasons: dict[str, NonNegativeInt]
    retries: NonNegativeInt | None
    cost: summaries.Cost = flat_part("cost")
    settings: ModelSettings | None
    digests: dict[str, ids.Digest]
    evaluator_version: ids.Label
    scorer_version: NonNegativeInt = 1
    schema_version: PositiveInt = RECORD_VERSION
    draft: bool = False
    calls: summaries.CallSpreads | None = summaries.LATER
    drift: summaries.Drift | None = summaries.LATER
    server: summaries.Server | None = summaries.LATER
    judged: summaries.JudgedChecks | None = summaries.LATER
    transport: Literal["direct", "batch"] = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    faults: list[summaries.FailedCalls] = Field(default=[], exclude_if=lambda faults: not faults)
    not_applicable: dict[ids.CaseId, ids.Label] = Field(default={}, exclude_if=lambda reasons: not reasons)
    left_out: list[str] = Field(default=[], exclude_if=lambda lines: not lines)
    per_case: list[CaseRecord]

    @property
    def is_final(self) -> bool:
        """Whether the run needs no further calls: it is complete, or too few of its outputs can be read."""
        return self.complete or self.usable is not None

    @property
    def is_baseline(self) -> bool:
        """Whether the run is the interleaved baseline of a candidate's run."""
        return ids.is_baseline(self.run_id, self.beside)

    @property
    def has_row(self) -> bool:
        """Whether the record has a leaderboard row: it is neither a draft nor an interleaved baseline."""
        return not self.draft and not self.is_baseline

    @property
    def scored_nothing(self) -> bool:
        """Whether the primary metric is 0 in every case."""
        summary = self.accuracy.get(self.primary_metric)
        return summary is not None and summary.strict_mean == 0.0

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether the run was imported from another tool."""
        return self.scorer_version == SCORED_ELSEWHERE

    @property
    def moment(self) -> datetime | None:
        """The start of the run, or None if the timestamp is invalid. A timestamp without an offset is in UTC."""
        try:
            moment = datetime.fromisoformat(self.timestamp)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    @property
    def outputs(self) -> int:
        """The number of calls that returned an output."""
        return round(self.coverage * self.planned)

    @property
    def requested(self) -> tuple[str, ...]:
        """The names of the requested model: its API name, if it is known, and its id in models.yaml."""
        return (self.model_id,) if self.settings is None else (self.settings.api_model, self.model_id)

    @property
    def served_note(self) -> str | None:
        """Advice if another model than requested, or several models, served the run. Otherwise None."""
        other_names = [name for name in names_of(self.served_model) if not is_requested(name, self.requested)]
        if self.provider in _WITHOUT_MODEL_NAMES or not (other_names or is_mixed(self.served_model)):
            return None
        requested = self.requested[0]
        message = f"{served_text(self.served_model)} answered, but {requested} was requested: "
        if is_mixed(self.served_model):
            return f"{message}this run is not compared; repeat it with `skill-evaluator evaluate {self.skill}`"
        name = re.split(r"[/\\]", other_names[0])[-1]  # an id cannot be a path
        return f"{message}if this is intended, set `id: {name}` and `api_id: {requested}` in models.yaml"

    @property
    def digest(self) -> str:
        """The digest of the record's canonical JSON."""
        return digest(canonical_json(self.model_dump(mode="json")))

    def row(self) -> Row:
        """Return the record as a row of the leaderboard."""
        return Row.model_validate(self, from_attributes=True)


def write_record(path: Path, record: Record) -> None:
    """Write a record to a file."""
    replace_text(path, json_text(record.model_dump(mode="json")))


def read_record(path: Path) -> Record:
    """Read a record; raise LeaderboardError if it is invalid or of a newer version."""
    return parse_record(read_json(path, LeaderboardError), path)


def parse_record(value: Any, path: Path) -> Record:
    """Parse the JSON value of a record; raise LeaderboardError if it is invalid or of a newer version."""
    refuse_newer(value, path, "schema_version", RECORD_VERSION, LeaderboardError)
    return validated(Record, value, path, LeaderboardError)


_RESUME = "--resume calls again"
_LOWER_LIMITS = (
    f"{_RESUME}; or lower limits: {{{{max_concurrency, requests_per_minute}}}} of '{{model}}' in models.yaml"
)
_RAISE_TIMEOUT = f"{_RESUME}; or raise timeout_s in settings.yaml"
_EXPLAIN = "`explain` shows the raw output"
REMEDIES: Mapping[str, str] = {
    "unreachable": "start the server, then --resume; or correct base_url of '{model}' in models.yaml and run anew",
    "wrong_key": "set a valid key for '{model}' (with a base_url, api_key_env must name its variable); then --resume",
    "permission_denied": "give the key of '{model}' access to this model; then --resume",
    "no_login": "log in to the cloud that '{model}' names as its `place`, in this shell or job; then --resume",
    "identity_refused": "correct the trust rule for the token's subject and audience, or its rights; then --resume",
    "unknown_model": "correct the id (or api_id) or the base_url of '{model}' in models.yaml",
    "model_retired": "the model is retired: `skill-evaluator switch {model} NEW` compares it with another",
    "out_of_credit": "top up the account; then --resume",
    "context_exceeded": "raise the context of the server, or shorten document or prompt",
    "request_too_large": "raise the server's limit, or shorten document or prompt",
    "bad_request": "correct params or structured_output of '{model}' in models.yaml; see the server's message",
    **{f"{name}_refused": f"add `ignores: [{name}]` to '{{model}}' in models.yaml" for name in IGNORABLE},
    "malformed_body": "check that base_url of '{model}' in models.yaml is the API's address, not a page or proxy",
    **dict.fromkeys(("rate_limited", "overloaded", "unavailable"), _LOWER_LIMITS),
    **dict.fromkeys(("connection_lost", "conflict", "server_error", "bad_gateway"), _RESUME),
    **dict.fromkeys(("read_timeout", "request_timeout", "gateway_timeout"), _RAISE_TIMEOUT),
    "output_limit": "raise max_output_tokens of '{model}' (params in models.yaml)",
    "answer_too_large": "raise limits.answer_bytes in settings.yaml",
    "too_costly_to_score": "raise limits.score_seconds or score_megabytes (in CI collect_seconds too) in settings.yaml",
    "provider_bug": "report it to the author of the provider of '{model}'",
    "in_reasoning": "raise params: {{max_output_tokens}} of '{model}' in models.yaml, or turn its reasoning off",
    "tool_call": "let the prompt ask for the output as content; take tools out of params of '{model}' in models.yaml",
    "no_tool_call": "see what '{model}' wrote with `explain`: it, or its server, may not support a forced tool call",
    "schema_refused": "change schema.json, or structured_output of '{model}' in models.yaml",
    **dict.fromkeys(("refusal", "empty", *get_args(NotJson), "ambiguous", "no_option"), _EXPLAIN),
}


def remedy(reason: str, model_id: str) -> str | None:
    """Return advice for a failure with this reason, or None if the reason is unknown."""
    advice = REMEDIES.get(reason)
    if advice and model_id == "program" and ".yaml" in advice:
        advice = "correct `program` in prompt.md (its url, headers, body or timeout_s), or the program itself"
    return None if advice is None else advice.format(model=model_id)


def unusable_text(record: Record) -> str | None:
    """Describe how few outputs could be read, with reasons and advice. Return None if enough could be read."""
    if record.usable is None:
        return None
    state = "could be read" if record.contract is None else "are JSON"
    text = f"{record.scored} of {record.planned} outputs {state}"
    faults = [fault for fault in record.faults if fault.kind != "scored"]
    if not faults:
        return text
    advice = remedy(faults[0].reason, record.model_id)
    text += f": {listed([f'{fault.count} × {fault.reason}' for fault in faults])}"
    return text if advice is None else f"{text}; {advice}"


def fault_lines(record: Record, quote: Callable[[str], str]) -> Iterator[str]:
    """Yield a line for each reason in `record.faults`, with advice if there is any. `quote` escapes untrusted text."""
    address = None if record.settings is None else record.settings.base_url
    for fault in record.faults:
        rest = f" and {fault.n_cases - len(fault.cases)} more" if fault.n_cases > len(fault.cases) else ""
        line = f"{fault.count} × {quote(fault.reason)} in {', '.join(map(quote, fault.cases))}{rest}"
        if fault.message:
            line += f": {quote(fault.message)}"
        if address is not None and fault.kind in ("provider_error", "timeout", "no_credentials"):
            line += f" ({quote(address)})"
        advice = remedy(fault.reason, record.model_id)
        yield line if advice is None else f"{line} → {quote(advice)}"
