"""What a run would take, before any call: calls, tokens and the most it can cost. For dry runs and plans."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skill_evaluator.components import Component
from skill_evaluator.config import Model
from skill_evaluator.fixtures import Case
from skill_evaluator.prompting import build_request, estimate_input_tokens, most_input_tokens
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.runner.prices import cost_usd, price_of
from skill_evaluator.stats import total_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSize:
    """Input tokens of one case: as many as are likely, and an upper bound."""

    likely: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one model's run would take; `cost_upper_usd` is None when no price is known."""

    calls: int
    input_tokens_estimate: int
    output_tokens_upper: int
    cost_upper_usd: float | None


def input_sizes(component: Component, cases: Iterable[Case]) -> dict[str, InputSize]:
    """By case, the size of its request; the same for every model and replicate."""
    sizes = {}
    for case in cases:
        request = build_request(component, case, replicate=0, seed=0, max_output_tokens=1)
        sizes[case.id] = InputSize(likely=estimate_input_tokens(request), most=most_input_tokens(request))
    return sizes


def estimate(sizes: Mapping[str, InputSize], model: Model, kind: ProviderKind, replicates: int) -> Estimate:
    """What a model's run on cases of these sizes would take."""
    price, limit = price_of(model, kind), model.params.max_output_tokens
    cost = total_or_none(cost_usd(price, size.most, limit) for size in sizes.values())
    return Estimate(
        calls=len(sizes) * replicates,
        input_tokens_estimate=sum(size.likely for size in sizes.values()) * replicates,
        output_tokens_upper=len(sizes) * replicates * limit,
        cost_upper_usd=None if cost is None else cost * replicates,
    )
