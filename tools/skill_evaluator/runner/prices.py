"""What a model's tokens cost: from models.yaml, else from the price library, else nobody knows."""

import functools

from skill_evaluator.config import Model, Price
from skill_evaluator.providers.base import ProviderKind, Usage

_PER_MILLION = 1_000_000
_SAMPLE = 1_000  # tokens; far below where any vendor's long-context tier begins


def price_of(model: Model, kind: ProviderKind) -> Price | None:
    """USD per million tokens, or None when unknown. A local or replayed model costs nothing."""
    if model.price is not None:
        return model.price
    if kind.free:
        return Price(input=0.0, output=0.0)
    if model.base_url is not None:
        return None  # somebody's own server: the vendor's list price says nothing
    return _listed(model.provider, model.api_name)


@functools.cache  # a plan asks for every component anew
def _listed(provider: str, api_name: str) -> Price | None:
    import genai_prices  # 0.1 s; only needed for a model without a price in models.yaml

    try:
        found = [
            genai_prices.calc_price(usage, api_name, provider_id=provider).total_price
            for usage in (genai_prices.Usage(input_tokens=_SAMPLE), genai_prices.Usage(output_tokens=_SAMPLE))
        ]
    except LookupError:
        return None
    scale = _PER_MILLION / _SAMPLE
    return Price(input=float(found[0]) * scale, output=float(found[1]) * scale)


def cost_usd(price: Price | None, input_tokens: int | None, output_tokens: int | None) -> float | None:
    """Cost of one call in USD; None when price or a count is unknown (a price of zero needs no count)."""
    if price is None:
        return None
    if price.input == price.output == 0:
        return 0.0
    if input_tokens is None or output_tokens is None:
        return None
    return (input_tokens * price.input + output_tokens * price.output) / _PER_MILLION


def usage_cost(price: Price | None, usage: Usage) -> float | None:
    """Cost of what a vendor counted."""
    return cost_usd(price, usage.input_tokens, usage.output_tokens)
