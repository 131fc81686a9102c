"""A real HTTP server on the loopback that speaks the vendors' APIs and misbehaves by a script.

`server.enqueue(...)` says what the next requests meet, in order; with nothing queued each gets `server.default`.
Every request is kept in `server.received`.
"""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.http_server import JoiningServer, serving
from tests.support.vendor_dialects import Answer, Dialect, dialect_of, key_in

Headers = Mapping[str, str | Callable[[], str]]  # a date is computed when it is sent


@dataclass(frozen=True, slots=True)
class Status:
    """An error status, its body worded as the vendor would, or given whole: as JSON, or bytes for an HTML page."""

    code: int
    headers: Headers = field(default_factory=dict)
    message: str = "scripted error"
    body: Any = None


@dataclass(frozen=True, slots=True)
class Body:
    """A 200 with this JSON, whatever it is."""

    content: Any


@dataclass(frozen=True, slots=True)
class DropBefore:
    """The request is read, then the connection closed without a byte."""


@dataclass(frozen=True, slots=True)
class DropMidBody:
    """Headers and half of the body, then the connection is closed."""


@dataclass(frozen=True, slots=True)
class Hang:
    """No byte for so long, then the connection is closed."""

    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class SlowFirstByte:
    """The usual answer, later."""

    seconds: float = 0.3


@dataclass(frozen=True, slots=True)
class Malformed:
    """A 200 that says it is JSON and is not (or not the JSON that was promised)."""

    raw: bytes = b'{"id": "cut off he'


@dataclass(frozen=True, slots=True)
class Endless:
    """A body that never ends, as fast as it is read; `sent` counts its bytes."""

    code: int = 200
    sent: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A proxy's page, with 200."""

    raw: bytes = b"<!doctype html><html><body>Sign in to the network</body></html>"


@dataclass(frozen=True, slots=True)
class EchoKey:
    """Repeats the key it was sent: in an error body, or with 200 in the answer's text."""

    code: int = 401


def Empty() -> Answer:  # noqa: N802 - a behaviour like the classes above
    """A finished answer without any text."""
    return Answer(text="")


def Refusal(text: str = "I cannot help with that") -> Answer:  # noqa: N802
    """The model refuses."""
    return Answer(text=text, stop="refusal")


def Truncated(text: str = '{"title": "cut o') -> Answer:  # noqa: N802
    """The answer hit the output limit."""
    return Answer(text=text, stop="length")


Behaviour = (
    Answer | Status | Body | DropBefore | DropMidBody | Hang | SlowFirstByte | Malformed | Endless | HtmlPage | EchoKey
)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


class VendorServer:
    """What the tests hold: the script, the record, and the address."""

    def __init__(self) -> None:
        self.default: Behaviour = Answer()
        self.received: list[Received] = []
        self.stopping = threading.Event()
        self._script: deque[Behaviour] = deque()
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.url = ""

    def enqueue(self, *behaviours: Behaviour) -> None:
        """Script what the next requests meet."""
        self._script.extend(behaviours)

    def next_behaviour(self, request: Received) -> Behaviour:
        """Record a request and take its behaviour off the script."""
        with self._lock:
            self.received.append(request)
            return self._script.popleft() if self._script else self.default

    def connection_opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def connection_closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._connections)

    def wait_until_nobody_is_connected(self, seconds: float = 5.0) -> int:
        """How many connections are still open after at most so long."""
        deadline = time.monotonic() + seconds
        while self._connections and time.monotonic() < deadline:
            time.sleep(0.005)
        return len(self._connections)

    def disconnect_all(self) -> None:
        """Break every connection, so that no handler keeps waiting for a request."""
        with self._lock:
            for connection in self._connections:
                _shut(connection)


@contextmanager
def vendor_server() -> Iterator[VendorServer]:
    """A server on a free port, stopped and emptied afterwards."""
    server = VendorServer()
    http = _HttpServer(("127.0.0.1", 0), type("BoundHandler", (_Handler,), {"vendor": server}))
    with serving(http, server.stopping.set) as server.url:
        yield server


class _HttpServer(JoiningServer):
    def server_close(self) -> None:
        """Break the connections first, for which the handlers wait that are joined."""
        self.RequestHandlerClass.vendor.disconnect_all()  # type: ignore[attr-defined]
        super().server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    vendor: VendorServer

    def setup(self) -> None:
        super().setup()
        self.vendor.connection_opened(self.connection)

    def finish(self) -> None:
        self.vendor.connection_closed(self.connection)
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.path, headers, json.loads(raw))
        behaviour = self.vendor.next_behaviour(received)
        dialect = dialect_of(self.path.partition("?")[0])
        if dialect is None:
            self._send(404, {"error": f"no such path: {self.path}"})
        else:
            self._behave(behaviour, dialect, headers)

    def _behave(self, behaviour: Behaviour, dialect: Dialect, headers: Mapping[str, str]) -> None:
        match behaviour:
            case Answer():
                self._send(200, *dialect.answer(behaviour))
            case SlowFirstByte(seconds):
                self.vendor.stopping.wait(seconds)
                self._send(200, *dialect.answer(Answer()))
            case Status(code, extra, _, bytes() as page):
                self._send_raw(code, page, "text/html", extra)
            case Status(code, extra, message, body):
                self._send(code, dialect.error(code, message) if body is None else body, extra)
            case Body(content):
                self._send(200, content)
            case EchoKey(200):
                self._send(200, *dialect.answer(Answer(text=f"your key is {key_in(headers, dialect)}")))
            case EchoKey(code):
                self._send(code, dialect.error(code, f"incorrect API key provided: {key_in(headers, dialect)}"))
            case Malformed(raw):
                self._send_raw(200, raw, "application/json")
            case Endless(code, sent):
                self._send_for_ever(code, sent)
            case HtmlPage(raw):
                self._send_raw(200, raw, "text/html; charset=utf-8")
            case Hang(seconds):
                self._wait_for_hang_up(seconds)
                self._drop()
            case DropMidBody():
                body, extra = dialect.answer(Answer())
                self._send(200, body, extra, cut=True)
                self._drop()
            case DropBefore():
                self._drop()

    def _send(self, code: int, body: Any, headers: Headers | None = None, *, cut: bool = False) -> None:
        self._send_raw(code, json.dumps(body).encode(), "application/json", headers, cut=cut)

    def _send_raw(
        self, code: int, raw: bytes, content_type: str, headers: Headers | None = None, *, cut: bool = False
    ) -> None:
        self.send_response(code)
        sent: Headers = {"content-type": content_type, "content-length": str(len(raw)), **(headers or {})}
        for name, value in sent.items():
            self.send_header(name, value() if callable(value) else value)
        self.end_headers()
        self.wfile.write(raw[: len(raw) // 2] if cut else raw)
        self.wfile.flush()

    def _send_for_ever(self, code: int, sent: list[int]) -> None:
        self.close_connection = True
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.end_headers()
        with suppress(OSError):  # that the client hangs up is what this waits for
            while not self.vendor.stopping.is_set():
                sent.append(self.wfile.write(b" " * 65_536))

    def _wait_for_hang_up(self, seconds: float) -> None:
        self.connection.settimeout(seconds)
        with suppress(OSError):
            self.connection.recv(1)  # nothing more is sent: this returns when the client gives up

    def _drop(self) -> None:
        self.close_connection = True
        _shut(self.connection)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # the other side was first
        connection.shutdown(socket.SHUT_RDWR)
