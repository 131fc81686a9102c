"""A server on the loopback that writes raw bytes: what no HTTP library would send. Each request says what it gets.

A request holds the word `mode-<name>` somewhere in its body (the document of a case does), and `MODES[name]` answers.
"""

import base64
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from urllib.parse import quote

from tests.support.http_server import serve
from tests.support.vendor_dialects import Answer
from tests.support.vendor_server import Asked, VendorServer

_MODE = re.compile(rb"mode-([a-z0-9-]+)")
_RIGHT = Answer(text=json.dumps({"title": "RIGHT", "year": 2024}))

Mode = Callable[[Asked], None]


def good(asked: Asked) -> bytes:
    """The body of the right answer in the vendor's words."""
    return json.dumps(asked.dialect.answer(_RIGHT)[0]).encode()


def http_answer(body: bytes, *headers: str, status: str = "200 OK", length: int | str | None = None) -> bytes:
    """An answer in HTTP, its length as it is unless said otherwise."""
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    lines.append(f"content-length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def _whole(*headers: str, status: str = "200 OK", **how: int | str) -> Mode:
    return lambda asked: asked.received.send(http_answer(good(asked), *headers, status=status, **how))


def _body(content: bytes, *headers: str, status: str = "200 OK") -> Mode:
    return lambda asked: asked.received.send(http_answer(content, *headers, status=status))


def _raw(content: bytes) -> Mode:
    return lambda asked: asked.received.send(content)


def _recoded(encoding: str, name: str = "") -> Mode:
    charset = f"content-type: application/json; charset={name or encoding}"
    return lambda asked: asked.received.send(http_answer(good(asked).decode().encode(encoding), charset))


def _chunked(*chunks: bytes) -> Mode:
    return lambda asked: asked.received.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n", *chunks
    )


