"""As much of GitHub's API as the platform `github` asks for, on a loopback port: one repository in memory."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import serving

NAME = "team/library"
TOKEN = "ghs_not-a-real-token"
PER_PAGE = 30


class GitHubApi:
    """What the repository holds, and what was asked of it as `METHOD path`."""

    def __init__(self) -> None:
        self.pulls_of: dict[str, list[dict[str, Any]]] = {}  # by commit
        self.comments: dict[int, list[dict[str, Any]]] = {}  # by number of the pull request
        self.open_pulls: list[dict[str, Any]] = []
        self.branches_with_news = {"review"}
        self.refusing: int | None = None  # a status that everything is answered with
        self.asked: list[str] = []
        self.address = ""

    def merged(self, commit: str, number: int, merged: bool = True, comments: int = 0) -> None:
        """Have a pull request that a commit belongs to, with so many comments of people."""
        at = "2024-01-01T00:00:00Z" if merged else None
        url = f"{self.address}/repos/{NAME}/pulls/{number}"
        issue = f"{self.address}/repos/{NAME}/issues/{number}"
        pull = {"number": number, "url": url, "issue_url": issue, "merged_at": at}
        self.pulls_of.setdefault(commit, []).append(pull)
        self.comments[number] = []
        for count in range(comments):
            self.comment(number, f"comment {count}", "User")

    def comment(self, number: int, body: str, kind: str = "Bot") -> dict[str, Any]:
        """Add a comment of a bot, or of a `User`."""
        comment_id = 100 + sum(map(len, self.comments.values()))
        comment = {
            "id": comment_id,
            "body": body,
            "user": {"login": "somebody", "type": kind},
            "url": f"{self.address}/repos/{NAME}/issues/comments/{comment_id}",
            "html_url": f"https://github.com/{NAME}/pull/{number}#issuecomment-{comment_id}",
        }
        self.comments[number].append(comment)
        return comment

    def answer(self, method: str, target: str, given: Any) -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers of one request."""
        path = urlsplit(target).path.removeprefix(f"/repos/{NAME}")
        query = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
        if self.refusing:
            return self.refusing, {"message": "Resource not accessible by integration"}, {}
        if match := re.fullmatch(r"/commits/(\w+)", path):
            url = f"{self.address}/repos/{NAME}/commits/{match[1]}"
            return (
                (200, {"sha": match[1], "url": url}, {})
                if match[1] in self.pulls_of
                else (422, {"message": "No commit found"}, {})
            )
        if match := re.fullmatch(r"/commits/(\w+)/pulls", path):
            return 200, self.pulls_of[match[1]], {}
        if match := re.fullmatch(r"/issues/(\d+)/comments", path):
            if method == "POST":
                return 201, self.comment(int(match[1]), given["body"]), {}
            return self._page(self.comments[int(match[1])], target, query)
        if match := re.fullmatch(r"/issues/comments/(\d+)", path):
            (comment,) = (one for many in self.comments.values() for one in many if one["id"] == int(match[1]))
            comment.update(given)
            return 200, comment, {}
        return self._pulls(method, query, given)

    def _pulls(self, method: str, query: dict[str, str], given: Any) -> tuple[int, Any, dict[str, str]]:
        if method == "GET":
            branch = query["head"].removeprefix("team:")
            return 200, [one for one in self.open_pulls if (one["head"], one["base"]) == (branch, query["base"])], {}
        if given["head"] not in self.branches_with_news:
            return 422, {"message": "Validation Failed", "errors": [{"message": "No commits between them"}]}, {}
        number = len(self.open_pulls) + 1
        self.open_pulls.append({**given, "number": number, "html_url": f"https://github.com/{NAME}/pull/{number}"})
        return 201, {key: value for key, value in self.open_pulls[-1].items() if key not in ("head", "base")}, {}

    def _page(self, items: list[Any], target: str, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        page, size = int(query.get("page", 1)), int(query.get("per_page", PER_PAGE))
        rest = items[page * size :]
        path = urlsplit(target).path
        link = {"Link": f'<{self.address}{path}?page={page + 1}&per_page={size}>; rel="next"'} if rest else {}
        return 200, items[(page - 1) * size : page * size], link


@contextmanager
def github_api() -> Iterator[GitHubApi]:
    """Serve one until the block ends."""
    api = GitHubApi()

    class Answering(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            api.asked.append(f"{self.command} {urlsplit(self.path).path}")
            length = int(self.headers.get("Content-Length") or 0)
            given = json.loads(self.rfile.read(length)) if length else None
            assert self.headers["Authorization"] == f"token {TOKEN}"
            status, body, headers = api.answer(self.command, self.path, given)
            raw = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(raw))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PATCH = _answer  # noqa: N815 (the library calls them so)

        def log_message(self, *_: Any) -> None:
            """Nothing: pytest's output is no place for it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    with serving(server) as api.address:
        yield api
