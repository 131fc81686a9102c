"""The cap on a month as commands hold it: what was spent so far, and what it leaves to those that stop where it ends.

Its own module because every command that asks a model needs it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from skill_evaluator.commands.options import AUDITS, JUDGEMENTS
from skill_evaluator.library.config import Model, Settings, load_models
from skill_evaluator.providers import Kinds, kinds_of
from skill_evaluator.repository import Repository
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.spending import Journals, Month, month_so_far


def month_of(
    settings: Settings,
    config: Path,
    components: Path,
    *,
    results: Path | None = None,
    own: Path | None = None,
    repository: Repository | None = None,
    refs: Sequence[str] = (),
) -> Month | None:
    """Return what the month's runs cost so far, those in the folder `own` left out; None without a cap on it."""
    cap = settings.budget.month_usd
    if cap is None:
        return None
    models = load_models(config, settings.limits)
    kinds = kinds_of(models, str(config / "models.yaml"))
    journals = Journals(
        folders=[components.parent / AUDITS, components.parent / JUDGEMENTS],
        prices={model.id: (model, price_of(model, kinds[model.provider])) for model in models},
        own=own,
    )
    return month_so_far(cap, components, journals, results, repository, refs)


def max_cost_in_month(
    max_cost: float | None,
    settings: Settings,
    models: Iterable[Model],
    kinds: Kinds,
    *,
    config: Path,
    components: Path,
    own: Path,
) -> float | None:
    """Return the lower of --max-cost and of what the month's cap leaves to what is asked in the folder `own`.

    Raise ConfigError where it leaves nothing, or cannot be kept since a model has no price.
    """
    month = month_of(settings, config, components, own=own)
    if month is None:
        return max_cost
    return month.leaves({model.id: price_of(model, kinds[model.provider]) for model in models}, max_cost)
