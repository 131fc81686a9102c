"""Cases that are in another repository: fetched from real bare ones, recorded with their commit, kept for offline."""

import base64
import shutil
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import GitRepository, bare_copy, git
from tests.support.library import SKILL, Ended, Library

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Elsewhere:
    """A library whose cases are in a repository beside it: `origin` is its bare copy, `data` the clone of a person."""

    def __init__(self, root: Path) -> None:
        self.library = Library(root / "library")
        self.data = GitRepository(root / "data")
        (self.library.root / "fixtures" / SKILL).rename(self.data.root / SKILL)
        self.first = self.data.commit()
        self.origin = root / "origin.git"
        self.address = bare_copy(self.data.root, self.origin)
        self.cache = root / "cache"
        self.declare()

    def declare(self, **changed: str) -> None:
        self.library.settings(fixtures={"repository": self.address, **changed})

    def change(self) -> str:
        """Push a change of a document; return its commit."""
        self.data.write(f"{SKILL}/cases/alpha/document.md", "alpha is the title of another notice of 2024.\n")
        commit = self.data.commit()
        self.data.git("push", "-q", "origin", "main")
        return commit

    def call(self, *arguments: str, **env: str) -> Ended:
        return self.library.call(*arguments, env={"XDG_CACHE_HOME": str(self.cache), **env})


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


def test_a_run_asks_the_cases_of_the_newest_commit_and_records_it(elsewhere: Elsewhere) -> None:
    assert elsewhere.call("evaluate", SKILL).code == 0
    second = elsewhere.change()
    assert elsewhere.call("evaluate", SKILL).code == 0
    assert [row["dataset_commit"] for row in elsewhere.library.rows()] == [second, elsewhere.first]
    newer, older = elsewhere.library.records()
    changed = [new["case_id"] for new, old in zip(newer["per_case"], older["per_case"], strict=True) if new != old]
    assert changed == ["alpha"]


def test_offline_a_command_takes_what_was_fetched_last_and_says_so(elsewhere: Elsewhere) -> None:
    fetched = elsewhere.call("cases", "fetch")
    assert (fetched.code, fetched.err) == (0, "")
    elsewhere.origin.rename(elsewhere.origin.with_name("gone"))
    ended = elsewhere.call("lint", SKILL)
    assert ended.code == 0
    (line,) = ended.err.splitlines()
    assert line.startswith(f"warning: the fixtures in {elsewhere.address} are those of {elsewhere.first[:12]}, fetched")


@pytest.mark.parametrize("left", ["nothing", "half"])
def test_what_was_deleted_from_the_cache_or_is_there_by_half_is_laid_out_again(elsewhere: Elsewhere, left: str) -> None:
    elsewhere.call("cases", "fetch")
    (checkout,) = elsewhere.cache.glob(f"skill-evaluator/fixtures/*/{elsewhere.first}")
    if left == "half":  # as a process leaves it that was killed
        git(checkout, "worktree", "move", ".", f"{checkout}.part")
        (checkout.with_name(f"{checkout.name}.part") / SKILL / "cases" / "alpha" / "document.md").unlink()
    else:
        shutil.rmtree(checkout)
    assert elsewhere.call("lint", SKILL).code == 0
    assert (checkout / SKILL / "cases" / "alpha" / "document.md").is_file()


@pytest.mark.parametrize("pin", ["ref", "variable"])
def test_a_fixed_commit_is_asked_for_once_and_kept_when_the_branch_moves_on(elsewhere: Elsewhere, pin: str) -> None:
    env = {"FIXTURES_COMMIT": elsewhere.first} if pin == "variable" else {}
    if pin == "ref":
        elsewhere.declare(ref=elsewhere.first)
    elsewhere.change()
    assert elsewhere.first in elsewhere.call("cases", "fetch", **env).out
    elsewhere.origin.rename(elsewhere.origin.with_name("gone"))
    ended = elsewhere.call("evaluate", SKILL, **env)
    assert (ended.code, "warning" in ended.err) == (0, False)
    assert elsewhere.library.rows()[0]["dataset_commit"] == elsewhere.first


