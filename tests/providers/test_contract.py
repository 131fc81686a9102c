"""What every vendor's adapter does, through its real SDK or without one, against a real server: one suite for all.

A new provider is run through it once `tests/support/vendor_dialects.py` says how its API is spoken.
"""

import asyncio
import dataclasses
import gc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib import import_module
from typing import Any

import pytest
from skill_evaluator.library.config import Params
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Completion, Provider, ProviderError, Usage
from skill_evaluator.providers.redaction import Redactor

from tests.support.vendor_dialects import DIALECTS, PLAIN, SCHEMA, merged
from tests.support.vendor_server import (
    Answer,
    Body,
    DropBefore,
    DropMidBody,
    EchoKey,
    Empty,
    Hang,
    HtmlPage,
    Malformed,
    Refusal,
    SlowFirstByte,
    Status,
    Truncated,
    VendorServer,
    vendor_server,
)
from tests.support.vendors import KEY, VENDORS, ask, ask_and_fail, entry, opened, point_at


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vendor" in metafunc.fixturenames:
        metafunc.parametrize("vendor", VENDORS)


def test_every_provider_that_is_asked_over_http_is_in_this_suite() -> None:
    spoken = {dialect.provider for dialect in DIALECTS.values()}
    for name, kind in PROVIDERS.items():
        assert kind.free or name in spoken, (
            f"provider '{name}' is not tested: add a class that says how its API words requests, answers and errors "
            "to tests/support/vendor_dialects.py, and a line in DIALECTS"
        )
    for name in spoken:
        assert hasattr(import_module(f"skill_evaluator.providers.{name}"), "VENDOR_URL"), (
            f"providers/{name}.py must hold the vendor's address as VENDOR_URL, so that tests can put a server there"
        )


def test_a_plain_request_is_mapped(vendor: str, server: VendorServer) -> None:
    dialect = DIALECTS[vendor]
    header, before_key = dialect.key_header
    ask(entry(vendor, server.url, profile="sampled"))
    [received] = server.received
    assert received.path == dialect.path
    assert received.headers[header] == before_key + KEY
    assert received.body == dialect.body


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "none"])
def test_structured_output_is_asked_for_as_the_entry_says(vendor: str, mode: str, server: VendorServer) -> None:
    request = dataclasses.replace(PLAIN, schema=SCHEMA)
    ask(entry(vendor, server.url, profile="sampled", structured_output=mode), request)
    assert server.received[0].body == merged(DIALECTS[vendor].body, DIALECTS[vendor].by_schema[mode])


@pytest.mark.parametrize(
    ("profile", "params", "added"),
    [
        ("deterministic", Params(), "deterministic"),
        ("deterministic", Params(temperature=0.7, top_p=0.9), "named"),
        ("sampled", Params(temperature=0.7, top_p=0.9), "named"),
    ],
    ids=["profile", "params win over the profile", "params alone"],
)
def test_sampling_settings_are_sent(
    vendor: str, profile: str, params: Params, added: str, server: VendorServer
) -> None:
    ask(entry(vendor, server.url, profile=profile, params=params))
    assert server.received[0].body == merged(DIALECTS[vendor].body, getattr(DIALECTS[vendor], added))


def test_what_cannot_be_set_is_said(vendor: str, server: VendorServer) -> None:
    model = entry(vendor, server.url, params=Params(temperature=0.7, top_p=0.9))
    sampling = PROVIDERS[model.provider].sampling(model)
    assert sampling.unavailable == DIALECTS[vendor].unavailable
    assert {*sampling.sent, *sampling.unavailable} == {"temperature", "top_p", "seed"}


def test_other_params_go_to_the_api(vendor: str, server: VendorServer) -> None:
    given, added = DIALECTS[vendor].extra
    ask(entry(vendor, server.url, profile="sampled", params=Params(**given)))
    assert server.received[0].body == merged(DIALECTS[vendor].body, added)


def test_no_variable_of_the_sdk_sends_the_key_elsewhere(
    vendor: str, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with vendor_server() as elsewhere:
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, f"{elsewhere.url}/v1")
        model = entry(vendor, server.url)
        ask(model if vendor.startswith("openai-compatible") else model.model_copy(update={"base_url": None}))
        assert (len(server.received), elsewhere.received) == (1, [])


def test_a_large_output_limit_is_sent_at_once(vendor: str, server: VendorServer) -> None:
    completion = ask(entry(vendor, server.url), dataclasses.replace(PLAIN, max_output_tokens=128_000))
    assert completion.text == "fine"
    assert "128000" in str(server.received[0].body)


