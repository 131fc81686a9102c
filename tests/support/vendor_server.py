"""A vendor on the loopback: it checks the key, speaks the dialect that the address names, and fails as scripted.

`server.enqueue(...)` scripts the next requests in order; without a script each request gets `server.default`.
The first part of a path names the dialect (`address_of`); any other address is OpenAI's. Every request is kept in
`server.received`.
"""

import json
import re
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.http_server import Headers, Received, Server, serve
from tests.support.vendor_dialects import DIALECTS, Answer, Dialect

_ONE_TOKEN = re.compile(r"((Bearer|Basic) )?[!-+\--~]+")  # no space and no comma: two keys are not one


@dataclass(frozen=True, slots=True)
class Asked:
    received: Received
    dialect: Dialect

    @property
    def key(self) -> str:
        """The key that the request was sent with."""
        name, prefix = self.dialect.key_header
        return self.received.headers.get(name, "").removeprefix(prefix)

    @property
    def has_valid_key(self) -> bool:
        """Whether the vendor's header, or `authorization`, holds one token."""
        headers = self.received.headers
        value = headers.get(self.dialect.key_header[0]) or headers.get("authorization", "")
        return _ONE_TOKEN.fullmatch(value) is not None

    def answer(self, answer: Answer, *, cut: bool = False) -> None:
        self.received.reply(200, *self.dialect.answer(answer), cut=cut)

    def refuse(self, status: int, message: str, headers: Headers | None = None) -> None:
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
    return Malformed(json.dumps(content).encode())


def Malformed(raw: bytes = b'{"id": "cut off he') -> Behaviour:
    """A 200 whose body is not the JSON that its header promises."""
    return lambda asked: asked.received.reply(200, raw)


def DropBefore() -> Behaviour:
    return lambda asked: asked.received.drop()


def DropMidBody() -> Behaviour:
    """The connection is closed after half of the body."""
    return lambda asked: asked.answer(Answer(), cut=True)


def Hang(seconds: float = 30.0) -> Behaviour:
    """No byte for that long, then the connection is closed."""
    return lambda asked: asked.received.wait_for_hang_up(seconds)


def Refusal(text: str = "I cannot help with that") -> Answer:
    return Answer(text=text, stop="refusal")


def Truncated(text: str = '{"title": "cut o') -> Answer:
    return Answer(text=text, stop="length")


@dataclass(frozen=True, slots=True)
class Endless:
    """A body that never ends, as fast as it is read; `sent` counts its bytes."""

    code: int = 200
    sent: list[int] = field(default_factory=list)

    def __call__(self, asked: Asked) -> None:
        asked.received.send(b"HTTP/1.1 %d Odd\r\ncontent-type: application/json\r\n\r\n" % self.code)
        asked.received.for_ever(b" " * 65_536, self.sent)


class VendorServer(Server):
    """The server with its script. A subclass whose answers depend on the request overrides `behaviour`."""

    def __init__(self) -> None:
        super().__init__()
        self.default: Behaviour = Answer()
        self.received: list[Received] = []
        self._script: deque[Behaviour] = deque()
        self._lock = threading.Lock()

    def enqueue(self, *behaviours: Behaviour) -> None:
        self._script.extend(behaviours)

    def behaviour(self, asked: Asked) -> Behaviour:
        """Keep a request, and return the next behaviour of the script."""
        with self._lock:
            self.received.append(asked.received)
            return self._script.popleft() if self._script else self.default

    def handle(self, received: Received) -> None:
        """Answer in the dialect of the address; 401 without one valid key, 404 for an unknown path."""
        vendor, _, rest = received.path[1:].partition("/")
        if vendor in DIALECTS:
            received = replace(received, path=f"/{rest}")
        asked = Asked(received, DIALECTS.get(vendor) or DIALECTS["openai"])
        if not asked.dialect.paths.fullmatch(received.route):
            asked.refuse(404, f"no such path: {received.path}")
        elif not asked.has_valid_key:
            asked.refuse(401, "a request needs one key")
        elif isinstance(behaviour := self.behaviour(asked), Answer):
            asked.answer(behaviour)
        else:
            behaviour(asked)


def vendor_server() -> AbstractContextManager[VendorServer]:
    return serve(VendorServer())
