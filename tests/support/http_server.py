"""The HTTP server of the tests: on the loopback, in a thread beside a test, and it ends with it.

A function handles each request: it replies, or it writes to the connection what no HTTP library would send.
"""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from unittest.mock import patch
from urllib.parse import parse_qsl, urlsplit

Headers = Mapping[str, str | Callable[[], str]]  # a date is computed when it is sent


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived, header names in lower case, and the connection it came over.

    A reply keeps the connection. Whatever else is written to it ends it.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    handler: BaseHTTPRequestHandler = field(repr=False)
    stopping: threading.Event = field(repr=False)

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def route(self) -> str:
        return urlsplit(self.path).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.path).query))

    def reply(self, status: int, body: Any, headers: Headers | None = None, *, cut: bool = False) -> None:
        """Send a body, bytes as they are and anything else as JSON; `cut` sends half of it and hangs up."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.handler.send_response(status)
        usual: Headers = {"content-type": "application/json", "content-length": str(len(raw))}
        for name, value in {**usual, **(headers or {})}.items():
            self.handler.send_header(name, value() if callable(value) else value)
        self.handler.end_headers()
        if self.method != "HEAD":
            self.handler.wfile.write(raw[: len(raw) // 2] if cut else raw)
        if cut:
            self.drop()

    def send(self, *parts: bytes) -> None:
        self.handler.close_connection = True
        self.handler.connection.sendall(b"".join(parts))

    def drip(self, content: bytes, every_s: float) -> None:
        """Write byte by byte."""
        for byte in content:
            self.send(bytes([byte]))
            if self.stopping.wait(every_s):
                return

    def for_ever(self, content: bytes, sent: list[int] | None = None) -> None:
        """Write the same again and again, until the client hangs up; `sent` gets the number of bytes each time."""
        while not self.stopping.is_set():
            self.send(content)
            if sent is not None:
                sent.append(len(content))

    def wait_for_hang_up(self, seconds: float) -> None:
        """Send nothing until the client gives up, but at most for so long."""
        self.handler.close_connection = True
        self.handler.connection.settimeout(seconds)
        self.handler.connection.recv(1)

    def drop(self) -> None:
        self.handler.close_connection = True
        _shut(self.handler.connection)

    def reset(self) -> None:
        """Hang up as a machine does that knows of no connection."""
        self.handler.close_connection = True
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.connection.close()


class Server:
    """A running server: its address, and the connections that are open."""

    def __init__(self) -> None:
        self.url = ""
        self.stopping = threading.Event()  # releases handlers that wait
        self.opened = 0  # connections so far
        self.version: str | None = None  # what `GET …/version` answers
        self.asked_version = 0
        self._connections: set[socket.socket] = set()

    @property
    def connections(self) -> int:
        return len(self._connections)

    def handle(self, received: Received) -> None:
        """Reply to a request."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=Server)


class _HttpServer(ThreadingHTTPServer):
    """A server that waits for its handlers when it is closed, and prints nothing about killed clients."""

    request_queue_size = 128
    daemon_threads = False
    served: Server

    def process_request(self, request: Any, client_address: Any) -> None:
        self.served.opened += 1
        self.served._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.served._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for connection in list(self.served._connections):
            _shut(connection)  # its handler waits for a request
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 20
    served: Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        raw = self.rfile.read(length := int(self.headers.get("content-length") or 0))
        if len(raw) < length:  # the client hung up
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path, headers, raw, self, self.served.stopping)
        with suppress(OSError):  # the client may be gone by now
            if received.method == "GET" and received.path.endswith("/version"):
                self.served.asked_version += 1
                status = 200 if self.served.version else 404
                received.reply(status, {"version": self.served.version} if self.served.version else b"")
            else:
                self.served.handle(received)

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 (the library calls them so)


@contextmanager
def serve(server: Kind, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Kind]:
    """Run a server on a port (0: a free one) until the end of the block."""
    http = _HttpServer(("127.0.0.1", port), type("BoundHandler", (_Handler,), {"served": server}))
    http.served = server
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{http.server_address[1]}"
    # Without TLS nobody needs the system's certificates, and to load them takes each client 30 ms.
    trust = nullcontext() if tls else patch("ssl.SSLContext.load_verify_locations")
    if tls:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    with trust, serving(http, server.stopping.set):
        yield server


@contextmanager
def serving(http: ThreadingHTTPServer, stopping: Callable[[], object] = lambda: None) -> Iterator[str]:
    """Serve until the end of the block, and yield the address; `stopping` lets handlers go that wait for something."""
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        stopping()
        http.shutdown()
        http.server_close()
        thread.join()


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # the other side was first
        connection.shutdown(socket.SHUT_RDWR)
