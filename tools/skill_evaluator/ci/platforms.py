"""CI platforms: outputs, summaries and annotations by files and commands, comments by an API.

The texts are untrusted (names, outputs of models, error messages); they are escaped and cut to the platform's limits.
"""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_evaluator.display.pages import Page
from skill_evaluator.display.safe_text import print_command, visible
from skill_evaluator.errors import ConfigError, PlanError
from skill_evaluator.files import storing
from skill_evaluator.processes import child_environment, hide_from_children

_MAX_OUTPUT_BYTES = 1024 * 1024  # GitHub counts a job's outputs as UTF-16
_MAX_SUMMARY_BYTES = 1024 * 1024 - 1024  # leaves room for the text that an action adds
_MAX_COMMENT_CHARS = 65_000  # GitHub's limit is 65,536
_NOTHING_TO_OPEN = 422  # HTTP status
_NOT_LOGGED_IN = 4  # exit code of gh
_TIMEOUT_S = 120
_MAX_REASON_CHARS = 300
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
        """Raise ConfigError if PyGithub, GITHUB_TOKEN or GITHUB_REPOSITORY is missing."""
        _library()
        _token_and_name()

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
        github = _library()
        with _api() as repository:
            owner = repository.full_name.partition("/")[0]
            request = next(iter(repository.get_pulls(state="open", head=f"{owner}:{branch}", base=to)), None)
            body = "Records of evaluations; merge them so that later versions are compared with these."
            try:
                request = request or repository.create_pull(base=to, head=branch, title=title, body=body)
            except github.GithubException as problem:
                if problem.status != _NOTHING_TO_OPEN:
                    raise
                return None
            return str(request.html_url)


PLATFORMS: Mapping[str, GitHub] = {"github": GitHub()}


def clone_access(name: str) -> tuple[str, Mapping[str, str]]:
    """Return the address of a repository, and the environment in which git may read it with FIXTURES_TOKEN.

    Only `owner/name` gets the token. Child processes do not inherit the variable itself.
    """
    hide_from_children(["FIXTURES_TOKEN"])
    token = os.environ.get("FIXTURES_TOKEN", "")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name):
        return name, {}
    server = os.environ.get("GITHUB_SERVER_URL") or "https://github.com"
    if not token:
        return f"{server}/{name}", {}
    login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return f"{server}/{name}", {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
    }


def name_of_repository(folder: Path) -> str:
    """Return OWNER/NAME of the repository that contains a folder; raise ConfigError if gh does not know it."""
    done = gh("repo", "view", "--json", "nameWithOwner", "--jq", ".nameWithOwner", folder=folder)
    if done.returncode or not done.stdout.strip():
        raise ConfigError(
            f"gh does not know the repository on GitHub: {last_line(done.stderr)}; "
            "run this in a clone from GitHub, or set GITHUB_REPOSITORY to OWNER/NAME"
        )
    return done.stdout.strip()


def gh(*arguments: str, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run gh; raise ConfigError if it is missing, hangs, or nobody is logged in."""
    try:
        done = subprocess.run(  # noqa: S603 (no shell; paths are absolute)
            ["gh", *arguments],  # noqa: S607 (found on PATH)
            cwd=folder,
            env=child_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except OSError as problem:
        raise ConfigError(
            f"gh cannot be started ({problem.strerror}); install it from https://cli.github.com"
        ) from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"gh did not answer within {_TIMEOUT_S} s; try again") from None
    if done.returncode == _NOT_LOGGED_IN:
        raise ConfigError("gh is not logged in; run `gh auth login`, or set GH_TOKEN")
    return done


def last_line(text: str) -> str:
    """Return the last line that a program printed, shortened if it is long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_MAX_REASON_CHARS] if lines else ""


def _link() -> str:
    server, name, run = (os.environ.get(f"GITHUB_{part}") for part in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    return f"\n[The run]({server}/{name}/actions/runs/{run}) has records and answers as artifacts.\n" if run else ""


def _library() -> Any:
    try:
        import github
    except ImportError:
        raise ConfigError("GitHub's API needs a library that is not installed: pip install PyGithub") from None
    return github


def _token_and_name() -> tuple[str, str]:
    token, name = os.environ.get("GITHUB_TOKEN"), os.environ.get("GITHUB_REPOSITORY")
    if not token or not name:
        raise ConfigError("GITHUB_TOKEN or GITHUB_REPOSITORY is not set; GitHub's API needs both")
    return token, name


@contextmanager
def _api() -> Iterator[Any]:
    """Yield this job's repository as a PyGithub object; raise PlanError if GitHub refuses or cannot be reached."""
    github, (token, name) = _library(), _token_and_name()
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
