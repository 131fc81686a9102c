"""A server on the loopback that writes raw bytes: what no HTTP library would send. Each request says what it gets.

A request holds the word `mode-<name>` somewhere in its body (the document of a case does), and `MODES[name]` answers.
"""

import base64
import gzip
import json
import re
import socket
import socketserver
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import quote

from tests.support.vendor_dialects import Answer, dialect_of

_MODE = re.compile(rb"mode-([a-z0-9-]+)")
_MEGABYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: its connection, the key it brought, and the body of a right answer to it in its vendor's words."""

    connection: socket.socket
    key: str
    good: bytes
    stopping: threading.Event

    def send(self, *parts: bytes) -> None:
        """Write bytes as they are."""
        self.connection.sendall(b"".join(parts))

    def drip(self, content: bytes, every_s: float) -> None:
        """Write byte by byte."""
        for byte in content:
            self.send(bytes([byte]))
            if self.stopping.wait(every_s):
                return

    def for_ever(self, content: bytes) -> None:
        """Write the same again and again, until the client hangs up."""
        while not self.stopping.is_set():
            self.send(content)


Mode = Callable[[Asked], None]


def http_answer(body: bytes, *headers: str, status: str = "200 OK", length: int | str | None = None) -> bytes:
    """An answer in HTTP, its length as it is unless said otherwise."""
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", *headers]
    lines.append(f"content-length: {len(body) if length is None else length}")
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def _whole(*headers: str, status: str = "200 OK", **how: int | str) -> Mode:
    return lambda asked: asked.send(http_answer(asked.good, *headers, status=status, **how))


def _body(content: bytes, *headers: str, status: str = "200 OK") -> Mode:
    return lambda asked: asked.send(http_answer(content, *headers, status=status))


def _raw(content: bytes) -> Mode:
    return lambda asked: asked.send(content)


def _recoded(encoding: str, name: str = "") -> Mode:
    charset = f"content-type: application/json; charset={name or encoding}"
    return lambda asked: asked.send(http_answer(asked.good.decode().encode(encoding), charset))


def _reset(asked: Asked) -> None:
    asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    asked.connection.close()


def _chunked(*chunks: bytes) -> Mode:
    return lambda asked: asked.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n", *chunks
    )


def _bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    return b"".join([*(packer.compress(b" " * _MEGABYTE) for _ in range(megabytes)), packer.flush()])


def spellings(key: str) -> list[str]:
    """Return a key in the spellings that a server may repeat it in."""
    raw = key.encode()
    return [
        key,
        key.upper(),
        key.lower(),
        quote(key, safe=""),
        "".join(f"%{byte:02X}" for byte in raw),
        "".join(f"\\u{byte:04x}" for byte in raw),
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
            asked.send(http_answer(asked.good.replace(b"RIGHT", json.dumps(said).encode()[1:-1]), header))
        else:
            asked.send(
                http_answer(json.dumps({"error": {"message": said, "code": said}}).encode(), header, status=status)
            )

    return send


def _drip_headers(asked: Asked) -> None:
    asked.drip(http_answer(asked.good), 0.15)


def _drip_body(asked: Asked) -> None:
    head, _, body = http_answer(asked.good).partition(b"\r\n\r\n")
    asked.send(head, b"\r\n\r\n")
    asked.drip(body, 0.15)


def _endless(first: bytes, again: bytes) -> Mode:
    def send(asked: Asked) -> None:
        asked.send(first)
        asked.for_ever(again)

    return send


_OK = b"HTTP/1.1 200 OK\r\n"
_TYPE = b"content-type: application/json\r\n"
_BOMB = _bomb(100)

MODES: Mapping[str, Mode] = {
    "right": _whole(),
    # what stands before the body
    "nothing": lambda asked: None,
    "reset": _reset,
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
    "half-a-body": lambda asked: asked.send(http_answer(asked.good, length=len(asked.good) * 2)),
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
    "gzip-bomb": _body(_BOMB, "content-encoding: gzip"),
    "gzip-bomb-twice": _body(gzip.compress(_BOMB), "content-encoding: gzip, gzip"),
    "gzip-half": _body(_BOMB[: len(_BOMB) // 2], "content-encoding: gzip"),
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


class RawServer:
    """What a test holds: the address, and how often each mode was asked for."""

    def __init__(self, text: str, modes: Mapping[str, Mode]) -> None:
        self.text = text
        self.modes = modes
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.stopping = threading.Event()


@contextmanager
def raw_server(text: str, modes: Mapping[str, Mode] = MODES) -> Iterator[RawServer]:
    """A server on a free port whose right answer is a text, which may hold the word RIGHT; stopped afterwards."""
    server = RawServer(text, modes)
    tcp = _Server(("127.0.0.1", 0), type("BoundHandler", (_Handler,), {"raw": server}))
    server.url = f"http://127.0.0.1:{tcp.server_address[1]}"
    thread = threading.Thread(target=tcp.serve_forever, kwargs={"poll_interval": 0.01}, name="raw-server")
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        tcp.shutdown()
        tcp.server_close()
        thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: that a client hangs up is what most of this is for."""


class _Handler(socketserver.BaseRequestHandler):
    raw: RawServer

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(20)
        with suppress(OSError):
            head, body = _read_request(connection)
            found = _MODE.search(body)
            path, headers = _read_head(head)
            dialect = dialect_of(path)
            if found is None or dialect is None:
                connection.sendall(b"HTTP/1.1 500 no mode\r\ncontent-length: 0\r\n\r\n")
                return
            name = found[1].decode()
            self.raw.asked[name] += 1
            header, before = dialect.key_header
            good = json.dumps(dialect.answer(Answer(text=self.raw.text))[0]).encode()
            key = headers.get(header, "").removeprefix(before)
            self.raw.modes[name](Asked(connection=connection, key=key, good=good, stopping=self.raw.stopping))


def _read_request(connection: socket.socket) -> tuple[bytes, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65_536) or _gone()
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: (\d+)", head)
    while length is not None and len(body) < int(length[1]):
        body += connection.recv(65_536) or _gone()
    return head, body


def _gone() -> bytes:
    raise ConnectionError("the client hung up")


def _read_head(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return first.split(" ")[1].partition("?")[0], {name.lower(): value for name, _, value in pairs}
