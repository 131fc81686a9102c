"""The contract of all vendors' providers, against a real server.

To test a new provider, describe its API in `tests/support/vendor_dialects.py`.
"""

import asyncio
import dataclasses
import gc
import json
from importlib import import_module
from typing import Any

import pytest
from skill_evaluator.library.config import Params, Settings
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Completion, Provider, Request, Usage
from skill_evaluator.providers.structured import output_of

from tests.support.http_server import Received
from tests.support.library import wait_until
from tests.support.vendor_dialects import DIALECTS, PLAIN, SCHEMA, merged
from tests.support.vendor_server import (
    Answer,
    Body,
    DropBefore,
    DropMidBody,
    Hang,
    Malformed,
    Refusal,
    Status,
    Truncated,
    VendorServer,
    vendor_server,
)
from tests.support.vendors import KEY, USUAL, VENDORS, ask, ask_and_fail, asking, entry, failure_of, opened, point_at


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vendor" in metafunc.fixturenames:
        metafunc.parametrize("vendor", VENDORS)


@pytest.mark.parametrize("name", [name for name, kind in PROVIDERS.items() if not kind.free and name != "program"])
def test_every_provider_has_a_dialect(name: str) -> None:
    assert name in {dialect.provider for dialect in DIALECTS.values()}, (
        f"provider '{name}' has no dialect: add a class that says how its API words requests, answers and errors "
        "to tests/support/vendor_dialects.py, and a line in DIALECTS"
    )
    assert hasattr(import_module(f"skill_evaluator.providers.{name}"), "VENDOR_URL"), (
        f"providers/{name}.py must hold the vendor's address as VENDOR_URL, so that tests can put a server there"
    )


def sent_by(server: VendorServer, vendor: str, request: Request = PLAIN, **fields: Any) -> Received:
    """What one call to the model of an entry sent."""
    server.received.clear()
    ask(entry(vendor, server.url, **fields), request)
    (received,) = server.received
    return received


def test_a_plain_request_is_mapped(vendor: str, server: VendorServer) -> None:
    dialect = DIALECTS[vendor]
    header, before_key = dialect.key_header
    received = sent_by(server, vendor, profile="sampled")
    assert received.path == dialect.path
    assert received.headers[header] == before_key + KEY
    assert received.body == dialect.body


def test_settings_and_schema_are_added_to_the_body(vendor: str, server: VendorServer) -> None:
    dialect, with_schema = DIALECTS[vendor], dataclasses.replace(PLAIN, schema=SCHEMA)
    by_tool_call = dataclasses.replace(with_schema, by_tool_call=True)
    for request, modes in ((with_schema, dialect.by_schema), (by_tool_call, dialect.by_tool_call)):
        for mode, added in modes.items():
            sent = sent_by(server, vendor, request, profile="sampled", structured_output=mode).body
            assert sent == merged(dialect.body, added), mode
    named = Params(temperature=0.7, top_p=0.9)
    for profile, params, added in (
        ("deterministic", Params(), dialect.deterministic),
        ("deterministic", named, dialect.named),  # params win over the profile
        ("sampled", named, dialect.named),
        ("sampled", Params(**dialect.extra[0]), dialect.extra[1]),
    ):
        sent = sent_by(server, vendor, profile=profile, params=params).body
        assert sent == merged(dialect.body, added), (profile, params)
    large = sent_by(server, vendor, dataclasses.replace(PLAIN, max_output_tokens=128_000))
    assert "128000" in str(large.body)


def test_unavailable_settings_are_listed(vendor: str) -> None:
    model = entry(vendor, "http://127.0.0.1", params=Params(temperature=0.7, top_p=0.9))
    sampling = PROVIDERS[model.provider].sampling(model)
    assert sampling.unavailable == DIALECTS[vendor].unavailable
    assert {*sampling.sent, *sampling.unavailable} == {"temperature", "top_p", "seed"}


# fmt: off
ANSWERS = {
    # what comes back          text                       stop       tokens
    "a plain answer":  (Answer(),                "fine",                    "stop",    (11, 7)),
    "no usage":        (Answer(usage=None),      "fine",                    "stop",    (None, None)),
    "empty":           (Answer(text=""),          "",                        "stop",    (11, 7)),
    "refusal":         (Refusal("not that"),     "not that",                "refusal", (11, 7)),
    "silent refusal":  (Refusal(""),             "",                        "refusal", (11, 7)),
    "truncated":       (Truncated('{"a": "b'),   '{"a": "b',                "length",  (11, 7)),
    "a new reason":    (Answer(stop="newly"),    "fine",                    "other",   (11, 7)),
    "beyond ASCII":    (Answer("Zoë 🎓\n\u2028"), "Zoë 🎓\n\u2028",          "stop",    (11, 7)),
}
# fmt: on


def test_answers_are_mapped(vendor: str, server: VendorServer) -> None:
    unsaid = DIALECTS[vendor].unsaid
    with asking(entry(vendor, server.url)) as complete:
        for case, (behaviour, text, stop, (given, written)) in ANSWERS.items():
            server.enqueue(behaviour)
            answered = complete()
            read = answered.usage.cache_read_tokens
            assert read in (None, 0), case  # 0 where a vendor leaves out what is 0
            assert answered == Completion(
                text=text,
                stop_reason="other" if stop in unsaid else stop,
                usage=Usage(input_tokens=given, output_tokens=written, cache_read_tokens=read),
                served_model=None if "served_model" in unsaid else "served-model-001",
                request_id="request-001",
            ), case


