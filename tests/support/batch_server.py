"""The batch APIs of Anthropic, OpenAI and Gemini on the loopback, with what goes wrong there.

`server.outcome` says what becomes of each request, and `server.ends` how a batch ends. Results come in another order
than the requests went. The documents of `tests.support.library` begin with their case id.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from tests.support.chat_server import notice
from tests.support.http_server import Received, Server, serve
from tests.support.vendor_dialects import DIALECTS, Answer, address_of

INPUT_TOKENS, OUTPUT_TOKENS = 40, 20
Outcome = Literal["answered", "rejected", "filtered", "overloaded", "expired", "canceled", "missing"]
_GOOGLE_WORDS = {"completed": "SUCCEEDED", "expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a batch ends: its state in OpenAI's words, or one of Gemini's own, and the line it failed for."""

    state: str = "completed"
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class Batch:
    id: str
    vendor: str
    name: str
    requests: Mapping[str, Any]
    created: datetime
    polls: int = 0
    deleted: bool = False
    outcomes: list[tuple[str, Outcome]] | None = None  # once they were looked at; they do not change


class BatchServer(Server):
    """What a test holds. A batch has ended once its status was asked for `polls` times, unless it is `held`."""

    def __init__(self) -> None:
        super().__init__()
        self.polls = 1
        self.held = False
        self.outcome: Callable[[str, int], Outcome] = lambda case_id, times: "answered"
        self.ends: Callable[[Batch], End] = lambda batch: End()
        self.text: Callable[[Any], str] = lambda body: notice(_case(body))
        self.lost_replies = 0  # creations whose reply is lost on its way
        self.torn = 0  # results that break off
        self.gone = ""  # of the files with results those that are no more: all whose path has this in it
        self.page: Callable[[bytes], bytes] = lambda lines: lines  # what comes in place of a file with results
        self.undeletable = False
        self.broken = False  # whatever is posted ends with a 500
        self.seen = 0  # requests so far, of any kind
        self.batches: list[Batch] = []
        self.files: dict[str, bytes] = {}
        self.deleted: list[str] = []
        self.submitted: Counter[str] = Counter()  # by case id
        self.bodies: dict[str, Any] = {}  # by custom id
        self.lock = threading.RLock()

    def base_url(self, vendor: str) -> str:
        return address_of(self.url, vendor)

    def handle(self, received: Received) -> None:
        """Reply as the vendor in the address does, with the faults that are set."""
        _, vendor, path = received.route.split("/", 2)
        with self.lock:
            self.seen += 1
            status, content = self._reply(vendor, path, received)
            lost = status == 201 and self.lost_replies > 0
            torn = isinstance(content, bytes) and self.torn > 0
            self.lost_replies -= lost
            self.torn -= torn
        if lost:
            received.drop()
        else:
            received.reply(200 if status == 201 else status, content[: len(content) * 2 // 3] if torn else content)

    def _reply(self, vendor: str, path: str, received: Received) -> "Reply":
        error = DIALECTS[vendor].error
        if received.method == "DELETE" and self.undeletable:
            return 403, error(403, "not yours to delete")
        if received.method == "POST" and self.broken:
            return 500, error(500, "out of order")
        status, content = _APIS[vendor](self).reply(received.method, path.removeprefix("v1/"), received.raw)
        is_file = isinstance(content, bytes)
        if is_file and self.gone and self.gone in path:
            return 404, error(404, "no such file")
        return status, self.page(content) if is_file else content

    def create(self, vendor: str, name: str, requests: Mapping[str, Any]) -> Batch:
        with self.lock:
            number = len(self.batches) + 1
            batch_id = f"{'batches/b' if vendor == 'google' else 'batch_'}{number}"
            batch = Batch(id=batch_id, vendor=vendor, name=name, requests=requests, created=datetime.now(UTC))
            assert not self.bodies.keys() & requests.keys(), "a custom id came twice"
            self.bodies |= requests
            self.submitted.update(_case(body) for body in requests.values())
            self.batches.append(batch)
            return batch

    def end_of(self, batch: Batch, *, poll: bool = False) -> End | None:
        """How a batch ended; None while it goes on."""
        batch.polls += poll
        return self.ends(batch) if batch.polls >= self.polls and not self.held else None

    def outcomes(self, batch: Batch) -> list[tuple[str, Outcome]]:
        """What becomes of the requests, in no order of theirs."""
        if self.ends(batch).state == "failed" and batch.vendor == "openai":
            return []
        if batch.outcomes is None:
            asked = {custom_id: _case(body) for custom_id, body in batch.requests.items()}
            fates = [(custom_id, self.outcome(case, self.submitted[case])) for custom_id, case in asked.items()]
            batch.outcomes = sorted(fates, key=lambda fate: fate[0][::-1])
        return batch.outcomes

    def find(self, vendor: str, batch_id: str) -> Batch | None:
        return next((batch for batch in self.listed(vendor) if batch.id == batch_id), None)

    def listed(self, vendor: str) -> list[Batch]:
        """The batches of a vendor that are there, newest first."""
        return [batch for batch in reversed(self.batches) if batch.vendor == vendor and not batch.deleted]

    def delete(self, batch: Batch) -> None:
        batch.deleted = True
        self.deleted.append(batch.id)


def _case(body: Any) -> str:
    match = re.search(r"\b([a-z-]+) is the title", json.dumps(body).replace("\\n", " "))
    assert match is not None, body
    return match[1]


@contextmanager
def batch_server() -> Iterator[BatchServer]:
    """A server on a free port, stopped and joined afterwards."""
    server = BatchServer()
    with serve(server):
        yield server


Reply = tuple[int, Any]  # a status and a body; 201 where a batch was made


class _Api:
    vendor: str

    def __init__(self, server: BatchServer) -> None:
        self.server = server
        self.dialect = DIALECTS[self.vendor]

    def missing(self) -> Reply:
        return 404, self.dialect.error(404, "no such batch")

    def answer(self, custom_id: str) -> Any:
        body = self.server.bodies[custom_id]
        text = self.server.text(body)
        called = json.loads(text) if "tools" in json.dumps(body) else None
        counts, served = (INPUT_TOKENS, OUTPUT_TOKENS), f"{self.vendor}-model"
        answer = Answer(text="" if called else text, tool_call=called, usage=counts, served_model=served)
        return self.dialect.answer(answer)[0]


class _Anthropic(_Api):
    vendor = "anthropic"

    def reply(self, method: str, path: str, raw: bytes) -> Reply:
        server, path = self.server, path.removeprefix("messages/batches").strip("/")
        if method == "POST" and not path:
            entries = {entry["custom_id"]: entry["params"] for entry in json.loads(raw)["requests"]}
            return 201, self.batch(server.create("anthropic", "", entries))
        if not path:
            listed = [self.batch(batch, poll=True) for batch in server.listed("anthropic")]
            return 200, {"data": listed, "has_more": False}
        batch_id, _, rest = path.partition("/")
        batch = server.find("anthropic", batch_id)
        if batch is None:
            return self.missing()
        if rest == "results":
            return 200, _lines(self.line(*item) for item in server.outcomes(batch) if item[1] != "missing")
        if method == "DELETE":
            server.delete(batch)
        return 200, self.batch(batch, poll=method == "GET")

    def batch(self, batch: Batch, *, poll: bool = False) -> Any:
        ended = self.server.end_of(batch, poll=poll) is not None
        total = len(batch.requests)
        counts = {"processing": 0, "succeeded": total} if ended else {"processing": total, "succeeded": 0}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {**counts, "errored": 0, "canceled": 0, "expired": 0},
            "created_at": batch.created.isoformat(),
            "results_url": f"{self.server.url}/anthropic/v1/messages/batches/{batch.id}/results" if ended else None,
        }

    def line(self, custom_id: str, outcome: Outcome) -> Any:
        statuses = {"rejected": 400, "filtered": 400, "overloaded": 529}
        result: dict[str, Any] = {"type": outcome}
        if outcome == "answered":
            result = {"type": "succeeded", "message": self.answer(custom_id)}
        elif outcome in statuses:
            result = {"type": "errored", "error": self.dialect.error(statuses[outcome], _message(outcome))}
        return {"custom_id": custom_id, "result": result}


class _OpenAI(_Api):
    vendor = "openai"

    def reply(self, method: str, path: str, raw: bytes) -> Reply:
        server = self.server
        kind, _, rest = path.partition("/")
        if kind == "files":
            return self.file(method, rest, raw)
        if method == "POST" and not rest:
            made = json.loads(raw)
            lines = [json.loads(line) for line in server.files[made["input_file_id"]].splitlines()]
            assert all(line["method"] == "POST" and line["url"] == made["endpoint"] for line in lines)
            entries = {line["custom_id"]: line["body"] for line in lines}
            return 201, self.batch(server.create("openai", made["metadata"]["name"], entries))
        if not rest:
            listed = [self.batch(batch) for batch in server.listed("openai")]
            return 200, {"object": "list", "data": listed, "has_more": False}
        batch = server.find("openai", rest.partition("/")[0])
        return self.missing() if batch is None else (200, self.batch(batch, poll=method == "GET"))

    def file(self, method: str, rest: str, raw: bytes) -> Reply:
        server = self.server
        file_id = rest.partition("/")[0]
        if method == "POST":
            start = raw.index(b"\r\n\r\n", raw.index(b'name="file"')) + 4
            file_id = f"file-{len(server.files) + 1}"
            server.files[file_id] = raw[start : raw.index(b"\r\n--", start)]
            return 200, {"id": file_id, "object": "file"}
        if method == "DELETE":
            server.deleted.append(file_id)
            return 200, {"id": file_id, "deleted": True}
        is_error, batch_id = file_id.startswith("errors-"), file_id.partition("-")[2]
        batch = server.find("openai", batch_id)
        assert batch is not None
        outcomes = [(name, outcome) for name, outcome in server.outcomes(batch) if outcome != "missing"]
        return 200, _lines(self.line(*item) for item in outcomes if (item[1] != "answered") is is_error)

    def batch(self, batch: Batch, *, poll: bool = False) -> Any:
        end = self.server.end_of(batch, poll=poll)
        outcomes = [] if end is None else [outcome for _, outcome in self.server.outcomes(batch)]
        answered, failed = outcomes.count("answered"), sum(o not in ("answered", "missing") for o in outcomes)
        failure = {"code": "invalid_json_line", "line": end.line, "message": "scripted"} if end else None
        return {
            "id": batch.id,
            "status": "in_progress" if end is None else end.state,
            "created_at": int(batch.created.timestamp()),
            "metadata": {"name": batch.name},
            "input_file_id": "file-1",
            "output_file_id": f"answers-{batch.id}" if answered else None,
            "error_file_id": f"errors-{batch.id}" if failed else None,
            "request_counts": {"total": len(batch.requests), "completed": answered, "failed": failed},
            "errors": {"data": [failure]} if end is not None and end.state == "failed" else None,
        }

    def line(self, custom_id: str, outcome: Outcome) -> Any:
        status = {"answered": 200, "rejected": 400, "filtered": 400, "overloaded": 503}.get(outcome)
        if status is None:
            code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[outcome]
            return {"id": "x", "custom_id": custom_id, "response": None, "error": {"code": code, "message": "scripted"}}
        body = self.answer(custom_id) if status == 200 else self.dialect.error(status, _message(outcome))
        response = {"status_code": status, "request_id": "req_1", "body": body}
        return {"id": "x", "custom_id": custom_id, "response": response, "error": None}


class _Google(_Api):
    vendor = "google"

    def reply(self, method: str, path: str, raw: bytes) -> Reply:
        server = self.server
        if method == "POST" and path.endswith(":batchGenerateContent"):
            made = json.loads(raw)["batch"]
            entries = made["inputConfig"]["requests"]["requests"]
            requests = {entry["metadata"]["key"]: entry["request"] for entry in entries}
            return 201, self.batch(server.create("google", made["displayName"], requests))
        if path == "batches":
            return 200, {"operations": [self.batch(batch) for batch in reversed(server.listed("google"))]}
        batch = server.find("google", path.partition(":")[0])
        if batch is None:
            return self.missing()
        if method == "DELETE":
            server.delete(batch)
            return 200, {}
        body = self.batch(batch, poll=True)
        return 200, json.dumps(body).encode() if "response" in body else body

    def batch(self, batch: Batch, *, poll: bool = False) -> Any:
        end = self.server.end_of(batch, poll=poll)
        state = "RUNNING" if end is None else _GOOGLE_WORDS.get(end.state, end.state)
        job = {"displayName": batch.name, "state": f"BATCH_STATE_{state}", "createTime": batch.created.isoformat()}
        body: dict[str, Any] = {"name": batch.id, "metadata": job}
        if end is None:
            return body
        body["done"] = True
        if state == "FAILED":
            return {**body, "error": {"code": 13, "message": "scripted"}}
        entries = [self.entry(*item) for item in self.server.outcomes(batch) if item[1] != "missing"]
        return {**body, "response": {"inlinedResponses": {"inlinedResponses": entries}}}

    def entry(self, custom_id: str, outcome: Outcome) -> Any:
        code = {"rejected": 3, "filtered": 3, "overloaded": 14}.get(outcome)
        failed = code is not None
        result = (
            {"error": {"code": code, "message": _message(outcome)}} if failed else {"response": self.answer(custom_id)}
        )
        return {"metadata": {"key": custom_id}, **result}


def _message(outcome: Outcome) -> str:
    return "Output blocked by content filtering policy" if outcome == "filtered" else "scripted"


_APIS = {"anthropic": _Anthropic, "openai": _OpenAI, "google": _Google}
VENDORS = tuple(_APIS)


def _lines(values: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
