"""Costs of calls by the vendors' price lists and token counts.

The bodies are as each vendor sends them; the expected costs are calculated from the price list by hand.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.library.config import Model, Params, Price
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Usage
from skill_evaluator.runner.prices import max_call_cost, price_of, usage_cost

from tests.support.vendor_dialects import DIALECTS, PLAIN, Answer, Json
from tests.support.vendor_server import Body, VendorServer
from tests.support.vendors import ask, asking, entry

Call = tuple[str, str, Json, bool]


def call(vendor: str, name: str, rest: int, written: int, *, batch: bool = False, **parts: int) -> Call:
    """A call to a vendor's model, and how its answer counts tokens; `rest` are those in beside the parts."""
    dialect = DIALECTS[vendor]
    return vendor, name, {dialect.usage[0]: dialect.counts(rest, written, **parts)}, batch


SONNET, OPUS = "claude-sonnet-4-6", "claude-opus-4-7"
LIST = [  # beside the USD for a million calls
    (call("openai", "gpt-5", 5_000, 400), 5_000 * 1.25 + 400 * 10),
    (call("openai", "gpt-5", 5_000, 400, read=0), 5_000 * 1.25 + 400 * 10),
    (call("openai", "gpt-5", 136, 400, read=4_864), 136 * 1.25 + 4_864 * 0.125 + 400 * 10),
    (call("openai", "gpt-5", 5_000, 400, batch=True), 5_000 * 0.625 + 400 * 5),
    (call("openai", "gpt-5", 136, 400, read=4_864, batch=True), 136 * 0.625 + 4_864 * 0.0625 + 400 * 5),
    (call("openai", "gpt-4.1", 136, 400, read=4_864, batch=True), 136 * 1 + 4_864 * 0.5 + 400 * 4),
    (call("openai", "gpt-5.6-sol", 136, 400, read=0, stored=4_864), 136 * 4 + 4_864 * 5 + 400 * 20),
    (call("openai", "gpt-5.6-sol", 136, 400, read=4_864, stored=0, batch=True), 136 * 2 + 4_864 * 0.2 + 400 * 10),
    (call("anthropic", SONNET, 5_000, 400, read=0), 5_000 * 3 + 400 * 15),
    (
        call("anthropic", SONNET, 1_000, 500, read=8_000, stored=1_000),
        1_000 * 3 + 8_000 * 0.3 + 1_000 * 3.75 + 500 * 15,
    ),
    (call("anthropic", OPUS, 3, 400, stored=5_000), 3 * 5 + 5_000 * 6.25 + 400 * 25),
    (call("anthropic", OPUS, 3, 400, stored=5_000, hour=4_000), 3 * 5 + 1_000 * 6.25 + 4_000 * 10 + 400 * 25),
    (call("anthropic", OPUS, 3, 400, read=5_000), 3 * 5 + 5_000 * 0.5 + 400 * 25),
    (call("anthropic", OPUS, 3, 400, read=5_000, batch=True), 3 * 2.5 + 5_000 * 0.25 + 400 * 12.5),
    (call("anthropic", OPUS, 3, 400, stored=5_000, hour=5_000, batch=True), 3 * 2.5 + 5_000 * 5 + 400 * 12.5),
    (call("google", "gemini-2.5-pro", 5_000, 400, thought=100), 5_000 * 1.25 + 500 * 10),
    (call("google", "gemini-2.5-pro", 1_000, 400, thought=100, read=4_000), 1_000 * 1.25 + 4_000 * 0.125 + 500 * 10),
    (  # a read in a batch has no discount
        call("google", "gemini-2.5-pro", 1_000, 400, read=4_000, batch=True),
        1_000 * 0.625 + 4_000 * 0.125 + 400 * 5,
    ),
]


def test_cost_of_a_call_follows_the_price_list(server: VendorServer) -> None:
    for asked, usd in LIST:
        vendor, name, counts, batch = asked
        server.enqueue(Body({**DIALECTS[vendor].answer(Answer())[0], **counts}))
        billed = replace(ask(entry(vendor, server.url)).usage, batch=batch)
        price = price_of(Model(id=name, provider=vendor), PROVIDERS[vendor])
        assert usage_cost(price, billed) == pytest.approx(usd / 1e6, rel=1e-12), asked


