"""What a model's tokens cost, and that nobody's guess stands in for an unknown price."""

from pathlib import Path

import pytest
from skill_evaluator.library.config import Model, Price, load_models
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner.prices import cost_usd, price_of

from tests.support.library import ROOT

OWN = Price(input=2.0, output=8.0)
_OWN_SERVER = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("model", "price"),
    [
        (Model(id="gpt-4o", provider="openai", price=OWN), OWN),
        (Model(id="recorded", provider="replay"), Price(input=0, output=0)),
        (Model(id="gpt-4o", provider="openai"), Price(input=2.5, output=10.0)),
        (Model(id="mine", api_id="gpt-4o", provider="openai"), Price(input=2.5, output=10.0)),
        (Model(id="gpt-4o", provider="openai", base_url=_OWN_SERVER), None),
        (Model(id="no-such-model", provider="openai"), None),
    ],
    ids=["models.yaml", "free", "listed", "listed by api_id", "own server", "unknown"],
)
def test_a_price_is_the_users_else_the_listed_else_unknown(model: Model, price: Price | None) -> None:
    assert price_of(model, PROVIDERS[model.provider]) == price


@pytest.mark.parametrize("model", load_models(Path(ROOT, ".evaluator")), ids=lambda model: model.id)
def test_the_prices_shipped_are_those_of_the_price_library(model: Model) -> None:
    assert price_of(model.model_copy(update={"price": None}), PROVIDERS[model.provider]) == (
        model.price or Price(input=0, output=0)
    )


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        (OWN, (1_000_000, 0), 2.0),
        (OWN, (500, 250), 0.003),
        (OWN, (None, 250), None),
        (OWN, (500, None), None),
        (None, (500, 250), None),
        (Price(input=0, output=0), (None, None), 0.0),
    ],
)
def test_a_cost_is_known_only_when_all_it_needs_is(
    price: Price | None, tokens: tuple[int | None, int | None], cost: float | None
) -> None:
    assert cost_usd(price, *tokens) == (None if cost is None else pytest.approx(cost))
