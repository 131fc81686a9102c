"""The local server of the review page. It does not show why an item is queued, which would bias the reviewer."""

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from skill_evaluator.display import loopback
from skill_evaluator.errors import JudgeError, StorageError
from skill_evaluator.judges.review import queue as reviews
from skill_evaluator.judges.review.queue import ReviewItem, ReviewLabel, ReviewQueue
from skill_evaluator.text import marked_differences

_FILES = {"": ("index.html", "html"), "review.css": ("review.css", "css"), "review.js": ("review.js", "javascript")}


def item_screen(item: ReviewItem, reviewer: str, label: ReviewLabel | None = None) -> dict[str, Any]:
    """Return the JSON of an item's page: the outputs in the reviewer's order, and the answers of an earlier `label`."""
    first = reviews.first_shown(item, reviewer)
    outputs = item.outputs if first == 1 else item.outputs[::-1]
    return {
        **item.model_dump(include={"id", "document", "reference"}),
        "first": first,
        "outputs": marked_differences(outputs[0], outputs[-1])[: len(outputs)],
        "questions": [
            {"name": question.name, "text": question.text, "choices": reviews.choices(item, question, first)}
            for question in item.questions
        ],
        "answers": label.answers if label else [],
        "note": label.note if label else "",
    }


class ReviewServer(loopback.LoopbackServer):
    """The server for one queue. Port 0 selects a free port. Raise ConfigError if the port is in use."""

    def __init__(self, queue: ReviewQueue, port: int = 0) -> None:
        self.queue = queue
        super().__init__(port, _ReviewHandler)


class _ReviewHandler(loopback.PageHandler):
    server: ReviewServer
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )

    def do_GET(self) -> None:  # noqa: N802 (http.server calls this name)
        """Answer a GET with a file of the page, or with the queue or an item as JSON; store the label of a POST.

        An error is sent as JSON with `problem`.
        """
        status, kind = HTTPStatus.OK, "application/json"
        try:
            path, _, query = self.server.path_inside(self).partition("?")
            loopback.refuse_other_sites(self)
            if self.command == "GET" and path in _FILES:
                name, kind = _FILES[path][0], f"text/{_FILES[path][1]}; charset=utf-8"
                content = (Path(__file__).parent / "page" / name).read_bytes()
            else:
                value = self._value(path, parse_qs(query).get("reviewer", [""])[-1])
                content = json.dumps(value, default=reviews.ReviewAnswer.model_dump).encode()
        except (loopback.RefusedError, JudgeError, StorageError) as problem:
            status = getattr(problem, "status", HTTPStatus.BAD_REQUEST)
            content = json.dumps({"problem": str(problem)}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def _value(self, path: str, reviewer: str) -> dict[str, Any]:
        queue = self.server.queue
        if (self.command, path) == ("POST", "labels"):
            queue.label(loopback.read_body(self, ReviewLabel, "label"))
            return {}
        if self.command != "GET" or not (path == "queue" or path.startswith("items/")):
            raise loopback.RefusedError(HTTPStatus.NOT_FOUND, "page not found")
        items = queue.items()
        labels = queue.labels(items)
        reviewer_labels = {
            item_id: group[reviewer] for item_id, group in reviews.latest(labels).items() if reviewer in group
        }
        if path == "queue":
            rows = [{"id": item_id, "labelled": item_id in reviewer_labels} for item_id in items]
            return {"items": rows, "status": reviews.status_lines(items, labels)}
        item = reviews.item_of(items, path.removeprefix("items/"))
        return item_screen(item, reviewer, reviewer_labels.get(item.id))
