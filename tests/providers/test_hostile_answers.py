"""What a server says beside its text loses no paid answer, and a body without end takes neither memory nor time.

Through every vendor's real SDK, against a real server.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.config import Model, SafetyLimits, Settings
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Completion, Provider, ProviderError, Usage

from tests.support.vendor_dialects import DIALECTS, PLAIN, Answer, Json, address_of
from tests.support.vendor_server import Body, Endless, Malformed, Status, VendorServer, vendor_server
from tests.support.vendors import KEY, VENDORS, ask, ask_and_fail, entry

_OF_OPENAI = (("id",), ("model",), ("usage",), ("choices", 0, "finish_reason"), ("choices", 0, "message", "refusal"))
BESIDE_THE_TEXT: dict[str, tuple[tuple[str | int, ...], ...]] = {
    "openai": _OF_OPENAI,
    "openai-compatible": _OF_OPENAI,
    "openai-sdk": _OF_OPENAI,
    "openai-compatible-sdk": _OF_OPENAI,
    "anthropic": (("id",), ("model",), ("usage",), ("stop_reason",)),
    "google": (("responseId",), ("modelVersion",), ("usageMetadata",), ("candidates", 0, "finishReason")),
}
USAGE = {
    "openai": ("usage", "prompt_tokens", "completion_tokens"),
    "openai-compatible": ("usage", "prompt_tokens", "completion_tokens"),
    "openai-sdk": ("usage", "prompt_tokens", "completion_tokens"),
    "openai-compatible-sdk": ("usage", "prompt_tokens", "completion_tokens"),
    "anthropic": ("usage", "input_tokens", "output_tokens"),
    "google": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
}
NO_COUNT = [-1, -300, 1.0, 2.5, float("nan"), float("inf"), -float("inf"), "12", True, [], [3], {}, {"n": 3}, 10**12]
ODD = [7, -1.5, float("nan"), True, "", "word", "\x1b[31m\u202e\x00", "x" * 5_000, [], [1], {}, {"a": {"b": []}}, None]
LIMITS = Settings(limits=SafetyLimits(response_bytes=300_000))
BOMB = gzip.compress(b" " * 40_000_000)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vendor" in metafunc.fixturenames:
        metafunc.parametrize("vendor", VENDORS)


def answer_with(vendor: str, place: tuple[str | int, ...], value: Any) -> Json:
    """Return the body of an answer with another value at one place."""
    body, _ = DIALECTS[vendor].answer(Answer())
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return body


@contextmanager
def provider_of(model: Model, settings: Settings = LIMITS) -> Iterator[tuple[asyncio.Runner, Provider]]:
    """A provider that is open while many requests are made, and what runs them."""
    with asyncio.Runner() as runner:
        provider = PROVIDERS[model.provider].open(model, KEY, settings)
        try:
            yield runner, provider
        finally:
            runner.run(provider.close())


def test_a_count_that_cannot_be_is_unknown_and_the_other_is_kept(vendor: str, server: VendorServer) -> None:
    usage, given_name, written_name = USAGE[vendor]
    with provider_of(entry(vendor, server.url)) as (runner, provider):
        for value in NO_COUNT:
            server.enqueue(Body(answer_with(vendor, (usage,), {given_name: value, written_name: 7})))
            server.enqueue(Body(answer_with(vendor, (usage,), {given_name: 11, written_name: value})))
            first, second = (runner.run(provider.complete(PLAIN)) for _ in range(2))
            assert (first.text, first.usage) == ("fine", Usage(output_tokens=7)), value
            assert (second.text, second.usage.input_tokens, second.usage.output_tokens) == ("fine", 11, None), value


PARTS = [("anthropic", "cache_read_input_tokens"), ("google", "thoughtsTokenCount")]
CACHED = {"openai": "prompt_tokens_details", "anthropic": "cache_creation", "google": "cachedContentTokenCount"}


@pytest.mark.parametrize(("of", "part"), PARTS)
def test_a_sum_with_a_part_that_cannot_be_is_unknown(of: str, part: str, server: VendorServer) -> None:
    usage, given_name, written_name = USAGE[of]
    for value in NO_COUNT:
        server.enqueue(Body(answer_with(of, (usage,), {given_name: 11, written_name: 7, part: value})))
        counted = ask(entry(of, server.url)).usage
        assert None in (counted.input_tokens, counted.output_tokens), value
        assert {counted.input_tokens, counted.output_tokens} <= {None, 11, 7}, value


def test_a_cache_count_that_cannot_be_is_unknown_and_loses_nothing(vendor: str, server: VendorServer) -> None:
    usage, given_name, written_name = USAGE[vendor]
    of, counts = vendor.partition("-")[0], {given_name: 11, written_name: 7}
    inside = {"prompt_tokens_details": "cached_tokens", "cache_creation": "ephemeral_1h_input_tokens"}
    with provider_of(entry(vendor, server.url)) as (runner, provider):
        for value in [*NO_COUNT, {inside.get(CACHED[of], "n"): -4}, {inside.get(CACHED[of], "n"): "4"}]:
            server.enqueue(Body(answer_with(vendor, (usage,), {**counts, CACHED[of]: value})))
            counted = runner.run(provider.complete(PLAIN)).usage
            assert counted == Usage(input_tokens=11, output_tokens=7), value


def test_a_number_of_thousands_of_digits_is_no_count(vendor: str, server: VendorServer) -> None:
    usage, given_name, _ = USAGE[vendor]
    body = json.dumps(answer_with(vendor, (usage,), {given_name: "DIGITS"}))
    server.enqueue(Malformed(body.replace('"DIGITS"', "9" * 5_000).encode()))
    completion = ask(entry(vendor, server.url))
    assert (completion.text, completion.usage) == ("fine", Usage())


def is_whole(completion: Completion) -> bool:
    """Check that a completion can be kept and counted."""
    counts = (completion.usage.input_tokens, completion.usage.output_tokens)
    identifiers = (completion.served_model, completion.request_id)
    return (
        all(count is None or (type(count) is int and 0 <= count < 10**12) for count in counts)
        and all(name is None or (isinstance(name, str) and name.isprintable()) for name in identifiers)
        and completion.stop_reason in ("stop", "length", "refusal", "other")
    )


def test_whatever_stands_beside_the_text_the_text_is_kept(vendor: str, server: VendorServer) -> None:
    with provider_of(entry(vendor, server.url)) as (runner, provider):
        for place in BESIDE_THE_TEXT[vendor]:
            for value in ODD:
                server.enqueue(Body(answer_with(vendor, place, value)))
                completion = runner.run(provider.complete(PLAIN))
                a_refusal = place[-1] == "refusal" and isinstance(value, str) and value
                assert completion.text == (value if a_refusal else "fine"), (place, value)
                assert is_whole(completion), (place, value)


@contextmanager
def suppress_malformed() -> Iterator[None]:
    """Let the one failure pass that a body may end in."""
    try:
        yield
    except ProviderError as problem:
        if (problem.reason, problem.perhaps_billed) != ("malformed_body", True):
            raise


def test_any_json_is_an_answer_or_a_failure_of_its_own(vendor: str) -> None:
    dialect = DIALECTS[vendor]
    names = sorted({str(place[0]) for place in BESIDE_THE_TEXT[vendor]} | set(dialect.answer(Answer())[0]))
    with vendor_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"skill_evaluator.providers.{dialect.provider}.VENDOR_URL", address_of(server.url, vendor))
        with provider_of(entry(vendor, server.url)) as (runner, provider):

            @given(st.dictionaries(st.sampled_from(names), json_values) | json_values, st.booleans())
            def check(value: Any, inside: bool) -> None:
                whole = dialect.answer(Answer())[0]
                server.enqueue(Body({**whole, **value} if inside and isinstance(value, dict) else value))
                with suppress_malformed():
                    assert is_whole(runner.run(provider.complete(PLAIN)))

            check()


def test_any_bytes_are_an_answer_or_a_failure_of_their_own(vendor: str) -> None:
    dialect = DIALECTS[vendor]
    with vendor_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"skill_evaluator.providers.{dialect.provider}.VENDOR_URL", address_of(server.url, vendor))
        with provider_of(entry(vendor, server.url)) as (runner, provider):

            @given(
                st.binary(max_size=200) | st.text(max_size=50).map(str.encode),
                st.sampled_from(["", "gzip", "deflate", "gzip, deflate", "gzip" + ", gzip" * 9, "br", "odd"]),
                st.sampled_from([200, 201, 204, 400, 418, 429, 500, 599]),
                st.booleans(),
            )
            def check(raw: bytes, encoding: str, status: int, packed: bool) -> None:
                body = gzip.compress(raw) if packed else raw
                server.enqueue(Status(status, {"content-encoding": encoding} if encoding else {}, body=body))
                with pytest.raises(ProviderError) as caught:
                    runner.run(provider.complete(PLAIN))
                assert caught.value.reason in REASONS
                assert str(caught.value)

            check()


REASONS = {"malformed_body", "connection_lost", "bad_request", "rate_limited", "server_error"}
TOO_LARGE = {
    "a long body": Malformed(b'{"a": "' + b"x" * 400_000 + b'"}'),
    "a body that unpacks to a huge one": Status(200, {"content-encoding": "gzip"}, body=BOMB),
    "packed twice": Status(200, {"content-encoding": "gzip, gzip"}, body=gzip.compress(BOMB)),
    "packed otherwise": Status(200, {"content-encoding": "deflate"}, body=zlib.compress(b" " * 40_000_000)),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_a_body_over_the_limit_is_an_answer_without_text(vendor: str, what: str, server: VendorServer) -> None:
    server.enqueue(TOO_LARGE[what])
    with provider_of(entry(vendor, server.url)) as (runner, provider):
        assert runner.run(provider.complete(PLAIN)) == Completion(text="", stop_reason="too_large")
        assert runner.run(provider.complete(PLAIN)).text == "fine"
    assert len(server.received) == 2


def test_a_body_without_end_is_read_up_to_the_limit(vendor: str, server: VendorServer) -> None:
    endless = Endless()
    server.enqueue(endless)
    with provider_of(entry(vendor, server.url)) as (runner, provider):
        assert runner.run(provider.complete(PLAIN)).stop_reason == "too_large"
    assert server.wait_until_nobody_is_connected() == 0
    assert sum(endless.sent) < 20_000_000  # what lay in the system's buffers


def test_a_body_of_millions_of_empty_lists_is_not_built(vendor: str, server: VendorServer) -> None:
    server.enqueue(Malformed(b"[" + b"[]," * 4_000_000 + b"0]"))
    with provider_of(entry(vendor, server.url), Settings()) as (runner, provider):
        assert runner.run(provider.complete(PLAIN)).stop_reason == "too_large"


@pytest.mark.parametrize(
    "what", [Status(500, {"content-encoding": "gzip"}, body=BOMB), Endless(500)], ids=["unpacks", "endless"]
)
def test_of_an_error_only_the_beginning_is_read(vendor: str, what: Status | Endless, server: VendorServer) -> None:
    server.enqueue(what)
    problem = ask_and_fail(entry(vendor, server.url))
    assert (problem.reason, problem.status, problem.retryable) == ("server_error", 500, True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_key_is_sent_to_no_other_origin(vendor: str, status: int, server: VendorServer) -> None:
    with vendor_server() as elsewhere:
        server.enqueue(Status(status, {"location": f"{elsewhere.url}/{vendor}{DIALECTS[vendor].path}?secret=path"}))
        problem = ask_and_fail(entry(vendor, server.url))
        assert elsewhere.received == []
    assert len(server.received) == 1
    assert (problem.reason, problem.status, problem.fatal, problem.retryable) == ("redirected", status, True, False)
    assert elsewhere.url in str(problem)
    assert "base_url" in str(problem)
    assert "secret" not in str(problem)


@pytest.mark.parametrize(
    "location", ["http://[broken", "//", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1:9/v1", "?again"]
)
def test_any_other_redirect_ends_with_its_reason(vendor: str, location: str, server: VendorServer) -> None:
    server.default = Status(308, {"location": location})
    problem = ask_and_fail(entry(vendor, server.url))
    assert (problem.reason, problem.fatal) == ("redirected", True)
    assert "pass" not in str(problem)
    assert len(server.received) <= 4
