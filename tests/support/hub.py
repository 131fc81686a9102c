"""A server that speaks what huggingface_hub asks of a hub of files: which version there is, and its bytes."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.http_server import serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """Files by `<owner>/<repository>/<file>`, and how often the bytes of any were asked for."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes] = {}
        self.fetched = 0


@contextmanager
def hub() -> Iterator[Hub]:
    """Run a hub until the end of the block."""
    files = Hub()
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Hub,), {"hub": files}))) as files.url:
        yield files


class _Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        content = self._answer()
        self.hub.fetched += bool(content)
        self.wfile.write(content)

    def _answer(self) -> bytes:
        name = self.path.lstrip("/").replace("/resolve/main/", "/")
        content = self.hub.files.get(name, b"")
        headers = {"X-Repo-Commit": COMMIT, "Content-Length": str(len(content))}
        if content:
            headers["ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        else:
            repositories = {file.rsplit("/", 2)[0] for file in self.hub.files}
            headers["X-Error-Code"] = "EntryNotFound" if name.startswith(tuple(repositories)) else "RepoNotFound"
        self.send_response(200 if content else 404)
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        return content
