"""CI platforms: outputs, summaries and annotations by files and commands, comments by an API.

The texts are untrusted (names, outputs of models, error messages); they are escaped and cut to the platform's limits.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_evaluator.display.pages import Page
from skill_evaluator.display.safe_text import print_command, visible
from skill_evaluator.errors import ConfigError, PlanError
from skill_evaluator.files import storing

_MAX_OUTPUT_BYTES = 1024 * 1024  # GitHub counts a job's outputs as UTF-16
_MAX_SUMMARY_BYTES = 1024 * 1024 - 1024  # leaves room for the text that an action adds
_MAX_COMMENT_CHARS = 65_000  # GitHub's limit is 65,536
_NOTHING_TO_OPEN = 422  # HTTP status
_MARK = "<!-- skill-evaluator -->"


class GitHub:
    """The platform `github`."""

    def set_outputs(self, values: Mapping[str, Any]) -> None:
        """Append to the file in GITHUB_OUTPUT; raise PlanError beyond the limit of 1 MiB."""
        texts = {
            name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            for name, value in values.items()
        }
        lines = [f"{name}={text}\n" for name, text in texts.items()]
        if sum(len(line.encode("utf-16-le")) for line in lines) > _MAX_OUTPUT_BYTES:
            raise PlanError("the matrix is larger than GitHub's limit of 1 MiB between jobs; name fewer components")
        _append("GITHUB_OUTPUT", "".join(lines))

    def add_summary(self, page: Page) -> None:
        """Append to the file in GITHUB_STEP_SUMMARY, which may grow to 1 MiB."""
        text = page.within(_MAX_SUMMARY_BYTES, lambda part: len(part.encode("utf-8", "backslashreplace")))
        _append("GITHUB_STEP_SUMMARY", text.rstrip("\n") + "\n\n")

    def annotate(self, level: str, message: str, file: str | None = None, line: int = 1) -> None:
        """Print a workflow command; other output cannot be mistaken for one."""
        print_command(level, visible(message, keep="\n"), {} if file is None else {"file": file, "line": str(line)})

    def check_access(self) -> None:
        """Raise ConfigError if PyGithub, GITHUB_TOKEN or GITHUB_REPOSITORY is missing; makes no request."""
        with _api():
            pass

    def comment(self, commit: str, page: Page) -> str | None:
        """Write or update the comment on the pull request that merged a commit; return its URL if there is one."""
        with _api() as repository:
            pulls = repository.get_commit(commit).get_pulls()
            request = next((pull for pull in pulls if pull.merged_at), None)
        return None if request is None else self.comment_on(request.number, page)

    def comment_on(self, number: int, page: Page) -> str:
        """Write or update the comment on a pull request and return its URL; raise PlanError if GitHub refuses."""
        body = f"{_MARK}\n{page.within(_MAX_COMMENT_CHARS - len(_MARK) - len(_link()) - 1)}{_link()}"
        with _api() as repository:
            issue = repository.get_issue(number)
            for comment in issue.get_comments():
                # other users could have edited their comments
                if comment.body.startswith(_MARK) and comment.user.type == "Bot":
                    comment.edit(body)
                    return str(comment.html_url)
            return str(issue.create_comment(body).html_url)

    def pull_request(self, branch: str, to: str, title: str) -> str | None:
        """Find or open a pull request and return its URL. Return None if there is nothing to merge."""
        with _api() as repository:
            from github import GithubException

            owner = repository.full_name.partition("/")[0]
            request = next(iter(repository.get_pulls(state="open", head=f"{owner}:{branch}", base=to)), None)
            body = "Records of evaluations; merge them so that later versions are compared with these."
            try:
                request = request or repository.create_pull(base=to, head=branch, title=title, body=body)
            except GithubException as problem:
                if problem.status != _NOTHING_TO_OPEN:
                    raise
                return None
            return str(request.html_url)


PLATFORMS: Mapping[str, GitHub] = {"github": GitHub()}


def _link() -> str:
    server, name, run = (os.environ.get(f"GITHUB_{part}") for part in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"\n[The run]({server}/{name}/actions/runs/{run}) has records and answers as artifacts.\n" if run else ""


@contextmanager
def _api() -> Iterator[Any]:
    """Yield this job's repository as a PyGithub object; raise PlanError if GitHub refuses or cannot be reached."""
    try:
        import github
    except ImportError:
        raise ConfigError("GitHub's API needs a library that is not installed: pip install PyGithub") from None
    token, name = os.environ.get("GITHUB_TOKEN"), os.environ.get("GITHUB_REPOSITORY")
    if not token or not name:
        raise ConfigError("GITHUB_TOKEN or GITHUB_REPOSITORY is not set; GitHub's API needs both")
    address = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    try:
        with github.Github(base_url=address, auth=github.Auth.Token(token), lazy=True, per_page=100) as client:
            yield client.get_repo(name)
    except github.GithubException as problem:
        reason = problem.data.get("message", "") if isinstance(problem.data, dict) else ""
        raise PlanError(
            f"GitHub's API answered {problem.status} {reason}; check the permissions of GITHUB_TOKEN"
        ) from None
    except OSError as problem:  # PyGithub's HTTP library raises OSError, too
        raise PlanError(f"cannot reach GitHub at {address}: {problem}") from None


def _append(variable: str, content: str) -> None:
    path = os.environ.get(variable)
    if not path:
        raise ConfigError(f"{variable} is not set; --platform github is for a job of GitHub Actions")
    with storing(Path(path)), Path(path).open("a", encoding="utf-8", errors="backslashreplace") as handle:
        handle.write(content)
