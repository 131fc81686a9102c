"""A server that speaks what huggingface_hub asks of a hub of files: which version there is, and its bytes."""

import hashlib
from contextlib import AbstractContextManager

from tests.support.http_server import Received, Server, serve

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(Server):
    """Files by `<owner>/<repository>/<file>`, and how often the bytes of any were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.fetched = 0

    def handle(self, received: Received) -> None:
        """Send a file, or only what is said of it."""
        name = received.path.lstrip("/").replace("/resolve/main/", "/")
        content = self.files.get(name, b"")
        headers = {"X-Repo-Commit": COMMIT}
        if content:
            headers["ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        else:
            repositories = {file.rsplit("/", 2)[0] for file in self.files}
            headers["X-Error-Code"] = "EntryNotFound" if name.startswith(tuple(repositories)) else "RepoNotFound"
        self.fetched += received.method == "GET" and bool(content)
        received.reply(200 if content else 404, content, headers)


def hub() -> AbstractContextManager[Hub]:
    """Run a hub until the end of the block."""
    return serve(Hub())