@cache
def bomb() -> bytes:
    """A small body in gzip that unpacks to 100 MB."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join([*(packer.compress(b" " * 2**20) for _ in range(100)), packer.flush()])


def _packed(encoding: str, pack: Callable[[bytes], bytes] = bytes) -> Mode:
    return lambda asked: asked.received.send(http_answer(pack(bomb()), f"content-encoding: {encoding}"))


def spellings(key: str) -> list[str]:
    """Return a key in the spellings that a server may repeat it in."""
    raw = key.encode()
    return [
        key,
        quote(key, safe=""),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(b"Bearer " + raw).decode(),
        base64.b64encode(b"x:" + raw).decode().rstrip("="),
    ]


def _echo(status: str) -> Mode:
    """Repeat the key in every spelling in a header, and in the message or in the answer."""

    def send(asked: Asked) -> None:
        said = " ".join(spellings(asked.key))
        header = f"x-request-id: {said}"
        if status.startswith("200"):
            asked.received.send(http_answer(good(asked).replace(b"RIGHT", json.dumps(said).encode()[1:-1]), header))
        else:
            asked.received.send(
                http_answer(json.dumps({"error": {"message": said, "code": said}}).encode(), header, status=status)
            )

    return send


def _drip_headers(asked: Asked) -> None:
    asked.received.drip(http_answer(good(asked)), 0.15)


def _drip_body(asked: Asked) -> None:
    head, _, body = http_answer(good(asked)).partition(b"\r\n\r\n")
    asked.received.send(head, b"\r\n\r\n")
    asked.received.drip(body, 0.15)


def _endless(first: bytes, again: bytes) -> Mode:
    def send(asked: Asked) -> None:
        asked.received.send(first)
        asked.received.for_ever(again)

    return send


_OK = b"HTTP/1.1 200 OK\r\n"
_TYPE = b"content-type: application/json\r\n"

MODES: Mapping[str, Mode] = {
    "right": _whole(),
    # what stands before the body
    "nothing": lambda asked: asked.received.drop(),
    "reset": lambda asked: asked.received.reset(),
    "no-http": _raw(b"HELLO\r\n\r\n"),
    "other-protocol": _raw(b"\x15\x03\x01\x00\x02\x02\x16"),
    "odd-status": _raw(b"HTTP/1.1 99999 Odd\r\n\r\n"),
    "negative-status": _raw(b"HTTP/1.1 -20 Odd\r\n\r\n"),
    "status-101": _raw(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: odd\r\nconnection: upgrade\r\n\r\n"),
    "status-204": _raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status-304": _raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "status-300-without-address": _body(b"{}", status="300 Multiple Choices"),
    "status-999": _body(b"{}", status="999 Odd"),
    "endless-100": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "endless-headers": _endless(_OK, b"x-more: 1\r\n" * 500),
    "endless-header": _endless(_OK + b"x-long: ", b"y" * 65_536),
    "large-header": _whole("x-large: " + "y" * 60_000),
    "many-headers": _whole(*(f"x-{number}: 1" for number in range(3_000))),
    "header-without-colon": _raw(_OK + b"what\r\n\r\n{}"),
    "header-with-nul": _raw(_OK + b"x-odd: \x00\r\ncontent-length: 2\r\n\r\n{}"),
    "header-of-odd-bytes": _whole("x-request-id: \x1b]0;pwned\x07::error::pwned", "request-id: \udcff\udcfe"),
    # how long the body is said to be
    "half-a-body": lambda asked: asked.received.send(http_answer(good(asked), length=len(good(asked)) * 2)),
    "length-negative": _whole(length=-5),
    "length-absurd": _whole(length="9" * 400),
    "length-of-words": _whole(length="many"),
    "two-lengths": _whole("content-length: 3"),
    "chunk-without-end": _chunked(b"4\r\n{\"a\""),
    "chunk-negative": _chunked(b"-1\r\n\r\n"),
    "chunk-absurd": _chunked(b"f" * 64 + b"\r\n{}"),
    "chunks-endless": _endless(
        _OK + _TYPE + b"transfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65_536 + b"\r\n"
    ),
    "endless-body": _endless(_OK + _TYPE + b"\r\n", b" " * 65_536),
    "drip-headers": _drip_headers,
    "drip-body": _drip_body,
    # how the body is packed and written
    "gzip-bomb": _packed("gzip"),
    "gzip-bomb-twice": _packed("gzip, gzip", gzip.compress),
    "gzip-half": _packed("gzip", lambda packed: packed[: len(packed) // 2]),
    "gzip-of-nothing": _body(b"", "content-encoding: gzip"),
    "no-gzip": _whole("content-encoding: gzip"),
    "packed-oddly": _whole("content-encoding: " + "gzip, " * 30 + "odd"),
    "utf-16": _recoded("utf-16"),
    "utf-7": _recoded("utf-8", "utf-7"),
    "latin-1": _body(b'{"a": "\xe9\xff"}', "content-type: application/json; charset=latin-1"),
    "charset-odd": _recoded("utf-8", "\x1bodd/../x"),
    "byte-order-mark": _recoded("utf-8-sig"),
    # what the body says
    "empty": _body(b""),
    "html": _body(b"<!doctype html><title>Sign in</title>"),
    "null": _body(b"null"),
    "number": _body(b"5"),
    "digits": _body(b"9" * 100_000),
    "deep": _body(b"[" * 200_000),
    "deep-object": _body(b'{"error":' * 100_000 + b"1" + b"}" * 100_000),
    "deep-error": _body(b'{"error":' * 100_000 + b"1" + b"}" * 100_000, status="500 Odd"),
    "error-of-odd-types": _body(b'{"error": {"message": {"a": [1]}, "code": [], "details": 7}}', status="500 Odd"),
    "error-in-a-list": _body(b'[{"error": [{"message": null}]}]', status="503 Odd"),
    "error-for-ever": _endless(b"HTTP/1.1 500 Odd\r\n\r\n", b"x" * 65_536),
    "error-of-bytes": _body(bytes(range(256)) * 40, status="502 Odd"),
    "retry-after-ages": _body(b"{}", "retry-after: " + "9" * 300, status="429 Odd"),
    "retry-after-odd": _body(
        b"{}", "retry-after: Mon, 99 Foo 0000 99:99:99 +9999", "retry-after-ms: nan", status="429 Odd"
    ),
    "retry-after-past": _body(b"{}", "retry-after: -5", status="503 Odd"),
    "surrogates": _body(b'{"id": "\\ud800", "model": "\\udfff", "choices": "\\ud800"}'),
    # keys
    "echo": _echo("200 OK"),
    "echo-400": _echo("400 Odd"),
    "echo-500": _echo("500 Odd"),
}  # fmt: skip


class RawServer(VendorServer):
    """What a test holds: the address, and how often each mode was asked for."""

    def __init__(self, modes: Mapping[str, Mode]) -> None:
        super().__init__()
        self.modes = modes
        self.asked: Counter[str] = Counter()

    def behaviour(self, asked: Asked) -> Mode:
        mode = _MODE.search(asked.received.raw)
        assert mode is not None, asked.received.raw
        name = mode[1].decode()
        self.asked[name] += 1
        return self.modes[name]


def raw_server(modes: Mapping[str, Mode] = MODES) -> AbstractContextManager[RawServer]:
    """A server on a free port whose right answer holds the word RIGHT; stopped afterwards."""
    return serve(RawServer(modes))
