"""What a plan's calls cost in each way they can be asked: one by one, with prompt caching, in batches.

Its own module because `plan` keeps it in a file, and the dry run of `evaluate` shows the same.
"""

from collections.abc import Iterable

from pydantic import NonNegativeFloat, NonNegativeInt

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import ModelId
from skill_evaluator.runner.prices import Estimate, sum_of
from skill_evaluator.stats import total_or_none


class Forecast(FrozenModel):
    """What a model's calls cost at most in USD, or those of all models (`model_id` null), in each way of asking.

    A cost is null where no price is known; `batch_usd` also where the model has no batch API. In all, the calls of such
    a model count as asked directly.
    """

    model_id: ModelId | None
    calls: NonNegativeInt
    direct_usd: NonNegativeFloat | None
    cached_usd: NonNegativeFloat | None
    batch_usd: NonNegativeFloat | None


def forecasts_of(estimates: Iterable[tuple[str, Estimate]]) -> list[Forecast]:
    """Return what the calls of each model cost, then those of all; estimates come with the id of their model."""
    of_models: dict[str, list[Estimate]] = {}
    for model_id, estimate in estimates:
        of_models.setdefault(model_id, []).append(estimate)
    sums = {model_id: sum_of(mine) for model_id, mine in of_models.items()}
    in_batches = (
        whole.cost_uncached_usd if whole.cost_batch_usd is None else whole.cost_batch_usd for whole in sums.values()
    )
    in_all = _forecast(None, sum_of(list(sums.values()))).model_copy(update={"batch_usd": total_or_none(in_batches)})
    return [*(_forecast(model_id, whole) for model_id, whole in sums.items()), in_all]


def _forecast(model_id: str | None, estimate: Estimate) -> Forecast:
    return Forecast(
        model_id=model_id,
        calls=estimate.calls,
        direct_usd=estimate.cost_uncached_usd,
        cached_usd=estimate.cost_cached_usd,
        batch_usd=estimate.cost_batch_usd,
    )