def test_arguments_of_a_forced_tool_call_are_the_output(vendor: str, server: VendorServer) -> None:
    if not DIALECTS[vendor].by_tool_call:
        pytest.skip("a provider without tools sends the schema as usual")
    request, model = dataclasses.replace(PLAIN, schema=SCHEMA, by_tool_call=True), entry(vendor, server.url)
    server.enqueue(Answer(text="Here:", tool_call={"award": "Zoë"}), Answer(text="I cannot."), Truncated())
    called, spoken, cut = [output_of(ask(model, request), request, model) for _ in range(3)]
    assert (json.loads(called.text), called.tool_call, called.reasoning) == ({"award": "Zoë"}, "", "Here:")
    assert (spoken.text, spoken.stop_reason) == ("I cannot.", "no_tool_call")
    assert cut.stop_reason == "length"


def test_redirect_within_the_origin_is_followed(vendor: str, server: VendorServer) -> None:
    server.enqueue(Status(307, {"location": f"/{vendor}{DIALECTS[vendor].path}"}))
    assert ask(entry(vendor, server.url)).text == "fine"
    assert len(server.received) == 2


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
    "413":         (Status(413),                               ERROR,       "request_too_large", NEVER,  None),
    "429":         (Status(429),                               ERROR,       "rate_limited",      SLOWER, None),
    "429 s":       (Status(429, {"retry-after": "7"}),         ERROR,       "rate_limited",      SLOWER, 7.0),
    "500":         (Status(500),                               ERROR,       "server_error",      AGAIN,  None),
    "502":         (Status(502, body=b"<html>nginx</html>"),   ERROR,       "bad_gateway",       AGAIN,  None),
    "500 codec":   (Status(500, ODD_CODEC, body=b"{"),        ERROR,       "server_error",      AGAIN,  None),
    "503":         (Status(503, {"retry-after": "0.5"}),       ERROR,       "unavailable",       SLOWER, 0.5),
    "504":         (Status(504),                               TIMEOUT,     "gateway_timeout",   AGAIN,  None),
    "529":         (Status(529),                               ERROR,       "overloaded",        SLOWER, None),
    "dropped":     (DropBefore(),                              ERROR,       "connection_lost",   BILLED, None),
    "cut off":     (DropMidBody(),                             ERROR,       "connection_lost",   BILLED, None),
    "no answer":   (Hang(),                                    TIMEOUT,     "read_timeout",      BILLED, None),
    "malformed":   (Malformed(),                               ERROR,       "malformed_body",    BILLED, None),
    "no Unicode":  (Malformed(b"\xff\xfe\xff"),                ERROR,       "malformed_body",    BILLED, None),
    "too deep":    (Malformed(b"[" * 200_000),                 ERROR,       "malformed_body",    BILLED, None),
    "HTML page":   (Status(200, body=b"<!doctype html><p>Log in"), ERROR,       "malformed_body",    BILLED, None),
    "no fields":   (Body({}),                                  ERROR,       "malformed_body",    BILLED, None),
}
# fmt: on


def test_error_of_a_content_filter_is_a_refusal(vendor: str, server: VendorServer) -> None:
    for details in (
        {"code": "content_filter"},
        {"type": "content_filter"},
        {"innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"code": None, "message": "Output blocked by content filtering policy"},
    ):
        for code in (400, 200):
            server.enqueue(Status(code, body={"error": {"message": "filtered", **details}}))
            completion = ask(entry(vendor, server.url))
            assert (completion.stop_reason, completion.usage.output_tokens) == ("refusal", 0), (details, code)
    server.enqueue(Status(400, body={"error": {"message": "no such parameter: content_filter", "code": None}}))
    assert ask_and_fail(entry(vendor, server.url)).reason == "bad_request"


def test_each_fault_has_its_reason_and_fails_one_call(vendor: str, server: VendorServer) -> None:
    for fault, (behaviour, kind, reason, flags, wait) in FAULTS.items():
        server.enqueue(behaviour)
        asked_before = len(server.received)
        limit = Settings(timeout_s=1) if reason == "read_timeout" else USUAL
        with asking(entry(vendor, server.url), limit) as complete:
            error = failure_of(complete)
            assert len(server.received) == asked_before + 1, fault
            assert complete().text == "fine", fault
        assert (error.kind, error.reason) == (kind, reason), fault
        is_status = isinstance(behaviour, Status) and behaviour.code >= 400
        assert error.status == (behaviour.code if is_status else None), fault
        raised = {flag for flag in ("retryable", "throttled", "fatal", "perhaps_billed") if getattr(error, flag)}
        assert raised == flags, fault
        assert error.retry_after_s == wait, fault
        assert str(error), fault


def test_absent_server_is_unreachable_and_bills_nothing(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with vendor_server() as gone:
        url = gone.url
    point_at(monkeypatch, url)
    error = ask_and_fail(entry(vendor, url))
    assert (error.reason, error.retryable, error.perhaps_billed) == ("unreachable", True, False)


def test_request_that_cannot_be_encoded_is_a_bad_request(vendor: str, server: VendorServer) -> None:
    lone_surrogate = dataclasses.replace(PLAIN, messages=dialogue(PLAIN.system, "half of a character: \ud83c"))
    error = ask_and_fail(entry(vendor, server.url), lone_surrogate)
    assert (error.reason, error.retryable, error.perhaps_billed) == ("bad_request", False, False)
    assert server.received == []


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


def test_close_leaves_no_connection(server: VendorServer) -> None:
    async def ask_twice(vendor: str) -> int:
        async with opened(entry(vendor, server.url)) as provider:
            await asyncio.gather(provider.complete(PLAIN), provider.complete(PLAIN))
            return server.connections

    for vendor in VENDORS:
        assert asyncio.run(ask_twice(vendor)) > 0, vendor
        wait_until(lambda: server.connections == 0)
    gc.collect()  # what was left open would warn here, and warnings are errors
