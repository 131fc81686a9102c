"""The review page's server: on 127.0.0.1 alone, for whoever has the address with its token. Files and JSON go out.

Another site in the same browser can neither read nor write: the token is in no page of its own, a foreign Host (DNS
rebinding), Origin or Sec-Fetch-Site is refused, and a label must come as JSON, which no form can send. What is judged
goes out as JSON only, and the page puts it in as text. It names no model, and not why an item is queued: who knows that
a judge would block looks for a reason to.
"""

import hmac
import json
import secrets
import sys
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, ValidationError

from skill_evaluator.errors import JudgeError, StorageError
from skill_evaluator.files import StrictModel, first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.people.items import ReviewId
from skill_evaluator.judges.people.queue import ReviewLabel, ReviewQueue, item_of, latest
from skill_evaluator.judges.people.steps import ReviewScreen, differences


def item_screen(screen: ReviewScreen, label: ReviewLabel | None) -> dict[str, Any]:
    """Return the JSON of an item as its reviewer sees it."""
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


HOST = "127.0.0.1"
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
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
_MOST_BODY = 64_000
_MOST_DIGITS = 20  # of a length; to read thousands of them is refused by Python itself
_PATIENCE_S = 30.0


class LabelRequest(StrictModel):
    """What the page sends: the keys that a reviewer pressed, by step."""

    item: ReviewId
    reviewer: Label = Field(min_length=1)
    keys: dict[str, str]
    note: str = Field(default="", max_length=10_000)


class _RefusedError(Exception):
    """A request that is not answered, with its status and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class ReviewServer(ThreadingHTTPServer):
    """The page for one queue; `port` 0 takes a free one. Raises JudgeError where the port is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, queue: ReviewQueue, port: int = 0, seed: int = 0) -> None:
        self.queue = queue
        self.seed = seed
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), _Exchange)
        except OSError as problem:
            raise JudgeError(f"cannot listen on {HOST}:{port}: {problem.strerror}; choose another --port") from None
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    @property
    def address(self) -> str:
        """Where the page is, with the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away; anything else is a bug, with its traceback on stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def queue_for(self, reviewer: str) -> dict[str, Any]:
        """Return the ids of the queue, each with whether this reviewer has labelled it."""
        items = self.queue.items()
        counting = latest(self.queue.labels(items))
        return {"items": [{"id": item, "labelled": reviewer in counting.get(item, {})} for item in items]}

    def item_for(self, item_id: str, reviewer: str) -> dict[str, Any]:
        """Return an item as this reviewer sees it, with the reviewer's earlier answer."""
        items = self.queue.items()
        item = item_of(items, item_id)
        label = latest(self.queue.labels(items)).get(item_id, {}).get(reviewer)
        return item_screen(ReviewScreen.of(item, reviewer, self.seed), label)

    def keep(self, request: LabelRequest) -> dict[str, Any]:
        """Keep a reviewer's answer; raise JudgeError if it is invalid, and StorageError."""
        item = item_of(self.queue.items(), request.item)
        screen = ReviewScreen.of(item, request.reviewer, self.seed)
        fresh = self.queue.label([screen.label(request.keys, note=request.note)])
        return {"kept": len(fresh)}


class _Exchange(BaseHTTPRequestHandler):
    """One connection of a browser."""

    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version = "skill-evaluator"
    sys_version = ""
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        """Answer with a file of the page, the queue or an item."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Keep a label."""
        self._answer(self._post)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: the token is in every line."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what http.server itself refuses, such as an unknown method, without repeating what came in."""
        self.close_connection = True
        self._send(HTTPStatus(code), {"problem": HTTPStatus(code).phrase})

    def _answer(self, answer: Any) -> None:
        try:
            path, query = self._inside()
            answer(path, query)
        except _RefusedError as problem:
            self.close_connection = True  # a body may be left unread
            self._send(problem.status, {"problem": str(problem)})
        except JudgeError as problem:
            self._send(HTTPStatus.BAD_REQUEST, {"problem": str(problem)})
        except StorageError as problem:
            self._send(HTTPStatus.INSUFFICIENT_STORAGE, {"problem": str(problem)})

    def _inside(self) -> tuple[str, dict[str, str]]:
        """Return path and query behind the token; raise _RefusedError for whoever may not come in."""
        hosts, origins = (self.headers.get_all(name, []) for name in ("Host", "Origin"))
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise _RefusedError(HTTPStatus.FORBIDDEN, "this page is on no such host")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "another site may not ask for this")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "another site may not ask for this")
        address = urlsplit(self.path)
        token, slash, path = address.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "the address lacks its token; copy all of it from the terminal")
        return path, {name: values[-1] for name, values in parse_qs(address.query).items()}

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
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self, path: str, query: Mapping[str, str]) -> None:
        if path != "labels":
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a label is sent as application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "a label is sent with its length")
        if len(length) > _MOST_DIGITS:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "no label has such a length")
        if int(length) > _MOST_BODY:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a label has at most {_MOST_BODY:,} bytes")
        try:
            request = LabelRequest.model_validate_json(self.rfile.read(int(length)))
        except ValidationError as problem:
            raise JudgeError(f"{first_problem(problem)} in the label") from None
        self._send(HTTPStatus.OK, self.server.keep(request))

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
