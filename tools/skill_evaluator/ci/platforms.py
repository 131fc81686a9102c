"""CI platforms (job outputs, summaries, annotations, comments), and fixtures of another repository.

The texts are untrusted (names, outputs of models, error messages); they are escaped and cut to the platform's limits.
Fixtures are fetched, and checked out once per commit.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skill_evaluator.display import add_key_variables, print_command, visible
from skill_evaluator.display.pages import Page
from skill_evaluator.errors import ConfigError, FixtureError, GitError, PlanError
from skill_evaluator.files import locked, storing
from skill_evaluator.library.reading import ConfinedFolder, FixturesElsewhere
from skill_evaluator.providers.local import cache_dir
from skill_evaluator.repository import open_store
from skill_evaluator.text import digest

_MAX_OUTPUT_BYTES = 1024 * 1024  # GitHub counts a job's outputs as UTF-16
_MAX_SUMMARY_BYTES = 1024 * 1024 - 1024  # leaves room for the text that an action adds
_MAX_COMMENT_CHARS = 65_000  # GitHub's limit is 65,536
_NOTHING_TO_OPEN = 422  # HTTP status
_MARK = "<!-- skill-evaluator -->"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PATIENCE_S = 900


class GitHub:
    """GitHub Actions, the platform `github`."""

    def set_outputs(self, values: Mapping[str, Any]) -> None:
        """Write values, as texts or JSON, to the file in GITHUB_OUTPUT for later jobs.

        Raise PlanError if they exceed 1 MiB in UTF-16, as GitHub counts them.
        """
        texts = {
            name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            for name, value in values.items()
        }
        lines = [f"{name}={text}\n" for name, text in texts.items()]
        if sum(len(line.encode("utf-16-le")) for line in lines) > _MAX_OUTPUT_BYTES:
            raise PlanError("the matrix is larger than GitHub's limit of 1 MiB between jobs; name fewer components")
        _append("GITHUB_OUTPUT", "".join(lines))

    def add_summary(self, page: Page) -> None:
        """Append a page, cut to 1 MiB, to the job summary: the file in GITHUB_STEP_SUMMARY."""
        text = page.within(_MAX_SUMMARY_BYTES, lambda part: len(part.encode("utf-8", "backslashreplace")))
        _append("GITHUB_STEP_SUMMARY", text.rstrip("\n") + "\n\n")

    def annotate(self, level: str, message: str, file: str, line: int) -> None:
        """Annotate a line of a file; `level` is warning or error."""
        print_command(level, visible(message, keep="\n"), {"file": file, "line": str(line)})

    def check_access(self) -> None:
        """Raise ConfigError if PyGithub, GITHUB_TOKEN or GITHUB_REPOSITORY is missing; makes no request."""
        with _api():
            pass

    def comment(self, commit: str, page: Page) -> str | None:
        """Comment on a commit's merged pull request; return the URL. Return None if there is no such pull request."""
        with _api() as repository:
            pulls = repository.get_commit(commit).get_pulls()
            request = next((pull for pull in pulls if pull.merged_at), None)
        return None if request is None else self.comment_on(request.number, page)

    def comment_on(self, number: int, page: Page) -> str:
        """Write or update the comment on a pull request and return its URL. Raise PlanError if GitHub refuses."""
        body = f"{_MARK}\n{page.within(_MAX_COMMENT_CHARS - len(_MARK) - len(_link()) - 1)}{_link()}"
        with _api() as repository:
            issue = repository.get_issue(number)
            for comment in issue.get_comments():
                # anybody can write a comment with the mark
                if comment.body.startswith(_MARK) and comment.user.type == "Bot":
                    comment.edit(body)
                    return str(comment.html_url)
            return str(issue.create_comment(body).html_url)

    def pull_request(self, branch: str, to: str, title: str) -> str | None:
        """Find or open a pull request from `branch` to `to`; return its URL. Return None if no commit is new."""
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
    """Yield this job's repository as a PyGithub object. Raise PlanError if GitHub fails.

    Raise ConfigError if PyGithub is not installed, or if GITHUB_TOKEN or GITHUB_REPOSITORY is not set.
    """
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


def fetched_fixtures(declared: FixturesElsewhere) -> tuple[Path, str]:
    """Fetch the declared fixtures; return their folder and the commit that the ref points to.

    If the repository cannot be reached, warn and use the commit that was fetched last. The variable FIXTURES_COMMIT
    (a full id) pins the commit. Raise FixtureError if no commit was fetched, or if the commit lacks the folder.
    """
    address, access = _clone_access(declared.repository)
    if not access and declared.repository[0] in "./":
        address = str(Path(address).resolve())
    ref = os.environ.get("FIXTURES_COMMIT") or declared.ref
    if ref != declared.ref and not _COMMIT.fullmatch(ref):
        raise FixtureError(f"FIXTURES_COMMIT is {ref[:100]!a}; set it to a full commit id (40 hexadecimal digits)")
    name = re.sub(r"[^A-Za-z0-9]+", "-", declared.repository).strip("-").lower()[-40:]
    folder = cache_dir() / "fixtures" / f"{name}-{digest(address).rpartition(':')[2][:12]}"
    with locked(folder.with_name(f".{folder.name}.lock"), seconds=_PATIENCE_S):
        store = open_store(folder)
        commit = store.fetched_commit(ref)
        if commit != ref:
            try:
                commit = store.fetch_commit(address, ref, access)
            except GitError as problem:
                if commit is None or "couldn't find remote ref" in str(problem):
                    raise FixtureError(
                        f"the fixtures in {declared.repository} at {ref} cannot be fetched: {problem}; see `fixtures` "
                        "in settings.yaml and your access (in CI: the secret FIXTURES_TOKEN), or give --fixtures DIR"
                    ) from None
                message = (
                    f"the fixtures in {declared.repository} are those of {commit[:12]}, fetched earlier: {problem}"
                )
                print(f"warning: {visible(' '.join(message.split()))}", file=sys.stderr)
        checkout = folder / commit
        store.check_out(commit, checkout)
    root = ConfinedFolder(checkout, FixtureError)
    if not (checkout / declared.path).is_dir():
        raise FixtureError(
            f"{declared.repository} has no folder '{declared.path}' at {commit[:12]}; "
            "correct fixtures.path in settings.yaml"
        )
    return root.inside(checkout / declared.path), commit


def _clone_access(name: str) -> tuple[str, Mapping[str, str]]:
    """Return the URL to clone, and git variables to log in: {} if `name` is a URL or FIXTURES_TOKEN is not set."""
    add_key_variables(["FIXTURES_TOKEN"])
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


def refuse_fetched(declared: FixturesElsewhere | None, fixtures: Path | None) -> None:
    """Raise FixtureError if `fixtures` is the fetched copy of another repository, where new cases would be lost."""
    if declared and fixtures and fixtures.is_relative_to(cache_dir()):
        raise FixtureError(f"the cases belong in {declared.repository}; name a clone of it with --fixtures DIR")