def test_missing_cache_prices_keep_the_ratio_of_the_price_list() -> None:
    for stated, *expected in (
        (Price(input=3.0, output=15.0), 0.3, 3.75, 6.0, 0.15),
        (Price(input=6.0, output=20.0), 0.6, 7.5, 12.0, 0.3),
        (Price(input=3.0, output=15.0, cache_write=0.0), 0.3, 0.0, 6.0, 0.15),
    ):
        price = price_of(Model(id=SONNET, provider="anthropic", price=stated), PROVIDERS["anthropic"])
        assert price is not None
        assert (price.input, price.output) == (stated.input, stated.output)
        prices = [price.cache_read, price.cache_write, price.cache_write_1h, price.batch_cache_read]
        assert prices == pytest.approx(expected), stated


def test_missing_cache_prices_never_make_a_cost_too_low() -> None:
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


FOR_AN_HOUR: Mapping[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


@given(
    prices,
    st.integers(0, 2_000),
    st.integers(0, 500),
    st.fixed_dictionaries(dict.fromkeys(PARTS, said)),
    st.booleans(),
    st.sampled_from([{}, FOR_AN_HOUR]),
)
@example(Price(input=3, output=15, cache_write=3.75), 2_000, 500, dict.fromkeys(PARTS[:2], 2_000), False, {})
@example(Price(input=3, output=15), 2_000, 500, dict.fromkeys(PARTS[1:], 2_000), False, FOR_AN_HOUR)
def test_maximum_cost_covers_every_count_of_cached_tokens(
    price: Price, given_tokens: int, written: int, parts: dict[str, Any], batch: bool, extra: dict[str, Any]
) -> None:
    hour = {} if extra else {PARTS[2]: None}  # only params can request a cache for an hour
    counted = Usage(input_tokens=given_tokens, output_tokens=written, batch=batch, **{**parts, **hour})
    billed = usage_cost(price, counted)
    model = Model(id="m", provider="anthropic", params=Params(max_output_tokens=500, **extra))
    most = max_call_cost(model, price, 2_000, batch=batch)
    assert billed is not None
    assert most is not None
    assert 0 <= billed <= most * (1 + 1e-9)


@given(st.fixed_dictionaries(dict.fromkeys(("input_tokens", "output_tokens", *PARTS), said)))
def test_cache_counts_never_exceed_the_input_tokens(counts: dict[str, Any]) -> None:
    usage = Usage(**counts)
    read, written, hour = (getattr(usage, part) for part in PARTS)
    assert (read or 0) + (written or 0) <= (usage.input_tokens or 0)
    assert (hour or 0) <= (written or 0)
    assert usage.input_tokens is not None or (read, written, hour) == (None, None, None)


@pytest.mark.parametrize("vendor", [vendor for vendor in DIALECTS if "compatible" not in vendor])
def test_repeated_prompt_is_marked_for_the_cache(vendor: str, server: VendorServer) -> None:
    model = entry(vendor, server.url, profile="sampled").model_copy(update={"base_url": None})
    requests = [replace(PLAIN, cache=True, replicate=at, seed=at) for at in range(2)] + [PLAIN]
    with asking(model) as complete:
        for request in [*requests, replace(PLAIN, cache=True, messages=dialogue(PLAIN.system, "Another."))]:
            complete(request)
    first, again, plain, other = (received.body for received in server.received)
    mark = DIALECTS[vendor].cache_mark
    assert first.keys() - plain.keys() == ({mark} if mark else set())
    if mark == "cache_control":
        assert first[mark] == {"type": "ephemeral"}
    if mark == "prompt_cache_key":
        assert len(first[mark]) == 64
        assert other[mark] != first[mark]
    assert {name for name in first if first[name] != again[name]} <= {DIALECTS[vendor].seeded}


def test_cache_floor_depends_on_model_and_address() -> None:
    for vendor, name, floor in (
        ("anthropic", OPUS, 4_096),
        ("anthropic", SONNET, 1_024),
        ("anthropic", "claude-opus-5", 512),
        ("openai", "gpt-5", 1_024),
        ("google", "gemini-2.5-pro", 2_048),
        ("google", "gemini-3-pro-preview", 4_096),
    ):
        model, kind = Model(id=name, provider=vendor), PROVIDERS[vendor]
        assert kind.cache_floor_of(model) == floor, name
        assert kind.cache_floor_of(model.model_copy(update={"cache": False})) is None, name
        assert kind.cache_floor_of(model.model_copy(update={"base_url": "http://127.0.0.1:9/v1"})) is None, name
