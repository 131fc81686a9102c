"""Prices of a model's tokens, and estimates of a run's tokens and cost before any call.

A price comes from models.yaml, else from the price library, else it is unknown. Missing prices of caches and batches
are replaced by upper bounds, so that no cost is too low.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from pydantic import NonNegativeInt

from skill_evaluator.display import cost_words
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import ModelId, Usd
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, Price
from skill_evaluator.library.prompts import File
from skill_evaluator.providers import Kinds, why_unbatched
from skill_evaluator.providers.base import LOST, Completion, ProviderKind, Usage
from skill_evaluator.records.record import parts_of
from skill_evaluator.runner.schedule import (
    Replicate,
    build_request,
    estimate_input_tokens,
    max_input_tokens,
    min_input_tokens,
)
from skill_evaluator.stats import by_key, total_or_none

AMOUNTS = ("calls", "input tokens (estimate)", "output tokens (at most)", "cost (at most)")
_PER_MILLION = 1_000_000
_SAMPLE = 1_000  # tokens; far below any vendor's long-context tier
_BATCH_SHARE = 0.5  # of the direct price, at every vendor
_MAX_WRITE_SHARE, _MAX_WRITE_1H_SHARE = 1.25, 2.0  # of the input price; the highest of any vendor
Priced = tuple[Model, Price | None]  # a model with its price


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSize:
    """The input tokens of one case without its files: an estimate, and bounds."""

    likely: int
    most: int
    least: int = 0
    files: tuple[File, ...] = ()

    def of_model(self, model: Model, kind: ProviderKind) -> "InputSize":
        """Return the size for a model, including its files by the vendor's token rule."""
        tokens = [kind.file_tokens(model, file) for file in self.files]
        likely_file_tokens, max_file_tokens = (sum(each[bound] for each in tokens) for bound in (0, 1))
        return InputSize(likely=self.likely + likely_file_tokens, most=self.most + max_file_tokens, least=self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated size of one model's run; a cost is None if the price is unknown.

    `cost_upper_usd` is an upper bound for any cache behaviour. The other costs are upper bounds without a cache, with a
    cache that all replicates but the first read, and in batches (None if the vendor has no batch API).
    """

    calls: int
    input_tokens_estimate: int
    output_tokens_upper: int
    cost_upper_usd: float | None
    cost_uncached_usd: float | None = None
    cost_cached_usd: float | None = None
    cost_batch_usd: float | None = None

    @property
    def amounts(self) -> tuple[str, ...]:
        """The texts of the table columns AMOUNTS."""
        counts = (self.calls, self.input_tokens_estimate, self.output_tokens_upper)
        return (*(f"{count:,}" for count in counts), cost_words(self.cost_upper_usd, digits=2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEstimate(Estimate):
    """The estimate of one model's calls, and a note on its key."""

    model_id: str
    provider: str
    key: str


def input_sizes(component: Component, cases: Iterable[Case]) -> dict[str, InputSize]:
    """Measure the request of each case. It is the same for every replicate and, except for files, for every model."""
    sizes = {}
    for case in cases:
        request = build_request(component, case, replicate=0, seed=0, max_output_tokens=1)
        sizes[case.id] = InputSize(
            likely=estimate_input_tokens(request),
            most=max_input_tokens(request),
            least=min_input_tokens(request),
            files=request.files,
        )
    return sizes


def not_applicable(
    cases: Iterable[Case], sizes: Mapping[str, InputSize], model: Model, kind: ProviderKind
) -> dict[str, str]:
    """Return the reasons why a model is not called for cases, by case id.

    The case excludes the model, has a file that the model does not accept, or certainly exceeds the model's context.
    """
    context = context_of(model, kind)
    accepted = kind.accepted_by(model)
    reasons = {}
    for case in cases:
        least = sizes[case.id].least
        if any(fnmatchcase(model.id, pattern) for pattern in case.not_applicable):
            reasons[case.id] = "declared"
        elif unread := sorted({file.kind for file in sizes[case.id].files}.difference(accepted)):
            reasons[case.id] = f"{' and '.join(unread)}: not in accepts of models.yaml"
        elif context is not None and least > context:
            reasons[case.id] = f"at least {least:,} tokens, over its context of {context:,}"
    return reasons


def estimate(
    sizes: Mapping[str, InputSize], model: Model, kind: ProviderKind, replicates: int, *, batch: bool = False
) -> Estimate:
    """Estimate a model's run on cases of these sizes."""
    price, limit = price_of(model, kind), model.params.max_output_tokens
    cache_floor = kind.cache_floor_of(model)
    sizes = {case_id: size.of_model(model, kind) for case_id, size in sizes.items()}
    cost = total_or_none(worst_case_cost(price, size.most, limit, batch=batch) for size in sizes.values())
    return Estimate(
        calls=len(sizes) * replicates,
        input_tokens_estimate=sum(size.likely for size in sizes.values()) * replicates,
        output_tokens_upper=len(sizes) * replicates * limit,
        cost_upper_usd=None if cost is None else cost * replicates,
        cost_uncached_usd=total_or_none(_case_cost(price, size, limit, replicates) for size in sizes.values()),
        cost_cached_usd=total_or_none(
            _case_cost(price, size, limit, replicates, cache_floor) for size in sizes.values()
        ),
        cost_batch_usd=None
        if why_unbatched(model)
        else total_or_none(_case_cost(price, size, limit, replicates, batch=True) for size in sizes.values()),
    )


def _case_cost(
    price: Price | None,
    size: InputSize,
    limit: int,
    replicates: int,
    cache_floor: int | None = None,
    *,
    batch: bool = False,
) -> float | None:
    """Return the maximum cost of a case's replicates, if all but the first read the cache when possible."""
    plain = Usage(input_tokens=size.most, output_tokens=limit, batch=batch)
    is_cached = cache_floor is not None and replicates > 1 and size.likely >= cache_floor
    first = usage_cost(price, replace(plain, cache_write_tokens=size.most) if is_cached else plain)
    repeated = usage_cost(price, replace(plain, cache_read_tokens=size.most) if is_cached else plain)
    return None if first is None or repeated is None else first + (replicates - 1) * repeated


def sum_of(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate of several runs together."""
    return Estimate(
        calls=sum(one.calls for one in estimates),
        input_tokens_estimate=sum(one.input_tokens_estimate for one in estimates),
        output_tokens_upper=sum(one.output_tokens_upper for one in estimates),
        cost_upper_usd=total_or_none(one.cost_upper_usd for one in estimates),
        cost_uncached_usd=total_or_none(one.cost_uncached_usd for one in estimates),
        cost_cached_usd=total_or_none(one.cost_cached_usd for one in estimates),
        cost_batch_usd=total_or_none(one.cost_batch_usd for one in estimates),
    )


def price_of(model: Model, kind: ProviderKind) -> Price | None:
    """Return the price in USD per million tokens. Return None if it is unknown.

    A local or replayed model costs nothing. Cache prices missing from models.yaml are scaled from the price library by
    the ratio of the input prices.
    """
    declared = model.price
    if kind.free:
        return declared or Price(input=0.0, output=0.0)
    if not model.is_direct:
        return declared  # the vendor's list price does not apply to other servers
    if declared is not None and declared.cache_read is not None and declared.cache_write is not None:
        return declared
    listed = _listed_price(model.provider, model.api_name)
    if declared is None or listed is None or not listed.input:
        return declared or listed
    cache_prices = listed.model_dump(exclude={"input", "output"})
    scaled = {name: usd * declared.input / listed.input for name, usd in cache_prices.items()}
    return declared.model_copy(update={**scaled, **declared.model_dump(exclude_none=True)})


def answer_price(model: Model, price: Price | None, served: str | None) -> Price | None:
    """Return the price of the served model: `price` if it is the requested model, else the listed price, or None."""
    is_free = price is not None and _is_free(price)
    base, release = parts_of(served or model.id)
    is_requested = base in (parts_of(model.api_name)[0], parts_of(model.id)[0])
    if not served or is_free or model.provider == "program" or (is_requested and (model.price or not model.is_direct)):
        return price
    listed = _listed_price(model.provider, base + release) if model.is_direct else None
    return listed or (price if is_requested else None)


def answer_cost(model: Model, price: Price | None, completion: Completion) -> float | None:
    """Return the cost of an output, by the price of the served model."""
    return usage_cost(answer_price(model, price, completion.served_model), completion.usage)


def call_cost(model: Model, price: Price | None, replicate: Replicate) -> float | None:
    """Return the cost of a call: 0 if it failed, None if a batch lost it, since it may be billed."""
    if replicate.completion is not None:
        return answer_cost(model, price, replicate.completion)
    return usage_cost(price, Usage()) if replicate.error is not None and replicate.error.reason == LOST else 0.0


def highest_cost(model: Model, price: Price | None, completion: Completion) -> float | None:
    """Return the cost of an output for a budget: the higher of the requested and the served model's."""
    costs = (usage_cost(price, completion.usage), answer_cost(model, price, completion))
    return max((cost for cost in costs if cost is not None), default=None)


@functools.cache  # a plan looks it up for every component
def _listed_price(provider: str, api_name: str) -> Price | None:
    import genai_prices  # takes 0.1 s, and is needed only for prices that models.yaml lacks

    def usd(processing: str = "", **counts: int) -> float:
        usage = genai_prices.Usage(**counts)
        context = {"processing": processing} if processing else None
        price = genai_prices.calc_price(usage, api_name, provider_id=provider, price_context=context)
        return float(price.total_price * _PER_MILLION / _SAMPLE)

    try:
        return Price(
            input=usd(input_tokens=_SAMPLE),
            output=usd(output_tokens=_SAMPLE),
            cache_read=usd(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
            cache_write=usd(input_tokens=_SAMPLE, cache_write_tokens=_SAMPLE),
            cache_write_1h=usd(input_tokens=_SAMPLE, cache_write_tokens=_SAMPLE, cache_write_1h_tokens=_SAMPLE),
            batch_cache_read=usd("batch", input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
        )
    except LookupError:
        return None


def context_of(model: Model, kind: ProviderKind) -> int | None:
    """Return a model's context length in tokens: its limit, else the price library's value, else None."""
    if model.limits.context_tokens is not None or not model.is_direct or model.price is not None:
        return model.limits.context_tokens
    if kind.context_tokens is not None:
        return kind.context_tokens(model)
    return None if kind.free else _listed_context(model.provider, model.api_name)


@functools.cache
def _listed_context(provider: str, api_name: str) -> int | None:
    from genai_prices import data_snapshot

    try:
        _, listed = data_snapshot.get_snapshot().find_provider_model(api_name, None, provider, None)
    except LookupError:
        return None
    return listed.context_window


def usage_cost(price: Price | None, usage: Usage) -> float | None:
    """Return the cost of one call in USD, ≥ 0. Return None if the price, a count or their product is unknown.

    A price of zero requires no count. Input without cache counts costs the input price, and so does a cache read
    without a price; a cache write without a price costs the highest share of any vendor.
    """
    if price is None:
        return None
    if _is_free(price):
        return 0.0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    written_1h = usage.cache_write_1h_tokens or 0
    cost = (usage.input_tokens - read - written) * price.input + usage.output_tokens * price.output
    cost += (written - written_1h) * _price_or(price.cache_write, _MAX_WRITE_SHARE * price.input)
    cost += written_1h * _price_or(price.cache_write_1h, _MAX_WRITE_1H_SHARE * price.input)
    read_price = _price_or(price.cache_read, price.input)
    if usage.batch:
        cost, read_price = cost * _BATCH_SHARE, _price_or(price.batch_cache_read, read_price)
    cost = (cost + read * read_price) / _PER_MILLION
    return cost if 0 <= cost < math.inf else None


def _is_free(price: Price) -> bool:
    return not (price.input or price.output or any(usd for _, usd in price))  # the slow part comes last


def hit_rate(usages: Sequence[Usage]) -> float | None:
    """Return the share of input tokens read from a prompt cache, or None if any count is missing.

    >>> hit_rate([Usage(input_tokens=100, cache_read_tokens=80), Usage(input_tokens=100, cache_read_tokens=0)])
    0.4
    """
    input_tokens, cached_tokens = (
        total_or_none(getattr(usage, count) for usage in usages) for count in ("input_tokens", "cache_read_tokens")
    )
    return None if cached_tokens is None or not input_tokens else round(cached_tokens / input_tokens, 4)


def _price_or(price: float | None, default: float) -> float:
    return default if price is None else price


def worst_case_cost(price: Price | None, input_tokens: int, output_tokens: int, *, batch: bool = False) -> float | None:
    """Return the maximum cost of a call with these tokens, whether its input is uncached, read or written."""
    read, written = {"cache_read_tokens": input_tokens}, {"cache_write_tokens": input_tokens}
    usages = [
        Usage(input_tokens=input_tokens, output_tokens=output_tokens, batch=batch, **part)
        for part in ({}, read, written)
    ]
    costs = [cost for usage in usages if (cost := usage_cost(price, usage)) is not None]
    return max(costs, default=None)


def refuse_unpriced(models: Sequence[Model], kinds: Kinds) -> None:
    """Raise ConfigError for a model without a price, since a cost limit cannot apply to it."""
    for model in models:
        if price_of(model, kinds[model.provider]) is None:
            raise ConfigError(f"--max-cost requires a price for '{model.id}': price: {{input, output}} in models.yaml")


COST_OF_BATCHES = "the costs are those of batches, half of what they are without --batch; answers come within a day"


class Forecast(FrozenModel):
    """The maximum cost of a model's calls, or of all models (`model_id` null), by kind of call.

    A cost is null if a price is unknown; `batch_usd` also if the model has no batch API. In the total, such a model
    counts with its direct calls.
    """

    model_id: ModelId | None
    calls: NonNegativeInt
    direct_usd: Usd | None
    cached_usd: Usd | None
    batch_usd: Usd | None


def forecasts_of(estimates: Iterable[tuple[str, Estimate]]) -> list[Forecast]:
    """Return the cost forecast of each model, then of all models together."""
    sums = {model_id: sum_of(model_estimates) for model_id, model_estimates in by_key(estimates).items()}
    batch_costs = (
        whole.cost_uncached_usd if whole.cost_batch_usd is None else whole.cost_batch_usd for whole in sums.values()
    )
    overall = _forecast(None, sum_of(list(sums.values()))).model_copy(update={"batch_usd": total_or_none(batch_costs)})
    return [*(_forecast(model_id, whole) for model_id, whole in sums.items()), overall]


def _forecast(model_id: str | None, estimate: Estimate) -> Forecast:
    return Forecast(
        model_id=model_id,
        calls=estimate.calls,
        direct_usd=estimate.cost_uncached_usd,
        cached_usd=estimate.cost_cached_usd,
        batch_usd=estimate.cost_batch_usd,
    )
