"""Prices of tokens, costs of calls, and estimates of a run before any call is made.

A price comes from models.yaml, else from the price library, else it is unknown. Missing prices of caches and batches
are assumed so high that no cost is too low.
"""

import functools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import genai_prices
from genai_prices import data_snapshot
from pydantic import NonNegativeInt

from skill_evaluator.display import cost_words
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import ModelId, Usd
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Price
from skill_evaluator.library.prompts import File
from skill_evaluator.providers import Keys, Kinds, batch_refusal, key_note
from skill_evaluator.providers.base import LOST, Completion, ProviderKind, Request, Usage, fields_of
from skill_evaluator.records.record import parts_of
from skill_evaluator.runner.schedule import Replicate, build_request
from skill_evaluator.stats import by_key, total_or_none

ESTIMATE_COLUMNS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")
_COUNTS = ("calls", "input_tokens_estimate", "output_tokens_upper")
_COSTS = ("cost_upper_usd", "cost_uncached_usd", "cost_cached_usd", "cost_batch_usd")
_BYTES_PER_TOKEN = 4
_TEMPLATE_TOKENS = 8  # tokens per message
_MAX_TEMPLATE_TOKENS = 512  # instructions that structured output adds to a prompt
_PER_MILLION = 1_000_000
_SAMPLE_TOKENS = 1_000  # below every vendor's long-context tier
_BATCH_FACTOR = 0.5  # share of the direct price, at every vendor
_WRITE_FACTOR, _WRITE_1H_FACTOR = 1.25, 2.0  # highest listed factors on the price of input
Priced = tuple[Model, Price | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSize:
    """The input tokens of one case: a likely number, a maximum and a minimum. `files` are not counted yet."""

    likely: int
    maximum: int
    minimum: int = 0
    files: tuple[File, ...] = ()

    def of_model(self, model: Model, kind: ProviderKind) -> "InputSize":
        """Return the size with the tokens of its files, by the rules of the model's vendor."""
        tokens = [kind.file_tokens(model, file) for file in self.files]
        likely, maximum = (sum(counts[bound] for counts in tokens) for bound in (0, 1))
        return InputSize(likely=self.likely + likely, maximum=self.maximum + maximum, minimum=self.minimum)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The estimated calls, tokens and maximum costs in USD of one model's run. Costs are None if unknown."""

    calls: int
    input_tokens_estimate: int
    output_tokens_upper: int
    cost_upper_usd: float | None  # whatever the vendor caches
    cost_uncached_usd: float | None = None
    cost_cached_usd: float | None = None  # the prompt is cached from the second replicate on
    cost_batch_usd: float | None = None  # also None if the model has no batch API

    @property
    def amounts(self) -> tuple[str, ...]:
        """The estimated amounts as texts, in the order of the columns `ESTIMATE_COLUMNS`."""
        return (*(f"{getattr(self, name):,}" for name in _COUNTS), cost_words(self.cost_upper_usd, digits=2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate(CostEstimate):
    """The estimate of one model's calls."""

    model_id: str
    provider: str
    key: str  # returned by `key_note`

    @classmethod
    def of(cls, model: Model, kind: ProviderKind, keys: Keys, amounts: CostEstimate) -> "ModelEstimate":
        """Build the estimate of a model's calls from the estimated amounts."""
        key = key_note(model, kind, keys)
        return cls(model_id=model.id, provider=model.provider, key=key, **asdict(amounts))


def size_of(request: Request) -> InputSize:
    """Estimate the input tokens of a request without its files, which `InputSize.of_model` adds.

    The likely number is one token per four bytes of text and schema, the maximum one per byte; both add the tokens
    with which an API separates messages. The minimum is one per word of the text.
    """
    messages, schema_bytes = request.messages, len(json.dumps(request.schema)) if request.schema else 0
    input_bytes = sum(len(message.text.encode()) for message in messages) + schema_bytes
    return InputSize(
        likely=input_bytes // _BYTES_PER_TOKEN + _TEMPLATE_TOKENS * len(messages),
        maximum=input_bytes + _MAX_TEMPLATE_TOKENS + 2 * _TEMPLATE_TOKENS * len(messages[2:]),
        minimum=sum(len(message.text.split()) for message in messages),
        files=request.files,
    )


def input_sizes(component: Component, cases: Iterable[Case]) -> dict[str, InputSize]:
    """Return the size of the request of each case by case id."""
    return {case.id: size_of(build_request(component, case)) for case in cases}


def not_applicable(
    cases: Iterable[Case], sizes: Mapping[str, InputSize], model: Model, kind: ProviderKind
) -> dict[str, str]:
    """Return the reason for each case that is not applicable to a model, by case id. `sizes` is by case id, too."""
    context, accepted = context_of(model, kind), model.accepts
    if accepted is None:
        accepted = tuple(kind.accepts(model)) if kind.accepts else ()
    reasons = {}
    for case in cases:
        minimum = sizes[case.id].minimum
        if any(fnmatchcase(model.id, pattern) for pattern in case.not_applicable):
            reasons[case.id] = "declared"
        elif unsupported := sorted({file.kind for file in sizes[case.id].files}.difference(accepted)):
            reasons[case.id] = f"{' and '.join(unsupported)}: not in accepts of models.yaml"
        elif context is not None and minimum > context:
            reasons[case.id] = f"at least {minimum:,} tokens, over its context of {context:,}"
    return reasons


def estimate(
    sizes: Mapping[str, InputSize], model: Model, kind: ProviderKind, replicates: int, *, batch: bool = False
) -> CostEstimate:
    """Estimate a run with `replicates` calls per case. `sizes` is by case id. `batch` lowers `cost_upper_usd`."""
    price, limit = price_of(model, kind), model.params.max_output_tokens
    sizes = {case_id: size.of_model(model, kind) for case_id, size in sizes.items()}
    cost = total_or_none(max_call_cost(model, price, size.maximum, batch=batch) for size in sizes.values())

    def total(floor: int | None = None, *, in_batch: bool = False) -> float | None:
        return total_or_none(
            _case_cost(price, size, limit, replicates, floor, batch=in_batch) for size in sizes.values()
        )

    return CostEstimate(
        calls=len(sizes) * replicates,
        input_tokens_estimate=sum(size.likely for size in sizes.values()) * replicates,
        output_tokens_upper=len(sizes) * replicates * limit,
        cost_upper_usd=None if cost is None else cost * replicates,
        cost_uncached_usd=total(),
        cost_cached_usd=total(kind.cache_floor_of(model)),
        cost_batch_usd=None if batch_refusal(model) else total(in_batch=True),
    )


def _case_cost(
    price: Price | None, size: InputSize, limit: int, replicates: int, cache_floor: int | None, *, batch: bool
) -> float | None:
    """Return the maximum cost of a case's replicates in USD. Prompts of `cache_floor` tokens or more are cached."""
    usage = Usage(input_tokens=size.maximum, output_tokens=limit, batch=batch)
    reads_cache = cache_floor is not None and replicates > 1 and size.likely >= cache_floor
    first_cost = usage_cost(price, replace(usage, cache_write_tokens=size.maximum) if reads_cache else usage)
    later_cost = usage_cost(price, replace(usage, cache_read_tokens=size.maximum) if reads_cache else usage)
    return None if first_cost is None or later_cost is None else first_cost + (replicates - 1) * later_cost


def sum_of(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Add up the estimates of several runs. A total cost is None if one of the costs is None."""
    counts: Any = {name: sum(getattr(estimate, name) for estimate in estimates) for name in _COUNTS}
    costs: Any = {name: total_or_none(getattr(estimate, name) for estimate in estimates) for name in _COSTS}
    return CostEstimate(**counts, **costs)


def price_of(model: Model, kind: ProviderKind) -> Price | None:
    """Return a model's price in USD per million tokens, or None if it is unknown."""
    declared = model.price
    if kind.free:
        return declared or Price(input=0.0, output=0.0)
    if not model.is_direct:
        return declared  # the vendor's list price does not apply to clouds and self-hosted servers
    if declared is not None and declared.cache_read is not None and declared.cache_write is not None:
        return declared
    listed = _listed_price(model.provider, model.api_name)
    if declared is None or listed is None or not listed.input:
        return declared or listed
    # cache prices that models.yaml lacks have the same ratio to its price of input as in the price library
    of_caches = listed.model_dump(exclude={"input", "output"})
    scaled = {name: usd * declared.input / listed.input for name, usd in of_caches.items()}
    return declared.model_copy(update={**scaled, **declared.model_dump(exclude_none=True)})


def answer_price(model: Model, price: Price | None, served: str | None) -> Price | None:
    """Return the price of the model that served an output, or None if the price is unknown.

    `price` is that of the requested model. It applies if no other model is known to have served. It always applies to
    programs and free models.
    """
    is_free = price is not None and _is_free(price)
    base, release = parts_of(served or model.id)
    is_requested = base in (parts_of(model.api_name)[0], parts_of(model.id)[0])
    if not served or is_free or model.provider == "program" or (is_requested and (model.price or not model.is_direct)):
        return price
    listed = _listed_price(model.provider, base + release) if model.is_direct else None
    return listed or (price if is_requested else None)


def answer_cost(model: Model, price: Price | None, completion: Completion) -> float | None:
    """Return the cost of an output in USD at the price of the served model, or None if it is unknown."""
    return usage_cost(answer_price(model, price, completion.served_model), completion.usage)


def call_cost(model: Model, price: Price | None, replicate: Replicate) -> float | None:
    """Return the cost of a call in USD, 0 for an error. Return None if the cost is unknown, as for a lost output."""
    if replicate.completion is not None:
        return answer_cost(model, price, replicate.completion)
    is_lost = replicate.error is not None and replicate.error.reason == LOST  # may be billed
    return usage_cost(price, Usage()) if is_lost else 0.0


def budget_cost(model: Model, price: Price | None, completion: Completion) -> float | None:
    """Return the higher cost of an output in USD: of the requested or the served model. None if both are unknown."""
    costs = (usage_cost(price, completion.usage), answer_cost(model, price, completion))
    return max((cost for cost in costs if cost is not None), default=None)


@functools.cache  # called for every component of a plan
def _listed_price(provider: str, api_name: str) -> Price | None:
    def usd(*counts: str, context: dict[str, str] | None = None) -> float:
        usage = genai_prices.Usage(**dict.fromkeys(counts, _SAMPLE_TOKENS))
        price = genai_prices.calc_price(usage, api_name, provider_id=provider, price_context=context)
        return float(price.total_price * _PER_MILLION / _SAMPLE_TOKENS)

    try:
        return Price(
            input=usd("input_tokens"),
            output=usd("output_tokens"),
            cache_read=usd("input_tokens", "cache_read_tokens"),
            cache_write=usd("input_tokens", "cache_write_tokens"),
            cache_write_1h=usd("input_tokens", "cache_write_tokens", "cache_write_1h_tokens"),
            batch_cache_read=usd("input_tokens", "cache_read_tokens", context={"processing": "batch"}),
        )
    except LookupError:
        return None


def context_of(model: Model, kind: ProviderKind) -> int | None:
    """Return a model's context length in tokens, from models.yaml if it is set there. Return None if it is unknown."""
    if model.limits.context_tokens is not None or not model.is_direct or model.price is not None:
        return model.limits.context_tokens
    if kind.context_tokens is not None:
        return kind.context_tokens(model)
    return None if kind.free else _listed_context(model.provider, model.api_name)


@functools.cache
def _listed_context(provider: str, api_name: str) -> int | None:
    try:
        _, listed = data_snapshot.get_snapshot().find_provider_model(api_name, None, provider, None)
    except LookupError:
        return None
    return listed.context_window


def usage_cost(price: Price | None, usage: Usage) -> float | None:
    """Return the cost of one call in USD, 0 at a free price. Return None if the price or a token count is unknown."""
    if price is None:
        return None
    if _is_free(price):
        return 0.0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    written_1h = usage.cache_write_1h_tokens or 0
    cost = (usage.input_tokens - read - written) * price.input + usage.output_tokens * price.output
    cost += (written - written_1h) * _price_or(price.cache_write, _WRITE_FACTOR * price.input)
    cost += written_1h * _price_or(price.cache_write_1h, _WRITE_1H_FACTOR * price.input)
    read_price = _price_or(price.cache_read, price.input)
    if usage.batch:
        cost, read_price = cost * _BATCH_FACTOR, _price_or(price.batch_cache_read, read_price)
    cost = (cost + read * read_price) / _PER_MILLION
    return cost if 0 <= cost < math.inf else None


def _is_free(price: Price) -> bool:
    return not (price.input or price.output or any(usd for _, usd in price))  # iterating over all prices is slow


def hit_rate(usages: Sequence[Usage]) -> float | None:
    """Return the share of input tokens read from a cache. Return None if a count is unknown or the input is empty.

    >>> hit_rate([Usage(input_tokens=100, cache_read_tokens=80), Usage(input_tokens=100, cache_read_tokens=0)])
    0.4
    """
    total = total_or_none(usage.input_tokens for usage in usages)
    read = total_or_none(usage.cache_read_tokens for usage in usages)
    return None if read is None or not total else round(read / total, 4)


def _price_or(price: float | None, default: float) -> float:
    return default if price is None else price


def max_call_cost(model: Model, price: Price | None, input_tokens: int, *, batch: bool = False) -> float | None:
    """Return the maximum cost of a call in USD, whether its prompt is cached or not. Return None if `price` is None."""
    usage = Usage(input_tokens=input_tokens, output_tokens=model.params.max_output_tokens, batch=batch)
    read, written = replace(usage, cache_read_tokens=input_tokens), replace(usage, cache_write_tokens=input_tokens)
    for_an_hour = fields_of(model.params.extra.get("cache_control")).get("ttl") == "1h"
    written_1h = replace(written, cache_write_1h_tokens=input_tokens * for_an_hour)
    costs = (usage_cost(price, each) for each in (usage, read, written, written_1h))
    return max((cost for cost in costs if cost is not None), default=None)


def refuse_unpriced(models: Sequence[Model], kinds: Kinds) -> None:
    """Raise ConfigError if a model has no price, because `--max-cost` cannot cap its cost."""
    for model in models:
        if price_of(model, kinds[model.provider]) is None:
            raise ConfigError(
                f"--max-cost requires a price for '{model.id}'; "
                "set price: {input, output} in models.yaml, or run without this model"
            )


COST_OF_BATCHES = "the costs are for batches, half of the costs without --batch; outputs arrive within a day"


class Forecast(FrozenModel):
    """The maximum costs in USD of a model, or of all models if `model_id` is null. A cost is null if unknown.

    If a model has no batch API, its `batch_usd` is null, too. The total `batch_usd` then includes its `direct_usd`.
    """

    model_id: ModelId | None
    calls: NonNegativeInt
    direct_usd: Usd | None
    cached_usd: Usd | None
    batch_usd: Usd | None


def forecasts_of(estimates: Iterable[tuple[str, CostEstimate]]) -> list[Forecast]:
    """Return the cost forecast of each model, then of all models, from pairs of a model id and an estimate."""
    sums = {model_id: sum_of(model_estimates) for model_id, model_estimates in by_key(estimates).items()}
    batch_costs = [
        estimate.cost_uncached_usd if estimate.cost_batch_usd is None else estimate.cost_batch_usd
        for estimate in sums.values()
    ]
    total = replace(sum_of(list(sums.values())), cost_batch_usd=total_or_none(batch_costs))
    return [
        Forecast(
            model_id=model_id,
            calls=estimate.calls,
            direct_usd=estimate.cost_uncached_usd,
            cached_usd=estimate.cost_cached_usd,
            batch_usd=estimate.cost_batch_usd,
        )
        for model_id, estimate in [*sums.items(), (None, total)]
    ]
