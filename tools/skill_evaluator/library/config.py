"""`.evaluator/models.yaml` and `.evaluator/settings.yaml`, read once into frozen models and trusted afterwards.

Each class is a mapping in one of these files, each field a key. Provider names are checked in `providers`, which knows
them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import StrictModel, read_yaml, validated
from skill_evaluator.text import nearest

Share = Annotated[float, Field(ge=0, le=1)]


class Params(BaseModel):
    """Settings of each call; keys beyond these go to the provider's API as they are."""

    model_config = ConfigDict(frozen=True, extra="allow")

    max_output_tokens: PositiveInt = 4096
    temperature: NonNegativeFloat | None = None
    top_p: Share | None = None

    @property
    def extra(self) -> dict[str, Any]:
        """The keys beyond these, for the provider."""
        return dict(self.__pydantic_extra__ or {})


class Limits(StrictModel):
    """The most calls and tokens a model's API is sent; fewer by itself when it complains."""

    max_concurrency: PositiveInt | None = None
    requests_per_minute: PositiveInt | None = None
    tokens_per_minute: PositiveInt | None = None


class Price(StrictModel):
    """A price in USD per million tokens."""

    input: NonNegativeFloat
    output: NonNegativeFloat


class Model(StrictModel):
    """One entry of models.yaml: `{id, provider}` is enough."""

    id: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]*$")
    provider: str
    api_id: str | None = None
    params: Params = Params()
    profile: Literal["deterministic", "sampled"] = "deterministic"
    structured_output: Literal["json_schema", "json_object", "none"] = "json_schema"
    base_url: str | None = Field(default=None, pattern=r"^https?://")
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    limits: Limits = Limits()
    price: Price | None = None

    @property
    def api_name(self) -> str:
        """The model's name in its API."""
        return self.api_id or self.id


class Models(StrictModel):
    """The file models.yaml."""

    models: tuple[Model, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        seen: dict[str, int] = {}
        for index, model in enumerate(self.models):
            key = model.id.casefold()  # ids name folders, and some file systems do not tell case apart
            if key in seen:
                raise ValueError(f"duplicate model id '{model.id}' at models[{index}] and models[{seen[key]}]")
            seen[key] = index
        return self


class Retry(StrictModel):
    """How often a failed call is tried again, and how long to wait before."""

    attempts: PositiveInt = 6
    first_wait_s: NonNegativeFloat = 0.5
    max_wait_s: PositiveFloat = 30.0
    max_retry_after_s: PositiveFloat = 120.0


class Jobs(StrictModel):
    """How a plan is cut into jobs for CI: the most calls of a job (about) and the most jobs of a run."""

    max_calls: PositiveInt = 1000
    max_jobs: Annotated[int, Field(ge=1, le=256)] = 256


Tier = Literal["critical", "supporting", "advisory"]
Gate = Literal["robust", "fixtures", "generalises"]
VerdictName = Literal["regressed", "improved", "unchanged", "inconclusive", "incomparable"]


class MetricPolicy(StrictModel):
    """How much a metric or field weighs in a verdict, and which drop of it is tolerated; None: the general tolerance.

    `critical` decides the verdict. `supporting` decides only by a regression. `advisory` is only shown.
    """

    tier: Tier | None = None
    tolerance: Share | None = None


class ComponentPolicy(StrictModel):
    """The policy of one component; a key that is left out is as for all components."""

    tolerance: Share | None = None
    alpha: Annotated[float, Field(gt=0, lt=1)] | None = None
    required_coverage: Share | None = None
    metrics: dict[str, MetricPolicy] = {}
    fields: dict[str, MetricPolicy] = {}
    critical_cases: tuple[str, ...] = Field(default=(), description="cases whose loss of `harm` is a regression")


class Policy(StrictModel):
    """When a version counts as worse; `gate` says which verdict decides: on these fixtures, beyond them, or both.

    `harm` is the loss of one field or case that counts however the mean moves. `anchor` says whether loss is also
    summed up since the last accepted version, and `design` whether CI asks the baseline's prompt beside the new one.
    Without a tier, the component's primary metric is critical, its other metrics are supporting and fields are
    advisory.
    """

    gate: Gate = "robust"
    tolerance: Share = Field(default=0.05, description="the drop that is tolerated")
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    fail_on: tuple[VerdictName, ...] = ("regressed",)
    harm: Share = Field(default=0.25, description="the loss of a field or case that counts whatever the mean does")
    anchor: Literal["accepted", "previous"] = "accepted"
    design: Literal["recorded", "interleaved"] = "recorded"
    metrics: dict[str, MetricPolicy] = {}
    components: dict[str, ComponentPolicy] = {}


class Benchmark(StrictModel):
    """The weight of a component among the benchmarks of an audit."""

    weight: PositiveFloat = 1.0


def _weigh_alike(benchmarks: Any) -> Any:
    """Accept a list of names for benchmarks of equal weight."""
    is_list_of_names = isinstance(benchmarks, list) and all(isinstance(name, str) for name in benchmarks)
    return {name: {} for name in benchmarks} if is_list_of_names else benchmarks


Benchmarks = Annotated[
    dict[str, Benchmark], BeforeValidator(_weigh_alike, json_schema_input_type=dict[str, Benchmark] | list[str])
]


class Audit(StrictModel):
    """What a stability audit asks; `questions` is how many cases of each benchmark are drawn (None: all).

    Benchmarks are by default all components with `output: choice`, scenarios all there are.
    """

    benchmarks: Benchmarks = {}
    scenarios: tuple[str, ...] = ()
    questions: PositiveInt | None = None
    replicates: PositiveInt = 2


class Settings(StrictModel):
    """The file settings.yaml; every key has a default, so the file may be absent."""

    replicates: PositiveInt = 10
    seed: int = 0
    concurrency: PositiveInt = 8
    timeout_s: PositiveFloat = 180.0
    retry: Retry = Retry()
    required_coverage: Share = 0.9
    jobs: Jobs = Jobs()
    policy: Policy = Policy()
    audit: Audit = Audit()


def load_models(config_dir: Path) -> tuple[Model, ...]:
    """Read `<config_dir>/models.yaml`; raise ConfigError with file and key."""
    path = config_dir / "models.yaml"
    if not path.exists():
        raise ConfigError(
            f"{path} does not exist; create it with a line such as: models: [{{id: gpt-5, provider: openai}}]"
        )
    return validated(Models, read_yaml(path), path).models


def load_settings(config_dir: Path) -> Settings:
    """Read `<config_dir>/settings.yaml`, or take the defaults when there is none; raise ConfigError."""
    path = config_dir / "settings.yaml"
    if not path.exists():
        return Settings()
    values = read_yaml(path)
    return validated(Settings, {} if values is None else values, path)


def select_models(models: tuple[Model, ...], wanted: tuple[str, ...]) -> tuple[Model, ...]:
    """Return the wanted models in the order wanted, or all without a wish; raise ConfigError for an unknown id."""
    if not wanted:
        return models
    by_id = {model.id: model for model in models}
    for model_id in wanted:
        if model_id not in by_id:
            raise ConfigError(f"unknown model '{model_id}' for --model {nearest(model_id, by_id)}")
    return tuple(by_id[model_id] for model_id in dict.fromkeys(wanted))
