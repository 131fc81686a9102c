"""`.evaluator/`: models.yaml and settings.yaml. Each class is a mapping in one of these files and each field a key."""

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import SizeLimit, StrictModel, validated
from skill_evaluator.identifiers import Label, ModelId, ProviderName, ReplicateCount, Share, Tier, is_address
from skill_evaluator.library.reading import YAML_DEPTH, ConfinedFolder, FixturesElsewhere, read_yaml
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.text import nearest


class Retry(StrictModel):
    """Retries of a failed call: the number of attempts, and the waiting times in seconds."""

    attempts: PositiveInt = 6
    first_wait_s: NonNegativeFloat = 0.5
    max_wait_s: PositiveFloat = 30.0
    max_retry_after_s: PositiveFloat = 120.0


class BatchSettings(StrictModel):
    """Batch API settings: the polling interval, and whether to delete requests and results at the vendor afterwards."""

    poll_s: PositiveFloat = Field(default=60.0, description="seconds between two status requests for a batch")
    delete_results: bool = Field(default=False, description="delete collected batches at the vendor")


class Jobs(StrictModel):
    """The limits of a CI plan: the calls per job, the number of jobs, and the cost in USD."""

    max_calls: PositiveInt = 1000
    max_jobs: Annotated[int, Field(ge=1, le=256)] = 60
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class JudgePanel(StrictModel):
    """Settings for several judges. Their result is the mean of their scores, or the majority of their verdicts."""

    weights: dict[ModelId, PositiveFloat] = Field(default={}, description="weight of each judge; default: 1")
    same_family: Literal["refuse", "allow"] = Field(
        default="refuse", description="whether a judge may be of the model family that wrote the output"
    )


FileKind = Literal["pdf", "image"]


class JudgePolicy(StrictModel):
    """The judges, and the rules by which their results decide what ships."""

    model: ModelId | None = Field(default=None, description="default judge of `expect` checks")
    trusted: tuple[ModelId, ...] = Field(default=(), description="judges that count as calibrated without labels")
    one_low: Literal["review_required", "ship"] = Field(
        default="review_required", description="the decision for exactly one regression, of low impact"
    )
    blocking: tuple[str, ...] = Field(default=(), description="additional dimensions in which any regression blocks")
    panel: JudgePanel = JudgePanel()
    cascade: tuple[ModelId, ModelId] | None = Field(default=None, description="cheap judge; judge of undecided outputs")
    alert_above: Share | dict[str, Share] | None = Field(default=None, description="allowed share of regressions")
    calibration: str | None = Field(default=None, description="results file of `judge calibrate`, to correct shares")

    def allowed(self, dimensions: Iterable[str]) -> Mapping[str, float]:
        """Return the allowed share of regressions by dimension. Return {} if `alert_above` is not set."""
        if isinstance(self.alert_above, float | int):
            return dict.fromkeys(dimensions, self.alert_above)
        return self.alert_above or {}


class ComponentSite(StrictModel):
    """The site settings of one component."""

    documents: bool = Field(default=False, description="also publish documents, ground truths and raw outputs")


class SiteSettings(StrictModel):
    """The settings of the site that `site build` writes."""

    address: str | None = Field(default=None, pattern=r"^https?://[^\s<>()\[\]\"']+$", description="URL of the site")
    components: dict[str, ComponentSite] = {}

    def publishes_documents(self, skill: str) -> bool:
        """Return whether the site may contain documents, ground truths and raw outputs of a component."""
        return self.components.get(skill, ComponentSite()).documents


STRICT = "json_schema_strict"  # the output schema in the form that vendors require
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")
SamplingName = Literal["temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty", "repeat_penalty"]
Ignorable = Literal[SamplingName, "max_tokens", "cache_prompt"]
IGNORABLE: tuple[str, ...] = get_args(Ignorable)


class Params(BaseModel):
    """Parameters of each call; unknown keys are passed to the provider's API unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    max_output_tokens: PositiveInt = Field(default=4096, description="also written max_tokens or max_completion_tokens")
    temperature: NonNegativeFloat | None = None
    top_p: Share | None = None

    @model_validator(mode="before")
    @classmethod
    def _rename_limit(cls, values: Any) -> Any:
        limits = [values[name] for name in LIMIT_NAMES if name in values] if isinstance(values, dict) else []
        return {**values, "max_output_tokens": limits[0]} if limits else values

    @model_validator(mode="after")
    def _reject_unsendable(self) -> Self:
        for name, value in self.extra.items():
            if name == "seed":
                raise ValueError("seed is not allowed: each call gets its own seed, derived from `evaluate --seed N`")
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise ValueError(f"{name} is a date, .nan or .inf, which JSON cannot hold; quote it") from None
        return self

    @property
    def extra(self) -> dict[str, Any]:
        """The unknown keys and their values, which are passed to the provider."""
        return dict(self.__pydantic_extra__ or {})


class Limits(StrictModel):
    """The limits of a model's API. After an overload error, fewer calls run at once for a while."""

    max_concurrency: PositiveInt | None = None
    requests_per_minute: PositiveInt | None = None
    tokens_per_minute: PositiveInt | None = None
    context_tokens: PositiveInt | None = Field(default=None, description="tokens that the model can read in one call")
    queued_tokens: PositiveInt | None = Field(default=None, description="limit of tokens in unfinished batches")


