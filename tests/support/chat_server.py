"""A chat-completions server on the loopback whose answer is a function of the request, and which counts requests.

The documents of `tests.support.library` begin with their case id, which is how it knows whose request it got.
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

from tests.support.http_server import Received, Server, serve
from tests.support.vendor_dialects import DIALECTS, Answer

_CHAT = DIALECTS["openai-compatible"]
Key = tuple[str, int]  # (case id, seed of the replicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request; `times` counts how often this (case, seed) has been asked by now, this time included."""

    case_id: str
    seed: int
    times: int
    key: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server says: with status 200 `text` is the completion, else the message of the error.

    `fields` are those of a completion's body that are otherwise; `raw` is a whole body in place of all that.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    served_model: str | None = None  # None: the one that is asked for
    input_tokens: int = 40
    output_tokens: int = 20
    delay_s: float = 0.0
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: bytes | None = None


def notice(case_id: str, year: int = 2024) -> str:
    """The answer that is right for a case of `tests.support.library`, or wrong by its year."""
    return json.dumps({"title": case_id, "year": year})


def varied(asked: Asked) -> Reply:
    """Right, save for the seeds that 3 divides: so replicates differ, and equal seeds are answered equally."""
    return Reply(text=notice(asked.case_id, 1999 if asked.seed % 3 == 0 else 2024))


class ChatServer(Server):
    """What a test holds: the function that answers, and what was asked so far."""

    def __init__(self) -> None:
        super().__init__()
        self.reply: Callable[[Asked], Reply] = varied
        self.times: Counter[Key] = Counter()
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()

    @property
    def requests(self) -> int:
        """Requests that arrived, repeated ones included."""
        return self.times.total()

    @property
    def repeated(self) -> list[Key]:
        """What was asked more than once."""
        return [key for key, times in self.times.items() if times > 1]

    def seeds(self, case_id: str) -> set[int]:
        """The seeds one case was asked with."""
        return {seed for asked, seed in self.times if asked == case_id}

    def forget(self) -> None:
        """Count from nothing again."""
        self.times.clear()

    def handle(self, received: Received) -> None:
        """Count a request and reply after the delay of what answers it."""
        reply = self._reply_to(received.body, received.headers.get("authorization", "").removeprefix("Bearer "))
        tokens = (reply.input_tokens, reply.output_tokens)
        served = reply.served_model or str(received.body.get("model"))
        answer, _ = _CHAT.answer(Answer(text=reply.text, usage=tokens, served_model=served))
        body = {**answer, **reply.fields} if reply.status == 200 else {"error": {"message": reply.text}}
        received.reply(reply.status, body if reply.raw is None else reply.raw, reply.headers)

    def _reply_to(self, body: Mapping[str, Any], key: str) -> Reply:
        content, seed = body["messages"][-1]["content"], body["seed"]
        text = content if isinstance(content, str) else next(part["text"] for part in content if "text" in part)
        case_id = text.split()[0]
        with self._lock:
            self.times[case_id, seed] += 1
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            times = self.times[case_id, seed]
        try:
            reply = self.reply(Asked(case_id=case_id, seed=seed, times=times, key=key, body=body))
            self.stopping.wait(reply.delay_s)
            return reply
        finally:
            with self._lock:
                self._in_flight -= 1


@contextmanager
def chat_server(port: int = 0) -> Iterator[ChatServer]:
    """A server on a port (0: a free one), stopped and joined afterwards."""
    with serve(ChatServer(), port) as server:
        server.url += "/v1"
        yield server


@contextmanager
def killed_at(server: ChatServer, request: int, folder: Path) -> Iterator[None]:
    """Leave a folder as it is while that request is asked: as a kill leaves it, whatever is done in it afterwards."""
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
