"""Invalid HTTP, compression and encodings: each is an output or a failure of its own call."""

import gzip
import json
from collections.abc import Mapping

from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.providers.base import Completion, ProviderError

from tests.support.vendor_dialects import Answer
from tests.support.vendor_server import Asked, Behaviour, VendorServer
from tests.support.vendors import asking, entry

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
LIMITS = Settings(timeout_s=1, limits=SafetyLimits(response_bytes=300_000))


def good(asked: Asked) -> bytes:
    """Return the body of a valid answer of this vendor."""
    return json.dumps(asked.dialect.answer(Answer())[0]).encode()


def raw(content: bytes) -> Behaviour:
    return lambda asked: asked.received.send(content)


def endless(first: bytes, again: bytes) -> Behaviour:
    """Send some bytes, then the same again until the client hangs up."""

    def send(asked: Asked) -> None:
        asked.received.send(first)
        asked.received.for_ever(again)

    return send


def headed(*headers: str, status: str = "200 OK", length: str | None = None, body: bytes | None = None) -> Behaviour:
    """Send a valid body, or another one, with further headers."""

    def send(asked: Asked) -> None:
        content = good(asked) if body is None else body
        lines = [f"HTTP/1.1 {status}", "connection: close", *headers, f"content-length: {length or len(content)}"]
        asked.received.send("\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + content)

    return send


def recoded(encoding: str, name: str) -> Behaviour:
    charset = f"content-type: application/json; charset={name}"
    return lambda asked: headed(charset, body=good(asked).decode().encode(encoding))(asked)  # type: ignore[operator]


def dripped(begin: bytes) -> Behaviour:
    """Send the rest of an answer byte by byte."""

    def send(asked: Asked) -> None:
        asked.received.send(begin)
        asked.received.drip(b"content-length: 9\r\n" * 9, 0.15)

    return send


PACKED = gzip.compress(b" " * 4_000_000)
READ: Mapping[str, Behaviour] = {  # these are read as an answer
    "a large header": headed("x-large: " + "y" * 60_000),
    "headers of odd bytes": headed("x-request-id: \x1b]0;odd\x07::error::odd", "request-id: \udcff\udcfe"),
    "an unknown encoding of the content": headed("content-encoding: " + "gzip, " * 30 + "odd"),
    "UTF-16": recoded("utf-16", "utf-16"),
    "UTF-8 that claims to be UTF-7": recoded("utf-8", "utf-7"),
    "an unknown charset": recoded("utf-8", "\x1bodd/../x"),
    "a byte order mark": recoded("utf-8-sig", "utf-8"),
}
FAILED: Mapping[str, Behaviour] = {
    "an alert of TLS": raw(b"\x15\x03\x01\x00\x02\x02\x16"),
    "status 99999": raw(b"HTTP/1.1 99999 Odd\r\n\r\n"),
    "status 204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status 300 without an address": headed(status="300 Multiple Choices", body=b"{}"),
    "endless headers": endless(OK, b"x-more: 1\r\n" * 500),
    "an endless header": endless(OK + b"x-long: ", b"y" * 65_536),
    "3,000 headers": headed(*(f"x-{number}: 1" for number in range(3_000))),
    "a header with NUL": raw(OK + b"x-odd: \x00\r\ncontent-length: 2\r\n\r\n{}"),
    "a length of 400 digits": headed(length="9" * 400),
    "two lengths": headed("content-length: 3"),
    "a chunk that is cut": raw(CHUNKED + b'4\r\n{"a"'),
    "a body byte by byte": dripped(OK + b"content-length: 900\r\n\r\n"),
    "half of gzip": headed("content-encoding: gzip", body=gzip.compress(b'{"a": 1}')[:20]),
    "gzip of gzip": headed("content-encoding: gzip, gzip", body=gzip.compress(PACKED)),
    "100,000 digits": headed(body=b"9" * 100_000),
    "surrogates": headed(body=b'{"id": "\\ud800", "model": "\\udfff", "choices": "\\ud800"}'),
    "an error of 100,000 levels": headed(status="500 Odd", body=b'{"error":' * 100_000 + b"1" + b"}" * 100_000),
}
TOO_LARGE: Mapping[str, Behaviour] = {
    "endless chunks": endless(CHUNKED, b"10000\r\n" + b" " * 65_536 + b"\r\n"),
}


def test_bad_http_costs_only_its_own_call(server: VendorServer) -> None:
    found: dict[str, Completion | str] = {}
    for name, behaviour in {**READ, **TOO_LARGE, **FAILED}.items():
        server.enqueue(behaviour)
        with asking(entry("openai-compatible", server.url), LIMITS) as complete:
            try:
                found[name] = complete()
            except ProviderError as problem:
                found[name] = problem.reason
    answered = {name: outcome for name, outcome in found.items() if isinstance(outcome, Completion)}
    assert {name for name, completion in answered.items() if completion.text == "fine"} == READ.keys()
    assert {name for name, completion in answered.items() if completion.stop_reason == "too_large"} == TOO_LARGE.keys()
    assert {name for name, outcome in found.items() if isinstance(outcome, str) and outcome} == FAILED.keys()
    assert len(server.received) == len(found)