UsdPerMillion = Annotated[float, Field(ge=0, le=1_000_000)]


class Price(StrictModel):
    """Prices in USD per million tokens; `cache_write_1h` is for cache entries that are kept for an hour."""

    input: UsdPerMillion
    output: UsdPerMillion
    cache_read: UsdPerMillion | None = None
    cache_write: UsdPerMillion | None = None
    cache_write_1h: UsdPerMillion | None = None
    batch_cache_read: UsdPerMillion | None = Field(
        default=None, description="cache_read in a batch; default: cache_read"
    )


_T = TypeVar("_T")
_Omitted = Annotated[_T | None, Field(exclude_if=lambda value: value is None)]
"""A setting that is left out of records unless it is set."""


class Model(StrictModel):
    """One entry of models.yaml. Only `id` and `provider` are required."""

    id: ModelId
    provider: ProviderName
    api_id: str | None = None
    params: Params = Params()
    profile: Literal["deterministic", "sampled"] = "deterministic"
    structured_output: Literal["json_schema", "json_schema_strict", "json_object", "none"] = "json_schema"
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    server: _Omitted[Literal["vllm", "sglang", "llama.cpp"]] = Field(default=None, description="server software")
    place: _Omitted[Literal["azure", "bedrock", "vertex", "foundry"]] = Field(default=None, description="cloud vendor")
    region: _Omitted[Label] = Field(default=None, description="region, for place bedrock or vertex")
    project: _Omitted[Label] = Field(default=None, description="project, for place vertex")
    api_version: _Omitted[Label] = Field(default=None, description="API version, for place azure")
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    auth: Literal["key", "oidc"] = Field(default="key", description="oidc: the identity of the GitHub Actions job")
    limits: Limits = Limits()
    price: Price | None = None
    cache: bool = Field(default=True, description="whether to request prompt caching")
    ignores: _Omitted[tuple[Ignorable, ...]] = Field(default=None, description="parameters that are never sent")
    family: Label | None = Field(default=None, description="model family; default: derived from the name")
    accepts: _Omitted[tuple[FileKind, ...]] = Field(default=None, description="file kinds that it reads")
    retires: datetime.date | None = Field(default=None, description="the day on which the vendor retires the model")
    judge: Literal["strong"] | None = Field(default=None, description="strong: may judge regressions")

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, base_url: str | None) -> str | None:
        if base_url and not is_address(base_url):
            raise ValueError(f"'{base_url}' is not an address; write it like http://localhost:8000/v1")
        return base_url

    @model_validator(mode="after")
    def _server_has_an_address(self) -> Self:
        if self.server is not None and (self.provider != "openai" or self.base_url is None):
            raise ValueError(f"server: {self.server} requires provider: openai and the base_url of that server")
        return self

    @property
    def api_name(self) -> str:
        """The model's name in its API: `api_id`, or else `id`."""
        return self.api_id or self.id

    @property
    def sends_schema(self) -> bool:
        """Whether the output schema is sent, as it is or in its strict form."""
        return self.structured_output in ("json_schema", STRICT)

    @property
    def is_direct(self) -> bool:
        """Whether the vendor's own API serves the model: neither `base_url` nor `place` is set."""
        return self.base_url is None and self.place is None

    @property
    def on_private_network(self) -> bool:
        """Whether the host of base_url is a private address or an internal name, such as `localhost`."""
        host = urlsplit(self.base_url or "").hostname or ""
        try:
            return not ip_address(host).is_global
        except ValueError:
            return bool(host) and ("." not in host or host.endswith((".local", ".internal", ".svc", ".localhost")))

    @property
    def public_url(self) -> str | None:
        """The base_url without user name, password, query and fragment, or None if there is no base_url."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Models(StrictModel):
    """The file models.yaml."""

    models: tuple[Model, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        ids = [model.id.casefold() for model in self.models]  # folder names, which may be case-insensitive
        for index, model in enumerate(self.models):
            if (first_index := ids.index(ids[index])) != index:
                raise ValueError(f"duplicate model id '{model.id}' at models[{index}] and models[{first_index}]")
        return self


Design = Literal["beside", "recorded"]
VerdictName = Literal["regressed", "improved", "unchanged", "inconclusive", "incomparable"]


class MetricPolicy(StrictModel):
    """The tier and the tolerated drop of a metric or field; by default the general tolerance applies."""

    tier: Tier | None = Field(default=None, description="supporting: decides only if it regresses; advisory: never")
    tolerance: Share | None = None


def _refuse_reproducibility(metrics: dict[str, MetricPolicy]) -> dict[str, MetricPolicy]:
    for name in metrics:
        if name in REPRODUCIBILITY:
            raise ValueError(f"'{name}' is a reproducibility metric, which decides no verdict; delete the entry")
    return metrics


MetricPolicies = Annotated[dict[str, MetricPolicy], AfterValidator(_refuse_reproducibility)]
"""The policy of accuracy metrics by name."""


def _require_day(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        raise ValueError(f"a day such as 2027-01-31 is expected, not '{value}'")
    return value


class UnstableCase(StrictModel):
    """A case whose outputs are known to vary: it is called and shown, but decides no verdict."""

    reason: Annotated[str, Field(min_length=1)]
    until: Annotated[datetime.date, BeforeValidator(_require_day)] = Field(description="last day of the exception, UTC")

    @property
    def is_over(self) -> bool:
        """Whether the day `until` has passed (UTC)."""
        return self.until < datetime.datetime.now(datetime.UTC).date()


class ComponentPolicy(StrictModel):
    """The policy of one component; the policy for all components applies for a missing key."""

    tolerance: Share | None = None
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    required_coverage: Share | None = None
    metrics: MetricPolicies = {}
    fields: dict[str, MetricPolicy] = {}
    critical_cases: tuple[str, ...] = Field(default=(), description="cases whose loss of `harm` is a regression")
    unstable_cases: dict[str, UnstableCase] = Field(default={}, description="cases that decide nothing, by id")
    stakes: Literal["normal", "high"] = Field(default="normal", description="high: a person decides what ships")
    judge: ModelId | None = Field(default=None, description="judge of `expect` checks")


class Policy(StrictModel):
    """The rules by which a version counts as regressed, and those of judges (`judge`).

    `metrics` and `components` override them for a metric or a component.
    """

    tolerance: Share = Field(default=0.05, description="tolerated drop")
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    fail_on: tuple[VerdictName, ...] = ("regressed",)
    harm: Share = Field(default=0.25, description="one field or case that falls by more is a regression")
    anchor: Literal["accepted", "previous"] = Field(
        default="accepted", description="accepted: small losses are added up"
    )
    design: Design = Field(default="beside", description="beside: interleaved baseline; recorded: an earlier run")
    served: Literal["same", "any"] = Field(default="same", description="same: a verdict requires the same served model")
    metrics: MetricPolicies = {}
    components: dict[str, ComponentPolicy] = {}
    judge: JudgePolicy = JudgePolicy()

    def judge_of(self, skill: str) -> ModelId | None:
        """Return the id of a component's own judge, or None if its policy names none."""
        component_policy = self.components.get(skill)
        return None if component_policy is None else component_policy.judge


