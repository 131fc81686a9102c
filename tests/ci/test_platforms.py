"""GitHub through PyGithub against a loopback server: the comment, its limits, outputs, summaries and refusals."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from skill_evaluator.ci.platforms import GitHub
from skill_evaluator.display.pages import Fold, Heading, Lines, Page, Section
from skill_evaluator.errors import ConfigError, PlanError

from tests.ci.github_api import NAME, TOKEN, GitHubApi, github_api

COMMIT = "c0ffee"
MARK = "<!-- skill-evaluator -->"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubApi]:
    with github_api() as running:
        monkeypatch.setenv("GITHUB_API_URL", running.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", NAME)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("GITHUB_RUN_ID", raising=False)
        yield running


def a_page(text: str) -> Page:
    return Page([Section(name="all", blocks=[Lines(text.splitlines(), "-")])])


def bodies(api: GitHubApi, number: int = 7) -> list[str]:
    return [comment["body"] for comment in api.comments[number]]


def test_comment_is_created_once_and_then_updated(api: GitHubApi) -> None:
    api.merged(COMMIT, 7, comments=2)
    address = GitHub().comment(COMMIT, a_page("First"))
    assert address == f"https://github.com/{NAME}/pull/7#issuecomment-102"
    assert bodies(api) == ["comment 0", "comment 1", f"{MARK}\n- First\n"]
    assert GitHub().comment(COMMIT, a_page("Second")) == address
    assert bodies(api) == ["comment 0", "comment 1", f"{MARK}\n- Second\n"]


def test_own_comment_is_found_among_many(api: GitHubApi) -> None:
    api.merged(COMMIT, 7, comments=265)
    api.comment(7, f"{MARK}\n# Mine", "User")  # a person may write what they like
    api.comment(7, f"{MARK}\n# First")
    api.comment(7, f"> {MARK}\n> quoted")
    GitHub().comment(COMMIT, a_page("Second"))
    assert len(bodies(api)) == 268
    assert bodies(api)[265:267] == [f"{MARK}\n# Mine", f"{MARK}\n- Second\n"]
    assert api.asked.count(f"GET /repos/{NAME}/issues/7/comments") == 3


def test_comment_goes_to_the_merged_pull_request_if_there_is_one(api: GitHubApi) -> None:
    api.merged(COMMIT, 5, merged=False)
    api.pulls_of["abc"] = []
    assert GitHub().comment(COMMIT, a_page("Page")) is None
    assert GitHub().comment("abc", a_page("Page")) is None
    assert not any(asked.startswith(("POST", "PATCH")) for asked in api.asked)
    api.merged(COMMIT, 7)
    GitHub().comment(COMMIT, a_page("Page"))
    assert (bodies(api, 5), len(bodies(api, 7))) == ([], 1)


def test_long_comment_is_cut_and_keeps_its_link(api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SERVER_URL": "https://github.com", "RUN_ID": "42"}.items():
        monkeypatch.setenv(f"GITHUB_{name}", value)
    api.merged(COMMIT, 7)
    GitHub().comment(COMMIT, a_page(f"{'é' * 99}\n" * 1_000))
    (body,) = bodies(api)
    assert 64_700 < len(body) <= 65_000
    assert body.startswith(f"{MARK}\n- é")
    assert "Cut here: the first part alone exceeds the maximum length." in body
    assert body.endswith(
        f"[The run](https://github.com/{NAME}/actions/runs/42) has records and answers as artifacts.\n"
    )


def test_sections_that_do_not_fit_are_named(api: GitHubApi) -> None:
    api.merged(COMMIT, 7)
    sections = [
        Section(name=f"part {at}", blocks=[Heading(str(at)), "open", Fold("details", ["x" * 9_000])]) for at in range(9)
    ]
    GitHub().comment(COMMIT, Page([Section(name="first", blocks=[Heading("Page", level=1)]), *sections]))
    (body,) = bodies(api)
    assert body.count("### ") == 9
    assert body.count("<details>") == body.count("</details>") == 7
    assert "the details of 2 sections (`part 7`, `part 8`)" in body


def test_refusal_of_github_is_one_line(api: GitHubApi) -> None:
    for status in (401, 403, 404):
        api.refusing = status
        with pytest.raises(PlanError, match=f"GitHub's API answered {status} Resource not accessible by integration"):
            GitHub().comment(COMMIT, a_page("Page"))
        with pytest.raises(PlanError, match=f"GitHub's API answered {status} Resource not accessible by integration"):
            GitHub().pull_request("review", "main", "title")


def test_unreachable_github_is_named(api: GitHubApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1")
    with pytest.raises(PlanError, match="cannot reach GitHub at http://127"):
        GitHub().comment(COMMIT, a_page("Page"))


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "GITHUB_REPOSITORY"])
def test_missing_token_or_repository_is_refused(api: GitHubApi, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match="GITHUB_TOKEN or GITHUB_REPOSITORY is not set"):
        GitHub().comment(COMMIT, a_page("Page"))


def test_pull_request_is_opened_once(api: GitHubApi) -> None:
    first = GitHub().pull_request("review", "main", "Record evaluations")
    assert first == f"https://github.com/{NAME}/pull/1"
    assert GitHub().pull_request("review", "main", "Record evaluations") == first
    ((opened),) = api.open_pulls
    assert (opened["title"], opened["head"], opened["base"]) == ("Record evaluations", "review", "main")


def test_no_pull_request_is_opened_without_changes(api: GitHubApi) -> None:
    assert GitHub().pull_request("merged-already", "main", "Record evaluations") is None


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def test_outputs_are_one_line_each(written: Path) -> None:
    GitHub().set_outputs({"matrix": {"include": [{"id": "a\nb=c"}]}, "jobs": 1, "invocation": "i"})
    GitHub().set_outputs({"later": "too"})
    assert (written / "GITHUB_OUTPUT").read_text().splitlines() == [
        'matrix={"include":[{"id":"a\\nb=c"}]}',
        "jobs=1",
        "invocation=i",
        "later=too",
    ]


def test_outputs_beyond_the_limit_are_refused_before_github_does(written: Path) -> None:
    GitHub().set_outputs({"matrix": "x" * 520_000})  # two bytes each, as GitHub counts them
    with pytest.raises(PlanError, match=r"larger than GitHub's limit of 1 MiB .*; name fewer components"):
        GitHub().set_outputs({"matrix": "x" * 530_000})


def test_summary_is_appended_and_cut_at_the_limit(written: Path) -> None:
    GitHub().add_summary(a_page("One"))
    GitHub().add_summary(a_page("Two"))
    assert (written / "GITHUB_STEP_SUMMARY").read_text() == "- One\n\n- Two\n\n"
    (written / "GITHUB_STEP_SUMMARY").unlink()
    GitHub().add_summary(a_page(f"{'é' * 99}\ud800\n" * 6_000))
    raw = (written / "GITHUB_STEP_SUMMARY").read_bytes()
    assert 1_000_000 < len(raw) <= 1024 * 1024
    assert raw.decode().rstrip().endswith("*Cut here: the first part alone exceeds the maximum length.*")


def test_github_files_are_refused_outside_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, write in (
        ("GITHUB_OUTPUT", lambda: GitHub().set_outputs({"a": 1})),
        ("GITHUB_STEP_SUMMARY", lambda: GitHub().add_summary(a_page("One"))),
    ):
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(ConfigError, match=f"{name} is not set; --platform github is for a job of GitHub Actions"):
            write()


def test_annotation_is_one_workflow_command(capfd: pytest.CaptureFixture[str]) -> None:
    for message, file, line, printed in (
        ("two\nlines\r", "a/b.md", 3, "::error file=a/b.md,line=3::two%0Alines\\r"),
        ("100% %0A::add-mask::x", "a.md", 1, "::error file=a.md,line=1::100%25 %250A::add-mask::x"),
        ("x", "a,b:c\n%.md", 1, "::error file=a%2Cb%3Ac%0A%25.md,line=1::x"),
        ("\x1b[31mred\u202e", "a.md", 1, "::error file=a.md,line=1::\\u001b[31mred\\u202e"),
    ):
        GitHub().annotate("error", message, file, line)
        assert capfd.readouterr() == ("", printed + "\n")