# fmt: off
ANSWERS = {
    # what comes back          text                       stop       tokens
    "a plain answer":  (Answer(),                "fine",                    "stop",    (11, 7)),
    "no usage":        (Answer(usage=None),      "fine",                    "stop",    (None, None)),
    "empty":           (Empty(),                 "",                        "stop",    (11, 7)),
    "refusal":         (Refusal("not that"),     "not that",                "refusal", (11, 7)),
    "silent refusal":  (Refusal(""),             "",                        "refusal", (11, 7)),
    "truncated":       (Truncated('{"a": "b'),   '{"a": "b',                "length",  (11, 7)),
    "a new reason":    (Answer(stop="newly"),    "fine",                    "other",   (11, 7)),
    "beyond ASCII":    (Answer("Zoë 🎓\n\u2028"), "Zoë 🎓\n\u2028",          "stop",    (11, 7)),
}
# fmt: on


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_mapped(vendor: str, case: str, server: VendorServer) -> None:
    behaviour, text, stop, (given, written) = ANSWERS[case]
    server.enqueue(behaviour)
    unsaid = DIALECTS[vendor].unsaid
    answered = ask(entry(vendor, server.url))
    assert answered.usage.cache_read_tokens in (None, 0)  # 0 where a vendor leaves out what is 0
    assert answered == Completion(
        text=text,
        stop_reason="other" if stop in unsaid else stop,
        usage=Usage(input_tokens=given, output_tokens=written, cache_read_tokens=answered.usage.cache_read_tokens),
        served_model=None if "served_model" in unsaid else "served-model-001",
        request_id="request-001",
    )


def test_a_slow_first_byte_is_survived(vendor: str, server: VendorServer) -> None:
    server.enqueue(SlowFirstByte(0.3))
    assert ask(entry(vendor, server.url)).text == "fine"


def test_a_moved_address_is_followed(vendor: str, server: VendorServer) -> None:
    server.enqueue(Status(307, {"location": f"/{vendor}{DIALECTS[vendor].path}"}))
    assert ask(entry(vendor, server.url)).text == "fine"


def in_an_hour() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


ABOUT_AN_HOUR = pytest.approx(3600, abs=60)

ERROR, TIMEOUT, CREDENTIALS = "provider_error", "timeout", "no_credentials"
NEVER: set[str] = set()
FATAL = {"fatal"}
AGAIN = {"retryable"}
SLOWER = {"retryable", "throttled"}
BILLED = {"retryable", "perhaps_billed"}

ODD_CODEC = {"content-type": "text/html; charset=zlib"}

# fmt: off
FAULTS: dict[str, tuple[Any, str, str, set[str], Any]] = {
    # fault        what the server does                        kind         reason               flags   wait (s)
    "400":         (Status(400),                               ERROR,       "bad_request",       NEVER,  None),
    "401":         (Status(401),                               CREDENTIALS, "wrong_key",         FATAL,  None),
    "403":         (Status(403),                               CREDENTIALS, "permission_denied", FATAL,  None),
    "404":         (Status(404),                               ERROR,       "unknown_model",     FATAL,  None),
    "408":         (Status(408),                               TIMEOUT,     "request_timeout",   AGAIN,  None),
    "413":         (Status(413),                               ERROR,       "bad_request",       NEVER,  None),
    "429":         (Status(429),                               ERROR,       "rate_limited",      SLOWER, None),
    "429 s":       (Status(429, {"retry-after": "7"}),         ERROR,       "rate_limited",      SLOWER, 7.0),
    "429 ms":      (Status(429, {"retry-after-ms": "1500"}),   ERROR,       "rate_limited",      SLOWER, 1.5),
    "429 date":    (Status(429, {"retry-after": in_an_hour}),  ERROR,       "rate_limited",      SLOWER, ABOUT_AN_HOUR),
    "429 garbage": (Status(429, {"retry-after": "soon"}),      ERROR,       "rate_limited",      SLOWER, None),
    "429 never":   (Status(429, {"x-should-retry": "false"}),  ERROR,       "rate_limited",      {"throttled"}, None),
    "400 again":   (Status(400, {"x-should-retry": "true"}),   ERROR,       "bad_request",       AGAIN,  None),
    "500":         (Status(500),                               ERROR,       "server_error",      AGAIN,  None),
    "502":         (Status(502, body=b"<html>nginx</html>"),   ERROR,       "bad_gateway",       AGAIN,  None),
    "502 Latin":   (Status(502, body=b"erron\xe9e"),           ERROR,       "bad_gateway",       AGAIN,  None),
    "500 deep":    (Status(500, body=b"[" * 200_000),         ERROR,       "server_error",      AGAIN,  None),
    "500 codec":   (Status(500, ODD_CODEC, body=b"{"),        ERROR,       "server_error",      AGAIN,  None),
    "503":         (Status(503, {"retry-after": "0.5"}),       ERROR,       "unavailable",       SLOWER, 0.5),
    "504":         (Status(504),                               TIMEOUT,     "gateway_timeout",   AGAIN,  None),
    "529":         (Status(529),                               ERROR,       "overloaded",        SLOWER, None),
    "odd error":   (Status(500, body=["no", "object"]),        ERROR,       "server_error",      AGAIN,  None),
    "dropped":     (DropBefore(),                              ERROR,       "connection_lost",   BILLED, None),
    "cut off":     (DropMidBody(),                             ERROR,       "connection_lost",   BILLED, None),
    "no answer":   (Hang(),                                    TIMEOUT,     "read_timeout",      BILLED, None),
    "malformed":   (Malformed(),                               ERROR,       "malformed_body",    BILLED, None),
    "no bytes":    (Malformed(b""),                            ERROR,       "malformed_body",    BILLED, None),
    "no Unicode":  (Malformed(b"\xff\xfe\xff"),                ERROR,       "malformed_body",    BILLED, None),
    "too deep":    (Malformed(b"[" * 200_000),                 ERROR,       "malformed_body",    BILLED, None),
    "HTML page":   (HtmlPage(),                                ERROR,       "malformed_body",    BILLED, None),
    "null":        (Body(None),                                ERROR,       "malformed_body",    BILLED, None),
    "a list":      (Body([]),                                  ERROR,       "malformed_body",    BILLED, None),
    "no fields":   (Body({}),                                  ERROR,       "malformed_body",    BILLED, None),
}
# fmt: on


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_apart_with_one_request_and_survived(vendor: str, fault: str, server: VendorServer) -> None:
    behaviour, kind, reason, flags, wait = FAULTS[fault]
    server.enqueue(behaviour)

    async def fail_then_succeed() -> tuple[ProviderError, int, Completion]:
        async with opened(entry(vendor, server.url), 1.0 if isinstance(behaviour, Hang) else 20.0) as provider:
            with pytest.raises(ProviderError) as caught:
                await provider.complete(PLAIN)
            return caught.value, len(server.received), await provider.complete(PLAIN)

    error, requests, completion = asyncio.run(fail_then_succeed())
    assert (error.kind, error.reason) == (kind, reason)
    is_status = isinstance(behaviour, Status) and behaviour.code >= 400
    assert error.status == (behaviour.code if is_status else None)
    assert {flag for flag in ("retryable", "throttled", "fatal", "perhaps_billed") if getattr(error, flag)} == flags
    assert error.retry_after_s == wait
    assert str(error)
    assert requests == 1
    assert completion.text == "fine"


