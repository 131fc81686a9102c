"""The server of the review page: static files and JSON, for this machine alone.

Outputs are sent as JSON only, and the page inserts them as text. An item names no model and no reason why it is queued,
because a reviewer who knows that a judge would block looks for a reason to block.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from pydantic import Field

from skill_evaluator.display import loopback
from skill_evaluator.errors import JudgeError, StorageError
from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.review.export import status_lines
from skill_evaluator.judges.review.items import ReviewId
from skill_evaluator.judges.review.queue import ReviewLabel, ReviewQueue, item_of, latest
from skill_evaluator.judges.review.screens import ReviewScreen, differences


def item_screen(screen: ReviewScreen, label: ReviewLabel | None) -> dict[str, Any]:
    """Return a screen as JSON, with the keys of the reviewer's earlier label."""
    item, outputs = screen.item, screen.outputs
    pieces = differences(*outputs) if len(outputs) > 1 else ([(outputs[0], False)],)
    names = ("A", "B") if len(outputs) > 1 else ("Output",)
    return {
        "id": item.id,
        "document": item.document,
        "reference": item.reference,
        "outputs": [{"name": name, "pieces": parts} for name, parts in zip(names, pieces, strict=True)],
        "steps": [
            {
                "name": step.name,
                "text": step.text,
                "choices": [{"key": key, "meaning": meaning} for key, meaning in step.choices.items()],
                "after": None if step.only_after is None else {"step": step.only_after[0], "keys": step.only_after[1]},
            }
            for step in screen.steps
        ],
        "keys": {} if label is None else screen.keys(label),
        "note": "" if label is None else label.note,
    }


_PAGE = Path(__file__).parent / "page"
_FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "": ("index.html", "text/html; charset=utf-8"),
        "review.css": ("review.css", "text/css; charset=utf-8"),
        "review.js": ("review.js", "text/javascript; charset=utf-8"),
    }
)
_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'",
        "X-Frame-Options": "DENY",
        **loopback.HEADERS,
    }
)


class LabelRequest(StrictModel):
    """A label as the page sends it: the keys that a reviewer pressed in each step."""

    item: ReviewId
    reviewer: Label = Field(min_length=1)
    keys: dict[str, str]
    note: str = Field(default="", max_length=10_000)


class ReviewServer(loopback.LoopbackServer):
    """The server for one queue. Port 0 takes a free port. Raises JudgeError if the port is taken."""

    def __init__(self, queue: ReviewQueue, port: int = 0, seed: int = 0) -> None:
        self.queue = queue
        self.seed = seed
        try:
            super().__init__(port, _Exchange)
        except OSError as problem:
            raise JudgeError(
                f"cannot listen on {loopback.HOST}:{port}: {problem.strerror}; choose another --port"
            ) from None

    def queue_for(self, reviewer: str) -> dict[str, Any]:
        """Return the ids of the queue, each with whether this reviewer has labelled it, and the status as text."""
        items = self.queue.items()
        labels = self.queue.labels(items)
        counting = latest(labels)
        return {
            "items": [{"id": item, "labelled": reviewer in counting.get(item, {})} for item in items],
            "status": status_lines(items, labels),
        }

    def item_for(self, item_id: str, reviewer: str) -> dict[str, Any]:
        """Return the screen of an item for this reviewer as JSON."""
        items = self.queue.items()
        item = item_of(items, item_id)
        label = latest(self.queue.labels(items)).get(item_id, {}).get(reviewer)
        return item_screen(ReviewScreen.of(item, reviewer, self.seed), label)

    def keep(self, request: LabelRequest) -> dict[str, Any]:
        """Store a reviewer's label. Raise JudgeError if it is invalid, and StorageError."""
        item = item_of(self.queue.items(), request.item)
        screen = ReviewScreen.of(item, request.reviewer, self.seed)
        return {"kept": int(self.queue.label(screen.label(request.keys, note=request.note)))}


class _Exchange(BaseHTTPRequestHandler):
    """One HTTP connection of a browser."""

    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version = "skill-evaluator"
    sys_version = ""
    timeout = loopback.PATIENCE_S

    def do_GET(self) -> None:
        """Send a file of the page, the queue or an item."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Store a label."""
        self._answer(self._post)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing, because every line would show the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error of http.server, such as an unknown method, without repeating the request."""
        self.close_connection = True
        self._send(HTTPStatus(code), {"problem": HTTPStatus(code).phrase})

    def _answer(self, answer: Any) -> None:
        try:
            path, query = self._inside()
            answer(path, query)
        except loopback.RefusedError as problem:
            self.close_connection = True  # a body may be left unread
            self._send(problem.status, {"problem": str(problem)})
        except JudgeError as problem:
            self._send(HTTPStatus.BAD_REQUEST, {"problem": str(problem)})
        except StorageError as problem:
            self._send(HTTPStatus.INSUFFICIENT_STORAGE, {"problem": str(problem)})

    def _inside(self) -> tuple[str, dict[str, str]]:
        """Return path and query behind the token. Raise loopback.RefusedError for a request without it."""
        path, _, query = self.server.path_inside(self).partition("?")
        loopback.refuse_other_sites(self)
        return path, {name: values[-1] for name, values in parse_qs(query).items()}

    def _get(self, path: str, query: Mapping[str, str]) -> None:
        if path in _FILES:
            name, kind = _FILES[path]
            self._send_bytes(HTTPStatus.OK, (_PAGE / name).read_bytes(), kind)
        elif path == "queue":
            self._send(HTTPStatus.OK, self.server.queue_for(query.get("reviewer", "")))
        elif path.startswith("items/"):
            item = path.removeprefix("items/")
            self._send(HTTPStatus.OK, self.server.item_for(item, query.get("reviewer", "")))
        else:
            raise loopback.RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self, path: str, query: Mapping[str, str]) -> None:
        if path != "labels":
            raise loopback.RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        self._send(HTTPStatus.OK, self.server.keep(loopback.sent(self, LabelRequest, "label")))

    def _send(self, status: HTTPStatus, value: Any) -> None:
        self._send_bytes(status, json.dumps(value).encode(), "application/json")

    def _send_bytes(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
