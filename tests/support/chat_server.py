"""The loopback vendor with answers that depend on the request, and a count of the requests by case and seed.

The documents of `tests.support.library` begin with their case id, by which the server knows the case.
"""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import vendor_server
from tests.support.http_server import serve
from tests.support.vendor_dialects import Answer

Key = tuple[str, int]  # (case id, seed of the replicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request; `times` counts the requests for this case and seed so far, this one included."""

    case_id: str
    seed: int
    times: int
    key: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server sends: with status 200 `text` is the completion, otherwise the message of the error.

    `fields` replace those of a completion's body; `raw` is a whole body in place of everything else.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    served_model: str | None = None  # None: the requested one
    input_tokens: int = 40
    output_tokens: int = 20
    delay_s: float = 0.0
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: bytes | None = None


def notice(case_id: str, year: int = 2024) -> str:
    """Return the right output for a case of `tests.support.library`, or one with another year."""
    return json.dumps({"title": case_id, "year": year})


def varied(asked: Asked) -> Reply:
    """Answer rightly unless 3 divides the seed, so that replicates differ and equal seeds get equal answers."""
    return Reply(text=notice(asked.case_id, 1999 if asked.seed % 3 == 0 else 2024))


class ChatServer(vendor_server.VendorServer):
    """The server: `reply` computes each answer, `times` counts the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.reply: Callable[[Asked], Reply] = varied
        self.times: Counter[Key] = Counter()
        self.most_in_flight = 0
        self._in_flight = 0

    @property
    def requests(self) -> int:
        """Requests that arrived, repeated ones included."""
        return self.times.total()

    @property
    def repeated(self) -> list[Key]:
        """The cases and seeds that were requested more than once."""
        return [key for key, times in self.times.items() if times > 1]

    def seeds(self, case_id: str) -> set[int]:
        return {seed for requested, seed in self.times if requested == case_id}

    def forget(self) -> None:
        """Reset the counts."""
        self.times.clear()

    def behaviour(self, asked: vendor_server.Asked) -> vendor_server.Behaviour:
        """Count a request, and return the reply to it after its delay."""
        body = asked.received.body
        content, seed = body["messages"][-1]["content"], body["seed"]
        text = content if isinstance(content, str) else next(part["text"] for part in content if "text" in part)
        case_id = text.split()[0]
        with self._lock:
            self.times[case_id, seed] += 1
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            times = self.times[case_id, seed]
        try:
            reply = self.reply(Asked(case_id=case_id, seed=seed, times=times, key=asked.key, body=body))
            self.stopping.wait(reply.delay_s)
        finally:
            with self._lock:
                self._in_flight -= 1
        tokens, served = (reply.input_tokens, reply.output_tokens), reply.served_model or str(body.get("model"))
        answer, _ = asked.dialect.answer(Answer(text=reply.text, usage=tokens, served_model=served))
        sent = {**answer, **reply.fields} if reply.status == 200 else {"error": {"message": reply.text}}
        return lambda asked: asked.received.reply(reply.status, sent if reply.raw is None else reply.raw, reply.headers)


@contextmanager
def chat_server(port: int = 0) -> Iterator[ChatServer]:
    """Serve on a port (0: a free one) until the block ends."""
    with serve(ChatServer(), port) as server:
        server.url += "/v1"
        yield server


@contextmanager
def killed_at(server: ChatServer, request: int, folder: Path) -> Iterator[None]:
    """Restore a folder to its state at a request, as a kill at that moment would leave it."""
    reply, kept, lock = server.reply, folder.with_name(f"{folder.name}-as-killed"), threading.Lock()

    def noting(asked: Asked) -> Reply:
        with lock:
            if server.requests >= request and not kept.exists():
                shutil.copytree(folder, kept)
        return reply(asked)

    server.reply = noting
    yield
    server.reply = reply
    shutil.rmtree(folder)
    kept.rename(folder)