def test_a_server_that_is_not_there_is_unreachable_and_bills_nothing(
    vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with vendor_server() as gone:
        url = gone.url
    point_at(monkeypatch, url)
    error = ask_and_fail(entry(vendor, url))
    assert (error.reason, error.retryable, error.perhaps_billed) == ("unreachable", True, False)


def test_a_request_that_cannot_be_encoded_is_a_bad_request(vendor: str, server: VendorServer) -> None:
    lone_surrogate = dataclasses.replace(PLAIN, user="half of a character: \ud83c")
    if vendor == "google":  # its SDK writes JSON in ASCII, so the server gets to judge
        assert ask(entry(vendor, server.url), lone_surrogate).text == "fine"
        return
    error = ask_and_fail(entry(vendor, server.url), lone_surrogate)
    assert (error.reason, error.retryable, error.perhaps_billed) == ("bad_request", False, False)
    assert server.received == []


@pytest.mark.parametrize("code", [200, 400, 401])
def test_a_key_that_comes_back_can_be_struck_out(vendor: str, code: int, server: VendorServer) -> None:
    server.enqueue(EchoKey(code))
    model = entry(vendor, server.url)
    said = ask(model).text if code == 200 else str(ask_and_fail(model))
    assert KEY in said
    assert KEY not in Redactor([KEY])(said)


def test_calls_run_side_by_side(vendor: str, server: VendorServer) -> None:
    async def many() -> list[Completion]:
        async with opened(entry(vendor, server.url)) as provider:
            return await asyncio.gather(*(provider.complete(PLAIN) for _ in range(20)))

    assert [completion.text for completion in asyncio.run(many())] == ["fine"] * 20
    assert len(server.received) == 20


def test_cancellation_passes_through(vendor: str, server: VendorServer) -> None:
    server.enqueue(Hang())

    async def cancelled(provider: Provider) -> None:
        call = asyncio.create_task(provider.complete(PLAIN))
        while not server.received and not call.done():
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    async def cancel_then_ask() -> Completion:
        async with opened(entry(vendor, server.url)) as provider:
            await cancelled(provider)
            return await provider.complete(PLAIN)

    assert asyncio.run(cancel_then_ask()).text == "fine"


def test_close_leaves_no_connection(vendor: str, server: VendorServer) -> None:
    async def ask_twice() -> int:
        async with opened(entry(vendor, server.url)) as provider:
            await asyncio.gather(provider.complete(PLAIN), provider.complete(PLAIN))
            return server.connections

    assert asyncio.run(ask_twice()) > 0
    assert server.wait_until_nobody_is_connected() == 0
    gc.collect()  # what was left open would warn here, and warnings are errors
