"""Malformed, huge and hostile responses of a real server: no paid output is lost, and memory is bounded."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.providers.base import Completion, ProviderError, Usage

from tests.support.library import wait_until
from tests.support.vendor_dialects import DIALECTS, Answer, Json, Place
from tests.support.vendor_server import Body, Endless, Malformed, Status, VendorServer, vendor_server
from tests.support.vendors import VENDORS, any_json, ask, ask_and_fail, asking, entry, failure_of

BOMB = gzip.compress(b" " * 100_000_000, compresslevel=9)
ODD = [7, -1.5, float("nan"), True, "", "word", "\x1b[31m\u202e\x00", "x" * 5_000, [], [1], {}, {"a": {"b": []}}, None]
COMPATIBLE = "openai-compatible"  # what the transport does is equal for all vendors
LIMITS = Settings(limits=SafetyLimits(response_bytes=300_000))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vendor" in metafunc.fixturenames:
        metafunc.parametrize("vendor", VENDORS)


def answer_with(vendor: str, place: Place, value: Any) -> Json:
    """Return the body of an answer with another value at one place."""
    body, _ = DIALECTS[vendor].answer(Answer())
    holder: Any = body
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return body


def test_huge_number_is_no_token_count(vendor: str, server: VendorServer) -> None:
    usage, given_name, _ = DIALECTS[vendor].usage
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


def test_text_is_kept_whatever_the_other_fields_are(vendor: str, server: VendorServer) -> None:
    with asking(entry(vendor, server.url)) as complete:
        for place in DIALECTS[vendor].beside:
            for value in ODD:
                server.enqueue(Body(answer_with(vendor, place, value)))
                completion = complete()
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


def test_any_json_body_is_an_output_or_a_failure(vendor: str, server: VendorServer) -> None:
    dialect = DIALECTS[vendor]
    names = sorted({str(place[0]) for place in dialect.beside} | set(dialect.answer(Answer())[0]))
    with asking(entry(vendor, server.url)) as complete:

        @given(st.dictionaries(st.sampled_from(names), any_json) | any_json, st.booleans())
        def check(value: Any, inside: bool) -> None:
            whole = dialect.answer(Answer())[0]
            server.enqueue(Body({**whole, **value} if inside and isinstance(value, dict) else value))
            with suppress_malformed():
                assert is_whole(complete())

        check()


def test_body_over_the_limit_is_an_output_without_text(server: VendorServer) -> None:
    bodies = {
        "a long body": Malformed(b'{"a": "' + b"x" * 400_000 + b'"}'),
        "a body that unpacks to a huge one": Status(200, {"content-encoding": "gzip"}, body=BOMB),
        "packed otherwise": Status(200, {"content-encoding": "deflate"}, body=zlib.compress(b" " * 4_000_000)),
        "without end": Endless(),
    }
    with asking(entry(COMPATIBLE, server.url), LIMITS) as complete:
        for name, body in bodies.items():
            server.enqueue(body)
            assert complete() == Completion(text="", stop_reason="too_large"), name
            assert complete().text == "fine", name
    assert len(server.received) == 2 * len(bodies)
    wait_until(lambda: server.connections == 0)
    assert sum(bodies["without end"].sent) < 20_000_000  # what lay in the system's buffers


def test_body_with_millions_of_values_is_too_large(server: VendorServer) -> None:
    server.enqueue(Malformed(b"[" + b"[]," * 600_000 + b"0]"))
    with asking(entry(COMPATIBLE, server.url), Settings()) as complete:
        assert complete().stop_reason == "too_large"


def test_only_the_beginning_of_an_error_is_read(server: VendorServer) -> None:
    for body in (Status(500, {"content-encoding": "gzip"}, body=BOMB), Endless(500)):
        server.enqueue(body)
        problem = ask_and_fail(entry(COMPATIBLE, server.url))
        assert (problem.reason, problem.status, problem.retryable) == ("server_error", 500, True)


def test_key_is_not_sent_to_another_origin(vendor: str, server: VendorServer) -> None:
    with vendor_server() as elsewhere, asking(entry(vendor, server.url)) as complete:
        location = f"{elsewhere.url}/{vendor}{DIALECTS[vendor].path}?secret=path"
        for number, status in enumerate((301, 302, 303, 307, 308), 1):
            server.enqueue(Status(status, {"location": location}))
            problem = failure_of(complete)
            assert (len(elsewhere.received), len(server.received)) == (0, number), status
            assert (problem.reason, problem.status) == ("redirected", status)
            assert (problem.fatal, problem.retryable) == (True, False), status
            assert elsewhere.url in str(problem)
            assert "base_url" in str(problem)
            assert "secret" not in str(problem)


def test_refused_redirect_has_a_reason(server: VendorServer) -> None:
    with asking(entry(COMPATIBLE, server.url)) as complete:
        for location in ("http://[broken", "//", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1:9/v1", "?again"):
            server.default = Status(308, {"location": location})
            server.received.clear()
            problem = failure_of(complete)
            assert (problem.reason, problem.fatal) == ("redirected", True), location
            assert "pass" not in str(problem), location
            assert len(server.received) <= 4, location
