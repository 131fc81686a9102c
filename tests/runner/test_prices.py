"""What tokens cost, what a run would take, and that no guess stands in for an unknown price."""

from dataclasses import replace
from pathlib import Path

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Params, Price
from skill_evaluator.library.prompts import File
from skill_evaluator.providers import PROVIDERS, kinds_of
from skill_evaluator.providers.base import Completion, Usage
from skill_evaluator.runner.prices import (
    InputSize,
    answer_cost,
    answer_price,
    budget_cost,
    estimate,
    not_applicable,
    price_of,
    usage_cost,
)

from tests.support.components import case

OWN = Price(input=2.0, output=8.0)
LISTED = Price(
    input=2.5, output=10.0, cache_read=1.25, cache_write=2.5, cache_write_1h=2.5, batch_cache_read=1.25
)  # what the list has no price of its own for costs what all input does
_OWN_SERVER = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("model", "price"),
    [
        (Model(id="gpt-4o", provider="openai", price=OWN, base_url=_OWN_SERVER), OWN),
        (Model(id="recorded", provider="replay"), Price(input=0, output=0)),
        (Model(id="gpt-4o", provider="openai"), LISTED),
        (Model(id="mine", api_id="gpt-4o", provider="openai"), LISTED),
        (Model(id="gpt-4o", provider="openai", base_url=_OWN_SERVER), None),
        (Model(id="no-such-model", provider="openai"), None),
    ],
    ids=["models.yaml", "free", "listed", "listed by api_id", "own server", "unknown"],
)
def test_price_is_declared_listed_or_unknown(model: Model, price: Price | None) -> None:
    assert price_of(model, PROVIDERS[model.provider]) == price


@pytest.mark.parametrize(
    ("model", "served", "usd"),
    [
        (Model(id="gpt-4o", provider="openai"), None, 2.5),
        (Model(id="gpt-4o", provider="openai"), "gpt-4o-2024-08-06", 2.5),
        (Model(id="gpt-4o", provider="openai"), "gpt-4o-2024-05-13", 5.0),
        (Model(id="gpt-4o", provider="openai"), "gpt-4o-mini", 0.15),
        (Model(id="gpt-4o", provider="openai"), "models/of-nobody", None),
        (Model(id="gpt-4o", provider="openai", price=OWN), "gpt-4o-2024-05-13", 2.0),
        (Model(id="gpt-4o", provider="openai", price=OWN), "gpt-4o-mini", 0.15),
        (Model(id="m", provider="openai", price=OWN, base_url=_OWN_SERVER), "vendor/m-0613", 2.0),
        (Model(id="m", provider="openai", price=OWN, base_url=_OWN_SERVER), "gpt-4o-mini", None),
        (
            Model(id="gpt-4o-mini", api_id="ours", provider="openai", price=OWN, base_url=_OWN_SERVER),
            "gpt-4o-mini",
            2.0,
        ),
        (Model(id="recorded", provider="replay"), "gpt-4o", 0.0),
        (Model(id="program", provider="program", price=OWN), "gpt-5", 2.0),
    ],
)
def test_output_costs_what_its_model_costs(model: Model, served: str | None, usd: float | None) -> None:
    price = answer_price(model, price_of(model, PROVIDERS[model.provider]), served)
    assert (None if price is None else price.input) == usd


@pytest.mark.parametrize(("served", "cost", "counted"), [("gpt-4o", 7.5, 10.0), ("of-nobody", None, 10.0)])
def test_budget_counts_the_higher_price_of_requested_and_served(
    served: str, cost: float | None, counted: float
) -> None:
    model, dear = Model(id="m", provider="openai"), Price(input=2.0, output=16.0)
    completion = Completion(text="", served_model=served, usage=Usage(input_tokens=1_000_000, output_tokens=500_000))
    assert answer_cost(model, dear, completion) == (None if cost is None else pytest.approx(cost))
    assert budget_cost(model, dear, completion) == pytest.approx(counted)
    assert budget_cost(model, OWN, completion) == pytest.approx(6.0 if cost is None else cost)


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        (OWN, (-300, 0), None),
        (OWN, (1_000_000, 0), 2.0),
        (OWN, (500, 250), 0.003),
        (OWN, (None, 250), None),
        (OWN, (500, None), None),
        (None, (500, 250), None),
        (Price(input=0, output=0), (None, None), 0.0),
    ],
)
def test_cost_is_unknown_when_a_part_is_unknown(
    price: Price | None, tokens: tuple[int | None, int | None], cost: float | None
) -> None:
    usage = Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    assert usage_cost(price, usage) == (None if cost is None else pytest.approx(cost))


SIZES = {"a": InputSize(likely=100, maximum=300), "b": InputSize(likely=50, maximum=200)}
PARAMS = Params(max_output_tokens=40)


def model(price: Price | None = None, api_id: str = "of-nobody", provider: str = "openai") -> Model:
    return Model(id="m", provider=provider, api_id=api_id, params=PARAMS, price=price)


