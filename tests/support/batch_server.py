"""The batch APIs of Anthropic, OpenAI and Gemini on the loopback, with what goes wrong there.

`server.outcome` says what becomes of each request, and `server.ends` how a batch ends. Results come in another order
than the requests went. The documents of `tests.support.library` begin with their case id.
"""

import json
import pickle
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from tests.support.chat_server import notice
from tests.support.http_server import QuietServer, serving

VENDORS = ("anthropic", "openai", "google")
INPUT_TOKENS, OUTPUT_TOKENS = 40, 20
Outcome = Literal["answered", "rejected", "overloaded", "expired", "canceled", "missing"]
_GOOGLE_WORDS = {"completed": "SUCCEEDED", "expired": "EXPIRED", "cancelled": "CANCELLED", "failed": "FAILED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a batch ends: its state in OpenAI's words, or one of Gemini's own, and the line it failed for."""

    state: str = "completed"
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch as a server holds it."""

    id: str
    vendor: str
    name: str
    requests: Mapping[str, Any]
    created: datetime
    polls: int = 0
    deleted: bool = False
    outcomes: list[tuple[str, Outcome]] | None = None  # once they were looked at; they do not change


@dataclass(slots=True)
class BatchServer:
    """What a test holds. A batch has ended once its status was asked for `polls` times, unless it is `held`."""

    url: str = ""
    polls: int = 1
    held: bool = False
    outcome: Callable[[str, int], Outcome] = lambda case_id, times: "answered"
    ends: Callable[[Batch], End] = lambda batch: End()
    text: Callable[[Any], str] = lambda body: notice(_case(body))
    lost_replies: int = 0  # creations whose reply is lost on its way
    torn: int = 0  # results that break off
    undeletable: bool = False
    seen: int = 0  # requests so far, of any kind
    batches: list[Batch] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    submitted: Counter[str] = field(default_factory=Counter)  # by case id
    bodies: dict[str, Any] = field(default_factory=dict)  # by custom id
    lock: Any = field(default_factory=threading.RLock)

    def base_url(self, vendor: str) -> str:
        """Where models.yaml reaches a vendor."""
        return f"{self.url}/{vendor}{'/v1' if vendor == 'openai' else ''}"

    def create(self, vendor: str, name: str, requests: Mapping[str, Any]) -> Batch:
        """Make a batch."""
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
        """A batch that is there."""
        mine = (batch for batch in self.batches if (batch.vendor, batch.id) == (vendor, batch_id))
        return next((batch for batch in mine if not batch.deleted), None)


def _case(body: Any) -> str:
    match = re.search(r"\b([a-z-]+) is the title", json.dumps(body).replace("\\n", " "))
    assert match is not None, body
    return match[1]


@contextmanager
def batch_server(port: int = 0, kept: Path | None = None) -> Iterator[BatchServer]:
    """A server on a port (0: a free one), stopped and joined afterwards; a file has its batches `kept` for the next."""
    server = BatchServer()
    if kept is not None and kept.exists():
        server.batches, server.files, server.bodies, server.submitted = pickle.loads(kept.read_bytes())
    http = QuietServer(("127.0.0.1", port), type("BoundHandler", (_Handler,), {"server_state": server}))
    with serving(http) as server.url:
        yield server
    if kept is not None:
        kept.write_bytes(pickle.dumps((server.batches, server.files, server.bodies, server.submitted)))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 20
    server_state: BatchServer

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_DELETE(self) -> None:
        self._answer("DELETE", b"")

    def do_POST(self) -> None:
        self._answer("POST", self.rfile.read(int(self.headers.get("content-length") or 0)))

    def _answer(self, method: str, raw: bytes) -> None:
        address = urlsplit(self.path)
        _, vendor, *rest = address.path.split("/")
        path, query = "/".join(rest).removeprefix("v1/"), parse_qs(address.query)
        with self.server_state.lock:
            self.server_state.seen += 1
            if method == "DELETE" and self.server_state.undeletable:
                status, content = 403, {"error": {"message": "not yours to delete"}}
            else:
                status, content = getattr(self, f"_{vendor}")(method, path, raw, query)
            results = isinstance(content, bytes)
            lost = method == "POST" and status == 201 and self.server_state.lost_replies > 0
            torn = results and self.server_state.torn > 0
            self.server_state.lost_replies -= lost
            self.server_state.torn -= torn
        body = content if results else json.dumps(content).encode()
        with suppress(OSError):  # the client may be gone by now
            if lost:
                self.close_connection = True
                return
            if torn:
                body = body[: len(body) * 2 // 3]
            self.send_response(200 if status == 201 else status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def _anthropic(self, method: str, path: str, raw: bytes, query: Mapping[str, Any]) -> tuple[int, Any]:
        server, path = self.server_state, path.removeprefix("messages/batches").strip("/")
        if method == "POST" and not path:
            entries = {entry["custom_id"]: entry["params"] for entry in json.loads(raw)["requests"]}
            return 201, self._anthropic_body(server.create("anthropic", "", entries))
        if not path:
            mine = [batch for batch in reversed(server.batches) if batch.vendor == "anthropic" and not batch.deleted]
            return 200, {"data": [self._anthropic_body(batch, poll=True) for batch in mine], "has_more": False}
        batch_id, _, rest = path.partition("/")
        batch = server.find("anthropic", batch_id)
        if batch is None:
            return 404, {"type": "error", "error": {"type": "not_found_error", "message": "no such batch"}}
        if rest == "results":
            lines = (self._anthropic_line(*item) for item in server.outcomes(batch) if item[1] != "missing")
            return 200, _lines(lines)
        if method == "DELETE":
            batch.deleted = True
            server.deleted.append(batch.id)
        return 200, self._anthropic_body(batch, poll=method == "GET")

    def _anthropic_body(self, batch: Batch, *, poll: bool = False) -> Any:
        ended = self.server_state.end_of(batch, poll=poll) is not None
        total = len(batch.requests)
        counts = {"processing": 0, "succeeded": total} if ended else {"processing": total, "succeeded": 0}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {**counts, "errored": 0, "canceled": 0, "expired": 0},
            "created_at": batch.created.isoformat(),
            "results_url": f"{self.server_state.url}/anthropic/v1/messages/batches/{batch.id}/results"
            if ended
            else None,
        }

    def _anthropic_line(self, custom_id: str, outcome: Outcome) -> Any:
        errors = {"rejected": "invalid_request_error", "overloaded": "overloaded_error"}
        result: dict[str, Any] = {"type": outcome}
        if outcome == "answered":
            text = self.server_state.text(self.server_state.bodies[custom_id])
            usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, "service_tier": "batch"}
            message = {"id": "msg_1", "model": "served-model", "content": [{"type": "text", "text": text}]}
            result = {"type": "succeeded", "message": {**message, "stop_reason": "end_turn", "usage": usage}}
        elif outcome in errors:
            error = {"type": "error", "error": {"type": errors[outcome], "message": "scripted"}, "request_id": "req_1"}
            result = {"type": "errored", "error": error}
        return {"custom_id": custom_id, "result": result}

    def _openai(self, method: str, path: str, raw: bytes, query: Mapping[str, Any]) -> tuple[int, Any]:
        server = self.server_state
        kind, _, rest = path.partition("/")
        if kind == "files":
            return self._openai_file(method, rest, raw)
        if method == "POST" and not rest:
            asked = json.loads(raw)
            lines = [json.loads(line) for line in server.files[asked["input_file_id"]].splitlines()]
            assert all(line["method"] == "POST" and line["url"] == asked["endpoint"] for line in lines)
            entries = {line["custom_id"]: line["body"] for line in lines}
            return 201, self._openai_body(server.create("openai", asked["metadata"]["name"], entries))
        if not rest:
            mine = [batch for batch in reversed(server.batches) if batch.vendor == "openai"]
            return 200, {"object": "list", "data": [self._openai_body(batch) for batch in mine], "has_more": False}
        batch = server.find("openai", rest.partition("/")[0])
        if batch is None:
            return 404, {"error": {"message": "no such batch"}}
        return 200, self._openai_body(batch, poll=method == "GET")

    def _openai_file(self, method: str, rest: str, raw: bytes) -> tuple[int, Any]:
        server = self.server_state
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
        lines = [
            self._openai_line(custom_id, outcome)
            for custom_id, outcome in server.outcomes(batch)
            if outcome != "missing" and (outcome != "answered") is is_error
        ]
        return 200, _lines(lines)

    def _openai_body(self, batch: Batch, *, poll: bool = False) -> Any:
        end = self.server_state.end_of(batch, poll=poll)
        outcomes = [] if end is None else [outcome for _, outcome in self.server_state.outcomes(batch)]
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

    def _openai_line(self, custom_id: str, outcome: Outcome) -> Any:
        body: Any = {"error": {"message": "scripted"}}
        status = {"answered": 200, "rejected": 400, "overloaded": 503}.get(outcome)
        if status is None:
            code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[outcome]
            return {"id": "x", "custom_id": custom_id, "response": None, "error": {"code": code, "message": "scripted"}}
        if outcome == "answered":
            text = self.server_state.text(self.server_state.bodies[custom_id])
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
            body = {"id": "chatcmpl-1", "model": "served-model", "choices": [choice], "usage": usage}
        response = {"status_code": status, "request_id": "req_1", "body": body}
        return {"id": "x", "custom_id": custom_id, "response": response, "error": None}

    def _google(self, method: str, path: str, raw: bytes, query: Mapping[str, Any]) -> tuple[int, Any]:
        server = self.server_state
        if method == "POST" and path.endswith(":batchGenerateContent"):
            asked = json.loads(raw)["batch"]
            entries = asked["inputConfig"]["requests"]["requests"]
            requests = {entry["metadata"]["key"]: entry["request"] for entry in entries}
            return 201, self._google_body(server.create("google", asked["displayName"], requests))
        if path == "batches":
            mine = [batch for batch in server.batches if batch.vendor == "google" and not batch.deleted]
            return 200, {"operations": [self._google_body(batch) for batch in mine]}
        batch = server.find("google", path.partition(":")[0])
        if batch is None:
            return 404, {"error": {"code": 404, "message": "no such batch", "status": "NOT_FOUND"}}
        if method == "DELETE":
            batch.deleted = True
            server.deleted.append(batch.id)
            return 200, {}
        return self._google_status(batch)

    def _google_status(self, batch: Batch) -> tuple[int, Any]:
        body = self._google_body(batch, poll=True)
        torn = self.server_state.torn and b"inlined" in json.dumps(body).encode()
        return 200, json.dumps(body).encode() if torn else body

    def _google_body(self, batch: Batch, *, poll: bool = False) -> Any:
        end = self.server_state.end_of(batch, poll=poll)
        state = "RUNNING" if end is None else _GOOGLE_WORDS.get(end.state, end.state)
        job = {"displayName": batch.name, "state": f"BATCH_STATE_{state}", "createTime": batch.created.isoformat()}
        body: dict[str, Any] = {"name": batch.id, "metadata": job}
        if end is None:
            return body
        body["done"] = True
        if state == "FAILED":
            return {**body, "error": {"code": 13, "message": "scripted"}}
        entries = [self._google_entry(*item) for item in self.server_state.outcomes(batch) if item[1] != "missing"]
        return {**body, "response": {"inlinedResponses": {"inlinedResponses": entries}}}

    def _google_entry(self, custom_id: str, outcome: Outcome) -> Any:
        code = {"rejected": 3, "overloaded": 14}.get(outcome)
        entry: dict[str, Any] = {"metadata": {"key": custom_id}}
        if code is not None:
            return {**entry, "error": {"code": code, "message": "scripted"}}
        parts = [{"text": self.server_state.text(self.server_state.bodies[custom_id])}]
        usage = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS}
        candidate = {"content": {"parts": parts}, "finishReason": "STOP"}
        return {
            **entry,
            "response": {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served-model"},
        }


def _lines(values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