class Benchmark(StrictModel):
    """The weight of a component among the benchmarks of an audit."""

    weight: PositiveFloat = 1.0


def _equal_weights(benchmarks: Any) -> Any:
    is_list_of_names = isinstance(benchmarks, list) and all(isinstance(name, str) for name in benchmarks)
    return dict.fromkeys(benchmarks, Benchmark()) if is_list_of_names else benchmarks


Benchmarks = Annotated[
    dict[str, Benchmark], BeforeValidator(_equal_weights, json_schema_input_type=dict[str, Benchmark] | list[str])
]
"""Benchmarks by name; a list of names gives all of them equal weight."""


class Audit(StrictModel):
    """The settings of an audit. Default: components with `output: choice`, and scenarios outside of folders."""

    benchmarks: Benchmarks = {}
    scenarios: tuple[str, ...] = ()
    questions: PositiveInt | None = Field(default=None, description="cases sampled per benchmark; default: all")
    replicates: ReplicateCount = 2


class SafetyLimits(StrictModel):
    """Safety limits for input from outside: a larger file is an error, and a larger output scores 0."""

    response_bytes: PositiveInt = Field(default=32_000_000, description="a server's response, decompressed")
    answer_bytes: PositiveInt = Field(default=2_000_000, description="the text of one output")
    answer_leaves: PositiveInt = Field(default=50_000, description="values in one output or ground truth")
    score_seconds: PositiveFloat = Field(default=20.0, description="processor time to score one output")
    score_megabytes: PositiveInt = Field(default=1_000, description="memory to score one output")
    collect_seconds: PositiveFloat = Field(default=600.0, description="time to score all runs of one `collect`")
    schema_errors: PositiveInt = Field(default=100, description="schema errors listed per output")
    document_bytes: PositiveInt = Field(default=4_000_000, description="a document, ground truth or meta file")
    file_bytes: PositiveInt = Field(default=20_000_000, description="a PDF or an image of a case")
    file_pages: PositiveInt = Field(default=1_000, description="pages of a PDF of a case")
    prompt_bytes: PositiveInt = Field(default=1_000_000, description="a prompt.md or scenario")
    schema_bytes: PositiveInt = Field(default=1_000_000, description="a schema.json or datasets.json")
    yaml_depth: int = Field(default=YAML_DEPTH, ge=1, le=200, description="levels of nesting in a YAML text")
    follow_links: bool = Field(default=False, description="whether files may be links that lead out of their folder")

    def size_of(self, setting: Literal["document_bytes", "file_bytes", "prompt_bytes", "schema_bytes"]) -> SizeLimit:
        """Return the size limit of `setting`, a key of `limits` in settings.yaml. Errors name this key."""
        return SizeLimit(max_bytes=getattr(self, setting), setting=f"limits.{setting}")


