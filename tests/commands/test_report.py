"""What became of a plan, told where people are: the page, the job's summary, the pull request."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from skill_evaluator.files import json_text

from tests.ci.github_api import NAME, TOKEN, GitHubApi, github_api
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


def test_missing_pygithub_is_one_line_before_anything_is_written(
    folder: Path, api: GitHubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "github", None)
    for asked in (("--commit", COMMIT), ("--open", "records")):
        done = report(folder, "collected", "--platform", "github", *asked, api=api)
        assert (done.code, done.out) == (2, "")
        assert done.err == "error: GitHub's API needs a library that is not installed: pip install PyGithub\n"
    assert not (folder / "summary").exists()
    assert report(folder, "collected", "--platform", "github", api=api).code == 0  # asks no API


def test_page_goes_to_stdout_summary_and_one_comment(folder: Path, api: GitHubApi) -> None:
    arguments = ("collected", "--platform", "github", "--commit", COMMIT)
    for _ in range(2):
        done = report(folder, *arguments, api=api)
        assert (done.code, done.out.startswith("## Evaluation\n")) == (0, True)
    (comment,) = api.comments[7]
    assert comment["body"].endswith(done.out)
    assert (folder / "summary").read_text().startswith(done.out)
    assert done.err == f"comment: {comment['html_url']}\n"


def test_each_pull_request_of_a_push_gets_the_comment(folder: Path, api: GitHubApi) -> None:
    api.merged("abc", 8)
    done = report(folder, "--platform", "github", "--commit", COMMIT, "--commit", "abc", "--commit", "abc", api=api)
    assert done.code == 0
    assert report(folder, "--platform", "github", "--pull-request", "8", api=api).code == 0
    assert [len(api.comments[number]) for number in (7, 8)] == [1, 1]
    api.pulls_of["none"] = []
    done = report(folder, "--platform", "github", "--commit", "none", "--open", "review", "--to", "main", api=api)
    assert (done.code, f"https://github.com/{NAME}/pull/1" in done.err) == (0, True)


def test_report_without_results_names_what_the_plan_misses(folder: Path, api: GitHubApi) -> None:
    arguments = ("none", "--plan", "plan.json", "--platform", "github", "--commit", COMMIT, "--open", "review")
    done = report(folder, *arguments, api=api)
    assert done.code == 4  # the plan has a fault
    assert "| `components/c/prompt.md:2` | `no` |" in done.out
    assert "1 run (1 missing); 9 calls planned: 0 scored, 0 failed, 9 not run." in done.out
    assert "its results could not be collected" in api.comments[7][0]["body"]
    assert api.open_pulls == []  # there is no record to review


def test_refusal_of_github_ends_with_2_after_the_page(folder: Path, api: GitHubApi) -> None:
    api.refusing = 403
    done = report(folder, "--platform", "github", "--commit", COMMIT, api=api)
    assert (done.code, done.out.startswith("## Evaluation\n")) == (2, True)
    assert "error: GitHub's API answered 403 Resource not accessible by integration; check" in done.err
    assert (folder / "summary").exists()


def test_report_refuses_invalid_options(folder: Path) -> None:
    for arguments, words in (
        (("--commit", COMMIT), "--commit, --pull-request and --open require --platform github"),
        (("none",), "outcome.json does not exist"),
        (("none", "--plan", "none.json"), "none.json does not exist"),
    ):
        assert report(folder, *arguments).refuses(words), arguments


def test_report_prints_each_format(folder: Path) -> None:
    assert report(folder).out.startswith("## Evaluation\n")
    assert report(folder, "--format", "json").json["runs"][0]["skill"] == "receipts"
    assert "receipts" in report(folder, "--format", "text").out
