"""A server on the loopback that speaks the vendors' APIs and misbehaves by a script.

`server.enqueue(...)` says what the next requests meet, in order; with nothing queued each gets `server.default`.
Every request is kept in `server.received`. The first part of a path names the dialect (`DIALECTS`): see `address_of`.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.http_server import Headers, Received, Server, serve
from tests.support.vendor_dialects import DIALECTS, Answer, Dialect


@dataclass(frozen=True, slots=True)
class Asked:
    """One request in the dialect of its vendor."""

    received: Received
    dialect: Dialect

    @property
    def key(self) -> str:
        """The key that the request was sent with."""
        name, prefix = self.dialect.key_header
        return self.received.headers.get(name, "").removeprefix(prefix)

    def answer(self, answer: Answer, *, cut: bool = False) -> None:
        """Reply with an answer in the vendor's words."""
        self.received.reply(200, *self.dialect.answer(answer), cut=cut)

    def refuse(self, status: int, message: str, headers: Headers | None = None) -> None:
        """Reply with an error in the vendor's words."""
        self.received.reply(status, self.dialect.error(status, message), headers)


Behaviour = Answer | Callable[[Asked], None]


@dataclass(frozen=True, slots=True)
class Status:
    """A status with an error worded as the vendor would, or with a body: as JSON, or bytes for an HTML page."""

    code: int
    headers: Headers = field(default_factory=dict)
    message: str = "scripted error"
    body: Any = None

    def __call__(self, asked: Asked) -> None:
        if self.body is None:
            asked.refuse(self.code, self.message, self.headers)
        else:
            kind = {"content-type": "text/html"} if isinstance(self.body, bytes) else {}
            asked.received.reply(self.code, self.body, {**kind, **self.headers})


# The behaviours below are functions and are called like the classes beside them.
# ruff: noqa: N802


def Body(content: Any) -> Behaviour:
    """A 200 with this JSON, whatever it is."""
    return Malformed(json.dumps(content).encode())


def Malformed(raw: bytes = b'{"id": "cut off he') -> Behaviour:
    """A 200 that says it is JSON and is not (or not the JSON that was promised)."""
    return lambda asked: asked.received.reply(200, raw)


def DropBefore() -> Behaviour:
    """The request is read, then the connection closed without a byte."""
    return lambda asked: asked.received.drop()


def DropMidBody() -> Behaviour:
    """Headers and half of the body, then the connection is closed."""
    return lambda asked: asked.answer(Answer(), cut=True)


@dataclass(frozen=True, slots=True)
class Hang:
    """No byte for so long, then the connection is closed."""

    seconds: float = 30.0

    def __call__(self, asked: Asked) -> None:
        asked.received.wait_for_hang_up(self.seconds)


@dataclass(frozen=True, slots=True)
class Endless:
    """A body that never ends, as fast as it is read; `sent` counts its bytes."""

    code: int = 200
    sent: list[int] = field(default_factory=list)

    def __call__(self, asked: Asked) -> None:
        asked.received.send(b"HTTP/1.1 %d Odd\r\ncontent-type: application/json\r\n\r\n" % self.code)
        asked.received.for_ever(b" " * 65_536, self.sent)


def Refusal(text: str = "I cannot help with that") -> Answer:
    """The model refuses."""
    return Answer(text=text, stop="refusal")


def Truncated(text: str = '{"title": "cut o') -> Answer:
    """The answer hit the output limit."""
    return Answer(text=text, stop="length")


class VendorServer(Server):
    """What the tests hold: the script, the record, and the address.

    A server whose answers are a function of the request, and no script, has another `behaviour`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.default: Behaviour = Answer()
        self.received: list[Received] = []
        self._script: deque[Behaviour] = deque()
        self._lock = threading.Lock()

    def enqueue(self, *behaviours: Behaviour) -> None:
        """Script what the next requests meet."""
        self._script.extend(behaviours)

    def behaviour(self, asked: Asked) -> Behaviour:
        """Keep a request and take what it meets off the script."""
        with self._lock:
            self.received.append(asked.received)
            return self._script.popleft() if self._script else self.default

    def handle(self, received: Received) -> None:
        """Behave to a request as its dialect does; an address that names none is one of OpenAI's chat."""
        vendor, _, rest = received.path[1:].partition("/")
        if vendor in DIALECTS:
            received = replace(received, path=f"/{rest}")
        asked = Asked(received, DIALECTS.get(vendor) or DIALECTS["openai"])
        behaviour = self.behaviour(asked)
        if not asked.dialect.paths.fullmatch(received.route):
            asked.refuse(404, f"no such path: {received.path}")
        elif isinstance(behaviour, Answer):
            asked.answer(behaviour)
        else:
            behaviour(asked)

    def wait_until_nobody_is_connected(self, seconds: float = 5.0) -> int:
        """How many connections are still open after at most so long."""
        deadline = time.monotonic() + seconds
        while self.connections and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.connections


def vendor_server() -> AbstractContextManager[VendorServer]:
    """A server on a free port, stopped and emptied afterwards."""
    return serve(VendorServer())