DEFAULT_LIMITS = SafetyLimits()


class DeclaredSource(StrictModel):
    """A folder of components in another format, such as skills. They are read in place."""

    kind: str = Field(description="skills, prompt_yml, promptfoo or own")
    root: str = Field(default=".", min_length=1, description="the folder, relative to the parent of .evaluator")
    leave_out: tuple[str, ...] = Field(default=(), description="components or component/case to skip, with * and ?")


class Settings(StrictModel):
    """The file settings.yaml; every key has a default, and the file is optional."""

    replicates: ReplicateCount = 10
    seed: int = 0
    concurrency: PositiveInt | None = Field(default=None, description="calls at a time per model; default: 8 or more")
    timeout_s: PositiveFloat = 180.0
    retry: Retry = Retry()
    required_coverage: Share = 0.9
    batch: BatchSettings = BatchSettings()
    jobs: Jobs = Jobs()
    policy: Policy = Policy()
    audit: Audit = Audit()
    limits: SafetyLimits = DEFAULT_LIMITS
    fixtures: FixturesElsewhere | None = None
    sources: tuple[DeclaredSource, ...] = Field(default=(), description="folders of components in other formats")
    ceilings: dict[str, Limits] = Field(default={}, description="rate limits by provider, for all its models and jobs")
    site: SiteSettings = SiteSettings()


def load_models(config_dir: Path, limits: SafetyLimits = DEFAULT_LIMITS) -> tuple[Model, ...]:
    """Read the models in `<config_dir>/models.yaml`. Raise ConfigError if it does not exist or is invalid."""
    path = config_dir / "models.yaml"
    if not path.exists():
        raise ConfigError(f"{path} does not exist; write it with `skill-evaluator init`, or go to the library's root")
    root = ConfinedFolder(config_dir, ConfigError, follow_links=limits.follow_links)
    return validated(Models, read_yaml(root.inside(path), depth=limits.yaml_depth), path).models


def load_settings(config_dir: Path) -> Settings:
    """Read `<config_dir>/settings.yaml`, or return defaults if there is none. Raise ConfigError if it is invalid."""
    path = config_dir / "settings.yaml"
    values = read_yaml(ConfinedFolder(config_dir, ConfigError).inside(path)) if path.exists() else None
    return validated(Settings, {} if values is None else values, path)


def retiring(models: Iterable[Model]) -> list[str]:
    """Return one sentence per model that is retired or retires within 60 days, with the date and the next step."""
    today = datetime.datetime.now(datetime.UTC).date()
    return [
        f"{model.id} {'is' if model.retires > today else 'was'} switched off on {model.retires}: "
        f"`skill-evaluator switch {model.id} NEW` compares it with another"
        for model in models
        if model.retires is not None and (model.retires - today).days <= 60
    ]


def select_models(models: tuple[Model, ...], ids: tuple[str, ...]) -> tuple[Model, ...]:
    """Return the models with `ids`, in that order, or all if `ids` is empty. Raise ConfigError for an unknown id."""
    by_id = {model.id: model for model in models}
    if unknown := [model_id for model_id in ids if model_id not in by_id]:
        raise ConfigError(f"unknown model '{unknown[0]}' {nearest(unknown[0], by_id)}")
    return tuple(by_id[model_id] for model_id in dict.fromkeys(ids)) or models
