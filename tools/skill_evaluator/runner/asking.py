"""What every command checks and puts together before models are asked: keys, amounts, prices, and what is redacted."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model
from skill_evaluator.providers import Kinds, Redactor, find_key, key_variables
from skill_evaluator.providers.base import ProviderKind, Request
from skill_evaluator.runner.execute import Assignment
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.prompting import most_input_tokens
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Call, Replicate


def with_keys(models: Iterable[Model], kinds: Kinds) -> dict[str, Model]:
    """Return by id the models whose keys are there; warn of each other one, and raise ConfigError when none is left."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        variables = key_variables(model, kinds[model.provider])
        if variables and find_key(model, kinds[model.provider]) is None:
            print(f"warning: skipping {model.id}: {' or '.join(variables)} is not set", file=sys.stderr)
        else:
            usable[model.id] = model
    if not usable:
        raise ConfigError(
            "no model is left to run; set a key named above, or add --model smollm2-135m-instruct (needs no key)"
        )
    return usable


def assignment(
    run: Run,
    kinds: Mapping[str, ProviderKind],
    concurrency: int,
    request_for: Callable[[Call], Request],
    on_outcome: Callable[[Replicate], None],
) -> Assignment:
    """Give a run its key, its price, and as many calls in flight as `concurrency` and its model allow."""
    model, kind = run.model, kinds[run.model.provider]
    return Assignment(
        run=run,
        kind=kind,
        key=find_key(model, kind),
        price=price_of(model, kind),
        concurrency=1 if kind.one_at_a_time else min(concurrency, model.limits.max_concurrency or concurrency),
        request_for=request_for,
        most_input_tokens=most_input_tokens,
        on_outcome=on_outcome,
    )


def redactor(models: Iterable[Model], kinds: Kinds) -> Redactor:
    """Return what strikes out every key that these models' providers may have been given."""
    variables = {name for kind in kinds.values() for name in kind.key_variables}
    return Redactor(variables | {model.api_key_env for model in models if model.api_key_env})


def refuse_amounts(counts: Mapping[str, int | None], max_calls: int | None, max_cost: float | None) -> None:
    """Raise ConfigError for a count (by its flag) below 1, or a limit that is no amount."""
    for flag, count in counts.items():
        if count is not None and count < 1:
            raise ConfigError(f"{flag} must be at least 1, not {count}")
    if max_calls is not None and max_calls < 0:
        raise ConfigError(f"--max-calls must not be negative: {max_calls}")
    if max_cost is not None and not max_cost >= 0:  # not a number compares false
        raise ConfigError(f"--max-cost must be an amount in USD, not {max_cost}")


def refuse_unpriced(models: Sequence[Model], kinds: Kinds) -> None:
    """Raise ConfigError for a model without a price: a cap on the cost could not be kept for it."""
    for model in models:
        if price_of(model, kinds[model.provider]) is None:
            raise ConfigError(
                f"--max-cost cannot be kept: no price is known for '{model.id}'; "
                "give it price: {input, output} in models.yaml, or leave it out with --model"
            )
