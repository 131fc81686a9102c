"""What became of a plan, told where people are: the page, the job's summary, the pull request."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from skill_evaluator.files import json_text

from tests.ci.platforms.github_api import NAME, TOKEN, GitHubApi, github_api
from tests.ci.test_plan import PLAN
from tests.support.components import case, component, record, write_collected
from tests.support.library import Ended, call

COMMIT = "c0ffee"
RIGHT = '{"shop": "A", "total": 9}'


@pytest.fixture
def api() -> Iterator[GitHubApi]:
    with github_api() as running:
        running.merged(COMMIT, 7)
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a plan and what was collected of it lie."""
    made = record(component(tmp_path), [(case("a", {"shop": "A", "total": 9}), [RIGHT])])
    write_collected(tmp_path / "collected", made)
    (tmp_path / "plan.json").write_text(json_text(PLAN.model_dump(mode="json")))
    return tmp_path


def report(folder: Path, *arguments: str, api: GitHubApi | None = None) -> Ended:
    of_github = {"GITHUB_STEP_SUMMARY": str(folder / "summary"), "GITHUB_REPOSITORY": NAME, "GITHUB_TOKEN": TOKEN}
    address = {"GITHUB_API_URL": api.url if api else ""}
    return call(folder, "ci", "report", *arguments, env={**(of_github if api else {}), **address})


def test_without_the_library_of_github_one_line_says_what_to_install_before_anything_is_told(
    folder: Path, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "github", None)
    for asked in (("--commit", COMMIT), ("--open", "records")):
        done = report(folder, "collected", "--platform", "github", *asked, api=api)
        assert (done.code, done.out) == (2, "")
        assert done.err == "error: GitHub's API needs a library that is not installed: pip install PyGithub\n"
    assert not (folder / "summary").exists()
    assert report(folder, "collected", "--platform", "github", api=api).code == 0  # asks no API


def test_the_page_goes_to_stdout_the_summary_and_one_comment(folder: Path, api: GitHubApi) -> None:
    arguments = ("collected", "--platform", "github", "--commit", COMMIT)
    for _ in range(2):
        done = report(folder, *arguments, api=api)
        assert (done.code, done.out.startswith("## Evaluation\n")) == (0, True)
    (comment,) = api.comments[7]
    assert comment["body"].endswith(done.out)
    assert (folder / "summary").read_text().startswith(done.out)
    assert done.err == f"comment: {comment['html_url']}\n"


def test_a_commit_without_a_pull_request_is_no_error(folder: Path, api: GitHubApi) -> None:
    api.pulls_of["abc"] = []
    done = report(folder, "--platform", "github", "--commit", "abc", api=api)
    assert (done.code, done.err) == (0, "comment: none, as no merged pull request has a commit of this push\n")


def test_pull_requests_of_one_push_each_get_the_comment(folder: Path, api: GitHubApi) -> None:
    api.merged("abc", 8)
    done = report(folder, "--platform", "github", "--commit", COMMIT, "--commit", "abc", "--commit", "abc", api=api)
    assert done.code == 0
    assert [len(api.comments[number]) for number in (7, 8)] == [1, 1]
    assert report(folder, "--platform", "github", "--pull-request", "8", api=api).code == 0
    assert [len(api.comments[number]) for number in (7, 8)] == [1, 1]


def test_records_that_wait_for_review_have_a_pull_request(folder: Path, api: GitHubApi) -> None:
    for branch, words in (("merged", "nothing to review"), ("review", f"https://github.com/{NAME}/pull/1")):
        done = report(folder, "--platform", "github", "--open", branch, "--to", "main", "--commit", COMMIT, api=api)
        assert (done.code, words in done.err) == (0, True), branch
        assert len(api.comments[7]) == 1, branch


def test_when_nothing_could_be_collected_the_plan_says_what_is_missing(folder: Path, api: GitHubApi) -> None:
    arguments = ("none", "--plan", "plan.json", "--platform", "github", "--commit", COMMIT, "--open", "review")
    done = report(folder, *arguments, api=api)
    assert done.code == 4  # the plan has a fault
    assert "| `components/c/prompt.md:2` | `no` |" in done.out
    assert "1 run (1 missing); 9 calls planned: 0 scored, 0 failed, 9 not run." in done.out
    assert "its results could not be collected" in api.comments[7][0]["body"]
    assert api.open_pulls == []  # there is no record to review


def test_a_refusal_fails_the_job_after_the_page_is_out(folder: Path, api: GitHubApi) -> None:
    api.refusing = 403
    done = report(folder, "--platform", "github", "--commit", COMMIT, api=api)
    assert (done.code, done.out.startswith("## Evaluation\n")) == (2, True)
    assert done.err.endswith("error: GitHub refused: 403 Resource not accessible by integration\n")
    assert (folder / "summary").exists()


def test_what_cannot_be_meant_is_refused(folder: Path) -> None:
    for arguments, words in (
        (("--commit", COMMIT), "--commit and --open need --platform github"),
        (("none",), "outcome.json does not exist"),
        (("none", "--plan", "none.json"), "none.json does not exist"),
    ):
        assert report(folder, *arguments).refuses(words), arguments


def test_without_a_platform_it_is_a_page_or_a_table(folder: Path) -> None:
    assert report(folder).out.startswith("## Evaluation\n")
    assert report(folder, "--format", "json").json["runs"][0]["skill"] == "receipts"
    assert "receipts" in report(folder, "--format", "text").out
