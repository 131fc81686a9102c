"""What a CI platform can be told: outputs for later jobs, a summary, marks on files, a comment on a pull request."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Level = Literal["notice", "warning", "error"]


class Platform(Protocol):
    """One CI platform. Nothing handed to it is trusted: it escapes what it writes into."""

    def set_outputs(self, values: Mapping[str, Any]) -> None:
        """Hand values (a text of one line, or anything as JSON) to the jobs that come after."""

    def add_summary(self, markdown: str) -> None:
        """Add to the page that shows how the job went; cut where the platform has a limit."""

    def annotate(self, level: Level, message: str, file: str | None = None, line: int = 1) -> None:
        """Mark a line of a file, or the job, with a message."""

    def comment(self, commit: str, markdown: str) -> str | None:
        """Put one comment on the pull request a commit was merged with, in place of the last one; returns its address.

        None when the commit belongs to no pull request.
        """

    def pull_request(self, branch: str, to: str, title: str) -> str | None:
        """The open pull request of a branch, opened if there is none; returns its address.

        None when there is nothing to review: no such branch, or nothing on it that `to` has not.
        """
