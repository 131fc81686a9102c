"""What a run would take: sizes by case, bounds by model, and no cost where nobody knows a price."""

from pathlib import Path

import pytest
from skill_evaluator.library.config import Model, Params, Price
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner.prices import InputSize, estimate, input_sizes

from tests.support.components import case, component

SIZES = {"a": InputSize(likely=100, most=300), "b": InputSize(likely=50, most=200)}
PARAMS = Params(max_output_tokens=40)


def model(price: Price | None = None, api_id: str = "of-nobody", provider: str = "openai") -> Model:
    return Model(id="m", provider=provider, api_id=api_id, params=PARAMS, price=price)


def test_a_run_is_as_many_calls_as_cases_times_replicates_each_at_its_most() -> None:
    made = estimate(SIZES, model(Price(input=10, output=100)), PROVIDERS["openai"], 3)
    assert (made.calls, made.input_tokens_estimate, made.output_tokens_upper) == (6, 450, 240)
    assert made.cost_upper_usd == pytest.approx(3 * (500 * 10 + 80 * 100) / 1e6)


def test_a_price_may_be_listed_or_unknown_or_nothing() -> None:
    unknown = estimate(SIZES, model(), PROVIDERS["openai"], 3)
    listed = estimate(SIZES, model(api_id="gpt-5"), PROVIDERS["openai"], 3)
    free = estimate(SIZES, model(provider="replay"), PROVIDERS["replay"], 3)
    assert unknown.cost_upper_usd is None
    assert listed.cost_upper_usd is not None
    assert listed.cost_upper_usd > 0
    assert free.cost_upper_usd == 0


def test_the_size_of_a_case_grows_with_its_document(tmp_path: Path) -> None:
    small, large = case("small"), case("large")
    sizes = input_sizes(component(tmp_path), [small, large])
    assert sizes.keys() == {"small", "large"}
    assert all(size.likely <= size.most for size in sizes.values())
