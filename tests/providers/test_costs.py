"""A call costs what the vendor's price list says of the tokens it counted, and no count of a server lowers that.

Bodies as each vendor sends them go through its real SDK. The expected cost is worked out from the list by hand.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.library.config import Model, Price
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Usage
from skill_evaluator.runner.prices import most_cost, price_of, usage_cost

from tests.support.vendor_dialects import DIALECTS, PLAIN, Answer
from tests.support.vendor_server import Body, VendorServer
from tests.support.vendors import ask, entry


def of_openai(given: int, written: int, **details: int) -> dict[str, Any]:
    counts = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
    return {"usage": {**counts, **({"prompt_tokens_details": details} if details else {})}}


def of_anthropic(rest: int, written: int, read: int = 0, stored: int = 0, hour: int = 0) -> dict[str, Any]:
    kept = {"ephemeral_5m_input_tokens": stored - hour, "ephemeral_1h_input_tokens": hour}
    counts = {"cache_read_input_tokens": read, "cache_creation_input_tokens": stored, "cache_creation": kept}
    return {"usage": {"input_tokens": rest, "output_tokens": written, "service_tier": "standard", **counts}}


def of_google(given: int, written: int, thought: int = 0, cached: int = 0) -> dict[str, Any]:
    counts = {"promptTokenCount": given, "candidatesTokenCount": written, "totalTokenCount": given + written + thought}
    parts = {"thoughtsTokenCount": thought, "cachedContentTokenCount": cached}
    return {"usageMetadata": counts | {name: count for name, count in parts.items() if count}}


# fmt: off
LIST = [
    # vendor, model, what it counts                        batch   USD for a million calls
    ("openai", "gpt-5", of_openai(5_000, 400),              False, 5_000 * 1.25 + 400 * 10),
    ("openai", "gpt-5", of_openai(5_000, 400, cached_tokens=0), False, 5_000 * 1.25 + 400 * 10),
    ("openai", "gpt-5", of_openai(5_000, 400, cached_tokens=4_864), False, 136 * 1.25 + 4_864 * 0.125 + 400 * 10),
    ("openai", "gpt-5", of_openai(5_000, 400),              True,  5_000 * 0.625 + 400 * 5),
    ("openai", "gpt-5", of_openai(5_000, 400, cached_tokens=4_864), True, 136 * 0.625 + 4_864 * 0.0625 + 400 * 5),
    ("openai", "gpt-4.1", of_openai(5_000, 400, cached_tokens=4_864), True, 136 * 1 + 4_864 * 0.5 + 400 * 4),
    ("openai", "gpt-5.6-sol", of_openai(5_000, 400, cached_tokens=0, cache_write_tokens=4_864), False,
     136 * 4 + 4_864 * 5 + 400 * 20),
    ("openai", "gpt-5.6-sol", of_openai(5_000, 400, cached_tokens=4_864, cache_write_tokens=0), True,
     136 * 2 + 4_864 * 0.2 + 400 * 10),
    ("anthropic", "claude-sonnet-4-6", of_anthropic(5_000, 400), False, 5_000 * 3 + 400 * 15),
    ("anthropic", "claude-sonnet-4-6", of_anthropic(1_000, 500, read=8_000, stored=1_000), False,
     1_000 * 3 + 8_000 * 0.3 + 1_000 * 3.75 + 500 * 15),
    ("anthropic", "claude-opus-4-7", of_anthropic(3, 400, stored=5_000), False, 3 * 5 + 5_000 * 6.25 + 400 * 25),
    ("anthropic", "claude-opus-4-7", of_anthropic(3, 400, stored=5_000, hour=4_000), False,
     3 * 5 + 1_000 * 6.25 + 4_000 * 10 + 400 * 25),
    ("anthropic", "claude-opus-4-7", of_anthropic(3, 400, read=5_000), False, 3 * 5 + 5_000 * 0.5 + 400 * 25),
    ("anthropic", "claude-opus-4-7", of_anthropic(3, 400, read=5_000), True, 3 * 2.5 + 5_000 * 0.25 + 400 * 12.5),
    ("anthropic", "claude-opus-4-7", of_anthropic(3, 400, stored=5_000, hour=5_000), True,
     3 * 2.5 + 5_000 * 5 + 400 * 12.5),
    ("google", "gemini-2.5-pro", of_google(5_000, 400, thought=100), False, 5_000 * 1.25 + 500 * 10),
    ("google", "gemini-2.5-pro", of_google(5_000, 400, thought=100, cached=4_000), False,
     1_000 * 1.25 + 4_000 * 0.125 + 500 * 10),
    ("google", "gemini-2.5-pro", of_google(5_000, 400, cached=4_000), True,  # a read in a batch has no discount
     1_000 * 0.625 + 4_000 * 0.125 + 400 * 5),
]
# fmt: on


@pytest.mark.parametrize(("vendor", "name", "counts", "batch", "usd"), LIST)
def test_a_call_costs_what_the_list_says(
    vendor: str, name: str, counts: dict[str, Any], batch: bool, usd: float, server: VendorServer
) -> None:
    body, _ = DIALECTS[vendor].answer(Answer())
    server.enqueue(Body({**body, **counts}))
    counted = ask(entry(vendor, server.url)).usage
    billed = Usage(**{part: getattr(counted, part) for part in counted.__slots__} | {"batch": batch})
    price = price_of(Model(id=name, provider=vendor), PROVIDERS[vendor])
    assert usage_cost(price, billed) == pytest.approx(usd / 1e6, rel=1e-12)


@pytest.mark.parametrize(
    ("own", "read", "written", "hour", "batch_read"),
    [
        (Price(input=3.0, output=15.0), 0.3, 3.75, 6.0, 0.15),
        (Price(input=6.0, output=20.0), 0.6, 7.5, 12.0, 0.3),
        (Price(input=3.0, output=15.0, cache_write=0.0), 0.3, 0.0, 6.0, 0.15),
    ],
    ids=["as listed", "twice the list", "its own"],
)
def test_cache_prices_that_models_yaml_leaves_out_keep_the_lists_proportion(
    own: Price, read: float, written: float, hour: float, batch_read: float
) -> None:
    price = price_of(Model(id="claude-sonnet-4-6", provider="anthropic", price=own), PROVIDERS["anthropic"])
    assert price is not None
    assert (price.input, price.output) == (own.input, own.output)
    prices = (price.cache_read, price.cache_write, price.cache_write_1h, price.batch_cache_read)
    assert prices == pytest.approx((read, written, hour, batch_read))


def test_where_nobody_says_a_price_no_cost_is_too_low() -> None:
    price = Price(input=4.0, output=8.0)
    whole = {"input_tokens": 1_000_000, "output_tokens": 0}
    assert usage_cost(price, Usage(**whole, cache_read_tokens=1_000_000)) == 4.0
    assert usage_cost(price, Usage(**whole, cache_write_tokens=1_000_000)) == 5.0
    assert usage_cost(price, Usage(**whole, cache_write_tokens=1_000_000, cache_write_1h_tokens=1_000_000)) == 8.0
    assert usage_cost(price, Usage(**whole, cache_read_tokens=1_000_000, batch=True)) == 4.0
    assert usage_cost(price, Usage(**whole, batch=True)) == 2.0


PARTS = ("cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens")
usd = st.floats(0, 100)
prices = st.builds(
    Price,
    input=usd,
    output=usd,
    **{name: st.none() | usd for name in ("cache_read", "cache_write", "batch_cache_read")},
)
said = st.none() | st.integers(-5, 3_000) | st.sampled_from([True, 1.5, "7", 10**15])


@given(
    prices, st.integers(0, 2_000), st.integers(0, 500), st.fixed_dictionaries(dict.fromkeys(PARTS, said)), st.booleans()
)
@example(Price(input=3, output=15, cache_write=3.75), 2_000, 500, dict.fromkeys(PARTS[:2], 2_000), False)
def test_what_is_set_aside_covers_whatever_a_server_says_of_its_cache(
    price: Price, given_tokens: int, written: int, parts: dict[str, Any], batch: bool
) -> None:
    """All but a write for an hour, which nothing here asks for."""
    counted = Usage(input_tokens=given_tokens, output_tokens=written, batch=batch, **{**parts, PARTS[2]: None})
    billed = usage_cost(price, counted)
    most = most_cost(price, 2_000, 500, batch=batch)
    assert billed is not None
    assert most is not None
    assert 0 <= billed <= most * (1 + 1e-9)


@given(st.fixed_dictionaries(dict.fromkeys(("input_tokens", "output_tokens", *PARTS), said)))
def test_the_parts_of_the_input_are_never_more_than_it(counts: dict[str, Any]) -> None:
    usage = Usage(**counts)
    read, written, hour = (getattr(usage, part) for part in PARTS)
    assert (read or 0) + (written or 0) <= (usage.input_tokens or 0)
    assert (hour or 0) <= (written or 0)
    assert usage.input_tokens is not None or (read, written, hour) == (None, None, None)


@pytest.mark.parametrize("vendor", [vendor for vendor in DIALECTS if "compatible" not in vendor])
def test_a_prompt_that_is_asked_again_is_marked_and_nothing_of_a_replicate_stands_before_it(
    vendor: str, server: VendorServer
) -> None:
    model = entry(vendor, server.url, profile="sampled").model_copy(update={"base_url": None})
    requests = [replace(PLAIN, cache=True, replicate=at, seed=at) for at in range(2)] + [PLAIN]
    for request in [*requests, replace(PLAIN, cache=True, user="Another.")]:
        ask(model, request)
    first, again, plain, other = (received.body for received in server.received)
    marks = {name: first[name] for name in first.keys() - plain.keys()}
    match vendor.partition("-")[0]:
        case "anthropic":
            assert marks == {"cache_control": {"type": "ephemeral"}}
        case "openai":
            assert marks.keys() == {"prompt_cache_key"}
            assert len(marks["prompt_cache_key"]) == 64
            assert other["prompt_cache_key"] != first["prompt_cache_key"]
        case _:
            assert marks == {}
    of_a_replicate = {"seed", "generationConfig"}
    assert {name for name in first if first[name] != again[name]} <= of_a_replicate


@pytest.mark.parametrize(
    ("vendor", "name", "floor"),
    [
        ("anthropic", "claude-opus-4-7", 4_096),
        ("anthropic", "claude-sonnet-4-6", 1_024),
        ("anthropic", "claude-opus-5", 512),
        ("openai", "gpt-5", 1_024),
        ("google", "gemini-2.5-pro", 2_048),
        ("google", "gemini-3-pro-preview", 4_096),
    ],
)
def test_a_model_caches_from_its_floor_on_at_its_vendors_own_address(vendor: str, name: str, floor: int) -> None:
    model, kind = Model(id=name, provider=vendor), PROVIDERS[vendor]
    caching = kind.caching_of(model)
    assert caching is not None
    assert (caching.reaches(floor - 1), caching.reaches(floor)) == (False, True)
    assert kind.caching_of(model.model_copy(update={"cache": False})) is None
    assert kind.caching_of(model.model_copy(update={"base_url": "http://127.0.0.1:9/v1"})) is None
