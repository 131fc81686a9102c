"""The review server: refused requests, and what a reviewer may see."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.display.loopback import HOST
from skill_evaluator.judges.review.queue import LABELS, ReviewServer

from tests.judges.review.reviews import NOON, change, pair, queue_of, scored

pytestmark = pytest.mark.process
JSON = {"Content_Type": "application/json"}
LABEL = {"item": pair().id, "reviewer": "ada", "at": NOON, "answers": [{"question": "overall", "answer": "1"}]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    with ReviewServer(queue_of(tmp_path, pair(), change(), scored())) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: ReviewServer,
    path: str,
    method: str = "GET",
    body: str | None = None,
    token: str | None = None,
    **headers: str,
) -> tuple[int, Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=30)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"/{server.token if token is None else token}/{path}", body=body, headers=names)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    kind = answer.headers["Content-Type"]
    return answer.status, json.loads(content) if kind == "application/json" else content.decode(), answer.headers


def label(server: ReviewServer, headers: Mapping[str, str] = JSON, **changed: Any) -> tuple[int, Any]:
    return ask(server, "labels", "POST", json.dumps({**LABEL, **changed}), **headers)[:2]


def labels(server: ReviewServer) -> list[Any]:
    path = server.queue.folder / LABELS
    return path.read_text().splitlines() if path.exists() else []


def test_server_listens_on_loopback_and_accepts_the_page(server: ReviewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32
    own = {"Origin": f"http://127.0.0.1:{server.server_port}", "Sec_Fetch_Site": "same-origin"}
    assert label(server, {**JSON, **own}) == (200, {})
    assert len(labels(server)) == 1


def test_foreign_host_or_origin_is_refused(server: ReviewServer) -> None:
    for name, values in (
        ("Host", ("evil.example", "evil.example:80", "127.0.0.1")),
        ("Origin", ("https://evil.example", "null", "http://127.0.0.1:1")),
        ("Sec_Fetch_Site", ("cross-site", "same-site")),
    ):
        for value in values:
            for path in ("", "queue?reviewer=ada", f"items/{pair().id}"):
                assert ask(server, path, **{name: value})[0] == 403, value
            assert label(server, {**JSON, name: value})[0] == 403, value
    assert labels(server) == []


def test_invalid_request_is_refused(server: ReviewServer) -> None:
    for method, body, headers, status in (
        ("POST", "{}", {"Content_Type": "text/plain"}, 415),  # what a form of another site could send
        ("POST", "x" * 64_001, JSON, 413),
        ("POST", "{}", {**JSON, "Content_Length": "9" * 5_000}, 400),
        ("POST", "[1]", JSON, 400),
        ("PUT", "{}", JSON, 501),
        ("GET", None, {}, 404),
    ):
        assert ask(server, "labels", method, body, **headers)[0] == status, (method, headers)
    assert labels(server) == []


def test_responses_forbid_foreign_scripts_and_frames(server: ReviewServer) -> None:
    for path in ("", "review.js", "queue", "nothing"):
        _, _, headers = ask(server, path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy, path
        assert "unsafe" not in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer"), path
        assert headers["Access-Control-Allow-Origin"] is None, path
        assert headers["Cache-Control"] == "no-store", path


def test_reviewer_sees_neither_reasons_nor_labels_of_others(server: ReviewServer) -> None:
    shown = json.dumps(ask(server, f"items/{change().id}?reviewer=ada")[1])
    assert not any(word in shown for word in ("baseline", "block", '"item"', "judging"))
    label(server, note="hard")
    mine, others = (ask(server, f"items/{pair().id}?reviewer={name}")[1] for name in ("ada", "ben"))
    assert ([answer["answer"] for answer in mine["answers"]], mine["note"]) == (["1"], "hard")
    assert (others["answers"], others["note"]) == ([], "")
    queue = ask(server, "queue?reviewer=ada")[1]
    assert [entry["labelled"] for entry in queue["items"]] == [True, False, False]
    assert "ada: 1 label" in queue["status"]
