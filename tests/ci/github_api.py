"""As much of GitHub's API as the platform `github` asks for, on a loopback port: one repository in memory."""

import re
from contextlib import AbstractContextManager
from typing import Any

from tests.support.http_server import Received, Server, serve

NAME = "team/library"
TOKEN = "ghs_not-a-real-token"
PER_PAGE = 30
Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class GitHubApi(Server):
    """What a repository holds, and what was asked of it as `METHOD path`; every request must bring the `token`."""

    def __init__(self, name: str = NAME, token: str | None = TOKEN) -> None:
        super().__init__()
        self.name = name
        self.token = token
        self.pulls_of: dict[str, list[dict[str, Any]]] = {}  # by commit
        self.comments: dict[int, list[dict[str, Any]]] = {}  # by number of the pull request
        self.open_pulls: list[dict[str, Any]] = []
        self.branches_with_news = {"review"}
        self.refusing: int | None = None  # a status that everything is answered with
        self.asked: list[str] = []

    def merged(self, commit: str, number: int, merged: bool = True, comments: int = 0) -> None:
        """Have a pull request that a commit belongs to, with so many comments of people."""
        at = "2024-01-01T00:00:00Z" if merged else None
        url = f"{self.url}/repos/{self.name}"
        pull = {"number": number, "url": f"{url}/pulls/{number}", "issue_url": f"{url}/issues/{number}"}
        self.pulls_of.setdefault(commit, []).append({**pull, "merged_at": at})
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
            "url": f"{self.url}/repos/{self.name}/issues/comments/{comment_id}",
            "html_url": f"https://github.com/{self.name}/pull/{number}#issuecomment-{comment_id}",
        }
        self.comments[number].append(comment)
        return comment

    def handle(self, received: Received) -> None:
        """Reply as GitHub does."""
        self.asked.append(f"{received.method} {received.route}")
        assert self.token is None or received.headers["authorization"] == f"token {self.token}"
        received.reply(*self._reply(received))

    def _reply(self, received: Received) -> Reply:
        path = received.route.removeprefix(f"/repos/{self.name}")
        if self.refusing:
            return self.refusing, {"message": "Resource not accessible by integration"}
        if match := re.fullmatch(r"/commits/(\w+)", path):
            if match[1] not in self.pulls_of:
                return 422, {"message": "No commit found"}
            return 200, {"sha": match[1], "url": f"{self.url}{received.route}"}
        if match := re.fullmatch(r"/commits/(\w+)/pulls", path):
            return 200, self.pulls_of[match[1]]
        if match := re.fullmatch(r"/issues/(\d+)/comments", path):
            if received.method == "POST":
                return 201, self.comment(int(match[1]), received.body["body"])
            return self._page(self.comments[int(match[1])], received)
        if match := re.fullmatch(r"/issues/comments/(\d+)", path):
            (comment,) = (one for many in self.comments.values() for one in many if one["id"] == int(match[1]))
            comment.update(received.body)
            return 200, comment
        return self._pulls(received)

    def _pulls(self, received: Received) -> Reply:
        if received.method == "GET":
            place = (received.query["head"].removeprefix("team:"), received.query["base"])
            return 200, [one for one in self.open_pulls if (one["head"], one["base"]) == place]
        pull = received.body
        if pull["head"] not in self.branches_with_news:
            return 422, {"message": "Validation Failed", "errors": [{"message": "No commits between them"}]}
        number = len(self.open_pulls) + 1
        address = {"number": number, "html_url": f"https://github.com/{self.name}/pull/{number}"}
        self.open_pulls.append({**pull, **address})
        return 201, {key: value for key, value in self.open_pulls[-1].items() if key not in ("head", "base")}

    def _page(self, items: list[Any], received: Received) -> Reply:
        page, size = int(received.query.get("page", 1)), int(received.query.get("per_page", PER_PAGE))
        target = f"{self.url}{received.route}?page={page + 1}&per_page={size}"
        link = {"Link": f'<{target}>; rel="next"'} if items[page * size :] else {}
        return 200, items[(page - 1) * size : page * size], link


def github_api() -> AbstractContextManager[GitHubApi]:
    return serve(GitHubApi())