def test_what_cannot_be_had_is_one_line_that_says_where_it_was_declared(elsewhere: Elsewhere) -> None:
    (elsewhere.data.root / "out").symlink_to("/tmp")
    elsewhere.data.commit()
    elsewhere.data.git("push", "-q", "origin", "main")
    refused: tuple[tuple[dict[str, str], str], ...] = (
        ({"repository": "./nowhere"}, "the fixtures in ./nowhere at main cannot be fetched"),
        ({"ref": "mian"}, "couldn't find remote ref mian; see `fixtures` in settings.yaml and your access"),
        ({"path": "data/sets"}, "has no folder 'data/sets' at"),
        ({"path": "../data"}, "'../data' is no folder inside that repository at fixtures.path"),
        ({"path": "out"}, "leads out of"),
        ({"repository": "--upload-pack=touch pwned"}, "at fixtures.repository"),
        ({"repository": "ext::sh -c touch% pwned"}, "at fixtures.repository"),
    )
    for declared, why in refused:
        elsewhere.declare(**declared)
        assert elsewhere.call("lint").refuses(why), declared
    assert not list(elsewhere.library.root.rglob("pwned"))


def test_without_the_cases_versions_and_records_are_checked_all_the_same(elsewhere: Elsewhere) -> None:
    assert elsewhere.call("evaluate", SKILL).code == 0
    elsewhere.library.call("init", "--adopt", "--yes")
    git(elsewhere.library.root, "init", "-q", "-b", "main")
    git(elsewhere.library.root, "add", "-A")
    git(elsewhere.library.root, "commit", "-q", "-m", "recorded")
    elsewhere.declare(repository="./nowhere")
    assert elsewhere.call("lint").code == 2
    ended = elsewhere.call("lint", "--no-cases", "--base", "HEAD")
    assert (ended.code, ended.err) == (0, "")
    assert "hint: its contract and cases are not checked (--no-cases)" in ended.out
    prompt, (record,) = elsewhere.library.component / "prompt.md", elsewhere.library.component.glob("evals/records/*")
    prompt.write_text(f"{prompt.read_text()}Be brief.\n")
    record.write_text(record.read_text().replace('"cost_usd"', '"cost"'))
    problems = elsewhere.call("lint", "--no-cases", "--base", "HEAD", "--format", "json").json["components"][0][
        "problems"
    ]
    assert any("the prompt changed but the version did not" in problem for problem in problems)
    assert any(record.name in problem for problem in problems)


def test_fixtures_of_ones_own_come_before_those_of_settings(elsewhere: Elsewhere) -> None:
    elsewhere.declare(repository="./nowhere")
    assert elsewhere.call("lint", "--fixtures", str(elsewhere.data.root)).code == 0


def test_a_folder_beside_the_library_is_a_repository_too_and_its_path_is_where_the_cases_are(
    elsewhere: Elsewhere,
) -> None:
    (elsewhere.data.root / "sets").mkdir()
    elsewhere.data.git("mv", SKILL, "sets")
    commit = elsewhere.data.commit()
    elsewhere.declare(repository="../data", path="sets")
    assert "3 cases" in elsewhere.call("lint", SKILL).out
    assert commit in elsewhere.call("cases", "fetch").out


def test_the_read_token_goes_to_the_server_of_the_jobs_alone_and_into_no_message(elsewhere: Elsewhere) -> None:
    brought: list[tuple[str, str | None]] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            brought.append((self.path, self.headers["Authorization"]))
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    env = {"FIXTURES_TOKEN": "the-read-token", "GITHUB_SERVER_URL": url}
    for repository in ("octo/data-sets", f"{url}/octo/data-sets"):
        elsewhere.declare(repository=repository)
        ended = elsewhere.call("cases", "fetch", **env)
        assert ended.code == 2
        assert "the secret FIXTURES_TOKEN" in ended.err
        assert "the-read-token" not in ended.err
    server.shutdown()
    server.server_close()
    login = base64.b64encode(b"x-access-token:the-read-token").decode()
    path = "/octo/data-sets/info/refs?service=git-upload-pack"
    assert brought == [(path, f"Basic {login}"), (path, None)]
