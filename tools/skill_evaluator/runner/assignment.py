"""A run with all that is needed to make its calls: its key, its price, and who makes requests and takes outcomes."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Price
from skill_evaluator.providers import Keys, Kinds, find_key, lack_of
from skill_evaluator.providers.base import ProviderKind, Request
from skill_evaluator.runner.engine import OnOutcome
from skill_evaluator.runner.journal import Looks
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.runs import Run
from skill_evaluator.runner.schedule import Call, calls_in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One run with all that is needed to make its calls. `on_outcome` gets every outcome once, earlier ones too.

    `look` is called in a thread, after each number of replicates in `looks`. `answered_before`: the model is on record.
    """

    run: Run
    kind: ProviderKind
    key: str | None
    price: Price | None
    concurrency: int
    request_for: Callable[[Call], Request]
    on_outcome: OnOutcome
    looks: Sequence[int] = ()
    look: Callable[[int], Looks] | None = None
    answered_before: bool = False


def with_keys(models: Iterable[Model], kinds: Kinds, keys: Keys) -> dict[str, Model]:
    """Return by id the models whose keys are there; warn of each other one, and raise ConfigError when none is left."""
    usable: dict[str, Model] = {}
    for model in {model.id: model for model in models}.values():
        lack = lack_of(model, kinds[model.provider], keys)
        if lack is None:
            usable[model.id] = model
        else:
            print(f"warning: skipping {model.id}: {lack}", file=sys.stderr)
    if not usable:
        raise ConfigError(
            "no model is left to run; set what is named above, or give --model one of models.yaml that needs none"
        )
    return usable


def assignment(
    run: Run,
    kinds: Kinds,
    keys: Keys,
    concurrency: int,
    request_for: Callable[[Call], Request],
    on_outcome: OnOutcome,
) -> Assignment:
    """Give a run its key, its price, and as many calls in flight as `concurrency` and its model allow."""
    model, kind = run.model, kinds[run.model.provider]
    return Assignment(
        run=run,
        kind=kind,
        key=find_key(model, kind, keys),
        price=price_of(model, kind),
        concurrency=calls_in_flight(model, kind, concurrency),
        request_for=request_for,
        on_outcome=on_outcome,
    )
