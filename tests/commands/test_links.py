"""Links that lead out of the library: refused before a byte of what they lead to is read into a request."""

import shutil
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer
from tests.support.library import SKILL, Library

_SECRET = "token-of-the-machine"
_CASE = f"fixtures/{SKILL}/cases/beta"


def link(library: Library, path: str, target: Path | str) -> None:
    place = library.root / path
    if place.is_dir() and not place.is_symlink():
        place.rename(library.root / "moved")
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside the library, with a file and a case in it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text(_SECRET)
    (folder / "document.md").write_text(f"beta {_SECRET}")
    return folder


def test_a_document_that_links_to_the_environment_of_the_process_reaches_no_server(
    served: Library, server: ChatServer
) -> None:
    link(served, f"{_CASE}/document.md", "/proc/self/environ")
    refused = served.evaluate("--no-leaderboard", env={"ID_TOKEN": _SECRET})
    assert refused.code == 2
    assert refused.out == ""
    (line,) = refused.err.splitlines()
    assert line.startswith(f"error: {_CASE}/document.md leads out of fixtures, to /proc/")
    assert "limits: {follow_links: true}" in line
    assert server.times.total() == 0
    assert not served.results.exists()


LEADING_OUT = (
    (f"{_CASE}/document.md", "secret"),
    (f"{_CASE}/ground_truth.json", "secret"),
    (f"{_CASE}/meta.json", "secret"),
    (_CASE, ""),
    (f"fixtures/{SKILL}/cases", ""),
    (f"fixtures/{SKILL}", ""),
    ("fixtures", "/"),
    (f"components/{SKILL}", ""),
    (f"components/{SKILL}/prompt.md", "secret"),
    (f"components/{SKILL}/schema.json", "secret"),
    (f"components/{SKILL}/leaderboard.json", "secret"),
    (f"components/{SKILL}/evals/datasets.json", "secret"),
    (f"components/{SKILL}/evals/accepted.json", "secret"),
    (f"components/{SKILL}/evals", ""),
    (".evaluator/models.yaml", "secret"),
    (".evaluator/settings.yaml", "secret"),
)


def test_whatever_links_out_of_its_folder_is_refused_by_name(tmp_path: Path, server: ChatServer, outside: Path) -> None:
    for number, (path, target) in enumerate(LEADING_OUT):
        library = Library(tmp_path / str(number))
        library.served_by(server.url)
        source = library.root / path
        if source.is_dir():  # what lies outside could be used
            shutil.copytree(source, outside, dirs_exist_ok=True)
        link(library, path, "/" if target == "/" else outside / target)
        refused = library.evaluate_here("--no-leaderboard")
        assert refused.refuses(path.split("/")[0]), (path, refused)
        assert " leads out of " in refused.err or "it has no cases" in refused.err, path
        assert _SECRET not in refused.err, path
    assert server.times.total() == 0


def test_a_data_checkout_that_links_its_cases_is_followed_where_the_settings_say_so(
    served: Library, server: ChatServer, outside: Path
) -> None:
    link(served, f"{_CASE}/document.md", outside / "document.md")
    served.settings(limits={"follow_links": True})
    assert served.evaluate_here("--no-leaderboard").code == 0
    assert server.times.total() == 6


def test_the_fixtures_of_a_declaration_stay_in_the_fixtures_folder(library: Library) -> None:
    for fixtures in ("/etc", "../elsewhere", "a/../..", "a\0b", "a" * 300, "\ud800", "", ".", "~/x"):
        library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fixtures": fixtures}]})
        refused = library.evaluate_here()
        assert refused.refuses("is no folder inside the fixtures folder"), fixtures
        assert "at datasets[0].fixtures in components" in refused.err, fixtures
