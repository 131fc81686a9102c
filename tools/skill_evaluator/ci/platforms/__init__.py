"""CI platforms: outputs, summaries, annotations and comments. A platform is one file and one line in PLATFORMS."""

from collections.abc import Mapping
from typing import Any, Protocol

from skill_evaluator.ci.platforms.github import GitHub
from skill_evaluator.display.pages import Page


class Platform(Protocol):
    """One CI platform. It escapes all values, because they are untrusted."""

    def set_outputs(self, values: Mapping[str, Any]) -> None:
        """Pass values (a text of one line, or anything as JSON) to the following jobs."""

    def add_summary(self, page: Page) -> None:
        """Add a page to the summary of the job; content beyond the platform's limit is dropped."""

    def annotate(self, level: str, message: str, file: str | None = None, line: int = 1) -> None:
        """Mark a line of a file, or the job, with a message; `level` is notice, warning or error."""

    def check_access(self) -> None:
        """Raise ConfigError if a requirement of `comment` and `pull_request` is missing."""

    def comment_on(self, number: int, page: Page) -> str:
        """Write the comment on a pull request, replacing the last one; return its address."""

    def comment(self, commit: str, page: Page) -> str | None:
        """Write the comment on the pull request that merged a commit; return its address, or None if there is none."""

    def pull_request(self, branch: str, to: str, title: str) -> str | None:
        """Open a branch's pull request if none is open; return its address, or None if there is nothing to merge."""


PLATFORMS: Mapping[str, Platform] = {"github": GitHub()}