def test_run_costs_at_most_its_calls_at_their_upper_bound() -> None:
    made = estimate(SIZES, model(Price(input=10, output=100, cache_write=10)), PROVIDERS["openai"], 3)
    assert (made.calls, made.input_tokens_estimate, made.output_tokens_upper) == (6, 450, 240)
    assert made.cost_upper_usd == pytest.approx(3 * (500 * 10 + 80 * 100) / 1e6)


def image(width: int, height: int) -> File:
    return File(path=Path("a.png"), media_type="image/png", digest="", size=1, width=width, height=height)


# What the vendors counted in October 2026 (huggingface.co/datasets/JOHNISKING, image-token-cost and pdf-token-cost),
# without the tokens of the text beside it.
MEASURED = [
    ("anthropic", "claude-opus-5-5", (256, 256), 100),
    ("anthropic", "claude-opus-5-5", (1024, 1024), 1_369),
    ("anthropic", "claude-opus-5-5", (1920, 1080), 2_691),
    ("openai", "gpt-6-astra", (256, 256), 77),
    ("openai", "gpt-6-astra", (1280, 720), 1_104),
    ("openai", "gpt-6-astra", (4032, 3024), 14_364),
    ("google", "gemini-3.8-flash", (1024, 1024), 1_089),
    ("google", "gemini-2.5-flash", (300, 200), 258),
]


@pytest.mark.parametrize(("provider", "name", "extent", "tokens"), MEASURED)
def test_image_tokens_are_those_its_vendor_counts(
    provider: str, name: str, extent: tuple[int, int], tokens: int
) -> None:
    likely, most = PROVIDERS[provider].file_tokens(Model(id=name, provider=provider), image(*extent))
    assert likely == pytest.approx(tokens, rel=0.04)
    assert most >= tokens


@pytest.mark.parametrize(
    ("provider", "name", "of_page"), [("anthropic", "claude-opus-5-5", 2_347), ("google", "gemini-3.8-flash", 560)]
)
def test_page_tokens_are_those_its_vendor_counts(provider: str, name: str, of_page: int) -> None:
    pdf = replace(image(0, 0), media_type="application/pdf", width=None, height=None, pages=10)
    likely, most = PROVIDERS[provider].file_tokens(Model(id=name, provider=provider), pdf)
    assert likely == pytest.approx(10 * of_page, rel=0.04)
    assert most > likely


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
def test_image_tokens_stay_under_their_bound(provider: str) -> None:
    kind = PROVIDERS[provider]
    for server in (None, "http://127.0.0.1:9"):
        for extra in ({}, {"media_resolution": "ultra_high"}):
            model = Model(id="m", provider=provider, base_url=server, params=Params(**extra))
            for extent in ((1, 1), (1, 9_000), (768, 1_024), (8_000, 8_000)):
                likely, most = kind.file_tokens(model, image(*extent))
                assert 0 < likely <= most


def test_files_are_part_of_the_cost_of_a_case() -> None:
    model = Model(id="m", provider="anthropic", price=OWN, params=Params(max_output_tokens=1))
    kind = PROVIDERS["anthropic"]
    plain, shown = (
        estimate({"a": InputSize(likely=10, maximum=20, files=files)}, model, kind, 1)
        for files in ((), (image(280, 280),))
    )
    assert shown.input_tokens_estimate - plain.input_tokens_estimate == 100
    assert shown.cost_upper_usd is not None
    assert shown.cost_upper_usd > (plain.cost_upper_usd or 0)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Model(id="m", provider="anthropic"), {}),
        (Model(id="m", provider="google", accepts=("image",)), {}),
        (Model(id="m", provider="openai"), {}),
        (Model(id="m", provider="openai", accepts=("pdf",)), {"a": "image: not in accepts of models.yaml"}),
        (
            Model(id="m", provider="openai", base_url=_OWN_SERVER),
            {"a": "image: not in accepts of models.yaml"},
        ),
        (Model(id="m", provider="openai", base_url=_OWN_SERVER, accepts=("image",)), {}),
        (Model(id="m", provider="local"), {"a": "image: not in accepts of models.yaml"}),
        (Model(id="m", provider="replay"), {}),
    ],
)
def test_case_with_a_file_applies_to_models_that_accept_it(model: Model, reason: dict[str, str]) -> None:
    sizes = {"a": InputSize(likely=1, maximum=1, files=(image(3, 2),)), "b": InputSize(likely=1, maximum=1)}
    assert not_applicable([case("a"), case("b")], sizes, model, PROVIDERS[model.provider]) == reason


def test_text_only_provider_gets_no_files() -> None:
    with pytest.raises(ConfigError, match=r"models\[0\].accepts in here: provider 'local' accepts only text"):
        kinds_of([Model(id="m", provider="local", accepts=("image",))], "here")
